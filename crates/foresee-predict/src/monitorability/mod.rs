//! Is a verdict that of the execution, or of the one order in which it was observed?
//!
//! A monitor reads one order of events. The execution itself orders fewer of them: what a thread
//! did, what a read owes to the write that it saw, an acquire to earlier releases, and threads to
//! forks and joins. (Other orders of accesses, which prediction keeps, are accidents of the
//! schedule; and where the trace is one of notes, even less is known, see [`NoteClocks`].) A
//! property is *monitorable* with a trace if every order that keeps this one has the same verdict.
//!
//! 1. The cheap test streams: it finds the unordered pairs of steps whose order matters to the
//!    property ([`foresee_spec::dependence`]), at a cost of kinds × threads for each step. If there
//!    is none, the property is monitorable.
//! 2. Where there are some, the exact one asks whether there is an order with another verdict. That
//!    the threads can run in it is confirmed by the judge, and the verdicts by a plain monitor.
//!
//! After Soueidi and Falcone, *Sound Concurrent Traces for Online Monitoring*, SPIN 2023, with
//! corrections (`docs/analyses/monitorability.md`).
//!
//! | file | what it does |
//! |---|---|
//! | `labels` | the kinds of steps, and which of them mind their order |
//! | `pairs` | the cheap test |
//! | `exact` | the search for an order with another verdict |
//! | `order` | the order of the execution |
//!
//! [`NoteClocks`]: foresee_causality::NoteClocks

mod exact;
mod labels;
mod order;
mod pairs;

use std::time::Duration;

use foresee_causality::Order;
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::monitor::TooManyStates;
use foresee_spec::observe::{Projection, Step};
use foresee_spec::params::{Binding, Object};
use foresee_spec::property::Compiled;
use foresee_trace::{Event, FileOrder, Finding, Flow, LocId, Name, Names, Outcome, Pool, Trace};

use self::exact::{Budget, Ended, Relevant, Search};
use self::labels::Labels;
use self::order::{Now, Running, Whole};
use self::pairs::{Pair, Pairs, Place};
use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Pass, Stat};
use crate::bindings::BoundSteps;
use crate::confirm::{Confirmer, OtherRun};
use crate::info::MONITORABILITY;
use crate::kept::Kept;

/// How much to ask.
#[derive(Clone, Copy, Debug)]
pub struct MonitorabilityOptions {
    /// What the order of the trace stands for.
    pub order: FileOrder,
    /// Whether the user requested it. Then the exact test follows where the cheap one fails, for which the
    /// trace is kept in memory, and what depends on the schedule is a finding. Else there are only
    /// warnings; but traces of notes always get the exact test, because their verdicts are worth
    /// nothing without.
    pub is_asked: bool,
    /// How many events are kept for the exact test.
    pub events: usize,
    /// How many nodes the exact test visits.
    pub nodes: u64,
    /// How long it searches.
    pub time: Option<Duration>,
}

impl Default for MonitorabilityOptions {
    fn default() -> Self {
        MonitorabilityOptions {
            order: FileOrder::Observed,
            is_asked: true,
            events: 4_000_000,
            nodes: 1_000_000,
            time: None,
        }
    }
}

/// Whether the verdict on a property depends on the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleVerdict {
    /// Every order that the execution left open has the verdict of the observed one.
    Monitorable,
    /// Another order has another verdict.
    ScheduleDependent,
    /// That was not found out.
    Unknown,
}

impl ScheduleVerdict {
    fn word(self) -> &'static str {
        match self {
            ScheduleVerdict::Monitorable => "monitorable",
            ScheduleVerdict::ScheduleDependent => "schedule-dependent",
            ScheduleVerdict::Unknown => "unknown",
        }
    }
}

