//! The token of the serialised mode.
//!
//! A thread holds it from one hook to the next, so that what a hook announces happens before any
//! other thread's hook. It is released around blocking calls and passed on after a number of hooks,
//! a turn, if another thread waits for it. The holder chooses who gets it, among the threads in the
//! [`queue`]. If the holder makes no hook for two milliseconds, because it sleeps or computes, a
//! waiting thread takes the token from it: see [`patience`]. The holder then waits at its next hook.
//!
//! The length of turns determines what a run shows: see `turns`.

use core::sync::atomic::{AtomicU32, Ordering};

use super::patience::{Holder, Watch};
use super::queue::{self, Queue};
use super::sys;
use super::thread::{self, Thread};
use super::{access, config, gate, log, turns};
use crate::format::Tag;

/// No thread holds the token.
pub(super) const FREE: u32 = u32::MAX;

/// The thread that holds the token.
pub(super) static OWNER: AtomicU32 = AtomicU32::new(FREE);

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
        if !take_free((*t).id) {
            wait(t);
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

fn take_free(id: u32) -> bool {
    gate::admits(id)
        && OWNER.compare_exchange(FREE, id, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Waits for a thread that may be taking the token from the caller, and may give it back: see [`take`].
#[cold]
pub(super) fn let_takers_finish() {
    drop(queue::lock());
}

/// Releases the token, if the thread has it.
///
/// # Safety
/// The caller is `t`, in a hook.
pub(super) unsafe fn release(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    let id = unsafe { (*t).id };
    if !is_held_by(t) {
        let_takers_finish();
        if !is_held_by(t) {
            return;
        }
    }
    // SAFETY: by the caller's promise.
    unsafe {
        log::count(hooks_since(t), 0);
        ((*t).turn, (*t).fuel) = (0, 0);
    }
    let number = turns::random();
    let is_alone = || queue::len() == 0;
    // First release the token, then check that the queue is empty; a waiting thread does the opposite.
    if is_alone()
        && OWNER.compare_exchange(id, FREE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        && is_alone()
    {
        return;
    }
    let queue = queue::lock();
    let owner = OWNER.load(Ordering::SeqCst);
    if owner == id || owner == FREE {
        // SAFETY: this thread has the token, or had it and no thread has it now.
        unsafe { pass_on(queue, owner, number) };
    }
}

/// Gives the token, which `owner` has, to a thread in the queue, if there is one; otherwise it is free.
unsafe fn pass_on(mut queue: Queue, owner: u32, number: u64) {
    let Some(next) = queue.choose(number) else {
        let _ = OWNER.compare_exchange(owner, FREE, Ordering::SeqCst, Ordering::Relaxed);
        return;
    };
    // SAFETY: threads are never moved, and this one is in the queue.
    unsafe {
        let id = (*next).id;
        // If the token was free, a thread may just have taken it.
        if OWNER.compare_exchange(owner, id, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            queue.remove(next);
            drop(queue);
            queue::wake(next);
        }
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
        if queue::len() != 0 {
            let number = turns::random();
            let mut queue = queue::lock();
            let next = queue.choose(number);
            if let Some(next) = next
                && is_held_by(t)
            {
                queue.remove(next);
                queue.push(t);
                OWNER.store((*next).id, Ordering::SeqCst);
                drop(queue);
                queue::wake(next);
                sleep(t);
            }
        }
        turns::begin(t);
    }
}

/// Lets the threads through whose steps come next in the schedule that is replayed; returns whether there were any.
///
/// # Safety
/// The caller is `t` and holds the token.
pub(super) unsafe fn await_turn(t: *mut Thread) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        log::count(hooks_since(t), 0);
        let mut has_waited = false;
        while !gate::admits((*t).id) {
            let mut queue = queue::lock();
            if is_held_by(t) {
                let next = queue.choose(0);
                queue.push(t);
                match next {
                    Some(next) => {
                        queue.remove(next);
                        OWNER.store((*next).id, Ordering::SeqCst);
                        drop(queue);
                        queue::wake(next);
                    }
                    None => {
                        OWNER.store(FREE, Ordering::SeqCst);
                        drop(queue);
                    }
                }
                sleep(t);
            } else {
                drop(queue);
                wait(t);
            }
            has_waited = true;
        }
        turns::begin(t);
        has_waited
    }
}

/// Waits in the queue.
unsafe fn wait(t: *mut Thread) {
    let mut queue = queue::lock();
    // SAFETY: the thread is ours, and is in the queue only between the two steps.
    unsafe {
        let id = (*t).id;
        // The token may have come back: see `take`.
        if is_held_by(t) || take_free(id) {
            return;
        }
        queue.push(t);
        // The token may have become free before its holder could see that a thread waits.
        if take_free(id) || !config::recording() {
            return queue.remove(t);
        }
        drop(queue);
        sleep(t);
    }
}

/// Sleeps until the thread is out of the queue: it has the token then, or recording is over.
unsafe fn sleep(t: *mut Thread) {
    // SAFETY: the thread is ours.
    unsafe {
        let mut watch = Watch::new((*t).id);
        while (*t).waits.load(Ordering::Acquire) != 0 {
            sys::futex_wait(&(*t).waits, 1, watch.pause());
            if (*t).waits.load(Ordering::Acquire) != 0
                && let Some((owner, does)) = watch.look()
                && take(t, owner, does)
            {
                return;
            }
        }
    }
}

/// Takes the token from `owner`, which is outside hooks.
unsafe fn take(t: *mut Thread, owner: u32, does: Holder) -> bool {
    let other = thread::get(owner);
    // SAFETY: `other` lives as long as the process; its plain fields are used only once we have the token, and until then it
    // stays in no hook.
    unsafe {
        let mut queue = queue::lock();
        let state = || (*other).busy.load(Ordering::SeqCst);
        let is_busy = || !matches!(state(), 0 | super::IN_LIBC | super::IN_LOADER);
        if (*t).waits.load(Ordering::Acquire) == 0 {
            return true;
        }
        let id = (*t).id;
        if !gate::admits(id) {
            return false;
        }
        let pass = |from, to| {
            OWNER.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        if is_busy() || !pass(owner, id) {
            return false;
        }
        // The owner sets its busy flag before it checks whether it has the token, without a fence, which every hook would
        // pay for. The kernel executes a fence in it now: either it sees that the token is gone, or we see that it is busy.
        // In the first case it comes to the queue, and waits until we have finished here.
        let is_fenced = sys::syscall!(sys::MEMBARRIER, 8, 0, 0) == 0;
        let size = (*other).pending.size;
        let is_computing = matches!(does, Holder::Computes(_));
        if is_busy() || is_computing && !(is_fenced && does.has_stored(size)) {
            pass(id, owner);
            return false;
        }
        queue.remove(t);
        let is_exact = is_computing || state() == super::IN_LIBC;
        log::count(hooks_since(other), u32::from(!is_exact));
        ((*other).turn, (*other).fuel) = (0, 0);
        let is_to_come = !is_computing || access::may_be_to_come(other);
        let store = access::take_pending(other, is_to_come);
        // From here on, a handler of a signal may run in the owner.
        drop(queue);
        log::put_uncounted(t, Tag::Took, 0, u64::from(owner), &[]);
        if let Some(store) = store {
            access::put_store(other, store);
        }
    }
    true
}

/// The thread has ended, wherever it was.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn forget(t: *mut Thread) {
    // SAFETY: the thread's own state; a thread that waits is in the queue.
    unsafe {
        let mut queue = queue::lock();
        if (*t).waits.load(Ordering::Acquire) != 0 {
            queue.remove(t);
        }
        if is_held_by(t) {
            pass_on(queue, (*t).id, u64::from((*t).id));
        }
    }
}

/// Lets all threads through, when recording is over.
pub(super) fn open_for_all() {
    let mut queue = queue::lock();
    OWNER.store(FREE, Ordering::SeqCst);
    queue.clear();
}

/// Forgets the holder of the token and the waiting threads, in the child of a fork.
pub(super) fn start_over() {
    queue::start_over();
    OWNER.store(FREE, Ordering::SeqCst);
}
