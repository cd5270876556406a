//! The lexer.
//!
//! Tokens are small: a dotted name is several of them, and the parser assembles it where a name is
//! allowed (see `names.rs`), because `safe:x` is one name in a formula and the head of a property
//! elsewhere. Comments are stored separately for the formatter.

use crate::ast::{BinaryOp, Span, UnaryOp};
use crate::diagnostic::Diagnostic;

/// The kind of a token. The text of words and literals is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Letters, digits, `_` and `$`, including keywords.
    Word,
    /// `` `any text` ``
    Quoted,
    Int,
    Float,
    Str,
    /// `!`, or the symbol of a temporal operator.
    Prefix(UnaryOp),
    /// `&&`, `||`, `->`, `<->`, in ASCII or not.
    Binary(BinaryOp),
    /// `⊤` or `⊥`.
    Const(bool),
    Equal,
    EqualEqual,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    And,
    Or,
    Tilde,
    Question,
    Dot,
    DotDot,
    Comma,
    Colon,
    Semicolon,
    At,
    RoundOpen,
    RoundClose,
    SquareOpen,
    SquareClose,
    CurlyOpen,
    CurlyClose,
    /// `=>` and `=<`, which are only recognised to suggest corrections.
    Arrow,
    /// The end of the text.
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// Whether something before it was skipped because it is not part of the language.
    pub(crate) after_stray: bool,
}

/// The tokens of a text; the last one is [`Kind::End`].
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    pub(crate) tokens: Vec<Token>,
    /// Comments, from the `#` to the end of the line without its white space.
    pub(crate) comments: Vec<Span>,
}

/// Longest first, because the first match is taken.
const SYMBOLS: &[(&str, Kind)] = &[
    ("<->", Kind::Binary(BinaryOp::Iff)),
    ("->", Kind::Binary(BinaryOp::Implies)),
    ("&&", Kind::Binary(BinaryOp::And)),
    ("||", Kind::Binary(BinaryOp::Or)),
    ("==", Kind::EqualEqual),
    ("=>", Kind::Arrow),
    ("=<", Kind::Arrow),
    ("!=", Kind::NotEqual),
    ("<=", Kind::LessEqual),
    (">=", Kind::GreaterEqual),
    ("..", Kind::DotDot),
    ("=", Kind::Equal),
    ("!", Kind::Prefix(UnaryOp::Not)),
    ("<", Kind::Less),
    (">", Kind::Greater),
    ("+", Kind::Plus),
    ("-", Kind::Minus),
    ("*", Kind::Star),
    ("/", Kind::Slash),
    ("%", Kind::Percent),
    ("&", Kind::And),
    ("|", Kind::Or),
    ("~", Kind::Tilde),
    ("?", Kind::Question),
    (".", Kind::Dot),
    (",", Kind::Comma),
    (":", Kind::Colon),
    (";", Kind::Semicolon),
    ("@", Kind::At),
    ("(", Kind::RoundOpen),
    (")", Kind::RoundClose),
    ("[", Kind::SquareOpen),
    ("]", Kind::SquareClose),
    ("{", Kind::CurlyOpen),
    ("}", Kind::CurlyClose),
    ("¬", Kind::Prefix(UnaryOp::Not)),
    ("∧", Kind::Binary(BinaryOp::And)),
    ("∨", Kind::Binary(BinaryOp::Or)),
    ("→", Kind::Binary(BinaryOp::Implies)),
    ("⇒", Kind::Binary(BinaryOp::Implies)),
    ("↔", Kind::Binary(BinaryOp::Iff)),
    ("⇔", Kind::Binary(BinaryOp::Iff)),
    ("≠", Kind::NotEqual),
    ("≤", Kind::LessEqual),
    ("≥", Kind::GreaterEqual),
    ("□", Kind::Prefix(UnaryOp::Always)),
    ("◇", Kind::Prefix(UnaryOp::Eventually)),
    ("○", Kind::Prefix(UnaryOp::Next)),
    ("◯", Kind::Prefix(UnaryOp::Next)),
    ("↑", Kind::Prefix(UnaryOp::Start)),
    ("↓", Kind::Prefix(UnaryOp::End)),
    ("●", Kind::Prefix(UnaryOp::Prev)),
    ("⊙", Kind::Prefix(UnaryOp::Prev)),
    ("◆", Kind::Prefix(UnaryOp::Once)),
    ("■", Kind::Prefix(UnaryOp::Hist)),
    ("⊤", Kind::Const(true)),
    ("⊥", Kind::Const(false)),
];

