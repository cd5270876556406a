//! Letters: what one step of a run means to one property.
//!
//! A property sees a step only through its atoms, so a letter records which of them are true: one
//! bit each. All logics are automata over these letters.

use crate::ast::{Atom, CompareOp, EventAtom, EventKind, Expr, ExprKind, Literal, Term};
use crate::value::holds;

/// The atoms that are true at one step; bit `i` represents atom `i` of the [`Alphabet`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Letter(pub u64);

impl Letter {
    /// Whether atom `i` is true.
    #[inline]
    pub fn has(self, i: usize) -> bool {
        self.0 >> i & 1 == 1
    }
}

/// The distinct atoms of a property.
#[derive(Clone, Debug, Default)]
pub struct Alphabet {
    atoms: Vec<Atom>,
}

/// A property has more distinct atoms than a letter has bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a property can have at most {} different conditions and events", Alphabet::MAX)]
pub struct TooManyAtoms;

impl Alphabet {
    /// The maximum number of atoms of a property.
    pub const MAX: usize = 64;

    /// The number of an atom; a new atom gets the next one.
    pub fn number(&mut self, atom: &Atom) -> Result<usize, TooManyAtoms> {
        if let Some(i) = self.atoms.iter().position(|a| a == atom) {
            return Ok(i);
        }
        if self.atoms.len() == Self::MAX {
            return Err(TooManyAtoms);
        }
        self.atoms.push(atom.clone());
        Ok(self.atoms.len() - 1)
    }

    /// The atoms in the order of their bits.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// The bits of the atoms about events rather than the state.
    pub fn event_bits(&self) -> u64 {
        let bits = self.atoms.iter().enumerate();
        bits.filter(|(_, a)| matches!(a, Atom::Event(_))).fold(0, |m, (i, _)| m | 1 << i)
    }

    /// Whether some atom is about the state.
    pub fn has_state_atoms(&self) -> bool {
        self.atoms.iter().any(|a| !matches!(a, Atom::Event(_)))
    }

    /// Every letter that a step may have, or `None` if there are more than `limit`.
    ///
    /// The list leaves out what no run can have: one event that is two different things, or a
    /// variable that is below 3 and above 5. It may contain letters that no run has, because
    /// conditions on several variables count as independent. So a verdict that looks ahead over
    /// these letters may be late but is never wrong.
    pub fn letters(&self, limit: usize) -> Option<Vec<Letter>> {
        let mut letters = vec![0u64];
        let mut combine = |choices: Vec<u64>| {
            if letters.len().checked_mul(choices.len())? > limit {
                return None;
            }
            letters = letters.iter().flat_map(|l| choices.iter().map(move |c| l | c)).collect();
            Some(())
        };
        let mut grouped = 0u64;
        for (i, atom) in self.atoms.iter().enumerate() {
            if grouped >> i & 1 == 1 || matches!(atom, Atom::Event(_)) {
                continue;
            }
            match Threshold::of(atom) {
                Some(first) => {
                    let group: Vec<_> = (i..self.atoms.len())
                        .filter_map(|j| Some((j, Threshold::of(&self.atoms[j])?)))
                        .filter(|(_, t)| t.var == first.var)
                        .collect();
                    grouped |= group.iter().fold(0, |m, (j, _)| m | 1 << j);
                    combine(valuations(&group))?;
                }
                None => combine(vec![0, 1 << i])?,
            }
        }
        combine(self.event_choices(limit)?)?;
        letters.sort_unstable();
        Some(letters.into_iter().map(Letter).collect())
    }

    /// The sets of event atoms that one event may match, including the empty set.
    fn event_choices(&self, limit: usize) -> Option<Vec<u64>> {
        let mut choices = vec![0u64];
        for (i, atom) in self.atoms.iter().enumerate() {
            let Atom::Event(atom) = atom else { continue };
            let friends = self.atoms[..i].iter().enumerate().fold(0u64, |m, (j, other)| {
                let both = matches!(other, Atom::Event(o) if may_coincide(o, atom));
                m | u64::from(both) << j
            });
            let with: Vec<u64> =
                choices.iter().filter(|&&c| c & !friends == 0).map(|c| c | 1 << i).collect();
            choices.extend(with);
            if choices.len() > limit {
                return None;
            }
        }
        Some(choices)
    }
}

/// Whether one event can have both shapes; `true` if in doubt.
pub(crate) fn may_coincide(a: &EventAtom, b: &EventAtom) -> bool {
    use EventKind::{Read, Write};
    // A read-modify-write is a read and a write.
    let kinds = a.kind == b.kind || matches!((a.kind, b.kind), (Read, Write) | (Write, Read));
    // If one event is both a read and a write, their arguments are different values.
    let args = a.kind != b.kind || a.args.iter().zip(&b.args).all(|(a, b)| may_equal(a, b));
    kinds && args && may_equal(&a.target, &b.target) && may_equal(&a.thread, &b.thread)
}

