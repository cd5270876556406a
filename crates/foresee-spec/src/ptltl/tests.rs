use super::*;
use crate::ast::{BinaryOp, FormulaKind, UnaryOp};
use crate::monitor::StateId;
use crate::testing::*;

#[test]
fn agrees_with_the_definitions() {
    let mut rng = fastrand::Rng::with_seed(11);
    let mut violated = 0;
    for _ in 0..20_000 {
        let size = rng.usize(1..7);
        let f = random_formula(&mut rng, 3, size, (PAST_UNARY, PAST_BINARY));
        let mut monitor = compile(&Body::Formula(f.clone()), 3).monitor;
        let word = random_word(&mut rng, 3, 8);
        let mut state = monitor.start();
        let mut bad = false;
        for n in 0..word.len() {
            bad |= !holds_at(&f, &word[..=n], n);
            state = monitor.step(state, Letter(word[n])).unwrap();
            assert_eq!(state == StateId::BAD, bad, "{f:?} on {word:?} at {n}");
        }
        violated += u32::from(bad);
    }
    // Both verdicts are frequent, so the comparison is meaningful.
    assert!((4_000..16_000).contains(&violated), "{violated}");
}

#[test]
fn the_first_state_follows_the_table() {
    let first = |f| {
        let mut monitor = compile(&Body::Formula(f), 2).monitor;
        [0, 1, 2, 3].map(|letter| after(&mut monitor, &[letter]) != StateId::BAD)
    };
    // Letters: none, p, q, both.
    let p = [false, true, false, true];
    for op in [UnaryOp::Prev, UnaryOp::Once, UnaryOp::Hist] {
        assert_eq!(first(unary(op, atom(0))), p);
    }
    for op in [UnaryOp::Start, UnaryOp::End] {
        assert_eq!(first(unary(op, atom(0))), [false; 4]);
    }
    for (op, expected) in [
        (BinaryOp::Since, [false, false, true, true]),
        (BinaryOp::WeakSince, [false, true, true, true]),
        (BinaryOp::Interval, [false, true, false, false]),
        (BinaryOp::WeakInterval, [true, true, false, false]),
    ] {
        assert_eq!(first(binary(op, atom(0), atom(1))), expected, "{op:?}");
    }
}

#[test]
fn too_many_operators_are_refused() {
    let once = |i: usize| {
        unary(UnaryOp::Once, {
            // Different formulas, because equal ones are merged.
            (0..i).fold(atom(0), |f, _| unary(UnaryOp::Not, f))
        })
    };
    let all = |n| (0..n).map(once).reduce(|a, b| binary(BinaryOp::And, a, b)).unwrap();
    let compile = |f| PastTime.compile(&Body::Formula(f), &mut Alphabet::default());
    assert!(compile(all(64)).is_ok());
    assert_eq!(compile(all(65)).unwrap_err().code, "too-many-operators");
    let many = |n| (0..n).map(atom).reduce(|a, b| binary(BinaryOp::And, a, b)).unwrap();
    assert!(compile(many(64)).is_ok());
    assert_eq!(compile(many(65)).unwrap_err().code, "too-many-atoms");
}

#[test]
fn equal_subformulas_share_their_bit() {
    let once = || unary(UnaryOp::Once, atom(0));
    let f = (0..100).map(|_| once()).reduce(|a, b| binary(BinaryOp::Or, a, b)).unwrap();
    let mut monitor = compile(&Body::Formula(f), 1).monitor;
    assert_ne!(after(&mut monitor, &[1, 0]), StateId::BAD);
    assert_eq!(monitor.states(), 3);
    assert!(matches!(once().kind, FormulaKind::Unary(..)));
}
