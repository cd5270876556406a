//! The live view of an observer, on a terminal: programs, speed, backlog and findings.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::Instant;

use foresee_observe::{Listening, ProgramId};
use foresee_support::count::count;
use foresee_trace::{Finding, Name};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};

#[cfg(feature = "tui")]
use crate::commands::observe_screen::{Screen, Wish};

/// The maximum number of programs shown.
const SHOWN: usize = 12;

/// A block of lines at the bottom of the terminal, or the whole screen; nothing if there is no terminal.
pub(crate) struct View {
    bar: Option<ProgressBar>,
    /// The number of events of each program when it was last shown.
    last: Mutex<(Option<Instant>, HashMap<ProgramId, u64>)>,
    #[cfg(feature = "tui")]
    screen: Option<Screen>,
}

impl View {
    pub(crate) fn new(wanted: bool) -> View {
        let is_shown = wanted && std::io::stderr().is_terminal();
        let bar = is_shown.then(|| {
            let style = ProgressStyle::with_template("{msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::new_spinner().with_style(style)
        });
        View {
            bar,
            last: Mutex::default(),
            #[cfg(feature = "tui")]
            screen: None,
        }
    }

    /// The whole screen, with these properties.
    #[cfg(feature = "tui")]
    pub(crate) fn screen(properties: impl Iterator<Item = String>) -> anyhow::Result<View> {
        Ok(View { screen: Some(Screen::open(properties)?), ..View::new(false) })
    }

    /// The whole screen, with these properties.
    #[cfg(not(feature = "tui"))]
    pub(crate) fn screen(_: impl Iterator<Item = String>) -> anyhow::Result<View> {
        anyhow::bail!(
            "this foresee was built without --tui; build it with `cargo install --features tui`"
        )
    }

    /// Runs something that prints, with the view removed meanwhile.
    pub(crate) fn around<T>(&self, print: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            return screen.around(print);
        }
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Shows what is on now; false if the user wants to end.
    pub(crate) fn show(&self, now: &Listening, findings: u64) -> bool {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            return screen.show(now) == Wish::None;
        }
        let Some(bar) = &self.bar else { return true };
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        bar.set_message(describe(now, findings, &mut last));
        bar.tick();
        true
    }

    pub(crate) fn clear(&self) {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            screen.close();
        }
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Takes a text that would be printed; false if it is to be printed.
    pub(crate) fn takes(&self, text: &str) -> bool {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            return screen.message(text);
        }
        let _ = text;
        false
    }

    /// Notes that a finding was made.
    pub(crate) fn finding(&self, program: &str, finding: &Finding) {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            let kind = finding.kind.word().to_uppercase();
            screen.finding(program, &kind, &finding.property, &finding.message);
        }
        let _ = (program, finding);
    }

    /// Notes that a program is over.
    pub(crate) fn over(&self, label: &str, events: u64, how: &str) {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            screen.over(label, events, how.to_owned());
        }
        let _ = (label, events, how);
    }

    /// Notes where programs can connect.
    pub(crate) fn listening(&self, address: &str) {
        #[cfg(feature = "tui")]
        if let Some(screen) = &self.screen {
            screen.listening(address.to_owned());
        }
        let _ = address;
    }
}

fn describe(
    now: &Listening,
    findings: u64,
    last: &mut (Option<Instant>, HashMap<ProgramId, u64>),
) -> String {
    let seconds = last.0.replace(Instant::now()).map_or(0.0, |then| then.elapsed().as_secs_f64());
    let mut text = format!(
        "{}, {} over, {}",
        count(now.running.len(), "program"),
        HumanCount(now.finished),
        count(findings, "finding")
    );
    let mut counts = HashMap::new();
    for (i, program) in now.running.iter().enumerate() {
        let (events, backlog) = (program.events(), program.backlog());
        let before = last.1.get(&program.id).copied().unwrap_or(events);
        counts.insert(program.id, events);
        if i >= SHOWN {
            continue;
        }
        let rate = if seconds > 0.0 { (events - before) as f64 / seconds } else { 0.0 };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n  {:<24} {:>14} events {:>12}/s  {:>10} waiting ({} early)  {} connections",
            Name(&program.name).to_string(),
            HumanCount(events).to_string(),
            HumanCount(rate as u64).to_string(),
            HumanBytes(backlog.bytes as u64).to_string(),
            backlog.early,
            backlog.connections,
        );
    }
    if now.running.len() > SHOWN {
        let _ = write!(text, "\n  … and {} more", now.running.len() - SHOWN);
    }
    last.1 = counts;
    text
}
