//! Every primitive that capture knows is controlled by replay: for each there is a program whose predicted findings happen only
//! if it is.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::harness::{Bench, root, said};
use crate::replay::{confirmed, label};

/// Runs the programs of a source, and collects what was predicted of them and did not happen.
fn try_all(source: &str, build: &str, names: &[&str]) {
    let bench = Bench::new();
    let source = root().join("testdata/programs/replay").join(source);
    bench.built(&format!("{build} -g -o program {}", source.display()));
    let mut wrong = Vec::new();
    for name in names {
        let found = confirmed(&bench, &format!("-- ./program {name}"));
        if found.is_empty() {
            wrong.push(format!("{name}: nothing was predicted"));
        }
        let others = found.iter().filter(|finding| finding["confirmation"] != "confirmed");
        wrong.extend(others.map(|finding| format!("{name}: {}", label(finding))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn locks_semaphores_barriers_and_conditions_are_controlled() {
    let names = ["rwlock", "readers", "spin", "semaphore", "barrier", "once", "conditions"];
    try_all("primitives.c", "cc", &names);
}

#[test]
fn time_joins_and_pipes_are_controlled() {
    let names = ["timed", "tries", "joins", "sleeps", "pipe", "pairs", "standard"];
    try_all("primitives.c", "cc", &names);
}

/// That the time of a wait is over is recorded when the thread has its turn again. By then the lock may have been given back, and
/// the schedule has these two steps in that order.
#[test]
fn a_wait_whose_time_was_over_fails_although_it_could_succeed() {
    let bench = Bench::new();
    let source = root().join("testdata/programs/replay/primitives.c");
    bench.built(&format!("cc -g -o program {}", source.display()));
    for (name, gives) in
        [("late-mutex", "release"), ("late-rwlock", "release"), ("late-semaphore", "sem-post")]
    {
        let is_step = |line: &&str, thread: &str, what: &str| {
            let mut words = line.split(' ');
            words.next() == Some("step")
                && words.next() == Some(thread)
                && words.nth(1).is_some_and(|word| word.ends_with(what))
        };
        // On a busy machine the first thread may be done before the second one begins to wait.
        let run = |_| {
            let (status, out, err) = bench.run(&format!("--schedules {name} -- ./program {name}"));
            assert_eq!(status, 1, "{name}: {out} {err}");
            std::fs::read_to_string(bench.path(&format!("{name}/1.schedule"))).unwrap()
        };
        let fails = |text: &String| text.lines().any(|line| is_step(&line, "0.2", "-failed"));
        let text = (0..100).map(run).find(fails).expect(name);
        let mut lines: Vec<&str> = text.lines().collect();
        let failed = lines.iter().position(|line| is_step(line, "0.2", "-failed")).expect(name);
        let given = lines.iter().rposition(|line| is_step(line, "0.1", gives)).expect(name);
        if failed < given {
            let step = lines.remove(failed);
            lines.insert(given, step);
        }
        bench.write("late.schedule", &(lines.join("\n") + "\n"));
        let words = ["replay", "--quiet", "late.schedule", "--", "./program", name];
        let (status, out, err) = said(&bench.foresee().args(words).output().unwrap());
        assert_eq!(status, 1, "{name}: {out} {err} {text}");
        assert!(out.contains("every step was as predicted"), "{name}: {out}");
    }
}

#[test]
fn connections_are_followed() {
    try_all("descriptors.c", "cc", &["internet", "local", "epoll", "twice", "named"]);
}

#[test]
fn waits_for_descriptors_are_followed() {
    let names = ["datagrams", "select", "events", "full", "splice", "tries"];
    try_all("descriptors.c", "cc", &names);
}

#[test]
fn waits_of_cpp20_are_controlled() {
    let names = ["atomic", "latch", "semaphore", "shared", "condition"];
    try_all("waits.cpp", "c++ -std=c++20", &names);
}
