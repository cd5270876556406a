//! The accesses of regions and of other threads to the same variables, from which candidates are
//! made.
//!
//! Equivalent events (same variable, thread, source place, kind and locks) represent each other; of
//! a long list, only the first and the last are kept.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, Op, ThreadId, entry};

use super::regions::Regions;
use crate::checks::lock_state::LockState;
use crate::checks::locksets::LockSetId;

/// The number of first and of last events of a class that are kept.
const KEPT: usize = 64;

/// The maximum number of classes of accesses to a variable.
const MOST_CLASSES: usize = 64;

/// The first and the last of many.
#[derive(Clone, Debug)]
pub(super) struct Few<T> {
    kept: Vec<T>,
    /// The position of the oldest of the last ones.
    oldest: usize,
    pub(super) count: u64,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few { kept: Vec::new(), oldest: KEPT, count: 0 }
    }
}

impl<T: Copy + Ord> Few<T> {
    fn push(&mut self, one: T) {
        self.count += 1;
        if self.kept.len() < 2 * KEPT {
            self.kept.push(one);
        } else {
            self.kept[self.oldest] = one;
            self.oldest = if self.oldest + 1 == 2 * KEPT { KEPT } else { self.oldest + 1 };
        }
    }

    fn finish(&mut self) {
        self.kept.sort_unstable();
    }

    /// Those that were kept, in their order.
    pub(super) fn kept(&self) -> &[T] {
        &self.kept
    }

    /// Whether none was dropped.
    pub(super) fn is_complete(&self) -> bool {
        self.count == self.kept.len() as u64
    }
}

/// How another thread's access between two accesses of a region breaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Shape {
    /// A write in between is not serialisable.
    pub(super) around_write: bool,
    /// A read in between is not serialisable.
    pub(super) around_read: bool,
}

/// Pairs of accesses of a region that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct PairKey {
    pub(super) variable: u32,
    pub(super) thread: u32,
    pub(super) places: [u32; 2],
    pub(super) shape: Shape,
    /// The locks that are held all the way from one to the other.
    pub(super) span: LockSetId,
}

/// The index of each kind of pairs in the list.
pub(super) type Numbers = HashMap<PairKey, usize, RandomState>;

/// Accesses of a variable that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct AccessKey {
    pub(super) thread: u32,
    pub(super) place: u32,
    pub(super) op: u8,
    pub(super) locks: LockSetId,
}

impl AccessKey {
    pub(super) fn reads(&self) -> bool {
        Op::from_code(self.op).is_some_and(Op::reads)
    }

    pub(super) fn writes(&self) -> bool {
        Op::from_code(self.op).is_some_and(Op::writes)
    }
}

/// The accesses of one variable, class by class.
#[derive(Debug, Default)]
pub(super) struct Partners {
    pub(super) classes: Vec<(AccessKey, Few<u32>)>,
    numbers: HashMap<AccessKey, usize, RandomState>,
    /// The number of accesses in no class, because there were too many classes.
    pub(super) dropped: u64,
}

/// Everything that candidates are made of.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    pub(super) lock_state: LockState,
    pub(super) pairs: Vec<(PairKey, Few<(u32, u32)>)>,
    /// By variable; only those that regions access twice, or that are in `wanted`.
    pub(super) partners: HashMap<u32, Partners, RandomState>,
}

/// The latest accesses of an open region to a variable.
#[derive(Clone, Copy, Debug)]
struct Latest {
    access: u32,
    write: Option<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    region: Option<u32>,
    latest: HashMap<u32, Latest, RandomState>,
}

/// The locks that the thread holds now and has held since `since`.
pub(super) fn held_since(lock_state: &mut LockState, thread: ThreadId, since: u32) -> LockSetId {
    if lock_state.held(thread).iter().all(|held| held.acquire < since) {
        return lock_state.set(thread);
    }
    let held = lock_state.held(thread).iter().filter(|held| held.acquire < since);
    let held: Vec<_> = held.map(|held| held.hold).collect();
    lock_state.locksets.intern(held.into_iter())
}

impl Accesses {
    /// Reads a trace twice: for the regions, and for what others do to their variables. `wanted`
    /// are additional variables; events of `ignored` threads are skipped.
    pub(super) fn new(
        events: &[Event],
        regions: &Regions,
        wanted: impl Iterator<Item = u32>,
        ignored: &[ThreadId],
    ) -> Accesses {
        let mut this = Accesses::default();
        this.find_pairs(events, regions, ignored);
        let twice: Vec<u32> = this.pairs.iter().map(|(key, _)| key.variable).collect();
        for variable in twice.into_iter().chain(wanted) {
            this.partners.entry(variable).or_default();
        }
        this.find_partners(events, ignored);
        this
    }

