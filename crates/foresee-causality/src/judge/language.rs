//! Does one access happen before another by the rules of the C11 memory model, in the observed
//! order?
//!
//! This decides a single pair, without clocks: it walks from the first access to the second and
//! tracks which threads know of the first.

use std::collections::{HashMap, HashSet};

use foresee_trace::{Event, LockId, Op, ThreadId, VarId};

/// A write of an atomic variable.
struct Modification {
    thread: ThreadId,
    is_rmw: bool,
    /// Whether it releases knowledge of the first access.
    releases: bool,
}

/// The threads that know of the first access, and the places from which others can learn of it.
#[derive(Default)]
struct Knowledge {
    threads: HashSet<ThreadId>,
    /// Threads that have seen it with a relaxed read, and those that knew it at their last fence.
    seen: HashSet<ThreadId>,
    fenced: HashSet<ThreadId>,
    locks: HashSet<(LockId, bool)>,
    conditions: HashSet<u32>,
    modifications: HashMap<VarId, Vec<Modification>>,
    /// Variables whose last writer is uninstrumented.
    externally_written: HashSet<VarId>,
    remarks: HashMap<ThreadId, Op>,
}

/// Whether the event `first` happens before the event `second`, given by index. Writes of the
/// `uninstrumented` come after everything that precedes them.
pub fn is_ordered(
    events: &[Event],
    uninstrumented: &[ThreadId],
    first: usize,
    second: usize,
) -> bool {
    let mut knowledge = Knowledge::default();
    let thread = events[first].thread();
    knowledge.threads.insert(thread);
    // The preceding event of its thread may be a remark on it.
    let before = events[..first].iter().rfind(|event| event.thread() == thread);
    let remark = before.map(Event::op).filter(|op| op.weakens());
    knowledge.remarks.extend(remark.map(|op| (thread, op)));
    for event in &events[first..=second] {
        let remark = knowledge.remarks.remove(&event.thread());
        match event.op() {
            op if op.weakens() => drop(knowledge.remarks.insert(event.thread(), op)),
            op if op.reads() || op.writes() => {
                if uninstrumented.contains(&event.thread()) {
                    knowledge.externally_written.insert(event.var());
                } else {
                    knowledge.access(event, remark);
                }
            }
            _ => knowledge.other(event),
        }
    }
    knowledge.threads.contains(&events[second].thread())
}

impl Knowledge {
    fn access(&mut self, event: &Event, remark: Option<Op>) {
        let (t, op, x) = (event.thread(), event.op(), event.var());
        if op.reads() && self.externally_written.contains(&x) {
            self.threads.insert(t);
        }
        if op.writes() && !op.reads() {
            self.externally_written.remove(&x);
        }
        if !op.is_atomic() {
            return;
        }
        if op.reads() && self.is_released(x) {
            let is_relaxed = matches!(remark, Some(Op::Relaxed | Op::ReleaseOnly));
            if is_relaxed {
                self.seen.insert(t)
            } else {
                self.threads.insert(t)
            };
        }
        if op.writes() {
            let is_relaxed = matches!(remark, Some(Op::Relaxed | Op::AcquireOnly));
            let known = if is_relaxed { &self.fenced } else { &self.threads };
            let releases = known.contains(&t);
            let modification = Modification { thread: t, is_rmw: op.reads(), releases };
            self.modifications.entry(x).or_default().push(modification);
        }
    }

    /// Whether the last write of a variable is in the release sequence of a releasing write.
    fn is_released(&self, x: VarId) -> bool {
        let mut store = None;
        for modification in self.modifications.get(&x).into_iter().flatten().rev() {
            let continues = store.is_none_or(|thread| thread == modification.thread);
            if modification.releases && continues {
                return true;
            }
            match (modification.is_rmw, store) {
                (true, _) => {}
                (false, None) => store = Some(modification.thread),
                (false, Some(_)) if continues => {}
                // Two threads have stored since, so this write is in no release sequence that
                // continues.
                (false, Some(_)) => return false,
            }
        }
        false
    }

    fn other(&mut self, event: &Event) {
        let t = event.thread();
        let knows = self.threads.contains(&t);
        let mut take = |lock: LockId, shared: bool| {
            let from = |mode| self.locks.contains(&(lock, mode));
            if from(false) || !shared && from(true) {
                self.threads.insert(t);
            }
        };
        match event.op() {
            Op::Acquire => take(event.lock(), false),
            Op::AcquireShared => take(event.lock(), true),
            Op::Wait | Op::WaitEnd => {
                if let Some(lock) = event.wait_lock() {
                    take(lock, false);
                }
                if self.conditions.contains(&event.cond().0) {
                    self.threads.insert(t);
                }
            }
            Op::Release if knows => drop(self.locks.insert((event.lock(), false))),
            Op::ReleaseShared if knows => drop(self.locks.insert((event.lock(), true))),
            Op::WaitBegin if knows => {
                self.locks.extend(event.wait_lock().map(|lock| (lock, false)));
            }
            Op::Notify | Op::NotifyAll if knows => drop(self.conditions.insert(event.cond().0)),
            Op::Fork if knows => drop(self.threads.insert(event.other())),
            Op::Join if self.threads.contains(&event.other()) => drop(self.threads.insert(t)),
            op @ (Op::FenceAcquire | Op::FenceRelease | Op::Fence) => {
                if op != Op::FenceRelease && self.seen.contains(&t) {
                    self.threads.insert(t);
                }
                if op != Op::FenceAcquire && self.threads.contains(&t) {
                    self.fenced.insert(t);
                }
            }
            _ => {}
        }
    }
}
