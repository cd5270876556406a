//! Is there a witness? The search for the events it needs and an order of them.
//!
//! A witness is a set of nodes, a prefix of each thread, closed under what nodes need, and an order
//! of it. The set starts as small as it can be and grows only where a section has to be ended. The
//! order starts as the observed one; edges are added for what the witness demands and for every
//! trouble that shows. Where a trouble leaves one way out, it is taken (phase one); where it leaves
//! two, the one nearer to the observed order is tried first and the other one remembered (phase
//! two). No way out and nothing remembered: there is no witness. The number of orders tried is
//! bounded, and "undecided" is an answer of its own.
//!
//! Every edge knows the choices it rests on. A contradiction rests on those of the edges in it, and
//! the search goes back to the latest of them: choices in between have nothing to do with it.

use super::graph::{Graph, NONE, join};
use super::linearise::{Lineariser, Trouble};

/// A set of choices, by their depth. Those deeper than it has bits share the last one.
type Choices = u128;

fn choice_bit(depth: usize) -> Choices {
    1 << depth.min(127)
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is a witness.
    Feasible,
    /// There is no witness.
    Infeasible,
    /// The search was given up.
    Undecided,
}

/// How an answer was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    /// How many orders were tried, including the observed one.
    pub(super) graphs: u32,
    /// Whether there was a choice between two ways out.
    pub(super) had_choice: bool,
}

/// A way out of a trouble: a section ends within the witness, an edge is kept.
#[derive(Clone, Copy, Debug)]
struct Way {
    close: u32,
    edge: Option<(u32, u32)>,
}

/// A way that was not taken, and how things stood.
#[derive(Debug)]
struct Choice {
    other: Way,
    edges: usize,
    grown_by: Choices,
}

/// What stands in the way of an order.
enum Step {
    Stands,
    /// The choices that contradict each other.
    Dead(Choices),
    Ways(Way, Option<Way>),
}

/// Decides questions about one trace, one after the other, in memory that is used again.
#[derive(Debug)]
pub(super) struct Solver<'g> {
    graph: &'g Graph,
    /// How many nodes of each thread the witness has, and how many it may have.
    pub(super) frontier: Vec<u32>,
    pub(super) limit: Vec<u32>,
    edges: Vec<(u32, u32)>,
    /// For each edge the choices it rests on.
    reasons: Vec<Choices>,
    /// The choices by which the frontier has grown.
    grown_by: Choices,
    choices: Vec<Choice>,
    /// The frontiers of the choices, one behind the other.
    saved: Vec<u32>,
    visited: Vec<bool>,
    /// How many nodes of each thread are before one.
    known: Vec<u32>,
    /// Nodes that were reached, and the choices on the way.
    pending: Vec<(u32, Choices)>,
    lineariser: Lineariser,
    most_graphs: u32,
    most_work: u64,
}

