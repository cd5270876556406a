//! Compares the clocks with the transitive closure of the pairwise definition, on random traces.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_causality::{Clocks, Epoch, Order, Stamp};
use foresee_testkit::oracle::{self, Relation};
use foresee_testkit::{enough, generated, random_trace, seeds, shrink, trace};
use foresee_trace::generate::Config;
use foresee_trace::{Id, Op, ThreadId, Trace};

const ORDERS: [(Order, Relation); 6] = [
    (Order::Mazurkiewicz, Relation::Mazurkiewicz),
    (Order::ReadsFrom, Relation::ReadsFrom),
    (Order::SyncOnly, Relation::SyncOnly),
    (Order::Needs, Relation::Needs),
    (Order::HappensBefore, Relation::HappensBefore),
    (Order::Schedulable, Relation::Schedulable),
];

/// All stamps of a trace, with the direct causes of each event.
fn stamps<const N: usize>(
    trace: &Trace,
    order: Order,
    relevant: impl Fn(usize) -> bool,
) -> (Clocks<N>, Vec<Stamp<N>>, Vec<Vec<Epoch>>) {
    let mut clocks = Clocks::new(order);
    let mut stamps = Vec::new();
    let mut causes = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        stamps.push(clocks.event_if(event, relevant(i)).unwrap());
        causes.push(clocks.causes().to_vec());
    }
    (clocks, stamps, causes)
}

fn is_step(trace: &Trace, i: usize) -> bool {
    trace.events[i].op() != Op::Init
}

/// Checks that the clocks represent the order exactly; the error says where they do not.
fn check(trace: &Trace, order: Order, relation: Relation) -> Result<(), String> {
    let expected = oracle::Order::new(trace, relation);
    let (clocks, stamps, causes) = stamps::<1>(trace, order, |_| true);
    let n = trace.events.len();
    for f in (0..n).filter(|&f| is_step(trace, f)) {
        for e in 0..n {
            let before = e == f || expected.before(e, f);
            if clocks.knows(&stamps[f], stamps[e].epoch()) != before {
                return Err(format!("{order:?}: event {e} before event {f} should be {before}"));
            }
        }
        for cause in &causes[f] {
            let e = stamps.iter().position(|s| s.epoch() == *cause).unwrap();
            if !expected.before(e, f) || trace.events[e].thread() == trace.events[f].thread() {
                return Err(format!("{order:?}: event {e} is no cause of event {f}"));
            }
        }
        // Together with program order, the direct causes generate the whole order.
        for e in (0..f).filter(|&e| expected.before(e, f) && is_step(trace, e)) {
            let own = (0..f).rfind(|&p| {
                is_step(trace, p) && trace.events[p].thread() == trace.events[f].thread()
            });
            let through = |p: Epoch| {
                let p = stamps.iter().position(|s| s.epoch() == p).unwrap();
                p == e || expected.before(e, p)
            };
            let explained = own.is_some_and(|p| p == e || expected.before(e, p))
                || causes[f].iter().any(|&c| through(c));
            if !explained {
                return Err(format!("{order:?}: no cause explains event {e} before event {f}"));
            }
        }
    }
    Ok(())
}

#[test]
fn clocks_equal_the_transitive_closure() {
    for seed in seeds(25_000) {
        let trace = random_trace(seed);
        for (order, relation) in ORDERS {
            if let Err(error) = check(&trace, order, relation) {
                let small = shrink(&trace, |t| check(t, order, relation).is_err());
                panic!("seed {seed}: {error}; smallest:\n{small}");
            }
        }
    }
}

/// Programs may notify without holding the lock, which the generator never does.
#[test]
fn clocks_equal_the_closure_when_notifications_hold_no_lock() {
    let mut notified = 0;
    for seed in seeds(20_000) {
        let config = Config { waits: 0.5, conditions: 1, events: 16, ..Config::small(seed) };
        let mut trace = generated(config);
        let mut rng = fastrand::Rng::with_seed(seed);
        let waits = trace.events.iter().any(|e| e.op() == Op::WaitBegin);
        for event in trace.events.iter_mut().filter(|e| waits && e.op() == Op::Read) {
            let op = if rng.bool() { Op::Notify } else { Op::NotifyAll };
            *event = foresee_trace::Event::new(event.thread(), op).with_target(0);
            notified += 1;
        }
        for (order, relation) in ORDERS {
            check(&trace, order, relation).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{trace}"));
        }
    }
    assert!(notified > enough(1000), "only {notified} notifications");
}

#[test]
fn clocks_of_many_threads_equal_the_transitive_closure() {
    for seed in 0..300 {
        // More threads than fit into one node of a clock.
        let config = Config { threads: 40, events: 120, ..Config::small(seed) };
        let trace = generated(config);
        for (order, relation) in ORDERS {
            check(&trace, order, relation).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{trace}"));
        }
    }
}

#[test]
fn relevant_clocks_count_relevant_events_and_hear_of_all() {
    for seed in seeds(10_000) {
        let trace = random_trace(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let relevant: Vec<bool> = trace.events.iter().map(|_| rng.bool()).collect();
        let order = oracle::Order::new(&trace, Relation::Mazurkiewicz);
        let (clocks, stamps, _) = stamps::<2>(&trace, Order::Mazurkiewicz, |i| relevant[i]);
        for f in (0..trace.events.len()).filter(|&f| is_step(&trace, f)) {
            for t in (0..trace.names.threads.len()).map(ThreadId::new) {
                let counted = |only_relevant: bool| {
                    let counts = |&e: &usize| {
                        trace.events[e].thread() == t
                            && is_step(&trace, e)
                            && (e == f || order.before(e, f))
                            && (relevant[e] || !only_relevant)
                    };
                    (0..trace.events.len()).filter(counts).count() as u32
                };
                assert_eq!(clocks.count(&stamps[f], t), [counted(false), counted(true)], "{seed}");
            }
        }
    }
}

#[test]
fn clocks_of_the_papers_examples() {
    // The landing controller: approval and landing are ordered, the radio is concurrent.
    let trace = trace! {
        T2: r(radio)=1;
        T1: r(radio)=1, w(approved)=1, r(approved)=1, w(landing)=1;
        T2: w(radio)=0, r(radio)=0
    };
    let (clocks, stamps, _) =
        stamps::<2>(&trace, Order::Mazurkiewicz, |i| trace.events[i].op() == Op::Write);
    let vector = |i: usize| [1, 0].map(|t| clocks.count(&stamps[i], ThreadId(t))[1]);
    // T2 comes first in the file, so it has number 0.
    assert_eq!(vector(2), [1, 0]);
    assert_eq!(vector(4), [2, 0]);
    assert_eq!(vector(5), [0, 1]);
}

#[test]
fn threads_may_be_many_and_come_late() {
    // A thousand threads pass a token on; each knows all before it and none after it.
    let mut trace = Trace::default();
    let l = trace.names.locks.intern("token").unwrap();
    for i in 0..1000 {
        let t = trace.names.thread(&format!("T{i}")).unwrap();
        let event = |op| foresee_trace::Event::new(t, op).with_target(l.0);
        trace.events.extend([event(Op::Acquire), event(Op::Release)]);
    }
    let (clocks, stamps, _) = stamps::<1>(&trace, Order::Mazurkiewicz, |_| true);
    for (i, stamp) in stamps.iter().enumerate().step_by(77) {
        for t in 0..1000 {
            let expected = (i + 1).saturating_sub(2 * t).min(2) as u32;
            assert_eq!(clocks.count(stamp, ThreadId::new(t)), [expected]);
        }
    }
}
