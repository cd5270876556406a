//! Measurements, side by side: each case runs foresee's way and a stated baseline in turn, each in
//! a process of its own, on the same trace, and prints the ratio. Absolute times depend on the
//! machine and its mood; ratios of one run do much less.
//!
//! `cargo run --release -p foresee-benches` prints the tables of `benches/results/`.

#![allow(clippy::print_stdout, reason = "printing tables is what this program is for")]

mod baseline;
mod bindings;
mod cases;
mod checks;
mod correct;
mod index;
mod lattices;
mod monitorability;
mod nondeterminism;
mod observe;
mod patterns;
mod races;
mod reorder;
mod wide;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use foresee_trace::generate::{Config, Generator, Written};
use foresee_trace::{Batch, EventSink, EventSource};

use crate::cases::{CASES, Case, Way};

#[derive(Parser)]
struct Args {
    /// Only the cases whose names contain this.
    #[arg(default_value = "")]
    filter: String,
    /// How many events the traces have.
    #[arg(long, value_delimiter = ',', default_value = "1000000,10000000")]
    events: Vec<u64>,
    /// How many threads they have.
    #[arg(long, value_delimiter = ',', default_value = "4,16,64")]
    threads: Vec<u32>,
    /// Only the traces for checks whose names contain this.
    #[arg(long, default_value = "")]
    shape: String,
    /// How often each way is measured; the fastest counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Instead of all that, observe programs under steady load for this many seconds.
    #[arg(long, value_name = "SECONDS")]
    soak: Option<u64>,
    /// How many events a second that is.
    #[arg(long, default_value_t = 1_000_000)]
    rate: u64,
    /// Measure one way of one case in this process: name, way, folder with the traces.
    #[arg(long, hide = true, num_args = 3)]
    child: Option<Vec<String>>,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    if let Some(child) = &args.child {
        return match child[0].as_str() {
            "checks" => checks::child(&child[1], Path::new(&child[2])),
            "races" => races::child(&child[1], Path::new(&child[2])),
            name => measure_here(name, &child[1], Path::new(&child[2])),
        };
    }
    if let Some(seconds) = args.soak {
        return observe::soak(seconds, args.rate);
    }
    let folder = tempfile::Builder::new().prefix("foresee-benches").tempdir()?;
    println!("| case | threads | events | ours | baseline | ratio | ours, peak | baseline, peak |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for &events in &args.events {
        for &threads in &args.threads {
            let wanted = |c: &&Case| c.name.contains(&args.filter) && events <= c.most_events;
            if !CASES.iter().any(|case| wanted(&case)) {
                continue;
            }
            let traces = folder.path().join(format!("{threads}-{events}"));
            make_traces(&traces, threads, events)?;
            for case in CASES.iter().filter(wanted) {
                let row = measure(case, &traces, args.rounds)?;
                println!("| {} | {threads} | {} |{row}", case.name, millions(events as f64));
            }
            fs::remove_dir_all(&traces)?;
        }
    }
    if "clocks".contains(&args.filter) {
        wide::run()?;
    }
    if "lattice".contains(&args.filter) {
        lattices::run()?;
    }
    if "index".contains(&args.filter) {
        index::run(&args.threads, args.events.iter().copied().max().unwrap_or(1_000_000))?;
    }
    if "nondeterminism".contains(&args.filter) {
        nondeterminism::run()?;
    }
    if "checks".contains(&args.filter) {
        checks::run(&args.events, &args.threads, &args.shape)?;
    }
    if "races".contains(&args.filter) {
        let events = args.events.iter().copied().max().unwrap_or(3_000_000);
        races::run(events.min(3_000_000), &args.threads, args.rounds)?;
    }
    if "monitorability".contains(&args.filter) {
        monitorability::run()?;
    }
    if "reorder".contains(&args.filter) {
        reorder::run(&args.events, &args.threads)?;
        correct::run()?;
    }
    if "observe".contains(&args.filter) {
        observe::run(args.events.iter().copied().max().unwrap_or(10_000_000))?;
    }
    if "pattern growth".contains(&args.filter) {
        patterns::growth()?;
    }
    if "pattern algorithms".contains(&args.filter) {
        patterns::algorithms()?;
    }
    if "pattern bindings".contains(&args.filter) {
        bindings::run()?;
    }
    println!();
    for case in CASES.iter().filter(|c| c.name.contains(&args.filter)) {
        println!("- **{}**: {}; baseline: {}.", case.name, case.ours_is, case.baseline_is);
    }
    Ok(())
}

