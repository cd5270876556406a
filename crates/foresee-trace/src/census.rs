//! What is in a trace, counted in one pass.

use crate::event::{Event, Op, Pool};
use crate::ids::{Id, LockId, ThreadId, VarId, entry};
use crate::source::Batch;

/// Counts of everything in a trace; its size depends on the number of names, not of events.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// The number of events.
    pub events: u64,
    /// The number of events that carry a location.
    pub with_location: u64,
    /// The number of reads and writes.
    pub accesses: u64,
    /// The number of reads and writes that carry a value.
    pub with_value: u64,
    ops: Vec<u64>,
    threads: Vec<Lifetime>,
    vars: Vec<u64>,
    locks: Vec<u64>,
}

/// The part of the trace in which a thread was alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The index of its fork, if it was forked.
    pub fork: Option<u64>,
    /// The index of its first event.
    pub first: Option<u64>,
    /// The index of its last event.
    pub last: Option<u64>,
    /// The index of the event that joined it, if one did.
    pub join: Option<u64>,
    /// The number of its events.
    pub events: u64,
}

impl Census {
    /// Counts the next batch.
    pub fn batch(&mut self, batch: &Batch) {
        for event in &batch.events {
            self.event(event, &batch.pool);
        }
    }

    #[inline]
    fn event(&mut self, event: &Event, pool: &Pool) {
        let (at, op) = (self.events, event.op());
        self.events += 1;
        self.with_location += u64::from(event.loc().is_some());
        *entry(&mut self.ops, op as usize) += 1;
        match op {
            Op::Read | Op::Write | Op::VolatileRead | Op::VolatileWrite | Op::Rmw => {
                self.accesses += 1;
                self.with_value += u64::from(!pool.values(event).is_empty());
                *entry(&mut self.vars, event.var().index()) += 1;
            }
            Op::Acquire | Op::AcquireInner | Op::AcquireShared | Op::AcquireSharedInner => {
                *entry(&mut self.locks, event.lock().index()) += 1;
            }
            Op::Fork => entry(&mut self.threads, event.other().index()).fork = Some(at),
            Op::Join => entry(&mut self.threads, event.other().index()).join = Some(at),
            // An initial value is not a step of any thread.
            Op::Init => return,
            _ => {}
        }
        let thread = entry(&mut self.threads, event.thread().index());
        thread.events += 1;
        thread.first.get_or_insert(at);
        thread.last = Some(at);
    }

    /// How often each operation occurs; operations that do not occur are left out.
    pub fn ops(&self) -> impl Iterator<Item = (Op, u64)> + '_ {
        let count = |op: Op| self.ops.get(op as usize).copied().unwrap_or(0);
        Op::ALL.iter().map(move |&op| (op, count(op))).filter(|&(_, n)| n > 0)
    }

    /// The threads that have events or are forked or joined, by number.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Lifetime)> + '_ {
        let seen = |l: &&Lifetime| **l != Lifetime::default();
        self.threads
            .iter()
            .enumerate()
            .map(|(i, l)| (ThreadId::new(i), l))
            .filter(move |(_, l)| seen(l))
    }

    /// The most frequently accessed variables, with their counts.
    pub fn hottest_vars(&self, top: usize) -> Vec<(VarId, u64)> {
        hottest(&self.vars, top)
    }

    /// The most frequently acquired locks, with their counts.
    pub fn hottest_locks(&self, top: usize) -> Vec<(LockId, u64)> {
        hottest(&self.locks, top)
    }

    /// The number of variables that are accessed.
    pub fn var_count(&self) -> usize {
        self.vars.iter().filter(|&&n| n > 0).count()
    }

    /// The number of locks that are acquired.
    pub fn lock_count(&self) -> usize {
        self.locks.iter().filter(|&&n| n > 0).count()
    }
}

fn hottest<I: Id>(counts: &[u64], top: usize) -> Vec<(I, u64)> {
    let mut all: Vec<(usize, u64)> =
        counts.iter().copied().enumerate().filter(|&(_, n)| n > 0).collect();
    all.sort_by_key(|&(i, n)| (std::cmp::Reverse(n), i));
    all.into_iter().take(top).map(|(i, n)| (I::new(i), n)).collect()
}
