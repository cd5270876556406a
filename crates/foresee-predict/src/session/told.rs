//! What has been reported of a trace that is still being made: each finding once, however often it is found.
//!
//! A trace is read from its beginning again when a name changes the question, and when another edition of it arrives. Then
//! the same is found again, and has to be recognised. Its fingerprint is not enough: that counts lines of the trace so far,
//! so a later line can change it. Neither are its events, whose numbers are those of one edition. What stays is what the
//! program did, and in which lines of its source.

use foresee_trace::{FileOrder, Finding, Fingerprint};

use super::Listener;
use super::conclude::stands;
use super::report::Report;
use crate::sites::in_source;

/// What a finding is known by.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark {
    /// What it consists of in the source, if that was looked up.
    in_source: Option<Fingerprint>,
    /// The event at which it happens, if it was observed, and in which edition.
    happens: Option<(u64, u64)>,
}

impl Mark {
    fn is_same(&self, other: &Mark) -> bool {
        match (self.in_source, other.in_source) {
            (Some(one), Some(other)) => one == other,
            _ => self.happens.is_some() && self.happens == other.happens,
        }
    }
}

/// A finding that was reported, with every mark that it has had.
struct One {
    finding: Finding,
    marks: Vec<Mark>,
}

impl One {
    fn is(&self, finding: &Finding, mark: &Mark) -> bool {
        (self.finding.kind, &self.finding.property) == (finding.kind, &finding.property)
            && self.marks.iter().any(|known| known.is_same(mark))
    }
}

/// What has been reported, and not been withdrawn.
pub(super) struct Told<'a> {
    listener: &'a mut dyn Listener,
    all: Vec<One>,
    /// How many editions there were before.
    edition: u64,
    /// What was found since the trace was begun for the last time.
    pub(super) now: Vec<Finding>,
}

impl<'a> Told<'a> {
    pub(super) fn new(listener: &'a mut dyn Listener) -> Told<'a> {
        Told { listener, all: Vec::new(), edition: 0, now: Vec::new() }
    }

    pub(super) fn listener(&mut self) -> &mut dyn Listener {
        self.listener
    }

    /// Reports a finding, unless it was reported before.
    pub(super) fn tell(&mut self, finding: &Finding) {
        let happens = finding.event.map(|event| (self.edition, event));
        let mark = Mark { in_source: in_source(finding), happens };
        match self.all.iter_mut().find(|one| one.is(finding, &mark)) {
            Some(one) if one.marks.contains(&mark) => {}
            Some(one) => one.marks.push(mark),
            None => {
                self.listener.found(finding);
                self.all.push(One { finding: finding.clone(), marks: vec![mark] });
            }
        }
    }

    /// The trace is read from its beginning again.
    pub(super) fn begin_again(&mut self) {
        self.now.clear();
    }

    /// Another edition of the trace is read.
    pub(super) fn begin_another_trace(&mut self) {
        self.now.clear();
        self.edition += 1;
    }

    /// Findings reported while the trace was made remain; those missing from the report on it are added, and those
    /// that answer an outdated question, or rely on an order that is not known by now, are withdrawn.
    pub(super) fn settle(&mut self, report: &mut Report, order: FileOrder) {
        self.now.retain(|finding| stands(finding, order));
        for finding in &self.now {
            let is_there = report.findings.iter().any(|f| f.property == finding.property);
            if !is_there && finding.witness.is_some() {
                // Ranks are counted again now that the whole trace is known.
                report.findings.push(Finding { fingerprint: None, ..finding.clone() });
            }
        }
        let Told { listener, all, now, .. } = self;
        all.retain(|One { finding, .. }| {
            let is_answer =
                report.findings.iter().chain(&*now).any(|f| f.property == finding.property);
            let remains = is_answer && stands(finding, order);
            if !remains {
                listener.withdrawn(finding);
            }
            remains
        });
    }
}
