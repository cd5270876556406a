//! Shared by the tests of several logics: random formulas and words, and traces from text.

use foresee_trace::{Event, Op, ThreadId, Trace, Value};

use crate::ast::{
    Atom, BinaryOp, Body, Expr, ExprKind, Formula, FormulaKind, Ident, Property, Span, Spec,
    UnaryOp,
};
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, logic_of};
use crate::monitor::{Monitor, StateId};
use crate::property::Compiled;
use crate::resolve;
use crate::run::{ObservedMonitor, Violation};

pub(crate) const PAST_UNARY: &[UnaryOp] =
    &[UnaryOp::Prev, UnaryOp::Once, UnaryOp::Hist, UnaryOp::Start, UnaryOp::End];
pub(crate) const PAST_BINARY: &[BinaryOp] =
    &[BinaryOp::Since, BinaryOp::WeakSince, BinaryOp::Interval, BinaryOp::WeakInterval];
pub(crate) const FUTURE_UNARY: &[UnaryOp] = &[UnaryOp::Next, UnaryOp::Eventually, UnaryOp::Always];
pub(crate) const FUTURE_BINARY: &[BinaryOp] =
    &[BinaryOp::Until, BinaryOp::WeakUntil, BinaryOp::Release];
const BOOLEAN: &[BinaryOp] = &[BinaryOp::And, BinaryOp::Or, BinaryOp::Implies, BinaryOp::Iff];

pub(crate) fn formula(kind: FormulaKind) -> Formula {
    Formula { kind, span: Span::default() }
}

pub(crate) fn ident(name: &str) -> Ident {
    Ident { name: name.into(), span: Span::default() }
}

/// The atom that is bit `i` of test letters: variable `p{i}` as a truth value.
pub(crate) fn atom(i: usize) -> Formula {
    let var = Expr { kind: ExprKind::Var(format!("p{i}")), span: Span::default() };
    formula(FormulaKind::Atom(Atom::Truth(var)))
}

pub(crate) fn unary(op: UnaryOp, f: Formula) -> Formula {
    formula(FormulaKind::Unary(op, Box::new(f)))
}

pub(crate) fn binary(op: BinaryOp, a: Formula, b: Formula) -> Formula {
    formula(FormulaKind::Binary(op, Box::new(a), Box::new(b)))
}

/// A random formula with at most `size` operators, temporal ones from these lists.
pub(crate) fn random_formula(
    rng: &mut fastrand::Rng,
    atoms: usize,
    size: usize,
    temporal: (&[UnaryOp], &[BinaryOp]),
) -> Formula {
    if size == 0 {
        return match rng.u8(..12) {
            0 => formula(FormulaKind::Const(rng.bool())),
            _ => atom(rng.usize(..atoms)),
        };
    }
    let (left, pick) = (rng.usize(..size), rng.u8(..4));
    let right = size - 1 - left;
    let sub = |rng: &mut fastrand::Rng, size| random_formula(rng, atoms, size, temporal);
    match pick {
        0 => {
            let op = *rng.choice(BOOLEAN).unwrap();
            binary(op, sub(rng, left), sub(rng, right))
        }
        1 if !temporal.1.is_empty() => {
            let op = *rng.choice(temporal.1).unwrap();
            binary(op, sub(rng, left), sub(rng, right))
        }
        2 => unary(UnaryOp::Not, sub(rng, size - 1)),
        _ if !temporal.0.is_empty() => {
            let op = *rng.choice(temporal.0).unwrap();
            unary(op, sub(rng, size - 1))
        }
        _ => unary(UnaryOp::Not, sub(rng, size - 1)),
    }
}

/// The value of a formula without future operators at step `n`, directly from the definitions.
pub(crate) fn holds_at(f: &Formula, word: &[u64], n: usize) -> bool {
    let at = |f: &Formula, i: usize| holds_at(f, word, i);
    match &f.kind {
        FormulaKind::Const(b) => *b,
        FormulaKind::Atom(Atom::Truth(e)) => {
            let ExprKind::Var(name) = &e.kind else { panic!("not a test atom") };
            word[n] >> name[1..].parse::<u32>().unwrap() & 1 == 1
        }
        FormulaKind::Atom(_) => panic!("not a test atom"),
        FormulaKind::Let(_, f) => at(f, n),
        FormulaKind::Unary(op, f) => match op {
            UnaryOp::Not => !at(f, n),
            UnaryOp::Prev => at(f, n.saturating_sub(1)),
            UnaryOp::Once => (0..=n).any(|i| at(f, i)),
            UnaryOp::Hist => (0..=n).all(|i| at(f, i)),
            UnaryOp::Start => at(f, n) && n > 0 && !at(f, n - 1),
            UnaryOp::End => !at(f, n) && n > 0 && at(f, n - 1),
            _ => panic!("a future operator"),
        },
        FormulaKind::Binary(op, a, b) => {
            let since = || (0..=n).any(|j| at(b, j) && (j + 1..=n).all(|i| at(a, i)));
            // Some step had a, and from it on no step had b.
            let interval = || (0..=n).any(|j| at(a, j) && (j..=n).all(|i| !at(b, i)));
            match op {
                BinaryOp::And => at(a, n) && at(b, n),
                BinaryOp::Or => at(a, n) || at(b, n),
                BinaryOp::Implies => !at(a, n) || at(b, n),
                BinaryOp::Iff => at(a, n) == at(b, n),
                BinaryOp::Since => since(),
                BinaryOp::WeakSince => since() || (0..=n).all(|i| at(a, i)),
                BinaryOp::Interval => interval(),
                BinaryOp::WeakInterval => interval() || (0..=n).all(|i| !at(b, i)),
                _ => panic!("a future operator"),
            }
        }
    }
}

