//! An order of the chosen nodes that keeps the edges of a witness and is as near to the observed
//! one as they allow, and the first thing in it that could not have happened.
//!
//! Outside a stretch the observed order stands: before the earliest node that has to wait for a
//! later one, and after the latest node that is waited for. Inside, nodes come in the observed
//! order, each preceded by what it waits for. Locks and memory are followed along the way.

use super::graph::{Graph, Kind, NONE};

/// The places at which what a node waits for is asked: fixed ones, then waits, then edges.
const PREVIOUS: u32 = 0;
const NEEDS: u32 = 1;
const SAW: u32 = 2;
const WAITS: u32 = 3;
const EDGES: u32 = 1 << 31;

/// What is wrong with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The edges contradict each other.
    Cycle,
    /// A read sees this write instead of its own.
    Interference { read: u32, write: u32 },
    /// A section begins while another one, which excludes it, has not ended.
    Overlap { held: u32, wanted: u32 },
}

/// Stamped with the attempt they belong to, so that nothing needs to be cleared.
#[derive(Clone, Copy, Debug, Default)]
struct LastWrite {
    attempt: u32,
    /// The last write in the order that was made.
    made: u32,
    /// The last of the same writes in the observed order.
    observed: u32,
}

/// The memory of attempts to put nodes into order.
#[derive(Debug)]
pub(super) struct Lineariser {
    attempt: u32,
    /// For each node twice the attempt in which it was last waited for, plus one if it has come.
    state: Vec<u32>,
    stack: Vec<(u32, u32)>,
    /// For each node that is the target of edges, the attempt and the last of them; and for each
    /// edge the one before it with the same target.
    heads: Vec<(u32, u32)>,
    links: Vec<u32>,
    last: Vec<LastWrite>,
    written: Vec<u32>,
    holders: Vec<(u32, Vec<u32>)>,
    /// The stretch in which the order differs from the observed one, and its order.
    pub(super) stretch: (u32, u32),
    pub(super) order: Vec<u32>,
    /// How many nodes were looked at in all attempts.
    pub(super) work: u64,
}

impl Lineariser {
    pub(super) fn new(graph: &Graph) -> Lineariser {
        Lineariser {
            attempt: 0,
            state: vec![0; graph.nodes.len()],
            stack: Vec::new(),
            heads: vec![(0, NONE); graph.nodes.len()],
            links: Vec::new(),
            last: vec![LastWrite::default(); graph.variables.len()],
            written: Vec::new(),
            holders: vec![(0, Vec::new()); graph.sections.by_lock.len()],
            stretch: (0, 0),
            order: Vec::new(),
            work: 0,
        }
    }

    /// Puts the nodes within the frontier into order. On success `order` is what stands in the
    /// place of the nodes of `stretch`.
    pub(super) fn attempt(
        &mut self,
        graph: &Graph,
        frontier: &[u32],
        edges: &[(u32, u32)],
    ) -> Result<(), Trouble> {
        self.order.clear();
        self.written.clear();
        self.stretch = (0, 0);
        let backward = || edges.iter().filter(|(source, target)| source > target);
        let Some(first) = backward().map(|&(_, target)| target).min() else { return Ok(()) };
        let end = backward().map(|&(source, _)| source).max().map_or(first, |last| last + 1);
        self.stretch = (first, end);
        if self.attempt >= u32::MAX / 2 - 1 {
            self.state.fill(0);
            self.heads.fill((0, NONE));
            self.last.fill(LastWrite::default());
            self.holders.iter_mut().for_each(|(attempt, _)| *attempt = 0);
            self.attempt = 0;
        }
        self.attempt += 1;
        self.work += u64::from(end - first);
        self.links.clear();
        for (i, &(_, target)) in edges.iter().enumerate() {
            let (attempt, head) = &mut self.heads[target as usize];
            self.links.push(if *attempt == self.attempt { *head } else { NONE });
            (*attempt, *head) = (self.attempt, i as u32);
        }
        for (thread, (own, &have)) in graph.own.iter().zip(frontier).enumerate() {
            let before = own.partition_point(|&node| node < first) as u32;
            for section in graph.sections.held(thread, before.min(have)) {
                self.holders_of(graph.sections.get(section).lock).push(section);
            }
        }
        for node in first..end {
            if graph.is_within(frontier, node) && !self.has_come(node) {
                self.pull(graph, frontier, edges, node)?;
            }
        }
        self.check_behind(graph, frontier)
    }

    fn has_come(&self, node: u32) -> bool {
        self.state[node as usize] == self.attempt * 2 + 1
    }

    fn holders_of(&mut self, lock: u32) -> &mut Vec<u32> {
        let (attempt, holders) = &mut self.holders[lock as usize];
        if *attempt != self.attempt {
            *attempt = self.attempt;
            holders.clear();
        }
        holders
    }

