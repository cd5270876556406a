//! The observer under load: events a second accepted and looked at with 1, 8 and 64 senders on
//! loopback, the time from an event to what is said of it, and memory over a long run.
//!
//! Sockets, order, disk and analyses are those of `foresee observe`; observer and senders share this
//! machine, so on few cores they also share its time.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use foresee_observe::{
    Limits as Load, Observer, Program, ProgramId, SendOptions, Server, ServerOptions,
};
use foresee_predict::lattice::{Lattice, Limits};
use foresee_predict::{Analysis, Observed};
use foresee_spec::property::Compiled;
use foresee_spec::{parse, resolve};
use foresee_trace::generate::{Config, Generator, Written};
use foresee_trace::{
    Batch, Event, EventSource, Finding, Mode, Names, Op, Position, ReadError, Remarks, ThreadId,
    Trace, Validated, Value,
};

/// Ten operators over four of the variables.
const SPEC: &str = "init x0 = 0, x1 = 0, x2 = 0, x3 = 0\n\
    property p: start(x0 > 90) -> \
    (([start(x1 > 10), end(x2 > 95)) || once (x3 > 5)) && !(hist (x1 > 50)) && (x0 > 0 || prev (x2 == 0)))\n";

/// Events that every sender sends, again and again.
fn trace(variables: u32) -> anyhow::Result<Trace> {
    let events = 1 << 18;
    let config = Config {
        variables,
        values: Written::Repeating(100),
        unfinished: false,
        // Threads that are there from start to end, so that the trace can be played again.
        forked: 0.0,
        joined: 0.0,
        ..Config::bench(4, events, 1)
    };
    let mut trace = Trace::load(&mut Generator::new(config)?)?;
    // The next round begins as this one did.
    for (var, _) in trace.names.vars.iter() {
        let write = Event::new(ThreadId(0), Op::Write).with_target(var.0);
        trace.events.push(write.with_values(&[Value::Int(0)], &mut trace.pool));
    }
    Ok(trace)
}

/// When events were made, for the one who looks at them: how many there were, and when.
type Made = Arc<Mutex<VecDeque<(u64, Instant)>>>;

/// A trace, repeated up to a number of events or for a limited time.
struct Looped {
    trace: Arc<Trace>,
    at: usize,
    made: u64,
    most: u64,
    until: Option<Instant>,
    times: Made,
    /// How many events make a batch.
    batch: usize,
}

impl EventSource for Looped {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        // It ends where the trace does, so that nothing is left open.
        if self.at == 0 && (self.made >= self.most || is_over) {
            return Ok(false);
        }
        let end = (self.at + self.batch).min(self.trace.events.len());
        for &event in &self.trace.events[self.at..end] {
            let event = batch.pool.adopt(event, &self.trace.pool);
            batch.events.push(event);
        }
        self.at = if end == self.trace.events.len() { 0 } else { end };
        self.made += batch.events.len() as u64;
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.push_back((self.made, Instant::now()));
        Ok(true)
    }
    fn names(&self) -> &Names {
        &self.trace.names
    }
    fn names_mut(&mut self) -> &mut Names {
        unreachable!("what is sent gets no names")
    }
    fn position(&self, i: usize) -> Position {
        Position::Event(self.made + i as u64)
    }
    fn remarks(&self) -> &Remarks {
        &self.trace.remarks
    }
}

/// How often which latency was measured, to one part in sixteen. It takes the same room however
/// long it is measured, so that the memory of a long run is that of the observer.
#[derive(Clone)]
struct Latencies {
    counts: Vec<u64>,
}

impl Latencies {
    /// Parts of each power of two, in bits.
    const PARTS: u32 = 4;

    fn new() -> Latencies {
        Latencies { counts: vec![0; (65 - Self::PARTS as usize) << Self::PARTS] }
    }

