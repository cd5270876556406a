//! The lattice against enumeration of all runs, on random traces and random properties of every
//! logic, and on the papers' examples.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::ops::ControlFlow;

use fastrand::Rng;
use foresee_predict::lattice::{Lattice, Limits, Notice, Online, Prediction, Stamper};
use foresee_predict::{Analysed, Analysis, Stat, confirm};
use foresee_spec::observe::Projection;
use foresee_spec::run::ObservedMonitor;
use foresee_testkit::oracle::{Ideals, Order, Relation, for_each_run};
use foresee_testkit::{corpus, enough, generated, seeds};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{Event, Finding, Id, Op, Outcome, ThreadId, Trace, Value};

use crate::common::Tied;

impl Tied<'_> {
    /// What the lattice says.
    fn predict(&self, limits: Limits) -> (Vec<Prediction>, Vec<Analysed>) {
        let lattice =
            Lattice::new(&self.spec, self.compiled(), &self.resolved, &self.trace.names, limits);
        let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(lattice)];
        let mut findings: Vec<Finding> = Vec::new();
        let mut source = self.trace.source();
        let run = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {});
        let mut run = run.unwrap();
        assert!(findings.is_empty(), "the lattice reports through predictions");
        (run.candidates.remove(0).predictions, run.analysed)
    }

    /// Whether a plain monitor rejects this order of events.
    fn rejects(&self, order: &[usize]) -> bool {
        !self.violations(order).is_empty()
    }

    /// The bindings for which a plain monitor rejects this order of events.
    fn violations(&self, order: &[usize]) -> Vec<String> {
        let mut monitor =
            ObservedMonitor::new(&self.spec, self.compiled(), &self.resolved, &self.trace.names);
        for &i in order {
            monitor.event(i as u64, &self.trace.events[i], &self.trace.pool);
        }
        monitor.finish();
        monitor.violations().iter().map(|v| format!("{:?}", v.binding)).collect()
    }
}

fn stat(analysed: &Analysed, name: &str) -> Option<String> {
    let found = analysed.stats.iter().find(|(n, _)| *n == name)?;
    Some(match &found.1 {
        Stat::Count(n) => n.to_string(),
        Stat::Text(text) => text.clone(),
    })
}

/// A random property of a random logic over the names that generated traces have.
fn random_spec(rng: &mut Rng) -> String {
    let body = match rng.u8(..5) {
        // Guarded, because what fails in the first state is no test of other runs.
        0 => format!("property p: start({}) -> ({})", atom(rng), past(rng, 2)),
        1 if rng.bool() => format!("property p: {} -> ({})", event(rng), past(rng, 2)),
        1 => format!("property p: {}", past(rng, 3)),
        2 => format!("property p: always ({} -> ({}))", event(rng), future(rng, 2)),
        3 => format!("violation p: .* {} {} .*", event(rng), regex(rng, 2)),
        _ if rng.bool() => {
            let positions: Vec<String> = (0..rng.usize(2..=3)).map(|_| event(rng)).collect();
            format!("pattern p: {}", positions.join(" .. "))
        }
        _ => format!(
            "automaton p {{ initial a; a: {} -> b, {} -> a; b: {} -> bad, {} -> a; }}",
            event(rng),
            event(rng),
            event(rng),
            atom(rng)
        ),
    };
    format!("init x0 = 0, x1 = 0\n{body}\n")
}

fn pick<'s>(rng: &mut Rng, options: &[&'s str]) -> &'s str {
    options[rng.usize(..options.len())]
}

fn event(rng: &mut Rng) -> String {
    let options = [
        "event(a0)",
        "event(a1)",
        "write(x0)",
        "write(x1)",
        "read(x0)",
        "acquire(l0)",
        "release(l0)",
        "write(_)",
        "write(x0)@T1",
        "read(_)@T0",
    ];
    pick(rng, &options).to_owned()
}

