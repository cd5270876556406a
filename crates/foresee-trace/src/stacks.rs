//! Call stacks, stored as a tree: each stack is another one and a call on top of it.
//!
//! Programs do most of their work in few contexts, so a stack costs twelve bytes however often and however deep in calls events
//! happen in it. Events do not hold their stacks, which are needed only for the few that reports mention: a [`Batch`](crate::Batch)
//! has them beside its events.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::ids::LocId;

/// A call stack of [`CallStacks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The stack is not known.
    pub const NONE: StackId = StackId(0);
    /// Known to be empty: the step is in the outermost function of its thread.
    pub const EMPTY: StackId = StackId(1);
}

/// A stack without its innermost call, and the place of that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    outer: StackId,
    at: LocId,
}

/// All call stacks of a trace.
///
/// ```
/// use foresee_trace::{CallStacks, LocId, StackId};
///
/// let mut stacks = CallStacks::default();
/// let in_work = stacks.call(StackId::EMPTY, LocId(7));
/// let in_add = stacks.call(in_work, LocId(3));
/// assert_eq!(stacks.calls(in_add).collect::<Vec<_>>(), [LocId(3), LocId(7)]);
/// assert_eq!(stacks.call(in_work, LocId(3)), in_add);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallStacks {
    /// Those with numbers above [`StackId::EMPTY`].
    calls: Vec<Call>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl CallStacks {
    /// The maximum number of stacks. A recursive program can have as many as it makes calls.
    pub const MAX: usize = 1 << 22;

    /// The number of the first stack that is not the empty one.
    pub const FIRST: usize = 2;

    /// The stack `outer` with a call at a place on top; unknown if `outer` is, or there are too many.
    pub fn call(&mut self, outer: StackId, at: LocId) -> StackId {
        if outer == StackId::NONE || outer.0 as usize >= self.len() {
            return StackId::NONE;
        }
        let call = Call { outer, at };
        let CallStacks { calls, table, hasher } = self;
        let hash = hasher.hash_one(call);
        if let Some(&known) = table.find(hash, |&i| calls[i as usize] == call) {
            return StackId(known + CallStacks::FIRST as u32);
        }
        if calls.len() >= CallStacks::MAX {
            return StackId::NONE;
        }
        let number = calls.len() as u32;
        calls.push(call);
        table.insert_unique(hash, number, |&i| hasher.hash_one(calls[i as usize]));
        StackId(number + CallStacks::FIRST as u32)
    }

    /// The places of the calls in a stack, the innermost first.
    pub fn calls(&self, stack: StackId) -> impl Iterator<Item = LocId> + '_ {
        let call = |stack: StackId| {
            let number = (stack.0 as usize).checked_sub(CallStacks::FIRST)?;
            self.calls.get(number)
        };
        std::iter::successors(call(stack), move |inner| call(inner.outer)).map(|call| call.at)
    }

    /// A stack without its innermost call, and the place of that call, by number.
    pub fn get(&self, stack: StackId) -> Option<(StackId, LocId)> {
        let number = (stack.0 as usize).checked_sub(CallStacks::FIRST)?;
        self.calls.get(number).map(|call| (call.outer, call.at))
    }

    /// Stacks have numbers below this.
    pub fn len(&self) -> usize {
        self.calls.len() + CallStacks::FIRST
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        self.calls.capacity() * size_of::<Call>() + self.table.allocation_size()
    }

    /// Whether no call is known.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_stays_so() {
        let mut stacks = CallStacks::default();
        assert_eq!(stacks.call(StackId::NONE, LocId(1)), StackId::NONE);
        assert_eq!(stacks.call(StackId(9), LocId(1)), StackId::NONE, "there is no such stack");
        assert_eq!(stacks.calls(StackId(9)).count(), 0);
        assert_eq!(stacks.calls(StackId::EMPTY).count(), 0);
    }

    #[test]
    fn stacks_are_shared_and_distinct() {
        let mut stacks = CallStacks::default();
        let mut known = std::collections::HashMap::new();
        let mut seed = 1u64;
        let mut path: Vec<u32> = Vec::new();
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = (seed >> 33) as u32;
            if path.len() > 8 || draw.is_multiple_of(3) {
                path.pop();
            } else {
                path.push(draw / 3 % 4);
            }
            let stack =
                path.iter().fold(StackId::EMPTY, |outer, &at| stacks.call(outer, LocId(at)));
            let places: Vec<u32> = stacks.calls(stack).map(|at| at.0).collect();
            assert!(places.iter().rev().eq(&path));
            assert_eq!(*known.entry(path.clone()).or_insert(stack), stack);
        }
        assert_eq!(known.len(), stacks.len() - 1, "one for each, and the unknown one");
    }
}
