//! Exploration: every operation of every thread is a step, and a schedule says which thread takes the next one.
//!
//! A thread comes to the [`gate`] before each operation and says what it is about to do. The thread that has the token decides
//! there who goes on ([`choose`]): first as the schedule says, then as its tail does. Threads sleep nowhere else, because an
//! operation is let through only if it is possible: locks, conditions, semaphores, barriers and joins are modelled here
//! ([`objects`], [`sync`]), and libc's own follow. So the order of steps alone determines what happens, the set of threads that
//! can move is always known, and a deadlock shows at once.
//!
//! What happens is written to the file that the launcher passes (`exploring.rs`): each operation with what its thread was told,
//! and for each sleeping thread what it is about to do.
//!
//! Everything that a thread sees besides must not depend on the schedule. Memory, stacks included, has addresses that depend
//! only on the thread that asks for it ([`arena`]); clocks and random numbers are each thread's own ([`inputs`]).

pub(super) mod arena;
mod choose;
mod code;
pub(super) mod inputs;
pub(super) mod kernel;
pub(super) mod memory;
mod objects;
pub(super) mod staging;
pub(super) mod sync;

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::next::real;
use super::sys::{self, PhdrInfo};
use super::thread::{self, Thread, life};
use super::{access, config, log, token};
use crate::exploring::{
    ENTRY, Entry, Head, Layout, MAGIC, Step, THREADS, kind, lock, reason, state, told,
};
use crate::format::{ScriptThread, Tag, how};

static ON: AtomicBool = AtomicBool::new(false);
/// The file; it is never unmapped.
static FILE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The threads of the schedule that exist, by their indices there.
static IDS: [AtomicU32; THREADS] = [const { AtomicU32::new(0) }; THREADS];
/// Where its parts are.
static STEPS_AT: AtomicU64 = AtomicU64::new(0);
static PENDING_AT: AtomicU64 = AtomicU64::new(0);
static ENTRIES_AT: AtomicU64 = AtomicU64::new(0);
/// Incremented whenever an operation changes anything.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// Whether the program is explored.
#[inline(always)]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether it is, or was until its end.
pub(super) fn was_on() -> bool {
    !FILE.load(Ordering::Relaxed).is_null()
}

/// What a thread is about to do.
#[derive(Clone, Copy, Default)]
pub(super) struct Ask {
    pub(super) kind: u8,
    pub(super) size: u8,
    pub(super) sub: u8,
    pub(super) pc: usize,
    pub(super) address: usize,
    pub(super) a: [u64; 2],
    pub(super) b: [u64; 2],
}

fn head() -> &'static mut Head {
    // SAFETY: set before the exploration begins; only the holder of the token uses it.
    unsafe { &mut *FILE.load(Ordering::Relaxed).cast::<Head>() }
}

fn part<T>(at: &AtomicU64, index: usize) -> *mut T {
    // SAFETY: the layout has room for all of them.
    unsafe {
        let first = FILE.load(Ordering::Relaxed).add(at.load(Ordering::Relaxed) as usize);
        first.cast::<T>().add(index)
    }
}

fn step(at: u64) -> Option<Step> {
    // SAFETY: as above.
    (at < head().steps).then(|| unsafe { *part::<Step>(&STEPS_AT, at as usize) })
}

/// Reads the schedule that the launcher passes, if there is one. Later programs of this process, and its children, have none.
pub(super) fn prepare() {
    let Some(path) = config::variable(c"FORESEE_EXPLORE") else { return };
    let mut name = sys::Text::<4096>::new();
    name.push(path);
    real!(unsetenv(c"FORESEE_EXPLORE".as_ptr() => *const core::ffi::c_char) -> core::ffi::c_int);
    end_with_launcher();
    if !map(name.as_ptr()) || !objects::prepare() {
        // Without control, nothing that the program does is of use.
        sys::abort();
    }
    // SAFETY: `program` is called before this returns.
    unsafe { sys::dl_iterate_phdr(module, core::ptr::null_mut()) };
    choose::prepare(head().seed);
    ON.store(true, Ordering::SeqCst);
}

