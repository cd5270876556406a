//! Against the exhaustive oracle.

#![allow(clippy::print_stdout)] // The figures of `docs/analyses/atomicity.md` come from here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use foresee_causality::judge::{Judge, Reads};
use foresee_testkit::oracle::{self, atomicity as truth};
use foresee_testkit::{Family, trace};
use foresee_trace::Trace;

use super::*;
use crate::checks::attempt::{Attempt, Reach, attempt};
use crate::checks::locksets::LockSets;
use crate::checks::tally::SearchStats;
use crate::checks::tries::{Try, in_trying_order, try_all};
use crate::reorder::{Requirements, Search};

const PLAIN: Family = Family {
    name: "lock-heavy",
    variables: 2,
    in_sections: 0.9,
    reentrant: 0.1,
    regions: 0.3,
    ..Family::PLAIN
};

const FAMILIES: &[Family] = &[
    Family { name: "mixed", in_sections: 0.5, ..PLAIN },
    PLAIN,
    Family { name: "one lock", locks: 1, nesting: 1, ..PLAIN },
    Family { name: "three locks", locks: 3, ..PLAIN },
    Family { name: "fork and join", forked: 0.7, ..PLAIN },
    Family { name: "wait and notify", waits: 0.3, locks: 1, nesting: 1, ..PLAIN },
    Family { name: "nested monitors", waits: 0.2, in_sections: 0.7, ..PLAIN },
    Family { name: "try-locks", tries: 0.3, in_sections: 0.6, ..PLAIN },
    Family { name: "rmw, read-write locks", rmws: 0.2, shared: 0.4, in_sections: 0.7, ..PLAIN },
];

struct Ready<'t> {
    trace: &'t Trace,
    locksets: LockSets,
    requirements: Requirements,
    options: Options,
}

impl<'t> Ready<'t> {
    fn new(trace: &'t Trace, with_three: bool) -> Ready<'t> {
        let mut requirements = Requirements::default();
        trace.events.iter().for_each(|event| requirements.push(event, &trace.pool).unwrap());
        requirements.finish();
        let atomicity = AtomicityOptions { with_three, ..AtomicityOptions::default() };
        Ready {
            trace,
            locksets: LockSets::default(),
            requirements,
            options: Options { cores: 1, atomicity, ..Options::default() },
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            trace: self.trace,
            requirements: &self.requirements,
            options: &self.options,
            locksets: &self.locksets,
            is_cut: false,
            room: usize::MAX,
        }
    }
}

/// The result of the check: observed violations, findings, and counts of the rest.
struct Checked {
    observed: usize,
    found: Vec<Found>,
    tally: SearchStats,
    is_relevant: bool,
}

fn check(trace: &Trace, with_three: bool) -> Checked {
    let ready = Ready::new(trace, with_three);
    let context = ready.context();
    let mut check = Atomicity::new(&ready.options);
    let lock_state = LockState::default();
    for (i, event) in trace.events.iter().enumerate() {
        check.event(i as u32, event, &lock_state);
    }
    let proposals = check.propose(&context).unwrap();
    let mut tally = proposals.tally;
    tally.caveat = proposals.caveat;
    let candidates = in_trying_order(proposals.candidates);
    let known = HashMap::new();
    let tried = try_all(&context, candidates, known, check.budgets(), None, &mut tally);
    tried.count(&mut tally);
    let found = tried.found;
    let judge = Judge::new(trace);
    for one in &found {
        let order: Vec<u64> = one.reached.order.iter().map(|&e| e.into()).collect();
        let whole: Vec<u64> =
            (0..u64::from(one.reached.observed)).chain(order.iter().copied()).collect();
        let next: Vec<u64> = one.by.next.iter().map(|&e| e.into()).collect();
        judge.check_next(&whole, &next, Reads::Terminal).unwrap();
        check.cycle(&context, one, &order).unwrap_or_else(|e| panic!("{e}: {one:?}\n{trace}"));
        let told = check.describe(&context, one);
        assert!(!told.message.is_empty() && told.details.len() > 4 && told.sites.len() > 2);
    }
    let is_relevant = proposals.nothing.is_none();
    Checked { observed: proposals.observed.len(), found, tally, is_relevant }
}

/// The regions that the observed order breaks, exactly those.
#[test]
fn the_observed_order_is_judged_exactly() {
    let (mut counts, mut blamed, mut whole) = ([0; 2], 0, 0);
    for family in FAMILIES {
        for seed in 0..1_200 {
            let trace = family.trace(seed, 10 + seed % 40);
            let context = || format!("seed {seed} of {}\n{trace}", family.name);
            let all: Vec<usize> = (0..trace.events.len()).collect();
            let expected = truth::is_serialisable(&trace, &all);
            let ready = Ready::new(&trace, false);
            let mut check = Atomicity::new(&ready.options);
            let broken = check.broken(&ready.context(), &[]);
            let transactions = truth::Transactions::new(&trace);
            let region = |event: u32| transactions.region(event as usize).unwrap();
            let found: BTreeMap<usize, usize> =
                broken.iter().map(|one| (region(one.event), one.event as usize)).collect();
            let real = truth::broken_regions(&trace);
            assert_eq!(found, real, "{}", context());
            assert_eq!(broken.len(), real.len(), "each once: {}", context());
            assert_eq!(broken.is_empty(), expected, "{}", context());
            counts[usize::from(expected)] += 1;
            let regions: BTreeSet<usize> =
                all.iter().filter_map(|&event| transactions.region(event)).collect();
            for region in &regions {
                // A region that cannot be serialised is broken; with no other region around,
                // nothing else is.
                let is_possible = truth::can_be_in_one_piece(&trace, *region);
                assert!(is_possible || real.contains_key(region), "{}", context());
                assert!(
                    !is_possible || regions.len() > 1 || !real.contains_key(region),
                    "{}",
                    context()
                );
                whole += usize::from(!real.contains_key(region));
            }
            // Each is in the graph of transactions, too, and no other region is reported.
            let told = check.seen(&ready.context(), &broken, &[]).unwrap();
            assert_eq!(told.is_empty(), expected, "{}", context());
            for one in told {
                assert!(real.contains_key(&region(one.event)), "{}", context());
                blamed += 1;
            }
        }
    }
    assert!(counts.iter().all(|&n| n > 1000), "{counts:?}");
    assert!(blamed > 2_000 && whole > 5_000, "{blamed} blamed, {whole} whole");
}

#[test]
fn what_was_seen_is_not_predicted() {
    let mut predicted = 0;
    for family in FAMILIES {
        for seed in 0..150 {
            let trace = family.trace(seed, 10 + seed % 40);
            let options = Ready::new(&trace, false).options;
            let checks = crate::checks::Checks::new(&[&KIND, &LIKELY], options);
            let mut findings: Vec<foresee_trace::Finding> = Vec::new();
            let mut analyses: Vec<Box<dyn crate::Analysis>> = vec![Box::new(checks)];
            crate::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {}).unwrap();
            for witness in findings.iter().filter_map(|finding| finding.witness.as_ref()) {
                let is_observed = witness.order.iter().chain(&witness.next).is_sorted();
                assert!(!is_observed, "{witness:?}: seed {seed} of {}\n{trace}", family.name);
                predicted += 1;
            }
        }
    }
    assert!(predicted > 300, "only {predicted}");
}

