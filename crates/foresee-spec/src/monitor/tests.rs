use super::*;
use crate::property::Compiled;
use crate::testing::*;

#[test]
fn explored_automata_explain_a_property() {
    let text = "init w = 0, v = 0
        property p: w > 30 -> ((v > 55 && w > 26) since start(w > 26))";
    let mut compiled = Compiled::new(&property(text)).unwrap();
    let explored = compiled.explore(1_000).unwrap();
    let minimal = explored.minimise();
    assert!(explored.can_be_violated());
    assert!(minimal.states.len() < explored.states.len());
    assert_eq!(minimal.minimise().states, minimal.states);
    // Starting with the water above the mark is a violation: it never rose.
    let word = explored.shortest_violation().unwrap();
    assert_eq!(word.len(), 1);
    let bits: Vec<u64> = word.iter().map(|l| l.0).collect();
    assert_eq!(after(&mut compiled.monitor, &bits), StateId::BAD);
    let example: Vec<u64> = explored.example().unwrap().iter().map(|l| l.0).collect();
    assert!(!example.is_empty());
    assert_ne!(after(&mut compiled.monitor, &example), StateId::BAD);
}

#[test]
fn edges_cover_every_letter_exactly_once() {
    let mut rng = fastrand::Rng::with_seed(81);
    for _ in 0..2_000 {
        let size = rng.usize(1..6);
        let f = random_formula(&mut rng, 3, size, (PAST_UNARY, PAST_BINARY));
        let mut monitor = compile(&crate::ast::Body::Formula(f), 3).monitor;
        // Some letters never occur.
        let letters: Vec<Letter> = (0..8).filter(|_| rng.u8(..4) > 0).map(Letter).collect();
        let explored = monitor.explore(&letters, 1_000).unwrap();
        for (i, state) in explored.states.iter().enumerate() {
            let edges = explored.edges(i);
            for (letter, &to) in letters.iter().zip(&state.row) {
                for (target, cubes) in &edges {
                    let taken = cubes.iter().any(|c| c.holds(*letter));
                    assert_eq!(taken, *target == to as usize);
                }
            }
        }
    }
}

#[test]
fn good_states_are_those_out_of_danger() {
    let mut compiled = Compiled::new(&property("violation v: event(a) event(b)")).unwrap();
    let letters = compiled.letters(100).unwrap();
    let monitor = &mut compiled.monitor;
    let bit = |i: usize| *letters.iter().find(|l| l.has(i)).unwrap();
    let wrong = monitor.step(monitor.start(), bit(1)).unwrap();
    assert!(monitor.good(wrong) && !monitor.good(monitor.start()));
    let half = monitor.step(monitor.start(), bit(0)).unwrap();
    assert_eq!(monitor.verdict(half), Verdict::Open);
    let bad = monitor.step(half, bit(1)).unwrap();
    assert!(monitor.bad(bad));
    assert_eq!(monitor.step(bad, bit(0)), Ok(StateId::BAD));
}

#[test]
fn many_atoms_use_the_hash_table_and_few_the_array() {
    let mut rng = fastrand::Rng::with_seed(82);
    for atoms in [8, 12, 13, 20] {
        for _ in 0..200 {
            let f = random_formula(&mut rng, atoms, 6, (PAST_UNARY, PAST_BINARY));
            let mut monitor = compile(&crate::ast::Body::Formula(f.clone()), atoms).monitor;
            let word: Vec<u64> = (0..6).map(|_| rng.u64(..1 << atoms)).collect();
            // Twice: the second time from the cache.
            for _ in 0..2 {
                let bad = (0..word.len()).any(|n| !holds_at(&f, &word[..=n], n));
                assert_eq!(after(&mut monitor, &word) == StateId::BAD, bad);
            }
        }
    }
}

#[test]
fn a_monitor_stops_at_its_bound() {
    struct Counter;
    impl Machine for Counter {
        type State = u64;
        fn start(&mut self) -> u64 {
            0
        }
        fn step(&mut self, n: &u64, _: Letter) -> Result<u64, TooManyStates> {
            Ok(n + 1)
        }
        fn verdict(&self, _: &u64) -> Verdict {
            Verdict::Open
        }
    }
    let mut monitor = Monitor::new(Counter, 1, 100);
    let mut state = monitor.start();
    let error = (0..1_000).find_map(|_| match monitor.step(state, Letter(0)) {
        Ok(next) => {
            state = next;
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error, Some(TooManyStates { limit: 100, what: "states" }));
    assert_eq!(monitor.states(), 100);
    assert!(monitor.explore(&[Letter(0)], 1_000).is_err());
}