    /// Lets a node come, after everything that it waits for.
    fn pull(
        &mut self,
        graph: &Graph,
        frontier: &[u32],
        edges: &[(u32, u32)],
        node: u32,
    ) -> Result<(), Trouble> {
        self.stack.clear();
        self.stack.push((node, 0));
        self.state[node as usize] = self.attempt * 2;
        while let Some(&mut (node, ref mut next)) = self.stack.last_mut() {
            let place = *next;
            // Otherwise the step that it waits for decides what comes next.
            if place < WAITS {
                *next += 1;
            }
            let it = graph.node(node);
            let waits_for = match place {
                PREVIOUS => it.previous,
                NEEDS => it.needs,
                SAW => it.saw,
                _ => match self.wait_or_edge(graph, frontier, edges, node, place) {
                    Some((waits_for, place)) => {
                        if let Some((_, next)) = self.stack.last_mut() {
                            *next = place;
                        }
                        waits_for
                    }
                    None => {
                        self.stack.pop();
                        self.come(graph, node)?;
                        continue;
                    }
                },
            };
            if waits_for == NONE || waits_for < self.stretch.0 || self.has_come(waits_for) {
                continue;
            }
            if self.state[waits_for as usize] == self.attempt * 2 {
                // What waits for itself is the end of the stack.
                let start = self.stack.iter().position(|&(node, _)| node == waits_for);
                self.stack.drain(..start.unwrap_or(0));
                return Err(Trouble::Cycle);
            }
            self.state[waits_for as usize] = self.attempt * 2;
            self.stack.push((waits_for, 0));
        }
        Ok(())
    }

    /// What else a node waits for, and the place after it: the beginnings of waits that a
    /// notification must find waiting, then the sources of edges.
    fn wait_or_edge(
        &self,
        graph: &Graph,
        frontier: &[u32],
        edges: &[(u32, u32)],
        node: u32,
        place: u32,
    ) -> Option<(u32, u32)> {
        if place < EDGES {
            let waits = match graph.node(node).kind {
                Kind::Mark | Kind::Release => graph.ended.get(&node).map(Vec::as_slice),
                _ => None,
            };
            if let Some(&(begin, end)) = waits.and_then(|w| w.get((place - WAITS) as usize)) {
                let begin = if graph.is_within(frontier, end) { begin } else { NONE };
                return Some((begin, place + 1));
            }
        }
        // After the waits, the place determines the next edge.
        let edge = match place {
            place if place < EDGES => {
                let (attempt, head) = self.heads[node as usize];
                if attempt == self.attempt { head } else { NONE }
            }
            NONE => NONE,
            place => place - EDGES,
        };
        let &(source, _) = edges.get(edge as usize)?;
        let next = self.links[edge as usize];
        Some((source, if next == NONE { NONE } else { EDGES + next }))
    }

    fn come(&mut self, graph: &Graph, node: u32) -> Result<(), Trouble> {
        self.state[node as usize] = self.attempt * 2 + 1;
        self.order.push(node);
        let it = graph.node(node);
        match it.kind {
            Kind::Read => self.read(graph, node),
            Kind::Write => {
                self.write(it.object, node);
                Ok(())
            }
            Kind::Rmw => {
                self.read(graph, node)?;
                self.write(it.object, node);
                Ok(())
            }
            Kind::Acquire => {
                let section = graph.sections.get(it.object);
                let holders = self.holders_of(section.lock);
                for &held in holders.iter() {
                    if graph.sections.get(held).excludes(section) {
                        return Err(Trouble::Overlap { held, wanted: it.object });
                    }
                }
                holders.push(it.object);
                Ok(())
            }
            Kind::Release => {
                let holders = self.holders_of(graph.sections.get(it.object).lock);
                holders.retain(|&held| held != it.object);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read(&mut self, graph: &Graph, node: u32) -> Result<(), Trouble> {
        let it = graph.node(node);
        let last = &self.last[it.object as usize];
        // Without a write in the stretch it sees what it saw, which must be from before it.
        if last.attempt == self.attempt && last.made != it.saw {
            return Err(Trouble::Interference { read: node, write: last.made });
        }
        Ok(())
    }

    fn write(&mut self, variable: u32, node: u32) {
        let last = &mut self.last[variable as usize];
        if last.attempt != self.attempt {
            *last = LastWrite { attempt: self.attempt, made: node, observed: node };
            self.written.push(variable);
        } else {
            last.made = node;
            last.observed = last.observed.max(node);
        }
    }

    /// After the stretch, reads may find a variable written by another thread.
    fn check_behind(&self, graph: &Graph, frontier: &[u32]) -> Result<(), Trouble> {
        for &variable in &self.written {
            let last = &self.last[variable as usize];
            if last.made == last.observed {
                continue;
            }
            let all = &graph.variables[variable as usize].all;
            let behind = all.partition_point(|&node| node < self.stretch.1);
            for &node in all[behind..].iter().filter(|&&node| graph.is_within(frontier, node)) {
                let it = graph.node(node);
                if it.kind != Kind::Write && it.saw != last.made {
                    return Err(Trouble::Interference { read: node, write: last.made });
                }
                if it.kind != Kind::Read {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The edges of the cycle that the last attempt ran into, by their places: each node waits for
    /// the next one, and the last one for the first.
    pub(super) fn cycle<'a>(&'a self, edges: &'a [(u32, u32)]) -> impl Iterator<Item = usize> + 'a {
        let next = self.stack.iter().skip(1).chain(self.stack.first());
        let waits =
            self.stack.iter().zip(next).map(|(&(waiting, _), &(waited, _))| (waited, waiting));
        waits.filter_map(|edge| edges.iter().position(|&other| other == edge))
    }

    /// The last write of a variable in the order that was made, if the stretch has one.
    pub(super) fn last_write(&self, variable: u32) -> Option<u32> {
        let last = &self.last[variable as usize];
        (self.stretch.1 > 0 && last.attempt == self.attempt).then_some(last.made)
    }
}
