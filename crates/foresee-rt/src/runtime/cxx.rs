//! What C++ adds: static variables that are initialised on first use, and `new`.

use core::ffi::c_int;

use super::alloc::from_site;
use super::next::real;
use super::{access, enter, hook, leave, step_aside};
use crate::format::{Access, order};

hook! {
    __cxa_guard_acquire => guard_acquire, "rsi";
    __cxa_guard_release => guard_release, "rsi";
    _Znwm => new, "rsi";
    _Znam => new_array, "rsi";
    _ZnwmSt11align_val_t => new_aligned, "rdx";
    _ZnamSt11align_val_t => new_array_aligned, "rdx";
    _ZnwmRKSt9nothrow_t => new_nothrow, "rdx";
    _ZnamRKSt9nothrow_t => new_array_nothrow, "rdx";
}

/// Another thread may be initialising: then this waits for it.
extern "C" fn guard_acquire(guard: usize, pc: usize) -> c_int {
    let acquire = || real!(__cxa_guard_acquire(guard => usize) -> c_int);
    let t = enter();
    if t.is_null() {
        return acquire();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        step_aside(t);
        let mine = acquire();
        if mine == 0 && !enter().is_null() {
            access::before_write(t, guard, 1);
            access::atomic(
                t,
                (Access::AtomicRead, order::FULL),
                guard,
                1,
                pc,
                access::load(guard, 1),
                0,
            );
            leave(t);
        }
        mine
    }
}

/// The guard is a byte that programs also read themselves: its being set is recorded as the write that it is.
extern "C" fn guard_release(guard: usize, pc: usize) {
    let release = || real!(__cxa_guard_release(guard => usize));
    let t = enter();
    if t.is_null() {
        return release();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::before_write(t, guard, 1);
        release();
        access::atomic(
            t,
            (Access::AtomicWrite, order::FULL),
            guard,
            1,
            pc,
            access::load(guard, 1),
            0,
        );
        leave(t);
    }
}

extern "C" fn new(size: usize, pc: usize) -> usize {
    from_site(pc, || real!(_Znwm(size => usize) -> usize))
}

extern "C" fn new_array(size: usize, pc: usize) -> usize {
    from_site(pc, || real!(_Znam(size => usize) -> usize))
}

extern "C" fn new_aligned(size: usize, align: usize, pc: usize) -> usize {
    from_site(pc, || real!(_ZnwmSt11align_val_t(size => usize, align => usize) -> usize))
}

extern "C" fn new_array_aligned(size: usize, align: usize, pc: usize) -> usize {
    from_site(pc, || real!(_ZnamSt11align_val_t(size => usize, align => usize) -> usize))
}

extern "C" fn new_nothrow(size: usize, tag: usize, pc: usize) -> usize {
    from_site(pc, || real!(_ZnwmRKSt9nothrow_t(size => usize, tag => usize) -> usize))
}

extern "C" fn new_array_nothrow(size: usize, tag: usize, pc: usize) -> usize {
    from_site(pc, || real!(_ZnamRKSt9nothrow_t(size => usize, tag => usize) -> usize))
}
