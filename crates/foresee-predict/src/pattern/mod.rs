//! Prediction of patterns: events in an order that some other run has, found in one pass.
//!
//! A tuple of events, one for each position of the pattern, shows up in this order in some run if
//! and only if no event is caused by one that comes later in the pattern. After Ang and Mathur,
//! *Predictive Monitoring against Pattern Regular Languages*, POPL 2024.
//!
//! | file | what it does |
//! |---|---|
//! | `plan` | which search fits a sequence of positions, and what events mean to it |
//! | `subsets` | one greatest tuple for each subset of positions |
//! | `greedy` | the greatest tuple, from the last position on: many positions |
//! | `pareto` | sets of tuples, where candidates are not ordered |
//! | `after_set` | the same for alphabets with any relation of dependence, without clocks |
//! | `tracker` | all searches of one binding, and what the observed run has |
//! | `instances` | the bindings of a pattern's parameters |
//! | `engine` | the pass over the trace, all patterns at once |
//! | `predict` | the analysis |
//! | `witness` | from a tuple to a whole order of events, thread by thread where possible |

mod after_set;
mod engine;
mod event;
mod greedy;
mod instances;
mod joins;
mod pareto;
mod plan;
mod predict;
mod subsets;
mod tracker;
mod witness;

pub use after_set::AfterSets;
pub use plan::Algorithm;
pub use predict::Patterns;
pub use witness::{Match, linearise};
