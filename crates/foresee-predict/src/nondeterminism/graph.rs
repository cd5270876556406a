//! What every witness of a trace has in common: the events that matter, what each of them needs,
//! and where to find them.
//!
//! Only events that could stand in each other's way are *nodes*: accesses of variables and
//! operations of locks that several threads use, and everything that ties threads together. A node
//! needs the one before it in its thread, its fork, the thread that it joins, the notification that
//! woke it and, if it reads, the write that it saw. A node inside a critical section that needs
//! another section to have begun needs its end, too, since the two exclude each other: without this,
//! a chain of n sections that read from each other would be closed one by one for every question.
//! Whether one node needs another is one comparison of clocks, which are computed once; the edges of
//! a particular witness come on top in `decide`.
//!
//! Checks and sliced searches have a structure of their own for what events need:
//! [`Requirements`](crate::reorder::Requirements). Both find what one event needs in the same
//! [walk](Needs), and which objects several threads use in the same [table](Users), but store it
//! differently, because they answer different questions.
//!
//! - Requirements hold every event of the trace in some twenty bytes, grow while the trace is read,
//!   and leave it to each search which reads count, since most look for runs in which the last read
//!   of a thread may change. Searches walk them backwards.
//! - Here the trace is complete, every read but one must see what it saw, and the question is asked
//!   for millions of pairs. So only the few events that matter become nodes, and each gets a clock,
//!   which needs the write of every read as an edge.
//!
//! Building one from the other would keep both in memory, and clocks over all events would take
//! several times the memory of clocks over the nodes.

use std::collections::HashMap;
use std::time::Instant;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, LockEdge, Op, Trace, entry};

use super::locks::Sections;
use crate::analysis::AnalysisError;
pub(super) use crate::needs::{Kind, NONE};
use crate::needs::{Need, Needs};
use crate::users::Users;

/// A node, and what it has to do with others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// An access, [`Kind::Acquire`] or [`Kind::Release`] whether or not the lock is shared, or
    /// [`Kind::Mark`] for what ties threads together.
    pub(super) kind: Kind,
    pub(super) thread: u32,
    /// Its place among the nodes of its thread, counted from one.
    pub(super) clock: u32,
    /// The variable of an access, the section of a lock operation.
    pub(super) object: u32,
    /// For a read the write that it saw.
    pub(super) saw: u32,
    /// The node before it in its thread, or the fork of the thread.
    pub(super) previous: u32,
    /// The end of the thread that it joins, or the notification that woke it.
    pub(super) needs: u32,
}

/// The accesses of one variable.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    /// All of them, in the order of the trace.
    pub(super) all: Vec<u32>,
    /// The writes of each thread that has some, in its order.
    pub(super) writes: Vec<(u32, Vec<u32>)>,
}

/// The nodes of a trace and what they need.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) threads: usize,
    pub(super) nodes: Vec<Node>,
    /// The event of each node.
    pub(super) events: Vec<u32>,
    /// The nodes of each thread.
    pub(super) own: Vec<Vec<u32>>,
    pub(super) variables: Vec<Accesses>,
    pub(super) sections: Sections,
    /// For notifications, the beginnings and ends of the waits that they end: if the end is there,
    /// the beginning comes before. For releases, in the same way, the try-locks that failed.
    pub(super) ended: HashMap<u32, Vec<(u32, u32)>, RandomState>,
    /// For each node, how many nodes of each thread it needs, itself included.
    before: Vec<u32>,
    /// Whether there was no time to learn everything. What there is of the graph then means nothing.
    pub(super) is_cut_short: bool,
    /// The same for memory: the clocks are as many as the nodes times the threads.
    pub(super) is_too_large: bool,
}

/// The number of events, or clocks, between two checks of the deadline.
const BETWEEN_LOOKS: usize = 1 << 12;

/// When to give everything up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(pub(super) Option<Instant>);

