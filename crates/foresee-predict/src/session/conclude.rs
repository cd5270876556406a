//! What can be said after a pass over a trace: which findings stand, and what the judge confirms of
//! the candidates.

use std::time::{Duration, Instant};

use foresee_trace::{
    Batch, EventSource, FileOrder, Finding, FindingKind, Outcome, ReadError, Remarks, Trace,
    Validated, Witness,
};

use super::answered::Answered;
use super::error::SessionError;
use super::mistake::{Confirmed, InternalError};
use super::parts::Part;
use super::pictures::{self, Run};
use super::report::{Report, TraceFacts};
use super::{Drawing, Examined, Listener};
use crate::analysis::Analysed;
use crate::candidates::Candidates;
use crate::checks::Suppressions;
use crate::confirm::Confirmer;
use crate::info::{LATTICE, PATTERN, is_check, keeps_causality};
use crate::kept::{self, Kept};
use crate::runner::settle_notes;
use crate::sites::{complete, complete_from};

/// What a pass over a trace came to.
pub(super) struct Passed<'p> {
    pub(super) facts: TraceFacts,
    pub(super) analysed: Vec<Analysed>,
    pub(super) remarks: Remarks,
    pub(super) findings: Vec<Finding>,
    pub(super) parts: &'p [Part],
    /// Those of each part.
    pub(super) candidates: Vec<Candidates>,
    /// How long the searches took.
    pub(super) searched: Duration,
    /// How many events, the first ones, there is memory to read again.
    pub(super) readable: u64,
}

/// A trace to be read again.
pub(super) type Open<'a, 't> =
    &'a dyn Fn() -> Result<Validated<Box<dyn EventSource + 't>>, ReadError>;

/// What may be taken to confirm what searches propose.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// How many bytes the trace may take if it has to be loaded for it.
    pub(super) memory: usize,
    /// When no more than one is begun; `None` for no limit.
    pub(super) until: Option<Instant>,
}

/// Everything that can be said after a pass. The trace is read again only if not enough of it was
/// `kept` and something is to be confirmed, drawn or shown.
pub(super) fn conclude(
    mut passed: Passed<'_>,
    answered: Option<&Answered>,
    draws: bool,
    kept: Option<&Kept<'_>>,
    open: Open<'_, '_>,
    room: Room,
    listener: &mut dyn Listener,
) -> Result<Examined, SessionError> {
    let start = Instant::now();
    let order = passed.remarks.order;
    tell_mistakes(&passed.analysed, kept, listener);
    if let Some(answered) = answered {
        passed.findings.splice(0..0, answered.observed.iter().cloned());
        passed.analysed.splice(0..0, answered.analysed.iter().cloned());
    }
    settle(&mut passed.analysed, &mut passed.findings, order);
    // From the order of notes no other run follows, so nothing that was predicted stands.
    let is_order_known = order != FileOrder::Notes;
    let mut question = Question {
        parts: passed.parts,
        candidates: if is_order_known { passed.candidates } else { Vec::new() },
        answered: answered.filter(|_| is_order_known),
        order,
        draws,
    };
    // What was left out of a filtered trace matters where the causality changes.
    if order == FileOrder::Filtered {
        question.candidates.iter_mut().for_each(|candidates| candidates.reordered.clear());
    }
    let mut needed = question.needed_events(&passed.findings);
    let is_whole = |trace: &Trace| trace.events.len() as u64 == passed.facts.events;
    let is_enough = |kept: &&Kept<'_>| {
        is_whole(kept.trace)
            || needed.is_some_and(|needed| needed <= kept.trace.events.len() as u64)
    };
    let kept = kept.filter(is_enough);
    let mut loaded = None;
    let (confirmed, drawings) = match kept {
        Some(kept) => question.confirm(Some(kept), room, listener)?,
        None => {
            let events = needed.unwrap_or(passed.facts.events);
            if events.saturating_mul(kept::BYTES_PER_EVENT) > room.memory as u64 {
                question.give_up(&mut passed.analysed);
                needed = question.needed_events(&[]);
            }
            if needed != Some(0) {
                loaded = Some(load_first(&mut open()?, needed)?);
            }
            question.confirm(loaded.as_ref().map(Kept::new).as_ref(), room, listener)?
        }
    };
    confirmed.own_up(&mut passed.analysed);
    passed.findings.extend(confirmed.findings);
    let searched = passed.searched + start.elapsed();
    match kept.map(|kept| kept.trace).or(loaded.as_ref()).filter(|trace| is_whole(trace)) {
        Some(whole) => complete(&mut passed.findings, whole),
        None => complete_from(&mut passed.findings, passed.readable, open)?,
    }
    let mut report = Report {
        name: String::new(),
        trace: passed.facts,
        analysed: passed.analysed,
        findings: passed.findings,
        remarks: passed.remarks,
        suppressions: Suppressions::default(),
    };
    report.put_conditional_last();
    Ok(Examined { report, trace: loaded, drawings, searched })
}

