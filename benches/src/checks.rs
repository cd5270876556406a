//! All checks that need no specification, on long traces of a well-behaved program with a few
//! mistakes in it.
//!
//! Each variable belongs to a lock and is accessed under it, four times a section. One operation in
//! a thousand is a mistake: an access without the lock, or two locks taken in the wrong order. Each
//! variable is accessed at few places of the source, as in programs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use fastrand::Rng;
use foresee_causality::{Clocks, Order};
use foresee_predict::checks::{Algorithm, CHECKS, CheckKind, Checks, Options};
use foresee_predict::{Analysis, Stat};
use foresee_trace::{Batch, Event, EventSink, EventSource, Names, Op, Remarks, ThreadId};

/// A kind of trace.
struct Shape {
    name: &'static str,
    locks: u32,
    variables: u32,
}

const SHAPES: &[Shape] = &[
    Shape { name: "64 locks, 1024 variables", locks: 64, variables: 1024 },
    Shape { name: "one lock, 64 variables", locks: 1, variables: 64 },
    Shape { name: "100,000 locks, 400,000 variables", locks: 100_000, variables: 400_000 },
];

/// What is measured.
const WAYS: &[&str] = &["read", "clocks", "shb", "race", "all"];

pub(crate) fn run(events: &[u64], threads: &[u32]) -> anyhow::Result<()> {
    println!(
        "\n| trace | threads | events | way | processor time / M | against clocks | memory / M | found |"
    );
    println!("|---|--:|--:|---|--:|--:|--:|--:|");
    let folder = tempfile::Builder::new().prefix("foresee-checks").tempdir()?;
    let file = folder.path().join("trace");
    for &events in events {
        for (i, shape) in SHAPES.iter().enumerate() {
            for &threads in threads {
                // The other shapes are for how things grow.
                if i > 0 && threads != threads.min(16) {
                    continue;
                }
                make(&file, shape, threads, events)?;
                let mut clocks = 0.0;
                for way in WAYS {
                    let output = Command::new(std::env::current_exe()?)
                        .args(["--child", "checks", way])
                        .arg(&file)
                        .output()?;
                    let text = String::from_utf8_lossy(&output.stdout);
                    let errors = String::from_utf8_lossy(&output.stderr);
                    ensure!(output.status.success(), "{way}: {errors}");
                    let mut parts = text.split_whitespace();
                    let mut number = || parts.next().and_then(|n| n.parse::<f64>().ok());
                    let (seconds, peak) = (number().context(way)?, number().context(way)?);
                    let found = parts.next().unwrap_or("").to_owned();
                    if *way == "clocks" {
                        clocks = seconds;
                    }
                    let millions = events as f64 / 1e6;
                    println!(
                        "| {} | {threads} | {} M | {way} | {:.3} s | {:.1} | {:.0} MiB | {found} |",
                        shape.name,
                        millions,
                        seconds / millions,
                        seconds / clocks,
                        peak / 1024.0 / millions,
                    );
                }
                fs::remove_file(&file)?;
            }
        }
    }
    Ok(())
}

/// The seconds of processor time that this process has taken, which do not depend on how busy the
/// machine is.
fn processor_time() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the program may have anything in it but the last bracket.
    let (_, rest) = stat.rsplit_once(')').context("no name in /proc/self/stat")?;
    let ticks: Vec<f64> = rest.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // The state of the process is a letter, so the times are the numbers eleven and twelve.
    let times = ticks.get(10..12).context("no times in /proc/self/stat")?;
    Ok(times.iter().sum::<f64>() / 100.0)
}

