//! A diagram as a picture.

use std::fmt::{self, Write as _};

use foresee_support::svg::{Canvas, View};

use crate::diagram::Diagram;

const ROW: usize = 26;
const TOP: usize = 44;
const LEFT: usize = 64;
/// The width of a character of the monospaced font at the size used.
const CHAR: usize = 7;
const STYLE: &str = "\
text { fill: #1f2328; stroke: #fff; stroke-width: 4px; paint-order: stroke }
.ground { fill: #fff } .dim { fill: #6e7781 } .line { stroke: #d0d7de }
.dot { fill: #0969da } .arrow { stroke: #bc4c00; fill: none } #head path { fill: #bc4c00 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; stroke: #0d1117 } .ground { fill: #0d1117 } \
.dim { fill: #8b949e } .line { stroke: #30363d } }
";

impl Diagram {
    /// The diagram as an SVG document: time runs downwards, a line for each thread, an arrow from
    /// each cause to its effect in another thread.
    pub fn to_svg(&self) -> String {
        let columns = Columns::of(self);
        let height = TOP + self.rows.len() * ROW + 16;
        let view = View { left: 0.0, top: 0.0, width: columns.width as f64, height: height as f64 };
        let mut canvas = Canvas::new(view, 12);
        canvas.style(STYLE);
        canvas.arrow_heads(&["head"], 0);
        canvas.ground();
        // Writing to a string cannot fail.
        let _ = self.draw(&columns, &mut canvas);
        canvas.finish()
    }

    fn draw(&self, columns: &Columns, svg: &mut Canvas) -> fmt::Result {
        let y = |row: usize| TOP + row * ROW + ROW / 2;
        let bottom = TOP + self.rows.len() * ROW;
        for (column, name) in self.threads.iter().enumerate() {
            let x = columns.x[column];
            svg.text(format_args!("x=\"{x}\" y=\"24\" font-weight=\"bold\""), name);
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
            let number = LEFT - 20;
            svg.text(
                format_args!("class=\"dim\" x=\"{number}\" y=\"{base}\" text-anchor=\"end\""),
                &row.index.to_string(),
            );
            writeln!(svg, "<circle class=\"dot\" cx=\"{x}\" cy=\"{y}\" r=\"4\"/>")?;
            svg.text(format_args!("x=\"{}\" y=\"{base}\"", x + 10), &row.text);
            if !row.loc.is_empty() {
                let x = columns.locs;
                svg.text(format_args!("class=\"dim\" x=\"{x}\" y=\"{base}\""), &row.loc);
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
