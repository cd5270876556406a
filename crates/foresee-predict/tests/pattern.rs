//! Every way to predict a pattern against the dynamic programme over ideals, on random traces and
//! random patterns, the event at which the match is certain included.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use fastrand::Rng;
use foresee_predict::pattern::{Algorithm, Match, Patterns};
use foresee_predict::{Analysed, Analysis, confirm_match};
use foresee_spec::ast::Spec;
use foresee_spec::letter::Letter;
use foresee_spec::observe::Projection;
use foresee_spec::pattern::Position;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_spec::{Resolved, parse, resolve};
use foresee_testkit::oracle::{Ideals, Order, Relation, for_each_run};
use foresee_testkit::{corpus, enough, generated, seeds, seeds_in};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{Finding, Op, Outcome, Trace};

/// Patterns tied to a trace.
struct Tied {
    text: String,
    spec: Spec,
    resolved: Resolved,
}

impl Tied {
    fn new(trace: &Trace, text: String) -> Tied {
        let parsed = parse(&text);
        let errors: Vec<_> = parsed.diagnostics.iter().filter(|d| d.is_error()).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
        let resolved = resolve(&parsed.spec, &trace.names).resolved;
        Tied { text, spec: parsed.spec, resolved }
    }

    /// What the pass over the trace says: matches, observed findings, and the rest.
    fn predict(
        &self,
        trace: &Trace,
        algorithm: Algorithm,
    ) -> (Vec<Match>, Vec<Finding>, Vec<Analysed>) {
        let compiled = Compiled::all(&self.spec).unwrap();
        assert!(compiled.iter().all(Patterns::accepts), "{}", self.text);
        let patterns = Patterns::new(compiled, &self.resolved, &trace.names, algorithm);
        let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(patterns)];
        let mut findings: Vec<Finding> = Vec::new();
        let mut source = trace.source();
        let run = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {});
        let mut run = run.unwrap();
        (run.candidates.remove(0).matches, findings, run.analysed)
    }

    /// The events that concern the only pattern, with what they are to it.
    fn relevant(&self, trace: &Trace) -> BTreeMap<usize, u64> {
        let compiled = Compiled::new(&self.spec.properties[0]).unwrap();
        let lens = Projection::new(&compiled.alphabet, &[], &self.resolved, &trace.names);
        let step = |i: usize| Some((i, lens.step(&trace.events[i], &trace.pool)?.events));
        (0..trace.events.len()).filter_map(step).collect()
    }

    /// Where the plain monitor sees each binding violated in an order of events.
    fn violations(&self, trace: &Trace, order: &[usize]) -> BTreeMap<String, u64> {
        let compiled = Compiled::all(&self.spec).unwrap();
        let mut monitor = ObservedMonitor::new(&self.spec, compiled, &self.resolved, &trace.names);
        for &i in order {
            monitor.event(i as u64, &trace.events[i], &trace.pool);
        }
        let violations = monitor.violations().iter();
        violations.map(|v| (format!("{:?}", v.binding), v.event.unwrap())).collect()
    }
}

fn first(trace: &Trace, events: usize) -> Trace {
    Trace { events: trace.events[..events].to_vec(), ..trace.clone() }
}

/// An event that the trace has, or sometimes one that it may not have.
fn event(rng: &mut Rng, trace: &Trace, unordered: bool) -> String {
    let event = trace.events[rng.usize(..trace.events.len())];
    let thread = trace.names.threads.get(event.thread());
    let target = event.target_name(&trace.names).unwrap_or("x0");
    let atom = match event.op() {
        op if op.reads() => format!("read({target})"),
        op if op.writes() => format!("write({target})"),
        Op::Acquire => format!("acquire({target})"),
        Op::Release => format!("release({target})"),
        Op::Event => format!("event({target})"),
        _ => "event(a0)".to_owned(),
    };
    let is_ordered = ["write(", "acquire(", "release("].iter().any(|w| atom.starts_with(w));
    match rng.u8(..6) {
        // Writes of one variable and the operations of one lock are ordered whoever makes them.
        0 | 1 if unordered || is_ordered => atom,
        2 if unordered => "write(_)".to_owned(),
        3 if unordered => format!("read(_)@{thread}"),
        _ => format!("{atom}@{thread}"),
    }
}

