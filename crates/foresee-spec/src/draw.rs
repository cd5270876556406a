//! A property's minimal automaton as a picture: DOT, Mermaid or SVG.

mod dot;
mod guard;
mod layout;
mod mermaid;
mod svg;
#[cfg(test)]
mod tests;

use crate::explain::whole;
use crate::letter::Alphabet;
use crate::monitor::{Explored, ExploredState, StateId, TooManyStates, Verdict};
use crate::property::Compiled;
pub use guard::Guard;
pub(crate) use guard::cube_text;

/// The maximum number of states and kinds of steps; larger pictures are unreadable.
pub const MAX_STATES: usize = 60;
const MAX_LETTERS: usize = 1_024;
/// The maximum number of lines of a label and of characters per line, with few edges and with many.
/// Longer conditions are moved to the legend.
const LABEL: (usize, usize) = (3, 30);
const SMALL_LABEL: (usize, usize) = (1, 16);
/// Shorter conditions are always written out.
const SHORT: usize = 20;
/// The maximum number of characters of a state's name.
const NAME_WIDTH: usize = 24;
/// Pictures with more edges have room for short labels only.
const MANY_EDGES: usize = 24;

/// An automaton with everything that its picture shows.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// The name of the property.
    pub name: String,
    /// The states; the first is where the automaton starts.
    pub nodes: Vec<Node>,
    /// The edges; every step takes exactly one of the edges that leave a state.
    pub edges: Vec<Edge>,
    /// The conditions that are too long for their edges, which are numbered from 1 instead.
    pub legend: Vec<String>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name in the specification, or a number.
    pub label: String,
    /// Its verdict on the run.
    pub verdict: Verdict,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The state it leaves.
    pub from: usize,
    /// The state it leads to.
    pub to: usize,
    /// The steps that take it.
    pub guard: Guard,
    /// The lines of its label.
    pub label: Vec<String>,
    /// Whether the label only says that no other edge fits.
    pub otherwise: bool,
}

impl Drawing {
    /// Draws the minimal automaton of a property, unless it is too large to read.
    pub fn new(compiled: &mut Compiled) -> Result<Drawing, TooManyStates> {
        let explored = whole(compiled)?;
        let minimal = explored.minimise();
        let too_many = |limit, what| Err(TooManyStates { limit, what });
        if minimal.states.len() > MAX_STATES {
            return too_many(MAX_STATES, "states, which are too many to draw");
        }
        if minimal.letters.len() > MAX_LETTERS {
            return too_many(MAX_LETTERS, "kinds of steps, which are too many to draw");
        }
        let mut drawing = Drawing {
            name: compiled.name.clone(),
            nodes: nodes(&explored, &minimal, compiled),
            edges: Vec::new(),
            legend: Vec::new(),
        };
        for (from, state) in minimal.states.iter().enumerate() {
            // A violation is permanent, so its loops are not drawn.
            if state.verdict != Verdict::Bad {
                drawing.add_edges(from, &minimal);
            }
        }
        drawing.label_edges(&compiled.alphabet);
        Ok(drawing)
    }

    fn add_edges(&mut self, from: usize, minimal: &Explored) {
        for (to, cubes) in minimal.edges(from) {
            let guard = Guard::new(cubes, &minimal.letters);
            self.edges.push(Edge { from, to, guard, label: Vec::new(), otherwise: false });
        }
    }

    fn label_edges(&mut self, alphabet: &Alphabet) {
        let size = if self.edges.len() > MANY_EDGES { SMALL_LABEL } else { LABEL };
        let texts: Vec<String> = self.edges.iter().map(|e| e.guard.text(alphabet)).collect();
        let length = |i: usize| texts[i].chars().count();
        for from in 0..self.nodes.len() {
            let own = (0..self.edges.len()).filter(|&i| self.edges[i].from == from);
            // The longest condition is the negation of the others, which is easier to infer than to
            // read. Edges to a violation are written out.
            let bad = |i: usize| self.nodes[self.edges[i].to].verdict == Verdict::Bad;
            let is_loop = |i: usize| self.edges[i].to == from;
            let longest = match own.clone().count() {
                0 | 1 => None,
                _ => own
                    .clone()
                    .filter(|&i| length(i) > SHORT || size == SMALL_LABEL)
                    .max_by_key(|&i| (!bad(i), length(i), is_loop(i))),
            };
            for i in own.collect::<Vec<_>>() {
                self.edges[i].otherwise = Some(i) == longest;
                self.edges[i].label = match wrap(&texts[i], size) {
                    _ if Some(i) == longest => vec!["otherwise".into()],
                    Some(lines) => lines,
                    None => vec![self.number_in_legend(&texts[i])],
                };
            }
        }
    }

    fn number_in_legend(&mut self, text: &str) -> String {
        let place = self.legend.iter().position(|t| t == text).unwrap_or_else(|| {
            self.legend.push(text.to_string());
            self.legend.len() - 1
        });
        format!("({})", place + 1)
    }
}

fn nodes(explored: &Explored, minimal: &Explored, compiled: &Compiled) -> Vec<Node> {
    // The names of merged states would be misleading.
    let named = explored.states.len() == minimal.states.len();
    let mut number = 0;
    let node = |(state, id): (&ExploredState, &StateId)| {
        if state.verdict == Verdict::Bad {
            return Node { label: "bad".into(), verdict: state.verdict };
        }
        number += 1;
        let name = if named { compiled.monitor.describe(*id) } else { String::new() };
        let unfit = name.is_empty() || name.chars().count() > NAME_WIDTH;
        Node { label: if unfit { number.to_string() } else { name }, verdict: state.verdict }
    };
    minimal.states.iter().zip(&minimal.ids).map(node).collect()
}

/// Breaks a condition after its connectives, if it is short enough for a label.
fn wrap(text: &str, (lines, width): (usize, usize)) -> Option<Vec<String>> {
    let broken = wrap_at(text, width);
    let fits = broken.len() <= lines && broken.iter().all(|l| l.chars().count() <= width);
    fits.then_some(broken)
}

/// Breaks a condition after its connectives into lines of about this width.
fn wrap_at(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for part in text.split_inclusive(" && ").flat_map(|part| part.split_inclusive(" || ")) {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && last.chars().count() + part.trim_end().chars().count() > width {
            lines.push(part.to_string());
        } else {
            last.push_str(part);
        }
    }
    lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
    lines
}
