//! Deadlocks: threads that wait for each other in a cycle, after some correct reordering.
//!
//! A thread waits for another if its next step is to acquire a lock that the other holds in a mode
//! that excludes it, or to join the other before it has ended. The end of a wait acquires its lock
//! again, notified or not, so it counts as an acquire. A try-lock does not wait; an acquire with a
//! timeout does, for that time. What reads see does not matter: a thread that has seen another
//! value
//! than in the trace is in no cycle, and can as well be stopped before.

use std::collections::BTreeSet;

use foresee_trace::{Event, Id, LockId, Op, ThreadId, Trace};

use super::notify::matched_notifications;
use super::reorder::{Reads, Reorderings, State, given};

/// Every possible cycle of at most `longest` threads, as the events at which its threads are
/// blocked: each waits for the thread of the next one, the last for that of the first, which is the
/// earliest in the trace.
pub fn deadlocks(trace: &Trace, longest: usize) -> BTreeSet<Vec<usize>> {
    deadlocks_reading(trace, longest, Reads::Strict)
}

/// Like [`deadlocks`], with this rule for reads.
pub fn deadlocks_reading(trace: &Trace, longest: usize, reads: Reads) -> BTreeSet<Vec<usize>> {
    let all = Reorderings::new(trace, reads);
    let threads = thread_count(trace);
    let mut found = BTreeSet::new();
    all.reach(|state| {
        let waits = WaitsFor::new(trace, &all, state, threads);
        for first in 0..threads {
            waits.rings(&mut vec![first], longest, &mut found);
        }
        false
    });
    found
}

/// The beginnings of those notified waits that may never end: some correct reordering leads to a
/// state in which the wait has begun, and every notification of its condition has come before or
/// cannot come. It cannot come if, by program order, fork or join, it is after the next step of the
/// waiting thread, or after the next step of a thread that waits, in turn, for something that the
/// waiting thread holds.
pub fn endless_waits(trace: &Trace) -> BTreeSet<usize> {
    let all = Reorderings::new(trace, Reads::Strict);
    let threads = thread_count(trace);
    let notifications = matched_notifications(trace);
    let mut found = BTreeSet::new();
    for (end, event) in trace.events.iter().enumerate() {
        if event.op() != Op::WaitEnd || notifications[end].is_none() {
            continue;
        }
        let Some(begin) = previous(trace, end) else { continue };
        if previous(trace, begin).is_some_and(|i| trace.events[i].op() == Op::TryFor) {
            continue;
        }
        let notifies = |i: usize| {
            let it = &trace.events[i];
            matches!(it.op(), Op::Notify | Op::NotifyAll) && it.cond() == event.cond()
        };
        // All notifications first, and only then the wait.
        let step = |&begun: &bool, step: super::Step| {
            if begun && notifies(step.event) {
                return None;
            }
            Some(begun || step.event == begin)
        };
        let is_endless = |state: &State, &begun: &bool| {
            if !begun || all.has_happened(state, end) {
                return false;
            }
            let waits = WaitsFor::new(trace, &all, state, threads);
            let mut stuck = vec![false; threads];
            stuck[event.thread().index()] = true;
            loop {
                let because = |t: &usize| {
                    let next = waits.next[*t].and_then(|i| previous(trace, i));
                    let is_timed = next.is_some_and(|i| trace.events[i].op() == Op::TryFor);
                    !stuck[*t] && !is_timed && waits.blockers[*t].iter().any(|&u| stuck[u])
                };
                let Some(next) = (0..threads).find(because) else { break };
                stuck[next] = true;
            }
            // What comes after the next events of the blocked threads.
            let mut late = vec![false; threads];
            for (i, event) in trace.events.iter().enumerate() {
                let t = event.thread().index();
                late[t] |= stuck[t] && waits.next[t] == Some(i);
                match event.op() {
                    Op::Fork => late[event.other().index()] |= late[t],
                    Op::Join => late[t] |= late[event.other().index()],
                    _ => {}
                }
                if notifies(i) && !late[t] && !all.has_happened(state, i) {
                    return false;
                }
            }
            true
        };
        if all.search(false, step, is_endless).is_some() {
            found.insert(begin);
        }
    }
    found
}

