//! Reads and queries an index.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use foldhash::fast::RandomState;
use foresee_causality::Epoch;
use foresee_trace::varint::varint;
use foresee_trace::{Id, Names, Op, Remarks, ThreadId};

use crate::build::{DIRECTORY_ENTRY, columns_of, events_of, knowledge_of, places_of};
use crate::error::IndexError;
use crate::header::{Facts, Header, LANDMARK, LENGTH};
use crate::identity::Identity;
use crate::list::List;
use crate::page::{Pages, ReadAt, damaged};

/// An index of a trace.
#[derive(Debug)]
pub struct Index<S = File> {
    pages: Pages<S>,
    header: Header,
    facts: Facts,
    /// The table of a group, reused.
    table: Vec<u8>,
    /// Recently used lists, by group and index in it.
    found: HashMap<(u64, u32), Option<List>, RandomState>,
}

/// The maximum number of cached lists.
const MAX_FOUND: usize = 1 << 16;

impl Index<File> {
    /// Opens an index, even if its trace has changed; see [`Index::identity`].
    pub fn open(path: &Path) -> Result<Index<File>, IndexError> {
        Index::new(File::open(path)?)
    }

    /// Opens an index if it belongs to the trace in this file.
    pub fn open_for(path: &Path, trace: &Path) -> Result<Index<File>, IndexError> {
        let index = Index::open(path)?;
        match index.header.identity.differs_from(trace)? {
            Some(why) => Err(IndexError::Stale(why)),
            None => Ok(index),
        }
    }
}

impl<S: ReadAt> Index<S> {
    /// Opens an index in anything with random access.
    pub fn new(source: S) -> Result<Index<S>, IndexError> {
        let mut head = [0; 10];
        match source.size()? {
            // Shorter than the magic number and the version.
            0..10 => return Err(IndexError::NotAnIndex),
            _ => source.read_exact_at(&mut head, 0)?,
        }
        Header::recognise(&head)?;
        let mut pages = Pages::new(source)?;
        let mut bytes = Vec::new();
        pages.read(0, LENGTH as u64, &mut bytes)?;
        let header = Header::decode(&bytes)?;
        if header.pages != pages.count() {
            let what = "the number of pages differs from that in the header";
            return Err(damaged(0, what));
        }
        let (offset, length) = header.facts;
        pages.read(offset, length, &mut bytes)?;
        let facts = Facts::decode(&bytes, offset, header.notes)?;
        if facts.landmarks.len() as u64 != header.directory.1.div_ceil(LANDMARK) {
            return Err(damaged(
                offset,
                "the length of the directory differs from that in the header",
            ));
        }
        Ok(Index { pages, header, facts, table: Vec::new(), found: HashMap::default() })
    }

    /// The trace from which it was built.
    pub fn identity(&self) -> &Identity {
        &self.header.identity
    }

    /// The format in which the trace was read.
    pub fn format(&self) -> &str {
        &self.facts.format
    }

    /// Whether the trace was read with repairs.
    pub fn is_repaired(&self) -> bool {
        self.header.repaired
    }

    /// The number of events of the trace.
    pub fn events(&self) -> u64 {
        self.header.events
    }

    /// The size of the index in bytes.
    pub fn bytes(&self) -> Result<u64, IndexError> {
        Ok(self.pages.source().size()?)
    }

    /// The names of the trace, without those of conditions and locations.
    pub fn names(&self) -> &Names {
        &self.facts.names
    }

    /// The remarks of the trace's reader.
    pub fn remarks(&self) -> &Remarks {
        &self.facts.remarks
    }

    /// Clears the cache of pages.
    pub fn forget(&mut self) {
        self.pages.forget();
        self.found.clear();
    }

    fn directory_entry(&mut self, i: u64) -> Result<[u64; 4], IndexError> {
        let at =
            i.checked_mul(DIRECTORY_ENTRY).and_then(|at| at.checked_add(self.header.directory.0));
        self.pages.words(at.ok_or_else(|| damaged(0, "the directory is too large"))?)
    }

