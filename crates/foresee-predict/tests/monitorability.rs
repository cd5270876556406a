//! Monitorability against all linearisations, one by one.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(dead_code)] // Tests share helpers, and none uses all.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::common::Tied;
use foresee_predict::{Analysed, Monitorability, MonitorabilityOptions, Stat};
use foresee_spec::monitor::StateId;
use foresee_spec::observe::{EvalWarnings, Projection};
use foresee_testkit::asynchronous::{Execution, execution};
use foresee_testkit::oracle::{Order, Relation, for_each_run};
use foresee_testkit::programs::{EXCLUSION, Program, run};
use foresee_testkit::{generated, trace};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{Detail, Fact, FileOrder, Finding, FindingKind, Op, Trace};

/// What is said of the only property, and the run that shows it.
fn check(tied: &Tied<'_>, is_exact: bool) -> (Vec<Analysed>, Vec<Finding>) {
    let options = MonitorabilityOptions {
        order: tied.trace.remarks.order,
        is_asked: is_exact,
        ..MonitorabilityOptions::default()
    };
    let (names, properties) = (&tied.trace.names, tied.compiled());
    let analysis = Monitorability::new(&tied.spec, properties, &tied.resolved, names, options);
    let mut findings: Vec<Finding> = Vec::new();
    let mut analyses: Vec<Box<dyn foresee_predict::Analysis>> = vec![Box::new(analysis)];
    let mut source = tied.trace.source();
    let summary =
        foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {}).unwrap();
    (summary.analysed, findings)
}

fn stat(analysed: &Analysed, name: &str) -> String {
    let stat = analysed.stats.iter().find(|(n, _)| *n == name);
    match stat {
        Some((_, Stat::Text(text))) => text.clone(),
        Some((_, Stat::Count(n))) => n.to_string(),
        None => String::new(),
    }
}

fn verdict(tied: &Tied<'_>) -> String {
    stat(&check(tied, true).0[0], "verdict")
}

/// The verdicts of all orders of the steps that keep `order`: whether some violate, and some do
/// not. Nothing if there are too many.
fn all_verdicts(tied: &Tied<'_>, order: &Order) -> Option<HashSet<bool>> {
    let mut property = tied.compiled().remove(0);
    let lens =
        Projection::new(&property.alphabet, &tied.spec.inits, &tied.resolved, &tied.trace.names);
    let trace = tied.trace;
    let step = |i: usize| lens.step(&trace.events[i], &trace.pool);
    let steps: Vec<usize> = (0..trace.events.len()).filter(|&i| step(i).is_some()).collect();
    let mut verdicts = HashSet::new();
    let mut runs = 0;
    let flow = for_each_run(order, &steps, |run| {
        runs += 1;
        if runs > 3_000 {
            return ControlFlow::Break(());
        }
        let mut program = lens.initial().clone();
        let mut state = property.monitor.start();
        if property.reads_initial {
            state = property.monitor.step(state, program.letter()).unwrap();
        }
        for &i in run {
            let letter = lens.apply(&mut program, step(i).unwrap(), &mut EvalWarnings::default());
            state = property.monitor.step(state, letter).unwrap();
        }
        verdicts.insert(state == StateId::BAD);
        ControlFlow::Continue(())
    });
    flow.is_continue().then_some(verdicts)
}

const SPECS: &[&str] = &[
    "automaton p { initial a; a: event(e0) -> b; b: event(e1) -> a, event(e2) -> bad; }",
    "automaton p { initial a; a: event(e0) -> b, event(e1) -> bad; b: ; }",
    "automaton p { initial a; a: event(e0) -> b; b: event(e0) -> bad, event(e1) -> a; }",
    "violation p: .* event(e0) event(e1) .*",
    "pattern p: event(e0) .. event(e1) .. event(e0)",
    "property p: event(e1) -> once event(e0)",
    "property p: x0 == 1 -> x1 != 1",
    "property p: start(x0 == 1) -> once x1 == 1",
    "property p: x0 <= x1 + 1",
    "property p: event(e0) -> x0 == 1",
    "property p: write(x0) -> prev once write(x1)",
    "property p: hist(x1 == 1 -> !(write(x0, 2)))",
];

/// A small random trace in the order of its steps.
fn observed(seed: u64) -> Trace {
    generated(Config {
        variables: 2,
        locks: 2,
        values: Written::Repeating(2),
        named: 0.35,
        alphabet: 3,
        events: 12,
        unfinished: seed.is_multiple_of(4),
        ..Config::small(seed)
    })
}

