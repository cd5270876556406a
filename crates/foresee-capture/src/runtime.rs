//! The runtime that programs built for capture are linked with.

/// The object for programs; empty where capture is not supported.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/foresee_rt.o"));
/// The same as a library, for libraries that are linked without undefined symbols.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libforesee_rt.so"));
/// `foresee.h`.
pub const HEADER: &str = foresee_rt::HEADER;

/// Headers that precede libstdc++'s.
pub const CXX_HEADERS: &[(&str, &str)] = foresee_rt::CXX_HEADERS;
