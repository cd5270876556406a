//! The last word on a finding of a check, by code that shares nothing with the search.
//!
//! The reordering is replayed by the [judge](foresee_causality::judge), which also sees to it that
//! each event that should come next is the next of its thread. Then the check looks at what the
//! judge sees: which threads hold which locks, and what was written last.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foresee_causality::judge::{Judge, Sitting, Space};
use foresee_trace::{Finding, FindingKind, Witness};

use super::atomicity::also;
use super::tries::Found;
use super::{Check, Context};
use crate::analysis::AnalysisError;
use crate::explain::differences;

/// The findings, in the order in which they were found. One that does not stand up to the judge is
/// a mistake of ours, and nothing is reported that rests on it.
pub(crate) fn confirm(
    context: &Context<'_>,
    judge: &Judge<'_>,
    check: &dyn Check,
    mut found: Vec<Found>,
) -> Result<Vec<Finding>, AnalysisError> {
    found.sort_by_key(|one| one.reached.observed);
    let mut sitting = Sitting::new(judge, Space::Correct(context.options.reads));
    let mut findings: Vec<Finding> = Vec::new();
    let mut first_alike: HashMap<[u32; 4], usize> = HashMap::new();
    for one in found.iter().filter(|one| !check.is_observed(one)) {
        let observed = u64::from(one.reached.observed);
        let order: Vec<u64> = one.reached.order.iter().map(|&event| event.into()).collect();
        let next: Vec<u64> = one.by.next.iter().map(|&event| event.into()).collect();
        let refuse = |reason: String| {
            AnalysisError::Mistake(format!(
                "the witness of a {} between \
                 events {:?} and {:?} was refused: {reason}",
                check.kind().name,
                one.by.executed.iter().map(|wanted| wanted.event).collect::<Vec<_>>(),
                next
            ))
        };
        let judged = sitting.check_next(observed, &order, &next, |seen| {
            in_order(one, &order)?;
            let broken = one.by.executed.iter().find(|wanted| {
                let is_it = |read: &_| event_of(read) == u64::from(wanted.event);
                wanted.keeps_value && seen.changed_reads().iter().any(is_it)
            });
            if let Some(wanted) = broken {
                return Err(format!("event {} sees another value", wanted.event));
            }
            check.confirm(context, one, &order, seen)?;
            Ok(seen.changed_reads().to_vec())
        });
        let changed = match judged {
            Ok(Ok(changed)) => changed,
            Ok(Err(reason)) => return Err(refuse(reason)),
            Err(rejected) => return Err(refuse(rejected.to_string())),
        };
        if let Some((alike, event)) = check.joins(context, one) {
            match first_alike.entry(alike) {
                Entry::Vacant(none) => drop(none.insert(findings.len())),
                Entry::Occupied(first) => {
                    let first = &mut findings[*first.get()];
                    also(&mut first.details, event);
                    first.about.extend(check.about(context, one));
                    continue;
                }
            }
        }
        let (message, mut details) = check.describe(context, one);
        details.extend(differences(context.trace, observed, &order, &changed));
        let witness = Witness {
            reorder: one.reached.reorder(),
            observed,
            violated_at: (observed as usize + order.len()).saturating_sub(1),
            order,
            next,
            changed_reads: changed.iter().map(event_of).collect(),
        };
        findings.push(Finding {
            kind: FindingKind::Predicted,
            analysis: check.kind().name,
            property: check.kind().name.to_owned(),
            message,
            event: None,
            witness: Some(witness),
            details,
            about: check.about(context, one),
        });
    }
    Ok(findings)
}

fn event_of(read: &foresee_causality::judge::ChangedRead) -> u64 {
    read.read
}

/// Whether the events that should have happened have, in their order. Those of the observed
/// beginning come first.
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
