//! Cuts a second of the lattice search, against the papers' pseudo-code, as threads and events
//! grow.

use std::rc::Rc;
use std::time::Instant;

use foresee_predict::lattice::{Lattice, Limits, Predictions};
use foresee_predict::{Analysis, Stat};
use foresee_spec::observe::Lens;
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Op, Trace, Value};

use crate::baseline::lattice;

/// Threads and events of each: every thread writes a flag of its own, now up, now down.
const SHAPES: &[(u32, u32)] = &[(2, 300), (2, 1000), (4, 15), (4, 30), (8, 3), (8, 4)];

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
    println!("\n| threads | events each | cuts | ours | baseline | ratio |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for &(threads, events) in SHAPES {
        let (trace, text) = (flags(threads, events)?, spec(threads));
        let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
        let mut cuts = 0;
        for _ in 0..3 {
            let start = Instant::now();
            cuts = search(&trace, &text)?;
            ours = ours.min(start.elapsed().as_secs_f64());
            let start = Instant::now();
            let parsed = foresee_spec::parse(&text);
            let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
            let mut property =
                Compiled::new(&parsed.spec.properties[0]).map_err(|e| anyhow::anyhow!("{e:?}"))?;
            let inits = &parsed.spec.inits;
            let lens = Lens::new(&property.alphabet, inits, &resolved, &trace.names);
            let (baseline_cuts, _) = lattice::search(&trace, &lens, &mut property)?;
            theirs = theirs.min(start.elapsed().as_secs_f64());
            anyhow::ensure!(cuts == baseline_cuts, "{cuts} cuts, but {baseline_cuts} expected");
        }
        let rate = |seconds: f64| cuts as f64 / seconds / 1e6;
        println!(
            "| {threads} | {events} | {cuts} | {:.2} M/s | {:.2} M/s | {:.1} |",
            rate(ours),
            rate(theirs),
            theirs / ours
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

fn search(trace: &Trace, text: &str) -> anyhow::Result<u64> {
    let parsed = foresee_spec::parse(text);
    let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let predictions = Predictions::default();
    let lattice = Lattice::new(
        &parsed.spec,
        compiled,
        &resolved,
        &trace.names,
        Limits::default(),
        Rc::clone(&predictions),
    );
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(lattice)];
    let mut findings = Vec::new();
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {})?;
    let states = summary.analysed[0].stats.iter().find(|(name, _)| *name == "states");
    match states {
        Some((_, Stat::Count(cuts))) => Ok(*cuts),
        _ => anyhow::bail!("no count of cuts"),
    }
}
