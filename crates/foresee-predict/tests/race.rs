//! Races against exhaustive search.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![allow(clippy::print_stdout)] // The figures of `docs/analyses/race.md` come from here.

use std::collections::{BTreeMap, BTreeSet};

use foresee_causality::judge::Reads;
use foresee_predict::checks::{Algorithm, CHECKS, Checks, Options};
use foresee_predict::reorder::{Answer, Effort, Goal, Search};
use foresee_predict::{Analysed, Analysis, Stat};
use foresee_testkit::{Family, corpus, enough, families, oracle, random_trace, seeds, trace};
use foresee_trace::{Event, Finding, FindingKind, LocId, LockId, Names, Op, Outcome, Trace, Value};

/// The same trace with a place of its own for each event, so that every pair is reported.
fn with_places(mut trace: Trace) -> Trace {
    trace.names.locs = Names::default().locs;
    for (i, event) in trace.events.iter_mut().enumerate() {
        let place = trace.names.locs.intern(&format!("line {i}")).unwrap();
        assert_eq!(place, LocId(i as u32 + 1));
        *event = event.with_loc(place);
    }
    trace
}

fn check(trace: &Trace, options: Options) -> (Analysed, Vec<Finding>) {
    let kind = CHECKS.iter().find(|kind| kind.name == "race").unwrap();
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Checks::new(&[kind], options))];
    let mut findings = Vec::new();
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {});
    let mut analysed = summary.unwrap_or_else(|e| panic!("{e}\n{trace}")).analysed;
    assert_eq!(analysed.len(), 1);
    (analysed.remove(0), findings)
}

fn pairs(findings: &[Finding]) -> BTreeSet<[usize; 2]> {
    let pair = |finding: &Finding| {
        let next = &finding.witness.as_ref().unwrap().next;
        let (e, f) = (next[0] as usize, next[1] as usize);
        [e.min(f), e.max(f)]
    };
    findings.iter().map(pair).collect()
}

fn options(algorithm: Algorithm) -> Options {
    Options { algorithm, cores: 1, ..Options::default() }
}

fn stat(analysed: &Analysed, name: &str) -> u64 {
    match analysed.stats.iter().find(|(stat, _)| *stat == name).unwrap() {
        (_, Stat::Count(n)) => *n,
        (_, Stat::Text(text)) => panic!("{text}"),
    }
}

#[derive(Default)]
struct Score {
    possible: usize,
    /// Those in which every read sees the very write that it saw, and how many of them are found.
    identical: usize,
    identical_found: usize,
    hb: usize,
    shb: usize,
    syncp: usize,
    sliced: usize,
    complete: usize,
}

impl Score {
    fn add(&mut self, name: &str, seed: u64, trace: &Trace) {
        let truth = oracle::races(trace);
        let found = |algorithm| {
            let (analysed, mut findings) = check(trace, options(algorithm));
            let conditional: Vec<Finding> =
                findings.extract_if(.., |f| f.kind == FindingKind::Conditional).collect();
            if !conditional.is_empty() {
                let conceivable = oracle::races_reading(trace, oracle::Reads::Any);
                let pairs = self::pairs(&conditional);
                assert!(pairs.is_subset(&conceivable), "{pairs:?}, seed {seed} of {name}\n{trace}");
                assert_ne!(analysed.outcome, Outcome::Exhausted, "seed {seed} of {name}\n{trace}");
            }
            let pairs = pairs(&findings);
            let context = || format!("{algorithm:?}, seed {seed} of {name}\n{trace}");
            assert!(pairs.is_subset(&truth), "{pairs:?} but {truth:?}, {}", context());
            assert_eq!(stat(&analysed, "found") as usize, pairs.len(), "{}", context());
            if analysed.outcome == Outcome::Exhausted {
                assert_eq!(pairs, truth, "called complete, {}", context());
            }
            (pairs, analysed.outcome == Outcome::Exhausted)
        };
        let (hb, _) = found(Algorithm::Hb);
        let (shb, _) = found(Algorithm::Shb);
        let (syncp, _) = found(Algorithm::Syncp);
        let (sliced, is_complete) = found(Algorithm::Sliced);
        let context = || format!("seed {seed} of {name}\n{trace}");
        // Happens-before orders atomic accesses even where a plain write came between.
        if trace.events.iter().all(|event| event.op() != Op::Rmw) {
            assert!(shb.is_subset(&hb), "{shb:?} {hb:?} {}", context());
        }
        assert!(shb.is_subset(&syncp), "{shb:?} {syncp:?} {}", context());
        assert!(syncp.is_subset(&sliced), "{syncp:?} {sliced:?} {}", context());
        self.possible += truth.len();
        let identical = oracle::races_reading(trace, oracle::Reads::Identical);
        self.identical += identical.len();
        self.identical_found += identical.intersection(&sliced).count();
        self.hb += hb.len();
        self.shb += shb.len();
        self.syncp += syncp.len();
        self.sliced += sliced.len();
        self.complete += usize::from(is_complete);
    }

