//! Prediction of a specification's violations in correct reorderings.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use foresee_causality::judge::Reads;
use foresee_spec::ast::Spec;
use foresee_spec::monitor::{Monitor, StateId, TooManyStates};
use foresee_spec::observe::{EvalWarnings, ProgramState, Projection, Step};
use foresee_spec::property::Compiled;
use foresee_spec::{Resolved, print_atom};
use foresee_trace::{Flow, Names, Op, Outcome, Space, Value};
use serde::{Deserialize, Serialize};

use super::node::{Machine, Reductions};
use super::search::{BAD, Config, Found, Property, Search};
use super::window::{Visible, Window};
use crate::analysis::{Analysed, Analysis, AnalysisError, Conclusion, End, Pass, Stat};
use crate::beyond::{
    BYTES_PER_EVENT, BindingSearch, PropertySteps, Steps, ViolatingOrder, as_far_as,
};
use crate::candidates::Candidates;
use crate::confirm::Reordered;
use crate::info::CORRECT;
use crate::reorder::{NONE, Requirements, TooManyEvents};
use crate::settled::{BindingVerdict, Sharing};
use crate::shares::Shares;

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct CorrectLimits {
    /// What reads may see.
    pub reads: Reads,
    /// How many events a window has; the next one begins half a window later.
    pub window: u32,
    /// How many states of each level are followed.
    pub width: usize,
    /// How many states of one property are followed in all.
    pub nodes: u64,
    /// How many events the trace may have, all of which are kept, at some twenty bytes each.
    pub trace: usize,
    /// How many bytes the states of one window may take.
    pub memory: usize,
    /// How many relevant events are looked at; the first ones.
    pub events: usize,
    /// How long the searches for all properties may take together.
    pub time: Option<Duration>,
    /// The reductions to apply.
    pub reductions: Reductions,
}

impl Default for CorrectLimits {
    fn default() -> Self {
        CorrectLimits {
            reads: Reads::Terminal,
            window: 400,
            width: 100,
            nodes: 2_000_000,
            trace: 120_000_000,
            memory: 1 << 30,
            events: 4_000_000,
            time: None,
            reductions: Reductions::ALL,
        }
    }
}

/// Checks the properties of a specification, other than patterns, in correct reorderings.
///
/// # Guarantees
/// What is found is a correct reordering that violates the property; the judge sees to that.
/// Silence promises nothing beyond the windows and the width. Memory grows with the trace, by about
/// twenty bytes an event.
pub struct Correct {
    requirements: Requirements,
    too_long: Option<TooManyEvents>,
    /// For each write the last read that saw it.
    last_readers: Vec<u32>,
    watches: Vec<PropertySteps<Relevant>>,
    limits: CorrectLimits,
    /// What others have decided, or are to know.
    sharing: Sharing,
}

/// A relevant event.
#[derive(Clone, Copy)]
struct Relevant {
    event: u32,
    thread: u32,
    write: Option<(u16, Option<Value>)>,
    is_blind: bool,
}

impl Correct {
    /// Prepares for a trace with these names. Bindings that have a run with the same causality
    /// among the candidates at the end of the trace are skipped.
    pub fn new(
        spec: &Spec,
        properties: Vec<Compiled>,
        resolved: &Resolved,
        names: &Names,
        limits: CorrectLimits,
    ) -> Correct {
        let others = properties.into_iter().enumerate().filter(|(_, p)| p.sequences.is_none());
        let watch =
            |(number, property)| PropertySteps::new(number, property, spec, resolved, names);
        Correct {
            requirements: Requirements::default(),
            too_long: None,
            last_readers: Vec::new(),
            watches: others.map(watch).collect(),
            limits,
            sharing: Sharing::default(),
        }
    }

    /// Uses verdicts on bindings and objects that were reached elsewhere, or reaches some of them and nothing else.
    #[must_use]
    pub(crate) fn in_parts(mut self, sharing: Sharing) -> Correct {
        self.sharing = sharing;
        self
    }

    /// Whether there is any property to check.
    pub fn has_properties(&self) -> bool {
        !self.watches.is_empty()
    }
}

