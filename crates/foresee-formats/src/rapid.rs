//! A trace in the subset of std that RAPID reads.
//!
//! RAPID knows reads, writes, exclusive locks, forks and joins, and reads numbers for locations.
//! All other synchronisation is written as critical sections, such that events which are ordered in
//! the trace are ordered in what RAPID reads. It may see more order than there was, but never less,
//! so each race that it reports by happens-before is one of the trace.
//!
//! | event | written as |
//! |---|---|
//! | read, write, acquire, release, fork, join, begin, end | the same |
//! | atomic access | the access in a critical section of a lock that only the variable's atomic accesses take |
//! | read-modify-write | a read and a write in such a section |
//! | shared acquire, shared release | an empty critical section of the lock |
//! | begin and end of a wait | the release and the acquire of its lock; an end also as `wait` |
//! | notification, `wait` | an empty critical section of a lock that belongs to the condition |
//! | everything else | nothing |
//!
//! Threads, variables and locks are numbered `T0`, `V0`, `L0` in the order of their first
//! occurrence,
//! and so are locations: 1 is the first, 0 means no location. Values are left out.

use foresee_trace::{
    Batch, Event, EventSource, Id, LocId, LockId, Names, Op, Position, ReadError, Remarks,
    TooManyNames, entry,
};

/// Converts a source for RAPID.
#[derive(Debug)]
pub struct ForRapid<S> {
    inner: S,
    read: Batch,
    names: Names,
    /// The new numbers of locks: of the trace's own, of those for variables, and of those for
    /// conditions.
    locks: [Vec<Option<LockId>>; 3],
    locations: Vec<Option<LocId>>,
}

/// The origin of a lock.
#[derive(Clone, Copy)]
enum Of {
    Lock,
    Variable,
    Condition,
}

impl<S: EventSource> ForRapid<S> {
    /// Before the first event of the source.
    pub fn new(inner: S) -> ForRapid<S> {
        ForRapid {
            inner,
            read: Batch::default(),
            names: Names::default(),
            locks: Default::default(),
            locations: Vec::new(),
        }
    }

    fn lock(&mut self, of: Of, index: usize) -> Result<u32, TooManyNames> {
        let known = entry(&mut self.locks[of as usize], index);
        if let Some(lock) = known {
            return Ok(lock.0);
        }
        let name = format!("L{}", self.names.locks.len());
        Ok(known.insert(self.names.locks.intern(&name)?).0)
    }

    fn location(&mut self, location: LocId) -> Result<LocId, TooManyNames> {
        let known = entry(&mut self.locations, location.index());
        if let Some(location) = known {
            return Ok(*location);
        }
        Ok(*known.insert(self.names.locs.intern(&location.index().to_string())?))
    }

    fn name_all(&mut self) -> Result<(), TooManyNames> {
        for t in self.names.threads.len()..self.inner.names().threads.len() {
            self.names.thread(&format!("T{t}"))?;
        }
        for x in self.names.vars.len()..self.inner.names().vars.len() {
            self.names.vars.intern(&format!("V{x}"))?;
        }
        Ok(())
    }

    fn translate(&mut self, event: &Event, out: &mut Vec<Event>) -> Result<(), TooManyNames> {
        let location = self.location(event.loc())?;
        let new = |op: Op, target: u32| {
            Event::new(event.thread(), op).with_target(target).with_loc(location)
        };
        match event.op() {
            op @ (Op::Read | Op::Write) => out.push(new(op, event.var().0)),
            op @ (Op::VolatileRead | Op::VolatileWrite | Op::Rmw) => {
                let lock = self.lock(Of::Variable, event.var().index())?;
                out.push(new(Op::Acquire, lock));
                if op.reads() {
                    out.push(new(Op::Read, event.var().0));
                }
                if op.writes() {
                    out.push(new(Op::Write, event.var().0));
                }
                out.push(new(Op::Release, lock));
            }
            op @ (Op::Acquire | Op::Release) => {
                let lock = self.lock(Of::Lock, event.lock().index())?;
                out.push(new(op, lock));
            }
            Op::AcquireShared | Op::ReleaseShared => {
                let lock = self.lock(Of::Lock, event.lock().index())?;
                out.extend([new(Op::Acquire, lock), new(Op::Release, lock)]);
            }
            Op::WaitBegin => {
                if let Some(lock) = event.wait_lock() {
                    let lock = self.lock(Of::Lock, lock.index())?;
                    out.push(new(Op::Release, lock));
                }
            }
            Op::WaitEnd | Op::Wait | Op::Notify | Op::NotifyAll => {
                if let Some(lock) = event.wait_lock() {
                    let lock = self.lock(Of::Lock, lock.index())?;
                    out.push(new(Op::Acquire, lock));
                }
                let lock = self.lock(Of::Condition, event.cond().index())?;
                out.extend([new(Op::Acquire, lock), new(Op::Release, lock)]);
            }
            op @ (Op::Fork | Op::Join) => out.push(new(op, event.other().0)),
            op @ (Op::Begin | Op::End) => {
                out.push(Event::new(event.thread(), op).with_loc(location));
            }
            _ => {}
        }
        Ok(())
    }
}

impl<S: EventSource> EventSource for ForRapid<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        let mut read = std::mem::take(&mut self.read);
        while batch.events.is_empty() && self.inner.next_batch(&mut read)? {
            let limit = |error: TooManyNames| {
                ReadError::new(
                    foresee_trace::ErrorKind::Limit,
                    Position::Unknown,
                    error.to_string(),
                )
            };
            self.name_all().map_err(limit)?;
            for event in &read.events {
                self.translate(event, &mut batch.events).map_err(limit)?;
            }
        }
        self.read = read;
        Ok(!batch.events.is_empty())
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    fn position(&self, _: usize) -> Position {
        Position::Unknown
    }

    fn remarks(&self) -> &Remarks {
        self.inner.remarks()
    }
}
