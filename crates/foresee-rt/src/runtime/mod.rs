//! Everything that is linked into programs.

mod access;
mod added;
mod alloc;
mod atomics;
mod blocking;
mod c11;
mod callers;
mod calls;
mod channels;
mod clocks;
mod conds;
mod config;
mod connections;
mod containers;
mod cxx;
mod ending;
mod events;
mod explore;
mod file;
mod formats;
mod gate;
mod hold;
mod kernel;
mod locks;
mod log;
mod memory;
mod modules;
mod next;
mod openmp;
mod others;
mod ownership;
mod patience;
mod printing;
mod process;
mod queue;
mod scanning;
mod shadow;
mod signals;
mod sorting;
mod stdio;
mod strings;
pub(crate) mod sys;
#[cfg(test)]
mod tests;
mod thread;
mod threads;
mod token;
mod tsan;
mod turns;

use core::sync::atomic::{Ordering, compiler_fence};

use crate::format::Tag;
use thread::Thread;

/// Defines a function that programs call, and passes it on to another one with the caller's return
/// address after the arguments; the register determines their number.
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

/// The maximum number of hooks by which the end of a turn is delayed because an announced store may
/// not have happened.
const LATE: i32 = 64;

/// Begins a hook: waits until it is the thread's turn. Null if nothing is recorded; then the hook
/// only performs the operation itself.
#[inline(always)]
fn enter() -> *mut Thread {
    enter_knowing(|_| false)
}

/// The same, for a hook that may come before a store that was announced: whether it does.
#[inline(always)]
fn enter_knowing(is_before_store: impl FnOnce(*mut Thread) -> bool) -> *mut Thread {
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
        if (*t).fuel < 0 && explore::is_on() {
            (*t).fuel = 0;
            explore::staging::unstage(t);
        } else if (*t).fuel < 0 && gate::is_following() {
            if !is_before_store(t) {
                await_turn(t);
            }
        } else if (*t).fuel < 0 && ((*t).fuel < -LATE || !access::may_be_to_come(t)) {
            access::settle(t);
            token::hand_on(t);
            if config::recording() && !config::free_running() {
                log::put_turn(t);
            }
        }
        t
    }
}

/// Waits until the schedule that is replayed lets the thread continue.
#[cold]
#[inline(never)]
unsafe fn await_turn(t: *mut Thread) {
    // SAFETY: in a hook of `t`, which has the token.
    unsafe {
        access::settle(t);
        if token::await_turn(t) {
            log::put_turn(t);
        }
        if gate::is_following() {
            gate::before_step(t);
        }
    }
}

