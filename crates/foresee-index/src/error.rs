//! Why an index cannot be used.

use std::io;

use foresee_causality::TooLong;
use foresee_trace::ReadError;

/// Why an index cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The operating system could not read or write.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("this is not an index of a trace")]
    NotAnIndex,
    /// The file is an index of another version of the format.
    #[error("the index has version {0} of its format, and only version {known} is known here", known = crate::header::VERSION)]
    Version(u16),
    /// What was read cannot have been written.
    #[error("the index is damaged at byte {at}: {what}")]
    Damaged {
        /// Where in the file.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The index was made of something else than the trace is now.
    #[error("the index is not of this trace: {0}")]
    Stale(String),
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// The trace is longer than clocks can count.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}
