//! The syntax tree of a specification.
//!
//! Every node that a message may point to has a [`Span`]. Equality ignores spans, so a
//! specification and its reformatted text compare equal.

use std::sync::Arc;

/// A range of the source text, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// A name and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name, without quotes.
    pub name: String,
    /// Its position in the source.
    pub span: Span,
}

/// A whole specification file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Initial values of program variables, in the order given.
    pub inits: Vec<Init>,
    /// Named formulas. They are already expanded where they are used; the formatter and `spec
    /// explain` need them here.
    pub lets: Vec<Let>,
    /// The methods whose calls are atomic regions; `*` in a name matches any text.
    pub atomics: Vec<Ident>,
    /// What must never happen.
    pub properties: Vec<Property>,
}

/// `init x = 0`
#[derive(Clone, Debug, PartialEq)]
pub struct Init {
    /// The program variable.
    pub var: Ident,
    /// Its value before the first event.
    pub value: Literal,
}

/// `let p = w > 26`
#[derive(Clone, Debug, PartialEq)]
pub struct Let {
    /// The name.
    pub name: Ident,
    /// The formula that it abbreviates.
    pub formula: Formula,
}

/// One property, of any logic.
#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// Its name in reports.
    pub name: Ident,
    /// Parameters, which make it one property per binding.
    pub params: Vec<Ident>,
    /// Parameters with a type, which make it one property for each object of the type.
    pub objects: Vec<ObjectParam>,
    /// Its content.
    pub body: Body,
    /// The whole item.
    pub span: Span,
}

/// `a: account`: a parameter that stands for every object of a type. The property speaks of its
/// fields: `a.balance`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectParam {
    /// The parameter.
    pub name: Ident,
    /// The type, or the end of its name.
    pub of: Ident,
}

/// The forms of properties.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// `property NAME: F` — F must hold.
    Formula(Formula),
    /// `violation NAME: R` — no prefix may match R.
    Violation(Regex),
    /// `pattern NAME: a .. b` — these events must not occur in this order.
    Pattern(Pattern),
    /// `automaton NAME { … }` — the state `bad` must not be reached.
    Automaton(Automaton),
    /// A monitor written in Rust, which has no text.
    Custom(crate::custom::Custom),
}

/// A temporal formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    /// The operator and its operands.
    pub kind: FormulaKind,
    /// Its position in the source.
    pub span: Span,
}

/// The operators of temporal formulas.
#[derive(Clone, Debug, PartialEq)]
pub enum FormulaKind {
    /// `true` or `false`.
    Const(bool),
    /// A statement about the state or the event of this step.
    Atom(Atom),
    /// A name bound by `let`, with its formula. Shared, because lets that use other lets twice
    /// would otherwise double in size at every level.
    Let(Ident, Arc<Formula>),
    /// One operand.
    Unary(UnaryOp, Box<Formula>),
    /// Two operands.
    Binary(BinaryOp, Box<Formula>, Box<Formula>),
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `! F`
    Not,
    /// `prev F`: F held one step ago (now, at the first step).
    Prev,
    /// `once F`: F held at some step up to now.
    Once,
    /// `hist F`: F held at every step up to now.
    Hist,
    /// `start(F)`: F holds and did not hold one step ago.
    Start,
    /// `end(F)`: F does not hold and did one step ago.
    End,
    /// `next F`
    Next,
    /// `eventually F`
    Eventually,
    /// `always F`
    Always,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `F && G`
    And,
    /// `F || G`
    Or,
    /// `F -> G`
    Implies,
    /// `F <-> G`
    Iff,
    /// `F since G` (strong)
    Since,
    /// `F wsince G` (weak)
    WeakSince,
    /// `[F, G)` (strong interval)
    Interval,
    /// `[F, G)w` (weak interval)
    WeakInterval,
    /// `F until G`
    Until,
    /// `F wuntil G`
    WeakUntil,
    /// `F release G`
    Release,
}

impl UnaryOp {
    /// Whether the operator refers to later steps.
    pub fn is_future(self) -> bool {
        matches!(self, UnaryOp::Next | UnaryOp::Eventually | UnaryOp::Always)
    }
    /// Whether the operator refers to earlier steps.
    pub fn is_past(self) -> bool {
        !self.is_future() && self != UnaryOp::Not
    }
}

impl BinaryOp {
    /// Whether the operator refers to later steps.
    pub fn is_future(self) -> bool {
        matches!(self, BinaryOp::Until | BinaryOp::WeakUntil | BinaryOp::Release)
    }
    /// Whether the operator refers to earlier steps.
    pub fn is_past(self) -> bool {
        use BinaryOp::{Interval, Since, WeakInterval, WeakSince};
        matches!(self, Since | WeakSince | Interval | WeakInterval)
    }
}

