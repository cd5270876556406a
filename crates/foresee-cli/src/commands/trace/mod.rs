//! `foresee trace`: inspects, validates, converts and generates traces.

mod convert;
mod info;
mod show;
mod witness;

use anyhow::Context;
use foresee_support::count::count;
use foresee_trace::{Batch, EventSource};

use crate::args::{InputArgs, MemoryArgs, OutputArgs, TraceArgs, TraceCommand};
use crate::output::Sink;
use crate::{input, output, progress};

pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<u8> {
    match &args.command {
        TraceCommand::Info { input, memory, format, top, output } => {
            info::run((input, memory), *format, *top, output)
        }
        TraceCommand::Validate { input, memory, output } => validate((input, memory), output),
        TraceCommand::Convert { input, memory, output, to, witness, finding, reader } => {
            let witness = witness.as_deref().map(|report| (report, finding.as_deref()));
            convert::convert((input, memory), output, to, witness, *reader)
        }
        TraceCommand::Generate(args) => convert::generate(args),
        TraceCommand::Show { input, memory, around, rows, svg, output, order } => {
            let range = show::Range { around: *around, rows: *rows };
            show::run((input, memory), range, svg.as_deref(), *order, output)
        }
    }
}

fn validate((args, memory): (&InputArgs, &MemoryArgs), output: &OutputArgs) -> anyhow::Result<u8> {
    let mut to = Sink::new(output)?;
    let mut source = input::open(args, memory)?;
    let events = for_each_batch(&mut source, "validating", |_, _| Ok(()))
        .with_context(|| input::name(args))?;
    for warning in &source.remarks().warnings {
        output::note(warning);
    }
    let name = input::name(args);
    let verdict = match (source.repairs(), events) {
        (0, 0) => format!("{name}: well-formed, but empty\n"),
        (0, _) => format!("{name}: well-formed, {}\n", count(events, "event")),
        (repairs, _) => {
            let (repairs, events) = (count(repairs, "repair"), count(events, "event"));
            format!("{name}: well-formed after {repairs}, {events}\n")
        }
    };
    to.print(&verdict)?;
    to.finish()?;
    Ok(cut_short(source.remarks()))
}

/// Notes that a trace is incomplete; returns exit status 3 for one that is, 0 otherwise.
fn cut_short(remarks: &foresee_trace::Remarks) -> u8 {
    if let Some(why) = &remarks.cut_short {
        output::note(&format!("the trace was cut short: {why}"));
    }
    if let Some(why) = &remarks.partial {
        output::note(&format!("the trace is incomplete: {why}"));
    }
    if remarks.cut_short.is_some() || remarks.partial.is_some() { 3 } else { 0 }
}

/// Reads a trace to its end; returns the number of events.
fn for_each_batch<S: EventSource>(
    source: &mut S,
    what: &'static str,
    mut each: impl FnMut(&Batch, &S) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let bar = progress::events(what);
    let mut batch = Batch::default();
    let mut events = 0;
    while source.next_batch(&mut batch)? {
        events += batch.events.len() as u64;
        each(&batch, source)?;
        bar.set_position(events);
    }
    bar.finish_and_clear();
    Ok(events)
}
