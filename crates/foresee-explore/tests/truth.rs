//! The truth about a tiny program, from every schedule.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use foresee_explore::program::{Place, ThreadName};

use super::tiny::{Code, Local, Machine, REGS, default};

/// What can happen.
#[derive(Default, Debug)]
pub(crate) struct Truth {
    /// Every local state.
    pub(crate) locals: HashSet<Local>,
    /// Places of failures.
    pub(crate) failures: BTreeSet<Place>,
    /// Deadlocks: who stands where.
    pub(crate) deadlocks: BTreeSet<Vec<(ThreadName, Place)>>,
    /// The registers with which threads end.
    pub(crate) ends: BTreeSet<(ThreadName, [u64; REGS])>,
    pub(crate) states: usize,
}

/// Everything, with at most `most` detours; nothing if there are too many states.
pub(crate) fn truth(code: &Code, detours: Option<u32>, most_states: usize) -> Option<Truth> {
    let mut truth = Truth::default();
    let mut seen: HashMap<(Machine, usize), u32> = HashMap::new();
    let mut queue: VecDeque<(Machine, usize, u32)> = VecDeque::new();
    let start = Machine::new(code, 0);
    queue.push_back((start, usize::MAX, 0));
    while let Some((machine, running, cost)) = queue.pop_front() {
        // The order of waiters is not a part of what can happen, so it must not be a part of the default step either: the
        // first of several signals is that for the thread that comes first.
        let key = (machine.clone(), if detours.is_some() { running } else { 0 });
        if seen.get(&key).is_some_and(|&known| known <= cost) {
            continue;
        }
        seen.insert(key, cost);
        if seen.len() > most_states {
            return None;
        }
        truth.locals.extend(machine.locals());
        truth.ends.extend(machine.ended());
        for at in machine.order() {
            if machine.fails(code, at) {
                truth.failures.insert(machine.pc_place(at));
            }
        }
        let mut moves = machine.moves(code);
        // Choices of signals in the order of the woken threads.
        let rank: HashMap<usize, usize> =
            machine.order().into_iter().enumerate().map(|(rank, at)| (at, rank)).collect();
        moves.sort_by_key(|&(at, choice)| {
            (rank[&at], machine.wakes(code, at, choice).map(|woken| rank[&woken]))
        });
        if moves.is_empty() {
            let live: Vec<usize> =
                machine.order().into_iter().filter(|&at| machine.is_live(at)).collect();
            if !live.is_empty() && !live.iter().any(|&at| machine.has_failed(code, at)) {
                let mut stand: Vec<_> =
                    live.iter().map(|&at| (machine.name(at), machine.pc_place(at))).collect();
                stand.sort();
                truth.deadlocks.insert(stand);
            }
        }
        let free = default(&moves, running);
        for step in moves {
            let cost = cost + u32::from(detours.is_some() && Some(step) != free);
            if detours.is_some_and(|most| cost > most) {
                continue;
            }
            let mut next = machine.clone();
            next.step(code, step.0, step.1);
            if cost == 0 {
                queue.push_front((next, step.0, cost))
            } else {
                queue.push_back((next, step.0, cost))
            }
        }
    }
    truth.states = seen.len();
    Some(truth)
}
