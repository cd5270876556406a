//! The interface between readers and everything that consumes events.

use serde::{Deserialize, Serialize};

use crate::error::{Position, ReadError};
use crate::event::{Event, Pool};
use crate::names::Names;
use crate::stacks::StackId;

/// A part of a trace: as many events as are processed in one go.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The events, in file order.
    pub events: Vec<Event>,
    /// Their values.
    pub pool: Pool,
    /// The call stack of each of them, without its own place; empty if none is known.
    pub stacks: Vec<StackId>,
}

impl Batch {
    /// The number of events in a batch: large enough to make the cost of a call negligible, small
    /// enough to fit in the second-level cache.
    pub const EVENTS: usize = 8192;

    /// Makes room for the next events; keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.pool.clear();
        self.stacks.clear();
    }

    /// The call stack of an event.
    pub fn stack(&self, i: usize) -> StackId {
        self.stacks.get(i).copied().unwrap_or_default()
    }
}

/// What the order of events in the file means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileOrder {
    /// The order in which the steps happened.
    #[default]
    Observed,
    /// The order in which the steps happened, without accesses that are irrelevant to the
    /// causality. What the missing reads saw is unknown, so runs that change the causality cannot
    /// be judged.
    Filtered,
    /// Only the order in which the steps were recorded (asynchronous capture).
    Notes,
}

impl FileOrder {
    /// All orders, by their codes in files.
    pub const ALL: [FileOrder; 3] = [FileOrder::Observed, FileOrder::Notes, FileOrder::Filtered];

    /// The word for it in traces and reports.
    pub fn word(self) -> &'static str {
        match self {
            FileOrder::Observed => "observed",
            FileOrder::Filtered => "thinned",
            FileOrder::Notes => "notes",
        }
    }

    /// The order with this word.
    pub fn by_word(word: &str) -> Option<FileOrder> {
        FileOrder::ALL.into_iter().find(|order| order.word() == word)
    }

    /// Its code in binary files.
    pub fn code(self) -> u8 {
        match self {
            FileOrder::Observed => 0,
            FileOrder::Notes => 1,
            FileOrder::Filtered => 2,
        }
    }
}

/// What a reader knows about a trace besides its events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Remarks {
    /// What the order of events means.
    pub order: FileOrder,
    /// Why the trace ends before the program did, if it does.
    pub cut_short: Option<String>,
    /// Why the trace is incomplete, if it is: part of the program was not built for capture.
    pub partial: Option<String>,
    /// Warnings for the user: lines that were skipped, events that were repaired.
    pub warnings: Vec<String>,
}

impl Remarks {
    /// Adds a reason why the trace is incomplete.
    pub fn add_partial(&mut self, reason: &str) {
        match &mut self.partial {
            Some(all) => {
                all.push_str("; ");
                all.push_str(reason);
            }
            none => *none = Some(reason.to_owned()),
        }
    }
}

/// A stream of events, from any format.
///
/// Consumers pull one batch at a time, so the virtual call costs nothing per event, and a one-pass
/// analysis never holds more than a batch.
pub trait EventSource {
    /// Replaces the contents of `batch` with the next events; at the end, returns `false` and an
    /// empty batch. After an error the source must not be used again.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError>;

    /// The names behind the numbers in all batches so far.
    fn names(&self) -> &Names;

    /// The names, for consumers that add to them.
    fn names_mut(&mut self) -> &mut Names;

    /// The position of event `i` of the latest batch in the input. Meant for messages; may be slow.
    fn position(&self, i: usize) -> Position;

    /// What else is known; complete once the source has ended.
    fn remarks(&self) -> &Remarks;
}

impl<S: EventSource + ?Sized> EventSource for Box<S> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        (**self).next_batch(batch)
    }
    fn names(&self) -> &Names {
        (**self).names()
    }
    fn names_mut(&mut self) -> &mut Names {
        (**self).names_mut()
    }
    fn position(&self, i: usize) -> Position {
        (**self).position(i)
    }
    fn remarks(&self) -> &Remarks {
        (**self).remarks()
    }
}

/// The writing side of a format.
pub trait EventSink {
    /// Takes what is known before the first event, so that readers know it from the start. `finish`
    /// writes everything else at the end.
    fn begin(&mut self, remarks: &Remarks) -> std::io::Result<()> {
        let _ = remarks;
        Ok(())
    }

    /// Takes the next events. All calls must pass the names of the same trace.
    fn write_batch(&mut self, batch: &Batch, names: &Names) -> std::io::Result<()>;

    /// Ends the trace and passes everything to the operating system. If a sink is dropped without
    /// this, readers see a trace that is cut short.
    fn finish(&mut self, names: &Names, remarks: &Remarks) -> std::io::Result<()>;
}
