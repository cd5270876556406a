//! Prediction of a specification's violations over the lattice of each property.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use foresee_causality::schedule::Schedule;
use foresee_causality::{Clocks, Epoch, Order, Stamp};
use foresee_spec::ast::Spec;
use foresee_spec::monitor::{StateId, TooManyStates};
use foresee_spec::observe::{EvalWarnings, KnownFields, ProgramState, Projection, Step};
use foresee_spec::params::{Binding, Object};
use foresee_spec::property::Compiled;
use foresee_spec::{Resolved, print_atom};
use foresee_trace::{Event, Flow, Names, Op, Outcome, Pool, ThreadId, Trace, entry};
use serde::{Deserialize, Serialize};

use super::events::{Events, Item};
use super::explore::{Explorer, Limits};
use super::level::Count;
use super::tables::{Meaning, Writes};
use super::tally::{Found, LatticeVerdict, SearchStats};
use super::witness::Run;
use crate::analysis::{Analysed, Analysis, AnalysisError, End, Out, Pass, Room};
use crate::bindings::BoundSteps;
use crate::candidates::MAX_CANDIDATES;
use crate::info::LATTICE;
use crate::settled::{BindingVerdict, Sharing, fingerprint};
use crate::shares::Shares;

/// A violation that some other run shows, before its witness is written out and re-checked.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The property, by its place in the specification.
    pub property: usize,
    /// What each parameter stands for.
    pub binding: Vec<(String, Object)>,
    /// The runs that show it. `None` if the search had dropped the events that led there: then they
    /// have to be searched for again, see [`Prediction::runs`].
    runs: Option<ViolatingRuns>,
    limits: Limits,
}

/// Runs that show a violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolatingRuns {
    /// The shortest violating run.
    pub shortest: Schedule,
    /// The violating run with the fewest swaps of relevant events, and their number, if the
    /// lattice was small enough to find it.
    pub closest: Option<(Schedule, u64)>,
}

impl Prediction {
    /// The runs that show the violation, searched for again in the trace if necessary.
    pub fn runs(
        &self,
        spec: &Spec,
        resolved: &Resolved,
        trace: &Trace,
    ) -> Result<Cow<'_, ViolatingRuns>, AnalysisError> {
        if let Some(runs) = &self.runs {
            return Ok(Cow::Borrowed(runs));
        }
        let lost = AnalysisError::Limit;
        let property = Compiled::new(&spec.properties[self.property]);
        let property = property.map_err(|e| lost(e.message))?;
        // The first search has held as much, together with others.
        let limits =
            Limits { kept_events: usize::MAX, memory: usize::MAX, time: None, ..self.limits };
        let mut again = Lattice::new(spec, vec![property], resolved, &trace.names, limits);
        for watch in &mut again.watches {
            if let Steps::All(search) = &mut watch.steps {
                search.explorer.end_with_violation();
            }
        }
        again.take(0, &trace.events, &trace.pool)?;
        let mut predictions = again.conclude(Room::ALL).1;
        let runs = predictions.pop().and_then(|found| found.runs);
        let why = || lost("a violation was not found again in a second pass".to_owned());
        runs.map(Cow::Owned).ok_or_else(why)
    }
}

/// The largest lattice, in cuts with monitor states, that a second pass examines.
const CLOSER_LOOK: usize = 200_000;

/// Checks every run with the same causality, one lattice for each property and binding.
///
/// # Guarantees
/// Sound: every prediction has a run of the Mazurkiewicz order that violates the property.
/// Complete for that order if the outcome is [`Outcome::Exhausted`]. Without a window, memory grows
/// with the relevant events and the widest level; with one, it depends on the window and the
/// lookahead and not on the trace, unless the property has parameters.
pub struct Lattice {
    clocks: Clocks,
    limits: Limits,
    watches: Vec<MonitoredProperty>,
    /// For traces that are still being written.
    early: Option<Early>,
    /// The threads that have appeared.
    threads: Vec<bool>,
    spent: Spent,
    /// What others have decided, or are to know.
    sharing: Sharing,
}

/// What the events of all properties take together, before any of them is searched.
#[derive(Default)]
struct Spent {
    bytes: usize,
    /// The time that it took to compare events of many threads.
    time: Duration,
}

impl Spent {
    /// Why no more events may be taken.
    fn limit(&self, limits: &Limits) -> Option<Outcome> {
        // The other half of both is for the search.
        let is_full = self.bytes > limits.memory / 2;
        let is_late = limits.time.is_some_and(|time| self.time > time / 2);
        is_full.then_some(Outcome::MemoryLimit).or(is_late.then_some(Outcome::TimeLimit))
    }
}

