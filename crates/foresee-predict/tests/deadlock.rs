//! Predicted deadlocks against exhaustive search.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/analyses/deadlock.md` come from here.

use std::collections::BTreeSet;

use crate::common::nested::Nested;
use crate::common::requirements;
use foresee_causality::judge::Reads;
use foresee_predict::checks::{CHECKS, Checks, Options};
use foresee_predict::reorder::{Answer, Effort, Goal, Search};
use foresee_predict::{Analysed, Analysis};
use foresee_testkit::{corpus, enough, oracle, seeds, trace};
use foresee_trace::{
    Detail, Event, Fact, Finding, FindingKind, HeldLock, Id, LockId, Op, Outcome, Role, Trace,
    Verdict,
};

/// Runs the check.
fn check(trace: &Trace) -> (Vec<Finding>, Analysed) {
    let kind = CHECKS.iter().find(|kind| kind.name == "deadlock").unwrap();
    let options = Options { cores: 1, ..Options::default() };
    let checks: Box<dyn Analysis> = Box::new(Checks::new(&[kind], options));
    let mut findings: Vec<Finding> = Vec::new();
    let mut source = trace.source();
    let summary =
        foresee_predict::run(&mut source, &mut [checks], &mut findings, &mut |_| {}).unwrap();
    (findings, summary.analysed.into_iter().next().unwrap())
}

/// Every event at a place of its own, so that every tuple of events is reported.
fn with_places(mut trace: Trace) -> Trace {
    for i in 0..trace.events.len() {
        let loc = trace.names.locs.intern(&format!("e:{}", i + 1)).unwrap();
        trace.events[i] = trace.events[i].with_loc(loc);
    }
    trace
}

/// The events at which the threads of each finding are stuck, the earliest first.
fn rings(findings: &[Finding]) -> BTreeSet<Vec<usize>> {
    let findings =
        findings.iter().filter(|finding| finding.message.contains("can wait for each other"));
    let ring = |finding: &Finding| {
        let next = &finding.witness.as_ref().unwrap().next;
        let mut ring: Vec<usize> = next.iter().map(|&event| event as usize).collect();
        let earliest = (0..ring.len()).min_by_key(|&i| ring[i]).unwrap();
        ring.rotate_left(earliest);
        ring
    };
    findings.map(ring).collect()
}

#[derive(Default)]
struct Count {
    traces: u32,
    real: usize,
    found: usize,
    three: usize,
    proved: u32,
    conditional: usize,
}

fn compare(name: &str, seeds: std::ops::Range<u64>, make: impl Fn(u64) -> Trace) -> Count {
    let mut count = Count::default();
    for seed in seeds {
        let trace = with_places(make(seed));
        let (mut findings, analysed) = check(&trace);
        let conditional: Vec<Finding> =
            findings.extract_if(.., |f| f.kind == FindingKind::Conditional).collect();
        if !conditional.is_empty() {
            let conceivable = oracle::deadlocks_reading(&trace, 8, oracle::Reads::Any);
            let rings = rings(&conditional);
            assert!(rings.is_subset(&conceivable), "{rings:?} seed {seed} of {name}\n{trace}");
            assert_ne!(analysed.outcome, Outcome::Exhausted, "seed {seed} of {name}\n{trace}");
            count.conditional += rings.len();
        }
        let found = rings(&findings);
        let real = oracle::deadlocks(&trace, 8);
        let context = || format!("seed {seed} of {name}\n{trace}\n{}", analysed.statement);
        assert!(found.is_subset(&real), "{found:?} {real:?} {}", context());
        if analysed.outcome == Outcome::Exhausted {
            assert_eq!(found, real, "not all others are impossible, {}", context());
            count.proved += 1;
            if findings.is_empty() {
                assert!(
                    oracle::endless_waits(&trace).is_empty(),
                    "some wait is endless, {}",
                    context()
                );
            }
        }
        count.traces += 1;
        count.real += real.len();
        count.found += found.len();
        count.three += real.iter().filter(|ring| ring.len() > 2).count();
    }
    println!(
        "{name}: {} traces, {} deadlocks, {} found, {} of more than two threads, {} traces \
         settled, {} conditional",
        count.traces, count.real, count.found, count.three, count.proved, count.conditional
    );
    assert!(count.found * 1000 >= count.real * 995, "{name}: {} of {}", count.found, count.real);
    count
}

