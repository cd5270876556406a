//! `foresee check`: one pass over a trace for everything that was requested.

use std::time::Duration;

use anyhow::{Context, ensure};
use foresee_capture::jvm::{JvmLog, JvmTrace};
use foresee_capture::store::Keep;
use foresee_predict::info::NONDETERMINISM;
use foresee_predict::session::{Examined, Session};
use foresee_report::text::Options;
use foresee_report::{Report, Tests, exit_status};
use foresee_trace::TraceInput;

use crate::args::{AnalysisArgs, CheckArgs, MIB, ReportFormat};
use crate::commands::picture::{self, Pictures};
use crate::commands::query;
use crate::config::Config;
use crate::console::Console;
use crate::input::Input;
use crate::output::Sink;
use crate::{asked, output, progress, specs};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let mut to = Sink::new(&args.analysis.output)?;
    // Specifications are checked before the trace is opened, which may take long.
    let mut session = asked::session(&args.analysis)?;
    let mut patterns = query::sources(&args.analysis)?;
    let index = query::find(args)?;
    let is_indexed = index.is_some();
    if let Some(mut index) = index {
        patterns = query::ask(&mut session, &mut index, patterns)?;
    }
    for source in patterns {
        session.add_spec(specs::load(&source)?);
    }
    if session.is_empty() && !is_indexed {
        session.add_default_checks();
    }
    if args.input.trace.is_dir() {
        return run_on_jvm(args, &session, to);
    }
    // Input that can be read only once is saved if it may be read again.
    let trace = Input::new(&args.input, !session.is_empty(), args.analysis.max_memory)?;
    let examined = examine(&session, &trace)?;
    // What an index alone has answered may not be readable twice.
    let tests = if session.is_empty() { Tests::default() } else { tests(&trace, &examined)? };
    let status = tell(&args.analysis, examined, &tests, &mut to)?;
    to.finish()?;
    Ok(status)
}

/// Analyses what a JVM recorded into a folder.
fn run_on_jvm(args: &CheckArgs, session: &Session, mut to: Sink) -> anyhow::Result<u8> {
    let folder = &args.input.trace;
    let name = || folder.display().to_string();
    ensure!(
        folder.extension().is_some_and(|ending| ending == "jvm"),
        "{} is a folder, and not the log of a JVM, which is called PID.jvm",
        name()
    );
    let log = JvmLog::open(folder)?;
    let memory = args.analysis.max_memory.saturating_mul(MIB);
    let bar = progress::events("merging");
    let mut progress = |events| bar.set_position(events);
    // The specification may be another than that of the capture.
    let trace = JvmTrace::read(&log, name(), Keep::Everything, memory, &mut progress);
    bar.finish_and_clear();
    let mut trace = trace.with_context(name)?;
    let notes = std::mem::take(&mut trace.notes);
    let mut examined = examine(session, &trace)?;
    examined.report.remarks.warnings.splice(0..0, notes);
    let tests = tests(&trace, &examined)?;
    let status = tell(&args.analysis, examined, &tests, &mut to)?;
    to.finish()?;
    Ok(status)
}

/// Analyses a trace.
pub(crate) fn examine(session: &Session, trace: &dyn TraceInput) -> anyhow::Result<Examined> {
    examine_within(session.settings().limits.time, session, trace)
}

/// Analyses a trace that is one of several, whose searches share the time.
pub(crate) fn examine_within(
    time: Option<Duration>,
    session: &Session,
    trace: &dyn TraceInput,
) -> anyhow::Result<Examined> {
    let mut console = Console::new("checking");
    let examined = session.run_within(time, trace, &mut console);
    console.finish();
    examined.map_err(|error| match specs::failed(error) {
        error if error.is::<specs::BadSpec>() => error,
        error => error.context(trace.name()),
    })
}

/// The tests that the trace marks, if there are findings that they may show.
pub(crate) fn tests(trace: &dyn TraceInput, examined: &Examined) -> anyhow::Result<Tests> {
    Tests::marked_in(trace, examined).with_context(|| trace.name())
}

/// Prints the report on a trace, and draws its pictures; returns the exit status.
pub(crate) fn tell(
    args: &AnalysisArgs,
    mut examined: Examined,
    tests: &Tests,
    to: &mut Sink,
) -> anyhow::Result<u8> {
    let pictures = args.lattice.as_deref().map(Pictures::new).transpose()?;
    let drawings = std::mem::take(&mut examined.drawings);
    let mut report = Report::of(examined, tests);
    if args.html.is_some() {
        report.lattices = drawings.iter().filter_map(picture::image).collect();
    }
    let status = show(args, report, to)?;
    if let Some(mut pictures) = pictures {
        drawings.iter().try_for_each(|drawing| pictures.draw(drawing))?;
    }
    Ok(status)
}

/// Prints a report without suppressed findings; returns the exit status.
pub(crate) fn show(args: &AnalysisArgs, mut report: Report, to: &mut Sink) -> anyhow::Result<u8> {
    report.suppress(Config::new(&args.checks)?.suppressions()?);
    report.rerun.clone_from(&to.rerun);
    draw_first(args, &report)?;
    if let Some(path) = &args.html {
        let json = foresee_report::json::report(&report);
        super::report::write(&to.next_page(path), &json, &report.lattices)?;
    }
    let options = to.options(&args.text);
    to.remember(&report, &args.text, &options);
    to.print(&render(args.format, &report, &options))?;
    Ok(exit_status(&report))
}

/// A report in the wanted format.
pub(crate) fn render(format: ReportFormat, report: &Report, options: &Options) -> String {
    match format {
        ReportFormat::Text => foresee_report::text::report(report, options),
        ReportFormat::Json => foresee_report::json::report(report),
        ReportFormat::Sarif => foresee_report::sarif::report(report),
        ReportFormat::Junit => foresee_report::junit::report(report),
        ReportFormat::Github => foresee_report::github::report(report),
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
