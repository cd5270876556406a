//! Could any execution have produced these events?
//!
//! [`Validated`] sits between a reader and its consumers. It rejects the first event that no
//! execution could contain, or repairs the trace and reports what it changed. It also distinguishes
//! inner operations of re-entrant locks from outer ones, so consumers need not count.
//!
//! The rules, for each event in file order:
//!
//! 1. [`Op::ThreadBegin`] is its thread's first event, and nothing follows [`Op::ThreadEnd`].
//! 2. A thread is forked at most once, by another thread, before its first event. A thread that is
//!    never forked runs from the start.
//! 3. A joined thread has no further events, and a thread that is known to be running is not
//!    joined.
//! 4. A lock is acquired only if no other thread holds it, and released only by a holder. Shared
//!    holds of a read-write lock exclude only exclusive ones. Locks may be held forever.
//! 5. The holder of its lock begins a wait. The thread does nothing until the wait ends, which
//!    acquires the free lock again.
//! 6. Methods and regions are left in reverse order of entering; they may stay open. A method may
//!    be left even if its entry was not captured.
//! 7. An initial value is declared once, before any access of its variable.
//! 8. A read sees the last value written, if both values are known, unless the order of the trace
//!    is only that of its notes.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;

use crate::error::{ErrorKind, Position, ReadError};
use crate::event::{Event, Op, Pool};
use crate::ids::{CondId, Id, LockId, SymId, ThreadId, entry};
use crate::names::{EXTERNAL, Names, TooManyNames};
use crate::source::{Batch, EventSource, FileOrder, Remarks};
use crate::stacks::StackId;
use crate::value::Value;

/// What to do with an impossible event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop with an error.
    Reject,
    /// Change as little as possible and record the changes in the [`Remarks`].
    Repair,
}

/// A source whose events are known to be well-formed.
#[derive(Debug)]
pub struct Validated<S> {
    source: S,
    mode: Mode,
    rules: Rules,
    /// The file's own events, if the events handed out may differ from them.
    raw: Batch,
    /// For each event handed out after a repair, its index in `raw`.
    origin: Vec<u32>,
    /// The thread to which the events of a recycled thread number now belong.
    alias: Vec<(ThreadId, ThreadId)>,
    /// The thread to which inserted writes are attributed.
    external: Option<ThreadId>,
    remarks: Remarks,
    repairs: u64,
}

/// The maximum number of changes that are described individually.
const DETAILED_REPAIRS: u64 = 20;

impl<S: EventSource> Validated<S> {
    /// Validates `source` as it is read.
    pub fn new(source: S, mode: Mode) -> Self {
        Validated {
            source,
            mode,
            rules: Rules::default(),
            raw: Batch::default(),
            origin: Vec::new(),
            alias: Vec::new(),
            external: None,
            remarks: Remarks::default(),
            repairs: 0,
        }
    }

    /// The underlying source, for what it knows besides events.
    pub fn inner(&self) -> &S {
        &self.source
    }

    /// The number of events that were dropped, inserted or renamed so far.
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    fn checked_batch(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        for (i, event) in batch.events.iter_mut().enumerate() {
            match self.rules.step(event, &batch.pool) {
                Ok(op) => *event = event.with_op(op),
                Err(fault) => {
                    let message = FaultMessage {
                        fault,
                        event,
                        names: self.source.names(),
                        pool: &batch.pool,
                    };
                    let error = ReadError::new(
                        ErrorKind::IllFormed,
                        self.source.position(i),
                        message.to_string(),
                    );
                    return Err(error.with_help(message.fault.help()));
                }
            }
        }
        Ok(())
    }

    fn repaired_batch(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        self.origin.clear();
        let raw = std::mem::take(&mut self.raw);
        for (i, &event) in raw.events.iter().enumerate() {
            self.repair(batch.pool.adopt(event, &raw.pool), i, &raw.stacks, batch)?;
        }
        self.raw = raw;
        Ok(())
    }

