//! The judge against the oracles: every order of few events, correct or not.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_causality::judge::{Judge, Reads, Space};
use foresee_testkit::oracle::{Order, Relation, is_correct_reordering};
use foresee_testkit::random_trace;
use foresee_trace::{Op, Trace};

/// A random order of some steps of a trace: often a correct one, often nearly so.
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
        // Step by step, so that long correct orders come about.
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
    for seed in 0..20_000 {
        let trace = random_trace(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let order = random_order(&trace, &mut rng);
        let indices: Vec<u64> = order.iter().map(|&i| i as u64).collect();
        let judge = Judge::new(&trace);
        let context = || format!("seed {seed}: {order:?}\n{trace}");
        for (reads, terminal) in [(Reads::Strict, false), (Reads::Terminal, true)] {
            let ours = judge.check(&indices, Space::Correct(reads)).is_ok();
            let theirs = is_correct_reordering(&trace, &order, terminal).is_ok();
            assert_eq!(ours, theirs, "{}", context());
            accepted[usize::from(terminal)] += usize::from(ours);
        }
        // A beginning of a linearisation has, before each event, all that is before it.
        let before = Order::new(&trace, Relation::Mazurkiewicz);
        let is_step = |i: &usize| trace.events[*i].op() != Op::Init;
        let complete = |position: usize| {
            let all = (0..trace.events.len()).filter(is_step);
            all.filter(|&i| before.before(i, order[position]))
                .all(|i| order[..position].contains(&i))
        };
        let ours = judge.check(&indices, Space::Mazurkiewicz).is_ok();
        assert_eq!(ours, (0..order.len()).all(complete), "{}", context());
        accepted[2] += usize::from(ours);
    }
    assert!(accepted.iter().all(|&n| n > 2_000 && n < 19_000), "{accepted:?}");
}
