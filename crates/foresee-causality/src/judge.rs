//! The judge of witnesses: could the threads of a trace really have run in this order?
//!
//! An order is replayed, event by event, on an imagined machine with exclusive locks and memory.
//! The judge knows no clocks, no slices and no lattices: what a search gets wrong it rejects. One
//! judge serves every search, because a run that keeps the causality of the trace is a correct
//! reordering that, besides, keeps the order of operations on each variable and each lock.
//!
//! In a *correct reordering* each thread takes its own events in their order, up to some point;
//! locks exclude each other; fork, join and notification keep their sides; and every read sees the
//! write that it saw in the trace. Then each thread was told what it was told in the trace, so it
//! does what it did there. Sections of a lock may come in another order, and what is not needed may
//! not have happened yet.
//!
//! With [`Reads::Terminal`] the last event of a thread may also be a read that sees another write:
//! the read happens, and nothing is claimed of what the thread does with what it saw. A
//! read-modify-write always keeps its writer, since it would leave another value behind.

pub mod language;
mod notes;

use std::collections::HashMap;
use std::sync::OnceLock;

use foresee_trace::{Event, Id, LockId, Op, ThreadId, Trace, VarId, entry};

use crate::order::Wakeups;
pub use notes::check_notes;

/// What reads may see in a correct reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// Only the write that they saw in the trace.
    Strict,
    /// The last event of a thread may be a read that sees any write.
    #[default]
    Terminal,
}

/// A set of orders that the threads of a trace could have run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The beginnings of linearisations of the Mazurkiewicz order.
    Mazurkiewicz,
    /// The correct reorderings.
    Correct(Reads),
}

/// Why an order is none that the threads could have run in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("position {position}: {reason}")]
pub struct Rejected {
    /// Where in the order.
    pub position: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// A read that sees another write than in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedRead {
    /// The read.
    pub read: u64,
    /// The write that it saw in the trace; nothing for the initial value.
    pub saw: Option<u64>,
    /// The write that it sees now.
    pub sees: Option<u64>,
}

/// Judges orders of the events of one trace, each in time linear in the trace.
#[derive(Debug)]
pub struct Judge<'t> {
    trace: &'t Trace,
    facts: Vec<Fact>,
    /// Only where the causality is kept, so found out when it is first asked for.
    turns: OnceLock<Vec<Turn>>,
    needs: HashMap<u32, Needs>,
}

/// No event.
const NONE: u32 = u32::MAX;

/// What the trace says of most events.
#[derive(Clone, Copy, Debug)]
struct Fact {
    /// The event before it in its thread.
    previous: u32,
    /// The write that a read saw.
    writer: u32,
}

/// When it is an event's turn on its variable or lock.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// How many writes of the variable, or operations of the lock, there were before it.
    place: u32,
    /// For a write, how many reads there were since the write before it.
    reads: u32,
}

impl Turn {
    /// Those of all events.
    fn all(events: &[Event]) -> Vec<Turn> {
        // For each variable the number of writes, and that of reads since; for each lock that of
        // operations.
        let mut vars: Vec<(u32, u32)> = Vec::new();
        let mut locks: Vec<u32> = Vec::new();
        let turn = |event: &Event| {
            let mut turn = Turn::default();
            if event.op() == Op::Init {
                return turn;
            }
            let taken = found_taken(event).map(|(lock, _)| lock);
            if let Some(lock) = taken.or(lock_of(event).map(|(lock, ..)| lock)) {
                let count = entry(&mut locks, lock.index());
                turn.place = *count;
                *count += 1;
            }
            if event.op().reads() || event.op().writes() {
                let (writes, reads) = entry(&mut vars, event.var().index());
                turn.place = *writes;
                if event.op().writes() {
                    turn.reads = std::mem::take(reads);
                    *writes += 1;
                } else {
                    *reads += 1;
                }
            }
            turn
        };
        events.iter().map(turn).collect()
    }
}

/// What else some events wait for.
#[derive(Debug, Default)]
struct Needs {
    /// For the first event of a thread, its fork.
    fork: Option<u32>,
    /// In every order, besides: the end of a joined thread, the notification of a wait, the section
    /// that makes a try-lock fail.
    all: Vec<u32>,
    /// Where the causality is kept, besides: the beginnings of waits that a notification could end.
    causal: Vec<u32>,
    /// For the end of a wait, the beginning and the notification, which had to find it waiting.
    wait: Option<(u32, u32)>,
    /// For a failed try-lock, the end of the section that was in its way.
    until: Option<u32>,
}

