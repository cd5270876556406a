//! Clocks for the events of a stream, in one pass.
//!
//! For each object it suffices to remember the last write and the reads since, each as an
//! [`Epoch`](crate::Epoch) with the clock of its thread. A thread that knows an event's epoch
//! knows everything before the event, so most events need one comparison, and vectors are joined
//! only when a thread learns something new.

use std::collections::HashSet;

use foresee_trace::{Event, Id, LockId, TargetKind, ThreadId, VarId, entry};

use crate::clock::{Clock, ClockStore, Epoch, Stamp};
use crate::order::dependence::{Effect, Follows, Leaves, Link, Order};
use crate::order::notify::Wakeups;

/// A thread has more events than its clock can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a thread has more than 4294967294 events, which is more than its clock can count")]
pub struct TooLong;

/// Assigns each event of a trace its position in a causal order.
///
/// With `N = 2`, the second counter of each thread counts only the events that the caller calls
/// relevant, while all events propagate causality: this yields the order among relevant events,
/// which the papers call their multithreaded vector clock.
///
/// # Guarantees
/// For events `e` and `f` of one trace, `e` is before or equal to `f` in the order if and only if
/// [`Clocks::knows`] holds for `f`'s stamp and `e`'s epoch. Memory depends on the number of
/// threads,
/// variables and locks, not on the number of events, unless stamps are kept
/// ([`Clocks::forget_old`]).
#[derive(Debug)]
pub struct Clocks<const N: usize = 1> {
    order: Order,
    store: ClockStore<N>,
    threads: Vec<Thread<N>>,
    vars: Vec<Object<N>>,
    locks: Vec<Object<N>>,
    wakeups: Wakeups<Stamp<N>>,
    causes: Vec<Epoch>,
}

/// The state of a thread.
#[derive(Clone, Copy, Debug)]
struct Thread<const N: usize> {
    time: [u32; N],
    known: Clock,
    /// The fork, until the first event has seen it.
    fork: Option<Stamp<N>>,
}

/// The state of a variable or a lock.
#[derive(Clone, Debug)]
struct Object<const N: usize> {
    write: Option<Stamp<N>>,
    /// The latest read since the write, stored separately because there is rarely a second.
    read: Option<Stamp<N>>,
    /// Earlier ones, the earliest first: all that no later one follows, and perhaps others.
    more_reads: Vec<Stamp<N>>,
    /// How many earlier ones there are when those are removed that a later one follows.
    prune_at: usize,
}

/// How many reads are compared each time.
const FEW_READS: usize = 4;

impl<const N: usize> Default for Object<N> {
    fn default() -> Self {
        Object { write: None, read: None, more_reads: Vec::new(), prune_at: 0 }
    }
}

impl<const N: usize> Object<N> {
    fn stamps(&self) -> impl Iterator<Item = &Stamp<N>> {
        self.write.iter().chain(&self.read).chain(&self.more_reads)
    }
}

impl<const N: usize> Clocks<N> {
    /// Clocks for an order, before the first event.
    pub fn new(order: Order) -> Self {
        Clocks {
            order,
            store: ClockStore::default(),
            threads: Vec::new(),
            vars: Vec::new(),
            locks: Vec::new(),
            wakeups: Wakeups::default(),
            causes: Vec::new(),
        }
    }

    /// Takes the next event of a trace in which all events are relevant.
    #[inline]
    pub fn event(&mut self, event: &Event) -> Result<Stamp<N>, TooLong> {
        self.event_if(event, true)
    }

    /// Takes the next event of the trace; the second counter counts it only if it is relevant.
    #[inline]
    pub fn event_if(&mut self, event: &Event, relevant: bool) -> Result<Stamp<N>, TooLong> {
        let t = event.thread();
        self.causes.clear();
        if !Order::is_step(event) {
            return Ok(Stamp { thread: t, time: [0; N], known: Clock::EMPTY });
        }
        let thread = self.thread(t);
        if thread.time[0] >= u32::MAX - 1 {
            return Err(TooLong);
        }
        thread.time[0] += 1;
        if N > 1 && relevant {
            thread.time[1] += 1;
        }
        let fork = thread.fork.take();
        let mut now = Stamp { thread: t, time: thread.time, known: thread.known };
        if let Some(fork) = fork {
            self.hear(&mut now, &fork);
        }
        let link = Order::link(event.op());
        if link != Link::None {
            self.follow(link, event, &mut now);
        }
        let effect = self.order.effect(event.op());
        if let Some(object) = Place::of(event).filter(|_| effect != Effect::NONE) {
            self.touch(object, effect, &mut now);
        }
        if link != Link::None {
            self.announce(link, event, &now);
        }
        self.threads[t.index()].known = now.known;
        Ok(now)
    }

