//! The state of each thread.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::callers::Callers;
use super::clocks::Clock;
use super::next::real;
use super::shadow::Reads;
use super::sys;

/// A plain store that was announced and happens after its hook; its value is known at the thread's next hook.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Pending {
    pub(super) address: usize,
    /// Zero when nothing is pending.
    pub(super) size: usize,
    pub(super) pc: usize,
    /// The first bytes of the memory before the store.
    pub(super) before: u64,
    /// Whether the instruction reads and writes in one step.
    pub(super) is_atomic: bool,
    /// Whether it is certain to have happened by the next hook: compilers may put other hooks before the store.
    pub(super) is_over: bool,
}

impl Pending {
    pub(super) const NONE: Pending =
        Pending { address: 0, size: 0, pc: 0, before: 0, is_atomic: false, is_over: false };
}

/// A thread. The fields that every hook uses come first, in one cache line. All of it belongs to
/// the thread, except for atomics, and unless another thread holds the token on its behalf.
#[repr(C, align(256))]
pub(super) struct Thread {
    /// From one; zero in the child of a fork until it has a log of its own.
    pub(super) id: u32,
    /// Set while the thread is in a hook: what the runtime itself calls is not recorded, and signals wait.
    pub(super) busy: AtomicU32,
    /// The number of hooks left before the token is passed on.
    pub(super) fuel: i32,
    /// The number of hooks left when the turn began.
    pub(super) turn: i32,
    /// The number of counted records of the thread.
    pub(super) place: u32,
    pub(super) pending: Pending,
    /// The functions that it is in.
    pub(super) callers: Callers,
    /// Signals that arrived while the thread was in a hook.
    pub(super) signals: u64,
    /// Its last reads of memory that several threads read; null if there are none.
    pub(super) reads: Reads,
    /// The place that requests the next allocation, if it is not the caller of `malloc`.
    pub(super) site: usize,
    /// The condition and the lock of a wait that has not returned.
    pub(super) waiting: [usize; 2],
    /// Whether the thread held the lock when the wait began.
    pub(super) gave: bool,
    /// The thread, as the kernel knows it.
    pub(super) tid: u32,
    /// Set by the creator once the start of the thread is recorded.
    pub(super) go: AtomicU32,
    pub(super) start: usize,
    pub(super) argument: usize,
    /// The routine of `pthread_once`, its control word, and the caller; zero once it was called.
    pub(super) once: [usize; 3],
    /// Whether it was started by a library that is modelled as a whole.
    pub(super) is_of_library: bool,
    /// Its OpenMP team; null outside parallel regions.
    pub(super) team: *const super::openmp::Team,
    /// Whether the tasks that it creates are executed at once, because the current one is final.
    pub(super) is_final: bool,
    /// The number of barriers of the team that it has passed, including the team's beginning.
    pub(super) round: u32,
    /// The function that copies the result of a `single`, while that is in progress.
    pub(super) copies: usize,
    /// Whether the pending store may have happened without the token.
    pub(super) inexact: bool,
    /// How much of `fuel` was used for other reasons than hooks.
    pub(super) charged: i32,
    /// How often the destructor of the thread's key has run.
    pub(super) farewells: u32,
    /// Whether the log has a record of the thread.
    pub(super) begun: bool,
    /// The stage of its life, see [`life`].
    pub(super) life: AtomicU32,
    /// Whether it waits for something that only another thread can provide.
    pub(super) blocked: AtomicU32,
    /// Whether it belongs to a library's pool of threads that never end.
    pub(super) is_reserve: bool,
    /// Whether it is in the queue for the token, on which it sleeps.
    pub(super) waits: AtomicU32,
    /// Where in the queue.
    pub(super) place_in_queue: u32,
    /// Its number in the schedule that is replayed, plus one; zero if it is not in it.
    pub(super) script: u32,
    /// The number of its steps, and of threads that it started.
    pub(super) steps: u64,
    pub(super) children: u32,
    /// Its last step if that was a plain store: tag, return address, number and address.
    pub(super) stored: (u8, usize, u64, usize),
    /// How many steps like the next listed one it has done since the previous one.
    pub(super) alike: u64,
    /// The condition that it waits for in a replay; zero if it does not.
    pub(super) sleeps_on: AtomicUsize,
    /// Set when that wait is over.
    pub(super) woken: AtomicU32,
    /// While the program is explored: what it is about to do, the number of its entry while it does that, plus one, and what
    /// was decided.
    pub(super) ask: crate::exploring::Entry,
    pub(super) entry: u64,
    pub(super) choice: u32,
    /// Its name: the numbers of threads on the path of its creation; its own number there, from one; and its parent.
    pub(super) path: [u32; 16],
    pub(super) path_len: u32,
    pub(super) ordinal: u32,
    pub(super) parent: u32,
    /// The thread that waits until this one comes to its first operation; zero afterwards.
    pub(super) starter: u32,
    /// The result of the thread, if it has returned from its function.
    pub(super) result: u64,
    pub(super) has_returned: bool,
    /// When it began to wait for a condition.
    pub(super) ticket: u64,
    /// Its last operations, latest first, and the number of changes until then; and when it last moved.
    pub(super) seen: [u64; 8],
    pub(super) seen_at: [u64; 8],
    pub(super) moved: u64,
    pub(super) priority: u64,
    /// A store that was announced and comes after the next read, and the place of that.
    pub(super) deferred: Pending,
    pub(super) deferred_until: usize,
    /// The entries of an announced store, and of an instruction that reads and writes.
    pub(super) stores: u64,
    pub(super) updates: u64,
    /// What was where a large store was announced.
    pub(super) overwritten: *mut u8,
    /// What it was told and has not read yet.
    pub(super) staging: super::explore::staging::Staging,
    /// What a call of libc that is in progress reads and writes.
    pub(super) call: super::explore::memory::CallMemory,
    /// Its addresses, and where the next allocations are.
    pub(super) stretch: usize,
    pub(super) heap: usize,
    pub(super) library_heap: usize,
    /// Its clock and its random numbers.
    pub(super) time: u64,
    pub(super) random: u64,
    /// For each of the first threads, the number of its records that come before what this thread does now.
    pub(super) clock: Clock,
}