/// A condition on a single step.
#[derive(Clone, Debug, PartialEq)]
pub enum Atom {
    /// A comparison of two expressions over the program's state: `w > 26`.
    Compare(CompareOp, Expr, Expr),
    /// An expression used as a condition: a boolean, or a number other than zero.
    Truth(Expr),
    /// The step is an event of this shape.
    Event(EventAtom),
}

/// How expressions are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// An expression over program variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The operator and its operands.
    pub kind: ExprKind,
    /// Its position in the source.
    pub span: Span,
}

/// The forms of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// A program variable: `landing`, `file.c:landing`, `ctl.valve.open`, `a[3]`.
    Var(String),
    /// `- E`
    Neg(Box<Expr>),
    /// Two operands.
    Arith(ArithOp, Box<Expr>, Box<Expr>),
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArithOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
}

/// A constant value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// An integer from `i64::MIN` to `u64::MAX`.
    Int(i128),
    /// A number with a decimal point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
    /// `"text"`
    Str(String),
}

/// The shape of an event: `exit(iterator, c, i)@t1`.
#[derive(Clone, Debug, PartialEq)]
pub struct EventAtom {
    /// The kind of the event.
    pub kind: EventKind,
    /// The variable, lock, thread, method or event name; [`Term::Any`] for `_`.
    pub target: Term,
    /// The leading arguments; an event may have more.
    pub args: Vec<Term>,
    /// `@thread`, or any thread.
    pub thread: Term,
    /// Its position in the source.
    pub span: Span,
}

/// The kinds of events that specifications can mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `read(x)`: any kind of read, including read-modify-writes.
    Read,
    /// `write(x)`: any kind of write, including read-modify-writes.
    Write,
    /// `acquire(l)`: outermost acquires, including shared ones, and the end of a wait.
    Acquire,
    /// `release(l)`: outermost releases, including shared ones, and the beginning of a wait.
    Release,
    /// `fork(t)`
    Fork,
    /// `join(t)`
    Join,
    /// `enter(f, args…)`
    Enter,
    /// `exit(f, args…)`
    Exit,
    /// `event(n, args…)`
    Event,
}

/// What an operand of an event atom matches.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `_` or omitted: anything.
    Any,
    /// A name of a program entity.
    Name(Ident),
    /// A parameter of the property: it is bound, or must equal its binding.
    Param(Ident),
    /// A constant.
    Literal(Literal, Span),
}

/// An extended regular expression over steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Regex {
    /// The operator and its operands.
    pub kind: RegexKind,
    /// Its position in the source.
    pub span: Span,
}

/// The forms of regular expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum RegexKind {
    /// `()`: the empty word.
    Empty,
    /// `.`: any one step.
    Any,
    /// `{F}`: one step at which F holds; F has no temporal operators.
    Step(Formula),
    /// One event.
    Event(EventAtom),
    /// Juxtaposition.
    Concat(Vec<Regex>),
    /// `|`
    Union(Vec<Regex>),
    /// `&`
    Intersection(Vec<Regex>),
    /// `~R`: every word that R does not match.
    Complement(Box<Regex>),
    /// `R*`
    Star(Box<Regex>),
    /// `R+`
    Plus(Box<Regex>),
    /// `R?`
    Optional(Box<Regex>),
}

/// A pattern or a closure of patterns.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The operator and its operands.
    pub kind: PatternKind,
    /// Its position in the source.
    pub span: Span,
}

/// The forms of patterns.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    /// One position: any of these events (`a / b` in the source, usually one).
    Position(Vec<EventAtom>),
    /// `P .. Q`: P and later Q, anything in between. Also written for juxtaposition.
    Then(Vec<Pattern>),
    /// `P | Q`
    Union(Vec<Pattern>),
    /// `P & Q`: a word in both.
    Intersection(Vec<Pattern>),
    /// `P*`: the empty word, or P.
    Star(Box<Pattern>),
    /// `()`: the empty word, which every run contains.
    Empty,
}

/// An explicit automaton.
#[derive(Clone, Debug, PartialEq)]
pub struct Automaton {
    /// The initial states, at least one.
    pub initial: Vec<Ident>,
    /// The states that have a row, in source order.
    pub states: Vec<AutomatonState>,
}

/// The row of one state.
#[derive(Clone, Debug, PartialEq)]
pub struct AutomatonState {
    /// Its name; `bad` is the violating state.
    pub name: Ident,
    /// The transitions. A step that matches none of them stays in the state; one that matches
    /// several goes to all of their targets.
    pub edges: Vec<Edge>,
}

/// One transition: `event(grant) -> bad` or `{x > 3} -> next`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// The condition on the step: a formula without temporal operators.
    pub guard: Formula,
    /// The state it goes to.
    pub target: Ident,
}
