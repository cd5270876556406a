//! A cache of short names in front of an interner.
//!
//! Most names of most traces are short. They are hashed and compared as two machine words here,
//! without touching the interner's text. Everything is marked `inline(always)`: without it, the
//! compiler emitted calls, and the std reader lost a fifth of its speed.

use std::hash::BuildHasher;
use std::marker::PhantomData;

use foldhash::fast::RandomState;
use foresee_trace::{
    Id, Interner, LocId, LockId, Names, TargetKind, ThreadId, TooManyNames, VarId,
};
use hashbrown::HashTable;

use crate::lines::word;

/// Longer names bypass the cache.
const SHORT: usize = 16;

/// A name of up to sixteen bytes as two numbers, which together with its length identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    first: u64,
    last: u64,
    length: u32,
}

impl Key {
    #[inline(always)]
    fn of(name: &[u8]) -> Option<Key> {
        if name.is_empty() || name.len() > SHORT {
            return None;
        }
        // The last eight bytes may overlap the first, which is harmless.
        let last = name.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
        Some(Key { first: word(name), last, length: name.len() as u32 })
    }

    /// Seeded, because names come from untrusted files.
    #[inline(always)]
    fn hash(self, state: &RandomState) -> u64 {
        state.hash_one((u128::from(self.first) << 64) | u128::from(self.last))
    }
}

/// The short names of one interner.
#[derive(Debug)]
pub(crate) struct NameCache<I> {
    known: HashTable<(Key, u32)>,
    state: RandomState,
    kind: PhantomData<I>,
}

impl<I> Default for NameCache<I> {
    fn default() -> Self {
        NameCache { known: HashTable::new(), state: RandomState::default(), kind: PhantomData }
    }
}

impl<I: Id> NameCache<I> {
    /// The number of `name` in `interner`, which must be the same one in every call.
    #[inline(always)]
    pub(crate) fn intern(
        &mut self,
        name: &str,
        interner: &mut Interner<I>,
    ) -> Result<I, TooManyNames> {
        let Some(key) = Key::of(name.as_bytes()) else { return interner.intern(name) };
        match self.known.find(key.hash(&self.state), |(known, _)| *known == key) {
            Some((_, id)) => Ok(I::new(*id as usize)),
            None => self.learn(key, name, interner),
        }
    }

    #[inline(never)]
    fn learn(
        &mut self,
        key: Key,
        name: &str,
        interner: &mut Interner<I>,
    ) -> Result<I, TooManyNames> {
        let id = interner.intern(name)?;
        let state = &self.state;
        let hash = |(key, _): &(Key, u32)| key.hash(state);
        self.known.insert_unique(key.hash(state), (key, id.index() as u32), hash);
        Ok(id)
    }
}

/// Caches for the names of a trace.
#[derive(Debug, Default)]
pub(crate) struct KnownNames {
    threads: NameCache<ThreadId>,
    /// The latest thread: a thread usually has several events in a row.
    latest: Option<(Key, ThreadId)>,
    vars: NameCache<VarId>,
    locks: NameCache<LockId>,
    locs: NameCache<LocId>,
}

impl KnownNames {
    /// The number of a thread.
    #[inline(always)]
    pub(crate) fn thread(
        &mut self,
        name: &str,
        names: &mut Names,
    ) -> Result<ThreadId, TooManyNames> {
        let key = Key::of(name.as_bytes());
        match self.latest {
            Some((latest, id)) if key == Some(latest) => return Ok(id),
            _ => {}
        }
        let id = self.threads.intern(name, &mut names.threads)?;
        if id.0 > ThreadId::MAX {
            return Err(TooManyNames);
        }
        self.latest = key.map(|key| (key, id));
        Ok(id)
    }

    /// The number of a location.
    #[inline(always)]
    pub(crate) fn loc(&mut self, name: &str, names: &mut Names) -> Result<LocId, TooManyNames> {
        self.locs.intern(name, &mut names.locs)
    }

    /// The number of a target.
    #[inline(always)]
    pub(crate) fn target(
        &mut self,
        kind: TargetKind,
        name: &str,
        names: &mut Names,
    ) -> Result<u32, TooManyNames> {
        Ok(match kind {
            TargetKind::Var => self.vars.intern(name, &mut names.vars)?.0,
            TargetKind::Lock => self.locks.intern(name, &mut names.locks)?.0,
            TargetKind::Cond => names.conds.intern(name)?.0,
            TargetKind::Sym => names.syms.intern(name)?.0,
            TargetKind::Thread => self.thread(name, names)?.0,
            TargetKind::None => unreachable!("operations without target have no name to look up"),
        })
    }
}

#[cfg(test)]
mod tests {
    use foresee_trace::VarId;

    use super::*;

    #[test]
    fn the_cache_never_changes_an_answer() {
        let (mut cached, mut plain) = (Interner::<VarId>::default(), Interner::default());
        let mut cache = NameCache::default();
        let mut names: Vec<String> = (0..5000).map(|i| format!("v{i}")).collect();
        for length in 0..20 {
            for i in 0..length {
                // Names that differ in a single position.
                let mut name = "a".repeat(length);
                name.replace_range(i..=i, "b");
                names.push(name);
                names.push("\0".repeat(i));
            }
        }
        for name in names.iter().chain(names.iter().rev()).chain(&names) {
            assert_eq!(cache.intern(name, &mut cached), plain.intern(name), "{name:?}");
        }
        assert_eq!(cached.len(), plain.len());
    }
}
