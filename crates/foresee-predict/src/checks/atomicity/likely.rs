//! Inferred regions: two accesses that look as if they belonged together.
//!
//! A thread reads a variable in one section of a lock, and writes it in a later section of the same
//! lock: the written value probably depends on the read, and another thread can write in between.
//! That it can is confirmed as for all checks. That it should not is a guess, so findings are
//! called likely, and the check must be selected explicitly.
//!
//! Two accesses belong together only if all of these hold:
//! - they are consecutive accesses of one thread to the variable, a read and then a write, both in
//!   one call of one method (a thread without calls is one call);
//! - the same lock is held at both, and was released in between;
//! - no declared region begins, ends or is open between them: declarations take precedence.
//!
//! Two reads count only if both values are used: they are at different places, and after each of
//! them the thread writes something, after the second one in its section. A loop that checks again,
//! or a second check before anything is done, occurs in correct programs.
//!
//! # What its silence means
//! The check claims that no likely violation is possible if every such pair is proved safe from
//! every write of others. The claim does not cover other pairs.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::judge::Seen;
use foresee_trace::{Event, Id, Op, Role, SymId, ThreadId, entry};

use super::accesses::{Accesses, PairKey, Shape, held_since};
use super::regions::{Change, Regions};
use super::triples::{Triples, triples};
use super::{AtomicityOptions, describe, graph};
use crate::analysis::{AnalysisError, Stat};
use crate::checks::attempt::{Budget, EXECUTED};
use crate::checks::lock_state::{Held, LockState, given};
use crate::checks::locksets::LockSetId;
use crate::checks::tally::Words;
use crate::checks::tries::Found;
use crate::checks::{
    Check, CheckKind, Context, Description, ObservedViolation, Options, Proposals,
};
use crate::info::LIKELY_ATOMICITY;

/// The check.
pub(in crate::checks) const KIND: CheckKind =
    CheckKind { name: LIKELY_ATOMICITY, new: |options| Box::new(Likely::new(options)) };

/// Finds pairs of accesses that can be separated.
pub(super) struct Likely {
    options: AtomicityOptions,
}

impl Likely {
    pub(super) fn new(options: &Options) -> Likely {
        Likely { options: options.atomicity.clone() }
    }
}

/// An access, and what the next one needs to know about it.
#[derive(Clone, Copy, Debug)]
struct Latest {
    access: u32,
    call: u32,
    stretch: u32,
    locks: LockSetId,
}

#[derive(Debug, Default)]
struct Thread {
    latest: HashMap<u32, Latest, RandomState>,
    /// The calls that are open.
    calls: Vec<(Option<SymId>, u32)>,
    /// The call that contains everything outside of calls that were seen to begin.
    outermost: u32,
    /// The number of calls.
    count: u32,
    /// The number of boundaries of declared regions, and whether one is open.
    stretch: u32,
    is_declared: bool,
    /// The latest write of anything.
    write: Option<u32>,
    /// Pairs of reads whose second value is not used yet.
    pending: Vec<(PairKey, (u32, u32))>,
}

impl Thread {
    fn boundary(&mut self, op: Op, sym: Option<SymId>, change: Change) {
        if change != Change::None {
            self.stretch += 1;
            self.is_declared = change == Change::Begins;
        }
        if op == Op::Enter {
            self.count += 1;
            self.calls.push((sym, self.count));
        } else if op == Op::Exit {
            match self.calls.iter().rposition(|&(method, _)| method == sym) {
                // Calls that a jump has left have ended, too.
                Some(at) => self.calls.truncate(at),
                // A call that began before the capture.
                None => {
                    self.calls.clear();
                    self.count += 1;
                    self.outermost = self.count;
                }
            }
        }
    }

    fn call(&self) -> u32 {
        self.calls.last().map_or(self.outermost, |&(_, call)| call)
    }
}

