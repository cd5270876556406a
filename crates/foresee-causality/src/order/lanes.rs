//! Clocks that count only selected events.
//!
//! A *lane* is a chain of events: some events of one thread, or the writes of one variable. To
//! compare events of few lanes, vectors of few counters suffice, whatever the number of threads:
//! two
//! joins of four counters are cheaper than one access to a vector of all threads. All events
//! propagate knowledge between threads; only those with a lane are counted.

use foresee_trace::{Event, Id, Op, TargetKind, ThreadId, entry};

use crate::clock::{Clock, ClockStore};
use crate::order::clocks::TooLong;
use crate::order::dependence::{Follows, Leaves, Link, Order};
use crate::order::notify::Wakeups;

/// One counter for each lane.
pub trait LaneVector: Copy + Default + std::fmt::Debug {
    /// The storage of the counters, if they are not in the vector itself.
    type Store: Default + std::fmt::Debug;

    /// The maximum number of lanes.
    const LANES: usize;

    /// The larger counter of each lane.
    fn join(self, other: Self, store: &mut Self::Store) -> Self;

    /// The counter of a lane.
    fn get(&self, lane: u32, store: &Self::Store) -> u32;

    /// The same vector with one counter raised to `time`.
    fn raised(self, lane: u32, time: u32, store: &mut Self::Store) -> Self;

    /// Frees vectors that are not among `roots`, if there are many.
    fn collect(store: &mut Self::Store, live: usize, roots: impl Iterator<Item = Self>) {
        let _ = (store, live, roots);
    }
}

/// Counters side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes<const K: usize>([u32; K]);

impl<const K: usize> Default for Lanes<K> {
    fn default() -> Self {
        Lanes([0; K])
    }
}

impl<const K: usize> LaneVector for Lanes<K> {
    type Store = ();

    const LANES: usize = K;

    #[inline]
    fn join(mut self, other: Self, (): &mut ()) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = (*mine).max(theirs);
        }
        self
    }

    #[inline]
    fn get(&self, lane: u32, (): &()) -> u32 {
        self.0[lane as usize]
    }

    #[inline]
    fn raised(mut self, lane: u32, time: u32, (): &mut ()) -> Self {
        self.0[lane as usize] = time;
        self
    }
}

/// Any number of lanes: vectors that share their common parts.
impl LaneVector for Clock {
    type Store = ClockStore<1>;

    const LANES: usize = ThreadId::MAX as usize;

    #[inline]
    fn join(self, other: Self, store: &mut ClockStore<1>) -> Self {
        if self == other { self } else { store.join(self, other) }
    }

    #[inline]
    fn get(&self, lane: u32, store: &ClockStore<1>) -> u32 {
        store.get(*self, ThreadId(lane))[0]
    }

    #[inline]
    fn raised(self, lane: u32, time: u32, store: &mut ClockStore<1>) -> Self {
        store.learn(self, Clock::EMPTY, ThreadId(lane), [time])
    }

    fn collect(store: &mut ClockStore<1>, live: usize, roots: impl Iterator<Item = Self>) {
        if store.is_worth_collecting(live) {
            store.collect(roots);
        }
    }
}

/// The knowledge of each thread and each object.
///
/// # Guarantees
/// If the events of every lane are a chain of the order, `e` of lane `l` with time `t`
/// is before or equal to `f` if and only if `f`'s vector has at least `t` for `l`. Memory depends
/// on
/// the number of threads, variables and locks.
#[derive(Debug)]
pub struct LaneClocks<V: LaneVector> {
    store: V::Store,
    order: Order,
    rules: [Rule; RULES],
    threads: Vec<V>,
    vars: Vec<Object<V>>,
    locks: Vec<Object<V>>,
    wakeups: Wakeups<V>,
}

/// The numbers of operations are below this.
const RULES: usize = 64;

/// The rule of an operation, precomputed.
#[derive(Clone, Copy, Debug)]
struct Rule {
    follows: Follows,
    leaves: Leaves,
    target: TargetKind,
    link: Link,
    is_step: bool,
}

/// What the threads that touched a variable or lock know.
#[derive(Clone, Copy, Debug, Default)]
struct Object<V> {
    /// The last writer.
    write: V,
    /// All of them so far, including the last writer.
    all: V,
}

fn rules(order: Order) -> [Rule; RULES] {
    let none = Rule {
        follows: Follows::Nothing,
        leaves: Leaves::Nothing,
        target: TargetKind::None,
        link: Link::None,
        is_step: true,
    };
    let mut rules = [none; RULES];
    for &op in Op::ALL {
        let effect = order.effect(op);
        rules[op as usize] = Rule {
            follows: effect.follows,
            leaves: effect.leaves,
            target: op.target_kind(),
            link: Order::link(op),
            is_step: Order::is_step(&Event::new(ThreadId(0), op)),
        };
    }
    rules
}

impl<V: LaneVector> Default for LaneClocks<V> {
    fn default() -> Self {
        LaneClocks::new(Order::Mazurkiewicz)
    }
}

impl<V: LaneVector> LaneClocks<V> {
    /// Clocks for an order, before the first event.
    pub fn new(order: Order) -> Self {
        LaneClocks {
            store: V::Store::default(),
            order,
            rules: rules(order),
            threads: Vec::new(),
            vars: Vec::new(),
            locks: Vec::new(),
            wakeups: Wakeups::default(),
        }
    }