    /// Adds a pair that is made of two events of a thread.
    pub(super) fn add_pair(&mut self, numbers: &mut Numbers, key: PairKey, pair: (u32, u32)) {
        let number = *numbers.entry(key).or_insert_with(|| {
            self.pairs.push((key, Few::default()));
            self.pairs.len() - 1
        });
        self.pairs[number].1.push(pair);
    }

    /// Once all pairs are added: what others do to their variables.
    pub(super) fn with_partners(mut self, events: &[Event], ignored: &[ThreadId]) -> Accesses {
        self.pairs.iter_mut().for_each(|(_, pairs)| pairs.finish());
        for (key, _) in &self.pairs {
            self.partners.entry(key.variable).or_default();
        }
        self.find_partners(events, ignored);
        self
    }

    fn find_pairs(&mut self, events: &[Event], regions: &Regions, ignored: &[ThreadId]) {
        let mut numbers = Numbers::default();
        let mut threads: Vec<Thread> = Vec::new();
        let mut in_order = regions.in_order();
        for (i, event) in events.iter().enumerate() {
            let i = i as u32;
            let (op, t) = (event.op(), event.thread());
            self.lock_state.event(i, event);
            if !op.reads() && !op.writes() || ignored.contains(&t) {
                continue;
            }
            let thread = entry(&mut threads, t.index());
            let region = in_order.at(t.0, i);
            if thread.region != region {
                thread.region = region;
                thread.latest.clear();
            }
            if region.is_none() {
                continue;
            }
            let variable = event.var().0;
            let now = Latest { access: i, write: op.writes().then_some(i) };
            let before = thread.latest.insert(variable, now);
            let Some(before) = before else { continue };
            if now.write.is_none() {
                thread.latest.insert(variable, Latest { write: before.write, ..now });
            }
            let earlier = events[before.access as usize].op();
            let around_write = earlier.reads() || op.reads();
            // A read in between sees the first of two writes.
            let read_around = before.write.filter(|_| op.writes());
            let mut pair = |a1: u32, shape: Shape| {
                let key = PairKey {
                    variable,
                    thread: t.0,
                    places: [events[a1 as usize].loc().0, event.loc().0],
                    shape,
                    span: held_since(&mut self.lock_state, t, a1),
                };
                self.add_pair(&mut numbers, key, (a1, i));
            };
            let is_same = read_around == Some(before.access);
            if around_write || is_same {
                pair(before.access, Shape { around_write, around_read: is_same });
            }
            if let Some(write) = read_around.filter(|_| !is_same) {
                pair(write, Shape { around_write: false, around_read: true });
            }
        }
        self.pairs.iter_mut().for_each(|(_, pairs)| pairs.finish());
    }

    fn find_partners(&mut self, events: &[Event], ignored: &[ThreadId]) {
        if self.partners.is_empty() {
            return;
        }
        // The held locks are computed again; sets keep their numbers.
        let locksets = std::mem::take(&mut self.lock_state.locksets);
        self.lock_state = LockState::with(locksets);
        for (i, event) in events.iter().enumerate() {
            let (op, t) = (event.op(), event.thread());
            self.lock_state.event(i as u32, event);
            if !op.reads() && !op.writes() || ignored.contains(&t) {
                continue;
            }
            let Some(partners) = self.partners.get_mut(&event.var().0) else { continue };
            let (place, locks) = (event.loc().0, self.lock_state.set(t));
            let key = AccessKey { thread: t.0, place, op: op as u8, locks };
            let classes = &mut partners.classes;
            let number = match partners.numbers.get(&key) {
                Some(&number) => number,
                None if classes.len() < MOST_CLASSES => {
                    classes.push((key, Few::default()));
                    partners.numbers.insert(key, classes.len() - 1);
                    classes.len() - 1
                }
                None => {
                    partners.dropped += 1;
                    continue;
                }
            };
            classes[number].1.push(i as u32);
        }
        for partners in self.partners.values_mut() {
            partners.classes.iter_mut().for_each(|(_, events)| events.finish());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_kept() {
        let mut few = Few::default();
        (0..1000u32).for_each(|i| few.push(i));
        few.finish();
        let expected: Vec<u32> = (0..64).chain(936..1000).collect();
        assert_eq!((few.kept(), few.count, few.is_complete()), (&expected[..], 1000, false));
        let mut all = Few::default();
        (0..100u32).for_each(|i| all.push(i));
        assert!(all.is_complete());
    }
}