/// Whether the thread has released and reacquired a lock that it held at an access.
fn is_in_another_section(lock_state: &LockState, thread: ThreadId, before: &Latest) -> bool {
    let held = lock_state.held(thread);
    let was_held =
        |lock| lock_state.locksets.get(before.locks).iter().any(|hold| hold.lock == lock);
    held.iter().any(|now| {
        let lock = now.hold.lock;
        let is_kept = held.iter().any(|h| h.hold.lock == lock && h.acquire < before.access);
        now.acquire > before.access && !is_kept && was_held(lock)
    })
}

/// All pairs of accesses that look as if they belonged together, and what others do to their
/// variables.
fn infer(context: &Context<'_>, options: &AtomicityOptions, ignored: &[ThreadId]) -> Accesses {
    let events = &context.trace.events;
    let mut accesses = Accesses::default();
    let mut regions = Regions::new(options.methods.clone());
    let mut threads: Vec<Thread> = Vec::new();
    let mut numbers = HashMap::default();
    for (i, event) in events.iter().enumerate() {
        let (i, op, t) = (i as u32, event.op(), event.thread());
        accesses.lock_state.event(i, event);
        if ignored.contains(&t) {
            continue;
        }
        let is_boundary = matches!(op, Op::Begin | Op::End | Op::Enter | Op::Exit);
        let thread = entry(&mut threads, t.index());
        if is_boundary || given(event).is_some() {
            thread.pending.clear();
        }
        if is_boundary {
            let change = regions.event(i, event, &context.trace.names);
            thread.boundary(op, event.sym(), change);
        }
        if !op.reads() && !op.writes() {
            continue;
        }
        if op.writes() {
            for (key, pair) in thread.pending.drain(..) {
                accesses.add_pair(&mut numbers, key, pair);
            }
        }
        let earlier_write = thread.write;
        if op.writes() {
            thread.write = Some(i);
        }
        if thread.is_declared {
            continue;
        }
        let now = Latest {
            access: i,
            call: thread.call(),
            stretch: thread.stretch,
            locks: accesses.lock_state.set(t),
        };
        let variable = event.var().0;
        let Some(before) = thread.latest.insert(variable, now) else { continue };
        let first = &events[before.access as usize];
        let is_together = (before.call, before.stretch) == (now.call, now.stretch)
            && first.op().reads()
            && !first.op().writes()
            && !(op.reads() && op.writes())
            && is_in_another_section(&accesses.lock_state, t, &before);
        if !is_together {
            continue;
        }
        let places = [first.loc().0, event.loc().0];
        let key = PairKey {
            variable,
            thread: t.0,
            places,
            shape: Shape { around_write: true, around_read: false },
            span: held_since(&mut accesses.lock_state, t, before.access),
        };
        if op.writes() {
            accesses.add_pair(&mut numbers, key, (before.access, i));
        } else if !places.contains(&0)
            && places[0] != places[1]
            && earlier_write.is_some_and(|write| write > before.access)
        {
            thread.pending.push((key, (before.access, i)));
        }
    }
    accesses.with_partners(events, ignored)
}

/// The key by which findings are merged: the places of the pair, or variable and thread if these
/// are unknown.
fn pair_of(events: &[Event], a1: u32, a2: u32) -> [u32; 4] {
    let (first, second) = (&events[a1 as usize], &events[a2 as usize]);
    match [first.loc().0, second.loc().0] {
        places if places.contains(&0) => [0, 0, first.var().0, first.thread().0],
        [one, two] => [one, two, 0, 0],
    }
}

/// The events of a finding: those of the pair, and the one in between.
fn triple_of(found: &Found) -> Option<[u32; 3]> {
    match (&found.by.executed[..], &found.by.next[..]) {
        ([a1, b], [a2]) => Some([a1.event, b.event, *a2]),
        _ => None,
    }
}

/// Whether an access of another thread comes between two of a thread in the observed order, and
/// conflicts with both. With the two as the only region, this is a cycle of two conflicts, for which
/// the graph of all that happens in between need not be built.
fn is_between(events: &[Event], [a1, b, a2]: [u32; 3]) -> bool {
    let [first, other, second] = [a1, b, a2].map(|event| &events[event as usize]);
    let is_access = |event: &Event| event.op().reads() || event.op().writes();
    let conflicts = |event: &Event| {
        is_access(event)
            && event.var() == other.var()
            && event.thread() != other.thread()
            && (event.op().writes() || other.op().writes())
    };
    a1 < b
        && b < a2
        && is_access(other)
        && first.thread() == second.thread()
        && conflicts(first)
        && conflicts(second)
}

