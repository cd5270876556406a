//! Correct reorderings: everything that could have happened instead, as far as one run shows.
//!
//! A correct reordering takes a prefix of each thread and puts the events in any order in which
//! critical sections of a lock exclude each other, fork, join and notification keep their order,
//! and every read sees the write it saw in the trace or another one of the same value, if both
//! values are known. Each thread then gets the same inputs as in the trace, so it acts as it did
//! there. Unlike in the Mazurkiewicz order, critical sections can be swapped and events can be
//! missing.
//!
//! With terminal reads, the last event of a thread may also be a read that sees another value: the
//! thread takes no further step. A read-modify-write always finds its value, because it would
//! otherwise write another one.

use std::collections::{BTreeSet, HashSet};
use std::hash::Hash;

use foresee_trace::{Event, Id, LockId, Op, ThreadId, Trace, Value, VarId};

use super::busy::section_in_the_way;
use super::closure::reads_from;
use super::notify::matched_notifications;

/// With more states, the search would not end within the time of a test.
const MAX_STATES: usize = 4_000_000;

/// What reads may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Only the value they saw in the trace.
    Strict,
    /// The last read of a thread may see any value.
    Terminal,
    /// Only the write they saw in the trace, whatever its value.
    Identical,
    /// The last read of a thread may see any write, others only the one they saw.
    IdenticalTerminal,
    /// Any value, and every thread continues as in the trace.
    Any,
}

/// The progress of each thread, and the last writer of each variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// For each thread, the number of its events so far.
    done: Vec<usize>,
    /// For each variable, the last write; `None` for the initial value.
    writer: Vec<Option<usize>>,
    /// The threads whose last read saw another write than in the trace.
    stopped: Vec<bool>,
    /// The ends of waits whose notification came before the wait began: they are impossible.
    lost: BTreeSet<usize>,
}

/// One event of a reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its index in the trace.
    pub event: usize,
    /// Whether it is a read that does not see what it saw in the trace.
    pub other_writer: bool,
}

/// All correct reorderings of a trace.
#[derive(Debug)]
pub struct Reorderings<'t> {
    trace: &'t Trace,
    reads: Reads,
    /// The events of each thread; initial values belong to none.
    threads: Vec<Vec<usize>>,
    /// The place of each event in its thread.
    place: Vec<usize>,
    /// For each thread, the locks it holds (and whether shared) after each number of its events.
    held: Vec<Vec<BTreeSet<(LockId, bool)>>>,
    /// The dependencies of each event besides program order.
    needs: Vec<Vec<usize>>,
    /// For each notification the waits it ends: their beginnings and their ends.
    ended: Vec<Vec<(usize, usize)>>,
    saw: Vec<Option<usize>>,
    values: Values,
    /// For each failed try-lock, the end of the critical section that blocked it.
    until: Vec<Option<usize>>,
    variables: usize,
}

impl<'t> Reorderings<'t> {
    /// The correct reorderings of a well-formed trace.
    pub fn new(trace: &'t Trace, reads: Reads) -> Self {
        let events = &trace.events;
        let steps = || events.iter().enumerate().filter(|(_, e)| e.op() != Op::Init);
        let thread_count = steps()
            .map(|(_, e)| match e.op() {
                Op::Fork | Op::Join => e.thread().max(e.other()).index() + 1,
                _ => e.thread().index() + 1,
            })
            .max()
            .unwrap_or(0);
        let mut threads = vec![Vec::new(); thread_count];
        let mut place = vec![0; events.len()];
        for (i, event) in steps() {
            let own: &mut Vec<usize> = &mut threads[event.thread().index()];
            place[i] = own.len();
            own.push(i);
        }
        let accesses = steps().filter(|(_, e)| e.op().reads() || e.op().writes());
        let variables = accesses.map(|(_, e)| e.var().index() + 1).max().unwrap_or(0);
        let held = threads.iter().map(|own| held_after(own.iter().map(|&i| &events[i]))).collect();
        let needs = needs(trace, &threads);
        let (ended, saw) = (ended_waits(trace), reads_from(trace));
        let until = |i| section_in_the_way(trace, i).and_then(|(_, end)| end);
        let until = (0..events.len()).map(until).collect();
        let values = Values::new(trace, &saw);
        Reorderings {
            trace,
            reads,
            threads,
            place,
            held,
            needs,
            ended,
            saw,
            values,
            until,
            variables,
        }
    }

