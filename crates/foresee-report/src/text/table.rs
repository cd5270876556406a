//! A schedule as a table with a column for each thread: what the verdict needs, the rest folded, no
//! wider than the terminal.

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use foresee_trace::{HEAP_FREE, Name, Op, Site};

use super::short;
use super::{Line, Style};
use crate::diagram::{Diagram, Row, caller};

/// Schedules of at most this many steps are shown as they are.
const SMALL: usize = 12;

/// How many steps that merely help are shown at most.
const HELPFUL: usize = 14;

/// How many steps are shown at most, however many the verdict consists of.
const MOST: usize = 60;

/// The narrowest column that is worth having; with more threads than fit there is one for all.
const NARROWEST: usize = 10;

/// How many steps the line with the observed order lists at most.
const LISTED: usize = 8;

/// How much a step matters: the smallest number most.
pub(crate) type Rank = u8;

/// What a reader looks for in a schedule.
#[derive(Default)]
pub(crate) struct Ranks {
    pub(crate) events: HashMap<u64, Rank>,
    /// The variables whose values violate a property: what threads read in them explains what they did.
    pub(crate) variables: Vec<String>,
}

impl Ranks {
    fn of(&self, row: &Row) -> Option<Rank> {
        let is_meant = |name: &str| {
            let is_end = |part: &String| {
                name.strip_suffix(part.as_str()).is_some_and(|rest| rest.ends_with('.'))
            };
            self.variables.iter().any(|variable| variable == name || is_end(variable))
        };
        let is_read =
            || row.op.reads() && row.target.as_ref().is_some_and(|target| is_meant(&target.name));
        self.events.get(&row.index).copied().or_else(|| is_read().then_some(READ))
    }
}

/// The rank of a read.
const READ: Rank = 4;

/// A schedule as it is shown.
pub(crate) struct Table {
    threads: Vec<String>,
    rows: Vec<Step>,
    /// How many steps of the run come before the first one that is shown.
    before: u64,
    /// Whether these are the first steps of the observed run, in their order.
    is_beginning: bool,
}

enum Step {
    /// A step, and how often it is repeated.
    Shown { row: Shown, times: usize },
    /// Steps that are not shown, and the columns of their threads.
    Folded { count: u64, columns: Vec<usize> },
}

struct Shown {
    index: u64,
    column: usize,
    text: String,
    place: String,
    is_next: bool,
    /// Whether it does not happen in this run, as far as the run goes.
    is_later: bool,
    is_initial: bool,
}

impl Shown {
    fn of(row: &Row, is_wide: bool) -> Shown {
        let mut text = row.text.clone();
        let place = match (row.caller.as_ref().or(row.location.as_ref()), is_wide) {
            (Some(place), false) => Name(&short::place(place)).to_string(),
            _ => row.loc.clone(),
        };
        if let Some(target) = row.target.as_ref().filter(|_| !is_wide) {
            let name = match is_of_jvm(row) {
                true => short::without_package(&target.name),
                false => &target.name,
            };
            let short = Name(&short::name(name)).to_string();
            text = text.replacen(&Name(&target.name).to_string(), &short, 1);
        }
        // The end of a block names it as an argument.
        let freed = format!("event({HEAP_FREE},\"");
        if !is_wide
            && let Some(block) = text.strip_prefix(&freed).and_then(|it| it.strip_suffix("\")"))
        {
            text = format!("{freed}{}\")", short::name(block));
        }
        let (index, column, is_next) = (row.index, row.column, row.is_next);
        let is_initial = row.op == Op::Init;
        Shown { index, column, text, place, is_next, is_later: false, is_initial }
    }

    fn is_like(&self, other: &Shown) -> bool {
        let key = |row: &Shown| (row.column, row.is_next, row.is_later);
        key(self) == key(other) && self.text == other.text && self.place == other.place
    }
}

