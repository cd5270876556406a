//! A state of the program in the midst of a correct reordering, and the steps out of it.
//!
//! The state is the number of events that each thread has executed, and the last writer of each
//! variable. The locks held follow from that. Only writers that a later read must see are
//! distinguished, since nothing else depends on them. Writers of one value count as one if no read
//! can distinguish them.
//!
//! Most steps do not concern the property and need not be tried in every order. Each reduction can
//! be switched off, and none changes what is found:
//!
//! - *eager*: an event that only releases, enables or reads, and changes nothing that another thread
//!   waits for, happens at once;
//! - *quiet*: so does a write that no read ever sees, if no read wants the value that it replaces;
//! - *macro*: a lock is taken only together with the next event of the thread, since taking it early
//!   helps only a try-lock that has to find it taken;
//! - *inert*: a whole critical section of such steps happens at once, too.

use foresee_causality::judge::Reads;

use super::window::{BASE, Item, NOBODY, Window};
use crate::reorder::Kind;

/// Which reductions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reductions {
    /// Events that cannot matter happen at once.
    pub eager: bool,
    /// So do writes that no read sees.
    pub quiet: bool,
    /// Locks are taken together with what comes next.
    pub macros: bool,
    /// Sections in which nothing matters happen at once.
    pub inert: bool,
}

impl Reductions {
    /// All of them.
    pub const ALL: Reductions = Reductions { eager: true, quiet: true, macros: true, inert: true };
    /// None of them.
    pub const NONE: Reductions =
        Reductions { eager: false, quiet: false, macros: false, inert: false };
}

/// A state of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    /// For each thread, how many of its events have happened.
    pub(super) counts: Box<[u16]>,
    /// For each variable, the event that wrote what it holds, if that matters.
    pub(super) writers: Box<[u32]>,
    /// The threads, as bits, whose last read saw another write.
    pub(super) stopped: u64,
    /// The ends of waits, as bits, whose notification came before the wait began.
    pub(super) lost: u64,
}

/// The steps of a window's program.
pub(super) struct Machine<'w> {
    pub(super) window: &'w Window,
    pub(super) reads: Reads,
    pub(super) reductions: Reductions,
}

/// What one event does if it happens now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Can {
    /// It cannot happen.
    Not,
    /// It happens as it did in the trace.
    Happen,
    /// It reads another value, and the thread stops.
    Stop,
}

/// The part of a step that concerns the property: the number of an action.
pub(super) type Action = Option<u32>;

