//! Extended regular expressions over steps: violated when a non-empty prefix of the run matches.
//!
//! States are expressions, and a step takes the derivative (Brzozowski 1964). Unions and
//! intersections are kept sorted, flat and without repetition, which makes the number of
//! derivatives finite; a few more laws keep it small.

use std::collections::HashMap;

use crate::ast::{Atom, Body, EventAtom, Formula, FormulaKind, Regex, RegexKind};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, TooManyStates, Verdict};
use crate::past::{Program, Root, Values};

/// `violation NAME: R`
pub struct Regular;

impl Logic for Regular {
    fn name(&self) -> &'static str {
        "ere"
    }

    fn describe(&self) -> &'static str {
        "extended regular expressions, which no prefix of the run may match"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Violation(_))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Violation(regex) = body else { unreachable!("only violations are accepted") };
        let parts = size(regex);
        if parts > MAX_PARTS {
            let message = format!("the expression has {parts} parts (limit: {MAX_PARTS})");
            let error = Diagnostic::error("too-large", message, regex.span, "too large");
            return Err(error.help("split it into several violations"));
        }
        let mut terms = Terms::new();
        let root = terms.compile(regex, atoms)?;
        let machine = Derivatives { terms, root };
        Ok(Monitor::new(machine, atoms.atoms().len(), Monitor::DEFAULT_LIMIT).into())
    }
}

/// The maximum number of parts of an expression. Derivatives are taken recursively, as deep as the
/// longest chain of parts that can be empty.
const MAX_PARTS: usize = 2_000;

fn size(regex: &Regex) -> usize {
    match &regex.kind {
        RegexKind::Empty | RegexKind::Any | RegexKind::Step(_) | RegexKind::Event(_) => 1,
        RegexKind::Concat(parts) | RegexKind::Union(parts) | RegexKind::Intersection(parts) => {
            parts.iter().map(size).sum()
        }
        RegexKind::Complement(r)
        | RegexKind::Star(r)
        | RegexKind::Plus(r)
        | RegexKind::Optional(r) => 1 + size(r),
    }
}

/// An expression, by its index in [`Terms`].
type TermId = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Term {
    /// Nothing matches.
    Nothing,
    /// The empty word.
    Empty,
    /// One step at which the guard holds.
    Step(Root),
    /// The first is not itself a concatenation: chains lean to the right.
    Concat(TermId, TermId),
    /// At least two, sorted, none of them a union.
    Union(Box<[TermId]>),
    /// At least two, sorted, none of them an intersection.
    Intersection(Box<[TermId]>),
    Complement(TermId),
    Star(TermId),
}

/// Expressions in normal form, each stored once.
struct Terms {
    terms: Vec<Term>,
    nullable: Vec<bool>,
    index: HashMap<Term, TermId>,
    guards: Program,
    /// Derivatives by the current letter; cleared before each step.
    derived: HashMap<TermId, TermId>,
    too_many: bool,
}

const NOTHING: TermId = 0;
const EMPTY: TermId = 1;
/// The complement of nothing.
const EVERYTHING: TermId = 2;
/// The maximum number of expressions and subexpressions.
const MAX_TERMS: usize = 1_000_000;

impl Terms {
    fn new() -> Terms {
        let mut terms = Terms {
            terms: Vec::new(),
            nullable: Vec::new(),
            index: HashMap::new(),
            guards: Program::default(),
            derived: HashMap::new(),
            too_many: false,
        };
        for term in [Term::Nothing, Term::Empty, Term::Complement(NOTHING)] {
            terms.intern(term);
        }
        terms
    }

