//! From the events of a pattern to a whole run that has them in this order.
//!
//! First comes everything that the first event needs, then what the second needs on top of that,
//! and so on. None of these blocks holds an event of a later position, because no event is caused
//! by one that stands after it in the pattern. Inside a block a thread runs as long as it can, so
//! that the run has few context switches.

use foresee_causality::{Clocks, Epoch, Order, TooLong};
use foresee_spec::params::Object;
use foresee_trace::{Id, ThreadId, Trace};

/// Events that some run has in the order of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// The property, by its place in the specification.
    pub property: usize,
    /// What each parameter stands for.
    pub binding: Vec<(String, Object)>,
    /// One event of the trace for each position of the pattern.
    pub tuple: Vec<u64>,
    /// The event at which the match became certain: the latest of the tuple in the trace.
    pub certain_at: u64,
}

/// An order of the events that the events of `tuple` need, in which these come one after the other
/// as given; the last of them is its end.
///
/// No event of the tuple may be caused by a later one. The trace may end with the latest of them.
pub fn linearise(trace: &Trace, tuple: &[u64]) -> Result<Vec<u64>, TooLong> {
    let blocks = Blocks::of(trace, tuple)?;
    let mut run = Run { order: Vec::new(), done: vec![0; trace.names.threads.len()], last: None };
    for (block, &goal) in blocks.steps.iter().zip(tuple) {
        run.order.extend(block.iter().filter(|step| step.at.time == 0).map(|step| step.index));
        run.block(block, trace.events[goal as usize].thread());
    }
    Ok(run.order)
}

/// One event of a block.
struct Step {
    index: u64,
    at: Epoch,
    /// Events of other threads that come directly before it.
    causes: Box<[Epoch]>,
}

struct Blocks {
    /// The events of each block, in the order of the trace.
    steps: Vec<Vec<Step>>,
}

impl Blocks {
    fn of(trace: &Trace, tuple: &[u64]) -> Result<Blocks, TooLong> {
        let end = tuple.iter().max().map_or(0, |&last| last as usize + 1);
        let events = &trace.events[..end];
        let threads = trace.names.threads.len();
        // How many events of each thread have happened at the end of each block.
        let mut cuts = vec![vec![0; threads]; tuple.len()];
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        for (i, event) in events.iter().enumerate() {
            let stamp = clocks.event(event)?;
            if let Some(place) = tuple.iter().position(|&index| index == i as u64) {
                for (t, count) in cuts[place].iter_mut().enumerate() {
                    [*count] = clocks.count(&stamp, ThreadId::new(t));
                }
            }
            clocks.forget_old(&[]);
        }
        for place in 1..cuts.len() {
            let (before, after) = cuts.split_at_mut(place);
            for (count, &earlier) in after[0].iter_mut().zip(&before[place - 1]) {
                *count = (*count).max(earlier);
            }
        }
        let mut steps: Vec<Vec<Step>> = tuple.iter().map(|_| Vec::new()).collect();
        let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
        for (i, event) in events.iter().enumerate() {
            let at = clocks.event(event)?.epoch();
            let block = cuts
                .partition_point(|cut| cut.get(at.thread.index()).copied().unwrap_or(0) < at.time);
            if let Some(block) = steps.get_mut(block) {
                let causes = clocks.causes().into();
                block.push(Step { index: i as u64, at, causes });
            }
            clocks.forget_old(&[]);
        }
        Ok(Blocks { steps })
    }
}

/// The run so far.
struct Run {
    order: Vec<u64>,
    /// How many events of each thread have happened.
    done: Vec<u32>,
    last: Option<ThreadId>,
}

impl Run {
    /// Lets the steps of a block happen, each thread as long as it can. The thread of the block's
    /// last event has its turn when no other can go on: it has to come last anyway.
    fn block(&mut self, block: &[Step], goal: ThreadId) {
        let mut waiting: Vec<(ThreadId, std::collections::VecDeque<&Step>)> = Vec::new();
        for step in block.iter().filter(|step| step.at.time > 0) {
            match waiting.iter_mut().find(|(thread, _)| *thread == step.at.thread) {
                Some((_, steps)) => steps.push_back(step),
                None => waiting.push((step.at.thread, [step].into())),
            }
        }
        while !waiting.is_empty() {
            let is_last = |thread: ThreadId| self.last == Some(thread);
            let ready = (0..waiting.len()).filter(|&i| self.is_ready(waiting[i].1[0]));
            let next = ready.min_by_key(|&i| {
                let (thread, steps) = &waiting[i];
                (!is_last(*thread), *thread == goal, steps[0].index)
            });
            // The first step of the block in the order of the trace is always ready.
            let Some(next) = next else { unreachable!("causes come before effects") };
            let (thread, steps) = &mut waiting[next];
            self.last = Some(*thread);
            while let Some(step) = steps.front().filter(|step| self.is_ready(step)) {
                self.order.push(step.index);
                self.done[step.at.thread.index()] = step.at.time;
                steps.pop_front();
            }
            if steps.is_empty() {
                waiting.swap_remove(next);
            }
        }
    }

    fn is_ready(&self, step: &Step) -> bool {
        step.causes.iter().all(|cause| cause.time <= self.done[cause.thread.index()])
    }
}
