//! The integration tests of this crate, as one executable: linking one takes a fraction of the time of many.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod capture;
mod checks;
mod correct_programs;
mod drawings;
mod endings;
mod findings;
mod formats;
mod harness;
mod jvm;
mod jvm_uses;
mod limits;
mod observe;
mod ordering;
mod outputs;
mod pages;
mod pictures;
mod races;
mod regions;
mod relatives;
mod replay;
mod reports;
mod trouble;
mod tutorial;
mod unseen;
mod verdicts;
