//! Compares the validator with the rules, checked one by one, on valid and on damaged traces.

use foresee_testkit::oracle::wellformed::{Rule, violations};
use foresee_testkit::{enough, random_trace, raw_trace, seeds};
use foresee_trace::{Mode, Position, ReadError, Trace, Validated};

fn validated(trace: &Trace, mode: Mode) -> Result<Trace, ReadError> {
    Trace::load(&mut Validated::new(trace.source(), mode))
}

/// The first event that violates a rule for files; which operations are outermost is left to the
/// validator.
fn first_violation(trace: &Trace) -> Option<usize> {
    violations(trace).into_iter().find(|v| v.rule != Rule::Outermost).map(|v| v.event)
}

/// A trace with some events dropped, repeated or swapped.
fn damaged(seed: u64) -> Trace {
    let mut trace = random_trace(seed);
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..rng.usize(1..=3) {
        let n = trace.events.len();
        if n < 2 {
            break;
        }
        let (i, j) = (rng.usize(..n), rng.usize(..n));
        match rng.u8(..4) {
            0 => drop(trace.events.remove(i)),
            1 => trace.events.insert(j, trace.events[i]),
            2 => trace.events.swap(i, j),
            _ => trace.events[i] = trace.events[i].with_thread(trace.events[j].thread()),
        }
    }
    trace
}

#[test]
fn generated_traces_are_accepted_as_they_are() {
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let read = validated(&trace, Mode::Reject).unwrap();
        assert_eq!(read.events.len(), trace.events.len());
        let same = |i: &usize| {
            let (a, b) = (trace.events[*i], read.events[*i]);
            a.op() == b.op()
                && a.describe(&trace.names, &trace.pool).to_string()
                    == b.describe(&read.names, &read.pool).to_string()
        };
        assert!((0..trace.events.len()).all(|i| same(&i)), "seed {seed}");
    }
}

#[test]
fn exactly_the_first_violation_is_reported() {
    let mut rejected = 0;
    for seed in seeds(30_000) {
        let trace = damaged(seed);
        match (validated(&trace, Mode::Reject), first_violation(&trace)) {
            (Ok(_), None) => {}
            (Err(error), Some(event)) => {
                assert_eq!(error.at(), Position::Event(event as u64), "seed {seed}: {error}");
                rejected += 1;
            }
            (result, expected) => panic!("seed {seed}: {result:?}, but expected {expected:?}"),
        }
    }
    assert!(
        rejected > enough(5_000),
        "only {rejected} traces were damaged enough to test anything"
    );
}

#[test]
fn repaired_traces_are_well_formed_and_the_repairs_are_told() {
    for seed in seeds(30_000) {
        let trace = damaged(seed);
        let mut source = Validated::new(trace.source(), Mode::Repair);
        let repaired = Trace::load(&mut source).unwrap();
        let told = repaired.remarks.warnings.len() as u64;
        assert_eq!(source.repairs() > 0, first_violation(&trace).is_some(), "seed {seed}");
        assert_eq!(source.repairs().min(20), told.min(20), "seed {seed}");
        assert_eq!(violations(&repaired), [], "seed {seed}: {:?}", repaired.remarks.warnings);
    }
}

#[test]
fn messages_name_the_thread_and_what_was_expected() {
    let message = |trace: Trace| validated(&trace, Mode::Reject).unwrap_err().to_string();
    assert_eq!(
        message(raw_trace! { T1: acq(l); T2: rel(l) }),
        "event 1: lock l released by T2 but held by T1"
    );
    assert_eq!(
        message(raw_trace! { T1: acq(l); T2: acq(l) }),
        "event 1: acq(l) by T2, but the lock is held by T1"
    );
    assert_eq!(
        message(raw_trace! { T2: w(x); T1: fork(T2) }),
        "event 1: T1 forks T2, but T2 was forked before or has events already; a fork must come \
         first"
    );
    assert_eq!(
        message(raw_trace! { T1: fork(T2), join(T2); T2: w(x)=3 }),
        "event 2: w(x)=3 by T2, but T2 was joined earlier (event 1)"
    );
    assert_eq!(
        message(raw_trace! { T2: thread_begin; T1: join(T2) }),
        "event 1: T1 joins T2, but T2 is still running"
    );
    assert_eq!(
        message(raw_trace! { T1: w(x)=1; T2: r(x)=2 }),
        "event 1: T2 reads 2 from x, but its last value was 1"
    );
}

#[test]
fn repairs_change_as_little_as_possible() {
    let repaired = |trace: Trace| {
        let trace = validated(&trace, Mode::Repair).unwrap();
        let event = |e: &foresee_trace::Event| {
            let thread = trace.names.threads.get(e.thread());
            format!("{thread} {}", e.describe(&trace.names, &trace.pool))
        };
        trace.events.iter().map(event).collect::<Vec<_>>().join("; ")
    };
    // A missing release is inserted before the next acquire, and the late one is dropped.
    assert_eq!(
        repaired(raw_trace! { T1: acq(l); T2: acq(l); T1: rel(l) }),
        "T1 acq(l); T1 rel(l); T2 acq(l)"
    );
    // A thread number that is reused becomes another thread.
    assert_eq!(
        repaired(raw_trace! { M: fork(T); T: w(x); M: join(T), fork(T); T: w(x); M: join(T) }),
        "M fork(T); T w(x); M join(T); M fork(T#2); T#2 w(x); M join(T#2)"
    );
    // The value that was read must have been written.
    assert_eq!(
        repaired(raw_trace! { T1: w(x)=1; T2: r(x)=2 }),
        "T1 w(x)=1; external w(x)=2; T2 r(x)=2"
    );
    assert_eq!(
        repaired(raw_trace! { T1: enter(f), enter(g), exit(f) }),
        "T1 enter(f); T1 enter(g); T1 exit(g); T1 exit(f)"
    );
}

/// Captures that record only some calls and returns never close some methods. If each return
/// searched all of them, this test would take hours.
#[test]
fn methods_that_are_never_left_do_not_make_later_events_slow() {
    use foresee_trace::{Event, Op};
    const CALLS: usize = 1_000_000;
    let mut trace = Trace::default();
    let thread = trace.names.thread("main").unwrap();
    let [next, iterator, last] =
        ["next", "iterator", "last"].map(|name| trace.names.syms.intern(name).unwrap());
    for _ in 0..CALLS {
        trace.events.push(Event::new(thread, Op::Exit).with_target(iterator.0));
        trace.events.push(Event::new(thread, Op::Enter).with_target(next.0));
    }
    assert_eq!(validated(&trace, Mode::Reject).unwrap().events.len(), 2 * CALLS);
    // A return from the outermost method completes all others; each is looked up once.
    trace.events.insert(0, Event::new(thread, Op::Enter).with_target(last.0));
    trace.events.push(Event::new(thread, Op::Exit).with_target(last.0));
    assert!(validated(&trace, Mode::Reject).is_err());
    assert_eq!(validated(&trace, Mode::Repair).unwrap().events.len(), 3 * CALLS + 2);
}
