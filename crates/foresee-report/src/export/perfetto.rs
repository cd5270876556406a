//! For Perfetto and Chrome's `about:tracing`: a track for each thread, calls as nested slices, locks
//! as spans, and arrows from causes to effects.
//!
//! Traces have no clock, so an event takes ten microseconds, and the number of an event is a tenth
//! of its time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufWriter, Write};

use serde_json::{Value as Json, json};

use foresee_causality::{Clocks, Epoch, Order};
use foresee_trace::{Batch, Event, EventSink, LockEdge, LockId, Names, Op, Remarks, ThreadId};

use super::Export;
use crate::json::visible;

/// The JSON format of Chrome's trace viewer, which Perfetto reads.
#[derive(Clone, Copy, Debug)]
pub struct Perfetto;

impl Export for Perfetto {
    fn name(&self) -> &'static str {
        "perfetto"
    }

    fn about(&self) -> &'static str {
        "trace events in JSON, for ui.perfetto.dev and chrome://tracing"
    }

    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w> {
        Box::new(Writer {
            out: BufWriter::new(output),
            clocks: Clocks::new(Order::Mazurkiewicz),
            events: HashMap::new(),
            threads: HashMap::new(),
            held: HashMap::new(),
            next: 0,
            flows: 0,
            is_first: true,
        })
    }
}

/// Microseconds from one event to the next.
const STEP: u64 = 10;

struct Writer<'w> {
    out: BufWriter<Box<dyn Write + 'w>>,
    clocks: Clocks,
    /// The number of each event.
    events: HashMap<Epoch, u64>,
    /// The calls that each thread is in.
    threads: HashMap<ThreadId, usize>,
    /// The locks that are held.
    held: HashMap<(ThreadId, LockId), u64>,
    next: u64,
    flows: u64,
    is_first: bool,
}

impl Writer<'_> {
    fn put(&mut self, event: &Json) -> io::Result<()> {
        let before = if self.is_first { "{\"traceEvents\":[\n" } else { ",\n" };
        self.is_first = false;
        write!(self.out, "{before}{}", visible(&event.to_string()))
    }

    fn event(&mut self, event: &Event, batch: &Batch, names: &Names) -> io::Result<()> {
        let index = self.next;
        self.next += 1;
        let (at, thread) = (index * STEP, event.thread());
        let stamp = self.clocks.event(event).map_err(io::Error::other)?;
        let tid = thread.0 + 1;
        if let Entry::Vacant(unknown) = self.threads.entry(thread) {
            unknown.insert(0);
            let name = names.threads.get(thread);
            self.put(&json!({"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}))?;
        }
        let text = event.describe(names, &batch.pool).to_string();
        let place = names.locs.get(event.loc());
        let slice = |phase: &str, at: u64, name: &str| {
            json!({"ph": phase, "pid": 1, "tid": tid, "ts": at, "name": name, "cat": event.op().word(),
                   "args": {"event": index, "place": place}})
        };
        let depth = self.threads.get(&thread).copied().unwrap_or(0);
        match event.op() {
            Op::Enter => {
                self.threads.insert(thread, depth + 1);
                self.put(&slice("B", at, event.target_name(names).unwrap_or(&text)))?;
            }
            Op::Exit if depth > 0 => {
                self.threads.insert(thread, depth - 1);
                self.put(&slice("E", at + STEP - 1, event.target_name(names).unwrap_or(&text)))?;
            }
            _ => {
                let mut it = slice("X", at, &text);
                it["dur"] = Json::from(STEP - 2);
                self.put(&it)?;
            }
        }
        if let Some(LockEdge { lock, takes, .. }) = event.lock_edge() {
            let known = self.held.contains_key(&(thread, lock));
            if takes && !known {
                self.held.insert((thread, lock), index);
                self.span("b", thread, lock, at, names)?;
            } else if !takes && self.held.remove(&(thread, lock)).is_some() {
                self.span("e", thread, lock, at, names)?;
            }
        }
        let known = |cause: &Epoch| Some((*self.events.get(cause)?, cause.thread));
        let causes: Vec<(u64, ThreadId)> = self.clocks.causes().iter().filter_map(known).collect();
        for (cause, by) in causes {
            self.flows += 1;
            let end = |phase: &str, tid: u32, at: u64| {
                json!({"ph": phase, "bp": "e", "id": self.flows, "pid": 1, "tid": tid, "ts": at + 1,
                       "name": "cause", "cat": "cause"})
            };
            let (from, to) = (end("s", by.0 + 1, cause * STEP), end("f", tid, at));
            self.put(&from)?;
            self.put(&to)?;
        }
        self.events.insert(stamp.epoch(), index);
        Ok(())
    }

    /// The beginning or the end of the time for which a lock is held.
    fn span(
        &mut self,
        phase: &str,
        thread: ThreadId,
        lock: LockId,
        at: u64,
        names: &Names,
    ) -> io::Result<()> {
        let id = format!("{}.{}", thread.0, lock.0);
        let name = format!("{} of {}", names.locks.get(lock), names.threads.get(thread));
        self.put(&json!({"ph": phase, "cat": "lock", "id": id, "pid": 1, "tid": thread.0 + 1,
                         "ts": at, "name": name}))
    }
}

impl EventSink for Writer<'_> {
    fn write_batch(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        batch.events.iter().try_for_each(|event| self.event(event, batch, names))?;
        self.clocks.forget_old(&[]);
        Ok(())
    }

    fn finish(&mut self, names: &Names, _: &Remarks) -> io::Result<()> {
        let end = self.next * STEP;
        let mut held: Vec<(ThreadId, LockId)> = self.held.drain().map(|(key, _)| key).collect();
        held.sort_unstable_by_key(|(thread, lock)| (thread.0, lock.0));
        for (thread, lock) in held {
            self.span("e", thread, lock, end, names)?;
        }
        let mut open: Vec<(ThreadId, usize)> = self.threads.drain().collect();
        open.sort_unstable_by_key(|(thread, _)| thread.0);
        for (thread, depth) in open {
            for _ in 0..depth {
                self.put(&json!({"ph": "E", "pid": 1, "tid": thread.0 + 1, "ts": end}))?;
            }
        }
        if self.is_first {
            write!(self.out, "{{\"traceEvents\":[")?;
        }
        writeln!(self.out, "\n],\"displayTimeUnit\":\"ns\"}}")?;
        self.out.flush()
    }
}
