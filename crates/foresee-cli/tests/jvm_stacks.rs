//! Call stacks of Java programs, compared with what the JVM knows of them.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use foresee_formats::{Format, Native};
use foresee_trace::{Batch, EventSource, Op, StackId, Value, location};

use crate::harness::{Bench, said};
use crate::jvm::{agent, classes, run};
use crate::jvm_uses::script;

/// For each element of `StackWalks.path`, how many stacks it was told; all must be those of the trace.
fn compare(trace: &Path, which: &str) -> HashMap<String, usize> {
    let mut source = Native.read(Box::new(File::open(trace).unwrap())).unwrap();
    let (mut batch, mut found) = (Batch::default(), HashMap::new());
    while source.next_batch(&mut batch).unwrap() {
        let names = source.names();
        for (i, event) in batch.events.iter().enumerate() {
            let (Op::Write, Some(Value::Int(told))) = (event.op(), batch.pool.value(event)) else {
                continue;
            };
            let name = event.target_name(names).unwrap();
            if !name.starts_with("StackWalks.path[") {
                continue;
            }
            let stack = batch.stack(i);
            assert_ne!(stack, StackId::NONE, "{which}: {name}");
            let calls: Vec<_> = names.stacks.calls(stack).collect();
            let places: Vec<_> = calls.iter().map(|&at| location(at, names).unwrap()).collect();
            let lines = places.iter().rev().map(|place| i64::from(place.line.unwrap()));
            let mixed = lines.fold(0i64, |mixed, line| mixed.wrapping_mul(1009).wrapping_add(line));
            assert_eq!(mixed, told, "{which}: {name} after {places:#?}");
            *found.entry(name.to_owned()).or_default() += 1;
        }
    }
    found
}

#[test]
fn stacks_are_those_that_the_jvm_knows_of() {
    let newer = script("jdk", &["21"]);
    for (java, flags) in [("java", "-Xverify:all"), (&newer, "-Xverify:all"), ("java", "-Xint")] {
        let bench = Bench::new();
        let mut command = bench.foresee();
        let words = ["run", "--check", "race", "--all", "--keep", "t.fse", "--stacks", "on", "--"];
        command.env("FORESEE_JVM_AGENT", agent()).args(words);
        command.args([java, flags, "-cp"]).arg(classes()).arg("StackWalks");
        let (status, out, err) = said(&command.output().unwrap());
        assert!(status == 0 || status == 3, "{java} {flags}: {out}{err}");
        let found = compare(&bench.path("t.fse"), &format!("{java} {flags}"));
        for slot in [1, 2, 3, 4, 7] {
            let least = if slot == 7 { 2 } else { 100 };
            let count = found.get(&format!("StackWalks.path[{slot}]")).copied().unwrap_or(0);
            assert!(count >= least, "{java} {flags}: {found:?}");
        }
    }
}

#[test]
fn reports_show_the_calls_and_suppressions_see_them() {
    let check = ["--check", "race", "--format", "json"];
    let findings = |out: &str| {
        let report: serde_json::Value = serde_json::from_str(out).unwrap();
        report["analyses"][0]["findings"].as_array().unwrap().clone()
    };
    let (status, without, err) = run(&check, &["CallersRace"]);
    assert_eq!(status, 1, "{without}{err}");
    let (status, with, err) = run(&[&check[..], &["--stacks", "on"]].concat(), &["CallersRace"]);
    assert_eq!(status, 1, "{with}{err}");
    let print = |findings: &[serde_json::Value]| -> Vec<String> {
        findings.iter().map(|one| one["fingerprint"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(print(&findings(&without)), print(&findings(&with)));
    let functions: Vec<Vec<String>> = findings(&with)[0]["sites"]
        .as_array()
        .unwrap()
        .iter()
        .map(|site| {
            let frames = site["frames"].as_array().unwrap().iter();
            frames.map(|frame| frame["function"].as_str().unwrap().to_owned()).collect()
        })
        .collect();
    for caller in ["CallersRace.first", "CallersRace.second"] {
        let is_there = |frames: &Vec<String>| {
            frames[..2] == ["CallersRace.set", caller]
                && frames[2].starts_with("CallersRace.lambda$main$")
                && frames.len() == 3
        };
        assert!(functions.iter().any(is_there), "{functions:?}");
    }
    // A method further up covers the finding.
    let bench = Bench::new();
    bench.write("known.supp", "race:^CallersRace.first$ # known\n");
    let known = bench.path("known.supp");
    let known = ["--check", "race", "--suppressions", known.to_str().unwrap()];
    let (status, out, err) = run(&known, &["CallersRace"]);
    assert_eq!(status, 1, "{out}{err}");
    let (status, out, err) = run(&[&known[..], &["--stacks", "on"]].concat(), &["CallersRace"]);
    assert_eq!(status, 0, "{out}{err}");
}