fn wanted(triple: [usize; 3]) -> Try {
    let [a1, b, a2] = triple.map(|event| event as u32);
    let wanted = |event| crate::reorder::Wanted { event, keeps_value: false };
    Try { executed: vec![wanted(a1), wanted(b)], next: vec![a2] }
}

/// The number of triples that the observed order does not have, and the number of those found.
fn compare_triples(family: &Family, seeds: std::ops::Range<u64>, length: impl Fn(u64) -> u64) {
    let (mut possible, mut reached, mut groups, mut found_groups) = (0, 0, 0, 0);
    let (mut identical, mut identical_reached) = (0, 0);
    for seed in seeds {
        let trace = family.trace(seed, length(seed));
        let all = truth::triples(&trace);
        let hidden: Vec<[usize; 3]> =
            all.iter().copied().filter(|[a1, b, a2]| !(a1 < b && b < a2)).collect();
        let real = truth::reachable_triples(&trace, oracle::Reads::Terminal, &hidden);
        let same = truth::reachable_triples(&trace, oracle::Reads::IdenticalTerminal, &hidden);
        identical += same.len();
        let ready = Ready::new(&trace, false);
        let mut search = Search::new(&ready.requirements, Reads::Terminal);
        let reach =
            Reach { look_back: 200, work: 100_000, is_conceivable: false, is_only_by_value: false };
        for &triple in &hidden {
            let attempt = attempt(&mut search, &wanted(triple).goal(), EXECUTED, reach);
            let context = || format!("{triple:?}, seed {seed} of {}\n{trace}", family.name);
            match attempt {
                Attempt::Found(_) => {
                    assert!(real.contains(&triple), "unsound: {}", context());
                    reached += 1;
                    identical_reached += usize::from(same.contains(&triple));
                }
                Attempt::Impossible => assert!(!real.contains(&triple), "{}", context()),
                _ => {}
            }
        }
        possible += real.len();
        // Without places, which otherwise distinguish triples, the check reports one for each
        // variable and pair of threads.
        let checked = check(&trace, false);
        let group = |[a1, b, _]: [usize; 3]| {
            let events = &trace.events;
            (events[a1].var(), events[a1].thread(), events[b].thread())
        };
        let seen: BTreeSet<_> =
            all.iter().filter(|[a1, b, a2]| a1 < b && b < a2).map(|&t| group(t)).collect();
        let wanted: BTreeSet<_> =
            real.iter().map(|&t| group(t)).filter(|g| !seen.contains(g)).collect();
        let as_triple = |found: &Found| {
            let [a1, b] = found.by.executed[..] else { return None };
            Some([a1.event, b.event, found.by.next[0]].map(|event| event as usize))
        };
        let found: BTreeSet<[usize; 3]> = checked.found.iter().filter_map(as_triple).collect();
        for triple in &found {
            let context = || format!("{triple:?}, seed {seed} of {}\n{trace}", family.name);
            assert!(all.contains(triple) && real.contains(triple), "unsound: {}", context());
        }
        let found: BTreeSet<_> = found.into_iter().map(group).collect();
        if trace.events.iter().all(|event| event.loc() == foresee_trace::LocId::NONE) {
            groups += wanted.len();
            found_groups += wanted.intersection(&found).count();
        }
    }
    println!("{}: {reached} of {possible}, groups {found_groups} of {groups}", family.name);
    assert!(possible > 100, "{}: only {possible}", family.name);
    assert!(reached * 1000 >= possible * 960, "{}: {reached} of {possible}", family.name);
    let same = format!("{}: {identical_reached} of {identical} by identity", family.name);
    assert!(identical_reached * 1000 >= identical * 980, "{same}");
    assert!(found_groups * 1000 >= groups * 980, "{}: {found_groups} of {groups}", family.name);
}

