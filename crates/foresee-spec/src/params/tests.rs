use std::collections::BTreeSet;

use super::*;
use crate::ast::{Atom, EventAtom, Spec, Term};
use crate::letter::Letter;
use crate::monitor::StateId;
use crate::property::Compiled;
use crate::testing::*;
use foresee_trace::{Op, Trace};

/// Atoms over the parameters x, y and z. One event `a 1` can bind x by one atom and y by another.
const ATOMS: &[&str] = &[
    "event(a, x)",
    "event(b, y)",
    "event(c, x, y)",
    "event(d)",
    "event(a, y)",
    "event(c, y, x)",
    "event(e, z)",
    "event(c, z, x)",
    "event(b, y)@t1",
    "{s == 1}",
];

fn atom_text(rng: &mut fastrand::Rng, events_only: bool) -> &'static str {
    ATOMS[rng.usize(..ATOMS.len() - usize::from(events_only))]
}

fn random_regex(rng: &mut fastrand::Rng, size: usize) -> String {
    if size == 0 {
        return if rng.u8(..6) == 0 { ".".into() } else { atom_text(rng, false).into() };
    }
    let left = rng.usize(..size);
    match rng.u8(..6) {
        0..3 => format!("({} {})", random_regex(rng, left), random_regex(rng, size - 1 - left)),
        3 => format!("({} | {})", random_regex(rng, left), random_regex(rng, size - 1 - left)),
        4 => format!("({})*", random_regex(rng, size - 1)),
        _ => format!("~({})", random_regex(rng, size - 1)),
    }
}

fn random_past(rng: &mut fastrand::Rng, size: usize) -> String {
    if size == 0 {
        return atom_text(rng, false).trim_matches(['{', '}']).into();
    }
    let left = rng.usize(..size);
    match rng.u8(..5) {
        0 => format!("(once {})", random_past(rng, size - 1)),
        1 => format!("!({})", random_past(rng, size - 1)),
        2 => format!("({} since {})", random_past(rng, left), random_past(rng, size - 1 - left)),
        _ => format!("({} -> {})", random_past(rng, left), random_past(rng, size - 1 - left)),
    }
}

fn random_automaton(rng: &mut fastrand::Rng) -> String {
    let states = ["s0", "s1", "s2", "bad"];
    let mut text = "{ initial s0;".to_string();
    for state in &states[..3] {
        let edges: Vec<String> = (0..rng.usize(1..4))
            .map(|_| format!("{} -> {}", atom_text(rng, false), states[rng.usize(..4)]))
            .collect();
        text += &format!(" {state}: {};", edges.join(", "));
    }
    text + " }"
}

fn random_spec(rng: &mut fastrand::Rng) -> String {
    let size = rng.usize(1..5);
    let body = match rng.u8(..4) {
        0 => {
            let events: Vec<_> = (0..=size).map(|_| atom_text(rng, true)).collect();
            ("pattern", format!(": {}", events.join(" .. ")))
        }
        1 => ("violation", format!(": {}", random_regex(rng, size + 1))),
        2 => ("property", format!(": {}", random_past(rng, size))),
        _ => ("automaton", format!(" {}", random_automaton(rng))),
    };
    let used: Vec<&str> = ["x", "y", "z"].into_iter().filter(|p| mentions(&body.1, p)).collect();
    let params = if used.is_empty() { String::new() } else { format!("({})", used.join(", ")) };
    format!("init s = 0\n{} p{params}{}", body.0, body.1)
}

fn mentions(text: &str, param: &str) -> bool {
    text.contains(&format!(", {param}"))
}

fn random_trace(rng: &mut fastrand::Rng) -> Trace {
    let mut text = String::from("t1 event never; t2 w s=0;");
    for _ in 0..rng.usize(..14) {
        let (t, v, w) = (rng.u8(1..3), rng.u8(..3), rng.u8(..3));
        text += &match rng.u8(..7) {
            0 => format!("t{t} event a {v};"),
            1 => format!("t{t} event b {v};"),
            2 | 3 => format!("t{t} event c {v},{w};"),
            4 => format!("t{t} event d;"),
            5 => format!("t{t} event e {v};"),
            _ => format!("t{t} w s={};", v.min(1)),
        };
    }
    trace(&text)
}