/// The acquires that may block forever on a lock whose owner has ended: some correct reordering
/// leads to a state in which a thread that ends in the trace has taken its last step and still
/// holds the lock, and the acquire is the next step of its thread.
pub fn endless_acquires(trace: &Trace) -> BTreeSet<usize> {
    let all = Reorderings::new(trace, Reads::Strict);
    let threads = thread_count(trace);
    let ends = |t: usize| {
        let is_end = |e: &Event| match e.op() {
            Op::ThreadEnd => e.thread().index() == t,
            Op::Join => e.other().index() == t,
            _ => false,
        };
        trace.events.iter().any(is_end)
    };
    let mut found = BTreeSet::new();
    all.reach(|state| {
        let waits = WaitsFor::new(trace, &all, state, threads);
        for event in (0..threads).filter_map(|t| waits.next[t]) {
            let Some((lock, shared)) = requested(&trace.events[event]) else { continue };
            let before = previous(trace, event).map(|i| trace.events[i].op());
            if matches!(before, Some(Op::Try | Op::TryFor)) {
                continue;
            }
            let is_gone = |u: usize| {
                let held = all.holds(state, ThreadId::new(u), lock);
                let is_kept = held == Some(false) || held == Some(true) && !shared;
                u != trace.events[event].thread().index()
                    && ends(u)
                    && is_kept
                    && all.next(state, ThreadId::new(u)).is_none()
            };
            if (0..threads).any(is_gone) {
                found.insert(event);
            }
        }
        false
    });
    found
}

/// The threads that the end of the trace leaves blocked forever: whatever the threads that can
/// still run do, release, notify or raise, these never get what they last requested.
pub fn left_waiting(trace: &Trace) -> BTreeSet<ThreadId> {
    let threads = thread_count(trace);
    let of = |t: usize| {
        trace.events.iter().filter(move |e| e.thread().index() == t && e.op() != Op::Init)
    };
    let is_known = |t: usize| {
        let names = |e: &Event| {
            e.thread().index() == t
                || matches!(e.op(), Op::Fork | Op::Join) && e.other().index() == t
        };
        trace.events.iter().any(|e| e.op() != Op::Init && names(e))
    };
    let has_ended = |t: usize| {
        let joins = |e: &Event| e.op() == Op::Join && e.other().index() == t;
        of(t).any(|e| e.op() == Op::ThreadEnd) || trace.events.iter().any(joins)
    };
    // What a thread holds, as often as it holds it.
    let has = |t: usize, lock: LockId, shared: bool| {
        let takes = of(t).filter(|e| requested(e) == Some((lock, shared))).count();
        let gives = of(t).filter(|e| given(e) == Some((lock, shared))).count();
        takes > gives
    };
    let is_timed =
        |begin: usize| previous(trace, begin).is_some_and(|i| trace.events[i].op() == Op::TryFor);
    let last = |t: usize| {
        (0..trace.events.len())
            .rfind(|&i| trace.events[i].thread().index() == t && trace.events[i].op() != Op::Init)
    };
    let asks = |t: usize| {
        let i = last(t)?;
        let op = trace.events[i].op();
        (op.requests() || op == Op::WaitBegin && !is_timed(i)).then_some(i)
    };
    let matched = matched_notifications(trace);
    // Whether what it waits for has already happened.
    let is_helped = |i: usize| {
        let it = &trace.events[i];
        let later = || (i + 1..trace.events.len()).map(|j| (j, &trace.events[j]));
        match it.op() {
            Op::Block => later().any(|(_, e)| e.op().writes() && e.var() == it.var()),
            Op::WaitBegin => {
                let on_it = |e: &Event| {
                    matches!(e.op(), Op::Notify | Op::NotifyAll) && e.cond() == it.cond()
                };
                let any_timed = (0..trace.events.len()).any(|j| {
                    let e = &trace.events[j];
                    e.op() == Op::WaitBegin && e.cond() == it.cond() && is_timed(j)
                });
                if any_timed {
                    return later().any(|(_, e)| on_it(e));
                }
                still_woken(trace, &matched, i)
            }
            _ => false,
        }
    };
    // All threads that can run; a running thread can do anything.
    let mut going: Vec<bool> =
        (0..threads).map(|t| is_known(t) && !has_ended(t) && asks(t).is_none()).collect();
    loop {
        let gets_it = |&t: &usize| {
            let Some(i) = asks(t).filter(|_| !going[t]) else { return false };
            let it = &trace.events[i];
            let can_take = |lock: LockId, shared: bool| {
                let blocks =
                    |u: usize| (has(u, lock, false) || !shared && has(u, lock, true)) && !going[u];
                // A waiting writer goes before later readers.
                let queued = |u: usize| {
                    let Some(asked) = asks(u).filter(|_| u != t && !going[u]) else { return false };
                    trace.events[asked].op() == Op::Request && trace.events[asked].lock() == lock
                };
                !(0..threads).any(|u| blocks(u) || shared && queued(u))
            };
            let anybody = (0..threads).any(|u| going[u]);
            match it.op() {
                Op::Request => can_take(it.lock(), false),
                Op::RequestShared => can_take(it.lock(), true),
                Op::Await => {
                    let u = it.other().index();
                    going.get(u) == Some(&true) || has_ended(u) || asks(u).is_none()
                }
                Op::WaitBegin if is_helped(i) => {
                    it.wait_lock().is_none_or(|lock| can_take(lock, false))
                }
                Op::WaitBegin => anybody,
                _ => anybody || is_helped(i),
            }
        };
        let Some(next) = (0..threads).find(gets_it) else { break };
        going[next] = true;
    }
    let stuck = |&t: &usize| asks(t).is_some() && !going[t];
    (0..threads).filter(stuck).map(ThreadId::new).collect()
}

