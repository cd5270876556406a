//! Confirms the findings of checks, with code that shares nothing with the search.
//!
//! The [judge](foresee_causality::judge) replays the reordering and verifies that each event that
//! should come next is the next of its thread. Then the check inspects the judge's final state:
//! which threads hold which locks, and what was written last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foresee_causality::judge::{ChangedRead, IncrementalReplay, Judge, Reads, Seen};
use foresee_trace::{DescribedValue, Detail, Fact, Finding, FindingKind, Name, Role, Witness};

use super::atomicity::also;
use super::tries::Found;
use super::{Check, Context, Description};
use crate::analysis::AnalysisError;
use crate::calm::calm;
use crate::explain::differences;

/// The findings, in the order in which they were found. If the judge rejects one, that is an
/// internal error, and nothing that depends on it is reported.
pub(crate) fn confirm(
    context: &Context<'_>,
    judge: &Judge<'_>,
    check: &dyn Check,
    mut found: Vec<Found>,
) -> Result<Vec<Finding>, AnalysisError> {
    found.sort_by_key(|one| one.reached.observed);
    found.iter_mut().for_each(|one| calmed(context, one));
    let mut replay = IncrementalReplay::new(judge, context.options.reads);
    let mut findings: Vec<Finding> = Vec::new();
    let mut first_alike: HashMap<[u32; 4], usize> = HashMap::new();
    for one in found.iter().filter(|one| !check.is_observed(one)) {
        let Run { observed, order, next } = Run::of(one);
        let changed = judged(context, &mut replay, check, one, |wanted, seen| {
            let is_it = |read: &ChangedRead| read.read == wanted;
            match seen.changed_reads().iter().any(is_it) {
                true => Err(format!("event {wanted} sees another value")),
                false => Ok(()),
            }
        })?;
        if let Some((alike, event)) = check.joins(context, one) {
            match first_alike.entry(alike) {
                Entry::Vacant(none) => drop(none.insert(findings.len())),
                Entry::Occupied(first) => {
                    let first = &mut findings[*first.get()];
                    also(&mut first.details, first.sites.len());
                    first.sites.push(context.site(Role::AnyBetween, event));
                    continue;
                }
            }
        }
        let mut description = described(context, check, one);
        description.details.extend(differences(context.trace, observed, &order, &changed));
        let witness = Witness {
            reorder: one.reached.reorder(),
            observed,
            violated_at: (observed as usize + order.len()).saturating_sub(1),
            order,
            next,
            changed_reads: changed.iter().map(|read| read.read).collect(),
        };
        findings.push(description.finding(
            FindingKind::Predicted,
            check.kind().name,
            None,
            Some(witness),
        ));
    }
    Ok(findings)
}

/// At most `most` findings that depend on reads that see other values. The judge replays each with
/// reads that may see anything, and returns those that see something else; the finding depends on
/// the first of these whose thread continues.
pub(crate) fn conditional(
    context: &Context<'_>,
    judge: &Judge<'_>,
    check: &dyn Check,
    mut found: Vec<Found>,
    most: usize,
) -> Result<Vec<Finding>, AnalysisError> {
    found.truncate(most);
    found.sort_by_key(|one| one.reached.observed);
    let mut replay = IncrementalReplay::new(judge, Reads::Any);
    let mut findings = Vec::new();
    for one in &found {
        let Run { observed, order, next } = Run::of(one);
        let changed = judged(context, &mut replay, check, one, |_, _| Ok(()))?;
        let thread = |event: u64| context.trace.events[event as usize].thread();
        let goes_on = |read: &&ChangedRead| {
            let at = order.iter().position(|&event| event == read.read).map_or(0, |at| at + 1);
            let mut later = order[at..].iter().chain(&next);
            later.any(|&event| thread(event) == thread(read.read))
        };
        let Some(read) = changed.iter().find(goes_on) else { continue };
        let event = &context.trace.events[read.read as usize];
        let variable = Name(context.trace.names.vars.get(event.var())).to_string();
        let value = match judge.value_after(event.var(), read.sees) {
            Some(value) => format!("as {}", DescribedValue { value, names: &context.trace.names }),
            None => match read.sees {
                Some(write) => format!("with what event {write} wrote"),
                None => "with its initial value".to_owned(),
            },
        };
        let mut description = described(context, check, one);
        let message = &description.message;
        let could = match message.contains(" can ") {
            true => message.replacen(" can ", " could ", 1),
            false => format!("it could be that {message}"),
        };
        let place = context.place_of(read.read as u32);
        description.message = format!("if {variable} were read {value}{place}, {could}");
        let depends_on = changed.iter().filter(goes_on).map(|read| read.read as u32);
        let depends_on = depends_on.map(|read| context.site(Role::Condition, read));
        let first = description.sites.len();
        description.sites.extend(depends_on);
        let reads = Fact::Sites((first..description.sites.len()).collect());
        description.details.insert(0, Detail::new("depends on", reads));
        let witness = Witness {
            reorder: one.reached.reorder(),
            observed,
            violated_at: (observed as usize + order.len()).saturating_sub(1),
            changed_reads: changed.iter().map(|read| read.read).collect(),
            order,
            next,
        };
        findings.push(description.finding(
            FindingKind::Conditional,
            check.kind().name,
            None,
            Some(witness),
        ));
    }
    Ok(findings)
}

