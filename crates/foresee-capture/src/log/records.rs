//! Decodes the records of a log.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use foresee_rt::format::{
    ACCESSES, Access, CHUNK_HEAD, CHUNK_MAGIC, INEXACT, PC_SIZES, POINTER, RUN, SIZES, Tag,
    checksum, neighbourhood, unzigzag,
};

use super::LogError;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A memory access of this many bytes. For runs, the values are in the record's bytes,
    /// otherwise in its value.
    Access(Access, usize),
    /// Anything else.
    Sync(Tag),
    /// Records that an earlier pass found to yield no event: their number among those to skip.
    Skipped(u32),
}

/// The highest number of a thread. Threads are numbered as they begin, and tables have a row for each.
const MOST_THREADS: u64 = 1 << 23;

/// The least number of bytes to skip that are not read from the file either. Logs of tests are short.
const LEAST_UNREAD: u64 = if cfg!(test) { 64 } else { 8 << 10 };

/// The least number of records that are worth skipping in later passes.
pub(super) const LEAST_SKIPPED: u32 = 4;

/// Consecutive records of one thread that yield no event. Later passes need not decode them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip {
    /// Where they begin and end.
    from: u64,
    to: u64,
    pc: u64,
    addresses: [u64; 2],
    pub(super) thread: u32,
    /// How many there are, how many of them are reads, and how many are inexact.
    pub(super) count: u32,
    pub(super) reads: u32,
    pub(super) inexact: u32,
    /// The number of them up to the last one that only repeats a read before them; zero if none does.
    pub(super) repeated: u32,
    /// The call stack of the thread behind them, if it is another than before them.
    pub(super) stack: Option<u32>,
}

impl Skip {
    /// A single record, whose end is not known yet.
    #[inline]
    pub(super) fn of(record: &Record<'_>) -> Skip {
        let Record { at, thread, what, inexact, .. } = *record;
        let is_read = matches!(what, What::Access(access, _) if access.reads());
        let (reads, inexact) = (u32::from(is_read), u32::from(inexact));
        let addresses = [0; 2];
        let (repeated, stack) = (0, None);
        Skip {
            from: at,
            to: at,
            pc: 0,
            addresses,
            thread,
            count: 1,
            reads,
            inexact,
            repeated,
            stack,
        }
    }

    /// A record that is about calls.
    pub(super) fn of_call(record: &Record<'_>) -> Skip {
        Skip { count: 0, ..Skip::of(record) }
    }

    /// Counts other records behind these. Returns `false` if there are too many.
    #[inline]
    fn count(&mut self, other: &Skip) -> bool {
        let Some(count) = self.count.checked_add(other.count) else { return false };
        if other.repeated > 0 {
            self.repeated = self.count + other.repeated;
        }
        self.count = count;
        self.reads += other.reads;
        self.inexact += other.inexact;
        self.stack = other.stack.or(self.stack);
        true
    }

    /// Adds what follows at once. Returns `false` if it does not, or is of another thread.
    pub(super) fn joins(&mut self, next: &Skip) -> bool {
        if self.to != next.from || self.thread != next.thread || !self.count(next) {
            return false;
        }
        (self.to, self.pc, self.addresses) = (next.to, next.pc, next.addresses);
        true
    }
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its thread.
    pub thread: u32,
    /// Its kind.
    pub what: What,
    /// Whether its position or its value may be wrong.
    pub inexact: bool,
    /// The return address of the hook.
    pub pc: u64,
    /// The address of its object.
    pub address: u64,
    /// The meaning depends on the tag.
    pub value: u64,
    /// The value before a read-modify-write.
    pub old: u64,
    /// The ordering of a read-modify-write.
    pub order: u8,
    /// The meaning depends on the tag.
    pub bytes: &'a [u8],
    /// Its position in the log and the tail after it.
    pub at: u64,
}

