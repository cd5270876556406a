//! Graphviz.

use std::fmt::Write as _;

use super::{Drawing, wrap_at};
use crate::monitor::Verdict;

impl Drawing {
    /// The picture for `dot`.
    pub fn to_dot(&self) -> String {
        let mut dot = format!("digraph {} {{\n", quoted(&self.name));
        dot.push_str("  rankdir=LR;\n  node [shape=box, style=rounded];\n");
        dot.push_str("  start [shape=point];\n  start -> s0;\n");
        for (i, node) in self.nodes.iter().enumerate() {
            let color = match node.verdict {
                Verdict::Bad => ", color=\"#cf222e\", fontcolor=\"#cf222e\", peripheries=2",
                Verdict::Good => ", color=\"#1a7f37\", fontcolor=\"#1a7f37\"",
                Verdict::Open => "",
            };
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(dot, "  s{i} [label={}{color}];", quoted(&node.label));
        }
        for edge in &self.edges {
            let label = quoted(&edge.label.join("\n"));
            let _ = writeln!(dot, "  s{} -> s{} [label={label}];", edge.from, edge.to);
        }
        if !self.legend.is_empty() {
            let entries = self.legend.iter().enumerate();
            let entries = entries
                .map(|(i, text)| format!("({}) {}", i + 1, wrap_at(text, 80).join("\n    ")));
            let text: Vec<String> = entries.collect();
            // `\l` sets lines flush left.
            let label = quoted(&(text.join("\n") + "\n")).replace("\\n", "\\l");
            let _ = writeln!(dot, "  legend [shape=note, style=\"\", label={label}];");
        }
        dot.push_str("}\n");
        dot
    }
}

/// A string of the DOT language. Backslashes would start its escapes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
