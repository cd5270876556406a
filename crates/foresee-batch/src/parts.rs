//! The reports on parts of the questions about a trace become the report on all of them.

use std::collections::HashSet;

use foresee_predict::Analysed;
use foresee_predict::info::{CORRECT, LATTICE, MONITORABILITY, PATTERN, SLICED};
use foresee_report::Report;
use foresee_trace::FindingKind;

/// The report on a trace, from reports on parts of the questions about it: for each job of the plan that was not split, the
/// reports on its parts, in their order. Conclusions come in the order in which one session draws them, and findings in the
/// order of the conclusions that they belong to. `None` if there are no reports.
pub fn join(questions: Vec<Vec<Report>>) -> Option<Report> {
    let mut joined: Option<Report> = None;
    for parts in questions {
        let is_split = parts.len() > 1;
        let mut together: Vec<Analysed> = Vec::new();
        for mut part in parts {
            together.append(&mut part.analysed);
            match &mut joined {
                Some(all) => add(all, part),
                none => *none = Some(part),
            }
        }
        if is_split {
            sort(&mut together);
        }
        if let Some(all) = &mut joined {
            all.analysed.append(&mut together);
        }
    }
    joined.map(sorted)
}

/// Puts the conclusions of several parts into the order of one session: it looks at patterns first, and makes each search for
/// all properties before the next one.
fn sort(together: &mut [Analysed]) {
    let patterns = together.iter().filter(|one| one.name == PATTERN);
    let patterns: HashSet<Option<String>> = patterns.map(|one| one.property.clone()).collect();
    together.sort_by_key(|one| (!patterns.contains(&one.property), rank(one)));
}

/// The place of a search among those of a property.
fn rank(one: &Analysed) -> usize {
    let later = [MONITORABILITY, LATTICE, SLICED, CORRECT];
    later.iter().position(|name| *name == one.name).map_or(0, |place| place + 1)
}

/// Adds the findings of a report on the same trace.
fn add(all: &mut Report, mut part: Report) {
    all.findings.append(&mut part.findings);
    all.witnesses.append(&mut part.witnesses);
    all.tests.append(&mut part.tests);
    // A session stops reading once it knows all answers.
    if part.trace.events > all.trace.events {
        all.trace = part.trace;
        all.remarks = std::mem::take(&mut part.remarks);
    }
}

/// Findings in the order of the conclusions that they belong to, those that depend on what reads see last.
fn sorted(mut report: Report) -> Report {
    let findings = std::mem::take(&mut report.findings);
    let mut found: Vec<_> = findings
        .into_iter()
        .zip(std::mem::take(&mut report.witnesses))
        .zip(std::mem::take(&mut report.tests))
        .collect();
    found.sort_by_cached_key(|((finding, _), _)| {
        let is_its = |one: &Analysed| {
            one.name == finding.analysis
                && one.property.as_ref().is_none_or(|p| *p == finding.property)
        };
        let place = report.analysed.iter().position(is_its);
        (finding.kind == FindingKind::Conditional, place)
    });
    for ((finding, witness), tests) in found {
        report.findings.push(finding);
        report.witnesses.push(witness);
        report.tests.push(tests);
    }
    report
}
