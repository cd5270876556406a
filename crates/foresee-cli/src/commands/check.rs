//! `foresee check`: one pass over a trace for everything that was asked.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_index::Index;
use foresee_predict::lattice::{Lattice, Limits, Predictions};
use foresee_predict::pattern::{Algorithm, Matches, Patterns};
use foresee_predict::{ANALYSES, Analysis, Observed, confirm, confirm_match, learn_initial_values};
use foresee_report::{Diagram, Report, TraceFacts, exit_status};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{Batch, EventSource, FileOrder, Finding, ReadError, Trace};

use crate::args::{CheckArgs, PatternAlgorithm, ReportFormat};
use crate::commands::picture::Pictures;
use crate::commands::query::{self, Answered};
use crate::input::Input;
use crate::{input, output, specs};

/// How many events of a witness are drawn at most.
const DRAWN_EVENTS: usize = 60;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let pictures = args.lattice.as_deref().map(Pictures::new).transpose()?;
    let mut analyses = built_in(args)?;
    let mut patterns = query::sources(args)?;
    let index = query::find(args)?;
    let mut answered = Answered::default();
    if let Some(mut index) = index {
        answered = Answered::by(&mut index, patterns)?;
        patterns = std::mem::take(&mut answered.left);
        if patterns.is_empty() && args.spec.is_empty() && analyses.is_empty() {
            return without_pass(args, &index, answered);
        }
    }
    // Specifications are judged before the trace is opened, which may take long.
    let files = args.spec.iter().map(|file| specs::read(file));
    let compiled: Vec<_> = files
        .chain(patterns.into_iter().map(Ok))
        .map(|source| {
            let source = source?;
            let (spec, compiled) = specs::compile(&source)?;
            Ok((source, spec, compiled))
        })
        .collect::<anyhow::Result<_>>()?;
    let trace = Input::new(&args.input, !compiled.is_empty())?;
    let mut judged = Vec::new();
    if !compiled.is_empty() {
        let names = trace.names()?;
        for (source, mut spec, properties) in compiled {
            let resolution = foresee_spec::resolve(&spec, &names);
            specs::settle(&source, &resolution.diagnostics)?;
            let resolved = resolution.resolved;
            let open = || trace.open_raw();
            learn_initial_values(&mut spec, &properties, &resolved, &names, open)
                .with_context(|| trace.name())?;
            // Patterns have a predictor of their own, which watches the observed run, too.
            let (patterns, others) = split(&spec, properties, args);
            if let Some((spec, properties)) = patterns {
                let matches = Matches::default();
                let found = Rc::clone(&matches);
                let algorithm = Algorithm::Auto;
                let patterns = Patterns::new(properties, &resolved, &names, algorithm, found);
                analyses.push(Box::new(patterns));
                let resolved = resolved.clone();
                judged.push(Judged {
                    spec,
                    resolved,
                    predictions: Predictions::default(),
                    matches,
                });
            }
            let Some((spec, properties)) = others else { continue };
            // The monitors of the two analyses grow apart.
            let again = Compiled::all(&spec).map_err(|e| specs::BadSpec::new(&source, &e))?;
            analyses.push(Box::new(Observed::new(&spec, properties, &resolved, &names)));
            let predictions = Predictions::default();
            // The observed run alone needs no lattice, and no more memory than its monitor.
            if args.window != Some(1) {
                let found = Rc::clone(&predictions);
                let limits = limits(args);
                let lattice = Lattice::new(&spec, again, &resolved, &names, limits, found);
                analyses.push(Box::new(lattice));
            }
            judged.push(Judged { spec, resolved, predictions, matches: Matches::default() });
        }
    }
    let mut source = trace.open()?;
    let bar = input::progress("checking");
    let mut findings = std::mem::take(&mut answered.observed);
    let summary = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |n| {
        bar.set_position(n);
    })
    .with_context(|| trace.name())?;
    bar.finish_and_clear();
    let mut witnesses: Vec<Option<Diagram>> = findings.iter().map(|_| None).collect();
    // From the order of notes no other run follows, so nothing that was predicted stands.
    let is_order_known = summary.remarks.order == FileOrder::Observed;
    if is_order_known && (judged.iter().any(Judged::has_found) || answered.needed_events() > 0) {
        let needed: Option<Vec<u64>> = judged.iter().map(Judged::needed_events).collect();
        let whole = match needed.and_then(|all| all.into_iter().max()) {
            Some(events) => load_first(&mut trace.open()?, events.max(answered.needed_events())),
            None => Trace::load(&mut trace.open()?),
        };
        let whole = whole.with_context(|| trace.name())?;
        let mut confirmed = answered.confirm(&whole, DRAWN_EVENTS)?;
        for judged in &judged {
            confirmed.extend(judged.confirm(&whole)?);
        }
        for (finding, diagram) in confirmed {
            findings.push(finding);
            witnesses.push(diagram);
        }
    }
    let report = Report {
        name: trace.name(),
        trace: TraceFacts::new(summary.events, source.names()),
        analysed: [answered.analysed, summary.analysed].concat(),
        findings,
        witnesses,
        remarks: summary.remarks,
    };
    let status = print(args, &report)?;
    if let Some(mut pictures) = pictures {
        let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
        for Judged { spec, resolved, predictions, .. } in &judged {
            pictures.draw(&whole, spec, resolved, &predictions.borrow(), judged.len() == 1)?;
        }
    }
    Ok(status)
}

