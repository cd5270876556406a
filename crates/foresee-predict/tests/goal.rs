//! The search for correct reorderings against exhaustive search, goal by goal.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/analyses/locks.md` come from here.

use crate::common::requirements;
use fastrand::Rng;
use foresee_causality::judge::{Judge, Reads};
use foresee_predict::reorder::{Answer, Effort, Goal, Search, Sight, Wanted};
use foresee_testkit::oracle::{self, Reorderings};
use foresee_testkit::{enough, families, random_trace, seeds};
use foresee_trace::{Op, Trace};

/// A random goal: some events in a random order, and now and then events to come next.
fn random_goal(trace: &Trace, rng: &mut Rng) -> (Vec<Wanted>, Vec<u32>) {
    let mut next = Vec::new();
    let is_step = |&i: &u32| trace.events[i as usize].op() != Op::Init;
    let steps: Vec<u32> = (0..trace.events.len() as u32).filter(is_step).collect();
    if rng.u8(..3) == 0 {
        for _ in 0..rng.usize(1..=2) {
            let event = steps[rng.usize(..steps.len())];
            let thread = |i: u32| trace.events[i as usize].thread();
            if next.iter().all(|&other| thread(other) != thread(event)) {
                next.push(event);
            }
        }
    }
    let least = usize::from(next.is_empty()) * 2;
    let executed = (0..rng.usize(least..=3))
        .map(|_| Wanted { event: steps[rng.usize(..steps.len())], keeps_value: rng.u8(..4) == 0 });
    (executed.collect(), next)
}

fn exists(trace: &Trace, goal: &Goal<'_>, reads: oracle::Reads) -> bool {
    let all = Reorderings::new(trace, reads);
    let step = |&done: &usize, step: oracle::Step| {
        let wanted = goal.executed.get(done);
        let is_it = wanted.is_some_and(|w| {
            w.event as usize == step.event && !(w.keeps_value && step.other_writer)
        });
        Some(done + usize::from(is_it))
    };
    let is_next = |state: &oracle::State, event: u32| {
        let thread = trace.events[event as usize].thread();
        let is_fork = |e: &foresee_trace::Event| e.op() == Op::Fork && e.other() == thread;
        let fork = trace.events.iter().position(is_fork);
        all.next(state, thread) == Some(event as usize)
            && fork.is_none_or(|fork| all.has_happened(state, fork))
    };
    let wanted = |state: &oracle::State, &done: &usize| {
        done == goal.executed.len() && goal.next.iter().all(|&event| is_next(state, event))
    };
    all.search(0, step, wanted).is_some()
}

/// Whether the answer to a goal is one, as the judge sees it.
fn confirmed(
    trace: &Trace,
    goal: &Goal<'_>,
    reads: Reads,
    answer: &Answer,
) -> Result<bool, String> {
    let Answer::Yes { observed, order } = answer else { return Ok(false) };
    let order: Vec<u64> = (0..*observed).chain(order.iter().copied()).map(u64::from).collect();
    let next: Vec<u64> = goal.next.iter().map(|&event| event.into()).collect();
    let changed = Judge::new(trace)
        .check_next(&order, &next, reads)
        .map_err(|e| format!("{e} in {order:?}"))?;
    let places = goal.executed.iter().map(|w| order.iter().position(|&e| e == u64::from(w.event)));
    let places: Option<Vec<usize>> = places.collect();
    if !places.is_some_and(|places| places.is_sorted_by(|a, b| a < b)) {
        return Err(format!("not in this order: {order:?}"));
    }
    let is_broken =
        |w: &&Wanted| w.keeps_value && changed.iter().any(|r| r.read == u64::from(w.event));
    match goal.executed.iter().find(is_broken) {
        Some(wanted) => Err(format!("{} sees another value in {order:?}", wanted.event)),
        None => Ok(true),
    }
}

