//! Memory that can be left out: only one thread ever accesses it, frees it itself, and reads only what it wrote; or several
//! threads read it, and nobody ever writes or frees it, as a table of constants. In a long run that is nearly all memory,
//! and it is known after one pass over the log, so the next pass needs no names and no variables for it.
//!
//! Where the questions allow it, memory is left out as well if it is *settled*, in the sense of `private`: starts and joins of threads
//! put all accesses in order, one of which writes or frees. Most of that belongs to one thread, which is joined before another
//! one frees it; or it is written before the threads start that read it.
//!
//! This is a first filter by address, across all lives of the memory; `private` then examines each variable of what
//! remains. Memory remains if it is accessed after it was freed, or holds a value that no hook saw written, because
//! another thread may have written it.

use std::collections::BTreeMap;
use std::ops::Range;

use foresee_rt::format::{Access, Tag, block};

use super::Module;
use super::memory::{Boundaries, bytes_of};
use super::pages::{PER_PAGE, Pages};
use super::records::{How, LOW_BYTES, Record, Simple, What};
use super::segments::{BLOCK, BlockId};
use super::source::KEPT_BY_LIBC;
use super::unseen::Data;
use super::{HashMap, HashSet};
use crate::private::{Starts, is_before};
use foresee_trace::ThreadId;

/// No thread has accessed it.
const NO_THREAD: u16 = 0;
/// Several threads have, in no order.
const SHARED: u16 = u16::MAX - 1;
/// It must be kept.
const KEPT: u16 = u16::MAX;

/// Who has accessed a word.
///
/// Without readers, all accesses come before what follows the owner's at this time in its thread, or are among them. With readers, that
/// holds for all writes, while the reads of others come after these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(4))]
struct Who {
    owner: u16,
    /// How many threads the owner had started, and one; [`LATE`] if they are too many.
    time: u8,
    /// The thread that has read it since, or [`SEVERAL`].
    reader: u8,
}

/// A time of which nothing is known to come after it.
const LATE: u8 = u8::MAX;
/// More than one thread, or one with a large number.
const SEVERAL: u8 = u8::MAX;

impl Who {
    const KEPT: Who = Who { owner: KEPT, time: 0, reader: 0 };
    const SHARED: Who = Who { owner: SHARED, time: 0, reader: 0 };
}

/// The state of eight aligned bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Word {
    /// The bytes, the first of them lowest, and which of them are known.
    bytes: u64,
    known: u8,
    /// Its current life.
    life: Life,
    /// The bytes at which accesses begin, or before which they end; the lowest also for blocks of memory.
    starts: u8,
    /// How it is accessed otherwise.
    flags: u8,
    who: Who,
}

impl Word {
    /// All but the bytes, as one number.
    #[inline(always)]
    fn state(&self) -> u64 {
        state(self.known, self.life as u8, self.starts, self.flags, self.who)
    }
}

/// What a [word](Word) is like, in the order in which that is in memory, so that it is read at once.
#[inline(always)]
fn state(known: u8, life: u8, starts: u8, flags: u8, who: Who) -> u64 {
    let [low, high] = who.owner.to_le_bytes();
    u64::from_le_bytes([known, life, starts, flags, low, high, who.time, who.reader])
}

/// The parts of a [state](Word::state) that must be as expected, whatever the access: its life, and who accessed it.
const ALWAYS: u64 = 0xffff_ffff_0000_ff00;

/// What a simple access adds to the [state](Word::state) of its word, by eight times its [kind](How::kind) and its first byte in the
/// word.
const LEFT: [u64; 128] = {
    let mut all = [0; 128];
    let mut i = 0;
    while i < 128 {
        let (from, how) = (i & 7, How::of_kind(i >> 3));
        let size = how.size();
        let mask = ((1u32 << size) - 1) << from;
        let first = 1u32 << from;
        let starts = (first | (mask + first)) & 0xff;
        let changes = if how.is_write() { NARROW | WRITTEN_NARROW | CHANGED } else { NARROW };
        let flags = changes | if how.is_plain() { 0 } else { SPECIAL };
        // One that goes beyond the word adds what no word has: the life after the last.
        all[i] = match mask > 0xff {
            true => 0xff00,
            false => (flags as u64) << 24 | (starts as u64) << 16 | mask as u64,
        };
        i += 1;
    }
    all
};

