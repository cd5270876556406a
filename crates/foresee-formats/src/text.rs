//! Shared by all text formats: a source made of a line parser, and a sink made of a line writer.
//!
//! Blank lines and lines that begin with `#` are not events. A comment `# foresee: key=value …`
//! describes the trace: `format=`, `order=notes`, `cut_short="why"`. It may be anywhere; writers
//! put it at the end, when everything is known.

use std::fmt::Write as _;
use std::io::{Read, Write};

use foresee_trace::{
    Batch, Event, EventSink, EventSource, FileOrder, Name, Names, Pool, Position, ReadError,
    Remarks,
};

use crate::Format;
use crate::lines::{LineReader, MAX_LINE};
use crate::operation::whole_name;
use crate::parse_error::{ParseError, Parsed, shown};
use crate::shape::check_batch;

/// A batch ends early if it has more values than this.
pub(crate) const VALUES_PER_BATCH: usize = 65_536;

/// A format whose traces are lines of text: all that distinguishes one such format from another.
pub(crate) trait TextFormat: Sync {
    /// The reader and writer of lines.
    type Lines: LineParser + LineWriter + Default;

    /// One line for `--help`.
    const ABOUT: &'static str;

    /// Whether a file may be of this format whose first line that is not a comment is `line`.
    fn sniff_line(line: &str, head: &[u8]) -> bool;

    /// Whether comments and nothing else are an empty trace in this format.
    const HAS_COMMENTS_ONLY: bool = false;
}

impl<T: TextFormat> Format for T {
    fn name(&self) -> &'static str {
        T::Lines::FORMAT
    }

    fn about(&self) -> &'static str {
        T::ABOUT
    }

    fn sniff(&self, head: &[u8]) -> bool {
        match survey(head) {
            Head::Declared(name) => name == self.name(),
            Head::Line(line) => T::sniff_line(line, head),
            Head::CommentsOnly => T::HAS_COMMENTS_ONLY,
            Head::Nothing => false,
        }
    }

    fn read<'r>(&self, input: Box<dyn Read + 'r>) -> Result<Box<dyn EventSource + 'r>, ReadError> {
        Ok(Box::new(TextSource::<T::Lines>::new(input)))
    }

    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w> {
        Box::new(TextSink::<T::Lines>::new(output))
    }
}

/// The reading half of a text format.
pub(crate) trait LineParser: 'static {
    /// Reads a line that is neither blank nor a comment; `None` if it is not an event.
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        pool: &mut Pool,
        remarks: &mut Remarks,
    ) -> Parsed<Option<Event>>;

    /// Parses what follows the `#` of a comment.
    fn comment(&mut self, text: &str, names: &mut Names, remarks: &mut Remarks) -> Parsed<()> {
        let _ = names;
        read_directives(text, remarks)
    }

    /// Adds what is known only after all lines have been read.
    fn end(&mut self, remarks: &mut Remarks) {
        let _ = remarks;
    }
}

/// The events of a text.
struct TextSource<'r, P> {
    lines: LineReader<'r>,
    parser: P,
    names: Names,
    remarks: Remarks,
    /// The line of the latest batch's first event, as if no line had been skipped.
    first_line: u64,
    /// Events of the latest batch that follow lines without events, and the number of these lines.
    gaps: Vec<(usize, u64)>,
    /// The error to report after the events before it have been returned.
    failed: Option<ReadError>,
    ended: bool,
}

impl<'r, P: LineParser + Default> TextSource<'r, P> {
    fn new(input: Box<dyn Read + 'r>) -> Self {
        TextSource {
            lines: LineReader::new(input),
            parser: P::default(),
            names: Names::default(),
            remarks: Remarks::default(),
            first_line: 1,
            gaps: Vec::new(),
            failed: None,
            ended: false,
        }
    }
}

