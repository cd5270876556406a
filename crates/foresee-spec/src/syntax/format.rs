//! The formatter: uniform spacing, no redundant brackets, no long lines.
//!
//! It prints the tree and reinserts the comments before the part of a formula, row or list that
//! followed them in the source.

use std::collections::HashSet;

use super::atomics::{ATOMIC, print_method};
use super::layout::{self, Doc};
use super::lexer::{begins_word, escape, in_word};
use super::print::literal;
use super::{Item, ItemKind, Source, read};
use crate::ast::{
    Atom, Automaton, Body, Edge, Formula, FormulaKind, Ident, Init, Property, Span, Spec,
};
use crate::diagnostic::Diagnostic;
use foresee_trace::Visible;

/// Formats a specification and keeps its comments; the error says why it cannot be parsed.
///
/// ```
/// let neat = foresee_spec::format("property  p:(a  ∧ b)→ □(x>0) # why").unwrap();
/// assert_eq!(neat, "property p: a && b -> always x > 0 # why\n");
/// ```
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let source = read(text);
    if source.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(source.diagnostics);
    }
    let Source { spec, items, lexed, .. } = source;
    let mut writer = Writer::new(&spec, text, &lexed.comments);
    let mut out = String::new();
    let mut before = 0;
    for (i, item) in items.iter().enumerate() {
        writer.lone_comments(item.span.start, &mut before, &mut out);
        writer.gap(before, item.span.start, &mut out);
        layout::write(&writer.item(&spec, &item.kind), &mut out);
        before = item.span.end;
        let limit = items.get(i + 1).map_or(u32::MAX, |next| next.span.start);
        writer.trailing_comments(item, limit, &mut before, &mut out);
        out.push('\n');
    }
    writer.lone_comments(u32::MAX, &mut before, &mut out);
    Ok(out)
}

/// A specification as text.
pub fn print(spec: &Spec) -> String {
    let mut writer = Writer::new(spec, "", &[]);
    let inits = (!spec.inits.is_empty()).then_some(ItemKind::Inits(0..spec.inits.len()));
    let lets = (0..spec.lets.len()).map(ItemKind::Let);
    let atomics = (!spec.atomics.is_empty()).then_some(ItemKind::Atomics(0..spec.atomics.len()));
    let properties = (0..spec.properties.len()).map(ItemKind::Property);
    let mut out = String::new();
    for item in inits.into_iter().chain(lets).chain(atomics).chain(properties) {
        layout::write(&writer.item(spec, &item), &mut out);
        out.push('\n');
    }
    out
}

/// A formula in one line, as the formatter writes it; lets are not expanded.
pub fn print_formula(formula: &Formula) -> String {
    let mut out = String::new();
    let doc = Writer::new(&Spec::default(), "", &[]).formula(formula, 0);
    layout::write_flat(&doc, &mut out);
    out
}

/// An atom in one line, as the formatter writes it.
pub fn print_atom(atom: &Atom) -> String {
    Writer::new(&Spec::default(), "", &[]).atom(atom)
}

/// Converts parts of a specification to documents.
pub(super) struct Writer<'a> {
    text: &'a str,
    /// Comments that have not been written yet.
    comments: &'a [Span],
    /// Names that do not denote a program variable unless they are in backquotes.
    pub(super) lets: HashSet<&'a str>,
    pub(super) params: HashSet<String>,
}