fn atom(rng: &mut Rng) -> String {
    let options = ["x0 == 1", "x1 == 2", "x0 > x1", "x1 >= 1", "x0 != 2"];
    if rng.u8(..3) == 0 { event(rng) } else { pick(rng, &options).to_owned() }
}

fn past(rng: &mut Rng, depth: u8) -> String {
    if depth == 0 || rng.u8(..4) == 0 {
        return atom(rng);
    }
    let a = past(rng, depth - 1);
    match rng.u8(..13) {
        0 => format!("!({a})"),
        1 => format!("prev ({a})"),
        2 => format!("once ({a})"),
        3 => format!("hist ({a})"),
        4 => format!("start({a})"),
        5 => format!("end({a})"),
        op => {
            let b = past(rng, depth - 1);
            match op {
                6 => format!("({a}) && ({b})"),
                7 => format!("({a}) || ({b})"),
                8 => format!("({a}) -> ({b})"),
                9 => format!("({a}) since ({b})"),
                10 => format!("({a}) wsince ({b})"),
                11 => format!("[{a}, {b})"),
                _ => format!("[{a}, {b})w"),
            }
        }
    }
}

fn future(rng: &mut Rng, depth: u8) -> String {
    if depth == 0 || rng.u8(..4) == 0 {
        return past(rng, 1);
    }
    let (a, b) = (future(rng, depth - 1), future(rng, depth - 1));
    match rng.u8(..6) {
        0 => format!("next ({a})"),
        1 => format!("({a}) until ({b})"),
        2 => format!("({a}) wuntil ({b})"),
        3 => format!("({a}) release ({b})"),
        4 => format!("({a}) -> ({b})"),
        _ => format!("({a}) || ({b})"),
    }
}

fn regex(rng: &mut Rng, depth: u8) -> String {
    if depth == 0 || rng.u8(..4) == 0 {
        return match rng.u8(..3) {
            0 => ".".to_owned(),
            1 => format!("{{{}}}", atom(rng)),
            _ => event(rng),
        };
    }
    let (a, b) = (regex(rng, depth - 1), regex(rng, depth - 1));
    match rng.u8(..7) {
        0 => format!("({a})*"),
        1 => format!("({a}) | ({b})"),
        2 => format!("({a}) & ({b})"),
        3 => format!("~({a})"),
        4 => format!("({a})+"),
        _ => format!("({a}) ({b})"),
    }
}

fn random_trace(seed: u64) -> Trace {
    generated(Config {
        events: 6 + seed % 6,
        variables: 2,
        named: 0.2,
        reads: 0.3,
        values: Written::Repeating(2),
        in_sections: if seed.is_multiple_of(3) { 0.5 } else { 0.0 },
        initial: 0.0,
        ..Config::small(seed)
    })
}

#[test]
fn the_lattice_is_the_set_of_all_runs() {
    let (mut predicted, mut observed, mut vacuous) = (0, 0, 0);
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let text = random_spec(&mut Rng::with_seed(seed));
        let tied = Tied::new(&trace, &text);
        let (predictions, analysed) = tied.predict(Limits::default());
        let relevant = tied.relevant();
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let mut violating = 0u64;
        let _ = for_each_run::<()>(&order, &relevant, |run| {
            violating += u64::from(tied.rejects(run));
            ControlFlow::Continue(())
        });
        let context = || format!("seed {seed}: {text}\n{trace}\n{analysed:?}");
        if tied.rejects(&relevant) {
            assert!(predictions.is_empty(), "{}", context());
            observed += 1;
            continue;
        }
        assert_eq!(predictions.is_empty(), violating == 0, "{}", context());
        for prediction in &predictions {
            let finding = confirm(prediction, &tied.spec, &tied.resolved, &trace);
            finding.unwrap_or_else(|e| panic!("{e}: {}", context()));
            predicted += 1;
        }
        if relevant.is_empty() {
            assert_eq!(analysed[0].outcome, Outcome::NothingRelevant, "{}", context());
            continue;
        }
        let ideals = Ideals::new(&order, &relevant);
        assert_eq!(stat(&analysed[0], "states"), Some(ideals.count().to_string()), "{}", context());
        let runs = ideals.runs().map(|n| n.to_string());
        assert_eq!(stat(&analysed[0], "runs"), runs, "{}", context());
        if violating > 0 {
            let counted = stat(&analysed[0], "violating_runs");
            assert_eq!(counted, Some(violating.to_string()), "{}", context());
        }
        // Where no run could have violated it, that is not called an answer.
        let is_vacuous = ["does not occur in the trace", "no run of any program"]
            .iter()
            .any(|why| analysed[0].statement.contains(why));
        let outcome = if is_vacuous { Outcome::NothingRelevant } else { Outcome::Exhausted };
        assert_eq!(analysed[0].outcome, outcome, "{}", context());
        assert!(!is_vacuous || violating == 0, "{}", context());
        vacuous += u32::from(is_vacuous);
    }
    assert!(
        predicted > enough(300) && observed > enough(500),
        "{predicted} predicted, {observed} observed"
    );
    assert!(vacuous > enough(100), "only {vacuous} vacuous");
}