    /// Adds `event` to `batch` with the changes that make it possible.
    fn repair(
        &mut self,
        event: Event,
        i: usize,
        stacks: &[StackId],
        batch: &mut Batch,
    ) -> Result<(), ReadError> {
        loop {
            let current = self.renamed(event);
            let fault = match self.rules.step(&current, &batch.pool) {
                Ok(op) => {
                    batch.events.push(current.with_op(op));
                    if !stacks.is_empty() {
                        batch.stacks.push(stacks[i]);
                    }
                    self.origin.push(i as u32);
                    return Ok(());
                }
                Err(fault) => fault,
            };
            let names = self.source.names();
            let message =
                FaultMessage { fault, event: &current, names, pool: &batch.pool }.to_string();
            match self.remedy(fault, &current, batch)? {
                Remedy::Drop => {
                    self.note(i, &message, "dropped it");
                    return Ok(());
                }
                Remedy::Insert(inserted) => {
                    let op = self.rules.step(&inserted, &batch.pool).map_err(|_| {
                        ReadError::new(
                            ErrorKind::IllFormed,
                            self.source.position(i),
                            format!("{message}; this cannot be repaired"),
                        )
                    })?;
                    let inserted = inserted.with_op(op);
                    batch.events.push(inserted);
                    if !stacks.is_empty() {
                        batch.stacks.push(StackId::NONE);
                    }
                    self.origin.push(i as u32);
                    let names = self.source.names();
                    let thread = names.threads.get(inserted.thread());
                    let what = inserted.describe(names, &batch.pool).to_string();
                    self.note(i, &message, &format!("inserted {what} by {thread} before it"));
                }
                Remedy::Renamed(old, new) => {
                    let names = self.source.names();
                    let text = format!(
                        "renamed the new thread {} to {}",
                        names.threads.get(old),
                        names.threads.get(new)
                    );
                    self.note(i, &message, &text);
                }
            }
        }
    }

    fn remedy(
        &mut self,
        fault: Fault,
        event: &Event,
        batch: &mut Batch,
    ) -> Result<Remedy, ReadError> {
        let t = event.thread();
        Ok(match fault {
            Fault::HeldByOther(holder) if self.rules.can_act(holder) => {
                let lock = self.rules.lock(LockId(match event.op() {
                    Op::WaitEnd => return Ok(Remedy::Drop),
                    _ => event.lock().0,
                }));
                let op = if lock.owner == Some(holder) { Op::Release } else { Op::ReleaseShared };
                Remedy::Insert(Event::new(holder, op).with_target(event.lock().0))
            }
            Fault::NotInnermost(expected) => {
                let entered = match event.op() {
                    Op::Exit => &self.rules.threads[t.index()].calls,
                    _ => &self.rules.threads[t.index()].regions,
                };
                if !entered.has(event.sym()) {
                    return Ok(Remedy::Drop);
                }
                let mut exit = Event::new(t, event.op());
                if let Some(expected) = expected {
                    exit = exit.with_target(expected.0);
                }
                Remedy::Insert(exit)
            }
            Fault::ForkOfKnown if self.rules.is_over(event.other()) => {
                let old = event.other();
                let new = self.fresh_thread(self.source.names().threads.get(old).to_owned())?;
                // An alias maps from the number in the file, not from an earlier alias.
                let file = self.alias.iter().find(|a| a.1 == old).map_or(old, |a| a.0);
                self.alias.retain(|a| a.0 != file);
                self.alias.push((file, new));
                Remedy::Renamed(file, new)
            }
            Fault::ReadMismatch(_, found) => {
                let external = match self.external {
                    Some(thread) => thread,
                    None => {
                        let thread = self.fresh_thread(EXTERNAL.to_owned())?;
                        *self.external.insert(thread)
                    }
                };
                let write = Event::new(external, Op::Write).with_target(event.var().0);
                Remedy::Insert(write.with_values(&[found], &mut batch.pool))
            }
            _ => Remedy::Drop,
        })
    }

