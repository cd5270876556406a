//! Writes that no hook saw, and which threads may have made them.
//!
//! Recording is serialised: a thread runs between hooks only while it holds the token, and the first thing it does with the
//! token is a record. So when a read finds memory changed since it was last known, the write in between was made by a
//! thread that has a record since. The thread and the time are unknown. To claim nothing impossible, the order is kept on
//! both sides of the write:
//!
//! - what each of these threads did after the memory was last known comes after all accesses that saw it so,
//! - the read, and with it all that its thread does next, comes after everything that these threads had done by then, and
//! - the writes of the memory, seen or not, keep their order, so that none comes in between.
//!
//! The first is expressed by a write of the memory at each end of the interval, by a thread `external`, and by variables
//! named `unseen` that threads read and write only for this purpose.
//!
//! If the only thread that can have written is the reader itself, and no other thread ever accesses the memory, the write
//! is an ordinary step of the reader.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{HashMap, HashSet};
use foresee_trace::VarId;

/// Consecutive records of one thread.
#[derive(Clone, Copy, Debug)]
struct Tenure {
    /// When it begins.
    clock: u32,
    /// How many records the thread had before.
    place: u32,
}

/// What a thread has done so far.
#[derive(Clone, Debug, Default)]
struct Past {
    tenures: Vec<Tenure>,
    /// How many records it has.
    place: u32,
    /// When it did its last record.
    last: u32,
    /// The token was taken from it: it may run without it.
    is_outside: bool,
    /// The place of the wait that it is in.
    wait: Option<u32>,
    /// Another thread has joined it.
    is_over: bool,
}

impl Past {
    /// The tenure that a time lies in or behind.
    fn tenure_at(&self, clock: u32) -> Option<usize> {
        self.tenures.partition_point(|tenure| tenure.clock <= clock).checked_sub(1)
    }

    /// How many records the thread had when a tenure was over.
    fn place_after(&self, tenure: usize) -> u32 {
        self.tenures.get(tenure + 1).map_or(self.place, |next| next.place)
    }

    /// The place of its first record after a time.
    fn place_at(&self, clock: u32) -> u32 {
        match self.tenure_at(clock) {
            Some(at) => {
                let Tenure { clock: start, place } = self.tenures[at];
                (place + (clock - start) + 1).min(self.place_after(at))
            }
            None => 0,
        }
    }

    /// Whether the record of this time is one of the thread's.
    fn has(&self, clock: u32) -> bool {
        self.tenure_at(clock).is_some_and(|at| {
            let Tenure { clock: start, place } = self.tenures[at];
            clock - start < self.place_after(at) - place
        })
    }
}

/// Which thread ran when. Time is the number of counted records so far.
#[derive(Debug, Default)]
pub(super) struct History {
    /// By the numbers of threads.
    threads: Vec<Past>,
    clock: u32,
    current: u32,
}

/// A thread that may have made an unseen write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) thread: u32,
    /// The place of its first record since the memory was last known.
    first: u32,
    /// The place of the wait it was in when the write was seen, if it was in one.
    pub(super) wait: Option<u32>,
    /// Another thread has joined it. That thread is another candidate or the reader, and comes after
    /// it.
    pub(super) is_over: bool,
}

impl History {
    fn past(&mut self, thread: u32) -> &mut Past {
        let index = thread as usize;
        if index >= self.threads.len() {
            self.threads.resize(index + 1, Past::default());
        }
        &mut self.threads[index]
    }

    /// The time now: that of the latest record.
    pub(super) fn now(&self) -> u32 {
        self.clock
    }

    /// When a thread did its latest record.
    pub(super) fn last_of(&self, thread: u32) -> u32 {
        self.threads.get(thread as usize).map_or(0, |past| past.last)
    }

    /// The next record is of this thread. There is no room for more than four billion of them.
    #[inline]
    pub(super) fn step(&mut self, thread: u32) {
        self.steps(thread, 1);
    }

