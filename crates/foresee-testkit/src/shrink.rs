//! Makes a failing trace small enough to read.

use foresee_trace::{LockId, Op, ThreadId, Trace};

use crate::oracle::wellformed::{Rule, violations};

/// The trace of the chosen events, in file order.
pub fn only(trace: &Trace, mut keep: impl FnMut(usize) -> bool) -> Trace {
    let mut smaller = trace.clone();
    let mut index = 0..;
    smaller.events.retain(|_| index.next().is_some_and(&mut keep));
    smaller
}

/// Removes as much as possible from a trace that still fails: ends of threads, whole threads,
/// locks, and single events.
///
/// The candidates are well-formed if the trace was. Values are not repaired: an event that others
/// need for theirs stays.
pub fn shrink(trace: &Trace, mut still_fails: impl FnMut(&Trace) -> bool) -> Trace {
    let broken_rules = |trace: &Trace| violations(trace).iter().map(|v| v.rule).collect::<Vec<_>>();
    let broken: Vec<Rule> = broken_rules(trace);
    let mut best = trace.clone();
    let mut attempt = |best: &mut Trace, keep: &dyn Fn(usize) -> bool| {
        let smaller = only(best, keep);
        let better = smaller.events.len() < best.events.len()
            && broken_rules(&smaller).iter().all(|rule| broken.contains(rule))
            && still_fails(&smaller);
        if better {
            *best = smaller;
        }
        better
    };
    loop {
        let before = best.events.len();
        for thread in threads(&best) {
            cut_suffix(&mut best, thread, &mut attempt);
        }
        for thread in threads(&best) {
            let events = best.events.clone();
            attempt(&mut best, &|i| {
                let event = &events[i];
                let of_thread = event.op() != Op::Init && event.thread() == thread;
                let about = matches!(event.op(), Op::Fork | Op::Join) && event.other() == thread;
                !of_thread && !about
            });
        }
        let mut i = 0;
        while i < best.events.len() {
            let section = section_at(&best, i);
            if !attempt(&mut best, &|j| !section.contains(&j)) {
                i += 1;
            }
        }
        if best.events.len() == before {
            return best;
        }
    }
}

fn threads(trace: &Trace) -> Vec<ThreadId> {
    let mut threads: Vec<ThreadId> = trace.events.iter().map(|e| e.thread()).collect();
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// Removes the last half of the thread's events, then the last quarter, down to the last one.
fn cut_suffix(
    best: &mut Trace,
    thread: ThreadId,
    attempt: &mut impl FnMut(&mut Trace, &dyn Fn(usize) -> bool) -> bool,
) {
    let own = |trace: &Trace| -> Vec<usize> {
        let of_thread = |&i: &usize| trace.events[i].thread() == thread;
        (0..trace.events.len()).filter(of_thread).collect()
    };
    let mut length = own(best).len();
    while length > 0 {
        let events = own(best);
        let cut = &events[events.len().saturating_sub(length)..];
        if !attempt(best, &|i| !cut.contains(&i)) || events.len() == cut.len() {
            length /= 2;
        }
    }
}

/// The events that must be removed together with event `i`: those on the lock of the critical
/// section that it begins, up to the section's end; otherwise only itself.
fn section_at(trace: &Trace, i: usize) -> Vec<usize> {
    let first = &trace.events[i];
    let (end, lock) = match first.op() {
        Op::Acquire => (Op::Release, first.lock()),
        Op::AcquireShared => (Op::ReleaseShared, first.lock()),
        Op::WaitBegin => {
            let own = |e: &&usize| trace.events[**e].thread() == first.thread();
            let later: Vec<usize> = (i + 1..trace.events.len()).collect();
            return [i].into_iter().chain(later.iter().find(own).copied()).collect();
        }
        _ => return vec![i],
    };
    let concerns = |j: &usize| {
        let event = &trace.events[*j];
        let lock_op = matches!(event.op() as u8, 8..=15).then(|| event.lock());
        event.thread() == first.thread() && lock_op.or(event.wait_lock()) == Some::<LockId>(lock)
    };
    let mut section = Vec::new();
    for j in (i..trace.events.len()).filter(concerns) {
        section.push(j);
        if trace.events[j].op() == end {
            break;
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Order, Relation};
    use crate::{generated, trace};
    use foresee_trace::generate::Config;

    fn text(trace: &Trace) -> String {
        let event = |e: &foresee_trace::Event| {
            let thread = trace.names.threads.get(e.thread());
            format!("{thread}: {}", e.describe(&trace.names, &trace.pool))
        };
        trace.events.iter().map(event).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn only_what_matters_is_left() {
        let trace = trace! {
            T1: fork(T2), fork(T3), acq(l), acq(m), w(x), rel(m), rel(l); T3: event(a);
            T2: acq(l), acq(l), r(y), rel(l), r(x), rel(l), w(z); T1: join(T2), w(x)
        };
        let conflicts = |trace: &Trace| {
            let order = Order::new(trace, Relation::SyncOnly);
            let accesses = |i: &usize| trace.events[*i].target_name(&trace.names) == Some("x");
            let on_x: Vec<usize> = (0..trace.events.len()).filter(accesses).collect();
            on_x.iter().any(|&a| on_x.iter().any(|&b| order.concurrent(a, b)))
        };
        assert_eq!(text(&shrink(&trace, conflicts)), "T1: w(x); T2: r(x)");
    }

    #[test]
    fn what_is_shrunk_stays_well_formed() {
        for seed in 0..200 {
            let trace = generated(Config { events: 40, ..Config::small(seed) });
            let writes = |trace: &Trace| trace.events.iter().filter(|e| e.op().writes()).count();
            let wanted = writes(&trace).min(2);
            let small = shrink(&trace, |trace| writes(trace) >= wanted);
            assert_eq!(violations(&small), []);
            assert_eq!(writes(&small), wanted);
            assert!(small.events.len() <= 6, "{}", text(&small));
        }
    }
}
