//! Waits whose notification cannot come too early, because of a value read before them.
//!
//! A thread acquires the lock of its wait, reads a variable, and begins to wait. Another thread
//! writes that variable under the lock and notifies, then or later. If the notification came before
//! the wait, so would the critical section of that write, since it is over or excludes the waiting
//! one; so the read would come after the write. If in every reordering the value that the read saw
//! is older than the write, the notification comes after the beginning of the wait.
//!
//! Whether the notification comes at all is a separate question: no thread may be stuck because of
//! the wait, other than by requiring its end.

use foresee_causality::{Clocks, Epoch, Order, TooLong};
use foresee_trace::Trace;

use crate::checks::lock_state::{given, taken};
use crate::checks::locksets::Hold;
use crate::reorder::{NONE, Requirements};

/// How far back to search for the section of a wait and for that of a write.
const MOST_STEPS: usize = 4096;
/// The number of writes before a notification that are examined.
const MOST_WRITES: usize = 8;

/// For each wait, given as its beginning and its notification, whether the notification is known to
/// come after the beginning in every reordering.
pub(crate) fn guarded(
    trace: &Trace,
    requirements: &Requirements,
    waits: impl Iterator<Item = (u32, u32)>,
) -> Result<Vec<bool>, TooLong> {
    let mut guarded = Vec::new();
    // The write that was seen, the one that would have been seen, and the wait.
    let mut pairs: Vec<(u32, u32, usize)> = Vec::new();
    let mut reads = Vec::new();
    for (i, (begin, notification)) in waits.enumerate() {
        guarded.push(false);
        reads_before(trace, requirements, begin, &mut reads);
        for (write, object) in writes_before(trace, requirements, begin, notification, &reads) {
            for &(_, seen) in reads.iter().filter(|read| read.0 == object) {
                match seen == NONE || !requirements.is_step(seen) {
                    // The initial value is older than everything.
                    true => guarded[i] = true,
                    false => pairs.push((write, seen, i)),
                }
            }
        }
    }
    pairs.retain(|&(_, _, i)| !guarded[i]);
    if pairs.is_empty() {
        return Ok(guarded);
    }
    pairs.sort_unstable();
    let mut seen: Vec<(u32, Option<Epoch>)> = pairs.iter().map(|pair| (pair.1, None)).collect();
    seen.sort_unstable_by_key(|&(event, _)| event);
    seen.dedup_by_key(|&mut (event, _)| event);
    let (mut next_seen, mut next_pair) = (0, 0);
    let mut clocks: Clocks = Clocks::new(Order::Needs);
    for (event, it) in (0..).zip(&trace.events) {
        let stamp = clocks.event(&requirements.bound(event, it))?;
        if seen.get(next_seen).is_some_and(|&(one, _)| one == event) {
            seen[next_seen].1 = Some(stamp.epoch());
            next_seen += 1;
        }
        while let Some(&(write, older, wait)) = pairs.get(next_pair).filter(|p| p.0 == event) {
            next_pair += 1;
            let at = seen.binary_search_by_key(&older, |&(one, _)| one);
            let epoch = at.ok().and_then(|at| seen[at].1);
            guarded[wait] |= older != write && epoch.is_some_and(|e| clocks.knows(&stamp, e));
        }
        if next_pair == pairs.len() {
            break;
        }
        clocks.forget_old(&[]);
    }
    Ok(guarded)
}

/// The variables that were read in the section that ends with the beginning of a wait, with the
/// writes that were seen.
fn reads_before(
    trace: &Trace,
    requirements: &Requirements,
    begin: u32,
    reads: &mut Vec<(u32, u32)>,
) {
    reads.clear();
    let lock = trace.events[begin as usize].wait_lock();
    let mut event = begin;
    for _ in 0..MOST_STEPS {
        if !requirements.has_previous(event) {
            break;
        }
        event = requirements.previous(event);
        if taken(&trace.events[event as usize]).is_some_and(|hold| Some(hold.lock) == lock) {
            return;
        }
        let is_bound = requirements.kind(event).reads() && !requirements.is_free(event);
        if is_bound && requirements.object(event) != NONE {
            reads.push((requirements.object(event), requirements.partner(event)));
        }
    }
    // The beginning of the section is unknown, so its reads are unknown, too.
    reads.clear();
}

/// The last writes of these variables by the thread of a notification before it, under the lock of
/// the wait, with their variables.
fn writes_before(
    trace: &Trace,
    requirements: &Requirements,
    begin: u32,
    notification: u32,
    reads: &[(u32, u32)],
) -> Vec<(u32, u32)> {
    let (mut found, mut in_doubt) = (Vec::new(), Vec::new());
    if reads.is_empty() {
        return found;
    }
    let lock = trace.events[begin as usize].wait_lock();
    let is_it = |hold: Hold| Some(hold.lock) == lock;
    let mut event = notification;
    for _ in 0..MOST_STEPS {
        if found.len() >= MOST_WRITES || !requirements.has_previous(event) {
            break;
        }
        event = requirements.previous(event);
        let it = &trace.events[event as usize];
        if given(it).is_some_and(is_it) {
            in_doubt.clear();
        } else if taken(it).is_some_and(is_it) {
            found.append(&mut in_doubt);
        } else if requirements.kind(event).writes() {
            let object = requirements.object(event);
            if reads.iter().any(|read| read.0 == object) {
                in_doubt.push((event, object));
            }
        }
    }
    found
}