impl Deadline {
    pub(super) fn is_over(self) -> bool {
        self.0.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The same, looked at now and then.
    fn is_over_at(self, step: usize) -> bool {
        step.is_multiple_of(BETWEEN_LOOKS) && self.is_over()
    }
}

/// Which threads use which variables and locks.
fn users(trace: &Trace) -> (Users, Users) {
    let (mut vars, mut locks) = (Users::default(), Users::default());
    for event in trace.events.iter().filter(|e| e.op() != Op::Init) {
        let thread = event.thread().0;
        if event.op().reads() || event.op().writes() {
            vars.add(event.var().index(), thread);
        } else if let Some(edge) = event.lock_edge() {
            locks.add(edge.lock.index(), thread);
        } else if matches!(event.op(), Op::Busy | Op::BusyShared) {
            locks.add(event.lock().index(), thread);
        }
    }
    (vars, locks)
}

impl Graph {
    /// Learns what happened in a well-formed trace, if there is time, in this many bytes.
    pub(super) fn new(
        trace: &Trace,
        deadline: Deadline,
        memory: usize,
    ) -> Result<Graph, AnalysisError> {
        if trace.events.len() >= NONE as usize {
            return Err(AnalysisError::Limit("the trace has more than four billion events".into()));
        }
        let (vars, locks) = users(trace);
        let thread_of = |e: &Event| match e.op() {
            Op::Fork | Op::Join => e.thread().max(e.other()).index() + 1,
            _ => e.thread().index() + 1,
        };
        let steps = trace.events.iter().filter(|e| e.op() != Op::Init);
        let threads = steps.map(thread_of).max().unwrap_or(0);
        let mut graph = Graph {
            threads,
            nodes: Vec::new(),
            events: Vec::new(),
            own: vec![Vec::new(); threads],
            variables: Vec::new(),
            sections: Sections::new(threads),
            ended: HashMap::default(),
            before: Vec::new(),
            is_cut_short: false,
            is_too_large: false,
        };
        let mut needs = Needs::default();
        let mut failed = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            if deadline.is_over_at(i) {
                graph.is_cut_short = true;
                return Ok(graph);
            }
            // There is no use in learning more than there is room for.
            if graph.nodes.len().saturating_mul(threads) > memory / size_of::<u32>() {
                graph.is_too_large = true;
                return Ok(graph);
            }
            let op = event.op();
            let is_access = op.reads() || op.writes();
            let lock = event.lock_edge().filter(|edge| locks.is_shared(edge.lock.index()));
            let links = matches!(
                op,
                Op::Fork
                    | Op::Join
                    | Op::Notify
                    | Op::NotifyAll
                    | Op::WaitBegin
                    | Op::WaitEnd
                    | Op::Wait
            );
            let shared_access = is_access && vars.is_shared(event.var().index());
            let found_taken = matches!(op, Op::Busy | Op::BusyShared);
            if op == Op::Init || !(shared_access || lock.is_some() || links || found_taken) {
                continue;
            }
            let (id, thread) = (graph.nodes.len() as u32, event.thread().index());
            let own = &mut graph.own[thread];
            own.push(id);
            let need = needs.step(id, event);
            let previous = match need.previous {
                NONE => needs.fork(thread),
                previous => previous,
            };
            let mut node = Node {
                kind: Kind::Mark,
                thread: thread as u32,
                clock: own.len() as u32,
                object: NONE,
                saw: NONE,
                previous,
                needs: NONE,
            };
            match need.kind {
                Kind::Read | Kind::Write | Kind::Rmw => graph.access(id, event, &need, &mut node),
                Kind::WaitEnd if need.partner != NONE => {
                    node.needs = need.partner;
                    // A thread does nothing else while it waits.
                    graph.ended.entry(need.partner).or_default().push((previous, id));
                }
                Kind::Busy if need.partner != NONE => {
                    node.needs = need.partner;
                    failed.push(id);
                }
                Kind::Join | Kind::Wait => node.needs = need.partner,
                _ => {}
            }
            if let Some(edge) = lock {
                graph.lock(id, edge, &need, &mut node);
            }
            graph.sections.note_holds(thread);
            graph.nodes.push(node);
            graph.events.push(i as u32);
        }
        for busy in failed {
            let section = graph.node(graph.node(busy).needs).object;
            let release = graph.sections.get(section).release;
            if release != NONE {
                graph.ended.entry(release).or_default().push((busy, busy));
            }
        }
        graph.compute_clocks(deadline, memory);
        Ok(graph)
    }