/// Whether a character may begin a word.
pub(crate) fn begins_word(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

/// Whether a character may be part of a word.
pub(crate) fn in_word(c: char) -> bool {
    begins_word(c) || c.is_alphanumeric()
}

/// Splits a text into tokens. Characters that belong to none are reported and skipped.
pub(crate) fn lex(text: &str, report: &mut impl FnMut(Diagnostic)) -> Lexed {
    let mut lexer = Lexer { text, at: 0 };
    let mut lexed = Lexed::default();
    let mut after_stray = false;
    lexer.take_while(|c| c == '\u{feff}');
    loop {
        lexer.take_while(char::is_whitespace);
        let start = lexer.at;
        let Some(first) = lexer.rest().chars().next() else { break };
        if first == '#' {
            lexer.take_while(|c| c != '\n');
            let length = text[start..lexer.at].trim_end().len();
            lexed.comments.push(span(start, start + length));
            continue;
        }
        if let Some(end) = lexer.foreign_comment() {
            let at = span(start, start + 2);
            let message = format!("`{}` does not begin a comment", &text[start..start + 2]);
            report(Diagnostic::error("foreign-comment", message, at, "write `#`"));
            lexer.at = end;
            continue;
        }
        match lexer.token(first, report) {
            Some(kind) => {
                lexed.tokens.push(Token { kind, span: span(start, lexer.at), after_stray });
                after_stray = false;
            }
            None => after_stray = true,
        }
    }
    lexed.tokens.push(Token { kind: Kind::End, span: span(text.len(), text.len()), after_stray });
    lexed
}

fn span(start: usize, end: usize) -> Span {
    // The parser rejects texts that are too long for this.
    Span { start: start as u32, end: end as u32 }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    }

    /// Where a comment in the manner of C ends, if one begins here. No two tokens of the language are written like its beginning.
    fn foreign_comment(&self) -> Option<usize> {
        let rest = self.rest();
        let (end, past) = match rest.get(..2)? {
            "//" => ("\n", 0),
            "/*" => ("*/", 2),
            _ => return None,
        };
        Some(rest.find(end).map_or(self.text.len(), |length| self.at + length + past))
    }

    fn token(&mut self, first: char, report: &mut impl FnMut(Diagnostic)) -> Option<Kind> {
        let start = self.at;
        if begins_word(first) {
            self.take_while(in_word);
            return Some(Kind::Word);
        }
        if first.is_ascii_digit() {
            return Some(self.number(report));
        }
        if matches!(first, '"' | '`' | '\'') {
            self.quoted(first, report);
            return Some(if first == '`' { Kind::Quoted } else { Kind::Str });
        }
        if let Some((symbol, kind)) = SYMBOLS.iter().find(|(s, _)| self.rest().starts_with(s)) {
            self.at += symbol.len();
            return Some(*kind);
        }
        self.at += first.len_utf8();
        self.take_while(is_stray);
        let at = span(start, self.at);
        let found: String = self.text[start..self.at].chars().take(20).collect();
        let message = format!("no token begins with {found:?}");
        report(Diagnostic::error("stray-character", message, at, "not part of the language"));
        None
    }

    fn number(&mut self, report: &mut impl FnMut(Diagnostic)) -> Kind {
        let start = self.at;
        let mut kind = Kind::Int;
        self.take_while(|c| c.is_ascii_digit());
        let digit_after =
            |s: &str, skip: usize| s.as_bytes().get(skip).is_some_and(u8::is_ascii_digit);
        if self.rest().starts_with('.') && digit_after(self.rest(), 1) {
            kind = Kind::Float;
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        if self.rest().starts_with(['e', 'E']) {
            let sign = usize::from(self.rest()[1..].starts_with(['+', '-']));
            if digit_after(self.rest(), 1 + sign) {
                kind = Kind::Float;
                self.at += 1 + sign;
                self.take_while(|c| c.is_ascii_digit());
            }
        }
        let end = self.at;
        self.take_while(in_word);
        if self.at > end {
            let at = span(start, self.at);
            let message =
                format!("`{}` is neither a number nor a name", &self.text[start..self.at]);
            report(
                Diagnostic::error("malformed-number", message, at, "a number ends before letters")
                    .help("numbers are decimal; names that begin with a digit are written in backquotes"),
            );
        }
        kind
    }

    fn quoted(&mut self, quote: char, report: &mut impl FnMut(Diagnostic)) {
        let start = self.at;
        self.at += 1;
        loop {
            let rest = self.rest();
            let stop = rest.find([quote, '\\', '\n']).unwrap_or(rest.len());
            self.at += stop;
            match rest[stop..].chars().next() {
                Some('\\') => {
                    let escape = self.at;
                    self.at += 1;
                    let known = self.escape();
                    if !known {
                        let at = span(escape, self.at);
                        let message = format!("unknown escape `{}`", &self.text[escape..self.at]);
                        report(
                            Diagnostic::error("bad-escape", message, at, "not an escape")
                                .help(r#"escapes are \\ \" \` \n \r \t \0 and \u{…}"#),
                        );
                    }
                }
                Some(c) if c == quote => {
                    self.at += 1;
                    break;
                }
                _ => {
                    let at = span(start, start + 1);
                    let what = if quote == '`' { "name in backquotes" } else { "text" };
                    let message = format!("this {what} does not end on its line");
                    let label = format!("expected a closing {quote} after this");
                    report(Diagnostic::error("unclosed-quote", message, at, label));
                    break;
                }
            }
        }
        let at = span(start, self.at);
        if quote == '\'' {
            let message = "texts are written in double quotes";
            report(Diagnostic::error("single-quotes", message, at, "in single quotes"));
        }
        if quote == '`' && self.at == start + 2 {
            report(Diagnostic::error("empty-name", "a name cannot be empty", at, "empty name"));
        }
    }

    /// Consumes what follows a backslash; `false` if it is not an escape.
    fn escape(&mut self) -> bool {
        let rest = self.rest();
        if let Some(hex) = rest.strip_prefix("u{") {
            let digits = hex.bytes().take(7).take_while(u8::is_ascii_hexdigit).count();
            self.at += 2 + digits;
            let value = u32::from_str_radix(&hex[..digits], 16).ok().and_then(char::from_u32);
            let closed = hex[digits..].starts_with('}');
            self.at += usize::from(closed);
            return closed && value.is_some();
        }
        let Some(c) = rest.chars().next().filter(|&c| c != '\n') else { return false };
        self.at += c.len_utf8();
        matches!(c, '\\' | '"' | '`' | 'n' | 'r' | 't' | '0')
    }
}

fn is_stray(c: char) -> bool {
    !begins_word(c)
        && !c.is_whitespace()
        && !c.is_ascii_digit()
        && !matches!(c, '#' | '"' | '`' | '\'')
        && !SYMBOLS.iter().any(|(s, _)| s.starts_with(c))
}

/// The text that a quoted literal denotes; `quoted` includes the quotes unless it is unclosed.
pub(crate) fn unescape(quoted: &str) -> String {
    let quote = quoted.chars().next().unwrap_or('"');
    let inner = quoted.strip_prefix(quote).unwrap_or(quoted);
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == quote {
            break;
        }
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('0') => out.push('\0'),
            Some('u') => {
                let hex: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
                out.extend(u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32));
            }
            other => out.extend(other),
        }
    }
    out
}