fn compare(name: &str, seeds: std::ops::Range<u64>, make: impl Fn(u64) -> Trace) {
    let (mut possible, mut quick, mut thorough, mut anchored) = (0, 0, 0, 0);
    let (mut possible_by_value, mut by_value, mut impossible, mut proved) = (0, 0, 0, 0);
    let (mut possible_freely, mut freely) = (0, 0);
    for seed in seeds {
        let trace = make(seed);
        if trace.events.iter().all(|event| event.op() == Op::Init) {
            continue;
        }
        let mut rng = Rng::with_seed(seed);
        let reads = if rng.bool() { Reads::Strict } else { Reads::Terminal };
        let requirements = requirements(&trace);
        let mut search = Search::new(&requirements, reads);
        for _ in 0..4 {
            let (executed, next) = random_goal(&trace, &mut rng);
            let goal = Goal { executed: &executed, next: &next };
            let (identical, by_values) = match reads {
                Reads::Strict => (oracle::Reads::Identical, oracle::Reads::Strict),
                _ => (oracle::Reads::IdenticalTerminal, oracle::Reads::Terminal),
            };
            let truth = exists(&trace, &goal, by_values);
            let is_identical = exists(&trace, &goal, identical);
            possible += u32::from(is_identical);
            possible_by_value += u32::from(truth);
            let context = format!("seed {seed} of {}: {goal:?} {reads:?}\n{trace}", name);
            // What is not conceivable is possible with no choice of writers.
            impossible += u32::from(!truth);
            if !search.is_conceivable(&goal) {
                assert!(!truth, "conceivable after all, {context}");
                proved += 1;
            }
            let yes = [Sight::Writers, Sight::Values].into_iter().any(|sight| {
                let answer = search.ask_seeing(sight, &goal, 0, Effort::THOROUGH);
                let yes = confirmed(&trace, &goal, reads, &answer);
                yes.unwrap_or_else(|e| panic!("{e}, {context}"))
            });
            assert!(truth || !yes, "{context}");
            by_value += u32::from(yes);
            let is_free = exists(&trace, &goal, oracle::Reads::Any);
            possible_freely += u32::from(is_free);
            let answer = search.ask_seeing(Sight::Anything, &goal, 0, Effort::THOROUGH);
            let is_valued = goal.executed.iter().any(|wanted| wanted.keeps_value);
            if !is_valued {
                let yes = confirmed(&trace, &goal, Reads::Any, &answer);
                let yes = yes.unwrap_or_else(|e| panic!("{e}, {context}"));
                assert!(is_free || !yes, "{context}");
                freely += u32::from(yes);
            } else {
                possible_freely -= u32::from(is_free);
            }
            let anchor = rng.u32(0..=goal.first().unwrap());
            for (effort, anchor, found) in [
                (Effort::QUICK, 0, &mut quick),
                (Effort::THOROUGH, 0, &mut thorough),
                (Effort::THOROUGH, anchor, &mut anchored),
            ] {
                let answer = search.ask(&goal, anchor, effort);
                let yes = confirmed(&trace, &goal, reads, &answer);
                let yes = yes.unwrap_or_else(|e| panic!("{e}, {context}"));
                assert!(truth || !yes, "{answer:?}, {context}");
                // What does not depend on the anchor holds without one.
                if let Answer::No { is_final: true, .. } = answer {
                    let whole = search.ask(&goal, 0, effort);
                    assert!(matches!(whole, Answer::No { .. }), "{whole:?}, {context}");
                }
                *found += u32::from(yes);
            }
        }
    }
    println!(
        "{}: {possible} possible, {quick} quick, {thorough} thorough, {anchored} anchored; by value \
         {possible_by_value} possible, {by_value} found, {proved} of {impossible} proved impossible; \
         with any values {freely} of {possible_freely}",
        name
    );
    assert!(possible > enough(100), "{}: only {possible} possible", name);
    assert!(thorough * 1000 >= possible * 995, "{}: {thorough} of {possible}", name);
    assert!(quick * 100 >= possible * 95, "{}: {quick} of {possible}", name);
    assert!(by_value * 100 >= possible_by_value * 98, "{name}: {by_value} of {possible_by_value}");
    assert!(freely * 1000 >= possible_freely * 995, "{name}: {freely} of {possible_freely}");
}

#[test]
fn goals_are_reached_as_far_as_anything_reaches_them() {
    for family in families() {
        compare(family.name, seeds(1_000), |seed| family.short(seed));
    }
    // Everything that a trace can have, but little of it.
    compare("anything", seeds(4_000), random_trace);
}

/// Where no oracle can follow, the judge still has to agree, near and far.
#[test]
fn answers_in_long_traces_stand() {
    let mut found = [0; 3];
    for family in families() {
        for seed in 0..20 {
            let trace = family.trace(seed, 400 + 30 * seed);
            let requirements = requirements(&trace);
            let mut rng = Rng::with_seed(seed);
            let reads = if rng.bool() { Reads::Strict } else { Reads::Terminal };
            let mut search = Search::new(&requirements, reads);
            for _ in 0..10 {
                let near = rng.u32(..trace.events.len() as u32 - 40);
                let mut events: Vec<u32> = (near..near + 40).collect();
                events.retain(|&i| trace.events[i as usize].op() != Op::Init);
                rng.shuffle(&mut events);
                let wanted = |&event: &u32| Wanted { event, keeps_value: false };
                let executed: Vec<Wanted> = events[..rng.usize(2..=3)].iter().map(wanted).collect();
                let goal = Goal { executed: &executed, next: &[] };
                let first = goal.first().unwrap();
                for (i, back) in [20, 200, u32::MAX].into_iter().enumerate() {
                    let answer = search.ask(&goal, first.saturating_sub(back), Effort::THOROUGH);
                    let yes = confirmed(&trace, &goal, reads, &answer);
                    let context = || format!("seed {seed} of {}: {goal:?}", family.name);
                    found[i] += u32::from(yes.unwrap_or_else(|e| panic!("{e}, {}", context())));
                }
            }
        }
    }
    println!("{found:?}");
    assert!(found.iter().all(|&n| n > 300), "{found:?}");
}
