//! What each step of a trace needs, found in one walk over the trace.
//!
//! The walk pairs each step with the earlier ones that it cannot do without: the step before it in
//! its thread, the write that a read saw, the end of a joined thread, the notification that ended a
//! wait, the acquire of the section that a release ends or that makes a try-lock fail. What follows
//! from that depends on the question, so [`Requirements`](crate::reorder::Requirements) and the
//! graph of [nondeterminism](crate::nondeterminism) each build their own structure on it.

use foresee_causality::Wakeups;
use foresee_trace::{Event, Id, LockId, Op, ThreadId, entry};

/// No step, no object.
pub(crate) const NONE: u32 = u32::MAX;

/// What an event is to a reordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Nothing but a step of its thread.
    Mark,
    Read,
    Write,
    /// A read that always counts, and a write.
    Rmw,
    Acquire,
    AcquireShared,
    Release,
    ReleaseShared,
    Join,
    /// An acquire that also needs a notification.
    WaitEnd,
    /// The end of a wait whose beginning was not noted.
    Wait,
    Notify,
    /// Finds a lock taken.
    Busy,
    /// Not a step.
    Init,
}

impl Kind {
    /// Every kind, by its number.
    pub(crate) const ALL: [Kind; 14] = [
        Kind::Mark,
        Kind::Read,
        Kind::Write,
        Kind::Rmw,
        Kind::Acquire,
        Kind::AcquireShared,
        Kind::Release,
        Kind::ReleaseShared,
        Kind::Join,
        Kind::WaitEnd,
        Kind::Wait,
        Kind::Notify,
        Kind::Busy,
        Kind::Init,
    ];

    /// What an access does to its variable.
    #[inline]
    fn of_access(op: Op) -> Kind {
        match (op.reads(), op.writes()) {
            (true, true) => Kind::Rmw,
            (true, false) => Kind::Read,
            _ => Kind::Write,
        }
    }

    #[inline]
    pub(crate) fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::Rmw)
    }

    #[inline]
    pub(crate) fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Rmw)
    }

    #[inline]
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Kind::Acquire | Kind::AcquireShared | Kind::WaitEnd)
    }
}

/// What a step needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) kind: Kind,
    /// The variable or lock that it uses: twice its number, plus one for locks.
    pub(crate) object: u32,
    /// The step before it in its thread.
    pub(crate) previous: u32,
    /// For a read, the write it saw; for a join, the last step of the thread, or its fork; for the
    /// end of a wait, its notification, which has to come after the beginning, the previous step;
    /// for a failed try-lock, the first acquire in its way.
    pub(crate) partner: u32,
    /// For a release, the acquire of the section that it ends.
    pub(crate) acquire: u32,
}

/// The state of the walk. Steps have the numbers that the caller gives them, in increasing order;
/// the caller may leave out steps whose object only one thread uses.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    /// The last step of each thread.
    last: Vec<u32>,
    /// The fork of each thread.
    forks: Vec<u32>,
    /// The last write of each variable.
    writers: Vec<u32>,
    /// The open sections of each lock, in the order in which they began.
    open: Vec<Vec<Open>>,
    wakeups: Wakeups<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    thread: ThreadId,
    shared: bool,
    acquire: u32,
}

fn entry_or_none(table: &mut Vec<u32>, index: usize) -> &mut u32 {
    if index >= table.len() {
        table.resize(index + 1, NONE);
    }
    &mut table[index]
}

/// Variables and locks by one number. Callers that use it limit the numbers to half of all.
#[inline]
fn object(number: u32, is_lock: bool) -> u32 {
    number.wrapping_mul(2) | u32::from(is_lock)
}

