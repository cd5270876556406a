//! Opening traces the way every command does.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use foresee_formats::{Format, native::Indexed};
use foresee_trace::{Batch, EventSource, FileOrder, Mode, Names, ReadError, Validated};
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::NamedTempFile;

use crate::args::InputArgs;

/// A trace that was asked for.
pub(crate) struct Input<'a> {
    args: &'a InputArgs,
    format: Option<&'static dyn Format>,
    /// Standard input put aside, if it has to be read more than once.
    spool: Option<NamedTempFile>,
    /// What it is called in messages, if that is not its path.
    title: Option<String>,
}

impl<'a> Input<'a> {
    /// The trace of the command line. What can be read only once is put aside if it is going to
    /// be read `again`.
    pub(crate) fn new(args: &'a InputArgs, again: bool) -> anyhow::Result<Self> {
        let format = args.input_format.as_deref().map(foresee_formats::by_name).transpose()?;
        let spool = match again && args.trace == Path::new("-") {
            true => {
                let mut file = NamedTempFile::new().context("cannot put standard input aside")?;
                io::copy(&mut io::stdin().lock(), &mut file).context("standard input")?;
                Some(file)
            }
            false => None,
        };
        Ok(Input { args, format, spool, title: None })
    }

    /// A trace in a file that nobody knows by its path.
    pub(crate) fn titled(args: &'a InputArgs, title: String) -> Self {
        Input { args, format: None, spool: None, title: Some(title) }
    }

    fn path(&self) -> PathBuf {
        match &self.spool {
            Some(file) => file.path().to_owned(),
            None => self.args.trace.clone(),
        }
    }

    /// The trace as the file has it.
    pub(crate) fn open_raw(&self) -> Result<Box<dyn EventSource>, ReadError> {
        Ok(foresee_formats::open(&self.path(), self.format)?.source)
    }

    /// The trace, validated or repaired.
    pub(crate) fn open(&self) -> anyhow::Result<Validated<Box<dyn EventSource>>> {
        let mode = if self.args.repair { Mode::Repair } else { Mode::Reject };
        Ok(Validated::new(self.open_raw().with_context(|| self.name())?, mode))
    }

    /// Every name in the trace, and what its order stands for; from its index if it has one.
    pub(crate) fn names(&self) -> anyhow::Result<(Names, FileOrder)> {
        if let Ok(indexed) = Indexed::open(&self.path()) {
            return Ok((indexed.names().clone(), indexed.remarks().order));
        }
        let mut source = self.open_raw().with_context(|| self.name())?;
        let mut batch = Batch::default();
        let bar = progress("reading names");
        while source.next_batch(&mut batch).with_context(|| self.name())? {
            bar.inc(batch.events.len() as u64);
        }
        bar.finish_and_clear();
        Ok((source.names().clone(), source.remarks().order))
    }

    /// The trace's name in messages.
    pub(crate) fn name(&self) -> String {
        if let Some(title) = &self.title {
            return title.clone();
        }
        match self.args.trace.to_str() {
            Some("-") => "standard input".to_owned(),
            _ => self.args.trace.display().to_string(),
        }
    }
}

/// A validated stream of the trace that was asked for, to be read once.
pub(crate) fn open(args: &InputArgs) -> anyhow::Result<Validated<Box<dyn EventSource>>> {
    Input::new(args, false)?.open()
}

/// The trace's name in messages.
pub(crate) fn name(args: &InputArgs) -> String {
    Input { args, format: None, spool: None, title: None }.name()
}

/// A counter on standard error, if it is a terminal, once something has taken a second.
pub(crate) fn progress(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {human_pos} events, {per_sec}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message(what);
    bar.set_draw_target(indicatif::ProgressDrawTarget::stderr_with_hz(5));
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