/// The stages of a thread's life.
pub(super) mod life {
    /// It was started and has not run yet.
    pub(in crate::runtime) const STARTED: u32 = 1;
    /// It runs, or could.
    pub(in crate::runtime) const BEGUN: u32 = 2;
    /// It has ended.
    pub(in crate::runtime) const ENDED: u32 = 3;
}

/// The maximum number of threads in one run; later ones are not recorded, and the log says so.
pub(super) const MAX: u32 = 1 << 18;

static THREADS: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());
static LATEST: AtomicU32 = AtomicU32::new(0);
/// The key whose destructor reports the end of a thread.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Allocates the table. The kernel clears it in the child of a fork, so that a child without its own log records nothing.
pub(super) fn prepare(farewell: unsafe extern "C" fn(*mut c_void)) -> bool {
    let size = MAX as usize * size_of::<Thread>();
    let room = sys::reserve(size);
    if room.is_null() {
        return false;
    }
    // SAFETY: the memory is ours.
    unsafe { sys::syscall!(sys::MADVISE, room, size, sys::MADV_WIPEONFORK) };
    // The key is created once.
    let mut key = 0;
    type End = unsafe extern "C" fn(*mut c_void);
    if real!(pthread_key_create(&raw mut key => *mut u32, farewell => End) -> c_int) == 0 {
        KEY.store(key, Ordering::Relaxed);
    }
    THREADS.store(room.cast(), Ordering::Release);
    true
}

/// The thread with this number.
pub(super) fn get(id: u32) -> *mut Thread {
    // SAFETY: numbers are below MAX, for which there is room.
    unsafe { THREADS.load(Ordering::Acquire).add(id as usize) }
}

/// A new thread; null if there were too many.
pub(super) fn allocate() -> *mut Thread {
    let id = LATEST.fetch_add(1, Ordering::Relaxed) + 1;
    if id >= MAX {
        LATEST.store(MAX, Ordering::Relaxed);
        return core::ptr::null_mut();
    }
    let t = get(id);
    // SAFETY: no other thread knows this one yet.
    unsafe { (*t).id = id };
    t
}

/// Threads have numbers below this.
pub(super) fn count() -> u32 {
    LATEST.load(Ordering::Relaxed) + 1
}

/// Forgets all threads, in the child of a fork.
pub(super) fn start_over() {
    LATEST.store(0, Ordering::Relaxed);
}

/// Requests a call at the end of the calling thread (again).
pub(super) fn ask_for_farewell(t: *mut Thread) {
    let key = KEY.load(Ordering::Relaxed);
    if key != u32::MAX {
        // SAFETY: the key exists.
        unsafe { sys::pthread_setspecific(key, t.cast()) };
    }
}

// Tests are compiled in several units.
#[cfg(test)]
core::arch::global_asm!(".globl foresee_current");

#[cfg(any(foresee_object, test))]
core::arch::global_asm!(
    ".pushsection .tbss.foresee,\"awT\",@nobits",
    ".balign 8",
    ".type foresee_current,@object",
    ".size foresee_current,8",
    "foresee_current:",
    ".zero 8",
    ".popsection"
);

/// The calling thread; null if it has not been seen yet.
#[inline(always)]
pub(super) fn current() -> *mut Thread {
    let t;
    // SAFETY: reads the thread's own word.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr [rip + foresee_current@GOTTPOFF]", "mov {0}, qword ptr fs:[{0}]", out(reg) t,
            options(pure, readonly, nostack, preserves_flags));
    }
    t
}

/// Sets the calling thread.
pub(super) fn set_current(t: *mut Thread) {
    // SAFETY: writes the thread's own word.
    unsafe {
        core::arch::asm!("mov {1}, qword ptr [rip + foresee_current@GOTTPOFF]", "mov qword ptr fs:[{1}], {0}", in(reg) t,
            out(reg) _, options(nostack, preserves_flags));
    }
}
