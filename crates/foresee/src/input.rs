//! Traces in files.

use std::path::{Path, PathBuf};

use foresee_formats::native::Indexed;
use foresee_trace::{Batch, EventSource, FileOrder, Names, ReadError, TraceInput};

/// A trace in a file, in any format that foresee reads.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
}

/// Opens the trace in a file. Its format is recognised by its content: RAPID's std and csv,
/// RoadRunner's log, foresee's native format and JSON lines, also compressed with gzip or zstd.
///
/// ```
/// let error = foresee::open("no/such/file").expect_err("there is none");
/// assert!(error.to_string().contains("no/such/file"));
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<TraceFile, ReadError> {
    let path = path.as_ref().to_owned();
    // What is wrong with the file is said here, and not only when it is read.
    foresee_formats::open(&path, None)?;
    Ok(TraceFile { path })
}

impl TraceInput for TraceFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        Ok(foresee_formats::open(&self.path, None)?.source)
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        if let Ok(indexed) = Indexed::open(&self.path) {
            return Ok((indexed.names().clone(), indexed.remarks().order));
        }
        let mut source = TraceInput::open(self)?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {}
        Ok((source.names().clone(), source.remarks().order))
    }
}
