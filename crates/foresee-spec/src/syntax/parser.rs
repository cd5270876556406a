//! The cursor over the tokens: look-ahead, error reporting and recovery.
//!
//! A function that cannot continue reports why and returns [`Failed`]. Brackets catch it and
//! continue after the closing bracket; items catch it and continue with the next item. So one pass
//! over a specification finds several of its mistakes.

use std::collections::HashMap;
use std::sync::Arc;

use foresee_support::nearest::nearest;

use super::atomics::ATOMIC;
use super::lexer::{Kind, Token};
use super::reports::Reports;
use crate::ast::{Formula, Ident, ObjectParam, Span};
use crate::diagnostic::Diagnostic;

/// The maximum height of a tree of operators, including brackets and expanded lets. It allows
/// everything that walks a specification to use plain recursion.
pub(super) const MAX_HEIGHT: u32 = 256;
/// The parser recurses on the caller's stack, and continues on a new piece when less than this is left. Without
/// optimisation, one level takes some ten thousand bytes.
const RED_ZONE: usize = 128 << 10;
/// The size of such a piece.
const GROWTH: usize = 1 << 20;

/// The maximum number of operators of a formula after its lets are expanded: lets that use other
/// lets twice double it each time.
pub(super) const MAX_SIZE: u32 = 1_000_000;

/// The keywords of items.
pub(super) const ITEMS: &[&str] =
    &["property", "violation", "pattern", "automaton", "let", "init", ATOMIC];

/// A mistake has been reported, and there is nothing to return.
#[derive(Debug)]
pub(super) struct Failed;

pub(super) type Parse<T> = Result<T, Failed>;

/// A tree, with facts about it that must be known without walking it.
pub(super) struct Built<T> {
    pub(super) node: T,
    pub(super) facts: Facts,
}

/// Facts about a tree. Inside a let, positions are those of its use.
#[derive(Clone, Copy, Default)]
pub(super) struct Facts {
    pub(super) height: u32,
    pub(super) size: u32,
    /// A temporal operator in it.
    pub(super) temporal: Option<Span>,
    /// An operator in it that refers to later steps.
    pub(super) future: Option<Span>,
}

impl Facts {
    fn over(parts: &[Facts]) -> Facts {
        Facts {
            height: 1 + parts.iter().map(|f| f.height).max().unwrap_or(0),
            size: parts.iter().fold(1, |sum: u32, f| sum.saturating_add(f.size)),
            temporal: parts.iter().find_map(|f| f.temporal),
            future: parts.iter().find_map(|f| f.future),
        }
    }
}

/// A defined let.
pub(super) struct LetInfo {
    pub(super) span: Span,
    pub(super) formula: Arc<Formula>,
    pub(super) facts: Facts,
    /// The lets it uses.
    pub(super) uses: Vec<String>,
    /// Plain names in its event atoms, which could be mistaken for parameters.
    pub(super) plain_names: Vec<Ident>,
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: &'a [Token],
    at: usize,
    depth: u32,
    pub(super) reports: Reports,
    pub(super) lets: HashMap<String, LetInfo>,
    /// All lets of the specification, with the position of their first definition.
    pub(super) all_lets: HashMap<&'a str, Span>,
    /// The parameters of the current property, and whether they have been used.
    pub(super) params: Vec<(Ident, bool)>,
    /// Those of them that stand for objects of a type.
    pub(super) objects: Vec<ObjectParam>,
    /// Lets that the current item uses.
    pub(super) uses: Vec<Ident>,
    /// Plain names in event atoms of the current item.
    pub(super) plain_names: Vec<Ident>,
    /// How many more lets may be searched for names of parameters. The search is optional and must
    /// stay fast in specifications designed to make it slow.
    pub(super) patience: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, tokens: &'a [Token], reports: Reports) -> Parser<'a> {
        let mut parser = Parser {
            text,
            tokens,
            at: 0,
            depth: 0,
            reports,
            lets: HashMap::new(),
            all_lets: HashMap::new(),
            params: Vec::new(),
            objects: Vec::new(),
            uses: Vec::new(),
            plain_names: Vec::new(),
            patience: 1_000_000,
        };
        for pair in tokens.windows(2) {
            if parser.slice(pair[0].span) == "let" && pair[1].kind == Kind::Word {
                let name = parser.slice(pair[1].span);
                parser.all_lets.entry(name).or_insert(pair[1].span);
            }
        }
        parser
    }

