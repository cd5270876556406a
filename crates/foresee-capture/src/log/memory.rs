//! Memory as variables, and their values.
//!
//! Programs access memory in overlapping pieces: a structure is copied as a whole and read field by
//! field. Causality is defined on variables, so memory is divided into *cells* such that every
//! access consists of whole cells: at every byte where some access of the run begins or ends and,
//! if a type is known, along its scalars. Two threads that access different bytes of one scalar do
//! not conflict, so it is divided, too; only variables of a specification stay whole, because their
//! values are needed.
//!
//! A cell never crosses eight aligned bytes, with one exception: buffers that are only written as a whole. What lies
//! between two places where writes begin or end is then one *wide* cell, however long it is: every read of a part of it
//! conflicts with the same writes, and sees the same one, as a read of any other part. That holds if all its writes were
//! seen. If not, it is one cell only as far as reads cover it, too; a hash of its bytes then shows whether it has changed.

use std::hash::BuildHasher;

use super::Piece;
use super::pages::Pages;
use foldhash::quality::FixedState;
use foresee_trace::{Value, VarId};

use crate::symbols::{Kind, Scalar};

/// Where accesses begin and end: for each eight bytes, a bit for each byte at which one begins.
#[derive(Debug, Default)]
pub(super) struct Boundaries {
    starts: Pages<u8>,
    /// Whether they also show wide cells: the lowest bit is then set where a cell begins, and clear within.
    has_wide: bool,
}

/// The maximum number of granules after the first of a wide cell.
const MOST_INSIDE: usize = 1 << 24;

impl Boundaries {
    /// Those that a pass over the log has found; for wide cells, it must have been a complete one.
    pub(super) fn new(starts: Pages<u8>, has_wide: bool) -> Boundaries {
        Boundaries { starts, has_wide }
    }

    fn set(&mut self, address: u64) {
        if !address.is_multiple_of(8) {
            *self.starts.entry(address) |= 1 << (address & 7);
        }
    }

    /// Adds an access.
    pub(super) fn add(&mut self, address: u64, size: u64) {
        self.set(address);
        self.set(address.wrapping_add(size));
    }

    /// Adds an access of some of eight bytes.
    pub(super) fn add_mask(&mut self, address: u64, mask: u8) {
        for i in 1..8 {
            if (mask >> i ^ mask >> (i - 1)) & 1 != 0 {
                self.set(address + i);
            }
        }
    }

    fn of(&self, address: u64) -> u8 {
        self.starts.get(address).map_or(0, |starts| *starts) | 1
    }

    /// The size of the wide cell that begins at an aligned address; eight if none does.
    fn width(&self, address: u64) -> u32 {
        if !self.has_wide || self.starts.get(address) != Some(&1) {
            return 8;
        }
        let rest = (address..u64::MAX).step_by(8).skip(1);
        let inside = rest.take_while(|&at| self.starts.get(at) == Some(&0)).take(MOST_INSIDE);
        8 + 8 * inside.count() as u32
    }

    /// Where the wide cell begins that contains an aligned address; the address itself if none does.
    pub(super) fn start(&self, address: u64) -> u64 {
        if !self.has_wide || self.starts.get(address) != Some(&0) {
            return address;
        }
        let mut start = address;
        while self.starts.get(start) == Some(&0) && start >= 8 {
            start -= 8;
        }
        start
    }
}

/// The number of no variable.
const NO_VARIABLE: u32 = u32::MAX;

/// The state of eight aligned bytes. There is one for all memory that is kept, so it is small.
#[derive(Clone, Debug)]
pub(super) struct Granule {
    /// The bytes at which cells begin.
    starts: u8,
    /// Which bytes are known.
    known: u8,
    /// The bytes, the first of them lowest.
    bytes: u64,
    /// When each cell was last known, by its first byte.
    seen: [u32; 8],
    /// The cells that have been accessed, by their first bytes.
    touched: u8,
    /// The variables of cells, by their first byte; [`NO_VARIABLE`] if they have none yet.
    vars: [u32; 8],
    /// How to read the cells whose types are known: those are as large as their types.
    kinds: [Option<Kind>; 8],
    /// The cells that are written unseen at some time, by their first bytes.
    pub(super) unseen: u8,
    /// Whether it was freed: libc may then write anything there.
    pub(super) is_freed: bool,
    /// How many bytes it stands for, more than eight if it is a wide cell, and where they begin.
    pub(super) width: u32,
    pub(super) start: u64,
}

/// A piece of memory that is one variable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) offset: u8,
    pub(super) size: u8,
}

impl Cell {
    fn mask(self) -> u8 {
        (((1u32 << self.size) - 1) << self.offset) as u8
    }
}

