//! Threads that are stuck at the end of the observed run: they wait for something that no thread
//! will do.
//!
//! Every thread whose last event is a request, or the beginning of a wait without a time limit,
//! counts as stuck at first. Then those that another thread could help are freed, one after the
//! other: a lock can be released by holders that are neither stuck nor gone, a thread can be joined
//! if it is not stuck, and a wait for a condition, a semaphore or a barrier may be ended by any
//! thread that can still run. The rest wait forever.

use foresee_causality::Wakeups;
use foresee_trace::{CondId, EXTERNAL, Event, Id, LockId, Op, ThreadId, Trace, VarId, entry};

use super::requests::Want;
use crate::checks::lock_state::{given, taken};
use crate::checks::locksets::Hold;

/// A thread that waits forever, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) thread: ThreadId,
    /// The event with which it began to wait.
    pub(crate) since: u32,
    pub(crate) because: Because,
}

/// Why a thread waits forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Because {
    /// Another thread, or the thread itself, holds what it requests, and is stuck.
    Of(ThreadId),
    /// A thread has ended while holding the lock, which it took at this event.
    Kept(ThreadId, u32),
    /// No thread is left that could do what it waits for.
    Nobody,
}

/// What a thread waits for at the end of a trace.
#[derive(Clone, Copy, Debug)]
enum Pending {
    For(Want),
    /// A condition, and the lock that is taken back.
    Cond(CondId, Option<LockId>),
    /// What others do to a variable.
    Change(VarId),
}

#[derive(Clone, Debug, Default)]
struct Thread {
    last: u32,
    is_known: bool,
    has_ended: bool,
    pending: Option<Pending>,
    /// Whether what it waits for has happened, as far as the trace shows.
    is_helped: bool,
}

/// The state at the end of a trace.
pub(crate) struct End {
    threads: Vec<Thread>,
    /// For each lock, its holders, whether they share it, and since which event.
    holders: Vec<Vec<(ThreadId, bool, u32)>>,
    /// The threads that wait for what others do to a variable.
    for_changes: Vec<ThreadId>,
    is_stuck: Vec<bool>,
}

impl End {
    /// Goes through a trace to its end.
    pub(crate) fn of(trace: &Trace) -> End {
        let mut end = End {
            threads: Vec::new(),
            holders: Vec::new(),
            for_changes: Vec::new(),
            is_stuck: Vec::new(),
        };
        let uninstrumented = trace.names.threads.lookup(EXTERNAL);
        let mut wakeups = Wakeups::default();
        // For each condition, whether some wait for it is timed, and its last notification.
        let (mut timed, mut notified) = (Vec::<bool>::new(), Vec::<u32>::new());
        let mut previous: Vec<Option<Op>> = Vec::new();
        for (i, event) in (0..).zip(&trace.events) {
            let op = event.op();
            if op == Op::Init || Some(event.thread()) == uninstrumented {
                continue;
            }
            end.event(i, event);
            let before = entry(&mut previous, event.thread().index()).replace(op);
            match op {
                Op::WaitBegin => {
                    wakeups.begin(event.cond(), event.thread(), ());
                    let is_timed = before == Some(Op::TryFor);
                    *entry(&mut timed, event.cond().index()) |= is_timed;
                    if is_timed {
                        end.threads[event.thread().index()].pending = None;
                    }
                }
                Op::WaitEnd => _ = wakeups.end(event.cond(), event.thread()),
                Op::Notify | Op::NotifyAll => {
                    wakeups.notify(event.cond(), (), op == Op::NotifyAll);
                    *entry(&mut notified, event.cond().index()) = i;
                }
                _ if op.writes() && !end.for_changes.is_empty() => end.changes(event.var()),
                _ => {}
            }
        }
        for (t, thread) in end.threads.iter_mut().enumerate() {
            if let Some(Pending::Cond(cond, _)) = thread.pending {
                // If waits may time out, it is unknown which one a notification has ended.
                thread.is_helped = match timed.get(cond.index()) {
                    Some(true) => notified.get(cond.index()).is_some_and(|&at| at > thread.last),
                    _ => wakeups.is_woken(cond, ThreadId::new(t)),
                };
            }
        }
        end.is_stuck = end.threads.iter().map(|thread| thread.pending.is_some()).collect();
        while let Some(free) =
            (0..end.threads.len()).find(|&t| end.is_stuck[t] && end.why(t).is_none())
        {
            end.is_stuck[free] = false;
        }
        end
    }

