//! `foresee replay --debug` and `--step`, stacks of deadlocks, and what programs say of their own failures.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value as Json;

use crate::harness::{Bench, root, said};
use crate::replay::RING;
use foresee_testkit::tools::need;

/// A folder with the landing example and the schedule of its finding.
fn landing() -> Bench {
    let bench = Bench::new();
    let source = root().join("examples/landing/landing.c");
    let spec = root().join("examples/landing/landing.spec");
    bench.built(&format!("cc -g -o landing {}", source.display()));
    let run = format!("--spec {} --schedules schedules -- ./landing", spec.display());
    assert_eq!(bench.run(&run).0, 1);
    bench
}

fn replay(bench: &Bench, words: &[&str]) -> (i32, String, String) {
    let mut command = bench.foresee();
    said(&command.arg("replay").args(words).stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_debugger_stands_at_the_violating_step() {
    let bench = landing();
    need("gdb", "gdb");
    let gdb = "gdb -batch -ex \"info threads\" -ex bt -ex \"print landing\"";
    let words = ["schedules/1.schedule", "--debug", "--debugger", gdb, "--", "./landing"];
    let (status, out, err) = replay(&bench, &words);
    let all = format!("{out}{err}");
    // All three threads are there, with the names of the report, and the step has not been taken.
    for name in ["\"main\"", "\"T1\"", "\"T2\""] {
        assert!(all.contains(name), "{name}: {all}");
    }
    assert!(all.contains("control (") && all.contains("landing.c:17"), "{all}");
    assert!(all.contains("$1 = 0"), "{all}");
    // Then the program goes on.
    assert_eq!(status, 1, "{all}");
    assert!(out.contains("confirmed: the violation happened"), "{all}");
    // Another step: the radio still works.
    let step = fs::read_to_string(bench.path("schedules/1.schedule")).unwrap();
    let steps = step.lines().filter(|line| line.starts_with("step "));
    let at = steps.into_iter().position(|line| line.contains("watch_radio")).unwrap() + 1;
    let gdb = "gdb -batch -ex \"print radio\"";
    let (at, path) = (at.to_string(), "schedules/1.schedule");
    let words = [path, "--debug", "--step", &at, "--debugger", gdb, "--", "./landing"];
    let (status, out, err) = replay(&bench, &words);
    assert!(status == 1 && out.contains("$1 = 1") && out.contains("watch_radio ("), "{out}{err}");
    // A debugger that does not let the program continue leaves nothing running.
    let words = [path, "--debug", "--debugger", "true", "--", "./landing"];
    let (status, _, err) = replay(&bench, &words);
    assert!(status == 2 && err.contains("without letting the program continue"), "{status} {err}");
    let words = [path, "--debug", "--debugger", "no-such-debugger", "--", "./landing"];
    let (status, _, err) = replay(&bench, &words);
    assert!(status == 2 && err.contains("there is no debugger `no-such-debugger`"), "{err}");
}

/// lldb is given its own commands. gdb does what they say here, because tests do not install both.
#[test]
fn lldb_is_told_what_gdb_is() {
    need("gdb", "gdb");
    let bench = landing();
    let release = "gdb -batch -p \"$2\" -ex 'set variable *(int *)&foresee_held = 0'";
    bench.write(
        "lldb",
        &format!("#!/bin/sh\necho \"$@\" > words; cp \"$4\" told; exec {release}\n"),
    );
    fs::set_permissions(bench.path("lldb"), fs::Permissions::from_mode(0o755)).unwrap();
    let words =
        ["schedules/1.schedule", "--debug", "--debugger", "./lldb --more", "--", "./landing"];
    let (status, out, err) = replay(&bench, &words);
    assert!(status == 1 && out.contains("confirmed: the violation happened"), "{out}{err}");
    let words = fs::read_to_string(bench.path("words")).unwrap();
    assert!(words.starts_with("-p ") && words.contains(" --source "), "{words}");
    assert!(words.trim_end().ends_with(" --more"), "{words}");
    let told = fs::read_to_string(bench.path("told")).unwrap();
    for part in ["--name foresee_at_step", "foresee_held = 0", "== 'control'"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn a_trace_ends_at_a_step() {
    let bench = landing();
    let path = "schedules/1.schedule";
    let words = [path, "--trace", "--step", "4", "--quiet", "--", "./landing"];
    let (status, out, err) = replay(&bench, &words);
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.starts_with("held: all threads stand still before step 4 of"), "{out}");
    assert!(out.contains("  main:\n") && out.contains("  T1:\n"), "{out}");
    assert_eq!(err.lines().filter(|line| line.starts_with("0")).count(), 3, "{err}");
    for (words, problem) in [
        ([path, "--trace", "--step", "99999"], "--step is a number from 1 to"),
        ([path, "--trace", "--step", "0"], "steps are counted from 1"),
        ([path, "--quiet", "--step", "2"], "--step needs --debug or --trace"),
        (["schedules/observed.schedule", "--trace", "--debug", "--quiet"], "name one with --step"),
    ] {
        let (status, _, err) = replay(&bench, &[&words[..], &["--", "./landing"]].concat());
        assert!(status == 2 && err.contains(problem), "{problem}: {status} {err}");
    }
}

#[test]
fn a_deadlock_is_shown_with_the_stacks_of_its_threads() {
    let bench = Bench::new();
    // The locks are taken in functions that the threads call.
    let ring = RING.replace("pthread_mutex_lock(&", "take(&").replace(
        "static void *one",
        "static void take(pthread_mutex_t *m) { pthread_mutex_lock(m); }\nstatic void *one",
    );
    bench.write("ring.c", &ring);
    bench.built("cc -g -o ring ring.c");
    assert_eq!(bench.run("--schedules schedules -- ./ring").0, 1);
    let words = ["schedules/1.schedule", "--format", "json", "--", "./ring"];
    let (status, out, err) = replay(&bench, &words);
    assert_eq!(status, 1, "{out}{err}");
    let told: Json = serde_json::from_str(&out).unwrap();
    let stack = |thread: &str| {
        let stacks = told["stacks"].as_array().unwrap().iter();
        let mut mine = stacks.filter(|stack| stack["thread"] == thread);
        let frames = mine.next().map(|stack| stack["frames"].as_array().unwrap().clone());
        let frames = frames.unwrap_or_default();
        frames.iter().map(|frame| frame.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (thread, function) in [("T2", "one "), ("T3", "two ")] {
        let frames = stack(thread);
        assert!(frames.len() == 2 && frames[0].starts_with("take "), "{out}");
        assert!(frames[1].starts_with(function), "{out}");
    }
    assert!(stack("main").first().is_some_and(|frame| frame.starts_with("main ")), "{out}");
    let (_, out, _) = replay(&bench, &["schedules/1.schedule", "--", "./ring"]);
    assert!(out.contains("  T2:\n    take ring.c:3\n    one ring.c:"), "{out}");
}

/// A thread fails if another one comes first: by an overflow, an assertion or a double free. With a second letter in the
/// argument there is also an overflow in every run.
const SPOKEN: &str = "#include <assert.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
    static int parts = 1, whole = 6; static char *volatile text; static int way;\n\
    static void *resets(void *p) { usleep(20000); parts = 0; return p; }\n\
    static void *uses(void *p) {\n\
      int n = parts;\n\
      if (way == 'u') { int big = n ? 0 : 2147483647; whole = big + 1; }\n\
      if (way == 'a') assert(n == 1);\n\
      if (way == 'f' && n == 0) { free(text); free(text); }\n\
      return p; }\n\
    int main(int c, char **v) { pthread_t s, t; way = v[1][0]; text = malloc(9); (void)c;\n\
      if (v[1][1]) { int big = 2147483647; whole = big + way; }\n\
      pthread_create(&t, 0, uses, 0); pthread_create(&s, 0, resets, 0);\n\
      pthread_join(s, 0); pthread_join(t, 0); return 0; }\n";

#[test]
fn what_a_program_says_of_its_failure_is_named() {
    let bench = Bench::new();
    bench.write("spoken.c", SPOKEN);
    bench.write("spoken.spec", "pattern late: write(parts)@T2 .. read(parts)@T1\n");
    bench.built("cc -g -fsanitize=undefined -o spoken spoken.c");
    for (way, expected) in [
        ("u", "UndefinedBehaviorSanitizer: signed integer overflow"),
        ("uu", "UndefinedBehaviorSanitizer: signed integer overflow"),
        ("a", "the assertion `n == 1` failed at spoken.c:"),
        ("f", "libc: free(): double free detected in tcache 2"),
    ] {
        let run = format!("--spec spoken.spec --schedules {way} -- ./spoken {way}");
        let (status, out, err) = bench.run(&run);
        assert_eq!(status, 1, "{out}{err}");
        let schedule = format!("{way}/1.schedule");
        let words = [&*schedule, "--quiet", "--format", "json", "--", "./spoken", way];
        let (status, out, err) = replay(&bench, &words);
        assert_eq!(status, 1, "{out}{err}");
        let told: Json = serde_json::from_str(&out).unwrap();
        let said = told["said"].as_array().unwrap();
        let is_it = |message: &Json| message.as_str().unwrap().starts_with(expected);
        assert!(said.len() == 1 && is_it(&said[0]), "{way}: {out}{err}");
        assert!(told["how"].as_str().unwrap().contains(expected), "{way}: {out}");
    }
}
