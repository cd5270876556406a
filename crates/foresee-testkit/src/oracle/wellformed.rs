//! Could these events be an execution? Each event is checked against all events before it.
//!
//! The rules are those of `foresee_trace::Validated`, checked without any state that could become
//! stale.

use foresee_trace::{Event, FileOrder, LockId, Op, ThreadId, Trace, Value};

/// The rules for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The recorded first event of a thread is its first, and nothing follows the recorded last one
    /// or a join of the thread.
    Life,
    /// A thread is forked once, by another one, before its first event.
    Fork,
    /// A thread is joined by another one, and not while it is known to be running.
    Join,
    /// A lock is acquired if no other thread blocks it, released by a holder, and an acquire fails
    /// only if another thread blocks it.
    Lock,
    /// Exactly the outermost operations on a lock are marked as outermost. Traces that have not
    /// been normalised violate this rule.
    Outermost,
    /// The holder of the lock begins a wait, the thread does nothing during it, and it ends with
    /// the same condition and lock. After a request, a thread's next event is what it requested.
    Wait,
    /// Methods and regions are left in reverse order of entering, if their entry is known.
    Nesting,
    /// An initial value is declared once, before any access.
    Initial,
    /// A read sees the value written last, if both are known.
    Value,
}

/// An event that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The index of the event.
    pub event: usize,
    /// The rule that it breaks.
    pub rule: Rule,
}

/// All events that violate a rule, in file order. Only the first is reliable: those after it are
/// checked as if it were correct.
pub fn violations(trace: &Trace) -> Vec<Violation> {
    let judge = |event: usize| {
        let before = Before { trace, events: &trace.events[..event] };
        before.broken(&trace.events[event]).map(|rule| Violation { event, rule })
    };
    (0..trace.events.len()).filter_map(judge).collect()
}

/// The events before the one that is checked.
struct Before<'t> {
    trace: &'t Trace,
    events: &'t [Event],
}

impl<'t> Before<'t> {
    fn broken(&self, event: &Event) -> Option<Rule> {
        if event.op() == Op::Init {
            let on_variable = |e: &&Event| self.variable(e) == self.variable(event);
            return self.events.iter().find(on_variable).map(|_| Rule::Initial);
        }
        let t = event.thread();
        let ended = |e: &Event| e.op() == Op::ThreadEnd && e.thread() == t;
        if self.events.iter().any(|e| ended(e) || joins(e, t)) {
            return Some(Rule::Life);
        }
        if self.open_wait(t).is_some() && event.op() != Op::WaitEnd {
            return Some(Rule::Wait);
        }
        if let Some(asked) = self.unanswered(t)
            && !(event.op().answers(asked.op()) && event.target() == asked.target())
        {
            return Some(Rule::Wait);
        }
        match event.op() {
            Op::Read | Op::VolatileRead | Op::Rmw => {
                (!self.sees_last(event)).then_some(Rule::Value)
            }
            Op::ThreadBegin => self.of(t).next().map(|_| Rule::Life),
            Op::Fork => {
                let u = event.other();
                let known = self.of(u).next().is_some()
                    || self.events.iter().any(|e| forks(e, u) || joins(e, u));
                (known || u == t).then_some(Rule::Fork)
            }
            Op::Join => {
                let u = event.other();
                let noted = |op: Op| self.of(u).any(|e| e.op() == op);
                let runs = noted(Op::ThreadBegin) && !noted(Op::ThreadEnd);
                let is_stuck = self.open_wait(u).is_some() || self.unanswered(u).is_some();
                (runs || u == t || is_stuck).then_some(Rule::Join)
            }
            // A method may be left even if its entry was not recorded.
            Op::Exit if !self.is_inside(event) => None,
            Op::Exit => self.leaves(event, Op::Enter),
            Op::End => self.leaves(event, Op::Begin),
            Op::WaitBegin => {
                let lock = event.wait_lock();
                lock.filter(|&lock| self.depth(t, lock, false) == 0).map(|_| Rule::Wait)
            }
            Op::WaitEnd => {
                let fits =
                    |b: &Event| b.target() == event.target() && b.wait_lock() == event.wait_lock();
                if !self.open_wait(t).is_some_and(fits) {
                    return Some(Rule::Wait);
                }
                event.wait_lock().filter(|&l| self.in_the_way(t, l, false)).map(|_| Rule::Lock)
            }
            Op::Busy | Op::BusyShared => {
                let is_shared = event.op() == Op::BusyShared;
                (!self.in_the_way(t, event.lock(), is_shared)).then_some(Rule::Lock)
            }
            op => lock_operation(op).and_then(|operation| self.misused(event, operation)),
        }
    }

