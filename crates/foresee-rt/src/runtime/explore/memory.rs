//! Reads and writes of memory of a program that is explored.
//!
//! A plain store happens after its hook, and its value is known at the thread's next one, which no other thread's comes before.
//! Reads and writes of more than sixteen bytes are several operations, and other threads may come in between. The program's own
//! instructions cannot be interrupted there, so what they see is arranged before ([`staging`]) and what they did is taken back and
//! done again piece by piece afterwards ([`stored`]).

use core::sync::atomic::{AtomicUsize, Ordering};

use super::super::sys::{self, PhdrInfo};
use super::super::thread::{Pending, Thread};
use super::super::{access, log};
use super::code::{self, First};
use super::{Ask, ENTRIES_AT, gate, part, staging, tell};
use crate::exploring::{Entry, kind, modify, told};
use crate::format::Access;

/// The most bytes of one operation.
const MOST: usize = 16;
/// The size of the pieces of a larger one.
const PIECE: usize = 8;
/// The most bytes of a store that is taken back.
const MOST_ANNOUNCED: usize = 1 << 16;

/// Memory that nothing writes: what is read there is the same in every run.
static CONSTANT: [[AtomicUsize; 2]; 64] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 64];
static CONSTANTS: AtomicUsize = AtomicUsize::new(0);

/// Notes the parts of a module that cannot be written.
pub(super) fn note_module(info: &PhdrInfo) {
    const LOAD: u32 = 1;
    const WRITABLE: u32 = 2;
    // SAFETY: the dynamic linker's own table.
    let headers = unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.count)) };
    for header in headers.iter().filter(|h| h.kind == LOAD && h.flags & WRITABLE == 0) {
        let at = CONSTANTS.fetch_add(1, Ordering::Relaxed);
        if let Some([from, to]) = CONSTANT.get(at) {
            from.store(info.base + header.address, Ordering::Relaxed);
            to.store(info.base + header.address + header.in_memory, Ordering::Relaxed);
        }
    }
}

fn is_constant(address: usize, size: usize) -> bool {
    let count = CONSTANTS.load(Ordering::Relaxed).min(CONSTANT.len());
    CONSTANT[..count].iter().any(|[from, to]| {
        from.load(Ordering::Relaxed) <= address && address + size <= to.load(Ordering::Relaxed)
    })
}

/// The pieces of memory that are one operation each.
fn pieces(address: usize, size: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = address.saturating_add(size);
    let mut at = address;
    core::iter::from_fn(move || {
        let here = at;
        if here >= end {
            return None;
        }
        let next = if size <= MOST { end } else { (here - here % PIECE + PIECE).min(end) };
        at = next;
        Some((here, next - here))
    })
}

/// The contents of memory, at most sixteen bytes.
unsafe fn contents(address: usize, size: usize) -> [u64; 2] {
    // SAFETY: by the caller's promise.
    unsafe {
        let low = access::load(address, size.min(8));
        [low, if size > 8 { access::load(address + 8, size - 8) } else { 0 }]
    }
}

unsafe fn put(address: usize, size: usize, value: [u64; 2]) {
    for i in 0..size {
        // SAFETY: by the caller's promise.
        unsafe { ((address + i) as *mut u8).write_volatile((value[i / 8] >> (8 * (i % 8))) as u8) };
    }
}

/// The thread reads memory, now.
///
/// # Safety
/// In a hook of `t`; the memory can be read, or the program reads it wrongly.
pub(in crate::runtime) unsafe fn read(t: *mut Thread, address: usize, size: usize, pc: usize) {
    if is_constant(address, size) {
        // SAFETY: by the caller's promise.
        return unsafe { access::run(t, access::tag(Access::Read, 1), address, size, pc) };
    }
    for (address, size) in pieces(address, size) {
        // SAFETY: by the caller's promise.
        unsafe {
            gate(t, Ask { kind: kind::LOAD, size: size as u8, pc, address, ..Ask::default() });
            let value = contents(address, size);
            tell(t, told::VALUE, value, false);
            log_value(t, Access::Read, address, size, value, pc);
            staging::told(t, address, size, value);
        }
    }
}

