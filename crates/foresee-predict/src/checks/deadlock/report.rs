//! Describes deadlocks: which threads hold which locks, and what each of them requests.

use foresee_trace::{
    Blocked, Detail, Fact, HeldLock, Op, RingEdge, Role, TargetKind, ThreadId, Verdict, Wants,
};

use super::kept::Kept;
use super::requests::{Places, Want};
use super::stuck::{Because, Stuck};
use super::waits::Wait;
use crate::checks::lock_state::{Held, taken};
use crate::checks::{Context, Description, ObservedViolation};

/// What happens, and what helps to understand it, for threads that are stuck at these events, each
/// because of the next one.
pub(crate) fn ring<'p>(
    context: &Context<'_>,
    stuck: &[u32],
    class_of: impl Fn(u32) -> Option<&'p Places>,
) -> Description {
    let threads: Vec<&str> = stuck.iter().map(|&event| context.thread_of(event)).collect();
    let is_timed = |&event: &u32| class_of(event).is_some_and(|places| places.class.is_timed);
    let (verdict, message) = match stuck.iter().any(is_timed) {
        true => {
            let what = "can wait for each other until one gives up";
            (Verdict::Stall, format!("stall: {} {what}", listed(&threads)))
        }
        false => {
            (Verdict::LockCycle, format!("{} can wait for each other forever", listed(&threads)))
        }
    };
    let mut details = vec![Detail::new("ring", Fact::Ring(edges(context, stuck)))];
    for (i, &event) in stuck.iter().enumerate() {
        let before = stuck[(i + stuck.len() - 1) % stuck.len()];
        let wanted_of_it = wanted(context, before);
        // What the others wait for comes first; the rest could guard against it, if all had it.
        let (wanted, others): (Vec<Held>, Vec<Held>) = context.held_at(event).iter().partition(
            |held| matches!(wanted_of_it, Some(Want::Lock(hold)) if hold.lock == held.hold.lock),
        );
        let blocked = Blocked {
            has: locks(context, &wanted),
            also_has: locks(context, &others),
            is_timed: is_timed(&event),
            ..Blocked::new(i, wants(context, event))
        };
        details.push(Detail::new(threads[i], Fact::Blocked(blocked)));
    }
    for (i, name) in threads.iter().enumerate() {
        details.push(origin(name, i));
    }
    let sites = stuck.iter().map(|&event| context.site(Role::Request, event)).collect();
    Description { verdict, message, sites, about: Vec::new(), details }
}

/// The same for a thread that waits, when every other thread has notified or is stuck before it
/// can.
pub(crate) fn endless(context: &Context<'_>, wait: &Wait, stuck: &[u32]) -> Description {
    let (thread, place) = (context.thread_of(wait.begin), context.place_of(wait.begin));
    let names: Vec<&str> = stuck.iter().map(|&event| context.thread_of(event)).collect();
    let why = match stuck {
        [] => {
            let place = context.place_of(wait.notification);
            format!("its notification{place} can come before the wait begins")
        }
        [_] => format!("it holds what {} needs before it can notify", names[0]),
        _ => format!("it holds what {} need before they can notify", listed(&names)),
    };
    let mut sites = vec![
        context.site(Role::Wait, wait.begin),
        context.site(Role::Notification, wait.notification),
    ];
    let mut details = vec![
        Detail::new("wait", Fact::Sites(vec![0])),
        Detail::new("notification", Fact::Sites(vec![1])),
    ];
    let keeps = |event: u32| {
        let Some(Want::Lock(hold)) = wanted(context, event) else { return None };
        let held = context.held_at(wait.end).into_iter();
        let mut held = held.filter(|held| held.hold.lock == hold.lock);
        held.next().map(|held| (thread.to_owned(), context.held_lock(held.hold, held.acquire)))
    };
    for (&event, name) in stuck.iter().zip(&names) {
        let held_by = keeps(event);
        let blocked = Blocked { held_by, ..Blocked::new(sites.len(), wants(context, event)) };
        details.push(Detail::new(*name, Fact::Blocked(blocked)));
        sites.push(context.site(Role::Request, event));
    }
    let unless = "something notifies that did not in this run";
    details.push(Detail::new("unless", Fact::Text(unless.to_owned())));
    let message = format!("{thread} can wait forever{place}: {why}");
    Description { verdict: Verdict::EndlessWait, message, sites, about: Vec::new(), details }
}

/// The same for a thread that waits for a lock that another one held when it ended.
pub(crate) fn kept(context: &Context<'_>, kept: &Kept, stuck: u32) -> Description {
    let names = &context.trace.names;
    let lock = names.locks.get(kept.hold.lock);
    let (owner, waits) = (names.threads.get(kept.thread), context.thread_of(stuck));
    let place = context.place_of(stuck);
    let message = format!(
        "{waits} can wait forever for {lock}{place}: {owner} can end before that without releasing it"
    );
    let lock = context.held_lock(kept.hold, kept.acquire);
    let details = vec![
        Detail::new(owner, Fact::Keeps { lock, has_ended: false }),
        Detail::new(waits, Fact::Blocked(Blocked::new(1, wants(context, stuck)))),
        origin(owner, 0),
        origin(waits, 1),
    ];
    let sites = vec![context.site(Role::Kept, kept.acquire), context.site(Role::Request, stuck)];
    Description { verdict: Verdict::LockNeverReleased, message, sites, about: Vec::new(), details }
}

