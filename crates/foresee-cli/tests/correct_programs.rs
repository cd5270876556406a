//! Generated correct programs (`foresee_testkit::correct`): no alarm in any, and complete answers in nearly all; the rest say why.
//!
//! `FORESEE_PROGRAMS=200` tries as many; without it there are 40. Each group of programs is built in one of six ways, by two
//! compilers at three levels of optimisation; `FORESEE_WAY=1` to `5` has it built in the next, or a later one. `field/programs`
//! tries 200 in every way.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // A helper that fails is a test that fails; `field/programs` shows what is said.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::process::Command;
use std::sync::Mutex;
use std::thread;

use crate::harness::{Bench, text};
use foresee_testkit::correct::{Group, Language, groups};
use foresee_testkit::tools::{compilers, need_file};

/// A program, and what came of it.
struct Outcome {
    program: String,
    status: i32,
    output: String,
}

/// The answer must be complete for this share of the programs.
const COMPLETE: f64 = 0.9;

#[test]
fn correct_programs_are_silent() {
    need_file("/usr/lib/llvm-19/lib/libomp.so", "libomp-19-dev");
    let number = |name, otherwise| {
        std::env::var(name).map_or(otherwise, |n| n.parse::<u64>().expect("a number"))
    };
    let (count, way) = (number("FORESEE_PROGRAMS", 40), number("FORESEE_WAY", 0) as usize);
    let bench = Bench::new();
    let groups: Vec<(usize, Group)> = groups(count).into_iter().enumerate().collect();
    let (next, outcomes) = (Mutex::new(groups.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((i, group)) = next.lock().unwrap().next() else { return };
                    let some = try_group(&bench, *i, way, group);
                    outcomes.lock().unwrap().extend(some);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    assert_eq!(outcomes.len() as u64, count);
    let with = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|o| is(o)).collect::<Vec<_>>();
    let show = |some: &[&Outcome]| {
        some.iter()
            .map(|o| format!("{}: {}\n{}", o.program, o.status, o.output))
            .collect::<String>()
    };
    let alarms = with(|o| o.status != 0 && o.status != 3);
    let silent = with(|o| o.status == 3 && !says_why(&o.output));
    let complete = with(|o| o.status == 0).len();
    println!("{count} programs: {complete} complete, {} alarms", alarms.len());
    for outcome in with(|o| o.status != 0) {
        let why = outcome
            .output
            .lines()
            .find(|l| l.starts_with("PREDICTED") || l.starts_with("OBSERVED"));
        let why = why.or_else(|| {
            outcome
                .output
                .lines()
                .find(|l| l.contains("reads saw") || l.starts_with("note: the trace"))
        });
        let why =
            why.or_else(|| outcome.output.lines().find(|l| l.contains("which proves nothing")));
        println!("  exit {} {}: {}", outcome.status, outcome.program, why.unwrap_or_default());
    }
    assert!(alarms.is_empty(), "{}", show(&alarms));
    assert!(silent.is_empty(), "no reason is given:\n{}", show(&silent));
    assert!(complete as f64 >= COMPLETE * count as f64, "{complete} of {count} are complete");
}

/// Builds the programs of a group, each group with another compiler and other optimisation, and runs them one by one.
fn try_group(bench: &Bench, i: usize, way: usize, group: &Group) -> Vec<Outcome> {
    let way = i + way;
    let compiler = compilers()[way % 2];
    let level = ["-O0", "-O2", "-O3"][way / 2 % 3];
    let (word, compiler, ending, flags) = match group.language {
        Language::C => ("cc", compiler[0], "c", "-pthread"),
        Language::OpenMp => ("cc", compiler[0], "c", "-fopenmp"),
        Language::Cpp => ("c++", compiler[1], "cpp", "-std=c++17 -pthread"),
    };
    let (source, program) = (format!("group{i}.{ending}"), format!("group{i}"));
    bench.write(&source, &group.source);
    bench.built(&format!("{word} -- {compiler} {level} {flags} -o {program} {source}"));
    let run = |&(number, ref about): &(u64, String)| {
        let alone = Command::new(bench.path(&program)).arg(number.to_string()).output().unwrap();
        assert_eq!(alone.status.code(), Some(0), "{about} is wrong: {}", text(&alone.stderr));
        let (status, out, err) = bench.run(&format!("--timeout 300 -- ./{program} {number}"));
        let program = format!("{number} ({about}, {compiler} {level})");
        Outcome { program, status, output: out + &err }
    };
    group.programs.iter().map(run).collect()
}

/// Whether the output says why the answer is not complete.
fn says_why(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("note: ") || line.contains("which proves nothing"))
}