/// Each binding has a lattice of its own: what is predicted is what some run shows and the observed
/// one does not, binding by binding.
#[test]
fn bindings_are_predicted_one_by_one() {
    const SPECS: &[&str] = &[
        "pattern p(v): write(v)@T0 .. write(v)@T1",
        "pattern p(v, t): write(v)@t .. write(_) .. read(v)@t",
        "pattern p(t): write(x0)@t .. write(x1)@t .. read(_)",
        "pattern p(v, w): write(v) .. write(w)@T1 .. write(v)@T0",
        "violation p(v): .* read(v)@T0 .* write(v)@T1 .*",
        "init x0 = 0, x1 = 0\nproperty p(t): write(_)@t && x0 == 1 -> once (read(_)@t || x1 == 2)",
        "automaton p(v) { initial a; a: write(v)@T0 -> b; b: read(v)@T1 -> bad, write(v)@T1 -> a; }",
        // Here parameters may be bound only after the violation.
        "automaton p(v, w) { initial a; a: write(v) -> b, write(w) -> bad; b: ; }",
        "property p(v, w): read(v) -> once write(w)",
        "property p(t, u): write(x0)@t -> once write(x1)@u",
    ];
    let mut predicted = 0;
    for seed in seeds(6_000) {
        let trace = random_trace(seed);
        let text = SPECS[seed as usize % SPECS.len()];
        let tied = Tied::new(&trace, text);
        let relevant = tied.relevant();
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let mut expected = std::collections::BTreeSet::new();
        let _ = for_each_run::<()>(&order, &relevant, |run| {
            expected.extend(tied.violations(run));
            ControlFlow::Continue(())
        });
        for observed in tied.violations(&relevant) {
            expected.remove(&observed);
        }
        let (predictions, analysed) = tied.predict(Limits::default());
        let found: std::collections::BTreeSet<String> =
            predictions.iter().map(|p| format!("{:?}", p.binding)).collect();
        assert_eq!(found, expected, "seed {seed}: {text}\n{trace}\n{analysed:?}");
        for prediction in &predictions {
            let finding = confirm(prediction, &tied.spec, &tied.resolved, &trace);
            finding.unwrap_or_else(|e| panic!("seed {seed}: {e}: {text}\n{trace}"));
            predicted += 1;
        }
    }
    assert!(predicted > enough(100), "only {predicted} predicted");
}

