//! The rules of dependence: the only place that says which events are ordered by which.
//!
//! Two events of different threads are ordered directly because they touch the same *object* (a
//! variable or a lock), or because they are *linked* (fork, join, wake-up). Every operation touches
//! its object as a reader or as a writer does; the orders differ only in who counts as which:
//!
//! | operation | Mazurkiewicz | reads-from | synchronisation only | needs |
//! |---|---|---|---|---|
//! | read | after the last write; a read | after the last write | – | after the last write |
//! | write | after all accesses; a write | a write | – | a write |
//! | read-modify-write | after all accesses; a write | after the last write; a write | – | after the last write; a write |
//! | acquire, end of wait | after all; a write | after all releases | – | – |
//! | shared acquire | after all; a write | after all releases but shared ones | – | – |
//! | release, begin of wait | after all; a write | a release | – | – |
//! | failed try-lock | after all; a write | – | – | – |
//! | fork, join, notify | linked | linked | linked | linked, but a notification waits for nobody |
//!
//! Two more are for races. *Happens before* is what race detectors go by: the needs without the writes
//! that plain reads saw, and an acquire comes after the releases that exclude it: all of them, or
//! only the exclusive ones if it is shared. *Schedulable happens before* has those writes, too.
//!
//! In all of them a thread's own events are ordered, and initial values precede everything.

use foresee_trace::{Event, Op};

/// Which relation between events is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// What every reordering must keep so that each thread does what it did: conflicting accesses
    /// and the operations of each lock in the order seen. Sound for prediction.
    Mazurkiewicz,
    /// What one execution's events owe to each other: writes before the reads that saw them,
    /// releases before later acquires, but for those that share a lock. It describes an execution; a linearisation of it may change
    /// what reads see, so it is not fit for prediction.
    ReadsFrom,
    /// Program order, forks, joins and wake-ups alone.
    SyncOnly,
    /// What an event cannot do without in any correct reordering: those, and the writes that reads
    /// saw. Locks exclude each other but order nothing.
    Needs,
    /// Synchronisation as it was observed: releases before the acquires that they made wait, atomic
    /// writes before the atomic reads that saw them. Of the accesses that it leaves unordered only
    /// the first pair is known to be a race.
    HappensBefore,
    /// The same, and all writes before the reads that saw them: whatever it leaves unordered could
    /// have come at once.
    Schedulable,
}

impl Order {
    /// Whether a notification comes after the beginning of every wait that it could have ended.
    #[inline]
    pub(crate) fn notifies_waiters(self) -> bool {
        matches!(self, Order::Mazurkiewicz | Order::ReadsFrom | Order::SyncOnly)
    }
}

/// What an operation waits for on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// Nobody.
    Nothing,
    /// The last write.
    Write,
    /// The last write and every read since.
    All,
}

/// What an operation leaves behind on its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing that later operations need to know.
    Nothing,
    /// A read, or in the reads-from order a release.
    Read,
    /// A write, which takes the place of everything before.
    Write,
}

/// What an operation does to the object it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Which earlier operations it comes after.
    pub follows: Follows,
    /// As what later operations see it.
    pub leaves: Leaves,
}

impl Effect {
    /// The effect of an operation that touches nothing.
    pub const NONE: Effect = Effect { follows: Follows::Nothing, leaves: Leaves::Nothing };

    const fn new(follows: Follows, leaves: Leaves) -> Effect {
        Effect { follows, leaves }
    }
}

/// How an operation is tied to another thread, in every order alike, only that among the
/// [needs](Order::Needs) of a notification there is nobody who waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Not at all.
    None,
    /// Before the first event of the thread it starts.
    Fork,
    /// After the last event of the thread it waited for.
    Join,
    /// After the beginning of every wait it could end, and before the end of those it does.
    Notify {
        /// Whether it wakes everybody.
        all: bool,
    },
    /// Ready to be woken.
    WaitBegin,
    /// After the notification that woke it.
    WaitEnd,
    /// After the latest notification: when the wait began was not noted.
    Wait,
}

impl Order {
    /// What an operation does to its variable or lock.
    #[inline]
    pub fn effect(self, op: Op) -> Effect {
        use Order::{HappensBefore, Mazurkiewicz, Needs, ReadsFrom, Schedulable, SyncOnly};
        match (self, op) {
            (SyncOnly, _) => Effect::NONE,
            (Mazurkiewicz, Op::Read | Op::VolatileRead) => {
                Effect::new(Follows::Write, Leaves::Read)
            }
            (
                Mazurkiewicz,
                Op::Write
                | Op::VolatileWrite
                | Op::Rmw
                | Op::Acquire
                | Op::Release
                | Op::AcquireShared
                | Op::ReleaseShared
                | Op::Busy
                | Op::BusyShared
                | Op::WaitBegin
                | Op::WaitEnd,
            ) => Effect::new(Follows::All, Leaves::Write),
            (ReadsFrom | Needs | Schedulable, Op::Read | Op::VolatileRead)
            | (HappensBefore, Op::VolatileRead) => Effect::new(Follows::Write, Leaves::Nothing),
            (ReadsFrom | Needs | Schedulable, Op::Write | Op::VolatileWrite)
            | (HappensBefore, Op::VolatileWrite) => Effect::new(Follows::Nothing, Leaves::Write),
            (ReadsFrom | Needs | HappensBefore | Schedulable, Op::Rmw) => {
                Effect::new(Follows::Write, Leaves::Write)
            }
            (ReadsFrom | HappensBefore | Schedulable, Op::Acquire | Op::WaitEnd) => {
                Effect::new(Follows::All, Leaves::Nothing)
            }
            // Those who share a lock do not wait for each other.
            (ReadsFrom | HappensBefore | Schedulable, Op::AcquireShared) => {
                Effect::new(Follows::Write, Leaves::Nothing)
            }
            // Who had the lock alone came after all who shared it before.
            (ReadsFrom | HappensBefore | Schedulable, Op::Release | Op::WaitBegin) => {
                Effect::new(Follows::Nothing, Leaves::Write)
            }
            (ReadsFrom | HappensBefore | Schedulable, Op::ReleaseShared) => {
                Effect::new(Follows::Nothing, Leaves::Read)
            }
            // Inner operations of re-entrant locks, calls, regions and named events touch nothing.
            (Mazurkiewicz | ReadsFrom | Needs | HappensBefore | Schedulable, _) => Effect::NONE,
        }
    }

    /// How an operation is tied to another thread.
    #[inline]
    pub fn link(op: Op) -> Link {
        match op {
            Op::Fork => Link::Fork,
            Op::Join => Link::Join,
            Op::Notify => Link::Notify { all: false },
            Op::NotifyAll => Link::Notify { all: true },
            Op::WaitBegin => Link::WaitBegin,
            Op::WaitEnd => Link::WaitEnd,
            Op::Wait => Link::Wait,
            _ => Link::None,
        }
    }

    /// Whether the event is a step of its thread at all: an initial value is not.
    #[inline]
    pub fn is_step(event: &Event) -> bool {
        event.op() != Op::Init
    }
}
