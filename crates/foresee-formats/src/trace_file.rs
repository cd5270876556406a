//! A trace in a file, which can be read as often as needed.

use std::fmt;
use std::path::{Path, PathBuf};

use foresee_trace::{Batch, EventSource, FileOrder, Mode, Names, ReadError, TraceInput};

use crate::native::Indexed;
use crate::{Format, open};

/// A trace in a file, in any format that foresee reads.
#[derive(Clone, Debug)]
pub struct TraceFile {
    path: PathBuf,
    name: String,
    format: Option<&'static dyn Format>,
    mode: Mode,
}

impl TraceFile {
    /// The trace in this file, or of standard input if the path is `-`. Nothing is opened yet.
    pub fn new(path: impl AsRef<Path>) -> TraceFile {
        let path = path.as_ref().to_owned();
        let name = match path == Path::new("-") {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        TraceFile { path, name, format: None, mode: Mode::Reject }
    }

    /// Reads the trace in this format instead of detecting the format.
    #[must_use]
    pub fn in_format(mut self, format: Option<&'static dyn Format>) -> TraceFile {
        self.format = format;
        self
    }

    /// What to do about events that no execution could contain.
    #[must_use]
    pub fn with_mode(mut self, mode: Mode) -> TraceFile {
        self.mode = mode;
        self
    }

    /// Reads a copy in another file, under the same name.
    #[must_use]
    pub fn copied_to(mut self, path: PathBuf) -> TraceFile {
        self.path = path;
        self
    }

    /// Opens the trace as the file has it.
    pub fn open_raw(&self) -> Result<Box<dyn EventSource>, ReadError> {
        Ok(open(&self.path, self.format)?.source)
    }

    /// Reads all names; `progress` receives the number of events read so far. It is not called if
    /// the file has an index of its names.
    pub fn read_names(
        &self,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(Names, FileOrder), ReadError> {
        if let Ok(indexed) = Indexed::open(&self.path) {
            return Ok((indexed.names().clone(), indexed.remarks().order));
        }
        let mut source = self.open_raw()?;
        let (mut batch, mut events) = (Batch::default(), 0);
        while source.next_batch(&mut batch)? {
            events += batch.events.len() as u64;
            progress(events);
        }
        Ok((source.names().clone(), source.remarks().order))
    }
}

impl TraceInput for TraceFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.open_raw().map(|source| source as Box<dyn EventSource + '_>)
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        self.read_names(&mut |_| ())
    }
}

impl fmt::Debug for dyn Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
