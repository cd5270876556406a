//! Threads: their beginning, their end, and joins.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::next::real;
use super::thread::{self, Thread, life};
use super::{
    Errno, access, blocking, callers, clocks, come_in, config, ending, enter, explore, gate, hook,
    in_libc, leave, log, modules, shadow, step_aside, sync, sys, token,
};
use crate::format::Tag;

hook! {
    pthread_create => create, "r8";
    pthread_join => join, "rdx";
    pthread_tryjoin_np => try_join, "rdx";
    pthread_timedjoin_np => timed_join, "rcx";
    pthread_clockjoin_np => clock_join, "r8";
    pthread_setname_np => set_name, "rdx";
}

/// The threads by libc's handles. Handles are reused; the latest thread wins.
static HANDLES: AtomicPtr<[AtomicUsize; 2]> = AtomicPtr::new(core::ptr::null_mut());
const SLOTS: usize = 1 << 19;

/// Allocates the table of handles.
pub(super) fn prepare() -> bool {
    let room = sys::reserve(SLOTS * size_of::<[AtomicUsize; 2]>());
    HANDLES.store(room.cast(), Ordering::Relaxed);
    !room.is_null()
}

/// Forgets all handles, in the child of a fork.
pub(super) fn start_over() {
    let room = HANDLES.load(Ordering::Relaxed);
    // SAFETY: the memory is ours.
    unsafe {
        sys::syscall!(sys::MADVISE, room, SLOTS * size_of::<[AtomicUsize; 2]>(), sys::MADV_DONTNEED)
    };
}

fn slot(handle: usize) -> Option<&'static [AtomicUsize; 2]> {
    let table = HANDLES.load(Ordering::Relaxed);
    let mut at = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 45;
    for _ in 0..SLOTS {
        // SAFETY: the table has SLOTS entries.
        let slot = unsafe { &*table.add(at & (SLOTS - 1)) };
        match slot[0].compare_exchange(0, handle, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(slot),
            Err(there) if there == handle => return Some(slot),
            Err(_) => at += 1,
        }
    }
    None
}

fn remember(handle: usize, id: u32) {
    if let Some(slot) = slot(handle) {
        slot[1].store(id as usize, Ordering::Relaxed);
    }
}

fn by_handle(handle: usize) -> Option<u64> {
    slot(handle).map(|slot| slot[1].load(Ordering::Relaxed) as u64).filter(|&id| id != 0)
}

/// The first hook of a thread: registers it and waits for its turn.
pub(super) fn begin(t: *mut Thread) -> *mut Thread {
    let _errno = Errno::save();
    thread::set_current(t);
    // SAFETY: the thread's own state; pthread's functions are called while busy, so that they are not recorded.
    unsafe {
        (*t).busy.store(1, Ordering::Relaxed);
        (*t).tid = sys::thread_id();
        if (*t).life.swap(life::BEGUN, Ordering::SeqCst) == 0 {
            log::count_threads(1, 0);
        }
        let handle = sys::pthread_self();
        remember(handle, (*t).id);
        thread::ask_for_farewell(t);
        let is_main = (*t).tid == sys::process_id();
        if is_main {
            gate::is_main(t);
        }
        let (mut low, mut size) = (0, 0);
        if !is_main {
            let mut attributes = [0; 8];
            if sys::pthread_getattr_np(handle, &mut attributes) == 0 {
                sys::pthread_attr_getstack(&attributes, &mut low, &mut size);
                sys::pthread_attr_destroy(&mut attributes);
            }
            // libc's description of the thread lies above it. Its address is the handle, which other threads may have without
            // knowing anything on the stack.
            if (low..low.saturating_add(size)).contains(&handle) {
                size = handle - low;
            }
        }
        // The thread that started this one lets it queue for the token before it continues.
        (*t).go.store(2, Ordering::Release);
        sys::futex_wake(&(*t).go, 1);
        if come_in(t).is_null() {
            return core::ptr::null_mut();
        }
        if is_main {
            (low, size) = main_stack();
        } else {
            // Another thread may have used the stack before.
            shadow::forget(low, size);
        }
        callers::begin(t, low, size);
        log::put(t, Tag::ThreadBegin as u8, 0, low, size as u64);
        (*t).begun = true;
        if !is_main && (*t).start == 0 {
            super::kernel::helper_began(t);
        }
    }
    t
}