    fn intern(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.index.get(&term) {
            return id;
        }
        if self.terms.len() >= MAX_TERMS {
            // The current step then returns an error.
            self.too_many = true;
            return NOTHING;
        }
        let nullable = |id: &TermId| self.nullable[*id as usize];
        let is_nullable = match &term {
            Term::Nothing | Term::Step(_) => false,
            Term::Empty | Term::Star(_) => true,
            Term::Concat(a, b) => nullable(a) && nullable(b),
            Term::Union(parts) => parts.iter().any(nullable),
            Term::Intersection(parts) => parts.iter().all(nullable),
            Term::Complement(a) => !nullable(a),
        };
        let id = self.terms.len() as TermId;
        self.terms.push(term.clone());
        self.nullable.push(is_nullable);
        self.index.insert(term, id);
        id
    }

    fn concat(&mut self, a: TermId, b: TermId) -> TermId {
        match (a, b) {
            (NOTHING, _) | (_, NOTHING) => return NOTHING,
            (EMPTY, other) | (other, EMPTY) => return other,
            (EVERYTHING, EVERYTHING) => return EVERYTHING,
            _ => {}
        }
        match &self.terms[a as usize] {
            &Term::Concat(first, rest) => {
                let rest = self.concat(rest, b);
                self.concat(first, rest)
            }
            // Distributed, so that derivatives of plain expressions are unions of few different
            // parts (Antimirov 1996) instead of nested unions.
            Term::Union(parts) => {
                let parts = parts.clone();
                let parts = parts.iter().map(|&part| self.concat(part, b)).collect();
                self.union(parts)
            }
            _ => self.intern(Term::Concat(a, b)),
        }
    }

    /// The union or the intersection of terms: `zero` absorbs all others, `one` is neutral.
    fn join(&mut self, parts: Vec<TermId>, zero: TermId, one: TermId, union: bool) -> TermId {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match &self.terms[part as usize] {
                Term::Union(inner) if union => flat.extend_from_slice(inner),
                Term::Intersection(inner) if !union => flat.extend_from_slice(inner),
                _ => flat.push(part),
            }
        }
        // The empty word adds nothing to a part that matches it.
        let matched = |&part: &TermId| part != EMPTY && self.nullable[part as usize];
        let without_empty = union && flat.iter().any(matched);
        flat.retain(|&part| part != one && !(without_empty && part == EMPTY));
        flat.sort_unstable();
        flat.dedup();
        if flat.contains(&zero) {
            return zero;
        }
        match flat[..] {
            [] => one,
            [only] => only,
            _ if union => self.intern(Term::Union(flat.into())),
            _ => self.intern(Term::Intersection(flat.into())),
        }
    }

    fn union(&mut self, parts: Vec<TermId>) -> TermId {
        self.join(parts, EVERYTHING, NOTHING, true)
    }

    fn intersection(&mut self, parts: Vec<TermId>) -> TermId {
        self.join(parts, NOTHING, EVERYTHING, false)
    }

    fn complement(&mut self, a: TermId) -> TermId {
        match self.terms[a as usize] {
            Term::Complement(inner) => inner,
            _ => self.intern(Term::Complement(a)),
        }
    }

    fn star(&mut self, a: TermId) -> TermId {
        match self.terms[a as usize] {
            Term::Nothing | Term::Empty => EMPTY,
            Term::Star(_) => a,
            _ if a == EVERYTHING => EVERYTHING,
            _ => self.intern(Term::Star(a)),
        }
    }

    fn compile(&mut self, regex: &Regex, atoms: &mut Alphabet) -> Result<TermId, Diagnostic> {
        let span = regex.span;
        let mut all = |terms: &mut Terms, parts: &[Regex]| {
            parts.iter().map(|p| terms.compile(p, atoms)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match &regex.kind {
            RegexKind::Empty => EMPTY,
            RegexKind::Any => {
                let any = Formula { kind: FormulaKind::Const(true), span };
                let root = self.guards.add(&any, atoms)?;
                self.intern(Term::Step(root))
            }
            RegexKind::Step(formula) => {
                let root = self.guards.add(formula, atoms)?;
                self.intern(Term::Step(root))
            }
            RegexKind::Event(atom) => {
                let root = self.guards.add(&event_formula(atom), atoms)?;
                self.intern(Term::Step(root))
            }
            RegexKind::Concat(parts) => {
                let parts = all(self, parts)?;
                parts.into_iter().rev().fold(EMPTY, |rest, part| self.concat(part, rest))
            }
            RegexKind::Union(parts) => {
                let parts = all(self, parts)?;
                self.union(parts)
            }
            RegexKind::Intersection(parts) => {
                let parts = all(self, parts)?;
                self.intersection(parts)
            }
            RegexKind::Complement(inner) => {
                let inner = self.compile(inner, atoms)?;
                self.complement(inner)
            }
            RegexKind::Star(inner) => {
                let inner = self.compile(inner, atoms)?;
                self.star(inner)
            }
            RegexKind::Plus(inner) => {
                let inner = self.compile(inner, atoms)?;
                let rest = self.star(inner);
                self.concat(inner, rest)
            }
            RegexKind::Optional(inner) => {
                let inner = self.compile(inner, atoms)?;
                self.union(vec![EMPTY, inner])
            }
        })
    }

    /// What must follow a step with these guard values for the whole to match.
    fn derive(&mut self, id: TermId, guards: &Values) -> TermId {
        if let Some(&known) = self.derived.get(&id) {
            return known;
        }
        let result = match self.terms[id as usize].clone() {
            Term::Nothing | Term::Empty => NOTHING,
            Term::Step(guard) if guards.of(guard) => EMPTY,
            Term::Step(_) => NOTHING,
            Term::Concat(a, b) => {
                let first = self.derive(a, guards);
                let with = self.concat(first, b);
                if self.nullable[a as usize] {
                    let without = self.derive(b, guards);
                    self.union(vec![with, without])
                } else {
                    with
                }
            }
            Term::Union(parts) => {
                let parts = parts.iter().map(|&p| self.derive(p, guards)).collect();
                self.union(parts)
            }
            Term::Intersection(parts) => {
                let parts = parts.iter().map(|&p| self.derive(p, guards)).collect();
                self.intersection(parts)
            }
            Term::Complement(a) => {
                let a = self.derive(a, guards);
                self.complement(a)
            }
            Term::Star(a) => {
                let first = self.derive(a, guards);
                self.concat(first, id)
            }
        };
        self.derived.insert(id, result);
        result
    }
}

