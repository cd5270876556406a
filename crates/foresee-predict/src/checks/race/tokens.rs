//! Variables that are used as locks: spin locks, binary semaphores, hand-written mutexes.
//!
//! Let a variable hold the value *free* at first. A thread *takes* it by a read-modify-write that
//! finds free and leaves something else, and *gives it back* by leaving free again. If no other
//! thread leaves free, and a thread that does not hold the variable writes only by a
//! read-modify-write that finds another value than free, then at most one thread holds it at any
//! time, in any order of the threads, as long as every read finds the value that it found. The
//! invariant is that the variable is free if and only if no thread holds it. So accesses of two
//! threads that both hold it exclude each other, as if it were a lock. That a search finds no
//! reordering proves nothing; this does.
//!
//! Events before the start of the threads that share the variable initialise it, and may write
//! anything.

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::slice::Iter;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, LockId, Op, Pool, ThreadId, Trace, Value, VarId};

use super::super::lock_state::LockState;
use super::super::locksets::{Hold, LockSetId, LockSets};

/// An event that takes or gives back a variable that is used as a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    event: u32,
    lock: LockId,
    takes: bool,
}

/// All variables of a trace that are used as locks.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// In the order of the trace.
    steps: Vec<Step>,
}

impl Tokens {
    /// Looks through a trace.
    pub(super) fn new(trace: &Trace) -> Tokens {
        let updates = trace.events.iter().filter(|event| event.op() == Op::Rmw);
        let updated: HashSet<VarId, RandomState> = updates.map(Event::var).collect();
        if updated.is_empty() {
            return Tokens::default();
        }
        let mut forks: HashMap<ThreadId, (ThreadId, u32), RandomState> = HashMap::default();
        let mut uses: HashMap<VarId, Use, RandomState> = HashMap::default();
        for (index, event) in (0..).zip(&trace.events) {
            let op = event.op();
            if op == Op::Fork {
                forks.insert(event.other(), (event.thread(), index));
            } else if (op.reads() || op.writes()) && updated.contains(&event.var()) {
                let origin =
                    |thread| std::iter::successors(forks.get(&thread), |f| forks.get(&f.0));
                let known = uses.entry(event.var()).or_default();
                if !known.is_refused && known.event(trace, index, event, origin).is_none() {
                    known.is_refused = true;
                }
            }
        }
        let mut used: Vec<(VarId, Use)> = uses.into_iter().collect();
        used.retain(|(_, known)| !known.is_refused && !known.steps.is_empty());
        used.sort_unstable_by_key(|(variable, _)| *variable);
        // Numbers that no lock has.
        let locks = trace.names.locks.len()..;
        let numbered = used.iter().zip(locks.map(LockId::new));
        let mut steps: Vec<Step> = numbered
            .flat_map(|((_, known), lock)| {
                let step = move |&(event, takes): &(u32, bool)| Step { event, lock, takes };
                known.steps.iter().map(step)
            })
            .collect();
        steps.sort_unstable_by_key(|step| step.event);
        Tokens { steps }
    }
}

/// The use of a variable so far.
#[derive(Debug, Default)]
struct Use {
    /// The thread that used it first, and what it did before any other thread.
    first: Option<ThreadId>,
    beginning: Vec<u32>,
    is_shared: bool,
    /// The value when no thread holds it, and the thread that does.
    free: Option<Value>,
    holder: Option<ThreadId>,
    /// The events that take it and give it back.
    steps: Vec<(u32, bool)>,
    is_refused: bool,
}

impl Use {
    /// Processes the next access; `None` if the variable is not used as a lock. `origin` yields the
    /// thread that started a thread and the event, then the same for that thread, and so on.
    fn event<'f, I: Iterator<Item = &'f (ThreadId, u32)>>(
        &mut self,
        trace: &Trace,
        index: u32,
        event: &Event,
        origin: impl Fn(ThreadId) -> I,
    ) -> Option<()> {
        let thread = event.thread();
        let first = *self.first.get_or_insert(thread);
        if thread == first && !self.is_shared {
            self.beginning.push(index);
            return Some(());
        }
        if thread != first {
            let start = origin(thread).find(|fork| fork.0 == first).map(|fork| fork.1);
            if !self.is_shared {
                self.is_shared = true;
                let all = std::mem::take(&mut self.beginning);
                let (before, after) = all.split_at(all.partition_point(|&e| Some(e) < start));
                for &e in before {
                    let event = &trace.events[e as usize];
                    match event.op().writes() {
                        true => self.free = Some(known(trace.pool.value_left(event))?),
                        false if self.free.is_none() => {
                            self.free = known(trace.pool.value_found(event))
                        }
                        false => {}
                    }
                }
                self.beginning = before.to_vec();
                for &e in after {
                    self.step(&trace.pool, e, &trace.events[e as usize])?;
                }
            }
            if self.beginning.last().is_some_and(|&last| start.is_none_or(|start| start < last)) {
                return None;
            }
        }
        self.step(&trace.pool, index, event)
    }

