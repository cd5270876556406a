//! Pictures of lattices against the oracles, the packed search, and the papers' examples.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use foresee_predict::lattice::{Lattice, Limits, NoPicture, Picture, Prediction};
use foresee_predict::{Analysed, Analysis, Stat, confirm};
use foresee_spec::ast::Literal;
use foresee_spec::params::Object;
use foresee_spec::run::ObservedMonitor;
use foresee_testkit::oracle::{Ideals, Order, Relation, for_each_run};
use foresee_testkit::{corpus, enough, generated, parse_trace, seeds, trace};
use foresee_trace::generate::{Config, Written};
use foresee_trace::{DescribedValue, Finding, Trace};

use crate::common::Tied;

impl Tied<'_> {
    fn search(&self) -> (Vec<Prediction>, Analysed) {
        assert_eq!(self.spec.properties.len(), 1);
        let (names, limits) = (&self.trace.names, Limits::default());
        let lattice = Lattice::new(&self.spec, self.compiled(), &self.resolved, names, limits);
        let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(lattice)];
        let mut findings: Vec<Finding> = Vec::new();
        let mut source = self.trace.source();
        let run = foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {});
        let mut run = run.unwrap();
        (run.candidates.remove(0).predictions, run.analysed.remove(0))
    }

    /// The beginning of the observed order, if it violates the property.
    fn observed_witness(&self) -> Option<Vec<u64>> {
        let relevant = self.relevant();
        let after = self.rejected_after(&relevant)?;
        Some(relevant[..after].iter().map(|&i| i as u64).collect())
    }

    /// The order that a report would show.
    fn witness(&self, prediction: &Prediction) -> Vec<u64> {
        let finding = confirm(prediction, &self.spec, &self.resolved, self.trace).unwrap();
        finding.witness.unwrap().order
    }

    fn picture(
        &self,
        binding: &[(String, Object)],
        witness: Option<&[u64]>,
    ) -> Result<Picture, NoPicture> {
        Picture::new(self.trace, &self.spec, &self.resolved, 0, binding, witness)
    }

    /// After how many steps a plain monitor rejects this order of events.
    fn rejected_after(&self, order: &[usize]) -> Option<usize> {
        let mut monitor =
            ObservedMonitor::new(&self.spec, self.compiled(), &self.resolved, &self.trace.names);
        for &i in order {
            monitor.event(i as u64, &self.trace.events[i], &self.trace.pool);
        }
        monitor.finish();
        let violation = monitor.violations().first()?;
        Some(match violation.event {
            Some(event) => order.iter().position(|&i| i as u64 == event).unwrap() + 1,
            None => 0,
        })
    }

    /// The cut after some events, as counts of the picture's threads.
    fn counts(&self, events: &[usize], picture: &Picture) -> Vec<u32> {
        let name = |i: usize| self.trace.names.threads.get(self.trace.events[i].thread());
        let threads = picture.threads.iter();
        threads.map(|t| events.iter().filter(|&&i| name(i) == t).count() as u32).collect()
    }
}

fn stat(analysed: &Analysed, name: &str) -> Option<String> {
    let found = analysed.stats.iter().find(|(n, _)| *n == name)?;
    Some(match &found.1 {
        Stat::Count(n) => n.to_string(),
        Stat::Text(text) => text.clone(),
    })
}

fn random_trace(seed: u64) -> Trace {
    generated(Config {
        events: 6 + seed % 6,
        variables: 2,
        named: 0.2,
        reads: 0.3,
        values: Written::Repeating(3),
        in_sections: if seed.is_multiple_of(3) { 0.5 } else { 0.0 },
        initial: 0.0,
        ..Config::small(seed)
    })
}

const SPECS: &[&str] = &[
    "init x0 = 0, x1 = 0\nproperty p: start(x0 > x1) -> once (x1 == 2)",
    "init x0 = 0, x1 = 0\nproperty p: x1 >= 1 -> (x0 != 1 wsince write(x0)@T1)",
    "init x0 = 0, x1 = 0\nproperty p: x0 == 0",
    "init x0 = 2\nproperty p: hist (x0 < 2 || event(a0))",
    "init x0 = 3\nproperty p: always (x0 == 1 -> next write(x1))",
    "property p: event(a0) -> once event(a1)",
    "violation p: .* write(x0)@T0 .* write(x1)@T1 .*",
    "pattern p: write(_)@T1 .. read(_)@T0",
    "automaton p { initial a; a: write(x0) -> b; b: read(x1) -> bad, event(a0) -> a; }",
];

