//! Compares traces whose lists have many blocks, and whose index has many pages, with a greedy
//! search that keeps every stamp in memory and visits the events one by one.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use crate::common::{bytes_of, question};
use fastrand::Rng;
use foresee_causality::{Clocks, Order, Stamp};
use foresee_index::{Answer, Index};
use foresee_testkit::generated;
use foresee_trace::generate::Config;
use foresee_trace::{Event, Id, Op, ThreadId, Trace};

/// A trace and the stamp of each of its events.
struct Stamped {
    trace: Trace,
    clocks: Clocks,
    stamps: Vec<Stamp>,
    /// Events without which the observed run would contain all patterns.
    rare: Vec<Event>,
}

impl Stamped {
    fn new(config: Config) -> Stamped {
        let trace = generated(config);
        let mut clocks = Clocks::new(Order::Mazurkiewicz);
        let stamps = trace.events.iter().map(|e| clocks.event(e).unwrap()).collect();
        let once = |e: &&Event| matches!(e.op(), Op::Fork | Op::Join | Op::Event);
        let rare = trace.events.iter().filter(once).copied().collect();
        Stamped { trace, clocks, stamps, rare }
    }

    fn label(&self, rng: &mut Rng) -> (String, Label) {
        loop {
            let events = if rng.bool() { &self.rare } else { &self.trace.events };
            let event = rng.choice(events).unwrap();
            let (Op::Read | Op::Write | Op::Acquire | Op::Fork | Op::Join | Op::Event) = event.op()
            else {
                continue;
            };
            let (names, label) = (&self.trace.names, Label::of(event));
            let thread = names.threads.get(event.thread());
            let text = match event.op() {
                Op::Read => format!("read({})@{thread}", names.vars.get(event.var())),
                Op::Write => format!("write({})@{thread}", names.vars.get(event.var())),
                Op::Acquire => format!("acquire({})@{thread}", names.locks.get(event.lock())),
                Op::Event => format!("event({})@{thread}", names.syms.get(event.sym().unwrap())),
                Op::Fork => format!("fork({})@{thread}", names.threads.get(event.other())),
                _ => format!("join({})@{thread}", names.threads.get(event.other())),
            };
            return (text, label);
        }
    }

    /// The greatest match among the first `end` events.
    fn greedy(&self, labels: &[Label], end: usize) -> Option<Vec<u64>> {
        let mut chosen: Vec<usize> = Vec::new();
        for label in labels.iter().rev() {
            let free = |&i: &usize| {
                label.fits(&self.trace.events[i])
                    && !chosen
                        .iter()
                        .any(|&j| self.clocks.knows(&self.stamps[i], self.stamps[j].epoch()))
            };
            chosen.push((0..end).rev().find(free)?);
        }
        Some(chosen.iter().rev().map(|&i| i as u64).collect())
    }

    fn observed(&self, labels: &[Label]) -> bool {
        let mut events = self.trace.events.iter();
        labels.iter().all(|label| events.any(|event| label.fits(event)))
    }
}

#[derive(Clone, Copy)]
struct Label {
    op: Op,
    target: Option<u32>,
    thread: ThreadId,
}

impl Label {
    fn of(event: &Event) -> Label {
        Label { op: event.op(), target: event.target(), thread: event.thread() }
    }

    fn fits(&self, event: &Event) -> bool {
        self.op == event.op() && self.target == event.target() && self.thread == event.thread()
    }
}

fn compare(config: Config, patterns: usize) {
    let stamped = Stamped::new(Config {
        volatiles: 0.0,
        rmws: 0.0,
        shared: 0.0,
        waits: 0.0,
        ..config.clone()
    });
    let bytes = bytes_of(&stamped.trace, usize::MAX);
    assert!(bytes == bytes_of(&stamped.trace, 100_000), "temporary files change nothing");
    let mut index = Index::new(bytes).unwrap();
    let mut rng = Rng::with_seed(config.seed);
    let (mut predicted, mut never) = (0, 0);
    for _ in 0..patterns {
        let d = rng.usize(2..=6);
        let (texts, labels): (Vec<String>, Vec<Label>) =
            (0..d).map(|_| stamped.label(&mut rng)).unzip();
        let text = texts.join(" .. ");
        let question = question(&index, &text).unwrap();
        let all = stamped.trace.events.len();
        match index.answer(&question).unwrap().unwrap() {
            Answer::Observed(_) => assert!(stamped.observed(&labels), "{text}"),
            Answer::Predicted(events) => {
                assert!(!stamped.observed(&labels), "{text}");
                assert_eq!(Some(&events), stamped.greedy(&labels, all).as_ref(), "{text}");
                let first = index.earliest(&question).unwrap().unwrap();
                let end = *first.iter().max().unwrap() as usize;
                assert_eq!(Some(&first), stamped.greedy(&labels, end + 1).as_ref(), "{text}");
                assert_eq!(None, stamped.greedy(&labels, end), "{text}");
                predicted += 1;
            }
            Answer::Never => {
                assert_eq!(None, stamped.greedy(&labels, all), "{text}");
                never += 1;
            }
            other => panic!("{other:?}: {text}"),
        }
    }
    assert!(predicted > 5 && never > 5, "{predicted} predicted, {never} never of {patterns}");
}

#[test]
fn few_threads_and_long_chains() {
    // Rare labels give patterns that the observed run does not contain.
    let config = Config {
        variables: 5_000,
        locks: 3,
        named: 0.01,
        alphabet: 60,
        in_sections: 0.02,
        ..Config::bench(5, 30_000, 1)
    };
    compare(config, 400);
}

#[test]
fn many_threads() {
    let config = Config {
        variables: 3_000,
        locks: 8,
        named: 0.02,
        alphabet: 50,
        in_sections: 0.05,
        ..Config::bench(80, 20_000, 2)
    };
    compare(config, 300);
}

#[test]
fn what_a_thread_knew_from_its_start_is_not_repeated() {
    // The first thread starts every thread after it has joined the previous one: without the rule
    // for forks, the lists would grow quadratically in the number of threads.
    let mut text = String::new();
    for t in 1..=300 {
        text += &format!("main: fork(t{t}); t{t}: w(x); main: join(t{t});");
    }
    let trace = foresee_testkit::parse_trace(&text, true).unwrap();
    let mut index = Index::new(bytes_of(&trace, usize::MAX)).unwrap();
    let census = index.census().unwrap();
    assert!(census.knowledge.entries < 1000, "{census:?}");
    for (pattern, found) in [
        ("write(x)@t7 .. write(x)@t300", true),
        ("write(x)@t300 .. write(x)@t7", false),
        ("join(t299) .. fork(t2)", false),
    ] {
        let question = question(&index, pattern).unwrap();
        let answer = index.answer(&question).unwrap().unwrap();
        assert_eq!(matches!(answer, Answer::Observed(_)), found, "{pattern}: {answer:?}");
        assert_eq!(answer == Answer::Never, !found, "{pattern}: {answer:?}");
    }
    assert_eq!(trace.names.threads.len(), 301);
    assert_eq!(ThreadId::new(0).index(), 0);
}