impl Table {
    /// The steps of a diagram that matter, and those between them as far as there is room.
    pub(crate) fn of(diagram: &Diagram, ranks: &Ranks, is_wide: bool) -> Table {
        let plain = match is_wide {
            true => None,
            false => without_technical(diagram, ranks),
        };
        let diagram = plain.as_ref().unwrap_or(diagram);
        let kept = kept(diagram, ranks, is_wide);
        let first = kept.iter().position(|&is| is).unwrap_or(0);
        let hidden = diagram.events.saturating_sub(diagram.rows.len() as u64);
        let mut steps: Vec<Step> = Vec::new();
        let mut i = first;
        while i < diagram.rows.len() {
            let gap = kept[i..].iter().take_while(|&&is| !is).count();
            if gap > 1 {
                let mut columns: Vec<usize> = Vec::new();
                for row in &diagram.rows[i..i + gap] {
                    if !columns.contains(&row.column) {
                        columns.push(row.column);
                    }
                }
                steps.push(Step::Folded { count: gap as u64, columns });
                i += gap;
                continue;
            }
            // Folding one step would save nothing.
            let row = Shown::of(&diagram.rows[i], is_wide);
            i += 1;
            match steps.last_mut() {
                Some(Step::Shown { row: last, times }) if !is_wide && last.is_like(&row) => {
                    *times += 1;
                }
                _ => steps.push(Step::Shown { row, times: 1 }),
            }
        }
        let mut threads = diagram.threads.clone();
        // What the run leaves for later explains the order as much as what it does.
        let shown: Vec<&Row> =
            diagram.rows.iter().zip(&kept).filter(|(_, is)| **is).map(|(row, _)| row).collect();
        for (thread, row) in &diagram.later {
            // Where the next steps are what goes wrong, others do not matter.
            let is_ahead = shown.iter().any(|other| other.is_next);
            if is_ahead || !shown.iter().any(|other| other.overtakes == Some(row.index)) {
                continue;
            }
            let column = threads.iter().position(|known| known == thread).unwrap_or(threads.len());
            if column == threads.len() {
                threads.push(thread.clone());
            }
            let row = Shown { column, is_later: true, ..Shown::of(row, is_wide) };
            steps.push(Step::Shown { row, times: 1 });
        }
        let skipped = diagram.rows[..first].iter().zip(hidden..);
        let is_beginning = skipped.into_iter().all(|(row, place)| row.index == place);
        let before = hidden + first as u64;
        let mut table = Table { threads, rows: steps, before, is_beginning };
        table.drop_columns();
        table
    }

    /// The sites of a finding in their observed order, if there are at least two.
    pub(crate) fn of_sites(sites: &[Site], is_wide: bool) -> Option<Table> {
        let mut sites: Vec<&Site> =
            sites.iter().filter(|site| site.event.is_some() && site.op.is_some()).collect();
        sites.sort_by_key(|site| site.event);
        sites.dedup_by_key(|site| site.event);
        let (first, last) = (sites.first()?.event?, sites.last()?.event?);
        let mut threads: Vec<String> = Vec::new();
        let mut rows = Vec::new();
        let mut next = first;
        for site in &sites {
            let (index, thread) = (site.event?, Name(site.thread_name()).to_string());
            let known = threads.iter().position(|known| *known == thread);
            let column = known.unwrap_or(threads.len());
            if known.is_none() {
                threads.push(thread);
            }
            if index > next {
                rows.push(Step::Folded { count: index - next, columns: Vec::new() });
            }
            next = index + 1;
            let row = Row {
                index,
                column,
                op: site.op?,
                target: site.target.clone(),
                text: site.step.clone(),
                loc: site
                    .location()
                    .map_or(String::new(), |place| Name(&place.to_string()).to_string()),
                location: site.location().cloned(),
                caller: caller(site.location(), || {
                    site.frames.get(1..).unwrap_or_default().to_vec()
                }),
                caused_earlier: false,
                overtakes: None,
                is_next: false,
            };
            rows.push(Step::Shown { row: Shown::of(&row, is_wide), times: 1 });
        }
        (first < last).then_some(Table { threads, rows, before: first, is_beginning: true })
    }

