//! Guessed regions against the definition, and against the exhaustive oracle.

use std::collections::BTreeSet;

use foresee_causality::judge::Reads;
use foresee_testkit::oracle::{self, atomicity as truth};
use foresee_testkit::{generated, trace};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{Finding, FindingKind, LocId, Outcome, Role, Trace};

use super::*;
use crate::analysis::{Analysed, Analysis};
use crate::checks::Checks;

/// The result of the check for a trace; everything is confirmed on the way.
fn check(trace: &Trace, methods: &[&str]) -> (Vec<Finding>, Analysed) {
    let methods = methods.iter().map(|method| crate::checks::Glob::new(method)).collect();
    let atomicity = AtomicityOptions { methods, ..AtomicityOptions::default() };
    let options = Options { cores: 1, atomicity, reads: Reads::Terminal, ..Options::default() };
    let mut checks: Vec<Box<dyn Analysis>> = vec![Box::new(Checks::new(&[&KIND], options))];
    let mut findings: Vec<Finding> = Vec::new();
    let mut source = trace.source();
    let mut summary =
        crate::run(&mut source, &mut checks, &mut findings, &mut |_| ()).expect("it is analysed");
    (findings, summary.analysed.remove(0))
}

fn found(trace: &Trace) -> usize {
    check(trace, &[]).0.len()
}

/// The same trace, with a place for each event.
fn placed(mut trace: Trace) -> Trace {
    for i in 0..trace.events.len() {
        let loc: LocId = trace.names.locs.intern(&format!("a.c:{}", i + 1)).unwrap();
        trace.events[i] = trace.events[i].with_loc(loc);
    }
    trace
}

#[test]
fn a_read_and_a_write_in_two_sections_are_a_likely_region() {
    let trace = trace! {
        T1: acq(l), r(x), rel(l), acq(l), w(x), rel(l);
        T2: acq(l), w(x), rel(l)
    };
    let (findings, analysed) = check(&trace, &[]);
    assert_eq!(findings.len(), 1);
    let Finding { message, details, property, .. } = &findings[0];
    assert!(message.starts_with("likely: what T1 does"), "{message}");
    assert_eq!((&property[..], &details[0].label[..]), ("likely-atomicity", "likely"));
    assert!(analysed.statement.starts_with("1 likely atomicity violation"), "{analysed:?}");
    // The same in the observed order.
    let seen = trace! {
        T1: acq(l), r(x), rel(l); T2: acq(l), w(x), rel(l); T1: acq(l), w(x), rel(l)
    };
    let (findings, _) = check(&seen, &[]);
    assert!(findings.len() == 1 && findings[0].witness.is_none(), "{findings:?}");
}

#[test]
fn what_does_not_look_like_a_region_is_none() {
    let silent = [
        // One section; two locks; no lock at one of them.
        trace! { T1: acq(l), r(x), w(x), rel(l); T2: acq(l), w(x), rel(l) },
        trace! { T1: acq(l), r(x), rel(l), acq(m), w(x), rel(m); T2: acq(l), w(x), rel(l) },
        trace! { T1: r(x), acq(l), w(x), rel(l); T2: acq(l), w(x), rel(l) },
        // Another lock is held all the way, and the other thread takes it.
        trace! {
            T1: acq(m), acq(l), r(x), rel(l), acq(l), w(x), rel(l), rel(m);
            T2: acq(m), w(x), rel(m)
        },
        // Two calls, or a boundary of a declared region between them.
        trace! {
            T1: enter(get), acq(l), r(x), rel(l), exit(get), enter(set), acq(l), w(x), rel(l), exit(set);
            T2: acq(l), w(x), rel(l)
        },
        trace! {
            T1: acq(l), r(x), rel(l), begin, end, acq(l), w(x), rel(l); T2: acq(l), w(x), rel(l)
        },
        // Declared, so the other check handles it.
        trace! {
            T1: begin, acq(l), r(x), rel(l), acq(l), w(x), rel(l), end; T2: acq(l), w(x), rel(l)
        },
        // A correct counter, a loop that checks again, and a second check before anything is done.
        trace! {
            T1: acq(l), r(x), w(x), rel(l), acq(l), r(x), w(x), rel(l); T2: acq(l), r(x), w(x), rel(l)
        },
        trace! { T1: acq(l), r(x), rel(l), acq(l), r(x), rel(l); T2: acq(l), w(x), rel(l) },
    ];
    for (i, trace) in silent.into_iter().enumerate() {
        let trace = placed(trace);
        let (findings, analysed) = check(&trace, &[]);
        assert!(findings.is_empty(), "{i}: {findings:?}");
        assert!(analysed.statement.starts_with("no likely atomicity violation is possible"), "{i}");
    }
    let recheck = placed(trace! {
        T1: acq(l), r(x), rel(l), acq(l), r(x), w(x), rel(l); T2: acq(l), w(x), rel(l)
    });
    assert_eq!(found(&recheck), 0);
    // A call of a method that is named is a region, so it is not guessed.
    let called = trace! {
        T1: enter(f), acq(l), r(x), rel(l), acq(l), w(x), rel(l), exit(f); T2: acq(l), w(x), rel(l)
    };
    assert_eq!((found(&called), check(&called, &["f"]).0.len()), (1, 0));
}

