//! Predicted findings are seen to happen in the program: `foresee run --confirm`, `--schedules` and `foresee replay`.
//!
//! `FORESEE_PROGRAMS=1000` tries as many random programs; without it there are a few. `field/replay` repeats every example.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // A helper that fails is a test that fails; `field/replay` shows what is said.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::fs;
use std::path::PathBuf;

use serde_json::Value as Json;

use crate::harness::{Bench, root, said, text};

/// A program that deadlocks if its threads meet.
pub(crate) const RING: &str = "#include <pthread.h>\n\
    static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;\n\
    static void *one(void *p) { pthread_mutex_lock(&a); pthread_mutex_lock(&b);\n\
      pthread_mutex_unlock(&b); pthread_mutex_unlock(&a); return p; }\n\
    static void *two(void *p) { pthread_mutex_lock(&b); pthread_mutex_lock(&a);\n\
      pthread_mutex_unlock(&a); pthread_mutex_unlock(&b); return p; }\n\
    int main(void) { pthread_t s, t; pthread_create(&s, 0, one, 0); pthread_join(s, 0);\n\
      pthread_create(&s, 0, one, 0); pthread_create(&t, 0, two, 0);\n\
      pthread_join(s, 0); pthread_join(t, 0); return 0; }\n";

/// The findings of the reports on all processes of a program, each with its rule and its label.
pub(crate) fn findings(reports: &str) -> Vec<Json> {
    let mut found = Vec::new();
    for report in serde_json::Deserializer::from_str(reports).into_iter::<Json>() {
        for one in report.expect("a report")["analyses"].as_array().unwrap() {
            found.extend(one["findings"].as_array().unwrap().iter().cloned());
        }
    }
    found
}

/// Runs a program with `--confirm`; its predicted findings.
pub(crate) fn confirmed(bench: &Bench, words: &str) -> Vec<Json> {
    let (status, _, err) = bench.run(&format!("--confirm --format json -o report.json {words}"));
    assert!(matches!(status, 0 | 1 | 3), "{words}: {status} {err}");
    let found = findings(&fs::read_to_string(bench.path("report.json")).unwrap());
    found.into_iter().filter(|finding| finding["kind"] == "predicted").collect()
}

pub(crate) fn label(finding: &Json) -> String {
    format!("{}: {} ({})", finding["rule"], finding["confirmation"], finding["confirmed_how"])
}

/// The examples that are programs in C or C++: source, and specification if there is one.
fn examples() -> Vec<(String, PathBuf, Option<PathBuf>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(files) = fs::read_dir(&folder) else { continue };
        let files = files.map(|file| file.unwrap().path());
        let is_source = |path: &PathBuf| path.extension().is_some_and(|e| e == "c" || e == "cc");
        let Some(source) = files.into_iter().find(is_source) else { continue };
        let spec = Some(source.with_extension("spec")).filter(|spec| spec.exists());
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        found.push((name, source, spec));
    }
    found.sort();
    assert!(found.len() > 15);
    found
}

