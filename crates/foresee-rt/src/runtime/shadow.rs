//! A cell for every eight bytes of memory, and per-thread entries for cells that several threads
//! read: see [`super::ownership`].

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::clocks::{self, CLOCKED};
use super::ownership::{Cell, Entry, Held, LockWords, Touch, World};
use super::thread::{self, Thread};
use super::{config, log, sys};
use crate::format::Delayed;

/// The cells of 2^20 bytes are allocated together.
const REACH_BITS: u32 = 20;
const CELLS: usize = 1 << (REACH_BITS - 3);
const ADDRESS_BITS: u32 = 47;

static ROOT: AtomicPtr<AtomicPtr<Cell>> = AtomicPtr::new(core::ptr::null_mut());
/// The groups that exist, for forks: how many, and where.
static GROUPS: AtomicUsize = AtomicUsize::new(0);

/// A thread's table of its entries; there is one for each cell.
pub(super) type Reads = *mut AtomicPtr<Entry>;

static PHASES: AtomicU32 = AtomicU32::new(0);

/// Makes room for the table of groups.
pub(super) fn prepare() -> bool {
    let root = table();
    ROOT.store(root, Relaxed);
    !root.is_null()
}

#[cold]
fn table<T>() -> *mut AtomicPtr<T> {
    sys::reserve(size_of::<usize>() << (ADDRESS_BITS - REACH_BITS)).cast()
}

/// The cell of an address, if it or one nearby was requested before. Without the filter there are
/// no cells.
#[inline(always)]
pub(super) fn existing_cell(address: usize) -> *mut Cell {
    let group = address >> REACH_BITS;
    if group >= 1 << (ADDRESS_BITS - REACH_BITS) {
        return core::ptr::null_mut();
    }
    // SAFETY: the table has an entry for every address of this many bits, and a group CELLS cells.
    unsafe {
        let group = (*ROOT.load(Relaxed).add(group)).load(Relaxed);
        if group.is_null() { group } else { group.add((address >> 3) & (CELLS - 1)) }
    }
}

/// The cell of an address; null if there is no memory for it, or the address is invalid.
#[inline(always)]
fn cell(address: usize) -> *mut Cell {
    let cell = existing_cell(address);
    if cell.is_null() { new_cell(address) } else { cell }
}

#[cold]
#[inline(never)]
fn new_cell(address: usize) -> *mut Cell {
    if address >> ADDRESS_BITS != 0 {
        return core::ptr::null_mut();
    }
    // SAFETY: as above.
    unsafe {
        if !new_group(ROOT.load(Relaxed).add(address >> REACH_BITS)).is_null() {
            GROUPS.fetch_add(1, Relaxed);
        }
    }
    existing_cell(address)
}

#[cold]
unsafe fn new_group<T>(entry: *mut AtomicPtr<T>) -> *mut T {
    let group: *mut T = sys::reserve(CELLS * size_of::<T>()).cast();
    if group.is_null() {
        return group;
    }
    // SAFETY: an entry of a table.
    match unsafe { (*entry).compare_exchange(core::ptr::null_mut(), group, Relaxed, Relaxed) } {
        Ok(_) => group,
        Err(first) => first,
    }
}

/// The entry for a cell in a thread's table, if both exist.
///
/// # Safety
/// The table is a thread's, and the caller holds the token.
#[inline(always)]
pub(super) unsafe fn entry<'a>(reads: Reads, address: usize) -> Option<&'a Entry> {
    if reads.is_null() {
        return None;
    }
    // SAFETY: the table has a place for every address that has a cell, and a group CELLS entries.
    unsafe {
        let group = (*reads.add(address >> REACH_BITS)).load(Relaxed);
        if group.is_null() {
            return None;
        }
        Some(&*group.add((address >> 3) & (CELLS - 1)))
    }
}

/// Eight bytes, as a thread accesses them in a hook.
pub(super) struct Here {
    pub(super) t: *mut Thread,
    pub(super) address: usize,
}

impl World for Here {
    #[inline(always)]
    fn is_before(&self, thread: u32, place: u32) -> bool {
        // SAFETY: the thread whose hook this is.
        unsafe { clocks::is_before(self.t, thread, place) }
    }

    #[inline(always)]
    fn entry(&self, thread: u32) -> Option<&Entry> {
        // SAFETY: a thread's table, which only the holder of the token reads.
        unsafe { entry((*thread::get(thread)).reads, self.address) }
    }

