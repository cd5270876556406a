//! Reading specifications the way every command does.

use std::fmt;
use std::io::IsTerminal;
use std::path::Path;

use foresee_predict::session::{self, SessionError, Specification};
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::{Diagnostic, render};
use foresee_support::count::count;
use foresee_trace::Visible;

use crate::{output, whole_file};

/// The text of a specification.
pub(crate) struct Source {
    /// Its name for the user.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A specification that cannot be used: its errors, ready to be shown.
#[derive(Debug)]
pub(crate) struct BadSpec(String);

impl BadSpec {
    pub(crate) fn new(source: &Source, diagnostics: &[Diagnostic]) -> BadSpec {
        BadSpec::render(&source.name, &source.text, diagnostics)
    }

    /// From a session's error.
    pub(crate) fn of(bad: &session::BadSpec) -> BadSpec {
        BadSpec::render(&bad.name, &bad.text, &bad.diagnostics)
    }

    fn render(name: &str, text: &str, diagnostics: &[Diagnostic]) -> BadSpec {
        let colour = std::io::stderr().is_terminal();
        let mut text = render(diagnostics, name, text, colour);
        let errors = diagnostics.iter().filter(|d| d.is_error()).count();
        text += &format!("\n{}: {}", Visible(name), count(errors, "mistake"));
        BadSpec(text)
    }
}

impl fmt::Display for BadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSpec {}

pub(crate) fn read(file: &Path) -> anyhow::Result<Source> {
    let text = whole_file::read_or_stdin(file, whole_file::SPECIFICATION)?;
    Ok(Source { name: whole_file::name(file), text })
}

/// Parses and compiles a specification; prints warnings, and returns mistakes as the error.
pub(crate) fn compile(source: &Source) -> anyhow::Result<(Spec, Vec<Compiled>)> {
    let parsed = foresee_spec::parse(&source.text);
    settle(source, &parsed.diagnostics)?;
    let compiled = Compiled::all(&parsed.spec).map_err(|errors| BadSpec::new(source, &errors))?;
    for property in &compiled {
        settle(source, &property.warnings)?;
    }
    Ok((parsed.spec, compiled))
}

/// Reads a specification for a session; prints warnings, and returns mistakes as the error.
pub(crate) fn load(source: &Source) -> anyhow::Result<Specification> {
    let spec = Specification::new(&source.name, &source.text)
        .map_err(|bad| BadSpec::new(source, &bad.diagnostics))?;
    spec.warnings.iter().for_each(|group| warn(&source.name, &source.text, group));
    if spec.spec.properties.is_empty() && spec.spec.atomics.is_empty() && !cfg!(test) {
        output::note(&format!("{} has no properties, so it asks for nothing", source.name));
    }
    Ok(spec)
}

/// Why a session failed, ready to be shown.
pub(crate) fn failed(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Spec(bad) => BadSpec::of(&bad).into(),
        SessionError::Read(error) => error.into(),
        SessionError::Analysis(error) => error.into(),
        SessionError::Index(error) => anyhow::Error::from(error)
            .context("the index cannot be used; `foresee index` makes a new one"),
        other => other.into(),
    }
}

/// Prints warnings, unless there are mistakes among them.
pub(crate) fn settle(source: &Source, diagnostics: &[Diagnostic]) -> anyhow::Result<()> {
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(BadSpec::new(source, diagnostics).into());
    }
    if !diagnostics.is_empty() {
        warn(&source.name, &source.text, diagnostics);
    }
    Ok(())
}

/// Prints warnings.
pub(crate) fn warn(name: &str, text: &str, diagnostics: &[Diagnostic]) {
    // Tests that check thousands of traces only need the results.
    if cfg!(test) {
        return;
    }
    let colour = std::io::stderr().is_terminal();
    output::raw(&render(diagnostics, name, text, colour));
}
