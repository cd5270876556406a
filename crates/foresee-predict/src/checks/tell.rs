//! Events, locks and threads in the words of reports.

use foresee_trace::{EXTERNAL, Id, LocId, Name, Op, Pool, ThreadId};

use super::Context;
use super::scene::{Held, Scene};
use super::tries::Found;
use crate::reorder::NONE;

impl Context<'_> {
    /// The name of an event's thread.
    pub(crate) fn thread_of(&self, event: u32) -> &str {
        self.trace.names.threads.get(self.trace.events[event as usize].thread())
    }

    /// Where an event is in the source, ` at FILE:LINE`, or nothing.
    pub(crate) fn place_of(&self, event: u32) -> String {
        match self.trace.events[event as usize].loc() {
            LocId::NONE => String::new(),
            loc => format!(" at {}", Name(self.trace.names.locs.get(loc))),
        }
    }

    /// An event as the trace has it, with its thread and its place: `event 7, w(x) of T1 at a.c:3`.
    /// Of one that has not happened, what it will see is open.
    pub(crate) fn told(&self, event: u32) -> String {
        let mut it = self.trace.events[event as usize];
        if it.op() != Op::Event {
            it = it.with_values(&[], &mut Pool::default());
        }
        let what = it.describe(&self.trace.names, &self.trace.pool);
        format!("event {event}, {what} of {}{}", self.thread_of(event), self.place_of(event))
    }

    /// The threads that stand for code that was not captured. Whose writes these are nobody knows:
    /// it may have been any thread.
    pub(crate) fn strangers(&self) -> Vec<ThreadId> {
        self.trace.names.threads.lookup(EXTERNAL).into_iter().collect()
    }

    /// What suppressions can name an event by: its place, and what it is about.
    pub(crate) fn about_event(&self, event: u32, about: &mut Vec<String>) {
        let event = &self.trace.events[event as usize];
        let names = &self.trace.names;
        let place = Some(names.locs.get(event.loc())).filter(|place| !place.is_empty());
        about.extend(place.into_iter().chain(event.target_name(names)).map(str::to_owned));
    }

    /// The same of all events that a finding rests on.
    pub(crate) fn about(&self, found: &Found) -> Vec<String> {
        let executed = found.by.executed.iter().map(|wanted| wanted.event);
        let mut about = Vec::new();
        for event in executed.chain(found.by.next.iter().copied()) {
            self.about_event(event, &mut about);
        }
        about
    }

    /// The locks that an event's thread holds just before it, in the order in which they were
    /// taken, with the events that took them.
    pub(crate) fn held_at(&self, event: u32) -> Vec<Held> {
        let mut scene = Scene::default();
        for at in self.requirements.inside(event) {
            scene.event(at, &self.trace.events[at as usize]);
        }
        scene.held(self.trace.events[event as usize].thread()).to_vec()
    }

    /// The locks held at an event and where they were taken, or `no lock`.
    pub(crate) fn told_locks(&self, event: u32) -> String {
        let held = self.held_at(event);
        if held.is_empty() {
            return "no lock".to_owned();
        }
        let tell = |held: &Held| {
            let shared = if held.hold.shared { " (shared)" } else { "" };
            let lock = Name(self.trace.names.locks.get(held.hold.lock));
            format!(
                "{lock}{shared}, taken by event {}{}",
                held.acquire,
                self.place_of(held.acquire)
            )
        };
        held.iter().map(tell).collect::<Vec<_>>().join("; ")
    }

    /// How a thread came to be: `forked by T1 at a.c:9`, or `there from the beginning`.
    pub(crate) fn told_origin(&self, thread: ThreadId) -> String {
        match self.requirements.fork(thread.index()) {
            NONE => "there from the beginning".to_owned(),
            fork => format!("forked by {}{}", self.thread_of(fork), self.place_of(fork)),
        }
    }
}
