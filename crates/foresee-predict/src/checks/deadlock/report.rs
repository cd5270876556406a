//! A deadlock in words: who has what, who wants what, and the ring as a drawing.

use foresee_trace::Op;

use super::requests::{Places, Want};
use super::waits::Wait;
use crate::checks::Context;
use crate::checks::scene::Held;

/// What happens, in one sentence, and what helps to understand it, for threads that are stuck at
/// these events, each because of the next one.
pub(crate) fn ring<'p>(
    context: &Context<'_>,
    stuck: &[u32],
    class_of: impl Fn(u32) -> Option<&'p Places>,
) -> (String, Vec<(String, String)>) {
    let threads: Vec<&str> = stuck.iter().map(|&event| context.thread_of(event)).collect();
    let is_timed = |&event: &u32| class_of(event).is_some_and(|places| places.class.is_timed);
    let message = match stuck.iter().any(is_timed) {
        true => format!("stall: {} can wait for each other until one gives up", listed(&threads)),
        false => format!("{} can wait for each other for ever", listed(&threads)),
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
    (message, details)
}

/// The same for a thread that waits, when everybody has notified or is stuck before it can.
pub(crate) fn endless(
    context: &Context<'_>,
    wait: &Wait,
    stuck: &[u32],
) -> (String, Vec<(String, String)>) {
    let (thread, place) = (context.thread_of(wait.begin), context.place_of(wait.begin));
    let names: Vec<&str> = stuck.iter().map(|&event| context.thread_of(event)).collect();
    let why = match stuck {
        [] => {
            let place = context.place_of(wait.notification);
            format!("its notification{place} can come before the wait begins")
        }
        _ => format!("it keeps what {} must have before notifying", listed(&names)),
    };
    let mut details = vec![
        ("wait".to_owned(), context.told(wait.begin)),
        ("notification".to_owned(), context.told(wait.notification)),
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
    (format!("{thread} can wait for ever{place}: {why}"), details)
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
