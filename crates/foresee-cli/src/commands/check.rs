//! `foresee check`: one pass over a trace for everything that was asked.

use std::rc::Rc;

use anyhow::{Context, bail, ensure};
use foresee_causality::judge::Judge;
use foresee_index::Index;
use foresee_predict::checks::{Glob, Suppressions, is_check};
use foresee_predict::correct::{Correct, CorrectLimits};
use foresee_predict::lattice::{LATTICE, Lattice, Limits};
use foresee_predict::nondeterminism::{NONDETERMINISM, Nondeterminism, Options};
use foresee_predict::pattern::{Algorithm, PATTERN, Patterns};
use foresee_predict::reorder::{Sliced, SlicedLimits};
use foresee_predict::{
    ANALYSES, Analysed, Analysis, Claims, Court, MONITORABILITY, Monitorability,
    MonitorabilityOptions, Observed, Reorder, Summary, complete, complete_from, keeps_causality,
    learn_initial_values, settle_notes,
};
use foresee_report::{Diagram, Report, TraceFacts, exit_status};
use foresee_spec::Resolved;
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{
    Batch, EventSource, FileOrder, Finding, FindingKind, Names, Outcome, ReadError, Remarks, Trace,
    Validated,
};

use crate::args::{AlgorithmArg, AnalysisArgs, CheckArgs, ReportFormat};
use crate::bug::Confirmed;
use crate::commands::picture::Pictures;
use crate::commands::query::{self, Answered};
use crate::commands::thinned;
use crate::config::Config;
use crate::input::Input;
use crate::{checks, input, output, specs};

/// How many events of a witness are drawn at most.
const DRAWN_EVENTS: usize = 60;

/// What searches beyond the causality keep of each event of the trace.
const BYTES_AN_EVENT: usize = 20;

/// What a lattice keeps of a program that is still running, to find a witness without a second pass.
const LIVE_MEMORY: usize = 1 << 20;

/// How many witnesses of one check are drawn at most; the others are in the JSON.
const DRAWN_WITNESSES: usize = 100;

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    // Specifications are judged before the trace is opened, which may take long.
    let mut wanted = Wanted::of_files(&args.analysis)?;
    let mut patterns = query::sources(&args.analysis)?;
    if let Some(mut index) = query::find(args)? {
        wanted.answered = Answered::by(&mut index, patterns)?;
        patterns = std::mem::take(&mut wanted.answered.left);
        if patterns.is_empty() && args.analysis.spec.is_empty() && wanted.analyses.is_empty() {
            return without_pass(args, &index, wanted.answered);
        }
    }
    wanted.compile(patterns.into_iter().map(Ok))?;
    if wanted.compiled.is_empty() && wanted.analyses.is_empty() {
        wanted.analyses.push(checks::by_default(&args.analysis)?);
    }
    // What is found is drawn from a second reading.
    let trace = Input::new(&args.input, true)?;
    if !wanted.compiled.is_empty() {
        let specs = wanted.compiled.iter().map(|(source, spec, _)| (source, spec));
        // Text says anywhere in the file what its order stands for.
        let (_, order) = trace.names()?;
        let mut raw = trace.open_raw().with_context(|| trace.name())?;
        thinned::ensure_whole(*order, &mut raw, specs).with_context(|| trace.name())?;
    }
    look(wanted, &args.analysis, &trace)
}

/// What is looked for, once that is known to be possible.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) analyses: Vec<Box<dyn Analysis>>,
    pub(crate) compiled: Vec<(specs::Source, Spec, Vec<Compiled>)>,
    /// What an index has said already.
    answered: Answered,
}

impl Wanted {
    /// Finds out what is looked for.
    pub(crate) fn new(args: &AnalysisArgs) -> anyhow::Result<Wanted> {
        let mut wanted = Wanted::of_files(args)?;
        wanted.compile(query::sources(args)?.into_iter().map(Ok))?;
        Ok(wanted)
    }

    /// All but the patterns of the command line.
    fn of_files(args: &AnalysisArgs) -> anyhow::Result<Wanted> {
        let mut wanted = Wanted::default();
        wanted.compile(args.spec.iter().map(|file| specs::read(file)))?;
        wanted.analyses = built_in(args, &wanted.atomics())?;
        Ok(wanted)
    }

