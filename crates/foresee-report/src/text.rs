//! Reports as text, for a terminal or a log.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use foresee_trace::{Confirmation, Confirmed, FindingKind, Outcome, Visible};

use crate::diagram::{Arrow, Diagram, Row};
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

/// A diagram as lines of text, with arrows on lines of their own.
pub fn diagram(diagram: &Diagram, style: Style) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = Columns::of(diagram).draw(diagram, style, &mut out);
    out
}

struct Columns {
    /// The width of the event numbers.
    number: usize,
    /// Where each column starts, and where the locations do.
    starts: Vec<usize>,
}

impl Columns {
    fn of(diagram: &Diagram) -> Columns {
        let number =
            diagram.rows.iter().map(|r| r.index).max().map_or(1, |i| i.to_string().len()).max(5);
        let mut widths: Vec<usize> = diagram.threads.iter().map(|name| name.width()).collect();
        for row in &diagram.rows {
            let mark = mark(row).width();
            widths[row.column] = widths[row.column].max(row.text.width() + mark);
        }
        let mut at = number + 2;
        let mut starts = Vec::new();
        for width in widths {
            starts.push(at);
            at += width + 3;
        }
        starts.push(at);
        Columns { number, starts }
    }

    fn draw(&self, diagram: &Diagram, style: Style, out: &mut String) -> fmt::Result {
        let mut header = Line::default();
        header.put(0, "event");
        for (column, name) in diagram.threads.iter().enumerate() {
            header.put(self.starts[column], name);
        }
        writeln!(out, "{}", style.bold(&header.text))?;
        for (i, row) in diagram.rows.iter().enumerate() {
            for arrow in diagram.arrows.iter().filter(|a| a.to == i) {
                writeln!(out, "{}", style.dim(&self.arrow(diagram, *arrow)))?;
            }
            let mut line = Line::default();
            line.put(0, &format!("{:>1$}", row.index, self.number));
            line.put(self.starts[row.column], &row.text);
            line.text.push_str(&mark(row));
            let (event, end) = (line.text, self.starts[diagram.threads.len()]);
            if row.loc.is_empty() {
                writeln!(out, "{event}")?;
            } else {
                let gap = " ".repeat(end.saturating_sub(event.width()).max(1));
                writeln!(out, "{event}{gap}{}", style.dim(&row.loc))?;
            }
        }
        Ok(())
    }

    /// The line above an effect that shows where its cause is.
    fn arrow(&self, diagram: &Diagram, arrow: Arrow) -> String {
        let from = &diagram.rows[arrow.from];
        let (a, b) = (self.starts[from.column], self.starts[diagram.rows[arrow.to].column]);
        let label = format!("─{}", from.index);
        let length = a.abs_diff(b) - 1;
        let mut line = Line::default();
        if a < b {
            line.put(a, "╰");
            line.text.push_str(&label);
            line.text.push_str(&"─".repeat(length.saturating_sub(label.width() + 1)));
            line.text.push('▶');
        } else {
            line.put(b, "◀");
            line.text.push_str(&"─".repeat(length.saturating_sub(label.width())));
            line.text.push_str(&format!("{}─╯", from.index));
        }
        line.text
    }
}

