//! Accesses in classes, and the pairs of them that could be races.
//!
//! A class is all accesses of one thread to one variable, at one place, of one kind, with one set
//! of locks. Each variable keeps a *lane* for each of its threads: the thread's classes, the latest
//! access first. An access scans the lanes of the other threads from the front, and stops at an
//! access that is known to come before it: everything behind is older and ordered as well. It also
//! stops at what it was compared with before: if the last access of a class before this one is
//! ordered before it, so are all earlier ones. So only unordered pairs are examined.
//!
//! There can be as many as pairs of places. Each place has a *credit* of pairs to examine that are
//! not new, which grows with its accesses, so that the pass is linear. Pairs that this skips are
//! counted. No place is skipped: a second list in each lane holds the classes whose places are in
//! no known race yet. It is always scanned to its end, and classes that were examined leave
//! it.
//!
//! Pairs are reported once for each pair of places, which the classes are grouped by.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, LocId, Op, VarId, entry};

use super::super::locksets::{Hold, LockSetId, LockSets};
use crate::reorder::NONE;

/// The number of classes of a variable up to which all pairs are counted, even impossible ones.
const COUNTED: u32 = 16;
/// How many bytes a class takes with its lane and its entry in a table, all of which grow by
/// doubling.
const BYTES_PER_CLASS: usize = 400;
/// The maximum number of pairs of places, besides those needed to have every place in one.
const MOST_GROUPS: usize = 100_000;
/// The initial and the maximum credit of a place.
const FIRST_CREDIT: u32 = 64;
const MOST_CREDIT: u32 = 1024;
/// The credit for an access, in eighths: enough that programs with few places for each variable
/// never run out, unless only known races are wanted.
const CREDIT: u32 = 4 * 8;
const CREDIT_FOR_SURE: u32 = 1;
/// The distance in events up to which a known race counts as near.
const NEAR: u32 = 200;
/// The number of pairs of classes that are kept for a pair of places.
const MOST_CLASS_PAIRS: usize = 64;

/// So few locks are compared at no cost.
const FEW_LOCKS: usize = 8;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) writes: bool,
    pub(super) is_atomic: bool,
}

/// The number of kinds.
const KINDS: usize = 4;

impl Kind {
    pub(super) fn of(op: Op) -> Kind {
        Kind { writes: op.writes(), is_atomic: op.is_atomic() }
    }

    fn number(self) -> usize {
        usize::from(self.writes) | usize::from(self.is_atomic) << 1
    }

    /// The numbers of the kinds that it conflicts with.
    fn rivals(self) -> &'static [usize] {
        const PLAIN_WRITE: usize = 1;
        const ATOMIC_WRITE: usize = 3;
        match (self.writes, self.is_atomic) {
            (true, false) => &[0, 1, 2, 3],
            (false, false) => &[PLAIN_WRITE, ATOMIC_WRITE],
            (true, true) => &[0, PLAIN_WRITE],
            (false, true) => &[PLAIN_WRITE],
        }
    }

    fn conflicts(self, other: Kind) -> bool {
        (self.writes || other.writes) && !(self.is_atomic && other.is_atomic)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    variable: VarId,
    thread: u32,
    place: LocId,
    kind: Kind,
    locks: LockSetId,
}

impl Key {
    fn of(event: &Event, locks: LockSetId) -> Key {
        Key {
            variable: event.var(),
            thread: event.thread().0,
            place: event.loc(),
            kind: Kind::of(event.op()),
            locks,
        }
    }
}

/// A class.
#[derive(Debug)]
#[repr(align(64))]
struct Class {
    key: Key,
    /// The latest access, and its time in its thread.
    last: u32,
    time: u32,
    site: u32,
    lane: u32,
    /// The class of the variable that was new before it.
    sibling: u32,
    links: [Link; 2],
}

/// A class's neighbours in a list of its lane.
#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
    is_in: bool,
}

const _: () = assert!(size_of::<Class>() == 64);

/// The lists of a lane: all classes, and those whose places are in no race yet.
const ALL: usize = 0;
const UNSEEN: usize = 1;

