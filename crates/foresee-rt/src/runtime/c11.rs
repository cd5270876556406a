//! C11 threads, for which libc has separate functions though they are the same as pthreads
//! underneath.

use core::ffi::{c_int, c_void};

use super::locks::{EBUSY, MUTEX, give, make, note, of_mutex, take, try_take};
use super::next::real;
use super::others::run_once;
use super::{conds, hook, threads};
use crate::format::{Tag, how};

/// `thrd_busy`.
pub(super) const BUSY: c_int = 1;
/// `thrd_timedout`.
pub(super) const TIMED_OUT: c_int = 4;

type Object = *mut c_void;

hook! {
    thrd_create => create, "rcx";
    thrd_join => join, "rdx";
    mtx_init => mutex_init, "rdx";
    mtx_lock => mutex_lock, "rsi";
    mtx_trylock => mutex_trylock, "rsi";
    mtx_timedlock => mutex_timedlock, "rdx";
    mtx_unlock => mutex_unlock, "rsi";
    cnd_init => cond_init, "rsi";
    cnd_wait => cond_wait, "rdx";
    cnd_timedwait => cond_timedwait, "rcx";
    cnd_signal => cond_signal, "rsi";
    cnd_broadcast => cond_broadcast, "rsi";
    call_once => once, "rdx";
}

/// A start routine's `int` is returned in the low half of the word that pthread's returns, which is
/// where `thrd_join` looks for it; so the routine itself can be passed to pthread.
extern "C" fn create(handle: *mut usize, start: usize, argument: usize, pc: usize) -> c_int {
    match threads::start_thread(handle, core::ptr::null(), start, argument, false, pc) {
        0 => 0,
        12 => 3, // ENOMEM, thrd_nomem
        _ => 2,
    }
}

extern "C" fn join(handle: usize, out: *mut c_int, pc: usize) -> c_int {
    threads::wait_for(
        handle,
        out.cast(),
        4,
        false,
        pc,
        || real!(thrd_join(handle => usize, out => *mut c_int) -> c_int),
    )
}

extern "C" fn mutex_init(lock: Object, kind: c_int, pc: usize) -> c_int {
    make(lock, pc, || real!(mtx_init(lock => Object, kind => c_int) -> c_int))
}

fn attempt(lock: Object) -> c_int {
    real!(mtx_trylock(lock => Object) -> c_int)
}

extern "C" fn mutex_lock(lock: Object, pc: usize) -> c_int {
    take::<MUTEX>(
        lock,
        Tag::Acquire,
        of_mutex(lock),
        pc,
        || attempt(lock),
        || real!(mtx_lock(lock => Object) -> c_int),
    )
}

extern "C" fn mutex_trylock(lock: Object, pc: usize) -> c_int {
    match try_take::<MUTEX>(lock, Tag::Acquire, of_mutex(lock), pc, || attempt(lock)) {
        EBUSY => BUSY,
        out => out,
    }
}

extern "C" fn mutex_timedlock(lock: Object, until: usize, pc: usize) -> c_int {
    let wait = || real!(mtx_timedlock(lock => Object, until => usize) -> c_int);
    let how = how::TIMED | of_mutex(lock);
    match take::<MUTEX>(lock, Tag::Acquire, how, pc, || attempt(lock), wait) {
        super::locks::ETIMEDOUT => TIMED_OUT,
        out => out,
    }
}

extern "C" fn mutex_unlock(lock: Object, pc: usize) -> c_int {
    give::<MUTEX>(lock, pc, || real!(mtx_unlock(lock => Object) -> c_int))
}

extern "C" fn cond_init(cond: Object, pc: usize) -> c_int {
    note(Tag::CondInit, cond, 0, pc, || real!(cnd_init(cond => Object) -> c_int))
}

extern "C" fn cond_wait(cond: Object, lock: Object, pc: usize) -> c_int {
    conds::wait_on(
        cond,
        lock,
        None,
        pc,
        || real!(cnd_wait(cond => Object, lock => Object) -> c_int),
    )
}

extern "C" fn cond_timedwait(cond: Object, lock: Object, until: usize, pc: usize) -> c_int {
    let out = conds::wait_on(
        cond,
        lock,
        Some((0, until)),
        pc,
        || real!(cnd_timedwait(cond => Object, lock => Object, until => usize) -> c_int),
    );
    if out == super::locks::ETIMEDOUT { TIMED_OUT } else { out }
}

extern "C" fn cond_signal(cond: Object, pc: usize) -> c_int {
    conds::notify(cond, false, pc, || real!(cnd_signal(cond => Object) -> c_int))
}

extern "C" fn cond_broadcast(cond: Object, pc: usize) -> c_int {
    conds::notify(cond, true, pc, || real!(cnd_broadcast(cond => Object) -> c_int))
}

extern "C" fn once(control: Object, routine: usize, pc: usize) {
    run_once(control, routine, pc, &|run| {
        real!(call_once(control => Object, run => usize));
        0
    });
}
