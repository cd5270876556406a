//! Formulas and the expressions in them, by precedence climbing.
//!
//! A bracket may begin a formula or an expression, `(a + b) * 2 > c`, which only becomes clear
//! later. So operands are [`Operand`]s, either of the two, until their kind is known.

use foresee_support::nearest::nearest;

use super::atomics::ATOMIC;
use super::lexer::Kind;
use super::names::EVENTS;
use super::parser::{Built, Facts, Parse, Parser};
use crate::ast::{Atom, BinaryOp, Expr, ExprKind, Formula, FormulaKind, Ident, Span, UnaryOp};
use crate::diagnostic::Diagnostic;

/// Prefix operators with their words.
pub(super) const PREFIXES: &[(&str, UnaryOp)] = &[
    ("prev", UnaryOp::Prev),
    ("once", UnaryOp::Once),
    ("hist", UnaryOp::Hist),
    ("start", UnaryOp::Start),
    ("end", UnaryOp::End),
    ("next", UnaryOp::Next),
    ("eventually", UnaryOp::Eventually),
    ("always", UnaryOp::Always),
];

/// Infix operators with their words.
pub(super) const INFIXES: &[(&str, BinaryOp)] = &[
    ("since", BinaryOp::Since),
    ("wsince", BinaryOp::WeakSince),
    ("until", BinaryOp::Until),
    ("wuntil", BinaryOp::WeakUntil),
    ("release", BinaryOp::Release),
];

/// Words and symbols of other languages, with their equivalents here.
const FOREIGN: &[(&str, BinaryOp, &str)] = &[
    ("and", BinaryOp::And, "&&"),
    ("or", BinaryOp::Or, "||"),
    ("implies", BinaryOp::Implies, "->"),
    ("iff", BinaryOp::Iff, "<->"),
    ("&", BinaryOp::And, "&&"),
    ("|", BinaryOp::Or, "||"),
    ("=>", BinaryOp::Implies, "->"),
];

/// Prefix operators of other notations. Unlike [`FOREIGN`], these words may name variables: they count as operators only where
/// an operand follows.
const FOREIGN_PREFIXES: &[(&str, UnaryOp, &str)] = &[
    ("G", UnaryOp::Always, "always"),
    ("F", UnaryOp::Eventually, "eventually"),
    ("X", UnaryOp::Next, "next"),
    ("H", UnaryOp::Hist, "hist"),
    ("O", UnaryOp::Once, "once"),
    ("P", UnaryOp::Once, "once"),
    ("Y", UnaryOp::Prev, "prev"),
    ("globally", UnaryOp::Always, "always"),
    ("finally", UnaryOp::Eventually, "eventually"),
    ("historically", UnaryOp::Hist, "hist"),
    ("previously", UnaryOp::Prev, "prev"),
];

/// What events are called elsewhere, in our own traces among others.
const FOREIGN_EVENTS: &[(&str, &str)] = &[
    ("acq", "acquire"),
    ("assign", "write"),
    ("call", "enter"),
    ("invoke", "enter"),
    ("load", "read"),
    ("lock", "acquire"),
    ("r", "read"),
    ("rel", "release"),
    ("return", "exit"),
    ("set", "write"),
    ("spawn", "fork"),
    ("store", "write"),
    ("unlock", "release"),
    ("w", "write"),
];

/// Infix operators of other notations, which may name variables. After an operand no variable can follow.
const FOREIGN_INFIXES: &[(&str, BinaryOp, &str)] = &[
    ("U", BinaryOp::Until, "until"),
    ("W", BinaryOp::WeakUntil, "wuntil"),
    ("R", BinaryOp::Release, "release"),
    ("S", BinaryOp::Since, "since"),
    ("unless", BinaryOp::WeakUntil, "wuntil"),
];

/// How tightly an operator binds.
pub(super) fn power(op: BinaryOp) -> u8 {
    match op {
        BinaryOp::Iff => 1,
        BinaryOp::Implies => 2,
        BinaryOp::Or => 3,
        BinaryOp::And => 4,
        _ => 5,
    }
}

