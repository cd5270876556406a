//! Cycles of conflicts over several variables: two transactions, each partly before the other.
//!
//! A region accesses `x` and then `y`, another thread accesses both, and the last access of the
//! region closes the cycle. What the other thread did to `x` comes after the region's `a1`, and what
//! it did to `y` before the region's `a2`:
//!
//! | the other thread | order to find |
//! |---|---|
//! | `b1` (of `x`) before `b2` (of `y`) | `a1 b1 b2`, then `a2` |
//! | `b2` before `b1`, in one region | `b2 a1 b1` or `a1 b2 b1`, then `a2` |
//!
//! With a third thread, on request, the path leads through both: `a1 b1 b2 c1 c2`, then `a2`.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, ThreadId, entry};

use super::accesses::{Accesses, held_since};
use super::regions::Regions;
use crate::checks::lock_state::LockState;
use crate::checks::locksets::{Hold, LockSetId, LockSets};
use crate::checks::tally::SearchStats;
use crate::checks::tries::{Candidate, Try};
use crate::reorder::{NONE, Wanted};

/// The number of different accesses of a region that are examined.
const MOST_ACCESSES: usize = 24;
/// The number of equivalent regions that are examined.
const MOST_ALIKE: usize = 8;
/// The number of tuples of events to try for a region and what disturbs it.
const TRIES: usize = 64;
/// The number of accesses of another thread, near the region, that are examined.
const NEAREST: usize = 4;
/// The number of tuples that are examined in all.
const MOST_TUPLES: usize = 1 << 20;

/// A region, by its accesses to variables that others use.
#[derive(Debug)]
pub(super) struct Sampled {
    region: u32,
    accesses: Vec<u32>,
    held: Vec<HeldAt>,
}

/// A lock that is held at an access of a region.
#[derive(Clone, Copy, Debug)]
struct HeldAt {
    access: u32,
    hold: Hold,
    since: u32,
}

/// Some regions of each kind, with at least two variables.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) regions: Vec<Sampled>,
}

#[derive(Debug, Default)]
struct Open {
    region: Option<u32>,
    accesses: Vec<u32>,
    held: Vec<HeldAt>,
}

impl Samples {
    /// Reads a trace; `is_shared` returns whether other threads use a variable.
    pub(super) fn new(
        events: &[Event],
        regions: &Regions,
        ignored: &[ThreadId],
        is_shared: impl Fn(u32) -> bool,
    ) -> Samples {
        let mut this = Samples::default();
        let mut alike: HashMap<Vec<(u32, u32, u8)>, usize, RandomState> = HashMap::default();
        let mut threads: Vec<Open> = Vec::new();
        let mut lock_state = LockState::default();
        let mut in_order = regions.in_order();
        for (i, event) in events.iter().enumerate() {
            let (op, t) = (event.op(), event.thread());
            lock_state.event(i as u32, event);
            if !op.reads() && !op.writes() || ignored.contains(&t) || !is_shared(event.var().0) {
                continue;
            }
            let region = in_order.at(t.0, i as u32);
            let open = entry(&mut threads, t.index());
            if open.region != region {
                this.close(std::mem::take(open), events, &mut alike);
                open.region = region;
            }
            if region.is_none() {
                continue;
            }
            let is_known = open.accesses.iter().any(|&known| {
                let known = &events[known as usize];
                (known.var(), known.loc(), known.op()) == (event.var(), event.loc(), op)
            });
            match is_known {
                false if open.accesses.len() < MOST_ACCESSES => {
                    let access = i as u32;
                    open.accesses.push(access);
                    let held = lock_state.held(t).iter();
                    open.held.extend(held.map(|h| HeldAt {
                        access,
                        hold: h.hold,
                        since: h.acquire,
                    }));
                }
                _ => {}
            }
        }
        for open in threads {
            this.close(open, events, &mut alike);
        }
        this
    }

    fn close(
        &mut self,
        open: Open,
        events: &[Event],
        alike: &mut HashMap<Vec<(u32, u32, u8)>, usize, RandomState>,
    ) {
        let Open { region: Some(region), accesses, held } = open else { return };
        let Some(&first) = accesses.first() else { return };
        let variable = |&event: &u32| events[event as usize].var();
        if accesses.iter().all(|event| variable(event) == variable(&first)) {
            return;
        }
        let kind = accesses.iter().map(|&event| &events[event as usize]);
        let kind = kind.map(|e| (e.var().0, e.loc().0, e.op() as u8)).collect();
        let count = alike.entry(kind).or_insert(0);
        *count += 1;
        if *count <= MOST_ALIKE {
            self.regions.push(Sampled { region, accesses, held });
        }
    }

