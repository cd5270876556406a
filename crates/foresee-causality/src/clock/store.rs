//! A store of immutable vectors that share their common parts.
//!
//! A clock is a tree of fan-out sixteen whose leaves hold the counters of sixteen threads each.
//! Joining two clocks walks both trees and stops wherever they have the same node, so the cost is
//! proportional to the entries that differ and independent of the number of threads. With at most
//! sixteen threads, a clock is one leaf, and a join compares two cache lines. Clocks never change,
//! so storing one takes four bytes.
//!
//! Unreachable nodes are collected by occasional marking: reference counts would touch a cache line
//! for each event of the trace.

use foresee_trace::{Id, ThreadId};

const FAN: usize = 16;
const FAN_BITS: u32 = 4;
/// The height of a tree that can hold every possible thread number.
const MAX_HEIGHT: u32 = 5;
const _: () = assert!(FAN.pow(MAX_HEIGHT + 1) > ThreadId::MAX as usize);

/// A vector of counters in a [`ClockStore`].
///
/// The upper three bits hold the height of its tree, the others the index of its root, so a clock
/// of few threads stays small when more threads appear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock(u32);

impl Clock {
    /// The clock that knows no events.
    pub const EMPTY: Clock = Clock(0);

    #[inline]
    fn leaf(index: usize) -> Clock {
        Clock(index as u32)
    }

    #[inline]
    fn inner(height: u32, index: usize) -> Clock {
        Clock(height << 29 | index as u32)
    }

    #[inline]
    fn height(self) -> u32 {
        self.0 >> 29
    }

    #[inline]
    fn index(self) -> usize {
        (self.0 & ((1 << 29) - 1)) as usize
    }
}

/// The counters of sixteen threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
struct Leaf<const N: usize>([[u32; FAN]; N]);

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Inner([Clock; FAN]);

/// The storage of clocks.
#[derive(Debug)]
pub struct ClockStore<const N: usize = 1> {
    leaves: Arena<Leaf<N>>,
    inners: Arena<Inner>,
}

impl<const N: usize> Default for ClockStore<N> {
    fn default() -> Self {
        // Leaf zero is the empty clock, which represents an empty tree of any height.
        let mut leaves = Arena::default();
        leaves.add(Leaf([[0; FAN]; N]));
        ClockStore { leaves, inners: Arena::default() }
    }
}

impl<const N: usize> ClockStore<N> {
    /// The counters of thread `t`.
    #[inline]
    pub fn get(&self, clock: Clock, t: ThreadId) -> [u32; N] {
        let mut node = clock;
        let mut height = node.height();
        if t.index() >> (FAN_BITS * height) >= FAN {
            return [0; N];
        }
        while height > 0 {
            let Inner(children) = &self.inners.nodes[node.index()];
            node = children[t.index() >> (FAN_BITS * height) & (FAN - 1)];
            if node == Clock::EMPTY {
                return [0; N];
            }
            height -= 1;
        }
        let Leaf(lanes) = &self.leaves.nodes[node.index()];
        std::array::from_fn(|lane| lanes[lane][t.index() & (FAN - 1)])
    }

    /// The larger counter of `a` and `b` for each thread, and at least `time` for thread `t`: what
    /// a thread with clock `a` knows after it hears from `t`, whose clock was `b`.
    pub fn learn(&mut self, a: Clock, b: Clock, t: ThreadId, time: [u32; N]) -> Clock {
        let mut height = a.height().max(b.height());
        while t.index() >> (FAN_BITS * height) >= FAN {
            height += 1;
        }
        let (a, b) = (self.raise(a, height), self.raise(b, height));
        self.learn_at(height, a, b, t, time)
    }

    /// The larger counter of `a` and `b` for each thread.
    pub fn join(&mut self, a: Clock, b: Clock) -> Clock {
        let height = a.height().max(b.height());
        let (a, b) = (self.raise(a, height), self.raise(b, height));
        self.join_at(height, a, b)
    }

