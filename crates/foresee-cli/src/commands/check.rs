//! `foresee check`: one pass over a trace for everything that was asked.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_index::Index;
use foresee_predict::lattice::{Lattice, Limits, Predictions};
use foresee_predict::{ANALYSES, Analysis, Observed, confirm, learn_initial_values};
use foresee_report::{Diagram, Report, TraceFacts, exit_status};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{EventSource, FileOrder, Finding, Trace};

use crate::args::{CheckArgs, ReportFormat};
use crate::commands::query::{self, Answered};
use crate::input::Input;
use crate::{input, output, specs};

/// How many events of a witness are drawn at most.
const DRAWN_EVENTS: usize = 60;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
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
            judged.push(Judged { spec, resolved, predictions });
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
    let predicted = judged.iter().any(|j| !j.predictions.borrow().is_empty());
    if is_order_known && (predicted || answered.needs_trace()) {
        let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
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
    print(args, &report)
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
    let confirmed = match answered.needs_trace() {
        true => {
            let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
            answered.confirm(&whole, DRAWN_EVENTS)?
        }
        false => Vec::new(),
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
        cuts: args.max_states.unwrap_or(default.cuts),
        // Who allows more cuts allows them in one level, too.
        level: args.max_states.map_or(default.level, |n| n as usize),
        time: args.time_limit.map(Duration::from_secs),
        ..default
    }
}

/// A specification and what its lattices showed.
struct Judged {
    spec: Spec,
    resolved: Resolved,
    predictions: Rc<RefCell<Vec<foresee_predict::lattice::Prediction>>>,
}

impl Judged {
    /// The findings whose witnesses stand up to the judge. One that does not is a mistake of ours,
    /// and nothing is printed that rests on it.
    fn confirm(&self, trace: &Trace) -> anyhow::Result<Vec<(Finding, Option<Diagram>)>> {
        let predictions = self.predictions.borrow();
        let confirmed = predictions.iter().map(|prediction| {
            let finding = confirm(prediction, &self.spec, &self.resolved, trace)
                .context("internal error, please report it with the trace and the specification")?;
            let witness = finding.witness.as_ref();
            let diagram = witness.map(|w| Diagram::of_order(trace, &w.order, DRAWN_EVENTS));
            Ok((finding, diagram))
        });
        confirmed.collect()
    }
}
