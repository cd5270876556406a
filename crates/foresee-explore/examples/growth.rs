//! What a search costs: states, time and memory, and how they grow with threads and with the length of histories.
//!
//! The programs are made here and run in this process, so that nothing but the search is measured. `updates` reads a variable
//! and writes it again, without a lock; `locked` does so with one; `apart` has a variable for each thread.
#![allow(clippy::print_stdout)] // This is a command.

use foresee_explore::program::{
    Cell, Ending, Event, Execution, LockKind, Object, Operation, Patience, Pending, Place, Program,
    RunError, Schedule, Spot, Tail, ThreadName, Told, Value,
};
use foresee_explore::{Settings, explore};

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Updates,
    Locked,
    Apart,
}

/// Threads that do the same so many times.
struct Threads {
    what: What,
    threads: u32,
    rounds: u32,
}

/// One thread of a run: where it is, and what it read last.
#[derive(Clone, Copy, Default)]
struct One {
    at: u32,
    read: u128,
}

struct Run<'p> {
    program: &'p Threads,
    all: Vec<One>,
    vars: Vec<u128>,
    owner: Option<usize>,
}

fn spot(object: u128) -> Spot {
    Spot { object: Object(object), offset: 0 }
}

impl Run<'_> {
    fn operation(&self, thread: usize) -> Operation {
        let Threads { what, threads, rounds } = *self.program;
        let One { at, read } = self.all[thread];
        // The first thread starts the others and does nothing else.
        if thread == 0 {
            return match at < threads {
                true => Operation::Fork(at + 1),
                false => Operation::End(Value::Bits(0)),
            };
        }
        let var = if what == What::Apart { thread as u128 } else { 0 };
        let cell = Cell { at: spot(100 + var), width: 8 };
        let steps = if what == What::Locked { 4 } else { 2 };
        if at >= steps * rounds {
            return Operation::End(Value::Bits(0));
        }
        let (lock, kind) = (spot(1), LockKind::Normal);
        match (what, at % steps) {
            (What::Locked, 0) => {
                Operation::Lock { lock, kind, shared: false, patience: Patience::Wait }
            }
            (What::Locked, 1) | (What::Updates | What::Apart, 0) => Operation::Load(cell),
            (What::Locked, 3) => Operation::Unlock { lock, kind },
            _ => Operation::Store(cell, Some(Value::Bits(read + 1))),
        }
    }

    fn can(&self, thread: usize) -> bool {
        let is_born = thread == 0 || self.all[0].at as usize >= thread;
        let is_over = self.all[thread].at == u32::MAX;
        let is_free =
            self.owner.is_none() || !matches!(self.operation(thread), Operation::Lock { .. });
        is_born && !is_over && is_free
    }

    fn step(&mut self, thread: usize) -> (Operation, Told) {
        let operation = self.operation(thread);
        let mut told = Told::Nothing;
        match operation {
            Operation::Load(cell) => {
                let read = self.vars[(cell.at.object.0 - 100) as usize];
                self.all[thread].read = read;
                told = Told::Value(Value::Bits(read));
            }
            Operation::Store(cell, Some(Value::Bits(value))) => {
                self.vars[(cell.at.object.0 - 100) as usize] = value;
            }
            Operation::Lock { .. } => self.owner = Some(thread),
            Operation::Unlock { .. } => self.owner = None,
            _ => {}
        }
        let at = &mut self.all[thread].at;
        *at = if matches!(operation, Operation::End(_)) { u32::MAX } else { *at + 1 };
        (operation, told)
    }
}

impl Program for Threads {
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        let count = self.threads as usize + 1;
        let name = |i: usize| ThreadName(if i == 0 { Vec::new() } else { vec![i as u32] });
        let threads: Vec<ThreadName> = (0..count).map(name).collect();
        let mut run = Run {
            program: self,
            all: vec![One::default(); count],
            vars: vec![0; count],
            owner: None,
        };
        let mut seed = match schedule.tail {
            Tail::Random(seed) => seed | 1,
            Tail::Straight => 0,
        };
        let (mut events, mut last): (Vec<Event>, usize) = (Vec::new(), 0);
        loop {
            let can: Vec<usize> = (0..count).filter(|&thread| run.can(thread)).collect();
            let forced = schedule.steps.get(events.len()).and_then(|step| {
                let wanted = &schedule.threads[step.thread as usize];
                threads.iter().position(|name| name == wanted)
            });
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let Some(thread) = forced.or_else(|| match seed {
                0 => can.iter().find(|&&thread| thread == last).or(can.first()).copied(),
                _ => can.get(seed as usize % can.len().max(1)).copied(),
            }) else {
                break;
            };
            let place = Place(u64::from(run.all[thread].at) + 1);
            let (operation, told) = run.step(thread);
            last = thread;
            let thread = thread as u32;
            events.push(Event { thread, operation, place, told, stored: None, choice: 0 });
        }
        let pending: Vec<Pending> = Vec::new();
        Ok(Execution { threads, events, pending, ending: Ending::Finished, diverged: None })
    }
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// The processor time of this thread, in seconds: a shared machine does other things meanwhile.
fn seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

fn main() -> Result<(), RunError> {
    println!(
        "| program | threads | operations each | runs | facts | states | seconds | states per second | bytes a state |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    let cases = [
        (What::Updates, 2, 2),
        (What::Updates, 2, 4),
        (What::Updates, 2, 6),
        (What::Updates, 3, 2),
        (What::Updates, 3, 3),
        (What::Updates, 4, 1),
        (What::Locked, 2, 4),
        (What::Locked, 3, 2),
        (What::Locked, 3, 3),
        (What::Apart, 3, 4),
        (What::Apart, 4, 3),
        (What::Apart, 5, 2),
    ];
    for reduces in [false, true] {
        println!(
            "| {} | | | | | | | | |",
            if reduces { "persistent sets" } else { "detours counted" }
        );
        for (what, threads, rounds) in cases {
            let before = memory();
            let most = std::sync::atomic::AtomicUsize::new(before);
            let settings = Settings {
                reduces,
                hunt: if reduces { 0 } else { usize::MAX },
                effort: usize::MAX,
                repeats: 0,
                ..Settings::default()
            };
            let mut runners: Vec<Box<dyn Program>> =
                vec![Box::new(Threads { what, threads, rounds })];
            let begin = seconds();
            let explored = explore(&mut runners, &settings, None, None, &mut |_| {
                most.fetch_max(memory(), std::sync::atomic::Ordering::Relaxed);
                true
            })?;
            let seconds = seconds() - begin;
            let name = match what {
                What::Updates => "updates",
                What::Locked => "locked",
                What::Apart => "apart",
            };
            let each = rounds * if what == What::Locked { 4 } else { 2 };
            let bytes = most.into_inner().saturating_sub(before) / explored.states.max(1);
            let bytes =
                if explored.states < 100_000 { "–".to_owned() } else { bytes.to_string() };
            println!(
                "| {name} | {threads} | {each} | {} | {} | {} | {seconds:.2} | {:.0} | {bytes} |",
                explored.runs,
                explored.facts,
                explored.states,
                explored.states as f64 / seconds
            );
        }
    }
    Ok(())
}
