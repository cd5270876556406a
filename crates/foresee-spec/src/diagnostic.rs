//! Mistakes in a specification, and how they are displayed.

use std::borrow::Cow;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use foresee_trace::{Visible, is_hidden};

use crate::ast::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The specification cannot be used.
    Error,
    /// The specification can be used, but probably does not mean what its author intended.
    Warning,
}

/// A mistake or a likely mistake.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// Positions in the source with a label each; the first is that of the mistake.
    pub labels: Vec<(Span, String)>,
    /// How to fix it.
    pub help: Option<String>,
    /// A short fixed name of this kind of mistake, for scripts and the documentation.
    pub code: &'static str,
}

impl Diagnostic {
    /// An error at a position.
    pub fn error(
        code: &'static str,
        message: impl Into<String>,
        at: Span,
        label: impl Into<String>,
    ) -> Diagnostic {
        let labels = vec![(at, label.into())];
        Diagnostic { severity: Severity::Error, message: message.into(), labels, help: None, code }
    }

    /// A warning at a position.
    pub fn warning(
        code: &'static str,
        message: impl Into<String>,
        at: Span,
        label: impl Into<String>,
    ) -> Diagnostic {
        let error = Diagnostic::error(code, message, at, label);
        Diagnostic { severity: Severity::Warning, ..error }
    }

    /// Adds another related position.
    pub fn and(mut self, at: Span, label: impl Into<String>) -> Diagnostic {
        self.labels.push((at, label.into()));
        self
    }

    /// Adds advice.
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds advice, if there is any.
    pub fn maybe_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }

    /// The same, with control characters in the names that it mentions escaped.
    fn visible(&self) -> Diagnostic {
        let labels = self.labels.iter().map(|(span, label)| (*span, visible(label))).collect();
        let help = self.help.as_deref().map(visible);
        Diagnostic { message: visible(&self.message), labels, help, ..self.clone() }
    }

    /// Whether the specification cannot be used.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The diagnostics as text for people, each with its source lines. `source_name` is the name by
/// which the reader knows the source, usually a path.
pub fn render(diagnostics: &[Diagnostic], source_name: &str, text: &str, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    let (source_name, text) = (&visible(source_name), &seen(text));
    for diagnostic in diagnostics.iter().map(Diagnostic::visible) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&renderer.render(&[group(&diagnostic, source_name, text)]));
        out.push('\n');
    }
    out
}

/// Text in which hidden characters are escaped, line by line.
fn visible(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| Visible(line).to_string()).collect();
    lines.join("\n")
}

/// The source with hidden characters replaced by visible ones of the same length, so that all
/// positions stay valid. The renderer handles tabs and line ends.
fn seen(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| is_hidden(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let instead = |c: char| match c.len_utf8() {
        _ if !is_bad(c) => c,
        1 => '?',
        2 => '¿',
        _ => '\u{fffd}',
    };
    Cow::Owned(text.chars().map(instead).collect())
}

/// Longer lines are not passed to the renderer as a whole.
const LONG: usize = 2000;

fn group<'a>(diagnostic: &'a Diagnostic, source_name: &'a str, text: &'a str) -> Group<'a> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&diagnostic.message).id(diagnostic.code));
    let (from, to) = excerpt(diagnostic, text);
    let annotations = diagnostic.labels.iter().enumerate().filter_map(|(i, (span, label))| {
        let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
        let (start, end) = (span.start as usize, span.end as usize);
        let inside = from <= start && start <= end && end <= to;
        inside.then(|| kind.span(start - from..end - from).label(label.as_str()))
    });
    if !diagnostic.labels.is_empty() {
        let lines_before = text[..from].matches('\n').count();
        group = group.element(
            Snippet::source(&text[from..to])
                .line_start(1 + lines_before)
                .path(source_name)
                .annotations(annotations),
        );
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    group
}

/// The part of the source that contains all labels: whole lines, except for lines too long to read
/// and slow to render. In that case, labels far away from the first are dropped.
fn excerpt(diagnostic: &Diagnostic, text: &str) -> (usize, usize) {
    let places = || diagnostic.labels.iter().map(|(span, _)| span);
    let start = places().map(|s| s.start as usize).min().unwrap_or(0).min(text.len());
    let end = places().map(|s| s.end as usize).max().unwrap_or(0).min(text.len());
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |i| end + i);
    let longest = text[line_start..line_end].split('\n').map(str::len).max().unwrap_or(0);
    if longest <= LONG {
        return (line_start, line_end);
    }
    let Some((first, _)) = diagnostic.labels.first() else { return (0, 0) };
    let boundary = |at: &usize| text.is_char_boundary(*at);
    let start = (first.start as usize).saturating_sub(LONG / 2);
    let end = (first.end as usize + LONG / 2).min(text.len());
    let from = (0..=start).rev().find(boundary).unwrap_or(0);
    let to = (end..=text.len()).find(boundary).unwrap_or(text.len());
    (from.max(line_start), to.min(line_end))
}
