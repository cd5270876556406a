//! Reads and writes of memory.

use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use super::ownership::Cell;
use super::shadow::Here;
use super::thread::{self, Pending, Thread};
use super::{config, explore, gate, log, shadow, token};
use crate::format::{Access, INEXACT, RUN, SIZES, order, size_code};

/// The maximum number of bytes in one record of a run.
const RUN_MAX: usize = 4096;

/// The bytes of memory at an address, at most eight, as a number.
///
/// # Safety
/// The memory can be read.
#[inline(always)]
pub(super) unsafe fn load(address: usize, size: usize) -> u64 {
    // SAFETY: by the caller's promise; programs race for memory, so this is volatile.
    unsafe {
        match size {
            1 => u64::from((address as *const u8).read_volatile()),
            2 => u64::from((address as *const u16).read_unaligned()),
            4 => u64::from((address as *const u32).read_unaligned()),
            8 => (address as *const u64).read_unaligned(),
            _ => {
                let mut n = 0;
                for i in (0..size.min(8)).rev() {
                    n = n << 8 | u64::from((address as *const u8).add(i).read_volatile());
                }
                n
            }
        }
    }
}

/// The part of a record's tag for kind and size.
#[inline(always)]
pub(super) fn tag(access: Access, size: usize) -> u8 {
    (access as u8) << 3 | size.trailing_zeros() as u8
}

/// The bytes of an aligned eight that an access touches; it must lie within them.
#[inline(always)]
fn mask(address: usize, size: usize) -> u8 {
    (((1u32 << size) - 1) << (address & 7)) as u8
}

/// The hook of a plain access of one, two, four or eight bytes.
///
/// Programs with hooks spend most of their time here, so the common case comes first, without a
/// call that would save registers and spill arguments. Everything else starts again from the
/// beginning.
#[inline(always)]
pub(super) fn plain<const SIZE: usize, const WRITE: bool>(address: usize, pc: usize) {
    let t = thread::current();
    // SAFETY: hooks are called with the address of the access that follows; the thread's own state.
    unsafe {
        if !config::filter() && !t.is_null() && (address & 7) + SIZE <= 8 {
            return plain_unfiltered::<SIZE, WRITE>(address, pc, t);
        }
        if t.is_null()
            || (*t).busy.load(Relaxed) as usize | (*t).pending.size != 0
            || (address & 7) + SIZE > 8
        {
            return plain_from_the_start::<SIZE, WRITE>(address, pc);
        }
        // As in `enter`.
        (*t).busy.store(1, Relaxed);
        compiler_fence(SeqCst);
        if (*t).fuel <= 0 || !token::is_held_by(t) {
            // Signals that have arrived since then wait a little longer.
            (*t).busy.store(0, Release);
            return plain_from_the_start::<SIZE, WRITE>(address, pc);
        }
        (*t).fuel -= 1;
        let cell = shadow::existing_cell(address);
        let touch = shadow::touch(t, mask(address, SIZE), pc, WRITE, false);
        if cell.is_null() {
            plain_of_new::<SIZE, WRITE>(address, pc, t);
        } else if (*cell).touch_again(touch) {
            super::leave(t);
        } else if WRITE {
            plain_anew::<SIZE, true>(address, pc, t, cell);
        } else {
            read_with_others::<SIZE>(address, pc, t, cell);
        }
    }
}

// Continuations of the hook. The arguments stay in the registers in which they were passed.

