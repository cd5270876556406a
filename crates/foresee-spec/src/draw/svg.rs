//! Pictures for browsers.

use std::fmt::{self, Write as _};

use foresee_support::svg::{Canvas, View};

use super::layout::{Area, Layout, NODE_HEIGHT};
use super::{Drawing, wrap_at};
use crate::monitor::Verdict;

const MARGIN: f64 = 20.0;
const LINE: f64 = 14.0;
/// The width of a character of the monospaced font at the size used.
const CHAR: f64 = 6.7;
/// The maximum number of characters of a line in the legend.
const LEGEND_WIDTH: usize = 100;
const STYLE: &str = "\
text { fill: #1f2328; text-anchor: middle } .ground { fill: #fff } .title, .legend { text-anchor: start } .title { font-weight: bold }
.state { fill: #f6f8fa; stroke: #57606a } .bad { stroke: #cf222e; fill: #ffebe9 }
.good { stroke: #1a7f37; fill: #dafbe1 } .edge { stroke: #0969da; fill: none } .fatal { stroke: #cf222e }
.rest { stroke: #8c959f } #head path { fill: #0969da } #fatal path { fill: #cf222e }
#rest path { fill: #8c959f } .back { fill: #fff; fill-opacity: .9 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 }
.ground { fill: #0d1117 } .state { fill: #161b22; stroke: #8b949e }
.bad { stroke: #f85149; fill: #3d1518 } .good { stroke: #3fb950; fill: #12261e }
.edge { stroke: #58a6ff } .fatal { stroke: #f85149 } .rest { stroke: #6e7681 }
#head path { fill: #58a6ff } #fatal path { fill: #f85149 } #rest path { fill: #6e7681 }
.back { fill: #0d1117 } }
";

impl Drawing {
    /// The picture as an SVG document.
    pub fn to_svg(&self) -> String {
        let layout = Layout::new(self);
        let legend = self.legend_lines();
        let ((left, top), (right, bottom)) = layout.corners;
        // The arrow that marks the start is drawn before the first state.
        let (left, top) = (left - MARGIN - 24.0, top - MARGIN - 2.0 * LINE);
        let longest = legend.iter().map(|l| l.chars().count()).max().unwrap_or(0);
        let title = self.name.chars().count();
        let texts = (longest.max(title) as f64 * CHAR) + 2.0 * MARGIN;
        let width = (right - left + MARGIN).max(texts);
        let legend_top = bottom + MARGIN + LINE;
        let height = legend_top - top + legend.len() as f64 * LINE + MARGIN / 2.0;
        let mut svg = Canvas::new(View { left, top, width, height }, 11);
        svg.style(STYLE);
        svg.arrow_heads(&["head", "fatal", "rest"], 1);
        svg.ground();
        let (x, y) = (left + MARGIN, top + MARGIN);
        svg.text(format_args!("class=\"title\" x=\"{x:.0}\" y=\"{y:.0}\""), &self.name);
        // Writing to a string cannot fail.
        let _ = self.draw(&layout, &mut svg);
        for (i, line) in legend.iter().enumerate() {
            let y = legend_top + i as f64 * LINE;
            let at =
                format_args!("class=\"legend\" xml:space=\"preserve\" x=\"{x:.0}\" y=\"{y:.0}\"");
            svg.text(at, line);
        }
        svg.finish()
    }

    fn legend_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (i, text) in self.legend.iter().enumerate() {
            let number = format!("({})", i + 1);
            for (k, line) in wrap_at(text, LEGEND_WIDTH).into_iter().enumerate() {
                let before = if k == 0 { &number } else { "" };
                lines.push(format!("{before:<5} {line}"));
            }
        }
        lines
    }

    fn draw(&self, layout: &Layout, svg: &mut Canvas) -> fmt::Result {
        let first = layout.nodes[0];
        let tip = first.middle.0 - first.width / 2.0 - 2.0;
        let y = first.middle.1;
        writeln!(
            svg,
            "<path class=\"edge\" marker-end=\"url(#head)\" d=\"M{:.1} {y:.1}H{tip:.1}\"/>",
            tip - 24.0
        )?;
        for (edge, curve) in self.edges.iter().zip(&layout.edges) {
            let fatal = self.nodes[edge.to].verdict == Verdict::Bad;
            let (class, head) = match (fatal, edge.otherwise) {
                (true, _) => ("edge fatal", "fatal"),
                (_, true) => ("edge rest", "rest"),
                _ => ("edge", "head"),
            };
            let [a, b, c, d] = curve.points;
            writeln!(
                svg,
                "<path class=\"{class}\" marker-end=\"url(#{head})\" d=\"M{:.1} {:.1}C{:.1} {:.1} \
                 {:.1} {:.1} {:.1} {:.1}\"/>",
                a.0, a.1, b.0, b.1, c.0, c.1, d.0, d.1
            )?;
        }
        for (node, area) in self.nodes.iter().zip(&layout.nodes) {
            let class = match node.verdict {
                Verdict::Bad => "state bad",
                Verdict::Good => "state good",
                Verdict::Open => "state",
            };
            let (x, y) = (area.middle.0 - area.width / 2.0, area.middle.1 - area.height / 2.0);
            let (width, radius) = (area.width, NODE_HEIGHT / 2.0);
            writeln!(
                svg,
                "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{NODE_HEIGHT:.1}\" rx=\"{radius:.1}\"/>"
            )?;
            text(svg, area, std::slice::from_ref(&node.label));
        }
        for (edge, curve) in self.edges.iter().zip(&layout.edges) {
            let Area { middle: (x, y), width, height } = curve.label;
            let (width, x, y) = (width + 4.0, x - width / 2.0 - 2.0, y - height / 2.0);
            writeln!(
                svg,
                "<rect class=\"back\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
                 height=\"{height:.1}\"/>"
            )?;
            text(svg, &curve.label, &edge.label);
        }
        Ok(())
    }
}

/// Lines in the middle of an area.
fn text(svg: &mut Canvas, area: &Area, lines: &[String]) {
    let (x, middle) = area.middle;
    let top = middle - (lines.len() as f64 - 1.0) * LINE / 2.0 + 4.0;
    for (i, line) in lines.iter().enumerate() {
        let y = top + i as f64 * LINE;
        svg.text(format_args!("x=\"{x:.1}\" y=\"{y:.1}\""), line);
    }
}
