//! Signal handlers.
//!
//! A signal that arrives while its thread is in a hook is deferred until the end of the hook,
//! unless the access itself caused it (SIGSEGV and the like). Handlers are the thread's own code
//! and are recorded as such.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering, compiler_fence};

use super::next::real;
use super::thread::{self, Pending, Thread};
use super::{config, hook, log, process, sys, token};
use crate::format::last;

impl Action {
    const DEFAULT: Action = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
}

/// libc's `struct sigaction` on this machine.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

type Handler = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void);

/// The signals of instructions that fault: SIGILL, SIGBUS, SIGFPE and SIGSEGV.
const FAULTS: [c_int; 4] = [4, 7, 8, 11];

const SIGNALS: usize = 65;
const SA_ONSTACK: c_int = 0x0800_0000;
const SA_SIGINFO: c_int = 4;
const SA_RESETHAND: c_int = 0x8000_0000_u32 as c_int;
const SA_RESTART: c_int = 0x1000_0000;
const SIG_ERR: usize = usize::MAX;

/// The program's handlers and their flags.
static HANDLERS: [[AtomicUsize; 2]; SIGNALS] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; SIGNALS];

/// The data of the latest deferred signal of each kind.
struct Information(UnsafeCell<[[u64; 16]; SIGNALS]>);
// SAFETY: a later signal of the same kind may replace an earlier one, as in the kernel.
unsafe impl Sync for Information {}
static INFORMATION: Information = Information(UnsafeCell::new([[0; 16]; SIGNALS]));

/// libc's function.
fn set_plainly(signal: c_int, new: *const Action, old: *mut Action) -> c_int {
    real!(sigaction(signal => c_int, new => *const Action, old => *mut Action) -> c_int)
}

/// Arranges for fatal faults to be recorded.
pub(super) fn prepare() {
    for signal in FAULTS {
        let (mut old, new) = (Action::DEFAULT, noting_faults());
        // Only the default action is replaced.
        if set_plainly(signal, core::ptr::null(), &mut old) == 0 && old.handler == 0 {
            set_plainly(signal, &new, core::ptr::null_mut());
        }
    }
}

fn noting_faults() -> Action {
    let handler: Handler = fault;
    Action { handler: handler as usize, flags: SA_SIGINFO | SA_ONSTACK, ..Action::DEFAULT }
}

/// The indices of stack and instruction pointer in the kernel's description of an interrupted
/// thread.
const RSP: usize = 20;
const RIP: usize = 21;

/// Records where the fault happened, and lets it happen again without our handler.
unsafe extern "C" fn fault(signal: c_int, information: *mut c_void, context: *mut c_void) {
    let t = thread::current();
    // SAFETY: the kernel's arguments; the thread's own state.
    unsafe {
        let id = if t.is_null() { 0 } else { (*t).id };
        let at = context.cast::<usize>().add(RIP).read();
        log::note_last(last::FAULT, at + 1, signal as u64, id);
        log::note_stack(context.cast::<*const u64>().add(RSP).read());
        set_plainly(signal, &Action::DEFAULT, core::ptr::null_mut());
        // A signal that was sent does not occur again by itself.
        if information.cast::<c_int>().add(2).read() <= 0 {
            sys::syscall!(234, sys::process_id(), sys::thread_id(), signal);
        }
    }
}

hook! {
    sigaction => set_action, "rcx";
    signal => set_handler, "rdx";
}

extern "C" fn set_action(signal: c_int, new: *const Action, old: *mut Action, _pc: usize) -> c_int {
    let set = |new, old| set_plainly(signal, new, old);
    let Some(mine) = usize::try_from(signal).ok().and_then(|s| HANDLERS.get(s)) else {
        return set(new, old);
    };
    if !process::is_recorded() {
        return set(new, old);
    }
    // SAFETY: the program's own structures, which outlive the call.
    unsafe {
        let before = [mine[0].load(Ordering::Relaxed), mine[1].load(Ordering::Relaxed)];
        let mut ours = core::ptr::null();
        let mut copy;
        if !new.is_null() {
            copy = *new;
            // 0 is the default, 1 ignores the signal.
            if copy.handler > 1 {
                log::note_handler();
                mine[1].store(copy.flags as usize, Ordering::Relaxed);
                mine[0].store(copy.handler, Ordering::Relaxed);
                let handler: Handler = arrive;
                copy.handler = handler as usize;
                copy.flags |= SA_SIGINFO;
            }
            if copy.handler == 0 && FAULTS.contains(&signal) {
                copy = noting_faults();
            }
            ours = &raw const copy;
        }
        let out = set(ours, old);
        let handler: Handler = fault;
        if out == 0 && !old.is_null() && (*old).handler == handler as usize {
            ((*old).handler, (*old).flags) = (0, 0);
        }
        let handler: Handler = arrive;
        if out == 0 && !old.is_null() && (*old).handler == handler as usize {
            (*old).handler = before[0];
            (*old).flags = before[1] as c_int;
        }
        out
    }
}

