//! Values as specifications compare and calculate with them.
//!
//! Integers are exact (127 bits and a sign), so sums of 64-bit variables never wrap. An integer and
//! a
//! floating-point number are compared exactly, too: 2^53 + 1 is greater than 2^53 as a float,
//! although conversion would make them equal. A boolean counts as 0 or 1 when it is compared with a
//! number, because C and Rust captures represent flags differently.

use std::cmp::Ordering;

use foresee_trace::{SymId, Value};

use crate::ast::{ArithOp, CompareOp};

/// The value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Val {
    /// An integer.
    Int(i128),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A text.
    Str(SymId),
}

/// Why an expression has no value, or a comparison is undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EvalError {
    /// The value of a variable is not known (yet).
    Unknown,
    /// A text was compared with a number, or used in arithmetic.
    Type,
    /// An integer left the range of 128 bits.
    Overflow,
    /// Division or remainder by zero.
    DivisionByZero,
}

impl From<Value> for Val {
    #[inline]
    fn from(value: Value) -> Val {
        match value {
            Value::Int(n) => Val::Int(n.into()),
            Value::Uint(n) => Val::Int(n.into()),
            Value::Float(x) => Val::Float(x),
            Value::Bool(b) => Val::Bool(b),
            Value::Str(s) => Val::Str(s),
        }
    }
}

impl Val {
    /// The value as a number, if it is one or counts as one.
    #[inline]
    fn number(self) -> Result<Val, EvalError> {
        match self {
            Val::Bool(b) => Ok(Val::Int(b.into())),
            Val::Str(_) => Err(EvalError::Type),
            number => Ok(number),
        }
    }

    fn float(self) -> f64 {
        match self {
            Val::Float(x) => x,
            Val::Int(n) => n as f64,
            Val::Bool(b) => f64::from(u8::from(b)),
            Val::Str(_) => f64::NAN,
        }
    }

    /// The value as a condition: a true boolean, or a number other than zero.
    #[inline]
    pub fn truth(self) -> Result<bool, EvalError> {
        match self {
            Val::Bool(b) => Ok(b),
            Val::Int(n) => Ok(n != 0),
            Val::Float(x) => Ok(x != 0.0),
            Val::Str(_) => Err(EvalError::Type),
        }
    }

    /// The value with the other sign.
    pub fn negate(self) -> Result<Val, EvalError> {
        match self.number()? {
            Val::Int(n) => n.checked_neg().map(Val::Int).ok_or(EvalError::Overflow),
            other => Ok(Val::Float(-other.float())),
        }
    }
}

/// Compares two values. A text differs from every number and is neither above nor below it, nor
/// above or below another text; such a comparison also returns [`EvalError::Type`].
#[inline]
pub fn compare(op: CompareOp, a: Val, b: Val) -> (bool, Option<EvalError>) {
    let order = match (a, b) {
        (Val::Str(a), Val::Str(b)) => {
            let is_undefined = !matches!(op, CompareOp::Eq | CompareOp::Ne);
            return (
                holds(op, (a == b).then_some(Ordering::Equal)),
                is_undefined.then_some(EvalError::Type),
            );
        }
        (Val::Str(_), _) | (_, Val::Str(_)) => return (op == CompareOp::Ne, Some(EvalError::Type)),
        (Val::Float(a), Val::Float(b)) => a.partial_cmp(&b),
        (a, Val::Float(b)) => compare_exactly(whole(a), b),
        (Val::Float(a), b) => compare_exactly(whole(b), a).map(Ordering::reverse),
        (a, b) => Some(whole(a).cmp(&whole(b))),
    };
    (holds(op, order), None)
}

/// The integer of [`Val::Int`] and [`Val::Bool`].
#[inline]
fn whole(value: Val) -> i128 {
    match value {
        Val::Int(n) => n,
        Val::Bool(b) => b.into(),
        Val::Float(_) | Val::Str(_) => unreachable!("the caller handles other types"),
    }
}

/// Whether `a op b` holds if `order` is the order of `a` and `b`; `None` is unordered.
#[inline]
pub(crate) fn holds(op: CompareOp, order: Option<Ordering>) -> bool {
    match op {
        CompareOp::Eq => order == Some(Ordering::Equal),
        CompareOp::Ne => order != Some(Ordering::Equal),
        CompareOp::Lt => order == Some(Ordering::Less),
        CompareOp::Le => order.is_some_and(Ordering::is_le),
        CompareOp::Gt => order == Some(Ordering::Greater),
        CompareOp::Ge => order.is_some_and(Ordering::is_ge),
    }
}

