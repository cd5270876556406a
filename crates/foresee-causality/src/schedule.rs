//! Whole reorderings of a trace: [`Schedule`] extends an order of some events to an order of all
//! events that they need. [`crate::judge`] decides whether the threads could have run in it.

use std::collections::HashMap;

use foresee_trace::{Id, ThreadId, Trace};

use crate::clock::{Epoch, Stamp};
use crate::order::{Clocks, Order, TooLong};

/// An order of some events of a trace, the steps, that preserves its causality, up to one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Schedule {
    steps: Vec<Epoch>,
    /// The number of steps that happen.
    end: usize,
}

impl Schedule {
    /// The first steps happen, in this order; the others come after them, in this order.
    pub fn new(
        first: impl IntoIterator<Item = Epoch>,
        others: impl IntoIterator<Item = Epoch>,
    ) -> Schedule {
        let mut steps: Vec<Epoch> = first.into_iter().collect();
        let end = steps.len();
        steps.extend(others);
        Schedule { steps, end }
    }

    /// The whole order up to the last step that happens, as indices of events: the steps as
    /// given, and all other events as near to their position in the file as the steps allow.
    ///
    /// An event belongs to the stretch that ends with step `j` if `j` is the first step that was
    /// observed after it, or that the event must precede, but no earlier than the stretch after
    /// the last step that it must follow. All three grow along the causal order, so inside a
    /// stretch the order of the file is valid. Events that no step needs may follow the step of
    /// their stretch; after the last step they are left out, so that the order ends with it.
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
        if let Some(last) = stretches.last_mut() {
            // No step needs what was observed after the step that ends the stretch.
            let step = places.indices[self.end - 1] as u64;
            last.retain(|&index| index <= step);
        }
        Ok(stretches.concat())
    }
}

/// The positions of the steps of a schedule.
struct Places {
    /// The index in the trace of each step.
    indices: Vec<usize>,
    /// The index in the trace of the latest observed step up to each.
    latest: Vec<usize>,
    /// The number of events of each thread that precede each step or an earlier one.
    needed: Vec<Vec<u32>>,
    /// For each thread its steps: time and position in the schedule.
    by_thread: Vec<Vec<(u32, usize)>>,
}

impl Places {
    fn of(schedule: &Schedule, trace: &Trace) -> Result<Places, TooLong> {
        let numbers: HashMap<Epoch, usize> =
            schedule.steps.iter().enumerate().map(|(j, &step)| (step, j)).collect();
        let threads = trace.names.threads.len();
        let mut indices = vec![0; schedule.steps.len()];
        let mut needed = vec![vec![0; threads]; schedule.steps.len()];
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        for (i, event) in trace.events.iter().enumerate() {
            let stamp = clocks.event(event)?;
            if let Some(&j) = numbers.get(&stamp.epoch()) {
                indices[j] = i;
                for (t, count) in needed[j].iter_mut().enumerate() {
                    [*count] = clocks.count(&stamp, ThreadId::new(t));
                }
            }
            clocks.forget_old(&[]);
        }
        let mut latest = indices.clone();
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
        Ok(Places { indices, latest, needed, by_thread })
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
