//! Continues a native trace that was finished or cut off.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use foresee_trace::{ErrorKind, EventSink, Names, Position, ReadError, Remarks};

use super::frame::HEADER;
use super::indexed::Indexed;
use super::names::name_counts;
use super::stacks::STACKS;
use super::writer::NativeSink;

/// A trace to be continued.
pub struct Appended {
    /// The names so far; those of later batches must extend them.
    pub names: Names,
    /// The remarks so far; pass them to `finish` again if they still apply.
    pub remarks: Remarks,
    /// The number of events so far.
    pub events: u64,
    /// The sink for the next events.
    pub sink: Box<dyn EventSink>,
}

/// Opens a native trace to append to it. What a crash left incomplete is cut off, but no complete
/// event is lost. Until `finish`, the file has no end mark and reads as cut short.
pub fn append(path: &Path) -> Result<Appended, ReadError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| {
        let message = format!("cannot open {}: {error}", path.display());
        ReadError::new(ErrorKind::Io, Position::Unknown, message)
    })?;
    let indexed = Indexed::from_file(file)?;
    let (events, torn) = (indexed.events(), indexed.torn_records()?);
    let (mut file, names, remarks, mut entries) = indexed.into_parts();
    // Call stacks of events that were not written.
    entries.pop_if(|last| last.kind == STACKS.code());
    // Remarks, index and end mark come last and are written again.
    let end = entries
        .last()
        .map_or(HEADER as u64, |last| last.offset + HEADER as u64 + u64::from(last.length));
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    let mut sink = NativeSink::new(file);
    sink.offset = end;
    sink.names = name_counts(&names);
    sink.stacks = names.stacks.len();
    sink.entries = Some(entries);
    sink.events = events;
    if let Some((records, count)) = torn {
        sink.events -= u64::from(count);
        sink.adopt_records(&records, count);
    }
    Ok(Appended { names, remarks, events, sink: Box::new(sink) })
}
