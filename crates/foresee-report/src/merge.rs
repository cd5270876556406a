//! Merges the reports of several runs of a program, or of several processes of one run.

use foresee_predict::Analysed;
use foresee_trace::{Finding, FindingKind, Outcome, ShownBy};

use crate::report::Report;

/// What the reports are about that are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Several runs: this many, some of which may have several reports.
    Runs(usize),
    /// The processes of one run.
    Processes,
}

/// The findings of several reports, each once, with the number of runs and all the tests that show it.
pub fn merge(reports: Vec<(String, Report)>, parts: Parts) -> Option<Report> {
    let mut reports = reports.into_iter();
    let (label, mut all) = reports.next()?;
    let mut seen: Vec<(String, Vec<String>)> =
        all.findings.iter().map(|_| (label.clone(), vec![label.clone()])).collect();
    let mut analysed: Vec<Vec<Analysed>> = all.analysed.drain(..).map(|one| vec![one]).collect();
    let count = all.findings.len();
    all.witnesses.resize(count, None);
    all.tests.resize(count, Vec::new());
    for (label, Report { report, witnesses, tests, .. }) in reports {
        let witnesses = witnesses.into_iter().chain(std::iter::repeat(None));
        let tests = tests.into_iter().chain(std::iter::repeat(Vec::new()));
        let found = report.findings.into_iter().zip(witnesses).zip(tests);
        for ((finding, witness), tests) in found {
            match all.findings.iter().position(|known| is_same(known, &finding)) {
                Some(at) => {
                    if seen[at].1.last() != Some(&label) {
                        seen[at].1.push(label.clone());
                    }
                    for test in tests {
                        if !all.tests[at].contains(&test) {
                            all.tests[at].push(test);
                        }
                    }
                    // An observed finding is stronger than a predicted one.
                    if all.findings[at].kind != FindingKind::Observed
                        && finding.kind == FindingKind::Observed
                    {
                        (all.findings[at], all.witnesses[at]) = (finding, witness);
                        seen[at].0.clone_from(&label);
                    }
                }
                None => {
                    all.findings.push(finding);
                    all.witnesses.push(witness);
                    all.tests.push(tests);
                    seen.push((label.clone(), vec![label.clone()]));
                }
            }
        }
        for one in report.analysed {
            let is_it = |known: &&mut Vec<Analysed>| {
                known[0].name == one.name && known[0].property == one.property
            };
            match analysed.iter_mut().find(is_it) {
                Some(known) => known.push(one),
                None => analysed.push(vec![one]),
            }
        }
        if parts == Parts::Processes {
            let (sum, one) = (&mut all.report.trace, report.trace);
            sum.events += one.events;
            sum.threads += one.threads;
            sum.variables += one.variables;
            sum.locks += one.locks;
        }
        let remarks = &mut all.remarks;
        remarks.cut_short = remarks.cut_short.take().or(report.remarks.cut_short);
        remarks.partial = remarks.partial.take().or(report.remarks.partial);
        for warning in report.remarks.warnings {
            if !remarks.warnings.contains(&warning) {
                remarks.warnings.push(warning);
            }
        }
    }
    let word = match parts {
        Parts::Runs(of) => {
            for (finding, (from, by)) in all.findings.iter_mut().zip(seen) {
                finding.shown_by = Some(ShownBy { runs: by.len(), of, from });
            }
            ["run", "runs"]
        }
        Parts::Processes => ["process", "processes"],
    };
    all.analysed = analysed.into_iter().map(|each| one_for_all(each, word)).collect();
    Some(all)
}

/// Whether two runs show the same thing.
fn is_same(a: &Finding, b: &Finding) -> bool {
    (a.analysis, &a.property) == (b.analysis, &b.property)
        && match (a.fingerprint, b.fingerprint) {
            (Some(a), Some(b)) => a == b,
            _ => a.message == b.message,
        }
}

/// The results of an analysis for all runs or processes, as complete as the least complete of them.
fn one_for_all(all: Vec<Analysed>, [one, many]: [&str; 2]) -> Analysed {
    let outcomes = || all.iter().map(|one| one.outcome);
    let outcome = outcomes().find(|&outcome| outcome != Outcome::Exhausted);
    let outcome = outcome.unwrap_or(Outcome::Exhausted);
    let mut statements: Vec<(&str, usize)> = Vec::new();
    let mut notes: Vec<String> = Vec::new();
    for one in &all {
        match statements.iter_mut().find(|(statement, _)| *statement == one.statement) {
            Some((_, times)) => *times += 1,
            None => statements.push((&one.statement, 1)),
        }
        notes.extend(
            one.notes.iter().filter(|note| !notes.contains(note)).cloned().collect::<Vec<_>>(),
        );
    }
    let told = statements.iter().map(|(statement, times)| match *times {
        1 => format!("in 1 {one}: {statement}"),
        n => format!("in {n} {many}: {statement}"),
    });
    let statement = told.collect::<Vec<_>>().join("; ");
    let first = &all[0];
    Analysed {
        name: first.name,
        property: first.property.clone(),
        outcome,
        conclusion: foresee_predict::Conclusion::Other,
        statement,
        notes,
        stats: Vec::new(),
    }
}