/// The parameters that an atom binds if the event matches it under a full binding.
fn matches_under(
    atom: &EventAtom,
    params: &[String],
    values: &[i64],
    i: usize,
    t: &Trace,
) -> Option<u8> {
    let event = &t.events[i];
    let Term::Name(name) = &atom.target else { panic!() };
    let thread = match &atom.thread {
        Term::Name(thread) => t.names.threads.get(event.thread()) == thread.name,
        _ => true,
    };
    if event.op() != Op::Event || event.target_name(&t.names) != Some(&name.name) || !thread {
        return None;
    }
    let given = t.pool.values(event);
    let mut domain = 0;
    for (arg, given) in atom.args.iter().zip(given.iter()) {
        let Term::Param(p) = arg else { panic!() };
        let param = params.iter().position(|n| *n == p.name).unwrap();
        if *given != Value::Int(values[param]) {
            return None;
        }
        domain |= 1 << param;
    }
    (atom.args.len() <= given.len()).then_some(domain)
}

/// Where a full binding is first violated, by an event or in the initial state, directly from the
/// definition: its own events, the plain monitor, and a report once its events have bound all
/// parameters.
fn naive(spec: &Spec, trace: &Trace, values: &[i64]) -> Option<Option<u64>> {
    let mut compiled = Compiled::new(&spec.properties[0]).unwrap();
    let params: Vec<String> = compiled.params.names().to_vec();
    let atoms = compiled.alphabet.atoms().to_vec();
    let (mut s, mut bound, mut bad_at) = (0, 0u8, None);
    let state_bits = |s: i64| {
        let hold = atoms.iter().enumerate().filter(|(_, a)| !matches!(a, Atom::Event(_)));
        hold.fold(0u64, |m, (i, _)| m | u64::from(s == 1) << i)
    };
    let mut state = compiled.monitor.start();
    if compiled.reads_initial {
        state = compiled.monitor.step(state, Letter(state_bits(0))).unwrap();
    }
    if state == StateId::BAD {
        bad_at = Some(None);
    }
    for (i, event) in trace.events.iter().enumerate() {
        let mut events = 0;
        for (bit, atom) in atoms.iter().enumerate() {
            if let Atom::Event(atom) = atom
                && let Some(domain) = matches_under(atom, &params, values, i, trace)
            {
                events |= 1 << bit;
                bound |= domain;
            }
        }
        let write = event.op() == Op::Write && compiled.alphabet.has_state_atoms();
        if write && let Some(Value::Int(v)) = trace.pool.value(event) {
            s = v;
        }
        if events != 0 || write {
            state = compiled.monitor.step(state, Letter(state_bits(s) | events)).unwrap();
            if state == StateId::BAD {
                bad_at = bad_at.or(Some(Some(i as u64)));
            }
            if bad_at.is_some() && bound.count_ones() as usize == params.len() {
                return bad_at;
            }
        }
    }
    None
}

#[test]
fn slicing_agrees_with_its_definition() {
    let mut rng = fastrand::Rng::with_seed(61);
    let (mut total, mut several) = (0, 0);
    for case in 0..6_000 {
        let text = random_spec(&mut rng);
        if !text.contains("p(") {
            continue;
        }
        let spec = spec(&text);
        let Ok(compiled) = Compiled::new(&spec.properties[0]) else { continue };
        let params = compiled.params.names().len();
        let trace = random_trace(&mut rng);
        let found = observe(&spec, &trace).take_violations();
        let found: BTreeSet<(Vec<i64>, Option<u64>)> = found
            .iter()
            .map(|v| {
                let value = |(_, o): &(String, Object)| match o {
                    Object::Value(Value::Int(n)) => *n,
                    other => panic!("{other:?}"),
                };
                (v.binding.iter().map(value).collect(), v.event)
            })
            .collect();
        let mut expected = BTreeSet::new();
        for n in 0..3i64.pow(params as u32) {
            let values: Vec<i64> = (0..params).map(|p| n / 3i64.pow(p as u32) % 3).collect();
            if let Some(at) = naive(&spec, &trace, &values) {
                expected.insert((values, at));
            }
        }
        let events: Vec<String> = trace
            .events
            .iter()
            .map(|e| e.describe(&trace.names, &trace.pool).to_string())
            .collect();
        assert_eq!(found, expected, "case {case}: {text}\n{events:?}");
        total += found.len();
        several += usize::from(found.len() > 1);
    }
    assert!(total > 3_000 && several > 300, "{total} {several}");
}

