//! Cuts a second of the lattice search, against the papers' pseudo-code, as threads and events
//! grow.

use std::time::Instant;

use foresee_predict::lattice::{Lattice, Limits};
use foresee_predict::{Analysis, Stat};
use foresee_spec::observe::Projection;
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Op, Trace, Value};

use crate::baseline::lattice;

/// Threads and events of each: every thread writes a flag of its own, now up, now down.
const SHAPES: &[(u32, u32)] =
    &[(2, 300), (2, 1000), (2, 3000), (4, 15), (4, 30), (4, 60), (8, 3), (8, 4), (8, 6)];

/// A state property over the flags of all threads that every run keeps.
fn spec(threads: u32) -> String {
    let flags: Vec<String> = (0..threads).map(|t| format!("x{t}")).collect();
    let init: Vec<String> = flags.iter().map(|x| format!("{x} = 0")).collect();
    let up: Vec<String> = flags.iter().map(|x| format!("{x} == 1")).collect();
    format!(
        "init {}\nproperty p: ({}) -> once (x0 == 0 && prev (x1 == 0))",
        init.join(", "),
        up.join(" && ")
    )
}

pub(crate) fn run() -> anyhow::Result<()> {
    let cores = Limits::default().cores;
    println!(
        "\n| threads | events each | cuts | one core | baseline | ratio | {cores} cores | speed-up | bytes a cut |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for &(threads, events) in SHAPES {
        let (trace, text) = (flags(threads, events)?, spec(threads));
        let (mut ours, mut theirs, mut shared) = (f64::MAX, f64::MAX, f64::MAX);
        let mut cuts = Searched::default();
        for _ in 0..3 {
            let start = Instant::now();
            cuts = search(&trace, &text, 1)?;
            ours = ours.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let same = search(&trace, &text, cores)?;
            shared = shared.min(start.elapsed().as_secs_f64());
            anyhow::ensure!(cuts.cuts == same.cuts, "{} cuts, but {}", cuts.cuts, same.cuts);
            // The pseudo-code takes minutes and gigabytes beyond.
            if cuts.cuts > 1_500_000 {
                continue;
            }
            let start = Instant::now();
            let parsed = foresee_spec::parse(&text);
            let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
            let mut property =
                Compiled::new(&parsed.spec.properties[0]).map_err(|e| anyhow::anyhow!("{e:?}"))?;
            let inits = &parsed.spec.inits;
            let lens = Projection::new(&property.alphabet, inits, &resolved, &trace.names);
            let (baseline_cuts, _) = lattice::search(&trace, &lens, &mut property)?;
            theirs = theirs.min(start.elapsed().as_secs_f64());
            let cuts = cuts.cuts;
            anyhow::ensure!(cuts == baseline_cuts, "{cuts} cuts, but {baseline_cuts} expected");
        }
        let rate = |seconds: f64| format!("{:.2} M/s", cuts.cuts as f64 / seconds / 1e6);
        let (baseline, ratio) = match theirs == f64::MAX {
            true => ("–".to_owned(), "–".to_owned()),
            false => (rate(theirs), format!("{:.1}", theirs / ours)),
        };
        println!(
            "| {threads} | {events} | {} | {} | {baseline} | {ratio} | {} | {:.2} | {:.0} |",
            cuts.cuts,
            rate(ours),
            rate(shared),
            ours / shared,
            cuts.widest_bytes as f64 / cuts.widest as f64
        );
    }
    Ok(())
}

fn flags(threads: u32, events: u32) -> anyhow::Result<Trace> {
    let mut trace = Trace::default();
    for k in 0..events {
        for t in 0..threads {
            let thread = trace.names.thread(&format!("T{t}"))?;
            let x = trace.names.vars.intern(&format!("x{t}"))?;
            let write = Event::new(thread, Op::Write).with_target(x.0);
            let value = Value::Int(i64::from(k % 2));
            trace.events.push(write.with_values(&[value], &mut trace.pool));
        }
    }
    Ok(trace)
}

/// What a search came to.
#[derive(Default)]
struct Searched {
    cuts: u64,
    widest: u64,
    widest_bytes: u64,
}

fn search(trace: &Trace, text: &str, cores: usize) -> anyhow::Result<Searched> {
    let parsed = foresee_spec::parse(text);
    let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let limits = Limits { cores, ..Limits::default() };
    let names = &trace.names;
    let lattice = Lattice::new(&parsed.spec, compiled, &resolved, names, limits);
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(lattice)];
    let mut findings = Vec::new();
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {})?;
    let stat = |wanted: &str| {
        let found = summary.analysed[0].stats.iter().find(|(name, _)| *name == wanted);
        match found {
            Some((_, Stat::Count(n))) => Ok(*n),
            _ => anyhow::bail!("no {wanted} in the result"),
        }
    };
    Ok(Searched {
        cuts: stat("states")?,
        widest: stat("widest_level")?,
        widest_bytes: stat("widest_level_bytes")?,
    })
}