/// A read or write of at most eight bytes, or the same read several times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Simple {
    pub(super) how: How,
    pub(super) times: u32,
    pub(super) pc: u64,
    pub(super) address: u64,
    pub(super) value: u64,
    /// Where it stands in the log, and where the next record does.
    pub(super) at: u64,
    pub(super) to: u64,
    /// What its return address and its address are relative to.
    pub(super) before: (u64, u64),
}

/// How a simple access is made: bits 0 and 1 are the logarithm of its size, the others are named below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct How(u8);

impl How {
    const POINTER: u8 = 1 << 3;
    const SIMPLE: u8 = 1 << 4;
    const INEXACT: u8 = 1 << 5;
    const PLAIN: u8 = 1 << 6;
    const WRITE: u8 = 1 << 7;

    #[inline(always)]
    pub(super) const fn is_write(self) -> bool {
        self.0 & How::WRITE != 0
    }

    /// Whether it is not atomic.
    #[inline(always)]
    pub(super) const fn is_plain(self) -> bool {
        self.0 & How::PLAIN != 0
    }

    #[inline(always)]
    pub(super) fn inexact(self) -> bool {
        self.0 & How::INEXACT != 0
    }

    /// The number of bytes.
    #[inline(always)]
    pub(super) const fn size(self) -> u32 {
        1 << (self.0 & 3)
    }

    /// Whether it shows eight bytes, which may be an address.
    #[inline(always)]
    pub(super) fn shows(self) -> bool {
        self.0 & (How::WRITE | 3) == 3
    }

    /// A number below 16 for its size, whether it writes and whether it is plain.
    #[inline(always)]
    pub(super) fn kind(self) -> usize {
        (self.0 & 3 | self.0 >> 4 & 12) as usize
    }

    /// The first that has this number.
    pub(super) const fn of_kind(kind: usize) -> How {
        How(kind as u8 & 3 | (kind as u8 & 12) << 4)
    }
}

/// How the access is made that has this tag; [`How::SIMPLE`] is set if it is a simple one.
const HOW: [How; 256] = {
    let mut all = [How(0); 256];
    let mut tag = 0;
    while tag < 2 * ACCESSES as usize {
        let (size, access) = (tag as u8 & 7, tag as u8 >> 3 & 7);
        if SIMPLE >> access & 1 != 0 && size <= POINTER && size != RUN {
            let is_pointer = size == POINTER;
            all[tag] = How(if is_pointer { 3 | How::POINTER } else { size }
                | How::SIMPLE
                | if tag as u8 & INEXACT != 0 { How::INEXACT } else { 0 }
                | if PLAIN >> access & 1 != 0 { How::PLAIN } else { 0 }
                | if WRITES >> access & 1 != 0 { How::WRITE } else { 0 });
        }
        tag += 1;
    }
    all
};

#[cfg(test)]
impl Simple {
    /// An access of some [kind](How::kind) that stands nowhere.
    pub(super) fn sample(kind: usize, address: u64, value: u64) -> Simple {
        let (how, times, pc, at, to) = (How::of_kind(kind), 1, 0, 0, 0);
        Simple { how, times, pc, address, value, at, to, before: (0, 0) }
    }
}

/// What becomes of a simple access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// It was processed, and the next one is wanted.
    More,
    /// It was processed, and nothing more is wanted.
    Last,
    /// It was not processed, and is yet to be read.
    Refused,
}

/// What is the same for consecutive simple accesses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    pub(super) thread: u32,
    /// Where the chunk begins.
    base: u64,
    /// The address that others than accesses are relative to.
    other: u64,
}

impl Skip {
    /// A single access.
    #[inline]
    pub(super) fn of_simple(one: &Simple, around: &Around) -> Skip {
        let Simple { at: from, to, pc, times: count, .. } = *one;
        let reads = if one.how.is_write() { 0 } else { count };
        let (inexact, addresses) = (u32::from(one.how.inexact()), [one.address, around.other]);
        let (thread, repeated, stack) = (around.thread, 0, None);
        Skip { from, to, pc, addresses, thread, count, reads, inexact, repeated, stack }
    }

