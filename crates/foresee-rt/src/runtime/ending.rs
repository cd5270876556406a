//! The end of the program: who requested it, and a last chance for threads that have hardly run.
//!
//! A program that returns from `main` while threads are still running kills them wherever they are,
//! often before their first step. While it is recorded, it waits for them for a moment; otherwise
//! nothing would be known about them.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::next::real;
use super::thread::{self, Thread, life};
use super::{enter, explore, hook, leave, log, process, step_aside, sys};
use crate::exploring::{fail, kind};
use crate::format::last;

/// How long a thread may take to its first step.
const TO_BEGIN: u64 = 2_000_000_000;
/// How long threads may take to end, or to come to a call that only others can end.
const TO_END: u64 = 250_000_000;
/// How often they are checked.
const PAUSE: u64 = 500_000;

static IS_EXPECTED: AtomicBool = AtomicBool::new(false);
static IS_WAITED: AtomicBool = AtomicBool::new(false);

/// From now on there are threads to wait for when `main` returns. Destructors of objects that were
/// constructed before now run after that.
pub(super) fn expect_threads() {
    if !IS_EXPECTED.swap(true, Ordering::Relaxed) {
        if explore::is_on() {
            let act: unsafe extern "C" fn(c_int, *mut c_void) = main_returned_with;
            real!(on_exit(act as usize => usize, 0 => usize) -> c_int);
            return;
        }
        // SAFETY: a plain function, to be called when the program ends.
        unsafe { sys::__cxa_atexit(main_returned, core::ptr::null_mut(), core::ptr::null_mut()) };
    }
}

unsafe extern "C" fn main_returned_with(status: c_int, _: *mut c_void) {
    explore::finishes(kind::EXIT, 0, status as u8 as u64, 0);
}

unsafe extern "C" fn main_returned(_: *mut c_void) {
    wait_for_others();
}

/// In the child of a fork, no thread has waited yet.
pub(super) fn start_over() {
    IS_WAITED.store(false, Ordering::Relaxed);
}

/// Lets all threads run until they have ended or wait for others, for a limited time.
fn wait_for_others() {
    if explore::was_on() {
        return;
    }
    let t = enter();
    if t.is_null() || IS_WAITED.swap(true, Ordering::Relaxed) {
        if !t.is_null() {
            // SAFETY: ends the hook.
            unsafe { leave(t) };
        }
        return;
    }
    // SAFETY: in a hook of `t`, which ends here.
    unsafe { step_aside(t) };
    let since = sys::now();
    // A waiting thread may have just been woken, and still seem to wait.
    let mut calm = 0;
    loop {
        let others = Others::but(t);
        calm = if others.is_calm() { calm + 1 } else { 0 };
        let patience = if others.have_not_begun { TO_BEGIN } else { TO_END };
        if calm > 0 && !others.wait || calm > 4 || sys::now().wrapping_sub(since) > patience {
            return;
        }
        sys::sleep(PAUSE);
    }
}

/// The state of the other threads.
#[derive(Default)]
struct Others {
    have_not_begun: bool,
    run: bool,
    wait: bool,
}

impl Others {
    fn but(t: *mut Thread) -> Others {
        let mut others = Others::default();
        for id in 1..thread::count() {
            let other = thread::get(id);
            // SAFETY: threads are never moved; these fields are shared, or set before the thread started.
            unsafe {
                if other == t || (*other).is_reserve {
                    continue;
                }
                match (*other).life.load(Ordering::SeqCst) {
                    life::STARTED => others.have_not_begun = true,
                    life::BEGUN if (*other).blocked.load(Ordering::SeqCst) != 0 => {
                        others.wait = true;
                    }
                    life::BEGUN => others.run = true,
                    _ => {}
                }
            }
        }
        others
    }

    fn is_calm(&self) -> bool {
        !self.have_not_begun && !self.run
    }
}

fn current() -> u32 {
    let t = thread::current();
    // SAFETY: the thread's own state.
    if t.is_null() { 0 } else { unsafe { (*t).id } }
}

hook! {
    exit => exit_with, "rsi";
    abort => abort_now, "rdi";
    __assert_fail => assertion_failed, "r8";
    raise => raise_signal, "rsi";
    _exit => exit_at_once, "rsi";
    _Exit => exit_at_once, "rsi";
    quick_exit => exit_quickly, "rsi";
}

extern "C" fn exit_with(status: c_int, pc: usize) -> ! {
    if log::is_ours() {
        log::note_last(last::EXIT, pc, status as u8 as u64, current());
        explore::finishes(kind::EXIT, 0, status as u8 as u64, pc);
        wait_for_others();
    }
    real!(exit(status => c_int));
    sys::abort()
}

extern "C" fn exit_at_once(status: c_int, pc: usize) -> ! {
    end_at_once(status, pc);
    real!(_exit(status => c_int));
    sys::abort()
}

extern "C" fn exit_quickly(status: c_int, pc: usize) -> ! {
    end_at_once(status, pc);
    real!(quick_exit(status => c_int));
    sys::abort()
}

/// The child of a `vfork` shares its parent's memory and must not change it.
fn end_at_once(status: c_int, pc: usize) {
    if log::is_ours() {
        log::note_last(last::EXIT, pc, status as u8 as u64, current());
        explore::finishes(kind::EXIT, 0, status as u8 as u64, pc);
        wait_for_others();
        process::end();
    }
}

extern "C" fn abort_now(pc: usize) -> ! {
    log::note_last(last::ABORT, pc, 0, current());
    explore::finishes(kind::FAIL, fail::ABORT, 6, pc);
    real!(abort());
    sys::abort()
}

extern "C" fn assertion_failed(
    what: usize,
    file: usize,
    line: u32,
    function: usize,
    pc: usize,
) -> ! {
    log::note_last(last::ASSERTION, pc, 0, current());
    explore::finishes(kind::FAIL, fail::ASSERTION, 6, pc);
    real!(__assert_fail(what => usize, file => usize, line => u32, function => usize));
    sys::abort()
}

extern "C" fn raise_signal(signal: c_int, pc: usize) -> c_int {
    log::note_last(last::RAISE, pc, signal as u64, current());
    real!(raise(signal => c_int) -> c_int)
}