impl Granule {
    pub(super) fn new(
        address: u64,
        boundaries: &Boundaries,
        mut scalar: impl FnMut(u64) -> Option<Piece>,
    ) -> Granule {
        let mut starts = boundaries.of(address);
        let width = boundaries.width(address);
        let mut kinds = [None; 8];
        let mut at = if width > 8 { 8 } else { 0 };
        while at < 8 {
            match scalar(address + at) {
                Some(Piece { start, kind, is_whole })
                    if start >= address && kind.size > 0 && start + kind.size <= address + 8 =>
                {
                    let (offset, end) = (start - address, start - address + kind.size);
                    let inner = ((1u32 << end) - (2u32 << offset)) as u8;
                    if is_whole || starts & inner == 0 {
                        starts &= !inner;
                        kinds[offset as usize] = Some(kind.kind);
                    }
                    starts |= 1 << offset | (1u32 << end) as u8;
                    at = end;
                }
                _ => at += 1,
            }
        }
        let (bytes, seen) = (0, [0; 8]);
        let vars = [NO_VARIABLE; 8];
        let (known, touched, unseen, is_freed) = (0, 0, 0, false);
        Granule {
            starts,
            known,
            bytes,
            seen,
            touched,
            vars,
            kinds,
            unseen,
            is_freed,
            width,
            start: address,
        }
    }

    /// Sets the bytes, known since the given time; a wide cell consists of zeros.
    pub(super) fn holding(mut self, (bytes, since): ([u8; 8], u32)) -> Granule {
        let bytes = match self.width {
            8 => u64::from_le_bytes(bytes),
            width => wide(&vec![0; width as usize]),
        };
        (self.known, self.bytes, self.seen) = (0xff, bytes, [since; 8]);
        self
    }

    /// Whether a cell is written unseen at some time.
    pub(super) fn is_written_unseen(&self, cell: Cell) -> bool {
        self.unseen >> cell.offset & 1 != 0
    }

    /// The variable of a cell, if it has one yet.
    pub(super) fn var(&self, cell: Cell) -> Option<VarId> {
        let var = self.vars[usize::from(cell.offset)];
        (var != NO_VARIABLE).then_some(VarId(var))
    }

    /// Sets the variable of a cell.
    pub(super) fn set_var(&mut self, cell: Cell, var: VarId) {
        self.vars[usize::from(cell.offset)] = var.0;
    }

    /// When a cell was last known, and whether it was touched then.
    pub(super) fn last_known(&self, cell: Cell) -> (u32, bool) {
        let at = usize::from(cell.offset);
        (self.seen[at], self.touched >> at & 1 != 0)
    }

    /// Whether a cell has been accessed.
    pub(super) fn is_touched(&self, cell: Cell) -> bool {
        self.last_known(cell).1
    }

    /// The bytes in `mask` of a cell are known now. If that is only a part of the cell, the rest
    /// was known before.
    pub(super) fn saw(&mut self, cell: Cell, mask: u8, now: u32) {
        let at = usize::from(cell.offset);
        if mask & cell.mask() == cell.mask() {
            self.seen[at] = now;
        }
        self.touched |= 1 << at;
    }

    /// The cells that an access of the bytes in `mask` touches.
    pub(super) fn cells(&self, mask: u8) -> impl Iterator<Item = Cell> + use<> {
        let starts = self.starts;
        (0..8u8)
            .filter(move |i| starts >> i & 1 != 0)
            .map(move |offset| {
                let rest = u32::from(starts) >> (offset + 1);
                let size = if rest == 0 { 8 - offset } else { rest.trailing_zeros() as u8 + 1 };
                Cell { offset, size }
            })
            .filter(move |cell| cell.mask() & mask != 0)
    }

    /// Takes over the bytes in `mask`.
    #[inline]
    pub(super) fn learn(&mut self, mask: u8, bytes: u64) {
        let learnt = bytes_of(mask);
        self.bytes = self.bytes & !learnt | bytes & learnt;
        self.known |= mask;
    }

    /// Whether the bytes of a cell in `mask` are known to differ from `bytes`.
    #[inline]
    pub(super) fn differs(&self, cell: Cell, mask: u8, bytes: u64) -> bool {
        (self.bytes ^ bytes) & bytes_of(mask & cell.mask() & self.known) != 0
    }

    /// Forgets the bytes in `mask`.
    pub(super) fn doubt(&mut self, mask: u8) {
        self.known &= !mask;
    }

    /// The value of a cell; a wide one has none.
    pub(super) fn value(&self, cell: Cell) -> Option<Value> {
        if self.width > 8 || self.known & cell.mask() != cell.mask() {
            return None;
        }
        let bits = (self.bytes & bytes_of(cell.mask())) >> (8 * cell.offset);
        match self.kinds[usize::from(cell.offset)] {
            Some(kind) => Scalar::new(kind, u64::from(cell.size)).value(bits),
            None => Some(Value::from_u64(bits)),
        }
    }
}

