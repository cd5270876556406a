//! `atomic transfer, Account::*`: methods whose calls are atomic regions.

use super::formula::is_reserved;
use super::lexer::{self, Kind, escape, unescape};
use super::parser::{Parse, Parser};
use super::reports::Reports;
use crate::ast::Ident;
use crate::diagnostic::Diagnostic;

/// The word that begins the item.
pub(super) const ATOMIC: &str = "atomic";

/// Whether a word can only be a name.
fn is_free(word: &str) -> bool {
    word != ATOMIC && !is_reserved(word)
}

impl Parser<'_> {
    /// Whether the item begins here, rather than a formula with a program variable of that name: no
    /// operator and no other item follows.
    pub(super) fn at_atomic(&self) -> bool {
        match self.ahead(1).kind {
            Kind::Word => is_free(self.word_ahead(1)),
            kind => matches!(kind, Kind::Quoted | Kind::Str),
        }
    }

    /// The names after the keyword, which has been consumed.
    pub(super) fn atomics(&mut self, methods: &mut Vec<Ident>) -> Parse<()> {
        loop {
            methods.push(self.method()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        if matches!(self.kind(), Kind::Colon | Kind::RoundOpen | Kind::CurlyOpen | Kind::Equal) {
            let message = "`atomic` takes only names of methods";
            let error =
                Diagnostic::error("atomic-body", message, self.token().span, "unexpected here");
            return self.fail(error.help("for example `atomic transfer, Account::*`"));
        }
        Ok(())
    }

    /// The number of tokens from here on that form the name of methods: words, numbers and stars,
    /// with `::`, `:` and `.` between them.
    fn method_length(&self) -> usize {
        let is_part = |n: usize| matches!(self.ahead(n).kind, Kind::Word | Kind::Int | Kind::Star);
        let mut n = 1;
        loop {
            let is_sign = |n: usize| self.touches(n) && self.ahead(n).kind == Kind::Colon;
            let sign = match self.ahead(n).kind {
                Kind::Dot if self.touches(n) => 1,
                Kind::Colon if is_sign(n) && is_sign(n + 1) => 2,
                Kind::Colon if is_sign(n) => 1,
                _ => 0,
            };
            if !(self.touches(n + sign) && is_part(n + sign)) {
                return n;
            }
            n += sign + 1;
        }
    }

    fn method(&mut self) -> Parse<Ident> {
        let token = self.token();
        let text = match token.kind {
            Kind::Word | Kind::Star if !self.at_item() => {
                for _ in 0..self.method_length() {
                    self.bump();
                }
                let span = self.since(token.span);
                return Ok(Ident { name: self.slice(span).to_owned(), span });
            }
            Kind::Quoted | Kind::Str => unescape(self.slice(token.span)),
            _ => return self.expected("the name of a method, such as `transfer` or `Account::*`"),
        };
        self.bump();
        if text.is_empty() && token.kind == Kind::Str {
            let message = "the name of a method cannot be empty";
            return self.fail(Diagnostic::error("empty-name", message, token.span, "empty name"));
        }
        Ok(Ident { name: text, span: token.span })
    }
}

/// The name of methods as the formatter writes it: in backquotes if necessary.
pub fn print_method(name: &str) -> String {
    let mut is_plain = true;
    let lexed = lexer::lex(name, &mut |_| is_plain = false);
    let parser = Parser::new(name, &lexed.tokens, Reports::default());
    let first = parser.token();
    // Words of the language could be mistaken for the rest of a formula or for the next item.
    is_plain &= first.kind == Kind::Word
        && first.span.start == 0
        && is_free(parser.word())
        && parser.method_length() + 1 == lexed.tokens.len()
        && parser.ahead(parser.method_length() - 1).span.end as usize == name.len();
    if is_plain { name.to_owned() } else { escape(name, '`') }
}