/// The note after an event: a cause that is not shown, or an event that it overtakes.
fn mark(row: &Row) -> String {
    match row.overtakes {
        _ if row.is_next => " ← next".to_owned(),
        Some(event) => format!(" « {event}"),
        None if row.caused_earlier => " ↑".to_owned(),
        None => String::new(),
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
pub fn report(report: &Report, style: Style) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(report, style, &mut out);
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

fn write_report(report: &Report, style: Style, out: &mut String) -> fmt::Result {
    let facts = &report.trace;
    writeln!(
        out,
        "{}: {} events, {} threads, {} variables, {} locks",
        Visible(&report.name),
        facts.events,
        facts.threads,
        facts.variables,
        facts.locks
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
    let mut shown: Vec<(&str, usize)> = Vec::new();
    for (i, finding) in report.findings.iter().enumerate() {
        let word = finding.kind.word().to_uppercase();
        let nth = nth(&mut shown, &finding.property);
        let number = match finding.fingerprint {
            Some(fingerprint) => format!("[{}] {}", i + 1, style.dim(&fingerprint.to_string())),
            None => format!("[{}]", i + 1),
        };
        if nth > IN_FULL {
            if nth == IN_FULL + 1 {
                writeln!(out)?;
            }
            if nth <= IN_FULL + IN_BRIEF {
                let (word, property) =
                    (style.alarm(&word), style.bold(&Visible(&finding.property).to_string()));
                writeln!(out, "{word} {property} {number} {}", Visible(&finding.message))?;
            }
            continue;
        }
        writeln!(
            out,
            "\n{} {} {number}",
            style.alarm(&word),
            style.bold(&Visible(&finding.property).to_string()),
        )?;
        writeln!(out, "  {}", Visible(&finding.message))?;
        for detail in &finding.details {
            let text = detail.text(&finding.sites);
            writeln!(out, "  {}: {}", Visible(&detail.label), Visible(&text))?;
        }
        if let Some(tests) = report.tests.get(i).filter(|tests| !tests.is_empty()) {
            let word = if tests.len() == 1 { "test" } else { "tests" };
            writeln!(out, "  {word}: {}", Visible(&tests.join(", ")))?;
        }
        if let Some(shown) = &finding.shown_by {
            writeln!(out, "  runs: {}", Visible(&shown.to_string()))?;
        }
        if let Some(Confirmation { is, how }) = &finding.confirmation {
            let word = match is {
                Confirmed::Yes => "CONFIRMED in the program",
                Confirmed::Diverged => "replay diverged (which refutes nothing)",
                Confirmed::NotForced => "replay could not force it (which refutes nothing)",
                Confirmed::NotTried => "replay not tried",
            };
            writeln!(out, "  {}: {}", style.bold(word), Visible(how))?;
        }
        if let Some(diagram) = report.witnesses.get(i).and_then(Option::as_ref) {
            let diagram = &diagram.last(SHOWN_EVENTS);
            let shown = diagram.rows.len() as u64;
            if diagram.events > shown {
                let before = diagram.events - shown;
                writeln!(out, "\n  after the first {before} events of the run:")?;
            }
            writeln!(out)?;
            for line in self::diagram(diagram, style).lines() {
                writeln!(out, "  {line}")?;
            }
            if diagram.rows.iter().any(|row| row.overtakes.is_some()) {
                writeln!(out, "  « N: happens before event N, which was observed before it")?;
            }
        }
    }
    for (property, count) in shown {
        if let Some(more @ 1..) = count.checked_sub(IN_FULL + IN_BRIEF) {
            writeln!(out, "\nand {more} more of {property}: --format json lists them all")?;
        }
    }
    let covered = Covered::by(report);
    for one in report.analysed.iter().filter(|one| !covered.has(one)) {
        let property = one.property.as_ref().map_or(String::new(), |p| format!(" {p}"));
        let title = format!("{}{property}", one.name);
        let title = style.bold(&Visible(&title).to_string());
        writeln!(out, "\n{title}: {}", Visible(&one.statement))?;
        for note in &one.notes {
            writeln!(out, "  note: {}", Visible(note))?;
        }
        for line in counts(&one.stats) {
            writeln!(out, "  {}", Visible(&line))?;
        }
    }
    write_suppressions(report, style, out)?;
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
    let complete = match exit_status(report) {
        0 => "complete",
        1 => "see above",
        2 => "an INTERNAL ERROR took an answer, so this is no clean bill of health",
        _ => "NOT complete, so this is no clean bill of health",
    };
    writeln!(out)?;
    if report.analysed.iter().any(predicts) {
        writeln!(out, "{}", style.dim(ASSUMPTIONS))?;
    }
    writeln!(
        out,
        "{}",
        style.bold(&format!(
            "foresee: {observed} observed, {predicted} predicted{depending}{conditional}{suppressed}; \
             {complete}"
        ))
    )
}

/// How many events of a witness are shown at most.
pub(crate) const SHOWN_EVENTS: usize = 60;

/// How many findings of one property are shown in full, and how many more in one line each.
const IN_FULL: usize = 20;
const IN_BRIEF: usize = 80;

/// Counts a finding of a property.
fn nth<'p>(shown: &mut Vec<(&'p str, usize)>, property: &'p str) -> usize {
    match shown.iter_mut().find(|(known, _)| *known == property) {
        Some((_, count)) => {
            *count += 1;
            *count
        }
        None => {
            shown.push((property, 1));
            1
        }
    }
}

/// The maximum length of a line of figures.
const WIDTH: usize = 100;

/// Figures, as many on a line as fit.
fn counts(stats: &[(&'static str, Stat)]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, stat) in stats {
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
    if report.suppressions.all.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}:", style.bold("suppressions"))?;
    for Suppression { place, text, used, is_foreign, .. } in &report.suppressions.all {
        let (place, text) = (Visible(place), Visible(text));
        match used {
            _ if *is_foreign => {
                writeln!(out, "  {text} ({place}): not something foresee looks for")?
            }
            0 => writeln!(out, "  {text} ({place}): unused")?,
            1 => writeln!(out, "  {text} ({place}): 1 finding")?,
            n => writeln!(out, "  {text} ({place}): {n} findings")?,
        }
    }
    Ok(())
}

/// Whether an analysis makes claims about other runs.
fn predicts(one: &Analysed) -> bool {
    one.info().is_some_and(|info| info.predicts)
}