    fn renamed(&self, mut event: Event) -> Event {
        if !self.alias.is_empty() {
            let new = |t: ThreadId| self.alias.iter().find(|a| a.0 == t).map_or(t, |a| a.1);
            event = event.with_thread(new(event.thread()));
            if matches!(event.op(), Op::Fork | Op::Join) {
                event = event.with_target(new(event.other()).0);
            }
        }
        event
    }

    /// A new thread with this name, or with a number appended if the name is taken.
    fn fresh_thread(&mut self, name: String) -> Result<ThreadId, ReadError> {
        let names = self.source.names_mut();
        let mut fresh = name.clone();
        let mut number = 2;
        while names.threads.lookup(&fresh).is_some() {
            fresh = format!("{name}#{number}");
            number += 1;
        }
        names.thread(&fresh).map_err(|e: TooManyNames| {
            ReadError::new(ErrorKind::Limit, Position::Unknown, e.to_string())
        })
    }

    fn note(&mut self, i: usize, message: &str, done: &str) {
        self.repairs += 1;
        if self.repairs <= DETAILED_REPAIRS {
            let at = self.source.position(i);
            self.remarks.warnings.push(format!("{at}: {message}; {done}"));
        }
    }
}

impl<S: EventSource> EventSource for Validated<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        loop {
            let into = if self.mode == Mode::Reject { &mut *batch } else { &mut self.raw };
            if !self.source.next_batch(into)? {
                batch.clear();
                let own = std::mem::take(&mut self.remarks.warnings);
                self.remarks = self.source.remarks().clone();
                self.remarks.warnings.extend(own);
                if self.repairs > DETAILED_REPAIRS {
                    let more = self.repairs - DETAILED_REPAIRS;
                    self.remarks.warnings.push(format!("{more} more events were repaired"));
                }
                if self.repairs > 0 {
                    let message = || {
                        format!(
                            "it was repaired {} times and differs from what was recorded",
                            self.repairs
                        )
                    };
                    self.remarks.partial.get_or_insert_with(message);
                }
                return Ok(false);
            }
            self.remarks.order = self.source.remarks().order;
            self.rules.values_are_ordered = self.remarks.order == FileOrder::Observed;
            match self.mode {
                Mode::Reject => self.checked_batch(batch)?,
                Mode::Repair => self.repaired_batch(batch)?,
            }
            // A batch that became empty does not end the trace.
            if !batch.events.is_empty() {
                return Ok(true);
            }
        }
    }

    fn names(&self) -> &Names {
        self.source.names()
    }

    fn names_mut(&mut self) -> &mut Names {
        self.source.names_mut()
    }

    fn position(&self, i: usize) -> Position {
        match self.mode {
            Mode::Reject => self.source.position(i),
            Mode::Repair => self.source.position(self.origin[i] as usize),
        }
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}

enum Remedy {
    Drop,
    Insert(Event),
    Renamed(ThreadId, ThreadId),
}

/// What is wrong with an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    AfterJoin(u64),
    AfterEnd,
    WhileWaiting(CondId),
    WhileAsking(Event),
    BeginNotFirst,
    ForkOfSelf,
    ForkOfKnown,
    JoinOfSelf,
    JoinOfRunning,
    HeldByOther(ThreadId),
    NotHeld(Option<ThreadId>),
    NotBusy,
    WaitWithoutLock,
    WaitNotBegun,
    WaitOfOther(CondId),
    NotInnermost(Option<SymId>),
    NothingOpen,
    LateInit,
    ReadMismatch(Value, Value),
}

impl Fault {
    fn help(self) -> &'static str {
        match self {
            Fault::ReadMismatch(..) => {
                "if the events were recorded without stopping the program, say so in the trace \
                 (`# foresee: order=notes`); `--repair` inserts the write that must have happened"
            }
            Fault::ForkOfKnown => {
                "a thread number that is used again needs a new name; `--repair` gives it one"
            }
            _ => "`foresee trace convert --repair` drops or completes such events and lists them",
        }
    }
}