    /// The index in the directory of the first group from this one on.
    fn directory_place(&mut self, group: u64) -> Result<u64, IndexError> {
        // Between the last landmark before it and the next.
        let after = self.facts.landmarks.partition_point(|&landmark| landmark < group) as u64;
        let mut low = after.saturating_sub(1) * LANDMARK;
        let mut high = (after * LANDMARK).min(self.header.directory.1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.directory_entry(middle)?[0] < group {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Passes the lists of a group with this directory entry to a function until it returns a
    /// result.
    fn lists<T>(
        &mut self,
        [group, mut start, table, length]: [u64; 4],
        mut each: impl FnMut(u32, List) -> Option<T>,
    ) -> Result<Option<T>, IndexError> {
        let bad = || damaged(table, "the table of a group is invalid");
        let columns = columns_of(group);
        self.pages.read(table, length, &mut self.table)?;
        let (mut at, mut sub) = (0, 0u64);
        while at < self.table.len() {
            let mut number = || varint(&self.table, &mut at).ok_or_else(bad);
            let (step, count, bytes) = (number()?, number()?, number()?);
            sub = sub.checked_add(step).ok_or_else(bad)?;
            let list = List { start, count, bytes, columns };
            // Times and counts have at most 32 bits, and at least one byte each.
            let sensible = count <= bytes && bytes <= count.saturating_mul(20);
            start = list.total_bytes().and_then(|b| b.checked_add(start)).ok_or_else(bad)?;
            if !sensible || start > table {
                return Err(bad());
            }
            let sub = u32::try_from(sub).map_err(|_| bad())?;
            if let Some(answer) = each(sub, list) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// One list of a group.
    #[inline]
    fn list(&mut self, group: u64, sub: u32) -> Result<Option<List>, IndexError> {
        if let Some(&found) = self.found.get(&(group, sub)) {
            return Ok(found);
        }
        let found = self.find_list(group, sub)?;
        if self.found.len() >= MAX_FOUND {
            self.found.clear();
        }
        self.found.insert((group, sub), found);
        Ok(found)
    }

    fn find_list(&mut self, group: u64, sub: u32) -> Result<Option<List>, IndexError> {
        let place = self.directory_place(group)?;
        if place >= self.header.directory.1 {
            return Ok(None);
        }
        let entry = self.directory_entry(place)?;
        if entry[0] != group {
            return Ok(None);
        }
        // The lists are sorted, so a greater one means that there is none.
        let find = |s: u32, list| (s >= sub).then_some((s, list));
        let found = self.lists(entry, find)?;
        Ok(found.filter(|(s, _)| *s == sub).map(|(_, list)| list))
    }

    /// Passes the chains of an operation on a target, or on any, to `each`: target, thread, and
    /// list of times. Stops when `each` returns `None`.
    pub(crate) fn chains(
        &mut self,
        op: Op,
        target: Option<u32>,
        mut each: impl FnMut(u32, ThreadId, List) -> Option<()>,
    ) -> Result<(), IndexError> {
        let (first, last) = match target {
            Some(target) => (events_of(op, target), events_of(op, target)),
            None => (events_of(op, 0), events_of(op, u32::MAX)),
        };
        for place in self.directory_place(first)?..self.header.directory.1 {
            let entry = self.directory_entry(place)?;
            if entry[0] > last {
                break;
            }
            let target = entry[0] as u32;
            let threads = self.facts.threads.len() as u32;
            let (mut known, bad) = (true, || damaged(entry[2], "an unknown thread"));
            let stopped = self.lists(entry, |thread, list| {
                known &= thread < threads;
                if !known {
                    return Some(None);
                }
                match each(target, ThreadId(thread), list) {
                    Some(()) => None,
                    None => Some(Some(())),
                }
            })?;
            match stopped {
                Some(None) => return Err(bad()),
                Some(Some(())) => break,
                None => {}
            }
        }
        Ok(())
    }

    /// The last event of a chain before a time.
    pub(crate) fn last_before(
        &mut self,
        chain: &List,
        time: u32,
    ) -> Result<Option<u32>, IndexError> {
        let found = chain.split(&mut self.pages, 0, |at| at < u64::from(time))?;
        Ok(found.before.map(|[time, _]| time as u32))
    }

    /// The first event of a chain from a time on.
    pub(crate) fn first_from(
        &mut self,
        chain: &List,
        time: u32,
    ) -> Result<Option<u32>, IndexError> {
        let found = chain.split(&mut self.pages, 0, |at| at < u64::from(time))?;
        Ok(found.at.map(|[time, _]| time as u32))
    }

    /// The number of events of thread `other` that are before or equal to an event.
    pub(crate) fn count(&mut self, at: Epoch, other: ThreadId) -> Result<u32, IndexError> {
        let Epoch { mut thread, mut time } = at;
        // The chain of forks up to the first thread is at most as long as there are threads.
        for _ in 0..=self.facts.threads.len() {
            if thread == other {
                return Ok(time);
            }
            if let Some(list) = self.list(knowledge_of(thread.0), other.0)? {
                let found = list.split(&mut self.pages, 0, |at| at <= u64::from(time))?;
                if let Some([_, count]) = found.before {
                    return Ok(count as u32);
                }
            }
            // What it has not learned itself, it may know from the thread that started it.
            match self.facts.threads.get(thread.index()).and_then(|thread| thread.fork) {
                Some((parent, fork)) => (thread, time) = (ThreadId(parent), fork),
                None => return Ok(0),
            }
        }
        Err(damaged(self.header.facts.0, "the threads form a cycle of forks"))
    }

    /// The time of the first event of `thread` that is after or equal to an event; `None` if there
    /// is none.
    pub(crate) fn first_after(
        &mut self,
        event: Epoch,
        thread: ThreadId,
    ) -> Result<Option<u32>, IndexError> {
        if event.thread == thread {
            return Ok(Some(event.time));
        }
        if let Some((parent, fork)) = self.facts.threads.get(thread.index()).and_then(|t| t.fork) {
            let known = Epoch { thread: ThreadId(parent), time: fork };
            if self.count(known, event.thread)? >= event.time {
                return Ok(Some(1));
            }
        }
        let Some(list) = self.list(knowledge_of(thread.0), event.thread.0)? else {
            return Ok(None);
        };
        let found = list.split(&mut self.pages, 1, |count| count < u64::from(event.time))?;
        Ok(found.at.map(|[time, _]| time as u32))
    }

    /// The position of an event in the trace.
    pub(crate) fn place(&mut self, event: Epoch) -> Result<u64, IndexError> {
        let missing = || damaged(0, "an event has no position in the trace");
        let list = self.list(places_of(event.thread.0), 0)?.ok_or_else(missing)?;
        let index = u64::from(event.time).checked_sub(1).ok_or_else(missing)?;
        let [place, _] = list.get(&mut self.pages, index)?.ok_or_else(missing)?;
        Ok(place)
    }

    /// The time of the first event of a thread at or after a position in the trace.
    pub(crate) fn time_from(&mut self, thread: ThreadId, place: u64) -> Result<u32, IndexError> {
        let Some(list) = self.list(places_of(thread.0), 0)? else { return Ok(u32::MAX) };
        let found = list.split(&mut self.pages, 0, |at| at < place)?;
        Ok(u32::try_from(found.index + 1).unwrap_or(u32::MAX))
    }

    /// The contents of the index, for its tests: the numbers of lists and entries.
    pub fn census(&mut self) -> Result<Census, IndexError> {
        let mut census = Census::default();
        for place in 0..self.header.directory.1 {
            let entry = self.directory_entry(place)?;
            let knowledge = columns_of(entry[0]) == 2;
            let (mut lists, mut entries, mut bytes) = (0, 0, 0);
            let mut add = |_, list: List| -> Option<()> {
                (lists, entries) = (lists + 1, entries + list.count);
                bytes += list.total_bytes().unwrap_or(0);
                None
            };
            self.lists(entry, &mut add)?;
            let part = match (knowledge, entry[0] == places_of(entry[0] as u32)) {
                (true, _) => &mut census.knowledge,
                (_, true) => &mut census.places,
                _ => &mut census.events,
            };
            part.lists += lists;
            part.entries += entries;
            part.bytes += bytes + entry[3] + DIRECTORY_ENTRY;
        }
        Ok(census)
    }
}

/// The lists of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The number of lists.
    pub lists: u64,
    /// The number of their entries.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// The parts of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The events of each operation, target and thread.
    pub events: Part,
    /// What threads knew about each other.
    pub knowledge: Part,
    /// The positions of events in the trace.
    pub places: Part,
}