    /// Whether `event` is before or equal to the event with the stamp `at`.
    #[inline]
    pub fn knows(&self, at: &Stamp<N>, event: Epoch) -> bool {
        event.time <= self.count(at, event.thread)[0]
    }

    /// Whether the next event of thread `t` will come after `event`, whatever it is, given what the
    /// thread knows now.
    #[inline]
    pub fn knows_now(&self, t: ThreadId, event: Epoch) -> bool {
        let Some(thread) = self.threads.get(t.index()) else { return false };
        let Thread { time, known, fork } = *thread;
        self.knows(&Stamp { thread: t, time, known }, event)
            || fork.is_some_and(|fork| self.knows(&fork, event))
    }

    /// The number of events of thread `of` that precede the next event of thread `t`, whatever it
    /// is.
    #[inline]
    pub fn count_now(&self, t: ThreadId, of: ThreadId) -> u32 {
        let Some(thread) = self.threads.get(t.index()) else { return 0 };
        let Thread { time, known, fork } = *thread;
        let own = self.count(&Stamp { thread: t, time, known }, of)[0];
        fork.map_or(own, |fork| own.max(self.count(&fork, of)[0]))
    }

    /// The number of events of thread `t` that are before or equal to the event with the stamp
    /// `at`.
    #[inline]
    pub fn count(&self, at: &Stamp<N>, t: ThreadId) -> [u32; N] {
        if t == at.thread { at.time } else { self.store.get(at.known, t) }
    }

    /// Calls `each` with every other thread of which the event with the stamp `now` knows more than
    /// the clock `before`, and with the number of that thread's events it knows.
    #[inline]
    pub fn news(&self, before: Clock, now: &Stamp<N>, each: &mut impl FnMut(ThreadId, [u32; N])) {
        self.store.differences(before, now.known, &mut |t, counts| {
            if t != now.thread {
                each(t, counts);
            }
        });
    }

    /// The events of other threads from which the latest event learned something: its direct
    /// causes, in no particular order. One may be a cause of another.
    pub fn causes(&self) -> &[Epoch] {
        &self.causes
    }

    /// The bytes used for vectors.
    pub fn bytes(&self) -> usize {
        self.store.bytes()
    }

    /// Frees vectors that no later event can need, if there are many. The stamps in `kept` stay
    /// valid; all others returned so far do not.
    #[inline]
    pub fn forget_old(&mut self, kept: &[Stamp<N>]) {
        let objects = self.vars.len() + self.locks.len() + self.threads.len() + kept.len();
        if self.store.is_worth_collecting(objects) {
            self.collect(kept);
        }
    }

    #[cold]
    fn collect(&mut self, kept: &[Stamp<N>]) {
        let Clocks { store, threads, vars, locks, wakeups, .. } = self;
        let threads = threads.iter().flat_map(|t| [Some(t.known), t.fork.map(|f| f.known)]);
        let objects = vars.iter().chain(&*locks).flat_map(|o| o.stamps().map(|s| s.known));
        let roots = threads.flatten().chain(objects).chain(wakeups.notes().map(|s| s.known));
        store.collect(roots.chain(kept.iter().map(|s| s.known)));
    }

    #[inline]
    fn thread(&mut self, t: ThreadId) -> &mut Thread<N> {
        if t.index() >= self.threads.len() {
            let new = Thread { time: [0; N], known: Clock::EMPTY, fork: None };
            self.threads.resize(t.index() + 1, new);
        }
        &mut self.threads[t.index()]
    }

    /// Orders the event of `now` after the one of `earlier`.
    #[inline]
    fn hear(&mut self, now: &mut Stamp<N>, earlier: &Stamp<N>) {
        if !self.knows(now, earlier.epoch()) {
            now.known = self.store.learn(now.known, earlier.known, earlier.thread, earlier.time);
            self.causes.push(earlier.epoch());
        }
    }

