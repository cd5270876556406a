//! Compares the greedy search on the index with the definitions, on random traces and the papers'
//! examples: the verdict is that of the lattice of all cuts, and the tuple is the greatest one.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use crate::common::{bytes_of, question};
use fastrand::Rng;
use foresee_index::{Answer, Index, Question, Unsupported};
use foresee_spec::{parse, resolve};
use foresee_testkit::oracle::{Ideals, Order, Relation};
use foresee_testkit::{enough, generated, seeds_in, trace};
use foresee_trace::generate::Config;
use foresee_trace::{Event, Op, Trace};

fn index_with(trace: &Trace, memory: usize) -> Index<Vec<u8>> {
    Index::new(bytes_of(trace, memory)).unwrap()
}

fn index_of(trace: &Trace) -> Index<Vec<u8>> {
    index_with(trace, usize::MAX)
}

fn ask_of(index: &mut Index<Vec<u8>>, pattern: &str) -> Result<Answer, Unsupported> {
    question(index, pattern).and_then(|question| index.answer(&question).unwrap())
}

/// The match in the shortest prefix of the trace.
fn earliest(index: &mut Index<Vec<u8>>, pattern: &str) -> Option<Vec<u64>> {
    let question = question(index, pattern).unwrap();
    index.earliest(&question).unwrap()
}

fn ask(trace: &Trace, pattern: &str) -> Answer {
    ask_of(&mut index_of(trace), pattern).unwrap()
}

/// A label of a pattern, and the events of a trace that it matches.
struct Label {
    text: String,
    events: Vec<usize>,
}

/// A random event atom over the names of a trace, sometimes for any thread or target.
fn random_label(rng: &mut Rng, trace: &Trace, sets: bool) -> Label {
    let names = &trace.names;
    let known = |e: &&Event| word(e.op()).is_some() && target(e).is_some();
    let all: Vec<&Event> = trace.events.iter().filter(known).collect();
    let Some(&&model) = rng.choice(&all) else {
        return Label { text: "event(nothing)".into(), events: Vec::new() };
    };
    let kind = word(model.op()).unwrap();
    let any_thread = sets && rng.bool();
    let any_target = sets && rng.u8(..4) == 0;
    let name = match kind {
        "read" | "write" => names.vars.get(model.var()).to_owned(),
        "acquire" | "release" => {
            names.locks.get(foresee_trace::LockId(target(&model).unwrap())).to_owned()
        }
        "fork" | "join" => names.threads.get(model.other()).to_owned(),
        _ => names.syms.get(model.sym().unwrap()).to_owned(),
    };
    let thread = names.threads.get(model.thread());
    let text = format!(
        "{kind}({}){}",
        if any_target { "_".to_owned() } else { format!("`{name}`") },
        if any_thread { String::new() } else { format!("@`{thread}`") },
    );
    let fits = |e: &Event| {
        let kinds = match kind {
            "read" => e.op().reads(),
            "write" => e.op().writes(),
            _ => word(e.op()) == Some(kind),
        };
        kinds
            && (any_target || target(e) == target(&model))
            && (any_thread || e.thread() == model.thread())
    };
    let events = (0..trace.events.len()).filter(|&i| fits(&trace.events[i])).collect();
    Label { text, events }
}

/// The target that a specification sees.
fn target(event: &Event) -> Option<u32> {
    match event.op() {
        Op::WaitBegin | Op::WaitEnd => event.wait_lock().map(|l| l.0),
        _ => event.target(),
    }
}

fn word(op: Op) -> Option<&'static str> {
    Some(match op {
        Op::Read | Op::VolatileRead => "read",
        Op::Write | Op::VolatileWrite | Op::Rmw => "write",
        Op::Acquire | Op::AcquireShared | Op::WaitEnd => "acquire",
        Op::Release | Op::ReleaseShared | Op::WaitBegin => "release",
        Op::Fork => "fork",
        Op::Join => "join",
        Op::Enter => "enter",
        Op::Exit => "exit",
        Op::Event => "event",
        _ => return None,
    })
}

/// Whether some run has events of the positions in order: matched lengths over the ideals.
fn is_predictable(order: &Order, positions: &[&[usize]]) -> bool {
    let mut relevant: Vec<usize> = positions.concat();
    relevant.sort_unstable();
    relevant.dedup();
    let matched = Ideals::new(order, &relevant).states([0], |&matched: &usize, event| {
        let hit = positions.get(matched).is_some_and(|events| events.contains(&event));
        vec![matched + usize::from(hit)]
    });
    matched.contains(&positions.len())
}

