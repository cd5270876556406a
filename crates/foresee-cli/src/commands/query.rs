//! Patterns given on the command line, and their answers from an index.

use std::path::Path;

use anyhow::ensure;
use foresee_index::{Index, IndexError};
use foresee_predict::session::Session;

use crate::args::{AlgorithmArg, AnalysisArgs, CheckArgs, ReorderArg};
use crate::commands::index;
use crate::console::Console;
use crate::output;
use crate::specs::{self, Source};

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
        // Either a specification, or one pattern per line, named by its line.
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

/// A line of a specification; a pattern without a name gets one.
fn item(line: &str, name: impl FnOnce() -> String) -> String {
    let bare = line.trim_start();
    match is_item(line) || bare.is_empty() || bare.starts_with('#') {
        true => format!("{line}\n"),
        false => format!("pattern {}: {bare}\n", name()),
    }
}

/// The index to use: the one given by the user, which must match the trace; or the one beside the
/// trace, if it matches.
pub(crate) fn find(args: &CheckArgs) -> anyhow::Result<Option<Index>> {
    let trace = &args.input.trace;
    let wanted = !args.analysis.pattern.is_empty() || !args.analysis.patterns.is_empty();
    // An index does not cover the observed run alone, another algorithm or other reorderings.
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

/// Asks an index about the patterns; returns those that only the trace can answer.
pub(crate) fn ask(
    session: &mut Session,
    index: &mut Index,
    sources: Vec<Source>,
) -> anyhow::Result<Vec<Source>> {
    let mut left = Vec::new();
    let mut console = Console::new("asking the index");
    for Source { name, text } in sources {
        let rest = session.ask_index(index, (&name, &text), &mut console).map_err(specs::failed)?;
        left.extend(rest.map(|text| Source { name, text }));
    }
    console.finish();
    Ok(left)
}
