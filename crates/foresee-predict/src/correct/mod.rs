//! Any property in correct reorderings: the analysis behind `--reorder correct`.
//!
//! The states of the program (see `node`) are searched level by level, window by window of the
//! trace. A window begins after a number of events of the observed run, with every state of the
//! monitor that some reordering of what came before can have there; the next one begins half a
//! window later. So sections swap within a window, and the next window starts from the result.
//!
//! Correct reorderings are those of Smaragdakis, Evans, Sadowski, Yi and Flanagan, *Sound Predictive
//! Race Detection in Polynomial Time*, POPL 2012, with values in place of writers. The search is our
//! own.
//!
//! | file | what it does |
//! |---|---|
//! | `window` | a stretch of the trace, ready to be run in other orders |
//! | `node` | the states of its program, the steps out of them, and which need not be tried |
//! | `search` | the levels, the width, the way to a violation and to the next window |
//! | `predict` | the analysis: properties and bindings, window by window |

mod node;
mod predict;
mod search;
mod window;

pub use node::Reductions;
pub(crate) use predict::CorrectVerdict;
pub use predict::{Correct, CorrectLimits};
