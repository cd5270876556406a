use super::*;
use crate::ast::{BinaryOp, Formula, FormulaKind, UnaryOp};
use crate::monitor::StateId;
use crate::past::looks_back;
use crate::testing::*;

/// The values of a formula at all positions of `stem` followed by `cycle` forever.
///
/// Past formulas take a few rounds to stabilise, one per nested operator, so the caller unrolls the
/// cycle first.
fn values_on(f: &Formula, word: &[u64], cycle_start: usize) -> Vec<bool> {
    let n = word.len();
    let next = |i: usize| if i + 1 == n { cycle_start } else { i + 1 };
    if !looks_ahead(f) {
        return (0..n).map(|i| holds_at(f, word, i)).collect();
    }
    let sub = |f: &Formula| values_on(f, word, cycle_start);
    // Least and greatest fixpoints, by iteration from below and above.
    let fix = |from: bool, step: &dyn Fn(usize, bool) -> bool| {
        let mut v = vec![from; n];
        loop {
            let w: Vec<bool> = (0..n).map(|i| step(i, v[next(i)])).collect();
            if w == v {
                return v;
            }
            v = w;
        }
    };
    match &f.kind {
        FormulaKind::Const(_) | FormulaKind::Atom(_) => unreachable!(),
        FormulaKind::Let(_, f) => sub(f),
        FormulaKind::Unary(op, a) => {
            let a = sub(a);
            match op {
                UnaryOp::Not => a.iter().map(|b| !b).collect(),
                UnaryOp::Next => (0..n).map(|i| a[next(i)]).collect(),
                UnaryOp::Eventually => fix(false, &|i, later| a[i] || later),
                UnaryOp::Always => fix(true, &|i, later| a[i] && later),
                _ => unreachable!("past over future"),
            }
        }
        FormulaKind::Binary(op, a, b) => {
            let (a, b) = (sub(a), sub(b));
            let each = |f: &dyn Fn(bool, bool) -> bool| (0..n).map(|i| f(a[i], b[i])).collect();
            match op {
                BinaryOp::And => each(&|a, b| a && b),
                BinaryOp::Or => each(&|a, b| a || b),
                BinaryOp::Implies => each(&|a, b| !a || b),
                BinaryOp::Iff => each(&|a, b| a == b),
                BinaryOp::Until => fix(false, &|i, later| b[i] || a[i] && later),
                BinaryOp::WeakUntil => fix(true, &|i, later| b[i] || a[i] && later),
                BinaryOp::Release => fix(true, &|i, later| b[i] && (a[i] || later)),
                _ => unreachable!("past over future"),
            }
        }
    }
}

fn satisfies(f: &Formula, stem: &[u64], cycle: &[u64]) -> bool {
    let rounds = if looks_back(f) { 4 } else { 0 };
    let mut word = stem.to_vec();
    (0..rounds).for_each(|_| word.extend_from_slice(cycle));
    let cycle_start = word.len();
    word.extend_from_slice(cycle);
    values_on(f, &word, cycle_start)[0]
}

fn words(max: usize) -> Vec<Vec<u64>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..max {
        last = last.iter().flat_map(|w| (0..4).map(|l| [&w[..], &[l]].concat())).collect();
        all.extend(last.clone());
    }
    all
}

/// Random formulas: future operators over Boolean or past-time ones.
fn random(rng: &mut fastrand::Rng, with_past: bool) -> Formula {
    let size = rng.usize(1..6);
    let mut f = random_formula(rng, 2, size, (FUTURE_UNARY, FUTURE_BINARY));
    if with_past {
        replace_an_atom(&mut f, rng);
    }
    f
}

fn replace_an_atom(f: &mut Formula, rng: &mut fastrand::Rng) {
    match &mut f.kind {
        FormulaKind::Unary(_, a) => replace_an_atom(a, rng),
        FormulaKind::Binary(_, a, b) => replace_an_atom(if rng.bool() { a } else { b }, rng),
        _ => {
            let size = rng.usize(1..3);
            *f = random_formula(rng, 2, size, (PAST_UNARY, PAST_BINARY));
        }
    }
}

fn verdicts_are_exact(seed: u64, cases: usize, with_past: bool) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let short = (words(2), words(2));
    let long = (words(3), words(4));
    let mut seen = [0; 3];
    for _ in 0..cases {
        let f = random(&mut rng, with_past);
        if !looks_ahead(&f) {
            continue;
        }
        let mut monitor = compile(&Body::Formula(f.clone()), 2).monitor;
        let prefix = random_word(&mut rng, 2, 4);
        let state = after(&mut monitor, &prefix);
        let possible = |wanted: bool, (stems, cycles): &(Vec<Vec<u64>>, Vec<Vec<u64>>)| {
            stems.iter().any(|stem| {
                let stem = [&prefix[..], stem].concat();
                let cycles = cycles.iter().filter(|c| !c.is_empty());
                cycles.clone().any(|cycle| satisfies(&f, &stem, cycle) == wanted)
            })
        };
        let verdict = monitor.verdict(state);
        seen[verdict as usize] += 1;
        match verdict {
            Verdict::Bad => assert!(!possible(true, &short), "{f:?} after {prefix:?}"),
            Verdict::Good => assert!(!possible(false, &short), "{f:?} after {prefix:?}"),
            // Short continuations usually decide; the few other cases get longer ones.
            Verdict::Open => {
                for wanted in [true, false] {
                    let found = possible(wanted, &short) || possible(wanted, &long);
                    assert!(found, "{f:?} after {prefix:?}: {wanted}");
                }
            }
        }
    }
    assert!(seen.iter().all(|&n| n > cases / 20), "{seen:?}");
}

#[test]
fn verdicts_are_exact_for_future_formulas() {
    verdicts_are_exact(21, 12_000, false);
}