/// A hook of a plain access by the compiler, which happens after it.
///
/// # Safety
/// In a hook of `t` for this access.
pub(in crate::runtime) unsafe fn plain(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
    write: bool,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        if size == 0 {
            return;
        }
        let is_copy = (*t).deferred.size != 0 && !write && (*t).deferred_until == pc;
        if !is_copy && (*t).deferred.size != 0 {
            // Something else came in between: the store may have happened.
            store(t);
        }
        if write {
            staging::begin_store(t, address, size, pc);
            (*t).deferred = access::announced(address, size, pc);
        } else {
            if !is_copy {
                staging::begin(t);
            }
            read(t, address, size, pc);
        }
        if write || is_copy {
            copied(t, pc);
        }
        staging::stage(t, pc);
    }
}

/// One instruction reads memory, writes it, or both, after this hook and before any other.
///
/// # Safety
/// In a hook of `t` for this instruction.
pub(in crate::runtime) unsafe fn instruction(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
    (reads, writes): (bool, bool),
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let Pending { address: target, size: length, .. } = (*t).deferred;
        if writes && (target, length) == (address, size) && (*t).deferred_until == pc {
            // The compiler and the assembler announce the same store.
            (*t).deferred.size = 0;
        } else if length != 0 {
            store(t);
        }
        staging::begin(t);
        if reads {
            read(t, address, size, pc);
        }
        if writes {
            announce(t, address, size, pc);
        }
        staging::stage(t, pc);
    }
}

/// A store was announced, and all that was read for it so far: if the code stores now, that is the next operation.
unsafe fn copied(t: *mut Thread, pc: usize) {
    const FRAMES: usize = 1 << 20;
    // SAFETY: by the caller's promise.
    unsafe {
        let here = (&raw const pc) as usize;
        match code::first(pc, (*t).deferred.address.abs_diff(here) < FRAMES) {
            First::Call(next) => (*t).deferred_until = next,
            First::Store => store(t),
        }
    }
}

/// The deferred store is the next operation.
unsafe fn store(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        let announced = core::mem::replace(&mut (*t).deferred, Pending::NONE);
        announce(t, announced.address, announced.size, announced.pc);
    }
}

/// A store that follows this hook, before any other of the thread.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn announce(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        access::settle(t);
        if size > MOST_ANNOUNCED {
            super::unknown(t, pc);
        }
        let Some((_, first)) = pieces(address, size).next() else { return };
        gate(t, Ask { kind: kind::STORE, size: first as u8, pc, address, ..Ask::default() });
        (*t).stores = core::mem::take(&mut (*t).entry);
        if first < size {
            let room = &raw mut (*t).overwritten;
            if (*room).is_null() {
                *room = sys::reserve(MOST_ANNOUNCED);
                if (*room).is_null() {
                    super::lost(crate::exploring::reason::MEMORY);
                }
            }
            let kept = size.min(MOST_ANNOUNCED);
            core::ptr::copy_nonoverlapping(address as *const u8, *room, kept);
        }
        access::announce(t, address, size, pc);
    }
}

/// The announced store has happened. Its first piece stays; the others are taken back and written again one by one, as the code
/// would if it were interrupted.
///
/// # Safety
/// `t` has the token, or the caller acts for it.
pub(in crate::runtime) unsafe fn stored(
    t: *mut Thread,
    address: usize,
    size: usize,
    before: u64,
    pc: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).entry = core::mem::take(&mut (*t).stores);
        let Some((_, first)) = pieces(address, size).next() else { return };
        let value = contents(address, first);
        tell(t, told::VALUE, value, first < size || size > 8 || value[0] != before);
        log_value(t, Access::Write, address, first, value, pc);
        let kept = size.min(MOST_ANNOUNCED);
        if first >= kept {
            return;
        }
        let is_taken_back = !is_gone(address);
        if is_taken_back {
            let rest = (address + first) as *mut u8;
            core::ptr::swap_nonoverlapping((*t).overwritten.add(first), rest, kept - first);
        }
        for (at, n) in pieces(address, kept).skip(1) {
            let from = if is_taken_back { (*t).overwritten as usize + (at - address) } else { at };
            write(t, at, n, contents(from, n), pc);
        }
    }
}

/// Whether memory is a part of the caller's stack that is not in use any more: what is there now belongs to the hook.
fn is_gone(address: usize) -> bool {
    const STACK: usize = 8 << 20;
    let here = (&raw const address) as usize;
    address < here && here - address < STACK
}

