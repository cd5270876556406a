//! What the observer finds is what a check of the stored trace finds.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Parser;
use foresee_observe::{ProgramId, SendOptions};
use foresee_predict::session::Examined;
use foresee_testkit::random_trace;
use foresee_trace::FindingKind;

use super::*;
use crate::args::{Cli, Command, InputArgs};
use crate::commands::check;
use crate::input::Input;

/// All logics; names that match by suffix or appear late, initial values that come from the trace,
/// texts, parameters, windows and spaces.
const ASKED: &[(&str, &[&str])] = &[
    ("init x0 = 0, x1 = 0\nproperty p: start(x0 == 1) -> once (x1 == 1)", &[]),
    (
        "property p: x0 == 2 -> (x1 != 1 since start(x0 == 1))\npattern q: write(x0) .. read(x0)",
        &[],
    ),
    ("init x0 = 0\nproperty p: always (write(x0) -> eventually read(x0))", &["--window", "3"]),
    ("init x0 = 0\nviolation p: .* write(x0)@T1 (.* & ~(.* read(x0) .*)) write(x0)@T0 .*", &[]),
    ("pattern p: write(x0) .. write(x0)@T1 .. read(_)\npattern q: event(a0) .. event(a1)", &[]),
    ("pattern p(v): write(v)@T0 .. write(v)@T1", &["--reorder", "auto"]),
    ("automaton p { initial a; a: write(x0) -> b; b: acquire(l0) -> a, read(_) -> bad; }", &[]),
    ("init x0 = 0\nproperty p: write(x0) -> !(once acquire(l0))", &["--reorder", "correct"]),
    ("init x1 = 0\nproperty p: x0 == \"text\" || x1 < 2", &["--window", "1"]),
    ("init x0 = 1\nproperty p: x0 > 0 -> hist (x0 != 2)", &["--check", "nondeterminism,causality"]),
];

fn analysis(folder: &std::path::Path, i: usize) -> AnalysisArgs {
    let spec = folder.join(format!("{i}.spec"));
    std::fs::write(&spec, ASKED[i].0).unwrap();
    let spec = spec.to_str().unwrap();
    let words = ["foresee", "observe", "--listen", "127.0.0.1:0", "--spec", spec];
    let cli = Cli::parse_from(words.iter().chain(ASKED[i].1));
    let Command::Observe(args) = cli.command else { panic!() };
    args.analysis
}

fn input(trace: PathBuf) -> InputArgs {
    InputArgs { trace, input_format: None, repair: false }
}

/// What a command prints in the end, or why it fails.
type Said = Result<serde_json::Value, String>;

fn said(result: anyhow::Result<Examined>) -> Said {
    let mut report = Report::of(result.map_err(|error| format!("{error:#}"))?, &Tests::default());
    report.name = "trace".to_owned();
    let text = foresee_report::json::report(&report);
    Ok(serde_json::from_str(&text).unwrap())
}

/// Examines programs, each with the observer that its name says, and keeps what comes out.
struct Record {
    observers: Vec<ConsoleObserver>,
    said: Mutex<HashMap<String, (Said, Heard)>>,
}

#[derive(Default)]
struct Heard {
    findings: Vec<Finding>,
    withdrawn: usize,
}

impl Listener for Heard {
    fn found(&mut self, finding: &Finding) {
        self.findings.push(finding.clone());
    }
    fn withdrawn(&mut self, _: &Finding) {
        self.withdrawn += 1;
    }
}

impl Observer for Record {
    fn observe(&self, program: &Arc<Program>) -> Result<(), String> {
        let seed: usize = program.name.parse().unwrap();
        let observer = &self.observers[seed % self.observers.len()];
        let mut heard = Heard::default();
        let examined = observer.session.follow(&Running(program), &mut heard);
        let said = said(examined.map_err(specs::failed));
        self.said.lock().unwrap().insert(program.name.clone(), (said, heard));
        Ok(())
    }
    fn problem(&self, peer: &str, program: Option<&str>, what: &str) {
        panic!("{peer}, {program:?}: {what}");
    }
}

/// 5,000 random traces, sent in tiny frames, out of order, over one to four connections.
#[test]
fn online_equals_offline() {
    const TRACES: u64 = 5000;
    let folder = tempfile::tempdir().unwrap();
    let path = |seed: u64| folder.path().join(format!("{seed}.std"));
    let observers: Vec<ConsoleObserver> = (0..ASKED.len())
        .map(|i| ConsoleObserver::new(analysis(folder.path(), i), false, 1024).unwrap())
        .collect();
    let record = Arc::new(Record { observers, said: Mutex::default() });
    let options = ServerOptions {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        token: None,
        keep: None,
        limits: Limits::default(),
    };
    let server = Server::start(options, Arc::clone(&record) as Arc<dyn Observer>).unwrap();
    let to = server.addresses()[0].clone();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let to = &to;
            scope.spawn(move || {
                for seed in (worker..TRACES).step_by(4) {
                    std::fs::write(path(seed), random_trace(seed).to_string()).unwrap();
                    let args = input(path(seed));
                    let trace = Input::new(&args, false, usize::MAX).unwrap();
                    let options = SendOptions {
                        to: to.clone(),
                        token: Vec::new(),
                        program: ProgramId::random(),
                        name: seed.to_string(),
                        connections: 1 + (seed / 7 % 4) as u16,
                        frame_events: 1 + (seed / 3 % 5) as u32,
                        rate: None,
                        shuffle: Some(seed),
                        retry: Duration::ZERO,
                    };
                    foresee_observe::send(&mut || trace.open_raw(), &options).unwrap();
                }
            });
        }
    });
    assert!(server.wait(TRACES, Duration::from_secs(600)));
    server.stop();
    let (mut early, mut predicted, mut failed) = (0, 0, 0);
    for seed in 0..TRACES {
        let observer = &record.observers[seed as usize % record.observers.len()];
        let args = input(path(seed));
        let trace = Input::new(&args, true, usize::MAX).unwrap();
        let offline = said(check::examine(&observer.session, &trace));
        let all = record.said.lock().unwrap();
        let (online, heard) = &all[&seed.to_string()];
        match (&offline, online) {
            (Ok(offline), Ok(online)) => assert_eq!(offline, online, "trace {seed}"),
            (Err(offline), Err(online)) => {
                // Only the file's name is not known to the observer.
                assert!(offline.ends_with(online.as_str()), "{seed}: {offline} / {online}");
                failed += 1;
                continue;
            }
            _ => panic!("trace {seed}: offline {offline:?}, online {online:?}"),
        }
        let report = online.as_ref().unwrap();
        predicted += report["summary"]["predicted"].as_u64().unwrap();
        early += heard.findings.iter().filter(|f| f.kind == FindingKind::Predicted).count() as u64;
        // What was printed while the program ran is in the final report, or was withdrawn.
        let analyses = report["analyses"].as_array().unwrap().iter();
        let last: Vec<&serde_json::Value> =
            analyses.flat_map(|a| a["findings"].as_array().unwrap()).collect();
        let is_missing = |f: &&Finding| last.iter().all(|l| l["property"] != f.property.as_str());
        let missing = heard.findings.iter().filter(is_missing).count();
        assert!(missing <= heard.withdrawn, "trace {seed}: {:?}", heard.findings);
    }
    assert!(predicted > 200 && early > 100 && failed > 20, "{predicted}, {early}, {failed}");
}