/// A position, which may have alternatives.
fn position(rng: &mut Rng, trace: &Trace, unordered: bool) -> String {
    match unordered && rng.u8(..4) == 0 {
        true => format!("{} / {}", event(rng, trace, true), event(rng, trace, true)),
        false => event(rng, trace, unordered),
    }
}

fn sequence(rng: &mut Rng, trace: &Trace, most: usize, unordered: bool) -> String {
    // Few different positions, so that labels are repeated.
    let kinds = rng.usize(2..=4);
    let kinds: Vec<String> = (0..kinds).map(|_| position(rng, trace, unordered)).collect();
    let length = rng.usize(2..=most);
    let all: Vec<&str> = (0..length).map(|_| &*kinds[rng.usize(..kinds.len())]).collect();
    all.join(" .. ")
}

/// Threads have few events in common, so that other orders are many.
fn random_trace(seed: u64) -> Trace {
    generated(Config {
        events: 5 + seed % 8,
        variables: 2,
        named: 0.35,
        reads: 0.4,
        values: Written::Repeating(2),
        in_sections: if seed.is_multiple_of(3) { 0.4 } else { 0.0 },
        initial: 0.0,
        ..Config::small(seed)
    })
}

/// Whether some run of the first events has one of the sequences, by going through all ideals.
fn oracle(tied: &Tied, order: &Order, relevant: &BTreeMap<usize, u64>, events: usize) -> bool {
    let compiled = Compiled::new(&tied.spec.properties[0]).unwrap();
    let sequences = compiled.sequences.unwrap();
    let events: Vec<usize> = relevant.keys().copied().take_while(|&e| e < events).collect();
    let ideals = Ideals::new(order, &events);
    sequences.iter().any(|sequence| {
        let ends = ideals.states([0], |&at: &usize, event| {
            let letter = foresee_spec::letter::Letter(relevant[&event]);
            let hit = sequence.get(at).is_some_and(|position| position.matches(letter));
            vec![at + usize::from(hit)]
        });
        ends.contains(&sequence.len())
    })
}

/// One random trace and pattern through one search; whether something was predicted.
fn check(seed: u64, trace: &Trace, tied: &Tied, algorithm: Algorithm, judge: bool) -> bool {
    let relevant = tied.relevant(trace);
    let order = Order::new(trace, Relation::Mazurkiewicz);
    let (matches, findings, analysed) = tied.predict(trace, algorithm);
    let context = || format!("seed {seed}, {algorithm:?}: {}\n{trace}\n{analysed:?}", tied.text);
    let all: Vec<usize> = (0..trace.events.len()).collect();
    let observed = tied.violations(trace, &all).into_values().next();
    assert_eq!(findings.first().and_then(|f| f.event), observed, "{}", context());
    if let Some(at) = observed {
        assert!(matches.is_empty() && findings.len() == 1, "{}", context());
        // Without its last step the observed run does not have the pattern; others still may.
        return check(seed, &first(trace, at as usize), tied, algorithm, judge);
    }
    let expected = oracle(tied, &order, &relevant, trace.events.len());
    assert_eq!(!matches.is_empty(), expected, "{}", context());
    for found in &matches {
        let at = found.certain_at as usize;
        assert!(oracle(tied, &order, &relevant, at + 1), "{}", context());
        assert!(!oracle(tied, &order, &relevant, at), "{}", context());
        assert_eq!(found.tuple.iter().max(), Some(&found.certain_at), "{}", context());
        if judge {
            let finding = confirm_match(found, &tied.spec, &tied.resolved, trace);
            finding.unwrap_or_else(|e| panic!("{e}: {}", context()));
        }
    }
    let outcome = analysed[1].outcome;
    // Not called clean if the trace has no event at all for a position that every match needs.
    let sequences = Compiled::new(&tied.spec.properties[0]).unwrap().sequences.unwrap();
    let occurs = |p: &Position| relevant.values().any(|&letter| p.matches(Letter(letter)));
    let cannot_match = sequences.iter().all(|s| s.iter().any(|p| !occurs(p)));
    let wanted = match cannot_match || relevant.is_empty() {
        true => Outcome::NothingRelevant,
        false => Outcome::Exhausted,
    };
    assert_eq!(outcome, wanted, "{}", context());
    expected
}

