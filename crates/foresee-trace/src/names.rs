//! Interned names: each name is stored once and referred to by number.

use std::marker::PhantomData;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::ids::{CondId, Id, LocId, LockId, SymId, ThreadId, VarId};
use crate::stacks::CallStacks;

/// A set of texts, numbered in the order of their first appearance.
///
/// All texts share one buffer, so a name costs its own bytes and about a dozen more, and readers
/// may intern millions of them.
#[derive(Clone, Debug)]
pub struct Interner<I> {
    text: String,
    /// `ends[i]` is where name `i` ends in `text`; it starts where its predecessor ends.
    ends: Vec<u32>,
    /// Names by hash. The upper half of the hash is stored beside the number, so texts are rarely
    /// compared unless they are equal.
    table: HashTable<(u32, u32)>,
    // Seeded randomly in each process, because names come from untrusted files.
    hasher: RandomState,
    kind: PhantomData<I>,
}

/// There are more names than numbers, or more text than one table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many different names in one trace (limit: 4 GiB of text, 16 million threads)")]
pub struct TooManyNames;

impl<I> Default for Interner<I> {
    fn default() -> Self {
        Interner {
            text: String::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: RandomState::default(),
            kind: PhantomData,
        }
    }
}

impl<I: Id> Interner<I> {
    /// The number of `name`; a new name gets the next one.
    #[inline]
    pub fn intern(&mut self, name: &str) -> Result<I, TooManyNames> {
        let hash = self.hash(name);
        match self.find(hash, name) {
            Some(id) => Ok(id),
            None => self.insert(hash, name),
        }
    }

    /// The number of `name` if it has one.
    #[inline]
    pub fn lookup(&self, name: &str) -> Option<I> {
        self.find(self.hash(name), name)
    }

    /// The text of `id`.
    ///
    /// # Panics
    /// If `id` was not given out by this interner.
    #[inline]
    pub fn get(&self, id: I) -> &str {
        &self.text[self.range(id.index())]
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All names with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &str)> + '_ {
        (0..self.len()).map(|i| (I::new(i), &self.text[self.range(i)]))
    }

    fn range(&self, index: usize) -> std::ops::Range<usize> {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        start..self.ends[index] as usize
    }

    #[inline]
    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name.as_bytes())
    }

    #[inline]
    fn find(&self, hash: u64, name: &str) -> Option<I> {
        let tag = (hash >> 32) as u32;
        self.table
            .find(hash, |&(t, i)| {
                t == tag && self.text.as_bytes()[self.range(i as usize)] == *name.as_bytes()
            })
            .map(|&(_, i)| I::new(i as usize))
    }

    #[cold]
    fn insert(&mut self, hash: u64, name: &str) -> Result<I, TooManyNames> {
        let end = u32::try_from(self.text.len() + name.len()).map_err(|_| TooManyNames)?;
        let index = self.ends.len();
        let number = u32::try_from(index).map_err(|_| TooManyNames)?;
        self.text.push_str(name);
        self.ends.push(end);
        let (hasher, text, ends) = (&self.hasher, &self.text, &self.ends);
        self.table.insert_unique(hash, ((hash >> 32) as u32, number), |&(_, i)| {
            let i = i as usize;
            let start = if i == 0 { 0 } else { ends[i - 1] as usize };
            hasher.hash_one(&text.as_bytes()[start..ends[i] as usize])
        });
        Ok(I::new(index))
    }
}

/// Every name of a trace, by kind.
#[derive(Clone, Debug)]
pub struct Names {
    /// Threads.
    pub threads: Interner<ThreadId>,
    /// Variables.
    pub vars: Interner<VarId>,
    /// Locks.
    pub locks: Interner<LockId>,
    /// Conditions.
    pub conds: Interner<CondId>,
    /// Source locations; number 0 is the empty text, "no location".
    pub locs: Interner<LocId>,
    /// Methods, named events, regions and string values.
    pub syms: Interner<SymId>,
    /// Call stacks.
    pub stacks: CallStacks,
}

impl Default for Names {
    fn default() -> Self {
        let mut locs = Interner::default();
        let none = locs.intern("");
        debug_assert_eq!(none, Ok(LocId::NONE));
        Names {
            threads: Interner::default(),
            vars: Interner::default(),
            locks: Interner::default(),
            conds: Interner::default(),
            locs,
            syms: Interner::default(),
            stacks: CallStacks::default(),
        }
    }
}

impl Names {
    /// The number of a thread, which has fewer bits than those of the other kinds.
    #[inline]
    pub fn thread(&mut self, name: &str) -> Result<ThreadId, TooManyNames> {
        let id = self.threads.intern(name)?;
        if id.0 > ThreadId::MAX { Err(TooManyNames) } else { Ok(id) }
    }
}

/// The name of the object that a variable belongs to: the part of its name before the first `+`,
/// `.`, `[` or `->` outside brackets. `heap(list.c:7)#2+8` is a part of `heap(list.c:7)#2`.
pub fn object_of(variable: &str) -> &str {
    let mut depth = 0u32;
    for (i, c) in variable.bytes().enumerate() {
        match c {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            b'+' | b'.' | b'[' if depth == 0 => return &variable[..i],
            b'-' if depth == 0 && variable[i..].starts_with("->") => return &variable[..i],
            _ => {}
        }
    }
    variable
}

/// The event with which the capture records that a block of memory is freed; its argument is the
/// name of the block.
pub const HEAP_FREE: &str = "heap_free";

/// The thread that performs the writes of code that was not captured.
pub const EXTERNAL: &str = "external";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_numbered_by_first_appearance() {
        let mut names = Interner::<VarId>::default();
        let many: Vec<String> = (0..5000).map(|i| format!("v{i}[0]")).collect();
        for (i, name) in many.iter().enumerate() {
            assert_eq!(names.intern(name), Ok(VarId(i as u32)));
        }
        for (i, name) in many.iter().enumerate() {
            assert_eq!(names.intern(name), Ok(VarId(i as u32)));
            assert_eq!(names.get(VarId(i as u32)), name);
        }
        assert_eq!(names.lookup("absent"), None);
        assert_eq!(names.len(), 5000);
    }

    #[test]
    fn kinds_do_not_share_numbers() {
        let mut names = Names::default();
        assert_eq!(names.vars.intern("o"), Ok(VarId(0)));
        assert_eq!(names.locks.intern("o"), Ok(LockId(0)));
        assert_eq!(names.locs.get(LocId::NONE), "");
    }

    #[test]
    fn variables_belong_to_the_object_that_their_names_begin_with() {
        assert_eq!(object_of("heap(list.c:7(make))#2+8"), "heap(list.c:7(make))#2");
        assert_eq!(object_of("heap(list.c:7)#2.next"), "heap(list.c:7)#2");
        assert_eq!(object_of("a[3].x"), "a");
        assert_eq!(object_of("p->next"), "p");
        assert_eq!(object_of("count-down"), "count-down");
    }
}