/// The range of the first thread's stack, as far as it usually grows.
fn main_stack() -> (usize, usize) {
    const USUAL: usize = 8 << 20;
    // SAFETY: the name is a C string, and what it names is a word.
    let end = unsafe {
        let end = sys::dlsym(sys::RTLD_DEFAULT, c"__libc_stack_end".as_ptr());
        if end.is_null() {
            return (0, 0);
        }
        end.cast::<usize>().read()
    };
    let end = end.next_multiple_of(4096);
    (end.saturating_sub(USUAL), USUAL.min(end))
}

/// The address where libc stores whether there is only one thread; zero if there is none. Programs read it: `shared_ptr`
/// does.
fn single_threaded() -> usize {
    static AT: AtomicUsize = AtomicUsize::new(usize::MAX);
    match AT.load(Ordering::Relaxed) {
        usize::MAX => {
            // SAFETY: the name is a C string.
            let at = unsafe { sys::dlsym(sys::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()) };
            AT.store(at as usize, Ordering::Relaxed);
            at as usize
        }
        at => at,
    }
}

/// Records the end of a thread, as the destructor of a key. It runs repeatedly, so that the destructors of other keys, which
/// use memory, come first.
pub(super) unsafe extern "C" fn farewell(value: *mut c_void) {
    let t: *mut Thread = value.cast();
    // SAFETY: the thread's own state.
    unsafe {
        (*t).farewells += 1;
        // libc runs the destructors of all keys four times.
        if (*t).farewells < 4 {
            thread::ask_for_farewell(t);
            return;
        }
        // A thread of a library's own ends within the library.
        let _ =
            (*t).busy.compare_exchange(super::IN_LIBRARY, 0, Ordering::Relaxed, Ordering::Relaxed);
        if !enter().is_null() {
            sync(t, Tag::ThreadEnd, 0, 0, 0);
            if explore::is_on() {
                explore::ends(t);
                // Forever, as below.
                (*t).busy.store(2, Ordering::Relaxed);
                return;
            }
            gate::ends(t);
            if !config::free_running() {
                token::release(t);
            }
        }
        token::forget(t);
        blocking::end(t);
        (*t).life.store(life::ENDED, Ordering::SeqCst);
        log::count_threads(-1, 0);
        // Forever: nothing can be recorded from now on.
        (*t).busy.store(2, Ordering::Relaxed);
    }
}

extern "C" fn trampoline(argument: *mut c_void) -> *mut c_void {
    let t: *mut Thread = argument.cast();
    // SAFETY: made by `create` for this thread.
    unsafe {
        while (*t).go.load(Ordering::Acquire) == 0 {
            sys::futex_wait(&(*t).go, 0, 1_000_000_000);
        }
        let (start, argument) = ((*t).start, (*t).argument as *mut c_void);
        if !begin(t).is_null() {
            if (*t).is_of_library {
                step_aside(t);
                (*t).busy.store(super::IN_LIBRARY, Ordering::Relaxed);
            } else {
                leave(t);
            }
        }
        let start: extern "C" fn(*mut c_void) -> *mut c_void = core::mem::transmute(start);
        let result = start(argument);
        ((*t).result, (*t).has_returned) = (result as u64, true);
        result
    }
}

extern "C" fn create(
    handle: *mut usize,
    attributes: *const c_void,
    start: usize,
    argument: usize,
    pc: usize,
) -> c_int {
    let t = thread::current();
    // SAFETY: the thread's own state.
    if !t.is_null() && unsafe { (*t).busy.load(Ordering::Relaxed) } == super::IN_LIBRARY {
        let mut out = 0;
        let run = || out = start_thread(handle, attributes, start, argument, true, pc);
        super::back_in_program(|_| {}, run, |_| {});
        return out;
    }
    start_thread(handle, attributes, start, argument, false, pc)
}

