//! Everything one command has to say.

use foresee_predict::checks::Suppressions;
use foresee_predict::correct::CORRECT;
use foresee_predict::reorder::SLICED;
use foresee_predict::{Analysed, MONITORABILITY, OBSERVED};
use foresee_trace::{Finding, FindingKind, Names, Outcome, Remarks};

use crate::diagram::Diagram;

/// What a trace consists of.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceFacts {
    /// Events read.
    pub events: u64,
    /// Threads named.
    pub threads: u64,
    /// Variables named.
    pub variables: u64,
    /// Locks named.
    pub locks: u64,
}

impl TraceFacts {
    /// The facts of a trace of so many events with these names.
    pub fn new(events: u64, names: &Names) -> TraceFacts {
        TraceFacts {
            events,
            threads: names.threads.len() as u64,
            variables: names.vars.len() as u64,
            locks: names.locks.len() as u64,
        }
    }
}

/// Everything one command has to say.
#[derive(Clone, Debug)]
pub struct Report {
    /// The trace's file name, or what stands for it.
    pub name: String,
    /// What the trace consists of.
    pub trace: TraceFacts,
    /// What was looked for, and how far.
    pub analysed: Vec<Analysed>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// A drawing of each finding's witness, where there is one.
    pub witnesses: Vec<Option<Diagram>>,
    /// What the reader had to say.
    pub remarks: Remarks,
    /// What was not wanted, and how much of it there was.
    pub suppressions: Suppressions,
}

impl Report {
    /// Lists findings that hang on what reads see after all others.
    pub fn put_conditional_last(&mut self) {
        let witnesses = std::mem::take(&mut self.witnesses);
        let witnesses = witnesses.into_iter().chain(std::iter::repeat(None));
        let mut all: Vec<_> =
            std::mem::take(&mut self.findings).into_iter().zip(witnesses).collect();
        all.sort_by_key(|(finding, _)| finding.kind == FindingKind::Conditional);
        (self.findings, self.witnesses) = all.into_iter().unzip();
    }

    /// Takes away the findings that are not wanted. What they rest on stays as it was.
    pub fn suppress(&mut self, mut suppressions: Suppressions) {
        let findings = std::mem::take(&mut self.findings);
        let witnesses = std::mem::take(&mut self.witnesses);
        let witnesses = witnesses.into_iter().chain(std::iter::repeat(None));
        for (finding, witness) in findings.into_iter().zip(witnesses) {
            if !suppressions.cover(&finding) {
                self.findings.push(finding);
                self.witnesses.push(witness);
            }
        }
        self.suppressions = suppressions;
    }
}

/// The exit status of the contract: 1 if something was found, 2 if nothing was and some answer was
/// lost to a mistake of foresee, 0 if nothing was found and the answer is complete, 3 if nothing was
/// found but the answer is not complete. What hangs on a value that was not read is not found, but
/// not ruled out either.
pub fn exit_status(report: &Report) -> u8 {
    let is_conditional = |finding: &Finding| finding.kind == FindingKind::Conditional;
    let is_mistaken = report.analysed.iter().any(|one| one.outcome == Outcome::Mistake);
    match report.findings.iter().all(is_conditional) {
        false => 1,
        true if is_mistaken => 2,
        true if report.findings.is_empty() && is_complete(report) => 0,
        true => 3,
    }
}

/// Whether everything that was asked was answered for all runs with the same causality. The observed
/// run, and searches beyond that causality that were not cut, leave the answer to another analysis of
/// their property; two properties of one name do not answer for each other.
fn is_complete(report: &Report) -> bool {
    let exhausted = |a: &Analysed| a.outcome == Outcome::Exhausted;
    let answered = |a: &Analysed| {
        // A warning that nobody asked for is no answer to anything.
        let is_warning = a.name == MONITORABILITY && a.outcome == Outcome::Window;
        let is_uncut = match a.name {
            OBSERVED => true,
            // It never covers all there is.
            SLICED => matches!(a.outcome, Outcome::Window | Outcome::OrderUnknown),
            // Of a thinned trace the rest is known not to be known.
            CORRECT => a.outcome == Outcome::OrderUnknown,
            _ => false,
        };
        let leaves_it = is_uncut || is_warning;
        let about = |b: &&Analysed| leaves_it && a.property == b.property;
        exhausted(a) || report.analysed.iter().filter(about).any(exhausted)
    };
    let whole = report.remarks.cut_short.is_none() && report.remarks.partial.is_none();
    whole && !report.analysed.is_empty() && report.analysed.iter().all(answered)
}
