//! A formula as alternatives: conditions on this step, and obligations from the next step on.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{BinaryOp, Formula, FormulaKind, UnaryOp};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::monitor::TooManyStates;
use crate::past::{Program, Root, looks_ahead, looks_back};

/// Negation normal form; operands precede their operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Const(bool),
    /// Atom `.0` is true, or false.
    Atom(u8, bool),
    /// Past formula `.0` is true, or false.
    Past(u8, bool),
    And(u32, u32),
    Or(u32, u32),
    /// Strong: false at the end of a finite run. Its obligation is the operand.
    Next(u32),
    /// Weak: true at the end of a finite run. Its obligation is the operand.
    WeakNext(u32),
    /// Its obligation is itself.
    Until(u32, u32),
    /// Its obligation is itself.
    Release(u32, u32),
}

/// One way to satisfy a set of obligations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Alternative {
    /// Atoms that must be true and false at this step.
    pub(super) yes: u64,
    pub(super) no: u64,
    /// Past formulas that must be true and false.
    pub(super) past_yes: u64,
    pub(super) past_no: u64,
    /// Obligations at the next step.
    pub(super) owed: u64,
}

impl Alternative {
    #[inline]
    pub(super) fn fits(&self, letter: Letter, past: u64) -> bool {
        letter.0 & self.yes == self.yes
            && letter.0 & self.no == 0
            && past & self.past_yes == self.past_yes
            && past & self.past_no == 0
    }

    /// The conjunction, or `None` if the two contradict each other.
    fn and(&self, other: &Alternative) -> Option<Alternative> {
        let both = Alternative {
            yes: self.yes | other.yes,
            no: self.no | other.no,
            past_yes: self.past_yes | other.past_yes,
            past_no: self.past_no | other.past_no,
            owed: self.owed | other.owed,
        };
        (both.yes & both.no == 0 && both.past_yes & both.past_no == 0).then_some(both)
    }

    /// Whether `other` requires everything that this requires.
    fn asks_less(&self, other: &Alternative) -> bool {
        self.yes & !other.yes == 0
            && self.no & !other.no == 0
            && self.past_yes & !other.past_yes == 0
            && self.past_no & !other.past_no == 0
            && self.owed & !other.owed == 0
    }
}

/// The maximum number of alternatives for one set of obligations.
const MAX_ALTERNATIVES: usize = 4_096;
/// Obligations are bits of one word.
const MAX_OBLIGATIONS: usize = 64;

type Alternatives = Arc<[Alternative]>;

/// A formula and its negation, ready to be unfolded.
#[derive(Debug, Default)]
pub(super) struct Unfolding {
    nodes: Vec<Node>,
    index: HashMap<Node, u32>,
    /// Nodes that can be obligations, by their bits.
    owable: Vec<u32>,
    /// Bits of obligations that must not be left open at the end of a finite run.
    strong: u64,
    /// Bits of obligations that must not be postponed forever.
    until: u64,
    program: Program,
    past: Vec<Root>,
    by_node: HashMap<u32, Alternatives>,
    by_set: HashMap<u64, Alternatives>,
}

impl Unfolding {
    /// The obligation that the formula, or its negation, holds at the next step.
    pub(super) fn owe(
        &mut self,
        formula: &Formula,
        positive: bool,
        atoms: &mut Alphabet,
    ) -> Result<u64, Diagnostic> {
        // Formulas are shared where the source names them, so they are identified by address.
        let body = self.normal(formula, positive, atoms, &mut HashMap::new())?;
        let node = self.intern(Node::Next(body), formula)?;
        Ok(self.bit(node))
    }

    pub(super) fn strong(&self) -> u64 {
        self.strong
    }

    pub(super) fn until(&self) -> u64 {
        self.until
    }

    pub(super) fn has_past(&self) -> bool {
        !self.past.is_empty()
    }

    /// The values of the past formulas at a step, as bits, and the new memory.
    pub(super) fn past(&self, memory: Option<u64>, letter: Letter) -> (u64, u64) {
        if self.past.is_empty() {
            return (0, 0);
        }
        let (values, memory) = self.program.run(memory, letter);
        let bits = self.past.iter().enumerate();
        (bits.fold(0, |m, (i, &root)| m | u64::from(values.of(root)) << i), memory)
    }

    fn bit(&self, node: u32) -> u64 {
        self.owable.iter().position(|&n| n == node).map_or(0, |i| 1 << i)
    }

