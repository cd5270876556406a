//! Patterns that an index answers, without a pass over the trace.

use foresee_index::{Answer, Index, Question};
use foresee_spec::Diagnostic;
use foresee_spec::ast::Spec;
use foresee_trace::{Finding, FindingKind, Outcome, Role, Site, Verdict};

use super::answered::{Answered, Predicted};
use super::error::SessionError;
use super::report::TraceFacts;
use super::spec::{BadSpec, Specification};
use super::{Listener, Session};
use crate::analysis::{Analysed, Conclusion};
use crate::info::PATTERN;
use crate::observed::trail;
use crate::pattern::Match;

impl Session {
    /// Asks an index about all patterns of a specification. Returns the text of the specification
    /// without those that it could answer, if there are others: these have to be looked for in the
    /// trace.
    pub fn ask_index(
        &mut self,
        index: &mut Index,
        (name, text): (&str, &str),
        listener: &mut dyn Listener,
    ) -> Result<Option<String>, SessionError> {
        let answered = self.answered.get_or_insert_with(|| Answered {
            facts: TraceFacts::new(index.events(), index.names()),
            remarks: index.remarks().clone(),
            ..Answered::default()
        });
        answered.ask(index, (name, text), listener)
    }
}

impl Answered {
    fn ask(
        &mut self,
        index: &mut Index,
        (name, text): (&str, &str),
        listener: &mut dyn Listener,
    ) -> Result<Option<String>, SessionError> {
        let parsed = foresee_spec::parse(text);
        let bad =
            |diagnostics| BadSpec { name: name.to_owned(), text: text.to_owned(), diagnostics };
        if parsed.has_errors() {
            return Err(bad(parsed.diagnostics).into());
        }
        let source = Specification {
            name: name.to_owned(),
            text: text.to_owned(),
            spec: parsed.spec,
            warnings: Vec::new(),
        };
        let resolution = foresee_spec::resolve(&source.spec, index.names());
        // That a name does not occur is said with the answer.
        let is_absent = |d: &Diagnostic| d.code == "unknown-name";
        let (absent, others): (Vec<_>, Vec<_>) =
            resolution.diagnostics.into_iter().partition(is_absent);
        if others.iter().any(Diagnostic::is_error) {
            return Err(bad(others).into());
        }
        for warnings in [parsed.diagnostics, others] {
            if !warnings.is_empty() {
                listener.warning(&source, &warnings);
            }
        }
        let (spec, resolved) = (source.spec, resolution.resolved);
        let (mut matches, mut left, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
        for (i, property) in spec.properties.iter().enumerate() {
            let name = &property.name.name;
            let asked = match Question::new(property, &resolved, index.names()) {
                Ok(Ok(question)) => index.answer(&question)?.map(|answer| (question, answer)),
                Ok(Err(why)) => Err(why),
                Err(mistake) => {
                    mistakes.push(mistake);
                    continue;
                }
            };
            let (question, answer) = match asked {
                Ok(answered) => answered,
                Err(why) => {
                    listener.note(&format!("{name} is answered from the trace, because {why}"));
                    left.push(i);
                    continue;
                }
            };
            self.analysed.push(analysed(name, &answer, near(&answer, &absent, text)));
            match answer {
                Answer::Observed(events) => self.observed.push(observed(name, &events)),
                Answer::Predicted(_) => {
                    let tuple = index.earliest(&question)?.unwrap_or_default();
                    let certain_at = tuple.iter().max().copied().unwrap_or(0);
                    matches.push(Match { property: i, binding: Vec::new(), tuple, certain_at });
                }
                _ => {}
            }
        }
        if !mistakes.is_empty() {
            return Err(bad(mistakes).into());
        }
        let left = (!left.is_empty()).then(|| only(text.to_owned(), &spec, &left));
        self.predicted.push(Predicted { spec, resolved, matches });
        Ok(left)
    }
}

/// A specification without the properties that have been answered. What is left keeps its place.
fn only(mut text: String, spec: &Spec, left: &[usize]) -> String {
    for (i, property) in spec.properties.iter().enumerate() {
        if !left.contains(&i) {
            let range = property.span.start as usize..property.span.end as usize;
            let blank = text[range.clone()].bytes().map(|byte| match byte {
                b'\n' => '\n',
                _ => ' ',
            });
            let blank: String = blank.collect();
            text.replace_range(range, &blank);
        }
    }
    text
}

/// The names that may have been meant by those that keep a pattern from matching.
fn near(answer: &Answer, absent: &[Diagnostic], text: &str) -> Vec<String> {
    let Answer::CannotMatch { position } = answer else { return Vec::new() };
    let is_in = |d: &&Diagnostic| {
        let span = d.labels.first().map(|(span, _)| span.start as usize..span.end as usize);
        let name = span.and_then(|span| text.get(span));
        name.is_some_and(|name| position.contains(name))
    };
    let describe = |d: &Diagnostic| match &d.help {
        Some(help) => format!("{}; {help}", d.message),
        None => d.message.clone(),
    };
    absent.iter().filter(is_in).map(describe).collect()
}

/// What the index found out, in a sentence. A pattern that cannot match is not called clean: an
/// event that was never captured is more often misspelt, or not instrumented, than impossible.
fn analysed(name: &str, answer: &Answer, notes: Vec<String>) -> Analysed {
    let (outcome, statement) = match answer {
        Answer::Observed(_) => (Outcome::Exhausted, "violated in the observed run".to_owned()),
        Answer::Predicted(_) => {
            (Outcome::Exhausted, "violated in another run with the same causality".to_owned())
        }
        Answer::Never => (
            Outcome::Exhausted,
            "no violation; every run with this causality was covered (by the index; where critical \
             sections swap, only a pass over the trace looks: --reorder sliced)"
                .to_owned(),
        ),
        Answer::CannotMatch { position } => {
            (Outcome::NothingRelevant, format!("cannot match: `{position}` does not occur"))
        }
        Answer::GaveUp { choices } => (
            Outcome::StateLimit,
            format!(
                "given up after {choices} choices of events; name the threads of its positions to \
                 make it easier"
            ),
        ),
        Answer::OrderUnknown => (
            Outcome::OrderUnknown,
            "nothing is claimed of other runs: the order of this trace is only that in which its \
             events were noted"
                .to_owned(),
        ),
    };
    Analysed {
        name: PATTERN,
        property: Some(name.to_owned()),
        outcome,
        conclusion: Conclusion::Other,
        statement,
        notes,
        stats: Vec::new(),
    }
}

/// The finding that the observed run itself matches.
fn observed(name: &str, events: &[u64]) -> Finding {
    let last = events.last().copied();
    let step = |&event: &u64| {
        let role = if Some(event) == last { Role::Violation } else { Role::Step };
        Site::new(role, Some(event))
    };
    Finding {
        fingerprint: None,
        kind: FindingKind::Observed,
        analysis: PATTERN,
        property: name.to_owned(),
        verdict: Verdict::Violated,
        message: format!("violated in the observed run, at event {}", last.unwrap_or(0)),
        event: last,
        witness: None,
        sites: events.iter().map(step).collect(),
        about: Vec::new(),
        details: vec![trail(events)],
        shown_by: None,
        schedule: None,
        confirmation: None,
    }
}
