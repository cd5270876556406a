//! The validator stops at the same event as the naive check.

use foresee_testkit::oracle::wellformed::{Rule, violations};
use foresee_testkit::{enough, generated, seeds};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{Mode, Position, ThreadId, Trace, Validated};

/// Damages a trace as a buggy recorder might.
fn damage(trace: &mut Trace, rng: &mut fastrand::Rng) {
    for _ in 0..rng.u8(1..4) {
        let n = trace.events.len();
        if n < 2 {
            return;
        }
        let (i, j) = (rng.usize(..n), rng.usize(..n));
        match rng.u8(..5) {
            0 => drop(trace.events.remove(i)),
            1 => trace.events.swap(i, j),
            2 => trace.events.insert(i, trace.events[j]),
            3 => {
                let thread = ThreadId(rng.u32(..trace.names.threads.len() as u32));
                trace.events[i] = trace.events[i].with_thread(thread);
            }
            _ => {
                // Another operation on the same kind of thing.
                let kind = trace.events[i].op().target_kind();
                let ops: Vec<_> = foresee_trace::Op::ALL
                    .iter()
                    .copied()
                    .filter(|op| op.target_kind() == kind && trace.events[i].wait_lock().is_none())
                    .collect();
                if let Some(op) = rng.choice(ops) {
                    trace.events[i] = trace.events[i].with_op(op);
                }
            }
        }
    }
}

#[test]
fn both_object_to_the_same_event() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut objections = 0;
    for seed in seeds(20_000) {
        let mut trace =
            generated(Config { events: 20, values: Written::Repeating(2), ..Config::small(seed) });
        damage(&mut trace, &mut rng);
        // The validator itself distinguishes outer and inner operations.
        let naive = violations(&trace).into_iter().find(|v| v.rule != Rule::Outermost);
        let checked = Trace::load(&mut Validated::new(trace.source(), Mode::Reject));
        let position = checked.as_ref().err().map(|error| error.at());
        let expected = naive.map(|violation| Position::Event(violation.event as u64));
        assert_eq!(position, expected, "seed {seed}: {naive:?}, {checked:?}");
        objections += usize::from(naive.is_some());
        if let Ok(checked) = checked {
            // The result has no violations, not even of the outermost rule.
            assert_eq!(violations(&checked), [], "seed {seed}");
        }
    }
    assert!((enough(5_000)..enough(19_000)).contains(&objections), "{objections}");
}