#[test]
fn two_reads_count_if_both_are_used() {
    let used = trace! {
        T1: acq(l), r(x), w(y), rel(l), acq(l), r(x), w(z), rel(l); T2: acq(l), w(x), rel(l)
    };
    assert_eq!((found(&placed(used.clone())), found(&used)), (1, 0));
}

#[test]
fn one_pair_of_places_is_one_finding_with_all_that_comes_between() {
    let trace = placed(trace! {
        T1: acq(l), r(x), rel(l), acq(l), w(x), rel(l);
        T2: acq(l), w(x), rel(l);
        T3: acq(l), w(x), rel(l)
    });
    let (findings, analysed) = check(&trace, &[]);
    assert_eq!(findings.len(), 1);
    let told = |label: &str| {
        let detail = findings[0].details.iter().find(|detail| detail.label == label);
        detail.unwrap().text(&findings[0].sites)
    };
    let both = told("also in between") + &told("in between");
    assert!(both.contains("a.c:8") && both.contains("a.c:11"), "{both}");
    let between = findings[0].sites.iter().filter(|site| site.role == Role::AnyBetween);
    let lines: Vec<_> = between.map(|site| site.location().unwrap().line.unwrap()).collect();
    assert!(lines == [8, 11] || lines == [11, 8], "{lines:?}");
    assert!(analysed.statement.starts_with("1 likely"), "{}", analysed.statement);
}

fn random(seed: u64) -> Trace {
    generated(Config {
        seed,
        threads: 2 + (seed % 2) as u32,
        events: 18 + seed % 22,
        variables: 1 + (seed % 2) as u32,
        locks: 1 + (seed / 2 % 2) as u32,
        in_sections: 0.9,
        section_events: 1.5,
        max_nesting: 1 + (seed % 3 / 2) as u32,
        reentrant: 0.1,
        shared: if seed.is_multiple_of(5) { 0.3 } else { 0.0 },
        reads: 0.5,
        rmws: if seed.is_multiple_of(7) { 0.2 } else { 0.0 },
        values: Written::Repeating(2),
        calls: if seed.is_multiple_of(3) { 0.1 } else { 0.0 },
        alphabet: 2,
        regions: if seed.is_multiple_of(4) { 0.1 } else { 0.0 },
        unfinished: seed.is_multiple_of(6),
        ..Config::default()
    })
}

#[test]
fn each_finding_is_a_likely_triple_that_some_run_has() {
    let (mut real, mut reported, mut proofs) = (0, 0, 0);
    for seed in 0..5_000 {
        let trace = random(seed);
        let likely = truth::likely_triples(&trace);
        let mut expected: BTreeSet<[usize; 3]> =
            likely.iter().copied().filter(|[a1, b, a2]| a1 < b && b < a2).collect();
        let hidden: Vec<_> = likely.iter().copied().filter(|t| !expected.contains(t)).collect();
        expected.extend(truth::reachable_triples(&trace, oracle::Reads::Terminal, &hidden));
        let (mut findings, analysed) = check(&trace, &[]);
        let conditional = findings.extract_if(.., |f| f.kind == FindingKind::Conditional).count();
        let context = || format!("seed {seed}\n{trace}\n{findings:?}");
        let is_exhausted = analysed.outcome == Outcome::Exhausted;
        assert!(conditional == 0 || !is_exhausted, "{}", context());
        // Without places there is one for each variable and thread.
        let group = |a1: usize| (trace.events[a1].var(), trace.events[a1].thread());
        let groups: BTreeSet<_> = expected.iter().map(|t| group(t[0])).collect();
        let mut seen = BTreeSet::new();
        for finding in &findings {
            let event = |role: Role| -> usize {
                let site = finding.sites.iter().find(|site| site.role == role);
                site.unwrap().event.unwrap() as usize
            };
            let triple = [event(Role::First), event(Role::AnyBetween), event(Role::Second)];
            assert!(expected.contains(&triple), "unsound {triple:?}: {}", context());
            assert!(seen.insert(group(triple[0])), "twice: {}", context());
        }
        let is_proof = analysed.statement.starts_with("no likely atomicity violation is possible");
        assert!(!is_proof || groups.is_empty(), "a wrong proof: {}", context());
        proofs += usize::from(is_proof);
        real += groups.len();
        reported += seen.len();
    }
    assert!(real > 200 && proofs > 200, "{real} real, {proofs} proofs");
    assert!(reported * 1000 >= real * 980, "{reported} of {real}");
}
