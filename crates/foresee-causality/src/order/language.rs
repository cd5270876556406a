//! Happens-before of the C11 memory model, for the observed order.
//!
//! Locks, forks and joins order events as in every other relation. An acquiring atomic read comes
//! after the atomic write that it sees if the write releases, or if it continues the *release
//! sequence* of a releasing one; read-modify-writes of any thread continue it, and so do stores of
//! the thread that began it. Relaxed accesses order nothing by themselves: a relaxed read keeps
//! what
//! it saw for the thread's next acquire fence, and a relaxed write passes on what the thread knew
//! at
//! its last release fence.
//!
//! Atomic accesses acquire and release unless a remark before them says otherwise
//! ([`Op::weakens`]).
//! Where the model leaves a choice, the one with more order is taken: a store continues the release
//! sequence of its own thread, as in C11 but not in C++20, and every wait comes after all earlier
//! notifications. Events of uninstrumented code (the threads given as `uninstrumented`) come after
//! everything before them, and a read that sees one of their writes comes after that write.

use foresee_trace::{Event, Id, Op, ThreadId, entry};

use crate::clock::{Clock, ClockStore};

/// What each thread knows by the rules of the language.
///
/// # Guarantees
/// After event `f` of thread `t`, the event with time `n` of thread `u` happens before `f`, by the
/// rules above, if and only if [`LanguageClocks::count_now`] of `t` and `u` is at least `n`.
#[derive(Debug)]
pub struct LanguageClocks {
    uninstrumented: Vec<ThreadId>,
    store: ClockStore<1>,
    threads: Vec<Thread>,
    vars: Vec<Var>,
    /// What exclusive and shared releases have left at each lock.
    locks: Vec<[Clock; 2]>,
    conds: Vec<Clock>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    time: u32,
    known: Clock,
    /// What relaxed reads have seen, for the next acquire fence.
    seen: Clock,
    /// What was known at the last release fence.
    fenced: Clock,
    /// The remark on the next access.
    remark: Option<Op>,
}

#[derive(Debug, Default)]
struct Var {
    /// The threads that began the release sequences of the last write, and what they release.
    heads: Vec<(ThreadId, Clock)>,
    /// What precedes the last write, if its writer is uninstrumented.
    external: Option<Clock>,
}

impl LanguageClocks {
    /// The clocks before the first event.
    pub fn new(uninstrumented: &[ThreadId]) -> LanguageClocks {
        LanguageClocks {
            uninstrumented: uninstrumented.to_vec(),
            store: ClockStore::default(),
            threads: Vec::new(),
            vars: Vec::new(),
            locks: Vec::new(),
            conds: Vec::new(),
        }
    }

    /// The number of events of thread `of` that happen before the latest event of thread `t`.
    #[inline]
    pub fn count_now(&self, t: ThreadId, of: ThreadId) -> u32 {
        match self.threads.get(t.index()) {
            Some(thread) if t == of => thread.time,
            Some(thread) => self.store.get(thread.known, of)[0],
            None => 0,
        }
    }

    /// Takes the next event of the trace.
    pub fn event(&mut self, event: &Event) {
        let (t, op) = (event.thread(), event.op());
        if op == Op::Init {
            return;
        }
        let thread = entry(&mut self.threads, t.index());
        thread.time += 1;
        let remark = thread.remark.take();
        if op.weakens() {
            thread.remark = Some(op);
        } else if op.reads() || op.writes() {
            self.access(event, remark);
        } else {
            self.synchronise(event);
        }
    }

    /// Frees vectors that no later event can need, if there are many.
    pub fn forget_old(&mut self) {
        let roots = self.vars.len() + self.locks.len() + self.threads.len();
        if self.store.is_worth_collecting(roots) {
            let LanguageClocks { store, threads, vars, locks, conds, .. } = self;
            let threads = threads.iter().flat_map(|t| [t.known, t.seen, t.fenced]);
            let vars = vars.iter().flat_map(|v| v.heads.iter().map(|h| h.1).chain(v.external));
            let others = locks.iter().flatten().copied().chain(conds.iter().copied());
            store.collect(threads.chain(vars).chain(others));
        }
    }

