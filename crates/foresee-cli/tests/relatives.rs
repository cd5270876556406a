//! Small programs of the kinds that once had false alarms or a silent green, each built by both compilers, with and without
//! optimisation. Their first lines say what is expected: `complete` (nothing found, status 0), `quiet` (nothing found), `doubt`
//! (something found, or a reason why the answer is not complete) or what the report says (status 1).

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use crate::harness::{Bench, root};
use foresee_testkit::tools::compilers;

#[test]
fn each_behaves_as_its_first_line_asks() {
    let folder = root().join("testdata/programs/relatives");
    let mut programs: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    assert!(programs.len() > 10, "{programs:?}");
    let (next, wrong) = (Mutex::new(programs.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(program) = next.lock().unwrap().next() else { return };
                    let some = tried(program);
                    wrong.lock().unwrap().extend(some);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What of a program is not as it should be.
fn tried(source: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(source).unwrap();
    let expected = text.strip_prefix("// expect: ").unwrap().split('.').next().unwrap();
    let is_cpp = source.extension().unwrap() == "cpp";
    let needs_20 = ["<semaphore>", "<latch>", "<barrier>", "ready.wait(0"];
    let standard = match needs_20.iter().any(|word| text.contains(word)) {
        true => "c++20",
        false => "c++17",
    };
    let openmp = if text.contains("#pragma omp") { "-fopenmp" } else { "" };
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for [c, cpp] in compilers() {
        let (word, compiler) =
            if is_cpp { ("c++", format!("{cpp} -std={standard}")) } else { ("cc", c.to_owned()) };
        for level in ["-O0", "-O2"] {
            let from = source.display();
            let flags = format!("{level} -w -pthread {openmp}");
            bench.built(&format!("{word} -- {compiler} {flags} -o program {from}"));
            for seed in 1..=3 {
                let (status, out, err) =
                    bench.run(&format!("--timeout 300 --seed {seed} -- ./program"));
                let is_right = match expected {
                    "complete" => status == 0 && out.contains("0 observed, 0 predicted; complete"),
                    "quiet" => [0, 3].contains(&status) && out.contains("0 observed, 0 predicted"),
                    "doubt" => [1, 3].contains(&status),
                    says => status == 1 && out.contains(says),
                };
                if !is_right {
                    let how = format!("{from} with {compiler} {level} --seed {seed}");
                    wrong.push(format!("{how}: {status}, not {expected}\n{out}{err}"));
                }
            }
        }
    }
    wrong
}
