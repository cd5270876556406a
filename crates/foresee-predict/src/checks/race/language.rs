//! Races by the rules of the language, of accesses that only relaxed atomics order.
//!
//! C11 and C++11 call two conflicting accesses, at least one of them not atomic, a data race if
//! neither happens before the other. The run that was observed is an execution of that model. So if
//! its own [happens-before](LanguageClocks) leaves two accesses unordered, they are a race in it, and
//! no reordering is needed to show it. Only those that sequential consistency would order are
//! reported: all others are races without weak memory, or depend on one.
//!
//! The [judge](foresee_causality::judge::language) confirms each before it is reported.

use std::collections::HashSet;

use foresee_causality::judge::language::is_ordered;
use foresee_causality::{Clocks, LanguageClocks, Order};
use foresee_trace::{
    Detail, Event, Fact, Id, LocId, Name, Op, Role, ThreadId, VarId, Verdict, entry,
};

use super::super::locksets::{LockSetId, LockSets};
use super::super::tries::Found;
use super::super::{Context, Description, ObservedViolation};
use super::classes::{Classes, Kind, Known};
use super::suspects::Suspects;
use super::{FORGET, has_one_root, origins, verb};
use crate::analysis::AnalysisError;

/// A pair of places, and of variables if one of them is not known.
type Places = [(LocId, Kind, Option<VarId>); 2];

fn places(context: &Context<'_>, events: [u32; 2]) -> Places {
    let mut places = events.map(|event| {
        let event = &context.trace.events[event as usize];
        let variable = (!event.loc().is_some()).then_some(event.var());
        (event.loc(), Kind::of(event.op()), variable)
    });
    places.sort_unstable();
    places
}

/// The races of the observed run that are not races under sequential consistency, once for each
/// pair of places that was not found already.
pub(super) fn races(
    context: &Context<'_>,
    suspects: &Suspects,
    found: &[Found],
) -> Result<Vec<ObservedViolation>, AnalysisError> {
    let known: HashSet<Places> = found
        .iter()
        .filter_map(|found| <[u32; 2]>::try_from(&found.by.next[..]).ok())
        .map(|events| places(context, events))
        .collect();
    let uninstrumented = context.uninstrumented();
    let classes = unordered(context, suspects, &uninstrumented)?;
    let mut races = Vec::new();
    for pair in classes.groups.iter().filter_map(|group| group.sure) {
        if known.contains(&places(context, pair.events)) {
            continue;
        }
        let [e, f] = pair.events;
        if is_ordered(&context.trace.events, &uninstrumented, e as usize, f as usize) {
            return Err(AnalysisError::Limit(format!(
                "internal error, please report it with the trace: events {e} and {f} are no race \
                 by the language's rules"
            )));
        }
        races.push(violation(context, e, f));
    }
    races.sort_by_key(|race| race.event);
    Ok(races)
}

/// The accesses that happens-before orders only because it takes every atomic for a strong one.
fn unordered(
    context: &Context<'_>,
    suspects: &Suspects,
    uninstrumented: &[ThreadId],
) -> Result<Classes, AnalysisError> {
    // These are no more than the check has room for: it distinguishes locks as well.
    let mut classes = Classes::new(None, context.room / 2);
    let mut strong: Clocks = Clocks::new(Order::HappensBefore);
    let mut language = LanguageClocks::new(uninstrumented);
    let mut times: Vec<u32> = Vec::new();
    // Locks order as well as exclude.
    let locks = (LockSetId::EMPTY, &LockSets::default());
    let mut is_alone = has_one_root(context);
    for (index, event) in context.trace.events.iter().enumerate() {
        let (op, thread) = (event.op(), event.thread());
        if op == Op::Init {
            continue;
        }
        let time = entry(&mut times, thread.index());
        *time += 1;
        is_alone &= op != Op::Fork;
        strong.event(event)?;
        language.event(event);
        let is_access = op.reads() || op.writes();
        let is_known = !uninstrumented.contains(&thread);
        if is_access && is_known && !is_alone && suspects.has(event.var()) {
            classes.access(index as u32, event, locks, *time, |other| {
                let other = ThreadId(other);
                let known = language.count_now(thread, other);
                let until = strong.count_now(thread, other);
                Known { sure: known, possible: known, until }
            });
        }
        if index % FORGET == 0 {
            strong.forget_old(&[]);
            language.forget_old();
        }
    }
    Ok(classes)
}

fn violation(context: &Context<'_>, e: u32, f: u32) -> ObservedViolation {
    let events = &context.trace.events;
    let variable = Name(context.trace.names.vars.get(events[e as usize].var()));
    let message = format!(
        "{} {} {variable}{} and {} {} it{}: a race by the C11 memory model, since only relaxed \
         atomics order these accesses",
        context.thread_of(e),
        verb(context, e),
        context.place_of(e),
        context.thread_of(f),
        verb(context, f),
        context.place_of(f)
    );
    let mut sites = vec![context.site(Role::Access, e), context.site(Role::Access, f)];
    let mut details = vec![
        Detail::new("memory_model", Fact::Text("c11".to_owned())),
        Detail::new("variable", Fact::Subject(context.variable_of(e))),
        Detail::new("first access", Fact::Sites(vec![0])),
        Detail::new("second access", Fact::Sites(vec![1])),
    ];
    if let Some([write, read]) = hand_over(events, e, f) {
        sites.push(context.site(Role::RelaxedWrite, write));
        sites.push(context.site(Role::RelaxedRead, read));
        details.push(Detail::new("relaxed write", Fact::Sites(vec![2])));
        details.push(Detail::new("relaxed read", Fact::Sites(vec![3])));
    }
    details.extend(origins(&sites[..2]));
    let (verdict, about) = (Verdict::UnorderedAccess, vec![context.variable_of(e)]);
    ObservedViolation {
        event: f,
        description: Description { verdict, message, sites, about, details },
    }
}

/// An atomic write after the first access, and an atomic read before the second access that saw it,
/// one of them weaker than sequentially consistent; `None` if the cause is longer.
fn hand_over(events: &[Event], e: u32, f: u32) -> Option<[u32; 2]> {
    let (from, to) = (events[e as usize].thread(), events[f as usize].thread());
    let mut written: Vec<(u32, u32, bool)> = Vec::new();
    let mut remarks = [false; 2];
    for (i, event) in events[e as usize..f as usize].iter().enumerate() {
        let at = e + i as u32;
        let Some(side) = [from, to].iter().position(|&thread| thread == event.thread()) else {
            continue;
        };
        let is_weak = std::mem::replace(&mut remarks[side], event.op().weakens());
        let op = event.op();
        let Some(target) = event.target().filter(|_| op.is_atomic()) else { continue };
        if side == 0 && op.writes() {
            written.retain(|(_, variable, _)| *variable != target);
            written.push((at, target, is_weak));
        }
        if side == 1
            && op.reads()
            && let Some(&(write, _, was_weak)) = written.iter().find(|w| w.1 == target)
            && (is_weak || was_weak)
        {
            return Some([write, at]);
        }
    }
    None
}
