//! Records that yield no event, found in the first pass over a log, so that later ones need not decode them.
//!
//! What memory can be left out is known only after the first pass. So that pass notes, for a few dozen consecutive accesses
//! of one thread at a time, which blocks of memory they touch. If all words in these blocks turn out to be quiet, the
//! accesses are skipped. In a long run these are nearly all records.

use foresee_rt::format::{Access, Tag};

use super::HashMap;
use super::records::{Around, LEAST_SKIPPED, Record, Records, Simple, Skip, What};
use super::unseen::Stacks;

/// The size of a block: 64 words.
pub(super) const BLOCK: u32 = 9;

/// The least number of accesses in a segment. More are needed for long logs, so that the table stays small.
const LEAST: u32 = 32;
/// The maximum number of blocks that a segment touches.
const MOST_BLOCKS: usize = 16;
/// The approximate size of a segment in bytes, with its blocks, and that of a record.
const SEGMENT: u64 = 128;
const RECORD: u64 = 6;
/// The maximum size of the table in bytes.
const MOST: usize = 64 << 20;

/// No block has this number.
const NO_BLOCK: u64 = u64::MAX;

/// Consecutive accesses of one thread.
#[derive(Debug)]
struct Segment {
    skip: Skip,
    /// Where its blocks end in the list of all; those of the next segment follow.
    blocks: usize,
}

/// What one access touches: the first block and the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    skip: Skip,
    first: u64,
    last: u64,
}

/// The segments of a log, as far as it has been read.
#[derive(Debug)]
pub(super) struct Segments {
    all: Vec<Segment>,
    blocks: Vec<u64>,
    /// Where the blocks of the latest segment begin.
    first: usize,
    /// Whether the next access may belong to the latest segment.
    is_open: bool,
    /// Blocks of the latest segment.
    recent: [u64; MOST_BLOCKS],
    /// The maximum number of accesses in a segment, and the memory limit in bytes.
    length: u32,
    most: usize,
    stacks: Stacks,
}

impl Segments {
    /// For a log of this many bytes, within some memory.
    pub(super) fn new(log: u64, most: usize) -> Segments {
        let most = most.min(MOST);
        let length = log / RECORD / (most as u64 / SEGMENT).max(1);
        Segments {
            all: Vec::new(),
            blocks: Vec::new(),
            first: 0,
            is_open: false,
            recent: [NO_BLOCK; MOST_BLOCKS],
            length: u32::try_from(length).unwrap_or(u32::MAX).max(LEAST),
            most,
            stacks: Stacks::default(),
        }
    }

    /// What a record touches; `None` if it cannot be skipped in any case. It cannot if it shows the stack of another thread
    /// to its own, because later passes need to know that.
    #[inline]
    pub(super) fn touch(&mut self, record: &Record<'_>) -> Option<Touch> {
        let Record { thread, address, value, .. } = *record;
        let (access, size) = match record.what {
            What::Access(access, size) if size > 0 => (access, size as u64),
            What::Sync(Tag::ThreadBegin) => {
                self.stacks.add(thread, address, value);
                return None;
            }
            _ => return None,
        };
        let last = address.checked_add(size - 1)?;
        if self.stacks.is_of_another(thread, address) {
            return None;
        }
        if access.reads() {
            let seen = if access == Access::Rmw { record.old } else { value };
            if record.bytes.is_empty() {
                if size == 8 && self.stacks.is_of_another(thread, seen) {
                    return None;
                }
            } else {
                let skipped = (address.wrapping_neg() & 7) as usize;
                let words = record.bytes.get(skipped..).unwrap_or(&[]).as_chunks::<8>().0;
                let shows =
                    |word: &[u8; 8]| self.stacks.is_of_another(thread, u64::from_le_bytes(*word));
                if words.iter().any(shows) {
                    return None;
                }
            }
        }
        let (first, last) = (address >> BLOCK, last >> BLOCK);
        // The size of an access is whatever the log says, and a damaged one can say anything.
        let is_small = last - first < MOST_BLOCKS as u64;
        is_small.then(|| Touch { skip: Skip::of(record), first, last })
    }