impl Machine<'_> {
    /// The state in which the window begins.
    pub(super) fn start(&self) -> Node {
        let mut node = Node {
            counts: vec![0; self.window.threads.len()].into(),
            writers: vec![BASE; self.window.variables].into(),
            stopped: 0,
            lost: 0,
        };
        self.forget_unwanted(&mut node);
        node
    }

    fn forget_unwanted(&self, node: &mut Node) {
        for variable in 0..node.writers.len() {
            let writer = node.writers[variable];
            if writer != NOBODY && !self.window.is_wanted(variable as u32, writer, &node.counts) {
                node.writers[variable] = NOBODY;
            }
        }
    }

    pub(super) fn next<'m>(&'m self, node: &Node, t: usize) -> Option<&'m Item> {
        // More threads than bits: the rest never stops.
        if t < 64 && node.stopped >> t & 1 == 1 {
            return None;
        }
        self.window.threads[t].get(usize::from(node.counts[t]))
    }

    fn can(&self, node: &Node, t: usize, item: &Item) -> Can {
        let happened = |&(other, count): &(usize, u16)| node.counts[other] >= count;
        let stopped = |&other: &usize| other < 64 && node.stopped >> other & 1 == 1;
        if !item.needs.iter().all(happened)
            || item.joined.as_ref().is_some_and(stopped)
            || item.wait.is_some_and(|wait| node.lost >> wait & 1 == 1)
        {
            return Can::Not;
        }
        let Some(object) = item.object else { return Can::Happen };
        if item.kind.acquires() && self.is_taken(node, t, object, item.kind) {
            return Can::Not;
        }
        if item.kind.reads() && node.writers[object as usize] != item.writer {
            let blind = item.visible.is_some_and(|(_, is_blind)| is_blind);
            let may_stop = self.reads == Reads::Terminal && item.kind == Kind::Read && t < 64;
            return if blind && may_stop { Can::Stop } else { Can::Not };
        }
        Can::Happen
    }

    fn is_taken(&self, node: &Node, t: usize, lock: u32, kind: Kind) -> bool {
        let shared = kind == Kind::AcquireShared;
        self.window.users[lock as usize].iter().filter(|&&other| other != t).any(|&other| {
            let held = &self.window.held[other][usize::from(node.counts[other])];
            held.iter().any(|hold| hold.lock == lock && !(shared && hold.shared))
        })
    }

    /// Executes the thread's next event.
    fn happen(&self, node: &mut Node, t: usize, item: &Item, can: Can) -> Action {
        node.counts[t] += 1;
        for &(other, begin, wait) in &item.ends {
            if node.counts[other] <= begin {
                node.lost |= 1 << wait;
            }
        }
        if let Some(variable) = item.object {
            if item.kind.writes() {
                node.writers[variable as usize] = item.leaves;
            }
            if item.kind.reads() || item.kind.writes() {
                let writer = node.writers[variable as usize];
                if !self.window.is_wanted(variable, writer, &node.counts) {
                    node.writers[variable as usize] = NOBODY;
                }
            }
        }
        if can == Can::Stop {
            node.stopped |= 1 << t;
        }
        item.visible.map(|(action, _)| action)
    }

    /// Whether no other event waits for what this one changes, so that it may happen at once.
    fn is_harmless(&self, node: &Node, item: &Item) -> bool {
        if item.visible.is_some() {
            return false;
        }
        match item.kind {
            Kind::Mark | Kind::Join | Kind::Wait | Kind::Busy | Kind::Init => true,
            Kind::Read => true,
            // Once it has happened, waits cannot end or try-locks cannot fail.
            Kind::Release | Kind::ReleaseShared | Kind::Notify => item.ends.is_empty(),
            // No other thread uses the variable.
            Kind::Write | Kind::Rmw if item.object.is_none() => true,
            Kind::Write => {
                let overwritten = item.object.map(|x| node.writers[x as usize]);
                self.reductions.quiet && item.is_unread && overwritten == Some(NOBODY)
            }
            Kind::Acquire | Kind::AcquireShared | Kind::WaitEnd => item.object.is_none(),
            Kind::Rmw => false,
        }
    }

    /// Executes every event that may happen at once.
    pub(super) fn settle(&self, node: &mut Node, path: &mut Vec<u32>) {
        if !self.reductions.eager {
            return;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for t in 0..self.window.threads.len() {
                while self.settle_thread(node, t, path) {
                    changed = true;
                }
            }
        }
    }

    fn settle_thread(&self, node: &mut Node, t: usize, path: &mut Vec<u32>) -> bool {
        let Some(item) = self.next(node, t) else { return false };
        if self.is_harmless(node, item) {
            let can = self.can(node, t, item);
            if can == Can::Happen {
                path.push(item.event);
                self.happen(node, t, item, can);
            }
            return can == Can::Happen;
        }
        self.reductions.inert
            && item.kind.acquires()
            && self.window.may_be_inert[t][usize::from(node.counts[t])]
            && self.run_section(node, t, path)
    }

    /// Runs a thread through critical sections in which nothing matters, until it has no more locks
    /// than before.
    fn run_section(&self, node: &mut Node, t: usize, path: &mut Vec<u32>) -> bool {
        let held = |node: &Node| self.window.held[t][usize::from(node.counts[t])].len();
        let (before, length) = (held(node), path.len());
        let mut inside = node.clone();
        while let Some(item) = self.next(&inside, t) {
            let acquires = item.kind.acquires() && item.visible.is_none();
            if !acquires && !self.is_harmless(&inside, item) {
                break;
            }
            let can = self.can(&inside, t, item);
            if can != Can::Happen {
                break;
            }
            path.push(item.event);
            self.happen(&mut inside, t, item, can);
            if held(&inside) <= before {
                *node = inside;
                return true;
            }
        }
        path.truncate(length);
        false
    }

    /// Whether it only takes a lock. Such an event can wait until just before the thread's next
    /// one, unless a failed try-lock has to find the lock taken.
    pub(super) fn is_put_off(&self, item: &Item) -> bool {
        self.reductions.macros && item.kind.acquires() && item.visible.is_none() && !item.is_met
    }

    /// Executes the next step of a thread, if it can happen, with the locks that it takes on the
    /// way, and adds the events to the path.
    pub(super) fn step(
        &self,
        node: &Node,
        t: usize,
        path: &mut Vec<u32>,
    ) -> Option<(Node, Action)> {
        // Most threads cannot move, and copying a state is expensive.
        if self.can(node, t, self.next(node, t)?) == Can::Not {
            return None;
        }
        let mut next = node.clone();
        loop {
            let item = self.next(&next, t)?;
            let can = self.can(&next, t, item);
            if can == Can::Not {
                return None;
            }
            path.push(item.event);
            let action = self.happen(&mut next, t, item, can);
            if !self.is_put_off(item) {
                return Some((next, action));
            }
        }
    }
}
