//! The positions of states, edges and labels.
//!
//! States are arranged in columns by their distance from the start, the bad one last. For each
//! edge, several curves and label positions are tried, and the one that overlaps least with what is
//! already placed is chosen.

use std::collections::VecDeque;

use super::Drawing;
use crate::monitor::Verdict;

/// The size of a character of the fonts used, and of a line of a label.
const CHAR: f64 = 6.7;
const LINE: f64 = 14.0;
/// The distance between columns, and between the rows of a column, without labels.
const COLUMN_GAP: f64 = 64.0;
const ROW_GAP: f64 = 92.0;
/// Additional distance between columns for each edge beyond a few.
const CROWDED: f64 = 8.0;
pub(super) const NODE_HEIGHT: f64 = 34.0;

/// A point of the picture.
pub(super) type Point = (f64, f64);

/// A rectangle by its middle and its size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) middle: Point,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    fn of_label(middle: Point, lines: &[String]) -> Area {
        let widest = lines.iter().map(|l| l.chars().count()).max().unwrap_or(0);
        Area { middle, width: widest as f64 * CHAR, height: lines.len() as f64 * LINE }
    }

    fn overlaps(&self, other: &Area) -> bool {
        let (dx, dy) = (self.middle.0 - other.middle.0, self.middle.1 - other.middle.1);
        dx.abs() * 2.0 < self.width + other.width && dy.abs() * 2.0 < self.height + other.height
    }

    fn holds(&self, point: Point, margin: f64) -> bool {
        (point.0 - self.middle.0).abs() < self.width / 2.0 + margin
            && (point.1 - self.middle.1).abs() < self.height / 2.0 + margin
    }

    /// The point where a line from the centre towards a point leaves the ellipse in the rectangle.
    fn border(&self, towards: Point, margin: f64) -> Point {
        let (dx, dy) = (towards.0 - self.middle.0, towards.1 - self.middle.1);
        let (a, b) = (self.width / 2.0 + margin, self.height / 2.0 + margin);
        let scale = (dx * dx / (a * a) + dy * dy / (b * b)).sqrt().max(1e-6);
        (self.middle.0 + dx / scale, self.middle.1 + dy / scale)
    }
}

/// The path of an edge, a cubic Bézier curve, and the position of its label.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) points: [Point; 4],
    pub(super) label: Area,
}

/// The positions of everything.
pub(super) struct Layout {
    pub(super) nodes: Vec<Area>,
    /// In the order of the drawing's edges.
    pub(super) edges: Vec<Curve>,
    /// The upper left and the lower right corner of the picture.
    pub(super) corners: (Point, Point),
}

impl Layout {
    pub(super) fn new(drawing: &Drawing) -> Layout {
        let columns = columns(drawing);
        let nodes = place_nodes(drawing, &columns);
        let edges = place_edges(drawing, &nodes);
        let mut corners = ((f64::MAX, f64::MAX), (f64::MIN, f64::MIN));
        let mut include = |(x, y): Point| {
            corners.0 = (corners.0.0.min(x), corners.0.1.min(y));
            corners.1 = (corners.1.0.max(x), corners.1.1.max(y));
        };
        for area in nodes.iter().chain(edges.iter().map(|e| &e.label)) {
            let (dx, dy) = (area.width / 2.0, area.height / 2.0);
            include((area.middle.0 - dx, area.middle.1 - dy));
            include((area.middle.0 + dx, area.middle.1 + dy));
        }
        edges.iter().flat_map(|e| samples(&e.points)).for_each(&mut include);
        Layout { nodes, edges, corners }
    }
}

/// The states of each column, from top to bottom.
fn columns(drawing: &Drawing) -> Vec<Vec<usize>> {
    let count = drawing.nodes.len();
    let mut column = vec![usize::MAX; count];
    column[0] = 0;
    let mut queue = VecDeque::from([0usize]);
    while let Some(at) = queue.pop_front() {
        for edge in drawing.edges.iter().filter(|e| e.from == at) {
            if column[edge.to] == usize::MAX {
                column[edge.to] = column[at] + 1;
                queue.push_back(edge.to);
            }
        }
    }
    let is_bad = |i: &usize| drawing.nodes[*i].verdict == Verdict::Bad;
    let last = (0..count).filter(|i| !is_bad(i)).map(|i| column[i]).max().unwrap_or(0);
    let mut columns = vec![Vec::new(); last + 2];
    for (i, &at) in column.iter().enumerate() {
        columns[if is_bad(&i) { last + 1 } else { at }].push(i);
    }
    columns.retain(|c| !c.is_empty());
    order_rows(drawing, &mut columns);
    columns
}