/// An instruction that reads and writes in one step follows this hook.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn announce_atomic(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let ask = Ask {
            kind: kind::MODIFY,
            sub: modify::OPAQUE,
            size: size as u8,
            pc,
            address,
            ..Ask::default()
        };
        gate(t, ask);
        (*t).updates = (*t).entry;
    }
}

/// Such an instruction has happened.
///
/// # Safety
/// As [`stored`].
pub(in crate::runtime) unsafe fn updated(t: *mut Thread, old: u64, new: u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).entry = core::mem::take(&mut (*t).updates);
        let Some(index) = (*t).entry.checked_sub(1) else { return };
        (*part::<Entry>(&ENTRIES_AT, index as usize)).b = [new, 0];
        tell(t, told::VALUE, [old, 0], old != new);
    }
}

/// Memory is copied, in pieces.
///
/// # Safety
/// In a hook of `t`; the program requested this copy.
pub(in crate::runtime) unsafe fn copy(
    t: *mut Thread,
    to: usize,
    from: usize,
    size: usize,
    pc: usize,
) {
    // SAFETY: the thread's own state.
    unsafe {
        if (*t).deferred.size != 0 && (*t).deferred_until == pc {
            // The compiler announced the assignment that this call carries out.
            (*t).deferred.size = 0;
        }
    }
    let count = size.div_ceil(PIECE);
    for i in 0..count {
        // What overlaps is read before it is overwritten.
        let i = if (from..from + size).contains(&to) { count - 1 - i } else { i };
        let (at, n) = (PIECE * i, (size - PIECE * i).min(PIECE));
        // SAFETY: by the caller's promise.
        unsafe {
            let value = match is_constant(from + at, n) {
                true => contents(from + at, n),
                false => {
                    let ask = Ask {
                        kind: kind::LOAD,
                        size: n as u8,
                        pc,
                        address: from + at,
                        ..Ask::default()
                    };
                    gate(t, ask);
                    let value = contents(from + at, n);
                    tell(t, told::VALUE, value, false);
                    log_value(t, Access::Read, from + at, n, value, pc);
                    value
                }
            };
            write(t, to + at, n, value, pc);
        }
    }
}

/// Memory is filled, in pieces.
///
/// # Safety
/// In a hook of `t`; the program requested this.
pub(in crate::runtime) unsafe fn fill(t: *mut Thread, to: usize, byte: u8, size: usize, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        for (at, n) in pieces(to, size) {
            let word = u64::from(byte) * 0x0101_0101_0101_0101;
            let low = if n < 8 { word & ((1 << (8 * n)) - 1) } else { word };
            let high = if n > 8 { word >> (8 * (16 - n)) } else { 0 };
            write(t, at, n, [low, high], pc);
        }
    }
}

/// Writes at most sixteen bytes.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn write(
    t: *mut Thread,
    address: usize,
    size: usize,
    value: [u64; 2],
    pc: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::STORE, size: size as u8, pc, address, ..Ask::default() });
        let is_change = contents(address, size) != value;
        put(address, size, value);
        tell(t, told::VALUE, value, is_change);
        log_value(t, Access::Write, address, size, value, pc);
    }
}

/// Sets the byte of a guard, which programs also read themselves, with `act`.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn release(
    t: *mut Thread,
    guard: usize,
    pc: usize,
    act: impl FnOnce(),
) {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::STORE, size: 1, pc, address: guard, ..Ask::default() });
        act();
        tell(t, told::VALUE, contents(guard, 1), true);
        log::put(t, access::tag(Access::AtomicWrite, 1), pc, guard, access::load(guard, 1));
    }
}

/// The most bytes of a call's memory that are saved, and how many parts.
const MOST_SAVED: usize = 1 << 17;
pub(in crate::runtime) const PARTS: usize = 8;

/// What a call of libc reads and writes.
pub(in crate::runtime) struct CallMemory {
    /// What was there before the call: address and size; and where that is kept.
    saved: [(usize, usize); PARTS],
    count: usize,
    room: *mut u8,
    used: usize,
    /// What it read: address, size, and a sum of the contents.
    read: [(usize, usize, u64); PARTS],
    reads: usize,
    /// Whether it read something that changed meanwhile, or more than there is room for.
    is_unsure: bool,
}