/// Compiles a body whose atoms have the same numbers as the test's letters.
pub(crate) fn compile(body: &Body, atoms: usize) -> Draft {
    let mut alphabet = Alphabet::default();
    for i in 0..atoms {
        let FormulaKind::Atom(atom) = atom(i).kind else { unreachable!() };
        alphabet.number(&atom).unwrap();
    }
    logic_of(body).compile(body, &mut alphabet).unwrap()
}

/// The state of a monitor after a word.
pub(crate) fn after(monitor: &mut Monitor, word: &[u64]) -> StateId {
    let start = monitor.start();
    word.iter().fold(start, |s, &l| monitor.step(s, Letter(l)).unwrap())
}

pub(crate) fn random_word(rng: &mut fastrand::Rng, atoms: usize, max: usize) -> Vec<u64> {
    (0..rng.usize(..=max)).map(|_| rng.u64(..1 << atoms)).collect()
}

/// Parses a specification that must be correct.
pub(crate) fn spec(text: &str) -> Spec {
    let parsed = crate::parse(text);
    let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{text}\n{errors:?}");
    parsed.spec
}

/// The only property of a specification.
pub(crate) fn property(text: &str) -> Property {
    spec(text).properties.remove(0)
}

/// A trace from lines such as `T1 w x=1; T2 enter next i1`: reads, writes and their values, locks,
/// forks, joins, and calls and events with arguments.
pub(crate) fn trace(text: &str) -> Trace {
    let mut trace = Trace::default();
    for line in text.split(';').map(str::trim).filter(|l| !l.is_empty()) {
        let mut words = line.split_whitespace();
        let (thread, op) = (words.next().unwrap(), words.next().unwrap());
        let thread = trace.names.thread(thread).unwrap();
        let op = *Op::ALL.iter().find(|o| o.word() == op).unwrap();
        let rest: Vec<&str> = words.flat_map(|w| w.split(['=', ','])).collect();
        push(&mut trace, thread, op, &rest);
    }
    trace
}

fn push(trace: &mut Trace, thread: ThreadId, op: Op, rest: &[&str]) {
    use foresee_trace::TargetKind;
    let names = &mut trace.names;
    let target = match op.target_kind() {
        TargetKind::Var => names.vars.intern(rest[0]).unwrap().0,
        TargetKind::Lock => names.locks.intern(rest[0]).unwrap().0,
        TargetKind::Thread => names.thread(rest[0]).unwrap().0,
        TargetKind::Sym => names.syms.intern(rest[0]).unwrap().0,
        kind => panic!("{kind:?} in a test trace"),
    };
    let values: Vec<Value> = rest[1..]
        .iter()
        .map(|v| match v.parse::<i64>() {
            Ok(n) => Value::Int(n),
            Err(_) => match v.parse::<f64>() {
                Ok(x) => Value::Float(x),
                Err(_) => Value::Str(names.syms.intern(v).unwrap()),
            },
        })
        .collect();
    let event = Event::new(thread, op).with_target(target).with_values(&values, &mut trace.pool);
    trace.events.push(event);
}

/// Monitors a trace with all properties of a specification.
pub(crate) fn observe(spec: &Spec, trace: &Trace) -> ObservedMonitor {
    let resolved = resolve(spec, &trace.names).resolved;
    let properties = Compiled::all(spec).unwrap();
    let mut monitor = ObservedMonitor::new(spec, properties, &resolved, &trace.names);
    for (i, event) in trace.events.iter().enumerate() {
        monitor.event(i as u64, event, &trace.pool);
    }
    monitor.finish();
    monitor
}

/// The violations of a specification in a trace.
pub(crate) fn violations(text: &str, events: &str) -> Vec<Violation> {
    observe(&spec(text), &trace(events)).take_violations()
}
