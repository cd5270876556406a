//! Sessions with traces in memory, in files, and still being made.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::io::Write as _;
use std::path::PathBuf;

use foresee_testkit::{random_trace, trace};
use foresee_trace::{
    Batch, Continued, EventSource, FileOrder, Finding, FindingKind, GrowingTrace, Mode, Names,
    Outcome, Position, ReadError, Remarks, Site, Trace, TraceInput, Validated,
};

use super::conclude::{Passed, Room, conclude};
use super::parts::Work;
use super::report::TraceFacts;
use super::*;
use crate::analysis::{Analysed, Conclusion};
use crate::candidates::Candidates;
use crate::info::{CORRECT, LATTICE, PATTERN};
use crate::pattern::Match;

const SPEC: &str = "init x0 = 0, x1 = 0\n\
    property p: start(x0 == 1) -> once (x1 == 1)\n\
    pattern q: write(x0)@T0 .. write(x1)@T1\n\
    property r: x0 == 2 -> (x1 != 1 since start(x0 == 1))";

fn session(text: &str, checks: &[&str], is_live: bool) -> Session {
    let mut session = Session::new(Settings {
        is_live,
        limits: Limits { cores: 1, ..Limits::default() },
        ..Settings::default()
    });
    if !text.is_empty() {
        session.add_spec(Specification::new("test", text).unwrap());
    }
    checks.iter().for_each(|check| session.add_check(check).unwrap());
    session
}

/// A report in words, without its name.
fn told(examined: &Result<Examined, SessionError>) -> String {
    match examined {
        Ok(Examined { report, .. }) => {
            format!("{:?}\n{:?}\n{:?}", report.trace, report.analysed, report.findings)
        }
        Err(error) => error.to_string(),
    }
}

/// A trace in a file.
struct InFile(PathBuf);

impl TraceInput for InFile {
    fn name(&self) -> String {
        self.0.display().to_string()
    }
    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        Ok(foresee_formats::open(&self.0, None)?.source)
    }
}

/// A trace of which a few more events arrive with each batch, and names with the events.
struct Growing {
    text: String,
    /// How often it was followed from its beginning.
    followed: Cell<usize>,
}

impl Growing {
    fn source(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        let inner = foresee_formats::open_reader(Box::new(self.text.as_bytes()), None)?.source;
        Ok(Box::new(Slowly { inner, left: Batch::default(), at: 0 }))
    }
}

impl GrowingTrace for Growing {
    fn name(&self) -> String {
        "growing".to_owned()
    }
    fn order(&self) -> FileOrder {
        FileOrder::Observed
    }
    fn follow(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.followed.set(self.followed.get() + 1);
        self.source()
    }
    fn stored(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.source()
    }
    fn is_all_stored(&self) -> bool {
        true
    }
}

/// Two events at a time.
struct Slowly<'s> {
    inner: Box<dyn EventSource + 's>,
    left: Batch,
    at: usize,
}

impl EventSource for Slowly<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        if self.at >= self.left.events.len() {
            self.at = 0;
            if !self.inner.next_batch(&mut self.left)? {
                return Ok(false);
            }
        }
        let end = (self.at + 2).min(self.left.events.len());
        for &event in &self.left.events[self.at..end] {
            let event = batch.pool.adopt(event, &self.left.pool);
            batch.events.push(event);
        }
        self.at = end;
        Ok(true)
    }
    fn names(&self) -> &Names {
        self.inner.names()
    }
    fn names_mut(&mut self) -> &mut Names {
        self.inner.names_mut()
    }
    fn position(&self, _: usize) -> Position {
        Position::Unknown
    }
    fn remarks(&self) -> &Remarks {
        self.inner.remarks()
    }
}

/// A trace that comes several times, each time with more of it.
struct InEditions {
    editions: Vec<Growing>,
    now: Cell<usize>,
    /// Whether the last one never comes.
    is_cut_short: bool,
}

impl InEditions {
    fn edition(&self) -> &Growing {
        &self.editions[self.now.get()]
    }
}

