//! Words for conditions on one step: comparisons and events, plain or negated.

use crate::ast::{Atom, CompareOp, EventAtom, EventKind, Expr, Literal, Term};
use crate::print_atom;

/// The form of a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    /// It holds.
    Is,
    /// It holds and did not one step ago.
    Becomes,
    /// It does not hold and did one step ago.
    Stops,
}

/// A clause about an atom: `w is greater than 30`, `no thread writes count`.
pub(super) fn clause(atom: &Atom, mood: Mood, negated: bool) -> String {
    let (subject, complement) = match atom {
        Atom::Event(event) => {
            return change(&event_clause(event, negated && mood == Mood::Is), mood, negated);
        }
        Atom::Truth(expr) => (text(expr), "true".to_string()),
        Atom::Compare(op, left, right) => {
            (text(left), format!("{}{}", comparison(*op), text(right)))
        }
    };
    let verb = match (mood, negated) {
        (Mood::Is, false) => "is",
        (Mood::Is, true) => "is not",
        (Mood::Becomes, false) => "becomes",
        (Mood::Becomes, true) => "does not become",
        (Mood::Stops, false) => "stops being",
        (Mood::Stops, true) => "does not stop being",
    };
    format!("{subject} {verb} {complement}")
}

/// A clause for a change of something that has no verb of its own.
pub(super) fn change(what: &str, mood: Mood, negated: bool) -> String {
    match (mood, negated) {
        (Mood::Is, _) => what.to_string(),
        (Mood::Becomes, false) => format!("it becomes true that {what}"),
        (Mood::Becomes, true) => format!("it does not become true that {what}"),
        (Mood::Stops, false) => format!("it stops being true that {what}"),
        (Mood::Stops, true) => format!("it does not stop being true that {what}"),
    }
}

fn comparison(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "",
        CompareOp::Ne => "other than ",
        CompareOp::Lt => "less than ",
        CompareOp::Le => "at most ",
        CompareOp::Gt => "greater than ",
        CompareOp::Ge => "at least ",
    }
}

fn text(expr: &Expr) -> String {
    print_atom(&Atom::Truth(expr.clone()))
}

/// `thread t2 writes 5 to count`, or its negation.
fn event_clause(event: &EventAtom, negated: bool) -> String {
    let (verb, base, object) = match event.kind {
        EventKind::Read => ("reads", "read", "any variable"),
        EventKind::Write => ("writes", "write", "any variable"),
        EventKind::Acquire => ("acquires", "acquire", "any lock"),
        EventKind::Release => ("releases", "release", "any lock"),
        EventKind::Fork => ("starts", "start", "any thread"),
        EventKind::Join => ("joins", "join", "any thread"),
        EventKind::Enter => ("enters", "enter", "any method"),
        EventKind::Exit => ("leaves", "leave", "any method"),
        EventKind::Event => ("emits", "emit", "any event"),
    };
    let object = match &event.target {
        Term::Any => object.to_string(),
        named => match event.kind {
            EventKind::Fork | EventKind::Join => format!("thread {}", term(named)),
            EventKind::Event => format!("event {}", term(named)),
            _ => term(named),
        },
    };
    let object = with_arguments(event, object);
    match (&event.thread, negated) {
        (Term::Any, false) => format!("a thread {verb} {object}"),
        (Term::Any, true) => format!("no thread {verb} {object}"),
        (thread, false) => format!("thread {} {verb} {object}", term(thread)),
        (thread, true) => format!("thread {} does not {base} {object}", term(thread)),
    }
}

fn with_arguments(event: &EventAtom, object: String) -> String {
    // An event may have more arguments than are listed, so a trailing `_` only requires an argument
    // to exist.
    let args: Vec<String> = event.args.iter().map(term).collect();
    match (event.kind, &args[..]) {
        (_, []) => object,
        (EventKind::Read, [value]) => format!("{value} from {object}"),
        (EventKind::Write, [value]) => format!("{value} to {object}"),
        (_, [one]) => format!("{object} with argument {one}"),
        (_, several) => format!("{object} with arguments {}", several.join(", ")),
    }
}

/// The text of an operand of an event atom.
fn term(term: &Term) -> String {
    match term {
        Term::Any => "anything".into(),
        Term::Param(ident) => ident.name.clone(),
        Term::Name(ident) => shown(&ident.name),
        Term::Literal(Literal::Str(text), _) => format!("{text:?}"),
        Term::Literal(Literal::Int(n), _) => n.to_string(),
        Term::Literal(Literal::Float(x), _) => format!("{x:?}"),
        Term::Literal(Literal::Bool(b), _) => b.to_string(),
    }
}

/// A name from the specification, quoted where it could be mistaken for something else.
pub(super) fn shown(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_.:$[]-".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_string()
    } else {
        format!("`{}`", name.escape_debug())
    }
}