    /// The thread's next event in this state, whether or not it is possible.
    pub fn next(&self, state: &State, thread: ThreadId) -> Option<usize> {
        let own = self.threads.get(thread.index())?;
        own.get(state.done[thread.index()]).copied().filter(|_| !state.stopped[thread.index()])
    }

    /// Whether an event has happened.
    pub fn has_happened(&self, state: &State, event: usize) -> bool {
        self.place[event] < state.done[self.trace.events[event].thread().index()]
    }

    /// The last write of a variable; `None` for its initial value.
    pub fn last_writer(&self, state: &State, variable: VarId) -> Option<usize> {
        state.writer.get(variable.index()).copied().flatten()
    }

    /// Whether a thread holds a lock, and if so whether it is shared.
    pub fn holds(&self, state: &State, thread: ThreadId, lock: LockId) -> Option<bool> {
        let held = &self.held[thread.index()][state.done[thread.index()]];
        [false, true].into_iter().find(|&shared| held.contains(&(lock, shared)))
    }

    /// Whether the thread's next event is possible now, if it may see any write.
    fn is_free(&self, state: &State, event: usize) -> bool {
        let it = &self.trace.events[event];
        let happened = |&need: &usize| self.has_happened(state, need);
        let joins_stopped = it.op() == Op::Join && state.stopped[it.other().index()];
        let others_hold = |lock: LockId, shared: bool| {
            (0..self.threads.len()).filter(|&t| t != it.thread().index()).any(|t| {
                let held = &self.held[t][state.done[t]];
                held.contains(&(lock, false)) || !shared && held.contains(&(lock, true))
            })
        };
        let blocked = taken(it).is_some_and(|(lock, shared)| others_hold(lock, shared));
        let is_lost = state.lost.contains(&event);
        let is_over = self.until[event].as_ref().is_some_and(happened);
        self.needs[event].iter().all(happened) && !joins_stopped && !blocked && !is_lost && !is_over
    }

    /// The step that the thread can take now.
    pub fn step(&self, state: &State, thread: ThreadId) -> Option<Step> {
        let event = self.next(state, thread).filter(|&event| self.is_free(state, event))?;
        let it = &self.trace.events[event];
        let is_other = it.op().reads() && !self.reads_the_same(state, event);
        let allowed = match self.reads {
            Reads::Any => true,
            Reads::Terminal | Reads::IdenticalTerminal => !is_other || it.op() != Op::Rmw,
            Reads::Strict | Reads::Identical => !is_other,
        };
        let other_writer = is_other && self.reads != Reads::Any;
        allowed.then_some(Step { event, other_writer })
    }

    /// Whether a read finds in its variable what it found in the trace.
    fn reads_the_same(&self, state: &State, event: usize) -> bool {
        let it = &self.trace.events[event];
        let last = self.last_writer(state, it.var());
        if last == self.saw[event] {
            return true;
        }
        let by_identity = matches!(self.reads, Reads::Identical | Reads::IdenticalTerminal);
        !by_identity && self.values.is_same(self.trace, event, self.saw[event], last)
    }

    fn after(&self, state: &State, step: Step) -> State {
        let event = &self.trace.events[step.event];
        let mut next = state.clone();
        let early = self.ended[step.event].iter().filter(|w| !self.has_happened(state, w.0));
        next.lost.extend(early.map(|&(_, end)| end));
        next.done[event.thread().index()] += 1;
        next.stopped[event.thread().index()] = step.other_writer;
        if event.op().writes() {
            next.writer[event.var().index()] = Some(step.event);
        }
        next
    }

    /// A shortest reordering that leads to a wanted state. Initial values are not listed.
    pub fn reach(&self, mut wanted: impl FnMut(&State) -> bool) -> Option<Vec<usize>> {
        self.search((), |(), _| Some(()), |state, ()| wanted(state))
    }

    /// A shortest reordering that drives a monitor into a bad state. `step` may return `None` if
    /// the event must not happen in this way, for example because its name depends on the value
    /// read.
    pub fn with_monitor<M: Clone + Eq + Hash>(
        &self,
        start: M,
        step: impl FnMut(&M, Step) -> Option<M>,
        mut is_bad: impl FnMut(&M) -> bool,
    ) -> Option<Vec<usize>> {
        self.search(start, step, |_, monitor| is_bad(monitor))
    }

