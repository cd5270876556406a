//! Random programs against the truth: local states, failures, deadlocks; and bounds against brute force.

use std::collections::BTreeSet;

use foresee_explore::program::{Place, Program, ThreadName};
use foresee_explore::{Covered, Explored, Settings, Spin, Trouble, explore};
use foresee_testkit::seeds;

use crate::programs::Family;
use crate::tiny::{Code, Tiny};
use crate::truth::truth;

/// Settings that go to the end.
pub(crate) fn to_the_end() -> Settings {
    Settings {
        stops_at_first: false,
        repeats: 0,
        spin: Spin::Bound(1000),
        most_operations: 300,
        ..Settings::default()
    }
}

pub(crate) fn run(tiny: &Tiny, settings: &Settings, jobs: usize) -> Explored {
    let mut runners: Vec<Box<dyn Program>> =
        (0..jobs).map(|_| Box::new(tiny.clone()) as Box<dyn Program>).collect();
    explore(&mut runners, settings, None, None, &mut |_| true).expect("it can be run")
}

pub(crate) fn failures(explored: &Explored) -> BTreeSet<Place> {
    let failed = explored
        .findings
        .iter()
        .filter(|finding| matches!(finding.trouble, Trouble::Failed(_) | Trouble::Exited(_)));
    failed.map(|finding| finding.place).collect()
}

pub(crate) fn deadlocks(explored: &Explored) -> BTreeSet<Vec<(ThreadName, Place)>> {
    let all = explored.findings.iter().filter_map(|finding| match &finding.trouble {
        Trouble::Deadlock(all) => {
            let mut all: Vec<_> = all.iter().map(|one| (one.0.clone(), one.2)).collect();
            all.sort();
            Some(all)
        }
        _ => None,
    });
    all.collect()
}

/// A random program of everything that the interpreter can do.
pub(crate) fn program(seed: u64) -> Code {
    Family::RICH.program(seed)
}

/// Whether a lock is given back by a thread that does not have it, which is no program: a lock held over a branch, say.
fn is_sound(explored: &Explored) -> bool {
    explored.doubts.is_empty()
}

fn check(family: &Family, seed: u64, settings: &Settings, jobs: usize) -> Option<(u32, usize)> {
    let code = family.program(seed);
    let truth = truth(&code, None, 15_000)?;
    let tiny = Tiny::new(&code);
    let explored = run(&tiny, settings, jobs);
    assert!(is_sound(&explored), "seed {seed}: {:?}\n{code:?}", explored.doubts);
    assert!(explored.is_complete(), "seed {seed}: {explored:?}\n{code:?}");
    let locals = tiny.locals.lock().expect("no thread panicked");
    let missed = truth.locals.difference(&locals).count();
    assert_eq!(missed, 0, "seed {seed}: local states\n{code:?}");
    assert_eq!(locals.difference(&truth.locals).count(), 0, "seed {seed}: impossible\n{code:?}");
    assert_eq!(failures(&explored), truth.failures, "seed {seed}: failures\n{code:?}");
    assert_eq!(deadlocks(&explored), truth.deadlocks, "seed {seed}: deadlocks\n{code:?}");
    Some((explored.runs, explored.states))
}

#[test]
fn random_programs_are_explored_to_the_end() {
    let (mut done, mut runs, mut failing) = (0, 0, 0);
    for seed in seeds(400) {
        if let Some((of_it, _)) = check(&Family::RICH, seed, &to_the_end(), 1) {
            done += 1;
            runs += of_it;
            failing += u32::from(of_it > 10);
        }
    }
    assert!(done >= foresee_testkit::enough::<u32>(200), "{done}");
    assert!(failing > 0, "{failing}");
    // The prototype needed 6.6 on average; these are about as large.
    assert!(runs / done.max(1) < 30, "{runs} runs of {done} programs");
}

#[test]
fn so_are_those_that_can_be_written_in_c() {
    let done = seeds(100).filter(|&seed| check(&Family::IN_C, seed, &to_the_end(), 1).is_some());
    let done = done.count();
    assert!(done >= foresee_testkit::enough(50), "{done}");
}

#[test]
fn persistent_sets_lose_nothing() {
    // No hunt: everything is searched with persistent sets.
    let settings = Settings { hunt: 0, ..to_the_end() };
    for seed in seeds(400) {
        check(&Family::RICH, seed, &settings, 1);
    }
}

#[test]
fn parallel_runs_lose_nothing() {
    for seed in seeds(60) {
        check(&Family::RICH, seed, &to_the_end(), 4);
    }
}

#[test]
fn bounds_are_exact() {
    for seed in seeds(120) {
        let code = program(seed);
        for most in 0..3 {
            let Some(truth) = truth(&code, Some(most), 8_000) else { continue };
            let tiny = Tiny::new(&code);
            let settings = Settings { detours: Some(most), ..to_the_end() };
            let explored = run(&tiny, &settings, 1);
            assert!(is_sound(&explored), "seed {seed}: {:?}\n{code:?}", explored.doubts);
            let is_covered = match explored.covered {
                Covered::Everything => true,
                Covered::Detours(detours) => detours == most,
                Covered::Nothing => false,
            };
            assert!(is_covered, "seed {seed}: {explored:?}\n{code:?}");
            let locals = tiny.locals.lock().expect("no thread panicked");
            let missed = truth.locals.difference(&locals).count();
            assert_eq!(missed, 0, "seed {seed}, {most} detours\n{code:?}");
            assert!(failures(&explored).is_superset(&truth.failures), "seed {seed}\n{code:?}");
            assert!(deadlocks(&explored).is_superset(&truth.deadlocks), "seed {seed}\n{code:?}");
            if explored.covered == Covered::Everything {
                let Some(all) = self::truth(&code, None, 30_000) else { continue };
                assert!(all.locals.is_subset(&locals), "seed {seed}: covered is claimed\n{code:?}");
            }
        }
    }
}
