//! The order that locks and the beginnings and ends of threads imply.
//!
//! A thread's clock gives the number of records of each other thread that precede its next step.
//! Locks carry clocks from releases to acquires. Only what the host will turn into edges is
//! counted, so what is ordered by the clocks is ordered in the trace; there may be more. The clocks
//! are maintained only in the serialised mode with the filter, which needs them, and only for the
//! first threads of a run.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use super::thread::{self, Thread};
use super::{config, shadow, sys};

/// Threads with numbers below this have an entry in clocks.
pub(super) const CLOCKED: usize = 63;

/// A number of records for each thread.
pub(super) type Clock = [u32; CLOCKED];

/// The maximum number of locks with clocks; later ones imply no order here.
const LOCKS: u32 = 1 << 16;
static CLOCKS: AtomicPtr<Clock> = AtomicPtr::new(core::ptr::null_mut());
static USED: AtomicU32 = AtomicU32::new(0);

fn is_kept() -> bool {
    config::filter() && !config::free_running()
}

/// Whether everything that another thread did up to a place comes before what `t` does now.
///
/// # Safety
/// In a hook of `t`.
#[inline(always)]
pub(super) unsafe fn is_before(t: *mut Thread, other: u32, place: u32) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*t).clock.get(other as usize).is_some_and(|&known| place < known) }
}

/// The clock of a lock.
fn clock_of(index: u32) -> *mut Clock {
    // SAFETY: the table has room for all of them.
    unsafe { CLOCKS.load(Relaxed).add(index as usize) }
}

fn new_clock() -> u32 {
    if CLOCKS.load(Relaxed).is_null() {
        let room = sys::reserve(LOCKS as usize * size_of::<Clock>());
        if room.is_null() {
            return 0;
        }
        CLOCKS.store(room.cast(), Relaxed);
    }
    // Index zero means none.
    let index = USED.load(Relaxed) + 1;
    if index >= LOCKS {
        return 0;
    }
    USED.store(index, Relaxed);
    index
}

unsafe fn join(into: *mut Clock, from: *const Clock) {
    let count = (thread::count() as usize).min(CLOCKED);
    for i in 0..count {
        // SAFETY: by the caller's promise, both are clocks, and no other thread uses them.
        unsafe { (*into)[i] = (*into)[i].max((*from)[i]) };
    }
}

/// The clock of `t` including everything that it has recorded so far.
unsafe fn publish(t: *mut Thread, to: *mut Clock) {
    // SAFETY: by the caller's promise, in a hook of `t`; clocks are plain numbers.
    unsafe {
        let count = (thread::count() as usize).min(CLOCKED);
        for i in 0..count {
            (*to)[i] = (*t).clock[i];
        }
        if let Some(mine) = (*to).get_mut((*t).id as usize) {
            *mine = (*t).place;
        }
    }
}

/// A lock was acquired, as the previous record says: exclusively or shared.
///
/// # Safety
/// In a hook of `t`, as for all that follow.
pub(super) unsafe fn taken(t: *mut Thread, lock: usize, alone: bool) {
    if !is_kept() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(words) = shadow::lock(t, lock) else { return };
        let index = words.clock.load(Relaxed);
        if index != 0 {
            join(&raw mut (*t).clock, clock_of(index));
        }
        if alone {
            let depth =
                if words.owner.load(Relaxed) == (*t).id { words.depth.load(Relaxed) } else { 0 };
            words.owner.store((*t).id, Relaxed);
            words.depth.store(depth + 1, Relaxed);
        }
    }
}

/// A lock that was acquired exclusively was released, as the previous record says: once, or as
/// often as it was acquired. A lock that was shared, or acquired by another thread, carries
/// nothing: for the host that is not a step. Returns whether it was this thread's.
///
/// # Safety
/// As [`taken`].
pub(super) unsafe fn given(t: *mut Thread, lock: usize, wholly: bool) -> bool {
    if !is_kept() {
        return false;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(words) = shadow::lock(t, lock) else { return false };
        if words.owner.load(Relaxed) != (*t).id {
            return false;
        }
        let depth = if wholly { 0 } else { words.depth.load(Relaxed).saturating_sub(1) };
        words.depth.store(depth, Relaxed);
        if depth != 0 {
            return true;
        }
        words.owner.store(0, Relaxed);
        let mut index = words.clock.load(Relaxed);
        if index == 0 {
            index = new_clock();
            words.clock.store(index, Relaxed);
        }
        if index != 0 {
            publish(t, clock_of(index));
        }
        true
    }
}

/// A lock is initialised, or as good as new: it no longer carries anything.
///
/// # Safety
/// As [`taken`].
pub(super) unsafe fn made(t: *mut Thread, lock: usize) {
    if !is_kept() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        if let Some(words) = shadow::lock(t, lock) {
            words.owner.store(0, Relaxed);
            words.depth.store(0, Relaxed);
            let index = words.clock.load(Relaxed);
            if index != 0 {
                *clock_of(index) = [0; CLOCKED];
            }
        }
    }
}

/// A thread was started, as the previous record says.
///
/// # Safety
/// As [`taken`]; no other thread knows the new one yet.
pub(super) unsafe fn started(t: *mut Thread, new: *mut Thread) {
    if is_kept() {
        // SAFETY: by the caller's promise.
        unsafe { publish(t, &raw mut (*new).clock) };
    }
}

/// A thread that has ended was joined.
///
/// # Safety
/// As [`taken`].
pub(super) unsafe fn ended(t: *mut Thread, other: *mut Thread) {
    if !is_kept() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        join(&raw mut (*t).clock, &raw const (*other).clock);
        if let Some(known) = (*t).clock.get_mut((*other).id as usize) {
            *known = (*other).place + 1;
        }
    }
}