    /// A shortest reordering that leads to a wanted pair of state and monitor state, by
    /// breadth-first search.
    ///
    /// # Panics
    /// If there are too many pairs: the trace is too large for this oracle.
    pub fn search<M: Clone + Eq + Hash>(
        &self,
        start: M,
        mut monitor: impl FnMut(&M, Step) -> Option<M>,
        mut wanted: impl FnMut(&State, &M) -> bool,
    ) -> Option<Vec<usize>> {
        let state = State {
            done: vec![0; self.threads.len()],
            writer: vec![None; self.variables],
            stopped: vec![false; self.threads.len()],
            lost: BTreeSet::new(),
        };
        let mut seen = HashSet::from([(state.clone(), start.clone())]);
        // Each with the event that led to it, and its predecessor.
        let mut found = vec![(state, start, usize::MAX, 0)];
        let mut at = 0;
        while at < found.len() {
            let (state, m, ..) = found[at].clone();
            if wanted(&state, &m) {
                let mut order = Vec::new();
                while at != 0 {
                    order.push(found[at].2);
                    at = found[at].3;
                }
                order.reverse();
                return Some(order);
            }
            for t in 0..self.threads.len() {
                let Some(step) = self.step(&state, ThreadId::new(t)) else { continue };
                let Some(m) = monitor(&m, step) else { continue };
                let next = (self.after(&state, step), m);
                if seen.insert(next.clone()) {
                    found.push((next.0, next.1, step.event, at));
                }
            }
            assert!(found.len() < MAX_STATES, "the trace is too large for exhaustive search");
            at += 1;
        }
        None
    }
}

/// The value that each read found, and the initial value of each variable, if they are known.
#[derive(Debug)]
pub(super) struct Values {
    found: Vec<Option<Value>>,
    initial: Vec<Option<Value>>,
}

impl Values {
    /// From a trace, and the write that each read saw.
    pub(super) fn new(trace: &Trace, saw: &[Option<usize>]) -> Values {
        let events = &trace.events;
        let found: Vec<Option<Value>> = events.iter().map(|e| found(trace, e)).collect();
        let mut initial = vec![None; trace.names.vars.len()];
        let first = events.iter().enumerate().filter(|(i, e)| e.op().reads() && saw[*i].is_none());
        for (i, event) in first.rev() {
            let value = &mut initial[event.var().index()];
            *value = found[i].or(*value);
        }
        for event in events.iter().filter(|e| e.op() == Op::Init) {
            if let Some(value) = initial.get_mut(event.var().index()) {
                *value = trace.pool.values(event).last().copied().or(*value);
            }
        }
        Values { found, initial }
    }

    /// Whether a read that saw one write would find the same value after another one; `None` is the
    /// initial value.
    pub(super) fn is_same(
        &self,
        trace: &Trace,
        read: usize,
        saw: Option<usize>,
        last: Option<usize>,
    ) -> bool {
        let Some(found) = self.found[read].filter(|found| found.stands_for_itself()) else {
            return false;
        };
        let left = |write: Option<usize>| match write {
            Some(write) => trace.pool.values(&trace.events[write]).last().copied(),
            None => self.initial[trace.events[read].var().index()],
        };
        left(saw).is_none_or(|value| value == found) && left(last) == Some(found)
    }
}

/// The value that a read found, if it is known.
fn found(trace: &Trace, event: &Event) -> Option<Value> {
    match (event.op(), &*trace.pool.values(event)) {
        (Op::Rmw, [old, _]) => Some(*old),
        (op, [.., value]) if op != Op::Rmw && op.reads() => Some(*value),
        _ => None,
    }
}

/// The lock that an event acquires, and whether it is shared.
pub(super) fn taken(event: &Event) -> Option<(LockId, bool)> {
    match event.op() {
        Op::Acquire => Some((event.lock(), false)),
        Op::AcquireShared => Some((event.lock(), true)),
        Op::WaitEnd => event.wait_lock().map(|lock| (lock, false)),
        _ => None,
    }
}

/// The lock that an event releases, and whether it was shared.
pub(super) fn given(event: &Event) -> Option<(LockId, bool)> {
    match event.op() {
        Op::Release => Some((event.lock(), false)),
        Op::ReleaseShared => Some((event.lock(), true)),
        Op::WaitBegin => event.wait_lock().map(|lock| (lock, false)),
        _ => None,
    }
}

