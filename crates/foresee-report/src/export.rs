//! Traces for the viewers of other projects: written, never read.
//!
//! To add one, write a type that is an [`Export`] and add it to [`EXPORTS`].

mod perfetto;
mod shiviz;

use std::io::Write;

use foresee_trace::EventSink;

pub use perfetto::Perfetto;
pub use shiviz::ShiViz;

/// A format that other tools show.
pub trait Export: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What shows it, in a line.
    fn about(&self) -> &'static str;

    /// Starts writing. Nothing is guaranteed to be written before `finish`.
    fn write<'w>(&self, output: Box<dyn Write + 'w>) -> Box<dyn EventSink + 'w>;
}

/// Every such format.
pub const EXPORTS: &[&dyn Export] = &[&Perfetto, &ShiViz];

/// The format with this name.
///
/// ```
/// assert!(foresee_report::export::by_name("perfetto").is_some());
/// assert!(foresee_report::export::by_name("std").is_none(), "this is a trace format");
/// ```
pub fn by_name(name: &str) -> Option<&'static dyn Export> {
    EXPORTS.iter().copied().find(|export| export.name() == name)
}

#[cfg(test)]
mod tests {
    use foresee_trace::{Batch, Event, EventSource as _, Op, Trace, Value};

    use super::*;

    /// A trace with hostile names, calls that do not match, and a lock that is kept.
    fn trace() -> Trace {
        let mut trace = Trace::default();
        let names = &mut trace.names;
        let main = names.thread("main").expect("there are few names");
        let other = names.thread("T \"1\"\u{1b}[2J\n<b>").expect("there are few names");
        let x = names.vars.intern("x").expect("there are few names");
        let m = names.locks.intern("m").expect("there are few names");
        let f = names.syms.intern("f").expect("there are few names");
        let loc = names.locs.intern("a.c:3(f)").expect("there are few names");
        let fork = Event::new(main, Op::Fork).with_target(other.0);
        let write = Event::new(other, Op::Write).with_target(x.0).with_loc(loc);
        let write = write.with_values(&[Value::Int(1)], &mut trace.pool);
        trace.events = vec![
            fork,
            Event::new(other, Op::Exit).with_target(f.0),
            Event::new(other, Op::Enter).with_target(f.0),
            Event::new(other, Op::Acquire).with_target(m.0),
            write,
            Event::new(main, Op::Read).with_target(x.0),
        ];
        trace
    }

    fn written(export: &dyn Export) -> String {
        let trace = trace();
        let mut text = Vec::new();
        let mut sink = export.write(Box::new(&mut text));
        let (mut source, mut batch) = (trace.source(), Batch::default());
        while source.next_batch(&mut batch).expect("memory can be read") {
            sink.write_batch(&batch, source.names()).expect("memory can be written");
        }
        sink.finish(source.names(), source.remarks()).expect("memory can be written");
        drop(sink);
        String::from_utf8(text).expect("it is text")
    }

    #[test]
    fn perfetto_gets_nested_slices_and_flows() {
        let text = written(&Perfetto);
        assert!(!text.contains('\u{1b}'), "{text}");
        let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let events = json["traceEvents"].as_array().expect("there are events");
        let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!(count("B"), count("E"), "every call ends: {text}");
        assert_eq!(count("b"), count("e"), "every lock is given back: {text}");
        assert_eq!((count("M"), count("B"), count("b")), (2, 1, 1), "{text}");
        // The fork and the write have effects in the other thread.
        assert_eq!((count("s"), count("f")), (2, 2), "{text}");
    }

    #[test]
    fn shiviz_gets_clocks_that_grow_by_one() {
        let text = written(&ShiViz);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 12, "two lines an event: {text}");
        let (host, clock) = lines[10].split_once(' ').expect("a host and its clock");
        let clock: serde_json::Value = serde_json::from_str(clock).expect("it is JSON");
        assert_eq!((host, &clock["main"]), ("main", &2.into()), "{text}");
        assert_eq!(lines[11], "r(x)");
        assert_eq!(lines[9], "w(x)=1 a.c:3(f)");
        let other = lines[2].split_once(' ').expect("a host and its clock").0;
        assert_eq!(clock[other], 4, "the write was the fourth event of its thread: {text}");
    }
}
