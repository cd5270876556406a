//! Compares clocks that count some events with those that count all, on random traces.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use fastrand::Rng;
use foresee_causality::{Clock, Clocks, LaneClocks, LaneVector, Lanes, Order};
use foresee_testkit::{enough, random_trace, seeds};
use foresee_trace::{Op, Trace};

/// The lanes of each event: one for some events of each thread, and one for the writes of a
/// variable.
fn lanes(trace: &Trace, rng: &mut Rng) -> Vec<Vec<u32>> {
    let mut threads = Vec::new();
    trace
        .events
        .iter()
        .map(|event| {
            let mut lanes = Vec::new();
            if event.op() != Op::Init && rng.u8(..3) == 0 {
                let place = threads.iter().position(|t| *t == event.thread());
                let place = place.unwrap_or_else(|| {
                    threads.push(event.thread());
                    threads.len() - 1
                });
                lanes.push(place as u32 + 1);
            }
            if event.op().writes() && event.var().0 == 0 {
                lanes.push(0);
            }
            lanes
        })
        .collect()
}

/// The order among the events with lanes; after `widen_at` events, in wider vectors.
fn order<V: LaneVector, W: LaneVector>(
    trace: &Trace,
    order: Order,
    lanes: &[Vec<u32>],
    widen_at: usize,
) -> Vec<(usize, usize)> {
    let mut narrow = LaneClocks::<V>::new(order);
    let mut seen: Vec<(usize, u32, u32)> = Vec::new();
    let mut before = Vec::new();
    let mut wide: Option<LaneClocks<W>> = None;
    for (f, event) in trace.events.iter().enumerate() {
        if f == widen_at {
            wide = Some(narrow.widen(16, &[]).0);
        }
        let mut times = Vec::new();
        let mut note = |count: &dyn Fn(u32) -> u32| {
            times.extend(lanes[f].iter().map(|&lane| (f, lane, count(lane))));
            let known = seen.iter().filter(|(_, lane, time)| *time <= count(*lane));
            before.extend(known.map(|(e, _, _)| (*e, f)));
        };
        match &mut wide {
            None => {
                let now = narrow.event(event, &lanes[f]).unwrap();
                note(&|lane| narrow.count(&now, lane));
                narrow.forget_old(std::iter::empty());
            }
            Some(wide) => {
                let now = wide.event(event, &lanes[f]).unwrap();
                note(&|lane| wide.count(&now, lane));
                wide.forget_old(std::iter::empty());
            }
        }
        seen.extend(times);
    }
    before.sort_unstable();
    before.dedup();
    before
}

#[test]
fn lanes_know_what_clocks_know() {
    let mut pairs = 0;
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let relation = [Order::Mazurkiewicz, Order::ReadsFrom, Order::Needs][seed as usize % 3];
        let mut lanes = lanes(&trace, &mut rng);
        if relation != Order::Mazurkiewicz {
            // The writes of a variable are a chain only in the Mazurkiewicz order.
            lanes.iter_mut().for_each(|lanes| lanes.retain(|&lane| lane != 0));
        }
        let mut clocks: Clocks = Clocks::new(relation);
        let stamps: Vec<_> = trace.events.iter().map(|e| clocks.event(e).unwrap()).collect();
        let mut expected = Vec::new();
        for f in 0..trace.events.len() {
            let known = (0..f).filter(|&e| !lanes[e].is_empty() && stamps[f].time[0] > 0);
            let known = known.filter(|&e| clocks.knows(&stamps[f], stamps[e].epoch()));
            expected.extend(known.map(|e| (e, f)));
        }
        expected.sort_unstable();
        pairs += expected.len();
        let at = rng.usize(..trace.events.len() + 1);
        let context = || format!("seed {seed}, {lanes:?}\n{trace}");
        assert_eq!(
            order::<Lanes<16>, Clock>(&trace, relation, &lanes, at),
            expected,
            "{}",
            context()
        );
        assert_eq!(
            order::<Clock, Lanes<16>>(&trace, relation, &lanes, at),
            expected,
            "{}",
            context()
        );
    }
    assert!(pairs > enough(100_000), "only {pairs} pairs");
}
