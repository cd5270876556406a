//! A stretch of a trace with a column for each thread and arrows from causes to effects.

use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr;

use super::{Line, Style};
use crate::diagram::{Arrow, Diagram, Row};

/// A diagram as lines of text, with arrows on lines of their own.
pub fn diagram(diagram: &Diagram, style: Style) -> String {
    let mut out = String::new();
    let diagram = diagram.cut();
    // Writing to a string cannot fail.
    let _ = Columns::of(&diagram).draw(&diagram, style, &mut out);
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