/// Decides whether verdicts depend on the schedule.
///
/// # Guarantees
/// `monitorable`: every order of the trace's events that keeps what the execution's events owe to
/// each other has the verdict of the observed one. `schedule-dependent`: some order has another
/// verdict, and the threads can run in it (of notes: the notes leave it open). Everything else is
/// `unknown`. Without the exact test, memory depends on threads, variables and kinds of steps; of
/// properties with parameters the steps are kept.
pub struct Monitorability {
    options: MonitorabilityOptions,
    is_exact: bool,
    spec: Spec,
    resolved: Resolved,
    running: Running,
    watches: Vec<MonitoredProperty>,
    /// There are more events than the exact test takes.
    is_cut_off: bool,
    /// Which watches the current event is a step of.
    steps: Vec<Option<Step>>,
}

struct MonitoredProperty {
    property: Compiled,
    projection: Projection,
    labels: Labels,
    pairs: Pairs,
    /// The steps of a property with parameters.
    bound: Option<BoundSteps<BoundStep>>,
    steps: u64,
    is_cut_off: bool,
    /// Enough is known to warn.
    is_done: bool,
}

/// A step of a property with parameters.
#[derive(Clone, Copy)]
struct BoundStep {
    place: Place,
    step: Step,
    time: u32,
    now: Now,
}

/// How many steps of a property with parameters are kept.
const BOUND_STEPS: usize = 1_000_000;

/// How many comparisons of steps with threads the cheap tests of all properties make together, which
/// takes a few seconds.
const MOST_COMPARED: u64 = 1 << 29;

/// How many pairs of places are described one by one.
const TOLD_PAIRS: usize = 20;

impl Monitorability {
    /// Whether the whole trace is needed at the end.
    fn needs_trace(&self) -> bool {
        self.is_exact && !self.is_cut_off
    }

    /// Makes ready for a trace with these names, with all initial values in the specification.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        options: MonitorabilityOptions,
    ) -> Monitorability {
        let watch = |mut property: Compiled| {
            let projection = Projection::new(&property.alphabet, &spec.inits, resolved, names);
            MonitoredProperty {
                labels: Labels::new(&mut property, &projection),
                projection,
                pairs: Pairs::default(),
                bound: (!property.params.is_empty()).then(BoundSteps::default),
                property,
                steps: 0,
                is_cut_off: false,
                is_done: false,
            }
        };
        Monitorability {
            options,
            is_exact: options.is_asked || options.order == FileOrder::Notes,
            spec: spec.clone(),
            resolved: resolved.clone(),
            running: Running::new(options.order),
            watches: properties.into_iter().map(watch).collect(),
            is_cut_off: false,
            steps: Vec::new(),
        }
    }

    #[inline]
    fn event(&mut self, index: u64, event: &Event, pool: &Pool) -> Result<(), AnalysisError> {
        self.steps.clear();
        let mut is_step = false;
        for watch in &self.watches {
            let step = if watch.is_done { None } else { watch.projection.step(event, pool) };
            is_step |= step.is_some();
            self.steps.push(step);
        }
        let now = self.running.event(event, pool, is_step)?;
        if !is_step {
            return Ok(());
        }
        let (running, thread) = (&self.running, event.thread());
        let time = running.known(&now, thread);
        let place = Place { index, thread, loc: event.loc() };
        let most_compared = MOST_COMPARED / self.watches.len().max(1) as u64;
        for (watch, step) in self.watches.iter_mut().zip(&self.steps) {
            let Some(step) = *step else { continue };
            watch.steps += 1;
            let known = |t| running.known(&now, t);
            match &mut watch.bound {
                None if watch.pairs.compared > most_compared => {
                    (watch.is_cut_off, watch.is_done) = (true, true);
                }
                None => {
                    let label = watch.labels.number(step, step.events, &watch.projection);
                    watch.pairs.step(place, label, time, &watch.labels, known);
                    watch.is_done = !self.is_exact && watch.pairs.count > 0;
                }
                Some(steps) if steps.len() < BOUND_STEPS => {
                    let bound = BoundStep { place, step, time, now };
                    steps.push(bound, step, event, pool, &watch.property.params);
                }
                Some(_) => watch.is_cut_off = true,
            }
        }
        Ok(())
    }
}

