//! All checks that need no specification, on long traces of a well-behaved program with a few
//! mistakes in it.
//!
//! Each variable belongs to a lock and is accessed under it, four times a section. One operation in
//! a thousand is a mistake: an access without the lock, or two locks taken in the wrong order. Each
//! variable is accessed at few places of the source, as in programs. Where there are regions, one
//! section in eight is declared to be atomic, and one in a hundred of these regions has two sections;
//! objects are used, freed and made anew under the lock.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use fastrand::Rng;
use foresee_causality::{Clocks, Order};
use foresee_predict::checks::{Algorithm, CHECKS, CheckKind, Checks, Options};
use foresee_predict::info::AnalysisInfo;
use foresee_predict::{Analysis, Stat};
use foresee_trace::{Batch, Event, EventSink, EventSource, Names, Op, Remarks, ThreadId, Value};

/// A kind of trace.
struct Shape {
    name: &'static str,
    locks: u32,
    variables: u32,
    has_regions: bool,
}

const SHAPES: &[Shape] = &[
    Shape { name: "64 locks, plain", locks: 64, variables: 1024, has_regions: false },
    Shape { name: "64 locks, regions", locks: 64, variables: 1024, has_regions: true },
    Shape { name: "one lock", locks: 1, variables: 64, has_regions: false },
    Shape { name: "100,000 locks", locks: 100_000, variables: 400_000, has_regions: false },
];

/// What is measured: reading, the usual clocks, races by clocks alone, races, all checks that are
/// made by default, and those that have to be requested.
const WAYS: &[&str] = &["read", "clocks", "shb", "race", "default", "all"];

/// Measures the kinds of traces whose names contain `shape`.
pub(crate) fn run(events: &[u64], threads: &[u32], shape: &str) -> anyhow::Result<()> {
    println!(
        "\n| trace | threads | events | way | processor time / M | against clocks | memory / M | found |"
    );
    println!("|---|--:|--:|---|--:|--:|--:|--:|");
    let folder = tempfile::Builder::new().prefix("foresee-checks").tempdir()?;
    let file = folder.path().join("trace");
    for &events in events {
        for shape in SHAPES.iter().filter(|s| s.name.contains(shape)) {
            for &threads in threads {
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

/// The seconds of processor time that this process has taken, which depend less on how busy the
/// machine is. It has one thread.
pub(crate) fn processor_time() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = stat.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    Ok(nanoseconds.context("no time in /proc/self/schedstat")? / 1e9)
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
            let is_default = |name| AnalysisInfo::of(name).is_some_and(|info| info.is_default);
            let wanted = |kind: &&CheckKind| match way {
                "all" => true,
                "default" => is_default(kind.name),
                _ => kind.name == "race",
            };
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
#[derive(Default)]
struct Thread {
    held: Vec<u32>,
    /// How many accesses are left of the section.
    left: u32,
    /// How many sections are left of the region, and whether there is one.
    sections: u32,
    is_in_region: bool,
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
    let region = names.syms.intern("region")?;
    let words = ["use", "free", "init"].map(|word| names.syms.intern(word));
    let [using, free, init] = words;
    let (using, free, init) = (using?, free?, init?);
    let places: Vec<_> =
        (0..200).map(|line| names.locs.intern(&format!("a.c:{line}"))).collect::<Result<_, _>>()?;
    let mut sink = foresee_formats::create(file, foresee_formats::by_name("native")?)?;
    sink.begin(&Remarks::default())?;
    let mut rng = Rng::with_seed(1);
    let mut owners: Vec<Option<u32>> = vec![None; shape.locks as usize];
    let mut all: Vec<Thread> = (0..threads).map(|_| Thread::default()).collect();
    let mut batch = Batch::default();
    let mut written = 0;
    let per_lock = (shape.variables / shape.locks).max(1);
    while written < events {
        let t = rng.u32(..threads);
        let thread = &mut all[t as usize];
        let Batch { events: out, pool, .. } = &mut batch;
        let mut push_with = |op: Op, target: u32, line: u32, values: &[Value]| {
            let place = places[(line % 200) as usize];
            let event = Event::new(ThreadId(t), op).with_target(target).with_loc(place);
            out.push(if values.is_empty() { event } else { event.with_values(values, pool) });
        };
        let access = |rng: &mut Rng, lock: u32| {
            let variable = (lock * per_lock + rng.u32(..per_lock)) % shape.variables;
            let is_read = rng.u8(..10) < 6;
            (if is_read { Op::Read } else { Op::Write }, variable)
        };
        let mut push = |op, target, line| push_with(op, target, line, &[]);
        if thread.left > 0 {
            thread.left -= 1;
            let lock = thread.held[rng.usize(..thread.held.len())];
            if shape.has_regions && rng.u8(..16) == 0 {
                let object = [Value::Int((lock * 4 + rng.u32(..4)).into())];
                if rng.u8(..64) == 0 {
                    push_with(Op::Event, free.0, 160 + lock % 10, &object);
                    push_with(Op::Event, init.0, 170 + lock % 10, &object);
                } else {
                    push_with(Op::Event, using.0, 180 + lock % 10, &object);
                }
            } else {
                let (op, variable) = access(&mut rng, lock);
                push(op, variable, variable % 50 * 2 + u32::from(op == Op::Write));
            }
        } else if let Some(lock) = thread.held.pop() {
            owners[lock as usize] = None;
            push(Op::Release, lock, 100 + lock % 20);
        } else if thread.is_in_region && thread.sections == 0 {
            thread.is_in_region = false;
            push(Op::End, region.0, 190);
        } else if !thread.is_in_region && rng.u16(..1000) == 0 {
            // Without the lock.
            let lock = rng.u32(..shape.locks);
            if shape.has_regions && rng.bool() {
                let object = [Value::Int((lock * 4 + rng.u32(..4)).into())];
                push_with(Op::Event, using.0, 191, &object);
            } else {
                let (op, variable) = access(&mut rng, lock);
                push(op, variable, 120 + variable % 10);
            }
        } else if shape.has_regions && !thread.is_in_region && rng.u8(..8) == 0 {
            thread.is_in_region = true;
            thread.sections = 1 + u32::from(rng.u8(..100) == 0);
            push(Op::Begin, region.0, 192 + rng.u32(..8));
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
            // All at once, so that no thread waits forever here.
            if wanted.iter().any(|&lock| owners[lock as usize].is_some()) {
                continue;
            }
            for &lock in &wanted {
                owners[lock as usize] = Some(t);
                push(Op::Acquire, lock, 140 + lock % 20);
            }
            thread.held = wanted;
            thread.left = 4;
            thread.sections = thread.sections.saturating_sub(1);
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