/// The names of a trace's variables and events as the specifications have them.
fn named(trace: &Trace, text: &str) -> Option<String> {
    let (vars, syms) = (&trace.names.vars, &trace.names.syms);
    let mut text = text.to_owned();
    for (mark, i) in [("x0", 0), ("x1", 1)] {
        if text.contains(mark) {
            let name = (vars.len() > i).then(|| vars.get(foresee_trace::VarId(i as u32)))?;
            text = text.replace(mark, name);
        }
    }
    let mut events: Vec<&str> = Vec::new();
    for event in trace.events.iter().filter(|e| e.op() == Op::Event) {
        let name = syms.get(event.sym()?);
        if !events.contains(&name) {
            events.push(name);
        }
    }
    for i in 0..3 {
        let mark = format!("event(e{i})");
        if text.contains(&mark) {
            text = text.replace(&mark, &format!("event(\"{}\")", events.get(i)?));
        }
    }
    Some(text)
}

/// Compares the verdict with all linearisations, and the cheap test with the exact one.
fn compare(tied: &Tied<'_>, order: &Order, counts: &mut [u64; 4], context: &dyn Fn() -> String) {
    let Some(verdicts) = all_verdicts(tied, order) else { return };
    let (analysed, findings) = check(tied, true);
    let said = stat(&analysed[0], "verdict");
    let (warnings, none) = check(tied, false);
    assert!(none.is_empty() || tied.trace.remarks.order == FileOrder::Notes, "{}", context());
    let is_warned = stat(&analysed[0], "unordered_pairs") != "0";
    if tied.trace.remarks.order != FileOrder::Notes {
        assert_eq!(is_warned, !warnings.is_empty(), "{}", context());
    }
    match said.as_str() {
        "monitorable" => {
            assert!(verdicts.len() <= 1, "{}\n{verdicts:?}", context());
            counts[usize::from(is_warned)] += 1;
            assert!(findings.is_empty());
        }
        "schedule-dependent" => {
            assert_eq!(verdicts.len(), 2, "{}", context());
            counts[2] += 1;
            assert!(is_warned && findings.len() == 1, "{}", context());
            assert_eq!(findings[0].kind, FindingKind::ScheduleDependent);
        }
        _ => {
            // An order with another verdict is there, but would change what some read sees.
            assert_eq!(verdicts.len(), 2, "{}", context());
            counts[3] += 1;
        }
    }
}

#[test]
fn monitorable_means_that_all_linearisations_agree() {
    let mut counts = [0; 4];
    let mut asked = 0;
    let mut seed = 0;
    while asked < 20_000 {
        seed += 1;
        let trace = observed(seed);
        let Some(text) = named(&trace, SPECS[seed as usize % SPECS.len()]) else { continue };
        asked += 1;
        let tied = Tied::new(&trace, &text);
        let order = Order::new(&trace, Relation::ReadsFrom);
        compare(&tied, &order, &mut counts, &|| format!("seed {seed}, {text}\n{trace}"));
    }
    let [ordered, agreeing, dependent, unknown] = counts;
    assert!(ordered > 1_000 && agreeing > 500 && dependent > 1_000, "{counts:?}");
    assert!(unknown < dependent, "{counts:?}");
}

#[test]
fn of_notes_monitorable_means_that_the_execution_had_this_verdict() {
    let mut counts = [0; 4];
    let mut asked = 0;
    let mut seed = 0;
    while asked < 5_000 {
        seed += 1;
        let Execution { trace, order } = execution(seed, false);
        let Some(text) = named(&trace, SPECS[seed as usize % SPECS.len()]) else { continue };
        asked += 1;
        let tied = Tied::new(&trace, &text);
        // The true order is one of those that keep what is claimed, and has no more runs.
        let Some(verdicts) = all_verdicts(&tied, &order) else { continue };
        match verdict(&tied).as_str() {
            "monitorable" => {
                assert!(verdicts.len() <= 1, "seed {seed}, {text}\n{trace}");
                counts[0] += 1;
            }
            "schedule-dependent" => counts[2] += 1,
            _ => counts[3] += 1,
        }
    }
    assert!(counts[0] > 500 && counts[2] > 300, "{counts:?}");
}

#[test]
fn request_and_grant_that_nothing_orders() {
    let spec = "property precedence: event(grant) -> once event(request)";
    let free = trace! { T1: event(request); T2: event(grant) };
    let tied = Tied::new(&free, spec);
    let (analysed, findings) = check(&tied, true);
    assert_eq!(stat(&analysed[0], "verdict"), "schedule-dependent");
    let witness = findings[0].witness.as_ref().unwrap();
    assert_eq!((&witness.order[..], witness.violated_at), (&[1][..], 0));
    // The other way round the observed order is the one that fails.
    let bad = trace! { T2: event(grant); T1: event(request) };
    let (_, findings) = check(&Tied::new(&bad, spec), true);
    let witness = findings[0].witness.as_ref().unwrap();
    assert_eq!(
        (&witness.order[..], witness.violated_at, findings[0].event),
        (&[1, 0][..], 2, Some(0))
    );
    let ordered = trace! { T1: event(request), w(x)=1; T2: r(x)=1, event(grant) };
    assert_eq!(verdict(&Tied::new(&ordered, spec)), "monitorable");
    let by_lock = trace! {
        T1: acq(l), event(request), rel(l); T2: acq(l), event(grant), rel(l)
    };
    assert_eq!(verdict(&Tied::new(&by_lock, spec)), "monitorable");
}