impl Analysis for Correct {
    fn name(&self) -> &'static str {
        CORRECT
    }

    fn events(&mut self, pass: &mut Pass<'_>) -> Result<Flow, AnalysisError> {
        let Pass { first, batch, .. } = pass;
        let first = *first;
        for (i, event) in batch.events.iter().enumerate() {
            if let Err(error) = self.requirements.push_within(self.limits.trace, event, &batch.pool)
            {
                self.too_long = Some(error);
                return Ok(Flow::Stop);
            }
            let index = first as u32 + i as u32;
            self.last_readers.push(NONE);
            let writer = self.requirements.partner(index);
            if event.op().reads() && writer != NONE {
                self.last_readers[writer as usize] = index;
            }
            if event.op() == Op::Init {
                continue;
            }
            for watch in &mut self.watches {
                let Some(step) = watch.step(event, &batch.pool, self.limits.events) else {
                    continue;
                };
                let is_blind = watch.is_blind(event, &batch.pool, step);
                let thread = event.thread().0;
                let relevant = Relevant { event: index, thread, write: step.write, is_blind };
                watch.keep(relevant, step, event, &batch.pool);
            }
        }
        Ok(Flow::Continue)
    }

    fn bytes(&self) -> usize {
        let of_trace = self.requirements.len() * BYTES_PER_EVENT;
        of_trace + self.watches.iter().map(PropertySteps::bytes).sum::<usize>()
    }

    fn searches(&self) -> usize {
        1
    }

    fn finish(&mut self, end: &mut End<'_, '_>) -> Result<Vec<Analysed>, AnalysisError> {
        self.requirements.finish();
        let mut analysed = Vec::new();
        let memory = self.limits.memory.min(end.room.memory);
        let limits = CorrectLimits { memory, ..self.limits };
        let mut shares = Shares::new(end.room.time_within(self.limits.time), self.watches.len());
        for watch in self.watches.iter_mut() {
            let time = shares.next();
            if watch.len() == 0 {
                continue;
            }
            let mut tally = SearchStats::default();
            if let Some(error) = self.too_long {
                tally.trouble = Some(error.to_string());
            } else {
                let mut search = PropertySearch {
                    requirements: &self.requirements,
                    last_readers: &self.last_readers,
                    limits,
                    until: time.map(|time| Instant::now() + time),
                    tally: &mut tally,
                    sharing: &self.sharing,
                };
                match search.all(watch, end.out.candidates) {
                    // An unknown value might have made a difference.
                    Ok(found) if tally.notes.is_empty() => {
                        tally.found = found.len() as u64;
                        end.out.candidates.reordered.extend(found);
                    }
                    Ok(_) => {}
                    Err(error) => tally.trouble = Some(error.to_string()),
                }
            }
            if tally.searched > 0 || tally.trouble.is_some() {
                analysed.push(tally.analysed(watch));
            }
        }
        Ok(analysed)
    }
}

/// What led to a configuration at the beginning of a window.
#[derive(Debug)]
struct History {
    before: Option<Rc<History>>,
    events: Stretch,
}

#[derive(Debug)]
enum Stretch {
    Observed(std::ops::Range<u32>),
    Reordered(Vec<u32>),
}

/// The atoms that an event matches, and what it writes.
type Action = (u64, Option<(u16, Option<Value>)>);

/// The monitor of one binding, with its configurations by number.
struct Configs<'p> {
    monitor: &'p mut Monitor,
    projection: &'p Projection,
    all: Vec<(StateId, ProgramState)>,
    numbers: HashMap<(StateId, ProgramState), Config, RandomState>,
    actions: Vec<Step>,
    action_numbers: HashMap<Action, u32, RandomState>,
    known: HashMap<(Config, u32), Config, RandomState>,
    troubles: EvalWarnings,
}

/// How many bytes a state of the program and the monitor takes, and an action, with their numbers.
const CONFIG_BYTES: usize = 400;
const ACTION_BYTES: usize = 150;

impl Configs<'_> {
    fn bytes(&self) -> usize {
        self.all.len() * CONFIG_BYTES + self.actions.len() * ACTION_BYTES
    }

    fn number(&mut self, state: StateId, program: ProgramState) -> Config {
        if state == StateId::BAD {
            return BAD;
        }
        let next = self.all.len() as Config;
        let key = (state, program);
        match self.numbers.get(&key) {
            Some(&number) => number,
            None => {
                self.all.push(key.clone());
                self.numbers.insert(key, next);
                next
            }
        }
    }

    fn action(&mut self, (events, write): Action) -> u32 {
        let next = self.actions.len() as u32;
        let number = *self.action_numbers.entry((events, write)).or_insert(next);
        if number == next {
            self.actions.push(Step { events, write });
        }
        number
    }
}

