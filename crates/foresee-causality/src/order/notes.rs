//! Clocks for a trace whose order is only that in which its events were noted.
//!
//! A capture that does not stop the program notes an action some time before or after it happens.
//! Such notes still determine what *must* have come before what, if they follow these rules:
//!
//! - a write, a release and a fork are noted before they happen; a read, an acquire and a join
//!   after; and the thread does nothing else in between;
//! - volatile accesses and read-modify-writes are noted in the same step in which they happen.
//!
//! Then everything that an action may have waited for is noted before the action. A lock determines
//! the order of its critical sections, except that shared ones are unordered. For a read, the value
//! is known but not its writer: its *candidates* are the noted writes of this value and the initial
//! value, except those that another write known to the reader has overwritten. One of them is the
//! true one, so what precedes all of them precedes the read: the componentwise minimum of their
//! clocks. No order is claimed falsely; several candidates may lose some order.
//!
//! (Soueidi and Falcone, 2023, take the latest candidate, and forget all when two are unordered.
//! Both can claim an order that does not exist.)
//!
//! Which notification woke a thread is unknown, and there may be none; the lock that the waiting
//! thread acquires again gives more order.

use foresee_trace::{Event, Id, LockId, Op, Pool, ThreadId, Value, VarId, entry};

use crate::clock::{Clock, ClockStore, Epoch, Stamp};
use crate::order::clocks::TooLong;

/// What each noted event must come after.
///
/// # Guarantees
/// If the notes follow the rules of the module, and values are those that were read and written,
/// then
/// `e` came before `f` in the execution if [`NoteClocks::knows`] holds for `f`'s stamp and `e`'s
/// epoch. Variables without a declared initial value are assumed to be zero. Memory depends on the
/// number of threads, variables and locks.
#[derive(Debug, Default)]
pub struct NoteClocks {
    store: ClockStore,
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    vars: Vec<Var>,
    conflicting_writes: u64,
    uncertain_reads: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    time: u32,
    known: Clock,
    /// The fork, until the first event has seen it.
    fork: Option<Stamp>,
}

#[derive(Debug, Default)]
struct Lock {
    /// The last exclusive release. It came after all earlier ones.
    alone: Option<Stamp>,
    /// Shared releases since then.
    shared: Vec<Stamp>,
}

#[derive(Debug, Default)]
struct Var {
    initial: Option<Value>,
    /// The last write, if all writes so far were noted in the step in which they happened.
    exact: Option<Stamp>,
    has_plain_write: bool,
    writers: Vec<Writer>,
}

/// The writes of a variable by one thread.
#[derive(Debug)]
struct Writer {
    thread: ThreadId,
    /// The latest writes, in order.
    recent: Vec<Write>,
    /// The first of the writes before these. It represents them all: it precedes them and may have
    /// written any value.
    older: Option<Stamp>,
}

#[derive(Clone, Copy, Debug)]
struct Write {
    /// `None` if it was not captured.
    value: Option<Value>,
    stamp: Stamp,
}

impl Write {
    fn may_be(&self, value: Value) -> bool {
        self.value.is_none_or(|written| written == value)
    }
}

/// How many recent writes of one thread to one variable are kept apart.
const RECENT: usize = 32;

/// Whether this is the value of a variable without a declared initial value.
fn is_zero(value: Value) -> bool {
    match value {
        Value::Int(n) => n == 0,
        Value::Uint(n) => n == 0,
        Value::Float(x) => x == 0.0,
        Value::Bool(b) => !b,
        Value::Str(_) => false,
    }
}

impl NoteClocks {
    /// Takes the next note.
    pub fn event(&mut self, event: &Event, pool: &Pool) -> Result<Stamp, TooLong> {
        let t = event.thread();
        if event.op() == Op::Init {
            self.var(event.var()).initial = pool.value(event);
            return Ok(Stamp { thread: t, time: [0], known: Clock::EMPTY });
        }
        let thread = entry(&mut self.threads, t.index());
        if thread.time >= u32::MAX - 1 {
            return Err(TooLong);
        }
        thread.time += 1;
        let fork = thread.fork.take();
        let mut now = Stamp { thread: t, time: [thread.time], known: thread.known };
        if let Some(fork) = fork {
            self.hear(&mut now, &fork);
        }
        self.follow(event, pool, &mut now);
        self.leave(event, pool, &now);
        self.threads[t.index()].known = now.known;
        Ok(now)
    }

