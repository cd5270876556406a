//! `foresee check`: one pass over a trace for everything that was asked.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_predict::lattice::{Lattice, Limits, Predictions};
use foresee_predict::{ANALYSES, Analysis, Observed, confirm, learn_initial_values};
use foresee_report::{Diagram, Report, TraceFacts, exit_status};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{EventSource, FileOrder, Finding, Trace};

use crate::args::{AnalysisArgs, CheckArgs, ReportFormat};
use crate::input::Input;
use crate::{input, output, specs};

/// How many events of a witness are drawn at most.
const DRAWN_EVENTS: usize = 60;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    // Specifications are judged before the trace is opened, which may take long.
    let wanted = prepare(&args.analysis)?;
    ensure!(
        !wanted.compiled.is_empty() || !wanted.analyses.is_empty(),
        "nothing to look for: give a specification with --spec FILE or a check with --check NAME"
    );
    let trace = Input::new(&args.input, !wanted.compiled.is_empty())?;
    look(wanted, &args.analysis, &trace, &[])
}

/// What is looked for, once that is known to be possible.
pub(crate) struct Wanted {
    pub(crate) analyses: Vec<Box<dyn Analysis>>,
    pub(crate) compiled: Vec<(specs::Source, Spec, Vec<Compiled>)>,
}

/// Finds out what is looked for.
pub(crate) fn prepare(args: &AnalysisArgs) -> anyhow::Result<Wanted> {
    let analyses = built_in(args)?;
    let compiled: Vec<_> = args
        .spec
        .iter()
        .map(|file| {
            let source = specs::read(file)?;
            let (spec, compiled) = specs::compile(&source)?;
            Ok((source, spec, compiled))
        })
        .collect::<anyhow::Result<_>>()?;
    Ok(Wanted { analyses, compiled })
}

/// Looks for it in a trace and prints the report, with `notes` of how the trace came about;
/// returns the exit status.
pub(crate) fn look(
    wanted: Wanted,
    args: &AnalysisArgs,
    trace: &Input<'_>,
    notes: &[String],
) -> anyhow::Result<u8> {
    let Wanted { mut analyses, compiled } = wanted;
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
    let mut findings = Vec::new();
    let summary = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |n| {
        bar.set_position(n);
    })
    .with_context(|| trace.name())?;
    bar.finish_and_clear();
    let mut witnesses: Vec<Option<Diagram>> = findings.iter().map(|_| None).collect();
    // From the order of notes no other run follows, so nothing that was predicted stands.
    let is_order_known = summary.remarks.order == FileOrder::Observed;
    if is_order_known && judged.iter().any(|j| !j.predictions.borrow().is_empty()) {
        let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
        for judged in &judged {
            for (finding, diagram) in judged.confirm(&whole)? {
                findings.push(finding);
                witnesses.push(diagram);
            }
        }
    }
    let mut remarks = summary.remarks;
    remarks.warnings.splice(0..0, notes.iter().cloned());
    let report = Report {
        name: trace.name(),
        trace: TraceFacts::new(summary.events, source.names()),
        analysed: summary.analysed,
        findings,
        witnesses,
        remarks,
    };
    output::print(&match args.format {
        ReportFormat::Text => foresee_report::text::report(&report, output::style()),
        ReportFormat::Json => foresee_report::json::report(&report),
    })?;
    Ok(exit_status(&report))
}

/// The checks that need no specification.
fn built_in(args: &AnalysisArgs) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
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

fn limits(args: &AnalysisArgs) -> Limits {
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
