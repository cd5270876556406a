//! The first page of an index, and what else is read when an index is opened.

use foresee_trace::varint::{push_varint, varint};
use foresee_trace::{FileOrder, Id, Interner, Names, Remarks};

use crate::error::IndexError;
use crate::identity::{Digest, Identity, Stat};
use crate::page::{PAGE, damaged, word_at};

/// Like that of native traces: a byte that is not text, the name, and line ends that reveal a
/// transfer in text mode.
const MAGIC: [u8; 8] = *b"\x89FSI\r\n\x1a\n";
/// The version of the format.
pub(crate) const VERSION: u16 = 1;

const FLAG_NOTES: u16 = 1;
const FLAG_REPAIRED: u16 = 2;

/// The first page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) pages: u64,
    pub(crate) events: u64,
    /// Whether the order of the trace is only that of its notes.
    pub(crate) notes: bool,
    /// Whether the trace was read with repairs.
    pub(crate) repaired: bool,
    /// The offset of the directory and the number of its entries.
    pub(crate) directory: (u64, u64),
    /// The offset of the facts and their length in bytes.
    pub(crate) facts: (u64, u64),
    pub(crate) identity: Identity,
}

/// The number of bytes used in the first page.
pub(crate) const LENGTH: usize = 120;

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = if self.notes { FLAG_NOTES } else { 0 };
        let flags = flags | if self.repaired { FLAG_REPAIRED } else { 0 };
        let Identity { stat, begun, digest } = self.identity;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&flags.to_le_bytes());
        bytes.extend_from_slice(&(PAGE as u32).to_le_bytes());
        for word in [
            self.pages,
            self.events,
            self.directory.0,
            self.directory.1,
            self.facts.0,
            self.facts.1,
            stat.length,
            stat.modified as u64,
            stat.changed as u64,
            stat.inode,
            begun as u64,
            u64::from(digest.crc),
            digest.sum,
        ] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        debug_assert_eq!(bytes.len(), LENGTH);
        bytes
    }

    /// Checks that a file that begins like this is an index of this version. The checksum is
    /// verified later, because the page of another version may have another length.
    pub(crate) fn recognise(head: &[u8]) -> Result<(), IndexError> {
        if head.len() < 10 || head[..8] != MAGIC {
            return Err(IndexError::NotAnIndex);
        }
        match u16::from_le_bytes([head[8], head[9]]) {
            VERSION => Ok(()),
            other => Err(IndexError::Version(other)),
        }
    }

    /// Decodes the header from the content of the first page.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, IndexError> {
        Header::recognise(bytes)?;
        let flags = u16::from_le_bytes([bytes[10], bytes[11]]);
        let word = |i: usize| word_at(bytes, 16 + 8 * i);
        let sensible = flags & !(FLAG_NOTES | FLAG_REPAIRED) == 0
            && bytes[12..16] == (PAGE as u32).to_le_bytes()
            && u32::try_from(word(11)).is_ok();
        if !sensible {
            return Err(damaged(0, "the header is invalid"));
        }
        let stat = Stat {
            length: word(6),
            modified: word(7) as i64,
            changed: word(8) as i64,
            inode: word(9),
        };
        let digest = Digest { crc: word(11) as u32, sum: word(12) };
        Ok(Header {
            pages: word(0),
            events: word(1),
            notes: flags & FLAG_NOTES != 0,
            repaired: flags & FLAG_REPAIRED != 0,
            directory: (word(2), word(3)),
            facts: (word(4), word(5)),
            identity: Identity { stat, begun: word(10) as i64, digest },
        })
    }
}

/// What an index stores about a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadFacts {
    /// The number of its events.
    pub(crate) events: u32,
    /// The thread that forked it, and when. What that thread knew then, this one knew from its
    /// first event on, so its own lists do not repeat it.
    pub(crate) fork: Option<(u32, u32)>,
}

/// What is loaded when an index is opened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The name of the trace's format.
    pub(crate) format: String,
    pub(crate) remarks: Remarks,
    pub(crate) threads: Vec<ThreadFacts>,
    /// The group of every [`LANDMARK`]th entry of the directory, which saves most of a search in
    /// it.
    pub(crate) landmarks: Vec<u64>,
    /// Threads, variables, locks and symbols; conditions and locations are not stored.
    pub(crate) names: Names,
}

