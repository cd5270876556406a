//! Tries candidates on all cores.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Instant;

use super::attempt::{Attempt, Budget, NEXT, Reach, Reached, attempt, climb};
use super::decided::Verdict;
use super::pointers::{Chained, Pointers};
use super::tally::SearchStats;
use super::{Context, Options};
use crate::parallel::{Work, in_order};
use crate::reorder::{Goal, Search, Sight, Wanted};

/// Events that would demonstrate a candidate.
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

/// Something to report once, and the events that would demonstrate it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidate {
    /// What the check knows it by.
    pub(crate) key: u32,
    /// The likeliest first.
    pub(crate) tries: Vec<Try>,
    /// Whether the tries are exhaustive, so that the candidate is impossible if they all are.
    pub(crate) is_complete: bool,
    /// Whether the requirements of its events are known not to rule it out.
    pub(crate) is_conceivable: bool,
    /// Whether the first try is known to succeed with the first budget, so that its witness is
    /// searched without a work limit.
    pub(crate) is_sure: bool,
    /// Whether to report, if it is not found, that it is possible if some reads see something else:
    /// which reads may.
    pub(crate) hangs_on: Option<Sight>,
    /// Whether some read is known to have to see another write than it saw.
    pub(crate) is_only_by_value: bool,
    /// Whether it is known to be impossible as long as every read sees what it saw.
    pub(crate) is_impossible: bool,
}

/// A candidate that was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What the check knows it by.
    pub(crate) key: u32,
    /// The events that demonstrate it.
    pub(crate) by: Try,
    /// The reordering that reaches them.
    pub(crate) reached: Reached,
}

/// The results of candidates.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    pub(crate) found: Vec<Found>,
    /// The undecided ones, and whether a search for each was given up.
    pub(crate) open: Vec<(u32, bool)>,
    /// Those that depend on values that reads see.
    pub(crate) conditional: Vec<Found>,
}

impl Tried {
    /// Adds the results to the counts.
    pub(crate) fn count(&self, tally: &mut SearchStats) {
        let given_up = self.open.iter().filter(|open| open.1).count();
        tally.found += self.found.len() as u64;
        tally.undecided += given_up as u64;
        tally.not_found += (self.open.len() - given_up) as u64;
        tally.conditional += self.conditional.len() as u64;
    }
}

/// Chains of events, one for each thread; some tuple of them would demonstrate a candidate.
#[derive(Clone, Debug)]
pub(crate) struct Chains {
    /// What the check knows the candidate by.
    pub(crate) key: u32,
    pub(crate) chains: Vec<Vec<u32>>,
}

/// The number of candidates that a core takes at a time.
const CHUNK: usize = 4;
/// The number of candidates that are retried with reads that see something else, and the number of
/// tries of each.
const MOST_CONDITIONAL: usize = 256;
const TRIES_OTHERWISE: usize = 4;
/// The number of tries of a candidate that may be given up.
const MOST_GIVEN_UP: usize = 4;