/// The kernel ends this process with the thread that started it: nothing is left running, however the launcher ends.
fn end_with_launcher() {
    const PRCTL: usize = 157;
    const SET_DEATH_SIGNAL: usize = 1;
    const KILL: usize = 9;
    // SAFETY: the call changes nothing but this.
    unsafe { sys::syscall!(PRCTL, SET_DEATH_SIGNAL, KILL) };
    // Whoever ended before that sends no signal. Another program, such as a shell, can stand between the launcher and this one.
    let parent = sys::parent_id();
    if config::launcher().is_some_and(|n| parent != n && parent != 0 && !sys::is_running(n)) {
        sys::abort();
    }
}

fn map(path: *const u8) -> bool {
    const LSEEK: usize = 8;
    const END: usize = 2;
    // SAFETY: the path is a C string; the mapping is ours.
    unsafe {
        let file = sys::syscall!(sys::OPENAT, -100isize, path, sys::O_RDWR | sys::O_CLOEXEC, 0);
        if file < 0 {
            return false;
        }
        let size = usize::try_from(sys::syscall!(LSEEK, file, 0, END)).unwrap_or(0);
        let at = match size < size_of::<Head>() {
            true => core::ptr::null_mut(),
            false => sys::map(core::ptr::null_mut(), size, sys::MAP_SHARED, file),
        };
        sys::syscall!(sys::CLOSE, file);
        if at.is_null() {
            return false;
        }
        let head = *at.cast::<Head>();
        let Some(layout) = Layout::new(u64::from(head.threads), head.steps, head.most) else {
            return false;
        };
        if head.magic != MAGIC || layout.end != size || head.threads as usize > THREADS {
            return false;
        }
        FILE.store(at, Ordering::Relaxed);
        STEPS_AT.store(layout.steps as u64, Ordering::Relaxed);
        PENDING_AT.store(layout.pending as u64, Ordering::Relaxed);
        ENTRIES_AT.store(layout.entries as u64, Ordering::Relaxed);
    }
    true
}

/// The dynamic linker names the program itself first.
unsafe extern "C" fn module(info: *mut PhdrInfo, _: usize, _: *mut core::ffi::c_void) -> i32 {
    // SAFETY: what the dynamic linker passes is valid during this call.
    unsafe {
        if head().started == 0 {
            head().program = (*info).base as u64;
            head().started = 1;
        }
        memory::note_module(&*info);
        arena::note_module(&*info, known_of_libc());
    }
    0
}

/// An address in libc.
fn known_of_libc() -> usize {
    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> usize;
    }
    __libc_malloc as *const () as usize
}

/// Explores no further: this is another process, or the program ends.
pub(super) fn off() {
    ON.store(false, Ordering::SeqCst);
}

/// A thread begins: the first one has the token, and others wait until it is given to them.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn come_in(t: *mut Thread, is_main: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        if is_main {
            (*t).path_len = 0;
            choose::give_priority(t);
            IDS[0].store((*t).id, Ordering::SeqCst);
            token::OWNER.store((*t).id, Ordering::SeqCst);
            head().running = (*t).id;
        } else if !token::is_held_by(t) {
            sleep(t);
        }
        ((*t).turn, (*t).fuel) = (0, 0);
    }
}

/// Thread `t` has started `new`, which now runs to its first operation.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn started(t: *mut Thread, new: *mut Thread) {
    // SAFETY: by the caller's promise; the new thread waits for the token.
    unsafe {
        head().started += 1;
        (*new).starter = (*t).id;
        let named = |thread: &ScriptThread| {
            let parent = IDS.get(thread.parent as usize).map_or(0, |id| id.load(Ordering::Relaxed));
            parent == (*t).id && thread.before + 1 == (*new).ordinal
        };
        let count = head().threads as usize;
        let threads: &[ScriptThread] = core::slice::from_raw_parts(
            FILE.load(Ordering::Relaxed).add(crate::exploring::HEAD).cast(),
            count,
        );
        // The first thread has no parent, whatever the file says.
        if let Some(index) = threads.iter().skip(1).position(named) {
            IDS[index + 1].store((*new).id, Ordering::SeqCst);
        }
        (*t).waits.store(1, Ordering::SeqCst);
        give_token(new);
        sleep(t);
    }
}

