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
    /// The sets, each sorted and without duplicates. One that begins with all of the set before it
    /// shares its place, so that n locks inside one another do not take n² places.
    holds: Vec<Hold>,
    sets: Vec<Set>,
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
            sets: vec![Set { start: 0, end: 0, node: ROOT }],
            first: Vec::new(),
            steps: HashMap::default(),
            nodes: vec![Some(LockSetId::EMPTY)],
            room: Vec::new(),
        }
    }
}

/// Where the locks of a set stand, and its node in the trie.
#[derive(Clone, Copy, Debug)]
struct Set {
    start: u32,
    end: u32,
    node: u32,
}

/// The root of the trie, to which no lock leads.
const ROOT: u32 = 0;

impl LockSets {
    /// The locks of a set.
    pub(crate) fn get(&self, set: LockSetId) -> &[Hold] {
        let Set { start, end, .. } = self.sets[set.0 as usize];
        &self.holds[start as usize..end as usize]
    }

    /// The set of these locks.
    pub(crate) fn intern(&mut self, holds: impl Iterator<Item = Hold>) -> LockSetId {
        self.room.clear();
        self.room.extend(holds);
        self.room.sort_unstable();
        self.room.dedup();
        let room = std::mem::take(&mut self.room);
        let node = room.iter().fold(ROOT, |node, &hold| self.step(node, hold));
        let set = self.nodes[node as usize].unwrap_or_else(|| {
            let start = self.holds.len() as u32;
            self.holds.extend_from_slice(&room);
            self.add(start, node)
        });
        self.room = room;
        set
    }

    /// A set with one more lock that comes after all others, if it does.
    pub(crate) fn extend(&mut self, set: LockSetId, hold: Hold) -> Option<LockSetId> {
        let Set { start, end, node } = self.sets[set.0 as usize];
        if self.get(set).last().is_some_and(|&last| last >= hold) {
            return None;
        }
        let node = self.step(node, hold);
        if let Some(known) = self.nodes[node as usize] {
            return Some(known);
        }
        let mut first = start;
        if end as usize != self.holds.len() {
            first = self.holds.len() as u32;
            self.holds.extend_from_within(start as usize..end as usize);
        }
        self.holds.push(hold);
        Some(self.add(first, node))
    }

    /// The node that a lock leads to.
    fn step(&mut self, node: u32, hold: Hold) -> u32 {
        let next = match node {
            ROOT => entry(&mut self.first, hold.lock.index() * 2 + usize::from(hold.shared)),
            _ => self.steps.entry((node, hold)).or_insert(ROOT),
        };
        if *next == ROOT {
            *next = self.nodes.len() as u32;
            self.nodes.push(None);
        }
        *next
    }

    /// A new set, whose locks stand at the end.
    fn add(&mut self, start: u32, node: u32) -> LockSetId {
        let set = LockSetId(self.sets.len() as u32);
        self.sets.push(Set { start, end: self.holds.len() as u32, node });
        self.nodes[node as usize] = Some(set);
        set
    }

    /// The number of nodes of the trie.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The node of the trie at which a set stands.
    pub(crate) fn node(&self, set: LockSetId) -> u32 {
        self.sets[set.0 as usize].node
    }

    /// The edges of the trie: a node, the lock that is added, and the node that this leads to. The
    /// locks of a set are those on the way to its node.
    pub(crate) fn trie(&self) -> impl Iterator<Item = (u32, Hold, u32)> {
        let first = self.first.iter().enumerate().filter(|&(_, &child)| child != ROOT);
        let first = first.map(|(code, &child)| {
            (ROOT, Hold { lock: LockId::new(code / 2), shared: code % 2 == 1 }, child)
        });
        first.chain(self.steps.iter().map(|(&(node, hold), &child)| (node, hold, child)))
    }

    /// The memory that all sets take, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let step = size_of::<((u32, Hold), u32)>() + 1;
        self.holds.capacity() * size_of::<Hold>()
            + self.sets.capacity() * size_of::<Set>()
            + self.first.capacity() * size_of::<u32>()
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

    #[test]
    fn locks_inside_one_another_share_their_places() {
        let mut sets = LockSets::default();
        let hold = |lock| Hold { lock: LockId(lock), shared: false };
        let mut nested = vec![LockSetId::EMPTY];
        for lock in 0..100 {
            nested.extend(sets.extend(nested[lock as usize], hold(lock)));
        }
        assert_eq!((nested.len(), sets.holds.len()), (101, 100));
        // Another set in between, and the same sets in another way.
        let odd = sets.intern([hold(3), hold(1)].into_iter());
        assert_eq!(sets.extend(odd, hold(2)), None);
        let more = sets.extend(nested[2], hold(7)).expect("it comes after the others");
        assert_eq!(sets.get(more), [hold(0), hold(1), hold(7)]);
        assert_eq!(sets.extend(nested[1], hold(1)), Some(nested[2]));
        for (count, &set) in nested.iter().enumerate() {
            let holds: Vec<Hold> = (0..count as u32).map(hold).collect();
            assert_eq!(sets.get(set), holds);
            assert_eq!(sets.intern(holds.into_iter().rev()), set);
        }
    }
}
