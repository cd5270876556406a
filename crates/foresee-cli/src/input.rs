//! Opening traces the way every command does.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use foresee_formats::native::Indexed;
use foresee_formats::{Format, TraceFile};
use foresee_predict::MemoryLimit;
use foresee_trace::{
    Batch, ErrorKind, EventSource, FileOrder, Mode, Names, Position, ReadError, Remarks,
    TraceInput, Validated,
};

use crate::args::{InputArgs, MIB, MemoryArgs};
use crate::progress;

/// A requested trace.
pub(crate) struct Input {
    file: TraceFile,
    /// Where it is read.
    path: PathBuf,
    /// What the process may take to learn its names, in MiB.
    memory: usize,
    /// A saved copy of input that can be read only once.
    _spool: Option<Spool>,
}

impl Input {
    /// The trace of the command line. Input that can be read only once is saved if it is going to
    /// be read `again`. The process may take this many MiB to learn its names.
    pub(crate) fn new(args: &InputArgs, again: bool, memory: usize) -> anyhow::Result<Self> {
        let format = args.input_format.as_deref().map(foresee_formats::by_name).transpose()?;
        let mode = if args.repair { Mode::Repair } else { Mode::Reject };
        let mut file = TraceFile::new(&args.trace).in_format(format).with_mode(mode);
        let mut spool = None;
        if again {
            spool = Spool::of(&args.trace, format, memory).with_context(|| file.name())?;
        }
        let mut path = args.trace.clone();
        if let Some(spool) = &spool {
            path.clone_from(&spool.path);
            file = file.copied_to(path.clone());
        }
        Ok(Input { file, path, memory, _spool: spool })
    }

    /// The trace as the file has it.
    pub(crate) fn open_raw(&self) -> Result<Box<dyn EventSource>, ReadError> {
        self.file.open_raw()
    }
}

impl TraceInput for Input {
    fn name(&self) -> String {
        self.file.name()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        TraceInput::open(&self.file)
    }

    fn mode(&self) -> Mode {
        self.file.mode()
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        if Indexed::open(&self.path).is_ok() {
            return self.file.names();
        }
        let bar = progress::events("reading names");
        let mut source = WithinMemory::new(self.open_raw()?, self.memory);
        let mut batch = Batch::default();
        let read = loop {
            match source.next_batch(&mut batch) {
                Ok(true) => bar.inc(batch.events.len() as u64),
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        bar.finish_and_clear();
        read?;
        // What comes later could name what a specification is about, or say that the trace was filtered.
        if source.cut.is_some() {
            let why = format!(
                "specifications need all names of a trace, and these take more than {} MiB: allow \
                 more with --max-memory",
                self.memory
            );
            return Err(ReadError::new(ErrorKind::Limit, Position::Unknown, why));
        }
        Ok((source.names().clone(), source.remarks().order))
    }
}

/// A trace that can be read only once, from a pipe or a socket, in a file without a name: the system
/// removes it when the process ends, however it ends.
struct Spool {
    /// The path by which the file can be opened again.
    path: PathBuf,
    _file: SpoolFile,
}

#[cfg(target_os = "linux")]
type SpoolFile = std::fs::File;
#[cfg(not(target_os = "linux"))]
type SpoolFile = tempfile::NamedTempFile;

const ASIDE: &str = "cannot save the trace in the folder for temporary files";

impl Spool {
    /// Saves the trace, unless it is a file that can be read again.
    fn of(
        trace: &Path,
        format: Option<&'static dyn Format>,
        memory: usize,
    ) -> anyhow::Result<Option<Spool>> {
        let input: Box<dyn Read> = match trace == Path::new("-") {
            true => Box::new(io::stdin().lock()),
            // The reader reports that it cannot be opened.
            false => match File::open(trace) {
                Ok(file) if file.metadata().is_ok_and(|about| !about.is_file()) => Box::new(file),
                _ => return Ok(None),
            },
        };
        // The rest of the machine needs the folder, too; often it is memory.
        let most = free_space(&std::env::temp_dir()) / 2;
        Spool::take(input, format, memory, most).map(Some)
    }

    /// Reads the trace while it is saved, so that nothing is saved of what is no trace.
    fn take(
        input: Box<dyn Read + '_>,
        format: Option<&'static dyn Format>,
        memory: usize,
        most: u64,
    ) -> anyhow::Result<Spool> {
        #[cfg(target_os = "linux")]
        let (file, path) = {
            let file = tempfile::tempfile().context(ASIDE)?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&file);
            (file, PathBuf::from(format!("/proc/self/fd/{number}")))
        };
        #[cfg(not(target_os = "linux"))]
        let (file, path) = {
            let file = tempfile::NamedTempFile::new().context(ASIDE)?;
            let path = file.path().to_owned();
            (file, path)
        };
        let mut saved = Saved { input, file, left: most, failed: None };
        let read = read_through(&mut saved, format, memory);
        if let Some(error) = saved.failed {
            return Err(error.context(ASIDE));
        }
        read?;
        // Readers stop before what follows a trace, or where its names take too much memory.
        let rest = io::copy(&mut saved, &mut io::sink());
        if let Some(error) = saved.failed {
            return Err(error.context(ASIDE));
        }
        rest?;
        Ok(Spool { path, _file: saved.file })
    }
}

/// Reads a whole trace, as far as its names take no more than so many MiB.
fn read_through(
    input: &mut dyn Read,
    format: Option<&'static dyn Format>,
    memory: usize,
) -> Result<(), ReadError> {
    let opened = foresee_formats::open_reader(Box::new(input), format)?;
    let mut source = WithinMemory::new(opened.source, memory);
    let mut batch = Batch::default();
    while source.next_batch(&mut batch)? {}
    Ok(())
}

/// Everything that is read is saved.
struct Saved<'r> {
    input: Box<dyn Read + 'r>,
    file: SpoolFile,
    /// How many bytes more may be saved.
    left: u64,
    /// Why no more could be saved.
    failed: Option<anyhow::Error>,
}