    fn make_entry(&self, thread: u32) -> Option<&Entry> {
        if config::free_running() || thread as usize >= CLOCKED {
            return None;
        }
        // SAFETY: as above.
        unsafe {
            let reads = &raw mut (*thread::get(thread)).reads;
            if (*reads).is_null() {
                *reads = table();
            }
            if !(*reads).is_null() {
                let entry = (*reads).add(self.address >> REACH_BITS);
                if (*entry).load(Relaxed).is_null() {
                    new_group(entry);
                }
            }
        }
        self.entry(thread)
    }

    fn new_phase(&self) -> u32 {
        // Entries begin as zero.
        PHASES.fetch_add(1, Relaxed).wrapping_add(1).max(1)
    }

    fn readers(&self) -> u32 {
        thread::count().min(CLOCKED as u32)
    }

    fn tell(&mut self, held: Held) {
        // SAFETY: in a hook of the thread.
        unsafe { tell(self.t, self.address & !7, held) }
    }
}

/// The current access, in the form that cells need.
///
/// # Safety
/// The caller is `t`, in a hook.
#[inline(always)]
pub(super) unsafe fn touch(
    t: *mut Thread,
    mask: u8,
    pc: usize,
    write: bool,
    atomic: bool,
) -> Touch {
    // SAFETY: the thread is the caller's.
    let (thread, place) = unsafe { ((*t).id, (*t).place) };
    Touch { thread, place, mask, pc: pc as u32, write, atomic }
}

/// Notes an access to the bytes in `mask` of the eight at `address`; returns whether it must be recorded now.
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
    unsafe { (*cell).touch(touch(t, mask, pc, write, atomic), &mut Here { t, address }) }
}

/// Records what could no longer be recorded after a write that is about to happen.
///
/// # Safety
/// As [`must_record`].
pub(super) unsafe fn before_write(t: *mut Thread, address: usize, mask: u8) {
    let cell = cell(address);
    if cell.is_null() {
        return;
    }
    // SAFETY: the cell exists; the thread is the caller's.
    unsafe { (*cell).before_write(about_to_write(t, mask), &mut Here { t, address }) }
}

unsafe fn about_to_write(t: *mut Thread, mask: u8) -> Touch {
    // SAFETY: the thread is the caller's.
    unsafe { touch(t, mask, 0, true, false) }
}

/// The lock's words in its cell; the memory is a lock's from now on.
///
/// # Safety
/// As [`must_record`].
pub(super) unsafe fn lock(t: *mut Thread, address: usize) -> Option<LockWords<'static>> {
    let cell = cell(address);
    if cell.is_null() {
        return None;
    }
    // SAFETY: the cell exists until the process ends; the thread is the caller's.
    unsafe { (*cell).as_lock(about_to_write(t, 0xff), &mut Here { t, address }) }
}

/// Records an access that was held back, with the values that memory has now.
#[inline(never)]
unsafe fn tell(t: *mut Thread, address: usize, held: Held) {
    let Held { thread, access, mask, place, pc } = held;
    // SAFETY: one of the eight aligned bytes was accessed before, so all of them are mapped. The caller is in a hook of
    // `t`.
    unsafe {
        let bytes = (address as *const u64).read_volatile().to_le_bytes();
        let (delayed, len) = Delayed { thread, place, access, mask, bytes }.to_bytes();
        log::put_delayed(t, address, pc, &delayed, len);
    }
}

/// Records all accesses to a range of memory from now on.
pub(super) fn watch(address: usize, size: usize) {
    for at in (address & !7..address + size).step_by(8) {
        let cell = cell(at);
        if !cell.is_null() {
            // SAFETY: the cell exists.
            unsafe { (*cell).watch() };
        }
    }
}

/// Forgets a range of memory: it was freed, or is about to be reused.
pub(super) fn forget(address: usize, size: usize) {
    if !config::filter() {
        return;
    }
    let (mut at, end) =
        ((address + 7) & !7, address.saturating_add(size).min(1 << ADDRESS_BITS) & !7);
    while at < end {
        let group_end = ((at >> REACH_BITS) + 1) << REACH_BITS;
        let stop = end.min(group_end);
        // SAFETY: the table has an entry for the address; the cells of the range begin with `first`.
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

/// Resets cells; whole pages of them are returned to the kernel.
unsafe fn clear(first: usize, bytes: usize) {
    let end = first + bytes;
    let (page, last) = ((first + 4095) & !4095, end & !4095);
    let zero = |from: usize, to: usize| {
        for at in (from..to).step_by(4) {
            // SAFETY: these are cells, which consist of words.
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
