//! What the server says about the word under the cursor.

use foresee_spec::explain::explain;
use foresee_spec::parse;
use foresee_spec::property::Compiled;
use foresee_trace::Names;
use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind, Position};

use crate::completion::WORDS;
use crate::document::Document;

/// A property is explained in plain words, a `let` shown, an operator described, and a name of the trace classified.
pub(crate) fn hover(document: &Document, at: Position, names: Option<&Names>) -> Option<Hover> {
    let (word, span) = document.word(document.byte(at))?;
    let is_here = |ident: &foresee_spec::ast::Ident| ident.span.start == span.start;
    let parsed = parse(document.text());
    let property = parsed.spec.properties.iter().position(|property| is_here(&property.name));
    let text = if let Some(index) = property {
        let mut compiled = Compiled::all(&parsed.spec).ok()?;
        let property = &parsed.spec.properties[index];
        let text = explain(property, compiled.get_mut(index)?, &parsed.spec.inits).to_string();
        format!("```text\n{text}```")
    } else if let Some(defined) = parsed.spec.lets.iter().find(|l| l.name.name == word) {
        format!("```\nlet {word} = {}\n```", foresee_spec::print_formula(&defined.formula))
    } else if let Some((_, _, about)) = WORDS.iter().find(|(known, ..)| *known == word) {
        (*about).to_owned()
    } else {
        kinds(word, names?)?
    };
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: text });
    Some(Hover { contents, range: Some(document.range(span)) })
}

/// What the trace has under this name.
fn kinds(word: &str, names: &Names) -> Option<String> {
    let kinds = [
        ("a variable", names.vars.lookup(word).is_some()),
        ("a lock", names.locks.lookup(word).is_some()),
        ("a thread", names.threads.lookup(word).is_some()),
        ("a method, an event or a text", names.syms.lookup(word).is_some()),
    ];
    let found: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
    (!found.is_empty()).then(|| format!("`{word}`: {} of the trace", found.join(", ")))
}
