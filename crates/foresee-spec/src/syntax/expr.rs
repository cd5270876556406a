//! Expressions over program variables, and comparisons of them.

use super::formula::Operand;
use super::lexer::{Kind, Token};
use super::parser::{Built, Facts, Parse, Parser};
use crate::ast::{ArithOp, Atom, CompareOp, Expr, ExprKind, Formula, FormulaKind, Literal, Span};
use crate::diagnostic::Diagnostic;

/// How tightly an arithmetic operator binds.
pub(super) fn arith_power(op: ArithOp) -> u8 {
    match op {
        ArithOp::Add | ArithOp::Sub => 1,
        ArithOp::Mul | ArithOp::Div | ArithOp::Rem => 2,
    }
}

impl Parser<'_> {
    pub(super) fn comparison(&mut self) -> Parse<Operand> {
        let left = self.expr(0)?;
        let Some(op) = self.compare_op() else { return Ok(left) };
        let at = self.token().span;
        if self.kind() == Kind::Equal || self.kind() == Kind::Arrow {
            let (message, label) = match self.kind() {
                Kind::Equal => ("`=` does not compare", "write `==`"),
                _ => ("`=<` is not an operator", "write `<=`"),
            };
            self.report(Diagnostic::error("single-equals", message, at, label));
        }
        let sign = self.bump();
        self.foreign_comparison(sign);
        let left = self.as_expr(left, at)?;
        let right = self.expr(0)?;
        let right = self.as_expr(right, at)?;
        self.check_comparison(op, &left.node, &right.node);
        if self.compare_op().is_some() {
            let message = "comparisons do not chain";
            let error =
                Diagnostic::error("chained-comparison", message, self.token().span, "second");
            let help = "join two comparisons with `&&`: `0 < x && x < 3`";
            return self.fail(error.and(at, "first comparison").help(help));
        }
        let span = Span { start: left.node.span.start, end: right.node.span.end };
        let facts = [left.facts, right.facts];
        let kind = FormulaKind::Atom(Atom::Compare(op, left.node, right.node));
        Ok(Operand::Formula(self.built(Formula { kind, span }, span, &facts)?))
    }

    /// Reports `===` and `<>`, of which the first sign has been consumed, and skips the rest.
    fn foreign_comparison(&mut self, sign: Token) {
        let second = self.token();
        let write = match (sign.kind, second.kind) {
            _ if second.span.start != sign.span.end => return,
            (Kind::EqualEqual, Kind::Equal) => "==",
            (Kind::NotEqual, Kind::Equal) | (Kind::Less, Kind::Greater) => "!=",
            _ => return,
        };
        let at = Span { start: sign.span.start, end: second.span.end };
        let message = format!("`{}` is not an operator", self.slice(at));
        self.report(Diagnostic::error("foreign-operator", message, at, format!("write `{write}`")));
        self.bump();
    }

    pub(super) fn compare_op(&self) -> Option<CompareOp> {
        Some(match self.kind() {
            Kind::EqualEqual | Kind::Equal => CompareOp::Eq,
            Kind::NotEqual => CompareOp::Ne,
            Kind::Less => CompareOp::Lt,
            Kind::LessEqual => CompareOp::Le,
            Kind::Greater => CompareOp::Gt,
            Kind::GreaterEqual => CompareOp::Ge,
            Kind::Arrow if self.slice(self.token().span) == "=<" => CompareOp::Le,
            _ => return None,
        })
    }

    fn expr(&mut self, min: u8) -> Parse<Operand> {
        let mut left = self.primary()?;
        while let Some(op) = self.arith_op().filter(|op| arith_power(*op) >= min) {
            let at = self.bump().span;
            let first = self.as_expr(left, at)?;
            let right = self.expr(arith_power(op) + 1)?;
            let right = self.as_expr(right, at)?;
            self.check_number(&first.node);
            self.check_number(&right.node);
            let span = Span { start: first.node.span.start, end: right.node.span.end };
            let facts = [first.facts, right.facts];
            let kind = ExprKind::Arith(op, Box::new(first.node), Box::new(right.node));
            left = Operand::Expr(self.built(Expr { kind, span }, at, &facts)?);
        }
        Ok(left)
    }

    fn arith_op(&self) -> Option<ArithOp> {
        Some(match self.kind() {
            Kind::Plus => ArithOp::Add,
            Kind::Minus => ArithOp::Sub,
            Kind::Star => ArithOp::Mul,
            Kind::Slash => ArithOp::Div,
            Kind::Percent => ArithOp::Rem,
            _ => return None,
        })
    }

    fn primary(&mut self) -> Parse<Operand> {
        let token = self.token();
        if let Some((value, span)) = self.literal() {
            let expr = Expr { kind: ExprKind::Literal(value), span };
            return Ok(Operand::Expr(self.built(expr, span, &[])?));
        }
        match token.kind {
            Kind::RoundOpen => {
                let close = (Kind::RoundClose, "`)`");
                self.enclosed(close, || missing(token.span), |p| p.mixed(0))
            }
            Kind::Minus => {
                let at = self.bump().span;
                let operand = self.deeper(Self::primary)?;
                let operand = self.as_expr(operand, at)?;
                self.check_number(&operand.node);
                let span = self.since(at);
                let kind = ExprKind::Neg(Box::new(operand.node));
                Ok(Operand::Expr(self.built(Expr { kind, span }, at, &[operand.facts])?))
            }
            Kind::Quoted => {
                let name = self.ident("a name")?;
                self.check_quoted(&name);
                self.variable(name)
            }
            Kind::Word if !self.at_item() => self.word_operand(),
            Kind::CurlyOpen => self.expected_help(
                "a formula",
                Some("`{…}` belongs to regular expressions and automata; use `(…)` in formulas"),
            ),
            Kind::DotDot => self.expected_help(
                "a formula",
                Some("`..` belongs to patterns: `pattern p: event(a) .. event(b)`"),
            ),
            _ if self.binary_op().is_some() || self.at_end_of_operand() => {
                // Nothing is skipped, so that the rest is checked as well.
                let _ = self.expected::<()>("a formula");
                Ok(missing(token.span))
            }
            _ => self.expected("a formula"),
        }
    }

    pub(super) fn as_formula(&mut self, operand: Operand) -> Parse<Built<Formula>> {
        let expr = match operand {
            Operand::Formula(formula) => return Ok(formula),
            Operand::Expr(expr) => expr,
        };
        let span = expr.node.span;
        let kind = match expr.node.kind {
            ExprKind::Literal(Literal::Bool(value)) => FormulaKind::Const(value),
            ExprKind::Literal(_) => {
                let message = "a constant is not a formula";
                let label = "neither true nor false";
                let help = "compare it with something, or write `true` or `false`";
                self.report(Diagnostic::error("constant-formula", message, span, label).help(help));
                FormulaKind::Const(true)
            }
            _ => FormulaKind::Atom(Atom::Truth(expr.node)),
        };
        self.built(Formula { kind, span }, span, &[expr.facts])
    }

    /// The operand as an expression, as the operator at `at` requires.
    fn as_expr(&mut self, operand: Operand, at: Span) -> Parse<Built<Expr>> {
        let formula = match operand {
            Operand::Expr(expr) => return Ok(expr),
            Operand::Formula(formula) => formula,
        };
        let op = self.slice(at);
        let message = format!("`{op}` works on values, not on formulas");
        let label = "this is a formula";
        let help = match op {
            "==" | "=" => "two formulas are compared with `<->`",
            "!=" => "two formulas are compared with `<->`: `!(F <-> G)`",
            _ => "only variables, constants and arithmetic have values",
        };
        let error = Diagnostic::error("formula-as-value", message, formula.node.span, label);
        self.fail(error.and(at, "expected a value on both sides").help(help))
    }

    fn check_number(&mut self, operand: &Expr) {
        if let Some(kind @ (Type::Bool | Type::Text)) = type_of(operand) {
            let message = format!("arithmetic on {}", kind.describe());
            let label = "expected a number";
            self.report(Diagnostic::error("type-mismatch", message, operand.span, label));
        }
    }

    fn check_comparison(&mut self, op: CompareOp, left: &Expr, right: &Expr) {
        let ordering = !matches!(op, CompareOp::Eq | CompareOp::Ne);
        let types = (type_of(left), type_of(right));
        if let (Some(a), Some(b)) = types
            && a != b
        {
            let message = format!("{} compared with {}", a.describe(), b.describe());
            self.report(
                Diagnostic::error("type-mismatch", message, left.span, a.describe())
                    .and(right.span, b.describe())
                    .help("values of different types are never equal, smaller or greater"),
            );
        } else if ordering && (types.0 == Some(Type::Bool) || types.1 == Some(Type::Bool)) {
            let at = if types.0 == Some(Type::Bool) { left.span } else { right.span };
            let message = "truth values have no order";
            let error = Diagnostic::error("type-mismatch", message, at, "a truth value");
            self.report(error.help("compare truth values with `==` or `!=`"));
        }
    }
}

/// A placeholder for an operand that could not be parsed: a variable, which is valid everywhere.
fn missing(at: Span) -> Operand {
    let node = Expr { kind: ExprKind::Var(String::new()), span: at };
    Operand::Expr(Built { node, facts: Facts::default() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Number,
    Bool,
    Text,
}

impl Type {
    fn describe(self) -> &'static str {
        match self {
            Type::Number => "a number",
            Type::Bool => "a truth value",
            Type::Text => "a text",
        }
    }
}

/// The type of an expression, if it is known without the trace.
fn type_of(expr: &Expr) -> Option<Type> {
    Some(match &expr.kind {
        ExprKind::Literal(Literal::Int(_) | Literal::Float(_)) => Type::Number,
        ExprKind::Literal(Literal::Bool(_)) => Type::Bool,
        ExprKind::Literal(Literal::Str(_)) => Type::Text,
        ExprKind::Neg(_) | ExprKind::Arith(..) => Type::Number,
        ExprKind::Var(_) => return None,
    })
}
