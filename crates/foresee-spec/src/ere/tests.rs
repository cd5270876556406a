use std::collections::{BTreeSet, HashMap};

use super::*;
use crate::ast::Span;
use crate::monitor::StateId;
use crate::testing::*;

fn regex(kind: RegexKind) -> Regex {
    Regex { kind, span: Span::default() }
}

fn random(rng: &mut fastrand::Rng, size: usize) -> Regex {
    if size == 0 {
        return regex(match rng.u8(..8) {
            0 => RegexKind::Empty,
            1 => RegexKind::Any,
            _ => RegexKind::Step(random_formula(rng, 2, 1, (&[], &[]))),
        });
    }
    let split = |rng: &mut fastrand::Rng| {
        let left = rng.usize(..size);
        vec![random(rng, left), random(rng, size - 1 - left)]
    };
    regex(match rng.u8(..10) {
        0..3 => RegexKind::Concat(split(rng)),
        3..5 => RegexKind::Union(split(rng)),
        5 => RegexKind::Intersection(split(rng)),
        6 => RegexKind::Complement(Box::new(random(rng, size - 1))),
        7 => RegexKind::Star(Box::new(random(rng, size - 1))),
        8 => RegexKind::Plus(Box::new(random(rng, size - 1))),
        _ => RegexKind::Optional(Box::new(random(rng, size - 1))),
    })
}

/// Whether the whole word matches, by trying all ways to split it.
fn matches(r: &Regex, word: &[u64]) -> bool {
    match &r.kind {
        RegexKind::Empty => word.is_empty(),
        RegexKind::Any => word.len() == 1,
        RegexKind::Step(f) => word.len() == 1 && holds_at(f, word, 0),
        RegexKind::Event(_) => panic!("no events in these tests"),
        RegexKind::Concat(parts) => match parts.split_first() {
            None => word.is_empty(),
            Some((first, rest)) => {
                let rest = regex(RegexKind::Concat(rest.to_vec()));
                (0..=word.len()).any(|i| matches(first, &word[..i]) && matches(&rest, &word[i..]))
            }
        },
        RegexKind::Union(parts) => parts.iter().any(|p| matches(p, word)),
        RegexKind::Intersection(parts) => parts.iter().all(|p| matches(p, word)),
        RegexKind::Complement(a) => !matches(a, word),
        RegexKind::Star(a) => {
            word.is_empty()
                || (1..=word.len()).any(|i| matches(a, &word[..i]) && matches(r, &word[i..]))
        }
        RegexKind::Plus(a) => {
            let star = regex(RegexKind::Star(a.clone()));
            (0..=word.len()).any(|i| matches(a, &word[..i]) && matches(&star, &word[i..]))
        }
        RegexKind::Optional(a) => word.is_empty() || matches(a, word),
    }
}

#[test]
fn agrees_with_a_backtracking_matcher() {
    let mut rng = fastrand::Rng::with_seed(31);
    let mut violated = 0;
    for _ in 0..20_000 {
        let size = rng.usize(1..8);
        let r = random(&mut rng, size);
        let mut monitor = compile(&Body::Violation(r.clone()), 2).monitor;
        let word = random_word(&mut rng, 2, 6);
        let expected = (1..=word.len()).any(|n| matches(&r, &word[..n]));
        assert_eq!(after(&mut monitor, &word) == StateId::BAD, expected, "{r:?} on {word:?}");
        violated += u32::from(expected);
    }
    assert!((5_000..15_000).contains(&violated), "{violated}");
}

/// A complete deterministic automaton over the four letters of two atoms; state 0 starts.
struct Dfa {
    rows: Vec<[usize; 4]>,
    accepting: Vec<bool>,
}