extern "C" fn set_handler(signal: c_int, handler: usize, pc: usize) -> usize {
    if !process::is_recorded() {
        return real!(signal(signal => c_int, handler => usize) -> usize);
    }
    let new = Action { handler, mask: [0; 16], flags: SA_RESTART, restorer: 0 };
    let mut old = Action { handler: 0, ..new };
    if set_action(signal, &new, &mut old, pc) == 0 { old.handler } else { SIG_ERR }
}

/// The kernel calls this instead of every handler.
unsafe extern "C" fn arrive(signal: c_int, information: *mut c_void, context: *mut c_void) {
    let t = thread::current();
    // SAFETY: the kernel's arguments; the thread's own state.
    unsafe {
        if t.is_null() {
            return call(signal, information, context);
        }
        let busy = (*t).busy.load(Ordering::Relaxed);
        let by_itself = matches!(signal, 4 | 5 | 7 | 8 | 11 | 31);
        let is_in_hook = matches!(busy, 1 | super::IN_LIBC | super::IN_LOADER);
        if is_in_hook && !by_itself {
            (*INFORMATION.0.get())[signal as usize] = information.cast::<[u64; 16]>().read();
            (*t).signals |= 1 << (signal - 1);
            return;
        }
        // The handler's hooks must not assume that the announced store, or the wait, that it interrupts is over.
        let pending = apart(t, || core::mem::replace(&mut (*t).pending, Pending::NONE));
        let waiting = core::mem::take(&mut (*t).waiting);
        // A thread whose end is recorded is no longer recorded; all others are.
        let is_recorded = is_in_hook || busy == super::IN_LIBRARY;
        if is_recorded {
            (*t).busy.store(0, Ordering::Release);
        }
        super::kernel::signal_arrived();
        call(signal, information, context);
        if is_recorded {
            (*t).busy.store(busy, Ordering::Release);
        }
        super::access::settle_quietly(t);
        (*t).waiting = waiting;
        if pending.size != 0 {
            apart(t, || {
                (*t).pending = pending;
                (*t).inexact = !config::free_running() && !token::is_held_by(t);
            });
            if busy == 0 {
                super::leave(t);
            }
        }
    }
}

/// Acts on the state of the thread `t`, the caller, while no other thread that takes the token from it does. Signals that
/// arrive meanwhile wait until the end of a hook.
unsafe fn apart<R>(t: *mut Thread, act: impl FnOnce() -> R) -> R {
    // SAFETY: by the caller's promise.
    unsafe {
        let busy = (*t).busy.load(Ordering::Relaxed);
        if busy != 0 {
            return act();
        }
        // As in `enter`.
        (*t).busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        if !token::is_held_by(t) {
            token::let_takers_finish();
        }
        let out = act();
        compiler_fence(Ordering::SeqCst);
        (*t).busy.store(0, Ordering::Release);
        out
    }
}

unsafe fn call(signal: c_int, information: *mut c_void, context: *mut c_void) {
    let mine = &HANDLERS[signal as usize];
    let flags = mine[1].load(Ordering::Relaxed) as c_int;
    let handler = match flags & SA_RESETHAND {
        0 => mine[0].load(Ordering::Relaxed),
        _ => mine[0].swap(0, Ordering::Relaxed),
    };
    if handler > 1 {
        // SAFETY: the program set this handler; one without SA_SIGINFO reads only its first argument.
        unsafe {
            let handler: Handler = core::mem::transmute(handler);
            handler(signal, information, context);
        }
    }
}

/// Runs the handlers of deferred signals.
///
/// # Safety
/// The caller is `t`, at the end of a hook.
#[cold]
#[inline(never)]
pub(super) unsafe fn deliver(t: *mut Thread) {
    // SAFETY: the thread's own state.
    unsafe {
        while (*t).signals != 0 {
            let signal = (*t).signals.trailing_zeros() + 1;
            (*t).signals &= (*t).signals - 1;
            let mut information = (*INFORMATION.0.get())[signal as usize];
            let mut context = [0u64; 128];
            arrive(signal as c_int, information.as_mut_ptr().cast(), context.as_mut_ptr().cast());
        }
    }
}