/// Everything is recorded. Nearly always the thread has the token, and the log room for its next records; a store that was
/// announced at the hook before is recorded first.
#[inline(never)]
unsafe fn plain_unfiltered<const SIZE: usize, const WRITE: bool>(
    address: usize,
    pc: usize,
    t: *mut Thread,
) {
    // SAFETY: in a hook of `t` for this access.
    unsafe {
        if (*t).busy.load(Relaxed) != 0 {
            return plain_from_the_start::<SIZE, WRITE>(address, pc);
        }
        // As in `enter`.
        (*t).busy.store(1, Relaxed);
        compiler_fence(SeqCst);
        let pending = &raw mut (*t).pending;
        let is_usual = (*t).fuel > 0
            && token::is_held_by(t)
            && log::is_ready(t)
            && ((*pending).size <= 8 && !(*pending).is_atomic && !(*t).inexact);
        if !is_usual {
            (*t).busy.store(0, Release);
            return plain_from_the_start::<SIZE, WRITE>(address, pc);
        }
        (*t).fuel -= 1;
        let size = (*pending).size;
        if size != 0 && (WRITE || !is_copy(t, SIZE, pc)) {
            (*pending).size = 0;
            let (address, pc) = ((*pending).address, (*pending).pc);
            if size.is_power_of_two() {
                log::put_ready(t, tag(Access::Write, size), pc, address, load(address, size));
            } else {
                run(t, tag(Access::Write, 1), address, size, pc);
            }
            if !WRITE {
                log::no_pending();
            }
        }
        if WRITE {
            *pending = announced(address, SIZE, pc);
            log::note_pending(t);
        } else {
            log::put_ready(t, tag(Access::Read, SIZE), pc, address, load(address, SIZE));
        }
        super::leave(t);
    }
}

/// Several threads may read the memory.
#[inline(never)]
unsafe fn read_with_others<const SIZE: usize>(
    address: usize,
    pc: usize,
    t: *mut Thread,
    cell: *mut Cell,
) {
    // SAFETY: in a hook of `t` for this access.
    unsafe {
        let touch = shadow::touch(t, mask(address, SIZE), pc, false, false);
        if (*cell).read_again(touch, || shadow::entry((*t).reads, address)) {
            super::leave(t);
        } else {
            plain_anew::<SIZE, false>(address, pc, t, cell);
        }
    }
}

/// The access does not repeat an earlier one.
#[inline(never)]
unsafe fn plain_anew<const SIZE: usize, const WRITE: bool>(
    address: usize,
    pc: usize,
    t: *mut Thread,
    cell: *mut Cell,
) {
    // SAFETY: in a hook of `t` for this access, when nothing is pending.
    unsafe {
        let touch = shadow::touch(t, mask(address, SIZE), pc, WRITE, false);
        if (*cell).touch_anew(touch, &mut Here { t, address }) {
            record(t, address, SIZE, pc, WRITE);
        }
        super::leave(t);
    }
}

/// No nearby memory was accessed before, or there is no filter.
#[inline(never)]
unsafe fn plain_of_new<const SIZE: usize, const WRITE: bool>(
    address: usize,
    pc: usize,
    t: *mut Thread,
) {
    // SAFETY: as above.
    unsafe {
        if !config::filter()
            || shadow::must_record(t, address, mask(address, SIZE), pc, WRITE, false)
        {
            record(t, address, SIZE, pc, WRITE);
        }
        super::leave(t);
    }
}

#[cold]
#[inline(never)]
fn plain_from_the_start<const SIZE: usize, const WRITE: bool>(address: usize, pc: usize) {
    // SAFETY: hooks are called with the address of the access that follows.
    unsafe {
        let t = super::enter_knowing(|t| !WRITE && is_source(t, SIZE, pc));
        if t.is_null() {
            return;
        }
        if explore::is_on() {
            explore::memory::plain(t, address, SIZE, pc, WRITE);
        } else if (address & 7) + SIZE > 8 {
            range(t, address, SIZE, pc, WRITE);
        } else {
            if (*t).pending.size != 0 && (WRITE || !is_copy(t, SIZE, pc)) {
                finish(t, false);
            }
            if !config::filter()
                || shadow::must_record(t, address, mask(address, SIZE), pc, WRITE, false)
            {
                record(t, address, SIZE, pc, WRITE);
            }
        }
        super::leave(t);
    }
}

