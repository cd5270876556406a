//! Pairs that are in order only by what was read.
//!
//! A pair of accesses is ordered if one needs the other by what was read in between. That may not be
//! so if reads see other writes of the same value: then it is tried. And it may be so only because of
//! a counter. Nearly always what was read is a hand-over: a thread waits for a value, or goes on only
//! because of it, and if the accesses of that value are ordered by locks or atomics, so is the pair; if
//! they are not, they race themselves. But a value that is read only to be written back changed, as in
//! `n = n + 1` under a lock, tells the thread nothing of the others: had it come first, it would have
//! found another number and gone on all the same. Pairs that nothing else keeps in order are
//! conditional.

use std::collections::{HashMap, HashSet};

use foresee_causality::{Clocks, Order};
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::super::Context;
use super::classes::{Classes, Group, Known, SiteKey};
use super::suspects::Suspects;
use super::tokens::{Guards, Tokens};
use crate::analysis::AnalysisError;
use crate::reorder::NONE;

/// How many pairs of accesses are kept for a pair of places.
const MOST_PAIRS: usize = 4;

/// For pairs of places some pairs of accesses, and for how many pairs of classes and variables there was no room.
type Unordered = (HashMap<[SiteKey; 2], Vec<[u32; 2]>>, u64);

/// What is to be asked of a pair of places all of whose accesses are in order by what was read.
#[derive(Debug)]
pub(super) struct Kept {
    /// The nearest pairs of accesses.
    pub(super) pairs: Vec<[u32; 2]>,
    /// Whether they are in order whichever writes of the same value reads see, and only updates keep
    /// them so.
    pub(super) is_impossible: bool,
}

/// For pairs of places, by their numbers, what is to be asked of them; and for how many pairs of
/// classes and variables there was no room.
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
    // Of variables that are accessed in many ways not all pairs of places that are in order are known.
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

/// For each pair of places the nearest pairs of accesses that are not in order by what they need, if
/// events are seen like this.
fn unordered(
    context: &Context<'_>,
    suspects: &Suspects,
    tokens: &Tokens,
    view: impl Fn(u32, &Event) -> Event,
) -> Result<Unordered, AnalysisError> {
    let mut classes = Classes::new(Some([MOST_PAIRS, MOST_PAIRS]));
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
