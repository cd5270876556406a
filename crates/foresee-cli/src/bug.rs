//! Reports internal errors of foresee.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::PathBuf;

use foresee_predict::session::InternalError;
use foresee_trace::{Name, Trace};

use crate::output;

/// The number of events in the report; a person can read a trace of this length.
const EVENTS: usize = 10_000;

/// Prints an internal error, and writes a file with what is needed to find the cause.
pub(crate) fn report(mistake: &InternalError<'_>) {
    let InternalError { property, error, candidate, trace, .. } = mistake;
    let text = describe(error, &format!("{candidate:?}"), *trace);
    let write = || -> std::io::Result<PathBuf> {
        let mut file = tempfile::Builder::new()
            .prefix("foresee-bug-")
            .suffix(".txt")
            .disable_cleanup(true)
            .tempfile()?;
        file.write_all(text.as_bytes())?;
        Ok(file.path().to_owned())
    };
    let place = match write() {
        Ok(path) => format!("{} has what is needed to find it", path.display()),
        Err(error) => format!("no report of it could be written: {error}"),
    };
    output::error(&anyhow::anyhow!(
        "internal error: a witness was found for {property} that is none, so nothing is claimed of \
         it: {error}; {place}. Please report this mistake of foresee"
    ));
}

fn describe(error: &dyn Display, claim: &str, trace: Option<&Trace>) -> String {
    let mut text = format!("foresee {}: {error}\n\n{claim}\n\ntrace:\n", env!("CARGO_PKG_VERSION"));
    let Some(trace) = trace else { return text + "not in memory\n" };
    for event in trace.events.iter().take(EVENTS) {
        let thread = Name(trace.names.threads.get(event.thread()));
        let step = event.describe(&trace.names, &trace.pool);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{thread}|{step}|");
    }
    if trace.events.len() > EVENTS {
        let _ = writeln!(text, "... and {} more events", trace.events.len() - EVENTS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_written_down() {
        let trace = foresee_testkit::trace! { T1: w(x)=1; T2: r(x)=1 };
        let text = describe(&"refused", "a claim", Some(&trace));
        assert!(text.contains("a claim") && text.contains("T2|r(x)=1|"), "{text}");
    }
}