/// The classes of one thread that access a variable.
#[derive(Debug)]
#[repr(align(64))]
struct Lane {
    thread: u32,
    /// The next lane of the variable.
    next: u32,
    /// The class accessed last, in each list, by kind.
    heads: [[u32; KINDS]; 2],
    /// The time of the latest access of each kind: most often nothing else has to be looked at.
    times: [u32; KINDS],
    /// The latest access of all.
    last: u32,
    /// The locks that all its classes have.
    locks: Common,
}

const _: () = assert!(size_of::<Lane>() == 64);

/// Locks that several sets have in common: the number of the first set, and above it, which of its locks the others have.
#[derive(Clone, Copy, Debug)]
struct Common(u32);

impl Common {
    /// The bits of the number.
    const NUMBER: u32 = 24;

    fn new(set: LockSetId, locksets: &LockSets) -> Common {
        let count = locksets.get(set).len();
        let is_small = count <= FEW_LOCKS && set.0 >> Common::NUMBER == 0;
        Common(if is_small { set.0 | ((1 << count) - 1) << Common::NUMBER } else { 0 })
    }

    fn holds(self, locksets: &LockSets) -> impl Iterator<Item = (u32, Hold)> {
        let set = LockSetId(self.0 & ((1 << Common::NUMBER) - 1));
        // There is no bit after those of the locks, so they decide where it ends.
        let bits = (0..).map(|i| 1 << (Common::NUMBER + i));
        (locksets.get(set).iter().zip(bits))
            .filter(move |(_, bit)| self.0 & bit != 0)
            .map(|(&hold, bit)| (bit, hold))
    }

    fn narrow(&mut self, set: LockSetId, locksets: &LockSets) {
        let others = locksets.get(set);
        let is_in = |hold: &Hold| others.len() <= FEW_LOCKS && others.contains(hold);
        let gone =
            self.holds(locksets).filter(|(_, hold)| !is_in(hold)).map(|(bit, _)| bit).sum::<u32>();
        self.0 &= !gone;
    }

    /// Whether one of them keeps other threads from holding a set.
    fn excludes(self, set: LockSetId, locksets: &LockSets) -> bool {
        let others = locksets.get(set);
        others.len() <= FEW_LOCKS
            && self
                .holds(locksets)
                .any(|(_, hold)| others.iter().any(|&other| hold.excludes(other)))
    }
}

#[derive(Clone, Copy, Debug)]
struct Variable {
    lanes: u32,
    class: u32,
    classes: u32,
    /// The thread that accessed it last, and since when no other thread did.
    thread: u32,
    since: u32,
    /// The number of its classes in lists of the unseen, and the number of places seen when those
    /// lists were last scanned.
    unseen: u32,
    seen: u32,
    is_cut: bool,
}

impl Default for Variable {
    fn default() -> Self {
        Variable {
            lanes: NONE,
            class: NONE,
            classes: 0,
            thread: NONE,
            since: 0,
            unseen: 0,
            seen: 0,
            is_cut: false,
        }
    }
}

/// A place, for one kind of access; for one variable, if the place is unknown.
pub(super) type SiteKey = (LocId, Kind, Option<VarId>);

#[derive(Debug)]
struct Site {
    key: SiteKey,
    /// The number of further pairs to examine that are not new, in eighths.
    credit: u32,
    /// Whether it is in a pair that is known to race.
    is_seen: bool,
}

/// A pair of places.
#[derive(Debug)]
pub(super) struct Group {
    /// The places, by numbers of their own, and a variable that is accessed at both.
    pub(super) sites: [u32; 2],
    pub(super) variable: VarId,
    /// Whether there are two classes whose locks do not exclude each other.
    pub(super) is_open: bool,
    /// The nearest pair that is known to race.
    pub(super) sure: Option<Pair>,
    /// Whether it was the first to race at one of the places.
    pub(super) is_first: bool,
    /// The nearest other pairs that nothing rules out, with the classes that they are of.
    pub(super) pairs: Vec<Pair>,
    /// The pairs of classes that nothing rules out.
    pub(super) classes: Vec<[u32; 2]>,
    /// The number of pairs of neighbours that nothing rules out.
    pub(super) count: u64,
    is_done: bool,
}

