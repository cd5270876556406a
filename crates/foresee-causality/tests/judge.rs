//! Compares the judge with the oracles: every order of few events, correct or not.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_causality::judge::{IncrementalReplay, Judge, Reads};
use foresee_testkit::oracle::{Order, Relation, is_correct_reordering};
use foresee_testkit::{enough, random_trace, seeds};
use foresee_trace::{Op, Trace};

/// A random order of some steps of a trace: often correct, often nearly so.
fn random_order(trace: &Trace, rng: &mut fastrand::Rng) -> Vec<usize> {
    let mut threads: Vec<Vec<usize>> = Vec::new();
    for (i, event) in trace.events.iter().enumerate().filter(|(_, e)| e.op() != Op::Init) {
        let t = event.thread().0 as usize;
        threads.resize(threads.len().max(t + 1), Vec::new());
        threads[t].push(i);
    }
    threads.iter_mut().for_each(|own| own.reverse());
    let mut order = Vec::new();
    while threads.iter().any(|own| !own.is_empty()) && rng.u8(..12) > 0 {
        let t = rng.usize(..threads.len());
        let Some(next) = threads[t].pop() else { continue };
        order.push(next);
        // Step by step, so that long correct orders arise.
        if rng.u8(..8) > 0 && is_correct_reordering(trace, &order, true).is_err() {
            order.pop();
            threads[t].push(next);
        }
    }
    order
}

#[test]
fn the_judge_accepts_what_the_definitions_do() {
    let mut accepted = [0; 3];
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let order = random_order(&trace, &mut rng);
        let indices: Vec<u64> = order.iter().map(|&i| i as u64).collect();
        let judge = Judge::new(&trace);
        let context = || format!("seed {seed}: {order:?}\n{trace}");
        for (reads, terminal) in [(Reads::Strict, false), (Reads::Terminal, true)] {
            let ours = judge.check(&indices, reads).is_ok();
            let theirs = is_correct_reordering(&trace, &order, terminal).is_ok();
            assert_eq!(ours, theirs, "{}", context());
            accepted[usize::from(terminal)] += usize::from(ours);
        }
        // A prefix of a linearisation contains all predecessors of each of its events.
        let before = Order::new(&trace, Relation::Mazurkiewicz);
        let is_step = |i: &usize| trace.events[*i].op() != Op::Init;
        let complete = |position: usize| {
            let all = (0..trace.events.len()).filter(is_step);
            all.filter(|&i| before.before(i, order[position]))
                .all(|i| order[..position].contains(&i))
        };
        let ours = judge.check_causality(&indices).is_ok();
        assert_eq!(ours, (0..order.len()).all(complete), "{}", context());
        accepted[2] += usize::from(ours);
    }
    assert!(accepted.iter().all(|&n| n > enough(2_000) && n < enough(19_000)), "{accepted:?}");
}

/// Orders that begin as observed are judged like the same orders written out in full.
#[test]
fn an_incremental_replay_agrees_with_the_judge() {
    let mut accepted = 0;
    for seed in seeds(4_000) {
        let trace = random_trace(seed);
        let judge = Judge::new(&trace);
        let mut rng = fastrand::Rng::with_seed(seed);
        let reads = if rng.bool() { Reads::Strict } else { Reads::Terminal };
        let mut replay = IncrementalReplay::new(&judge, reads);
        let mut observed = 0;
        for _ in 0..6 {
            observed = match rng.u8(..6) {
                0 => rng.u64(..=trace.events.len() as u64),
                _ => rng.u64(observed..=trace.events.len() as u64),
            };
            let order = random_order(&trace, &mut rng);
            let mut order: Vec<u64> = order.into_iter().map(|i| i as u64).collect();
            if rng.u8(..4) > 0 {
                order.retain(|&i| i >= observed);
            }
            let next: Vec<u64> =
                (0..rng.usize(..3)).map(|_| rng.u64(..trace.events.len() as u64)).collect();
            let whole: Vec<u64> = (0..observed).chain(order.iter().copied()).collect();
            let expected = judge.check_next(&whole, &next, reads);
            let ours =
                replay.check_next(observed, &order, &next, |seen| seen.changed_reads().to_vec());
            accepted += usize::from(ours.is_ok());
            assert_eq!(ours, expected, "seed {seed}: {observed} {order:?} {next:?}\n{trace}");
        }
    }
    assert!(accepted > enough(2_000), "{accepted}");
}
