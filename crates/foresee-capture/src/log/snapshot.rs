//! The log of a program that is still running, as it is now.
//!
//! A log is readable at any moment, because a program may be killed at any moment: the runtime appends records, and says
//! only then that they are there. What was written to the file stays there. The rest is in a buffer, which is used again
//! after it was written: so a copy of it counts only if the file has not grown meanwhile.

use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use foresee_rt::format::{BUFFER_AT, CHUNK_HEAD, Head, MAGIC};

/// The state of a log that is a copy, which no runtime writes.
pub(super) const COPIED: u32 = 6;

/// How often a copy is tried that a program writes to.
const TRIES: usize = 50;

/// The numbers of a head that a copy depends on.
struct Extent {
    /// How much is in the file.
    base: u64,
    /// How much there is in all.
    end: u64,
    /// Whether the program is recorded.
    is_running: bool,
}

impl Extent {
    /// `None` if there is no head yet.
    fn read(tail: &File) -> io::Result<Option<Extent>> {
        let long = |at: usize| -> io::Result<u64> {
            let mut bytes = [0; 8];
            tail.read_exact_at(&mut bytes, at as u64)?;
            Ok(u64::from_le_bytes(bytes))
        };
        if long(offset_of!(Head, magic))? != MAGIC {
            return Ok(None);
        }
        let mut state = [0; 4];
        tail.read_exact_at(&mut state, offset_of!(Head, state) as u64)?;
        // In this order: what is in the buffer by the end that is read belongs to this base or a later one.
        let base = long(offset_of!(Head, base))?;
        let end = long(offset_of!(Head, end))?;
        Ok(Some(Extent { base, end, is_running: state == [0; 4] }))
    }
}

/// How many bytes the log of a running program has by now; `None` if it has no records, or has ended.
pub fn grown(tail: &Path) -> io::Result<Option<u64>> {
    let extent = Extent::read(&File::open(tail)?)?;
    let is_some = |extent: &Extent| extent.is_running && extent.end > CHUNK_HEAD as u64;
    Ok(extent.filter(is_some).map(|extent| extent.end))
}

/// Copies what has to be copied of the log of a running program to another folder. Returns the tail there, which
/// [`Log::open`](super::Log::open) takes; `None` if there is nothing to read, or the program has ended.
pub fn copy(tail: &Path, folder: &Path) -> io::Result<Option<PathBuf>> {
    let Some(name) = tail.file_name() else { return Ok(None) };
    let file = File::open(tail)?;
    let mut bytes = Vec::new();
    for _ in 0..TRIES {
        let Some(before) = Extent::read(&file)? else { return Ok(None) };
        if !before.is_running || before.end < before.base {
            return Ok(None);
        }
        bytes.resize(file.metadata()?.len().min(64 << 20) as usize, 0);
        file.read_exact_at(&mut bytes, 0)?;
        let is_same = Extent::read(&file)?.is_some_and(|after| after.base == before.base);
        if !is_same || bytes.len() < BUFFER_AT {
            continue;
        }
        let mut put = |at: usize, word: &[u8]| bytes[at..at + word.len()].copy_from_slice(word);
        put(offset_of!(Head, base), &before.base.to_le_bytes());
        put(offset_of!(Head, end), &before.end.to_le_bytes());
        put(offset_of!(Head, state), &COPIED.to_le_bytes());
        // A store that is being made will be recorded, and nobody has seen it before.
        put(offset_of!(Head, pending), &[0; 32]);
        let copied = folder.join(name);
        std::fs::write(&copied, &bytes)?;
        let log = std::path::absolute(tail.with_extension("log"))?;
        let link = copied.with_extension("log");
        match symlink(log, link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => return Ok(Some(copied)),
        }
    }
    Ok(None)
}
