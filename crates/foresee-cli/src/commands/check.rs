//! `foresee check`: one pass over a trace for everything that was asked.

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_causality::judge::Judge;
use foresee_predict::correct::{Correct, CorrectLimits};
use foresee_predict::lattice::{Lattice, Limits, Predictions};
use foresee_predict::reorder::{Reorderings, Sliced, SlicedLimits};
use foresee_predict::{ANALYSES, Analysis, Court, Observed, Reorder, learn_initial_values};
use foresee_report::{Diagram, Report, TraceFacts, exit_status};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{EventSource, FileOrder, Finding, Names, Trace};

use crate::args::{CheckArgs, ReportFormat};
use crate::input::Input;
use crate::{bug, input, output, specs};

/// How many events of a witness are drawn at most.
const DRAWN_EVENTS: usize = 60;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let mut analyses = built_in(args)?;
    // Specifications are judged before the trace is opened, which may take long.
    let compiled: Vec<_> = args
        .spec
        .iter()
        .map(|file| {
            let source = specs::read(file)?;
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
            let reordered = Reorderings::default();
            if args.window != Some(1) {
                let beyond = Beyond { spec: &spec, resolved: &resolved, names: &names, args };
                let compile = || Compiled::all(&spec).map_err(|e| specs::BadSpec::new(&source, &e));
                let (simpler, found) = (Rc::clone(&predictions), Rc::clone(&reordered));
                analyses.extend(beyond.sliced(compile()?, simpler, found));
                let (simpler, found) = (Rc::clone(&predictions), Rc::clone(&reordered));
                analyses.extend(beyond.correct(compile()?, simpler, found));
            }
            judged.push(Judged { spec, resolved, predictions, reordered });
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
    if is_order_known && judged.iter().any(Judged::has_claims) {
        let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
        let judge = Judge::new(&whole);
        for judged in &judged {
            for (finding, diagram) in judged.confirm(&whole, &judge)? {
                findings.push(finding);
                witnesses.push(diagram);
            }
        }
    }
    let report = Report {
        name: trace.name(),
        trace: TraceFacts::new(summary.events, source.names()),
        analysed: summary.analysed,
        findings,
        witnesses,
        remarks: summary.remarks,
    };
    output::print(&match args.format {
        ReportFormat::Text => foresee_report::text::report(&report, output::style()),
        ReportFormat::Json => foresee_report::json::report(&report),
    })?;
    Ok(exit_status(&report))
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

/// What is looked for beyond the runs with the same causality.
struct Beyond<'a> {
    spec: &'a Spec,
    resolved: &'a Resolved,
    names: &'a Names,
    args: &'a CheckArgs,
}

impl Beyond<'_> {
    fn time(&self) -> Option<Duration> {
        self.args.time_limit.map(Duration::from_secs)
    }

    /// The search for patterns, if it is wanted and there are any.
    fn sliced(
        &self,
        properties: Vec<Compiled>,
        simpler: Predictions,
        found: Reorderings,
    ) -> Option<Box<dyn Analysis>> {
        let limits = SlicedLimits {
            reads: self.args.reads.into(),
            time: self.time(),
            ..SlicedLimits::default()
        };
        let Beyond { spec, resolved, names, .. } = *self;
        let sliced = Sliced::new(spec, properties, resolved, names, limits, simpler, found);
        let is_wanted = Reorder::from(self.args.reorder).is_sliced() && sliced.has_patterns();
        is_wanted.then(|| Box::new(sliced) as Box<dyn Analysis>)
    }

    /// The search for violations of other properties, if it is wanted and there are any.
    fn correct(
        &self,
        properties: Vec<Compiled>,
        simpler: Predictions,
        found: Reorderings,
    ) -> Option<Box<dyn Analysis>> {
        let default = CorrectLimits::default();
        let limits = CorrectLimits {
            reads: self.args.reads.into(),
            time: self.time(),
            width: self.args.window.map_or(default.width, |w| w as usize),
            nodes: self.args.max_states.unwrap_or(default.nodes),
            ..default
        };
        let Beyond { spec, resolved, names, .. } = *self;
        let correct = Correct::new(spec, properties, resolved, names, limits, simpler, found);
        let is_wanted = Reorder::from(self.args.reorder).is_correct() && correct.has_properties();
        is_wanted.then(|| Box::new(correct) as Box<dyn Analysis>)
    }
}

/// A specification and what was found in other runs.
struct Judged {
    spec: Spec,
    resolved: Resolved,
    predictions: Predictions,
    reordered: Reorderings,
}

impl Judged {
    fn has_claims(&self) -> bool {
        !self.predictions.borrow().is_empty() || !self.reordered.borrow().is_empty()
    }

    /// The findings whose witnesses stand up to the judge. One that does not is a mistake of ours,
    /// and nothing is printed that rests on it.
    fn confirm(
        &self,
        trace: &Trace,
        judge: &Judge<'_>,
    ) -> anyhow::Result<Vec<(Finding, Option<Diagram>)>> {
        let court = Court::new(&self.spec, &self.resolved, trace, judge);
        let mut confirmed = Vec::new();
        let mut add = |finding: Finding| {
            let witness = finding.witness.as_ref();
            let diagram = witness.map(|w| Diagram::of_witness(trace, w, DRAWN_EVENTS));
            confirmed.push((finding, diagram));
        };
        for claim in self.predictions.borrow().iter() {
            let finding = court.confirm(claim);
            add(finding.map_err(|e| bug::report(e, &format!("{claim:?}"), trace))?);
        }
        for claim in self.reordered.borrow().iter() {
            let finding = court.confirm_reordered(claim);
            add(finding.map_err(|e| bug::report(e, &format!("{claim:?}"), trace))?);
        }
        Ok(confirmed)
    }
}
