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

use foresee_causality::{Clocks, Epoch, Order};
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::super::Context;
use super::super::scene::Scene;
use super::classes::{Classes, Group, Ordered};
use super::suspects::Suspects;
use crate::analysis::AnalysisError;
use crate::reorder::NONE;

/// How many pairs of accesses are kept for a pair of places.
const MOST_PAIRS: usize = 4;

/// For each pair of places some pairs of accesses, and how many pairs of classes there was no room for.
type Unordered = (Vec<Vec<[u32; 2]>>, u64);

/// What is to be asked of a pair of places all of whose accesses are in order by what was read.
#[derive(Debug)]
pub(super) struct Kept {
    /// The nearest pairs of accesses.
    pub(super) pairs: Vec<[u32; 2]>,
    /// Whether they are in order whichever writes of the same value reads see, and only updates keep
    /// them so.
    pub(super) is_impossible: bool,
}

/// For each pair of places, by its number, what is to be asked of it; and how many pairs of classes
/// there was no room for.
pub(super) fn ordered(
    context: &Context<'_>,
    suspects: &Suspects,
    groups: &[Group],
) -> Result<(Vec<Option<Kept>>, u64), AnalysisError> {
    let is_ordered =
        |group: &Group| group.is_open && group.pairs.is_empty() && group.sure.is_none();
    if !groups.iter().any(is_ordered) {
        return Ok((Vec::new(), 0));
    }
    let requirements = context.requirements;
    let mut all: Vec<Option<Kept>> = Vec::new();
    all.resize_with(groups.len(), || None);
    let mut most_left_out = 0;
    let mut keep = |(nearest, left_out): Unordered, is_impossible: bool| {
        most_left_out = left_out.max(most_left_out);
        for ((kept, group), pairs) in all.iter_mut().zip(groups).zip(nearest) {
            if kept.is_none() && is_ordered(group) && !pairs.is_empty() {
                *kept = Some(Kept { pairs, is_impossible });
            }
        }
    };
    if requirements.has_free_reads() {
        let view = |index: u32, event: &Event| requirements.bound(index, event);
        keep(unordered(context, suspects, view)?, false);
    }
    let view = |index: u32, event: &Event| match event.op().reads() && requirements.is_update(index)
    {
        true => Event::new(event.thread(), Op::Event),
        false => requirements.bound(index, event),
    };
    keep(unordered(context, suspects, view)?, true);
    Ok((all, most_left_out))
}

/// For each pair of places the nearest pairs of accesses that are not in order by what they need, if
/// events are seen like this.
fn unordered(
    context: &Context<'_>,
    suspects: &Suspects,
    view: impl Fn(u32, &Event) -> Event,
) -> Result<Unordered, AnalysisError> {
    let mut classes = Classes::new([MOST_PAIRS, MOST_PAIRS]);
    let mut needs: Clocks = Clocks::new(Order::Needs);
    let mut scene = Scene::default();
    let mut times: Vec<u32> = Vec::new();
    let strangers = context.strangers();
    for (index, event) in (0..).zip(&context.trace.events) {
        let (op, thread) = (event.op(), event.thread());
        if op == Op::Init {
            continue;
        }
        let time = entry(&mut times, thread.index());
        *time += 1;
        let is_access = op.reads() || op.writes();
        if is_access && !strangers.contains(&thread) && suspects.has(event.var()) {
            let locks = (scene.set(thread), &scene.locksets);
            classes.access(index, event, locks, *time, |other, time| {
                let epoch = Epoch { thread: ThreadId(other), time };
                if needs.knows_now(thread, epoch) { Ordered::Yes } else { Ordered::No }
            });
        }
        scene.event(index, event);
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
    Ok((classes.groups.iter().map(pairs).collect(), classes.left_out))
}