/// The check's description of a finding, with a site for every event of its goal.
fn described(context: &Context<'_>, check: &dyn Check, one: &Found) -> Description {
    let mut description = check.describe(context, one);
    let executed = one.by.executed.iter().map(|wanted| wanted.event);
    for event in executed.chain(one.by.next.iter().copied()) {
        if !description.sites.iter().any(|site| site.event == Some(event.into())) {
            description.sites.push(context.site(Role::Step, event));
        }
    }
    description
}

/// Joins turns of threads in what is going to be judged.
fn calmed(context: &Context<'_>, one: &mut Found) {
    let order: Vec<u64> = one.reached.order.iter().map(|&event| event.into()).collect();
    let is_wanted = |event: u64| {
        let mut wanted = one.by.executed.iter();
        wanted.any(|wanted| u64::from(wanted.event) == event)
    };
    let calmer = calm(context.trace, &order, is_wanted);
    // They were of this type before.
    one.reached.order = calmer.into_iter().map(|event| event as u32).collect();
}

/// The run that shows what was found.
struct Run {
    observed: u64,
    order: Vec<u64>,
    next: Vec<u64>,
}

impl Run {
    fn of(found: &Found) -> Run {
        Run {
            observed: found.reached.observed.into(),
            order: found.reached.order.iter().map(|&event| event.into()).collect(),
            next: found.by.next.iter().map(|&event| event.into()).collect(),
        }
    }
}

/// The verdict of the judge and of the check: the reads that see something else. `keeps` returns
/// whether an event that is wanted with its value has it.
fn judged(
    context: &Context<'_>,
    replay: &mut IncrementalReplay<'_, '_>,
    check: &dyn Check,
    one: &Found,
    keeps: impl Fn(u64, &Seen<'_>) -> Result<(), String>,
) -> Result<Vec<ChangedRead>, AnalysisError> {
    let Run { observed, order, next } = Run::of(one);
    let refuse = |reason: String| {
        AnalysisError::Mistake(format!(
            "the witness of a {} between events {:?} and {:?} was refused: {reason}",
            check.kind().name,
            one.by.executed.iter().map(|wanted| wanted.event).collect::<Vec<_>>(),
            next
        ))
    };
    let judged = replay.check_next(observed, &order, &next, |seen| {
        in_order(one, &order)?;
        let valued = one.by.executed.iter().filter(|wanted| wanted.keeps_value);
        valued.map(|wanted| wanted.event.into()).try_for_each(|event| keeps(event, seen))?;
        check.confirm(context, one, &order, seen)?;
        Ok(seen.changed_reads().to_vec())
    });
    match judged {
        Ok(Ok(changed)) => Ok(changed),
        Ok(Err(reason)) => Err(refuse(reason)),
        Err(rejected) => Err(refuse(rejected.to_string())),
    }
}

/// Whether the events that should have happened did, in their order. Those of the observed prefix
/// come first.
fn in_order(found: &Found, order: &[u64]) -> Result<(), String> {
    let observed = found.reached.observed;
    let place = |event: u32| match event < observed {
        true => Some(event as usize),
        false => order.iter().position(|&e| e == u64::from(event)).map(|at| observed as usize + at),
    };
    let places: Option<Vec<usize>> = found.by.executed.iter().map(|w| place(w.event)).collect();
    match places.is_some_and(|places| places.is_sorted_by(|a, b| a < b)) {
        true => Ok(()),
        false => Err("its events do not happen in their order".to_owned()),
    }
}
