//! Program states and sets of monitor states, each once and by number.
//!
//! There are many cuts and few states: a cut keeps two numbers, and the effect of a step on them is
//! looked up. All workers share the tables that assign numbers; each worker caches the answers in
//! its own [`Memo`] and asks only for what is new.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use foldhash::fast::RandomState;
use foresee_spec::letter::Letter;
use foresee_spec::monitor::{Monitor, StateId, StateSet, TooManyStates};
use foresee_spec::observe::{EvalWarnings, ProgramState, Projection, Step};
use foresee_trace::Value;

type Map<K, V> = HashMap<K, V, RandomState>;

/// Things by number, each once.
#[derive(Clone, Debug)]
struct Numbered<T> {
    things: Vec<T>,
    numbers: Map<T, u32>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new(first: T) -> Numbered<T> {
        Numbered { numbers: Map::from_iter([(first.clone(), 0)]), things: vec![first] }
    }

    fn number(&mut self, thing: T) -> u32 {
        if let Some(&number) = self.numbers.get(&thing) {
            return number;
        }
        let number = self.things.len() as u32;
        self.things.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }

    /// Drops all but some, and returns the new number of each that stays.
    fn retain(&mut self, used: impl IntoIterator<Item = u32>) -> Map<u32, u32> {
        let old = std::mem::take(&mut self.things);
        self.numbers.clear();
        let mut renumbered = Map::default();
        for number in used {
            renumbered.entry(number).or_insert_with(|| self.number(old[number as usize].clone()));
        }
        renumbered
    }
}

/// The different writes of a trace, by number.
///
/// Writes of one variable that mean the same to the property count as one: for a water level, all
/// that matters is whether it is above the marks. This keeps the number of program states small
/// without changing any verdict.
#[derive(Debug, Default)]
pub(super) struct Writes {
    writes: Vec<(u16, Option<Value>)>,
    numbers: Map<(u16, Option<Value>), u32>,
    meanings: Map<(u16, bool, u64), u32>,
}

impl Writes {
    /// The number of a write.
    pub(super) fn number(&mut self, write: (u16, Option<Value>), projection: &Projection) -> u32 {
        if let Some(&number) = self.numbers.get(&write) {
            return number;
        }
        let (slot, value) = write;
        let next = self.writes.len() as u32;
        let number = match projection.meaning(slot, value) {
            // A missing value is kept separate, because it is worth a warning.
            Some(bits) => *self.meanings.entry((slot, value.is_some(), bits)).or_insert(next),
            None => next,
        };
        if number == next {
            self.writes.push(write);
        }
        // Values that matter individually may be of any number.
        if self.numbers.len() >= MAX_REMEMBERED && number != next {
            self.numbers.clear();
        }
        self.numbers.insert(write, number);
        number
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    /// Keeps only those that are `used`, and returns their new numbers.
    pub(super) fn retain(&mut self, used: &[u32], projection: &Projection) -> Map<u32, u32> {
        let old = std::mem::take(self);
        used.iter().map(|&n| (n, self.number(old.writes[n as usize], projection))).collect()
    }
}

/// How many values are remembered individually although others mean the same.
const MAX_REMEMBERED: usize = 1 << 16;

/// The program states and sets of monitor states met so far.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    states: Numbered<ProgramState>,
    sets: Numbered<StateSet>,
    troubles: EvalWarnings,
}

/// The data that determines the effect of a step.
pub(super) struct Meaning<'a> {
    pub(super) projection: &'a Projection,
    pub(super) writes: &'a Writes,
    pub(super) monitor: &'a mut Monitor,
}

impl Tables {
    /// The initial state and the start of the monitor, both with number 0.
    pub(super) fn new(initial: ProgramState, start: StateId) -> Tables {
        Tables {
            states: Numbered::new(initial),
            sets: Numbered::new(StateSet::of(start)),
            troubles: EvalWarnings::default(),
        }
    }

    /// How many states there are.
    pub(super) fn len(&self) -> usize {
        self.states.things.len() + self.sets.things.len()
    }

    /// The problems with values so far.
    pub(super) fn troubles(&self) -> &EvalWarnings {
        &self.troubles
    }

    /// The states of a set.
    pub(super) fn set(&self, set: u32) -> &StateSet {
        &self.sets.things[set as usize]
    }

    /// The state atoms that are true in a state.
    pub(super) fn bits(&self, state: u32) -> u64 {
        self.states.things[state as usize].letter().0
    }