    /// The smaller counter of `a` and `b` for each thread: what both know.
    pub fn meet(&mut self, a: Clock, b: Clock) -> Clock {
        // A lower tree has no counters for the threads beyond it.
        let (mut a, mut b) = (a, b);
        while a.height() > b.height() {
            a = self.children(a)[0];
        }
        while b.height() > a.height() {
            b = self.children(b)[0];
        }
        if a.height() != b.height() { self.meet(a, b) } else { self.meet_at(a.height(), a, b) }
    }

    fn meet_at(&mut self, height: u32, a: Clock, b: Clock) -> Clock {
        if a == b || a == Clock::EMPTY || b == Clock::EMPTY {
            return if a == b { a } else { Clock::EMPTY };
        }
        if height == 0 {
            let (Leaf(x), Leaf(y)) = (&self.leaves.nodes[a.index()], &self.leaves.nodes[b.index()]);
            let met: [[u32; FAN]; N] =
                std::array::from_fn(|l| std::array::from_fn(|i| x[l][i].min(y[l][i])));
            return match met {
                met if met == *x => a,
                met if met == *y => b,
                met if met == [[0; FAN]; N] => Clock::EMPTY,
                met => Clock::leaf(self.leaves.add(Leaf(met))),
            };
        }
        let (x, y) = (self.children(a), self.children(b));
        let met: [Clock; FAN] = std::array::from_fn(|i| self.meet_at(height - 1, x[i], y[i]));
        match met {
            met if met == x => a,
            met if met == y => b,
            met if met == [Clock::EMPTY; FAN] => Clock::EMPTY,
            met => Clock::inner(height, self.inners.add(Inner(met))),
        }
    }

    /// Calls `each` with every thread for which `a` and `b` differ, and with `b`'s counters for it.
    /// The cost is proportional to the number of differences.
    pub fn differences(&self, a: Clock, b: Clock, each: &mut impl FnMut(ThreadId, [u32; N])) {
        self.differ_at(a.height().max(b.height()), 0, a, b, each);
    }

    fn differ_at(
        &self,
        height: u32,
        first: usize,
        a: Clock,
        b: Clock,
        each: &mut impl FnMut(ThreadId, [u32; N]),
    ) {
        if a == b {
            return;
        }
        if height == 0 {
            let (Leaf(x), Leaf(y)) = (&self.leaves.nodes[a.index()], &self.leaves.nodes[b.index()]);
            for i in 0..FAN {
                let (x, y) = (x.map(|lane| lane[i]), y.map(|lane| lane[i]));
                if x != y {
                    each(ThreadId::new(first + i), y);
                }
            }
            return;
        }
        // A lower tree is the first child of the equivalent tree of this height.
        let child = |clock: Clock, i: usize| match clock {
            Clock::EMPTY => Clock::EMPTY,
            _ if clock.height() == height => self.inners.nodes[clock.index()].0[i],
            _ if i == 0 => clock,
            _ => Clock::EMPTY,
        };
        for i in 0..FAN {
            let first = first + (i << (FAN_BITS * height));
            self.differ_at(height - 1, first, child(a, i), child(b, i), each);
        }
    }

    /// The same clock as a tree of this height, so that its children line up with another's.
    #[inline]
    fn raise(&mut self, mut clock: Clock, height: u32) -> Clock {
        while clock.height() < height && clock != Clock::EMPTY {
            let mut children = [Clock::EMPTY; FAN];
            children[0] = clock;
            clock = Clock::inner(clock.height() + 1, self.inners.add(Inner(children)));
        }
        clock
    }

    fn learn_at(&mut self, height: u32, a: Clock, b: Clock, t: ThreadId, time: [u32; N]) -> Clock {
        if height == 0 {
            let place = t.index() & (FAN - 1);
            return self.join_leaves(a, b, |leaf: &mut Leaf<N>| {
                for (counters, time) in leaf.0.iter_mut().zip(time) {
                    counters[place] = counters[place].max(time);
                }
            });
        }
        let path = t.index() >> (FAN_BITS * height) & (FAN - 1);
        self.join_inners(height, a, b, |store, i, x, y| {
            if i == path {
                store.learn_at(height - 1, x, y, t, time)
            } else {
                store.join_at(height - 1, x, y)
            }
        })
    }

