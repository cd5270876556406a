//! Small mechanisms that several crates of foresee share and that know nothing of traces.
//!
//! This crate is internal: its interface changes whenever foresee needs it to.

pub mod budget;
pub mod causes;
pub mod components;
pub mod count;
pub mod nearest;
pub mod output;
pub mod svg;
