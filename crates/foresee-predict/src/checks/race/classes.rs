//! Accesses in classes, and the pairs of them that could be races.
//!
//! A class is all accesses of one thread to one variable, at one place, of one kind, with one set of
//! locks. Of two classes whose locks exclude each other no pair is a race. Of all others the nearest
//! pairs are kept that are not ordered by what they need. Only neighbours have to be compared: if
//! the last access of a class before this one is ordered before it, so are all earlier ones.
//!
//! Pairs are reported once for each pair of places, which the classes are grouped by.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, LocId, Op, VarId, entry};

use super::super::locksets::{LockSetId, LockSets};
use super::suspects::is_atomic;
use crate::reorder::NONE;

/// How many classes one variable may have.
const MOST_CLASSES: usize = 64;
/// How many pairs of places there may be, and how many pairs of classes.
const MOST_GROUPS: usize = 100_000;
const MOST_PARTNERS: usize = 8_000_000;
/// A pair that is known to race is near enough if so many events are between them.
const NEAR: u32 = 200;

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) writes: bool,
    pub(super) is_atomic: bool,
}

impl Kind {
    fn of(op: Op) -> Kind {
        Kind { writes: op.writes(), is_atomic: is_atomic(op) }
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
struct Class {
    key: Key,
    /// The latest access, and its time in its thread.
    last: u32,
    time: u32,
    /// The next class of the variable.
    sibling: u32,
    partners: Vec<Partner>,
}

/// A class that another one could race with, and the pair of places that this would be.
#[derive(Clone, Copy, Debug)]
struct Partner {
    class: u32,
    group: u32,
}

/// A pair of places, and of variables if one of the places is not known.
type GroupKey = ([(LocId, Kind); 2], Option<VarId>);

/// What is known of a pair of places.
#[derive(Debug)]
pub(super) struct Group {
    /// Whether there are two classes whose locks do not exclude each other.
    pub(super) is_open: bool,
    /// The nearest pair that is known to race.
    pub(super) sure: Option<Pair>,
    /// The nearest other pairs that nothing rules out, with the classes that they are of.
    pub(super) pairs: Vec<Pair>,
    /// How many pairs of neighbours there are that nothing rules out.
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
    fn distance(&self) -> u32 {
        self.events[1] - self.events[0]
    }
}

/// How two accesses are ordered, as far as the algorithm asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ordered {
    /// One needs the other, or in the algorithm's eyes they are ordered.
    Yes,
    /// They are not, but only a search can tell more.
    No,
    /// They could come at once.
    Sure,
}

/// All classes of the suspects.
#[derive(Debug)]
pub(super) struct Classes {
    classes: Vec<Class>,
    numbers: HashMap<Key, u32, RandomState>,
    /// For each variable its first class, and how many it has.
    variables: Vec<Option<(u32, u32)>>,
    pub(super) groups: Vec<Group>,
    group_numbers: HashMap<GroupKey, u32, RandomState>,
    partners: usize,
    /// How many pairs of events are kept for a pair of classes, and for a pair of places.
    most: [usize; 2],
    /// How many variables have more classes than are looked at.
    pub(super) crowded: u64,
    /// How many pairs of classes are not looked at, because there are too many.
    pub(super) left_out: u64,
}

impl Classes {
    /// With so many pairs of events to try for each pair of classes, and of places.
    pub(super) fn new(most: [usize; 2]) -> Classes {
        Classes {
            classes: Vec::new(),
            numbers: HashMap::default(),
            variables: Vec::new(),
            groups: Vec::new(),
            group_numbers: HashMap::default(),
            partners: 0,
            most,
            crowded: 0,
            left_out: 0,
        }
    }

    /// The class of an access, if it has one.
    pub(super) fn class_of(&self, event: &Event, locks: LockSetId) -> Option<u32> {
        self.numbers.get(&Key::of(event, locks)).copied()
    }

    /// The variable of a class.
    pub(super) fn variable(&self, class: u32) -> VarId {
        self.classes[class as usize].key.variable
    }

    /// The pairs of classes that some pairs of places are of, with their places.
    pub(super) fn pairs_of(&self, groups: &HashSet<u32>) -> Vec<(u32, [u32; 2])> {
        let mut pairs = Vec::new();
        for (class, own) in self.classes.iter().enumerate() {
            let class = class as u32;
            let later = own.partners.iter().filter(|p| p.class < class);
            let wanted = later.filter(|partner| groups.contains(&partner.group));
            pairs.extend(wanted.map(|partner| (partner.group, [partner.class, class])));
        }
        pairs.sort_unstable();
        pairs
    }