    fn add(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) | 1 << Self::PARTS;
        let shift = nanos.ilog2() - Self::PARTS;
        let part = (nanos >> shift) as usize - (1 << Self::PARTS);
        self.counts[((shift as usize) << Self::PARTS) + part] += 1;
    }

    fn merge(&mut self, other: &Latencies) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, other)| *count += other);
    }

    /// The latency that this share of the events stayed below.
    fn percentile(&self, share: f64) -> String {
        let wanted = (self.counts.iter().sum::<u64>() as f64 * share) as u64;
        let mut below = 0;
        let at = self.counts.iter().position(|count| {
            below += count;
            below > wanted
        });
        let Some(at) = at else { return "-".to_owned() };
        let (shift, part) = (at >> Self::PARTS, at & ((1 << Self::PARTS) - 1));
        let nanos = ((1 << Self::PARTS) + part + 1) as f64 * 2f64.powi(shift as i32);
        format!("{:.1} ms", nanos / 1e6)
    }
}

/// Analyses programs as `foresee observe` does, and measures latencies.
struct TimedObserver {
    trace: Arc<Trace>,
    window: usize,
    events: AtomicU64,
    findings: AtomicU64,
    times: Mutex<std::collections::HashMap<String, Made>>,
    /// From the making of an event to the end of the batch that it was looked at in.
    latencies: Mutex<Latencies>,
}

impl TimedObserver {
    fn analyses(&self) -> anyhow::Result<Vec<Box<dyn Analysis>>> {
        let spec = parse(SPEC).spec;
        let names = &self.trace.names;
        let resolved = resolve(&spec, names).resolved;
        let compile = || Compiled::all(&spec).map_err(|e| anyhow::anyhow!("{e:?}"));
        let limits = Limits {
            window: Some(self.window),
            cores: 1,
            history: 1 << 20,
            kept_events: 1 << 20,
            ..Limits::default()
        };
        let mut all: Vec<Box<dyn Analysis>> =
            vec![Box::new(Observed::new(&spec, compile()?, &resolved, names))];
        if self.window > 1 {
            all.push(Box::new(Lattice::new(&spec, compile()?, &resolved, names, limits)));
        }
        Ok(all)
    }

    fn look(&self, program: &Arc<Program>) -> anyhow::Result<()> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let made = Arc::clone(&times[&program.name]);
        drop(times);
        let mut source = Validated::new(program.follow()?, Mode::Reject);
        let mut findings: Vec<Finding> = Vec::new();
        let mut last = 0;
        let mut latencies = Latencies::new();
        foresee_predict::run(&mut source, &mut self.analyses()?, &mut findings, &mut |events| {
            self.events.fetch_add(events - last, Ordering::Relaxed);
            last = events;
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(&(until, when)) = made.front().filter(|(until, _)| *until <= events) {
                let _ = until;
                latencies.add(when.elapsed());
                made.pop_front();
            }
        })?;
        self.findings.fetch_add(findings.len() as u64, Ordering::Relaxed);
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).merge(&latencies);
        Ok(())
    }
}

impl Observer for TimedObserver {
    fn observe(&self, program: &Arc<Program>) -> Result<(), String> {
        self.look(program).map_err(|error| format!("{error:#}"))
    }
    fn problem(&self, peer: &str, _: Option<&str>, what: &str) {
        println!("{peer}: {what}");
    }
}

/// The result of a load.
struct Measured {
    events: u64,
    /// Until the senders had sent, and until everything was looked at.
    accepted: Duration,
    done: Duration,
    latencies: Latencies,
}

struct Shape {
    senders: usize,
    events: u64,
    rate: Option<u64>,
    time: Option<Duration>,
    window: usize,
    variables: u32,
}

