//! For test reports: JUnit's XML in the dialect of Jenkins.
//!
//! The trace is a suite and each question a case: a property, or a check. A finding is a failure. A
//! case whose answer is not complete is skipped, never passed, and one that foresee lost to a mistake
//! of its own is an error.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use foresee_predict::Analysed;
use foresee_support::svg::Xml;
use foresee_trace::{Finding, FindingKind, Outcome, Visible};

use crate::report::{Answers, Report};
use crate::sarif::headline;
use crate::text::{self, short::Shorter};

/// A property or a check.
struct Case<'a> {
    name: &'a str,
    /// What looked at it.
    analysed: Vec<&'a Analysed>,
    /// What was found, by its number in the report.
    findings: Vec<(usize, &'a Finding)>,
}

/// The report as one XML document.
pub fn report(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(report, &mut out);
    out
}

fn write(report: &Report, out: &mut String) -> fmt::Result {
    let (cases, answers) = (cases(report), Answers::of(report));
    let count = |status: fn(&Verdict<'_>) -> bool| {
        cases.iter().filter(|case| status(&verdict(case, report, &answers))).count()
    };
    let failures = count(|verdict| matches!(verdict, Verdict::Failed));
    let errors = count(|verdict| matches!(verdict, Verdict::Lost(_)));
    let skipped = count(|verdict| matches!(verdict, Verdict::Open(_)));
    let tests = cases.len();
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuites name=\"foresee\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">"
    )?;
    let suite = Visible(&report.name).to_string();
    writeln!(
        out,
        "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" \
         skipped=\"{skipped}\">",
        Xml(&suite)
    )?;
    for case in &cases {
        let name = Visible(case.name).to_string();
        let (name, suite) = (Xml(&name), Xml(&suite));
        writeln!(out, "    <testcase name=\"{name}\" classname=\"{suite}\">")?;
        match verdict(case, report, &answers) {
            Verdict::Passed => {}
            Verdict::Failed => {
                for &(i, finding) in &case.findings {
                    write_failure(report, i, finding, out)?;
                }
            }
            Verdict::Lost(why) => {
                let why = Visible(&why).to_string();
                writeln!(out, "      <error message=\"{0}\">{0}</error>", Xml(&why))?;
            }
            Verdict::Open(why) => {
                let why = Visible(&why).to_string();
                writeln!(out, "      <skipped message=\"{}\"/>", Xml(&why))?;
            }
        }
        writeln!(out, "    </testcase>")?;
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

fn write_failure(report: &Report, i: usize, finding: &Finding, out: &mut String) -> fmt::Result {
    let kind = Visible(&finding.rule()).to_string();
    let shorter = Shorter::of(finding, "");
    let message = shorter.apply(&headline(finding));
    let mut shown = String::new();
    if let Some(fingerprint) = finding.fingerprint {
        writeln!(shown, "{fingerprint}")?;
    }
    for site in &finding.sites {
        let site = (site.role.word(), shorter.apply(&site.to_string()));
        writeln!(shown, "{}: {}", site.0, Visible(&site.1))?;
    }
    if let Some(by) = finding.shown_by.as_ref().filter(|by| !by.traces.is_empty()) {
        writeln!(shown, "traces: {}", Visible(&by.to_string()))?;
    }
    if let Some(diagram) = report.witnesses.get(i).and_then(Option::as_ref) {
        shown.push_str(&text::schedule(finding, diagram));
    }
    writeln!(
        out,
        "      <failure type=\"{}\" message=\"{}\">{}</failure>",
        Xml(&kind),
        Xml(&message),
        Xml(&shown)
    )
}

/// What became of a case.
enum Verdict<'a> {
    Passed,
    Failed,
    /// The answer is not complete, and why.
    Open(std::borrow::Cow<'a, str>),
    /// foresee contradicted itself.
    Lost(std::borrow::Cow<'a, str>),
}

fn verdict<'a>(case: &Case<'a>, report: &'a Report, answers: &Answers<'_>) -> Verdict<'a> {
    let is_conditional = |finding: &Finding| finding.kind == FindingKind::Conditional;
    if case.findings.iter().any(|(_, finding)| !is_conditional(finding)) {
        return Verdict::Failed;
    }
    if let Some(one) = case.analysed.iter().find(|one| one.outcome == Outcome::Mistake) {
        return Verdict::Lost((&one.statement).into());
    }
    if let Some((_, finding)) = case.findings.first() {
        return Verdict::Open(headline(finding).into());
    }
    let remarks = &report.remarks;
    if let Some(why) = remarks.cut_short.as_deref().or(remarks.partial.as_deref()) {
        return Verdict::Open(why.into());
    }
    match case.analysed.iter().find(|one| !answers.has(one)) {
        Some(one) => Verdict::Open((&one.statement).into()),
        None => Verdict::Passed,
    }
}

/// The questions, in the order in which they were first looked at.
fn cases<'r>(report: &'r Report) -> Vec<Case<'r>> {
    let mut cases: Vec<Case<'r>> = Vec::new();
    let mut numbers: HashMap<&'r str, usize> = HashMap::new();
    let mut number = |name: &'r str, cases: &mut Vec<Case<'r>>| {
        *numbers.entry(name).or_insert_with(|| {
            cases.push(Case { name, analysed: Vec::new(), findings: Vec::new() });
            cases.len() - 1
        })
    };
    for one in &report.analysed {
        let case = number(one.property.as_deref().unwrap_or(one.name), &mut cases);
        cases[case].analysed.push(one);
    }
    for (i, finding) in report.findings.iter().enumerate() {
        let case = number(&finding.property, &mut cases);
        cases[case].findings.push((i, finding));
    }
    cases
}