    /// Whether it belongs to the same thread and chunk as accesses that follow.
    pub(super) fn is_around(&self, around: &Around) -> bool {
        self.thread == around.thread && self.from >= around.base
    }

    /// Counts an access that follows at once. Where they end is said later, by [`Skip::ends_at`].
    /// Returns `false` if there are too many.
    #[inline(always)]
    pub(super) fn takes(&mut self, one: &Simple) -> bool {
        let Some(count) = self.count.checked_add(one.times) else { return false };
        self.count = count;
        self.reads += if one.how.is_write() { 0 } else { one.times };
        self.inexact += u32::from(one.how.inexact());
        true
    }

    /// They end at this place, where the next simple access is relative to a return address and an address.
    pub(super) fn ends_at(&mut self, to: u64, (pc, address): (u64, u64), around: &Around) {
        (self.to, self.pc, self.addresses) = (to, pc, [address, around.other]);
    }
}

/// Bytes after a chunk in memory, so that the fixed part of a record, which has at most 26 bytes,
/// can be read from an array of this size.
const PADDING: usize = 32;

/// The number of this many bytes at a place in the fixed part of a record.
#[inline]
fn part(record: &[u8; PADDING], at: usize, size: usize) -> u64 {
    let word = record[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    word & LOW_BYTES[size & 15]
}

/// The numbers of accesses that consist of the fixed part of their record alone, of those that are not atomic, and of those that
/// write; as bits.
const SIMPLE: u8 = 1 << Access::Read as u8
    | 1 << Access::Write as u8
    | 1 << Access::AtomicRead as u8
    | 1 << Access::AtomicWrite as u8
    | 1 << Access::RelaxedRead as u8
    | 1 << Access::RelaxedWrite as u8;
const PLAIN: u8 = 1 << Access::Read as u8 | 1 << Access::Write as u8;
const WRITES: u8 =
    1 << Access::Write as u8 | 1 << Access::AtomicWrite as u8 | 1 << Access::RelaxedWrite as u8;

/// How many bytes the return address, the address and the value of a record take, and all its fixed part.
#[derive(Clone, Copy)]
struct Lengths {
    pc: u8,
    address: u8,
    value: u8,
    all: u8,
}

/// The same, by the byte that says so.
const LENGTHS: [Lengths; 256] = {
    let mut all = [Lengths { pc: 0, address: 0, value: 0, all: 0 }; 256];
    let mut code = 0;
    while code < 256 {
        let pc = PC_SIZES[code & 3] as u8;
        let (address, value) = (SIZES[code >> 2 & 7] as u8, SIZES[code >> 5] as u8);
        all[code] = Lengths { pc, address, value, all: 2 + pc + address + value };
        code += 1;
    }
    all
};

impl Lengths {
    #[inline(always)]
    fn of(code: u8) -> (usize, usize, usize, usize) {
        let Lengths { pc, address, value, all } = LENGTHS[usize::from(code)];
        (usize::from(pc), usize::from(address), usize::from(value), usize::from(all))
    }
}

/// Whether a record has the return address and the address of the one before.
#[inline]
fn is_in_place(record: &[u8; PADDING]) -> bool {
    record[1] & 31 == 0 && record[2] == 0
}

/// The lowest bytes of a number, by how many; only up to eight make sense.
pub(super) const LOW_BYTES: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

/// The latest record that was decoded; its bytes begin at `start` in the chunk and end where the next one begins.
#[derive(Debug)]
struct Latest {
    thread: u32,
    what: What,
    inexact: bool,
    pc: u64,
    address: u64,
    value: u64,
    old: u64,
    order: u8,
    start: usize,
    at: u64,
}

impl Default for Latest {
    fn default() -> Latest {
        Latest {
            thread: 0,
            what: What::Skipped(0),
            inexact: false,
            pc: 0,
            address: 0,
            value: 0,
            old: 0,
            order: 0,
            start: 0,
            at: 0,
        }
    }
}

/// Reads a log.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    file: File,
    /// The position of the next chunk in the file, and the end of the valid part of the file.
    next: u64,
    end: u64,
    /// What was still in the program's buffer, and the thread it begins with.
    tail: Option<Vec<u8>>,
    largest: u64,
    /// The current chunk, followed by [`PADDING`].
    chunk: Vec<u8>,
    /// The position of the chunk.
    base: u64,
    at: usize,
    pc: u64,
    addresses: [u64; 2],
    thread: u32,
    /// Whether the log is known to be whole.
    is_checked: bool,
    /// Records to skip, in their order, and which comes next.
    skips: Arc<[Skip]>,
    skipped: usize,
    latest: Latest,
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
            chunk: vec![0; PADDING],
            base: 0,
            at: 0,
            pc: 0,
            addresses: [0; 2],
            thread: 0,
            is_checked: false,
            skips: Arc::default(),
            skipped: 0,
            latest: Latest::default(),
        })
    }

    /// Reads a log that was read before.
    pub(super) fn again(self) -> Records {
        Records { is_checked: true, ..self }
    }

    /// Skips these records.
    pub(super) fn skipping(self, skips: Arc<[Skip]>) -> Records {
        Records { skips, ..self }
    }

    /// A skip ends behind the latest record.
    #[inline]
    pub(super) fn ends(&self, skip: &mut Skip) {
        (skip.to, skip.pc) = (self.base + self.at as u64, self.pc);
        skip.addresses = self.addresses;
    }

    /// Adds the latest record, or skip, to a skip. Returns `false` if it belongs to another thread,
    /// or to another chunk, which is decoded afresh.
    #[inline]
    pub(super) fn continues(&self, skip: &mut Skip, one: &Skip) -> bool {
        if skip.thread != one.thread || skip.from < self.base || !skip.count(one) {
            return false;
        }
        self.ends(skip);
        true
    }

    /// Adds the latest record, which is about calls, to a skip. Returns `false` if what it belongs to prevents that, or it is
    /// not known which calls the thread is in then.
    pub(super) fn passes_call(&self, skip: &mut Skip, one: Skip, node: Option<u32>) -> bool {
        node.is_some() && self.continues(skip, &Skip { stack: node, ..one })
    }

    #[cold]
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
            self.chunk.extend([0; PADDING]);
            self.at = CHUNK_HEAD;
            // The runtime writes a chunk's header when the chunk is full; the first record names
            // its thread.
            self.thread = 0;
            return Ok(true);
        }
        let mut head = [0u8; CHUNK_HEAD];
        let failed = |e| LogError::Io(self.path.clone(), e);
        self.file.read_exact_at(&mut head, self.next).map_err(failed)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or([0; 8]));
        let length = word(0) >> 32;
        if word(0) as u32 != CHUNK_MAGIC || length > self.largest || self.next + length > self.end {
            return Err(self.corrupt("no chunk begins here"));
        }
        self.chunk.resize(length as usize + PADDING, 0);
        let start = self.next + CHUNK_HEAD as u64;
        let parts = self.parts(start, length);
        let body = &mut self.chunk[..length as usize];
        for part in parts {
            let at = start + part.start as u64;
            self.file.read_exact_at(&mut body[part], at).map_err(failed)?;
        }
        let is_whole = self.is_checked || checksum(body) == word(8);
        // The previous chunk may have been longer.
        self.chunk[length as usize..].fill(0);
        if !is_whole {
            return Err(self.corrupt("the chunk's checksum is wrong"));
        }
        self.thread = 0;
        self.base = self.next + CHUNK_HEAD as u64;
        self.next += CHUNK_HEAD as u64 + length;
        Ok(true)
    }

    /// The parts of a chunk's payload that are needed: all of it if it has to be checked, otherwise what is not skipped.
    fn parts(&self, start: u64, length: u64) -> Vec<Range<usize>> {
        let mut parts = Vec::new();
        let mut from = 0;
        let next = self.skips.get(self.skipped..).unwrap_or_default();
        for skip in next.iter().take_while(|skip| self.is_checked && skip.to <= start + length) {
            let Some(at) = skip.from.checked_sub(start) else { break };
            if skip.to - skip.from >= LEAST_UNREAD {
                parts.push(from as usize..at as usize);
                from = skip.to - start;
            }
        }
        parts.push(from as usize..length as usize);
        parts
    }

    /// Where the next records to skip begin in the chunk, or the chunk ends.
    #[inline]
    fn end(&self) -> usize {
        let skip = self.skips.get(self.skipped).and_then(|skip| skip.from.checked_sub(self.base));
        let skip = skip.map(|from| from as usize).filter(|&from| from >= self.at);
        skip.map_or(self.length(), |from| self.length().min(from))
    }

    /// The length of the chunk.
    #[inline]
    fn length(&self) -> usize {
        self.chunk.len() - PADDING
    }

    /// The next number, of at most eight bytes.
    #[inline]
    fn number(&mut self, size: usize) -> Result<u64, LogError> {
        let word = self.chunk.get(self.at..self.at + 8).and_then(|word| word.try_into().ok());
        let Some(word) = word.filter(|_| self.at + size <= self.length()) else {
            return Err(self.corrupt("a record is cut off"));
        };
        self.at += size;
        let unused = 64 - 8 * size as u32;
        Ok(u64::from_le_bytes(word).unbounded_shl(unused).unbounded_shr(unused))
    }

    /// The next record; changes of threads are not returned.
    // What is decoded is not returned by value through two levels of enums: to copy it took longer than to decode it.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, LogError> {
        if !self.advance()? {
            return Ok(None);
        }
        let &Latest { thread, what, inexact, pc, address, value, old, order, start, at } =
            &self.latest;
        let bytes = self.chunk.get(start..self.at).unwrap_or(&[]);
        Ok(Some(Record { thread, what, inexact, pc, address, value, old, order, bytes, at }))
    }

    /// Decodes the simple accesses that come next in the chunk, until `see` has enough: nearly all records of a
    /// long log, in a loop that has little to remember. [`Records::next_record`] decodes whatever ends it.
    #[inline(always)]
    pub(super) fn simple(&mut self, mut see: impl FnMut(&Simple, &Around) -> Seen) {
        if self.thread == 0 {
            return;
        }
        let around = self.around();
        let end = self.end();
        let (mut at, mut pc, mut address) = (self.at, self.pc, self.addresses[0]);
        // Behind the chunk there are zeros, a record that does not fit.
        while let Some(fixed) = self.chunk.get(at..).and_then(|rest| rest.first_chunk::<PADDING>())
        {
            let how = HOW[usize::from(fixed[0])];
            let (of_pc, of_address, of_value, length_of) = Lengths::of(fixed[1]);
            let mut next = at + length_of;
            if how.0 & How::SIMPLE == 0 || next > end {
                break;
            }
            let times = match how.0 & (How::WRITE | How::INEXACT) != 0 || !is_in_place(fixed) {
                true => 1,
                false => {
                    let same = self.same(at..end, next - at);
                    next += (next - at) * same as usize;
                    same + 1
                }
            };
            let before = (pc, address);
            let step = unzigzag(part(fixed, 2, of_pc));
            let moved = unzigzag(part(fixed, 2 + of_pc, of_address)).wrapping_add(address);
            let value = part(fixed, 2 + of_pc + of_address, of_value);
            let value = match how.0 & How::POINTER != 0 {
                true => unzigzag(value).wrapping_add(moved),
                false => value,
            };
            let one = Simple {
                how,
                times,
                pc: step.wrapping_add(pc),
                address: moved,
                value,
                at: self.base + at as u64,
                to: self.base + next as u64,
                before,
            };
            let seen = see(&one, &around);
            if seen == Seen::Refused {
                break;
            }
            (at, pc, address) = (next, one.pc, one.address);
            if seen == Seen::Last {
                break;
            }
        }
        (self.at, self.pc, self.addresses[0]) = (at, pc, address);
    }

    /// What is the same for the simple accesses that come next.
    pub(super) fn around(&self) -> Around {
        Around { thread: self.thread, base: self.base, other: self.addresses[1] }
    }

    /// How often the record of this length at the beginning of a range is followed there by one of the same bytes at once.
    fn same(&self, range: Range<usize>, length: usize) -> u32 {
        // As long as the bytes are those of one record before.
        let bytes = &self.chunk[range];
        let (before, after) = (bytes.as_chunks::<8>().0, bytes[length..].as_chunks::<8>().0);
        let is_same = |(before, after): &(&[u8; 8], &[u8; 8])| before == after;
        let same = 8 * before.iter().zip(after).take_while(is_same).count();
        let rest = bytes[same..].iter().zip(&bytes[length + same..]);
        let same = same + rest.take_while(|(before, after)| before == after).count();
        (same / length) as u32
    }

    /// Passes over the records that are the same as the latest one, as in a loop that waits. Returns how many there were.
    pub(super) fn pass_same(&mut self) -> u32 {
        let from = (self.latest.at - self.base) as usize;
        let fixed = self.chunk.get(from..).and_then(|rest| rest.first_chunk::<PADDING>());
        if !fixed.is_some_and(is_in_place) {
            return 0;
        }
        let length = self.at - from;
        let same = self.same(from..self.end(), length);
        self.at += length * same as usize;
        same
    }

    /// Decodes the next record.
    fn advance(&mut self) -> Result<bool, LogError> {
        loop {
            while self.at >= self.length() {
                if !self.next_chunk()? {
                    return Ok(false);
                }
            }
            let at = self.base + self.at as u64;
            if let Some(skip) = self.skips.get(self.skipped)
                && skip.from == at
            {
                let Skip { to, pc, addresses, thread, .. } = *skip;
                let number = self.skipped as u32;
                self.at = (to - self.base) as usize;
                (self.pc, self.addresses) = (pc, addresses);
                self.skipped += 1;
                let (what, start) = (What::Skipped(number), self.at);
                self.latest = Latest { thread, what, start, at, ..Latest::default() };
                return Ok(true);
            }
            let fixed = self.chunk.get(self.at..).and_then(|rest| rest.first_chunk::<PADDING>());
            let Some(fixed) = fixed else { return Err(self.corrupt("a record is cut off")) };
            let tag = fixed[0];
            let (of_pc, of_address, of_value, length) = Lengths::of(fixed[1]);
            if self.at + length > self.length() {
                return Err(self.corrupt("a record is cut off"));
            }
            let pc = unzigzag(part(fixed, 2, of_pc)).wrapping_add(self.pc);
            let address = unzigzag(part(fixed, 2 + of_pc, of_address))
                .wrapping_add(self.addresses[neighbourhood(tag)]);
            let mut value = part(fixed, 2 + of_pc + of_address, of_value);
            self.at += length;
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
            let is_of_thread = matches!(what, What::Sync(Tag::Switch | Tag::Fork | Tag::Join));
            if is_of_thread && value > MOST_THREADS {
                return Err(self.corrupt("the number of a thread is too large"));
            }
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
            if follow > self.length() - start {
                return Err(self.corrupt("a record is cut off"));
            }
            self.at += follow;
            let thread = self.thread;
            self.latest =
                Latest { thread, what, inexact, pc, address, value, old, order, start, at };
            return Ok(true);
        }
    }
}