/// Two accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) events: [u32; 2],
    pub(super) classes: [u32; 2],
}

impl Pair {
    pub(super) fn distance(&self) -> u32 {
        self.events[1] - self.events[0]
    }
}

/// How much of another thread is ordered before an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    /// Later events of its thread can happen at the same time as the access.
    pub(super) sure: u32,
    /// Later events are not ordered before it, but only a search can decide more.
    pub(super) possible: u32,
    /// Even later events need not be examined.
    pub(super) until: u32,
}

/// All classes of the suspects.
#[derive(Debug)]
pub(super) struct Classes {
    classes: Vec<Class>,
    /// The lane of each variable and thread.
    lane_numbers: HashMap<(VarId, u32), u32, RandomState>,
    numbers: HashMap<Key, u32, RandomState>,
    lanes: Vec<Lane>,
    variables: Vec<Variable>,
    sites: Vec<Site>,
    site_numbers: HashMap<SiteKey, u32, RandomState>,
    /// The number of them that are in a known race.
    seen: u32,
    pub(super) groups: Vec<Group>,
    group_numbers: HashMap<[u32; 2], u32, RandomState>,
    /// The number of pairs of events that are kept for a pair of classes, and for a pair of places.
    most: [usize; 2],
    /// Whether only known races are wanted. Then impossible pairs are not counted.
    is_only_sure: bool,
    /// The number of classes that there is room for.
    most_classes: usize,
    /// The number of pairs of classes not examined, because there are too many pairs of places, and
    /// of accesses, because there are too many classes.
    pub(super) left_out: u64,
}

impl Classes {
    /// Keeps these numbers of pairs of events for each pair of classes, and of places; none if only
    /// known races are wanted. `room` is the memory limit in bytes.
    pub(super) fn new(most: Option<[usize; 2]>, room: usize) -> Classes {
        Classes {
            classes: Vec::new(),
            lane_numbers: HashMap::default(),
            numbers: HashMap::default(),
            lanes: Vec::new(),
            variables: Vec::new(),
            sites: Vec::new(),
            site_numbers: HashMap::default(),
            seen: 0,
            groups: Vec::new(),
            group_numbers: HashMap::default(),
            most: most.unwrap_or([1, 1]),
            is_only_sure: most.is_none(),
            most_classes: room / BYTES_PER_CLASS,
            left_out: 0,
        }
    }

    /// The number of variables with more classes than are examined.
    pub(super) fn crowded(&self) -> u64 {
        self.variables.iter().filter(|variable| variable.is_cut).count() as u64
    }

    /// The class of an access, if it has one.
    pub(super) fn class_of(&self, event: &Event, locks: LockSetId) -> Option<u32> {
        self.numbers.get(&Key::of(event, locks)).copied()
    }

    /// The places of a group, whatever their numbers are.
    pub(super) fn places(&self, group: &Group) -> [SiteKey; 2] {
        let mut places = group.sites.map(|site| self.sites[site as usize].key);
        places.sort_unstable();
        places
    }

    /// The variable of a class.
    pub(super) fn variable(&self, class: u32) -> VarId {
        self.classes[class as usize].key.variable
    }

