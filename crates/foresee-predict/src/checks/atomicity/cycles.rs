//! Cycles of conflicts over several variables: two transactions of which each comes, in part, before
//! the other.
//!
//! A region accesses `x` and then `y`, another thread accesses both, and the last access of the
//! region closes the cycle. What the other thread did to `x` comes after the region's `a1`, and what
//! it did to `y` before the region's `a2`:
//!
//! | the other thread | order that is looked for |
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
use crate::checks::locksets::{Hold, LockSetId, LockSets};
use crate::checks::scene::Scene;
use crate::checks::tally::Tally;
use crate::checks::tries::{Candidate, Try};
use crate::reorder::Wanted;

/// How many different accesses of a region are looked at.
const MOST_ACCESSES: usize = 24;
/// How many regions that are alike are looked at.
const MOST_ALIKE: usize = 8;
/// How many tuples of events are tried for a region and what disturbs it.
const TRIES: usize = 64;
/// How many accesses of another thread, near to the region, are looked at.
const NEAREST: usize = 4;
/// How many tuples are looked at in all.
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
    /// Goes through a trace; `is_shared` tells which variables others use.
    pub(super) fn new(
        events: &[Event],
        regions: &Regions,
        ignored: &[ThreadId],
        is_shared: impl Fn(u32) -> bool,
    ) -> Samples {
        let mut this = Samples::default();
        let mut alike: HashMap<Vec<(u32, u32, u8)>, usize, RandomState> = HashMap::default();
        let mut threads: Vec<Open> = Vec::new();
        let mut scene = Scene::default();
        for (i, event) in events.iter().enumerate() {
            let (op, t) = (event.op(), event.thread());
            scene.event(i as u32, event);
            if !op.reads() && !op.writes() || ignored.contains(&t) || !is_shared(event.var().0) {
                continue;
            }
            let region = regions.at(t.0, i as u32);
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
                    let held = scene.held(t).iter();
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

/// What candidates are told apart by: the region, and what disturbs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Group {
    region: (u32, Option<u32>),
    other: [u32; 3],
}

/// How far events are apart, those that happen, and the one that is next.
type Tuple = (u32, Vec<u32>, u32);

/// For a thread and a variable, its accesses in their order.
type ByThread = HashMap<(u32, u32), Vec<u32>, RandomState>;

/// Finds the candidates, and counts what locks exclude.
pub(super) fn cycles(
    events: &[Event],
    regions: &Regions,
    samples: &Samples,
    accesses: &Accesses,
    with_three: bool,
    tally: &mut Tally,
) -> Vec<Candidate> {
    let mut by_thread: ByThread = HashMap::default();
    let mut locks: HashMap<u32, LockSetId, RandomState> = HashMap::default();
    for (&variable, partners) in &accesses.partners {
        for (key, few) in &partners.classes {
            by_thread.entry((key.thread, variable)).or_default().extend(few.kept());
            locks.extend(few.kept().iter().map(|&event| (event, key.locks)));
        }
    }
    by_thread.values_mut().for_each(|events| events.sort_unstable());
    let threads = by_thread.keys().map(|key| key.0).max().map_or(0, |t| t + 1);
    let mut of_thread: Vec<Vec<u32>> = vec![Vec::new(); threads as usize];
    if with_three {
        for ((thread, _), events) in &by_thread {
            of_thread[*thread as usize].extend(events);
        }
        of_thread.iter_mut().for_each(|events| events.sort_unstable());
    }
    let mut search = Search {
        events,
        regions,
        by_thread,
        of_thread,
        locks,
        locksets: &accesses.scene.locksets,
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
    // One more that nobody has looked at.
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
    /// All accesses of each thread, if three transactions are looked for.
    of_thread: Vec<Vec<u32>>,
    /// The locks held at the accesses in it.
    locks: HashMap<u32, LockSetId, RandomState>,
    locksets: &'a LockSets,
    /// The locks held all the way from `a1` to `a2`.
    span: Vec<Hold>,
    threads: u32,
    /// Those that locks make impossible.
    excluded: HashSet<Group, RandomState>,
    groups: HashMap<Group, Vec<Tuple>, RandomState>,
    tuples: usize,
    with_three: bool,
}

impl Search<'_> {
    fn conflict(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.events[a as usize].op(), self.events[b as usize].op());
        a.writes() || b.writes()
    }

    fn region_of(&self, event: u32) -> Option<u32> {
        self.regions.at(self.events[event as usize].thread().0, event)
    }

    /// Where a region is declared, and what it is called.
    fn place_of(&self, region: u32) -> (u32, Option<u32>) {
        let region = self.regions.all()[region as usize];
        (self.events[region.begin as usize].loc().0, region.name.map(|sym| sym.0))
    }

    /// The accesses of a thread to the variable of `a` that conflict with it, those near to it.
    fn near(&self, a: u32, thread: u32) -> Vec<u32> {
        let variable = self.events[a as usize].var().0;
        let Some(all) = self.by_thread.get(&(thread, variable)) else { return Vec::new() };
        let at = all.partition_point(|&e| e < a);
        let before = all[..at].iter().rev().filter(|&&e| self.conflict(a, e)).take(NEAREST);
        let after = all[at..].iter().filter(|&&e| self.conflict(a, e)).take(NEAREST);
        before.chain(after).copied().collect()
    }

    /// The first access of the thread of `b` after it, or the last before it, that conflicts with `a`.
    fn next_to(&self, b: u32, a: u32, after: bool) -> Option<u32> {
        let (thread, variable) =
            (self.events[b as usize].thread().0, self.events[a as usize].var().0);
        let all = self.by_thread.get(&(thread, variable))?;
        let at = all.partition_point(|&e| e <= b);
        match after {
            true => all[at..].iter().find(|&&e| self.conflict(a, e)).copied(),
            false => all[..at].iter().rev().find(|&&e| e < b && self.conflict(a, e)).copied(),
        }
    }

    fn put(&mut self, region: u32, executed: Vec<u32>, next: u32) {
        self.tuples += 1;
        let others: Vec<u32> = executed
            .iter()
            .copied()
            .filter(|&e| self.events[e as usize].thread() != self.events[next as usize].thread())
            .collect();
        let (first, last) = (others[0], others[others.len() - 1]);
        // Another region is one disturbance, whatever it does in detail.
        let place = |event: u32| self.events[event as usize].loc().0;
        let other = match (self.region_of(first), self.region_of(last)) {
            (Some(one), Some(two)) if one == two => {
                let (place, name) = self.place_of(one);
                [place, name.map_or(0, |n| n + 1), u32::MAX]
            }
            _ if place(first) == 0 || place(last) == 0 => {
                let it = &self.events[first as usize];
                [it.var().0, self.events[last as usize].var().0, it.thread().0]
            }
            _ => [place(first), place(last), 0],
        };
        let group = Group { region: self.place_of(region), other };
        // Whatever comes between the two accesses of the region must get past its locks.
        let from = executed.iter().position(|e| !others.contains(e)).unwrap_or(0);
        let is_excluded = executed[from + 1..].iter().any(|event| {
            let held = self.locks.get(event).map_or(&[][..], |&set| self.locksets.get(set));
            held.iter().any(|&theirs| self.span.iter().any(|own| own.excludes(theirs)))
        });
        if is_excluded {
            self.excluded.insert(group);
            return;
        }
        let all = executed.iter().chain([&next]);
        let (least, most) = all.fold((u32::MAX, 0), |(l, m), &e| (e.min(l), e.max(m)));
        let tries = self.groups.entry(group).or_default();
        if tries.len() < 16 * TRIES {
            tries.push((most - least, executed, next));
        }
    }

    /// Tuples around a pair of accesses of a region.
    fn around(&mut self, region: u32, a1: u32, a2: u32) {
        let own = self.events[a1 as usize].thread().0;
        for u in (0..self.threads).filter(|&u| u != own) {
            for b1 in self.near(a1, u) {
                if self.tuples >= MOST_TUPLES {
                    return;
                }
                if let Some(b2) = self.next_to(b1, a2, true) {
                    self.put(region, vec![a1, b1, b2], a2);
                }
                let before = self.next_to(b1, a2, false);
                let together = |b2: &u32| {
                    let region = self.region_of(*b2);
                    region.is_some() && region == self.region_of(b1)
                };
                if let Some(b2) = before.filter(together) {
                    self.put(region, vec![b2, a1, b1], a2);
                    self.put(region, vec![a1, b2, b1], a2);
                }
                if self.with_three {
                    self.through_third(region, a1, a2, b1);
                }
            }
        }
    }

    /// Paths that lead on from what the thread of `b1` does next, through a third thread.
    fn through_third(&mut self, region: u32, a1: u32, a2: u32, b1: u32) {
        let (own, u) = (self.events[a1 as usize].thread().0, self.events[b1 as usize].thread().0);
        let own_of_u = &self.of_thread[u as usize];
        let at = own_of_u.partition_point(|&e| e < b1);
        let firsts: Vec<u32> = own_of_u[at..].iter().take(2 * NEAREST).copied().collect();
        for b2 in firsts {
            for v in (0..self.threads).filter(|&v| v != own && v != u) {
                for c1 in self.near(b2, v) {
                    let conflicts = self.near(a2, v).contains(&c1);
                    let c2 = self.next_to(c1, a2, true);
                    let ends = [Some(c1).filter(|_| conflicts), c2];
                    for c2 in ends.into_iter().flatten() {
                        let mut executed = vec![a1, b1, b2, c1, c2];
                        executed.dedup();
                        self.put(region, executed, a2);
                    }
                    if self.tuples >= MOST_TUPLES {
                        return;
                    }
                }
            }
        }
    }
}