    /// In long traces with two values for everything there are more choices than are made.
    fn report(&self, name: &str, traces: u64, per_mille: usize) {
        let share = |n: usize| 100.0 * n as f64 / self.possible as f64;
        println!(
            "| {name} ({traces}) | {} | {} | {:.1} | {:.1} | {:.1} | {:.2} | {} |",
            self.possible,
            self.identical,
            share(self.hb),
            share(self.shb),
            share(self.syncp),
            share(self.sliced),
            self.complete
        );
        assert!(self.possible > enough(100), "{name}: only {}", self.possible);
        let Score { sliced, possible, identical, identical_found, .. } = *self;
        assert!(sliced * 1000 >= possible * per_mille, "{name}: {}", share(sliced));
        assert!(identical_found * 1000 >= identical * 995, "{name}: {identical_found}");
    }
}

/// Half of the accesses of lock-heavy traces are outside the sections, or there are no races.
fn mixed(family: Family) -> Family {
    Family { in_sections: family.in_sections.min(0.8), ..family }
}

#[test]
fn short_traces() {
    for family in families().into_iter().map(mixed) {
        let mut score = Score::default();
        seeds(600).for_each(|seed| {
            score.add(family.name, seed, &with_places(family.short(seed)));
        });
        score.report(family.name, 600, 995);
    }
}

#[test]
fn anything_that_a_trace_can_have() {
    let mut score = Score::default();
    seeds(4_000).for_each(|seed| score.add("anything", seed, &with_places(random_trace(seed))));
    score.report("anything", 4_000, 995);
}

/// The same trace with the initial values of all variables: what a read before any write found, or else any value.
fn with_initial_values(mut trace: Trace, seed: u64) -> Trace {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (mut found, mut is_settled) = (BTreeMap::new(), BTreeSet::new());
    for event in &trace.events {
        let op = event.op();
        let is_first =
            (op.reads() || op.writes() || op == Op::Init) && is_settled.insert(event.var());
        if is_first {
            let value = match op {
                Op::Init => continue,
                _ if op.reads() => trace.pool.value_found(event),
                _ => Some(Value::Int(rng.i64(0..3))),
            };
            found.insert(event.var(), (event.thread(), value));
        }
    }
    let mut events = Vec::new();
    for (variable, (thread, value)) in found {
        // Some are not known.
        if let Some(value) = value.filter(|_| rng.u8(..8) > 0) {
            let init = Event::new(thread, Op::Init).with_target(variable.0);
            events.push(init.with_values(&[value], &mut trace.pool));
        }
    }
    events.append(&mut trace.events);
    trace.events = events;
    trace
}

