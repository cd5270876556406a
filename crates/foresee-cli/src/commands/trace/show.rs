//! `foresee trace show`: draws a column per thread and arrows from causes to effects.

use std::path::Path;

use anyhow::Context;
use foresee_causality::Order;
use foresee_report::Diagram;

use crate::args::{InputArgs, OrderArg};
use crate::{input, output};

pub(crate) fn run(
    args: &InputArgs,
    around: Option<u64>,
    rows: u64,
    svg: Option<&Path>,
    order: OrderArg,
) -> anyhow::Result<u8> {
    let start = around.map_or(0, |event| event.saturating_sub(rows / 2));
    let order = match order {
        OrderArg::Mazurkiewicz => Order::Mazurkiewicz,
        OrderArg::ReadsFrom => Order::ReadsFrom,
        OrderArg::SyncOnly => Order::SyncOnly,
    };
    let mut source = input::open(args)?;
    let range = start..start.saturating_add(rows);
    let diagram =
        Diagram::of(&mut source, range.clone(), order).with_context(|| input::name(args))?;
    if diagram.rows.is_empty() {
        anyhow::ensure!(around.is_none(), "the trace has only {} events", diagram.events);
        output::note("the trace is empty");
    }
    match svg {
        Some(file) => output::write_file(file, &diagram.to_svg())?,
        None => output::print(&foresee_report::text::diagram(&diagram, output::style()))?,
    }
    if diagram.events >= range.end {
        output::note(&format!(
            "showing events {}..{}; use --around and --rows for others",
            range.start, range.end
        ));
    }
    Ok(0)
}