/// Makes a thread one that `t` is about to start.
///
/// # Safety
/// In a hook of `t`; no other thread uses the new one yet.
unsafe fn adopt(t: *mut Thread, new: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).children += 1;
        (*new).ordinal = (*t).children;
        (*new).parent = (*t).id;
        let depth = (*t).path_len as usize;
        if depth >= (*new).path.len() || (*new).id as usize >= THREADS {
            lost(reason::TOO_MANY);
        }
        (*new).path = (*t).path;
        (*new).path[depth] = (*new).ordinal;
        (*new).path_len = depth as u32 + 1;
        (*new).waits.store(1, Ordering::SeqCst);
        choose::give_priority(new);
    }
}

/// Thread `t` is about to start `new`, as its thread with this number.
///
/// # Safety
/// In a hook of `t`; no other thread uses the new one yet.
pub(super) unsafe fn fork(t: *mut Thread, new: *mut Thread, number: u64, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::FORK, pc, a: [number, u64::from((*new).id)], ..Ask::default() });
        adopt(t, new);
        tell(t, told::NOTHING, [0; 2], true);
    }
}

unsafe fn give_token(to: *mut Thread) {
    // SAFETY: threads are never moved.
    unsafe {
        head().running = (*to).id;
        token::OWNER.store((*to).id, Ordering::SeqCst);
        (*to).waits.store(0, Ordering::SeqCst);
        sys::futex_wake(&(*to).waits, 1);
    }
}

/// Sleeps until the thread has the token.
unsafe fn sleep(t: *mut Thread) {
    const LONG: u64 = 3_600_000_000_000;
    // SAFETY: the thread is the caller's own.
    unsafe {
        while (*t).waits.load(Ordering::SeqCst) != 0 {
            sys::futex_wait(&(*t).waits, 1, LONG);
        }
        ((*t).turn, (*t).fuel) = (0, 0);
    }
}

/// Waits until it is the thread's turn to do what it asks for. Returns what was decided besides.
///
/// # Safety
/// In a hook of `t`, which has the token.
pub(super) unsafe fn gate(t: *mut Thread, ask: Ask) -> u32 {
    // SAFETY: by the caller's promise.
    unsafe {
        access::settle(t);
        announce(t, ask);
        if (*t).starter != 0 {
            // The first operation: the thread that started this one goes on.
            let starter = core::mem::take(&mut (*t).starter);
            park(t);
            give_token(thread::get(starter));
            sleep(t);
        } else {
            let next = choose::next(t);
            if next != t {
                park(t);
                give_token(next);
                sleep(t);
                log::put_turn(t);
            }
        }
        take_step(t)
    }
}

unsafe fn announce(t: *mut Thread, ask: Ask) {
    // SAFETY: a thread that the caller acts for.
    unsafe {
        (*t).ask = Entry {
            kind: ask.kind,
            size: ask.size,
            sub: ask.sub,
            told_kind: told::NOT_YET,
            thread: (*t).id,
            pc: ask.pc as u64,
            address: ask.address as u64,
            a: ask.a,
            b: ask.b,
            told: [0; 2],
            choice: 0,
            reserved: 0,
        };
    }
}

/// Notes what a thread that goes to sleep is about to do.
unsafe fn park(t: *mut Thread) {
    // SAFETY: a thread that the caller acts for; there are not more than there is room for.
    unsafe {
        (*t).waits.store(1, Ordering::SeqCst);
        note_pending(t);
    }
}

unsafe fn note_pending(t: *mut Thread) {
    // SAFETY: as above.
    unsafe {
        if ((*t).id as usize) < THREADS {
            part::<Entry>(&PENDING_AT, (*t).id as usize).write((*t).ask);
        }
    }
}

/// The thread takes the step that it asked for.
unsafe fn take_step(t: *mut Thread) -> u32 {
    // SAFETY: `t` has the token.
    unsafe {
        let done = head().done;
        (*t).ask.choice = (*t).choice;
        part::<Entry>(&ENTRIES_AT, done as usize).write((*t).ask);
        (*t).entry = done + 1;
        if ((*t).id as usize) < THREADS {
            part::<Entry>(&PENDING_AT, (*t).id as usize).cast::<u8>().write_bytes(0, ENTRY);
        }
        // A store that faults leaves an entry without an end.
        head().done = done + 1;
        (*t).choice
    }
}