    fn event(&mut self, i: u32, event: &Event) {
        let (op, t) = (event.op(), event.thread());
        if let Some(hold) = taken(event) {
            entry(&mut self.holders, hold.lock.index()).push((t, hold.shared, i));
        } else if let Some(hold) = given(event)
            && let Some(holders) = self.holders.get_mut(hold.lock.index())
            && let Some(at) = holders.iter().position(|h| (h.0, h.1) == (t, hold.shared))
        {
            holders.remove(at);
        }
        if matches!(op, Op::Fork | Op::Join) {
            let other = entry(&mut self.threads, event.other().index());
            other.is_known = true;
            other.has_ended |= op == Op::Join;
        }
        let thread = entry(&mut self.threads, t.index());
        thread.is_known = true;
        thread.last = i;
        thread.is_helped = false;
        thread.has_ended |= op == Op::ThreadEnd;
        thread.pending = match op {
            Op::Request | Op::RequestShared => {
                let shared = op == Op::RequestShared;
                Some(Pending::For(Want::Lock(Hold { lock: event.lock(), shared })))
            }
            Op::Await => Some(Pending::For(Want::End(event.other()))),
            Op::Block => {
                self.for_changes.push(t);
                Some(Pending::Change(event.var()))
            }
            Op::WaitBegin => Some(Pending::Cond(event.cond(), event.wait_lock())),
            _ => None,
        };
    }

    /// A variable is written: threads that wait for it may have been helped.
    fn changes(&mut self, var: VarId) {
        for t in &self.for_changes {
            let thread = &mut self.threads[t.index()];
            thread.is_helped |= matches!(thread.pending, Some(Pending::Change(x)) if x == var);
        }
    }

    /// Whether a thread still waits for something at the end.
    pub(crate) fn has_pending(&self) -> bool {
        self.threads.iter().any(|thread| thread.pending.is_some())
    }

    /// Why a thread cannot continue, if those that are stuck cannot.
    fn why(&self, t: usize) -> Option<Because> {
        let thread = &self.threads[t];
        match thread.pending? {
            Pending::For(Want::Lock(hold)) => self.why_not_taken(t, hold),
            Pending::For(Want::End(other)) => {
                let is_stuck = self.is_stuck.get(other.index()) == Some(&true);
                is_stuck.then_some(Because::Of(other))
            }
            // It is about to reacquire its lock.
            Pending::Cond(_, lock) if thread.is_helped => {
                self.why_not_taken(t, Hold { lock: lock?, shared: false })
            }
            Pending::Change(_) if thread.is_helped => None,
            Pending::Cond(..) | Pending::Change(_) => {
                let can_help = |u: usize| {
                    let other = &self.threads[u];
                    u != t && other.is_known && !other.has_ended && !self.is_stuck[u]
                };
                (!(0..self.threads.len()).any(can_help)).then_some(Because::Nobody)
            }
        }
    }

    fn why_not_taken(&self, t: usize, wanted: Hold) -> Option<Because> {
        let holders = self.holders.get(wanted.lock.index()).map_or(&[][..], Vec::as_slice);
        let in_the_way = holders.iter().filter(|h| !(wanted.shared && h.1));
        let stuck = in_the_way.clone().find(|h| self.is_stuck[h.0.index()]);
        if let Some(&(holder, ..)) = stuck {
            return Some(Because::Of(holder));
        }
        let mut gone = in_the_way.filter(|h| self.threads[h.0.index()].has_ended);
        if let Some(&(holder, _, since)) = gone.next() {
            return Some(Because::Kept(holder, since));
        }
        // Writers that wait go before readers that come after them.
        let is_before = |u: usize| {
            let is_it = |pending| matches!(pending, Pending::For(Want::Lock(Hold { lock, shared: false })) if lock == wanted.lock);
            u != t && self.is_stuck[u] && self.threads[u].pending.is_some_and(is_it)
        };
        let writer = (0..self.threads.len()).find(|&u| wanted.shared && is_before(u))?;
        Some(Because::Of(ThreadId::new(writer)))
    }

    /// All threads that wait forever.
    pub(crate) fn stuck(&self) -> Vec<Stuck> {
        let all = (0..self.threads.len()).filter(|&t| self.is_stuck[t]);
        all.filter_map(|t| {
            let (thread, since) = (ThreadId::new(t), self.threads[t].last);
            Some(Stuck { thread, since, because: self.why(t)? })
        })
        .collect()
    }
}

/// Threads that are stuck for one reason: a ring, each because of the next, or a single one.
pub(crate) fn causes(stuck: &[Stuck]) -> Vec<Vec<Stuck>> {
    let of = |thread: ThreadId| stuck.iter().find(|one| one.thread == thread);
    let mut causes: Vec<Vec<Stuck>> = Vec::new();
    for start in stuck {
        let mut path = vec![*start];
        let cause = loop {
            let last = path[path.len() - 1];
            let Because::Of(next) = last.because else { break vec![last] };
            if let Some(at) = path.iter().position(|one| one.thread == next) {
                break path.split_off(at);
            }
            match of(next) {
                Some(&next) => path.push(next),
                None => break vec![last],
            }
        };
        if !causes.iter().any(|known| known.iter().any(|one| one.thread == cause[0].thread)) {
            causes.push(cause);
        }
    }
    // A thread that waits only because no other is left is a consequence if the others have a reason of their own.
    let is_own = |cause: &Vec<Stuck>| cause[0].because != Because::Nobody;
    if causes.iter().any(is_own) {
        causes.retain(is_own);
    } else {
        causes.truncate(1);
    }
    causes
}
