//! `foresee lsp`: a language server for specifications.

use std::path::Path;

use anyhow::{Context, ensure};
use foresee_capture::symbols::{Module, Symbols};
use foresee_formats::TraceFile;
use foresee_lsp::Known;
use foresee_trace::Names;

pub(crate) fn run(trace: Option<&Path>, program: Option<&Path>) -> anyhow::Result<u8> {
    let mut known = Known::default();
    if let Some(path) = trace {
        ensure!(
            path != Path::new("-"),
            "--trace needs a file: standard input is the connection to the editor"
        );
        let file = TraceFile::new(path);
        let read = file.read_names(&mut |_| ());
        known.trace = Some(read.with_context(|| path.display().to_string())?.0);
    }
    if let Some(path) = program {
        known.program = Some(names_of(path)?);
    }
    foresee_lsp::serve(known)?;
    Ok(0)
}

/// The variables and functions of a program.
fn names_of(program: &Path) -> anyhow::Result<Names> {
    let module = Module { path: program.to_owned(), bias: 0, range: 0..u64::MAX };
    let mut symbols = Symbols::default();
    symbols.add(module.clone());
    let defined = symbols.defined();
    if let Some(error) = symbols.error(&module) {
        anyhow::bail!("{error}");
    }
    let mut names = Names::default();
    // What does not fit is not proposed.
    for variable in &defined.variables {
        let _ = names.vars.intern(variable);
    }
    for function in &defined.functions {
        let _ = names.syms.intern(function);
    }
    Ok(names)
}
