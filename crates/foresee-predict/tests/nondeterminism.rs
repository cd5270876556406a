//! Reads that could have seen another write, against exhaustive search.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use foresee_predict::nondeterminism::{
    Counts, Effort, Nondeterminism, Options, Reader, Verdict, decide_all,
};
use foresee_predict::{Analysed, Analysis, Stat};
use foresee_testkit::oracle::{final_writers, is_correct_reordering, possible_writers, reads_from};
use foresee_testkit::{corpus, enough, generated, seeds, seeds_in, shrink, trace};
use foresee_trace::generate::Config;
use foresee_trace::{Finding, Op, Outcome, Trace};

/// What each event could see, and what each variable could hold in the end.
type Answer = (Vec<BTreeSet<Option<usize>>>, Vec<BTreeSet<Option<usize>>>);

fn by_analysis(trace: &Trace) -> (Answer, Counts) {
    let saw = reads_from(trace);
    let mut reads = vec![BTreeSet::new(); trace.events.len()];
    for (i, event) in trace.events.iter().enumerate() {
        if event.op().reads() {
            reads[i].insert(saw[i]);
        }
    }
    let accesses = trace.events.iter().enumerate().filter(|(_, e)| e.op() != Op::Init);
    let mut finals = Vec::new();
    for (i, event) in accesses.filter(|(_, e)| e.op().reads() || e.op().writes()) {
        let x = event.var().0 as usize;
        if finals.len() <= x {
            finals.resize(x + 1, None);
        }
        if event.op().writes() {
            finals[x] = Some(i);
        }
    }
    let mut finals: Vec<BTreeSet<_>> = finals.into_iter().map(|f| BTreeSet::from([f])).collect();
    let counts = decide_all(trace, Effort::default(), |reader, challenger, _, verdict| {
        assert_ne!(verdict, Verdict::Undecided);
        if verdict == Verdict::Feasible {
            let challenger = challenger.map(|c| c as usize);
            match reader {
                Reader::Event(read) => reads[read as usize].insert(challenger),
                Reader::Final(variable) => finals[variable as usize].insert(challenger),
            };
        }
    })
    .expect("the trace is small");
    ((reads, finals), counts)
}

fn by_search(trace: &Trace) -> Answer {
    (possible_writers(trace), final_writers(trace))
}

/// Small traces in which threads meet: half as the generator mixes them, half with more locks.
fn meeting_trace(seed: u64) -> Trace {
    let config = Config::small(seed);
    generated(match seed % 2 {
        0 => config,
        _ => Config {
            in_sections: 0.8,
            max_nesting: 2,
            locks: 2,
            events: 8 + seed % 9,
            named: 0.0,
            calls: 0.0,
            regions: 0.0,
            ..config
        },
    })
}

/// Compares the analysis with exhaustive search, and says how much there was to decide.
fn agree(seeds: Range<u64>) -> Counts {
    let mut all = Counts::default();
    for seed in seeds {
        let trace = meeting_trace(seed);
        let (ours, counts) = by_analysis(&trace);
        if ours != by_search(&trace) {
            let small = shrink(&trace, |t| by_analysis(t).0 != by_search(t));
            let (ours, truth) = (by_analysis(&small).0, by_search(&small));
            panic!("seed {seed}:\n{small}\nours: {ours:?}\ntruth: {truth:?}");
        }
        all.add(&counts);
    }
    all
}

#[test]
fn breakable_reads_are_those_of_exhaustive_search() {
    let counts = agree(seeds(14_000));
    // Every way to decide has been taken, and often.
    assert!(counts.feasible > enough(10_000) && counts.ordered > enough(10_000), "{counts:?}");
    assert!(counts.cyclic > enough(500) && counts.chosen > enough(40), "{counts:?}");
}

#[test]
fn breakable_reads_are_those_of_exhaustive_search_in_more_traces() {
    agree(seeds_in(10_000..20_000));
}

