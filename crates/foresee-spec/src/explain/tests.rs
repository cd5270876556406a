use std::collections::{HashSet, VecDeque};

use foresee_trace::{Event, Names, Op, Pool, SymId, ThreadId, Value};

use super::*;
use crate::ast::Spec;
use crate::letter::{Alphabet, Letter};
use crate::logic::logic_of;
use crate::monitor::StateId;
use crate::observe::{EvalWarnings, Projection};
use crate::resolve;
use crate::testing::{after, property, spec};

/// The specification from the documentation.
pub(crate) const CONTRACT: &str = "
init landing = 0, approved = 0, radio = 1
property safe_landing: start(landing == 1) -> [start(approved == 1), end(radio == 1))
let p = w > 26
let q = w > 30
let r = v > 55
property  level:  q -> ((r && p) since start(p))
violation level2: .* {!p} {p && !q}+ ({p && !q && !r} {p && !q}* {q} | {q}* {q && !r}) .*
pattern   fail:   event(add)@t2 .. event(clear)@t1 .. write(count)@t1 .. write(count)@t2
pattern   unsafe_iteration(c, i): exit(iterator, c, i) .. enter(next, i) .. enter(add, c) .. enter(next, i)
automaton precedence { initial idle; idle: event(request) -> asked, event(grant) -> bad; asked: ; }
";

fn explain_all(spec: &Spec) -> Vec<Explanation> {
    let mut compiled = Compiled::all(spec).unwrap();
    let pairs = spec.properties.iter().zip(&mut compiled);
    pairs.map(|(property, compiled)| explain(property, compiled, &spec.inits)).collect()
}

#[test]
fn the_documentations_specification() {
    let texts: Vec<String> = explain_all(&spec(CONTRACT)).iter().map(ToString::to_string).collect();
    assert_eq!(texts.join("\n"), include_str!("contract.txt"));
}