    /// The methods that its specifications call atomic.
    pub(crate) fn atomics(&self) -> Vec<Glob> {
        checks::atomics(self.compiled.iter().map(|(_, spec, _)| spec))
    }

    fn compile(
        &mut self,
        sources: impl Iterator<Item = anyhow::Result<specs::Source>>,
    ) -> anyhow::Result<()> {
        for source in sources {
            let source = source?;
            let (spec, compiled) = specs::compile(&source)?;
            self.compiled.push((source, spec, compiled));
        }
        Ok(())
    }
}

/// Looks for it in a trace and prints the report; returns the exit status.
fn look(wanted: Wanted, args: &AnalysisArgs, trace: &Input<'_>) -> anyhow::Result<u8> {
    let (report, parts) = examine(wanted, args, trace, &[], Vec::new())?;
    tell(args, report, &parts, trace)
}

/// Prints a report of a trace, and draws its pictures; returns the exit status.
pub(crate) fn tell(
    args: &AnalysisArgs,
    report: Report,
    parts: &[Part],
    trace: &Input<'_>,
) -> anyhow::Result<u8> {
    let pictures = args.lattice.as_deref().map(Pictures::new).transpose()?;
    let status = show(args, report)?;
    if let Some(mut pictures) = pictures {
        let whole = Trace::load(&mut trace.open()?).with_context(|| trace.name())?;
        for Part { spec, resolved, claims, .. } in parts {
            let predictions = claims.predictions.borrow();
            pictures.draw(&whole, spec, resolved, &predictions, parts.len() == 1)?;
        }
    }
    Ok(status)
}

/// Looks for it in a trace, and adds `notes` and what was `found` already.
pub(crate) fn examine(
    wanted: Wanted,
    args: &AnalysisArgs,
    trace: &Input<'_>,
    notes: &[String],
    found: Vec<Finding>,
) -> anyhow::Result<(Report, Vec<Part>)> {
    let (mut report, parts) = search(wanted, args, trace)?;
    put_first(&mut report, found);
    report.remarks.warnings.splice(0..0, notes.iter().cloned());
    Ok((report, parts))
}

/// Prints what is left of a report without what is not wanted; returns the exit status.
pub(crate) fn show(args: &AnalysisArgs, mut report: Report) -> anyhow::Result<u8> {
    report.suppress(Config::new(&args.checks)?.suppressions()?);
    draw_first(args, &report)?;
    print(args, &report)
}

/// Puts findings that did not come from an analysis of the trace before all others.
fn put_first(report: &mut Report, found: Vec<Finding>) {
    let Some(first) = found.first() else { return };
    report.analysed.insert(
        0,
        Analysed {
            name: first.analysis,
            property: None,
            outcome: Outcome::Exhausted,
            statement: "the program failed in this run".to_owned(),
            notes: Vec::new(),
            stats: Vec::new(),
        },
    );
    report.witnesses.splice(0..0, found.iter().map(|_| None));
    report.findings.splice(0..0, found);
}

/// A report of findings without a trace.
pub(crate) fn without_trace(name: &str, found: Vec<Finding>) -> Report {
    let mut report = Report {
        name: name.to_owned(),
        trace: TraceFacts::default(),
        analysed: Vec::new(),
        findings: Vec::new(),
        witnesses: Vec::new(),
        remarks: Remarks::default(),
        suppressions: Suppressions::default(),
    };
    put_first(&mut report, found);
    report
}

