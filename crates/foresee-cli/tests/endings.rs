//! How programs end: failures, threads that have not run, hangs, and what was loaded along the way.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::Command;

use crate::harness::{Bench, root};
use foresee_testkit::tools::compilers;

/// `./program` is one of those in `testdata/programs`.
fn built(source: &str) -> Bench {
    let bench = Bench::new();
    bench.built(&format!("cc -w -o program {}", program(source)));
    bench
}

fn program(source: &str) -> String {
    root().join("testdata/programs").join(source).display().to_string()
}

/// The same, built by both compilers, with and without optimisation.
fn each_way(source: &str) -> impl Iterator<Item = (String, Bench)> {
    let ways = compilers().into_iter().flat_map(|[c, _]| ["-O0", "-O2"].map(|level| (c, level)));
    ways.map(move |(c, level)| {
        let bench = Bench::new();
        bench.built(&format!("cc -- {c} {level} -w -pthread -o program {}", program(source)));
        (format!("{source} with {c} {level}"), bench)
    })
}

/// Threads that no thread waits for get to run, and are reported if they do not end.
#[test]
fn main_returns_without_joining() {
    for (how, bench) in each_way("early_exit.c") {
        let (status, out, err) = bench.run("-- ./program");
        assert_eq!((status, err.as_str()), (1, ""), "{how}\n{out}");
        assert!(out.contains("PREDICTED race") && out.contains("early_exit.c:4"), "{how}\n{out}");
    }
    let bench = Bench::new();
    bench.write(
        "endless.c",
        "#include <pthread.h>\n#include <unistd.h>\nint shared;\n\
         static void *work(void *p) { shared = 1; for (;;) pause(); return p; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); return 0; }\n",
    );
    bench.built("cc endless.c -o program");
    let (status, out, err) = bench.run("-- ./program");
    assert_eq!((status, err.as_str()), (3, ""), "{out}");
    assert!(out.contains("T1 had not ended when the program did"), "{out}");
}

