//! Copies and fills of memory, which compilers call on their own: gcc calls libc's, clang the
//! sanitizer's. Other memory functions of libc are in tables, see [`super::calls`].

use core::ffi::{c_int, c_void};

use super::next::real;
use super::thread::Thread;
use super::{access, enter, explore, hook, leave};

type Bytes = *mut c_void;

hook! {
    memcpy => copy, "rcx";
    memmove => shift, "rcx";
    memset => fill, "rcx";
    __tsan_memcpy => copy, "rcx";
    __tsan_memmove => shift, "rcx";
    __tsan_memset => fill, "rcx";
}

/// Performs a write of `size` bytes at `to`, in a hook, and records it.
fn writing<T>(t: *mut Thread, to: Bytes, size: usize, pc: usize, act: impl FnOnce() -> T) -> T {
    // SAFETY: the program requested this write.
    unsafe {
        access::range(t, to as usize, size, pc, true);
        let out = act();
        access::settle(t);
        out
    }
}

fn moving(to: Bytes, from: Bytes, size: usize, pc: usize, act: impl FnOnce() -> Bytes) -> Bytes {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: the program requested this copy.
    unsafe {
        access::settle(t);
        if explore::is_on() {
            explore::memory::copy(t, to as usize, from as usize, size, pc);
            leave(t);
            return to;
        }
        access::range(t, from as usize, size, pc, false);
        let out = writing(t, to, size, pc, act);
        leave(t);
        out
    }
}

extern "C" fn copy(to: Bytes, from: Bytes, size: usize, pc: usize) -> Bytes {
    moving(to, from, size, pc, || real!(memcpy(to => Bytes, from => Bytes, size => usize) -> Bytes))
}

extern "C" fn shift(to: Bytes, from: Bytes, size: usize, pc: usize) -> Bytes {
    moving(
        to,
        from,
        size,
        pc,
        || real!(memmove(to => Bytes, from => Bytes, size => usize) -> Bytes),
    )
}

extern "C" fn fill(to: Bytes, byte: c_int, size: usize, pc: usize) -> Bytes {
    let act = || real!(memset(to => Bytes, byte => c_int, size => usize) -> Bytes);
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        let out = match explore::is_on() {
            true => {
                explore::memory::fill(t, to as usize, byte as u8, size, pc);
                to
            }
            false => writing(t, to, size, pc, act),
        };
        leave(t);
        out
    }
}
