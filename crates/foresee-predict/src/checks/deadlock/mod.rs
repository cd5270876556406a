//! Deadlocks: threads that wait for each other in a cycle.
//!
//! Each thread of a ring holds something and is about to acquire what the next one holds, in a mode
//! that excludes it: a lock, also when reacquired at the end of a wait, or, at a join, the end of
//! the thread itself. Whether they can all get there at once is a [goal](crate::reorder::Goal):
//! these requests are the next events of their threads. Locks need no further condition, since a
//! thread just before an event holds what it held there in the trace.
//!
//! | file | what it does |
//! |---|---|
//! | `requests` | where threads wanted something while they held something else |
//! | `rings`, `components` | which of these could wait for each other |
//! | `nearest` | which of their events to try |
//! | `waits` | waits that are never ended |
//! | `kept` | locks that threads hold when they end |
//! | `stuck` | threads that wait forever in the observed run itself |
//! | `guards` | waits whose notification cannot come too early |
//! | `report` | describes findings |
//!
//! A try-lock never waits, so it is in no ring, but others wait for a lock that it acquired. A
//! timed acquire turns a ring into a *stall*.
//!
//! A thread that waits for a condition is stuck, too, if all threads that could notify have done so
//! before, or need what it holds. Proving that no deadlock is possible then takes more than rings:
//! every wait must be guarded by a value read before it, and no thread may join or wait while
//! others want what it holds.
//!
//! Chains of requests with sections in their order are searched after Tunç, Mathur, Pavlogiannis and
//! Viswanathan, *Sound Dynamic Deadlock Prediction in Linear Time*, PLDI 2023 (`checks/pointers.rs`).
//!
//! Not predicted: that a reader waits for a writer who has queued up before it, and waits outside
//! locks, joins and conditions.

mod guards;
mod kept;
mod nearest;
mod report;
mod requests;
mod rings;
mod stuck;
mod waits;

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use foresee_causality::judge::Seen;
use foresee_trace::{Event, LocId, LockId, Op, ThreadId, Trace};

use super::attempt::{Budget, NEXT};
use super::lock_state::{LockState, taken};
use super::locksets::{Hold, LockSets};
use super::tally::{SearchStats, Words};
use super::tries::{Candidate, Chains, Found, Tried, Try};
use super::{Check, CheckKind, Context, Description, Options, Proposals};
use crate::analysis::{AnalysisError, Stat};
use crate::info::DEADLOCK;
use crate::reorder::{NONE, Sight};
use kept::Kept;
use requests::{Patience, Places, Requests, Want};
use rings::{Limits, Ring};
use stuck::End;
use waits::{Wait, Waits, is_for_ever};

/// The check for deadlocks.
pub(super) const KIND: CheckKind =
    CheckKind { name: DEADLOCK, new: |_| Box::new(Deadlocks::default()) };

/// The kinds of deadlocks that the check covers. Without this list, silence would seem to cover
/// more.
const SCOPE: &str = "covers waits for locks, semaphores used as locks, conditions and the end of other threads; \
                     not for other semaphores, barriers or input";

/// Why nothing can be proved about a run that leaves threads waiting.
const LEFT_WAITING: &str = "a thread still waited when the run ended";

/// How many steps may be taken on whole chains of requests.
const CHAIN_WORK: usize = 20_000_000;
/// The maximum number of rings of chains even then.
const LEAST_CHAINS: usize = 4;

/// Looks for deadlocks.
#[derive(Debug, Default)]
struct Deadlocks {
    requests: Requests,
    waits: Waits,
    /// For each candidate that is a ring, the rings that it stands for.
    rings: Vec<Vec<Ring>>,
    /// For the candidates after these, waits that may never end.
    endless: Vec<Vec<Wait>>,
    /// For the candidates after these, locks that a thread held when it ended.
    kept: Vec<Kept>,
}

/// Where one thread of a ring is stuck, as far as reports distinguish rings: a place in the source
/// or, without one, the requested thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    At(LocId),
    For(Want),
}

