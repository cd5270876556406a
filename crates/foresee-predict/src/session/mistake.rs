//! Errors of foresee itself: a witness that the judge refuses, an analysis that contradicts itself.
//!
//! Nothing that depends on one is claimed. The property gets no answer, which the report states
//! (see [`Outcome::Mistake`]), and the listener receives what is needed to debug it.
//!
//! [`Outcome::Mistake`]: foresee_trace::Outcome::Mistake

use std::fmt::{Debug, Display};

use foresee_trace::{Finding, Trace};

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

    /// The mistakes cost their properties the answers, and no others.
    pub(super) fn own_up(&self, analysed: &mut [Analysed]) {
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
