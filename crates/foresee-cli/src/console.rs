//! What is printed while a session runs.

use foresee_predict::session::{InternalError, Listener, Specification};
use foresee_spec::Diagnostic;
use indicatif::ProgressBar;

use crate::{bug, output, progress, specs};

/// Prints warnings and internal errors, and shows how far the session is.
pub(crate) struct Console {
    bar: ProgressBar,
}

impl Console {
    /// Shows the current step in the progress bar.
    pub(crate) fn new(what: &'static str) -> Console {
        Console { bar: progress::events(what) }
    }

    /// Removes the progress bar.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

impl Listener for Console {
    fn warning(&mut self, spec: &Specification, diagnostics: &[Diagnostic]) {
        self.bar.suspend(|| specs::warn(&spec.name, &spec.text, diagnostics));
    }

    fn note(&mut self, text: &str) {
        self.bar.suspend(|| output::note(text));
    }

    fn internal_error(&mut self, error: &InternalError<'_>) {
        self.bar.suspend(|| bug::report(error));
    }

    fn progress(&mut self, events: u64) {
        self.bar.set_position(events);
    }
}
