//! `--check race --algorithm shb` against the schedulable happens-before of RAPID, on one std file
//! each: both read the text, and both report. Ours also finds a witness for each pair of places and
//! has it replayed. All places that the baseline calls racy must be among ours.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use fastrand::Rng;
use foresee_predict::Analysis;
use foresee_predict::checks::{Algorithm, CHECKS, CheckKind, Checks, Options};

use crate::baseline::shb::Shb;

/// A kind of trace: the numbers of variables and places, and the share of accesses in critical sections of
/// the variable's own lock, in percent.
struct Shape {
    name: &'static str,
    variables: u32,
    places: u32,
    locked: u32,
}

const SHAPES: &[Shape] = &[
    Shape { name: "no order at all", variables: 10_000, places: 5_000, locked: 0 },
    Shape { name: "half under locks", variables: 10_000, places: 5_000, locked: 50 },
    Shape { name: "nearly all under locks", variables: 10_000, places: 5_000, locked: 98 },
    Shape { name: "few places", variables: 1_000, places: 100, locked: 90 },
];

/// Measures all of them, each way in a process of its own; the fastest of some rounds counts.
pub(crate) fn run(events: u64, threads: &[u32], rounds: usize) -> anyhow::Result<()> {
    println!(
        "\n| trace | threads | events | ours | baseline | ratio | racy places, ours | baseline \
         | ours, peak | baseline, peak |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let folder = tempfile::Builder::new().prefix("foresee-races").tempdir()?;
    let file = folder.path().join("trace.std");
    for shape in SHAPES {
        for &threads in threads {
            make(&file, shape, threads, events)?;
            let mut best = [f64::MAX; 2];
            let mut peaks = [0.0f64; 2];
            let mut places = [HashSet::new(), HashSet::new()];
            for _ in 0..rounds {
                for (i, way) in ["ours", "baseline"].into_iter().enumerate() {
                    let output = Command::new(std::env::current_exe()?)
                        .args(["--child", "races", way])
                        .arg(&file)
                        .output()?;
                    let errors = String::from_utf8_lossy(&output.stderr);
                    ensure!(output.status.success(), "{way}: {errors}");
                    let text = String::from_utf8_lossy(&output.stdout).into_owned();
                    let (seconds, rest) = text.split_once(' ').context("no time")?;
                    let (peak, found) = rest.split_once('\n').context("no memory")?;
                    best[i] = best[i].min(seconds.parse()?);
                    peaks[i] = peaks[i].max(peak.trim().parse()?);
                    places[i] = found.lines().map(str::to_owned).collect();
                }
            }
            let missed = places[1].difference(&places[0]).count();
            ensure!(missed == 0, "{}: {missed} racy places are missing", shape.name);
            println!(
                "| {} | {threads} | {} M | {:.2} s | {:.2} s | {:.1} | {} | {} | {:.0} MiB | {:.0} MiB |",
                shape.name,
                events as f64 / 1e6,
                best[0],
                best[1],
                best[1] / best[0],
                places[0].len(),
                places[1].len(),
                peaks[0] / 1024.0,
                peaks[1] / 1024.0,
            );
        }
    }
    Ok(())
}

/// Measures one way in this process: processor time, memory, and the racy places.
pub(crate) fn child(way: &str, file: &Path) -> anyhow::Result<()> {
    let mut places: Vec<String> = Vec::new();
    if way == "baseline" {
        let mut shb = Shb::default();
        shb.read(BufReader::new(File::open(file)?))?;
        places.extend(shb.places);
    } else {
        let mut source = foresee_formats::open(file, None)?.source;
        let kinds: Vec<&'static CheckKind> =
            CHECKS.iter().filter(|kind| kind.name == "race").collect();
        let options = Options { algorithm: Algorithm::Shb, cores: 1, ..Options::default() };
        let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(Checks::new(&kinds, options))];
        let mut findings = Vec::new();
        foresee_predict::run(&mut *source, &mut analyses, &mut findings, &mut |_| {})?;
        let mut events: HashSet<u64> = HashSet::new();
        for finding in &findings {
            events.extend(finding.witness.iter().flat_map(|witness| &witness.next));
        }
        let time = crate::checks::processor_time()?;
        places.extend(places_of(file, &events)?);
        return print(time, &places);
    }
    print(crate::checks::processor_time()?, &places)
}

fn print(time: f64, places: &[String]) -> anyhow::Result<()> {
    println!("{time} {}", crate::peak_kib()?);
    places.iter().for_each(|place| println!("{place}"));
    Ok(())
}

/// The places of some events of a std file.
fn places_of(file: &Path, events: &HashSet<u64>) -> anyhow::Result<HashSet<String>> {
    let mut places = HashSet::new();
    for (i, line) in BufReader::new(File::open(file)?).lines().enumerate() {
        let line = line?;
        if events.contains(&(i as u64)) {
            places.insert(line.rsplit('|').next().unwrap_or("").to_owned());
        }
    }
    Ok(places)
}

/// Writes a trace: threads access variables at places, each of which has a few variables of its own
/// and either reads or writes, some of them under the lock of the variable.
fn make(file: &Path, shape: &Shape, threads: u32, events: u64) -> anyhow::Result<()> {
    let mut out = BufWriter::new(File::create(file)?);
    let mut rng = Rng::with_seed(1);
    let mut written = 0;
    for t in 1..=threads {
        writeln!(out, "T0|fork(T{t})|0")?;
        written += 1;
    }
    while written < events {
        let t = 1 + rng.u32(..threads);
        let place = rng.u32(..shape.places);
        let variable = (place * 7 + rng.u32(..20)) % shape.variables;
        let op = if place.is_multiple_of(3) { 'w' } else { 'r' };
        let lock = variable % 64;
        let is_locked = rng.u32(..100) < shape.locked;
        if is_locked {
            writeln!(out, "T{t}|acq(l{lock})|{}", shape.places + 1)?;
        }
        writeln!(out, "T{t}|{op}(v{variable})|{}", place + 1)?;
        if is_locked {
            writeln!(out, "T{t}|rel(l{lock})|{}", shape.places + 2)?;
        }
        written += if is_locked { 3 } else { 1 };
    }
    out.flush()?;
    Ok(())
}
