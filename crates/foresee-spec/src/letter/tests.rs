use super::*;
use crate::observe::{EvalWarnings, Projection};
use crate::testing::*;
use foresee_trace::{Names, Value};

/// Atoms over two variables.
fn random_alphabet(rng: &mut fastrand::Rng) -> Alphabet {
    let op = ["==", "!=", "<", "<=", ">", ">="];
    let mut alphabet = Alphabet::default();
    for _ in 0..rng.usize(1..6) {
        let (v, n) = (["x", "y"][rng.usize(..2)], rng.i8(-2..3));
        let op = op[rng.usize(..6)];
        let atom = match rng.u8(..7) {
            0 => format!("{n} {op} {v}"),
            1 => format!("{v} == \"open\""),
            2 => v.to_string(),
            3 => format!("x {op} y"),
            _ => format!("{v} {op} {n}"),
        };
        let text = format!("init x = 0, y = 0\nproperty p: {atom}");
        let crate::ast::Body::Formula(f) = property(&text).body else { unreachable!() };
        let crate::ast::FormulaKind::Atom(atom) = f.kind else { unreachable!() };
        alphabet.number(&atom).unwrap();
    }
    alphabet
}

#[test]
fn every_letter_of_a_state_is_foreseen() {
    let mut rng = fastrand::Rng::with_seed(71);
    let mut names = Names::default();
    let texts = ["open", "shut"].map(|t| names.syms.intern(t).unwrap());
    let mut smaller = 0;
    for _ in 0..5_000 {
        let alphabet = random_alphabet(&mut rng);
        let letters = alphabet.letters(10_000).unwrap();
        smaller += u32::from(letters.len() < 1 << alphabet.atoms().len());
        let projection = Projection::new(&alphabet, &[], &crate::Resolved::default(), &names);
        for _ in 0..20 {
            let value = |rng: &mut fastrand::Rng| match rng.u8(..8) {
                0 => None,
                1 => Some(Value::Str(texts[rng.usize(..2)])),
                2 => Some(Value::Bool(rng.bool())),
                3 => Some(Value::Float(f64::from(rng.i8(-6..6)) / 2.0)),
                4 => Some(Value::Float(f64::NAN)),
                _ => Some(Value::Int(rng.i64(-4..5))),
            };
            let values = projection.variables().map(|_| value(&mut rng)).collect();
            let letter = projection.state_of(values, &mut EvalWarnings::default()).letter();
            assert!(letters.contains(&letter), "{alphabet:?} {letter:?} {letters:?}");
        }
    }
    assert!(smaller > 2_000, "{smaller}");
}

#[test]
fn one_event_is_one_thing() {
    let letters = |text: &str| {
        let compiled = crate::property::Compiled::new(&property(text)).unwrap();
        compiled.alphabet.letters(1_000).unwrap().len()
    };
    assert_eq!(letters("pattern p: event(a) .. event(b) .. event(c)"), 4);
    assert_eq!(letters("pattern p: event(a) .. event(a)@t1 .. event(a)@t2"), 4 + 2);
    assert_eq!(letters("pattern p: read(x) .. write(x) .. write(y)"), 5);
    assert_eq!(letters("pattern p: event(a, 1) .. event(a, 2) .. event(a, _)"), 6);
    assert_eq!(letters("init w = 0\nproperty p: w > 26 -> w > 30"), 3);
}

#[test]
fn texts_that_the_trace_does_not_know_equal_nothing() {
    let found = violations(
        "init mode = \"idle\"\nproperty p: mode == \"idle\" || mode != \"gone\"",
        "t w mode=idle; t w mode=busy",
    );
    assert!(found.is_empty());
}
