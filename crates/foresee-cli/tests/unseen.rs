//! Code without hooks: what libstdc++ does to a program's memory is known, and what is not known leads to no false alarm.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::harness::{Bench, root};
use foresee_testkit::tools::compilers;

/// Builds a program of `testdata/programs` with both compilers, with and without optimisation, and hands on what a run of
/// it says.
fn each_way(name: &str, options: &str, mut check: impl FnMut(i32, &str, &str)) {
    let bench = Bench::new();
    let source = root().join("testdata/programs").join(name);
    for [c, cpp] in compilers() {
        let (word, compiler) = if name.ends_with(".c") { ("cc", c) } else { ("c++", cpp) };
        for level in ["-O0", "-O2"] {
            let source = source.display();
            bench.built(&format!("{word} -- {compiler} {level} -pthread -o program {source}"));
            let (status, out, err) = bench.run(&format!("{options} -- ./program"));
            let how = format!("{name} with {compiler} {level} {options}:\n{out}{err}");
            check(status, &out, &how);
        }
    }
}

/// Nothing is found, and the answer is complete.
fn is_clean(name: &str, options: &str) {
    each_way(name, options, |status, out, how| {
        assert_eq!(status, 0, "{how}");
        assert!(out.contains("all events exact"), "{how}");
    });
}

#[test]
fn the_smallest_program_with_threads_is_clean() {
    is_clean("two_std_threads.cpp", "");
    is_clean("two_std_threads.cpp", "--check lifetime");
}

#[test]
fn the_smallest_program_with_a_mutex_is_clean() {
    is_clean("std_thread.cpp", "");
}

#[test]
fn a_work_queue_of_the_standard_library_is_clean() {
    is_clean("list_queue.cpp", "");
    is_clean("list_queue.cpp", "--check lifetime");
}

#[test]
fn containers_under_a_mutex_raise_no_alarm() {
    each_way("containers.cpp", "--check race,deadlock,order", |_, out, how| {
        assert!(out.contains("0 observed, 0 predicted"), "{how}");
        // All of lists, trees, tables and strings is known; how much gcc reports of its own copies is up to gcc.
        assert!(out.contains("all events exact") || out.contains("99.9"), "{how}");
    });
}

#[test]
fn what_an_unseen_write_orders_is_not_predicted() {
    for options in ["--check race,deadlock", "--reorder maz --check race,deadlock", "--all"] {
        each_way("unseen_flag.c", options, |status, out, how| {
            assert_eq!(status, 3, "{how}");
            assert!(out.contains("0 observed, 0 predicted"), "{how}");
            assert!(out.contains("saw what no captured step wrote"), "{how}");
        });
    }
}