impl GrowingTrace for InEditions {
    fn name(&self) -> String {
        "growing".to_owned()
    }
    fn order(&self) -> FileOrder {
        FileOrder::Observed
    }
    fn follow(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.edition().follow()
    }
    fn stored(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.edition().stored()
    }
    fn is_all_stored(&self) -> bool {
        true
    }
    fn is_continued(&self) -> bool {
        self.now.get() + 1 < self.editions.len()
    }
    fn continues(&self) -> Result<Continued, ReadError> {
        if self.is_cut_short && self.now.get() + 2 == self.editions.len() {
            return Ok(Continued::CutShort("it died".to_owned()));
        }
        self.now.set(self.now.get() + 1);
        Ok(Continued::Anew)
    }
}

/// What a listener heard.
#[derive(Default)]
struct Heard {
    found: Vec<Finding>,
    withdrawn: Vec<Finding>,
    errors: Vec<(String, String)>,
}

impl Listener for Heard {
    fn found(&mut self, finding: &Finding) {
        self.found.push(finding.clone());
    }
    fn withdrawn(&mut self, finding: &Finding) {
        self.withdrawn.push(finding.clone());
    }
    fn internal_error(&mut self, error: &InternalError<'_>) {
        assert!(error.trace.is_some_and(|trace| !trace.events.is_empty()));
        self.errors.push((error.property.to_owned(), error.error.to_string()));
    }
}

/// One and the same trace, wherever it comes from, has one and the same report.
#[test]
fn memory_files_and_streams_have_equal_reports() {
    let (mut predicted, mut early) = (0, 0);
    for seed in 0..300 {
        let text = random_trace(seed).to_string();
        let mut file = tempfile::Builder::new().suffix(".std").tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let in_file = InFile(file.path().to_owned());
        let in_memory = Trace::load(&mut in_file.open().unwrap()).unwrap();
        let checks: &[&str] = if seed % 2 == 0 { &["spec", "race", "nondeterminism"] } else { &[] };
        let asked = session(SPEC, checks, false);
        let of_file = asked.run(&in_file, &mut Silent);
        assert_eq!(told(&asked.run(&in_memory, &mut Silent)), told(&of_file), "{seed}");
        let growing = Growing { text, followed: Cell::new(0) };
        let mut heard = Heard::default();
        let followed = session(SPEC, checks, true).follow(&growing, &mut heard);
        assert_eq!(told(&followed), told(&of_file), "{seed}");
        assert!(heard.errors.is_empty(), "{seed}: {:?}", heard.errors);
        assert!(heard.found.iter().all(|finding| finding.fingerprint.is_some()), "{seed}");
        let Ok(examined) = of_file else { continue };
        let is_predicted = |f: &&Finding| f.kind == FindingKind::Predicted;
        predicted += examined.report.findings.iter().filter(is_predicted).count();
        early += heard.found.iter().filter(is_predicted).count();
        // The events of a witness are there to be drawn.
        let events = examined.trace.map_or(0, |trace| trace.events.len() as u64);
        let witnesses = examined.report.findings.iter().filter_map(|f| f.witness.as_ref());
        witnesses.flat_map(|w| &w.order).for_each(|&event| assert!(event < events, "{seed}"));
    }
    assert!(predicted > 50 && early > 5, "one-sided: {predicted}, {early}");
}

/// What a finding is about, in words.
fn essence(finding: &Finding) -> String {
    let sites = finding.sites.iter().filter(|site| site.role.identifies());
    let mut sites: Vec<String> = sites
        .map(|site| {
            let Site { role, op, target, .. } = site;
            format!("{role:?} {op:?} {target:?} {:?}", site.location().map(ToString::to_string))
        })
        .collect();
    sites.sort();
    sites.dedup();
    format!("{:?} {} {:?} {sites:?}", finding.kind, finding.property, finding.about)
}

