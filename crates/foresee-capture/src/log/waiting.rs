//! Whether threads could wait forever for semaphores and barriers, in another order of their steps.
//!
//! The check for deadlocks knows rings of locks, joins and
//! conditions. Here the question is only whether a thread that is stuck at a semaphore or a barrier
//! can be excluded; if it cannot, the trace is not complete.
//!
//! Something *leads to* something else if what a thread provides of the first may have to wait for
//! the second: a lock leads to what its holder asks for, a semaphore to what a thread asks for before
//! it raises the semaphore, a thread's end to everything that the thread asks for. Suppose that
//! threads are stuck. Each of them waits for something that another stuck thread would still
//! provide, so following what leads to what ends in a cycle. Some things are certain: the wait for
//! the end of a thread, for a barrier, for a condition (as far as the deadlock check has proved it),
//! and for a semaphore that only one thread lowers, or a queue that only one receives from. Such a thread waits for a step that came earlier
//! in the run than its own, so there is no cycle of certain things alone. Others can be taken by the
//! wrong thread: locks, and semaphores that several threads lower. So if none of these is on a cycle
//! with a semaphore or a barrier, no thread is stuck at one.
//!
//! Two uses are safe although they are such cycles, because permits are not lost: a pool, which each
//! thread lowers and raises in turn; and two semaphores of which some threads lower the one and raise
//! the other, and the other threads the reverse, as for a buffer with full and empty places. Each
//! thread that waits has given back what it took. So there are at least as many permits as in the
//! beginning; one semaphore is not empty. It is not the one that is waited for; but then no thread
//! waits for the other one, and all permits that come from there have come.

use foresee_support::components::{components_of_pairs, members};

use super::{HashMap, HashSet};

/// Something that threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Thing {
    Lock(u64),
    Semaphore(u64),
    /// A set of System V; nobody knows which of its semaphores.
    Set(u64),
    /// A queue of System V.
    Queue(u64),
    Barrier(u64),
    Condition(u64),
    End(u32),
}

impl Thing {
    /// Whether the deadlock check does not know of it.
    fn is_special(self) -> bool {
        matches!(self, Thing::Semaphore(_) | Thing::Set(_) | Thing::Queue(_) | Thing::Barrier(_))
    }
}

/// The maximum number of pairs of things of which one leads to the other.
const MOST_PAIRS: usize = 1 << 18;

#[derive(Debug, Default)]
struct Waiter {
    /// What it holds, the latest last.
    holds: Vec<u32>,
    /// What it has asked for, each thing once.
    asked: Vec<u32>,
    has_asked: HashSet<u32>,
    /// How much of that was known when it last provided a thing.
    told: HashMap<u32, usize>,
    /// How many permits of each semaphore it has lowered and raised.
    permits: HashMap<u32, i64>,
    /// Which semaphore it has lowered and not yet raised another for, and what it raises for what.
    open: Option<u32>,
    pairs: HashSet<(u32, u32)>,
    /// It lowers a semaphore again before it has raised one.
    is_nested: bool,
}

/// What leads to what.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    things: Vec<Thing>,
    numbers: HashMap<Thing, u32>,
    pairs: HashSet<(u32, u32)>,
    waiters: HashMap<u32, Waiter>,
    /// The initial counts of semaphores, as far as they are known.
    initial: HashMap<u32, u64>,
    /// The threads that lower each semaphore, or receive from a queue.
    lowered: HashMap<u32, HashSet<u32>>,
    is_cut: bool,
}

impl Waiting {
    fn number(&mut self, thing: Thing) -> u32 {
        let next = self.things.len() as u32;
        let number = *self.numbers.entry(thing).or_insert(next);
        if number == next {
            self.things.push(thing);
        }
        number
    }

    fn leads(&mut self, from: u32, to: u32) {
        if self.pairs.len() >= MOST_PAIRS {
            self.is_cut = true;
        } else {
            self.pairs.insert((from, to));
        }
    }

    /// A thread waits until it gets something.
    pub(super) fn asks(&mut self, thread: u32, thing: Thing) {
        let number = self.number(thing);
        let waiter = self.waiters.entry(thread).or_default();
        if waiter.has_asked.insert(number) {
            waiter.asked.push(number);
        }
        // Locks that are taken again are no reason to wait.
        let holds = waiter.holds.clone();
        for held in holds {
            if held != number {
                self.leads(held, number);
            }
        }
    }