/// Whether a notification is left for a wait that has not ended: more came since it began than
/// other waits consumed.
fn still_woken(trace: &Trace, matched: &[Option<usize>], begin: usize) -> bool {
    let cond = trace.events[begin].cond();
    let waits_on = |i: usize| {
        let e = &trace.events[i];
        e.op() == Op::WaitBegin && e.cond() == cond
    };
    let ends_of = |i: usize| {
        let thread = trace.events[i].thread();
        (i + 1..trace.events.len()).find(|&j| trace.events[j].thread() == thread)
    };
    // Each notification goes to those that waited longest without one, unless a wait that ended
    // took it over.
    let mut kept: Vec<(usize, Option<usize>)> = Vec::new();
    for (i, e) in trace.events.iter().enumerate() {
        if waits_on(i) {
            kept.push((i, None));
        } else if matches!(e.op(), Op::Notify | Op::NotifyAll) && e.cond() == cond {
            let all = e.op() == Op::NotifyAll;
            for one in kept.iter_mut().filter(|one| one.1.is_none()) {
                one.1 = Some(i);
                if !all {
                    break;
                }
            }
        } else if e.op() == Op::WaitEnd && e.cond() == cond {
            let own = kept.iter().position(|one| ends_of(one.0) == Some(i));
            let Some((_, had)) = own.map(|at| kept.remove(at)) else { continue };
            if had.is_none()
                && let Some(taken) = matched[i]
                && let Some(robbed) = kept.iter_mut().find(|one| one.1 == Some(taken))
            {
                robbed.1 = None;
            }
        }
    }
    kept.iter().any(|one| one.0 == begin && one.1.is_some())
}

/// The preceding event of the same thread.
fn previous(trace: &Trace, event: usize) -> Option<usize> {
    let thread = trace.events[event].thread();
    (0..event).rfind(|&i| trace.events[i].thread() == thread)
}

fn thread_count(trace: &Trace) -> usize {
    let threads = trace.events.iter().map(|e| match e.op() {
        Op::Fork | Op::Join => e.thread().max(e.other()),
        _ => e.thread(),
    });
    threads.max().map_or(0, |t| t.index() + 1)
}

/// The next steps of the threads in one state, and which threads block them.
struct WaitsFor {
    next: Vec<Option<usize>>,
    blockers: Vec<Vec<usize>>,
}

