//! Calls that only another thread of the process can end. When all threads are in such a call, the
//! program hangs, which the launcher detects from the head of the log.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use super::thread::Thread;
use super::{Errno, gate, log, step_aside, sys};
use crate::format::Tag;

/// Ends a hook and waits. If it `is_endless`, only another thread of this process can end the wait.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn aside<T>(t: *mut Thread, is_endless: bool, wait: impl FnOnce() -> T) -> T {
    // SAFETY: the thread's own state.
    unsafe {
        if is_endless {
            if gate::is_replaying() {
                note_callers(t);
            }
            (*t).blocked.store(1, Ordering::SeqCst);
            log::count_threads(0, 1);
        }
        step_aside(t);
        let out = wait();
        end(t);
        out
    }
}

/// The most callers that are recorded.
const CALLERS: usize = 48;

/// Records the callers of a thread that is about to wait: if it waits for ever, they say where. libc knows how to find them,
/// but that takes too long to be done in every run.
unsafe fn note_callers(t: *mut Thread) {
    let _errno = Errno::save();
    let mut callers = [0u64; CALLERS];
    // SAFETY: there is room for as many; in a hook of `t`, so that what libc does for this is not recorded.
    unsafe {
        let room = callers.as_mut_ptr().cast::<*mut c_void>();
        let count = sys::backtrace(room, CALLERS as c_int).clamp(0, CALLERS as c_int) as usize;
        let bytes = core::slice::from_raw_parts(callers.as_ptr().cast::<u8>(), 8 * count);
        log::put_uncounted(t, Tag::Stack, 0, bytes.len() as u64, bytes);
    }
}

/// The thread no longer waits. It may have been cancelled while it did.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn end(t: *mut Thread) {
    // SAFETY: the thread's own state.
    if unsafe { (*t).blocked.swap(0, Ordering::SeqCst) } != 0 {
        log::count_threads(0, -1);
    }
}

/// Records that a request was not granted, and that the thread no longer waits for it.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn withdraw(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe { log::put_uncounted_at(t, Tag::Withdrawn, 0, 0, 0) };
}