    fn intern(&mut self, node: Node, at: &Formula) -> Result<u32, Diagnostic> {
        if let Some(&i) = self.index.get(&node) {
            return Ok(i);
        }
        let i = self.nodes.len() as u32;
        if matches!(node, Node::Next(_) | Node::WeakNext(_) | Node::Until(..) | Node::Release(..)) {
            if self.owable.len() == MAX_OBLIGATIONS {
                return Err(too_many("future-time operators, counting those of the negation", at));
            }
            let bit = 1 << self.owable.len();
            self.owable.push(i);
            match node {
                Node::Next(_) => self.strong |= bit,
                Node::Until(..) => {
                    self.strong |= bit;
                    self.until |= bit;
                }
                _ => {}
            }
        }
        self.nodes.push(node);
        self.index.insert(node, i);
        Ok(i)
    }

    /// The formula, or its negation, with negations only at the atoms.
    fn normal(
        &mut self,
        f: &Formula,
        positive: bool,
        atoms: &mut Alphabet,
        known: &mut HashMap<(*const Formula, bool), u32>,
    ) -> Result<u32, Diagnostic> {
        let key = (std::ptr::from_ref(f), positive);
        if let Some(&node) = known.get(&key) {
            return Ok(node);
        }
        let node = if !looks_ahead(f) && looks_back(f) {
            let root = self.program.add(f, atoms)?;
            let place = self.past.iter().position(|&r| r == root).unwrap_or(self.past.len());
            if place == self.past.len() {
                if place == MAX_OBLIGATIONS {
                    return Err(too_many("past-time subformulas", f));
                }
                self.past.push(root);
            }
            self.intern(Node::Past(place as u8, positive), f)?
        } else {
            self.operator(f, positive, atoms, known)?
        };
        known.insert(key, node);
        Ok(node)
    }

    fn operator(
        &mut self,
        f: &Formula,
        positive: bool,
        atoms: &mut Alphabet,
        known: &mut HashMap<(*const Formula, bool), u32>,
    ) -> Result<u32, Diagnostic> {
        let node = match &f.kind {
            FormulaKind::Const(b) => Node::Const(*b == positive),
            FormulaKind::Atom(atom) => {
                let number = atoms.number(atom).map_err(|e| {
                    Diagnostic::error("too-many-atoms", e.to_string(), f.span, "one more here")
                })?;
                Node::Atom(number as u8, positive)
            }
            FormulaKind::Let(_, inner) => return self.normal(inner, positive, atoms, known),
            FormulaKind::Unary(UnaryOp::Not, a) => return self.normal(a, !positive, atoms, known),
            FormulaKind::Unary(op, a) => {
                let a = self.normal(a, positive, atoms, known)?;
                let not_always = self.intern(Node::Const(false), f)?;
                let always = self.intern(Node::Const(true), f)?;
                match (op, positive) {
                    (UnaryOp::Next, true) => Node::Next(a),
                    (UnaryOp::Next, false) => Node::WeakNext(a),
                    (UnaryOp::Eventually, true) | (UnaryOp::Always, false) => {
                        Node::Until(always, a)
                    }
                    (UnaryOp::Eventually, false) | (UnaryOp::Always, true) => {
                        Node::Release(not_always, a)
                    }
                    _ => unreachable!("past operators are formulas of their own"),
                }
            }
            FormulaKind::Binary(op, a, b) => {
                let mut side = |f: &Formula, positive| self.normal(f, positive, atoms, known);
                match op {
                    BinaryOp::Iff => {
                        let (a_yes, a_no) = (side(a, true)?, side(a, false)?);
                        let (b_yes, b_no) = (side(b, positive)?, side(b, !positive)?);
                        let both = self.intern(Node::And(a_yes, b_yes), f)?;
                        let neither = self.intern(Node::And(a_no, b_no), f)?;
                        Node::Or(both, neither)
                    }
                    BinaryOp::WeakUntil => {
                        // a wuntil b = b release (a or b)
                        let (a, b) = (side(a, positive)?, side(b, positive)?);
                        if positive {
                            let either = self.intern(Node::Or(a, b), f)?;
                            Node::Release(b, either)
                        } else {
                            let neither = self.intern(Node::And(a, b), f)?;
                            Node::Until(b, neither)
                        }
                    }
                    _ => {
                        let a = side(a, positive != (*op == BinaryOp::Implies))?;
                        let b = side(b, positive)?;
                        match (op, positive) {
                            (BinaryOp::And, true) => Node::And(a, b),
                            (BinaryOp::And, false) => Node::Or(a, b),
                            (BinaryOp::Or | BinaryOp::Implies, true) => Node::Or(a, b),
                            (BinaryOp::Or | BinaryOp::Implies, false) => Node::And(a, b),
                            (BinaryOp::Until, true) | (BinaryOp::Release, false) => {
                                Node::Until(a, b)
                            }
                            (BinaryOp::Until, false) | (BinaryOp::Release, true) => {
                                Node::Release(a, b)
                            }
                            _ => unreachable!("past operators are formulas of their own"),
                        }
                    }
                }
            }
        };
        self.intern(node, f)
    }