/// The first and the last block that an access touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touched {
    pub(super) first: BlockId,
    pub(super) last: BlockId,
    /// Whether it is the first of its thread in this way since the word was accessed otherwise.
    pub(super) is_new: bool,
}

/// A thread that accesses memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mine {
    thread: u32,
    /// The [state](Word::state) of a word that it alone has accessed, apart from how.
    state: u64,
}

/// How far the life of a word has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
enum Life {
    /// It has not been accessed.
    #[default]
    Unused,
    Used,
    /// It was accessed, and then the block that it was in was freed.
    Freed,
}

/// An access covers only a part of it, or it alone.
const NARROW: u8 = 1;
/// A write does.
const WRITTEN_NARROW: u8 = 2;
/// A longer write begins here or ends just before, or a block of memory does.
const WRITTEN_FROM: u8 = 4;
/// A read saw what no write that was seen had left there.
const STRANGE: u8 = 8;
/// It was written, or freed.
const CHANGED: u8 = 16;
/// More than one thread has accessed it.
const MET: u8 = 32;
/// There were others than plain reads and writes.
const SPECIAL: u8 = 64;

/// The least number of words in a wide cell. Smaller ones may be structures, whose parts have names.
const LEAST_WIDE: usize = 8;

const _: () = assert!(size_of::<Word>() == 16);

/// A block of memory that was allocated.
#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    is_freed: bool,
    /// Where the record stands that freed it before it was used.
    freed_unused: Option<u64>,
}

/// Finds such memory during a pass over a log.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    words: Pages<Word>,
    blocks: BTreeMap<u64, Block>,
    data: Data,
    used: HashSet<u64>,
    /// What reads see is not known for certain.
    is_free_running: bool,
    threads: Threads,
}

/// The threads, and how starts and joins order them.
#[derive(Debug, Default)]
struct Threads {
    starts: Starts,
    /// All that have accessed memory.
    seen: HashSet<u32>,
    /// The latest, and what a word is like that it alone has accessed.
    latest: u32,
    mine: Who,
    /// Whether everything so far comes before what it does next, if that was asked.
    is_alone: Option<bool>,
}

impl Threads {
    /// What a word is like after an access of a thread, if nothing else is known of it.
    #[inline(always)]
    fn who(&mut self, thread: u32) -> Who {
        if self.latest != thread { self.another(thread) } else { self.mine }
    }

    #[cold]
    fn another(&mut self, thread: u32) -> Who {
        let owner = u16::try_from(thread).ok().filter(|&me| me < SHARED).unwrap_or(KEPT);
        let time = u8::try_from(self.starts.time(ThreadId(thread))).unwrap_or(LATE);
        self.seen.insert(thread);
        (self.latest, self.is_alone) = (thread, None);
        self.mine = if owner == KEPT { Who::KEPT } else { Who { owner, time, reader: 0 } };
        self.mine
    }

    /// A thread starts another one.
    fn start(&mut self, thread: u32, other: u32) {
        self.starts.start(ThreadId(thread), ThreadId(other));
        self.another(thread);
    }

    /// A thread has waited for the end of another one.
    fn join(&mut self, thread: u32, other: u32) {
        self.starts.precede(ThreadId(other), ThreadId(thread));
        self.another(thread);
    }

