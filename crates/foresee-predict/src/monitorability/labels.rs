//! The kinds of steps of one property that a trace has, and which of them mind their order.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_spec::dependence::{Action, Dependence, Written};
use foresee_spec::observe::{ProgramState, Projection, Step};
use foresee_spec::property::Compiled;

/// The number of kinds that are distinguished. The last stands for all others, and depends on every
/// order.
pub(super) const LABELS: usize = 64;
const OTHERS: u8 = LABELS as u8 - 1;

/// The kinds of steps met so far.
#[derive(Debug)]
pub(super) struct Labels {
    /// Nothing if the automaton is too large to be looked at as a whole: then all orders matter.
    dependence: Option<Dependence>,
    numbers: HashMap<Action, u8, RandomState>,
    actions: Vec<Action>,
    /// For each kind those whose order with it matters, as bits.
    depends: Vec<u64>,
    /// For each variable whether the atoms about it follow from its value alone.
    alone: Vec<bool>,
    scratch: ProgramState,
}

impl Labels {
    pub(super) fn new(compiled: &mut Compiled, projection: &Projection) -> Labels {
        let variables = 0..projection.variables().len() as u16;
        Labels {
            dependence: Dependence::new(compiled).ok(),
            numbers: HashMap::default(),
            actions: Vec::new(),
            depends: vec![u64::MAX; LABELS],
            alone: variables.map(|slot| projection.stands_alone(slot)).collect(),
            scratch: projection.initial().clone(),
        }
    }

    /// Whether the property's automaton is known, so that independent steps are.
    pub(super) fn is_exact(&self) -> bool {
        self.dependence.is_some()
    }

    /// The kind of a step that matches these event atoms.
    #[inline]
    pub(super) fn number(&mut self, step: Step, events: u64, projection: &Projection) -> u8 {
        let write = step.write.map(|(slot, value)| Written {
            slot,
            mentioned: projection.mentioning(slot),
            holding: self.alone[usize::from(slot)]
                .then(|| projection.meaning_in(&mut self.scratch, slot, value)),
        });
        let action = Action { events, write };
        match self.numbers.get(&action) {
            Some(&number) => number,
            None => self.add(action),
        }
    }

    #[cold]
    fn add(&mut self, action: Action) -> u8 {
        let number = self.actions.len() as u8;
        let Some(dependence) = self.dependence.as_ref().filter(|_| number < OTHERS) else {
            return OTHERS;
        };
        self.actions.push(action);
        self.numbers.insert(action, number);
        for (other, &known) in self.actions.iter().enumerate() {
            if !dependence.depends(action, known) {
                self.depends[usize::from(number)] &= !(1 << other);
                self.depends[other] &= !(1 << number);
            }
        }
        number
    }

    /// The kinds whose order with this one matters, as bits.
    #[inline]
    pub(super) fn depends(&self, label: u8) -> u64 {
        self.depends[usize::from(label)]
    }
}