    /// Whether `event` is before or equal to the one with the stamp `at`.
    #[inline]
    pub fn knows(&self, at: &Stamp, event: Epoch) -> bool {
        event.time <= self.count(at, event.thread)
    }

    /// The number of events of thread `t` known to precede the one with the stamp `at`; for its own
    /// thread, the event itself is included.
    #[inline]
    pub fn count(&self, at: &Stamp, t: ThreadId) -> u32 {
        if t == at.thread { at.time[0] } else { self.store.get(at.known, t)[0] }
    }

    /// The number of writes that repeated a value of another thread without being ordered with its
    /// write; later reads have several candidates.
    pub fn conflicting_writes(&self) -> u64 {
        self.conflicting_writes
    }

    /// The number of reads with several candidates, for which some order may have been lost.
    pub fn uncertain_reads(&self) -> u64 {
        self.uncertain_reads
    }

    /// Frees what no later event can need, if there is much of it; the stamps in `kept` stay valid.
    pub fn forget_old(&mut self, kept: &[Stamp]) {
        let live = self.threads.len() + self.locks.len() + self.vars.len() + kept.len();
        if !self.store.is_worth_collecting(live) {
            return;
        }
        let NoteClocks { store, threads, locks, vars, .. } = self;
        let threads = threads.iter().flat_map(|t| [Some(t.known), t.fork.map(|f| f.known)]);
        let locks = locks.iter().flat_map(|l| l.alone.iter().chain(&l.shared).map(|s| s.known));
        let writes = vars.iter().flat_map(|v| {
            let of = |w: &Writer| -> Vec<Clock> {
                w.recent.iter().map(|w| w.stamp).chain(w.older).map(|s| s.known).collect()
            };
            let exact = v.exact.map(|s| s.known);
            v.writers.iter().flat_map(of).chain(exact).collect::<Vec<_>>()
        });
        let roots = threads.flatten().chain(locks).chain(writes);
        store.collect(roots.chain(kept.iter().map(|s| s.known)));
    }

    fn var(&mut self, x: VarId) -> &mut Var {
        entry(&mut self.vars, x.index())
    }

    fn lock(&mut self, l: LockId) -> &mut Lock {
        entry(&mut self.locks, l.index())
    }

    /// Orders the event of `now` after the one of `earlier`.
    fn hear(&mut self, now: &mut Stamp, earlier: &Stamp) {
        if !self.knows(now, earlier.epoch()) {
            now.known = self.store.learn(now.known, earlier.known, earlier.thread, earlier.time);
        }
    }

    /// Orders an event after everything that it must have waited for.
    fn follow(&mut self, event: &Event, pool: &Pool, now: &mut Stamp) {
        match event.op() {
            Op::Acquire | Op::AcquireShared => {
                self.take(event.lock(), event.op() == Op::Acquire, now);
            }
            Op::WaitEnd => {
                if let Some(lock) = event.wait_lock() {
                    self.take(lock, true, now);
                }
            }
            Op::Join => {
                let Thread { time, known, fork } = *entry(&mut self.threads, event.other().index());
                // A thread without events was still forked before it could be joined.
                let last = fork.unwrap_or(Stamp { thread: event.other(), time: [time], known });
                self.hear(now, &last);
            }
            Op::Read => self.read(event.var(), pool.value(event), now),
            Op::VolatileRead | Op::Rmw => {
                let var = self.var(event.var());
                if !var.has_plain_write {
                    if let Some(write) = var.exact {
                        self.hear(now, &write);
                    }
                    return;
                }
                let values = pool.values(event);
                let seen = match event.op() {
                    Op::Rmw if values.len() < 2 => None,
                    _ => values.first().copied(),
                };
                self.read(event.var(), seen, now);
            }
            _ => {}
        }
    }

    fn take(&mut self, lock: LockId, alone: bool, now: &mut Stamp) {
        if let Some(release) = self.lock(lock).alone {
            self.hear(now, &release);
        }
        let mut i = 0;
        while let Some(&release) = self.lock(lock).shared.get(i).filter(|_| alone) {
            self.hear(now, &release);
            i += 1;
        }
    }