    /// The variables that they access.
    pub(super) fn variables(&self, events: &[Event]) -> impl Iterator<Item = u32> {
        let all = self.regions.iter().flat_map(|sampled| &sampled.accesses);
        all.map(|&event| events[event as usize].var().0)
    }
}

/// The key of a candidate: the region, and what disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group {
    region: (u32, Option<u32>),
    other: [u32; 3],
}

/// How far events are apart, those that happen, and the one that is next.
type Tuple = (u32, Vec<u32>, u32);

/// An access that may disturb a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Access {
    event: u32,
    /// The region that it is in itself, or `NONE`.
    region: u32,
    locks: LockSetId,
    writes: bool,
}

/// For a thread and a variable, its accesses in their order.
type ByThread = HashMap<(u32, u32), Vec<Access>, RandomState>;

/// Finds the candidates, and counts what locks exclude.
pub(super) fn cycles(
    events: &[Event],
    regions: &Regions,
    samples: &Samples,
    accesses: &Accesses,
    with_three: bool,
    tally: &mut SearchStats,
) -> Vec<Candidate> {
    let mut by_thread: ByThread = HashMap::default();
    for (&variable, partners) in &accesses.partners {
        for (key, few) in &partners.classes {
            let (locks, writes) = (key.locks, key.writes());
            let access = |&event: &u32| {
                let region = regions.at(key.thread, event).unwrap_or(NONE);
                Access { event, region, locks, writes }
            };
            let of_class = few.kept().iter().map(access);
            by_thread.entry((key.thread, variable)).or_default().extend(of_class);
        }
    }
    by_thread.values_mut().for_each(|accesses| accesses.sort_unstable());
    let threads = by_thread.keys().map(|key| key.0).max().map_or(0, |t| t + 1);
    let mut of_thread: Vec<Vec<Access>> = vec![Vec::new(); threads as usize];
    if with_three {
        for ((thread, _), accesses) in &by_thread {
            of_thread[*thread as usize].extend(accesses);
        }
        of_thread.iter_mut().for_each(|accesses| accesses.sort_unstable());
    }
    let mut search = Search {
        events,
        regions,
        by_thread,
        of_thread,
        locksets: &accesses.lock_state.locksets,
        span: Vec::new(),
        threads,
        groups: HashMap::default(),
        excluded: HashSet::default(),
        tuples: 0,
        with_three,
    };
    for sampled in &samples.regions {
        for (i, &a1) in sampled.accesses.iter().enumerate() {
            for &a2 in &sampled.accesses[i + 1..] {
                if events[a1 as usize].var() != events[a2 as usize].var() {
                    let held = sampled.held.iter();
                    let span = held.filter(|h| h.access == a2 && h.since < a1).map(|h| h.hold);
                    search.span.clear();
                    search.span.extend(span);
                    search.around(sampled.region, a1, a2);
                }
            }
        }
    }
    // One more that was not examined.
    tally.not_tried += u64::from(search.tuples >= MOST_TUPLES);
    let excluded = search.excluded.iter().filter(|group| !search.groups.contains_key(group));
    tally.by_locks += excluded.count() as u64;
    let mut groups: Vec<_> = search.groups.into_iter().collect();
    groups.sort_unstable_by_key(|(group, _)| *group);
    let candidate = |(_, mut tries): (Group, Vec<Tuple>)| {
        tries.sort_unstable();
        tries.dedup();
        tries.truncate(TRIES);
        let wanted = |event| Wanted { event, keeps_value: false };
        let tries = tries.into_iter().map(|(_, executed, next)| Try {
            executed: executed.into_iter().map(wanted).collect(),
            next: vec![next],
        });
        Candidate { tries: tries.collect(), ..Candidate::default() }
    };
    groups.into_iter().map(candidate).collect()
}

struct Search<'a> {
    events: &'a [Event],
    regions: &'a Regions,
    by_thread: ByThread,
    /// All accesses of each thread, if cycles of three transactions are wanted.
    of_thread: Vec<Vec<Access>>,
    locksets: &'a LockSets,
    /// The locks held all the way from `a1` to `a2`.
    span: Vec<Hold>,
    threads: u32,
    /// The number that locks make impossible.
    excluded: HashSet<Group, RandomState>,
    groups: HashMap<Group, Vec<Tuple>, RandomState>,
    tuples: usize,
    with_three: bool,
}

