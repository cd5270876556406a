//! Calls that only another thread of the process can end. When all threads are in such a call, the
//! program hangs, which the launcher detects from the head of the log.

use core::sync::atomic::Ordering;

use super::thread::Thread;
use super::{log, step_aside};
use crate::format::Tag;

/// Ends a hook and waits. If it `is_endless`, only another thread of this process can end the wait.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn aside<T>(t: *mut Thread, is_endless: bool, wait: impl FnOnce() -> T) -> T {
    // SAFETY: the thread's own state.
    unsafe {
        if is_endless {
            (*t).blocked.store(1, Ordering::SeqCst);
            log::count_threads(0, 1);
        }
        step_aside(t);
        let out = wait();
        end(t);
        out
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
