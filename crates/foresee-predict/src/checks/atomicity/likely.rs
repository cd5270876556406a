//! Regions that nobody declared: two accesses that look as if they belonged together.
//!
//! A thread reads a variable in one section of a lock, and writes it in a later section of the same
//! lock: what it writes probably rests on what it read, and another thread can write in between.
//! That it can is confirmed like everything else. That it should not is a guess, so findings are
//! called likely, and have to be asked for.
//!
//! Two accesses belong together only if all of this is so:
//! - they are consecutive accesses of one thread to the variable, a read and then a write, both in
//!   one call of one method (a thread without calls is one call);
//! - the same lock is held at both, and was given back in between;
//! - no declared region begins, ends or is open between them: it says what belongs together.
//!
//! Two reads count only if both values are used: they are at different places, and after each of
//! them the thread writes something, after the second one in its section. A loop that looks again,
//! or a second look before anything is done, is what correct programs do.
//!
//! # What its silence means
//! That no likely violation is possible is said if every such pair is proved to be safe from every
//! write of others. It says nothing of pairs that are not such.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::judge::Seen;
use foresee_trace::{Event, Id, Op, Role, SymId, ThreadId, entry};

use super::accesses::{Accesses, PairKey, Shape, held_since};
use super::regions::{Change, Regions};
use super::triples::{Triples, triples};
use super::{AtomicityOptions, graph, told};
use crate::analysis::{AnalysisError, Stat};
use crate::checks::attempt::{EXECUTED, Rung};
use crate::checks::locksets::LockSetId;
use crate::checks::scene::{Held, Scene, given};
use crate::checks::tally::Words;
use crate::checks::tries::Found;
use crate::checks::{Check, CheckKind, Context, Options, Proposal, Told, Witnessed};
use crate::info::LIKELY_ATOMICITY;

/// The check.
pub(in crate::checks) const KIND: CheckKind =
    CheckKind { name: LIKELY_ATOMICITY, new: |options| Box::new(Likely::new(options)) };

/// Looks for pairs of accesses that can be torn apart.
pub(super) struct Likely {
    options: AtomicityOptions,
}

impl Likely {
    pub(super) fn new(options: &Options) -> Likely {
        Likely { options: options.atomicity.clone() }
    }
}

/// An access, and what has to be known of it when the next one comes.
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
    /// The call that everything is in which is in no call that was seen to begin.
    outermost: u32,
    /// How many calls there were.
    count: u32,
    /// How many boundaries of declared regions there were, and whether one is open.
    stretch: u32,
    is_declared: bool,
    /// The latest write of anything.
    write: Option<u32>,
    /// Pairs of reads, of which the second is not used yet.
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
                // What was left by a jump has ended, too.
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

/// Whether the thread has given back, and taken again, a lock that it held at an access.
fn is_in_another_section(scene: &Scene, thread: ThreadId, before: &Latest) -> bool {
    let held = scene.held(thread);
    let was_held = |lock| scene.locksets.get(before.locks).iter().any(|hold| hold.lock == lock);
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
        accesses.scene.event(i, event);
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
            locks: accesses.scene.set(t),
        };
        let variable = event.var().0;
        let Some(before) = thread.latest.insert(variable, now) else { continue };
        let first = &events[before.access as usize];
        let is_together = (before.call, before.stretch) == (now.call, now.stretch)
            && first.op().reads()
            && !first.op().writes()
            && !(op.reads() && op.writes())
            && is_in_another_section(&accesses.scene, t, &before);
        if !is_together {
            continue;
        }
        let places = [first.loc().0, event.loc().0];
        let key = PairKey {
            variable,
            thread: t.0,
            places,
            shape: Shape { around_write: true, around_read: false },
            span: held_since(&mut accesses.scene, t, before.access),
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

/// What makes two findings one: the places of the pair, or variable and thread where these are not
/// known.
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

/// The pair as the only region that there is.
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

    fn rungs(&self) -> &'static [Rung] {
        EXECUTED
    }

    fn event(&mut self, _: u32, _: &Event, _: &Scene) {}

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposal, AnalysisError> {
        let events = &context.trace.events;
        let accesses = infer(context, &self.options, &context.strangers());
        let mut proposal = Proposal::default();
        let Triples { candidates, observed } = triples(events, &accesses, &mut proposal.tally);
        let mut told: HashMap<[u32; 4], usize, RandomState> = HashMap::default();
        for [a1, b, a2] in observed {
            let pair = pair_of(events, a1, a2);
            if let Some(&at) = told.get(&pair) {
                let one: &mut Witnessed = &mut proposal.observed[at];
                told::also(&mut one.told.details, context.told(b));
                one.told.sites.push(context.site(Role::AnyBetween, b));
                continue;
            }
            if !is_between(events, [a1, b, a2]) {
                return Err(AnalysisError::Mistake(format!(
                    "event {b} is said to come \
                     between events {a1} and {a2}, and does not"
                )));
            }
            told.insert(pair, proposal.observed.len());
            let told = told::likely(context, [a1, b, a2], false);
            proposal.observed.push(Witnessed { event: a2, told });
        }
        // What was seen need not be predicted.
        proposal.candidates = candidates;
        proposal.candidates.retain(|candidate| {
            let by = &candidate.tries[0];
            !told.contains_key(&pair_of(events, by.executed[0].event, by.next[0]))
        });
        let pairs: u64 = accesses.pairs.iter().map(|(_, pairs)| pairs.count).sum();
        proposal.stats = vec![("pairs_of_sections", Stat::Count(pairs))];
        Ok(proposal)
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

    fn describe(&self, context: &Context<'_>, found: &Found) -> Told {
        let triple = triple_of(found).unwrap_or([found.by.next[0]; 3]);
        told::likely(context, triple, true)
    }

    fn joins(&self, context: &Context<'_>, found: &Found) -> Option<([u32; 4], u32)> {
        let [a1, b, a2] = triple_of(found)?;
        Some((pair_of(&context.trace.events, a1, a2), b))
    }
}

#[cfg(test)]
#[path = "likely_tests.rs"]
mod tests;