/// However often a beginning of a trace is sent, the report is that of the whole trace; and if the whole trace never comes,
/// that of the latest beginning.
#[test]
fn editions_have_the_report_of_the_last_one() {
    let (mut found, mut early, mut again) = (0, 0, 0);
    for seed in 0..200 {
        let text = random_trace(seed).to_string();
        let lines: Vec<&str> = text.lines().collect();
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut ends: Vec<usize> =
            (0..chance.usize(..4)).map(|_| chance.usize(1..=lines.len())).collect();
        ends.sort_unstable();
        ends.push(lines.len());
        let checks: &[&str] = if seed % 2 == 0 { &["spec", "race"] } else { &["deadlock", "race"] };
        let edition = |&end: &usize| {
            let text: String = lines[..end].iter().map(|line| format!("{line}\n")).collect();
            Growing { text, followed: Cell::new(0) }
        };
        let follow = |is_cut_short| {
            let editions = ends.iter().map(edition).collect();
            let program = InEditions { editions, now: Cell::new(0), is_cut_short };
            let mut heard = Heard::default();
            let followed = session(SPEC, checks, true).follow(&program, &mut heard);
            assert!(heard.errors.is_empty(), "{seed}: {:?}", heard.errors);
            (followed, heard)
        };
        let whole = Growing { text: text.clone(), followed: Cell::new(0) };
        let whole = session(SPEC, checks, true).follow(&whole, &mut Heard::default());
        let (followed, heard) = follow(false);
        assert_eq!(told(&followed), told(&whole), "{seed}");
        // Nothing is told twice, although each edition has it, unless it was withdrawn ...
        let about = |all: &[Finding], one: &str| all.iter().filter(|f| essence(f) == one).count();
        for one in heard.found.iter().map(essence) {
            let times = about(&heard.found, &one);
            assert!(times <= 1 + about(&heard.withdrawn, &one), "{seed}: {times} times {one}");
        }
        // ... and everything is told that an edition has.
        for end in &ends[..ends.len() - 1] {
            let beginning = edition(end);
            let alone = session(SPEC, checks, true).follow(&beginning, &mut Heard::default());
            for one in alone.iter().flat_map(|examined| &examined.report.findings).map(essence) {
                assert!(about(&heard.found, &one) > 0, "{seed}: {one} was not told");
            }
        }
        early += heard.found.len();
        found += whole.as_ref().map_or(0, |examined| examined.report.findings.len());
        let [.., before, _] = ends.as_slice() else { continue };
        let whole = edition(before);
        let whole = session(SPEC, checks, true).follow(&whole, &mut Heard::default());
        let (followed, _) = follow(true);
        match (followed, whole) {
            (Ok(mut followed), Ok(whole)) => {
                let why = followed.report.remarks.cut_short.take();
                assert_eq!(why.as_deref(), Some("it died"), "{seed}");
                assert_eq!(told(&Ok(followed)), told(&Ok(whole)), "{seed}");
                again += 1;
            }
            (followed, whole) => assert_eq!(told(&followed), told(&whole), "{seed}"),
        }
    }
    assert!(found > 50 && early > 20 && again > 50, "one-sided: {found}, {early}, {again}");
}

/// A finding that is reported at once has a fingerprint, which is that of the whole trace unless an
/// earlier line turns up later.
#[test]
fn findings_reported_at_once_have_fingerprints() {
    let found = |text: &str| {
        let growing = Growing { text: text.to_owned(), followed: Cell::new(0) };
        let mut heard = Heard::default();
        let session = session("init x = 0\nproperty p: x != 2", &[], true);
        let report = session.follow(&growing, &mut heard).unwrap().report;
        assert_eq!((heard.found.len(), report.findings.len()), (1, 1), "{text}");
        (heard.found[0].fingerprint.unwrap(), report.findings[0].fingerprint.unwrap())
    };
    let (at_once, at_end) =
        found("T1|w(x)=1|a.c:10(f)\nT1|w(x)=2|a.c:20(f)\nT1|w(x)=3|a.c:30(f)\n");
    assert_eq!(at_once, at_end);
    let shifted = found("T7|w(x)=1|a.c:15(f)\nT7|w(x)=2|a.c:25(f)\n");
    assert_eq!(shifted, (at_once, at_end));
    let (first, last) = found("T1|w(x)=2|a.c:20(f)\nT1|w(x)=1|a.c:10(f)\n");
    assert!(first != at_end && last == at_end, "only the whole trace shows the line above");
}

