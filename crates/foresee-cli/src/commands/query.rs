//! Patterns given on the command line, and what an index says of them.

use std::path::Path;

use anyhow::ensure;
use foresee_causality::judge::Judge;
use foresee_index::{Answer, Index, IndexError, Question};
use foresee_predict::pattern::{Match, PATTERN};
use foresee_predict::{Analysed, Court};
use foresee_spec::ast::Spec;
use foresee_spec::{Diagnostic, Resolved};
use foresee_trace::{Finding, FindingKind, Outcome, Role, Site, Trace, Verdict};

use crate::args::{AlgorithmArg, AnalysisArgs, CheckArgs, ReorderArg};
use crate::bug::Confirmed;
use crate::commands::index;
use crate::output;
use crate::specs::{self, BadSpec, Source};

/// The patterns of `--pattern` and `--patterns`, as specifications.
pub(crate) fn sources(args: &AnalysisArgs) -> anyhow::Result<Vec<Source>> {
    let mut all = Vec::new();
    if !args.pattern.is_empty() {
        let lines = args.pattern.iter().enumerate();
        let text = lines.map(|(i, line)| item(line, || format!("pattern{}", i + 1))).collect();
        all.push(Source { name: "--pattern".to_owned(), text });
    }
    for file in &args.patterns {
        let Source { name, text } = specs::read(file)?;
        // Either a specification, or one pattern a line, named by its line.
        let starts = |line: &str| is_item(line) || line.trim_start().starts_with("init ");
        let text = match text.lines().any(starts) {
            true => text,
            false => {
                let lines = text.lines().enumerate();
                lines.map(|(i, line)| item(line, || format!("line{}", i + 1))).collect()
            }
        };
        all.push(Source { name, text });
    }
    Ok(all)
}

fn is_item(line: &str) -> bool {
    line.trim_start().starts_with("pattern ")
}

/// A line of a specification: one that has no name yet is given one.
fn item(line: &str, name: impl FnOnce() -> String) -> String {
    let bare = line.trim_start();
    match is_item(line) || bare.is_empty() || bare.starts_with('#') {
        true => format!("{line}\n"),
        false => format!("pattern {}: {bare}\n", name()),
    }
}

/// The index to ask: the one that was named, which must fit; or the one beside the trace, if it
/// does.
pub(crate) fn find(args: &CheckArgs) -> anyhow::Result<Option<Index>> {
    let trace = &args.input.trace;
    let wanted = !args.analysis.pattern.is_empty() || !args.analysis.patterns.is_empty();
    // The observed run alone, another algorithm or other reorderings are not what an index has.
    let is_sliced = matches!(args.analysis.reorder, ReorderArg::Sliced);
    let is_other = args.analysis.window.is_some() || args.analysis.algorithm != AlgorithmArg::Auto;
    if !wanted || is_sliced || is_other {
        ensure!(
            args.index.is_none(),
            "--index answers patterns over all runs with the same causality: give --pattern or \
             --patterns, and none of --window, --algorithm and --reorder sliced"
        );
        return Ok(None);
    }
    if trace == Path::new("-") {
        ensure!(args.index.is_none(), "standard input has no index");
        return Ok(None);
    }
    let path = args.index.clone().unwrap_or_else(|| index::beside(trace));
    if args.index.is_none() && !path.is_file() {
        return Ok(None);
    }
    let opened = Index::open_for(&path, trace).and_then(|index| {
        let asked = args.input.input_format.as_deref();
        if let Some(format) = asked.filter(|format| *format != index.format()) {
            let why = format!("it was read as {}, not as {format}", index.format());
            return Err(IndexError::Stale(why));
        }
        match index.is_repaired() && !args.input.repair {
            true => Err(IndexError::Stale("it was read with --repair".to_owned())),
            false => Ok(index),
        }
    });
    let place = path.display();
    match opened {
        Ok(index) => Ok(Some(index)),
        Err(error) if args.index.is_some() => Err(anyhow::anyhow!(
            "{place}: {error}; `foresee index {}` makes a new one",
            trace.display()
        )),
        Err(error) => {
            output::note(&format!(
                "{place} is not used: {error}; the trace is read instead, and `foresee index {}` \
                 makes a new one",
                trace.display()
            ));
            Ok(None)
        }
    }
}