#[test]
fn a_read_may_find_the_initial_value_again() {
    let few = Family { name: "few values", in_sections: 0.7, ..Family::PLAIN };
    let (mut possible, mut found, mut by_initial, mut complete) = (0, 0, 0, 0);
    seeds(10_000).for_each(|seed| {
        let plain = match seed % 2 {
            0 => random_trace(seed),
            _ => few.trace(seed, 8 + seed % 12),
        };
        let without = oracle::races(&with_places(plain.clone())).len();
        let trace = with_places(with_initial_values(plain, seed));
        let truth = oracle::races(&trace);
        let (analysed, mut findings) = check(&trace, options(Algorithm::Sliced));
        findings.retain(|finding| finding.kind != FindingKind::Conditional);
        let pairs = pairs(&findings);
        assert!(pairs.is_subset(&truth), "{pairs:?} but {truth:?}, seed {seed}\n{trace}");
        if analysed.outcome == Outcome::Exhausted {
            assert_eq!(pairs, truth, "called complete, seed {seed}\n{trace}");
            complete += 1;
        }
        possible += truth.len();
        found += pairs.len();
        by_initial += truth.len().saturating_sub(without);
    });
    println!("{found} of {possible}, {by_initial} by initial values, {complete} complete");
    assert!(by_initial > enough(100), "{by_initial}");
    assert!(complete > enough(5_000), "{complete}");
    assert!(found * 1000 >= possible * 995, "{found} of {possible}");
}

