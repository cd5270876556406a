//! The worked examples of atomicity and order of use: their goals, and what the checks say.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use crate::common::requirements;
use foresee_causality::judge::Reads;
use foresee_predict::checks::{CHECKS, Checks, Options};
use foresee_predict::reorder::{Answer, Effort, Goal, Search, Wanted};
use foresee_predict::{Analysed, Analysis};
use foresee_testkit::corpus::{Case, cases};
use foresee_testkit::oracle::{self, Reorderings, atomicity::is_next};
use foresee_trace::{Finding, FindingKind, Outcome, Trace};
use toml::Value;

fn list(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|n| n.as_integer().unwrap() as usize).collect()
}

/// Whether these events can happen in this order, and then those be next.
fn exists(trace: &Trace, executed: &[usize], next: &[usize], reads: oracle::Reads) -> bool {
    let all = Reorderings::new(trace, reads);
    let step = |&done: &usize, step: oracle::Step| {
        Some(done + usize::from(executed.get(done) == Some(&step.event)))
    };
    let is_there = |state: &oracle::State, &done: &usize| {
        done == executed.len() && next.iter().all(|&event| is_next(trace, &all, state, event))
    };
    all.search(0, step, is_there).is_some()
}

fn goal_is_as_expected(case: &Case, goal: &Value) {
    let (executed, next) = (list(&goal["executed"]), list(&goal["next"]));
    let trace = &case.trace;
    let whole: Vec<usize> = executed.iter().chain(&next).copied().collect();
    let wanted: Vec<Wanted> =
        executed.iter().map(|&e| Wanted { event: e as u32, keeps_value: false }).collect();
    let next_events: Vec<u32> = next.iter().map(|&e| e as u32).collect();
    let requirements = requirements(trace);
    let mut search = Search::new(&requirements, Reads::Terminal);
    let goal_asked = Goal { executed: &wanted, next: &next_events };
    let sliced = search.ask(&goal_asked, 0, Effort::THOROUGH);
    let answers = [
        ("observed", whole.is_sorted()),
        ("strict", exists(trace, &whole, &[], oracle::Reads::Strict)),
        ("sliced", matches!(sliced, Answer::Yes { .. })),
        ("correct", exists(trace, &executed, &next, oracle::Reads::Terminal)),
    ];
    for (method, yes) in answers {
        let expected = goal[method].as_str().unwrap();
        assert_eq!(if yes { "Y" } else { "-" }, expected, "{}: {method}", case.name);
    }
}

fn run(trace: &Trace, name: &str) -> (Vec<Finding>, Vec<Analysed>) {
    let kind = CHECKS.iter().find(|kind| kind.name == name).unwrap();
    let checks = Checks::new(&[kind], Options::default());
    let mut findings: Vec<Finding> = Vec::new();
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(checks)];
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {});
    (findings, summary.unwrap().analysed)
}

#[test]
fn goals_are_reached_as_expected() {
    let mut count = 0;
    for case in cases() {
        for goal in case.expect("goals").into_iter().flat_map(|goals| goals.as_array().unwrap()) {
            goal_is_as_expected(&case, goal);
            count += 1;
        }
    }
    assert!(count >= 18, "{count}");
}

#[test]
fn checks_say_what_is_expected() {
    let mut count = 0;
    let mut others = Vec::new();
    for case in cases() {
        for check in ["atomicity", "lifetime"] {
            let Some(expected) = case.expect(check) else { continue };
            let (findings, analysed) = run(&case.trace, check);
            let said = match (findings.first().map(|f| f.kind), analysed[0].outcome) {
                (Some(FindingKind::Observed), _) => "observed",
                (Some(FindingKind::Conditional), _) => "conditional",
                (Some(_), _) => "predicted",
                (None, Outcome::Exhausted) => "impossible",
                (None, _) => "none",
            };
            if Some(said) != expected.as_str() {
                others.push(format!("{} says {said}, not {expected}: {findings:?}", case.name));
            }
            if let Some(broken) = case.expect("broken").and_then(Value::as_array) {
                let named = |finding: &&Finding| finding.kind == FindingKind::Observed;
                let named = findings.iter().filter(named).map(|f| f.message.split('`').nth(1));
                let mut named: Vec<&str> = named.flatten().collect();
                named.sort_unstable();
                named.dedup();
                let broken: Vec<&str> = broken.iter().filter_map(Value::as_str).collect();
                assert_eq!(named, broken, "{}: {findings:?}", case.name);
            }
            let is_named = |f: &Finding| {
                !f.sites.is_empty() && f.sites.iter().all(|site| site.target.is_some())
            };
            assert!(findings.iter().all(is_named), "{}: {findings:?}", case.name);
            count += 1;
        }
    }
    assert!(others.is_empty(), "{others:#?}");
    assert!(count >= 18, "{count}");
}
