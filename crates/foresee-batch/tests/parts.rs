//! What is answered in parts is what is answered at once.

use std::fs;
use std::path::Path;

use foresee_batch::{
    Cache, InProcess, Performed, Plan, Questions, Shard, SpecSource, join, perform,
};
use foresee_formats::TraceFile;
use foresee_predict::checks::CandidatePart;
use foresee_predict::info;
use foresee_predict::session::{Limits, Session, Settings, Silent, Specification};
use foresee_report::{Report, Tests, exit_status};
use foresee_testkit::{Family, enough, random_trace, seeds};
use foresee_trace::{Batch, EventSink as _, EventSource as _, Finding, Trace};

/// Properties of every kind, over names of the generated traces.
fn spec(trace: &Trace) -> String {
    let variable = |i: usize| match trace.names.vars.len() {
        0 => None,
        n => Some(trace.names.vars.iter().nth(i % n).unwrap().1.to_owned()),
    };
    let (Some(x), Some(y)) = (variable(0), variable(1)) else { return String::new() };
    let mut text = format!("init {x} = 0\n");
    if y != x {
        text += &format!("init {y} = 0\n");
    }
    text += &format!(
        "property small: {x} <= 1\n\
         pattern writes: write({x}) .. write({y})\n\
         property once: start({x} > 0) -> once({y} == 0)\n\
         violation twice: .* {{{x} > 0}} .* {{{y} > 0}} .*\n\
         pattern three: write({y}) .. write({x}) .. write({y})\n\
         property always_low: always ({x} < 3 || {y} < 3)\n\
         property seen(v): read({x}, v) -> once write({y}, v)\n\
         violation both(v): .* write({x}, v) .* write({y}, v) .*\n"
    );
    text
}

