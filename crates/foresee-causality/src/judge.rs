//! The judge of witnesses: could the threads of a trace have run in this order?
//!
//! The judge replays an order, event by event, on a simulated machine with exclusive locks and
//! memory. It uses no clocks, slices or lattices, so it rejects what a search gets wrong. One judge
//! serves every search, because a run that preserves the causality of the trace is a correct
//! reordering that also preserves the order of operations on each variable and each lock.
//!
//! In a *correct reordering* each thread executes a prefix of its own events, in order; critical
//! sections of a lock exclude each other; fork, join and notification stay on their side; and every
//! read sees the write that it saw in the trace, or another write of the same value. Each thread
//! then gets the same inputs as in the trace, so it acts as it did there. Critical sections of a
//! lock may be swapped, and events that are not needed may be left out.
//!
//! Values are compared only if that of the read and that of the write are both known. The initial
//! value of a variable counts as a write; it is known from `init`, or from a read before any write.
//! A read whose value differs from the last write in the trace saw a write that is not in the
//! trace, so it must follow the same write as in the trace.
//!
//! With [`Reads::Terminal`] the last event of a thread may also be a read that sees another value:
//! the read happens, and the thread takes no further step. A read-modify-write always finds its
//! value, because it would otherwise write another one.

pub mod language;
mod notes;

use std::collections::HashMap;
use std::sync::OnceLock;

use foresee_trace::{Event, Id, LockId, Op, ThreadId, Trace, Value, VarId, entry};
use serde::{Deserialize, Serialize};

use crate::order::Wakeups;
pub use notes::check_notes;

/// What reads may see in a correct reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reads {
    /// Only the value that they saw in the trace.
    Strict,
    /// The last event of a thread may be a read that sees any value.
    #[default]
    Terminal,
    /// Any value, and all threads continue as in the trace. What such an order shows is conditional
    /// on the reads that see another value.
    Any,
}

/// Why the threads could not have run in an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("position {position}: {reason}")]
pub struct Rejected {
    /// The position in the order.
    pub position: usize,
    /// What is wrong at this position.
    pub reason: &'static str,
}

/// A read that sees a different value than in the trace, or one that may be different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedRead {
    /// The read.
    pub read: u64,
    /// The write that it saw in the trace; `None` for the initial value.
    pub saw: Option<u64>,
    /// The write that it sees now.
    pub sees: Option<u64>,
}

/// Judges orders of the events of one trace, each in time linear in the trace.
#[derive(Debug)]
pub struct Judge<'t> {
    trace: &'t Trace,
    facts: Vec<Fact>,
    /// Needed only if the causality is preserved, so computed on first use.
    turns: OnceLock<Vec<Turn>>,
    needs: HashMap<u32, Needs>,
    /// The values of variables before the first write, if known.
    initial: HashMap<VarId, Value>,
}

/// No event.
const NONE: u32 = u32::MAX;

/// What the trace determines for every event.
#[derive(Clone, Copy, Debug)]
struct Fact {
    /// The event before it in its thread.
    previous: u32,
    /// The write that a read saw.
    writer: u32,
}

/// When an event may access its variable or lock.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// The number of preceding writes of the variable, or operations on the lock.
    place: u32,
    /// For a write, the number of reads since the previous write.
    reads: u32,
}

