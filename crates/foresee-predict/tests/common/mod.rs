//! What the tests of reorderings share.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

pub(crate) mod monotone;
pub(crate) mod nested;

use foresee_causality::judge::Reads;
use foresee_predict::correct::{Correct, CorrectLimits};
use foresee_predict::lattice::{Lattice, Limits, Prediction};
use foresee_predict::reorder::{Requirements, Sliced, SlicedLimits};
use foresee_predict::{
    Analysed, Analysis, Candidates, Confirmer, Kept, Reordered, Unconfirmed, learn_initial_values,
};
use foresee_spec::ast::Spec;
use foresee_spec::monitor::StateId;
use foresee_spec::observe::{EvalWarnings, ProgramState, Projection};
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_spec::{Resolved, parse, resolve};
use foresee_testkit::oracle;
use foresee_trace::{EventSource, Finding, Pool, Trace};

pub(crate) fn requirements(trace: &Trace) -> Requirements {
    let mut requirements = Requirements::default();
    trace.events.iter().for_each(|event| requirements.push(event, &trace.pool).unwrap());
    requirements.finish();
    requirements
}

/// A specification tied to a trace.
pub(crate) struct Tied<'t> {
    pub(crate) trace: &'t Trace,
    pub(crate) spec: Spec,
    pub(crate) resolved: Resolved,
}

impl<'t> Tied<'t> {
    pub(crate) fn new(trace: &'t Trace, text: &str) -> Tied<'t> {
        let parsed = parse(text);
        let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.is_error()).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
        let mut spec = parsed.spec;
        let resolved = resolve(&spec, &trace.names).resolved;
        let properties = Compiled::all(&spec).unwrap();
        // The trace outlives every source of it that a test makes.
        let trace_copy = trace.clone();
        let open = || {
            let leaked: &'static Trace = Box::leak(Box::new(trace_copy));
            Ok(Box::new(leaked.source()) as Box<dyn EventSource>)
        };
        learn_initial_values(&mut spec, &properties, &resolved, &trace.names, open).unwrap();
        Tied { trace, spec, resolved }
    }

    pub(crate) fn compiled(&self) -> Vec<Compiled> {
        Compiled::all(&self.spec).unwrap()
    }

    /// The relevant events of the only property.
    pub(crate) fn relevant(&self) -> Vec<usize> {
        let compiled = &self.compiled()[0];
        let (inits, names) = (&self.spec.inits, &self.trace.names);
        let projection = Projection::new(&compiled.alphabet, inits, &self.resolved, names);
        let step = |&i: &usize| projection.step(&self.trace.events[i], &self.trace.pool).is_some();
        (0..self.trace.events.len()).filter(step).collect()
    }

    fn run(&self, analysis: Box<dyn Analysis>) -> (Candidates, Vec<Analysed>) {
        let mut findings: Vec<Finding> = Vec::new();
        let mut source = self.trace.source();
        let mut analyses = vec![analysis];
        let mut run =
            foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {}).unwrap();
        (run.candidates.remove(0), run.analysed)
    }

    /// What is predicted without swapping sections.
    pub(crate) fn maz(&self) -> Vec<Prediction> {
        let (names, limits) = (&self.trace.names, Limits::default());
        let lattice = Lattice::new(&self.spec, self.compiled(), &self.resolved, names, limits);
        self.run(Box::new(lattice)).0.predictions
    }

    /// What is predicted with sections swapped, for patterns.
    pub(crate) fn sliced(&self, limits: SlicedLimits) -> (Vec<Reordered>, Vec<Analysed>) {
        let sliced =
            Sliced::new(&self.spec, self.compiled(), &self.resolved, &self.trace.names, limits);
        let (candidates, analysed) = self.run(Box::new(sliced));
        (candidates.reordered, analysed)
    }

    /// What is predicted in correct reorderings, for other properties.
    pub(crate) fn correct(&self, limits: CorrectLimits) -> (Vec<Reordered>, Vec<Analysed>) {
        let correct =
            Correct::new(&self.spec, self.compiled(), &self.resolved, &self.trace.names, limits);
        let (candidates, analysed) = self.run(Box::new(correct));
        (candidates.reordered, analysed)
    }

    /// The judge's word on a reordering.
    pub(crate) fn confirm(&self, found: &Reordered) -> Result<Finding, Unconfirmed> {
        let kept = Kept::new(self.trace);
        Confirmer::new(&self.spec, &self.resolved, &kept).confirm_reordered(found)
    }

    /// The bindings for which the captured order violates the property.
    pub(crate) fn observed(&self) -> Vec<String> {
        let names = &self.trace.names;
        let mut monitor = ObservedMonitor::new(&self.spec, self.compiled(), &self.resolved, names);
        for (i, event) in self.trace.events.iter().enumerate() {
            monitor.event(i as u64, event, &self.trace.pool);
        }
        monitor.finish();
        monitor.violations().iter().map(|v| format!("{:?}", v.binding)).collect()
    }

    /// Whether any correct reordering violates the only property, which has no parameters.
    pub(crate) fn is_violable(&self, reads: Reads) -> bool {
        let mut property = self.compiled().remove(0);
        let (inits, names) = (&self.spec.inits, &self.trace.names);
        let lens = Projection::new(&property.alphabet, inits, &self.resolved, names);
        let mut troubles = EvalWarnings::default();
        let mut start = (property.monitor.start(), lens.initial().clone());
        if property.reads_initial {
            start.0 = property.monitor.step(start.0, start.1.letter()).unwrap();
        }
        let reads = match reads {
            Reads::Strict => oracle::Reads::Strict,
            Reads::Terminal => oracle::Reads::Terminal,
            Reads::Any => oracle::Reads::Any,
        };
        let all = oracle::Reorderings::new(self.trace, reads);
        let step = |(state, program): &(StateId, ProgramState), step: oracle::Step| {
            let mut event = self.trace.events[step.event];
            if step.other_writer {
                // The value it reads is unknown, so it must mean the same without it.
                let known = lens.step(&event, &self.trace.pool);
                event = event.with_values(&[], &mut Pool::default());
                if lens.step(&event, &self.trace.pool) != known {
                    return None;
                }
            }
            let (mut state, mut program): (StateId, ProgramState) = (*state, program.clone());
            if let Some(step) = lens.step(&event, &self.trace.pool) {
                let letter = lens.apply(&mut program, step, &mut troubles);
                state = property.monitor.step(state, letter).unwrap();
            }
            Some((state, program))
        };
        all.with_monitor(start, step, |(state, _)| *state == StateId::BAD).is_some()
    }
}