impl Property for Configs<'_> {
    fn step(&mut self, config: Config, action: u32) -> Result<Config, TooManyStates> {
        if config == BAD {
            return Ok(BAD);
        }
        if let Some(&next) = self.known.get(&(config, action)) {
            return Ok(next);
        }
        let (state, mut program) = self.all[config as usize].clone();
        let step = self.actions[action as usize];
        let letter = self.projection.apply(&mut program, step, &mut self.troubles);
        let state = self.monitor.step(state, letter)?;
        let next = self.number(state, program);
        self.known.insert((config, action), next);
        Ok(next)
    }
}

/// The search for one property.
struct PropertySearch<'h> {
    requirements: &'h Requirements,
    last_readers: &'h [u32],
    limits: CorrectLimits,
    until: Option<Instant>,
    tally: &'h mut SearchStats,
    sharing: &'h Sharing,
}

impl PropertySearch<'_> {
    fn all(
        &mut self,
        watch: &mut PropertySteps<Relevant>,
        candidates: &Candidates,
    ) -> Result<Vec<Reordered>, TooManyStates> {
        let known = candidates.bindings_of(watch.number);
        let mut troubles = EvalWarnings::default();
        // The monitor grows while the steps are read.
        let steps = std::mem::replace(&mut watch.steps, Steps::All(Vec::new()));
        let (params, name) = (watch.property.params.clone(), watch.property.name.clone());
        let which = (self.sharing, CORRECT, name.as_str(), watch.number);
        let latest = CorrectVerdict::default();
        let mut one = OneBinding { search: self, watch, troubles: &mut troubles, latest };
        let memory = one.search.limits.memory;
        let searched = steps.search(&params, &known, memory, &mut one, which)?;
        self.tally.bindings = searched.bindings;
        self.tally.skipped = searched.skipped;
        let found = searched.found.into_iter().map(|found| Reordered {
            analysis: CORRECT,
            reorder: Space::Correct,
            reads: self.limits.reads,
            property: watch.number,
            binding: found.binding,
            observed: found.observed,
            order: found.order,
        });
        let found = found.collect();
        let atom = |i: usize| print_atom(&watch.property.alphabet.atoms()[i]);
        self.tally.notes = watch.projection.warnings(&troubles, atom);
        Ok(found)
    }

    fn is_over(&mut self) -> bool {
        self.tally.is_out_of_time |= self.until.is_some_and(|until| Instant::now() >= until);
        self.tally.is_out_of_nodes |= self.tally.nodes >= self.limits.nodes;
        self.tally.is_out_of_time || self.tally.is_out_of_nodes
    }

    /// Looks for a violating order of the steps of one binding.
    fn binding(
        &mut self,
        watch: &mut PropertySteps<Relevant>,
        steps: &[(Relevant, u64)],
        troubles: &mut EvalWarnings,
    ) -> Result<Option<Vec<u64>>, TooManyStates> {
        let reads_initial = watch.property.reads_initial;
        let mut configs = Configs {
            monitor: &mut watch.property.monitor,
            projection: &watch.projection,
            all: Vec::new(),
            numbers: HashMap::default(),
            actions: Vec::new(),
            action_numbers: HashMap::default(),
            known: HashMap::default(),
            troubles: EvalWarnings::default(),
        };
        let values = watch.projection.initial().values().into();
        let initial = watch.projection.state_of(values, &mut configs.troubles);
        let mut state = configs.monitor.start();
        if reads_initial {
            state = configs.monitor.step(state, initial.letter())?;
        }
        let start = configs.number(state, initial);
        let mut visible = Vec::with_capacity(steps.len());
        let mut observed = start;
        for (relevant, atoms) in steps {
            if configs.bytes() + size_of_val(steps) > self.limits.memory {
                self.tally.searched += 1;
                self.tally.is_out_of_memory = true;
                return Ok(None);
            }
            let action = configs.action((*atoms, relevant.write));
            observed = configs.step(observed, action)?;
            visible.push(Visible { event: relevant.event, action, is_blind: relevant.is_blind });
        }
        let mut order = None;
        if observed != BAD && start != BAD {
            self.tally.searched += 1;
            order = self.windows(start, steps, &visible, &mut configs)?;
        }
        troubles.add(&configs.troubles);
        Ok(order)
    }

    /// Goes through the trace window by window.
    fn windows(
        &mut self,
        start: Config,
        steps: &[(Relevant, u64)],
        visible: &[Visible],
        configs: &mut Configs<'_>,
    ) -> Result<Option<Vec<u64>>, TooManyStates> {
        let length = self.requirements.len() as u32;
        let (size, half) = (self.limits.window.max(2), (self.limits.window / 2).max(1));
        let mut carried: Vec<(Config, Rc<History>)> =
            vec![(start, Rc::new(History { before: None, events: Stretch::Observed(0..0) }))];
        let switches = switches(steps);
        let mut at = 0u32;
        while at < length {
            let next = visible.partition_point(|v| v.event < at);
            let Some(first) = visible.get(next) else { break };
            // Nothing before this event concerns the property.
            let from = first.event.saturating_sub(half).max(at);
            if from > at {
                carried = observe(carried, at..from, &[], configs)?.next;
                at = from;
                continue;
            }
            let end = at.saturating_add(size).min(length);
            let last = visible.partition_point(|v| v.event < end);
            let carry = at.saturating_add(half).min(length);
            if switches[next] >= last {
                // Steps of one thread have one order; with others, farther away, they may not.
                self.tally.is_partial |= switches[0] < steps.len();
                let inside = visible.partition_point(|v| v.event < carry);
                let observed = observe(carried, at..carry, &visible[next..inside], configs)?;
                if let Some((history, event)) = observed.violation {
                    return Ok(Some(flatten(&history, &(at..=event).collect::<Vec<_>>())));
                }
                carried = observed.next;
                at = carry;
                continue;
            }
            if self.is_over() {
                break;
            }
            self.tally.is_partial |= at > 0 || end < length;
            let found = self.search(at, end, carry, visible, &carried, configs)?;
            if let Some((config, violating)) = found.violation {
                let history = carried.iter().find(|(c, _)| *c == config).map(|(_, h)| h);
                return Ok(history.map(|h| flatten(h, &violating)));
            }
            let mut next: Vec<(Config, Rc<History>)> = Vec::new();
            for (from, config, events) in found.carried {
                let before = carried.iter().find(|(c, _)| *c == from).map(|(_, h)| Rc::clone(h));
                if before.is_some() && next.iter().all(|(c, _)| *c != config) {
                    let history = History { before, events: Stretch::Reordered(events) };
                    next.push((config, Rc::new(history)));
                }
            }
            // The observed run always continues.
            let inside = visible.partition_point(|v| v.event < carry);
            let from = visible.partition_point(|v| v.event < at);
            let observed = observe(carried, at..carry, &visible[from..inside], configs)?;
            for (config, history) in observed.next {
                if next.iter().all(|(c, _)| *c != config) {
                    next.push((config, history));
                }
            }
            carried = next;
            at = carry;
        }
        Ok(None)
    }

    fn search(
        &mut self,
        at: u32,
        end: u32,
        carry: u32,
        visible: &[Visible],
        carried: &[(Config, Rc<History>)],
        configs: &mut Configs<'_>,
    ) -> Result<Found, TooManyStates> {
        let window = Window::new(self.requirements, self.last_readers, visible, at, end);
        let CorrectLimits { reads, reductions, width, .. } = self.limits;
        let machine = Machine { window: &window, reads, reductions };
        let max_nodes = self.limits.nodes.saturating_sub(self.tally.nodes);
        let (max_bytes, until) = (self.limits.memory, self.until);
        let search = Search { machine: &machine, width, max_nodes, max_bytes, until };
        let starts: Vec<Config> = carried.iter().map(|(config, _)| *config).collect();
        let steps = (at..carry).filter(|&event| self.requirements.is_step(event)).count();
        // Nothing is carried over after the last window.
        let steps = if end == self.requirements.len() as u32 { usize::MAX } else { steps };
        let found = search.run(&starts, steps, configs)?;
        self.tally.nodes += found.nodes;
        self.tally.windows += 1;
        self.tally.is_cut |= found.is_cut;
        self.tally.is_out_of_memory |= found.is_full;
        Ok(found)
    }
}

