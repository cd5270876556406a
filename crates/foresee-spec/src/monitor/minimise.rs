//! The smallest automaton with the same bad prefixes (Moore's partition refinement).

use std::collections::HashMap;

use super::{Explored, ExploredState, Verdict};

impl Explored {
    /// The minimal complete automaton that violates on the same words. Its states are numbered in
    /// breadth-first order, so equal properties over equal letters have equal automata.
    pub fn minimise(&self) -> Explored {
        let mut class: Vec<u32> =
            self.states.iter().map(|s| u32::from(s.verdict == Verdict::Bad)).collect();
        let mut classes = 0;
        loop {
            // The signature of a state: its class and those of its successors.
            let mut numbers: HashMap<(u32, Vec<u32>), u32> = HashMap::new();
            let next: Vec<u32> = (0..self.states.len())
                .map(|i| {
                    let row = self.states[i].row.iter().map(|&to| class[to as usize]).collect();
                    let fresh = numbers.len() as u32;
                    *numbers.entry((class[i], row)).or_insert(fresh)
                })
                .collect();
            class = next;
            if numbers.len() == classes {
                break;
            }
            classes = numbers.len();
        }
        self.quotient(&class)
    }

    /// One state for each reachable class.
    fn quotient(&self, class: &[u32]) -> Explored {
        let mut representatives = vec![0usize];
        let mut places = HashMap::from([(class[0], 0u32)]);
        let mut states = Vec::new();
        while states.len() < representatives.len() {
            let state = &self.states[representatives[states.len()]];
            let row = state.row.iter().map(|&to| {
                *places.entry(class[to as usize]).or_insert_with(|| {
                    representatives.push(to as usize);
                    representatives.len() as u32 - 1
                })
            });
            let row = row.collect();
            states.push(ExploredState { verdict: state.verdict, row });
        }
        let ids = representatives.iter().map(|&i| self.ids[i]).collect();
        Explored { letters: self.letters.clone(), states, ids }
    }
}