    /// Whether what other threads have done comes before the next access of the latest one.
    fn is_alone(&mut self) -> bool {
        let (me, starts) = (ThreadId(self.latest), &mut self.starts);
        *self.is_alone.get_or_insert_with(|| {
            let others = self.seen.iter().filter(|&&other| other != me.0);
            others.map(|&other| ThreadId(other)).all(|other| {
                let time = starts.time(other);
                is_before(starts.of(me), (other, time))
            })
        })
    }

    /// The latest thread accesses a word of others. What of this its starts and joins do not put in order is shared.
    #[cold]
    fn meet(&mut self, word: &mut Word, is_write: bool) {
        let Who { owner, time, reader } = word.who;
        let mine = self.mine;
        word.who = match owner {
            NO_THREAD => mine,
            // Its own, at an earlier time.
            _ if owner == mine.owner && reader == 0 => mine,
            _ if mine.owner == KEPT => Who::KEPT,
            _ => {
                word.flags |= MET;
                let me = u8::try_from(mine.owner).unwrap_or(SEVERAL);
                let owner_is = (ThreadId(u32::from(owner)), u32::from(time));
                let is_after = owner == mine.owner
                    || time != LATE && is_before(self.starts.of(ThreadId(self.latest)), owner_is);
                let is_only_reader = reader == 0 || reader == me && me != SEVERAL;
                if is_write {
                    match is_after && is_only_reader || self.is_alone() {
                        true => mine,
                        false => Who::SHARED,
                    }
                } else if word.flags & CHANGED != 0 && !is_after {
                    Who::SHARED
                } else {
                    let is_first = is_only_reader && owner != mine.owner;
                    Who { reader: if is_first { me } else { SEVERAL }, ..word.who }
                }
            }
        };
    }

    /// Notes that a thread accesses a word.
    #[inline(always)]
    fn own(&mut self, word: &mut Word, thread: u32, is_write: bool) {
        if self.who(thread) != word.who && word.who.owner < SHARED {
            self.meet(word, is_write);
        }
    }
}

/// What can be left out.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// For each page a bit for each of its words.
    pages: HashMap<u64, [u64; 8]>,
    /// Where the records stand that free a block which had been used.
    used: HashSet<u64>,
}

/// What is known once all records were seen.
#[derive(Debug)]
pub(super) struct Sieved {
    pub(super) quiet: Quiet,
    pub(super) boundaries: Boundaries,
    /// For each page, by its index, a bit for each [block](super::segments::BLOCK) with a word that cannot be left out.
    pub(super) loud: Vec<u8>,
}

impl Sieve {
    pub(super) fn new(is_free_running: bool) -> Sieve {
        Sieve { is_free_running, ..Sieve::default() }
    }

    /// Processes the next record.
    pub(super) fn see(&mut self, record: &Record<'_>) {
        let Record { thread, address, value, .. } = *record;
        match record.what {
            What::Access(access, size) => {
                let by = (thread, access);
                match record.bytes.is_empty() {
                    true => self.access(by, address, (size.min(8), value, record.old)),
                    false => self.run(by, address, record.bytes),
                }
            }
            What::Sync(Tag::Data) => self.data.add(address, value, 0),
            What::Sync(Tag::Bytes) => self.data.set(address, record.bytes),
            What::Sync(Tag::ThreadBegin) => {
                self.delimit(address, value);
                self.reuse(address, value);
                self.renew(address, value);
            }
            What::Sync(Tag::Alloc) => {
                let size = block::size(value);
                self.delimit(address, size);
                self.delimit(address, block::room(size));
                self.reuse(address, size);
                // What is left of earlier memory behind its end is nobody's.
                self.renew(address, block::room(size));
                self.blocks.insert(address, Block { size, is_freed: false, freed_unused: None });
            }
            What::Sync(Tag::Free) => {
                self.delimit(address, value);
                self.free(thread, address, value, record.at);
            }
            What::Sync(Tag::Fork) => self.threads.start(thread, value as u32),
            What::Sync(Tag::Join) => self.threads.join(thread, value as u32),
            _ => {}
        }
    }