    /// Takes the next event of the trace, which is also the next one of each of these lanes;
    /// returns what it knows, including itself.
    #[inline]
    pub fn event(&mut self, event: &Event, lanes: &[u32]) -> Result<V, TooLong> {
        let rule = self.rules[event.op() as usize % RULES];
        if !rule.is_step {
            return Ok(V::default());
        }
        let t = event.thread().index();
        let mut now = *entry(&mut self.threads, t);
        if rule.link != Link::None {
            now = self.follow(rule.link, event, now);
        }
        let object = match rule.target {
            TargetKind::Var => Some(entry(&mut self.vars, event.var().index())),
            TargetKind::Lock => Some(entry(&mut self.locks, event.lock().index())),
            TargetKind::Cond => match event.wait_lock() {
                Some(lock) => Some(entry(&mut self.locks, lock.index())),
                None => None,
            },
            TargetKind::None | TargetKind::Thread | TargetKind::Sym => None,
        };
        match object {
            None => now = raise(now, lanes, &mut self.store)?,
            Some(object) => {
                match rule.follows {
                    Follows::Nothing => {}
                    Follows::Write => now = now.join(object.write, &mut self.store),
                    Follows::All => now = now.join(object.all, &mut self.store),
                }
                now = raise(now, lanes, &mut self.store)?;
                match rule.leaves {
                    Leaves::Nothing => {}
                    Leaves::Read => object.all = object.all.join(now, &mut self.store),
                    Leaves::Write => *object = Object { write: now, all: now },
                }
            }
        }
        if rule.link != Link::None {
            self.announce(rule.link, event, now);
        }
        self.threads[t] = now;
        Ok(now)
    }

    /// Whether this vector includes event number `time` of a lane.
    #[inline]
    pub fn knows(&self, vector: &V, lane: u32, time: u32) -> bool {
        time <= vector.get(lane, &self.store)
    }

    /// The counter of a lane.
    #[inline]
    pub fn count(&self, vector: &V, lane: u32) -> u32 {
        vector.get(lane, &self.store)
    }

    /// Frees what no later event can need, if there is much of it; the vectors in `kept` stay
    /// valid.
    pub fn forget_old(&mut self, kept: impl Iterator<Item = V>) {
        let LaneClocks { store, threads, vars, locks, wakeups, .. } = self;
        let live = threads.len() + vars.len() + locks.len();
        let objects = vars.iter().chain(&*locks).flat_map(|o| [o.write, o.all]);
        let roots = threads.iter().copied().chain(objects).chain(wakeups.notes());
        V::collect(store, live, roots.chain(kept));
    }

    /// The same clocks with room for more lanes; `kept` are vectors to convert.
    pub fn widen<W: LaneVector>(&self, lanes: u32, kept: &[V]) -> (LaneClocks<W>, Vec<W>) {
        let mut wide = LaneClocks::<W>::new(self.order);
        let mut store = W::Store::default();
        let mut carry = |vector: &V| {
            (0..lanes).fold(W::default(), |wide, lane| match vector.get(lane, &self.store) {
                0 => wide,
                time => wide.raised(lane, time, &mut store),
            })
        };
        wide.threads = self.threads.iter().map(&mut carry).collect();
        for (from, to) in [(&self.vars, &mut wide.vars), (&self.locks, &mut wide.locks)] {
            to.extend(from.iter().map(|o| Object { write: carry(&o.write), all: carry(&o.all) }));
        }
        wide.wakeups = self.wakeups.map(&mut carry);
        let kept = kept.iter().map(&mut carry).collect();
        wide.store = store;
        (wide, kept)
    }

    /// Orders an event after the events of other threads that it is linked to.
    fn follow(&mut self, link: Link, event: &Event, mut now: V) -> V {
        let store = &mut self.store;
        match link {
            Link::Join => now = now.join(*entry(&mut self.threads, event.other().index()), store),
            // A notification is also possible if no thread waits for it.
            Link::Notify { .. } if self.order == Order::Needs => {}
            Link::Notify { .. } => {
                let mut i = 0;
                while let Some(begin) = self.wakeups.waiting(event.cond(), i) {
                    now = now.join(begin, store);
                    i += 1;
                }
            }
            Link::WaitEnd => {
                if let Some(note) = self.wakeups.end(event.cond(), event.thread()) {
                    now = now.join(note, store);
                }
            }
            Link::Wait => {
                if let Some(note) = self.wakeups.latest(event.cond()) {
                    now = now.join(note, store);
                }
            }
            Link::None | Link::Fork | Link::WaitBegin => {}
        }
        now
    }

    /// Stores the knowledge for later events that are linked to this one.
    fn announce(&mut self, link: Link, event: &Event, now: V) {
        match link {
            Link::Fork => {
                let child = entry(&mut self.threads, event.other().index());
                *child = child.join(now, &mut self.store);
            }
            Link::Notify { all } => self.wakeups.notify(event.cond(), now, all),
            Link::WaitBegin => self.wakeups.begin(event.cond(), event.thread(), now),
            Link::None | Link::Join | Link::WaitEnd | Link::Wait => {}
        }
    }
}

#[inline]
fn raise<V: LaneVector>(mut now: V, lanes: &[u32], store: &mut V::Store) -> Result<V, TooLong> {
    for &lane in lanes {
        let time = now.get(lane, store).checked_add(1).ok_or(TooLong)?;
        now = now.raised(lane, time, store);
    }
    Ok(now)
}
