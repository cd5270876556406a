//! Values as the text formats write them.

use foresee_trace::Value;
use memchr::memchr;

use crate::parse_error::{ParseError, Parsed, shown};

/// The number that makes up the whole text, if it is short: by far the most common value.
#[inline]
pub(crate) fn small_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if digits.len() == text.len() { number } else { -number })
}

/// The length of an unquoted value.
pub(crate) fn token_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let ends = |i: usize| match bytes[i] {
        b',' | b'(' | b')' | b'@' | b'|' | b'"' | b' ' | b'\t' => true,
        b'-' => bytes.get(i + 1) == Some(&b'>'),
        _ => false,
    };
    let end = (0..bytes.len()).find(|&i| ends(i)).unwrap_or(bytes.len());
    // The bits of a NaN are in brackets.
    match &text[..end] {
        "nan" if bytes.get(end) == Some(&b'(') => {
            memchr(b')', bytes).map_or(bytes.len(), |close| close + 1)
        }
        _ => end,
    }
}

/// An unquoted value.
#[derive(Debug, PartialEq)]
pub(crate) enum Scalar {
    Value(Value),
    /// A text without quotes.
    Word,
}

/// Parses an unquoted value.
pub(crate) fn scalar(token: &str) -> Parsed<Scalar> {
    let value = match token {
        "" => return Err(ParseError::syntax("a value is missing")),
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "nan" => Value::Float(f64::NAN),
        "inf" => Value::Float(f64::INFINITY),
        "-inf" => Value::Float(f64::NEG_INFINITY),
        _ if token.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => number(token)?,
        _ => match token.strip_prefix("nan(").and_then(|t| t.strip_suffix(')')) {
            Some(bits) => nan(bits).ok_or_else(|| {
                ParseError::syntax(format!(
                    "{} is not the bits of a NaN in hexadecimal",
                    shown(bits)
                ))
            })?,
            None if token.starts_with("nan(") => return Err(not_a_value(token)),
            None if token.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                return Ok(Scalar::Word);
            }
            None => return Err(not_a_value(token)),
        },
    };
    Ok(Scalar::Value(value))
}

fn nan(bits: &str) -> Option<Value> {
    let bits = bits.bytes().all(|b| b.is_ascii_hexdigit()).then_some(bits)?;
    let value = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
    value.is_nan().then_some(Value::Float(value))
}

fn number(token: &str) -> Parsed<Value> {
    let digits = token.strip_prefix(['-', '+']).unwrap_or(token);
    let out_of_range =
        || ParseError::syntax(format!("the number {} is out of range", shown(token)));
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        let signed = token.parse().map(Value::Int);
        return signed.or_else(|_| {
            let unsigned = if token.starts_with('-') { None } else { digits.parse().ok() };
            unsigned.map(Value::from_u64).ok_or_else(out_of_range)
        });
    }
    // Rust also parses words like "infinity" as numbers.
    if digits.bytes().any(|b| b.is_ascii_alphabetic() && !matches!(b, b'e' | b'E')) {
        return Err(not_a_value(token));
    }
    match token.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Value::Float(value)),
        Ok(_) => Err(out_of_range()),
        Err(_) => Err(not_a_value(token)),
    }
}

#[cold]
fn not_a_value(token: &str) -> Box<ParseError> {
    ParseError::syntax(format!("{} is not a value", shown(token)))
        .with_help("values are numbers, true, false, words, and any text in double quotes")
}
