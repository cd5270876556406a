use super::*;
use crate::ast::{Body, Ident, Property, Span};
use crate::letter::Letter;
use crate::monitor::{Monitor, StateId};
use crate::testing::{PAST_BINARY, PAST_UNARY, after};
use crate::testing::{property, random_formula};

fn dependence(text: &str) -> (Compiled, Dependence) {
    let mut compiled = Compiled::new(&property(text)).unwrap();
    let dependence = Dependence::new(&mut compiled).unwrap();
    (compiled, dependence)
}

fn event(bit: usize) -> Action {
    Action { events: 1 << bit, write: None }
}

/// The independent pairs of different event atoms, by their names in the order of the atoms.
fn independent(text: &str) -> Vec<String> {
    let (compiled, dependence) = dependence(text);
    let atoms = compiled.alphabet.atoms();
    let mut pairs = Vec::new();
    for b in 0..atoms.len() {
        for a in 0..b {
            if !dependence.depends(event(a), event(b)) {
                let name = |i: usize| crate::print_atom(&atoms[i]);
                pairs.push(format!("{} {}", name(a), name(b)));
            }
        }
    }
    pairs
}

#[test]
fn the_papers_properties_have_the_papers_relations() {
    // s responds to p between q and r.
    let response = "automaton p1 { initial out; out: event(q) -> inside; \
        inside: event(p) -> asked, event(r) -> out; asked: event(s) -> inside, event(r) -> bad; }";
    assert_eq!(independent(response), ["event(q) event(s)"]);
    // No read or write while another writes.
    let exclusion = "automaton p2 { initial idle; idle: event(bw) -> writing; \
        writing: event(aw) -> idle, event(bw) -> bad, event(br) -> bad, event(ar) -> bad; }";
    assert_eq!(independent(exclusion), ["event(br) event(ar)"]);
    // The same with a redundant state: the minimal automaton counts.
    let larger = "automaton p2 { initial idle; idle: event(bw) -> writing, event(br) -> reading; \
        reading: event(bw) -> writing, event(br) -> reading, event(ar) -> idle, event(aw) -> idle; \
        writing: event(aw) -> idle, event(bw) -> bad, event(br) -> bad, event(ar) -> bad; }";
    assert_eq!(independent(larger), ["event(br) event(ar)"]);
    let has_next = "automaton has_next { initial unsure; \
        unsure: event(hasNext) -> sure, event(next) -> bad; sure: event(next) -> unsure; }";
    assert_eq!(independent(has_next), [""; 0]);
    assert_eq!(independent("property precedence: event(grant) -> once event(request)"), [""; 0]);
}

#[test]
fn writes_of_what_means_the_same_are_independent() {
    let (compiled, dependence) = dependence("property p: a > 3 -> b > 3");
    let bit = |name: &str| {
        let atoms = compiled.alphabet.atoms().iter();
        let names: Vec<String> = atoms.map(crate::print_atom).collect();
        1u64 << names.iter().position(|n| n.starts_with(name)).unwrap()
    };
    let write = |slot: u16, name: &str, holding: Option<bool>| Action {
        events: 0,
        write: Some(Written {
            slot,
            mentioned: bit(name),
            holding: holding.map(|h| if h { bit(name) } else { 0 }),
        }),
    };
    let (high_a, low_a, any_a) =
        (write(0, "a", Some(true)), write(0, "a", Some(false)), write(0, "a", None));
    let (high_b, low_b, any_b) =
        (write(1, "b", Some(true)), write(1, "b", Some(false)), write(1, "b", None));
    assert!(!dependence.depends(high_a, high_a) && dependence.depends(high_a, low_a));
    assert!(dependence.depends(any_a, any_a) && dependence.depends(any_a, high_a));
    // First b high then a high is fine; the reverse is not.
    assert!(dependence.depends(high_a, high_b) && dependence.depends(high_b, high_a));
    // b low or a low cannot help each other.
    assert!(!dependence.depends(low_a, high_b) || !dependence.depends(low_b, low_a));
    assert!(dependence.depends(any_a, any_b));
}

/// Whether swapping two letters anywhere ever changes a verdict, computed from the words.
fn swap_matters(
    monitor: &mut Monitor,
    letters: &[u64],
    a: u64,
    b: u64,
    reads_initial: bool,
) -> bool {
    let words = |max: usize| -> Vec<Vec<u64>> {
        let mut all = vec![Vec::new()];
        let mut from = 0;
        for _ in 0..max {
            let until = all.len();
            for i in from..until {
                for &letter in letters {
                    let longer = [all[i].clone(), vec![letter]].concat();
                    all.push(longer);
                }
            }
            from = until;
        }
        all
    };
    let (before, behind) = (words(4), words(4));
    let mut seen = std::collections::HashSet::new();
    for prefix in before.iter().filter(|p| !reads_initial || !p.is_empty()) {
        let state = after(monitor, prefix);
        if !seen.insert(state) {
            continue;
        }
        let mut go = |word: &[u64]| {
            word.iter().fold(state, |s, &l| monitor.step(s, Letter(l)).unwrap()) == StateId::BAD
        };
        for suffix in &behind {
            let ab = [&[a, b][..], suffix].concat();
            let ba = [&[b, a][..], suffix].concat();
            if go(&ab) != go(&ba) {
                return true;
            }
        }
    }
    false
}