/// With this many threads, each event is compared with so many others that the time counts. A trace
/// of fewer threads is read to its end, however long it is.
const MANY_COLUMNS: usize = 256;

/// What was reported before the end, and the time budget of looking ahead.
struct Early {
    /// The number of steps of each property when it was last examined; `None` once it has been
    /// reported.
    looked: Vec<Option<u64>>,
    /// How much time may be spent, and since when it has been earned.
    room: Duration,
    since: Instant,
}

/// The fraction of the time that looking ahead may take, and its maximum at once.
const LOOKING_SHARE: u32 = 10;
const LOOKING_ROOM: Duration = Duration::from_millis(50);

struct MonitoredProperty {
    property: Compiled,
    projection: Projection,
    writes: Writes,
    steps: Steps,
    /// The event atoms that events of the trace match.
    occurred: u64,
    /// The fields to which events of the trace give values.
    known: KnownFields,
    /// Why no more relevant events are kept. The first ones are an execution, too.
    cut_off: Option<Outcome>,
    /// The error that ended the search.
    error: Option<TooManyStates>,
}

/// The steps of a property: all in one lattice, or, with parameters, apart by what they bind.
enum Steps {
    All(Box<Search>),
    ByBinding(BoundSteps<BoundStep>),
}

/// The maximum number of threads with relevant events: the search keeps what each knows of each
/// other.
const MOST_COLUMNS: usize = 4096;

/// A step of a property with parameters.
#[derive(Clone, Copy)]
struct BoundStep {
    /// Its index in the trace.
    index: u64,
    step: Step,
    /// Its place in the causal order of the whole trace.
    stamp: Stamp,
}

/// The lattice of a property without parameters, or of one binding.
struct Search {
    explorer: Explorer,
    start: StateId,
    observed: ObservedRun,
    steps: u64,
}

impl Search {
    fn ensure_few_columns(&self) -> Result<(), TooManyStates> {
        let what = "columns of the lattice, one for each thread with relevant events";
        match self.explorer.events.columns().len() > MOST_COLUMNS {
            true => Err(TooManyStates { limit: MOST_COLUMNS, what }),
            false => Ok(()),
        }
    }

    /// At the initial state.
    fn new(
        projection: &Projection,
        property: &mut Compiled,
        limits: Limits,
    ) -> Result<Search, TooManyStates> {
        let (initial, start) = beginning(projection, property)?;
        let observed = ObservedRun { program: initial.clone(), monitor: start };
        let explorer = Explorer::new(initial, start, limits);
        Ok(Search { explorer, start, observed, steps: 0 })
    }
}

/// The initial state of the program, and of the monitor after it.
pub(crate) fn beginning(
    projection: &Projection,
    property: &mut Compiled,
) -> Result<(ProgramState, StateId), TooManyStates> {
    let initial =
        projection.state_of(projection.initial().values().into(), &mut EvalWarnings::default());
    let mut start = property.monitor.start();
    if property.reads_initial {
        start = property.monitor.step(start, initial.letter())?;
    }
    Ok((initial, start))
}

/// The captured order itself.
struct ObservedRun {
    program: ProgramState,
    monitor: StateId,
}

impl ObservedRun {
    fn step(
        &mut self,
        step: Step,
        projection: &Projection,
        property: &mut Compiled,
    ) -> Result<bool, TooManyStates> {
        let letter = projection.apply(&mut self.program, step, &mut EvalWarnings::default());
        self.monitor = property.monitor.step(self.monitor, letter)?;
        Ok(self.monitor == StateId::BAD)
    }
}

