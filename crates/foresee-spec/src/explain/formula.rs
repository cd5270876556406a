//! Temporal formulas in words.
//!
//! A clause stays on one line only if its grouping is unambiguous; otherwise it becomes a heading
//! with indented parts.

use super::clause::{Mood, change, clause, shown};
use super::words::Words;
use crate::ast::{BinaryOp, Formula, FormulaKind, Ident, UnaryOp};

/// Puts formulas into words and collects the lets that they name.
#[derive(Default)]
pub(super) struct Speaker<'a> {
    lets: Vec<(&'a Ident, &'a Formula)>,
}

impl<'a> Speaker<'a> {
    /// The words for a formula at a step.
    pub(super) fn formula(&mut self, formula: &'a Formula) -> Words {
        self.say(formula, false)
    }

    /// The meanings of the lets named so far, and of those that these name.
    pub(super) fn lets(&mut self) -> Vec<Words> {
        let mut said = Vec::new();
        while let Some(&(name, formula)) = self.lets.get(said.len()) {
            let meaning = self.formula(formula);
            said.push(Words::List(format!("where {} means:", shown(&name.name)), vec![meaning]));
        }
        said
    }

    fn say(&mut self, formula: &'a Formula, negated: bool) -> Words {
        match &formula.kind {
            FormulaKind::Const(value) => Words::Leaf((*value != negated).to_string()),
            FormulaKind::Atom(atom) => Words::Leaf(clause(atom, Mood::Is, negated)),
            FormulaKind::Let(name, meaning) => match self.short_let(meaning, negated) {
                Some(text) => Words::Leaf(text),
                None => {
                    self.name_let(name, meaning);
                    let verb = if negated { "does not hold" } else { "holds" };
                    Words::Leaf(format!("{} {verb}", shown(&name.name)))
                }
            },
            FormulaKind::Unary(UnaryOp::Not, inner) => self.say(inner, !negated),
            FormulaKind::Unary(op @ (UnaryOp::Start | UnaryOp::End), inner) => {
                let mood = if *op == UnaryOp::Start { Mood::Becomes } else { Mood::Stops };
                self.change(inner, mood, negated)
            }
            FormulaKind::Unary(op, inner) => {
                let words = self.unary(*op, inner);
                deny(words, negated)
            }
            FormulaKind::Binary(op, left, right) => {
                let words = self.binary(*op, formula, left, right);
                deny(words, negated)
            }
        }
    }

    /// Lets for single conditions are written out, which is no longer than their names.
    fn short_let(&mut self, meaning: &'a Formula, negated: bool) -> Option<String> {
        match &meaning.kind {
            FormulaKind::Atom(_) | FormulaKind::Const(_) => {
                self.say(meaning, negated).leaf().map(str::to_string)
            }
            FormulaKind::Let(_, meaning) => self.short_let(meaning, negated),
            FormulaKind::Unary(UnaryOp::Not, meaning) => self.short_let(meaning, !negated),
            _ => None,
        }
    }

    fn name_let(&mut self, name: &'a Ident, meaning: &'a Formula) {
        if !self.lets.iter().any(|(n, _)| n.name == name.name) {
            self.lets.push((name, meaning));
        }
    }

    fn change(&mut self, inner: &'a Formula, mood: Mood, negated: bool) -> Words {
        let mut atom = inner;
        while let FormulaKind::Let(_, meaning) = &atom.kind {
            atom = meaning;
        }
        if let FormulaKind::Atom(atom) = &atom.kind {
            return Words::Leaf(clause(atom, mood, negated));
        }
        let said = self.formula(inner);
        match said.joint() {
            Some(text) => Words::Joint(change(text, mood, negated)),
            None => Words::under(format!("{}:", change("", mood, negated).trim_end()), said),
        }
    }