    fn join_at(&mut self, height: u32, a: Clock, b: Clock) -> Clock {
        if a == b || b == Clock::EMPTY {
            a
        } else if a == Clock::EMPTY {
            b
        } else if height == 0 {
            self.join_leaves(a, b, |_| {})
        } else {
            self.join_inners(height, a, b, |store, _, x, y| store.join_at(height - 1, x, y))
        }
    }

    /// Joins two leaves and adds to the result; reuses one of them if nothing is new.
    #[inline]
    fn join_leaves(&mut self, a: Clock, b: Clock, add: impl FnOnce(&mut Leaf<N>)) -> Clock {
        let (Leaf(x), Leaf(y)) = (&self.leaves.nodes[a.index()], &self.leaves.nodes[b.index()]);
        let mut joined = Leaf([[0; FAN]; N]);
        for lane in 0..N {
            for i in 0..FAN {
                joined.0[lane][i] = x[lane][i].max(y[lane][i]);
            }
        }
        add(&mut joined);
        if joined.0 == *x {
            a
        } else if joined.0 == *y {
            b
        } else {
            Clock::leaf(self.leaves.add(joined))
        }
    }

    /// Joins two trees of this height child by child; reuses one of them if nothing is new.
    #[inline]
    fn join_inners(
        &mut self,
        height: u32,
        a: Clock,
        b: Clock,
        mut join: impl FnMut(&mut Self, usize, Clock, Clock) -> Clock,
    ) -> Clock {
        let (x, y) = (self.children(a), self.children(b));
        let joined: [Clock; FAN] = std::array::from_fn(|i| join(self, i, x[i], y[i]));
        if joined == x {
            a
        } else if joined == y {
            b
        } else {
            Clock::inner(height, self.inners.add(Inner(joined)))
        }
    }

    #[inline]
    fn children(&self, clock: Clock) -> [Clock; FAN] {
        match clock {
            Clock::EMPTY => [Clock::EMPTY; FAN],
            _ => self.inners.nodes[clock.index()].0,
        }
    }

    /// The number of nodes, used or not.
    pub fn nodes(&self) -> usize {
        self.leaves.nodes.len() + self.inners.nodes.len()
    }

    /// The bytes that the nodes occupy.
    pub fn bytes(&self) -> usize {
        self.leaves.nodes.capacity() * size_of::<Leaf<N>>()
            + self.inners.nodes.capacity() * size_of::<Inner>()
    }

    /// Whether enough was added since the last [`ClockStore::collect`] to make another one, which
    /// visits `roots` clocks, worthwhile.
    #[inline]
    pub fn is_worth_collecting(&self, roots: usize) -> bool {
        let added = self.leaves.added + self.inners.added;
        added > MIN_GARBAGE && added > self.leaves.live + self.inners.live + roots / 4
    }

    /// Removes every clock that is not reachable from `roots`.
    pub fn collect(&mut self, roots: impl Iterator<Item = Clock>) {
        self.leaves.unmark();
        self.inners.unmark();
        self.leaves.mark(0);
        for root in roots {
            self.mark(root);
        }
        self.leaves.sweep();
        self.inners.sweep();
    }

    fn mark(&mut self, clock: Clock) {
        if clock.height() == 0 {
            self.leaves.mark(clock.index());
        } else if self.inners.mark(clock.index()) {
            for child in self.inners.nodes[clock.index()].0 {
                self.mark(child);
            }
        }
    }
}

/// Nothing is collected below this many new nodes (four MiB of leaves).
const MIN_GARBAGE: usize = 1 << 16;

