//! Interned sets of locks.
//!
//! The threads of a program hold few different sets of locks, and make millions of accesses under
//! them. Sets are compared by their numbers.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Id, LockId, entry};

/// A lock that is held, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Hold {
    pub(crate) lock: LockId,
    pub(crate) shared: bool,
}

impl Hold {
    /// Whether two threads cannot hold both.
    pub(crate) fn excludes(self, other: Hold) -> bool {
        self.lock == other.lock && !(self.shared && other.shared)
    }
}

/// The number of a set of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LockSetId(pub(crate) u32);

impl LockSetId {
    /// The empty set.
    pub(crate) const EMPTY: LockSetId = LockSetId(0);
}

/// All sets that were ever held.
#[derive(Clone, Debug)]
pub(crate) struct LockSets {
    /// The sets one after the other, each sorted and without duplicates, and the end of each.
    holds: Vec<Hold>,
    ends: Vec<u32>,
    /// A trie of sorted sets: the children of the root, the other children, and the set at each
    /// node. Nearly all sets that are looked up have one lock.
    first: Vec<u32>,
    steps: HashMap<(u32, Hold), u32, RandomState>,
    nodes: Vec<Option<LockSetId>>,
    room: Vec<Hold>,
}

impl Default for LockSets {
    fn default() -> Self {
        LockSets {
            holds: Vec::new(),
            ends: vec![0],
            first: Vec::new(),
            steps: HashMap::default(),
            nodes: vec![Some(LockSetId::EMPTY)],
            room: Vec::new(),
        }
    }
}

/// The root of the tree, to which no lock leads.
const ROOT: u32 = 0;

impl LockSets {
    /// The locks of a set.
    pub(crate) fn get(&self, set: LockSetId) -> &[Hold] {
        let at = set.0 as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.holds[start as usize..self.ends[at] as usize]
    }

    /// The set of these locks.
    pub(crate) fn intern(&mut self, holds: impl Iterator<Item = Hold>) -> LockSetId {
        self.room.clear();
        self.room.extend(holds);
        self.room.sort_unstable();
        self.room.dedup();
        let mut node = ROOT;
        for &hold in &self.room {
            let next = match node {
                ROOT => entry(&mut self.first, hold.lock.index() * 2 + usize::from(hold.shared)),
                _ => self.steps.entry((node, hold)).or_insert(ROOT),
            };
            if *next == ROOT {
                *next = self.nodes.len() as u32;
                self.nodes.push(None);
            }
            node = *next;
        }
        *self.nodes[node as usize].get_or_insert_with(|| {
            self.holds.extend_from_slice(&self.room);
            self.ends.push(self.holds.len() as u32);
            LockSetId(self.ends.len() as u32 - 1)
        })
    }

    /// The memory that all sets take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let step = size_of::<((u32, Hold), u32)>() + 1;
        self.holds.capacity() * size_of::<Hold>()
            + (self.ends.capacity() + self.first.capacity()) * size_of::<u32>()
            + self.nodes.capacity() * size_of::<Option<LockSetId>>()
            + self.steps.capacity() * step
    }

    /// Whether two threads cannot hold these sets at once.
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
