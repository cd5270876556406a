//! Explores the schedules of a program.
//!
//! What a thread does next hangs on what it was told so far. A run shows this as facts; the search covers everything that the
//! facts allow without running anything; and the program is run again only where a fact is missing. If nothing is missing any
//! more, every schedule was covered, for this input.

pub mod hash;
pub mod program;