/// Nodes with a free list.
#[derive(Debug)]
struct Arena<T> {
    nodes: Vec<T>,
    free: Vec<u32>,
    marked: Vec<u64>,
    /// Nodes in use after the last sweep.
    live: usize,
    /// Nodes added since.
    added: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { nodes: Vec::new(), free: Vec::new(), marked: Vec::new(), live: 0, added: 0 }
    }
}

impl<T> Arena<T> {
    #[inline]
    fn add(&mut self, node: T) -> usize {
        self.added += 1;
        match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place as usize
            }
            None => {
                assert!(self.nodes.len() < 1 << 29, "32 GiB of clocks");
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    fn unmark(&mut self) {
        self.marked.clear();
        self.marked.resize(self.nodes.len().div_ceil(64), 0);
    }

    /// Marks a node; returns whether it was unmarked.
    fn mark(&mut self, index: usize) -> bool {
        let (word, bit) = (&mut self.marked[index / 64], 1 << (index % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    fn sweep(&mut self) {
        self.free.clear();
        for index in (0..self.nodes.len()).rev() {
            if self.marked[index / 64] & 1 << (index % 64) == 0 {
                self.free.push(index as u32);
            }
        }
        self.live = self.nodes.len() - self.free.len();
        self.added = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares random joins of clocks of up to 300 threads with plain vectors, with collections.
    #[test]
    fn clocks_are_vectors() {
        const THREADS: usize = 300;
        let mut seed = 1u64;
        let mut random = move |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        let mut store = ClockStore::<2>::default();
        let mut clocks = vec![(Clock::EMPTY, vec![[0; 2]; THREADS]); 20];
        for round in 0..20_000 {
            let (i, j) = (random(20), random(20));
            // Small thread numbers are frequent, so trees of different heights meet.
            let limit = [3, 16, 17, THREADS][random(4)];
            let (t, time) = (random(limit), [random(50) as u32, random(9) as u32]);
            let other = clocks[j].clone();
            let (clock, plain) = &mut clocks[i];
            if round % 3 == 0 {
                *clock = store.join(*clock, other.0);
            } else {
                *clock = store.learn(*clock, other.0, ThreadId(t as u32), time);
                for lane in 0..2 {
                    plain[t][lane] = plain[t][lane].max(time[lane]);
                }
            }
            for (mine, theirs) in plain.iter_mut().zip(&other.1) {
                for lane in 0..2 {
                    mine[lane] = mine[lane].max(theirs[lane]);
                }
            }
            if round % 50 == 0 {
                clocks[random(20)] = (Clock::EMPTY, vec![[0; 2]; THREADS]);
            }
            if round % 500 == 0 {
                store.collect(clocks.iter().map(|c| c.0));
            }
            let (clock, plain) = &clocks[i];
            let (other, theirs) = &clocks[random(20)];
            let mut found = Vec::new();
            store.differences(*other, *clock, &mut |t, time| found.push((t.index(), time)));
            let differ = plain.iter().zip(theirs).enumerate().filter(|(_, (a, b))| a != b);
            assert_eq!(found, differ.map(|(t, (a, _))| (t, *a)).collect::<Vec<_>>());
            for (t, time) in plain.iter().enumerate() {
                assert_eq!(store.get(*clock, ThreadId(t as u32)), *time);
            }
        }
        assert!(store.nodes() < 40_000, "collected nodes are used again");
    }

    #[test]
    fn learning_nothing_new_makes_no_clock() {
        let mut store = ClockStore::<1>::default();
        let a = store.learn(Clock::EMPTY, Clock::EMPTY, ThreadId(20), [7]);
        let b = store.learn(a, Clock::EMPTY, ThreadId(3), [2]);
        let nodes = store.nodes();
        assert_eq!(store.join(a, b), b);
        assert_eq!(store.join(b, a), b);
        assert_eq!(store.learn(b, a, ThreadId(20), [6]), b);
        assert_eq!(store.nodes(), nodes);
        assert_eq!(store.get(b, ThreadId(1 << 20)), [0]);
    }
}