fn held_after<'e>(own: impl Iterator<Item = &'e Event>) -> Vec<BTreeSet<(LockId, bool)>> {
    let mut held = vec![BTreeSet::new()];
    for event in own {
        let mut now = held.last().cloned().unwrap_or_default();
        now.extend(taken(event));
        if let Some(hold) = given(event) {
            now.remove(&hold);
        }
        held.push(now);
    }
    held
}

/// For each notification the beginnings and ends of the waits it ends.
fn ended_waits(trace: &Trace) -> Vec<Vec<(usize, usize)>> {
    let mut ended = vec![Vec::new(); trace.events.len()];
    for (end, notification) in matched_notifications(trace).into_iter().enumerate() {
        let event = &trace.events[end];
        let is_begin = |e: &Event| e.op() == Op::WaitBegin && e.thread() == event.thread();
        let begin = trace.events[..end].iter().rposition(is_begin);
        if let (Some(notification), Some(begin), Op::WaitEnd) = (notification, begin, event.op()) {
            ended[notification].push((begin, end));
        }
    }
    ended
}

/// A fork before the thread's events; all of them, and the fork, before its join; a notification
/// before the end of the wait that it ends; a critical section before the try-locks that fail
/// because of it. That a wait begins before its notification, which would otherwise be lost, is
/// required only if the wait ends.
fn needs(trace: &Trace, threads: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needs = vec![Vec::new(); trace.events.len()];
    let notifications = matched_notifications(trace);
    for (i, event) in trace.events.iter().enumerate() {
        match event.op() {
            Op::Fork => {
                let first = threads[event.other().index()].first().copied();
                let is_join = |&j: &usize| {
                    let join = &trace.events[j];
                    join.op() == Op::Join && join.other() == event.other()
                };
                let joins = (0..trace.events.len()).filter(is_join);
                first.into_iter().chain(joins).for_each(|later| needs[later].push(i));
            }
            Op::Join => needs[i].extend(threads[event.other().index()].last()),
            _ => {}
        }
        needs[i].extend(notifications[i]);
        needs[i].extend(section_in_the_way(trace, i).map(|(begin, _)| begin));
    }
    needs
}

/// For each event that reads, the writes it could see (`None` is the initial value) if it were the
/// last event of a reordering in which all others see the write they saw. A read that could see
/// another write than in the trace makes the program nondeterministic. A read-modify-write counts
/// as a read: as the last event, no other event sees what it writes.
pub fn possible_writers(trace: &Trace) -> Vec<BTreeSet<Option<usize>>> {
    let all = Reorderings::new(trace, Reads::Identical);
    let mut writers = vec![BTreeSet::new(); trace.events.len()];
    all.reach(|state| {
        for t in (0..all.threads.len()).map(ThreadId::new) {
            let Some(event) = all.next(state, t).filter(|&e| all.is_free(state, e)) else {
                continue;
            };
            let it = &trace.events[event];
            if it.op().reads() {
                writers[event].insert(all.last_writer(state, it.var()));
            }
        }
        false
    });
    writers
}

