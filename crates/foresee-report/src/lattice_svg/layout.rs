//! Where cuts and the texts between them stand.
//!
//! Levels run from top to bottom. With two threads a step of the first leads to the left and one of
//! the second to the right, as in the papers' figures, and no lines cross. With more threads the
//! cuts of a level stand side by side, near those they come from and lead to.

use foresee_predict::lattice::Picture;

use super::texts::Texts;
use super::{CHAR, LINE};

/// Between neighbours of a level, and between levels.
const SIDE_GAP: f64 = 28.0;
const LEVEL_GAP: f64 = 66.0;
/// Where lines cross, their texts need more room.
const CROSSED_LEVEL_GAP: f64 = 100.0;
const CROSSED_PLACE: f64 = 1.3;
/// Around the text of a cut.
const PAD: f64 = 8.0;
/// Where on its line the text of a step may stand.
const PLACES: [f64; 5] = [0.5, 0.38, 0.62, 0.26, 0.74];

pub(super) type Point = (f64, f64);

/// Where everything stands.
pub(super) struct Layout {
    /// The size of a cut, the same for all.
    pub(super) width: f64,
    pub(super) height: f64,
    /// The middle of each cut.
    pub(super) nodes: Vec<Point>,
    /// The middle of each step's text, if there is room for it.
    pub(super) labels: Vec<Option<Point>>,
    /// The left and right end of it all; the top is at 0.
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Layout {
    pub(super) fn new(picture: &Picture, texts: &Texts) -> Layout {
        let width = texts.widest_node() as f64 * CHAR + 2.0 * PAD;
        let height = texts.most_lines() as f64 * LINE + 2.0 * PAD;
        let label = texts.widest_label() as f64 * CHAR + 10.0;
        let places = match picture.threads.len() {
            1 => vec![0.0; picture.nodes.len()],
            // The texts of two lines to one cut stand side by side, half a place apart.
            2 => {
                let place = ((width + SIDE_GAP) / 2.0).max(label);
                let side = |counts: &[u32]| f64::from(counts[1]) - f64::from(counts[0]);
                picture.nodes.iter().map(|node| side(&node.counts) * place).collect()
            }
            _ => {
                let place = (width + SIDE_GAP).max(label * CROSSED_PLACE);
                rows(picture).into_iter().map(|x| x * place).collect()
            }
        };
        let gap = if picture.threads.len() > 2 { CROSSED_LEVEL_GAP } else { LEVEL_GAP };
        let y = |level: usize| height / 2.0 + level as f64 * (height + gap);
        let levels = picture.nodes.iter().map(|node| y(node.level()));
        let nodes: Vec<Point> = places.into_iter().zip(levels).collect();
        let mut layout = Layout {
            width,
            height,
            labels: Vec::new(),
            left: nodes.iter().map(|p| p.0).fold(0.0, f64::min) - width / 2.0,
            right: nodes.iter().map(|p| p.0).fold(0.0, f64::max) + width / 2.0,
            bottom: nodes.iter().map(|p| p.1).fold(0.0, f64::max) + height / 2.0,
            nodes,
        };
        layout.labels = layout.place_labels(picture, texts);
        layout.include_labels(texts);
        layout
    }

    /// Both ends of a step's line.
    pub(super) fn line(&self, from: usize, to: usize) -> (Point, Point) {
        let ((x1, y1), (x2, y2)) = (self.nodes[from], self.nodes[to]);
        ((x1, y1 + self.height / 2.0), (x2, y2 - self.height / 2.0))
    }

    /// Finds room for the texts of steps: first for those of the two runs, which are never left
    /// out, then for as many others as there is room for.
    fn place_labels(&self, picture: &Picture, texts: &Texts) -> Vec<Option<Point>> {
        let mut placed: Vec<Option<Point>> = vec![None; picture.edges.len()];
        let mut order: Vec<usize> = (0..picture.edges.len()).collect();
        let on_path = |i: usize| picture.edges[i].observed || picture.edges[i].violating;
        order.sort_by_key(|&i| !on_path(i));
        for i in order {
            let edge = &picture.edges[i];
            let ((x1, y1), (x2, y2)) = self.line(edge.from, edge.to);
            let at = |t: &f64| (x1 + (x2 - x1) * t, y1 + (y2 - y1) * t);
            let fits = |&(x, y): &Point| {
                placed.iter().zip(&texts.labels).all(|(other, label)| {
                    other.is_none_or(|(other_x, other_y)| {
                        let chars = label.chars() + texts.labels[i].chars();
                        let apart = chars as f64 * CHAR / 2.0 + 6.0;
                        (other_x - x).abs() >= apart || (other_y - y).abs() >= LINE
                    })
                })
            };
            let free = PLACES.iter().map(at).find(fits);
            placed[i] = free.or_else(|| on_path(i).then(|| at(&PLACES[0])));
        }
        placed
    }

    fn include_labels(&mut self, texts: &Texts) {
        for (label, text) in self.labels.iter().zip(&texts.labels) {
            if let Some((x, _)) = label {
                let half = text.chars() as f64 * CHAR / 2.0 + 3.0;
                self.left = self.left.min(x - half);
                self.right = self.right.max(x + half);
            }
        }
    }
}

/// How many times cuts are moved nearer to their neighbours.
const SWEEPS: usize = 4;

/// For each cut its place in its level, counted from the middle.
fn rows(picture: &Picture) -> Vec<f64> {
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (i, node) in picture.nodes.iter().enumerate() {
        levels.resize_with(levels.len().max(node.level() + 1), Vec::new);
        levels[node.level()].push(i);
    }
    let mut neighbours = vec![Vec::new(); picture.nodes.len()];
    for edge in &picture.edges {
        neighbours[edge.from].push(edge.to);
        neighbours[edge.to].push(edge.from);
    }
    // Each thread leads to its own side, as with two.
    let middle = (picture.threads.len() as f64 - 1.0) / 2.0;
    let lean = |&i: &usize| {
        let counts = picture.nodes[i].counts.iter().enumerate();
        counts.map(|(t, &n)| (t as f64 - middle) * f64::from(n)).sum::<f64>()
    };
    let mut places = vec![0.0; picture.nodes.len()];
    let spread = |level: &[usize], places: &mut Vec<f64>| {
        let middle = (level.len() as f64 - 1.0) / 2.0;
        level.iter().enumerate().for_each(|(k, &i)| places[i] = k as f64 - middle);
    };
    for level in &mut levels {
        level.sort_by(|a, b| lean(a).total_cmp(&lean(b)));
        spread(level, &mut places);
    }
    for _ in 0..SWEEPS {
        for level in &mut levels {
            let mean = |&i: &usize| {
                let sum: f64 = neighbours[i].iter().map(|&n| places[n]).sum();
                sum / neighbours[i].len() as f64
            };
            level.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
            spread(level, &mut places);
        }
    }
    places
}