    /// What a thread knows, including itself.
    fn all_of(&mut self, t: ThreadId) -> Clock {
        let Thread { time, known, .. } = *entry(&mut self.threads, t.index());
        self.store.learn(known, Clock::EMPTY, t, [time])
    }

    fn hear(&mut self, t: ThreadId, clock: Clock) {
        let thread = entry(&mut self.threads, t.index());
        thread.known = self.store.join(thread.known, clock);
    }

    fn access(&mut self, event: &Event, remark: Option<Op>) {
        let (t, op, x) = (event.thread(), event.op(), event.var().index());
        entry(&mut self.vars, x);
        if self.uninstrumented.contains(&t) {
            let mut all = Clock::EMPTY;
            for thread in 0..self.threads.len() {
                let clock = self.all_of(ThreadId::new(thread));
                all = self.store.join(all, clock);
            }
            self.vars[x].external = Some(all);
            return;
        }
        if let (true, Some(external)) = (op.reads(), self.vars[x].external) {
            self.hear(t, external);
        }
        if op.writes() && !op.reads() {
            self.vars[x].external = None;
        }
        if !op.is_atomic() {
            return;
        }
        if op.reads() {
            let mut seen = Clock::EMPTY;
            for i in 0..self.vars[x].heads.len() {
                seen = self.store.join(seen, self.vars[x].heads[i].1);
            }
            match remark {
                Some(Op::Relaxed | Op::ReleaseOnly) => {
                    let thread = &mut self.threads[t.index()];
                    thread.seen = self.store.join(thread.seen, seen);
                }
                _ => self.hear(t, seen),
            }
        }
        if op.writes() {
            if !op.reads() {
                self.vars[x].heads.retain(|(head, _)| *head == t);
            }
            let released = match remark {
                Some(Op::Relaxed | Op::AcquireOnly) => self.threads[t.index()].fenced,
                _ => self.all_of(t),
            };
            self.release(x, t, released);
        }
    }

    /// Begins a release sequence, or continues that of the thread.
    fn release(&mut self, x: usize, t: ThreadId, released: Clock) {
        if released == Clock::EMPTY {
            return;
        }
        match self.vars[x].heads.iter_mut().find(|(head, _)| *head == t) {
            Some((_, clock)) => *clock = self.store.join(*clock, released),
            None => self.vars[x].heads.push((t, released)),
        }
    }

    fn synchronise(&mut self, event: &Event) {
        let t = event.thread();
        match event.op() {
            Op::Acquire => self.take(t, event.lock().index(), false),
            Op::AcquireShared => self.take(t, event.lock().index(), true),
            Op::Release => self.give(t, event.lock().index(), false),
            Op::ReleaseShared => self.give(t, event.lock().index(), true),
            Op::WaitBegin => {
                if let Some(lock) = event.wait_lock() {
                    self.give(t, lock.index(), false);
                }
            }
            Op::WaitEnd | Op::Wait => {
                let note = *entry(&mut self.conds, event.cond().index());
                self.hear(t, note);
                if let Some(lock) = event.wait_lock() {
                    self.take(t, lock.index(), false);
                }
            }
            Op::Notify | Op::NotifyAll => {
                let clock = self.all_of(t);
                let note = entry(&mut self.conds, event.cond().index());
                *note = self.store.join(*note, clock);
            }
            Op::Fork => {
                let clock = self.all_of(t);
                self.hear(event.other(), clock);
            }
            Op::Join => {
                let clock = self.all_of(event.other());
                self.hear(t, clock);
            }
            op @ (Op::FenceAcquire | Op::FenceRelease | Op::Fence) => {
                if op != Op::FenceRelease {
                    let seen = self.threads[t.index()].seen;
                    self.hear(t, seen);
                }
                if op != Op::FenceAcquire {
                    self.threads[t.index()].fenced = self.all_of(t);
                }
            }
            _ => {}
        }
    }

    fn take(&mut self, t: ThreadId, lock: usize, shared: bool) {
        let [exclusive, together] = *entry(&mut self.locks, lock);
        self.hear(t, exclusive);
        if !shared {
            self.hear(t, together);
        }
    }

    fn give(&mut self, t: ThreadId, lock: usize, shared: bool) {
        let clock = self.all_of(t);
        let left = &mut entry(&mut self.locks, lock)[usize::from(shared)];
        *left = self.store.join(*left, clock);
    }
}
