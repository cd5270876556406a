//! Compares the clocks of notes with the true order of the actions.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_causality::{Clocks, NoteClocks, Order, Stamp};
use foresee_testkit::asynchronous::{Execution, execution};
use foresee_testkit::{enough, parse_trace, seeds, trace};
use foresee_trace::{FileOrder, Op, Trace};

/// The pairs that the clocks claim, in both directions of the file.
fn claimed(trace: &Trace) -> (Vec<(usize, usize)>, NoteClocks) {
    let mut clocks = NoteClocks::default();
    let mut stamps: Vec<Stamp> = Vec::new();
    for event in &trace.events {
        stamps.push(clocks.event(event, &trace.pool).unwrap());
        clocks.forget_old(&stamps);
    }
    let n = trace.events.len();
    let is_step = |&i: &usize| trace.events[i].op() != Op::Init;
    let pairs = (0..n).filter(is_step).flat_map(|f| (0..n).filter(is_step).map(move |e| (e, f)));
    let pairs = pairs.filter(|&(e, f)| e != f && clocks.knows(&stamps[f], stamps[e].epoch()));
    (pairs.collect(), clocks)
}

#[test]
fn no_order_is_claimed_that_was_none() {
    let (mut kept, mut lost, mut uncertain, mut conflicting) = (0, 0, 0, 0);
    for seed in seeds(6_000) {
        let Execution { trace, order } = execution(seed, false);
        assert_eq!(trace.remarks.order, FileOrder::Notes);
        let (pairs, clocks) = claimed(&trace);
        for &(e, f) in &pairs {
            assert!(order.before(e, f), "seed {seed}: {e} is not before {f}\n{trace}");
        }
        let is_step = |i: usize| trace.events[i].op() != Op::Init;
        let n = trace.events.len();
        let all = (0..n).flat_map(|e| (0..n).map(move |f| (e, f)));
        let true_pairs =
            all.filter(|&(e, f)| is_step(e) && is_step(f) && order.before(e, f)).count();
        kept += pairs.len();
        lost += true_pairs - pairs.len();
        uncertain += clocks.uncertain_reads();
        conflicting += clocks.conflicting_writes();
    }
    // The clocks do claim enough.
    assert!(
        kept > 20 * lost && uncertain > enough(1_000) && conflicting > enough(1_000),
        "{kept} {lost} {uncertain} {conflicting}"
    );
}

#[test]
fn with_synchronous_notes_the_order_is_exact() {
    for seed in seeds(6_000) {
        let Execution { trace, order } = execution(seed, true);
        let mut clocks: Clocks = Clocks::new(Order::ReadsFrom);
        let stamps: Vec<Stamp> = trace.events.iter().map(|e| clocks.event(e).unwrap()).collect();
        for f in (0..stamps.len()).filter(|&f| stamps[f].time[0] > 0) {
            for e in (0..stamps.len()).filter(|&e| stamps[e].time[0] > 0 && e != f) {
                let known = clocks.knows(&stamps[f], stamps[e].epoch());
                assert_eq!(known, order.before(e, f), "seed {seed}: {e}, {f}\n{trace}");
            }
        }
        // The rule for notes is sound for them as well.
        let (pairs, _) = claimed(&trace);
        assert!(pairs.iter().all(|&(e, f)| order.before(e, f)), "seed {seed}\n{trace}");
    }
}

/// The pairs of different threads that are claimed.
fn across(trace: &Trace) -> Vec<(usize, usize)> {
    let thread = |i: usize| trace.events[i].thread();
    claimed(trace).0.into_iter().filter(|&(e, f)| thread(e) != thread(f)).collect()
}

#[test]
fn the_writer_may_be_any_of_several() {
    let three = trace! { T1: w(x)=1; T2: w(x)=1; T3: w(x)=1; T4: r(x)=1 };
    assert_eq!(across(&three), []);
    let (_, clocks) = claimed(&three);
    assert_eq!((clocks.conflicting_writes(), clocks.uncertain_reads()), (2, 1));
    // Both writes of one thread: only the first is certain.
    assert_eq!(across(&trace! { T1: w(x)=1, w(x)=1; T2: r(x)=1 }), [(0, 2)]);
    // One writer: exact.
    assert_eq!(across(&trace! { T1: w(y)=2, w(x)=1; T2: r(x)=1 }), [(0, 2), (1, 2)]);
    // The value is, or may be, the initial one.
    assert_eq!(across(&trace! { T1: init(x)=1; T1: w(x)=1; T2: r(x)=1 }), []);
    assert_eq!(across(&parse_trace("T1: w(x)=0; T2: vw(y)=1, r(x)=0", false).unwrap()), []);
    // What both candidates come after is certain.
    let common = trace! {
        T0: w(y)=1, fork(T1), fork(T2); T1: w(x)=1; T2: w(x)=1; T3: r(x)=1
    };
    assert!(across(&common).contains(&(0, 5)) && !across(&common).contains(&(3, 5)));
    // A value that was not captured may be any thread's.
    assert_eq!(across(&trace! { T1: w(x)=1; T2: r(x) }), []);
}

#[test]
fn overwritten_values_are_no_candidates() {
    // The second write of T1 is known to T2 by the lock, and it overwrote the first.
    let notes = trace! {
        T1: acq(l), w(x)=1, w(x)=2, rel(l); T3: event(a), w(x)=1; T2: acq(l), r(x)=1
    };
    assert!(across(&notes).contains(&(4, 7)) && across(&notes).contains(&(5, 7)));
}

#[test]
fn of_many_writes_only_the_latest_are_told_apart() {
    let text: String = (1..200).map(|v| format!("T1: w(x)={v}; ")).collect();
    // The first of the writes that are not kept apart may have written it, too.
    let notes = parse_trace(&format!("{text} T2: r(x)=198"), false).unwrap();
    assert_eq!(across(&notes), [(0, 199)]);
    // A write that the reader knows has overwritten them all.
    let notes = format!("{text} T1: w(y)=1, w(x)=3; T2: r(y)=1, event(a), r(x)=3");
    let notes = parse_trace(&notes, false).unwrap();
    assert_eq!(across(&notes).iter().filter(|pair| pair.1 == 203).count(), 201);
}