#[test]
fn a_window_never_says_what_the_whole_does_not() {
    let mut found = 0;
    for seed in seeds(4_000) {
        let trace = random_trace(seed);
        let text = random_spec(&mut Rng::with_seed(seed));
        let tied = Tied::new(&trace, &text);
        let all = !tied.predict(Limits::default()).0.is_empty();
        for window in 1..=3 {
            let limits = Limits { window: Some(window), ..Limits::default() };
            let (predictions, analysed) = tied.predict(limits);
            assert!(all || predictions.is_empty(), "seed {seed}: {text}\n{trace}");
            if window == 1 {
                // The observed run alone, which does not fail.
                assert!(predictions.is_empty(), "seed {seed}: {text}\n{trace}");
            }
            if predictions.is_empty() && all {
                assert_eq!(analysed[0].outcome, Outcome::Window, "seed {seed}: {text}\n{trace}");
            }
            found += predictions.len();
        }
    }
    assert!(found > enough(100));
}

/// Following the trace event by event, and letting go of what is behind, changes nothing.
#[test]
fn a_window_that_follows_the_trace_sees_what_one_over_the_whole_does() {
    let (mut found, mut compared) = (0, 0);
    for seed in seeds(4_000) {
        let trace = random_trace(seed);
        let text = random_spec(&mut Rng::with_seed(seed));
        let tied = Tied::new(&trace, &text);
        let roots = roots(&trace);
        let first = |t: &ThreadId| trace.events.iter().position(|e| e.thread() == *t);
        let late = roots.iter().any(|t| first(t) > tied.relevant().first().copied());
        for window in 2..=4 {
            let whole = Limits { window: Some(window), ..Limits::default() };
            let (expected, before) = tied.predict(whole);
            let limits = Limits { stride: 1 + seed % 3, kept_events: 0, ..whole };
            let (predictions, after) = tied.predict(limits);
            let context = || format!("seed {seed}, window {window}: {text}\n{trace}");
            // A thread that was not forked may appear too late for the levels that were left.
            if late {
                assert!(
                    after[0].outcome != Outcome::Exhausted || before[0].outcome == after[0].outcome
                );
            } else {
                assert_eq!(predictions.len(), expected.len(), "{}", context());
                assert_eq!(before[0].outcome, after[0].outcome, "{}", context());
                for name in ["states", "levels", "widest_level", "runs"] {
                    let (before, after) = (stat(&before[0], name), stat(&after[0], name));
                    assert_eq!(before, after, "{name}: {}", context());
                    compared += 1;
                }
            }
            for prediction in &predictions {
                let finding = confirm(prediction, &tied.spec, &tied.resolved, &trace);
                finding.unwrap_or_else(|e| panic!("{e}: {}", context()));
                found += 1;
            }
        }
    }
    assert!(found > enough(100) && compared > enough(10_000), "{found} found, {compared} compared");
}

/// The threads that act and are not forked.
fn roots(trace: &Trace) -> Vec<ThreadId> {
    let is_forked = |t| trace.events.iter().any(|e| e.op() == Op::Fork && e.other() == t);
    let acts = |t| trace.events.iter().any(|e| e.thread() == t);
    let threads = (0..trace.names.threads.len()).map(ThreadId::new);
    threads.filter(|&t| acts(t) && !is_forked(t)).collect()
}

/// With a lookahead levels are left too early. What is found stays true, what is left out is said.
#[test]
fn a_lookahead_never_says_what_the_whole_does_not() {
    let (mut found, mut cut_off) = (0, 0);
    for seed in seeds(4_000) {
        let trace = random_trace(seed);
        let text = random_spec(&mut Rng::with_seed(seed));
        let tied = Tied::new(&trace, &text);
        let all = !tied.predict(Limits::default()).0.is_empty();
        for lookahead in 0..3 {
            let window = Some(1000);
            let limits =
                Limits { window, lookahead, stride: 1, kept_events: 0, ..Limits::default() };
            let (predictions, analysed) = tied.predict(limits);
            let context = || format!("seed {seed}, lookahead {lookahead}: {text}\n{trace}");
            assert!(all || predictions.is_empty(), "{}", context());
            if all && predictions.is_empty() {
                assert_eq!(analysed[0].outcome, Outcome::Window, "{}", context());
                cut_off += 1;
            }
            for prediction in &predictions {
                let finding = confirm(prediction, &tied.spec, &tied.resolved, &trace);
                finding.unwrap_or_else(|e| panic!("{e}: {}", context()));
                found += 1;
            }
        }
    }
    assert!(found > enough(50) && cut_off > enough(50), "{found} found, {cut_off} cut off");
}

