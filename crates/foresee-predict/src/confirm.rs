//! The last word on a prediction: its witness written out and judged by code that shares nothing
//! with the search.
//!
//! The order is replayed against the trace ([`foresee_causality::schedule::check`]), and the plain
//! monitor of one run must reject it, at its last event and for the same binding.

use foresee_causality::TooLong;
use foresee_causality::schedule::{self, Rejected};
use foresee_spec::ast::Spec;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::run::{ObservedMonitor, Violation};
use foresee_spec::{Diagnostic, Resolved};
use foresee_trace::{Finding, FindingKind, Trace, Witness};

use crate::analysis::AnalysisError;
use crate::lattice::{LATTICE, Prediction};
use crate::observed::{describe, describe_state};
use crate::pattern::{Match, PATTERN, linearise};

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
        let violation =
            judge(order, prediction.property, &prediction.binding, spec, resolved, trace)?;
        match violation.event == order.last().copied() {
            true => Ok(violation),
            false => Err(Unconfirmed::Verdict),
        }
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

/// Turns the match of a pattern into a finding, if a run that has it stands up to the judge.
pub fn confirm_match(
    found: &Match,
    spec: &Spec,
    resolved: &Resolved,
    trace: &Trace,
) -> Result<Finding, Unconfirmed> {
    let mut order = linearise(trace, &found.tuple)?;
    let violation = judge(&order, found.property, &found.binding, spec, resolved, trace)?;
    // The run may have the pattern earlier than by the events of the match.
    let end = order.iter().position(|&event| Some(event) == violation.event);
    let last = end.ok_or(Unconfirmed::Verdict)?;
    let events = match last + 1 == order.len() {
        true => &found.tuple,
        false => &violation.trail,
    };
    order.truncate(last + 1);
    let mut details: Vec<(String, String)> = found
        .binding
        .iter()
        .map(|(name, object)| (name.clone(), describe(*object, &trace.names)))
        .collect();
    let events: Vec<String> = events.iter().map(u64::to_string).collect();
    details.push(("events of the pattern".to_owned(), events.join(", ")));
    details.push(("certain since event".to_owned(), found.certain_at.to_string()));
    let switches = order.windows(2).filter(|pair| {
        let thread = |i: u64| trace.events[i as usize].thread();
        thread(pair[0]) != thread(pair[1])
    });
    details.push(("context switches".to_owned(), switches.count().to_string()));
    Ok(Finding {
        kind: FindingKind::Predicted,
        analysis: PATTERN,
        property: spec.properties[found.property].name.name.clone(),
        message: format!(
            "violated by event {} in another order of the same events; the observed run passed, \
             but nothing forces its order",
            order[last]
        ),
        event: None,
        witness: Some(Witness { violated_at: last, order }),
        details,
    })
}

/// Where the plain monitor of one run first rejects an order for a binding, after the order has
/// been found to keep the causality of the trace.
fn judge(
    order: &[u64],
    property: usize,
    binding: &[(String, Object)],
    spec: &Spec,
    resolved: &Resolved,
    trace: &Trace,
) -> Result<Violation, Unconfirmed> {
    schedule::check(trace, order)?;
    let property = &spec.properties[property];
    let compiled = Compiled::new(property).map_err(Unconfirmed::Property)?;
    let single = Spec { properties: vec![property.clone()], ..spec.clone() };
    let mut monitor = ObservedMonitor::new(&single, vec![compiled], resolved, &trace.names);
    for &index in order {
        let event = &trace.events[index as usize];
        monitor.event(index, event, &trace.pool);
    }
    let violations = monitor.take_violations().into_iter();
    let mut of_binding = violations.filter(|v| v.binding == binding && v.event.is_some());
    of_binding.next().ok_or(Unconfirmed::Verdict)
}
