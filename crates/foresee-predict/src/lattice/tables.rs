//! Program states and sets of monitor states, each once and by number.
//!
//! Cuts are many, the states they carry are few: a cut keeps two numbers, and what a step does to
//! them is looked up.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_spec::letter::Letter;
use foresee_spec::monitor::{Monitor, StateId, StateSet, TooManyStates};
use foresee_spec::observe::{Lens, ProgramState, Step, Troubles};
use foresee_trace::Value;

type Map<K, V> = HashMap<K, V, RandomState>;

/// The program states met so far.
#[derive(Debug)]
pub(super) struct States {
    states: Vec<ProgramState>,
    numbers: Map<ProgramState, u32>,
    writes: Vec<(u16, Option<Value>)>,
    after: Map<(u32, u32), u32>,
    troubles: Troubles,
}

/// The different writes of a trace, by number.
///
/// Writes of one variable that mean the same to the property are one: of a water level only
/// matters whether it is above the marks. This keeps the number of program states small without
/// changing any verdict.
#[derive(Debug, Default)]
pub(super) struct Writes {
    writes: Vec<(u16, Option<Value>)>,
    numbers: Map<(u16, Option<Value>), u32>,
    meanings: Map<(u16, bool, u64), u32>,
}

impl Writes {
    /// The number of a write.
    pub(super) fn number(&mut self, write: (u16, Option<Value>), lens: &Lens) -> u32 {
        if let Some(&number) = self.numbers.get(&write) {
            return number;
        }
        let (slot, value) = write;
        let next = self.writes.len() as u32;
        let number = match lens.meaning(slot, value) {
            // A missing value is told apart, because it is worth a warning.
            Some(bits) => *self.meanings.entry((slot, value.is_some(), bits)).or_insert(next),
            None => next,
        };
        if number == next {
            self.writes.push(write);
        }
        self.numbers.insert(write, number);
        number
    }
}

impl States {
    /// Only the initial state, which has number 0.
    pub(super) fn new(initial: ProgramState, writes: &Writes) -> States {
        States {
            numbers: Map::from_iter([(initial.clone(), 0)]),
            states: vec![initial],
            writes: writes.writes.clone(),
            after: Map::default(),
            troubles: Troubles::default(),
        }
    }

    /// The state after a write.
    #[inline]
    pub(super) fn after(&mut self, state: u32, write: u32, lens: &Lens) -> u32 {
        match self.after.get(&(state, write)) {
            Some(&after) => after,
            None => self.compute(state, write, lens),
        }
    }

    #[cold]
    fn compute(&mut self, state: u32, write: u32, lens: &Lens) -> u32 {
        let mut new = self.states[state as usize].clone();
        let step = Step { events: 0, write: Some(self.writes[write as usize]) };
        lens.apply(&mut new, step, &mut self.troubles);
        let next = self.states.len() as u32;
        let number = *self.numbers.entry(new.clone()).or_insert(next);
        if number == next {
            self.states.push(new);
        }
        self.after.insert((state, write), number);
        number
    }

    /// What went wrong with values so far.
    pub(super) fn troubles(&self) -> &Troubles {
        &self.troubles
    }

    /// The state atoms that are true in a state.
    #[inline]
    pub(super) fn bits(&self, state: u32) -> u64 {
        self.states[state as usize].letter().0
    }
}

/// The sets of monitor states met so far.
#[derive(Debug)]
pub(super) struct Sets {
    sets: Vec<StateSet>,
    numbers: Map<StateSet, u32>,
    after: Map<(u32, u64), (u32, bool)>,
    unions: Map<(u32, u32), u32>,
}

impl Sets {
    /// Only the set of the start state, which has number 0.
    pub(super) fn new(start: StateId) -> Sets {
        let set = StateSet::of(start);
        Sets {
            numbers: Map::from_iter([(set.clone(), 0)]),
            sets: vec![set],
            after: Map::default(),
            unions: Map::default(),
        }
    }

    /// The states of a set.
    pub(super) fn get(&self, set: u32) -> &StateSet {
        &self.sets[set as usize]
    }

    /// The states after a step, the bad one left out, and whether it was reached: a run that has
    /// violated the property is not followed further.
    #[inline]
    pub(super) fn step(
        &mut self,
        set: u32,
        letter: u64,
        monitor: &mut Monitor,
    ) -> Result<(u32, bool), TooManyStates> {
        match self.after.get(&(set, letter)) {
            Some(&after) => Ok(after),
            None => self.compute(set, letter, monitor),
        }
    }

    #[cold]
    fn compute(
        &mut self,
        set: u32,
        letter: u64,
        monitor: &mut Monitor,
    ) -> Result<(u32, bool), TooManyStates> {
        let (mut next, mut bad) = (StateSet::default(), false);
        for state in self.sets[set as usize].clone().iter() {
            match monitor.step(state, Letter(letter))? {
                StateId::BAD => bad = true,
                state => drop(next.insert(state)),
            }
        }
        let after = (self.number(next), bad);
        self.after.insert((set, letter), after);
        Ok(after)
    }

    /// Both sets together.
    #[inline]
    pub(super) fn union(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let key = (a.min(b), a.max(b));
        match self.unions.get(&key) {
            Some(&union) => union,
            None => {
                let mut union = self.sets[a as usize].clone();
                union.union_with(&self.sets[b as usize]);
                let union = self.number(union);
                self.unions.insert(key, union);
                union
            }
        }
    }

    fn number(&mut self, set: StateSet) -> u32 {
        let next = self.sets.len() as u32;
        let number = *self.numbers.entry(set.clone()).or_insert(next);
        if number == next {
            self.sets.push(set);
        }
        number
    }
}