/// What stands for the bytes of a wide cell.
pub(super) fn wide(bytes: &[u8]) -> u64 {
    FixedState::default().hash_one(bytes)
}

/// All bits of the bytes in a mask.
#[inline]
pub(super) fn bytes_of(mask: u8) -> u64 {
    // Each bit of the mask becomes the lowest bit of a byte.
    let spread = (u64::from(mask & 0x7f) * 0x0002_0408_1020_4081) & 0x0101_0101_0101_0101;
    (spread | u64::from(mask >> 7) << 56) * 0xff
}

/// All memory that has been accessed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The number of each granule, counted from one.
    numbers: Pages<u32>,
    granules: Vec<Granule>,
    /// Numbers that are not in use any more.
    spare: Vec<u32>,
}

/// The number of a granule, as long as its memory has the same life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GranuleId(u32);

impl Memory {
    /// The eight bytes at an aligned address; `new` returns them as they are before the first access.
    #[inline]
    pub(super) fn find(&mut self, address: u64, new: impl FnOnce() -> Granule) -> GranuleId {
        let number = self.numbers.entry(address);
        if *number == 0 {
            let granule = new();
            match self.spare.pop() {
                Some(spare) => {
                    *number = spare;
                    self.granules[spare as usize - 1] = granule;
                }
                None => {
                    self.granules.push(granule);
                    *number = self.granules.len() as u32;
                }
            }
            let number = *number;
            let Granule { start, width, .. } = self.granules[number as usize - 1];
            for inside in (start..start.saturating_add(u64::from(width))).step_by(8) {
                *self.numbers.entry(inside) = number;
            }
            return GranuleId(number - 1);
        }
        GranuleId(*number - 1)
    }

    /// The eight bytes that contain an address, if they have been accessed in their current life.
    #[inline]
    pub(super) fn known(&mut self, address: u64) -> Option<GranuleId> {
        self.numbers.entry(address).checked_sub(1).map(GranuleId)
    }

    /// The granule with this number.
    #[inline]
    pub(super) fn at(&mut self, id: GranuleId) -> &mut Granule {
        &mut self.granules[id.0 as usize]
    }

    /// The approximate size of all this in bytes.
    pub(super) fn weight(&self) -> usize {
        // The table has room for more, and grows into a new one.
        2 * self.granules.len() * size_of::<Granule>() + self.numbers.weight()
    }

    /// Whether a range of memory has a variable.
    pub(super) fn has_variables(&mut self, address: u64, size: u64) -> bool {
        let Memory { numbers, granules, .. } = self;
        let has = |granule: &Granule| granule.vars.iter().any(|&var| var != NO_VARIABLE);
        let mut is_any = false;
        numbers.within(address, size, |&mut number| {
            is_any |= number != 0 && has(&granules[number as usize - 1]);
        });
        is_any
    }

    /// A range of memory is freed, together with its variables. Their contents are unknown from now
    /// on.
    pub(super) fn free(&mut self, address: u64, size: u64) {
        let Memory { numbers, granules, .. } = self;
        numbers.within(address, size, |&mut number| {
            if number != 0 {
                granules[number as usize - 1].is_freed = true;
            }
        });
    }

    /// Begins a new life of a range of memory.
    pub(super) fn renew(&mut self, address: u64, size: u64) {
        let Memory { numbers, spare, .. } = self;
        let mut latest = 0;
        numbers.within(address, size, |number| {
            // All of a wide cell has one number.
            let ended = std::mem::take(number);
            if ended != 0 && ended != latest {
                spare.push(ended);
                latest = ended;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_renewed_is_handed_out_once() {
        // A wide cell across the end of each of many pages, and a small one in the middle of each.
        const PAGES: u64 = 40;
        let mut starts = Pages::default();
        for page in 1..PAGES {
            let mut words = [1; super::super::pages::PER_PAGE];
            words[..100].fill(0);
            words[401..].fill(0);
            *starts.page(page) = words;
        }
        let boundaries = Boundaries::new(starts, true);
        let mut memory = Memory::default();
        let find = |memory: &mut Memory, address: u64| {
            let start = boundaries.start(address);
            memory.find(address, || Granule::new(start, &boundaries, |_| None))
        };
        let addresses: Vec<u64> = (1..PAGES - 1)
            .flat_map(|page| [(page << 12) + 8 * 400, (page << 12) + 8 * 200])
            .collect();
        for round in 0..2 {
            let mut ids: Vec<u32> = addresses.iter().map(|&at| find(&mut memory, at).0).collect();
            assert_eq!(memory.granules[ids[0] as usize].width, 8 * 212);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), addresses.len(), "round {round}");
            // More pages than there are: they are not looked up one by one.
            memory.renew(0, 1 << 30);
        }
    }
}
