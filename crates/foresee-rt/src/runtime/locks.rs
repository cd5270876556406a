//! Mutexes, read-write locks and spin locks.
//!
//! An acquire is recorded after it happened, and a release before it happens, so that the log never
//! shows two holders. To acquire a lock, a thread first tries it while it holds the token, which
//! usually succeeds; otherwise it gives up the token and blocks as usual.

use core::ffi::{c_int, c_void};

use super::next::real;
use super::thread::Thread;
use super::{access, blocking, clocks, enter, explore, gate, hook, leave, log, sync};
use crate::exploring;
use crate::format::{Tag, how};

pub(super) const EBUSY: c_int = 16;
pub(super) const ETIMEDOUT: c_int = 110;
/// The lock was acquired, and its last owner died while holding it.
const EOWNERDEAD: c_int = 130;

type Lock = *mut c_void;

// The kinds of locks.
/// pthread's and C11's mutexes.
pub(super) const MUTEX: u8 = 0;
/// Read-write locks.
const RWLOCK: u8 = 1;
/// Spin locks.
const SPIN: u8 = 2;
/// Those of stdio's files.
const FILE: u8 = 3;
/// Others, which are not controlled.
pub(super) const OTHER: u8 = 4;

/// Whether a lock has room for a clock.
const fn carries(kind: u8) -> bool {
    kind <= RWLOCK
}

/// What a lock is like, for an exploration.
fn likeness(kind: u8, lock: Lock) -> u8 {
    match kind {
        MUTEX => explore::sync::of_mutex(lock),
        RWLOCK => exploring::lock::CHECKING,
        FILE => exploring::lock::RECURSIVE,
        _ => 0,
    }
}

/// How it is taken.
fn manner(tag: Tag, patience: u64) -> u8 {
    let shared = if tag == Tag::AcquireShared { exploring::lock::SHARED } else { 0 };
    shared | if patience & how::TIMED != 0 { exploring::lock::TIMED } else { 0 }
}

/// Whether a call of libc acquired the lock. C11's `thrd_success` is zero as well.
fn took(result: c_int) -> bool {
    result == 0 || result == EOWNERDEAD
}

/// Whether the last owner died, as it is recorded.
fn died(result: c_int) -> u64 {
    if result == EOWNERDEAD { how::OWNER_DIED } else { 0 }
}

/// Whether a lock was to be shared, as it is recorded.
fn shared(tag: Tag) -> u64 {
    if tag == Tag::AcquireShared { how::SHARED } else { 0 }
}

/// The properties of a mutex, recorded with each acquire.
pub(super) fn of_mutex(lock: Lock) -> u64 {
    // SAFETY: libc keeps the kind of a mutex there; static initialisers make it part of the binary interface.
    let kind = unsafe { lock.cast::<u32>().add(4).read_volatile() };
    let foreign = if kind & 128 != 0 { how::FOREIGN } else { 0 };
    foreign | if kind & 16 != 0 { how::ROBUST } else { 0 }
}

/// The same for a read-write lock.
fn of_rwlock(lock: Lock) -> u64 {
    // SAFETY: as above.
    if unsafe { lock.cast::<u32>().add(7).read_volatile() } != 0 { how::FOREIGN } else { 0 }
}

/// Acquires a lock: `attempt` does not wait, `wait` does, forever or, with `how::TIMED`, for a
/// limited time. Locks that are too small for a clock carry none.
pub(super) fn take<const KIND: u8>(
    lock: Lock,
    tag: Tag,
    patience: u64,
    pc: usize,
    attempt: impl FnOnce() -> c_int,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return wait();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        if explore::is_on() && KIND != OTHER {
            let sub = likeness(KIND, lock) | manner(tag, patience);
            let note = |t| sync(t, tag, pc, lock as usize, patience);
            return explore::sync::take(t, lock, sub, pc, attempt, wait, note);
        }
        // The failure is recorded when the thread has the token again. By then the lock may be free, so it is not even tried.
        if patience & how::TIMED != 0 && gate::is_to_fail(t, pc) {
            sync(t, Tag::TryFailed, pc, lock as usize, shared(tag));
            leave(t);
            return ETIMEDOUT;
        }
        let mut out = attempt();
        if !took(out) {
            let how = patience | shared(tag);
            log::put_uncounted_at(t, Tag::Request, pc, lock as usize, how);
            gate::blocks(t, Tag::Request, pc, lock as usize);
            // A spinning thread does not sleep, so an endless spin cannot be detected.
            let is_endless = carries(KIND) && patience & (how::TIMED | how::FOREIGN) == 0;
            out = blocking::aside(t, is_endless, wait);
            if enter().is_null() {
                return out;
            }
            if !took(out) {
                blocking::withdraw(t);
            }
        }
        if took(out) {
            gate::got(t, pc);
            took_it::<KIND>(t, lock, tag, pc, died(out) | patience);
        } else if out == ETIMEDOUT || out == super::c11::TIMED_OUT {
            sync(t, Tag::TryFailed, pc, lock as usize, shared(tag));
        }
        leave(t);
        out
    }
}