    /// Processes the next access to a suspect, at a time of its thread. `known` returns how much of
    /// another thread is ordered before it.
    #[inline]
    pub(super) fn access(
        &mut self,
        index: u32,
        event: &Event,
        (locks, locksets): (LockSetId, &LockSets),
        time: u32,
        known: impl FnMut(u32) -> Known,
    ) {
        let key = Key::of(event, locks);
        let class = match self.numbers.get(&key) {
            Some(&class) => class,
            None if self.classes.len() >= self.most_classes => {
                self.left_out += 1;
                return;
            }
            None => self.add(key, locksets),
        };
        let own = &mut self.classes[class as usize];
        let before = std::mem::replace(&mut own.last, index);
        own.time = time;
        let (lane, site) = (own.lane, own.site as usize);
        self.bring_to_front(class, ALL);
        match self.sites[site].is_seen {
            false => self.bring_to_front(class, UNSEEN),
            true => self.unlink(class, UNSEEN),
        }
        let lane = &mut self.lanes[lane as usize];
        lane.last = index;
        lane.times[key.kind.number()] = time;
        let variable = &mut self.variables[key.variable.index()];
        if variable.thread != key.thread {
            (variable.thread, variable.since) = (key.thread, index);
        } else if before != NONE && before >= variable.since {
            // It was compared with everything already.
            return;
        }
        let further = if self.is_only_sure { CREDIT_FOR_SURE } else { CREDIT };
        let Site { credit, is_seen, .. } = &mut self.sites[site];
        *credit = (*credit + further).min(MOST_CREDIT * 8);
        if *credit < 8 && *is_seen && self.is_only_sure {
            variable.is_cut = true;
            if self.seen - variable.seen >= variable.unseen {
                self.drop_seen(key.variable);
            }
            if self.variables[key.variable.index()].unseen == 0 {
                return;
            }
        }
        self.compare(class, before, locksets, known);
    }

    /// Compares the latest access of a class with what came since the one before.
    fn compare(
        &mut self,
        class: u32,
        before: u32,
        locksets: &LockSets,
        mut known: impl FnMut(u32) -> Known,
    ) {
        let Class { key, site, .. } = self.classes[class as usize];
        let mut at = self.variables[key.variable.index()].lanes;
        while at != NONE {
            let lane = at;
            let Lane { thread, next, heads, times, last, locks } = self.lanes[lane as usize];
            at = next;
            if thread == key.thread || before != NONE && last < before {
                continue;
            }
            let Known { sure, possible, until } = known(thread);
            // Most often one lock guards them all, and there may be hundreds of threads: that takes no credit.
            let is_sure = times.iter().any(|&time| time > sure);
            if !is_sure && locks.excludes(key.locks, locksets) {
                continue;
            }
            let mut is_cut = false;
            for &kind in key.kind.rivals().iter().filter(|&&kind| times[kind] > possible) {
                let mut other = heads[ALL][kind];
                while other != NONE {
                    let theirs = &self.classes[other as usize];
                    if theirs.time <= possible || before != NONE && theirs.last < before {
                        break;
                    }
                    if self.sites[site as usize].credit < 8 {
                        is_cut = true;
                        break;
                    }
                    let older = theirs.links[ALL].older;
                    let is_sure = theirs.time > sure;
                    let is_open = is_sure || !locksets.exclude(theirs.key.locks, key.locks);
                    let is_wanted = is_open && theirs.time <= until;
                    if !is_wanted || !self.meet(other, class, is_sure, false) {
                        self.sites[site as usize].credit -= 8;
                    }
                    other = older;
                }
            }
            if is_cut {
                self.variables[key.variable.index()].is_cut = true;
                self.see_all(class, lane, sure, until);
                // There is nothing left to learn from the other lanes, of which there may be thousands.
                if self.is_all_seen(key.variable, site) {
                    return;
                }
            }
        }
    }

    /// Whether a place and all those at which a variable was accessed are in races that are known.
    fn is_all_seen(&mut self, variable: VarId, site: u32) -> bool {
        let Variable { unseen, seen, .. } = self.variables[variable.index()];
        if self.sites[site as usize].is_seen && unseen > 0 && self.seen - seen >= unseen {
            self.drop_seen(variable);
        }
        self.sites[site as usize].is_seen && self.variables[variable.index()].unseen == 0
    }

    /// Pairs an access with everything in a lane that is known to race with it and in no race yet,
    /// and with the latest that is, if it is in no race itself.
    fn see_all(&mut self, class: u32, lane: u32, sure: u32, until: u32) {
        let Class { key, site, .. } = self.classes[class as usize];
        for &kind in key.kind.rivals() {
            let latest = self.lanes[lane as usize].heads[ALL][kind];
            let is_sure = |time: u32| time > sure && time <= until;
            if !self.sites[site as usize].is_seen
                && latest != NONE
                && is_sure(self.classes[latest as usize].time)
            {
                self.meet(latest, class, true, true);
            }
            loop {
                let other = self.lanes[lane as usize].heads[UNSEEN][kind];
                if other == NONE || self.classes[other as usize].time <= sure {
                    break;
                }
                let theirs = self.classes[other as usize].site;
                let is_wanted = self.classes[other as usize].time <= until;
                if is_wanted && !self.sites[theirs as usize].is_seen {
                    self.meet(other, class, true, true);
                }
                self.unlink(other, UNSEEN);
            }
        }
    }

