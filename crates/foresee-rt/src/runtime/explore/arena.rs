//! Memory whose addresses depend only on the thread that asks for it and what it asked for before.
//!
//! Each thread has a stretch of addresses that follows from its name: its stack, its heap, and a heap for what libc itself
//! allocates on behalf of whichever thread comes first. Nothing is handed out twice, so that a pointer always points to the same
//! object.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::super::sys::{self, PhdrInfo};
use super::super::thread::Thread;
use super::lost;
use crate::exploring::{fail, kind, reason};

/// Where the stretches begin: between where the kernel puts programs and where it maps libraries.
const BASE: usize = 0x6000_0000_0000;
/// The size of a stretch.
const STRETCH: usize = 1 << 30;
/// The number of stretches; the first ones are for the threads that `main` starts.
const STRETCHES: usize = 1 << 14;
const DIRECT: usize = 1 << 12;
/// The parts of a stretch.
const STACK: usize = 1 << 20;
const STACK_SIZE: usize = 8 << 20;
const HEAP: usize = 1 << 28;
const LIBRARY_HEAP: usize = 3 << 28;
/// What libc's allocator keeps before a block. It is imitated, because `malloc_usable_size` reads it.
const HEADER: usize = 16;
const IN_USE: usize = 1;
/// Stands before a block that was freed.
const FREED: usize = 0x6465_6572_6673_6977;

/// Where libc and the dynamic linker are.
static LIBRARIES: [[AtomicUsize; 2]; 2] = [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; 2];

/// Notes a module if it is libc or the dynamic linker.
pub(super) fn note_module(info: &PhdrInfo, known: usize) {
    const LOAD: u32 = 1;
    // SAFETY: the dynamic linker's own table and name.
    let (headers, name) = unsafe {
        (core::slice::from_raw_parts(info.headers, usize::from(info.count)), sys::bytes(info.name))
    };
    let loads = || headers.iter().filter(|h| h.kind == LOAD).map(|h| info.base + h.address);
    let from = loads().min().unwrap_or(0);
    let ends = headers.iter().filter(|h| h.kind == LOAD);
    let to = ends.map(|h| info.base + h.address + h.in_memory).max().unwrap_or(0);
    let is_linker = name.windows(8).any(|part| part == b"ld-linux");
    let at = match (from..to).contains(&known) {
        true => 0,
        false if is_linker => 1,
        false => return,
    };
    LIBRARIES[at][0].store(from, Ordering::Relaxed);
    LIBRARIES[at][1].store(to, Ordering::Relaxed);
}

fn is_of_libc(pc: usize) -> bool {
    LIBRARIES
        .iter()
        .any(|[from, to]| (from.load(Ordering::Relaxed)..to.load(Ordering::Relaxed)).contains(&pc))
}

/// Whether memory is of ours.
pub(in crate::runtime) fn has(address: usize) -> bool {
    (BASE..BASE + STRETCH * STRETCHES).contains(&address)
}

/// The stretch of a thread, which is mapped when it is first asked for.
unsafe fn stretch(t: *mut Thread) -> usize {
    // SAFETY: the thread's own state, or nobody else uses it yet.
    unsafe {
        if (*t).stretch == 0 {
            let path = &(&(*t).path)[..(*t).path_len as usize];
            let mut at = match *path {
                [] => 0,
                [n] if (n as usize) < DIRECT => n as usize,
                _ => {
                    let mixed = path.iter().fold(0x9e37_79b9_7f4a_7c15u64, |sum, &n| {
                        (sum.rotate_left(29) ^ u64::from(n)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
                    });
                    DIRECT + (mixed >> 20) as usize % (STRETCHES - DIRECT)
                }
            };
            // Another thread may have the same one, which is rare.
            for _ in 0..STRETCHES {
                let from = BASE + at * STRETCH;
                if map(from) {
                    ((*t).stretch, (*t).heap, (*t).library_heap) =
                        (from, from + HEAP, from + LIBRARY_HEAP);
                    return from;
                }
                at = (at + 1) % STRETCHES;
            }
            lost(reason::MEMORY);
        }
        (*t).stretch
    }
}

/// Maps a stretch, if nothing is there.
fn map(from: usize) -> bool {
    const NO_REPLACE: usize = 0x10_0000;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | NO_REPLACE;
    // The first part stays empty: what grows out of a stack faults.
    sys::map((from + STACK) as *mut u8, STRETCH - STACK, flags, -1) as usize == from + STACK
}

/// The stack of a new thread: its lowest address and its size.
///
/// # Safety
/// No other thread uses the new one yet.
pub(in crate::runtime) unsafe fn stack(t: *mut Thread) -> (usize, usize) {
    // SAFETY: by the caller's promise.
    (unsafe { stretch(t) } + STACK, STACK_SIZE)
}

/// Allocates zeroed memory for code at `pc`.
///
/// # Safety
/// The caller is `t`.
pub(in crate::runtime) unsafe fn allocate(
    t: *mut Thread,
    size: usize,
    align: usize,
    pc: usize,
) -> usize {
    // SAFETY: by the caller's promise.
    unsafe {
        let base = stretch(t);
        let is_library = (*t).busy.load(Ordering::Relaxed) != 0 || is_of_libc(pc);
        let (next, end) = match is_library {
            true => (&raw mut (*t).library_heap, base + STRETCH),
            false => (&raw mut (*t).heap, base + LIBRARY_HEAP),
        };
        let block = (*next + HEADER).next_multiple_of(align.max(16));
        let room = size.max(1).checked_next_multiple_of(16).unwrap_or(usize::MAX);
        if room > end - block {
            return 0;
        }
        *next = block + room;
        ((block - 8) as *mut usize).write((room + 8) | IN_USE);
        block
    }
}

/// Frees a block: it is only marked. A block that is freed twice is a failure, as libc finds.
///
/// # Safety
/// It is one of ours.
pub(in crate::runtime) unsafe fn free(block: usize, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mark = (block - HEADER) as *mut usize;
        if mark.read() == FREED {
            super::finishes(kind::FAIL, fail::ABORT, 6, pc);
            sys::abort();
        }
        mark.write(FREED);
    }
}
