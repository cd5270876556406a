//! What the test for monitorability costs beside the monitor of the observed run, and how it grows
//! with the kinds of steps and the threads. Everything relevant happens under one lock, so nothing
//! is unordered and the whole trace is looked at.

use std::time::Instant;

use foresee_predict::{Analysis, Monitorability, MonitorabilityOptions, Observed};
use foresee_spec::property::Compiled;
use foresee_trace::{Event, Mode, Op, ThreadId, Trace, Validated};

const EVENTS: usize = 1_000_000;

pub(crate) fn run() -> anyhow::Result<()> {
    println!(
        "\n| relevant | kinds | threads | observed run | with the warning | ratio | with the exact test ready | ratio |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (rare, kinds, threads) in [
        (32, 2, 4),
        (32, 2, 16),
        (32, 2, 64),
        (2, 2, 4),
        (2, 16, 4),
        (2, 48, 4),
        (2, 2, 16),
        (2, 16, 16),
        (2, 48, 16),
        (2, 2, 64),
        (2, 16, 64),
        (2, 48, 64),
    ] {
        let trace = locked(rare, kinds, threads)?;
        let [observed, warned, exact] = measure(&trace, kinds)?;
        let rate = |seconds: f64| format!("{:.1} M/s", EVENTS as f64 / seconds / 1e6);
        println!(
            "| one in {rare} | {kinds} | {threads} | {} | {} | {:.2} | {} | {:.2} |",
            rate(observed),
            rate(warned),
            warned / observed,
            rate(exact),
            exact / observed
        );
    }
    Ok(())
}

/// Sections of one lock: one relevant event, and then accesses of the thread's own variables.
fn locked(rare: usize, kinds: usize, threads: u32) -> anyhow::Result<Trace> {
    let mut trace = Trace::default();
    let lock = trace.names.locks.intern("l")?;
    let kinds: Vec<_> =
        (0..kinds).map(|k| trace.names.syms.intern(&format!("e{k}"))).collect::<Result<_, _>>()?;
    let mut own = Vec::new();
    for t in 0..threads {
        trace.names.thread(&format!("T{t}"))?;
        own.push(trace.names.vars.intern(&format!("x{t}"))?);
    }
    let mut rng = fastrand::Rng::with_seed(1);
    let mut section = 0;
    while trace.events.len() < EVENTS {
        let t = ThreadId(rng.u32(..threads));
        trace.events.push(Event::new(t, Op::Acquire).with_target(lock.0));
        // The first two kinds open and close; others come while nothing is open.
        let names = match section % 2 {
            0 => vec![kinds[0], kinds[1]],
            _ => vec![kinds[rng.usize(..kinds.len().max(2)).max(1)]],
        };
        let relevant = names.len();
        trace.events.extend(names.iter().map(|n| Event::new(t, Op::Event).with_target(n.0)));
        trace.events.push(Event::new(t, Op::Release).with_target(lock.0));
        for _ in 0..(relevant * rare).saturating_sub(relevant + 2) {
            let op = if rng.bool() { Op::Read } else { Op::Write };
            trace.events.push(Event::new(t, op).with_target(own[t.0 as usize].0));
        }
        section += 1;
    }
    trace.events.truncate(EVENTS);
    Ok(trace)
}

/// Seconds of a pass with the monitor alone, with the warning, and with the exact test.
fn measure(trace: &Trace, kinds: usize) -> anyhow::Result<[f64; 3]> {
    let others: Vec<String> = (2..kinds).map(|k| format!(", event(e{k}) -> bad")).collect();
    let text = format!(
        "automaton p {{ initial idle; idle: event(e0) -> busy; \
         busy: event(e1) -> idle, event(e0) -> bad{}; }}",
        others.concat()
    );
    let spec = foresee_spec::parse(&text).spec;
    let resolved = foresee_spec::resolve(&spec, &trace.names).resolved;
    let compiled = || Compiled::all(&spec).map_err(|e| anyhow::anyhow!("{e:?}"));
    let mut best = [f64::MAX; 3];
    for _ in 0..5 {
        for (way, best) in best.iter_mut().enumerate() {
            let observed = Observed::new(&spec, compiled()?, &resolved, &trace.names);
            let mut analyses: Vec<Box<dyn Analysis>> = vec![Box::new(observed)];
            if way > 0 {
                let is_asked = way == 2;
                let options = MonitorabilityOptions { is_asked, ..Default::default() };
                let names = &trace.names;
                let own = Monitorability::new(&spec, compiled()?, &resolved, names, options);
                analyses.push(Box::new(own));
            }
            let mut source = Validated::new(trace.source(), Mode::Reject);
            let mut findings = Vec::new();
            let start = Instant::now();
            foresee_predict::run(&mut source, &mut analyses, &mut findings, &mut |_| {})?;
            *best = best.min(start.elapsed().as_secs_f64());
            anyhow::ensure!(findings.is_empty(), "nothing is wrong with this trace");
        }
    }
    Ok(best)
}