/// Runs seeds of one kind of patterns, through every search that fits.
fn run(
    seeds: std::ops::Range<u64>,
    unordered: bool,
    text: impl Fn(&mut Rng, &Trace) -> String,
) -> u64 {
    let mut predicted = 0;
    for seed in seeds {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let tied = Tied::new(&trace, text(&mut rng, &trace));
        let mut verdicts = vec![check(seed, &trace, &tied, Algorithm::Auto, seed % 4 == 0)];
        if !unordered {
            // All ways on the same trace, in turn.
            let others = [Algorithm::Subsets, Algorithm::Greedy, Algorithm::Pareto];
            verdicts.push(check(seed, &trace, &tied, others[seed as usize % 3], false));
        }
        verdicts.dedup();
        assert_eq!(verdicts.len(), 1, "seed {seed}: {}", tied.text);
        predicted += u64::from(verdicts[0]);
    }
    predicted
}

#[test]
fn ordered_candidates_by_every_search() {
    let text = |rng: &mut Rng, t: &Trace| format!("pattern p: {}", sequence(rng, t, 5, false));
    let predicted = run(seeds(40_000), false, text);
    assert!(predicted > enough(1_500), "only {predicted}");
}

#[test]
fn candidates_of_any_thread() {
    let text = |rng: &mut Rng, t: &Trace| format!("pattern p: {}", sequence(rng, t, 5, true));
    let predicted = run(seeds_in(40_000..80_000), true, text);
    assert!(predicted > enough(2_000), "only {predicted}");
}

#[test]
fn generalised_patterns() {
    let predicted = run(seeds_in(80_000..100_000), true, |rng: &mut Rng, t: &Trace| {
        let (a, b) = (sequence(rng, t, 2, true), sequence(rng, t, 2, false));
        match rng.u8(..4) {
            0 => format!("pattern p: ({a}) | ({b})"),
            1 => format!("pattern p: ({a}) & ({b})"),
            2 => format!("pattern p: ({a}) .. ({b})*"),
            _ => format!("pattern p: ({a} | ()) .. {b}"),
        }
    });
    assert!(predicted > enough(200), "only {predicted}");
}

/// Each binding for itself: what is predicted is what some run shows and the observed one does not.
#[test]
fn bindings_are_predicted_one_by_one() {
    const SPECS: &[&str] = &[
        "pattern p(v): write(v)@T0 .. write(v)@T1",
        "pattern p(v): write(v) .. read(v) .. write(v)",
        "pattern p(v, t): write(v)@t .. write(_) .. read(v)@t",
        "pattern p(t): write(x0)@t .. write(x1)@t .. read(_)",
        "pattern p(v, w): write(v) .. write(w)@T1 .. write(v)@T0",
        "pattern p(v, t): write(v) .. read(_)@t .. read(v)",
        "pattern p(v, t): write(_)@t .. read(v)@t .. write(v)",
        "pattern p(v, t, u): write(v)@t .. read(v)@u .. event(_)@t",
        "pattern p(v, t): (write(v)@t .. read(_)@t) | (read(v)@t .. event(a0)@t)",
    ];
    let mut predicted = 0;
    for seed in seeds(9_000) {
        let trace = random_trace(seed);
        let tied = Tied::new(&trace, SPECS[seed as usize % SPECS.len()].to_owned());
        let relevant: Vec<usize> = tied.relevant(&trace).into_keys().collect();
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let mut expected = BTreeSet::new();
        let _ = for_each_run::<()>(&order, &relevant, |run| {
            expected.extend(tied.violations(&trace, run).into_keys());
            ControlFlow::Continue(())
        });
        let observed = tied.violations(&trace, &relevant);
        expected.retain(|binding| !observed.contains_key(binding));
        let (matches, findings, analysed) = tied.predict(&trace, Algorithm::Auto);
        let context = || format!("seed {seed}: {}\n{trace}\n{analysed:?}", tied.text);
        let found: BTreeSet<String> = matches.iter().map(|m| format!("{:?}", m.binding)).collect();
        assert_eq!(found, expected, "{}", context());
        let mut seen: Vec<u64> = findings.iter().map(|f| f.event.unwrap()).collect();
        let mut events: Vec<u64> = observed.into_values().collect();
        seen.sort_unstable();
        events.sort_unstable();
        assert_eq!(seen, events, "{}", context());
        for found in &matches {
            let finding = confirm_match(found, &tied.spec, &tied.resolved, &trace);
            finding.unwrap_or_else(|e| panic!("{e}: {}", context()));
            // Certain at the earliest event: before it, no run has the pattern for this binding.
            let before: Vec<usize> =
                relevant.iter().copied().filter(|&e| e < found.certain_at as usize).collect();
            let binding = format!("{:?}", found.binding);
            let _ = for_each_run::<()>(&order, &before, |run| {
                assert!(!tied.violations(&trace, run).contains_key(&binding), "{}", context());
                ControlFlow::Continue(())
            });
        }
        predicted += found.len();
    }
    assert!(predicted > enough(300), "only {predicted} predicted");
}