#[test]
fn racing_writes_have_no_order() {
    // Prediction keeps the order of the two writes; the execution did not give them any.
    let race = trace! { T0: init(x)=0; T1: w(x)=1; T2: w(x)=2 };
    let tied = Tied::new(&race, "property rises: x == 1 -> hist(x != 2)");
    assert_eq!(verdict(&tied), "schedule-dependent");
    assert!(tied.maz().is_empty());
}

#[test]
fn an_order_that_changes_what_is_read_is_none_that_is_known() {
    // Only if T2 is early can `a` come after `b`, but then the read in between sees a 1, and nobody
    // knows whether T1 would do `a` at all.
    let trace = trace! { T0: init(x)=0; T1: r(x)=0, event(a); T2: w(x)=1, event(b) };
    let tied = Tied::new(&trace, "property p: event(a) -> !once event(b)");
    assert_eq!(verdict(&tied), "schedule-dependent");
    let trace = trace! {
        T0: init(x)=0; T1: event(s), r(x)=0, event(a); T2: w(x)=1, r(y), event(b), w(y)=1
    };
    let tied = Tied::new(
        &trace,
        "automaton p { initial i; i: event(b) -> m; m: event(s) -> n, event(a) -> i; n: event(a) -> bad; }",
    );
    assert_eq!(verdict(&tied), "unknown");
}

#[test]
fn bindings_are_judged_apart() {
    let spec = "pattern p(o): event(open, o) .. event(close, o) .. event(use, o)";
    let trace = trace! {
        T1: event(open, 1), event(close, 1); T2: event(open, 2), event(close, 2), event(use, 2)
    };
    let (analysed, _) = check(&Tied::new(&trace, spec), true);
    assert_eq!(stat(&analysed[0], "verdict"), "monitorable");
    let trace = trace! {
        T1: event(open, 1), event(close, 1); T2: event(use, 1), event(open, 2), event(use, 2)
    };
    let (analysed, findings) = check(&Tied::new(&trace, spec), true);
    assert_eq!(stat(&analysed[0], "verdict"), "schedule-dependent");
    assert_eq!(stat(&analysed[0], "bindings"), "2");
    assert_eq!(findings[0].details[0], Detail::new("o", Fact::Value("1".to_owned())));
    let (warnings, findings) = check(&Tied::new(&trace, spec), false);
    assert!(warnings.len() == 1 && findings.is_empty());
}

#[test]
fn the_corpus_is_answered_as_expected() {
    let mut asked = 0;
    for case in foresee_testkit::corpus::cases() {
        for expected in
            case.expect("monitorability").and_then(|v| v.as_array()).into_iter().flatten()
        {
            let tied = Tied::new(&case.trace, expected["spec"].as_str().unwrap());
            let is_violated = !tied.observed().is_empty();
            assert_eq!(expected["observed"].as_bool(), Some(is_violated), "{}", case.name);
            assert_eq!(
                expected["verdict"].as_str(),
                Some(verdict(&tied).as_str()),
                "{}",
                case.name
            );
            asked += 1;
        }
    }
    assert!(asked >= 10);
}

/// The verdict of a plain monitor on one run, and what is said of its monitorability.
fn run_once(program: Program, faulty: bool, late: bool, seed: u64) -> (bool, String) {
    let trace = run(program, faulty, late, seed);
    let tied = Tied::new(&trace, EXCLUSION);
    (!tied.observed().is_empty(), verdict(&tied))
}

#[test]
fn a_faulty_program_is_told_by_any_run_and_a_right_one_by_none() {
    for program in [Program::Bakery, Program::ProducersConsumers] {
        let (mut passed, mut failed) = (0, 0);
        for seed in 0..100 {
            for late in [false, true] {
                let (is_violated, said) = run_once(program, false, late, seed);
                assert_eq!(
                    (is_violated, said.as_str()),
                    (false, "monitorable"),
                    "{program:?} {seed} {late}"
                );
                let (is_violated, said) = run_once(program, true, late, seed);
                assert_eq!(said, "schedule-dependent", "{program:?} {seed} {late}");
                *(if is_violated { &mut failed } else { &mut passed }) += 1;
            }
        }
        // A plain monitor's verdict changes from run to run.
        assert!(passed > 20 && failed > 20, "{program:?}: {passed} {failed}");
    }
}
