//! Writes a native trace, a frame at a time.

use std::io::{self, Write};

use foresee_trace::{Batch, CallStacks, EventSink, FileOrder, Names, Remarks};

use super::frame::{FrameHeader, HEADER, Kind, MAX_PAYLOAD, encode_file_header, encode_remarks};
use super::names::{NAMESPACES, encode_names, name_counts};
use super::record::encode;
use super::stacks::{CALLS, STACKS, StackChanges, encode_calls};
use crate::shape::check_batch;

/// The number of events of a frame: enough to amortise its overhead, few enough to decode in the
/// cache, and not too many to lose in a crash.
pub(super) const FRAME_EVENTS: u32 = 1 << 16;
/// A frame also ends when it has this many bytes.
const FRAME_BYTES: usize = 4 << 20;

/// The position of a frame, for the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) offset: u64,
    /// The first event, or the first name's number.
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) namespace: u8,
}

impl Entry {
    /// The length of an entry in an index frame.
    pub(crate) const BYTES: usize = 32;

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&[self.kind, self.namespace, 0, 0, 0, 0, 0, 0]);
    }
}

#[derive(Debug)]
pub(crate) struct NativeSink<W> {
    output: W,
    /// The number of bytes written, including the file header.
    pub(crate) offset: u64,
    /// The number of names of each kind written so far. The first location is never written.
    pub(crate) names: [usize; NAMESPACES],
    /// The call stacks written so far have numbers below this.
    pub(crate) stacks: usize,
    /// Whether call stacks are written.
    pub(super) has_stacks: bool,
    changes: StackChanges,
    /// The number of events in complete frames.
    pub(crate) events: u64,
    /// Space for the header, then the payload of the current frame.
    frame: Vec<u8>,
    count: u32,
    scratch: Vec<u8>,
    /// The entries of the index; `None` if there is no index.
    pub(crate) entries: Option<Vec<Entry>>,
    finished: bool,
    /// The order according to the file header.
    order: FileOrder,
    /// The number of events of a frame.
    pub(super) frame_events: u32,
}

impl<W: Write> NativeSink<W> {
    pub(crate) fn new(output: W) -> Self {
        NativeSink {
            output,
            offset: 0,
            names: name_counts(&Names::default()),
            stacks: CallStacks::FIRST,
            has_stacks: true,
            changes: StackChanges::default(),
            events: 0,
            frame: Vec::new(),
            count: 0,
            scratch: Vec::new(),
            entries: Some(Vec::new()),
            finished: false,
            order: FileOrder::Observed,
            frame_events: FRAME_EVENTS,
        }
    }

    /// Starts the next frame with records that are known to be valid.
    pub(crate) fn adopt_records(&mut self, records: &[u8], count: u32) {
        self.start_frame();
        self.frame.extend_from_slice(records);
        self.count = count;
    }

    fn start_frame(&mut self) {
        self.frame.clear();
        self.frame.resize(HEADER, 0);
        self.frame.extend_from_slice(&self.events.to_le_bytes());
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn write_file_header(&mut self, order: FileOrder) -> io::Result<()> {
        match self.offset {
            0 => {
                self.order = order;
                self.write_all(&encode_file_header(order))
            }
            _ => Ok(()),
        }
    }

    /// Fills in the header of a frame and writes it with a single call.
    fn write_frame(
        &mut self,
        kind: Kind,
        count: u32,
        first: u64,
        namespace: u8,
        frame: &mut [u8],
    ) -> io::Result<()> {
        let (header, payload) = frame.split_at_mut(HEADER);
        let filled = FrameHeader::of(kind, count, payload)?;
        header.copy_from_slice(&filled.encode());
        let length = filled.length;
        let offset = self.offset;
        if let Some(entries) = &mut self.entries {
            entries.push(Entry { offset, first, count, length, kind: kind.code(), namespace });
        }
        self.write_all(frame)
    }

    /// Writes the names that are new, then the events.
    pub(super) fn flush(&mut self, names: &Names) -> io::Result<()> {
        self.write_file_header(FileOrder::Observed)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        for (namespace, count) in name_counts(names).into_iter().enumerate() {
            while self.names[namespace] < count {
                let first = self.names[namespace];
                scratch.clear();
                scratch.resize(HEADER, 0);
                let written = encode_names(names, namespace, first, &mut scratch);
                self.write_frame(
                    Kind::Names,
                    written,
                    first as u64,
                    namespace as u8,
                    &mut scratch,
                )?;
                self.names[namespace] += written as usize;
            }
        }
        while self.has_stacks && self.stacks < names.stacks.len() {
            scratch.clear();
            scratch.resize(HEADER, 0);
            let first = self.stacks;
            let written = encode_calls(&names.stacks, first, &mut scratch);
            self.write_frame(CALLS, written, first as u64, 0, &mut scratch)?;
            self.stacks += written as usize;
        }
        if self.count > 0 && self.changes.count > 0 {
            scratch.clear();
            scratch.resize(HEADER, 0);
            let changes = self.changes.take(self.events, &mut scratch);
            self.write_frame(STACKS, changes, self.events, 0, &mut scratch)?;
        }
        self.scratch = scratch;
        if self.count > 0 {
            let mut frame = std::mem::take(&mut self.frame);
            self.write_frame(Kind::Events, self.count, self.events, 0, &mut frame)?;
            self.events += u64::from(self.count);
            self.count = 0;
            self.frame = frame;
        }
        Ok(())
    }

    /// Writes the index and returns its offset; skips it if it would be too large, since readers do
    /// not need it.
    fn write_index(&mut self) -> io::Result<u64> {
        let offset = self.offset;
        let fits = |entries: &Vec<Entry>| entries.len() * Entry::BYTES <= MAX_PAYLOAD as usize;
        let Some(entries) = self.entries.take().filter(fits) else { return Ok(0) };
        let mut frame = vec![0; HEADER];
        entries.iter().for_each(|entry| entry.encode(&mut frame));
        self.write_frame(Kind::Index, entries.len() as u32, 0, 0, &mut frame)?;
        Ok(offset)
    }
}

impl NativeSink<Vec<u8>> {
    /// What was written since the last call.
    pub(super) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }
}

impl<W: Write> EventSink for NativeSink<W> {
    fn begin(&mut self, remarks: &Remarks) -> io::Result<()> {
        self.write_file_header(remarks.order)
    }

    fn write_batch(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        check_batch(batch)?;
        for (i, event) in batch.events.iter().enumerate() {
            if self.count == 0 {
                self.start_frame();
            }
            if self.has_stacks && !batch.stacks.is_empty() {
                self.changes.add(self.count, event, batch.stack(i));
            }
            encode(event, &batch.pool, &mut self.frame);
            self.count += 1;
            if self.count >= self.frame_events || self.frame.len() > FRAME_BYTES {
                self.flush(names)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, names: &Names, remarks: &Remarks) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Err(io::Error::other("the trace is already finished"));
        }
        self.flush(names)?;
        if remarks.order != self.order || remarks.cut_short.is_some() || remarks.partial.is_some() {
            for payload in encode_remarks(remarks) {
                let mut frame = [[0; HEADER].as_slice(), &payload].concat();
                self.write_frame(Kind::Remarks, 0, 0, 0, &mut frame)?;
            }
        }
        let index = self.write_index()?;
        let mut end = [[0; HEADER].as_slice(), &index.to_le_bytes()].concat();
        self.write_frame(Kind::End, 0, 0, 0, &mut end)?;
        self.output.flush()
    }
}
