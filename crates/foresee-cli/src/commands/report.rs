//! `foresee report`: a page of a report that was written before.

use std::path::Path;

use anyhow::{Context, bail};
use foresee_report::html;

use crate::args::ReportArgs;
use crate::{output, whole_file};

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let text = whole_file::read_or_stdin(&args.report, whole_file::REPORT)?;
    write(&args.html, &text, &[]).with_context(|| whole_file::name(&args.report))?;
    Ok(0)
}

/// Writes the page for a report in JSON.
pub(crate) fn write(
    path: &Path,
    report: &str,
    lattices: &[(String, String)],
) -> anyhow::Result<()> {
    let Some(page) = html::page(report, lattices) else {
        bail!("this is not a report: make one with `foresee check --format json --output FILE`")
    };
    match path == Path::new("-") {
        true => output::print(&page),
        false => output::write_file(path, &page),
    }
}