/// For each step the next one that is of another thread, or the number of steps.
fn switches(steps: &[(Relevant, u64)]) -> Vec<usize> {
    let mut switches = vec![steps.len(); steps.len()];
    for i in (1..steps.len()).rev() {
        switches[i - 1] = match steps[i - 1].0.thread == steps[i].0.thread {
            true => switches[i],
            false => i,
        };
    }
    switches
}

/// The configurations that result from continuing as observed.
struct Continued {
    next: Vec<(Config, Rc<History>)>,
    /// What led to one that turned bad, and the event at which it did.
    violation: Option<(Rc<History>, u32)>,
}

/// Continues configurations as observed.
fn observe(
    carried: Vec<(Config, Rc<History>)>,
    events: std::ops::Range<u32>,
    visible: &[Visible],
    configs: &mut Configs<'_>,
) -> Result<Continued, TooManyStates> {
    let mut continued = Continued { next: Vec::new(), violation: None };
    for (mut config, history) in carried {
        for step in visible {
            config = configs.step(config, step.action)?;
            if config == BAD {
                continued.violation = Some((Rc::clone(&history), step.event));
                break;
            }
        }
        if config != BAD && continued.next.iter().all(|(c, _)| *c != config) {
            let events = Stretch::Observed(events.clone());
            continued.next.push((config, Rc::new(History { before: Some(history), events })));
        }
    }
    Ok(continued)
}

