//! A native trace in a file, with random access and for several threads at once.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use foresee_trace::{
    Batch, ErrorKind, Event, EventSource, Names, Op, Pool, Position, ReadError, Remarks, ThreadId,
    Trace,
};

use super::frame::{
    FrameHeader, HEADER, Kind, damaged, decode_file_header, read_full, read_remarks, u32_at, u64_at,
};
use super::names::read_names;
use super::reader::NativeSource;
use super::record::Decoder;
use super::stacks::{CALLS, read_calls};
use super::writer::Entry;

/// The end mark: a frame with the offset of the index.
const END: u64 = HEADER as u64 + 8;

/// Events that can be decoded independently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The number of the first event.
    pub first: u64,
    /// The number of events.
    pub count: u32,
    /// The offset of the payload in the file.
    offset: u64,
    /// The number of payload bytes that hold complete records.
    length: u32,
    /// `None` if the frame is cut off, so that its checksum is meaningless.
    crc: Option<u32>,
}

/// A native trace in a file, with random access.
pub struct Indexed {
    file: File,
    blocks: Vec<Block>,
    names: Names,
    remarks: Remarks,
    /// All complete frames with names and events.
    pub(super) entries: Vec<Entry>,
}

impl Indexed {
    /// Opens a file. Uses its index or, if there is none, for example after a crash, the headers of
    /// all frames.
    pub fn open(path: &Path) -> Result<Indexed, ReadError> {
        let file = File::open(path).map_err(|error| {
            let message = format!("cannot open {}: {error}", path.display());
            ReadError::new(ErrorKind::Io, Position::Unknown, message)
        })?;
        Indexed::from_file(file)
    }

    pub(super) fn from_file(file: File) -> Result<Indexed, ReadError> {
        let size = file.metadata()?.len();
        let mut header = [0; HEADER];
        let have = read_full(&mut Section::new(&file, 0, size), &mut header)?;
        let order = decode_file_header(&header[..have])?;
        let mut indexed = Indexed {
            file,
            blocks: Vec::new(),
            names: Names::default(),
            remarks: Remarks { order, ..Remarks::default() },
            entries: Vec::new(),
        };
        match indexed.index_offset(size) {
            Some(offset) => indexed.read_index(offset)?,
            None => indexed.scan(size)?,
        }
        Ok(indexed)
    }

