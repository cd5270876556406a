//! Observed programs and explorations through a queue, with real processes, of which some are killed. Batches are in
//! `batch.rs`; `scripts/test` runs both with the feature that queues need.

#![cfg(all(feature = "nats", target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use foresee_nats::Server;
use foresee_observe::ProgramId;
use foresee_testkit::random_trace;
use serde_json::Value as Json;

use crate::harness::{Bench, root, said};

const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");
/// How long a test waits for what has to happen, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(300);

struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Process {
        Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Says that a test is over, even if it has failed.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A server with its store.
struct Nats {
    url: String,
    _process: Process,
    folder: tempfile::TempDir,
}

impl Nats {
    fn start() -> Nats {
        Nats::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Nats {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let mut server = Command::new("/usr/sbin/nats-server");
        server.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]);
        server.arg(folder.path().join("store")).args(arguments);
        let process = Process::start(&mut server);
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "nats-server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Nats { url: format!("nats://127.0.0.1:{port}"), _process: process, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn verdict(&self, program: &str, run: &str) -> Option<Json> {
        let id = ProgramId::parse(run).unwrap();
        let found = foresee_nats::verdict(&Server::new(&self.url), program, id).unwrap()?;
        Some(serde_json::from_slice(&found).unwrap())
    }
}

/// Properties over names of the generated traces.
const SPEC: &str = "init x0 = 0, x1 = 0\n\
    property p: start(x0 == 1) -> once (x1 == 1)\n\
    property q: x0 == 2 -> (x1 != 1 since start(x0 == 1))\n";

fn observer(url: &str, spec: &Path) -> Command {
    observer_that_waits(url, spec, "1")
}

/// The same; it takes a sender that is silent for longer than `linger` seconds for one that has died.
fn observer_that_waits(url: &str, spec: &Path, linger: &str) -> Command {
    let mut command = Command::new(FORESEE);
    command.args(["observe", "--queue", url, "--ack-wait", "1", "--linger", linger]);
    command.args(["--patience", "60", "--spec"]).arg(spec);
    command
}

/// Sends a trace; its run.
fn send(url: &str, trace: &Path, flags: &[&str]) -> Result<(String, String), String> {
    let mut command = Command::new(FORESEE);
    command.arg("send").arg(trace).args(["--to", url]).args(flags);
    let (status, out, err) = said(&command.output().unwrap());
    if status != 0 {
        return Err(format!("status {status}: {out}{err}"));
    }
    Ok((run_in(&out), out))
}

/// The run that something was published as.
fn run_in(out: &str) -> String {
    out.split("published as run ").nth(1).unwrap()[..32].to_owned()
}

/// What `foresee check` says of a trace, with what an observer assumes.
fn offline(trace: &Path, spec: &Path) -> Json {
    let mut command = Command::new(FORESEE);
    // The name of the trace is that of the run.
    command.current_dir(trace.parent().unwrap()).arg("check").arg(trace.file_name().unwrap());
    command.args(["--window", "256", "--reorder", "maz", "--spec"]);
    command.arg(spec).args(["--format", "json"]);
    let (_, out, err) = said(&command.output().unwrap());
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{}: {err}", trace.display()))
}