/// Records that a lock was acquired, and how.
unsafe fn took_it<const KIND: u8>(t: *mut Thread, lock: Lock, tag: Tag, pc: usize, value: u64) {
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, tag, pc, lock as usize, value);
        if carries(KIND) {
            if value & how::OWNER_DIED != 0 {
                clocks::made(t, lock as usize);
            }
            clocks::taken(t, lock as usize, tag == Tag::Acquire);
        }
    }
}

/// Tries to acquire a lock.
pub(super) fn try_take<const KIND: u8>(
    lock: Lock,
    tag: Tag,
    about: u64,
    pc: usize,
    attempt: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return attempt();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        if explore::is_on() && KIND != OTHER {
            let sub = likeness(KIND, lock) | manner(tag, 0) | exploring::lock::TRY;
            let note = |t| sync(t, tag, pc, lock as usize, how::TRIED | about);
            return explore::sync::take(t, lock, sub, pc, attempt, || EBUSY, note);
        }
        // Who held the lock then need not be known: libc takes it again for a thread before that thread's wait is over.
        let is_to_fail = KIND != OTHER && gate::is_to_fail(t, pc);
        let out = if is_to_fail { EBUSY } else { attempt() };
        if took(out) {
            took_it::<KIND>(t, lock, tag, pc, died(out) | how::TRIED | about);
        } else if out == EBUSY || out == super::c11::BUSY {
            sync(t, Tag::TryFailed, pc, lock as usize, shared(tag));
        }
        leave(t);
        out
    }
}

/// Releases a lock. If that fails, the record is wrong, and so is the program: it held no lock; the
/// host ignores it.
pub(super) fn give<const KIND: u8>(lock: Lock, pc: usize, unlock: impl FnOnce() -> c_int) -> c_int {
    let t = enter();
    if t.is_null() {
        return unlock();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        if explore::is_on() && KIND != OTHER {
            return explore::sync::give(t, lock, likeness(KIND, lock), pc, unlock);
        }
        sync(t, Tag::Release, pc, lock as usize, 0);
        let out = unlock();
        if carries(KIND) && out == 0 {
            clocks::given(t, lock as usize, false);
        }
        leave(t);
        out
    }
}

/// Initialises a lock.
pub(super) fn make(lock: Lock, pc: usize, init: impl FnOnce() -> c_int) -> c_int {
    let t = enter();
    if t.is_null() {
        return init();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, Tag::LockInit, pc, lock as usize, 0);
        clocks::made(t, lock as usize);
        if explore::is_on() {
            explore::sync::make(lock, 0);
        }
        let out = init();
        leave(t);
        out
    }
}

/// Records a step and performs it, with no other thread in between.
pub(super) fn note(
    tag: Tag,
    object: *mut c_void,
    value: u64,
    pc: usize,
    act: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        sync(t, tag, pc, object as usize, value);
        let out = act();
        leave(t);
        out
    }
}

