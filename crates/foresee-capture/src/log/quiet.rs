//! Memory that can be left out: only one thread ever accesses it, frees it itself, and reads only what it wrote. In a long
//! run that is nearly all memory, and it is known after one pass over the log, so the next pass needs no names and no
//! variables for it.
//!
//! This is a first filter by address, across all lives of the memory; `private` then examines each variable of what
//! remains. Memory remains if it is accessed after it was freed, or holds a value that no hook saw written, because
//! another thread may have written it.

use std::collections::BTreeMap;

use foresee_rt::format::{Access, Tag};

use super::pages::Pages;
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
    bytes: [u8; 8],
    known: u8,
    /// Whether it has been accessed in its current life.
    is_used: bool,
    /// Whether the block that it was in has been freed.
    is_freed: bool,
    /// The thread that has accessed it.
    owner: u16,
}

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

impl Sieve {
    pub(super) fn new(is_free_running: bool) -> Sieve {
        Sieve { is_free_running, ..Sieve::default() }
    }

    /// Looks at the next record.
    pub(super) fn see(&mut self, record: &Record<'_>) {
        let Record { thread, address, value, .. } = *record;
        match record.what {
            What::Access(access, size) => {
                let number = value.to_le_bytes();
                let bytes =
                    if record.bytes.is_empty() { &number[..size.min(8)] } else { record.bytes };
                self.access(thread, access, address, bytes, &record.old.to_le_bytes());
            }
            What::Sync(Tag::Data) => self.data.add(address, value, 0),
            What::Sync(Tag::Bytes) => self.data.set(address, record.bytes),
            What::Sync(Tag::ThreadBegin) => {
                self.reuse(address, value);
                self.renew(address, value);
            }
            What::Sync(Tag::Alloc) => {
                self.reuse(address, value);
                self.renew(address, value);
                self.blocks
                    .insert(address, Block { size: value, is_freed: false, freed_unused: None });
            }
            What::Sync(Tag::Free) => self.free(thread, address, value, record.at),
            _ => {}
        }
    }

    /// The approximate size of all this in bytes.
    #[inline]
    pub(super) fn weight(&self) -> usize {
        self.words.weight() + 32 * self.used.len()
    }

    /// A thread accesses some bytes whose contents are unknown.
    pub(super) fn touch(&mut self, thread: u32, address: u64, size: u64) {
        for granule in (address & !7..address.saturating_add(size)).step_by(8) {
            own(self.words.entry(granule), thread);
        }
    }

    fn access(&mut self, thread: u32, access: Access, address: u64, bytes: &[u8], old: &[u8; 8]) {
        let reads = access.reads();
        let mut rest = bytes;
        let mut at = address;
        while !rest.is_empty() {
            let from = (at & 7) as usize;
            let (now, others) = rest.split_at(rest.len().min(8 - from));
            let word = self.words.entry(at);
            if word.owner == KEPT {
                if !word.is_used {
                    // Whether it was used before it is freed, or after that, still counts.
                    let block = block_at(&self.blocks, at);
                    self.used.extend(block.and_then(|block| block.freed_unused));
                }
                word.is_used = true;
            } else {
                if !word.is_used {
                    let granule = at & !7;
                    let holds = match block_at(&self.blocks, at) {
                        Some(block) if block.is_freed => {
                            self.used.extend(block.freed_unused);
                            word.owner = KEPT;
                            None
                        }
                        Some(_) => Some([0; 8]),
                        None => self.data.holds(granule).map(|(bytes, _)| bytes),
                    };
                    word.is_used = true;
                    word.known = if holds.is_some() { 0xff } else { 0 };
                    word.bytes = holds.unwrap_or_default();
                }
                if word.is_freed {
                    word.owner = KEPT;
                }
                own(word, thread);
                let skipped = (at - address) as usize;
                for (i, &byte) in now.iter().enumerate() {
                    let bit = 1u8 << (from + i);
                    let seen = match access {
                        Access::Rmw => old.get(skipped + i).copied().unwrap_or(0),
                        _ => byte,
                    };
                    let is_known = word.known & bit != 0 && !self.is_free_running;
                    if reads && is_known && word.bytes[from + i] != seen {
                        word.owner = KEPT;
                    }
                    word.bytes[from + i] = byte;
                    word.known |= bit;
                }
            }
            at = at.wrapping_add(now.len() as u64);
            rest = others;
        }
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

    /// What can be left out, once all records were seen.
    pub(super) fn finish(self) -> Quiet {
        let is_quiet = |word: &Word| word.owner != KEPT && word.owner != NO_THREAD;
        let pages = self.words.iter().filter_map(|(page, words)| {
            let mut bits = [0u64; 8];
            for (i, _) in words.iter().enumerate().filter(|(_, word)| is_quiet(word)) {
                bits[i / 64] |= 1 << (i % 64);
            }
            (bits != [0; 8]).then_some((page, bits))
        });
        Quiet { pages: pages.collect(), used: self.used }
    }
}

/// The block that an address lies in.
fn block_at(blocks: &BTreeMap<u64, Block>, at: u64) -> Option<Block> {
    let (start, block) = blocks.range(..=at).next_back()?;
    (at < start + block.size.max(1)).then_some(*block)
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
