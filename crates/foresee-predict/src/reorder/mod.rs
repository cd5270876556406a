//! Prediction through locks: what could have happened if locks only exclude each other.
//!
//! The order in which threads took a lock is, most of the time, chance. A *correct reordering* (see
//! [`foresee_causality::judge`]) keeps what each thread was told, and lets critical sections swap
//! and events stay out. Here such reorderings are searched for with a goal in mind, by cutting the
//! trace into few *slices* of which each keeps the order of the file. After Farzan and Mathur,
//! *Parametrizing Reads-From Equivalence for Predictive Monitoring*, 2026, who use a constant-space
//! streaming algorithm; here a search repairs one candidate order at a time.
//!
//! | file | what it does |
//! |---|---|
//! | `requirements` | what each event needs, whatever else is chosen |
//! | `values` | which writes a read could have seen just as well |
//! | `sections` | the critical sections of each lock, and those that a thread is in |
//! | `landmarks` | what some events need for certain, to settle what is far apart |
//! | `slices` | which events are kept, in which slice; taken back when a choice was wrong |
//! | `emission` | the order that slices stand for, and the conflicts in it |
//! | `goal` | the question: these events in this order, then those next |
//! | `repair` | the search for the answer |
//! | `tuples` | which events to try for a pattern |
//! | `sliced` | the analysis: patterns, binding by binding |

mod emission;
mod goal;
mod landmarks;
mod repair;
mod requirements;
mod sections;
mod sliced;
mod slices;
mod tuples;
mod values;

pub use goal::{Answer, Effort, Goal, Sight, Wanted};
pub use repair::Search;
pub(crate) use requirements::{Kind, NONE};
pub use requirements::{Requirements, TooManyEvents};
pub use sliced::{Sliced, SlicedLimits};
