//! `foresee report`: a page of a report that was written before.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, bail};
use foresee_report::html;

use crate::args::ReportArgs;
use crate::output;

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<u8> {
    let name = args.report.display();
    let mut text = Vec::new();
    let read = match args.report == Path::new("-") {
        true => std::io::stdin().lock().read_to_end(&mut text),
        false => std::fs::File::open(&args.report).and_then(|mut file| file.read_to_end(&mut text)),
    };
    read.with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(text).with_context(|| format!("{name} is not a report"))?;
    write(&args.html, &text, &[]).with_context(|| name.to_string())?;
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
