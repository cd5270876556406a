//! Properties in correct reorderings against exhaustive search, on random traces full of locks.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/analyses/locks.md` come from here.

use crate::common::Tied;
use fastrand::Rng;
use foresee_causality::judge::Reads;
use foresee_predict::correct::{CorrectLimits, Reductions};
use foresee_testkit::{enough, families, random_trace, seeds};
use foresee_trace::Trace;

fn event(rng: &mut Rng) -> &'static str {
    let events = [
        "event(a0)",
        "event(a1)",
        "event(a2)",
        "write(x0)",
        "write(x1)",
        "read(x0)",
        "read(x1)",
        "read(x0, 1)",
        "write(x0)@T1",
        "read(_)@T0",
        "acquire(l0)",
        "release(l0)",
        "write(_)@T0",
    ];
    events[rng.usize(..events.len())]
}

fn random_property(rng: &mut Rng) -> String {
    let e = |rng: &mut Rng| event(rng).to_owned();
    let body = match rng.u8(..5) {
        0 => format!("property p: {} -> (x0 == 1 || x1 != 2)", e(rng)),
        1 => format!("property p: {} -> once ({} && prev (once {}))", e(rng), e(rng), e(rng)),
        2 => format!("property p: {} -> [{}, {})", e(rng), e(rng), e(rng)),
        3 => format!("violation p: .* {} {} {} .*", e(rng), e(rng), e(rng)),
        _ => format!(
            "automaton p {{ initial a; a: {} -> b; b: {} -> c, {} -> a; c: {} -> bad, {} -> a; }}",
            e(rng),
            e(rng),
            e(rng),
            e(rng),
            e(rng)
        ),
    };
    format!("init x0 = 0, x1 = 0\n{body}\n")
}

/// How many properties are violable, and how many are found so, with these limits.
fn compare(name: &str, seed: u64, trace: &Trace, limits: &[CorrectLimits]) -> (u32, Vec<u32>) {
    let mut rng = Rng::with_seed(seed ^ 0x1234);
    let text = random_property(&mut rng);
    let reads = if rng.bool() { Reads::Strict } else { Reads::Terminal };
    let tied = Tied::new(trace, &text);
    if !tied.observed().is_empty() {
        return (0, vec![0; limits.len()]);
    }
    let violable = tied.is_violable(reads);
    let found = limits.iter().map(|limits| {
        let (found, analysed) = tied.correct(CorrectLimits { reads, ..*limits });
        let context =
            || format!("seed {seed} of {}: {text} {reads:?}\n{trace}\n{analysed:?}", name);
        for found in &found {
            tied.confirm(found).unwrap_or_else(|e| panic!("{e}: {found:?} {}", context()));
        }
        assert!(violable || found.is_empty(), "{}", context());
        // Where values are missing nothing is claimed.
        let is_silent = analysed.iter().any(|a| a.statement.starts_with("nothing is claimed"));
        if limits.width == usize::MAX && !is_silent {
            assert_eq!(violable, !found.is_empty(), "{:?} {}", limits.reductions, context());
        }
        // Silence says of all reorderings only what was looked at.
        let says_none =
            analysed.iter().any(|a| a.statement.contains("no violation in any correct reordering"));
        assert!(!(says_none && violable), "{}", context());
        u32::from(!found.is_empty())
    });
    (u32::from(violable), found.collect())
}

#[test]
fn reductions_change_nothing() {
    let exact = |reductions| CorrectLimits {
        width: usize::MAX,
        window: 10_000,
        reductions,
        ..CorrectLimits::default()
    };
    let all = Reductions::ALL;
    let limits = [
        exact(Reductions::NONE),
        exact(Reductions { eager: true, ..Reductions::NONE }),
        exact(Reductions { macros: true, ..Reductions::NONE }),
        exact(Reductions { quiet: false, ..all }),
        exact(Reductions { inert: false, ..all }),
        exact(all),
    ];
    let mut violable = 0;
    for family in families() {
        for seed in 0..800 {
            violable += compare(family.name, seed, &family.short(seed), &limits).0;
        }
    }
    for seed in seeds(4_000) {
        // Everything that a trace can have, but little of it.
        violable += compare("anything", seed, &random_trace(seed), &limits).0;
    }
    assert!(violable > enough(300), "only {violable}");
}

#[test]
fn narrow_windows_find_nearly_everything() {
    let limits = [
        CorrectLimits::default(),
        CorrectLimits { window: 20, ..CorrectLimits::default() },
        CorrectLimits { width: 10, ..CorrectLimits::default() },
    ];
    let (mut violable, mut found) = (0, vec![0; limits.len()]);
    for family in families() {
        for seed in 0..320 {
            let trace = family.trace(seed, 20 + seed % 25);
            let one = compare(family.name, seed, &trace, &limits);
            violable += one.0;
            found.iter_mut().zip(one.1).for_each(|(all, n)| *all += n);
        }
    }
    println!("{violable} violable, {found:?} found");
    assert!(violable > 200, "only {violable}");
    assert!(found[0] * 100 >= violable * 99, "{found:?} of {violable}");
    assert!(found[1] * 100 >= violable * 60, "{found:?} of {violable}");
    assert!(found[2] * 100 >= violable * 95, "{found:?} of {violable}");
}

/// Where no oracle can follow, the judge still has to agree, window after window.
#[test]
fn witnesses_in_long_traces_stand() {
    let mut found = 0;
    for family in families() {
        for seed in 0..60 {
            let trace = family.trace(seed, 100 + 5 * seed);
            let text = random_property(&mut Rng::with_seed(seed));
            let tied = Tied::new(&trace, &text);
            for window in [30, 90] {
                let limits = CorrectLimits { window, width: 20, ..CorrectLimits::default() };
                let (ours, analysed) = tied.correct(limits);
                for one in &ours {
                    let context =
                        || format!("seed {seed} of {}: {text}\n{trace}\n{analysed:?}", family.name);
                    tied.confirm(one).unwrap_or_else(|e| panic!("{e}: {}", context()));
                }
                found += ours.len();
            }
        }
    }
    assert!(found > 10, "only {found}");
}
