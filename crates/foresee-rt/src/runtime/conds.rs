//! Condition variables.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;

use super::locks::{ETIMEDOUT, note, of_mutex};
use super::next::real;
use super::thread::Thread;
use super::{blocking, clocks, enter, explore, gate, hook, leave, log, sync, sys};
use crate::format::{Tag, how};

type Object = *mut c_void;

/// A time to wait until: the clock, and a `struct timespec`.
type Until = (c_int, usize);

/// Waits with `wait`, which releases the lock and acquires it again, until a time if there is one.
pub(super) fn wait_on(
    cond: Object,
    lock: Object,
    until: Option<Until>,
    pc: usize,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return wait();
    }
    let is_timed = until.is_some();
    if explore::is_on() {
        // SAFETY: in a hook of `t`.
        return unsafe { explore::sync::wait_on(t, cond, lock, is_timed, pc) };
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, Tag::WaitBegin, pc, cond as usize, lock as u64 | u64::from(is_timed));
        (*t).gave = clocks::given(t, lock as usize, true);
        // A signal handler or the end of the thread may come before `wait` returns.
        (*t).waiting = [cond as usize, lock as usize];
        let is_endless = !is_timed && of_mutex(lock) & how::FOREIGN == 0;
        if gate::is_replaying() {
            return wait_in_replay(t, cond, lock, until, is_endless, pc);
        }
        let out = blocking::aside(t, is_endless, wait);
        let waiting = core::mem::take(&mut (*t).waiting);
        if !enter().is_null() {
            if waiting[0] != 0 {
                let late = u64::from(is_timed && is_late(out));
                sync(t, Tag::WaitEnd, pc, cond as usize, lock as u64 | late);
                if (*t).gave {
                    clocks::taken(t, lock as usize, true);
                }
            }
            leave(t);
        }
        out
    }
}

/// Whether a wait of pthread's or of C11's ended because its time was over.
fn is_late(out: c_int) -> bool {
    out == ETIMEDOUT || out == super::c11::TIMED_OUT
}

/// Waits while a schedule is replayed. libc would acquire the lock again whenever it likes, and wake whichever thread it
/// likes. So this is done here: the wait is over when a signal has chosen the thread or, while the schedule is followed, when
/// it says so; it may, because waits may end without a signal.
unsafe fn wait_in_replay(
    t: *mut Thread,
    cond: Object,
    lock: Object,
    until: Option<Until>,
    is_endless: bool,
    pc: usize,
) -> c_int {
    const PAUSE: u64 = 20_000_000;
    let relock = || real!(pthread_mutex_lock(lock => Object) -> c_int);
    let attempt = || real!(pthread_mutex_trylock(lock => Object) -> c_int);
    let unlock = || real!(pthread_mutex_unlock(lock => Object) -> c_int);
    let mut late = 0;
    // SAFETY: in a hook of `t`, after the beginning of the wait was recorded.
    unsafe {
        (*t).woken.store(0, Ordering::SeqCst);
        (*t).sleeps_on.store(cond as usize, Ordering::SeqCst);
        unlock();
        blocking::aside(t, is_endless, || {
            while (*t).woken.load(Ordering::SeqCst) == 0 {
                if gate::is_following() && gate::wanted() == (*t).id {
                    late = u64::from(gate::is_to_fail(t, pc));
                    break;
                }
                if !gate::is_following() && until.is_some_and(is_over) {
                    late = 1;
                    break;
                }
                sys::futex_wait(&(*t).woken, 0, PAUSE);
            }
        });
        (*t).sleeps_on.store(0, Ordering::SeqCst);
        (*t).waiting = [0; 2];
        if enter().is_null() {
            relock();
            return if late != 0 { ETIMEDOUT } else { 0 };
        }
        if attempt() != 0 {
            gate::blocks(t, Tag::WaitEnd, pc, lock as usize);
            super::step_aside(t);
            relock();
            if enter().is_null() {
                return if late != 0 { ETIMEDOUT } else { 0 };
            }
        }
        sync(t, Tag::WaitEnd, pc, cond as usize, lock as u64 | late);
        if (*t).gave {
            clocks::taken(t, lock as usize, true);
        }
        leave(t);
        if late != 0 { ETIMEDOUT } else { 0 }
    }
}