#[test]
fn pictures_are_what_enumeration_of_all_runs_says() {
    let (mut predicted, mut observed_fails, mut initial) = (0, 0, 0);
    for seed in seeds(8_000) {
        let trace = random_trace(seed);
        let text = SPECS[seed as usize % SPECS.len()];
        let tied = Tied::new(&trace, text);
        let context = || format!("seed {seed}: {text}\n{trace}");
        let relevant = tied.relevant();
        let (predictions, analysed) = tied.search();
        let witness = predictions.first().map(|p| tied.witness(p));
        let witness = witness.or_else(|| tied.observed_witness());
        let picture = match tied.picture(&[], witness.as_deref()) {
            Ok(picture) => picture,
            Err(NoPicture::NothingRelevant) => {
                assert!(relevant.is_empty(), "{}", context());
                continue;
            }
            Err(error) => panic!("{error}: {}", context()),
        };
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let ideals = Ideals::new(&order, &relevant);
        assert_eq!(picture.nodes.len() as u64, ideals.count(), "{}", context());
        assert_eq!(Some(picture.runs.to_string()), ideals.runs().map(|n| n.to_string()));
        if let Some(states) = stat(&analysed, "states") {
            assert_eq!(picture.nodes.len().to_string(), states, "{}", context());
        }
        // Every run, cut by cut.
        let (mut cuts, mut steps, mut violated) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut violating = 0u64;
        let _ = for_each_run::<()>(&order, &relevant, |run| {
            let counts = |n: usize| tied.counts(&run[..n], &picture);
            cuts.extend((0..=run.len()).map(counts));
            steps.extend((0..run.len()).map(|n| (counts(n), counts(n + 1), run[n] as u64)));
            if let Some(after) = tied.rejected_after(run) {
                violated.insert(counts(after));
                violating += 1;
            }
            ControlFlow::Continue(())
        });
        let node = |n: usize| picture.nodes[n].counts.clone();
        let drawn: BTreeSet<_> = (0..picture.nodes.len()).map(node).collect();
        assert_eq!(drawn, cuts, "{}", context());
        assert_eq!(picture.edges.len(), steps.len(), "{}", context());
        let drawn = picture.edges.iter().map(|e| (node(e.from), node(e.to), e.event));
        assert_eq!(drawn.collect::<BTreeSet<_>>(), steps, "{}", context());
        let marked = picture.nodes.iter().filter(|n| n.violated).map(|n| n.counts.clone());
        assert_eq!(marked.collect::<BTreeSet<_>>(), violated, "{}", context());
        let counted = picture.violating_runs.as_ref().map(ToString::to_string);
        assert_eq!(counted, (violating > 0).then(|| violating.to_string()), "{}", context());
        check_values(&tied, &relevant, &picture);
        check_paths(&tied, &relevant, witness.as_deref(), &picture);
        predicted += predictions.len();
        let after = tied.rejected_after(&relevant);
        observed_fails += usize::from(after.is_some_and(|n| n > 0));
        initial += usize::from(after == Some(0));
    }
    assert!(
        predicted > enough(100) && observed_fails > enough(100) && initial > enough(100),
        "{predicted} {observed_fails}"
    );
}

