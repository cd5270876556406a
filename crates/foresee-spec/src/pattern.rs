//! Patterns: events in this order, with anything in between.
//!
//! A pattern is converted to a normal form: sequences of positions, each of which is a violation
//! (Ang and Mathur 2024 call these generalised patterns). An intersection becomes all
//! interleavings of its sides, in which one event may serve both. Every run contains the empty
//! word, so `P*` only adds "or nothing".

use crate::ast::{Atom, Body, Pattern, PatternKind};
use crate::diagnostic::Diagnostic;
use crate::letter::{Alphabet, Letter, may_coincide};
use crate::logic::{Draft, Logic};
use crate::monitor::{Machine, Monitor, TooManyStates, Verdict};

/// `pattern NAME: a .. b`
pub struct Patterns;

impl Logic for Patterns {
    fn name(&self) -> &'static str {
        "pattern"
    }

    fn describe(&self) -> &'static str {
        "events that must not occur in this order, with anything in between"
    }

    fn accepts(&self, body: &Body) -> bool {
        matches!(body, Body::Pattern(_))
    }

    fn compile(&self, body: &Body, atoms: &mut Alphabet) -> Result<Draft, Diagnostic> {
        let Body::Pattern(pattern) = body else { unreachable!("only patterns are accepted") };
        let sequences = normal_form(pattern, atoms)?;
        let machine = Progress { sequences: sequences.clone() };
        let monitor = Monitor::new(machine, atoms.atoms().len(), Monitor::DEFAULT_LIMIT);
        Ok(Draft { monitor, sequences: Some(sequences) })
    }
}

/// The condition on one event of a sequence.
///
/// Most positions are one set of atoms, any of which the event must match. An event that serves
/// both sides of an intersection must match one atom of each of several sets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    /// Sets of atoms, as bits; the event must match at least one atom of every set.
    pub all_of: Vec<u64>,
}

impl Position {
    /// Whether a step matches.
    #[inline]
    pub fn matches(&self, letter: Letter) -> bool {
        self.all_of.iter().all(|any| letter.0 & any != 0)
    }

    /// Whether every event that matches this also matches `other`.
    fn implies(&self, other: &Position) -> bool {
        other.all_of.iter().all(|b| self.all_of.iter().any(|a| a & !b == 0))
    }

    /// The position of an event that serves both, or `None` if no event can.
    fn both(&self, other: &Position, atoms: &Alphabet) -> Option<Position> {
        if self.implies(other) {
            return Some(self.clone());
        }
        if other.implies(self) {
            return Some(other.clone());
        }
        let possible = |&a: &u64| other.all_of.iter().all(|&b| some_event_is_both(a, b, atoms));
        if !self.all_of.iter().all(possible) {
            return None;
        }
        let mut all_of = [&self.all_of[..], &other.all_of].concat();
        all_of.sort_unstable();
        all_of.dedup();
        Some(Position { all_of })
    }
}

fn some_event_is_both(a: u64, b: u64, atoms: &Alphabet) -> bool {
    let of = |bits: u64| atoms.atoms().iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1);
    of(a).any(|(_, a)| {
        of(b).any(|(_, b)| match (a, b) {
            (Atom::Event(a), Atom::Event(b)) => may_coincide(a, b),
            _ => true,
        })
    })
}

/// The maximum number of sequences of the normal form, and of positions of a sequence.
const MAX_SEQUENCES: usize = 1_000;
const MAX_LENGTH: usize = 250;

/// The sequences of positions of a pattern, which matches a run that contains the events of one of
/// them. The atoms get numbers in `atoms`. A pattern that matches every run is rejected.
pub fn normal_form(
    pattern: &Pattern,
    atoms: &mut Alphabet,
) -> Result<Vec<Vec<Position>>, Diagnostic> {
    let sequences = sequences(pattern, atoms)?;
    if sequences.iter().any(Vec::is_empty) {
        return Err(Diagnostic::error(
            "matches-every-run",
            "the pattern matches every run, because it matches the empty sequence",
            pattern.span,
            "requires no event",
        )
        .help("leave out the `*` or `()`, or put an event before or after it"));
    }
    Ok(sequences)
}

/// The normal form, with empty sequences.
fn sequences(pattern: &Pattern, atoms: &mut Alphabet) -> Result<Vec<Vec<Position>>, Diagnostic> {
    let found = match &pattern.kind {
        PatternKind::Empty => vec![Vec::new()],
        PatternKind::Position(events) => {
            let mut bits = 0u64;
            for event in events {
                let atom = Atom::Event(event.clone());
                bits |= 1
                    << atoms.number(&atom).map_err(|e| {
                        Diagnostic::error(
                            "too-many-atoms",
                            e.to_string(),
                            event.span,
                            "one more here",
                        )
                    })?;
            }
            vec![vec![Position { all_of: vec![bits] }]]
        }
        PatternKind::Star(inner) => {
            let mut all = sequences(inner, atoms)?;
            all.push(Vec::new());
            all
        }
        PatternKind::Union(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(sequences(part, atoms)?);
            }
            all
        }
        PatternKind::Then(parts) => fold(parts, pattern, atoms, |a, b, _, out| {
            out.push([a, b].concat());
        })?,
        PatternKind::Intersection(parts) => fold(parts, pattern, atoms, |a, b, atoms, out| {
            merge(a, b, &mut Vec::new(), atoms, out);
        })?,
    };
    check_size(&found, pattern)?;
    Ok(without_redundant(found))
}