#[test]
fn the_relation_is_that_of_all_words_on_random_automata() {
    let mut rng = fastrand::Rng::with_seed(4);
    let (mut dependent, mut independent) = (0, 0);
    for _ in 0..1_500 {
        // Up to four states and the bad one, three events, any of which may go anywhere.
        let states = rng.usize(1..4);
        let mut rows = String::new();
        for s in 0..states {
            let mut edges = Vec::new();
            for e in 0..3 {
                let to = match rng.usize(..states + 2) {
                    to if to < states => format!("s{to}"),
                    to if to == states => "bad".to_owned(),
                    _ => continue,
                };
                edges.push(format!("event(e{e}) -> {to}"));
            }
            rows += &format!("s{s}: {}; ", edges.join(", "));
        }
        // Every event is mentioned, so all automata have the same letters.
        rows += "z: event(e0) -> z, event(e1) -> z, event(e2) -> z;";
        let text = format!("automaton a {{ initial s0; {rows} }}");
        let (mut compiled, dependence) = dependence(&text);
        let letters: Vec<u64> = dependence.automaton().letters.iter().map(|l| l.0).collect();
        for (i, &a) in letters.iter().enumerate() {
            for &b in &letters[..=i] {
                let [x, y] = [a, b].map(|events| Action { events, write: None });
                let depends = dependence.depends(x, y);
                assert_eq!(depends, dependence.depends(y, x), "{text}");
                let truth = swap_matters(&mut compiled.monitor, &letters, a, b, false);
                assert_eq!(depends, truth, "{text}: {a:b} {b:b}");
                *(if depends { &mut dependent } else { &mut independent }) += 1;
            }
        }
    }
    assert!(dependent > 1_000 && independent > 1_000, "{dependent} {independent}");
}

#[test]
fn no_swap_of_independent_writes_changes_a_verdict() {
    // Conditions on two variables, each written by steps that set it; random past-time formulas.
    let mut rng = fastrand::Rng::with_seed(9);
    let (mut dependent, mut independent) = (0, 0);
    for _ in 0..600 {
        let formula = random_formula(&mut rng, 2, 3, (PAST_UNARY, PAST_BINARY));
        let name = Ident { name: "p".into(), span: Span::default() };
        let body = Body::Formula(formula);
        let property =
            Property { name, params: Vec::new(), objects: Vec::new(), body, span: Span::default() };
        let mut compiled = Compiled::new(&property).unwrap();
        let atoms = compiled.alphabet.atoms().len();
        let dependence = Dependence::new(&mut compiled).unwrap();
        let set = |slot: usize, to: bool| Action {
            events: 0,
            write: (slot < atoms).then(|| Written {
                slot: slot as u16,
                mentioned: 1 << slot,
                holding: Some(u64::from(to) << slot),
            }),
        };
        if atoms < 2 {
            continue;
        }
        let (a, b) = (set(0, rng.bool()), set(1, rng.bool()));
        let depends = dependence.depends(a, b);
        *(if depends { &mut dependent } else { &mut independent }) += 1;
        if depends {
            continue;
        }
        for _ in 0..200 {
            let mut state = rng.u64(..4);
            let start = compiled.monitor.start();
            let mut at = compiled.monitor.step(start, Letter(state)).unwrap();
            let mut take = |at: &mut StateId, state: &mut u64, action: Action| {
                let write = action.write.unwrap();
                *state = *state & !write.mentioned | write.holding.unwrap();
                *at = compiled.monitor.step(*at, Letter(*state)).unwrap();
            };
            for _ in 0..rng.usize(..5) {
                take(&mut at, &mut state, set(rng.usize(..2), rng.bool()));
            }
            let (mut one, mut other) = ((at, state), (at, state));
            take(&mut one.0, &mut one.1, a);
            take(&mut one.0, &mut one.1, b);
            take(&mut other.0, &mut other.1, b);
            take(&mut other.0, &mut other.1, a);
            for _ in 0..rng.usize(..5) {
                let next = set(rng.usize(..2), rng.bool());
                take(&mut one.0, &mut one.1, next);
                take(&mut other.0, &mut other.1, next);
            }
            assert_eq!(one.0 == StateId::BAD, other.0 == StateId::BAD);
        }
    }
    assert!(dependent > 50 && independent > 50, "{dependent} {independent}");
}
