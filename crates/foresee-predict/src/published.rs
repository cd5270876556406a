//! Variables that are settled by forks: one thread has written them before it started the threads that read them.
//!
//! Whatever the order of events is, a thread begins after its fork, and with that after everything its parent, and the
//! parent of that, had done by then. So the reads of such a variable see the same write in every reordering, no other
//! access can come between, and like what [one thread](crate::users) has for itself, it orders nothing: settings, and
//! tables that are filled when a program begins. Variables that are never written are among them.

use foresee_trace::{Id, ThreadId, entry};

use crate::needs::{Kind, NONE};

/// How many generations of threads are looked at.
const MOST_GENERATIONS: usize = 8;

/// The accesses of variables so far, by the variables' numbers.
#[derive(Debug, Default)]
pub(crate) struct Published {
    variables: Vec<Variable>,
    /// For each thread that was forked, by whom and when.
    parents: Vec<Option<(u32, u32)>>,
}

#[derive(Clone, Copy, Debug)]
struct Variable {
    /// The thread that wrote it, or the only one that has read it.
    thread: u32,
    /// The last write.
    written: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unused,
    /// One thread uses it.
    Own,
    /// Others have read it, too.
    Published,
    /// None of this.
    Shared,
}

const UNUSED: Variable = Variable { thread: NONE, written: NONE, state: State::Unused };

impl Published {
    /// A thread starts another one.
    pub(crate) fn fork(&mut self, parent: ThreadId, child: ThreadId, event: u32) {
        entry(&mut self.parents, child.index()).get_or_insert((parent.0, event));
    }

    /// The next access to a variable.
    #[inline]
    pub(crate) fn access(&mut self, variable: usize, thread: u32, kind: Kind, event: u32) {
        if self.variables.len() <= variable {
            self.variables.resize(variable + 1, UNUSED);
        }
        let Variable { thread: owner, written, state } = self.variables[variable];
        let state = match state {
            State::Shared => return,
            State::Unused => State::Own,
            State::Own if thread == owner => State::Own,
            _ if kind.writes() => State::Shared,
            _ if thread == owner || written == NONE || self.knows(thread, owner, written) => {
                State::Published
            }
            _ => State::Shared,
        };
        let known = &mut self.variables[variable];
        known.state = state;
        if state == State::Own {
            known.thread = thread;
            known.written = if kind.writes() { event } else { written };
        }
    }

    /// Whether a thread was started after an event of another one.
    fn knows(&self, thread: u32, other: u32, event: u32) -> bool {
        let mut at = thread;
        for _ in 0..MOST_GENERATIONS {
            let Some(&Some((parent, fork))) = self.parents.get(at as usize) else { return false };
            if parent == other {
                return fork > event;
            }
            at = parent;
        }
        false
    }

    /// Whether forks settle everything about a variable.
    pub(crate) fn is_settled(&self, variable: usize) -> bool {
        self.variables.get(variable).is_some_and(|v| v.state != State::Shared)
    }
}

#[cfg(test)]
mod tests {
    use foresee_testkit::trace;
    use foresee_trace::{Id, Op, Trace};

    use super::Published;
    use crate::needs::Kind;

    /// The settled variables of a trace.
    fn settled(trace: &Trace) -> Vec<&str> {
        let mut published = Published::default();
        for (index, event) in (0..).zip(&trace.events) {
            let kind = match event.op() {
                Op::Fork => {
                    published.fork(event.thread(), event.other(), index);
                    continue;
                }
                Op::Rmw => Kind::Rmw,
                Op::Read => Kind::Read,
                Op::Write => Kind::Write,
                _ => continue,
            };
            published.access(event.var().index(), event.thread().0, kind, index);
        }
        let names = trace.names.vars.iter();
        names.filter(|(var, _)| published.is_settled(var.index())).map(|(_, name)| name).collect()
    }

    #[test]
    fn forks_settle_what_was_written_before() {
        let trace = trace! {
            T1: w(old)=1, w(late)=1, fork(T2), w(late)=2, w(second)=1, fork(T3), r(old)=1;
            T2: r(old)=1, r(none)=0, r(late)=2, fork(T4);
            T3: r(old)=1, r(second)=1, r(none)=0;
            T4: r(old)=1, w(own)=1, r(own)=1, r(second)=1
        };
        // T4 was not started after the write of `second`, which is its grandparent's.
        assert_eq!(settled(&trace), ["old", "none", "own"]);
        let rewritten =
            trace! { T1: w(x)=1, w(y)=1, fork(T2); T2: r(x)=1, r(y)=1; T1: w(x)=2; T2: w(y)=2 };
        assert!(settled(&rewritten).is_empty());
        let unrelated = trace! { T1: w(x)=1; T2: r(x)=1 };
        assert!(settled(&unrelated).is_empty());
    }
}
