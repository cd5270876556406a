//! The std format: RAPID's text, one `thread|operation|location` per line.

use std::fmt::Write as _;

use foresee_trace::{Event, Name, Names, Op, Pool, Remarks, TargetKind, Value};

use crate::lines::find_near;
use crate::operation::{OperationParser, leading_word, whole_name};
use crate::parse_error::{ParseError, Parsed, shown};
use crate::text::{LineParser, LineWriter, TextFormat};
use crate::value::small_number;

/// RAPID's text format with our extensions for values and further operations.
#[derive(Clone, Copy, Debug)]
pub struct Std;

impl TextFormat for Std {
    type Lines = StdLines;

    const ABOUT: &'static str = "RAPID's text, one event a line: thread|op(target)=value|location";

    /// An empty trace, unless it says what else it is.
    const HAS_COMMENTS_ONLY: bool = true;

    fn sniff_line(line: &str, _: &[u8]) -> bool {
        looks_like_std(line)
    }
}

/// Accepts any word for the operation, so that a wrong one gets a message with its line.
fn looks_like_std(line: &str) -> bool {
    let mut fields = line.split('|');
    let (Some(_), Some(op)) = (fields.next(), fields.next().map(str::trim_ascii)) else {
        return false;
    };
    let word = leading_word(op);
    let rest = &op[word.len()..];
    !word.is_empty() && (rest.is_empty() || rest.starts_with('(')) && fields.count() <= 1
}

#[derive(Default)]
pub(crate) struct StdLines {
    operation: OperationParser,
    unquoted: String,
}

impl LineParser for StdLines {
    #[inline]
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        pool: &mut Pool,
        _: &mut Remarks,
    ) -> Parsed<Option<Event>> {
        if let Some(line) = UsualLine::of(line) {
            let thread = self.operation.known.thread(line.thread, names)?;
            let target = match line.op {
                Op::Acquire | Op::Release => {
                    self.operation.known.target(TargetKind::Lock, line.target, names)?
                }
                _ => self.operation.known.target(TargetKind::Var, line.target, names)?,
            };
            let loc = self.operation.known.loc(line.loc, names)?;
            let event = Event::new(thread, line.op).with_target(target).with_loc(loc);
            return Ok(Some(match line.value {
                Some(value) => event.with_values(&[Value::Int(value)], pool),
                None => event,
            }));
        }
        self.any_line(line, names, pool).map(Some)
    }
}

impl StdLines {
    /// Parses a line of any form.
    fn any_line(&mut self, line: &str, names: &mut Names, pool: &mut Pool) -> Parsed<Event> {
        let Some(bar) = find_near(b'|', line.as_bytes()) else { return Err(no_bar(line)) };
        let (thread, rest) = (&line[..bar], &line[bar + 1..]);
        let (operation, location) = match find_near(b'|', rest.as_bytes()) {
            Some(bar) => (&rest[..bar], &rest[bar + 1..]),
            None => (rest, ""),
        };
        let thread = trimmed(thread);
        if thread.is_empty() {
            return Err(ParseError::syntax("the thread is missing"));
        }
        let thread = whole_name(&mut self.unquoted, thread)?;
        let thread = self.operation.known.thread(thread, names)?;
        let (event, rest) = self.operation.parse(thread, trimmed(operation), names, pool)?;
        if !rest.is_empty() {
            return Err(ParseError::syntax(format!("{} after the operation", shown(rest))));
        }
        let location = trimmed(location);
        if location.is_empty() {
            return Ok(event);
        }
        if find_near(b'|', location.as_bytes()).is_some() {
            return Err(ParseError::syntax(format!("{} has one bar too many", shown(line)))
                .with_help("a line is thread|operation|location; write \"a\\u{7c}b\" for a bar"));
        }
        let location = whole_name(&mut self.unquoted, location)?;
        Ok(event.with_loc(self.operation.known.loc(location, names)?))
    }
}

/// The usual line: an access or a lock operation, nothing quoted, and at most a small number as its
/// value. It is parsed separately because the general case takes several times as long.
struct UsualLine<'a> {
    thread: &'a str,
    op: Op,
    target: &'a str,
    value: Option<i64>,
    loc: &'a str,
}