/// Formats a fault as a message.
struct FaultMessage<'a> {
    fault: Fault,
    event: &'a Event,
    names: &'a Names,
    pool: &'a Pool,
}

impl fmt::Display for FaultMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FaultMessage { fault, event, names, pool } = *self;
        let thread = |t: ThreadId| names.threads.get(t);
        let t = thread(event.thread());
        let what = event.describe(names, pool);
        let target = event.target_name(names).unwrap_or("");
        match fault {
            Fault::AfterJoin(at) => {
                write!(f, "{what} by {t}, but {t} was joined earlier (event {at})")
            }
            Fault::AfterEnd => write!(f, "{what} by {t}, but {t} has ended"),
            Fault::WhileWaiting(c) => {
                write!(f, "{what} by {t}, but {t} is waiting for {}", names.conds.get(c))
            }
            Fault::WhileAsking(asked) => {
                let asked = asked.describe(names, pool);
                write!(f, "{what} by {t}, but {t} has been waiting since {asked}")
            }
            Fault::BeginNotFirst => {
                write!(f, "{what} by {t}, but {t} has earlier events; it must be the first")
            }
            Fault::ForkOfSelf => write!(f, "{t} forks itself"),
            Fault::ForkOfKnown => write!(
                f,
                "{t} forks {target}, but {target} was forked before or has events already; \
                 a fork must come first"
            ),
            Fault::JoinOfSelf => write!(f, "{t} joins itself"),
            Fault::JoinOfRunning => {
                write!(f, "{t} joins {target}, but {target} is still running")
            }
            Fault::HeldByOther(holder) => {
                write!(f, "{what} by {t}, but the lock is held by {}", thread(holder))
            }
            Fault::NotHeld(Some(holder)) => {
                write!(f, "lock {target} released by {t} but held by {}", thread(holder))
            }
            Fault::NotHeld(None) => {
                write!(f, "lock {target} released by {t}, which does not hold it")
            }
            Fault::NotBusy => {
                write!(f, "{what} by {t}, but no other thread prevents {t} from acquiring the lock")
            }
            Fault::WaitWithoutLock => {
                write!(f, "{what} by {t}, but {t} does not hold the lock that it releases")
            }
            Fault::WaitNotBegun => write!(f, "{what} by {t}, but {t} is not waiting"),
            Fault::WaitOfOther(c) => {
                let c = names.conds.get(c);
                write!(f, "{what} by {t}, but {t} waits for {c} or uses another lock")
            }
            Fault::NotInnermost(Some(sym)) => {
                let open = names.syms.get(sym);
                write!(f, "{what} by {t}, but {open} was entered later and must be left first")
            }
            Fault::NotInnermost(None) => {
                write!(f, "{what} by {t}, but an unnamed region was entered later")
            }
            Fault::NothingOpen => write!(f, "{what} by {t}, but {t} has not entered any"),
            Fault::LateInit => {
                write!(
                    f,
                    "{what}, but {target} already has an initial value or was accessed earlier"
                )
            }
            Fault::ReadMismatch(expected, found) => {
                let show = |value| crate::display::DescribedValue { value, names };
                write!(
                    f,
                    "{t} reads {} from {target}, but its last value was {}",
                    show(found),
                    show(expected)
                )
            }
        }
    }
}

/// The state of a thread.
#[derive(Debug, Default)]
struct Thread {
    known: bool,
    started: bool,
    begun: bool,
    ended: bool,
    joined: Option<u64>,
    waiting: Option<Waiting>,
    /// What it has requested and not received yet.
    asking: Option<Event>,
    calls: Entered,
    regions: Entered,
}

/// What was entered and not left, innermost last.
#[derive(Debug, Default)]
struct Entered {
    stack: Vec<Option<SymId>>,
    /// How often each occurs in `stack`. A capture that records no returns makes the stack as long
    /// as the trace, so it must not be searched for each event.
    open: HashMap<Option<SymId>, u32, RandomState>,
}