    /// Processes a simple access. Returns the blocks that it touches.
    #[inline(always)]
    pub(super) fn see_simple(&mut self, mine: Mine, one: &Simple) -> Touched {
        let &Simple { how, address, value, .. } = one;
        let (from, bits) = (address as usize & 7, 8 * (address as u32 & 7));
        let left = LEFT[how.kind() << 3 | from];
        let place = self.words.find(address);
        let word = self.words.at(place, address);
        // Nearly always, the thread has accessed the word before, in the same way, and as the last one: then `access` would
        // change nothing but the bytes.
        let is_known = word.state() & (left | ALWAYS) == left | mine.state;
        let accessed = LOW_BYTES[how.size() as usize & 15] << bits;
        let differs = (word.bytes ^ value << bits) & accessed;
        let block = block_id(place, address);
        if !is_known || differs != 0 && !how.is_write() {
            let last = self.see_new(mine.thread, how, address, value);
            return Touched { first: block, last, is_new: true };
        }
        word.bytes ^= differs;
        Touched { first: block, last: block, is_new: false }
    }

    /// What is needed for the simple accesses of a thread, until another one follows.
    pub(super) fn of(&mut self, thread: u32) -> Mine {
        Mine { thread, state: state(0, Life::Used as u8, 0, 0, self.threads.who(thread)) }
    }

    /// Processes a simple access that changes something. Returns the block of its last byte.
    #[inline(never)]
    fn see_new(&mut self, thread: u32, how: How, address: u64, value: u64) -> BlockId {
        // To read the same again changes nothing.
        let access = match (how.is_write(), how.is_plain()) {
            (true, true) => Access::Write,
            (false, true) => Access::Read,
            (true, false) => Access::AtomicWrite,
            (false, false) => Access::AtomicRead,
        };
        self.access((thread, access), address, (how.size() as usize, value, 0));
        self.block_id(address.wrapping_add(u64::from(how.size()) - 1))
    }

    /// The block of an address.
    pub(super) fn block_id(&mut self, address: u64) -> BlockId {
        block_id(self.words.find(address), address)
    }

    /// No cell crosses the ends of a block of memory.
    fn delimit(&mut self, address: u64, size: u64) {
        for end in [address, address.saturating_add(size).saturating_add(7)] {
            let word = self.words.entry(end & !7);
            word.starts |= 1;
            word.flags |= WRITTEN_FROM;
        }
    }

    /// Whether the pages of all this are within so many bytes.
    #[inline(always)]
    pub(super) fn is_within(&self, most: usize) -> bool {
        self.words.weight() <= most
    }

    /// The approximate size of all this in bytes.
    pub(super) fn weight(&self) -> usize {
        self.words.weight() + 32 * self.used.len()
    }

    /// A thread accesses some bytes whose contents are unknown.
    pub(super) fn touch(&mut self, thread: u32, address: u64, size: u64) {
        let end = address.saturating_add(size);
        for granule in (address & !7..end).step_by(8) {
            let word = self.words.entry(granule);
            self.threads.own(word, thread, true);
            word.flags |= NARROW | WRITTEN_NARROW | CHANGED;
        }
        for at in [address, end] {
            self.words.entry(at).starts |= 1 << (at & 7);
        }
    }

    /// An access of at most eight bytes: what they hold afterwards, and before a read-modify-write.
    #[inline(always)]
    fn access(
        &mut self,
        (thread, access): (u32, Access),
        address: u64,
        (size, value, old): (usize, u64, u64),
    ) {
        let from = (address & 7) as u32;
        let mask = ((1u32 << size) - 1) << from;
        let (by, bits, bytes) = ((thread, access), 8 * from, LOW_BYTES[size & 15]);
        self.part(by, address, (mask as u8, bytes << bits), (value << bits, old << bits));
        if mask > 0xff {
            let (next, passed) = ((address | 7).wrapping_add(1), 64 - bits);
            let holds = (value >> passed, old >> passed);
            self.part(by, next, ((mask >> 8) as u8, bytes >> passed), holds);
        }
    }

