//! Which steps must keep their order for a property, for people.

use foresee_trace::Names;

use crate::ast::{Atom, EventKind, Term};
use crate::dependence::{Action, Dependence, Written};
use crate::observe::Projection;
use crate::print_atom;
use crate::property::Compiled;
use crate::resolve::Resolved;

/// The maximum number of kinds of steps that are compared.
const MAX_KINDS: usize = 24;

/// The pairs of kinds of steps whose order matters. A kind is an event of the property, or a write
/// of one of its variables with any value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderFacts {
    /// The pairs whose order may affect the verdict.
    pub matters: Vec<(String, String)>,
    /// The pairs whose order never does.
    pub is_free: Vec<(String, String)>,
}

impl OrderFacts {
    /// The facts from the property's minimal automaton; `None` if it is too large, or there are too
    /// many kinds.
    pub(super) fn of(compiled: &mut Compiled) -> Option<OrderFacts> {
        let dependence = Dependence::new(compiled).ok().filter(Dependence::is_thorough)?;
        let kinds = kinds(compiled);
        if kinds.len() > MAX_KINDS {
            return None;
        }
        let mut facts = OrderFacts::default();
        for (i, (name, kind)) in kinds.iter().enumerate() {
            for (other_name, other) in &kinds[..=i] {
                let pair = (other_name.clone(), name.clone());
                match dependence.depends(*other, *kind) {
                    true => facts.matters.push(pair),
                    // Two steps of one kind are the same in either order.
                    false if other != kind => facts.is_free.push(pair),
                    false => {}
                }
            }
        }
        Some(facts)
    }

    /// The pairs as text.
    pub(super) fn list(pairs: &[(String, String)]) -> String {
        let pair = |(a, b): &(String, String)| match a == b {
            true => format!("{a} and another"),
            false => format!("{a} and {b}"),
        };
        pairs.iter().map(pair).collect::<Vec<_>>().join("; ")
    }
}

/// The kinds of steps, with their names.
fn kinds(compiled: &Compiled) -> Vec<(String, Action)> {
    let projection =
        Projection::new(&compiled.alphabet, &[], &Resolved::default(), &Names::default());
    let variables: Vec<&str> = projection.variables().collect();
    let write = |name: &str| {
        let slot = variables.iter().position(|v| *v == name)? as u16;
        Some(Written { slot, mentioned: projection.mentioning(slot), holding: None })
    };
    let mut kinds: Vec<(String, Action)> = Vec::new();
    let mut is_named = vec![false; variables.len()];
    for (bit, atom) in compiled.alphabet.atoms().iter().enumerate() {
        let Atom::Event(event) = atom else { continue };
        let written = match (&event.kind, &event.target) {
            (EventKind::Write, Term::Name(name)) => write(&name.name),
            _ => None,
        };
        // A write without further conditions represents all writes of its variable.
        if let Some(written) = written {
            let is_any = event.args.is_empty() && event.thread == Term::Any;
            is_named[usize::from(written.slot)] |= is_any;
        }
        kinds.push((print_atom(atom), Action { events: 1 << bit, write: written }));
    }
    for (name, _) in variables.iter().zip(is_named).filter(|(_, named)| !named) {
        kinds.push((format!("a write of {name}"), Action { events: 0, write: write(name) }));
    }
    kinds
}
