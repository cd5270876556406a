//! What the searches beyond the causality have in common: how they watch a trace for the steps of
//! properties, and how they say that not all was searched.

use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::observe::{Projection, Step};
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Names, Pool};

use crate::bindings::BoundSteps;

/// How many bytes the searches beyond the causality keep per event of the trace, apart from the steps
/// of properties.
pub(crate) const BYTES_PER_EVENT: usize = 20;

/// The steps of one property, as far as they are kept; of each, `T` is what the search wants to
/// know.
pub(crate) struct PropertySteps<T> {
    /// The property, by its place in the specification.
    pub(crate) number: usize,
    pub(crate) property: Compiled,
    pub(crate) projection: Projection,
    pub(crate) steps: Steps<T>,
    /// There were more than are kept.
    pub(crate) cut_off: bool,
}

/// The steps of a property with the atoms they match: all together, or, with parameters, apart by
/// what they bind.
pub(crate) enum Steps<T> {
    All(Vec<(T, u64)>),
    ByBinding(BoundSteps<T>),
}

impl<T: Copy> PropertySteps<T> {
    /// Watches for the property that has this place in the specification.
    pub(crate) fn new(
        number: usize,
        property: Compiled,
        spec: &Spec,
        resolved: &Resolved,
        names: &Names,
    ) -> PropertySteps<T> {
        let steps = match property.params.is_empty() {
            true => Steps::All(Vec::new()),
            false => Steps::ByBinding(BoundSteps::default()),
        };
        let projection = Projection::new(&property.alphabet, &spec.inits, resolved, names);
        PropertySteps { number, property, projection, steps, cut_off: false }
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> usize {
        match &self.steps {
            Steps::All(all) => all.len(),
            Steps::ByBinding(steps) => steps.len(),
        }
    }

    /// The step that an event is to the property, if it is one and there is room for it.
    pub(crate) fn step(&mut self, event: &Event, pool: &Pool, most: usize) -> Option<Step> {
        let step = self.projection.step(event, pool)?;
        self.cut_off |= self.len() >= most;
        (!self.cut_off).then_some(step)
    }

    /// Whether an event would be the same step whatever values it carried.
    pub(crate) fn is_blind(&self, event: &Event, pool: &Pool, step: Step) -> bool {
        let valueless = event.with_values(&[], &mut Pool::default());
        self.projection.step(&valueless, pool) == Some(step)
    }

    /// Keeps a step.
    pub(crate) fn keep(&mut self, item: T, step: Step, event: &Event, pool: &Pool) {
        match &mut self.steps {
            Steps::All(all) => all.push((item, step.events)),
            Steps::ByBinding(steps) => steps.push(item, step, event, pool, &self.property.params),
        }
    }
}

/// A statement, with why not all was searched.
pub(crate) fn as_far_as(
    mut statement: String,
    reasons: &[(bool, &str)],
    trouble: Option<&str>,
) -> String {
    let reasons: Vec<&str> = reasons.iter().filter(|r| r.0).map(|r| r.1).collect();
    if !reasons.is_empty() {
        statement += &format!("; not all was searched: {}", reasons.join(", "));
    }
    if let Some(trouble) = trouble {
        statement += &format!("; the search was given up: {trouble}");
    }
    statement
}
