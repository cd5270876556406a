//! Regular expressions and patterns, which have the same shape: `|` over `&` over sequences.

use foresee_support::nearest::nearest;

use super::lexer::Kind;
use super::names::EVENTS;
use super::parser::{Built, Facts, Parse, Parser};
use crate::ast::{BinaryOp, Pattern, PatternKind, Regex, RegexKind, Span};
use crate::diagnostic::Diagnostic;

/// A kind of tree that is written with `|` and `&`.
trait Sequence: Sized {
    const WHAT: &'static str;
    fn union(parts: Vec<Self>, span: Span) -> Self;
    fn intersection(parts: Vec<Self>, span: Span) -> Self;
    fn then(parts: Vec<Self>, span: Span) -> Self;
    /// A placeholder for one that could not be parsed.
    fn empty(span: Span) -> Self;
    fn span(&self) -> Span;
    /// Everything that binds tighter than `&`.
    fn parts(parser: &mut Parser<'_>) -> Parse<Vec<Built<Self>>>;
}

impl Sequence for Regex {
    const WHAT: &'static str = "regular expressions";
    fn union(parts: Vec<Regex>, span: Span) -> Regex {
        Regex { kind: RegexKind::Union(parts), span }
    }
    fn intersection(parts: Vec<Regex>, span: Span) -> Regex {
        Regex { kind: RegexKind::Intersection(parts), span }
    }
    fn then(parts: Vec<Regex>, span: Span) -> Regex {
        Regex { kind: RegexKind::Concat(parts), span }
    }
    fn empty(span: Span) -> Regex {
        Regex { kind: RegexKind::Empty, span }
    }
    fn span(&self) -> Span {
        self.span
    }
    fn parts(parser: &mut Parser<'_>) -> Parse<Vec<Built<Regex>>> {
        let mut parts = vec![parser.regex_prefix()?];
        while !parser.at_end_of_sequence() {
            parts.push(parser.regex_prefix()?);
        }
        Ok(parts)
    }
}

impl Sequence for Pattern {
    const WHAT: &'static str = "patterns";
    fn union(parts: Vec<Pattern>, span: Span) -> Pattern {
        Pattern { kind: PatternKind::Union(parts), span }
    }
    fn intersection(parts: Vec<Pattern>, span: Span) -> Pattern {
        Pattern { kind: PatternKind::Intersection(parts), span }
    }
    fn then(parts: Vec<Pattern>, span: Span) -> Pattern {
        Pattern { kind: PatternKind::Then(parts), span }
    }
    fn empty(span: Span) -> Pattern {
        Pattern { kind: PatternKind::Empty, span }
    }
    fn span(&self) -> Span {
        self.span
    }
    fn parts(parser: &mut Parser<'_>) -> Parse<Vec<Built<Pattern>>> {
        let mut group = parser.kind() == Kind::RoundOpen;
        let mut parts = vec![parser.pattern_postfix()?];
        loop {
            let next_is_group = |p: &Parser<'_>| p.kind() == Kind::RoundOpen;
            if parser.eat(Kind::DotDot) {
                parser.no_third_dot()?;
                group = next_is_group(parser);
            } else if parser.at_end_of_sequence() {
                return Ok(parts);
            } else if group || next_is_group(parser) {
                group = next_is_group(parser);
            } else {
                return parser.expected_help(
                    "`..`, `/`, `|` or `&`",
                    Some(
                        "separate the events of a pattern with `..`, which allows anything in between",
                    ),
                );
            }
            parts.push(parser.pattern_postfix()?);
        }
    }
}

impl Parser<'_> {
    /// The body of `violation`.
    pub(super) fn regex(&mut self) -> Parse<Built<Regex>> {
        self.alternatives()
    }

    /// The body of `pattern`.
    pub(super) fn pattern(&mut self) -> Parse<Built<Pattern>> {
        self.alternatives()
    }