    /// The next records are of this thread.
    pub(super) fn steps(&mut self, thread: u32, count: u32) {
        let first = self.clock.saturating_add(1);
        let last = self.clock.saturating_add(count);
        self.clock = last;
        let is_new = self.current != thread;
        self.current = thread;
        let past = self.past(thread);
        if is_new {
            past.tenures.push(Tenure { clock: first, place: past.place });
        }
        past.place += count;
        past.last = last;
        past.is_outside = false;
    }

    /// The token was taken from a thread.
    pub(super) fn took(&mut self, from: u32) {
        self.past(from).is_outside = true;
    }

    /// A thread begins to wait with its latest record.
    pub(super) fn wait(&mut self, thread: u32) {
        let past = self.past(thread);
        past.wait = past.place.checked_sub(1);
    }

    /// A thread returns from its wait.
    pub(super) fn woken(&mut self, thread: u32) {
        self.past(thread).wait = None;
    }

    pub(super) fn is_waiting(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|past| past.wait.is_some())
    }

    /// Another thread has joined a thread.
    pub(super) fn joined(&mut self, thread: u32) {
        self.past(thread).is_over = true;
    }

    /// The threads other than the reader that may have written memory since it was `known`.
    pub(super) fn candidates(&self, known: u32, reader: u32) -> Vec<Candidate> {
        let is_one = |past: &Past| past.last >= known || past.is_outside;
        let all = self.threads.iter().enumerate().skip(1);
        all.filter(|&(thread, past)| thread as u32 != reader && past.place > 0 && is_one(past))
            .map(|(thread, past)| Candidate {
                thread: thread as u32,
                first: past.place_at(known),
                wait: past.wait,
                is_over: past.is_over,
            })
            .collect()
    }

    /// Whether only the reader can have written memory since it was `known`.
    pub(super) fn is_own(&self, known: u32, reader: u32) -> bool {
        let has = |past: &Past| past.has(known);
        // Before the first record, no thread ran.
        let is_readers = known == 0 || self.threads.get(reader as usize).is_some_and(has);
        is_readers && self.candidates(known, reader).is_empty()
    }

    /// The place of the reader's first record since then.
    pub(super) fn first(&self, known: u32, reader: u32) -> u32 {
        self.threads.get(reader as usize).map_or(0, |past| past.place_at(known))
    }
}

/// A read that saw an unseen write.
#[derive(Clone, Debug)]
pub(super) struct Hidden {
    pub(super) var: VarId,
    /// The eight bytes it is in, and where among them.
    pub(super) granule: u64,
    pub(super) offset: u8,
    /// When the memory was last known, and whether it was touched then, or new.
    pub(super) known: u32,
    pub(super) is_touched: bool,
    /// When it was read.
    pub(super) read: u32,
    pub(super) reader: u32,
    /// The place of the reader's first record since.
    pub(super) first: u32,
    /// The other threads that may have written; empty if it was certainly the reader.
    pub(super) candidates: Vec<Candidate>,
    /// It is a step of the reader, if no other thread accesses the memory.
    pub(super) is_own: bool,
}

/// Where order must be kept because of unseen writes. It is known after a log has been read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// When memory was touched that is written unseen next, and which, in the order of time.
    known: Vec<(u32, u64, u8)>,
    /// Places of threads that come after what was known.
    first: BTreeSet<(u32, u32)>,
    /// Waits that a read has to come after.
    waits: HashSet<(u32, u32)>,
    /// Memory that is written unseen at some time: by eight bytes, a bit for the first byte of each cell.
    cells: HashMap<u64, u8>,
    /// The reads, by time and memory: whom they come after.
    reads: HashMap<(u32, u64, u8), Vec<Candidate>>,
}

