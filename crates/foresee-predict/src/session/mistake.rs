//! Errors of foresee itself: a witness that the judge refuses, an analysis that contradicts itself.
//!
//! Nothing that depends on one is claimed. The property gets no answer, which the report states
//! (see [`Outcome::Mistake`]), and the listener receives what is needed to debug it.
//!
//! [`Outcome::Mistake`]: foresee_trace::Outcome::Mistake

use std::fmt::{Debug, Display};
use std::time::Instant;

use foresee_trace::{Finding, Outcome, Trace};

use super::Listener;
use crate::analysis::Analysed;
use crate::confirm::Unconfirmed;

/// An error of foresee.
#[derive(Clone, Copy)]
pub struct InternalError<'a> {
    /// The analysis that made it.
    pub analysis: &'static str,
    /// The property or check that lost its answer.
    pub property: &'a str,
    /// What is wrong.
    pub error: &'a dyn Display,
    /// What was found, as far as it helps to find the mistake.
    pub candidate: &'a dyn Debug,
    /// The trace, if it is in memory.
    pub trace: Option<&'a Trace>,
}

/// Keeps what is confirmed. What is not is not reported.
#[derive(Default)]
pub(super) struct Confirmed {
    pub(super) findings: Vec<Finding>,
    pub(super) mistakes: Vec<Mistake>,
    /// The analyses and properties whose candidates there was no time for.
    late: Vec<(&'static str, String)>,
}

/// What was proposed of a property and is not so.
pub(super) struct Mistake {
    pub(super) analysis: &'static str,
    pub(super) property: String,
    pub(super) error: Unconfirmed,
}

impl Confirmed {
    /// Adds the result of a candidate of an analysis.
    pub(super) fn add(
        &mut self,
        judged: Result<Finding, Unconfirmed>,
        (analysis, property): (&'static str, &str),
        candidate: &dyn Debug,
        trace: &Trace,
        listener: &mut dyn Listener,
    ) {
        match judged {
            Ok(finding) => self.findings.push(finding),
            Err(error) => {
                let trace = Some(trace);
                let told = InternalError { analysis, property, error: &error, candidate, trace };
                listener.internal_error(&told);
                self.mistakes.push(Mistake { analysis, property: property.to_owned(), error });
            }
        }
    }

    /// Whether the time is over before a candidate is judged; the first one always is judged.
    pub(super) fn is_late(
        &mut self,
        until: Option<Instant>,
        (analysis, property): (&'static str, &str),
    ) -> bool {
        let is_first = self.findings.is_empty() && self.mistakes.is_empty();
        let is_late = !is_first && until.is_some_and(|until| Instant::now() >= until);
        if is_late {
            self.late.push((analysis, property.to_owned()));
        }
        is_late
    }

    /// The mistakes cost their properties the answers, and no others. What there was no time for is said.
    pub(super) fn own_up(&self, analysed: &mut [Analysed]) {
        for one in analysed.iter_mut() {
            let is_its = |(analysis, property): &&(&'static str, String)| {
                one.name == *analysis && one.property.as_ref().is_none_or(|p| p == property)
            };
            let count = self.late.iter().filter(is_its).count();
            if count > 0 {
                one.outcome = Outcome::TimeLimit;
                one.notes.push(format!(
                    "there was no time to confirm {count} of the violations that were found: allow \
                     more with --time-limit"
                ));
            }
        }
        for Mistake { analysis, property, error } in &self.mistakes {
            let is_its = |a: &&mut Analysed| {
                a.name == *analysis && a.property.as_ref().is_none_or(|p| p == property)
            };
            for one in analysed.iter_mut().filter(is_its) {
                *one = Analysed::mistake(one.name, one.property.take(), error);
            }
        }
    }
}