    /// An access of a part of eight aligned bytes, or of these alone.
    #[inline(always)]
    fn part(&mut self, by: (u32, Access), at: u64, which: (u8, u64), holds: (u64, u64)) {
        let mask = which.0;
        if mask == 0 {
            return;
        }
        let word = self.word(by, at, which, holds);
        word.flags |= if by.1.writes() { NARROW | WRITTEN_NARROW } else { NARROW };
        // The first byte and the one after the last, if that is among the eight.
        let first = mask & mask.wrapping_neg();
        word.starts |= first | mask.wrapping_add(first);
    }

    /// An access of more bytes.
    fn run(&mut self, by: (u32, Access), address: u64, bytes: &[u8]) {
        let head = bytes.len().min((address.wrapping_neg() & 7) as usize);
        let (head, rest) = bytes.split_at(head);
        let (words, tail) = rest.as_chunks::<8>();
        let number = |bytes: &[u8]| {
            let mut value = [0; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(value)
        };
        self.access(by, address, (head.len(), number(head), 0));
        let mut at = address.wrapping_add(head.len() as u64);
        if !words.is_empty() {
            self.begin(by, at);
        }
        for word in words {
            self.word(by, at, (0xff, u64::MAX), (u64::from_le_bytes(*word), 0));
            at = at.wrapping_add(8);
        }
        match tail.is_empty() {
            true => self.begin(by, at & !7),
            false => self.access(by, at, (tail.len(), number(tail), 0)),
        }
    }

    /// An access of more bytes begins at an aligned address, or ends just before.
    fn begin(&mut self, by: (u32, Access), at: u64) {
        let word = self.words.entry(at);
        word.starts |= 1;
        word.flags |= if by.1.writes() { WRITTEN_FROM } else { 0 };
    }

    /// An access of some of eight aligned bytes, by a bit and by all bits for each byte.
    #[inline(always)]
    fn word(
        &mut self,
        (thread, access): (u32, Access),
        at: u64,
        (mask, accessed): (u8, u64),
        (value, old): (u64, u64),
    ) -> &mut Word {
        let Sieve { words, blocks, data, used, is_free_running, threads } = self;
        let word = words.entry(at);
        match word.life {
            Life::Used => {}
            Life::Unused => begin_life(word, at, (blocks, data, used)),
            Life::Freed => word.who = Who::KEPT,
        }
        threads.own(word, thread, access.writes());
        let seen = if access == Access::Rmw { old } else { value };
        if access.reads()
            && (word.bytes ^ seen) & accessed != 0
            && (word.bytes ^ seen) & bytes_of(mask & word.known) != 0
            && !*is_free_running
        {
            word.who = Who::KEPT;
            word.flags |= STRANGE;
        }
        let is_plain = matches!(access, Access::Read | Access::Write);
        word.flags |=
            if access.writes() { CHANGED } else { 0 } | if is_plain { 0 } else { SPECIAL };
        word.bytes = word.bytes & !accessed | value & accessed;
        word.known |= mask;
        word
    }

    /// Freeing memory accesses all of it.
    fn free(&mut self, thread: u32, address: u64, size: u64, at: u64) {
        let mut is_used = false;
        let Sieve { words, threads, .. } = self;
        words.within(address, size, |word| {
            is_used |= word.life != Life::Unused;
            threads.own(word, thread, true);
            word.flags |= CHANGED;
        });
        if is_used {
            self.used.insert(at);
        }
        if size <= KEPT_BY_LIBC
            && let Some(block) = self.blocks.get_mut(&address)
        {
            block.is_freed = true;
            block.freed_unused = (!is_used).then_some(at);
            self.words.within(address, size, |word| {
                if word.life == Life::Used {
                    word.life = Life::Freed;
                }
            });
            return;
        }
        self.blocks.remove(&address);
        self.renew(address, size);
    }

    /// Forgets the blocks where memory is handed out again.
    fn reuse(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1));
        while let Some((&start, &Block { size, .. })) = self.blocks.range(..end).next_back()
            && start + size.max(1) > address
        {
            self.blocks.remove(&start);
            self.renew(start, size);
        }
    }

    /// Begins a new life of a range of memory; its earlier accesses still count.
    fn renew(&mut self, address: u64, size: u64) {
        self.words.within(address, size, |word| {
            (word.life, word.known) = (Life::Unused, 0);
        });
    }

    /// Where accesses begin and end, so far.
    pub(super) fn boundaries(&self) -> Boundaries {
        let mut all = Pages::default();
        for (page, words) in self.words.iter() {
            let starts = all.page(page);
            for (start, word) in starts.iter_mut().zip(words) {
                *start = word.starts;
            }
        }
        Boundaries::new(all, false)
    }

    /// What can be left out, settled memory too if `leaves_settled`, and where accesses begin and end, once all records were
    /// seen. In the memory of `modules`, variables have names and types, so that it has no wide cells.
    pub(super) fn finish(self, modules: &[Module], leaves_settled: bool) -> Sieved {
        let mut places: Vec<(u64, usize)> = self.words.places().collect();
        places.sort_unstable();
        let words = |&(page, place): &(u64, usize)| (page, self.words.page_at(place));
        let pages: Vec<(u64, &[Word; PER_PAGE])> = places.iter().map(words).collect();
        let is_named = |&(page, _): &(u64, _)| {
            let range = page << 12..(page + 1) << 12;
            let is_in = |m: &Module| m.low < range.end && range.start < m.end;
            modules.iter().any(is_in) || self.data.is_in(&range)
        };
        let is_named: Vec<bool> = pages.iter().map(is_named).collect();
        let (starts, quiet) = (vec![[0; PER_PAGE]; pages.len()], vec![[0; 8]; pages.len()]);
        let mut cut = Cut { pages, starts, quiet, leaves_settled };
        let count = cut.pages.len() * PER_PAGE;
        // All words, by their index in the pages; nothing is known of what lies between two pages.
        let begins = |cut: &Cut<'_>, at: usize, alone: u8, from: u8| {
            let (page, word) = (at / PER_PAGE, cut.word(at));
            let starts = if from == 0 { word.starts } else { word.flags & from };
            starts != 0
                || (word.flags | cut.word(at - 1).flags) & alone != 0
                || is_named[page]
                || at.is_multiple_of(PER_PAGE)
                    && (is_named[page - 1] || cut.pages[page - 1].0 + 1 != cut.pages[page].0)
        };
        let mut from = 0;
        while from < count {
            let mut to = from + 1;
            while to < count && !begins(&cut, to, WRITTEN_NARROW, WRITTEN_FROM) {
                to += 1;
            }
            let is_strange = (from..to).any(|at| cut.word(at).flags & STRANGE != 0);
            let mut cell = from;
            while is_strange && cell < to {
                let next = (cell + 1..to).find(|&at| begins(&cut, at, NARROW, 0)).unwrap_or(to);
                cut.add(cell..next);
                cell = next;
            }
            if !is_strange {
                cut.add(from..to);
            }
            from = to;
        }
        let Cut { pages, starts, quiet, .. } = cut;
        let mut loud = vec![0; places.len()];
        for ((&(_, words), &(_, place)), quiet) in pages.iter().zip(&places).zip(&quiet) {
            let is_loud =
                |i: usize| words[i].who.owner != NO_THREAD && quiet[i / 64] >> (i % 64) & 1 == 0;
            let of_block =
                |block: usize| u8::from((64 * block..64 * (block + 1)).any(is_loud)) << block;
            loud[place] = (0..8).fold(0, |bits, block| bits | of_block(block));
        }
        let mut boundaries = Pages::default();
        for (&(page, _), starts) in pages.iter().zip(starts) {
            *boundaries.page(page) = starts;
        }
        let pages = pages.iter().map(|&(page, _)| page).zip(quiet);
        let pages = pages.filter(|(_, bits)| *bits != [0; 8]).collect();
        let quiet = Quiet { pages, used: self.used };
        Sieved { quiet, boundaries: Boundaries::new(boundaries, true), loud }
    }
}

