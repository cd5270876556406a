//! Java programs whose agent sends what it records to an observer.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Bench, root, said};
use crate::jvm::{agent, classes};
use crate::jvm_uses::script;
use crate::observe::Observer;

/// A program with the agent, without `foresee run`.
fn java(settings: &str, program: &[&str]) -> Command {
    let mut java = Command::new("java");
    java.arg("-Xshare:off").arg("-cp").arg(classes());
    java.arg(format!("-javaagent:{}={settings}", agent().display())).args(program);
    java
}

/// The only log in a folder.
fn log(folder: &Path) -> std::path::PathBuf {
    let mut logs: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.remove(0)
}

/// What a report says, apart from figures and names of files.
fn answer(report: &Value) -> (Value, Vec<String>) {
    let analyses = report["analyses"].as_array().unwrap().iter();
    let findings = analyses.flat_map(|one| one["findings"].as_array().unwrap());
    // Fingerprints have names of objects in them, which an observer has to give earlier.
    let mut findings: Vec<String> =
        findings.map(|one| format!("{} {}", one["kind"], one["message"])).collect();
    findings.sort();
    (report["summary"].clone(), findings)
}

#[test]
fn the_verdict_is_that_of_the_log() {
    let landing = root().join("examples/jvm/landing/Landing.spec");
    let landing = ["--spec", landing.to_str().unwrap()];
    let fields = ",field=landing,field=approved,field=radio";
    let (race, deadlock) = (["--check", "race"], ["--check", "deadlock"]);
    for (program, question, settings, found) in [
        ("Landing", landing, fields, true),
        ("RacyCounter", race, "", true),
        ("SharedList", race, "", true),
        ("GuardedCounter", race, "", false),
        ("WaitNotify", race, "", false),
        ("OrderedByTheJdk", race, "", false),
        ("PoolAndFutures", race, "", false),
        ("LockOrder", deadlock, "", true),
    ] {
        let bench = Bench::new();
        let folder = bench.path("log");
        let flags = [&question[..], &["--programs", "1"]].concat();
        let mut observer = Observer::listen(&flags);
        let settings = format!("out={},to={}{settings}", folder.display(), observer.address);
        let (status, out, err) = said(&java(&settings, &[program]).output().unwrap());
        assert_eq!((status, err.as_str()), (0, ""), "{program}: {out}");
        let verdict = observer.next("verdict");
        let mut check = bench.foresee();
        check.arg("check").arg(log(&folder)).args(question);
        check.args(["--window", "256", "--reorder", "maz", "--format", "json"]);
        let (status, out, err) = said(&check.output().unwrap());
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        assert_eq!(answer(&verdict["report"]), answer(&report), "{program}: {verdict:#}");
        // A thread that never did anything is known only by its start and its end, which a stored log leaves out.
        let more = |what: &str| {
            let of = |report: &Value| report["trace"][what].as_i64().unwrap();
            of(&verdict["report"]) - of(&report)
        };
        match more("threads") {
            0 => assert_eq!(more("events"), 0, "{program}"),
            threads => assert!(more("events") >= threads, "{program}"),
        }
        assert_eq!(verdict["status"], status, "{program}: {verdict:#}{out}");
        assert_eq!(status == 1, found, "{program}: {out}");
    }
}

#[test]
fn later_versions_of_java_are_observed_as_well() {
    for version in ["21", "25"] {
        let java = script("jdk", &[version]);
        for (program, status) in [("RacyCounter", 1), ("OrderedByTheJdk", 0)] {
            let mut observer = Observer::listen(&["--check", "race", "--programs", "1"]);
            let settings = format!("to={}", observer.address);
            let mut command = Command::new(&java);
            command.args(["-Xshare:off", "-XX:+UseZGC", "-cp"]).arg(classes());
            command.arg(format!("-javaagent:{}={settings}", agent().display())).arg(program);
            let (ended, _, err) = said(&command.output().unwrap());
            assert_eq!((ended, err.as_str()), (0, ""), "{version} {program}");
            let verdict = observer.next("verdict");
            assert_eq!(verdict["status"], status, "{version} {program}: {verdict:#}");
        }
    }
}

#[test]
fn findings_come_while_the_program_runs_and_its_death_is_noticed() {
    let bench = Bench::new();
    let spec = bench.path("ticking.spec");
    std::fs::write(&spec, "property small: Ticking.count < 10\n").unwrap();
    let flags = ["--spec", spec.to_str().unwrap(), "--programs", "1", "--linger", "1"];
    let mut observer = Observer::listen(&flags);
    let settings = format!("to={},name=ticking,field=Ticking.count", observer.address);
    let option = format!("-Djava.io.tmpdir={}", bench.path("").display());
    let mut program = java(&settings, &[&option, "Ticking"]).spawn().unwrap();
    let finding = observer.next("finding");
    assert_eq!(finding["program"]["name"], "ticking");
    assert_eq!(finding["finding"]["kind"], "observed");
    assert!(program.try_wait().unwrap().is_none());
    program.kill().unwrap();
    program.wait().unwrap();
    let verdict = observer.next("verdict");
    let cut_short = verdict["report"]["trace"]["cut_short"].to_string();
    assert!(cut_short.contains("without a goodbye"), "{verdict:#}");
    assert_eq!(verdict["status"], 1);
}

#[test]
fn nothing_is_lost_when_the_program_exits_and_nothing_is_left() {
    for (how, is_cut) in [("exit", false), ("throw", false), ("halt", true)] {
        let bench = Bench::new();
        let mut observer =
            Observer::listen(&["--check", "race", "--programs", "1", "--linger", "1"]);
        let temporary = bench.path("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let option = format!("-Djava.io.tmpdir={}", temporary.display());
        let settings = format!("to={}", observer.address);
        let (_, out, _) = said(&java(&settings, &[&option, "Endings", how]).output().unwrap());
        assert_eq!(out, "");
        let verdict = observer.next("verdict");
        assert_eq!(verdict["report"]["trace"]["cut_short"].is_string(), is_cut, "{verdict:#}");
        assert_eq!(verdict["status"], if is_cut { 3 } else { 0 }, "{how}: {verdict:#}");
        let left = temporary.read_dir().unwrap().count();
        assert_eq!(left, usize::from(is_cut), "{how}");
    }
}

#[test]
fn without_an_observer_the_program_runs_and_the_log_stays() {
    let mut strict = Observer::listen(&["--check", "race", "--token", "open"]);
    for (to, why) in [
        ("127.0.0.1:1".to_owned(), "refused"),
        (format!("{},token=wrong", strict.address), "the token is wrong"),
    ] {
        let bench = Bench::new();
        let folder = bench.path("log");
        let settings = format!("out={},to={to}", folder.display());
        let (status, out, err) = said(&java(&settings, &["RacyCounter"]).output().unwrap());
        assert_eq!((status, out.as_str()), (0, ""), "{err}");
        assert!(err.contains("did not get everything") && err.contains(why), "{err}");
        let mut check = bench.foresee();
        let (status, out, err) =
            said(&check.arg("check").arg(log(&folder)).args(["--check", "race"]).output().unwrap());
        assert_eq!(status, 1, "{out}{err}");
        assert!(out.contains("PREDICTED race"), "{out}{err}");
    }
    let trouble = strict.next("trouble");
    assert!(trouble["message"].to_string().contains("token"), "{trouble}");
    // What cannot be an address is said before the program begins.
    let (status, _, err) = said(&java("to=nowhere", &["RacyCounter"]).output().unwrap());
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("`nowhere` is not the address of an observer"), "{err}");
}
