//! The oracles agree with each other, although each computes its answers in its own way.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use foresee_testkit::oracle::{
    Ideals, Order, Reads, Relation, Reorderings, Step, count_runs, for_each_run,
    is_correct_reordering, possible_writers, reads_from,
};
use foresee_testkit::{enough, random_trace, seeds};
use foresee_trace::{Op, Trace};

/// Traces with more runs take too long to enumerate.
const MAX_RUNS: u128 = 3000;

/// Random traces with few enough runs, and their Mazurkiewicz order.
fn traces(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, Trace, Order, Vec<usize>)> {
    seeds.filter_map(|seed| {
        let trace = random_trace(seed);
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let all: Vec<usize> = (0..trace.events.len()).collect();
        let runs = Ideals::new(&order, &all).runs()?;
        (runs <= MAX_RUNS).then_some((seed, trace, order, all))
    })
}

#[test]
fn runs_are_as_many_by_enumeration_as_by_cuts() {
    let mut tried = 0;
    for (seed, _, order, all) in traces(seeds(2000)) {
        assert_eq!(Some(count_runs(&order, &all)), Ideals::new(&order, &all).runs(), "seed {seed}");
        tried += 1;
    }
    assert!(tried > enough(1000));
}

#[test]
fn projections_of_runs_are_the_runs_of_the_projection() {
    for (seed, _, order, all) in traces(0..600) {
        let some: Vec<usize> = all.iter().copied().filter(|i| i % 3 != 1).collect();
        let mut projected = BTreeSet::new();
        let _ = for_each_run(&order, &all, |run| {
            projected.insert(run.iter().copied().filter(|i| i % 3 != 1).collect::<Vec<_>>());
            ControlFlow::<()>::Continue(())
        });
        let mut direct = BTreeSet::new();
        let _ = for_each_run(&order, &some, |run| {
            direct.insert(run.to_vec());
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(projected, direct, "seed {seed}");
    }
}

#[test]
fn every_run_is_a_correct_reordering() {
    for (seed, trace, order, all) in traces(seeds(2000)) {
        let _ = for_each_run(&order, &all, |run| {
            let correct = is_correct_reordering(&trace, run, false);
            assert_eq!(correct, Ok(()), "seed {seed}, {run:?}");
            ControlFlow::<()>::Continue(())
        });
    }
}

#[test]
fn weaker_relations_order_less() {
    for seed in seeds(2000) {
        let trace = random_trace(seed);
        let [strong, middle, weak, ..] = Relation::ALL.map(|relation| Order::new(&trace, relation));
        for a in 0..trace.events.len() {
            for b in 0..trace.events.len() {
                assert!(!weak.before(a, b) || middle.before(a, b), "seed {seed}: {a} {b}");
                assert!(!middle.before(a, b) || strong.before(a, b), "seed {seed}: {a} {b}");
                assert!(!(strong.before(a, b) && strong.before(b, a)), "seed {seed}: {a} {b}");
            }
        }
    }
}

/// All correct reorderings by trying every next event, with the replay as the judge.
fn all_by_replay(trace: &Trace, terminal: bool) -> BTreeSet<Vec<usize>> {
    let mut found = BTreeSet::new();
    let mut open = vec![vec![]];
    while let Some(order) = open.pop() {
        for event in 0..trace.events.len() {
            let longer = [order.as_slice(), &[event]].concat();
            let is_step = trace.events[event].op() != Op::Init;
            if is_step && is_correct_reordering(trace, &longer, terminal).is_ok() {
                open.push(longer);
            }
        }
        found.insert(order);
    }
    found
}

/// All correct reorderings by the search, whose monitor remembers the whole order.
fn all_by_search(trace: &Trace, reads: Reads) -> BTreeSet<Vec<usize>> {
    let mut found = BTreeSet::new();
    let remember =
        |order: &Vec<usize>, step: Step| Some([order.as_slice(), &[step.event]].concat());
    let end = Reorderings::new(trace, reads).with_monitor(vec![], remember, |order| {
        found.insert(order.clone());
        false
    });
    assert_eq!(end, None);
    found
}

#[test]
fn search_and_replay_know_the_same_reorderings() {
    let (mut tried, mut terminal_more) = (0, 0);
    for (seed, mut trace, ..) in traces(seeds(6000)) {
        // Prefixes of prefixes: a short trace has enough of them.
        trace.events.truncate(7);
        let strict = all_by_search(&trace, Reads::Strict);
        assert_eq!(strict, all_by_replay(&trace, false), "seed {seed}");
        let terminal = all_by_search(&trace, Reads::Terminal);
        assert_eq!(terminal, all_by_replay(&trace, true), "seed {seed}");
        assert!(strict.is_subset(&terminal), "seed {seed}");
        tried += 1;
        terminal_more += usize::from(strict.len() < terminal.len());
    }
    assert!(tried > enough(1000) && terminal_more > enough(100));
}

#[test]
fn a_read_can_see_another_write_where_terminal_reads_do() {
    let mut broken = 0;
    for seed in seeds(2000) {
        let mut trace = random_trace(seed);
        trace.events.truncate(8);
        let (possible, saw) = (possible_writers(&trace), reads_from(&trace));
        // Stop at the first read that sees another write: everything before it was strict.
        let step = |&seen: &Option<usize>, step: Step| match seen {
            Some(_) => None,
            None => Some(step.other_writer.then_some(step.event)),
        };
        // A read-modify-write never sees another write there, because something may follow it.
        let is_rmw = |&(i, _): &(usize, _)| trace.events[i].op() == Op::Rmw;
        for (read, writers) in possible.iter().enumerate().filter(|it| !is_rmw(it)) {
            let reorderings = Reorderings::new(&trace, Reads::IdenticalTerminal);
            let found = reorderings.with_monitor(None, step, |&seen| seen == Some(read));
            let other = writers.iter().any(|&writer| writer != saw[read]);
            assert_eq!(other, found.is_some(), "seed {seed}, read {read}");
            broken += usize::from(other);
        }
    }
    assert!(broken > enough(100));
}
