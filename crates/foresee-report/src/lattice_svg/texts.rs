//! What stands in the picture of a lattice, in lines that are short enough.

use foresee_predict::lattice::{Edge, Node, Picture};
use foresee_support::count::count;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The characters of a line in a cut, of a step's text, and of a line above or below the picture.
const NODE_LINE: usize = 22;
const LABEL: usize = 28;
const PAGE_LINE: usize = 96;
/// The lines of values in a cut.
const VALUE_LINES: usize = 6;

/// The texts of a picture.
pub(super) struct Texts {
    /// What stands above it: the property in its own words, and the figures.
    pub(super) head: Vec<String>,
    pub(super) nodes: Vec<NodeText>,
    pub(super) labels: Vec<Label>,
}

/// The text of a cut.
pub(super) struct NodeText {
    pub(super) label: String,
    /// What the drawn run does here that it must not.
    pub(super) verdict: &'static str,
    pub(super) values: Vec<String>,
    /// Everything in full, for the pointer.
    pub(super) full: String,
}

/// The text of a step.
pub(super) struct Label {
    /// The index of the event.
    pub(super) index: String,
    pub(super) text: String,
    pub(super) full: String,
}

impl Label {
    /// How wide it is.
    pub(super) fn chars(&self) -> usize {
        self.index.width() + 1 + self.text.width()
    }
}

impl Texts {
    pub(super) fn new(picture: &Picture) -> Texts {
        let end = picture.nodes.iter().rposition(|node| node.violating);
        let node = |(i, node): (usize, &Node)| NodeText {
            label: shortened(&node.label, NODE_LINE),
            verdict: if Some(i) == end { "violated" } else { "" },
            values: values(node),
            full: format!("{}: {}", happened(node, picture), in_full(node)),
        };
        Texts {
            head: head(picture),
            nodes: picture.nodes.iter().enumerate().map(node).collect(),
            labels: picture.edges.iter().map(|edge| label(edge, picture)).collect(),
        }
    }

    pub(super) fn widest_node(&self) -> usize {
        let width = |node: &NodeText| {
            let first = node.label.width() + node.verdict.width() + 1;
            node.values.iter().map(|line| line.width()).max().unwrap_or(0).max(first)
        };
        self.nodes.iter().map(width).max().unwrap_or(0).max(4)
    }

    pub(super) fn most_lines(&self) -> usize {
        1 + self.nodes.iter().map(|node| node.values.len()).max().unwrap_or(0)
    }

    pub(super) fn widest_label(&self) -> usize {
        self.labels.iter().map(Label::chars).max().unwrap_or(0)
    }
}

fn head(picture: &Picture) -> Vec<String> {
    let mut head: Vec<String> = picture.text.lines().flat_map(|l| wrapped(l, PAGE_LINE)).collect();
    if !picture.binding.is_empty() {
        let parts = picture.binding.iter().map(|(name, object)| format!("{name} = {object}"));
        head.extend(wrapped(&format!("for {}", parts.collect::<Vec<_>>().join(", ")), PAGE_LINE));
    }
    let levels = picture.nodes.last().map_or(0, Node::level) + 1;
    let runs = picture.runs.to_string();
    let mut figures = format!(
        "{}, {}, {}",
        count(levels, "level"),
        count(picture.nodes.len(), "cut"),
        count(&runs, "run")
    );
    if let Some(violating) = &picture.violating_runs {
        let violating = violating.to_string();
        let verb = if violating == "1" { "violates" } else { "violate" };
        figures += &format!(", of which {violating} {verb} the property");
    }
    head.push(figures);
    if !picture.beyond.is_empty() {
        let steps = picture.beyond.iter();
        let steps = steps.map(|step| format!("{} {} {}", step.event, step.thread, step.text));
        let steps = steps.collect::<Vec<_>>().join(", ");
        let said = "violated in an order that is not in this lattice, where critical sections swap or events are left out: ";
        head.extend(wrapped(&format!("{said}{steps}"), PAGE_LINE));
    }
    head
}

fn label(edge: &Edge, picture: &Picture) -> Label {
    let thread = &picture.threads[edge.thread];
    // With one or two threads, the direction of the line shows the thread.
    let text = match picture.threads.len() {
        1 | 2 => edge.text.clone(),
        _ => format!("{thread} {}", edge.text),
    };
    Label {
        index: edge.event.to_string(),
        text: shortened(&text, LABEL),
        full: format!("event {} of {thread}: {}", edge.event, edge.text),
    }
}

/// The values of a cut, as many to a line as there is room for.
fn values(node: &Node) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (name, value) in &node.values {
        let one = shortened(&format!("{name}={value}"), NODE_LINE);
        match lines.last_mut() {
            Some(line) if line.width() + 1 + one.width() <= NODE_LINE => {
                line.push(' ');
                line.push_str(&one);
            }
            _ => lines.push(one),
        }
    }
    if lines.len() > VALUE_LINES {
        lines.truncate(VALUE_LINES - 1);
        lines.push("…".to_owned());
    }
    lines
}

/// How many events of each thread have happened.
pub(super) fn happened(node: &Node, picture: &Picture) -> String {
    let counts = node.counts.iter().zip(&picture.threads).filter(|(count, _)| **count > 0);
    let counts: Vec<String> =
        counts.map(|(n, thread)| format!("{} of {thread}", count(n, "event"))).collect();
    if counts.is_empty() { "no event".to_owned() } else { counts.join(", ") }
}

fn in_full(node: &Node) -> String {
    let values = node.values.iter().map(|(name, value)| format!("{name}={value}"));
    values.collect::<Vec<_>>().join(", ")
}

/// A text, or its beginning if it is too long.
fn shortened(text: &str, most: usize) -> String {
    if text.width() <= most {
        return text.to_owned();
    }
    let mut width = 1;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width <= most
    };
    let beginning: String = text.chars().take_while(fits).collect();
    beginning + "…"
}

/// A text in lines, broken at spaces where there are any.
pub(super) fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let word = shortened(word, most);
        let line = &mut lines[0];
        if line.is_empty() {
            *line = word;
        } else if line.width() + 1 + word.width() <= most {
            line.push(' ');
            line.push_str(&word);
        } else {
            // The latest line stands first while lines are made.
            lines.insert(0, format!("    {word}"));
        }
    }
    lines.reverse();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_as_long_as_there_is_room() {
        assert_eq!(shortened("w(x)=1", 6), "w(x)=1");
        assert_eq!(shortened("w(x)=12", 6), "w(x)=…");
        assert_eq!(shortened("水水水水", 6), "水水…");
        assert_eq!(wrapped("ab cd ef", 5), ["ab cd", "    ef"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
