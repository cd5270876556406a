//! `foresee explore` on real programs: the classics of `testdata/explore` fail, and repaired they are covered.

#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use serde_json::Value as Json;

use crate::harness::{Bench, root, said};

/// Builds a classic; with the repair or without.
fn build(bench: &Bench, name: &str, is_repaired: bool) {
    let folder = root().join("testdata/explore");
    let (folder, define) = (folder.display(), if is_repaired { "-DREPAIRED" } else { "" });
    bench.built(&format!("cc -g -O1 -pthread {define} -o {name} {folder}/{name}.c"));
}

fn foresee(bench: &Bench, words: &str) -> (i32, String, String) {
    said(&bench.foresee().args(words.split_whitespace()).output().unwrap())
}

#[test]
fn classics_fail_and_their_schedules_can_be_replayed() {
    let bench = Bench::new();
    for (name, word) in [
        ("account", "assertion"),
        ("aba_stack", "assertion"),
        ("queue", "assertion"),
        ("timed_wait", "assertion"),
        ("lost_wakeup", "deadlock"),
        ("philosophers", "deadlock"),
    ] {
        build(&bench, name, false);
        let (status, out, err) =
            foresee(&bench, &format!("explore --runs 200 --keep {name}.kept -- ./{name}"));
        assert_eq!(status, 1, "{name}: {out} {err}");
        assert!(out.starts_with("FAILED ") && out.contains(word), "{name}: {out}");
        assert!(out.contains("replayed 3 of 3"), "{name}: {out}");
        let (status, out, err) =
            foresee(&bench, &format!("replay --quiet {name}.kept/1.schedule -- ./{name}"));
        assert_eq!(status, 1, "{name}: {out} {err}");
        assert!(out.starts_with("confirmed: "), "{name}: {out}");
        // The repaired program does not fail on that way, or cannot go it.
        build(&bench, name, true);
        let words = format!("replay --quiet --expect clean {name}.kept/1.schedule -- ./{name}");
        let (status, out, err) = foresee(&bench, &words);
        assert!(matches!(status, 0 | 3), "{name}: {status} {out} {err}");
        assert!(err.contains("another build"), "{name}: {err}");
    }
}

#[test]
fn repaired_classics_are_covered() {
    let bench = Bench::new();
    for name in ["account", "queue", "timed_wait", "lost_wakeup", "philosophers", "rw_upgrade"] {
        build(&bench, name, true);
        let (status, out, err) = foresee(&bench, &format!("explore -- ./{name}"));
        assert_eq!(status, 0, "{name}: {out} {err}");
        assert!(out.contains("Every schedule was covered"), "{name}: {out}");
    }
}

#[test]
fn loops_that_wait_are_an_assumption_or_a_limit() {
    let bench = Bench::new();
    build(&bench, "ticket_lock", true);
    let (status, out, _) = foresee(&bench, "explore --spin collapse -- ./ticket_lock");
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("told the same twice in a loop is waiting"), "{out}");
    let (status, out, _) = foresee(&bench, "explore --spin bound=1 -- ./ticket_lock");
    assert_eq!(status, 3, "{out}");
    assert!(out.starts_with("NOT ALL ") && out.contains("Loops that wait were cut"), "{out}");
}

#[test]
fn an_exploration_continues_and_tells_what_it_covered() {
    let bench = Bench::new();
    build(&bench, "aba_stack", true);
    let words = "explore --keep kept --format json --runs";
    let (status, out, err) = foresee(&bench, &format!("{words} 6 -- ./aba_stack"));
    assert_eq!(status, 3, "{out} {err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["explored"]["stopped"], "runs", "{out}");
    assert_ne!(report["explored"]["covered"], "everything", "{out}");
    let (status, out, err) = foresee(&bench, &format!("{words} 1000 -- ./aba_stack"));
    assert_eq!(status, 0, "{out} {err}");
    assert!(err.contains("kept has 6 runs"), "{err}");
    let report: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(report["explored"]["covered"], "everything", "{out}");
    // Another program cannot use it, and that is said.
    build(&bench, "queue", true);
    let (status, _, err) = foresee(&bench, &format!("{words} 1000 -- ./queue"));
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("void"), "{err}");
}

#[test]
fn what_cannot_be_explored_is_refused() {
    let bench = Bench::new();
    for (words, message) in [
        ("explore -- /bin/true", "was not built for capture"),
        ("explore -- ./missing", "there is no program `./missing`"),
        ("explore --spin often -- /bin/true", "--spin is `collapse` or `bound=N`"),
        ("explore --budget soon -- /bin/true", "--budget is a time such as 60s"),
    ] {
        let (status, _, err) = foresee(&bench, words);
        assert_eq!(status, 2, "{words}: {err}");
        assert!(err.contains(message), "{words}: {err}");
    }
    let cut = bench.write("cut.schedule", "foresee-explored-schedule 1\nthread 0\nstep 0\n");
    let (status, _, err) = foresee(&bench, &format!("replay {} -- /bin/true", cut.display()));
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("cut off"), "{err}");
}

/// Code without hooks may share memory that no schedule knows of.
#[test]
fn a_program_that_is_captured_in_part_is_not_covered() {
    let bench = Bench::new();
    bench.write("part.c", "static int n; void bump(void) { n++; }\n");
    bench.write(
        "main.c",
        "#include <pthread.h>\nvoid bump(void);\nstatic void *f(void *p) { bump(); return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); bump(); return pthread_join(t, 0); }\n",
    );
    let plain = std::process::Command::new("cc")
        .args(["-g", "-c", "part.c"])
        .current_dir(bench.dir.path())
        .status();
    assert!(plain.unwrap().success());
    bench.built("cc -g -pthread -o program main.c part.o");
    let (status, out, err) = foresee(&bench, "explore -- ./program");
    assert_eq!(status, 3, "{out} {err}");
    assert!(out.starts_with("NOT ALL ") && out.contains("not built for capture"), "{out}");
}