    /// Leaves out the columns of threads that have no step in the table.
    fn drop_columns(&mut self) {
        let mut columns: Vec<usize> = Vec::new();
        for step in &mut self.rows {
            if let Step::Shown { row, .. } = step {
                let known = columns.iter().position(|&known| known == row.column);
                let column = known.unwrap_or(columns.len());
                if known.is_none() {
                    columns.push(row.column);
                }
                row.column = column;
            }
        }
        let names = std::mem::take(&mut self.threads);
        for step in &mut self.rows {
            if let Step::Folded { columns: folded, .. } = step {
                for column in folded {
                    let known = columns.iter().position(|known| known == column);
                    *column = known.unwrap_or_else(|| {
                        columns.push(*column);
                        columns.len() - 1
                    });
                }
            }
        }
        self.threads = columns.iter().map(|&column| names[column].clone()).collect();
    }

    fn steps(&self) -> impl Iterator<Item = &Shown> {
        self.rows.iter().filter_map(|step| match step {
            Step::Shown { row, .. } => Some(row),
            Step::Folded { .. } => None,
        })
    }

    /// How many columns have a step.
    fn used(&self) -> usize {
        self.steps().map(|row| row.column + 1).max().unwrap_or(0)
    }

    /// The note after each step: that it is still to come, which shown step it overtakes, how often
    /// it is repeated.
    fn marks(&self) -> Vec<String> {
        let mut first_later: Option<u64> = None;
        let mut marks: Vec<String> = Vec::with_capacity(self.rows.len());
        for step in self.rows.iter().rev() {
            let Step::Shown { row, times } = step else {
                marks.push(String::new());
                continue;
            };
            let repeated = if *times > 1 { format!(" × {times}") } else { String::new() };
            marks.push(match first_later.filter(|&later| later < row.index) {
                _ if row.is_next => format!("{repeated} ← next"),
                _ if row.is_later => " ← not yet".to_owned(),
                Some(event) if !row.is_initial => format!("{repeated} « {event}"),
                _ => repeated,
            });
            // An initial value precedes everything, wherever it stands.
            if !row.is_initial {
                first_later = Some(first_later.map_or(row.index, |later| later.min(row.index)));
            }
        }
        marks.reverse();
        marks
    }

    /// The shown steps as they were observed, if that differs and is short enough to compare.
    fn observed(&self, width: usize) -> Option<String> {
        let mut rows: Vec<&Shown> = self.steps().filter(|row| !row.is_initial).collect();
        if rows.len() > LISTED || rows.is_sorted_by_key(|row| row.index) {
            return None;
        }
        rows.sort_by_key(|row| row.index);
        // What a read sees in this run, which is not known, is not what it saw in the other.
        let each = |row: &&Shown| {
            let text = row.text.strip_suffix("=?").unwrap_or(&row.text);
            format!("{} {}", row.index, short::middle_cut(text, 30))
        };
        let text = rows.iter().map(each).collect::<Vec<_>>().join(", ");
        Some(text).filter(|text| text.width() + "observed order: ".len() <= width)
    }

    /// The table, a line each, and what its marks mean.
    pub(crate) fn draw(&self, style: Style, width: usize, out: &mut String) -> fmt::Result {
        match self.before {
            0 => {}
            1 if self.is_beginning => writeln!(out, "after the first event of the run:\n")?,
            n if self.is_beginning => writeln!(out, "after the first {n} events of the run:\n")?,
            1 => writeln!(out, "after one other event:\n")?,
            n => writeln!(out, "after {n} other events:\n")?,
        }
        let marks = self.marks();
        let layout = Layout::of(self, &marks, width);
        layout.header(self, style, out)?;
        for (step, mark) in self.rows.iter().zip(&marks) {
            layout.step(self, step, mark, style, out)?;
        }
        if marks.iter().any(|mark| mark.contains('«')) {
            writeln!(out, "« N: happens before event N, which was observed before it")?;
        }
        if let Some(observed) = self.observed(width) {
            writeln!(out, "observed order: {observed}")?;
        }
        Ok(())
    }
}

