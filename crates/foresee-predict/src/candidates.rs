//! What the searches for one specification propose, before the judge has confirmed it.

use std::collections::HashSet;

use foresee_spec::params::Object;

use crate::confirm::Reordered;
use crate::lattice::Prediction;
use crate::pattern::Match;

/// The number of bindings of one property that get a witness. Each witness is an order of the whole
/// trace, written out and judged; beyond this number, more do not help.
pub(crate) const MAX_CANDIDATES: usize = 20;

/// What the searches for one specification propose. Searches finish one after the other, so that
/// the later ones can read here what the earlier ones have found.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Runs with the same causality that violate a property.
    pub predictions: Vec<Prediction>,
    /// Patterns that some run with the same causality has.
    pub matches: Vec<Match>,
    /// Violations in other correct reorderings.
    pub reordered: Vec<Reordered>,
    /// What is known while the trace is still being made. It comes again among the others.
    pub early: Early,
}

/// What is proposed before the trace has ended; see [`crate::lattice::Lattice::reporting_early`].
#[derive(Clone, Debug, Default)]
pub struct Early {
    /// Runs with the same causality that violate a property.
    pub predictions: Vec<Prediction>,
    /// Patterns that some run with the same causality has.
    pub matches: Vec<Match>,
}

impl Early {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.predictions.is_empty() && self.matches.is_empty()
    }
}

impl Candidates {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.predictions.is_empty() && self.matches.is_empty() && self.reordered.is_empty()
    }

    /// How many of the first events of the trace are needed to judge them; `None` is all.
    pub fn needed_events(&self) -> Option<u64> {
        let is_simple = self.predictions.is_empty() && self.reordered.is_empty();
        is_simple.then(|| self.matches.iter().map(|m| m.certain_at + 1).max().unwrap_or(0))
    }

    /// The properties that they are about, with repetitions, and nothing else left of them.
    pub(crate) fn give_up(&mut self) -> Vec<usize> {
        let Candidates { predictions, matches, reordered, .. } = std::mem::take(self);
        let predicted = predictions.into_iter().map(|one| one.property);
        let matched = matches.into_iter().map(|one| one.property);
        let reordered = reordered.into_iter().map(|one| one.property);
        predicted.chain(matched).chain(reordered).collect()
    }

    /// The bindings of a property that runs with the same causality violate: they need no other
    /// witness.
    pub(crate) fn bindings_of(&self, property: usize) -> HashSet<String> {
        let predicted = self.predictions.iter().map(|p| (p.property, &p.binding));
        let matched = self.matches.iter().map(|m| (m.property, &m.binding));
        let of = predicted.chain(matched).filter(|(number, _)| *number == property);
        of.map(|(_, binding)| binding_key(binding)).collect()
    }
}

/// A binding as a key: what it stands for has no order and no hash.
pub(crate) fn binding_key(binding: &[(String, Object)]) -> String {
    format!("{binding:?}")
}
