//! Reports internal errors of foresee.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use foresee_predict::session::InternalError;
use foresee_trace::{Name, Trace};

use crate::output;

/// The number of events in the report; a person can read a trace of this length.
const EVENTS: usize = 10_000;

/// Prints an internal error, and writes a file with what is needed to find the cause.
pub(crate) fn report(mistake: &InternalError<'_>) {
    let InternalError { property, error, candidate, trace, .. } = mistake;
    let text = describe(error, &format!("{candidate:?}"), *trace);
    let place = match write(&std::env::temp_dir(), &text) {
        Ok(path) => format!("{} has what is needed to find it", path.display()),
        Err(error) => format!("no report of it could be written: {error}"),
    };
    output::error(&anyhow::anyhow!(
        "internal error: the witness that was found for {property} is wrong, so nothing is claimed \
         about it: {error}; {place}. Please report this bug in foresee"
    ));
}

/// Writes a file of its own, with a name that cannot be guessed, for this user alone.
fn write(folder: &Path, text: &str) -> std::io::Result<PathBuf> {
    let mut file = tempfile::Builder::new()
        .prefix("foresee-bug-")
        .suffix(".txt")
        .disable_cleanup(true)
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file.path().to_owned())
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
    #[cfg(unix)]
    fn reports_are_for_their_user_alone() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let paths = [0, 1].map(|_| write(folder.path(), "what happened").unwrap());
        assert_ne!(paths[0], paths[1]);
        for path in paths {
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            assert_eq!(std::fs::read_to_string(path).unwrap(), "what happened");
        }
    }

    #[test]
    fn a_mistake_is_written_down() {
        let trace = foresee_testkit::trace! { T1: w(x)=1; T2: r(x)=1 };
        let text = describe(&"refused", "a claim", Some(&trace));
        assert!(text.contains("a claim") && text.contains("T2|r(x)=1|"), "{text}");
    }
}
