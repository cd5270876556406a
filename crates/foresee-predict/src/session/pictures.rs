//! The lattice of each property as data to be drawn.

use foresee_spec::ast::Spec;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_trace::Trace;

use super::error::SessionError;
use super::parts::Part;
use crate::analysis::AnalysisError;
use crate::lattice::{NoPicture, Picture};

/// How many bindings of one property are drawn.
const DRAWN_BINDINGS: usize = 20;

/// A lattice, or why it cannot be drawn.
#[derive(Debug)]
pub enum Drawing {
    /// The order of the trace is only that of its notes.
    OrderUnknown,
    /// No binding of the parameters of this property is violated.
    Nothing(String),
    /// The lattice of a property, or of a binding of its parameters.
    Lattice {
        /// The property.
        property: String,
        /// Whether it is the only one of all specifications.
        is_only: bool,
        /// Its number among the bindings that are drawn, if there are several.
        number: Option<usize>,
        /// The lattice, if it is small enough.
        picture: Result<Box<Picture>, NoPicture>,
    },
}

/// A confirmed run that violates a property.
pub(super) struct Run {
    pub(super) property: usize,
    pub(super) binding: Vec<(String, Object)>,
    pub(super) order: Vec<u64>,
    /// Whether it is no run with the plain causality, so that the lattice does not have it.
    pub(super) is_beyond: bool,
}

/// A violating run to draw, or none.
struct Subject {
    binding: Vec<(String, Object)>,
    order: Option<Vec<u64>>,
    /// A violating order that is not in the lattice.
    beyond: Option<Vec<u64>>,
}

/// The lattices of the properties of a part, with confirmed runs that violate them.
pub(super) fn draw(
    part: &Part,
    trace: &Trace,
    runs: &[Run],
    is_only: bool,
) -> Result<Vec<Drawing>, SessionError> {
    let Part { spec, resolved, .. } = part;
    let is_only = is_only && spec.properties.len() == 1;
    let mut drawings = Vec::new();
    for number in 0..spec.properties.len() {
        let subjects = subjects(part, trace, runs, number)?;
        let name = part.name_of(number);
        if subjects.is_empty() {
            drawings.push(Drawing::Nothing(name.to_owned()));
        }
        for (i, subject) in subjects.iter().enumerate() {
            let order = subject.order.as_deref();
            let picture = Picture::new(trace, spec, resolved, number, &subject.binding, order);
            let picture = picture.map(|mut picture| {
                if let Some(beyond) = &subject.beyond {
                    picture.add_beyond(trace, beyond);
                }
                Box::new(picture)
            });
            drawings.push(Drawing::Lattice {
                property: name.to_owned(),
                is_only,
                number: (subjects.len() > 1).then_some(i + 1),
                picture,
            });
        }
    }
    Ok(drawings)
}

/// What to draw of a property: the property itself, or each binding of its parameters that is
/// violated, with the violating run that the report shows.
fn subjects(
    part: &Part,
    trace: &Trace,
    runs: &[Run],
    number: usize,
) -> Result<Vec<Subject>, SessionError> {
    let Part { spec, resolved, .. } = part;
    let property = &spec.properties[number];
    let again = |diagnostic: foresee_spec::Diagnostic| {
        AnalysisError::Mistake(format!(
            "a property cannot be compiled again: {}",
            diagnostic.message
        ))
    };
    let compiled = Compiled::new(property).map_err(again)?;
    let single = Spec { properties: vec![property.clone()], ..spec.clone() };
    let mut monitor = ObservedMonitor::new(&single, vec![compiled], resolved, &trace.names);
    for (i, event) in trace.events.iter().enumerate() {
        monitor.event(i as u64, event, &trace.pool);
    }
    monitor.finish();
    let mut subjects = Vec::new();
    for violation in monitor.take_violations().into_iter().take(DRAWN_BINDINGS) {
        let order = (0..violation.event.map_or(0, |event| event + 1)).collect();
        subjects.push(Subject { binding: violation.binding, order: Some(order), beyond: None });
    }
    for run in runs.iter().filter(|run| run.property == number) {
        if subjects.len() < DRAWN_BINDINGS {
            let order = Some(run.order.clone());
            let (order, beyond) = if run.is_beyond { (None, order) } else { (order, None) };
            subjects.push(Subject { binding: run.binding.clone(), order, beyond });
        }
    }
    if subjects.is_empty() && property.params.is_empty() {
        subjects.push(Subject { binding: Vec::new(), order: None, beyond: None });
    }
    Ok(subjects)
}
