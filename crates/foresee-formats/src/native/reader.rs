//! Reads a native trace sequentially, as far as it is complete.

use std::io::Read;

use foresee_trace::{Batch, ErrorKind, EventSource, Names, Position, ReadError, Remarks};

use super::frame::{
    FrameHeader, HEADER, Kind, damaged, decode_file_header, read_full, read_remarks, u64_at,
};
use super::names::read_names;
use super::record::{BadRecord, Decoder};
use super::stacks::{CALLS, FrameStacks, STACKS, read_calls};
use crate::text::VALUES_PER_BATCH;

/// Memory for a frame is allocated in steps of this size as its bytes arrive, so a damaged or
/// malicious length costs nothing.
const STEP: usize = 1 << 20;

pub(crate) struct NativeSource<'r> {
    input: Box<dyn Read + 'r>,
    /// The offset of the next frame.
    offset: u64,
    names: Names,
    /// All names are known: the source was started in the middle of an indexed file.
    names_known: bool,
    remarks: Remarks,
    decoder: Decoder,
    /// The first `length` bytes are the payload of the current frame.
    buffer: Vec<u8>,
    length: usize,
    payload_offset: u64,
    /// The offsets in it of the next record and of the first record of the latest batch.
    next: usize,
    batch_start: usize,
    /// The number of events of the current frame that have not been returned.
    left: usize,
    next_event: u64,
    /// The call stacks of the events of the current frame, or of the next one.
    stacks: FrameStacks,
    /// The number of events of the current frame.
    count: usize,
    /// The current frame is cut off: read what is complete.
    torn: bool,
    ended: bool,
}

impl<'r> NativeSource<'r> {
    pub(crate) fn open(mut input: Box<dyn Read + 'r>) -> Result<Self, ReadError> {
        let mut header = [0; HEADER];
        let have = read_full(&mut input, &mut header)?;
        let order = decode_file_header(&header[..have])?;
        let remarks = Remarks { order, ..Remarks::default() };
        Ok(Self::resume(input, HEADER as u64, Names::default(), remarks, 0))
    }

    /// A source that starts at the frame at `offset`, which contains event `next_event`.
    pub(crate) fn resume(
        input: Box<dyn Read + 'r>,
        offset: u64,
        names: Names,
        remarks: Remarks,
        next_event: u64,
    ) -> Self {
        NativeSource {
            input,
            offset,
            decoder: Decoder::new(&names),
            names,
            names_known: offset > HEADER as u64,
            remarks,
            buffer: Vec::new(),
            length: 0,
            payload_offset: 0,
            next: 0,
            batch_start: 0,
            left: 0,
            next_event,
            stacks: FrameStacks::default(),
            count: 0,
            torn: false,
            ended: false,
        }
    }

    /// A source without further events.
    pub(crate) fn at_end(names: Names, remarks: Remarks) -> Self {
        let ended = true;
        NativeSource { ended, ..Self::resume(Box::new(std::io::empty()), 0, names, remarks, 0) }
    }

    /// Skips events of the current frame, which must have that many.
    pub(crate) fn skip_events(&mut self, count: usize) -> Result<(), ReadError> {
        while self.left == 0 && !self.ended {
            self.next_frame()?;
        }
        self.next = self.decoder.skip(&self.buffer[..self.length], self.next, count);
        self.left = self.left.saturating_sub(count);
        Ok(())
    }

