//! Creates a trace file that appears under its name only once it is complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use foresee_support::output::OutputFile;
use foresee_trace::{Batch, EventSink, EventSource, Names, ReadError, Remarks};

use crate::Format;

/// A trace file being written. If it is dropped before `finish`, no file remains.
pub struct Output {
    /// Has the file, until it is finished.
    sink: Option<Box<dyn EventSink>>,
    /// Where the sink leaves the file when it is dropped.
    left: mpsc::Receiver<Coder>,
}

/// Starts a trace file, or writes to standard output if the path is `-`. Files named `.gz` or
/// `.zst` are compressed. An existing file is replaced once the new one is complete.
pub fn create(path: &Path, format: &dyn Format) -> io::Result<Output> {
    create_with(path, |output| format.write(output))
}

/// Why a trace could not be copied to a file.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The trace cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, #[source] io::Error),
}

/// Writes the rest of a trace to a file; see [`create`].
pub fn copy(
    source: &mut dyn EventSource,
    path: &Path,
    format: &dyn Format,
) -> Result<(), CopyError> {
    let failed = |error| CopyError::Write(path.to_owned(), error);
    let mut sink = create(path, format).map_err(failed)?;
    sink.begin(source.remarks()).map_err(failed)?;
    let mut batch = Batch::default();
    while source.next_batch(&mut batch)? {
        sink.write_batch(&batch, source.names()).map_err(failed)?;
    }
    sink.finish(source.names(), source.remarks()).map_err(failed)
}

/// Like [`create`], for what is not a trace format but takes events.
pub fn create_with(
    path: &Path,
    write: impl FnOnce(Box<dyn Write>) -> Box<dyn EventSink>,
) -> io::Result<Output> {
    let place = if path == Path::new("-") {
        Place::Stdout(io::stdout())
    } else {
        Place::File(OutputFile::create(path)?)
    };
    let coder = match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => Coder::Gz(flate2::write::GzEncoder::new(place, flate2::Compression::fast())),
        Some("zst") => Coder::Zst(zstd::stream::write::Encoder::new(place, 3)?),
        _ => Coder::Plain(place),
    };
    let (leave, left) = mpsc::channel();
    let sink = write(Box::new(Lent { coder: Some(coder), leave }));
    Ok(Output { sink: Some(sink), left })
}

impl Output {
    fn sink(&mut self) -> io::Result<&mut Box<dyn EventSink>> {
        self.sink.as_mut().ok_or_else(finished)
    }
}

impl EventSink for Output {
    fn begin(&mut self, remarks: &Remarks) -> io::Result<()> {
        self.sink()?.begin(remarks)
    }

    fn write_batch(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        self.sink()?.write_batch(batch, names)
    }

    fn finish(&mut self, names: &Names, remarks: &Remarks) -> io::Result<()> {
        self.sink()?.finish(names, remarks)?;
        self.sink = None;
        self.left.try_recv().map_err(|_| finished())?.finish()
    }
}

/// The destination of the bytes.
enum Place {
    Stdout(io::Stdout),
    File(OutputFile),
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Place::Stdout(stdout) => stdout.write(bytes),
            Place::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Place::Stdout(stdout) => stdout.flush(),
            Place::File(file) => file.flush(),
        }
    }
}

/// The compression of the bytes.
enum Coder {
    Plain(Place),
    Gz(flate2::write::GzEncoder<Place>),
    Zst(zstd::stream::write::Encoder<'static, Place>),
}

impl Coder {
    fn finish(self) -> io::Result<()> {
        let place = match self {
            Coder::Plain(place) => place,
            Coder::Gz(gz) => gz.finish()?,
            Coder::Zst(zst) => zst.finish()?,
        };
        match place {
            Place::Stdout(mut stdout) => stdout.flush(),
            Place::File(file) => file.finish(),
        }
    }
}

fn finished() -> io::Error {
    io::Error::other("the trace is already finished")
}

/// The file in the hands of a sink. When that is dropped, [`Output`] gets it back to finish it, or to
/// remove it if it is not complete.
struct Lent {
    coder: Option<Coder>,
    leave: mpsc::Sender<Coder>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(coder) = self.coder.take() {
            // Without a receiver nothing is finished, and the file goes.
            let _ = self.leave.send(coder);
        }
    }
}

impl Write for Lent {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.coder.as_mut().ok_or_else(finished)? {
            Coder::Plain(place) => place.write(bytes),
            Coder::Gz(gz) => gz.write(bytes),
            Coder::Zst(zst) => zst.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.coder.as_mut().ok_or_else(finished)? {
            // Flushing a compressor would end a block, which the file does not need.
            Coder::Plain(place) => place.flush(),
            Coder::Gz(_) | Coder::Zst(_) => Ok(()),
        }
    }
}