impl Deadlocks {
    /// Rings with the same places are reported once.
    fn places(&self, ring: &Ring) -> Vec<Place> {
        let place = |&request: &u32| match self.requests.classes[request as usize].class {
            class if class.loc == LocId::NONE => Place::For(class.wants),
            class => Place::At(class.loc),
        };
        let mut places: Vec<Place> = ring.requests().iter().map(place).collect();
        let rank = |place: &Place| match *place {
            Place::At(loc) => (0, loc.0, false),
            Place::For(Want::Lock(hold)) => (1, hold.lock.0, hold.shared),
            Place::For(Want::End(thread)) => (2, thread.0, false),
        };
        // The least rotation stands for all of them.
        let keys: Vec<_> = places.iter().map(rank).collect();
        let rotation = |start: usize| keys[start..].iter().chain(&keys[..start]);
        let least = (0..keys.len()).min_by(|&a, &b| rotation(a).cmp(rotation(b)));
        places.rotate_left(least.unwrap_or(0));
        places
    }

    /// The wait that a finding is about, if it is not about a ring.
    fn wait_of(&self, found: &Found) -> Option<&Wait> {
        let waits = self.endless.get((found.key as usize).checked_sub(self.rings.len())?)?;
        let begin = found.by.executed.last()?.event;
        waits.iter().find(|wait| wait.begin == begin)
    }

    /// The lock that is never released, if a finding is about one.
    fn kept_of(&self, found: &Found) -> Option<&Kept> {
        let before = self.rings.len() + self.endless.len();
        self.kept.get((found.key as usize).checked_sub(before)?)
    }

    /// Whether a thread joins or waits while others want what it holds, so that they may be stuck
    /// because of a wait.
    fn is_exposed(&self, trace: &Trace, locksets: &LockSets) -> bool {
        let mut keepers: HashMap<LockId, Vec<ThreadId>, RandomState> = HashMap::default();
        let joins = self.requests.classes.iter().filter(|p| matches!(p.class.wants, Want::End(_)));
        let joins = joins.flat_map(|Places { class, .. }| {
            locksets.get(class.has).iter().map(|&hold| (class.thread, hold))
        });
        for (thread, hold) in joins.chain(self.waits.kept(trace)) {
            let threads = keepers.entry(hold.lock).or_default();
            if !threads.contains(&thread) {
                threads.push(thread);
            }
        }
        let is_wanted = |event: &Event| {
            let keepers = taken(event).and_then(|hold| keepers.get(&hold.lock));
            keepers.is_some_and(|threads| threads.iter().any(|&t| t != event.thread()))
        };
        !keepers.is_empty() && trace.events.iter().any(is_wanted)
    }

    /// The candidates, one for each tuple of places.
    fn candidates(&mut self, found: &[Ring], options: &Options) -> Vec<Candidate> {
        let mut numbers: HashMap<Vec<Place>, usize, RandomState> = HashMap::default();
        let mut candidates: Vec<Candidate> = Vec::new();
        for ring in found {
            let number = *numbers.entry(self.places(ring)).or_insert_with(|| {
                let key = self.rings.len() as u32;
                self.rings.push(Vec::new());
                candidates.push(Candidate {
                    key,
                    is_complete: true,
                    hangs_on: Some(Sight::Anything),
                    ..Candidate::default()
                });
                candidates.len() - 1
            });
            self.rings[number].push(*ring);
            let candidate = &mut candidates[number];
            let room = options.tries_per_place.saturating_sub(candidate.tries.len());
            let room = room.min(options.tries);
            let events = |&request: &u32| self.requests.classes[request as usize].events.as_slice();
            let lists: Vec<&[u32]> = ring.requests().iter().map(events).collect();
            let all = lists.iter().fold(1usize, |n, list| n.saturating_mul(list.len()));
            candidate.is_complete &= all <= room;
            let nearest = if room == 0 { Vec::new() } else { nearest::nearest(&lists, room) };
            let tries = nearest.into_iter().map(|next| Try { executed: Vec::new(), next });
            candidate.tries.extend(tries);
        }
        for candidate in &mut candidates {
            candidate.tries.sort_by_cached_key(|by| nearest::width(&by.next));
        }
        candidates
    }
}

