//! The event model of foresee and the interfaces around it.
//!
//! A *trace* records what one execution of a multithreaded program did, in the observed order:
//! [`Event`]s of threads on variables, locks, conditions and other threads, with values and source
//! locations if they were captured. Readers of formats are [`EventSource`]s, writers are
//! [`EventSink`]s, and everything between them works on [`Batch`]es or on a whole [`Trace`].
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
mod detail;
mod display;
mod error;
mod event;
mod finding;
mod fingerprint;
pub mod generate;
mod ids;
mod input;
mod location;
mod lock_edge;
mod names;
mod site;
mod source;
mod stacks;
mod trace;
mod validate;
mod value;
pub mod varint;
mod words;

pub use census::{Census, Lifetime};
pub use detail::{
    Blocked, Detail, Fact, OtherRead, Point, Region, Remedy, RingEdge, StillToCome,
    SwappedSections, Wants,
};
pub use display::{Described, DescribedValue, Name, Visible, is_hidden};
pub use error::{ErrorKind, Position, ReadError};
pub use event::{BadEvent, Event, Op, Pool, TargetKind, Values};
pub use finding::{
    Confirmation, Confirmed, Finding, FindingKind, FindingSink, Flow, Outcome, ShownBy, Space,
    Subject, Verdict, Witness,
};
pub use fingerprint::{
    Fingerprint, SiteKey, block_start, closing, operation, stable_function, stable_path,
};
pub use ids::{CondId, Id, LocId, LockId, SymId, ThreadId, VarId, entry};
pub use input::{Continued, GrowingTrace, TraceInput};
pub use location::Location;
pub use lock_edge::LockEdge;
pub use names::{
    EXTERNAL, FieldName, HEAP_FREE, Interner, Names, TooManyNames, object_of, plain_name,
};
pub use site::{Fork, HeldLock, Role, Site, SiteThread, Target, calls, location};
pub use source::{Batch, EventSink, EventSource, FileOrder, Remarks};
pub use stacks::{CallStacks, StackId};
pub use trace::{Trace, TraceSource};
pub use validate::{Mode, Validated};
pub use value::Value;
pub use words::{Word, read_word};
