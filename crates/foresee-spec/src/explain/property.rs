//! A whole property in words.

use super::formula::{Speaker, implication};
use super::words::Words;
use crate::ast::{
    BinaryOp, Body, Formula, FormulaKind, Pattern, PatternKind, Property, Regex, RegexKind, UnaryOp,
};
use crate::past::looks_ahead;
use crate::property::Compiled;

/// Properties with more operators are not put into words: the text would be unreadable.
const MAX_OPERATORS: usize = 400;

/// The property in words, one or more lines that each end in a new line.
pub(super) fn in_words(property: &Property, compiled: &Compiled) -> String {
    let mut uses = Uses::default();
    uses.body(&property.body);
    if uses.operators > MAX_OPERATORS {
        return format!(
            "The property has more than {MAX_OPERATORS} operators, which is too long to be put into \
             words.\n"
        );
    }
    let mut speaker = Speaker::default();
    let mut said = match &property.body {
        Body::Formula(f) if looks_ahead(f) => vec![Words::List(
            "Of the whole run, from the initial state on:".into(),
            vec![speaker.formula(f)],
        )],
        Body::Formula(f) => {
            let words = match &f.kind {
                FormulaKind::Binary(BinaryOp::Implies, a, b) => {
                    implication("whenever", speaker.formula(a), speaker.formula(b))
                }
                _ => speaker.formula(f),
            };
            vec![Words::List("At every step, the initial state included:".into(), vec![words])]
        }
        Body::Violation(regex) => {
            let words = speaker.regex(regex);
            vec![Words::List("The run must not begin with:".into(), vec![words])]
        }
        Body::Pattern(pattern) => {
            let words = speaker.pattern(pattern);
            vec![Words::List(
                "This must not happen, in any order the program allows:".into(),
                vec![words],
            )]
        }
        Body::Automaton(automaton) => {
            let rows = speaker.automaton(automaton);
            vec![Words::List("This automaton must not reach its state bad:".into(), rows)]
        }
        Body::Custom(custom) => {
            let conditions = custom.conditions.iter().map(|c| speaker.formula(c)).collect();
            let head = "A monitor written in Rust decides. It looks at these conditions:";
            vec![Words::List(head.into(), conditions)]
        }
    };
    said.extend(speaker.lets());
    let mut out = String::new();
    said.iter().for_each(|words| words.write(0, "", &mut out));
    for note in notes(&property.body, &uses, compiled) {
        super::words::wrap(note, 0, "", &mut out);
    }
    out
}

/// Notes on what the words above leave open.
fn notes(body: &Body, uses: &Uses, compiled: &Compiled) -> Vec<&'static str> {
    let mut notes = Vec::new();
    let mut note = |wanted: bool, text| {
        if wanted {
            notes.push(text);
        }
    };
    let is_formula = matches!(body, Body::Formula(_));
    let states = compiled.alphabet.has_state_atoms();
    note(
        compiled.reads_initial,
        "The first step is the initial state, in which no event happens; each further step is an \
         event and the state after it.",
    );
    note(
        !compiled.reads_initial,
        "Steps are the events that the property names; the initial state is not a step.",
    );
    note(
        uses.changes,
        "Nothing becomes or stops being true at the first step: what holds there has not changed.",
    );
    note(uses.looks_ahead, "It is violated as soon as nothing that may follow can make it true.");
    note(
        matches!(body, Body::Automaton(_)),
        "A step that fits no entry stays where it is; one that fits several goes to all of them.",
    );
    note(states && is_formula, "A comparison with a value that is not known yet is false.");
    notes
}

/// The kinds of operators that a property uses, and their number. Lets count once per use, but only
/// until the limit is exceeded.
#[derive(Default)]
struct Uses {
    operators: usize,
    changes: bool,
    looks_ahead: bool,
}

impl Uses {
    fn body(&mut self, body: &Body) {
        match body {
            Body::Formula(f) => {
                self.looks_ahead = looks_ahead(f);
                self.formula(f);
            }
            Body::Violation(r) => self.regex(r),
            Body::Pattern(p) => self.pattern(p),
            Body::Automaton(automaton) => {
                for state in &automaton.states {
                    self.operators += 1;
                    state.edges.iter().for_each(|e| self.formula(&e.guard));
                }
            }
            Body::Custom(custom) => custom.conditions.iter().for_each(|c| self.formula(c)),
        }
    }

    fn formula(&mut self, formula: &Formula) {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return;
        }
        match &formula.kind {
            FormulaKind::Const(_) | FormulaKind::Atom(_) => {}
            FormulaKind::Let(_, f) => self.formula(f),
            FormulaKind::Unary(op, f) => {
                self.changes |= matches!(op, UnaryOp::Start | UnaryOp::End);
                self.formula(f);
            }
            FormulaKind::Binary(_, a, b) => {
                self.formula(a);
                self.formula(b);
            }
        }
    }

    fn regex(&mut self, regex: &Regex) {
        self.operators += 1;
        match &regex.kind {
            RegexKind::Empty | RegexKind::Any | RegexKind::Event(_) => {}
            RegexKind::Step(formula) => self.formula(formula),
            RegexKind::Concat(parts) | RegexKind::Union(parts) | RegexKind::Intersection(parts) => {
                parts.iter().for_each(|p| self.regex(p))
            }
            RegexKind::Complement(inner)
            | RegexKind::Star(inner)
            | RegexKind::Plus(inner)
            | RegexKind::Optional(inner) => self.regex(inner),
        }
    }

    fn pattern(&mut self, pattern: &Pattern) {
        self.operators += 1;
        match &pattern.kind {
            PatternKind::Empty => {}
            PatternKind::Position(events) => self.operators += events.len(),
            PatternKind::Then(parts)
            | PatternKind::Union(parts)
            | PatternKind::Intersection(parts) => parts.iter().for_each(|p| self.pattern(p)),
            PatternKind::Star(inner) => self.pattern(inner),
        }
    }
}