impl<'a> UsualLine<'a> {
    #[inline]
    fn of(line: &'a str) -> Option<UsualLine<'a>> {
        let bytes = line.as_bytes();
        let bar = find_near(b'|', bytes)?;
        let (op, start) = match &bytes[bar + 1..] {
            // One case for both, because the branch is unpredictable.
            [letter @ (b'r' | b'w'), b'(', ..] => {
                (if *letter == b'r' { Op::Read } else { Op::Write }, bar + 3)
            }
            [b'a', b'c', b'q', b'(', ..] => (Op::Acquire, bar + 5),
            [b'r', b'e', b'l', b'(', ..] => (Op::Release, bar + 5),
            _ => return None,
        };
        let rest = &bytes[start..];
        let second_bar = find_near(b'|', rest)?;
        // The first bracket must be the last one; otherwise the general case applies.
        let bracket = find_near(b')', &rest[..second_bar])?;
        let value = match &rest[bracket + 1..second_bar] {
            [] => None,
            [b'=', value @ ..] if matches!(op, Op::Read | Op::Write) => Some(small_number(value)?),
            _ => return None,
        };
        let (target, loc) = (start..start + bracket, start + second_bar + 1);
        let plain = is_plain(&bytes[..bar])
            && is_plain(&bytes[target.clone()])
            && (loc == bytes.len() || is_plain(&bytes[loc..]))
            && find_near(b'|', &bytes[loc..]).is_none();
        let (thread, target, loc) = (&line[..bar], &line[target], &line[loc..]);
        plain.then_some(UsualLine { thread, op, target, value, loc })
    }
}

/// Whether a field is neither empty nor quoted and has no spaces around it.
#[inline]
fn is_plain(field: &[u8]) -> bool {
    match (field.first(), field.last()) {
        (Some(&first), Some(&last)) => first > b' ' && last > b' ' && first != b'"',
        _ => false,
    }
}

/// The field without surrounding spaces; tools write none.
#[inline]
fn trimmed(field: &str) -> &str {
    if is_plain(field.as_bytes()) { field } else { field.trim_ascii() }
}

#[cold]
fn no_bar(line: &str) -> Box<ParseError> {
    ParseError::syntax(format!("expected thread|operation|location, found {}", shown(line)))
}

impl LineWriter for StdLines {
    const FORMAT: &'static str = "std";

    fn event(&mut self, event: &Event, names: &Names, pool: &Pool, out: &mut String) {
        let thread = Name(names.threads.get(event.thread()));
        // Writing to a string cannot fail.
        let _ = write!(out, "{thread}|{}|", event.describe(names, pool));
        if event.loc().is_some() {
            let _ = write!(out, "{}", Name(names.locs.get(event.loc())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_lines_mean_the_same_read_slowly() {
        const PIECES: &[&str] = &[
            "T1",
            "x",
            "|",
            "|",
            "|",
            "r(",
            "w(",
            "acq(",
            "rel(",
            ")",
            ")",
            "(",
            "=",
            "20",
            "-7",
            "\"",
            " ",
            "nan(7ff8000000000000)",
            "main.c:14",
            "é",
            "begin",
            "->",
            ",",
            "V234.23[0]",
        ];
        let (mut random, mut usual) = (1u64, 0);
        for round in 0..300_000 {
            let mut piece = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                PIECES[(random >> 33) as usize % PIECES.len()]
            };
            // Lines that are almost correct, and lines that are not.
            let line: String = match round % 3 {
                0 => ["T1|w(", piece(), piece(), ")", piece(), piece(), "|", piece()].concat(),
                1 => [piece(), piece(), "|r(", piece(), ")|", piece(), piece()].concat(),
                _ => (0..8).map(|_| piece()).collect(),
            };
            usual += u32::from(UsualLine::of(&line).is_some());
            let read = |slowly: bool| {
                let (mut names, mut pool) = (Names::default(), Pool::default());
                let mut lines = StdLines::default();
                let event = match slowly {
                    true => lines.any_line(&line, &mut names, &mut pool),
                    false => lines
                        .line(&line, &mut names, &mut pool, &mut Remarks::default())
                        .map(|event| event.expect("every line is an event")),
                };
                let event = event.map_err(|error| error.message)?;
                let (thread, loc) =
                    (names.threads.get(event.thread()), names.locs.get(event.loc()));
                Ok::<_, String>(format!("{thread:?} {} {loc:?}", event.describe(&names, &pool)))
            };
            assert_eq!(read(true), read(false), "{line}");
        }
        assert!(usual > 1000, "{usual}");
    }
}