#[test]
fn deadlocks_are_those_of_exhaustive_search() {
    let plain = Nested::PLAIN;
    let families = [
        ("two locks", 1_500, Nested { threads: 2, locks: 2, ..plain }),
        ("three locks", 1_500, plain),
        ("four threads", 700, Nested { threads: 4, ..plain }),
        ("three deep", 700, Nested { depth: 3, ..plain }),
        ("many accesses", 1_000, Nested { accesses: 40, rmws: 20, ..plain }),
        ("fork and join", 1_000, Nested { forks: 20, locks: 2, ..plain }),
        ("read-write locks", 1_000, Nested { shared: 50, locks: 2, ..plain }),
        ("re-entrant", 700, Nested { reentrant: 60, depth: 3, locks: 2, ..plain }),
        ("wait and notify", 1_000, Nested { waits: 25, locks: 2, ..plain }),
        ("try-locks", 1_000, Nested { tries: 50, locks: 2, ..plain }),
        (
            "everything",
            1_000,
            Nested { waits: 10, tries: 20, forks: 10, shared: 20, rmws: 20, ..plain },
        ),
    ];
    let (mut real, mut three) = (0, 0);
    for (name, seeds, family) in families {
        let count = compare(name, foresee_testkit::seeds(seeds), |seed| {
            family.trace(seed, 14 + seed as usize % 16)
        });
        real += count.real;
        three += count.three;
    }
    compare("anything", seeds(1_000), foresee_testkit::random_trace);
    println!("{real} deadlocks, {three} of more than two threads");
    assert!(real > enough(4_000) && three > enough(100), "{real} {three}");
}

/// The acquires at which a finding says that a thread waits for a lock whose owner has ended.
fn after_the_end(findings: &[Finding]) -> BTreeSet<usize> {
    let about = |finding: &&Finding| finding.message.contains("without releasing it");
    let found = findings.iter().filter(about);
    found.map(|finding| finding.witness.as_ref().unwrap().next[0] as usize).collect()
}

#[test]
fn locks_kept_to_the_end_are_those_of_exhaustive_search() {
    let plain = Nested { locks: 2, ends: 6, ..Nested::PLAIN };
    let families = [
        ("plain", plain),
        ("accesses", Nested { accesses: 40, rmws: 20, ..plain }),
        ("fork and join", Nested { forks: 20, ..plain }),
        ("read-write locks", Nested { shared: 50, ..plain }),
        ("try-locks and waits", Nested { tries: 30, waits: 15, ..plain }),
    ];
    let (mut all, mut all_found, mut settled) = (0, 0, 0);
    for (name, family) in families {
        for seed in 0..600 {
            let trace = with_places(family.trace(seed, 12 + seed as usize % 14));
            let (findings, analysed) = check(&trace);
            let (found, real) = (after_the_end(&findings), oracle::endless_acquires(&trace));
            let context = format!("seed {seed} of {name}\n{trace}\n{}", analysed.statement);
            assert!(found.is_subset(&real), "{found:?} {real:?} {context}");
            if analysed.outcome == Outcome::Exhausted {
                assert_eq!(found, real, "{context}");
                settled += 1;
            }
            all += real.len();
            all_found += found.len();
        }
    }
    println!("{all} locks kept to the end, {all_found} found, {settled} traces settled");
    assert!(
        all > 500 && all_found * 100 >= all * 99 && settled > 200,
        "{all} {all_found} {settled}"
    );
}

