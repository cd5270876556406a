//! Parses `op(operands)=values`, the common part of std, rr and csv lines.
//!
//! It parses exactly what `Event::describe` writes. Names written by other tools are parsed more
//! leniently: the only operand of an operation may contain anything, including brackets.

use foresee_trace::{ErrorKind, Event, Names, Op, Pool, TargetKind, ThreadId, Value};
use memchr::{memchr2, memrchr};

use crate::cache::KnownNames;
use crate::lines::find_near;

use crate::parse_error::{ParseError, Parsed, shown};
use crate::shape::{MAX_VALUES, TargetRule, is_wait_half, max_values, target_rule};
use crate::value::{Scalar, scalar, small_number, token_length};

/// Words of other tools for our operations.
const ALIASES: &[(&str, Op)] =
    &[("notifyall", Op::NotifyAll), ("start", Op::Fork), ("sync", Op::Rmw)];

/// The operation of a word in the text formats.
#[inline]
pub(crate) fn op_of_word(word: &[u8]) -> Option<Op> {
    match word {
        // Nearly all events of every trace are one of these four.
        b"r" => Some(Op::Read),
        b"w" => Some(Op::Write),
        b"acq" => Some(Op::Acquire),
        b"rel" => Some(Op::Release),
        _ => {
            let known = Op::ALL.iter().find(|op| op.word().as_bytes() == word).copied();
            known.or_else(|| ALIASES.iter().find(|(w, _)| w.as_bytes() == word).map(|&(_, op)| op))
        }
    }
}

/// The word at the start of a text, which may name an operation.
#[inline]
pub(crate) fn leading_word(text: &str) -> &str {
    let is_part = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    &text[..text.bytes().position(|b| !is_part(&b)).unwrap_or(text.len())]
}

/// A parser with buffers that are reused for each line.
#[derive(Debug, Default)]
pub(crate) struct OperationParser {
    values: Vec<Value>,
    unquoted: String,
    pub(crate) known: KnownNames,
}