/// The number of directory entries from one landmark to the next.
pub(crate) const LANDMARK: u64 = 64;

impl Facts {
    /// Encodes the facts; names may be borrowed.
    pub(crate) fn encode(
        format: &str,
        remarks: &Remarks,
        threads: &[ThreadFacts],
        landmarks: &[u64],
        names: &Names,
    ) -> Vec<u8> {
        let mut out = Vec::new();
        push_text(format, &mut out);
        push_varint(u64::from(remarks.cut_short.is_some()), &mut out);
        push_text(remarks.cut_short.as_deref().unwrap_or_default(), &mut out);
        push_varint(remarks.warnings.len() as u64, &mut out);
        remarks.warnings.iter().for_each(|warning| push_text(warning, &mut out));
        push_varint(threads.len() as u64, &mut out);
        for thread in threads {
            let (parent, time) = thread.fork.map_or((0, 0), |(parent, time)| (parent + 1, time));
            for number in [thread.events, parent, time] {
                push_varint(u64::from(number), &mut out);
            }
        }
        push_varint(landmarks.len() as u64, &mut out);
        let mut last = 0;
        for &group in landmarks {
            push_varint(group - last, &mut out);
            last = group;
        }
        push_names(&names.threads, &mut out);
        push_names(&names.vars, &mut out);
        push_names(&names.locks, &mut out);
        push_names(&names.syms, &mut out);
        out
    }

    /// Decodes the facts at `offset`.
    pub(crate) fn decode(bytes: &[u8], offset: u64, notes: bool) -> Result<Facts, IndexError> {
        let bad = || damaged(offset, "the names and remarks are invalid");
        let mut at = 0;
        Facts::read(bytes, &mut at, notes).filter(|_| at == bytes.len()).ok_or_else(bad)
    }

    fn read(bytes: &[u8], at: &mut usize, notes: bool) -> Option<Facts> {
        let mut facts = Facts { format: text(bytes, at)?.to_owned(), ..Facts::default() };
        if notes {
            facts.remarks.order = FileOrder::Notes;
        }
        let is_cut_short = varint(bytes, at)? != 0;
        let why = text(bytes, at)?;
        facts.remarks.cut_short = is_cut_short.then(|| why.to_owned());
        for _ in 0..varint(bytes, at)? {
            facts.remarks.warnings.push(text(bytes, at)?.to_owned());
        }
        let threads = varint(bytes, at)?;
        for _ in 0..threads {
            let mut number = || varint(bytes, at).and_then(|n| u32::try_from(n).ok());
            let (events, parent, time) = (number()?, number()?, number()?);
            let fork = parent.checked_sub(1).map(|parent| (parent, time));
            if fork.is_some_and(|(parent, _)| u64::from(parent) >= threads) {
                return None;
            }
            facts.threads.push(ThreadFacts { events, fork });
        }
        let mut last = 0u64;
        for _ in 0..varint(bytes, at)? {
            last = last.checked_add(varint(bytes, at)?)?;
            facts.landmarks.push(last);
        }
        read_names(bytes, at, &mut facts.names.threads)?;
        read_names(bytes, at, &mut facts.names.vars)?;
        read_names(bytes, at, &mut facts.names.locks)?;
        read_names(bytes, at, &mut facts.names.syms)?;
        (facts.threads.len() <= facts.names.threads.len()).then_some(facts)
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    push_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn text<'b>(bytes: &'b [u8], at: &mut usize) -> Option<&'b str> {
    let length = usize::try_from(varint(bytes, at)?).ok()?;
    let text = bytes.get(*at..at.checked_add(length)?)?;
    *at += length;
    std::str::from_utf8(text).ok()
}

fn push_names<I: Id>(names: &Interner<I>, out: &mut Vec<u8>) {
    push_varint(names.len() as u64, out);
    names.iter().for_each(|(_, name)| push_text(name, out));
}

fn read_names<I: Id>(bytes: &[u8], at: &mut usize, names: &mut Interner<I>) -> Option<()> {
    for number in 0..varint(bytes, at)? {
        let id = names.intern(text(bytes, at)?).ok()?;
        (id.index() as u64 == number).then_some(())?;
    }
    Some(())
}
