//! Which steps are enough: a persistent set. Whatever the other threads do before one of its steps is taken does not conflict
//! with any of them, so each local state and each deadlock is still found.
//!
//! That holds for the futures that are known; the search is repeated until it learns nothing.

use crate::facts::{Act, Facts, NodeId, Tid};
use crate::futures::{ARRIVE, Aspects, FORK, Futures, NOTIFY, ONCE_END, POST, RELEASE, footprint};
use crate::model::{Move, State, Status};
use crate::program::Patience;

/// Buffers of [`Reducer::keep`].
pub(crate) struct Reducer {
    pub(crate) futures: Futures,
    watched: Box<dyn Fn(NodeId) -> bool + Send>,
    live: Vec<(Tid, NodeId, bool)>,
    members: Vec<bool>,
    best: Vec<bool>,
    work: Vec<usize>,
    touched: Vec<(u32, Aspects)>,
}

impl Reducer {
    pub(crate) fn new(facts: &Facts, watched: Box<dyn Fn(NodeId) -> bool + Send>) -> Reducer {
        Reducer {
            futures: Futures::new(facts, &watched),
            watched,
            live: Vec::new(),
            members: Vec::new(),
            best: Vec::new(),
            work: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Keeps only the steps of a small persistent set.
    pub(crate) fn keep(&mut self, facts: &Facts, state: &State, moves: &mut Vec<Move>) {
        self.live.clear();
        for &thread in &facts.order {
            if let Status::At(node) = state.status(facts, thread) {
                let can = moves.iter().any(|step| Tid::from(step.thread) == thread);
                self.live.push((thread, node, can));
            }
        }
        let enabled = self.live.iter().filter(|thread| thread.2).count();
        if enabled < 2 {
            return;
        }
        let mut least = enabled;
        for seed in 0..self.live.len() {
            if !self.live[seed].2 {
                continue;
            }
            let size = self.close(facts, state, seed, least);
            if size < least {
                least = size;
                std::mem::swap(&mut self.members, &mut self.best);
            }
            if least == 1 {
                break;
            }
        }
        if least < enabled {
            let (live, best) = (&self.live, &self.best);
            moves.retain(|step| {
                let is_it = |thread: &(Tid, NodeId, bool)| thread.0 == Tid::from(step.thread);
                live.iter().position(is_it).is_some_and(|at| best[at])
            });
        }
    }

    /// The number of enabled threads in the smallest persistent set with this thread; at most `limit` are counted.
    fn close(&mut self, facts: &Facts, state: &State, seed: usize, limit: usize) -> usize {
        self.members.clear();
        self.members.resize(self.live.len(), false);
        self.members[seed] = true;
        self.work.clear();
        self.work.push(seed);
        let mut size = 0;
        while let Some(member) = self.work.pop() {
            let (thread, node, can) = self.live[member];
            if can {
                size += 1;
                if size >= limit {
                    return size;
                }
                footprint(facts, node, (self.watched)(node), &mut self.touched);
            }
            let needs = if can { Needs::Nobody } else { unblocked_by(facts, state, thread) };
            for other in 0..self.live.len() {
                let (tid, at, _) = self.live[other];
                let joins = !self.members[other]
                    && match needs {
                        Needs::Nobody if can => self.futures.conflicts(at, &self.touched),
                        Needs::Nobody => false,
                        Needs::Thread(owner) => tid == owner,
                        Needs::Who(slot, aspects) => self.futures.may(at, slot, aspects),
                    };
                if joins {
                    self.members[other] = true;
                    self.work.push(other);
                }
            }
        }
        size
    }
}

/// Who must move before a blocked thread can.
enum Needs {
    Nobody,
    Thread(Tid),
    /// Threads that may do this with a slot.
    Who(u32, Aspects),
}

fn unblocked_by(facts: &Facts, state: &State, thread: Tid) -> Needs {
    let Some((_, act)) = state.act(facts, thread) else { return Needs::Nobody };
    let lock_of = |lock: u32| match state.owner(lock) {
        Some(owner) => Needs::Thread(owner),
        None => Needs::Who(lock, RELEASE),
    };
    match act {
        Act::Lock { lock, .. } => lock_of(lock),
        Act::WaitEnd { lock, timed, .. } if timed || state.is_awake(facts, thread) => lock_of(lock),
        Act::WaitEnd { condition, .. } => Needs::Who(condition, NOTIFY),
        Act::SemWait(at, Patience::Wait) => Needs::Who(at, POST),
        Act::Pass { arrived } => Needs::Who(arrived, ARRIVE),
        Act::OnceBegin(at) => Needs::Who(at, ONCE_END),
        Act::Join(other) => match state.status(facts, other) {
            Status::Unborn => Needs::Who(facts.threads[other as usize].node, FORK),
            _ => Needs::Thread(other),
        },
        _ => Needs::Nobody,
    }
}