/// What an index said of patterns.
#[derive(Default)]
pub(crate) struct Answered {
    pub(crate) analysed: Vec<Analysed>,
    /// What the observed run has.
    pub(crate) observed: Vec<Finding>,
    /// What other runs have, to be confirmed.
    predicted: Vec<Predicted>,
    /// The patterns that only the trace can answer.
    pub(crate) left: Vec<Source>,
}

/// The matches of one specification.
struct Predicted {
    spec: Spec,
    /// Its names; the trace, read again, has the same numbers for them.
    resolved: Resolved,
    matches: Vec<Match>,
}

impl Answered {
    /// How many events of the trace are needed to confirm what was found.
    pub(crate) fn needed_events(&self) -> u64 {
        let matches = self.predicted.iter().flat_map(|p| &p.matches);
        matches.map(|found| found.certain_at + 1).max().unwrap_or(0)
    }

    /// Asks an index about all patterns of some specifications.
    pub(crate) fn by(index: &mut Index, sources: Vec<Source>) -> anyhow::Result<Answered> {
        let mut answered = Answered::default();
        for source in sources {
            answered.ask(index, source).map_err(|error| match error.is::<IndexError>() {
                true => error.context("the index cannot be used; `foresee index` makes a new one"),
                false => error,
            })?;
        }
        Ok(answered)
    }

    fn ask(&mut self, index: &mut Index, source: Source) -> anyhow::Result<()> {
        let parsed = foresee_spec::parse(&source.text);
        specs::settle(&source, &parsed.diagnostics)?;
        let spec = parsed.spec;
        let resolution = foresee_spec::resolve(&spec, index.names());
        // That a name does not occur is said with the answer.
        let is_absent = |d: &Diagnostic| d.code == "unknown-name";
        let (absent, others): (Vec<_>, Vec<_>) =
            resolution.diagnostics.into_iter().partition(is_absent);
        specs::settle(&source, &others)?;
        let resolved = resolution.resolved;
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
                    output::note(&format!("{name} is answered from the trace, because {why}"));
                    left.push(i);
                    continue;
                }
            };
            self.analysed.push(analysed(name, &answer, near(&answer, &absent, &source)));
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
            return Err(BadSpec::new(&source, &mistakes).into());
        }
        if !left.is_empty() {
            self.left.push(only(source, &spec, &left));
        }
        self.predicted.push(Predicted { spec, resolved, matches });
        Ok(())
    }

    /// The predictions whose witnesses stand up to the judge.
    pub(crate) fn confirm(&self, trace: &Trace, judge: &Judge<'_>) -> Confirmed {
        let mut confirmed = Confirmed::default();
        for Predicted { spec, resolved, matches } in &self.predicted {
            let court = Court::new(spec, resolved, trace, judge);
            for claim in matches {
                let about = (PATTERN, spec.properties[claim.property].name.name.as_str());
                confirmed.add(court.confirm_match(claim), about, claim, trace);
            }
        }
        confirmed
    }
}

/// A specification without the properties that have been answered. What is left keeps its place.
fn only(mut source: Source, spec: &Spec, left: &[usize]) -> Source {
    for (i, property) in spec.properties.iter().enumerate() {
        if !left.contains(&i) {
            let range = property.span.start as usize..property.span.end as usize;
            let blank = source.text[range.clone()].bytes().map(|byte| match byte {
                b'\n' => '\n',
                _ => ' ',
            });
            let blank: String = blank.collect();
            source.text.replace_range(range, &blank);
        }
    }
    source
}

/// The names that may have been meant by those that keep a pattern from matching.
fn near(answer: &Answer, absent: &[Diagnostic], source: &Source) -> Vec<String> {
    let Answer::CannotMatch { position } = answer else { return Vec::new() };
    let is_in = |d: &&Diagnostic| {
        let span = d.labels.first().map(|(span, _)| span.start as usize..span.end as usize);
        let name = span.and_then(|span| source.text.get(span));
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
        statement,
        notes,
        stats: Vec::new(),
    }
}

/// The finding that the observed run itself matches.
fn observed(name: &str, events: &[u64]) -> Finding {
    let last = events.last().copied();
    let all: Vec<String> = events.iter().map(u64::to_string).collect();
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
        details: vec![("events that led there".to_owned(), all.join(", "))],
        shown_by: None,
    }
}
