//! Memory that can be left out: only one thread ever accesses it, frees it itself, and reads only what it wrote; or several
//! threads read it, and nobody ever writes or frees it, as a table of constants. In a long run that is nearly all memory,
//! and it is known after one pass over the log, so the next pass needs no names and no variables for it.
//!
//! This is a first filter by address, across all lives of the memory; `private` then examines each variable of what
//! remains. Memory remains if it is accessed after it was freed, or holds a value that no hook saw written, because
//! another thread may have written it.

use std::collections::BTreeMap;
use std::ops::Range;

use foresee_rt::format::{Access, Tag};

use super::Module;
use super::memory::{Boundaries, bytes_of};
use super::pages::{PER_PAGE, Pages};
use super::records::{Record, Simple, What};
use super::source::KEPT_BY_LIBC;
use super::unseen::Data;
use super::{HashMap, HashSet};

/// No thread has accessed it.
const NO_THREAD: u16 = 0;
/// Several threads have.
const SHARED: u16 = u16::MAX - 1;
/// It must be kept.
const KEPT: u16 = u16::MAX;

/// The state of eight aligned bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// The bytes, the first of them lowest, and which of them are known.
    bytes: u64,
    known: u8,
    /// Whether it has been accessed in its current life.
    is_used: bool,
    /// Whether the block that it was in has been freed.
    is_freed: bool,
    /// The thread that has accessed it.
    owner: u16,
    /// The bytes at which accesses begin, or before which they end; the lowest also for blocks of memory.
    starts: u8,
    /// How it is accessed otherwise.
    flags: u8,
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
    /// For each page a bit for each [block](super::segments::BLOCK) with a word that cannot be left out.
    pub(super) loud: HashMap<u64, u8>,
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
                self.delimit(address, value);
                self.reuse(address, value);
                self.renew(address, value);
                self.blocks
                    .insert(address, Block { size: value, is_freed: false, freed_unused: None });
            }
            What::Sync(Tag::Free) => {
                self.delimit(address, value);
                self.free(thread, address, value, record.at);
            }
            _ => {}
        }
    }

    /// Processes a simple access.
    #[inline(always)]
    pub(super) fn see_simple(&mut self, thread: u32, one: &Simple) {
        // To read the same again changes nothing, and whether an access is atomic does not matter.
        let access = if one.is_write { Access::Write } else { Access::Read };
        let value = (usize::from(one.size), one.value, 0);
        self.access((thread, access), one.address, value);
    }

    /// No cell crosses the ends of a block of memory.
    fn delimit(&mut self, address: u64, size: u64) {
        for end in [address, address.saturating_add(size).saturating_add(7)] {
            let word = self.words.entry(end & !7);
            word.starts |= 1;
            word.flags |= WRITTEN_FROM;
        }
    }

    /// The approximate size of all this in bytes.
    #[inline]
    pub(super) fn weight(&self) -> usize {
        self.words.weight() + 32 * self.used.len()
    }

    /// A thread accesses some bytes whose contents are unknown.
    pub(super) fn touch(&mut self, thread: u32, address: u64, size: u64) {
        let end = address.saturating_add(size);
        for granule in (address & !7..end).step_by(8) {
            let word = self.words.entry(granule);
            own(word, thread);
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
        let by = (thread, access);
        self.part(by, address, (mask as u8, value << (8 * from), old << (8 * from)));
        if mask > 0xff {
            let (next, passed) = ((address | 7).wrapping_add(1), 64 - 8 * from);
            self.part(by, next, ((mask >> 8) as u8, value >> passed, old >> passed));
        }
    }

    /// An access of a part of eight aligned bytes, or of these alone.
    #[inline(always)]
    fn part(&mut self, by: (u32, Access), at: u64, (mask, value, old): (u8, u64, u64)) {
        if mask == 0 {
            return;
        }
        let word = self.word(by, at, (mask, value, old));
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
            self.word(by, at, (0xff, u64::from_le_bytes(*word), 0));
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

    /// An access of the bytes in a mask of eight aligned bytes.
    #[inline(always)]
    fn word(
        &mut self,
        (thread, access): (u32, Access),
        at: u64,
        (mask, value, old): (u8, u64, u64),
    ) -> &mut Word {
        let Sieve { words, blocks, data, used, is_free_running } = self;
        let word = words.entry(at);
        if !word.is_used {
            begin_life(word, at, (blocks, data, used));
        }
        if word.is_freed {
            word.owner = KEPT;
        }
        own(word, thread);
        let seen = if access == Access::Rmw { old } else { value };
        if access.reads()
            && !*is_free_running
            && (word.bytes ^ seen) & bytes_of(mask & word.known) != 0
        {
            word.owner = KEPT;
            word.flags |= STRANGE;
        }
        word.flags |= if access.writes() { CHANGED } else { 0 };
        let accessed = bytes_of(mask);
        word.bytes = word.bytes & !accessed | value & accessed;
        word.known |= mask;
        word
    }

    /// Freeing memory accesses all of it.
    fn free(&mut self, thread: u32, address: u64, size: u64, at: u64) {
        let mut is_used = false;
        self.words.within(address, size, |word| {
            is_used |= word.is_used;
            own(word, thread);
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
            self.words.within(address, size, |word| word.is_freed = word.is_used);
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
            (word.is_used, word.is_freed, word.known) = (false, false, 0);
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

    /// What can be left out, and where accesses begin and end, once all records were seen. In the memory of `modules`,
    /// variables have names and types, so that it has no wide cells.
    pub(super) fn finish(self, modules: &[Module]) -> Sieved {
        let mut pages: Vec<(u64, &[Word; PER_PAGE])> = self.words.iter().collect();
        pages.sort_unstable_by_key(|&(page, _)| page);
        let is_named = |&(page, _): &(u64, _)| {
            let range = page << 12..(page + 1) << 12;
            let is_in = |m: &Module| m.low < range.end && range.start < m.end;
            modules.iter().any(is_in) || self.data.is_in(&range)
        };
        let is_named: Vec<bool> = pages.iter().map(is_named).collect();
        let (starts, quiet) = (vec![[0; PER_PAGE]; pages.len()], vec![[0; 8]; pages.len()]);
        let mut cut = Cut { pages, starts, quiet };
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
        let Cut { pages, starts, quiet } = cut;
        let mut loud = HashMap::default();
        for (&(page, words), quiet) in pages.iter().zip(&quiet) {
            let is_loud =
                |i: usize| words[i].owner != NO_THREAD && quiet[i / 64] >> (i % 64) & 1 == 0;
            let of_block =
                |block: usize| u8::from((64 * block..64 * (block + 1)).any(is_loud)) << block;
            let bits = (0..8).fold(0, |bits, block| bits | of_block(block));
            if bits != 0 {
                loud.insert(page, bits);
            }
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
}

impl Cut<'_> {
    fn word(&self, at: usize) -> &Word {
        &self.pages[at / PER_PAGE].1[at % PER_PAGE]
    }

    /// Adds a wide cell, or single words if it is too small.
    fn add(&mut self, cell: Range<usize>) {
        let is_quiet = |word: &Word| match word.owner {
            KEPT | NO_THREAD => false,
            SHARED => word.flags & CHANGED == 0,
            _ => true,
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
            word.owner = KEPT;
            None
        }
        Some(_) => Some([0; 8]),
        None => data.holds(at & !7).map(|(bytes, _)| bytes),
    };
    word.is_used = true;
    word.known = if holds.is_some() { 0xff } else { 0 };
    word.bytes = u64::from_le_bytes(holds.unwrap_or_default());
}

/// Notes that a thread has accessed a word.
#[inline]
fn own(word: &mut Word, thread: u32) {
    let me = u16::try_from(thread).ok().filter(|&me| me < SHARED).unwrap_or(KEPT);
    word.owner = match word.owner {
        NO_THREAD => me,
        owner if owner == me => owner,
        KEPT => KEPT,
        _ => SHARED,
    };
}

impl Quiet {
    /// A page for [`Page::has`]; accesses are mostly near the one before.
    #[inline]
    pub(super) fn page(&self, address: u64) -> Page {
        let number = address >> 12;
        Page { number, bits: self.pages.get(&number).copied().unwrap_or_default() }
    }

    /// Whether the record that stands there frees a block which had been used.
    pub(super) fn frees_used(&self, at: u64) -> bool {
        self.used.contains(&at)
    }
}

/// A page of quiet memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    number: u64,
    bits: [u64; 8],
}

impl Default for Page {
    fn default() -> Page {
        Page { number: u64::MAX, bits: [0; 8] }
    }
}

impl Page {
    /// Whether it is the page of this address.
    #[inline]
    pub(super) fn is_of(&self, address: u64) -> bool {
        self.number == address >> 12
    }

    /// Whether the word of an address on the page is quiet.
    #[inline]
    pub(super) fn has(&self, address: u64) -> bool {
        self.bits[(address >> 9) as usize % 8] >> (address >> 3 & 63) & 1 != 0
    }
}
