//! The observed run itself, against the properties of a specification.
//!
//! This is the baseline every prediction is compared with: one pass, constant memory, and no
//! claim about any other run.

use foresee_spec::ast::Spec;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::run::{ObservedMonitor, Violation};
use foresee_spec::{Resolved, print_atom};
use foresee_trace::{
    Batch, DescribedValue, Detail, Fact, Finding, FindingKind, Flow, Names, Outcome, Subject,
    Value, Verdict,
};

use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Out, Pass, Stat};
use crate::info::OBSERVED;
use crate::sites::{look_up_in, of_violation};

/// Watches the captured order for violations.
///
/// # Guarantees
/// Every violation is in the captured run. Silence proves nothing about other runs: the outcome is
/// [`Outcome::Window`].
#[derive(Debug)]
pub struct Observed {
    monitor: ObservedMonitor,
    properties: Vec<String>,
    /// The texts of the atoms of each property, for warnings.
    atoms: Vec<Vec<String>>,
    violated: Vec<u64>,
}

/// How many bindings of one property are reported one by one.
const REPORTED_BINDINGS: u64 = 20;

impl Observed {
    /// Makes ready for a trace with these names.
    pub fn new(spec: &Spec, properties: Vec<Compiled>, resolved: &Resolved, names: &Names) -> Self {
        let atoms = properties
            .iter()
            .map(|p| p.alphabet.atoms().iter().map(print_atom).collect())
            .collect();
        Observed {
            properties: properties.iter().map(|p| p.name.clone()).collect(),
            atoms,
            violated: vec![0; properties.len()],
            monitor: ObservedMonitor::new(spec, properties, resolved, names),
        }
    }

    /// Reports what the monitor found in the latest events, which begin with this index.
    fn report(&mut self, latest: (u64, &Batch), names: &Names, out: &mut Out<'_>) -> Flow {
        for violation in self.monitor.take_violations() {
            let count = &mut self.violated[violation.property];
            *count += 1;
            if *count > REPORTED_BINDINGS {
                continue;
            }
            let mut finding = self.finding(&violation, names);
            look_up_in(&mut finding.sites, latest, names);
            if out.finding(finding) == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    fn finding(&self, violation: &Violation, names: &Names) -> Finding {
        let mut details = describe_binding(&violation.binding, names);
        details.extend(describe_state(violation, names));
        if violation.trail.len() > 1 {
            details.push(trail(&violation.trail));
        }
        let message = match violation.event {
            Some(event) => format!("violated in the observed run, at event {event}"),
            None => "violated in the initial state, before any event".to_owned(),
        };
        Finding {
            fingerprint: None,
            kind: FindingKind::Observed,
            analysis: OBSERVED,
            property: self.properties[violation.property].clone(),
            verdict: Verdict::Violated,
            message,
            event: violation.event,
            // The captured order up to the event; there is no need to write it out.
            witness: None,
            sites: of_violation(violation.event, &violation.trail, &violation.state),
            about: Vec::new(),
            details,
            shown_by: None,
            schedule: None,
            confirmation: None,
        }
    }

    fn analysed(&self, i: usize) -> Analysed {
        let steps = self.monitor.steps(i);
        let watched = Watched {
            steps,
            violations: self.violated[i],
            given_up: self.monitor.stopped(i).map(|why| why.to_string()),
            silence: self.monitor.silence(i),
        };
        let notes = self.monitor.warnings(i, |atom| self.atoms[i][atom].clone());
        Analysed {
            name: OBSERVED,
            property: Some(self.properties[i].clone()),
            outcome: match (self.monitor.stopped(i), steps) {
                (Some(_), _) => Outcome::StateLimit,
                (None, 0) => Outcome::NothingRelevant,
                _ if watched.violations == 0 && watched.silence.is_some() => {
                    Outcome::NothingRelevant
                }
                _ if !notes.is_empty() => Outcome::UnknownValues,
                _ => Outcome::Window,
            },
            statement: watched.statement(WhichRun::Observed),
            conclusion: Conclusion::Watched(watched),
            notes,
            stats: vec![("relevant_events", Stat::Count(steps))],
        }
    }
}

/// What watching one order of the events came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// How many events concerned the property.
    pub steps: u64,
    /// How many bindings violated it; 1 for a property without parameters that was violated.
    pub violations: u64,
    /// Why watching was given up, if it was.
    pub given_up: Option<String>,
    /// Why nothing was said about the objects of the property, if that is so.
    pub silence: Option<String>,
}

/// For which runs a statement about the observed one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhichRun {
    /// For the observed one.
    Observed,
    /// For every order that notes leave open.
    Any,
}

impl Watched {
    /// The statement for a report.
    pub(crate) fn statement(&self, run: WhichRun) -> String {
        let run = match run {
            WhichRun::Observed => "in the observed run",
            WhichRun::Any => "whatever the order was",
        };
        let mut statement = match (self.violations, self.steps) {
            (0, 0) => "no event of the trace concerns this property".to_owned(),
            (0, _) => match &self.silence {
                Some(why) => why.clone(),
                None => format!("no violation {run}, which says nothing of others"),
            },
            (1, _) => format!("violated {run}"),
            (n, _) => format!("violated {run} by {n} bindings"),
        };
        if self.violations > REPORTED_BINDINGS {
            statement += &format!(", of which {REPORTED_BINDINGS} are shown");
        }
        if let Some(why) = &self.given_up {
            statement += &format!("; watching was given up: {why}");
        }
        statement
    }
}

/// The variables of a violated property, each with its value and where that came from.
pub(crate) fn describe_state(violation: &Violation, names: &Names) -> Vec<Detail> {
    let one = |(name, value, since): &(String, Option<Value>, Option<u64>)| {
        let value = value.map(|value| DescribedValue { value, names }.to_string());
        Detail::new(name, Fact::State { value, since: *since })
    };
    violation.state.iter().map(one).collect()
}

/// The events that led to a violation.
pub(crate) fn trail(events: &[u64]) -> Detail {
    Detail::new("events that led there", Fact::Events(events.to_vec()))
}

/// What each parameter of a property stands for.
pub(crate) fn describe_binding(binding: &[(String, Object)], names: &Names) -> Vec<Detail> {
    binding.iter().map(|(name, object)| Detail::new(name, describe(*object, names))).collect()
}

/// What a parameter stands for.
pub(crate) fn describe(object: Object, names: &Names) -> Fact {
    match object {
        Object::Value(value) => Fact::Value(DescribedValue { value, names }.to_string()),
        Object::Var(x) => Fact::Subject(Subject::Variable(names.vars.get(x).to_owned())),
        Object::Lock(l) => Fact::Subject(Subject::Lock(names.locks.get(l).to_owned())),
        Object::Thread(t) => Fact::Subject(Subject::Thread(names.threads.get(t).to_owned())),
    }
}

impl Analysis for Observed {
    fn name(&self) -> &'static str {
        OBSERVED
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, names, out } = pass;
        let first = *first;
        for (i, event) in batch.events.iter().enumerate() {
            self.monitor.event(first + i as u64, event, &batch.pool);
        }
        Ok(self.report((first, batch), names, out))
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let End { names, out, .. } = end;
        self.monitor.finish();
        self.report((0, &Batch::default()), names, out);
        Ok((0..self.properties.len()).map(|i| self.analysed(i)).collect())
    }
}
