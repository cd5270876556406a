//! Formulas, expressions, regular expressions and patterns as documents.

use super::expr::arith_power;
use super::format::Writer;
use super::formula::{INFIXES, OPERAND, PREFIXES, is_reserved, left_share, power};
use super::layout::Doc;
use super::lexer::escape;
use super::names::{EVENTS, Place, is_plain};
use crate::ast::{
    ArithOp, Atom, BinaryOp, CompareOp, EventAtom, Expr, ExprKind, Formula, FormulaKind, Literal,
    Pattern, PatternKind, Regex, RegexKind, Span, Term, UnaryOp,
};

// How tightly the parts of regular expressions and patterns bind.
const UNION: u8 = 0;
const INTERSECTION: u8 = 1;
const SEQUENCE: u8 = 2;
const COMPLEMENT: u8 = 3;
const POSTFIX: u8 = 4;

impl Writer<'_> {
    /// A formula, in brackets unless it binds at least as tightly as `min`.
    pub(super) fn formula(&mut self, formula: &Formula, min: u8) -> Doc {
        match &formula.kind {
            FormulaKind::Const(value) => Doc::text(value.to_string()),
            FormulaKind::Atom(atom) => Doc::text(self.atom(atom)),
            FormulaKind::Let(name, _) => Doc::text(&name.name),
            FormulaKind::Unary(op, operand) => self.unary(*op, operand),
            FormulaKind::Binary(op, left, right) => match op {
                BinaryOp::Interval | BinaryOp::WeakInterval => self.interval(*op, left, right),
                _ => {
                    let operands = operands(*op, formula);
                    let mut docs = Vec::new();
                    for (i, (operand, min)) in operands.iter().enumerate() {
                        if i > 0 {
                            docs.push(Doc::text(format!(" {}", binary_sign(*op))));
                            self.line(operand.span, &mut docs);
                        }
                        docs.push(self.formula(operand, *min));
                    }
                    bracketed(Doc::Group(docs), power(*op) < min)
                }
            },
        }
    }

    pub(super) fn atom(&self, atom: &Atom) -> String {
        match atom {
            Atom::Event(event) => self.event(event),
            Atom::Truth(expr) => self.expr(expr, 0),
            Atom::Compare(op, left, right) => {
                let (left, right) = (self.expr(left, 0), self.expr(right, 0));
                format!("{left} {} {right}", compare_sign(*op))
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Formula) -> Doc {
        // `!x == y` is `!(x == y)`, which few readers know.
        let confusing = match &operand.kind {
            FormulaKind::Atom(Atom::Compare(..)) => true,
            FormulaKind::Atom(Atom::Truth(expr)) => matches!(expr.kind, ExprKind::Arith(..)),
            _ => false,
        };
        match PREFIXES.iter().find(|(_, o)| *o == op) {
            None if confusing => {
                let operand = bracketed(self.formula(operand, 0), true);
                Doc::Group(vec![Doc::text("!"), operand])
            }
            None => Doc::Group(vec![Doc::text("!"), self.formula(operand, OPERAND)]),
            Some((word, UnaryOp::Start | UnaryOp::End)) => {
                Doc::Group(vec![Doc::text(*word), bracketed(self.formula(operand, 0), true)])
            }
            Some((word, _)) => {
                Doc::Group(vec![Doc::text(format!("{word} ")), self.formula(operand, OPERAND)])
            }
        }
    }

    fn interval(&mut self, op: BinaryOp, left: &Formula, right: &Formula) -> Doc {
        let mut inner = vec![Doc::Soft, self.formula(left, 0), Doc::text(",")];
        self.line(right.span, &mut inner);
        inner.push(self.formula(right, 0));
        let close = if op == BinaryOp::WeakInterval { ")w" } else { ")" };
        Doc::Group(vec![Doc::text("["), Doc::Nest(inner), Doc::Soft, Doc::text(close)])
    }

    fn expr(&self, expr: &Expr, min: u8) -> String {
        match &expr.kind {
            ExprKind::Literal(value) => literal(value),
            ExprKind::Var(name) => self.variable(name),
            ExprKind::Neg(operand) => {
                let inner = self.expr(operand, 0);
                match &operand.kind {
                    ExprKind::Var(_) | ExprKind::Neg(_) => format!("-{inner}"),
                    // `-5` is a constant, `-(5)` is not.
                    _ => format!("-({inner})"),
                }
            }
            ExprKind::Arith(op, left, right) => {
                let power = arith_power(*op);
                let (left, right) = (self.expr(left, power), self.expr(right, power + 1));
                let text = format!("{left} {} {right}", arith_sign(*op));
                if power < min { format!("({text})") } else { text }
            }
        }
    }

    /// A program variable in an expression.
    pub(super) fn variable(&self, name: &str) -> String {
        let taken = is_reserved(name) || self.lets.contains(name) || self.params.contains(name);
        if !taken && is_plain(name, false) { name.to_owned() } else { escape(name, '`') }
    }

    fn event(&self, event: &EventAtom) -> String {
        let word = EVENTS.iter().find(|(_, kind)| *kind == event.kind).map_or("", |(word, _)| word);
        let mut terms = vec![self.term(&event.target, Place::Target)];
        terms.extend(event.args.iter().map(|arg| self.term(arg, Place::Argument)));
        let thread = match &event.thread {
            Term::Any => String::new(),
            thread => format!("@{}", self.term(thread, Place::Thread)),
        };
        format!("{word}({}){thread}", terms.join(", "))
    }

    fn term(&self, term: &Term, place: Place) -> String {
        match term {
            Term::Any => "_".to_owned(),
            Term::Param(param) => param.name.clone(),
            Term::Literal(value, _) => literal(value),
            Term::Name(name) => {
                let name = name.name.as_str();
                let taken = name == "_"
                    || self.params.contains(name)
                    || place == Place::Argument && (name == "true" || name == "false");
                let number = place != Place::Argument
                    && !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_digit());
                let plain = number || !taken && is_plain(name, true);
                if plain { name.to_owned() } else { escape(name, '`') }
            }
        }
    }

    pub(super) fn regex(&mut self, regex: &Regex, min: u8) -> Doc {
        match &regex.kind {
            RegexKind::Empty => Doc::text("()"),
            RegexKind::Any => Doc::text("."),
            RegexKind::Event(event) => Doc::text(self.event(event)),
            RegexKind::Step(formula) => {
                Doc::Group(vec![Doc::text("{"), self.formula(formula, 0), Doc::text("}")])
            }
            RegexKind::Concat(parts) => {
                self.parts(parts, "", (SEQUENCE, min), |r| r.span, Self::regex)
            }
            RegexKind::Union(parts) => {
                self.parts(parts, " |", (UNION, min), |r| r.span, Self::regex)
            }
            RegexKind::Intersection(parts) => {
                self.parts(parts, " &", (INTERSECTION, min), |r| r.span, Self::regex)
            }
            RegexKind::Complement(inner) => {
                let doc = Doc::Group(vec![Doc::text("~"), self.regex(inner, COMPLEMENT)]);
                bracketed(doc, COMPLEMENT < min)
            }
            RegexKind::Star(inner) => self.repeated(inner, "*"),
            RegexKind::Plus(inner) => self.repeated(inner, "+"),
            RegexKind::Optional(inner) => self.repeated(inner, "?"),
        }
    }

    fn repeated(&mut self, inner: &Regex, sign: &str) -> Doc {
        Doc::Group(vec![self.regex(inner, POSTFIX), Doc::text(sign)])
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern, min: u8) -> Doc {
        match &pattern.kind {
            PatternKind::Empty => Doc::text("()"),
            PatternKind::Position(events) => {
                let mut docs = Vec::new();
                for (i, event) in events.iter().enumerate() {
                    if i > 0 {
                        docs.push(Doc::text(" /"));
                        self.line(event.span, &mut docs);
                    }
                    docs.push(Doc::text(self.event(event)));
                }
                Doc::Group(docs)
            }
            PatternKind::Then(parts) => {
                self.parts(parts, " ..", (SEQUENCE, min), |p| p.span, Self::pattern)
            }
            PatternKind::Union(parts) => {
                self.parts(parts, " |", (UNION, min), |p| p.span, Self::pattern)
            }
            PatternKind::Intersection(parts) => {
                self.parts(parts, " &", (INTERSECTION, min), |p| p.span, Self::pattern)
            }
            PatternKind::Star(inner) => {
                // Several alternatives need brackets before the star.
                let several = matches!(&inner.kind, PatternKind::Position(e) if e.len() > 1);
                let doc = bracketed(self.pattern(inner, POSTFIX), several);
                Doc::Group(vec![doc, Doc::text("*")])
            }
        }
    }

    /// Parts with a separator after each but the last.
    fn parts<T>(
        &mut self,
        parts: &[T],
        sign: &str,
        (own, min): (u8, u8),
        span: impl Fn(&T) -> Span,
        write: impl Fn(&mut Self, &T, u8) -> Doc,
    ) -> Doc {
        let mut docs = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            if i > 0 {
                docs.push(Doc::text(sign));
                self.line(span(part), &mut docs);
            }
            docs.push(write(self, part, own + 1));
        }
        bracketed(Doc::Group(docs), own < min)
    }
}