/// A call of libc begins.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn begin_call(t: *mut Thread) {
    // SAFETY: the thread's own state.
    unsafe {
        let call = &mut (*t).call;
        (call.count, call.used, call.reads, call.is_unsure) = (0, 0, 0, false);
    }
}

/// libc is about to act on what the thread was told it reads.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn before_act(t: *mut Thread, pc: usize) {
    // SAFETY: the thread's own state; the program lets libc read this memory.
    unsafe {
        let call = &(*t).call;
        let has_changed = |&(at, size, before): &(usize, usize, u64)| sum(at, size) != before;
        if call.is_unsure || call.read[..call.reads].iter().any(has_changed) {
            super::unknown(t, pc);
        }
    }
}

/// A sum of the contents of memory.
unsafe fn sum(address: usize, size: usize) -> u64 {
    let mut sum = 0x9e37_79b9_7f4a_7c15;
    for (at, n) in pieces(address, size) {
        // SAFETY: by the caller's promise.
        let [low, high] = unsafe { contents(at, n) };
        sum =
            (sum ^ low ^ high.rotate_left(32)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29);
    }
    sum
}

/// A call of libc reads memory.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn call_reads(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
) {
    // SAFETY: the thread's own state; the program lets libc read this memory.
    unsafe {
        if is_constant(address, size) {
            return read(t, address, size, pc);
        }
        // How much is read hangs on what is there now.
        let before = sum(address, size);
        staging::begin(t);
        read(t, address, size, pc);
        let call = &mut (*t).call;
        match call.read.get_mut(call.reads) {
            Some(room) => {
                *room = (address, size, before);
                call.reads += 1;
            }
            None => call.is_unsure |= sum(address, size) != before,
        }
    }
}

/// Keeps the contents of memory that libc is about to write.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn save(t: *mut Thread, address: usize, size: usize) {
    // SAFETY: the thread's own state; the program lets libc write this memory.
    unsafe {
        let call = &mut (*t).call;
        if call.room.is_null() {
            call.room = sys::reserve(MOST_SAVED);
        }
        if call.room.is_null() || call.count == PARTS || size > MOST_SAVED - call.used {
            call.is_unsure |= size > MOST;
            return;
        }
        core::ptr::copy_nonoverlapping(address as *const u8, call.room.add(call.used), size);
        call.saved[call.count] = (address, size);
        call.count += 1;
        call.used += size;
    }
}

/// Where the contents of memory before the call are kept, if they are.
unsafe fn saved(t: *mut Thread, address: usize, size: usize) -> Option<*mut u8> {
    // SAFETY: the thread's own state.
    unsafe {
        let call = &(*t).call;
        let mut at = 0;
        for &(from, len) in &call.saved[..call.count] {
            if from <= address && address + size <= from + len {
                return Some(call.room.add(at + (address - from)));
            }
            at += len;
        }
        None
    }
}

/// libc has written memory for the thread. If it is known what was there before, that is put back, and the thread writes it
/// itself, piece by piece: other threads may come in between.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn written(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: by the caller's promise; what is kept has the same size.
    unsafe {
        let before = saved(t, address, size);
        if let Some(before) = before {
            core::ptr::swap_nonoverlapping(before, address as *mut u8, size);
        }
        for (at, n) in pieces(address, size) {
            match before {
                Some(kept) => {
                    let value = contents(kept as usize + (at - address), n);
                    write(t, at, n, value, pc);
                }
                None => {
                    let ask =
                        Ask { kind: kind::STORE, size: n as u8, pc, address: at, ..Ask::default() };
                    gate(t, ask);
                    let value = contents(at, n);
                    tell(t, told::VALUE, value, true);
                    log_value(t, Access::Write, at, n, value, pc);
                }
            }
        }
    }
}

/// Records an access in the log.
unsafe fn log_value(
    t: *mut Thread,
    access: Access,
    address: usize,
    size: usize,
    value: [u64; 2],
    pc: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        match size.is_power_of_two() && size <= 8 {
            true => log::put(t, access::tag(access, size), pc, address, value[0]),
            false => access::run(t, access::tag(access, 1), address, size, pc),
        }
    }
}