#[test]
fn threads_left_waiting_are_those_that_none_can_help() {
    let plain = Nested { stuck: 12, locks: 2, ..Nested::PLAIN };
    let families = [
        ("locks", plain),
        ("three locks", Nested { locks: 3, ..plain }),
        ("four threads", Nested { threads: 4, ..plain }),
        ("read-write locks", Nested { shared: 50, ..plain }),
        ("ended owners", Nested { ends: 10, ..plain }),
        ("waits", Nested { waits: 25, stuck: 20, ends: 8, ..plain }),
        ("timed", Nested { tries: 40, waits: 20, ..plain }),
        ("fork and join", Nested { forks: 20, stuck: 15, ..plain }),
        ("all stuck", Nested { stuck: 40, ends: 10, waits: 20, ..plain }),
        ("everything", Nested { waits: 15, forks: 10, shared: 20, rmws: 20, ends: 6, ..plain }),
    ];
    let (mut with_stuck, mut without, mut rings) = (0, 0, 0);
    for (name, family) in families {
        for seed in seeds(1_000) {
            let trace = with_places(family.trace(seed, 8 + seed as usize % 14));
            let (findings, analysed) = check(&trace);
            let left = oracle::left_waiting(&trace);
            let context = format!("seed {seed} of {name}\n{trace}\n{left:?} {findings:#?}");
            let observed = findings.iter().filter(|f| f.kind == FindingKind::Observed);
            let observed: Vec<&Finding> = observed.collect();
            assert_eq!(observed.is_empty(), left.is_empty(), "{context}");
            // Every thread that waits forever is named, and no other thread is said to wait.
            let mut named = BTreeSet::new();
            for finding in &observed {
                let is_blocked = |detail: &&Detail| matches!(detail.fact, Fact::Blocked(_));
                let threads = finding.details.iter().filter(is_blocked);
                named.extend(threads.map(|detail| detail.label.as_str()));
                rings += usize::from(finding.message.contains("each other"));
            }
            let left: BTreeSet<&str> = left.iter().map(|&t| trace.names.threads.get(t)).collect();
            assert_eq!(named, left, "{context}");
            let last = |t: usize| trace.events.iter().rfind(|e| e.thread().index() == t);
            let asks = |t: usize| last(t).is_some_and(|e| e.op().requests());
            if (0..trace.names.threads.len()).any(asks) {
                assert_ne!(analysed.outcome, Outcome::Exhausted, "{context}");
            }
            match left.is_empty() {
                true => without += 1,
                false => with_stuck += 1,
            }
        }
    }
    println!("{with_stuck} traces with threads left waiting, {without} without, {rings} rings");
    assert!(with_stuck > enough(1_000) && without > enough(1_000) && rings > enough(200));
}

#[test]
fn long_traces() {
    let plain = Nested { accesses: 25, ..Nested::PLAIN };
    let two = Nested { locks: 2, ..plain };
    let count = compare("long, two locks", 0..40, |seed| two.trace(seed, 30 + seed as usize));
    assert!(count.real > 50, "{}", count.real);
    let count = compare("long, three locks", 0..40, |seed| plain.trace(seed, 30 + seed as usize));
    assert!(count.real > 50, "{}", count.real);
}

/// The locks that the thread of an event has just before it, and whether it shares them.
fn held(trace: &Trace, event: usize) -> BTreeSet<(LockId, bool)> {
    let mut held = BTreeSet::new();
    let thread = trace.events[event].thread();
    for e in trace.events[..event].iter().filter(|e| e.thread() == thread) {
        match e.op() {
            Op::Acquire => _ = held.insert((e.lock(), false)),
            Op::AcquireShared => _ = held.insert((e.lock(), true)),
            Op::Release => _ = held.remove(&(e.lock(), false)),
            Op::ReleaseShared => _ = held.remove(&(e.lock(), true)),
            _ => {}
        }
    }
    held
}

/// The event before another one in its thread, or the fork of the thread.
fn previous(trace: &Trace, event: usize) -> Option<usize> {
    let thread = trace.events[event].thread();
    let before = (0..event).rfind(|&i| trace.events[i].thread() == thread);
    let is_fork = |e: &Event| e.op() == Op::Fork && e.other() == thread;
    before.or_else(|| trace.events.iter().position(is_fork))
}

/// Whether an event has to wait as long as the thread of the other one is where it is.
fn waits_for(trace: &Trace, event: usize, other: usize) -> bool {
    let (it, thread) = (&trace.events[event], trace.events[other].thread());
    let is_try = previous(trace, event).is_some_and(|i| trace.events[i].op() == Op::Try);
    let keeps = |lock: LockId, shared: bool| {
        held(trace, other).iter().any(|&(had, both)| had == lock && !(shared && both))
    };
    it.thread() != thread
        && !is_try
        && match it.op() {
            Op::Join => it.other() == thread,
            Op::Acquire => keeps(it.lock(), false),
            Op::AcquireShared => keeps(it.lock(), true),
            _ => false,
        }
}