    /// Removes the classes of a variable whose places were seen meanwhile from the lists of the
    /// unseen.
    fn drop_seen(&mut self, variable: VarId) {
        let Variable { lanes, ref mut seen, .. } = self.variables[variable.index()];
        *seen = self.seen;
        let mut lane = lanes;
        while lane != NONE {
            for kind in 0..KINDS {
                let mut at = self.lanes[lane as usize].heads[UNSEEN][kind];
                while at != NONE {
                    let Class { site, links, .. } = &self.classes[at as usize];
                    let (is_seen, older) =
                        (self.sites[*site as usize].is_seen, links[UNSEEN].older);
                    if is_seen {
                        self.unlink(at, UNSEEN);
                    }
                    at = older;
                }
            }
            lane = self.lanes[lane as usize].next;
        }
    }

    /// The latest accesses of two classes are unordered. Whether their places are a new pair.
    fn meet(&mut self, other: u32, class: u32, is_sure: bool, is_needed: bool) -> bool {
        let (a, b) = (&self.classes[other as usize], &self.classes[class as usize]);
        let pair = Pair { events: [a.last, b.last], classes: [other, class] };
        let sites = [a.site, b.site];
        let variable = a.key.variable;
        let is_new = sites.iter().any(|&site| !self.sites[site as usize].is_seen);
        let Some(group) = self.group(sites, variable, is_needed || is_sure && is_new) else {
            self.left_out += 1;
            return false;
        };
        let most = self.most;
        let group = &mut self.groups[group as usize];
        group.is_open = true;
        if group.is_done {
            return false;
        }
        group.count += 1;
        if !is_sure {
            group.keep(pair, most);
            return group.count == 1;
        }
        if group.sure.is_none_or(|known| pair.distance() < known.distance()) {
            group.sure = Some(pair);
            group.is_done = pair.distance() <= NEAR;
        }
        if is_new {
            group.is_first = true;
            for site in sites {
                let is_seen = &mut self.sites[site as usize].is_seen;
                self.seen += u32::from(!std::mem::replace(is_seen, true));
            }
        }
        group.count == 1
    }

    /// The number of a pair of places, unless it is new, not needed, and there are too many.
    fn group(&mut self, sites: [u32; 2], variable: VarId, is_needed: bool) -> Option<u32> {
        let key = [sites[0].min(sites[1]), sites[0].max(sites[1])];
        if let Some(&group) = self.group_numbers.get(&key) {
            return Some(group);
        }
        if self.groups.len() >= MOST_GROUPS && !is_needed {
            return None;
        }
        let group = self.groups.len() as u32;
        self.group_numbers.insert(key, group);
        self.groups.push(Group {
            sites: key,
            variable,
            is_open: false,
            sure: None,
            is_first: false,
            pairs: Vec::new(),
            classes: Vec::new(),
            count: 0,
            is_done: false,
        });
        Some(group)
    }

    #[cold]
    fn add(&mut self, key: Key, locksets: &LockSets) -> u32 {
        let class = self.classes.len() as u32;
        let site = self.site(&key);
        let variable = *entry(&mut self.variables, key.variable.index());
        let next_lane = self.lanes.len() as u32;
        let lane = *self.lane_numbers.entry((key.variable, key.thread)).or_insert(next_lane);
        if lane == next_lane {
            let (heads, times) = ([[NONE; KINDS]; 2], [0; KINDS]);
            let next = variable.lanes;
            let (thread, last, locks) = (key.thread, 0, Common::new(key.locks, locksets));
            self.lanes.push(Lane { thread, next, heads, times, last, locks });
            self.variables[key.variable.index()].lanes = lane;
        }
        self.lanes[lane as usize].locks.narrow(key.locks, locksets);
        let own = &mut self.variables[key.variable.index()];
        let sibling = std::mem::replace(&mut own.class, class);
        own.classes += 1;
        self.numbers.insert(key, class);
        let links = [Link { newer: NONE, older: NONE, is_in: false }; 2];
        self.classes.push(Class { key, last: NONE, time: 0, site, lane, sibling, links });
        if variable.classes < COUNTED && !self.is_only_sure {
            self.count_pairs(class, locksets);
        }
        class
    }