    fn access(&mut self, id: u32, event: &Event, need: &Need, node: &mut Node) {
        node.object = event.var().0;
        node.kind = need.kind;
        node.saw = need.partner;
        let accesses = entry(&mut self.variables, event.var().index());
        accesses.all.push(id);
        if need.kind.writes() {
            match accesses.writes.iter_mut().find(|(thread, _)| *thread == node.thread) {
                Some((_, writes)) => writes.push(id),
                None => accesses.writes.push((node.thread, vec![id])),
            }
        }
    }

    fn lock(&mut self, id: u32, edge: LockEdge, need: &Need, node: &mut Node) {
        let LockEdge { lock, shared, takes } = edge;
        if takes {
            node.kind = Kind::Acquire;
            node.object = self.sections.open(lock.index(), node.thread, shared, id);
        } else if need.acquire != NONE {
            node.kind = Kind::Release;
            node.object = self.node(need.acquire).object;
            self.sections.close(node.object, id);
        }
    }

    fn compute_clocks(&mut self, deadline: Deadline, memory: usize) {
        let width = self.threads;
        let most = memory / size_of::<u32>();
        let Some(entries) = self.nodes.len().checked_mul(width).filter(|&n| n <= most) else {
            self.is_too_large = true;
            return;
        };
        let mut before = vec![0_u32; entries];
        for (i, node) in self.nodes.iter().enumerate() {
            if deadline.is_over_at(i) {
                self.is_cut_short = true;
                return;
            }
            let (earlier, mine) = before.split_at_mut(i * width);
            let mine = &mut mine[..width];
            let clock = |node: u32| &earlier[node as usize * width..][..width];
            if node.previous != NONE {
                join(mine, clock(node.previous));
            }
            mine[node.thread as usize] = node.clock;
            let mut learns = false;
            for need in [node.needs, node.saw] {
                if need != NONE && !self.is_within(mine, need) {
                    join(mine, clock(need));
                    learns = true;
                }
            }
            if node.kind == Kind::Acquire && self.end_before(mine, node.object, clock) {
                learns = true;
            }
            // An end that is needed may need the beginnings of further sections.
            while learns {
                learns = false;
                for held in self.sections.held(node.thread as usize, node.clock) {
                    learns |= self.end_before(mine, held, clock);
                }
            }
        }
        self.before = before;
    }

    /// Adds to what a node inside a section needs: the ends of the sections that exclude this one and
    /// that it needs the beginnings of. Whether there are any that it did not need already.
    fn end_before<'c>(
        &self,
        mine: &mut [u32],
        section: u32,
        clock: impl Fn(u32) -> &'c [u32],
    ) -> bool {
        let section = self.sections.get(section);
        let mut learns = false;
        for (user, theirs) in &self.sections.by_lock[section.lock as usize] {
            let bound = mine[*user as usize];
            let begun =
                theirs.partition_point(|&s| self.node(self.sections.get(s).acquire).clock <= bound);
            let mut begun = theirs[..begun].iter().rev().map(|&s| self.sections.get(s));
            let Some(other) = begun.find(|other| other.excludes(section)) else { continue };
            let is_known = other.release == NONE
                || other.release > section.acquire
                || self.is_within(mine, other.release);
            if !is_known {
                join(mine, clock(other.release));
                learns = true;
            }
        }
        learns
    }

    #[inline]
    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// How many nodes of each thread the node needs, itself included.
    #[inline]
    pub(super) fn before(&self, node: u32) -> &[u32] {
        let from = node as usize * self.threads;
        &self.before[from..from + self.threads]
    }

    /// Whether `first` is `second` or needed by it.
    #[inline]
    pub(super) fn is_needed(&self, first: u32, second: u32) -> bool {
        let node = self.node(first);
        self.before[second as usize * self.threads + node.thread as usize] >= node.clock
    }

    /// Whether a set with these numbers of nodes of each thread has the node.
    #[inline]
    pub(super) fn is_within(&self, frontier: &[u32], node: u32) -> bool {
        let node = self.node(node);
        node.clock <= frontier[node.thread as usize]
    }

    /// The last of a thread's nodes in `list` that is within the frontier.
    #[inline]
    pub(super) fn last_within(&self, list: &[u32], bound: u32) -> Option<u32> {
        let end = list.partition_point(|&node| self.node(node).clock <= bound);
        list[..end].last().copied()
    }
}

/// The larger of each two entries.
#[inline]
pub(super) fn join(into: &mut [u32], from: &[u32]) {
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}
