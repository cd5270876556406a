//! The witness written out as an order of events, up to and including the read that sees another
//! write, and judged by code that shares nothing with the search.

use foresee_causality::judge::{Judge, Reads};
use foresee_trace::{Op, Trace};

use super::Reader;
use super::graph::Graph;

/// Why a witness was rejected: an internal error, reported with this text alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refused(String);

/// The events of an order of nodes, with the thread-local events between them, and the reader at
/// the end.
pub(super) fn write_out(trace: &Trace, graph: &Graph, nodes: &[u32], reader: Reader) -> Vec<u64> {
    let mut own: Vec<Vec<u64>> = vec![Vec::new(); graph.threads];
    // Initial values come before everything.
    let mut order = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        match event.op() {
            Op::Init => order.push(i as u64),
            _ => own[event.thread().0 as usize].push(i as u64),
        }
    }
    let mut done = vec![0; graph.threads];
    let mut run_up_to = |thread: usize, end: u64, order: &mut Vec<u64>| {
        let rest = &own[thread][done[thread]..];
        let count = rest.partition_point(|&event| event <= end);
        order.extend_from_slice(&rest[..count]);
        done[thread] += count;
    };
    for &node in nodes {
        let index = u64::from(graph.events[node as usize]);
        let event = &trace.events[index as usize];
        if event.op() == Op::Join {
            // Its nodes have come; what is left is its own business.
            run_up_to(event.other().0 as usize, u64::MAX, &mut order);
        }
        run_up_to(event.thread().0 as usize, index, &mut order);
    }
    match reader {
        Reader::Event(read) => {
            let thread = trace.events[read as usize].thread().0 as usize;
            run_up_to(thread, read, &mut order);
        }
        Reader::Final(_) => (0..graph.threads).for_each(|t| run_up_to(t, u64::MAX, &mut order)),
    }
    order
}

/// Whether in this order of events every read but the last sees what it saw, and the reader sees
/// the challenger.
pub(super) fn confirm(
    trace: &Trace,
    judge: &Judge<'_>,
    order: &[u64],
    reader: Reader,
    challenger: Option<u64>,
) -> Result<(), Refused> {
    let strict = Reads::Strict;
    let refuse = |rejected: foresee_causality::judge::Rejected| Refused(rejected.to_string());
    let (before, variable) = match reader {
        Reader::Event(read) => {
            let Some((&last, before)) = order.split_last().filter(|&(&last, _)| last == read)
            else {
                return Err(Refused("the order does not end with the read".to_owned()));
            };
            let event = &trace.events[last as usize];
            // The read only has to be next: what it does then is what the finding is about.
            judge.check_next(before, &[last], strict).map_err(refuse)?;
            (before, event.var().0)
        }
        Reader::Final(variable) => {
            judge.check(order, strict).map_err(refuse)?;
            if order.len() != trace.events.len() {
                return Err(Refused("the order is not one of the whole trace".to_owned()));
            }
            (order, variable)
        }
    };
    let writes = |&&index: &&u64| {
        let event = &trace.events[index as usize];
        event.op().writes() && event.var().0 == variable
    };
    let sees = before.iter().rev().find(writes).copied();
    if sees != challenger {
        return Err(Refused(format!("the read sees {sees:?}, not {challenger:?}")));
    }
    Ok(())
}
