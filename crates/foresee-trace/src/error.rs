//! Errors in traces: what is wrong, where, and what to do about it.

use std::fmt;

/// A place in the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// The position is unknown.
    #[default]
    Unknown,
    /// A line of a text format, counted from one.
    Line(u64),
    /// A byte of a binary format, counted from zero.
    Byte(u64),
    /// An event of a trace that is not a file, counted from zero.
    Event(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Unknown => f.write_str("somewhere"),
            Position::Line(line) => write!(f, "line {line}"),
            Position::Byte(byte) => write!(f, "byte {byte}"),
            Position::Event(event) => write!(f, "event {event}"),
        }
    }
}

/// The broad kinds of errors in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system reported an error.
    Io,
    /// The bytes are of no known format, or not of the requested one.
    Format,
    /// A line or record cannot be parsed.
    Syntax,
    /// The events are readable, but no execution could have produced them.
    IllFormed,
    /// A limit that keeps memory bounded was hit.
    Limit,
}

/// Why a trace could not be read.
///
/// ```
/// use foresee_trace::{ErrorKind, Position, ReadError};
///
/// let error = ReadError::new(ErrorKind::Io, Position::Unknown, "the disk is gone");
/// assert!(error.to_string().contains("the disk is gone"));
/// ```
#[derive(Debug)]
pub struct ReadError {
    kind: ErrorKind,
    at: Position,
    message: String,
    help: Option<String>,
}

impl ReadError {
    /// An error at a position.
    pub fn new(kind: ErrorKind, at: Position, message: impl Into<String>) -> Self {
        ReadError { kind, at, message: message.into(), help: None }
    }

    /// Adds what the user can do about it.
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The broad kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The position of the error.
    pub fn at(&self) -> Position {
        self.at
    }

    /// What the user can do about it, if anything.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Position::Unknown => f.write_str(&self.message),
            at => write!(f, "{at}: {}", self.message),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        ReadError::new(ErrorKind::Io, Position::Unknown, format!("cannot read: {error}"))
    }
}