#[test]
fn worked_examples() {
    let mut count = 0;
    for case in corpus::cases() {
        let Some(expected) = case.expect("deadlocks") else { continue };
        let trace = with_places(case.trace.clone());
        let requirements = requirements(&trace);
        let mut findings = check(&trace).0;
        findings.retain(|finding| finding.kind != FindingKind::Conditional);
        let found = rings(&findings);
        let real = oracle::deadlocks(&trace, 8);
        for expected in expected.as_array().unwrap() {
            count += 1;
            let mut ring: Vec<usize> = expected["ring"].clone().try_into().unwrap();
            let says = |method: &str, is_it: bool| {
                let answer = expected[method].as_str().unwrap() == "Y";
                assert_eq!(is_it, answer, "{}, {method}", case.name);
            };
            let each = || (0..ring.len()).map(|i| (ring[i], ring[(i + 1) % ring.len()]));
            let graph = each().all(|(a, b)| waits_for(&trace, a, b));
            says("graph", graph);
            let exclude = |a: usize, b: usize| {
                let (a, b) = (held(&trace, a), held(&trace, b));
                a.iter().any(|x| b.iter().any(|y| x.0 == y.0 && !(x.1 && y.1)))
            };
            let pairs = || ring.iter().flat_map(|&a| ring.iter().map(move |&b| (a, b)));
            let guards = graph && pairs().all(|(a, b)| a == b || !exclude(a, b));
            says("guards", guards);
            let needs = oracle::Order::new(&trace, oracle::Relation::Needs);
            let is_needed = |a: usize, b: usize| {
                previous(&trace, b).is_some_and(|before| a == before || needs.before(a, before))
            };
            says("order", guards && !pairs().any(|(a, b)| is_needed(a, b)));
            let next: Vec<u32> = ring.iter().map(|&event| event as u32).collect();
            let goal = Goal { executed: &[], next: &next };
            let mut search = Search::new(&requirements, Reads::Strict);
            let mut ask = |slices, failures| {
                let effort = Effort { slices, failures, work: u64::MAX };
                guards && matches!(search.ask(&goal, 0, effort), Answer::Yes { .. })
            };
            says("spd", ask(1, 0));
            says("two", ask(2, 16));
            let earliest = (0..ring.len()).min_by_key(|&i| ring[i]).unwrap();
            ring.rotate_left(earliest);
            says("all", real.contains(&ring));
            says("all", found.contains(&ring));
        }
    }
    assert_eq!(count, 15);
}

#[test]
fn a_notification_that_comes_too_early() {
    let told = |trace: Trace| {
        let (findings, _) = check(&trace);
        findings.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>()
    };
    let bare = trace! {
        T1: acq(l), wait_begin(c, l) @ "a.c:2"; T2: acq(l), notify(c) @ "a.c:7", rel(l);
        T1: wait_end(c, l), rel(l)
    };
    let expected = "T1 can wait forever at a.c:2: its notification at a.c:7 can come before the wait \
                    begins";
    assert_eq!(told(bare), [expected]);
    let guarded = trace! {
        T1: acq(l), r(flag), wait_begin(c, l); T2: acq(l), w(flag), notify(c), rel(l);
        T1: wait_end(c, l), rel(l)
    };
    assert!(told(guarded).is_empty());
    let timed = trace! {
        T1: acq(l), try_for(l), wait_begin(c, l); T2: acq(l), notify(c), rel(l);
        T1: wait_end(c, l), rel(l)
    };
    assert!(told(timed).is_empty());
    // A thread that notifies only when the wait is over does not count; one that may do so at any
    // time does.
    let later = trace! {
        T0: fork(T1); T1: acq(l), wait_begin(c, l); T2: acq(l), notify(c), rel(l);
        T1: wait_end(c, l), rel(l), notify(c); T0: join(T1), notify(c)
    };
    assert_eq!(told(later).len(), 1);
    let anyone = trace! {
        T1: acq(l), wait_begin(c, l); T2: acq(l), notify(c), rel(l);
        T1: wait_end(c, l), rel(l), w(x); T3: r(x), notify(c)
    };
    assert!(told(anyone).is_empty());
}

#[test]
fn a_wait_that_keeps_what_the_notifier_needs() {
    let nested = trace! {
        T2: acq(m) @ "a.c:5", rel(m);
        T1: acq(m) @ "a.c:1", acq(l), r(ready), wait_begin(c, l) @ "a.c:3";
        T2: acq(l), w(ready), notify(c) @ "a.c:8", rel(l);
        T1: wait_end(c, l), rel(l), rel(m)
    };
    let (findings, _) = check(&nested);
    let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    assert_eq!(
        messages,
        ["T1 can wait forever at a.c:3: it holds what T2 needs before it can notify"]
    );
    let stuck = findings[0].details.iter().find(|detail| detail.label == "T2");
    assert_eq!(
        stuck.map(|detail| detail.text(&findings[0].sites)).as_deref(),
        Some("waits for m, event 0 at a.c:5, which T1 has, taken by event 2 at a.c:1")
    );
}