/// Threads that the run itself leaves stuck: those of one cause, and the others that wait.
pub(crate) fn observed(context: &Context<'_>, cause: &[Stuck], all: &[Stuck]) -> ObservedViolation {
    let trace = context.trace;
    let names = &trace.names;
    let name = |thread: ThreadId| names.threads.get(thread);
    let threads: Vec<&str> = cause.iter().map(|one| name(one.thread)).collect();
    let first = cause[0];
    let place = context.place_of(first.since);
    let (verdict, message) = match first.because {
        Because::Of(_) if cause.len() > 1 => {
            (Verdict::LockCycle, format!("{} wait for each other forever", listed(&threads)))
        }
        Because::Of(_) => {
            (Verdict::LockCycle, format!("{} waits for itself forever{place}", threads[0]))
        }
        Because::Kept(owner, _) => {
            let message = format!(
                "{} waits forever{place}: {} has ended without releasing what it wants",
                threads[0],
                name(owner)
            );
            (Verdict::LockNeverReleased, message)
        }
        Because::Nobody => {
            let why = "no thread is left to end that";
            (Verdict::Stuck, format!("{} waits forever{place}: {why}", threads[0]))
        }
    };
    let mut details = Vec::new();
    let mut sites = Vec::new();
    for one in cause {
        if let Because::Kept(_, acquire) = one.because {
            sites.push(context.site(Role::Kept, acquire));
        }
        let has = context.locks_at(one.since);
        let blocked = Blocked { has, ..Blocked::new(sites.len(), asked(context, one.since)) };
        details.push(Detail::new(name(one.thread), Fact::Blocked(blocked)));
        if let Because::Kept(owner, acquire) = one.because
            && let Some(hold) = taken(&trace.events[acquire as usize])
        {
            let lock = context.held_lock(hold, acquire);
            details.push(Detail::new(name(owner), Fact::Keeps { lock, has_ended: true }));
        }
        sites.push(context.site(Role::Request, one.since));
    }
    let others = all.iter().filter(|one| !cause.iter().any(|c| c.thread == one.thread));
    for one in others {
        let wants = asked(context, one.since);
        let blocked = Blocked { is_besides: true, ..Blocked::new(sites.len(), wants) };
        details.push(Detail::new(name(one.thread), Fact::Blocked(blocked)));
        sites.push(context.site(Role::AlsoWaits, one.since));
    }
    let event = cause.iter().map(|one| one.since).max().unwrap_or(first.since);
    ObservedViolation {
        event,
        description: Description { verdict, message, sites, about: Vec::new(), details },
    }
}

/// What a thread asks for with its last event.
fn asked(context: &Context<'_>, event: u32) -> Wants {
    let names = &context.trace.names;
    let it = &context.trace.events[event as usize];
    let target = it.target_name(names).unwrap_or_default().to_owned();
    match it.op() {
        Op::Await => Wants::End(names.threads.get(it.other()).to_owned()),
        Op::RequestShared => Wants::Shared(target),
        op if op.target_kind() == TargetKind::Lock => Wants::Lock(target),
        _ => Wants::Other(target),
    }
}

fn wanted(context: &Context<'_>, event: u32) -> Option<Want> {
    Want::of(&context.trace.events[event as usize])
}

/// What a thread is about to do, and cannot.
fn wants(context: &Context<'_>, event: u32) -> Wants {
    let names = &context.trace.names;
    match wanted(context, event) {
        Some(Want::Lock(hold)) => {
            let lock = names.locks.get(hold.lock).to_owned();
            match context.trace.events[event as usize].op() {
                Op::WaitEnd => Wants::LockAgain(lock),
                _ if hold.shared => Wants::Shared(lock),
                _ => Wants::Lock(lock),
            }
        }
        Some(Want::End(thread)) => Wants::End(names.threads.get(thread).to_owned()),
        None => Wants::Event,
    }
}

fn locks(context: &Context<'_>, held: &[Held]) -> Vec<HeldLock> {
    held.iter().map(|held| context.held_lock(held.hold, held.acquire)).collect()
}

/// How the thread of a site was started.
fn origin(thread: &str, site: usize) -> Detail {
    Detail::new(format!("thread {thread}"), Fact::ThreadOf(site))
}

/// The threads of a ring, each with what it waits for.
fn edges(context: &Context<'_>, stuck: &[u32]) -> Vec<RingEdge> {
    let edge = |&event: &u32| {
        let lock = match wanted(context, event) {
            Some(Want::Lock(hold)) => Some(context.trace.names.locks.get(hold.lock).to_owned()),
            _ => None,
        };
        RingEdge { thread: context.thread_of(event).to_owned(), lock }
    };
    stuck.iter().map(edge).collect()
}

/// `T1, T2 and T3`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
