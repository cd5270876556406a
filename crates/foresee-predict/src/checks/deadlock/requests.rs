//! Where threads could get stuck: what each of them requested while it held something else.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Event, Id, LocId, Op, ThreadId, Trace, entry};

use super::rings::{Request, Thing};
use crate::checks::lock_state::{LockState, given, taken};
use crate::checks::locksets::{Hold, LockSetId, LockSets};
use crate::users::Users;

/// What a thread would wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Want {
    /// A lock, in some mode.
    Lock(Hold),
    /// The end of a thread.
    End(ThreadId),
}

impl Want {
    /// What a thread has to wait for at this event, as long as another thread holds it.
    pub(crate) fn of(event: &Event) -> Option<Want> {
        match event.op() {
            Op::Join => Some(Want::End(event.other())),
            _ => taken(event).map(Want::Lock),
        }
    }

    fn thing(self) -> (Thing, bool) {
        match self {
            Want::Lock(hold) => (Thing::lock(hold.lock.0), hold.shared),
            Want::End(thread) => (Thing::thread(thread.0), false),
        }
    }
}

/// All events at which a thread requests the same thing at the same place while it holds the same
/// things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Class {
    pub(crate) thread: ThreadId,
    pub(crate) has: LockSetId,
    pub(crate) wants: Want,
    pub(crate) loc: LocId,
    /// Whether the thread gives up after some time.
    pub(crate) is_timed: bool,
}

/// The events of a class.
#[derive(Debug)]
pub(crate) struct Places {
    pub(crate) class: Class,
    /// In the order of the trace.
    pub(crate) events: Vec<u32>,
}

/// The classes of a trace, with their events.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pub(crate) classes: Vec<Places>,
    numbers: HashMap<Class, usize, RandomState>,
    /// For each thread, how it takes the lock that it takes next.
    patience: Vec<Patience>,
    /// For each thread, what its ancestors hold while it runs.
    guards: Vec<Option<Guards>>,
}

/// What the parent of a thread holds from before the fork to after the join.
#[derive(Debug)]
struct Guards {
    parent: ThreadId,
    /// What the parent held at the fork, and since which event.
    at_fork: Vec<(Hold, u32)>,
    /// What it still held at the join.
    kept: Vec<Hold>,
    is_joined: bool,
}

/// How long a thread waits for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// As long as it takes.
    #[default]
    Endless,
    /// For some time.
    Timed,
    /// Not at all.
    None,
}

impl Patience {
    /// What an event says about the next acquire of its thread.
    pub(crate) fn after(event: &Event) -> Patience {
        match event.op() {
            Op::Try => Patience::None,
            Op::TryFor => Patience::Timed,
            _ => Patience::Endless,
        }
    }
}

impl Requests {
    /// Processes the next event. A request of a thread that holds nothing matters only if another
    /// waits for the thread itself, which is not known yet.
    #[inline]
    pub(crate) fn event(&mut self, index: u32, event: &Event, lock_state: &LockState) {
        if matches!(event.op(), Op::Fork | Op::Join) {
            self.guard(event, lock_state);
        }
        let Some(wants) = Want::of(event) else {
            // The event just before an acquire describes it.
            if matches!(event.op(), Op::Try | Op::TryFor | Op::WaitBegin) {
                *entry(&mut self.patience, event.thread().index()) = Patience::after(event);
            }
            return;
        };
        let patience = self.patience.get_mut(event.thread().index());
        let patience = patience.map(std::mem::take).unwrap_or_default();
        let has = lock_state.set(event.thread());
        if has == LockSetId::EMPTY && matches!(wants, Want::Lock(_)) || patience == Patience::None {
            return;
        }
        if let Want::Lock(hold) = wants {
            // A thread that holds the lock exclusively does not wait for it.
            let own = Hold { shared: false, ..hold };
            if lock_state.held(event.thread()).iter().any(|held| held.hold == own) {
                return;
            }
        }
        let is_timed = patience == Patience::Timed;
        let class = Class { thread: event.thread(), has, wants, loc: event.loc(), is_timed };
        self.add(index, class);
    }