#[cold]
#[inline(never)]
unsafe fn record(t: *mut Thread, address: usize, size: usize, pc: usize, write: bool) {
    // SAFETY: in a hook of `t` for this access.
    unsafe {
        if write {
            // A copy held open by `is_copy` ends when the next store is announced.
            if (*t).pending.size != 0 {
                finish(t, false);
            }
            announce(t, address, size, pc);
        } else {
            log::put(t, tag(Access::Read, size), pc, address, load(address, size));
        }
    }
}

/// A store that was announced.
///
/// # Safety
/// The memory is about to be written.
pub(super) unsafe fn announced(address: usize, size: usize, pc: usize) -> Pending {
    // SAFETY: by the caller's promise.
    let before = unsafe { load(address, size.min(8)) };
    Pending { address, size, pc, before, is_atomic: false, is_over: false }
}

/// Stores that a write is about to happen.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn announce(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: the memory is about to be written.
    unsafe {
        // It is recorded later, perhaps after the function that stores.
        log::tell_callers(t);
        (*t).pending = announced(address, size, pc);
        if !config::free_running() {
            log::note_pending(t);
        }
    }
}

/// Whether a read of this size is the source of the copy whose target was announced: see [`is_copy`].
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn is_source(t: *mut Thread, size: usize, pc: usize) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { (*t).pending.size != 0 && is_copy(t, size, pc) }
}

/// Whether the announced store may not have happened yet, because this hook may be that of a copy's
/// source, see [`is_copy`]. If so, no other thread may run.
///
/// # Safety
/// The caller is `t`.
#[cold]
pub(super) unsafe fn may_be_to_come(t: *mut Thread) -> bool {
    // SAFETY: the memory was announced.
    unsafe {
        let Pending { address, size, before, is_over, .. } = (*t).pending;
        size != 0 && !is_over && load(address, size.min(8)) == before
    }
}

/// Whether the read that is announced now is the source of the copy whose target was announced
/// before: gcc calls the hook of an assignment's left side first, so the pending store has not
/// happened yet.
///
/// This is assumed if both have the same size, are close together, and the target is unchanged. If
/// the store has happened after all (of the same value), the thread's read and write swap places,
/// which no other thread can observe, because this thread holds the token all the time.
unsafe fn is_copy(t: *mut Thread, size: usize, pc: usize) -> bool {
    // SAFETY: the thread is the caller's; the memory was announced.
    unsafe {
        let pending = &(*t).pending;
        pending.size == size
            && !pending.is_over
            && pc.wrapping_sub(pending.pc) <= 40
            && load(pending.address, size.min(8)) == pending.before
            && !gate::stores_first(t)
    }
}

/// A plain access of any size.
///
/// # Safety
/// In a hook of `t` for this access.
pub(super) unsafe fn range(t: *mut Thread, address: usize, size: usize, pc: usize, write: bool) {
    // SAFETY: as for the caller.
    unsafe {
        if explore::is_on() {
            return explore::memory::plain(t, address, size, pc, write);
        }
        if (*t).pending.size != 0 && (write || !is_copy(t, size, pc)) {
            finish(t, false);
        }
        let Some((from, to)) = to_record(t, address, size, pc, write) else { return };
        if write {
            if (*t).pending.size != 0 {
                finish(t, false);
            }
            announce(t, from, to - from, pc);
        } else {
            run(t, tag(Access::Read, 1), from, to - from, pc);
        }
    }
}

/// A read by an instruction that may be between a hook of a store and that store: such a store
/// stays announced.
///
/// If the store has happened (of the same value), the thread's read and write swap places, as in
/// [`is_copy`].
///
/// # Safety
/// As [`range`].
pub(super) unsafe fn read_between(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: as for the caller; the memory was announced.
    unsafe {
        if explore::is_on() {
            return explore::memory::plain(t, address, size, pc, false);
        }
        let pending = (*t).pending;
        if pending.size != 0 {
            let is_beside =
                address >= pending.address + pending.size || pending.address >= address + size;
            let is_unchanged = load(pending.address, pending.size.min(8)) == pending.before;
            if pending.is_over || !is_unchanged || !(is_beside || pending.size <= 8) {
                finish(t, false);
            }
        }
        if let Some((from, to)) = to_record(t, address, size, pc, false) {
            run(t, tag(Access::Read, 1), from, to - from, pc);
        }
    }
}

