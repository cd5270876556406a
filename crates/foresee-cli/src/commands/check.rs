//! `foresee check`: one pass over a trace for everything that was asked.

use anyhow::{Context, bail};
use foresee_predict::{ANALYSES, Analysis};
use foresee_report::{Report, TraceFacts, exit_status};
use foresee_trace::EventSource;

use crate::args::{CheckArgs, ReportFormat};
use crate::{input, output};

pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<u8> {
    let mut analyses: Vec<Box<dyn Analysis>> = Vec::new();
    for name in &args.check {
        match ANALYSES.iter().find(|kind| kind.name == name) {
            Some(kind) => analyses.push((kind.new)()),
            None => {
                let known: Vec<_> = ANALYSES.iter().map(|kind| kind.name).collect();
                bail!("there is no check named `{name}`; there are: {}", known.join(", "));
            }
        }
    }
    let mut source = input::open(&args.input)?;
    let bar = input::progress("checking");
    let mut findings = Vec::new();
    let summary = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |n| {
        bar.set_position(n);
    })
    .with_context(|| input::name(&args.input))?;
    bar.finish_and_clear();
    let report = Report {
        name: input::name(&args.input),
        trace: TraceFacts::new(summary.events, source.names()),
        analysed: summary.analysed,
        findings,
        remarks: summary.remarks,
    };
    output::print(&match args.format {
        ReportFormat::Text => foresee_report::text::report(&report, output::style()),
        ReportFormat::Json => foresee_report::json::report(&report),
    })?;
    Ok(exit_status(&report))
}
