//! The names that a specification mentions, and the kind of thing that each denotes.

use std::collections::HashSet;

use crate::ast::{
    Atom, Body, EventAtom, EventKind, Expr, ExprKind, Formula, FormulaKind, Literal, ObjectParam,
    Pattern, PatternKind, Property, Regex, RegexKind, Span, Spec, Term,
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

/// A field of a parameter that stands for an object: `a.balance`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldMention<'a> {
    /// The parameter, by its place among the property's objects.
    pub(crate) object: usize,
    /// The way to the field: `balance`.
    pub(crate) path: &'a str,
    pub(crate) entity: Entity,
    /// As it is written.
    pub(crate) name: &'a str,
    pub(crate) span: Span,
}

impl FieldMention<'_> {
    /// Whether it is a variable or a lock, as fields are.
    pub(crate) fn is_usable(&self) -> bool {
        self.is_variable() || self.entity == Entity::Lock
    }

    /// Whether it is a variable.
    pub(crate) fn is_variable(&self) -> bool {
        matches!(self.entity, Entity::State | Entity::Accessed)
    }
}

/// The object that a name is a field of, by its place, and the way to the field.
pub(crate) fn field_of<'n>(name: &'n str, objects: &[ObjectParam]) -> Option<(usize, &'n str)> {
    let path = |object: &ObjectParam| name.strip_prefix(&object.name.name)?.strip_prefix('.');
    objects.iter().enumerate().find_map(|(i, object)| Some((i, path(object)?)))
}

/// Every mention in the properties of a specification, other than fields of their objects. Mentions
/// in a let are listed once, and only if a property uses it.
pub(crate) fn mentions(spec: &Spec) -> Vec<Mention<'_>> {
    let mut walk = Walk::default();
    spec.properties.iter().for_each(|property| walk.property(property));
    walk.found
}

/// Every mention of a field of an object in a property.
pub(crate) fn fields(property: &Property) -> Vec<FieldMention<'_>> {
    let mut walk = Walk::default();
    walk.property(property);
    walk.fields
}

/// The types whose objects a specification is about, each with the fields that it mentions.
pub fn object_types(spec: &Spec) -> Vec<(&str, Vec<&str>)> {
    let mut types: Vec<(&str, Vec<&str>)> = Vec::new();
    for property in &spec.properties {
        let mentioned = fields(property);
        for (i, object) in property.objects.iter().enumerate() {
            let of = object.of.name.as_str();
            let at = types.iter().position(|(name, _)| *name == of).unwrap_or_else(|| {
                types.push((of, Vec::new()));
                types.len() - 1
            });
            for field in mentioned.iter().filter(|f| f.object == i && f.is_variable()) {
                if !types[at].1.contains(&field.path) {
                    types[at].1.push(field.path);
                }
            }
        }
    }
    types
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

#[derive(Default)]
struct Walk<'a> {
    found: Vec<Mention<'a>>,
    fields: Vec<FieldMention<'a>>,
    /// The objects of the property.
    objects: &'a [ObjectParam],
    /// Lets that have been visited, by name; names are unique.
    lets: HashSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn property(&mut self, property: &'a Property) {
        self.objects = &property.objects;
        match &property.body {
            Body::Formula(formula) => self.formula(formula),
            Body::Violation(regex) => self.regex(regex),
            Body::Pattern(pattern) => self.pattern(pattern),
            Body::Automaton(automaton) => {
                let edges = automaton.states.iter().flat_map(|state| &state.edges);
                edges.for_each(|edge| self.formula(&edge.guard));
            }
            Body::Custom(custom) => custom.conditions.iter().for_each(|c| self.formula(c)),
        }
    }

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
                    // Lets have no parameters.
                    let objects = std::mem::take(&mut self.objects);
                    self.formula(body);
                    self.objects = objects;
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
        match field_of(name, self.objects).filter(|_| entity != Entity::Literal) {
            Some((object, path)) => {
                self.fields.push(FieldMention { object, path, entity, name, span });
            }
            None => self.found.push(Mention { entity, name, span }),
        }
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