impl Entered {
    fn has(&self, sym: Option<SymId>) -> bool {
        self.open.contains_key(&sym)
    }

    fn enter(&mut self, sym: Option<SymId>) {
        self.stack.push(sym);
        *self.open.entry(sym).or_default() += 1;
    }

    /// Leaves the innermost one. A region may be ended without naming it.
    fn leave(&mut self, event: &Event) -> Result<Op, Fault> {
        let Some(&innermost) = self.stack.last() else { return Err(Fault::NothingOpen) };
        if innermost != event.sym() && event.sym().is_some() {
            return Err(Fault::NotInnermost(innermost));
        }
        self.stack.pop();
        if let Some(open) = self.open.get_mut(&innermost) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&innermost);
            }
        }
        Ok(event.op())
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cond: CondId,
    lock: Option<LockId>,
    /// How deeply the lock was held.
    depth: u32,
}

impl Thread {
    /// Whether the thread cannot have an event now.
    #[inline]
    fn is_still(&self) -> bool {
        self.ended | self.joined.is_some() | self.waiting.is_some() | self.asking.is_some()
    }
}

impl Thread {
    /// Whether the event is what the thread has requested.
    #[cold]
    fn is_answered(&self, event: &Event) -> bool {
        let answers =
            |asked: &Event| event.op().answers(asked.op()) && event.target() == asked.target();
        !self.ended && self.joined.is_none() && self.asking.as_ref().is_some_and(answers)
    }
}

/// The holders of a lock.
#[derive(Debug, Default)]
struct Lock {
    owner: Option<ThreadId>,
    depth: u32,
    readers: Vec<(ThreadId, u32)>,
}

impl Lock {
    /// A thread other than `t` that prevents `t` from acquiring the lock exclusively (or for
    /// sharing).
    fn blocked_by(&self, t: ThreadId, shared: bool) -> Option<ThreadId> {
        match self.owner {
            Some(owner) if owner != t => Some(owner),
            _ if shared => None,
            _ => self.readers.iter().map(|r| r.0).find(|&r| r != t),
        }
    }
}

/// What a variable holds.
#[derive(Clone, Copy, Debug, Default)]
enum Held {
    #[default]
    Untouched,
    Unknown,
    Value(Value),
}

/// The state against which the next event is checked; its size depends on the number of names, not
/// on the number of events.
#[derive(Debug)]
struct Rules {
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    vars: Vec<Held>,
    events: u64,
    values_are_ordered: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            threads: Vec::new(),
            locks: Vec::new(),
            vars: Vec::new(),
            events: 0,
            values_are_ordered: true,
        }
    }
}

impl Rules {
    /// Checks the next event. Returns its operation, with inner lock operations distinguished from
    /// outer ones. A rejected event changes nothing.
    #[inline]
    fn step(&mut self, event: &Event, pool: &Pool) -> Result<Op, Fault> {
        let op = event.op();
        if op == Op::Init {
            self.init(event, pool)?;
            self.events += 1;
            return Ok(op);
        }
        let thread = entry(&mut self.threads, event.thread().index());
        if thread.is_still() && op != Op::WaitEnd && !thread.is_answered(event) {
            return Err(self.why_still(event.thread()));
        }
        let op = match op {
            Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Rmw => {
                self.access(event, pool)?;
                op
            }
            _ => self.sync(event, op)?,
        };
        let thread = &mut self.threads[event.thread().index()];
        thread.known = true;
        thread.started = true;
        thread.asking = op.requests().then_some(*event);
        self.events += 1;
        Ok(op)
    }

    #[cold]
    fn why_still(&self, t: ThreadId) -> Fault {
        let thread = &self.threads[t.index()];
        match (thread.joined, thread.waiting, thread.asking) {
            (Some(at), ..) => Fault::AfterJoin(at),
            (_, Some(waiting), _) => Fault::WhileWaiting(waiting.cond),
            (_, _, Some(asked)) => Fault::WhileAsking(asked),
            _ => Fault::AfterEnd,
        }
    }

