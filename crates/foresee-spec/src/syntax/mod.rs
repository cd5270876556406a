//! The text of specifications: reading it, and writing it.

mod atomics;
mod automaton;
mod expr;
mod format;
mod formula;
mod items;
mod layout;
mod lexer;
mod names;
mod parser;
mod print;
mod reports;
mod sequences;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::ast::{Span, Spec};
use crate::diagnostic::{Diagnostic, Severity};
use lexer::Lexed;
use parser::Parser;
pub(crate) use reports::Reports;

pub use atomics::print_method;
pub use format::{format, print, print_atom, print_formula};

/// The longest specification that is read, in bytes.
const MAX_LENGTH: usize = 16 << 20;

/// A specification and its mistakes.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The part that could be parsed. If there are errors, it is incomplete and only useful for
    /// finding more of them.
    pub spec: Spec,
    /// Errors and warnings, in source order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Whether the specification cannot be used.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Parses a specification.
///
/// ```
/// let parsed = foresee_spec::parse("property positive: alway x > 0");
/// let text = foresee_spec::render(&parsed.diagnostics, "my.spec", "property positive: alway x >
/// 0", false);
/// assert!(text.contains("did you mean `always`?"));
/// ```
pub fn parse(text: &str) -> Parsed {
    let source = read(text);
    Parsed { spec: source.spec, diagnostics: source.diagnostics }
}

/// A specification with what the formatter needs in addition.
struct Source {
    spec: Spec,
    items: Vec<Item>,
    lexed: Lexed,
    diagnostics: Vec<Diagnostic>,
}

/// An item and its position.
struct Item {
    kind: ItemKind,
    span: Span,
}

/// The part of the [`Spec`] that an item has become.
enum ItemKind {
    Inits(Range<usize>),
    Let(usize),
    Atomics(Range<usize>),
    Property(usize),
}

fn read(text: &str) -> Source {
    if text.len() > MAX_LENGTH {
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            message: format!(
                "the specification has {} bytes; at most {MAX_LENGTH} are read",
                text.len()
            ),
            labels: Vec::new(),
            help: Some("split it into several files".to_owned()),
            code: "too-long",
        };
        return Source {
            spec: Spec::default(),
            items: Vec::new(),
            lexed: Lexed::default(),
            diagnostics: vec![diagnostic],
        };
    }
    let mut reports = Reports::default();
    let lexed = lexer::lex(text, &mut |d| reports.add(d));
    let mut parser = Parser::new(text, &lexed.tokens, reports);
    let (spec, items) = parser.items();
    Source { spec, items, diagnostics: parser.finish(), lexed }
}
