//! Waits that never end: the notification comes too early, or never.
//!
//! A wait that has begun ends when a thread notifies it. There are two ways for it never to end:
//! all notifications of the condition come before it begins, so that it is *lost*, or the threads
//! that could still notify need a lock that the waiting thread holds, so that it is *nested* in
//! what they need. Notifications that come after the end of the wait in program order, by fork or
//! by join, do not count: they cannot come either. Other causes that delay a notification are
//! ignored, since a thread that sees another value may still notify. Timed waits are left out.
//!
//! `guards` decides which waits are safe.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{CondId, Event, Id, LocId, Op, ThreadId, Trace, entry};

use super::guards;
use super::requests::Patience;
use crate::checks::lock_state::{LockState, taken};
use crate::checks::locksets::Hold;
use crate::checks::tries::Try;
use crate::reorder::{Requirements, Wanted};

/// How many waits of one pair of places are tried.
const TRIES: usize = 4;
/// How many pairs of places are tried.
const MOST_PLACES: usize = 256;
/// How many notifying threads one goal has.
const MOST_THREADS: usize = 3;

/// A wait, and the notification that ended it.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) notification: u32,
    cond: CondId,
    thread: ThreadId,
    /// The locks that the thread holds while it waits.
    keeps: Box<[Hold]>,
    /// The threads that can notify without its end.
    notifiers: Vec<Notifier>,
}

/// A thread that can notify.
#[derive(Clone, Debug)]
struct Notifier {
    thread: ThreadId,
    /// Its last notification.
    last: Option<u32>,
    /// Where it requests something that the waiting thread holds, and its notification before that.
    wants: Option<Stop>,
    /// The last such place before its last notification.
    stop: Option<Stop>,
}

#[derive(Clone, Copy, Debug)]
struct Stop {
    acquire: u32,
    before: Option<u32>,
}

/// The waits of a trace that ended.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Ends of waits without a time limit, and the locks held meanwhile.
    ends: Vec<(u32, Box<[Hold]>)>,
    /// For each thread, how long it waits for what it takes next.
    patience: Vec<Patience>,
    /// The number of waits with only their end recorded.
    pub(crate) bare: u64,
}

/// What to try, and what is settled.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// By pairs of places: where it begins and where it is notified.
    pub(crate) groups: Vec<Vec<Wait>>,
    /// How many pairs of places are safe.
    pub(crate) safe: u64,
    /// How many other pairs of places there are, and waits that ended without a recorded
    /// notification.
    pub(crate) not_tried: u64,
    /// How many conditions are waited for by several threads, one of which is woken at a time.
    pub(crate) contended: u64,
}

/// The data about the waits of a pair of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Safe,
    Open(usize),
    NotTried,
}

impl Waits {
    /// Takes the next event.
    #[inline]
    pub(crate) fn event(&mut self, index: u32, event: &Event, lock_state: &LockState) {
        let thread = event.thread();
        match event.op() {
            Op::Try | Op::TryFor => {
                *entry(&mut self.patience, thread.index()) = Patience::after(event);
            }
            // A timed wait is announced before it begins.
            Op::WaitBegin => {}
            Op::WaitEnd => {
                if std::mem::take(entry(&mut self.patience, thread.index())) == Patience::Endless {
                    let kept = lock_state.held(thread).iter().map(|held| held.hold).collect();
                    self.ends.push((index, kept));
                }
            }
            Op::Wait => self.bare += 1,
            _ => {
                if let Some(patience) = self.patience.get_mut(thread.index()) {
                    *patience = Patience::Endless;
                }
            }
        }
    }

