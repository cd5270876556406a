//! How hard one question is tried: a ladder from the cheapest search to the strongest.
//!
//! First what cannot be at all: if the needs of the goal alone contain what must not have happened
//! yet, no reordering reaches it. Then one slice, which keeps the order of critical sections, and
//! then more slices, in which they swap, with a few wrong choices allowed. That a search with so
//! many slices finds nothing says nothing of more slices, so only the first rung proves anything.
//!
//! The whole ladder is climbed with every read at the write that it saw, and then, where reads could
//! have seen others of the same value, once more with any of these.

use foresee_trace::Reordering;

use crate::reorder::{Answer, Effort, Goal, Search, Sight};

/// A rung of the ladder: so many slices, so many wrong choices.
pub(crate) type Budget = (u8, u32);

/// For goals that only say what comes next: races and deadlocks.
pub(crate) const NEXT: &[Budget] = &[(1, 0), (2, 16), (3, 64)];

/// For goals that also say what has happened: atomicity and order.
pub(crate) const EXECUTED: &[Budget] = &[(1, 16), (2, 64)];

/// How many times as many wrong choices are allowed where reads choose among writes.
const MORE_FAILURES: u32 = 4;

/// How far back from the goal events may change, and how many steps one search may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) look_back: u32,
    pub(crate) work: u64,
    /// Whether it is known already that its needs do not rule the goal out.
    pub(crate) is_conceivable: bool,
    /// Whether it is known already that some read has to see another write than it saw.
    pub(crate) is_only_by_value: bool,
}

/// A reordering that reaches a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// So many events happen as observed ...
    pub(crate) observed: u32,
    /// ... and then these.
    pub(crate) order: Vec<u32>,
    /// The rung that found it.
    pub(crate) budget: usize,
    /// What reads had to see.
    pub(crate) sight: Sight,
}

impl Reached {
    /// The space it was found in. On the first rung no section overtakes another.
    pub(crate) fn reorder(&self) -> Reordering {
        Reordering::Sliced
    }
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// There is a reordering that reaches the goal.
    Found(Reached),
    /// There is none, whatever else is chosen.
    Impossible,
    /// None was found, by searches that came to their end.
    NotFound,
    /// A search was given up.
    Undecided,
    /// It was not even tried: only reads that see other writes than they saw could reach it, and it is
    /// far away.
    Doubtful,
}

/// Climbs the ladder until an answer is found.
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
    let seen = match reach.is_only_by_value {
        true => Attempt::NotFound,
        false => climb(search, Sight::Writers, goal, budgets, reach),
    };
    if matches!(seen, Attempt::Found(_)) || !search.has_free_reads() {
        return seen;
    }
    match (seen, climb(search, Sight::Values, goal, budgets, reach)) {
        (_, found @ Attempt::Found(_)) => found,
        (Attempt::NotFound, Attempt::NotFound) => Attempt::NotFound,
        _ => Attempt::Undecided,
    }
}

/// Climbs the ladder where reads must see no more than this.
pub(crate) fn climb(
    search: &mut Search<'_>,
    sight: Sight,
    goal: &Goal<'_>,
    budgets: &[Budget],
    reach: Reach,
) -> Attempt {
    let anchor = goal.first().unwrap_or(0).saturating_sub(reach.look_back);
    let mut gave_up_once = false;
    // More writes to choose from, more wrong choices, and more stretches to put them in.
    let more = |&(slices, failures): &Budget| (slices + 1, failures * MORE_FAILURES);
    let top = budgets.last().filter(|budget| budget.1 > 0 && sight == Sight::Values).map(more);
    for (budget, (slices, failures)) in budgets.iter().copied().chain(top).enumerate() {
        let failures = if sight == Sight::Values { failures * MORE_FAILURES } else { failures };
        let effort = Effort { slices, failures, work: reach.work };
        match search.ask_seeing(sight, goal, anchor, effort) {
            Answer::Yes { observed, order } => {
                return Attempt::Found(Reached { observed, order, budget, sight });
            }
            // Without choices there was only too much to do, and there will be no less.
            Answer::No { gave_up: true, .. } if failures == 0 && sight == Sight::Writers => {
                return Attempt::Undecided;
            }
            Answer::No { gave_up, .. } => gave_up_once |= gave_up,
        }
    }
    if gave_up_once { Attempt::Undecided } else { Attempt::NotFound }
}