/// A hook of a thread that has not been seen before.
#[cold]
#[inline(never)]
fn enter_first() -> *mut Thread {
    if !process::is_recorded() {
        return core::ptr::null_mut();
    }
    // The start of the recording has registered the thread already.
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

/// Waits for the turn of a thread that is already busy.
#[cold]
#[inline(never)]
unsafe fn come_in(t: *mut Thread) -> *mut Thread {
    // SAFETY: a thread's own state.
    unsafe {
        if (*t).id != 0 && config::recording() {
            if explore::is_on() {
                explore::come_in(t, (*t).tid == sys::process_id());
            } else if config::free_running() {
                token::count_freely(t);
            } else {
                token::acquire(t);
            }
            if config::recording() {
                if (*t).waiting[0] != 0 {
                    conds::cut_off(t);
                } else if !config::free_running() {
                    log::put_turn(t);
                }
                if gate::is_following() {
                    gate::before_step(t);
                }
                return t;
            }
        }
        (*t).busy.store(0, Ordering::Release);
        core::ptr::null_mut()
    }
}

/// Ends a hook. The token stays with the thread until its next one.
#[inline(always)]
unsafe fn leave(t: *mut Thread) {
    // SAFETY: a thread's own state.
    unsafe {
        compiler_fence(Ordering::SeqCst);
        // Who takes the token from this thread sees what it did: see `token::take`.
        (*t).busy.store(0, Ordering::Release);
        if (*t).signals != 0 {
            signals::deliver(t);
        }
    }
}

/// Ends a hook before a call that may block: other threads may continue.
unsafe fn step_aside(t: *mut Thread) {
    // SAFETY: a thread's own state.
    unsafe {
        access::settle(t);
        // While a program is explored, no thread waits in libc for another.
        if !config::free_running() && !explore::is_on() {
            token::release(t);
        }
        leave(t);
    }
}

/// The value of `busy` for a thread whose hook calls libc, which may wait for a lock of its own. A thread that holds that lock may be
/// at a hook itself, because libc allocates and frees memory with it, and wait for the token: so the token can be taken, as
/// from a thread outside hooks.
const IN_LIBC: u32 = 4;
/// The same for a thread that looks up a function of libc, in the middle of a hook: if the token is taken from it, what the hook
/// records may stand in the wrong place.
const IN_LOADER: u32 = 5;

/// Lets libc `act` within a hook. The thread keeps its turn unless libc makes it wait for a thread that wants the token. Returns
/// also whether the hook can go on: it cannot if recording is over.
///
/// # Safety
/// In a hook of `t`, which relies on nothing that other threads change meanwhile.
unsafe fn in_libc<R>(t: *mut Thread, act: impl FnOnce() -> R) -> (R, bool) {
    // SAFETY: as for the caller.
    unsafe {
        access::settle(t);
        lend(t, IN_LIBC, act)
    }
}

/// Looks something up in libc's tables of what is loaded. A thread that loads a library holds their lock, and has hooks: those of
/// the library's constructors and of libc's allocations.
fn in_loader<R>(look_up: impl FnOnce() -> R) -> R {
    let t = thread::current();
    // SAFETY: a thread's own state.
    unsafe {
        let is_in_hook = !t.is_null()
            && (*t).busy.load(Ordering::Relaxed) == 1
            && !explore::is_on()
            && token::is_held_by(t);
        if !is_in_hook {
            return look_up();
        }
        let (out, _) = lend(t, IN_LOADER, look_up);
        // The hook is not over, even if recording is.
        (*t).busy.store(1, Ordering::Relaxed);
        out
    }
}

/// Lets another thread take the token while this one acts. A store that is announced stays so: it may be the one of this
/// hook, and still to come.
unsafe fn lend<R>(t: *mut Thread, how: u32, act: impl FnOnce() -> R) -> (R, bool) {
    // SAFETY: a thread's own state.
    unsafe {
        (*t).busy.store(how, Ordering::Release);
        let out = act();
        // First busy, then whose turn it is: see `token::take`.
        (*t).busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let is_on = config::free_running() || token::is_held_by(t) || !come_in(t).is_null();
        (out, is_on)
    }
}

/// The value of `busy` for a thread in a library whose functions are modelled as a whole, like
/// OpenMP's: what the library calls is not recorded. Unlike in a hook, signals are handled at once.
const IN_LIBRARY: u32 = 3;

/// Lets a library `act` without recording what it calls.
fn in_library<R>(act: impl FnOnce() -> R) -> R {
    let t = thread::current();
    if t.is_null() {
        return act();
    }
    // SAFETY: the thread's own state.
    unsafe {
        let before = (*t).busy.swap(IN_LIBRARY, Ordering::Relaxed);
        let out = act();
        (*t).busy.store(before, Ordering::Release);
        out
    }
}

/// Ends a hook before a call into such a library that may block, and makes the call.
unsafe fn go_to_library<R>(t: *mut Thread, act: impl FnOnce() -> R) -> R {
    // SAFETY: in a hook of `t`, by the caller's promise.
    unsafe { step_aside(t) };
    in_library(act)
}

/// Runs code of the program that a library calls. `before` and `after` are steps of the thread, in hooks around it.
fn back_in_program(
    before: impl FnOnce(*mut Thread),
    run: impl FnOnce(),
    after: impl FnOnce(*mut Thread),
) {
    let known = thread::current();
    let mut state = IN_LIBRARY;
    if !known.is_null() {
        // SAFETY: the thread's own state.
        state = unsafe { (*known).busy.swap(0, Ordering::AcqRel) };
    }
    let t = enter();
    if t.is_null() {
        run();
    } else {
        before(t);
        // SAFETY: in a hook of `t`.
        unsafe { leave(t) };
        run();
        if !enter().is_null() {
            after(t);
            // SAFETY: in a hook of `t`.
            unsafe { step_aside(t) };
        }
    }
    let t = thread::current();
    if !t.is_null() {
        // SAFETY: the thread's own state.
        unsafe { (*t).busy.store(state, Ordering::Release) };
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

/// Preserves `errno` while a hook calls libc.
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
