//! Races by schedulable happens-before, with plain vectors and all earlier accesses.

use std::collections::BTreeSet;

use foresee_trace::{Id, LocId, Op, Trace, entry};

use super::conflict;

fn join(into: &mut Vec<usize>, from: &[usize]) {
    for (t, &time) in from.iter().enumerate() {
        let own = entry(into, t);
        *own = (*own).max(time);
    }
}

/// All locations of accesses that schedulable happens-before leaves unordered with another one. The
/// trace may have only accesses, exclusive locks, forks and joins.
pub fn racy_places(trace: &Trace) -> BTreeSet<LocId> {
    let mut threads: Vec<Vec<usize>> = Vec::new();
    let mut locks: Vec<Vec<usize>> = Vec::new();
    let mut writes: Vec<Vec<usize>> = Vec::new();
    // Event, thread, and time in the thread.
    let mut accesses: Vec<Vec<(usize, usize, usize)>> = Vec::new();
    let mut places = BTreeSet::new();
    for (i, event) in trace.events.iter().enumerate() {
        let t = event.thread().index();
        let mut clock = std::mem::take(entry(&mut threads, t));
        let time = *entry(&mut clock, t) + 1;
        if event.op().reads() || event.op().writes() {
            let x = event.var().index();
            for &(k, u, when) in entry(&mut accesses, x).iter() {
                let known = clock.get(u).copied().unwrap_or(0);
                if when > known && conflict(&trace.events[k], event) {
                    places.extend([trace.events[k].loc(), event.loc()]);
                }
            }
            accesses[x].push((i, t, time));
        }
        clock[t] = time;
        match event.op() {
            Op::Acquire => join(&mut clock, entry(&mut locks, event.lock().index())),
            Op::Release => join(entry(&mut locks, event.lock().index()), &clock),
            Op::Fork => join(entry(&mut threads, event.other().index()), &clock),
            Op::Join => join(&mut clock, entry(&mut threads, event.other().index())),
            Op::Read => join(&mut clock, entry(&mut writes, event.var().index())),
            Op::Write => entry(&mut writes, event.var().index()).clone_from(&clock),
            _ => {}
        }
        threads[t] = clock;
    }
    places
}