/// Memory while it is divided into cells.
struct Cut<'w> {
    pages: Vec<(u64, &'w [Word; PER_PAGE])>,
    /// For each word the bytes at which cells begin.
    starts: Vec<[u8; PER_PAGE]>,
    /// A bit for each word that can be left out.
    quiet: Vec<[u64; 8]>,
    leaves_settled: bool,
}

impl Cut<'_> {
    fn word(&self, at: usize) -> &Word {
        &self.pages[at / PER_PAGE].1[at % PER_PAGE]
    }

    /// Adds a wide cell, or single words if it is too small.
    fn add(&mut self, cell: Range<usize>) {
        let leaves_settled = self.leaves_settled;
        let is_quiet = |word: &Word| match word.who.owner {
            KEPT | NO_THREAD => false,
            _ if word.flags & CHANGED == 0 => true,
            SHARED => false,
            _ if word.flags & MET == 0 => true,
            _ => leaves_settled && word.flags & SPECIAL == 0,
        };
        let is_wide = cell.len() >= LEAST_WIDE;
        // All of a wide cell is left out, or nothing.
        let is_loud = is_wide && !cell.clone().all(|at| is_quiet(self.word(at)));
        for at in cell.clone() {
            let (page, i) = (at / PER_PAGE, at % PER_PAGE);
            let starts = match is_wide {
                true => u8::from(at == cell.start),
                false => self.word(at).starts | 1,
            };
            self.starts[page][i] = starts;
            if !is_loud && is_quiet(self.word(at)) {
                self.quiet[page][i / 64] |= 1 << (i % 64);
            }
        }
    }
}

