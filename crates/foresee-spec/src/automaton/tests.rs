use std::collections::BTreeSet;

use super::*;
use crate::ast::{AutomatonState, Edge};
use crate::monitor::StateId;
use crate::property::Compiled;
use crate::testing::*;

fn random(rng: &mut fastrand::Rng) -> Automaton {
    let names = ["s0", "s1", "s2", "s3"];
    let states = rng.usize(1..=4);
    let target = |rng: &mut fastrand::Rng| {
        ident(if rng.u8(..6) == 0 { "bad" } else { names[rng.usize(..states)] })
    };
    let rows = (0..states).map(|i| {
        let edge = |rng: &mut fastrand::Rng| {
            let size = rng.usize(..2);
            Edge { guard: random_formula(rng, 2, size, (&[], &[])), target: target(rng) }
        };
        let edges = (0..rng.usize(..4)).map(|_| edge(rng)).collect();
        AutomatonState { name: ident(names[i]), edges }
    });
    let states: Vec<_> = rows.collect();
    let initial = (0..rng.usize(1..3)).map(|_| ident(&rng.choice(&states).unwrap().name.name));
    Automaton { initial: initial.collect(), states }
}

#[test]
fn agrees_with_following_all_paths() {
    let mut rng = fastrand::Rng::with_seed(51);
    let mut violated = 0;
    for _ in 0..20_000 {
        let automaton = random(&mut rng);
        let mut monitor = compile(&Body::Automaton(automaton.clone()), 2).monitor;
        let word = random_word(&mut rng, 2, 8);
        let mut at: BTreeSet<&str> = automaton.initial.iter().map(|i| i.name.as_str()).collect();
        let mut bad = false;
        for letter in &word {
            let mut next = BTreeSet::new();
            for state in at {
                let row = automaton.states.iter().find(|s| s.name.name == state);
                let edges = row.map_or(&[][..], |s| &s.edges);
                let taken: Vec<_> =
                    edges.iter().filter(|e| holds_at(&e.guard, &[*letter], 0)).collect();
                if taken.is_empty() {
                    next.insert(state);
                }
                next.extend(taken.iter().map(|e| e.target.name.as_str()));
            }
            at = next;
            bad |= at.contains("bad");
        }
        assert_eq!(after(&mut monitor, &word) == StateId::BAD, bad, "{automaton:?} on {word:?}");
        violated += u32::from(bad);
    }
    assert!((4_000..16_000).contains(&violated), "{violated}");
}

#[test]
fn minimal_automata_have_the_same_bad_words_and_no_equal_states() {
    let mut rng = fastrand::Rng::with_seed(52);
    for _ in 0..3_000 {
        let mut monitor = compile(&Body::Automaton(random(&mut rng)), 2).monitor;
        let letters: Vec<Letter> = (0..4).map(Letter).collect();
        let explored = monitor.explore(&letters, 1_000).unwrap();
        let minimal = explored.minimise();
        for _ in 0..10 {
            let word = random_word(&mut rng, 2, 8);
            let end = word.iter().fold(0, |s, &l| minimal.states[s].row[l as usize] as usize);
            let bad = minimal.states[end].verdict == Verdict::Bad;
            assert_eq!(after(&mut monitor, &word) == StateId::BAD, bad);
        }
        // Some word distinguishes any two states: search the pairs backwards.
        let n = minimal.states.len();
        let bad = |i: usize| minimal.states[i].verdict == Verdict::Bad;
        let mut apart = vec![vec![false; n]; n];
        loop {
            let mut changed = false;
            for i in 0..n {
                for j in 0..n {
                    let rows = minimal.states[i].row.iter().zip(&minimal.states[j].row);
                    let mut rows = rows.map(|(a, b)| apart[*a as usize][*b as usize]);
                    if !apart[i][j] && (bad(i) != bad(j) || rows.any(|a| a)) {
                        apart[i][j] = true;
                        changed = true;
                    }
                }
            }
            if !changed {
                break;
            }
        }
        assert!((0..n).all(|i| (0..i).all(|j| apart[i][j])), "not minimal");
    }
}

#[test]
fn unknown_states_are_errors() {
    let mut automaton = random(&mut fastrand::Rng::with_seed(1));
    automaton.initial.push(ident("nowhere"));
    let error = Automata.compile(&Body::Automaton(automaton), &mut Alphabet::default());
    assert_eq!(error.unwrap_err().code, "unknown-state");
}

/// Runs words of event names on an automaton; `true` where it is violated.
fn run(text: &str, words: &[&str]) -> Vec<bool> {
    let spec = spec(text);
    let run = |word: &&str| {
        let events: Vec<String> = word.split(' ').map(|e| format!("T event {e}")).collect();
        !observe(&spec, &trace(&events.join(";"))).violations().is_empty()
    };
    words.iter().map(run).collect()
}

#[test]
fn response_between_q_and_r() {
    // P1 of the FACTS report: s responds to p between q and r.
    let text = "automaton p1 { initial 0;
        0: event(q) -> 1;
        1: event(p) -> 2, event(r) -> 0;
        2: event(s) -> 1, event(r) -> bad; }"
        .replace(" 0", " zero")
        .replace(" 1", " one")
        .replace(" 2", " two");
    let verdicts =
        run(&text, &["q p s r", "q p r", "p r", "q s p p s r q r", "q r p r", "q p q r s"]);
    assert_eq!(verdicts, [false, true, false, false, false, true]);
    let mut compiled = Compiled::new(&property(&text)).unwrap();
    assert_eq!(compiled.explore(100).unwrap().minimise().states.len(), 4);
}

#[test]
fn no_access_while_writing() {
    let text = "automaton p2 { initial idle;
        idle: event(bw) -> writing;
        writing: event(aw) -> idle, event(bw) -> bad, event(br) -> bad, event(ar) -> bad; }";
    let verdicts = run(text, &["br ar bw aw br ar", "bw br", "br bw ar", "bw aw bw bw", "aw ar"]);
    assert_eq!(verdicts, [false, true, true, true, false]);
    let mut compiled = Compiled::new(&property(text)).unwrap();
    let minimal = compiled.explore(100).unwrap().minimise();
    assert_eq!(minimal.states.len(), 3);
    // Which letters commute: only the two ends of reading.
    let commute = |a: usize, b: usize| {
        let step = |s: usize, l: usize| minimal.states[s].row[l] as usize;
        (0..3).all(|s| step(step(s, a), b) == step(step(s, b), a))
    };
    let atoms = compiled.alphabet.atoms();
    let name = |l: Letter| format!("{:?}", atoms[l.0.trailing_zeros() as usize]);
    let mut pairs = Vec::new();
    for (i, a) in minimal.letters.iter().enumerate() {
        for (j, b) in minimal.letters.iter().enumerate().take(i) {
            if commute(i, j) {
                pairs.push((name(*a), name(*b)));
            }
        }
    }
    assert_eq!(pairs.len(), 1);
    assert!(pairs[0].0.contains("\"ar\"") && pairs[0].1.contains("\"br\""));
}
