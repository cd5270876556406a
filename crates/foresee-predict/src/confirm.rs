//! Confirms predictions: writes out each witness and judges it with code that shares nothing with
//! the search.
//!
//! The order is replayed against the trace ([`foresee_causality::judge`]), and the plain monitor of
//! one run must reject it for the same binding. A read that sees another write than in the trace
//! has no known value, so the monitor does not get one.

use foresee_causality::TooLong;
use foresee_causality::judge::{ChangedRead, Judge, Reads, Rejected, check_notes};
use foresee_spec::ast::Spec;
use foresee_spec::params::Object;
use foresee_spec::property::Compiled;
use foresee_spec::run::{ObservedMonitor, Violation};
use foresee_spec::{Diagnostic, Resolved};
use foresee_trace::{
    Detail, Fact, FileOrder, Finding, FindingKind, Pool, Site, Space, Trace, Verdict, Witness,
};

use crate::analysis::AnalysisError;
use crate::calm::calm;
use crate::explain::differences;
use crate::info::{LATTICE, PATTERN};
use crate::kept::Kept;
use crate::lattice::Prediction;
use crate::observed::{describe_binding, describe_state};
use crate::pattern::{Match, linearise};
use crate::sites::of_violation;

/// An invalid witness. This is an internal error of foresee, not of the program.
#[derive(Debug, thiserror::Error)]
pub enum Unconfirmed {
    /// The threads of the trace cannot run in this order.
    #[error("the witness is not a run of the trace: {0}")]
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

/// A violation in a correct reordering, as a search found it.
#[derive(Clone, Debug)]
pub struct Reordered {
    /// The analysis that found it.
    pub analysis: &'static str,
    /// Where it searched.
    pub reorder: Space,
    /// What reads may see there.
    pub reads: Reads,
    /// The property, by its place in the specification.
    pub property: usize,
    /// What each parameter stands for.
    pub binding: Vec<(String, Object)>,
    /// The number of events of the trace that happen as observed ...
    pub observed: u64,
    /// ... and then these.
    pub order: Vec<u64>,
}

/// An order in which the verdict is another than in the observed one, as a search found it.
#[derive(Clone, Debug)]
pub struct OtherRun {
    /// The analysis that found it.
    pub analysis: &'static str,
    /// What the order of the trace stands for.
    pub order: FileOrder,
    /// The property, by its place in the specification.
    pub property: usize,
    /// What each parameter stands for.
    pub binding: Vec<(String, Object)>,
    /// Whether it violates the property, which the observed order then keeps; else the other way
    /// round.
    pub violates: bool,
    /// The events: all of them, or as many as it takes to violate.
    pub run: Vec<u64>,
}

/// Confirms what searches found in one trace against one specification.
#[derive(Debug)]
pub struct Confirmer<'a, 't> {
    spec: &'a Spec,
    resolved: &'a Resolved,
    trace: &'a Trace,
    judge: &'a Judge<'t>,
}

impl<'a, 't> Confirmer<'a, 't> {
    /// A confirmer for a specification and a trace.
    pub fn new(spec: &'a Spec, resolved: &'a Resolved, kept: &'a Kept<'t>) -> Self {
        Confirmer { spec, resolved, trace: kept.trace, judge: kept.judge() }
    }

    /// Turns a prediction into a finding, if the judge accepts its witnesses.
    pub fn confirm(&self, prediction: &Prediction) -> Result<Finding, Unconfirmed> {
        let judge = |order: &[u64]| -> Result<Violation, Unconfirmed> {
            self.judge.check_causality(order)?;
            let (at, violation) =
                self.first_violation(prediction.property, &prediction.binding, order, &[])?;
            if at + 1 == order.len() { Ok(violation) } else { Err(Unconfirmed::Verdict) }
        };
        let runs = prediction.runs(self.spec, self.resolved, self.trace)?;
        let mut order = runs.shortest.order(self.trace)?;
        let mut violation = judge(&order)?;
        let mut details = describe_binding(&prediction.binding, &self.trace.names);
        if let Some((schedule, swaps)) = &runs.closest {
            // The run that differs least is the easiest to compare with what was seen.
            order = schedule.order(self.trace)?;
            violation = judge(&order)?;
            let swaps = Fact::Count(*swaps);
            details.push(Detail::new("swapped pairs of relevant events", swaps));
        }
        if let Some((calmer, same)) = self.calmer(&order, |order| judge(order).ok()) {
            (order, violation) = (calmer, same);
        }
        details.extend(describe_state(&violation, &self.trace.names));
        let last = order[order.len() - 1];
        let message = self.another_order(last);
        let violated_at = order.len() - 1;
        let witness = Witness::listed(Space::Maz, order, violated_at);
        Ok(self.finding(LATTICE, prediction.property, message, witness, details, &violation))
    }