impl Lattice {
    /// Prepares for a trace with these names, with all initial values in the specification.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        limits: Limits,
    ) -> Lattice {
        let watch = |property| MonitoredProperty::new(spec, property, resolved, names, limits);
        Lattice {
            clocks: Clocks::new(Order::Mazurkiewicz),
            limits,
            watches: properties.into_iter().map(watch).collect(),
            early: None,
            threads: Vec::new(),
            spent: Spent::default(),
            sharing: Sharing::default(),
        }
    }

    /// Uses verdicts on bindings and objects that were reached elsewhere, or reaches some of them and nothing else.
    #[must_use]
    pub(crate) fn in_parts(mut self, sharing: Sharing) -> Lattice {
        self.sharing = sharing;
        self
    }

    /// Reports violations as soon as they are predicted, not only at the end: for traces that are
    /// still being written. The runs of an early report are searched again in the events so far;
    /// the final report, which may show a better run, still comes at the end. Properties with
    /// parameters are only reported there.
    #[must_use]
    pub fn reporting_early(mut self) -> Lattice {
        let looked = vec![Some(0); self.watches.len()];
        self.early = Some(Early { looked, room: LOOKING_ROOM, since: Instant::now() });
        self
    }

    fn report_early(&mut self, out: &mut Out<'_>) {
        let Some(early) = &mut self.early else { return };
        let now = Instant::now();
        let earned = now.duration_since(std::mem::replace(&mut early.since, now)) / LOOKING_SHARE;
        early.room = (early.room + earned).min(LOOKING_ROOM);
        for (number, (watch, looked)) in self.watches.iter_mut().zip(&mut early.looked).enumerate()
        {
            let MonitoredProperty {
                property, projection, writes, steps: Steps::All(search), ..
            } = watch
            else {
                continue;
            };
            let is_new = looked.is_some_and(|steps| steps < search.steps);
            // If the observed run fails, there is nothing to predict.
            if !is_new || early.room.is_zero() || search.observed.monitor == StateId::BAD {
                continue;
            }
            let start = Instant::now();
            let mut meaning = Meaning { projection, writes, monitor: &mut property.monitor };
            // If there are too many states, the search itself reports it.
            let is_foreseen = search.explorer.foresees(&mut meaning, early.room).unwrap_or(false);
            early.room = early.room.saturating_sub(start.elapsed());
            *looked = Some(search.steps);
            if is_foreseen {
                *looked = None;
                let (binding, limits) = (Vec::new(), search.explorer.limits());
                let claim = Prediction { property: number, binding, runs: None, limits };
                out.candidates.early.predictions.push(claim);
            }
        }
    }

    /// Takes the next events of the trace.
    fn take(&mut self, first: u64, events: &[Event], pool: &Pool) -> Result<(), AnalysisError> {
        let keeps_stamps = self.watches.iter().any(|w| matches!(w.steps, Steps::ByBinding(_)));
        let follows = self.limits.window.is_some();
        for (i, event) in events.iter().enumerate() {
            let stamp = self.clocks.event(event)?;
            if follows {
                self.follow_threads(event);
            }
            for watch in self.watches.iter_mut().filter(|watch| watch.error.is_none()) {
                let Some(step) = watch.projection.step(event, pool) else { continue };
                watch.occurred |= step.events;
                watch.known.step(step);
                let index = first + i as u64;
                let limits = self.limits;
                let taken = match &watch.steps {
                    Steps::All(_) => {
                        watch.take(step, index, &stamp, &self.clocks, limits, &mut self.spent)
                    }
                    Steps::ByBinding(_) => {
                        watch.take_bound(step, index, event, pool, stamp, limits);
                        Ok(())
                    }
                };
                if let Err(error) = taken {
                    self.spent.bytes = self.spent.bytes.saturating_sub(watch.event_bytes());
                    watch.error = Some(error);
                    watch.steps = Steps::ByBinding(BoundSteps::default());
                }
            }
            if !keeps_stamps {
                self.clocks.forget_old(&[]);
            }
        }
        Ok(())
    }

    /// Notifies searches that follow the trace of threads that start and end.
    #[inline]
    fn follow_threads(&mut self, event: &Event) {
        let seen = entry(&mut self.threads, foresee_trace::Id::index(event.thread()));
        let new = !std::mem::replace(seen, true);
        if !new && !matches!(event.op(), Op::Fork | Op::Join | Op::ThreadEnd) {
            return;
        }
        for watch in &mut self.watches {
            let Steps::All(search) = &mut watch.steps else { continue };
            let events = &mut search.explorer.events;
            let own = events.column(event.thread());
            match event.op() {
                Op::Fork => {
                    let count = events.columns()[own].count();
                    events.fork(event.thread(), event.other(), count);
                }
                Op::Join => events.end_here(event.other()),
                Op::ThreadEnd => events.end_here(event.thread()),
                _ => {}
            }
        }
    }

    /// The final result of every search, and the predictions.
    fn conclude(&mut self, room: Room) -> (Vec<Analysed>, Vec<Prediction>) {
        let (mut analysed, mut predictions) = (Vec::new(), Vec::new());
        let mut shares = Shares::new(room.time_within(self.limits.time), self.watches.len());
        let mut held: usize = self.watches.iter().map(MonitoredProperty::event_bytes).sum();
        for (number, watch) in self.watches.iter_mut().enumerate() {
            let mut tally = SearchStats::default();
            // What later properties hold is not there for this one.
            let own = watch.event_bytes();
            held -= own;
            let left = room.memory.saturating_add(own);
            let memory = self.limits.memory.saturating_sub(held).min(left);
            let limits = Limits { time: shares.next(), memory, ..self.limits };
            let result = watch.conclude(number, &self.clocks, limits, &self.sharing, &mut tally);
            if let Some(why) = watch.cut_off
                && tally.outcome == Some(Outcome::Exhausted)
            {
                tally.outcome = Some(why);
            }
            if let Err(error) = result {
                tally.outcome = Some(Outcome::StateLimit);
                tally.trouble = Some(error.to_string());
            }
            let atom = |i: usize| print_atom(&watch.property.alphabet.atoms()[i]);
            tally.notes = watch.projection.warnings(&tally.troubles, atom);
            tally.vacuous = watch.vacuous();
            analysed.push(tally.analysed(&watch.property.name));
            predictions.append(&mut tally.predictions);
        }
        (analysed, predictions)
    }
}

