//! The threads that wait for the token.
//!
//! Each sleeps on a word of its own, so that passing the token on wakes only the thread that gets it, however many wait. Any
//! of them can be chosen or removed in constant time.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use super::gate;
use super::sys;
use super::thread::{self, Thread};

/// Room for the numbers of all threads.
static ROOM: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
static LENGTH: AtomicU32 = AtomicU32::new(0);

/// 0: no thread has the queue; 1: a thread has it; 2: a thread has it, and others may wait for it.
static LOCK: AtomicU32 = AtomicU32::new(0);

/// Allocates the queue.
pub(super) fn prepare() -> bool {
    let room = sys::reserve(thread::MAX as usize * size_of::<AtomicU32>());
    ROOM.store(room.cast(), Ordering::Relaxed);
    !room.is_null()
}

/// Forgets everything, in the child of a fork: its only thread does not wait.
pub(super) fn start_over() {
    LENGTH.store(0, Ordering::SeqCst);
    LOCK.store(0, Ordering::SeqCst);
}

/// The number of waiting threads. It may have changed by the time it is used, unless the caller has the queue.
#[inline]
pub(super) fn len() -> u32 {
    LENGTH.load(Ordering::SeqCst)
}

/// The queue, for one thread at a time. While it has it, the token is given and taken by no other thread, except that a
/// free token may be taken, and a token may be set free.
pub(super) struct Queue(());

/// Waits for the queue.
pub(super) fn lock() -> Queue {
    if LOCK.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        while LOCK.swap(2, Ordering::Acquire) != 0 {
            sys::futex_wait(&LOCK, 2, 1_000_000_000);
        }
    }
    Queue(())
}

impl Drop for Queue {
    fn drop(&mut self) {
        if LOCK.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(&LOCK, 1);
        }
    }
}

impl Queue {
    fn slot(&self, at: u32) -> &AtomicU32 {
        // SAFETY: there is room for all threads, and none is in the queue twice.
        unsafe { &*ROOM.load(Ordering::Relaxed).add(at as usize) }
    }

    /// Adds a thread, which sleeps from now on.
    ///
    /// # Safety
    /// The caller is `t`, which is not in the queue.
    pub(super) unsafe fn push(&mut self, t: *mut Thread) {
        let at = len();
        // SAFETY: by the caller's promise.
        unsafe {
            (*t).waits.store(1, Ordering::Relaxed);
            (*t).place_in_queue = at;
            self.slot(at).store((*t).id, Ordering::Relaxed);
        }
        LENGTH.store(at + 1, Ordering::SeqCst);
    }

    /// The thread that a number selects.
    pub(super) fn choose(&self, number: u64) -> Option<*mut Thread> {
        let n = len();
        if gate::is_following() {
            return self.find(gate::wanted());
        }
        if let Some((id, is_first)) = gate::preferred() {
            match self.find(id) {
                Some(t) if is_first || n == 1 => return Some(t),
                Some(t) => return self.choose_but(t, number),
                None => {}
            }
        }
        (n != 0).then(|| {
            let at = (number % u64::from(n)) as u32;
            thread::get(self.slot(at).load(Ordering::Relaxed))
        })
    }

    /// A thread, if it is in the queue.
    fn find(&self, id: u32) -> Option<*mut Thread> {
        (0..len())
            .map(|at| self.slot(at).load(Ordering::Relaxed))
            .find(|&i| i == id)
            .map(thread::get)
    }

    /// One of several threads, but not this one.
    fn choose_but(&self, t: *mut Thread, number: u64) -> Option<*mut Thread> {
        let n = len();
        // SAFETY: it is in the queue.
        let mine = unsafe { (*t).place_in_queue };
        let at = (number % u64::from(n - 1)) as u32;
        let at = if at >= mine { at + 1 } else { at };
        Some(thread::get(self.slot(at).load(Ordering::Relaxed)))
    }

    /// Removes a thread, which need not sleep any longer; [`wake`] wakes it.
    ///
    /// # Safety
    /// `t` is in the queue.
    pub(super) unsafe fn remove(&mut self, t: *mut Thread) {
        let last = len() - 1;
        let moved = self.slot(last).load(Ordering::Relaxed);
        // SAFETY: threads in the queue exist, and only the holder of the queue uses this field of theirs.
        unsafe {
            let at = (*t).place_in_queue;
            self.slot(at).store(moved, Ordering::Relaxed);
            (*thread::get(moved)).place_in_queue = at;
            LENGTH.store(last, Ordering::SeqCst);
            (*t).waits.store(0, Ordering::Release);
        }
    }

    /// Removes and wakes all threads.
    pub(super) fn clear(&mut self) {
        while let Some(t) = self.choose(0) {
            // SAFETY: it is in the queue.
            unsafe { self.remove(t) };
            wake(t);
        }
    }
}

/// Wakes a thread that was removed.
pub(super) fn wake(t: *mut Thread) {
    // SAFETY: threads are never moved.
    sys::futex_wake(unsafe { &(*t).waits }, 1);
}