/// A section that has begun in the trace and not ended: whose it is, whether it is shared, where
/// it began, and which try-locks have failed because of it.
struct Open {
    thread: ThreadId,
    shared: bool,
    begin: u32,
    failed: Vec<u32>,
}

/// The lock that an event found taken, and whether it would have shared it.
fn found_taken(event: &Event) -> Option<(LockId, bool)> {
    match event.op() {
        Op::Busy => Some((event.lock(), false)),
        Op::BusyShared => Some((event.lock(), true)),
        _ => None,
    }
}

/// The lock that an event takes or gives back, whether it is shared, and whether it is taken.
fn lock_of(event: &Event) -> Option<(LockId, bool, bool)> {
    match event.op() {
        Op::Acquire => Some((event.lock(), false, true)),
        Op::Release => Some((event.lock(), false, false)),
        Op::AcquireShared => Some((event.lock(), true, true)),
        Op::ReleaseShared => Some((event.lock(), true, false)),
        Op::WaitEnd => event.wait_lock().map(|lock| (lock, false, true)),
        Op::WaitBegin => event.wait_lock().map(|lock| (lock, false, false)),
        _ => None,
    }
}

impl<'t> Judge<'t> {
    /// Learns what happened in a well-formed trace.
    ///
    /// # Panics
    /// If the trace has more than four billion events.
    pub fn new(trace: &'t Trace) -> Judge<'t> {
        assert!(trace.events.len() < NONE as usize, "a trace in memory has fewer events than that");
        let mut facts = Vec::with_capacity(trace.events.len());
        let mut needs: HashMap<u32, Needs> = HashMap::new();
        let mut last: Vec<Option<u32>> = Vec::new();
        let mut forks: Vec<Option<u32>> = Vec::new();
        // For each variable the last write.
        let mut writes: Vec<Option<u32>> = Vec::new();
        // For each lock the sections that are open.
        let mut locks: Vec<Vec<Open>> = Vec::new();
        // Which notification ended which wait is a matter of definition, so it is shared.
        let mut wakeups = Wakeups::default();
        for (i, event) in trace.events.iter().enumerate() {
            let i = i as u32;
            let (op, t) = (event.op(), event.thread());
            let mut fact = Fact { previous: NONE, writer: NONE };
            if op == Op::Init {
                facts.push(fact);
                continue;
            }
            match entry(&mut last, t.index()).replace(i) {
                Some(previous) => fact.previous = previous,
                None => {
                    if let Some(fork) = *entry(&mut forks, t.index()) {
                        needs.entry(i).or_default().fork = Some(fork);
                    }
                }
            }
            if let Some((lock, shared, taken)) = lock_of(event) {
                let open = entry(&mut locks, lock.index());
                let of_thread = |o: &Open| o.thread == t && o.shared == shared;
                if taken {
                    open.push(Open { thread: t, shared, begin: i, failed: Vec::new() });
                } else if let Some(at) = open.iter().position(of_thread) {
                    for failed in open.remove(at).failed {
                        needs.entry(failed).or_default().until = Some(i);
                    }
                }
            }
            if let Some((lock, shared)) = found_taken(event) {
                let open = entry(&mut locks, lock.index());
                let in_the_way = |o: &&mut Open| o.thread != t && !(shared && o.shared);
                // They stand in the order in which they began.
                if let Some(section) = open.iter_mut().find(in_the_way) {
                    needs.entry(i).or_default().all.push(section.begin);
                    section.failed.push(i);
                }
            }
            if op.reads() || op.writes() {
                let write = entry(&mut writes, event.var().index());
                if op.reads() {
                    fact.writer = write.unwrap_or(NONE);
                }
                if op.writes() {
                    *write = Some(i);
                }
            }
            match op {
                Op::Fork => *entry(&mut forks, event.other().index()) = Some(i),
                Op::Join => {
                    let other = event.other().index();
                    let ends = [*entry(&mut forks, other), *entry(&mut last, other)];
                    needs.entry(i).or_default().all.extend(ends.into_iter().flatten());
                }
                Op::WaitBegin => wakeups.begin(event.cond(), t, i),
                Op::Notify | Op::NotifyAll => {
                    let begins = (0..).map_while(|w| wakeups.waiting(event.cond(), w));
                    needs.entry(i).or_default().causal.extend(begins);
                    wakeups.notify(event.cond(), i, op == Op::NotifyAll);
                }
                Op::WaitEnd => {
                    if let Some(notification) = wakeups.end(event.cond(), t) {
                        let need = needs.entry(i).or_default();
                        need.all.push(notification);
                        // A thread does nothing else while it waits.
                        need.wait = Some((fact.previous, notification));
                    }
                }
                Op::Wait => {
                    if let Some(notification) = wakeups.latest(event.cond()) {
                        needs.entry(i).or_default().all.push(notification);
                    }
                }
                _ => {}
            }
            facts.push(fact);
        }
        Judge { trace, facts, turns: OnceLock::new(), needs }
    }

    fn turn(&self, index: u32) -> Turn {
        self.turns.get_or_init(|| Turn::all(&self.trace.events))[index as usize]
    }

    /// Whether the threads could have run in this order. If so, the reads that see another write
    /// than in the trace. Initial values may be listed or left out.
    pub fn check(&self, order: &[u64], space: Space) -> Result<Vec<ChangedRead>, Rejected> {
        self.check_next(order, &[], space)
    }

    /// The same, and whether after this order each of the events `next` is the very next of its
    /// thread, so that the thread has made up its mind to do it. Whether it could do it at once is
    /// not asked: an acquire may find its lock taken, and a join its thread running.
    pub fn check_next(
        &self,
        order: &[u64],
        next: &[u64],
        space: Space,
    ) -> Result<Vec<ChangedRead>, Rejected> {
        let mut replay = Replay::new(self, space);
        replay.run(order, next)?;
        Ok(replay.changed)
    }
}

/// Judges many orders that begin as observed, each in time linear in what comes after that.
#[derive(Debug)]
pub struct Sitting<'j, 't> {
    replay: Replay<'j, 't>,
}

impl<'j, 't> Sitting<'j, 't> {
    /// Begins at the beginning of the trace.
    pub fn new(judge: &'j Judge<'t>, space: Space) -> Sitting<'j, 't> {
        let mut replay = Replay::new(judge, space);
        replay.journal = Some(Vec::new());
        Sitting { replay }
    }

