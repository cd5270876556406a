//! The host side of capture: what stands between a program built for capture and a trace.

pub mod compiler;
pub mod launch;
pub mod log;
pub mod naming;
pub mod program;
pub mod runtime;
pub mod summary;
pub mod symbols;
pub mod watch;