    /// Adds the latest record.
    #[inline]
    pub(super) fn add(&mut self, touch: Option<Touch>, records: &Records) {
        let Some(Touch { skip, first, last }) = touch else {
            self.is_open = false;
            return;
        };
        let is_more = self.is_open
            && self.all.last_mut().is_some_and(|latest| {
                latest.skip.count < self.length && records.continues(&mut latest.skip, &skip)
            });
        if !is_more {
            let mut skip = skip;
            records.ends(&mut skip);
            if !self.begin(skip) {
                return;
            }
        }
        self.extend(first, last);
    }

    /// The latest record is about the calls of a thread, which is at this node of the tree then, if that is known.
    pub(super) fn calls(&mut self, skip: Skip, node: Option<u32>, records: &Records) {
        let latest = self.all.last_mut().filter(|_| self.is_open);
        self.is_open =
            latest.is_some_and(|latest| records.passes_call(&mut latest.skip, skip, node));
    }

    /// The same for a simple access.
    #[inline]
    pub(super) fn simple(&mut self, one: &Simple, around: &Around) {
        let Simple { is_write, size, address, value, .. } = *one;
        let end = address.checked_add(u64::from(size) - 1);
        let is_shown = |stacks: &mut Stacks| {
            stacks.is_of_another(around.thread, address)
                || !is_write && size == 8 && stacks.is_of_another(around.thread, value)
        };
        let Some(last) = end.filter(|_| !is_shown(&mut self.stacks)) else {
            self.is_open = false;
            return;
        };
        let is_more = self.is_open
            && self.all.last_mut().is_some_and(|latest| {
                latest.skip.count < self.length && latest.skip.takes(one, around)
            });
        if is_more || self.begin(Skip::of_simple(one, around)) {
            self.extend(address >> BLOCK, last >> BLOCK);
        }
    }

    /// The latest segment touches these blocks.
    #[inline]
    fn extend(&mut self, first: u64, last: u64) {
        let known = self.blocks.len();
        let mut block = first;
        loop {
            let recent = &mut self.recent[block as usize % MOST_BLOCKS];
            if *recent != block {
                *recent = block;
                self.blocks.push(block);
            }
            if block >= last {
                break;
            }
            block += 1;
        }
        if self.blocks.len() > known
            && let Some(latest) = self.all.last_mut()
        {
            latest.blocks = self.blocks.len();
        }
        self.is_open = self.blocks.len() - self.first < MOST_BLOCKS;
    }

    /// Begins a segment, if there is memory for it.
    fn begin(&mut self, skip: Skip) -> bool {
        self.is_open = false;
        let weight = self.all.len() * size_of::<Segment>() + self.blocks.len() * size_of::<u64>();
        if weight > self.most {
            return false;
        }
        self.first = self.blocks.len();
        self.all.push(Segment { skip, blocks: self.first });
        self.recent = [NO_BLOCK; MOST_BLOCKS];
        true
    }

    /// The records that can be skipped, in their order. `loud` has a bit for each block of a page that holds a word which
    /// cannot be left out.
    pub(super) fn finish(self, loud: &HashMap<u64, u8>) -> Vec<Skip> {
        let mut skips: Vec<Skip> = Vec::new();
        let (mut from, mut page, mut bits) = (0, NO_BLOCK, 0);
        for Segment { skip, blocks } in self.all {
            let is_quiet = self.blocks[from..blocks].iter().all(|&block| {
                if block >> 3 != page {
                    page = block >> 3;
                    bits = loud.get(&page).copied().unwrap_or(0);
                }
                bits >> (block & 7) & 1 == 0
            });
            from = blocks;
            if is_quiet && !skips.last_mut().is_some_and(|latest| latest.joins(&skip)) {
                skips.push(skip);
            }
        }
        skips.retain(|skip| skip.count >= LEAST_SKIPPED);
        skips
    }
}
