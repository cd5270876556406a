//! Which notification woke which wait.
//!
//! Captures see notifications and wake-ups, but not which belong together. Any pairing in which
//! each notification lies between the beginning and the end of the wait it wakes, and wakes only
//! one unless it wakes all, is possible for the program. This one is computed in one pass with one
//! entry per waiting thread:
//!
//! - a notification is assigned to the thread that has waited longest without one, or, if it wakes
//!   all, to every thread that waits without one;
//! - a wait that ends takes the notification assigned to it. If there is none, it takes over the
//!   oldest one that came after it began and was assigned to another thread alone; without one of
//!   these, no thread woke it (a timeout, an interrupt, or a spurious wake-up).
//!
//! A wake-up whose wait was not recorded follows the latest notification.
//!
//! A notification before the wait would have been lost. The lock usually prevents that, but a
//! program may notify without it, so a notification comes after the beginning of every wait that
//! it could have ended.

use foresee_trace::{CondId, Id, ThreadId};

/// Pairs wake-ups with notifications; `T` is what the caller wants to remember of each.
#[derive(Debug)]
pub struct Wakeups<T> {
    conds: Vec<Cond<T>>,
    /// Orders beginnings of waits and notifications.
    now: u64,
}

#[derive(Debug)]
struct Cond<T> {
    latest: Option<T>,
    /// In the order in which the waits began.
    waiting: Vec<Waiter<T>>,
}

#[derive(Debug)]
struct Waiter<T> {
    thread: ThreadId,
    begin: T,
    since: u64,
    kept: Option<Kept<T>>,
}

#[derive(Clone, Copy, Debug)]
struct Kept<T> {
    note: T,
    at: u64,
    for_all: bool,
}

impl<T> Default for Wakeups<T> {
    fn default() -> Self {
        Wakeups { conds: Vec::new(), now: 0 }
    }
}

impl<T: Copy> Wakeups<T> {
    fn cond(&mut self, c: CondId) -> &mut Cond<T> {
        if c.index() >= self.conds.len() {
            self.conds.resize_with(c.index() + 1, || Cond { latest: None, waiting: Vec::new() });
        }
        &mut self.conds[c.index()]
    }

    /// A thread begins to wait.
    pub fn begin(&mut self, c: CondId, thread: ThreadId, begin: T) {
        self.now += 1;
        let since = self.now;
        self.cond(c).waiting.push(Waiter { thread, begin, since, kept: None });
    }

    /// The beginning of the `i`-th wait that has not ended, if there is one.
    pub fn waiting(&mut self, c: CondId, i: usize) -> Option<T> {
        self.cond(c).waiting.get(i).map(|w| w.begin)
    }

    /// A thread notifies.
    pub fn notify(&mut self, c: CondId, note: T, all: bool) {
        self.now += 1;
        let kept = Kept { note, at: self.now, for_all: all };
        let cond = self.cond(c);
        cond.latest = Some(note);
        for waiter in cond.waiting.iter_mut().filter(|w| w.kept.is_none()) {
            waiter.kept = Some(kept);
            if !all {
                break;
            }
        }
    }

    /// A thread's wait ends; returns the notification that woke it, if any.
    pub fn end(&mut self, c: CondId, thread: ThreadId) -> Option<T> {
        let waiting = &mut self.cond(c).waiting;
        let mine = waiting.remove(waiting.iter().position(|w| w.thread == thread)?);
        if let Some(kept) = mine.kept {
            return Some(kept.note);
        }
        let robbed = waiting
            .iter_mut()
            .filter(|w| w.kept.is_some_and(|k| !k.for_all && k.at > mine.since))
            .min_by_key(|w| w.kept.map(|k| k.at))?;
        robbed.kept.take().map(|k| k.note)
    }

    /// Whether a notification is assigned to a waiting thread.
    pub fn is_woken(&self, c: CondId, thread: ThreadId) -> bool {
        let waiting = self.conds.get(c.index()).map_or(&[][..], |cond| &cond.waiting);
        waiting.iter().any(|waiter| waiter.thread == thread && waiter.kept.is_some())
    }

    /// The same pairing with other remembered data.
    pub(crate) fn map<U>(&self, mut to: impl FnMut(&T) -> U) -> Wakeups<U> {
        let mut conds = Vec::with_capacity(self.conds.len());
        for cond in &self.conds {
            let mut waiting = Vec::with_capacity(cond.waiting.len());
            for w in &cond.waiting {
                let kept = w.kept.as_ref();
                let kept = kept.map(|k| Kept { note: to(&k.note), at: k.at, for_all: k.for_all });
                waiting.push(Waiter {
                    thread: w.thread,
                    begin: to(&w.begin),
                    since: w.since,
                    kept,
                });
            }
            conds.push(Cond { latest: cond.latest.as_ref().map(&mut to), waiting });
        }
        Wakeups { conds, now: self.now }
    }

    /// The latest notification.
    pub fn latest(&mut self, c: CondId) -> Option<T> {
        self.cond(c).latest
    }

    /// All remembered data that may still be needed.
    pub fn notes(&self) -> impl Iterator<Item = T> + '_ {
        let waiters = self.conds.iter().flat_map(|c| &c.waiting);
        let kept = waiters.flat_map(|w| [Some(w.begin), w.kept.map(|k| k.note)]);
        self.conds.iter().map(|c| c.latest).chain(kept).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const C: CondId = CondId(0);
    const A: ThreadId = ThreadId(1);
    const B: ThreadId = ThreadId(2);

    #[test]
    fn one_notification_wakes_one_wait() {
        let mut wakeups = Wakeups::default();
        wakeups.notify(C, 0, false);
        wakeups.begin(C, A, 0);
        wakeups.begin(C, B, 0);
        wakeups.notify(C, 1, false);
        // B wakes first: it takes over the notification assigned to A, and A gets the next one.
        assert_eq!(wakeups.end(C, B), Some(1));
        wakeups.notify(C, 2, false);
        assert_eq!(wakeups.end(C, A), Some(2));
        wakeups.begin(C, A, 0);
        assert_eq!(wakeups.end(C, A), None);
        assert_eq!(wakeups.latest(C), Some(2));
    }

    #[test]
    fn a_notification_before_the_wait_does_not_wake_it() {
        let mut wakeups = Wakeups::default();
        wakeups.begin(C, A, 0);
        wakeups.notify(C, 1, false);
        wakeups.begin(C, B, 0);
        assert_eq!(wakeups.end(C, B), None);
        assert_eq!(wakeups.end(C, A), Some(1));
    }

    #[test]
    fn notify_all_wakes_all() {
        let mut wakeups = Wakeups::default();
        wakeups.begin(C, A, 0);
        wakeups.begin(C, B, 0);
        wakeups.notify(C, 1, true);
        assert_eq!(wakeups.end(C, B), Some(1));
        assert_eq!(wakeups.end(C, A), Some(1));
    }
}
