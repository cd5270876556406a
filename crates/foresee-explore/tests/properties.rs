//! Properties along the search against every interleaving, each judged by the plain monitor of one run.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use foresee_explore::program::{
    Cell, Modify, Operation, Place, Program, Spot, ThreadName, Told, Value,
};
use foresee_explore::properties::{Properties, Vocabulary};
use foresee_explore::{Explored, Seen, Settings, Trouble, explore};
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_spec::run::ObservedMonitor;
use foresee_testkit::seeds;
use foresee_trace::{Event, Names, Op, Pool};

use crate::random::{program, to_the_end};
use crate::tiny::{Code, Ins, Machine, Tiny};

/// Variables `v0` to `v5`, locks `l0` to `l5`, threads `main`, `t1`, `t2`, …
struct Words(Names);

const MOST: usize = 6;

fn called(name: &ThreadName) -> String {
    match name.0.split_first() {
        None => "main".to_owned(),
        Some((first, rest)) => rest.iter().fold(format!("t{first}"), |all, n| format!("{all}_{n}")),
    }
}

impl Words {
    fn new() -> Words {
        let mut names = Names::default();
        for i in 0..MOST {
            names.vars.intern(&format!("v{i}")).expect("there is room for it");
            names.locks.intern(&format!("l{i}")).expect("there is room for it");
        }
        for thread in ["main", "t1", "t2", "t3", "t1_1", "t2_1"] {
            names.thread(thread).expect("there is room for it");
        }
        Words(names)
    }

    fn event(&self, seen: &Seen<'_>, pool: &mut Pool) -> Option<Event> {
        let thread = self.0.threads.lookup(&called(seen.thread)).expect("it is known");
        let index = |spot: Spot| (spot.object.0 % 1000) as u32;
        let event = |op| Event::new(thread, op);
        let int = |value: Value| match value {
            Value::Bits(bits) => foresee_trace::Value::Int(bits as i64),
            Value::Address(_) => panic!("there are no addresses"),
        };
        let touch = |op, cell: Cell| event(op).with_target(index(cell.at));
        Some(match (seen.operation, seen.told) {
            (Operation::Load(cell), Told::Value(value)) => {
                touch(Op::Read, cell).with_values(&[int(value)], pool)
            }
            (Operation::Store(cell, Some(value)), _) => {
                touch(Op::Write, cell).with_values(&[int(value)], pool)
            }
            (
                Operation::Modify(cell, Modify::CompareExchange { expected, .. }),
                Told::Value(old),
            ) if expected != old => touch(Op::Read, cell).with_values(&[int(old)], pool),
            (Operation::Modify(cell, _), Told::Value(old)) => {
                let new = seen.left.expect("it can be computed");
                touch(Op::Rmw, cell).with_values(&[int(old), int(new)], pool)
            }
            (Operation::Lock { lock, .. }, Told::Nothing | Told::Got) => {
                event(Op::Acquire).with_target(index(lock))
            }
            (Operation::WaitEnd { lock, .. }, _) => event(Op::Acquire).with_target(index(lock)),
            (Operation::Unlock { lock, .. } | Operation::Wait { lock, .. }, _) => {
                event(Op::Release).with_target(index(lock))
            }
            _ => return None,
        })
    }

    fn initial_values(&self, pool: &mut Pool) -> Vec<Event> {
        let thread = self.0.threads.lookup("main").expect("it is known");
        let zero = foresee_trace::Value::Int(0);
        (0..MOST as u32)
            .map(|var| Event::new(thread, Op::Init).with_target(var).with_values(&[zero], pool))
            .collect()
    }
}

impl Vocabulary for Words {
    fn names(&self) -> &Names {
        &self.0
    }

    fn version(&self) -> u32 {
        0
    }

    fn events(&mut self, seen: &Seen<'_>, pool: &mut Pool) -> Vec<Event> {
        self.event(seen, pool).into_iter().collect()
    }

    fn initial(&mut self, pool: &mut Pool) -> Vec<Event> {
        self.initial_values(pool)
    }

    fn sees(&self, operation: &Operation) -> bool {
        matches!(
            operation,
            Operation::Load(_)
                | Operation::Store(..)
                | Operation::Modify(..)
                | Operation::Lock { .. }
                | Operation::Unlock { .. }
                | Operation::Wait { .. }
                | Operation::WaitEnd { .. }
        )
    }
}

const SPEC: &str = "
property below: v0 < 2
property never_both: !(v0 == 1 && v1 == 1)
property after: write(v0)@t1 -> once write(v1)
property fresh: read(v1)@t2 -> prev (v1 == 0)
property locked: write(v0) -> !release(l0) since acquire(l0)
pattern order: write(v1)@t1 .. read(v0)@main .. write(v0)
pattern handed: acquire(l0)@t2 .. acquire(l0)@t1
property eventually: v1 == 2 -> (v0 == 0 until v1 == 1)
pattern again(l, t): acquire(l)@t .. release(l)@t .. acquire(l)@t
pattern between(l, s, t): acquire(l)@s .. write(v0)@t .. release(l)@s
pattern passed(x, t): write(v0, x) .. read(v1, x)@t
property owned(l, t): release(l)@t -> v0 < 2 since acquire(l)@t
property alone(t): write(v0)@t -> hist !(write(v1)@t && v0 == 1)
";

