//! The causal order as the transitive closure of its pairwise definition.

use foresee_trace::{Event, LockId, Op, Trace};

use super::notify::matched_notifications;

/// Which pairs of events a reordering must keep in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Program order, fork, join and notification; conflicting accesses and all operations on one
    /// lock in the order of the file. Every linearisation is an execution in which each read sees
    /// the write it saw.
    Mazurkiewicz,
    /// Program order, fork, join and notification; a write before its reads; a release before all
    /// later acquires of the lock, unless both share it. It describes the execution and is not a basis
    /// for prediction.
    ReadsFrom,
    /// Program order, fork, join and notification only.
    SyncOnly,
    /// Program order, fork, join, the end of a wait after its notification, and a write before its
    /// reads: what an event depends on in every correct reordering.
    Needs,
    /// Program order, fork, join, the end of a wait after its notification, a release before all
    /// later acquires that it excluded, and an atomic write before the atomic reads up to the next.
    HappensBefore,
    /// The same with every write before its reads.
    Schedulable,
}

impl Relation {
    /// All relations, for tests that iterate over them.
    pub const ALL: [Relation; 6] = [
        Relation::Mazurkiewicz,
        Relation::ReadsFrom,
        Relation::SyncOnly,
        Relation::Needs,
        Relation::HappensBefore,
        Relation::Schedulable,
    ];

    fn notifies_waiters(self) -> bool {
        matches!(self, Relation::Mazurkiewicz | Relation::ReadsFrom | Relation::SyncOnly)
    }
}

/// A strict partial order of the events of a trace.
///
/// Initial values belong to no thread: they precede everything else and are pairwise unordered.
#[derive(Clone, Debug)]
pub struct Order {
    /// For each event, a bit for each preceding event.
    below: Vec<Vec<u64>>,
}

impl Order {
    /// The order of a trace's events.
    pub fn new(trace: &Trace, relation: Relation) -> Order {
        let facts = Facts {
            trace,
            relation,
            writer: reads_from(trace),
            notification: matched_notifications(trace),
        };
        Order::from_edges(trace.events.len(), |a, b| facts.edge(a, b))
    }

    /// The closure of a relation whose edges, other than those from initial values, lead from
    /// smaller to larger indices.
    pub fn from_edges(n: usize, edge: impl Fn(usize, usize) -> bool) -> Order {
        let mut below = vec![vec![0u64; n.div_ceil(64)]; n];
        for b in 0..n {
            for a in (0..n).filter(|&a| edge(a, b)) {
                // An initial value may come later in the file, but nothing precedes it.
                let (mut row, source) = (std::mem::take(&mut below[b]), &below[a]);
                row.iter_mut().zip(source).for_each(|(to, from)| *to |= from);
                row[a / 64] |= 1 << (a % 64);
                below[b] = row;
            }
        }
        Order { below }
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.below.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.below.is_empty()
    }

    /// Whether event `a` comes before event `b` in every run.
    pub fn before(&self, a: usize, b: usize) -> bool {
        self.below[b][a / 64] >> (a % 64) & 1 == 1
    }

    /// Whether two different events are unordered.
    pub fn concurrent(&self, a: usize, b: usize) -> bool {
        a != b && !self.before(a, b) && !self.before(b, a)
    }
}

/// For each event that reads, the write it saw: the last one before it in the file. `None` for the
/// initial value, and for events that do not read.
pub fn reads_from(trace: &Trace) -> Vec<Option<usize>> {
    let events = &trace.events;
    let last_write = |i: usize| {
        events[..i].iter().rposition(|w| w.op().writes() && w.target() == events[i].target())
    };
    (0..events.len()).map(|i| if events[i].op().reads() { last_write(i) } else { None }).collect()
}

struct Facts<'t> {
    trace: &'t Trace,
    relation: Relation,
    writer: Vec<Option<usize>>,
    notification: Vec<Option<usize>>,
}