    fn alternatives<T: Sequence>(&mut self) -> Parse<Built<T>> {
        self.deeper(|p| {
            p.separated(Kind::Or, BinaryOp::Or, T::union, |p| {
                p.separated(Kind::And, BinaryOp::And, T::intersection, |p| {
                    let parts = T::parts(p)?;
                    p.collect(parts, T::then)
                })
            })
        })
    }

    /// One or more parts separated by `sign`; `doubled` is the sign that formulas use.
    fn separated<T: Sequence>(
        &mut self,
        sign: Kind,
        doubled: BinaryOp,
        make: fn(Vec<T>, Span) -> T,
        part: impl Fn(&mut Self) -> Parse<Built<T>>,
    ) -> Parse<Built<T>> {
        let mut parts = vec![part(self)?];
        loop {
            if self.kind() == Kind::Binary(doubled) {
                let write = if sign == Kind::Or { "write `|`" } else { "write `&`" };
                let message = format!("{} is not an operator of {}", self.found(), T::WHAT);
                let at = self.token().span;
                self.report(Diagnostic::error("foreign-operator", message, at, write));
            } else if self.kind() != sign {
                return self.collect(parts, make);
            }
            self.bump();
            parts.push(part(self)?);
        }
    }

    /// Several parts as one; a single one is returned unchanged.
    fn collect<T: Sequence>(
        &mut self,
        mut parts: Vec<Built<T>>,
        make: fn(Vec<T>, Span) -> T,
    ) -> Parse<Built<T>> {
        if parts.len() == 1
            && let Some(single) = parts.pop()
        {
            return Ok(single);
        }
        let facts: Vec<Facts> = parts.iter().map(|p| p.facts).collect();
        let nodes: Vec<T> = parts.into_iter().map(|p| p.node).collect();
        let start = nodes.first().map_or(0, |n| n.span().start);
        let end = nodes.last().map_or(0, |n| n.span().end);
        let span = Span { start, end };
        self.built(make(nodes, span), span, &facts)
    }

    fn at_end_of_sequence(&self) -> bool {
        matches!(
            self.kind(),
            Kind::End
                | Kind::RoundClose
                | Kind::Or
                | Kind::And
                | Kind::Binary(BinaryOp::Or | BinaryOp::And)
        ) || self.at_item()
    }

    /// `()` or `(…)`; the next token is `(`.
    fn group<T: Sequence>(&mut self) -> Parse<Built<T>> {
        let start = self.token().span;
        if self.ahead(1).kind == Kind::RoundClose {
            self.bump();
            self.bump();
            let span = self.since(start);
            return self.built(T::empty(span), span, &[]);
        }
        let instead = || Built { node: T::empty(start), facts: Facts::default() };
        self.enclosed((Kind::RoundClose, "`)`"), instead, Self::alternatives)
    }

    /// `~R`, which extends to the next part of the sequence.
    fn regex_prefix(&mut self) -> Parse<Built<Regex>> {
        if self.kind() != Kind::Tilde {
            return self.regex_postfix();
        }
        let at = self.bump().span;
        let inner = self.deeper(Self::regex_prefix)?;
        let span = self.since(at);
        let kind = RegexKind::Complement(Box::new(inner.node));
        self.built(Regex { kind, span }, at, &[inner.facts])
    }

    fn regex_postfix(&mut self) -> Parse<Built<Regex>> {
        let mut built = self.regex_primary()?;
        loop {
            let make = match self.kind() {
                Kind::Star => RegexKind::Star,
                Kind::Plus => RegexKind::Plus,
                Kind::Question => RegexKind::Optional,
                _ => return Ok(built),
            };
            let at = self.bump().span;
            let span = Span { start: built.node.span.start, end: at.end };
            let kind = make(Box::new(built.node));
            built = self.built(Regex { kind, span }, at, &[built.facts])?;
        }
    }

