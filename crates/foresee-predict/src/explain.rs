//! How a correct reordering differs from the observed run, in words.

use std::collections::HashSet;

use foresee_causality::judge::ChangedRead;
use foresee_trace::{Id, LockEdge, Name, Op, ThreadId, Trace, entry};

/// The number of differences of one kind that are listed individually.
const TOLD: usize = 5;

/// The sections that swapped, the events left out, and the reads that see another value, in an
/// order whose first `observed` events are as observed.
pub(crate) fn differences(
    trace: &Trace,
    observed: u64,
    order: &[u64],
    changed: &[ChangedRead],
) -> Vec<(String, String)> {
    let mut details = Vec::new();
    let swapped = swapped_sections(trace, order);
    if !swapped.is_empty() {
        details.push(("sections swapped".to_owned(), list(&swapped)));
    }
    let dropped = dropped_events(trace, observed as usize, order);
    if !dropped.is_empty() {
        details.push(("still to come".to_owned(), list(&dropped)));
    }
    let reads: Vec<String> = changed.iter().map(|read| changed_read(trace, read)).collect();
    if !reads.is_empty() {
        details.push(("sees another value".to_owned(), list(&reads)));
    }
    details
}

fn list(all: &[String]) -> String {
    let mut text = all[..all.len().min(TOLD)].join("; ");
    if all.len() > TOLD {
        text += &format!("; and {} more", all.len() - TOLD);
    }
    text
}

fn changed_read(trace: &Trace, read: &ChangedRead) -> String {
    let event = &trace.events[read.read as usize];
    let thread = Name(trace.names.threads.get(event.thread()));
    let variable = Name(trace.names.vars.get(event.var()));
    let writer = |write: Option<u64>| match write {
        Some(write) => format!("what event {write} wrote"),
        None => "its initial value".to_owned(),
    };
    format!(
        "the last read of {thread} here, event {}, finds in {variable} {}, not {}",
        read.read,
        writer(read.sees),
        writer(read.saw)
    )
}

/// Neighbouring sections of a lock, of different threads, that were observed the other way round.
fn swapped_sections(trace: &Trace, order: &[u64]) -> Vec<String> {
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
            let names = &trace.names;
            let lock = Name(names.locks.get(lock));
            let (first, second) = (names.threads.get(thread), names.threads.get(event.thread()));
            swapped.push(format!(
                "{lock}: {} takes it at event {other} before {} does at event {index}",
                Name(first),
                Name(second)
            ));
        }
    }
    swapped
}

/// For each thread, its events that were observed before the last one here but have not happened.
fn dropped_events(trace: &Trace, observed: usize, order: &[u64]) -> Vec<String> {
    let happened: HashSet<usize> = order.iter().map(|&index| index as usize).collect();
    let end = happened.iter().max().map_or(observed, |&last| last.max(observed));
    // For each thread the first such event, and how many there are.
    let mut missing: Vec<Option<(usize, usize)>> = Vec::new();
    for (i, event) in trace.events[..end].iter().enumerate().skip(observed) {
        if !happened.contains(&i) && event.op() != Op::Init {
            entry(&mut missing, event.thread().index()).get_or_insert((i, 0)).1 += 1;
        }
    }
    let tell = |(t, missing): (usize, Option<(usize, usize)>)| {
        let (first, count) = missing?;
        let thread = Name(trace.names.threads.get(ThreadId::new(t)));
        let events = if count == 1 { "one event".to_owned() } else { format!("{count} events") };
        Some(format!("{events} of {thread} from event {first} on"))
    };
    missing.into_iter().enumerate().filter_map(tell).collect()
}