/// Moves states of one column near the rows of their neighbours in others.
fn order_rows(drawing: &Drawing, columns: &mut [Vec<usize>]) {
    let mut row = vec![0.0; drawing.nodes.len()];
    let note = |column: &[usize], row: &mut Vec<f64>| {
        let middle = (column.len() as f64 - 1.0) / 2.0;
        column.iter().enumerate().for_each(|(k, &i)| row[i] = k as f64 - middle);
    };
    columns.iter().for_each(|c| note(c, &mut row));
    for _ in 0..4 {
        for column in &mut *columns {
            let mean = |&i: &usize| {
                let neighbours = drawing.edges.iter().filter_map(|e| match (e.from, e.to) {
                    (from, to) if from == i && to != i => Some(row[to]),
                    (from, to) if to == i && from != i => Some(row[from]),
                    _ => None,
                });
                let (sum, n) = neighbours.fold((0.0, 0.0), |(s, n), r| (s + r, n + 1.0));
                if n > 0.0 { sum / n } else { 0.0 }
            };
            column.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
            note(column, &mut row);
        }
    }
}

fn place_nodes(drawing: &Drawing, columns: &[Vec<usize>]) -> Vec<Area> {
    let width_of = |text: &str| (text.chars().count() as f64 * CHAR + 22.0).max(NODE_HEIGHT);
    let mut column_of = vec![0; drawing.nodes.len()];
    for (c, column) in columns.iter().enumerate() {
        column.iter().for_each(|&i| column_of[i] = c);
    }
    // Labels of loops need room in their column, labels of edges to a neighbour beside it.
    let mut widths: Vec<f64> = columns
        .iter()
        .map(|c| c.iter().map(|&i| width_of(&drawing.nodes[i].label)).fold(0.0, f64::max))
        .collect();
    let mut gaps = vec![COLUMN_GAP; columns.len()];
    let mut crowd = vec![0.0; columns.len()];
    let mut lines = 1;
    for edge in &drawing.edges {
        let (from, to) = (column_of[edge.from], column_of[edge.to]);
        let width = Area::of_label((0.0, 0.0), &edge.label).width;
        lines = lines.max(edge.label.len());
        crowd[from.min(to)] += if from == to { 0.5 } else { 1.0 };
        if edge.from == edge.to {
            widths[from] = widths[from].max(width);
        } else if from.abs_diff(to) == 1 {
            let gap = &mut gaps[from.min(to)];
            *gap = gap.max(width + COLUMN_GAP);
        }
    }
    // With edges across columns, every second state is placed a little lower to let them pass.
    let skips = drawing.edges.iter().any(|e| column_of[e.from].abs_diff(column_of[e.to]) > 1);
    let row_height = ROW_GAP + LINE * lines as f64;
    let mut areas =
        vec![Area { middle: (0.0, 0.0), width: 0.0, height: NODE_HEIGHT }; column_of.len()];
    let mut x = 0.0;
    for (c, column) in columns.iter().enumerate() {
        x += widths[c] / 2.0;
        for (k, &i) in column.iter().enumerate() {
            let lower = if c % 2 == 1 && skips { row_height / 4.0 } else { 0.0 };
            let y = (k as f64 - (column.len() as f64 - 1.0) / 2.0) * row_height + lower;
            areas[i].middle = (x, y);
            areas[i].width = width_of(&drawing.nodes[i].label);
        }
        x += widths[c] / 2.0 + gaps[c] + (crowd[c] - 4.0f64).clamp(0.0, 20.0) * CROWDED;
    }
    areas
}

/// How far edges bend to one side. Edges with a counterpart in the other direction are never
/// straight.
const BENDS: [f64; 15] = [
    0.0, 26.0, -26.0, 52.0, -52.0, 90.0, -90.0, 140.0, -140.0, 200.0, -200.0, 280.0, -280.0, 380.0,
    -380.0,
];
/// The possible positions of a label on its edge.
const PLACES: [f64; 5] = [0.5, 0.4, 0.6, 0.3, 0.7];

