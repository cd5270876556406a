//! Events, locks and threads in the words of reports.

use foresee_trace::{
    EXTERNAL, Fork, HeldLock, Id, LocId, Location, Name, Role, Site, Subject, ThreadId, location,
};

use super::Context;
use super::lock_state::{Held, LockState};
use super::locksets::Hold;
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

    /// Where an event is in the source, if the trace has it.
    pub(crate) fn location_of(&self, event: u32) -> Option<Location> {
        location(self.trace.events[event as usize].loc(), &self.trace.names)
    }

    /// An event with its thread and its place, and nothing of what is around it.
    fn bare_site(&self, role: Role, event: u32) -> Site {
        let (it, names, pool) =
            (&self.trace.events[event as usize], &self.trace.names, &self.trace.pool);
        let mut site = Site::of(role, event.into(), it, names, pool);
        // What an event that has not happened will see is open.
        site.without_values(it, names, pool);
        site
    }

    /// An event that a finding is about, with the locks held at it and where its thread came from.
    pub(crate) fn site(&self, role: Role, event: u32) -> Site {
        let mut site = self.bare_site(role, event);
        site.locks = Some(self.locks_at(event));
        let thread = self.trace.events[event as usize].thread();
        if let Some(it) = &mut site.thread {
            it.forked = self.fork_of(thread);
        }
        site
    }

    /// An event as the trace has it, with its thread and its place: `event 7, w(x) of T1 at a.c:3`.
    pub(crate) fn describe_event(&self, event: u32) -> String {
        self.bare_site(Role::Step, event).to_string()
    }

    /// The variable that an event is about.
    pub(crate) fn variable_of(&self, event: u32) -> Subject {
        let variable = self.trace.events[event as usize].var();
        Subject::Variable(self.trace.names.vars.get(variable).to_owned())
    }

    /// The threads that stand for code that was not captured. It is not known who writes there:
    /// it may have been any thread.
    pub(crate) fn uninstrumented(&self) -> Vec<ThreadId> {
        self.trace.names.threads.lookup(EXTERNAL).into_iter().collect()
    }

    /// The locks that an event's thread holds just before it, in the order in which they were
    /// taken, with the events that took them.
    pub(crate) fn held_at(&self, event: u32) -> Vec<Held> {
        let mut lock_state = LockState::default();
        for at in self.requirements.inside(event) {
            lock_state.event(at, &self.trace.events[at as usize]);
        }
        lock_state.held(self.trace.events[event as usize].thread()).to_vec()
    }

    /// The same, as findings have them.
    pub(crate) fn locks_at(&self, event: u32) -> Vec<HeldLock> {
        self.held_at(event).iter().map(|held| self.held_lock(held.hold, held.acquire)).collect()
    }

    /// A lock that this event took, as findings have it.
    pub(crate) fn held_lock(&self, hold: Hold, acquire: u32) -> HeldLock {
        HeldLock {
            name: self.trace.names.locks.get(hold.lock).to_owned(),
            shared: hold.shared,
            event: acquire.into(),
            location: self.location_of(acquire),
            calls: Vec::new(),
        }
    }

    /// The fork that started a thread.
    fn fork_of(&self, thread: ThreadId) -> Option<Fork> {
        match self.requirements.fork(thread.index()) {
            NONE => None,
            fork => {
                let (by, location) = (self.thread_of(fork).to_owned(), self.location_of(fork));
                Some(Fork { by, event: fork.into(), location, calls: Vec::new() })
            }
        }
    }
}
