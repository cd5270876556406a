//! The program as a whole: its beginning, its children, its end.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::next::real;
use super::{
    access, alloc, callers, config, ending, enter, explore, gate, leave, log, modules, queue,
    shadow, signals, sys, thread, threads, token,
};
use crate::exploring::beyond;

const UNKNOWN: u32 = 0;
const STARTING: u32 = 1;
const RECORDED: u32 = 2;
pub(super) const NOT_RECORDED: u32 = 3;

pub(super) static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
/// Whether the current fork is that of a recorded process.
static FORKING: AtomicBool = AtomicBool::new(false);

/// Whether this program is recorded; the first call begins the recording.
#[inline]
pub(super) fn is_recorded() -> bool {
    match STATE.load(Ordering::Acquire) {
        RECORDED => true,
        UNKNOWN => begin(),
        _ => false,
    }
}

/// A copy of the runtime that another copy has replaced returns a different value.
#[cfg_attr(foresee_object, unsafe(no_mangle))]
extern "C" fn foresee_runtime() -> usize {
    (&raw const STATE) as usize
}

#[cold]
fn begin() -> bool {
    // Meanwhile, only libc, called from here, or a second thread of a program that starts threads
    // before it is linked can get here; neither is recorded.
    if STATE.compare_exchange(UNKNOWN, STARTING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return STATE.load(Ordering::Acquire) == RECORDED;
    }
    let _errno = super::Errno::save();
    let is_ours = || {
        // SAFETY: looks up a name, and calls our own function, in this copy or the other.
        unsafe {
            let found = sys::dlsym(sys::RTLD_DEFAULT, c"foresee_runtime".as_ptr() as *const c_char);
            if found.is_null() {
                return true;
            }
            let other: extern "C" fn() -> usize = core::mem::transmute(found);
            other() == (&raw const STATE) as usize
        }
    };
    let error = prepare(is_ours);
    if let Some(error @ 1..) = error {
        log::report_loss(error);
    }
    let ready = error.is_none();
    if ready {
        alloc::prepare();
        callers::prepare();
        modules::read_wishes();
        gate::prepare();
        explore::prepare();
        // SAFETY: registers; plain functions.
        unsafe {
            sys::syscall!(sys::MEMBARRIER, 16, 0, 0);
            sys::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
        }
        config::start();
        signals::prepare();
    }
    STATE.store(if ready { RECORDED } else { NOT_RECORDED }, Ordering::Release);
    if ready {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`.
            unsafe {
                modules::announce(t);
                leave(t);
            }
        }
    }
    ready
}

/// Prepares the recording. Otherwise returns an error number, or zero if nothing is to be recorded.
fn prepare(is_ours: impl FnOnce() -> bool) -> Option<u32> {
    if !config::read() || !is_ours() {
        return Some(0);
    }
    let is_ready = thread::prepare(threads::farewell)
        && threads::prepare()
        && queue::prepare()
        && shadow::prepare();
    if is_ready { log::open(0).err() } else { Some(sys::ENOMEM) }
}

unsafe extern "C" fn before_fork() {
    let t = enter();
    FORKING.store(!t.is_null(), Ordering::Relaxed);
    if !t.is_null() {
        // SAFETY: in a hook of `t`, which lasts until `after_fork`.
        unsafe { access::settle(t) };
        explore::kernel::goes_beyond(beyond::PROCESS);
        log::freeze();
    }
}

unsafe extern "C" fn after_fork() {
    if FORKING.load(Ordering::Relaxed) {
        log::thaw();
        // SAFETY: ends the hook begun by `before_fork`.
        unsafe { leave(thread::current()) };
    }
}

unsafe extern "C" fn in_child() {
    if !FORKING.load(Ordering::Relaxed) {
        return;
    }
    // Never write to the parent's log, even if something fails below.
    config::stop();
    gate::off();
    explore::off();
    log::thaw();
    token::start_over();
    thread::start_over();
    let t = thread::allocate();
    // SAFETY: the child's only thread; while it is busy, what is called here is not recorded.
    let parent = unsafe {
        (*t).busy.store(1, Ordering::Relaxed);
        thread::set_current(t);
        sys::syscall!(110) as u32
    };
    threads::start_over();
    shadow::start_over();
    modules::start_over();
    ending::start_over();
    if let Err(error) = log::open(parent) {
        return log::report_loss(error);
    }
    config::start();
    if !threads::begin(t).is_null() {
        // SAFETY: in a hook of `t`.
        unsafe {
            modules::announce(t);
            leave(t);
        }
    }
}

/// Runs when the program is loaded, before or after its other constructors.
extern "C" fn start() {
    is_recorded();
}

/// Runs when the program ends by itself.
pub(super) extern "C" fn end() {
    settle();
    log::set_state(1);
}

fn settle() {
    if STATE.load(Ordering::Acquire) == RECORDED {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`.
            unsafe {
                access::settle(t);
                // Modules that were loaded since and have no hooks.
                modules::announce(t);
                token::tally(t);
                leave(t);
            }
        }
    }
}

#[cfg(foresee_object)]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Runs when the program ends by itself, before the libraries' destructors.
extern "C" fn end_of_program() {
    end();
    super::openmp::retire();
}

#[cfg(foresee_object)]
#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end_of_program;

macro_rules! execs {
    ($($name:ident($($arg:ident),*);)*) => { $(
        #[cfg_attr(foresee_object, unsafe(no_mangle))]
        extern "C" fn $name($($arg: *const c_void),*) -> c_int {
            // The child of a `vfork` shares its parent's memory.
            let is_ours = log::is_ours();
            if is_ours {
                settle();
                explore::kernel::goes_beyond(beyond::PROCESS);
                log::set_state(4);
                log::note_successor();
            }
            let out = real!($name($($arg => *const c_void),*) -> c_int);
            if is_ours {
                log::set_state(0);
            }
            out
        }
    )* };
}

execs! {
    execve(path, arguments, environment);
    execv(path, arguments);
    execvp(path, arguments);
    execvpe(path, arguments, environment);
    fexecve(file, arguments, environment);
}