    /// Orders an event after the events of other threads that it is linked to.
    fn follow(&mut self, link: Link, event: &Event, now: &mut Stamp<N>) {
        match link {
            Link::Join => {
                let Thread { time, known, fork } = *self.thread(event.other());
                // A thread without events was still forked before it could be joined.
                let last = fork.unwrap_or(Stamp { thread: event.other(), time, known });
                self.hear(now, &last);
            }
            // A notification is also possible if no thread waits for it.
            Link::Notify { .. } if !self.order.notifies_waiters() => {}
            Link::Notify { .. } => {
                let mut i = 0;
                while let Some(begin) = self.wakeups.waiting(event.cond(), i) {
                    self.hear(now, &begin);
                    i += 1;
                }
            }
            Link::WaitEnd => {
                if let Some(note) = self.wakeups.end(event.cond(), now.thread) {
                    self.hear(now, &note);
                }
            }
            Link::Wait => {
                if let Some(note) = self.wakeups.latest(event.cond()) {
                    self.hear(now, &note);
                }
            }
            Link::None | Link::Fork | Link::WaitBegin => {}
        }
    }

    /// Remembers an event, now that its stamp is complete, for later events that are linked to it.
    fn announce(&mut self, link: Link, event: &Event, now: &Stamp<N>) {
        match link {
            Link::Fork => self.thread(event.other()).fork = Some(*now),
            Link::Notify { all } => self.wakeups.notify(event.cond(), *now, all),
            Link::WaitBegin => self.wakeups.begin(event.cond(), now.thread, *now),
            Link::None | Link::Join | Link::WaitEnd | Link::Wait => {}
        }
    }

    #[inline]
    fn touch(&mut self, place: Place, effect: Effect, now: &mut Stamp<N>) {
        let Object { write, read, .. } = *self.object(place);
        if let (Follows::Write | Follows::All, Some(write)) = (effect.follows, write) {
            self.hear(now, &write);
        }
        if let (Follows::All, Some(read)) = (effect.follows, read) {
            self.hear(now, &read);
            // The latest first, so that nothing is joined that a later one contains already.
            let mut i = self.object(place).more_reads.len();
            while i > 0 {
                i -= 1;
                let read = self.object(place).more_reads[i];
                self.hear(now, &read);
            }
        }
        match effect.leaves {
            Leaves::Nothing => {}
            Leaves::Write => {
                let object = self.object(place);
                object.write = Some(*now);
                object.read = None;
                object.more_reads.clear();
                object.prune_at = 0;
            }
            Leaves::Read => self.leave_read(place, now),
        }
    }

    /// Adds a read to those since the last write and removes ones that precede it.
    #[inline]
    fn leave_read(&mut self, place: Place, now: &Stamp<N>) {
        let object = self.object(place);
        let first = object.read;
        if object.more_reads.is_empty() {
            match first {
                Some(first) if !self.knows(now, first.epoch()) => {
                    self.object(place).more_reads.push(first);
                }
                _ => {}
            }
            self.object(place).read = Some(*now);
            return;
        }
        // To compare it with all others each time would take quadratic time where many threads read
        // and no thread writes.
        object.more_reads.extend(first);
        object.read = Some(*now);
        if object.more_reads.len() < object.prune_at {
            return;
        }
        let mut reads = std::mem::take(&mut object.more_reads);
        // At most one of each thread is left: what a thread reads follows what it has read.
        let mut latest = HashSet::new();
        reads.reverse();
        reads.retain(|read| latest.insert(read.thread) && !self.knows(now, read.epoch()));
        reads.reverse();
        let object = self.object(place);
        object.prune_at = 2 * reads.len().max(FEW_READS);
        object.more_reads = reads;
    }

    #[inline]
    fn object(&mut self, place: Place) -> &mut Object<N> {
        match place {
            Place::Var(x) => entry(&mut self.vars, x.index()),
            Place::Lock(l) => entry(&mut self.locks, l.index()),
        }
    }
}

/// The object that an event touches.
#[derive(Clone, Copy)]
enum Place {
    Var(VarId),
    Lock(LockId),
}

impl Place {
    #[inline]
    fn of(event: &Event) -> Option<Place> {
        match event.op().target_kind() {
            TargetKind::Var => Some(Place::Var(event.var())),
            TargetKind::Lock => Some(Place::Lock(event.lock())),
            TargetKind::Cond => event.wait_lock().map(Place::Lock),
            TargetKind::None | TargetKind::Thread | TargetKind::Sym => None,
        }
    }
}
