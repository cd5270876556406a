//! Races by the language's rules against the definition of happens-before in C11.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::collections::BTreeSet;

use foresee_causality::LanguageClocks;
use foresee_causality::judge::language::is_ordered;
use foresee_predict::Analysis;
use foresee_predict::checks::{CHECKS, Checks, MemoryModel, Options};
use foresee_testkit::{Family, enough, families, oracle, random_trace, relaxed, seeds};
use foresee_trace::{Detail, Fact, Finding, FindingKind, Id, Op, Role, Trace, Verdict};

/// The same trace with a place of its own for each event, so that every pair is reported.
fn with_places(mut trace: Trace) -> Trace {
    for (i, event) in trace.events.iter_mut().enumerate() {
        *event = event.with_loc(trace.names.locs.intern(&format!("line {i}")).unwrap());
    }
    trace
}

fn check(trace: &Trace, memory_model: MemoryModel) -> Vec<Finding> {
    let kind = CHECKS.iter().find(|kind| kind.name == "race").unwrap();
    let options = Options { cores: 1, memory_model, ..Options::default() };
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Checks::new(&[kind], options))];
    let mut findings = Vec::new();
    foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {})
        .unwrap_or_else(|e| panic!("{e}\n{trace}"));
    findings
}

/// The events of a role.
fn events(finding: &Finding, role: Role) -> Vec<usize> {
    let sites = finding.sites.iter().filter(|site| site.role == role);
    sites.map(|site| site.event.unwrap() as usize).collect()
}

fn by_the_language(findings: &[Finding]) -> BTreeSet<[usize; 2]> {
    let labelled = |f: &&Finding| {
        let is_labelled =
            f.details.contains(&Detail::new("memory_model", Fact::Text("c11".into())));
        assert_eq!(is_labelled, f.verdict == Verdict::UnorderedAccess);
        is_labelled
    };
    findings
        .iter()
        .filter(labelled)
        .inspect(|finding| assert_eq!(finding.kind, FindingKind::Observed))
        .map(|finding| events(finding, Role::Access).try_into().unwrap())
        .collect()
}

fn predicted(findings: &[Finding]) -> BTreeSet<[usize; 2]> {
    let next = |finding: &Finding| {
        let next = &finding.witness.as_ref()?.next;
        Some([next[0].min(next[1]) as usize, next[0].max(next[1]) as usize])
    };
    findings.iter().filter_map(next).collect()
}

fn traces() -> impl Iterator<Item = (String, Trace)> {
    let anything = seeds(4_000).map(|seed| (format!("anything {seed}"), random_trace(seed), seed));
    let families = families().into_iter().flat_map(|family| {
        seeds(300).map(move |seed| (format!("{} {seed}", family.name), family.short(seed), seed))
    });
    // Where locks order little, flags order much.
    let flags = Family { name: "flags", in_sections: 0.2, rmws: 0.2, ..Family::PLAIN };
    let flags = seeds(3_000)
        .map(move |seed| (format!("flags {seed}"), flags.trace(seed, 10 + seed % 16), seed));
    let all = anything.chain(families).chain(flags);
    all.map(|(name, trace, seed)| (name, with_places(relaxed(trace, seed))))
}

#[test]
fn races_that_only_relaxed_atomics_hide() {
    let (mut races, mut traces_with) = (0, 0);
    for (name, trace) in traces() {
        let language = oracle::Language::new(&trace);
        let strong = oracle::Order::new(&trace, oracle::Relation::HappensBefore);
        let mut truth = BTreeSet::new();
        for f in 0..trace.events.len() {
            for e in 0..f {
                let (a, b) = (&trace.events[e], &trace.events[f]);
                let is_hidden = !language.before(e, f) && strong.before(e, f);
                if is_hidden && oracle::conflict(a, b) {
                    truth.insert([e, f]);
                }
            }
        }
        let findings = check(&trace, MemoryModel::C11);
        let (found, predicted) = (by_the_language(&findings), predicted(&findings));
        let expected: BTreeSet<_> = truth.difference(&predicted).copied().collect();
        assert_eq!(found, expected, "{name}\n{trace}");
        races += found.len();
        traces_with += usize::from(!found.is_empty());
        // With sequential consistency nothing but these is lost.
        let strict = check(&trace, MemoryModel::Sc);
        assert!(by_the_language(&strict).is_empty(), "{name}\n{trace}");
        assert_eq!(self::predicted(&strict), predicted, "{name}\n{trace}");
    }
    assert!(
        races > enough(300) && traces_with > enough(100),
        "{races} races in {traces_with} traces"
    );
}

#[test]
fn clocks_and_judge_agree_with_the_definition() {
    for (name, trace) in traces() {
        let language = oracle::Language::new(&trace);
        let mut clocks = LanguageClocks::new(&[]);
        let mut times = vec![0; trace.names.threads.len()];
        let mut at = vec![None; trace.events.len()];
        for (f, event) in trace.events.iter().enumerate() {
            clocks.event(event);
            if event.op() == Op::Init {
                continue;
            }
            let time = &mut times[event.thread().index()];
            *time += 1;
            at[f] = Some((event.thread(), *time));
            for (e, at) in at[..f].iter().enumerate() {
                let Some((thread, time)) = *at else { continue };
                let is_before = language.before(e, f);
                let known = clocks.count_now(event.thread(), thread) >= time;
                assert_eq!(known, is_before, "{e} and {f} of {name}\n{trace}");
                if thread != event.thread() {
                    let judged = is_ordered(&trace.events, &[], e, f);
                    assert_eq!(judged, is_before, "{e} and {f} of {name}\n{trace}");
                }
            }
        }
    }
}