impl Facts<'_> {
    /// Whether `a` must come before `b` for a direct reason.
    fn edge(&self, a: usize, b: usize) -> bool {
        let (first, second) = (&self.trace.events[a], &self.trace.events[b]);
        if first.op() == Op::Init || second.op() == Op::Init {
            return first.op() == Op::Init && second.op() != Op::Init;
        }
        if a >= b {
            return false;
        }
        let by_sync = first.thread() == second.thread()
            || starts_or_ends(first, second)
            || self.notification[b] == Some(a)
            || self.relation.notifies_waiters() && self.could_end(b, a);
        by_sync
            || match self.relation {
                Relation::Mazurkiewicz => {
                    conflict(first, second)
                        || lock_of(first).is_some() && lock_of(first) == lock_of(second)
                }
                Relation::ReadsFrom => {
                    self.writer[b] == Some(a)
                        || lock_of(first) == lock_of(second)
                            && gives(first)
                            && takes(second)
                            && !(is_shared(first) && is_shared(second))
                }
                Relation::SyncOnly => false,
                Relation::Needs => self.writer[b] == Some(a),
                Relation::HappensBefore => self.sees_atomic(a, b) || made_wait(first, second),
                Relation::Schedulable => self.writer[b] == Some(a) || made_wait(first, second),
            }
    }

    /// Whether `a` is the last atomic write before the atomic read `b`.
    fn sees_atomic(&self, a: usize, b: usize) -> bool {
        let events = &self.trace.events;
        let writes = |e: &Event| {
            matches!(e.op(), Op::VolatileWrite | Op::Rmw) && e.target() == events[b].target()
        };
        matches!(events[b].op(), Op::VolatileRead | Op::Rmw)
            && events[..b].iter().rposition(writes) == Some(a)
    }
}

/// Whether a release ended a hold that excluded the acquire.
fn made_wait(first: &Event, second: &Event) -> bool {
    let shared = |e: &Event| matches!(e.op(), Op::AcquireShared | Op::ReleaseShared);
    lock_of(first) == lock_of(second)
        && gives(first)
        && takes(second)
        && !(shared(first) && shared(second))
}

impl Facts<'_> {
    /// Whether a notification could have ended the wait that begins at `wait`: if it came before,
    /// it would be lost.
    fn could_end(&self, notify: usize, wait: usize) -> bool {
        let events = &self.trace.events;
        let (begin, note) = (&events[wait], &events[notify]);
        begin.op() == Op::WaitBegin
            && matches!(note.op(), Op::Notify | Op::NotifyAll)
            && begin.target() == note.target()
            && events[wait..notify]
                .iter()
                .all(|e| e.op() != Op::WaitEnd || e.thread() != begin.thread())
    }
}

/// A fork precedes all events of its thread, and they precede its join; a fork also precedes the join
/// of a thread without events.
fn starts_or_ends(first: &Event, second: &Event) -> bool {
    let forked = (first.op() == Op::Fork).then(|| first.other());
    let joined = (second.op() == Op::Join).then(|| second.other());
    forked == Some(second.thread())
        || joined == Some(first.thread())
        || forked.is_some() && forked == joined
}

fn conflict(a: &Event, b: &Event) -> bool {
    let (x, y) = (a.op(), b.op());
    let accesses = (x.reads() || x.writes()) && (y.reads() || y.writes());
    accesses && a.target() == b.target() && (x.writes() || y.writes())
}

/// The lock that an event acquires or releases; inner operations do neither.
fn lock_of(event: &Event) -> Option<LockId> {
    match event.op() {
        Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => Some(event.lock()),
        Op::Busy | Op::BusyShared => Some(event.lock()),
        _ => event.wait_lock(),
    }
}

fn gives(event: &Event) -> bool {
    let op = event.op();
    lock_of(event).is_some() && matches!(op, Op::Release | Op::ReleaseShared | Op::WaitBegin)
}

