//! The records of a log, decoded one after the other.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use foresee_rt::format::{
    ACCESSES, Access, CHUNK_HEAD, CHUNK_MAGIC, INEXACT, PC_SIZES, POINTER, RUN, SIZES, Tag,
    checksum, neighbourhood, unzigzag,
};

use super::LogError;

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Memory was touched: so many bytes. Of runs the values stand in the record's bytes, of others in its value.
    Access(Access, usize),
    /// Anything else.
    Sync(Tag),
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Whose it is.
    pub thread: u32,
    /// What it says.
    pub what: What,
    /// Whether it may stand in the wrong place or have the wrong value.
    pub inexact: bool,
    /// The return address of the hook.
    pub pc: u64,
    /// The address of what it is about.
    pub address: u64,
    /// What the tag says.
    pub value: u64,
    /// The value before a read-modify-write.
    pub old: u64,
    /// What a read-modify-write orders.
    pub order: u8,
    /// What the tag says.
    pub bytes: &'a [u8],
    /// Where it stands, in the log and the tail behind it.
    pub at: u64,
}

/// Goes through a log.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    file: File,
    /// Where the next chunk of the file stands, and where the file ends as far as it is valid.
    next: u64,
    end: u64,
    /// What was still in the program's buffer, and the thread it begins with.
    tail: Option<Vec<u8>>,
    largest: u64,
    chunk: Vec<u8>,
    /// Where the chunk stands.
    base: u64,
    at: usize,
    pc: u64,
    addresses: [u64; 2],
    thread: u32,
}

impl Records {
    /// The records of `log`, whose first `end` bytes are valid, and then those of `tail`.
    pub(super) fn new(
        path: PathBuf,
        end: u64,
        tail: Vec<u8>,
        largest: u64,
    ) -> Result<Records, LogError> {
        let file = File::open(&path).map_err(|e| LogError::Io(path.clone(), e))?;
        let length = file.metadata().map_err(|e| LogError::Io(path.clone(), e))?.len();
        if length < end {
            let what = format!("the log has {length} bytes, but {end} were written");
            return Err(LogError::Corrupt(path, length, what));
        }
        Ok(Records {
            path,
            file,
            next: 0,
            end,
            tail: Some(tail),
            largest,
            chunk: Vec::new(),
            base: 0,
            at: 0,
            pc: 0,
            addresses: [0; 2],
            thread: 0,
        })
    }

    fn corrupt(&self, what: &str) -> LogError {
        LogError::Corrupt(self.path.clone(), self.base + self.at as u64, what.to_owned())
    }

    fn next_chunk(&mut self) -> Result<bool, LogError> {
        (self.at, self.pc, self.addresses) = (0, 0, [0; 2]);
        self.base = self.next;
        if self.next >= self.end {
            let Some(tail) = self.tail.take() else { return Ok(false) };
            if tail.len() <= CHUNK_HEAD {
                return Ok(false);
            }
            self.chunk = tail;
            self.at = CHUNK_HEAD;
            // The runtime writes a chunk's header when it is full; the first record says whose it is.
            self.thread = 0;
            return Ok(true);
        }
        let mut head = [0u8; CHUNK_HEAD];
        let read = |file: &mut File, at: u64, to: &mut [u8]| {
            file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(to))
        };
        let failed = |e| LogError::Io(self.path.clone(), e);
        read(&mut self.file, self.next, &mut head).map_err(failed)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or([0; 8]));
        let length = word(0) >> 32;
        if word(0) as u32 != CHUNK_MAGIC || length > self.largest || self.next + length > self.end {
            return Err(self.corrupt("no chunk begins here"));
        }
        self.chunk.clear();
        self.chunk.resize(length as usize, 0);
        read(&mut self.file, self.next + CHUNK_HEAD as u64, &mut self.chunk).map_err(failed)?;
        if checksum(&self.chunk) != word(8) {
            return Err(self.corrupt("the chunk's checksum is wrong"));
        }
        self.thread = 0;
        self.base = self.next + CHUNK_HEAD as u64;
        self.next += CHUNK_HEAD as u64 + length;
        Ok(true)
    }

    fn number(&mut self, size: usize) -> Result<u64, LogError> {
        let Some(bytes) = self.chunk.get(self.at..self.at + size) else {
            return Err(self.corrupt("a record is cut off"));
        };
        let mut n = [0; 8];
        n[..size].copy_from_slice(bytes);
        self.at += size;
        Ok(u64::from_le_bytes(n))
    }

    /// The next record; changes of threads are not records here.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, LogError> {
        loop {
            while self.at >= self.chunk.len() {
                if !self.next_chunk()? {
                    return Ok(None);
                }
            }
            let at = self.base + self.at as u64;
            let tag = self.number(1)? as u8;
            let sizes = self.number(1)? as usize;
            let pc = unzigzag(self.number(PC_SIZES[sizes & 3])?).wrapping_add(self.pc);
            let address = unzigzag(self.number(SIZES[sizes >> 2 & 7])?)
                .wrapping_add(self.addresses[neighbourhood(tag)]);
            let mut value = self.number(SIZES[sizes >> 5])?;
            self.pc = pc;
            self.addresses[neighbourhood(tag)] = address;
            let (what, inexact) = if tag < 2 * ACCESSES {
                let size = tag & 7;
                let Some(access) = Access::from_code(tag >> 3 & 7).filter(|_| size <= POINTER)
                else {
                    return Err(self.corrupt("no record has this tag"));
                };
                let size = match size {
                    RUN => value as usize,
                    POINTER => {
                        value = unzigzag(value).wrapping_add(address);
                        8
                    }
                    _ => 1 << size,
                };
                (What::Access(access, size), tag & INEXACT != 0)
            } else {
                let Some(tag) = Tag::from_code(tag) else {
                    return Err(self.corrupt("no record has this tag"));
                };
                (What::Sync(tag), false)
            };
            if what == What::Sync(Tag::Switch) {
                self.thread = value as u32;
                continue;
            }
            let (mut old, mut order) = (0, 0);
            let follow = match what {
                What::Access(Access::Rmw, _) => {
                    let head = self.number(1)? as u8;
                    let size = usize::from(head & 15);
                    order = head >> 4;
                    if size > 8 {
                        return Err(self.corrupt("a value has more than eight bytes"));
                    }
                    old = self.number(size)?;
                    0
                }
                What::Access(..) if tag & 7 == RUN => value as usize,
                What::Sync(tag) if tag.has_bytes() => value as usize,
                _ => 0,
            };
            if self.thread == 0 {
                return Err(self.corrupt("a record belongs to no thread"));
            }
            let start = self.at;
            if follow > self.chunk.len() - start {
                return Err(self.corrupt("a record is cut off"));
            }
            self.at += follow;
            let bytes = &self.chunk[start..self.at];
            return Ok(Some(Record {
                thread: self.thread,
                what,
                inexact,
                pc,
                address,
                value,
                old,
                order,
                bytes,
                at,
            }));
        }
    }
}