/// The words for an item, without the notes that follow.
fn said(item: &str) -> String {
    let property = property(item);
    let compiled = Compiled::new(&property).unwrap();
    let words = property::in_words(&property, &compiled);
    let notes = ["The first step is", "Steps are the events"];
    let end = notes.iter().filter_map(|n| words.find(n)).min().unwrap();
    words[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn operators_in_words() {
    let past = [
        ("a == 1", "a is 1"),
        ("a != 1", "a is other than 1"),
        ("a < 1", "a is less than 1"),
        ("a <= 1", "a is at most 1"),
        ("a > 1", "a is greater than 1"),
        ("a + 2 * b >= -c", "a + 2 * b is at least -c"),
        ("a", "a is true"),
        ("!a", "a is not true"),
        ("!(a == \"x\")", "a is not \"x\""),
        ("a && !b", "both a is true and b is not true"),
        ("a || b", "either a is true or b is true"),
        ("a && b && c", "all of these hold: - a is true - b is true - c is true"),
        ("!(a || b)", "it is not the case that either a is true or b is true"),
        ("a -> b", "whenever a is true, then b is true"),
        ("a <-> b", "a is true exactly when b is true"),
        ("prev a", "one step ago (at the first step: now), a is true"),
        ("once a", "at some step up to now, a is true"),
        ("hist a", "at every step up to now, a is true"),
        ("!hist a", "it is not the case that: at every step up to now, a is true"),
        ("start(a > 1)", "a becomes greater than 1"),
        ("end(a != 1)", "a stops being other than 1"),
        ("!start(a)", "a does not become true"),
        ("!end(a)", "a does not stop being true"),
        ("start(a && b)", "it becomes true that both a is true and b is true"),
        ("end(once a)", "it stops being true that: at some step up to now, a is true"),
        ("start(read(x))", "it becomes true that a thread reads x"),
        (
            "a since b",
            "at some step up to now b is true, and at every step after the last such one a is true",
        ),
        (
            "a wsince b",
            "at every step after the last one where b is true (if there is none, at every step up \
             to now) a is true",
        ),
        (
            "[a, b)",
            "at some step up to now a is true, and at no step from the last such one on, itself \
             included, b is true",
        ),
        (
            "[a, b)w",
            "at no step from the last one on where a is true, itself included (if there is none, \
             at no step up to now), b is true",
        ),
        (
            "(a since b) since c",
            "at some step up to now (B) holds, and at every step after the last such one (A) holds, \
             where - (A) means: at some step up to now b is true, and at every step after the last \
             such one a is true - (B) means: c is true",
        ),
    ];
    for (formula, words) in past {
        let expected = format!("At every step, the initial state included: {words}");
        assert_eq!(said(&format!("property p: {formula}")), expected, "{formula}");
    }
    let future = [
        ("next a", "at the next step, a is true"),
        ("eventually a", "now or at some later step, a is true"),
        ("always a", "now and at every later step, a is true"),
        (
            "a until b",
            "now or at some later step b is true, and at every step before the first such one a is \
             true",
        ),
        (
            "a wuntil b",
            "at every step before the first one where b is true (if there is none, at every step \
             from now on) a is true",
        ),
        (
            "a release b",
            "at every step up to the first one where a is true, itself included (if there is none, \
             at every step from now on), b is true",
        ),
        (
            "always (a -> next b)",
            "now and at every later step: if a is true, then at the next step, b is true",
        ),
    ];
    for (formula, words) in future {
        let expected = format!("Of the whole run, from the initial state on: {words}");
        assert_eq!(said(&format!("property p: {formula}")), expected, "{formula}");
    }
}

#[test]
fn events_in_words() {
    let events = [
        ("read(x)", "a thread reads x"),
        ("write(x, 5)@t1", "thread t1 writes 5 to x"),
        ("read(_, 5)", "a thread reads 5 from any variable"),
        ("!acquire(l)@t1", "thread t1 does not acquire l"),
        ("release(_)", "a thread releases any lock"),
        ("fork(t)", "a thread starts thread t"),
        ("join(_)", "a thread joins any thread"),
        ("!enter(f, _, 2)", "no thread enters f with arguments anything, 2"),
        ("exit(f, \"a b\")", "a thread leaves f with argument \"a b\""),
        ("event(`two words`)", "a thread emits event `two words`"),
    ];
    for (formula, words) in events {
        let expected = format!("At every step, the initial state included: {words}");
        assert_eq!(said(&format!("property p: {formula}")), expected, "{formula}");
    }
}

#[test]
fn lets_are_named_only_if_they_are_long() {
    let long = "let a = x > 1\nlet b = once a && !a\nproperty p: !b || start(b)";
    assert_eq!(
        said(long),
        "At every step, the initial state included: at least one of these holds: - b does not hold \
         - it becomes true that b holds where b means: all of these hold: - at some step up to now, \
         x is greater than 1 - x is not greater than 1"
    );
}

#[test]
fn sequences_in_words() {
    let regexes = [
        ("read(x)", "a step where a thread reads x"),
        (
            "{a}? .",
            "one after the other: 1. at most one step where a is true 2. one step of any kind",
        ),
        ("{a} | ()", "any of these: - a step where a is true - nothing"),
        (
            ".* & ~({a} .)",
            "a stretch of steps that is all of these: - any number of steps (also none) of any kind \
             - any stretch of steps, also an empty one, that is not: one after the other: 1. a step \
             where a is true 2. one step of any kind",
        ),
        (
            "({a} {b})+ ({a} {b})? .+",
            "one after the other: 1. one or more times: one after the other: 1. a step where a is \
             true 2. a step where b is true 2. this, or nothing: one after the other: 1. a step \
             where a is true 2. a step where b is true 3. one or more steps of any kind",
        ),
    ];
    for (regex, words) in regexes {
        let expected = format!("The run must not begin with: {words}");
        assert_eq!(said(&format!("violation p: {regex}")), expected, "{regex}");
    }
    let patterns = [
        ("read(x) / write(x)", "a thread reads x, or a thread writes x"),
        (
            "(read(x) .. write(x)*) | read(y)",
            "any of these: - in this order, anything in between: 1. a thread reads x 2. this, or \
             nothing: a thread writes x - a thread reads y",
        ),
        (
            "read(x) & write(x)",
            "all of these, in one another's gaps or sharing events: - a thread reads x - a thread \
             writes x",
        ),
    ];
    for (pattern, words) in patterns {
        let expected = format!("This must not happen, in any order the program allows: {words}");
        assert_eq!(said(&format!("pattern p: {pattern}")), expected, "{pattern}");
    }
    assert_eq!(
        said("automaton p { initial a, b; a: {x > 1 && y && z} -> bad; b: ; }"),
        "This automaton must not reach its state bad: - it starts in all of a, b at once - from a: \
         to bad if all of these hold: - x is greater than 1 - y is true - z is true - b is never \
         left"
    );
}

#[test]
fn what_is_too_large_is_said_to_be() {
    let vars: Vec<String> = (0..20).map(|i| format!("(v{i} == 1)")).collect();
    let text = explain_all(&spec(&format!("property p: {}", vars.join(" <-> "))))[0].to_string();
    assert!(text.contains("needs more than 4096 different kinds of steps"), "{text}");
    let many = vec!["x > 1"; 600].join(" || ");
    let text = explain_all(&spec(&format!("property p: {many}")))[0].to_string();
    assert!(text.contains("more than 400 operators"), "{text}");
}

#[test]
fn runs_that_no_program_shows_are_no_examples() {
    let explained = |text: &str| explain_all(&spec(text)).remove(0).monitor.unwrap();
    // Two variables never change in one step, and no event happens in the initial state.
    let two = explained("property p: !(start(x == 1) && start(y == 1))");
    assert_eq!((two.violation, two.can_be_violated), (Found::Nothing, true));
    let late = explained("property p: !event(e)");
    assert_eq!(late.violation.example().unwrap().steps, ["", "event(e)"]);
    // The initial values are the given ones.
    let far = explained("init x = 0\nproperty p: x == 0");
    assert_eq!(far.violation.example().unwrap().steps, ["x == 0", "!(x == 0)"]);
    let never = explained("property p: eventually x == 1");
    assert_eq!((never.violation, never.can_be_violated), (Found::Nothing, false));
}

const ATOMS: &[&str] =
    &["x > 0", "x == 1", "y == 1", "event(e)", "write(x)", "write(x, 1)", "read(y)"];

fn random_formula(rng: &mut fastrand::Rng, depth: usize, temporal: bool) -> String {
    if depth == 0 {
        return ATOMS[rng.usize(..ATOMS.len())].into();
    }
    let mut sub = || random_formula(rng, depth - 1, temporal);
    let (a, b) = (sub(), sub());
    match rng.u8(..if temporal { 14 } else { 4 }) {
        0 => format!("(({a}) && ({b}))"),
        1 => format!("(({a}) || ({b}))"),
        2 => format!("(({a}) -> ({b}))"),
        3 => format!("!({a})"),
        4 => format!("prev ({a})"),
        5 => format!("once ({a})"),
        6 => format!("hist ({a})"),
        7 => format!("start({a})"),
        8 => format!("end({a})"),
        9 => format!("(({a}) since ({b}))"),
        10 => format!("(({a}) wsince ({b}))"),
        11 => format!("[({a}), ({b}))"),
        12 => format!("[({a}), ({b}))w"),
        _ => format!("(({a}) <-> ({b}))"),
    }
}

/// A random property of any form over a few variables and events.
pub(crate) fn random_property(rng: &mut fastrand::Rng) -> String {
    let mut step = || random_formula(rng, 1, false);
    let (a, b, c) = (step(), step(), step());
    match rng.u8(..8) {
        0 => format!("violation p: ({{{a}}} | {{{b}}}+ {{{c}}}) . {{{b}}}"),
        1 => format!("violation p: ~(.* {{{a}}} .*) & {{{b}}} .* {{{c}}}"),
        2 => "pattern p: write(x, 1) .. event(e) / read(y) .. write(y)".into(),
        3 => format!(
            "automaton p {{ initial s; s: {{{a}}} -> t, {{{b}}} -> s; t: {{{c}}} -> bad; }}"
        ),
        4 => format!("property p: always (({a}) -> next (({b}) wuntil ({c})))"),
        5 => format!("property p: ({a}) release (({b}) || next ({c}))"),
        _ => format!("property p: {}", random_formula(rng, rng.clone().usize(1..4), true)),
    }
}

/// Whether a condition without temporal operators holds for a letter.
pub(crate) fn holds(condition: &str, alphabet: &Alphabet, letter: Letter) -> bool {
    let body = property(&format!("property p: !({condition})")).body;
    let mut monitor = logic_of(&body).compile(&body, &mut alphabet.clone()).unwrap().monitor;
    let start = monitor.start();
    monitor.step(start, letter).unwrap() == StateId::BAD
}

/// The fewest steps that violate a property, by trying real events.
fn fewest_steps(spec: &Spec) -> Option<usize> {
    let mut compiled = Compiled::all(spec).unwrap().remove(0);
    let (mut names, mut pool) = (Names::default(), Pool::default());
    let [x, y] = ["x", "y"].map(|v| names.vars.intern(v).unwrap().0);
    let e = names.syms.intern("e").unwrap().0;
    let thread = names.thread("t").unwrap();
    let values = [Value::Int(0), Value::Int(1), Value::Int(2), Value::Str(SymId(e))];
    let mut events = vec![Event::new(thread, Op::Event).with_target(e)];
    let mut add = |op, target, values: &[Value]| {
        events.push(
            Event::new(ThreadId(thread.0), op).with_target(target).with_values(values, &mut pool),
        );
    };
    for var in [x, y] {
        add(Op::Read, var, &[Value::Int(0)]);
        add(Op::Write, var, &[]);
        for new in values {
            add(Op::Write, var, &[new]);
            add(Op::Rmw, var, &[Value::Int(0), new]);
        }
    }
    let resolved = resolve(spec, &names).resolved;
    let projection = Projection::new(&compiled.alphabet, &spec.inits, &resolved, &names);
    let mut state = compiled.monitor.start();
    let mut begin = 0;
    if compiled.reads_initial {
        state = compiled.monitor.step(state, projection.initial().letter()).unwrap();
        begin = 1;
    }
    if state == StateId::BAD {
        return Some(begin);
    }
    let mut seen = HashSet::from([(state, projection.initial().clone())]);
    let mut queue = VecDeque::from([(state, projection.initial().clone(), begin)]);
    while let Some((state, program, steps)) = queue.pop_front() {
        for event in &events {
            let Some(step) = projection.step(event, &pool) else { continue };
            let mut program = program.clone();
            let letter = projection.apply(&mut program, step, &mut EvalWarnings::default());
            let state = compiled.monitor.step(state, letter).unwrap();
            if state == StateId::BAD {
                return Some(steps + 1);
            }
            if seen.insert((state, program.clone())) {
                queue.push_back((state, program, steps + 1));
            }
        }
    }
    None
}

#[test]
fn shortest_violations_are_what_real_events_need() {
    let mut rng = fastrand::Rng::with_seed(11);
    let mut lengths = [0; 8];
    for _ in 0..1_500 {
        let inits = format!("init x = {}, y = {}\n", rng.u8(..3), rng.u8(..2));
        let text = inits + &random_property(&mut rng);
        let parsed = crate::parse(&text);
        // A constant formula, for example, is a mistake that the parser reports.
        if parsed.has_errors() {
            continue;
        }
        let facts = match explain_all(&parsed.spec).remove(0).monitor {
            Ok(facts) => facts,
            Err(error) => panic!("{text}: {error}"),
        };
        let fewest = fewest_steps(&parsed.spec);
        let example = facts.violation.example();
        assert_eq!(example.map(|e| e.letters.len()), fewest, "{text}");
        lengths[fewest.unwrap_or(0).min(7)] += 1;
        let compiled = Compiled::all(&parsed.spec).unwrap().remove(0);
        let letters = compiled.letters(4_096).unwrap();
        for (found, bad) in [(&facts.violation, true), (&facts.allowed, false)] {
            let Some(example) = found.example() else { continue };
            check_example(example, bad, &parsed.spec, &letters, &mut rng);
        }
    }
    assert!(lengths[..5].iter().all(|&n| n > 5), "{lengths:?}");
}

/// Every run that satisfies the conditions of an example's steps takes the same path.
fn check_example(
    example: &Example,
    bad: bool,
    spec: &Spec,
    letters: &[Letter],
    rng: &mut fastrand::Rng,
) {
    let mut compiled = Compiled::all(spec).unwrap().remove(0);
    let alphabet = compiled.alphabet.clone();
    let mut word = Vec::new();
    for (i, step) in example.steps.iter().enumerate() {
        let condition = if step.is_empty() { "true".into() } else { conjunction(step) };
        assert!(holds(&condition, &alphabet, example.letters[i]), "{step}");
        let initial = i == 0 && example.begins_initially;
        let events = if initial { alphabet.event_bits() } else { 0 };
        let fit: Vec<Letter> = letters
            .iter()
            .filter(|l| l.0 & events == 0 && holds(&condition, &alphabet, **l))
            .copied()
            .collect();
        word.push(rng.choice(&fit).unwrap().0);
    }
    let state = after(&mut compiled.monitor, &word);
    assert_eq!(state == StateId::BAD, bad, "{spec:?} {example:?}");
    // An unsatisfiable formula is violated before its first step, which is then shown.
    let before = after(&mut compiled.monitor, &word[..word.len() - 1]);
    assert!(before != StateId::BAD || word.len() == 1, "{spec:?} {example:?}");
}

/// The conditions of the steps are a list; commas within an atom stay.
fn conjunction(step: &str) -> String {
    let mut depth = 0;
    let mut out = String::new();
    for c in step.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if c == ',' && depth == 0 { out.push_str(" && ") } else { out.push(c) }
    }
    out
}
