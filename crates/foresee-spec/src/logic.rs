//! The logics of properties. Each of them compiles a property to a monitor.

use crate::ast::Body;
use crate::diagnostic::Diagnostic;
use crate::letter::Alphabet;
use crate::monitor::Monitor;
use crate::pattern::Position;

/// One logic.
pub trait Logic: Sync {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// A description in one line.
    fn describe(&self) -> &'static str;
    /// Whether a property belongs to this logic. Every property belongs to exactly one.
    fn accepts(&self, body: &Body) -> bool;
    /// Compiles a property that it accepts, and numbers its atoms.
    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic>;
}

/// A compiled property.
#[derive(Debug)]
pub struct Draft {
    /// The automaton over the letters of the alphabet.
    pub monitor: Monitor,
    /// For patterns: the sequences of positions, each of which is a violation.
    pub sequences: Option<Vec<Vec<Position>>>,
}

impl From<Monitor> for Draft {
    fn from(monitor: Monitor) -> Draft {
        Draft { monitor, sequences: None }
    }
}

/// Every logic.
pub const LOGICS: &[&dyn Logic] = &[
    &crate::ptltl::PastTime,
    &crate::ltl::FutureTime,
    &crate::ere::Regular,
    &crate::pattern::Patterns,
    &crate::automaton::Automata,
    &crate::custom::CustomLogic,
];

/// The logic of a property.
pub fn logic_of(body: &Body) -> &'static dyn Logic {
    *LOGICS.iter().find(|l| l.accepts(body)).expect("every form of property has its logic")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn logics_are_told_apart() {
        let names: HashSet<_> = LOGICS.iter().map(|l| l.name()).collect();
        assert_eq!(names.len(), LOGICS.len());
        assert!(LOGICS.iter().all(|l| !l.name().is_empty() && l.describe().len() > 10));
    }
}
