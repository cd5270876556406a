//! Causal orders: which events must come before which.

mod clocks;
mod dependence;
mod lanes;
mod language;
mod notes;
mod notify;

pub use clocks::{Clocks, TooLong};
pub use dependence::{Effect, Follows, Leaves, Link, Order};
pub use lanes::{LaneClocks, LaneVector, Lanes};
pub use language::LanguageClocks;
pub use notes::NoteClocks;
pub use notify::Wakeups;
