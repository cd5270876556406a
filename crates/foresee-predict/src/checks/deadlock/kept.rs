//! Locks that a thread still holds when it ends: any later acquire waits forever.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Id, LocId, LockId, Op, ThreadId, Trace, entry};

use super::nearest;
use super::requests::Patience;
use crate::checks::lock_state::{given, taken};
use crate::checks::locksets::Hold;
use crate::checks::tries::{Candidate, Try};
use crate::reorder::Wanted;

/// A lock that a thread holds when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) thread: ThreadId,
    pub(crate) hold: Hold,
    /// Where it was taken.
    pub(crate) acquire: u32,
    /// The thread's last event.
    pub(crate) last: u32,
}

/// The locks that threads held when they ended, according to the trace and not because the trace
/// stops there.
pub(crate) fn kept(trace: &Trace) -> Vec<Kept> {
    let mut held: Vec<Vec<(Hold, u32)>> = Vec::new();
    let mut last: Vec<u32> = Vec::new();
    let mut ended: Vec<bool> = Vec::new();
    for (i, event) in (0..).zip(&trace.events) {
        let (op, t) = (event.op(), event.thread().index());
        if op == Op::Init {
            continue;
        }
        *entry(&mut last, t) = i;
        if let Some(hold) = taken(event) {
            entry(&mut held, t).push((hold, i));
        } else if let Some(hold) = given(event) {
            let held = entry(&mut held, t);
            if let Some(at) = held.iter().rposition(|one| one.0 == hold) {
                held.remove(at);
            }
        }
        match op {
            Op::ThreadEnd => *entry(&mut ended, t) = true,
            Op::Join => *entry(&mut ended, event.other().index()) = true,
            _ => {}
        }
    }
    let threads = (0..held.len()).filter(|&t| ended.get(t) == Some(&true));
    let all = threads.flat_map(|t| held[t].iter().map(move |&(hold, acquire)| (t, hold, acquire)));
    all.map(|(t, hold, acquire)| Kept { thread: ThreadId::new(t), hold, acquire, last: last[t] })
        .collect()
}

/// What to try for each place where another thread acquires such a lock, and the lock.
pub(crate) fn candidates(
    trace: &Trace,
    kept: &[Kept],
    first_key: u32,
    most: usize,
) -> (Vec<Candidate>, Vec<Kept>) {
    if kept.is_empty() {
        return Default::default();
    }
    let mut acquires: HashMap<(usize, LocId, ThreadId), Vec<u32>, RandomState> = HashMap::default();
    let mut by_lock: HashMap<LockId, Vec<usize>, RandomState> = HashMap::default();
    for (i, one) in kept.iter().enumerate() {
        by_lock.entry(one.hold.lock).or_default().push(i);
    }
    let mut patience: Vec<Patience> = Vec::new();
    for (i, event) in (0..).zip(&trace.events) {
        if event.op() == Op::Init {
            continue;
        }
        let t = event.thread();
        let before = std::mem::replace(entry(&mut patience, t.index()), Patience::after(event));
        let Some(hold) = taken(event).filter(|_| before == Patience::Endless) else { continue };
        for &number in by_lock.get(&hold.lock).into_iter().flatten() {
            let one = &kept[number];
            if one.thread != t && one.hold.excludes(hold) {
                // Without places, threads distinguish them.
                let thread = if event.loc() == LocId::NONE { t } else { ThreadId(0) };
                acquires.entry((number, event.loc(), thread)).or_default().push(i);
            }
        }
    }
    let mut groups: Vec<(usize, Vec<u32>)> =
        acquires.into_iter().map(|((number, ..), acquires)| (number, acquires)).collect();
    groups.sort_unstable();
    let mut out = (Vec::new(), Vec::new());
    for (number, acquires) in groups {
        let one = kept[number];
        let nearest = nearest::nearest(&[&[one.last], &acquires], most);
        let executed = vec![Wanted { event: one.last, keeps_value: true }];
        let tries =
            nearest.into_iter().map(|pair| Try { executed: executed.clone(), next: vec![pair[1]] });
        let (key, is_complete) = (first_key + out.1.len() as u32, acquires.len() <= most);
        out.0.push(Candidate { key, tries: tries.collect(), is_complete, ..Candidate::default() });
        out.1.push(one);
    }
    out
}