/// Processes a list on all cores until the deadline; the results are in the order of the list.
fn on_all_cores<T: Sync, S, R: Send>(
    context: &Context<'_>,
    items: &[T],
    until: Option<Instant>,
    start: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<(usize, R)> {
    let work = Work { cores: context.options.cores, chunk: CHUNK };
    let each = |(state, done): &mut (S, Vec<_>), at: usize, item: &T| {
        if until.is_some_and(|until| Instant::now() >= until) {
            return ControlFlow::Break(());
        }
        done.push((at, each(state, item)));
        ControlFlow::Continue(())
    };
    in_order(work.on_all(items, || (start(), Vec::new()), each, |(_, done)| done))
}

/// Candidates that can be tried, the earliest first.
pub(crate) fn in_trying_order(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.retain(|candidate| !candidate.tries.is_empty());
    let first = |candidate: &Candidate| candidate.tries[0].goal().first();
    candidates.sort_by_key(|candidate| (first(candidate), candidate.key));
    candidates
}

/// The verdicts on those candidates at `wanted` for which there was time, in their order.
pub(crate) fn decide(
    context: &Context<'_>,
    candidates: &[Candidate],
    wanted: impl Iterator<Item = usize>,
    budgets: &[Budget],
    until: Option<Instant>,
) -> Vec<(usize, Verdict)> {
    let search = || Search::new(context.requirements, context.options.reads);
    let (sure, others): (Vec<usize>, Vec<usize>) = wanted.partition(|&at| candidates[at].is_sure);
    // What the passes over the trace have shown to be possible is reported even if they used up the
    // time: it comes first, and the first of it without a look at the clock.
    let (first_sure, more_sure) = sure.split_at(sure.len().min(1));
    let mut verdicts = Vec::new();
    for (part, until) in [(first_sure, None), (more_sure, until), (&others, until)] {
        let tried = on_all_cores(context, part, until, search, |search, &at| {
            try_one(search, &candidates[at], budgets, context)
        });
        verdicts.extend(tried.into_iter().map(|(i, verdict)| (part[i], verdict)));
    }
    verdicts.sort_unstable_by_key(|&(at, _)| at);
    verdicts
}

/// Tries all candidates, in their order, other than those that are known. Findings are in this order, too.
pub(crate) fn try_all(
    context: &Context<'_>,
    mut candidates: Vec<Candidate>,
    known: HashMap<usize, Verdict>,
    budgets: &[Budget],
    until: Option<Instant>,
    tally: &mut SearchStats,
) -> Tried {
    let unknown = (0..candidates.len()).filter(|at| !known.contains_key(at));
    let mut verdicts = decide(context, &candidates, unknown, budgets, until);
    verdicts.extend(known);
    verdicts.sort_unstable_by_key(|&(at, _)| at);
    let late = (candidates.len() - verdicts.len()) as u64;
    tally.not_tried += late;
    tally.is_late |= late > 0;
    let mut tried = Tried::default();
    let mut hanging = Vec::new();
    for (at, (by, verdict)) in verdicts {
        let candidate = &mut candidates[at];
        match verdict {
            Attempt::Found(reached) => {
                let by = candidate.tries.swap_remove(by);
                tried.found.push(Found { key: candidate.key, by, reached });
            }
            Attempt::Impossible if candidate.hangs_on.is_some() => hanging.push(at),
            Attempt::Impossible => tally.by_order += 1,
            Attempt::NotFound => tried.open.push((candidate.key, false)),
            Attempt::Undecided | Attempt::Doubtful => tried.open.push((candidate.key, true)),
        }
    }
    try_otherwise(context, &candidates, &hanging, budgets, until, (&mut tried, tally));
    tried
}

/// Retries candidates that are impossible as long as every read sees what it saw, with reads that
/// see something else. Only the first ones, as examples.
fn try_otherwise(
    context: &Context<'_>,
    candidates: &[Candidate],
    hanging: &[usize],
    budgets: &[Budget],
    until: Option<Instant>,
    (tried, tally): (&mut Tried, &mut SearchStats),
) {
    let asked = &hanging[..hanging.len().min(MOST_CONDITIONAL)];
    let search = || Search::new(context.requirements, context.options.reads);
    let Options { look_back, work, .. } = *context.options;
    let reach = Reach { look_back, work, is_conceivable: true, is_only_by_value: false };
    let found = on_all_cores(context, asked, until, search, |search, &at| {
        let Candidate { key, tries, hangs_on, .. } = &candidates[at];
        tries.iter().take(TRIES_OTHERWISE).find_map(|by| {
            match climb(search, (*hangs_on)?, &by.goal(), budgets, reach) {
                Attempt::Found(reached) => Some(Found { key: *key, by: by.clone(), reached }),
                _ => None,
            }
        })
    });
    let looked_at = found.len();
    tried.conditional.extend(found.into_iter().filter_map(|(_, found)| found));
    tally.by_order += (hanging.len() - tried.conditional.len()) as u64;
    // The statement mentions conditional candidates anyway.
    if tried.conditional.is_empty() {
        tally.not_asked += (hanging.len() - looked_at) as u64;
        tally.by_order -= (hanging.len() - looked_at) as u64;
    } else {
        tally.is_more_conditional = looked_at < hanging.len();
    }
}

/// Finds the least tuple of chains, with sections in observed order, until one is found for each
/// candidate.
pub(crate) fn try_chains(
    context: &Context<'_>,
    chains: &[Chains],
    until: Option<Instant>,
    tried: &mut Tried,
) {
    let start = || {
        let pointers = Pointers::new(context.requirements, u64::MAX);
        (pointers, Search::new(context.requirements, context.options.reads))
    };
    let results = on_all_cores(context, chains, until, start, |(pointers, search), one| {
        let slices: Vec<&[u32]> = one.chains.iter().map(Vec::as_slice).collect();
        let Chained::Least(next) = pointers.least(&slices) else { return None };
        let by = Try { executed: Vec::new(), next };
        let whole = Reach {
            look_back: u32::MAX,
            work: u64::MAX,
            is_conceivable: true,
            is_only_by_value: false,
        };
        match attempt(search, &by.goal(), &NEXT[..1], whole) {
            Attempt::Found(reached) => Some(Found { key: one.key, by, reached }),
            _ => None,
        }
    });
    for found in results.into_iter().filter_map(|(_, found)| found) {
        if let Some(at) = tried.open.iter().position(|&(key, _)| key == found.key) {
            tried.open.remove(at);
            tried.found.push(found);
        }
    }
}

/// The result of a candidate, and of which try.
fn try_one(
    search: &mut Search<'_>,
    candidate: &Candidate,
    budgets: &[Budget],
    context: &Context<'_>,
) -> Verdict {
    if candidate.is_impossible {
        return (0, Attempt::Impossible);
    }
    let Candidate { is_conceivable, is_only_by_value, .. } = *candidate;
    let Options { look_back, work, .. } = *context.options;
    let reach = Reach { look_back, work, is_conceivable, is_only_by_value };
    if candidate.is_sure {
        let nearest = Reach { look_back: 0, work: u64::MAX, is_conceivable: true, ..reach };
        let sure = attempt(search, &candidate.tries[0].goal(), &budgets[..1], nearest);
        if matches!(sure, Attempt::Found(_)) {
            return (0, sure);
        }
    }
    let mut worst = Attempt::Impossible;
    let mut given_up = 0;
    for (i, by) in candidate.tries.iter().enumerate() {
        match attempt(search, &by.goal(), budgets, reach) {
            found @ Attempt::Found(_) => return (i, found),
            Attempt::Impossible => {}
            Attempt::NotFound => {
                if worst == Attempt::Impossible {
                    worst = Attempt::NotFound;
                }
            }
            // The other tries are hardly nearer.
            Attempt::Doubtful => {
                worst = Attempt::Undecided;
                break;
            }
            Attempt::Undecided => {
                worst = Attempt::Undecided;
                given_up += 1;
                // The other tries are no nearer.
                if given_up == MOST_GIVEN_UP {
                    break;
                }
            }
        }
    }
    if worst == Attempt::Impossible && !candidate.is_complete {
        worst = Attempt::NotFound;
    }
    (0, worst)
}
