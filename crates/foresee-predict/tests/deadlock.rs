//! Predicted deadlocks against exhaustive search.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/checks.md` come from here.

use std::collections::BTreeSet;

use foresee_predict::checks::{CHECKS, Checks, Options};
use foresee_predict::{Analysed, Analysis};
use foresee_testkit::{generated, oracle, trace};
use foresee_trace::generate::Config;
use foresee_trace::{Finding, Outcome, Trace};

/// Runs the check.
fn check(trace: &Trace) -> (Vec<Finding>, Analysed) {
    let kind = CHECKS.iter().find(|kind| kind.name == "deadlock").unwrap();
    let options = Options { cores: 1, ..Options::default() };
    let checks: Box<dyn Analysis> = Box::new(Checks::new(&[kind], options));
    let mut findings: Vec<Finding> = Vec::new();
    let mut source = trace.source();
    let summary =
        foresee_predict::run(&mut source, &mut [checks], &mut findings, &mut |_| {}).unwrap();
    (findings, summary.analysed.into_iter().next().unwrap())
}

/// Every event at a place of its own, so that every tuple of events is reported.
fn with_places(mut trace: Trace) -> Trace {
    for i in 0..trace.events.len() {
        let loc = trace.names.locs.intern(&format!("e:{}", i + 1)).unwrap();
        trace.events[i] = trace.events[i].with_loc(loc);
    }
    trace
}

/// The events at which the threads of each finding are stuck, the earliest first.
fn rings(findings: &[Finding]) -> BTreeSet<Vec<usize>> {
    let ring = |finding: &Finding| {
        let next = &finding.witness.as_ref().unwrap().next;
        let mut ring: Vec<usize> = next.iter().map(|&event| event as usize).collect();
        let earliest = (0..ring.len()).min_by_key(|&i| ring[i]).unwrap();
        ring.rotate_left(earliest);
        ring
    };
    findings.iter().map(ring).collect()
}

#[derive(Default)]
struct Count {
    traces: u32,
    real: usize,
    found: usize,
    three: usize,
    proved: u32,
}

fn compare(name: &str, seeds: std::ops::Range<u64>, make: impl Fn(u64) -> Trace) -> Count {
    let mut count = Count::default();
    for seed in seeds {
        let trace = with_places(make(seed));
        let (findings, analysed) = check(&trace);
        let found = rings(&findings);
        let real = oracle::deadlocks(&trace, 4);
        let context = || format!("seed {seed} of {name}\n{trace}\n{}", analysed.statement);
        assert!(found.is_subset(&real), "{found:?} {real:?} {}", context());
        assert_eq!(found.len(), findings.len(), "{}", context());
        if analysed.outcome == Outcome::Exhausted {
            assert_eq!(found, real, "not all others are impossible, {}", context());
            count.proved += 1;
        }
        count.traces += 1;
        count.real += real.len();
        count.found += found.len();
        count.three += real.iter().filter(|ring| ring.len() > 2).count();
    }
    println!(
        "{name}: {} traces, {} deadlocks, {} found, {} of more than two threads, {} traces settled",
        count.traces, count.real, count.found, count.three, count.proved
    );
    assert!(count.found * 1000 >= count.real * 995, "{name}: {} of {}", count.found, count.real);
    count
}

fn nested(seed: u64, threads: u32, locks: u32, events: u64) -> Config {
    Config {
        seed,
        threads,
        events,
        variables: 3,
        locks,
        conditions: 1,
        in_sections: 0.9,
        section_events: 3.0,
        max_nesting: 2,
        reads: 0.5,
        unfinished: seed.is_multiple_of(4),
        ..Config::default()
    }
}

#[test]
fn deadlocks_are_those_of_exhaustive_search() {
    let short = |seed: u64| 12 + seed % 18;
    let mut all = Count::default();
    let mut add = |count: Count| {
        all.real += count.real;
        all.three += count.three;
    };
    add(compare("two locks", 0..1_000, |seed| generated(nested(seed, 2, 2, short(seed)))));
    add(compare("three locks", 0..1_000, |seed| generated(nested(seed, 3, 3, short(seed)))));
    add(compare("four threads", 0..500, |seed| generated(nested(seed, 4, 3, short(seed)))));
    add(compare("fork and join", 0..1_000, |seed| {
        let config = nested(seed, 3, 2, short(seed));
        generated(Config { forked: 0.8, joined: 0.9, ..config })
    }));
    add(compare("read-write locks", 0..1_000, |seed| {
        generated(Config { shared: 0.5, rmws: 0.2, ..nested(seed, 3, 2, short(seed)) })
    }));
    add(compare("re-entrant", 0..500, |seed| {
        generated(Config { reentrant: 0.4, crossed: 0.3, ..nested(seed, 2, 2, short(seed)) })
    }));
    add(compare("wait and notify", 0..1_000, |seed| {
        generated(Config { waits: 0.4, ..nested(seed, 3, 2, short(seed)) })
    }));
    add(compare("anything", 0..2_000, foresee_testkit::random_trace));
    assert!(all.real > 2_000 && all.three > 20, "{} {}", all.real, all.three);
}

#[test]
fn long_traces() {
    let count =
        compare("long", 0..60, |seed| generated(nested(seed, 3, 2 + (seed % 2) as u32, 30 + seed)));
    assert!(count.real > 100);
}

#[test]
fn a_ring_is_told() {
    let trace = trace! {
        main: fork(T1) @ "a.c:1", fork(T2) @ "a.c:2";
        T1: acq(l) @ "a.c:3", acq(m) @ "a.c:4", rel(m), rel(l);
        T2: acq(g) @ "a.c:7", acq(m) @ "a.c:8", acq(l) @ "a.c:9", rel(l), rel(m), rel(g)
    };
    let (findings, _) = check(&trace);
    assert_eq!(findings[0].message, "T1 and T2 can wait for each other for ever");
    let details: Vec<String> =
        findings[0].details.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    let expected = [
        "ring: T1 ─ m ─▶ T2 ─ l ─▶ T1",
        "T1: has l, taken by event 2 at a.c:3; waits for m, event 3 at a.c:4",
        "T2: has m, taken by event 7 at a.c:8; also has g, taken by event 6 at a.c:7; waits for l, \
         event 8 at a.c:9",
        "threads: T1, forked by main at a.c:1; T2, forked by main at a.c:2",
    ];
    assert_eq!(details, expected);
}
