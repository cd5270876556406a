//! Notifications that can come too early, so that a thread waits for ever.
//!
//! A wait that has begun is over when somebody notifies. If all notifications of the condition that
//! do not themselves need the wait to be over can come before it begins, nothing in the run ends
//! it: the thread waits for ever, unless something notifies that did not in this run. A wait that
//! a flag guards, read and written under the lock, is safe: had the notification come, the flag
//! would have been seen. Waits that end by themselves after some time are not looked at.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_causality::{Clocks, Epoch, Order};
use foresee_trace::{CondId, Event, Id, LocId, Op, ThreadId, Trace, entry};

use crate::checks::tries::Try;
use crate::reorder::{Requirements, Wanted};

/// How many waits of one pair of places are tried.
const TRIES: usize = 4;
/// How many pairs of places.
const MOST_PLACES: usize = 256;
/// How many threads that notify one goal has.
const MOST_THREADS: usize = 3;

/// A wait, and the notification that ended it.
#[derive(Clone, Debug)]
pub(crate) struct Wait {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) notification: u32,
    cond: CondId,
    thread: ThreadId,
    /// The last notification of each thread that does not need the end of the wait.
    last: Vec<u32>,
}

/// The waits of a trace that ended.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Ends of waits without a limit in time.
    ends: Vec<u32>,
    /// For each thread whether the wait that it began or is about to begin ends by itself.
    is_timed: Vec<bool>,
}

impl Waits {
    /// Takes the next event.
    #[inline]
    pub(crate) fn event(&mut self, index: u32, event: &Event) {
        match event.op() {
            Op::TryFor => *entry(&mut self.is_timed, event.thread().index()) = true,
            Op::Acquire | Op::AcquireShared => {
                if let Some(is_timed) = self.is_timed.get_mut(event.thread().index()) {
                    *is_timed = false;
                }
            }
            Op::WaitEnd => {
                if !std::mem::take(entry(&mut self.is_timed, event.thread().index())) {
                    self.ends.push(index);
                }
            }
            _ => {}
        }
    }

    /// The waits to try, by pairs of places: where it begins and where it is notified.
    pub(crate) fn candidates(
        &self,
        trace: &Trace,
        requirements: &Requirements,
    ) -> Result<Vec<Vec<Wait>>, foresee_causality::TooLong> {
        type Places = (LocId, LocId, CondId);
        let mut numbers: HashMap<Places, usize, RandomState> = HashMap::default();
        let mut groups: Vec<Vec<Wait>> = Vec::new();
        for &end in &self.ends {
            let Some((begin, notification)) = requirements.condition(end) else { continue };
            let event = |i: u32| &trace.events[i as usize];
            let cond = event(end).cond();
            let places = (event(begin).loc(), event(notification).loc(), cond);
            if !numbers.contains_key(&places) && groups.len() == MOST_PLACES {
                continue;
            }
            let number = *numbers.entry(places).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            if groups[number].len() < TRIES {
                let thread = event(end).thread();
                let last = Vec::new();
                groups[number].push(Wait { begin, end, notification, cond, thread, last });
            }
        }
        if !groups.is_empty() {
            find_last(trace, &mut groups)?;
        }
        Ok(groups)
    }
}

/// Finds for each wait the last notification of each thread that does not need its end.
fn find_last(trace: &Trace, groups: &mut [Vec<Wait>]) -> Result<(), foresee_causality::TooLong> {
    let mut waits: Vec<&mut Wait> = groups.iter_mut().flatten().collect();
    let mut clocks: Clocks = Clocks::new(Order::Needs);
    let mut ends: HashMap<u32, Epoch, RandomState> = HashMap::default();
    let mut is_end = vec![false; trace.events.len()];
    waits.iter().for_each(|wait| is_end[wait.end as usize] = true);
    for (i, event) in trace.events.iter().enumerate() {
        let stamp = clocks.event(event)?;
        if is_end[i] {
            ends.insert(i as u32, stamp.epoch());
        }
        if matches!(event.op(), Op::Notify | Op::NotifyAll) {
            let concerned =
                waits.iter_mut().filter(|w| w.cond == event.cond() && w.thread != event.thread());
            for wait in concerned {
                let is_later = ends.get(&wait.end).is_some_and(|&end| clocks.knows(&stamp, end));
                if !is_later {
                    let is_of_it = |&n: &u32| trace.events[n as usize].thread() == event.thread();
                    wait.last.retain(|n| !is_of_it(n));
                    wait.last.push(i as u32);
                }
            }
        }
        clocks.forget_old(&[]);
    }
    Ok(())
}

impl Wait {
    /// What would show that nobody ends it: all notifications that can come without its end have
    /// come, and then it begins. Nothing if too many threads notify.
    pub(crate) fn lost(&self) -> Option<Try> {
        if self.last.len() > MOST_THREADS {
            return None;
        }
        let wanted = |&event: &u32| Wanted { event, keeps_value: false };
        let executed = self.last.iter().chain([&self.begin]).map(wanted).collect();
        Some(Try { executed, next: Vec::new() })
    }
}

/// Whether no notification of the trace can come after the wait has begun, computed once more by
/// following what needs what from the end of the wait on. `happened` tells what has happened.
pub(crate) fn is_for_ever(
    trace: &Trace,
    requirements: &Requirements,
    end: u32,
    happened: impl Fn(u32) -> bool,
) -> bool {
    use crate::reorder::{Kind, NONE};
    let count = trace.events.len() as u32;
    let mut needs_end = vec![false; (count - end) as usize];
    needs_end[0] = true;
    let cond = trace.events[end as usize].cond();
    for event in 0..count {
        if event > end {
            let is_late =
                |other: u32| other != NONE && other >= end && needs_end[(other - end) as usize];
            let partner = match requirements.kind(event) {
                Kind::Read | Kind::Rmw | Kind::Join | Kind::Wait => requirements.partner(event),
                Kind::WaitEnd => requirements.condition(event).map_or(NONE, |c| c.1),
                _ => NONE,
            };
            needs_end[(event - end) as usize] =
                is_late(requirements.previous(event)) || is_late(partner);
        }
        let it = &trace.events[event as usize];
        let notifies = matches!(it.op(), Op::Notify | Op::NotifyAll) && it.cond() == cond;
        let is_late = event > end && needs_end[(event - end) as usize];
        if notifies && !is_late && !happened(event) {
            return false;
        }
    }
    !happened(end)
}