#[test]
fn triples_are_found_as_far_as_there_are_any() {
    for family in FAMILIES {
        compare_triples(family, 0..1_200, |seed| 10 + seed % 20);
    }
}

#[test]
fn triples_are_found_in_long_traces() {
    for family in &FAMILIES[..4] {
        compare_triples(family, 0..60, |seed| 30 + seed % 45);
    }
}

#[test]
fn cycles_are_found_and_proofs_hold() {
    let (mut breakable, mut found, mut proofs) = (0, 0, 0);
    for family in FAMILIES {
        for seed in 0..700 {
            let trace = family.trace(seed, 8 + seed % 10);
            let all: Vec<usize> = (0..trace.events.len()).collect();
            let checked = check(&trace, seed.is_multiple_of(2));
            let real = truth::is_breakable(&trace, oracle::Reads::Terminal, true);
            let context = || format!("seed {seed} of {}\n{trace}", family.name);
            if truth::is_serialisable(&trace, &all) {
                // A write between two others breaks a region, but the check does not search for it.
                let is_seen = truth::is_breakable(&trace, oracle::Reads::Terminal, false);
                breakable += usize::from(is_seen);
                found += usize::from(is_seen && !checked.found.is_empty());
                assert!(real || checked.found.is_empty(), "unsound: {}", context());
                assert_eq!(checked.observed, 0, "{}", context());
            } else {
                assert!(checked.observed > 0, "{}", context());
            }
            let is_proof = checked.is_relevant
                && checked.observed == 0
                && checked.found.is_empty()
                && checked.tally.is_complete();
            assert!(!is_proof || !real, "a wrong proof: {}", context());
            proofs += usize::from(is_proof);
        }
    }
    println!("{found} of {breakable} breakable traces, {proofs} proofs");
    assert!(breakable > 80 && found * 1000 >= breakable * 990, "{found} of {breakable}");
    assert!(proofs > 100, "{proofs}");
}

#[test]
fn a_correct_region_is_proved_and_a_split_one_is_not() {
    let whole = trace! {
        T1: begin, acq(l), r(a), w(a), r(b), w(b), rel(l), end;
        T2: begin, acq(l), r(a), w(a), r(b), w(b), rel(l), end
    };
    let checked = check(&whole, true);
    assert!(checked.found.is_empty() && checked.tally.is_complete(), "{:?}", checked.tally);
    let split = trace! {
        T1: begin, acq(l), w(a), rel(l), acq(l), w(b), rel(l), end;
        T2: acq(l), w(a), rel(l), acq(l), w(b), rel(l)
    };
    assert_eq!(check(&split, false).found.len(), 1);
    assert!(!check(&trace! { T1: w(x); T2: w(x) }, false).is_relevant);
}
