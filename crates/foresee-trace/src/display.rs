//! The text of an event as people read it: `w(x)=20`, `enter(next,it7)`, `rmw(n)=1->2`.
//!
//! The std format uses the same text in the middle of its lines, so it can be parsed back.

use std::fmt;

use crate::event::{Event, Op, Pool, TargetKind};
use crate::ids::{CondId, LockId, SymId, ThreadId, VarId};
use crate::names::Names;
use crate::trace::Trace;
use crate::value::Value;

/// An event together with the names behind its numbers.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    event: &'a Event,
    names: &'a Names,
    pool: &'a Pool,
}

impl Event {
    /// The event as text, without thread and location.
    pub fn describe<'a>(&'a self, names: &'a Names, pool: &'a Pool) -> Described<'a> {
        Described { event: self, names, pool }
    }

    /// The text of the target, for operations that have one.
    pub fn target_name<'a>(&self, names: &'a Names) -> Option<&'a str> {
        let target = self.target()?;
        match self.op().target_kind() {
            TargetKind::None => None,
            TargetKind::Var => Some(names.vars.get(VarId(target))),
            TargetKind::Lock => Some(names.locks.get(LockId(target))),
            TargetKind::Cond => Some(names.conds.get(CondId(target))),
            TargetKind::Thread => Some(names.threads.get(ThreadId(target))),
            TargetKind::Sym => Some(names.syms.get(SymId(target))),
        }
    }
}

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Described { event, names, pool } = *self;
        let op = event.op();
        f.write_str(op.word())?;
        let values = pool.values(event);
        let target = event.target_name(names);
        if target.is_none() && values.is_empty() {
            return Ok(());
        }
        f.write_str("(")?;
        if let Some(target) = target {
            write!(f, "{}", Name(target))?;
        }
        match op {
            Op::Enter | Op::Exit | Op::Event | Op::Begin | Op::End => {
                for &value in values.iter() {
                    write!(f, ",{}", DescribedValue { value, names })?;
                }
                return f.write_str(")");
            }
            Op::WaitBegin | Op::WaitEnd => {
                if let Some(lock) = event.wait_lock() {
                    write!(f, ",{}", Name(names.locks.get(lock)))?;
                }
            }
            _ => {}
        }
        f.write_str(")")?;
        for (i, &value) in values.iter().enumerate() {
            f.write_str(if i == 0 { "=" } else { "->" })?;
            write!(f, "{}", DescribedValue { value, names })?;
        }
        Ok(())
    }
}

/// The trace in the std format: what a bug report or a failing test shows.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            let thread = Name(self.names.threads.get(event.thread()));
            write!(f, "{thread}|{}|", event.describe(&self.names, &self.pool))?;
            if event.loc().is_some() {
                write!(f, "{}", Name(self.names.locs.get(event.loc())))?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

/// A name as the text formats write it: verbatim, or quoted if it would be misread.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a>(pub &'a str);

impl Name<'_> {
    /// Whether the name needs no quotes.
    ///
    /// RAPID's names have no white space and no `|`. Commas and brackets are common in Java and C++
    /// names and harmless in the only operand of an operation, but not in a list. One rule covers
    /// both cases: brackets must be balanced, and commas must be inside them.
    pub fn is_plain(self) -> bool {
        let mut depth = 0u32;
        // At the start of a line, `#` begins a comment, and a byte order mark is not part of the
        // text.
        if self.0.is_empty() || self.0.starts_with(['#', '\u{feff}']) {
            return false;
        }
        for c in self.0.chars() {
            match c {
                '|' | '"' | '\\' => return false,
                c if is_hidden(c) || c.is_whitespace() => return false,
                '(' => depth += 1,
                ')' if depth == 0 => return false,
                ')' => depth -= 1,
                ',' if depth == 0 => return false,
                _ => {}
            }
        }
        depth == 0
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_plain() { f.write_str(self.0) } else { quoted(self.0, f) }
    }
}

/// Writes a text in double quotes and escapes what would end or break it.
fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if is_hidden(c) => write!(f, "\\u{{{:x}}}", c as u32)?,
            // The std format splits lines at bars before it parses quotes.
            '|' => f.write_str("\\u{7c}")?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