/// An observer that hears of the events in any order says the same.
#[test]
fn the_order_of_arrival_does_not_matter() {
    let mut violated = 0;
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let text = random_spec(&mut rng);
        let tied = Tied::new(&trace, &text);
        let window = [None, Some(1), Some(2), Some(3)][rng.usize(..4)];
        let limits = Limits { window, ..Limits::default() };
        let lens = {
            let compiled = &tied.compiled()[0];
            Projection::new(&compiled.alphabet, &tied.spec.inits, &tied.resolved, &trace.names)
        };
        let mut stamper = Stamper::default();
        let mut notices = Vec::new();
        for (i, event) in trace.events.iter().enumerate() {
            notices.extend(stamper.event(i as u64, event, &trace.pool, &lens).unwrap());
        }
        notices.extend(stamper.ends());
        let roots = roots(&trace);
        let observe = |notices: Vec<Notice>, often: bool| {
            let property = tied.compiled().remove(0);
            let (spec, names) = (&tied.spec, &trace.names);
            let mut online =
                Online::new(spec, property, &tied.resolved, names, limits, &roots).unwrap();
            for notice in notices {
                online.notice(notice);
                if often {
                    online.advance().unwrap();
                }
            }
            // All that can be known is known: the end of the trace has nothing to add.
            online.advance().unwrap();
            let before = online.coverage();
            let after = online.finish().unwrap();
            assert_eq!(before.cuts, after.cuts, "seed {seed}: {text}\n{trace}");
            after
        };
        let expected = observe(notices.clone(), false);
        if window.is_none() && expected.violated != Some(0) {
            let order = Order::new(&trace, Relation::Mazurkiewicz);
            let ideals = Ideals::new(&order, &tied.relevant());
            assert_eq!(expected.cuts, ideals.count(), "seed {seed}: {text}\n{trace}");
            assert_eq!(expected.outcome, Outcome::Exhausted, "seed {seed}: {text}\n{trace}");
        }
        violated += usize::from(expected.violated.is_some());
        for _ in 0..2 {
            rng.shuffle(&mut notices);
            let got = observe(notices.clone(), true);
            assert_eq!(got, expected, "seed {seed}: {text}\n{trace}\n{notices:?}");
        }
    }
    assert!(violated > enough(1000), "only {violated} violated");
}

/// The order in which the trace happens to be written down does not matter either, as long as it
/// keeps the causality.
#[test]
fn verdicts_are_those_of_the_causality_not_of_the_file() {
    let mut violated = 0;
    for seed in seeds(20_000) {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let text = random_spec(&mut rng);
        let all: Vec<usize> = (0..trace.events.len()).collect();
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        // A random linear extension.
        let mut left = all.clone();
        let mut reordered = trace.clone();
        reordered.events.clear();
        while !left.is_empty() {
            let minimal = |&i: &usize| left.iter().all(|&j| j == i || !order.before(j, i));
            let next: Vec<usize> = left.iter().copied().filter(minimal).collect();
            let next = next[rng.usize(..next.len())];
            reordered.events.push(trace.events[next]);
            left.retain(|&i| i != next);
        }
        let verdict = |trace: &Trace| {
            let tied = Tied::new(trace, &text);
            let (predictions, analysed) = tied.predict(Limits::default());
            let observed = tied.rejects(&tied.relevant());
            let stats = (stat(&analysed[0], "states"), stat(&analysed[0], "runs"));
            (observed || !predictions.is_empty(), observed, stats)
        };
        let (a, b) = (verdict(&trace), verdict(&reordered));
        assert_eq!(a.0, b.0, "seed {seed}: {text}\n{trace}\n{reordered}");
        if !a.1 && !b.1 {
            assert_eq!(a.2, b.2, "seed {seed}: {text}\n{trace}\n{reordered}");
        }
        violated += usize::from(a.0);
    }
    assert!(violated > enough(1000), "only {violated} violated");
}

