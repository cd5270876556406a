//! A stretch of the trace, ready to be run in other orders.
//!
//! Everything before the window has happened as observed. Of those events only their effect
//! remains: a read in the window that saw an earlier write must find the variable as it was when
//! the window began, and locks that are held then stay held until they are released.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::reorder::{Kind, NONE, Requirements};

/// What a visible event does to the property.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible {
    /// Its index in the trace.
    pub(crate) event: u32,
    /// Its number among the different things that events do to the property.
    pub(crate) action: u32,
    /// Whether it does the same if the value that it reads is unknown. If not, it must not happen
    /// with another value.
    pub(crate) is_blind: bool,
}

/// The variable's value is one that no later read needs.
pub(super) const NOBODY: u32 = u32::MAX;
/// The variable is as it was when the window began.
pub(super) const BASE: u32 = u32::MAX - 1;

/// One event of the window.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) event: u32,
    pub(super) kind: Kind,
    /// The action, and whether it is the same whatever is read.
    pub(super) visible: Option<(u32, bool)>,
    /// The variable or lock, if several threads use it, by its number in the window.
    pub(super) object: Option<u32>,
    /// What a read saw: the representative of a write of the window, or [`BASE`].
    pub(super) writer: u32,
    /// The representative of the written value: the write itself, or one for all writes of its
    /// value.
    pub(super) leaves: u32,
    /// Whether it is a write that no read ever sees.
    pub(super) is_unread: bool,
    /// Events of other threads that must have happened: thread and number of events.
    pub(super) needs: Vec<(usize, u16)>,
    /// The thread that must have ended without a changed read.
    pub(super) joined: Option<usize>,
    /// For a notification, the waits it ends: thread and place of the beginning, number of the end.
    pub(super) ends: Vec<(usize, u16, u8)>,
    /// For the end of a wait, its number among those of the window; the last number stands for all
    /// beyond it.
    pub(super) wait: Option<u8>,
    /// Whether it takes a lock that a try-lock of the window has to find taken.
    pub(super) is_met: bool,
}

/// A lock that a thread holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) lock: u32,
    pub(super) shared: bool,
}

/// A stretch of the trace.
#[derive(Debug)]
pub(super) struct Window {
    /// The events of each thread.
    pub(super) threads: Vec<Vec<Item>>,
    /// For each thread, the locks it holds after each number of its events.
    pub(super) held: Vec<Vec<Vec<Hold>>>,
    /// For each lock, the threads that hold it at some time.
    pub(super) users: Vec<Vec<usize>>,
    /// For each event of each thread, whether it begins a critical section in which nothing need
    /// matter to others; if not, the section cannot happen at once.
    pub(super) may_be_inert: Vec<Vec<bool>>,
    /// The threads in the order of the events.
    pub(super) observed: Vec<usize>,
    pub(super) variables: usize,
    /// For each write of the window, by event, the reads in the window that see it, as thread and
    /// place, and whether there are any after it.
    readers: HashMap<u32, Readers, RandomState>,
    /// The same for the values at the beginning of the window, by variable.
    base_readers: Vec<Readers>,
}

#[derive(Clone, Debug, Default)]
struct Readers {
    inside: Vec<(usize, u16)>,
    beyond: bool,
}

/// A section that is open at the beginning of a window: thread, object of the lock, acquire.
type Open = (u32, u32, u32);

