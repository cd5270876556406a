//! Output: results on standard output, errors and notes on standard error.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};
use foresee_report::Report;
use foresee_report::text::{Level, Options, Style};
use foresee_support::causes::sentence;
use foresee_support::output::OutputFile;
use foresee_trace::{ReadError, Visible};

use crate::args::{OutputArgs, TextArgs};
use crate::specs::BadSpec;
use crate::store::Stored;

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

/// Text with names from files in it, with all characters visible.
pub(crate) fn plain(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| Visible(line).to_string()).collect();
    lines.join("\n")
}

/// Where a command's result goes: to standard output at once, or to the file of `--output` when
/// all of it is there.
pub(crate) struct Sink {
    /// The file, and what it will contain.
    file: Option<(PathBuf, String)>,
    /// The number of HTML pages that were written beside it.
    pages: u32,
    /// The command line that replays predictions, if they can be replayed.
    pub(crate) rerun: Option<String>,
    /// The findings of all reports, for `foresee explain`.
    stored: Option<Stored>,
}

impl Sink {
    /// Fails if it is clear already that the file cannot be written.
    pub(crate) fn new(args: &OutputArgs) -> anyhow::Result<Sink> {
        if args.output == Path::new("-") {
            return Ok(Sink { file: None, pages: 0, rerun: None, stored: None });
        }
        // A search may take hours: a mistyped folder must not show only after it.
        create(&args.output)?;
        let file = Some((args.output.clone(), String::new()));
        Ok(Sink { file, pages: 0, rerun: None, stored: None })
    }

    pub(crate) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.file {
            Some((_, content)) => {
                content.push_str(text);
                Ok(())
            }
            None => print(text),
        }
    }

    /// The name of the next HTML page: as requested for the first report, numbered for the others.
    pub(crate) fn next_page(&mut self, path: &Path) -> PathBuf {
        self.pages += 1;
        match self.pages {
            1 => path.to_owned(),
            n => numbered(path, &n.to_string()),
        }
    }

    /// How text is to be styled.
    pub(crate) fn style(&self) -> Style {
        if self.file.is_some() { Style::Plain } else { style() }
    }

    /// How a text report is to be written.
    pub(crate) fn options(&self, args: &TextArgs) -> Options {
        text_options(args, self.style(), self.file.is_none())
    }

    /// Keeps the findings of a report for `foresee explain`.
    pub(crate) fn remember(&mut self, report: &Report, args: &TextArgs, options: &Options) {
        if !args.forget {
            self.stored.get_or_insert_default().add(report, options);
        }
    }

    /// Lets the file appear.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        if let Some(stored) = &self.stored {
            // A report is worth its exit status even if it cannot be explained later.
            let _ = stored.save();
        }
        self.file.map_or(Ok(()), |(path, content)| write_file(&path, &content))
    }
}

/// `trace.fse` with `2` is `trace.2.fse`.
pub(crate) fn numbered(path: &Path, which: &str) -> PathBuf {
    match path.extension() {
        Some(ending) => path.with_extension(format!("{which}.{}", ending.to_string_lossy())),
        None => path.with_extension(which),
    }
}

/// Writes a file that appears under its name only when it is complete.
pub(crate) fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut file = create(path)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.finish());
    written.map_err(|error| cannot_write(path, &error))
}

fn create(path: &Path) -> anyhow::Result<OutputFile> {
    let folder = foresee_support::output::folder(path);
    let (name, place) = (path.display(), folder.display());
    ensure!(folder.is_dir(), "cannot write {name}: there is no folder {place}");
    OutputFile::create(path).map_err(|error| cannot_write(path, &error))
}

/// The error is part of the text, not of the chain: a FIFO whose reader went away is not the
/// closed pipe of [`is_closed_pipe`], as the file was asked for by name.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> anyhow::Error {
    anyhow!("cannot write {}: {error}", path.display())
}

/// How a text report is to be written to standard output or to a file.
pub(crate) fn text_options(args: &TextArgs, style: Style, to_stdout: bool) -> Options {
    let is_terminal = to_stdout && io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let width =
        columns.filter(|&columns| columns > 0).or_else(|| terminal().filter(|_| is_terminal));
    let plain = Options::default();
    Options {
        style,
        level: match args {
            TextArgs { quiet: true, .. } => Level::Quiet,
            TextArgs { verbose: true, .. } => Level::Verbose,
            _ => Level::Normal,
        },
        width: width.unwrap_or(plain.width).max(NARROWEST),
        is_wide: args.wide,
        has_commands: true,
        folder: std::env::current_dir().map_or(String::new(), |here| here.display().to_string()),
    }
}

/// The narrowest terminal that tables are made to fit.
const NARROWEST: usize = 60;

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
    let text = sentence(error.as_ref());
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
