//! Programs without a specification: captured for real, again and again, and always the same answer.
//! None of them goes wrong when it is run; `field/checks` shows what other tools say of them.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");

/// How often each program is run.
const RUNS: usize = 20;

fn foresee(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(FORESEE);
    command.current_dir(folder).args(words);
    // The same as for all other tests: the runtime in it is the same.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache");
    command.env("FORESEE_CACHE", cache).env_remove("FORESEE_CC").env_remove("FORESEE_CXX");
    command.output().unwrap()
}

/// Builds an example, runs it many times, and looks for what is predicted each time: the check
/// that found it, and words that the report has. Without these, everything is proved to be fine.
fn always(example: &str, source: &str, printed: &str, found: Option<(&str, &[&str])>) {
    let folder = TempDir::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let source = root.join("examples").join(example).join(source);
    let build = ["cc", "-Wall", "-Werror", "-o", "program", source.to_str().unwrap()];
    let built = foresee(folder.path(), &build);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for run in 0..RUNS {
        let output = foresee(folder.path(), &["run", "--", "./program"]);
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        let how = format!("{example}, run {run}:\n{out}{err}");
        assert!(out.starts_with(printed), "{how}");
        assert!(!out.contains("OBSERVED "), "{how}");
        let predicted: Vec<&str> =
            out.lines().filter_map(|line| line.trim_start().strip_prefix("PREDICTED ")).collect();
        match found {
            None => {
                assert_eq!((output.status.code(), predicted.len()), (Some(0), 0), "{how}");
                assert!(
                    out.contains("as long as every thread reads what it read in this run"),
                    "{how}"
                );
            }
            Some((check, words)) => {
                assert_eq!(output.status.code(), Some(1), "{how}");
                assert!(!predicted.is_empty(), "{how}");
                assert!(predicted.iter().all(|line| line.starts_with(check)), "{how}");
                assert!(words.iter().all(|word| out.contains(word)), "{how}");
            }
        }
    }
}

/// Builds a program of `testdata/programs`, runs it a few times, and looks for the exit status and for
/// words in the JSON report.
fn answers(program: &str, status: i32, words: &[&str], absent: &[&str]) {
    let folder = TempDir::new().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let source = root.join("testdata/programs").join(program);
    for level in ["-O0", "-O2"] {
        let build = ["cc", level, "-g", "-o", "program", source.to_str().unwrap()];
        let built = foresee(folder.path(), &build);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        for _ in 0..3 {
            let run = ["run", "--format", "json", "--", "./program"];
            let output = foresee(folder.path(), &run);
            let out = String::from_utf8_lossy(&output.stdout);
            let how =
                format!("{program} {level}:\n{out}{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(status), "{how}");
            assert!(words.iter().all(|word| out.contains(word)), "{how}");
            assert!(!absent.iter().any(|word| out.contains(word)), "{how}");
        }
    }
}

#[test]
fn a_read_may_have_seen_another_write_of_the_same_value() {
    let words =
        ["\"kind\":\"predicted\"", "writes y", "same_value_race.c:7", "same_value_race.c:12"];
    answers("same_value_race.c", 1, &words, &["conditional"]);
}

#[test]
fn what_only_a_read_keeps_apart_is_conditional() {
    let words = [
        "\"kind\":\"conditional\"",
        "if balance were read as 100 at",
        "T1 and T2 could wait for each other forever",
        "as long as every thread reads what it read in this run",
        "\"summary\":{\"observed\":0,\"predicted\":0,\"conditional\":1}",
    ];
    answers("conditional_deadlock.c", 3, &words, &["\"kind\":\"predicted\""]);
    let words = ["\"kind\":\"conditional\"", "if n were read as 0 at", "it could be that"];
    answers("counted_race.c", 3, &words, &["\"kind\":\"predicted\""]);
}

#[test]
fn a_hand_over_hangs_on_nothing() {
    let words = ["as long as every thread reads what it read in this run"];
    answers("late_hand_over.c", 0, &words, &["conditional"]);
}

#[test]
fn a_counter_without_a_lock() {
    always(
        "racy-counter",
        "counter.c",
        "counted to 2",
        Some(("race", &["counter", "counter.c:10"])),
    );
}

#[test]
fn a_race_behind_critical_sections_that_have_nothing_to_do_with_it() {
    always("hidden-race", "result.c", "result 42", Some(("race", &["result"])));
}

#[test]
fn locks_in_opposite_orders() {
    let words = ["alice.lock", "bob.lock", "transfer.c:17"];
    always("lock-inversion", "transfer.c", "100 and 100", Some(("deadlock", &words)));
}

#[test]
fn three_philosophers() {
    let words = ["forks[0]", "forks[1]", "forks[2]", "dinner.c:16"];
    always("philosophers", "dinner.c", "3 meals", Some(("deadlock", &words)));
}

#[test]
fn a_notification_that_can_come_too_early() {
    always("lost-wakeup", "job.c", "done", Some(("deadlock", &["job.c:21", "job.c:12"])));
}

#[test]
fn a_wait_that_a_flag_guards() {
    always("guarded-wait", "job.c", "done", None);
}

#[test]
fn an_update_that_can_be_lost() {
    always("lost-update", "account.c", "balance 500", Some(("atomicity", &["balance", "deposit"])));
}

#[test]
fn a_check_and_an_act_apart() {
    always("check-then-act", "shop.c", "0 left", Some(("atomicity", &["stock", "sell"])));
}

#[test]
fn opposite_orders_under_a_third_lock() {
    always("guarded-locks", "transfer.c", "1 and 1", None);
}

#[test]
fn a_correct_hand_over() {
    always("hand-over", "message.c", "received 42", None);
}