/// Whether a time has come, on the program's clock.
fn is_over((clock, until): Until) -> bool {
    const MONOTONIC: c_int = 1;
    let now = if clock == MONOTONIC { sys::ticks() } else { sys::now() };
    // SAFETY: the program's own structure.
    let [seconds, rest] = unsafe { *(until as *const [u64; 2]) };
    now + gate::ahead() >= seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// Wakes one waiting thread, or all.
pub(super) fn notify(cond: Object, all: bool, pc: usize, act: impl FnOnce() -> c_int) -> c_int {
    if explore::is_on() {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`.
            return unsafe { explore::sync::notify(t, cond, all, pc) };
        }
    }
    note(if all { Tag::NotifyAll } else { Tag::Notify }, cond, 0, pc, || {
        if gate::is_replaying() {
            gate::notify(cond as usize, all);
        }
        act()
    })
}

/// Handles a hook during a wait: the thread was cancelled there and holds the lock again, or it runs a signal handler.
///
/// # Safety
/// In a hook of `t`.
#[cold]
pub(super) unsafe fn cut_off(t: *mut Thread) {
    // SAFETY: in a hook of `t`.
    unsafe {
        let [cond, lock] = core::mem::take(&mut (*t).waiting);
        log::put(t, Tag::WaitEnd as u8, 0, cond, lock as u64);
        if (*t).gave {
            clocks::taken(t, lock, true);
        }
    }
}

hook! {
    pthread_cond_init => init, "rdx";
    pthread_cond_wait => wait, "rdx";
    pthread_cond_timedwait => timed_wait, "rcx";
    pthread_cond_clockwait => clock_wait, "r8";
    pthread_cond_signal => signal, "rsi";
    pthread_cond_broadcast => broadcast, "rsi";
}

extern "C" fn init(cond: Object, attributes: usize, pc: usize) -> c_int {
    note(
        Tag::CondInit,
        cond,
        0,
        pc,
        || real!(pthread_cond_init(cond => Object, attributes => usize) -> c_int),
    )
}

extern "C" fn wait(cond: Object, lock: Object, pc: usize) -> c_int {
    wait_on(
        cond,
        lock,
        None,
        pc,
        || real!(pthread_cond_wait(cond => Object, lock => Object) -> c_int),
    )
}

/// The clock of a condition's timeouts: libc keeps it in a bit of the tenth word.
fn clock_of(cond: Object) -> c_int {
    // SAFETY: the word belongs to the object in libc's layout on this machine.
    c_int::from(unsafe { cond.cast::<u32>().add(9).read_volatile() } & 2 != 0)
}

extern "C" fn timed_wait(cond: Object, lock: Object, until: usize, pc: usize) -> c_int {
    wait_on(
        cond,
        lock,
        Some((clock_of(cond), until)),
        pc,
        || real!(pthread_cond_timedwait(cond => Object, lock => Object, until => usize) -> c_int),
    )
}

extern "C" fn clock_wait(
    cond: Object,
    lock: Object,
    clock: c_int,
    until: usize,
    pc: usize,
) -> c_int {
    wait_on(
        cond,
        lock,
        Some((clock, until)),
        pc,
        || real!(pthread_cond_clockwait(cond => Object, lock => Object, clock => c_int, until => usize) -> c_int),
    )
}

extern "C" fn signal(cond: Object, pc: usize) -> c_int {
    notify(cond, false, pc, || real!(pthread_cond_signal(cond => Object) -> c_int))
}

extern "C" fn broadcast(cond: Object, pc: usize) -> c_int {
    notify(cond, true, pc, || real!(pthread_cond_broadcast(cond => Object) -> c_int))
}