    /// A thread has a lock now.
    pub(super) fn has(&mut self, thread: u32, lock: u64) {
        let number = self.number(Thing::Lock(lock));
        self.waiters.entry(thread).or_default().holds.push(number);
    }

    /// A thread gives a lock back.
    pub(super) fn gives(&mut self, thread: u32, lock: u64) {
        let number = self.number(Thing::Lock(lock));
        let holds = &mut self.waiters.entry(thread).or_default().holds;
        if let Some(at) = holds.iter().rposition(|&held| held == number) {
            holds.remove(at);
        }
    }

    /// A thread provides something that others wait for.
    pub(super) fn provides(&mut self, thread: u32, thing: Thing) {
        let number = self.number(thing);
        let waiter = self.waiters.entry(thread).or_default();
        let told = waiter.told.entry(number).or_default();
        let from = std::mem::replace(told, waiter.asked.len());
        let new = waiter.asked[from..].to_vec();
        new.into_iter().for_each(|asked| self.leads(number, asked));
    }

    /// A semaphore begins with a count.
    pub(super) fn begins(&mut self, semaphore: u64, count: u64) {
        let number = self.number(Thing::Semaphore(semaphore));
        let least = self.initial.entry(number).or_insert(count);
        *least = count.min(*least);
    }

    /// A thread lowers a semaphore; `waits` if it would have waited for that.
    pub(super) fn lowers(&mut self, thread: u32, semaphore: u64, waits: bool) {
        let number = self.number(Thing::Semaphore(semaphore));
        if waits {
            self.asks(thread, Thing::Semaphore(semaphore));
        }
        self.lowered.entry(number).or_default().insert(thread);
        let waiter = self.waiters.entry(thread).or_default();
        *waiter.permits.entry(number).or_default() -= 1;
        waiter.is_nested |= waiter.open.replace(number).is_some();
    }

    /// A thread receives from a queue.
    pub(super) fn receives(&mut self, thread: u32, queue: u64) {
        let number = self.number(Thing::Queue(queue));
        self.asks(thread, Thing::Queue(queue));
        self.lowered.entry(number).or_default().insert(thread);
    }

    /// A thread raises a semaphore.
    pub(super) fn raises(&mut self, thread: u32, semaphore: u64) {
        let number = self.number(Thing::Semaphore(semaphore));
        self.provides(thread, Thing::Semaphore(semaphore));
        let waiter = self.waiters.entry(thread).or_default();
        *waiter.permits.entry(number).or_default() += 1;
        if let Some(open) = waiter.open.take() {
            waiter.pairs.insert((open, number));
        }
    }

    /// Whether a semaphore, or two, are used as a pool or a buffer.
    fn is_conserved(&self, component: &[u32]) -> bool {
        let is_one = |&number: &u32| matches!(self.things[number as usize], Thing::Semaphore(_));
        let initial = |number: &u32| self.initial.get(number).copied();
        if component.len() > 2 || !component.iter().all(is_one) {
            return false;
        }
        let Some(counts) = component.iter().map(initial).collect::<Option<Vec<u64>>>() else {
            return false;
        };
        let uses = |waiter: &&Waiter| component.iter().any(|n| waiter.permits.contains_key(n));
        let is_fair = |waiter: &Waiter| {
            let inside =
                |pair: &(u32, u32)| component.contains(&pair.0) && component.contains(&pair.1);
            !waiter.is_nested
                && waiter.open.is_none_or(|open| !component.contains(&open))
                && waiter.pairs.iter().all(inside)
                && waiter.pairs.len() <= 1
                && waiter.pairs.iter().all(|pair| component.len() == 1 || pair.0 != pair.1)
        };
        counts.iter().sum::<u64>() > 0 && self.waiters.values().filter(uses).all(is_fair)
    }

