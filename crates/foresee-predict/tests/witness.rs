//! Orders that show a tuple of events, against the definition.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use fastrand::Rng;
use foresee_causality::judge::Judge;
use foresee_predict::pattern::linearise;
use foresee_testkit::oracle::{Order, Relation};
use foresee_testkit::{enough, random_trace, seeds};
use foresee_trace::{Op, Trace};

fn switches(trace: &Trace, order: &[u64]) -> usize {
    let thread = |i: u64| trace.events[i as usize].thread();
    order.windows(2).filter(|pair| thread(pair[0]) != thread(pair[1])).count()
}

/// The blocks in the order of the trace, which is what the theory writes down.
fn plain_blocks(order: &Order, tuple: &[u64]) -> Vec<u64> {
    let mut run: Vec<u64> = Vec::new();
    for &goal in tuple {
        let block: Vec<u64> = (0..=goal)
            .filter(|e| !run.contains(e))
            .filter(|&e| e == goal || order.before(e as usize, goal as usize))
            .collect();
        run.extend(block);
    }
    run
}

#[test]
fn every_tuple_that_can_be_shown_is_shown() {
    let (mut shown, mut ours, mut plain) = (0, 0, 0);
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let steps: Vec<u64> = (0..trace.events.len() as u64)
            .filter(|&i| trace.events[i as usize].op() != Op::Init)
            .collect();
        if steps.is_empty() {
            continue;
        }
        let tuple: Vec<u64> =
            (0..rng.usize(1..=4)).map(|_| steps[rng.usize(..steps.len())]).collect();
        let is_admissible = (0..tuple.len()).all(|i| {
            let later = &tuple[i + 1..];
            later.iter().all(|&e| e != tuple[i] && !order.before(e as usize, tuple[i] as usize))
        });
        if !is_admissible {
            continue;
        }
        let run = linearise(&trace, &tuple).unwrap();
        let context = || format!("seed {seed}: {tuple:?} as {run:?}\n{trace}");
        let judged = Judge::new(&trace).check_causality(&run);
        judged.unwrap_or_else(|e| panic!("{e}: {}", context()));
        let found: Vec<u64> = run.iter().copied().filter(|e| tuple.contains(e)).collect();
        assert_eq!(found, tuple, "{}", context());
        assert_eq!(run.last(), tuple.last(), "{}", context());
        // Nothing that is not needed happens, but for initial values.
        let needed = plain_blocks(&order, &tuple);
        let is_step = |e: &&u64| trace.events[**e as usize].op() != Op::Init;
        let steps = |run: &[u64]| run.iter().filter(is_step).copied().collect::<Vec<u64>>();
        assert_eq!(steps(&run).len(), steps(&needed).len(), "{}", context());
        ours += switches(&trace, &steps(&run));
        plain += switches(&trace, &steps(&needed));
        shown += 1;
    }
    assert!(shown > enough(5_000), "only {shown}");
    assert!(ours < plain, "{ours} context switches, {plain} in the order of the trace");
}
