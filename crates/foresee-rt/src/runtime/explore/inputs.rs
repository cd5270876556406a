//! What a thread sees of the world besides memory: its clock and its random numbers depend on nothing but what it did.

use core::ffi::{c_int, c_uint};

use super::super::next::real;
use super::super::thread::{self, Thread};
use super::super::{enter, hook, leave};
use super::{is_on, memory};

/// When every run begins, in nanoseconds of the real-time clock: 2024-01-01.
const BEGINNING: u64 = 1_704_067_200_000_000_000;
/// How much later it is whenever a thread asks.
const TICK: u64 = 1_000;

/// The time on the thread's clock.
///
/// # Safety
/// The caller is `t`.
pub(in crate::runtime) unsafe fn time(t: *mut Thread) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).time += TICK;
        BEGINNING + (*t).time
    }
}

/// Lets time pass for the calling thread instead of sleeping.
pub(in crate::runtime) fn pass(nanoseconds: u64) {
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the thread's own state.
        unsafe { (*t).time = (*t).time.saturating_add(nanoseconds) };
    }
}

hook! {
    rand => rand_own, "rdi";
    random => random_own, "rdi";
    arc4random => arc4random_own, "rdi";
    getrandom => getrandom_own, "rcx";
    getentropy => getentropy_own, "rdx";
}

/// A random number of the calling thread, if the program is explored.
fn own() -> Option<u64> {
    let t = thread::current();
    // SAFETY: the thread's own state.
    (is_on() && !t.is_null()).then(|| unsafe { next_random(t) })
}

extern "C" fn rand_own(_pc: usize) -> c_int {
    own().map_or_else(|| real!(rand() -> c_int), |n| (n >> 33) as c_int)
}

extern "C" fn random_own(_pc: usize) -> isize {
    own().map_or_else(|| real!(random() -> isize), |n| (n >> 33) as isize)
}

extern "C" fn arc4random_own(_pc: usize) -> c_uint {
    own().map_or_else(|| real!(arc4random() -> c_uint), |n| (n >> 32) as c_uint)
}

/// Fills memory with random numbers of the calling thread, if the program is explored.
fn fill(to: usize, size: usize, pc: usize) -> bool {
    if !is_on() {
        return false;
    }
    let t = enter();
    if t.is_null() {
        return false;
    }
    // SAFETY: in a hook of `t`; the program's own memory.
    unsafe {
        for at in (0..size).step_by(8) {
            let n = (size - at).min(8);
            memory::write(t, to + at, n, [next_random(t) & (u64::MAX >> (64 - 8 * n)), 0], pc);
        }
        leave(t);
    }
    true
}

extern "C" fn getrandom_own(to: usize, size: usize, flags: c_uint, pc: usize) -> isize {
    match fill(to, size, pc) {
        true => size as isize,
        false => real!(getrandom(to => usize, size => usize, flags => c_uint) -> isize),
    }
}

extern "C" fn getentropy_own(to: usize, size: usize, pc: usize) -> c_int {
    match size <= 256 && fill(to, size, pc) {
        true => 0,
        false => real!(getentropy(to => usize, size => usize) -> c_int),
    }
}

/// A random number of the thread.
///
/// # Safety
/// The caller is `t`.
unsafe fn next_random(t: *mut Thread) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe {
        if (*t).random == 0 {
            let path = &(&(*t).path)[..(*t).path_len as usize];
            let mixed = path.iter().fold(0x9e37_79b9_7f4a_7c15u64, |sum, &n| {
                (sum.rotate_left(29) ^ u64::from(n)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
            });
            (*t).random = mixed | 1;
        }
        let x = &mut (*t).random;
        *x ^= *x << 13;
        *x ^= *x >> 7;
        *x ^= *x << 17;
        x.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
