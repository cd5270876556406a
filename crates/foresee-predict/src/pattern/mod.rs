//! Prediction of patterns: events in an order that some other run has, found in one pass.
//!
//! A tuple of events, one for each position of the pattern, shows up in this order in some run if
//! and only if no event is caused by one that stands later in the pattern (Ang and Mathur 2024).
//!
//! | file | what it does |
//! |---|---|
//! | `witness` | from a tuple to a whole order of events, thread by thread where possible |

mod witness;

pub use witness::{Match, linearise};

/// The name of this analysis.
pub const PATTERN: &str = "pattern";
