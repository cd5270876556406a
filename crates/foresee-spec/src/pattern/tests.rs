use super::*;
use crate::ast::{EventAtom, EventKind, Span, Term};
use crate::monitor::StateId;
use crate::testing::*;

fn pattern(kind: PatternKind) -> Pattern {
    Pattern { kind, span: Span::default() }
}

/// Events a, b, c, each perhaps of thread t1 or t2 only, so that one event can match two atoms.
fn random_event(rng: &mut fastrand::Rng) -> EventAtom {
    let thread = match rng.u8(..4) {
        0 => Term::Name(ident("t1")),
        1 => Term::Name(ident("t2")),
        _ => Term::Any,
    };
    let target = Term::Name(ident(["a", "b", "c"][rng.usize(..3)]));
    let span = Span::default();
    EventAtom { kind: EventKind::Event, target, args: vec![], thread, span }
}

fn random(rng: &mut fastrand::Rng, size: usize) -> Pattern {
    if size == 0 {
        let events = (0..1 + rng.usize(..5) / 4).map(|_| random_event(rng)).collect();
        return pattern(PatternKind::Position(events));
    }
    let left = rng.usize(..size);
    let mut both = || vec![random(rng, left), random(rng, size - 1 - left)];
    let kind = match left % 4 {
        0 => PatternKind::Intersection(both()),
        1 => PatternKind::Union(both()),
        _ => PatternKind::Then(both()),
    };
    match rng.u8(..10) {
        0 => pattern(PatternKind::Star(Box::new(pattern(kind)))),
        1 => pattern(PatternKind::Then(vec![pattern(PatternKind::Empty), pattern(kind)])),
        _ => pattern(kind),
    }
}

/// Whether the word contains the pattern, by trying all ways to split it.
fn contained(p: &Pattern, word: &[u64], atoms: &Alphabet) -> bool {
    let bit =
        |e: &EventAtom| atoms.atoms().iter().position(|a| *a == Atom::Event(e.clone())).unwrap();
    match &p.kind {
        PatternKind::Empty | PatternKind::Star(_) => true,
        PatternKind::Position(events) => {
            word.iter().any(|l| events.iter().any(|e| l >> bit(e) & 1 == 1))
        }
        PatternKind::Union(parts) => parts.iter().any(|p| contained(p, word, atoms)),
        PatternKind::Intersection(parts) => parts.iter().all(|p| contained(p, word, atoms)),
        PatternKind::Then(parts) => match parts.split_first() {
            None => true,
            Some((first, rest)) => {
                let rest = pattern(PatternKind::Then(rest.to_vec()));
                (0..=word.len()).any(|i| {
                    contained(first, &word[..i], atoms) && contained(&rest, &word[i..], atoms)
                })
            }
        },
    }
}

#[test]
fn agrees_with_trying_all_cuts() {
    let mut rng = fastrand::Rng::with_seed(41);
    let (mut violated, mut refused, mut too_large) = (0, 0, 0);
    for _ in 0..20_000 {
        let size = rng.usize(..6);
        let p = random(&mut rng, size);
        let mut atoms = Alphabet::default();
        let mut monitor = match Patterns.compile(&Body::Pattern(p.clone()), &mut atoms) {
            Ok(draft) => draft.monitor,
            Err(error) if error.code == "too-large" => {
                too_large += 1;
                continue;
            }
            Err(error) => {
                assert_eq!(error.code, "matches-every-run");
                assert!(contained(&p, &[], &atoms), "{p:?}");
                refused += 1;
                continue;
            }
        };
        let letters = atoms.letters(1_000).unwrap();
        for _ in 0..5 {
            let word: Vec<u64> =
                (0..rng.usize(..8)).map(|_| rng.choice(&letters).unwrap().0).collect();
            let expected = contained(&p, &word, &atoms);
            assert_eq!(after(&mut monitor, &word) == StateId::BAD, expected, "{p:?} on {word:?}");
            violated += u32::from(expected);
        }
    }
    assert!((10_000..90_000).contains(&violated) && (100..10_000).contains(&refused));
    assert!(too_large < 200, "{too_large} of 20,000 patterns were not compared");
}

#[test]
fn intersections_become_common_supersequences() {
    let texts = |text: &str| {
        let mut atoms = Alphabet::default();
        let draft = Patterns.compile(&property(text).body, &mut atoms).unwrap();
        let name = |bits: u64| {
            let i = bits.trailing_zeros() as usize;
            let Atom::Event(e) = &atoms.atoms()[i] else { unreachable!() };
            let Term::Name(n) = &e.target else { unreachable!() };
            n.name.clone()
        };
        let sequence = |s: &Vec<Position>| s.iter().map(|p| name(p.all_of[0])).collect::<String>();
        let mut all: Vec<String> = draft.sequences.unwrap().iter().map(sequence).collect();
        all.sort();
        all
    };
    let e = |n: &str| format!("event({n})");
    let (a, b, c) = (e("a"), e("b"), e("c"));
    assert_eq!(texts(&format!("pattern p: ({a} .. {b}) & ({b} .. {a})")), ["aba", "bab"]);
    assert_eq!(texts(&format!("pattern p: ({a} .. {b}) & {c}")), ["abc", "acb", "cab"]);
    assert_eq!(texts(&format!("pattern p: {a} .. {b}* .. {c}")), ["ac"]);
    assert_eq!(texts(&format!("pattern p: {a} & ({a} .. {b})")), ["ab"]);
}

#[test]
fn what_matches_every_run_is_refused() {
    for text in
        ["pattern p: event(a)*", "pattern p: event(a) | ()", "pattern p: event(a)* .. event(b)*"]
    {
        let result = Patterns.compile(&property(text).body, &mut Alphabet::default());
        assert_eq!(result.unwrap_err().code, "matches-every-run", "{text}");
    }
}

#[test]
fn explosive_intersections_are_refused() {
    let side = |x: &str| (0..12).map(|i| format!("event({x}{i})")).collect::<Vec<_>>().join(" .. ");
    let text = format!("pattern p: ({}) & ({}) & ({})", side("a"), side("b"), side("c"));
    let result = Patterns.compile(&property(&text).body, &mut Alphabet::default());
    assert_eq!(result.unwrap_err().code, "too-large");
}