/// Looks for it in a trace.
pub(crate) fn search(
    wanted: Wanted,
    args: &AnalysisArgs,
    trace: &Input<'_>,
) -> anyhow::Result<(Report, Vec<Part>)> {
    let Wanted { mut analyses, compiled, mut answered } = wanted;
    let mut parts = Vec::new();
    if !compiled.is_empty() {
        let (names, order) = trace.names()?;
        let order = *order;
        for (source, mut spec, properties) in compiled {
            let resolution = foresee_spec::resolve(&spec, names);
            specs::settle(&source, &resolution.diagnostics)?;
            let resolved = resolution.resolved;
            let open = || trace.open_raw();
            learn_initial_values(&mut spec, &properties, &resolved, names, open)
                .with_context(|| trace.name())?;
            let meaning = (&spec, &resolved);
            parts.extend(Part::all(&source, meaning, names, order, args, &mut analyses)?);
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
    let passed = Passed { summary, findings, answered };
    let report = conclude(passed, &parts, source.names(), &trace.name(), &|| trace.open())?;
    Ok((report, parts))
}

/// What a pass over a trace came to.
pub(crate) struct Passed {
    pub(crate) summary: Summary,
    pub(crate) findings: Vec<Finding>,
    pub(crate) answered: Answered,
}

/// Everything that can be said after a pass: what was predicted is confirmed on the trace, which is
/// opened again for that.
pub(crate) fn conclude(
    passed: Passed,
    parts: &[Part],
    names: &Names,
    name: &str,
    open: &dyn Fn() -> anyhow::Result<Validated<Box<dyn EventSource>>>,
) -> anyhow::Result<Report> {
    let Passed { mut summary, mut findings, answered } = passed;
    // From the order of notes no other run follows, so nothing that was predicted stands.
    let is_order_known = summary.remarks.order != FileOrder::Notes;
    let is_thinned = summary.remarks.order == FileOrder::Thinned;
    findings.retain(|finding| stands(finding, summary.remarks.order));
    if !is_order_known {
        settle_notes(&mut summary.analysed, &mut findings);
    }
    // In the order of the analyses, whatever stretches of the trace they were given in turn.
    findings.sort_by_cached_key(|finding| {
        let is_its = |one: &Analysed| {
            one.name == finding.analysis
                && one.property.as_ref().is_none_or(|p| *p == finding.property)
        };
        summary.analysed.iter().position(is_its)
    });
    let mut witnesses: Vec<Option<Diagram>> = findings.iter().map(|_| None).collect();
    // The trace, once all of it has been loaded.
    let mut kept = None;
    if findings.iter().any(|finding| finding.witness.is_some()) {
        // They have been confirmed by the analysis that made them.
        let whole = Trace::load(&mut open()?).with_context(|| name.to_owned())?;
        for (finding, witness) in findings.iter().zip(&mut witnesses).take(DRAWN_WITNESSES) {
            *witness = draw(finding, &whole);
        }
        kept = Some(whole);
    }
    let mut analysed = [answered.analysed.clone(), summary.analysed].concat();
    let has_claims = parts.iter().any(|part| !part.claims.is_empty());
    if is_order_known && (has_claims || answered.needed_events() > 0) {
        let needed = needed_events(parts).map(|events| events.max(answered.needed_events()));
        let is_whole = needed.is_none() || kept.is_some();
        let whole = match (kept.take(), needed) {
            (Some(whole), _) => Ok(whole),
            (None, Some(events)) => load_first(&mut open()?, events),
            (None, None) => Trace::load(&mut open()?),
        };
        let whole = whole.with_context(|| name.to_owned())?;
        let judge = Judge::new(&whole);
        let mut confirmed = answered.confirm(&whole, &judge);
        for part in parts {
            if is_thinned {
                part.claims.reordered.take();
            }
            part.confirm(&whole, &judge, &mut confirmed);
        }
        confirmed.own_up(&mut analysed);
        for finding in confirmed.findings {
            witnesses.push(draw(&finding, &whole));
            findings.push(finding);
        }
        if is_whole {
            kept = Some(whole);
        }
    }
    match &kept {
        Some(whole) => complete(&mut findings, whole),
        None => complete_from(&mut findings, open).with_context(|| name.to_owned())?,
    }
    let mut report = Report {
        name: name.to_owned(),
        trace: TraceFacts::new(summary.events, names),
        analysed,
        findings,
        witnesses,
        remarks: summary.remarks,
        suppressions: Suppressions::default(),
    };
    report.put_conditional_last();
    Ok(report)
}

/// Whether a finding stands in a trace with this order.
pub(crate) fn stands(finding: &Finding, order: FileOrder) -> bool {
    match (finding.kind, order) {
        // What these see is an order of conflicting accesses, which notes do not tell.
        (FindingKind::Observed, FileOrder::Notes) => !is_check(finding.analysis),
        (FindingKind::Observed | FindingKind::ScheduleDependent, _) => true,
        (FindingKind::Predicted | FindingKind::Conditional, FileOrder::Observed) => true,
        (FindingKind::Predicted, FileOrder::Thinned) => keeps_causality(finding.analysis),
        (FindingKind::Conditional, FileOrder::Thinned) => false,
        (FindingKind::Predicted | FindingKind::Conditional, FileOrder::Notes) => false,
    }
}

/// How many of the first events of the trace are needed to judge what is claimed; `None` is all.
pub(crate) fn needed_events(parts: &[Part]) -> Option<u64> {
    let needed: Option<Vec<u64>> = parts.iter().map(|part| part.claims.needed_events()).collect();
    needed.map(|all| all.into_iter().max().unwrap_or(0))
}

fn print(args: &AnalysisArgs, report: &Report) -> anyhow::Result<u8> {
    output::print(&match args.format {
        ReportFormat::Text => foresee_report::text::report(report, output::style()),
        ReportFormat::Json => foresee_report::json::report(report),
    })?;
    Ok(exit_status(report))
}

/// Reports what an index answered. The trace is read only to confirm what other runs have.
fn without_pass(args: &CheckArgs, index: &Index, answered: Answered) -> anyhow::Result<u8> {
    let trace = Input::new(&args.input, false)?;
    let mut witnesses: Vec<_> = answered.observed.iter().map(|_| None).collect();
    let mut analysed = answered.analysed.clone();
    let found = match answered.needed_events() {
        0 => Vec::new(),
        events => {
            let first = load_first(&mut trace.open()?, events).with_context(|| trace.name())?;
            let confirmed = answered.confirm(&first, &Judge::new(&first));
            confirmed.own_up(&mut analysed);
            let found = confirmed.findings;
            witnesses.extend(found.iter().map(|finding| draw(finding, &first)));
            found
        }
    };
    let report = Report {
        name: trace.name(),
        trace: TraceFacts::new(index.events(), index.names()),
        analysed,
        witnesses,
        findings: [answered.observed, found].concat(),
        remarks: index.remarks().clone(),
        suppressions: Suppressions::default(),
    };
    print(&args.analysis, &report)
}

/// The checks that are about a specification.
const NEED_SPEC: &[&str] = &["spec", MONITORABILITY];

fn asks_for(args: &AnalysisArgs, check: &str) -> bool {
    args.check.iter().any(|name| name == check)
}

/// The checks that need no specification; specifications call calls of `atomics` atomic.
pub(crate) fn built_in(
    args: &AnalysisArgs,
    atomics: &[Glob],
) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
    let mut analyses: Vec<Box<dyn Analysis>> = Vec::new();
    analyses.extend(checks::asked_for(args, atomics)?);
    let is_other = |name: &&String| !NEED_SPEC.contains(&name.as_str()) && !is_check(name);
    for name in args.check.iter().filter(is_other) {
        match ANALYSES.iter().find(|kind| kind.name == name) {
            Some(kind) if kind.name == NONDETERMINISM => {
                analyses.push(Box::new(Nondeterminism::new(nondeterminism(args))));
            }
            Some(kind) => analyses.push((kind.new)()),
            None => {
                let known = checks::names().chain(ANALYSES.iter().map(|kind| kind.name));
                let known: Vec<_> = known.collect();
                bail!(
                    "there is no check named `{name}`; there are: {}, {}",
                    NEED_SPEC.join(", "),
                    known.join(", ")
                );
            }
        }
    }
    if let Some(flag) = args.nondeterminism.given() {
        ensure!(
            args.check.iter().any(|name| name == NONDETERMINISM),
            "{flag} is about nondeterminism: add --check nondeterminism"
        );
    }
    for name in NEED_SPEC.iter().filter(|name| asks_for(args, name)) {
        let is_given = !args.spec.is_empty()
            || *name == MONITORABILITY && !(args.pattern.is_empty() && args.patterns.is_empty());
        ensure!(is_given, "--check {name} needs a specification: give one with --spec FILE");
    }
    Ok(analyses)
}

fn nondeterminism(args: &AnalysisArgs) -> Options {
    let default = Options::default();
    let asked = &args.nondeterminism;
    Options {
        same_value: asked.same_value,
        variables: asked.variable.clone(),
        threads: asked.thread.clone(),
        first: asked.first,
        cores: if args.jobs == 0 { default.cores } else { args.jobs },
        time: args.time_limit(),
        ..default
    }
}

/// Draws the witness of the first read that could have seen another write.
fn draw_first(args: &AnalysisArgs, report: &Report) -> anyhow::Result<()> {
    let Some(file) = &args.nondeterminism.witness_svg else { return Ok(()) };
    let drawn = report.findings.iter().zip(&report.witnesses);
    let mut drawn = drawn.filter(|(finding, _)| finding.analysis == NONDETERMINISM);
    match drawn.find_map(|(_, witness)| witness.as_ref()) {
        Some(diagram) => output::write_file(file, &diagram.to_svg()),
        None => {
            output::note(&format!("{}: there is no witness to draw", file.display()));
            Ok(())
        }
    }
}

fn limits(args: &AnalysisArgs) -> Limits {
    let mut default = Limits::default();
    if args.is_live {
        // There may be many programs, and each goes on for as long as it likes.
        (default.history, default.kept_events) = (LIVE_MEMORY, LIVE_MEMORY);
    }
    Limits {
        window: args.window.map(|w| w as usize),
        lookahead: args.lookahead,
        cuts: args.max_states.unwrap_or(default.cuts),
        memory: args.max_memory.saturating_mul(1 << 20),
        cores: if args.jobs == 0 { default.cores } else { args.jobs },
        time: args.time_limit(),
        ..default
    }
}

/// The order that shows a finding.
fn draw(finding: &Finding, trace: &Trace) -> Option<Diagram> {
    let witness = finding.witness.as_ref()?;
    Some(Diagram::of_witness(trace, witness, DRAWN_EVENTS))
}

/// The first events of a trace, in whole batches: all that the witnesses of patterns need.
pub(crate) fn load_first(source: &mut dyn EventSource, events: u64) -> Result<Trace, ReadError> {
    let mut trace = Trace::default();
    let mut batch = Batch::default();
    while (trace.events.len() as u64) < events && source.next_batch(&mut batch)? {
        trace.push_batch(&mut batch);
    }
    trace.names = source.names().clone();
    Ok(trace)
}

/// Properties of a specification for which the same searches are made, and what these claim.
pub(crate) struct Part {
    pub(crate) spec: Spec,
    pub(crate) resolved: Resolved,
    pub(crate) claims: Claims,
    /// Whether these are patterns that have a search of their own, instead of the lattice.
    is_patterns: bool,
}

impl Part {
    /// All searches for the properties of a specification, added to `analyses`.
    pub(crate) fn all(
        source: &specs::Source,
        (spec, resolved): (&Spec, &Resolved),
        names: &Names,
        order: FileOrder,
        args: &AnalysisArgs,
        analyses: &mut Vec<Box<dyn Analysis>>,
    ) -> anyhow::Result<Vec<Part>> {
        let parts: Vec<Part> = Part::of(spec, resolved, args).collect();
        for part in &parts {
            part.searches(source, names, order, args, analyses)?;
        }
        Ok(parts)
    }

    /// The patterns of a specification, and everything else.
    fn of(spec: &Spec, resolved: &Resolved, args: &AnalysisArgs) -> impl Iterator<Item = Part> {
        let part = |is_patterns| Part {
            spec: Spec { properties: Vec::new(), ..spec.clone() },
            resolved: resolved.clone(),
            claims: Claims::default(),
            is_patterns,
        };
        let (mut patterns, mut others) = (part(true), part(false));
        // The observed run alone needs no search; ideals, and pictures, are those of the lattice.
        let is_wanted = args.window != Some(1)
            && args.algorithm != AlgorithmArg::Ideals
            && args.lattice.is_none();
        for property in &spec.properties {
            let is_own = is_wanted && Compiled::new(property).is_ok_and(|p| Patterns::accepts(&p));
            let part = if is_own { &mut patterns } else { &mut others };
            part.spec.properties.push(property.clone());
        }
        [patterns, others].into_iter().filter(|part| !part.spec.properties.is_empty())
    }

    /// Adds all searches that are wanted for these properties, the simplest first. Each has
    /// monitors of its own, which grow apart.
    fn searches(
        &self,
        source: &specs::Source,
        names: &Names,
        order: FileOrder,
        args: &AnalysisArgs,
        analyses: &mut Vec<Box<dyn Analysis>>,
    ) -> anyhow::Result<()> {
        let Part { spec, resolved, claims, .. } = self;
        let compile = || Compiled::all(spec).map_err(|e| specs::BadSpec::new(source, &e));
        if self.is_patterns {
            // This one watches the observed run, too.
            let found = Rc::clone(&claims.matches);
            let mut patterns = Patterns::new(compile()?, resolved, names, Algorithm::Auto, found);
            if args.is_live {
                patterns = patterns.telling_early(Rc::clone(&claims.early.1));
            }
            analyses.push(Box::new(patterns));
        } else {
            analyses.push(Box::new(Observed::new(spec, compile()?, resolved, names)));
        }
        let is_asked = asks_for(args, MONITORABILITY);
        let default = MonitorabilityOptions::default();
        let options = MonitorabilityOptions {
            order,
            is_asked,
            nodes: args.max_states.unwrap_or(default.nodes),
            time: args.time_limit(),
            ..default
        };
        // Of patterns every order is looked at anyway, by thousands; but not if it is one of notes.
        if !self.is_patterns || is_asked || order == FileOrder::Notes {
            let monitorability = Monitorability::new(spec, compile()?, resolved, names, options);
            analyses.push(Box::new(monitorability));
        }
        // The observed run alone needs no lattice, and no more memory than its monitor; and who asks
        // for its monitorability alone wants nothing else.
        if args.window == Some(1) || is_asked && !asks_for(args, "spec") {
            return Ok(());
        }
        if !self.is_patterns {
            let (limits, found) = (limits(args), Rc::clone(&claims.predictions));
            let mut lattice = Lattice::new(spec, compile()?, resolved, names, limits, found);
            if args.is_live {
                lattice = lattice.telling_early(Rc::clone(&claims.early.0));
            }
            analyses.push(Box::new(lattice));
        }
        let reorder = Reorder::from(args.reorder);
        let (reads, time) = (args.reads.into(), args.time_limit());
        let trace = args.max_memory.saturating_mul(1 << 20) / BYTES_AN_EVENT;
        if reorder.is_sliced() {
            let limits = SlicedLimits { reads, time, trace, ..SlicedLimits::default() };
            let claims = claims.clone();
            let sliced = Sliced::new(spec, compile()?, resolved, names, limits, claims);
            if sliced.has_patterns() {
                analyses.push(Box::new(sliced));
            }
        }
        if reorder.is_correct() {
            let default = CorrectLimits::default();
            let width = args.window.map_or(default.width, |w| w as usize);
            let nodes = args.max_states.unwrap_or(default.nodes);
            let limits = CorrectLimits { reads, time, trace, width, nodes, ..default };
            let claims = claims.clone();
            let correct = Correct::new(spec, compile()?, resolved, names, limits, claims);
            if correct.has_properties() {
                analyses.push(Box::new(correct));
            }
        }
        Ok(())
    }

    /// The name of a property.
    pub(crate) fn name_of(&self, property: usize) -> &str {
        &self.spec.properties[property].name.name
    }

    /// Adds what became of the claims before the judge. One that does not stand up to him is a
    /// mistake of ours, and nothing is printed that rests on it.
    fn confirm(&self, trace: &Trace, judge: &Judge<'_>, confirmed: &mut Confirmed) {
        let court = Court::new(&self.spec, &self.resolved, trace, judge);
        for claim in self.claims.predictions.borrow().iter() {
            let about = (LATTICE, self.name_of(claim.property));
            confirmed.add(court.confirm(claim), about, claim, trace);
        }
        for claim in self.claims.matches.borrow().iter() {
            let about = (PATTERN, self.name_of(claim.property));
            confirmed.add(court.confirm_match(claim), about, claim, trace);
        }
        for claim in self.claims.reordered.borrow().iter() {
            let about = (claim.analysis, self.name_of(claim.property));
            confirmed.add(court.confirm_reordered(claim), about, claim, trace);
        }
    }
}
