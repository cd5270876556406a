//! Which regions the observed order breaks, as it is read.
//!
//! A region is broken if one of its accesses makes it come after itself: the access follows, by a
//! conflict, an event that nothing earlier in its thread follows, and that belongs to a transaction
//! which by then, by way of conflicts and of the order of threads, comes after the region. So
//! something lies between two of its own accesses that must come between them, as long as other
//! regions are taken as a whole. These are part of the cycle, too, but are not broken as long as
//! nothing came between their own parts.
//!
//! Clocks over transactions find this, as in AeroDrome (Mathur and Viswanathan, 2020): a clock
//! counts, for each thread, the regions that come before. Other clocks count accesses, and know which
//! of them come before an event as such. What a region learns after others have
//! built on it counts for them as well: while it is open, whoever asks looks at what it knows by
//! now, and when it ends its clock is handed to everything that has seen a part of it.
//!
//! Locks are no conflicts here: two regions that take a lock in turn, but touch different variables
//! under it, do not disturb each other.

use foresee_causality::{Clock, ClockStore};
use foresee_trace::{Event, Id, ThreadId, entry};

use super::regions::Change;

/// A region that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// The thread whose region it is.
    pub(crate) thread: u32,
    /// Its first access that comes after what came after the region.
    pub(crate) event: u32,
}

#[derive(Debug, Default)]
struct Thread {
    clock: Clock,
    /// The accesses that come before its next event.
    events: Clock,
    /// How many accesses it has made.
    accesses: u32,
    /// How many regions it has begun.
    regions: u32,
    is_open: bool,
    is_broken: bool,
    /// The threads whose open regions come before it, in part.
    sees: Vec<u32>,
    /// The variables whose clocks hold a part of its open region.
    marked: Vec<u32>,
}

/// An access, and what its thread knew.
#[derive(Clone, Copy, Debug)]
struct Access {
    thread: u32,
    /// Which of the accesses of its thread it is.
    time: u32,
    clock: Clock,
    events: Clock,
}

#[derive(Debug, Default)]
struct Variable {
    written: Option<Access>,
    /// The reads since then: the last one of each thread.
    reads: Vec<Access>,
}

/// Follows the observed order.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// Clocks of regions.
    store: ClockStore,
    /// Clocks of accesses.
    events: ClockStore,
    threads: Vec<Thread>,
    open: Vec<u32>,
    variables: Vec<Variable>,
    /// Whether there has been a region at all.
    has_regions: bool,
}

impl Observed {
    /// Takes the next event. `broken` gets the region that it breaks, each region once.
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
            Change::Ends => self.end(t),
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

    /// What a clock knows, together with what the open regions that it has parts of know by now.
    fn with_open(&mut self, t: u32, mut clock: Clock) -> Clock {
        let Observed { store, threads, open, .. } = self;
        loop {
            let before = clock;
            for &other in open.iter().filter(|&&other| other != t) {
                let other_thread = &threads[other as usize];
                if Self::has(store, clock, other, other_thread.regions) {
                    clock = store.join(clock, other_thread.clock);
                }
            }
            if clock == before {
                return clock;
            }
        }
    }

    /// The thread gets to know a clock.
    fn learn(&mut self, t: u32, clock: Clock) {
        let Observed { store, threads, open, .. } = self;
        let thread = entry(threads, t as usize);
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
    }

    /// An access of the thread follows another one. Whether that breaks its region.
    fn follow(&mut self, t: u32, other: &Access) -> bool {
        let clock = self.with_open(t, other.clock);
        let thread = &mut self.threads[t as usize];
        let is_broken = thread.is_open && Self::has(&self.store, clock, t, thread.regions);
        thread.events = self.events.join(thread.events, other.events);
        self.learn(t, clock);
        is_broken
    }

    fn access(&mut self, i: u32, event: &Event, broken: &mut impl FnMut(Broken)) {
        let (t, op) = (event.thread().0, event.op());
        let x = event.var().index();
        // The thread knows of all accesses before its own latest one.
        let known = entry(&mut self.threads, t as usize).events;
        let variable = entry(&mut self.variables, x);
        let written = variable.written;
        let mut reads = if op.writes() { std::mem::take(&mut variable.reads) } else { Vec::new() };
        let mut is_broken = false;
        for other in written.iter().chain(&reads).filter(|other| other.thread != t) {
            let is_new = !Self::has(&self.events, known, other.thread, other.time);
            is_broken |= self.follow(t, other) && is_new;
        }
        let thread = &mut self.threads[t as usize];
        thread.accesses += 1;
        let own = [thread.accesses];
        thread.events = self.events.learn(thread.events, Clock::EMPTY, event.thread(), own);
        let Thread { clock, events, accesses: time, .. } = *thread;
        let access = Access { thread: t, time, clock, events };
        if op.writes() {
            reads.clear();
            self.variables[x] = Variable { written: Some(access), reads };
        } else {
            let reads = &mut self.variables[x].reads;
            match reads.iter_mut().find(|read| read.thread == t) {
                Some(known) => *known = access,
                None => reads.push(access),
            }
        }
        self.mark(t, x as u32);
        if is_broken && !std::mem::replace(&mut self.threads[t as usize].is_broken, true) {
            broken(Broken { thread: t, event: i });
        }
        self.collect();
    }

    /// Drops clocks that nothing refers to.
    fn collect(&mut self) {
        let kept = self.variables.len() * 2;
        let all = || self.variables.iter().flat_map(|v| v.written.iter().chain(&v.reads));
        if self.store.is_worth_collecting(kept) {
            let threads = self.threads.iter().map(|t| t.clock);
            self.store.collect(threads.chain(all().map(|access| access.clock)));
        }
        if self.events.is_worth_collecting(kept) {
            let threads = self.threads.iter().map(|t| t.events);
            self.events.collect(threads.chain(all().map(|access| access.events)));
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
            // There are only this many different ones.
            if thread.marked.len() > 64 && thread.marked.len() > 2 * self.variables.len() {
                thread.marked.sort_unstable();
                thread.marked.dedup();
            }
        }
    }

    fn end(&mut self, t: ThreadId) {
        self.open.retain(|&open| open != t.0);
        let thread = entry(&mut self.threads, t.index());
        thread.is_open = false;
        let (clock, regions) = (thread.clock, thread.regions);
        let marked = std::mem::take(&mut thread.marked);
        for u in 0..self.threads.len() as u32 {
            if u != t.0 && Self::has(&self.store, self.threads[u as usize].clock, t.0, regions) {
                self.threads[u as usize].sees.retain(|&seen| seen != t.0);
                self.learn(u, clock);
            }
        }
        // Others whose open regions the clock has parts of see these variables now.
        let seen: Vec<u32> = self.threads[t.index()].sees.clone();
        for x in marked {
            let variable = &mut self.variables[x as usize];
            let accesses = variable.reads.iter_mut().chain(&mut variable.written);
            for known in accesses.map(|access| &mut access.clock) {
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
