//! The seam between readers and everything that consumes events.

use crate::error::{Position, ReadError};
use crate::event::{Event, Pool};
use crate::names::Names;

/// A stretch of a trace: as many events as are worth handling in one go.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The events, in file order.
    pub events: Vec<Event>,
    /// Their values.
    pub pool: Pool,
}

impl Batch {
    /// How many events readers put into a batch: large enough to make the cost of a call vanish,
    /// small enough to stay in the second-level cache.
    pub const EVENTS: usize = 8192;

    /// Makes room for the next stretch; the memory is kept.
    pub fn clear(&mut self) {
        self.events.clear();
        self.pool.clear();
    }
}

/// What the order of events in the file stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileOrder {
    /// The order in which the steps happened.
    #[default]
    Observed,
    /// The order in which the steps happened, without accesses that add nothing to the causality.
    /// What the missing reads saw is not known, so no run can be judged that changes the causality.
    Thinned,
    /// Only the order in which they were noted (asynchronous capture).
    Notes,
}

impl FileOrder {
    /// All there are, by their codes in files.
    pub const ALL: [FileOrder; 3] = [FileOrder::Observed, FileOrder::Notes, FileOrder::Thinned];

    /// The word for it in traces and reports.
    pub fn word(self) -> &'static str {
        match self {
            FileOrder::Observed => "observed",
            FileOrder::Thinned => "thinned",
            FileOrder::Notes => "notes",
        }
    }

    /// The order that a word stands for.
    pub fn by_word(word: &str) -> Option<FileOrder> {
        FileOrder::ALL.into_iter().find(|order| order.word() == word)
    }

    /// Its code in binary files.
    pub fn code(self) -> u8 {
        match self {
            FileOrder::Observed => 0,
            FileOrder::Notes => 1,
            FileOrder::Thinned => 2,
        }
    }
}

/// What a reader has to say about a trace besides its events.
#[derive(Clone, Debug, Default)]
pub struct Remarks {
    /// What the order of events stands for.
    pub order: FileOrder,
    /// Why the trace ends before the program did, if it does.
    pub cut_short: Option<String>,
    /// Why the trace does not hold everything that the program did, if it does not: part of it was
    /// not built for capture.
    pub partial: Option<String>,
    /// Things the user should know: lines that were skipped, events that were repaired.
    pub warnings: Vec<String>,
}

impl Remarks {
    /// Adds a reason why the trace does not hold everything.
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

/// A stream of events, from whatever format.
///
/// Sources are pulled a batch at a time, so that the virtual call costs nothing per event and an
/// analysis of one pass never holds more than a batch.
pub trait EventSource {
    /// Replaces the contents of `batch` by the next events; `false`, and an empty batch, at the
    /// end. After an error the source is spent.
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError>;

    /// The names behind the numbers in all batches so far.
    fn names(&self) -> &Names;

    /// The names, for one who adds to them.
    fn names_mut(&mut self) -> &mut Names;

    /// Where event `i` of the latest batch stands in the input. May take time: it is meant for
    /// messages.
    fn position(&self, i: usize) -> Position;

    /// What else is known; complete when the source has ended.
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

/// Where events go: the writing side of a format.
pub trait EventSink {
    /// Takes what is known of the trace before its first event, so that whoever reads it later knows
    /// it from the start. What is not told here is written by `finish`, at the end.
    fn begin(&mut self, remarks: &Remarks) -> std::io::Result<()> {
        let _ = remarks;
        Ok(())
    }

    /// Takes the next stretch of the trace. `names` is always that of one and the same trace.
    fn write_batch(&mut self, batch: &Batch, names: &Names) -> std::io::Result<()>;

    /// Ends the trace and hands everything on to the operating system. A sink that is dropped
    /// without this leaves a trace that reads as cut short.
    fn finish(&mut self, names: &Names, remarks: &Remarks) -> std::io::Result<()>;
}