impl Needs {
    /// Takes the next step of a well-formed trace.
    #[inline]
    pub(crate) fn step(&mut self, id: u32, event: &Event) -> Need {
        let (op, t) = (event.op(), event.thread());
        let mut need =
            Need { kind: Kind::Mark, object: NONE, previous: NONE, partner: NONE, acquire: NONE };
        if op == Op::Init {
            // Not a step: nothing precedes it and nothing needs it.
            need.kind = Kind::Init;
            return need;
        }
        need.previous = std::mem::replace(entry_or_none(&mut self.last, t.index()), id);
        match op {
            Op::Read | Op::VolatileRead | Op::Write | Op::VolatileWrite | Op::Rmw => {
                need.kind = Kind::of_access(op);
                need.object = object(event.var().0, false);
                let writer = entry_or_none(&mut self.writers, event.var().index());
                if op.reads() {
                    need.partner = *writer;
                }
                if op.writes() {
                    *writer = id;
                }
            }
            Op::Acquire => self.open(&mut need, Kind::Acquire, event.lock(), t, id),
            Op::AcquireShared => self.open(&mut need, Kind::AcquireShared, event.lock(), t, id),
            Op::Release => self.close(&mut need, Kind::Release, event.lock(), t),
            Op::ReleaseShared => self.close(&mut need, Kind::ReleaseShared, event.lock(), t),
            Op::WaitBegin => {
                self.wakeups.begin(event.cond(), t, id);
                if let Some(lock) = event.wait_lock() {
                    self.close(&mut need, Kind::Release, lock, t);
                }
            }
            Op::WaitEnd => {
                need.kind = Kind::WaitEnd;
                need.partner = self.wakeups.end(event.cond(), t).unwrap_or(NONE);
                if let Some(lock) = event.wait_lock() {
                    self.open(&mut need, Kind::WaitEnd, lock, t, id);
                }
            }
            Op::Wait => {
                need.kind = Kind::Wait;
                need.partner = self.wakeups.latest(event.cond()).unwrap_or(NONE);
            }
            Op::Notify | Op::NotifyAll => {
                need.kind = Kind::Notify;
                self.wakeups.notify(event.cond(), id, op == Op::NotifyAll);
            }
            Op::Busy | Op::BusyShared => {
                need.kind = Kind::Busy;
                let is_shared = op == Op::BusyShared;
                let open = entry(&mut self.open, event.lock().index());
                let in_the_way = open.iter().find(|s| s.thread != t && !(is_shared && s.shared));
                need.partner = in_the_way.map_or(NONE, |section| section.acquire);
            }
            Op::Fork => *entry_or_none(&mut self.forks, event.other().index()) = id,
            Op::Join => {
                need.kind = Kind::Join;
                let other = event.other().index();
                // Even a thread without events was forked before it could be joined.
                need.partner = match *entry_or_none(&mut self.last, other) {
                    NONE => self.fork(other),
                    last => last,
                };
            }
            _ => {}
        }
        need
    }

    fn open(&mut self, need: &mut Need, kind: Kind, lock: LockId, thread: ThreadId, id: u32) {
        (need.kind, need.object) = (kind, object(lock.0, true));
        let shared = kind == Kind::AcquireShared;
        entry(&mut self.open, lock.index()).push(Open { thread, shared, acquire: id });
    }

    /// Ends the thread's latest section of this kind. A release without one, which a repaired trace
    /// could have, ends nothing.
    fn close(&mut self, need: &mut Need, kind: Kind, lock: LockId, thread: ThreadId) {
        (need.kind, need.object) = (kind, object(lock.0, true));
        let shared = kind == Kind::ReleaseShared;
        let open = entry(&mut self.open, lock.index());
        if let Some(at) = open.iter().rposition(|s| s.thread == thread && s.shared == shared) {
            need.acquire = open.remove(at).acquire;
        }
    }

    /// The fork of a thread.
    #[inline]
    pub(crate) fn fork(&self, thread: usize) -> u32 {
        self.forks.get(thread).copied().unwrap_or(NONE)
    }

    /// The forks of all threads, when the walk is over.
    pub(crate) fn into_forks(self) -> Vec<u32> {
        self.forks
    }
}
