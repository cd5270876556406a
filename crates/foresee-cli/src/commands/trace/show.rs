//! `foresee trace show`: draws a column per thread and arrows from causes to effects.

use std::path::Path;

use anyhow::Context;
use foresee_causality::Order;
use foresee_report::Diagram;

use crate::args::{InputArgs, MemoryArgs, OrderArg, OutputArgs};
use crate::output::Sink;
use crate::{input, output};

/// Which events are drawn.
pub(crate) struct Range {
    pub(crate) around: Option<u64>,
    pub(crate) rows: u64,
}

pub(crate) fn run(
    (args, memory): (&InputArgs, &MemoryArgs),
    Range { around, rows }: Range,
    svg: Option<&Path>,
    order: OrderArg,
    output: &OutputArgs,
) -> anyhow::Result<u8> {
    let mut to = Sink::new(output)?;
    let start = around.map_or(0, |event| event.saturating_sub(rows / 2));
    let order = match order {
        OrderArg::Mazurkiewicz => Order::Mazurkiewicz,
        OrderArg::ReadsFrom => Order::ReadsFrom,
        OrderArg::SyncOnly => Order::SyncOnly,
    };
    let mut source = input::open(args, memory)?;
    let range = start..start.saturating_add(rows);
    let diagram =
        Diagram::of(&mut source, range.clone(), order).with_context(|| input::name(args))?;
    if diagram.rows.is_empty() {
        anyhow::ensure!(around.is_none(), "the trace has only {} events", diagram.events);
        output::note("the trace is empty");
    }
    match svg {
        Some(file) => output::write_file(file, &diagram.to_svg())?,
        None => to.print(&foresee_report::text::diagram(&diagram, to.style()))?,
    }
    to.finish()?;
    if diagram.events >= range.end {
        output::note(&format!(
            "showing events {}..{}; use --around and --rows for others",
            range.start, range.end
        ));
    }
    Ok(0)
}
