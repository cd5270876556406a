//! Explicit automata, deterministic or not: violated when the state `bad` is reached.

use crate::ast::{Automaton, Body};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, StateId, StateSet, TooManyStates, Verdict};
use crate::past::{Program, Root};

/// `automaton NAME { … }`
pub struct Automata;

impl Logic for Automata {
    fn name(&self) -> &'static str {
        "automaton"
    }

    fn describe(&self) -> &'static str {
        "explicit automata, whose state `bad` must not be reached"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Automaton(_))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Automaton(automaton) = body else { unreachable!("only automata are accepted") };
        let machine = Rows::new(automaton, atoms)?;
        Ok(Monitor::new(machine, atoms.atoms().len(), Monitor::DEFAULT_LIMIT).into())
    }
}

/// The number of the bad state; the others follow in source order.
const BAD: StateId = StateId::BAD;

struct Rows {
    names: Vec<String>,
    initial: StateSet,
    /// The transitions of each state except the bad one.
    rows: Vec<Vec<(Root, StateId)>>,
    guards: Program,
}

impl Rows {
    fn new(automaton: &Automaton, atoms: &mut Alphabet) -> Result<Rows, Diagnostic> {
        let mut names = vec!["bad".to_string()];
        let own_rows = automaton.states.iter().filter(|s| s.name.name != "bad");
        names.extend(own_rows.clone().map(|s| s.name.name.clone()));
        let find = |ident: &crate::ast::Ident| {
            let place = names.iter().position(|n| *n == ident.name);
            place.map(|i| StateId(i as u32)).ok_or_else(|| {
                let message = format!("the automaton has no state `{}`", ident.name);
                let error = Diagnostic::error("unknown-state", message, ident.span, "not listed");
                error.help(format!("add a row for it: `{}: ;`", ident.name))
            })
        };
        let initial = automaton.initial.iter().map(find).collect::<Result<StateSet, _>>()?;
        let mut guards = Program::default();
        let mut rows = Vec::new();
        for state in own_rows {
            let row = state
                .edges
                .iter()
                .map(|edge| Ok((guards.add(&edge.guard, atoms)?, find(&edge.target)?)));
            rows.push(row.collect::<Result<_, Diagnostic>>()?);
        }
        Ok(Rows { names, initial, rows, guards })
    }
}

impl Machine for Rows {
    type State = StateSet;

    fn start(&mut self) -> StateSet {
        self.initial.clone()
    }

    fn step(&mut self, states: &StateSet, letter: Letter) -> Result<StateSet, TooManyStates> {
        let (values, _) = self.guards.run(None, letter);
        let mut next = StateSet::default();
        for state in states.iter() {
            let Some(row) = self.rows.get((state.0 as usize).wrapping_sub(1)) else { continue };
            let mut taken = row.iter().filter(|(guard, _)| values.of(*guard)).peekable();
            if taken.peek().is_none() {
                next.insert(state);
            }
            taken.for_each(|&(_, to)| {
                next.insert(to);
            });
        }
        Ok(next)
    }

    fn verdict(&self, states: &StateSet) -> Verdict {
        if states.contains(BAD) { Verdict::Bad } else { Verdict::Open }
    }

    fn describe(&self, states: &StateSet) -> String {
        let names: Vec<&str> = states.iter().map(|s| self.names[s.0 as usize].as_str()).collect();
        names.join(" or ")
    }
}

#[cfg(test)]
mod tests;