const UNSAFE_ITERATION: &str = "pattern unsafe_iteration(c, i): \
    exit(iterator, c, i) .. enter(next, i) .. enter(add, c) .. enter(next, i)";

#[test]
fn an_iterator_is_unsafe_only_with_its_own_collection() {
    let found = violations(
        UNSAFE_ITERATION,
        "t exit iterator c1,i1; t exit iterator c2,i2; t enter next i1; t enter next i2;
         u enter add c1; t enter next i2; t enter next i1; t enter next i1",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].event, Some(6));
    assert_eq!(found[0].trail, [0, 2, 4, 6]);
    let names: Vec<&str> = found[0].binding.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["c", "i"]);
}

#[test]
fn bindings_are_made_only_when_something_changes() {
    let spec = spec(UNSAFE_ITERATION);
    let compiled = Compiled::new(&spec.properties[0]).unwrap();
    assert!(compiled.params.only_changes_matter());
    let mut monitor = compiled.monitor;
    let mut slicer = Slicer::new(&compiled.params, monitor.start(), 1_000);
    let trace = trace("t enter add c1; t enter next i1; t enter add c2; t exit iterator c1,i1");
    let mut found = Vec::new();
    let resolved = crate::resolve(&spec, &trace.names).resolved;
    let projection =
        crate::observe::Projection::new(&compiled.alphabet, &[], &resolved, &trace.names);
    let mut sizes = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        let step = projection.step(event, &trace.pool).unwrap();
        compiled.params.bindings(step.events, event, &trace.pool, &mut found);
        let letter = Letter(step.events);
        slicer.step(&mut monitor, i as u64, letter, &found, false, |_, _| ()).unwrap();
        sizes.push(slicer.len());
    }
    assert_eq!(sizes, [1, 1, 1, 2]);
}

#[test]
fn too_many_bindings_end_in_an_error() {
    let spec = spec("pattern p(x): event(a, x) .. event(b, x)");
    let compiled = Compiled::new(&spec.properties[0]).unwrap();
    let mut monitor = compiled.monitor;
    let mut slicer = Slicer::new(&compiled.params, monitor.start(), 10);
    let step = |i: u64| {
        let mut binding = Binding::default();
        binding.bind(0, Object::Value(Value::Int(i as i64)));
        slicer.step(&mut monitor, i, Letter(1), &[(binding, 1)], false, |_, _| ())
    };
    let error = (0..20).map(step).find_map(Result::err);
    assert_eq!(error, Some(SlicerError::Bindings(TooManyBindings(10))));
}

#[test]
fn a_parameter_must_be_bound() {
    let property = property("pattern p(x): event(a, x)");
    let mut unbound = property.clone();
    unbound.params.push(ident("y"));
    assert!(Compiled::new(&property).is_ok());
    assert_eq!(Compiled::new(&unbound).unwrap_err().code, "unbound-param");
}

#[test]
fn many_bindings_are_all_followed() {
    let spec = spec("pattern p(i): event(create, i) .. event(update, i) .. event(next, i)");
    let mut text = String::new();
    for i in 0..300 {
        text += &format!("t event create {i}; t event update {i};");
    }
    for i in (0..300).step_by(3) {
        text += &format!("t event next {i};");
    }
    let found = observe(&spec, &trace(&text)).take_violations();
    assert_eq!(found.len(), 100);
    assert_eq!(found[99].trail, [2 * 297, 2 * 297 + 1, 699]);
}
