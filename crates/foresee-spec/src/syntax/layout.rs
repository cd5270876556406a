//! Line breaking: a small pretty printer after Wadler (2003).

/// The maximum width of a line.
const WIDTH: usize = 100;

/// The indentation of continuation lines.
const INDENT: usize = 4;

/// Text with possible line breaks.
#[derive(Debug)]
pub(super) enum Doc {
    Text(String),
    /// A space, or a line break if the enclosing group does not fit.
    Line,
    /// Nothing, or a line break if the enclosing group does not fit.
    Soft,
    /// A line break in any case.
    Hard,
    /// One line if it fits; otherwise each of its own breaks is a line break.
    Group(Vec<Doc>),
    /// Indents the lines that begin inside by one more step.
    Nest(Vec<Doc>),
}

impl Doc {
    pub(super) fn text(text: impl Into<String>) -> Doc {
        Doc::Text(text.into())
    }
}

/// A document that is still to be written.
#[derive(Clone, Copy)]
struct Job<'a> {
    doc: &'a Doc,
    indent: usize,
    flat: bool,
}

/// Writes a document without a final line break.
pub(super) fn write(doc: &Doc, out: &mut String) {
    write_as(doc, false, out);
}

/// Writes a document in one line, however long.
pub(super) fn write_flat(doc: &Doc, out: &mut String) {
    write_as(doc, true, out);
}

fn write_as(doc: &Doc, flat: bool, out: &mut String) {
    let mut column = 0;
    let mut jobs = vec![Job { doc, indent: 0, flat }];
    while let Some(Job { doc, indent, flat }) = jobs.pop() {
        match doc {
            Doc::Text(text) => {
                out.push_str(text);
                column += text.chars().count();
            }
            Doc::Line if flat => {
                out.push(' ');
                column += 1;
            }
            Doc::Soft if flat => {}
            Doc::Line | Doc::Soft | Doc::Hard => {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            }
            Doc::Group(parts) => {
                let flat = flat || fits(parts, WIDTH.saturating_sub(column), &jobs);
                jobs.extend(parts.iter().rev().map(|doc| Job { doc, indent, flat }));
            }
            Doc::Nest(parts) => {
                let indent = indent + INDENT;
                jobs.extend(parts.iter().rev().map(|doc| Job { doc, indent, flat }));
            }
        }
    }
}

/// Whether parts, written in one line, and what follows them up to the next break fit.
fn fits(parts: &[Doc], mut room: usize, rest: &[Job<'_>]) -> bool {
    let mut rest = rest.iter().rev();
    let mut todo: Vec<(&Doc, bool)> = parts.iter().rev().map(|doc| (doc, true)).collect();
    loop {
        let (doc, flat) = match todo.pop() {
            Some(next) => next,
            None => match rest.next() {
                Some(job) => (job.doc, job.flat),
                None => return true,
            },
        };
        match doc {
            Doc::Text(text) => match room.checked_sub(text.chars().count()) {
                Some(left) => room = left,
                None => return false,
            },
            Doc::Hard => return !flat,
            Doc::Line | Doc::Soft if !flat => return true,
            Doc::Line => match room.checked_sub(1) {
                Some(left) => room = left,
                None => return false,
            },
            Doc::Soft => {}
            Doc::Group(parts) | Doc::Nest(parts) => {
                todo.extend(parts.iter().rev().map(|doc| (doc, flat)));
            }
        }
    }
}