impl Analysis for Monitorability {
    fn name(&self) -> &'static str {
        MONITORABILITY
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        self.is_cut_off |= first + batch.events.len() as u64 > self.options.events as u64;
        for (i, event) in batch.events.iter().enumerate() {
            self.event(first + i as u64, event, &batch.pool)?;
        }
        let bound = self.watches.iter().filter_map(|w| w.bound.as_ref());
        self.running.forget_old(bound.flat_map(|steps| steps.items()).map(|step| &step.now));
        let is_over = self.watches.iter().all(|watch| watch.is_done);
        Ok(if is_over { Flow::Stop } else { Flow::Continue })
    }

    fn searches(&self) -> usize {
        1
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let (names, is_wanted) = (end.names, self.needs_trace());
        let kept = if is_wanted { Some(end.whole()?) } else { None };
        let mut exact = Exact {
            options: self.options,
            kept,
            budget: Budget::new(self.options.nodes, end.room.time_within(self.options.time)),
            memory: end.room.memory,
            orders: None,
        };
        let lost = match &self.running {
            Running::Notes(clocks) => Some((clocks.conflicting_writes(), clocks.uncertain_reads())),
            Running::Steps(_) => None,
        };
        let mut analysed = Vec::new();
        for number in 0..self.watches.len() {
            let watch = &mut self.watches[number];
            let mut said =
                watch.conclude(number, &self.running, &mut exact, &self.spec, &self.resolved)?;
            // A warning that was not requested is given only if there is something to warn about.
            let is_without_pairs = watch.property.params.is_empty() && said.count == 0;
            if !self.is_exact && (said.verdict == ScheduleVerdict::Monitorable || is_without_pairs)
            {
                continue;
            }
            if said.verdict == ScheduleVerdict::Unknown && self.is_cut_off {
                said.outcome = Outcome::EventLimit;
                said.why = "the trace is longer than is kept for asking whether they matter".into();
            }
            let finding = said.finding.take();
            if !self.options.is_asked {
                // Nor does it answer for anything.
                said.outcome = match said.verdict {
                    ScheduleVerdict::Monitorable => Outcome::Window,
                    _ if self.is_exact => Outcome::OrderUnknown,
                    _ => Outcome::Window,
                };
            }
            analysed.push(watch.analysed(&said, self.is_exact, self.options.order, lost, names));
            // A warning that was not requested does not count as a finding.
            if let Some(finding) = finding.filter(|_| self.options.is_asked)
                && end.out.finding(finding) == Flow::Stop
            {
                break;
            }
        }
        Ok(analysed)
    }

    fn kept_events(&self) -> Option<u64> {
        self.needs_trace().then_some(u64::MAX)
    }
}

/// The result for a property.
struct Said {
    verdict: ScheduleVerdict,
    outcome: Outcome,
    /// Why nothing is known.
    why: String,
    pairs: Vec<Pair>,
    count: u64,
    finding: Option<Finding>,
    bindings: Option<u64>,
}

