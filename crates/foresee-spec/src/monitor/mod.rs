//! Monitors, the common form of all logics: deterministic automata over letters, built on demand.
//!
//! A logic provides a [`Machine`]: its start, its steps and the verdict of a state. [`Lazy`]
//! numbers its states, and [`Monitor`] caches every step, so a repeated step costs one look-up and
//! no virtual call.

mod explore;
mod lazy;
mod minimise;
mod set;

use std::collections::HashMap;
use std::hash::Hash;

pub use explore::{Cube, Explored, ExploredState};
pub use lazy::Lazy;
pub use set::StateSet;

use crate::letter::Letter;
use lazy::Grow;

/// A state of a monitor, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

impl StateId {
    /// The state of a violated property. It is never left.
    pub const BAD: StateId = StateId(0);
}

/// The verdict of a state on the run that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The property is violated, whatever follows.
    Bad,
    /// The property can no longer be violated, whatever follows.
    Good,
    /// Neither is decided yet.
    Open,
}

/// The monitor exceeded its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the property's monitor needs more than {limit} {what}")]
pub struct TooManyStates {
    /// The limit.
    pub limit: usize,
    /// What exceeded it.
    pub what: &'static str,
}

/// A deterministic automaton that is computed on demand.
pub trait Machine {
    /// A state; equal states are identified.
    type State: Clone + Eq + Hash;
    /// The state before any letter.
    fn start(&mut self) -> Self::State;
    /// The state after one more letter. Never called on a state that is [`Verdict::Bad`].
    fn step(&mut self, state: &Self::State, letter: Letter) -> Result<Self::State, TooManyStates>;
    /// The verdict of the state. [`Verdict::Open`] is always allowed unless the state is bad.
    fn verdict(&self, state: &Self::State) -> Verdict;
    /// Whether the property allows a run that ends here. Differs from "not bad" only for logics
    /// that require something to happen eventually.
    fn holds_at_end(&self, state: &Self::State) -> bool {
        self.verdict(state) != Verdict::Bad
    }
    /// The state for people, if the logic can describe it.
    fn describe(&self, _: &Self::State) -> String {
        String::new()
    }
    /// How much of what limits its steps, besides the number of states, has been used: 1 is all of it.
    fn load(&self) -> f64 {
        0.0
    }
}

/// No state, in transition tables.
const NONE: u32 = u32::MAX;
/// Rows of the transition table are arrays up to this many atoms.
const DENSE_ATOMS: usize = 12;
/// The total number of array entries (16 MiB); further states use the hash table.
const DENSE_ENTRIES: usize = 1 << 22;
/// The number of entries of the hash table. It is a cache: when full, it is cleared.
const SPARSE_ENTRIES: usize = 1 << 20;

/// The automaton of a property of any logic.
pub struct Monitor {
    growing: Box<dyn Grow>,
    start: StateId,
    atoms: usize,
    dense: Vec<u32>,
    sparse: HashMap<(u32, u64), u32, foldhash::fast::RandomState>,
    verdicts: Vec<Verdict>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor").field("states", &self.states()).finish_non_exhaustive()
    }
}

impl Monitor {
    /// The default limit on states.
    pub const DEFAULT_LIMIT: usize = 100_000;

    /// The monitor of a machine over letters of `atoms` bits.
    pub fn new<M>(machine: M, atoms: usize, limit: usize) -> Monitor
    where
        M: Machine + Send + 'static,
        M::State: Send,
    {
        let (lazy, start) = Lazy::new(machine, limit);
        let mut monitor = Monitor {
            growing: Box::new(lazy),
            start,
            atoms,
            dense: Vec::new(),
            sparse: HashMap::default(),
            verdicts: Vec::new(),
        };
        monitor.note_new_states();
        monitor
    }

    /// The state before any letter.
    pub fn start(&self) -> StateId {
        self.start
    }

