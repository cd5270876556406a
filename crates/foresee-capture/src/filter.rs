//! The variables and functions of specifications, found in a program before it runs, so that the
//! runtime's filter never leaves them out.

use std::fmt::Write as _;

use crate::program::Program;
use crate::symbols::{Unmatched, Variable};

/// What the runtime always records.
#[derive(Default)]
pub struct CaptureFilter {
    text: String,
    /// Names that were found, as the specification spells them.
    pub variables: Vec<(String, Variable)>,
    /// Names that were not found, and why.
    pub missing: Vec<Unmatched>,
}

impl CaptureFilter {
    /// Adds a variable by the name that a specification gives it.
    pub fn variable(&mut self, program: &Program, name: &str) {
        let found = program.symbols.find(name);
        match found {
            Err(unmatched) => self.missing.push(unmatched),
            Ok(variable) => {
                let size = variable.scalar.size;
                self.line(program, "data", variable.address, size);
                self.variables.push((name.to_owned(), variable));
            }
        }
    }

    /// Adds the functions with a name; false if there are none.
    pub fn function(&mut self, program: &Program, name: &str) -> bool {
        let found = program.symbols.functions(name);
        for (address, size) in &found {
            self.line(program, "call", *address, *size);
        }
        !found.is_empty()
    }

    /// Adds the functions whose names are wanted; false if there are none.
    pub fn functions_like(&mut self, program: &Program, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        let found = program.symbols.functions_like(is_wanted);
        for (address, size) in &found {
            self.line(program, "call", *address, *size);
        }
        !found.is_empty()
    }

    fn line(&mut self, program: &Program, word: &str, address: u64, size: u64) {
        let Some((path, address)) = program.place(address) else { return };
        let path = path.map_or("*".into(), |p| p.to_string_lossy());
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{word} {path} {address:x} {size}");
    }

    /// The list as the runtime reads it.
    pub fn text(&self) -> &str {
        &self.text
    }
}