    /// Orders a read after what precedes all of its candidates.
    fn read(&mut self, x: VarId, value: Option<Value>, now: &mut Stamp) {
        // A value that was not captured may be any thread's.
        let Some(value) = value else { return };
        let var = std::mem::take(self.var(x));
        let mut least: Option<Clock> = None;
        let mut candidates = 0;
        let initial = var.initial.map_or(is_zero(value), |initial| initial == value);
        let mut is_overwritten = false;
        for writer in &var.writers {
            let known = self.count(now, writer.thread);
            let of_known = writer.recent.partition_point(|w| w.stamp.time[0] <= known);
            let has_older = writer.older.is_some_and(|first| first.time[0] <= known);
            is_overwritten |= of_known > 0 || has_older;
            // Of the writes that the reader knows, only the last can still be visible; of the
            // others, the first with this value precedes the rest.
            let last = writer.recent[..of_known].last();
            let last = last.filter(|w| w.may_be(value) && !self.is_overwritten(&var, w, now));
            let next = writer.recent[of_known..].iter().find(|w| w.may_be(value));
            let older = writer.older.filter(|_| of_known == 0);
            for stamp in older.into_iter().chain(last.map(|w| w.stamp)).chain(next.map(|w| w.stamp))
            {
                candidates += 1;
                let whole = self.store.learn(stamp.known, Clock::EMPTY, stamp.thread, stamp.time);
                least = Some(match least {
                    Some(least) => self.store.meet(least, whole),
                    None => whole,
                });
            }
        }
        if initial && !is_overwritten {
            candidates += 1;
            least = None;
        }
        if let Some(least) = least {
            now.known = self.store.join(now.known, least);
        }
        self.uncertain_reads += u64::from(candidates > 1);
        *self.var(x) = var;
    }

    /// Whether the reader knows another write that came after this one, which it also knows.
    fn is_overwritten(&self, var: &Var, write: &Write, now: &Stamp) -> bool {
        var.writers.iter().filter(|w| w.thread != write.stamp.thread).any(|writer| {
            let known = self.count(now, writer.thread);
            let of_known = writer.recent.partition_point(|w| w.stamp.time[0] <= known);
            let last = writer.recent[..of_known].last();
            last.is_some_and(|last| self.knows(&last.stamp, write.stamp.epoch()))
        })
    }

    /// Remembers an event for later ones.
    fn leave(&mut self, event: &Event, pool: &Pool, now: &Stamp) {
        match event.op() {
            Op::Release => *self.lock(event.lock()) = Lock { alone: Some(*now), shared: vec![] },
            Op::WaitBegin => {
                if let Some(lock) = event.wait_lock() {
                    *self.lock(lock) = Lock { alone: Some(*now), shared: vec![] };
                }
            }
            Op::ReleaseShared => {
                let lock = self.lock(event.lock());
                lock.shared.retain(|release| release.thread != now.thread);
                lock.shared.push(*now);
            }
            Op::Fork => entry(&mut self.threads, event.other().index()).fork = Some(*now),
            op if op.writes() => self.write(event, pool.value(event), now),
            _ => {}
        }
    }

    fn write(&mut self, event: &Event, value: Option<Value>, now: &Stamp) {
        let x = event.var();
        let conflicts = |store: &NoteClocks, writer: &Writer| {
            let same = |w: &&Write| w.value.is_some() && w.value == value;
            let latest = writer.recent.iter().rev().find(same);
            latest.is_some_and(|latest| !store.knows(now, latest.stamp.epoch()))
        };
        let var = std::mem::take(self.var(x));
        self.conflicting_writes += u64::from(var.writers.iter().any(|w| conflicts(self, w)));
        *self.var(x) = var;
        let var = self.var(x);
        match event.op() {
            Op::Write => var.has_plain_write = true,
            _ => var.exact = Some(*now),
        }
        let place = var.writers.iter().position(|w| w.thread == now.thread);
        let place = place.unwrap_or_else(|| {
            let recent = Vec::new();
            var.writers.push(Writer { thread: now.thread, recent, older: None });
            var.writers.len() - 1
        });
        let writer = &mut var.writers[place];
        if writer.recent.len() == RECENT {
            let gone = writer.recent.drain(..RECENT / 2).next();
            writer.older = writer.older.or(gone.map(|w| w.stamp));
        }
        writer.recent.push(Write { value, stamp: *now });
    }
}
