//! Is this one order a correct reordering? A linear replay that shares only the comparison of
//! values with the search.

use std::collections::{HashMap, HashSet};

use foresee_trace::{LockId, Op, ThreadId, Trace};

use super::busy::section_in_the_way;
use super::closure::reads_from;
use super::notify::matched_notifications;
use super::reorder::Values;

#[derive(Default)]
struct Lock {
    owner: Option<ThreadId>,
    readers: HashSet<ThreadId>,
}

/// Checks whether `order`, a list of event indices, is a correct reordering of a prefix of each
/// thread (see [`super::Reorderings`]); the error says why not. With `terminal`, the last event of
/// a thread may be a read that sees another value. Initial values may be listed, before everything
/// else, or left out.
pub fn is_correct_reordering(trace: &Trace, order: &[usize], terminal: bool) -> Result<(), String> {
    let events = &trace.events;
    let name = |i: usize| {
        let event = &events[i];
        let thread = trace.names.threads.get(event.thread());
        format!("event {i} ({thread}: {})", event.describe(&trace.names, &trace.pool))
    };
    let saw = reads_from(trace);
    let values = Values::new(trace, &saw);
    let notifications = matched_notifications(trace);
    let mut happened: Vec<usize> = Vec::new();
    let mut locks: HashMap<LockId, Lock> = HashMap::new();
    let mut last_write: HashMap<u32, usize> = HashMap::new();
    // Threads whose last read saw another write.
    let mut stopped: HashMap<ThreadId, usize> = HashMap::new();

    for &i in order {
        let Some(event) = events.get(i) else {
            return Err(format!("there is no event {i}"));
        };
        if happened.contains(&i) {
            return Err(format!("{} happens twice", name(i)));
        }
        let (t, op) = (event.thread(), event.op());
        if op == Op::Init {
            if let Some(&j) = happened.iter().find(|&&j| events[j].op() != Op::Init) {
                return Err(format!("{} comes after {}", name(i), name(j)));
            }
            happened.push(i);
            continue;
        }
        if let Some(&read) = stopped.get(&t) {
            return Err(format!(
                "{} follows {}, which sees another write than in the trace",
                name(i),
                name(read)
            ));
        }

        // Everything that must have happened before.
        let mut before = notifications[i].into_iter().collect::<Vec<_>>();
        for (j, other) in events.iter().enumerate().filter(|(_, e)| e.op() != Op::Init) {
            let earlier_of_thread = j < i && other.thread() == t;
            let forks = other.op() == Op::Fork && other.other() == t;
            let joined = op == Op::Join && other.thread() == event.other();
            let forks_joined =
                op == Op::Join && other.op() == Op::Fork && other.other() == event.other();
            if earlier_of_thread || forks || joined || forks_joined {
                before.push(j);
            }
        }
        if let Some(&j) = before.iter().find(|j| !happened.contains(j)) {
            return Err(format!("{} happens before {}", name(i), name(j)));
        }
        // The notification must have found the thread waiting.
        if let (Op::WaitEnd, Some(n)) = (op, notifications[i]) {
            let is_begin = |&j: &usize| events[j].op() == Op::WaitBegin && events[j].thread() == t;
            let begin = (0..i).rev().find(is_begin);
            let place = |event: usize| happened.iter().position(|&j| j == event);
            if begin.is_some_and(|begin| place(begin) > place(n)) {
                return Err(format!("{} came before the wait that it ends", name(n)));
            }
        }
        if let Some((begin, end)) = section_in_the_way(trace, i) {
            let is_open = happened.contains(&begin) && end.is_none_or(|e| !happened.contains(&e));
            if !is_open {
                return Err(format!("{} finds no thread in its way", name(i)));
            }
        }
        if let Some(&read) = (op == Op::Join).then(|| stopped.get(&event.other())).flatten() {
            return Err(format!(
                "{} needs the end of a thread whose last event, {}, sees another write",
                name(i),
                name(read)
            ));
        }

        let lock = match op {
            Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => Some(event.lock()),
            _ => event.wait_lock(),
        };
        if let Some(lock) = lock {
            let lock = locks.entry(lock).or_default();
            let other_owner = lock.owner.is_some_and(|owner| owner != t);
            let other_reader = lock.readers.iter().any(|&reader| reader != t);
            let possible = match op {
                Op::Acquire | Op::WaitEnd => !other_owner && !other_reader,
                Op::AcquireShared => !other_owner,
                Op::ReleaseShared => lock.readers.contains(&t),
                _ => lock.owner == Some(t),
            };
            if !possible {
                return Err(format!("{} finds the lock held by another thread", name(i)));
            }
            match op {
                Op::Acquire | Op::WaitEnd => lock.owner = Some(t),
                Op::Release | Op::WaitBegin => lock.owner = None,
                Op::AcquireShared => drop(lock.readers.insert(t)),
                _ => drop(lock.readers.remove(&t)),
            }
        }

        if op.reads() || op.writes() {
            let writer = last_write.get(&event.var().0).copied();
            if op.reads() && writer != saw[i] && !values.is_same(trace, i, saw[i], writer) {
                if !terminal || op == Op::Rmw {
                    let sees = writer.map_or("the initial value".to_owned(), name);
                    return Err(format!("{} sees {sees}, not what it saw", name(i)));
                }
                stopped.insert(t, i);
            }
            if op.writes() {
                last_write.insert(event.var().0, i);
            }
        }
        happened.push(i);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn each_rule_has_its_refusal() {
        let check = |trace: &Trace, order: &[usize], terminal, expected: &str| {
            let error = is_correct_reordering(trace, order, terminal).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        let t = trace! { T1: w(x), w(x); T2: r(x), w(y) };
        check(&t, &[9], false, "no event 9");
        check(&t, &[0, 0], false, "twice");
        check(&t, &[1], false, "happens before event 0");
        check(&t, &[0, 2], false, "sees event 0 (T1: w(x))");
        check(&t, &[2], false, "the initial value");
        check(&t, &[0, 2, 3], true, "follows event 2");
        assert_eq!(is_correct_reordering(&t, &[0, 2, 1], true), Ok(()));

        let t = trace! { T1: acq(l), rel(l); T2: acq(l) };
        check(&t, &[0, 2], false, "held by another thread");
        assert_eq!(is_correct_reordering(&t, &[2], false), Ok(()));

        let t = trace! { T1: fork(T2); T2: r(x); T1: join(T2), w(x) };
        check(&t, &[1], false, "happens before event 0");
        check(&t, &[0, 2], false, "happens before event 1");

        let t = trace! { T1: wait_begin(c); T2: notify(c); T1: wait_end(c) };
        check(&t, &[0, 2], false, "happens before event 1");
        check(&t, &[1, 0, 2], false, "came before the wait");
        assert_eq!(is_correct_reordering(&t, &[1, 0], false), Ok(()));

        let t = trace! { T1: init(x)=1; T2: r(x)=1; T1: init(y)=1 };
        check(&t, &[1, 2], false, "comes after");
        assert_eq!(is_correct_reordering(&t, &[2, 0, 1], false), Ok(()));
        assert_eq!(is_correct_reordering(&t, &[1], false), Ok(()));

        let t = trace! { T1: w(x); T2: rmw(x) };
        check(&t, &[1], true, "not what it saw");
        let t = trace! { T1: w(x); T2: r(x); T3: join(T2) };
        check(&t, &[1, 2], true, "needs the end of a thread");
    }
}
