//! Names, literals and event atoms.

use super::lexer::{self, Kind, unescape};
use super::parser::{Built, Facts, Parse, Parser};
use super::reports::Reports;
use crate::ast::{EventAtom, EventKind, Ident, Literal, Span, Term};
use crate::diagnostic::Diagnostic;
use crate::mentions::field_of;

/// The kinds of events with their words.
pub(super) const EVENTS: &[(&str, EventKind)] = &[
    ("read", EventKind::Read),
    ("write", EventKind::Write),
    ("acquire", EventKind::Acquire),
    ("release", EventKind::Release),
    ("fork", EventKind::Fork),
    ("join", EventKind::Join),
    ("enter", EventKind::Enter),
    ("exit", EventKind::Exit),
    ("event", EventKind::Event),
];

/// The position of a term in an event atom.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Target,
    Argument,
    Thread,
}

impl Parser<'_> {
    /// A name that the specification defines: of a property, a let, a parameter, a state.
    pub(super) fn ident(&mut self, what: &str) -> Parse<Ident> {
        let token = self.token();
        let name = match token.kind {
            Kind::Word if self.word() != "_" => self.word().to_owned(),
            Kind::Quoted => unescape(self.slice(token.span)),
            _ => return self.expected(what),
        };
        self.bump();
        Ok(Ident { name, span: token.span })
    }

    /// The number of tokens from here on that form one name of a program entity: `ctl.valve.open`,
    /// `a[3]`, `file.c:landing`, `Class::field`, and `Thread-0` where arithmetic is not allowed.
    fn name_length(&self, dashes: bool) -> usize {
        let mut n = 1;
        loop {
            let part = |i| self.touches(i) && matches!(self.ahead(i).kind, Kind::Word | Kind::Int);
            let sign = self.touches(n).then(|| self.ahead(n).kind);
            n += match sign {
                Some(Kind::Dot) if part(n + 1) => 2,
                // The second half of `pair.0.1`.
                Some(Kind::Dot) if self.touches(n + 1) && self.ahead(n + 1).kind == Kind::Float => {
                    2
                }
                Some(Kind::Colon) if part(n + 1) => 2,
                Some(Kind::Colon)
                    if self.ahead(n + 1).kind == Kind::Colon
                        && self.touches(n + 1)
                        && part(n + 2) =>
                {
                    3
                }
                Some(Kind::Minus) if dashes && part(n + 1) => 2,
                Some(Kind::SquareOpen)
                    if part(n + 1)
                        && self.touches(n + 2)
                        && self.ahead(n + 2).kind == Kind::SquareClose =>
                {
                    3
                }
                _ => return n,
            };
        }
    }

    /// A name of a program entity, which begins with the next word.
    pub(super) fn program_name(&mut self, dashes: bool) -> Ident {
        let start = self.token().span;
        for _ in 0..self.name_length(dashes) {
            self.bump();
        }
        let span = self.since(start);
        Ident { name: self.slice(span).to_owned(), span }
    }

    /// Whether the next word is a name by itself.
    pub(super) fn single_word(&self, dashes: bool) -> bool {
        self.kind() == Kind::Word && self.name_length(dashes) == 1
    }

    /// A constant, if one is next.
    pub(super) fn literal(&mut self) -> Option<(Literal, Span)> {
        let start = self.token().span;
        let minus = self.kind() == Kind::Minus;
        let token = self.ahead(usize::from(minus));
        let text = self.slice(token.span);
        let value = match token.kind {
            Kind::Int => self.integer(minus, text, token.span),
            Kind::Float => Literal::Float(self.float(minus, text, token.span)),
            _ if minus => return None,
            Kind::Str => Literal::Str(unescape(text)),
            Kind::Const(value) => Literal::Bool(value),
            Kind::Word if text == "true" || text == "false" => Literal::Bool(text == "true"),
            _ => return None,
        };
        if minus {
            self.bump();
        }
        self.bump();
        Some((value, self.since(start)))
    }

    fn integer(&mut self, minus: bool, text: &str, at: Span) -> Literal {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let value = text.parse().map(|n: i128| if minus { -n } else { n });
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        let value = value.ok().filter(|n| range.contains(n));
        // The lexer has already reported a number that is followed by letters.
        if digits && value.is_none() {
            let message = "integer out of range";
            let label = "does not fit into 64 bits";
            let help = format!("integers range from {} to {}", i64::MIN, u64::MAX);
            self.report(Diagnostic::error("number-range", message, at, label).help(help));
        }
        Literal::Int(value.unwrap_or(0))
    }

    fn float(&mut self, minus: bool, text: &str, at: Span) -> f64 {
        let value: f64 = text.parse().unwrap_or(0.0);
        if value.is_infinite() {
            let message = "number out of range";
            let label = format!("larger than {:e}", f64::MAX);
            self.report(Diagnostic::error("number-range", message, at, label));
            return 0.0;
        }
        if minus { -value } else { value }
    }

    /// The kind of event whose atom begins here.
    pub(super) fn event_kind(&self) -> Option<EventKind> {
        let kind = EVENTS.iter().find(|(word, _)| *word == self.word()).map(|(_, kind)| *kind);
        kind.filter(|_| self.ahead(1).kind == Kind::RoundOpen)
    }

    /// `(target, arguments…)@thread` after the word of an event kind, which is the next token.
    pub(super) fn event_atom(&mut self, kind: EventKind) -> Parse<Built<EventAtom>> {
        let start = self.bump().span;
        let any = || (Term::Any, Vec::new());
        let (target, args) = self.enclosed((Kind::RoundClose, "`,` or `)`"), any, |p| {
            let target = p.term(Place::Target)?;
            let mut args = Vec::new();
            while p.eat(Kind::Comma) {
                args.push(p.term(Place::Argument)?);
            }
            Ok((target, args))
        })?;
        let thread = if self.eat(Kind::At) { self.term(Place::Thread)? } else { Term::Any };
        let span = self.since(start);
        let facts = Facts { size: 1, ..Facts::default() };
        self.built(EventAtom { kind, target, args, thread, span }, span, &[facts])
    }

    /// The declaration of the parameter with that name, if there is one.
    pub(super) fn use_param(&mut self, name: &str) -> Option<Span> {
        let mut declared = None;
        for (param, used) in self.params.iter_mut().filter(|(param, _)| param.name == name) {
            *used = true;
            declared = Some(param.span);
        }
        declared
    }

    fn term(&mut self, place: Place) -> Parse<Term> {
        let token = self.token();
        if self.word() == "_" {
            self.bump();
            return Ok(Term::Any);
        }
        if token.kind == Kind::Quoted {
            let name = self.ident("a name")?;
            self.check_quoted(&name);
            return Ok(Term::Name(name));
        }
        if place == Place::Argument {
            if let Some((value, span)) = self.literal() {
                return Ok(Term::Literal(value, span));
            }
        } else if token.kind == Kind::Str || token.kind == Kind::Int {
            // Only names are allowed here, whatever they look like.
            self.bump();
            let text = self.slice(token.span);
            let name = if token.kind == Kind::Str { unescape(text) } else { text.to_owned() };
            return Ok(Term::Name(Ident { name, span: token.span }));
        }
        if token.kind != Kind::Word {
            return self.expected(match place {
                Place::Target => "a name or `_`",
                Place::Argument => "a name, a constant or `_`",
                Place::Thread => "the name of a thread",
            });
        }
        let single = self.single_word(true);
        let name = self.program_name(true);
        if single {
            if self.is_whole_object(&name) {
                return Ok(Term::Any);
            }
            if self.use_param(&name.name).is_some() {
                return Ok(Term::Param(name));
            }
            self.plain_names.push(name.clone());
        }
        self.use_field(&name);
        Ok(Term::Name(name))
    }

    /// Notes that a field of an object was used, if the name is one.
    pub(super) fn use_field(&mut self, name: &Ident) {
        if let Some((object, _)) = field_of(&name.name, &self.objects) {
            let param = self.objects[object].name.name.clone();
            self.use_param(&param);
        }
    }

    /// Reports a parameter that stands for an object if it is used without a field.
    pub(super) fn is_whole_object(&mut self, name: &Ident) -> bool {
        let Some(object) = self.objects.iter().find(|object| object.name.name == name.name) else {
            return false;
        };
        let message = format!("`{}` is an object, of which only fields can be seen", name.name);
        let error = Diagnostic::error("object-without-field", message, name.span, "no field");
        let help = format!("name a field of it, as in `{}.balance`", name.name);
        let error = error.and(object.name.span, "the object").help(help);
        self.use_param(&name.name);
        self.report(error);
        true
    }

    /// Reports a name in backquotes that could not be told from a field of an object.
    pub(super) fn check_quoted(&mut self, name: &Ident) {
        let Some((object, _)) = field_of(&name.name, &self.objects) else { return };
        let declared = self.objects[object].name.span;
        let message = format!("`{}` looks like a field of the parameter", name.name);
        let error = Diagnostic::error("ambiguous-field", message, name.span, "not a field");
        let help = "give the parameter another name";
        self.report(error.and(declared, "the parameter").help(help));
    }
}

/// Whether the name of a program entity can be written without backquotes.
pub(super) fn is_plain(name: &str, dashes: bool) -> bool {
    let mut clean = true;
    let lexed = lexer::lex(name, &mut |_| clean = false);
    let parser = Parser::new(name, &lexed.tokens, Reports::default());
    let length = parser.name_length(dashes);
    clean
        && parser.kind() == Kind::Word
        && parser.token().span.start == 0
        && length + 1 == lexed.tokens.len()
        && parser.ahead(length - 1).span.end as usize == name.len()
}
