//! Properties that step along the search: their state is a part of the key of a state.

use crate::facts::{Act, Answer, Facts, NodeId};
use crate::model::State;
use crate::program::{Operation, Place, ThreadName, Told, Value};

/// A step as a property sees it.
pub struct Seen<'a> {
    /// The thread.
    pub thread: &'a ThreadName,
    /// What it does.
    pub operation: Operation,
    /// Where.
    pub place: Place,
    /// What it is told.
    pub told: Told,
    /// What a read-modify-write leaves.
    pub left: Option<Value>,
    /// For locks: whether the thread did not have it before, or has it no more.
    pub is_outermost: bool,
}

/// Properties, as one machine with numbered states. Two states with the same number must have the same future.
pub trait Monitor: Send {
    /// The state before the first step; not zero. `violated` gets the properties that do not even hold there.
    fn start(&mut self, violated: &mut Vec<usize>) -> u32;

    /// The state after a step. `violated` gets the numbers of the properties that the step violates; they are not violated
    /// again later.
    fn step(&mut self, state: u32, seen: &Seen<'_>, violated: &mut Vec<usize>) -> u32;

    /// Whether an operation can change the state.
    fn sees(&self, operation: &Operation) -> bool;

    /// Properties that are not decided along the search, each with the reason.
    fn undecided(&self) -> Vec<String> {
        Vec::new()
    }

    /// Grows when states mean something else than before, because a run has shown new names.
    fn epoch(&self) -> u32 {
        0
    }
}

/// The state of a monitor after a step, which the program's state has taken already.
pub(crate) fn step(
    monitor: &mut dyn Monitor,
    facts: &mut Facts,
    state: &State,
    node: NodeId,
    act: Act,
    told: Answer,
    violated: &mut Vec<usize>,
) -> u32 {
    let before = state.get(crate::facts::MONITORS);
    let Some((operation, place)) = facts.action(node) else { return before };
    if !monitor.sees(&operation) {
        return before;
    }
    let left = match act {
        Act::Modify(parts, _) => {
            let parts: Vec<_> = facts.memory.parts(parts).to_vec();
            let words = parts.iter().map(|part| (state.get(part.slot), part.width));
            let words: Vec<_> = words.filter(|word| word.0 != 0).collect();
            let left = facts.values.joined(words.into_iter());
            left.and_then(|left| facts.values.value(left))
        }
        _ => None,
    };
    let is_outermost = match act {
        Act::Lock { lock, .. } => state.is_held_once(lock),
        Act::Unlock { lock, .. } => state.get(lock) == 0 || state.is_shared(lock),
        _ => true,
    };
    let told = facts.told(told).unwrap_or(Told::Nothing);
    let thread = &facts.threads[facts.nodes[node as usize].thread as usize].name;
    monitor.step(before, &Seen { thread, operation, place, told, left, is_outermost }, violated)
}
