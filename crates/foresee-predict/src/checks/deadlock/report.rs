//! A deadlock in words: who has what, who wants what, and the ring as a drawing.

use foresee_trace::{Op, Role, ThreadId, Verdict};

use super::kept::Kept;
use super::requests::{Places, Want};
use super::stuck::{Because, Stuck};
use super::waits::Wait;
use crate::checks::lock_state::Held;
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
            (Verdict::LockCycle, format!("{} can wait for each other for ever", listed(&threads)))
        }
    };
    let mut details = vec![("ring".to_owned(), drawing(context, stuck))];
    for (i, &event) in stuck.iter().enumerate() {
        let before = stuck[(i + stuck.len() - 1) % stuck.len()];
        let wanted_of_it = wanted(context, before);
        let held = context.held_at(event);
        let tell = |held: &Held| {
            let lock = context.trace.names.locks.get(held.hold.lock);
            let shared = if held.hold.shared { " (shared)" } else { "" };
            let place = context.place_of(held.acquire);
            format!("{lock}{shared}, taken by event {}{place}", held.acquire)
        };
        // What the others wait for comes first; the rest could guard against it, if all had it.
        let (wanted, others): (Vec<&Held>, Vec<&Held>) = held.iter().partition(
            |held| matches!(wanted_of_it, Some(Want::Lock(hold)) if hold.lock == held.hold.lock),
        );
        let tell_all = |held: &[&Held]| held.iter().map(|h| tell(h)).collect::<Vec<_>>().join("; ");
        let mut text = match wanted.is_empty() {
            true => String::new(),
            false => format!("has {}; ", tell_all(&wanted)),
        };
        if !others.is_empty() {
            text += &format!("also has {}; ", tell_all(&others));
        }
        text += &request(context, event);
        if is_timed(&event) {
            text += ", for some time";
        }
        details.push((threads[i].to_owned(), text));
    }
    for (&event, name) in stuck.iter().zip(&threads) {
        let origin = context.told_origin(context.trace.events[event as usize].thread());
        details.push((format!("thread {name}"), origin));
    }
    let sites = stuck.iter().map(|&event| context.site(Role::Request, event)).collect();
    Description { verdict, message, sites, about: Vec::new(), details }
}

/// The same for a thread that waits, when everybody has notified or is stuck before it can.
pub(crate) fn endless(context: &Context<'_>, wait: &Wait, stuck: &[u32]) -> Description {
    let (thread, place) = (context.thread_of(wait.begin), context.place_of(wait.begin));
    let names: Vec<&str> = stuck.iter().map(|&event| context.thread_of(event)).collect();
    let why = match stuck {
        [] => {
            let place = context.place_of(wait.notification);
            format!("its notification{place} can come before the wait begins")
        }
        _ => format!("it keeps what {} must have before notifying", listed(&names)),
    };
    let mut sites = vec![
        context.site(Role::Wait, wait.begin),
        context.site(Role::Notification, wait.notification),
    ];
    let mut details = vec![
        ("wait".to_owned(), sites[0].to_string()),
        ("notification".to_owned(), sites[1].to_string()),
    ];
    let keeps = |event: u32| {
        let held = context.held_at(wait.end);
        let Some(Want::Lock(hold)) = wanted(context, event) else { return None };
        held.iter().find(|held| held.hold.lock == hold.lock).map(|held| held.acquire)
    };
    for (&event, name) in stuck.iter().zip(&names) {
        let mut text = request(context, event);
        if let Some(acquire) = keeps(event) {
            text += &format!(
                ", which {thread} has, taken by event {acquire}{}",
                context.place_of(acquire)
            );
        }
        details.push(((*name).to_owned(), text));
    }
    details.push(("unless".to_owned(), "something notifies that did not in this run".to_owned()));
    sites.extend(stuck.iter().map(|&event| context.site(Role::Request, event)));
    let message = format!("{thread} can wait for ever{place}: {why}");
    Description { verdict: Verdict::EndlessWait, message, sites, about: Vec::new(), details }
}

/// The same for a thread that waits for a lock which another one had when it ended.
pub(crate) fn kept(context: &Context<'_>, kept: &Kept, stuck: u32) -> Description {
    let names = &context.trace.names;
    let lock = names.locks.get(kept.hold.lock);
    let (owner, waits) = (names.threads.get(kept.thread), context.thread_of(stuck));
    let place = context.place_of(stuck);
    let message = format!(
        "{waits} can wait for ever for {lock}{place}: {owner} can end before without giving it back"
    );
    let taken = format!(
        "has {lock}, taken by event {}{}, and ends",
        kept.acquire,
        context.place_of(kept.acquire)
    );
    let details = vec![
        (owner.to_owned(), taken),
        (waits.to_owned(), request(context, stuck)),
        (format!("thread {owner}"), context.told_origin(kept.thread)),
        (
            format!("thread {waits}"),
            context.told_origin(context.trace.events[stuck as usize].thread()),
        ),
    ];
    let sites = vec![context.site(Role::Kept, kept.acquire), context.site(Role::Request, stuck)];
    Description { verdict: Verdict::LockNeverReleased, message, sites, about: Vec::new(), details }
}

