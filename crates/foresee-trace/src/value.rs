//! Values of variables and arguments of events.

use std::hash::{Hash, Hasher};

use crate::ids::SymId;

/// A value of a program variable or an argument of an event.
///
/// Two values are equal if they have the same type and the same bits: this is the equality of "the
/// read saw what the write stored". Specifications define their own comparison.
///
/// ```
/// use foresee_trace::Value;
///
/// assert_eq!(Value::from_u64(7), Value::Int(7));
/// assert_ne!(Value::Float(1.0), Value::Int(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// An integer that fits into 64 bits with sign.
    Int(i64),
    /// An integer above [`i64::MAX`]; smaller ones are always [`Value::Int`].
    Uint(u64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A string, in [`crate::Names::syms`].
    Str(SymId),
}

impl Value {
    /// The value of an unsigned number in its canonical form.
    #[inline]
    pub fn from_u64(n: u64) -> Value {
        i64::try_from(n).map_or(Value::Uint(n), Value::Int)
    }

    /// Whether equal values mean the same to a program. A number that may be a memory address does
    /// not: after `free`, another block may get the same address, and a read through it then reads
    /// another variable. Programs and their heaps start at four MiB or above; the upper half of the
    /// address space belongs to no program, and the last 32-bit numbers are small negative ones.
    #[inline]
    pub fn stands_for_itself(self) -> bool {
        match self {
            Value::Int(n) => n < 0x40_0000 || (0xffff_0000..=0xffff_ffff).contains(&n),
            _ => true,
        }
    }

    fn key(self) -> (u8, u64) {
        match self {
            Value::Int(n) => (0, n as u64),
            Value::Uint(n) => (1, n),
            Value::Float(x) => (2, x.to_bits()),
            Value::Bool(b) => (3, u64::from(b)),
            Value::Str(s) => (4, u64::from(s.0)),
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_by_type_and_bits() {
        assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
        assert_ne!(Value::Float(0.0), Value::Float(-0.0));
        assert_ne!(Value::Int(1), Value::Bool(true));
        assert_eq!(Value::from_u64(7), Value::Int(7));
        assert_eq!(Value::from_u64(u64::MAX), Value::Uint(u64::MAX));
    }
}