/// The opposite of [`unescape`].
pub(crate) fn escape(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if foresee_trace::is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<Kind>, Vec<Diagnostic>) {
        let mut errors = Vec::new();
        let lexed = lex(text, &mut |d| errors.push(d));
        (lexed.tokens.iter().map(|t| t.kind).collect(), errors)
    }

    #[test]
    fn the_longest_symbol_is_taken() {
        use Kind::*;
        let (kinds, errors) = kinds("x<->-1.5e3..2 .a->≤");
        assert_eq!(errors, []);
        let iff = Binary(BinaryOp::Iff);
        let implies = Binary(BinaryOp::Implies);
        assert_eq!(
            kinds,
            [Word, iff, Minus, Float, DotDot, Int, Dot, Word, implies, LessEqual, End]
        );
    }

    #[test]
    fn symbols_do_not_hide_each_other() {
        for (i, (long, _)) in SYMBOLS.iter().enumerate() {
            assert!(SYMBOLS[..i].iter().all(|(s, _)| !long.starts_with(s)), "{long}");
        }
    }

    #[test]
    fn quotes_and_escapes_come_back() {
        for text in ["", "a\"b`c\\d", "tab\t line\n nul\0 bell\u{7}", "größe 🦀"] {
            for quote in ['"', '`'] {
                let written = escape(text, quote);
                assert_eq!(unescape(&written), text);
                let (kinds, errors) = kinds(&written);
                assert_eq!(kinds.len(), 2, "{written}");
                assert!(errors.is_empty() || text.is_empty() && quote == '`', "{written}");
            }
        }
    }

    #[test]
    fn mistakes_are_reported_once() {
        for (text, code) in [
            ("\"abc\nx", "unclosed-quote"),
            ("`abc", "unclosed-quote"),
            ("``", "empty-name"),
            ("\"a\\qb\"", "bad-escape"),
            ("\"\\u{110000}\"", "bad-escape"),
            ("12ab", "malformed-number"),
            ("a ^^^ b", "stray-character"),
            ("²x", "stray-character"),
            ("'a' b", "single-quotes"),
        ] {
            let (_, errors) = kinds(text);
            assert_eq!(errors.iter().map(|e| e.code).collect::<Vec<_>>(), [code], "{text}");
        }
    }

    #[test]
    fn comments_are_kept_aside() {
        let text = "a # one  \r\n#two";
        let lexed = lex(text, &mut |_| ());
        let comments: Vec<&str> =
            lexed.comments.iter().map(|c| &text[c.start as usize..c.end as usize]).collect();
        assert_eq!(comments, ["# one", "#two"]);
    }
}