/// All tuples whose events can come in this order.
fn admissible(order: &Order, positions: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut tuples = vec![Vec::new()];
    for events in positions {
        let mut longer = Vec::new();
        for tuple in &tuples {
            let fits = |&&e: &&usize| tuple.iter().all(|&f| e != f && !order.before(e, f));
            longer.extend(events.iter().filter(fits).map(|&e| [&tuple[..], &[e]].concat()));
        }
        tuples = longer;
    }
    tuples
}

/// The first matching events of the observed order.
fn observed(positions: &[&[usize]]) -> Option<Vec<u64>> {
    let mut from = 0;
    let mut events = Vec::new();
    for position in positions {
        let next = *position.iter().find(|&&e| e >= from)?;
        events.push(next as u64);
        from = next + 1;
    }
    Some(events)
}

/// Small traces with few names, so that patterns match often.
fn config(rng: &mut Rng) -> Config {
    Config {
        events: rng.u64(4..=11),
        variables: 2,
        locks: rng.u32(..2),
        alphabet: 2,
        ..Config::small(rng.u64(..))
    }
}

fn compare(seeds: std::ops::Range<u64>, sets: bool) {
    let (mut found, mut never) = (0, 0);
    for seed in seeds {
        let mut rng = Rng::with_seed(seed);
        let trace = generated(config(&mut rng));
        let d = rng.usize(1..=5);
        // Repeated labels expose searches that confuse labels with positions.
        let pool: Vec<Label> =
            (0..rng.usize(1..=d)).map(|_| random_label(&mut rng, &trace, sets)).collect();
        let chosen: Vec<Vec<&Label>> = (0..d)
            .map(|_| {
                let alternatives = if sets { rng.usize(1..=2) } else { 1 };
                (0..alternatives).map(|_| rng.choice(&pool).unwrap()).collect()
            })
            .collect();
        let text: Vec<String> = chosen
            .iter()
            .map(|labels| labels.iter().map(|l| l.text.as_str()).collect::<Vec<_>>().join(" / "))
            .collect();
        let text = text.join(" .. ");
        let positions: Vec<Vec<usize>> = chosen
            .iter()
            .map(|labels| {
                let mut events: Vec<usize> = labels.iter().flat_map(|l| l.events.clone()).collect();
                events.sort_unstable();
                events.dedup();
                events
            })
            .collect();
        let positions: Vec<&[usize]> = positions.iter().map(Vec::as_slice).collect();
        let order = Order::new(&trace, Relation::Mazurkiewicz);
        let memory = if rng.u8(..20) > 0 { usize::MAX } else { 300 };
        let mut index = index_with(&trace, memory);
        let answer = ask_of(&mut index, &text).unwrap();
        let case = || format!("seed {seed}: {text}\n{:?}", trace.events);
        let predictable = is_predictable(&order, &positions);
        let tuples = admissible(&order, &positions);
        assert_eq!(predictable, !tuples.is_empty(), "the oracles differ: {}", case());
        match answer {
            Answer::Observed(events) => {
                assert_eq!(Some(events), observed(&positions), "{}", case());
                found += 1;
            }
            Answer::Predicted(events) => {
                assert_eq!(observed(&positions), None, "{}", case());
                let events: Vec<usize> = events.iter().map(|&e| e as usize).collect();
                assert!(tuples.contains(&events), "{events:?} is no match: {}", case());
                if !sets {
                    // The events of a label are a chain here, in file order.
                    let greatest: Vec<usize> =
                        (0..d).map(|i| tuples.iter().map(|t| t[i]).max().unwrap()).collect();
                    assert_eq!(events, greatest, "{}", case());
                }
                let first = earliest(&mut index, &text).unwrap();
                let first: Vec<usize> = first.iter().map(|&e| e as usize).collect();
                assert!(tuples.contains(&first), "{first:?} is no match: {}", case());
                let certain = tuples.iter().map(|t| t.iter().max()).min().unwrap();
                assert_eq!(first.iter().max(), certain, "{}", case());
                found += 1;
            }
            Answer::Never => {
                assert!(!predictable, "{}", case());
                never += 1;
            }
            Answer::CannotMatch { .. } => {
                assert!(positions.iter().any(|p| p.is_empty()), "{}", case());
            }
            other => panic!("{other:?}: {}", case()),
        }
    }
    // A comparison of nothing would be none.
    assert!(found > enough(1000) && never > enough(1000), "{found} found, {never} not");
}

#[test]
fn single_labels_equal_the_lattice_of_cuts_1() {
    compare(seeds_in(0..25_000), false);
}

