//! What the searches beyond the causality have in common: how they watch a trace for the steps of
//! properties, how they go through the bindings of a property's parameters, and how they say that not
//! all was searched.

use std::collections::HashSet;

use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::monitor::TooManyStates;
use foresee_spec::observe::{KnownFields, Projection, Step};
use foresee_spec::params::{Object, ParamPlan};
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Names, Pool};

use crate::bindings::BoundSteps;
use crate::candidates::{MAX_CANDIDATES, binding_key};
use crate::settled::{BindingVerdict, Settling, Sharing, fingerprint};

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
    known: KnownFields,
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
        let known = KnownFields::new(&projection);
        PropertySteps { number, property, projection, steps, cut_off: false, known }
    }

    /// Why nothing is said about the objects of the property, if that is so.
    pub(crate) fn silence(&self) -> Option<String> {
        self.known.silence(&self.projection)
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> usize {
        match &self.steps {
            Steps::All(all) => all.len(),
            Steps::ByBinding(steps) => steps.len(),
        }
    }

    /// How many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        match &self.steps {
            Steps::All(all) => all.capacity() * size_of::<(T, u64)>(),
            Steps::ByBinding(steps) => steps.bytes(),
        }
    }

    /// The step that an event is to the property, if it is one and there is room for it.
    pub(crate) fn step(&mut self, event: &Event, pool: &Pool, most: usize) -> Option<Step> {
        let step = self.projection.step(event, pool)?;
        self.known.step(step);
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

/// A violating order: how many events come first, as observed, and the order of those after them.
pub(crate) type ViolatingOrder = (u64, Vec<u64>);

/// A search for a violation among the steps of one binding.
pub(crate) trait BindingSearch<T> {
    /// Whether a limit has been reached.
    fn is_over(&mut self) -> bool;

    /// Searches for one of `bindings` bindings.
    fn search(
        &mut self,
        steps: &[(T, u64)],
        bindings: usize,
    ) -> Result<Option<ViolatingOrder>, TooManyStates>;

    /// The verdict of the latest search, which found this; `None` if a limit was reached.
    fn verdict(&mut self, found: &Option<ViolatingOrder>) -> Option<BindingVerdict>;

    /// Counts a verdict as its own, unless it took more than there is left. Returns what was found.
    fn recall(&mut self, verdict: &BindingVerdict) -> Option<Option<ViolatingOrder>>;

    /// How much of its limit the monitor has used.
    fn load(&self) -> f64;
}

/// Searches for one of `bindings` bindings, unless the verdict is known; remembers it for others if they are to know it.
fn settle<T>(
    by: &mut dyn BindingSearch<T>,
    settling: &mut Settling<'_>,
    at: usize,
    steps: impl FnOnce() -> Vec<(T, u64)>,
    bindings: usize,
) -> Result<Option<ViolatingOrder>, TooManyStates> {
    if let Some(found) = settling.known(at).and_then(|verdict| by.recall(verdict)) {
        return Ok(found);
    }
    let found = by.search(&steps(), bindings)?;
    if let Some(verdict) = by.verdict(&found) {
        settling.keep(at, || verdict);
    }
    Ok(found)
}

/// A violating order for one binding.
pub(crate) struct BoundOrder {
    pub(crate) binding: Vec<(String, Object)>,
    /// How many events come first, as observed.
    pub(crate) observed: u64,
    pub(crate) order: Vec<u64>,
}

/// The result of searching for every binding.
#[derive(Default)]
pub(crate) struct BindingsSearched {
    pub(crate) found: Vec<BoundOrder>,
    /// How many bindings there are, if the property has parameters.
    pub(crate) bindings: Option<u64>,
    /// Whether some bindings were left out.
    pub(crate) skipped: bool,
    /// Whether that was because there were violations enough.
    pub(crate) is_enough: bool,
}

impl BindingsSearched {
    fn add(&mut self, binding: Vec<(String, Object)>, found: Option<ViolatingOrder>) {
        let found = found.map(|(observed, order)| BoundOrder { binding, observed, order });
        self.found.extend(found);
    }
}

impl<T: Copy> Steps<T> {
    /// Searches for each binding that is not among the `known` ones, which already have a violation. The
    /// bindings may take this many bytes. `shared` says which search for which property this is, by name and number, and what
    /// others know of it or are to know.
    pub(crate) fn search(
        &self,
        params: &ParamPlan,
        known: &HashSet<String>,
        memory: usize,
        by: &mut dyn BindingSearch<T>,
        (sharing, analysis, property, number): (&Sharing, &str, &str, usize),
    ) -> Result<BindingsSearched, TooManyStates> {
        let mut result = BindingsSearched::default();
        let is_known = |binding: &[(String, Object)]| {
            !known.is_empty() && known.contains(&binding_key(binding))
        };
        let bound = match self {
            Steps::All(_) if is_known(&[]) => return Ok(result),
            Steps::All(steps) => {
                let mut settling = sharing.begin(analysis, property, fingerprint(&[], steps.len()));
                if settling.has(number) {
                    let found = settle(by, &mut settling, 0, || steps.clone(), 1)?;
                    result.add(Vec::new(), found);
                    settling.finish(by.load());
                }
                return Ok(result);
            }
            Steps::ByBinding(bound) => bound,
        };
        let bindings = bound.total(params, memory)?;
        result.bindings = Some(bindings.len() as u64);
        let of = fingerprint(&bindings, bound.len());
        let mut settling = sharing.begin(analysis, property, of);
        let mut ended = Ok(());
        for (at, binding) in bindings.iter().enumerate() {
            // Those of different objects are dealt out to different parts.
            if !settling.has(number + at) {
                continue;
            }
            result.is_enough = result.found.len() + known.len() >= MAX_CANDIDATES;
            if result.is_enough || by.is_over() {
                result.skipped = true;
                break;
            }
            let named = params.named(binding);
            if is_known(&named) {
                continue;
            }
            let steps = || {
                let mut steps = Vec::new();
                bound.steps_of(binding, &mut steps);
                steps
            };
            match settle(by, &mut settling, at, steps, bindings.len()) {
                Ok(found) => result.add(named, found),
                Err(error) => {
                    ended = Err(error);
                    break;
                }
            }
        }
        settling.finish(by.load());
        ended.map(|()| result)
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
