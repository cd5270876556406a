//! Atoms, prepared for evaluation.

use foresee_trace::{Event, Id, Op, Pool, ThreadId, Value};

use super::{Strings, literal_value};
use crate::ast::{ArithOp, Atom, CompareOp, EventAtom, EventKind, Expr, ExprKind, Term};
use crate::resolve::Resolved;
use crate::value::{EvalError, Val, arith, compare};

/// A condition on the state.
#[derive(Debug)]
pub(super) enum StateAtom {
    /// A variable against a constant: most atoms, and the fast case.
    Threshold(CompareOp, u16, Val),
    Compare(CompareOp, Code, Code),
    Truth(Code),
}

/// An expression whose variables are slots.
#[derive(Debug)]
pub(super) enum Code {
    Const(Val),
    Slot(u16),
    Neg(Box<Code>),
    Arith(ArithOp, Box<Code>, Box<Code>),
}

impl StateAtom {
    pub(super) fn new(
        atom: &Atom,
        slot: &mut impl FnMut(&str) -> u16,
        strings: &mut Strings<'_>,
    ) -> StateAtom {
        match atom {
            Atom::Compare(op, a, b) => {
                match (Code::new(a, slot, strings), Code::new(b, slot, strings)) {
                    (Code::Slot(slot), Code::Const(value)) => {
                        StateAtom::Threshold(*op, slot, value)
                    }
                    (a, b) => StateAtom::Compare(*op, a, b),
                }
            }
            Atom::Truth(e) => StateAtom::Truth(Code::new(e, slot, strings)),
            Atom::Event(_) => unreachable!("event atoms are shapes"),
        }
    }

    #[inline]
    pub(super) fn holds(&self, values: &[Option<Value>]) -> (bool, Option<EvalError>) {
        let result = match self {
            StateAtom::Threshold(op, slot, bound) => match values[usize::from(*slot)] {
                Some(value) => Ok(compare(*op, value.into(), *bound)),
                None => Err(EvalError::Unknown),
            },
            StateAtom::Compare(op, a, b) => {
                a.value(values).and_then(|a| Ok(compare(*op, a, b.value(values)?)))
            }
            StateAtom::Truth(e) => e.value(values).and_then(Val::truth).map(|b| (b, None)),
        };
        result.unwrap_or_else(|error| (false, Some(error)))
    }

    pub(super) fn mentions(&self, slot: u16) -> bool {
        match self {
            StateAtom::Threshold(_, s, _) => *s == slot,
            StateAtom::Compare(_, a, b) => a.mentions(slot) || b.mentions(slot),
            StateAtom::Truth(e) => e.mentions(slot),
        }
    }
}

impl Code {
    fn new(e: &Expr, slot: &mut impl FnMut(&str) -> u16, strings: &mut Strings<'_>) -> Code {
        match &e.kind {
            // Literals are in the range of values: the parser rejects others.
            ExprKind::Literal(l) => {
                Code::Const(literal_value(l, strings).map_or(Val::Float(f64::NAN), Val::from))
            }
            ExprKind::Var(name) => Code::Slot(slot(name)),
            ExprKind::Neg(e) => match Code::new(e, slot, strings) {
                Code::Const(value) if value.negate().is_ok() => {
                    Code::Const(value.negate().unwrap_or(value))
                }
                code => Code::Neg(Box::new(code)),
            },
            ExprKind::Arith(op, a, b) => {
                let (a, b) = (Code::new(a, slot, strings), Code::new(b, slot, strings));
                Code::Arith(*op, Box::new(a), Box::new(b))
            }
        }
    }

    fn value(&self, values: &[Option<Value>]) -> Result<Val, EvalError> {
        match self {
            Code::Const(value) => Ok(*value),
            Code::Slot(slot) => values[usize::from(*slot)].map(Val::from).ok_or(EvalError::Unknown),
            Code::Neg(e) => e.value(values)?.negate(),
            Code::Arith(op, a, b) => arith(*op, a.value(values)?, b.value(values)?),
        }
    }