impl<'g> Solver<'g> {
    pub(super) fn new(graph: &'g Graph, most_graphs: u32, most_work: u64) -> Solver<'g> {
        Solver {
            graph,
            frontier: vec![0; graph.threads],
            limit: vec![0; graph.threads],
            edges: Vec::new(),
            reasons: Vec::new(),
            grown_by: 0,
            choices: Vec::new(),
            saved: Vec::new(),
            visited: Vec::new(),
            known: Vec::new(),
            pending: Vec::new(),
            lineariser: Lineariser::new(graph),
            most_graphs,
            most_work,
        }
    }

    /// Whether the frontier keeps to its limit.
    #[inline]
    pub(super) fn is_within_limit(&self) -> bool {
        self.frontier.iter().zip(&self.limit).all(|(have, most)| have <= most)
    }

    /// Whether an order of the nodes within the frontier, or of more of them within the limit, has
    /// `challenger` as its last write of `variable`; [`NONE`] stands for the initial value, of which
    /// the limit keeps all writes away.
    pub(super) fn solve(&mut self, variable: u32, challenger: u32) -> Decision {
        self.edges.clear();
        self.reasons.clear();
        self.grown_by = 0;
        self.choices.clear();
        self.saved.clear();
        let work = self.lineariser.work;
        let (mut graphs, mut had_choice) = (0, false);
        let decision = |verdict, graphs, had_choice| Decision { verdict, graphs, had_choice };
        loop {
            if graphs >= self.most_graphs || self.lineariser.work - work > self.most_work {
                return decision(Verdict::Undecided, graphs, had_choice);
            }
            graphs += 1;
            let contradiction = match self.step(variable, challenger) {
                Step::Stands => return decision(Verdict::Feasible, graphs, had_choice),
                Step::Dead(choices) => Some(choices),
                Step::Ways(first, second) => {
                    // That there is trouble rests on the nodes there are, not on their order.
                    let because = self.grown_by;
                    let closed = self.closed_by(&first);
                    match (closed, second.map(|way| (way, self.closed_by(&way)))) {
                        (None, None) => {
                            self.take(first, because);
                            None
                        }
                        (None, Some((_, Some(other)))) => {
                            self.take(first, because | other);
                            None
                        }
                        (None, Some((other, None))) => {
                            had_choice = true;
                            self.saved.extend_from_slice(&self.frontier);
                            let (edges, grown_by) = (self.edges.len(), self.grown_by);
                            let bit = choice_bit(self.choices.len());
                            self.choices.push(Choice { other, edges, grown_by });
                            self.take(first, because | bit);
                            None
                        }
                        (Some(first), Some((other, None))) => {
                            self.take(other, because | first);
                            None
                        }
                        (Some(first), None) => Some(because | first),
                        (Some(first), Some((_, Some(other)))) => Some(because | first | other),
                    }
                }
            };
            if contradiction.is_some_and(|choices| !self.go_back(choices)) {
                return decision(Verdict::Infeasible, graphs, had_choice);
            }
        }
    }

    /// The order of the witness that [`Solver::solve`] has found.
    pub(super) fn order(&self) -> Vec<u32> {
        let (first, end) = self.lineariser.stretch;
        let nodes = self.graph.nodes.len() as u32;
        let within = |&node: &u32| self.graph.is_within(&self.frontier, node);
        let mut order: Vec<u32> = (0..first).filter(within).collect();
        order.extend_from_slice(&self.lineariser.order);
        order.extend((end..nodes).filter(within));
        order
    }

    fn step(&mut self, variable: u32, challenger: u32) -> Step {
        if let Some((first, second)) = self.unfinished_section() {
            return Step::Ways(first, second);
        }
        if challenger != NONE
            && let Err(choices) = self.put_last(variable, challenger)
        {
            return Step::Dead(choices);
        }
        let graph = self.graph;
        match self.lineariser.attempt(graph, &self.frontier, &self.edges) {
            Ok(()) => match self.lineariser.last_write(variable) {
                // The challenger has lost its place by what other edges moved.
                Some(write) if challenger != NONE && self.comes_too_late(write, challenger) => {
                    Step::Ways(Way { close: NONE, edge: Some((write, challenger)) }, None)
                }
                _ => Step::Stands,
            },
            Err(Trouble::Cycle) => {
                // Which waits end rests on the frontier.
                let edges = self.lineariser.cycle(&self.edges);
                Step::Dead(edges.fold(self.grown_by, |all, edge| all | self.reasons[edge]))
            }
            Err(Trouble::Interference { read, write }) => {
                let saw = graph.node(read).saw;
                let before = (saw != NONE).then_some(Way { close: NONE, edge: Some((write, saw)) });
                let after = Way { close: NONE, edge: Some((read, write)) };
                match before {
                    Some(before) if write < saw => Step::Ways(before, Some(after)),
                    other => Step::Ways(after, other),
                }
            }
            Err(Trouble::Overlap { held, wanted }) => {
                let (early, late) = (held.min(wanted), held.max(wanted));
                Step::Ways(self.one_before(early, late), Some(self.one_before(late, early)))
            }
        }
    }

    /// Whether the last write in the stretch stays the last one, and is not the challenger.
    fn comes_too_late(&self, write: u32, challenger: u32) -> bool {
        write != challenger && challenger < self.lineariser.stretch.1
    }

    /// Every other write within the frontier comes before the challenger; or the choices that
    /// contradict it.
    fn put_last(&mut self, variable: u32, challenger: u32) -> Result<(), Choices> {
        let graph = self.graph;
        let thread = graph.node(challenger).thread;
        for (other, writes) in &graph.variables[variable as usize].writes {
            if *other == thread {
                continue;
            }
            let last = graph.last_within(writes, self.frontier[*other as usize]);
            let Some(last) = last.filter(|&last| last > challenger) else { continue };
            let edge = (last, challenger);
            if !self.edges.contains(&edge) {
                if let Some(choices) = self.reaches(challenger, last) {
                    return Err(choices | self.grown_by);
                }
                self.edges.push(edge);
                self.reasons.push(self.grown_by);
            }
        }
        Ok(())
    }

    /// A section that is open at the end of the witness, although a later one excludes it.
    fn unfinished_section(&self) -> Option<(Way, Option<Way>)> {
        let graph = self.graph;
        for thread in 0..graph.threads {
            for open in graph.sections.held(thread, self.frontier[thread]) {
                let section = graph.sections.get(open);
                for (user, theirs) in &graph.sections.by_lock[section.lock as usize] {
                    let bound = self.frontier[*user as usize];
                    let end = theirs.partition_point(|&s| {
                        graph.node(graph.sections.get(s).acquire).clock <= bound
                    });
                    let mut excluded = theirs[..end].iter().rev();
                    let other = excluded.find(|&&s| graph.sections.get(s).excludes(section));
                    let Some(&other) = other.filter(|&&other| other > open) else { continue };
                    let before = self.one_before(other, open);
                    if before.edge.is_none_or(|edge| !self.edges.contains(&edge)) {
                        return Some((Way { close: open, edge: None }, Some(before)));
                    }
                }
            }
        }
        None
    }

    /// One section ends before another one begins.
    fn one_before(&self, first: u32, second: u32) -> Way {
        let sections = &self.graph.sections;
        let (release, acquire) = (sections.get(first).release, sections.get(second).acquire);
        let is_open = release == NONE || !self.graph.is_within(&self.frontier, release);
        Way { close: if is_open { first } else { NONE }, edge: Some((release, acquire)) }
    }

    /// The choices that a way contradicts at once, if it does; none of them if it is closed anyway.
    fn closed_by(&mut self, way: &Way) -> Option<Choices> {
        if way.close != NONE {
            let release = self.graph.sections.get(way.close).release;
            let exceeds = |release| {
                let mut needed = self.graph.before(release).iter().zip(&self.limit);
                needed.any(|(need, most)| need > most)
            };
            if release == NONE || exceeds(release) {
                return Some(0);
            }
        }
        way.edge.and_then(|(source, target)| self.reaches(target, source))
    }

    /// Whether needs and edges lead from one node to another, and if so by which choices.
    fn reaches(&mut self, from: u32, to: u32) -> Option<Choices> {
        if self.graph.is_needed(from, to) {
            return Some(0);
        }
        if !self.is_before(from, to) {
            return None;
        }
        self.visited.clear();
        self.visited.resize(self.edges.len(), false);
        self.pending.clear();
        let (mut at, mut choices) = (from, 0);
        loop {
            for (i, &(source, target)) in self.edges.iter().enumerate() {
                if !self.visited[i] && self.graph.is_needed(at, source) {
                    self.visited[i] = true;
                    let choices = choices | self.reasons[i];
                    if self.graph.is_needed(target, to) {
                        return Some(choices);
                    }
                    self.pending.push((target, choices));
                }
            }
            (at, choices) = self.pending.pop()?;
        }
    }

    /// The same without the choices, which most of the time is the end of it: everything before the
    /// second node, edge by edge.
    fn is_before(&mut self, from: u32, to: u32) -> bool {
        let graph = self.graph;
        self.known.clear();
        self.known.extend_from_slice(graph.before(to));
        self.visited.clear();
        self.visited.resize(self.edges.len(), false);
        let mut has_grown = true;
        while has_grown {
            has_grown = false;
            for (visited, &(source, target)) in self.visited.iter_mut().zip(&self.edges) {
                if !*visited && graph.is_within(&self.known, target) {
                    *visited = true;
                    has_grown = true;
                    join(&mut self.known, graph.before(source));
                }
            }
        }
        graph.is_within(&self.known, from)
    }

    fn take(&mut self, way: Way, because: Choices) {
        if way.close != NONE {
            let release = self.graph.sections.get(way.close).release;
            // Both are within the limit, and so is what they have together.
            join(&mut self.frontier, self.graph.before(release));
            self.grown_by |= because;
        }
        if let Some(edge) = way.edge {
            self.edges.push(edge);
            self.reasons.push(because);
        }
    }

    /// Goes back to the latest of the choices that contradict each other, and takes the other way,
    /// which now rests on the rest of them.
    fn go_back(&mut self, choices: Choices) -> bool {
        while let Some(choice) = self.choices.pop() {
            let from = self.saved.len() - self.frontier.len();
            self.frontier.copy_from_slice(&self.saved[from..]);
            self.saved.truncate(from);
            let bit = choice_bit(self.choices.len());
            if choices & bit == 0 {
                continue;
            }
            self.edges.truncate(choice.edges);
            self.reasons.truncate(choice.edges);
            self.grown_by = choice.grown_by;
            // The last bit stands for many choices, some of which may be left.
            let is_last = self.choices.len() >= 127;
            let rest = if is_last { choices } else { choices & !bit };
            self.take(choice.other, rest | choice.grown_by);
            return true;
        }
        false
    }
}