/// Reports internal errors that analyses have found.
fn tell_mistakes(analysed: &[Analysed], kept: Option<&Kept<'_>>, listener: &mut dyn Listener) {
    for one in analysed.iter().filter(|one| one.outcome == Outcome::Mistake) {
        listener.internal_error(&InternalError {
            analysis: one.name,
            property: one.property.as_deref().unwrap_or(one.name),
            error: &one.statement,
            candidate: &one.stats,
            trace: kept.map(|kept| kept.trace),
        });
    }
}

/// Leaves only the findings that stand, in the order of the analyses, whatever stretches of the
/// trace they were given in turn.
fn settle(analysed: &mut [Analysed], findings: &mut Vec<Finding>, order: FileOrder) {
    findings.retain(|finding| stands(finding, order));
    if order == FileOrder::Notes {
        settle_notes(analysed, findings);
    }
    findings.sort_by_cached_key(|finding| {
        let is_its = |one: &Analysed| {
            one.name == finding.analysis
                && one.property.as_ref().is_none_or(|p| *p == finding.property)
        };
        analysed.iter().position(is_its)
    });
}

/// Whether a finding stands in a trace with this order.
pub(super) fn stands(finding: &Finding, order: FileOrder) -> bool {
    match (finding.kind, order) {
        // These rely on an order of conflicting accesses, which notes do not contain.
        (FindingKind::Observed, FileOrder::Notes) => !is_check(finding.analysis),
        (FindingKind::Observed | FindingKind::ScheduleDependent, _) => true,
        (FindingKind::Predicted | FindingKind::Conditional, FileOrder::Observed) => true,
        (FindingKind::Predicted, FileOrder::Filtered) => keeps_causality(finding.analysis),
        (FindingKind::Conditional, FileOrder::Filtered) => false,
        (FindingKind::Predicted | FindingKind::Conditional, FileOrder::Notes) => false,
    }
}

/// How many of the first events of a trace are needed to judge candidates; `None` is all.
pub(super) fn needed_events(candidates: &[Candidates]) -> Option<u64> {
    let needed: Option<Vec<u64>> = candidates.iter().map(Candidates::needed_events).collect();
    needed.map(|all| all.into_iter().max().unwrap_or(0))
}

/// The first events of a trace, in whole batches; all of them, if no number is given.
pub(super) fn load_first(
    source: &mut dyn EventSource,
    events: Option<u64>,
) -> Result<Trace, ReadError> {
    let Some(events) = events else { return Trace::load(source) };
    let mut trace = Trace::default();
    let mut batch = Batch::default();
    while (trace.events.len() as u64) < events && source.next_batch(&mut batch)? {
        trace.push_batch(&mut batch);
    }
    trace.names = source.names().clone();
    Ok(trace)
}

/// Leaves out what cannot be confirmed, and says so.
pub(super) fn give_up(
    parts: &[Part],
    candidates: &mut [Candidates],
    analysed: &mut [Analysed],
    why: &str,
) {
    let mut given_up = Vec::new();
    for (part, candidates) in parts.iter().zip(candidates) {
        let properties = candidates.give_up().into_iter();
        given_up.extend(properties.map(|property| part.name_of(property).to_owned()));
    }
    let is_given_up = |property: &Option<String>| {
        property.as_ref().is_some_and(|property| given_up.contains(property))
    };
    for one in analysed.iter_mut().filter(|one| is_given_up(&one.property)) {
        one.outcome = Outcome::MemoryLimit;
        one.notes.push(why.to_owned());
    }
}