/// Binds tighter than every infix operator on formulas.
pub(super) const OPERAND: u8 = 6;

/// Whether a variable with this name must be written in backquotes.
pub(super) fn is_reserved(word: &str) -> bool {
    ["true", "false", "_", "not"].contains(&word)
        // `atomic` as an item can be distinguished from a variable of that name.
        || super::parser::ITEMS.contains(&word) && word != ATOMIC
        || PREFIXES.iter().any(|(w, _)| *w == word)
        || INFIXES.iter().any(|(w, _)| *w == word)
        || FOREIGN.iter().any(|(w, ..)| *w == word)
}

/// A formula, or an expression that may still become one.
pub(super) enum Operand {
    Formula(Built<Formula>),
    Expr(Built<Expr>),
}

impl Parser<'_> {
    /// A formula whose outermost operators bind at least as tightly as `min`.
    pub(super) fn formula(&mut self, min: u8) -> Parse<Built<Formula>> {
        let operand = self.mixed(min)?;
        self.as_formula(operand)
    }

    /// A formula about a single step.
    pub(super) fn step_formula(&mut self, min: u8, what: &str) -> Parse<Built<Formula>> {
        let formula = self.formula(min)?;
        if let Some(at) = formula.facts.temporal {
            let message = format!("a temporal operator in {what}");
            let label = "refers to other steps";
            self.report(Diagnostic::error("temporal-in-step", message, at, label).help(format!(
                "{what} describes one step; use further steps for what comes before or after"
            )));
        }
        Ok(formula)
    }

    pub(super) fn mixed(&mut self, min: u8) -> Parse<Operand> {
        self.deeper(|p| {
            let mut left = p.operand()?;
            while let Some((op, mistake)) = p.binary_op().filter(|(op, _)| power(*op) >= min) {
                if let Some(write) = mistake {
                    let at = p.token().span;
                    let message = format!("{} is not an operator of formulas", p.found());
                    let label = format!("write `{write}`");
                    p.report(Diagnostic::error("foreign-operator", message, at, label));
                }
                let at = p.bump().span;
                let formula = p.as_formula(left)?;
                left = Operand::Formula(p.binary(op, at, formula)?);
            }
            Ok(left)
        })
    }

    /// The next operator and, if it is written differently here, its correct form.
    pub(super) fn binary_op(&self) -> Option<(BinaryOp, Option<&'static str>)> {
        let token = self.token();
        if let Kind::Binary(op) = token.kind {
            return Some((op, None));
        }
        if !matches!(token.kind, Kind::Word | Kind::And | Kind::Or | Kind::Arrow) || self.at_item()
        {
            return None;
        }
        let text = self.slice(token.span);
        let infix = INFIXES.iter().find(|(word, _)| *word == text).map(|(_, op)| (*op, None));
        let foreign = || FOREIGN.iter().chain(FOREIGN_INFIXES).find(|(word, ..)| *word == text);
        infix.or_else(|| foreign().map(|(_, op, write)| (*op, Some(*write))))
    }

    /// The rest of `left op …`; `op` has been consumed.
    fn binary(&mut self, op: BinaryOp, at: Span, left: Built<Formula>) -> Parse<Built<Formula>> {
        if !matches!(op, BinaryOp::And | BinaryOp::Or) {
            // Right-associative: `a -> b -> c` is `a -> (b -> c)`.
            let right = self.formula(power(op))?;
            return self.join(op, at, left, right);
        }
        // Long chains become balanced trees, so that their length does not add to the depth.
        let mut operands = vec![left, self.formula(power(op) + 1)?];
        while self.kind() == Kind::Binary(op) {
            self.bump();
            operands.push(self.formula(power(op) + 1)?);
        }
        self.balance(op, at, operands)
    }

    fn balance(
        &mut self,
        op: BinaryOp,
        at: Span,
        mut operands: Vec<Built<Formula>>,
    ) -> Parse<Built<Formula>> {
        let half = left_share(operands.len());
        let rest = operands.split_off(half);
        let mut side = |mut operands: Vec<_>| match (operands.len(), operands.pop()) {
            (1, Some(single)) => Ok(single),
            (_, last) => {
                operands.extend(last);
                self.balance(op, at, operands)
            }
        };
        let (left, right) = (side(operands)?, side(rest)?);
        self.join(op, at, left, right)
    }

    fn join(
        &mut self,
        op: BinaryOp,
        at: Span,
        left: Built<Formula>,
        right: Built<Formula>,
    ) -> Parse<Built<Formula>> {
        let span = Span { start: left.node.span.start, end: right.node.span.end };
        let facts = [left.facts, right.facts];
        let kind = FormulaKind::Binary(op, Box::new(left.node), Box::new(right.node));
        self.temporal(kind, span, at, &facts, (op.is_past(), op.is_future()))
    }

    fn unary(&mut self, op: UnaryOp, at: Span, operand: Built<Formula>) -> Parse<Built<Formula>> {
        let span = self.since(at);
        let kind = FormulaKind::Unary(op, Box::new(operand.node));
        self.temporal(kind, span, at, &[operand.facts], (op.is_past(), op.is_future()))
    }

    /// A formula with an operator at `at` that refers to the past, the future, or neither.
    fn temporal(
        &mut self,
        kind: FormulaKind,
        span: Span,
        at: Span,
        parts: &[Facts],
        (past, future): (bool, bool),
    ) -> Parse<Built<Formula>> {
        let mut built = self.built(Formula { kind, span }, at, parts)?;
        if let Some(inner) = built.facts.future.filter(|_| past) {
            let message = "a future operator inside a past one";
            let label = "refers to steps that have not happened yet";
            let help = "a past operator must know its operand's value now, and that of a future \
                        operator is not known yet; the other way round is fine: `always (a -> once b)`";
            self.report(
                Diagnostic::error("future-in-past", message, inner, label)
                    .and(at, "this operator refers to steps up to now")
                    .help(help),
            );
        }
        if past || future {
            built.facts.temporal = Some(at);
        }
        if future {
            built.facts.future = Some(at);
        }
        Ok(built)
    }

    /// One operand of an infix operator on formulas.
    fn operand(&mut self) -> Parse<Operand> {
        let token = self.token();
        let mut op = match token.kind {
            Kind::Prefix(op) => Some(op),
            _ => PREFIXES.iter().find(|(word, _)| *word == self.word()).map(|(_, op)| *op),
        };
        if self.word() == "not" || token.kind == Kind::Tilde {
            let label = "write `!`";
            let message = format!("{} is not an operator of formulas", self.found());
            self.report(Diagnostic::error("foreign-operator", message, token.span, label));
            op = Some(UnaryOp::Not);
        }
        if op.is_none() && self.unknown_prefix() {
            return self.unknown_word();
        }
        match op {
            Some(op) => {
                self.bump();
                self.prefixed(op, token.span)
            }
            None if token.kind == Kind::SquareOpen => self.interval(),
            None if token.kind == Kind::Less && self.ahead(1).kind == Kind::Greater => {
                self.foreign_brackets("<>", "eventually")
            }
            None => self.comparison(),
        }
    }

    /// The operand of a prefix operator, which has been consumed.
    fn prefixed(&mut self, op: UnaryOp, at: Span) -> Parse<Operand> {
        let word = self.slice(at);
        if self.compare_op().is_some() && word != "!" {
            let message = format!("`{word}` is an operator, not a variable");
            let label = "expected a formula after this";
            let help = format!("a variable of that name is written in backquotes: `` `{word}` ``");
            return self.fail(Diagnostic::error("syntax", message, at, label).help(help));
        }
        let operand = self.deeper(Self::operand)?;
        let operand = self.as_formula(operand)?;
        Ok(Operand::Formula(self.unary(op, at, operand)?))
    }

    /// An operator of another notation that is made of two brackets, which are the next tokens.
    fn foreign_brackets(&mut self, sign: &str, write: &str) -> Parse<Operand> {
        let at = Span { start: self.token().span.start, end: self.ahead(1).span.end };
        let message = format!("`{sign}` is not an operator");
        let label = format!("write `{write}`");
        self.fail(Diagnostic::error("foreign-operator", message, at, label))
    }

    /// `[F, G)` or `[F, G)w`
    fn interval(&mut self) -> Parse<Operand> {
        let start = self.token().span;
        if self.ahead(1).kind == Kind::SquareClose {
            return self.foreign_brackets("[]", "always");
        }
        let close = (Kind::RoundClose, "`)` at the end of the interval");
        let (left, right) = self.enclosed(
            close,
            || (nothing(start), nothing(start)),
            |p| {
                let left = p.formula(0)?;
                p.expect(Kind::Comma, "`,` between the two formulas of an interval")?;
                let right = p.formula(0)?;
                if p.kind() == Kind::SquareClose {
                    let message = "an interval does not contain its end";
                    let at = p.token().span;
                    let help = "`[F, G)` is true from a step where F is true up to, but not at, the \
                                next step where G is true";
                    let error = Diagnostic::error("closed-interval", message, at, "write `)`");
                    return p.fail(error.help(help));
                }
                Ok((left, right))
            },
        )?;
        let weak = self.word() == "w" && self.token().span.start == self.previous_end();
        if weak {
            self.bump();
        }
        let op = if weak { BinaryOp::WeakInterval } else { BinaryOp::Interval };
        let mut built = self.join(op, start, left, right)?;
        built.node.span = self.since(start);
        Ok(Operand::Formula(built))
    }

    pub(super) fn at_end_of_operand(&self) -> bool {
        matches!(self.kind(), Kind::RoundClose | Kind::CurlyClose | Kind::Comma | Kind::End)
            || self.at_item()
    }

    /// A word as an operand: an event atom, a let, or a variable.
    pub(super) fn word_operand(&mut self) -> Parse<Operand> {
        let at = self.token().span;
        if let Some(kind) = self.event_kind() {
            let event = self.event_atom(kind)?;
            let span = event.node.span;
            let kind = FormulaKind::Atom(Atom::Event(event.node));
            return Ok(Operand::Formula(self.built(
                Formula { kind, span },
                span,
                &[event.facts],
            )?));
        }
        if !self.single_word(false) {
            let name = self.program_name(false);
            self.use_field(&name);
            return self.variable(name);
        }
        let word = self.word();
        if is_reserved(word) {
            let help = match word {
                "_" => "`_` stands for any name, and only inside event atoms".to_owned(),
                _ => format!("a variable named `{word}` is written in backquotes: `` `{word}` ``"),
            };
            return self.expected_help("a formula", Some(&help));
        }
        if self.all_lets.contains_key(word) {
            return self.use_of_let();
        }
        let name = Ident { name: word.to_owned(), span: self.bump().span };
        if self.is_whole_object(&name) {
            return self.variable(name);
        }
        if let Some(declared) = self.use_param(&name.name) {
            let message = format!("the parameter `{word}` in an expression");
            let label = "parameters are only allowed in event atoms";
            let help = format!(
                "a variable of that name is written in backquotes, `` `{word}` ``; a parameter that \
                 stands for objects has their type, and conditions name their fields: `{word}: account`"
            );
            self.report(
                Diagnostic::error("parameter-in-expression", message, at, label)
                    .and(declared, "the parameter")
                    .help(help),
            );
        }
        self.variable(name)
    }

    pub(super) fn variable(&mut self, name: Ident) -> Parse<Operand> {
        let expr = Expr { kind: ExprKind::Var(name.name), span: name.span };
        Ok(Operand::Expr(self.built(expr, name.span, &[])?))
    }

    fn use_of_let(&mut self) -> Parse<Operand> {
        let span = self.token().span;
        let name = Ident { name: self.word().to_owned(), span };
        self.bump();
        self.uses.push(name.clone());
        let Some(info) = self.lets.get(&name.name) else {
            // Reported once all lets are known: it may be a cycle.
            return Ok(Operand::Formula(nothing(span)));
        };
        let mut facts = info.facts;
        facts.temporal = facts.temporal.map(|_| span);
        facts.future = facts.future.map(|_| span);
        let kind = FormulaKind::Let(name, info.formula.clone());
        Ok(Operand::Formula(self.built(Formula { kind, span }, span, &[facts])?))
    }

    /// Whether the next word can only be a misspelt operator or event kind, because the beginning
    /// of an operand follows it.
    fn unknown_prefix(&self) -> bool {
        if self.kind() != Kind::Word || self.at_item() || self.event_kind().is_some() {
            return false;
        }
        let next = self.ahead(1);
        let word = self.word_ahead(1);
        let operand = match next.kind {
            Kind::RoundOpen => true,
            Kind::Int | Kind::Float | Kind::Str | Kind::Quoted | Kind::Prefix(_) => true,
            Kind::Word => !is_reserved(word) || PREFIXES.iter().any(|(w, _)| *w == word),
            _ => false,
        };
        let call = next.kind == Kind::RoundOpen;
        let known = || self.foreign_prefix().is_some() || self.near_prefix().is_some();
        operand && !is_reserved(self.word()) && (call || known())
    }

    /// The operator that the next word stands for in another notation, and how it is written here.
    fn foreign_prefix(&self) -> Option<(UnaryOp, &'static str)> {
        let found = FOREIGN_PREFIXES.iter().find(|(word, ..)| *word == self.word())?;
        Some((found.1, found.2))
    }

    fn near_prefix(&self) -> Option<UnaryOp> {
        let near = nearest(self.word(), PREFIXES.iter().map(|(word, _)| *word))?;
        PREFIXES.iter().find(|(word, _)| *word == near).map(|(_, op)| *op)
    }

    /// Reports the next word as misspelt, and continues as if it were correct.
    fn unknown_word(&mut self) -> Parse<Operand> {
        let at = self.token().span;
        let word = self.word();
        if let Some((op, write)) = self.foreign_prefix() {
            let message = format!("`{word}` is not an operator of formulas");
            let label = format!("write `{write}`");
            self.report(Diagnostic::error("foreign-operator", message, at, label));
            self.bump();
            return self.prefixed(op, at);
        }
        let known = EVENTS.iter().map(|(w, _)| *w).chain(PREFIXES.iter().map(|(w, _)| *w));
        let near = nearest(word, known);
        let meant = FOREIGN_EVENTS.iter().find(|(foreign, _)| *foreign == word);
        let message = format!("`{word}` is neither an operator nor a kind of event");
        let label = match (meant, near) {
            (Some((_, write)), _) => format!("write `{write}`"),
            (None, Some(near)) => format!("did you mean `{near}`?"),
            (None, None) => "unknown".to_owned(),
        };
        let events: Vec<&str> = EVENTS.iter().map(|(word, _)| *word).collect();
        let help = match (meant, near) {
            (None, None) => Some(format!("the kinds of events are {}", events.join(", "))),
            _ => None,
        };
        self.report(Diagnostic::error("unknown-operator", message, at, label).maybe_help(help));
        if let Some(op) = self.near_prefix().filter(|_| meant.is_none()) {
            self.bump();
            return self.prefixed(op, at);
        }
        // In any case, it looks like an event atom.
        let event = self.event_atom(EVENTS[0].1)?;
        Ok(Operand::Formula(Built { node: nothing(at).node, facts: event.facts }))
    }
}

/// How many of the `n` operands of a chain go to the left: the largest power of two below `n`.
pub(super) fn left_share(n: usize) -> usize {
    n.next_power_of_two() / 2
}

/// A placeholder for a formula that could not be parsed.
pub(super) fn nothing(at: Span) -> Built<Formula> {
    Built { node: Formula { kind: FormulaKind::Const(true), span: at }, facts: Facts::default() }
}
