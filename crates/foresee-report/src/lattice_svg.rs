//! The lattice of a property as a picture: every cut with the values of the property's variables,
//! the observed run, and the violating one.
//!
//! The two runs differ in more than colour: the observed one is a thick line, the violating
//! one a dashed line, and where both take a step they run side by side.

mod layout;
mod texts;

use std::fmt::{self, Write as _};

use foresee_predict::lattice::{Edge, Node, Picture};
use foresee_support::svg::{Canvas, View, Xml};
use unicode_width::UnicodeWidthStr;

use layout::{Layout, Point};
use texts::{Label, NodeText, Texts, happened, wrapped};

/// The width of a character of the monospaced font at the size used, and the height of a line.
const CHAR: f64 = 7.3;
const LINE: f64 = 15.0;
const MARGIN: f64 = 20.0;
/// The distance between the two runs where both take a step.
const ASIDE: f64 = 3.5;
/// The characters of a line of the legend.
const LEGEND_LINE: usize = 72;
const STYLE: &str = "\
text { fill: #1f2328 } .middle { text-anchor: middle } .bold { font-weight: bold } .dim { fill: #59636e }
.ground, .back { fill: #fff } .back { fill-opacity: .88 } .cut { fill: #f6f8fa; stroke: #818b98 }
.fails { fill: #ffebe9 } .step { stroke: #818b98 } .observed { stroke: #0550ae; stroke-width: 4; fill: none }
.violating { stroke: #cf222e; stroke-width: 2.5; stroke-dasharray: 7 4; fill: none } .alarm { fill: #cf222e }
.badge { fill: #cf222e } .cross { stroke: #fff; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .dim { fill: #9198a1 } .ground, .back { fill: #0d1117 }
.cut { fill: #161b22; stroke: #656c76 } .fails { fill: #3d1518 } .step { stroke: #656c76 } .observed { stroke: #58a6ff }
.violating { stroke: #f85149 } .alarm, .badge { fill: #f85149 } .cross { stroke: #0d1117 } }
";

/// The lattice as an SVG document, from the initial state at the top to the last cut at the bottom.
pub fn lattice_svg(picture: &Picture) -> String {
    let texts = Texts::new(picture);
    let layout = Layout::new(picture, &texts);
    let legend = Legend::of(picture, &layout);
    let longest = texts.head.iter().map(|line| line.width()).max().unwrap_or(0);
    let longest = longest.max(picture.property.width()) as f64 * CHAR;
    let inner = (layout.right - layout.left).max(longest).max(legend.width());
    let width = inner + 2.0 * MARGIN;
    let top = MARGIN + LINE * (texts.head.len() as f64 + 1.0) + MARGIN;
    let legend_top = top + layout.bottom + 2.0 * MARGIN;
    let height = legend_top + legend.height() + MARGIN / 2.0;
    let mut svg = Canvas::new(View { left: 0.0, top: 0.0, width, height }, 12);
    svg.title(&format!("lattice of {}", picture.property));
    svg.style(STYLE);
    svg.ground();
    let mut drawing = Drawing { svg, picture, texts: &texts, layout: &layout };
    drawing.head();
    let x = MARGIN + (inner - layout.left - layout.right) / 2.0;
    // Writing to a string cannot fail.
    let _ = writeln!(drawing.svg, "<g transform=\"translate({x:.1} {top:.1})\">");
    let _ = drawing.lattice();
    let mut svg = drawing.svg;
    let _ = writeln!(svg, "</g>\n<g transform=\"translate({MARGIN} {legend_top:.1})\">");
    let _ = legend.draw(&mut svg);
    let _ = writeln!(svg, "</g>");
    svg.finish()
}

struct Drawing<'a> {
    svg: Canvas,
    picture: &'a Picture,
    texts: &'a Texts,
    layout: &'a Layout,
}

impl Drawing<'_> {
    fn head(&mut self) {
        let mut y = MARGIN + 4.0;
        let name = &self.picture.property;
        self.svg.text(format_args!("class=\"bold\" x=\"{MARGIN}\" y=\"{y:.1}\""), name);
        for line in &self.texts.head {
            y += LINE;
            let at = format_args!("xml:space=\"preserve\" x=\"{MARGIN}\" y=\"{y:.1}\"");
            self.svg.text(at, line);
        }
    }

    fn lattice(&mut self) -> fmt::Result {
        // More important lines are drawn later, on top.
        let Drawing { picture, texts, layout, .. } = *self;
        let rank = |(edge, _): &(&Edge, &Label)| (edge.violating, edge.observed);
        let mut edges: Vec<(&Edge, &Label)> = picture.edges.iter().zip(&texts.labels).collect();
        edges.sort_by_key(rank);
        for (edge, text) in edges {
            self.step(edge, text)?;
        }
        for ((node, text), &at) in picture.nodes.iter().zip(&texts.nodes).zip(&layout.nodes) {
            self.cut(node, text, at)?;
        }
        let labels = texts.labels.iter().zip(&layout.labels).zip(&picture.edges);
        for ((text, place), edge) in labels {
            if let Some(place) = place {
                self.label(text, *place, edge)?;
            }
        }
        Ok(())
    }

    /// The line, or two lines, of a step.
    fn step(&mut self, edge: &Edge, text: &Label) -> fmt::Result {
        let (from, to) = self.layout.line(edge.from, edge.to);
        let aside = if edge.observed && edge.violating { ASIDE } else { 0.0 };
        write!(self.svg, "<g>")?;
        self.svg.title(&text.full);
        if !edge.observed && !edge.violating {
            line(&mut self.svg, "step", from, to, 0.0)?;
        }
        if edge.observed {
            line(&mut self.svg, "observed", from, to, -aside)?;
        }
        if edge.violating {
            line(&mut self.svg, "violating", from, to, aside)?;
        }
        writeln!(self.svg, "</g>")
    }

    fn cut(&mut self, node: &Node, text: &NodeText, (x, y): Point) -> fmt::Result {
        let (width, height) = (self.layout.width, self.layout.height);
        let (left, top) = (x - width / 2.0, y - height / 2.0);
        let mut frame = |class: &str, by: f64| {
            writeln!(
                self.svg,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\" rx=\"{:.1}\"/>",
                left - by,
                top - by,
                width + 2.0 * by,
                height + 2.0 * by,
                9.0 + by
            )
        };
        frame(if node.violated { "cut fails" } else { "cut" }, 0.0)?;
        if node.observed {
            frame("observed", 0.0)?;
        }
        if node.violating {
            frame("violating", if node.observed { 5.0 } else { 0.0 })?;
        }
        if node.violated {
            badge(&mut self.svg, (left + width, top))?;
        }
        write!(self.svg, "<g class=\"middle\">")?;
        self.svg.title(&text.full);
        let lines = 1 + text.values.len();
        let mut base = y - (lines as f64 - 1.0) * LINE / 2.0 + 4.0;
        let label = Xml(&text.label);
        write!(self.svg, "<text class=\"bold\" x=\"{x:.1}\" y=\"{base:.1}\">{label}")?;
        if !text.verdict.is_empty() {
            write!(self.svg, " <tspan class=\"alarm\">{}</tspan>", text.verdict)?;
        }
        writeln!(self.svg, "</text>")?;
        for line in &text.values {
            base += LINE;
            self.svg.text(format_args!("x=\"{x:.1}\" y=\"{base:.1}\""), line);
        }
        writeln!(self.svg, "</g>")
    }

    fn label(&mut self, text: &Label, (x, y): Point, edge: &Edge) -> fmt::Result {
        let width = text.chars() as f64 * CHAR + 4.0;
        let class = if edge.violating && !edge.observed { " class=\"alarm\"" } else { "" };
        writeln!(
            self.svg,
            "<rect class=\"back\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{LINE}\"/>\
             <text class=\"middle\" x=\"{x:.1}\" y=\"{:.1}\"><tspan class=\"dim\">{}</tspan> \
             <tspan{class}>{}</tspan></text>",
            x - width / 2.0,
            y - LINE / 2.0,
            y + 4.0,
            text.index,
            Xml(&text.text)
        )
    }
}

/// A line, moved to its side.
fn line(svg: &mut Canvas, class: &str, from: Point, to: Point, aside: f64) -> fmt::Result {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (x, y) = (dy / length * aside, -dx / length * aside);
    writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
        from.0 + x,
        from.1 + y,
        to.0 + x,
        to.1 + y
    )
}

/// A cross: here some run violates the property.
fn badge(svg: &mut Canvas, (x, y): Point) -> fmt::Result {
    writeln!(
        svg,
        "<circle class=\"badge\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"8\"/>\
         <path class=\"cross\" d=\"M{:.1} {:.1}l6 6m0 -6l-6 6\"/>",
        x - 3.0,
        y - 3.0
    )
}

/// What the signs in the picture mean.
struct Legend {
    entries: Vec<(Sign, Vec<String>)>,
}

#[derive(Clone, Copy)]
enum Sign {
    Observed,
    Violating,
    Violated,
    Cut,
    None,
}

impl Legend {
    fn of(picture: &Picture, layout: &Layout) -> Legend {
        let mut entries = vec![(Sign::Observed, "the observed run".to_owned())];
        if picture.nodes.iter().any(|node| node.violating) {
            let text = "the violating run, up to the violation".to_owned();
            entries.push((Sign::Violating, text));
        }
        if picture.nodes.iter().any(|node| node.violated) {
            let text = "here some run violates the property".to_owned();
            entries.push((Sign::Violated, text));
        }
        // An example in which as many threads as possible have done something.
        let moved = |node: &&Node| node.counts.iter().filter(|&&count| count > 0).count();
        if let Some(node) = picture.nodes.iter().rev().max_by_key(moved) {
            let text = format!("{} means: {}", node.label, happened(node, picture));
            entries.push((Sign::Cut, text));
        }
        let sides = match &picture.threads[..] {
            [left, right] => {
                format!("time runs downwards; {left} moves to the left, {right} to the right")
            }
            [one] => format!("time runs downwards; all steps are of {one}"),
            _ => "time runs downwards".to_owned(),
        };
        entries.push((Sign::None, sides));
        if layout.labels.contains(&None) {
            let text = "rest the pointer on a line without text to see its event".to_owned();
            entries.push((Sign::None, text));
        }
        let wrap = |(sign, text): (Sign, String)| (sign, wrapped(&text, LEGEND_LINE));
        Legend { entries: entries.into_iter().map(wrap).collect() }
    }

    fn lines(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().flat_map(|(_, lines)| lines)
    }

    fn width(&self) -> f64 {
        let longest = self.lines().map(|line| line.width()).max().unwrap_or(0);
        Self::TEXT + longest as f64 * CHAR
    }

    fn height(&self) -> f64 {
        self.lines().count() as f64 * Self::ROW
    }

    const TEXT: f64 = 50.0;
    const ROW: f64 = 20.0;

    fn draw(&self, svg: &mut Canvas) -> fmt::Result {
        let mut y = 0.0;
        for (sign, lines) in &self.entries {
            match sign {
                Sign::Observed => line(svg, "observed", (0.0, y), (40.0, y), 0.0)?,
                Sign::Violating => line(svg, "violating", (0.0, y), (40.0, y), 0.0)?,
                Sign::Violated => badge(svg, (20.0, y))?,
                Sign::Cut => writeln!(
                    svg,
                    "<rect class=\"cut\" x=\"8\" y=\"{:.1}\" width=\"24\" height=\"14\" rx=\"5\"/>",
                    y - 7.0
                )?,
                Sign::None => {}
            }
            for text in lines {
                let (x, base) = (Self::TEXT, y + 4.0);
                svg.text(format_args!("xml:space=\"preserve\" x=\"{x}\" y=\"{base:.1}\""), text);
                y += Self::ROW;
            }
        }
        Ok(())
    }
}
