//! Small programs with a race, a use after free, or neither, built by both compilers and run for real.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use foresee_testkit::tools::compilers;
use tempfile::TempDir;

const FORESEE: &str = env!("CARGO_BIN_EXE_foresee");

fn foresee(folder: &Path, compiler: &str, words: &[&str]) -> Output {
    let mut command = Command::new(FORESEE);
    command.current_dir(folder).args(words);
    // The same as for all other tests: the runtime in it is the same.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foresee-cache");
    command.env("FORESEE_CACHE", cache).env("FORESEE_CC", compiler).output().unwrap()
}

fn source(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("testdata/programs").join(name).canonicalize().unwrap()
}

/// Builds a program in every way, runs it, and shows what was said: status and report.
fn run(program: &str, flags: &[&str], each: impl Fn(i32, &str)) {
    for [compiler, _] in compilers() {
        for level in ["-O0", "-O2"] {
            let folder = TempDir::new().unwrap();
            let source = source(program);
            let build =
                ["cc", "-g", level, "-Wno-tsan", "-Wno-unknown-warning-option", "-o", "program"];
            let build = [&build[..], &[source.to_str().unwrap(), "-lpthread"]].concat();
            let built = foresee(folder.path(), compiler, &build);
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            let run = [&["run"], flags, &["--", "./program"]].concat();
            let output = foresee(folder.path(), compiler, &run);
            let out = String::from_utf8_lossy(&output.stdout).into_owned();
            let err = String::from_utf8_lossy(&output.stderr);
            let how = format!("{compiler} {level}\n{out}{err}");
            each(output.status.code().unwrap_or(-1), &how);
        }
    }
}

#[test]
fn many_places_in_one_variable() {
    run("many_places_race_32.c", &["--check", "race", "--format", "json"], |status, out| {
        assert_eq!(status, 1, "{out}");
        // One thread comes first. Nothing but what the other one does first is unordered with it;
        // with optimisation that may be one access of all.
        let has_all = |mut lines: std::ops::RangeInclusive<u32>| {
            lines.all(|line| out.contains(&format!("many_places_race_32.c:{line}")))
        };
        assert!(out.contains(" -O2\n") || has_all(5..=36) || has_all(39..=70), "{out}");
    });
}

#[test]
fn not_only_the_nearest_pair() {
    let trace = source("race_nearest_only.std");
    let checked =
        foresee(Path::new("."), "gcc", &["check", trace.to_str().unwrap(), "--check", "race"]);
    assert_eq!(checked.status.code(), Some(1));
    run("race_nearest_only.c", &["--check", "race"], |status, out| {
        assert_eq!(status, 1, "{out}");
        assert!(out.contains("PREDICTED race") && out.contains('z'), "{out}");
    });
}

#[test]
fn a_use_after_free_that_happened() {
    run("uaf_observed.c", &[], |status, out| {
        assert_eq!(status, 1, "{out}");
        assert!(out.contains("OBSERVED lifetime"), "{out}");
        assert!(out.contains("after main had freed it"), "{out}");
        // The table names the block as the lines above it do, without the folders of its place.
        assert!(out.contains("  event(heap_free,\"heap(uaf_observed.c:5(main))#1\")"), "{out}");
    });
}

#[test]
fn memory_that_is_handed_out_again_is_another_object() {
    run("freed_and_reused.c", &["--check", "lifetime"], |_, out| {
        assert!(!out.contains("OBSERVED") && !out.contains("PREDICTED"), "{out}");
    });
}

#[test]
fn relaxed_atomics_order_nothing() {
    run("relaxed_mp.c", &[], |status, out| {
        assert_eq!(status, 1, "{out}");
        assert!(out.contains("OBSERVED race"), "{out}");
        assert!(out.contains("memory_model: c11") && out.contains("relaxed write"), "{out}");
        assert!(!out.contains("PREDICTED"), "{out}");
    });
    run("relaxed_mp.c", &["--memory-model", "sc"], |status, out| {
        assert_eq!(status, 0, "{out}");
    });
}

#[test]
fn atomics_that_order() {
    for program in ["release_acquire.c", "fences.c", "release_sequence.c", "relaxed_counter.c"] {
        run(program, &["--check", "race"], |status, out| assert_eq!(status, 0, "{program} {out}"));
    }
}