impl Turn {
    /// The turns of all events.
    fn all(events: &[Event]) -> Vec<Turn> {
        // For each variable, the number of writes and of reads since; for each lock, the number of
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

/// What else some events depend on.
#[derive(Debug, Default)]
struct Needs {
    /// For the first event of a thread, its fork.
    fork: Option<u32>,
    /// In every order: also the end of a joined thread, the notification of a wait, the critical
    /// section that makes a try-lock fail.
    all: Vec<u32>,
    /// If the causality is preserved: also the beginnings of waits that a notification could end.
    causal: Vec<u32>,
    /// For the end of a wait: its beginning, and the notification, which must come after it.
    wait: Option<(u32, u32)>,
    /// For a failed try-lock: the end of the critical section that blocked it.
    until: Option<u32>,
}

/// A critical section that has begun in the trace and not ended: its thread, whether it is shared,
/// where it began, and which try-locks failed because of it.
struct Open {
    thread: ThreadId,
    shared: bool,
    begin: u32,
    failed: Vec<u32>,
}

/// The lock that an event failed to acquire, and whether it was to be shared.
fn found_taken(event: &Event) -> Option<(LockId, bool)> {
    match event.op() {
        Op::Busy => Some((event.lock(), false)),
        Op::BusyShared => Some((event.lock(), true)),
        _ => None,
    }
}

/// The lock that an event acquires or releases, whether it is shared, and whether it is acquired.
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
    /// Analyses a well-formed trace.
    ///
    /// # Panics
    /// If the trace has more than four billion events.
    pub fn new(trace: &'t Trace) -> Judge<'t> {
        assert!(trace.events.len() < NONE as usize, "a trace in memory has fewer events than that");
        let mut facts = Vec::with_capacity(trace.events.len());
        let mut needs: HashMap<u32, Needs> = HashMap::new();
        let mut last: Vec<Option<u32>> = Vec::new();
        let mut forks: Vec<Option<u32>> = Vec::new();
        // For each variable, the last write.
        let mut writes: Vec<Option<u32>> = Vec::new();
        // For each lock, the open critical sections.
        let mut locks: Vec<Vec<Open>> = Vec::new();
        let mut initial: HashMap<VarId, Value> = HashMap::new();
        // Which notification ended which wait is a matter of definition, so the judge shares that
        // code.
        let mut wakeups = Wakeups::default();
        for (i, event) in trace.events.iter().enumerate() {
            let i = i as u32;
            let (op, t) = (event.op(), event.thread());
            let mut fact = Fact { previous: NONE, writer: NONE };
            if op == Op::Init {
                initial.extend(trace.pool.value(event).map(|value| (event.var(), value)));
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
                // They are in the order in which they began.
                if let Some(section) = open.iter_mut().find(in_the_way) {
                    needs.entry(i).or_default().all.push(section.begin);
                    section.failed.push(i);
                }
            }
            if op.reads() || op.writes() {
                let write = entry(&mut writes, event.var().index());
                if op.reads() {
                    fact.writer = write.unwrap_or(NONE);
                    if let (None, Some(value)) = (*write, trace.pool.value_found(event)) {
                        initial.entry(event.var()).or_insert(value);
                    }
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
        Judge { trace, facts, turns: OnceLock::new(), needs, initial }
    }

    /// The value of a variable after a write, or before any, if it is known.
    pub fn value_after(&self, variable: VarId, write: Option<u64>) -> Option<Value> {
        match write {
            Some(write) => self.trace.pool.value_left(self.trace.events.get(write as usize)?),
            None => self.initial.get(&variable).copied(),
        }
    }

    /// Whether a read finds what it found in the trace: the same write, or one of the same value.
    fn finds_the_same(&self, index: u32, event: &Event, write: Option<u32>) -> bool {
        let saw = Some(self.facts[index as usize].writer).filter(|&writer| writer != NONE);
        if write == saw {
            return true;
        }
        let Some(value) = self.trace.pool.value_found(event).filter(|v| v.stands_for_itself())
        else {
            return false;
        };
        let left = |write: Option<u32>| self.value_after(event.var(), write.map(u64::from));
        left(saw).is_none_or(|left| left == value) && left(write) == Some(value)
    }

    fn turn(&self, index: u32) -> Turn {
        self.turns.get_or_init(|| Turn::all(&self.trace.events))[index as usize]
    }

    /// Checks whether an order is a correct reordering, in which the threads could have run;
    /// returns the reads that see another write than in the trace. Initial values may be listed or
    /// left out.
    pub fn check(&self, order: &[u64], reads: Reads) -> Result<Vec<ChangedRead>, Rejected> {
        self.check_next(order, &[], reads)
    }

    /// Checks whether an order is a prefix of a linearisation of the Mazurkiewicz order, in which
    /// every read sees the same write as in the trace.
    pub fn check_causality(&self, order: &[u64]) -> Result<(), Rejected> {
        let mut replay = Replay::new(self, Reads::Strict);
        replay.keeps_causality = true;
        replay.run(order, &[])
    }

    /// Like [`Judge::check`]; also checks that after this order each of the events `next` is the
    /// very next one of its thread, so that the thread is committed to it. Whether the event is
    /// possible at once is not checked: the lock of an acquire may be held, and the thread of a
    /// join may be running.
    pub fn check_next(
        &self,
        order: &[u64],
        next: &[u64],
        reads: Reads,
    ) -> Result<Vec<ChangedRead>, Rejected> {
        let mut replay = Replay::new(self, reads);
        replay.run(order, next)?;
        Ok(replay.changed)
    }
}

/// Judges many orders that begin as observed, each in time linear in the rest of the order.
#[derive(Debug)]
pub struct IncrementalReplay<'j, 't> {
    replay: Replay<'j, 't>,
}

impl<'j, 't> IncrementalReplay<'j, 't> {
    /// Starts at the beginning of the trace.
    pub fn new(judge: &'j Judge<'t>, reads: Reads) -> IncrementalReplay<'j, 't> {
        let mut replay = Replay::new(judge, reads);
        replay.journal = Some(Vec::new());
        IncrementalReplay { replay }
    }

    /// Checks whether the threads could have run as observed for `observed` events and then in this
    /// order, such that each of the events `next` is the very next one of its thread, as in
    /// [`Judge::check_next`]. If so, passes the final state to `inspect`.
    ///
    /// It is fastest for orders sorted by the number of their observed events.
    pub fn check_next<T>(
        &mut self,
        observed: u64,
        order: &[u64],
        next: &[u64],
        inspect: impl FnOnce(&Seen<'_>) -> T,
    ) -> Result<T, Rejected> {
        let replay = &mut self.replay;
        let trace = replay.judge.trace;
        if observed > trace.events.len() as u64 {
            return Err(Rejected { position: 0, reason: "the trace has fewer events" });
        }
        if observed < u64::from(replay.observed) {
            *replay = Replay::new(replay.judge, replay.reads);
        }
        // The observed run is possible.
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
            inspect(&Seen { vars, locks, changed })
        });
        replay.undo_all();
        judged
    }
}

/// The state of the machine at the end of an order.
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

    /// Whether a thread holds a lock, and if so whether it is shared.
    pub fn holds(&self, thread: ThreadId, lock: LockId) -> Option<bool> {
        let lock = self.locks.get(lock.index())?;
        match lock.owner == Some(thread) {
            true => Some(false),
            false => lock.readers.contains(&thread).then_some(true),
        }
    }

    /// The last write of a variable; `None` for its initial value.
    pub fn last_write(&self, variable: VarId) -> Option<u64> {
        self.vars.get(variable.index())?.0.map(u64::from)
    }
}

/// The simulated machine.
#[derive(Debug)]
struct Replay<'j, 't> {
    judge: &'j Judge<'t>,
    reads: Reads,
    /// Whether only linearisations of the Mazurkiewicz order are accepted.
    keeps_causality: bool,
    /// The number of events that have happened as observed, besides those in `happened`.
    observed: u32,
    /// For each event its position in the order, starting at one, or zero.
    happened: Vec<u32>,
    /// For each variable the last write, the number of writes, and the number of reads since.
    vars: Vec<(Option<u32>, u32, u32)>,
    locks: Vec<Lock>,
    /// The threads whose last read saw another write.
    stopped: Vec<bool>,
    changed: Vec<ChangedRead>,
    /// The previous state for each change since the observed prefix, if changes are to be undone.
    journal: Option<Vec<Undo>>,
}

/// The state of something before it changed.
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
    fn new(judge: &'j Judge<'t>, reads: Reads) -> Self {
        Replay {
            judge,
            reads,
            keeps_causality: false,
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

    /// Undoes all changes since the observed prefix.
    fn undo_all(&mut self) {
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

    /// The position of an event in the order, starting at one.
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

    /// Applies an event to its lock and its variable.
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
            return Err("the thread continues after a read that saw another write");
        }
        if event.op() == Op::Join && *entry(&mut self.stopped, event.other().index()) {
            return Err("a thread is joined whose last read saw another write");
        }
        let Some(needs) = self.judge.needs.get(&index) else { return Ok(()) };
        if needs.fork.iter().chain(&needs.all).any(|&need| !self.has_happened(need)) {
            return Err("an event that it depends on has not happened");
        }
        if self.keeps_causality && needs.causal.iter().any(|&need| !self.has_happened(need)) {
            return Err("a wait that it could have ended has not begun");
        }
        if needs.until.is_some_and(|end| self.has_happened(end)) {
            return Err("the lock of a failed try-lock has been released");
        }
        match needs.wait {
            Some((begin, notification)) if self.when(begin) > self.when(notification) => {
                Err("the notification precedes the wait that it ends")
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
        if self.keeps_causality && lock.operations != self.judge.turn(index).place {
            return Err("the operations of a lock are reordered");
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
            return Err("another thread holds the lock");
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
        if self.keeps_causality {
            let Turn { place, reads: before } = self.judge.turn(index);
            if *writes != place || op.writes() && *reads != before {
                return Err("conflicting accesses are reordered");
            }
        }
        if op.reads() && !self.judge.finds_the_same(index, event, *write) {
            let is_bound = match self.reads {
                Reads::Any => false,
                Reads::Terminal => op == Op::Rmw,
                Reads::Strict => true,
            };
            if is_bound {
                return Err("a read sees another write");
            }
            let saw = Some(fact.writer).filter(|&writer| writer != NONE);
            let (saw, sees) = (saw.map(u64::from), write.map(u64::from));
            self.changed.push(ChangedRead { read: index.into(), saw, sees });
            if self.reads == Reads::Terminal {
                *entry(&mut self.stopped, event.thread().index()) = true;
                if let Some(journal) = &mut self.journal {
                    journal.push(Undo::Stopped(event.thread().0));
                }
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
            return Err("a thread would continue after a read that saw another write");
        }
        // Its other dependencies may still be pending.
        let fork = self.judge.needs.get(&index).and_then(|needs| needs.fork);
        match fork.is_some_and(|fork| !self.has_happened(fork)) {
            true => Err("the thread of an event that should come next has not been started"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
