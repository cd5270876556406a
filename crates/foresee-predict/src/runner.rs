//! The only event loop: one pass over the trace for everything that was asked.

use foresee_trace::{Batch, EventSource, FileOrder, Finding, FindingSink, Flow, Outcome, Remarks};

use crate::analysis::{Analysed, Analysis, AnalysisError, Stat};
use crate::lattice::LATTICE;
use crate::monitorability::MONITORABILITY;
use crate::observed::OBSERVED;
use crate::pattern::PATTERN;

/// Told from time to time how many events have been read.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

/// What a pass over the trace came to.
#[derive(Debug)]
pub struct Summary {
    /// How many events were read.
    pub events: u64,
    /// What each analysis has to say, in the order in which they were given.
    pub analysed: Vec<Analysed>,
    /// What the reader had to say.
    pub remarks: Remarks,
}

/// Whether what an analysis of this name claims holds of runs with the same causality, of which a
/// thinned trace has all there is to know.
pub fn keeps_causality(analysis: &str) -> bool {
    [OBSERVED, LATTICE, PATTERN, MONITORABILITY, "causality"].contains(&analysis)
}

/// Feeds a trace to analyses until it ends or nobody wants more.
pub fn run(
    source: &mut dyn EventSource,
    analyses: &mut [Box<dyn Analysis>],
    out: &mut dyn FindingSink,
    progress: Progress<'_>,
) -> Result<Summary, AnalysisError> {
    let mut batch = Batch::default();
    let mut events = 0;
    let mut wanted: Vec<bool> = vec![true; analyses.len()];
    let mut ended = true;
    while source.next_batch(&mut batch)? {
        for (analysis, wanted) in analyses.iter_mut().zip(&mut wanted) {
            *wanted =
                *wanted && analysis.events(events, &batch, source.names(), out)? == Flow::Continue;
        }
        events += batch.events.len() as u64;
        progress(events);
        if !wanted.contains(&true) {
            ended = false;
            break;
        }
    }
    let mut analysed = Vec::new();
    for analysis in analyses {
        analysed.extend(analysis.finish(source.names(), out)?);
    }
    // What was not read can hold anything.
    if !ended {
        for one in analysed.iter_mut().filter(|a| a.outcome == Outcome::Exhausted) {
            one.outcome = Outcome::EventLimit;
        }
    }
    // Causality was read off an order that is not that of the steps.
    if source.remarks().order == FileOrder::Notes {
        let others = [OBSERVED, MONITORABILITY];
        for one in analysed.iter_mut().filter(|a| !others.contains(&a.name)) {
            one.outcome = Outcome::OrderUnknown;
            one.statement = "nothing is claimed of other runs: the order of this trace is only \
                             that in which its events were noted"
                .to_owned();
            one.stats.clear();
        }
    }
    // What was left out of a thinned trace matters as soon as the causality changes.
    if source.remarks().order == FileOrder::Thinned {
        for one in analysed.iter_mut().filter(|a| !keeps_causality(a.name)) {
            one.outcome = Outcome::OrderUnknown;
            one.statement = "not looked for: the capture left out accesses that only matter here; \
                             capture everything with `foresee run --all`"
                .to_owned();
            one.stats.clear();
        }
    }
    Ok(Summary { events, analysed, remarks: source.remarks().clone() })
}

/// For a trace of notes: takes back what the order of the notes violates, unless every order that
/// they leave open does. What was seen is then one of several things that may have happened.
pub fn settle_notes(analysed: &mut [Analysed], findings: &mut Vec<Finding>) {
    let is_monitorable = |one: &Analysed| {
        let word = one.stats.iter().find(|(name, _)| *name == "verdict");
        one.name == MONITORABILITY
            && matches!(word, Some((_, Stat::Text(word))) if word == "monitorable")
    };
    let certain: Vec<Option<String>> =
        analysed.iter().filter(|a| is_monitorable(a)).map(|a| a.property.clone()).collect();
    let is_certain = |property: &str| certain.iter().flatten().any(|name| name == property);
    let of_notes = |finding: &Finding| [OBSERVED, PATTERN].contains(&finding.analysis);
    findings.retain(|finding| !of_notes(finding) || is_certain(&finding.property));
    for one in analysed.iter_mut().filter(|a| a.name == OBSERVED) {
        let is_certain = one.property.as_deref().is_some_and(is_certain);
        one.statement = match is_certain {
            true => one.statement.replace("in the observed run", "whatever the order was"),
            false => "not known: the order in which events happened decides, and the notes do not \
                      tell it"
                .to_owned(),
        };
    }
}