    /// Whether the threads could have run as observed for so many events, and then in this order,
    /// so that each of the events `next` is the very next of its thread, as in
    /// [`Judge::check_next`]. If so, what the judge sees then is handed on.
    ///
    /// It is quickest for orders that come sorted by how many of their events are as observed.
    pub fn check_next<T>(
        &mut self,
        observed: u64,
        order: &[u64],
        next: &[u64],
        look: impl FnOnce(&Seen<'_>) -> T,
    ) -> Result<T, Rejected> {
        let replay = &mut self.replay;
        let trace = replay.judge.trace;
        if observed > trace.events.len() as u64 {
            return Err(Rejected { position: 0, reason: "there are not so many events" });
        }
        if observed < u64::from(replay.observed) {
            *replay = Replay::new(replay.judge, replay.space);
        }
        // What was observed is possible.
        replay.journal = None;
        for index in replay.observed..observed as u32 {
            let event = &trace.events[index as usize];
            replay.observed = index + 1;
            let as_observed = replay.acts(index, event);
            as_observed.map_err(|reason| Rejected { position: index as usize, reason })?;
        }
        replay.journal = Some(Vec::new());
        let judged = replay.run(order, next).map(|()| {
            let Replay { vars, locks, changed, .. } = &*replay;
            look(&Seen { vars, locks, changed })
        });
        replay.take_back();
        judged
    }
}

/// What the judge sees at the end of an order.
#[derive(Debug)]
pub struct Seen<'r> {
    vars: &'r [(Option<u32>, u32, u32)],
    locks: &'r [Lock],
    changed: &'r [ChangedRead],
}

impl Seen<'_> {
    /// The reads that saw another write than in the trace.
    pub fn changed_reads(&self) -> &[ChangedRead] {
        self.changed
    }

    /// Whether a thread has a lock, and if so whether it shares it.
    pub fn holds(&self, thread: ThreadId, lock: LockId) -> Option<bool> {
        let lock = self.locks.get(lock.index())?;
        match lock.owner == Some(thread) {
            true => Some(false),
            false => lock.readers.contains(&thread).then_some(true),
        }
    }

