//! Where threads could get stuck: what each of them requested while it held something else.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_support::components::components_of_pairs;
use foresee_trace::{Event, Id, LocId, Op, ThreadId, Trace, entry};

use super::rings::{Request, Thing};
use crate::checks::lock_state::{LockState, given, taken};
use crate::checks::locksets::{Hold, LockSetId, LockSets};
use crate::users::Users;

/// The number of locks held that all requests list together. The rest is left out, and the result
/// says that not everything was tried.
const MOST_HELD: usize = 8 << 20;

/// Requests for the search for rings, each with the number of its class.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) requests: Vec<Request>,
    /// Those that could be in a ring. Of others, no locks are listed.
    pub(crate) entangled: Vec<u32>,
    /// Whether there was no room for the locks of all of them.
    pub(crate) is_cut: bool,
}

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
            if lock_state.locksets.get(has).binary_search(&own).is_ok() {
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

    /// The classes as input for the search for rings.
    ///
    /// A thread with n locks inside one another has n²/2 of them in all its requests, so only those
    /// that matter are listed: of the classes that could be in a ring, the locks that several
    /// threads take.
    pub(crate) fn as_requests(&self, trace: &Trace, locksets: &LockSets) -> Listed {
        let mut users = Users::default();
        for event in &trace.events {
            if let Some(hold) = taken(event) {
                users.add(hold.lock.index(), event.thread().0);
            }
        }
        let is_shared = |hold: &Hold| users.is_shared(hold.lock.index());
        let entangled = self.entangled(locksets, is_shared);
        let (mut room, mut is_cut) = (MOST_HELD, false);
        let none = |Places { class, .. }: &Places| Request {
            thread: class.thread.0,
            has: Vec::new(),
            guards: self.guards_of(class.thread),
            wants: class.wants.thing(),
        };
        let mut requests: Vec<Request> = self.classes.iter().map(none).collect();
        for &number in &entangled {
            let held = locksets.get(self.classes[number as usize].class.has).iter().copied();
            let has = held.filter(is_shared).map(|hold| Want::Lock(hold).thing());
            let has: Vec<_> = has.collect();
            match room.checked_sub(has.len()) {
                Some(rest) => room = rest,
                None => {
                    is_cut = true;
                    break;
                }
            }
            requests[number as usize].has = has;
        }
        Listed { requests, entangled, is_cut }
    }

    /// Which classes could be in a ring, according to the graph from what is held to what is wanted.
    ///
    /// The sets of locks stand in the graph as the trie in which they are kept: a lock leads to the
    /// nodes below which it is held, and from a set's node to what is wanted with it. Paths from lock
    /// to lock are those of the graph with an edge for each pair, which can have n² edges.
    fn entangled(&self, locksets: &LockSets, is_shared: impl Fn(&Hold) -> bool) -> Vec<u32> {
        let things = self.classes.iter().map(|Places { class, .. }| {
            class.wants.thing().0.code().max(Thing::thread(class.thread.0).code())
        });
        let shared = locksets.trie().filter(|(_, hold, _)| is_shared(hold));
        let shared = shared.map(|(_, hold, node)| (Want::Lock(hold).thing().0.code(), node));
        let shared: Vec<(u32, u32)> = shared.collect();
        let first = shared.iter().map(|&(thing, _)| thing).chain(things).max().map_or(0, |t| t + 1);
        let of_set = |node: u32| first + node;
        let mut edges: Vec<(u32, u32)> =
            shared.iter().map(|&(thing, node)| (thing, of_set(node))).collect();
        edges.extend(locksets.trie().map(|(from, _, to)| (of_set(from), of_set(to))));
        for Places { class, .. } in &self.classes {
            let wanted = class.wants.thing().0.code();
            edges.push((of_set(locksets.node(class.has)), wanted));
            edges.push((Thing::thread(class.thread.0).code(), wanted));
        }
        let component = components_of_pairs(first as usize + locksets.node_count(), &edges);
        let component = |node: u32| component[node as usize];
        let is_entangled = |Places { class, .. }: &Places| {
            let wanted = component(class.wants.thing().0.code());
            // A path from what is wanted to the set leads through a lock of the set.
            wanted == component(of_set(locksets.node(class.has)))
                || wanted == component(Thing::thread(class.thread.0).code())
        };
        let numbered = (0..).zip(&self.classes);
        numbered.filter(|(_, class)| is_entangled(class)).map(|(number, _)| number).collect()
    }
}

#[cfg(test)]
mod tests {
    use foresee_testkit::families;

    use super::*;
    use crate::checks::deadlock::rings::tests::{all_rings, entangled};
    use crate::checks::deadlock::rings::{Limits, rings};

    /// Leaving out what is not entangled leaves every ring, and listing what is loses none.
    #[test]
    fn the_trie_has_the_components_of_all_pairs() {
        let (mut kept, mut left_out) = (0, 0);
        let families = families();
        for seed in 0..2000 {
            let trace = families[seed as usize % families.len()].trace(seed, 60);
            let (mut requests, mut lock_state) = (Requests::default(), LockState::default());
            for (i, event) in (0..).zip(&trace.events) {
                requests.event(i, event, &lock_state);
                lock_state.event(i, event);
            }
            requests.add_awaited(&trace);
            let locksets = &lock_state.locksets;
            let all: Vec<Request> = requests
                .classes
                .iter()
                .map(|Places { class, .. }| Request {
                    thread: class.thread.0,
                    has: locksets.get(class.has).iter().map(|&h| Want::Lock(h).thing()).collect(),
                    guards: requests.guards_of(class.thread),
                    wants: class.wants.thing(),
                })
                .collect();
            let by_definition = entangled(&all);
            assert_eq!(requests.entangled(locksets, |_| true), by_definition, "{seed}");
            let expected = all_rings(&all).found;
            let listed = requests.as_requests(&trace, locksets);
            assert!(!listed.is_cut);
            let found = rings(&listed.requests, &listed.entangled, Limits::default()).found;
            assert_eq!(found, expected, "{seed}");
            kept += expected.len();
            left_out += all.len() - by_definition.len();
        }
        assert!(kept > 100 && left_out > 100, "{kept} rings, {left_out} left out");
    }
}