/// Whether a step is one of a Java program, or of the JVM itself.
fn is_of_jvm(row: &Row) -> bool {
    let file = row.location.as_ref().and_then(|place| place.file.as_deref());
    file.is_none_or(short::is_of_jvm)
}

/// Whether a step is not of the program, but stands for what the JVM guarantees: that a class is initialised before it is used, and an
/// object published before others see it. Unlike variables of programs, these have no value.
fn is_technical(row: &Row) -> bool {
    matches!(row.op, Op::VolatileRead | Op::VolatileWrite)
        && (row.text.ends_with(":shared)") || row.text.ends_with(":initialised)"))
        && is_of_jvm(row)
}

/// The diagram without technical steps, and without initial values that are far from where they were recorded, unless the verdict is about them; nothing if there are none.
fn without_technical(diagram: &Diagram, ranks: &Ranks) -> Option<Diagram> {
    let mut first_later = u64::MAX;
    let mut is_left_out = |row: &Row| {
        let is_displaced = row.op == Op::Init && row.index > first_later;
        if row.op != Op::Init {
            first_later = first_later.min(row.index);
        }
        (is_displaced || is_technical(row)) && !row.is_next && ranks.of(row).is_none()
    };
    let mut left_out: Vec<bool> = diagram.rows.iter().rev().map(&mut is_left_out).collect();
    if !left_out.contains(&true) {
        return None;
    }
    let mut plain = diagram.clone();
    plain.rows.retain(|_| !left_out.pop().unwrap_or(false));
    plain.events -= (diagram.rows.len() - plain.rows.len()) as u64;
    Some(plain)
}

/// Which rows are shown.
fn kept(diagram: &Diagram, ranks: &Ranks, is_wide: bool) -> Vec<bool> {
    let rows = &diagram.rows;
    if is_wide || rows.len() <= SMALL {
        return vec![true; rows.len()];
    }
    // What is about to happen is the violation, or else the last step is.
    let is_ahead = rows.last().is_some_and(|row| row.is_next);
    let last = rows.len() - 1;
    let rank = |(i, row): (usize, &Row)| match row.is_next || !is_ahead && i == last {
        true => Some(0),
        false => ranks.of(row),
    };
    let mut wanted: Vec<(Rank, usize)> =
        rows.iter().enumerate().filter_map(|at| Some((rank(at)?, at.0))).collect();
    // What other threads read explains nothing.
    let involved: HashSet<usize> =
        wanted.iter().filter(|(rank, _)| *rank < READ).map(|&(_, i)| rows[i].column).collect();
    wanted.retain(|&(rank, i)| rank < READ || involved.contains(&rows[i].column));
    // Of what matters equally, what comes last explains most.
    wanted.sort_by_key(|&(rank, i)| (rank, std::cmp::Reverse(i)));
    let needed = wanted.iter().filter(|(rank, _)| *rank == 0).count();
    wanted.truncate(needed.clamp(HELPFUL, MOST));
    let mut kept = vec![false; rows.len()];
    wanted.iter().for_each(|&(_, i)| kept[i] = true);
    kept
}

/// How wide everything is.
struct Layout {
    number: usize,
    /// One column for each thread; or two for all, with names and steps.
    columns: Vec<usize>,
    is_list: bool,
    place: usize,
}

/// The space between columns.
const GAP: usize = 2;