impl MonitoredProperty {
    /// The verdict on the property, and on each of its bindings.
    fn conclude(
        &mut self,
        number: usize,
        running: &Running,
        exact: &mut Exact<'_, '_>,
        spec: &Spec,
        resolved: &Resolved,
    ) -> Result<Said, AnalysisError> {
        let mut said = Said {
            verdict: ScheduleVerdict::Monitorable,
            outcome: Outcome::Exhausted,
            why: String::new(),
            pairs: Vec::new(),
            count: 0,
            finding: None,
            bindings: None,
        };
        let Some(steps) = self.bound.take() else {
            let pairs = std::mem::take(&mut self.pairs);
            let steps = |trace: &Trace| -> Vec<Relevant> {
                let events = trace.events.iter().enumerate();
                let step = |(i, e): (usize, &Event)| {
                    let step = self.projection.step(e, &trace.pool)?;
                    Some(Relevant { index: i as u64, step })
                };
                events.filter_map(step).collect()
            };
            let steps = match exact.kept {
                Some(kept) if pairs.count > 0 => steps(kept.trace),
                _ => Vec::new(),
            };
            let about = About { number, binding: Vec::new(), spec, resolved };
            self.settle(pairs, &steps, about, exact, &mut said)?;
            if self.is_cut_off && said.verdict == ScheduleVerdict::Monitorable {
                said.verdict = ScheduleVerdict::Unknown;
                said.outcome = Outcome::StateLimit;
                said.why = "its steps are of too many threads to compare them all".into();
            }
            return Ok(said);
        };
        if self.is_cut_off {
            said.verdict = ScheduleVerdict::Unknown;
            said.outcome = Outcome::EventLimit;
            said.why = "the trace has more events of its bindings than are kept".into();
        }
        let bindings = match steps.total(&self.property.params, exact.memory) {
            Ok(bindings) => bindings,
            Err(error) => {
                said.verdict = ScheduleVerdict::Unknown;
                (said.outcome, said.why) = (Outcome::StateLimit, error.to_string());
                return Ok(said);
            }
        };
        said.bindings = Some(bindings.len() as u64);
        for binding in &bindings {
            let (pairs, relevant) = self.bound_pairs(&steps, binding, running);
            let binding = self.property.params.named(binding);
            let about = About { number, binding, spec, resolved };
            self.settle(pairs, &relevant, about, exact, &mut said)?;
            if exact.kept.is_none() && said.count > 0 {
                break;
            }
        }
        Ok(said)
    }

    /// The unordered pairs of one binding, and its steps.
    fn bound_pairs(
        &mut self,
        steps: &BoundSteps<BoundStep>,
        binding: &Binding,
        running: &Running,
    ) -> (Pairs, Vec<Relevant>) {
        let mut of = Vec::new();
        steps.steps_of(binding, &mut of);
        let mut pairs = Pairs::default();
        let mut relevant = Vec::with_capacity(of.len());
        for (bound, atoms) in of {
            let label = self.labels.number(bound.step, atoms, &self.projection);
            let known = |t| running.known(&bound.now, t);
            pairs.step(bound.place, label, bound.time, &self.labels, known);
            let step = Step { events: atoms, ..bound.step };
            relevant.push(Relevant { index: bound.place.index, step });
        }
        (pairs, relevant)
    }

    /// Adds what can be said of one binding, or of a property without parameters.
    fn settle(
        &mut self,
        pairs: Pairs,
        steps: &[Relevant],
        about: About<'_>,
        exact: &mut Exact<'_, '_>,
        said: &mut Said,
    ) -> Result<(), AnalysisError> {
        if pairs.count == 0 {
            return Ok(());
        }
        said.count += pairs.count;
        let room = TOLD_PAIRS.saturating_sub(said.pairs.len());
        said.pairs.extend(pairs.found().iter().take(room));
        // One binding that depends on the schedule is enough.
        if said.verdict == ScheduleVerdict::ScheduleDependent {
            return Ok(());
        }
        let (verdict, outcome, why) = match exact.kept {
            None => (ScheduleVerdict::Unknown, Outcome::Window, String::new()),
            Some(kept) => exact.confirm(kept, self, &pairs, steps, &about, &mut said.finding)?,
        };
        // One that is not known leaves it open.
        if verdict == ScheduleVerdict::ScheduleDependent
            || said.verdict == ScheduleVerdict::Monitorable
        {
            (said.verdict, said.outcome, said.why) = (verdict, outcome, why);
        }
        Ok(())
    }

