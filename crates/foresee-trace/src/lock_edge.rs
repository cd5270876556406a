//! Taking and releasing locks.

use crate::{Event, LockId, Op};

/// One end of a critical section: an event that takes a lock or releases it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockEdge {
    /// The lock.
    pub lock: LockId,
    /// Whether others may hold it at the same time in the same way.
    pub shared: bool,
    /// Whether the event takes the lock; otherwise it releases it.
    pub takes: bool,
}

impl Event {
    /// The lock that the event takes or releases, if it does. Inner operations of re-entrant locks do neither; a wait
    /// releases its lock when it begins and takes it when it ends.
    ///
    /// ```
    /// use foresee_trace::{Event, LockEdge, LockId, Op, ThreadId};
    ///
    /// let acquire = Event::new(ThreadId(0), Op::AcquireShared).with_target(7);
    /// let edge = LockEdge { lock: LockId(7), shared: true, takes: true };
    /// assert_eq!(acquire.lock_edge(), Some(edge));
    /// assert_eq!(Event::new(ThreadId(0), Op::Write).with_target(7).lock_edge(), None);
    /// ```
    #[inline]
    pub fn lock_edge(&self) -> Option<LockEdge> {
        let of = |lock, shared, takes| Some(LockEdge { lock, shared, takes });
        match self.op() {
            Op::Acquire => of(self.lock(), false, true),
            Op::Release => of(self.lock(), false, false),
            Op::AcquireShared => of(self.lock(), true, true),
            Op::ReleaseShared => of(self.lock(), true, false),
            Op::WaitEnd => of(self.wait_lock()?, false, true),
            Op::WaitBegin => of(self.wait_lock()?, false, false),
            _ => None,
        }
    }
}
