//! A file of runs that survives a kill: what is known is learnt again from it.
//!
//! The file begins with what it belongs to. Each record is a length, a checksum and a run, or what is not captured; one that was cut
//! off or damaged ends the file, and what comes before it stays.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::codec;
use crate::program::Execution;

const MAGIC: &[u8] = b"foresee-explore-runs 2\n";
/// The first byte of a record.
const RUN: u8 = 0;
const UNSEEN: u8 = 1;
/// No run is longer than this.
const MOST_BYTES: u32 = 1 << 30;

/// A journal that is open.
pub struct Journal {
    file: File,
    runs: Vec<Execution>,
    unseen: Option<String>,
}

/// What was found in a folder.
pub enum Opened {
    /// The journal, with the runs that it had.
    Ready(Journal),
    /// It belongs to another program, input or version of foresee.
    Void,
}

impl Journal {
    /// Opens or makes a journal. `owner` says what program and what input it belongs to. With `renews`, what was there is
    /// dropped if it belongs to another.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path, owner: &[u8], renews: bool) -> io::Result<Opened> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&(owner.len() as u32).to_le_bytes());
        header.extend_from_slice(owner);
        let is_new = bytes.is_empty() || header.starts_with(&bytes);
        if !is_new && !bytes.starts_with(&header) && !renews {
            return Ok(Opened::Void);
        }
        let (mut runs, mut unseen, mut end) = (Vec::new(), None, header.len());
        if bytes.starts_with(&header) {
            while let Some((body, next)) = record(&bytes, end) {
                match body.split_first() {
                    Some((&RUN, run)) => match codec::read_execution(run) {
                        Some(run) => runs.push(run),
                        None => break,
                    },
                    Some((&UNSEEN, text)) => {
                        unseen = Some(String::from_utf8_lossy(text).into_owned());
                    }
                    _ => break,
                }
                end = next;
            }
            file.set_len(end as u64)?;
        } else {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&header)?;
        }
        file.seek(SeekFrom::Start(end as u64))?;
        Ok(Opened::Ready(Journal { file, runs, unseen }))
    }

    /// How many runs it had when it was opened.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether it had none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs, and which part of the program is not captured.
    pub(crate) fn take(&mut self) -> (Vec<Execution>, Option<String>) {
        (std::mem::take(&mut self.runs), self.unseen.clone())
    }

    /// Adds a run.
    pub(crate) fn append(&mut self, run: &Execution) -> io::Result<()> {
        self.record(RUN, |bytes| codec::write_execution(run, bytes))
    }

    /// Adds which part of the program is not captured.
    pub(crate) fn append_unseen(&mut self, unseen: &str) -> io::Result<()> {
        self.record(UNSEEN, |bytes| bytes.extend_from_slice(unseen.as_bytes()))
    }

    /// Adds a record. It is one write, so that a kill leaves it whole or cuts it off.
    fn record(&mut self, what: u8, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut bytes = vec![0; 8];
        bytes.push(what);
        write(&mut bytes);
        let length = u32::try_from(bytes.len() - 8).ok().filter(|&length| length <= MOST_BYTES);
        // A run that is too long for the journal is run again after a resume.
        let Some(length) = length else { return Ok(()) };
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let sum = crc32fast::hash(&bytes[8..]);
        bytes[4..8].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&bytes)
    }
}

/// The contents of the record that begins here, and where the next one begins.
fn record(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let head: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let sum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let end = (at + 8).checked_add(length as usize)?;
    let body = bytes.get(at + 8..end)?;
    (length <= MOST_BYTES && crc32fast::hash(body) == sum).then_some((body, end))
}