/// The number of the block of an address on the page with this index.
#[inline(always)]
fn block_id(place: usize, address: u64) -> BlockId {
    (place * 8) as BlockId | (address >> BLOCK & 7) as BlockId
}

/// The block that an address lies in.
fn block_at(blocks: &BTreeMap<u64, Block>, at: u64) -> Option<Block> {
    let (start, block) = blocks.range(..=at).next_back()?;
    (at < start.saturating_add(block.size.max(1))).then_some(*block)
}

/// The first access of a word in its current life: what it holds.
#[cold]
fn begin_life(
    word: &mut Word,
    at: u64,
    (blocks, data, used): (&BTreeMap<u64, Block>, &Data, &mut HashSet<u64>),
) {
    let holds = match block_at(blocks, at) {
        Some(block) if block.is_freed => {
            // Whether it was used before it is freed, or after that, still counts.
            used.extend(block.freed_unused);
            word.who = Who::KEPT;
            None
        }
        Some(_) => Some([0; 8]),
        None => data.holds(at & !7).map(|(bytes, _)| bytes),
    };
    word.life = Life::Used;
    word.known = if holds.is_some() { 0xff } else { 0 };
    word.bytes = u64::from_le_bytes(holds.unwrap_or_default());
}

impl Quiet {
    /// Whether the record that stands there frees a block which had been used.
    pub(super) fn frees_used(&self, at: u64) -> bool {
        self.used.contains(&at)
    }
}

/// A page of quiet memory.
#[derive(Clone, Copy, Debug)]
struct Page {
    number: u64,
    bits: [u64; 8],
}

/// How many pages are found without a hash table.
const RECENT: usize = 16;

