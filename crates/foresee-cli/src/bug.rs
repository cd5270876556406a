//! A mistake of ours, written down for whoever will look for it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

use foresee_predict::{Analysed, Unconfirmed};
use foresee_trace::{Finding, Name, Trace};

use crate::output;

/// How many events of the trace go into the report; a trace of this length can be read by a person.
const EVENTS: usize = 10_000;

/// What was claimed of a property and is not so.
pub(crate) struct Mistake {
    analysis: &'static str,
    property: String,
    error: Unconfirmed,
}

/// Keeps what stands up to the judge. Of what does not, nothing is printed that rests on it; what is
/// needed to find the mistake goes to a file.
#[derive(Default)]
pub(crate) struct Confirmed {
    pub(crate) findings: Vec<Finding>,
    pub(crate) mistakes: Vec<Mistake>,
}

impl Confirmed {
    /// Adds what became of a claim of an analysis about a property.
    pub(crate) fn add(
        &mut self,
        judged: Result<Finding, Unconfirmed>,
        (analysis, property): (&'static str, &str),
        claim: &dyn std::fmt::Debug,
        trace: &Trace,
    ) {
        match judged {
            Ok(finding) => self.findings.push(finding),
            Err(error) => {
                report(&error, property, claim, trace);
                self.mistakes.push(Mistake { analysis, property: property.to_owned(), error });
            }
        }
    }

    /// The mistakes cost their properties the answers, and no others.
    pub(crate) fn own_up(&self, analysed: &mut [Analysed]) {
        for Mistake { analysis, property, error } in &self.mistakes {
            let is_its = |a: &&mut Analysed| {
                a.name == *analysis && a.property.as_ref().is_none_or(|p| p == property)
            };
            for one in analysed.iter_mut().filter(is_its) {
                *one = Analysed::mistake(one.name, one.property.take(), error);
            }
        }
    }
}

/// Says that a witness did not stand up to the judge, and writes down what is needed to find out why.
pub(crate) fn report(
    error: &Unconfirmed,
    property: &str,
    claim: &dyn std::fmt::Debug,
    trace: &Trace,
) {
    let text = describe(error, &format!("{claim:?}"), trace);
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
    use foresee_trace::Outcome;

    #[test]
    fn a_mistake_is_written_down() {
        let trace = foresee_testkit::trace! { T1: w(x)=1; T2: r(x)=1 };
        let text = describe(&Unconfirmed::Verdict, "a claim", &trace);
        assert!(text.contains("a claim") && text.contains("T2|r(x)=1|"), "{text}");
    }

    #[test]
    fn a_mistake_costs_one_property_its_answer() {
        let answer = |property: &str| Analysed {
            name: "lattice",
            property: Some(property.to_owned()),
            outcome: Outcome::Exhausted,
            statement: "no violation".to_owned(),
            notes: Vec::new(),
            stats: Vec::new(),
        };
        let mut analysed = [answer("p"), answer("q")];
        let (error, property) = (Unconfirmed::Verdict, "p".to_owned());
        let mistakes = vec![Mistake { analysis: "lattice", property, error }];
        Confirmed { findings: Vec::new(), mistakes }.own_up(&mut analysed);
        let outcomes = analysed.each_ref().map(|one| one.outcome);
        assert_eq!(outcomes, [Outcome::Mistake, Outcome::Exhausted]);
        assert!(analysed[0].statement.contains("internal error"), "{:?}", analysed[0]);
    }
}
