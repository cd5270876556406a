//! What a terminal shows while long work is done.

use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How long a command works before it shows how far it is.
const SILENCE: Duration = Duration::from_secs(1);

/// A counter of events.
pub(crate) fn events(what: &'static str) -> ProgressBar {
    bar("{spinner} {msg} {human_pos} events, {rate}/s").with_message(what)
}

/// A line on standard error, if that is a terminal, from the second second of the command's work on.
pub(crate) fn bar(template: &str) -> ProgressBar {
    static BEGINNING: OnceLock<Instant> = OnceLock::new();
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let rate = |state: &ProgressState, to: &mut dyn Write| {
        let _ = write!(to, "{}", HumanCount(state.per_sec() as u64));
    };
    let style = style.with_key("rate", rate);
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_style(style);
    if !std::io::stderr().is_terminal() {
        return bar;
    }
    let silence = SILENCE.saturating_sub(BEGINNING.get_or_init(Instant::now).elapsed());
    if silence.is_zero() {
        show(&bar);
        return bar;
    }
    let later = bar.downgrade();
    thread::spawn(move || {
        thread::sleep(silence);
        if let Some(bar) = later.upgrade() {
            show(&bar);
        }
    });
    bar
}

fn show(bar: &ProgressBar) {
    if !bar.is_finished() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(5));
        bar.enable_steady_tick(Duration::from_secs(1));
    }
}
