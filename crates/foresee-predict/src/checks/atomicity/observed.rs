//! Whether the regions of the observed order are serialisable, as it is read.
//!
//! Clocks over transactions, as in AeroDrome (Mathur and Viswanathan, 2020): a clock counts, for
//! each thread, the regions that come before by way of conflicts and of the order of threads. A
//! region that learns that it comes before itself is in a cycle. What a region learns after others
//! have built on it counts for them as well, so when it ends its clock is handed to everything that
//! has seen a part of it.
//!
//! Locks are no conflicts here: two regions that take a lock in turn, but touch different variables
//! under it, disturb nobody.

use foresee_causality::{Clock, ClockStore};
use foresee_trace::{Event, Id, ThreadId, entry};

use super::regions::Change;

/// A region that is in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The thread whose region it is.
    pub(crate) thread: u32,
    /// The event that shows it: the cycle is closed by then.
    pub(crate) event: u32,
}

/// No thread.
const NOBODY: u32 = u32::MAX;

#[derive(Debug, Default)]
struct Thread {
    clock: Clock,
    /// How many regions it has begun.
    regions: u32,
    is_open: bool,
    is_broken: bool,
    /// The threads whose open regions come before it, in part.
    sees: Vec<u32>,
    /// The variables whose clocks hold a part of its open region.
    marked: Vec<u32>,
}

#[derive(Debug)]
struct Variable {
    writer: u32,
    written: Clock,
    /// Who has read it since, and what they knew.
    reads: Vec<(u32, Clock)>,
}

impl Default for Variable {
    fn default() -> Self {
        Variable { writer: NOBODY, written: Clock::EMPTY, reads: Vec::new() }
    }
}

/// Follows the observed order.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    store: ClockStore,
    threads: Vec<Thread>,
    open: Vec<u32>,
    variables: Vec<Variable>,
    /// Whether there has been a region at all.
    has_regions: bool,
}

impl Observed {
    /// Takes the next event. `broken` gets the regions that it shows to be in a cycle, each region
    /// once.
    pub(crate) fn event(
        &mut self,
        i: u32,
        event: &Event,
        change: Change,
        broken: &mut impl FnMut(Broken),
    ) {
        let t = event.thread();
        match change {
            Change::Begins => self.begin(t),
            Change::Ends => self.end(t, i, broken),
            Change::None => {}
        }
        let op = event.op();
        if self.has_regions && (op.reads() || op.writes()) {
            self.access(i, event, broken);
        }
    }

    fn begin(&mut self, t: ThreadId) {
        self.has_regions = true;
        let thread = entry(&mut self.threads, t.index());
        thread.regions += 1;
        thread.is_open = true;
        thread.is_broken = false;
        thread.clock = self.store.learn(thread.clock, Clock::EMPTY, t, [thread.regions]);
        self.open.push(t.0);
    }

    fn has(store: &ClockStore, clock: Clock, t: u32, regions: u32) -> bool {
        store.get(clock, ThreadId(t))[0] >= regions
    }

    /// The thread gets to know a clock. Whether its own region comes before itself.
    fn learn(&mut self, t: u32, clock: Clock) -> bool {
        let Observed { store, threads, open, .. } = self;
        let thread = entry(threads, t as usize);
        let is_cycle = thread.is_open && Self::has(store, clock, t, thread.regions);
        let joined = store.join(thread.clock, clock);
        if joined != thread.clock {
            thread.clock = joined;
            thread.sees.clear();
            for &other in open.iter().filter(|&&other| other != t) {
                if Self::has(store, joined, other, threads[other as usize].regions) {
                    threads[t as usize].sees.push(other);
                }
            }
        }
        let thread = &mut self.threads[t as usize];
        let is_new = is_cycle && !thread.is_broken;
        thread.is_broken |= is_cycle;
        is_new
    }

    fn access(&mut self, i: u32, event: &Event, broken: &mut impl FnMut(Broken)) {
        let (t, op) = (event.thread().0, event.op());
        let x = event.var().index();
        let variable = entry(&mut self.variables, x);
        let (writer, written) = (variable.writer, variable.written);
        let mut is_new = false;
        if writer != t && writer != NOBODY {
            is_new |= self.learn(t, written);
        }
        if op.writes() {
            let mut reads = std::mem::take(&mut self.variables[x].reads);
            for &(_, clock) in reads.iter().filter(|&&(reader, _)| reader != t) {
                is_new |= self.learn(t, clock);
            }
            reads.clear();
            let clock = entry(&mut self.threads, t as usize).clock;
            self.variables[x] = Variable { writer: t, written: clock, reads };
        } else {
            let clock = entry(&mut self.threads, t as usize).clock;
            let reads = &mut self.variables[x].reads;
            match reads.iter_mut().find(|(reader, _)| *reader == t) {
                Some((_, known)) => *known = clock,
                None => reads.push((t, clock)),
            }
        }
        self.mark(t, x as u32);
        if is_new {
            broken(Broken { thread: t, event: i });
        }
        if self.store.is_worth_collecting(self.variables.len() * 2) {
            let threads = self.threads.iter().map(|t| t.clock);
            let variables = self.variables.iter();
            let kept = variables.flat_map(|v| v.reads.iter().map(|r| r.1).chain([v.written]));
            self.store.collect(threads.chain(kept));
        }
    }

    /// The variable's clock holds what the thread knows: parts of open regions.
    fn mark(&mut self, t: u32, x: u32) {
        for at in 0..=self.threads[t as usize].sees.len() {
            let seen = self.threads[t as usize].sees.get(at).copied().unwrap_or(t);
            let thread = &mut self.threads[seen as usize];
            if !thread.is_open || thread.marked.last() == Some(&x) {
                continue;
            }
            thread.marked.push(x);
            // Only so many are different.
            if thread.marked.len() > 64 && thread.marked.len() > 2 * self.variables.len() {
                thread.marked.sort_unstable();
                thread.marked.dedup();
            }
        }
    }

    /// The trace has ended, and with it all regions.
    pub(crate) fn finish(&mut self, last: u32, broken: &mut impl FnMut(Broken)) {
        for t in self.open.clone() {
            self.end(ThreadId(t), last, broken);
        }
    }

    fn end(&mut self, t: ThreadId, i: u32, broken: &mut impl FnMut(Broken)) {
        self.open.retain(|&open| open != t.0);
        let thread = entry(&mut self.threads, t.index());
        thread.is_open = false;
        let (clock, regions) = (thread.clock, thread.regions);
        let marked = std::mem::take(&mut thread.marked);
        for u in 0..self.threads.len() as u32 {
            if u != t.0 && Self::has(&self.store, self.threads[u as usize].clock, t.0, regions) {
                self.threads[u as usize].sees.retain(|&seen| seen != t.0);
                if self.learn(u, clock) {
                    broken(Broken { thread: u, event: i });
                }
            }
        }
        // Others whose open regions the clock has parts of see these variables now.
        let seen: Vec<u32> = self.threads[t.index()].sees.clone();
        for x in marked {
            let variable = &mut self.variables[x as usize];
            let clocks = variable.reads.iter_mut().map(|r| &mut r.1);
            for known in clocks.chain([&mut variable.written]) {
                if Self::has(&self.store, *known, t.0, regions) {
                    *known = self.store.join(*known, clock);
                }
            }
            for &other in &seen {
                let other = &mut self.threads[other as usize];
                if other.is_open && other.marked.last() != Some(&x) {
                    other.marked.push(x);
                }
            }
        }
    }
}
