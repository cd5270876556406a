//! Holds a program at a step of its schedule, so that a debugger can look at it.
//!
//! The other threads wait for their turns as always, and the thread of the step waits here. The debugger stops it in
//! [`foresee_at_step`], which is called all the time, and sets [`foresee_held`] to zero; then the program continues.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::sys::{self, Text};

/// How often the debugger can stop the thread.
const PAUSE: u64 = 10_000_000;

static HAS_HELD: AtomicBool = AtomicBool::new(false);

/// One while the program is held.
#[allow(non_upper_case_globals)] // The debugger and its user type it.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
static foresee_held: AtomicU32 = AtomicU32::new(0);

/// Where the debugger stops the thread of the step.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
#[inline(never)]
extern "C" fn foresee_at_step() {
    // SAFETY: no instruction; otherwise calls without an effect would be left out.
    unsafe { core::arch::asm!("", options(nomem, nostack, preserves_flags)) };
}

/// Whether the program has not been held before; it is held once.
pub(super) fn is_first() -> bool {
    !HAS_HELD.swap(true, Ordering::Relaxed)
}

/// Gives a thread of this process a name for the debugger.
pub(super) fn name(tid: u32, name: &[u8]) {
    const WRITE: usize = 1;
    const WRITE_ONLY: usize = 1;
    let mut path = Text::<64>::new();
    path.push(b"/proc/self/task/").number(u64::from(tid)).push(b"/comm");
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    // SAFETY: the path is a C string, and the name has that many bytes.
    unsafe {
        let flags = WRITE_ONLY | sys::O_CLOEXEC;
        let file = sys::syscall!(sys::OPENAT, -100isize, path.as_ptr(), flags, 0);
        if file >= 0 {
            sys::syscall!(WRITE, file, name.as_ptr(), length);
            sys::syscall!(sys::CLOSE, file);
        }
    }
}

/// Waits until the debugger lets the program continue.
pub(super) fn until_released() {
    foresee_held.store(1, Ordering::SeqCst);
    loop {
        foresee_at_step();
        if foresee_held.load(Ordering::SeqCst) == 0 {
            return;
        }
        sys::sleep(PAUSE);
    }
}