impl Plan {
    /// A plan for all unseen writes but those that are their readers' own. `is_shared` says whether more than one thread
    /// touches a variable.
    pub(super) fn new(hidden: &[Hidden], is_shared: impl Fn(VarId) -> bool) -> Plan {
        let mut plan = Plan::default();
        for hidden in hidden.iter().filter(|h| !h.is_own || is_shared(h.var)) {
            let at = (hidden.granule, hidden.offset);
            *plan.cells.entry(at.0).or_default() |= 1 << at.1;
            if hidden.is_touched {
                plan.known.push((hidden.known, at.0, at.1));
                plan.first.insert((hidden.reader, hidden.first));
                plan.first.extend(hidden.candidates.iter().map(|c| (c.thread, c.first)));
            }
            let running = hidden.candidates.iter().filter(|c| !c.is_over);
            let waits = running.filter_map(|c| Some((c.thread, c.wait?)));
            plan.waits.extend(waits);
            plan.reads.insert((hidden.read, at.0, at.1), hidden.candidates.clone());
        }
        // Stable, so that the order among those of one time is that of the reads.
        plan.known.sort_by_key(|known| known.0);
        plan
    }

    /// Whether there is memory left, from `next` on, that had been touched by this time.
    #[inline]
    pub(super) fn has_known(&self, clock: u32, next: usize) -> bool {
        self.known.get(next).is_some_and(|known| known.0 <= clock)
    }

    /// Memory that is written unseen after the record of this time has touched it. `next` is where to
    /// look; times only grow.
    pub(super) fn known_at(&self, clock: u32, next: &mut usize) -> &[(u32, u64, u8)] {
        let rest = &self.known[*next..];
        let from = rest.partition_point(|known| known.0 < clock);
        let to = rest.partition_point(|known| known.0 <= clock);
        *next += to;
        &rest[from..to]
    }

    /// The place of a thread's first record, from this one on, that comes after what was known.
    pub(super) fn next_after(&self, thread: u32, place: u32) -> u32 {
        let mut first = self.first.range((thread, place)..=(thread, u32::MAX));
        first.next().map_or(u32::MAX, |&(_, place)| place)
    }

    /// Whether no order must be kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Whether a read has to come after this wait's beginning.
    pub(super) fn marks_wait(&self, thread: u32, place: u32) -> bool {
        self.waits.contains(&(thread, place))
    }

    /// Which cells of eight bytes are written unseen at some time, by their first bytes.
    pub(super) fn unseen(&self, granule: u64) -> u8 {
        self.cells.get(&granule).copied().unwrap_or(0)
    }

    /// The threads that a read of an unseen write comes after; `None` if the write is the reader's own step.
    pub(super) fn read(&self, clock: u32, granule: u64, offset: u8) -> Option<&[Candidate]> {
        self.reads.get(&(clock, granule, offset)).map(Vec::as_slice)
    }
}

/// The stacks of threads. Another thread can write to a stack only if it knows an address in it, so a stack belongs to its
/// thread alone until another thread reads such an address or is started with one.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    /// In the order of their addresses.
    stacks: Vec<Stack>,
    /// All lie between these.
    low: u64,
    high: u64,
    /// The latest stack that was found, and the latest addresses between two stacks.
    latest: usize,
    gap: Range<u64>,
    /// For each thread, times of calls and below which address nothing was in use then. An earlier call that says no more
    /// than a later one is left out, so the addresses fall.
    calls: HashMap<u32, Vec<(u32, u64)>>,
}

/// The stack of a thread.
#[derive(Clone, Copy, Debug)]
struct Stack {
    low: u64,
    end: u64,
    thread: u32,
    /// Whether others may know of it.
    is_known: bool,
}

impl Stacks {
    /// A thread begins, with this stack.
    pub(super) fn add(&mut self, thread: u32, low: u64, size: u64) {
        if size == 0 {
            return;
        }
        let end = low.saturating_add(size);
        self.stacks.retain(|stack| stack.end <= low || stack.low >= end);
        self.low = if self.stacks.is_empty() { low } else { self.low.min(low) };
        self.high = self.high.max(end);
        self.gap = 0..0;
        let at = self.stacks.partition_point(|stack| stack.end <= low);
        self.stacks.insert(at, Stack { low, end, thread, is_known: false });
        self.calls.remove(&thread);
    }

    /// A thread is in a function that it was not in before. When that began, nothing below this address was in use.
    pub(super) fn called(&mut self, thread: u32, below: u64, now: u32) {
        let calls = self.calls.entry(thread).or_default();
        while calls.last().is_some_and(|last| last.1 <= below) {
            calls.pop();
        }
        calls.push((now, below));
    }

