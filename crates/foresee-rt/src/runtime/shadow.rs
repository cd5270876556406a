//! Which accesses need not be recorded: the tenancy filter.
//!
//! For every eight bytes of memory there is a [`Cell`] that says who touched them last: the *tenant*. While nobody else
//! comes, most of the tenant's accesses add nothing to the order of events: whatever they come after, the first ones come
//! after, and whatever comes after them comes after the last ones. So of each tenancy are recorded
//!
//! - the first read and the first write of each byte, at once, unless the memory is fresh: nobody was there before;
//! - the last write and the last reads behind it, when somebody else comes ([`Delayed`]), told with the place in the
//!   tenant's own sequence where they happened. Memory that only one thread ever touches thus costs nothing.
//!
//! Bytes of one cell that are held back together are told together, at the place of the latest of them. That adds order,
//! and never takes any away.

use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::sys;
use super::thread::Thread;
use super::{config, log};
use crate::format::{Access, DELAYED, Delayed, Tag};

/// What is known of eight bytes. Threads may race for it in the free-running mode, which promises no exactness.
#[repr(C)]
pub(super) struct Cell {
    /// Number of the tenant, and whether its last write and read were atomic.
    tenant: AtomicU32,
    /// Bytes whose last write is held back.
    wrote: AtomicU8,
    /// Bytes whose last read is held back.
    read: AtomicU8,
    /// Bytes whose first write of the tenancy need not be recorded (any more).
    first_write: AtomicU8,
    /// The same of reads.
    first_read: AtomicU8,
    write_place: AtomicU32,
    write_pc: AtomicU32,
    read_place: AtomicU32,
    read_pc: AtomicU32,
}

const ID: u32 = (1 << 24) - 1;
/// The tenant of memory that somebody wants to know everything of.
const WATCHED: u32 = ID;
const ATOMIC_WRITE: u32 = 1 << 24;
const ATOMIC_READ: u32 = 1 << 25;

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
        let (c, id) = (&*cell, (*t).id);
        let tenant = c.tenant.load(Relaxed);
        if tenant & ID != id && arrive(t, c, address & !7) {
            return true;
        }
        let known = if write { c.first_write.load(Relaxed) } else { c.first_read.load(Relaxed) };
        if known & mask != mask {
            return first(t, c, address & !7, mask, write);
        }
        if write {
            c.wrote.store(c.wrote.load(Relaxed) | mask, Relaxed);
            c.read.store(c.read.load(Relaxed) & !mask, Relaxed);
            c.write_place.store((*t).place, Relaxed);
            c.write_pc.store(pc as u32, Relaxed);
        } else {
            c.read.store(c.read.load(Relaxed) | mask, Relaxed);
            c.read_place.store((*t).place, Relaxed);
            c.read_pc.store(pc as u32, Relaxed);
        }
        if atomic || tenant & !ID != 0 {
            let bit = if write { ATOMIC_WRITE } else { ATOMIC_READ };
            let tenant = c.tenant.load(Relaxed);
            c.tenant.store(if atomic { tenant | bit } else { tenant & !bit }, Relaxed);
        }
    }
    false
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
    unsafe {
        let c = &*cell;
        if c.tenant.load(Relaxed) & ID != (*t).id {
            arrive(t, c, address & !7);
        } else if c.first_read.load(Relaxed) & c.first_write.load(Relaxed) & mask != mask {
            tell(t, c, address & !7);
        }
    }
}

/// The thread was not the tenant. `true` if the memory is watched.
#[cold]
unsafe fn arrive(t: *mut Thread, c: &Cell, address: usize) -> bool {
    let tenant = c.tenant.load(Relaxed) & ID;
    if tenant == WATCHED {
        return true;
    }
    // SAFETY: the thread is the caller's.
    unsafe {
        let known = if tenant == 0 {
            0xff
        } else {
            tell(t, c, address);
            0
        };
        c.first_write.store(known, Relaxed);
        c.first_read.store(known, Relaxed);
        c.tenant.store((*t).id, Relaxed);
    }
    false
}

/// The access is the first of its kind for some of its bytes; it is recorded, and so must be what was held back before.
#[cold]
unsafe fn first(t: *mut Thread, c: &Cell, address: usize, mask: u8, write: bool) -> bool {
    // SAFETY: as for the caller.
    unsafe { tell(t, c, address) };
    if write {
        c.first_write.store(c.first_write.load(Relaxed) | mask, Relaxed);
    }
    // What a thread reads after its own write comes after nobody else's.
    c.first_read.store(c.first_read.load(Relaxed) | mask, Relaxed);
    true
}

/// Records what was held back of a cell.
unsafe fn tell(t: *mut Thread, c: &Cell, address: usize) {
    let (wrote, read, tenant) =
        (c.wrote.load(Relaxed), c.read.load(Relaxed), c.tenant.load(Relaxed));
    if wrote | read == 0 {
        return;
    }
    // SAFETY: some byte of the eight was touched before, so all of them are mapped: they are aligned.
    let bytes = unsafe { (address as *const u64).read_volatile() }.to_le_bytes();
    let tell = |access, mask, place, pc| {
        let delayed = Delayed { thread: tenant & ID, place, pc, access, mask, bytes }.to_bytes();
        // SAFETY: the caller is in a hook.
        unsafe { log::put_uncounted(t, Tag::Delayed, address, DELAYED as u64, &delayed) };
    };
    let write_place = c.write_place.load(Relaxed);
    if wrote != 0 {
        let access = if tenant & ATOMIC_WRITE != 0 { Access::AtomicWrite } else { Access::Write };
        tell(access, wrote, write_place, c.write_pc.load(Relaxed));
    }
    if read != 0 {
        let access = if tenant & ATOMIC_READ != 0 { Access::AtomicRead } else { Access::Read };
        // What is told of the write may have moved behind the read of another byte.
        let place = c.read_place.load(Relaxed);
        let place = if wrote != 0 { place.max(write_place) } else { place };
        tell(access, read, place, c.read_pc.load(Relaxed));
    }
    c.wrote.store(0, Relaxed);
    c.read.store(0, Relaxed);
}

/// Says that everything is to be known of a stretch of memory.
pub(super) fn watch(address: usize, size: usize) {
    for at in (address & !7..address + size).step_by(8) {
        let cell = cell(at);
        if !cell.is_null() {
            // SAFETY: the cell exists.
            unsafe { (*cell).tenant.store(WATCHED, Relaxed) };
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
