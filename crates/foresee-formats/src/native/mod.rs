//! The native format: compact binary frames that can be streamed, appended to, cut off anywhere,
//! and read from several places at once. `docs/formats/native.md` describes every byte.

mod append;
mod frame;
mod indexed;
mod names;
mod reader;
mod record;
mod stacks;
mod writer;

use std::io::{self, Read, Write};

use foresee_trace::{Batch, EventSink, EventSource, Names, ReadError};

pub use append::{Appended, append};
pub use frame::{
    FrameHeader, HEADER, Kind, LOST, MAX_PAYLOAD, decode_file_header, encode_file_header,
    encode_remarks, read_full,
};
pub use indexed::{Block, Indexed};

use crate::Format;

/// Starts writing frames of at most `events` events, for readers that do not wait for a whole file.
/// There is no index, which would grow with the number of events.
pub fn write_frames<'w>(output: Box<dyn Write + 'w>, events: u32) -> Box<dyn EventSink + 'w> {
    let mut sink = writer::NativeSink::new(output);
    sink.frame_events = events.clamp(1, writer::FRAME_EVENTS);
    sink.entries = None;
    // Frames are sent by what they hold, and findings of observed programs name places only.
    sink.has_stacks = false;
    Box::new(sink)
}

/// Encodes events as frames, without a file around them.
#[derive(Debug)]
pub struct Frames(writer::NativeSink<Vec<u8>>);

impl Default for Frames {
    fn default() -> Frames {
        let mut sink = writer::NativeSink::new(Vec::new());
        // The file header belongs to whoever has the file.
        sink.offset = HEADER as u64;
        sink.entries = None;
        Frames(sink)
    }
}

impl Frames {
    /// The frames of these events, and of the names that are new.
    pub fn encode(&mut self, batch: &Batch, names: &Names) -> io::Result<Vec<u8>> {
        self.0.write_batch(batch, names)?;
        self.0.flush(names)?;
        Ok(self.0.take_output())
    }
}

/// Our own binary format.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Format for Native {
    fn name(&self) -> &'static str {
        "native"
    }

    fn about(&self) -> &'static str {
        "compact binary frames: fast, appendable, readable after a crash, seekable"
    }

    fn sniff(&self, head: &[u8]) -> bool {
        // The reader checks the rest of the magic number, to report how it was damaged.
        head.starts_with(&frame::MAGIC[..4])
    }

    fn read<'r>(&self, input: Box<dyn Read + 'r>) -> Result<Box<dyn EventSource + 'r>, ReadError> {
        Ok(Box::new(reader::NativeSource::open(input)?))
    }

    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w> {
        Box::new(writer::NativeSink::new(output))
    }
}