    /// Turns the match of a pattern into a finding, if the judge accepts a run that has it.
    pub fn confirm_match(&self, found: &Match) -> Result<Finding, Unconfirmed> {
        let mut order = linearise(self.trace, &found.tuple)?;
        let is_as_good = |order: &[u64]| {
            self.judge.check_causality(order).ok()?;
            self.first_violation(found.property, &found.binding, order, &[]).ok()
        };
        if let Some((calmer, _)) = self.calmer(&order, is_as_good) {
            order = calmer;
        }
        self.judge.check_causality(&order)?;
        // The run may have the pattern earlier than by the events of the match.
        let (last, mut violation) =
            self.first_violation(found.property, &found.binding, &order, &[])?;
        if last + 1 == order.len() {
            violation.trail.clone_from(&found.tuple);
        }
        let events = &violation.trail;
        order.truncate(last + 1);
        let mut details = describe_binding(&found.binding, &self.trace.names);
        details.push(Detail::new("events of the pattern", Fact::Events(events.clone())));
        details.push(Detail::new("certain since event", Fact::Events(vec![found.certain_at])));
        let thread = |i: u64| self.trace.events[i as usize].thread();
        let switches = order.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count();
        details.push(Detail::new("context switches", Fact::Count(switches as u64)));
        let message = self.another_order(order[last]);
        let witness = Witness::listed(Space::Maz, order, last);
        Ok(self.finding(PATTERN, found.property, message, witness, details, &violation))
    }

    /// The same run with fewer context switches, if there is one that is as good.
    fn calmer<T>(
        &self,
        order: &[u64],
        judge: impl Fn(&[u64]) -> Option<T>,
    ) -> Option<(Vec<u64>, T)> {
        let calmer = calm(self.trace, order, |_| false);
        if calmer == order {
            return None;
        }
        let judged = judge(&calmer)?;
        Some((calmer, judged))
    }

    /// What is said of a violation in a run with the same causality.
    fn another_order(&self, last: u64) -> String {
        format!(
            "violated by event {last} in another order of the same events; the observed run \
             passed, but nothing forces its order"
        )
    }

    /// Turns a violation in a correct reordering into a finding, if the judge accepts its order. It
    /// ends where the monitor first rejects it.
    pub fn confirm_reordered(&self, found: &Reordered) -> Result<Finding, Unconfirmed> {
        let mut order: Vec<u64> = (0..found.observed).chain(found.order.iter().copied()).collect();
        let mut changed = self.judge.check(&order, found.reads)?;
        let (at, mut violation) =
            self.first_violation(found.property, &found.binding, &order, &changed)?;
        order.truncate(at + 1);
        let same = |order: &[u64]| {
            let changed = self.judge.check(order, found.reads).ok()?;
            let (at, violation) =
                self.first_violation(found.property, &found.binding, order, &changed).ok()?;
            (at + 1 == order.len()).then_some((changed, violation))
        };
        if let Some((calmer, (reads, same))) = self.calmer(&order, same) {
            (order, changed, violation) = (calmer, reads, same);
        }
        changed.retain(|read| order.contains(&read.read));
        let mut details = describe_binding(&found.binding, &self.trace.names);
        details.extend(describe_state(&violation, &self.trace.names));
        let is_maz = self.judge.check_causality(&order).is_ok();
        let reorder = if is_maz { Space::Maz } else { found.reorder };
        let last = order[at];
        let message = match is_maz {
            true => self.another_order(last),
            false => format!(
                "violated by event {last} in a correct reordering: every thread does what it did, \
                 but locks are taken in another order or events are still to come"
            ),
        };
        details.extend(differences(self.trace, 0, &order, &changed));
        let changed_reads = changed.iter().map(|read| read.read).collect();
        let witness = Witness { changed_reads, ..Witness::listed(reorder, order, at) };
        Ok(self.finding(found.analysis, found.property, message, witness, details, &violation))
    }

    /// Turns an order with another verdict into a finding, if the plain monitor says so of both
    /// orders and the judge of this one: its own part of the trace for a violation, all of it where
    /// the property is kept.
    pub fn confirm_other(&self, found: &OtherRun) -> Result<Finding, Unconfirmed> {
        let observed: Vec<u64> = (0..self.trace.events.len() as u64).collect();
        let (property, binding) = (found.property, &found.binding);
        let seen = self.first_violation(property, binding, &observed, &[]);
        let mut order = found.run.clone();
        let mut details = describe_binding(binding, &self.trace.names);
        let (event, violated_at, changed, violation) = match (seen, found.violates) {
            (Err(Unconfirmed::Verdict), true) => {
                // What comes behind the violation need not be possible.
                let (at, _) = self.first_violation(property, binding, &order, &[])?;
                order.truncate(at + 1);
                let changed = self.possible(&order, found.order, Reads::Terminal)?;
                let (at, violation) =
                    self.first_violation(property, binding, &order, &changed.1)?;
                details.extend(describe_state(&violation, &self.trace.names));
                (None, at, changed, violation)
            }
            (Ok((_, violation)), false) if order.len() == observed.len() => {
                let changed = self.possible(&order, found.order, Reads::Strict)?;
                match self.first_violation(property, binding, &order, &changed.1) {
                    Err(Unconfirmed::Verdict) => {}
                    Ok(_) => return Err(Unconfirmed::Verdict),
                    Err(error) => return Err(error),
                }
                (violation.event, order.len(), changed, violation)
            }
            (Err(error), false) => return Err(error),
            _ => return Err(Unconfirmed::Verdict),
        };
        let (reorder, changed) = changed;
        let message = match event {
            Some(event) => format!(
                "violated in the observed order by event {event}, but kept in another order that \
                 nothing in the execution excludes"
            ),
            None => format!(
                "kept in the observed order, but violated by event {} in another that nothing in \
                 the execution excludes",
                order[violated_at]
            ),
        };
        if reorder == Space::Correct {
            details.extend(differences(self.trace, 0, &order, &changed));
        }
        let changed_reads = changed.iter().map(|read| read.read).collect();
        let listed = Witness::listed(reorder, order, violated_at);
        let witness = Witness { changed_reads, ..listed };
        let finding = self.finding(found.analysis, property, message, witness, details, &violation);
        Ok(Finding { kind: FindingKind::ScheduleDependent, event, ..finding })
    }