/// An independent way to compile: automata with empty steps, determinised at each operator.
fn determinise<S: Clone + Ord>(
    start: BTreeSet<S>,
    step: impl Fn(&S, usize) -> Vec<S>,
    accepts: impl Fn(&BTreeSet<S>) -> bool,
) -> Dfa {
    let mut sets = vec![start];
    let (mut rows, mut accepting) = (Vec::new(), Vec::new());
    while rows.len() < sets.len() {
        let set = sets[rows.len()].clone();
        accepting.push(accepts(&set));
        rows.push([0, 1, 2, 3].map(|letter| {
            let next: BTreeSet<S> = set.iter().flat_map(|s| step(s, letter)).collect();
            sets.iter().position(|s| *s == next).unwrap_or_else(|| {
                sets.push(next);
                sets.len() - 1
            })
        }));
    }
    Dfa { rows, accepting }.minimal()
}

impl Dfa {
    /// Merges equivalent states; without this, nested stars explode.
    fn minimal(&self) -> Dfa {
        let mut class: Vec<usize> = self.accepting.iter().map(|&a| a.into()).collect();
        loop {
            let mut keys: Vec<(usize, [usize; 4])> = Vec::new();
            let next: Vec<usize> = (0..self.rows.len())
                .map(|i| {
                    let key = (class[i], self.rows[i].map(|to| class[to]));
                    keys.iter().position(|k| *k == key).unwrap_or_else(|| {
                        keys.push(key);
                        keys.len() - 1
                    })
                })
                .collect();
            if next == class {
                // Classes are numbered by their first states, so the start stays 0.
                let first = |c| class.iter().position(|&d| d == c).unwrap();
                let firsts: Vec<usize> = (0..keys.len()).map(first).collect();
                return Dfa {
                    rows: firsts.iter().map(|&i| self.rows[i].map(|to| class[to])).collect(),
                    accepting: firsts.iter().map(|&i| self.accepting[i]).collect(),
                };
            }
            class = next;
        }
    }
}

fn dfa(r: &Regex) -> Dfa {
    let one_step = |holds: &dyn Fn(u64) -> bool| Dfa {
        rows: vec![[0, 1, 2, 3].map(|l| if holds(l) { 1 } else { 2 }), [2; 4], [2; 4]],
        accepting: vec![false, true, false],
    };
    let product = |parts: &[Regex], all: bool| {
        let parts: Vec<Dfa> = parts.iter().map(dfa).collect();
        determinise(
            BTreeSet::from([vec![0; parts.len()]]),
            |at, l| vec![at.iter().zip(&parts).map(|(&s, d)| d.rows[s][l]).collect()],
            |set| {
                let mut each = set.iter().next().unwrap().iter().zip(&parts);
                let accepts = |(&s, d): (&usize, &Dfa)| d.accepting[s];
                if all { each.all(accepts) } else { each.any(accepts) }
            },
        )
    };
    match &r.kind {
        RegexKind::Empty => Dfa { rows: vec![[1; 4], [1; 4]], accepting: vec![true, false] },
        RegexKind::Any => one_step(&|_| true),
        RegexKind::Step(f) => one_step(&|l| holds_at(f, &[l], 0)),
        RegexKind::Event(_) => panic!("no events in these tests"),
        RegexKind::Concat(parts) => {
            let parts: Vec<Dfa> = parts.iter().map(dfa).collect();
            let close = |(part, s): (usize, usize)| {
                let mut all = vec![(part, s)];
                while let &(p, s) = all.last().unwrap()
                    && parts[p].accepting[s]
                    && p + 1 < parts.len()
                {
                    all.push((p + 1, 0));
                }
                all
            };
            let last = parts.len() - 1;
            determinise(
                close((0, 0)).into_iter().collect(),
                |&(p, s), l| close((p, parts[p].rows[s][l])),
                |set| set.iter().any(|&(p, s)| p == last && parts[p].accepting[s]),
            )
        }
        RegexKind::Union(parts) => product(parts, false),
        RegexKind::Intersection(parts) => product(parts, true),
        RegexKind::Complement(a) => {
            let a = dfa(a);
            Dfa { accepting: a.accepting.iter().map(|b| !b).collect(), rows: a.rows }
        }
        RegexKind::Star(a) => {
            let a = dfa(a);
            // `None` is an accepting start.
            determinise(
                BTreeSet::from([None, Some(0)]),
                |s, l| match s {
                    None => vec![],
                    Some(s) => {
                        let next = a.rows[*s][l];
                        let again = a.accepting[next].then_some([None, Some(0)]);
                        again.into_iter().flatten().chain([Some(next)]).collect()
                    }
                },
                |set| set.contains(&None),
            )
        }
        RegexKind::Plus(a) => {
            let star = regex(RegexKind::Star(a.clone()));
            dfa(&regex(RegexKind::Concat(vec![(**a).clone(), star])))
        }
        RegexKind::Optional(a) => {
            dfa(&regex(RegexKind::Union(vec![regex(RegexKind::Empty), (**a).clone()])))
        }
    }
}