#[test]
fn verdicts_are_exact_with_past_subformulas() {
    verdicts_are_exact(22, 6_000, true);
}

/// What must hold after a letter for `f` to hold before it: an independent way to compile.
fn progress(f: &Formula, letter: u64) -> Formula {
    let both = |op, a, b| binary(op, a, b);
    match &f.kind {
        FormulaKind::Let(_, f) => progress(f, letter),
        FormulaKind::Const(_) => f.clone(),
        FormulaKind::Atom(_) => formula(FormulaKind::Const(holds_at(f, &[letter], 0))),
        FormulaKind::Unary(op, a) => match op {
            UnaryOp::Not => unary(UnaryOp::Not, progress(a, letter)),
            UnaryOp::Next => (**a).clone(),
            UnaryOp::Eventually => both(BinaryOp::Or, progress(a, letter), f.clone()),
            UnaryOp::Always => both(BinaryOp::And, progress(a, letter), f.clone()),
            _ => unreachable!(),
        },
        FormulaKind::Binary(op, a, b) => {
            let (pa, pb) = (progress(a, letter), progress(b, letter));
            match op {
                BinaryOp::Until | BinaryOp::WeakUntil => {
                    both(BinaryOp::Or, pb, both(BinaryOp::And, pa, f.clone()))
                }
                BinaryOp::Release => both(BinaryOp::And, pb, both(BinaryOp::Or, pa, f.clone())),
                op => both(*op, pa, pb),
            }
        }
    }
}

#[test]
fn stepping_agrees_with_rewriting_the_formula() {
    let mut rng = fastrand::Rng::with_seed(23);
    for _ in 0..10_000 {
        let f = random(&mut rng, false);
        let mut monitor = compile(&Body::Formula(f.clone()), 2).monitor;
        let word = random_word(&mut rng, 2, 3);
        let rest = word.iter().fold(f.clone(), |f, &l| progress(&f, l));
        let state = after(&mut monitor, &word);
        let verdict = monitor.verdict(state);
        // `next true` makes it a future formula, whatever is left of it.
        let next = unary(UnaryOp::Next, formula(FormulaKind::Const(true)));
        let rest = compile(&Body::Formula(binary(BinaryOp::And, next, rest)), 2).monitor;
        if looks_ahead(&f) {
            assert_eq!(rest.verdict(rest.start()), verdict, "{f:?} after {word:?}");
        }
    }
}

fn holds_on_finite(f: &Formula, word: &[u64], i: usize) -> bool {
    let n = word.len();
    let at = |f: &Formula, i: usize| holds_on_finite(f, word, i);
    if !looks_ahead(f) {
        return holds_at(f, word, i);
    }
    match &f.kind {
        FormulaKind::Const(_) | FormulaKind::Atom(_) => unreachable!(),
        FormulaKind::Let(_, f) => at(f, i),
        FormulaKind::Unary(op, a) => match op {
            UnaryOp::Not => !at(a, i),
            UnaryOp::Next => i + 1 < n && at(a, i + 1),
            UnaryOp::Eventually => (i..n).any(|j| at(a, j)),
            UnaryOp::Always => (i..n).all(|j| at(a, j)),
            _ => unreachable!(),
        },
        FormulaKind::Binary(op, a, b) => {
            let until = |a: &dyn Fn(usize) -> bool, b: &dyn Fn(usize) -> bool| {
                (i..n).any(|j| b(j) && (i..j).all(a))
            };
            match op {
                BinaryOp::And => at(a, i) && at(b, i),
                BinaryOp::Or => at(a, i) || at(b, i),
                BinaryOp::Implies => !at(a, i) || at(b, i),
                BinaryOp::Iff => at(a, i) == at(b, i),
                BinaryOp::Until => until(&|j| at(a, j), &|j| at(b, j)),
                BinaryOp::WeakUntil => {
                    until(&|j| at(a, j), &|j| at(b, j)) || (i..n).all(|j| at(a, j))
                }
                BinaryOp::Release => !until(&|j| !at(a, j), &|j| !at(b, j)),
                _ => unreachable!(),
            }
        }
    }
}

#[test]
fn the_end_verdict_is_that_of_finite_words() {
    let mut rng = fastrand::Rng::with_seed(24);
    let mut split = [0; 2];
    for i in 0..20_000 {
        let f = random(&mut rng, i % 3 == 0);
        let mut monitor = compile(&Body::Formula(f.clone()), 2).monitor;
        let word = random_word(&mut rng, 2, 6);
        let state = after(&mut monitor, &word);
        if word.is_empty() || !looks_ahead(&f) || state == StateId::BAD {
            continue;
        }
        let expected = holds_on_finite(&f, &word, 0);
        split[usize::from(expected)] += 1;
        assert_eq!(monitor.holds_at_end(state), expected, "{f:?} on {word:?}");
    }
    assert!(split.iter().all(|&n| n > 1_000), "{split:?}");
}

#[test]
fn exclusive_conditions_bring_the_verdict_forward() {
    // p is x < 3 and q is x > 5: `always (p && next q)` is already impossible.
    let text = "init x = 0\nproperty f: next always (x < 3 && x > 5)";
    let compiled = crate::property::Compiled::new(&property(text)).unwrap();
    assert!(compiled.monitor.bad(compiled.monitor.start()));
}

#[test]
fn too_large_formulas_are_refused() {
    // Each eventuality doubles the sets of obligations.
    let f = (0..24)
        .map(|i| unary(UnaryOp::Eventually, atom(i)))
        .reduce(|a, b| binary(BinaryOp::And, a, b))
        .unwrap();
    let error = FutureTime.compile(&Body::Formula(f), &mut Alphabet::default()).unwrap_err();
    assert_eq!(error.code, "too-large");
}