fn takes(event: &Event) -> bool {
    let op = event.op();
    lock_of(event).is_some() && matches!(op, Op::Acquire | Op::AcquireShared | Op::WaitEnd)
}

fn is_shared(event: &Event) -> bool {
    matches!(event.op(), Op::AcquireShared | Op::ReleaseShared)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    /// All ordered pairs except those of program order.
    fn pairs(trace: &Trace, relation: Relation) -> Vec<(usize, usize)> {
        let order = Order::new(trace, relation);
        let n = order.len();
        let thread = |i: usize| trace.events[i].thread();
        (0..n)
            .flat_map(|a| (0..n).map(move |b| (a, b)))
            .filter(|&(a, b)| order.before(a, b) && thread(a) != thread(b))
            .collect()
    }

    #[test]
    fn each_relation_has_its_own_memory_edges() {
        let trace = trace! { T1: w(x); T2: r(x); T3: w(x); T4: r(y) };
        assert_eq!(pairs(&trace, Relation::Mazurkiewicz), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(&trace, Relation::ReadsFrom), [(0, 1)]);
        assert_eq!(pairs(&trace, Relation::SyncOnly), []);
    }

    #[test]
    fn each_relation_has_its_own_lock_edges() {
        let trace = trace! { T1: acq(l), acq(l), rel(l), rel(l); T2: acq(l) };
        let all = [(0, 4), (1, 4), (2, 4), (3, 4)];
        assert_eq!(pairs(&trace, Relation::Mazurkiewicz), all);
        assert_eq!(pairs(&trace, Relation::ReadsFrom), all);
        assert_eq!(pairs(&trace, Relation::SyncOnly), []);
        let readers = trace! { T1: racq(l); T2: racq(l); T1: rrel(l); T2: rrel(l) };
        assert_eq!(pairs(&readers, Relation::Mazurkiewicz), [(0, 1), (0, 3), (1, 2), (2, 3)]);
        assert_eq!(pairs(&readers, Relation::ReadsFrom), []);
        let one_by_one = trace! { T1: racq(l), rrel(l); T2: racq(l), rrel(l); T3: acq(l) };
        let last = [(0, 4), (1, 4), (2, 4), (3, 4)];
        assert_eq!(pairs(&one_by_one, Relation::ReadsFrom), last);
    }

    #[test]
    fn threads_live_between_fork_and_join() {
        let trace = trace! { T1: fork(T2); T2: event(a); T3: join(T2), w(x) };
        for relation in Relation::ALL {
            assert_eq!(pairs(&trace, relation), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]);
        }
        let silent = trace! { T1: fork(T2); T3: join(T2) };
        assert_eq!(pairs(&silent, Relation::SyncOnly), [(0, 1)]);
    }

    #[test]
    fn initial_values_come_first_wherever_they_stand() {
        let trace = trace! { T1: init(x)=0; T2: w(x)=1; T1: init(y)=0; T1: r(y)=0 };
        let order = Order::new(&trace, Relation::SyncOnly);
        assert!(order.before(0, 1) && order.before(2, 1) && order.before(2, 3));
        assert!(order.concurrent(0, 2) && order.concurrent(1, 3));
    }

    #[test]
    fn a_wait_hands_over_lock_and_notification() {
        let trace = trace! {
            T1: acq(l), wait_begin(c,l); T2: acq(l), notify(c), rel(l); T1: wait_end(c,l)
        };
        let wait_then_notify = [(0, 3), (0, 4), (1, 3), (1, 4)];
        let notify_then_wake_up = [(2, 5), (3, 5)];
        let all = [&wait_then_notify[..], &notify_then_wake_up].concat();
        assert_eq!(pairs(&trace, Relation::SyncOnly), all);
        assert!(Order::new(&trace, Relation::ReadsFrom).before(1, 2));
        assert!(Order::new(&trace, Relation::Mazurkiewicz).before(4, 5));
    }
}
