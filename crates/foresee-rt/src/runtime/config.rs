//! What the launcher requested, and whether this process is recorded at all.

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use super::{sys, turns};

static RECORDING: AtomicBool = AtomicBool::new(false);
static FREE_RUNNING: AtomicBool = AtomicBool::new(false);
static FILTER: AtomicBool = AtomicBool::new(true);
static CALLS: AtomicBool = AtomicBool::new(false);
static STACKS: AtomicBool = AtomicBool::new(false);
static QUANTUM: AtomicI32 = AtomicI32::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
/// The process that waits for the log; zero if unknown.
static LAUNCHER: AtomicU64 = AtomicU64::new(0);
/// The directory of the logs and its length, with a zero byte at its end; a copy, because programs change their environment.
static COPY: [AtomicU8; 4096] = [const { AtomicU8::new(0) }; 4096];
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Reads the environment; `false` if this process is not recorded.
pub(super) fn read() -> bool {
    let Some(directory) = variable(c"FORESEE_CAPTURE").filter(|d| d.first() == Some(&b'/')) else {
        return false;
    };
    let Some(copy) = COPY.get(..directory.len()).filter(|copy| copy.len() < COPY.len()) else {
        return false;
    };
    for (to, &byte) in copy.iter().zip(directory) {
        to.store(byte, Ordering::Relaxed);
    }
    LENGTH.store(directory.len(), Ordering::Relaxed);
    FREE_RUNNING.store(variable(c"FORESEE_MODE") == Some(b"async"), Ordering::Relaxed);
    FILTER.store(variable(c"FORESEE_FILTER") != Some(b"none"), Ordering::Relaxed);
    STACKS.store(variable(c"FORESEE_STACKS") == Some(b"on"), Ordering::Relaxed);
    if let Some(n) = variable(c"FORESEE_QUANTUM").and_then(number) {
        QUANTUM.store(n.clamp(1, 1 << 30) as i32, Ordering::Relaxed);
    }
    turns::seed(variable(c"FORESEE_SEED").and_then(number).unwrap_or(1));
    // A launcher in another namespace cannot be watched.
    if let Some(n) = launcher().filter(|&n| sys::exists(n)) {
        LAUNCHER.store(n, Ordering::Relaxed);
    }
    if let Some(n) = variable(c"FORESEE_LIMIT").and_then(number) {
        LIMIT.store(n, Ordering::Relaxed);
    }
    true
}

/// A variable of the environment.
pub(super) fn variable(name: &'static core::ffi::CStr) -> Option<&'static [u8]> {
    // SAFETY: a C string; the environment outlives the use made of it here, at the program's start.
    unsafe {
        let value: *const c_char = sys::getenv(name.as_ptr());
        if value.is_null() { None } else { Some(sys::bytes(value)) }
    }
}

/// A number in decimal digits.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    digits(text, 10)
}

/// A number in digits of some base.
pub(super) fn digits(text: &[u8], base: u32) -> Option<u64> {
    let mut n = 0u64;
    for &byte in text {
        let digit = char::from(byte).to_digit(base)?;
        n = n.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
    }
    if text.is_empty() { None } else { Some(n) }
}

/// The directory of the logs.
pub(super) fn directory() -> &'static [u8] {
    // SAFETY: set once by `read`, before anything else is done.
    unsafe { core::slice::from_raw_parts(COPY.as_ptr().cast(), LENGTH.load(Ordering::Relaxed)) }
}

/// Whether anything is recorded.
#[inline(always)]
pub(super) fn recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Starts recording.
pub(super) fn start() {
    RECORDING.store(true, Ordering::Release);
}

/// Stops recording.
pub(super) fn stop() {
    RECORDING.store(false, Ordering::Release);
}

/// Whether threads run without the token.
#[inline(always)]
pub(super) fn free_running() -> bool {
    FREE_RUNNING.load(Ordering::Relaxed)
}

/// Whether accesses that add no order are left out.
#[inline(always)]
pub(super) fn filter() -> bool {
    FILTER.load(Ordering::Relaxed)
}

/// Whether call stacks are recorded.
pub(super) fn stacks() -> bool {
    STACKS.load(Ordering::Relaxed)
}

/// Whether calls of some functions are recorded.
#[inline(always)]
pub(super) fn calls() -> bool {
    CALLS.load(Ordering::Relaxed)
}

/// Enables the recording of calls.
pub(super) fn want_calls() {
    CALLS.store(true, Ordering::Relaxed);
}

/// How many hooks a thread may run before others; 0 if this is random.
#[inline(always)]
pub(super) fn quantum() -> i32 {
    QUANTUM.load(Ordering::Relaxed)
}

/// The number that the launcher has, or had.
pub(super) fn launcher() -> Option<u64> {
    variable(c"FORESEE_LAUNCHER").and_then(number)
}

/// Whether the process that waited for the log is gone.
pub(super) fn is_abandoned() -> bool {
    let launcher = LAUNCHER.load(Ordering::Relaxed);
    launcher != 0 && !sys::exists(launcher)
}

/// The maximum size of the log.
pub(super) fn limit() -> u64 {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets what the environment would, except for the limit.
#[cfg(test)]
pub(super) fn set_for_test(folder: &std::path::Path, is_free_running: bool, is_filtered: bool) {
    let path = folder.to_str().map(str::as_bytes).unwrap_or_default();
    for (to, &byte) in COPY.iter().zip(path.iter().chain(&[0])) {
        to.store(byte, Ordering::Relaxed);
    }
    LENGTH.store(path.len(), Ordering::Relaxed);
    FREE_RUNNING.store(is_free_running, Ordering::Relaxed);
    FILTER.store(is_filtered, Ordering::Relaxed);
}

#[cfg(test)]
pub(super) fn set_limit_for_test(limit: u64) {
    LIMIT.store(limit, Ordering::Relaxed);
}