/// The same synthetic trace in the formats that cases read.
fn make_traces(folder: &Path, threads: u32, events: u64) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let usual = Config::bench(threads, events, 1);
    // All accesses concern four variables, and carry values.
    let dense = Config { variables: 4, values: Written::Repeating(100), ..usual.clone() };
    // A small program: its names fit the cache.
    let small = Config { variables: 500, locks: 20, locations: 500, ..usual.clone() };
    for (name, format, config) in [
        ("std", "std", &usual),
        ("small", "std", &small),
        ("native", "native", &usual),
        ("dense", "native", &dense),
    ] {
        let mut source = Generator::new(config.clone())?;
        let format = foresee_formats::by_name(format)?;
        let mut sink = foresee_formats::create(&trace_file(folder, name), format)?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            sink.write_batch(&batch, source.names())?;
        }
        sink.finish(source.names(), source.remarks())?;
    }
    Ok(())
}

fn trace_file(folder: &Path, format: &str) -> PathBuf {
    folder.join(format!("trace.{format}"))
}

/// One way's best time and worst memory.
#[derive(Clone, Copy)]
struct Measured {
    seconds: f64,
    events: u64,
    peak_kib: u64,
}

fn measure(case: &Case, traces: &Path, rounds: usize) -> anyhow::Result<String> {
    let mut best: [Option<Measured>; 2] = [None, None];
    for _ in 0..rounds {
        // In turn, so that a slow minute of the machine hits both.
        for (way, best) in [Way::Ours, Way::Baseline].into_iter().zip(&mut best) {
            if case.cold {
                forget_file(&trace_file(traces, "native"))?;
            }
            let one = measure_in_child(case, way, traces)?;
            *best = Some(match *best {
                Some(b) if b.seconds <= one.seconds => {
                    Measured { peak_kib: b.peak_kib.max(one.peak_kib), ..b }
                }
                _ => one,
            });
        }
    }
    let [Some(ours), Some(baseline)] = best else { bail!("there must be a round") };
    ensure!(ours.events == baseline.events, "{}: the ways saw different events", case.name);
    let rate = |m: Measured| format!("{:.1} M/s", m.events as f64 / m.seconds / 1e6);
    let mib = |m: Measured| format!("{:.0} MiB", m.peak_kib as f64 / 1024.0);
    Ok(format!(
        " {} | {} | {:.2} | {} | {} |",
        rate(ours),
        rate(baseline),
        baseline.seconds / ours.seconds,
        mib(ours),
        mib(baseline)
    ))
}

fn measure_in_child(case: &Case, way: Way, traces: &Path) -> anyhow::Result<Measured> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--child", case.name, way.word()])
        .arg(traces)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [seconds, events, peak] = numbers[..] else { bail!("bad measurement: {text}") };
    Ok(Measured { seconds, events: events as u64, peak_kib: peak as u64 })
}

fn measure_here(name: &str, way: &str, traces: &Path) -> anyhow::Result<()> {
    let case = CASES.iter().find(|c| c.name == name).context("no such case")?;
    let run = if way == Way::Ours.word() { case.ours } else { case.baseline };
    let (seconds, events) = run(traces)?;
    println!("{} {events} {}", seconds.as_secs_f64(), peak_kib()?);
    Ok(())
}

/// The most memory this process ever had.
fn peak_kib() -> anyhow::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|l| l.starts_with("VmHWM")).context("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse()?)
}

/// Makes the operating system forget what it remembers of a file.
fn forget_file(file: &Path) -> anyhow::Result<()> {
    let of = format!("of={}", file.display());
    let nothing = ["count=0", "conv=notrunc,fdatasync", "oflag=nocache", "status=none"];
    ensure!(Command::new("dd").arg("if=/dev/null").arg(of).args(nothing).status()?.success());
    Ok(())
}

fn millions(n: f64) -> String {
    format!("{} M", n / 1e6)
}