    /// The next access to a suspect, at a time of its thread. `ordered` says how the class member at
    /// some time of another thread is ordered to it.
    pub(super) fn access(
        &mut self,
        index: u32,
        event: &Event,
        (locks, locksets): (LockSetId, &LockSets),
        time: u32,
        mut ordered: impl FnMut(u32, u32) -> Ordered,
    ) {
        let key = Key::of(event, locks);
        let class = match self.numbers.get(&key) {
            Some(&class) => class,
            None => match self.add(key, locksets) {
                Some(class) => class,
                None => return,
            },
        };
        let own = &mut self.classes[class as usize];
        let before = std::mem::replace(&mut own.last, index);
        own.time = time;
        let mut partners = std::mem::take(&mut own.partners);
        partners.retain(|partner| {
            let group = &mut self.groups[partner.group as usize];
            if group.is_done {
                return false;
            }
            let other = &self.classes[partner.class as usize];
            // Neighbours only: nothing of the own class came since.
            if other.last == NONE || before != NONE && before > other.last {
                return true;
            }
            let pair = Pair { events: [other.last, index], classes: [partner.class, class] };
            match ordered(other.key.thread, other.time) {
                Ordered::Yes => {}
                Ordered::No => {
                    group.count += 1;
                    group.keep(pair, self.most);
                }
                Ordered::Sure => {
                    group.count += 1;
                    if group.sure.is_none_or(|known| pair.distance() < known.distance()) {
                        group.sure = Some(pair);
                        group.is_done = pair.distance() <= NEAR;
                    }
                }
            }
            true
        });
        self.classes[class as usize].partners = partners;
    }

    fn add(&mut self, key: Key, locksets: &LockSets) -> Option<u32> {
        let known = entry(&mut self.variables, key.variable.index());
        let (first, count) = known.get_or_insert((NONE, 0));
        *count += 1;
        if *count as usize > MOST_CLASSES {
            self.crowded += u64::from(*count as usize == MOST_CLASSES + 1);
            return None;
        }
        let class = self.classes.len() as u32;
        let sibling = std::mem::replace(first, class);
        self.numbers.insert(key, class);
        self.classes.push(Class { key, last: NONE, time: 0, sibling, partners: Vec::new() });
        let mut at = sibling;
        while at != NONE {
            let other = &self.classes[at as usize];
            let (theirs, next) = (other.key, other.sibling);
            if theirs.thread != key.thread && theirs.kind.conflicts(key.kind) {
                self.pair(class, at, !locksets.exclude(theirs.locks, key.locks));
            }
            at = next;
        }
        Some(class)
    }

    /// Two classes meet, whose locks do not exclude each other if the pair is open.
    fn pair(&mut self, class: u32, other: u32, is_open: bool) {
        let (a, b) = (self.classes[class as usize].key, self.classes[other as usize].key);
        let mut places = [(a.place, a.kind), (b.place, b.kind)];
        places.sort_unstable();
        let is_known = a.place.is_some() && b.place.is_some();
        let key = (places, (!is_known).then_some(a.variable));
        let group = match self.group_numbers.get(&key) {
            Some(&group) => group,
            None if self.groups.len() >= MOST_GROUPS => {
                self.left_out += u64::from(is_open);
                return;
            }
            None => {
                let group = self.groups.len() as u32;
                self.group_numbers.insert(key, group);
                self.groups.push(Group {
                    is_open: false,
                    sure: None,
                    pairs: Vec::new(),
                    count: 0,
                    is_done: false,
                });
                group
            }
        };
        let known = &mut self.groups[group as usize];
        if !is_open || known.is_done {
            return;
        }
        known.is_open = true;
        if self.partners >= MOST_PARTNERS {
            self.left_out += 1;
            return;
        }
        self.partners += 1;
        self.classes[class as usize].partners.push(Partner { class: other, group });
        self.classes[other as usize].partners.push(Partner { class, group });
    }
}

impl Group {
    /// Keeps the nearest pairs: so many of each pair of classes, and so many in all.
    fn keep(&mut self, pair: Pair, [of_classes, of_places]: [usize; 2]) {
        let of = |classes: [u32; 2]| {
            let [a, b] = classes;
            [a.min(b), a.max(b)]
        };
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
