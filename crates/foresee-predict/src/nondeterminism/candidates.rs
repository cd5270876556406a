//! Which writes could replace the one that a read saw: everything that clocks decide before an
//! order is tried.
//!
//! A candidate is a read, a *challenger* and one of three forms: with `w` the write that was seen,
//! `c` the challenger and `r` the read, the order `w c r`, the order `c r w`, or `c r` while `w` has
//! not happened. Since a witness ends with the read, the last two are one question. Most
//! challengers drop out in stretches: those that need the read, and those whose own thread had
//! written again before it did something that the read needs.

use serde::{Deserialize, Serialize};

use super::Effort;
use super::decide::{Decision, Solver, Verdict};
use super::graph::{Deadline, Graph, Kind, NONE, join};

/// Whether the write that was seen is part of the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// It comes before the challenger.
    Overwritten,
    /// It comes after the read, or not at all.
    Missing,
}

/// What may see another write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Target {
    /// The read at a node.
    Read(u32),
    /// A read after the end.
    Final(u32),
}

/// The number of candidates, by result. Each pair of a read and a challenger counts for three, one
/// of each form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// All of them.
    pub candidates: u64,
    /// Rejected because clocks alone rule them out, without any graph.
    pub ordered: u64,
    /// Rejected because every edge that was added was forced, and they contradict each other.
    pub cyclic: u64,
    /// Rejected after all choices had been tried.
    pub exhausted: u64,
    /// Feasible without any choice.
    pub feasible: u64,
    /// Feasible after choices.
    pub chosen: u64,
    /// Given up.
    pub undecided: u64,
    /// Left out because the challenger wrote the value that was seen.
    pub same_value: u64,
    /// Questions for which an order was tried: two of the three forms are one question.
    pub questions: u64,
    /// Orders that were tried.
    pub graphs: u64,
    /// Those that were tried where there was a choice.
    pub choice_graphs: u64,
}

impl Counts {
    fn note(&mut self, form: Form, decision: Decision) {
        let weight = match form {
            Form::Overwritten => 1,
            Form::Missing => 2,
        };
        let place = match (decision.verdict, decision.had_choice) {
            (Verdict::Feasible, false) => &mut self.feasible,
            (Verdict::Feasible, true) => &mut self.chosen,
            (Verdict::Infeasible, false) => &mut self.cyclic,
            (Verdict::Infeasible, true) => &mut self.exhausted,
            (Verdict::Undecided, _) => &mut self.undecided,
        };
        *place += weight;
        self.questions += 1;
        self.graphs += u64::from(decision.graphs);
        if decision.had_choice {
            self.choice_graphs += u64::from(decision.graphs);
        }
    }

    /// There is no time for a read: it counts as one candidate that was given up.
    pub(super) fn give_up(&mut self) {
        self.candidates += 1;
        self.undecided += 1;
    }

    /// Adds what another search has counted.
    pub fn add(&mut self, other: &Counts) {
        self.candidates += other.candidates;
        self.ordered += other.ordered;
        self.cyclic += other.cyclic;
        self.exhausted += other.exhausted;
        self.feasible += other.feasible;
        self.chosen += other.chosen;
        self.undecided += other.undecided;
        self.same_value += other.same_value;
        self.questions += other.questions;
        self.graphs += other.graphs;
        self.choice_graphs += other.choice_graphs;
    }
}

/// Goes through the candidates of one read after the other.
#[derive(Debug)]
pub(super) struct Candidates<'g> {
    graph: &'g Graph,
    solver: Solver<'g>,
    /// What the read needs, whatever it sees.
    base: Vec<u32>,
    /// How many nodes of each thread can come before the read.
    most: Vec<u32>,
    pub(super) counts: Counts,
    /// When to give everything up.
    deadline: Deadline,
}

impl<'g> Candidates<'g> {
    pub(super) fn new(graph: &'g Graph, effort: Effort, deadline: Deadline) -> Self {
        Candidates {
            graph,
            solver: Solver::new(graph, effort.graphs, effort.work),
            base: vec![0; graph.threads],
            most: vec![0; graph.threads],
            counts: Counts::default(),
            deadline,
        }
    }

    /// Decides all candidates of a target whose challenger is `wanted`, and reports each that
    /// clocks do not rule out. [`NONE`] stands for the initial value.
    pub(super) fn decide(
        &mut self,
        target: Target,
        wanted: impl Fn(u32) -> bool,
        mut tell: impl FnMut(u32, Form, Verdict),
    ) {
        self.each(target, wanted, |_, challenger, form, verdict| tell(challenger, form, verdict));
    }

