//! Memory as variables, and their values.
//!
//! Programs access memory in overlapping pieces: a structure is copied as a whole and read field by
//! field. Causality is defined on variables, so memory is divided into *cells* such that every
//! access consists of whole cells: at every byte where some access of the run begins or ends and,
//! if a type is known, along its scalars. Two threads that access different bytes of one scalar do
//! not conflict, so it is divided, too; only variables of a specification stay whole, because their
//! values are needed. A cell never crosses eight aligned bytes.

use super::pages::Pages;
use super::{HashMap, Piece};
use foresee_trace::{Value, VarId};

use crate::symbols::{Kind, Scalar};

/// Where accesses begin and end: for each eight bytes, a bit for each byte at which one begins.
#[derive(Debug, Default)]
pub(super) struct Boundaries {
    starts: Pages<u8>,
}

impl Boundaries {
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
    bytes: [u8; 8],
    /// When each cell was last known, by its first byte.
    seen: [u32; 8],
    /// The cells that have been accessed, by their first bytes.
    touched: u8,
    /// The variables of cells, by their first byte; [`NO_VARIABLE`] if they have none yet.
    vars: [u32; 8],
    /// How to read the cells whose types are known: those are as large as their types.
    kinds: [Option<Kind>; 8],
    /// Whether it was freed: libc may then write anything there.
    pub(super) is_freed: bool,
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
    fn new(
        address: u64,
        boundaries: &Boundaries,
        mut scalar: impl FnMut(u64) -> Option<Piece>,
    ) -> Granule {
        let mut starts = boundaries.of(address);
        let mut kinds = [None; 8];
        let mut at = 0;
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
        let (bytes, seen) = ([0; 8], [0; 8]);
        let vars = [NO_VARIABLE; 8];
        Granule { starts, known: 0, bytes, seen, touched: 0, vars, kinds, is_freed: false }
    }

    /// Sets the bytes, known since the given time.
    fn holding(mut self, (bytes, since): ([u8; 8], u32)) -> Granule {
        (self.known, self.bytes, self.seen) = (0xff, bytes, [since; 8]);
        self
    }

    /// The variable of a cell, if it has one yet.
    pub(super) fn var(&self, cell: Cell) -> Option<VarId> {
        let var = self.vars[usize::from(cell.offset)];
        (var != NO_VARIABLE).then_some(VarId(var))
    }

    /// A cell is this variable.
    pub(super) fn set_var(&mut self, cell: Cell, var: VarId) {
        self.vars[usize::from(cell.offset)] = var.0;
    }

    /// When a cell was last known, and whether it was touched then.
    pub(super) fn last_known(&self, cell: Cell) -> (u32, bool) {
        let at = usize::from(cell.offset);
        (self.seen[at], self.touched >> at & 1 != 0)
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

    /// Takes over the bytes in `mask`; returns whether some of them were known to differ.
    pub(super) fn learn(&mut self, mask: u8, bytes: [u8; 8]) -> bool {
        let mut differs = false;
        for i in (0..8).filter(|i| mask >> i & 1 != 0) {
            differs |= self.known >> i & 1 != 0 && self.bytes[i] != bytes[i];
            self.bytes[i] = bytes[i];
        }
        self.known |= mask;
        differs
    }

    /// Whether the bytes of a cell in `mask` are known to differ from `bytes`.
    pub(super) fn differs(&self, cell: Cell, mask: u8, bytes: [u8; 8]) -> bool {
        let mask = mask & cell.mask() & self.known;
        (0..8).any(|i| mask >> i & 1 != 0 && self.bytes[i] != bytes[i])
    }

    /// Forgets the bytes in `mask`.
    pub(super) fn doubt(&mut self, mask: u8) {
        self.known &= !mask;
    }

    /// The value of a cell.
    pub(super) fn value(&self, cell: Cell) -> Option<Value> {
        if self.known & cell.mask() != cell.mask() {
            return None;
        }
        let mut bits = [0; 8];
        let (from, size) = (usize::from(cell.offset), usize::from(cell.size));
        bits[..size].copy_from_slice(&self.bytes[from..from + size]);
        let bits = u64::from_le_bytes(bits);
        match self.kinds[from] {
            Some(kind) => Scalar::new(kind, size as u64).value(bits),
            None => Some(Value::from_u64(bits)),
        }
    }
}

/// All memory that has been accessed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    granules: HashMap<u64, Granule>,
}

impl Memory {
    /// The eight bytes at an aligned address. `holds` returns their contents before the first
    /// access, and since when.
    pub(super) fn granule(
        &mut self,
        address: u64,
        boundaries: &Boundaries,
        scalar: impl FnMut(u64) -> Option<Piece>,
        holds: impl FnOnce() -> Option<([u8; 8], u32)>,
    ) -> &mut Granule {
        self.granules.entry(address).or_insert_with(|| {
            let granule = Granule::new(address, boundaries, scalar);
            match holds() {
                Some(bytes) => granule.holding(bytes),
                None => granule,
            }
        })
    }

    /// The approximate size of all this in bytes.
    pub(super) fn weight(&self) -> usize {
        // The table has room for more, and grows into a new one.
        2 * self.granules.len() * size_of::<(u64, Granule)>()
    }

    /// Whether a range of memory has a variable.
    pub(super) fn has_variables(&self, address: u64, size: u64) -> bool {
        let has = |granule: &Granule| granule.vars.iter().any(|&var| var != NO_VARIABLE);
        let end = address.saturating_add(size);
        if (size / 8) as usize > self.granules.len() {
            self.granules.iter().any(|(&at, granule)| at + 8 > address && at < end && has(granule))
        } else {
            (address & !7..end).step_by(8).any(|at| self.granules.get(&at).is_some_and(has))
        }
    }

    /// A range of memory is freed, together with its variables. Their contents are unknown from now
    /// on.
    pub(super) fn free(&mut self, address: u64, size: u64) {
        for at in (address & !7..address.saturating_add(size)).step_by(8) {
            if let Some(granule) = self.granules.get_mut(&at) {
                granule.is_freed = true;
            }
        }
    }

    /// Begins a new life of a range of memory.
    pub(super) fn renew(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        if (size / 8) as usize > self.granules.len() {
            self.granules.retain(|&at, _| at + 8 <= address || at >= end);
        } else {
            for at in (address & !7..end).step_by(8) {
                self.granules.remove(&at);
            }
        }
    }
}
