//! Allocation and release of memory: its addresses get a new life.
//!
//! A recorded thread gets memory filled with zeros. A read of new memory that finds something else
//! then proves that code without hooks wrote there, not that the memory had an earlier life.

use core::ffi::c_int;

use super::calls::{Call, calls};
use super::next::real;
use super::{Errno, access, enter, explore, gate, hook, leave, log, shadow, sync, thread};
use crate::exploring;
use crate::format::{Tag, block};

hook! {
    malloc => malloc_hook, "rsi";
    calloc => calloc_hook, "rdx";
    realloc => realloc_hook, "rdx";
    free => free_hook, "rsi";
    memalign => memalign_hook, "rdx";
    aligned_alloc => aligned_hook, "rdx";
    posix_memalign => posix_hook, "rcx";
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> usize;
    fn __libc_calloc(count: usize, size: usize) -> usize;
    fn __libc_realloc(old: usize, size: usize) -> usize;
    fn __libc_free(block: usize);
    fn __libc_memalign(align: usize, size: usize) -> usize;
}

/// Attributes the memory that `allocate` requests to the caller of `new`.
pub(super) fn from_site(pc: usize, allocate: impl FnOnce() -> usize) -> usize {
    let t = thread::current();
    if t.is_null() {
        return allocate();
    }
    // SAFETY: the thread's own state.
    unsafe {
        (*t).site = pc;
        let block = allocate();
        (*t).site = 0;
        block
    }
}

/// The program's last store has happened: it is recorded before libc may block on its own lock.
fn settled() {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the caller's own thread.
        unsafe {
            if explore::is_on() {
                explore::staging::unstage(t);
            }
            access::settle_quietly(t);
        }
    }
}

fn allocated(block: usize, value: u64, pc: usize) {
    let t = enter();
    if t.is_null() {
        return;
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        if block != 0 {
            let site = core::mem::take(&mut (*t).site);
            sync(t, Tag::Alloc, if site != 0 { site } else { pc }, block, value);
        }
        leave(t);
    }
}

/// Zeroes freshly allocated memory.
fn cleared(block: usize, from: usize, to: usize) {
    if block != 0 && from < to && !thread::current().is_null() {
        real!(memset(block + from => usize, 0 => c_int, to - from => usize) -> usize);
    }
}

/// Memory of a program that is explored; `None` if `libc`'s allocator is to be used.
fn explored(size: usize, align: usize, pc: usize) -> Option<usize> {
    let t = thread::current();
    if !explore::is_on() || t.is_null() {
        return None;
    }
    // SAFETY: the thread's own state.
    unsafe {
        let site = if (*t).site != 0 { (*t).site } else { pc };
        Some(explore::arena::allocate(t, size, align, site))
    }
}

extern "C" fn malloc_hook(size: usize, pc: usize) -> usize {
    settled();
    // SAFETY: libc's own allocator, which knows where zeros are already.
    let block = explored(size, 0, pc).unwrap_or_else(|| unsafe {
        if thread::current().is_null() { __libc_malloc(size) } else { __libc_calloc(1, size) }
    });
    allocated(block, block::value(size, false), pc);
    block
}

extern "C" fn calloc_hook(count: usize, size: usize, pc: usize) -> usize {
    settled();
    let all = count.checked_mul(size);
    // SAFETY: libc's own allocator.
    let block = all
        .and_then(|all| explored(all, 0, pc))
        .unwrap_or_else(|| unsafe { __libc_calloc(count, size) });
    allocated(block, block::value(count.saturating_mul(size), true), pc);
    block
}

extern "C" fn memalign_hook(align: usize, size: usize, pc: usize) -> usize {
    settled();
    // SAFETY: libc's own allocator.
    let block =
        explored(size, align, pc).unwrap_or_else(|| unsafe { __libc_memalign(align, size) });
    cleared(block, 0, size);
    allocated(block, block::value(size, false), pc);
    block
}

extern "C" fn aligned_hook(align: usize, size: usize, pc: usize) -> usize {
    memalign_hook(align, size, pc)
}

extern "C" fn posix_hook(out: *mut usize, align: usize, size: usize, pc: usize) -> i32 {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return 22;
    }
    let _errno = Errno::save();
    let block = memalign_hook(align, size, pc);
    if block == 0 {
        return 12;
    }
    // SAFETY: the caller's word.
    unsafe { *out = block };
    0
}

