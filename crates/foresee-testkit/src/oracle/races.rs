//! Races directly from their definition: two accesses that are both next in some state.

use std::collections::BTreeSet;

use foresee_trace::{Event, Id, Op, ThreadId, Trace};

use super::reorder::{Reads, Reorderings, State};

/// Whether two accesses could race at all: of different threads, on one variable, at least one of
/// them a write and not both atomic.
pub fn conflict(a: &Event, b: &Event) -> bool {
    let accesses = |e: &Event| e.op().reads() || e.op().writes();
    let atomic = |e: &Event| matches!(e.op(), Op::VolatileRead | Op::VolatileWrite | Op::Rmw);
    accesses(a)
        && accesses(b)
        && a.thread() != b.thread()
        && a.var() == b.var()
        && (a.op().writes() || b.op().writes())
        && !(atomic(a) && atomic(b))
}

/// All pairs of conflicting accesses, earlier one first, that are both the next of their threads
/// after some correct reordering.
///
/// # Panics
/// If there are too many reorderings: the trace is too large for this oracle.
pub fn races(trace: &Trace) -> BTreeSet<[usize; 2]> {
    // A thread whose last read saw another value has no next event.
    races_reading(trace, Reads::Strict)
}

/// Like [`races`], with this rule for reads.
///
/// # Panics
/// If there are too many reorderings: the trace is too large for this oracle.
pub fn races_reading(trace: &Trace, reads: Reads) -> BTreeSet<[usize; 2]> {
    let all = Reorderings::new(trace, reads);
    let threads = trace.names.threads.len();
    let mut forks = vec![None; threads];
    for (i, event) in trace.events.iter().enumerate().filter(|(_, e)| e.op() == Op::Fork) {
        forks[event.other().index()] = Some(i);
    }
    let next = |state: &State, t: usize| {
        let is_there = forks[t].is_none_or(|fork| all.has_happened(state, fork));
        all.next(state, ThreadId::new(t)).filter(|_| is_there)
    };
    let mut races = BTreeSet::new();
    all.reach(|state| {
        let next: Vec<usize> = (0..threads).filter_map(|t| next(state, t)).collect();
        for (i, &e) in next.iter().enumerate() {
            for &f in &next[..i] {
                if conflict(&trace.events[e], &trace.events[f]) {
                    races.insert([e.min(f), e.max(f)]);
                }
            }
        }
        false
    });
    races
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn accesses_race_if_both_can_be_next() {
        let swap = trace! { T1: acq(l), w(x), rel(l); T2: acq(l), w(y), rel(l), w(x) };
        assert_eq!(races(&swap), BTreeSet::from([[1, 6]]));
        let told = trace! { T1: w(x), w(y); T2: r(y), w(x) };
        assert_eq!(races(&told), BTreeSet::from([[1, 2]]));
        let forked = trace! { T1: w(x), fork(T2), w(x); T2: w(x) };
        assert_eq!(races(&forked), BTreeSet::from([[2, 3]]));
        let atomic = trace! { T1: rmw(x), vw(y); T2: rmw(x), vr(y) };
        assert_eq!(races(&atomic), BTreeSet::new());
    }
}