/// The values of a cut are those written last in it, in the order of the trace.
fn check_values(tied: &Tied<'_>, relevant: &[usize], picture: &Picture) {
    let names = &tied.trace.names;
    for node in &picture.nodes {
        let mut left: HashMap<&str, u32> =
            picture.threads.iter().map(String::as_str).zip(node.counts.iter().copied()).collect();
        let mut values: HashMap<&str, String> = HashMap::new();
        let described = |value| DescribedValue { value, names }.to_string();
        for &i in relevant {
            let event = &tied.trace.events[i];
            let left = left.get_mut(names.threads.get(event.thread())).unwrap();
            if *left == 0 {
                continue;
            }
            *left -= 1;
            if event.op().writes() {
                let value = tied.trace.pool.value(event);
                let text = value.map_or_else(|| "?".to_owned(), described);
                values.insert(event.target_name(names).unwrap(), text);
            }
        }
        for (name, value) in &node.values {
            let init = tied.spec.inits.iter().find(|init| init.var.name == *name).unwrap();
            let Literal::Int(initial) = &init.value else { panic!("{init:?}") };
            let expected = values.get(name.as_str()).cloned();
            let expected = expected.unwrap_or_else(|| initial.to_string());
            assert_eq!(*value, expected, "{name} at {}: {}", node.label, tied.trace);
        }
    }
}

/// The two runs are marked from the first cut on, each step from where the last one led.
fn check_paths(tied: &Tied<'_>, relevant: &[usize], witness: Option<&[u64]>, picture: &Picture) {
    let counts: Vec<Vec<u32>> =
        (0..=relevant.len()).map(|n| tied.counts(&relevant[..n], picture)).collect();
    let on = |flag: fn(&foresee_predict::lattice::Node) -> bool| -> Vec<Vec<u32>> {
        picture.nodes.iter().filter(|n| flag(n)).map(|n| n.counts.clone()).collect()
    };
    assert_eq!(on(|n| n.observed), counts);
    assert_eq!(picture.edges.iter().filter(|e| e.observed).count(), relevant.len());
    let violating = match witness {
        Some(order) => {
            let order: Vec<usize> = order.iter().map(|&i| i as usize).collect();
            let steps: Vec<usize> = order.into_iter().filter(|i| relevant.contains(i)).collect();
            (0..=steps.len()).map(|n| tied.counts(&steps[..n], picture)).collect()
        }
        None => Vec::new(),
    };
    assert_eq!(on(|n| n.violating), violating, "{}", tied.trace);
    let taken = picture.edges.iter().filter(|e| e.violating).count();
    assert_eq!(taken, violating.len().saturating_sub(1));
    if let Some(end) = violating.last() {
        assert!(picture.nodes.iter().any(|n| n.counts == *end && n.violated));
    }
}

#[test]
fn bindings_have_pictures_of_their_own_events() {
    const SPECS: &[&str] = &[
        "pattern p(t): write(x0)@t .. write(x1)@T0",
        "pattern p(v, t): write(v)@t .. write(_) .. read(v)@t",
        "violation p(v): .* read(v)@T0 .* write(v)@T1 .*",
        "init x0 = 0, x1 = 0\nproperty p(t): write(_)@t && x0 == 1 -> once (read(_)@t || x1 == 2)",
    ];
    let (mut drawn, mut compared) = (0, 0);
    for seed in seeds(8_000) {
        let trace = random_trace(seed);
        let tied = Tied::new(&trace, SPECS[seed as usize % SPECS.len()]);
        let (predictions, analysed) = tied.search();
        for prediction in &predictions {
            let witness = tied.witness(prediction);
            let picture = tied.picture(&prediction.binding, Some(&witness)).unwrap();
            let end = picture.nodes.iter().rfind(|n| n.violating).unwrap();
            assert!(end.violated, "seed {seed}\n{trace}");
            assert_eq!(picture.binding.len(), prediction.binding.len());
            drawn += 1;
            if let ([(_, Object::Thread(t))], 0) = (&prediction.binding[..], seed % 4) {
                // The first of the properties, whose relevant events are easy to recognise.
                let is_relevant = |&i: &usize| {
                    let event = &trace.events[i];
                    let by = trace.names.threads.get(event.thread());
                    event.op().writes()
                        && match event.target_name(&trace.names) {
                            Some("x0") => event.thread() == *t,
                            Some("x1") => by == "T0",
                            _ => false,
                        }
                };
                let relevant: Vec<usize> = (0..trace.events.len()).filter(is_relevant).collect();
                let order = Order::new(&trace, Relation::Mazurkiewicz);
                let cuts = Ideals::new(&order, &relevant).count();
                assert_eq!(picture.nodes.len() as u64, cuts, "seed {seed}\n{trace}");
                compared += 1;
            }
            if stat(&analysed, "bindings").as_deref() == Some("1") {
                let cuts = picture.nodes.len().to_string();
                assert_eq!(stat(&analysed, "states"), Some(cuts), "seed {seed}\n{trace}");
                assert_eq!(stat(&analysed, "runs"), Some(picture.runs.to_string()));
                let violating = picture.violating_runs.map(|n| n.to_string());
                assert_eq!(stat(&analysed, "violating_runs"), violating);
                compared += 1;
            }
        }
    }
    assert!(drawn > enough(100) && compared > enough(20), "{drawn} drawn, {compared} compared");
}

