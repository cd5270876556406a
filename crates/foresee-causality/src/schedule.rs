//! Whole reorderings of a trace, and whether they keep its causality.
//!
//! [`Schedule`] turns an order of some events into an order of all events they need. [`check`]
//! judges such an order by replaying it, and shares nothing with the clocks and their rules of
//! dependence: what they get wrong it rejects.

use std::collections::HashMap;

use foresee_trace::{Event, Id, Op, ThreadId, Trace};

use crate::clock::{Epoch, Stamp};
use crate::order::{Clocks, Order, TooLong, Wakeups};

/// An order of some events of a trace, the steps, that its causality allows, up to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    steps: Vec<Epoch>,
    /// How many of the steps happen.
    end: usize,
}

impl Schedule {
    /// The first steps happen, in this order; the others, in this order, only after them.
    pub fn new(
        first: impl IntoIterator<Item = Epoch>,
        others: impl IntoIterator<Item = Epoch>,
    ) -> Schedule {
        let mut steps: Vec<Epoch> = first.into_iter().collect();
        let end = steps.len();
        steps.extend(others);
        Schedule { steps, end }
    }

    /// The whole order up to the last step that happens, as indices of events: the steps as they
    /// are given, and all other events as near to their place in the file as the steps allow.
    ///
    /// An event belongs to the stretch that ends with step `j` if `j` is the first step that was
    /// observed after it, or that the event must precede, but no earlier than the stretch after
    /// the last step that it must follow. All three grow along the causal order, so inside a
    /// stretch the order of the file will do.
    pub fn order(&self, trace: &Trace) -> Result<Vec<u64>, TooLong> {
        let places = Places::of(self, trace)?;
        let mut stretches: Vec<Vec<u64>> = vec![Vec::new(); self.steps.len()];
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        for (i, event) in trace.events.iter().enumerate() {
            let stamp = clocks.event(event)?;
            if let Some(stretch) = stretches.get_mut(places.stretch(i, &stamp, &clocks)) {
                stretch.push(i as u64);
            }
            clocks.forget_old(&[]);
        }
        stretches.truncate(self.end);
        Ok(stretches.concat())
    }
}

/// Where the steps of a schedule stand.
struct Places {
    /// The index in the trace of the latest observed step up to each.
    latest: Vec<usize>,
    /// How many events of each thread are before each step or one before it.
    needed: Vec<Vec<u32>>,
    /// For each thread its steps: time and place in the schedule.
    by_thread: Vec<Vec<(u32, usize)>>,
}

impl Places {
    fn of(schedule: &Schedule, trace: &Trace) -> Result<Places, TooLong> {
        let numbers: HashMap<Epoch, usize> =
            schedule.steps.iter().enumerate().map(|(j, &step)| (step, j)).collect();
        let threads = trace.names.threads.len();
        let mut latest = vec![0; schedule.steps.len()];
        let mut needed = vec![vec![0; threads]; schedule.steps.len()];
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        for (i, event) in trace.events.iter().enumerate() {
            let stamp = clocks.event(event)?;
            if let Some(&j) = numbers.get(&stamp.epoch()) {
                latest[j] = i;
                for (t, count) in needed[j].iter_mut().enumerate() {
                    [*count] = clocks.count(&stamp, ThreadId::new(t));
                }
            }
            clocks.forget_old(&[]);
        }
        let mut by_thread = vec![Vec::new(); threads];
        for (j, step) in schedule.steps.iter().enumerate() {
            by_thread[step.thread.index()].push((step.time, j));
            if j > 0 {
                latest[j] = latest[j].max(latest[j - 1]);
                let (before, after) = needed.split_at_mut(j);
                for (count, &earlier) in after[0].iter_mut().zip(&before[j - 1]) {
                    *count = (*count).max(earlier);
                }
            }
        }
        Ok(Places { latest, needed, by_thread })
    }

    /// The stretch that event `i` belongs to.
    fn stretch(&self, i: usize, stamp: &Stamp, clocks: &Clocks) -> usize {
        let epoch = stamp.epoch();
        let observed = self.latest.partition_point(|&index| index < i);
        let precedes = self.needed.partition_point(|n| n[epoch.thread.index()] < epoch.time);
        let follows = |(t, steps): (usize, &Vec<(u32, usize)>)| {
            let [time] = clocks.count(stamp, ThreadId::new(t));
            let passed = steps.partition_point(|step| step.0 <= time);
            let (last, place) = *steps[..passed].last()?;
            // A step ends its own stretch.
            let is_itself = t == epoch.thread.index() && last == epoch.time;
            Some(if is_itself { place } else { place + 1 })
        };
        let follows = self.by_thread.iter().enumerate().filter_map(follows).max().unwrap_or(0);
        observed.max(follows).min(precedes)
    }
}

