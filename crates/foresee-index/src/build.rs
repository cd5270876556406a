//! Builds an index in one pass over a trace.

use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use foresee_causality::{Clock, Clocks, Order, Stamp, TooLong};
use foresee_trace::varint::push_varint;
use foresee_trace::{
    Batch, Event, EventSource, FileOrder, Id, Names, Op, Remarks, ThreadId, entry,
};

use crate::error::IndexError;
use crate::header::{Facts, Header, LANDMARK, ThreadFacts};
use crate::identity::Identity;
use crate::list::ListWriter;
use crate::page::{PageWriter, word_at};
use crate::streams::{Merged, Streams};

/// Lists are grouped by their content. The groups of events come first: by operation and target. A
/// group has one list per thread.
pub(crate) fn events_of(op: Op, target: u32) -> u64 {
    (op as u64) << 32 | u64::from(target)
}

/// The target of events without one.
pub(crate) const NO_TARGET: u32 = u32::MAX;

/// What a thread knew about each other thread, and since which of its events.
pub(crate) fn knowledge_of(thread: u32) -> u64 {
    254 << 32 | u64::from(thread)
}

/// The positions of a thread's events in the trace.
pub(crate) fn places_of(thread: u32) -> u64 {
    255 << 32 | u64::from(thread)
}

/// The number of columns of the lists of a group.
pub(crate) fn columns_of(group: u64) -> usize {
    if group >> 32 == 254 { 2 } else { 1 }
}

/// The target that specifications see; for a wait, it is the lock.
pub(crate) fn target_of(event: &Event) -> u32 {
    let target = match event.op() {
        Op::WaitBegin | Op::WaitEnd => event.wait_lock().map(|lock| lock.0),
        _ => event.target(),
    };
    target.unwrap_or(NO_TARGET)
}

/// Builds an index of the trace that it reads.
///
/// Memory is bounded whatever the length of the trace: the excess goes to temporary files in the
/// given directory.
pub struct Builder {
    clocks: Clocks,
    streams: Streams,
    threads: Vec<Thread>,
    events: u64,
    folder: PathBuf,
    memory: usize,
}

/// The state of a thread while its events are read.
struct Thread {
    facts: ThreadFacts,
    /// What it knew at its latest event.
    known: Clock,
    /// The event that forked it, until its first own event.
    fork: Option<Stamp>,
    /// The number of the list of its places in the streams, if it has one.
    places: Option<u32>,
}

impl Default for Thread {
    fn default() -> Self {
        Thread { facts: ThreadFacts::default(), known: Clock::EMPTY, fork: None, places: None }
    }
}

/// The description of a trace besides its events.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The name of its format.
    pub format: &'a str,
    /// Whether it was read with repairs.
    pub repaired: bool,
    /// Its names.
    pub names: &'a Names,
    /// The remarks of its reader.
    pub remarks: &'a Remarks,
    /// The file from which it was read.
    pub identity: Identity,
}

impl Builder {
    /// The default memory limit before temporary files are used.
    pub const MEMORY: usize = 128 << 20;

    /// A builder for one trace. If the lists together exceed `memory` bytes, they go to temporary
    /// files in `folder`.
    pub fn new(folder: &Path, memory: usize) -> Builder {
        Builder {
            clocks: Clocks::new(Order::Mazurkiewicz),
            streams: Streams::new(),
            threads: Vec::new(),
            events: 0,
            folder: folder.to_owned(),
            memory,
        }
    }

