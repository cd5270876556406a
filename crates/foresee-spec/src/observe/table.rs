//! Look-up by the number of a target.

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// A map from numbers: an array for small numbers, a hash table otherwise.
#[derive(Debug)]
pub(super) enum Targets<T> {
    Array(Vec<Option<T>>),
    Hash(HashMap<u32, T, RandomState>),
}

/// The longest array: 64 Ki entries fit in the second-level cache.
const MAX_ARRAY: u32 = 1 << 16;

impl<T> Default for Targets<T> {
    fn default() -> Self {
        Targets::Array(Vec::new())
    }
}

impl<T> Targets<T> {
    pub(super) fn new(entries: Vec<(u32, T)>) -> Targets<T> {
        let top = entries.iter().map(|(k, _)| *k).max();
        if top.is_some_and(|top| top >= MAX_ARRAY) {
            return Targets::Hash(entries.into_iter().collect());
        }
        let mut array: Vec<Option<T>> = Vec::new();
        array.resize_with(top.map_or(0, |top| top as usize + 1), || None);
        for (key, value) in entries {
            array[key as usize] = Some(value);
        }
        Targets::Array(array)
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Targets::Array(array) => array.is_empty(),
            Targets::Hash(map) => map.is_empty(),
        }
    }

    #[inline]
    pub(super) fn get(&self, key: u32) -> Option<&T> {
        match self {
            Targets::Array(array) => array.get(key as usize)?.as_ref(),
            Targets::Hash(map) => map.get(&key),
        }
    }
}
