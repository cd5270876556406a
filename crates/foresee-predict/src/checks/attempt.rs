//! Tries to reach one goal, from the cheapest search to the strongest.
//!
//! First, the impossible: if the requirements of the goal include events that must not have
//! happened yet, no reordering reaches it. Then a search with one slice, which keeps the order of
//! critical sections, and then with more slices, which may swap them, with a few wrong choices
//! allowed. A failed search with `n` slices proves nothing about `n + 1`, so only the first search
//! proves anything.
//!
//! All budgets are tried with every read at the write that it saw, and then, if reads could have
//! seen other writes of the same value, again with any of these.

use foresee_trace::Space;
use serde::{Deserialize, Serialize};

use crate::reorder::{Answer, Effort, Goal, Search, Sight};

/// The budget of one search: its number of slices and of wrong choices.
pub(crate) type Budget = (u8, u32);

/// For goals that only constrain the next events: races and deadlocks.
pub(crate) const NEXT: &[Budget] = &[(1, 0), (2, 16), (3, 64)];

/// For goals that also constrain the past: atomicity and order.
pub(crate) const EXECUTED: &[Budget] = &[(1, 16), (2, 64)];

/// The factor by which wrong choices grow if reads choose among writes.
const MORE_FAILURES: u32 = 4;

/// How far back from the goal events may change, and how many steps one search may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) look_back: u32,
    pub(crate) work: u64,
    /// Whether the requirements of the goal are known not to rule it out.
    pub(crate) is_conceivable: bool,
    /// Whether some read is known to have to see another write than it saw.
    pub(crate) is_only_by_value: bool,
}

/// A reordering that reaches a goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// The number of events that happen as observed ...
    pub(crate) observed: u32,
    /// ... and then these.
    pub(crate) order: Vec<u32>,
    /// The index of the budget that found it.
    pub(crate) budget: usize,
    /// What reads had to see.
    pub(crate) sight: Sight,
}

impl Reached {
    /// The space it was found in. With the first budget no critical section overtakes another.
    pub(crate) fn reorder(&self) -> Space {
        Space::Sliced
    }
}

/// The result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Attempt {
    /// A reordering reaches the goal.
    Found(Reached),
    /// No reordering reaches the goal.
    Impossible,
    /// Exhaustive searches found no reordering.
    NotFound,
    /// A search was given up.
    Undecided,
    /// Not tried: only reads that see other writes could reach it, and it is far away.
    Doubtful,
}

/// Tries one budget after the other until an answer is found.
pub(crate) fn attempt(
    search: &mut Search<'_>,
    goal: &Goal<'_>,
    budgets: &[Budget],
    reach: Reach,
) -> Attempt {
    if goal.first().is_none() {
        return Attempt::Impossible;
    }
    if !reach.is_conceivable {
        match search.conceive(goal) {
            Some(true) => {}
            Some(false) => return Attempt::Impossible,
            None => return Attempt::Doubtful,
        }
    }
    let before = search.work();
    let seen = match reach.is_only_by_value {
        true => Attempt::NotFound,
        false => climb(search, Sight::Writers, goal, budgets, reach),
    };
    // With more writes to choose from, a search that is too long only becomes longer.
    let is_too_long = seen == Attempt::Undecided && search.work() - before >= reach.work;
    if matches!(seen, Attempt::Found(_)) || is_too_long || !search.has_free_reads() {
        return seen;
    }
    match (seen, climb(search, Sight::Values, goal, budgets, reach)) {
        (_, found @ Attempt::Found(_)) => found,
        (Attempt::NotFound, Attempt::NotFound) => Attempt::NotFound,
        _ => Attempt::Undecided,
    }
}

/// Tries one budget after the other, with reads that see no more than this.
pub(crate) fn climb(
    search: &mut Search<'_>,
    sight: Sight,
    goal: &Goal<'_>,
    budgets: &[Budget],
    reach: Reach,
) -> Attempt {
    let anchor = goal.first().unwrap_or(0).saturating_sub(reach.look_back);
    let mut gave_up_once = false;
    // More writes to choose from need more wrong choices and more slices.
    let more = |&(slices, failures): &Budget| (slices + 1, failures * MORE_FAILURES);
    let top = budgets.last().filter(|budget| budget.1 > 0 && sight == Sight::Values).map(more);
    for (budget, (slices, failures)) in budgets.iter().copied().chain(top).enumerate() {
        let failures = if sight == Sight::Values { failures * MORE_FAILURES } else { failures };
        let effort = Effort { slices, failures, work: reach.work };
        let before = search.work();
        match search.ask_seeing(sight, goal, anchor, effort) {
            Answer::Yes { observed, order } => {
                return Attempt::Found(Reached { observed, order, budget, sight });
            }
            // It ran out of work, as it always does without choices, and a larger budget needs more.
            Answer::No { gave_up: true, .. }
                if failures == 0 && sight == Sight::Writers
                    || search.work() - before >= reach.work =>
            {
                return Attempt::Undecided;
            }
            Answer::No { gave_up, .. } => gave_up_once |= gave_up,
        }
    }
    if gave_up_once { Attempt::Undecided } else { Attempt::NotFound }
}
