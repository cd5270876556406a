//! Formulas over the present and the past, as straight-line programs.
//!
//! The value of such a formula at a step depends on the letter of the step and one remembered bit
//! per temporal operator (Havelund and Rosu 2002). The program computes all subformulas from the
//! inside out, without short-circuiting: every operator must store its bit. Equal subformulas are
//! computed once.

use std::collections::HashMap;

use crate::ast::{BinaryOp, Formula, FormulaKind, UnaryOp};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};

/// The maximum number of temporal operators of a formula: their bits share one word.
const MAX_BITS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Const(bool),
    Atom(u8),
    Unary(UnaryOp, u32),
    Binary(BinaryOp, u32, u32),
}

/// A program; operands precede their operators.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    nodes: Vec<Node>,
    /// The number of the remembered bit, for temporal operators.
    bits: Vec<u8>,
    used_bits: usize,
    index: HashMap<Node, u32>,
}

/// The index of a formula's value among the values of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Root(u32);

/// The values of all nodes after a step.
#[derive(Debug)]
pub(crate) struct Values(Vec<bool>);

impl Values {
    pub(crate) fn of(&self, root: Root) -> bool {
        self.0[root.0 as usize]
    }
}

impl Program {
    /// Adds a formula.
    pub(crate) fn add(
        &mut self,
        formula: &Formula,
        atoms: &mut Alphabet,
    ) -> Result<Root, Diagnostic> {
        let node = match &formula.kind {
            FormulaKind::Const(b) => Node::Const(*b),
            FormulaKind::Atom(atom) => {
                let number = atoms.number(atom).map_err(|e| {
                    let error = Diagnostic::error(
                        "too-many-atoms",
                        e.to_string(),
                        formula.span,
                        "one more here",
                    );
                    error.help("split the property into several")
                })?;
                Node::Atom(number as u8)
            }
            FormulaKind::Let(_, inner) => return self.add(inner, atoms),
            FormulaKind::Unary(op, a) if !op.is_future() => Node::Unary(*op, self.add(a, atoms)?.0),
            FormulaKind::Binary(op, a, b) if !op.is_future() => {
                Node::Binary(*op, self.add(a, atoms)?.0, self.add(b, atoms)?.0)
            }
            FormulaKind::Unary(..) | FormulaKind::Binary(..) => {
                return Err(Diagnostic::error(
                    "future-in-past",
                    "a future-time operator is not allowed here",
                    formula.span,
                    "refers to later steps",
                )
                .help("a future operator may contain past ones, but it must not be inside them or in a condition on one step"));
            }
        };
        if let Some(&i) = self.index.get(&node) {
            return Ok(Root(i));
        }
        let temporal = match node {
            Node::Unary(op, _) => op.is_past(),
            Node::Binary(op, ..) => op.is_past(),
            Node::Const(_) | Node::Atom(_) => false,
        };
        if temporal && self.used_bits == MAX_BITS {
            return Err(Diagnostic::error(
                "too-many-operators",
                format!("a property can have at most {MAX_BITS} different past-time operators"),
                formula.span,
                "one more here",
            )
            .help("split the property into several"));
        }
        let i = self.nodes.len() as u32;
        self.nodes.push(node);
        self.bits.push(self.used_bits as u8);
        self.used_bits += usize::from(temporal);
        self.index.insert(node, i);
        Ok(Root(i))
    }

    /// Computes all values at a step. `memory` has the bits of the previous step, or is `None` at
    /// the first step; the new bits are returned.
    pub(crate) fn run(&self, memory: Option<u64>, letter: Letter) -> (Values, u64) {
        let mut values: Vec<bool> = Vec::with_capacity(self.nodes.len());
        let mut kept = 0u64;
        for (node, &bit) in self.nodes.iter().zip(&self.bits) {
            // `None` at the first step.
            let before = memory.map(|m| m >> bit & 1 == 1);
            let mut keep = |b: bool| kept |= u64::from(b) << bit;
            let value = match *node {
                Node::Const(b) => b,
                Node::Atom(i) => letter.has(i.into()),
                Node::Unary(op, a) => {
                    let a = values[a as usize];
                    match op {
                        UnaryOp::Not => !a,
                        UnaryOp::Prev => {
                            keep(a);
                            before.unwrap_or(a)
                        }
                        UnaryOp::Start => {
                            keep(a);
                            before.is_some_and(|before| a && !before)
                        }
                        UnaryOp::End => {
                            keep(a);
                            before.is_some_and(|before| before && !a)
                        }
                        UnaryOp::Once => {
                            let value = a || before.unwrap_or(false);
                            keep(value);
                            value
                        }
                        UnaryOp::Hist => {
                            let value = a && before.unwrap_or(true);
                            keep(value);
                            value
                        }
                        UnaryOp::Next | UnaryOp::Eventually | UnaryOp::Always => {
                            unreachable!("refused by `add`")
                        }
                    }
                }
                Node::Binary(op, a, b) => {
                    let (a, b) = (values[a as usize], values[b as usize]);
                    let past = match op {
                        BinaryOp::And => a && b,
                        BinaryOp::Or => a || b,
                        BinaryOp::Implies => !a || b,
                        BinaryOp::Iff => a == b,
                        BinaryOp::Since => b || (a && before.unwrap_or(false)),
                        BinaryOp::WeakSince => b || (a && before.unwrap_or(true)),
                        BinaryOp::Interval => !b && (a || before.unwrap_or(false)),
                        BinaryOp::WeakInterval => !b && (a || before.unwrap_or(true)),
                        BinaryOp::Until | BinaryOp::WeakUntil | BinaryOp::Release => {
                            unreachable!("refused by `add`")
                        }
                    };
                    if op.is_past() {
                        keep(past);
                    }
                    past
                }
            };
            values.push(value);
        }
        (Values(values), kept)
    }
}

/// Whether a formula refers to later steps.
pub(crate) fn looks_ahead(formula: &Formula) -> bool {
    match &formula.kind {
        FormulaKind::Const(_) | FormulaKind::Atom(_) => false,
        FormulaKind::Let(_, f) => looks_ahead(f),
        FormulaKind::Unary(op, f) => op.is_future() || looks_ahead(f),
        FormulaKind::Binary(op, a, b) => op.is_future() || looks_ahead(a) || looks_ahead(b),
    }
}

/// Whether a formula refers to earlier steps.
pub(crate) fn looks_back(formula: &Formula) -> bool {
    match &formula.kind {
        FormulaKind::Const(_) | FormulaKind::Atom(_) => false,
        FormulaKind::Let(_, f) => looks_back(f),
        FormulaKind::Unary(op, f) => op.is_past() || looks_back(f),
        FormulaKind::Binary(op, a, b) => op.is_past() || looks_back(a) || looks_back(b),
    }
}
