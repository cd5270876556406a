//! Mermaid flowcharts.

use std::fmt::Write as _;

use super::Drawing;
use crate::monitor::Verdict;

impl Drawing {
    /// The picture for Mermaid, which many Markdown viewers display.
    pub fn to_mermaid(&self) -> String {
        let mut text = String::from("flowchart LR\n  start(( )) --> s0\n");
        for (i, node) in self.nodes.iter().enumerate() {
            let class = match node.verdict {
                Verdict::Bad => ":::bad",
                Verdict::Good => ":::good",
                Verdict::Open => "",
            };
            // Writing to a string cannot fail, here and below.
            let _ = writeln!(text, "  s{i}([\"{}\"]){class}", escaped(&node.label));
        }
        for edge in &self.edges {
            let lines: Vec<String> = edge.label.iter().map(|line| escaped(line)).collect();
            let label = lines.join("<br/>");
            let _ = writeln!(text, "  s{} -->|\"{label}\"| s{}", edge.from, edge.to);
        }
        for (i, entry) in self.legend.iter().enumerate() {
            let _ = writeln!(text, "  legend{i}[\"({}) {}\"]:::legend", i + 1, escaped(entry));
        }
        text.push_str(
            "  classDef bad stroke:#cf222e,color:#cf222e,stroke-width:3px\n  \
             classDef good stroke:#1a7f37,color:#1a7f37\n  \
             classDef legend fill:none,stroke:none,text-align:left\n",
        );
        text
    }
}

/// Text that Mermaid does not interpret: all special characters are written as character codes.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_alphanumeric() || " _.,".contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}