impl OperationParser {
    /// Parses an operation at the start of `text`; also returns the rest.
    #[inline]
    pub(crate) fn parse<'t>(
        &mut self,
        thread: ThreadId,
        text: &'t str,
        names: &mut Names,
        pool: &mut Pool,
    ) -> Parsed<(Event, &'t str)> {
        let word = leading_word(text);
        let Some(op) = op_of_word(word.as_bytes()) else {
            return Err(unknown_op(text));
        };
        let event = Event::new(thread, op);
        let rest = &text[word.len()..];
        match rest.strip_prefix('(') {
            Some(operands) => self.operands(event, operands, names, pool),
            None if target_rule(op) == TargetRule::Always => Err(missing_operand(op)),
            None => Ok((event, rest)),
        }
    }

    /// Parses the operands of an operation, the closing bracket, and the values.
    #[inline]
    pub(crate) fn operands<'t>(
        &mut self,
        event: Event,
        text: &'t str,
        names: &mut Names,
        pool: &mut Pool,
    ) -> Parsed<(Event, &'t str)> {
        let op = event.op();
        match op.target_kind() {
            TargetKind::None => match text.strip_prefix(')') {
                Some(rest) => Ok((event, rest)),
                None => Err(ParseError::syntax(format!("\"{}\" has no operand", op.word()))),
            },
            TargetKind::Sym => self.call(event, text, names, pool),
            TargetKind::Cond if is_wait_half(op) => self.wait_half(event, text, names),
            _ => self.access(event, text, names, pool),
        }
    }

    /// `target)`, optionally followed by `=value` or `=old->new`.
    #[inline]
    fn access<'t>(
        &mut self,
        event: Event,
        text: &'t str,
        names: &mut Names,
        pool: &mut Pool,
    ) -> Parsed<(Event, &'t str)> {
        let op = event.op();
        let (name, rest) = only_operand(&mut self.unquoted, text)?;
        let Some(name) = name else { return Err(missing_operand(op)) };
        let event = event.with_target(self.known.target(op.target_kind(), name, names)?);
        let Some(mut values) = rest.strip_prefix('=') else { return Ok((event, rest)) };
        self.values.clear();
        loop {
            let (value, rest) = self.value(values, names)?;
            self.push(op, value)?;
            match rest.strip_prefix("->") {
                Some(more) => values = more,
                None => return Ok((event.with_values(&self.values, pool), rest)),
            }
        }
    }

    /// `name,argument,argument)`.
    fn call<'t>(
        &mut self,
        event: Event,
        text: &'t str,
        names: &mut Names,
        pool: &mut Pool,
    ) -> Parsed<(Event, &'t str)> {
        let op = event.op();
        let (name, mut rest) = listed_name(&mut self.unquoted, text)?;
        let event = match name {
            Some(name) => event.with_target(names.syms.intern(name)?.0),
            None if target_rule(op) == TargetRule::Always => return Err(missing_operand(op)),
            None => event,
        };
        self.values.clear();
        while let Some(argument) = rest.strip_prefix(',') {
            let value;
            (value, rest) = self.value(argument, names)?;
            self.push(op, value)?;
        }
        Ok((event.with_values(&self.values, pool), closed(rest)?))
    }

    /// `condition)` or `condition,lock)`.
    fn wait_half<'t>(
        &mut self,
        event: Event,
        text: &'t str,
        names: &mut Names,
    ) -> Parsed<(Event, &'t str)> {
        let (cond, rest) = listed_name(&mut self.unquoted, text)?;
        let Some(cond) = cond else { return Err(missing_operand(event.op())) };
        let event = event.with_target(names.conds.intern(cond)?.0);
        let Some(lock) = rest.strip_prefix(',') else { return Ok((event, closed(rest)?)) };
        let (lock, rest) = listed_name(&mut self.unquoted, lock)?;
        let lock = lock.map(|lock| names.locks.intern(lock)).transpose()?;
        Ok((event.with_wait_lock(lock), closed(rest)?))
    }

    #[inline]
    fn push(&mut self, op: Op, value: Value) -> Parsed<()> {
        if self.values.len() == max_values(op) {
            let (word, most) = (op.word(), max_values(op));
            let message = format!("too many values: \"{word}\" has at most {most}");
            let kind = if most == MAX_VALUES { ErrorKind::Limit } else { ErrorKind::Syntax };
            return Err(Box::new(ParseError { kind, message, help: None }));
        }
        self.values.push(value);
        Ok(())
    }

    #[inline]
    fn value<'t>(&mut self, text: &'t str, names: &mut Names) -> Parsed<(Value, &'t str)> {
        if let Some(quoted) = text.strip_prefix('"') {
            let (text, rest) = unquote(&mut self.unquoted, quoted)?;
            return Ok((Value::Str(names.syms.intern(text)?), rest));
        }
        if let Some(number) = small_number(text.as_bytes()) {
            return Ok((Value::Int(number), ""));
        }
        let (token, rest) = text.split_at(token_length(text));
        let value = match scalar(token)? {
            Scalar::Value(value) => value,
            Scalar::Word => Value::Str(names.syms.intern(token)?),
        };
        Ok((value, rest))
    }
}

/// A name and the rest; the text of the name is in the input or in the buffer.
type NameAndRest<'s, 't> = Parsed<(Option<&'s str>, &'t str)>;

/// The only operand of an operation, and what follows its closing bracket.
#[inline]
fn only_operand<'s, 't: 's>(buffer: &'s mut String, text: &'t str) -> NameAndRest<'s, 't> {
    if text.starts_with('"') {
        let (name, rest) = listed_name(buffer, text)?;
        return Ok((name, closed(rest)?));
    }
    let bytes = text.as_bytes();
    let first = find_near(b')', bytes).ok_or_else(unclosed)?;
    // Brackets are matched only where it makes a difference.
    let end = match bytes.get(first + 1) {
        None => first,
        Some(b'=') if find_near(b'(', &bytes[..first]).is_none() => first,
        Some(_) => closing_bracket(bytes),
    };
    let name = &text[..end];
    Ok(((!name.is_empty()).then_some(name), &text[end + 1..]))
}

/// The end of the operand: its matching bracket, unless what follows shows that the brackets belong
/// to a foreign name, which then extends to the last one.
fn closing_bracket(bytes: &[u8]) -> usize {
    let matching = name_length(bytes, false);
    let followed_well =
        matches!(bytes.get(matching + 1), None | Some(b'=' | b'@' | b' ' | b'\t' | b'\r'));
    if matching < bytes.len() && followed_well {
        matching
    } else {
        memrchr(b')', bytes).unwrap_or(matching)
    }
}

