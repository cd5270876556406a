//! Unserialisable triples: another thread's access between two of a region to the same variable.
//!
//! | in the region | in between | what goes wrong |
//! |---|---|---|
//! | read, read | write | the region sees two different values |
//! | write, read | write | the region does not see what it wrote |
//! | read, write | write | the region overwrites what it has not seen: a lost update |
//! | write, write | read | another thread sees an intermediate value |
//!
//! The two accesses are consecutive ones of the region to the variable; around a read, consecutive
//! writes. Three writes are a conflict, too, but an unobservable one.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::Event;

use super::accesses::{Accesses, PairKey};
use crate::checks::locksets::LockSetId;
use crate::checks::tally::SearchStats;
use crate::checks::tries::{Candidate, Try};
use crate::reorder::{Sight, Wanted};

/// The number of triples of events to try for equivalent classes, and for one triple of places.
const TRIES_A_CLASS: usize = 16;
const TRIES_A_PLACE: usize = 64;

/// The number of accesses before a pair, and after it, to try with it.
const NEAREST: usize = 4;

/// The key of a triple: its source places or, without places, its variable and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Places([u32; 6]);

impl Places {
    /// The places of `[a1, b, a2]`.
    pub(super) fn new(events: &[Event], triple: [u32; 3]) -> Places {
        let [a1, b, a2] = triple.map(|i| &events[i as usize]);
        let locs = [a1, b, a2].map(|e| e.loc().0);
        let is_known = locs.iter().all(|&loc| loc != 0);
        let rest = if is_known { [0; 3] } else { [a1.var().0 + 1, a1.thread().0, b.thread().0] };
        Places([locs[0], locs[1], locs[2], rest[0], rest[1], rest[2]])
    }
}

/// Everything that could demonstrate a triple of places.
#[derive(Debug, Default)]
struct Group {
    /// With their extents: near ones need little of the trace.
    tries: Vec<(u32, [u32; 3])>,
    /// Whether some events were left out.
    is_partial: bool,
}

impl Group {
    /// Keeps the nearest.
    fn narrow(&mut self) {
        self.tries.sort_unstable();
        self.tries.dedup();
        self.is_partial |= self.tries.len() > TRIES_A_PLACE;
        self.tries.truncate(TRIES_A_PLACE);
    }
}

/// The candidates among the accesses of a trace, and the triples that the observed order has, one
/// for each triple of places.
pub(super) struct Triples {
    pub(super) candidates: Vec<Candidate>,
    pub(super) observed: Vec<[u32; 3]>,
}

/// Finds candidates, and counts what locks exclude.
pub(super) fn triples(events: &[Event], accesses: &Accesses, tally: &mut SearchStats) -> Triples {
    let mut groups: HashMap<Places, Group, RandomState> = HashMap::default();
    let mut observed: HashMap<Places, [u32; 3], RandomState> = HashMap::default();
    let mut excluded: HashMap<Places, (), RandomState> = HashMap::default();
    let mut near: Vec<(u32, [u32; 3])> = Vec::new();
    for (pair, instances) in &accesses.pairs {
        let Some(partners) = accesses.partners.get(&pair.variable) else { continue };
        for (access, others) in &partners.classes {
            let conflicts = pair.shape.around_write && access.writes()
                || pair.shape.around_read && access.reads();
            if access.thread == pair.thread || !conflicts {
                continue;
            }
            let (Some(&one), Some(&other)) = (instances.kept().first(), others.kept().first())
            else {
                continue;
            };
            let places = Places::new(events, [one.0, other, one.1]);
            if excludes(accesses, pair, access.locks) {
                excluded.insert(places, ());
                continue;
            }
            near.clear();
            let mut before = 0;
            for &(a1, a2) in instances.kept() {
                // Pairs come in the order of their first accesses.
                before += others.kept()[before..].iter().take_while(|&&e| e < a1).count();
                nearest(others.kept(), before, a2, |b| near.push(extent([a1, b, a2])));
            }
            let inside = near.iter().filter(|(_, [a1, b, a2])| a1 < b && b < a2);
            if let Some(&(_, triple)) = inside.min() {
                observed.entry(places).or_insert(triple);
            }
            let found = near.len();
            if found > TRIES_A_CLASS {
                near.select_nth_unstable(TRIES_A_CLASS);
                near.truncate(TRIES_A_CLASS);
            }
            let pairs = instances.kept().len() * others.kept().len();
            let is_whole = instances.is_complete() && others.is_complete();
            let group = groups.entry(places).or_default();
            group.is_partial |= !is_whole || pairs > found || found > TRIES_A_CLASS;
            group.tries.extend_from_slice(&near);
            if group.tries.len() >= 16 * TRIES_A_PLACE {
                group.narrow();
            }
        }
        tally.not_tried += u64::from(partners.dropped > 0);
    }
    let mut groups: Vec<(Places, Group)> = groups.into_iter().collect();
    groups.sort_unstable_by_key(|(places, _)| *places);
    groups.retain(|(places, _)| !observed.contains_key(places));
    tally.by_locks += excluded
        .keys()
        .filter(|places| groups.binary_search_by_key(places, |(p, _)| p).is_err())
        .filter(|places| !observed.contains_key(places))
        .count() as u64;
    let candidates = groups.into_iter().map(|(_, mut group)| {
        group.narrow();
        let tries = group.tries.iter().map(|&(_, triple)| try_of(triple)).collect();
        let (is_complete, hangs_on) = (!group.is_partial, Some(Sight::Anything));
        Candidate { tries, is_complete, hangs_on, ..Candidate::default() }
    });
    let mut observed: Vec<[u32; 3]> = observed.into_values().collect();
    observed.sort_unstable_by_key(|&[a1, b, a2]| [a2, a1, b]);
    Triples { candidates: candidates.collect(), observed }
}

/// The goal: `a1` and `b` happen in this order, and `a2` is next.
fn try_of([a1, b, a2]: [u32; 3]) -> Try {
    let wanted = |event| Wanted { event, keeps_value: false };
    Try { executed: vec![wanted(a1), wanted(b)], next: vec![a2] }
}

/// Whether a lock held from the first access to the second excludes the other thread.
fn excludes(accesses: &Accesses, pair: &PairKey, locks: LockSetId) -> bool {
    accesses.lock_state.locksets.exclude(pair.span, locks)
}

fn extent(triple: [u32; 3]) -> (u32, [u32; 3]) {
    let [a1, b, a2] = triple;
    (a2.max(b) - a1.min(b), triple)
}

/// Passes on the events nearest to a pair, which ends with `a2`: some before it, between, and
/// after, with the number of those before it.
fn nearest(events: &[u32], before: usize, a2: u32, mut each: impl FnMut(u32)) {
    let after = before + events[before..].partition_point(|&e| e < a2);
    let from = before.saturating_sub(NEAREST);
    let to = (after + NEAREST).min(events.len());
    // Events in between are in the order of the trace; the first suffices.
    events[from..before].iter().chain(events[before..after].first()).for_each(|&e| each(e));
    events[after..to].iter().for_each(|&e| each(e));
}
