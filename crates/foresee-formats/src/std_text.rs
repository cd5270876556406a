//! The std format: RAPID's text, `thread|operation|location` a line.

use std::fmt::Write as _;
use std::io::{Read, Write};

use foresee_trace::{Event, EventSink, EventSource, Name, Names, Pool, ReadError, Remarks};
use memchr::memchr;

use crate::Format;
use crate::operation::{OperationParser, Parsed, Trouble, leading_word, shown, whole_name};
use crate::text::{Head, LineParser, LineWriter, TextSink, TextSource, survey};

/// RAPID's text format with our extensions for values and further operations.
#[derive(Clone, Copy, Debug)]
pub struct Std;

impl Format for Std {
    fn name(&self) -> &'static str {
        StdLines::FORMAT
    }

    fn about(&self) -> &'static str {
        "RAPID's text, one event a line: thread|op(target)=value|location"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        match survey(head) {
            Head::Declared(name) => name == self.name(),
            Head::Line(line) => looks_like_std(line),
            // An empty trace, unless it says what else it is.
            Head::CommentsOnly => true,
            Head::Nothing => false,
        }
    }

    fn read<'r>(
        &self,
        input: Box<dyn Read + 'r>,
    ) -> Result<Box<dyn EventSource + 'r>, ReadError> {
        Ok(Box::new(TextSource::new(input, StdLines::default())))
    }

    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w> {
        Box::new(TextSink::new(output, StdLines::default()))
    }
}

/// Any word will do for the operation, so that a wrong one gets a message with its line.
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
struct StdLines {
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
        let Some(bar) = memchr(b'|', line.as_bytes()) else { return Err(no_bar(line)) };
        let (thread, rest) = (&line[..bar], &line[bar + 1..]);
        let (operation, location) = match memchr(b'|', rest.as_bytes()) {
            Some(bar) => (&rest[..bar], &rest[bar + 1..]),
            None => (rest, ""),
        };
        let thread = whole_name(&mut self.unquoted, trimmed(thread))?;
        if thread.is_empty() && !line.starts_with('"') {
            return Err(Trouble::syntax("the thread is missing"));
        }
        let thread = names.thread(thread)?;
        let (event, rest) = self.operation.parse(thread, trimmed(operation), names, pool)?;
        if !rest.is_empty() {
            return Err(Trouble::syntax(format!("{} after the operation", shown(rest))));
        }
        let location = trimmed(location);
        if location.is_empty() {
            return Ok(Some(event));
        }
        if memchr(b'|', location.as_bytes()).is_some() {
            return Err(Trouble::syntax(format!("{} has one bar too many", shown(line)))
                .with_help("a line is thread|operation|location; write \"a\\u{7c}b\" for a bar"));
        }
        let location = whole_name(&mut self.unquoted, location)?;
        Ok(Some(event.with_loc(names.locs.intern(location)?)))
    }
}

/// Without the spaces around it; there are none in what tools write.
#[inline]
fn trimmed(field: &str) -> &str {
    match field.as_bytes() {
        [first, .., last] if *first > b' ' && *last > b' ' => field,
        _ => field.trim_ascii(),
    }
}

#[cold]
fn no_bar(line: &str) -> Box<Trouble> {
    Trouble::syntax(format!("expected thread|operation|location, found {}", shown(line)))
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