/// What counts how often a trace is read.
struct Counted<'t> {
    trace: &'t Trace,
    opened: Cell<usize>,
}

impl TraceInput for Counted<'_> {
    fn name(&self) -> String {
        "counted".to_owned()
    }
    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.opened.set(self.opened.get() + 1);
        TraceInput::open(self.trace)
    }
    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        self.trace.names()
    }
}

/// A trace that some analysis keeps is read once, whatever is confirmed and drawn; others are read
/// again only if there is something to confirm.
#[test]
fn a_trace_is_read_as_often_as_it_must_be() {
    let trace = trace! {
        T1: w(x)=1, w(y)=1; T2: w(x)=2
    };
    let times = |text: &str, checks: &[&str]| {
        let counted = Counted { trace: &trace, opened: Cell::new(0) };
        let examined = session(text, checks, false).run(&counted, &mut Silent).unwrap();
        (counted.opened.get(), examined.report.findings.len())
    };
    assert_eq!(times("", &["race"]), (1, 1));
    assert_eq!(times("pattern p: write(x)@T2 .. write(y)@T1", &["race", "spec"]).0, 1);
    assert_eq!(times("pattern p: write(x)@T2 .. write(y)@T1", &[]), (2, 1));
    assert_eq!(times("pattern p: write(y)@T1 .. write(x)@T1", &[]), (1, 0));
}

/// A candidate that the judge refuses costs its property the answer, and no other one.
#[test]
fn an_internal_error_costs_one_property_its_answer() {
    let trace = trace! { T1: w(x)=1, w(x)=2; T2: w(y)=1 };
    let text = "pattern p: write(x) .. write(y)\npattern q: write(y)@T2 .. write(x)@T1";
    let session = session(text, &[], false);
    let mut work = Work::new(&session, session.settings.clone());
    let source = &session.specs[0];
    let resolved = foresee_spec::resolve(&source.spec, &trace.names).resolved;
    let meaning = foresee_spec::expand(&source.spec, &resolved, &trace.names, 1);
    work.add(&session, source, &meaning, &trace.names, FileOrder::Observed).unwrap();
    let match_of = |property, tuple: [u64; 2]| {
        let certain_at = tuple[0].max(tuple[1]);
        Match { property, binding: Vec::new(), tuple: tuple.to_vec(), certain_at }
    };
    // A thread cannot take its own events the other way round.
    let matches = vec![match_of(0, [1, 0]), match_of(1, [2, 0])];
    let answer = |property: &str| Analysed {
        name: PATTERN,
        property: Some(property.to_owned()),
        outcome: Outcome::Exhausted,
        conclusion: Conclusion::Other,
        statement: "answered".to_owned(),
        notes: Vec::new(),
        stats: Vec::new(),
    };
    let passed = Passed {
        facts: TraceFacts::new(3, &trace.names),
        analysed: vec![answer("p"), answer("q")],
        remarks: Remarks::default(),
        findings: Vec::new(),
        parts: work.searches().1,
        candidates: vec![Candidates { matches, ..Candidates::default() }],
        searched: std::time::Duration::ZERO,
        readable: u64::MAX,
    };
    let open = || Ok(Validated::new(TraceInput::open(&trace)?, Mode::Reject));
    let mut heard = Heard::default();
    let room = Room { memory: usize::MAX, until: None };
    let Examined { report, .. } =
        conclude(passed, None, false, None, &open, room, &mut heard).unwrap();
    let outcomes: Vec<Outcome> = report.analysed.iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, [Outcome::Mistake, Outcome::Exhausted]);
    assert!(report.analysed[0].statement.contains("internal error"), "{:?}", report.analysed[0]);
    let found: Vec<&str> = report.findings.iter().map(|f| f.property.as_str()).collect();
    assert_eq!(found, ["q"]);
    let lost: Vec<&str> = heard.errors.iter().map(|(property, _)| property.as_str()).collect();
    assert_eq!(lost, ["p"]);
}

