//! Lets code see what its thread was told.
//!
//! A hook comes before the read that it announces. If it is several operations, because much is read or because a store was
//! announced with it, other threads may have written since a part was told. No thread but this one runs until its next hook, so
//! memory holds what was told until then, and gets back what is really there.

use super::super::sys;
use super::super::thread::Thread;
use super::unknown;

/// The most bytes that are remembered, and how many stretches of them.
const MOST: usize = 1 << 16;
const PARTS: usize = 8;

/// What a thread was told that it has not read yet.
pub(in crate::runtime) struct Staging {
    /// Address and size of what was told.
    parts: [(usize, usize); PARTS],
    count: usize,
    /// What was told; while it is staged, what is really there.
    room: *mut u8,
    used: usize,
    /// Whether there was more than there is room for.
    is_full: bool,
    is_staged: bool,
    /// The hook.
    pc: usize,
    /// What the thread itself writes meanwhile.
    written: (usize, usize),
}

/// A hook begins that announces a read; what was told before was read.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn begin(t: *mut Thread) {
    // SAFETY: the thread's own state.
    let staging = unsafe { &mut (*t).staging };
    (staging.count, staging.used, staging.is_full) = (0, 0, false);
}

/// A hook begins that announces a store. It may be the second half of one that announces both at once, as for `x += 1`: then
/// the read comes with the store.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn begin_store(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: the thread's own state.
    unsafe {
        let staging = &(*t).staging;
        if staging.pc != pc || staging.parts[..staging.count] != [(address, size)] {
            begin(t);
        }
    }
}

/// The thread was told what is in memory.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn told(t: *mut Thread, address: usize, size: usize, value: [u64; 2]) {
    // SAFETY: the thread's own state; there is room.
    unsafe {
        let staging = &mut (*t).staging;
        if staging.room.is_null() {
            staging.room = sys::reserve(MOST);
        }
        if staging.room.is_null() || size > MOST - staging.used {
            staging.is_full = true;
            return;
        }
        match staging.count.checked_sub(1).map(|last| &mut staging.parts[last]) {
            Some((from, length)) if *from + *length == address => *length += size,
            _ => match staging.parts.get_mut(staging.count) {
                Some(part) => {
                    *part = (address, size);
                    staging.count += 1;
                }
                None => {
                    staging.is_full = true;
                    return;
                }
            },
        }
        for i in 0..size {
            staging.room.add(staging.used + i).write((value[i / 8] >> (8 * (i % 8))) as u8);
        }
        staging.used += size;
    }
}

/// The hook ends: the code reads now.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn stage(t: *mut Thread, pc: usize) {
    // SAFETY: the thread's own state; what was told can be read, and written if it was.
    unsafe {
        if (*t).staging.is_full {
            // The thread may act on something that it was not told.
            (*t).staging.is_full = false;
            unknown(t, pc);
        }
        let staging = &mut (*t).staging;
        staging.pc = pc;
        staging.written = ((*t).pending.address, (*t).pending.size);
        staging.is_staged = false;
        let mut at = 0;
        for &(address, size) in &staging.parts[..staging.count] {
            for i in 0..size {
                let (here, kept) = ((address + i) as *mut u8, staging.room.add(at + i));
                let really = here.read_volatile();
                if really != kept.read() {
                    here.write_volatile(kept.read());
                    staging.is_staged = true;
                }
                kept.write(really);
            }
            at += size;
        }
    }
}

/// The thread's next hook: the code has read.
///
/// # Safety
/// The caller is `t`, before anything else can run.
pub(in crate::runtime) unsafe fn unstage(t: *mut Thread) {
    // SAFETY: the thread's own state; the memory was written when it was staged.
    unsafe {
        let staging = &mut (*t).staging;
        if !core::mem::take(&mut staging.is_staged) {
            return;
        }
        let mut at = 0;
        for &(address, size) in &staging.parts[..staging.count] {
            for i in 0..size {
                let (from, length) = staging.written;
                if (address + i).wrapping_sub(from) >= length {
                    ((address + i) as *mut u8).write_volatile(staging.room.add(at + i).read());
                }
            }
            at += size;
        }
        begin(t);
    }
}