/// A write of any size that has happened since [`before_write`].
///
/// # Safety
/// As [`range`].
pub(super) unsafe fn written(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: as for the caller.
    unsafe {
        if (*t).pending.size != 0 {
            finish(t, false);
        }
        if explore::is_on() {
            return explore::memory::written(t, address, size, pc);
        }
        if let Some((from, to)) = to_record(t, address, size, pc, true) {
            run(t, tag(Access::Write, 1), from, to - from, pc);
        }
    }
}

/// The part of a range that must be recorded.
unsafe fn to_record(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
    write: bool,
) -> Option<(usize, usize)> {
    let end = address.saturating_add(size);
    if size == 0 || end > 1 << 47 {
        return None;
    }
    if !config::filter() {
        return Some((address, end));
    }
    let (mut from, mut to, mut at) = (usize::MAX, 0, address);
    while at < end {
        let next = ((at & !7) + 8).min(end);
        // SAFETY: as for the caller.
        if unsafe { shadow::must_record(t, at, mask(at, next - at), pc, write, false) } {
            from = from.min(at);
            to = next;
        }
        at = next;
    }
    (from < to).then_some((from, to))
}

/// Records the current contents of a run of bytes.
///
/// # Safety
/// In a hook of `t`; the bytes can be read.
pub(super) unsafe fn run(t: *mut Thread, kind: u8, address: usize, size: usize, pc: usize) {
    let mut at = address;
    while at < address + size {
        let n = (address + size - at).min(RUN_MAX);
        // SAFETY: the program is about to access these bytes, or just has.
        unsafe {
            if n.is_power_of_two() && n <= 8 {
                log::put(t, kind | n.trailing_zeros() as u8, pc, at, load(at, n));
            } else {
                let bytes = core::slice::from_raw_parts(at as *const u8, n);
                log::put_with(t, kind | RUN, pc, at, n as u64, bytes);
            }
        }
        at += n;
    }
}

/// Records the pending store with the current value of the memory.
///
/// # Safety
/// A store of `t` is pending, and the caller holds the token.
#[cold]
pub(super) unsafe fn finish(t: *mut Thread, inexact: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        if let Some(store) = take_pending(t, inexact) {
            put_store(t, store);
        }
    }
}

/// A store that is no longer pending, and whether it may not have happened yet.
pub(super) struct Store(Pending, bool);

/// Ends the waiting for the pending store, if there is one.
///
/// # Safety
/// The caller is `t`, or acts for it.
pub(super) unsafe fn take_pending(t: *mut Thread, inexact: bool) -> Option<Store> {
    // SAFETY: by the caller's promise.
    unsafe {
        let pending = (*t).pending;
        (pending.size != 0).then(|| {
            (*t).pending.size = 0;
            Store(pending, core::mem::take(&mut (*t).inexact) || inexact)
        })
    }
}

/// Records a store of `t` with the current value of the memory.
///
/// # Safety
/// As [`finish`].
pub(super) unsafe fn put_store(t: *mut Thread, Store(pending, inexact): Store) {
    // SAFETY: the memory was announced as the target of a store.
    unsafe {
        let Pending { address, size, pc, before, is_atomic, .. } = pending;
        (*t).callers.is_behind = true;
        if explore::is_on() && is_atomic {
            explore::memory::updated(t, before, load(address, size));
        }
        if explore::is_on() && !is_atomic {
            explore::memory::stored(t, address, size, before, pc);
        } else if is_atomic && !inexact {
            update(t, address, size, pc, (before, load(address, size)), order::FULL);
        } else {
            run(t, tag(Access::Write, 1) | if inexact { INEXACT } else { 0 }, address, size, pc);
        }
        (*t).callers.is_behind = false;
        if !config::free_running() {
            log::no_pending();
        }
    }
}

