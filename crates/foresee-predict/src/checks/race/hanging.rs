//! Pairs that only a counter keeps in order.
//!
//! A pair of accesses is ordered if one needs the other by what was read in between. Nearly always
//! that is a hand-over: a thread waits for a value, or goes on only because of it, and if the accesses
//! of that value are ordered by locks or atomics, so is the pair; if they are not, they race
//! themselves. But a value that is read only to be written back changed, as in `n = n + 1` under a
//! lock, tells the thread nothing of the others: had it come first, it would have found another
//! number and gone on all the same. Pairs that nothing else keeps in order are conditional.

use std::collections::HashMap;

use foresee_causality::{Clocks, Order};
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::super::Context;
use super::super::scene::Scene;
use super::classes::{Classes, Group, Known, SiteKey};
use super::suspects::Suspects;
use crate::analysis::AnalysisError;
use crate::reorder::NONE;

/// For each pair of places that has one, the nearest pair of accesses that is not ordered by what
/// reads see that are no updates.
pub(super) fn hanging(
    context: &Context<'_>,
    suspects: &Suspects,
) -> Result<HashMap<[SiteKey; 2], [u32; 2]>, AnalysisError> {
    let mut classes = Classes::new(Some([1, 1]));
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
            classes.access(index, event, locks, *time, |other| {
                let possible = needs.count_now(thread, ThreadId(other));
                Known { sure: u32::MAX, possible, until: u32::MAX }
            });
        }
        scene.event(index, event);
        let is_private = is_access && context.requirements.object(index) == NONE;
        let is_update = op.reads() && context.requirements.is_update(index);
        let event = match is_private || is_update {
            true => Event::new(thread, Op::Event),
            false => context.requirements.bound(index, event),
        };
        needs.event(&event)?;
        needs.forget_old(&[]);
    }
    let nearest = |group: &Group| Some((classes.places(group), group.pairs.first()?.events));
    Ok(classes.groups.iter().filter_map(nearest).collect())
}
