//! Every primitive that capture knows is controlled by replay: for each there is a program whose predicted findings happen only
//! if it is.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::harness::{Bench, root};
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