fn measure(shape: &Shape, mut watch: impl FnMut(u64)) -> anyhow::Result<Measured> {
    let trace = Arc::new(trace(shape.variables)?);
    let observer = Arc::new(TimedObserver {
        trace: Arc::clone(&trace),
        window: shape.window,
        events: AtomicU64::new(0),
        findings: AtomicU64::new(0),
        times: Mutex::default(),
        latencies: Mutex::new(Latencies::new()),
    });
    let options = ServerOptions {
        listen: vec!["127.0.0.1:0".parse().map_err(anyhow::Error::msg)?],
        token: None,
        keep: None,
        limits: Load { memory: 64 << 20, disk: 2 << 30, ..Load::default() },
    };
    let server = Server::start(options, Arc::clone(&observer) as Arc<dyn Observer>)?;
    let to = server.addresses()[0].clone();
    let start = Instant::now();
    let mut senders = Vec::new();
    for number in 0..shape.senders {
        let (times, name) = (Made::default(), number.to_string());
        let mut all = observer.times.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.clone(), Arc::clone(&times));
        drop(all);
        let options = SendOptions {
            to: to.clone(),
            token: Vec::new(),
            program: ProgramId::random(),
            name,
            connections: 1,
            frame_events: 8192,
            rate: shape.rate.map(|rate| rate / shape.senders as u64),
            shuffle: None,
            retry: Duration::ZERO,
        };
        let (trace, most) = (Arc::clone(&trace), shape.events / shape.senders as u64);
        let until = shape.time.map(|time| Instant::now() + time);
        let batch = options.rate.map_or(8192, |rate| (rate as usize / 200).clamp(1, 8192));
        senders.push(std::thread::spawn(move || {
            let mut open = || {
                let (trace, times) = (Arc::clone(&trace), Arc::clone(&times));
                let looped = Looped { trace, at: 0, made: 0, most, until, times, batch };
                Ok(Box::new(looped) as Box<dyn EventSource>)
            };
            foresee_observe::send(&mut open, &options)
        }));
    }
    while !senders.iter().all(|sender| sender.is_finished()) {
        std::thread::sleep(Duration::from_millis(if shape.time.is_some() { 1000 } else { 2 }));
        watch(observer.events.load(Ordering::Relaxed));
    }
    let accepted = start.elapsed();
    let mut events = 0;
    for sender in senders {
        let sent = sender.join().map_err(|_| anyhow::anyhow!("a sender panicked"))?;
        events += sent?.events;
    }
    ensure!(server.wait(shape.senders as u64, Duration::from_secs(600)), "no end");
    let done = start.elapsed();
    ensure!(observer.events.load(Ordering::Relaxed) == events, "events are missing");
    let latencies = observer.latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(Measured { events, accepted, done, latencies })
}

pub(crate) fn run(events: u64) -> anyhow::Result<()> {
    println!(
        "\n| senders | window | events | accepted /s | end to end /s | offered /s | p50 | p99 |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|");
    for window in [1, 256] {
        for senders in [1, 8, 64] {
            let shape = Shape { senders, events, rate: None, time: None, window, variables: 1000 };
            let full = measure(&shape, |_| {})?;
            let per_second = |time: Duration| full.events as f64 / time.as_secs_f64();
            // At half of what it can do, for as long.
            let half = (per_second(full.done) / 2.0) as u64;
            let paced = Shape { rate: Some(half), events: shape.events / 2, ..shape };
            let paced = measure(&paced, |_| {})?;
            println!(
                "| {senders} | {window} | {} | {:.2} M | {:.2} M | {:.2} M | {} | {} |",
                full.events,
                per_second(full.accepted) / 1e6,
                per_second(full.done) / 1e6,
                half as f64 / 1e6,
                paced.latencies.percentile(0.5),
                paced.latencies.percentile(0.99),
            );
        }
    }
    Ok(())
}

/// Steady load for this many seconds, with the memory used at every twentieth of that time.
pub(crate) fn soak(seconds: u64, rate: u64) -> anyhow::Result<()> {
    println!("\n| seconds | events | resident |\n|--:|--:|--:|");
    let start = Instant::now();
    let mut shown = 0;
    let shape = Shape {
        senders: 2,
        events: u64::MAX,
        rate: Some(rate),
        time: Some(Duration::from_secs(seconds)),
        window: 256,
        variables: 1000,
    };
    let measured = measure(&shape, |events| {
        let part = start.elapsed().as_secs() * 20 / seconds.max(1);
        if part > shown {
            shown = part;
            println!("| {} | {events} | {:.1} MB |", start.elapsed().as_secs(), resident_mb());
        }
    })
    .context("soak")?;
    let (p50, p99) = (measured.latencies.percentile(0.5), measured.latencies.percentile(0.99));
    println!("\n{} events, p50 {p50}, p99 {p99}", measured.events);
    Ok(())
}

fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) as f64 / 1024.0
}
