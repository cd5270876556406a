//! Spools the frames of a program, in order, to a growing native trace.
//!
//! A frame is written with one call and counts only once it is complete, so a killed observer
//! leaves a trace that can be read up to its last complete record. Analyses read it again to
//! confirm predictions, and from the start if a new name changes the meaning of a specification.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use foresee_formats::native::{FrameHeader, HEADER, Kind, decode_file_header, encode_file_header};
use foresee_support::budget::BudgetPart;
use foresee_trace::FileOrder;

/// A growing trace.
#[derive(Debug)]
pub(crate) struct Spool {
    file: File,
    /// The number of bytes of complete frames.
    length: u64,
    /// The number of complete frames.
    frames: u64,
    /// The maximum number of bytes; nothing more is spooled after that.
    limit: u64,
    /// What it may take of the disk space for all programs; kept traces are not limited.
    part: Option<BudgetPart>,
    /// The bytes of an earlier edition, which this one is to replace.
    beside: u64,
    /// The file of an edition that is to be kept, until it replaces the earlier one.
    replacement: Option<tempfile::TempPath>,
    is_full: bool,
    /// The end mark has been written.
    is_finished: bool,
}

impl Spool {
    /// A file without a name.
    pub(crate) fn temporary(order: FileOrder, limit: u64, part: BudgetPart) -> io::Result<Spool> {
        Spool::begin(tempfile::tempfile()?, order, limit, Some(part))
    }

    /// A permanent file. It has its header when it appears under its name, so that it is always
    /// readable.
    pub(crate) fn create(path: &Path, order: FileOrder) -> io::Result<Spool> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(STARTING).tempfile_in(folder)?;
        file.as_file().write_all_at(&encode_file_header(order), 0)?;
        let file = file.persist_noclobber(path).map_err(|error| error.error)?;
        Spool::begin(file, order, u64::MAX, None)
    }

    fn begin(
        file: File,
        order: FileOrder,
        limit: u64,
        part: Option<BudgetPart>,
    ) -> io::Result<Spool> {
        file.write_all_at(&encode_file_header(order), 0)?;
        let length = HEADER as u64;
        Ok(Spool {
            file,
            length,
            frames: 0,
            limit,
            part,
            beside: 0,
            replacement: None,
            is_full: false,
            is_finished: false,
        })
    }

    /// A file that an observer left behind. An incomplete frame is cut off.
    pub(crate) fn resume(path: &Path) -> io::Result<(Spool, FileOrder)> {
        let bad = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = [0; HEADER];
        if size < HEADER as u64 {
            return Err(bad("it is cut off before its first frame".to_owned()));
        }
        file.read_exact_at(&mut bytes, 0)?;
        let order = decode_file_header(&bytes).map_err(|error| bad(error.to_string()))?;
        let (mut length, mut frames, mut is_finished) = (HEADER as u64, 0, false);
        let mut payload = Vec::new();
        while !is_finished && length + HEADER as u64 <= size {
            file.read_exact_at(&mut bytes, length)?;
            let Ok(header) = FrameHeader::decode(&bytes, length) else { break };
            let end = length + HEADER as u64 + u64::from(header.length);
            if end > size {
                break;
            }
            payload.resize(header.length as usize, 0);
            file.read_exact_at(&mut payload, length + HEADER as u64)?;
            if header.check(&payload, length).is_err() {
                break;
            }
            (length, frames) = (end, frames + 1);
            is_finished = header.kind == Kind::End;
        }
        file.set_len(length)?;
        let mut spool = Spool::begin(file, order, u64::MAX, None)?;
        (spool.length, spool.frames, spool.is_finished) = (length, frames, is_finished);
        Ok((spool, order))
    }

    /// An empty trace that is to replace this one, with more of the program. Nothing is added to this one any more. One that
    /// is kept grows in the folder of the file at `path`.
    pub(crate) fn next_edition(
        &mut self,
        path: Option<&Path>,
        order: FileOrder,
    ) -> io::Result<Spool> {
        let (file, replacement) = match path {
            None => (tempfile::tempfile()?, None),
            Some(path) => {
                let folder = path.parent().unwrap_or(Path::new("."));
                let file = tempfile::Builder::new().prefix(STARTING).tempfile_in(folder)?;
                let (file, path) = file.into_parts();
                (file, Some(path))
            }
        };
        let mut next = Spool::begin(file, order, self.limit, self.part.take())?;
        (next.frames, next.beside, next.replacement) = (self.frames, self.length, replacement);
        Ok(next)
    }

    /// Takes the place of the edition before, under its name if it has one.
    pub(crate) fn replace(&mut self, path: Option<&Path>) -> io::Result<()> {
        self.beside = 0;
        if let (Some(replacement), Some(path)) = (self.replacement.take(), path) {
            replacement.persist(path).map_err(|error| error.error)?;
        }
        let bytes = usize::try_from(self.length).unwrap_or(usize::MAX);
        // It is less than before.
        let _ = self.part.as_mut().is_none_or(|part| part.take(bytes));
        Ok(())
    }

    /// Gives back what it may take, for the trace that it was to be replaced with is not whole.
    pub(crate) fn give_up(mut self, before: &mut Spool) {
        before.part = self.part.take();
        before.frames = self.frames;
        let bytes = usize::try_from(before.length).unwrap_or(usize::MAX);
        let _ = before.part.as_mut().is_none_or(|part| part.take(bytes));
    }

    /// Adds a complete frame. Once one does not fit, nothing more is added.
    pub(crate) fn append(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = self.length + frame.len() as u64;
        let bytes = usize::try_from(length + self.beside).unwrap_or(usize::MAX);
        self.is_full |= length > self.limit;
        self.is_full |= self.part.as_mut().is_some_and(|part| !part.take(bytes));
        if !self.is_full {
            self.file.write_all_at(frame, self.length)?;
            self.length += frame.len() as u64;
        }
        self.frames += 1;
        Ok(())
    }

    /// Adds the end mark.
    pub(crate) fn finish(&mut self) -> io::Result<Vec<u8>> {
        let payload = [0; 8];
        let header = FrameHeader::of(Kind::End, 0, &payload)?;
        let frame = [&header.encode()[..], &payload].concat();
        self.append(&frame)?;
        self.is_finished = true;
        Ok(frame)
    }

    /// Reads from byte `at` on; returns 0 at the end.
    pub(crate) fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = buffer.len().min(left);
        self.file.read_at(&mut buffer[..want], at)
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// Whether something could not be spooled.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.is_finished
    }
}

