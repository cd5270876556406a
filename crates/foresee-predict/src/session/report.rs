//! The report on a trace.

use foresee_trace::{Finding, FindingKind, Names, Outcome, Remarks};
use serde::{Deserialize, Serialize};

use crate::analysis::{Analysed, Conclusion};
use crate::checks::Suppressions;

/// What a trace consists of.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
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
    /// The facts of a trace with this many events and these names.
    pub fn new(events: u64, names: &Names) -> TraceFacts {
        TraceFacts {
            events,
            threads: names.threads.len() as u64,
            variables: names.vars.len() as u64,
            locks: names.locks.len() as u64,
        }
    }
}

/// The report on a trace. Every finding in it is confirmed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The trace's file name, or what stands for it.
    pub name: String,
    /// What the trace consists of.
    pub trace: TraceFacts,
    /// What was looked for, and how far.
    pub analysed: Vec<Analysed>,
    /// What was found.
    pub findings: Vec<Finding>,
    /// The notes of the reader.
    pub remarks: Remarks,
    /// What was not wanted, and how much of it there was. This is decided whenever a report is shown, and not stored.
    #[serde(skip)]
    pub suppressions: Suppressions,
}

impl Report {
    /// A report of findings without a trace: `name` is what they are about.
    pub fn without_trace(name: &str, found: Vec<Finding>) -> Report {
        let mut report = Report { name: name.to_owned(), ..Report::default() };
        report.put_first(found);
        report
    }

    /// Puts findings that did not come from an analysis of the trace before all others.
    pub fn put_first(&mut self, found: Vec<Finding>) {
        let Some(first) = found.first() else { return };
        let failed = Analysed {
            name: first.analysis,
            property: None,
            outcome: Outcome::Exhausted,
            conclusion: Conclusion::Other,
            statement: "the program failed in this run".to_owned(),
            notes: Vec::new(),
            stats: Vec::new(),
        };
        self.analysed.insert(0, failed);
        self.findings.splice(0..0, found);
    }

    /// Lists findings that depend on what reads see after all others.
    pub(super) fn put_conditional_last(&mut self) {
        self.findings.sort_by_key(|finding| finding.kind == FindingKind::Conditional);
    }
}