fn place_edges(drawing: &Drawing, nodes: &[Area]) -> Vec<Curve> {
    let mut placed: Vec<Option<Curve>> = vec![None; drawing.edges.len()];
    let distance = |i: usize| {
        let (a, b) = (nodes[drawing.edges[i].from].middle, nodes[drawing.edges[i].to].middle);
        (a.0 - b.0).hypot(a.1 - b.1)
    };
    let mut order: Vec<usize> = (0..drawing.edges.len()).collect();
    order.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    for i in order {
        let edge = &drawing.edges[i];
        let candidates = if edge.from == edge.to {
            loops(&nodes[edge.from], &edge.label)
        } else {
            let returns = |e: &super::Edge| e.from == edge.to && e.to == edge.from;
            let pair = drawing.edges.iter().any(returns);
            bends(&nodes[edge.from], &nodes[edge.to], &edge.label, pair)
        };
        let cost = |(curve, own): &(Curve, f64)| {
            own + disturbance(curve, (edge.from, edge.to), nodes, placed.iter().flatten())
        };
        let best = candidates.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        placed[i] = best.map(|(curve, _)| curve);
    }
    placed.into_iter().flatten().collect()
}

/// The possible loops of an edge back to its state: above it or below.
fn loops(node: &Area, label: &[String]) -> Vec<(Curve, f64)> {
    let (x, y) = node.middle;
    let way = |side: f64| {
        let edge = y + side * (node.height / 2.0 + 1.0);
        let far = edge + side * 34.0;
        let points = [(x - 9.0, edge), (x - 24.0, far), (x + 24.0, far), (x + 9.0, edge)];
        let mut area = Area::of_label((x, 0.0), label);
        area.middle.1 = edge + side * (30.0 + area.height / 2.0);
        Curve { points, label: area }
    };
    vec![(way(-1.0), 0.0), (way(1.0), 2.0)]
}

/// The possible curves of an edge to another state, each with its cost.
fn bends(from: &Area, to: &Area, label: &[String], pair: bool) -> Vec<(Curve, f64)> {
    let (a, b) = (from.middle, to.middle);
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy).max(1.0);
    let aside = (dy / length, -dx / length);
    let mut ways = Vec::new();
    for bend in BENDS.into_iter().filter(|bend| !pair || *bend != 0.0) {
        let at = |t: f64| (a.0 + dx * t + aside.0 * bend, a.1 + dy * t + aside.1 * bend);
        let (c1, c2) = (at(0.3), at(0.7));
        let points = [from.border(c1, 1.0), c1, c2, to.border(c2, 3.0)];
        // Two opposite edges that both bend to their right never meet.
        let wrong_side = if pair && bend < 0.0 { 6.0 } else { 0.0 };
        for (k, t) in PLACES.into_iter().enumerate() {
            let area = Area::of_label(point_at(&points, t), label);
            ways.push((Curve { points, label: area }, bend.abs() * 0.08 + wrong_side + k as f64));
        }
    }
    ways
}

/// How much a new edge overlaps with what is already placed.
fn disturbance<'a>(
    curve: &Curve,
    ends: (usize, usize),
    nodes: &[Area],
    placed: impl Iterator<Item = &'a Curve>,
) -> f64 {
    let mut cost = 0.0;
    let path = samples(&curve.points);
    for (i, node) in nodes.iter().enumerate() {
        if curve.label.overlaps(node) {
            cost += 60.0;
        }
        if i != ends.0 && i != ends.1 {
            cost += 40.0 * path.iter().filter(|p| node.holds(**p, 8.0)).count() as f64;
        }
    }
    for other in placed {
        if curve.label.overlaps(&other.label) {
            cost += 60.0;
        }
        cost += 10.0 * path.iter().filter(|p| other.label.holds(**p, 2.0)).count() as f64;
        let under = samples(&other.points);
        cost += 6.0 * under.iter().filter(|p| curve.label.holds(**p, 0.0)).count() as f64;
    }
    cost
}

fn point_at(points: &[Point; 4], t: f64) -> Point {
    let s = 1.0 - t;
    let weights = [s * s * s, 3.0 * s * s * t, 3.0 * s * t * t, t * t * t];
    let sum =
        |pick: fn(&Point) -> f64| points.iter().zip(weights).map(|(p, w)| pick(p) * w).sum::<f64>();
    (sum(|p| p.0), sum(|p| p.1))
}

fn samples(points: &[Point; 4]) -> [Point; 15] {
    std::array::from_fn(|i| point_at(points, (i + 1) as f64 / 16.0))
}
