//! Generated traces match their configuration and are possible.

use std::collections::HashMap;

use foresee_testkit::oracle::wellformed::violations;
use foresee_testkit::{generated, random_trace, relaxed, seeds};
use foresee_trace::generate::{BadConfig, Config, Generator, Written};
use foresee_trace::{Batch, EventSource, Mode, Op, Trace, Validated};

/// Tiny traces, and larger ones of the same mixtures.
fn configs() -> impl Iterator<Item = Config> {
    seeds(20_000).map(|seed| match seed % 4 {
        0 => Config { events: 40, ..Config::small(seed) },
        1 => Config { events: 1 + seed % 7, threads: 1, ..Config::small(seed) },
        _ => Config::small(seed),
    })
}

fn share(trace: &Trace, wanted: impl Fn(Op) -> bool) -> f64 {
    let hits = trace.events.iter().filter(|e| wanted(e.op())).count();
    hits as f64 / trace.events.len() as f64
}

#[test]
fn traces_are_well_formed() {
    for config in configs() {
        let trace = generated(config.clone());
        assert_eq!(trace.events.len() as u64, config.events);
        assert_eq!(violations(&trace), [], "{config:?}");
    }
}

#[test]
fn the_validator_finds_nothing_to_change() {
    for config in configs().step_by(10) {
        let trace = generated(Config { events: 300, ..config });
        let checked = Trace::load(&mut Validated::new(trace.source(), Mode::Reject)).unwrap();
        assert_eq!(checked.events, trace.events);
    }
}

#[test]
fn traces_depend_on_the_seed_alone() {
    for seed in 0..200 {
        assert_eq!(random_trace(seed).events, random_trace(seed).events);
    }
    let distinct: std::collections::HashSet<_> =
        (0..200).map(|seed| format!("{:?}", random_trace(seed).events)).collect();
    assert!(distinct.len() > 190);
}

#[test]
fn everything_there_is_gets_generated() {
    let mut seen: HashMap<Op, usize> = HashMap::new();
    for seed in seeds(2000) {
        let weak = relaxed(random_trace(seed), seed);
        let checked = Trace::load(&mut Validated::new(weak.source(), Mode::Reject)).unwrap();
        assert_eq!(checked.events, weak.events);
        for event in random_trace(seed).events.iter().chain(&weak.events) {
            *seen.entry(event.op()).or_default() += 1;
        }
    }
    for op in Op::ALL {
        assert!(seen.contains_key(op), "no {op:?}");
    }
}

#[test]
fn finished_traces_leave_nothing_open() {
    for seed in seeds(2000) {
        let trace = generated(Config { unfinished: false, ..Config::small(seed) });
        let count = |ops: &[Op]| trace.events.iter().filter(|e| ops.contains(&e.op())).count();
        assert_eq!(count(&[Op::Acquire]), count(&[Op::Release]));
        assert_eq!(count(&[Op::AcquireInner]), count(&[Op::ReleaseInner]));
        assert_eq!(count(&[Op::AcquireShared]), count(&[Op::ReleaseShared]));
        assert_eq!(count(&[Op::WaitBegin]), count(&[Op::WaitEnd]));
        assert_eq!(count(&[Op::Enter]), count(&[Op::Exit]));
        assert_eq!(count(&[Op::Begin]), count(&[Op::End]));
    }
}

#[test]
fn shares_are_about_as_asked_for() {
    let config = Config { events: 100_000, reads: 0.75, named: 0.1, ..Config::default() };
    let trace = generated(config);
    let accesses = share(&trace, |op| op.reads() || op.writes());
    assert!((share(&trace, |op| op == Op::Read) / accesses - 0.75).abs() < 0.02);
    assert!((share(&trace, |op| op == Op::Event) - 0.1).abs() < 0.03);

    // Everything happens inside critical sections, even with a single lock.
    let strict = Config { events: 10_000, locks: 1, in_sections: 1.0, ..Config::default() };
    let trace = generated(strict);
    let mut holder = None;
    for event in &trace.events {
        match event.op() {
            Op::Acquire => holder = Some(event.thread()),
            Op::Release => holder = None,
            _ => assert_eq!(holder, Some(event.thread())),
        }
    }
}

#[test]
fn a_stream_is_the_same_in_batches_and_uses_no_more_memory() {
    let config = Config::bench(8, 200_000, 1);
    let mut generator = Generator::new(config.clone()).unwrap();
    let (mut batch, mut events) = (Batch::default(), Vec::new());
    while generator.next_batch(&mut batch).unwrap() {
        assert!(batch.events.len() <= Batch::EVENTS);
        events.extend_from_slice(&batch.events);
    }
    assert_eq!(events.len(), 200_000);
    assert_eq!(events, generated(config).events);
    let checked = Trace { events, names: generator.names().clone(), ..Trace::default() };
    assert!(Trace::load(&mut Validated::new(checked.source(), Mode::Reject)).is_ok());
}

#[test]
fn values_are_those_asked_for() {
    let trace = generated(Config { values: Written::Distinct, ..Config::default() });
    let written: Vec<_> =
        trace.events.iter().filter(|e| e.op().writes()).map(|e| trace.pool.value(e)).collect();
    let distinct: std::collections::HashSet<_> = written.iter().collect();
    assert!(!written.is_empty() && distinct.len() == written.len() && !distinct.contains(&None));
}

#[test]
fn bad_configurations_are_refused() {
    let refused = |config: Config| Generator::new(config).map(|_| ()).unwrap_err();
    let default = Config::default;
    assert_eq!(refused(Config { threads: 0, ..default() }), BadConfig::Threads(0));
    assert_eq!(refused(Config { variables: 0, ..default() }), BadConfig::NoVariables);
    assert_eq!(refused(Config { named: 0.5, alphabet: 0, ..default() }), BadConfig::NoAlphabet);
    assert_eq!(
        refused(Config { reads: 1.5, ..default() }).to_string(),
        "`reads` must be between 0 and 1, not 1.5"
    );
    assert!(matches!(
        refused(Config { section_events: f64::NAN, ..default() }),
        BadConfig::Section(_)
    ));
    assert!(matches!(
        refused(Config { joined: f64::NAN, ..default() }),
        BadConfig::Share("joined", _)
    ));
}
