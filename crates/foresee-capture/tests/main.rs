//! The integration tests of this crate, as one executable: linking one takes a fraction of the time of many.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod conformance;
mod explore;
mod explore_generated;
mod flow;
mod generated;
mod native;
mod survival;
mod symbols;
mod token;
