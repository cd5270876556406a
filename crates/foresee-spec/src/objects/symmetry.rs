//! Parameters that can change places: `!(a.open && b.open)` says the same of two objects in both orders, so one order is enough.

use super::rename_body;
use crate::ast::{
    ArithOp, Atom, BinaryOp, Body, CompareOp, Expr, ExprKind, Formula, FormulaKind, Property,
};
use crate::mentions::field_of;
use crate::syntax::print_atom;

/// The pairs of parameters with types that can change places, each with the first of them first.
pub(super) fn exchangeable(property: &Property) -> Vec<(usize, usize)> {
    let Body::Formula(formula) = &property.body else { return Vec::new() };
    let objects = &property.objects;
    let own = shape(formula);
    let mut pairs = Vec::new();
    for second in 1..objects.len() {
        for first in 0..second {
            if objects[first].of.name != objects[second].of.name {
                continue;
            }
            let mut other = property.body.clone();
            rename_body(&mut other, &mut |name, _| {
                let Some((object, path)) = field_of(name, objects) else { return };
                let exchanged = match object {
                    _ if object == first => second,
                    _ if object == second => first,
                    _ => return,
                };
                *name = format!("{}.{path}", objects[exchanged].name.name);
            });
            if matches!(&other, Body::Formula(other) if shape(other) == own) {
                pairs.push((first, second));
            }
        }
    }
    pairs
}

/// A text that is the same for formulas which differ only in the order of operands that can change places.
fn shape(formula: &Formula) -> String {
    match &formula.kind {
        FormulaKind::Const(value) => value.to_string(),
        FormulaKind::Let(_, body) => shape(body),
        FormulaKind::Atom(Atom::Compare(op, left, right)) => {
            let (left, right) = (shape_of_value(left), shape_of_value(right));
            match op {
                CompareOp::Eq | CompareOp::Ne => sorted(&format!("{op:?}"), vec![left, right]),
                CompareOp::Gt => format!("Lt({right}, {left})"),
                CompareOp::Ge => format!("Le({right}, {left})"),
                _ => format!("{op:?}({left}, {right})"),
            }
        }
        FormulaKind::Atom(Atom::Truth(value)) => format!("Truth({})", shape_of_value(value)),
        FormulaKind::Atom(atom) => print_atom(atom),
        FormulaKind::Unary(op, operand) => format!("{op:?}({})", shape(operand)),
        FormulaKind::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Iff), ..) => {
            let mut parts = Vec::new();
            operands(*op, formula, &mut parts);
            sorted(&format!("{op:?}"), parts)
        }
        FormulaKind::Binary(op, left, right) => {
            format!("{op:?}({}, {})", shape(left), shape(right))
        }
    }
}

/// The operands of an operator for which brackets do not matter.
fn operands(of: BinaryOp, formula: &Formula, out: &mut Vec<String>) {
    match &formula.kind {
        FormulaKind::Binary(op, left, right) if *op == of => {
            operands(of, left, out);
            operands(of, right, out);
        }
        _ => out.push(shape(formula)),
    }
}

fn shape_of_value(value: &Expr) -> String {
    match &value.kind {
        ExprKind::Literal(literal) => format!("{literal:?}"),
        ExprKind::Var(name) => name.clone(),
        ExprKind::Neg(operand) => format!("Neg({})", shape_of_value(operand)),
        ExprKind::Arith(op, left, right) => {
            let parts = vec![shape_of_value(left), shape_of_value(right)];
            match op {
                ArithOp::Add | ArithOp::Mul => sorted(&format!("{op:?}"), parts),
                _ => format!("{op:?}({})", parts.join(", ")),
            }
        }
    }
}

fn sorted(op: &str, mut parts: Vec<String>) -> String {
    parts.sort();
    format!("{op}({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::exchangeable;
    use crate::syntax::parse;

    #[test]
    fn parameters_that_can_change_places() {
        for (text, pairs) in [
            ("property p(a: t, b: t): !(a.open == 1 && b.open == 1)", &[(0, 1)][..]),
            ("property p(a: t, b: t): !(a.open == 1 && b.open == 2)", &[]),
            ("property p(a: t, b: t): a.n <= b.n || b.n < a.n", &[]),
            ("property p(a: t, b: t): a.n < b.n || b.n < a.n", &[(0, 1)]),
            ("property p(a: t, b: t): a.n > b.n || b.n > a.n || a.n == b.n", &[(0, 1)]),
            ("property p(a: t, b: u): !(a.open == 1 && b.open == 1)", &[]),
            ("property p(a: t, b: t): a.x + b.x >= 0", &[(0, 1)]),
            ("property p(a: t, b: t): a.x - b.x >= 0", &[]),
            ("property p(a: t, b: t): write(a.x) -> once write(b.x)", &[]),
            (
                "property p(a: t, b: t, c: t): a.x + (b.x + c.x) >= 0 && a.x == b.x && b.x == c.x && a.x == c.x",
                &[(1, 2)],
            ),
            (
                "property p(a: t, b: t, c: t): !(a.x == 1 && b.x == 1 && c.x == 1)",
                &[(0, 1), (0, 2), (1, 2)],
            ),
        ] {
            let parsed = parse(text);
            assert!(!parsed.has_errors(), "{text}: {:?}", parsed.diagnostics);
            assert_eq!(exchangeable(&parsed.spec.properties[0]), pairs, "{text}");
        }
    }
}
