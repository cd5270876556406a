//! Tree clocks for the Mazurkiewicz order (Mathur, Pavlogiannis, Tunç, Viswanathan 2022): a vector
//! that remembers from whom each entry was learned, so that a join looks only at what is new.

use foresee_trace::{Event, Id, Op, entry};

const NONE: u32 = u32::MAX;

/// What a tree knows of one thread.
#[derive(Clone, Copy)]
struct Node {
    time: u32,
    /// The parent's time when this was learned from it.
    attached: u32,
    parent: u32,
    first_child: u32,
    next: u32,
    previous: u32,
}

const ABSENT: Node =
    Node { time: 0, attached: 0, parent: NONE, first_child: NONE, next: NONE, previous: NONE };

/// A vector of times as a tree whose root is the one who knows.
#[derive(Clone)]
struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

impl Default for Tree {
    fn default() -> Self {
        Tree { nodes: Vec::new(), root: NONE }
    }
}

impl Tree {
    fn of_thread(t: usize) -> Tree {
        let mut tree = Tree { nodes: vec![ABSENT; t + 1], root: t as u32 };
        tree.nodes[t].time = 0;
        tree
    }

    fn time(&self, t: u32) -> u32 {
        self.nodes.get(t as usize).map_or(0, |n| n.time)
    }

    fn join(&mut self, other: &Tree, stack: &mut Vec<u32>) {
        if other.root == NONE || other.time(other.root) <= self.time(other.root) {
            return;
        }
        stack.clear();
        self.updated(other, other.root, false, stack);
        self.take_over(other, stack);
        let (z, root) = (other.root, self.root);
        self.nodes[z as usize].attached = self.nodes[root as usize].time;
        self.push_child(root, z);
    }

    /// Becomes equal to `other`, which knows everything this one does.
    fn monotone_copy(&mut self, other: &Tree, stack: &mut Vec<u32>) {
        if self.root == NONE {
            self.clone_from(other);
            return;
        }
        stack.clear();
        self.updated(other, other.root, true, stack);
        self.take_over(other, stack);
        self.root = other.root;
    }

    /// Collects the threads of which `other` knows more, children before parents; for a copy also
    /// the old root, which gets a parent.
    fn updated(&self, other: &Tree, u: u32, copy: bool, stack: &mut Vec<u32>) {
        let mut v = other.nodes[u as usize].first_child;
        while v != NONE {
            let node = &other.nodes[v as usize];
            if self.time(v) < node.time {
                self.updated(other, v, copy, stack);
            } else {
                if copy && v == self.root {
                    stack.push(v);
                }
                if node.attached <= self.time(u) {
                    break;
                }
            }
            v = node.next;
        }
        stack.push(u);
    }

    /// Moves the collected nodes to where `other` has them.
    fn take_over(&mut self, other: &Tree, stack: &mut Vec<u32>) {
        if self.nodes.len() < other.nodes.len() {
            self.nodes.resize(other.nodes.len(), ABSENT);
        }
        for &v in &*stack {
            self.detach(v);
        }
        while let Some(u) = stack.pop() {
            let theirs = other.nodes[u as usize];
            self.nodes[u as usize].time = theirs.time;
            if theirs.parent != NONE {
                self.nodes[u as usize].attached = theirs.attached;
                self.push_child(theirs.parent, u);
            }
        }
    }

    fn detach(&mut self, v: u32) {
        let Node { parent, next, previous, .. } = self.nodes[v as usize];
        if parent == NONE {
            return;
        }
        if previous == NONE {
            self.nodes[parent as usize].first_child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        let node = &mut self.nodes[v as usize];
        (node.parent, node.next, node.previous) = (NONE, NONE, NONE);
    }

    fn push_child(&mut self, parent: u32, v: u32) {
        let first = self.nodes[parent as usize].first_child;
        self.nodes[parent as usize].first_child = v;
        let node = &mut self.nodes[v as usize];
        (node.parent, node.next, node.previous) = (parent, first, NONE);
        if first != NONE {
            self.nodes[first as usize].previous = v;
        }
    }
}

#[derive(Default)]
struct Variable {
    write: Tree,
    /// The latest read of each thread, and which of them are since the write.
    reads: Vec<(u32, Tree)>,
    since_write: Vec<u32>,
}

#[derive(Default)]
pub(crate) struct TreeClocks {
    threads: Vec<Option<Tree>>,
    forks: Vec<Option<Tree>>,
    vars: Vec<Variable>,
    locks: Vec<Tree>,
    stack: Vec<u32>,
}

impl TreeClocks {
    /// Takes the next event; waits and notifications are not handled.
    pub(crate) fn event(&mut self, event: &Event) {
        let t = event.thread().index();
        let stack = &mut self.stack;
        let mut clock = entry(&mut self.threads, t).take().unwrap_or_else(|| Tree::of_thread(t));
        if let Some(fork) = entry(&mut self.forks, t).take() {
            clock.join(&fork, stack);
        }
        clock.nodes[t].time += 1;
        match event.op() {
            Op::Read | Op::VolatileRead => {
                let var = entry(&mut self.vars, event.var().index());
                clock.join(&var.write, stack);
                let reader = t as u32;
                let place = var.reads.iter().position(|r| r.0 == reader).unwrap_or_else(|| {
                    var.reads.push((reader, Tree::default()));
                    var.reads.len() - 1
                });
                var.reads[place].1.monotone_copy(&clock, stack);
                if !var.since_write.contains(&(place as u32)) {
                    var.since_write.push(place as u32);
                }
            }
            Op::Write | Op::VolatileWrite | Op::Rmw => {
                let var = entry(&mut self.vars, event.var().index());
                clock.join(&var.write, stack);
                for &place in &var.since_write {
                    clock.join(&var.reads[place as usize].1, stack);
                }
                var.since_write.clear();
                var.write.monotone_copy(&clock, stack);
            }
            Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => {
                let lock = entry(&mut self.locks, event.lock().index());
                clock.join(lock, stack);
                lock.monotone_copy(&clock, stack);
            }
            Op::Fork => *entry(&mut self.forks, event.other().index()) = Some(clock.clone()),
            Op::Join => {
                if let Some(other) = entry(&mut self.threads, event.other().index()) {
                    clock.join(other, stack);
                }
            }
            _ => {}
        }
        self.threads[t] = Some(clock);
    }

    /// The latest time of thread `u` that thread `t` knows.
    #[cfg(test)]
    pub(crate) fn known(&self, t: usize, u: usize) -> u32 {
        let tree = self.threads.get(t).and_then(Option::as_ref);
        tree.map_or(0, |tree| tree.time(u as u32))
    }
}
