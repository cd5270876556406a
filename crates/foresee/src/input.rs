//! Traces in files.

use std::path::Path;

pub use foresee_formats::TraceFile;
use foresee_trace::{ReadError, TraceInput};

/// Opens the trace in a file. Its format is recognised by its content: RAPID's std and csv,
/// RoadRunner's log, foresee's native format and JSON lines, also compressed with gzip or zstd.
///
/// ```
/// let error = foresee::open("no/such/file").expect_err("there is no such file");
/// assert!(error.to_string().contains("no/such/file"));
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<TraceFile, ReadError> {
    let file = TraceFile::new(path);
    // An unreadable file is reported here, not only when the session reads it.
    TraceInput::open(&file)?;
    Ok(file)
}
