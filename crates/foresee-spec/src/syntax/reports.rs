//! The diagnostics of one specification: a limited number, and only one per mistake.

use crate::diagnostic::{Diagnostic, Severity};

/// The maximum number of errors, and of warnings, that are shown.
const MOST: usize = 20;

/// What has been reported so far.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    diagnostics: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    /// The position of the last error: each position gets at most one error.
    last_error: Option<u32>,
}

impl Reports {
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Warning => &mut self.warnings,
            Severity::Error => {
                let at = diagnostic.labels.first().map(|(span, _)| span.start);
                if at.is_some() && at == self.last_error {
                    return;
                }
                self.last_error = at;
                &mut self.errors
            }
        };
        *count += 1;
        if *count <= MOST {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether another diagnostic would be shown, so that it is worth the effort to build it.
    pub(crate) fn wants(&self, severity: Severity) -> bool {
        let count = match severity {
            Severity::Error => self.errors,
            Severity::Warning => self.warnings,
        };
        count < MOST
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The diagnostics in source order, and the number of those that were left out.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|d| d.labels.first().map_or(0, |(span, _)| span.start));
        for (severity, count, what) in [
            (Severity::Error, self.errors, "errors"),
            (Severity::Warning, self.warnings, "warnings"),
        ] {
            if count > MOST {
                let message = format!("{} more {what} are not shown", count - MOST);
                let (labels, help, code) = (Vec::new(), None, "not-shown");
                self.diagnostics.push(Diagnostic { severity, message, labels, help, code });
            }
        }
        self.diagnostics
    }
}