/// A lock that the parent has from fork to join keeps others out, though the child does not have it.
#[test]
fn a_guard_of_the_parent_is_a_proof() {
    let case = corpus::cases().into_iter().find(|case| case.name == "deadlock-D9").unwrap();
    let (findings, analysed) = check(&case.trace);
    assert!(findings.is_empty() && analysed.outcome == Outcome::Exhausted);
    let two_children = trace! {
        T0: acq(g), fork(T1), fork(T2);
        T1: acq(l), acq(m), rel(m), rel(l); T2: acq(m), acq(l), rel(l), rel(m);
        T0: join(T1), join(T2), rel(g)
    };
    assert_eq!(check(&two_children).0.len(), 1);
}

/// That no deadlock is possible is said of guarded waits, and of no others.
#[test]
fn what_is_said_of_waits() {
    let is_settled = |trace: Trace| {
        let (findings, analysed) = check(&trace);
        findings.is_empty() && analysed.outcome == Outcome::Exhausted
    };
    let guarded = trace! {
        T0: w(ready), fork(T1), fork(T2);
        T1: acq(l), r(ready), wait_begin(c, l); T2: acq(l), w(ready), rel(l), notify(c);
        T1: wait_end(c, l), r(ready), rel(l)
    };
    assert!(is_settled(guarded));
    let counted = trace! {
        T1: acq(l), r(n), w(n), rel(l);
        T2: acq(l), r(n), wait_begin(c, l);
        T3: acq(l), r(n), w(n), notify(c), rel(l); T2: wait_end(c, l), r(n), w(n), rel(l)
    };
    assert!(is_settled(counted));
    // The write is not under the lock, so it may come between the read and the wait.
    let unlocked = trace! {
        T1: acq(l), r(ready), wait_begin(c, l); T2: w(ready), notify(c);
        T1: wait_end(c, l), rel(l)
    };
    assert!(!is_settled(unlocked));
    // What was read is not older in every reordering.
    let unordered = trace! {
        T3: acq(l), w(ready), rel(l); T1: acq(l), r(ready), wait_begin(c, l);
        T2: acq(l), w(ready), notify(c), rel(l); T1: wait_end(c, l), rel(l)
    };
    assert!(!is_settled(unordered));
    // A thread joins the one that waits, and holds what the notifying one needs.
    let joined = trace! {
        T0: fork(T1); T1: acq(l), r(ready), wait_begin(c, l);
        T2: acq(k), rel(k), acq(l), w(ready), notify(c), rel(l); T1: wait_end(c, l), rel(l);
        T0: acq(k), join(T1), rel(k)
    };
    assert!(!is_settled(joined));
    let five = "T0: acq(l0), acq(l1), rel(l1), rel(l0)";
    let ring = |n: usize| {
        let one = |t: usize| {
            five.replace("T0", &format!("T{t}"))
                .replace("l1", &format!("m{}", (t + 1) % n))
                .replace("l0", &format!("m{t}"))
        };
        foresee_testkit::parse_trace(&(0..n).map(one).collect::<Vec<_>>().join("; "), true).unwrap()
    };
    let (findings, analysed) = check(&ring(5));
    assert_eq!((findings.len(), analysed.outcome), (1, Outcome::Exhausted));
    let (findings, analysed) = check(&ring(9));
    assert!(findings.is_empty() && analysed.outcome == Outcome::StateLimit);
}

#[test]
fn worked_examples_of_waits() {
    let mut count = 0;
    for case in corpus::cases() {
        let Some(expected) = case.expect("waits") else { continue };
        let expected: BTreeSet<usize> = expected.clone().try_into().unwrap();
        let (findings, analysed) = check(&case.trace);
        assert_eq!(endless(&findings), expected, "{}", case.name);
        assert_eq!(oracle::endless_waits(&case.trace), expected, "{}", case.name);
        let is_settled = analysed.outcome == Outcome::Exhausted;
        assert_eq!(case.expect("settled").unwrap().as_bool(), Some(is_settled), "{}", case.name);
        count += 1;
    }
    assert_eq!(count, 4);
}

/// The beginnings of the waits that findings are about.
fn endless(findings: &[Finding]) -> BTreeSet<usize> {
    let findings = findings.iter().filter(|finding| finding.message.contains("can wait forever"));
    let begin = |finding: &Finding| {
        let wait = finding.sites.iter().find(|site| site.role == Role::Wait);
        wait.unwrap().event.unwrap() as usize
    };
    findings.map(begin).collect()
}