    /// The semaphores and barriers at which a thread might be stuck; `None` if there is too much to tell.
    pub(super) fn doubtful(&mut self) -> Option<Vec<Thing>> {
        if !self.things.iter().any(|thing| thing.is_special()) {
            return Some(Vec::new());
        }
        let threads: Vec<u32> = self.waiters.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.provides(thread, Thing::End(thread)));
        if self.is_cut {
            return None;
        }
        let pairs: Vec<(u32, u32)> = self.pairs.iter().copied().collect();
        let mut doubtful = Vec::new();
        for component in members(&components_of_pairs(self.things.len(), &pairs)) {
            let is_cycle = component.len() > 1
                || component.first().is_some_and(|&one| self.pairs.contains(&(one, one)));
            let is_contended = |&number: &u32| match self.things[number as usize] {
                Thing::Lock(_) | Thing::Set(_) => true,
                Thing::Semaphore(_) | Thing::Queue(_) => {
                    self.lowered.get(&number).is_some_and(|by| by.len() > 1)
                }
                _ => false,
            };
            if is_cycle && component.iter().any(is_contended) && !self.is_conserved(&component) {
                let things = component.iter().map(|&number| self.things[number as usize]);
                doubtful.extend(things.filter(|thing| thing.is_special()));
            }
        }
        Some(doubtful)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        Lower(usize),
        Raise(usize),
        Acquire(usize),
        Release(usize),
        Arrive,
        Join(usize),
    }

    /// Threads with semaphores, locks and a barrier for some of them.
    #[derive(Debug)]
    struct Program {
        initial: Vec<u8>,
        threads: Vec<Vec<Step>>,
        meet: usize,
    }

    /// The state of a program: the place of each thread, counts, holders of locks, and how many have arrived.
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct State {
        at: Vec<usize>,
        counts: Vec<u8>,
        holders: [Option<usize>; 2],
        /// Threads that have arrived and not gone on, and how often all have met.
        arrived: Vec<usize>,
    }

    impl Program {
        /// Threads of a few kinds, so that many programs run to their ends. Locks are nested in one order only.
        fn random(random: &mut fastrand::Rng) -> Program {
            let semaphores = random.usize(1..=2);
            let initial = (0..semaphores).map(|_| random.u8(0..=2)).collect();
            let count = random.usize(2..=3);
            let mut threads: Vec<Vec<Step>> = Vec::new();
            for t in 0..count {
                let mut steps = Vec::new();
                for _ in 0..random.usize(1..=3) {
                    let s = random.usize(0..semaphores);
                    let other = random.usize(0..semaphores);
                    match random.u8(0..9) {
                        0 => steps.extend([Step::Lower(s), Step::Raise(s)]),
                        1 => steps.extend([Step::Lower(s), Step::Raise(other)]),
                        2 => steps.push(Step::Lower(s)),
                        3 | 4 => steps.push(Step::Raise(s)),
                        5 => steps.extend([Step::Acquire(0), Step::Lower(s), Step::Release(0)]),
                        6 => steps.extend([Step::Acquire(0), Step::Release(0), Step::Raise(s)]),
                        7 => steps.extend([
                            Step::Acquire(0),
                            Step::Acquire(1),
                            Step::Release(1),
                            Step::Raise(s),
                            Step::Release(0),
                        ]),
                        _ if t > 0 => steps.push(Step::Join(random.usize(0..t))),
                        _ => steps.push(Step::Raise(s)),
                    }
                }
                if random.u8(0..3) == 0 {
                    let at = random.usize(0..=steps.len());
                    steps.insert(at, Step::Arrive);
                }
                threads.push(steps);
            }
            let arrives = |steps: &&Vec<Step>| steps.contains(&Step::Arrive);
            let meet = threads.iter().filter(arrives).count();
            Program { initial, threads, meet }
        }

        fn start(&self) -> State {
            let (at, counts) = (vec![0; self.threads.len()], self.initial.clone());
            State { at, counts, holders: [None; 2], arrived: Vec::new() }
        }

        /// The state after the next step of a thread, if that is possible.
        fn next(&self, state: &State, t: usize) -> Option<State> {
            let mut state = state.clone();
            let step = *self.threads[t].get(state.at[t])?;
            match step {
                Step::Lower(s) => state.counts[s] = state.counts[s].checked_sub(1)?,
                Step::Raise(s) => state.counts[s] += 1,
                Step::Acquire(l) if state.holders[l].is_some() => return None,
                Step::Acquire(l) => state.holders[l] = Some(t),
                Step::Release(l) => state.holders[l] = None,
                // Arriving and going on are two steps.
                Step::Arrive if !state.arrived.contains(&t) => {
                    state.arrived.push(t);
                    state.arrived.sort_unstable();
                    return Some(state);
                }
                Step::Arrive if state.arrived.len() < self.meet => return None,
                Step::Arrive => {}
                Step::Join(u) if state.at[u] < self.threads[u].len() => return None,
                Step::Join(_) => {}
            }
            state.at[t] += 1;
            Some(state)
        }

        fn is_over(&self, state: &State) -> bool {
            (0..state.at.len()).all(|t| state.at[t] == self.threads[t].len())
        }

        fn run(&self, random: &mut fastrand::Rng) -> Option<Vec<(usize, Step)>> {
            let (mut state, mut run) = (self.start(), Vec::new());
            loop {
                let next: Vec<(usize, State)> = (0..self.threads.len())
                    .filter_map(|t| Some((t, self.next(&state, t)?)))
                    .collect();
                if next.is_empty() {
                    return self.is_over(&state).then_some(run);
                }
                let (t, after) = next[random.usize(0..next.len())].clone();
                let step = self.threads[t][state.at[t]];
                if step != Step::Arrive || !state.arrived.contains(&t) {
                    run.push((t, step));
                }
                state = after;
            }
        }

        /// Whether threads can be stuck.
        fn can_be_stuck(&self) -> bool {
            let mut seen = BTreeSet::from([self.start()]);
            let mut open = vec![self.start()];
            while let Some(state) = open.pop() {
                let next: Vec<State> =
                    (0..self.threads.len()).filter_map(|t| self.next(&state, t)).collect();
                if next.is_empty() && !self.is_over(&state) {
                    return true;
                }
                open.extend(next.into_iter().filter(|state| seen.insert(state.clone())));
            }
            false
        }
    }

    #[test]
    fn where_nothing_is_doubtful_no_thread_is_ever_stuck() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut runs, mut sure, mut stuck) = (0, 0, 0);
        while runs < 10_000 {
            let program = Program::random(&mut random);
            let Some(run) = program.run(&mut random) else { continue };
            runs += 1;
            let mut waiting = Waiting::default();
            for (s, &count) in program.initial.iter().enumerate() {
                waiting.begins(s as u64, count.into());
            }
            for (t, step) in run {
                let t = t as u32;
                match step {
                    Step::Lower(s) => waiting.lowers(t, s as u64, true),
                    Step::Raise(s) => waiting.raises(t, s as u64),
                    Step::Acquire(l) => {
                        waiting.asks(t, Thing::Lock(l as u64));
                        waiting.has(t, l as u64);
                    }
                    Step::Release(l) => waiting.gives(t, l as u64),
                    Step::Arrive => {
                        waiting.provides(t, Thing::Barrier(0));
                        waiting.asks(t, Thing::Barrier(0));
                    }
                    Step::Join(u) => waiting.asks(t, Thing::End(u as u32)),
                }
            }
            let is_sure = waiting.doubtful().is_some_and(|doubtful| doubtful.is_empty());
            let is_stuck = program.can_be_stuck();
            assert!(!(is_sure && is_stuck), "{program:?}");
            sure += u32::from(is_sure);
            stuck += u32::from(is_stuck);
        }
        assert!(sure > 3_000, "{sure}");
        assert!(stuck > 500, "{stuck}");
    }

    #[test]
    fn pools_and_buffers_are_safe() {
        // Two threads and a pool with one permit each; then one that takes two.
        let pool = |is_nested: bool| {
            let mut waiting = Waiting::default();
            waiting.begins(0, 2);
            for t in 0..2 {
                waiting.lowers(t, 0, true);
                if is_nested {
                    waiting.lowers(t, 0, true);
                    waiting.raises(t, 0);
                }
                waiting.raises(t, 0);
            }
            waiting.doubtful()
        };
        assert_eq!(pool(false), Some(Vec::new()));
        assert_eq!(pool(true), Some(vec![Thing::Semaphore(0)]));
        // Two threads fill a buffer, and two empty it.
        let mut buffer = Waiting::default();
        buffer.begins(0, 0);
        buffer.begins(1, 4);
        for t in [0, 1, 2, 3] {
            let (from, to) = if t < 2 { (1, 0) } else { (0, 1) };
            for _ in 0..3 {
                buffer.lowers(t, from, true);
                buffer.raises(t, to);
            }
        }
        assert_eq!(buffer.doubtful(), Some(Vec::new()));
    }
}