impl Check for Deadlocks {
    fn kind(&self) -> &'static CheckKind {
        &KIND
    }

    fn words(&self) -> Words {
        Words { one: "deadlock", many: "deadlocks", candidates: "rings of requests and waits" }
    }

    fn budgets(&self) -> &'static [Budget] {
        NEXT
    }

    fn event(&mut self, index: u32, event: &Event, lock_state: &LockState) {
        self.requests.event(index, event, lock_state);
        self.waits.event(index, event, lock_state);
    }

    fn propose(&mut self, context: &Context<'_>) -> Result<Proposals, AnalysisError> {
        self.requests.add_awaited(context.trace);
        let listed = self.requests.as_requests(context.trace, context.locksets);
        let rings = rings::rings(&listed.requests, &listed.entangled, Limits::default());
        let mut candidates = self.candidates(&rings.found, context.options);
        let possible: HashSet<Vec<Place>> = rings.found.iter().map(|r| self.places(r)).collect();
        let guarded: HashSet<Vec<Place>> = rings.guarded.iter().map(|r| self.places(r)).collect();
        let by_locks = guarded.difference(&possible).count() as u64;
        let is_exposed = self.is_exposed(context.trace, context.locksets);
        let waits = self.waits.candidates(context.trace, context.requirements, is_exposed)?;
        for (i, group) in waits.groups.iter().enumerate() {
            let tries: Vec<Try> = group.iter().flat_map(Wait::tries).collect();
            let key = (self.rings.len() + i) as u32;
            candidates.push(Candidate { key, tries, ..Candidate::default() });
        }
        self.endless = waits.groups;
        let first_key = (self.rings.len() + self.endless.len()) as u32;
        let kept = kept::kept(context.trace);
        let (of_kept, kept) =
            kept::candidates(context.trace, &kept, first_key, context.options.tries);
        candidates.extend(of_kept);
        self.kept = kept;
        let end = End::of(context.trace);
        let stuck = end.stuck();
        let observed = stuck::causes(&stuck);
        let observed =
            observed.iter().map(|cause| report::observed(context, cause, &stuck)).collect();
        let mut notes = vec![SCOPE.to_owned()];
        // The run does not show which other threads could have been woken.
        if waits.contended > 0 {
            notes.push(format!(
                "{} of the conditions wake one of several threads at a time: each notification is \
                 taken to wake the thread that it woke in the run",
                waits.contended
            ));
        }
        let without = candidates.iter().filter(|candidate| candidate.tries.is_empty()).count();
        let not_tried = u64::from(rings.is_cut || listed.is_cut) + waits.not_tried + without as u64;
        Ok(Proposals {
            candidates,
            tally: SearchStats {
                by_locks,
                by_order: waits.safe,
                not_tried,
                ..SearchStats::default()
            },
            stats: vec![
                ("requests", Stat::Count(listed.requests.len() as u64)),
                ("entangled_requests", Stat::Count(listed.entangled.len() as u64)),
                ("rings", Stat::Count(rings.found.len() as u64)),
                ("waits", Stat::Count(self.endless.len() as u64 + waits.safe)),
                ("guarded_waits", Stat::Count(waits.safe)),
            ],
            notes,
            observed,
            caveat: end.has_pending().then_some(LEFT_WAITING),
            ..Proposals::default()
        })
    }

    fn chains(&mut self, context: &Context<'_>, tried: &Tried) -> Vec<Chains> {
        let most = (CHAIN_WORK / context.trace.events.len().max(1)).max(LEAST_CHAINS);
        let events = |&request: &u32| self.requests.classes[request as usize].events.clone();
        let mut chains = Vec::new();
        for &(key, _) in &tried.open {
            let rings = self.rings.get(key as usize).into_iter().flatten();
            for ring in rings.take(most - chains.len().min(most)) {
                chains.push(Chains { key, chains: ring.requests().iter().map(events).collect() });
            }
        }
        chains
    }

    fn confirm(
        &self,
        context: &Context<'_>,
        found: &Found,
        order: &[u64],
        seen: &Seen<'_>,
    ) -> Result<(), String> {
        if let Some(wait) = self.wait_of(found) {
            return confirm_endless(context, wait, found, order, seen);
        }
        if let Some(kept) = self.kept_of(found) {
            return confirm_kept(context, kept, found, order, seen);
        }
        let stuck = &found.by.next;
        for (i, &event) in stuck.iter().enumerate() {
            let next = context.trace.events[stuck[(i + 1) % stuck.len()] as usize].thread();
            if patience(context, event) == Patience::None {
                return Err(format!("event {event} does not wait for its lock"));
            }
            let is_kept = match Want::of(&context.trace.events[event as usize]) {
                Some(Want::Lock(hold)) => {
                    seen.holds(next, hold.lock).is_some_and(|shared| !(shared && hold.shared))
                }
                // It has an event to come, so it has not ended.
                Some(Want::End(thread)) => thread == next,
                None => false,
            };
            if !is_kept {
                return Err(format!("no thread of the ring keeps what event {event} wants"));
            }
        }
        Ok(())
    }

    fn describe(&self, context: &Context<'_>, found: &Found) -> Description {
        if let Some(wait) = self.wait_of(found) {
            return report::endless(context, wait, &found.by.next);
        }
        if let Some(kept) = self.kept_of(found) {
            return report::kept(context, kept, found.by.next[0]);
        }
        report::ring(context, &found.by.next, |event| self.requests.class_of(event))
    }
}

