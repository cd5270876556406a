//! Maps with a hash function that is the same in every process, so that an exploration can be repeated.

use foldhash::fast::FixedState;

pub(crate) type HashMap<K, V, S = FixedState> = hashbrown::HashMap<K, V, S>;
pub(crate) type HashSet<T> = hashbrown::HashSet<T, FixedState>;
