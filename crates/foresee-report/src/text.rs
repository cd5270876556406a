//! Reports as text, for a terminal or a log.

mod columns;
mod finding;
mod groups;
pub(crate) mod short;
mod table;

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use foresee_support::count::count;
use foresee_trace::{Finding, FindingKind, Outcome, Visible};

pub use columns::diagram;

use crate::diagram::Diagram;
use crate::report::{Report, exit_status};
use foresee_predict::checks::Suppression;
use foresee_predict::info::{AnalysisInfo, MONITORABILITY, OBSERVED};
use foresee_predict::{Analysed, Stat};

/// How to highlight headings and findings: not at all, or with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For files, pipes and tests.
    Plain,
    /// For terminals.
    Colour,
}

impl Style {
    fn wrap(self, style: anstyle::Style, text: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Colour => format!("{style}{text}{style:#}"),
        }
    }
    fn bold(self, text: &str) -> String {
        self.wrap(anstyle::Style::new().bold(), text)
    }
    fn dim(self, text: &str) -> String {
        self.wrap(anstyle::Style::new().dimmed(), text)
    }
    fn alarm(self, text: &str) -> String {
        self.wrap(anstyle::AnsiColor::Red.on_default().bold(), text)
    }
}

/// How much to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// A line for each finding, and the summary.
    Quiet,
    /// Each finding in full as far as there is room, and each answer.
    #[default]
    Normal,
    /// The figures of the searches as well.
    Verbose,
}

/// How a report is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours or none.
    pub style: Style,
    /// How much to tell.
    pub level: Level,
    /// The width that tables must fit into.
    pub width: usize,
    /// Whether to show names, places and schedules in full, however long they are.
    pub is_wide: bool,
    /// Whether to name the commands that show more of a finding.
    pub has_commands: bool,
    /// The current folder, which is left out of file names.
    pub folder: String,
}

impl Default for Options {
    /// For files, pipes and programs.
    fn default() -> Options {
        Options {
            style: Style::Plain,
            level: Level::Normal,
            width: WIDE,
            is_wide: false,
            has_commands: false,
            folder: String::new(),
        }
    }
}

/// A line that is filled from left to right.
#[derive(Default)]
struct Line {
    text: String,
}

impl Line {
    fn put(&mut self, at: usize, text: &str) {
        let gap = at.saturating_sub(self.text.width());
        self.text.push_str(&" ".repeat(gap));
        self.text.push_str(text);
    }
}

/// The assumption behind every claim about other runs.
pub(crate) const ASSUMPTIONS: &str = "assuming that the run was sequentially consistent and that \
     the trace holds every shared access and all synchronisation";

/// A report as text.
pub fn report(report: &Report, options: &Options) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(report, options, &mut out);
    out
}

/// One finding as text, in full.
pub fn finding(report: &Report, index: usize, options: &Options) -> String {
    let mut out = finding::headline(&report.findings[index], index + 1, options);
    out.push('\n');
    // Writing to a string cannot fail.
    let _ = finding::write(report, index, options, &mut out);
    out
}

/// The schedule of a finding, in a column for each thread.
pub(crate) fn schedule(of: &Finding, diagram: &Diagram) -> String {
    let mut out = String::new();
    let table = table::Table::of(diagram, &finding::ranks(of), false);
    // Writing to a string cannot fail.
    let _ = table.draw(Style::Plain, WIDE, &mut out);
    out
}

/// What other results cover, by property.
struct Covered<'r> {
    /// The whole lattice includes the observed run.
    runs: HashSet<Option<&'r str>>,
    /// A prediction shows that the verdict depends on the schedule.
    verdicts: HashSet<&'r str>,
}

