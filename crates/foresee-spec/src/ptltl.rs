//! Past-time linear temporal logic: violated at the first state, including the initial one, at
//! which the formula is false.

use crate::ast::Body;
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, TooManyStates, Verdict};
use crate::past::{Program, Root, looks_ahead};

/// `property NAME: F` without future operators.
pub struct PastTime;

impl Logic for PastTime {
    fn name(&self) -> &'static str {
        "ptltl"
    }

    fn describe(&self) -> &'static str {
        "past-time formulas, which must hold at every state of the run"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Formula(f) if !looks_ahead(f))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Formula(formula) = body else { unreachable!("only formulas are accepted") };
        let mut program = Program::default();
        let root = program.add(formula, atoms)?;
        let machine = PastMachine { program, root };
        Ok(Monitor::new(machine, atoms.atoms().len(), Monitor::DEFAULT_LIMIT).into())
    }
}

struct PastMachine {
    program: Program,
    root: Root,
}

/// What is remembered of the run.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Memory {
    /// No state has been seen.
    Nothing,
    /// The formula has held so far; the bits of its operators.
    Bits(u64),
    Violated,
}

impl Machine for PastMachine {
    type State = Memory;

    fn start(&mut self) -> Memory {
        Memory::Nothing
    }

    fn step(&mut self, memory: &Memory, letter: Letter) -> Result<Memory, TooManyStates> {
        let before = match memory {
            Memory::Nothing => None,
            Memory::Bits(bits) => Some(*bits),
            Memory::Violated => return Ok(Memory::Violated),
        };
        let (values, bits) = self.program.run(before, letter);
        Ok(if values.of(self.root) { Memory::Bits(bits) } else { Memory::Violated })
    }

    fn verdict(&self, memory: &Memory) -> Verdict {
        if *memory == Memory::Violated { Verdict::Bad } else { Verdict::Open }
    }
}

#[cfg(test)]
mod tests;