    /// All ways to satisfy a set of obligations.
    pub(super) fn alternatives(&mut self, set: u64) -> Result<Alternatives, TooManyStates> {
        if let Some(known) = self.by_set.get(&set) {
            return Ok(known.clone());
        }
        let mut all: Alternatives = [Alternative::default()].into();
        for bit in (0..self.owable.len()).filter(|bit| set >> bit & 1 == 1) {
            let node = self.owable[bit];
            let due = match self.nodes[node as usize] {
                Node::Next(body) | Node::WeakNext(body) => body,
                _ => node,
            };
            let of_node = self.unfold(due)?;
            all = product(&all, &of_node)?;
        }
        self.by_set.insert(set, all.clone());
        Ok(all)
    }

    fn unfold(&mut self, node: u32) -> Result<Alternatives, TooManyStates> {
        if let Some(known) = self.by_node.get(&node) {
            return Ok(known.clone());
        }
        let anything = Alternative::default();
        let later: Alternatives = [Alternative { owed: self.bit(node), ..anything }].into();
        let all = match self.nodes[node as usize] {
            Node::Const(true) => [anything].into(),
            Node::Const(false) => [].into(),
            Node::Atom(i, true) => [Alternative { yes: 1 << i, ..anything }].into(),
            Node::Atom(i, false) => [Alternative { no: 1 << i, ..anything }].into(),
            Node::Past(i, true) => [Alternative { past_yes: 1 << i, ..anything }].into(),
            Node::Past(i, false) => [Alternative { past_no: 1 << i, ..anything }].into(),
            Node::And(a, b) => product(&self.unfold(a)?, &self.unfold(b)?)?,
            Node::Or(a, b) => sum(&self.unfold(a)?, &self.unfold(b)?)?,
            Node::Next(_) | Node::WeakNext(_) => later,
            Node::Until(a, b) => {
                let put_off = product(&self.unfold(a)?, &later)?;
                sum(&self.unfold(b)?, &put_off)?
            }
            Node::Release(a, b) => {
                let released = sum(&self.unfold(a)?, &later)?;
                product(&self.unfold(b)?, &released)?
            }
        };
        self.by_node.insert(node, all.clone());
        Ok(all)
    }
}

fn product(a: &[Alternative], b: &[Alternative]) -> Result<Alternatives, TooManyStates> {
    // The work must stay bounded even before redundant ones are removed.
    if a.len() * b.len() > 16 * MAX_ALTERNATIVES {
        return Err(TOO_MANY);
    }
    least(a.iter().flat_map(|a| b.iter().filter_map(|b| a.and(b))).collect())
}

fn sum(a: &[Alternative], b: &[Alternative]) -> Result<Alternatives, TooManyStates> {
    least([a, b].concat())
}

/// Removes alternatives that require more than another one does.
fn least(mut all: Vec<Alternative>) -> Result<Alternatives, TooManyStates> {
    let weight = |a: &Alternative| {
        [a.yes, a.no, a.past_yes, a.past_no, a.owed].iter().map(|m| m.count_ones()).sum::<u32>()
    };
    all.sort_by_key(weight);
    let mut kept: Vec<Alternative> = Vec::new();
    for alternative in all {
        if !kept.iter().any(|k| k.asks_less(&alternative)) {
            kept.push(alternative);
            if kept.len() > MAX_ALTERNATIVES {
                return Err(TOO_MANY);
            }
        }
    }
    Ok(kept.into())
}

const TOO_MANY: TooManyStates =
    TooManyStates { limit: MAX_ALTERNATIVES, what: "alternatives for one step" };

fn too_many(what: &str, at: &Formula) -> Diagnostic {
    let message = format!("a property can have at most {MAX_OBLIGATIONS} different {what}");
    let error = Diagnostic::error("too-many-operators", message, at.span, "one more here");
    error.help("split the property into several")
}