/// An access of a region, as others see it.
#[derive(Clone, Copy, Debug)]
struct Own {
    event: u32,
    variable: u32,
    writes: bool,
}

/// Those that conflict with an access and are nearest to it, before it and after it.
fn near(all: &[Access], a: u32, writes: bool) -> impl Iterator<Item = Access> {
    let at = all.partition_point(|other| other.event < a);
    let conflicts = move |other: &&Access| writes || other.writes;
    let before = all[..at].iter().rev().filter(conflicts).take(NEAREST);
    before.chain(all[at..].iter().filter(conflicts).take(NEAREST)).copied()
}

/// The first one after `b`, or the last before it, that conflicts with an access.
fn next_to(all: &[Access], b: u32, writes: bool, after: bool) -> Option<Access> {
    let at = all.partition_point(|other| other.event <= b);
    let conflicts = |other: &&Access| writes || other.writes;
    match after {
        true => all[at..].iter().find(conflicts).copied(),
        false => all[..at].iter().rev().find(|other| other.event < b && conflicts(other)).copied(),
    }
}

impl Search<'_> {
    fn own(&self, event: u32) -> Own {
        let it = &self.events[event as usize];
        Own { event, variable: it.var().0, writes: it.op().writes() }
    }

    /// Where a region is declared, and what it is called.
    fn place_of(&self, region: u32) -> (u32, Option<u32>) {
        let region = self.regions.all()[region as usize];
        (self.events[region.begin as usize].loc().0, region.name.map(|sym| sym.0))
    }

    /// Accesses of others, `others`, around `a1` of a region, with the number of those before it.
    fn put(&mut self, region: u32, [a1, a2]: [u32; 2], others: &[Access], before: usize) {
        self.tuples += 1;
        let (first, last) = (others[0], others[others.len() - 1]);
        // Another region is one disturbance, whatever it does in detail.
        let place = |access: Access| self.events[access.event as usize].loc().0;
        let other = match (first.region, last.region) {
            (one, two) if one == two && one != NONE => {
                let (place, name) = self.place_of(one);
                [place, name.map_or(0, |n| n + 1), u32::MAX]
            }
            _ if place(first) == 0 || place(last) == 0 => {
                let it = &self.events[first.event as usize];
                [it.var().0, self.events[last.event as usize].var().0, it.thread().0]
            }
            _ => [place(first), place(last), 0],
        };
        let group = Group { region: self.place_of(region), other };
        // Whatever comes between the two accesses of the region must get past its locks.
        let is_excluded = others[before..].iter().any(|access| {
            let held = self.locksets.get(access.locks);
            held.iter().any(|&theirs| self.span.iter().any(|own| own.excludes(theirs)))
        });
        if is_excluded {
            self.excluded.insert(group);
            return;
        }
        let mut executed: Vec<u32> = others.iter().map(|access| access.event).collect();
        executed.insert(before, a1);
        let all = executed.iter().chain([&a2]);
        let (least, most) = all.fold((u32::MAX, 0), |(l, m), &e| (e.min(l), e.max(m)));
        let tries = self.groups.entry(group).or_default();
        if tries.len() < 16 * TRIES {
            tries.push((most - least, executed, a2));
        }
    }

    /// Tuples around a pair of accesses of a region.
    fn around(&mut self, region: u32, a1: u32, a2: u32) {
        let thread = self.events[a1 as usize].thread().0;
        let (one, two) = (self.own(a1), self.own(a2));
        for u in (0..self.threads).filter(|&u| u != thread) {
            let Some(of_one) = self.by_thread.get(&(u, one.variable)) else { continue };
            let firsts: Vec<Access> = near(of_one, a1, one.writes).collect();
            let of_two = self.by_thread.get(&(u, two.variable)).map_or(&[][..], Vec::as_slice);
            let seconds: Vec<[Option<Access>; 2]> = firsts
                .iter()
                .map(|b1| [true, false].map(|after| next_to(of_two, b1.event, two.writes, after)))
                .collect();
            for (&b1, [after, earlier]) in firsts.iter().zip(seconds) {
                if self.tuples >= MOST_TUPLES {
                    return;
                }
                if let Some(b2) = after {
                    self.put(region, [a1, a2], &[b1, b2], 0);
                }
                if let Some(b2) = earlier.filter(|b2| b2.region != NONE && b2.region == b1.region) {
                    self.put(region, [a1, a2], &[b2, b1], 1);
                    self.put(region, [a1, a2], &[b2, b1], 0);
                }
                if self.with_three {
                    self.through_third(region, one, two, b1);
                }
            }
        }
    }

    /// Paths that lead on from what the thread of `b1` does next, through a third thread.
    fn through_third(&mut self, region: u32, one: Own, two: Own, b1: Access) {
        let thread_of = |event: u32| self.events[event as usize].thread().0;
        let (own, u) = (thread_of(one.event), thread_of(b1.event));
        let own_of_u = &self.of_thread[u as usize];
        let at = own_of_u.partition_point(|e| e.event < b1.event);
        let firsts: Vec<Access> = own_of_u[at..].iter().take(2 * NEAREST).copied().collect();
        for b2 in firsts {
            let variable = self.events[b2.event as usize].var().0;
            for v in (0..self.threads).filter(|&v| v != own && v != u) {
                let of = |variable: u32| {
                    self.by_thread.get(&(v, variable)).map_or(&[][..], Vec::as_slice)
                };
                let of_two = of(two.variable);
                let thirds: Vec<(Access, [Option<Access>; 2])> =
                    near(of(variable), b2.event, b2.writes)
                        .map(|c1| {
                            let is_it = near(of_two, two.event, two.writes).any(|c| c == c1);
                            let c2 = next_to(of_two, c1.event, two.writes, true);
                            (c1, [is_it.then_some(c1), c2])
                        })
                        .collect();
                for (c1, ends) in thirds {
                    for c2 in ends.into_iter().flatten() {
                        let mut others = vec![b1, b2, c1, c2];
                        others.dedup();
                        self.put(region, [one.event, two.event], &others, 0);
                    }
                    if self.tuples >= MOST_TUPLES {
                        return;
                    }
                }
            }
        }
    }
}