hook! {
    pthread_mutex_init => mutex_init, "rdx";
    pthread_mutex_lock => mutex_lock, "rsi";
    pthread_mutex_trylock => mutex_trylock, "rsi";
    pthread_mutex_timedlock => mutex_timedlock, "rdx";
    pthread_mutex_clocklock => mutex_clocklock, "rcx";
    pthread_mutex_unlock => mutex_unlock, "rsi";
    pthread_rwlock_init => rwlock_init, "rdx";
    pthread_rwlock_rdlock => rwlock_rdlock, "rsi";
    pthread_rwlock_tryrdlock => rwlock_tryrdlock, "rsi";
    pthread_rwlock_timedrdlock => rwlock_timedrdlock, "rdx";
    pthread_rwlock_clockrdlock => rwlock_clockrdlock, "rcx";
    pthread_rwlock_wrlock => rwlock_wrlock, "rsi";
    pthread_rwlock_trywrlock => rwlock_trywrlock, "rsi";
    pthread_rwlock_timedwrlock => rwlock_timedwrlock, "rdx";
    pthread_rwlock_clockwrlock => rwlock_clockwrlock, "rcx";
    pthread_rwlock_unlock => rwlock_unlock, "rsi";
    pthread_spin_init => spin_init, "rdx";
    pthread_spin_lock => spin_lock, "rsi";
    pthread_spin_trylock => spin_trylock, "rsi";
    pthread_spin_unlock => spin_unlock, "rsi";
    flockfile => file_lock, "rsi";
    ftrylockfile => file_trylock, "rsi";
    funlockfile => file_unlock, "rsi";
}

extern "C" fn mutex_init(lock: Lock, attributes: usize, pc: usize) -> c_int {
    make(lock, pc, || real!(pthread_mutex_init(lock => Lock, attributes => usize) -> c_int))
}

fn mutex_attempt(lock: Lock) -> c_int {
    real!(pthread_mutex_trylock(lock => Lock) -> c_int)
}

extern "C" fn mutex_lock(lock: Lock, pc: usize) -> c_int {
    take::<MUTEX>(
        lock,
        Tag::Acquire,
        of_mutex(lock),
        pc,
        || mutex_attempt(lock),
        || real!(pthread_mutex_lock(lock => Lock) -> c_int),
    )
}

extern "C" fn mutex_trylock(lock: Lock, pc: usize) -> c_int {
    try_take::<MUTEX>(lock, Tag::Acquire, of_mutex(lock), pc, || mutex_attempt(lock))
}

extern "C" fn mutex_timedlock(lock: Lock, until: usize, pc: usize) -> c_int {
    let wait = || real!(pthread_mutex_timedlock(lock => Lock, until => usize) -> c_int);
    take::<MUTEX>(lock, Tag::Acquire, how::TIMED | of_mutex(lock), pc, || mutex_attempt(lock), wait)
}

extern "C" fn mutex_clocklock(lock: Lock, clock: c_int, until: usize, pc: usize) -> c_int {
    let wait =
        || real!(pthread_mutex_clocklock(lock => Lock, clock => c_int, until => usize) -> c_int);
    take::<MUTEX>(lock, Tag::Acquire, how::TIMED | of_mutex(lock), pc, || mutex_attempt(lock), wait)
}

extern "C" fn mutex_unlock(lock: Lock, pc: usize) -> c_int {
    give::<MUTEX>(lock, pc, || real!(pthread_mutex_unlock(lock => Lock) -> c_int))
}

extern "C" fn rwlock_init(lock: Lock, attributes: usize, pc: usize) -> c_int {
    make(lock, pc, || real!(pthread_rwlock_init(lock => Lock, attributes => usize) -> c_int))
}

fn read_attempt(lock: Lock) -> c_int {
    real!(pthread_rwlock_tryrdlock(lock => Lock) -> c_int)
}

fn write_attempt(lock: Lock) -> c_int {
    real!(pthread_rwlock_trywrlock(lock => Lock) -> c_int)
}

extern "C" fn rwlock_rdlock(lock: Lock, pc: usize) -> c_int {
    take::<RWLOCK>(
        lock,
        Tag::AcquireShared,
        of_rwlock(lock),
        pc,
        || read_attempt(lock),
        || real!(pthread_rwlock_rdlock(lock => Lock) -> c_int),
    )
}

extern "C" fn rwlock_tryrdlock(lock: Lock, pc: usize) -> c_int {
    try_take::<RWLOCK>(lock, Tag::AcquireShared, 0, pc, || read_attempt(lock))
}

