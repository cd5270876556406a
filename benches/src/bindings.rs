//! Patterns with parameters: how time and memory grow with their bindings.

use std::time::Duration;

use foresee_predict::pattern::{Algorithm, Patterns};
use foresee_predict::{Analysis, Candidates, End, Out, Pass, Room};
use foresee_spec::property::Compiled;
use foresee_trace::{Batch, Event, Finding, Names, Op, Value};

use crate::patterns::on_cpu;
use crate::peak_kib;

const SPEC: &str = "pattern unsafe(c, i): \
    exit(iterator, c, i) .. enter(next, i) .. enter(add, c) .. enter(next, i)";
/// How many iterators each collection has.
const ITERATORS: u64 = 10;

/// Prints events a second and bytes a binding. Every collection is filled and then gone through ten
/// times by one of four threads, so that nothing is found and all that is known is kept.
pub(crate) fn run() -> anyhow::Result<()> {
    println!("\n| bindings | events | time | events a second | memory | bytes a binding |");
    println!("|--:|--:|--:|--:|--:|--:|");
    // From few to many: memory that was freed is used again, so the peak is that of the last.
    let before = peak_kib()?;
    for bindings in [10_000, 100_000, 1_000_000] {
        let (events, spent) = pass(bindings)?;
        let bytes = (peak_kib()? - before) * 1024;
        println!(
            "| {bindings} | {events} | {:.2} s | {:.2} M | {:.0} MiB | {:.0} |",
            spent.as_secs_f64(),
            events as f64 / spent.as_secs_f64() / 1e6,
            bytes as f64 / f64::from(1 << 20),
            bytes as f64 / bindings as f64
        );
    }
    Ok(())
}

fn pass(bindings: u64) -> anyhow::Result<(u64, Duration)> {
    let mut names = Names::default();
    let [iterator, next, add] = ["iterator", "next", "add"].map(|name| names.syms.intern(name));
    let (iterator, next, add) = (iterator?, next?, add?);
    let threads = ["T0", "T1", "T2", "T3"].map(|name| names.thread(name));
    let parsed = foresee_spec::parse(SPEC);
    let resolved = foresee_spec::resolve(&parsed.spec, &names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let mut search = Patterns::new(compiled, &resolved, &names, Algorithm::Auto);
    let mut candidates = Candidates::default();
    let (mut batch, mut first, mut spent) = (Batch::default(), 0, Duration::ZERO);
    let mut findings: Vec<Finding> = Vec::new();
    for c in 0..bindings / ITERATORS {
        let thread = threads[(c % 4) as usize]?;
        let collection = Value::Int(c as i64);
        let mut push = |op, name: foresee_trace::SymId, values: &[Value]| {
            let event = Event::new(thread, op).with_target(name.0);
            batch.events.push(event.with_values(values, &mut batch.pool));
        };
        push(Op::Enter, add, &[collection]);
        for i in 0..ITERATORS {
            let it = Value::Int((bindings + c * ITERATORS + i) as i64);
            push(Op::Exit, iterator, &[collection, it]);
            push(Op::Enter, next, &[it]);
            push(Op::Enter, next, &[it]);
        }
        if batch.events.len() > 4000 || c + 1 == bindings / ITERATORS {
            let start = on_cpu();
            let out = Out::new(&mut findings, &mut candidates);
            search.events(&mut Pass { first, batch: &batch, names: &names, out })?;
            spent += on_cpu() - start;
            first += batch.events.len() as u64;
            batch.clear();
        }
    }
    let out = Out::new(&mut findings, &mut candidates);
    let analysed = search.finish(&mut End { names: &names, kept: None, out, room: Room::ALL })?;
    let outcome = &analysed[1].outcome;
    anyhow::ensure!(*outcome == foresee_trace::Outcome::Exhausted, "{}", analysed[1].statement);
    anyhow::ensure!(findings.is_empty(), "nothing is wrong with these iterators");
    Ok((first, spent))
}