impl<P: LineParser> TextSource<'_, P> {
    fn fill(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut values = 0;
        while batch.events.len() < Batch::EVENTS && values < VALUES_PER_BATCH {
            let Some(line) = self.lines.next()? else {
                if !std::mem::replace(&mut self.ended, true) {
                    self.parser.end(&mut self.remarks);
                }
                return Ok(());
            };
            let (names, remarks) = (&mut self.names, &mut self.remarks);
            let parsed = if is_content(line) {
                self.parser.line(line, names, &mut batch.pool, remarks)
            } else if let Some(comment) = line.trim_ascii_start().strip_prefix('#') {
                self.parser.comment(comment, names, remarks).map(|()| None)
            } else {
                Ok(None)
            };
            match parsed {
                Ok(Some(event)) => {
                    if event.is_pooled() {
                        values += batch.pool.values(&event).len();
                    }
                    batch.events.push(event);
                }
                Ok(None) => match self.gaps.last_mut() {
                    Some((event, lines)) if *event == batch.events.len() => *lines += 1,
                    _ => self.gaps.push((batch.events.len(), 1)),
                },
                Err(error) => return Err(located(*error, self.lines.number())),
            }
        }
        Ok(())
    }
}

/// Whether a line is neither blank nor a comment.
#[inline]
fn is_content(line: &str) -> bool {
    match line.as_bytes().first() {
        // A letter or a digit, as in nearly all lines.
        Some(first) if *first > b'#' => true,
        _ => !matches!(line.trim_ascii_start().as_bytes().first(), None | Some(b'#')),
    }
}

#[cold]
fn located(error: ParseError, line: u64) -> ReadError {
    let located = ReadError::new(error.kind, Position::Line(line), error.message);
    match error.help {
        Some(help) => located.with_help(help),
        None => located,
    }
}

impl<P: LineParser> EventSource for TextSource<'_, P> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        self.gaps.clear();
        self.first_line = self.lines.number() + 1;
        if let Some(error) = self.failed.take() {
            self.ended = true;
            return Err(error);
        }
        if self.ended {
            return Ok(false);
        }
        match self.fill(batch) {
            // Events before the error are returned first.
            Err(error) if !batch.events.is_empty() => {
                self.failed = Some(error);
                Ok(true)
            }
            Err(error) => {
                self.ended = true;
                Err(error)
            }
            Ok(()) => Ok(!batch.events.is_empty()),
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    fn position(&self, i: usize) -> Position {
        let before = self.gaps.iter().take_while(|(event, _)| *event <= i);
        Position::Line(self.first_line + i as u64 + before.map(|(_, lines)| lines).sum::<u64>())
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}

/// Parses a comment that describes the trace; other comments are ignored.
pub(crate) fn read_directives(comment: &str, remarks: &mut Remarks) -> Parsed<()> {
    let Some(mut text) = comment.trim_start().strip_prefix("foresee:") else { return Ok(()) };
    let mut buffer = String::new();
    loop {
        text = text.trim_start();
        let Some((key, rest)) = text.split_once('=') else {
            return match text {
                "" => Ok(()),
                _ => Err(ParseError::syntax(format!("expected key=value, found {}", shown(text)))),
            };
        };
        let value;
        (value, text) = rest.split_at(directive_length(rest));
        match (key, whole_name(&mut buffer, value)?) {
            ("order", word) => match FileOrder::by_word(word) {
                Some(order) => remarks.order = order,
                None => {
                    let message = format!("there is no order {}", shown(word));
                    let help = "valid orders are observed, thinned and notes";
                    return Err(ParseError::syntax(message).with_help(help));
                }
            },
            ("cut_short", why) => remarks.cut_short = Some(why.to_owned()),
            ("partial", why) => remarks.partial = Some(why.to_owned()),
            ("format", _) => {}
            // Once is enough, and a file must not fill the memory with warnings.
            (key, _) if remarks.warnings.is_empty() => {
                remarks.warnings.push(format!("unknown directive {}", shown(key)));
            }
            _ => {}
        }
    }
}

/// The length of a directive's value: up to white space outside quotes.
fn directive_length(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    let ends = |c: char| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => return c.is_whitespace() && !quoted,
        }
        false
    };
    text.find(ends).unwrap_or(text.len())
}