/// What is left to ask the judge.
struct Question<'q> {
    parts: &'q [Part],
    candidates: Vec<Candidates>,
    answered: Option<&'q Answered>,
    order: FileOrder,
    draws: bool,
}

impl Question<'_> {
    /// How many of the first events are needed for that, and to draw what was found; `None` is all.
    fn needed_events(&self, findings: &[Finding]) -> Option<u64> {
        let is_drawn = self.draws && self.order != FileOrder::Notes && !self.parts.is_empty();
        if is_drawn {
            return None;
        }
        let witnesses = findings.iter().filter_map(|finding| finding.witness.as_ref());
        let witnessed = witnesses.map(Witness::needed_events).max().unwrap_or(0);
        let answered = self.answered.map_or(0, Answered::needed_events);
        needed_events(&self.candidates).map(|events| events.max(answered).max(witnessed))
    }

    /// Confirms nothing, because there is no memory for the trace. What an index has answered, and what is
    /// to be drawn, is about traces that the user wants to see.
    fn give_up(&mut self, analysed: &mut [Analysed]) {
        let why = "something was found, but the trace is too long to confirm it in the memory that may \
                   be taken: allow more with --max-memory";
        give_up(self.parts, &mut self.candidates, analysed, why);
    }

    /// What the judge confirms, and the pictures of it.
    fn confirm(
        &self,
        kept: Option<&Kept<'_>>,
        room: Room,
        listener: &mut dyn Listener,
    ) -> Result<(Confirmed, Vec<Drawing>), SessionError> {
        let mut confirmed = Confirmed::default();
        let mut drawings = Vec::new();
        let Some(kept) = kept else {
            if self.draws {
                drawings.extend(self.parts.iter().map(|_| Drawing::OrderUnknown));
            }
            return Ok((confirmed, drawings));
        };
        if let Some(answered) = self.answered {
            answered.confirm(kept, &mut confirmed, listener);
        }
        for (part, candidates) in self.parts.iter().zip(&self.candidates) {
            let mut runs = Vec::new();
            confirm(part, candidates, kept, room.until, &mut confirmed, &mut runs, listener);
            if self.draws && !part.is_patterns {
                let is_only = self.parts.len() == 1;
                drawings.extend(pictures::draw(part, kept.trace, &runs, is_only)?);
            }
        }
        Ok((confirmed, drawings))
    }
}

/// Adds the results of the candidates of a part. If the judge rejects one, that is an internal
/// error, and nothing that depends on it is reported. The violating runs go to
/// `runs`.
fn confirm(
    part: &Part,
    candidates: &Candidates,
    kept: &Kept<'_>,
    until: Option<Instant>,
    confirmed: &mut Confirmed,
    runs: &mut Vec<Run>,
    listener: &mut dyn Listener,
) {
    if candidates.is_empty() {
        return;
    }
    let confirmer = Confirmer::new(&part.spec, &part.resolved, kept);
    let trace = kept.trace;
    for one in &candidates.predictions {
        let about = (LATTICE, part.name_of(one.property));
        if confirmed.is_late(until, about) {
            continue;
        }
        let judged = confirmer.confirm(one);
        if let Ok(Finding { witness: Some(witness), .. }) = &judged {
            let (property, binding) = (one.property, one.binding.clone());
            runs.push(Run { property, binding, order: witness.order.clone(), is_beyond: false });
        }
        confirmed.add(judged, about, one, trace, listener);
    }
    for one in &candidates.matches {
        let about = (PATTERN, part.name_of(one.property));
        if confirmed.is_late(until, about) {
            continue;
        }
        confirmed.add(confirmer.confirm_match(one), about, one, trace, listener);
    }
    for one in &candidates.reordered {
        let about = (one.analysis, part.name_of(one.property));
        if confirmed.is_late(until, about) {
            continue;
        }
        let judged = confirmer.confirm_reordered(one);
        if let Ok(Finding { witness: Some(witness), kind, .. }) = &judged
            && *kind != FindingKind::Conditional
        {
            let (property, binding) = (one.property, one.binding.clone());
            let order = (0..witness.observed).chain(witness.order.iter().copied()).collect();
            runs.push(Run { property, binding, order, is_beyond: true });
        }
        confirmed.add(judged, about, one, trace, listener);
    }
}
