//! The token of the serialised mode.
//!
//! A thread holds it from one hook to the next, so that what a hook announces happens before any
//! other thread's hook. It is released around blocking calls and passed on after a number of hooks,
//! a turn, if another thread waits for it. If the holder sleeps outside hooks for two milliseconds
//! (in a system call that is not intercepted), a waiting thread takes it.
//!
//! The length of turns determines what a run shows: see `turns`.

use core::sync::atomic::{AtomicU32, Ordering};

use super::sys::{self, Text};
use super::thread::{self, Thread};
use super::{access, config, log, turns};
use crate::format::Tag;

/// No thread holds the token.
pub(super) const FREE: u32 = u32::MAX;

/// The thread that holds the token.
pub(super) static OWNER: AtomicU32 = AtomicU32::new(FREE);
static WAITERS: AtomicU32 = AtomicU32::new(0);

const PATIENCE: u64 = 2_000_000;

/// Whether it is this thread's turn.
#[inline(always)]
pub(super) fn is_held_by(t: *mut Thread) -> bool {
    // SAFETY: the thread is the caller's own.
    OWNER.load(Ordering::Relaxed) == unsafe { (*t).id }
}

/// Waits for the token.
///
/// # Safety
/// The caller is `t`, does not hold the token, and is busy.
pub(super) unsafe fn acquire(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        if OWNER.compare_exchange(FREE, (*t).id, Ordering::Acquire, Ordering::Relaxed).is_err() {
            wait(t, false);
        }
        turns::begin(t);
    }
}

/// How many more hooks of a turn an atomic access counts than a plain one.
const ATOMIC: i32 = 7;

/// Makes an atomic access count for more: it takes as long as several plain ones, and threads spin with atomic accesses, which
/// should not keep the others waiting.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn charge_for_atomic(t: *mut Thread) {
    if !config::free_running() {
        // SAFETY: by the caller's promise.
        unsafe {
            (*t).fuel -= ATOMIC;
            (*t).charged += ATOMIC;
        }
    }
}

/// The number of hooks since the turn began or they were last counted.
unsafe fn hooks_since(t: *mut Thread) -> u64 {
    // SAFETY: a thread that the caller acts for.
    unsafe {
        let charged = core::mem::take(&mut (*t).charged);
        ((*t).turn - (*t).fuel - charged).max(0) as u64
    }
}

/// Counts a hook of the free-running mode; the total is updated from time to time.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn count_freely(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).fuel -= 1;
        if (*t).fuel < 0 {
            log::freeze();
            log::count(64, 0);
            log::thaw();
            (*t).fuel = 63;
        }
    }
}

/// Releases the token.
///
/// # Safety
/// The caller is `t` and holds the token.
pub(super) unsafe fn release(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        log::count(hooks_since(t), 0);
        ((*t).turn, (*t).fuel) = (0, 0);
    }
    let some = turns::some();
    OWNER.swap(FREE, Ordering::SeqCst);
    if WAITERS.load(Ordering::SeqCst) != 0 {
        sys::futex_wake_among(&OWNER, some);
    }
}

/// Counts the hooks since the token came.
///
/// # Safety
/// The caller is `t`, in a hook.
pub(super) unsafe fn tally(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        if !config::free_running() {
            log::count(hooks_since(t), 0);
            turns::begin(t);
        }
    }
}

/// Passes the token on if another thread waits for it, and takes it again when it is this thread's
/// turn.
///
/// # Safety
/// The caller is `t` and holds the token.
#[cold]
pub(super) unsafe fn hand_on(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        log::count(hooks_since(t), 0);
        if WAITERS.load(Ordering::Relaxed) != 0 {
            let some = turns::some();
            OWNER.swap(FREE, Ordering::SeqCst);
            sys::futex_wake_among(&OWNER, some);
            wait(t, true);
        }
        turns::begin(t);
    }
}

