//! Explores generated C programs and compares what is found with an interpreter of the same programs.
//!
//! `generated text SEED COUNT` prints a batch as C; `generated explore SEED COUNT PROGRAM` explores the program that it was
//! compiled to. What differs is printed, and the exit status is 1 then.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

#[path = "../tests/generated/mod.rs"]
#[allow(dead_code)]
mod generated;
use generated::{Batch, compare, small, tiny};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(1);
    let programs = small(number(1).., number(2) as usize);
    let codes: Vec<tiny::Code> = programs.iter().map(|one| one.1.clone()).collect();
    let batch = Batch::new(&codes);
    if words.first().is_some_and(|word| word == "text") {
        print!("{}", batch.text);
        return ExitCode::SUCCESS;
    }
    let executable = Path::new(words.get(3).map_or("", String::as_str));
    let (mut wrong, mut runs, mut states) = (0, 0, 0);
    let (mut failures, mut deadlocks, mut ends, mut most, mut covered) = (0, 0, 0, 0, 0);
    let begin = Instant::now();
    for (i, (seed, code, truth)) in programs.iter().enumerate() {
        match compare(executable, i, &batch, truth) {
            Ok(one) => {
                (runs, states) = (runs + one.runs, states + one.states);
                (failures, deadlocks) = (failures + one.failures, deadlocks + one.deadlocks);
                (ends, most) = (ends + one.ends, most.max(one.runs));
                covered += one.covered;
                if one.covered == 0 {
                    println!("seed {seed}, number {i}: not covered\n{code:?}");
                }
            }
            Err(why) => {
                wrong += 1;
                println!("seed {seed}: {why}\n{code:?}");
            }
        }
    }
    println!(
        "programs {} covered {covered} different {wrong} runs {runs} most {most} states {states} failures {failures} deadlocks {deadlocks} ends {ends} seconds {:.1}",
        programs.len(),
        begin.elapsed().as_secs_f64()
    );
    match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