/// For each variable, the writes that could be its last one after a reordering of the whole trace
/// in which every read sees the write it saw.
pub fn final_writers(trace: &Trace) -> Vec<BTreeSet<Option<usize>>> {
    let all = Reorderings::new(trace, Reads::Identical);
    let mut writers = vec![BTreeSet::new(); all.variables];
    all.reach(|state| {
        if all.threads.iter().zip(&state.done).all(|(own, &done)| own.len() == done) {
            for (writers, writer) in writers.iter_mut().zip(&state.writer) {
                writers.insert(*writer);
            }
        }
        false
    });
    writers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    fn reaches(trace: &Trace, reads: Reads, events: &[usize]) -> Option<Vec<usize>> {
        let all = Reorderings::new(trace, reads);
        let step = |next: &usize, step: Step| {
            Some(next + usize::from(events.get(*next) == Some(&step.event)))
        };
        all.with_monitor(0, step, |&next| next == events.len())
    }

    #[test]
    fn sections_swap_and_events_are_left_out() {
        let trace = trace! { T1: acq(l), w(x), rel(l); T2: acq(l), w(y), rel(l) };
        assert_eq!(reaches(&trace, Reads::Strict, &[4, 1]), Some(vec![3, 4, 5, 0, 1]));
        let open = trace! { T1: acq(l), w(x), rel(l); T2: acq(l), w(y) };
        assert_eq!(reaches(&open, Reads::Strict, &[4, 1]), None);
        assert_eq!(reaches(&open, Reads::Strict, &[4]), Some(vec![3, 4]));
    }

    #[test]
    fn reads_keep_their_writer_unless_they_are_the_last() {
        let trace = trace! { T1: w(x); T2: r(x); T2: w(y) };
        assert_eq!(reaches(&trace, Reads::Strict, &[1, 0]), None);
        assert_eq!(reaches(&trace, Reads::Terminal, &[1, 0]), Some(vec![1, 0]));
        assert_eq!(reaches(&trace, Reads::Terminal, &[2, 0]), None);
        let rmw = trace! { T1: w(x); T2: rmw(x) };
        assert_eq!(reaches(&rmw, Reads::Terminal, &[1, 0]), None);
        let joined = trace! { T1: w(x); T2: r(x); T3: join(T2) };
        assert_eq!(reaches(&joined, Reads::Terminal, &[2, 0]), None);
    }

    #[test]
    fn reads_may_see_another_write_of_the_same_value() {
        let trace = trace! { T1: w(x)=1, w(y)=1, w(x)=1; T2: r(x)=1, w(y)=2 };
        assert!(reaches(&trace, Reads::Strict, &[4, 1]).is_some());
        assert_eq!(reaches(&trace, Reads::Identical, &[4, 1]), None);
        // The initial value counts as a write, too, declared or read.
        let reset = trace! { T1: r(x)=0, w(x)=1, w(x)=0; T2: r(x)=0, w(y)=2 };
        assert!(reaches(&reset, Reads::Strict, &[4, 1]).is_some());
        let stated = trace! { T1: init(x)=0; T1: w(x)=1, w(x)=0; T2: r(x)=0, w(y)=2 };
        assert!(reaches(&stated, Reads::Strict, &[4, 1]).is_some());
        let unknown = trace! { T1: w(x)=1, w(y)=1, w(x); T2: r(x)=1, w(y)=2 };
        assert!(reaches(&unknown, Reads::Strict, &[4, 1]).is_some());
        let unknown = trace! { T1: w(x)=1, w(y)=1, w(x)=1; T2: r(x), w(y)=2 };
        assert_eq!(reaches(&unknown, Reads::Strict, &[4, 1]), None);
        let counted = trace! { T1: w(x)=1, w(y)=1, w(x)=1; T2: rmw(x)=1->2, w(y)=2 };
        assert!(reaches(&counted, Reads::Strict, &[4, 1]).is_some());
        // Possible addresses are not compared: other memory may have had the address by then.
        let addresses =
            trace! { T1: w(x)=93824992, w(y)=1, w(x)=93824992; T2: r(x)=93824992, w(y)=2 };
        assert_eq!(reaches(&addresses, Reads::Strict, &[4, 1]), None);
        assert!(reaches(&addresses, Reads::Any, &[4, 1]).is_some());
    }

    #[test]
    fn readers_share_and_writers_do_not() {
        let trace = trace! { T1: racq(l); T2: racq(l), rrel(l); T1: rrel(l); T3: acq(l), rel(l) };
        assert!(reaches(&trace, Reads::Strict, &[1, 0]).is_some());
        assert!(reaches(&trace, Reads::Strict, &[4, 1]).is_some());
        assert!(reaches(&trace, Reads::Strict, &[4, 1, 5]).is_none());
    }

    #[test]
    fn a_notification_ends_only_waits_that_have_begun() {
        let trace = trace! { T1: wait_begin(c); T2: notify(c); T1: wait_end(c) };
        assert!(reaches(&trace, Reads::Strict, &[1, 0]).is_some());
        assert_eq!(reaches(&trace, Reads::Strict, &[1, 0, 2]), None);
        assert!(reaches(&trace, Reads::Strict, &[0, 1, 2]).is_some());
        let timeout = trace! { T1: wait_begin(c); T1: wait_end(c); T2: notify(c) };
        assert!(reaches(&timeout, Reads::Strict, &[2, 0, 1]).is_some());
    }

    #[test]
    fn final_values_depend_on_the_order_of_sections() {
        let trace = trace! { T1: acq(l), w(x), rel(l); T2: acq(l), w(x), rel(l), w(y) };
        let x = trace.names.vars.lookup("x").unwrap();
        assert_eq!(final_writers(&trace)[x.index()], BTreeSet::from([Some(1), Some(4)]));
    }
}
