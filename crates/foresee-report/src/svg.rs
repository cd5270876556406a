//! A diagram as a picture.

use std::fmt::{self, Write as _};

use foresee_trace::Xml;

use crate::diagram::Diagram;

const ROW: usize = 26;
const TOP: usize = 44;
const LEFT: usize = 64;
/// The width of a character of the monospaced font at the size used.
const CHAR: usize = 7;

impl Diagram {
    /// The diagram as an SVG document: time runs downwards, a line for each thread, an arrow from
    /// each cause to its effect in another thread.
    pub fn to_svg(&self) -> String {
        let columns = Columns::of(self);
        let (width, height) = (columns.width, TOP + self.rows.len() * ROW + 16);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace, monospace\" \
             font-size=\"12\">\n\
             <style>\n\
             text {{ fill: #1f2328; stroke: #fff; stroke-width: 4px; paint-order: stroke }}\n\
             .ground {{ fill: #fff }} .dim {{ fill: #6e7781 }} .line {{ stroke: #d0d7de }}\n\
             .dot {{ fill: #0969da }} .arrow {{ stroke: #bc4c00; fill: none }} #head path \
             {{ fill: #bc4c00 }}\n\
             @media (prefers-color-scheme: dark) {{ text {{ fill: #e6edf3; stroke: #0d1117 }} \
             .ground {{ fill: #0d1117 }} .dim {{ fill: #8b949e }} .line {{ stroke: #30363d }} }}\n\
             </style>\n\
             <defs><marker id=\"head\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
             markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\"/>\
             </marker></defs>\n\
             <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"
        );
        // Writing to a string cannot fail.
        let _ = self.draw(&columns, &mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn draw(&self, columns: &Columns, svg: &mut String) -> fmt::Result {
        let y = |row: usize| TOP + row * ROW + ROW / 2;
        let bottom = TOP + self.rows.len() * ROW;
        for (column, name) in self.threads.iter().enumerate() {
            let x = columns.x[column];
            let name = Xml(name);
            writeln!(svg, "<text x=\"{x}\" y=\"24\" font-weight=\"bold\">{name}</text>")?;
            writeln!(
                svg,
                "<line class=\"line\" x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{bottom}\"/>"
            )?;
        }
        for arrow in &self.arrows {
            let (from, to) = (&self.rows[arrow.from], &self.rows[arrow.to]);
            let (x1, y1) = (columns.x[from.column], y(arrow.from));
            let (x2, y2) = (columns.x[to.column], y(arrow.to));
            // From the right the arrow ends behind the text, which would hide its head.
            let text = to.text.chars().count() * CHAR;
            let tip = if x2 > x1 { x2 - 6 } else { x2 + text + 16 };
            let middle = (x1 + tip) / 2;
            writeln!(
                svg,
                "<path class=\"arrow\" marker-end=\"url(#head)\" d=\"M{x1} {y1}C{middle} {y1} \
                 {middle} {y2} {tip} {y2}\"/>"
            )?;
        }
        for (i, row) in self.rows.iter().enumerate() {
            let (x, y) = (columns.x[row.column], y(i));
            let base = y + 4;
            writeln!(
                svg,
                "<text class=\"dim\" x=\"{}\" y=\"{base}\" text-anchor=\"end\">{}</text>",
                LEFT - 20,
                row.index
            )?;
            writeln!(svg, "<circle class=\"dot\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")?;
            let text = Xml(&row.text);
            writeln!(svg, "<text x=\"{}\" y=\"{base}\">{text}</text>", x + 10)?;
            if !row.loc.is_empty() {
                let (x, loc) = (columns.locs, Xml(&row.loc));
                writeln!(svg, "<text class=\"dim\" x=\"{x}\" y=\"{base}\">{loc}</text>")?;
            }
        }
        Ok(())
    }
}

/// Where the columns stand.
struct Columns {
    x: Vec<usize>,
    locs: usize,
    width: usize,
}

impl Columns {
    fn of(diagram: &Diagram) -> Columns {
        let mut widest: Vec<usize> =
            diagram.threads.iter().map(|name| name.chars().count()).collect();
        let mut loc = 0;
        for row in &diagram.rows {
            widest[row.column] = widest[row.column].max(row.text.chars().count() + 2);
            loc = loc.max(row.loc.chars().count());
        }
        let mut at = LEFT;
        let x = widest
            .iter()
            .map(|chars| {
                let x = at;
                at += chars * CHAR + 36;
                x
            })
            .collect();
        Columns { x, locs: at, width: at + loc * CHAR + 24 }
    }
}