/// Whether each region is protected from its first access to a variable that others use to its last:
/// it holds a lock all the way that everyone who could disturb it takes, too. Then no reordering
/// breaks a region, since all of them can be contracted to the moments at which they begin to
/// matter.
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
    // Whose variables are touched how, under which locks.
    let mut needs: HashSet<(u32, u32, bool, LockSetId), RandomState> = HashSet::default();
    let mut scene = Scene::with(accesses.scene.locksets.clone());
    let mut close = |thread: u32, span: &Span| {
        if span.count > 1 {
            let touched = span.touched.iter();
            needs.extend(touched.map(|&(var, writes)| (thread, var, writes, span.locks)));
        }
    };
    for (i, event) in events.iter().enumerate() {
        let (op, t) = (event.op(), event.thread());
        scene.event(i as u32, event);
        if !op.reads() && !op.writes() || !is_shared(event.var().0) {
            continue;
        }
        if ignored.contains(&t) {
            return false;
        }
        let region = regions.at(t.0, i as u32);
        let span = entry(&mut spans, t.index());
        if span.region != region {
            close(t.0, span);
            let mut touched = std::mem::take(&mut span.touched);
            touched.clear();
            *span = Span { region, first: i as u32, touched, ..Span::default() };
        }
        if region.is_some() {
            span.count += 1;
            span.locks = held_since(&mut scene, t, span.first);
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
                        || scene.locksets.exclude(locks, access.locks)
                })
        })
    })
}
