//! The observed run: monitors all properties of a specification in one pass, in constant memory.

use foresee_trace::{Event, Names, Pool, Value};

use crate::ast::{Init, Spec};
use crate::monitor::StateId;
use crate::observe::{EvalWarnings, InitialValues, KnownFields, ProgramState, Projection};
use crate::params::{Binding, Object, Slicer, SlicerError};
use crate::property::Compiled;
use crate::resolve::Resolved;

/// The last steps that changed a monitor's state, by event index: a short history of the verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// Latest last; only `len` entries are valid.
    steps: [u64; Trail::LENGTH],
    len: u8,
}

impl Trail {
    /// The number of steps that are kept.
    pub const LENGTH: usize = 8;

    pub(crate) fn push(&mut self, event: u64) {
        if usize::from(self.len) == Self::LENGTH {
            self.steps.rotate_left(1);
            self.len -= 1;
        }
        self.steps[usize::from(self.len)] = event;
        self.len += 1;
    }

    /// The steps, latest last.
    pub fn steps(&self) -> &[u64] {
        &self.steps[..usize::from(self.len)]
    }
}

/// The first violation of a property, or of one binding of it, in the observed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The property, by its index in the specification.
    pub property: usize,
    /// The event that violates it; `None` if the initial state does.
    pub event: Option<u64>,
    /// The object of each parameter.
    pub binding: Vec<(String, Object)>,
    /// The property's variables at that point: name, value, and the event that set it.
    pub state: Vec<(String, Option<Value>, Option<u64>)>,
    /// The last steps that changed the monitor's state, including the violating one.
    pub trail: Vec<u64>,
}

/// Monitors several properties on one run.
#[derive(Debug)]
pub struct ObservedMonitor {
    watches: Vec<MonitoredProperty>,
    violations: Vec<Violation>,
}

impl ObservedMonitor {
    /// Prepares for a trace with these names. The properties are those of the specification, in its
    /// order.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
    ) -> ObservedMonitor {
        let watch = |(i, p)| MonitoredProperty::new(i, p, &spec.inits, resolved, names);
        let watches = properties.into_iter().enumerate().map(watch).collect();
        ObservedMonitor { watches, violations: Vec::new() }
    }

    /// Monitors one property for one binding of its parameters from the first event on, even before
    /// events have bound them: in another order of the trace they may be bound only after the
    /// violation. `None` if the binding does not bind all its parameters.
    pub fn of_binding(
        spec: &Spec,
        property: Compiled,
        binding: &[(String, Object)],
        resolved: &Resolved,
        names: &Names,
    ) -> Option<ObservedMonitor> {
        let binding = property.params.binding_of(binding)?;
        let mut monitor = ObservedMonitor::new(spec, vec![property], resolved, names);
        let watch = &mut monitor.watches[0];
        watch.only = Some(binding).filter(|_| !watch.property.params.is_empty());
        Some(monitor)
    }

    /// Takes the next event of the run.
    #[inline]
    pub fn event(&mut self, index: u64, event: &Event, pool: &Pool) {
        for watch in &mut self.watches {
            watch.event(index, event, pool, &mut self.violations);
        }
    }

    /// Ends the run: a property without relevant events still has its initial state.
    pub fn finish(&mut self) {
        for watch in &mut self.watches {
            watch.begin(&mut self.violations);
        }
    }

    /// The violations so far, in the order in which they happened.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Takes the violations since the last call.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// Why a property is no longer monitored, if it exceeded a limit.
    pub fn stopped(&self, property: usize) -> Option<SlicerError> {
        self.watches[property].stopped
    }

    /// Whether the property allows the run if it is complete now, which is different from a
    /// violation (see [`crate::monitor::Monitor::holds_at_end`]). `None` for parametric properties.
    pub fn holds_at_end(&self, property: usize) -> Option<bool> {
        let watch = &self.watches[property];
        let Progress::One(state, _) = &watch.progress else { return None };
        Some(watch.property.monitor.holds_at_end(*state))
    }

    /// Why nothing was said about the objects of a property, if that is so.
    pub fn silence(&self, property: usize) -> Option<String> {
        let watch = &self.watches[property];
        let mut known = watch.known.clone();
        known.learn(&watch.program);
        known.silence(&watch.projection)
    }

    /// The number of relevant events of a property.
    pub fn steps(&self, property: usize) -> u64 {
        self.watches[property].steps
    }

    /// The warnings about values for a property. `atom` returns the text of an atom.
    pub fn warnings(&self, property: usize, atom: impl FnMut(usize) -> String) -> Vec<String> {
        let watch = &self.watches[property];
        watch.projection.warnings(&watch.warnings, atom)
    }

    /// Returns the properties, with what their monitors have cached.
    pub fn into_properties(self) -> Vec<Compiled> {
        self.watches.into_iter().map(|w| w.property).collect()
    }
}

