//! Vector clocks, one counter per thread, shared instead of copied.

mod store;

pub use store::{Clock, ClockStore};

use foresee_trace::ThreadId;

/// The identity of an event in a causal order: its thread and its time there.
///
/// Times start at one. Time zero precedes everything; initial values of variables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(from = "(u32, u32)", into = "(u32, u32)")]
pub struct Epoch {
    /// The event's thread.
    pub thread: ThreadId,
    /// The number of events of the thread up to and including this one.
    pub time: u32,
}

impl From<(u32, u32)> for Epoch {
    fn from((thread, time): (u32, u32)) -> Epoch {
        Epoch { thread: ThreadId(thread), time }
    }
}

impl From<Epoch> for (u32, u32) {
    fn from(epoch: Epoch) -> (u32, u32) {
        (epoch.thread.0, epoch.time)
    }
}

/// The position of an event in a causal order: its own identity, and what its thread knew about the
/// others.
///
/// This is a vector clock in at most sixteen bytes: the vector itself is in a [`ClockStore`], where
/// similar clocks share their parts.
///
/// `N` is the number of counters per thread. The first counts all events; a second one, if present,
/// counts only the relevant ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<const N: usize = 1> {
    /// The event's thread.
    pub thread: ThreadId,
    /// The counters of the event's own thread.
    pub time: [u32; N],
    /// The counters of the other threads. Its entry for the event's own thread is out of date.
    pub known: Clock,
}

impl<const N: usize> Stamp<N> {
    /// The identity of the event.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch { thread: self.thread, time: self.time[0] }
    }
}
