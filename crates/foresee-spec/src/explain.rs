//! Explains a property: in words, with the size of its monitor and with examples.

mod clause;
mod examples;
mod formula;
mod order;
mod property;
mod sequences;
mod steps;
#[cfg(test)]
pub(crate) mod tests;
mod text;
mod words;

use crate::ast::{Atom, Ident, Init, Property, Term};
use crate::logic::logic_of;
use crate::monitor::TooManyStates;
use crate::property::{Compiled, Relevance};
use crate::syntax::print_method;
pub(crate) use examples::whole;
pub use examples::{Example, Found};
pub use order::OrderFacts;

/// The maximum number of monitor states that are built to explain it.
pub const MAX_STATES: usize = 5_000;

/// The explanation of a property.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Its name.
    pub name: String,
    /// The name and the description of its logic.
    pub logic: (&'static str, &'static str),
    /// Its meaning in words: a few lines, each with its line end.
    pub words: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// The parameters that stand for objects, each with its type.
    pub objects: Vec<(String, String)>,
    /// The names that are relevant to it.
    pub relevance: Relevance,
    /// The threads that its events name after `@`.
    pub in_threads: Vec<String>,
    /// Facts about its monitor, unless that is too large to be built completely.
    pub monitor: Result<Facts, TooManyStates>,
}

/// Facts about the complete automaton of a property.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The number of reachable states that the logic generates.
    pub states: usize,
    /// The number of states of the minimal automaton that violates on the same runs.
    pub minimal: usize,
    /// The number of kinds of steps that the automaton distinguishes.
    pub letters: usize,
    /// Which steps must keep their order, unless there are too many kinds.
    pub order: Option<OrderFacts>,
    /// Whether some sequence of steps violates the property, even one that no run has.
    pub can_be_violated: bool,
    /// A shortest run that violates the property. A run starts with the values from the
    /// specification, and each of its steps writes at most one variable.
    pub violation: Found,
    /// A shortest run after which the property can no longer be violated.
    pub settled: Found,
    /// A short run that exercises the property without violating it.
    pub allowed: Found,
}

/// What it means that these methods are atomic; a few lines, each with its line end.
pub fn explain_atomics(methods: &[Ident]) -> String {
    let names: Vec<String> = methods.iter().map(|method| print_method(&method.name)).collect();
    let mut text = format!("atomic {}\n", names.join(", "));
    text += "  Each call of these methods is meant to happen as if at once, from its beginning to its \
             end: it is an atomic region, which no other thread may disturb.\n";
    if methods.iter().any(|method| method.name.contains('*')) {
        text += "  A `*` stands for any text.\n";
    }
    text
}

/// Explains a property of a specification whose initial values are `inits`.
pub fn explain(property: &Property, compiled: &mut Compiled, inits: &[Init]) -> Explanation {
    let mut in_threads: Vec<String> = Vec::new();
    for atom in compiled.alphabet.atoms() {
        if let Atom::Event(event) = atom
            && let Term::Name(thread) = &event.thread
            && !in_threads.contains(&thread.name)
        {
            in_threads.push(thread.name.clone());
        }
    }
    Explanation {
        name: property.name.name.clone(),
        logic: (compiled.logic, logic_of(&property.body).describe()),
        words: property::in_words(property, compiled),
        params: compiled.params.names().to_vec(),
        objects: property
            .objects
            .iter()
            .map(|object| (object.name.name.clone(), object.of.name.clone()))
            .collect(),
        relevance: compiled.relevance(),
        in_threads,
        monitor: Facts::of(property, compiled, inits),
    }
}
