//! Records that yield no event, found in the first pass over a log, so that later ones need not decode them.
//!
//! What memory can be left out is known only after the first pass. So that pass notes, for a few dozen consecutive accesses
//! of one thread at a time, which blocks of memory they touch. If all words in these blocks turn out to be quiet, the
//! accesses are skipped. In a long run these are nearly all records.

use foresee_rt::format::{Access, Tag};

use super::quiet::Touched;
use super::records::{Around, How, LEAST_SKIPPED, Record, Records, Simple, Skip, What};
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

/// The number of a block: the index of its page in the table of all memory, and which of the page's eight blocks it is.
pub(super) type BlockId = u32;

/// No block has this number: there is no memory for so many pages.
const NO_BLOCK: BlockId = BlockId::MAX;

/// Consecutive accesses of one thread.
#[derive(Clone, Copy, Debug)]
struct Segment {
    skip: Skip,
    /// Where its blocks end in the list of all; those of the next segment follow.
    blocks: usize,
}

/// What one access touches: the first block and the last, counted from the beginning of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    skip: Skip,
    first: u64,
    last: u64,
}

/// The segments of a log, as far as it has been read.
#[derive(Debug)]
pub(super) struct Segments {
    /// All but the latest.
    all: Vec<Segment>,
    blocks: Vec<BlockId>,
    latest: Option<Skip>,
    /// Where the blocks of the latest segment begin.
    first: usize,
    /// Whether the next access may belong to the latest segment.
    is_open: bool,
    /// Blocks of the latest segment.
    recent: [BlockId; MOST_BLOCKS],
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
            latest: None,
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

    /// Adds the latest record. `number` finds blocks, which it counts from the beginning of memory.
    #[inline]
    pub(super) fn add(
        &mut self,
        touch: Option<Touch>,
        records: &Records,
        mut number: impl FnMut(u64) -> BlockId,
    ) {
        let Some(Touch { skip, first, last }) = touch else {
            self.is_open = false;
            return;
        };
        let length = self.length;
        let is_more = self.is_open
            && self
                .latest
                .as_mut()
                .is_some_and(|latest| latest.count < length && records.continues(latest, &skip));
        if !is_more {
            let mut skip = skip;
            records.ends(&mut skip);
            if !self.begin(skip) {
                return;
            }
        }
        (first..=last).for_each(|block| self.extend(number(block)));
        self.is_open = !self.is_full();
    }

    /// The latest record is about the calls of a thread, which is at this node of the tree then, if that is known.
    pub(super) fn calls(&mut self, skip: Skip, node: Option<u32>, records: &Records) {
        let latest = self.latest.as_mut().filter(|_| self.is_open);
        self.is_open = latest.is_some_and(|latest| records.passes_call(latest, skip, node));
    }

    /// Simple accesses follow.
    pub(super) fn enter(&mut self, around: &Around) {
        self.is_open &= self.latest.is_some_and(|latest| latest.is_around(around));
    }

    /// Adds one of them, which touches these blocks.
    #[inline(always)]
    pub(super) fn simple(&mut self, one: &Simple, around: &Around, touched: Touched) {
        let Simple { how, address, value, .. } = *one;
        // Where the thread has accessed the word before, that has shown the address. If another thread's stack begins there
        // later, the word begins a new life.
        let is_shown = touched.is_new
            && (self.stacks.is_of_another(around.thread, address)
                || address.checked_add(u64::from(how.size()) - 1).is_none())
            || how.shows() && self.stacks.is_of_another(around.thread, value);
        let is_more = self.is_open
            && !is_shown
            && self
                .latest
                .as_mut()
                .is_some_and(|latest| latest.count < self.length && latest.takes(one));
        if !is_more {
            let (Simple { at, to, pc, before, .. }, how) = (*one, (one.times, how));
            if !self.begin_with((at, to), (pc, address), before, how, is_shown, around) {
                return;
            }
        }
        self.touches(touched.first, one, around);
        if touched.last != touched.first {
            self.touches(touched.last, one, around);
        }
    }

    /// An access does not belong to the latest segment, or to none if it shows something. Returns whether it begins another one.
    // What it needs is passed one by one, so that nothing has to be in memory for it.
    #[cold]
    #[inline(never)]
    fn begin_with(
        &mut self,
        (at, to): (u64, u64),
        (pc, address): (u64, u64),
        before: (u64, u64),
        (times, how): (u32, How),
        is_shown: bool,
        around: &Around,
    ) -> bool {
        if let Some(latest) = self.latest.as_mut().filter(|_| self.is_open) {
            latest.ends_at(at, before, around);
        }
        self.is_open = false;
        let one = Simple { how, times, pc, address, value: 0, at, to, before };
        if is_shown || !self.begin(Skip::of_simple(&one, around)) {
            return false;
        }
        self.is_open = true;
        true
    }

    /// The latest access touches a block.
    #[inline(always)]
    fn touches(&mut self, block: BlockId, one: &Simple, around: &Around) {
        if self.recent[block as usize % MOST_BLOCKS] != block {
            self.touches_new(block, one.to, (one.pc, one.address), around);
        }
    }

    /// The same for a block that it may not have touched before. The access ends there.
    #[inline(never)]
    fn touches_new(&mut self, block: BlockId, to: u64, of: (u64, u64), around: &Around) {
        self.extend(block);
        if self.is_open && self.is_full() {
            self.is_open = false;
            self.latest.iter_mut().for_each(|latest| latest.ends_at(to, of, around));
        }
    }

    /// No simple access follows.
    pub(super) fn leave(&mut self, records: &Records) {
        self.latest.iter_mut().filter(|_| self.is_open).for_each(|latest| records.ends(latest));
    }

    /// The latest segment touches a block.
    fn extend(&mut self, block: BlockId) {
        let recent = &mut self.recent[block as usize % MOST_BLOCKS];
        if *recent != block {
            *recent = block;
            self.blocks.push(block);
        }
    }

    fn is_full(&self) -> bool {
        self.blocks.len() - self.first >= MOST_BLOCKS
    }

    /// Begins a segment, if there is memory for it.
    fn begin(&mut self, skip: Skip) -> bool {
        self.is_open = false;
        self.close();
        let weight =
            self.all.len() * size_of::<Segment>() + self.blocks.len() * size_of::<BlockId>();
        if weight > self.most {
            return false;
        }
        self.first = self.blocks.len();
        self.latest = Some(skip);
        self.recent = [NO_BLOCK; MOST_BLOCKS];
        true
    }

    /// Nothing is added to the latest segment any more.
    fn close(&mut self) {
        let blocks = self.blocks.len();
        self.all.extend(self.latest.take().map(|skip| Segment { skip, blocks }));
    }

    /// The records that can be skipped, in their order. `loud` has for each page, by its index, a bit for each block that holds a
    /// word which cannot be left out.
    pub(super) fn finish(mut self, loud: &[u8]) -> Vec<Skip> {
        self.close();
        let mut skips: Vec<Skip> = Vec::new();
        let mut from = 0;
        let is_loud = |block: BlockId| {
            loud.get(block as usize / 8).is_some_and(|bits| bits >> (block % 8) & 1 != 0)
        };
        for Segment { skip, blocks } in self.all {
            let is_quiet = !self.blocks[from..blocks].iter().any(|&block| is_loud(block));
            from = blocks;
            if is_quiet && !skips.last_mut().is_some_and(|latest| latest.joins(&skip)) {
                skips.push(skip);
            }
        }
        skips.retain(|skip| skip.count >= LEAST_SKIPPED);
        skips
    }
}