#[test]
fn derivatives_agree_with_determinised_automata_on_all_words() {
    let mut rng = fastrand::Rng::with_seed(32);
    for _ in 0..10_000 {
        let size = rng.usize(1..9);
        let r = random(&mut rng, size);
        let mut monitor = compile(&Body::Violation(r.clone()), 2).monitor;
        let dfa = dfa(&r);
        // All reachable pairs of states, so all words.
        let mut seen = HashMap::from([((0, monitor.start()), ())]);
        let mut todo = vec![(0, monitor.start())];
        while let Some((d, m)) = todo.pop() {
            for letter in 0..4u64 {
                let (d, m) =
                    (dfa.rows[d][letter as usize], monitor.step(m, Letter(letter)).unwrap());
                assert_eq!(m == StateId::BAD, dfa.accepting[d], "{r:?}");
                if m != StateId::BAD && seen.insert((d, m), ()).is_none() {
                    todo.push((d, m));
                }
            }
        }
    }
}

#[test]
fn the_empty_prefix_never_counts() {
    let mut monitor = compile(&Body::Violation(regex(RegexKind::Empty)), 1).monitor;
    assert_ne!(monitor.start(), StateId::BAD);
    let next = monitor.step(monitor.start(), Letter(0)).unwrap();
    assert!(monitor.good(next));
    let anything = regex(RegexKind::Star(Box::new(regex(RegexKind::Any))));
    let mut monitor = compile(&Body::Violation(anything), 1).monitor;
    assert_ne!(monitor.start(), StateId::BAD);
    assert_eq!(after(&mut monitor, &[0]), StateId::BAD);
}

#[test]
fn explosive_expressions_end_in_an_error() {
    // The 25th letter from the end: 2^24 states.
    let p = regex(RegexKind::Step(atom(0)));
    let any = || regex(RegexKind::Any);
    let mut parts = vec![regex(RegexKind::Star(Box::new(any()))), p.clone()];
    parts.extend((0..24).map(|_| any()));
    // Prevented from matching, so that the states do not end in the bad one.
    parts.push(regex(RegexKind::Step(atom(1))));
    let mut monitor = compile(&Body::Violation(regex(RegexKind::Concat(parts))), 2).monitor;
    let mut rng = fastrand::Rng::with_seed(33);
    let mut state = monitor.start();
    let error = (0..1_000_000).find_map(|_| match monitor.step(state, Letter(rng.u64(..2))) {
        Ok(next) => {
            state = next;
            None
        }
        Err(error) => Some(error),
    });
    assert!(error.unwrap().to_string().contains("more than"));
}

#[test]
fn long_expressions_are_followed_or_refused() {
    let optional = || regex(RegexKind::Optional(Box::new(regex(RegexKind::Step(atom(0))))));
    let many =
        |n: usize| Body::Violation(regex(RegexKind::Concat((0..n).map(|_| optional()).collect())));
    let error = Regular.compile(&many(100_000), &mut Alphabet::default()).unwrap_err();
    assert_eq!(error.code, "too-large");
    let mut monitor = compile(&many(1_000), 1).monitor;
    assert_eq!(after(&mut monitor, &[1]), StateId::BAD);
}