    /// The locks that threads hold while they wait, with these threads.
    pub(crate) fn kept<'w>(&'w self, trace: &'w Trace) -> impl Iterator<Item = (ThreadId, Hold)> {
        let thread = |end: u32| trace.events[end as usize].thread();
        let each = move |(end, keeps): &'w (u32, Box<[Hold]>)| {
            keeps.iter().map(move |&hold| (thread(*end), hold))
        };
        self.ends.iter().flat_map(each)
    }

    /// What to try. If `is_exposed`, others may get stuck because a thread waits, so that nothing
    /// is safe.
    pub(crate) fn candidates(
        &self,
        trace: &Trace,
        requirements: &Requirements,
        is_exposed: bool,
    ) -> Result<Candidates, foresee_causality::TooLong> {
        let mut out = Candidates { not_tried: self.bare, ..Candidates::default() };
        let mut waits = Vec::new();
        for (end, keeps) in &self.ends {
            match requirements.condition(*end) {
                Some((begin, notification)) => waits.push((begin, *end, notification, keeps)),
                None => out.not_tried += 1,
            }
        }
        let pairs = waits.iter().map(|&(begin, _, notification, _)| (begin, notification));
        let safe = match is_exposed {
            true => vec![false; waits.len()],
            false => guards::guarded(trace, requirements, pairs)?,
        };
        let mut known: HashMap<(LocId, LocId, CondId), Known, RandomState> = HashMap::default();
        for (&(begin, end, notification, keeps), is_safe) in waits.iter().zip(safe) {
            let event = |i: u32| &trace.events[i as usize];
            let cond = event(end).cond();
            let places = (event(begin).loc(), event(notification).loc(), cond);
            let known = known.entry(places).or_insert(Known::Safe);
            if is_safe {
                continue;
            }
            if *known == Known::Safe {
                *known = match out.groups.len() {
                    MOST_PLACES => Known::NotTried,
                    number => Known::Open(number),
                };
                out.groups.extend((*known != Known::NotTried).then(Vec::new));
            }
            let Known::Open(number) = *known else { continue };
            let group = &mut out.groups[number];
            if group.len() < TRIES {
                group.push(Wait {
                    begin,
                    end,
                    notification,
                    cond,
                    thread: event(end).thread(),
                    keeps: keeps.clone(),
                    notifiers: Vec::new(),
                });
            }
        }
        out.contended = contended(trace, waits.iter().map(|&(_, end, by, _)| (end, by)));
        let count = |what| known.values().filter(|&&one| one == what).count() as u64;
        out.safe = count(Known::Safe);
        out.not_tried += count(Known::NotTried);
        if !out.groups.is_empty() {
            find_notifiers(trace, &mut out.groups);
        }
        Ok(out)
    }
}

/// How many conditions several threads wait for that are notified one at a time.
fn contended(trace: &Trace, waits: impl Iterator<Item = (u32, u32)>) -> u64 {
    let mut conditions: HashMap<CondId, (ThreadId, bool, bool), RandomState> = HashMap::default();
    for (end, notification) in waits {
        let (end, by) = (&trace.events[end as usize], &trace.events[notification as usize]);
        let (first, several, singly) =
            conditions.entry(end.cond()).or_insert((end.thread(), false, false));
        *several |= *first != end.thread();
        *singly |= by.op() == Op::Notify;
    }
    conditions.values().filter(|&&(_, several, singly)| several && singly).count() as u64
}

/// Tracks, event by event, which threads cannot continue because some events do not happen.
#[derive(Clone, Debug, Default)]
struct Late {
    threads: Vec<bool>,
}

impl Late {
    fn add(&mut self, thread: ThreadId) {
        *entry(&mut self.threads, thread.index()) = true;
    }

    fn is(&self, thread: ThreadId) -> bool {
        self.threads.get(thread.index()) == Some(&true)
    }

    fn event(&mut self, event: &Event) {
        match event.op() {
            Op::Fork if self.is(event.thread()) => self.add(event.other()),
            Op::Join if self.is(event.other()) => self.add(event.thread()),
            _ => {}
        }
    }
}

