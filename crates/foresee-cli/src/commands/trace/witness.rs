//! The schedule of a finding as a trace.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use foresee_trace::{Pool, Trace};
use serde_json::Value as Json;

use crate::whole_file;

/// The events of a trace in the order of a finding's witness, with what its threads are about to do.
pub(super) fn of(mut trace: Trace, report: &Path, wanted: Option<&str>) -> anyhow::Result<Trace> {
    let name = report.display().to_string();
    let text = whole_file::read(report, whole_file::REPORT)?;
    let report: Json = serde_json::from_str(&text).with_context(|| {
        format!("{name} is not a report: make one with `foresee check --format json --output FILE`")
    })?;
    let witness = find(&report, wanted).with_context(|| name.clone())?;
    let count = trace.events.len() as u64;
    ensure!(
        report["trace"]["events"].as_u64() == Some(count),
        "{name} is about another trace: it has {} events, and this one has {count}",
        report["trace"]["events"]
    );
    let numbers = |key: &str| -> Vec<u64> {
        witness[key].as_array().into_iter().flatten().filter_map(Json::as_u64).collect()
    };
    let (order, next, changed) = (numbers("order"), numbers("next"), numbers("changed_reads"));
    let observed = 0..witness["observed"].as_u64().unwrap_or(0);
    let mut events = Vec::new();
    for index in observed.chain(order).chain(next) {
        let Some(&event) = trace.events.get(index as usize) else {
            bail!("{name}: there is no event {index} in this trace");
        };
        // What another write left there is not known.
        events.push(match changed.contains(&index) {
            true => event.with_values(&[], &mut Pool::default()),
            false => event,
        });
    }
    trace.events = events;
    Ok(trace)
}

/// The witness of the finding with this fingerprint or number, or of the first one that has any.
fn find<'r>(report: &'r Json, wanted: Option<&str>) -> anyhow::Result<&'r Json> {
    let analyses = report["analyses"].as_array().context("this is not a report")?;
    let mut findings =
        analyses.iter().flat_map(|one| one["findings"].as_array().into_iter().flatten());
    let Some(wanted) = wanted else {
        let first = findings.find_map(|one| one.get("witness"));
        return first.context("no finding of the report has a schedule");
    };
    let is_it = |one: &&Json| {
        let is_number = one["id"].as_u64().is_some_and(|id| id.to_string() == wanted);
        is_number || one["fingerprint"].as_str().is_some_and(|print| print.starts_with(wanted))
    };
    let Some(found) = findings.find(is_it) else { bail!("the report has no finding {wanted}") };
    found
        .get("witness")
        .with_context(|| format!("{wanted} was observed: the trace itself shows it"))
}
