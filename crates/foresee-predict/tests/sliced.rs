//! Patterns in correct reorderings against exhaustive search, on random traces full of locks.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/analyses/locks.md` come from here.

use crate::common::Tied;
use fastrand::Rng;
use foresee_causality::judge::Reads;
use foresee_predict::Reordered;
use foresee_predict::reorder::SlicedLimits;
use foresee_spec::params::Object;
use foresee_testkit::{Family, enough, families, seeds};
use foresee_trace::{Op, Trace, Value};

/// An atom that some event of the trace matches.
fn event(trace: &Trace, rng: &mut Rng) -> String {
    let event = &trace.events[rng.usize(..trace.events.len())];
    let target = event.target_name(&trace.names).unwrap_or("_");
    let value = match trace.pool.values(event).first() {
        Some(Value::Int(n)) if rng.u8(..4) == 0 => format!(", {n}"),
        _ => String::new(),
    };
    let atom = match event.op() {
        Op::Read | Op::VolatileRead => format!("read({target}{value})"),
        Op::Write | Op::VolatileWrite => format!("write({target}{value})"),
        Op::Rmw => format!("write({target})"),
        Op::Acquire | Op::AcquireShared => format!("acquire({target})"),
        Op::Release | Op::ReleaseShared => format!("release({target})"),
        Op::Fork => format!("fork({target})"),
        Op::Join => format!("join({target})"),
        Op::Event => format!("event({target})"),
        _ => "write(_)".to_owned(),
    };
    let thread = format!("@{}", trace.names.threads.get(event.thread()));
    if rng.bool() { atom + &thread } else { atom }
}

fn random_pattern(trace: &Trace, rng: &mut Rng) -> String {
    let mut positions: Vec<String> = (0..rng.usize(2..=4)).map(|_| event(trace, rng)).collect();
    if rng.u8(..5) == 0 {
        positions[0] = format!("({} | {})", event(trace, rng), event(trace, rng));
    }
    format!("pattern p: {}", positions.join(" .. "))
}

/// How many patterns of a family can be shown, and by what.
#[derive(Debug, Default)]
struct Yield {
    possible: u32,
    sliced: u32,
    maz: u32,
}

fn compare(family: &Family, seeds: std::ops::Range<u64>) -> Yield {
    let mut all = Yield::default();
    for seed in seeds {
        let trace = family.short(seed);
        let mut rng = Rng::with_seed(seed ^ 0xabcd);
        let text = random_pattern(&trace, &mut rng);
        let reads = if rng.bool() { Reads::Strict } else { Reads::Terminal };
        let tied = Tied::new(&trace, &text);
        if !tied.observed().is_empty() {
            continue;
        }
        let (found, analysed) = tied.sliced(SlicedLimits { reads, ..SlicedLimits::default() });
        let context =
            || format!("seed {seed} of {}: {text} {reads:?}\n{trace}\n{analysed:?}", family.name);
        for found in &found {
            tied.confirm(found).unwrap_or_else(|e| panic!("{e}: {found:?} {}", context()));
        }
        let possible = tied.is_violable(reads);
        assert!(possible || found.is_empty(), "{}", context());
        all.possible += u32::from(possible);
        all.sliced += u32::from(!found.is_empty());
        // One in four is enough for a comparison.
        if seed.is_multiple_of(4) {
            let maz = tied.maz().len() as u32;
            assert!(possible || maz == 0, "{}", context());
            all.maz += maz;
        }
    }
    println!("{}: {all:?}", family.name);
    all
}

#[test]
fn patterns_are_found_nearly_wherever_they_can_be() {
    let mut all = Yield::default();
    for family in families() {
        let one = compare(&family, seeds(2_500));
        assert!(one.possible > enough(100), "{}: {one:?}", family.name);
        assert!(one.sliced * 100 >= one.possible * 98, "{}: {one:?}", family.name);
        all.possible += one.possible;
        all.sliced += one.sliced;
        all.maz += one.maz;
    }
    println!("{all:?}");
    // Without swapping sections, much less is found.
    assert!(all.maz * 4 * 10 < all.possible * 6, "{all:?}");
}

/// A binding is found exactly where the pattern with the names put in is.
#[test]
fn bindings_are_found_one_by_one() {
    const PATTERNS: [&str; 3] = [
        "write(v)@T0 .. write(v)@T1 .. read(v)",
        "read(v)@T1 .. write(_)@T0 .. write(v)",
        "write(v) .. acquire(_)@T0 .. read(v)@T1",
    ];
    let (mut found, mut missed) = (0, 0);
    for family in families() {
        for seed in 0..60 {
            let trace = family.short(seed);
            for pattern in PATTERNS {
                let tied = Tied::new(&trace, &format!("pattern p(v): {pattern}"));
                let (ours, _) = tied.sliced(SlicedLimits::default());
                for (_, name) in trace.names.vars.iter() {
                    let text =
                        format!("pattern p: {}", pattern.replace("(v)", &format!("({name})")));
                    let bound = Tied::new(&trace, &text);
                    let possible =
                        bound.observed().is_empty() && bound.is_violable(Reads::Terminal);
                    let is_it = |found: &&Reordered| {
                        let id = trace.names.vars.lookup(name).unwrap();
                        found.binding == [("v".to_owned(), Object::Var(id))]
                    };
                    let reordered = ours.iter().find(is_it);
                    let context = || format!("seed {seed} of {}: {text}\n{trace}", family.name);
                    assert!(possible || reordered.is_none(), "{}", context());
                    if let Some(reordered) = reordered {
                        tied.confirm(reordered).unwrap_or_else(|e| panic!("{e}: {}", context()));
                    }
                    found += usize::from(reordered.is_some());
                    missed += usize::from(possible && reordered.is_none());
                }
            }
        }
    }
    assert!(found > 200 && missed * 50 < found, "{found} found, {missed} missed");
}
