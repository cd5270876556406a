//! Memory that can be left out: only one thread ever accesses it, frees it itself, and reads only what it wrote. In a long
//! run that is nearly all memory, and it is known after one pass over the log, so the next pass needs no names and no
//! variables for it.
//!
//! This is a first filter by address, across all lives of the memory; `private` then examines each variable of what
//! remains. Memory remains if it is accessed after it was freed, or holds a value that no hook saw written, because
//! another thread may have written it.

use std::collections::BTreeMap;

use foresee_rt::format::{Access, Tag};

use super::Module;
use super::memory::{Boundaries, bytes_of};
use super::pages::{PER_PAGE, Pages};
use super::records::{Record, What};
use super::source::KEPT_BY_LIBC;
use super::unseen::Data;
use super::{HashMap, HashSet};

/// No thread has accessed it.
const NO_THREAD: u16 = 0;
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
    /// Whether an access covers only a part of it, or it alone.
    is_narrow: bool,
}

const _: () = assert!(size_of::<Word>() == 16);

/// A block of memory that was allocated.
#[derive(Clone, Copy, Debug)]
struct Block {
    size: u64,
    is_freed: bool,
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

impl Sieve {
    pub(super) fn new(is_free_running: bool) -> Sieve {
        Sieve { is_free_running, ..Sieve::default() }
    }

    /// Looks at the next record.
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
                self.blocks.insert(address, Block { size: value, is_freed: false });
            }
            What::Sync(Tag::Free) => {
                self.delimit(address, value);
                self.free(thread, address, value, record.at);
            }
            _ => {}
        }
    }

    /// No cell crosses the ends of a block of memory.
    fn delimit(&mut self, address: u64, size: u64) {
        for end in [address, address.saturating_add(size).saturating_add(7)] {
            self.words.entry(end & !7).starts |= 1;
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
            word.is_narrow = true;
        }
        for at in [address, end] {
            self.words.entry(at).starts |= 1 << (at & 7);
        }
    }

    /// An access of at most eight bytes: what they hold afterwards, and before a read-modify-write.
    #[inline]
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
            let parts = [value, old].map(|part| part >> (64 - 8 * from));
            let next = (address | 7).wrapping_add(1);
            self.part(by, next, ((mask >> 8) as u8, parts[0], parts[1]));
        }
    }

    /// An access of a part of eight aligned bytes, or of these alone.
    #[inline]
    fn part(&mut self, by: (u32, Access), at: u64, (mask, value, old): (u8, u64, u64)) {
        if mask == 0 {
            return;
        }
        let word = self.words.entry(at);
        word.is_narrow = true;
        // The first byte and the one after the last, if that is among the eight.
        let first = mask & mask.wrapping_neg();
        word.starts |= first | mask.wrapping_add(first);
        self.word(by, at, (mask, value, old));
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
            self.words.entry(at).starts |= 1;
        }
        for word in words {
            self.word(by, at, (0xff, u64::from_le_bytes(*word), 0));
            at = at.wrapping_add(8);
        }
        match tail.is_empty() {
            true => self.words.entry(at & !7).starts |= 1,
            false => self.access(by, at, (tail.len(), number(tail), 0)),
        }
    }

    /// An access of the bytes in a mask of eight aligned bytes.
    #[inline]
    fn word(&mut self, (thread, access): (u32, Access), at: u64, (mask, value, old): (u8, u64, u64)) {
        let word = self.words.entry(at);
        if word.owner == KEPT {
            // Whether it was used before it is freed still counts.
            word.is_used = true;
            return;
        }
        if !word.is_used {
            let block = self.blocks.range(..=at).next_back();
            let block = block.filter(|(start, block)| at < *start + block.size.max(1));
            let holds = match block {
                Some((_, block)) if block.is_freed => {
                    word.owner = KEPT;
                    None
                }
                Some(_) => Some([0; 8]),
                None => self.data.holds(at & !7).map(|(bytes, _)| bytes),
            };
            word.is_used = true;
            word.known = if holds.is_some() { 0xff } else { 0 };
            word.bytes = u64::from_le_bytes(holds.unwrap_or_default());
        }
        if word.is_freed {
            word.owner = KEPT;
        }
        own(word, thread);
        let seen = if access == Access::Rmw { old } else { value };
        if access.reads()
            && !self.is_free_running
            && (word.bytes ^ seen) & bytes_of(mask & word.known) != 0
        {
            word.owner = KEPT;
        }
        let accessed = bytes_of(mask);
        word.bytes = word.bytes & !accessed | value & accessed;
        word.known |= mask;
    }

    /// Freeing memory accesses all of it.
    fn free(&mut self, thread: u32, address: u64, size: u64, at: u64) {
        let mut is_used = false;
        self.words.within(address, size, |word| {
            is_used |= word.is_used;
            own(word, thread);
        });
        if is_used {
            self.used.insert(at);
            if size <= KEPT_BY_LIBC
                && let Some(block) = self.blocks.get_mut(&address)
            {
                block.is_freed = true;
                self.words.within(address, size, |word| word.is_freed = word.is_used);
                return;
            }
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
    pub(super) fn finish(self, modules: &[Module]) -> (Quiet, Boundaries) {
        let is_quiet = |word: &Word| word.owner != KEPT && word.owner != NO_THREAD;
        let mut pages: Vec<(u64, &[Word; PER_PAGE])> = self.words.iter().collect();
        pages.sort_unstable_by_key(|&(page, _)| page);
        let mut quiet: Vec<[u64; 8]> = vec![[0; 8]; pages.len()];
        let mut all = Pages::default();
        // The first word of the current cell, by its page's index, and whether all of it is quiet.
        let (mut first, mut is_all_quiet) = ((0, 0), true);
        let mut next = 0;
        let mut ends = true;
        for (index, &(page, words)) in pages.iter().enumerate() {
            let range = page << 12..(page + 1) << 12;
            let is_named = modules.iter().any(|m| m.low < range.end && range.start < m.end)
                || self.data.is_in(&range);
            // Nothing is known of what lies between two pages.
            ends |= is_named || page != next;
            next = page + 1;
            let starts = all.page(page);
            for (i, word) in words.iter().enumerate() {
                let is_alone = word.is_narrow || is_named || word.starts & !1 != 0;
                if ends || is_alone || word.starts != 0 {
                    starts[i] = word.starts | 1;
                    (first, is_all_quiet) = ((index, i), true);
                }
                ends = is_alone;
                let was_quiet = is_all_quiet;
                is_all_quiet &= is_quiet(word);
                if is_all_quiet {
                    quiet[index][i / 64] |= 1 << (i % 64);
                } else if was_quiet && first != (index, i) {
                    // All of a cell is left out, or nothing.
                    for earlier in first.0 * PER_PAGE + first.1..index * PER_PAGE + i {
                        let (page, word) = (earlier / PER_PAGE, earlier % PER_PAGE);
                        quiet[page][word / 64] &= !(1 << (word % 64));
                    }
                }
            }
        }
        let pages = pages.iter().map(|&(page, _)| page).zip(quiet);
        let pages = pages.filter(|(_, bits)| *bits != [0; 8]).collect();
        (Quiet { pages, used: self.used }, Boundaries::new(all, true))
    }
}

/// One more has touched it.
#[inline]
fn own(word: &mut Word, thread: u32) {
    let me = u16::try_from(thread).unwrap_or(KEPT);
    word.owner = match word.owner {
        NO_THREAD => me,
        owner if owner == me => owner,
        _ => KEPT,
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
