//! The whole trace in memory, once, for everyone who needs it.

use std::cell::OnceCell;

use foresee_causality::judge::Judge;
use foresee_trace::Trace;

/// How many bytes a kept trace and its judge take per event.
pub(crate) const BYTES_PER_EVENT: u64 = 24;

/// A trace that was kept, and the one judge of orders of its events, who studies it when he is
/// first asked.
#[derive(Debug)]
pub struct Kept<'t> {
    /// The trace.
    pub trace: &'t Trace,
    judge: OnceCell<Judge<'t>>,
}

impl<'t> Kept<'t> {
    /// A trace for which nothing has been computed yet.
    pub fn new(trace: &'t Trace) -> Self {
        Kept { trace, judge: OnceCell::new() }
    }

    /// The first events alone.
    pub(crate) fn beginning(&self, events: usize) -> Trace {
        let mut trace = self.trace.clone();
        trace.events.truncate(events);
        trace
    }

    /// The judge.
    pub fn judge(&self) -> &Judge<'t> {
        self.judge.get_or_init(|| Judge::new(self.trace))
    }
}