/// The directory of kept traces.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    folder: PathBuf,
}

/// The prefix of files that have no header yet.
const STARTING: &str = ".starting-";
/// The extension of traces whose program is not over.
const GROWING: &str = "fse.part";
/// The extension of the secrets of programs that are not over.
const SECRET: &str = "secret";

impl Shelf {
    pub(crate) fn open(folder: &Path) -> io::Result<Shelf> {
        // Traces hold the values of programs: other users may not read them.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        for entry in folder.read_dir()?.flatten() {
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(STARTING)) {
                // An observer was killed right after it created the file.
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(Shelf { folder: folder.to_owned() })
    }

    /// The path at which the trace of a program grows, and its final path.
    pub(crate) fn paths(&self, name: &str, id: crate::ProgramId) -> (PathBuf, PathBuf) {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let name: String = name.chars().take(64).map(safe).collect();
        let name = name.trim_start_matches('.');
        let path = |ending: &str| self.folder.join(format!("{name}-{id}.{ending}"));
        (path(GROWING), path("fse"))
    }

    /// Stores the secret of a program, so that an observer that is started later knows it.
    pub(crate) fn store_secret(&self, id: crate::ProgramId, secret: &[u8]) -> io::Result<()> {
        if secret.is_empty() {
            return Ok(());
        }
        // In one step: an observer may be killed at any time.
        let starting = self.folder.join(format!("{STARTING}{id}.{SECRET}"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&starting)?;
        file.write_all(secret)?;
        std::fs::rename(starting, self.secret_path(id))
    }

    /// The secret of a program; empty if it has none.
    pub(crate) fn secret(&self, id: crate::ProgramId) -> io::Result<Vec<u8>> {
        match std::fs::read(self.secret_path(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            secret => secret,
        }
    }

    /// Removes the secret of a program that is over.
    pub(crate) fn forget_secret(&self, id: crate::ProgramId) {
        // It may have none.
        let _ = std::fs::remove_file(self.secret_path(id));
    }

    /// Hidden, because all other files here are traces.
    fn secret_path(&self, id: crate::ProgramId) -> PathBuf {
        self.folder.join(format!(".{id}.{SECRET}"))
    }

    /// Whether the complete trace of a program is here.
    pub(crate) fn has(&self, id: crate::ProgramId) -> bool {
        let ending = format!("-{id}.fse");
        let Ok(entries) = self.folder.read_dir() else { return false };
        entries.flatten().any(|e| e.file_name().to_str().is_some_and(|n| n.ends_with(&ending)))
    }

    /// Programs that were not over when an observer stopped: their names, identifiers and files.
    pub(crate) fn growing(&self) -> io::Result<Vec<(String, crate::ProgramId, PathBuf)>> {
        let mut found = Vec::new();
        for entry in self.folder.read_dir()? {
            let path = entry?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let Some(stem) = name.strip_suffix(&format!(".{GROWING}")) else { continue };
            let Some((name, id)) = stem.rsplit_once('-') else { continue };
            if let Some(id) = crate::ProgramId::parse(id) {
                found.push((name.to_owned(), id, path.clone()));
            }
        }
        found.sort();
        Ok(found)
    }
}