fn may_equal(a: &Term, b: &Term) -> bool {
    match (a, b) {
        // `landing` may be short for `file.c:landing`.
        (Term::Name(a), Term::Name(b)) => a.name.ends_with(&b.name) || b.name.ends_with(&a.name),
        (Term::Literal(Literal::Int(a), _), Term::Literal(Literal::Int(b), _)) => a == b,
        (Term::Literal(Literal::Bool(a), _), Term::Literal(Literal::Bool(b), _)) => a == b,
        (Term::Literal(Literal::Str(a), _), Term::Literal(Literal::Str(b), _)) => a == b,
        _ => true,
    }
}

/// A comparison of one variable with one integer or text, which most atoms are.
struct Threshold<'a> {
    var: &'a str,
    op: CompareOp,
    bound: Bound<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Bound<'a> {
    Number(i128),
    Text(&'a str),
    /// Used as a condition: like `!= 0`, except that texts are false.
    Truth,
}

impl<'a> Threshold<'a> {
    fn of(atom: &'a Atom) -> Option<Threshold<'a>> {
        let var = |e: &'a Expr| match &e.kind {
            ExprKind::Var(name) => Some(name.as_str()),
            _ => None,
        };
        match atom {
            Atom::Event(_) => None,
            Atom::Truth(e) => {
                Some(Threshold { var: var(e)?, op: CompareOp::Ne, bound: Bound::Truth })
            }
            Atom::Compare(op, a, b) => match (var(a), var(b)) {
                (Some(var), None) => Some(Threshold { var, op: *op, bound: constant(b)? }),
                (None, Some(var)) => Some(Threshold { var, op: mirror(*op), bound: constant(a)? }),
                _ => None,
            },
        }
    }
}

fn constant(e: &Expr) -> Option<Bound<'_>> {
    match &e.kind {
        ExprKind::Literal(Literal::Int(n)) => Some(Bound::Number(*n)),
        ExprKind::Literal(Literal::Bool(b)) => Some(Bound::Number((*b).into())),
        ExprKind::Literal(Literal::Str(s)) => Some(Bound::Text(s)),
        ExprKind::Neg(e) => match constant(e)? {
            Bound::Number(n) => n.checked_neg().map(Bound::Number),
            _ => None,
        },
        _ => None,
    }
}

fn mirror(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

/// A value of one variable, as far as its thresholds can distinguish it.
enum Sample<'a> {
    /// A number: twice its index among the bounds, plus one if it equals the bound there.
    Number(usize),
    /// A text that some atom mentions, or any other text.
    Text(Option<&'a str>),
    NotANumber,
    Unknown,
}

/// All sets of true atoms of a group that compares one variable.
fn valuations(group: &[(usize, Threshold<'_>)]) -> Vec<u64> {
    let mut bounds: Vec<i128> = group
        .iter()
        .filter_map(|(_, t)| match t.bound {
            Bound::Number(n) => Some(n),
            Bound::Truth => Some(0),
            Bound::Text(_) => None,
        })
        .collect();
    bounds.sort_unstable();
    bounds.dedup();
    let texts = group.iter().filter_map(|(_, t)| match t.bound {
        Bound::Text(s) => Some(Sample::Text(Some(s))),
        _ => None,
    });
    let samples = (0..=2 * bounds.len()).map(Sample::Number).chain(texts).chain([
        Sample::Text(None),
        Sample::NotANumber,
        Sample::Unknown,
    ]);
    let holds_of = |t: &Threshold<'_>, sample: &Sample<'_>| match (sample, t.bound) {
        (Sample::Unknown, _) => false,
        (Sample::Text(a), Bound::Text(b)) => match t.op {
            CompareOp::Eq => *a == Some(b),
            CompareOp::Ne => *a != Some(b),
            _ => false,
        },
        (Sample::Text(_), Bound::Truth) => false,
        (Sample::Text(_) | Sample::NotANumber, _) | (_, Bound::Text(_)) => t.op == CompareOp::Ne,
        (Sample::Number(place), Bound::Number(_) | Bound::Truth) => {
            let bound = if let Bound::Number(n) = t.bound { n } else { 0 };
            let at = bounds.partition_point(|&b| b < bound);
            holds(t.op, Some(place.cmp(&(2 * at + 1))))
        }
    };
    let mut sets: Vec<u64> = samples
        .map(|s| group.iter().fold(0, |m, (i, t)| m | u64::from(holds_of(t, &s)) << i))
        .collect();
    sets.sort_unstable();
    sets.dedup();
    sets
}

#[cfg(test)]
mod tests;
