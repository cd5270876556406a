//! The runtime that programs built for capture are linked with.

/// The object for programs; empty where capture is not supported.
pub const OBJECT: &[u8] = &[];
/// The same as a library, for libraries.
pub const LIBRARY: &[u8] = &[];
/// `foresee.h`.
pub const HEADER: &str = "";
