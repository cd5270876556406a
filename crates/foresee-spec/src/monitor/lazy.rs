//! Automata whose states are numbered on first visit.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{Machine, StateId, TooManyStates, Verdict};
use crate::letter::Letter;

/// A machine with numbered states. All bad states are merged into [`StateId::BAD`].
pub struct Lazy<M: Machine> {
    machine: M,
    /// State `i + 1`; number 0 is the bad one, which needs no data.
    states: Vec<M::State>,
    index: HashTable<u32>,
    hasher: RandomState,
    limit: usize,
}

/// What [`super::Monitor`] needs from a [`Lazy`], whatever its machine.
pub(super) trait Grow: Send {
    fn successor(&mut self, state: StateId, letter: Letter) -> Result<StateId, TooManyStates>;
    fn len(&self) -> usize;
    fn verdict(&self, state: usize) -> Verdict;
    fn holds_at_end(&self, state: usize) -> bool;
    fn describe(&self, state: usize) -> String;
    fn load(&self) -> f64;
}

impl<M: Machine> Lazy<M> {
    /// Numbers the states of a machine, at most `limit` of them; also returns the first.
    pub fn new(mut machine: M, limit: usize) -> (Lazy<M>, StateId) {
        let start = machine.start();
        let mut lazy = Lazy {
            machine,
            states: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::default(),
            limit: limit.max(2),
        };
        let start = match lazy.machine.verdict(&start) {
            Verdict::Bad => StateId::BAD,
            _ => lazy.insert(start),
        };
        (lazy, start)
    }

    fn intern(&mut self, state: M::State) -> Result<StateId, TooManyStates> {
        if self.machine.verdict(&state) == Verdict::Bad {
            return Ok(StateId::BAD);
        }
        let hash = self.hasher.hash_one(&state);
        if let Some(&i) = self.index.find(hash, |&i| self.states[i as usize] == state) {
            return Ok(StateId(i + 1));
        }
        if self.states.len() + 1 >= self.limit {
            return Err(TooManyStates { limit: self.limit, what: "states" });
        }
        Ok(self.insert(state))
    }

    fn insert(&mut self, state: M::State) -> StateId {
        let i = self.states.len() as u32;
        let (hash, hasher) = (self.hasher.hash_one(&state), &self.hasher);
        self.states.push(state);
        let states = &self.states;
        self.index.insert_unique(hash, i, |&i| hasher.hash_one(&states[i as usize]));
        StateId(i + 1)
    }
}

impl<M: Machine + Send> Grow for Lazy<M>
where
    M::State: Send,
{
    fn successor(&mut self, state: StateId, letter: Letter) -> Result<StateId, TooManyStates> {
        let next = self.machine.step(&self.states[state.0 as usize - 1], letter)?;
        self.intern(next)
    }

    fn len(&self) -> usize {
        self.states.len() + 1
    }

    fn verdict(&self, state: usize) -> Verdict {
        if state == 0 { Verdict::Bad } else { self.machine.verdict(&self.states[state - 1]) }
    }

    fn holds_at_end(&self, state: usize) -> bool {
        state != 0 && self.machine.holds_at_end(&self.states[state - 1])
    }

    fn describe(&self, state: usize) -> String {
        if state == 0 { "bad".into() } else { self.machine.describe(&self.states[state - 1]) }
    }

    fn load(&self) -> f64 {
        self.machine.load().max(self.len() as f64 / self.limit as f64)
    }
}
