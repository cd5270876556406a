//! The order of the execution itself, as far as the trace shows it.

use foresee_causality::{Clock, Clocks, LaneClocks, NoteClocks, Order, Stamp, TooLong};
use foresee_trace::{Event, FileOrder, Pool, ThreadId, Trace};

/// The order as the trace is read. Only steps of properties are compared, so where the file is in
/// the order of steps only they are counted.
#[derive(Debug)]
pub(super) enum Running {
    Steps(Box<LaneClocks<Clock>>),
    Notes(Box<NoteClocks>),
}

/// What one event knows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Now {
    Steps(Clock),
    Notes(Stamp),
}

impl Running {
    pub(super) fn new(order: FileOrder) -> Running {
        match order {
            FileOrder::Notes => Running::Notes(Box::default()),
            FileOrder::Observed | FileOrder::Filtered => {
                Running::Steps(Box::new(LaneClocks::new(Order::ReadsFrom)))
            }
        }
    }

    /// Takes the next event, which is a step of some property or of none.
    #[inline]
    pub(super) fn event(
        &mut self,
        event: &Event,
        pool: &Pool,
        is_step: bool,
    ) -> Result<Now, TooLong> {
        match self {
            Running::Steps(clocks) => {
                let lane = [event.thread().0];
                Ok(Now::Steps(clocks.event(event, if is_step { &lane } else { &[] })?))
            }
            Running::Notes(clocks) => Ok(Now::Notes(clocks.event(event, pool)?)),
        }
    }

    /// How many of a thread's events, or steps, come before an event or are it.
    #[inline]
    pub(super) fn known(&self, now: &Now, thread: ThreadId) -> u32 {
        match (self, now) {
            (Running::Steps(clocks), Now::Steps(now)) => clocks.count(now, thread.0),
            (Running::Notes(clocks), Now::Notes(now)) => clocks.count(now, thread),
            _ => 0,
        }
    }

    /// Frees what is not needed any more.
    pub(super) fn forget_old<'a>(&mut self, kept: impl Iterator<Item = &'a Now>) {
        match self {
            Running::Steps(clocks) => clocks.forget_old(kept.filter_map(|now| match now {
                Now::Steps(clock) => Some(*clock),
                Now::Notes(_) => None,
            })),
            Running::Notes(clocks) => {
                let stamp = |now: &Now| match now {
                    Now::Notes(stamp) => Some(*stamp),
                    Now::Steps(_) => None,
                };
                clocks.forget_old(&kept.filter_map(stamp).collect::<Vec<_>>());
            }
        }
    }
}

/// The order of all events of a whole trace.
#[derive(Debug)]
pub(super) struct Whole {
    clocks: WholeClocks,
    stamps: Vec<Stamp>,
}

#[derive(Debug)]
enum WholeClocks {
    Steps(Clocks),
    Notes(NoteClocks),
}

impl Whole {
    /// What the execution's events owe to each other.
    pub(super) fn of_execution(trace: &Trace, order: FileOrder) -> Result<Whole, TooLong> {
        if order != FileOrder::Notes {
            return Whole::of(trace, Order::ReadsFrom);
        }
        let mut clocks = NoteClocks::default();
        let events = trace.events.iter();
        let stamps = events.map(|e| clocks.event(e, &trace.pool)).collect::<Result<_, _>>()?;
        Ok(Whole { clocks: WholeClocks::Notes(clocks), stamps })
    }

    /// Another order of a trace that is in the order of its steps.
    pub(super) fn of(trace: &Trace, order: Order) -> Result<Whole, TooLong> {
        let mut clocks: Clocks = Clocks::new(order);
        let stamps = trace.events.iter().map(|e| clocks.event(e)).collect::<Result<_, _>>()?;
        Ok(Whole { clocks: WholeClocks::Steps(clocks), stamps })
    }

    /// How many of a thread's events come before an event or are it.
    pub(super) fn known(&self, event: usize, thread: ThreadId) -> u32 {
        let stamp = &self.stamps[event];
        match &self.clocks {
            WholeClocks::Steps(clocks) => clocks.count(stamp, thread)[0],
            WholeClocks::Notes(clocks) => clocks.count(stamp, thread),
        }
    }

    /// An event's place in its thread; initial values have none.
    pub(super) fn time(&self, event: usize) -> u32 {
        self.stamps[event].time[0]
    }

    /// Whether `a` comes before `b` or is it.
    pub(super) fn is_before(&self, a: usize, b: usize) -> bool {
        self.time(a) <= self.known(b, self.stamps[a].thread)
    }
}
