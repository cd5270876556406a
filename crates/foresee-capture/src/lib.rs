//! The host side of capture: everything between a program built for capture and a trace.

pub mod assembler;
mod captured;
mod clock;
pub mod compiler;
pub mod explore;
pub mod failure;
pub mod filter;
mod guarded;
mod hang;
pub mod heard;
pub mod jvm;
pub mod launch;
pub mod log;
pub mod lost;
pub mod naming;
mod objects;
mod private;
mod process_tree;
pub mod program;
pub mod replay;
pub mod runtime;
pub mod scratch;
pub mod store;
pub mod summary;
pub mod symbols;
