//! The outer layer of an index: pages, each with its own checksum.
//!
//! A query touches a few dozen pages of a file that may have gigabytes. Reading the whole file to
//! validate it would be too slow, but every byte that is used must be checked. So pages are read on
//! demand, checked once, and kept in a small cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use crate::error::IndexError;

/// The length of a page in the file.
pub(crate) const PAGE: usize = 4096;
/// The number of content bytes of a page; its checksum follows.
pub(crate) const CONTENT: usize = PAGE - 4;

/// The checksum of a page includes its number, so that pages cannot be swapped.
fn checksum(content: &[u8], number: u64) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(content);
    crc.update(&number.to_le_bytes());
    crc.finalize()
}

/// Writes content page by page; the first page is written last.
pub(crate) struct PageWriter<W> {
    out: W,
    page: Vec<u8>,
    /// The number of the page being filled.
    number: u64,
}

impl<W: Write + Seek> PageWriter<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&[0; PAGE])?;
        Ok(PageWriter { out, page: Vec::with_capacity(PAGE), number: 1 })
    }

    /// The offset of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.number * CONTENT as u64 + self.page.len() as u64
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = bytes.len().min(CONTENT - self.page.len());
            self.page.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.page.len() == CONTENT {
                self.flush_page()?;
            }
        }
        Ok(())
    }

    fn flush_page(&mut self) -> io::Result<()> {
        self.page.resize(CONTENT, 0);
        let crc = checksum(&self.page, self.number);
        self.page.extend_from_slice(&crc.to_le_bytes());
        self.out.write_all(&self.page)?;
        self.page.clear();
        self.number += 1;
        Ok(())
    }

    /// Writes the last page, and then the first with the content that `first` returns for the
    /// number of pages.
    pub(crate) fn finish(mut self, first: impl FnOnce(u64) -> Vec<u8>) -> io::Result<W> {
        if !self.page.is_empty() {
            self.flush_page()?;
        }
        let mut page = first(self.number);
        debug_assert!(page.len() <= CONTENT);
        page.resize(CONTENT, 0);
        page.extend_from_slice(&checksum(&page, 0).to_le_bytes());
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&page)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Random access to bytes.
pub trait ReadAt {
    /// Fills `buffer` with the bytes at `offset`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    /// The number of bytes.
    fn size(&self) -> io::Result<u64>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        io::Read::read_exact(&mut file, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start.checked_add(buffer.len()).and_then(|end| self.get(start..end));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// The maximum number of cached pages: 32 MiB.
const KEPT: u64 = 8192;

/// Pages that are read on demand.
#[derive(Debug)]
pub(crate) struct Pages<S> {
    source: S,
    count: u64,
    /// Page `n` is cached at `n % KEPT`, with its number.
    kept: Vec<Option<(u64, Box<[u8; PAGE]>)>>,
}

impl<S: ReadAt> Pages<S> {
    /// The pages of a file, of which only the length has been checked.
    pub(crate) fn new(source: S) -> Result<Self, IndexError> {
        let length = source.size()?;
        let count = length / PAGE as u64;
        if count == 0 || length % PAGE as u64 != 0 {
            return Err(IndexError::Damaged {
                at: length,
                what: "the file ends in the middle of a page",
            });
        }
        let kept = (0..count.min(KEPT)).map(|_| None).collect();
        Ok(Pages { source, count, kept })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    pub(crate) fn forget(&mut self) {
        self.kept.fill_with(|| None);
    }

    /// The content of a page.
    #[inline]
    fn page(&mut self, number: u64) -> Result<&[u8], IndexError> {
        let slot = (number % KEPT) as usize;
        let is_kept = matches!(self.kept.get(slot), Some(Some((kept, _))) if *kept == number);
        if !is_kept {
            self.fetch(number)?;
        }
        match &self.kept[slot] {
            Some((_, page)) => Ok(&page[..CONTENT]),
            None => unreachable!("the page has just been fetched"),
        }
    }

    #[cold]
    fn fetch(&mut self, number: u64) -> Result<(), IndexError> {
        let at = number.saturating_mul(PAGE as u64);
        if number >= self.count {
            return Err(IndexError::Damaged {
                at,
                what: "an offset is beyond the end of the file",
            });
        }
        let kept = &mut self.kept[(number % KEPT) as usize];
        let mut page = match kept.take() {
            Some((_, page)) => page,
            None => Box::new([0; PAGE]),
        };
        self.source.read_exact_at(&mut page[..], at)?;
        let crc = [page[CONTENT], page[CONTENT + 1], page[CONTENT + 2], page[CONTENT + 3]];
        if u32::from_le_bytes(crc) != checksum(&page[..CONTENT], number) {
            return Err(IndexError::Damaged { at, what: "the checksum of a page is wrong" });
        }
        *kept = Some((number, page));
        Ok(())
    }

    /// Replaces `out` with the content at `offset`.
    #[inline]
    pub(crate) fn read(
        &mut self,
        offset: u64,
        length: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), IndexError> {
        out.clear();
        // Checked before allocation: the length may be invalid.
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > self.count * CONTENT as u64) {
            return Err(damaged(offset, "an offset is beyond the end of the file"));
        }
        out.resize(length as usize, 0);
        self.copy(offset, out)
    }

    /// Fills `out` with the content at `offset`.
    #[inline]
    pub(crate) fn copy(&mut self, offset: u64, out: &mut [u8]) -> Result<(), IndexError> {
        let (mut at, mut done) = (offset, 0);
        while done < out.len() {
            let start = (at % CONTENT as u64) as usize;
            let n = (out.len() - done).min(CONTENT - start);
            let page = self.page(at / CONTENT as u64)?;
            out[done..done + n].copy_from_slice(&page[start..start + n]);
            at = at.saturating_add(n as u64);
            done += n;
        }
        Ok(())
    }

    /// The 8-byte numbers at `offset`.
    #[inline]
    pub(crate) fn words<const N: usize>(&mut self, offset: u64) -> Result<[u64; N], IndexError> {
        let start = (offset % CONTENT as u64) as usize;
        let mut words = [0; N];
        if start + 8 * N <= CONTENT {
            let page = self.page(offset / CONTENT as u64)?;
            for (i, word) in words.iter_mut().enumerate() {
                *word = word_at(page, start + 8 * i);
            }
        } else {
            let mut bytes = [0; 64];
            let bytes = &mut bytes[..8 * N];
            self.copy(offset, bytes)?;
            for (i, word) in words.iter_mut().enumerate() {
                *word = word_at(bytes, 8 * i);
            }
        }
        Ok(words)
    }
}

/// The number at an offset that is known to be valid.
#[inline]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// An error in the content at `offset`.
pub(crate) fn damaged(offset: u64, what: &'static str) -> IndexError {
    let at = offset / CONTENT as u64 * PAGE as u64 + offset % CONTENT as u64;
    IndexError::Damaged { at, what }
}
