//! The graph of transactions of one order of events, and a cycle in it.
//!
//! This is the graph of Velodrome (Flanagan, Freund and Yi, 2008). Here it confirms results of the
//! clocks or of the search for reorderings, and identifies the conflicts of the cycle.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, Op, entry};

use super::regions::Regions;

/// One step of a cycle: `from` happens before `to`, which is of another transaction. They conflict,
/// or are of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The event that comes first.
    pub(crate) from: u32,
    /// The one that comes after it.
    pub(crate) to: u32,
}

/// A transaction: a region, or an event outside of all regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Transaction {
    Region(u32),
    Event(u32),
}

#[derive(Debug, Default)]
struct Variable {
    write: Option<u32>,
    reads: Vec<u32>,
}

/// A graph that grows with each event.
struct Graph<'t> {
    regions: &'t Regions,
    number: HashMap<Transaction, u32, RandomState>,
    /// For each transaction, those that come after it, and why.
    after: Vec<Vec<(u32, Link)>>,
    /// The latest event of each thread.
    last: Vec<Option<u32>>,
    variables: HashMap<u32, Variable, RandomState>,
    events: &'t [Event],
}

impl Graph<'_> {
    fn node(&mut self, event: u32) -> u32 {
        let thread = self.events[event as usize].thread().0;
        let transaction = match self.regions.at(thread, event) {
            Some(region) => Transaction::Region(region),
            None => Transaction::Event(event),
        };
        match self.number.entry(transaction) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.after.push(Vec::new());
                *new.insert(self.after.len() as u32 - 1)
            }
        }
    }

    fn link(&mut self, from: u32, to: u32) {
        let (a, b) = (self.node(from), self.node(to));
        let known = self.after[a as usize].last().is_some_and(|&(last, _)| last == b);
        if a != b && !known {
            self.after[a as usize].push((b, Link { from, to }));
        }
    }

    fn push(&mut self, event: u32) {
        let it = &self.events[event as usize];
        if it.op() == Op::Init {
            return;
        }
        if let Some(last) = entry(&mut self.last, it.thread().index()).replace(event) {
            self.link(last, event);
        }
        let (reads, writes) = (it.op().reads(), it.op().writes());
        if !reads && !writes {
            return;
        }
        let variable = self.variables.entry(it.var().0).or_default();
        let write = variable.write;
        let readers = if writes { std::mem::take(&mut variable.reads) } else { Vec::new() };
        if writes {
            variable.write = Some(event);
        } else {
            variable.reads.push(event);
        }
        write.into_iter().chain(readers).for_each(|from| self.link(from, event));
    }
}

/// A shortest cycle through a region in the order `order` followed by `last`, an access of the
/// region: by conflicts and, if a thread has continued from one transaction to another in between,
/// by program order, back to `last`. Only transactions from `start` on are examined; no region may
/// extend across it.
pub(crate) fn cycle(
    events: &[Event],
    regions: &Regions,
    order: impl Iterator<Item = u32>,
    start: u32,
    last: u32,
    region: u32,
) -> Option<Vec<Link>> {
    let mut graph = Graph {
        regions,
        number: HashMap::default(),
        after: Vec::new(),
        last: Vec::new(),
        variables: HashMap::default(),
        events,
    };
    // What the last access follows.
    let mut followed: Vec<u32> = Vec::new();
    let its = &events[last as usize];
    for event in order.filter(|&event| event >= start) {
        graph.push(event);
        if conflict(&events[event as usize], its) {
            followed.push(event);
        }
    }
    let home = *graph.number.get(&Transaction::Region(region))?;
    let mut from: Vec<Option<(u32, Link)>> = vec![None; graph.after.len()];
    let mut distance = vec![u32::MAX; graph.after.len()];
    distance[home as usize] = 0;
    let mut found = vec![home];
    let mut at = 0;
    while let Some(&node) = found.get(at) {
        at += 1;
        for &(next, link) in &graph.after[node as usize] {
            if distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[node as usize] + 1;
                from[next as usize] = Some((node, link));
                found.push(next);
            }
        }
    }
    // The latest of the nearest ones.
    let mut nearest: Option<(u32, u32, u32)> = None;
    for &event in followed.iter().rev() {
        let node = graph.node(event);
        let way = distance[node as usize];
        if node != home && way < nearest.map_or(u32::MAX, |(least, ..)| least) {
            nearest = Some((way, node, event));
        }
    }
    let (_, mut back, event) = nearest?;
    let mut cycle = vec![Link { from: event, to: last }];
    while let Some((before, link)) = from[back as usize] {
        cycle.push(link);
        back = before;
    }
    cycle.reverse();
    Some(cycle)
}

/// Whether two events are of different threads and access one variable, which one of them writes.
fn conflict(a: &Event, b: &Event) -> bool {
    let is_access = |event: &Event| event.op().reads() || event.op().writes();
    is_access(a)
        && is_access(b)
        && a.thread() != b.thread()
        && a.var() == b.var()
        && (a.op().writes() || b.op().writes())
}
