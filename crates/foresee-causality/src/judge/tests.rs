use foresee_testkit::{random_trace, trace};

use super::*;

/// Only orders that keep the causality.
const CAUSAL: Option<Reads> = None;
const STRICT: Option<Reads> = Some(Reads::Strict);
const TERMINAL: Option<Reads> = Some(Reads::Terminal);

/// What the judge says of an order in the space that is asked for.
fn judged(
    judge: &Judge<'_>,
    order: &[u64],
    space: Option<Reads>,
) -> Result<Vec<ChangedRead>, Rejected> {
    match space {
        Some(reads) => judge.check(order, reads),
        None => judge.check_causality(order).map(|()| Vec::new()),
    }
}

#[test]
fn reads_find_values_whoever_wrote_them() {
    let judge = |trace: &Trace, order: &[u64], space| judged(&Judge::new(trace), order, space);
    let t = trace! { T1: w(x)=1, w(y)=1, w(x)=1; T2: r(x)=1, w(y)=2 };
    assert_eq!(judge(&t, &[0, 3, 4], STRICT), Ok(Vec::new()));
    assert!(judge(&t, &[0, 3, 4], CAUSAL).is_err());
    assert!(judge(&t, &[3, 4], STRICT).is_err());
    // The initial value counts as a write, too, if it is declared or was read.
    let t = trace! { T1: init(x)=0; T1: w(x)=1, w(x)=0; T2: r(x)=0, w(y) };
    assert_eq!(judge(&t, &[3, 4], STRICT), Ok(Vec::new()));
    let t = trace! { T1: r(x)=0, w(x)=1, w(x)=0; T2: rmw(x)=0->5, w(y) };
    assert_eq!(judge(&t, &[3, 4], STRICT), Ok(Vec::new()));
    let t = trace! { T1: w(x)=1, w(x)=0; T2: r(x)=0, w(y) };
    assert!(judge(&t, &[2, 3], STRICT).is_err());
    // Unknown values, and values that may be addresses, are not compared.
    let t = trace! { T1: w(x)=1, w(y), w(x)=1; T2: r(x), w(y) };
    assert!(judge(&t, &[0, 3, 4], STRICT).is_err());
    let t = trace! { T1: w(x)=93824992, w(y), w(x)=93824992; T2: r(x)=93824992, w(y) };
    assert!(judge(&t, &[0, 3, 4], STRICT).is_err());
    // With any values, threads continue, and the changed reads are reported.
    let t = trace! { T1: w(x)=1; T2: r(x)=1, rmw(x)=1->2, w(y) };
    let any = Some(Reads::Any);
    let changed = judge(&t, &[1, 2, 3], any).unwrap();
    assert_eq!(changed.iter().map(|read| read.read).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(judge(&t, &[0, 1, 2, 3], any), Ok(Vec::new()));
}

#[test]
fn each_rule_has_its_refusal() {
    let check = |trace: &Trace, order: &[u64], space, expected: &str| {
        let error = judged(&Judge::new(trace), order, space).unwrap_err();
        assert!(error.reason.contains(expected), "{error}");
    };
    let ok = |trace: &Trace, order: &[u64], space| {
        judged(&Judge::new(trace), order, space).unwrap_or_else(|e| panic!("{e}"))
    };
    let t = trace! { T1: w(x), w(x); T2: r(x), w(y) };
    check(&t, &[9], STRICT, "no such event");
    check(&t, &[0, 0], STRICT, "twice");
    check(&t, &[1], STRICT, "earlier event");
    check(&t, &[0, 2], STRICT, "another write");
    check(&t, &[0, 2, 3], TERMINAL, "continues after");
    let changed = ok(&t, &[0, 2, 1], TERMINAL);
    assert_eq!(changed, [ChangedRead { read: 2, saw: Some(1), sees: Some(0) }]);

    let t = trace! { T1: w(x); T2: w(x); T3: w(y) };
    check(&t, &[1, 0], CAUSAL, "are reordered");
    ok(&t, &[2, 0, 1], CAUSAL);
    ok(&t, &[1, 0], STRICT);

    let t = trace! { T1: r(x); T2: r(x); T3: w(x) };
    ok(&t, &[1, 0, 2], CAUSAL);
    check(&t, &[1, 2, 0], CAUSAL, "are reordered");

    let t = trace! { T1: acq(l), rel(l); T2: acq(l) };
    check(&t, &[0, 2], STRICT, "another thread holds");
    check(&t, &[2, 0], CAUSAL, "are reordered");
    ok(&t, &[2], STRICT);

    let t = trace! { T1: acq(l); T2: busy(l), w(x); T1: rel(l) };
    check(&t, &[1], STRICT, "depends on");
    check(&t, &[0, 3, 1], STRICT, "has been released");
    ok(&t, &[0, 1, 2], STRICT);
    let t = trace! { T1: racq(l); T2: racq(l); T3: busy(l); T1: rrel(l); T3: busy(l) };
    check(&t, &[1, 2], STRICT, "depends on");
    ok(&t, &[0, 1, 2, 3, 4], STRICT);

    let t = trace! { T1: fork(T2); T2: r(x); T1: join(T2), w(x) };
    check(&t, &[1], STRICT, "depends on");
    check(&t, &[0, 2], STRICT, "depends on");

    let t = trace! { T1: wait_begin(c); T2: notify(c); T1: wait_end(c) };
    check(&t, &[0, 2], STRICT, "depends on");
    check(&t, &[1, 0], CAUSAL, "has not begun");
    // The notification is lost, but this shows only when the wait should end.
    ok(&t, &[1, 0], STRICT);
    check(&t, &[1, 0, 2], STRICT, "precedes the wait");

    let t = trace! { T1: w(x); T2: rmw(x) };
    check(&t, &[1], TERMINAL, "another write");
    let t = trace! { T1: w(x); T2: r(x); T3: join(T2) };
    check(&t, &[1, 2], TERMINAL, "is joined");
}

#[test]
fn an_event_is_next_when_its_thread_has_come_there() {
    let next = |trace: &Trace, order: &[u64], next: &[u64]| {
        Judge::new(trace).check_next(order, next, Reads::Terminal).map_err(|e| e.reason)
    };
    let t = trace! { T1: acq(l), acq(m), rel(m), rel(l); T2: acq(m), acq(l) };
    assert!(next(&t, &[0, 4], &[1, 5]).is_ok());
    assert!(next(&t, &[0], &[1, 5]).unwrap_err().contains("has not happened"));
    assert!(next(&t, &[0, 1], &[1]).unwrap_err().contains("has happened"));
    let t = trace! { T1: w(x), fork(T2); T2: r(x), w(y); T1: join(T2) };
    assert!(next(&t, &[0], &[2]).unwrap_err().contains("started"));
    assert!(next(&t, &[0, 1], &[2, 4]).is_ok());
    let t = trace! { T1: w(x); T2: r(x), w(y) };
    assert!(next(&t, &[1, 0], &[2]).unwrap_err().contains("would continue"));
}

#[test]
fn the_observed_order_is_accepted_everywhere() {
    for seed in 0..500 {
        let trace = random_trace(seed);
        let order: Vec<u64> = (0..trace.events.len() as u64).collect();
        for space in [CAUSAL, STRICT, TERMINAL] {
            let changed = judged(&Judge::new(&trace), &order, space);
            assert_eq!(changed, Ok(vec![]), "seed {seed}\n{trace}");
        }
    }
}
