//! Everything one command has to say.

use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};

use foresee_predict::Analysed;
use foresee_predict::checks::Suppressions;
use foresee_predict::session::Examined;
use foresee_trace::{Finding, FindingKind, Outcome};
use serde::{Deserialize, Serialize};

use crate::diagram::Diagram;
use crate::units::Tests;

/// How many events of a witness are drawn at most: of the first witnesses of an analysis, and of the
/// others. Text shows fewer.
const DRAWN_EVENTS: (usize, usize) = (5_000, 60);
const DRAWN_IN_FULL: usize = 10;

/// How many witnesses of one analysis are drawn at most.
const DRAWN_WITNESSES: usize = 100;

/// Everything one command has to say: the report of a session, and its witnesses drawn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    pub(crate) report: foresee_predict::session::Report,
    /// A drawing of each finding's witness, where there is one.
    pub witnesses: Vec<Option<Diagram>>,
    /// The tests of the program that show each finding, where they are known.
    pub tests: Vec<Vec<String>>,
    /// What was found and is not wanted.
    #[serde(skip)]
    pub suppressed: Vec<Suppressed>,
    /// Pictures of lattices, with their properties, for the HTML page.
    #[serde(skip)]
    pub lattices: Vec<(String, String)>,
    /// The command line that replays predictions, if a program was run.
    #[serde(skip)]
    pub rerun: Option<String>,
}

/// A finding that is not wanted.
#[derive(Clone, Debug)]
pub struct Suppressed {
    /// The finding.
    pub finding: Finding,
    /// Which of the report's suppressions covers it.
    pub by: usize,
}

impl Deref for Report {
    type Target = foresee_predict::session::Report;
    fn deref(&self) -> &Self::Target {
        &self.report
    }
}

impl DerefMut for Report {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.report
    }
}

impl From<foresee_predict::session::Report> for Report {
    fn from(report: foresee_predict::session::Report) -> Report {
        let witnesses = report.findings.iter().map(|_| None).collect();
        let tests = report.findings.iter().map(|_| Vec::new()).collect();
        Report {
            report,
            witnesses,
            tests,
            suppressed: Vec::new(),
            lattices: Vec::new(),
            rerun: None,
        }
    }
}

impl Report {
    /// The result for a trace, in which these tests ran.
    pub fn of(examined: Examined, tests: &Tests) -> Report {
        let Examined { report, trace, .. } = examined;
        let mut report = Report::from(report);
        report.tests = report.findings.iter().map(|finding| tests.of(finding)).collect();
        let Some(trace) = trace else { return report };
        let mut drawn: HashMap<&str, usize> = HashMap::new();
        for (finding, diagram) in report.report.findings.iter().zip(&mut report.witnesses) {
            let Some(witness) = &finding.witness else { continue };
            let drawn = drawn.entry(finding.analysis).or_default();
            *drawn += 1;
            let events = if *drawn <= DRAWN_IN_FULL { DRAWN_EVENTS.0 } else { DRAWN_EVENTS.1 };
            if *drawn <= DRAWN_WITNESSES {
                *diagram = Some(Diagram::of_witness(&trace, witness, events));
            }
        }
        report
    }

    /// Puts findings that did not come from an analysis of the trace before all others.
    pub fn put_first(&mut self, found: Vec<Finding>) {
        self.witnesses.splice(0..0, found.iter().map(|_| None));
        self.tests.splice(0..0, found.iter().map(|_| Vec::new()));
        self.report.put_first(found);
    }

    /// Keeps only some of the findings.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&Finding) -> bool) {
        let kept: Vec<bool> = self.findings.iter().map(&mut is_kept).collect();
        let mut of = kept.iter();
        self.findings.retain(|_| of.next() == Some(&true));
        let mut of = kept.iter();
        self.witnesses.retain(|_| of.next() == Some(&true));
        let mut of = kept.iter();
        self.tests.retain(|_| of.next() == Some(&true));
    }

    /// Takes away the findings that are not wanted. What they rest on stays as it was.
    pub fn suppress(&mut self, mut suppressions: Suppressions) {
        let findings = std::mem::take(&mut self.findings);
        let witnesses = std::mem::take(&mut self.witnesses);
        let witnesses = witnesses.into_iter().chain(std::iter::repeat(None));
        let tests =
            std::mem::take(&mut self.tests).into_iter().chain(std::iter::repeat(Vec::new()));
        for ((finding, witness), tests) in findings.into_iter().zip(witnesses).zip(tests) {
            match suppressions.cover(&finding) {
                Some(by) => self.suppressed.push(Suppressed { finding, by }),
                None => {
                    self.findings.push(finding);
                    self.witnesses.push(witness);
                    self.tests.push(tests);
                }
            }
        }
        self.suppressions = suppressions;
    }
}

/// The exit status of the contract: 1 if something was found, 2 if nothing was and some answer was
/// lost to a bug in foresee, 0 if nothing was found and the answer is complete, 3 if nothing was
/// found but the answer is not complete. What depends on a value that was not read is not found, but
/// not ruled out either.
pub fn exit_status(report: &Report) -> u8 {
    let is_conditional = |finding: &Finding| finding.kind == FindingKind::Conditional;
    let is_mistaken = report.analysed.iter().any(|one| one.outcome == Outcome::Mistake);
    match report.findings.iter().all(is_conditional) {
        false => 1,
        true if is_mistaken => 2,
        true if report.findings.is_empty() && missing(report).is_empty() => 0,
        true => 3,
    }
}

/// Why the answer is not complete, a sentence each; nothing if everything that was asked was
/// answered for all runs with the same causality.
pub(crate) fn missing(report: &Report) -> Vec<String> {
    let remarks = &report.remarks;
    let cut = remarks.cut_short.iter().map(|why| format!("the trace was cut short: {why}"));
    let partial =
        remarks.partial.iter().map(|why| format!("the trace does not hold everything: {why}"));
    let nothing = report.analysed.is_empty().then(|| "nothing was looked for".to_owned());
    let answers = Answers::of(report);
    let open = report.analysed.iter().filter(|one| !answers.has(one)).map(|one| {
        let about = one.property.as_ref().map_or(String::new(), |property| format!(" {property}"));
        format!("{}{about}: {}", one.name, one.statement)
    });
    cut.chain(partial).chain(nothing).chain(open).collect()
}

/// The properties that some analysis answered.
pub(crate) struct Answers<'r>(HashSet<Option<&'r str>>);

impl<'r> Answers<'r> {
    pub(crate) fn of(report: &'r Report) -> Answers<'r> {
        let exhausted = report.analysed.iter().filter(|one| one.outcome == Outcome::Exhausted);
        Answers(exhausted.map(|one| one.property.as_deref()).collect())
    }

    /// Whether an analysis answered its question. The observed run, and searches beyond that
    /// causality that were not cut, leave the answer to another analysis of their property; two
    /// properties of one name do not answer for each other.
    pub(crate) fn has(&self, one: &Analysed) -> bool {
        let leaves_it = one.info().is_some_and(|info| info.defers_after(one.outcome));
        one.outcome == Outcome::Exhausted || leaves_it && self.0.contains(&one.property.as_deref())
    }
}
