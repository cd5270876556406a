//! What an index has said of patterns, so that no pass over the trace is needed for them.

use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_trace::{Finding, Remarks, Trace};

use super::Listener;
use super::conclude::{Open, load_first};
use super::error::SessionError;
use super::mistake::Confirmed;
use super::report::{Report, TraceFacts};
use crate::analysis::Analysed;
use crate::checks::Suppressions;
use crate::confirm::Confirmer;
use crate::info::PATTERN;
use crate::kept::Kept;
use crate::pattern::Match;
use crate::sites::complete_from;

/// What an index said of patterns.
#[derive(Debug, Default)]
pub(super) struct Answered {
    /// What the trace consists of, by the index.
    pub(super) facts: TraceFacts,
    /// The notes of the trace's reader when the index was made.
    pub(super) remarks: Remarks,
    /// What was found out of each pattern.
    pub(super) analysed: Vec<Analysed>,
    /// What the observed run has.
    pub(super) observed: Vec<Finding>,
    /// What other runs have, to be confirmed.
    pub(super) predicted: Vec<Predicted>,
}

/// The matches of one specification.
#[derive(Debug)]
pub(super) struct Predicted {
    /// The specification.
    pub(super) spec: Spec,
    /// Its names; the trace, read again, has the same numbers for them.
    pub(super) resolved: Resolved,
    /// What was found.
    pub(super) matches: Vec<Match>,
}

impl Answered {
    /// How many events of the trace are needed to confirm what was found.
    pub(super) fn needed_events(&self) -> u64 {
        let matches = self.predicted.iter().flat_map(|p| &p.matches);
        matches.map(|found| found.certain_at + 1).max().unwrap_or(0)
    }

    /// Adds the predictions whose witnesses the judge confirms.
    pub(super) fn confirm(
        &self,
        kept: &Kept<'_>,
        confirmed: &mut Confirmed,
        listener: &mut dyn Listener,
    ) {
        for Predicted { spec, resolved, matches } in &self.predicted {
            let confirmer = Confirmer::new(spec, resolved, kept);
            for one in matches {
                let about = (PATTERN, spec.properties[one.property].name.name.as_str());
                let judged = confirmer.confirm_match(one);
                confirmed.add(judged, about, one, kept.trace, listener);
            }
        }
    }

    /// The report if nothing else was asked. The trace is read only as far as it takes to confirm
    /// what other runs have.
    pub(super) fn without_pass(
        &self,
        name: &str,
        open: Open<'_, '_>,
        listener: &mut dyn Listener,
    ) -> Result<(Report, Option<Trace>), SessionError> {
        let mut analysed = self.analysed.clone();
        let mut confirmed = Confirmed::default();
        let mut trace = None;
        if let events @ 1.. = self.needed_events() {
            let first = load_first(&mut open()?, Some(events))?;
            self.confirm(&Kept::new(&first), &mut confirmed, listener);
            trace = Some(first);
        }
        confirmed.own_up(&mut analysed);
        let mut findings: Vec<Finding> =
            self.observed.iter().cloned().chain(confirmed.findings).collect();
        complete_from(&mut findings, u64::MAX, open)?;
        let report = Report {
            name: name.to_owned(),
            trace: self.facts,
            analysed,
            findings,
            remarks: self.remarks.clone(),
            suppressions: Suppressions::default(),
        };
        Ok((report, trace))
    }
}
