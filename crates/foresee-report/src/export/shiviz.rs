//! For ShiViz, which draws space-time diagrams: two lines an event, the thread with its vector clock,
//! and what it does.
//!
//! ShiViz reads this with its default expression, `(?<host>\S*) (?<clock>{.*})\n(?<event>.*)`.

use std::io::{self, BufWriter, Write};

use serde_json::{Map, Value as Json};

use foresee_causality::{Clocks, Order};
use foresee_trace::{Batch, Event, EventSink, Id as _, Names, Remarks, ThreadId, Visible};

use super::Export;
use crate::json::visible;

/// The default log format of ShiViz.
#[derive(Clone, Copy, Debug)]
pub struct ShiViz;

impl Export for ShiViz {
    fn name(&self) -> &'static str {
        "shiviz"
    }

    fn about(&self) -> &'static str {
        "events with vector clocks, for ShiViz"
    }

    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w> {
        let clocks = Clocks::new(Order::Mazurkiewicz);
        Box::new(Writer { out: BufWriter::new(output), clocks })
    }
}

struct Writer<'w> {
    out: BufWriter<Box<dyn Write + 'w>>,
    clocks: Clocks,
}

impl Writer<'_> {
    fn event(&mut self, event: &Event, batch: &Batch, names: &Names) -> io::Result<()> {
        let stamp = self.clocks.event(event).map_err(io::Error::other)?;
        let mut clock = Map::new();
        for t in 0..names.threads.len() {
            let thread = ThreadId::new(t);
            let count = self.clocks.count(&stamp, thread)[0];
            if count > 0 {
                clock.insert(host(thread, names), Json::from(count));
            }
        }
        let clock = visible(&Json::Object(clock).to_string());
        writeln!(self.out, "{} {clock}", host(event.thread(), names))?;
        let text = event.describe(names, &batch.pool).to_string();
        let place = names.locs.get(event.loc());
        let gap = if place.is_empty() { "" } else { " " };
        writeln!(self.out, "{}{gap}{}", Visible(&text), Visible(place))
    }
}

/// The name of a thread as one word.
fn host(thread: ThreadId, names: &Names) -> String {
    let name = Visible(names.threads.get(thread)).to_string();
    let word: String = name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
    if word.is_empty() { format!("thread{}", thread.index()) } else { word }
}

impl EventSink for Writer<'_> {
    fn write_batch(&mut self, batch: &Batch, names: &Names) -> io::Result<()> {
        batch.events.iter().try_for_each(|event| self.event(event, batch, names))?;
        self.clocks.forget_old(&[]);
        Ok(())
    }

    fn finish(&mut self, _: &Names, _: &Remarks) -> io::Result<()> {
        self.out.flush()
    }
}
