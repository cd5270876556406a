//! Functions of libc that read and write memory for the program. gcc calls libc's, clang the sanitizer's own.

use core::ffi::{c_int, c_void};

use super::next::real;
use super::thread::Thread;
use super::{access, enter, hook, leave};

type Bytes = *mut c_void;

hook! {
    memcpy => copy, "rcx";
    memmove => shift, "rcx";
    memset => fill, "rcx";
    __tsan_memcpy => copy, "rcx";
    __tsan_memmove => shift, "rcx";
    __tsan_memset => fill, "rcx";
    memcmp => compare, "rcx";
    strlen => length, "rsi";
    strcmp => compare_text, "rdx";
    strcpy => copy_text, "rdx";
    strncpy => copy_some_text, "rcx";
}

/// Carries out a write of `size` bytes at `to`, in a hook, and has it recorded.
fn writing<T>(t: *mut Thread, to: Bytes, size: usize, pc: usize, act: impl FnOnce() -> T) -> T {
    // SAFETY: the program asked for this write.
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
    // SAFETY: the program asked for this copy.
    unsafe {
        access::settle(t);
        access::range(t, from as usize, size, pc, false);
        let out = writing(t, to, size, pc, act);
        leave(t);
        out
    }
}

fn reading<T>(ranges: [(usize, usize); 2], pc: usize, act: impl FnOnce() -> T) -> T {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: the program asked for this.
    unsafe {
        access::settle(t);
        for (at, size) in ranges {
            access::range(t, at, size, pc, false);
        }
        let out = act();
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
    let out = writing(t, to, size, pc, act);
    // SAFETY: in a hook of `t`.
    unsafe { leave(t) };
    out
}

fn real_length(text: Bytes) -> usize {
    real!(strlen(text => Bytes) -> usize)
}

extern "C" fn compare(a: Bytes, b: Bytes, size: usize, pc: usize) -> c_int {
    reading(
        [(a as usize, size), (b as usize, size)],
        pc,
        || real!(memcmp(a => Bytes, b => Bytes, size => usize) -> c_int),
    )
}

extern "C" fn length(text: Bytes, pc: usize) -> usize {
    let n = real_length(text);
    reading([(text as usize, n + 1), (0, 0)], pc, || n)
}

extern "C" fn compare_text(a: Bytes, b: Bytes, pc: usize) -> c_int {
    let n = real_length(a).min(real_length(b)) + 1;
    reading(
        [(a as usize, n), (b as usize, n)],
        pc,
        || real!(strcmp(a => Bytes, b => Bytes) -> c_int),
    )
}

extern "C" fn copy_text(to: Bytes, from: Bytes, pc: usize) -> Bytes {
    let n = real_length(from) + 1;
    moving(to, from, n, pc, || real!(strcpy(to => Bytes, from => Bytes) -> Bytes))
}

extern "C" fn copy_some_text(to: Bytes, from: Bytes, size: usize, pc: usize) -> Bytes {
    let n = real!(strnlen(from => Bytes, size => usize) -> usize);
    let t = enter();
    let act = || real!(strncpy(to => Bytes, from => Bytes, size => usize) -> Bytes);
    if t.is_null() {
        return act();
    }
    // SAFETY: the program asked for this copy.
    unsafe {
        access::settle(t);
        access::range(t, from as usize, (n + 1).min(size), pc, false);
        let out = writing(t, to, size, pc, act);
        leave(t);
        out
    }
}
