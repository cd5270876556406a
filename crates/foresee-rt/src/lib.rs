//! The runtime of foresee, which is linked into captured programs.
//!
//! `foresee cc` makes the compiler place the hooks of its thread sanitizer, and links this runtime
//! instead of the
//! sanitizer's own. It implements the hooks and intercepts the functions of libc with which threads
//! synchronise: it writes
//! what they do to a log that survives the program (`docs/capture-log.md`), and the program
//! continues as usual.
//!
//! The crate is compiled twice. As a member of the workspace it is the description of the log
//! ([`mod@format`]) and code to be
//! linted and tested; it exports nothing under the names that programs call. With `--cfg
//! foresee_object`, by the
//! build script of `foresee-capture`, it becomes the object. That is why it has no dependencies,
//! not even the `libc` crate:
//! its sources ([`SOURCES`]) are all there is to compile.

#![cfg_attr(not(test), no_std)]
#![cfg_attr(not(foresee_object), allow(dead_code))]
// Programs and compilers chose these names.
#![allow(non_snake_case)]

pub mod format;
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod runtime;

// `SOURCES`, the text of every source file by its path under `src`: the build script lists what is there.
#[cfg(not(foresee_object))]
include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// `foresee.h`, for programs that name events.
#[cfg(not(foresee_object))]
pub const HEADER: &str = include_str!("../include/foresee.h");

/// Headers that precede libstdc++'s, by their paths in a directory of their own.
#[cfg(not(foresee_object))]
pub const CXX_HEADERS: &[(&str, &str)] =
    &[("bits/basic_string.tcc", include_str!("../include/c++/bits/basic_string.tcc"))];

#[cfg(foresee_object)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    runtime::sys::abort()
}