    fn init(&mut self, event: &Event, pool: &Pool) -> Result<(), Fault> {
        let held = entry(&mut self.vars, event.var().index());
        if !matches!(held, Held::Untouched) {
            return Err(Fault::LateInit);
        }
        *held = pool.value(event).map_or(Held::Unknown, Held::Value);
        Ok(())
    }

    #[inline]
    fn access(&mut self, event: &Event, pool: &Pool) -> Result<(), Fault> {
        let held = entry(&mut self.vars, event.var().index());
        let values = pool.values(event);
        let op = event.op();
        let read = match op {
            // The old value of a read-modify-write comes first, if it was captured.
            Op::Rmw if values.len() == 2 => values.first(),
            Op::Rmw | Op::Write | Op::VolatileWrite => None,
            _ => values.first(),
        };
        if let (Held::Value(expected), Some(&found)) = (*held, read)
            && expected != found
            && self.values_are_ordered
        {
            return Err(Fault::ReadMismatch(expected, found));
        }
        *held = match (*held, values.last()) {
            (_, Some(&value)) => Held::Value(value),
            (_, None) if op.writes() => Held::Unknown,
            (Held::Untouched, None) => Held::Unknown,
            (held, None) => held,
        };
        Ok(())
    }

    fn sync(&mut self, event: &Event, op: Op) -> Result<Op, Fault> {
        let t = event.thread();
        match op {
            Op::Acquire | Op::AcquireInner => {
                let lock = entry(&mut self.locks, event.lock().index());
                if let Some(holder) = lock.blocked_by(t, false) {
                    return Err(Fault::HeldByOther(holder));
                }
                lock.owner = Some(t);
                lock.depth += 1;
                Ok(if lock.depth == 1 { Op::Acquire } else { Op::AcquireInner })
            }
            Op::Release | Op::ReleaseInner => {
                let lock = entry(&mut self.locks, event.lock().index());
                if lock.owner != Some(t) {
                    return Err(Fault::NotHeld(lock.owner));
                }
                lock.depth -= 1;
                if lock.depth > 0 {
                    return Ok(Op::ReleaseInner);
                }
                lock.owner = None;
                Ok(Op::Release)
            }
            Op::AcquireShared | Op::AcquireSharedInner => {
                let lock = entry(&mut self.locks, event.lock().index());
                if let Some(holder) = lock.blocked_by(t, true) {
                    return Err(Fault::HeldByOther(holder));
                }
                if let Some(hold) = lock.readers.iter_mut().find(|r| r.0 == t) {
                    hold.1 += 1;
                    return Ok(Op::AcquireSharedInner);
                }
                lock.readers.push((t, 1));
                Ok(Op::AcquireShared)
            }
            Op::ReleaseShared | Op::ReleaseSharedInner => {
                let lock = entry(&mut self.locks, event.lock().index());
                let Some(i) = lock.readers.iter().position(|r| r.0 == t) else {
                    return Err(Fault::NotHeld(lock.owner));
                };
                lock.readers[i].1 -= 1;
                if lock.readers[i].1 > 0 {
                    return Ok(Op::ReleaseSharedInner);
                }
                lock.readers.swap_remove(i);
                Ok(Op::ReleaseShared)
            }
            Op::Busy | Op::BusyShared => {
                let lock = entry(&mut self.locks, event.lock().index());
                // Notes of other threads may come late.
                let is_free = lock.blocked_by(t, op == Op::BusyShared).is_none();
                if is_free && self.values_are_ordered { Err(Fault::NotBusy) } else { Ok(op) }
            }
            Op::Fork => {
                let child = entry(&mut self.threads, event.other().index());
                match child.known {
                    _ if event.other() == t => return Err(Fault::ForkOfSelf),
                    true => return Err(Fault::ForkOfKnown),
                    false => child.known = true,
                }
                Ok(op)
            }
            Op::Join => {
                let (at, child) = (self.events, entry(&mut self.threads, event.other().index()));
                if event.other() == t {
                    return Err(Fault::JoinOfSelf);
                }
                let is_stuck = child.waiting.is_some() || child.asking.is_some();
                if child.begun && !child.ended || is_stuck {
                    return Err(Fault::JoinOfRunning);
                }
                child.known = true;
                child.joined.get_or_insert(at);
                Ok(op)
            }
            Op::ThreadBegin => {
                let thread = &mut self.threads[t.index()];
                if thread.started {
                    return Err(Fault::BeginNotFirst);
                }
                thread.begun = true;
                Ok(op)
            }
            Op::ThreadEnd => {
                self.threads[t.index()].ended = true;
                Ok(op)
            }
            Op::Enter => {
                self.threads[t.index()].calls.enter(event.sym());
                Ok(op)
            }
            Op::Begin => {
                self.threads[t.index()].regions.enter(event.sym());
                Ok(op)
            }
            Op::Exit => {
                let calls = &mut self.threads[t.index()].calls;
                // A capture records what was requested, which may be only the returns.
                if !calls.has(event.sym()) {
                    return Ok(op);
                }
                calls.leave(event)
            }
            Op::End => self.threads[t.index()].regions.leave(event),
            Op::WaitBegin => self.wait_begin(event),
            Op::WaitEnd => self.wait_end(event),
            Op::Wait | Op::Notify | Op::NotifyAll | Op::Event | Op::Try | Op::TryFor => Ok(op),
            Op::Request | Op::RequestShared | Op::Await | Op::Block => Ok(op),
            // Remarks and fences cannot make other events impossible.
            Op::Relaxed
            | Op::AcquireOnly
            | Op::ReleaseOnly
            | Op::FenceAcquire
            | Op::FenceRelease
            | Op::Fence => Ok(op),
            Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Rmw | Op::Init => {
                unreachable!("accesses are judged elsewhere")
            }
        }
    }