/// Starts a thread, which waits until its start is recorded. If it `is_of_library`, it begins in a library that is modelled
/// as a whole.
pub(super) fn start_thread(
    handle: *mut usize,
    attributes: *const c_void,
    start: usize,
    argument: usize,
    is_of_library: bool,
    pc: usize,
) -> c_int {
    let plain = |start: usize, argument: usize| real!(pthread_create(handle => *mut usize, attributes => *const c_void, start => usize, argument => usize) -> c_int);
    let t = enter();
    if t.is_null() {
        return plain(start, argument);
    }
    if explore::is_on() {
        // SAFETY: in a hook of `t`.
        return unsafe { start_explored(t, handle, attributes, (start, argument), pc) };
    }
    // SAFETY: in a hook of `t`; no other thread uses the new one yet.
    unsafe {
        access::before_write(t, handle as usize, 8);
        let single = single_threaded();
        let was_single = single != 0 && access::load(single, 1) != 0;
        if was_single {
            access::before_write(t, single, 1);
        }
        let new = thread::allocate();
        if new.is_null() {
            log::give_up();
            let out = plain(start, argument);
            leave(t);
            return out;
        }
        ending::expect_threads();
        (*new).start = start;
        (*new).argument = argument;
        (*new).is_of_library = is_of_library;
        let entry: extern "C" fn(*mut c_void) -> *mut c_void = trampoline;
        // libc frees stacks of ended threads, and what they contain, while it holds the lock that a start needs.
        let (out, is_on) = in_libc(t, || {
            (*new).is_reserve = modules::is_of_runtime(pc);
            plain(entry as usize, new as usize)
        });
        if !is_on {
            (*new).go.store(1, Ordering::Release);
            sys::futex_wake(&(*new).go, 1);
            return out;
        }
        if out == 0 {
            remember(*handle, (*new).id);
            (*new).life.store(life::STARTED, Ordering::SeqCst);
            log::count_threads(1, 0);
            // Other threads may have had a turn.
            access::before_write(t, handle as usize, 8);
            access::written(t, handle as usize, 8, pc);
            if was_single {
                access::before_write(t, single, 1);
                access::written(t, single, 1, pc);
            }
            gate::starts(t, new);
            sync(t, Tag::Fork, pc, argument, u64::from((*new).id));
            clocks::started(t, new);
            (*new).go.store(1, Ordering::Release);
            sys::futex_wake(&(*new).go, 1);
            if !config::free_running() {
                wait_until_in_line(new);
                token::tally(t);
            }
        }
        leave(t);
        out
    }
}

/// Starts a thread of a program that is explored, on a stack whose address depends only on the thread's name. It runs to its
/// first operation before `t` goes on.
unsafe fn start_explored(
    t: *mut Thread,
    handle: *mut usize,
    attributes: *const c_void,
    (start, argument): (usize, usize),
    pc: usize,
) -> c_int {
    type Attributes = *mut u64;
    let usual = |to| real!(pthread_attr_init(to => Attributes) -> c_int);
    let put_on = |to, low, size| real!(pthread_attr_setstack(to => Attributes, low => usize, size => usize) -> c_int);
    let create = |to, how, argument| {
        let entry: extern "C" fn(*mut c_void) -> *mut c_void = trampoline;
        real!(pthread_create(to => *mut usize, how => Attributes, entry as usize => usize, argument => usize) -> c_int)
    };
    // SAFETY: in a hook of `t`; no other thread uses the new one yet.
    unsafe {
        let new = thread::allocate();
        if new.is_null() {
            sys::abort();
        }
        let number = u64::from((*t).children) + 1;
        explore::fork(t, new, number, pc);
        ending::expect_threads();
        ((*new).start, (*new).argument) = (start, argument);
        let single = single_threaded();
        let was_single = single != 0 && access::load(single, 1) != 0;
        let mut own = [0u64; 8];
        match attributes.is_null() {
            true => drop(usual(own.as_mut_ptr())),
            // A copy: the program's own stays as it is. It is not destroyed, because what it points to is the program's.
            false => own[..7].copy_from_slice(core::slice::from_raw_parts(attributes.cast(), 7)),
        }
        let (low, size) = explore::arena::stack(new);
        put_on(own.as_mut_ptr(), low, size);
        let mut made = 0usize;
        if create(&raw mut made, own.as_mut_ptr(), new as usize) != 0 {
            // Without the thread, the rest of the schedule is not possible.
            sys::abort();
        }
        remember(made, (*new).id);
        (*new).life.store(life::STARTED, Ordering::SeqCst);
        log::count_threads(1, 0);
        let written = access::tag(crate::format::Access::Write, 8);
        log::put(t, written, pc, handle as usize, made as u64);
        if was_single {
            log::put(t, access::tag(crate::format::Access::Write, 1), pc, single, 0);
        }
        sync(t, Tag::Fork, pc, argument, u64::from((*new).id));
        (*new).go.store(1, Ordering::Release);
        sys::futex_wake(&(*new).go, 1);
        explore::started(t, new);
        explore::memory::write(t, handle as usize, 8, [made as u64, 0], pc);
        leave(t);
        0
    }
}

