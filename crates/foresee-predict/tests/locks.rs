//! Small programs full of locks, and what each space of reorderings shows of them.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use crate::common::Tied;
use crate::common::monotone::{Monotone, Rules};
use foresee_causality::judge::{Judge, Reads};
use foresee_predict::correct::CorrectLimits;
use foresee_predict::reorder::SlicedLimits;
use foresee_spec::letter::Letter;
use foresee_spec::observe::Projection;
use foresee_testkit::{Family, corpus, families};
use foresee_trace::{Space, Trace};

const READS: [Reads; 2] = [Reads::Strict, Reads::Terminal];

/// `Y` if something is found in any case, `f` if only with terminal reads, `-` if not.
fn answer(found: impl Fn(Reads) -> bool) -> &'static str {
    match READS.map(found) {
        [true, _] => "Y",
        [false, true] => "f",
        [false, false] => "-",
    }
}

/// All tuples of events for the only sequence of a pattern, one chain a thread and position.
fn chains(tied: &Tied<'_>) -> Vec<Vec<Vec<usize>>> {
    let property = tied.compiled().remove(0);
    let trace = tied.trace;
    let lens = Projection::new(&property.alphabet, &tied.spec.inits, &tied.resolved, &trace.names);
    let [sequence] = &property.sequences.as_ref().unwrap()[..] else { panic!("one sequence") };
    let chains_of = |position: &foresee_spec::pattern::Position| {
        let mut by_thread = std::collections::BTreeMap::<_, Vec<usize>>::new();
        for (i, event) in trace.events.iter().enumerate() {
            let step = lens.step(event, &trace.pool);
            if step.is_some_and(|s| position.matches(Letter(s.events))) {
                by_thread.entry(event.thread()).or_default().push(i);
            }
        }
        by_thread.into_values().collect()
    };
    sequence.iter().map(chains_of).collect()
}

/// Every way to choose one of each.
fn product<T: Clone>(choices: &[Vec<T>]) -> Vec<Vec<T>> {
    choices.iter().fold(vec![vec![]], |all, next| {
        let with = |one: &Vec<T>| {
            let one = one.clone();
            next.iter().map(move |t| [one.clone(), vec![t.clone()]].concat())
        };
        all.iter().flat_map(with).collect()
    })
}

fn monotone_finds(tied: &Tied<'_>, rules: Rules, reads: Reads) -> bool {
    let monotone = Monotone::new(tied.trace, rules, reads);
    product(&chains(tied)).iter().any(|chains| monotone.least(chains).is_some())
}

#[test]
fn each_space_shows_what_it_should() {
    let mut checked = [0; 6];
    for case in corpus::cases() {
        let Some(expected) = case.expect("reorderings").and_then(|v| v.as_array()) else {
            continue;
        };
        for expected in expected {
            let tied = Tied::new(&case.trace, expected["spec"].as_str().unwrap());
            assert!(tied.observed().is_empty(), "{}", case.name);
            let maz = tied.maz();
            let sliced = |reads| {
                let (found, _) = tied.sliced(SlicedLimits { reads, ..SlicedLimits::default() });
                for found in &found {
                    let finding =
                        tied.confirm(found).unwrap_or_else(|e| panic!("{}: {e}", case.name));
                    let weakest = finding.witness.unwrap().reorder;
                    // Its witness may need no swap, but then there was something simpler.
                    assert!(weakest == Space::Sliced || !maz.is_empty(), "{}", case.name);
                }
                !found.is_empty()
            };
            let correct = |reads| {
                let (found, _) = tied.correct(CorrectLimits { reads, ..CorrectLimits::default() });
                let confirm = |f| tied.confirm(f).unwrap_or_else(|e| panic!("{}: {e}", case.name));
                found.iter().for_each(|found| drop(confirm(found)));
                !found.is_empty()
            };
            for (i, space) in ["maz", "sliced", "correct", "px", "pr", "ps"].iter().enumerate() {
                let Some(answered) = expected.get(space).map(|v| v.as_str().unwrap()) else {
                    continue;
                };
                let rules = |rules| answer(|reads| monotone_finds(&tied, rules, reads));
                let found = match *space {
                    "maz" => answer(|_| !maz.is_empty()),
                    "sliced" => answer(sliced),
                    // Patterns are left to the other search.
                    "correct" if expected.get("sliced").is_some() => {
                        answer(|reads| tied.is_violable(reads))
                    }
                    "correct" => {
                        let found = answer(|reads| tied.is_violable(reads));
                        assert_eq!(answer(correct), found, "{}", case.name);
                        found
                    }
                    "px" => rules(Rules::Px),
                    "pr" => rules(Rules::Pr),
                    _ => rules(Rules::Ps),
                };
                assert_eq!(found, answered, "{space} of {}", case.name);
                checked[i] += 1;
            }
        }
    }
    assert!(checked >= [35, 29, 35, 29, 29, 29], "{checked:?}");
}

fn tuples_are_least(trace: &Trace, rules: Rules, reads: Reads, text: &str) -> usize {
    let tied = Tied::new(trace, text);
    let monotone = Monotone::new(trace, rules, reads);
    let context = || format!("{rules:?} {reads:?} {text}\n{trace}");
    let mut found = 0;
    for chains in product(&chains(&tied)) {
        let admitted: Vec<Vec<usize>> =
            product(&chains).into_iter().filter(|tuple| monotone.admits(tuple)).collect();
        let least = monotone.least(&chains);
        assert_eq!(least.is_some(), !admitted.is_empty(), "{}", context());
        let Some(least) = least else { continue };
        found += 1;
        let below = |tuple: &Vec<usize>| least.iter().zip(tuple).all(|(a, b)| a <= b);
        assert!(admitted.iter().all(below), "{least:?} {admitted:?} {}", context());
        let order = monotone.emission(&least).unwrap();
        let judged = Judge::new(trace).check(&order, reads);
        assert!(judged.is_ok(), "{judged:?} {order:?} {}", context());
    }
    // What they find, the search finds.
    if found > 0 && tied.observed().is_empty() {
        let (ours, _) = tied.sliced(SlicedLimits { reads, ..SlicedLimits::default() });
        assert!(!ours.is_empty(), "{}", context());
    }
    found
}

#[test]
fn pointers_find_the_least_tuple_of_monotone_rules() {
    const PATTERNS: [&str; 4] = [
        "write(x0) .. read(x1) .. write(x0)",
        "read(x0) .. write(_) .. event(_)",
        "write(x1) .. write(x0)",
        "event(a0) .. event(a1) .. write(_)",
    ];
    let mut found = 0;
    // The rules know neither shared locks nor try-locks that fail.
    let is_known = |family: &&Family| family.shared == 0.0 && family.tries == 0.0;
    for family in families().iter().filter(is_known) {
        for seed in 0..300 {
            let trace = family.trace(seed, 8 + seed % 8);
            let text = format!("pattern p: {}", PATTERNS[seed as usize % PATTERNS.len()]);
            for rules in [Rules::Px, Rules::Pr, Rules::Ps] {
                for reads in READS {
                    found += tuples_are_least(&trace, rules, reads, &text);
                }
            }
        }
    }
    assert!(found > 1_000, "only {found}");
}
