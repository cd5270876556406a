//! What the first pass over a log keeps, for all languages: the trace if it is short, its names, and which variables are
//! private to a thread. Later passes read the log again and leave out the same.

use std::mem::take;

use foresee_trace::{
    Batch, Event, EventSource, FileOrder, Names, Pool, Position, ReadError, Remarks, StackId, Trace,
};

use crate::guarded::{self, EventSet};
use crate::private::{Keep, Owners, Shared};
use crate::store::StoreError;

/// The maximum number of events kept in memory, so that a log is read only once.
const KEPT_EVENTS: usize = 4 << 20;

/// The first pass over a log.
pub(crate) struct FirstPass {
    pub(crate) owners: Owners,
    /// The trace, as long as it is short.
    trace: Option<Trace>,
}

impl FirstPass {
    /// Begins with these events, which are not steps of a thread.
    pub(crate) fn new(mut first: Batch) -> FirstPass {
        let mut trace = Trace::default();
        trace.push_batch(&mut first);
        FirstPass { owners: Owners::default(), trace: Some(trace) }
    }

    /// Takes the next events.
    pub(crate) fn see(&mut self, batch: &mut Batch, names: &Names) {
        self.owners.see(batch, names);
        self.trace.take_if(|trace| trace.events.len() + batch.events.len() > KEPT_EVENTS);
        if let Some(trace) = &mut self.trace {
            trace.push_batch(batch);
        }
    }

    /// What is kept of the trace.
    pub(crate) fn finish(
        self,
        names: Names,
        remarks: Remarks,
        keep: Keep,
    ) -> Result<Captured, StoreError> {
        let FirstPass { owners, mut trace } = self;
        let shared = owners.shared(&names, keep)?;
        if let Some(trace) = &mut trace {
            let (events, pool) = (take(&mut trace.events), take(&mut trace.pool));
            let mut stacks = take(&mut trace.stacks);
            if !stacks.is_empty() {
                stacks.resize(events.len(), StackId::NONE);
            }
            let mut batch = Batch { events, pool, stacks };
            trace.names = match &shared {
                None => names.clone(),
                Some(shared) => {
                    shared.narrow(&mut batch);
                    shared.names.clone()
                }
            };
            (trace.events, trace.pool, trace.stacks) = (batch.events, batch.pool, batch.stacks);
            trace.remarks = remarks.clone();
        }
        Ok(Captured { shared, unnoticed: EventSet::default(), names, remarks, trace })
    }
}

/// What is known of a log after its first pass.
pub(crate) struct Captured {
    /// What remains without private variables, if anything is left out.
    shared: Option<Shared>,
    /// Accesses that are left out as well, by their numbers among what remains otherwise.
    unnoticed: EventSet,
    /// The names, before anything is left out.
    names: Names,
    remarks: Remarks,
    /// The trace, if it is short.
    trace: Option<Trace>,
}

impl Captured {
    fn all_names(&self) -> &Names {
        self.shared.as_ref().map_or(&self.names, |shared| &shared.names)
    }

    /// The names of the trace, and its order.
    pub(crate) fn names(&self) -> (Names, FileOrder) {
        (self.all_names().clone(), self.remarks.order)
    }

    /// Leaves out what [no other thread can notice](guarded) either, if the trace is short.
    pub(crate) fn leave_out_unnoticed(&mut self) {
        let Some(trace) = &mut self.trace else { return };
        if self.remarks.order != FileOrder::Observed {
            return;
        }
        let unnoticed = guarded::unnoticed(&trace.events, &trace.pool, &trace.names);
        let (mut events, mut stacks) = (0.., 0..);
        trace.events.retain(|_| events.next().is_some_and(|event| !unnoticed.has(event)));
        trace.stacks.retain(|_| stacks.next().is_some_and(|event| !unnoticed.has(event)));
        self.unnoticed = unnoticed;
    }

    /// Tells of all events of the log, before anything is left out, in their order, which of them are in the trace. The first
    /// of them are not steps of a thread.
    pub(crate) fn keeping(&self, not_steps: usize) -> impl FnMut(&Event, &Pool) -> bool {
        let mut remaining = not_steps;
        move |event, pool| {
            let remains = self.shared.as_ref().is_none_or(|shared| shared.keeps(event, pool));
            remaining += usize::from(remains);
            remains && !self.unnoticed.has(remaining - 1)
        }
    }

    /// Adds a reason why the trace is incomplete.
    pub(crate) fn add_partial(&mut self, reason: &str) {
        self.remarks.add_partial(reason);
        if let Some(trace) = &mut self.trace {
            trace.remarks.add_partial(reason);
        }
    }

    /// The events. `reread` reads a long log once more: it returns what reads the next events, before anything is left
    /// out.
    pub(crate) fn open<'c, F: FnMut(&mut Batch) -> Result<bool, ReadError> + 'c>(
        &'c self,
        reread: impl FnOnce() -> Result<F, ReadError>,
    ) -> Result<Box<dyn EventSource + 'c>, ReadError> {
        match &self.trace {
            Some(trace) => Ok(Box::new(trace.source())),
            None => Ok(Box::new(Narrowed { captured: self, next: reread()?, names: None })),
        }
    }
}

/// The events of a long log, read once more, without private variables.
struct Narrowed<'c, F> {
    captured: &'c Captured,
    next: F,
    /// Present once a caller has asked to add names.
    names: Option<Names>,
}

impl<F: FnMut(&mut Batch) -> Result<bool, ReadError>> EventSource for Narrowed<'_, F> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        while (self.next)(batch)? {
            if let Some(shared) = &self.captured.shared {
                shared.narrow(batch);
            }
            if !batch.events.is_empty() {
                return Ok(true);
            }
        }
        batch.clear();
        Ok(false)
    }

    fn names(&self) -> &Names {
        self.names.as_ref().unwrap_or_else(|| self.captured.all_names())
    }

    fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_with(|| self.captured.all_names().clone())
    }

    fn position(&self, _: usize) -> Position {
        Position::Unknown
    }

    fn remarks(&self) -> &Remarks {
        &self.captured.remarks
    }
}