/// Whether each region is protected from its first access to a shared variable to its last: it
/// holds a lock throughout that every thread that could disturb it also takes. Then no reordering
/// breaks a region, since every region can be contracted to one point in time.
pub(super) fn all_are_protected(
    events: &[Event],
    regions: &Regions,
    accesses: &Accesses,
    ignored: &[ThreadId],
    is_shared: impl Fn(u32) -> bool,
) -> bool {
    #[derive(Default)]
    struct Span {
        region: Option<u32>,
        first: u32,
        locks: LockSetId,
        count: u32,
        touched: HashSet<(u32, bool), RandomState>,
    }
    let mut spans: Vec<Span> = Vec::new();
    // Which variables are accessed how, under which locks.
    let mut needs: HashSet<(u32, u32, bool, LockSetId), RandomState> = HashSet::default();
    let mut lock_state = LockState::with(accesses.lock_state.locksets.clone());
    let mut in_order = regions.in_order();
    let mut close = |thread: u32, span: &Span| {
        if span.count > 1 {
            let touched = span.touched.iter();
            needs.extend(touched.map(|&(var, writes)| (thread, var, writes, span.locks)));
        }
    };
    for (i, event) in events.iter().enumerate() {
        let (op, t) = (event.op(), event.thread());
        lock_state.event(i as u32, event);
        if !op.reads() && !op.writes() || !is_shared(event.var().0) {
            continue;
        }
        if ignored.contains(&t) {
            return false;
        }
        let region = in_order.at(t.0, i as u32);
        let span = entry(&mut spans, t.index());
        if span.region != region {
            close(t.0, span);
            let mut touched = std::mem::take(&mut span.touched);
            touched.clear();
            *span = Span { region, first: i as u32, touched, ..Span::default() };
        }
        if region.is_some() {
            span.count += 1;
            span.locks = held_since(&mut lock_state, t, span.first);
            span.touched.insert((event.var().0, op.writes()));
        }
    }
    for (thread, span) in spans.iter().enumerate() {
        close(thread as u32, span);
    }
    needs.iter().all(|&(thread, variable, writes, locks)| {
        accesses.partners.get(&variable).is_some_and(|partners| {
            partners.dropped == 0
                && partners.classes.iter().all(|(access, _)| {
                    access.thread == thread
                        || !writes && !access.writes()
                        || lock_state.locksets.exclude(locks, access.locks)
                })
        })
    })
}
