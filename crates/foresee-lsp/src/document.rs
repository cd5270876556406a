//! One open file: its text, where things are in it, and what is wrong with it.

use std::str::FromStr;

use foresee_spec::property::Compiled;
use foresee_spec::{Severity, ast, parse, resolve};
use foresee_trace::Names;
use lsp_types::{
    Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    Position, Range, Uri,
};

/// The text of an open file.
#[derive(Debug)]
pub struct Document {
    text: String,
    /// The byte at which each line begins.
    lines: Vec<usize>,
}

impl Document {
    /// A file with this text.
    pub fn new(text: String) -> Document {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(ends).collect();
        Document { text, lines }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte is. Editors count the code units of UTF-16 in a line.
    pub fn position(&self, byte: usize) -> Position {
        let byte = self.boundary(byte);
        let line = self.lines.partition_point(|&start| start <= byte) - 1;
        let units: usize = self.text[self.lines[line]..byte].chars().map(char::len_utf16).sum();
        Position::new(line as u32, units as u32)
    }

    /// The byte at a position; a position beyond the end of a line or of the text is that end.
    pub fn byte(&self, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.lines.get(line) else { return self.text.len() };
        let end = self.lines.get(line + 1).map_or(self.text.len(), |next| next - 1);
        let mut units = position.character as usize;
        for (at, c) in self.text[start..end].char_indices() {
            if units < c.len_utf16() {
                return start + at;
            }
            units -= c.len_utf16();
        }
        end
    }

    /// The range of a span.
    pub fn range(&self, span: ast::Span) -> Range {
        Range::new(self.position(span.start as usize), self.position(span.end as usize))
    }

    /// The whole text.
    pub fn whole(&self) -> Range {
        Range::new(Position::new(0, 0), self.position(self.text.len()))
    }

    /// The word at a byte, if there is one, and where it is.
    pub fn word(&self, byte: usize) -> Option<(&str, ast::Span)> {
        let belongs = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let byte = self.boundary(byte);
        let before = self.text[..byte].char_indices().rev().take_while(|(_, c)| belongs(*c));
        let start = before.last().map_or(byte, |(at, _)| at);
        let after = self.text[byte..].find(|c| !belongs(c)).unwrap_or(self.text.len() - byte);
        let span = ast::Span { start: start as u32, end: (byte + after) as u32 };
        let word = &self.text[start..byte + after];
        (!word.is_empty()).then_some((word, span))
    }

    /// Mistakes, and what will probably not mean what its author intended. Names are looked up if there are any.
    pub fn diagnostics(&self, uri: &str, names: Option<&Names>) -> Vec<Diagnostic> {
        let parsed = parse(&self.text);
        let mut found = parsed.diagnostics.clone();
        if !parsed.has_errors() {
            match Compiled::all(&parsed.spec) {
                Ok(compiled) => found.extend(compiled.into_iter().flat_map(|c| c.warnings)),
                Err(errors) => found.extend(errors),
            }
            found.extend(
                names.into_iter().flat_map(|names| resolve(&parsed.spec, names).diagnostics),
            );
        }
        let uri = Uri::from_str(uri).ok();
        found.iter().map(|diagnostic| self.diagnostic(diagnostic, uri.as_ref())).collect()
    }

    fn diagnostic(&self, from: &foresee_spec::Diagnostic, uri: Option<&Uri>) -> Diagnostic {
        let mut message = from.message.clone();
        let mut labels = from.labels.iter();
        let first = labels.next();
        if let Some((_, label)) = first.filter(|(_, label)| !label.is_empty()) {
            message += &format!(": {label}");
        }
        if let Some(help) = &from.help {
            message += &format!("\n{help}");
        }
        let related = labels.filter_map(|(span, label)| {
            let location = Location { uri: uri?.clone(), range: self.range(*span) };
            Some(DiagnosticRelatedInformation { location, message: label.clone() })
        });
        let related: Vec<_> = related.collect();
        Diagnostic {
            range: self.range(first.map_or(ast::Span::default(), |(span, _)| *span)),
            severity: Some(match from.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(from.code.to_owned())),
            source: Some("foresee".to_owned()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..Diagnostic::default()
        }
    }

    /// The byte itself, or the beginning of the character that it is in.
    fn boundary(&self, byte: usize) -> usize {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_code_units_of_utf_16() {
        let document = Document::new("a𝄞b\n→c\n".to_owned());
        for (byte, line, unit) in
            [(0, 0, 0), (1, 0, 1), (5, 0, 3), (6, 0, 4), (7, 1, 0), (10, 1, 1)]
        {
            assert_eq!(document.position(byte), Position::new(line, unit), "{byte}");
            assert_eq!(document.byte(Position::new(line, unit)), byte);
        }
        // Within a character is its beginning; beyond the end is the end.
        assert_eq!(document.position(3), Position::new(0, 1));
        assert_eq!(document.byte(Position::new(0, 2)), 1);
        assert_eq!(document.byte(Position::new(0, 99)), 6);
        assert_eq!(document.byte(Position::new(99, 0)), document.text().len());
    }

    #[test]
    fn a_word_is_found_from_within_and_from_its_ends() {
        let document = Document::new("property up: start(x)".to_owned());
        for byte in [9, 10, 11] {
            assert_eq!(document.word(byte).map(|(word, _)| word), Some("up"), "{byte}");
        }
        assert_eq!(document.word(12), None);
        assert!(Document::new(String::new()).word(0).is_none());
    }

    #[test]
    fn mistakes_have_their_place_and_advice() {
        let document = Document::new("init x = 0\nproperty a: G x == 1\n".to_owned());
        let found = document.diagnostics("file:///a.spec", None);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].range, Range::new(Position::new(1, 12), Position::new(1, 13)));
        assert!(found[0].message.contains("write `always`"), "{}", found[0].message);
    }

    #[test]
    fn names_are_looked_up_in_the_trace() {
        let mut names = Names::default();
        names.vars.intern("landing").unwrap();
        let document = Document::new("property a: lending == 1\n".to_owned());
        assert_eq!(document.diagnostics("file:///a.spec", None), []);
        let found = document.diagnostics("file:///a.spec", Some(&names));
        assert!(found[0].message.contains("did you mean `landing`?"), "{found:?}");
    }
}