/// Whether a thread has ended while holding a lock that another one is about to request.
fn confirm_kept(
    context: &Context<'_>,
    kept: &Kept,
    found: &Found,
    order: &[u64],
    seen: &Seen<'_>,
) -> Result<(), String> {
    let happened = |event: u32| event < found.reached.observed || order.contains(&event.into());
    let is_last = !context.trace.events[kept.last as usize + 1..]
        .iter()
        .any(|event| event.thread() == kept.thread && event.op() != Op::Init);
    if !is_last || !happened(kept.last) {
        return Err(format!("the thread of event {} has not ended", kept.last));
    }
    let [event] = found.by.next[..] else { return Err("one thread is to wait".to_owned()) };
    let has_it = seen.holds(kept.thread, kept.hold.lock);
    let is_kept = |hold: Hold| {
        hold.lock == kept.hold.lock && has_it.is_some_and(|shared| !(shared && hold.shared))
    };
    let wants_it = taken(&context.trace.events[event as usize]).is_some_and(is_kept);
    match wants_it && patience(context, event) == Patience::Endless {
        true => Ok(()),
        false => Err(format!("event {event} does not wait for what the thread has")),
    }
}

/// Whether a wait has begun that no thread can end any more.
fn confirm_endless(
    context: &Context<'_>,
    wait: &Wait,
    found: &Found,
    order: &[u64],
    seen: &Seen<'_>,
) -> Result<(), String> {
    let done: HashSet<u64, RandomState> = order.iter().copied().collect();
    let happened = |event: u32| event < found.reached.observed || done.contains(&event.into());
    let waiting = context.trace.events[wait.begin as usize].thread();
    for &event in &found.by.next {
        let keeps = |hold: Hold| {
            seen.holds(waiting, hold.lock).is_some_and(|shared| !(shared && hold.shared))
        };
        let is_kept = taken(&context.trace.events[event as usize]).is_some_and(keeps);
        if !is_kept || patience(context, event) != Patience::Endless {
            return Err(format!("event {event} does not want what the waiting thread keeps"));
        }
    }
    let is_endless = is_for_ever(context.trace, wait, &found.by.next, happened);
    match is_endless && happened(wait.begin) {
        true => Ok(()),
        false => Err(format!("the wait of event {} can still end", wait.begin)),
    }
}

/// How long a thread waits at an event. The judge does not know; the previous event says it.
fn patience(context: &Context<'_>, event: u32) -> Patience {
    let previous = Some(context.requirements.previous(event)).filter(|&e| e != NONE);
    previous.map_or(Patience::Endless, |e| Patience::after(&context.trace.events[e as usize]))
}
