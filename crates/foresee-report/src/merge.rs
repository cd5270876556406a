//! Merges the reports of several runs of a program.

use foresee_predict::Analysed;
use foresee_trace::{Finding, FindingKind, Outcome, ShownBy};

use crate::report::Report;

/// The findings of several runs, each once, with the number of runs that show it.
pub fn merge(reports: Vec<(String, Report)>, runs: usize) -> Option<Report> {
    let mut reports = reports.into_iter();
    let (label, mut all) = reports.next()?;
    let mut seen: Vec<(String, Vec<String>)> =
        all.findings.iter().map(|_| (label.clone(), vec![label.clone()])).collect();
    let mut analysed: Vec<Vec<Analysed>> = all.analysed.drain(..).map(|one| vec![one]).collect();
    let count = all.findings.len();
    all.witnesses.resize(count, None);
    for (label, Report { report, witnesses }) in reports {
        let witnesses = witnesses.into_iter().chain(std::iter::repeat(None));
        for (finding, witness) in report.findings.into_iter().zip(witnesses) {
            match all.findings.iter().position(|known| is_same(known, &finding)) {
                Some(at) => {
                    if seen[at].1.last() != Some(&label) {
                        seen[at].1.push(label.clone());
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
        let remarks = &mut all.remarks;
        remarks.cut_short = remarks.cut_short.take().or(report.remarks.cut_short);
        remarks.partial = remarks.partial.take().or(report.remarks.partial);
        for warning in report.remarks.warnings {
            if !remarks.warnings.contains(&warning) {
                remarks.warnings.push(warning);
            }
        }
    }
    for (finding, (from, by)) in all.findings.iter_mut().zip(seen) {
        finding.shown_by = Some(ShownBy { runs: by.len(), of: runs, from });
    }
    all.analysed = analysed.into_iter().map(one_for_all).collect();
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

/// The results of an analysis for all runs, as complete as the least complete of them.
fn one_for_all(all: Vec<Analysed>) -> Analysed {
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
        1 => format!("in 1 run: {statement}"),
        n => format!("in {n} runs: {statement}"),
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