/// Looks up what `free` needs in advance, because the look-up may itself call `free`.
pub(super) fn prepare() {
    usable(0);
}

/// The number of bytes that libc has reserved for a block.
fn usable(block: usize) -> usize {
    real!(malloc_usable_size(block => usize) -> usize)
}

/// Records that a block is freed, before it is.
fn given_back(block: usize, pc: usize) {
    let t = enter();
    if t.is_null() {
        return;
    }
    let size = usable(block);
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        shadow::forget(block, size);
        log::put(t, Tag::Free as u8, pc, block, size as u64);
        leave(t);
    }
}

const SHARED: usize = 1;

/// Memory is mapped. If it belongs to a file, it may be mapped elsewhere, too, or be changed by writing to the file.
fn maps(flags: usize) {
    const ANONYMOUS: usize = 0x20;
    if flags & SHARED != 0 && flags & ANONYMOUS == 0 {
        explore::kernel::goes_beyond(exploring::beyond::MAPPING);
    }
}

calls! {
    // What the kernel maps there next is new.
    Outside munmap(at, size) |c| { c.gives_back(at, size); };
    // The same holds for memory that other code has unmapped.
    Outside mmap(at, size, protection, flags, file, offset) |c| { maps(flags); } => |c, out| { c.got(out, size); };
    Outside mmap64(at, size, protection, flags, file, offset) |c| { maps(flags); } => |c, out| { c.got(out, size); };
    Outside shmat(id, at, flags) |c| { maps(SHARED); };
}

impl Call {
    fn got(&mut self, at: usize, size: usize) {
        if at != usize::MAX {
            self.gives_back(at, size);
        }
    }

    fn gives_back(&mut self, at: usize, size: usize) {
        shadow::forget(at, size);
        // SAFETY: in a hook of the thread.
        unsafe { sync(self.t, Tag::Free, self.pc, at, size as u64) }
    }
}

/// The contents of a block move with it: the caller reads the old one and writes the new one.
extern "C" fn realloc_hook(old: usize, size: usize, pc: usize) -> usize {
    let (mut moved, mut usable_before) = (0, 0);
    if old != 0 {
        let t = enter();
        if !t.is_null() {
            usable_before = usable(old);
            moved = usable_before.min(size);
            // SAFETY: in a hook of `t`; the block is the caller's.
            unsafe {
                access::range(t, old, moved, pc, false);
                leave(t);
            }
        }
        given_back(old, pc);
    }
    let block = match explore::is_on() || explore::arena::has(old) {
        true => relocated(old, size, pc),
        // SAFETY: libc's own allocator.
        false => unsafe { __libc_realloc(old, size) },
    };
    let is_kept = block == 0 && old != 0 && size != 0;
    let (block, out) = if is_kept { (old, 0) } else { (block, block) };
    if is_kept {
        // It keeps its contents.
        moved = usable_before;
        allocated(old, block::value(usable(old), false), pc);
    } else {
        cleared(block, usable_before, size);
        allocated(block, block::value(size, false), pc);
    }
    if moved != 0 && block != 0 {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`; the block is fresh, so nothing is held back of it.
            unsafe {
                access::written(t, block, moved, pc);
                leave(t);
            }
        }
    }
    out
}

extern "C" fn free_hook(block: usize, pc: usize) {
    if block != 0 {
        given_back(block, pc);
    }
    // Freed memory is not handed out again while a schedule is followed, so that a use of it shows.
    if gate::is_following() {
        return;
    }
    if explore::arena::has(block) {
        // SAFETY: it is one of the arena's.
        return unsafe { explore::arena::free(block, pc) };
    }
    if explore::is_on() {
        return;
    }
    // SAFETY: libc's own allocator.
    unsafe { __libc_free(block) }
}

/// Moves the contents of a block of a program that is explored to a new one.
fn relocated(old: usize, size: usize, pc: usize) -> usize {
    if size == 0 && old != 0 {
        return 0;
    }
    // SAFETY: libc's own allocator.
    let block = explored(size, 0, pc).unwrap_or_else(|| unsafe { __libc_calloc(1, size) });
    if old != 0 && block != 0 {
        let moved = usable(old).min(size);
        real!(memcpy(block => usize, old => usize, moved => usize) -> usize);
    }
    block
}
