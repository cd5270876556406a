//! Verdicts on bindings of properties that were reached elsewhere.
//!
//! The searches for the bindings of a property's parameters do not depend on each other, nor do those for the objects of a
//! type. So several processes may each make some of them, and another one that knows their verdicts does everything else as
//! if it had made them all ([`Decided`]). Two things are shared by all bindings: a budget, and the monitor, which has a limit
//! of its own. A verdict counts only if what it took of the budget is left. A monitor that has seen the bindings of one part
//! has no more states than one that has seen all of them, and that one no more than all parts together. So verdicts count
//! only if all parts together have stayed within the limit; otherwise they are reached again, and the limit with them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use foresee_spec::params::Binding;
use serde::{Deserialize, Serialize};

use crate::checks::{CandidatePart, Decided, Deciding};
use crate::correct::CorrectVerdict;
use crate::lattice::LatticeVerdict;
use crate::reorder::SlicedVerdict;

/// The verdict on one binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BindingVerdict {
    Lattice(LatticeVerdict),
    Sliced(SlicedVerdict),
    Correct(CorrectVerdict),
}

/// Verdicts on some bindings of a property.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettledBindings {
    part: CandidatePart,
    /// What tells these bindings from others: verdicts on others are worth nothing.
    of: u64,
    /// How much of its limit the monitor has used, in millionths.
    load: u64,
    verdicts: Vec<(u32, BindingVerdict)>,
}

impl SettledBindings {
    /// Whether it speaks of bindings that another one leaves out.
    pub(crate) fn goes_with(&self, other: &SettledBindings) -> bool {
        self.of == other.of && self.part.of == other.part.of && self.part != other.part
    }
}

/// Millionths of the limit of a monitor.
const WHOLE: u64 = 1_000_000;

/// What is known and what is to be decided in one search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sharing {
    decided: Arc<Decided>,
    deciding: Option<Deciding>,
}

impl Sharing {
    pub(crate) fn new(decided: Arc<Decided>, deciding: Option<Deciding>) -> Sharing {
        Sharing { decided, deciding }
    }

    /// Whether only a part is to be decided.
    pub(crate) fn is_part(&self) -> bool {
        self.deciding.is_some()
    }

    /// The bindings of a property in one search, of which some may be known. `of` tells them from others.
    pub(crate) fn begin(&self, analysis: &str, property: &str, of: u64) -> Settling<'_> {
        let key = format!("{analysis} {property}");
        let known = self.decided.bindings(&key);
        let is_known = known.first().is_some_and(|first| first.of == of)
            && known.iter().map(|one| one.load).sum::<u64>() < WHOLE;
        let known = known.iter().filter(|_| is_known).flat_map(|one| &one.verdicts);
        let known = known.map(|(at, verdict)| (*at, verdict)).collect();
        Settling { sharing: self, key, of, known, verdicts: Vec::new() }
    }
}

/// Goes through the bindings of a property.
pub(crate) struct Settling<'d> {
    sharing: &'d Sharing,
    key: String,
    of: u64,
    known: HashMap<u32, &'d BindingVerdict>,
    verdicts: Vec<(u32, BindingVerdict)>,
}

impl<'d> Settling<'d> {
    /// Whether a binding is to be looked at here; `at` is its place.
    pub(crate) fn has(&self, at: usize) -> bool {
        self.sharing.deciding.as_ref().is_none_or(|deciding| deciding.part.has(at))
    }

    /// The verdict on a binding, if it is known.
    pub(crate) fn known(&self, at: usize) -> Option<&'d BindingVerdict> {
        self.known.get(&u32::try_from(at).ok()?).copied()
    }

    /// Remembers a verdict, if it is for others.
    pub(crate) fn keep(&mut self, at: usize, verdict: impl FnOnce() -> BindingVerdict) {
        if let (true, Ok(at)) = (self.sharing.is_part(), u32::try_from(at)) {
            self.verdicts.push((at, verdict()));
        }
    }

    /// Hands the verdicts over. `load` is that of the monitor.
    pub(crate) fn finish(self, load: f64) {
        let Some(deciding) = &self.sharing.deciding else { return };
        let load = (load * WHOLE as f64).ceil() as u64 + 1;
        let (part, of) = (deciding.part, self.of);
        let verdicts = self.verdicts;
        deciding.keep_bindings(self.key, SettledBindings { part, of, load, verdicts });
    }
}

/// Distinguishes lists of bindings, and the steps of those without. Another compiler may give other numbers, which costs time and nothing else.
pub(crate) fn fingerprint(bindings: &[Binding], steps: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bindings.len(), steps).hash(&mut hasher);
    for binding in bindings {
        // What a binding stands for may be a number of the trace, which every reader of it counts in the same way.
        format!("{binding:?}").hash(&mut hasher);
    }
    hasher.finish()
}
