//! Sorted lists of numbers: one or two bytes per number, and a search that reads one block.
//!
//! A list has one or two columns, both ascending. Entries are differences in blocks of [`BLOCK`].
//! After the last block, a skip table has for each block but the first the last entry before it and
//! its offset, so that a binary search finds the one block to decode.

use std::io::{self, Seek, Write};

use foresee_trace::varint::{push_varint, varint};

use crate::error::IndexError;
use crate::page::{PageWriter, Pages, ReadAt, damaged};

/// The number of entries of a block.
pub(crate) const BLOCK: u64 = 128;

/// An entry; in a list with one column, the second number is zero.
pub(crate) type Entry = [u64; 2];

/// The bytes of an entry in the skip table, for one or two columns.
fn skip_width(columns: usize) -> u64 {
    8 * (columns as u64 + 1)
}

/// Writes one list.
pub(crate) struct ListWriter {
    columns: usize,
    count: u64,
    last: Entry,
    start: u64,
    block: Vec<u8>,
    skips: Vec<u8>,
}

impl ListWriter {
    pub(crate) fn new(columns: usize) -> ListWriter {
        ListWriter {
            columns,
            count: 0,
            last: [0; 2],
            start: 0,
            block: Vec::new(),
            skips: Vec::new(),
        }
    }

    /// Starts a list at the writer's current offset.
    pub(crate) fn start<W: Write + Seek>(&mut self, out: &PageWriter<W>, columns: usize) {
        (self.columns, self.count, self.last, self.start) = (columns, 0, [0; 2], out.offset());
        self.skips.clear();
    }

    #[inline]
    pub(crate) fn push<W: Write + Seek>(
        &mut self,
        entry: Entry,
        out: &mut PageWriter<W>,
    ) -> io::Result<()> {
        if self.count > 0 && self.count.is_multiple_of(BLOCK) {
            self.flush(out)?;
            for last in &self.last[..self.columns] {
                self.skips.extend_from_slice(&last.to_le_bytes());
            }
            self.skips.extend_from_slice(&(out.offset() - self.start).to_le_bytes());
        }
        for (number, last) in entry.iter().zip(&self.last).take(self.columns) {
            push_varint(number - last, &mut self.block);
        }
        self.last = entry;
        self.count += 1;
        Ok(())
    }

    fn flush<W: Write + Seek>(&mut self, out: &mut PageWriter<W>) -> io::Result<()> {
        out.write(&self.block)?;
        self.block.clear();
        Ok(())
    }

    /// Ends the list; returns the number of its entries and the bytes of its blocks.
    pub(crate) fn finish<W: Write + Seek>(
        &mut self,
        out: &mut PageWriter<W>,
    ) -> io::Result<(u64, u64)> {
        self.flush(out)?;
        let bytes = out.offset() - self.start;
        out.write(&self.skips)?;
        Ok((self.count, bytes))
    }
}

/// A list in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) start: u64,
    pub(crate) count: u64,
    /// The bytes of its blocks.
    pub(crate) bytes: u64,
    pub(crate) columns: usize,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The number of entries before the split.
    pub(crate) index: u64,
    /// The last of them.
    pub(crate) before: Option<Entry>,
    /// The first entry after the split.
    pub(crate) at: Option<Entry>,
}

impl List {
    /// The bytes of blocks and skip table together.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        let skips = (self.count.max(1) - 1) / BLOCK;
        skips.checked_mul(skip_width(self.columns))?.checked_add(self.bytes)
    }

    /// Splits the list at the first entry for which `is_before` is false in a column; it must be
    /// true for all entries before.
    #[inline]
    pub(crate) fn split<S: ReadAt>(
        &self,
        pages: &mut Pages<S>,
        column: usize,
        is_before: impl Fn(u64) -> bool,
    ) -> Result<Found, IndexError> {
        if self.count == 0 {
            return Ok(Found::default());
        }
        // The last block whose predecessor's last entry is still before the split.
        let (mut low, mut high) = (0, (self.count - 1) / BLOCK);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let (last, _) = self.skip(pages, middle)?;
            if is_before(last[column]) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        let mut before = None;
        self.walk(pages, low, |index, entry, previous| {
            if is_before(entry[column]) {
                before = Some(entry);
                return None;
            }
            let before = before.or((index > 0).then_some(previous));
            Some(Found { index, before, at: Some(entry) })
        })
        .map(|found| found.unwrap_or(Found { index: self.count, before, at: None }))
    }

    /// Entry number `index`.
    pub(crate) fn get<S: ReadAt>(
        &self,
        pages: &mut Pages<S>,
        index: u64,
    ) -> Result<Option<Entry>, IndexError> {
        if index >= self.count {
            return Ok(None);
        }
        self.walk(pages, index / BLOCK, |i, entry, _| (i == index).then_some(entry))
    }

    /// Passes the entries of a block, each with its number and its predecessor, to a function until
    /// it returns a result.
    #[inline]
    fn walk<S: ReadAt, T>(
        &self,
        pages: &mut Pages<S>,
        block: u64,
        mut visit: impl FnMut(u64, Entry, Entry) -> Option<T>,
    ) -> Result<Option<T>, IndexError> {
        let blocks = (self.count - 1) / BLOCK;
        let (mut last, from) = if block == 0 { ([0; 2], 0) } else { self.skip(pages, block)? };
        let to = if block == blocks { self.bytes } else { self.skip(pages, block + 1)?.1 };
        let length = to.checked_sub(from).filter(|_| to <= self.bytes);
        let bad = || damaged(self.start, "a list is not sorted");
        // A number has at most ten bytes.
        let length = length.filter(|&l| l <= BLOCK * 20).ok_or_else(bad)?;
        let start = self.start.checked_add(from).ok_or_else(bad)?;
        let mut bytes = [0; BLOCK as usize * 20];
        let bytes = &mut bytes[..length as usize];
        pages.copy(start, bytes)?;
        let mut at = 0;
        for index in block * BLOCK..self.count.min((block + 1) * BLOCK) {
            let mut entry = last;
            for number in &mut entry[..self.columns] {
                let step = varint(bytes, &mut at).ok_or_else(bad)?;
                *number = number.checked_add(step).ok_or_else(bad)?;
            }
            if let Some(answer) = visit(index, entry, last) {
                return Ok(Some(answer));
            }
            last = entry;
        }
        Ok(None)
    }

    /// The last entry before a block, and the offset of the block in the list.
    #[inline]
    fn skip<S: ReadAt>(
        &self,
        pages: &mut Pages<S>,
        block: u64,
    ) -> Result<(Entry, u64), IndexError> {
        let at = (block - 1)
            .checked_mul(skip_width(self.columns))
            .and_then(|at| at.checked_add(self.start)?.checked_add(self.bytes))
            .ok_or_else(|| damaged(self.start, "a list is too long"))?;
        Ok(match self.columns {
            1 => {
                let [a, from] = pages.words(at)?;
                ([a, 0], from)
            }
            _ => {
                let [a, b, from] = pages.words(at)?;
                ([a, b], from)
            }
        })
    }
}