impl Layout {
    fn of(table: &Table, marks: &[String], width: usize) -> Layout {
        let number = table.steps().map(|row| row.index.to_string().len()).max().unwrap_or(1).max(5);
        let used = table.used();
        let mut natural: Vec<usize> =
            table.threads[..used].iter().map(|name| name.width()).collect();
        let mut place = 0;
        for (step, mark) in table.rows.iter().zip(marks) {
            match step {
                Step::Shown { row, .. } => {
                    let cell = row.text.width() + mark.width();
                    natural[row.column] = natural[row.column].max(cell);
                    place = place.max(row.place.width());
                }
                Step::Folded { count, columns } => {
                    if let [column] = columns[..]
                        && column < used
                    {
                        natural[column] = natural[column].max(folded(*count).width());
                    }
                }
            }
        }
        let room = width.saturating_sub(number + 2);
        let fits = |columns: &[usize], place: usize| {
            columns.iter().map(|column| column + GAP).sum::<usize>() + place <= room
        };
        if fits(&natural, place) {
            return Layout { number, columns: natural, is_list: false, place };
        }
        let narrow = place.min((room / 4).max(20));
        let widest = natural.iter().copied().max().unwrap_or(0);
        let capped = |cap: usize| natural.iter().map(|&n| n.min(cap)).collect::<Vec<_>>();
        let cap = (NARROWEST..=widest).rev().find(|&cap| fits(&capped(cap), narrow));
        if let Some(cap) = cap {
            let columns = capped(cap);
            let rest = room.saturating_sub(columns.iter().map(|column| column + GAP).sum());
            return Layout { number, columns, is_list: false, place: place.min(rest) };
        }
        let name = table.threads[..used].iter().map(|name| name.width()).max().unwrap_or(0);
        let name = name.min(16).max("thread".len());
        let step = room.saturating_sub(name + narrow + 2 * GAP).max(NARROWEST);
        let step = step.min(widest.max("step".len()));
        Layout { number, columns: vec![name, step], is_list: true, place: narrow }
    }

    fn start(&self, column: usize) -> usize {
        self.number + 2 + self.columns[..column].iter().map(|width| width + GAP).sum::<usize>()
    }

    fn header(&self, table: &Table, style: Style, out: &mut String) -> fmt::Result {
        let mut line = Line::default();
        line.put(0, &format!("{:>1$}", "event", self.number));
        if self.is_list {
            line.put(self.start(0), "thread");
            line.put(self.start(1), "step");
        } else {
            for (column, name) in table.threads[..self.columns.len()].iter().enumerate() {
                line.put(self.start(column), &short::cut(name, self.columns[column]));
            }
        }
        writeln!(out, "{}", style.bold(&line.text))
    }

    fn step(
        &self,
        table: &Table,
        step: &Step,
        mark: &str,
        style: Style,
        out: &mut String,
    ) -> fmt::Result {
        let mut line = Line::default();
        match step {
            Step::Shown { row, .. } => {
                line.put(0, &format!("{:>1$}", row.index, self.number));
                let mut column = row.column;
                if self.is_list {
                    let name = &table.threads[row.column];
                    line.put(self.start(0), &short::cut(name, self.columns[0]));
                    column = 1;
                }
                let room = self.columns[column].saturating_sub(mark.width());
                line.put(self.start(column), &short::middle_cut(&row.text, room));
                line.text.push_str(mark);
                let end = self.start(self.columns.len());
                if row.place.is_empty() || self.place == 0 {
                    writeln!(out, "{}", line.text)
                } else {
                    let gap = " ".repeat(end.saturating_sub(line.text.width()).max(1));
                    let place = short::cut(&row.place, self.place);
                    writeln!(out, "{}{gap}{}", line.text, style.dim(&place))
                }
            }
            Step::Folded { count, columns } => {
                line.put(0, &format!("{:>1$}", "…", self.number));
                let used = table.used();
                let text = match columns[..] {
                    [] => format!("… {count} more"),
                    [column] if column < used && !self.is_list => {
                        line.put(self.start(column), &folded(*count));
                        return writeln!(out, "{}", style.dim(&line.text));
                    }
                    _ => {
                        let names: Vec<&str> =
                            columns.iter().map(|&column| &*table.threads[column]).collect();
                        let room = self.start(self.columns.len()).saturating_sub(self.number + 20);
                        format!(
                            "{} of {}",
                            folded(*count),
                            short::cut(&names.join(", "), room.max(20))
                        )
                    }
                };
                line.put(self.start(0), &text);
                writeln!(out, "{}", style.dim(&line.text))
            }
        }
    }
}

/// What stands for steps of one thread.
fn folded(count: u64) -> String {
    format!("… {count} more")
}
