//! C++: static variables that are initialised on first use, `new`, and exceptions.

use core::ffi::{CStr, c_int};

use super::alloc::from_site;
use super::calls::calls;
use super::next::real;
use super::{access, enter, explore, hook, leave, step_aside, sys};
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

/// If another thread is initialising, waits for it.
extern "C" fn guard_acquire(guard: usize, pc: usize) -> c_int {
    let acquire = || real!(__cxa_guard_acquire(guard => usize) -> c_int);
    let t = enter();
    if t.is_null() {
        return acquire();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        if explore::is_on() {
            let is_done = access::load(guard, 1) != 0;
            let is_mine = explore::sync::begin_once(t, guard, pc, is_done);
            let mine = if is_mine { acquire() } else { 0 };
            leave(t);
            return mine;
        }
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

/// The guard is a byte that programs also read themselves, so setting it is recorded as a write.
extern "C" fn guard_release(guard: usize, pc: usize) {
    let release = || real!(__cxa_guard_release(guard => usize));
    let t = enter();
    if t.is_null() {
        return release();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::before_write(t, guard, 1);
        if explore::is_on() {
            explore::sync::end_once(t, guard, pc);
            explore::memory::release(t, guard, pc, release);
            leave(t);
            return;
        }
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

/// The standard streams, which the first module that includes `<iostream>` constructs, and their sizes.
const STREAMS: [(&CStr, usize); 8] = [
    (c"_ZSt3cin", 280),
    (c"_ZSt4cout", 272),
    (c"_ZSt4cerr", 272),
    (c"_ZSt4clog", 272),
    (c"_ZSt4wcin", 280),
    (c"_ZSt5wcout", 272),
    (c"_ZSt5wcerr", 272),
    (c"_ZSt5wclog", 272),
];

/// The address of a stream, if it has not been constructed yet.
fn unmade(name: &CStr) -> Option<usize> {
    // SAFETY: a stream begins with the address of its table of functions.
    unsafe {
        let at = sys::dlsym(sys::RTLD_DEFAULT, name.as_ptr()) as usize;
        (at != 0 && access::load(at, 8) == 0).then_some(at)
    }
}

hook! {
    _ZNSt8ios_base4InitC1Ev => make_streams, "rsi";
}

extern "C" fn make_streams(it: usize, pc: usize) {
    let before = STREAMS.map(|(name, _)| unmade(name));
    real!(_ZNSt8ios_base4InitC1Ev(it => usize));
    let t = enter();
    if t.is_null() {
        return;
    }
    for ((name, size), at) in STREAMS.into_iter().zip(before) {
        if let Some(at) = at.filter(|_| unmade(name).is_none()) {
            // SAFETY: in a hook of `t`; the stream has just been written.
            unsafe {
                access::before_write(t, at, size);
                access::written(t, at, size, pc);
            }
        }
    }
    // SAFETY: in a hook of `t`.
    unsafe { leave(t) };
}

/// Standard exceptions are constructed within libstdc++ and caught anywhere: a table of type and
/// text, which is copied.
macro_rules! exceptions {
    ($($by_text:ident $by_string:ident)*) => {
        calls! { $(
            Outside $by_text(it, text) |c| { c.reads_text(text); } => |c, out| { c.wrote(it, 16); };
            Outside $by_string(it, text) |c| {
                c.reads(text, 16);
                // SAFETY: a string begins with the address and the length of its text.
                let (at, size) = unsafe { (access::load(text, 8), access::load(text + 8, 8)) };
                c.reads(at as usize, size as usize);
            } => |c, out| { c.wrote(it, 16); };
        )* }
    };
}

exceptions! {
    _ZNSt11logic_errorC1EPKc _ZNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt11logic_errorC2EPKc _ZNSt11logic_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12domain_errorC1EPKc _ZNSt12domain_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12domain_errorC2EPKc _ZNSt12domain_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt16invalid_argumentC1EPKc _ZNSt16invalid_argumentC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt16invalid_argumentC2EPKc _ZNSt16invalid_argumentC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12length_errorC1EPKc _ZNSt12length_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12length_errorC2EPKc _ZNSt12length_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12out_of_rangeC1EPKc _ZNSt12out_of_rangeC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt12out_of_rangeC2EPKc _ZNSt12out_of_rangeC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt13runtime_errorC1EPKc _ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt13runtime_errorC2EPKc _ZNSt13runtime_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt11range_errorC1EPKc _ZNSt11range_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt11range_errorC2EPKc _ZNSt11range_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt14overflow_errorC1EPKc _ZNSt14overflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt14overflow_errorC2EPKc _ZNSt14overflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt15underflow_errorC1EPKc _ZNSt15underflow_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
    _ZNSt15underflow_errorC2EPKc _ZNSt15underflow_errorC2ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
}