/// Recently asked pages of quiet memory: accesses are mostly near an earlier one.
#[derive(Debug)]
pub(super) struct RecentPages([Page; RECENT]);

impl Default for RecentPages {
    fn default() -> RecentPages {
        RecentPages([Page { number: u64::MAX, bits: [0; 8] }; RECENT])
    }
}

impl RecentPages {
    /// Whether the word of an address can be left out.
    #[inline(always)]
    pub(super) fn has(&mut self, quiet: &Quiet, address: u64) -> bool {
        let number = address >> 12;
        let page = &mut self.0[number as usize % RECENT];
        if page.number != number {
            *page = Page { number, bits: quiet.pages.get(&number).copied().unwrap_or_default() };
        }
        page.bits[(address >> 9) as usize % 8] >> (address >> 3 & 63) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::unseen_tests::Random;
    use super::*;

    const BASE: u64 = 0x1000;
    const SIZE: usize = 64;

    fn sync(tag: Tag, thread: u32, address: u64, value: u64) -> Record<'static> {
        let (what, bytes) = (What::Sync(tag), &[]);
        let (inexact, pc, old, order, at) = (false, 0, 0, 0, 0);
        Record { thread, what, inexact, pc, address, value, old, order, bytes, at }
    }

    /// What a word is like after an access does not depend on whether the access was processed in the short way.
    #[test]
    fn the_short_way_leads_to_the_same() {
        let mut same = 0;
        for seed in 1..=500u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let mut sieves = [(); 2].map(|()| Sieve::new(seed % 5 == 0));
            let mut memory = [0u8; SIZE];
            sieves.iter_mut().for_each(|sieve| sieve.data.add(BASE, 16, 0));
            for _ in 0..300 {
                let thread = 1 + random.below(8).saturating_sub(5) as u32;
                let (other, block) = (1 + random.below(3) as u64, BASE + 32);
                let record = match random.below(60) {
                    0 => Some(sync(Tag::Alloc, thread, block, 24 << 1)),
                    1 => Some(sync(Tag::Free, thread, block, 24)),
                    2 => Some(sync(Tag::Fork, thread, 0, other)),
                    3 => Some(sync(Tag::Join, thread, 0, other)),
                    _ => None,
                };
                if let Some(record) = record {
                    sieves.iter_mut().for_each(|sieve| sieve.see(&record));
                    continue;
                }
                let kind = random.below(16);
                let size = How::of_kind(kind).size() as usize;
                // Mostly aligned, and mostly at a few places.
                let places = if random.below(3) == 0 { SIZE / size } else { 2 };
                let aligned = size * random.below(places.min(SIZE / size));
                let from = if random.below(10) == 0 { random.below(SIZE - size) } else { aligned };
                let is_write = How::of_kind(kind).is_write();
                // Now and then, a write that no hook saw comes before a read.
                if is_write || random.below(40) == 0 {
                    memory[from..from + size].fill(random.below(4) as u8);
                }
                let mut value = [0; 8];
                value[..size].copy_from_slice(&memory[from..from + size]);
                let (address, value) = (BASE + from as u64, u64::from_le_bytes(value));
                let one = Simple::sample(kind, address, value);
                let [short, long] = &mut sieves;
                let before: Vec<Word> = (0..9).map(|i| *long.words.entry(BASE + 8 * i)).collect();
                let mine = short.of(thread);
                short.see_simple(mine, &one);
                long.see_new(thread, one.how, address, value);
                for (i, before) in (0..9).zip(before) {
                    let (at, state) = (BASE + 8 * i, |word: &Word| (word.bytes, word.state()));
                    let word = state(long.words.entry(at));
                    assert_eq!(state(short.words.entry(at)), word, "seed {seed}, {at:x}");
                    same += usize::from(at == address & !7 && word.1 == before.state());
                }
            }
        }
        assert!(same > 50_000, "{same} accesses change nothing but bytes");
    }
}
