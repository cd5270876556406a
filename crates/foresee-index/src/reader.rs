//! An index that is asked.

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
    /// The table of a group, while it is looked at.
    table: Vec<u8>,
    /// Lists that were looked for lately, by group and place in it.
    found: HashMap<(u64, u32), Option<List>, RandomState>,
}

/// How many lists are remembered.
const MAX_FOUND: usize = 1 << 16;

impl Index<File> {
    /// Opens an index, whatever its trace has become; see [`Index::identity`].
    pub fn open(path: &Path) -> Result<Index<File>, IndexError> {
        Index::new(File::open(path)?)
    }

    /// Opens an index if it is of the trace in this file.
    pub fn open_for(path: &Path, trace: &Path) -> Result<Index<File>, IndexError> {
        let index = Index::open(path)?;
        match index.header.identity.differs_from(trace)? {
            Some(why) => Err(IndexError::Stale(why)),
            None => Ok(index),
        }
    }
}

impl<S: ReadAt> Index<S> {
    /// Opens an index in anything that can be read from anywhere.
    pub fn new(source: S) -> Result<Index<S>, IndexError> {
        let mut head = [0; 10];
        match source.size()? {
            // What is shorter than that has no name yet.
            0..10 => return Err(IndexError::NotAnIndex),
            _ => source.read_exact_at(&mut head, 0)?,
        }
        Header::recognise(&head)?;
        let mut pages = Pages::new(source)?;
        let mut bytes = Vec::new();
        pages.read(0, LENGTH as u64, &mut bytes)?;
        let header = Header::decode(&bytes)?;
        if header.pages != pages.count() {
            let what = "it does not have as many pages as it says";
            return Err(damaged(0, what));
        }
        let (offset, length) = header.facts;
        pages.read(offset, length, &mut bytes)?;
        let facts = Facts::decode(&bytes, offset, header.notes)?;
        if facts.landmarks.len() as u64 != header.directory.1.div_ceil(LANDMARK) {
            return Err(damaged(offset, "its directory is not as long as it says"));
        }
        Ok(Index { pages, header, facts, table: Vec::new(), found: HashMap::default() })
    }

    /// Which trace it was made of.
    pub fn identity(&self) -> &Identity {
        &self.header.identity
    }

    /// The format the trace was read in.
    pub fn format(&self) -> &str {
        &self.facts.format
    }

    /// Whether the trace was read with repairs.
    pub fn is_repaired(&self) -> bool {
        self.header.repaired
    }

    /// How many events the trace has.
    pub fn events(&self) -> u64 {
        self.header.events
    }

    /// How many bytes the index has.
    pub fn bytes(&self) -> Result<u64, IndexError> {
        Ok(self.pages.source().size()?)
    }

    /// The names of the trace, without those of conditions and locations.
    pub fn names(&self) -> &Names {
        &self.facts.names
    }

    /// What the reader of the trace had to say.
    pub fn remarks(&self) -> &Remarks {
        &self.facts.remarks
    }

    /// Forgets all pages that were read.
    pub fn forget(&mut self) {
        self.pages.forget();
        self.found.clear();
    }

    fn directory_entry(&mut self, i: u64) -> Result<[u64; 4], IndexError> {
        let at =
            i.checked_mul(DIRECTORY_ENTRY).and_then(|at| at.checked_add(self.header.directory.0));
        self.pages.words(at.ok_or_else(|| damaged(0, "its directory is too large"))?)
    }

    /// The place in the directory of the first group from this one on.
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

    /// Shows the lists of a group whose entry in the directory is this, until there is an answer.
    fn lists<T>(
        &mut self,
        [group, mut start, table, length]: [u64; 4],
        mut each: impl FnMut(u32, List) -> Option<T>,
    ) -> Result<Option<T>, IndexError> {
        let bad = || damaged(table, "the table of a group makes no sense");
        let columns = columns_of(group);
        self.pages.read(table, length, &mut self.table)?;
        let (mut at, mut sub) = (0, 0u64);
        while at < self.table.len() {
            let mut number = || varint(&self.table, &mut at).ok_or_else(bad);
            let (step, count, bytes) = (number()?, number()?, number()?);
            sub = sub.checked_add(step).ok_or_else(bad)?;
            let list = List { start, count, bytes, columns };
            // Times and counts are no more than 32 bits, and there is at least a byte for each.
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
        // The lists are sorted, so a greater one says that there is none.
        let find = |s: u32, list| (s >= sub).then_some((s, list));
        let found = self.lists(entry, find)?;
        Ok(found.filter(|(s, _)| *s == sub).map(|(_, list)| list))
    }

    /// Shows the chains of the events of an operation on a target, or on any: target, thread, and
    /// list of times. Stops when `each` says so.
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
            let (mut known, bad) = (true, || damaged(entry[2], "it names no thread"));
            let stopped = self.lists(entry, |thread, list| {
                known &= thread < threads;
                if !known {
                    return Some(None);
                }
                // Tells a list that is wanted no more from one that is.
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

    /// How many events of thread `other` are before or equal to an event.
    pub(crate) fn count(&mut self, at: Epoch, other: ThreadId) -> Result<u32, IndexError> {
        let Epoch { mut thread, mut time } = at;
        // The way up to the first thread is no longer than there are threads.
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
            // What it has not heard itself it may know from the one that started it.
            match self.facts.threads.get(thread.index()).and_then(|thread| thread.fork) {
                Some((parent, fork)) => (thread, time) = (ThreadId(parent), fork),
                None => return Ok(0),
            }
        }
        Err(damaged(self.header.facts.0, "threads start each other in a circle"))
    }

    /// The time of the first event of `thread` that is after or equal to an event; `None` if no
    /// event of it is.
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

    /// Where an event stands in the trace.
    pub(crate) fn place(&mut self, event: Epoch) -> Result<u64, IndexError> {
        let missing = || damaged(0, "an event has no place in the trace");
        let list = self.list(places_of(event.thread.0), 0)?.ok_or_else(missing)?;
        let index = u64::from(event.time).checked_sub(1).ok_or_else(missing)?;
        let [place, _] = list.get(&mut self.pages, index)?.ok_or_else(missing)?;
        Ok(place)
    }

    /// The time of the first event of a thread that stands at or after a place in the trace.
    pub(crate) fn time_from(&mut self, thread: ThreadId, place: u64) -> Result<u32, IndexError> {
        let Some(list) = self.list(places_of(thread.0), 0)? else { return Ok(u32::MAX) };
        let found = list.split(&mut self.pages, 0, |at| at < place)?;
        Ok(u32::try_from(found.index + 1).unwrap_or(u32::MAX))
    }

    /// What the index knows, for its tests: how many lists there are, of how many entries.
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
    /// How many lists.
    pub lists: u64,
    /// Their entries.
    pub entries: u64,
    /// The bytes they take up.
    pub bytes: u64,
}

/// What an index consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The events of each operation, target and thread.
    pub events: Part,
    /// What threads knew of each other.
    pub knowledge: Part,
    /// Where events stand in the trace.
    pub places: Part,
}
