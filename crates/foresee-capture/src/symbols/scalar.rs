//! What the bytes of a variable mean.

use foresee_trace::Value;
use serde::{Deserialize, Serialize};

/// How the bits of a variable are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A whole number with sign.
    Signed,
    /// A whole number without sign.
    Unsigned,
    /// A floating-point number.
    Float,
    /// A truth value.
    Bool,
    /// An address.
    Pointer,
    /// Something without a value that a specification could compare.
    Bytes,
}

/// The type of a variable that is read and written as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scalar {
    /// How to read it.
    pub kind: Kind,
    /// How many bytes it has.
    pub size: u64,
}

impl Scalar {
    /// A scalar of `size` bytes.
    pub fn new(kind: Kind, size: u64) -> Scalar {
        Scalar { kind, size }
    }

    /// The value behind the low `size` bytes of `bits`; none for what is too large or has no value.
    pub fn value(self, bits: u64) -> Option<Value> {
        let unused = 64 - 8 * u32::try_from(self.size).ok().filter(|n| (1..=8).contains(n))?;
        let unsigned = bits << unused >> unused;
        Some(match self.kind {
            Kind::Signed => Value::Int((bits << unused) as i64 >> unused),
            Kind::Unsigned | Kind::Pointer => Value::from_u64(unsigned),
            Kind::Bool => Value::Bool(unsigned != 0),
            Kind::Float if self.size == 4 => {
                Value::Float(f64::from(f32::from_bits(unsigned as u32)))
            }
            Kind::Float if self.size == 8 => Value::Float(f64::from_bits(bits)),
            Kind::Float | Kind::Bytes => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_the_values_that_were_meant() {
        let value = |kind, size, bits| Scalar::new(kind, size).value(bits);
        assert_eq!(value(Kind::Signed, 4, 0xffff_ffff), Some(Value::Int(-1)));
        assert_eq!(value(Kind::Signed, 1, 0x1_80), Some(Value::Int(-128)));
        assert_eq!(value(Kind::Unsigned, 4, 0xffff_ffff), Some(Value::Int(0xffff_ffff)));
        assert_eq!(value(Kind::Unsigned, 8, u64::MAX), Some(Value::Uint(u64::MAX)));
        assert_eq!(value(Kind::Bool, 1, 0xaa01), Some(Value::Bool(true)));
        assert_eq!(value(Kind::Bool, 1, 0xaa00), Some(Value::Bool(false)));
        assert_eq!(value(Kind::Float, 4, 1.5f32.to_bits().into()), Some(Value::Float(1.5)));
        assert_eq!(value(Kind::Float, 8, (-0.25f64).to_bits()), Some(Value::Float(-0.25)));
        assert_eq!(value(Kind::Float, 16, 0), None);
        assert_eq!(value(Kind::Bytes, 8, 0), None);
        assert_eq!(value(Kind::Signed, 0, 0), None);
    }
}
