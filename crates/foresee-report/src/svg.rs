//! A diagram as a picture.

use std::fmt::{self, Write as _};

use foresee_support::svg::{Canvas, View};

use crate::diagram::{Arrow, Diagram};

const ROW: usize = 26;
const TOP: usize = 44;
const LEFT: usize = 64;
/// The width of a character of the monospaced font at the size used.
const CHAR: usize = 7;
/// Between a column and its first lane for arrows, and between lanes.
const GUTTER: usize = 14;
const LANE: usize = 6;
const MOST_LANES: usize = 12;
/// How far the corners of arrows are rounded.
const BEND: usize = 5;
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
        let cut = self.cut();
        let columns = Columns::of(&cut);
        let height = TOP + cut.rows.len() * ROW + 16;
        let view = View { left: 0.0, top: 0.0, width: columns.width as f64, height: height as f64 };
        let mut canvas = Canvas::new(view, 12);
        canvas.style(STYLE);
        canvas.arrow_heads(&["head"], 0);
        canvas.ground();
        // Writing to a string cannot fail.
        let _ = cut.draw(&columns, &mut canvas);
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
        for (arrow, lane) in self.arrows.iter().zip(&columns.lanes) {
            let (from, to) = (&self.rows[arrow.from], &self.rows[arrow.to]);
            let (x1, y1) = (columns.x[from.column], y(arrow.from));
            let (x2, y2) = (columns.x[to.column], y(arrow.to));
            let (lane, between) = (x2 - GUTTER - lane * LANE, y1 + ROW / 2);
            // Below the label of the cause, down beside the column of the effect, and to it.
            let (before, after) =
                if lane > x1 { (x1 + BEND, lane - BEND) } else { (x1 - BEND, lane + BEND) };
            writeln!(
                svg,
                "<path class=\"arrow\" marker-end=\"url(#head)\" d=\"M{x1} {y1}V{}Q{x1} {between} {before} {between}\
                 H{after}Q{lane} {between} {lane} {}V{}Q{lane} {y2} {} {y2}H{}\"/>",
                between - BEND,
                between + BEND,
                y2 - BEND,
                lane + BEND,
                x2 - 6
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

/// Where the columns stand, and where arrows run: each has a lane beside the column of its effect, in which no label is and,
/// as far as there is room, no other arrow at the same height.
struct Columns {
    x: Vec<usize>,
    locs: usize,
    width: usize,
    /// The lane of each arrow; 0 is next to the column.
    lanes: Vec<usize>,
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
        let (lanes, used) = lanes(diagram);
        let mut at = LEFT;
        let columns = widest.iter().zip(&used);
        let x = columns
            .map(|(chars, used)| {
                let x = at + used.saturating_sub(1) * LANE;
                at = x + chars * CHAR + 36;
                x
            })
            .collect();
        Columns { x, locs: at, width: at + loc * CHAR + 24, lanes }
    }
}

/// The lane of each arrow, and how many each column has. An arrow takes the first lane that is free from the row of its
/// cause to that of its effect; those that end at the same event may share theirs.
fn lanes(diagram: &Diagram) -> (Vec<usize>, Vec<usize>) {
    // For each column and lane: the last row that is taken, and by an arrow to which row.
    let mut taken: Vec<Vec<usize>> = vec![Vec::new(); diagram.threads.len()];
    let mut order: Vec<usize> = (0..diagram.arrows.len()).collect();
    order.sort_by_key(|&i| (diagram.arrows[i].from, diagram.arrows[i].to));
    let mut lanes = vec![0; diagram.arrows.len()];
    for i in order {
        let Arrow { from, to } = diagram.arrows[i];
        let ends = &mut taken[diagram.rows[to].column];
        let free = ends.iter().position(|&end| end <= from || end == to);
        let lane = match free {
            Some(lane) => lane,
            None if ends.len() < MOST_LANES => {
                ends.push(0);
                ends.len() - 1
            }
            None => MOST_LANES - 1,
        };
        ends[lane] = ends[lane].max(to);
        lanes[i] = lane;
    }
    (lanes, taken.iter().map(Vec::len).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagram::Row;
    use foresee_trace::Op;

    fn diagram(columns: &[usize], arrows: &[(usize, usize)]) -> Diagram {
        let row = |(i, &column): (usize, &usize)| Row {
            index: i as u64,
            column,
            op: Op::Write,
            target: None,
            text: "w(shared_variable)=12345".to_owned(),
            location: None,
            caller: None,
            loc: String::new(),
            caused_earlier: false,
            overtakes: None,
            is_next: false,
        };
        Diagram {
            threads: (0..=*columns.iter().max().unwrap()).map(|i| format!("T{i}")).collect(),
            rows: columns.iter().enumerate().map(row).collect(),
            arrows: arrows.iter().map(|&(from, to)| Arrow { from, to }).collect(),
            ..Diagram::default()
        }
    }

    #[test]
    fn arrows_that_overlap_have_lanes_of_their_own() {
        let drawn = diagram(&[0, 0, 1, 1, 2, 0], &[(0, 3), (1, 2), (2, 4), (3, 5)]);
        assert_eq!(lanes(&drawn), (vec![0, 1, 0, 0], vec![1, 2, 1]));
        let in_turn = diagram(&[0, 1, 0, 1], &[(0, 1), (2, 3)]);
        assert_eq!(lanes(&in_turn), (vec![0, 0], vec![0, 1]));
    }

    /// Every straight part of an arrow, as its ends.
    fn parts(path: &str) -> Vec<[(f64, f64); 2]> {
        let mut parts = Vec::new();
        let mut at = (0.0, 0.0);
        let mut rest = path;
        while let Some(step) = rest.chars().next() {
            let end =
                rest[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |n| n + 1);
            let numbers: Vec<f64> =
                rest[1..end].split_whitespace().map(|n| n.parse().unwrap()).collect();
            let next = match step {
                'V' => (at.0, numbers[0]),
                'H' => (numbers[0], at.1),
                _ => (numbers[numbers.len() - 2], numbers[numbers.len() - 1]),
            };
            if step != 'M' {
                parts.push([at, next]);
            }
            at = next;
            rest = &rest[end..];
        }
        parts
    }

    #[test]
    fn arrows_cross_no_label() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..200 {
            let rows = random.usize(2..20);
            let columns: Vec<usize> = (0..rows).map(|_| random.usize(..4)).collect();
            let mut arrows = Vec::new();
            for to in 1..rows {
                let from = random.usize(..to);
                if columns[from] != columns[to] {
                    arrows.push((from, to));
                }
            }
            let drawn = diagram(&columns, &arrows);
            let at = Columns::of(&drawn);
            let svg = drawn.to_svg();
            let paths = svg.split("d=\"M").skip(1).filter(|path| path.contains('V'));
            let mut seen = 0;
            for path in paths {
                seen += 1;
                for [(x1, y1), (x2, y2)] in parts(&format!("M{}", path.split('"').next().unwrap()))
                {
                    for (i, row) in drawn.rows.iter().enumerate() {
                        let y = (TOP + i * ROW + ROW / 2) as f64;
                        let left = (at.x[row.column] + 10) as f64;
                        let right = left + (row.text.len() * CHAR) as f64;
                        let is_in = x1.max(x2) > left
                            && x1.min(x2) < right
                            && y1.max(y2) > y - 7.0
                            && y1.min(y2) < y + 7.0;
                        assert!(!is_in, "{path} crosses the label of row {i}\n{svg}");
                    }
                }
            }
            assert_eq!(seen, arrows.len());
        }
    }
}
