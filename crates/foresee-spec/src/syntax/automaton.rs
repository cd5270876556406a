//! `{ initial a; a: guard -> b, …; … }`

use std::collections::{HashMap, HashSet};

use foresee_support::nearest::nearest;

use super::formula::power;
use super::lexer::Kind;
use super::parser::{Failed, Parse, Parser};
use crate::ast::{Automaton, AutomatonState, BinaryOp, Edge, Ident, Span};
use crate::diagnostic::Diagnostic;

/// A specification with more states without a row is generated, and generators do not misspell.
const MANY: usize = 20;

impl Parser<'_> {
    /// The body of an automaton; the next token is `{`.
    pub(super) fn automaton(&mut self, name: &Ident) -> Parse<Automaton> {
        let empty = || Automaton { initial: Vec::new(), states: Vec::new() };
        let automaton = self.enclosed((Kind::CurlyClose, "`}`"), empty, |p| {
            let mut automaton = Automaton { initial: Vec::new(), states: Vec::new() };
            while !matches!(p.kind(), Kind::CurlyClose | Kind::End) && !p.at_item() {
                if p.row(&mut automaton).is_err() {
                    p.skip_to_next_row()?;
                }
            }
            Ok(automaton)
        })?;
        self.check_automaton(name, &automaton);
        Ok(automaton)
    }

    fn row(&mut self, automaton: &mut Automaton) -> Parse<()> {
        let what = "a state or `initial`";
        if self.word() == "initial" && self.ahead(1).kind != Kind::Colon {
            self.bump();
            loop {
                automaton.initial.push(self.ident("the name of an initial state")?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
            self.expect(Kind::Semicolon, "`,` or `;`")?;
            return Ok(());
        }
        let name = self.ident(what)?;
        self.expect(Kind::Colon, "`:` after the name of a state")?;
        let mut edges = Vec::new();
        if self.kind() != Kind::Semicolon {
            loop {
                edges.push(self.edge()?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        // The last row may omit it.
        if self.kind() != Kind::CurlyClose {
            self.expect(Kind::Semicolon, "`,` or `;` after a transition")?;
        }
        automaton.states.push(AutomatonState { name, edges });
        Ok(())
    }

    fn edge(&mut self) -> Parse<Edge> {
        let start = self.token().span;
        let guard = if self.kind() == Kind::CurlyOpen {
            let instead = || super::formula::nothing(start);
            self.enclosed((Kind::CurlyClose, "`}`"), instead, |p| p.step_formula(0, "a guard"))?
        } else {
            // Only up to `->`, which introduces the target state here.
            self.step_formula(power(BinaryOp::Or), "a guard")?
        };
        self.expect(Kind::Binary(BinaryOp::Implies), "`->` and the next state")?;
        Ok(Edge { guard: guard.node, target: self.ident("the name of a state")? })
    }

    /// Skips past the next `;`, if the automaton has one.
    fn skip_to_next_row(&mut self) -> Parse<()> {
        while !matches!(self.kind(), Kind::End | Kind::CurlyClose) && !self.at_item() {
            if self.bump().kind == Kind::Semicolon {
                return Ok(());
            }
        }
        if self.kind() == Kind::CurlyClose { Ok(()) } else { Err(Failed) }
    }

    fn check_automaton(&mut self, name: &Ident, automaton: &Automaton) {
        if automaton.initial.is_empty() {
            let message = format!("the automaton `{}` has no initial state", name.name);
            let error =
                Diagnostic::error("no-initial-state", message, name.span, "of this automaton");
            self.report(error.help("write `initial NAME;` as its first row"));
        }
        self.check_unique("initial state", automaton.initial.iter());
        self.check_unique("state", automaton.states.iter().map(|s| &s.name));

        // A state may have no row, unless it is a misspelling of one that has.
        let rows: HashMap<&str, Span> =
            automaton.states.iter().map(|s| (s.name.name.as_str(), s.name.span)).collect();
        let targets = automaton.states.iter().flat_map(|s| s.edges.iter().map(|e| &e.target));
        let mut seen = HashSet::new();
        for state in automaton.initial.iter().chain(targets) {
            let name = state.name.as_str();
            if rows.contains_key(name) || name == "bad" || !seen.insert(name) {
                continue;
            }
            if seen.len() > MANY {
                break;
            }
            if let Some(near) = nearest(name, rows.keys().copied().chain(["bad"])) {
                let message = format!("the state `{name}` has no row");
                let label = format!("did you mean `{near}`?");
                let mut warning = Diagnostic::warning("near-state", message, state.span, label)
                    .help(format!("if not, say so with an empty row: `{name}: ;`"));
                if let Some(&row) = rows.get(near) {
                    warning = warning.and(row, "this state has one");
                }
                self.report(warning);
            }
        }
        let mut goals = automaton.states.iter().flat_map(|s| s.edges.iter().map(|e| &e.target));
        if !automaton.initial.is_empty()
            && !goals.any(|t| t.name == "bad")
            && !automaton.initial.iter().any(|s| s.name == "bad")
        {
            let message = format!("the automaton `{}` can never be violated", name.name);
            let label = "no transition leads to `bad`";
            self.report(Diagnostic::warning("never-bad", message, name.span, label));
        }
    }
}