/// Every wait that is said to be forever is: exhaustive search gets there, and no thread notifies
/// afterwards without the wait being over.
#[test]
fn waits_that_nothing_ends() {
    let plain = Nested { waits: 30, locks: 2, accesses: 30, ..Nested::PLAIN };
    let guarded = Nested { guarded: 95, accesses: 0, ..plain };
    // Waits that keep nothing can be proved safe.
    let flat = Nested { depth: 1, ..guarded };
    let (mut lost, mut missed, mut nested, mut settled) = (0, 0, 0, 0);
    for seed in seeds(9_000) {
        let family = [plain, guarded, flat][seed as usize % 3];
        let trace = with_places(family.trace(seed, 14 + seed as usize % 12));
        let (findings, analysed) = check(&trace);
        let found = endless(&findings);
        let real = oracle::endless_waits(&trace);
        assert!(found.is_subset(&real), "seed {seed}: {found:?} {real:?}\n{trace}");
        if analysed.outcome == Outcome::Exhausted && findings.is_empty() {
            assert!(real.is_empty(), "seed {seed}: {real:?}\n{trace}");
            settled += u32::from(trace.events.iter().any(|e| e.op() == Op::WaitEnd));
        }
        nested += findings.iter().filter(|f| f.message.contains("it holds")).count();
        lost += found.len();
        missed += real.len() - found.len();
    }
    println!(
        "{lost} waits that nothing ends, {nested} of them nested; {missed} missed; {settled} traces with waits settled"
    );
    assert!(
        lost > enough(100) && nested > enough(10) && settled > enough(10),
        "{lost} {nested} {settled}"
    );
    assert!(missed * 50 <= lost, "{missed} of {lost}");
}

#[test]
fn a_stall_ends() {
    let trace = trace! {
        T1: acq(l), try_for(m), acq(m), rel(m), rel(l);
        T2: try(m), acq(m), acq(l), rel(l), rel(m)
    };
    let (findings, _) = check(&trace);
    assert_eq!(findings[0].message, "stall: T1 and T2 can wait for each other until one gives up");
    assert_eq!(
        findings[0].details[1].text(&findings[0].sites),
        "has l, taken by event 0; waits for m, event 2, for some time"
    );
}

#[test]
fn a_ring_is_told() {
    let trace = trace! {
        main: fork(T1) @ "a.c:1", fork(T2) @ "a.c:2";
        T1: acq(l) @ "a.c:3", acq(m) @ "a.c:4", rel(m), rel(l);
        T2: acq(g) @ "a.c:7", acq(m) @ "a.c:8", acq(l) @ "a.c:9", rel(l), rel(m), rel(g)
    };
    let (findings, _) = check(&trace);
    assert_eq!(findings[0].message, "T1 and T2 can wait for each other forever");
    let told = |detail: &Detail| format!("{}: {}", detail.label, detail.text(&findings[0].sites));
    let details: Vec<String> = findings[0].details.iter().map(told).collect();
    let expected = [
        "ring: T1 ─ m ─▶ T2 ─ l ─▶ T1",
        "T1: has l, taken by event 2 at a.c:3; waits for m, event 3 at a.c:4",
        "T2: has m, taken by event 7 at a.c:8; also has g, taken by event 6 at a.c:7; waits for l, \
         event 8 at a.c:9",
        "thread T1: forked by main at a.c:1",
        "thread T2: forked by main at a.c:2",
        "still to come: 3 events of T1 from event 3 on",
    ];
    assert_eq!(details, expected);
    let held = |lock: &HeldLock| {
        let line = lock.location.as_ref().and_then(|location| location.line);
        (lock.name.clone(), lock.event, line)
    };
    let sites: Vec<_> = findings[0]
        .sites
        .iter()
        .map(|site| {
            let locks: Vec<_> = site.locks.iter().flatten().map(held).collect();
            (site.role, site.thread_name(), site.event.unwrap(), locks)
        })
        .collect();
    let (l, m, g) = (("l", 2, 3), ("m", 7, 8), ("g", 6, 7));
    let held = |(name, event, line): (&str, u64, u32)| (name.to_owned(), event, Some(line));
    assert_eq!(
        sites,
        [(Role::Request, "T1", 3, vec![held(l)]), (Role::Request, "T2", 8, vec![held(g), held(m)])]
    );
    assert_eq!(findings[0].verdict, Verdict::LockCycle);
}
