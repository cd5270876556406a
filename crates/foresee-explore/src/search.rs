//! The search: every state that the facts allow, cheapest first, without running anything.
//!
//! A state that was expanded is a parent, a step and a key of 128 bits; it is rebuilt by taking its path again. The cost of a
//! schedule is its number of detours: steps that are not the default one. A state that is reached more cheaply is opened again,
//! which makes the claim exact that everything up to a number of detours was covered.

use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, Hasher};

use crate::map::{HashMap, HashSet};

use crate::facts::{Act, Facts, MONITORS, NodeId, RUNNING, Tid};
use crate::learn::Arrivals;
use crate::model::{INITIAL, MIXED, Missing, Mode, Move, State, Status};
use crate::monitor::{self, Monitor};
use crate::pairs::{Last, Pairs};
use crate::program::{Place, Schedule, Step, Tail};
use crate::reduce::Reducer;

/// The number of a state.
pub(crate) type Index = u32;

/// Keys are hashes already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, &byte| sum << 8 | u64::from(byte));
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

/// How a search goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Whether detours are counted.
    pub(crate) counts: bool,
    /// The largest number of them.
    pub(crate) most_detours: Option<u32>,
    pub(crate) mode: Mode,
    /// How often a loop that waits is followed where it is not known.
    pub(crate) most_rounds: u32,
}

/// Steps that wait for a fact.
pub(crate) struct Waiting {
    steps: Vec<(Index, Move)>,
    /// The cheapest of them, and its cost.
    pub(crate) cost: u32,
    from: Index,
    step: Move,
    /// When it was first found.
    found: u64,
    /// The pair of places that it would show.
    pair: Option<(Place, Place)>,
    /// How often a run was made for it.
    pub(crate) tries: u32,
}

struct Item {
    index: Index,
    cost: u32,
    state: State,
}

/// A property that does not hold on a path.
pub(crate) struct Violated {
    pub(crate) property: usize,
    pub(crate) from: Index,
    pub(crate) step: Move,
}

/// A search under way.
pub(crate) struct Search {
    pub(crate) way: Way,
    parents: Vec<Index>,
    steps: Vec<Move>,
    costs: Vec<u32>,
    visited: HashMap<u128, Index, BuildHasherDefault<Same>>,
    /// By cost.
    queue: Vec<VecDeque<Item>>,
    queued: usize,
    pool: Vec<State>,
    pub(crate) waiting: HashMap<Missing, Waiting>,
    found: u64,
    /// States in which nothing can move.
    pub(crate) deadlocks: Vec<Index>,
    pub(crate) violated: Vec<Violated>,
    /// Properties for which there is a path already, and those that the last step violates.
    known_violated: HashSet<usize>,
    broken: Vec<usize>,
    /// Threads that are about to fail, each history once.
    pub(crate) failing: Vec<(Index, Move)>,
    known_to_fail: HashSet<NodeId>,
    reducer: Option<Reducer>,
    /// Whether steps were left out because of the bound.
    pub(crate) is_bounded: bool,
    /// The fewest detours after which a loop was cut.
    pub(crate) cut: Option<u32>,
    /// The fewest detours before something that cannot be computed.
    pub(crate) hopeless: Option<u32>,
    moves: Vec<Move>,
    scratch: State,
}

const ROOT: Index = 0;
/// What a known state takes, with its place in the table.
const STATE_BYTES: usize = 64;