/// Combines the normal forms of the parts pair by pair.
fn fold(
    parts: &[Pattern],
    whole: &Pattern,
    atoms: &mut Alphabet,
    combine: impl Fn(&[Position], &[Position], &Alphabet, &mut Vec<Vec<Position>>),
) -> Result<Vec<Vec<Position>>, Diagnostic> {
    let mut all = vec![Vec::new()];
    for part in parts {
        let with = sequences(part, atoms)?;
        let mut next = Vec::new();
        for a in &all {
            for b in &with {
                combine(a, b, atoms, &mut next);
                check_size(&next, whole)?;
            }
        }
        all = without_redundant(next);
    }
    Ok(all)
}

fn check_size(sequences: &[Vec<Position>], pattern: &Pattern) -> Result<(), Diagnostic> {
    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    if sequences.len() <= MAX_SEQUENCES && longest <= MAX_LENGTH {
        return Ok(());
    }
    let message = format!(
        "the pattern expands to too many event sequences (limit: {MAX_SEQUENCES} of {MAX_LENGTH} events)"
    );
    let error = Diagnostic::error("too-large", message, pattern.span, "too large");
    Err(error.help("intersections (`&`) of long patterns multiply; split the pattern into several"))
}

/// All ways in which a run can contain both sequences, as sequences. Stops once there are too many;
/// the caller checks.
fn merge(
    a: &[Position],
    b: &[Position],
    before: &mut Vec<Position>,
    atoms: &Alphabet,
    out: &mut Vec<Vec<Position>>,
) {
    if out.len() > MAX_SEQUENCES {
        return;
    }
    let (Some((first_a, rest_a)), Some((first_b, rest_b))) = (a.split_first(), b.split_first())
    else {
        out.push([&before[..], a, b].concat());
        return;
    };
    if let Some(both) = first_a.both(first_b, atoms) {
        before.push(both);
        merge(rest_a, rest_b, before, atoms, out);
        before.pop();
    }
    // Two equal positions can always be merged.
    if first_a == first_b {
        return;
    }
    before.push(first_a.clone());
    merge(rest_a, b, before, atoms, out);
    before.pop();
    before.push(first_b.clone());
    merge(a, rest_b, before, atoms, out);
    before.pop();
}

/// Removes sequences whose runs all contain another sequence of the list.
fn without_redundant(mut sequences: Vec<Vec<Position>>) -> Vec<Vec<Position>> {
    sequences.sort_by_key(Vec::len);
    let mut kept: Vec<Vec<Position>> = Vec::new();
    for sequence in sequences {
        if !kept.iter().any(|k| contains(&sequence, k)) {
            kept.push(sequence);
        }
    }
    kept
}

/// Whether every run that contains `long` contains `short`.
fn contains(long: &[Position], short: &[Position]) -> bool {
    let mut long = long.iter();
    short.iter().all(|s| long.any(|l| l.implies(s)))
}

struct Progress {
    sequences: Vec<Vec<Position>>,
}

impl Machine for Progress {
    /// The number of matched positions of each sequence. The earliest match of a position is never
    /// worse than a later one, so one number suffices.
    type State = Box<[u8]>;

    fn start(&mut self) -> Box<[u8]> {
        vec![0; self.sequences.len()].into()
    }

    fn step(&mut self, state: &Box<[u8]>, letter: Letter) -> Result<Box<[u8]>, TooManyStates> {
        let advance = |(sequence, &at): (&Vec<Position>, &u8)| {
            let next = sequence.get(usize::from(at));
            at + u8::from(next.is_some_and(|position| position.matches(letter)))
        };
        Ok(self.sequences.iter().zip(state).map(advance).collect())
    }

    fn verdict(&self, state: &Box<[u8]>) -> Verdict {
        let done = |(sequence, &at): (&Vec<Position>, &u8)| usize::from(at) == sequence.len();
        if self.sequences.iter().zip(state).any(done) { Verdict::Bad } else { Verdict::Open }
    }

    fn describe(&self, state: &Box<[u8]>) -> String {
        let part = |(sequence, at): (&Vec<Position>, &u8)| format!("{at} of {}", sequence.len());
        self.sequences.iter().zip(state).map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests;
