//! The examples run, and say what they promise.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `cargo test` builds the examples beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn run(name: &str, arguments: &[&str]) -> Output {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(example(name)).args(arguments).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_trace_in_a_file_is_predicted_from() {
    let arguments = ["examples/landing/landing.std", "examples/landing/landing.spec"];
    let output = run("predict", &arguments);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("PREDICTED safe_landing"), "{}", text(&output));
    let without = run("predict", &[]);
    assert!(!without.status.success() && text(&without).contains("usage"), "{}", text(&without));
}

#[test]
fn a_program_is_recorded() {
    let output = run("record", &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("overlap"), "{}", text(&output));
}

#[test]
fn a_monitor_of_ones_own_predicts() {
    let output = run("monitor", &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("PREDICTED one_job"), "{}", text(&output));
    let source = include_str!("../examples/monitor.rs");
    let own = source.split("fn main").next().unwrap();
    let lines = own.split("/// At most").nth(1).unwrap().lines().count();
    assert!(lines <= 30, "the monitor has {lines} lines");
}