/// An event atom as a formula.
pub(crate) fn event_formula(atom: &EventAtom) -> Formula {
    Formula { kind: FormulaKind::Atom(Atom::Event(atom.clone())), span: atom.span }
}

struct Derivatives {
    terms: Terms,
    root: TermId,
}

/// What is still to be matched. The start is a separate state if the expression matches the empty
/// word, because the empty prefix never counts.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Rest {
    Start,
    Term(TermId),
}

impl Machine for Derivatives {
    type State = Rest;

    fn start(&mut self) -> Rest {
        if self.terms.nullable[self.root as usize] { Rest::Start } else { Rest::Term(self.root) }
    }

    fn step(&mut self, rest: &Rest, letter: Letter) -> Result<Rest, TooManyStates> {
        let id = match rest {
            Rest::Start => self.root,
            Rest::Term(id) => *id,
        };
        self.terms.derived.clear();
        let (guards, _) = self.terms.guards.run(None, letter);
        let next = self.terms.derive(id, &guards);
        if self.terms.too_many {
            return Err(TooManyStates { limit: MAX_TERMS, what: "expressions" });
        }
        Ok(Rest::Term(next))
    }

    fn load(&self) -> f64 {
        self.terms.terms.len() as f64 / MAX_TERMS as f64
    }

    fn verdict(&self, rest: &Rest) -> Verdict {
        match *rest {
            Rest::Term(id) if self.terms.nullable[id as usize] => Verdict::Bad,
            Rest::Term(NOTHING) => Verdict::Good,
            _ => Verdict::Open,
        }
    }
}

#[cfg(test)]
mod tests;
