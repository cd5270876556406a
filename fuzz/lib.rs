//! What all fuzz targets do: read anything, and if it is a trace, write and read it again.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use foresee_formats::{Format, by_name};
use foresee_trace::{Batch, Event, Trace, Value};

/// Reads `bytes` in a format. What is accepted must come back the same from the native format, and
/// from its own.
///
/// # Panics
/// If it does not: that is what the fuzzer looks for.
pub fn read_and_write_again(format: &str, bytes: &[u8]) {
    let format = by_name(format).expect("a format of the registry");
    let Some(trace) = read(bytes, format) else { return };
    for again in [by_name("native").expect("it exists"), format] {
        // Quotes and escapes may make a line longer than lines may be.
        let Ok(written) = write(&trace, again) else { continue };
        let second = read(&written, again).expect("what was written can be read");
        assert_eq!(meaning(&trace), meaning(&second));
        assert_eq!(trace.remarks.order, second.remarks.order);
        assert_eq!(trace.remarks.cut_short, second.remarks.cut_short);
    }
}

/// The trace, or what came before an error in it; nothing if there was nothing.
fn read(bytes: &[u8], format: &dyn Format) -> Option<Trace> {
    let mut source = format.read(Box::new(bytes)).ok()?;
    let (mut trace, mut batch) = (Trace::default(), Batch::default());
    while source.next_batch(&mut batch).unwrap_or(false) {
        for i in [0, batch.events.len() - 1] {
            source.position(i);
        }
        trace.push_batch(&mut batch);
    }
    trace.names = source.names().clone();
    trace.remarks = source.remarks().clone();
    Some(trace)
}

fn write(trace: &Trace, format: &dyn Format) -> std::io::Result<Vec<u8>> {
    let bytes = Rc::new(RefCell::new(Vec::new()));
    let mut sink = format.write(Box::new(Shared(Rc::clone(&bytes))));
    let batch = Batch { events: trace.events.clone(), pool: trace.pool.clone(), ..Batch::default() };
    sink.write_batch(&batch, &trace.names)?;
    sink.finish(&trace.names, &trace.remarks)?;
    Ok(bytes.take())
}

/// The events by name. Names do not distinguish inner from outer lock operations, so neither does
/// this.
fn meaning(trace: &Trace) -> Vec<String> {
    let names = &trace.names;
    let describe = |event: &Event| {
        let (thread, loc) = (names.threads.get(event.thread()), names.locs.get(event.loc()));
        let bits = |value: &Value| match value {
            Value::Float(float) => float.to_bits(),
            _ => 0,
        };
        let floats: Vec<u64> = trace.pool.values(event).iter().map(bits).collect();
        format!("{thread:?} {} {loc:?} {floats:?}", event.describe(names, &trace.pool))
    };
    trace.events.iter().map(describe).collect()
}

struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Content as the pages of an index, each with its checksum. The content of a whole index stays
/// what it is, so that its file can be a seed.
pub fn pages(content: &[u8]) -> Vec<u8> {
    const PAGE: usize = 4096;
    let mut file = Vec::new();
    for (number, page) in content.chunks(PAGE).enumerate() {
        let start = file.len();
        file.extend_from_slice(page);
        file.resize(start + PAGE - 4, 0);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&file[start..]);
        crc.update(&(number as u64).to_le_bytes());
        file.extend_from_slice(&crc.finalize().to_le_bytes());
    }
    file
}

/// Makes the magic number, the version and the checksum of a hello right.
pub fn seal_hello(bytes: &mut [u8]) {
    if bytes.len() < 40 {
        return;
    }
    bytes[..10].copy_from_slice(b"\x89FSO\r\n\x1a\n\x01\0");
    let length = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let end = bytes.len().min(40 + length(14) + length(16));
    bytes[20..24].fill(0);
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
}

/// Frames as they would be sent: of each stretch, the first byte is the kind, the next two are the
/// length, and four are the count.
pub fn seal_frames(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0u64.. {
        let Some((head, rest)) = bytes.split_first_chunk::<7>() else { break };
        let length = usize::from(u16::from_le_bytes([head[1], head[2]])) % 2048;
        let (payload, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        out.extend_from_slice(&number.to_le_bytes());
        let mut header = [0; 16];
        header[0] = head[0];
        header[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        header[8..12].copy_from_slice(&head[3..7]);
        header[12..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
        let check = crc32fast::hash(&header) as u16;
        header[2..4].copy_from_slice(&check.to_le_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(payload);
    }
    out
}
