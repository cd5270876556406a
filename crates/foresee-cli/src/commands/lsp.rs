//! `foresee lsp`: a language server for specifications.

use std::path::Path;

use anyhow::{Context, ensure};
use foresee_formats::TraceFile;

pub(crate) fn run(trace: Option<&Path>) -> anyhow::Result<u8> {
    let mut names = None;
    if let Some(path) = trace {
        ensure!(
            path != Path::new("-"),
            "--trace needs a file: standard input is the connection to the editor"
        );
        let file = TraceFile::new(path);
        let read = file.read_names(&mut |_| ());
        names = Some(read.with_context(|| path.display().to_string())?.0);
    }
    foresee_lsp::serve(names)?;
    Ok(0)
}