impl Search {
    pub(crate) fn new(
        facts: &Facts,
        way: Way,
        reducer: Option<Reducer>,
        monitor: Option<&mut (dyn Monitor + 'static)>,
    ) -> Search {
        let mut search = Search {
            way,
            parents: Vec::new(),
            steps: Vec::new(),
            costs: Vec::new(),
            visited: HashMap::default(),
            queue: Vec::new(),
            queued: 0,
            pool: Vec::new(),
            waiting: HashMap::default(),
            found: 0,
            deadlocks: Vec::new(),
            violated: Vec::new(),
            known_violated: HashSet::default(),
            broken: Vec::new(),
            failing: Vec::new(),
            known_to_fail: HashSet::default(),
            reducer,
            is_bounded: false,
            cut: None,
            hopeless: None,
            moves: Vec::new(),
            scratch: State::default(),
        };
        let mut state = State::start(facts);
        if let Some(monitor) = monitor {
            // What does not hold at the beginning every run shows.
            state.set(MONITORS, monitor.start(&mut search.broken));
            search.known_violated.extend(search.broken.drain(..));
        }
        search.scratch = state;
        search.visit(0, ROOT, Move { thread: 0, choice: 0 });
        search
    }

    pub(crate) fn states(&self) -> usize {
        self.parents.len()
    }

    /// About how many bytes the states take: those that are known, and those that wait.
    pub(crate) fn bytes(&self) -> usize {
        let waiting = size_of::<Item>() + self.scratch.words.len() * size_of::<u32>();
        self.states() * STATE_BYTES + (self.queued + self.pool.len()) * waiting
    }

    pub(crate) fn is_done(&self) -> bool {
        self.queued == 0
    }

    /// The fewest detours of what is not covered.
    pub(crate) fn least_uncovered(&self) -> Option<u32> {
        let queued = self.queue.iter().position(|items| !items.is_empty());
        let waiting = self.waiting.values().map(|waiting| waiting.cost).min();
        let beyond = self.is_bounded.then(|| self.way.most_detours.unwrap_or(0) + 1);
        let all = [queued.map(|cost| cost as u32), waiting, beyond, self.cut, self.hopeless];
        all.into_iter().flatten().min()
    }

    /// Takes the state in `scratch`.
    fn visit(&mut self, cost: u32, parent: Index, step: Move) {
        let index = match self.visited.get(&self.scratch.key) {
            Some(&known) if self.costs[known as usize] <= cost => return,
            Some(&known) => {
                (self.parents[known as usize], self.steps[known as usize]) = (parent, step);
                self.costs[known as usize] = cost;
                known
            }
            None => {
                let index = self.parents.len() as Index;
                self.parents.push(parent);
                self.steps.push(step);
                self.costs.push(cost);
                self.visited.insert(self.scratch.key, index);
                index
            }
        };
        let mut state = self.pool.pop().unwrap_or_default();
        state.copy_from(&self.scratch);
        if self.queue.len() <= cost as usize {
            self.queue.resize_with(cost as usize + 1, VecDeque::new);
        }
        self.queue[cost as usize].push_back(Item { index, cost, state });
        self.queued += 1;
    }

    /// Expands at most this number of states; returns how many it expanded.
    pub(crate) fn work(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
        effort: usize,
    ) -> usize {
        let mut done = 0;
        let mut cost = 0;
        while done < effort && self.queued > 0 {
            while self.queue[cost].is_empty() {
                cost += 1;
            }
            // Without costs the newest comes first, so that few states wait.
            let items = &mut self.queue[cost];
            let item = if self.way.counts { items.pop_front() } else { items.pop_back() };
            let Some(item) = item else { break };
            self.queued -= 1;
            if self.costs[item.index as usize] == item.cost {
                self.expand(facts, monitor.as_deref_mut(), &item);
                done += 1;
            }
            self.pool.push(item.state);
        }
        done
    }

    fn expand(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
        item: &Item,
    ) {
        let mut moves = std::mem::take(&mut self.moves);
        item.state.moves(facts, &mut moves);
        if moves.is_empty() {
            self.check_deadlock(facts, item);
        }
        for &thread in &facts.order {
            if let Some((node, Act::Fail)) = item.state.act(facts, thread)
                && self.known_to_fail.insert(node)
            {
                self.failing.push((item.index, Move { thread: thread as u16, choice: 0 }));
            }
        }
        let default = State::default_move(item.state.get(RUNNING), &moves);
        if let Some(reducer) = &mut self.reducer {
            reducer.keep(facts, &item.state, &mut moves);
        }
        for &step in &moves {
            let cost = item.cost + u32::from(self.way.counts && Some(step) != default);
            self.step(facts, monitor.as_deref_mut(), &item.state, item.index, step, cost);
        }
        self.moves = moves;
    }

    fn step(
        &mut self,
        facts: &mut Facts,
        monitor: Option<&mut (dyn Monitor + 'static)>,
        state: &State,
        index: Index,
        step: Move,
        cost: u32,
    ) {
        if self.way.most_detours.is_some_and(|most| cost > most) {
            self.is_bounded = true;
            return;
        }
        self.scratch.copy_from(state);
        match self.advance(facts, monitor, step) {
            Ok(()) => {
                for property in self.broken.drain(..) {
                    if self.known_violated.insert(property) {
                        self.violated.push(Violated { property, from: index, step });
                    }
                }
                self.visit(cost, index, step);
            }
            Err(missing) => self.wait(facts, missing, cost, index, step),
        }
    }

    /// Takes a step in `scratch`; notes which properties it violates.
    fn advance(
        &mut self,
        facts: &mut Facts,
        monitor: Option<&mut (dyn Monitor + 'static)>,
        step: Move,
    ) -> Result<(), Missing> {
        let state = &mut self.scratch;
        let before = monitor.as_ref().and_then(|_| state.act(facts, Tid::from(step.thread)));
        let told = state.take(facts, step, self.way.mode)?;
        if self.way.counts {
            state.set(RUNNING, u32::from(step.thread) + 1);
        }
        if let (Some(monitor), Some((node, act))) = (monitor, before) {
            self.broken.clear();
            let next = monitor::step(monitor, facts, state, node, act, told, &mut self.broken);
            state.set(MONITORS, next);
        }
        Ok(())
    }

    fn wait(&mut self, facts: &Facts, missing: Missing, cost: u32, index: Index, step: Move) {
        let least = |known: &mut Option<u32>| *known = Some(known.map_or(cost, |k| k.min(cost)));
        match missing.told {
            MIXED => return least(&mut self.hopeless),
            INITIAL => {}
            told => {
                let rounds = facts.repeats(missing.node, told).map_or(0, |repeats| repeats.1);
                if rounds > self.way.most_rounds {
                    return least(&mut self.cut);
                }
            }
        }
        self.found += 1;
        let found = self.found;
        let waiting = self.waiting.entry(missing).or_insert_with(|| Waiting {
            steps: Vec::new(),
            cost,
            from: index,
            step,
            found,
            pair: None,
            tries: 0,
        });
        waiting.steps.push((index, step));
        if cost < waiting.cost {
            (waiting.cost, waiting.from, waiting.step) = (cost, index, step);
            waiting.pair = None;
        }
    }

    /// Nothing can move: a deadlock, unless all have ended, or a thread stands where the process ends.
    fn check_deadlock(&mut self, facts: &Facts, item: &Item) {
        let threads = || 0..facts.threads.len() as Tid;
        let is_alive = |thread| matches!(item.state.status(facts, thread), Status::At(_));
        if threads().any(is_alive) && !threads().any(|thread| item.state.is_stuck(facts, thread)) {
            self.deadlocks.push(item.index);
        }
    }

    /// The steps from the beginning to a state.
    pub(crate) fn path(&self, mut index: Index) -> Vec<Move> {
        let mut path = Vec::new();
        while index != ROOT {
            path.push(self.steps[index as usize]);
            index = self.parents[index as usize];
        }
        path.reverse();
        path
    }

    /// The state again that was expanded once, in `scratch`.
    fn rebuild(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
        index: Index,
    ) {
        self.scratch = State::start(facts);
        if let Some(monitor) = monitor.as_deref_mut() {
            let start = monitor.start(&mut self.broken);
            self.scratch.set(MONITORS, start);
        }
        for step in self.path(index) {
            // What was known stays known.
            let _ = self.advance(facts, monitor.as_deref_mut(), step);
        }
    }

    /// Takes the steps again whose facts are known now; says how many facts that were.
    pub(crate) fn learnt(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
    ) {
        let known: Vec<Missing> =
            self.waiting.keys().copied().filter(|missing| is_known(facts, *missing)).collect();
        let mut known: Vec<Waiting> =
            known.iter().filter_map(|missing| self.waiting.remove(missing)).collect();
        // The order in which they were found, so that a search can be repeated.
        known.sort_unstable_by_key(|waiting| waiting.found);
        let mut moves = Vec::new();
        for waiting in known {
            for (index, step) in waiting.steps {
                self.rebuild(facts, monitor.as_deref_mut(), index);
                let state = std::mem::take(&mut self.scratch);
                state.moves(facts, &mut moves);
                let default = State::default_move(state.get(RUNNING), &moves);
                let detour = u32::from(self.way.counts && Some(step) != default);
                let cost = self.costs[index as usize] + detour;
                self.step(facts, monitor.as_deref_mut(), &state, index, step, cost);
            }
        }
    }

    /// The best missing facts for the next runs: an unseen pair of places first, then the fewest detours.
    pub(crate) fn best(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
        pairs: &Pairs,
        count: usize,
        most_tries: u32,
    ) -> Vec<Missing> {
        let new: Vec<(Missing, Index, Move)> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.pair.is_none())
            .map(|(&missing, waiting)| (missing, waiting.from, waiting.step))
            .collect();
        for (missing, from, step) in new {
            let pair = self.pair(facts, monitor.as_deref_mut(), from, step);
            if let Some(waiting) = self.waiting.get_mut(&missing) {
                waiting.pair = Some(pair);
            }
        }
        let mut all: Vec<(bool, u32, u64, Missing)> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.tries < most_tries)
            .map(|(&missing, waiting)| {
                let is_seen = waiting.pair.is_some_and(|pair| pairs.is_seen(pair));
                (is_seen, waiting.cost, waiting.found, missing)
            })
            .collect();
        let count = count.min(all.len());
        if count > 0 && count < all.len() {
            all.select_nth_unstable(count - 1);
        }
        all.truncate(count);
        all.sort_unstable();
        all.into_iter().map(|(_, _, _, missing)| missing).collect()
    }

    /// The pair of places that a step would show.
    fn pair(
        &mut self,
        facts: &mut Facts,
        mut monitor: Option<&mut (dyn Monitor + 'static)>,
        from: Index,
        step: Move,
    ) -> (Place, Place) {
        let mut last = Last::default();
        self.rebuild(facts, monitor.as_deref_mut(), ROOT);
        for before in self.path(from) {
            if let Some((node, act)) = self.scratch.act(facts, Tid::from(before.thread)) {
                last.write(facts, act, facts.place(node));
            }
            let _ = self.advance(facts, monitor.as_deref_mut(), before);
        }
        match self.scratch.act(facts, Tid::from(step.thread)) {
            Some((node, act)) => (facts.place(node), last.seen_by(facts, act)),
            None => (Place(0), Place(0)),
        }
    }

    /// The steps of the run that shows a missing fact.
    pub(crate) fn target(&mut self, missing: Missing) -> Option<Vec<Move>> {
        let waiting = self.waiting.get_mut(&missing)?;
        waiting.tries += 1;
        let (from, step) = (waiting.from, waiting.step);
        let mut path = self.path(from);
        path.push(step);
        Some(path)
    }
}

/// Whether a fact is known now.
pub(crate) fn is_known(facts: &Facts, missing: Missing) -> bool {
    match missing.told {
        INITIAL => facts.memory.initial(missing.node).is_some(),
        MIXED => false,
        told => {
            let next = facts.edge(missing.node, told);
            let is_child_known = facts
                .edge(missing.node, crate::facts::CHILD)
                .is_none_or(|child| facts.act(child).is_some());
            next.is_some_and(|next| facts.act(next).is_some()) && is_child_known
        }
    }
}

/// A path as a schedule for a run, and its number of detours.
pub(crate) fn schedule(
    facts: &mut Facts,
    mode: Mode,
    path: &[Move],
    tail: Tail,
    most_operations: usize,
) -> (Schedule, u32) {
    let mut state = State::start(facts);
    let mut arrivals = Arrivals::default();
    let (mut steps, mut moves) = (Vec::with_capacity(path.len()), Vec::new());
    let (mut detours, mut running) = (0, 0);
    for &step in path {
        state.moves(facts, &mut moves);
        detours += u32::from(State::default_move(running, &moves) != Some(step));
        running = u32::from(step.thread) + 1;
        let mut choice = 0;
        if let Some((_, act)) = state.act(facts, Tid::from(step.thread)) {
            choice = arrivals.choice(act, step);
            arrivals.step(act, step);
        }
        steps.push(Step { thread: u32::from(step.thread), choice });
        let _ = state.take(facts, step, mode);
    }
    let threads = facts.threads.iter().map(|thread| thread.name.clone()).collect();
    (Schedule { threads, steps, tail, most_operations }, detours)
}
