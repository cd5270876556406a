//! Vectors of counters, one counter a thread, shared instead of copied.

mod store;

pub use store::{Clock, ClockStore};

use foresee_trace::ThreadId;

/// The name of an event in a causal order: its thread and its time there.
///
/// Times count from one. Time zero is before everything: the initial values of variables have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Epoch {
    /// The event's thread.
    pub thread: ThreadId,
    /// How many events of the thread there are up to this one.
    pub time: u32,
}

/// An event's place in a causal order: its own name, and what its thread knew of the others.
///
/// This is a vector clock in sixteen bytes at most: the vector itself lives in a [`ClockStore`],
/// where clocks with much in common share their parts.
///
/// `N` is how many counters there are for each thread: the first counts all events; a second one,
/// where there is one, counts only those that matter to somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<const N: usize = 1> {
    /// The event's thread.
    pub thread: ThreadId,
    /// The counters of the event's own thread.
    pub time: [u32; N],
    /// The counters of the other threads. What it holds for the own thread is out of date.
    pub known: Clock,
}

impl<const N: usize> Stamp<N> {
    /// The event's name.
    #[inline]
    pub fn epoch(&self) -> Epoch {
        Epoch { thread: self.thread, time: self.time[0] }
    }
}
