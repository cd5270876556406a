//! The integration tests of this crate, as one executable: linking one takes a fraction of the time of many.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod common;
mod correct;
mod deadlock;
mod goal;
mod language;
mod lattice;
mod locks;
mod monitorability;
mod names;
mod nondeterminism;
mod pattern;
mod picture;
mod race;
mod regions;
mod sliced;
mod witness;