#[test]
fn observers_share_runs_and_one_that_dies_is_replaced() {
    const RUNS: u64 = 12;
    let nats = Nats::start();
    let spec = nats.path("p.spec");
    std::fs::write(&spec, SPEC).unwrap();
    // Those that have both variables, so that the specification fits.
    let fits = |seed: &u64| {
        let trace = random_trace(*seed).to_string();
        trace.contains("w(x0)") && trace.contains("w(x1)")
    };
    let traces: Vec<PathBuf> = (0..)
        .filter(fits)
        .take(RUNS as usize)
        .map(|seed| {
            let path = nats.path(&format!("{seed}.std"));
            std::fs::write(&path, random_trace(seed).to_string()).unwrap();
            path
        })
        .collect();
    let (is_over, killed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let verdicts = std::thread::scope(|scope| {
        let _over = AtTheEnd(&is_over);
        scope.spawn(|| {
            // On a busy machine a sender may be silent for seconds.
            let start = || Process::start(&mut observer_that_waits(&nats.url, &spec, "120"));
            let mut observers = [start(), start()];
            let mut random = fastrand::Rng::with_seed(3);
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(random.u64(500..2000)));
                // A run that ten observers die of is given up, so fewer do. Dropping one is kill -9.
                if killed.load(Ordering::Relaxed) < 8 {
                    observers[random.usize(..2)] = start();
                    killed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let sent: Vec<_> = traces
            .iter()
            .enumerate()
            .map(|(i, trace)| {
                let (url, is_slow) = (&nats.url, i % 3 == 0);
                scope.spawn(move || {
                    // Some take long enough for their observers to die under them.
                    let flags: &[&str] = if is_slow { &["--rate", "5"] } else { &["--frame", "3"] };
                    send(url, trace, flags).unwrap().0
                })
            })
            .collect();
        let mut verdicts = Vec::new();
        for (sent, trace) in sent.into_iter().zip(&traces) {
            let (run, until) = (sent.join().unwrap(), Instant::now() + PATIENCE);
            let name = trace.file_name().unwrap().to_str().unwrap();
            let verdict = loop {
                if let Some(verdict) = nats.verdict(name, &run) {
                    break verdict;
                }
                assert!(Instant::now() < until, "{name} has no verdict");
                std::thread::sleep(Duration::from_millis(100));
            };
            verdicts.push(verdict);
        }
        verdicts
    });
    assert!(killed.load(Ordering::Relaxed) > 0);
    let mut found = 0;
    for (verdict, trace) in verdicts.into_iter().zip(&traces) {
        assert_eq!(verdict["what"], "verdict", "{verdict}");
        let expected = offline(trace, &spec);
        for field in ["trace", "analyses", "summary"] {
            assert_eq!(verdict["report"][field], expected[field], "{}", trace.display());
        }
        found += u64::from(verdict["status"] == 1);
    }
    assert!(found > 0);
}

#[test]
fn a_long_run_arrives_whole() {
    const EVENTS: usize = 400_000;
    let nats = Nats::start();
    let (spec, trace) = (nats.path("p.spec"), nats.path("long.std"));
    std::fs::write(&spec, "init x = 0\nproperty p: x >= 0\n").unwrap();
    // Values and places that do not repeat, so that there are many pieces.
    let text: String = (0..EVENTS).map(|i| format!("T1|w(x)={}|f.c:{i}\n", i * 7919)).collect();
    std::fs::write(&trace, text).unwrap();
    // Everything is there when the observer comes, and it reads as fast as it can.
    let (run, _) = send(&nats.url, &trace, &[]).unwrap();
    let (_, out, err) =
        said(&observer(&nats.url, &spec).args(["--programs", "1"]).output().unwrap());
    let verdict = nats.verdict("long.std", &run).unwrap_or_else(|| panic!("{out}{err}"));
    let expected = offline(&trace, &spec);
    assert_eq!(expected["trace"]["events"], EVENTS);
    for field in ["trace", "analyses", "summary"] {
        assert_eq!(verdict["report"][field], expected[field]);
    }
}

#[test]
fn a_queue_that_is_full_holds_senders_back_or_drops_are_counted() {
    let nats = Nats::start();
    let (spec, trace) = (nats.path("p.spec"), nats.path("long.std"));
    std::fs::write(&spec, "property p: x >= 0 || true\n").unwrap();
    let text: String =
        (0..150_000).map(|i| format!("T{}|w(x)={}|f.c:{i}\n", i % 2, i * 7919)).collect();
    std::fs::write(&trace, text).unwrap();
    let small = ["--events-size", "1", "--frame", "1000"];
    let error = send(&nats.url, &trace, &[&small[..], &["--patience", "2"]].concat()).unwrap_err();
    assert!(error.starts_with("status 2") && error.contains("cannot publish events"), "{error}");
    assert!(error.contains("maximum bytes"), "{error}");
    // The one before is still in the queue, without an end. With another queue there is room for the beginning.
    let other = [&small[..], &["--queue-name", "other", "--lossy", "--patience", "60"]].concat();
    let mut watching = observer(&nats.url, &spec);
    watching.args(["--queue-name", "other", "--programs", "1", "--format", "json"]);
    let out = send(&nats.url, &trace, &other).unwrap_err();
    assert!(out.starts_with("status 3") && out.contains("were dropped"), "{out}");
    let run = run_in(&out);
    let (status, out, err) = said(&watching.output().unwrap());
    assert_eq!(status, 3, "{out} {err}");
    assert!(out.contains(&run), "{out}");
    // Even in a queue that is full to the last byte, the count arrives.
    assert!(out.contains("events were dropped"), "{out}");
    assert!(!out.contains("without a goodbye"), "{out}");
}

#[test]
fn findings_have_a_subject_of_their_own_and_questions_must_agree() {
    let nats = Nats::start();
    let (spec, other) = (nats.path("p.spec"), nats.path("other.spec"));
    std::fs::write(&spec, "init x = 0\nproperty low: x < 2\n").unwrap();
    std::fs::write(&other, "init x = 0\nproperty low: x < 3\n").unwrap();
    let trace = nats.path("a.b c.std");
    std::fs::write(&trace, "T1|w(x)=1|\nT2|w(x)=2|\n").unwrap();
    let (run, _) = send(&nats.url, &trace, &[]).unwrap();
    let (status, out, err) =
        said(&observer(&nats.url, &spec).args(["--programs", "1"]).output().unwrap());
    assert_eq!(status, 1, "{out} {err}");
    let findings = foresee_nats::findings(&Server::new(&nats.url)).unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let (subject, json) = &findings[0];
    assert!(subject.starts_with(&format!("foresee.findings.a_b_c_std.{run}.")), "{subject}");
    assert_eq!(serde_json::from_slice::<Json>(json).unwrap()["finding"]["property"], "low");
    // Who looks for something else cannot share runs with those who are there.
    let mut here = observer(&nats.url, &spec);
    let mut here = Process(here.args(["--format", "json"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut said_by = std::io::BufReader::new(here.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"what\":\"queue\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said_by, &mut line).unwrap() > 0);
    }
    let (status, _, err) =
        said(&observer(&nats.url, &other).args(["--programs", "0"]).output().unwrap());
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("observed with other specifications"), "{err}");
}

#[test]
fn a_sender_that_dies_has_an_incomplete_verdict_and_a_stopped_observer_gives_its_run_back() {
    let nats = Nats::start();
    let (spec, trace) = (nats.path("p.spec"), nats.path("slow.std"));
    std::fs::write(&spec, "init x = 0\nproperty p: x >= 0\n").unwrap();
    let text: String = (0..1000).map(|i| format!("T{}|w(x)={i}|\n", i % 2)).collect();
    std::fs::write(&trace, text).unwrap();
    let mut sender = Command::new(FORESEE);
    sender.arg("send").arg(&trace).args(["--to", &nats.url, "--rate", "10", "--frame", "1"]);
    let sender = Process::start(&mut sender);
    // The first observer is told to stop while it has the run.
    let mut first = observer(&nats.url, &spec);
    let mut first = first.args(["--format", "json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said_by = std::io::BufReader::new(first.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"what\":\"program\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said_by, &mut line).unwrap() > 0);
    }
    let pid = first.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    std::io::Read::read_to_string(&mut said_by, &mut line).unwrap();
    assert_eq!(first.wait().unwrap().code(), Some(3), "{line}");
    // The second one outlives the sender.
    drop(sender);
    let (status, out, err) =
        said(&observer(&nats.url, &spec).args(["--programs", "1"]).output().unwrap());
    assert_eq!(status, 3, "{out} {err}");
    assert!(out.contains("without a goodbye"), "{out}");
}

#[test]
fn whoever_cannot_use_a_queue_says_why_and_ends_with_status_2() {
    let nats = Nats::start_with(&["--auth", "sesame"]);
    let bench = Bench::new();
    build(&bench, "account", true);
    bench.write("p.spec", "property p: x >= 0 || true\n");
    bench.write("a.std", "T1|w(x)=1|\n");
    let nowhere = "nats://127.0.0.1:9";
    for (url, token, expected) in [
        (nowhere, None, "cannot reach nats://127.0.0.1:9"),
        (nats.url.as_str(), None, "refuses these credentials"),
        (nats.url.as_str(), Some("barley"), "refuses these credentials"),
    ] {
        for words in [
            format!("batch a.std --no-cache --patience 1 --queue {url}"),
            format!("worker --cache fetched --patience 1 --queue {url}"),
            format!("send a.std --patience 1 --to {url}"),
            format!("run --patience 1 --to {url} -- ./account-repaired"),
            format!("observe --spec p.spec --patience 1 --queue {url}"),
            format!("explore --patience 1 --queue {url} -- ./account-repaired"),
        ] {
            let mut command = bench.foresee();
            command.args(words.split_whitespace()).env_remove("FORESEE_NATS_TOKEN");
            command.envs(token.map(|token| ("FORESEE_NATS_TOKEN", token)));
            let (status, out, err) = said(&command.output().unwrap());
            assert_eq!(status, 2, "{words}: {out}{err}");
            assert!(err.contains(expected), "{words}: {err}");
        }
    }
    let (status, _, err) = said(&bench.build(&format!("send a.std --shuffle 1 --to {nowhere}")));
    assert_eq!(status, 2);
    assert!(err.contains("a queue keeps events in order"), "{err}");
}

/// The verdicts of an observer on its first programs.
fn verdicts(nats: &Nats, flags: &[&str], programs: usize) -> (i32, Vec<Json>) {
    let mut command = Command::new(FORESEE);
    command.args(["observe", "--queue", &nats.url, "--ack-wait", "1", "--format", "json"]);
    command.args(["--programs", &programs.to_string()]).args(flags);
    let (status, out, err) = said(&command.output().unwrap());
    let lines = out.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let verdicts: Vec<Json> = lines.filter(|line| line["what"] == "verdict").collect();
    assert_eq!(verdicts.len(), programs, "{out}{err}");
    (status, verdicts)
}

#[test]
fn a_captured_program_publishes_its_run() {
    let nats = Nats::start();
    let bench = Bench::new();
    bench.write("account.c", crate::explore::ACCOUNT);
    bench.write("account.spec", "property solvent: balance >= 0\nproperty q: audited <= 10\n");
    bench.built("cc -g -O1 -pthread -o account account.c");
    let spec = bench.path("account.spec");
    let spec = spec.to_str().unwrap();
    let mut found = 0;
    for seed in 1..4 {
        // What is published is what is kept.
        let words = format!(
            "run --to {} --keep account.fse --seed {seed} --spec account.spec -- ./account",
            nats.url
        );
        let (status, out, err) = said(&bench.build(&words));
        assert_eq!(status, 0, "{out}{err}");
        let run = run_in(&out);
        for question in [["--spec", spec], ["--check", "race"]] {
            // Each observer looks at the same run: that of the next question gets it anew.
            if question[0] == "--check" {
                send(&nats.url, &bench.path("account.fse"), &["--name", "account"]).unwrap();
            }
            let (status, verdicts) = verdicts(&nats, &question, 1);
            let mut check = bench.foresee();
            check.args(["check", "account.fse", "--window", "256", "--reorder", "maz"]);
            let (expected, out, err) =
                said(&check.args(question).args(["--format", "json"]).output().unwrap());
            let offline: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
            for field in ["analyses", "summary"] {
                assert_eq!(verdicts[0]["report"][field], offline[field], "{question:?}");
            }
            assert_eq!(status, expected, "{question:?}");
            found += usize::from(status == 1);
        }
        assert!(nats.verdict("account", &run).is_some());
    }
    assert!(found > 0);
    // A program that fails is a finding here: observers do not know how it ended.
    bench.write("fails.c", "int main(void) { return 7; }\n");
    bench.built("cc -g -pthread -o fails fails.c");
    let (status, out, err) = said(&bench.build(&format!("run --to {} -- ./fails", nats.url)));
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("published as run") && out.contains("program-failure"), "{out}{err}");
}

#[test]
fn a_program_in_c_publishes_while_it_runs_whichever_observer_dies() {
    let nats = Nats::start();
    let bench = Bench::new();
    bench.write("slow.c", crate::native_observed::SLOW);
    bench.built("cc -g -O1 -pthread -o slow slow.c");
    let mut run = bench.foresee();
    run.args(["run", "--to", &nats.url, "--keep", "slow.fse", "--", "./slow", "go"]);
    let running = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // An observer hears of it, and dies.
    let start = || {
        let mut observer = Command::new(FORESEE);
        observer.args(["observe", "--queue", &nats.url, "--check", "race", "--format", "json"]);
        observer.args(["--programs", "1", "--ack-wait", "1"]).stdout(Stdio::piped());
        Process(observer.spawn().unwrap())
    };
    let mut fingerprint = String::new();
    for is_last in [false, true] {
        let mut observer = start();
        let mut said_by = std::io::BufReader::new(observer.0.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("\"what\":\"finding\"") {
            line.clear();
            assert!(std::io::BufRead::read_line(&mut said_by, &mut line).unwrap() > 0);
        }
        let found: Json = serde_json::from_str(&line).unwrap();
        fingerprint = found["finding"]["fingerprint"].as_str().unwrap().to_owned();
        if is_last {
            // Only now the program may end.
            bench.write("go", "");
            line.clear();
            std::io::Read::read_to_string(&mut said_by, &mut line).unwrap();
            assert_eq!(observer.0.wait().unwrap().code(), Some(1), "{line}");
        }
    }
    let (status, out, err) = said(&running.wait_with_output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    let verdict = nats.verdict("slow", &run_in(&out)).unwrap();
    let mut check = bench.foresee();
    check.args(["check", "slow.fse", "--check", "race", "--window", "256", "--reorder", "maz"]);
    let (status, out, err) = said(&check.args(["--format", "json"]).output().unwrap());
    let offline: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!(verdict["status"], status);
    let claims = crate::native_observed::claims;
    assert_eq!(claims(&verdict["report"]), claims(&offline));
    assert!(offline["analyses"].to_string().contains(&fingerprint));
}

#[test]
fn recordings_of_a_rust_program_are_published() {
    let nats = Nats::start();
    let bench = Bench::new();
    let run = |program: &str| {
        let mut run = bench.foresee();
        run.args(["run", "--to", &nats.url, "--keep", "kept.fse", "--"]);
        run.arg(std::env::current_exe().unwrap()).args(["--ignored", "--exact", "--nocapture"]);
        said(&run.arg(format!("tutorial::{program}")).output().unwrap())
    };
    let (status, out, err) = run("two_recordings");
    assert_eq!(status, 0, "{out}{err}");
    assert_eq!(out.matches("published as run").count(), 2, "{out}{err}");
    let (status, verdicts) = verdicts(&nats, &["--check", "race"], 2);
    assert_eq!(status, 1);
    let mut expected = Vec::new();
    for kept in ["kept.fse", "kept.2.fse"] {
        let mut check = bench.foresee();
        check.args(["check", kept, "--check", "race", "--window", "256", "--reorder", "maz"]);
        let (_, out, err) = said(&check.args(["--format", "json"]).output().unwrap());
        let offline: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{err}"));
        assert_eq!(crate::native_observed::findings(&offline).len(), 1, "{offline}");
        expected.push(crate::native_observed::claims(&offline).to_string());
    }
    let mut told: Vec<String> = verdicts
        .iter()
        .map(|one| crate::native_observed::claims(&one["report"]).to_string())
        .collect();
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
    // What is lost is said, and nothing is published.
    let (status, out, err) = run("a_recording_that_is_never_dropped");
    assert_eq!(status, 3, "{out}{err}");
    assert!(err.contains("is lost") && !out.contains("published"), "{out}{err}");
}

#[test]
fn a_worker_that_is_told_to_stop_ends_well() {
    let nats = Nats::start();
    for signal in ["-HUP", "-TERM", "-INT"] {
        let mut worker = Command::new(FORESEE);
        worker.args(["worker", "--queue", &nats.url, "--cache"]).arg(nats.path("fetched"));
        let mut worker = worker.stderr(Stdio::piped()).spawn().unwrap();
        // Once it has done a job, it watches for signals.
        std::fs::write(nats.path("a.std"), format!("T1|w(x)=1|\nT2|w(x)=2|{signal}:1\n")).unwrap();
        let mut batch = Command::new(FORESEE);
        batch.arg("batch").arg(nats.path("a.std")).args(["--check", "race", "--no-cache"]);
        let batch = batch.args(["--queue", &nats.url, "--patience", "60"]).output().unwrap();
        assert_eq!(batch.status.code(), Some(1), "{}", String::from_utf8_lossy(&batch.stderr));
        let id = worker.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let status = worker.wait().unwrap();
        let mut told = String::new();
        std::io::Read::read_to_string(&mut worker.stderr.take().unwrap(), &mut told).unwrap();
        assert_eq!(status.code(), Some(0), "{signal}: {told}");
        assert!(told.contains("1 job done"), "{signal}: {told}");
    }
}

#[test]
fn a_java_program_publishes_while_it_runs() {
    let nats = Nats::start();
    let bench = Bench::new();
    for (program, expected) in [("RacyCounter", 1), ("GuardedCounter", 0)] {
        let mut run = bench.foresee();
        run.env("FORESEE_JVM_AGENT", crate::jvm::agent());
        run.args(["run", "--to", &nats.url, "--", "java", "-Xshare:off", "-cp"]);
        let (status, out, err) =
            said(&run.arg(crate::jvm::classes()).arg(program).output().unwrap());
        assert_eq!(status, 0, "{program}: {out}{err}");
        let run = run_in(&out);
        let (status, verdicts) = verdicts(&nats, &["--check", "race"], 1);
        assert_eq!(status, expected, "{program}: {verdicts:?}");
        assert_eq!(verdicts[0]["status"], expected);
        assert_eq!(nats.verdict("java", &run).unwrap()["status"], expected);
    }
    // An observer sees it before it has ended.
    bench.write(
        "Slow.java",
        "class Slow { static int x; public static void main(String[] a) throws Exception {\n\
         Thread t = new Thread(() -> x++); t.start(); x++; t.join();\n\
         while (!new java.io.File(a[0]).exists()) Thread.sleep(10); } }\n",
    );
    let compiled = Command::new("javac").arg("Slow.java").current_dir(bench.path("")).status();
    assert!(compiled.unwrap().success());
    let flag = bench.path("seen");
    let mut run = bench.foresee();
    run.env("FORESEE_JVM_AGENT", crate::jvm::agent());
    run.args(["run", "--to", &nats.url, "--", "java", "-Xshare:off", "-cp", ".", "Slow"]);
    let running = run.arg(&flag).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut observer = Command::new(FORESEE);
    observer.args(["observe", "--queue", &nats.url, "--check", "race", "--format", "json"]);
    let mut observer =
        Process(observer.args(["--programs", "1"]).stdout(Stdio::piped()).spawn().unwrap());
    let mut said_by = std::io::BufReader::new(observer.0.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"what\":\"program\"") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut said_by, &mut line).unwrap() > 0);
    }
    // Only now it may end.
    std::fs::write(&flag, "").unwrap();
    let (status, out, err) = said(&running.wait_with_output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    std::io::Read::read_to_string(&mut said_by, &mut line).unwrap();
    assert_eq!(observer.0.wait().unwrap().code(), Some(1), "{line}");
}

fn build(bench: &Bench, name: &str, is_repaired: bool) {
    let folder = root().join("testdata/explore");
    let (folder, define) = (folder.display(), if is_repaired { "-DREPAIRED" } else { "" });
    let to = if is_repaired { format!("{name}-repaired") } else { name.to_owned() };
    bench.built(&format!("cc -g -O1 -pthread {define} -o {to} {folder}/{name}.c"));
}

/// What an exploration came to: its status, and its answer.
fn answer(bench: &Bench, words: &str) -> (i32, Json) {
    let words = format!("explore --all --format json {words}");
    let (status, out, err) = said(&bench.build(&words));
    let told: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{words}: {err}"));
    (status, told)
}

/// What an exploration came to, whichever runs it took: its status, what it covered, and everything that it found.
fn explored(bench: &Bench, words: &str) -> (i32, Json, Vec<String>) {
    let (status, told) = answer(bench, words);
    let findings = told["findings"].as_array().unwrap().iter();
    let mut findings: Vec<String> = findings
        .map(|one| format!("{} {} {}", one["rule"], one["fingerprint"], one["message"]))
        .collect();
    findings.sort();
    (status, told["explored"]["covered"].clone(), findings)
}

#[test]
fn workers_look_at_every_run_as_one_process_does() {
    let nats = Nats::start();
    let bench = Bench::new();
    bench.write("account.c", crate::explore::ACCOUNT);
    bench.write("account.spec", crate::explore::PROPERTIES);
    bench.write(
        "params.spec",
        "property p(x): event(end, x) -> once event(end, x)\nproperty q: enter(audit) -> true\n",
    );
    bench.write("solvent.spec", "property solvent: balance >= 0\n");
    bench.built("cc -g -O1 -fno-inline -pthread -o account account.c");
    bench.built("cc -g -O1 -fno-inline -pthread -DREPAIRED -o repaired account.c");
    build(&bench, "aba_stack", true);
    build(&bench, "peterson", false);
    let mut worker = bench.foresee();
    worker.args(["worker", "--queue", &nats.url, "--jobs", "1", "--cache"]);
    worker.arg(nats.path("fetched")).args(["--allow-before", "echo x >> before"]);
    for program in ["account", "repaired", "aba_stack-repaired", "peterson"] {
        worker.args(["--allow-run", &format!("./{program}")]);
    }
    let _worker = Process::start(&mut worker);
    let mut statuses = Vec::new();
    for words in [
        "-- ./account",
        "-- ./repaired",
        "-- ./aba_stack-repaired",
        "-- ./peterson",
        "--check race,atomicity -- ./account",
        "--spec account.spec -- ./account",
        "--spec solvent.spec --check race -- ./repaired",
        "--spec params.spec -- ./account",
        "--no-checks -- ./repaired",
    ] {
        let (here, there) =
            (answer(&bench, words), answer(&bench, &format!("--queue {} {words}", nats.url)));
        assert_eq!(there, here, "{words}");
        statuses.push(here.0);
    }
    assert_eq!(statuses, [1, 0, 1, 1, 1, 1, 0, 3, 0]);
    // Several at a time: other runs, the same answer.
    for words in ["-- ./account", "--spec account.spec -- ./account"] {
        let queue = format!("--queue {} --jobs 3", nats.url);
        let (here, there) =
            (explored(&bench, words), explored(&bench, &format!("{queue} {words}")));
        assert_eq!(there, here, "{words}");
    }
    // A shell command that the worker allows is run there before each run.
    std::fs::remove_file(bench.path("before")).ok();
    let mut explore = bench.foresee();
    explore.args(["explore", "--queue", &nats.url, "--no-checks", "--format", "json"]);
    explore.args(["--before", "echo x >> before", "--", "./repaired"]);
    let (status, out, err) = said(&explore.output().unwrap());
    assert_eq!(status, 0, "{out}{err}");
    let told: Json = serde_json::from_str(&out).unwrap();
    let before = std::fs::read_to_string(bench.path("before")).unwrap();
    assert_eq!(before.lines().count() as u64, told["explored"]["runs"].as_u64().unwrap());
    // Nobody runs one that is not allowed.
    let mut waiting = bench.foresee();
    waiting.args(["explore", "--queue", &nats.url, "--before", "rm -rf /", "--", "./repaired"]);
    let waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut waiting = Process(waiting);
    let mut line = String::new();
    let mut said_by = std::io::BufReader::new(waiting.0.stderr.take().unwrap());
    std::io::BufRead::read_line(&mut said_by, &mut line).unwrap();
    assert!(line.contains("no worker takes this") && line.contains("--allow-before"), "{line}");
}

#[test]
fn workers_explore_what_one_process_does_whoever_dies() {
    let nats = Nats::start();
    let bench = Bench::new();
    let classics = ["account", "lost_wakeup", "queue"];
    let mut programs = Vec::new();
    for name in classics {
        for is_repaired in [false, true] {
            build(&bench, name, is_repaired);
            programs.push(if is_repaired { format!("{name}-repaired") } else { name.to_owned() });
        }
    }
    let worker = || {
        let mut command = bench.foresee();
        command.args(["worker", "--queue", &nats.url, "--jobs", "2", "--ack-wait", "1"]);
        command.arg("--cache").arg(nats.path("fetched"));
        // The last one is not allowed.
        for program in &programs[..5] {
            command.args(["--allow-run", &format!("./{program}")]);
        }
        Process::start(&mut command)
    };
    let (is_over, killed) = (AtomicBool::new(false), AtomicUsize::new(0));
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let _over = AtTheEnd(&is_over);
        scope.spawn(|| {
            let mut workers = [worker(), worker()];
            let mut random = fastrand::Rng::with_seed(5);
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(random.u64(300..900)));
                // A run that three workers die of is given up, so two do in each exploration.
                if killed.load(Ordering::Relaxed) < 2 * begun.load(Ordering::Relaxed) {
                    workers[random.usize(..2)] = worker();
                    killed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for program in &programs[..5] {
            begun.fetch_add(1, Ordering::Relaxed);
            let queue = format!("--queue {} --ack-wait 1 --jobs 3", nats.url);
            let there = explored(&bench, &format!("{queue} -- ./{program}"));
            let here = explored(&bench, &format!("-- ./{program}"));
            assert_eq!(there, here, "{program}");
            assert_eq!(here.0, i32::from(!program.ends_with("repaired")), "{program}");
            assert_eq!(here.1, "everything", "{program}");
        }
    });
    assert!(killed.load(Ordering::Relaxed) > 0);
    // Nobody runs what is not allowed: the exploration waits, and says why.
    let mut waiting = bench.foresee();
    waiting.args(["explore", "--queue", &nats.url, "--no-checks", "--"]);
    waiting.arg(format!("./{}", programs[5]));
    let mut waiting = waiting.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said_by = std::io::BufReader::new(waiting.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said_by, &mut line).unwrap();
    assert!(line.contains("no worker takes this"), "{line}");
    let _ = waiting.kill();
    let _ = waiting.wait();
}

/// What the files for containers start: the server, and a worker. Each list of arguments is one line, in JSON.
fn started_by(file: &str) -> [Vec<String>; 2] {
    let text = std::fs::read_to_string(root().join("docs/fleet").join(file)).unwrap();
    let lists = text.lines().filter_map(|line| {
        let line = line.trim();
        line.strip_prefix("command: ").or(line.strip_prefix("args: "))
    });
    let lists: Vec<Vec<String>> = lists
        .map(|list| serde_json::from_str(list).unwrap_or_else(|why| panic!("{why}")))
        .collect();
    lists.try_into().unwrap_or_else(|lists| panic!("{file}: {lists:?}"))
}

#[test]
fn containers_start_what_works() {
    let image = std::fs::read_to_string(root().join("docs/fleet/Containerfile")).unwrap();
    assert!(image.contains("ENTRYPOINT [\"foresee\", \"worker\"]"), "{image}");
    for file in ["compose.yaml", "kubernetes.yaml"] {
        let [server, worker] = started_by(file);
        let folder = tempfile::tempdir().unwrap();
        let port = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, monitor) = (port(), port());
        let here = |word: &String| match word.as_str() {
            "/data" | "/cache" => folder.path().join(&word[1..]).display().to_string(),
            "8222" => monitor.to_string(),
            "${FORESEE_NATS_TOKEN}" | "$(TOKEN)" => "sesame".to_owned(),
            "nats://nats:4222" | "nats://foresee-nats:4222" => format!("nats://127.0.0.1:{port}"),
            _ => word.clone(),
        };
        let mut command = Command::new("/usr/sbin/nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(server.iter().map(here));
        let _server = Process::start(&mut command);
        // As the probe of Kubernetes asks.
        let until = Instant::now() + PATIENCE;
        let is_healthy = || {
            let mut stream = TcpStream::connect(("127.0.0.1", monitor)).ok()?;
            std::io::Write::write_all(&mut stream, b"GET /healthz HTTP/1.0\r\n\r\n").ok()?;
            let mut answer = String::new();
            std::io::Read::read_to_string(&mut stream, &mut answer).ok()?;
            answer.lines().next()?.contains("200").then_some(())
        };
        while is_healthy().is_none() {
            assert!(Instant::now() < until, "{file}: the server is not healthy: {server:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut command = Command::new(FORESEE);
        command.arg("worker").args(worker.iter().map(here)).args(["--idle", "1"]);
        command.env("FORESEE_NATS_TOKEN", "sesame").env("FORESEE_CACHE", folder.path());
        let (status, out, err) = said(&command.output().unwrap());
        assert_eq!(status, 0, "{file}: {out}{err}");
    }
}
