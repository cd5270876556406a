//! What the searches for one specification claim, before the judge has had his word.

use std::collections::HashSet;
use std::rc::Rc;

use foresee_spec::params::Object;

use crate::confirm::Reordered;
use crate::lattice::Predictions;
use crate::pattern::Matches;

/// How many bindings of one property get a witness. Each witness is an order of the whole trace,
/// written out and judged; after some of them, more are no help to anybody.
pub(crate) const MAX_CLAIMS: usize = 20;

/// Violations in correct reorderings.
pub type Reorderings = Rc<std::cell::RefCell<Vec<Reordered>>>;

/// What the searches for one specification claim. A copy speaks of the same claims: each search is
/// given one, and those that finish later know what the earlier ones found.
#[derive(Clone, Debug, Default)]
pub struct Claims {
    /// Runs with the same causality that violate a property.
    pub predictions: Predictions,
    /// Patterns that some run with the same causality has.
    pub matches: Matches,
    /// Violations in other correct reorderings.
    pub reordered: Reorderings,
    /// Of the first two kinds, what is told while the trace is still being made; see
    /// [`crate::lattice::Lattice::telling_early`]. It comes again among the others.
    pub early: (Predictions, Matches),
}

impl Claims {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.predictions.borrow().is_empty()
            && self.matches.borrow().is_empty()
            && self.reordered.borrow().is_empty()
    }

    /// How many of the first events of the trace are needed to judge them; `None` is all.
    pub fn needed_events(&self) -> Option<u64> {
        let is_simple = self.predictions.borrow().is_empty() && self.reordered.borrow().is_empty();
        let certain = |_| self.matches.borrow().iter().map(|m| m.certain_at + 1).max().unwrap_or(0);
        is_simple.then_some(()).map(certain)
    }

    /// The bindings of a property that runs with the same causality violate: they need no other
    /// claim.
    pub(crate) fn bindings_of(&self, property: usize) -> HashSet<String> {
        let predictions = self.predictions.borrow();
        let predicted = predictions.iter().map(|p| (p.property, &p.binding));
        let matches = self.matches.borrow();
        let matched = matches.iter().map(|m| (m.property, &m.binding));
        let of = predicted.chain(matched).filter(|(number, _)| *number == property);
        of.map(|(_, binding)| binding_key(binding)).collect()
    }
}

/// A binding as a key: what it stands for has no order and no hash.
pub(crate) fn binding_key(binding: &[(String, Object)]) -> String {
    format!("{binding:?}")
}