/// Threads that guard what they share by a variable: most take it as a spin lock or a semaphore of
/// one is taken, and some do not look, give back what others have, or begin it too late.
fn tokens(seed: u64) -> Trace {
    let mut rng = fastrand::Rng::with_seed(seed);
    let threads = rng.usize(2..=3);
    let (free, taken) = if rng.bool() { (0, 1) } else { (1, 0) };
    let careless = if rng.bool() { 0.0 } else { 0.08 };
    let mut text = String::new();
    let is_forked = rng.bool();
    let mut value = if is_forked { rng.i64(0..2) } else { free };
    if is_forked {
        let forks: Vec<String> = (2..=threads).map(|t| format!("T1: fork(T{t});")).collect();
        let late = if rng.f64() < 2.0 * careless { 1 } else { 0 };
        text.extend(forks[..late].iter().map(String::as_str));
        text.push_str(&format!("T1: vw(s)={free};"));
        text.extend(forks[late..].iter().map(String::as_str));
        value = free;
    } else {
        text.push_str(&format!("T1: init(s)={free};"));
    }
    let mut holds = vec![false; threads];
    for _ in 0..rng.usize(8..18) {
        let t = rng.usize(..threads);
        let is_careless = rng.f64() < careless;
        let what = match rng.u8(..8) {
            0 if is_careless => {
                value = rng.i64(0..2);
                format!("vw(s)={value}")
            }
            0 | 1 if holds[t] || is_careless => {
                holds[t] = false;
                let was = std::mem::replace(&mut value, free);
                if rng.bool() { format!("vw(s)={free}") } else { format!("rmw(s)={was}->{free}") }
            }
            0..=3 if !holds[t] => {
                let was = std::mem::replace(&mut value, taken);
                holds[t] = was == free;
                format!("rmw(s)={was}->{taken}")
            }
            4 => format!("vr(s)={value}"),
            n if holds[t] || is_careless || n == 7 && careless > 0.0 => {
                format!("{}({})", ["r", "w"][rng.usize(..2)], ["x", "y"][rng.usize(..2)])
            }
            _ => continue,
        };
        text.push_str(&format!("T{}: {what};", t + 1));
    }
    foresee_testkit::parse_trace(&text, true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn variables_that_are_used_as_locks() {
    let (mut score, mut guarded, mut proved) = (Score::default(), 0, 0);
    for seed in 0..4_000 {
        let trace = with_places(tokens(seed));
        score.add("tokens", seed, &trace);
        let (analysed, _) = check(&trace, options(Algorithm::Sliced));
        let excluded = stat(&analysed, "impossible_by_locks");
        guarded += usize::from(excluded > 0);
        proved += usize::from(excluded > 0 && analysed.outcome == Outcome::Exhausted);
    }
    score.report("tokens", 4_000, 995);
    assert!(guarded > 200 && proved * 10 > guarded * 9, "{proved} of {guarded}");
}

#[test]
fn long_traces() {
    for family in families().into_iter().map(mixed) {
        let mut score = Score::default();
        (0..30).for_each(|seed| {
            let trace = family.trace(seed, 30 + 2 * seed);
            score.add(family.name, seed, &with_places(trace));
        });
        // For variables that are accessed in many ways, pairs that are ordered by identity are not tried by value.
        score.report(family.name, 30, 920);
    }
}

/// The worked examples, method by method.
#[test]
fn worked_examples() {
    let mut count = 0;
    for case in corpus::cases() {
        let Some(expected) = case.expect("races") else { continue };
        let trace = with_places(case.trace.clone());
        let requirements = crate::common::requirements(&trace);
        for expected in expected.as_array().unwrap() {
            count += 1;
            let answer = |method: &str| expected[method].as_str().unwrap() == "Y";
            let pair: Vec<u32> = expected["pair"].clone().try_into().unwrap();
            let events = [pair[0] as usize, pair[1] as usize];
            let says = |method: &str, is_race: bool| {
                assert_eq!(is_race, answer(method), "{}, {method}", case.name);
            };
            says("locks", !share_a_lock(&trace, events));
            for (method, relation) in
                [("hb", oracle::Relation::HappensBefore), ("shb", oracle::Relation::Schedulable)]
            {
                let order = oracle::Order::new(&trace, relation);
                // What the second access sees itself does not order it.
                let thread = trace.events[events[1]].thread();
                let before = |&i: &usize| trace.events[i].thread() == thread;
                let before = (0..events[1]).rfind(before);
                let is_ordered = before.map_or_else(
                    || without_read(&trace, events[1], relation).before(events[0], events[1]),
                    |before| order.before(events[0], before),
                );
                says(method, !is_ordered);
            }
            let mut search = Search::new(&requirements, Reads::Strict);
            let goal = Goal { executed: &[], next: &pair };
            let mut ask = |slices, failures| {
                let effort = Effort { slices, failures, work: u64::MAX };
                matches!(search.ask(&goal, 0, effort), Answer::Yes { .. })
            };
            says("syncp", ask(1, 0));
            says("two", ask(2, 0));
            says("all", oracle::races(&trace).contains(&events));
            for (method, algorithm) in [
                ("shb", Algorithm::Shb),
                ("syncp", Algorithm::Syncp),
                ("sliced", Algorithm::Sliced),
            ] {
                says(method, pairs(&check(&trace, options(algorithm)).1).contains(&events));
            }
            // What happens-before reports is confirmed, or listed as not confirmed.
            let (analysed, findings) = check(&trace, options(Algorithm::Hb));
            let told = |note: &String| events.iter().all(|e| note.contains(&format!("event {e},")));
            let is_reported = pairs(&findings).contains(&events);
            says("hb", is_reported || analysed.notes.iter().any(told));
            assert!(!is_reported || answer("all"), "{}", case.name);
        }
    }
    assert_eq!(count, 20);
}

/// A program whose threads access few variables at many places, in critical sections and out of
/// them, as no program would be written by hand.
fn crowd(seed: u64, events: u32, places: u32) -> Trace {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut trace = Trace::default();
    let names = &mut trace.names;
    let threads: Vec<_> = (0..4).map(|t| names.thread(&format!("T{t}")).unwrap()).collect();
    let locks: Vec<_> = (0..3).map(|l| names.locks.intern(&format!("l{l}")).unwrap()).collect();
    let vars: Vec<_> = (0..3).map(|x| names.vars.intern(&format!("x{x}")).unwrap()).collect();
    let locs: Vec<_> =
        (0..places).map(|i| names.locs.intern(&format!("line {i}")).unwrap()).collect();
    let mut push =
        |thread, op, target| trace.events.push(Event::new(thread, op).with_target(target));
    threads[1..].iter().for_each(|child| push(threads[0], Op::Fork, child.0));
    for _ in 0..events {
        let thread = *rng.choice(&threads).unwrap();
        let lock = rng.choice(&locks).unwrap().0;
        let is_locked = rng.u8(..10) < 4;
        if is_locked {
            trace.events.push(Event::new(thread, Op::Acquire).with_target(lock));
        }
        for _ in 0..rng.u8(1..4) {
            let place = *rng.choice(&locs).unwrap();
            let var = *rng.choice(&vars).unwrap();
            let op = if rng.u8(..10) < 3 { Op::Write } else { Op::Read };
            let event = Event::new(thread, op).with_target(var.0).with_loc(place);
            trace.events.push(event);
        }
        if is_locked {
            trace.events.push(Event::new(thread, Op::Release).with_target(lock));
        }
    }
    trace
}

/// The places of what is reported.
fn places(trace: &Trace, findings: &[Finding]) -> BTreeSet<LocId> {
    pairs(findings).iter().flatten().map(|&event| trace.events[event].loc()).collect()
}

/// Many more ways to access a variable than are looked at pair by pair.
#[test]
fn every_racy_place_is_reported_however_many_there_are() {
    for (seed, count) in [(1, 40), (2, 400), (3, 3_000), (4, 20_000)] {
        let trace = crowd(seed, 6_000, count);
        let truth = oracle::racy_places(&trace);
        assert!(truth.len() as u32 * 10 > count.min(6_000), "{}", truth.len());
        let (analysed, findings) = check(&trace, options(Algorithm::Shb));
        assert_eq!(places(&trace, &findings), truth, "{count} places: {}", analysed.statement);
        assert_ne!(analysed.outcome, Outcome::Exhausted);
    }
    // Some of these are so short that every pair is looked at.
    for seed in 0..300 {
        let trace = crowd(seed, 5 + seed as u32 / 2, 10 + seed as u32 % 7);
        let truth = oracle::racy_places(&trace);
        for algorithm in [Algorithm::Shb, Algorithm::Syncp] {
            let (_, findings) = check(&trace, options(algorithm));
            let found = places(&trace, &findings);
            assert!(found.is_superset(&truth), "seed {seed}: {found:?} {truth:?}\n{trace}");
            assert!(algorithm != Algorithm::Shb || found == truth, "seed {seed}\n{trace}");
        }
    }
}

/// Places that repeat: if the answer is complete, so are the places, and a pair of places that no
/// pair of events shows is not reported.
#[test]
fn places_that_repeat() {
    let (mut possible, mut reported) = (0, 0);
    for family in families().into_iter().map(mixed) {
        for seed in 0..200 {
            let mut trace = family.short(seed);
            for (i, event) in trace.events.iter_mut().enumerate() {
                let place = trace.names.locs.intern(&format!("line {}", i % 5)).unwrap();
                *event = event.with_loc(place);
            }
            let kind = |event: usize| {
                let event = &trace.events[event];
                (event.loc(), event.op().writes(), event.op().is_atomic())
            };
            let sites = |[e, f]: [usize; 2]| {
                let (a, b) = (kind(e), kind(f));
                [a.min(b), a.max(b)]
            };
            let races = oracle::races(&trace);
            let truth: BTreeSet<_> = races.iter().map(|&pair| sites(pair)).collect();
            let (analysed, mut findings) = check(&trace, options(Algorithm::Sliced));
            findings.retain(|finding| finding.kind != FindingKind::Conditional);
            let found = pairs(&findings);
            assert!(found.is_subset(&races), "seed {seed} of {}\n{trace}", family.name);
            let found: BTreeSet<_> = found.into_iter().map(sites).collect();
            if analysed.outcome == Outcome::Exhausted {
                assert_eq!(found, truth, "seed {seed} of {}\n{trace}", family.name);
            }
            possible += truth.len();
            reported += found.len();
        }
    }
    println!("{reported} of {possible} pairs of places");
    assert!(reported * 1000 >= possible * 995, "{reported} of {possible}");
}

#[test]
fn as_much_is_looked_at_as_there_is_room_for() {
    let (mut found, mut cut) = (0, 0);
    for seed in 0..600 {
        let trace = with_places(random_trace(seed));
        let room = seed as usize * 7 % (trace.events.len() + 2);
        let (analysed, findings) =
            check(&trace, Options { trace: room, ..options(Algorithm::Sliced) });
        let mut first = trace.clone();
        first.events.truncate(room);
        let (alone, of_first) = check(&first, options(Algorithm::Sliced));
        assert_eq!(pairs(&findings), pairs(&of_first), "seed {seed}, {room}\n{trace}");
        let outcome = match room < trace.events.len() {
            true => Outcome::MemoryLimit,
            false => alone.outcome,
        };
        assert_eq!(analysed.outcome, outcome, "seed {seed}, {room}\n{trace}");
        let says_so = analysed.notes.iter().any(|note| note.contains("--max-memory"));
        assert_eq!(says_so, outcome == Outcome::MemoryLimit, "{:?}", analysed.notes);
        found += findings.len();
        cut += usize::from(outcome == Outcome::MemoryLimit);
    }
    assert!(found > 100 && cut > 400, "{found} races, {cut} traces cut");
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let (mut whole, mut narrow, mut cut) = (0, 0, 0);
    for seed in 0..600 {
        let trace = with_places(random_trace(seed));
        let (all, of_all) = check(&trace, options(Algorithm::Sliced));
        // From room for the trace alone to room for all that is known about its accesses.
        let least = (trace.events.len() * 48 + trace.names.vars.len() * 320) * 4 / 3;
        let memory = least + 4 + seed as usize % 30 * 800;
        let (analysed, findings) = check(&trace, Options { memory, ..options(Algorithm::Sliced) });
        assert!(pairs(&findings).is_subset(&pairs(&of_all)), "seed {seed}\n{trace}");
        match analysed.outcome == Outcome::Exhausted {
            true => assert_eq!(pairs(&findings), pairs(&of_all), "seed {seed}\n{trace}"),
            false => cut += usize::from(all.outcome == Outcome::Exhausted),
        }
        whole += of_all.len();
        narrow += findings.len();
    }
    assert!(cut > 10 && narrow > 100 && narrow < whole, "{narrow} of {whole}, {cut} cut");
}

/// The order in which an event sees nothing.
fn without_read(trace: &Trace, event: usize, relation: oracle::Relation) -> oracle::Order {
    let mut trace = trace.clone();
    let it = &mut trace.events[event];
    if it.op().reads() {
        *it = Event::new(it.thread(), Op::Write).with_target(it.var().0);
    }
    oracle::Order::new(&trace, relation)
}

/// Whether two events have locks around them that exclude each other.
fn share_a_lock(trace: &Trace, events: [usize; 2]) -> bool {
    let held = |event: usize| {
        let mut held: Vec<(LockId, bool)> = Vec::new();
        let own = |e: &&Event| e.thread() == trace.events[event].thread();
        for e in trace.events[..event].iter().filter(own) {
            match e.op() {
                Op::Acquire => held.push((e.lock(), false)),
                Op::AcquireShared => held.push((e.lock(), true)),
                Op::Release => held.retain(|h| *h != (e.lock(), false)),
                Op::ReleaseShared => held.retain(|h| *h != (e.lock(), true)),
                _ => {}
            }
        }
        held
    };
    let second = held(events[1]);
    held(events[0]).iter().any(|a| second.iter().any(|b| a.0 == b.0 && !(a.1 && b.1)))
}

/// A trace so long that the passes over it use up the time still has its sure races reported.
#[test]
fn sure_races_are_reported_when_the_time_is_up() {
    let trace = with_places(trace! { T1: w(x); T2: w(x), w(y), w(z); T3: w(y), w(z) });
    let (all, found) = check(&trace, options(Algorithm::Sliced));
    assert_eq!((all.outcome, found.len()), (Outcome::Exhausted, 3));
    let time = Some(std::time::Duration::ZERO);
    let (late, found) = check(&trace, Options { time, ..options(Algorithm::Sliced) });
    assert_eq!((late.outcome, found.len()), (Outcome::TimeLimit, 1));
    assert_eq!(stat(&late, "not_tried"), 2);
}