    // Looking.

    pub(super) fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    pub(super) fn ahead(&self, n: usize) -> Token {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    pub(super) fn token(&self) -> Token {
        self.ahead(0)
    }

    pub(super) fn kind(&self) -> Kind {
        self.token().kind
    }

    /// The word `n` tokens ahead, or an empty text if the token is not a word.
    pub(super) fn word_ahead(&self, n: usize) -> &'a str {
        let token = self.ahead(n);
        if token.kind == Kind::Word { self.slice(token.span) } else { "" }
    }

    pub(super) fn word(&self) -> &'a str {
        self.word_ahead(0)
    }

    /// The word before the next token, or an empty text if that was not a word.
    pub(super) fn previous_word(&self) -> &'a str {
        let last = self.at.checked_sub(1).map(|i| self.tokens[i]);
        last.filter(|token| token.kind == Kind::Word).map_or("", |token| self.slice(token.span))
    }

    /// Whether the token `n` ahead directly follows its predecessor.
    pub(super) fn touches(&self, n: usize) -> bool {
        self.ahead(n).span.start == self.ahead(n - 1).span.end
    }

    pub(super) fn previous_end(&self) -> u32 {
        self.at.checked_sub(1).map_or(0, |i| self.tokens[i].span.end)
    }

    /// From a position to the end of the last consumed token.
    pub(super) fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.previous_end().max(start.start) }
    }

    /// Whether an item begins here. Keywords of items may also be names of program entities, but
    /// those are not followed by another name.
    pub(super) fn at_item(&self) -> bool {
        let is_item = match self.word() {
            ATOMIC => self.at_atomic(),
            word => {
                ITEMS.contains(&word) && matches!(self.ahead(1).kind, Kind::Word | Kind::Quoted)
            }
        };
        is_item || self.misspelt_item().is_some()
    }

    /// The keyword that was meant if an item with a misspelt keyword begins here.
    pub(super) fn misspelt_item(&self) -> Option<&'static str> {
        let head = matches!(self.ahead(1).kind, Kind::Word | Kind::Quoted)
            && matches!(
                self.ahead(2).kind,
                Kind::Colon | Kind::RoundOpen | Kind::CurlyOpen | Kind::Equal
            );
        if head && self.kind() == Kind::Word && !ITEMS.contains(&self.word()) {
            nearest(self.word(), ITEMS.iter().copied())
        } else {
            None
        }
    }

    /// The next token, for a message.
    pub(super) fn found(&self) -> String {
        match self.kind() {
            Kind::End => "the end of the specification".to_owned(),
            _ => shorten(self.slice(self.token().span)),
        }
    }

    // Taking.

    pub(super) fn bump(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn expect(&mut self, kind: Kind, what: &str) -> Parse<Span> {
        if self.kind() == kind { Ok(self.bump().span) } else { self.expected(what) }
    }

    // Reporting.

    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.reports.add(diagnostic);
    }

    /// Reports a mistake and fails.
    pub(super) fn fail<T>(&mut self, diagnostic: Diagnostic) -> Parse<T> {
        self.report(diagnostic);
        Err(Failed)
    }

    pub(super) fn expected<T>(&mut self, what: &str) -> Parse<T> {
        self.expected_help(what, None)
    }

    pub(super) fn expected_help<T>(&mut self, what: &str, help: Option<&str>) -> Parse<T> {
        if self.token().after_stray {
            // The missing part is what the lexer could not read.
            return Err(Failed);
        }
        let message = format!("expected {what}, found {}", self.found());
        let at_end = self.kind() == Kind::End || self.at_item();
        let error = match self.at.checked_sub(1).map(|i| self.tokens[i].span) {
            Some(last) if at_end => {
                Diagnostic::error("syntax", message, last, format!("expected {what} after this"))
            }
            _ => {
                let label = format!("expected {what}");
                Diagnostic::error("syntax", message, self.token().span, label)
            }
        };
        self.fail(error.maybe_help(help.map(str::to_owned)))
    }

    pub(super) fn has_errors(&self) -> bool {
        self.reports.has_errors()
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.reports.finish()
    }

    // Building and nesting.

    /// A node over parts that have been built, within the limits.
    pub(super) fn built<T>(&mut self, node: T, at: Span, parts: &[Facts]) -> Parse<Built<T>> {
        let facts = Facts::over(parts);
        if facts.height > MAX_HEIGHT {
            return self.too_deep(at);
        }
        if facts.size > MAX_SIZE {
            let message = format!("more than {MAX_SIZE} operators, lets expanded");
            let error = Diagnostic::error("too-large", message, at, "too large from here on");
            return self
                .fail(error.help("lets that use other lets twice double in size each time"));
        }
        Ok(Built { node, facts })
    }

    /// Parses one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= MAX_HEIGHT {
            return self.too_deep(self.token().span);
        }
        self.depth += 1;
        let result = stacker::maybe_grow(RED_ZONE, GROWTH, || parse(self));
        self.depth -= 1;
        result
    }

    fn too_deep<T>(&mut self, at: Span) -> Parse<T> {
        let message = format!("nested more than {MAX_HEIGHT} levels deep");
        let error = Diagnostic::error("too-deep", message, at, "too deep here");
        self.fail(error.help("split it into several properties, or drop needless brackets"))
    }

    /// The content between an opening bracket, which is the next token, and its closing one. After
    /// a mistake inside, continues after the closing bracket with `instead`.
    pub(super) fn enclosed<T>(
        &mut self,
        close: (Kind, &str),
        instead: impl FnOnce() -> T,
        inside: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        let open = self.bump();
        let result = inside(self);
        if result.is_ok() && self.eat(close.0) {
            return result;
        }
        if result.is_ok() {
            self.unclosed(open.span, close.1);
        }
        self.skip_to_close()?;
        result.or_else(|Failed| Ok(instead()))
    }

    fn unclosed(&mut self, open: Span, close: &str) {
        let at = self.token().span;
        let found = self.found();
        let sign = shorten(self.slice(open));
        self.report(if self.kind() == Kind::End || self.at_item() {
            // The end of the item does not show where the bracket should have been closed.
            let message = format!("{sign} is never closed");
            let label = format!("expected {close} before {found}");
            Diagnostic::error("unclosed", message, open, label)
        } else {
            let message = format!("expected {close}, found {found}");
            let label = format!("expected {close}");
            Diagnostic::error("unclosed", message, at, label)
                .and(open, format!("to close this {sign}"))
        });
    }

    /// Skips past the closing bracket of the current level, if the item has one.
    fn skip_to_close(&mut self) -> Parse<()> {
        let mut open = 0;
        while self.kind() != Kind::End && !self.at_item() {
            match self.bump().kind {
                Kind::RoundOpen | Kind::SquareOpen | Kind::CurlyOpen => open += 1,
                Kind::RoundClose | Kind::SquareClose | Kind::CurlyClose if open == 0 => {
                    return Ok(());
                }
                Kind::RoundClose | Kind::SquareClose | Kind::CurlyClose => open -= 1,
                _ => {}
            }
        }
        Err(Failed)
    }

    /// Skips to the next item.
    pub(super) fn skip_to_item(&mut self) {
        while self.kind() != Kind::End && !self.at_item() {
            self.bump();
        }
    }
}

/// A piece of source for a message: in backquotes, and not too long.
pub(super) fn shorten(text: &str) -> String {
    if text.starts_with('`') {
        return text.chars().take(40).collect();
    }
    let short: String = text.chars().take(40).collect();
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("`{short}{dots}`")
}