    fn analysed(
        &self,
        said: &Said,
        is_exact: bool,
        order: FileOrder,
        lost: Option<(u64, u64)>,
        names: &Names,
    ) -> Analysed {
        let of_notes = order == FileOrder::Notes;
        let outcome = match self.steps {
            0 => Outcome::NothingRelevant,
            _ => said.outcome,
        };
        let pairs = match said.count {
            1 => "one pair of events whose order matters to it is not ordered".to_owned(),
            n => format!("{n} pairs of events whose order matters to it are not ordered"),
        };
        let execution = if of_notes { "the notes" } else { "the execution" };
        let statement = match said.verdict {
            _ if self.steps == 0 => "no event of the trace concerns this property".to_owned(),
            ScheduleVerdict::Monitorable if said.count == 0 => format!(
                "monitorable: {execution} ordered every two events whose order matters to it, so \
                 every order that keeps to that has the verdict of the observed one"
            ),
            ScheduleVerdict::Monitorable => format!(
                "monitorable: {pairs}, but all orders that {execution} left open have the verdict \
                 of the observed one"
            ),
            ScheduleVerdict::ScheduleDependent if of_notes => {
                format!(
                    "schedule-dependent: {pairs} by the notes, and orders that they leave open have different verdicts"
                )
            }
            ScheduleVerdict::ScheduleDependent => {
                format!(
                    "schedule-dependent: {pairs} by the execution, and another order that the threads can run in has another verdict"
                )
            }
            ScheduleVerdict::Unknown if !is_exact => format!(
                "the verdict may depend on the schedule: at least {pairs} by the execution; \
                 --check monitorability says whether that changes the verdict"
            ),
            ScheduleVerdict::Unknown if said.count == 0 => format!("unknown: {}", said.why),
            ScheduleVerdict::Unknown => format!("unknown: {pairs} by {execution}; {}", said.why),
        };
        let mut notes: Vec<String> =
            said.pairs.iter().map(|pair| describe_pair(pair, names)).collect();
        if !self.labels.is_exact() && said.count > 0 {
            notes.push(
                "its automaton is too large to be looked at as a whole, so the order of any two of \
                 its events counts as mattering"
                    .to_owned(),
            );
        }
        let mut stats = Vec::new();
        if is_exact {
            stats.push(("verdict", Stat::Text(said.verdict.word().to_owned())));
            stats.push(("relevant_events", Stat::Count(self.steps)));
            stats.push(("unordered_pairs", Stat::Count(said.count)));
            stats.extend(said.bindings.map(|bindings| ("bindings", Stat::Count(bindings))));
        }
        if let Some((conflicting, uncertain)) = lost {
            stats.push(("conflicting_writes", Stat::Count(conflicting)));
            stats.push(("uncertain_reads", Stat::Count(uncertain)));
        }
        let conclusion = match is_exact {
            true => Conclusion::Schedule(said.verdict),
            false => Conclusion::Other,
        };
        Analysed {
            name: MONITORABILITY,
            property: Some(self.property.name.clone()),
            outcome,
            conclusion,
            statement,
            notes,
            stats,
        }
    }
}

/// An unordered pair in words.
fn describe_pair(pair: &Pair, names: &Names) -> String {
    let place = |place: &Place| {
        let thread = Name(names.threads.get(place.thread));
        match place.loc {
            LocId::NONE => format!("event {} of {thread}", place.index),
            loc => format!("event {} of {thread} at {}", place.index, Name(names.locs.get(loc))),
        }
    };
    let more = match pair.count {
        1 => String::new(),
        n => format!(", and {} more like them", n - 1),
    };
    format!("not ordered: {} and {}{more}", place(&pair.first), place(&pair.second))
}

/// What an exact test is about.
struct About<'a> {
    number: usize,
    binding: Vec<(String, Object)>,
    spec: &'a Spec,
    resolved: &'a Resolved,
}

/// The exact test, and what it needs of the whole trace.
struct Exact<'a, 't> {
    options: MonitorabilityOptions,
    /// The trace, if it is wanted and could be kept.
    kept: Option<&'a Kept<'t>>,
    budget: Budget,
    /// How many bytes the bindings of a property may take.
    memory: usize,
    orders: Option<Orders>,
}