impl Analysis for Lattice {
    fn name(&self) -> &'static str {
        LATTICE
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, out, .. } = pass;
        let first = *first;
        self.take(first, &batch.events, &batch.pool)?;
        self.report_early(out);
        Ok(Flow::Continue)
    }

    fn bytes(&self) -> usize {
        let of_watch = |watch: &MonitoredProperty| match &watch.steps {
            Steps::All(search) => search.explorer.bytes(),
            Steps::ByBinding(steps) => steps.bytes(),
        };
        self.clocks.bytes() + self.watches.iter().map(of_watch).sum::<usize>()
    }

    fn searches(&self) -> usize {
        1
    }

    fn searched(&self) -> Duration {
        self.spent.time
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        let (analysed, mut predictions) = self.conclude(end.room);
        end.out.candidates.predictions.append(&mut predictions);
        Ok(analysed)
    }
}

impl MonitoredProperty {
    fn new(
        spec: &Spec,
        mut property: Compiled,
        resolved: &Resolved,
        names: &Names,
        limits: Limits,
    ) -> MonitoredProperty {
        let projection = Projection::new(&property.alphabet, &spec.inits, resolved, names);
        let mut error = None;
        let mut steps = Steps::ByBinding(BoundSteps::default());
        if property.params.is_empty() {
            match Search::new(&projection, &mut property, limits) {
                Ok(search) => steps = Steps::All(Box::new(search)),
                Err(e) => error = Some(e),
            }
        }
        MonitoredProperty {
            known: KnownFields::new(&projection),
            property,
            projection,
            writes: Writes::default(),
            steps,
            occurred: 0,
            cut_off: None,
            error,
        }
    }

    /// Why no run of this trace could have violated the property.
    fn vacuous(&self) -> Option<String> {
        if !self.property.is_violable {
            let why = "no run of any program can violate this property as it is written";
            return Some(why.to_owned());
        }
        if let Some(why) = self.known.silence(&self.projection) {
            return Some(why);
        }
        let missing = self.property.needed & !self.occurred;
        let atom = self.property.alphabet.atoms().get(missing.trailing_zeros() as usize)?;
        let atom = print_atom(atom);
        Some(format!("no violation without `{atom}`, which does not occur in the trace"))
    }

    /// How many bytes the events of its one lattice take.
    fn event_bytes(&self) -> usize {
        match &self.steps {
            Steps::All(search) => search.explorer.events.bytes(),
            Steps::ByBinding(_) => 0,
        }
    }