/// Waits briefly until a new thread is ready for its first step. Otherwise a thread of a short program would end before the
/// next one begins, and the two would never run concurrently.
unsafe fn wait_until_in_line(new: *mut Thread) {
    let since = sys::now();
    // SAFETY: threads are never moved.
    let go = unsafe { &(*new).go };
    while go.load(Ordering::Acquire) == 1 && sys::now().wrapping_sub(since) < TO_GET_IN_LINE {
        sys::futex_wait(go, 1, TO_GET_IN_LINE);
    }
}

/// The maximum time to wait for that.
const TO_GET_IN_LINE: u64 = 5_000_000;

/// Waits for a thread with `wait`, for a limited time if it `is_timed`. If that succeeds, records the join and the result that
/// libc writes.
pub(super) fn wait_for(
    handle: usize,
    result: *mut c_void,
    size: usize,
    is_timed: bool,
    pc: usize,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    let t = enter();
    if t.is_null() {
        return wait();
    }
    let other = by_handle(handle);
    // SAFETY: in a hook of `t`.
    unsafe {
        if explore::is_on() {
            return match other {
                Some(other) if !explore::sync::join(t, other as u32, is_timed, pc) => {
                    leave(t);
                    super::locks::EBUSY
                }
                _ => joined(t, (result as usize, size), other, pc, wait),
            };
        }
        if !result.is_null() {
            access::before_write(t, result as usize, size);
        }
        let is_requested = !is_timed && other.is_some();
        if is_requested {
            access::settle(t);
            log::put_uncounted_at(t, Tag::RequestEnd, pc, 0, other.unwrap_or(0));
            gate::awaits_end(t, pc);
        }
        let out = blocking::aside(t, is_requested, wait);
        if out != 0 {
            if is_requested && !enter().is_null() {
                blocking::withdraw(t);
                leave(t);
            }
        } else if !enter().is_null() {
            if let Some(other) = other {
                sync(t, Tag::Join, pc, 0, other);
                clocks::ended(t, thread::get(other as u32));
            }
            if !result.is_null() {
                access::before_write(t, result as usize, size);
                access::written(t, result as usize, size, pc);
            }
            leave(t);
        }
        out
    }
}

/// The thread `other` has ended, and is joined.
unsafe fn joined(
    t: *mut Thread,
    (result, size): (usize, usize),
    other: Option<u64>,
    pc: usize,
    wait: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: in a hook of `t`.
    unsafe {
        if result != 0 {
            explore::memory::begin_call(t);
            access::before_write(t, result, size);
        }
        let out = wait();
        if out == 0 {
            if let Some(other) = other {
                sync(t, Tag::Join, pc, 0, other);
            }
            if result != 0 {
                access::written(t, result, size, pc);
            }
        }
        leave(t);
        out
    }
}

extern "C" fn join(handle: usize, out: *mut c_void, pc: usize) -> c_int {
    wait_for(
        handle,
        out,
        8,
        false,
        pc,
        || real!(pthread_join(handle => usize, out => *mut c_void) -> c_int),
    )
}

extern "C" fn try_join(handle: usize, out: *mut c_void, pc: usize) -> c_int {
    wait_for(
        handle,
        out,
        8,
        true,
        pc,
        || real!(pthread_tryjoin_np(handle => usize, out => *mut c_void) -> c_int),
    )
}

extern "C" fn timed_join(handle: usize, out: *mut c_void, until: usize, pc: usize) -> c_int {
    wait_for(
        handle,
        out,
        8,
        true,
        pc,
        || real!(pthread_timedjoin_np(handle => usize, out => *mut c_void, until => usize) -> c_int),
    )
}

extern "C" fn clock_join(
    handle: usize,
    out: *mut c_void,
    clock: c_int,
    until: usize,
    pc: usize,
) -> c_int {
    wait_for(
        handle,
        out,
        8,
        true,
        pc,
        || real!(pthread_clockjoin_np(handle => usize, out => *mut c_void, clock => c_int, until => usize) -> c_int),
    )
}

extern "C" fn set_name(handle: usize, name: *const c_char, pc: usize) -> c_int {
    let out = real!(pthread_setname_np(handle => usize, name => *const c_char) -> c_int);
    let t = enter();
    if !t.is_null() {
        // SAFETY: in a hook of `t`; the name is a C string.
        unsafe {
            if out == 0
                && let Some(id) = by_handle(handle)
            {
                access::settle(t);
                let name = sys::bytes(name);
                let name = &name[..name.len().min(64)];
                log::put_with(t, Tag::ThreadName as u8, pc, id as usize, name.len() as u64, name);
            }
            leave(t);
        }
    }
    out
}
