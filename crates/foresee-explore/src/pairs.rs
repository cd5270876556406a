//! Pairs of code places: an operation, and the last write or unlock that it sees. A pair that no run has shown is the best
//! reason for the next run.

use crate::map::{HashMap, HashSet};

use crate::facts::{Act, Facts};
use crate::program::Place;

/// The pairs that runs have shown.
#[derive(Default)]
pub(crate) struct Pairs(HashSet<(Place, Place)>);

impl Pairs {
    pub(crate) fn is_seen(&self, pair: (Place, Place)) -> bool {
        self.0.contains(&pair)
    }
}

/// Where each slot was last written, along a path.
#[derive(Default)]
pub(crate) struct Last(HashMap<u32, Place>);

impl Last {
    /// The place of the last operation that the next one sees.
    pub(crate) fn seen_by(&self, facts: &Facts, act: Act) -> Place {
        let slot = match act {
            Act::Load(parts) | Act::Modify(parts, _) | Act::Store(parts, _) => {
                let parts = facts.memory.parts(parts);
                let found = parts.iter().find_map(|part| self.0.get(&part.slot));
                return found.copied().unwrap_or_default();
            }
            Act::Lock { lock, .. } | Act::WaitEnd { lock, .. } => lock,
            Act::Signal(at) | Act::Broadcast(at) | Act::Wait { condition: at, .. } => at,
            Act::SemWait(at, _) | Act::SemPost(at) | Act::SemValue(at) => at,
            Act::Arrive { arrived: at, .. } | Act::OnceBegin(at) => at,
            _ => return Place(0),
        };
        self.0.get(&slot).copied().unwrap_or_default()
    }

    /// Goes on by one operation, and notes the pair if runs are being learnt from.
    pub(crate) fn step(&mut self, facts: &Facts, act: Act, place: Place, pairs: &mut Pairs) {
        pairs.0.insert((place, self.seen_by(facts, act)));
        self.write(facts, act, place);
    }

    /// Goes on by one operation.
    pub(crate) fn write(&mut self, facts: &Facts, act: Act, place: Place) {
        match act {
            Act::Store(parts, _) | Act::Modify(parts, _) => {
                for part in facts.memory.parts(parts) {
                    self.0.insert(part.slot, place);
                }
            }
            Act::Wait { condition, lock } => {
                self.0.insert(lock, place);
                self.0.insert(condition, place);
            }
            Act::Unlock { lock: at, .. }
            | Act::Signal(at)
            | Act::Broadcast(at)
            | Act::SemPost(at)
            | Act::SemWait(at, _)
            | Act::SemInit(at, _)
            | Act::Arrive { arrived: at, .. }
            | Act::OnceEnd(at) => {
                self.0.insert(at, place);
            }
            _ => {}
        }
    }
}
