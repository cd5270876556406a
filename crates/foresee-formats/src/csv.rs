//! The csv format: RAPID's text with one column per thread; each line fills one of them.
//!
//! Column `i` is thread `T<i>`. Our extension, written only where needed: comments `# threads:
//! name,name` name the columns, starting with the first unnamed one, and `@location` may follow the
//! operation.

use std::fmt::Write as _;

use foresee_trace::{Event, Name, Names, Pool, Remarks, ThreadId};
use memchr::memchr;

use crate::operation::{OperationParser, leading_word, op_of_word, whole_name};
use crate::parse_error::{ParseError, Parsed, shown};
use crate::text::{LineParser, LineWriter, TextFormat, read_directives};

/// RAPID's column-per-thread text.
#[derive(Clone, Copy, Debug)]
pub struct Csv;

impl TextFormat for Csv {
    type Lines = CsvLines;

    const ABOUT: &'static str =
        "RAPID's column-per-thread text: a line has one op(target), in its thread's column";

    fn sniff_line(line: &str, _: &[u8]) -> bool {
        let mut buffer = String::new();
        filled_cell(&mut buffer, line).is_ok_and(|(_, cell)| {
            let word = leading_word(cell);
            let rest = &cell[word.len()..];
            op_of_word(word.as_bytes()).is_some()
                && (rest.is_empty() || rest.starts_with(['(', '@']))
        })
    }
}

#[derive(Default)]
pub(crate) struct CsvLines {
    operation: OperationParser,
    unquoted: String,
    cell: String,
    /// The threads of the columns seen so far, by column.
    columns: Vec<Option<ThreadId>>,
    /// The number of columns named by comments.
    named: usize,
    /// Writer: the number of threads that have been examined.
    looked_at: usize,
}

impl CsvLines {
    /// The entry for the thread of a column.
    fn column(&mut self, column: usize) -> &mut Option<ThreadId> {
        if self.columns.len() <= column {
            self.columns.resize(column + 1, None);
        }
        &mut self.columns[column]
    }
}

impl LineParser for CsvLines {
    fn line(
        &mut self,
        line: &str,
        names: &mut Names,
        pool: &mut Pool,
        _: &mut Remarks,
    ) -> Parsed<Option<Event>> {
        let mut cell_buffer = std::mem::take(&mut self.cell);
        let (column, cell) = filled_cell(&mut cell_buffer, line)?;
        let thread = match *self.column(column) {
            Some(thread) => thread,
            None => {
                let thread = names.thread(&format!("T{column}"))?;
                *self.column(column) = Some(thread);
                thread
            }
        };
        let (event, rest) = self.operation.parse(thread, cell, names, pool)?;
        let event = match rest.strip_prefix('@') {
            Some(location) => {
                let location = whole_name(&mut self.unquoted, location)?;
                event.with_loc(self.operation.known.loc(location, names)?)
            }
            None if rest.is_empty() => event,
            None => return Err(ParseError::syntax(format!("{} after the operation", shown(rest)))),
        };
        self.cell = cell_buffer;
        Ok(Some(event))
    }

    fn comment(&mut self, text: &str, names: &mut Names, remarks: &mut Remarks) -> Parsed<()> {
        let Some(threads) = text.trim_start().strip_prefix("threads:") else {
            return read_directives(text, remarks);
        };
        let (mut rest, mut buffer) = (Some(threads.trim_ascii()), String::new());
        while let Some(cells) = rest {
            let name;
            (name, rest) = next_cell(&mut buffer, cells)?;
            let mut thread = None;
            if !name.is_empty() {
                thread = Some(names.thread(whole_name(&mut self.unquoted, name)?)?);
            }
            let column = self.named;
            *self.column(column) = thread;
            self.named += 1;
        }
        Ok(())
    }
}

/// The column that has an event, and its text.
fn filled_cell<'s, 't: 's>(buffer: &'s mut String, line: &'t str) -> Parsed<(usize, &'s str)> {
    let is_empty = |c: char| matches!(c, ',' | ' ' | '\t');
    let filled = line.trim_start_matches(is_empty);
    if filled.is_empty() {
        return Err(ParseError::syntax("no column of the line has an event"));
    }
    let before = &line.as_bytes()[..line.len() - filled.len()];
    let column = memchr::memchr_iter(b',', before).count();
    let (cell, rest) = next_cell(buffer, filled)?;
    match rest.map(|rest| rest.trim_start_matches(is_empty)) {
        None | Some("") => Ok((column, cell.trim_ascii())),
        Some(rest) => Err(ParseError::syntax(format!(
            "two columns have an event: {} and {}",
            shown(cell),
            shown(rest)
        ))
        .with_help("put an operation with a comma in quotes, as \"enter(f,1)\"")),
    }
}

/// The first cell of a list of cells, and the others if there are any.
fn next_cell<'s, 't: 's>(
    buffer: &'s mut String,
    cells: &'t str,
) -> Parsed<(&'s str, Option<&'t str>)> {
    let Some(mut rest) = cells.strip_prefix('"') else {
        return Ok(match cells.split_once(',') {
            Some((cell, others)) => (cell, Some(others)),
            None => (cells, None),
        });
    };
    buffer.clear();
    loop {
        let no_end = || ParseError::syntax("the closing quote of a cell is missing");
        let quote = memchr(b'"', rest.as_bytes()).ok_or_else(no_end)?;
        buffer.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.as_bytes().first() {
            None => return Ok((buffer, None)),
            Some(b',') => return Ok((buffer, Some(&rest[1..]))),
            // A quote inside the cell is written twice.
            Some(b'"') => {
                buffer.push('"');
                rest = &rest[1..];
            }
            Some(_) => {
                return Err(ParseError::syntax(format!("{} after a quoted cell", shown(rest))));
            }
        }
    }
}

impl LineWriter for CsvLines {
    const FORMAT: &'static str = "csv";

    fn names(&mut self, names: &Names, out: &mut String) {
        const LINE: usize = 4096;
        let count = names.threads.len();
        let name = |column: usize| names.threads.get(ThreadId(column as u32));
        if (self.looked_at..count).any(|column| name(column) != format!("T{column}")) {
            let mut start = out.len();
            for column in self.named..count {
                let begin = column == self.named || out.len() - start > LINE;
                if begin && column > self.named {
                    out.push('\n');
                }
                if begin {
                    start = out.len();
                }
                out.push_str(if begin { "# threads: " } else { "," });
                self.cell.clear();
                let _ = write!(self.cell, "{}", Name(name(column)));
                push_cell(&self.cell, out);
            }
            out.push('\n');
            self.named = count;
        }
        self.looked_at = count;
    }

    fn event(&mut self, event: &Event, names: &Names, pool: &Pool, out: &mut String) {
        let column = event.thread().0 as usize;
        out.extend(std::iter::repeat_n(',', column));
        self.cell.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.cell, "{}", event.describe(names, pool));
        if event.loc().is_some() {
            let _ = write!(self.cell, "@{}", Name(names.locs.get(event.loc())));
        }
        push_cell(&self.cell, out);
        out.extend(std::iter::repeat_n(',', self.looked_at.saturating_sub(column + 1)));
    }
}

/// Writes a cell, in quotes if it would be misread.
fn push_cell(cell: &str, out: &mut String) {
    if cell.contains([',', '"']) {
        out.push('"');
        out.push_str(&cell.replace('"', "\"\""));
        out.push('"');
    } else {
        out.push_str(cell);
    }
}