/// The whole order: the events that led to the window, then the run of the window. Events that
/// happened early are not repeated.
fn flatten(history: &Rc<History>, violating: &[u32]) -> Vec<u64> {
    let mut stretches = Vec::new();
    let mut at = Some(history);
    while let Some(one) = at {
        stretches.push(&one.events);
        at = one.before.as_ref();
    }
    let mut order = Vec::new();
    let mut happened: HashSet<u32, RandomState> = HashSet::default();
    let mut push = |event: u32| {
        if happened.insert(event) {
            order.push(u64::from(event));
        }
    };
    for stretch in stretches.into_iter().rev() {
        match stretch {
            Stretch::Observed(range) => range.clone().for_each(&mut push),
            Stretch::Reordered(events) => events.iter().copied().for_each(&mut push),
        }
    }
    violating.iter().copied().for_each(&mut push);
    order
}

/// The search for one binding of a property.
struct OneBinding<'s, 'h> {
    search: &'s mut PropertySearch<'h>,
    watch: &'s mut PropertySteps<Relevant>,
    troubles: &'s mut EvalWarnings,
    /// What the latest search came to.
    latest: CorrectVerdict,
}

/// What the search for one binding came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CorrectVerdict {
    searched: u64,
    windows: u64,
    nodes: u64,
    is_cut: bool,
    is_partial: bool,
    is_out_of_memory: bool,
    /// The problems with values.
    troubles: EvalWarnings,
    found: Option<ViolatingOrder>,
}

impl SearchStats {
    /// Takes the flags of all searches away, so that those of the next are its own.
    fn take_flags(&mut self) -> [bool; 3] {
        let flags = [&mut self.is_cut, &mut self.is_partial, &mut self.is_out_of_memory];
        flags.map(std::mem::take)
    }

    fn add_flags(&mut self, flags: [bool; 3]) {
        self.is_cut |= flags[0];
        self.is_partial |= flags[1];
        self.is_out_of_memory |= flags[2];
    }
}

impl BindingSearch<Relevant> for OneBinding<'_, '_> {
    fn is_over(&mut self) -> bool {
        self.search.is_over()
    }

    fn search(
        &mut self,
        steps: &[(Relevant, u64)],
        _: usize,
    ) -> Result<Option<(u64, Vec<u64>)>, TooManyStates> {
        let tally = &mut *self.search.tally;
        let before = (tally.searched, tally.windows, tally.nodes);
        let flags = tally.take_flags();
        let mut troubles = EvalWarnings::default();
        let found = self.search.binding(self.watch, steps, &mut troubles);
        let tally = &mut *self.search.tally;
        let [is_cut, is_partial, is_out_of_memory] = tally.take_flags();
        self.latest = CorrectVerdict {
            searched: tally.searched - before.0,
            windows: tally.windows - before.1,
            nodes: tally.nodes - before.2,
            is_cut,
            is_partial,
            is_out_of_memory,
            troubles,
            found: None,
        };
        tally.add_flags([is_cut, is_partial, is_out_of_memory]);
        tally.add_flags(flags);
        self.troubles.add(&self.latest.troubles);
        Ok(found?.map(|order| (0, order)))
    }