    fn wait_begin(&mut self, event: &Event) -> Result<Op, Fault> {
        let t = event.thread();
        let mut depth = 0;
        if let Some(lock) = event.wait_lock() {
            let lock = entry(&mut self.locks, lock.index());
            if lock.owner != Some(t) {
                return Err(Fault::WaitWithoutLock);
            }
            depth = lock.depth;
            (lock.owner, lock.depth) = (None, 0);
        }
        self.threads[t.index()].waiting =
            Some(Waiting { cond: event.cond(), lock: event.wait_lock(), depth });
        Ok(Op::WaitBegin)
    }

    fn wait_end(&mut self, event: &Event) -> Result<Op, Fault> {
        let t = event.thread();
        let Some(waiting) = self.threads[t.index()].waiting else {
            return match self.threads[t.index()].is_still() {
                true => Err(self.why_still(t)),
                false => Err(Fault::WaitNotBegun),
            };
        };
        if waiting.cond != event.cond() || waiting.lock != event.wait_lock() {
            return Err(Fault::WaitOfOther(waiting.cond));
        }
        if let Some(lock) = waiting.lock {
            let lock = entry(&mut self.locks, lock.index());
            if let Some(holder) = lock.blocked_by(t, false) {
                return Err(Fault::HeldByOther(holder));
            }
            (lock.owner, lock.depth) = (Some(t), waiting.depth);
        }
        self.threads[t.index()].waiting = None;
        Ok(Op::WaitEnd)
    }

    fn lock(&self, lock: LockId) -> &Lock {
        &self.locks[lock.index()]
    }

    /// Whether a thread could have an event now.
    fn can_act(&self, t: ThreadId) -> bool {
        !self.threads[t.index()].is_still()
    }

    /// Whether a new thread may reuse the number of this thread.
    fn is_over(&self, t: ThreadId) -> bool {
        let thread = &self.threads[t.index()];
        thread.ended || thread.joined.is_some()
    }
}
