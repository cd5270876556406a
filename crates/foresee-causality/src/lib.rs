//! Which events of a trace must come before which.
//!
//! [`Order`] names the relation, [`Clocks`] gives each event of a stream its [`Stamp`], and two
//! events are compared in constant time:
//!
//! ```
//! use foresee_causality::{Clocks, Order};
//! use foresee_trace::{Event, Op, ThreadId};
//!
//! let write = Event::new(ThreadId(0), Op::Write).with_target(0);
//! let read = Event::new(ThreadId(1), Op::Read).with_target(0);
//! let other = Event::new(ThreadId(1), Op::Read).with_target(1);
//!
//! let mut clocks: Clocks = Clocks::new(Order::Mazurkiewicz);
//! let other = clocks.event(&other)?;
//! let write = clocks.event(&write)?;
//! let read = clocks.event(&read)?;
//! assert!(clocks.knows(&read, write.epoch()));
//! assert!(!clocks.knows(&write, other.epoch()) && !clocks.knows(&other, write.epoch()));
//! # Ok::<(), foresee_causality::TooLong>(())
//! ```

mod clock;
pub mod judge;
mod order;
pub mod schedule;

pub use clock::{Clock, ClockStore, Epoch, Stamp};
pub use order::{
    Clocks, Effect, Follows, LaneClocks, LaneVector, Lanes, LanguageClocks, Leaves, Link,
    NoteClocks, Order, TooLong, Wakeups,
};