fn settings() -> Settings {
    // A limit of time would make answers depend on the machine.
    let limits = Limits { time: None, cores: 1, states: Some(20_000), ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

/// Everything that a report says, except for drawings, of which only the first few are made.
fn said(report: &Report) -> serde_json::Value {
    let mut told = serde_json::to_value(report).unwrap();
    told.as_object_mut().unwrap().remove("witnesses").unwrap();
    told["report"]["name"] = "".into();
    told
}

/// The trace as a file has it: names in another order, and all of them.
fn store(trace: &Trace, path: &Path) {
    let mut file = foresee_formats::create(path, &foresee_formats::Std).unwrap();
    let mut source = trace.source();
    let mut batch = Batch::default();
    while source.next_batch(&mut batch).unwrap() {
        file.write_batch(&batch, source.names()).unwrap();
    }
    file.finish(source.names(), source.remarks()).unwrap();
}

/// The jobs of a plan for one trace, done one by one.
fn joined(plan: &Plan) -> Report {
    let mut questions: Vec<Vec<Report>> = Vec::new();
    let mut last = None;
    for planned in &plan.jobs {
        let job = planned.job.as_ref().unwrap();
        let performed: Performed = perform(job, &plan.blobs, 1);
        let asked = (job.specs.clone(), job.checks.clone(), job.is_default);
        if last.as_ref() != Some(&asked) {
            questions.push(Vec::new());
        }
        last = Some(asked);
        questions.last_mut().unwrap().push(performed.unwrap().report);
    }
    join(questions).unwrap()
}

#[test]
fn any_number_of_parts_gives_the_answer_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    let checks = ["race", "deadlock", "atomicity", "lifetime", "nondeterminism", "causality"];
    let checks: Vec<String> = checks.iter().map(|&check| check.to_owned()).collect();
    assert!(checks.iter().all(|check| info::selectable().any(|known| known == check)));
    let (mut tried, mut found, mut split) = (0, 0, 0);
    for seed in 0..60 {
        let trace = random_trace(seed);
        let text = spec(&trace);
        if text.is_empty() {
            continue;
        }
        tried += 1;
        store(&trace, &path);
        let source = SpecSource { name: "p.spec".to_owned(), text: text.clone() };
        let other =
            SpecSource { name: "q.spec".to_owned(), text: text.replace("pattern ", "pattern q_") };
        let mut session = Session::new(settings());
        for source in [&source, &other] {
            session.add_spec(Specification::new(&source.name, &source.text).unwrap());
        }
        checks.iter().for_each(|check| session.add_check(check).unwrap());
        let whole = session.run(&TraceFile::new(&path), &mut Silent).unwrap();
        let whole = Report::of(whole, &Tests::default());
        found += whole.findings.len();
        let expected = said(&join(vec![vec![whole.clone()]]).unwrap());
        for parts in [1, 2, 3, 4, 5, 6, 7, 100] {
            let group = Questions {
                traces: vec![path.clone()],
                specs: vec![source.clone(), other.clone()],
                checks: checks.clone(),
                ..Questions::default()
            };
            let plan = Plan::new(&[group], &settings(), parts).unwrap();
            split = split.max(plan.jobs.len());
            let together = joined(&plan);
            assert_eq!(exit_status(&together), exit_status(&whole), "seed {seed}, {parts} parts");
            assert!(said(&together) == expected, "seed {seed}, {parts} parts");
        }
    }
    assert!(tried > 30 && found > 100, "{tried} traces with {found} findings");
    assert_eq!(split, 22, "six checks, and eight properties of each specification");
}

/// Properties with parameters of every kind, each alone: what stands for variables are names of the generated traces.
const BOUND: &[&str] = &[
    "property seen(v): read(X, v) -> once write(Y, v)",
    "property later(v): write(X, v) -> always !write(Y, v)",
    "violation both(v): .* write(X, v) .* write(Y, v) .*",
    "violation two(v, w): .* write(X, v) .* write(Y, w) .* read(X, v) .*",
    "pattern pair(v): write(X, v) .. write(Y, v)",
    "property least(v): write(X, v) -> (Y <= 1 since write(Y, v))",
];

/// One specification about one trace.
fn about(path: &Path, text: &str) -> Questions {
    let source = SpecSource { name: "p.spec".to_owned(), text: text.to_owned() };
    Questions { traces: vec![path.to_owned()], specs: vec![source], ..Questions::default() }
}

/// The report of a batch in parts, and how many jobs decided something before those that answer.
fn in_parts(group: &Questions, settings: &Settings, parts: usize) -> (u32, Report) {
    let plan = Plan::new(std::slice::from_ref(group), settings, parts).unwrap();
    let results = tempfile::tempdir().unwrap();
    let cache = Cache::open(results.path()).unwrap();
    let queue = InProcess { cores: 2 };
    let done = foresee_batch::run(&plan, Shard::ALL, &cache, &queue, &mut |_| ()).unwrap();
    let split: u32 = plan.jobs.iter().map(|planned| planned.candidate_parts).sum();
    let jobs = plan.jobs.len() + split as usize;
    let progress = done.progress;
    assert_eq!((progress.jobs, progress.done, progress.failed), (jobs, jobs, 0));
    (split, done.report)
}

/// The same with every number of parts from 1 to 7: how many findings there were, and how many jobs decided something before
/// for 2 parts and more.
fn equal_in_parts(group: &Questions, settings: &Settings, what: &str) -> (usize, Vec<u32>) {
    let (none, whole) = in_parts(group, settings, 1);
    assert_eq!(none, 0);
    let splits = (2..=7).map(|parts| {
        let (split, together) = in_parts(group, settings, parts);
        assert_eq!(exit_status(&together), exit_status(&whole), "{what}, {parts} parts");
        assert_eq!(
            foresee_report::json::report(&together),
            foresee_report::json::report(&whole),
            "{what}, {parts} parts"
        );
        split
    });
    (whole.findings.len(), splits.collect())
}

/// What each of four parts decides.
fn decided_in_parts(session: &dyn Fn() -> Session, trace: &TraceFile) -> Vec<serde_json::Value> {
    let decide = |number| {
        let part = CandidatePart { number, of: 4 };
        serde_json::to_value(session().decide(part, trace, &mut Silent).unwrap()).unwrap()
    };
    (0..4).map(decide).collect()
}

/// What is found by one who knows what others have decided.
fn found_knowing(
    mut session: Session,
    decided: &[serde_json::Value],
    trace: &TraceFile,
) -> Vec<Finding> {
    for decided in decided {
        session.know(serde_json::from_value(decided.clone()).unwrap());
    }
    session.run(trace, &mut Silent).unwrap().report.findings
}

/// The numbers of the candidates that verdicts are about.
fn places(verdicts: &serde_json::Value) -> Vec<u64> {
    verdicts.as_array().unwrap().iter().map(|verdict| verdict[0].as_u64().unwrap()).collect()
}

#[test]
fn bindings_in_parts_give_the_answer_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    let (mut tried, mut found) = (0, 0);
    for seed in seeds(30) {
        let trace = random_trace(seed);
        let mut names = trace.names.vars.iter().map(|(_, name)| name.to_owned());
        let (Some(x), Some(y)) = (names.next(), names.next()) else { continue };
        tried += 1;
        store(&trace, &path);
        let body = BOUND[seed as usize % BOUND.len()].replace('X', &x).replace('Y', &y);
        let text = format!("init {x} = 0\ninit {y} = 0\n{body}\n");
        let mut settings = settings();
        // Some searches follow only a few cuts, and some may look at no more than a few states.
        match seed % 5 {
            0 => settings.limits.window = Some(2),
            1 => settings.limits.states = Some(40),
            _ => {}
        }
        let what = format!("{seed}: {text}");
        let (findings, splits) = equal_in_parts(&about(&path, &text), &settings, &what);
        assert_eq!(splits, [2, 3, 4, 5, 6, 7], "{what}");
        found += findings;
    }
    assert!(tried > enough(12) && found > 0, "{tried} traces with {found} findings");
}

