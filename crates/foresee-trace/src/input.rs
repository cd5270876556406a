//! Where traces come from, for those who need to read them more than once.

use crate::error::ReadError;
use crate::names::Names;
use crate::source::{Batch, EventSource, FileOrder};
use crate::trace::Trace;
use crate::validate::Mode;

/// A whole trace that can be read as often as needed: a file, events in memory, the log of a
/// program. Every reading gives the same events with the same numbers.
///
/// ```
/// use foresee_trace::{Trace, TraceInput};
///
/// let trace = Trace::default();
/// assert_eq!(TraceInput::name(&trace), "trace");
/// assert!(TraceInput::open(&trace).is_ok());
/// ```
pub trait TraceInput {
    /// What it is called in messages and reports.
    fn name(&self) -> String;

    /// Starts to read it.
    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError>;

    /// What to do about events that no execution could have produced.
    fn mode(&self) -> Mode {
        Mode::Reject
    }

    /// Every name in it, and what its order stands for. Reads all of it, unless they are known.
    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        let mut source = self.open()?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {}
        Ok((source.names().clone(), source.remarks().order))
    }

    /// Whether it was captured for the specifications that it is checked against, so that it has
    /// every access of their variables even if others were left out.
    fn is_made_for_specs(&self) -> bool {
        false
    }
}

impl TraceInput for Trace {
    fn name(&self) -> String {
        "trace".to_owned()
    }

    fn open(&self) -> Result<Box<dyn EventSource + '_>, ReadError> {
        Ok(Box::new(self.source()))
    }

    fn names(&self) -> Result<(Names, FileOrder), ReadError> {
        Ok((self.names.clone(), self.remarks.order))
    }
}

/// What comes after the end of a trace that was still being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continued {
    /// Nothing: that was all of it.
    Over,
    /// The trace from its first event on, with more of the program: the one before was of its beginning.
    Anew,
    /// Nothing, although the program went on; this is why.
    CutShort(String),
}

/// A trace that is still being made.
pub trait GrowingTrace {
    /// What it is called in messages and reports.
    fn name(&self) -> String;

    /// What its order stands for.
    fn order(&self) -> FileOrder;

    /// The trace from its first event on, as far as it is known, and then as it arrives. There is
    /// one such source at a time; a new one starts again.
    fn follow(&self) -> Result<Box<dyn EventSource + '_>, ReadError>;

    /// The trace as far as it has been handed out.
    fn stored(&self) -> Result<Box<dyn EventSource + '_>, ReadError>;

    /// Whether everything that was handed out is stored.
    fn is_all_stored(&self) -> bool;

    /// Whether more is to come after the end of it.
    fn is_continued(&self) -> bool {
        false
    }

    /// What comes after the end of it; waits until that is known. The names and events of another trace are its own.
    fn continues(&self) -> Result<Continued, ReadError> {
        Ok(Continued::Over)
    }

    /// Whether analyses of it may hold this many bytes from now on, besides their own limits.
    fn allows(&self, bytes: usize) -> bool {
        let _ = bytes;
        true
    }
}
