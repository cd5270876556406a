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
}

/// Properties, as one machine with numbered states. Two states with the same number must have the same future.
pub trait Monitor: Send {
    /// The state before the first step; not zero.
    fn start(&mut self) -> u32;

    /// The state after a step.
    ///
    /// # Errors
    /// The number of the property that does not hold any more.
    fn step(&mut self, state: u32, seen: &Seen<'_>) -> Result<u32, usize>;

    /// Whether an operation can change the state.
    fn sees(&self, operation: &Operation) -> bool;
}

/// The state of a monitor after a step, which the program's state has taken already.
pub(crate) fn step(
    monitor: &mut dyn Monitor,
    facts: &mut Facts,
    state: &State,
    node: NodeId,
    act: Act,
    told: Answer,
) -> Result<u32, usize> {
    let before = state.get(crate::facts::MONITORS);
    let Some((operation, place)) = facts.action(node) else { return Ok(before) };
    if !monitor.sees(&operation) {
        return Ok(before);
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
    let told = facts.told(told).unwrap_or(Told::Nothing);
    let thread = &facts.threads[facts.nodes[node as usize].thread as usize].name;
    monitor.step(before, &Seen { thread, operation, place, told, left })
}
