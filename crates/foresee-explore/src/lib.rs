//! Explores the schedules of a program.
//!
//! What a thread does next hangs on what it was told so far. A run shows this as facts; the search covers everything that the
//! facts allow without running anything; and the program is run again only where a fact is missing. If nothing is missing any
//! more, every schedule was covered, for this input.
//!
//! # Guarantees
//!
//! A [`Finding`] is a run that happened. [`Covered::Everything`] means that no schedule leads any thread to a state that no run
//! has shown, and to no deadlock that was not reported, for this input, at the granularity of captured operations, under
//! sequential consistency, if each thread acts only on what it was told. The last is checked in every run, as every run goes
//! through known facts again ([`Doubt`]). Memory grows with the number of states, at some 60 bytes each.
//!
//! [`Covered::Everything`]: outcome::Covered::Everything

mod codec;
mod explore;
mod facts;
mod futures;
pub mod hash;
mod journal;
mod learn;
mod map;
mod memory;
mod model;
mod monitor;
mod outcome;
mod pairs;
pub mod program;
pub mod properties;
mod reduce;
pub mod script;
mod search;

pub use codec::{read_execution, read_schedule, write_execution, write_schedule};
pub use explore::{Progress, Settings, Spin, explore};
pub use facts::{Contradiction, Did};
pub use journal::{Journal, Opened};
pub use learn::Doubt;
pub use monitor::{Monitor, Seen};
pub use outcome::{Covered, Explored, Finding, Stopped, Trouble};