#[test]
fn single_labels_equal_the_lattice_of_cuts_2() {
    compare(seeds_in(25_000..50_000), false);
}

#[test]
fn sets_of_labels_equal_the_lattice_of_cuts_1() {
    compare(seeds_in(50_000..75_000), true);
}

#[test]
fn sets_of_labels_equal_the_lattice_of_cuts_2() {
    compare(seeds_in(75_000..100_000), true);
}

/// The example of the pattern paper: events 12, 5, 8, 15, counted from one.
#[test]
fn db_player() {
    let trace = trace! {
        main: fork(t1), fork(t2);
        t1: acq(l), enter(reset), enter(clear), w(inputs), exit(clear), w(count), exit(reset), rel(l);
        t2: enter(play), enter(add), w(inputs), exit(add), w(count), exit(play)
    };
    let fail = "enter(add)@t2 .. enter(clear)@t1 .. write(count)@t1 .. write(count)@t2";
    assert_eq!(ask(&trace, fail), Answer::Predicted(vec![11, 4, 7, 14]));
    assert_eq!(ask(&trace, "write(inputs)@t2 .. enter(clear)@t1"), Answer::Never);
    // Without threads, the positions are sets, and the answer is the same.
    let fail = "enter(add) .. enter(clear) .. write(count)@t1 .. write(count)@t2";
    assert_eq!(ask(&trace, fail), Answer::Predicted(vec![11, 4, 7, 14]));
}

/// The two events for which the pattern paper's algorithm, as printed, finds nothing.
#[test]
fn a_pattern_that_is_not_observed_from_its_beginning() {
    let trace = trace! { t2: event(b); t1: event(a) };
    assert_eq!(ask(&trace, "event(a) .. event(b)"), Answer::Predicted(vec![1, 0]));
}

#[test]
fn two_events_of_one_label_serve_two_positions() {
    let trace = trace! { t1: event(a), event(a) };
    assert_eq!(ask(&trace, "event(a) .. event(a)"), Answer::Observed(vec![0, 1]));
    assert_eq!(ask(&trace, "event(a) .. event(a) .. event(a)"), Answer::Never);
}

#[test]
fn unions_and_intersections() {
    let trace = trace! { t1: event(a), event(b); t2: event(c), event(d) };
    assert_eq!(
        ask(&trace, "(event(d) .. event(a)) | (event(b) .. event(a))"),
        Answer::Predicted(vec![3, 0])
    );
    assert_eq!(ask(&trace, "(event(b) .. event(a)) | (event(d) .. event(c))"), Answer::Never);
    let both = "(event(d) .. event(a)) & (event(d) .. event(b))";
    assert_eq!(ask(&trace, both), Answer::Predicted(vec![3, 0, 1]));
}

#[test]
fn what_does_not_occur_cannot_match() {
    let trace = trace! { t1: event(a), r(x); t2: w(x) };
    let cannot = |position: &str| Answer::CannotMatch { position: position.into() };
    assert_eq!(ask(&trace, "event(a) .. event(nothing)"), cannot("event(nothing)"));
    // A name is not sufficient: there must be such an event.
    assert_eq!(ask(&trace, "write(x)@t1 .. event(a)"), cannot("write(x)@t1"));
    // It does not matter that one alternative is impossible if another is possible.
    assert_eq!(ask(&trace, "event(nothing) | event(a)"), Answer::Observed(vec![0]));
}

#[test]
fn questions_that_need_the_trace() {
    let trace = trace! { t1: event(a, 1), event(b, 1) };
    let mut index = index_of(&trace);
    assert_eq!(ask_of(&mut index, "event(a, 1) .. event(b)"), Err(Unsupported::Arguments));
    let parsed = parse("pattern p(x): event(a, x) .. event(b, x)");
    let resolved = resolve(&parsed.spec, index.names()).resolved;
    let question = Question::new(&parsed.spec.properties[0], &resolved, index.names()).unwrap();
    assert_eq!(question.err(), Some(Unsupported::Parameters));
}

/// Positions of many threads that make the search branch exponentially; it must give up.
#[test]
fn a_search_without_end_is_given_up() {
    // Every thread does x and then y; the threads are pairwise unordered. The pattern needs more
    // events than there are, which only an exhaustive search shows.
    let mut text = String::new();
    for t in 0..12 {
        text += &format!("T{t}: event(x), event(y);");
    }
    let trace = foresee_testkit::parse_trace(&text, true).unwrap();
    let pattern = vec!["event(x)"; 13].join(" .. ");
    let answer = ask(&trace, &pattern);
    assert!(matches!(answer, Answer::Never | Answer::GaveUp { .. }), "{answer:?}");
}