    /// Decides those of one form, and hands over the search where it has found a witness.
    pub(super) fn decide_one(
        &mut self,
        target: Target,
        wanted: impl Fn(u32) -> bool,
        wanted_form: Form,
        mut found: impl FnMut(&Solver<'g>),
    ) {
        self.each(target, wanted, |solver, _, form, verdict| {
            if form == wanted_form && verdict == Verdict::Feasible {
                found(solver);
            }
        });
    }

    fn each(
        &mut self,
        target: Target,
        wanted: impl Fn(u32) -> bool,
        mut tell: impl FnMut(&Solver<'g>, u32, Form, Verdict),
    ) {
        let graph = self.graph;
        let (variable, saw) = self.begin(target);
        let accesses = &graph.variables[variable as usize];
        let own_write = match target {
            Target::Read(read) => usize::from(graph.node(read).kind == Kind::Rmw),
            Target::Final(_) => 0,
        };
        let writes: usize = accesses.writes.iter().map(|(_, writes)| writes.len()).sum();
        // The initial value is a challenger unless it was seen.
        self.counts.candidates += 3 * (writes - own_write) as u64;
        self.counts.ordered += 3 * (writes - own_write) as u64;
        if saw != NONE && matches!(target, Target::Read(_)) {
            if wanted(NONE) {
                self.limit_initial(variable);
                self.propose(variable, NONE, saw, Form::Missing, &mut tell);
            } else {
                self.leave_out();
            }
        }
        for (thread, writes) in &accesses.writes {
            let thread = *thread as usize;
            let (start, end) = self.concurrent(target, thread, writes);
            for i in start..end {
                let challenger = writes[i];
                if challenger == saw {
                    continue;
                }
                if !wanted(challenger) {
                    self.leave_out();
                    continue;
                }
                self.limit_to(variable, challenger, writes.get(i + 1).copied());
                if saw != NONE && matches!(target, Target::Read(_)) {
                    self.propose(variable, challenger, saw, Form::Missing, &mut tell);
                }
                self.propose(variable, challenger, saw, Form::Overwritten, &mut tell);
            }
        }
    }

    /// A challenger is not looked at.
    fn leave_out(&mut self) {
        self.counts.same_value += 3;
        self.counts.ordered -= 3;
    }

    /// What the target needs and how much it allows; its variable and what it saw.
    fn begin(&mut self, target: Target) -> (u32, u32) {
        let graph = self.graph;
        for (most, own) in self.most.iter_mut().zip(&graph.own) {
            *most = own.len() as u32;
        }
        match target {
            Target::Read(read) => {
                let node = graph.node(read);
                match node.previous {
                    NONE => self.base.fill(0),
                    previous => self.base.copy_from_slice(graph.before(previous)),
                }
                self.most[node.thread as usize] = node.clock - 1;
                (node.object, node.saw)
            }
            Target::Final(variable) => {
                self.base.copy_from_slice(&self.most);
                let writes = &graph.variables[variable as usize].writes;
                let last = writes.iter().filter_map(|(_, writes)| writes.last()).max();
                (variable, last.copied().unwrap_or(NONE))
            }
        }
    }

    /// The writes of a thread that neither need the read nor have surely been overwritten.
    fn concurrent(&self, target: Target, thread: usize, writes: &[u32]) -> (usize, usize) {
        let graph = self.graph;
        let done = writes.partition_point(|&w| graph.node(w).clock <= self.base[thread]);
        let end = match target {
            Target::Read(read) => {
                let node = graph.node(read);
                writes.partition_point(|&w| graph.before(w)[node.thread as usize] < node.clock)
            }
            Target::Final(_) => writes.len(),
        };
        (done.saturating_sub(1), end)
    }

    /// No write of the variable may happen.
    fn limit_initial(&mut self, variable: u32) {
        let graph = self.graph;
        self.solver.limit.copy_from_slice(&self.most);
        for (thread, writes) in &graph.variables[variable as usize].writes {
            let limit = &mut self.solver.limit[*thread as usize];
            *limit = (*limit).min(graph.node(writes[0]).clock - 1);
        }
    }

    /// No write that needs the challenger may happen.
    fn limit_to(&mut self, variable: u32, challenger: u32, next: Option<u32>) {
        let graph = self.graph;
        self.solver.limit.copy_from_slice(&self.most);
        let node = graph.node(challenger);
        for (thread, writes) in &graph.variables[variable as usize].writes {
            let first = match *thread == node.thread {
                true => next,
                false => {
                    let knows = |&w: &u32| graph.before(w)[node.thread as usize] >= node.clock;
                    writes.get(writes.partition_point(|w| !knows(w))).copied()
                }
            };
            if let Some(first) = first {
                let limit = &mut self.solver.limit[*thread as usize];
                *limit = (*limit).min(graph.node(first).clock - 1);
            }
        }
    }

    fn propose(
        &mut self,
        variable: u32,
        challenger: u32,
        saw: u32,
        form: Form,
        tell: &mut impl FnMut(&Solver<'g>, u32, Form, Verdict),
    ) {
        let graph = self.graph;
        let solver = &mut self.solver;
        solver.frontier.copy_from_slice(&self.base);
        if challenger != NONE {
            join(&mut solver.frontier, graph.before(challenger));
        }
        // Missing comes first, so what it takes from the limit is given back.
        let mut given_back = None;
        if saw != NONE {
            match form {
                Form::Overwritten => join(&mut solver.frontier, graph.before(saw)),
                Form::Missing => {
                    let node = graph.node(saw);
                    let limit = &mut solver.limit[node.thread as usize];
                    given_back = Some((node.thread as usize, *limit));
                    *limit = (*limit).min(node.clock - 1);
                }
            }
        }
        if solver.is_within_limit() {
            let decision = match self.deadline.is_over() {
                true => Decision { verdict: Verdict::Undecided, graphs: 0, had_choice: false },
                false => solver.solve(variable, challenger),
            };
            self.counts.ordered -= match form {
                Form::Overwritten => 1,
                Form::Missing => 2,
            };
            self.counts.note(form, decision);
            tell(&self.solver, challenger, form, decision.verdict);
        }
        if let Some((thread, limit)) = given_back {
            self.solver.limit[thread] = limit;
        }
    }
}
