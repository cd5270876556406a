//! Condition variables.

use core::ffi::{c_int, c_void};

use super::locks::{note, of_mutex};
use super::next::real;
use super::thread::Thread;
use super::{blocking, clocks, enter, hook, leave, log, sync};
use crate::format::{Tag, how};

type Object = *mut c_void;

/// Waits with `wait`, which releases the lock and acquires it again, with a timeout if it
/// `is_timed`.
pub(super) fn wait_on(
    cond: Object,
    lock: Object,
    is_timed: bool,
    pc: usize,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return wait();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, Tag::WaitBegin, pc, cond as usize, lock as u64 | u64::from(is_timed));
        (*t).gave = clocks::given(t, lock as usize, true);
        // A signal handler or the end of the thread may come before `wait` returns.
        (*t).waiting = [cond as usize, lock as usize];
        let is_endless = !is_timed && of_mutex(lock) & how::FOREIGN == 0;
        let out = blocking::aside(t, is_endless, wait);
        let waiting = core::mem::take(&mut (*t).waiting);
        if !enter().is_null() {
            if waiting[0] != 0 {
                sync(t, Tag::WaitEnd, pc, cond as usize, lock as u64);
                if (*t).gave {
                    clocks::taken(t, lock as usize, true);
                }
            }
            leave(t);
        }
        out
    }
}

/// Handles a hook during a wait: the thread was cancelled there and holds the lock again, or it runs a signal handler.
///
/// # Safety
/// In a hook of `t`.
#[cold]
pub(super) unsafe fn cut_off(t: *mut Thread) {
    // SAFETY: in a hook of `t`.
    unsafe {
        let [cond, lock] = core::mem::take(&mut (*t).waiting);
        log::put(t, Tag::WaitEnd as u8, 0, cond, lock as u64);
        if (*t).gave {
            clocks::taken(t, lock, true);
        }
    }
}

hook! {
    pthread_cond_init => init, "rdx";
    pthread_cond_wait => wait, "rdx";
    pthread_cond_timedwait => timed_wait, "rcx";
    pthread_cond_clockwait => clock_wait, "r8";
    pthread_cond_signal => signal, "rsi";
    pthread_cond_broadcast => broadcast, "rsi";
}

extern "C" fn init(cond: Object, attributes: usize, pc: usize) -> c_int {
    note(
        Tag::CondInit,
        cond,
        0,
        pc,
        || real!(pthread_cond_init(cond => Object, attributes => usize) -> c_int),
    )
}

extern "C" fn wait(cond: Object, lock: Object, pc: usize) -> c_int {
    wait_on(
        cond,
        lock,
        false,
        pc,
        || real!(pthread_cond_wait(cond => Object, lock => Object) -> c_int),
    )
}

extern "C" fn timed_wait(cond: Object, lock: Object, until: usize, pc: usize) -> c_int {
    wait_on(
        cond,
        lock,
        true,
        pc,
        || real!(pthread_cond_timedwait(cond => Object, lock => Object, until => usize) -> c_int),
    )
}

extern "C" fn clock_wait(
    cond: Object,
    lock: Object,
    clock: c_int,
    until: usize,
    pc: usize,
) -> c_int {
    wait_on(
        cond,
        lock,
        true,
        pc,
        || real!(pthread_cond_clockwait(cond => Object, lock => Object, clock => c_int, until => usize) -> c_int),
    )
}

extern "C" fn signal(cond: Object, pc: usize) -> c_int {
    note(Tag::Notify, cond, 0, pc, || real!(pthread_cond_signal(cond => Object) -> c_int))
}

extern "C" fn broadcast(cond: Object, pc: usize) -> c_int {
    note(Tag::NotifyAll, cond, 0, pc, || real!(pthread_cond_broadcast(cond => Object) -> c_int))
}
