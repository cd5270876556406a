//! The records of one thread. `agents/jvm/src/main/java/foresee/jvm/ThreadLog.java` describes their bytes.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::JvmError;

const RECORD: usize = 32;
const FIRST_SEGMENT: u64 = 64 << 10;
const LAST_SEGMENT: u64 = 4 << 20;

macro_rules! kinds {
    ($($name:ident = $code:literal),* $(,)?) => {
        /// What a record is about; the same list as `Op.java`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($name),* }

        impl Kind {
            fn from_code(code: u8) -> Option<Kind> {
                match code { $($code => Some(Kind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    Read = 1, Write = 2, VolatileRead = 3, VolatileWrite = 4, Rmw = 5, Old = 6, Skip = 7, Object = 8, Lost = 9,
    Acquire = 10, Release = 11, Request = 12, Try = 13, TryFor = 14, Busy = 15,
    AcquireShared = 16, ReleaseShared = 17, RequestShared = 18,
    Fork = 20, Join = 21, Begin = 22, End = 23,
    WaitBegin = 30, WaitEnd = 31, Notify = 32, NotifyAll = 33,
    Channel = 40, Look = 41, Initialised = 42, InitialisationSeen = 43, Post = 44, Miss = 45,
    CollectionRead = 50, CollectionWrite = 51,
    Argument = 60, Call = 61, Return = 62,
    TestBegin = 70, TestEnd = 71,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) kind: Kind,
    /// The type of the value, as a letter of Java's descriptors.
    pub(super) value_type: u8,
    /// What its ticket belongs to; 0 is nothing.
    pub(super) stripe: u16,
    pub(super) site: u32,
    pub(super) ticket: u32,
    /// The index of an array's element.
    pub(super) index: u32,
    pub(super) object: u64,
    pub(super) value: u64,
}

/// The records of a thread, in its own order.
#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
    segment_end: u64,
    segment: u64,
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Records, JvmError> {
        let file = File::open(path).map_err(|e| JvmError::Io(path.to_owned(), e))?;
        Ok(Records {
            path: path.to_owned(),
            file: BufReader::with_capacity(16 << 10, file),
            at: 0,
            segment_end: FIRST_SEGMENT,
            segment: FIRST_SEGMENT,
        })
    }

    /// The next record, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, JvmError> {
        loop {
            let mut bytes = [0; RECORD];
            match self.file.read_exact(&mut bytes) {
                Ok(()) => {}
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
                Err(e) => return Err(JvmError::Io(self.path.clone(), e)),
            }
            let word = |i: usize| {
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[i * 8..i * 8 + 8]);
                u64::from_le_bytes(word)
            };
            let (head, place) = (word(0), word(1));
            if head == 0 {
                return Ok(None);
            }
            let Some(kind) = Kind::from_code(head as u8) else {
                let why = format!("there is no record at byte {}", self.at);
                return Err(JvmError::Damaged(self.path.clone(), why));
            };
            if kind == Kind::Skip {
                self.skip()?;
                continue;
            }
            self.at += RECORD as u64;
            return Ok(Some(Record {
                kind,
                value_type: (head >> 8) as u8,
                stripe: (head >> 16) as u16,
                site: (head >> 32) as u32,
                ticket: place as u32,
                index: (place >> 32) as u32,
                object: word(2),
                value: word(3),
            }));
        }
    }

    /// Goes on with the next segment.
    fn skip(&mut self) -> Result<(), JvmError> {
        self.at = self.segment_end;
        self.segment = (self.segment * 2).min(LAST_SEGMENT);
        self.segment_end += self.segment;
        let moved = self.file.seek(SeekFrom::Start(self.at));
        moved.map(drop).map_err(|e| JvmError::Io(self.path.clone(), e))
    }
}
