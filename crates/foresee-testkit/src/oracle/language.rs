//! Happens-before of C11 directly from its definition: every edge, and then their closure.

use foresee_trace::{Event, Id, Op, Trace};

/// Which events happen before which, in the observed order, by the rules of the language.
#[derive(Debug)]
pub struct Language {
    past: Vec<Vec<bool>>,
}

impl Language {
    /// The order of a trace.
    pub fn new(trace: &Trace) -> Language {
        let events = &trace.events;
        let mut past: Vec<Vec<bool>> = Vec::new();
        for j in 0..events.len() {
            let mut mine = vec![false; events.len()];
            for i in (0..j).filter(|&i| is_edge(events, i, j)) {
                mine[i] = true;
                for (k, known) in past[i].iter().enumerate() {
                    mine[k] |= known;
                }
            }
            past.push(mine);
        }
        Language { past }
    }

    /// Whether one event happens before another.
    pub fn before(&self, i: usize, j: usize) -> bool {
        self.past[j][i]
    }
}

/// Whether there is an edge from event `i` to the later event `j`.
fn is_edge(events: &[Event], i: usize, j: usize) -> bool {
    let (a, b) = (&events[i], &events[j]);
    if a.op() == Op::Init || b.op() == Op::Init {
        return a.op() == Op::Init;
    }
    a.thread() == b.thread()
        || a.op() == Op::Fork && a.other() == b.thread()
        || b.op() == Op::Join && b.other() == a.thread()
        // A thread without events was still forked before it could be joined.
        || a.op() == Op::Fork && b.op() == Op::Join && a.other() == b.other()
        || given(a).zip(taken(b)).is_some_and(|(x, y)| x.0 == y.0 && !(x.1 && y.1))
        || matches!(a.op(), Op::Notify | Op::NotifyAll)
            && matches!(b.op(), Op::Wait | Op::WaitEnd)
            && a.cond() == b.cond()
        || synchronises(events, i, j)
}

fn given(event: &Event) -> Option<(u32, bool)> {
    match event.op() {
        Op::Release => Some((event.lock().0, false)),
        Op::ReleaseShared => Some((event.lock().0, true)),
        Op::WaitBegin => event.wait_lock().map(|lock| (lock.0, false)),
        _ => None,
    }
}

fn taken(event: &Event) -> Option<(u32, bool)> {
    match event.op() {
        Op::Acquire => Some((event.lock().0, false)),
        Op::AcquireShared => Some((event.lock().0, true)),
        Op::WaitEnd => event.wait_lock().map(|lock| (lock.0, false)),
        _ => None,
    }
}

/// The remark on an access, which is the preceding event of its thread.
fn remark(events: &[Event], i: usize) -> Option<Op> {
    let before = events[..i].iter().rfind(|e| e.thread() == events[i].thread())?;
    Some(before.op()).filter(|op| op.weakens())
}

fn releases(events: &[Event], i: usize) -> bool {
    events[i].op().writes()
        && events[i].op().is_atomic()
        && !matches!(remark(events, i), Some(Op::Relaxed | Op::AcquireOnly))
}

fn acquires(events: &[Event], i: usize) -> bool {
    events[i].op().reads()
        && events[i].op().is_atomic()
        && !matches!(remark(events, i), Some(Op::Relaxed | Op::ReleaseOnly))
}

/// Whether `j` acquires what `i` releases, by itself or as a fence.
fn synchronises(events: &[Event], i: usize, j: usize) -> bool {
    let is_atomic = |k: &usize| events[*k].op().is_atomic();
    let heads: Vec<usize> = match events[i].op() {
        Op::FenceRelease | Op::Fence => {
            let own = |k: &usize| events[*k].thread() == events[i].thread();
            (i + 1..j).filter(own).filter(is_atomic).filter(|&k| events[k].op().writes()).collect()
        }
        _ if releases(events, i) => vec![i],
        _ => return false,
    };
    let reads: Vec<usize> = match events[j].op() {
        Op::FenceAcquire | Op::Fence => {
            let own = |k: &usize| events[*k].thread() == events[j].thread();
            (0..j).filter(own).filter(is_atomic).filter(|&k| events[k].op().reads()).collect()
        }
        _ if acquires(events, j) => vec![j],
        _ => return false,
    };
    heads.iter().any(|&head| reads.iter().any(|&read| is_in_sequence(events, head, read)))
}

/// Whether an atomic read sees a write of the release sequence that another write would head.
fn is_in_sequence(events: &[Event], head: usize, read: usize) -> bool {
    let same = |k: usize| events[k].var().index() == events[head].var().index();
    if head >= read || !same(read) {
        return false;
    }
    let is_write = |&k: &usize| {
        let op = events[k].op();
        op.writes() && op.is_atomic() && same(k)
    };
    (head + 1..read)
        .filter(is_write)
        .all(|k| events[k].thread() == events[head].thread() || events[k].op() == Op::Rmw)
}