/// What is proposed is confirmed as far as there is time and memory; the first always, if there is memory.
#[test]
fn what_cannot_be_confirmed_in_time_or_memory_is_told() {
    let trace = trace! { T1: w(x)=1; T2: w(y)=1 };
    let text = "pattern p: write(y) .. write(x)\npattern q: write(y)@T2 .. write(x)@T1";
    let report = |time: Option<Duration>, memory: usize| {
        let mut session = session(text, &[], false);
        session.settings.space = Some(foresee_trace::Space::Maz);
        (session.settings.limits.time, session.settings.limits.memory) = (time, memory);
        session.run(&trace, &mut Silent).unwrap().report
    };
    let summary = |report: Report| {
        let patterns = report.analysed.into_iter().filter(|one| one.name == PATTERN);
        let of = |one: Analysed| (one.outcome, one.notes.join("\n"));
        (report.findings.len(), patterns.map(of).collect::<Vec<_>>())
    };
    let (found, patterns) = summary(report(None, 1 << 20));
    assert_eq!((found, &patterns[1]), (2, &(Outcome::Exhausted, String::new())));
    let (found, patterns) = summary(report(Some(Duration::ZERO), 1 << 20));
    assert_eq!((found, patterns[0].0, patterns[1].0), (1, Outcome::Exhausted, Outcome::TimeLimit));
    assert!(patterns[1].1.contains("no time to confirm 1 of"), "{}", patterns[1].1);
    let (found, patterns) = summary(report(None, 40));
    assert_eq!(found, 0);
    for (outcome, notes) in patterns {
        assert_eq!(outcome, Outcome::MemoryLimit);
        assert!(notes.contains("too long to confirm it"), "{notes}");
    }
}

/// The bindings of parameters are counted before they are joined.
#[test]
fn bindings_for_which_there_is_no_memory_are_told() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for i in 0..5_000 {
        writeln!(file, "T0|event(make,{i})\nT1|event(use,{i})").unwrap();
    }
    let trace = InFile(file.path().to_owned());
    let analysed = |memory: usize| {
        let text = "property made(o): event(use, o) -> once event(make, o)";
        let mut session = session(text, &[], false);
        (session.settings.limits.time, session.settings.limits.memory) = (None, memory);
        session.run(&trace, &mut Silent).unwrap().report.analysed
    };
    let of = |analysed: &[Analysed], name: &str| {
        analysed.iter().find(|one| one.name == name).map(|one| (one.outcome, one.statement.clone()))
    };
    let enough = analysed(1 << 30);
    assert_eq!(of(&enough, LATTICE).unwrap().0, Outcome::Exhausted);
    let little = analysed(3 << 20);
    for name in [LATTICE, CORRECT] {
        let (outcome, statement) = of(&little, name).unwrap();
        assert_eq!(outcome, Outcome::StateLimit, "{name}: {statement}");
        assert!(statement.contains("--max-memory leaves room for"), "{name}: {statement}");
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let error = Session::default().add_check("racing").unwrap_err().to_string();
    assert!(error.starts_with("there is no check named `racing`; there are: spec,"), "{error}");
    let bad = Specification::new("bad", "property p: (").unwrap_err();
    assert!(bad.to_string().contains("--> bad:1:13"), "{bad}");
    let empty = session("property p: nowhere == 1", &[], false).run(&Trace::default(), &mut Silent);
    assert!(matches!(empty, Err(SessionError::Spec(_))), "{empty:?}");
}

/// A program whose analyses may hold this many bytes.
struct Poor(Growing, usize);

impl GrowingTrace for Poor {
    fn name(&self) -> String {
        self.0.name()
    }
    fn order(&self) -> FileOrder {
        self.0.order()
    }
    fn follow(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.0.follow()
    }
    fn stored(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        self.0.stored()
    }
    fn is_all_stored(&self) -> bool {
        true
    }
    fn allows(&self, bytes: usize) -> bool {
        bytes <= self.1
    }
}

