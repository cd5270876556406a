//! A whole trace in memory.

use crate::error::{Position, ReadError};
use crate::event::{Event, Pool};
use crate::names::Names;
use crate::source::{Batch, EventSource, Remarks};
use crate::stacks::StackId;

/// A whole trace, for analyses that need random access: sixteen bytes per event, plus the values
/// that do not fit.
///
/// ```
/// use foresee_trace::{Event, Op, Trace};
///
/// let mut trace = Trace::default();
/// let x = trace.names.vars.intern("x")?;
/// let main = trace.names.thread("main")?;
/// trace.events.push(Event::new(main, Op::Write).with_target(x.0));
/// assert_eq!(trace.events.len(), 1);
/// # Ok::<(), foresee_trace::TooManyNames>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The events in file order; reports refer to an event by its index here.
    pub events: Vec<Event>,
    /// Their values.
    pub pool: Pool,
    /// The names behind the numbers.
    pub names: Names,
    /// The reader's remarks.
    pub remarks: Remarks,
    /// The call stack of each event; may end before the events do if those of the rest are not known.
    pub stacks: Vec<StackId>,
}

impl Trace {
    /// Reads a source to its end.
    pub fn load(source: &mut dyn EventSource) -> Result<Trace, ReadError> {
        let mut trace = Trace::default();
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            trace.push_batch(&mut batch);
        }
        trace.names = source.names().clone();
        trace.remarks = source.remarks().clone();
        Ok(trace)
    }

    /// Moves a batch to the end of the trace. Its numbers must refer to the trace's names.
    pub fn push_batch(&mut self, batch: &mut Batch) {
        self.pool.append(&batch.pool, &mut batch.events);
        if !batch.stacks.is_empty() {
            self.stacks.resize(self.events.len(), StackId::NONE);
            self.stacks.extend_from_slice(&batch.stacks);
        }
        self.events.extend_from_slice(&batch.events);
    }

    /// The size of events and stacks in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.events) + size_of_val(&*self.stacks)
    }

    /// The trace as a stream.
    pub fn source(&self) -> TraceSource<'_> {
        TraceSource { trace: self, names: None, start: 0, end: 0 }
    }
}

/// The events of a [`Trace`] as a stream.
#[derive(Debug)]
pub struct TraceSource<'t> {
    trace: &'t Trace,
    /// A copy of the names, made when a consumer adds to them.
    names: Option<Names>,
    start: usize,
    end: usize,
}

impl EventSource for TraceSource<'_> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        self.start = self.end;
        self.end = (self.start + Batch::EVENTS).min(self.trace.events.len());
        for &event in &self.trace.events[self.start..self.end] {
            let event = batch.pool.adopt(event, &self.trace.pool);
            batch.events.push(event);
        }
        if let Some(stacks) = self.trace.stacks.get(self.start..) {
            batch.stacks.extend_from_slice(&stacks[..stacks.len().min(batch.events.len())]);
            if !batch.stacks.is_empty() {
                batch.stacks.resize(batch.events.len(), StackId::NONE);
            }
        }
        Ok(self.start < self.end)
    }

    fn names(&self) -> &Names {
        self.names.as_ref().unwrap_or(&self.trace.names)
    }

    fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_with(|| self.trace.names.clone())
    }

    fn position(&self, i: usize) -> Position {
        Position::Event((self.start + i) as u64)
    }

    fn remarks(&self) -> &Remarks {
        &self.trace.remarks
    }
}