impl Read for Saved<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let saved = match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                self.file.write_all(&buffer[..read]).map_err(anyhow::Error::from)
            }
            None => Err(anyhow!(
                "it takes more than half of the free space: write it to a file first, or choose \
                 another folder with TMPDIR"
            )),
        };
        saved.map(|()| read).map_err(|error| {
            self.failed = Some(error);
            io::Error::other(ASIDE)
        })
    }
}

/// How many bytes there is room for in a folder, where the system reports it.
fn free_space(folder: &Path) -> u64 {
    #[cfg(unix)]
    if let Ok(about) = rustix::fs::statvfs(folder) {
        return about.f_bavail.saturating_mul(about.f_frsize);
    }
    let _ = folder;
    u64::MAX
}

/// A validated stream of the requested trace, to be read once.
pub(crate) fn open(
    args: &InputArgs,
    memory: &MemoryArgs,
) -> anyhow::Result<Validated<Box<dyn EventSource>>> {
    let input = Input::new(args, false, memory.max_memory)?;
    let source = input.open_raw().with_context(|| input.file.name())?;
    Ok(Validated::new(within_memory(source, memory.max_memory), input.file.mode()))
}

/// The same trace, cut short where the process takes more than `limit` MiB.
pub(crate) fn within_memory<'r>(
    source: Box<dyn EventSource + 'r>,
    limit: usize,
) -> Box<dyn EventSource + 'r> {
    Box::new(WithinMemory::new(source, limit))
}

struct WithinMemory<'r> {
    source: Box<dyn EventSource + 'r>,
    /// In MiB.
    limit: usize,
    allowed: MemoryLimit<'static>,
    /// The remarks on the trace once it has been cut.
    cut: Option<Remarks>,
}

impl<'r> WithinMemory<'r> {
    fn new(source: Box<dyn EventSource + 'r>, limit: usize) -> Self {
        let allowed = MemoryLimit::of_process(limit.saturating_mul(MIB));
        WithinMemory { source, limit, allowed, cut: None }
    }
}

impl EventSource for WithinMemory<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        if self.cut.is_none() && self.allowed.allows(0) {
            return self.source.next_batch(batch);
        }
        batch.clear();
        let limit = self.limit;
        self.cut.get_or_insert_with(|| Remarks {
            cut_short: Some(format!(
                "its names take more than {limit} MiB: allow more with --max-memory"
            )),
            ..self.source.remarks().clone()
        });
        Ok(false)
    }

    fn names(&self) -> &Names {
        self.source.names()
    }

    fn names_mut(&mut self) -> &mut Names {
        self.source.names_mut()
    }

    fn position(&self, i: usize) -> Position {
        self.source.position(i)
    }

    fn remarks(&self) -> &Remarks {
        self.cut.as_ref().unwrap_or_else(|| self.source.remarks())
    }
}

/// The trace's name in messages.
pub(crate) fn name(args: &InputArgs) -> String {
    TraceFile::new(&args.trace).name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(input: impl Read, most: u64) -> anyhow::Result<Spool> {
        Spool::take(Box::new(input), None, usize::MAX, most)
    }

    #[test]
    fn what_is_put_aside_is_read_again_and_again_and_bounded() {
        let text = "T1|w(x)=1|\nT2|w(x)=2|\n";
        let spool = take(text.as_bytes(), 1 << 10).unwrap();
        for _ in 0..2 {
            assert_eq!(std::fs::read_to_string(&spool.path).unwrap(), text);
        }
        // The system removes a file that has no name together with its last descriptor.
        #[cfg(target_os = "linux")]
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&spool._file.metadata().unwrap()), 0);
        let error = take(text.as_bytes(), 5).err().unwrap();
        assert!(format!("{error:#}").contains("more than half of the free space"), "{error:#}");
    }

    /// Refused at the place, not once everything has been saved: nothing of this ends.
    #[test]
    fn what_is_no_trace_is_refused_before_it_fills_the_disk() {
        let trace = || &b"T1|w(x)=1|\nT2|w(x)=2|\n"[..];
        for endless in [
            Box::new(io::repeat(0)) as Box<dyn Read>,
            Box::new(io::repeat(b'x')),
            Box::new(io::repeat(b'\n')),
            Box::new(trace().chain(io::repeat(0))),
            Box::new(trace().chain(io::repeat(b'x'))),
        ] {
            let error = take(endless, 1 << 30).err().unwrap();
            assert!(error.downcast_ref::<ReadError>().is_some(), "{error:#}");
        }
    }

    /// What follows a trace that is complete is saved, too: another reader may want it.
    #[test]
    fn a_trace_whose_names_take_too_much_memory_is_saved() {
        let text: String = (0..100_000).map(|i| format!("T1|w(x{i})=1|\n")).collect();
        let spool = Spool::take(Box::new(text.as_bytes()), None, 0, u64::MAX).unwrap();
        assert_eq!(std::fs::read_to_string(&spool.path).unwrap(), text);
    }
}
