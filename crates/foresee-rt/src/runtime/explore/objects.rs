//! Locks, barriers and what is done once, as the gate knows them: by their addresses.

use core::sync::atomic::{AtomicPtr, Ordering};

use super::super::sys;
use super::lost;
use crate::exploring::{lock, reason};

/// What is known about an object; zero when it is first seen.
#[derive(Clone, Copy)]
#[repr(C)]
struct Object {
    address: usize,
    /// Lock: the thread that has it alone. Once: the thread that does it.
    owner: u32,
    /// Lock: how often the owner has it. Once: whether it is done.
    depth: u32,
    /// Lock: how many readers have it. Barrier: how many threads have come.
    readers: u32,
    /// Barrier: how many must come.
    count: u32,
    /// Barrier: how often they all came.
    round: u64,
}

const ROOM: usize = 1 << 16;
static OBJECTS: AtomicPtr<Object> = AtomicPtr::new(core::ptr::null_mut());

pub(super) fn prepare() -> bool {
    let room = sys::reserve(ROOM * size_of::<Object>());
    OBJECTS.store(room.cast(), Ordering::Relaxed);
    !room.is_null()
}

/// The object at an address. Only the holder of the token asks.
fn object(address: usize) -> &'static mut Object {
    let first = OBJECTS.load(Ordering::Relaxed);
    let begin = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    for i in 0..ROOM {
        // SAFETY: the table has ROOM entries.
        let object = unsafe { &mut *first.add((begin + i) & (ROOM - 1)) };
        if object.address == address || object.address == 0 {
            object.address = address;
            return object;
        }
    }
    lost(reason::TOO_MANY)
}

/// Whether a thread can have a lock, or would be refused, which takes no time either.
pub(super) fn admits(address: usize, thread: u32, how: u8) -> bool {
    let it = object(address);
    match how & lock::SHARED != 0 {
        true => it.owner == 0 || is_refused(address, thread, how),
        false if it.owner == 0 => it.readers == 0,
        false => it.owner == thread && how & (lock::RECURSIVE | lock::CHECKING) != 0,
    }
}

/// Whether a thread would be refused a lock that it has.
pub(super) fn is_refused(address: usize, thread: u32, how: u8) -> bool {
    how & lock::CHECKING != 0 && object(address).owner == thread
}

/// A thread has a lock now.
pub(super) fn took(address: usize, thread: u32, is_shared: bool) {
    let it = object(address);
    if is_shared {
        it.readers += 1;
    } else {
        it.owner = thread;
        it.depth += 1;
    }
}

/// A lock was given back.
pub(super) fn gave(address: usize) {
    let it = object(address);
    if it.owner == 0 {
        it.readers = it.readers.saturating_sub(1);
    } else {
        it.depth = it.depth.saturating_sub(1);
        if it.depth == 0 {
            it.owner = 0;
        }
    }
}

/// Whether a thread has a lock alone.
pub(super) fn is_owner(address: usize, thread: u32) -> bool {
    object(address).owner == thread
}

/// An object is made, or made anew.
pub(super) fn make(address: usize, count: u32) {
    let it = object(address);
    *it = Object { address, owner: 0, depth: 0, readers: 0, count, round: it.round + 1 };
}

/// A thread comes to a barrier. Returns the round that it waits for the end of, and whether it is the last one awaited.
pub(super) fn arrive(address: usize) -> (u64, bool) {
    let it = object(address);
    let round = it.round;
    it.readers += 1;
    let is_last = it.readers >= it.count;
    if is_last {
        it.readers = 0;
        it.round += 1;
    }
    (round, is_last)
}

/// Whether all threads of a round have come.
pub(super) fn has_passed(address: usize, round: u64) -> bool {
    object(address).round != round
}

/// Whether a thread does what is done once.
pub(super) fn is_in_progress(address: usize) -> bool {
    object(address).owner != 0
}

/// A thread comes to what is done once. Returns whether it must do it.
pub(super) fn begin_once(address: usize, thread: u32, is_done: bool) -> bool {
    let it = object(address);
    if is_done || it.depth != 0 {
        return false;
    }
    it.owner = thread;
    true
}

/// It is done, or must be done after all.
pub(super) fn end_once(address: usize, is_done: bool) {
    let it = object(address);
    (it.owner, it.depth) = (0, u32::from(is_done));
}