struct Orders {
    /// What the execution's events owe to each other.
    execution: Whole,
    /// What every reordering must keep so that each thread does what it did. Unknown for notes.
    causality: Option<Whole>,
}

impl Exact<'_, '_> {
    /// Asks whether an order has another verdict; the first that is confirmed becomes the finding.
    fn confirm(
        &mut self,
        kept: &Kept<'_>,
        watch: &mut MonitoredProperty,
        pairs: &Pairs,
        steps: &[Relevant],
        about: &About<'_>,
        finding: &mut Option<Finding>,
    ) -> Result<(ScheduleVerdict, Outcome, String), AnalysisError> {
        let (order, trace) = (self.options.order, kept.trace);
        if self.orders.is_none() {
            let causality = match order {
                FileOrder::Notes => None,
                _ => Some(Whole::of(trace, Order::Mazurkiewicz)?),
            };
            let execution = Whole::of_execution(trace, order)?;
            self.orders = Some(Orders { execution, causality });
        }
        let budget = &mut self.budget;
        let Some(Orders { execution, causality }) = &self.orders else {
            return Err(AnalysisError::Limit("there is no order to search".to_owned()));
        };
        let confirmer = Confirmer::new(about.spec, about.resolved, kept);
        let mut refused = None;
        let mut offer = |is_violated: bool, run: Vec<u64>| {
            let run = OtherRun {
                analysis: MONITORABILITY,
                order,
                property: about.number,
                binding: about.binding.clone(),
                violates: !is_violated,
                run,
            };
            match confirmer.confirm_other(&run) {
                Ok(found) => {
                    finding.get_or_insert(found);
                    true
                }
                Err(error) => {
                    refused = Some(error.to_string());
                    false
                }
            }
        };
        let too_large = |error: TooManyStates| {
            Ok((ScheduleVerdict::Unknown, Outcome::StateLimit, error.to_string()))
        };
        let mut search = match Search::new(trace, steps, &watch.projection, &mut watch.property) {
            Ok(search) => search,
            Err(error) => return too_large(error),
        };
        let is_violated = search.is_violated;
        let mut offer = |run| offer(is_violated, run);
        // Orders that keep the causality are always ones that the threads can run in.
        for whole in causality.iter().chain([execution]) {
            match search.swap(pairs.found(), whole, budget, &mut offer) {
                Ok(Ended::Found) => return Ok(found()),
                Ok(_) => {}
                Err(error) => return too_large(error),
            }
        }
        let ended = match search.all(execution, budget, &mut offer) {
            Ok(ended) => ended,
            Err(error) => return too_large(error),
        };
        match (ended, causality) {
            (Ended::Found, _) => return Ok(found()),
            (Ended::Nothing, _) => {
                return Ok((ScheduleVerdict::Monitorable, Outcome::Exhausted, String::new()));
            }
            (Ended::Unconfirmed | Ended::GaveUp, Some(causality)) => {
                match search.all(causality, budget, &mut offer) {
                    Ok(Ended::Found) => return Ok(found()),
                    Ok(_) => {}
                    Err(error) => return too_large(error),
                }
            }
            _ => {}
        }
        Ok(match ended {
            Ended::GaveUp => {
                let why = "there are too many orders to look at them all, and those looked at have \
                           the same verdict";
                (ScheduleVerdict::Unknown, Outcome::StateLimit, why.to_owned())
            }
            _ => {
                let because = refused.map(|why| format!(" ({why})")).unwrap_or_default();
                let why = format!(
                    "there are orders with another verdict, but none was found that the threads \
                     are known to be able to run in{because}"
                );
                (ScheduleVerdict::Unknown, Outcome::OrderUnknown, why)
            }
        })
    }
}

fn found() -> (ScheduleVerdict, Outcome, String) {
    (ScheduleVerdict::ScheduleDependent, Outcome::Exhausted, String::new())
}
