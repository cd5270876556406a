//! Fewer context switches in a witness, without any other change.
//!
//! A search lets each thread go as far as its goal needs, so that a thread that is needed late is often started late,
//! in the midst of what others do. Where a thread's turn has nothing to do with what comes between it and an earlier
//! or a later turn of the same thread, the two can be one: the result is equivalent in the sense of Mazurkiewicz,
//! every read sees what it saw, and every lock is held by whom it was. Only turns that thereby come closer to where
//! they were observed are moved, so that the witness also becomes easier to compare with the run. The judge sees the
//! result, not what it was made from.

use foresee_trace::{Event, Id, Op, Trace};

/// Longer orders stay as they are: nobody reads them step by step.
const LONGEST: usize = 2048;

/// How many pairs of events are compared at most.
const MOST_PAIRS: usize = 1 << 17;

/// The order with turns of threads joined where that changes nothing else. Its last step stays the last, and of the
/// events for which `is_fixed` holds, none changes places with another.
pub(crate) fn calm(trace: &Trace, order: &[u64], is_fixed: impl Fn(u64) -> bool) -> Vec<u64> {
    if order.len() > LONGEST {
        return order.to_vec();
    }
    let thread = |event: &u64| trace.events[*event as usize].thread();
    let mut turns: Vec<Vec<u64>> =
        order.chunk_by(|a, b| thread(a) == thread(b)).map(<[u64]>::to_vec).collect();
    let mut left = MOST_PAIRS;
    let mut can_move = |turn: &[u64], over: &[Vec<u64>], is_back: bool| {
        let pairs = turn.iter().flat_map(|a| over.iter().flatten().map(move |b| (*a, *b)));
        for (moved, other) in pairs {
            left = left.saturating_sub(1);
            let is_closer = if is_back { moved < other } else { moved > other };
            let (one, two) = (&trace.events[moved as usize], &trace.events[other as usize]);
            if left == 0
                || !is_closer
                || is_fixed(moved) && is_fixed(other)
                || !is_independent(one, two)
            {
                return false;
            }
        }
        true
    };
    let mut later = 1;
    while later < turns.len() {
        let own = thread(&turns[later][0]);
        let earlier = turns[..later].iter().rposition(|turn| thread(&turn[0]) == own);
        let Some(earlier) = earlier else {
            later += 1;
            continue;
        };
        let between = &turns[earlier + 1..later];
        // The last step is what the run is about.
        let is_last = later + 1 == turns.len();
        if !is_last && can_move(&turns[later], between, true) {
            let turn = turns.remove(later);
            turns[earlier].extend(turn);
        } else if can_move(&turns[earlier], between, false) {
            let mut turn = turns.remove(earlier);
            turn.append(&mut turns[later - 1]);
            turns[later - 1] = turn;
        } else {
            later += 1;
            continue;
        }
        join_neighbours(&mut turns, thread);
        later = earlier.max(1);
    }
    turns.concat()
}

/// Makes one turn of neighbouring ones of the same thread.
fn join_neighbours<T: PartialEq>(turns: &mut Vec<Vec<u64>>, thread: impl Fn(&u64) -> T) {
    turns.dedup_by(|next, turn| {
        let is_same = thread(&turn[0]) == thread(&next[0]);
        if is_same {
            turn.append(next);
        }
        is_same
    });
}

/// Whether two events of different threads can change places, as far as that is plain to see.
fn is_independent(one: &Event, two: &Event) -> bool {
    match (kind(one.op()), kind(two.op())) {
        (Kind::Other, _) | (_, Kind::Other) => false,
        (Kind::Access, Kind::Access) => {
            one.target() != two.target() || !one.op().writes() && !two.op().writes()
        }
        (Kind::Lock, Kind::Lock) => one.target() != two.target(),
        (Kind::Thread, _) if one.target() == Some(two.thread().index() as u32) => false,
        (_, Kind::Thread) if two.target() == Some(one.thread().index() as u32) => false,
        // What the program says of itself may speak of its memory, and of what it said before.
        (Kind::Said, Kind::Said | Kind::Access) | (Kind::Access, Kind::Said) => false,
        _ => true,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Access,
    Lock,
    Thread,
    Said,
    Other,
}

fn kind(op: Op) -> Kind {
    match op {
        Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Rmw => Kind::Access,
        Op::Acquire | Op::Release | Op::AcquireInner | Op::ReleaseInner => Kind::Lock,
        Op::AcquireShared | Op::ReleaseShared => Kind::Lock,
        Op::AcquireSharedInner | Op::ReleaseSharedInner => Kind::Lock,
        Op::Fork | Op::Join => Kind::Thread,
        Op::Begin | Op::End | Op::Enter | Op::Exit | Op::Event => Kind::Said,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use foresee_causality::judge::Judge;
    use foresee_testkit::{enough, random_trace, seeds, trace};

    use super::*;

    fn switches(trace: &Trace, order: &[u64]) -> usize {
        let thread = |event: u64| trace.events[event as usize].thread();
        order.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count()
    }

    /// How many pairs are not in their observed order.
    fn inversions(order: &[u64]) -> usize {
        let later = |i: usize| order[i + 1..].iter().filter(move |&&other| other < order[i]);
        (0..order.len()).map(|i| later(i).count()).sum()
    }

    #[test]
    fn a_thread_is_started_where_the_others_are() {
        let trace = trace! {
            T1: fork(T2), fork(T3);
            T2: acq(l), r(x), rel(l);
            T3: w(y);
            T2: w(y)
        };
        assert_eq!(calm(&trace, &[0, 2, 3, 1, 4, 5, 6], |_| false), [0, 1, 2, 3, 4, 5, 6]);
        // What is fixed stays.
        assert_eq!(calm(&trace, &[0, 2, 3, 1, 4], |_| true), [0, 2, 3, 1, 4]);
    }

    /// Random runs of random traces: what the judge accepts stays acceptable, and has no more switches and
    /// nothing else out of order than before.
    #[test]
    fn calmed_runs_are_runs() {
        let mut shorter = 0;
        for seed in seeds(10_000) {
            let trace = random_trace(seed);
            let judge = Judge::new(&trace);
            let mut random = fastrand::Rng::with_seed(seed);
            let length = trace.events.len().min(40);
            let mut order: Vec<u64> = (0..length as u64).collect();
            for _ in 0..4 * length {
                let at = random.usize(..length.max(2) - 1);
                if at + 1 >= length {
                    continue;
                }
                order.swap(at, at + 1);
                if judge.check_causality(&order).is_err() {
                    order.swap(at, at + 1);
                }
            }
            order.truncate(random.usize(..=length));
            if judge.check_causality(&order).is_err() {
                continue;
            }
            let calmer = calm(&trace, &order, |_| false);
            assert!(judge.check_causality(&calmer).is_ok(), "seed {seed}: {order:?} {calmer:?}");
            assert_eq!(calmer.last(), order.last(), "seed {seed}");
            assert!(switches(&trace, &calmer) <= switches(&trace, &order), "seed {seed}");
            assert!(inversions(&calmer) <= inversions(&order), "seed {seed}");
            shorter += usize::from(switches(&trace, &calmer) < switches(&trace, &order));
        }
        assert!(shorter >= enough(300), "only {shorter} runs became calmer");
    }
}