/// Prepares for a write that the runtime itself performs: accesses to the memory that were held
/// back are recorded with the values before the write.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn before_write(t: *mut Thread, address: usize, size: usize) {
    // SAFETY: as for the caller.
    unsafe {
        settle(t);
        let end = address.saturating_add(size);
        if explore::is_on() && end <= 1 << 47 {
            explore::memory::save(t, address, size);
        }
        if !config::filter() || end > 1 << 47 {
            return;
        }
        let mut at = address;
        while at < end {
            let next = ((at & !7) + 8).min(end);
            shadow::before_write(t, at, mask(at, next - at));
            at = next;
        }
    }
}

/// Records an atomic access that the runtime has just performed, after [`before_write`].
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn atomic(
    t: *mut Thread,
    (access, order): (Access, u8),
    address: usize,
    size: usize,
    pc: usize,
    value: u64,
    old: u64,
) {
    // SAFETY: as for the caller.
    unsafe {
        if config::filter()
            && !shadow::must_record(t, address, mask(address, size), pc, access.writes(), true)
        {
            return;
        }
        if access == Access::Rmw {
            update(t, address, size, pc, (old, value), order);
        } else {
            log::put(t, tag(access, size), pc, address, value);
        }
    }
}

/// Records that memory was read and written in one step.
unsafe fn update(
    t: *mut Thread,
    address: usize,
    size: usize,
    pc: usize,
    (old, value): (u64, u64),
    order: u8,
) {
    let len = SIZES[size_code(old)];
    let mut bytes = [0; 9];
    bytes[0] = len as u8 | order << 4;
    bytes[1..].copy_from_slice(&old.to_le_bytes());
    // SAFETY: in a hook of `t`.
    unsafe {
        log::put_with(t, tag(Access::Rmw, size), pc, address, value, &bytes[..1 + len]);
    }
}

/// Remembers an instruction that is about to read and write memory in one step.
///
/// # Safety
/// In a hook of `t` for this access.
pub(super) unsafe fn announce_atomic(t: *mut Thread, address: usize, size: usize, pc: usize) {
    // SAFETY: as for the caller.
    unsafe {
        settle(t);
        if (address & 7) + size > 8 {
            range(t, address, size, pc, false);
            return range(t, address, size, pc, true);
        }
        if config::filter() && !shadow::must_record(t, address, mask(address, size), pc, true, true)
        {
            return;
        }
        if explore::is_on() {
            explore::memory::announce_atomic(t, address, size, pc);
        }
        announce(t, address, size, pc);
        (*t).pending.is_atomic = true;
        (*t).pending.is_over = true;
    }
}

/// A pending store happens before the next hook: there is a call between the compiler's hook and
/// this one, or the store is the next instruction.
///
/// # Safety
/// The caller is `t`.
#[inline(always)]
pub(super) unsafe fn happens_now(t: *mut Thread) {
    // SAFETY: the thread's own.
    unsafe { (*t).pending.is_over = true };
}

/// Finishes what is pending, before another thread may get the token or something else is recorded.
///
/// # Safety
/// In a hook of `t`.
#[inline(always)]
pub(super) unsafe fn settle(t: *mut Thread) {
    // SAFETY: as for the caller.
    unsafe {
        if (*t).pending.size != 0 {
            finish(t, false);
        }
    }
}

/// Finishes what is pending if the thread has the token; otherwise its next hook records it, as
/// inexact.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn settle_quietly(t: *mut Thread) {
    // SAFETY: a hook of its own.
    unsafe {
        if (*t).pending.size != 0 && !super::enter().is_null() {
            settle(t);
            super::leave(t);
        }
    }
}