impl<'r> Covered<'r> {
    fn by(report: &'r Report) -> Covered<'r> {
        let covers = |one: &&Analysed| one.info().is_some_and(AnalysisInfo::covers_observed);
        let covering = report.analysed.iter().filter(covers);
        let predicted = report.findings.iter().filter(|f| f.kind == FindingKind::Predicted);
        Covered {
            runs: covering.map(|one| one.property.as_deref()).collect(),
            verdicts: predicted.map(|finding| finding.property.as_str()).collect(),
        }
    }

    fn has(&self, one: &Analysed) -> bool {
        let property = one.property.as_deref();
        let is_warning = one.name == MONITORABILITY && one.outcome == Outcome::Window;
        // The reason why monitoring was given up is always shown.
        let is_given_up = one.outcome == Outcome::StateLimit;
        one.name == OBSERVED && !is_given_up && self.runs.contains(&property)
            || is_warning && property.is_some_and(|name| self.verdicts.contains(name))
    }
}

fn write_report(report: &Report, options: &Options, out: &mut String) -> fmt::Result {
    let style = options.style;
    if options.level == Level::Quiet {
        for (i, one) in report.findings.iter().enumerate() {
            let headline = finding::headline(one, i + 1, options);
            writeln!(out, "{headline}: {}", groups::message(one, options))?;
        }
        return write_summary(report, style, out);
    }
    let facts = &report.trace;
    writeln!(
        out,
        "{}: {}, {}, {}, {}",
        Visible(&report.name),
        count(facts.events, "event"),
        count(facts.threads, "thread"),
        count(facts.variables, "variable"),
        count(facts.locks, "lock")
    )?;
    for warning in &report.remarks.warnings {
        writeln!(out, "note: {}", Visible(warning))?;
    }
    if let Some(why) = &report.remarks.cut_short {
        writeln!(out, "note: the trace was cut short: {}", Visible(why))?;
    }
    if let Some(why) = &report.remarks.partial {
        writeln!(out, "note: the trace does not hold everything: {}", Visible(why))?;
    }
    if report.analysed.is_empty() {
        writeln!(out, "note: nothing was looked for")?;
    }
    groups::write(report, options, out)?;
    let covered = Covered::by(report);
    for one in report.analysed.iter().filter(|one| !covered.has(one)) {
        let property = one.property.as_ref().map_or(String::new(), |p| format!(" {p}"));
        let title = format!("{}{property}", one.name);
        let title = style.bold(&Visible(&title).to_string());
        writeln!(out, "\n{title}: {}", Visible(&one.statement))?;
        for note in &one.notes {
            writeln!(out, "  note: {}", Visible(note))?;
        }
        for line in counts(&one.stats, options.level) {
            writeln!(out, "  {}", Visible(&line))?;
        }
    }
    write_suppressions(report, style, out)?;
    write_baseline(report, style, out)?;
    writeln!(out)?;
    if report.analysed.iter().any(predicts) {
        writeln!(out, "{}", style.dim(ASSUMPTIONS))?;
    }
    write_summary(report, style, out)
}

/// The last line: how many findings there are, and whether there may be more.
fn write_summary(report: &Report, style: Style, out: &mut String) -> fmt::Result {
    let count = |kind| report.findings.iter().filter(|f| f.kind == kind).count();
    let (observed, predicted) = (count(FindingKind::Observed), count(FindingKind::Predicted));
    let depending = match count(FindingKind::ScheduleDependent) {
        0 => String::new(),
        n => format!(", {n} schedule-dependent"),
    };
    let conditional = match count(FindingKind::Conditional) {
        0 => String::new(),
        n => format!(", {n} conditional"),
    };
    let suppressed = match report.suppressions.used() {
        0 => String::new(),
        n => format!(", {n} suppressed"),
    };
    let known = match report.suppressions.known() {
        0 => String::new(),
        n => format!(", {n} known"),
    };
    let complete = match exit_status(report) {
        0 => "complete",
        1 => "see above",
        2 => "an INTERNAL ERROR took an answer, so this is no clean bill of health",
        _ => "NOT complete, so this is no clean bill of health",
    };
    let counts = format!("{observed} observed, {predicted} predicted{depending}{conditional}");
    writeln!(out, "{}", style.bold(&format!("foresee: {counts}{suppressed}{known}; {complete}")))
}

/// How wide tables are where nothing else is known.
const WIDE: usize = 120;

/// The maximum length of a line of figures.
const WIDTH: usize = 100;

/// Figures, as many on a line as fit. An answer among them is always shown.
fn counts(stats: &[(&'static str, Stat)], level: Level) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let is_shown = |name: &str| level == Level::Verbose || name == "verdict";
    for (name, stat) in stats.iter().filter(|(name, _)| is_shown(name)) {
        let name = name.replace('_', " ");
        let text = match stat {
            Stat::Count(n) => format!("{name} {n}"),
            Stat::Text(text) => format!("{name} {text}"),
        };
        match lines.last_mut() {
            Some(line) if line.chars().count() + text.chars().count() < WIDTH => {
                *line += ", ";
                *line += &text;
            }
            _ => lines.push(text),
        }
    }
    lines
}

/// The suppressions, and those that matched nothing.
fn write_suppressions(report: &Report, style: Style, out: &mut String) -> fmt::Result {
    if report.suppressions.all.iter().all(|one| one.is_baseline) {
        return Ok(());
    }
    writeln!(out, "\n{}:", style.bold("suppressions"))?;
    for one in report.suppressions.all.iter().filter(|one| !one.is_baseline) {
        writeln!(out, "  {} ({}): {}", Visible(&one.text), Visible(&one.place), used(one))?;
    }
    Ok(())
}

/// What came of a suppression, and why it is there.
fn used(one: &Suppression) -> String {
    let used = match one.used {
        _ if one.is_foreign => "not something foresee looks for".to_owned(),
        _ if one.is_expired => match one.until {
            Some(day) => format!("expired after {day}, so it suppresses nothing"),
            None => "expired".to_owned(),
        },
        0 => "unused".to_owned(),
        n => count(n, "finding"),
    };
    match &one.reason {
        Some(reason) => format!("{used}; {}", Visible(reason)),
        None => used,
    }
}

/// How much of a baseline was found again.
fn write_baseline(report: &Report, style: Style, out: &mut String) -> fmt::Result {
    let entries = || report.suppressions.all.iter().filter(|one| one.is_baseline);
    let (all, found) = (entries().count(), entries().filter(|one| one.used > 0).count());
    if all > 0 {
        let title = style.bold("baseline");
        writeln!(out, "\n{title}: {found} of {all} known findings were found again")?;
    }
    Ok(())
}

/// Whether an analysis makes claims about other runs.
fn predicts(one: &Analysed) -> bool {
    one.info().is_some_and(|info| info.predicts)
}
