//! What orders threads besides pthread's own means: OpenMP, and what the kernel and libc offer. Each right scenario of
//! `agents/conformance/order` is silent and its answer complete; of each quiet one the answer need not be complete, because the
//! order is that of the run where another is possible; of each wrong one the race is found, so that the order is not
//! simply that of everything.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::harness::{Bench, root, text};
use foresee_testkit::tools::{compilers, need_file};

/// Builds a program of scenarios in every way and runs each of them; says what is not as it should be.
fn scenarios(source: &str, flags: &str) {
    need_file("/usr/lib/llvm-19/lib/libomp.so", "libomp-19-dev");
    let bench = Bench::new();
    let source = root().join("agents/conformance/order").join(source);
    let mut runs = Vec::new();
    for [compiler, _] in compilers() {
        for level in ["-O0", "-O2"] {
            let program = format!("program.{compiler}{level}");
            let source = source.display();
            bench.built(&format!("cc -- {compiler} {level} {flags} -o {program} {source} -lrt"));
            let list = Command::new(bench.path(&program)).arg("--list").output().unwrap();
            for line in text(&list.stdout).lines() {
                let (kind, name) = line.split_once(' ').unwrap();
                runs.push((program.clone(), kind.to_owned(), name.to_owned()));
            }
        }
    }
    assert!(runs.len() > 100, "{runs:?}");
    let (next, wrong) = (Mutex::new(runs.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((program, kind, name)) = next.lock().unwrap().next() else { return };
                    let (status, out, err) = bench.run(&format!("-- ./{program} {name}"));
                    let is_right = match kind.as_str() {
                        // clang has no hooks for some of its atomic additions, which is said of the whole program.
                        "right" if out.contains("functions not exact") => status == 3,
                        "right" => status == 0,
                        "quiet" => status == 0 || status == 3,
                        _ => status == 1 && out.contains(" race on x ["),
                    };
                    if !is_right {
                        let what = format!("{kind} {name} of {program}: {status}\n{out}{err}");
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), runs.len(), wrong.join("\n"));
}

#[test]
fn openmp_orders_what_it_says() {
    scenarios("openmp.c", "-fopenmp");
}

#[test]
fn the_kernel_orders_what_goes_through_it() {
    scenarios("kernel.c", "-pthread");
}

/// A small program with parallel loops, a reduction, a critical region, a barrier and a single one: nothing is wrong with it.
#[test]
fn openmp_is_silent_and_complete() {
    need_file("/usr/lib/llvm-19/lib/libomp.so", "libomp-19-dev");
    let bench = Bench::new();
    let source = root().join("testdata/programs/openmp_silent.c");
    for [compiler, _] in compilers() {
        for level in ["-O0", "-O2"] {
            let source = source.display();
            bench.built(&format!("cc -- {compiler} {level} -fopenmp -o program {source}"));
            let (status, out, err) = bench.run("-- ./program");
            assert_eq!(status, 0, "{compiler} {level}:\n{out}{err}");
            assert!(out.contains("499500 13\n"), "{out}");
            assert!(out.contains("0 observed, 0 predicted; complete"), "{out}");
        }
    }
}

/// The linker leaves the library out if all of its functions that a program calls are the runtime's.
#[test]
fn openmp_is_found_though_the_linker_left_it_out() {
    need_file("/usr/lib/llvm-19/lib/libomp.so", "libomp-19-dev");
    let bench = Bench::new();
    let program = "int x;\nint main(void) {\n#pragma omp parallel num_threads(2)\n{\n#pragma omp critical\nx++;\n}\nreturn x != 2;\n}\n";
    std::fs::write(bench.path("small.c"), program).unwrap();
    for [compiler, _] in compilers() {
        bench.built(&format!("cc -- {compiler} -fopenmp -o program small.c"));
        let alone = Command::new(bench.path("program")).output().unwrap();
        assert_eq!(alone.status.code(), Some(0), "{compiler}: it runs without foresee");
        let (status, out, err) = bench.run("-- ./program");
        assert_eq!(status, 0, "{compiler}:\n{out}{err}");
    }
}