/// A thousand patterns in one pass say what each says alone.
#[test]
fn many_patterns_together_are_each_alone() {
    for seed in 0..200 {
        let trace = random_trace(seed);
        let mut rng = Rng::with_seed(seed);
        let texts: Vec<String> = (0..30)
            .map(|i| format!("pattern p{i}: {}\n", sequence(&mut rng, &trace, 4, i % 2 == 0)))
            .collect();
        let (together, findings, _) =
            Tied::new(&trace, texts.concat()).predict(&trace, Algorithm::Auto);
        for (i, text) in texts.iter().enumerate() {
            let (alone, seen, _) = Tied::new(&trace, text.clone()).predict(&trace, Algorithm::Auto);
            let mine = together.iter().find(|m| m.property == i);
            let certain = |m: &Match| (m.tuple.len(), m.certain_at);
            assert_eq!(mine.map(certain), alone.first().map(certain), "seed {seed}: {text}");
            let name = format!("p{i}");
            let event = findings.iter().find(|f| f.property == name).and_then(|f| f.event);
            assert_eq!(event, seen.first().and_then(|f| f.event), "seed {seed}: {text}");
        }
    }
}

/// What the corpus says of patterns, and the tuple of the paper's example.
#[test]
fn the_corpus_is_predicted_as_expected() {
    let mut checked = 0;
    for case in corpus::cases() {
        let Some(patterns) = case.expect("patterns").and_then(|v| v.as_array()) else { continue };
        for pattern in patterns {
            let labels = pattern["labels"].as_array().unwrap();
            let positions: Vec<String> =
                labels.iter().map(|label| spec_of(label.as_str().unwrap())).collect();
            let text = format!("pattern p: {}", positions.join(" .. "));
            let tied = Tied::new(&case.trace, text);
            for algorithm in
                [Algorithm::Auto, Algorithm::Subsets, Algorithm::Greedy, Algorithm::Pareto]
            {
                let (matches, findings, _) = tied.predict(&case.trace, algorithm);
                let observed = pattern["observed"].as_bool().unwrap();
                let predictable = pattern["predictable"].as_bool().unwrap();
                let context = format!("{}: {}", case.name, tied.text);
                assert_eq!(!findings.is_empty(), observed, "{context}");
                assert_eq!(!matches.is_empty(), predictable && !observed, "{context}");
                for found in &matches {
                    confirm_match(found, &tied.spec, &tied.resolved, &case.trace).unwrap();
                    if let Some(tuple) = pattern.get("tuple") {
                        let tuple: Vec<u64> = tuple.clone().try_into().unwrap();
                        assert_eq!(found.tuple, tuple, "{context}");
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked >= 4, "only {checked} tuples in the corpus");
}

/// A label of the corpus, `T1 w(count)`, in the words of specifications.
fn spec_of(label: &str) -> String {
    let (thread, operation) = label.split_once(' ').unwrap();
    let (word, target) = operation.split_once('(').unwrap();
    let word = match word {
        "r" => "read",
        "w" => "write",
        "acq" => "acquire",
        "rel" => "release",
        other => other,
    };
    format!("{word}({target}@{thread}")
}
