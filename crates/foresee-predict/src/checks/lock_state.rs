//! The locks that each thread holds at each event of the trace, and where it acquired them.

use foresee_trace::{Event, Id, ThreadId, entry};

use super::locksets::{Hold, LockSetId, LockSets};

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) hold: Hold,
    /// The event that acquired it.
    pub(crate) acquire: u32,
    /// The set held before, which is restored if locks are released in reverse order. Not known if
    /// one of its locks has been released since.
    before: Option<LockSetId>,
}

/// The locks held just before the current event.
#[derive(Debug, Default)]
pub(crate) struct LockState {
    pub(crate) locksets: LockSets,
    threads: Vec<Holding>,
}

#[derive(Debug, Default)]
struct Holding {
    held: Vec<Held>,
    set: LockSetId,
}

/// The lock that an event acquires. Inner operations of re-entrant locks do not count.
#[inline]
pub(crate) fn taken(event: &Event) -> Option<Hold> {
    edge(event, true)
}

/// The lock that an event releases.
#[inline]
pub(crate) fn given(event: &Event) -> Option<Hold> {
    edge(event, false)
}

#[inline]
fn edge(event: &Event, takes: bool) -> Option<Hold> {
    let edge = event.lock_edge().filter(|edge| edge.takes == takes)?;
    Some(Hold { lock: edge.lock, shared: edge.shared })
}

impl LockState {
    /// The state before a trace, with sets that are already interned.
    pub(crate) fn with(locksets: LockSets) -> LockState {
        LockState { locksets, threads: Vec::new() }
    }

    /// Advances past an event.
    #[inline]
    pub(crate) fn event(&mut self, index: u32, event: &Event) {
        if let Some(hold) = taken(event) {
            self.take(index, event.thread(), hold);
        } else if let Some(hold) = given(event) {
            self.give(event.thread(), hold);
        }
    }

    /// A thread acquires a lock.
    pub(crate) fn take(&mut self, index: u32, thread: ThreadId, hold: Hold) {
        let Holding { held, set } = entry(&mut self.threads, thread.index());
        held.push(Held { hold, acquire: index, before: Some(*set) });
        let extended = self.locksets.extend(*set, hold);
        let intern = || self.locksets.intern(held.iter().map(|h| h.hold));
        *set = extended.unwrap_or_else(intern);
    }

    /// A thread releases a lock.
    pub(crate) fn give(&mut self, thread: ThreadId, hold: Hold) {
        let Holding { held, set } = entry(&mut self.threads, thread.index());
        let Some(at) = held.iter().rposition(|h| h.hold == hold) else { return };
        let Held { before, .. } = held.remove(at);
        // The sets of the locks above it change; most of them are never asked for.
        held[at..].iter_mut().for_each(|above| above.before = None);
        *set = match before.filter(|_| at == held.len()) {
            Some(before) => before,
            None => self.locksets.intern(held.iter().map(|h| h.hold)),
        };
    }

    /// The locks that a thread holds, in the order in which it acquired them.
    pub(crate) fn held(&self, thread: ThreadId) -> &[Held] {
        self.threads.get(thread.index()).map_or(&[], |t| &t.held)
    }

    /// The locks that a thread holds, as a set.
    #[inline]
    pub(crate) fn set(&self, thread: ThreadId) -> LockSetId {
        self.threads.get(thread.index()).map_or(LockSetId::EMPTY, |t| t.set)
    }
}

#[cfg(test)]
mod tests {
    use foresee_testkit::trace;

    use super::*;

    #[test]
    fn locks_are_held_from_acquire_to_release_in_any_order() {
        let trace = trace! {
            T1: acq(a), acq(b), rel(a), acq(c), acq(b), rel(b), rel(b), rel(c), racq(a), w(x)
        };
        let mut lock_state = LockState::default();
        let mut held = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            lock_state.event(i as u32, event);
            let now: Vec<u32> = lock_state.held(event.thread()).iter().map(|h| h.acquire).collect();
            held.push(now);
        }
        let expected: [&[u32]; 10] =
            [&[0], &[0, 1], &[1], &[1, 3], &[1, 3], &[1, 3], &[3], &[], &[8], &[8]];
        assert_eq!(held, expected);
    }

    #[test]
    fn the_set_is_that_of_the_locks_held() {
        for seed in 0..500 {
            let trace = foresee_testkit::random_trace(seed);
            let mut lock_state = LockState::default();
            for (i, event) in trace.events.iter().enumerate() {
                lock_state.event(i as u32, event);
                let held: Vec<Hold> =
                    lock_state.held(event.thread()).iter().map(|h| h.hold).collect();
                let set = lock_state.set(event.thread());
                assert_eq!(
                    lock_state.locksets.intern(held.into_iter()),
                    set,
                    "seed {seed}\n{trace}"
                );
            }
        }
    }
}
