//! The search for patterns in correct reorderings: what it costs on long traces, found and not
//! found, and with very many bindings. The baseline is a plain pass with Mazurkiewicz clocks, which
//! every prediction needs at least.

use std::time::Instant;

use foresee_causality::{Clocks, Order};
use foresee_predict::reorder::{Sliced, SlicedLimits};
use foresee_predict::{Analysis, Stat};
use foresee_spec::property::Compiled;
use foresee_trace::generate::{Config, Generator};
use foresee_trace::{Event, Names, Op, ThreadId, Trace, Value};

/// What is planted near the end of a trace, under a lock that nothing else uses.
#[derive(Clone, Copy)]
enum Planted {
    /// Two sections that can swap.
    Found,
    /// The same with a data dependence in them, which shows only when they are swapped.
    Guarded,
    /// The same with a data dependence that clocks see.
    Ordered,
}

pub(crate) fn run(sizes: &[u64], threads: &[u32]) -> anyhow::Result<()> {
    println!(
        "\n| whole-trace pattern | threads | events | pass | search | clocks alone | all, ratio |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for &events in sizes {
        for &threads in threads {
            let base = Trace::load(&mut Generator::new(Config::bench(threads, events, 1))?)?;
            let clocks = clocks_alone(&base)?;
            for (name, planted) in [
                ("found", Planted::Found),
                ("not found, ordered", Planted::Ordered),
                ("not found, guarded", Planted::Guarded),
            ] {
                let mut trace = base.clone();
                plant(&mut trace, planted)?;
                let text = "pattern p: event(close) .. event(use)";
                let run = search(&trace, text, SlicedLimits::default())?;
                let expected = usize::from(matches!(planted, Planted::Found));
                anyhow::ensure!(run.found == expected, "{name}: {} found", run.found);
                println!(
                    "| {name} | {threads} | {} M | {:.2} s | {:.3} s | {:.2} s | {:.1} |",
                    events / 1_000_000,
                    run.pass,
                    run.search,
                    clocks,
                    (run.pass + run.search) / clocks
                );
            }
        }
    }
    println!(
        "\n| bindings in one hot lock | threads | events | look back | pass | search | tuples | found |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for threads in [2, 8] {
        let trace = hot_lock(threads, 125_000)?;
        for look_back in [100, 200, 1000] {
            let limits = SlicedLimits { look_back, ..SlicedLimits::default() };
            let run = search(&trace, "pattern p(i): event(close, i) .. event(use, i)", limits)?;
            println!(
                "| 125000 | {threads} | 1 M | {look_back} | {:.2} s | {:.2} s | {} | {} |",
                run.pass, run.search, run.tuples, run.found
            );
        }
    }
    Ok(())
}

fn clocks_alone(trace: &Trace) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
    for stretch in trace.events.chunks(8192) {
        for event in stretch {
            std::hint::black_box(clocks.event(event)?);
        }
        clocks.forget_old(&[]);
    }
    Ok(start.elapsed().as_secs_f64())
}

struct Run {
    pass: f64,
    search: f64,
    found: usize,
    tuples: u64,
}

fn search(trace: &Trace, text: &str, limits: SlicedLimits) -> anyhow::Result<Run> {
    let parsed = foresee_spec::parse(text);
    let resolved = foresee_spec::resolve(&parsed.spec, &trace.names).resolved;
    let compiled = Compiled::all(&parsed.spec).map_err(|e| anyhow::anyhow!("{e:?}"))?;
    let sliced = Sliced::new(&parsed.spec, compiled, &resolved, &trace.names, limits);
    let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(sliced)];
    let mut findings = Vec::new();
    let start = Instant::now();
    let mut pass = 0.0;
    let events = trace.events.len() as u64;
    let summary =
        foresee_predict::run(&mut trace.source(), &mut analyses, &mut findings, &mut |n| {
            if n == events {
                pass = start.elapsed().as_secs_f64();
            }
        })?;
    let all = start.elapsed().as_secs_f64();
    let tuples = summary.analysed[0].stats.iter().find(|(name, _)| *name == "tuples_tried");
    let tuples = match tuples {
        Some((_, Stat::Count(n))) => *n,
        _ => 0,
    };
    let found = summary.candidates[0].reordered.len();
    Ok(Run { pass, search: all - pass, found, tuples })
}

/// A critical section with a named event in it.
fn section(
    names: &mut Names,
    thread: ThreadId,
    access: Option<(Op, &str)>,
    name: &str,
    named_first: bool,
) -> anyhow::Result<Vec<Event>> {
    let lock = names.locks.intern("planted")?;
    let mut events = vec![Event::new(thread, Op::Acquire).with_target(lock.0)];
    if let Some((op, variable)) = access {
        events.push(Event::new(thread, op).with_target(names.vars.intern(variable)?.0));
    }
    let at = if named_first { 1 } else { events.len() };
    events.insert(at, Event::new(thread, Op::Event).with_target(names.syms.intern(name)?.0));
    events.push(Event::new(thread, Op::Release).with_target(lock.0));
    Ok(events)
}

/// Puts two sections of different threads near the end of a trace, where both are alive.
fn plant(trace: &mut Trace, planted: Planted) -> anyhow::Result<()> {
    let at = trace.events.len() / 10 * 9;
    let user = trace.events[at].thread();
    let other = trace.events[at..].iter().find(|e| e.thread() != user);
    let closer = other.map_or(user, |event| event.thread());
    let access = |op| match planted {
        Planted::Found => None,
        Planted::Guarded | Planted::Ordered => Some((op, "state")),
    };
    let (first, second) = match planted {
        // The first one writes what the second reads.
        Planted::Ordered => (access(Op::Write), access(Op::Read)),
        // The first one reads what the second writes.
        _ => (access(Op::Read), access(Op::Write)),
    };
    let mut events =
        section(&mut trace.names, user, first, "use", matches!(planted, Planted::Ordered))?;
    events.extend(section(&mut trace.names, closer, second, "close", false)?);
    // The user is in the middle of something; the closer's next event is not far.
    let place = trace.events[at..].iter().position(|e| e.thread() == closer).map_or(at, |d| at + d);
    trace.events.splice(place..place, events);
    Ok(())
}

/// Pairs of sections of one lock: use of an object that is open, and its closing; in the last
/// four the use does not look.
fn hot_lock(threads: u32, bindings: u32) -> anyhow::Result<Trace> {
    let mut trace = Trace::default();
    let lock = trace.names.locks.intern("l")?;
    let (use_, close) = (trace.names.syms.intern("use")?, trace.names.syms.intern("close")?);
    for t in 0..threads {
        trace.names.thread(&format!("T{t}"))?;
    }
    let vars: Vec<u32> = (0..64)
        .map(|x| trace.names.vars.intern(&format!("x{x}")).map(|x| x.0))
        .collect::<Result<_, _>>()?;
    for i in 0..bindings {
        for (turn, name, op) in [(0, use_, Op::Read), (1, close, Op::Write)] {
            let thread = ThreadId((i + turn) % threads);
            let event = |op: Op| Event::new(thread, op);
            trace.events.push(event(Op::Acquire).with_target(lock.0));
            let looks = i + 4 < bindings || op == Op::Write;
            let x = if looks { vars[(i % 64) as usize] } else { vars[((i + 32) % 64) as usize] };
            trace.events.push(event(op).with_target(x));
            let value = [Value::Int(i64::from(i))];
            let named = event(Op::Event).with_target(name.0).with_values(&value, &mut trace.pool);
            trace.events.push(named);
            trace.events.push(event(Op::Release).with_target(lock.0));
        }
    }
    Ok(trace)
}