    /// The events of a thread.
    fn of(&self, t: ThreadId) -> impl DoubleEndedIterator<Item = &'t Event> {
        self.events.iter().filter(move |e| e.thread() == t && e.op() != Op::Init)
    }

    /// What the thread has requested and not received.
    fn unanswered(&self, t: ThreadId) -> Option<&'t Event> {
        self.of(t).next_back().filter(|e| e.op().requests())
    }

    /// The beginning of a wait that the thread is still in.
    fn open_wait(&self, t: ThreadId) -> Option<&'t Event> {
        let half = self.of(t).rfind(|e| matches!(e.op(), Op::WaitBegin | Op::WaitEnd));
        half.filter(|e| e.op() == Op::WaitBegin)
    }

    /// How often the thread has acquired the lock without releasing it.
    fn depth(&self, t: ThreadId, lock: LockId, shared: bool) -> usize {
        let given_up = self.open_wait(t).is_some_and(|wait| wait.wait_lock() == Some(lock));
        if given_up && !shared {
            return 0;
        }
        let count = |takes: bool| {
            let fits = |e: &&Event| {
                lock_operation(e.op()).is_some_and(|o| (o.takes, o.shared) == (takes, shared))
                    && e.lock() == lock
            };
            self.of(t).filter(fits).count()
        };
        count(true).saturating_sub(count(false))
    }

    /// Whether another thread prevents `t` from acquiring the lock.
    fn in_the_way(&self, t: ThreadId, lock: LockId, shared: bool) -> bool {
        let others = self.events.iter().map(Event::thread).filter(|&u| u != t);
        let holds = |u, shared| self.depth(u, lock, shared) > 0;
        others.into_iter().any(|u| holds(u, false) || !shared && holds(u, true))
    }

    fn misused(&self, event: &Event, operation: LockOperation) -> Option<Rule> {
        let LockOperation { takes, shared, inner } = operation;
        let depth = self.depth(event.thread(), event.lock(), shared);
        let outermost = if takes { depth == 0 } else { depth == 1 };
        let impossible = match takes {
            true => self.in_the_way(event.thread(), event.lock(), shared),
            false => depth == 0,
        };
        if impossible {
            return Some(Rule::Lock);
        }
        (outermost == inner).then_some(Rule::Outermost)
    }

    /// Whether the thread is inside the method that it leaves.
    fn is_inside(&self, event: &Event) -> bool {
        self.open(event, Op::Enter).contains(&event.target())
    }

    /// What the thread has entered and not left.
    fn open(&self, event: &Event, entering: Op) -> Vec<Option<u32>> {
        let mut open = Vec::new();
        for e in self.of(event.thread()) {
            if e.op() == entering {
                open.push(e.target());
            } else if e.op() == event.op() && (entering == Op::Begin || open.contains(&e.target()))
            {
                open.pop();
            }
        }
        open
    }

    /// Whether the innermost thing that the thread has entered is not the one it leaves.
    fn leaves(&self, event: &Event, entering: Op) -> Option<Rule> {
        match self.open(event, entering).last() {
            Some(&innermost) if event.target().is_none() || innermost == event.target() => None,
            _ => Some(Rule::Nesting),
        }
    }

    fn variable(&self, event: &Event) -> Option<u32> {
        let op = event.op();
        if op.reads() || op.writes() || op == Op::Init { event.target() } else { None }
    }

    fn sees_last(&self, event: &Event) -> bool {
        let values = self.trace.pool.values(event);
        // A single value of a read-modify-write is the new one.
        let known = event.op() != Op::Rmw || values.len() == 2;
        match (values.first(), self.last_value(event)) {
            (Some(&seen), Some(last)) if known => {
                seen == last || self.trace.remarks.order == FileOrder::Notes
            }
            _ => true,
        }
    }

    /// The known value of the event's variable.
    fn last_value(&self, event: &Event) -> Option<Value> {
        let on_variable =
            self.events.iter().rev().filter(|e| self.variable(e) == self.variable(event));
        // A read without a value changes nothing and reveals nothing.
        let telling = |e: &&Event| e.op().writes() || self.trace.pool.value(e).is_some();
        on_variable.into_iter().find(telling).and_then(|e| self.trace.pool.value(e))
    }
}

