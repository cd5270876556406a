//! The events that an atom denotes in a trace, for analyses that have the events sorted.

use foresee_trace::{Names, Op, ThreadId};

use super::Strings;
use super::atoms::Shape;
use crate::ast::Atom;
use crate::letter::Alphabet;
use crate::resolve::Resolved;

/// The events of an atom, by operation, target and thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomLabels {
    /// The operations.
    pub ops: Vec<Op>,
    /// The targets, by number; `None` means any. The target of a wait is its lock.
    pub targets: Option<Vec<u32>>,
    /// The threads; `None` means any.
    pub threads: Option<Vec<ThreadId>>,
    /// Whether the atom also has arguments.
    pub has_args: bool,
}

impl AtomLabels {
    /// The labels of each atom of an alphabet; `None` for a condition on the state, and for an atom
    /// that names something that is not in the trace.
    pub fn of(alphabet: &Alphabet, resolved: &Resolved, names: &Names) -> Vec<Option<AtomLabels>> {
        let mut strings = Strings::new(names);
        let label = |atom: &Atom| {
            let Atom::Event(event) = atom else { return None };
            let shape = Shape::new(0, event, resolved, &mut strings)?;
            Some(AtomLabels {
                ops: Op::ALL.iter().copied().filter(|&op| shape.is_about(op)).collect(),
                has_args: shape.has_args(),
                threads: shape.threads,
                targets: shape.targets,
            })
        };
        alphabet.atoms().iter().map(label).collect()
    }

    /// Whether an event with this operation, target and thread is one of them, whatever its
    /// arguments.
    pub fn has(&self, op: Op, target: u32, thread: ThreadId) -> bool {
        self.ops.contains(&op)
            && self.targets.as_ref().is_none_or(|targets| targets.contains(&target))
            && self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }
}
