//! Sets of locks, kept once and spoken of by number.
//!
//! A program has few different sets of locks that its threads ever hold, and millions of accesses
//! under them. Whether two threads can be inside two sets at once is asked for pairs of numbers.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::LockId;

/// A lock that is held, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Hold {
    pub(crate) lock: LockId,
    pub(crate) shared: bool,
}

impl Hold {
    /// Whether two threads cannot have both.
    pub(crate) fn excludes(self, other: Hold) -> bool {
        self.lock == other.lock && !(self.shared && other.shared)
    }
}

/// The number of a set of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LockSetId(pub(crate) u32);

impl LockSetId {
    /// No lock at all.
    pub(crate) const EMPTY: LockSetId = LockSetId(0);
}

/// All sets that were ever held.
#[derive(Clone, Debug)]
pub(crate) struct LockSets {
    /// Sorted, without doubles.
    sets: Vec<Box<[Hold]>>,
    numbers: HashMap<Box<[Hold]>, LockSetId, RandomState>,
    room: Vec<Hold>,
}

impl Default for LockSets {
    fn default() -> Self {
        let numbers = HashMap::from_iter([(Box::default(), LockSetId::EMPTY)]);
        LockSets { sets: vec![Box::default()], numbers, room: Vec::new() }
    }
}

impl LockSets {
    /// The locks of a set.
    pub(crate) fn get(&self, set: LockSetId) -> &[Hold] {
        &self.sets[set.0 as usize]
    }

    /// The set of these locks.
    pub(crate) fn intern(&mut self, holds: impl Iterator<Item = Hold>) -> LockSetId {
        self.room.clear();
        self.room.extend(holds);
        self.room.sort_unstable();
        self.room.dedup();
        if let Some(&known) = self.numbers.get(&*self.room) {
            return known;
        }
        let set: Box<[Hold]> = self.room.as_slice().into();
        let number = LockSetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// Whether two threads cannot be inside these sets at once.
    pub(crate) fn exclude(&self, a: LockSetId, b: LockSetId) -> bool {
        let (a, b) = (self.get(a), self.get(b));
        a.iter().any(|&mine| b.iter().any(|&theirs| mine.excludes(theirs)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_kept_once_and_readers_share() {
        let mut sets = LockSets::default();
        let hold = |lock, shared| Hold { lock: LockId(lock), shared };
        let (a, b, both) = (hold(1, false), hold(2, true), [hold(2, true), hold(1, false)]);
        let (just_a, just_b) = (sets.intern([a].into_iter()), sets.intern([b].into_iter()));
        let ab = sets.intern(both.into_iter());
        assert_eq!(ab, sets.intern([a, b, a].into_iter()));
        assert_eq!(sets.intern([].into_iter()), LockSetId::EMPTY);
        assert_eq!(sets.get(ab), [a, b]);
        assert!(sets.exclude(ab, just_a) && sets.exclude(just_a, just_a));
        assert!(!sets.exclude(just_a, just_b) && !sets.exclude(ab, just_b));
        assert!(!sets.exclude(ab, LockSetId::EMPTY));
    }
}
