//! The names that a specification mentions, and the kind of thing that each denotes.

use std::collections::HashSet;

use crate::ast::{
    Atom, Body, EventAtom, EventKind, Expr, ExprKind, Formula, FormulaKind, Literal, Pattern,
    PatternKind, Regex, RegexKind, Span, Spec, Term,
};

/// The kind of thing that a name denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Entity {
    /// A variable whose value is used.
    State,
    /// A variable that is read or written.
    Accessed,
    Lock,
    Thread,
    /// A method.
    Method,
    /// A named event.
    Sym,
    /// An argument of an event.
    Text,
    /// A constant text.
    Literal,
}

/// One mention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mention<'a> {
    pub(crate) entity: Entity,
    pub(crate) name: &'a str,
    pub(crate) span: Span,
}

impl Mention<'_> {
    /// Whether it is the name of a method or of an event.
    pub(crate) fn is_sym(&self) -> bool {
        matches!(self.entity, Entity::Method | Entity::Sym)
    }

    /// Whether it is the name of a variable.
    pub(crate) fn is_variable(&self) -> bool {
        matches!(self.entity, Entity::State | Entity::Accessed)
    }
}

/// Every mention in the properties of a specification. Mentions in a let are listed once, and only
/// if a property uses it.
pub(crate) fn mentions(spec: &Spec) -> Vec<Mention<'_>> {
    let mut walk = Walk { found: Vec::new(), lets: HashSet::new() };
    for property in &spec.properties {
        match &property.body {
            Body::Formula(formula) => walk.formula(formula),
            Body::Violation(regex) => walk.regex(regex),
            Body::Pattern(pattern) => walk.pattern(pattern),
            Body::Automaton(automaton) => {
                let edges = automaton.states.iter().flat_map(|state| &state.edges);
                edges.for_each(|edge| walk.formula(&edge.guard));
            }
            Body::Custom(custom) => custom.conditions.iter().for_each(|c| walk.formula(c)),
        }
    }
    walk.found
}

/// The variables that a specification mentions, each once, at its first mention.
pub fn variables(spec: &Spec) -> Vec<(&str, Span)> {
    once(spec, |mention| mention.is_variable())
}

/// The methods that a specification mentions, each once.
pub fn methods(spec: &Spec) -> Vec<(&str, Span)> {
    once(spec, |mention| mention.entity == Entity::Method)
}

fn once(spec: &Spec, wanted: impl Fn(&Mention<'_>) -> bool) -> Vec<(&str, Span)> {
    let mut seen = HashSet::new();
    let all = mentions(spec).into_iter().filter(|m| wanted(m) && seen.insert(m.name));
    all.map(|m| (m.name, m.span)).collect()
}

struct Walk<'a> {
    found: Vec<Mention<'a>>,
    /// Lets that have been visited, by name; names are unique.
    lets: HashSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn formula(&mut self, formula: &'a Formula) {
        match &formula.kind {
            FormulaKind::Const(_) => {}
            FormulaKind::Atom(Atom::Compare(_, left, right)) => {
                self.expr(left);
                self.expr(right);
            }
            FormulaKind::Atom(Atom::Truth(expr)) => self.expr(expr),
            FormulaKind::Atom(Atom::Event(event)) => self.event(event),
            FormulaKind::Let(name, body) => {
                if self.lets.insert(&name.name) {
                    self.formula(body);
                }
            }
            FormulaKind::Unary(_, operand) => self.formula(operand),
            FormulaKind::Binary(_, left, right) => {
                self.formula(left);
                self.formula(right);
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Literal(literal) => self.literal(literal, expr.span),
            ExprKind::Var(name) => self.mention(Entity::State, name, expr.span),
            ExprKind::Neg(operand) => self.expr(operand),
            ExprKind::Arith(_, left, right) => {
                self.expr(left);
                self.expr(right);
            }
        }
    }

    fn event(&mut self, event: &'a EventAtom) {
        let target = match event.kind {
            EventKind::Read | EventKind::Write => Entity::Accessed,
            EventKind::Acquire | EventKind::Release => Entity::Lock,
            EventKind::Fork | EventKind::Join => Entity::Thread,
            EventKind::Enter | EventKind::Exit => Entity::Method,
            EventKind::Event => Entity::Sym,
        };
        self.term(target, &event.target);
        event.args.iter().for_each(|arg| self.term(Entity::Text, arg));
        self.term(Entity::Thread, &event.thread);
    }

    fn term(&mut self, entity: Entity, term: &'a Term) {
        match term {
            Term::Name(name) => self.mention(entity, &name.name, name.span),
            Term::Literal(literal, span) => self.literal(literal, *span),
            Term::Any | Term::Param(_) => {}
        }
    }

    fn literal(&mut self, literal: &'a Literal, span: Span) {
        if let Literal::Str(text) = literal {
            self.mention(Entity::Literal, text, span);
        }
    }

    fn mention(&mut self, entity: Entity, name: &'a str, span: Span) {
        self.found.push(Mention { entity, name, span });
    }

    fn regex(&mut self, regex: &'a Regex) {
        match &regex.kind {
            RegexKind::Empty | RegexKind::Any => {}
            RegexKind::Step(formula) => self.formula(formula),
            RegexKind::Event(event) => self.event(event),
            RegexKind::Concat(parts) | RegexKind::Union(parts) | RegexKind::Intersection(parts) => {
                parts.iter().for_each(|part| self.regex(part));
            }
            RegexKind::Complement(inner)
            | RegexKind::Star(inner)
            | RegexKind::Plus(inner)
            | RegexKind::Optional(inner) => self.regex(inner),
        }
    }

    fn pattern(&mut self, pattern: &'a Pattern) {
        match &pattern.kind {
            PatternKind::Empty => {}
            PatternKind::Position(events) => events.iter().for_each(|event| self.event(event)),
            PatternKind::Then(parts)
            | PatternKind::Union(parts)
            | PatternKind::Intersection(parts) => parts.iter().for_each(|part| self.pattern(part)),
            PatternKind::Star(inner) => self.pattern(inner),
        }
    }
}