    /// Reads the next frame; sets `ended` if there is none.
    fn next_frame(&mut self) -> Result<(), ReadError> {
        let at = self.offset;
        let mut bytes = [0; HEADER];
        let have = read_full(&mut self.input, &mut bytes).map_err(|e| unreadable(at, &e))?;
        if have < HEADER || bytes == [0; HEADER] {
            self.cut_short("the end mark is missing");
            return Ok(());
        }
        let header = FrameHeader::decode(&bytes, at)?;
        self.payload_offset = at + HEADER as u64;
        self.offset = self.payload_offset + u64::from(header.length);
        self.read_payload(header.length as usize)?;
        let payload = &self.buffer[..self.length];
        let whole = self.length == header.length as usize;
        if whole {
            header.check(payload, at)?;
        } else if header.kind != Kind::Events || payload.len() < 8 {
            self.cut_short("the last frame is cut off");
            return Ok(());
        }
        match header.kind {
            Kind::Names if self.names_known => {}
            Kind::Names => {
                read_names(payload, header.count, self.payload_offset, &mut self.names)?;
                self.decoder.set_names(&self.names);
            }
            Kind::Remarks => read_remarks(payload, self.payload_offset, &mut self.remarks)?,
            Kind::Events => {
                if payload.len() < 8 || u64_at(payload, 0) != self.next_event {
                    let message = format!("events do not continue with number {}", self.next_event);
                    return Err(damaged(self.payload_offset, message));
                }
                if !self.stacks.are_of(self.next_event) {
                    self.stacks = FrameStacks::default();
                }
                self.count = header.count as usize;
                self.next_event += u64::from(header.count);
                (self.next, self.left, self.torn) = (8, header.count as usize, !whole);
            }
            Kind::End => {
                self.ended = true;
                if read_full(&mut self.input, &mut [0]).map_err(|e| unreadable(at, &e))? > 0 {
                    return Err(damaged(self.offset, "there are bytes after the end mark"));
                }
            }
            CALLS if self.names_known => {}
            CALLS => read_calls(payload, header.count, self.payload_offset, &mut self.names)?,
            STACKS => {
                let (count, at) = (header.count, self.payload_offset);
                self.stacks = FrameStacks::read(payload, count, at, &self.names)?;
            }
            Kind::Index | Kind::Optional(_) => {}
        }
        Ok(())
    }

    fn read_payload(&mut self, length: usize) -> Result<(), ReadError> {
        self.length = 0;
        while self.length < length {
            let goal = length.min(self.length + STEP);
            if self.buffer.len() < goal {
                self.buffer.resize(goal, 0);
            }
            let have = read_full(&mut self.input, &mut self.buffer[self.length..goal])
                .map_err(|error| unreadable(self.payload_offset + self.length as u64, &error))?;
            self.length += have;
            if self.length < goal {
                break;
            }
        }
        Ok(())
    }

    fn cut_short(&mut self, why: &str) {
        (self.ended, self.left) = (true, 0);
        self.remarks.cut_short = Some(format!("{why}: the writer was stopped or is still running"));
    }
}

fn unreadable(at: u64, error: &std::io::Error) -> ReadError {
    ReadError::new(ErrorKind::Io, Position::Byte(at), format!("cannot read: {error}"))
}

impl EventSource for NativeSource<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        while self.left == 0 {
            if self.ended {
                return Ok(false);
            }
            if let Err(error) = self.next_frame() {
                self.ended = true;
                return Err(error);
            }
        }
        self.batch_start = self.next;
        let most = self.left.min(Batch::EVENTS);
        let bytes = &self.buffer[..self.length];
        let result = self.decoder.decode(bytes, &mut self.next, most, VALUES_PER_BATCH, batch);
        let before = (self.count - self.left) as u64;
        self.stacks.next(before, &batch.events, &mut batch.stacks);
        self.left -= batch.events.len();
        let at = self.payload_offset + self.next as u64;
        match result {
            Ok(()) if self.left == 0 && self.next < bytes.len() => {
                self.ended = true;
                Err(damaged(at, "bytes are left over after the last record of a frame"))
            }
            Ok(()) => Ok(true),
            Err(_) if self.torn => {
                self.cut_short("the last frame is cut off");
                Ok(!batch.events.is_empty())
            }
            Err(bad) => {
                (self.ended, self.left) = (true, 0);
                Err(damaged(at, bad.message()))
            }
        }
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    fn position(&self, i: usize) -> Position {
        let bytes = &self.buffer[..self.length];
        let record = self.decoder.skip(bytes, self.batch_start, i);
        Position::Byte(self.payload_offset + record as u64)
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}

impl BadRecord {
    pub(crate) fn message(self) -> String {
        match self {
            BadRecord::Cut => "a record extends beyond its frame".into(),
            BadRecord::Wrong(message) => message,
        }
    }
}