#[derive(Debug)]
struct MonitoredProperty {
    number: usize,
    property: Compiled,
    projection: Projection,
    /// Until the first step, what is known about the initial state.
    initial: Option<InitialValues>,
    program: ProgramState,
    changed: Vec<Option<u64>>,
    progress: Progress,
    /// The only binding that is monitored.
    only: Option<Binding>,
    found: Vec<(Binding, u64)>,
    warnings: EvalWarnings,
    stopped: Option<SlicerError>,
    steps: u64,
    known: KnownFields,
}

/// The state of the monitor.
#[derive(Debug)]
enum Progress {
    One(StateId, Trail),
    Bindings(Slicer),
}

impl MonitoredProperty {
    fn new(
        number: usize,
        property: Compiled,
        inits: &[Init],
        resolved: &Resolved,
        names: &Names,
    ) -> MonitoredProperty {
        let projection = Projection::new(&property.alphabet, inits, resolved, names);
        let variables = projection.variables().len();
        MonitoredProperty {
            number,
            initial: Some(InitialValues::new(&projection)),
            program: projection.initial().clone(),
            changed: vec![None; variables],
            progress: Progress::One(property.monitor.start(), Trail::default()),
            only: None,
            found: Vec::new(),
            warnings: EvalWarnings::default(),
            stopped: None,
            steps: 0,
            known: KnownFields::new(&projection),
            property,
            projection,
        }
    }

    #[inline]
    fn event(&mut self, index: u64, event: &Event, pool: &Pool, out: &mut Vec<Violation>) {
        if let Some(initial) = &mut self.initial {
            initial.learn(&self.projection, event, pool);
        } else if event.op().reads() {
            self.projection.reveal(&mut self.program, event, pool, &mut self.warnings);
        }
        let Some(mut step) = self.projection.step(event, pool) else { return };
        self.begin(out);
        if let Some(only) = &self.only {
            // Atoms that bind parameters match only if they bind them as this binding does.
            let params = &self.property.params;
            params.bindings(step.events, event, pool, &mut self.found);
            let its = self.found.iter().filter(|(bound, _)| only.extends(bound));
            let bits = its.fold(0, |bits, (_, atoms)| bits | atoms);
            step.events = step.events & !params.binding_bits() | bits;
            if step.events == 0 && step.write.is_none() {
                return;
            }
        }
        if self.stopped.is_some() {
            return;
        }
        self.steps += 1;
        self.known.step(step);
        let letter = self.projection.apply(&mut self.program, step, &mut self.warnings);
        if let Some((slot, _)) = step.write {
            self.changed[usize::from(slot)] = Some(index);
        }
        match &mut self.progress {
            Progress::One(state, trail) => {
                let before = *state;
                match self.property.monitor.step(before, letter) {
                    Ok(next) if next != before => {
                        *state = next;
                        trail.push(index);
                        if next == StateId::BAD {
                            let trail = *trail;
                            let only = self.only;
                            out.push(self.violation(Some(index), only.as_ref(), &trail));
                        }
                    }
                    Ok(_) => {}
                    Err(error) => self.stopped = Some(error.into()),
                }
            }
            Progress::Bindings(slicer) => {
                let Compiled { params, monitor, .. } = &mut self.property;
                params.bindings(step.events, event, pool, &mut self.found);
                let always = step.write.is_some() || step.events & !params.binding_bits() != 0;
                let mut bad = Vec::new();
                let result = slicer.step(monitor, index, letter, &self.found, always, |b, t| {
                    bad.push((*b, *t));
                });
                self.stopped = result.err();
                for (binding, trail) in bad {
                    // The event may only complete a binding that an earlier event, or the initial
                    // state, violated.
                    let violating = trail.steps().last().copied();
                    out.push(self.violation(violating, Some(&binding), &trail));
                }
            }
        }
    }

    /// Takes the initial state, once.
    fn begin(&mut self, out: &mut Vec<Violation>) {
        let Some(initial) = self.initial.take() else { return };
        self.program = initial.state(&self.projection, &mut self.warnings);
        let mut state = self.property.monitor.start();
        if self.property.reads_initial {
            match self.property.monitor.step(state, self.program.letter()) {
                Ok(next) => state = next,
                Err(error) => self.stopped = Some(error.into()),
            }
        }
        if self.property.params.is_empty() || self.only.is_some() {
            if state == StateId::BAD {
                let only = self.only;
                out.push(self.violation(None, only.as_ref(), &Trail::default()));
            }
            self.progress = Progress::One(state, Trail::default());
        } else {
            let slicer = Slicer::new(&self.property.params, state, Slicer::DEFAULT_LIMIT);
            self.progress = Progress::Bindings(slicer);
        }
    }

    #[cold]
    fn violation(&self, event: Option<u64>, binding: Option<&Binding>, trail: &Trail) -> Violation {
        let values = self.program.values().iter().zip(&self.changed);
        Violation {
            property: self.number,
            event,
            binding: binding.map_or_else(Vec::new, |b| self.property.params.named(b)),
            state: self
                .projection
                .variables()
                .zip(values)
                .map(|(name, (value, changed))| (name.to_string(), *value, *changed))
                .collect(),
            trail: trail.steps().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests;
