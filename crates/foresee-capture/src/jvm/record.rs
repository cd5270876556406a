//! The records of one thread. `agents/jvm/src/main/java/foresee/jvm/RecordFile.java` describes their bytes.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::JvmError;

const HEADER: u64 = 4096;
const HALF: u64 = 256 << 10;
const SLOTS: usize = 64;
const HAS_OBJECT: u64 = 1 << 28;
const HAS_VALUE: u64 = 1 << 29;

macro_rules! kinds {
    ($($name:ident = $code:literal),* $(,)?) => {
        /// What a record is about; the same list as `Op.java`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind { $($name),* }

        impl Kind {
            /// The kind of the record that begins with this word.
            fn of(head: u64) -> Option<Kind> {
                match head as u8 & 0x7f { $($code => Some(Kind::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    Read = 1, Write = 2, VolatileRead = 3, VolatileWrite = 4, Rmw = 5, Old = 6, SharedWith = 7, Object = 8, Lost = 9,
    Acquire = 10, Release = 11, Request = 12, Try = 13, TryFor = 14, Busy = 15,
    AcquireShared = 16, ReleaseShared = 17, RequestShared = 18,
    Fork = 20, Join = 21, Begin = 22, End = 23, TaskBegin = 24, TaskEnd = 25, Waits = 26,
    WaitBegin = 30, WaitEnd = 31, Notify = 32, NotifyAll = 33,
    Channel = 40, Look = 41, Initialised = 42, InitialisationSeen = 43, Post = 44, Miss = 45,
    Give = 46, Got = 47, Removed = 48, Told = 49,
    CollectionRead = 50, CollectionWrite = 51,
    Permits = 52, Raised = 53, Lowered = 54, Counted = 55, Initialising = 56, Hold = 57, Unhold = 58, Key = 59,
    Argument = 60, Call = 61, Return = 62,
    StackCall = 64, StackReturn = 65, StackUnknown = 66,
    TestBegin = 70, TestEnd = 71,
}

/// In place of an object's class: another thread was first to number the object.
pub(super) const NO_OBJECT: u32 = u32::MAX;

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

impl Record {
    /// The number of the thread that described the object, and which of its objects it is; nothing for other things.
    pub(super) fn described(&self) -> Option<(u32, u64)> {
        let (thread, number) = ((self.object >> 40) as u32, self.object & 0xff_ffff_ffff);
        // Things that are not objects have small numbers, or count down from the largest.
        (thread != 0 && thread < 1 << 23).then_some((thread, number))
    }
}

/// The records of a thread, in its own order.
#[derive(Debug)]
pub(super) struct Records {
    input: Input,
    slots: [u64; SLOTS],
}

/// Where records come from.
#[derive(Debug)]
enum Input {
    /// The file that the thread wrote.
    Stored(Stored),
    /// An agent that sends them while the program runs.
    Arriving(Arriving),
}

#[derive(Debug)]
struct Stored {
    path: PathBuf,
    file: BufReader<File>,
    /// How far the file has been read, and how far the part goes that is being read.
    at: u64,
    end: u64,
    /// The half of the buffer that was in use last, unless it is being read.
    last: Option<u64>,
}

/// Whole records that have arrived.
#[derive(Debug, Default)]
struct Arriving {
    bytes: Vec<u8>,
    /// How far they have been read, and how far they may be read for now.
    at: usize,
    end: usize,
}

impl Records {
    pub(super) fn open(path: &Path) -> Result<Records, JvmError> {
        let failed = |e| JvmError::Io(path.to_owned(), e);
        let file = File::open(path).map_err(failed)?;
        let mut file = BufReader::with_capacity(16 << 10, file);
        let mut head = [0; 8];
        let head = match file.read_exact(&mut head) {
            Ok(()) => u64::from_le_bytes(head),
            // It was about to be made.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => 0,
            Err(e) => return Err(failed(e)),
        };
        let at = HEADER + 2 * HALF;
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        let input = Input::Stored(Stored {
            path: path.to_owned(),
            file,
            at,
            end: at.saturating_add(head & !1),
            last: Some(HEADER + (head & 1) * HALF),
        });
        Ok(Records { input, slots: [0; SLOTS] })
    }

    /// Records that will arrive.
    pub(super) fn arriving() -> Records {
        Records { input: Input::Arriving(Arriving::default()), slots: [0; SLOTS] }
    }

    /// Takes records that have arrived; they are not read before [`Records::admit`].
    pub(super) fn arrive(&mut self, records: &[u8]) {
        if let Input::Arriving(arriving) = &mut self.input {
            arriving.bytes.extend_from_slice(records);
        }
    }

    /// Lets the first bytes of those that have not been read be read.
    pub(super) fn admit(&mut self, bytes: usize) {
        if let Input::Arriving(arriving) = &mut self.input {
            arriving.bytes.drain(..arriving.at);
            (arriving.at, arriving.end) = (0, bytes.min(arriving.bytes.len()));
        }
    }

    /// How many bytes have arrived and have not been read.
    pub(super) fn waiting(&self) -> usize {
        match &self.input {
            Input::Stored(_) => 0,
            Input::Arriving(arriving) => arriving.bytes.len() - arriving.at,
        }
    }

    /// The next record, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Record>, JvmError> {
        let Records { input, slots } = self;
        match input {
            Input::Stored(stored) => {
                let start = stored.at;
                let head = match stored.word()? {
                    0 => stored.turn(start)?,
                    head => head,
                };
                match (head, Kind::of(head)) {
                    (0, _) => Ok(None),
                    (_, None) => Err(stored.damaged(start)),
                    (_, Some(kind)) => Ok(Some(decode(kind, head, slots, || stored.word())?)),
                }
            }
            Input::Arriving(arriving) => {
                let head = arriving.word();
                match (head, Kind::of(head)) {
                    (0, _) => Ok(None),
                    (_, None) => Err(JvmError::Sent("there is no record where one begins")),
                    (_, Some(kind)) => Ok(Some(decode(kind, head, slots, || Ok(arriving.word()))?)),
                }
            }
        }
    }
}

/// The record of this kind that begins with this word.
fn decode(
    kind: Kind,
    head: u64,
    slots: &mut [u64; SLOTS],
    mut word: impl FnMut() -> Result<u64, JvmError>,
) -> Result<Record, JvmError> {
    let place = word()?;
    let slot = (head >> 22) as usize % SLOTS;
    if head & HAS_OBJECT != 0 {
        slots[slot] = word()?;
    }
    let has_value = head & HAS_VALUE != 0;
    let value_type = match head >> 7 & 7 {
        1 => b'Z',
        2 => b'I',
        3 => b'D',
        4 => b'L',
        _ => 0,
    };
    Ok(Record {
        kind,
        value_type,
        stripe: (head >> 10 & 0xfff) as u16,
        site: (head >> 32) as u32,
        ticket: place as u32,
        index: if has_value { (place >> 32) as u32 } else { 0 },
        object: slots[slot],
        value: if has_value { word()? } else { (place as i64 >> 32) as u64 },
    })
}

impl Arriving {
    /// The next word, or zero at the end.
    fn word(&mut self) -> u64 {
        let word = self.bytes[self.at..self.end].first_chunk::<8>();
        self.at = self.end.min(self.at + 8);
        word.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl Stored {
    /// The next word, or zero at the end.
    fn word(&mut self) -> Result<u64, JvmError> {
        if self.at + 8 > self.end {
            return Ok(0);
        }
        let mut bytes = [0; 8];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(0),
            Err(e) => return Err(JvmError::Io(self.path.clone(), e)),
        }
        self.at += 8;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Goes on with the half of the buffer that was in use last; its first word.
    fn turn(&mut self, start: u64) -> Result<u64, JvmError> {
        let Some(last) = self.last.take() else { return Ok(0) };
        if start < self.end {
            return Err(self.damaged(start));
        }
        let moved = self.file.seek(SeekFrom::Start(last));
        moved.map_err(|e| JvmError::Io(self.path.clone(), e))?;
        (self.at, self.end) = (last, last + HALF);
        self.word()
    }

    fn damaged(&self, at: u64) -> JvmError {
        JvmError::Damaged(self.path.clone(), format!("there is no record at byte {at}"))
    }
}