    /// Takes all events of a trace; calls `progress` with the number of events so far.
    pub fn read(
        &mut self,
        source: &mut dyn EventSource,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), IndexError> {
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            for event in &batch.events {
                self.event(self.events, event)?;
                self.events += 1;
                self.clocks.forget_old(&[]);
                self.make_room()?;
            }
            progress(self.events);
        }
        Ok(())
    }

    fn event(&mut self, index: u64, event: &Event) -> Result<(), TooLong> {
        let stamp = self.clocks.event(event)?;
        if !Order::is_step(event) {
            return Ok(());
        }
        let (t, [time]) = (stamp.thread, stamp.time);
        let Builder { clocks, streams, threads, .. } = self;
        let list = streams.id((events_of(event.op(), target_of(event)), t.0));
        streams.push(list, [u64::from(time), 0], 1);
        let thread = entry(threads, t.index());
        thread.facts.events = time;
        let fork = thread.fork.take();
        let before = match fork {
            Some(fork) => {
                thread.facts.fork = Some((fork.thread.0, fork.time[0]));
                fork.known
            }
            None => thread.known,
        };
        let list = *thread.places.get_or_insert_with(|| streams.id((places_of(t.0), 0)));
        streams.push(list, [index, 0], 1);
        if before != stamp.known {
            clocks.news(before, &stamp, &mut |other, [count]| {
                let list = streams.id((knowledge_of(t.0), other.0));
                streams.push(list, [u64::from(time), u64::from(count)], 2);
            });
        }
        thread.known = stamp.known;
        if event.op() == Op::Fork {
            let child: ThreadId = event.other();
            let child = entry(threads, child.index());
            // A thread that is already running learns of its fork like of any other event.
            if child.facts.events == 0 {
                child.fork = Some(stamp);
            }
        }
        Ok(())
    }

    /// Spills all lists if they take too much memory.
    fn make_room(&mut self) -> io::Result<()> {
        if self.streams.used() < self.memory {
            return Ok(());
        }
        for thread in &mut self.threads {
            thread.places = None;
        }
        self.streams.spill(&self.folder)
    }

    /// Writes the index.
    pub fn write<W: Write + Seek>(self, out: W, about: &About<'_>) -> io::Result<W> {
        let mut out = PageWriter::new(out)?;
        let directory = write_groups(self.streams.merge()?, &mut out)?;
        let start = out.offset();
        out.write(&directory)?;
        let threads: Vec<ThreadFacts> = self.threads.iter().map(|thread| thread.facts).collect();
        let landmarks: Vec<u64> = directory
            .chunks((LANDMARK * DIRECTORY_ENTRY) as usize)
            .map(|entries| word_at(entries, 0))
            .collect();
        let facts = Facts::encode(about.format, about.remarks, &threads, &landmarks, about.names);
        let header = Header {
            pages: 0,
            events: self.events,
            notes: about.remarks.order == FileOrder::Notes,
            repaired: about.repaired,
            directory: (start, directory.len() as u64 / DIRECTORY_ENTRY),
            facts: (out.offset(), facts.len() as u64),
            identity: about.identity,
        };
        out.write(&facts)?;
        out.finish(|pages| Header { pages, ..header }.encode())
    }
}

/// The bytes of an entry of the directory.
pub(crate) const DIRECTORY_ENTRY: u64 = 32;

/// Writes all groups and returns their directory.
fn write_groups<W: Write + Seek>(
    mut lists: Merged,
    out: &mut PageWriter<W>,
) -> io::Result<Vec<u8>> {
    let mut directory = Vec::new();
    let mut writer = ListWriter::new(1);
    while let Some((group, _)) = lists.key() {
        let columns = columns_of(group);
        let start = out.offset();
        let (mut table, mut last) = (Vec::new(), 0);
        while let Some(key @ (_, sub)) = lists.key().filter(|key| key.0 == group) {
            writer.start(out, columns);
            while lists.key() == Some(key) {
                let Some(piece) = lists.next()? else { break };
                piece.entries(columns, |entry| writer.push(entry, out))?;
            }
            let (count, bytes) = writer.finish(out)?;
            push_varint(u64::from(sub - last), &mut table);
            push_varint(count, &mut table);
            push_varint(bytes, &mut table);
            last = sub;
        }
        for word in [group, start, out.offset(), table.len() as u64] {
            directory.extend_from_slice(&word.to_le_bytes());
        }
        out.write(&table)?;
    }
    Ok(directory)
}