impl WaitsFor {
    fn new(trace: &Trace, all: &Reorderings<'_>, state: &State, threads: usize) -> WaitsFor {
        let has_begun = |t: usize| {
            let is_fork = |e: &Event| e.op() == Op::Fork && e.other().index() == t;
            let fork = trace.events.iter().position(is_fork);
            fork.is_none_or(|fork| all.has_happened(state, fork))
        };
        let next = |t: usize| all.next(state, ThreadId::new(t)).filter(|_| has_begun(t));
        let next: Vec<Option<usize>> = (0..threads).map(next).collect();
        let blockers = |t: usize| {
            let Some(event) = next[t].map(|i| &trace.events[i]) else { return Vec::new() };
            let holds = |u: usize, lock: LockId, shared: bool| {
                let held = all.holds(state, ThreadId::new(u), lock);
                held == Some(false) || held == Some(true) && !shared
            };
            let others = (0..threads).filter(|&u| u != t);
            let is_try = |i: &usize| {
                previous(trace, *i).is_some_and(|before| trace.events[before].op() == Op::Try)
            };
            if next[t].as_ref().is_some_and(is_try) {
                return Vec::new();
            }
            match (requested(event), event.op()) {
                (Some((lock, shared)), _) => others.filter(|&u| holds(u, lock, shared)).collect(),
                (None, Op::Join) => {
                    others.filter(|&u| u == event.other().index() && next[u].is_some()).collect()
                }
                _ => Vec::new(),
            }
        };
        let blockers = (0..threads).map(blockers).collect();
        WaitsFor { next, blockers }
    }

    fn rings(&self, path: &mut Vec<usize>, longest: usize, found: &mut BTreeSet<Vec<usize>>) {
        let (first, last) = (path[0], path[path.len() - 1]);
        for &u in &self.blockers[last] {
            if u == first {
                let mut ring: Vec<usize> = path.iter().filter_map(|&t| self.next[t]).collect();
                let earliest = (0..ring.len()).min_by_key(|&i| ring[i]).unwrap_or(0);
                ring.rotate_left(earliest);
                found.insert(ring);
            } else if path.len() < longest && !path.contains(&u) {
                path.push(u);
                self.rings(path, longest, found);
                path.pop();
            }
        }
    }
}

/// The lock that a thread would wait for at this event, and whether it would share it.
fn requested(event: &Event) -> Option<(LockId, bool)> {
    match event.op() {
        Op::Acquire => Some((event.lock(), false)),
        Op::AcquireShared => Some((event.lock(), true)),
        Op::WaitEnd => event.wait_lock().map(|lock| (lock, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    fn rings(trace: &Trace) -> Vec<Vec<usize>> {
        deadlocks(trace, 4).into_iter().collect()
    }

    #[test]
    fn locks_in_opposite_orders() {
        let trace = trace! {
            T1: acq(l), acq(m), rel(m), rel(l); T2: acq(m), acq(l), rel(l), rel(m)
        };
        assert_eq!(rings(&trace), [[1, 5]]);
        let guarded = trace! {
            T1: acq(g), acq(l), acq(m), rel(m), rel(l), rel(g);
            T2: acq(g), acq(m), acq(l), rel(l), rel(m), rel(g)
        };
        assert!(rings(&guarded).is_empty());
    }

    #[test]
    fn readers_do_not_wait_for_readers() {
        let trace = trace! {
            T1: racq(l), racq(m), rrel(m), rrel(l); T2: racq(m), racq(l), rrel(l), rrel(m)
        };
        assert!(rings(&trace).is_empty());
        let upgrade = trace! {
            T1: racq(l), acq(l), rel(l), rrel(l); T2: racq(l), acq(l), rel(l), rrel(l)
        };
        assert_eq!(rings(&upgrade), [[1, 5]]);
    }

    #[test]
    fn a_try_lock_does_not_wait_but_is_waited_for() {
        let second = trace! {
            T1: acq(l), try(m), acq(m), rel(m), rel(l); T2: acq(m), acq(l), rel(l), rel(m)
        };
        assert!(rings(&second).is_empty());
        let first = trace! {
            T1: try(l), acq(l), acq(m), rel(m), rel(l); T2: acq(m), try_for(l), acq(l), rel(l), rel(m)
        };
        assert_eq!(rings(&first), [[2, 7]]);
    }

    #[test]
    fn a_join_waits_for_a_thread() {
        let trace = trace! {
            T0: fork(T1); T1: acq(g), rel(g); T0: acq(g), join(T1), rel(g)
        };
        assert_eq!(rings(&trace), [[1, 4]]);
    }

    #[test]
    fn the_end_of_a_wait_takes_its_lock_notified_or_not() {
        let trace = trace! {
            T1: acq(m), acq(l), wait_begin(c, l); T2: acq(l), notify(c), rel(l);
            T1: wait_end(c, l), rel(l), rel(m); T2: acq(l), acq(m), rel(m), rel(l)
        };
        assert_eq!(rings(&trace), [[1, 10], [6, 10]]);
    }
}
