//! What has happened in every reordering by the time of an event, as far as that is known without a
//! search: what its thread did, what made its thread start or wait, and the writes that were read.

use foresee_causality::{Clock, ClockStore};
use foresee_trace::{Event, Id, Op, ThreadId, entry};

/// A write: whose, when, and what its thread knew.
#[derive(Clone, Copy, Debug)]
struct Write {
    thread: ThreadId,
    time: u32,
    known: Clock,
}

/// Follows a trace. An event's time is its index, counted from one.
#[derive(Debug, Default)]
pub(super) struct Needs {
    store: ClockStore,
    threads: Vec<Clock>,
    writes: Vec<Option<Write>>,
    /// The latest event of each thread.
    last: Vec<u32>,
}

impl Needs {
    /// Takes the next event.
    pub(super) fn event(&mut self, i: u32, event: &Event) {
        let (op, t) = (event.op(), event.thread());
        match op {
            Op::Init => return,
            Op::Fork => {
                let known = *entry(&mut self.threads, t.index());
                let child = entry(&mut self.threads, event.other().index());
                *child = self.store.learn(*child, known, t, [i + 1]);
            }
            Op::Join => {
                let other = event.other();
                let known = *entry(&mut self.threads, other.index());
                let last = *entry(&mut self.last, other.index());
                let own = entry(&mut self.threads, t.index());
                *own = self.store.learn(*own, known, other, [last]);
            }
            _ if op.reads() || op.writes() => self.access(i, event),
            _ => {}
        }
        *entry(&mut self.last, t.index()) = i + 1;
        if self.store.is_worth_collecting(self.threads.len() + self.writes.len()) {
            let writes = self.writes.iter().flatten().map(|write| write.known);
            self.store.collect(self.threads.iter().copied().chain(writes));
        }
    }

    fn access(&mut self, i: u32, event: &Event) {
        let (op, t) = (event.op(), event.thread());
        let known = *entry(&mut self.threads, t.index());
        let seen = *entry(&mut self.writes, event.var().index());
        let mut now = known;
        if let Some(write) = seen.filter(|write| op.reads() && write.thread != t) {
            now = self.store.learn(known, write.known, write.thread, [write.time]);
            self.threads[t.index()] = now;
        }
        if op.writes() {
            let write = Write { thread: t, time: i + 1, known: now };
            self.writes[event.var().index()] = Some(write);
        }
    }

    /// Whether the thread's present event needs an earlier event of another thread.
    pub(super) fn has(&self, thread: ThreadId, other: ThreadId, event: u32) -> bool {
        let known = self.threads.get(thread.index()).copied().unwrap_or(Clock::EMPTY);
        self.store.get(known, other)[0] > event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_testkit::trace;

    #[test]
    fn forks_joins_and_reads_make_needs() {
        let trace = trace! {
            T0: fork(T1), fork(T2); T1: w(x); T2: acq(l), rel(l), r(x), w(y);
            T1: w(z); T0: r(y), join(T1), w(q)
        };
        let mut needs = Needs::default();
        let mut known = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            needs.event(i as u32, event);
            let t = |name: &str| trace.names.threads.lookup(name).unwrap();
            known.push((needs.has(t("T0"), t("T1"), 2), needs.has(t("T0"), t("T1"), 7)));
        }
        assert_eq!(known[7], (false, false));
        assert_eq!(known[8], (true, false));
        assert_eq!(known[9], (true, true));
    }
}
