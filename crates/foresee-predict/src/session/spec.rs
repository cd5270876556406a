//! Specifications that have been read.

use std::fmt;

use foresee_spec::Diagnostic;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;

/// A specification: its text, and what it says.
#[derive(Clone, Debug)]
pub struct Specification {
    /// What the user knows it by.
    pub name: String,
    /// As it was written.
    pub text: String,
    /// What it says.
    pub spec: Spec,
    /// What should be known of it, by what it is about.
    pub warnings: Vec<Vec<Diagnostic>>,
}

/// A specification that cannot be used.
#[derive(Clone, Debug)]
pub struct BadSpec {
    /// What the user knows it by.
    pub name: String,
    /// As it was written.
    pub text: String,
    /// Its mistakes, and what else should be known of it.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for BadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = foresee_spec::render(&self.diagnostics, &self.name, &self.text, false);
        f.write_str(text.trim_end())
    }
}

impl std::error::Error for BadSpec {}

impl Specification {
    /// Reads a specification; `name` is what the user knows it by.
    pub fn new(name: &str, text: &str) -> Result<Specification, BadSpec> {
        let parsed = foresee_spec::parse(text);
        let bad =
            |diagnostics| BadSpec { name: name.to_owned(), text: text.to_owned(), diagnostics };
        if parsed.has_errors() {
            return Err(bad(parsed.diagnostics));
        }
        let mut read = Specification::of(name, text, parsed.spec)?;
        if !parsed.diagnostics.is_empty() {
            read.warnings.insert(0, parsed.diagnostics);
        }
        Ok(read)
    }

    /// A specification that was not read from a text alone; `text` is what diagnostics point into.
    pub fn of(name: &str, text: &str, spec: Spec) -> Result<Specification, BadSpec> {
        let bad =
            |diagnostics| BadSpec { name: name.to_owned(), text: text.to_owned(), diagnostics };
        let compiled = Compiled::all(&spec).map_err(bad)?;
        let mut warnings = Vec::new();
        for property in compiled {
            if property.warnings.iter().any(Diagnostic::is_error) {
                return Err(bad(property.warnings));
            }
            warnings.push(property.warnings);
        }
        warnings.retain(|group| !group.is_empty());
        Ok(Specification { name: name.to_owned(), text: text.to_owned(), spec, warnings })
    }

    /// What is wrong with it.
    pub fn bad(&self, diagnostics: Vec<Diagnostic>) -> BadSpec {
        BadSpec { name: self.name.clone(), text: self.text.clone(), diagnostics }
    }

    /// The monitors of properties of it; each search needs its own, which grow apart.
    pub(super) fn compile(&self, spec: &Spec) -> Result<Vec<Compiled>, BadSpec> {
        Compiled::all(spec).map_err(|mistakes| self.bad(mistakes))
    }
}