fn print(args: &CheckArgs, report: &Report) -> anyhow::Result<u8> {
    output::print(&match args.format {
        ReportFormat::Text => foresee_report::text::report(report, output::style()),
        ReportFormat::Json => foresee_report::json::report(report),
    })?;
    Ok(exit_status(report))
}

/// Reports what an index answered. The trace is read only to confirm what other runs have.
fn without_pass(args: &CheckArgs, index: &Index, answered: Answered) -> anyhow::Result<u8> {
    let trace = Input::new(&args.input, false)?;
    let confirmed = match answered.needed_events() {
        0 => Vec::new(),
        events => {
            let first = load_first(&mut trace.open()?, events).with_context(|| trace.name())?;
            answered.confirm(&first, DRAWN_EVENTS)?
        }
    };
    let witnesses = answered.observed.iter().map(|_| None);
    let (found, drawn): (Vec<_>, Vec<_>) = confirmed.into_iter().unzip();
    let report = Report {
        name: trace.name(),
        trace: TraceFacts::new(index.events(), index.names()),
        analysed: answered.analysed,
        witnesses: witnesses.chain(drawn).collect(),
        findings: [answered.observed, found].concat(),
        remarks: index.remarks().clone(),
    };
    print(args, &report)
}

/// The checks that need no specification.
fn built_in(args: &CheckArgs) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
    let mut analyses: Vec<Box<dyn Analysis>> = Vec::new();
    for name in args.check.iter().filter(|name| *name != "spec") {
        match ANALYSES.iter().find(|kind| kind.name == name) {
            Some(kind) => analyses.push((kind.new)()),
            None => {
                let known: Vec<_> = ANALYSES.iter().map(|kind| kind.name).collect();
                bail!("there is no check named `{name}`; there are: spec, {}", known.join(", "));
            }
        }
    }
    ensure!(
        !args.spec.is_empty() || !args.check.iter().any(|name| name == "spec"),
        "--check spec needs a specification: give one with --spec FILE"
    );
    Ok(analyses)
}

fn limits(args: &CheckArgs) -> Limits {
    let default = Limits::default();
    Limits {
        window: args.window.map(|w| w as usize),
        lookahead: args.lookahead,
        cuts: args.max_states.unwrap_or(default.cuts),
        memory: args.max_memory.saturating_mul(1 << 20),
        cores: if args.jobs == 0 { default.cores } else { args.jobs },
        time: args.time_limit.map(Duration::from_secs),
        ..default
    }
}

/// The part of a specification that has these properties.
type Part = (Spec, Vec<Compiled>);

/// The patterns that are predicted by themselves, and everything else.
fn split(spec: &Spec, compiled: Vec<Compiled>, args: &CheckArgs) -> (Option<Part>, Option<Part>) {
    let mut parts = [(spec.clone(), Vec::new()), (spec.clone(), Vec::new())];
    parts.iter_mut().for_each(|(spec, _)| spec.properties.clear());
    // The observed run alone needs no prediction; ideals, and pictures, are those of the lattice.
    let is_own = args.window != Some(1)
        && args.algorithm != PatternAlgorithm::Ideals
        && args.lattice.is_none();
    for (property, compiled) in spec.properties.iter().zip(compiled) {
        let other = usize::from(!is_own || !Patterns::accepts(&compiled));
        parts[other].0.properties.push(property.clone());
        parts[other].1.push(compiled);
    }
    let [patterns, others] = parts.map(|part| (!part.1.is_empty()).then_some(part));
    (patterns, others)
}

/// The first events of a trace, in whole batches: all that the witnesses of patterns need.
fn load_first(source: &mut dyn EventSource, events: u64) -> Result<Trace, ReadError> {
    let mut trace = Trace::default();
    let mut batch = Batch::default();
    while (trace.events.len() as u64) < events && source.next_batch(&mut batch)? {
        trace.push_batch(&mut batch);
    }
    trace.names = source.names().clone();
    Ok(trace)
}

/// A specification and what was found of it.
struct Judged {
    spec: Spec,
    resolved: Resolved,
    predictions: Rc<RefCell<Vec<foresee_predict::lattice::Prediction>>>,
    matches: Matches,
}

impl Judged {
    fn has_found(&self) -> bool {
        !self.predictions.borrow().is_empty() || !self.matches.borrow().is_empty()
    }

    /// How many of the first events of the trace the witnesses need; `None` is all.
    fn needed_events(&self) -> Option<u64> {
        match self.predictions.borrow().is_empty() {
            true => Some(self.matches.borrow().iter().map(|m| m.certain_at + 1).max().unwrap_or(0)),
            false => None,
        }
    }

    /// The findings whose witnesses stand up to the judge. One that does not is a mistake of ours,
    /// and nothing is printed that rests on it.
    fn confirm(&self, trace: &Trace) -> anyhow::Result<Vec<(Finding, Option<Diagram>)>> {
        let (predictions, matches) = (self.predictions.borrow(), self.matches.borrow());
        let (spec, resolved) = (&self.spec, &self.resolved);
        let predicted = predictions.iter().map(|p| confirm(p, spec, resolved, trace));
        let matched = matches.iter().map(|m| confirm_match(m, spec, resolved, trace));
        let confirmed = predicted.chain(matched).map(|finding| {
            let finding = finding
                .context("internal error, please report it with the trace and the specification")?;
            let witness = finding.witness.as_ref();
            let diagram = witness.map(|w| Diagram::of_order(trace, &w.order, DRAWN_EVENTS));
            Ok((finding, diagram))
        });
        confirmed.collect()
    }
}
