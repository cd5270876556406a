//! Regular expressions, patterns and automata in words.

use super::clause::{Mood, clause, shown};
use super::formula::Speaker;
use super::words::Words;
use crate::ast::{Atom, Automaton, Edge, EventAtom, Pattern, PatternKind, Regex, RegexKind};

impl<'a> Speaker<'a> {
    /// The sequences of steps that an expression matches.
    pub(super) fn regex(&mut self, regex: &'a Regex) -> Words {
        match &regex.kind {
            RegexKind::Empty => Words::Leaf("nothing".into()),
            RegexKind::Any => Words::Leaf("one step of any kind".into()),
            RegexKind::Step(_) | RegexKind::Event(_) => self.steps("a step where", regex),
            RegexKind::Concat(parts) => {
                Words::Sequence("one after the other:".into(), self.regexes(parts))
            }
            RegexKind::Union(parts) => Words::List("any of these:".into(), self.regexes(parts)),
            RegexKind::Intersection(parts) => {
                Words::List("a stretch of steps that is all of these:".into(), self.regexes(parts))
            }
            RegexKind::Complement(inner) => {
                let head = "any stretch of steps, also an empty one, that is not:".into();
                Words::List(head, vec![self.regex(inner)])
            }
            RegexKind::Star(inner) => self.repeated("any number of", "also none", inner),
            RegexKind::Plus(inner) => self.repeated("one or more", "", inner),
            RegexKind::Optional(inner) => match &inner.kind {
                RegexKind::Any => Words::Leaf("at most one step of any kind".into()),
                RegexKind::Step(_) | RegexKind::Event(_) => {
                    self.steps("at most one step where", inner)
                }
                _ => Words::List("this, or nothing:".into(), vec![self.regex(inner)]),
            },
        }
    }

    fn regexes(&mut self, parts: &'a [Regex]) -> Vec<Words> {
        parts.iter().map(|p| self.regex(p)).collect()
    }

    fn repeated(&mut self, count: &str, aside: &str, inner: &'a Regex) -> Words {
        let aside = if aside.is_empty() { String::new() } else { format!(" ({aside})") };
        match &inner.kind {
            RegexKind::Any => Words::Leaf(format!("{count} steps{aside} of any kind")),
            RegexKind::Step(_) | RegexKind::Event(_) => {
                self.steps(&format!("{count} steps{aside} where"), inner)
            }
            _ => Words::List(format!("{count} times{aside}:"), vec![self.regex(inner)]),
        }
    }

    /// Steps at which a condition holds.
    fn steps(&mut self, before: &str, regex: &'a Regex) -> Words {
        let condition = match &regex.kind {
            RegexKind::Step(formula) => self.formula(formula),
            RegexKind::Event(event) => Words::Leaf(event_clause(event)),
            _ => unreachable!("only asked of single steps"),
        };
        match condition.clause() {
            Some(text) => Words::Leaf(format!("{before} {text}")),
            None => Words::under(format!("{before}:"), condition),
        }
    }

    /// The events of a pattern.
    pub(super) fn pattern(&mut self, pattern: &'a Pattern) -> Words {
        match &pattern.kind {
            PatternKind::Empty => Words::Leaf("nothing".into()),
            PatternKind::Position(events) => {
                let clauses: Vec<String> = events.iter().map(event_clause).collect();
                Words::Leaf(clauses.join(", or "))
            }
            PatternKind::Then(parts) => {
                Words::Sequence("in this order, anything in between:".into(), self.patterns(parts))
            }
            PatternKind::Union(parts) => Words::List("any of these:".into(), self.patterns(parts)),
            PatternKind::Intersection(parts) => Words::List(
                "all of these, in one another's gaps or sharing events:".into(),
                self.patterns(parts),
            ),
            PatternKind::Star(inner) => {
                Words::List("this, or nothing:".into(), vec![self.pattern(inner)])
            }
        }
    }

    fn patterns(&mut self, parts: &'a [Pattern]) -> Vec<Words> {
        parts.iter().map(|p| self.pattern(p)).collect()
    }

    /// The rows of an automaton.
    pub(super) fn automaton(&mut self, automaton: &'a Automaton) -> Vec<Words> {
        let initial: Vec<String> = automaton.initial.iter().map(|i| shown(&i.name)).collect();
        let start = match &initial[..] {
            [one] => format!("it starts in {one}"),
            several => format!("it starts in all of {} at once", several.join(", ")),
        };
        let mut said = vec![Words::Leaf(start)];
        for state in automaton.states.iter().filter(|s| s.name.name != "bad") {
            let name = shown(&state.name.name);
            said.push(match &state.edges[..] {
                [] => Words::Leaf(format!("{name} is never left")),
                edges => {
                    let entries = edges.iter().map(|e| self.entry(e)).collect();
                    Words::List(format!("from {name}:"), entries)
                }
            });
        }
        said
    }

    fn entry(&mut self, edge: &'a Edge) -> Words {
        let target = shown(&edge.target.name);
        let condition = self.formula(&edge.guard);
        match condition.joint() {
            Some(text) => Words::Leaf(format!("to {target} if {text}")),
            None => Words::under(format!("to {target} if:"), condition),
        }
    }
}

fn event_clause(event: &EventAtom) -> String {
    clause(&Atom::Event(event.clone()), Mood::Is, false)
}