    /// Takes the next step of a property without parameters.
    fn take(
        &mut self,
        step: Step,
        index: u64,
        stamp: &Stamp,
        clocks: &Clocks,
        limits: Limits,
        spent: &mut Spent,
    ) -> Result<(), TooManyStates> {
        let MonitoredProperty { property, projection, writes, steps, cut_off, .. } = self;
        let Steps::All(search) = steps else { return Ok(()) };
        search.steps += 1;
        if search.observed.monitor == StateId::BAD {
            return Ok(());
        }
        if search.observed.step(step, projection, property)? {
            // If the observed run fails, there is nothing to predict.
            search.explorer.stop();
        }
        if search.explorer.is_over() || cut_off.is_some() {
            return Ok(());
        }
        let write = step.write.map(|write| writes.number(write, projection));
        let item = Item::new(index, stamp.time[0], step.events, write);
        let times = |thread: ThreadId| clocks.count(stamp, thread)[0];
        let events = &mut search.explorer.events;
        let start = (events.columns().len() > MANY_COLUMNS).then(Instant::now);
        let before = events.bytes();
        events.observe(stamp.thread, item, times);
        spent.bytes += events.bytes() - before;
        spent.time += start.map_or(Duration::ZERO, |start| start.elapsed());
        *cut_off = spent.limit(&limits);
        search.ensure_few_columns()?;
        if limits.window.is_some() && search.steps.is_multiple_of(limits.stride) {
            let mut meaning = Meaning { projection, writes, monitor: &mut property.monitor };
            let before = search.explorer.events.bytes();
            search.explorer.advance(&mut meaning, true)?;
            search.explorer.tidy(writes, projection);
            let less = before.saturating_sub(search.explorer.events.bytes());
            spent.bytes = spent.bytes.saturating_sub(less);
        }
        Ok(())
    }

    /// Keeps the next step of a property with parameters.
    fn take_bound(
        &mut self,
        step: Step,
        index: u64,
        event: &Event,
        pool: &Pool,
        stamp: Stamp,
        limits: Limits,
    ) {
        let Steps::ByBinding(steps) = &mut self.steps else { return };
        if steps.len() >= limits.events {
            self.cut_off = Some(Outcome::EventLimit);
            return;
        }
        steps.push(BoundStep { index, step, stamp }, step, event, pool, &self.property.params);
    }