    /// The state after one more letter.
    #[inline]
    pub fn step(&mut self, state: StateId, letter: Letter) -> Result<StateId, TooManyStates> {
        if let Some(&next) = self.dense.get(self.cell(state, letter))
            && next != NONE
        {
            return Ok(StateId(next));
        }
        self.step_slowly(state, letter)
    }

    /// The index of the step in the array; out of bounds if it is not stored there.
    #[inline]
    fn cell(&self, state: StateId, letter: Letter) -> usize {
        if self.atoms <= DENSE_ATOMS {
            (state.0 as usize) << self.atoms | letter.0 as usize
        } else {
            usize::MAX
        }
    }

    #[cold]
    fn step_slowly(&mut self, state: StateId, letter: Letter) -> Result<StateId, TooManyStates> {
        if state == StateId::BAD {
            return Ok(state);
        }
        if let Some(&next) = self.sparse.get(&(state.0, letter.0)) {
            return Ok(StateId(next));
        }
        let next = self.growing.successor(state, letter)?;
        self.note_new_states();
        let cell = self.cell(state, letter);
        match self.dense.get_mut(cell) {
            Some(cell) => *cell = next.0,
            None => {
                if self.sparse.len() >= SPARSE_ENTRIES {
                    self.sparse.clear();
                }
                self.sparse.insert((state.0, letter.0), next.0);
            }
        }
        Ok(next)
    }

    fn note_new_states(&mut self) {
        let known = self.verdicts.len();
        self.verdicts.extend((known..self.growing.len()).map(|i| self.growing.verdict(i)));
        if self.atoms <= DENSE_ATOMS {
            let wanted = self.verdicts.len() << self.atoms;
            if wanted > self.dense.len() && wanted <= DENSE_ENTRIES {
                self.dense.resize(wanted, NONE);
                self.dense[..1 << self.atoms].fill(StateId::BAD.0);
            }
        }
    }

    /// The verdict of the state on the run.
    #[inline]
    pub fn verdict(&self, state: StateId) -> Verdict {
        self.verdicts[state.0 as usize]
    }

    /// Whether the property is violated.
    #[inline]
    pub fn bad(&self, state: StateId) -> bool {
        state == StateId::BAD
    }

    /// Whether the property is known to be safe: no continuation violates it.
    #[inline]
    pub fn good(&self, state: StateId) -> bool {
        self.verdict(state) == Verdict::Good
    }

    /// Whether the property allows a complete run that ends in this state. For future-time formulas
    /// this is their value on finite words (LTLf): no prefix violates `eventually p`, but it fails
    /// at the end of a run without p.
    pub fn holds_at_end(&self, state: StateId) -> bool {
        self.growing.holds_at_end(state.0 as usize)
    }

    /// The state for people, if the logic can describe it.
    pub fn describe(&self, state: StateId) -> String {
        self.growing.describe(state.0 as usize)
    }

    /// The number of states so far, including the bad one.
    pub fn states(&self) -> usize {
        self.verdicts.len()
    }

    /// How much of what it may take has been used: 1 is all of it. Monitors of one property that have taken different steps
    /// would have used at most the sum of this in one that had taken all of them.
    pub fn load(&self) -> f64 {
        self.growing.load()
    }

    /// The number of atoms of a letter.
    pub fn atoms(&self) -> usize {
        self.atoms
    }

    /// Builds the complete automaton over these letters, unless it has more than `limit` states,
    /// and learns from it which states can no longer be violated.
    pub fn explore(&mut self, letters: &[Letter], limit: usize) -> Result<Explored, TooManyStates> {
        let explored = Explored::build(self, letters, limit)?;
        for (state, id) in explored.states.iter().zip(&explored.ids) {
            if state.verdict == Verdict::Good {
                self.verdicts[id.0 as usize] = Verdict::Good;
            }
        }
        Ok(explored)
    }
}

#[cfg(test)]
mod tests;
