//! Which kinds of steps must keep their order for a property.
//!
//! Two kinds of steps are *independent* if, in every state of the property's monitor, taking them
//! in either order leads to the same state (causal dependence; Soueidi and Falcone, 2023). Two runs
//! that differ only in the order of independent steps have the same verdict. The relation depends
//! on the automaton, so the minimal complete one is used, in which equivalent states are merged.
//!
//! A step that writes a variable changes the state atoms that mention it, for itself and for all
//! later steps. It is described here by the atoms that it makes true, if they follow from the value
//! alone; otherwise any possible combination is assumed.

use std::collections::HashMap;

use crate::explain::whole;
use crate::monitor::{Explored, TooManyStates};
use crate::property::Compiled;

/// A kind of step, as far as a property can distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    /// The event atoms that it matches.
    pub events: u64,
    /// Its effect on the state.
    pub write: Option<Written>,
}

/// The effect of a step on the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// The variable, by its index in [`crate::observe::Projection::variables`].
    pub slot: u16,
    /// The state atoms that mention it.
    pub mentioned: u64,
    /// Those that become true, if the value alone determines it; the others become false.
    pub holding: Option<u64>,
}

/// A property's causal dependence.
#[derive(Clone, Debug)]
pub struct Dependence {
    automaton: Explored,
    /// The index of each letter in the rows of the automaton.
    places: HashMap<u64, usize>,
    /// The states in which the monitor can be when an event happens.
    states: Vec<usize>,
    /// The sets of state atoms that can be true together.
    valuations: Vec<u64>,
}

/// The maximum number of tries for one pair of actions. What was not tried counts as dependent.
const MAX_TRIES: usize = 1 << 22;

/// Up to this many sets of state atoms, all that can follow each other are tried.
const FEW_VALUATIONS: usize = 256;

impl Dependence {
    /// Builds the property's minimal automaton, unless it is too large.
    pub fn new(compiled: &mut Compiled) -> Result<Dependence, TooManyStates> {
        let automaton = whole(compiled)?.minimise();
        let events = compiled.alphabet.event_bits();
        let letters = automaton.letters.iter().enumerate();
        let places: HashMap<u64, usize> = letters.map(|(i, l)| (l.0, i)).collect();
        let mut valuations: Vec<u64> = automaton.letters.iter().map(|l| l.0 & !events).collect();
        valuations.sort_unstable();
        valuations.dedup();
        // The initial state is read before any event.
        let first: Vec<usize> = match compiled.reads_initial {
            false => vec![0],
            true => {
                let places = valuations.iter().filter_map(|v| places.get(v));
                places.map(|&i| automaton.states[0].row[i] as usize).collect()
            }
        };
        let mut is_reached = vec![false; automaton.states.len()];
        let mut states = Vec::new();
        let mut todo = first;
        while let Some(state) = todo.pop() {
            if !std::mem::replace(&mut is_reached[state], true) {
                states.push(state);
                todo.extend(automaton.states[state].row.iter().map(|&to| to as usize));
            }
        }
        Ok(Dependence { automaton, places, states, valuations })
    }

    /// Whether the result is exact: no pair counts as dependent only because of the limit on tries.
    pub fn is_thorough(&self) -> bool {
        self.valuations.len() <= FEW_VALUATIONS
    }

    /// The minimal automaton.
    pub fn automaton(&self) -> &Explored {
        &self.automaton
    }

    /// Whether the order of two steps may matter to the property.
    pub fn depends(&self, a: Action, b: Action) -> bool {
        if let (Some(x), Some(y)) = (a.write, b.write)
            && x.slot == y.slot
            && (x.holding.is_none() || x.holding != y.holding)
        {
            // The variable keeps the value that was written last.
            return true;
        }
        let mut tries = 0;
        // If the outcome is open, all of them are considered.
        let is_open = |action: Action| action.write.is_some_and(|w| w.holding.is_none());
        let looked_at = if is_open(a) || is_open(b) { self.valuations.len() } else { 1 };
        for &v in &self.valuations {
            for after_a in self.outcomes(a, v) {
                for after_b in self.outcomes(b, v) {
                    tries += looked_at;
                    if tries > MAX_TRIES {
                        return true;
                    }
                    for after_both in self.outcomes(b, after_a) {
                        if !reaches(a, after_b, after_both) {
                            continue;
                        }
                        tries += self.states.len();
                        let (ab, ba) = (
                            [after_a | a.events, after_both | b.events],
                            [after_b | b.events, after_both | a.events],
                        );
                        if tries > MAX_TRIES || !self.states.iter().all(|&q| self.agree(q, ab, ba))
                        {
                            return true;
                        }
                    }
                }
            }
        }
        false
    }

    /// The sets of state atoms that can be true after a step.
    fn outcomes(&self, action: Action, before: u64) -> impl Iterator<Item = u64> + '_ {
        let is_open = action.write.is_some_and(|w| w.holding.is_none());
        let all = if is_open { &self.valuations[..] } else { &[] };
        let one = (!is_open).then(|| match action.write {
            Some(Written { mentioned, holding, .. }) => {
                before & !mentioned | holding.unwrap_or_default()
            }
            None => before,
        });
        one.into_iter().chain(all.iter().copied().filter(move |&v| reaches(action, before, v)))
    }

    /// Whether two words of two letters lead from a state to the same one. Impossible letters are
    /// ignored.
    fn agree(&self, from: usize, ab: [u64; 2], ba: [u64; 2]) -> bool {
        let after = |word: [u64; 2]| {
            word.iter().try_fold(from, |state, letter| {
                let place = *self.places.get(letter)?;
                Some(self.automaton.states[state].row[place] as usize)
            })
        };
        match (after(ab), after(ba)) {
            (Some(x), Some(y)) => x == y,
            _ => false,
        }
    }
}

/// Whether a step can lead from one set of true state atoms to another.
fn reaches(action: Action, before: u64, after: u64) -> bool {
    match action.write {
        None => after == before,
        Some(Written { mentioned, holding, .. }) => {
            after & !mentioned == before & !mentioned
                && holding.is_none_or(|holding| after & mentioned == holding)
        }
    }
}

#[cfg(test)]
mod tests;