/// Why an order is no reordering of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("position {position}: {reason}")]
pub struct Rejected {
    /// Where in the order.
    pub position: usize,
    /// What is wrong there.
    pub reason: &'static str,
}

/// Judges whether an order of events is the beginning of a linearisation of the Mazurkiewicz order
/// of a trace.
///
/// It is replayed: each thread takes its own events in their order; each variable and each lock
/// sees the operations on it in the order of the file, only that reads of one write may change
/// places; and a thread runs after its fork, is joined after its end, and wakes after the
/// notification that woke it.
pub fn check(trace: &Trace, order: &[u64]) -> Result<(), Rejected> {
    let mut replay = Replay::new(trace);
    for (position, &index) in order.iter().enumerate() {
        let reject = |reason| Rejected { position, reason };
        let Some(event) = usize::try_from(index).ok().and_then(|i| trace.events.get(i)) else {
            return Err(reject("there is no such event"));
        };
        replay.step(index as usize, event).map_err(reject)?;
    }
    Ok(())
}

/// What of the file's order an event has to wait for.
struct Replay {
    /// The events of each thread.
    threads: HashMap<ThreadId, Vec<usize>>,
    done: Vec<bool>,
    /// For each event the earlier events that it must not overtake.
    needs: Vec<Vec<usize>>,
}

impl Replay {
    fn new(trace: &Trace) -> Replay {
        let mut threads: HashMap<ThreadId, Vec<usize>> = HashMap::new();
        let mut needs: Vec<Vec<usize>> = Vec::with_capacity(trace.events.len());
        let mut vars: HashMap<u32, (Option<usize>, Vec<usize>)> = HashMap::new();
        let mut locks: HashMap<u32, usize> = HashMap::new();
        let mut forks: HashMap<ThreadId, usize> = HashMap::new();
        // Which notification ended which wait is a matter of definition, so it is shared.
        let mut wakeups = Wakeups::default();
        for (i, event) in trace.events.iter().enumerate() {
            let mut need = Vec::new();
            let op = event.op();
            if op != Op::Init {
                let own = threads.entry(event.thread()).or_default();
                if own.is_empty() {
                    need.extend(forks.get(&event.thread()));
                }
                own.push(i);
            }
            let lock = match op {
                Op::Acquire | Op::Release | Op::AcquireShared | Op::ReleaseShared => {
                    Some(event.lock())
                }
                _ => event.wait_lock(),
            };
            if let Some(lock) = lock {
                need.extend(locks.insert(lock.0, i));
            }
            if op.writes() {
                let (write, reads) = vars.entry(event.var().0).or_default();
                need.extend(write.replace(i));
                need.append(reads);
            } else if op.reads() {
                let (write, reads) = vars.entry(event.var().0).or_default();
                need.extend(*write);
                reads.push(i);
            }
            match op {
                Op::Fork => drop(forks.insert(event.other(), i)),
                Op::Join => {
                    need.extend(forks.get(&event.other()));
                    need.extend(threads.get(&event.other()).and_then(|own| own.last()));
                }
                Op::WaitBegin => wakeups.begin(event.cond(), event.thread(), i),
                Op::Notify | Op::NotifyAll => {
                    need.extend((0..).map_while(|w| wakeups.waiting(event.cond(), w)));
                    wakeups.notify(event.cond(), i, op == Op::NotifyAll);
                }
                Op::WaitEnd => need.extend(wakeups.end(event.cond(), event.thread())),
                Op::Wait => need.extend(wakeups.latest(event.cond())),
                _ => {}
            }
            needs.push(need);
        }
        Replay { threads, done: vec![false; trace.events.len()], needs }
    }

    fn step(&mut self, index: usize, event: &Event) -> Result<(), &'static str> {
        if std::mem::replace(&mut self.done[index], true) {
            return Err("the event happens twice");
        }
        if event.op() == Op::Init {
            return Ok(());
        }
        let own = &self.threads[&event.thread()];
        let place = own.partition_point(|&i| i < index);
        if place > 0 && !self.done[own[place - 1]] {
            return Err("an earlier event of the thread has not happened");
        }
        if self.needs[index].iter().any(|&i| !self.done[i]) {
            return Err("an event that it depends on has not happened");
        }
        Ok(())
    }
}