#[test]
fn objects_in_parts_give_the_answer_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    let mut found = 0;
    for seed in seeds(6) {
        // Two threads withdraw from and close several accounts, in any order.
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut text = String::new();
        for account in 0..chance.usize(2..6) {
            let of = format!("account(bank.c:3)#{}", account + 1);
            text += &format!("T1|w({of}.balance)=5|a.c:1\nT1|w({of}.closed)=0|a.c:2\n");
        }
        text += "T1|fork(T2)|\n";
        for _ in 0..chance.usize(4..14) {
            let (thread, of) = (chance.usize(1..3), chance.usize(1..6));
            let field = chance.choice(["balance", "closed"]).unwrap();
            let value = chance.i32(-1..3);
            text += &format!("T{thread}|w(account(bank.c:3)#{of}.{field})={value}|a.c:{of}\n");
        }
        fs::write(&path, text).unwrap();
        for text in [
            "property open(a: account): a.closed == 1 -> once (a.balance == 0)\n",
            "property pay(a: account): a.balance >= 0\n",
            "violation late(a: account): .* {a.closed == 1} .* {a.balance < 0} .*\n",
        ] {
            let what = format!("{seed}: {text}");
            let (findings, splits) = equal_in_parts(&about(&path, text), &settings(), &what);
            assert_eq!(splits, [2, 3, 4, 5, 6, 7], "{what}");
            found += findings;
        }
    }
    assert!(found > 0, "{found} findings");
}

#[test]
fn verdicts_on_bindings_are_used_if_they_are_about_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    // Of each value, the other order of the two writes violates it.
    let text: String =
        (0..6).map(|i| format!("T1|w(x)={i}|a.c:{i}\nT2|w(y)={i}|b.c:{i}\n")).collect();
    fs::write(&path, text).unwrap();
    let trace = TraceFile::new(&path);
    let spec = "init x = 9\ninit y = 9\nproperty first(v): write(y, v) -> once write(x, v)\n";
    let session = || {
        let mut session = Session::new(settings());
        session.add_spec(Specification::new("p.spec", spec).unwrap());
        session
    };
    let with = |decided: &[serde_json::Value]| {
        // What the lattice does not find, a search beyond the causality may.
        let found = found_knowing(session(), decided, &trace);
        found.iter().filter(|finding| finding.analysis == info::LATTICE).count()
    };
    let decided = decided_in_parts(&session, &trace);
    let of = |one: &serde_json::Value| one["bindings"]["lattice first"][0].clone();
    let all: Vec<Vec<u64>> = decided.iter().map(|one| places(&of(one)["verdicts"])).collect();
    assert_eq!(all, [vec![0, 4], vec![1, 5], vec![2], vec![3]]);
    assert_eq!((with(&[]), with(&decided)), (6, 6));
    // One part is lost.
    assert_eq!(with(&decided[1..]), 6);
    // Other verdicts would be believed ...
    let mut others = decided.clone();
    let believed = &mut others[2]["bindings"]["lattice first"][0]["verdicts"][0][1]["Lattice"];
    believed["found"]["is_violated"] = false.into();
    believed["found"]["shown"] = serde_json::Value::Null;
    assert_eq!(with(&others), 5);
    // ... if they were about these bindings ...
    others[2]["bindings"]["lattice first"][0]["of"] = 7.into();
    assert_eq!(with(&others[2..3]), 6);
    // ... and if the monitors of all parts together had stayed within their limit.
    others[2]["bindings"]["lattice first"][0]["of"] = of(&decided[2])["of"].clone();
    others[0]["bindings"]["lattice first"][0]["load"] = 999_990.into();
    assert_eq!(with(&others), 6);
}

