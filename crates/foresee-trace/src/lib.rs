//! The event model of foresee and the seams around it.
//!
//! A *trace* is what one execution of a multithreaded program did, in the order in which it was
//! seen: [`Event`]s of threads on variables, locks, conditions and other threads, with values and
//! source locations where they were captured. Readers of formats are [`EventSource`]s, writers are
//! [`EventSink`]s, and what stands between them works on [`Batch`]es or on a whole [`Trace`].
//!
//! ```
//! use foresee_trace::{Event, Op, Trace, Value};
//!
//! let mut trace = Trace::default();
//! let (t, x) = (trace.names.thread("main")?, trace.names.vars.intern("landing")?);
//! let write = Event::new(t, Op::Write).with_target(x.0);
//! trace.events.push(write.with_values(&[Value::Int(1)], &mut trace.pool));
//! assert_eq!(trace.events[0].describe(&trace.names, &trace.pool).to_string(), "w(landing)=1");
//! # Ok::<(), foresee_trace::TooManyNames>(())
//! ```

mod census;
mod display;
mod error;
mod event;
mod finding;
pub mod generate;
mod ids;
mod input;
mod names;
mod source;
mod trace;
mod validate;
mod value;
pub mod varint;
mod xml;

pub use census::{Census, Lifetime};
pub use display::{Described, DescribedValue, Name, Visible, is_hidden};
pub use error::{ErrorKind, Position, ReadError};
pub use event::{BadEvent, Event, Op, Pool, TargetKind, Values};
pub use finding::{Finding, FindingKind, FindingSink, Flow, Outcome, Reordering, Witness};
pub use ids::{CondId, Id, LocId, LockId, SymId, ThreadId, VarId, entry};
pub use input::{GrowingTrace, TraceInput};
pub use names::{EXTERNAL, HEAP_FREE, Interner, Names, TooManyNames, object_of};
pub use source::{Batch, EventSink, EventSource, FileOrder, Remarks};
pub use trace::{Trace, TraceSource};
pub use validate::{Mode, Validated};
pub use value::Value;
pub use xml::Xml;
