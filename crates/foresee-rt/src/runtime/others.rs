//! Barriers, semaphores, and one-time initialisation.

use core::ffi::{c_int, c_void};

use super::locks::note;
use super::next::real;
use super::thread::Thread;
use super::{access, blocking, enter, explore, gate, hook, leave, log, step_aside, sync, thread};
use crate::exploring::{beyond, kind, lock};
use crate::format::{Tag, how};

type Object = *mut c_void;

const EAGAIN: c_int = 11;

hook! {
    pthread_barrier_init => barrier_init, "rcx";
    pthread_barrier_wait => barrier_wait, "rsi";
    sem_init => semaphore_init, "rcx";
    sem_post => semaphore_post, "rsi";
    sem_wait => semaphore_wait, "rsi";
    sem_trywait => semaphore_trywait, "rsi";
    sem_getvalue => semaphore_value, "rdx";
    sem_timedwait => semaphore_timedwait, "rdx";
    sem_clockwait => semaphore_clockwait, "rcx";
    pthread_once => once, "rdx";
}

extern "C" fn barrier_init(barrier: Object, attributes: usize, count: u32, pc: usize) -> c_int {
    if explore::is_on() {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`.
            unsafe {
                explore::sync::make_barrier(t, barrier, count, pc);
                leave(t);
            }
        }
    }
    note(
        Tag::BarrierInit,
        barrier,
        u64::from(count),
        pc,
        || real!(pthread_barrier_init(barrier => Object, attributes => usize, count => u32) -> c_int),
    )
}

extern "C" fn barrier_wait(barrier: Object, pc: usize) -> c_int {
    let wait = || real!(pthread_barrier_wait(barrier => Object) -> c_int);
    let t = enter();
    if t.is_null() {
        return wait();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        if explore::is_on() {
            return explore::sync::meet(t, barrier, pc);
        }
        sync(t, Tag::BarrierArrive, pc, barrier as usize, 0);
        let out = blocking::aside(t, is_private(barrier, 3), wait);
        if !enter().is_null() {
            sync(t, Tag::BarrierLeave, pc, barrier as usize, 0);
            leave(t);
        }
        out
    }
}

extern "C" fn semaphore_init(semaphore: Object, shared: c_int, count: u32, pc: usize) -> c_int {
    let act = || real!(sem_init(semaphore => Object, shared => c_int, count => u32) -> c_int);
    change(Tag::SemInit, semaphore, u64::from(count), pc, act)
}

/// Makes or raises a semaphore.
fn change(tag: Tag, object: Object, count: u64, pc: usize, act: impl FnOnce() -> c_int) -> c_int {
    if explore::is_on() {
        let t = enter();
        if !t.is_null() {
            let what = if tag == Tag::SemInit { kind::SEM_INIT } else { kind::SEM_POST };
            // SAFETY: in a hook of `t`.
            return unsafe { explore::sync::semaphore(t, what, (object, count), pc, act) };
        }
    }
    note(tag, object, count, pc, act)
}

extern "C" fn semaphore_post(semaphore: Object, pc: usize) -> c_int {
    change(Tag::SemPost, semaphore, 0, pc, || real!(sem_post(semaphore => Object) -> c_int))
}

/// Whether no other process can reach an object, according to this word of it.
fn is_private(object: Object, word: usize) -> bool {
    // SAFETY: the word belongs to the object in libc's layout on this machine.
    unsafe { object.cast::<u32>().add(word).read_volatile() == 0 }
}

/// Lowers a semaphore. If that would block, calls `wait`, if given, which waits `for_ever` or for a limited time.
fn lower(semaphore: Object, pc: usize, for_ever: bool, wait: Option<&dyn Fn() -> c_int>) -> c_int {
    let attempt = || real!(sem_trywait(semaphore => Object) -> c_int);
    let t = enter();
    if t.is_null() {
        return wait.map_or_else(attempt, |wait| wait());
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        if explore::is_on() {
            let sub = match wait {
                None => lock::TRY,
                Some(_) if for_ever => 0,
                Some(_) => lock::TIMED,
            };
            return explore::sync::lower(t, semaphore, sub, pc, attempt);
        }
        // As with locks, it may have been raised before the failure was recorded.
        if !for_ever && gate::is_to_fail(t, pc) {
            sync(t, Tag::SemFailed, pc, semaphore as usize, 0);
            leave(t);
            let reason = if wait.is_some() { super::locks::ETIMEDOUT } else { EAGAIN };
            *super::sys::__errno_location() = reason;
            return -1;
        }
        // A failed attempt sets errno; the program must see the errno of its own call.
        let errno = super::Errno::save();
        let mut out = attempt();
        match wait {
            Some(wait) if out != 0 => {
                drop(errno);
                if for_ever {
                    log::put_uncounted_at(t, Tag::RequestSem, pc, semaphore as usize, 0);
                }
                gate::blocks(t, Tag::RequestSem, pc, semaphore as usize);
                out = blocking::aside(t, for_ever && is_private(semaphore, 2), wait);
                if enter().is_null() {
                    return out;
                }
            }
            _ => core::mem::forget(errno),
        }
        let (tag, patience) = match wait {
            _ if out != 0 => (Tag::SemFailed, 0),
            None => (Tag::SemWait, how::TRIED),
            Some(_) if for_ever => (Tag::SemWait, 0),
            Some(_) => (Tag::SemWait, how::TIMED),
        };
        sync(t, tag, pc, semaphore as usize, patience);
        leave(t);
        out
    }
}

extern "C" fn semaphore_wait(semaphore: Object, pc: usize) -> c_int {
    lower(semaphore, pc, true, Some(&|| real!(sem_wait(semaphore => Object) -> c_int)))
}

extern "C" fn semaphore_trywait(semaphore: Object, pc: usize) -> c_int {
    lower(semaphore, pc, false, None)
}

/// The count of a semaphore tells its reader what others have done, like an atomic read.
extern "C" fn semaphore_value(semaphore: Object, out: *mut c_int, pc: usize) -> c_int {
    let ask = || real!(sem_getvalue(semaphore => Object, out => *mut c_int) -> c_int);
    let t = enter();
    if t.is_null() {
        return ask();
    }
    // SAFETY: in a hook of `t`; the caller's word.
    unsafe {
        // Exploration knows who waits for a semaphore, not who looks at it.
        explore::kernel::goes_beyond(beyond::CHANNEL);
        access::before_write(t, out as usize, size_of::<c_int>());
        let result = ask();
        sync(t, Tag::SemValue, pc, semaphore as usize, 0);
        if result == 0 {
            access::written(t, out as usize, size_of::<c_int>(), pc);
        }
        leave(t);
        result
    }
}

extern "C" fn semaphore_timedwait(semaphore: Object, until: usize, pc: usize) -> c_int {
    lower(
        semaphore,
        pc,
        false,
        Some(&|| real!(sem_timedwait(semaphore => Object, until => usize) -> c_int)),
    )
}

extern "C" fn semaphore_clockwait(
    semaphore: Object,
    clock: c_int,
    until: usize,
    pc: usize,
) -> c_int {
    lower(
        semaphore,
        pc,
        false,
        Some(
            &|| real!(sem_clockwait(semaphore => Object, clock => c_int, until => usize) -> c_int),
        ),
    )
}

extern "C" fn once(control: Object, routine: usize, pc: usize) -> c_int {
    run_once(
        control,
        routine,
        pc,
        &|run| real!(pthread_once(control => Object, run => usize) -> c_int),
    )
}

/// Lets libc run `routine` if it has not run yet. The thread that runs it records that it is done
/// before libc lets others continue.
pub(super) fn run_once(
    control: Object,
    routine: usize,
    pc: usize,
    act: &dyn Fn(usize) -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return act(routine);
    }
    if explore::is_on() {
        // SAFETY: in a hook of `t`.
        return unsafe { run_once_explored(t, control, routine, pc) };
    }
    // SAFETY: in a hook of `t`; `once` is restored, because initialisations may nest.
    unsafe {
        let outer = core::mem::replace(&mut (*t).once, [routine, control as usize, pc]);
        step_aside(t);
        let run: extern "C" fn() = run_routine;
        let out = act(run as usize);
        let ran = core::mem::replace(&mut (*t).once, outer)[0] == 0;
        if !ran && !enter().is_null() {
            sync(t, Tag::OnceSeen, pc, control as usize, 0);
            leave(t);
        }
        out
    }
}

/// The same while the program is explored: libc, which would let other threads wait, is not asked.
unsafe fn run_once_explored(t: *mut Thread, control: Object, routine: usize, pc: usize) -> c_int {
    /// What libc stores when the routine has run.
    const DONE: i32 = 2;
    let word = control.cast::<i32>();
    // SAFETY: in a hook of `t`; the control word is an `int`, and the routine takes no arguments.
    unsafe {
        let is_mine =
            explore::sync::begin_once(t, control as usize, pc, word.read_volatile() == DONE);
        if !is_mine {
            sync(t, Tag::OnceSeen, pc, control as usize, 0);
            leave(t);
            return 0;
        }
        leave(t);
        let run: extern "C" fn() = core::mem::transmute(routine);
        run();
        if !enter().is_null() {
            explore::sync::end_once(t, control as usize, pc);
            word.write_volatile(DONE);
            sync(t, Tag::OnceDone, pc, control as usize, 0);
            leave(t);
        }
        0
    }
}

extern "C" fn run_routine() {
    let t = thread::current();
    // SAFETY: called by libc in the thread that is in `run_once`.
    unsafe {
        let [routine, control, pc] = core::mem::take(&mut (*t).once);
        let routine: extern "C" fn() = core::mem::transmute(routine);
        routine();
        if !enter().is_null() {
            sync(t, Tag::OnceDone, pc, control, 0);
            leave(t);
        }
    }
}