#[test]
fn longer_sections_leave_choices() {
    let mut counts = Counts::default();
    for seed in 0..400 {
        let trace = generated(Config {
            seed,
            threads: 4,
            events: 22,
            variables: 3,
            locks: 2,
            in_sections: 0.9,
            section_events: 4.0,
            max_nesting: 2,
            crossed: 0.3,
            switching: 0.5,
            ..Config::default()
        });
        let (ours, one) = by_analysis(&trace);
        assert_eq!(ours, by_search(&trace), "seed {seed}:\n{trace}");
        counts.add(&one);
    }
    assert!(counts.chosen > 20 && counts.exhausted > 0, "{counts:?}");
}

#[test]
fn worked_examples_have_the_answers_expected() {
    let mut checked = 0;
    for case in corpus::cases() {
        if case.expect("breakable").is_some() {
            // The corpus itself is compared with exhaustive search by the test kit.
            assert_eq!(by_analysis(&case.trace).0, by_search(&case.trace), "{}", case.name);
            checked += 1;
        }
    }
    assert!(checked >= 12, "{checked}");
}

fn run(trace: &Trace, options: Options) -> (Vec<Finding>, Analysed) {
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Nondeterminism::new(options))];
    let mut findings = Vec::new();
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {});
    (findings, summary.expect("a trace in memory can be read").analysed.remove(0))
}

fn stat(analysed: &Analysed, name: &str) -> u64 {
    match analysed.stats.iter().find(|(known, _)| *known == name) {
        Some((_, Stat::Count(count))) => *count,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn witnesses_are_correct_reorderings_up_to_the_first_broken_read() {
    let mut judged = 0;
    for seed in seeds(3000) {
        let trace = meeting_trace(seed);
        let saw = reads_from(&trace);
        for finding in run(&trace, Options { cores: 1, ..Options::default() }).0 {
            let witness = finding.witness.expect("small witnesses are kept");
            let order: Vec<usize> = witness.order.iter().map(|&i| i as usize).collect();
            let is_final = witness.changed_reads.is_empty();
            let strict = if is_final { &order[..] } else { &order[..order.len() - 1] };
            assert_eq!(is_correct_reordering(&trace, strict, false), Ok(()), "seed {seed}");
            let last = order[order.len() - 1];
            let last_write = |variable| {
                strict.iter().rev().copied().find(|&i| {
                    let event = &trace.events[i];
                    event.op().writes() && event.var() == variable
                })
            };
            if is_final {
                assert_eq!(order.len(), trace.events.len(), "seed {seed}");
            } else {
                let read = &trace.events[last];
                assert_ne!(last_write(read.var()), saw[last], "seed {seed}");
                if read.op() != Op::Rmw {
                    assert_eq!(is_correct_reordering(&trace, &order, true), Ok(()), "seed {seed}");
                }
            }
            judged += 1;
        }
    }
    assert!(judged > enough(1000), "{judged}");
}

#[test]
fn cores_change_nothing() {
    let trace = generated(Config { events: 3000, locks: 3, ..Config::default() });
    let (one, alone) = run(&trace, Options { cores: 1, ..Options::default() });
    let (three, together) = run(&trace, Options { cores: 3, ..Options::default() });
    assert_eq!(alone.stats, together.stats);
    assert!(!one.is_empty());
    for (one, three) in one.iter().zip(&three) {
        assert_eq!((&one.message, &one.witness), (&three.message, &three.witness));
    }
}

#[test]
fn the_search_can_be_narrowed() {
    let trace = trace! { T1: w(x), w(y); T2: r(x), r(y); T3: r(y) };
    let reads = |options| stat(&run(&trace, options).1, "breakable_reads");
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(reads(Options::default()), 3);
    assert_eq!(reads(Options { variables: names(&["y"]), ..Options::default() }), 2);
    assert_eq!(reads(Options { threads: names(&["T3"]), ..Options::default() }), 1);
    let (found, first) = run(&trace, Options { first: true, ..Options::default() });
    assert_eq!((found.len(), first.outcome), (1, Outcome::Window));
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Nondeterminism::new(Options {
        variables: names(&["z"]),
        ..Options::default()
    }))];
    let error =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut Vec::new(), &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("no variable named `z`"));
}