fn bracketed(doc: Doc, brackets: bool) -> Doc {
    if !brackets {
        return doc;
    }
    let inner = Doc::Nest(vec![Doc::Soft, doc]);
    Doc::Group(vec![Doc::text("("), inner, Doc::Soft, Doc::text(")")])
}

/// The operands of a chain of one operator, each with the precedence that it needs.
fn operands(op: BinaryOp, formula: &Formula) -> Vec<(&Formula, u8)> {
    let mut out = Vec::new();
    let tight = power(op) + 1;
    if matches!(op, BinaryOp::And | BinaryOp::Or) && chain_length(op, formula).is_some() {
        let mut todo = vec![formula];
        while let Some(next) = todo.pop() {
            match &next.kind {
                FormulaKind::Binary(o, left, right) if *o == op => todo.extend([&**right, left]),
                _ => out.push((next, tight)),
            }
        }
        return out;
    }
    if let FormulaKind::Binary(_, left, right) = &formula.kind {
        let right_min = if matches!(op, BinaryOp::And | BinaryOp::Or) { tight } else { power(op) };
        out.extend([(&**left, tight), (&**right, right_min)]);
    }
    out
}

/// The number of operands of a chain, if it has the shape that the parser gives to a chain without
/// brackets.
fn chain_length(op: BinaryOp, formula: &Formula) -> Option<usize> {
    match &formula.kind {
        FormulaKind::Binary(o, left, right) if *o == op => {
            let (left, right) = (chain_length(op, left)?, chain_length(op, right)?);
            (left_share(left + right) == left).then_some(left + right)
        }
        _ => Some(1),
    }
}

/// A constant in source form.
pub(super) fn literal(value: &Literal) -> String {
    match value {
        Literal::Int(n) => n.to_string(),
        // Always with a decimal point or an exponent.
        Literal::Float(x) => format!("{x:?}"),
        Literal::Bool(value) => value.to_string(),
        Literal::Str(text) => escape(text, '"'),
    }
}

fn binary_sign(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
        BinaryOp::Implies => "->",
        BinaryOp::Iff => "<->",
        _ => INFIXES.iter().find(|(_, o)| *o == op).map_or("", |(word, _)| word),
    }
}

fn compare_sign(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}

fn arith_sign(op: ArithOp) -> &'static str {
    match op {
        ArithOp::Add => "+",
        ArithOp::Sub => "-",
        ArithOp::Mul => "*",
        ArithOp::Div => "/",
        ArithOp::Rem => "%",
    }
}
