//! The last word on a prediction: its witness written out and judged by code that shares nothing
//! with the search.
//!
//! The order is replayed against the trace ([`foresee_causality::schedule::check`]), and the plain
//! monitor of one run must reject it, at its last event and for the same binding.

use foresee_causality::TooLong;
use foresee_causality::schedule::{self, Rejected};
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::run::{ObservedMonitor, Violation};
use foresee_spec::{Diagnostic, Resolved};
use foresee_trace::{Finding, FindingKind, Trace, Witness};

use crate::analysis::AnalysisError;
use crate::lattice::{LATTICE, Prediction};
use crate::observed::{describe, describe_state};

/// A witness that is none. This is a mistake of foresee, not of the program.
#[derive(Debug, thiserror::Error)]
pub enum Unconfirmed {
    /// The order breaks the causality of the trace.
    #[error("the witness is no run of the trace: {0}")]
    Order(#[from] Rejected),
    /// The monitor does not reject the order where the search said it would.
    #[error("the witness does not violate the property at its last event")]
    Verdict,
    /// The trace is longer than clocks can count.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The runs that show the violation cannot be found again.
    #[error(transparent)]
    Lost(#[from] AnalysisError),
    /// The property cannot be compiled again.
    #[error("the property cannot be compiled again: {}", .0.message)]
    Property(Diagnostic),
}

/// Turns a prediction into a finding, if its witnesses stand up to the judge.
pub fn confirm(
    prediction: &Prediction,
    spec: &Spec,
    resolved: &Resolved,
    trace: &Trace,
) -> Result<Finding, Unconfirmed> {
    let property = &spec.properties[prediction.property];
    let judge = |order: &[u64]| -> Result<Violation, Unconfirmed> {
        schedule::check(trace, order)?;
        let compiled = Compiled::new(property).map_err(Unconfirmed::Property)?;
        let single = Spec { properties: vec![property.clone()], ..spec.clone() };
        let mut monitor = ObservedMonitor::new(&single, vec![compiled], resolved, &trace.names);
        for &index in order {
            let event = &trace.events[index as usize];
            monitor.event(index, event, &trace.pool);
        }
        let mut rejected = monitor.take_violations().into_iter().filter(|violation| {
            violation.event == order.last().copied() && violation.binding == prediction.binding
        });
        rejected.next().ok_or(Unconfirmed::Verdict)
    };
    let runs = prediction.runs(spec, resolved, trace)?;
    let mut order = runs.shortest.order(trace)?;
    let mut violation = judge(&order)?;
    let mut details = Vec::new();
    let names = &trace.names;
    for (name, object) in &prediction.binding {
        details.push((name.clone(), describe(*object, names)));
    }
    if let Some((schedule, swaps)) = &runs.closest {
        // The run that differs least is the easiest to compare with what was seen.
        order = schedule.order(trace)?;
        violation = judge(&order)?;
        details.push(("swapped pairs of relevant events".to_owned(), swaps.to_string()));
    }
    details.extend(describe_state(&violation, names));
    let last = order[order.len() - 1];
    Ok(Finding {
        kind: FindingKind::Predicted,
        analysis: LATTICE,
        property: property.name.name.clone(),
        message: format!(
            "violated by event {last} in another order of the same events; the observed run \
             passed, but nothing forces its order"
        ),
        event: None,
        witness: Some(Witness { violated_at: order.len() - 1, order }),
        details,
    })
}