    /// The number of events.
    pub fn events(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.first + u64::from(block.count))
    }

    /// The independently decodable blocks, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// All names.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What else is known.
    pub fn remarks(&self) -> &Remarks {
        &self.remarks
    }

    /// Decodes a block; its events replace those of `batch`.
    ///
    /// # Panics
    /// If there is no block `i`.
    pub fn read_block(&self, i: usize, batch: &mut Batch) -> Result<(), ReadError> {
        self.decode_block(&self.blocks[i], &Decoder::new(&self.names), &mut Vec::new(), batch)
    }

    /// The events from number `event` on.
    pub fn seek(&self, event: u64) -> Result<Box<dyn EventSource + '_>, ReadError> {
        let i = self.blocks.partition_point(|b| b.first + u64::from(b.count) <= event);
        let Some(block) = self.blocks.get(i) else {
            let (names, remarks) = (self.names.clone(), self.remarks.clone());
            return Ok(Box::new(NativeSource::at_end(names, remarks)));
        };
        let start = block.offset - HEADER as u64;
        let size = self.file.metadata()?.len();
        let input = Box::new(Section::new(&self.file, start, size));
        let (names, remarks) = (self.names.clone(), self.remarks.clone());
        let mut source = NativeSource::resume(input, start, names, remarks, block.first);
        source.skip_events((event - block.first) as usize)?;
        Ok(Box::new(source))
    }

    /// Decodes everything, on up to `threads` threads.
    pub fn load_parallel(&self, threads: usize) -> Result<Trace, ReadError> {
        let total = usize::try_from(self.events())
            .map_err(|_| ReadError::new(ErrorKind::Limit, Position::Unknown, "too many events"))?;
        let filler = Event::new(ThreadId(0), Op::ThreadBegin);
        let mut trace = Trace {
            events: vec![filler; total],
            pool: Pool::default(),
            names: self.names.clone(),
            remarks: self.remarks.clone(),
            stacks: Vec::new(),
        };
        let share = self.blocks.len().div_ceil(threads.max(1)).max(1);
        let parts: Vec<Result<Pool, ReadError>> = std::thread::scope(|scope| {
            let mut rest = trace.events.as_mut_slice();
            let mut workers = Vec::new();
            for blocks in self.blocks.chunks(share) {
                let (mine, others) = rest.split_at_mut(count_of(blocks));
                rest = others;
                workers.push(scope.spawn(|| self.load_blocks(blocks, mine)));
            }
            let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            workers.into_iter().map(join).collect()
        });
        let mut rest = trace.events.as_mut_slice();
        for (part, blocks) in parts.into_iter().zip(self.blocks.chunks(share)) {
            let (mine, others) = rest.split_at_mut(count_of(blocks));
            trace.pool.append(&part?, mine);
            rest = others;
        }
        Ok(trace)
    }

    /// Decodes some blocks to their position in the trace; returns the values in a pool.
    fn load_blocks(&self, blocks: &[Block], mut out: &mut [Event]) -> Result<Pool, ReadError> {
        let decoder = Decoder::new(&self.names);
        let (mut pool, mut buffer, mut batch) = (Pool::default(), Vec::new(), Batch::default());
        for block in blocks {
            self.decode_block(block, &decoder, &mut buffer, &mut batch)?;
            pool.append(&batch.pool, &mut batch.events);
            let (mine, others) = out.split_at_mut(batch.events.len());
            mine.copy_from_slice(&batch.events);
            out = others;
        }
        Ok(pool)
    }

    fn decode_block(
        &self,
        block: &Block,
        decoder: &Decoder,
        buffer: &mut Vec<u8>,
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        batch.clear();
        self.read_at(block.offset, block.length, buffer)?;
        let header_at = block.offset - HEADER as u64;
        if block.crc.is_some_and(|crc| crc != crc32fast::hash(buffer)) {
            return Err(damaged(header_at, "the frame is damaged (its checksum is wrong)"));
        }
        if buffer.len() < 8 || u64_at(buffer, 0) != block.first {
            return Err(damaged(block.offset, "the index does not match the events"));
        }
        let mut at = 8;
        let result = decoder.decode(buffer, &mut at, block.count as usize, usize::MAX, batch);
        let place = block.offset + at as u64;
        result.map_err(|bad| damaged(place, bad.message()))?;
        match at == buffer.len() {
            true => Ok(()),
            false => Err(damaged(place, "bytes are left over after the last record of a frame")),
        }
    }

    fn read_at(&self, offset: u64, length: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.clear();
        let mut section = Section::new(&self.file, offset, offset + u64::from(length));
        section.read_to_end(buffer)?;
        match buffer.len() == length as usize {
            true => Ok(()),
            false => Err(damaged(offset, "the file ends inside a frame")),
        }
    }

    fn header_at(&self, offset: u64) -> Result<FrameHeader, ReadError> {
        let mut bytes = [0; HEADER];
        let mut section = Section::new(&self.file, offset, offset + HEADER as u64);
        match read_full(&mut section, &mut bytes)? {
            HEADER => FrameHeader::decode(&bytes, offset),
            _ => Err(damaged(offset, "a frame header is cut off")),
        }
    }

    /// The offset of the index, if the file has an end mark with it.
    fn index_offset(&self, size: u64) -> Option<u64> {
        let end = size.checked_sub(END).filter(|&end| end >= HEADER as u64)?;
        let header = self.header_at(end).ok().filter(|h| h.kind == Kind::End && h.length == 8)?;
        let mut payload = Vec::new();
        self.read_at(end + HEADER as u64, 8, &mut payload).ok()?;
        header.check(&payload, end).ok()?;
        Some(u64_at(&payload, 0)).filter(|&offset| offset != 0)
    }

    /// Loads the index. Its entries must follow each other without a gap, so that it cannot omit
    /// anything.
    fn read_index(&mut self, offset: u64) -> Result<(), ReadError> {
        let misfit = || damaged(offset, "the index does not match the file");
        let header = self.header_at(offset)?;
        let mut payload = Vec::new();
        self.read_at(offset + HEADER as u64, header.length, &mut payload)?;
        header.check(&payload, offset)?;
        let entries = payload.chunks_exact(Entry::BYTES);
        if header.kind != Kind::Index || entries.len() != header.count as usize {
            return Err(misfit());
        }
        let mut next = HEADER as u64;
        for entry in entries {
            let (at, length) = (u64_at(entry, 0), u32_at(entry, 20));
            if at != next {
                return Err(misfit());
            }
            next += HEADER as u64 + u64::from(length);
            let header = self.header_at(at)?;
            if (header.kind.code(), header.count, header.length)
                != (entry[24], u32_at(entry, 16), length)
            {
                return Err(misfit());
            }
            self.add_frame(at, &header)?;
        }
        if next == offset { Ok(()) } else { Err(misfit()) }
    }

    /// Reads all frames up to the end mark, or as far as they are complete.
    fn scan(&mut self, size: u64) -> Result<(), ReadError> {
        let mut at = HEADER as u64;
        loop {
            let mut bytes = [0; HEADER];
            let have = read_full(&mut Section::new(&self.file, at, size), &mut bytes)?;
            if have < HEADER || bytes == [0; HEADER] {
                break;
            }
            let header = FrameHeader::decode(&bytes, at)?;
            let next = at + HEADER as u64 + u64::from(header.length);
            if next > size {
                self.add_torn_frame(at, &header, size)?;
                break;
            }
            if header.kind == Kind::End {
                return if next == size {
                    Ok(())
                } else {
                    Err(damaged(next, "there are bytes after the end mark"))
                };
            }
            self.add_frame(at, &header)?;
            at = next;
        }
        self.remarks.cut_short =
            Some("the end mark is missing: the writer was stopped or is still running".into());
        Ok(())
    }

    fn add_frame(&mut self, at: u64, header: &FrameHeader) -> Result<(), ReadError> {
        let offset = at + HEADER as u64;
        let mut payload = Vec::new();
        let (mut first, mut namespace) = (0, 0);
        match header.kind {
            Kind::Names | Kind::Remarks => {
                self.read_at(offset, header.length, &mut payload)?;
                header.check(&payload, at)?;
                if header.kind == Kind::Remarks {
                    return read_remarks(&payload, offset, &mut self.remarks);
                }
                read_names(&payload, header.count, offset, &mut self.names)?;
                (first, namespace) = (u64::from(u32_at(&payload, 4)), payload[0]);
            }
            Kind::Events => {
                first = self.events();
                // An event takes at least two bytes, so the file bounds later allocations.
                if u64::from(header.length) < 8 + 2 * u64::from(header.count) {
                    return Err(damaged(at, "a frame is too short for its events"));
                }
                let Some(block) = Block::new(first, at, header) else { return Ok(()) };
                self.blocks.push(block);
            }
            CALLS => {
                self.read_at(offset, header.length, &mut payload)?;
                header.check(&payload, at)?;
                first = self.names.stacks.len() as u64;
                read_calls(&payload, header.count, offset, &mut self.names)?;
            }
            Kind::Index | Kind::End | Kind::Optional(_) => {}
        }
        self.entries.push(Entry {
            offset: at,
            first,
            count: header.count,
            length: header.length,
            kind: header.kind.code(),
            namespace,
        });
        Ok(())
    }

    /// Adds the complete records of a frame that is cut off.
    fn add_torn_frame(
        &mut self,
        at: u64,
        header: &FrameHeader,
        size: u64,
    ) -> Result<(), ReadError> {
        let offset = at + HEADER as u64;
        let have = (size - offset) as u32;
        if header.kind != Kind::Events || have < 8 {
            return Ok(());
        }
        let mut payload = Vec::new();
        self.read_at(offset, have, &mut payload)?;
        let first = self.events();
        if u64_at(&payload, 0) != first {
            return Err(damaged(offset, format!("events do not continue with number {first}")));
        }
        let (mut whole, mut batch) = (8, Batch::default());
        let decoder = Decoder::new(&self.names);
        // The error is at the point where the file was cut off.
        let _ = decoder.decode(&payload, &mut whole, header.count as usize, usize::MAX, &mut batch);
        let (count, length) = (batch.events.len() as u32, whole as u32);
        if count > 0 {
            self.blocks.push(Block { first, count, offset, length, crc: None });
        }
        Ok(())
    }

    /// The last block's records, if its frame is cut off.
    pub(super) fn torn_records(&self) -> Result<Option<(Vec<u8>, u32)>, ReadError> {
        let Some(block) = self.blocks.last().filter(|block| block.crc.is_none()) else {
            return Ok(None);
        };
        let mut payload = Vec::new();
        self.read_at(block.offset, block.length, &mut payload)?;
        Ok(Some((payload.split_off(8), block.count)))
    }

    pub(super) fn into_parts(self) -> (File, Names, Remarks, Vec<Entry>) {
        (self.file, self.names, self.remarks, self.entries)
    }
}

impl Block {
    fn new(first: u64, at: u64, header: &FrameHeader) -> Option<Block> {
        (header.count > 0).then_some(Block {
            first,
            count: header.count,
            offset: at + HEADER as u64,
            length: header.length,
            crc: Some(header.crc),
        })
    }
}

fn count_of(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.count as usize).sum()
}

/// A section of a file, read without moving the file's cursor, which other readers share.
struct Section<'f> {
    file: &'f File,
    at: u64,
    end: u64,
}

impl<'f> Section<'f> {
    fn new(file: &'f File, at: u64, end: u64) -> Self {
        Section { file, at, end }
    }
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (self.end.saturating_sub(self.at)).min(buffer.len() as u64) as usize;
        #[cfg(unix)]
        let n = std::os::unix::fs::FileExt::read_at(self.file, &mut buffer[..most], self.at)?;
        #[cfg(windows)]
        let n = std::os::windows::fs::FileExt::seek_read(self.file, &mut buffer[..most], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