#[test]
fn default_checks_and_declared_regions_are_asked_for_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    fs::write(&path, "T1|enter(f)|\nT1|r(x)=0|\nT2|w(x)=1|\nT1|w(x)=1|\nT1|exit(f)|\n").unwrap();
    let spec = |name: &str| SpecSource {
        name: name.to_owned(),
        text: "atomic f\nproperty low: x <= 5\n".to_owned(),
    };
    let regions = Questions {
        traces: vec![path.clone()],
        specs: vec![spec("a.spec"), spec("b.spec")],
        ..Questions::default()
    };
    let nothing = Questions { traces: vec![path], ..Questions::default() };
    for (group, at_least) in [(regions, 3), (nothing, 4)] {
        let mut session = Session::new(settings());
        for source in &group.specs {
            session.add_spec(Specification::new(&source.name, &source.text).unwrap());
        }
        if group.specs.is_empty() {
            session.add_default_checks();
        }
        let trace = TraceFile::new(&group.traces[0]);
        let whole = Report::of(session.run(&trace, &mut Silent).unwrap(), &Tests::default());
        let expected = said(&join(vec![vec![whole]]).unwrap());
        let plan = Plan::new(&[group], &settings(), 9).unwrap();
        assert!(plan.jobs.len() >= at_least, "{}", plan.jobs.len());
        assert!(said(&joined(&plan)) == expected, "{:?}", plan.jobs.len());
    }
}

/// Every check alone, and all of them, so that there are more parts than questions and not.
const CHECKS: &[&[&str]] = &[
    &["race"],
    &["deadlock"],
    &["atomicity"],
    &["lifetime"],
    &["nondeterminism"],
    &["race", "deadlock", "atomicity"],
];

#[test]
fn candidates_in_parts_give_the_answer_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    // Half of the accesses are unprotected, and sections are nested in any order, so that every check has candidates.
    let family = Family { in_sections: 0.5, regions: 0.5, rmws: 0.1, ..Family::PLAIN };
    let (mut found, mut helped) = (0, 0);
    for seed in seeds(60) {
        store(&family.trace(seed, 60), &path);
        let checks = CHECKS[seed as usize % CHECKS.len()];
        let checks: Vec<String> = checks.iter().map(|&check| check.to_owned()).collect();
        let group = Questions { traces: vec![path.clone()], checks, ..Questions::default() };
        let (findings, splits) = equal_in_parts(&group, &settings(), &format!("seed {seed}"));
        found += findings;
        helped += splits.iter().sum::<u32>();
    }
    assert!(found > enough(100) && helped > 0, "{found} findings, {helped} parts");
}

#[test]
fn what_was_decided_elsewhere_is_used_if_it_is_about_the_same_candidates() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.std");
    let text: String =
        (0..6).map(|i| format!("T1|w(x{i})=1|a.c:{i}\nT2|w(x{i})=2|b.c:{i}\n")).collect();
    fs::write(&path, text).unwrap();
    let trace = TraceFile::new(&path);
    let session = || {
        let mut session = Session::new(settings());
        session.add_check("race").unwrap();
        session
    };
    let with = |decided: &[serde_json::Value]| found_knowing(session(), decided, &trace).len();
    let decided = decided_in_parts(&session, &trace);
    let all = decided.iter().map(|one| places(&one["checks"]["race"]["verdicts"]));
    assert_eq!(all.collect::<Vec<_>>(), [vec![0, 4], vec![1, 5], vec![2], vec![3]]);
    assert_eq!(with(&decided), 6);
    // One part is lost.
    assert_eq!(with(&decided[1..]), 6);
    // Other verdicts would be believed ...
    let mut others = decided.clone();
    others[2]["checks"]["race"]["verdicts"][0][1][1] = "NotFound".into();
    assert_eq!(with(&others), 5);
    // ... if they were about these candidates.
    others[2]["checks"]["race"]["candidates"] = 7.into();
    assert_eq!(with(&others[2..3]), 6);
}

#[test]
fn the_report_of_a_batch_does_not_depend_on_parts() {
    let folder = tempfile::tempdir().unwrap();
    let mut traces = Vec::new();
    for seed in 0..12 {
        traces.push(folder.path().join(format!("{seed}.std")));
        store(&random_trace(seed), traces.last().unwrap());
    }
    let group = Questions { traces, ..Questions::default() };
    let told = |parts| foresee_report::json::report(&in_parts(&group, &settings(), parts).1);
    assert_eq!(told(1), told(3));
}