#[test]
fn witnesses_are_found_again_when_levels_were_not_kept() {
    for seed in seeds(3_000) {
        let trace = random_trace(seed);
        let text = random_spec(&mut Rng::with_seed(seed));
        let tied = Tied::new(&trace, &text);
        let (plenty, _) = tied.predict(Limits::default());
        let (scarce, _) = tied.predict(Limits { history: 1, ..Limits::default() });
        assert_eq!(plenty.len(), scarce.len());
        for (a, b) in plenty.iter().zip(&scarce) {
            let runs =
                |p: &Prediction| p.runs(&tied.spec, &tied.resolved, &trace).unwrap().into_owned();
            assert_eq!(runs(a), runs(b), "seed {seed}: {text}\n{trace}");
        }
    }
}

#[test]
fn the_papers_examples_have_their_numbers() {
    let mut checked = 0;
    for case in corpus::cases() {
        let Some(properties) = case.expect("properties").and_then(|v| v.as_array()) else {
            continue;
        };
        for property in properties {
            let text = format!("property p: {}", property["spec"].as_str().unwrap());
            let tied = Tied::new(&case.trace, &text);
            let (predictions, analysed) = tied.predict(Limits::default());
            let violating = property["violating_runs"].as_integer().unwrap();
            let observed = property["observed"].as_bool().unwrap();
            let context = format!("{}: {text}: {analysed:?}", case.name);
            assert_eq!(predictions.is_empty(), violating == 0 || observed, "{context}");
            if !observed {
                for (stat_name, column) in [("states", "cuts"), ("runs", "runs")] {
                    let expected = case.expect(column).map(ToString::to_string);
                    if expected.is_some() {
                        assert_eq!(stat(&analysed[0], stat_name), expected, "{context}");
                    }
                }
                if violating > 0 {
                    let counted = stat(&analysed[0], "violating_runs");
                    assert_eq!(counted, Some(violating.to_string()), "{context}");
                }
            }
            checked += 1;
        }
    }
    assert!(checked >= 6, "only {checked} properties in the corpus");
}

/// Threads that each write a flag of their own so often, unordered among each other.
fn flags(threads: u32, events: u32) -> Trace {
    let mut trace = Trace::default();
    for k in 0..events {
        for t in 0..threads {
            let thread = trace.names.thread(&format!("T{t}")).unwrap();
            let x = trace.names.vars.intern(&format!("x{t}")).unwrap();
            let write = Event::new(thread, Op::Write).with_target(x.0);
            let value = Value::Int(i64::from(k % 2));
            trace.events.push(write.with_values(&[value], &mut trace.pool));
        }
    }
    trace
}

#[test]
fn cores_share_the_work_and_not_the_answer() {
    let trace = flags(6, 6);
    let init: Vec<String> = (0..6).map(|t| format!("x{t} = 0")).collect();
    let up: Vec<String> = (0..6).map(|t| format!("x{t} == 1")).collect();
    for property in ["once (x0 == 1 && prev (x5 == 0))", "hist (x0 >= 0)"] {
        let text =
            format!("init {}\nproperty p: ({}) -> {property}", init.join(", "), up.join(" && "));
        let tied = Tied::new(&trace, &text);
        let (expected, one) = tied.predict(Limits { cores: 1, ..Limits::default() });
        assert_eq!(stat(&one[0], "states").as_deref(), Some("117649"));
        for cores in [2, 3, 7] {
            let (predictions, many) = tied.predict(Limits { cores, ..Limits::default() });
            // Only the hash tables may take more room.
            for name in ["states", "levels", "widest_level", "runs", "violating_runs"] {
                let (one, many) = (stat(&one[0], name), stat(&many[0], name));
                assert_eq!(one, many, "{name}: {property} on {cores} cores");
            }
            let runs = |all: &[Prediction]| -> Vec<_> {
                let runs = |p: &Prediction| {
                    p.runs(&tied.spec, &tied.resolved, &trace).unwrap().into_owned()
                };
                all.iter().map(runs).collect()
            };
            assert_eq!(runs(&expected), runs(&predictions), "{property} on {cores} cores");
        }
    }
}