    /// The last write of a variable; nothing for its initial value.
    pub fn last_write(&self, variable: VarId) -> Option<u64> {
        self.vars.get(variable.index())?.0.map(u64::from)
    }
}

/// The imagined machine.
#[derive(Debug)]
struct Replay<'j, 't> {
    judge: &'j Judge<'t>,
    space: Space,
    /// So many events have happened as observed, besides those that are noted.
    observed: u32,
    /// For each event its position in the order, counted from one, or zero.
    happened: Vec<u32>,
    /// For each variable the last write, the number of writes, and that of reads since.
    vars: Vec<(Option<u32>, u32, u32)>,
    locks: Vec<Lock>,
    /// The threads whose last read saw another write.
    stopped: Vec<bool>,
    changed: Vec<ChangedRead>,
    /// What was before each change since the observed beginning, if it is to be taken back.
    journal: Option<Vec<Undo>>,
}

/// How something was before it changed.
#[derive(Debug)]
enum Undo {
    Happened(u32),
    Variable(u32, (Option<u32>, u32, u32)),
    Lock(u32, Lock),
    Stopped(u32),
}

#[derive(Clone, Debug, Default)]
struct Lock {
    owner: Option<ThreadId>,
    readers: Vec<ThreadId>,
    operations: u32,
}

impl<'j, 't> Replay<'j, 't> {
    fn new(judge: &'j Judge<'t>, space: Space) -> Self {
        Replay {
            judge,
            space,
            observed: 0,
            happened: vec![0; judge.trace.events.len()],
            vars: Vec::new(),
            locks: Vec::new(),
            stopped: Vec::new(),
            changed: Vec::new(),
            journal: None,
        }
    }

    fn run(&mut self, order: &[u64], next: &[u64]) -> Result<(), Rejected> {
        let events = &self.judge.trace.events;
        let get = |index: u64| usize::try_from(index).ok().and_then(|i| events.get(i));
        let first = self.observed as usize;
        for (i, &index) in order.iter().enumerate() {
            let position = first + i;
            let reject = |reason| Rejected { position, reason };
            let event = get(index).ok_or_else(|| reject("there is no such event"))?;
            self.step(position as u32, index as u32, event).map_err(reject)?;
        }
        let reject = |reason| Rejected { position: first + order.len(), reason };
        for &index in next {
            let event = get(index).ok_or_else(|| reject("there is no such event to come next"))?;
            self.is_next(index as u32, event).map_err(reject)?;
        }
        Ok(())
    }

    /// Back to the observed beginning.
    fn take_back(&mut self) {
        self.changed.clear();
        for undo in self.journal.take().into_iter().flatten().rev() {
            match undo {
                Undo::Happened(event) => self.happened[event as usize] = 0,
                Undo::Variable(variable, before) => self.vars[variable as usize] = before,
                Undo::Lock(lock, before) => self.locks[lock as usize] = before,
                Undo::Stopped(thread) => self.stopped[thread as usize] = false,
            }
        }
    }

    /// When an event happened, counted from one.
    fn when(&self, event: u32) -> u32 {
        if event < self.observed { event + 1 } else { self.happened[event as usize] }
    }

    fn has_happened(&self, event: u32) -> bool {
        self.when(event) > 0
    }