/// Threads that the run itself leaves stuck: those of one cause, and who waits besides.
pub(crate) fn observed(context: &Context<'_>, cause: &[Stuck], all: &[Stuck]) -> ObservedViolation {
    let trace = context.trace;
    let names = &trace.names;
    let name = |thread: ThreadId| names.threads.get(thread);
    let threads: Vec<&str> = cause.iter().map(|one| name(one.thread)).collect();
    let first = cause[0];
    let place = context.place_of(first.since);
    let (verdict, message) = match first.because {
        Because::Of(_) if cause.len() > 1 => {
            (Verdict::LockCycle, format!("{} wait for each other for ever", listed(&threads)))
        }
        Because::Of(_) => {
            (Verdict::LockCycle, format!("{} waits for itself for ever{place}", threads[0]))
        }
        Because::Kept(owner, _) => {
            let message = format!(
                "{} waits for ever{place}: {} has ended and not given back what it wants",
                threads[0],
                name(owner)
            );
            (Verdict::LockNeverReleased, message)
        }
        Because::Nobody => {
            let why = "no thread is left to end that";
            (Verdict::Stuck, format!("{} waits for ever{place}: {why}", threads[0]))
        }
    };
    let mut details = Vec::new();
    let mut sites = Vec::new();
    for one in cause {
        let held = context.held_at(one.since);
        let tell = |held: &Held| {
            let lock = names.locks.get(held.hold.lock);
            format!("{lock}, taken by event {}{}", held.acquire, context.place_of(held.acquire))
        };
        let mut text = match held.is_empty() {
            true => String::new(),
            false => format!("has {}; ", held.iter().map(tell).collect::<Vec<_>>().join("; ")),
        };
        text += &asked(context, one.since);
        details.push((name(one.thread).to_owned(), text));
        if let Because::Kept(owner, acquire) = one.because {
            let taken = format!("took it by event {acquire}{}", context.place_of(acquire));
            details.push((name(owner).to_owned(), format!("{taken}, and has ended")));
            sites.push(context.site(Role::Kept, acquire));
        }
        sites.push(context.site(Role::Request, one.since));
    }
    let others = all.iter().filter(|one| !cause.iter().any(|c| c.thread == one.thread));
    for one in others {
        details
            .push((name(one.thread).to_owned(), format!("{} as well", asked(context, one.since))));
        sites.push(context.site(Role::AlsoWaits, one.since));
    }
    let event = cause.iter().map(|one| one.since).max().unwrap_or(first.since);
    ObservedViolation {
        event,
        description: Description { verdict, message, sites, about: Vec::new(), details },
    }
}

/// What a thread asks for with its last event.
fn asked(context: &Context<'_>, event: u32) -> String {
    let names = &context.trace.names;
    let it = &context.trace.events[event as usize];
    let what = match it.op() {
        Op::Await => format!("the end of {}", names.threads.get(it.other())),
        Op::RequestShared => format!("{}, to share it", it.target_name(names).unwrap_or_default()),
        _ => it.target_name(names).unwrap_or_default().to_owned(),
    };
    format!("waits for {what}, event {event}{}", context.place_of(event))
}

fn wanted(context: &Context<'_>, event: u32) -> Option<Want> {
    Want::of(&context.trace.events[event as usize])
}

/// What a thread is about to do, and cannot.
fn request(context: &Context<'_>, event: u32) -> String {
    let names = &context.trace.names;
    let place = context.place_of(event);
    match wanted(context, event) {
        Some(Want::Lock(hold)) => {
            let lock = names.locks.get(hold.lock);
            let how = match context.trace.events[event as usize].op() {
                Op::WaitEnd => "to take back at the end of a wait ",
                _ if hold.shared => "to share ",
                _ => "for ",
            };
            format!("waits {how}{lock}, event {event}{place}")
        }
        Some(Want::End(thread)) => {
            format!("waits for the end of {}, event {event}{place}", names.threads.get(thread))
        }
        None => format!("stands before event {event}{place}"),
    }
}

/// `T1 ─ m ─▶ T2 ─ l ─▶ T1`.
fn drawing(context: &Context<'_>, stuck: &[u32]) -> String {
    let mut text = String::new();
    for &event in stuck {
        let edge = match wanted(context, event) {
            Some(Want::Lock(hold)) => context.trace.names.locks.get(hold.lock),
            _ => "join",
        };
        text += &format!("{} ─ {edge} ─▶ ", context.thread_of(event));
    }
    text + stuck.first().map_or("", |&event| context.thread_of(event))
}

/// `T1, T2 and T3`.
fn listed(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