    fn regex_primary(&mut self) -> Parse<Built<Regex>> {
        let start = self.token().span;
        match self.kind() {
            Kind::RoundOpen => self.group(),
            Kind::Dot => {
                self.bump();
                self.built(Regex { kind: RegexKind::Any, span: start }, start, &[])
            }
            Kind::CurlyOpen => {
                let instead = || super::formula::nothing(start);
                let step = self
                    .enclosed((Kind::CurlyClose, "`}`"), instead, |p| p.step_formula(0, "`{…}`"))?;
                let span = self.since(start);
                self.built(Regex { kind: RegexKind::Step(step.node), span }, span, &[step.facts])
            }
            Kind::DotDot => self.expected_help(
                "a step of a regular expression",
                Some("`..` belongs to patterns; any number of steps is `.*`, two steps are `. .`"),
            ),
            Kind::Semicolon => self.expected_help(
                "a step of a regular expression",
                Some("steps that follow each other are written side by side, without a sign"),
            ),
            Kind::Prefix(crate::ast::UnaryOp::Not) => self.expected_help(
                "a step of a regular expression",
                Some("a step where F does not hold is `{!F}`; all words except R are `~R`"),
            ),
            _ => {
                let event = self.step_event("a step of a regular expression", true)?;
                let span = event.node.span;
                self.built(Regex { kind: RegexKind::Event(event.node), span }, span, &[event.facts])
            }
        }
    }

    /// Refuses the third dot of `...`.
    fn no_third_dot(&mut self) -> Parse<()> {
        let dot = self.token().span;
        if self.kind() != Kind::Dot || dot.start != self.previous_end() {
            return Ok(());
        }
        let at = Span { start: dot.start - 2, end: dot.end };
        let message = "`...` does not separate events";
        self.fail(Diagnostic::error("foreign-operator", message, at, "write `..`"))
    }

    fn pattern_postfix(&mut self) -> Parse<Built<Pattern>> {
        let mut built = self.pattern_primary()?;
        while self.kind() == Kind::Star {
            let at = self.bump().span;
            let span = Span { start: built.node.span.start, end: at.end };
            let kind = PatternKind::Star(Box::new(built.node));
            built = self.built(Pattern { kind, span }, at, &[built.facts])?;
        }
        Ok(built)
    }

    fn pattern_primary(&mut self) -> Parse<Built<Pattern>> {
        if self.kind() == Kind::RoundOpen {
            return self.group();
        }
        let start = self.token().span;
        let mut events = Vec::new();
        loop {
            events.push(self.step_event("an event", false)?.node);
            if !self.eat(Kind::Slash) {
                break;
            }
        }
        let span = self.since(start);
        self.built(Pattern { kind: PatternKind::Position(events), span }, span, &[])
    }

    /// An event atom where nothing else is allowed.
    fn step_event(&mut self, what: &str, braces: bool) -> Parse<Built<crate::ast::EventAtom>> {
        if let Some(kind) = self.event_kind() {
            return self.event_atom(kind);
        }
        let word = self.word();
        if self.ahead(1).kind == Kind::RoundOpen && !word.is_empty() {
            let at = self.token().span;
            let message = format!("unknown kind of event `{word}`");
            let words: Vec<&str> = EVENTS.iter().map(|(word, _)| *word).collect();
            let label = match nearest(word, words.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "unknown".to_owned(),
            };
            let help = format!("the kinds of events are {}", words.join(", "));
            self.report(Diagnostic::error("unknown-event", message, at, label).help(help));
            return self.event_atom(EVENTS[0].1);
        }
        let help = match word {
            "" if self.kind() == Kind::CurlyOpen => {
                Some("patterns are made of events; `violation` has steps like `{x > 0}`".to_owned())
            }
            "" => None,
            _ if braces => Some(format!("a step where `{word}` holds is written `{{{word}}}`")),
            _ => Some(format!("an event of that name is written `event({word})`")),
        };
        self.expected_help(what, help.as_deref())
    }
}
