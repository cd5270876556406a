//! Everything that is linked into programs.

mod access;
mod alloc;
mod atomics;
mod blocking;
mod c11;
mod calls;
mod channels;
mod clocks;
mod conds;
mod config;
mod cxx;
mod ending;
mod events;
mod locks;
mod log;
mod memory;
mod modules;
mod next;
mod others;
mod printing;
mod process;
mod scanning;
mod shadow;
mod signals;
mod sorting;
mod stdio;
mod strings;
pub(crate) mod sys;
mod tenancy;
mod thread;
mod threads;
mod token;
mod tsan;
mod turns;

use core::sync::atomic::{Ordering, compiler_fence};

use crate::format::Tag;
use thread::Thread;

/// Defines a function that programs call, and hands it on to another with the caller's return address behind the
/// arguments, of which there are as many as the register says.
macro_rules! hook {
    ($($name:ident => $target:path, $register:literal;)*) => { $(
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(concat!("mov ", $register, ", qword ptr [rsp]"), "jmp {}", sym $target)
        }
    )* };
}
use hook;

/// How many hooks the end of a turn is put off at most, because an announced store may not have happened.
const LATE: i32 = 64;

/// Begins a hook: waits until it is the thread's turn. Null if nothing is to be recorded; then the hook does nothing but
/// what it stands for.
#[inline(always)]
fn enter() -> *mut Thread {
    let t = thread::current();
    // SAFETY: a thread's own state.
    unsafe {
        if t.is_null() {
            return enter_first();
        }
        if (*t).busy.load(Ordering::Relaxed) != 0 {
            return core::ptr::null_mut();
        }
        // First busy, then whose turn it is: see `token::take`.
        (*t).busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if !token::is_held_by(t) {
            return come_in(t);
        }
        (*t).fuel -= 1;
        if (*t).fuel < 0 && ((*t).fuel < -LATE || !access::may_be_to_come(t)) {
            access::settle(t);
            token::hand_on(t);
        }
        t
    }
}

/// A hook of a thread that has not been seen before.
#[cold]
#[inline(never)]
fn enter_first() -> *mut Thread {
    if !process::is_recorded() {
        return core::ptr::null_mut();
    }
    // Beginning to record has introduced the thread already.
    if !thread::current().is_null() {
        return enter_again();
    }
    let t = thread::allocate();
    if t.is_null() {
        return t;
    }
    threads::begin(t)
}

#[inline(never)]
fn enter_again() -> *mut Thread {
    enter()
}

/// Waits for the turn of a thread that is busy already.
#[cold]
#[inline(never)]
unsafe fn come_in(t: *mut Thread) -> *mut Thread {
    // SAFETY: a thread's own state.
    unsafe {
        if (*t).id != 0 && config::recording() {
            if config::free_running() {
                token::count_freely(t);
            } else {
                token::acquire(t);
            }
            if config::recording() {
                if (*t).waiting[0] != 0 {
                    conds::cut_off(t);
                }
                return t;
            }
        }
        (*t).busy.store(0, Ordering::Relaxed);
        core::ptr::null_mut()
    }
}

/// Ends a hook. The token stays with the thread until its next one.
#[inline(always)]
unsafe fn leave(t: *mut Thread) {
    // SAFETY: a thread's own state.
    unsafe {
        compiler_fence(Ordering::SeqCst);
        (*t).busy.store(0, Ordering::Relaxed);
        if (*t).signals != 0 {
            signals::deliver(t);
        }
    }
}

/// Ends a hook before a call that may block: others may go on.
unsafe fn step_aside(t: *mut Thread) {
    // SAFETY: a thread's own state.
    unsafe {
        access::settle(t);
        if !config::free_running() && token::is_held_by(t) {
            token::release(t);
        }
        leave(t);
    }
}

/// Records a step of synchronisation.
unsafe fn sync(t: *mut Thread, tag: Tag, pc: usize, address: usize, value: u64) {
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        log::put(t, tag as u8, pc, address, value);
    }
}

/// Keeps `errno` as it was while a hook makes calls of libc.
struct Errno(i32);

impl Errno {
    fn save() -> Errno {
        // SAFETY: the thread's own word.
        Errno(unsafe { *sys::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the thread's own word.
        unsafe { *sys::__errno_location() = self.0 };
    }
}
