//! Prediction through locks: what could have happened if locks only exclude each other.
//!
//! The order in which threads take a lock is mostly chance. A *correct reordering* (see
//! [`foresee_causality::judge`]) preserves the inputs of each thread, and may swap critical
//! sections and leave out events. The search for such a reordering has a goal, and cuts the trace
//! into few *slices*, each in the order of the file. After Farzan and Mathur,
//! *Parametrizing Reads-From Equivalence for Predictive Monitoring*, 2026, who use a constant-space
//! streaming algorithm; here a search repairs one candidate order at a time.
//!
//! | file | what it does |
//! |---|---|
//! | `requirements` | what each event needs, whatever else is chosen |
//! | `values` | which writes a read could have seen just as well |
//! | `free` | the reads for which that is so |
//! | `sections` | the critical sections of each lock, and those that a thread is in |
//! | `landmarks` | known requirements of some events, to decide goals with distant events |
//! | `slices` | which events are kept, in which slice; undone when a choice was wrong |
//! | `emission` | the order that slices stand for, and the conflicts in it |
//! | `goal` | the question: these events in this order, then those next |
//! | `repair` | the search for the answer |
//! | `tuples` | which events to try for a pattern |
//! | `sliced` | the analysis: patterns, binding by binding |

mod emission;
mod free;
mod goal;
mod landmarks;
mod repair;
mod requirements;
mod sections;
mod sliced;
mod slices;
mod tuples;
mod values;

pub(crate) use crate::needs::{Kind, NONE};
pub use goal::{Answer, Effort, Goal, Sight, Wanted};
pub use repair::Search;
pub use requirements::{Requirements, TooManyEvents};
pub(crate) use sliced::SlicedVerdict;
pub use sliced::{Sliced, SlicedLimits};