    /// Counts the pairs of a new class with all others of its variable.
    fn count_pairs(&mut self, class: u32, locksets: &LockSets) {
        let Class { key, site, sibling, .. } = self.classes[class as usize];
        let mut at = sibling;
        while at != NONE {
            let other = &self.classes[at as usize];
            let (theirs, their_site) = (other.key, other.site);
            at = other.sibling;
            if theirs.thread != key.thread
                && theirs.kind.conflicts(key.kind)
                && let Some(group) = self.group([site, their_site], key.variable, false)
            {
                let is_open = !locksets.exclude(theirs.locks, key.locks);
                self.groups[group as usize].is_open |= is_open;
            }
        }
    }

    fn site(&mut self, key: &Key) -> u32 {
        let variable = (!key.place.is_some()).then_some(key.variable);
        let next = self.sites.len() as u32;
        let key = (key.place, key.kind, variable);
        let site = *self.site_numbers.entry(key).or_insert(next);
        if site == next {
            self.sites.push(Site { key, credit: FIRST_CREDIT * 8, is_seen: false });
        }
        site
    }

    #[inline]
    fn bring_to_front(&mut self, class: u32, list: usize) {
        let Class { lane, key, .. } = self.classes[class as usize];
        let kind = key.kind.number();
        let head = self.lanes[lane as usize].heads[list][kind];
        if head == class {
            return;
        }
        self.unlink(class, list);
        if list == UNSEEN {
            self.variables[key.variable.index()].unseen += 1;
        }
        let head = std::mem::replace(&mut self.lanes[lane as usize].heads[list][kind], class);
        self.classes[class as usize].links[list] = Link { newer: NONE, older: head, is_in: true };
        if head != NONE {
            self.classes[head as usize].links[list].newer = class;
        }
    }

    fn unlink(&mut self, class: u32, list: usize) {
        let Class { lane, key, links, .. } = &mut self.classes[class as usize];
        let Link { newer, older, is_in } = links[list];
        if !is_in {
            return;
        }
        links[list].is_in = false;
        if list == UNSEEN {
            self.variables[key.variable.index()].unseen -= 1;
        }
        let (lane, kind) = (*lane, key.kind.number());
        match newer {
            NONE => self.lanes[lane as usize].heads[list][kind] = older,
            newer => self.classes[newer as usize].links[list].older = older,
        }
        if older != NONE {
            self.classes[older as usize].links[list].newer = newer;
        }
    }
}

impl Group {
    /// Whether there is nothing to try: all pairs are in order, or locks exclude them.
    pub(super) fn is_settled(&self) -> bool {
        self.sure.is_none() && self.pairs.is_empty()
    }

    /// Keeps the nearest pairs, up to a maximum for each pair of classes and in all.
    fn keep(&mut self, pair: Pair, [of_classes, of_places]: [usize; 2]) {
        let of = |classes: [u32; 2]| {
            let [a, b] = classes;
            [a.min(b), a.max(b)]
        };
        if self.classes.len() < MOST_CLASS_PAIRS && !self.classes.contains(&of(pair.classes)) {
            self.classes.push(of(pair.classes));
        }
        let same = |other: &&Pair| of(other.classes) == of(pair.classes);
        let is_full = self.pairs.len() >= of_places;
        let has_enough = self.pairs.iter().filter(same).count() >= of_classes;
        if !is_full && !has_enough {
            self.pairs.push(pair);
            return;
        }
        let all = self.pairs.iter_mut().filter(|other| !has_enough || same(&&**other));
        if let Some(farthest) = all.max_by_key(|other| other.distance())
            && farthest.distance() > pair.distance()
        {
            *farthest = pair;
        }
    }
}