/// The pair as the only region.
fn region_of(events: &[Event], a1: u32, a2: u32) -> Regions {
    Regions::of_one(events[a1 as usize].thread().0, a1, a2)
}

impl Check for Likely {
    fn kind(&self) -> &'static CheckKind {
        &KIND
    }

    fn words(&self) -> Words {
        Words {
            one: "likely atomicity violation",
            many: "likely atomicity violations",
            candidates: "ways to come between two sections",
        }
    }

    fn budgets(&self) -> &'static [Budget] {
        EXECUTED
    }

    fn event(&mut self, _: u32, _: &Event, _: &LockState) {}

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError> {
        let events = &context.trace.events;
        let accesses = infer(context, &self.options, &context.uninstrumented());
        let mut proposals = Proposals::default();
        let Triples { candidates, observed } = triples(events, &accesses, &mut proposals.tally);
        let mut reported: HashMap<[u32; 4], usize, RandomState> = HashMap::default();
        for [a1, b, a2] in observed {
            let pair = pair_of(events, a1, a2);
            if let Some(&at) = reported.get(&pair) {
                let one: &mut ObservedViolation = &mut proposals.observed[at];
                let Description { details, sites, .. } = &mut one.description;
                describe::also(details, sites.len());
                sites.push(context.site(Role::AnyBetween, b));
                continue;
            }
            if !is_between(events, [a1, b, a2]) {
                return Err(AnalysisError::Mistake(format!(
                    "event {b} is said to come \
                     between events {a1} and {a2}, and does not"
                )));
            }
            reported.insert(pair, proposals.observed.len());
            let description = describe::likely(context, [a1, b, a2], false);
            proposals.observed.push(ObservedViolation { event: a2, description });
        }
        // Observed violations are not predicted.
        proposals.candidates = candidates;
        proposals.candidates.retain(|candidate| {
            let by = &candidate.tries[0];
            !reported.contains_key(&pair_of(events, by.executed[0].event, by.next[0]))
        });
        let pairs: u64 = accesses.pairs.iter().map(|(_, pairs)| pairs.count).sum();
        proposals.stats = vec![("pairs_of_sections", Stat::Count(pairs))];
        Ok(proposals)
    }

    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
        _: &Seen<'_>,
    ) -> Result<(), String> {
        let [a1, _, a2] = triple_of(found).ok_or("it should be three events")?;
        let (first, second) = (context.held_at(a1), context.held_at(a2));
        let is_retaken = first.iter().any(|one| {
            let is_it = |h: &&Held| one.hold.lock == h.hold.lock;
            second.iter().find(is_it).is_some_and(|h| h.acquire > a1 && h.acquire != one.acquire)
        });
        if !is_retaken {
            return Err("no lock is held at both accesses and given back in between".to_owned());
        }
        let (events, observed) = (&context.trace.events, found.reached.observed);
        let regions = region_of(events, a1, a2);
        let start = regions.quiet_before(observed);
        let run = (start..observed).chain(order.iter().map(|&event| event as u32));
        graph::cycle(events, &regions, run, start, a2, 0)
            .map(|_| ())
            .ok_or_else(|| "nothing comes between its accesses".to_owned())
    }

    fn is_observed(&self, found: &Found) -> bool {
        found.reached.order.iter().chain(&found.by.next).is_sorted()
    }

    fn describe(&self, context: &Context<'_>, found: &Found) -> Description {
        let triple = triple_of(found).unwrap_or([found.by.next[0]; 3]);
        describe::likely(context, triple, true)
    }

    fn joins(&self, context: &Context<'_>, found: &Found) -> Option<([u32; 4], u32)> {
        let [a1, b, a2] = triple_of(found)?;
        Some((pair_of(&context.trace.events, a1, a2), b))
    }
}

#[cfg(test)]
#[path = "likely_tests.rs"]
mod tests;