    /// Drops all states and sets but these, and returns the new numbers of each.
    pub(super) fn retain(
        &mut self,
        states: &[u32],
        sets: &[u32],
    ) -> (Map<u32, u32>, Map<u32, u32>) {
        let states = self.states.retain(states.iter().copied());
        (states, self.sets.retain(sets.iter().copied()))
    }

    /// The state after a write.
    pub(super) fn after(&mut self, state: u32, write: u32, by: &Meaning<'_>) -> u32 {
        let mut new = self.states.things[state as usize].clone();
        let step = Step { events: 0, write: Some(by.writes.writes[write as usize]) };
        by.projection.apply(&mut new, step, &mut self.troubles);
        self.states.number(new)
    }

    /// The states after a step, the bad one left out, and whether it was reached: a run that has
    /// violated the property is not followed further.
    fn step(
        &mut self,
        set: u32,
        letter: u64,
        monitor: &mut Monitor,
    ) -> Result<(u32, bool), TooManyStates> {
        let (mut next, mut bad) = (StateSet::default(), false);
        for state in self.set(set).clone().iter() {
            match monitor.step(state, Letter(letter))? {
                StateId::BAD => bad = true,
                state => drop(next.insert(state)),
            }
        }
        Ok((self.sets.number(next), bad))
    }

    /// The union of both sets.
    fn union(&mut self, a: u32, b: u32) -> u32 {
        let mut union = self.set(a).clone();
        union.union_with(self.set(b));
        self.sets.number(union)
    }
}

/// Tables shared by several workers.
pub(super) struct Shared<'a, 'm> {
    inner: Mutex<(&'a mut Tables, &'a mut Meaning<'m>)>,
}

impl<'a, 'm> Shared<'a, 'm> {
    pub(super) fn new(tables: &'a mut Tables, meaning: &'a mut Meaning<'m>) -> Self {
        Shared { inner: Mutex::new((tables, meaning)) }
    }

    fn lock(&self) -> MutexGuard<'_, (&'a mut Tables, &'a mut Meaning<'m>)> {
        // A worker that panics takes the search down with it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker's cache of the tables.
#[derive(Debug, Default)]
pub(super) struct Memo {
    bits: Vec<u64>,
    after: Map<(u32, u32), u32>,
    steps: Map<(u32, u64), (u32, bool)>,
    unions: Map<(u32, u32), u32>,
}

impl Memo {
    /// Forgets everything, because numbers have changed.
    pub(super) fn clear(&mut self) {
        *self = Memo::default();
    }

    /// Adds the states that others have met.
    pub(super) fn catch_up(&mut self, shared: &Shared<'_, '_>) {
        self.learn(shared.lock().0);
    }

    fn learn(&mut self, tables: &Tables) {
        let new = self.bits.len()..tables.states.things.len();
        self.bits.extend(new.map(|state| tables.bits(state as u32)));
    }

    /// The state atoms that are true in a state.
    #[inline]
    pub(super) fn bits(&self, state: u32) -> u64 {
        self.bits[state as usize]
    }

    /// The state after a write.
    #[inline]
    pub(super) fn after(&mut self, state: u32, write: u32, shared: &Shared<'_, '_>) -> u32 {
        match self.after.get(&(state, write)) {
            Some(&after) => after,
            None => self.compute_after(state, write, shared),
        }
    }

    #[cold]
    fn compute_after(&mut self, state: u32, write: u32, shared: &Shared<'_, '_>) -> u32 {
        let mut inner = shared.lock();
        let (tables, meaning) = &mut *inner;
        let after = tables.after(state, write, meaning);
        self.learn(tables);
        self.after.insert((state, write), after);
        after
    }

    /// The states after a step, the bad one left out, and whether it was reached.
    #[inline]
    pub(super) fn step(
        &mut self,
        set: u32,
        letter: u64,
        shared: &Shared<'_, '_>,
    ) -> Result<(u32, bool), TooManyStates> {
        match self.steps.get(&(set, letter)) {
            Some(&after) => Ok(after),
            None => {
                let mut inner = shared.lock();
                let (tables, meaning) = &mut *inner;
                let after = tables.step(set, letter, meaning.monitor)?;
                self.steps.insert((set, letter), after);
                Ok(after)
            }
        }
    }

    /// The union of both sets.
    #[inline]
    pub(super) fn union(&mut self, a: u32, b: u32, shared: &Shared<'_, '_>) -> u32 {
        if a == b {
            return a;
        }
        let key = (a.min(b), a.max(b));
        match self.unions.get(&key) {
            Some(&union) => union,
            None => {
                let union = shared.lock().0.union(a, b);
                self.unions.insert(key, union);
                union
            }
        }
    }
}