#[test]
fn a_failing_program_is_a_finding() {
    for (how, bench) in each_way("exit_status_swallowed.c") {
        let (status, out, err) = bench.run("-- ./program");
        assert_eq!(status, 1, "{how}\n{out}{err}");
        assert!(out.contains("OBSERVED program-failure"), "{how}\n{out}");
        assert!(out.contains("ended with exit status 7"), "{how}\n{out}");
        let (status, out, _) = bench.run("--ignore-program-failure -- ./program");
        assert_eq!(status, 0, "{how}\n{out}");
    }
    let bench = built("exit_status_swallowed.c");
    let (status, out, _) = bench.run("--format json -- ./program");
    assert_eq!(status, 1);
    assert!(
        out.contains(r#""name":"program-failure""#) && out.contains(r#""observed":1"#),
        "{out}"
    );
    // This also holds for a program that was not built for capture.
    let (status, out, _) = bench.run("-- false");
    assert_eq!(status, 1, "{out}");
    assert!(out.contains("OBSERVED program-failure"), "{out}");
}

#[test]
fn failures_have_places() {
    let bench = Bench::new();
    for (body, says) in [
        ("exit(3);", "the call of exit: end.c:9"),
        ("abort();", "the call of abort: end.c:9"),
        ("assert(n == 5);", "the assertion that failed: end.c:9"),
        ("*(volatile int *)0 = n;", "the instruction that failed: end.c:9"),
        ("volatile int zero = 0; n = 77 / zero;", "the instruction that failed: end.c:9"),
        ("raise(SIGTERM);", "the call of raise: end.c:9"),
    ] {
        bench.write(
            "end.c",
            &format!(
                "#include <assert.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n\
                 static volatile int n;\n\
                 static void *work(void *p)\n{{\n    n++;\n    {body}\n    return p;\n}}\n\
                 int main(void) {{ pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); return 0; }}\n"
            ),
        );
        bench.built("cc -w end.c -o program");
        let (status, out, err) = bench.run("-- ./program");
        assert_eq!(status, 1, "{body}\n{out}{err}");
        assert!(out.contains(says) && out.contains("thread: T1"), "{body}\n{out}{err}");
    }
}

#[test]
fn a_deadlock_that_happened_is_observed_and_ended() {
    for (how, bench) in each_way("observed_deadlock.c") {
        a_deadlock_is_told(&how, &bench);
    }
    let bench = built("observed_deadlock.c");
    a_deadlock_is_told("observed_deadlock.c", &bench);
    // Stored traces keep it, in every format.
    for format in ["std", "rr", "jsonl", "native"] {
        let to = format!("t.{format}");
        let mut convert = bench.foresee();
        convert.args(["trace", "convert", "t.fse", "--to", format, "-o", &to]);
        // That it was cut short is reported again.
        assert_eq!(convert.output().unwrap().status.code(), Some(3), "{format}");
        let check = bench.foresee().args(["check", &to, "--check", "deadlock"]).output().unwrap();
        let out = crate::harness::text(&check.stdout);
        assert!(out.contains("T1 and T2 wait for each other forever"), "{format}\n{out}");
    }
}

fn a_deadlock_is_told(how: &str, bench: &Bench) {
    let (status, out, err) = bench.run("--keep t.fse -- ./program");
    assert_eq!(status, 1, "{how}\n{out}{err}");
    for says in [
        "program hung: all its threads waited",
        "OBSERVED deadlock",
        "T1 and T2 wait for each other forever",
        "T1: has a, taken by event",
        "T2: has b, taken by event",
        "waits for b, event",
        "main: waits for the end of T1",
    ] {
        assert!(out.contains(says), "{how}: {says}\n{out}{err}");
    }
    assert!(!out.contains("no deadlock is possible"), "{how}\n{out}");
}

#[test]
fn every_kind_of_hang_is_ended_and_told() {
    let bench = built("stuck.c");
    for (how, says) in [
        ("self", "T1 waits for itself forever"),
        ("kept", "T1 has ended without releasing what it wants"),
        ("cond", "waits forever"),
        ("sem", "waits forever"),
        ("barrier", "waits forever"),
        ("join", "T1 and T2 wait for each other forever"),
    ] {
        let (status, out, err) = bench.run(&format!("-- ./program {how}"));
        assert_eq!(status, 1, "{how}\n{out}{err}");
        assert!(out.contains("hung: all its threads waited"), "{how}\n{out}{err}");
        assert!(out.contains("OBSERVED deadlock") && out.contains(says), "{how}\n{out}{err}");
        assert!(!out.contains("no deadlock is possible"), "{how}\n{out}");
    }
}

#[test]
fn whoever_can_be_woken_from_outside_does_not_hang() {
    let bench = built("patient.c");
    for how in ["timed", "signal", "process"] {
        let (status, out, err) = bench.run(&format!("--check deadlock -- ./program {how}"));
        assert!([0, 3].contains(&status), "{how}: {status}\n{out}{err}");
        assert!(!out.contains("hung") && !err.contains("hung"), "{how}\n{out}{err}");
    }
}

#[test]
fn a_lock_kept_to_the_end_is_predicted() {
    for (how, bench) in each_way("lock_kept_pass.c") {
        let (status, out, err) = bench.run("-- ./program");
        assert_eq!((status, err.as_str()), (1, ""), "{how}\n{out}");
        for says in [
            "PREDICTED deadlock",
            "T2 can wait forever for x at",
            "T1 can end before that without releasing it",
        ] {
            assert!(out.contains(says), "{how}: {says}\n{out}");
        }
    }
}

#[test]
fn a_plugin_without_hooks_counts_as_a_module() {
    let bench = built("dlopen_main.c");
    for flags in ["", "-O2"] {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(bench.dir.path()).args(["-shared", "-fPIC", "-o", "plug.so"]);
        gcc.args(flags.split_whitespace()).arg(program("dlopen_plug.c"));
        assert!(gcc.status().unwrap().success());
        let (status, out, err) = bench.run("-- ./program ./plug.so");
        assert_eq!(status, 3, "{out}{err}");
        assert!(out.contains("not built for capture: plug.so"), "{out}{err}");
    }
    bench.built(&format!("cc -shared -fPIC -o hooked.so {}", program("dlopen_plug.c")));
    let (status, out, err) = bench.run("-- ./program ./hooked.so");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("PREDICTED race") && out.contains("captured 2 of 2 modules"), "{out}");
    // Also if it is gone before the program ends.
    bench.write(
        "closes.c",
        "#include <dlfcn.h>\nint main(void) { void *h = dlopen(\"./plug.so\", RTLD_NOW); return dlclose(h); }\n",
    );
    bench.built("cc closes.c -o closes -ldl");
    let (status, out, err) = bench.run("-- ./closes");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("not built for capture: plug.so"), "{out}{err}");
}

/// The same seed makes the same schedule; other seeds make others, and what they show is merged.
#[test]
fn runs_are_varied_and_merged() {
    let bench = Bench::new();
    bench.write(
        "lazy.c",
        "#include <assert.h>\n#include <pthread.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\nstatic int one, other, first, racy;\n\
         static void *add(void *p) { pthread_mutex_lock(&m); if (!first) first = p == &one ? 1 : 2;\n\
         pthread_mutex_unlock(&m); racy++; return p; }\n\
         int main(void) { pthread_t t[2]; pthread_create(&t[0], 0, add, &one);\n\
         pthread_create(&t[1], 0, add, &other);\n\
         for (int i = 0; i < 2; i++) pthread_join(t[i], 0); assert(first == 1); return 0; }\n",
    );
    bench.built("cc lazy.c -o program");
    let (status, out, err) = bench.run("--runs 12 --seed 5 --keep t.fse -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("./program (12 runs)"), "{out}");
    assert!(out.contains("OBSERVED program-failure") && out.contains("PREDICTED race"), "{out}");
    let shown = out.lines().filter(|line| line.contains("of 12 show it; this is from --seed"));
    assert!(shown.count() >= 2, "{out}");
    assert!(bench.path("t.fse").exists() && bench.path("t.run12.fse").exists());
    let (status, out, err) = bench.run("--seed 5 -- ./program");
    assert_eq!(status, 1, "{out}{err}");
    assert!(out.contains("the schedule came from --seed 5"), "{out}");
}
