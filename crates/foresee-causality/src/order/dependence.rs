//! The rules of dependence: the only place that defines which events are ordered by which.
//!
//! Two events of different threads are ordered directly because they touch the same *object* (a
//! variable or a lock), or because they are *linked* (fork, join, wake-up). Every operation touches
//! its object as a reader or as a writer; the orders differ only in what counts as which:
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
//! | fork, join, notify | linked | linked | linked | linked, but a notification needs no waiter |
//!
//! Two more orders are for races. *Happens before* is what race detectors use: the needs without
//! the writes that plain reads saw; and an acquire comes after the releases that exclude it: all of
//! them, or only the exclusive ones if it is shared. *Schedulable happens before* includes those
//! writes.
//!
//! In all of them, the events of a thread are ordered, and initial values precede everything.

use foresee_trace::{Event, Op};

/// A relation between events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// What every reordering must preserve so that each thread acts as it did: the observed order
    /// of conflicting accesses and of the operations of each lock. Sound for prediction.
    Mazurkiewicz,
    /// The dependencies within one execution: writes before the reads that saw them, releases
    /// before later acquires, except among shared holds. It describes an execution; a linearisation
    /// of it may change what reads see, so it is unsuitable for prediction.
    ReadsFrom,
    /// Only program order, forks, joins and wake-ups.
    SyncOnly,
    /// What an event depends on in every correct reordering: those, and the writes that reads saw.
    /// Locks exclude each other but order nothing.
    Needs,
    /// Observed synchronisation: releases before the acquires that waited for them, atomic writes
    /// before the atomic reads that saw them. Of the accesses that it leaves unordered, only the
    /// first pair is known to be a race.
    HappensBefore,
    /// Like [`Order::HappensBefore`], plus all writes before the reads that saw them: accesses that
    /// it leaves unordered could have happened at the same time.
    Schedulable,
}

impl Order {
    /// Whether a notification comes after the beginning of every wait that it could have ended.
    #[inline]
    pub(crate) fn notifies_waiters(self) -> bool {
        matches!(self, Order::Mazurkiewicz | Order::ReadsFrom | Order::SyncOnly)
    }
}

/// Which earlier operations on its object an operation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// None.
    Nothing,
    /// The last write.
    Write,
    /// The last write and every read since.
    All,
}

/// How later operations on the object see an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Not at all.
    Nothing,
    /// A read, or in the reads-from order a release.
    Read,
    /// As a write, which replaces everything before it.
    Write,
}

/// The effect of an operation on the object that it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Which earlier operations it comes after.
    pub follows: Follows,
    /// How later operations see it.
    pub leaves: Leaves,
}

impl Effect {
    /// The effect of an operation that touches no object.
    pub const NONE: Effect = Effect { follows: Follows::Nothing, leaves: Leaves::Nothing };

    const fn new(follows: Follows, leaves: Leaves) -> Effect {
        Effect { follows, leaves }
    }
}

/// How an operation is linked to other threads. This is the same in every order, except that among
/// the [needs](Order::Needs) of a notification there is no waiting thread.
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
        /// Whether it wakes all waiting threads.
        all: bool,
    },
    /// Can be woken from here on.
    WaitBegin,
    /// After the notification that woke it.
    WaitEnd,
    /// After the latest notification, because the beginning of the wait was not recorded.
    Wait,
}

impl Order {
    /// The effect of an operation on its variable or lock.
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
            // Threads that share a lock do not wait for each other.
            (ReadsFrom | HappensBefore | Schedulable, Op::AcquireShared) => {
                Effect::new(Follows::Write, Leaves::Nothing)
            }
            // An exclusive holder came after all earlier shared ones.
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

    /// How an operation is linked to other threads.
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

    /// Whether the event is a step of its thread; an initial value is not.
    #[inline]
    pub fn is_step(event: &Event) -> bool {
        event.op() != Op::Init
    }
}
