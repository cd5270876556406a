//! Errors of indexes.

use std::io;

use foresee_causality::TooLong;
use foresee_trace::ReadError;

/// Why an index cannot be built or used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The operating system reported an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not an index.
    #[error("this is not an index of a trace")]
    NotAnIndex,
    /// The file is an index of another version of the format.
    #[error("the index has format version {0}, but only version {known} is supported", known = crate::header::VERSION)]
    Version(u16),
    /// The content is invalid.
    #[error("the index is damaged at byte {at}: {what}")]
    Damaged {
        /// The position in the file.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// The index was built from something other than the current trace.
    #[error("the index does not belong to this trace: {0}")]
    Stale(String),
    /// The trace could not be read.
    #[error(transparent)]
    Trace(#[from] ReadError),
    /// The trace is longer than clocks can count.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}