    /// An access that others may come before or after.
    fn step(&mut self, pool: &Pool, index: u32, event: &Event) -> Option<()> {
        let (op, thread) = (event.op(), event.thread());
        let found = if op.reads() { Some(known(pool.value_found(event))?) } else { None };
        let free = match self.free {
            Some(free) => free,
            // Nothing has been written so far.
            None => *self.free.insert(found?),
        };
        if !op.writes() {
            return Some(());
        }
        let left = known(pool.value_left(event))?;
        match (self.holder == Some(thread), left == free) {
            (true, true) => {
                self.holder = None;
                self.steps.push((index, false));
            }
            (true, false) => {}
            // Nothing changes.
            (false, true) if found == Some(free) => {}
            (false, true) => return None,
            (false, false) if found? != free => {}
            // Another thread holds it, and yet it is free: the trace is incomplete.
            (false, false) if self.holder.is_some() => return None,
            (false, false) => {
                self.holder = Some(thread);
                self.steps.push((index, true));
            }
        }
        Some(())
    }
}

/// A value that is known.
fn known(value: Option<Value>) -> Option<Value> {
    value.filter(|value| value.stands_for_itself())
}

/// The locks that each thread holds, including variables that are used as locks.
#[derive(Debug)]
pub(super) struct Guards<'t> {
    lock_state: LockState,
    steps: Peekable<Iter<'t, Step>>,
}

impl<'t> Guards<'t> {
    pub(super) fn new(tokens: &'t Tokens) -> Guards<'t> {
        Guards { lock_state: LockState::default(), steps: tokens.steps.iter().peekable() }
    }

    /// The event happens.
    #[inline]
    pub(super) fn event(&mut self, index: u32, event: &Event) {
        self.lock_state.event(index, event);
        if let Some(step) = self.steps.next_if(|step| step.event == index) {
            let hold = Hold { lock: step.lock, shared: false };
            match step.takes {
                true => self.lock_state.take(index, event.thread(), hold),
                false => self.lock_state.give(event.thread(), hold),
            }
        }
    }

    /// The locks that a thread holds, as a set, and what sets there are.
    #[inline]
    pub(super) fn set(&self, thread: ThreadId) -> (LockSetId, &LockSets) {
        (self.lock_state.set(thread), &self.lock_state.locksets)
    }
}

#[cfg(test)]
mod tests {
    use foresee_testkit::trace;

    use super::*;

    /// The events that take a variable and give it back.
    fn steps(trace: &Trace) -> Vec<(u32, bool)> {
        Tokens::new(trace).steps.iter().map(|step| (step.event, step.takes)).collect()
    }

    #[test]
    fn what_is_taken_and_given_back_is_a_lock() {
        let spin = trace! {
            T1: rmw(s)=0->1; T2: rmw(s)=1->1; T1: vw(s)=0; T2: rmw(s)=0->1, vw(s)=0
        };
        assert_eq!(steps(&spin), [(0, true), (2, false), (3, true), (4, false)]);
        // Contended, as a mutex by futexes is.
        let mutex = trace! { T1: rmw(s)=0->1; T2: rmw(s)=1->2; T1: rmw(s)=2->0; T2: rmw(s)=0->2 };
        assert_eq!(steps(&mutex), [(0, true), (2, false), (3, true)]);
    }

    #[test]
    fn whoever_may_write_it_without_having_it_makes_it_none() {
        // Another thread gives it back.
        assert_eq!(steps(&trace! { T1: rmw(s)=0->1; T2: vw(s)=0, rmw(s)=0->1 }), []);
        assert_eq!(steps(&trace! { T1: rmw(s)=0->1; T2: rmw(s)=1->0; T1: rmw(s)=0->1 }), []);
        // A thread writes it without reading it.
        assert_eq!(steps(&trace! { T1: rmw(s)=0->1, vw(s)=0; T2: vw(s)=1 }), []);
        // A counter with some unknown values.
        assert_eq!(steps(&trace! { T1: rmw(s)=0->1, vw(s); T2: rmw(s)=0->1 }), []);
    }

    #[test]
    fn what_comes_before_the_others_is_the_beginning() {
        let begun = trace! {
            T1: vw(s)=3, vw(s)=0, fork(T2); T2: rmw(s)=0->1, vw(s)=0; T1: rmw(s)=0->1
        };
        assert_eq!(steps(&begun), [(3, true), (4, false), (5, true)]);
        // Not for a thread that existed before.
        let late = trace! {
            T1: fork(T3), vw(s)=0, fork(T2); T2: rmw(s)=0->1, vw(s)=0; T3: rmw(s)=0->1
        };
        assert_eq!(steps(&late), []);
    }
}
