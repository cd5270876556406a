//! Locks, conditions, semaphores, barriers and joins of a program that is explored. Each is let through the gate only when it is
//! possible, so libc's own functions never wait.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU64, Ordering};

use super::super::locks::ETIMEDOUT;
use super::super::next::real;
use super::super::thread::{self, Thread};
use super::super::{leave, sync as record, sys};
use super::{Ask, gate, lost, objects, tell};
use crate::exploring::{TIME_OUT, kind, lock, reason, told};
use crate::format::{Tag, how};

type Object = *mut c_void;

/// What pthread's mutexes are like, from the word in which libc keeps their kind.
pub(in crate::runtime) fn of_mutex(mutex: Object) -> u8 {
    // SAFETY: static initialisers make the word part of the binary interface.
    match unsafe { mutex.cast::<u32>().add(4).read_volatile() } & 3 {
        1 => lock::RECURSIVE,
        2 => lock::CHECKING,
        _ => 0,
    }
}

/// Takes a lock with `attempt`, which does not wait. `refuse` is libc's own way for a thread that has it already.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn take(
    t: *mut Thread,
    object: Object,
    sub: u8,
    pc: usize,
    attempt: impl FnOnce() -> c_int,
    refuse: impl FnOnce() -> c_int,
    note: impl FnOnce(*mut Thread),
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let address = object as usize;
        let is_shared = sub & lock::SHARED != 0;
        let choice = gate(t, Ask { kind: kind::LOCK, sub, pc, address, ..Ask::default() });
        let is_waiting = sub & (lock::TRY | lock::TIMED) == 0;
        let out = if choice == TIME_OUT {
            tell(t, told::TIMED_OUT, [0; 2], false);
            record(t, Tag::TryFailed, pc, address, 0);
            ETIMEDOUT
        } else if objects::is_refused(address, (*t).id, sub) {
            let out = if sub & lock::TRY != 0 { attempt() } else { refuse() };
            tell(t, if sub & lock::TRY != 0 { told::BUSY } else { told::REFUSED }, [0; 2], false);
            out
        } else if objects::admits(address, (*t).id, sub) {
            let out = attempt();
            // 130: the last owner died while it had it.
            if out != 0 && out != 130 {
                lost(reason::LIBC);
            }
            objects::took(address, (*t).id, is_shared);
            tell(t, if is_waiting { told::NOTHING } else { told::GOT }, [0; 2], true);
            note(t);
            out
        } else {
            tell(t, told::BUSY, [0; 2], false);
            record(
                t,
                Tag::TryFailed,
                pc,
                address,
                u64::from(is_shared) * crate::format::how::SHARED,
            );
            attempt_busy(attempt)
        };
        leave(t);
        out
    }
}

/// The result of an attempt that must fail.
fn attempt_busy(attempt: impl FnOnce() -> c_int) -> c_int {
    match attempt() {
        0 => lost(reason::LIBC),
        out => out,
    }
}

/// Gives a lock back.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn give(
    t: *mut Thread,
    object: Object,
    sub: u8,
    pc: usize,
    unlock: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let address = object as usize;
        gate(t, Ask { kind: kind::UNLOCK, sub, pc, address, ..Ask::default() });
        record(t, Tag::Release, pc, address, 0);
        let out = unlock();
        if out == 0 {
            objects::gave(address);
        }
        tell(t, if out == 0 { told::NOTHING } else { told::REFUSED }, [0; 2], out == 0);
        leave(t);
        out
    }
}

/// A lock or a barrier is made.
pub(in crate::runtime) fn make(object: Object, count: u32) {
    objects::make(object as usize, count);
}

/// The number of waits so far, which orders waiters.
static WAITS: AtomicU64 = AtomicU64::new(0);