    fn mentions(&self, slot: u16) -> bool {
        match self {
            Code::Const(_) => false,
            Code::Slot(s) => *s == slot,
            Code::Neg(e) => e.mentions(slot),
            Code::Arith(_, a, b) => a.mentions(slot) || b.mentions(slot),
        }
    }
}

/// An event atom without its target, which the tables handle.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) bit: u8,
    /// The targets that match; `None` means any.
    pub(super) targets: Option<Vec<u32>>,
    pub(super) kind: EventKind,
    /// The threads that match; `None` means any.
    pub(super) threads: Option<Vec<ThreadId>>,
    args: Vec<Option<Val>>,
}

impl Shape {
    /// The shape of an atom, or `None` if the trace has no such entity.
    pub(super) fn new(
        bit: u8,
        atom: &EventAtom,
        resolved: &Resolved,
        strings: &mut Strings<'_>,
    ) -> Option<Shape> {
        let targets = match &atom.target {
            Term::Name(ident) => Some(target_ids(atom.kind, &ident.name, resolved)?),
            _ => None,
        };
        let threads = match &atom.thread {
            Term::Name(ident) => Some(resolved.threads.get(&ident.name)?.clone()),
            _ => None,
        };
        let mut args = Vec::new();
        for arg in &atom.args {
            args.push(match arg {
                Term::Any | Term::Param(_) => None,
                Term::Name(ident) => Some(Val::Str(strings.id(&ident.name))),
                Term::Literal(literal, _) => Some(literal_value(literal, strings)?.into()),
            });
        }
        Some(Shape { bit, targets, kind: atom.kind, threads, args })
    }

    /// Whether the atom has arguments.
    pub(super) fn has_args(&self) -> bool {
        !self.args.is_empty()
    }

    /// Whether events of this operation may match.
    pub(super) fn is_about(&self, op: Op) -> bool {
        match self.kind {
            EventKind::Read => op.reads(),
            EventKind::Write => op.writes(),
            EventKind::Acquire => matches!(op, Op::Acquire | Op::AcquireShared | Op::WaitEnd),
            EventKind::Release => matches!(op, Op::Release | Op::ReleaseShared | Op::WaitBegin),
            EventKind::Fork => op == Op::Fork,
            EventKind::Join => op == Op::Join,
            EventKind::Enter => op == Op::Enter,
            EventKind::Exit => op == Op::Exit,
            EventKind::Event => op == Op::Event,
        }
    }

    /// Whether an event of the right operation and target matches.
    #[inline]
    pub(super) fn matches(&self, event: &Event, pool: &Pool) -> bool {
        if self.threads.as_ref().is_some_and(|threads| !threads.contains(&event.thread())) {
            return false;
        }
        if self.args.is_empty() {
            return true;
        }
        let values = pool.values(event);
        let values = args(self.kind, &values);
        self.args.len() <= values.len()
            && self.args.iter().zip(values).all(|(arg, &value)| {
                arg.is_none_or(|arg| compare(CompareOp::Eq, value.into(), arg).0)
            })
    }
}

/// The arguments of an event as an atom of this kind sees them: the value read for a read, the
/// value written for a write, which differ for read-modify-writes.
pub(crate) fn args(kind: EventKind, values: &[Value]) -> &[Value] {
    match kind {
        EventKind::Read => &values[..values.len().min(1)],
        EventKind::Write => &values[values.len().saturating_sub(1)..],
        _ => values,
    }
}

fn target_ids(kind: EventKind, name: &str, resolved: &Resolved) -> Option<Vec<u32>> {
    fn numbers<I: Id>(ids: &[I]) -> Vec<u32> {
        ids.iter().map(|id| id.index() as u32).collect()
    }
    match kind {
        EventKind::Read | EventKind::Write => resolved.vars.get(name).map(|&id| numbers(&[id])),
        EventKind::Acquire | EventKind::Release => resolved.locks.get(name).map(|l| numbers(l)),
        EventKind::Fork | EventKind::Join => resolved.threads.get(name).map(|t| numbers(t)),
        EventKind::Enter | EventKind::Exit | EventKind::Event => {
            resolved.syms.get(name).map(|s| numbers(s))
        }
    }
}
