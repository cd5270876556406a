//! Random programs against the truth: local states, failures, deadlocks; and bounds against brute force.

use std::collections::BTreeSet;

use foresee_explore::program::{Place, Program, ThreadName};
use foresee_explore::{Covered, Explored, Settings, Spin, Trouble, explore};
use foresee_testkit::seeds;

use crate::tiny::{Code, Ins, Tiny};
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

/// A random program: 2 to 4 threads, a few operations each.
pub(crate) fn program(seed: u64) -> Code {
    let mut rng = fastrand::Rng::with_seed(seed);
    let threads = rng.usize(2..=4);
    let vars = rng.usize(1..=3);
    let locks = rng.usize(0..=2);
    let has_conditions = locks > 0 && rng.u8(..3) == 0;
    let has_parts = rng.u8(..6) == 0;
    let has_more = rng.u8(..4) == 0;
    let mut code: Code = Vec::new();
    for at in 0..threads {
        let mut body: Vec<Ins> = Vec::new();
        if at == 0 {
            if has_more {
                body.extend([Ins::SemInit(0, rng.u32(0..2)), Ins::BarrierInit(0, 2)]);
            }
            // Some threads are started later, or by others.
            body.extend(
                (1..threads).filter(|&child| child != 3 || seed.is_multiple_of(2)).map(Ins::Fork),
            );
        }
        if at == 1 && threads == 4 && seed % 2 == 1 {
            body.push(Ins::Fork(3));
        }
        let length = rng.usize(2..=if threads > 3 { 3 } else { 6 });
        let mut held: Option<usize> = None;
        for _ in 0..length {
            let var = rng.usize(..vars);
            let reg = rng.usize(..2);
            match rng.u8(..if has_more { 24 } else { 20 }) {
                0..4 => body.push(Ins::Load(reg, var)),
                4..6 => body.push(Ins::Set(var, rng.u64(0..3))),
                6..8 => body.push(Ins::Store(var, reg, rng.u64(0..2))),
                8 => body.push(Ins::Add(reg, var, 1)),
                9 => body.push(Ins::Cas(reg, var, rng.u64(0..2), rng.u64(0..3))),
                10 => {
                    let fork = rng.usize(0..2);
                    body.push(Ins::SkipIf(reg, rng.u64(0..2), fork + 1));
                    body.extend((0..=fork).map(|i| Ins::Set(rng.usize(..vars), i as u64)));
                }
                11 => {
                    body.push(Ins::Load(reg, var));
                    body.push(Ins::SkipUnless(reg, 2, 1));
                    body.push(Ins::Fail);
                }
                12..15 => match held {
                    None if locks > 0 => {
                        held = Some(rng.usize(..locks));
                        // Conditions need the lock for themselves.
                        let shares = !has_conditions && rng.u8(..4) == 0;
                        body.extend(held.map(if shares { Ins::ReadLock } else { Ins::Lock }));
                    }
                    Some(lock) if locks == 2 && rng.bool() => {
                        // A second one, perhaps the wrong way round.
                        body.extend([
                            Ins::Lock(1 - lock),
                            Ins::Load(reg, var),
                            Ins::Unlock(1 - lock),
                        ]);
                    }
                    Some(lock) => {
                        body.push(Ins::Unlock(lock));
                        held = None;
                    }
                    None => body.push(Ins::Load(reg, var)),
                },
                15 if locks > 0 && held.is_none() => {
                    let lock = rng.usize(..locks);
                    body.push(if rng.bool() {
                        Ins::TryLock(2, lock)
                    } else {
                        Ins::TimedLock(2, lock)
                    });
                    body.push(Ins::SkipIf(2, 0, 2));
                    body.extend([Ins::Store(var, reg, 1), Ins::Unlock(lock)]);
                }
                16 if has_conditions => {
                    body.push(if rng.bool() { Ins::Signal(0) } else { Ins::Broadcast(0) });
                }
                17 if has_conditions && held.is_some() => {
                    let lock = held.unwrap_or(0);
                    body.push(if rng.bool() {
                        Ins::Wait(0, lock)
                    } else {
                        Ins::TimedWait(3, 0, lock)
                    });
                    body.push(Ins::SkipIf(3, 0, 1));
                    body.push(Ins::Set(var, 1));
                }
                18 if has_parts => body.push(Ins::LoadPart(reg, var, 4 * rng.u8(0..2), 4)),
                19 if has_parts => {
                    body.push(Ins::StorePart(var, rng.u8(0..7), 2, rng.u64(0..3)));
                }
                20 => body.push(Ins::Post(0)),
                21 => body.push(if rng.bool() { Ins::Take(0) } else { Ins::TryTake(3, 0) }),
                22 if held.is_none() => body.extend([Ins::Arrive(0), Ins::Pass(0)]),
                23 => {
                    body.extend([Ins::OnceBegin(3, 0), Ins::SkipIf(3, 0, 2)]);
                    body.extend([Ins::Set(var, 2), Ins::OnceEnd(0)]);
                }
                _ => body.push(Ins::Load(reg, var)),
            }
        }
        body.extend(held.map(Ins::Unlock));
        if at == 0 && rng.bool() {
            body.extend([Ins::Join(1), Ins::Load(0, 0)]);
        }
        if at == 0 && rng.u8(..4) == 0 {
            body.push(Ins::Exit(0));
        }
        code.push(body);
    }
    code
}

/// Whether a lock is given back by a thread that does not have it, which is no program: a lock held over a branch, say.
fn is_sound(explored: &Explored) -> bool {
    explored.doubts.is_empty()
}

fn check(seed: u64, settings: &Settings, jobs: usize) -> Option<(u32, usize)> {
    let code = program(seed);
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
        if let Some((of_it, _)) = check(seed, &to_the_end(), 1) {
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
fn persistent_sets_lose_nothing() {
    // No hunt: everything is searched with persistent sets.
    let settings = Settings { hunt: 0, ..to_the_end() };
    for seed in seeds(400) {
        check(seed, &settings, 1);
    }
}

#[test]
fn parallel_runs_lose_nothing() {
    for seed in seeds(60) {
        check(seed, &to_the_end(), 4);
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
