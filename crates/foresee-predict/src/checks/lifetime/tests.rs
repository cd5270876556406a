//! Against the exhaustive oracle.

#![allow(clippy::print_stdout)] // The figures of `docs/analyses/lifetime.md` come from here.

use std::collections::{BTreeSet, HashMap, HashSet};

use foresee_causality::judge::{Judge, Reads};
use foresee_testkit::oracle::{self, atomicity::reachable_pairs};
use foresee_testkit::{generated, relaxed, trace};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{SymId, Trace};

use super::*;
use crate::checks::tally::SearchStats;
use crate::checks::tries::{in_trying_order, try_all};
use crate::reorder::Requirements;

/// A random trace in which objects are used and freed, some of them begun by an event.
fn random(seed: u64) -> Trace {
    let mut trace = generated(Config {
        seed,
        threads: 2 + (seed % 3) as u32 / 2 + (seed % 2) as u32,
        events: 10 + seed % 16,
        variables: 2,
        locks: 1 + (seed % 2) as u32,
        in_sections: [0.5, 0.9, 1.0][(seed % 3) as usize],
        section_events: 2.0,
        max_nesting: 2,
        shared: if seed.is_multiple_of(5) { 0.4 } else { 0.0 },
        reads: 0.5,
        rmws: if seed.is_multiple_of(7) { 0.3 } else { 0.0 },
        values: Written::Repeating(2),
        forked: if seed % 2 == 1 { 0.7 } else { 0.0 },
        joined: 0.7,
        named: 0.4,
        alphabet: 3,
        ..Config::default()
    });
    let words = ["use", "free", "init"].map(|word| trace.names.syms.intern(word).unwrap());
    let mut rng = fastrand::Rng::with_seed(seed);
    for event in trace.events.iter_mut().filter(|event| event.op() == Op::Event) {
        let SymId(word) = words[[0, 0, 0, 1, 1, 2][rng.usize(..6)]];
        let object = Value::Int(rng.i64(1..=2));
        *event = event.with_target(word).with_values(&[object], &mut trace.pool);
    }
    trace
}

struct Checked {
    observed: usize,
    found: Vec<Pair>,
    tally: SearchStats,
    objects: Objects,
}