extern "C" fn rwlock_timedrdlock(lock: Lock, until: usize, pc: usize) -> c_int {
    let wait = || real!(pthread_rwlock_timedrdlock(lock => Lock, until => usize) -> c_int);
    take::<RWLOCK>(lock, Tag::AcquireShared, how::TIMED, pc, || read_attempt(lock), wait)
}

extern "C" fn rwlock_clockrdlock(lock: Lock, clock: c_int, until: usize, pc: usize) -> c_int {
    let wait =
        || real!(pthread_rwlock_clockrdlock(lock => Lock, clock => c_int, until => usize) -> c_int);
    take::<RWLOCK>(lock, Tag::AcquireShared, how::TIMED, pc, || read_attempt(lock), wait)
}

extern "C" fn rwlock_wrlock(lock: Lock, pc: usize) -> c_int {
    take::<RWLOCK>(
        lock,
        Tag::Acquire,
        of_rwlock(lock),
        pc,
        || write_attempt(lock),
        || real!(pthread_rwlock_wrlock(lock => Lock) -> c_int),
    )
}

extern "C" fn rwlock_trywrlock(lock: Lock, pc: usize) -> c_int {
    try_take::<RWLOCK>(lock, Tag::Acquire, 0, pc, || write_attempt(lock))
}

extern "C" fn rwlock_timedwrlock(lock: Lock, until: usize, pc: usize) -> c_int {
    let wait = || real!(pthread_rwlock_timedwrlock(lock => Lock, until => usize) -> c_int);
    take::<RWLOCK>(lock, Tag::Acquire, how::TIMED, pc, || write_attempt(lock), wait)
}

extern "C" fn rwlock_clockwrlock(lock: Lock, clock: c_int, until: usize, pc: usize) -> c_int {
    let wait =
        || real!(pthread_rwlock_clockwrlock(lock => Lock, clock => c_int, until => usize) -> c_int);
    take::<RWLOCK>(lock, Tag::Acquire, how::TIMED, pc, || write_attempt(lock), wait)
}

extern "C" fn rwlock_unlock(lock: Lock, pc: usize) -> c_int {
    give::<RWLOCK>(lock, pc, || real!(pthread_rwlock_unlock(lock => Lock) -> c_int))
}

extern "C" fn spin_init(lock: Lock, shared: c_int, pc: usize) -> c_int {
    note(
        Tag::LockInit,
        lock,
        0,
        pc,
        || real!(pthread_spin_init(lock => Lock, shared => c_int) -> c_int),
    )
}

fn spin_attempt(lock: Lock) -> c_int {
    real!(pthread_spin_trylock(lock => Lock) -> c_int)
}

extern "C" fn spin_lock(lock: Lock, pc: usize) -> c_int {
    take::<SPIN>(
        lock,
        Tag::Acquire,
        0,
        pc,
        || spin_attempt(lock),
        || real!(pthread_spin_lock(lock => Lock) -> c_int),
    )
}

extern "C" fn spin_trylock(lock: Lock, pc: usize) -> c_int {
    try_take::<SPIN>(lock, Tag::Acquire, 0, pc, || spin_attempt(lock))
}

extern "C" fn spin_unlock(lock: Lock, pc: usize) -> c_int {
    give::<SPIN>(lock, pc, || real!(pthread_spin_unlock(lock => Lock) -> c_int))
}

/// The locks of stdio's files. When stdio itself acquires them, that is not recorded and orders nothing.
fn file_attempt(file: Lock) -> c_int {
    if real!(ftrylockfile(file => Lock) -> c_int) == 0 { 0 } else { EBUSY }
}

extern "C" fn file_lock(file: Lock, pc: usize) {
    take::<FILE>(
        file,
        Tag::Acquire,
        0,
        pc,
        || file_attempt(file),
        || {
            real!(flockfile(file => Lock));
            0
        },
    );
}

extern "C" fn file_trylock(file: Lock, pc: usize) -> c_int {
    try_take::<FILE>(file, Tag::Acquire, 0, pc, || file_attempt(file))
}

extern "C" fn file_unlock(file: Lock, pc: usize) {
    give::<FILE>(file, pc, || {
        real!(funlockfile(file => Lock));
        0
    });
}