    fn step(&mut self, position: u32, index: u32, event: &Event) -> Result<(), &'static str> {
        if self.has_happened(index) {
            return Err("the event happens twice");
        }
        self.happened[index as usize] = position + 1;
        if let Some(journal) = &mut self.journal {
            journal.push(Undo::Happened(index));
        }
        if event.op() == Op::Init {
            return Ok(());
        }
        self.follows_its_needs(index, event)?;
        self.acts(index, event)
    }

    /// What an event does to its lock and its variable.
    fn acts(&mut self, index: u32, event: &Event) -> Result<(), &'static str> {
        self.uses_its_lock(index, event)?;
        self.accesses_its_variable(index, event)
    }

    fn follows_its_needs(&mut self, index: u32, event: &Event) -> Result<(), &'static str> {
        let fact = self.judge.facts[index as usize];
        if fact.previous != NONE && !self.has_happened(fact.previous) {
            return Err("an earlier event of the thread has not happened");
        }
        if *entry(&mut self.stopped, event.thread().index()) {
            return Err("the thread goes on after a read that saw another write");
        }
        if event.op() == Op::Join && *entry(&mut self.stopped, event.other().index()) {
            return Err("the end of a thread is waited for whose last read saw another write");
        }
        let Some(needs) = self.judge.needs.get(&index) else { return Ok(()) };
        if needs.fork.iter().chain(&needs.all).any(|&need| !self.has_happened(need)) {
            return Err("an event that it depends on has not happened");
        }
        if self.space == Space::Mazurkiewicz
            && needs.causal.iter().any(|&need| !self.has_happened(need))
        {
            return Err("a wait that it could have ended has not begun");
        }
        if needs.until.is_some_and(|end| self.has_happened(end)) {
            return Err("the lock that was not to be had has been given back");
        }
        match needs.wait {
            Some((begin, notification)) if self.when(begin) > self.when(notification) => {
                Err("the notification came before the wait that it ends")
            }
            _ => Ok(()),
        }
    }

    fn uses_its_lock(&mut self, index: u32, event: &Event) -> Result<(), &'static str> {
        let found_taken = found_taken(event).map(|(lock, _)| lock);
        let Some(lock) = found_taken.or(lock_of(event).map(|(lock, ..)| lock)) else {
            return Ok(());
        };
        let (t, number) = (event.thread(), lock.0);
        let lock = entry(&mut self.locks, lock.index());
        if let Some(journal) = &mut self.journal {
            journal.push(Undo::Lock(number, lock.clone()));
        }
        if self.space == Space::Mazurkiewicz && lock.operations != self.judge.turn(index).place {
            return Err("the operations of a lock come in another order");
        }
        lock.operations += 1;
        let Some((_, shared, taken)) = lock_of(event) else { return Ok(()) };
        let owned_by_other = lock.owner.is_some_and(|owner| owner != t);
        let possible = match (shared, taken) {
            (false, true) => !owned_by_other && lock.readers.iter().all(|&reader| reader == t),
            (true, true) => !owned_by_other,
            (false, false) => lock.owner == Some(t),
            (true, false) => lock.readers.contains(&t),
        };
        if !possible {
            return Err("the lock is in other hands");
        }
        match (shared, taken) {
            (false, true) => lock.owner = Some(t),
            (false, false) => lock.owner = None,
            (true, true) => lock.readers.push(t),
            (true, false) => lock.readers.retain(|&reader| reader != t),
        }
        Ok(())
    }

    fn accesses_its_variable(&mut self, index: u32, event: &Event) -> Result<(), &'static str> {
        let op = event.op();
        if !op.reads() && !op.writes() {
            return Ok(());
        }
        let fact = self.judge.facts[index as usize];
        let variable = entry(&mut self.vars, event.var().index());
        if let Some(journal) = &mut self.journal {
            journal.push(Undo::Variable(event.var().0, *variable));
        }
        let (write, writes, reads) = variable;
        if self.space == Space::Mazurkiewicz {
            let Turn { place, reads: before } = self.judge.turn(index);
            if *writes != place || op.writes() && *reads != before {
                return Err("conflicting accesses come in another order");
            }
        }
        let saw = Some(fact.writer).filter(|&writer| writer != NONE);
        if op.reads() && *write != saw {
            if self.space != Space::Correct(Reads::Terminal) || op == Op::Rmw {
                return Err("a read sees another write");
            }
            let (saw, sees) = (saw.map(u64::from), write.map(u64::from));
            self.changed.push(ChangedRead { read: index.into(), saw, sees });
            *entry(&mut self.stopped, event.thread().index()) = true;
            if let Some(journal) = &mut self.journal {
                journal.push(Undo::Stopped(event.thread().0));
            }
        }
        if op.writes() {
            *write = Some(index);
            *writes += 1;
            *reads = 0;
        } else {
            *reads += 1;
        }
        Ok(())
    }

    fn is_next(&mut self, index: u32, event: &Event) -> Result<(), &'static str> {
        if event.op() == Op::Init || self.has_happened(index) {
            return Err("an event that should come next has happened");
        }
        let previous = self.judge.facts[index as usize].previous;
        if previous != NONE && !self.has_happened(previous) {
            return Err("an event before the one that should come next has not happened");
        }
        if *entry(&mut self.stopped, event.thread().index()) {
            return Err("a thread should go on after a read that saw another write");
        }
        // What else it waits for may still be to come.
        let fork = self.judge.needs.get(&index).and_then(|needs| needs.fork);
        match fork.is_some_and(|fork| !self.has_happened(fork)) {
            true => Err("the thread of an event that should come next has not been started"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
