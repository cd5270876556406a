//! The paper's predictor of patterns, corrected: a tuple for each permutation of each subsequence
//! of the pattern, by the order in which its events came, over plain vector clocks.

use std::collections::HashMap;

use foresee_trace::{Event, Id};

use super::vector_clocks::VectorClocks;

pub(crate) struct Permutations {
    clocks: VectorClocks,
    length: usize,
    /// Positions in the order in which their events came, with the events: thread and time.
    tuples: HashMap<Vec<u8>, Vec<(usize, u32)>>,
    /// All keys, the longest first.
    keys: Vec<Vec<u8>>,
}

impl Permutations {
    pub(crate) fn new(length: usize) -> Permutations {
        let mut keys = vec![Vec::new()];
        let mut from = 0;
        while from < keys.len() {
            for position in 0..length as u8 {
                if !keys[from].contains(&position) {
                    keys.push([&keys[from][..], &[position]].concat());
                }
            }
            from += 1;
        }
        keys.reverse();
        let tuples = HashMap::from([(Vec::new(), Vec::new())]);
        Permutations { clocks: VectorClocks::default(), length, tuples, keys }
    }

    /// Takes the next event, a candidate of these positions; whether there is a match.
    pub(crate) fn event(&mut self, event: &Event, positions: &[u8]) -> bool {
        self.clocks.event(event);
        if positions.is_empty() {
            return false;
        }
        let thread = event.thread().index();
        let knows: Vec<u32> = self.clocks.thread(thread).to_vec();
        for key in &self.keys {
            for &position in positions.iter().filter(|p| !key.contains(p)) {
                let Some(tuple) = self.tuples.get(key) else { continue };
                let is_known = |(i, &(t, time)): (usize, &(usize, u32))| {
                    key[i] > position && knows.get(t).is_some_and(|&known| time <= known)
                };
                if tuple.iter().enumerate().any(is_known) {
                    continue;
                }
                let mut tuple = tuple.clone();
                tuple.push((thread, knows[thread]));
                let key = [&key[..], &[position]].concat();
                if key.len() == self.length {
                    return true;
                }
                self.tuples.insert(key, tuple);
            }
        }
        false
    }
}
