//! Whether a short trace has a correct reordering with some events in it, by a look at every state.
//!
//! The searches with slices find nearly everything, but prove little: where programs order their
//! steps by what atomics hold, as in Peterson's lock or a counter of references, only a look at all
//! states shows that there is no such reordering. In a short trace there are few enough of them.
//!
//! A state is as in `node`, except that it has the last write of each variable itself, since a read
//! may accept writes that another one distinguishes. A write that no read to come accepts counts
//! as none. Steps that change nothing for other threads happen at once.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_causality::judge::Reads;

use super::window::{Item, Window};
use crate::reorder::{Goal, Kind, NONE, Requirements};

/// The maximum number of events of a short trace.
pub(crate) const MOST_EVENTS: usize = 2048;
/// The maximum number of waits and attempts that a window tells apart.
const MOST_WAITS: usize = 60;
/// The maximum number of variables and locks.
const MOST_OBJECTS: usize = 256;

/// A write that no read to come accepts.
const DEAD: u32 = u32::MAX - 1;

/// What a look at all states has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The goal is reached by these events.
    Reached(Vec<u32>),
    /// No reordering reaches it.
    Unreachable,
    /// There are too many states.
    TooMany,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// For each thread, how many of its events have happened.
    counts: Box<[u16]>,
    /// For each variable, the last write, or [`NONE`] for none, or [`DEAD`].
    writers: Box<[u32]>,
    /// The threads, as bits, whose last read saw another write.
    stopped: u64,
    /// The ends of waits, as bits, whose notification came before the wait began.
    lost: u64,
    /// How many of the goal's events have happened.
    done: u16,
}

/// A short trace, ready to be looked at.
pub(crate) struct Exhaustive<'r> {
    requirements: &'r Requirements,
    reads: Reads,
    window: Window,
    places: HashMap<u32, (usize, u16), RandomState>,
    /// For each variable, the reads: thread, place, event.
    readers: Vec<Vec<(usize, u16, u32)>>,
}

/// What an event does if it happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Can {
    Not,
    Happen,
    /// It reads another value, and the thread stops.
    Stop,
}

impl<'r> Exhaustive<'r> {
    /// `None` if the trace is too long for this.
    pub(crate) fn new(requirements: &'r Requirements, reads: Reads) -> Option<Exhaustive<'r>> {
        if requirements.len() > MOST_EVENTS || reads == Reads::Any {
            return None;
        }
        let end = requirements.len() as u32;
        let unread = vec![NONE; requirements.len()];
        let window = Window::new(requirements, &unread, &[], 0, end);
        let waits = window.threads.iter().flatten().filter(|item| item.wait.is_some()).count();
        if waits > MOST_WAITS || window.threads.len() > 64 || window.variables > MOST_OBJECTS {
            return None;
        }
        let mut places: HashMap<u32, (usize, u16), RandomState> = HashMap::default();
        let mut readers = vec![Vec::new(); window.variables];
        for (t, own) in window.threads.iter().enumerate() {
            for (k, item) in own.iter().enumerate() {
                places.insert(item.event, (t, k as u16));
                if let Some(variable) = item.object.filter(|_| item.kind.reads()) {
                    readers[variable as usize].push((t, k as u16, item.event));
                }
            }
        }
        Some(Exhaustive { requirements, reads, window, places, readers })
    }

    /// Looks for a reordering that reaches a goal, at no more than so many states, which are counted down.
    pub(crate) fn look(&self, goal: &Goal<'_>, left: &mut usize) -> Shown {
        let mut stops: Vec<Option<u16>> = vec![None; self.window.threads.len()];
        for event in goal.next {
            let Some(&(t, k)) = self.places.get(event) else { return Shown::TooMany };
            if stops[t].replace(k).is_some() {
                return Shown::Unreachable;
            }
        }
        if goal.executed.iter().any(|wanted| !self.places.contains_key(&wanted.event)) {
            return Shown::TooMany;
        }
        let looking = Looking { all: self, goal, stops };
        looking.run(left)
    }

    fn accepts(&self, read: u32, write: u32) -> bool {
        write != DEAD
            && (write == self.requirements.partner(read) || self.requirements.is_alike(read, write))
    }

    fn is_taken(&self, state: &State, t: usize, lock: u32, kind: Kind) -> bool {
        let shared = kind == Kind::AcquireShared;
        self.window.users[lock as usize].iter().filter(|&&other| other != t).any(|&other| {
            let held = &self.window.held[other][usize::from(state.counts[other])];
            held.iter().any(|hold| hold.lock == lock && !(shared && hold.shared))
        })
    }
}

/// The search for one goal.
struct Looking<'a, 'r> {
    all: &'a Exhaustive<'r>,
    goal: &'a Goal<'a>,
    /// Where threads have to be.
    stops: Vec<Option<u16>>,
}

impl Looking<'_, '_> {
    fn run(&self, left: &mut usize) -> Shown {
        let start = State {
            counts: vec![0; self.all.window.threads.len()].into(),
            writers: vec![NONE; self.all.window.variables].into(),
            stopped: 0,
            lost: 0,
            done: 0,
        };
        // For each state, the one before it and the events in between.
        let mut ways: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut seen: HashSet<State, RandomState> = HashSet::default();
        let mut open: Vec<(State, usize)> = Vec::new();
        let mut next = vec![(start, Vec::new(), usize::MAX)];
        loop {
            for (mut state, mut path, before) in next.drain(..) {
                self.settle(&mut state, &mut path);
                self.simplify(&mut state);
                if seen.contains(&state) {
                    continue;
                }
                if *left == 0 {
                    return Shown::TooMany;
                }
                *left -= 1;
                let at = ways.len();
                ways.push((before, path));
                if self.is_reached(&state) {
                    return Shown::Reached(way(&ways, at));
                }
                seen.insert(state.clone());
                open.push((state, at));
            }
            let Some((state, at)) = open.pop() else { return Shown::Unreachable };
            for t in 0..state.counts.len() {
                if let Some((item, can)) = self.step(&state, t) {
                    let mut after = state.clone();
                    self.happen(&mut after, t, item, can);
                    next.push((after, vec![item.event], at));
                }
            }
        }
    }