/// Waits for a condition: two steps.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn wait_on(
    t: *mut Thread,
    condition: Object,
    mutex: Object,
    is_timed: bool,
    pc: usize,
) -> c_int {
    let unlock = || real!(pthread_mutex_unlock(mutex => Object) -> c_int);
    let attempt = || real!(pthread_mutex_trylock(mutex => Object) -> c_int);
    // SAFETY: by the caller's promise.
    unsafe {
        let (address, a, sub) = (condition as usize, [mutex as u64, 0], u8::from(is_timed));
        let ask = Ask { kind: kind::WAIT, sub, pc, address, a, ..Ask::default() };
        gate(t, ask);
        record(t, Tag::WaitBegin, pc, address, mutex as u64 | u64::from(is_timed));
        if unlock() != 0 || !objects::is_owner(mutex as usize, (*t).id) {
            lost(reason::LIBC);
        }
        objects::gave(mutex as usize);
        (*t).ticket = WAITS.fetch_add(1, Ordering::Relaxed) + 1;
        (*t).woken.store(0, Ordering::SeqCst);
        (*t).sleeps_on.store(address, Ordering::SeqCst);
        tell(t, told::NOTHING, [0; 2], true);
        let choice = gate(t, Ask { kind: kind::WAIT_END, ..ask });
        (*t).sleeps_on.store(0, Ordering::SeqCst);
        if attempt() != 0 {
            lost(reason::LIBC);
        }
        objects::took(mutex as usize, (*t).id, false);
        let is_late = choice == TIME_OUT;
        tell(t, if is_late { told::TIMED_OUT } else { told::WOKEN }, [0; 2], !is_late);
        record(t, Tag::WaitEnd, pc, address, mutex as u64 | u64::from(is_late));
        leave(t);
        if is_late { ETIMEDOUT } else { 0 }
    }
}

/// The threads that wait for a condition and have not been woken.
fn waiting(condition: usize) -> impl Iterator<Item = *mut Thread> {
    (1..thread::count()).map(thread::get).filter(move |&u| {
        // SAFETY: threads are never moved.
        unsafe {
            (*u).sleeps_on.load(Ordering::SeqCst) == condition
                && (*u).woken.load(Ordering::SeqCst) == 0
        }
    })
}

/// Their number.
pub(super) fn waiters(condition: usize) -> u32 {
    waiting(condition).count() as u32
}

/// Wakes one waiting thread, or all.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn notify(
    t: *mut Thread,
    condition: Object,
    all: bool,
    pc: usize,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let address = condition as usize;
        let what = if all { kind::BROADCAST } else { kind::SIGNAL };
        let choice = gate(t, Ask { kind: what, pc, address, ..Ask::default() });
        record(t, if all { Tag::NotifyAll } else { Tag::Notify }, pc, address, 0);
        let mut has_woken = false;
        // The waiter that began to wait as the one with this number, of those that are left.
        let ticket = |u: *mut Thread| (*u).ticket;
        let chosen = waiting(address).find(|&u| {
            waiting(address).filter(|&v| ticket(v) < ticket(u)).count() == choice as usize
        });
        for u in waiting(address).filter(|&u| all || Some(u) == chosen) {
            (*u).woken.store(1, Ordering::SeqCst);
            has_woken = true;
        }
        tell(t, told::NOTHING, [0; 2], has_woken);
        leave(t);
        0
    }
}

/// The count of a semaphore, which libc keeps in its first word.
pub(super) fn sem_count(semaphore: usize) -> u32 {
    // SAFETY: a thread is about to use the semaphore.
    unsafe { (semaphore as *const u32).read_volatile() }
}

/// Makes or raises a semaphore, or asks for its count, with `act`.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn semaphore(
    t: *mut Thread,
    what: u8,
    (object, count): (Object, u64),
    pc: usize,
    act: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let address = object as usize;
        gate(t, Ask { kind: what, pc, address, a: [count, 0], ..Ask::default() });
        let tag = if what == kind::SEM_INIT { Tag::SemInit } else { Tag::SemPost };
        record(t, tag, pc, address, count);
        let out = act();
        tell(t, told::NOTHING, [0; 2], true);
        leave(t);
        out
    }
}