#[test]
fn writes_of_the_same_value_can_be_ignored() {
    let same = Options { same_value: true, ..Options::default() };
    let trace = trace! { T1: init(x)=0; T1: w(x)=1; T3: w(x)=1; T2: r(x)=1 };
    // The initial value is another one.
    let (found, analysed) = run(&trace, same.clone());
    assert_eq!((found.len(), stat(&analysed, "breakable_reads")), (1, 1));
    assert!(found[0].message.contains("initial value"), "{}", found[0].message);
    assert_eq!(stat(&analysed, "same_value"), 6);
    let trace = trace! { T1: init(x)=1; T1: w(x)=1; T3: w(x)=1; T2: r(x)=1 };
    let (found, analysed) = run(&trace, same.clone());
    assert!(
        found.is_empty() && analysed.outcome == Outcome::Exhausted && analysed.notes.is_empty()
    );
    // What was not captured may be anything.
    let trace = trace! { T1: w(x); T2: r(x) };
    let (found, analysed) = run(&trace, same);
    assert_eq!((found.len(), analysed.notes.len()), (1, 1));
}

#[test]
fn what_cannot_be_nondeterministic_is_said_at_once() {
    for trace in [
        trace! { T1: w(x), r(x), w(x), acq(l), r(x), rel(l) },
        trace! { T1: r(x); T2: r(x) },
        trace! { T1: w(x), fork(T2); T2: r(x); T1: join(T2), w(x) },
    ] {
        let (found, analysed) = run(&trace, Options::default());
        assert!(found.is_empty() && analysed.outcome == Outcome::Exhausted, "{trace}");
        assert_eq!(stat(&analysed, "graphs"), 0);
    }
    let (found, analysed) = run(&Trace::default(), Options::default());
    assert!(found.is_empty() && analysed.outcome == Outcome::NothingRelevant);
}

#[test]
fn giving_up_is_a_verdict_of_its_own() {
    let trace =
        trace! { T1: acq(l), w(x), rel(l); T2: acq(l), w(x), rel(l); T3: acq(l), r(x), rel(l) };
    let effort = Effort { graphs: 1, ..Effort::default() };
    let (_, analysed) = run(&trace, Options { effort, ..Options::default() });
    assert!(stat(&analysed, "undecided") > 0);
    assert_eq!(analysed.outcome, Outcome::StateLimit);
    let (_, analysed) = run(&trace, Options::default());
    assert_eq!((stat(&analysed, "undecided"), analysed.outcome), (0, Outcome::Exhausted));
    let sum = ["rejected", "feasible", "undecided"].map(|name| stat(&analysed, name));
    assert_eq!(stat(&analysed, "candidates"), sum.iter().sum::<u64>());
}

/// What a trace is prepared with takes time as well.
#[test]
fn without_time_nothing_is_claimed() {
    let trace = trace! { T1: w(x), w(y); T2: r(x), r(y) };
    let time = Some(Duration::ZERO);
    let (found, analysed) = run(&trace, Options { time, ..Options::default() });
    assert!(found.is_empty());
    assert_eq!(analysed.outcome, Outcome::TimeLimit);
    assert!(analysed.statement.contains("no time"), "{}", analysed.statement);
}

/// A write that was not captured may have happened at any time.
#[test]
fn what_was_not_captured_shows_nothing() {
    let trace = trace! { T1: w(x), w(y); external: w(x); T2: r(x), r(y) };
    let (findings, analysed) = run(&trace, Options::default());
    assert!(findings.iter().all(|f| f.message.contains('y')), "{findings:?}");
    assert!(!findings.is_empty());
    assert_eq!(analysed.outcome, Outcome::Window);
    assert!(analysed.notes[0].starts_with("1 variables are left out"), "{:?}", analysed.notes);
}

#[test]
fn clocks_that_take_too_much_memory_are_given_up() {
    let trace = foresee_testkit::trace! { T1: w(x)=1; T2: r(x)=1; T3: w(x)=2 };
    let (found, _) = run(&trace, Options::default());
    assert!(!found.is_empty());
    let (found, given_up) = run(&trace, Options { memory: 8, ..Options::default() });
    assert_eq!((found.len(), given_up.outcome), (0, Outcome::MemoryLimit));
    assert!(given_up.statement.contains("--max-memory"), "{}", given_up.statement);
}