    /// A thread is forked or joined, perhaps by one that holds locks.
    fn guard(&mut self, event: &Event, lock_state: &LockState) {
        let guards = entry(&mut self.guards, event.other().index());
        let held = lock_state.held(event.thread()).iter().map(|held| (held.hold, held.acquire));
        if event.op() == Op::Fork {
            let (parent, at_fork, kept) = (event.thread(), held.collect(), Vec::new());
            *guards = Some(Guards { parent, at_fork, kept, is_joined: false });
        } else if let Some(guards) = guards.as_mut().filter(|g| g.parent == event.thread()) {
            guards.kept =
                held.filter(|one| guards.at_fork.contains(one)).map(|one| one.0).collect();
            guards.is_joined = true;
        }
    }

    /// The locks that are held as long as a thread runs, with their holders: its parent, which
    /// waits for it, and the parent's own ancestors.
    fn guards_of(&self, mut thread: ThreadId) -> Vec<(u32, (Thing, bool))> {
        let mut all = Vec::new();
        // A parent started earlier, so this terminates.
        while let Some(Some(guards)) = self.guards.get(thread.index())
            && guards.is_joined
        {
            let kept = guards.kept.iter().map(|&hold| (guards.parent.0, Want::Lock(hold).thing()));
            all.extend(kept);
            thread = guards.parent;
        }
        all
    }

    fn add(&mut self, index: u32, class: Class) {
        let number = *self.numbers.entry(class).or_insert_with(|| {
            self.classes.push(Places { class, events: Vec::new() });
            self.classes.len() - 1
        });
        self.classes[number].events.push(index);
    }

    /// Adds the requests of threads without locks that are awaited by a thread with a lock, or by
    /// one that is awaited in turn.
    pub(crate) fn add_awaited(&mut self, trace: &Trace) {
        let mut awaited: Vec<bool> = Vec::new();
        loop {
            let mut grew = false;
            for Places { class, .. } in &self.classes {
                let Want::End(thread) = class.wants else { continue };
                let counts = class.has != LockSetId::EMPTY
                    || awaited.get(class.thread.index()) == Some(&true);
                if counts {
                    grew |= !std::mem::replace(entry(&mut awaited, thread.index()), true);
                }
            }
            if !grew {
                break;
            }
        }
        if awaited.is_empty() {
            return;
        }
        let mut held: Vec<u32> = vec![0; awaited.len()];
        let mut patience = vec![Patience::Endless; awaited.len()];
        for (i, event) in trace.events.iter().enumerate() {
            let t = event.thread().index();
            if awaited.get(t) != Some(&true) {
                continue;
            }
            let patience = std::mem::replace(&mut patience[t], Patience::after(event));
            if let Some(hold) = taken(event) {
                if held[t] == 0 && patience != Patience::None {
                    let (thread, loc) = (event.thread(), event.loc());
                    let is_timed = patience == Patience::Timed;
                    let (has, wants) = (LockSetId::EMPTY, Want::Lock(hold));
                    let class = Class { thread, has, wants, loc, is_timed };
                    self.add(i as u32, class);
                }
                held[t] += 1;
            } else if given(event).is_some() {
                held[t] = held[t].saturating_sub(1);
            }
        }
    }

    /// The class of an event.
    pub(crate) fn class_of(&self, event: u32) -> Option<&Places> {
        self.classes.iter().find(|class| class.events.binary_search(&event).is_ok())
    }

    /// The classes as input for the search for rings, without locks that only one thread takes: no other thread waits
    /// for those. A thread with n locks inside one another has n²/2 of them in all its requests.
    pub(crate) fn as_requests(&self, trace: &Trace, locksets: &LockSets) -> Vec<Request> {
        let mut users = Users::default();
        for event in &trace.events {
            if let Some(hold) = taken(event) {
                users.add(hold.lock.index(), event.thread().0);
            }
        }
        let is_shared = |hold: &&Hold| users.is_shared(hold.lock.index());
        let shared = |set| locksets.get(set).iter().filter(is_shared);
        let request = |Places { class, .. }: &Places| Request {
            thread: class.thread.0,
            has: shared(class.has).map(|&hold| Want::Lock(hold).thing()).collect(),
            guards: self.guards_of(class.thread),
            wants: class.wants.thing(),
        };
        self.classes.iter().map(request).collect()
    }
}