/// The thread has done what it was let through for, and was told this.
///
/// # Safety
/// `t` has the token, and came through the gate.
pub(super) unsafe fn tell(t: *mut Thread, what: u8, value: [u64; 2], is_change: bool) {
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(index) = (*t).entry.checked_sub(1) else { return };
        (*t).entry = 0;
        let entry = part::<Entry>(&ENTRIES_AT, index as usize);
        (*entry).told = value;
        (*entry).told_kind = what;
        if is_change {
            CHANGES.fetch_add(1, Ordering::Relaxed);
        }
        choose::remember(t, &*entry);
    }
}

/// A thread does something that is not modelled: nothing is claimed about what it may hang on.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn unknown(t: *mut Thread, pc: usize) {
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::UNKNOWN, pc, ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
    }
}

/// A thread says something about itself, which properties may be about.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn mark(t: *mut Thread, tag: u8, pc: usize, bytes: &[u8]) {
    let mix = |start: u64| {
        bytes.iter().fold(start ^ u64::from(tag), |sum, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5)
        })
    };
    let what = [mix(0xcbf2_9ce4_8422_2325), mix(0x9e37_79b9_7f4a_7c15)];
    // SAFETY: by the caller's promise.
    unsafe {
        gate(t, Ask { kind: kind::MARK, pc, a: what, ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
    }
}

/// A thread ends: another one goes on.
///
/// # Safety
/// The caller is `t`, in its last hook.
pub(super) unsafe fn ends(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        if !(*t).has_returned && (*t).path_len > 0 {
            // It called `pthread_exit`, or was cancelled: what a join returns is not known here.
            unknown(t, 0);
        }
        gate(t, Ask { kind: kind::END, a: [(*t).result, 0], ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
        (*t).life.store(life::ENDED, Ordering::SeqCst);
        log::count_threads(-1, 0);
        (*t).ask.kind = kind::NONE;
        if let Some(next) = choose::after_end(t) {
            give_token(next);
        }
    }
}

/// The process is about to end, or to fail. Threads that can move may do so before; this one goes on without exploration.
pub(super) fn finishes(what: u8, sub: u8, value: u64, pc: usize) {
    if !is_on() {
        return;
    }
    let t = thread::current();
    if t.is_null() || !token::is_held_by(t) {
        return;
    }
    // SAFETY: the thread's own state.
    unsafe {
        if (*t).life.load(Ordering::SeqCst) == life::ENDED {
            // The last thread has ended, and libc ends the process on its behalf.
            return off();
        }
        let before = (*t).busy.swap(1, Ordering::Relaxed);
        gate(t, Ask { kind: what, sub, pc, a: [value, 0], ..Ask::default() });
        tell(t, told::NOTHING, [0; 2], true);
        off();
        (*t).busy.store(before, Ordering::Release);
    }
}

/// Ends the run.
fn end(how: u32, why: u32, at: u64) -> ! {
    for id in 1..thread::count() {
        let u = thread::get(id);
        // SAFETY: threads are never moved; all but the caller sleep.
        unsafe {
            if (*u).life.load(Ordering::SeqCst) != life::ENDED && (*u).ask.kind != kind::NONE {
                note_pending(u);
                if how == state::DEADLOCK {
                    log_request(u);
                }
            }
        }
    }
    let head = head();
    (head.reason, head.at, head.state) = (why, at, how);
    loop {
        // SAFETY: the call does not return.
        unsafe { sys::syscall!(sys::EXIT_GROUP, 0) };
    }
}

/// Records in the log what a thread waits for in vain, as it would if it slept there.
unsafe fn log_request(u: *mut Thread) {
    // SAFETY: the caller has the token, and acts for the thread.
    unsafe {
        let ask = (*u).ask;
        let (pc, address) = (ask.pc as usize, ask.address as usize);
        match ask.kind {
            kind::LOCK => {
                let how = if ask.sub & lock::SHARED != 0 { how::SHARED } else { 0 };
                log::put_uncounted_at(u, Tag::Request, pc, address, how);
            }
            kind::JOIN => log::put_uncounted_at(u, Tag::RequestEnd, pc, 0, ask.a[0]),
            kind::SEM_WAIT => log::put_uncounted_at(u, Tag::RequestSem, pc, address, 0),
            _ => {}
        }
    }
}

/// Ends the run, because it is not under control any more.
fn lost(why: u32) -> ! {
    end(state::LOST, why, head().done)
}
