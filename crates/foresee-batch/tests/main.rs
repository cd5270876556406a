//! The integration tests of this crate, as one executable.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod parts;
mod results;