    fn verdict(&mut self, found: &Option<ViolatingOrder>) -> Option<BindingVerdict> {
        let verdict = CorrectVerdict { found: found.clone(), ..self.latest.clone() };
        (!self.search.is_over()).then_some(BindingVerdict::Correct(verdict))
    }

    fn recall(&mut self, verdict: &BindingVerdict) -> Option<Option<ViolatingOrder>> {
        let BindingVerdict::Correct(verdict) = verdict else { return None };
        let tally = &mut *self.search.tally;
        let nodes = tally.nodes.saturating_add(verdict.nodes);
        if nodes >= self.search.limits.nodes {
            return None;
        }
        tally.nodes = nodes;
        tally.searched += verdict.searched;
        tally.windows += verdict.windows;
        tally.add_flags([verdict.is_cut, verdict.is_partial, verdict.is_out_of_memory]);
        self.troubles.add(&verdict.troubles);
        Some(verdict.found.clone())
    }

    fn load(&self) -> f64 {
        self.watch.property.monitor.load()
    }
}

/// Statistics of the search for one property.
#[derive(Default)]
struct SearchStats {
    bindings: Option<u64>,
    searched: u64,
    windows: u64,
    nodes: u64,
    found: u64,
    skipped: bool,
    is_cut: bool,
    /// Some window was not the whole trace.
    is_partial: bool,
    is_out_of_time: bool,
    is_out_of_nodes: bool,
    is_out_of_memory: bool,
    trouble: Option<String>,
    notes: Vec<String>,
}

impl SearchStats {
    fn analysed(&self, watch: &PropertySteps<Relevant>) -> Analysed {
        let mut stats = Vec::new();
        if let Some(bindings) = self.bindings {
            stats.push(("bindings", Stat::Count(bindings)));
        }
        stats.push(("windows", Stat::Count(self.windows)));
        stats.push(("states", Stat::Count(self.nodes)));
        Analysed {
            name: CORRECT,
            property: Some(watch.property.name.clone()),
            outcome: self.outcome(watch),
            conclusion: Conclusion::Other,
            statement: self.statement(watch),
            // The lattice reports missing values.
            notes: Vec::new(),
            stats,
        }
    }

    /// How much of the correct reorderings was searched.
    fn outcome(&self, watch: &PropertySteps<Relevant>) -> Outcome {
        match self {
            _ if self.is_out_of_time => Outcome::TimeLimit,
            _ if self.is_out_of_memory => Outcome::MemoryLimit,
            _ if self.is_out_of_nodes || self.is_cut || self.trouble.is_some() => {
                Outcome::StateLimit
            }
            _ if watch.cut_off => Outcome::EventLimit,
            _ if !self.notes.is_empty() => Outcome::UnknownValues,
            _ if self.is_partial || self.skipped => Outcome::Window,
            _ if self.found == 0 && watch.silence().is_some() => Outcome::NothingRelevant,
            _ => Outcome::Exhausted,
        }
    }

    fn statement(&self, watch: &PropertySteps<Relevant>) -> String {
        let outcome = self.outcome(watch);
        let is_all = outcome == Outcome::Exhausted;
        let statement = match self.found {
            0 if !self.notes.is_empty() => {
                "nothing is claimed of correct reorderings, since values are missing".to_owned()
            }
            0 if is_all => "no violation in any correct reordering".to_owned(),
            0 if outcome == Outcome::NothingRelevant => watch.silence().unwrap_or_default(),
            0 => "no violation found in correct reorderings, as far as was searched".to_owned(),
            1 => "violated in a correct reordering".to_owned(),
            n => format!("violated by {n} bindings in correct reorderings"),
        };
        let reasons = [
            (self.is_out_of_time, "there was no time left"),
            (self.is_out_of_nodes, "the search became too large"),
            (self.is_out_of_memory, "its states took more memory than --max-memory allows"),
            (self.is_cut && !self.is_out_of_nodes, "of each level only the nearest states"),
            (self.is_partial, "window by window"),
            (watch.cut_off, "only the first events were kept"),
        ];
        as_far_as(statement, &reasons, self.trouble.as_deref())
    }
}