    /// Whether memory on a thread's own stack was not in use at some time since it was `known`. What it held then is gone, and
    /// what is there now is not what another thread has written to a variable.
    pub(super) fn is_left_over(&mut self, thread: u32, address: u64, known: u32) -> bool {
        if self.of(address) != Some(thread) {
            return false;
        }
        let calls = self.calls.get(&thread).map_or(&[][..], Vec::as_slice);
        let since = calls.partition_point(|call| call.0 < known);
        calls.get(since).is_some_and(|call| address < call.1)
    }

    /// The stack that an address lies in. Mostly it is that of an address before, or none, as before.
    #[inline]
    fn find(&mut self, address: u64) -> Option<&mut Stack> {
        // One comparison each, because this is asked for every access.
        let is_within = |range: &Range<u64>| {
            address.wrapping_sub(range.start) < range.end.wrapping_sub(range.start)
        };
        if !is_within(&(self.low..self.high)) || is_within(&self.gap) {
            return None;
        }
        let is_in = |stack: &Stack| is_within(&(stack.low..stack.end));
        if !self.stacks.get(self.latest).is_some_and(is_in) && !self.search(address) {
            return None;
        }
        self.stacks.get_mut(self.latest)
    }

    /// The thread on whose stack an address is.
    pub(super) fn of(&mut self, address: u64) -> Option<u32> {
        self.find(address).map(|stack| stack.thread)
    }

    /// Finds the stack that an address lies in, or the gap.
    #[cold]
    fn search(&mut self, address: u64) -> bool {
        let at = self.stacks.partition_point(|stack| stack.end <= address);
        let next = self.stacks.get(at);
        if next.is_some_and(|stack| stack.low <= address) {
            self.latest = at;
            return true;
        }
        let before = at.checked_sub(1).and_then(|at| self.stacks.get(at));
        self.gap = before.map_or(0, |stack| stack.end)..next.map_or(u64::MAX, |stack| stack.low);
        false
    }

    /// A thread learns of an address.
    #[inline]
    pub(super) fn learnt(&mut self, thread: u32, address: u64) {
        if let Some(stack) = self.find(address).filter(|stack| stack.thread != thread) {
            stack.is_known = true;
        }
    }

    /// Whether an address is in the stack of another thread.
    #[inline]
    pub(super) fn is_of_another(&mut self, thread: u32, address: u64) -> bool {
        self.find(address).is_some_and(|stack| stack.thread != thread)
    }

    /// Whether an address is in the stack of a thread and no other thread knows of it.
    pub(super) fn is_own(&mut self, thread: u32, address: u64) -> bool {
        self.find(address).is_some_and(|stack| stack.thread == thread && !stack.is_known)
    }
}

/// What the program's own variables held before any hook.
#[derive(Debug, Default)]
pub(super) struct Data {
    /// Where variables lie, and since when they hold this.
    ranges: Vec<(u64, u64, u32)>,
    /// By their addresses, the eight bytes that are not zero.
    bytes: HashMap<u64, [u8; 8]>,
}

impl Data {
    pub(super) fn add(&mut self, from: u64, size: u64, since: u32) {
        self.ranges.push((from, from.saturating_add(size), since));
    }

    pub(super) fn set(&mut self, from: u64, bytes: &[u8]) {
        let words = bytes.as_chunks::<8>().0.iter();
        self.bytes.extend((from..).step_by(8).zip(words.copied()));
    }

    /// Whether some of them lie in a range of addresses.
    pub(super) fn is_in(&self, range: &Range<u64>) -> bool {
        self.ranges.iter().any(|&(from, to, _)| from < range.end && range.start < to)
    }

    /// What eight bytes hold, and since when.
    pub(super) fn holds(&self, address: u64) -> Option<([u8; 8], u32)> {
        let is_within = |range: &&(u64, u64, u32)| (range.0..range.1).contains(&address);
        let &(_, _, since) = self.ranges.iter().find(is_within)?;
        Some((self.bytes.get(&address).copied().unwrap_or_default(), since))
    }
}
