//! What a property means, for people: in words, with its monitor's size and with examples.

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

use crate::ast::{Atom, Init, Property, Term};
use crate::logic::logic_of;
use crate::monitor::TooManyStates;
use crate::property::{Compiled, Relevance};
pub(crate) use examples::whole;
pub use examples::{Example, Found};
pub use order::OrderFacts;

/// How many states of a monitor are built to explain it.
pub const MAX_STATES: usize = 5_000;

/// What there is to say about a property.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Its name.
    pub name: String,
    /// The name of its logic, and what that is.
    pub logic: (&'static str, &'static str),
    /// What it says, in words: a few lines, each with its end.
    pub words: String,
    /// Its parameters.
    pub params: Vec<String>,
    /// The names it looks at.
    pub relevance: Relevance,
    /// The threads that its events name after `@`.
    pub in_threads: Vec<String>,
    /// What its monitor shows, unless that is too large to be built as a whole.
    pub monitor: Result<Facts, TooManyStates>,
}

/// What the whole automaton of a property shows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The states that the logic makes, as far as they can be reached.
    pub states: usize,
    /// The states of the smallest automaton that violates on the same runs.
    pub minimal: usize,
    /// The kinds of steps that the automaton tells apart.
    pub letters: usize,
    /// Of which steps it minds the order, unless there are too many kinds.
    pub order: Option<OrderFacts>,
    /// Whether some sequence of steps violates the property, be it one that no run shows.
    pub can_be_violated: bool,
    /// A shortest run that violates the property. A run starts with the values that the
    /// specification gives, and each of its steps writes one variable at most.
    pub violation: Found,
    /// A shortest run after which nothing can violate the property any more.
    pub settled: Found,
    /// A short run that the property allows and that shows it at work.
    pub allowed: Found,
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
        relevance: compiled.relevance(),
        in_threads,
        monitor: Facts::of(property, compiled, inits),
    }
}