/// Finds for each wait which threads can notify before it ends, and which of them first request
/// what it holds.
fn find_notifiers(trace: &Trace, groups: &mut [Vec<Wait>]) {
    let mut waits: Vec<(&mut Wait, Late)> =
        groups.iter_mut().flatten().map(|wait| (wait, Late::default())).collect();
    let mut patience: Vec<Patience> = Vec::new();
    for (i, event) in trace.events.iter().enumerate() {
        let (i, thread) = (i as u32, event.thread());
        let before =
            std::mem::replace(entry(&mut patience, thread.index()), Patience::after(event));
        match event.op() {
            Op::Fork | Op::Join => waits.iter_mut().for_each(|(_, late)| late.event(event)),
            Op::Notify | Op::NotifyAll => {
                let concerned = |(wait, late): &&mut (&mut Wait, Late)| {
                    wait.cond == event.cond() && wait.thread != thread && !late.is(thread)
                };
                for (wait, _) in waits.iter_mut().filter(concerned) {
                    let notifier = wait.notifier(thread);
                    notifier.last = Some(i);
                    notifier.stop = notifier.wants;
                }
            }
            _ => {}
        }
        let Some(hold) = taken(event) else { continue };
        for (wait, late) in &mut waits {
            if wait.end == i {
                late.add(thread);
            }
            let is_kept = wait.keeps.iter().any(|kept| kept.excludes(hold));
            if is_kept && wait.thread != thread && before == Patience::Endless {
                let notifier = wait.notifier(thread);
                notifier.wants = Some(Stop { acquire: i, before: notifier.last });
            }
        }
    }
    for (wait, _) in waits {
        wait.notifiers.retain(|notifier| notifier.last.is_some());
    }
}

impl Wait {
    fn notifier(&mut self, thread: ThreadId) -> &mut Notifier {
        let at = self.notifiers.iter().position(|notifier| notifier.thread == thread);
        let at = at.unwrap_or_else(|| {
            self.notifiers.push(Notifier { thread, last: None, wants: None, stop: None });
            self.notifiers.len() - 1
        });
        &mut self.notifiers[at]
    }

    /// What would demonstrate that it never ends: all threads that can notify have done so, or are
    /// about to acquire what the waiting thread holds, after it has begun to wait. Empty if too
    /// many can notify.
    pub(crate) fn tries(&self) -> Vec<Try> {
        if self.notifiers.len() > MOST_THREADS {
            return Vec::new();
        }
        // Each thread that can be stopped either is or is not.
        let can_stop: Vec<usize> =
            (0..self.notifiers.len()).filter(|&i| self.notifiers[i].stop.is_some()).collect();
        let one = |choice: u32| {
            let is_stopped = |i: usize| {
                let at = can_stop.iter().position(|&other| other == i);
                at.is_some_and(|at| choice & 1 << at != 0)
            };
            let (mut before, mut next) = (Vec::new(), Vec::new());
            for (i, notifier) in self.notifiers.iter().enumerate() {
                match notifier.stop.filter(|_| is_stopped(i)) {
                    Some(stop) => {
                        next.push(stop.acquire);
                        before.extend(stop.before);
                    }
                    None => before.extend(notifier.last),
                }
            }
            before.sort_unstable();
            let wanted = |event: u32| Wanted { event, keeps_value: false };
            let one = |before: Vec<u32>| Try {
                executed: before.into_iter().chain([self.begin]).map(wanted).collect(),
                next: next.clone(),
            };
            orders(&before).into_iter().map(one).collect::<Vec<_>>()
        };
        (0..1 << can_stop.len()).flat_map(one).collect()
    }
}

/// All permutations of the events, the given order first.
fn orders(events: &[u32]) -> Vec<Vec<u32>> {
    if events.len() < 2 {
        return vec![events.to_vec()];
    }
    let mut all = Vec::new();
    for (i, &first) in events.iter().enumerate() {
        let others = [&events[..i], &events[i + 1..]].concat();
        all.extend(orders(&others).into_iter().map(|rest| [&[first], &rest[..]].concat()));
    }
    all
}

/// Whether no notification of the trace can come after the wait has begun, as long as the events of
/// `stopped` and the end of the wait do not happen. `happened` says what has happened.
pub(crate) fn is_for_ever(
    trace: &Trace,
    wait: &Wait,
    stopped: &[u32],
    happened: impl Fn(u32) -> bool,
) -> bool {
    let mut late = Late::default();
    for (i, event) in (0..).zip(&trace.events) {
        if i == wait.end || stopped.contains(&i) {
            late.add(event.thread());
        }
        late.event(event);
        let notifies = matches!(event.op(), Op::Notify | Op::NotifyAll);
        if notifies && event.cond() == wait.cond && !late.is(event.thread()) && !happened(i) {
            return false;
        }
    }
    !happened(wait.end)
}
