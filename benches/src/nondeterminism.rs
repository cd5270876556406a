//! Reads that could have seen another write, on traces in the shapes of the table of the paper that
//! the analysis comes from (only its figures are available, not its programs), and on long ones.
//!
//! A shape fixes threads, events, lock operations, locks, accesses, variables, waits and how many
//! candidates there are. The rest is made up: half of the variables belong to a lock and are
//! accessed under it, the others are accessed freely, and how popular the popular ones are is
//! chosen so that the number of candidates comes out.

use std::time::Instant;

use foresee_predict::checks::Decided;
use foresee_predict::nondeterminism::{Options, Search, Searched};
use foresee_trace::generate::{Config, Generator};
use foresee_trace::{Op, Trace};

/// A row of the paper's table A1.
struct Shape {
    name: &'static str,
    threads: u32,
    events: u64,
    lock_events: u64,
    locks: u32,
    accesses: u64,
    variables: u32,
    waits: u64,
    candidates: u64,
    feasible: u64,
    graphs: f64,
    seconds: f64,
}

macro_rules! shapes {
    ($($name:literal $t:literal $e:literal $le:literal $l:literal $a:literal $v:literal $w:literal
       => $c:literal $f:literal $g:literal $s:literal;)*) => {
        &[$(Shape {
            name: $name, threads: $t, events: $e, lock_events: $le, locks: $l, accesses: $a,
            variables: $v, waits: $w, candidates: $c, feasible: $f, graphs: $g, seconds: $s,
        }),*]
    };
}

/// Threads, events, lock events, locks, accesses, variables, waits and notifications; candidates,
/// feasible ones, graphs a witness, seconds.
const SHAPES: &[Shape] = shapes! {
    "conpool" 4 97 16 1 53 5 3 => 252 31 1.0 0.007;
    "liveness" 7 283 44 9 163 12 6 => 855 146 1.0 0.064;
    "SynchBench" 16 1510 306 2 533 15 0 => 47526 8052 1.0 8.85;
    "Barrier1" 10 653 108 2 262 12 7 => 3975 744 1.0 0.62;
    "Barrier2" 13 805 136 2 340 16 7 => 6516 1211 1.0 1.17;
    "account1" 11 902 146 21 430 42 10 => 1416 374 1.06 1.352;
    "account2" 21 1747 282 41 850 82 20 => 2796 733 1.02 3.819;
    "DaisyTest1" 3 2998 422 10 2003 45 15 => 383007 77372 1.005 244.0;
    "DaisyTest2" 3 4998 699 14 3330 64 25 => 1100814 228879 1.001 1130.0;
    "DaisyTest3" 3 7999 1096 18 5341 81 36 => 3025419 638787 1.0006 6393.0;
    "Elevator1" 4 3004 370 11 1795 70 0 => 3249 578 1.0 0.8;
    "Elevator2" 4 5001 610 11 3668 117 0 => 12285 2286 1.0 8.1;
    "Elevator3" 4 8004 1128 11 5601 94 0 => 24627 4566 1.0 24.0;
    "philo" 6 1141 126 6 857 23 22 => 4893 775 1.0 0.65;
    "ThriftTrace1" 4 2406 226 12 869 62 53 => 618 257 1.0 1.6;
    "ThriftTrace2" 4 2452 234 12 873 62 55 => 618 257 1.0 1.6;
    "ThriftTrace3" 10 4844 404 18 1739 129 91 => 2811 437 1.0 1.2;
    "ThriftTrace4" 4 6761 586 48 2785 171 125 => 35610 6169 1.0 21.5;
    "ThriftTrace5" 20 8950 722 28 3320 223 165 => 9615 1557 1.0 5.9;
    "ThriftTrace6" 4 11357 1384 48 3184 171 324 => 35610 6169 1.0 28.0;
    "ThriftTrace7" 20 13561 1520 28 3727 223 372 => 9609 1554 1.0 8.1;
    "ThriftTrace8" 40 15975 1239 48 5485 429 259 => 35748 5861 1.0 35.0;
    "ThriftTrace9" 10 16040 2981 18 1345 107 1408 => 2577 383 1.0 2.9;
    "ThriftTrace10" 6 20640 1724 158 8818 519 349 => 479142 79328 1.0 243.0;
    "ThriftTrace11" 6 25237 2522 158 9218 519 549 => 479142 79328 1.0 477.0;
};