#[test]
fn the_papers_examples_have_their_numbers() {
    let mut checked = Vec::new();
    for case in corpus::cases() {
        let Some(properties) = case.expect("properties").and_then(|v| v.as_array()) else {
            continue;
        };
        for property in properties {
            let text = format!("property p: {}", property["spec"].as_str().unwrap());
            let tied = Tied::new(&case.trace, &text);
            let witness = tied.search().0.first().map(|p| tied.witness(p));
            let witness = witness.or_else(|| tied.observed_witness());
            let picture = tied.picture(&[], witness.as_deref()).unwrap();
            let cuts = case.expect("cuts").and_then(|v| v.as_integer());
            assert_eq!(Some(picture.nodes.len() as i64), cuts, "{}: {text}", case.name);
            let violating = picture.violating_runs.map_or("0".to_owned(), |n| n.to_string());
            let expected = property["violating_runs"].as_integer().unwrap().to_string();
            assert_eq!(violating, expected, "{}: {text}", case.name);
            checked.push(case.name.clone());
        }
    }
    for name in ["xyz", "landing", "water"] {
        assert!(checked.iter().any(|c| c == name), "{checked:?}");
    }
}

#[test]
fn labels_and_values_are_those_of_the_papers() {
    let case = corpus::cases().into_iter().find(|case| case.name == "water").unwrap();
    let tied = Tied::new(&case.trace, "property p: w > 30 -> v > 55");
    let picture = tied.picture(&[], None).unwrap();
    let labels: Vec<&str> = picture.nodes.iter().map(|n| n.label.as_str()).collect();
    assert_eq!(picture.threads, ["T1", "T2"]);
    assert_eq!(
        BTreeSet::from_iter(labels),
        BTreeSet::from(["00", "01", "02", "03", "11", "12", "13", "21", "22", "23", "33"])
    );
    let end = picture.nodes.last().unwrap();
    let values: Vec<String> = end.values.iter().map(|(n, v)| format!("{n}={v}")).collect();
    assert_eq!(values, ["w=31", "v=70"]);
    let texts: BTreeSet<&str> = picture.edges.iter().map(|e| e.text.as_str()).collect();
    assert!(texts.contains("w(v)=50") && texts.len() == 6, "{texts:?}");
}

#[test]
fn nothing_large_is_drawn_and_nothing_takes_long() {
    // Independent threads: two to the twentieth cuts.
    let wide = (0..20).map(|t| format!("T{t}: event(a{t});")).collect::<String>();
    // One thread: the observed run alone is too long.
    let long = "T0: w(x)=1;".repeat(400);
    let fits = "T0: w(x)=1;".repeat(399);
    let picture = |text: &str, spec: &str| {
        let trace = parse_trace(text, true).unwrap();
        Tied::new(&trace, spec).picture(&[], None).map(|p| p.nodes.len())
    };
    assert!(matches!(
        picture(&wide, "pattern p: event(_) .. event(_)"),
        Err(NoPicture::TooLarge(400))
    ));
    assert!(matches!(picture(&long, "property p: x == 1"), Err(NoPicture::TooLarge(400))));
    assert_eq!(picture(&fits, "property p: x == 1").unwrap(), 400);
    let irrelevant = trace! { T1: r(x)=1 };
    let tied = Tied::new(&irrelevant, "property p: x == 1");
    assert!(matches!(tied.picture(&[], None), Err(NoPicture::NothingRelevant)));
}
