//! What is written for RAPID contains only what its reader knows, and preserves the order.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use foresee_formats::ForRapid;
use foresee_testkit::oracle::{Order, Relation};
use foresee_testkit::{families, random_trace, seeds};
use foresee_trace::{Event, Mode, Op, Trace, Validated};

/// The last event of each access.
fn accesses(trace: &Trace, is_access: impl Fn(&Event) -> bool) -> Vec<usize> {
    (0..trace.events.len()).filter(|&i| is_access(&trace.events[i])).collect()
}

fn check(trace: &Trace, name: &str) {
    let rapid = ForRapid::new(trace.source());
    let rapid = Trace::load(&mut Validated::new(rapid, Mode::Reject));
    let rapid = rapid.unwrap_or_else(|error| panic!("{name}: {error}\n{trace}"));
    let known =
        [Op::Read, Op::Write, Op::Acquire, Op::Release, Op::Fork, Op::Join, Op::Begin, Op::End];
    for event in &rapid.events {
        assert!(known.contains(&event.op()), "{name}: {rapid}");
        let place = rapid.names.locs.get(event.loc());
        assert!(place.parse::<u32>().is_ok(), "{name}: {place}");
    }
    // A read-modify-write becomes a read followed by a write.
    let is_first = |i: usize| {
        let [a, b] = [&rapid.events[i], &rapid.events[i + 1]];
        a.op() == Op::Read && b.op() == Op::Write && (a.target(), a.loc()) == (b.target(), b.loc())
    };
    let ours = accesses(trace, |event| event.op().reads() || event.op().writes());
    let theirs = accesses(&rapid, |event| event.op().reads() || event.op().writes());
    let theirs: Vec<usize> =
        theirs.into_iter().filter(|&i| i + 1 == rapid.events.len() || !is_first(i)).collect();
    assert_eq!(ours.len(), theirs.len(), "{name}\n{trace}\n{rapid}");
    let order = Order::new(trace, Relation::HappensBefore);
    let kept = Order::new(&rapid, Relation::HappensBefore);
    for (f, &at) in ours.iter().enumerate() {
        for (e, &before) in ours[..f].iter().enumerate() {
            let is_kept = kept.before(theirs[e], theirs[f]);
            assert!(
                is_kept || !order.before(before, at),
                "{name}: {before} and {at}\n{trace}\n{rapid}"
            );
        }
    }
}

/// The same trace with a separate location for each event.
fn with_places(mut trace: Trace) -> Trace {
    for (i, event) in trace.events.iter_mut().enumerate() {
        *event = event.with_loc(trace.names.locs.intern(&format!("line {i}")).unwrap());
    }
    trace
}

#[test]
fn rapid_sees_at_least_the_order_that_there_is() {
    seeds(1_000).for_each(|seed| check(&with_places(random_trace(seed)), &format!("{seed}")));
    for family in families() {
        (0..100).for_each(|seed| {
            check(&with_places(family.short(seed)), &format!("{} {seed}", family.name));
        });
    }
}