fn forks(event: &Event, t: ThreadId) -> bool {
    event.op() == Op::Fork && event.other() == t
}

fn joins(event: &Event, t: ThreadId) -> bool {
    event.op() == Op::Join && event.other() == t
}

#[derive(Clone, Copy)]
struct LockOperation {
    takes: bool,
    shared: bool,
    inner: bool,
}

fn lock_operation(op: Op) -> Option<LockOperation> {
    let (takes, shared, inner) = match op {
        Op::Acquire => (true, false, false),
        Op::AcquireInner => (true, false, true),
        Op::AcquireShared => (true, true, false),
        Op::AcquireSharedInner => (true, true, true),
        Op::Release => (false, false, false),
        Op::ReleaseInner => (false, false, true),
        Op::ReleaseShared => (false, true, false),
        Op::ReleaseSharedInner => (false, true, true),
        _ => return None,
    };
    Some(LockOperation { takes, shared, inner })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw_trace;

    #[test]
    fn each_rule_can_be_broken() {
        let check = |trace: Trace, event, rule| {
            assert_eq!(violations(&trace).first(), Some(&Violation { event, rule }), "{trace:?}");
        };
        check(raw_trace! { T1: w(x), thread_begin }, 1, Rule::Life);
        check(raw_trace! { T1: thread_end, w(x) }, 1, Rule::Life);
        check(raw_trace! { T1: join(T2); T2: w(x) }, 1, Rule::Life);
        check(raw_trace! { T1: fork(T1) }, 0, Rule::Fork);
        check(raw_trace! { T2: w(x); T1: fork(T2) }, 1, Rule::Fork);
        check(raw_trace! { T1: fork(T2), fork(T2) }, 1, Rule::Fork);
        check(raw_trace! { T1: join(T2), fork(T2) }, 1, Rule::Fork);
        check(raw_trace! { T2: thread_begin; T1: join(T2) }, 1, Rule::Join);
        check(raw_trace! { T2: wait_begin(c); T1: join(T2) }, 1, Rule::Join);
        check(raw_trace! { T1: acq(l); T2: acq(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: racq(l); T2: acq(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: acq(l); T2: rel(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: acq(l), rrel(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: acq(l), busy(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: racq(l); T2: rbusy(l) }, 1, Rule::Lock);
        check(raw_trace! { T1: acq(l), acq(l) }, 1, Rule::Outermost);
        check(raw_trace! { T1: wait_begin(c,l) }, 0, Rule::Wait);
        check(raw_trace! { T1: wait_begin(c), w(x) }, 1, Rule::Wait);
        check(raw_trace! { T1: wait_begin(c), wait_end(d) }, 1, Rule::Wait);
        check(raw_trace! { T1: wait_end(c) }, 0, Rule::Wait);
        check(
            raw_trace! { T1: acq(l), wait_begin(c,l); T2: acq(l); T1: wait_end(c,l) },
            3,
            Rule::Lock,
        );
        check(raw_trace! { T1: enter(f), enter(g), exit(f) }, 2, Rule::Nesting);
        check(raw_trace! { T1: end }, 0, Rule::Nesting);
        check(raw_trace! { T1: r(x), init(x)=1 }, 1, Rule::Initial);
        check(raw_trace! { T1: init(x)=1, init(x)=1 }, 1, Rule::Initial);
        check(raw_trace! { T1: init(x)=1, r(x)=2 }, 1, Rule::Value);
        check(raw_trace! { T1: w(x)=1, rmw(x)=2->3 }, 1, Rule::Value);
    }

    #[test]
    fn what_may_be_left_open_is_fine() {
        for trace in [
            raw_trace! { T1: acq(l), enter(f), begin; T2: wait_begin(c) },
            raw_trace! { T1: racq(l); T2: racq(l); T1: rrel(l); T2: rrel(l); T3: acq(l) },
            raw_trace! { T1: acq(l), wait_begin(c,l); T2: acq(l), rel(l); T1: wait_end(c,l), rel(l) },
            raw_trace! { T1: r(x), w(x), r(x)=3, w(x)=1, rmw(x)=2, r(x)=2 },
            raw_trace! { T1: begin(a), end },
            raw_trace! { T1: exit(f), enter(g), exit(f), exit(g) },
        ] {
            assert_eq!(violations(&trace), []);
        }
    }
}