unsafe fn wait(t: *mut Thread, after_you: bool) {
    WAITERS.fetch_add(1, Ordering::SeqCst);
    let mut polite = after_you;
    // SAFETY: the thread is ours.
    let id = unsafe { (*t).id };
    while config::recording() {
        let owner = OWNER.load(Ordering::Acquire);
        if owner == id {
            // Another thread took it, saw that we are busy after all, and gave it back: see `take`.
            break;
        }
        if owner == FREE {
            if polite {
                // A woken thread goes first, but the wait for it is short.
                polite = false;
                sys::futex_wait_as(&OWNER, FREE, PATIENCE / 10, id);
                continue;
            }
            if OWNER.compare_exchange(FREE, id, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                break;
            }
            continue;
        }
        polite = false;
        let before = progress(owner);
        let since = sys::now();
        sys::futex_wait_as(&OWNER, owner, PATIENCE, id);
        let stuck = OWNER.load(Ordering::Relaxed) == owner
            && progress(owner) == before
            && sys::now().wrapping_sub(since) >= PATIENCE;
        // SAFETY: `t` is the caller's thread.
        if stuck && unsafe { take(t, owner) } {
            break;
        }
    }
    WAITERS.fetch_sub(1, Ordering::SeqCst);
}

/// Something that changes with every hook of a thread.
fn progress(owner: u32) -> (i32, u32, bool) {
    let other = thread::get(owner);
    // SAFETY: only read, and only compared; a torn or stale view costs another round.
    unsafe {
        (
            (&raw const (*other).fuel).read_volatile(),
            (&raw const (*other).place).read_volatile(),
            (*other).busy.load(Ordering::Relaxed) != 0,
        )
    }
}

/// Takes the token from `owner` if it sleeps outside the runtime.
unsafe fn take(t: *mut Thread, owner: u32) -> bool {
    let other = thread::get(owner);
    // SAFETY: `other` lives as long as the process; its plain fields are read only once we have the token.
    unsafe {
        if (*other).busy.load(Ordering::SeqCst) != 0
            || is_runnable((&raw const (*other).tid).read_volatile())
        {
            return false;
        }
        if OWNER.compare_exchange(owner, (*t).id, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return false;
        }
        // The owner sets its busy flag before it checks whether it has the token, without a fence, which every hook would
        // pay for. The kernel executes a fence in it now: either it sees that the token is gone, or we see that it is busy.
        sys::syscall!(sys::MEMBARRIER, 8, 0, 0);
        if (*other).busy.load(Ordering::SeqCst) != 0 {
            OWNER.store(owner, Ordering::SeqCst);
            return false;
        }
        log::count(hooks_since(other), 1);
        ((*other).turn, (*other).fuel) = (0, 0);
        log::put_uncounted(t, Tag::Took, 0, u64::from(owner), &[]);
        if (*other).pending.size != 0 {
            access::finish(other, true);
        }
        turns::begin(t);
    }
    true
}

/// Whether the kernel would run the thread now; a thread that is gone is not.
fn is_runnable(tid: u32) -> bool {
    let mut path = Text::<64>::new();
    path.push(b"/proc/self/task/").number(u64::from(tid)).push(b"/stat");
    let mut text = [0u8; 512];
    // SAFETY: reads into `text`.
    let n = unsafe {
        let file =
            sys::syscall!(sys::OPENAT, -100isize, path.as_ptr(), sys::O_RDONLY | sys::O_CLOEXEC, 0);
        if file < 0 {
            return false;
        }
        let n = sys::syscall!(sys::READ, file, text.as_mut_ptr(), text.len());
        sys::syscall!(sys::CLOSE, file);
        n
    };
    let text = &text[..usize::try_from(n).unwrap_or(0)];
    // The name before the state is in parentheses and may contain some itself.
    match text.iter().rposition(|&b| b == b')') {
        Some(end) => text.get(end + 2) == Some(&b'R'),
        None => false,
    }
}

/// Lets all threads through, when recording is over.
pub(super) fn open_for_all() {
    OWNER.store(FREE, Ordering::SeqCst);
    sys::futex_wake(&OWNER, i32::MAX as u32);
}

/// Forgets the holder of the token and the waiting threads, in the child of a fork.
pub(super) fn start_over() {
    WAITERS.store(0, Ordering::SeqCst);
    OWNER.store(FREE, Ordering::SeqCst);
}
