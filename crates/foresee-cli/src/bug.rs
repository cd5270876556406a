//! A mistake of ours, written down for whoever will look for it.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context;
use foresee_predict::Unconfirmed;
use foresee_trace::{Name, Trace};

/// How many events of the trace go into the report; a trace of this length can be read by a person.
const EVENTS: usize = 10_000;

/// The error of a witness that did not stand up to the judge. Nothing is printed that rests on it;
/// what is needed to find the mistake goes to a file.
pub(crate) fn report(error: Unconfirmed, claim: &str, trace: &Trace) -> anyhow::Error {
    let text = describe(&error, claim, trace);
    let path: PathBuf =
        std::env::temp_dir().join(format!("foresee-bug-{}.txt", std::process::id()));
    let place = match std::fs::write(&path, text).context("cannot write") {
        Ok(()) => format!("{} has what is needed to find it", path.display()),
        Err(error) => format!("no report of it could be written: {error:#}"),
    };
    anyhow::Error::new(error).context(format!(
        "internal error: a witness was found that is none, so nothing is reported; {place}. \
         Please report this mistake of foresee"
    ))
}

fn describe(error: &Unconfirmed, claim: &str, trace: &Trace) -> String {
    let mut text = format!("foresee {}: {error}\n\n{claim}\n\ntrace:\n", env!("CARGO_PKG_VERSION"));
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
        let error = format!("{:#}", report(Unconfirmed::Verdict, "a claim", &trace));
        assert!(error.contains("internal error"), "{error}");
        let path = std::env::temp_dir().join(format!("foresee-bug-{}.txt", std::process::id()));
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert!(text.contains("a claim") && text.contains("T2|r(x)=1|"), "{text}");
    }
}