impl Window {
    /// The events from `start` to before `end`. `last_readers` has, for each write, the last read
    /// that sees it.
    pub(super) fn new(
        requirements: &Requirements,
        last_readers: &[u32],
        visible: &[Visible],
        start: u32,
        end: u32,
    ) -> Window {
        let mut builder = Builder::default();
        for event in start..end {
            if !requirements.is_step(event) {
                continue;
            }
            builder.push(requirements, event);
        }
        let Builder { numbers, places, mut threads, observed, objects, .. } = builder;
        let place = |event: u32| places.get(&event).copied();
        // Writes of one value count as one where reads cannot distinguish them.
        let stands_for = |write: u32| {
            let object = requirements.object(write);
            if object == NONE || !requirements.has_free_reads() {
                return write;
            }
            let base = requirements.last_write_before(object, start);
            match requirements.stands_for(write, base) {
                Some(one) if one == base => BASE,
                Some(one) => one,
                None => write,
            }
        };
        let mut waits = 0u8;
        let mut met = Vec::new();
        let mut readers: HashMap<u32, Readers, RandomState> = HashMap::default();
        let mut base_readers = vec![Readers::default(); objects.len()];
        for own in &mut threads {
            for item in own.iter_mut() {
                let event = item.event;
                let visible =
                    visible.binary_search_by_key(&event, |v| v.event).ok().map(|i| &visible[i]);
                item.visible = visible.map(|v| (v.action, v.is_blind));
                let previous = requirements.previous(event);
                let mut needs = vec![];
                if !requirements.has_previous(event) {
                    needs.push(previous);
                }
                let partner = requirements.partner(event);
                match item.kind {
                    Kind::Join => {
                        needs.push(partner);
                        item.joined = place(partner).map(|(t, _)| t);
                    }
                    Kind::Wait => needs.push(partner),
                    Kind::WaitEnd => {
                        if let Some((begin, notification)) = requirements.condition(event) {
                            needs.push(notification);
                            if place(begin).is_some() {
                                item.wait = Some(waits.min(63));
                                waits = waits.saturating_add(1);
                            }
                        }
                    }
                    Kind::Busy => {
                        needs.push(partner);
                        met.extend(place(partner));
                        if requirements.condition(event).is_some() {
                            item.wait = Some(waits.min(63));
                            waits = waits.saturating_add(1);
                        }
                    }
                    Kind::Read | Kind::Rmw => {
                        item.writer = match partner == NONE || partner < start {
                            true => BASE,
                            false => stands_for(partner),
                        };
                    }
                    Kind::Notify => {
                        // For waits that end in the window, the search knows whether they do;
                        // others must have begun.
                        let others = requirements.conditional(event).iter().filter(|&&e| e >= end);
                        needs.extend(others.filter_map(|&e| Some(requirements.condition(e)?.0)));
                    }
                    _ => {}
                }
                if item.kind.writes() {
                    item.leaves = stands_for(event);
                }
                item.is_unread = item.kind == Kind::Write
                    && item.leaves == event
                    && last_readers[event as usize] == NONE
                    && requirements.stands_for(event, NONE).is_none();
                item.needs = needs
                    .into_iter()
                    .filter(|&need| need != NONE)
                    .filter_map(place)
                    .map(|(t, k)| (t, k + 1))
                    .collect();
            }
        }
        for (t, k) in met {
            threads[t][usize::from(k)].is_met = true;
        }
        // Notifications know the waits that they end, and releases the try-locks that fail before
        // them, now that these have numbers.
        let mut ends: HashMap<u32, Vec<(usize, u16, u8)>, RandomState> = HashMap::default();
        for item in threads.iter().flatten() {
            if let (Some(number), Some((begin, notification))) =
                (item.wait, requirements.condition(item.event))
                && let Some((t, k)) = place(begin)
            {
                ends.entry(notification).or_default().push((t, k, number));
            }
        }
        for (t, own) in threads.iter_mut().enumerate() {
            for (k, item) in own.iter_mut().enumerate() {
                item.ends = ends.remove(&item.event).unwrap_or_default();
                let Some(variable) = item.object else { continue };
                if item.kind.reads() {
                    let reader = (t, k as u16);
                    match item.writer {
                        BASE => base_readers[variable as usize].inside.push(reader),
                        writer => readers.entry(writer).or_default().inside.push(reader),
                    }
                }
                if item.kind.writes() {
                    let last = last_readers[item.event as usize];
                    let is_beyond = last != NONE && last >= end;
                    match item.leaves {
                        BASE => base_readers[variable as usize].beyond |= is_beyond,
                        one => readers.entry(one).or_default().beyond |= is_beyond,
                    }
                }
            }
        }
        let mut window = Window {
            held: Vec::new(),
            users: vec![Vec::new(); objects.len()],
            may_be_inert: Vec::new(),
            observed,
            variables: objects.len(),
            readers,
            base_readers,
            threads,
        };
        let number = |object: u32| objects.get(&object).copied();
        let mut open: Vec<Open> = Vec::new();
        let mut acquires = Vec::new();
        for &object in objects.keys().filter(|&&object| object % 2 == 1) {
            acquires.clear();
            requirements.open_at(object, start, &mut acquires);
            open.extend(acquires.iter().map(|&a| (requirements.thread(a), object, a)));
        }
        // Sorted, so that the order does not depend on hashing.
        open.sort_unstable();
        let begins: Vec<Vec<Hold>> = (0..window.threads.len())
            .map(|t| {
                let own = open.iter().filter(|o| numbers.get(&o.0) == Some(&t));
                own.filter_map(|&(_, object, acquire)| {
                    let shared = requirements.kind(acquire) == Kind::AcquireShared;
                    Some(Hold { lock: number(object)?, shared })
                })
                .collect()
            })
            .collect();
        window.held = window.threads.iter().zip(begins).map(|(own, b)| held(own, b)).collect();
        // Locks held by threads that do nothing here.
        let strangers = open.iter().filter(|o| !numbers.contains_key(&o.0));
        for &(_, object, acquire) in strangers {
            if let Some(lock) = number(object) {
                let shared = requirements.kind(acquire) == Kind::AcquireShared;
                window.threads.push(Vec::new());
                window.held.push(vec![vec![Hold { lock, shared }]]);
            }
        }
        for (t, held) in window.held.iter().enumerate() {
            for hold in held.iter().flatten() {
                let users = &mut window.users[hold.lock as usize];
                if users.last() != Some(&t) {
                    users.push(t);
                }
            }
        }
        let inert = window.threads.iter().zip(&window.held).map(|(own, held)| inert(own, held));
        window.may_be_inert = inert.collect();
        window
    }