pub(crate) fn run() -> anyhow::Result<()> {
    println!(
        "\n| shape | paper: witnesses | feasible | graphs each | time | ours: candidates | by clocks \
         | by cycle | after choices | feasible | undecided | graphs each | one core | all cores, ratio |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for shape in SHAPES {
        let trace = shape.trace()?;
        let (one, found) = search(&trace, 1)?;
        let (all, _) = search(&trace, Options::default().cores)?;
        let counts = found.counts;
        println!(
            "| {} | {} | {} | {} | {} s | {} | {} | {} | {} | {} | {} | {:.3} | {:.3} s | {:.2} |",
            shape.name,
            shape.candidates,
            shape.feasible,
            shape.graphs,
            shape.seconds,
            counts.candidates,
            counts.ordered,
            counts.cyclic,
            counts.exhausted,
            counts.feasible + counts.chosen,
            counts.undecided,
            counts.graphs as f64 / counts.questions.max(1) as f64,
            one,
            one / all
        );
    }
    println!("\n| long trace | events | candidates | feasible | undecided | one core |");
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, threads, locked) in [("free", 4, 0.0), ("locked", 4, 1.0), ("one thread", 1, 0.3)] {
        let config = Config { in_sections: locked, ..Config::bench(threads, 1_000_000, 1) };
        let trace = Trace::load(&mut Generator::new(config)?)?;
        let (seconds, found) = search(&trace, 1)?;
        let counts = found.counts;
        println!(
            "| {name} | 1 M | {} | {} | {} | {seconds:.2} s |",
            counts.candidates,
            counts.feasible + counts.chosen,
            counts.undecided
        );
    }
    Ok(())
}

fn search(trace: &Trace, cores: usize) -> anyhow::Result<(f64, Searched)> {
    let options = Options { cores, ..Options::default() };
    let start = Instant::now();
    let found = Search::new(trace, &options)?.run(&Decided::default());
    Ok((start.elapsed().as_secs_f64(), found))
}

impl Shape {
    fn trace(&self) -> anyhow::Result<Trace> {
        let sections = self.lock_events as f64 / 2.0;
        let section_events = 6.0;
        let others = self.events - self.accesses - self.lock_events - self.waits;
        let in_sections = (sections * section_events / self.events as f64).min(1.0);
        let config = Config {
            seed: 1,
            threads: self.threads,
            events: self.events,
            variables: self.variables,
            locks: self.locks,
            conditions: u32::from(self.waits > 0),
            switching: 0.05,
            in_sections,
            section_events,
            max_nesting: 2,
            reentrant: 0.05,
            reads: 0.6,
            forked: 1.0,
            joined: 1.0,
            waits: (self.waits as f64 / (self.events as f64 * in_sections)).min(1.0),
            named: others as f64 / self.events as f64,
            locations: 500,
            ..Config::default()
        };
        let base = Trace::load(&mut Generator::new(config)?)?;
        // The more popular the popular variables, the more candidates.
        let (mut low, mut high) = (-1.0, 8.0);
        let mut best = base.clone();
        for _ in 0..24 {
            let middle = f64::midpoint(low, high);
            best = self.with_variables(&base, middle);
            if candidates(&best) < self.candidates { low = middle } else { high = middle }
        }
        Ok(best)
    }

    /// Gives accesses new variables; `skew` says how popular the first ones are. Below zero all are
    /// alike, and that share of the writes become reads.
    fn with_variables(&self, base: &Trace, skew: f64) -> Trace {
        let mut trace = base.clone();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chance = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut held: Vec<Vec<u32>> = vec![Vec::new(); self.threads as usize + 1];
        // One half is locked, the other is not.
        let guarded = (self.variables / 2).max(1);
        let free = (self.variables - guarded).max(1);
        for event in &mut trace.events {
            let thread = event.thread().0 as usize;
            if held.len() <= thread {
                held.resize(thread + 1, Vec::new());
            }
            match event.op() {
                Op::Acquire => held[thread].push(event.lock().0),
                Op::Release => held[thread].retain(|&lock| lock != event.lock().0),
                op if op.reads() || op.writes() => {
                    let rank = chance().powf(1.0 + skew.max(0.0));
                    let is_kept = chance() < 1.0 + skew;
                    let pick = match held[thread].last() {
                        // The variables of a lock are those with its number modulo all locks.
                        Some(&lock) => {
                            let of_lock = guarded.div_ceil(self.locks.max(1)).max(1);
                            let place = (rank * f64::from(of_lock)) as u32;
                            (place * self.locks + lock) % guarded
                        }
                        None => guarded + (rank * f64::from(free)) as u32,
                    };
                    *event = event.with_target(pick.min(self.variables - 1));
                    if op.writes() && !is_kept {
                        *event = event.with_op(Op::Read);
                    }
                }
                _ => {}
            }
        }
        trace
    }
}

/// Three for each pair of a read, or the end, and another write of its variable.
fn candidates(trace: &Trace) -> u64 {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for event in &trace.events {
        if event.op().reads() || event.op().writes() {
            let variable = event.var().0 as usize;
            if counts.len() <= variable {
                counts.resize(variable + 1, (0, 0));
            }
            counts[variable].0 += u64::from(event.op().reads());
            counts[variable].1 += u64::from(event.op().writes());
        }
    }
    counts.iter().map(|(reads, writes)| 3 * (reads + 1) * writes).sum()
}