    fn is_reached(&self, state: &State) -> bool {
        let is_there = |(t, stop): (usize, &Option<u16>)| {
            stop.is_none_or(|k| state.counts[t] == k && state.stopped >> t & 1 == 0)
        };
        usize::from(state.done) == self.goal.executed.len()
            && self.stops.iter().enumerate().all(is_there)
    }

    /// The next event of a thread, and what it can do.
    fn step(&self, state: &State, t: usize) -> Option<(&Item, Can)> {
        if state.stopped >> t & 1 == 1 || self.stops[t].is_some_and(|k| state.counts[t] >= k) {
            return None;
        }
        let item = self.all.window.threads[t].get(usize::from(state.counts[t]))?;
        match self.can(state, t, item) {
            Can::Not => None,
            can => Some((item, can)),
        }
    }

    /// Which of the goal's events it is.
    fn wanted(&self, item: &Item) -> Option<usize> {
        self.goal.executed.iter().position(|wanted| wanted.event == item.event)
    }

    fn can(&self, state: &State, t: usize, item: &Item) -> Can {
        let wanted = self.wanted(item);
        if wanted.is_some_and(|place| place != usize::from(state.done)) {
            return Can::Not;
        }
        let happened = |&(other, count): &(usize, u16)| state.counts[other] >= count;
        let stopped = |other: usize| state.stopped >> other & 1 == 1;
        if !item.needs.iter().all(happened)
            || item.joined.is_some_and(stopped)
            || item.wait.is_some_and(|wait| state.lost >> wait & 1 == 1)
        {
            return Can::Not;
        }
        let Some(object) = item.object else { return Can::Happen };
        if item.kind.acquires() && self.all.is_taken(state, t, object, item.kind) {
            return Can::Not;
        }
        if item.kind.reads() && !self.all.accepts(item.event, state.writers[object as usize]) {
            let is_free = wanted.is_some_and(|place| !self.goal.executed[place].keeps_value);
            let may_stop = self.all.reads == Reads::Terminal && item.kind == Kind::Read;
            return if is_free && may_stop { Can::Stop } else { Can::Not };
        }
        Can::Happen
    }

    fn happen(&self, state: &mut State, t: usize, item: &Item, can: Can) {
        state.counts[t] += 1;
        state.done += u16::from(self.wanted(item).is_some());
        for &(other, begin, wait) in &item.ends {
            if state.counts[other] <= begin {
                state.lost |= 1 << wait;
            }
        }
        if let Some(variable) = item.object.filter(|_| item.kind.writes()) {
            state.writers[variable as usize] = item.event;
        }
        if can == Can::Stop {
            state.stopped |= 1 << t;
        }
    }

    /// Whether nothing that another thread does depends on when this happens, once it can.
    fn is_harmless(&self, item: &Item) -> bool {
        match item.kind {
            _ if self.wanted(item).is_some() => false,
            Kind::Mark | Kind::Join | Kind::Wait | Kind::Busy | Kind::Init | Kind::Read => true,
            Kind::Release | Kind::ReleaseShared | Kind::Notify => item.ends.is_empty(),
            _ => item.object.is_none(),
        }
    }

    /// Lets everything happen that is harmless.
    fn settle(&self, state: &mut State, path: &mut Vec<u32>) {
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for t in 0..state.counts.len() {
                while let Some((item, Can::Happen)) = self.step(state, t)
                    && self.is_harmless(item)
                {
                    path.push(item.event);
                    self.happen(state, t, item, Can::Happen);
                    has_changed = true;
                }
            }
        }
    }

    /// Forgets writes that no read to come accepts.
    fn simplify(&self, state: &mut State) {
        for (variable, readers) in self.all.readers.iter().enumerate() {
            let writer = state.writers[variable];
            let accepts = |&(t, k, read): &(usize, u16, u32)| {
                state.counts[t] <= k && self.all.accepts(read, writer)
            };
            if writer != DEAD && !readers.iter().any(accepts) {
                state.writers[variable] = DEAD;
            }
        }
    }
}

/// The events that lead to a state.
fn way(ways: &[(usize, Vec<u32>)], at: usize) -> Vec<u32> {
    let mut parts = Vec::new();
    let mut at = at;
    while let Some((before, path)) = ways.get(at) {
        parts.push(path);
        at = *before;
    }
    parts.into_iter().rev().flatten().copied().collect()
}
