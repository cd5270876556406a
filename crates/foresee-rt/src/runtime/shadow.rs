//! A cell for every eight bytes of memory, see [`super::tenancy`].

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::tenancy::{Cell, Held, Touch};
use super::thread::Thread;
use super::{config, log, sys};
use crate::format::Delayed;

/// The cells of so many bytes are allocated together.
const REACH_BITS: u32 = 20;
const CELLS: usize = 1 << (REACH_BITS - 3);
const ADDRESS_BITS: u32 = 47;

static ROOT: AtomicPtr<AtomicPtr<Cell>> = AtomicPtr::new(core::ptr::null_mut());
/// The groups that exist, for forks: how many, and where.
static GROUPS: AtomicUsize = AtomicUsize::new(0);

/// Makes room for the table of groups.
pub(super) fn prepare() -> bool {
    let root = sys::reserve(size_of::<usize>() << (ADDRESS_BITS - REACH_BITS));
    ROOT.store(root.cast(), Relaxed);
    !root.is_null()
}

#[inline(always)]
fn cell(address: usize) -> *mut Cell {
    if address >> ADDRESS_BITS != 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: the table has an entry for every address of this many bits, and a group CELLS cells.
    unsafe {
        let entry = ROOT.load(Relaxed).add(address >> REACH_BITS);
        let mut group = (*entry).load(Relaxed);
        if group.is_null() {
            group = new_group(entry);
            if group.is_null() {
                return group;
            }
        }
        group.add((address >> 3) & (CELLS - 1))
    }
}

#[cold]
unsafe fn new_group(entry: *mut AtomicPtr<Cell>) -> *mut Cell {
    let group: *mut Cell = sys::reserve(CELLS * size_of::<Cell>()).cast();
    if group.is_null() {
        return group;
    }
    GROUPS.fetch_add(1, Relaxed);
    // SAFETY: an entry of the table.
    match unsafe { (*entry).compare_exchange(core::ptr::null_mut(), group, Relaxed, Relaxed) } {
        Ok(_) => group,
        Err(first) => first,
    }
}

/// Notes an access of bytes of the eight at `address`, given by `mask`, and says whether it must be recorded now.
///
/// # Safety
/// The caller is `t`, in a hook; no store of it is pending.
#[inline(always)]
pub(super) unsafe fn must_record(
    t: *mut Thread,
    address: usize,
    mask: u8,
    pc: usize,
    write: bool,
    atomic: bool,
) -> bool {
    let cell = cell(address);
    if cell.is_null() {
        return true;
    }
    // SAFETY: the cell exists; the thread is the caller's.
    unsafe {
        let touch =
            Touch { thread: (*t).id, place: (*t).place, mask, pc: pc as u32, write, atomic };
        (*cell).touch(touch, |held| tell(t, address & !7, held))
    }
}

/// Tells what a write that is about to happen would make untellable.
///
/// # Safety
/// As [`must_record`].
pub(super) unsafe fn before_write(t: *mut Thread, address: usize, mask: u8) {
    let cell = cell(address);
    if cell.is_null() {
        return;
    }
    // SAFETY: the cell exists; the thread is the caller's.
    unsafe { (*cell).before_write((*t).id, mask, |held| tell(t, address & !7, held)) }
}

/// Records an access that was held back, with the values that memory has now.
#[cold]
unsafe fn tell(t: *mut Thread, address: usize, held: Held) {
    let Held { thread, access, mask, place, pc } = held;
    // SAFETY: some byte of the eight was touched before, so all of them are mapped: they are aligned. The caller is in a
    // hook of `t`.
    unsafe {
        let bytes = (address as *const u64).read_volatile().to_le_bytes();
        let (delayed, len) = Delayed { thread, place, access, mask, bytes }.to_bytes();
        log::put_delayed(t, address, pc, &delayed, len);
    }
}

/// Says that everything is to be known of a stretch of memory.
pub(super) fn watch(address: usize, size: usize) {
    for at in (address & !7..address + size).step_by(8) {
        let cell = cell(at);
        if !cell.is_null() {
            // SAFETY: the cell exists.
            unsafe { (*cell).watch() };
        }
    }
}

/// Forgets a stretch of memory: it was given back, or is about to be used for something new.
pub(super) fn forget(address: usize, size: usize) {
    if !config::filter() {
        return;
    }
    let (mut at, end) =
        ((address + 7) & !7, address.saturating_add(size).min(1 << ADDRESS_BITS) & !7);
    while at < end {
        let group_end = ((at >> REACH_BITS) + 1) << REACH_BITS;
        let stop = end.min(group_end);
        // SAFETY: the table has an entry for the address; the cells of the stretch are those from `first` on.
        unsafe {
            let group = (*ROOT.load(Relaxed).add(at >> REACH_BITS)).load(Relaxed);
            if !group.is_null() {
                let first = group.add((at >> 3) & (CELLS - 1)) as usize;
                let bytes = (stop - at) / 8 * size_of::<Cell>();
                clear(first, bytes);
            }
        }
        at = stop;
    }
}

/// Makes cells fresh; whole pages of them are given back to the kernel.
unsafe fn clear(first: usize, bytes: usize) {
    let end = first + bytes;
    let (page, last) = ((first + 4095) & !4095, end & !4095);
    let zero = |from: usize, to: usize| {
        for at in (from..to).step_by(4) {
            // SAFETY: cells are made of words, and these are cells.
            unsafe { (*(at as *const AtomicU32)).store(0, Relaxed) };
        }
    };
    if last.saturating_sub(page) >= 16 * 4096 {
        zero(first, page);
        // SAFETY: whole pages of a group.
        unsafe { sys::syscall!(sys::MADVISE, page, last - page, sys::MADV_DONTNEED) };
        zero(last, end);
    } else {
        zero(first, end);
    }
}

/// Forgets everything, in the child of a fork.
pub(super) fn start_over() {
    let root = ROOT.load(Relaxed);
    if root.is_null() || GROUPS.load(Relaxed) == 0 {
        return;
    }
    let mut left = GROUPS.load(Relaxed);
    for i in 0..1usize << (ADDRESS_BITS - REACH_BITS) {
        // SAFETY: an entry of the table, and a group of it.
        unsafe {
            let group = (*root.add(i)).load(Relaxed);
            if !group.is_null() {
                sys::syscall!(sys::MADVISE, group, CELLS * size_of::<Cell>(), sys::MADV_DONTNEED);
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
    }
}