fn spec() -> (Spec, Vec<Compiled>) {
    let parsed = foresee_spec::parse(SPEC);
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let compiled = Compiled::all(&parsed.spec).expect("it can be compiled");
    (parsed.spec, compiled)
}

/// Every property that some interleaving violates; nothing if there are too many of them.
fn brute_force(code: &Code, most: usize) -> Option<BTreeSet<usize>> {
    struct Search<'c> {
        code: &'c Code,
        words: Words,
        spec: Spec,
        compiled: Vec<Compiled>,
        left: usize,
        violated: BTreeSet<usize>,
    }

    impl Search<'_> {
        /// False if there are too many.
        fn go(&mut self, machine: &Machine, events: &[Event], pool: &Pool) -> bool {
            let moves = machine.moves(self.code);
            if moves.is_empty() {
                self.left = match self.left.checked_sub(1) {
                    Some(left) => left,
                    None => return false,
                };
                let names = &self.words.0;
                let resolved = foresee_spec::resolve(&self.spec, names).resolved;
                let compiled = std::mem::take(&mut self.compiled);
                let mut monitor = ObservedMonitor::new(&self.spec, compiled, &resolved, names);
                for (i, event) in events.iter().enumerate() {
                    monitor.event(i as u64, event, pool);
                }
                monitor.finish();
                self.violated.extend(monitor.violations().iter().map(|one| one.property));
                self.compiled = monitor.into_properties();
                return true;
            }
            moves.into_iter().all(|(at, choice)| {
                let mut next = machine.clone();
                let (told, stored) = next.step(self.code, at, choice);
                let operation = machine.operation(self.code, at, stored);
                let left = match (operation, told) {
                    (Operation::Modify(_, modify), Told::Value(Value::Bits(old))) => {
                        Some(Value::Bits(match modify {
                            Modify::Add(Value::Bits(by)) => old + by,
                            Modify::CompareExchange { desired: Value::Bits(new), .. } => new,
                            other => panic!("{other:?}"),
                        }))
                    }
                    _ => None,
                };
                let thread = &machine.name(at);
                let seen =
                    Seen { thread, operation, place: Place(0), told, left, is_outermost: true };
                let (mut events, mut pool) = (events.to_vec(), pool.clone());
                events.extend(self.words.event(&seen, &mut pool));
                self.go(&next, &events, &pool)
            })
        }
    }

    let (words, mut pool) = (Words::new(), Pool::default());
    let events = words.initial_values(&mut pool);
    let (spec, compiled) = spec();
    let mut search = Search { code, words, spec, compiled, left: most, violated: BTreeSet::new() };
    search.go(&Machine::new(code, 0), &events, &pool).then_some(search.violated)
}

fn explored(code: &Code, settings: &Settings) -> Explored {
    let mut runners: Vec<Box<dyn Program>> = vec![Box::new(Tiny::new(code))];
    let properties = Properties::new(vec![spec()], Arc::new(Mutex::new(Words::new())));
    explore(&mut runners, settings, Some(Box::new(properties)), None, &mut |_| true)
        .expect("it can be run")
}

fn violated(explored: &Explored) -> BTreeSet<usize> {
    let all = explored.findings.iter().filter_map(|finding| match finding.trouble {
        Trouble::Violated(property) => Some(property),
        _ => None,
    });
    all.collect()
}

#[test]
fn the_search_decides_as_all_interleavings_together_do() {
    let (mut compared, mut found) = (0, BTreeSet::<usize>::new());
    for seed in seeds(400) {
        let code = program(seed);
        let has_parts = |ins: &Ins| matches!(ins, Ins::LoadPart(..) | Ins::StorePart(..));
        if code.iter().flatten().any(has_parts) {
            continue;
        }
        let Some(truth) = brute_force(&code, 400) else { continue };
        compared += 1;
        found.extend(&truth);
        for reduces_at_once in [false, true] {
            let hunt = if reduces_at_once { 0 } else { Settings::default().hunt };
            let explored = explored(&code, &Settings { hunt, ..to_the_end() });
            assert!(explored.is_complete(), "seed {seed}: {explored:?}");
            assert_eq!(violated(&explored), truth, "seed {seed} {reduces_at_once} {code:?}");
        }
    }
    assert!(compared > 30, "{compared}");
    assert!(found.len() >= 10, "{found:?}");
}

#[test]
fn what_is_not_decided_is_said() {
    let parsed =
        foresee_spec::parse("property two: enter(f) -> v0 == 0\nproperty three: !write(_)");
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    let compiled = Compiled::all(&parsed.spec).expect("it can be compiled");
    let properties =
        Properties::new(vec![(parsed.spec, compiled)], Arc::new(Mutex::new(Words::new())));
    let code: Code = vec![vec![Ins::Set(0, 1)]];
    let mut runners: Vec<Box<dyn Program>> = vec![Box::new(Tiny::new(&code))];
    let monitor = Some(Box::new(properties) as Box<_>);
    let explored =
        explore(&mut runners, &to_the_end(), monitor, None, &mut |_| true).expect("it can be run");
    assert_eq!(explored.undecided.len(), 2, "{:?}", explored.undecided);
    assert!(!explored.is_complete());
}
