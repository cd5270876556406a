//! Candidates, tried on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::Context;
use super::attempt::{Attempt, Reach, Reached, Rung, attempt};
use super::tally::Tally;
use crate::reorder::{Goal, Search, Wanted};

/// Events that would show what a candidate stands for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Try {
    /// These happen, in this order.
    pub(crate) executed: Vec<Wanted>,
    /// Then these are the next of their threads.
    pub(crate) next: Vec<u32>,
}

impl Try {
    pub(crate) fn goal(&self) -> Goal<'_> {
        Goal { executed: &self.executed, next: &self.next }
    }
}

/// Something that may be reported once, and what would show it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    /// What the check knows it by.
    pub(crate) key: u32,
    /// The likeliest first.
    pub(crate) tries: Vec<Try>,
    /// Whether these are all that could show it, so that it is impossible if they all are.
    pub(crate) is_complete: bool,
    /// Whether the first try is known to succeed on the first rung, so that no effort is spared for
    /// its witness.
    pub(crate) is_sure: bool,
}

/// A candidate that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What the check knows it by.
    pub(crate) key: u32,
    /// The events that show it.
    pub(crate) by: Try,
    /// How.
    pub(crate) reached: Reached,
}

/// How many candidates a core takes at a time.
const CHUNK: usize = 4;

/// Tries all candidates, those first that begin first. What was found comes in this order, too.
pub(crate) fn try_all(
    context: &Context<'_>,
    mut candidates: Vec<Candidate>,
    rungs: &[Rung],
    until: Option<Instant>,
    tally: &mut Tally,
) -> Vec<Found> {
    candidates.retain(|candidate| !candidate.tries.is_empty());
    let first = |candidate: &Candidate| candidate.tries[0].goal().first();
    candidates.sort_by_key(|candidate| (first(candidate), candidate.key));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut search = Search::new(context.requirements, context.options.reads);
        let mut verdicts = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let end = (start + CHUNK).min(candidates.len());
            if start >= end {
                return verdicts;
            }
            for (i, candidate) in candidates[start..end].iter().enumerate() {
                if until.is_some_and(|until| Instant::now() >= until) {
                    return verdicts;
                }
                verdicts.push((start + i, try_one(&mut search, candidate, rungs, context)));
            }
        }
    };
    let cores = context.options.cores.clamp(1, candidates.len().div_ceil(CHUNK).max(1));
    let mut verdicts = Vec::new();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        verdicts.extend(work());
        for other in others {
            match other.join() {
                Ok(part) => verdicts.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    verdicts.sort_by_key(|&(at, _)| at);
    let late = (candidates.len() - verdicts.len()) as u64;
    tally.not_tried += late;
    tally.is_late |= late > 0;
    let mut found = Vec::new();
    for (at, (by, verdict)) in verdicts {
        match verdict {
            Attempt::Found(reached) => {
                let candidate = &mut candidates[at];
                let by = candidate.tries.swap_remove(by);
                found.push(Found { key: candidate.key, by, reached });
                tally.found += 1;
            }
            Attempt::Impossible => tally.by_order += 1,
            Attempt::NotFound => tally.not_found += 1,
            Attempt::Undecided => tally.undecided += 1,
        }
    }
    found
}

/// What becomes of a candidate, and of which of its tries.
fn try_one(
    search: &mut Search<'_>,
    candidate: &Candidate,
    rungs: &[Rung],
    context: &Context<'_>,
) -> (usize, Attempt) {
    let reach = Reach { look_back: context.options.look_back, work: context.options.work };
    if candidate.is_sure {
        let nearest = Reach { look_back: 0, work: u64::MAX };
        let sure = attempt(search, &candidate.tries[0].goal(), &rungs[..1], nearest);
        if matches!(sure, Attempt::Found(_)) {
            return (0, sure);
        }
    }
    let mut worst = Attempt::Impossible;
    for (i, by) in candidate.tries.iter().enumerate() {
        match attempt(search, &by.goal(), rungs, reach) {
            found @ Attempt::Found(_) => return (i, found),
            Attempt::Impossible => {}
            Attempt::NotFound => {
                if worst == Attempt::Impossible {
                    worst = Attempt::NotFound;
                }
            }
            Attempt::Undecided => worst = Attempt::Undecided,
        }
    }
    if worst == Attempt::Impossible && !candidate.is_complete {
        worst = Attempt::NotFound;
    }
    (0, worst)
}
