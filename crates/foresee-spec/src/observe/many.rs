//! Which of very many event atoms an event matches.
//!
//! A thousand patterns share one table, so an event costs one look-up for all of them.

use foresee_trace::{Event, LockId, Names, Op, Pool, ThreadId, VarId};

use super::Strings;
use super::atoms::Shape;
use super::table::Targets;
use crate::ast::{EventAtom, EventKind};
use crate::resolve::Resolved;

/// Event atoms bound to the names of a trace, by the events they match.
#[derive(Debug)]
pub struct EventTable {
    /// The atom, by its index in the original list, and its shape.
    shapes: Vec<(u32, Shape)>,
    by_op: Vec<Option<Box<OfOp>>>,
    /// For each atom, why its events are ordered, if they are.
    chains: Vec<Option<Chain>>,
}

/// Why the events of an atom are always ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chain {
    /// There are none: what the atom names is not in the trace.
    Absent,
    /// They are of one thread.
    Thread(ThreadId),
    /// They write one variable.
    Writes(VarId),
    /// They acquire or release one lock.
    Lock(LockId),
}

/// The atoms that events of one operation can match.
#[derive(Debug)]
struct OfOp {
    /// Targets, as bits, that some atom names. Small enough to fit in the first-level cache.
    named: Vec<u64>,
    /// Indices into `shapes`, by target.
    by_target: Targets<Box<[u32]>>,
    any_target: Box<[u32]>,
}

impl EventTable {
    /// Binds atoms to a trace.
    pub fn new<'a>(
        atoms: impl IntoIterator<Item = &'a EventAtom>,
        resolved: &Resolved,
        names: &Names,
    ) -> EventTable {
        let mut strings = Strings::new(names);
        let (mut shapes, mut chains) = (Vec::new(), Vec::new());
        for (i, atom) in atoms.into_iter().enumerate() {
            let shape = Shape::new(0, atom, resolved, &mut strings);
            chains.push(shape.as_ref().map_or(Some(Chain::Absent), Shape::chain));
            shapes.extend(shape.map(|shape| (i as u32, shape)));
        }
        let last = Op::ALL.iter().map(|&op| op as usize).max().unwrap_or(0);
        let mut by_op: Vec<Option<Box<OfOp>>> = (0..=last).map(|_| None).collect();
        for &op in Op::ALL {
            by_op[op as usize] = OfOp::new(op, &shapes).map(Box::new);
        }
        EventTable { shapes, by_op, chains }
    }

    /// Why the events of an atom are ordered in every trace, if they are.
    pub fn chain(&self, atom: usize) -> Option<Chain> {
        self.chains[atom]
    }

    /// Calls `each` with every atom that an event matches.
    #[inline]
    pub fn matches(&self, event: &Event, pool: &Pool, mut each: impl FnMut(u32)) {
        let Some(table) = self.by_op[event.op() as usize].as_deref() else { return };
        let target = match event.op() {
            Op::WaitBegin | Op::WaitEnd => event.wait_lock().map(|lock| lock.0),
            _ => event.target(),
        };
        let named = target.filter(|&t| {
            table.named.get(t as usize / 64).is_some_and(|word| word >> (t % 64) & 1 == 1)
        });
        let by_target = named.and_then(|t| table.by_target.get(t)).map_or(&[][..], |s| s);
        for &i in by_target.iter().chain(&table.any_target) {
            let (atom, shape) = &self.shapes[i as usize];
            if shape.matches(event, pool) {
                each(*atom);
            }
        }
    }
}

impl OfOp {
    fn new(op: Op, shapes: &[(u32, Shape)]) -> Option<OfOp> {
        let of_op = shapes.iter().enumerate().filter(|(_, (_, shape))| shape.is_about(op));
        let mut any_target = Vec::new();
        let mut named: Vec<(u32, u32)> = Vec::new();
        for (i, (_, shape)) in of_op {
            match &shape.targets {
                None => any_target.push(i as u32),
                Some(targets) => named.extend(targets.iter().map(|&t| (t, i as u32))),
            }
        }
        if any_target.is_empty() && named.is_empty() {
            return None;
        }
        named.sort_unstable();
        let by_target = named.chunk_by(|a, b| a.0 == b.0);
        let by_target =
            by_target.map(|same| (same[0].0, same.iter().map(|(_, i)| *i).collect())).collect();
        let words = named.last().map_or(0, |(t, _)| *t as usize / 64 + 1);
        let mut bits = vec![0u64; words];
        for (t, _) in &named {
            bits[*t as usize / 64] |= 1 << (t % 64);
        }
        let (by_target, any_target) = (Targets::new(by_target), any_target.into());
        Some(OfOp { named: bits, by_target, any_target })
    }
}

impl Shape {
    fn chain(&self) -> Option<Chain> {
        if let Some([thread]) = self.threads.as_deref() {
            return Some(Chain::Thread(*thread));
        }
        let Some([target]) = self.targets.as_deref() else { return None };
        match self.kind {
            EventKind::Write => Some(Chain::Writes(VarId(*target))),
            EventKind::Acquire | EventKind::Release => Some(Chain::Lock(LockId(*target))),
            _ => None,
        }
    }
}
