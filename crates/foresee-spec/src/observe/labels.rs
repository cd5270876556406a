//! What an event atom stands for in a trace, for those who have the events sorted already.

use foresee_trace::{Names, Op, ThreadId};

use super::Strings;
use super::atoms::Shape;
use crate::ast::Atom;
use crate::letter::Alphabet;
use crate::resolve::Resolved;

/// The events of an atom, as far as operation, target and thread tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomLabels {
    /// The operations.
    pub ops: Vec<Op>,
    /// The targets, by their numbers; `None` is any. The target of a wait is its lock.
    pub targets: Option<Vec<u32>>,
    /// The threads; `None` is any.
    pub threads: Option<Vec<ThreadId>>,
    /// Whether the atom also asks for arguments.
    pub has_args: bool,
}

impl AtomLabels {
    /// What each atom of an alphabet stands for; `None` for a condition on the state, and for an
    /// atom that names something the trace does not have.
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