    /// The smallest space that has an order, and the reads that see something else in it.
    fn possible(
        &self,
        order: &[u64],
        file: FileOrder,
        reads: Reads,
    ) -> Result<(Space, Vec<ChangedRead>), Unconfirmed> {
        if file == FileOrder::Notes {
            check_notes(self.trace, order)?;
            return Ok((Space::Notes, Vec::new()));
        }
        match self.judge.check_causality(order) {
            Ok(()) => Ok((Space::Maz, Vec::new())),
            // Reads that were left out of the trace may see something else.
            Err(rejected) if file == FileOrder::Filtered => Err(rejected.into()),
            Err(_) => Ok((Space::Correct, self.judge.check(order, reads)?)),
        }
    }

    /// Where a plain monitor first rejects the order for this binding, and how.
    fn first_violation(
        &self,
        property: usize,
        binding: &[(String, Object)],
        order: &[u64],
        changed: &[ChangedRead],
    ) -> Result<(usize, Violation), Unconfirmed> {
        let property = &self.spec.properties[property];
        let compiled = Compiled::new(property).map_err(Unconfirmed::Property)?;
        let single = Spec { properties: vec![property.clone()], ..self.spec.clone() };
        let names = &self.trace.names;
        let monitor = ObservedMonitor::of_binding(&single, compiled, binding, self.resolved, names);
        let mut monitor = monitor.ok_or(Unconfirmed::Verdict)?;
        for (at, &index) in order.iter().enumerate() {
            let mut event = self.trace.events[index as usize];
            if changed.iter().any(|read| read.read == index) {
                event = event.with_values(&[], &mut Pool::default());
            }
            monitor.event(index, &event, &self.trace.pool);
            let mut violations = monitor.take_violations().into_iter();
            if let Some(violation) = violations.find(|v| v.event == Some(index)) {
                return Ok((at, violation));
            }
        }
        Err(Unconfirmed::Verdict)
    }

    /// The events of a violation. What a read sees that sees another write is not known.
    fn sites(&self, violation: &Violation, witness: &Witness) -> Vec<Site> {
        let mut sites = of_violation(violation.event, &violation.trail, &violation.state);
        for site in &mut sites {
            let Some(index) = site.event else { continue };
            let event = &self.trace.events[index as usize];
            let (names, pool) = (&self.trace.names, &self.trace.pool);
            site.look_up(event, names, pool);
            if witness.changed_reads.contains(&index) {
                site.without_values(event, names, pool);
            }
        }
        sites
    }

    fn finding(
        &self,
        analysis: &'static str,
        property: usize,
        message: String,
        witness: Witness,
        details: Vec<Detail>,
        violation: &Violation,
    ) -> Finding {
        Finding {
            fingerprint: None,
            kind: FindingKind::Predicted,
            analysis,
            property: self.spec.properties[property].name.name.clone(),
            verdict: Verdict::Violated,
            message,
            event: None,
            sites: self.sites(violation, &witness),
            witness: Some(witness),
            about: Vec::new(),
            details,
            shown_by: None,
            schedule: None,
            confirmation: None,
        }
    }
}

/// Turns one prediction into a finding; see [`Confirmer::confirm`].
pub fn confirm(
    prediction: &Prediction,
    spec: &Spec,
    resolved: &Resolved,
    trace: &Trace,
) -> Result<Finding, Unconfirmed> {
    Confirmer::new(spec, resolved, &Kept::new(trace)).confirm(prediction)
}

/// Turns one match of a pattern into a finding; see [`Confirmer::confirm_match`].
pub fn confirm_match(
    found: &Match,
    spec: &Spec,
    resolved: &Resolved,
    trace: &Trace,
) -> Result<Finding, Unconfirmed> {
    Confirmer::new(spec, resolved, &Kept::new(trace)).confirm_match(found)
}
