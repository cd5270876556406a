//! Many lists that grow gradually, in bounded memory.
//!
//! Each list grows in its own buffer. When the buffers together are too large, all of them are
//! written to a temporary file, sorted by key, and cleared; at the end the files are merged, so
//! that the pieces of each list follow each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use foldhash::fast::RandomState;
use foresee_trace::varint::{push_varint, varint};
use hashbrown::HashTable;

use crate::list::Entry;

/// The key of a list: the group, and the index in it.
pub(crate) type Key = (u64, u32);

/// The approximate overhead of a list besides its bytes.
const OVERHEAD: usize = 96;

struct Stream {
    key: Key,
    last: Entry,
    count: u64,
    bytes: Vec<u8>,
}

/// Lists that grow.
pub(crate) struct Streams {
    /// The number of each list; the key is stored beside it, so that a look-up does not touch the
    /// list.
    table: HashTable<(Key, u32)>,
    hasher: RandomState,
    streams: Vec<Stream>,
    used: usize,
    runs: Vec<File>,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams {
            table: HashTable::new(),
            hasher: RandomState::default(),
            streams: Vec::new(),
            used: 0,
            runs: Vec::new(),
        }
    }

    /// The number of a list, until the next [`Streams::spill`].
    #[inline]
    pub(crate) fn id(&mut self, key: Key) -> u32 {
        let Streams { table, hasher, streams, used, .. } = self;
        let hash = hasher.hash_one(key);
        if let Some(&(_, id)) = table.find(hash, |(known, _)| *known == key) {
            return id;
        }
        let id = streams.len() as u32;
        streams.push(Stream { key, last: [0; 2], count: 0, bytes: Vec::new() });
        table.insert_unique(hash, (key, id), |(key, _)| hasher.hash_one(key));
        *used += OVERHEAD;
        id
    }

    /// Adds an entry with this number of columns to a list.
    #[inline]
    pub(crate) fn push(&mut self, id: u32, entry: Entry, columns: usize) {
        let stream = &mut self.streams[id as usize];
        let before = stream.bytes.capacity();
        for (number, last) in entry.iter().zip(&stream.last).take(columns) {
            push_varint(number - last, &mut stream.bytes);
        }
        stream.last = entry;
        stream.count += 1;
        self.used += stream.bytes.capacity() - before;
    }

    /// The number of bytes in use.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Moves everything to a temporary file in a directory. All numbers of lists become invalid.
    pub(crate) fn spill(&mut self, folder: &Path) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, tempfile::tempfile_in(folder)?);
        let mut head = Vec::new();
        for Stream { key, count, bytes, .. } in self.take_sorted() {
            head.clear();
            push_varint(key.0, &mut head);
            push_varint(u64::from(key.1), &mut head);
            push_varint(count, &mut head);
            push_varint(bytes.len() as u64, &mut head);
            // Heads are read whole.
            out.write_all(&[head.len() as u8])?;
            out.write_all(&head)?;
            out.write_all(&bytes)?;
        }
        let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        self.runs.push(file);
        Ok(())
    }

    fn take_sorted(&mut self) -> Vec<Stream> {
        self.table.clear();
        self.used = 0;
        let mut streams = std::mem::take(&mut self.streams);
        streams.sort_unstable_by_key(|stream| stream.key);
        streams
    }

    /// Returns all lists in order, each as its key and its pieces.
    pub(crate) fn merge(mut self) -> io::Result<Merged> {
        let mut runs: Vec<Run> = self.runs.drain(..).map(Run::of_file).collect();
        runs.push(Run::Memory(self.take_sorted().into_iter()));
        let mut heads: Vec<Option<Piece>> = Vec::new();
        let mut next = BinaryHeap::new();
        for (i, run) in runs.iter_mut().enumerate() {
            let piece = run.next()?;
            next.extend(piece.as_ref().map(|piece| Reverse((piece.key, i))));
            heads.push(piece);
        }
        Ok(Merged { runs, heads, next })
    }
}

/// A part of a list.
pub(crate) struct Piece {
    pub(crate) key: Key,
    count: u64,
    bytes: Vec<u8>,
}

impl Piece {
    /// Calls a function with the entries, which have this number of columns.
    pub(crate) fn entries(
        &self,
        columns: usize,
        mut each: impl FnMut(Entry) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut at, mut entry) = (0, [0; 2]);
        for _ in 0..self.count {
            for number in &mut entry[..columns] {
                *number += varint(&self.bytes, &mut at).ok_or_else(spoilt)?;
            }
            each(entry)?;
        }
        Ok(())
    }
}

/// All pieces of all lists, in order.
pub(crate) struct Merged {
    runs: Vec<Run>,
    heads: Vec<Option<Piece>>,
    next: BinaryHeap<Reverse<(Key, usize)>>,
}

impl Merged {
    /// The key of the next piece.
    pub(crate) fn key(&self) -> Option<Key> {
        self.next.peek().map(|Reverse((key, _))| *key)
    }

    /// The next piece. Runs are numbered by age, so the pieces of one list are in order.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        let Some(Reverse((_, i))) = self.next.pop() else { return Ok(None) };
        let piece = self.heads[i].take();
        self.heads[i] = self.runs[i].next()?;
        self.next.extend(self.heads[i].as_ref().map(|piece| Reverse((piece.key, i))));
        Ok(piece)
    }
}

enum Run {
    Memory(std::vec::IntoIter<Stream>),
    File(BufReader<File>),
}

impl Run {
    fn of_file(file: File) -> Run {
        Run::File(BufReader::with_capacity(256 << 10, file))
    }

    fn next(&mut self) -> io::Result<Option<Piece>> {
        let file = match self {
            Run::Memory(streams) => {
                let piece = |Stream { key, count, bytes, .. }| Piece { key, count, bytes };
                return Ok(streams.next().map(piece));
            }
            Run::File(file) => file,
        };
        let mut length = [0];
        if file.read(&mut length)? == 0 {
            return Ok(None);
        }
        let mut head = [0; 255];
        let head = &mut head[..usize::from(length[0])];
        file.read_exact(head)?;
        let mut at = 0;
        let mut number = || varint(head, &mut at).ok_or_else(spoilt);
        let (group, sub, count, length) = (number()?, number()?, number()?, number()?);
        let mut bytes = vec![0; length as usize];
        file.read_exact(&mut bytes)?;
        Ok(Some(Piece { key: (group, sub as u32), count, bytes }))
    }
}

fn spoilt() -> io::Error {
    io::Error::other("a temporary file was modified")
}
