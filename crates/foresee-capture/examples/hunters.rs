//! How many runs different ways to choose schedules need until a program fails: by chance, by random priorities (PCT with
//! depth 3), and by exploration. `hunters SEEDS MOST PROGRAM...` prints a line for each program: mean runs of the seeds that
//! found a failure within so many runs, and how many did.
#![allow(clippy::print_stdout)] // This is a command.

use std::ffi::OsString;
use std::time::Instant;

use foresee_capture::explore::{Native, Options};
use foresee_explore::program::{
    Ending, Execution, Operation, Program, RunError, Schedule, Tail, ThreadName,
};
use foresee_explore::{Settings, Spin, explore};

fn failed(execution: &Execution) -> bool {
    let last = execution.events.last().map(|event| event.operation);
    let is_bad = match last {
        Some(Operation::Fail(_)) => true,
        Some(Operation::Exit(status)) => status != 0,
        _ => false,
    };
    is_bad || execution.ending == Ending::Deadlock
}

/// Mean runs and seconds to the first failure, and how many of the seeds found it.
fn sample(
    command: &[OsString],
    seeds: u64,
    most: u64,
    has_priorities: bool,
) -> Result<(f64, f64, u64), RunError> {
    let mut native = Native::new(Options::new(command.to_vec()))?;
    let threads = vec![ThreadName::default()];
    let run = |native: &mut Native, tail| {
        native.run(&Schedule {
            threads: threads.clone(),
            steps: Vec::new(),
            tail,
            most_operations: 20_000,
        })
    };
    let length = run(&mut native, Tail::Straight)?.events.len() as u64;
    let (mut sum, mut found, mut seconds) = (0, 0, 0.0);
    for seed in 0..seeds {
        let begin = Instant::now();
        for number in 1..=most {
            let tail = seed << 32 | number;
            if has_priorities {
                native.follow_priorities(tail, length);
            }
            if failed(&run(&mut native, Tail::Random(tail))?) {
                (sum, found) = (sum + number, found + 1);
                seconds += begin.elapsed().as_secs_f64();
                break;
            }
        }
    }
    let mean = |sum: f64| sum / found.max(1) as f64;
    Ok((mean(sum as f64), mean(seconds), found))
}

fn main() -> Result<(), RunError> {
    let mut arguments = std::env::args_os().skip(1);
    let mut number = || arguments.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(20);
    let (seeds, most) = (number(), number());
    println!(
        "| program | random: runs (seeds) | seconds | PCT(3): runs (seeds) | seconds | exploration: runs | seconds |\n\
         |---|--:|--:|--:|--:|--:|--:|"
    );
    for program in arguments {
        let command = vec![program];
        let (random, chance_seconds, by_chance) = sample(&command, seeds, most, false)?;
        let (pct, priority_seconds, by_priority) = sample(&command, seeds, most, true)?;
        let mut runners: Vec<Box<dyn Program>> =
            vec![Box::new(Native::new(Options::new(command.clone()))?)];
        // The repetitions that look for hidden inputs are left out, as the others have none.
        let settings = Settings { repeats: 0, spin: Spin::Collapse, ..Settings::default() };
        let begin = Instant::now();
        let explored = explore(&mut runners, &settings, None, None, &mut |_| true)?;
        let runs =
            explored.findings.first().map_or("-".to_owned(), |finding| finding.run.to_string());
        let name = command[0].to_string_lossy();
        println!(
            "| {} | {random:.1} ({by_chance}) | {chance_seconds:.2} | {pct:.1} ({by_priority}) | {priority_seconds:.2} | {runs} | {:.2} |",
            name.rsplit('/').next().unwrap_or_default(),
            begin.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