/// Measures one way in this process.
pub(crate) fn child(way: &str, file: &Path) -> anyhow::Result<()> {
    let mut source = foresee_formats::open(file, None)?.source;
    let mut found = String::new();
    match way {
        "read" => {
            let mut batch = Batch::default();
            while source.next_batch(&mut batch)? {}
        }
        "clocks" => {
            let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
            let mut batch = Batch::default();
            while source.next_batch(&mut batch)? {
                for event in &batch.events {
                    clocks.event(event)?;
                }
                clocks.forget_old(&[]);
            }
        }
        _ => {
            let wanted = |kind: &&CheckKind| way == "all" || kind.name == "race";
            let kinds: Vec<&'static CheckKind> = CHECKS.iter().filter(wanted).collect();
            let algorithm = if way == "shb" { Algorithm::Shb } else { Algorithm::Sliced };
            let options = Options { algorithm, cores: 1, ..Options::default() };
            let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Checks::new(&kinds, options))];
            let mut findings = Vec::new();
            let summary =
                foresee_predict::run(&mut *source, &mut analyses, &mut findings, &mut |_| {})?;
            for one in &summary.analysed {
                let count = |name: &str| {
                    one.stats.iter().find(|(stat, _)| *stat == name).map_or(0, |(_, n)| match n {
                        Stat::Count(n) => *n,
                        Stat::Text(_) => 0,
                    })
                };
                found += &format!("{}:{}/{},", one.name, count("found"), count("candidates"));
            }
        }
    }
    println!("{} {} {found}", processor_time()?, crate::peak_kib()?);
    Ok(())
}

/// What a thread is about.
struct Thread {
    held: Vec<u32>,
    /// How many accesses are left of the section.
    left: u32,
}

/// Writes a trace.
fn make(file: &Path, shape: &Shape, threads: u32, events: u64) -> anyhow::Result<()> {
    let mut names = Names::default();
    for t in 0..threads {
        names.threads.intern(&format!("T{t}"))?;
    }
    for l in 0..shape.locks {
        names.locks.intern(&format!("l{l}"))?;
    }
    for v in 0..shape.variables {
        names.vars.intern(&format!("v{v}"))?;
    }
    let places: Vec<_> =
        (0..200).map(|line| names.locs.intern(&format!("a.c:{line}"))).collect::<Result<_, _>>()?;
    let mut sink = foresee_formats::create(file, foresee_formats::by_name("native")?)?;
    sink.begin(&Remarks::default())?;
    let mut rng = Rng::with_seed(1);
    let mut owners: Vec<Option<u32>> = vec![None; shape.locks as usize];
    let mut all: Vec<Thread> = (0..threads).map(|_| Thread { held: Vec::new(), left: 0 }).collect();
    let mut batch = Batch::default();
    let mut written = 0;
    let per_lock = (shape.variables / shape.locks).max(1);
    while written < events {
        let t = rng.u32(..threads);
        let thread = &mut all[t as usize];
        let mut push = |op: Op, target: u32, line: u32| {
            let place = places[(line % 200) as usize];
            batch.events.push(Event::new(ThreadId(t), op).with_target(target).with_loc(place));
        };
        let access = |rng: &mut Rng, lock: u32| {
            let variable = (lock * per_lock + rng.u32(..per_lock)) % shape.variables;
            let is_read = rng.u8(..10) < 6;
            (if is_read { Op::Read } else { Op::Write }, variable)
        };
        if thread.left > 0 {
            thread.left -= 1;
            let lock = thread.held[rng.usize(..thread.held.len())];
            let (op, variable) = access(&mut rng, lock);
            push(op, variable, variable % 50 * 2 + u32::from(op == Op::Write));
        } else if let Some(lock) = thread.held.pop() {
            owners[lock as usize] = None;
            push(Op::Release, lock, 100 + lock % 20);
        } else if rng.u16(..1000) == 0 {
            // Without the lock.
            let lock = rng.u32(..shape.locks);
            let (op, variable) = access(&mut rng, lock);
            push(op, variable, 120 + variable % 10);
        } else {
            let first = rng.u32(..shape.locks);
            let mut wanted = vec![first];
            if rng.u8(..8) == 0 && shape.locks > 1 {
                let second = (first + 1 + rng.u32(..3)) % shape.locks;
                let is_wrong = rng.u16(..1000) == 0;
                wanted = match is_wrong {
                    false => vec![first.min(second), first.max(second)],
                    true => vec![first.max(second), first.min(second)],
                };
                wanted.dedup();
            }
            // All at once, so that nobody waits for ever here.
            if wanted.iter().any(|&lock| owners[lock as usize].is_some()) {
                continue;
            }
            for &lock in &wanted {
                owners[lock as usize] = Some(t);
                push(Op::Acquire, lock, 140 + lock % 20);
            }
            thread.held = wanted;
            thread.left = 4;
        }
        if batch.events.len() >= Batch::EVENTS {
            written += batch.events.len() as u64;
            sink.write_batch(&batch, &names)?;
            batch.clear();
        }
    }
    sink.finish(&names, &Remarks::default())?;
    Ok(())
}