fn compare_exactly(n: i128, x: f64) -> Option<Ordering> {
    const LIMIT: f64 = (1u128 << 127) as f64;
    if x.is_nan() {
        return None;
    }
    if x >= LIMIT {
        return Some(Ordering::Less);
    }
    if x < -LIMIT {
        return Some(Ordering::Greater);
    }
    // In range, so the conversion only truncates the fraction, which then decides.
    let floor = x.floor();
    Some((n.cmp(&(floor as i128))).then(if x > floor { Ordering::Less } else { Ordering::Equal }))
}

/// Calculates with two values: exactly with integers, in floating point otherwise.
pub fn arith(op: ArithOp, a: Val, b: Val) -> Result<Val, EvalError> {
    if let (Val::Int(a), Val::Int(b)) = (a.number()?, b.number()?) {
        let result = match op {
            ArithOp::Add => a.checked_add(b),
            ArithOp::Sub => a.checked_sub(b),
            ArithOp::Mul => a.checked_mul(b),
            ArithOp::Div | ArithOp::Rem if b == 0 => return Err(EvalError::DivisionByZero),
            ArithOp::Div => a.checked_div(b),
            ArithOp::Rem => a.checked_rem(b),
        };
        return result.map(Val::Int).ok_or(EvalError::Overflow);
    }
    let (a, b) = (a.float(), b.float());
    Ok(Val::Float(match op {
        ArithOp::Add => a + b,
        ArithOp::Sub => a - b,
        ArithOp::Mul => a * b,
        ArithOp::Div => a / b,
        ArithOp::Rem => a % b,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_floating_numbers_compare_exactly() {
        let big = 1i128 << 53;
        let at = |n: i128, x: f64| compare_exactly(n, x);
        assert_eq!(at(big + 1, big as f64), Some(Ordering::Greater));
        assert_eq!(at(big, big as f64), Some(Ordering::Equal));
        assert_eq!(at(-1, -0.5), Some(Ordering::Less));
        assert_eq!(at(-1, -1.5), Some(Ordering::Greater));
        assert_eq!(at(i128::MAX, f64::INFINITY), Some(Ordering::Less));
        assert_eq!(at(i128::MIN, f64::NEG_INFINITY), Some(Ordering::Greater));
        assert_eq!(at(i128::MIN, -(2f64.powi(127))), Some(Ordering::Equal));
        assert_eq!(at(0, f64::NAN), None);
        assert_eq!(at(u64::MAX.into(), u64::MAX as f64), Some(Ordering::Less));
        // Where conversion is exact, both methods agree.
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let (n, x) = (rng.i32(-8..8), f64::from(rng.i32(-32..32)) / 4.0);
            assert_eq!(at(n.into(), x), f64::from(n).partial_cmp(&x));
        }
    }

    #[test]
    fn texts_equal_only_texts() {
        let text = Val::Str(SymId(1));
        assert_eq!(compare(CompareOp::Eq, text, text), (true, None));
        assert_eq!(compare(CompareOp::Eq, text, Val::Int(1)), (false, Some(EvalError::Type)));
        assert_eq!(compare(CompareOp::Ne, text, Val::Int(1)), (true, Some(EvalError::Type)));
        assert_eq!(compare(CompareOp::Lt, text, text), (false, Some(EvalError::Type)));
        assert_eq!(compare(CompareOp::Eq, Val::Bool(true), Val::Int(1)), (true, None));
        assert_eq!(compare(CompareOp::Lt, Val::Bool(false), Val::Float(0.5)), (true, None));
    }

    #[test]
    fn arithmetic_never_wraps() {
        let (max, two) = (Val::Int(i128::MAX), Val::Int(2));
        assert_eq!(arith(ArithOp::Mul, max, two), Err(EvalError::Overflow));
        assert_eq!(arith(ArithOp::Div, max, Val::Int(0)), Err(EvalError::DivisionByZero));
        assert_eq!(
            arith(ArithOp::Div, Val::Int(i128::MIN), Val::Int(-1)),
            Err(EvalError::Overflow)
        );
        assert_eq!(Val::Int(i128::MIN).negate(), Err(EvalError::Overflow));
        let sum = arith(ArithOp::Add, Val::Int(u64::MAX.into()), Val::Int(1));
        assert_eq!(sum, Ok(Val::Int(1 << 64)));
        assert_eq!(arith(ArithOp::Add, two, Val::Float(0.5)), Ok(Val::Float(2.5)));
        assert_eq!(arith(ArithOp::Add, two, Val::Str(SymId(0))), Err(EvalError::Type));
    }
}
