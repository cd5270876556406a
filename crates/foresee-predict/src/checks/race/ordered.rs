//! Pairs that are ordered only by values that were read.
//!
//! A pair of accesses is ordered if one requires the other through a value that was read in
//! between. Reads that see other writes of the same value may remove that order: then the pair is
//! tried. Or the order is only that of a counter. Nearly always a value that was read is a
//! hand-over: a thread waits for it, or continues only because of it. If locks or atomics order the
//! accesses of that value, they order the pair; if not, those accesses race themselves. But a value
//! that is read only to be written back changed, as in `n = n + 1` under a lock, does not influence
//! the thread: had it come first, it would have found another number and continued as well. Pairs
//! that nothing else orders are conditional.

use std::collections::{HashMap, HashSet};

use foresee_causality::{Clocks, Order};
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::super::Context;
use super::classes::{Classes, Group, Known, SiteKey};
use super::suspects::Suspects;
use super::tokens::{Guards, Tokens};
use crate::analysis::AnalysisError;
use crate::reorder::NONE;

/// The number of pairs of accesses that are kept for a pair of places.
const MOST_PAIRS: usize = 4;

/// For pairs of places, some pairs of accesses; and the number of pairs of classes and variables
/// that were skipped.
type Unordered = (HashMap<[SiteKey; 2], Vec<[u32; 2]>>, u64);

/// What to try for a pair of places whose accesses are all ordered by values that were read.
#[derive(Debug)]
pub(super) struct Kept {
    /// The nearest pairs of accesses.
    pub(super) pairs: Vec<[u32; 2]>,
    /// Whether they are ordered whichever writes of the same value reads see, and only by updates.
    pub(super) is_impossible: bool,
}

/// For pairs of places, by number, what to try; and the number of pairs of classes and variables
/// that were skipped.
pub(super) fn ordered(
    context: &Context<'_>,
    suspects: &Suspects,
    tokens: &Tokens,
    classes: &Classes,
) -> Result<(HashMap<u32, Kept>, u64), AnalysisError> {
    let is_ordered = |group: &Group| group.is_open && group.is_settled();
    if !classes.groups.iter().any(is_ordered) {
        return Ok((HashMap::new(), 0));
    }
    let requirements = context.requirements;
    let mut all: HashMap<u32, Kept> = HashMap::new();
    let mut most_left_out = 0;
    // For variables with many classes, not all ordered pairs of places are known.
    let known: HashSet<[SiteKey; 2]> = classes.groups.iter().map(|g| classes.places(g)).collect();
    let mut keep = |(mut nearest, left_out): Unordered, is_impossible: bool| {
        let unknown = nearest.keys().filter(|places| !known.contains(*places)).count() as u64;
        most_left_out = (left_out + unknown).max(most_left_out);
        for (key, group) in (0..).zip(&classes.groups).filter(|(_, group)| is_ordered(group)) {
            if let Some(pairs) = nearest.remove(&classes.places(group)) {
                all.entry(key).or_insert(Kept { pairs, is_impossible });
            }
        }
    };
    if requirements.has_free_reads() {
        let view = |index: u32, event: &Event| requirements.bound(index, event);
        keep(unordered(context, suspects, tokens, view)?, false);
    }
    let view = |index: u32, event: &Event| match event.op().reads() && requirements.is_update(index)
    {
        true => Event::new(event.thread(), Op::Event),
        false => requirements.bound(index, event),
    };
    keep(unordered(context, suspects, tokens, view)?, true);
    Ok((all, most_left_out))
}

/// For each pair of places, the nearest pairs of accesses that their requirements leave unordered,
/// with events as `view` returns them.
fn unordered(
    context: &Context<'_>,
    suspects: &Suspects,
    tokens: &Tokens,
    view: impl Fn(u32, &Event) -> Event,
) -> Result<Unordered, AnalysisError> {
    let mut classes = Classes::new(Some([MOST_PAIRS, MOST_PAIRS]), context.room / 2);
    let mut needs: Clocks = Clocks::new(Order::Needs);
    let mut guards = Guards::new(tokens);
    let mut times: Vec<u32> = Vec::new();
    let uninstrumented = context.uninstrumented();
    for (index, event) in (0..).zip(&context.trace.events) {
        let (op, thread) = (event.op(), event.thread());
        if op == Op::Init {
            continue;
        }
        let time = entry(&mut times, thread.index());
        *time += 1;
        let is_access = op.reads() || op.writes();
        if is_access && !uninstrumented.contains(&thread) && suspects.has(event.var()) {
            classes.access(index, event, guards.set(thread), *time, |other| {
                let possible = needs.count_now(thread, ThreadId(other));
                Known { sure: u32::MAX, possible, until: u32::MAX }
            });
        }
        guards.event(index, event);
        let is_private = is_access && context.requirements.object(index) == NONE;
        needs.event(&match is_private {
            true => Event::new(thread, Op::Event),
            false => view(index, event),
        })?;
        needs.forget_old(&[]);
    }
    let pairs = |group: &Group| {
        let mut pairs: Vec<[u32; 2]> = group.pairs.iter().map(|pair| pair.events).collect();
        pairs.sort_unstable_by_key(|[e, f]| (f - e, *e));
        pairs
    };
    let groups = classes.groups.iter().filter(|group| !group.is_settled());
    let nearest = groups.map(|group| (classes.places(group), pairs(group))).collect();
    Ok((nearest, classes.left_out + classes.crowded()))
}
