//! Errors in a line whose number is not known yet.

use foresee_trace::{ErrorKind, TooManyNames};

/// An error in a line, without the line number.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

/// Boxed, to keep the results of the hot path small.
pub(crate) type Parsed<T> = Result<T, Box<ParseError>>;

impl ParseError {
    #[cold]
    pub(crate) fn syntax(message: impl Into<String>) -> Box<ParseError> {
        Box::new(ParseError { kind: ErrorKind::Syntax, message: message.into(), help: None })
    }

    #[cold]
    pub(crate) fn with_help(mut self: Box<Self>, help: impl Into<String>) -> Box<ParseError> {
        self.help = Some(help.into());
        self
    }
}

impl From<TooManyNames> for Box<ParseError> {
    #[cold]
    fn from(error: TooManyNames) -> Self {
        Box::new(ParseError { kind: ErrorKind::Limit, message: error.to_string(), help: None })
    }
}

/// A part of the input for a message: quoted, escaped and short.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
