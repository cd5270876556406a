//! Which findings are shown in full: one for each cause, at most ten, as long as there is room; the
//! others are lines of a table.

use std::fmt::{self, Write as _};

use foresee_trace::{Finding, Visible};

use super::short::{self, Shorter};
use super::{Level, Options, finding};
use crate::report::Report;

/// How many causes are shown in full.
const IN_FULL: usize = 10;

/// How many lines findings in full may take, after which the rest is a table.
const LINES_IN_FULL: usize = 300;

/// How many lines the table of the rest may take.
const LINES_IN_BRIEF: usize = 75;

/// How many more findings of a cause are listed below the first.
const LISTED_OF_CAUSE: usize = 5;

/// Findings of one cause: of one rule, about one thing, in the same functions.
struct Group {
    findings: Vec<usize>,
}

/// What two findings have in common if one mistake causes both.
type Cause<'f> = (String, String, Option<&'f str>, Vec<&'f str>, Vec<String>);

fn cause(finding: &Finding) -> Cause<'_> {
    let sites = finding.sites.iter().filter(|site| site.role.identifies());
    let mut functions: Vec<&str> = sites
        .filter_map(|site| site.location())
        .map(short::frame)
        .filter_map(|place| place.function.as_deref().or(place.file.as_deref()))
        .collect();
    functions.sort_unstable();
    functions.dedup();
    let threads = match functions.is_empty() {
        // Without places, findings of different threads have nothing in common.
        true => finding.sites.iter().map(|site| site.thread_name().to_owned()).collect(),
        false => Vec::new(),
    };
    let subject = finding::subject(finding);
    (finding.kind.word().to_owned(), finding.rule(), subject, functions, threads)
}

fn groups(report: &Report) -> Vec<Group> {
    let mut groups: Vec<(Cause<'_>, Group)> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (i, finding) in report.findings.iter().enumerate() {
        let cause = cause(finding);
        let at = *places.entry(cause.clone()).or_insert(groups.len());
        match groups.get_mut(at) {
            // Properties are told apart by what they are about, which only their details say.
            Some((_, group)) if cause.2.is_some() => group.findings.push(i),
            _ => groups.push((cause, Group { findings: vec![i] })),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Writes the findings of a report.
pub(crate) fn write(report: &Report, options: &Options, out: &mut String) -> fmt::Result {
    let mut rest: Vec<usize> = Vec::new();
    let (mut in_full, mut lines) = (0, 0);
    for group in groups(report) {
        let [first, more @ ..] = &group.findings[..] else { continue };
        if in_full == IN_FULL || lines >= LINES_IN_FULL {
            rest.extend(&group.findings);
            continue;
        }
        let mut text = super::finding(report, *first, options);
        if !more.is_empty() {
            writeln!(text, "  the same cause, {} more:", more.len())?;
            for &i in &more[..more.len().min(LISTED_OF_CAUSE)] {
                writeln!(text, "    {}", brief(report, i, options))?;
            }
            let hidden = more.len().saturating_sub(LISTED_OF_CAUSE);
            if hidden > 0 {
                writeln!(text, "    and {hidden} more")?;
            }
        }
        let long = text.lines().count() + 1;
        if in_full > 0 && lines + long > LINES_IN_FULL {
            // Later ones stay behind it, even if they are shorter.
            lines = LINES_IN_FULL;
            rest.extend(&group.findings);
            continue;
        }
        in_full += 1;
        lines += long;
        write!(out, "\n{text}")?;
    }
    if rest.is_empty() {
        return Ok(());
    }
    rest.sort_unstable();
    writeln!(out, "\n{}", options.style.bold(&format!("{} more in brief:", rest.len())))?;
    for &i in &rest[..rest.len().min(LINES_IN_BRIEF)] {
        let one = &report.findings[i];
        let property = Visible(&short::name(&one.property)).to_string();
        writeln!(
            out,
            "  {} {property} {}",
            one.kind.word().to_uppercase(),
            brief(report, i, options)
        )?;
    }
    let hidden = rest.len().saturating_sub(LINES_IN_BRIEF);
    if hidden > 0 {
        writeln!(out, "  and {hidden} more: --format json lists them all")?;
    }
    Ok(())
}

/// A finding in a line: its number and fingerprint, its steps and their places.
fn brief(report: &Report, i: usize, options: &Options) -> String {
    let finding = &report.findings[i];
    let fingerprint = finding.fingerprint.map_or(String::new(), |print| format!(" {print}"));
    let mut text = format!("[{}]{fingerprint} {}", i + 1, message(finding, options));
    if options.level != Level::Verbose && !options.is_wide {
        text = short::cut(&text, options.width.saturating_sub(4));
    }
    text
}

/// What happens, with names and places shortened.
pub(crate) fn message(finding: &Finding, options: &Options) -> String {
    let shorter = match options.is_wide {
        true => Shorter::default(),
        false => Shorter::of(finding, &options.folder),
    };
    Visible(&shorter.apply(&finding.message)).to_string()
}