/// Lowers a semaphore. `sub` is a patience.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn lower(
    t: *mut Thread,
    object: Object,
    sub: u8,
    pc: usize,
    attempt: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        let address = object as usize;
        let choice = gate(t, Ask { kind: kind::SEM_WAIT, sub, pc, address, ..Ask::default() });
        let is_there = choice != TIME_OUT && sem_count(address) > 0;
        let out = match is_there {
            true => attempt(),
            false => {
                // EAGAIN, or that the time is over.
                *sys::__errno_location() = if choice == TIME_OUT { ETIMEDOUT } else { 11 };
                -1
            }
        };
        if is_there && out != 0 {
            lost(reason::LIBC);
        }
        let what = match (is_there, sub) {
            (true, 0) => told::NOTHING,
            (true, _) => told::GOT,
            _ if choice == TIME_OUT => told::TIMED_OUT,
            _ => told::BUSY,
        };
        tell(t, what, [0; 2], is_there);
        let patience = match sub {
            lock::TRY => how::TRIED,
            lock::TIMED => how::TIMED,
            _ => 0,
        };
        match is_there {
            true => record(t, Tag::SemWait, pc, address, patience),
            false => record(t, Tag::SemFailed, pc, address, 0),
        }
        leave(t);
        out
    }
}

/// A barrier is made.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn make_barrier(
    t: *mut Thread,
    barrier: Object,
    count: u32,
    pc: usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let (address, a) = (barrier as usize, [u64::from(count), 0]);
        gate(t, Ask { kind: kind::BARRIER_INIT, pc, address, a, ..Ask::default() });
        objects::make(address, count);
        tell(t, told::NOTHING, [0; 2], true);
    }
}

/// Comes to a barrier and passes it: two steps.
///
/// # Safety
/// In a hook of `t`, which ends here.
pub(in crate::runtime) unsafe fn meet(t: *mut Thread, barrier: Object, pc: usize) -> c_int {
    /// What libc tells one of the threads.
    const SERIAL: c_int = -1;
    // SAFETY: by the caller's promise.
    unsafe {
        let address = barrier as usize;
        gate(t, Ask { kind: kind::ARRIVE, pc, address, ..Ask::default() });
        record(t, Tag::BarrierArrive, pc, address, 0);
        let (round, is_last) = objects::arrive(address);
        tell(t, if is_last { told::GOT } else { told::BUSY }, [0; 2], true);
        let a = [round, 0];
        gate(t, Ask { kind: kind::PASS, pc, address, a, ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
        record(t, Tag::BarrierLeave, pc, address, 0);
        leave(t);
        if is_last { SERIAL } else { 0 }
    }
}

/// Comes to what is done once. Returns whether this thread must do it.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn begin_once(
    t: *mut Thread,
    address: usize,
    pc: usize,
    is_done: bool,
) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::ONCE_BEGIN, pc, address, ..Ask::default() });
        let is_mine = objects::begin_once(address, (*t).id, is_done);
        tell(t, if is_mine { told::GOT } else { told::BUSY }, [0; 2], is_mine);
        is_mine
    }
}

/// Has done what is done once.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn end_once(t: *mut Thread, address: usize, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::ONCE_END, pc, address, ..Ask::default() });
        objects::end_once(address, true);
        tell(t, told::NOTHING, [0; 2], true);
    }
}

/// Waits for the end of a thread, or looks whether it has ended if it `is_trying`. Returns whether it has.
///
/// # Safety
/// In a hook of `t`.
pub(in crate::runtime) unsafe fn join(
    t: *mut Thread,
    other: u32,
    is_trying: bool,
    pc: usize,
) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let (a, sub) = ([u64::from(other), 0], u8::from(is_trying));
        gate(t, Ask { kind: kind::JOIN, sub, pc, a, ..Ask::default() });
        let other = thread::get(other);
        let has_ended = (*other).life.load(Ordering::SeqCst) == thread::life::ENDED;
        match has_ended {
            true => tell(t, told::VALUE, [(*other).result, 0], true),
            false => tell(t, told::BUSY, [0; 2], false),
        }
        has_ended
    }
}
