//! The judge of notes: which orders it allows, and which it rejects.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_causality::judge::check_notes;
use foresee_causality::{NoteClocks, Stamp};
use foresee_testkit::asynchronous::execution;
use foresee_testkit::{enough, seeds, trace};

#[test]
fn notes_leave_open_what_nothing_orders() {
    let notes = trace! { T1: event(a), w(x)=1; T2: event(b), r(x)=1; T3: w(x)=2, r(x)=2 };
    let reason = |order: &[u64]| check_notes(&notes, order).map_err(|r| r.reason);
    assert_eq!(reason(&[2, 0, 1, 3]), Ok(()));
    assert_eq!(reason(&[4, 5, 0, 1, 2, 3]), Ok(()));
    assert_eq!(reason(&[2, 3]), Err("no thread has written the value that is read"));
    assert_eq!(reason(&[1]), Err("an event that it depends on has not happened"));
    assert_eq!(reason(&[0, 0]), Err("the event happens twice"));
    assert_eq!(reason(&[9]), Err("there is no such event"));
    // Any of several writers will do, but one of them must have happened.
    let either = trace! { T1: w(x)=1; T2: w(x)=1; T3: r(x)=1 };
    assert!(check_notes(&either, &[1, 2]).is_ok() && check_notes(&either, &[0, 2]).is_ok());
    assert!(check_notes(&either, &[2]).is_err());
    let from_the_start = trace! { T1: w(x)=0; T2: r(x)=0 };
    assert!(check_notes(&from_the_start, &[1, 0]).is_ok());
    let lock = trace! { T1: acq(l), rel(l); T2: acq(l), rel(l); T3: fork(T4); T4: event(a) };
    assert!(check_notes(&lock, &[2]).is_err() && check_notes(&lock, &[0, 1, 2]).is_ok());
    assert!(check_notes(&lock, &[5]).is_err() && check_notes(&lock, &[4, 5]).is_ok());
    let atomic = trace! { T1: vw(x)=1, vw(x)=1; T2: vr(x)=1 };
    assert!(check_notes(&atomic, &[0, 2]).is_err() && check_notes(&atomic, &[0, 1, 2]).is_ok());
}

/// The order of the notes is always allowed, and so is every order in which the actions may really
/// have happened; no order is allowed that contradicts the clocks.
#[test]
fn the_judge_and_the_clocks_agree() {
    let mut turned = 0;
    for seed in seeds(3_000) {
        let made = execution(seed, false);
        let n = made.trace.events.len() as u64;
        let all: Vec<u64> = (0..n).collect();
        check_notes(&made.trace, &all).unwrap();
        // Another order that keeps the true order of dependent actions: take late events first.
        let mut order: Vec<u64> = Vec::new();
        while (order.len() as u64) < n {
            let is_free = |e: &u64| {
                !order.contains(e)
                    && (0..n)
                        .all(|d| order.contains(&d) || !made.order.before(d as usize, *e as usize))
            };
            let next = (0..n).rev().find(is_free).unwrap();
            order.push(next);
        }
        check_notes(&made.trace, &order)
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{order:?}\n{}", made.trace));
        let mut clocks = NoteClocks::default();
        let events = made.trace.events.iter();
        let stamps: Vec<Stamp> =
            events.map(|e| clocks.event(e, &made.trace.pool).unwrap()).collect();
        for f in 1..n as usize {
            // An event alone before everything else.
            let first = (0..f)
                .find(|&e| stamps[e].time[0] > 0 && clocks.knows(&stamps[f], stamps[e].epoch()));
            if first.is_some() && stamps[f].time[0] > 0 {
                assert!(check_notes(&made.trace, &[f as u64]).is_err(), "seed {seed}, event {f}");
                turned += 1;
            }
        }
    }
    assert!(turned > enough(5_000), "{turned}");
}