    /// Whether a later read, in the window or after it, must see this value of a variable.
    pub(super) fn is_wanted(&self, variable: u32, writer: u32, counts: &[u16]) -> bool {
        let readers = match writer {
            NOBODY => return false,
            BASE => Some(&self.base_readers[variable as usize]),
            writer => self.readers.get(&writer),
        };
        let to_come = |&(t, k): &(usize, u16)| counts[t] <= k;
        readers.is_some_and(|r| r.beyond || r.inside.iter().any(to_come))
    }
}

/// Which events of a thread begin a stretch in which nothing certainly matters to others, and after
/// which the thread holds no more locks than before.
fn inert(own: &[Item], held: &[Vec<Hold>]) -> Vec<bool> {
    let may_happen_at_once = |item: &Item| {
        item.visible.is_none()
            && match item.kind {
                Kind::Rmw => item.object.is_none(),
                Kind::Write => item.object.is_none() || item.is_unread,
                Kind::Release | Kind::ReleaseShared | Kind::Notify => item.ends.is_empty(),
                _ => true,
            }
    };
    let begins = |first: usize| {
        let stretch = own[first..].iter().zip(&held[first + 1..]);
        for (item, now) in stretch {
            if !may_happen_at_once(item) {
                return false;
            }
            if now.len() <= held[first].len() {
                return true;
            }
        }
        false
    };
    (0..own.len()).map(begins).collect()
}

/// The locks that a thread holds after each number of its events.
fn held(own: &[Item], begin: Vec<Hold>) -> Vec<Vec<Hold>> {
    let mut all = vec![begin];
    for item in own {
        let mut now = all[all.len() - 1].clone();
        if let Some(lock) = item.object {
            let shared = item.kind == Kind::AcquireShared;
            if item.kind.acquires() {
                now.push(Hold { lock, shared });
            } else if matches!(item.kind, Kind::Release | Kind::ReleaseShared) {
                let shared = item.kind == Kind::ReleaseShared;
                now.retain(|hold| *hold != Hold { lock, shared });
            }
        }
        all.push(now);
    }
    all
}

#[derive(Default)]
struct Builder {
    numbers: HashMap<u32, usize, RandomState>,
    places: HashMap<u32, (usize, u16), RandomState>,
    threads: Vec<Vec<Item>>,
    observed: Vec<usize>,
    objects: HashMap<u32, u32, RandomState>,
}

impl Builder {
    fn push(&mut self, requirements: &Requirements, event: u32) {
        let count = self.numbers.len();
        let t = *self.numbers.entry(requirements.thread(event)).or_insert(count);
        if t == self.threads.len() {
            self.threads.push(Vec::new());
        }
        let object = Some(requirements.object(event)).filter(|&object| object != NONE);
        let count = self.objects.len() as u32;
        let object = object.map(|object| *self.objects.entry(object).or_insert(count));
        self.places.insert(event, (t, self.threads[t].len() as u16));
        self.threads[t].push(Item {
            event,
            kind: requirements.kind(event),
            visible: None,
            object,
            writer: NOBODY,
            leaves: event,
            is_unread: false,
            needs: Vec::new(),
            joined: None,
            ends: Vec::new(),
            wait: None,
            is_met: false,
        });
        self.observed.push(t);
    }
}
