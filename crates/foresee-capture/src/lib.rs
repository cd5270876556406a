//! The host side of capture: what stands between a program built for capture and a trace.

pub mod symbols;