#[test]
fn a_program_without_memory_is_given_up_and_the_report_says_so() {
    let line = |i: usize| format!("T{}|w(x0)={}\n", i % 50, i % 3);
    let text: String = (0..5000).map(line).collect();
    let growing = || Growing { text: text.clone(), followed: Cell::default() };
    let session = session("init x0 = 0\nproperty p: x0 < 5", &["nondeterminism"], true);
    let mut listener = Heard::default();
    let whole = session.follow(&growing(), &mut listener).unwrap().report;
    assert_eq!((whole.trace.events, whole.remarks.partial), (5000, None));
    let poor = session.follow(&Poor(growing(), 60_000), &mut listener).unwrap().report;
    assert!((1..5000).contains(&poor.trace.events), "{}", poor.trace.events);
    assert!(poor.remarks.partial.unwrap().contains("no memory"));
    assert!(poor.analysed.iter().all(|one| one.outcome != Outcome::Exhausted));
}

#[test]
fn thousands_of_threads_cost_the_lattice_its_answer_and_nothing_else() {
    let text: String = (0..5000).map(|i| format!("T{i}|w(x0)={}\n", i % 3)).collect();
    let path = tempfile::NamedTempFile::new().unwrap();
    path.as_file().write_all(text.as_bytes()).unwrap();
    let session = session("init x0 = 0\nproperty p: x0 < 5", &[], false);
    let examined = session.run(&InFile(path.path().to_owned()), &mut Heard::default());
    let analysed = examined.unwrap().report.analysed;
    let of = |name: &str| analysed.iter().find(|one| one.name == name).unwrap();
    assert_eq!(of("lattice").outcome, Outcome::StateLimit);
    assert!(of("lattice").statement.contains("one for each thread"), "{}", of("lattice").statement);
    assert_eq!(of("observed").outcome, Outcome::Window);
}

/// What each thread knows of each other one is kept for every property; all of them together have
/// one limit.
#[test]
fn many_properties_on_many_threads_stay_within_the_memory_limit() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for t in 0..400 {
        writeln!(file, "T{t}|w(x)={t}\nT{t}|fork(T{})", t + 1).unwrap();
    }
    let trace = InFile(file.path().to_owned());
    let spec: String = (0..20).map(|p| format!("property p{p}: x >= -{p}\n")).collect();
    let outcomes = |memory: usize| -> Vec<Outcome> {
        let mut session = session(&format!("init x = 0\n{spec}"), &[], false);
        session.settings.limits.memory = memory;
        session.settings.space = Some(foresee_trace::Space::Maz);
        let analysed = session.run(&trace, &mut Silent).unwrap().report.analysed;
        let lattices = analysed.iter().filter(|one| one.name == crate::info::LATTICE);
        lattices.map(|one| one.outcome).collect()
    };
    let (enough, little) = (outcomes(1 << 30), outcomes(1 << 20));
    assert_eq!(enough, vec![Outcome::Exhausted; 20]);
    assert!(little.contains(&Outcome::MemoryLimit), "{little:?}");
}

/// Every property takes memory before the first event is read.
#[test]
fn properties_for_which_there_is_no_memory_are_told() {
    let spec: String = (0..50).map(|p| format!("property p{p}: x0 >= -{p}\n")).collect();
    let mut session = session(&format!("init x0 = 0\n{spec}"), &[], false);
    session.settings.limits.memory = 2 << 20;
    let report = session.run(&trace! { T1: w(x0)=1 }, &mut Silent).unwrap().report;
    let looked_at = report.analysed.iter().filter(|one| one.name == crate::info::LATTICE);
    assert!(looked_at.map(|one| one.outcome).eq([Outcome::Exhausted; 32]));
    let left_out = report.analysed.last().unwrap();
    assert_eq!(left_out.outcome, Outcome::MemoryLimit);
    assert_eq!(left_out.property.as_deref(), Some("p32"));
    assert!(left_out.statement.contains("the 17 properties after it"), "{}", left_out.statement);
}
