//! Measures how fast each format is read, on one core, from memory.
//!
//! Counts processor time where the system tells it, so that other work on the machine disturbs little.
//!
//! `cargo run --release -p foresee-formats --example read_speed -- [millions of events] [format]`

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Instant;

use foresee_formats::{FORMATS, Format};
use foresee_trace::{Batch, Event, EventSource, Op, Trace, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions = std::env::args().nth(1).map_or(Ok(4), |arg| arg.parse::<usize>())?;
    let only = std::env::args().nth(2);
    let (mut out, began) = (std::io::stdout(), Instant::now());
    for (what, values) in [("without values", false), ("with values", true)] {
        let trace = typical(millions * 1_000_000, values)?;
        writeln!(out, "{millions} million events {what}")?;
        for format in FORMATS.iter().filter(|f| only.as_deref().is_none_or(|o| o == f.name())) {
            let bytes = written(&trace, *format)?;
            let mut best = f64::INFINITY;
            for _ in 0..20 {
                let start = seconds(began);
                let mut source = format.read(Box::new(&bytes[..]))?;
                let (mut batch, mut count) = (Batch::default(), 0);
                while source.next_batch(&mut batch)? {
                    count += batch.events.len();
                }
                assert_eq!(count, trace.events.len());
                best = best.min(seconds(began) - start);
            }
            writeln!(
                out,
                "{:>8}: {:6.1} M events/s, {:5.1} bytes/event",
                format.name(),
                trace.events.len() as f64 / best / 1e6,
                bytes.len() as f64 / trace.events.len() as f64
            )?;
        }
    }
    Ok(())
}

/// Processor time of this thread, or else time since the beginning.
fn seconds(began: Instant) -> f64 {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = schedule.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    nanoseconds.map_or_else(|| began.elapsed().as_secs_f64(), |n| n / 1e9)
}

/// Sixteen threads, a thousand variables, five hundred locations, one event in ten a lock.
fn typical(events: usize, values: bool) -> Result<Trace, Box<dyn std::error::Error>> {
    let mut trace = Trace::default();
    let mut state = 1u64;
    let mut random = |n: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..events {
        let thread = trace.names.thread(&format!("T{}", random(16)))?;
        let loc = trace.names.locs.intern(&random(500).to_string())?;
        let event = match random(20) {
            0 => Event::new(thread, Op::Acquire)
                .with_target(trace.names.locks.intern(&format!("L{}", random(50)))?.0),
            1 => Event::new(thread, Op::Release)
                .with_target(trace.names.locks.intern(&format!("L{}", random(50)))?.0),
            kind => {
                let op = if kind % 2 == 0 { Op::Read } else { Op::Write };
                let var = trace.names.vars.intern(&format!("V{}", random(1000)))?;
                let event = Event::new(thread, op).with_target(var.0);
                match values {
                    true => {
                        event.with_values(&[Value::Int(random(100_000) as i64)], &mut trace.pool)
                    }
                    false => event,
                }
            }
        };
        trace.events.push(event.with_loc(loc));
    }
    Ok(trace)
}

fn written(trace: &Trace, format: &dyn Format) -> std::io::Result<Vec<u8>> {
    let bytes = Rc::new(RefCell::new(Vec::new()));
    let mut sink = format.write(Box::new(Shared(Rc::clone(&bytes))));
    let (mut source, mut batch) = (trace.source(), Batch::default());
    while source.next_batch(&mut batch).map_err(std::io::Error::other)? {
        sink.write_batch(&batch, source.names())?;
    }
    sink.finish(source.names(), source.remarks())?;
    Ok(bytes.take())
}

struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
