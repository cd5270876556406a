//! Output: results on standard output, errors and notes on standard error.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use foresee_report::text::Style;
use foresee_trace::{ReadError, Visible};

use crate::specs::BadSpec;

const ERROR: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const NOTE: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();
const HELP: anstyle::Style = anstyle::Style::new().bold();

/// Prints a result.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints a result with names from files in it, with all characters visible.
pub(crate) fn plain(text: &str) -> anyhow::Result<()> {
    let lines: Vec<String> = text.split('\n').map(|line| Visible(line).to_string()).collect();
    print(&lines.join("\n"))
}

/// Writes a file that appears under its name only when it is complete.
pub(crate) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = foresee_support::output::folder(path);
    let (name, place) = (path.display(), folder.display());
    ensure!(folder.is_dir(), "cannot write {name}: there is no folder {place}");
    foresee_support::output::write(path, text.as_bytes())
        .with_context(|| format!("cannot write {name}"))
}

/// Colours, if standard output is a terminal that supports them.
pub(crate) fn style() -> Style {
    let colour = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    if colour && io::stdout().is_terminal() { Style::Colour } else { Style::Plain }
}

/// Prints why a command failed, where, and what to do about it.
pub(crate) fn error(error: &anyhow::Error) {
    let mut err = anstream::stderr().lock();
    if let Some(bad) = error.downcast_ref::<BadSpec>() {
        let _ = writeln!(err, "{bad}");
        return;
    }
    // If standard error is closed, the message is lost.
    let text = format!("{error:#}");
    let lines: Vec<String> = text.lines().map(|line| Visible(line).to_string()).collect();
    let _ = writeln!(err, "{ERROR}error{ERROR:#}: {}", lines.join("\n"));
    let help = error.chain().find_map(|e| e.downcast_ref::<ReadError>()?.help());
    if let Some(help) = help {
        let _ = writeln!(err, "{HELP}help{HELP:#}: {help}");
    }
}

/// Prints a note for the user that is not an error.
pub(crate) fn note(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{NOTE}note{NOTE:#}: {}", Visible(text));
}

/// Prints finished text to standard error.
pub(crate) fn raw(text: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{}", text.trim_end());
}

/// Whether the reader of our output went away, as `head` does, which is not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