/// Whether a character is invisible or changes how others look: control characters, which terminals
/// interpret, and those that change the writing direction or have no width.
pub fn is_hidden(c: char) -> bool {
    let is_invisible = matches!(
        c,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    );
    c.is_control() || is_invisible
}

/// A text from outside, made safe to display: hidden characters are written as `\u{…}`.
#[derive(Clone, Copy, Debug)]
pub struct Visible<'a>(pub &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(is_hidden) {
            let hidden = part.chars().next_back().filter(|&c| is_hidden(c));
            f.write_str(&part[..part.len() - hidden.map_or(0, char::len_utf8)])?;
            if let Some(c) = hidden {
                write!(f, "\\u{{{:x}}}", c as u32)?;
            }
        }
        Ok(())
    }
}

/// A value as the text formats write it.
#[derive(Clone, Copy, Debug)]
pub struct DescribedValue<'a> {
    /// The value.
    pub value: Value,
    /// The names that hold its text, if it is a string.
    pub names: &'a Names,
}

impl fmt::Display for DescribedValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Int(n) => write!(f, "{n}"),
            Value::Uint(n) => write!(f, "{n}"),
            // Debug always prints a point or an exponent, so 2.0 differs from 2.
            Value::Float(x) if x.is_nan() => write!(f, "nan({:x})", x.to_bits()),
            Value::Float(x) => write!(f, "{x:?}"),
            Value::Bool(b) => write!(f, "{b}"),
            Value::Str(s) => {
                let text = self.names.syms.get(s);
                if is_bare_word(text) { f.write_str(text) } else { quoted(text, f) }
            }
        }
    }
}

/// Whether a string value needs no quotes: it is a word that cannot be read as another value.
fn is_bare_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || "_.$:/[]".contains(c))
        && !matches!(text, "true" | "false" | "nan" | "inf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_read_like_their_std_lines() {
        let mut names = Names::default();
        let mut pool = Pool::default();
        let x = names.vars.intern("V234.23[0]").unwrap();
        let f = names.syms.intern("next").unwrap();
        let i = names.syms.intern("it 7").unwrap();
        let c = names.conds.intern("full").unwrap();
        let l = names.locks.intern("m").unwrap();
        let t = ThreadId(0);
        let write = Event::new(t, Op::Write).with_target(x.0);
        let write = write.with_values(&[Value::Int(-20)], &mut pool);
        assert_eq!(write.describe(&names, &pool).to_string(), "w(V234.23[0])=-20");
        let rmw =
            write.with_op(Op::Rmw).with_values(&[Value::Int(1), Value::Float(2.0)], &mut pool);
        assert_eq!(rmw.describe(&names, &pool).to_string(), "rmw(V234.23[0])=1->2.0");
        let enter = Event::new(t, Op::Enter).with_target(f.0);
        let enter = enter.with_values(&[Value::Str(i), Value::Bool(true)], &mut pool);
        assert_eq!(enter.describe(&names, &pool).to_string(), "enter(next,\"it 7\",true)");
        let wait = Event::new(t, Op::WaitEnd).with_target(c.0).with_wait_lock(Some(l));
        assert_eq!(wait.describe(&names, &pool).to_string(), "wait_end(full,m)");
        assert_eq!(Event::new(t, Op::Begin).describe(&names, &pool).to_string(), "begin");
    }

    #[test]
    fn names_are_quoted_only_where_needed() {
        for plain in ["x", "a.b[3]", "f(int,long)", "Ünï", "@03", "t#2", "operator=="] {
            assert_eq!(Name(plain).to_string(), plain);
        }
        assert_eq!(Name("a|b\n").to_string(), "\"a\\u{7c}b\\n\"");
        assert_eq!(Name("f(int, long)").to_string(), "\"f(int, long)\"");
        assert_eq!(Name("").to_string(), "\"\"");
        assert_eq!(Name("a\u{202e}b").to_string(), "\"a\\u{202e}b\"");
    }

    #[test]
    fn nothing_from_outside_is_obeyed_by_a_terminal() {
        let text = "a b\u{1b}[2J\u{9b}31m\u{202e}ü\n";
        assert_eq!(Visible(text).to_string(), "a b\\u{1b}[2J\\u{9b}31m\\u{202e}ü\\u{a}");
        assert_eq!(Visible("").to_string(), "");
    }
}
