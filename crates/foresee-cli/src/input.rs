//! Opening traces the way every command does.

use std::time::Duration;

use anyhow::Context;
use foresee_trace::{EventSource, Mode, Validated};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::InputArgs;

/// A validated stream of the trace that was asked for.
pub(crate) fn open(args: &InputArgs) -> anyhow::Result<Validated<Box<dyn EventSource>>> {
    let mode = if args.repair { Mode::Repair } else { Mode::Reject };
    Ok(Validated::new(open_raw(args)?, mode))
}

fn open_raw(args: &InputArgs) -> anyhow::Result<Box<dyn EventSource>> {
    let format = args.input_format.as_deref().map(foresee_formats::by_name).transpose()?;
    let opened = foresee_formats::open(&args.trace, format).with_context(|| name(args))?;
    Ok(opened.source)
}

/// The trace's name in messages.
pub(crate) fn name(args: &InputArgs) -> String {
    match args.trace.to_str() {
        Some("-") => "standard input".to_owned(),
        _ => args.trace.display().to_string(),
    }
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
