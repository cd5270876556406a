//! Bindings by number, and the bindings that follow from what single events bind.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use foresee_spec::params::Binding;
use hashbrown::HashTable;

pub(super) type Map<K, V> = HashMap<K, V, RandomState>;

/// Interned bindings: there may be millions, and tables refer to them by number.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    list: Vec<Binding>,
    table: HashTable<u32>,
    hasher: RandomState,
}

impl Bindings {
    pub(super) fn get(&self, number: u32) -> &Binding {
        &self.list[number as usize]
    }

    pub(super) fn lookup(&self, binding: &Binding) -> Option<u32> {
        let hash = self.hasher.hash_one(binding);
        self.table.find(hash, |&i| self.list[i as usize] == *binding).copied()
    }

    /// The number of a binding, which is given one if it is new.
    pub(super) fn number(&mut self, binding: &Binding) -> u32 {
        let Bindings { list, table, hasher } = self;
        let hash = hasher.hash_one(binding);
        if let Some(&number) = table.find(hash, |&i| list[i as usize] == *binding) {
            return number;
        }
        let number = list.len() as u32;
        list.push(*binding);
        table.insert_unique(hash, number, |&i| hasher.hash_one(list[i as usize]));
        number
    }
}

/// Bindings that grow from those that are needed, by joining them with parts that agree.
#[derive(Debug)]
pub(super) struct Joins {
    kept: Index,
    parts: Index,
    limit: usize,
    pub(super) is_full: bool,
}

/// Bindings that are found by what they have in common with another.
#[derive(Debug, Default)]
struct Index {
    known: HashSet<u32, RandomState>,
    by_domain: Map<u8, Vec<u32>>,
    /// For a set of parameters and some of them, the bindings by these.
    by_shared: Map<(u8, u8), Map<u32, Vec<u32>>>,
}

impl Index {
    fn add(&mut self, number: u32, all: &mut Bindings) -> bool {
        if !self.known.insert(number) {
            return false;
        }
        let binding = *all.get(number);
        let domain = binding.domain();
        self.by_domain.entry(domain).or_default().push(number);
        for ((of, shared), index) in &mut self.by_shared {
            if *of == domain {
                index.entry(all.number(&binding.restrict(*shared))).or_default().push(number);
            }
        }
        true
    }

    /// The joins of a binding with all that agree with it.
    fn join(&mut self, with: u32, all: &mut Bindings, out: &mut Vec<u32>) {
        let with = *all.get(with);
        let Index { by_domain, by_shared, .. } = self;
        for (&domain, bindings) in by_domain.iter() {
            let shared = domain & with.domain();
            let index = by_shared.entry((domain, shared)).or_insert_with(|| {
                let mut index: Map<u32, Vec<u32>> = Map::default();
                for &number in bindings {
                    let part = all.get(number).restrict(shared);
                    index.entry(all.number(&part)).or_default().push(number);
                }
                index
            });
            let agreeing = all.lookup(&with.restrict(shared)).and_then(|part| index.get(&part));
            for &number in agreeing.into_iter().flatten() {
                if let Some(joined) = all.get(number).join(&with) {
                    out.push(all.number(&joined));
                }
            }
        }
    }
}

impl Joins {
    pub(super) fn new(limit: usize) -> Joins {
        Joins { kept: Index::default(), parts: Index::default(), limit, is_full: false }
    }

    /// A part that an event has made; bindings that are new with it go to `made`.
    pub(super) fn add_part(&mut self, part: u32, all: &mut Bindings, made: &mut Vec<u32>) {
        if self.is_full || !self.parts.add(part, all) {
            return;
        }
        let mut joined = Vec::new();
        self.kept.join(part, all, &mut joined);
        for binding in joined {
            self.keep(binding, all, made);
        }
    }

    /// A binding that may have the pattern, and all that follow from it.
    pub(super) fn keep(&mut self, binding: u32, all: &mut Bindings, made: &mut Vec<u32>) {
        let mut todo = vec![binding];
        while let Some(binding) = todo.pop() {
            if !self.kept.add(binding, all) {
                continue;
            }
            made.push(binding);
            self.parts.join(binding, all, &mut todo);
            self.is_full = self.kept.known.len() > self.limit;
            if self.is_full {
                break;
            }
        }
    }
}