impl<'a> Writer<'a> {
    fn new(spec: &'a Spec, text: &'a str, comments: &'a [Span]) -> Writer<'a> {
        let lets = spec.lets.iter().map(|l| l.name.name.as_str()).collect();
        Writer { text, comments, lets, params: HashSet::new() }
    }

    // Comments.

    fn next_comment(&mut self, before: u32) -> Option<(Span, String)> {
        let (&comment, rest) = self.comments.split_first().filter(|(c, _)| c.start < before)?;
        self.comments = rest;
        let text = &self.text[comment.start as usize..comment.end as usize];
        // Hidden characters are escaped, as in names.
        let parts: Vec<String> = text.split('\t').map(|part| Visible(part).to_string()).collect();
        Some((comment, parts.join("\t")))
    }

    /// Comments between items, each on its own line.
    fn lone_comments(&mut self, until: u32, before: &mut u32, out: &mut String) {
        while let Some((span, text)) = self.next_comment(until) {
            self.gap(*before, span.start, out);
            out.push_str(&text);
            out.push('\n');
            *before = span.end;
        }
    }

    /// Comments in or after the last line of an item.
    fn trailing_comments(&mut self, item: &Item, limit: u32, before: &mut u32, out: &mut String) {
        let rest = &self.text[item.span.end as usize..];
        let line_end = item.span.end as usize + rest.find('\n').unwrap_or(rest.len());
        let mut separator = ' ';
        while let Some((span, text)) = self.next_comment(limit.min(line_end as u32)) {
            out.push(separator);
            out.push_str(&text);
            *before = span.end.max(*before);
            separator = '\n';
        }
    }

    /// Keeps one empty line where the source has some.
    fn gap(&self, before: u32, start: u32, out: &mut String) {
        let between = &self.text[before as usize..start as usize];
        if before > 0 && between.matches('\n').count() > 1 {
            out.push('\n');
        }
    }

    /// The break before a part that begins at `start`, with the comments before it.
    pub(super) fn line(&mut self, start: Span, docs: &mut Vec<Doc>) {
        let commented = self.comment_docs(start.start, docs);
        docs.push(if commented { Doc::Hard } else { Doc::Line });
    }

    /// The comments before a position, each but the last followed by a line break.
    fn comment_docs(&mut self, before: u32, docs: &mut Vec<Doc>) -> bool {
        let mut any = false;
        while let Some((span, text)) = self.next_comment(before) {
            let line = self.text[..span.start as usize].rfind('\n').map_or(0, |i| i + 1);
            let alone = self.text[line..span.start as usize].trim().is_empty();
            docs.push(if alone || any { Doc::Hard } else { Doc::text(" ") });
            docs.push(Doc::text(text));
            any = true;
        }
        any
    }

    // Items.

    fn item(&mut self, spec: &Spec, item: &ItemKind) -> Doc {
        match item {
            ItemKind::Inits(range) => self.inits(&spec.inits[range.clone()]),
            ItemKind::Let(i) => {
                let item = &spec.lets[*i];
                let mut body = Vec::new();
                self.line(item.formula.span, &mut body);
                body.push(self.formula(&item.formula, 0));
                let head = std::format!("let {} =", ident(&item.name));
                Doc::Group(vec![Doc::text(head), Doc::Nest(body)])
            }
            ItemKind::Atomics(range) => self.atomics(&spec.atomics[range.clone()]),
            ItemKind::Property(i) => self.property(&spec.properties[*i]),
        }
    }

    fn inits(&mut self, inits: &[Init]) -> Doc {
        let mut docs = Vec::new();
        for (i, init) in inits.iter().enumerate() {
            if i > 0 {
                docs.push(Doc::text(","));
            }
            self.line(init.var.span, &mut docs);
            let name = self.variable(&init.var.name);
            docs.push(Doc::text(std::format!("{name} = {}", literal(&init.value))));
        }
        Doc::Group(vec![Doc::text("init"), Doc::Nest(docs)])
    }

    fn atomics(&mut self, methods: &[Ident]) -> Doc {
        let mut docs = Vec::new();
        for (i, method) in methods.iter().enumerate() {
            if i > 0 {
                docs.push(Doc::text(","));
            }
            self.line(method.span, &mut docs);
            docs.push(Doc::text(print_method(&method.name)));
        }
        Doc::Group(vec![Doc::text(ATOMIC), Doc::Nest(docs)])
    }

    fn property(&mut self, property: &Property) -> Doc {
        let keyword = match &property.body {
            Body::Formula(_) => "property",
            Body::Violation(_) => "violation",
            Body::Pattern(_) => "pattern",
            Body::Automaton(_) => "automaton",
            // It has no text, so there is none to write: a comment stands for it.
            Body::Custom(_) => {
                return Doc::text(std::format!("# {} is a monitor in Rust", property.name.name));
            }
        };
        let mut head = std::format!("{keyword} {}", ident(&property.name));
        let untyped = property.params.iter().map(|param| (param, None));
        let typed = property.objects.iter().map(|object| (&object.name, Some(&object.of)));
        let mut params: Vec<(&Ident, Option<&Ident>)> = untyped.chain(typed).collect();
        params.sort_by_key(|(param, _)| param.span.start);
        if !params.is_empty() {
            let params: Vec<String> = params
                .iter()
                .map(|(param, of)| match of {
                    None => ident(param),
                    Some(of) => std::format!("{}: {}", ident(param), self.variable(&of.name)),
                })
                .collect();
            head.push_str(&std::format!("({})", params.join(", ")));
        }
        self.params = params.iter().map(|(param, _)| param.name.clone()).collect();
        let mut docs = Vec::new();
        let (start, sign) = match &property.body {
            Body::Formula(f) => (f.span, ":"),
            Body::Violation(r) => (r.span, ":"),
            Body::Pattern(p) => (p.span, ":"),
            Body::Automaton(_) | Body::Custom(_) => (property.span, " {"),
        };
        if sign == ":" {
            self.line(start, &mut docs);
        }
        match &property.body {
            Body::Formula(f) => docs.push(self.formula(f, 0)),
            Body::Violation(r) => docs.push(self.regex(r, 0)),
            Body::Pattern(p) => docs.push(self.pattern(p, 0)),
            Body::Automaton(a) => self.automaton(a, property.span, &mut docs),
            Body::Custom(_) => {}
        }
        self.params.clear();
        let mut all = vec![Doc::text(head + sign), Doc::Nest(docs)];
        if sign == " {" {
            all.extend([Doc::Hard, Doc::text("}")]);
        }
        Doc::Group(all)
    }

    fn automaton(&mut self, automaton: &Automaton, whole: Span, docs: &mut Vec<Doc>) {
        let initial: Vec<String> = automaton.initial.iter().map(ident).collect();
        let start = automaton.initial.first().map_or(whole, |i| i.span);
        self.comment_docs(start.start, docs);
        docs.push(Doc::Hard);
        docs.push(Doc::text(std::format!("initial {};", initial.join(", "))));
        for state in &automaton.states {
            self.comment_docs(state.name.span.start, docs);
            docs.push(Doc::Hard);
            let mut edges = Vec::new();
            for (i, edge) in state.edges.iter().enumerate() {
                if i > 0 {
                    edges.push(Doc::text(","));
                }
                self.line(edge.guard.span, &mut edges);
                self.edge(edge, &mut edges);
            }
            if edges.is_empty() {
                edges.push(Doc::text(" "));
            }
            let name = Doc::text(std::format!("{}:", ident(&state.name)));
            docs.push(Doc::Group(vec![name, Doc::Nest(edges), Doc::text(";")]));
        }
        self.comment_docs(whole.end, docs);
    }

    fn edge(&mut self, edge: &Edge, docs: &mut Vec<Doc>) {
        let event = matches!(edge.guard.kind, FormulaKind::Atom(Atom::Event(_)));
        let guard = self.formula(&edge.guard, 0);
        if event {
            docs.push(guard);
        } else {
            docs.extend([Doc::text("{"), guard, Doc::text("}")]);
        }
        docs.push(Doc::text(std::format!(" -> {}", ident(&edge.target))));
    }
}

/// A name that the specification defines.
fn ident(ident: &Ident) -> String {
    let name = &ident.name;
    let word = name.starts_with(begins_word) && name.chars().all(in_word) && name != "_";
    if word { name.clone() } else { escape(name, '`') }
}
