//! The integration tests of this crate, as one executable: linking one takes a fraction of the time of many.

#![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

mod action;
mod batch;
mod book;
mod capture;
mod checks;
mod cookbook;
mod correct_programs;
mod drawings;
mod endings;
mod explore;
mod findings;
mod formats;
mod harness;
mod jvm;
mod jvm_beside;
mod jvm_observed;
mod jvm_stacks;
mod jvm_uses;
mod limits;
mod lsp;
mod native_observed;
mod objects;
mod observe;
mod ordering;
mod outputs;
mod pages;
mod pictures;
mod publishing;
mod queues;
mod races;
mod regions;
mod relatives;
mod replay;
mod replay_debug;
mod replay_input;
mod replay_primitives;
mod reports;
mod stacks;
mod trouble;
mod tutorial;
mod unseen;
mod verdicts;
