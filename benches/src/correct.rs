//! States and time of the search of correct reorderings, against the lattice of runs that keep the
//! causality, on small programs of different kinds. The property sees one event of each thread, and
//! no order violates it, so everything is searched.

use std::time::Instant;

use foresee_predict::correct::{Correct, CorrectLimits, Reductions};
use foresee_predict::lattice::{Lattice, Limits};
use foresee_predict::{Analysis, Stat};
use foresee_spec::ast::Spec;
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Op, ThreadId, Trace};

/// Kinds of programs, their threads and rounds.
const PROGRAMS: &[(&str, u32, u32)] = &[
    ("counter under one lock", 6, 5),
    ("own data under one lock", 4, 6),
    ("own data under one lock", 6, 5),
    ("blind writes under one lock", 4, 6),
    ("one writer, readers, one lock", 6, 5),
    ("no locks, own data", 4, 6),
    ("no locks, one writer, readers", 4, 6),
];

pub(crate) fn run() -> anyhow::Result<()> {
    println!(
        "\n| program | threads | events | causality: cuts | time | correct: states | time | without reductions |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for &(kind, threads, rounds) in PROGRAMS {
        let trace = program(kind, threads, rounds)?;
        let others: Vec<String> = (1..threads).map(|t| format!("event(done)@T{t} -> b")).collect();
        let text = format!(
            "automaton p {{ initial a; a: event(done)@T0 -> b; b: event(done)@T0 -> bad, {}; }}",
            others.join(", ")
        );
        let spec = foresee_spec::parse(&text).spec;
        let (cuts, maz) = measure(&trace, &spec, |compiled, spec| {
            let resolved = foresee_spec::resolve(spec, &trace.names).resolved;
            let limits = Limits::default();
            Box::new(Lattice::new(spec, compiled, &resolved, &trace.names, limits))
        })?;
        let search = |limits: CorrectLimits| {
            measure(&trace, &spec, |compiled, spec| {
                let resolved = foresee_spec::resolve(spec, &trace.names).resolved;
                Box::new(Correct::new(spec, compiled, &resolved, &trace.names, limits))
            })
        };
        let all = CorrectLimits { width: usize::MAX, ..CorrectLimits::default() };
        let (states, ours) = search(all)?;
        let (plain, _) =
            search(CorrectLimits { reductions: Reductions::NONE, nodes: 100_000, ..all })?;
        let plain = if plain > 100_000 { "> 100000".to_owned() } else { plain.to_string() };
        println!(
            "| {kind} | {threads} | {} | {cuts} | {:.1} ms | {states} | {:.1} ms | {plain} |",
            trace.events.len(),
            maz * 1e3,
            ours * 1e3
        );
    }
    Ok(())
}

fn measure(
    trace: &Trace,
    spec: &Spec,
    make: impl Fn(Vec<Compiled>, &Spec) -> Box<dyn Analysis>,
) -> anyhow::Result<(u64, f64)> {
    let mut best = f64::MAX;
    let mut states = 0;
    for _ in 0..3 {
        let compiled = Compiled::all(spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
        let mut analyses = vec![make(compiled, spec)];
        let start = Instant::now();
        let mut findings = Vec::new();
        let summary =
            foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |_| {})?;
        best = best.min(start.elapsed().as_secs_f64());
        let stat = summary.analysed[0].stats.iter().find(|(name, _)| *name == "states");
        if let Some((_, Stat::Count(n))) = stat {
            states = *n;
        }
    }
    Ok((states, best))
}

fn program(kind: &str, threads: u32, rounds: u32) -> anyhow::Result<Trace> {
    let mut trace = Trace::default();
    let lock = trace.names.locks.intern("l")?.0;
    let done = trace.names.syms.intern("done")?.0;
    let shared = trace.names.vars.intern("x")?.0;
    for t in 0..threads {
        trace.names.thread(&format!("T{t}"))?;
        trace.names.vars.intern(&format!("x{t}"))?;
    }
    for round in 0..rounds {
        for t in 0..threads {
            let mut push = |op, target| {
                trace.events.push(Event::new(ThreadId(t), op).with_target(target));
            };
            let is_locked = !kind.starts_with("no locks");
            if is_locked {
                push(Op::Acquire, lock);
            }
            match kind {
                "counter under one lock" => {
                    push(Op::Read, shared);
                    push(Op::Write, shared);
                }
                "blind writes under one lock" => push(Op::Write, shared),
                k if k.contains("one writer") => {
                    push(if t == 0 { Op::Write } else { Op::Read }, shared);
                }
                _ => {
                    push(Op::Read, shared + 1 + t);
                    push(Op::Write, shared + 1 + t);
                }
            }
            if is_locked {
                push(Op::Release, lock);
            }
            if round == rounds / 2 {
                push(Op::Event, done);
            }
        }
    }
    Ok(trace)
}