#[test]
fn every_predicted_finding_of_every_example_happens() {
    let bench = Bench::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, source, spec) in examples() {
        let word = if source.extension().unwrap() == "cc" { "c++" } else { "cc" };
        bench.built(&format!("{word} -g -o {name} {}", source.display()));
        let spec = spec.map_or(String::new(), |spec| format!("--spec {}", spec.display()));
        for finding in confirmed(&bench, &format!("{spec} -- ./{name}")) {
            count += 1;
            let how = finding["confirmed_how"].as_str().unwrap();
            if finding["confirmation"] != "confirmed" || !how.starts_with("the violation happened")
            {
                wrong.push(format!("{name}: {}", label(&finding)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count >= 15, "{count} findings");
}

#[test]
fn every_predicted_finding_of_the_conformance_programs_happens() {
    let bench = Bench::new();
    let (mut wrong, mut with_findings) = (Vec::new(), 0);
    for entry in fs::read_dir(root().join("agents/conformance/c")).unwrap() {
        let source = entry.unwrap().path();
        let word = match source.extension().and_then(|end| end.to_str()) {
            Some("c") => "cc",
            Some("cpp") => "c++",
            _ => continue,
        };
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        // `field/replay` has the programs with loops in full length.
        bench.built(&format!("{word} -g -pthread -DROUNDS=300 -o program {}", source.display()));
        let found = confirmed(&bench, "--confirm-time 120 -- ./program");
        with_findings += usize::from(!found.is_empty());
        let others = found.iter().filter(|finding| finding["confirmation"] != "confirmed");
        wrong.extend(others.map(|finding| format!("{name}: {}", label(finding))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(with_findings >= 3, "{with_findings} programs have findings");
}

#[test]
fn a_schedule_is_replayed_and_its_differences_are_named() {
    let bench = Bench::new();
    let source = root().join("examples/landing/landing.c");
    let spec = root().join("examples/landing/landing.spec");
    bench.built(&format!("cc -g -o landing {}", source.display()));
    let run = format!("--spec {} --schedules schedules -- ./landing", spec.display());
    let (status, out, err) = bench.run(&run);
    assert_eq!(status, 1, "{out}{err}");
    // The command that the report names, as it was typed.
    let command = format!("; replay: foresee run --confirm {run}\n");
    assert!(out.contains(&command), "{out}");
    let replay = |words: &str| {
        said(&bench.foresee().arg("replay").args(words.split_whitespace()).output().unwrap())
    };
    let (status, out, err) = replay("schedules/1.schedule -- ./landing");
    assert_eq!(status, 1, "{out}{err}");
    assert!(
        out.contains("confirmed: the violation happened; every step was as predicted"),
        "{out}"
    );
    let (status, _, err) = replay("schedules/1.schedule --trace --expect confirmed -- ./landing");
    assert_eq!(status, 0, "{err}");
    assert!(err.contains("(watch_radio)"), "{err}");
    assert_eq!(replay("schedules/1.schedule --expect clean -- ./landing").0, 1);
    let (_, out, err) = replay("schedules/1.schedule --format json --quiet -- ./landing");
    let told: serde_json::Value =
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e} {out}"));
    assert_eq!(told["confirmation"], "confirmed", "{out}{err}");
    assert_eq!(replay("schedules/1.schedule --format sarif -- ./landing").0, 2);
    // The observed order is followed as well, and nothing is wrong with it.
    let (status, out, err) = replay("schedules/observed.schedule -- ./landing");
    assert_eq!(status, 0, "{out}{err}");
    assert!(out.contains("followed the schedule to its end"), "{out}");

    let schedule = fs::read_to_string(bench.path("schedules/1.schedule")).unwrap();
    // Another build: the code has moved, in the file and in the source.
    let edited = fs::read_to_string(&source).unwrap();
    let edited = edited.replacen(
        "int landing",
        "static int more;\nint unused(int n) { more = n; return more + 1; }\nint landing",
        1,
    );
    bench.write("landing.c", &edited);
    bench.built("cc -g -o moved landing.c");
    let (status, out, err) = replay("schedules/1.schedule -- ./moved");
    assert_eq!(status, 1, "{out}{err}");
    assert!(err.contains("another build"), "{err}");
    assert!(out.contains("threads changed as predicted"), "{out}");
    // Repaired: the line of a step is not there any more.
    let repaired = edited.replace("if (approved)", "if (approved && radio)");
    assert_ne!(repaired, edited);
    bench.write("landing.c", &repaired);
    bench.built("cc -g -o repaired landing.c");
    let (status, out, err) = replay("schedules/1.schedule --expect clean -- ./repaired");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("has no such step") && out.contains("refutes nothing"), "{out}");
    // Cut off.
    let cut = schedule.lines().take(12).collect::<Vec<_>>().join("\n");
    bench.write("cut.schedule", &cut);
    let (status, _, err) = replay("cut.schedule -- ./landing");
    assert!(status == 2 && err.contains("cut off"), "{status} {err}");
    // Edited: another thread, another value, a step that never comes.
    bench.write("edited.schedule", &schedule.replace("value=1", "value=7"));
    let (status, out, err) = replay("edited.schedule -- ./landing");
    // The order is right, and only values are wrong: the changes of threads alone show the failure.
    assert!(status == 1 && out.contains("threads changed as predicted"), "{status} {out}{err}");
    let is_it = |line: &&str| line.starts_with("step") && line.contains("watch_radio");
    let step = schedule.lines().find(is_it).unwrap();
    bench.write("edited.schedule", &schedule.replace(step, &step.replace("write4", "free")));
    let (status, out, err) = replay("edited.schedule -- ./landing");
    assert_eq!(status, 3, "{out}{err}");
    assert!(out.contains("diverged: at step") && out.contains("expected 0.2 (T2): free"), "{out}");
    assert!(out.contains("refutes nothing"), "{out}");
    // A schedule of another program, of no program, of one that was not built for capture.
    let (status, out, _) = replay("schedules/1.schedule -- /bin/true");
    assert!(status == 3 && out.starts_with("not forced: the program was not built"), "{out}");
    let (status, _, err) = replay("schedules/1.schedule -- ./missing");
    assert!(status == 2 && err.contains("there is no program"), "{err}");
    let (status, _, err) = replay("schedules/1.schedule -- ./landing more");
    assert!(status == 1 && err.contains("the arguments differ"), "{err}");
    // No schedule at all.
    let (status, _, err) = replay("landing -- ./landing");
    assert!(status == 2 && err.contains("is not a schedule"), "{err}");
}

#[test]
fn a_fixed_program_cannot_be_made_to_fail() {
    let bench = Bench::new();
    bench.write("ring.c", RING);
    bench.built("cc -g -o ring ring.c");
    let found = confirmed(&bench, "--schedules schedules -- ./ring");
    assert_eq!(found.len(), 1, "{found:?}");
    let how = label(&found[0]);
    assert!(how.contains("hung") && how.contains("\"confirmed\""), "{how}");
    // The same places, and the same order of locks in both threads.
    let fixed = RING.replace(
        "two(void *p) { pthread_mutex_lock(&b); pthread_mutex_lock(&a);",
        "two(void *p) { pthread_mutex_lock(&a); pthread_mutex_lock(&b);",
    );
    assert_ne!(fixed, RING);
    bench.write("fixed.c", &fixed);
    bench.built("cc -g -o ring fixed.c");
    let words = ["replay", "schedules/1.schedule", "--expect", "clean", "--", "./ring"];
    let (status, out, err) = said(&bench.foresee().args(words).output().unwrap());
    assert!(matches!(status, 0 | 3), "{status} {out}{err}");
    assert!(err.contains("another build"), "{err}");
    assert!(!out.contains("confirmed:"), "{out}");
}

#[test]
fn programs_that_fork_or_exec_are_followed_in_their_first_process() {
    let bench = Bench::new();
    let forks = "#include <pthread.h>\n#include <unistd.h>\n#include <sys/wait.h>\nint x;\n\
        static void *work(void *p) { x++; return p; }\n\
        int main(int n, char **v) { pthread_t s, t;\n\
          if (n > 1) { pid_t c = fork(); if (!c) execl(v[0], v[0], (char *)0); waitpid(c, 0, 0); }\n\
          pthread_create(&s, 0, work, 0); pthread_create(&t, 0, work, 0);\n\
          pthread_join(s, 0); pthread_join(t, 0); return 0; }\n";
    bench.write("forks.c", forks);
    bench.built("cc -g -o forks forks.c");
    let found = confirmed(&bench, "-- ./forks also");
    let labels: Vec<String> = found.iter().map(label).collect();
    assert!(labels.iter().any(|label| label.contains("\"confirmed\"")), "{labels:?}");
    // A process that the program started is not controlled, and that is said.
    let is_said = |label: &String| label.contains("confirmed") || label.contains("process");
    assert!(labels.iter().all(is_said), "{labels:?}");
    let left = std::process::Command::new("pgrep").arg("-f").arg(bench.path("forks")).output();
    if let Ok(left) = left {
        assert_eq!(text(&left.stdout), "");
    }
}

/// A random number, from a seed that it changes.
fn below(seed: &mut u64, n: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) % n
}

/// A few statements of a random thread.
fn statements(seed: &mut u64, depth: u64) -> String {
    let mut text = String::new();
    for _ in 0..1 + below(seed, 3) {
        let (x, y, k) = (below(seed, 3), below(seed, 3), below(seed, 4));
        text += &match below(seed, 8) {
            0 => format!("v[{x}] = {k};"),
            1 => format!("v[{x}] = v[{y}] + {k};"),
            2 => format!("if (v[{x}] > {k}) v[{y}]++;"),
            3 => format!("atomic_fetch_add(&c[{x}], {k});"),
            4 => format!("if (atomic_load(&c[{x}]) == {k}) v[{y}] = {k};"),
            5 | 6 if depth < 2 => {
                let inner = statements(seed, depth + 1);
                let lock = (x + depth) % 2;
                // Not recursive: each depth takes another lock of its own pair.
                let lock = if depth == 0 { lock } else { 1 - lock };
                format!(
                    "{{ int l = {lock}; if (pthread_mutex_trylock(&m[{depth}][l]) == 0) {{ {inner} pthread_mutex_unlock(&m[{depth}][l]); }} }}"
                )
            }
            _ if depth == 0 => {
                let (first, second) = if k % 2 == 0 { (0, 1) } else { (1, 0) };
                let inner = format!("v[{x}] += v[{y}];");
                format!(
                    "pthread_mutex_lock(&n[{first}]); pthread_mutex_lock(&n[{second}]); {inner} pthread_mutex_unlock(&n[{second}]); pthread_mutex_unlock(&n[{first}]);"
                )
            }
            _ => format!("v[{x}]--;"),
        };
        text.push('\n');
    }
    text
}

/// Random programs in one file; the argument selects one. They end, unless they deadlock.
fn random_programs(count: u64) -> String {
    let mut text = "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n\
        static int v[3], ready; static atomic_int c[3]; static pthread_mutex_t m[2][2] = {\n\
        {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}, {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}},\n\
        n[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER}, g = PTHREAD_MUTEX_INITIALIZER;\n\
        static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;\n"
        .to_owned();
    let mut table = String::new();
    for program in 0..count {
        let seed = &mut (program * 7919 + 17);
        let is_waiting = below(seed, 3) == 0;
        for thread in 0..3 {
            let body = statements(seed, 0);
            let (before, after) = match (is_waiting, thread) {
                (true, 0) => (
                    "pthread_mutex_lock(&g); while (!ready) pthread_cond_wait(&woken, &g); pthread_mutex_unlock(&g);",
                    "",
                ),
                (true, 1) => (
                    "",
                    "pthread_mutex_lock(&g); ready = 1; pthread_cond_signal(&woken); pthread_mutex_unlock(&g);",
                ),
                _ => ("", ""),
            };
            text += &format!(
                "static void *p{program}_{thread}(void *a) {{ {before}\n{body}{after} return a; }}\n"
            );
        }
        table += &format!("{{p{program}_0, p{program}_1, p{program}_2}},\n");
    }
    text += &format!(
        "static void *(*all[][3])(void *) = {{ {table} }};\n\
         int main(int argc, char **argv) {{ pthread_t t[3]; int p = argc > 1 ? atoi(argv[1]) : 0;\n\
         for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, all[p][i], 0);\n\
         for (int i = 0; i < 3; i++) pthread_join(t[i], 0); return 0; }}\n"
    );
    text
}

/// What is predicted of random programs happens, nearly always, and what does not has a reason.
#[test]
fn what_is_predicted_of_random_programs_happens() {
    let count = std::env::var("FORESEE_PROGRAMS").map_or(12, |n| n.parse().expect("a number"));
    let bench = Bench::new();
    bench.write("random.c", &random_programs(count));
    bench.built("cc -g -o random random.c");
    let (mut all, mut yes, mut others) = (0, 0, Vec::new());
    for program in 0..count {
        for finding in confirmed(&bench, &format!("--confirm-time 600 -- ./random {program}")) {
            all += 1;
            let how = finding["confirmed_how"].as_str().unwrap().to_owned();
            match finding["confirmation"].as_str().unwrap() {
                // Only the monitors and checks decide.
                "confirmed" => {
                    assert!(how.starts_with("the violation happened"), "{program}: {how}");
                    yes += 1;
                }
                word => {
                    assert!(!how.is_empty());
                    others.push(format!("{program} {}: {word}: {how}", finding["rule"]));
                }
            }
        }
    }
    println!("{count} programs, {all} findings, {yes} confirmed");
    others.iter().for_each(|other| println!("  {other}"));
    assert!(all > 0 && yes * 100 >= all * 90, "{yes} of {all}: {others:#?}");
}