/// Calls a function with what checks know of a trace.
fn in_context<T>(trace: &Trace, act: impl FnOnce(&Context<'_>, &LockState) -> T) -> T {
    let mut requirements = Requirements::default();
    trace.events.iter().for_each(|event| requirements.push(event, &trace.pool).unwrap());
    requirements.finish();
    let options = Options { cores: 1, ..Options::default() };
    let lock_state = LockState::default();
    let context = Context {
        trace,
        requirements: &requirements,
        options: &options,
        locksets: &lock_state.locksets,
        is_cut: false,
        room: usize::MAX,
    };
    act(&context, &lock_state)
}

fn check(trace: &Trace) -> Checked {
    in_context(trace, |context, lock_state| {
        let mut check = Lifetimes::new(context.options);
        for (i, event) in trace.events.iter().enumerate() {
            check.event(i as u32, event, lock_state);
        }
        let proposals = check.propose(context).unwrap();
        let mut tally = proposals.tally;
        let candidates = in_trying_order(proposals.candidates);
        let known = HashMap::new();
        let tried = try_all(context, candidates, known, check.budgets(), None, &mut tally);
        tried.count(&mut tally);
        let found = tried.found;
        let judge = Judge::new(trace);
        let pairs = found.iter().map(|one| {
            let order: Vec<u64> = one.reached.order.iter().map(|&e| e.into()).collect();
            let whole: Vec<u64> =
                (0..u64::from(one.reached.observed)).chain(order.iter().copied()).collect();
            let next: Vec<u64> = one.by.next.iter().map(|&e| e.into()).collect();
            judge.check_next(&whole, &next, Reads::Terminal).unwrap();
            let description = check.describe(context, one);
            assert!(
                !description.message.is_empty()
                    && description.details.len() == 5
                    && description.sites.len() == 2
            );
            check.pair_of(context, one).unwrap()
        });
        let found = pairs.collect();
        Checked { observed: proposals.observed.len(), found, tally, objects: check.objects }
    })
}

/// The ends and uses of one life of each object, as `(end, use)`, the use seen first.
fn pairs(trace: &Trace, objects: &Objects) -> Vec<(usize, usize)> {
    let said: Vec<_> = trace.events.iter().map(|e| objects.said(e, &trace.pool)).collect();
    let mut pairs = Vec::new();
    for (end, what) in said.iter().enumerate() {
        let Some((Said::Ends(_), object)) = *what else { continue };
        for used in (0..end).rev() {
            match said[used] {
                Some((Said::Begins | Said::Ends(_), other)) if other == object => break,
                Some((Said::Used, other)) if other == object => pairs.push((end, used)),
                _ => {}
            }
        }
        // An object that has ended before is ended twice, which is a different violation.
        let ended = said[..end]
            .iter()
            .rev()
            .find(|s| matches!(s, Some((Said::Begins | Said::Ends(_), other)) if *other == object));
        if matches!(ended, Some(Some((Said::Ends(_), _)))) {
            pairs.retain(|pair| pair.0 != end);
        }
    }
    pairs.retain(|&(a, b)| trace.events[a].thread() != trace.events[b].thread());
    pairs
}

#[test]
fn uses_after_the_end_are_found_as_far_as_there_are_any() {
    let (mut possible, mut reached, mut proofs) = (0, 0, 0);
    for seed in 0..4_000 {
        let trace = random(seed);
        let checked = check(&trace);
        let pairs = pairs(&trace, &checked.objects);
        let real = reachable_pairs(&trace, oracle::Reads::Terminal, &pairs);
        let group = |end: usize, used: usize| {
            let object = checked.objects.said(&trace.events[end], &trace.pool).unwrap().1;
            (object, trace.events[end].thread(), trace.events[used].thread())
        };
        let context = || format!("seed {seed}\n{trace}");
        let after = checked.found.iter().filter(|pair| pair.wrong == Wrong::UsedAfterEnd);
        let mut found = BTreeSet::new();
        for pair in after {
            let pair = (pair.first as usize, pair.second as usize);
            assert!(real.contains(&pair), "unsound {pair:?}: {}", context());
            found.insert(group(pair.0, pair.1));
        }
        if checked.observed == 0 {
            let wanted: BTreeSet<_> = real.iter().map(|&(end, used)| group(end, used)).collect();
            possible += wanted.len();
            reached += wanted.intersection(&found).count();
            let is_proof = checked.tally.is_complete() && checked.found.is_empty();
            assert!(!is_proof || real.is_empty(), "a wrong proof: {}", context());
            proofs += usize::from(is_proof && !pairs.is_empty());
        }
    }
    println!("{reached} of {possible}, {proofs} proofs");
    assert!(possible > 150 && reached * 1000 >= possible * 995, "{reached} of {possible}");
    assert!(proofs > 10, "{proofs}");
}

#[test]
fn uses_that_only_relaxed_atomics_order_before_the_end_are_those_of_the_definition() {
    let (mut with, mut weak) = (0, 0);
    for seed in 0..10_000 {
        let trace = relaxed(random(seed), seed);
        let objects = Objects::new(&trace.events, &trace.pool, &trace.names);
        let language = oracle::Language::new(&trace);
        let strong = oracle::Order::new(&trace, oracle::Relation::HappensBefore);
        let said = |event: usize| objects.said(&trace.events[event], &trace.pool);
        let mut truth = BTreeSet::new();
        for end in 0..trace.events.len() {
            let Some((Said::Ends(_), object)) = said(end) else { continue };
            let mut threads = HashSet::from([trace.events[end].thread()]);
            for used in (0..end).rev() {
                match said(used) {
                    Some((Said::Begins | Said::Ends(_), other)) if other == object => break,
                    // The last use of each thread.
                    Some((Said::Used, other))
                        if other == object
                            && threads.insert(trace.events[used].thread())
                            && strong.before(used, end)
                            && !language.before(used, end) =>
                    {
                        truth.insert((end as u32, used as u32));
                    }
                    _ => {}
                }
            }
        }
        let pairs =
            in_context(&trace, |context, _| language::unordered(context, &objects).unwrap());
        let found: BTreeSet<(u32, u32)> =
            pairs.iter().map(|pair| (pair.first, pair.second)).collect();
        assert_eq!(found, truth, "seed {seed}\n{trace}");
        with += usize::from(!found.is_empty());
        weak += found.len();
    }
    // Locks order most of these traces.
    assert!(weak > 5, "{weak} in {with} traces");
}

fn summary(trace: &Trace) -> (usize, Vec<Wrong>, bool) {
    let checked = check(trace);
    let found = checked.found.iter().map(|pair| pair.wrong).collect();
    (checked.observed, found, checked.tally.is_complete())
}

#[test]
fn what_is_wrong_as_observed_is_told() {
    let late = trace! { T1: event(free, 7); T2: event(use, 7) };
    assert_eq!(summary(&late), (1, vec![], true));
    let twice = trace! { T1: event(close, 7); T2: event(close, 7) };
    assert_eq!(summary(&twice), (1, vec![], true));
    let early = trace! { T1: event(use, 7); T2: event(init, 7) };
    assert_eq!(summary(&early), (1, vec![], true));
    // An object that begins again is another one.
    let again = trace! { T1: event(free, 7), event(init, 7), event(use, 7), event(free, 7) };
    assert_eq!(summary(&again), (0, vec![], true));
}

#[test]
fn what_could_go_wrong_is_found() {
    let before = trace! { T1: event(init, 7); T2: event(use, 7) };
    assert_eq!(summary(&before), (0, vec![Wrong::UsedBeforeBegin], true));
    let forked = trace! { T1: event(init, 7), fork(T2); T2: event(use, 7) };
    assert_eq!(summary(&forked), (0, vec![], true));
    let access = trace! {
        T1: acq(l), r("node#1+8"), rel(l); T2: acq(l), event(heap_free, "node#1"), rel(l)
    };
    assert_eq!(summary(&access), (0, vec![Wrong::UsedAfterEnd], true));
    let other = trace! { T1: r("node#11+8"); T2: event(heap_free, "node#1") };
    assert_eq!(summary(&other), (0, vec![], true));
}