    fn unary(&mut self, op: UnaryOp, inner: &'a Formula) -> Words {
        let when = match op {
            UnaryOp::Prev => "one step ago (at the first step: now)",
            UnaryOp::Once => "at some step up to now",
            UnaryOp::Hist => "at every step up to now",
            UnaryOp::Next => "at the next step",
            UnaryOp::Eventually => "now or at some later step",
            UnaryOp::Always => "now and at every later step",
            UnaryOp::Not | UnaryOp::Start | UnaryOp::End => unreachable!("said elsewhere"),
        };
        let said = self.formula(inner);
        match said.joint() {
            Some(text) => Words::Alone(format!("{when}, {text}")),
            None => Words::under(format!("{when}:"), said),
        }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        whole: &'a Formula,
        left: &'a Formula,
        right: &'a Formula,
    ) -> Words {
        match op {
            BinaryOp::And => return self.chain(op, whole, ("both", "and"), "all of these hold:"),
            BinaryOp::Or => {
                return self.chain(op, whole, ("either", "or"), "at least one of these holds:");
            }
            BinaryOp::Implies => {
                let (left, right) = (self.formula(left), self.formula(right));
                return implication("if", left, right);
            }
            _ => {}
        }
        let (a, b) = (self.formula(left), self.formula(right));
        if let (Some(a), Some(b)) = (a.joint(), b.joint()) {
            return Words::Alone(phrase(op, a, b));
        }
        // With names for the parts, the same phrase fits parts of any size.
        let heads = [format!("{A} means:"), format!("{B} means:")];
        let parts = heads.into_iter().zip([a, b]).map(|(head, part)| Words::List(head, vec![part]));
        Words::List(
            format!("{}, where", phrase(op, &format!("{A} holds"), &format!("{B} holds"))),
            parts.collect(),
        )
    }

    /// A chain of one connective, in one clause if it has two plain parts.
    fn chain(
        &mut self,
        op: BinaryOp,
        whole: &'a Formula,
        (before, between): (&str, &str),
        head: &str,
    ) -> Words {
        let mut parts = Vec::new();
        let mut todo = vec![whole];
        while let Some(next) = todo.pop() {
            match &next.kind {
                FormulaKind::Binary(o, left, right) if *o == op => todo.extend([&**right, left]),
                _ => parts.push(self.formula(next)),
            }
        }
        match &parts[..] {
            [a, b] => match (a.leaf(), b.leaf()) {
                (Some(a), Some(b)) => Words::Joint(format!("{before} {a} {between} {b}")),
                _ => Words::List(head.into(), parts),
            },
            _ => Words::List(head.into(), parts),
        }
    }
}

/// The names of parts that are too long for a phrase.
const A: &str = "(A)";
const B: &str = "(B)";

fn phrase(op: BinaryOp, a: &str, b: &str) -> String {
    match op {
        BinaryOp::Iff => format!("{a} exactly when {b}"),
        BinaryOp::Since => {
            format!("at some step up to now {b}, and at every step after the last such one {a}")
        }
        BinaryOp::WeakSince => format!(
            "at every step after the last one where {b} (if there is none, at every step up to now) {a}"
        ),
        BinaryOp::Interval => format!(
            "at some step up to now {a}, and at no step from the last such one on, itself included, {b}"
        ),
        BinaryOp::WeakInterval => format!(
            "at no step from the last one on where {a}, itself included (if there is none, at no \
             step up to now), {b}"
        ),
        BinaryOp::Until => {
            format!(
                "now or at some later step {b}, and at every step before the first such one {a}"
            )
        }
        BinaryOp::WeakUntil => format!(
            "at every step before the first one where {b} (if there is none, at every step from now \
             on) {a}"
        ),
        BinaryOp::Release => format!(
            "at every step up to the first one where {a}, itself included (if there is none, at \
             every step from now on), {b}"
        ),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Implies => unreachable!("said elsewhere"),
    }
}

/// `if A, B`, or with `whenever` if it applies to every step.
pub(super) fn implication(word: &str, condition: Words, consequence: Words) -> Words {
    match condition.joint() {
        Some(condition) => {
            let head = format!("{word} {condition}, then");
            // At the end of a clause, nothing follows that could be mistaken for a part of it.
            match consequence.clause() {
                Some(text) => Words::Alone(format!("{head} {text}")),
                None => Words::under(format!("{head}:"), consequence),
            }
        }
        None => Words::List(
            format!("{word} the first of these holds, then so does the second:"),
            vec![condition, consequence],
        ),
    }
}

fn deny(words: Words, negated: bool) -> Words {
    match words.joint() {
        _ if !negated => words,
        Some(text) => Words::Alone(format!("it is not the case that {text}")),
        None => Words::under("it is not the case that:".into(), words),
    }
}