/// What the beginning of a text reveals about its format.
pub(crate) enum Head<'a> {
    /// A directive names the format.
    Declared(&'a str),
    /// The first line that is not a comment.
    Line(&'a str),
    /// Only comments.
    CommentsOnly,
    /// Not a text, or not a complete line.
    Nothing,
}

/// Examines the lines of `head` up to the first that is not a comment.
pub(crate) fn survey(head: &[u8]) -> Head<'_> {
    // The last character and the last line may be cut off.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut comments = false;
    for line in text.lines().map(str::trim_ascii).filter(|line| !line.is_empty()) {
        let Some(comment) = line.strip_prefix('#') else { return Head::Line(line) };
        comments = true;
        let directive = comment.trim_start().strip_prefix("foresee:");
        let format = directive.and_then(|d| d.trim_start().strip_prefix("format="));
        if let Some(name) = format.and_then(|f| f.split_whitespace().next()) {
            return Head::Declared(name);
        }
    }
    if comments { Head::CommentsOnly } else { Head::Nothing }
}

/// The writing half of a text format.
pub(crate) trait LineWriter: 'static {
    /// The format's name, for a trace that has no event to be recognised by.
    const FORMAT: &'static str;

    /// Called before the events of a batch, if there may be new names.
    fn names(&mut self, names: &Names, out: &mut String) {
        let _ = (names, out);
    }

    /// Writes the line of an event, without its line end.
    fn event(&mut self, event: &Event, names: &Names, pool: &Pool, out: &mut String);

    /// Writes a line that describes the trace.
    fn directives(&self, empty: bool, remarks: &Remarks, out: &mut String) {
        out.push_str("# foresee:");
        if empty {
            let _ = write!(out, " format={}", Self::FORMAT);
        }
        if remarks.order != FileOrder::Observed {
            let _ = write!(out, " order={}", remarks.order.word());
        }
        if let Some(why) = &remarks.cut_short {
            let _ = write!(out, " cut_short={}", Name(why));
        }
        if let Some(why) = &remarks.partial {
            let _ = write!(out, " partial={}", Name(why));
        }
        out.push('\n');
    }
}

/// Writes events as lines.
struct TextSink<'w, L> {
    output: Box<dyn Write + 'w>,
    lines: L,
    buffer: String,
    empty: bool,
    /// The order that has been written so far.
    order: FileOrder,
}

impl<'w, L: LineWriter + Default> TextSink<'w, L> {
    fn new(output: Box<dyn Write + 'w>) -> Self {
        let (lines, order) = (L::default(), FileOrder::Observed);
        TextSink { output, lines, buffer: String::new(), empty: true, order }
    }
}

impl<L: LineWriter> TextSink<'_, L> {
    fn flush(&mut self) -> std::io::Result<()> {
        self.output.write_all(self.buffer.as_bytes())?;
        self.buffer.clear();
        Ok(())
    }
}

impl<L: LineWriter> EventSink for TextSink<'_, L> {
    fn begin(&mut self, remarks: &Remarks) -> std::io::Result<()> {
        let known = Remarks { order: remarks.order, ..Remarks::default() };
        if known.order != self.order {
            self.lines.directives(false, &known, &mut self.buffer);
            self.order = known.order;
        }
        Ok(())
    }

    fn write_batch(&mut self, batch: &Batch, names: &Names) -> std::io::Result<()> {
        const FLUSH: usize = 64 << 10;
        check_batch(batch)?;
        let start = self.buffer.len();
        self.lines.names(names, &mut self.buffer);
        if self.buffer[start..].lines().any(|line| line.len() > MAX_LINE) {
            return Err(too_long("a name"));
        }
        for event in &batch.events {
            let start = self.buffer.len();
            self.lines.event(event, names, &batch.pool, &mut self.buffer);
            if self.buffer.len() - start > MAX_LINE {
                return Err(too_long("an event"));
            }
            self.buffer.push('\n');
            self.empty = false;
            if self.buffer.len() > FLUSH {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Names, remarks: &Remarks) -> std::io::Result<()> {
        let is_whole = remarks.cut_short.is_none() && remarks.partial.is_none();
        if self.empty || remarks.order != self.order || !is_whole {
            self.lines.directives(self.empty, remarks, &mut self.buffer);
        }
        self.flush()?;
        self.output.flush()
    }
}

#[cold]
fn too_long(what: &str) -> std::io::Error {
    let message = format!("{what} needs a line of more than {MAX_LINE} bytes");
    std::io::Error::new(std::io::ErrorKind::InvalidInput, message)
}
