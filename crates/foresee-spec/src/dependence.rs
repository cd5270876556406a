//! Of which kinds of steps a property minds the order.
//!
//! Two kinds of steps are *independent* if, wherever the property's monitor is, taking them one way
//! round or the other leads to the same state (causal dependence; Soueidi and Falcone, 2023). Two
//! runs that differ only in the order of independent steps have the same verdict. The relation
//! depends on the automaton, so the smallest complete one is asked: states that no continuation
//! can tell apart are one.
//!
//! A step that writes a variable changes the state atoms that mention it, for itself and for all
//! later steps. It is known here by the atoms that it makes true, if that follows from the value
//! alone; else it may make true whatever can be.

use std::collections::HashMap;

use crate::explain::whole;
use crate::monitor::{Explored, TooManyStates};
use crate::property::Compiled;

/// A kind of step, as far as a property can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    /// The event atoms that it matches.
    pub events: u64,
    /// What it does to the state.
    pub write: Option<Written>,
}

/// What a step does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Written {
    /// The variable, by its place in [`crate::observe::Lens::variables`].
    pub slot: u16,
    /// The state atoms that mention it.
    pub mentioned: u64,
    /// Those that become true, if that depends on the value alone; the others become false.
    pub holding: Option<u64>,
}

/// A property's causal dependence.
#[derive(Clone, Debug)]
pub struct Dependence {
    automaton: Explored,
    /// Where each letter stands in the rows of the automaton.
    places: HashMap<u64, usize>,
    /// The states in which the monitor can be when an event happens.
    states: Vec<usize>,
    /// The sets of state atoms that can be true together.
    valuations: Vec<u64>,
}

/// How much is tried for one pair of actions. What has not been tried counts as dependent.
const MAX_TRIES: usize = 1 << 22;

/// With so many sets of state atoms all that can follow each other are tried.
const FEW_VALUATIONS: usize = 256;

impl Dependence {
    /// Finds the property's smallest automaton, unless that is too large.
    pub fn new(compiled: &mut Compiled) -> Result<Dependence, TooManyStates> {
        let automaton = whole(compiled)?.minimise();
        let events = compiled.alphabet.event_bits();
        let letters = automaton.letters.iter().enumerate();
        let places: HashMap<u64, usize> = letters.map(|(i, l)| (l.0, i)).collect();
        let mut valuations: Vec<u64> = automaton.letters.iter().map(|l| l.0 & !events).collect();
        valuations.sort_unstable();
        valuations.dedup();
        // No event happens before the initial state has been read.
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

    /// Whether nothing counts as dependent for want of time, whatever is known of the steps.
    pub fn is_thorough(&self) -> bool {
        self.valuations.len() <= FEW_VALUATIONS
    }

    /// The smallest automaton.
    pub fn automaton(&self) -> &Explored {
        &self.automaton
    }

    /// Whether the order of two steps may matter to the property.
    pub fn depends(&self, a: Action, b: Action) -> bool {
        if let (Some(x), Some(y)) = (a.write, b.write)
            && x.slot == y.slot
            && (x.holding.is_none() || x.holding != y.holding)
        {
            // The variable keeps what was written last.
            return true;
        }
        let mut tries = 0;
        // An open outcome is looked for among all.
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

    /// Whether two words of two letters lead from a state to the same one. A letter that is none
    /// settles nothing.
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