    /// Ends all searches of the property.
    fn conclude(
        &mut self,
        number: usize,
        clocks: &Clocks,
        limits: Limits,
        sharing: &Sharing,
        tally: &mut SearchStats,
    ) -> Result<(), TooManyStates> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        // Values that are missing from the start are worth a warning even if nothing happens.
        self.projection.state_of(self.projection.initial().values().into(), &mut tally.troubles);
        let name = self.property.name.clone();
        match std::mem::replace(&mut self.steps, Steps::ByBinding(BoundSteps::default())) {
            Steps::All(mut search) => {
                search.explorer.spend_at_most(limits.time, limits.memory);
                // With a window it was searched while the trace was read.
                let is_shared = limits.window.is_none();
                let of = fingerprint(&[], search.steps as usize);
                let mut settling = sharing.begin(LATTICE, &name, of);
                if !settling.has(number) || !is_shared && sharing.is_part() {
                    return Ok(());
                }
                if let Some(BindingVerdict::Lattice(verdict)) = settling.known(0)
                    && is_shared
                {
                    let limits = search.explorer.limits();
                    self.tell(number, None, verdict.clone(), limits, tally);
                    return Ok(());
                }
                tally.steps = search.steps;
                let (verdict, limits) = self.conclude_search(*search, true)?;
                tally.steps = 0;
                settling.keep(0, || BindingVerdict::Lattice(verdict.clone()));
                self.tell(number, None, verdict, limits, tally);
                settling.finish(self.property.monitor.load());
                Ok(())
            }
            Steps::ByBinding(steps) => {
                let bindings = steps.total(&self.property.params, limits.memory)?;
                tally.bindings = Some(bindings.len() as u64);
                let mut settling =
                    sharing.begin(LATTICE, &name, fingerprint(&bindings, steps.len()));
                let mut bound = Vec::new();
                let mut shares = Shares::new(limits.time, bindings.len());
                let mut ended = Ok(());
                for (at, binding) in bindings.iter().enumerate() {
                    let limits = Limits { time: shares.next(), ..limits };
                    // Those of different objects are dealt out to different parts.
                    if !settling.has(number + at) {
                        continue;
                    }
                    if let Some(BindingVerdict::Lattice(verdict)) = settling.known(at) {
                        self.tell(number, Some(binding), verdict.clone(), limits, tally);
                        continue;
                    }
                    steps.steps_of(binding, &mut bound);
                    let is_shown = tally.predictions.len() < MAX_CANDIDATES;
                    match self.search_bound(&bound, clocks, limits, is_shown) {
                        Ok((verdict, limits)) => {
                            settling.keep(at, || BindingVerdict::Lattice(verdict.clone()));
                            self.tell(number, Some(binding), verdict, limits, tally);
                        }
                        Err(error) => {
                            tally.steps += bound.len() as u64;
                            ended = Err(error);
                            break;
                        }
                    }
                }
                settling.finish(self.property.monitor.load());
                ended
            }
        }
    }

    /// Searches the lattice of one binding.
    fn search_bound(
        &mut self,
        bound: &[(BoundStep, u64)],
        clocks: &Clocks,
        limits: Limits,
        is_shown: bool,
    ) -> Result<(LatticeVerdict, Limits), TooManyStates> {
        let mut search = Search::new(&self.projection, &mut self.property, limits)?;
        for &(bound, atoms) in bound {
            search.steps += 1;
            let step = Step { events: atoms, ..bound.step };
            search.observed.step(step, &self.projection, &mut self.property)?;
            let write = step.write.map(|write| self.writes.number(write, &self.projection));
            let item = Item::new(bound.index, bound.stamp.time[0], atoms, write);
            let times = |thread: ThreadId| clocks.count(&bound.stamp, thread)[0];
            search.explorer.events.observe(bound.stamp.thread, item, times);
            search.ensure_few_columns()?;
        }
        self.conclude_search(search, is_shown)
    }

    /// Adds a verdict, and the prediction that follows from it.
    fn tell(
        &self,
        number: usize,
        binding: Option<&Binding>,
        mut verdict: LatticeVerdict,
        limits: Limits,
        tally: &mut SearchStats,
    ) {
        let is_violated = verdict.found.as_ref().is_some_and(|found| found.is_violated);
        if is_violated && tally.predictions.len() < MAX_CANDIDATES {
            tally.predictions.push(Prediction {
                property: number,
                binding: binding.map_or_else(Vec::new, |b| self.property.params.named(b)),
                runs: verdict.found.as_mut().and_then(|found| found.shown.take()),
                limits,
            });
        }
        tally.add(&verdict);
    }

    /// Ends a search, and goes back from what it found if that `is_shown`.
    fn conclude_search(
        &mut self,
        search: Search,
        is_shown: bool,
    ) -> Result<(LatticeVerdict, Limits), TooManyStates> {
        let Search { mut explorer, start, observed, steps } = search;
        let limits = explorer.limits();
        if observed.monitor == StateId::BAD {
            let troubles = EvalWarnings::default();
            return Ok((LatticeVerdict { steps, troubles, found: None }, limits));
        }
        let MonitoredProperty { projection, writes, property, .. } = self;
        let mut meaning = Meaning { projection, writes, monitor: &mut property.monitor };
        explorer.finish(&mut meaning, true)?;
        let troubles = explorer.tables.troubles().clone();
        let mut found = Found::new(&explorer.found);
        if let Some((depth, bad)) = explorer.found.violation.filter(|_| is_shown)
            && explorer.history().is_some()
        {
            let shortest = explorer.run_to(depth, bad, &mut meaning)?;
            let closest = match explorer.found.cuts as usize <= CLOSER_LOOK {
                true => explorer.closest(start, CLOSER_LOOK, &mut meaning)?,
                false => None,
            };
            let is_all = explorer.found.outcome == Outcome::Exhausted;
            let all = explorer.found.runs.as_ref().filter(|_| is_all);
            if let (Some(closest), Some(Count::Exact(runs))) = (&closest, all) {
                found.size.violating = Some((runs - &closest.harmless).to_string());
            }
            let closest = closest.map(|c| (schedule(&c.run, &explorer.events), c.swaps));
            let shortest = schedule(&shortest, &explorer.events);
            found.shown = Some(ViolatingRuns { shortest, closest });
        }
        Ok((LatticeVerdict { steps, troubles, found: Some(found) }, limits))
    }
}

/// A run of relevant events as a schedule; the remaining relevant events follow in the order in
/// which they were observed.
fn schedule(run: &Run, events: &Events) -> Schedule {
    let epoch = |column: u32, k: u32| {
        let column = &events.columns()[column as usize];
        Epoch { thread: column.thread, time: column.item(k).time }
    };
    let mut counts = vec![0; events.columns().len()];
    let mut first = Vec::with_capacity(run.len());
    for &column in run {
        first.push(epoch(column, counts[column as usize]));
        counts[column as usize] += 1;
    }
    let mut seen = vec![0; events.columns().len()];
    let others = events.observed().into_iter().filter_map(|column| {
        let k = seen[column as usize];
        seen[column as usize] += 1;
        (k >= counts[column as usize]).then(|| epoch(column, k))
    });
    Schedule::new(first, others)
}
