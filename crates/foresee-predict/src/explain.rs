//! How a correct reordering differs from the observed run.

use std::collections::HashSet;

use foresee_causality::judge::ChangedRead;
use foresee_trace::{
    Detail, Fact, Id, LockEdge, Op, OtherRead, StillToCome, SwappedSections, ThreadId, Trace, entry,
};

/// The sections that swapped, the events left out, and the reads that see another value, in an
/// order whose first `observed` events are as observed.
pub(crate) fn differences(
    trace: &Trace,
    observed: u64,
    order: &[u64],
    changed: &[ChangedRead],
) -> Vec<Detail> {
    let mut details = Vec::new();
    let swapped = swapped_sections(trace, order);
    if !swapped.is_empty() {
        details.push(Detail::new("sections swapped", Fact::SwappedSections(swapped)));
    }
    let dropped = dropped_events(trace, observed as usize, order);
    if !dropped.is_empty() {
        details.push(Detail::new("still to come", Fact::StillToCome(dropped)));
    }
    let reads: Vec<OtherRead> = changed.iter().map(|read| changed_read(trace, read)).collect();
    if !reads.is_empty() {
        details.push(Detail::new("sees another value", Fact::OtherReads(reads)));
    }
    details
}

fn thread_name(trace: &Trace, thread: ThreadId) -> String {
    trace.names.threads.get(thread).to_owned()
}

fn changed_read(trace: &Trace, read: &ChangedRead) -> OtherRead {
    let event = &trace.events[read.read as usize];
    OtherRead {
        event: read.read,
        thread: thread_name(trace, event.thread()),
        variable: trace.names.vars.get(event.var()).to_owned(),
        sees: read.sees,
        saw: read.saw,
    }
}

/// Neighbouring sections of a lock, of different threads, that were observed the other way round.
fn swapped_sections(trace: &Trace, order: &[u64]) -> Vec<SwappedSections> {
    let mut last: Vec<Option<(u64, ThreadId)>> = Vec::new();
    let mut swapped = Vec::new();
    for &index in order {
        let event = &trace.events[index as usize];
        let Some(LockEdge { lock, takes: true, .. }) = event.lock_edge() else { continue };
        let before = entry(&mut last, lock.index()).replace((index, event.thread()));
        if let Some((other, thread)) = before
            && other > index
            && thread != event.thread()
        {
            swapped.push(SwappedSections {
                lock: trace.names.locks.get(lock).to_owned(),
                first: (thread_name(trace, thread), other),
                second: (thread_name(trace, event.thread()), index),
            });
        }
    }
    swapped
}

/// For each thread, its events that were observed before the last one here but have not happened.
fn dropped_events(trace: &Trace, observed: usize, order: &[u64]) -> Vec<StillToCome> {
    let happened: HashSet<usize> = order.iter().map(|&index| index as usize).collect();
    let end = happened.iter().max().map_or(observed, |&last| last.max(observed));
    // For each thread the first such event, and how many there are.
    let mut missing: Vec<Option<(u64, u64)>> = Vec::new();
    for (i, event) in trace.events[..end].iter().enumerate().skip(observed) {
        if !happened.contains(&i) && event.op() != Op::Init {
            entry(&mut missing, event.thread().index()).get_or_insert((i as u64, 0)).1 += 1;
        }
    }
    let of_thread = |(t, missing): (usize, Option<(u64, u64)>)| {
        let (event, count) = missing?;
        Some(StillToCome { thread: thread_name(trace, ThreadId::new(t)), event, count })
    };
    missing.into_iter().enumerate().filter_map(of_thread).collect()
}