/// The length of an unquoted name: up to the bracket that closes the list, or, within a list, to a
/// comma.
fn name_length(bytes: &[u8], in_list: bool) -> usize {
    let mut depth = 0u32;
    let ends = |&byte: &u8| {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return true,
            b')' => depth -= 1,
            b',' => return in_list && depth == 0,
            _ => {}
        }
        false
    };
    bytes.iter().position(ends).unwrap_or(bytes.len())
}

/// A name in a list, and the comma or bracket after it.
pub(crate) fn listed_name<'s, 't: 's>(
    buffer: &'s mut String,
    text: &'t str,
) -> NameAndRest<'s, 't> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = unquote(buffer, quoted)?;
        return Ok((Some(name), rest));
    }
    let (name, rest) = text.split_at(name_length(text.as_bytes(), true));
    Ok(((!name.is_empty()).then_some(name), rest))
}

/// A name that makes up a whole text, with or without quotes.
#[inline]
pub(crate) fn whole_name<'s, 't: 's>(buffer: &'s mut String, text: &'t str) -> Parsed<&'s str> {
    let Some(quoted) = text.strip_prefix('"') else { return Ok(text) };
    match unquote(buffer, quoted)? {
        (name, "") => Ok(name),
        (_, rest) => Err(ParseError::syntax(format!("{} after a quoted name", shown(rest)))),
    }
}

fn closed(rest: &str) -> Parsed<&str> {
    match rest.strip_prefix(')') {
        Some(rest) => Ok(rest),
        None if rest.is_empty() => Err(unclosed()),
        None => Err(ParseError::syntax(format!("expected \",\" or \")\" before {}", shown(rest)))),
    }
}

#[cold]
fn unclosed() -> Box<ParseError> {
    ParseError::syntax("the closing bracket \")\" is missing")
}

#[cold]
fn missing_operand(op: Op) -> Box<ParseError> {
    let word = op.word();
    ParseError::syntax(format!("\"{word}\" needs an operand, as in {word}(name)"))
}

#[cold]
pub(crate) fn unknown_op(text: &str) -> Box<ParseError> {
    let mut words: Vec<&str> = Vec::new();
    for word in Op::ALL.iter().map(|op| op.word()) {
        // Inner operations of locks share the words of outer ones.
        if !words.contains(&word) {
            words.push(word);
        }
    }
    ParseError::syntax(format!("expected an operation, found {}", shown(text)))
        .with_help(format!("operations are {}", words.join(" ")))
}

/// The text after an opening quote, up to the closing one, and the rest.
fn unquote<'s, 't: 's>(buffer: &'s mut String, text: &'t str) -> Parsed<(&'s str, &'t str)> {
    let no_end = || ParseError::syntax("the closing quote is missing");
    let mut rest = text;
    buffer.clear();
    loop {
        let stop = memchr2(b'"', b'\\', rest.as_bytes()).ok_or_else(no_end)?;
        let (plain, after) = (&rest[..stop], &rest[stop + 1..]);
        if rest.as_bytes()[stop] == b'"' {
            if buffer.is_empty() {
                return Ok((plain, after));
            }
            buffer.push_str(plain);
            return Ok((buffer, after));
        }
        buffer.push_str(plain);
        let (c, after) = escape(after).ok_or_else(|| {
            ParseError::syntax(format!("unknown escape {}", shown(&rest[stop..])))
                .with_help("escapes are \\\" \\\\ \\n \\r \\t and \\u{hex}")
        })?;
        buffer.push(c);
        rest = after;
    }
}

/// The character after a backslash.
fn escape(text: &str) -> Option<(char, &str)> {
    let c = match text.as_bytes().first()? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'"' => '"',
        b'\\' => '\\',
        b'u' => {
            let (hex, rest) = text[1..].strip_prefix('{')?.split_once('}')?;
            // `from_str_radix` would also accept a sign.
            let code = hex.bytes().all(|b| b.is_ascii_hexdigit()).then_some(hex)?;
            return Some((char::from_u32(u32::from_str_radix(code, 16).ok()?)?, rest));
        }
        _ => return None,
    };
    Some((c, &text[1..]))
}