#[test]
fn two_hundred_threads_are_searched_as_far_as_limits_allow() {
    let trace = flags(200, 3);
    let text = "init x0 = 0, x199 = 0\nproperty p: x199 == 1 -> x0 == 1";
    for (text, window, outcome) in [
        (text, None, Outcome::Exhausted),
        (text, Some(50), Outcome::Exhausted),
        ("property p: event(never) -> false", Some(50), Outcome::NothingRelevant),
    ] {
        let tied = Tied::new(&trace, text);
        let (_, analysed) = tied.predict(Limits { window, ..Limits::default() });
        assert_eq!(analysed[0].outcome, outcome, "{text}: {analysed:?}");
    }
    // Here every thread is relevant, not only two.
    let every = "violation p: .* write(_) event(never) .*";
    let tied = Tied::new(&trace, every);
    let narrow = Limits { window: Some(20), stride: 16, kept_events: 0, ..Limits::default() };
    let (_, analysed) = tied.predict(narrow);
    assert_eq!(analysed[0].outcome, Outcome::Window, "{analysed:?}");
    assert_eq!(stat(&analysed[0], "levels").as_deref(), Some("601"));
    let limits = Limits { cuts: 100_000, ..Limits::default() };
    assert_eq!(tied.predict(limits).1[0].outcome, Outcome::StateLimit);
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    assert_eq!(tied.predict(limits).1[0].outcome, Outcome::MemoryLimit);
    let limits = Limits { time: Some(std::time::Duration::ZERO), ..Limits::default() };
    assert_eq!(tied.predict(limits).1[0].outcome, Outcome::TimeLimit);
}

#[test]
fn a_thread_that_never_ends_holds_nothing_up_for_ever() {
    // T2 has one relevant event and then neither acts nor ends; T1 goes on for long.
    let mut trace = flags(2, 1);
    let long = flags(1, 20_000);
    trace.events.extend(&long.events);
    let tied = Tied::new(&trace, "init x0 = 0, x1 = 5\nproperty p: start(x1 == 0) -> x0 == 0");
    let limits =
        Limits { window: Some(8), lookahead: 100, stride: 64, kept_events: 0, ..Limits::default() };
    let (predictions, analysed) = tied.predict(limits);
    assert_eq!(analysed[0].outcome, Outcome::Window, "{analysed:?}");
    assert_eq!(stat(&analysed[0], "levels").as_deref(), Some("20003"));
    assert_eq!(predictions.len(), 1);
    confirm(&predictions[0], &tied.spec, &tied.resolved, &trace).unwrap();
}

#[test]
fn what_is_false_from_the_start_is_not_predicted() {
    let trace = flags(2, 2);
    let tied = Tied::new(&trace, "init x0 = 7, x1 = 0\nproperty p: x0 != 7");
    let (predictions, analysed) = tied.predict(Limits::default());
    assert!(predictions.is_empty());
    assert!(analysed[0].statement.contains("observed run violates it"), "{analysed:?}");
    assert!(tied.rejects(&tied.relevant()));
}

#[test]
fn one_thread_has_one_run() {
    let trace = flags(1, 50);
    let tied = Tied::new(&trace, "init x0 = 0\nproperty p: x0 == 1 -> prev (x0 == 0)");
    let (predictions, analysed) = tied.predict(Limits::default());
    assert!(predictions.is_empty());
    assert_eq!(stat(&analysed[0], "runs").as_deref(), Some("1"));
    assert_eq!(stat(&analysed[0], "states").as_deref(), Some("51"));
    assert_eq!(analysed[0].outcome, Outcome::Exhausted);
}
