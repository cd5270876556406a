//! The complete automaton of a property: for explanations, for words that violate it, and for
//! finding the states from which it cannot be violated.

use std::collections::{HashMap, VecDeque};

use super::{Monitor, StateId, TooManyStates, Verdict};
use crate::letter::Letter;

/// A complete automaton over a list of letters. State 0 is the start.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The letters, in the order of the rows' entries.
    pub letters: Vec<Letter>,
    /// The reachable states.
    pub states: Vec<ExploredState>,
    /// Their numbers in the monitor they come from.
    pub ids: Vec<StateId>,
}

/// One state and its transitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExploredState {
    /// Exact: good if and only if no bad state can be reached over the letters.
    pub verdict: Verdict,
    /// The next state for each letter.
    pub row: Vec<u32>,
}

/// The maximum number of entries of all rows (64 MiB), whatever the limit on states.
const MAX_ENTRIES: usize = 1 << 24;

impl Explored {
    pub(super) fn build(
        monitor: &mut Monitor,
        letters: &[Letter],
        limit: usize,
    ) -> Result<Explored, TooManyStates> {
        let limit = limit.min(MAX_ENTRIES / letters.len().max(1));
        let mut ids = vec![monitor.start()];
        let mut places = HashMap::from([(monitor.start(), 0u32)]);
        let mut states = Vec::new();
        while states.len() < ids.len() {
            let from = ids[states.len()];
            let mut row = Vec::with_capacity(letters.len());
            for &letter in letters {
                let to = monitor.step(from, letter)?;
                let place = *places.entry(to).or_insert(ids.len() as u32);
                if place as usize == ids.len() {
                    if ids.len() >= limit {
                        return Err(TooManyStates { limit, what: "states" });
                    }
                    ids.push(to);
                }
                row.push(place);
            }
            let verdict = if monitor.bad(from) { Verdict::Bad } else { Verdict::Good };
            states.push(ExploredState { verdict, row });
        }
        let mut explored = Explored { letters: letters.to_vec(), states, ids };
        explored.mark_endangered();
        Ok(explored)
    }

    /// Marks every state open from which a bad one can be reached.
    fn mark_endangered(&mut self) {
        let mut before = vec![Vec::new(); self.states.len()];
        for (i, state) in self.states.iter().enumerate() {
            for &to in &state.row {
                if before[to as usize].last() != Some(&i) {
                    before[to as usize].push(i);
                }
            }
        }
        let bad = |s: &ExploredState| s.verdict == Verdict::Bad;
        let mut todo: Vec<usize> =
            (0..self.states.len()).filter(|&i| bad(&self.states[i])).collect();
        while let Some(i) = todo.pop() {
            for &from in &before[i] {
                if self.states[from].verdict == Verdict::Good {
                    self.states[from].verdict = Verdict::Open;
                    todo.push(from);
                }
            }
        }
    }

    /// Whether some run violates the property.
    pub fn can_be_violated(&self) -> bool {
        self.states.iter().any(|s| s.verdict == Verdict::Bad)
    }

    /// Whether letters without this bit can violate the property.
    pub fn is_bad_without(&self, bit: u64) -> bool {
        let mut seen = vec![false; self.states.len()];
        seen[0] = true;
        let mut todo = vec![0usize];
        while let Some(at) = todo.pop() {
            if self.states[at].verdict == Verdict::Bad {
                return true;
            }
            for (letter, &to) in self.letters.iter().zip(&self.states[at].row) {
                if letter.0 & bit == 0 && !std::mem::replace(&mut seen[to as usize], true) {
                    todo.push(to as usize);
                }
            }
        }
        false
    }

    /// A shortest word that ends in a state of this kind.
    fn shortest(&self, wanted: impl Fn(usize) -> bool) -> Option<Vec<Letter>> {
        let mut from: Vec<Option<(u32, usize)>> = vec![None; self.states.len()];
        let mut queue = VecDeque::from([0u32]);
        let mut seen = vec![false; self.states.len()];
        seen[0] = true;
        while let Some(at) = queue.pop_front() {
            if wanted(at as usize) {
                let mut word = Vec::new();
                let mut state = at;
                while let Some((before, letter)) = from[state as usize] {
                    word.push(self.letters[letter]);
                    state = before;
                }
                word.reverse();
                return Some(word);
            }
            for (letter, &to) in self.states[at as usize].row.iter().enumerate() {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    from[to as usize] = Some((at, letter));
                    queue.push_back(to);
                }
            }
        }
        None
    }

    /// A shortest word that violates the property.
    pub fn shortest_violation(&self) -> Option<Vec<Letter>> {
        self.shortest(|i| self.states[i].verdict == Verdict::Bad)
    }

    /// A shortest word that exercises the property without violating it: one that settles it if
    /// there is one, otherwise one that leads as far from the start as possible.
    pub fn example(&self) -> Option<Vec<Letter>> {
        let good = |i: usize| self.states[i].verdict == Verdict::Good;
        let farthest =
            (0..self.states.len()).rev().find(|&i| self.states[i].verdict != Verdict::Bad);
        self.shortest(good).or_else(|| self.shortest(|i| Some(i) == farthest))
    }

    /// The successors of a state, and the letters that lead there, as few short conditions.
    pub fn edges(&self, state: usize) -> Vec<(usize, Vec<Cube>)> {
        let row = &self.states[state].row;
        let mut targets: Vec<u32> = Vec::new();
        for to in row {
            if !targets.contains(to) {
                targets.push(*to);
            }
        }
        let edges = targets.iter().map(|&to| {
            let pick = |inside: bool| {
                let letters = self.letters.iter().zip(row);
                letters.filter(move |(_, t)| (**t == to) == inside).map(|(l, _)| *l).collect()
            };
            let (on, off): (Vec<Letter>, Vec<Letter>) = (pick(true), pick(false));
            (to as usize, Cube::cover(&on, &off))
        });
        edges.collect()
    }
}

/// A conjunction of atoms and negated atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cube {
    /// The atoms that must be true.
    pub yes: u64,
    /// The atoms that must be false.
    pub no: u64,
}

impl Cube {
    /// Whether the letter satisfies all conditions.
    #[inline]
    pub fn holds(self, letter: Letter) -> bool {
        letter.0 & self.yes == self.yes && letter.0 & self.no == 0
    }

    /// A small set of cubes that cover all letters `on` and none of `off`. Letters in neither list
    /// never occur.
    pub(crate) fn cover(on: &[Letter], off: &[Letter]) -> Vec<Cube> {
        let used = on.iter().chain(off).fold(0, |m, l| m | l.0);
        let mut cubes: Vec<Cube> = Vec::new();
        for &letter in on {
            if cubes.iter().any(|c| c.holds(letter)) {
                continue;
            }
            // Drop conditions one by one while no letter of `off` is covered; negations first,
            // because the rest reads better.
            let mut cube = Cube { yes: letter.0, no: used & !letter.0 };
            for bit in (0..64).map(|i| 1u64 << i) {
                let wider = Cube { no: cube.no & !bit, ..cube };
                if wider != cube && !off.iter().any(|&l| wider.holds(l)) {
                    cube = wider;
                }
            }
            for bit in (0..64).map(|i| 1u64 << i) {
                let wider = Cube { yes: cube.yes & !bit, ..cube };
                if wider != cube && !off.iter().any(|&l| wider.holds(l)) {
                    cube = wider;
                }
            }
            cubes.push(cube);
        }
        cubes
    }
}
