//! Replay: the token goes to the thread whose step is next in a schedule.
//!
//! The schedule lists steps of threads in the order in which they are to happen. A step is a record of the log, and it is
//! taken when that record is written. Until then only its thread gets the token. The thread keeps it until its next hook, so
//! what a hook announces has happened by the time another thread continues. Steps that are not listed belong to the listed step
//! that follows them in their thread, and a thread without further listed steps waits. After the last step all threads continue
//! as usual.
//!
//! Nothing here decides whether the program fails: recording goes on, and the new trace is judged like any other. If a thread
//! does something else than its next step, the process records where, and ends at once.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::next::real;
use super::sys::{self, PhdrInfo};
use super::thread::{self, Thread, life};
use super::{config, hold, log};
use crate::format::{ACCESSES, Access, INEXACT, Script, ScriptStep, ScriptThread, Tag, replay};

/// A thread that does not exist (yet).
const NO_THREAD: u32 = u32::MAX;

static STATE: AtomicU32 = AtomicU32::new(replay::OFF);
/// The schedule; it is never unmapped.
static SCRIPT: AtomicPtr<Script> = AtomicPtr::new(core::ptr::null_mut());
/// The threads of the schedule that exist, by their indices there.
static THREADS: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
/// The index of the next step, and the thread that may take it.
static CURSOR: AtomicU64 = AtomicU64::new(0);
static WANTED: AtomicU32 = AtomicU32::new(NO_THREAD);
/// The number of records since the last step was taken.
static SINCE: AtomicU64 = AtomicU64::new(0);
/// Where the program itself begins.
static PROGRAM: AtomicUsize = AtomicUsize::new(0);
/// How far the virtual clock is ahead, in nanoseconds.
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// Whether threads follow a schedule now.
#[inline(always)]
pub(super) fn is_following() -> bool {
    STATE.load(Ordering::Relaxed) == replay::FOLLOWING
}

/// Whether they do, or did until the schedule's end.
#[inline(always)]
pub(super) fn is_replaying() -> bool {
    matches!(STATE.load(Ordering::Relaxed), replay::FOLLOWING | replay::FOLLOWED)
}

/// The thread that may have the token while a schedule is followed.
pub(super) fn wanted() -> u32 {
    WANTED.load(Ordering::SeqCst)
}

/// Whether a thread may have the token.
#[inline]
pub(super) fn admits(id: u32) -> bool {
    !is_following() || wanted() == id
}

fn script() -> &'static Script {
    // SAFETY: set before the state says that something is replayed, and never unmapped.
    unsafe { &*SCRIPT.load(Ordering::Relaxed) }
}

fn threads() -> &'static [ScriptThread] {
    // SAFETY: `prepare` has compared the file's size with these numbers.
    unsafe {
        let first = SCRIPT.load(Ordering::Relaxed).add(1).cast();
        core::slice::from_raw_parts(first, script().threads as usize)
    }
}

fn first_step() -> *mut ScriptStep {
    let after = size_of::<Script>() + script().threads as usize * size_of::<ScriptThread>();
    // SAFETY: as above.
    unsafe { SCRIPT.load(Ordering::Relaxed).cast::<u8>().add(after).cast() }
}

/// The step with this index.
fn step(at: u64) -> Option<&'static ScriptStep> {
    // SAFETY: as above; only the holder of the token changes a step.
    (at < script().steps).then(|| unsafe { &*first_step().add(at as usize) })
}

/// The next step.
fn next() -> Option<&'static ScriptStep> {
    step(CURSOR.load(Ordering::Relaxed))
}

fn id_of(index: u32) -> &'static AtomicU32 {
    // SAFETY: there is room for all threads of the schedule.
    unsafe { &*THREADS.load(Ordering::Relaxed).add(index as usize) }
}

/// Reads the schedule that the launcher passes, if there is one. Later programs of this process, and its children, follow none.
pub(super) fn prepare() {
    let Some(path) = config::variable(c"FORESEE_SCHEDULE") else { return };
    let mut name = sys::Text::<4096>::new();
    name.push(path);
    real!(unsetenv(c"FORESEE_SCHEDULE".as_ptr() => *const core::ffi::c_char) -> core::ffi::c_int);
    if !map(name.as_ptr()) {
        return log::note_replay(replay::DIVERGED, replay::UNREADABLE, 0);
    }
    // SAFETY: `program` is called before this returns.
    unsafe { sys::dl_iterate_phdr(program, core::ptr::null_mut()) };
    STATE.store(replay::FOLLOWING, Ordering::SeqCst);
    CURSOR.store(u64::MAX, Ordering::Relaxed);
    advance();
}

/// Maps the schedule, if it is one.
fn map(path: *const u8) -> bool {
    const LSEEK: usize = 8;
    const END: usize = 2;
    // SAFETY: the path is a C string; the mapping is ours.
    unsafe {
        let file = sys::syscall!(sys::OPENAT, -100isize, path, sys::O_RDONLY | sys::O_CLOEXEC, 0);
        if file < 0 {
            return false;
        }
        let size = usize::try_from(sys::syscall!(LSEEK, file, 0, END)).unwrap_or(0);
        let at = if size < size_of::<Script>() {
            core::ptr::null_mut()
        } else {
            sys::map(core::ptr::null_mut(), size, sys::MAP_PRIVATE, file)
        };
        sys::syscall!(sys::CLOSE, file);
        if at.is_null() {
            return false;
        }
        let head = at.cast::<Script>();
        let expected = size_of::<Script>() as u64
            + u64::from((*head).threads) * size_of::<ScriptThread>() as u64
            + (*head).steps.saturating_mul(size_of::<ScriptStep>() as u64);
        if (*head).magic != replay::MAGIC || expected != size as u64 {
            return false;
        }
        let ids = sys::reserve((*head).threads.max(1) as usize * size_of::<AtomicU32>());
        SCRIPT.store(head, Ordering::Relaxed);
        THREADS.store(ids.cast(), Ordering::Relaxed);
        !ids.is_null()
    }
}

/// The dynamic linker names the program itself first.
unsafe extern "C" fn program(info: *mut PhdrInfo, _: usize, _: *mut c_void) -> i32 {
    // SAFETY: what the dynamic linker passes is valid during this call.
    PROGRAM.store(unsafe { (*info).base }, Ordering::Relaxed);
    1
}

/// Follows the schedule no further, because this is another process, or nothing is recorded any more.
pub(super) fn off() {
    STATE.store(replay::OFF, Ordering::SeqCst);
}

/// Gives a thread its place in the schedule: the one that runs `main`.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn is_main(t: *mut Thread) {
    if is_replaying() {
        // SAFETY: by the caller's promise.
        unsafe { register(t, 0) };
    }
}

/// Gives a thread its place in the schedule: `t` is about to record that it started `new`.
///
/// # Safety
/// In a hook of `t`; no other thread uses the new one yet.
pub(super) unsafe fn starts(t: *mut Thread, new: *mut Thread) {
    if !is_replaying() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let before = (*t).children;
        (*t).children += 1;
        let Some(parent) = (*t).script.checked_sub(1) else { return };
        let is_it = |thread: &ScriptThread| (thread.parent, thread.before) == (parent, before);
        // The first thread has no parent, whatever the file says.
        if let Some(index) = threads().iter().skip(1).position(is_it) {
            register(new, index as u32 + 1);
        }
    }
}

unsafe fn register(t: *mut Thread, index: u32) {
    // SAFETY: by the caller's promise.
    unsafe {
        (*t).script = index + 1;
        id_of(index).store((*t).id, Ordering::SeqCst);
        if next().is_some_and(|step| step.thread == index) {
            WANTED.store((*t).id, Ordering::SeqCst);
        }
    }
}

/// A thread has written a record: it may be the next step.
///
/// # Safety
/// The caller holds the token.
#[cold]
pub(super) unsafe fn stepped(t: *mut Thread, tag: u8, pc: usize, (address, value): (usize, u64)) {
    let tag = if tag < 2 * ACCESSES { tag & !INEXACT } else { tag };
    if tag >= 2 * ACCESSES && !Tag::from_code(tag).is_some_and(Tag::is_step) {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let number = (*t).steps;
        (*t).steps += 1;
        let at = CURSOR.load(Ordering::Relaxed);
        let Some(next) = step(at) else { return };
        let since = SINCE.load(Ordering::Relaxed) + 1;
        SINCE.store(since, Ordering::Relaxed);
        if since > script().patience {
            return diverge(t, replay::LOST, (tag, pc, value));
        }
        if (*t).script != next.thread + 1 {
            // What belongs to the hook of an earlier step cannot be separated from it.
            return happened_early(t, at, (tag, pc, address), number);
        }
        let expects = (tag, pc, value);
        if script().mode == replay::SWITCH {
            if !counts(next, tag, pc) {
                return;
            }
            (*t).alike += 1;
            if (*t).alike == next.number {
                if tag != next.tag {
                    return diverge(t, replay::OTHER_STEP, expects);
                }
                (*t).alike = 0;
                hold_at(at);
                log::note_met(address);
                advance();
            }
            return;
        }
        let before = (*t).stored;
        (*t).stored = if is_store(tag) { (tag, pc, number, address) } else { (0, 0, 0, 0) };
        if number < next.number {
            return;
        }
        match difference(next, expects).filter(|_| number == next.number) {
            None if number == next.number => {
                hold_at(at);
                log::note_met(address);
                advance();
            }
            Some(_) if is_store(tag) && is_next_store(t, at, expects, address) => {}
            Some(_)
                if before.2 + 1 == number
                    && is_store(before.0)
                    && is_alike(next, before.0, before.1) =>
            {
                // The store was the step before, so this is the one after it.
                log::note_met(before.3);
                advance();
                (*t).steps = number;
                stepped(t, tag, pc, (address, value));
            }
            None => diverge(t, replay::OTHER_STEP, expects),
            Some(reason) => diverge(t, reason, expects),
        }
    }
}

/// Whether a tag is that of a plain store. Its record comes at the thread's next hook or, as long as the memory is unchanged, at
/// the one after that, because compilers may put a hook before the store. So a store of the value that is there may be recorded one
/// step later than a store that changes something.
fn is_store(tag: u8) -> bool {
    tag < ACCESSES && tag >> 3 == Access::Write as u8
}

/// Whether a store that comes in place of the next step is the thread's step after that. Then the two are exchanged.
unsafe fn is_next_store(
    t: *mut Thread,
    at: u64,
    expects: (u8, usize, u64),
    address: usize,
) -> bool {
    // SAFETY: the caller holds the token; the mapping is private and writable.
    unsafe {
        let steps = core::slice::from_raw_parts_mut(first_step(), script().steps as usize);
        let mut mine = steps.iter_mut().skip(at as usize).filter(|s| s.thread + 1 == (*t).script);
        let (Some(next), Some(store)) = (mine.next(), mine.next()) else { return false };
        let is_it = store.number == next.number + 1 && difference(store, expects).is_none();
        if is_it {
            done(store, address);
            next.number += 1;
        }
        is_it
    }
}

/// Holds all threads if the step at which they are to be held is the next one, and `t` is about to take it: its next record
/// is that step or, where only changes of threads are awaited, may be.
///
/// # Safety
/// In a hook of `t`, which has the token.
pub(super) unsafe fn before_step(t: *mut Thread) {
    let at = CURSOR.load(Ordering::Relaxed);
    if at != script().stop {
        return;
    }
    // SAFETY: by the caller's promise.
    let is_there = step(at).is_some_and(|step| unsafe {
        let is_near = match script().mode {
            replay::SWITCH => (*t).alike + 1 >= step.number,
            _ => (*t).steps >= step.number,
        };
        (*t).script == step.thread + 1 && is_near
    });
    if is_there {
        hold_at(at);
    }
}

/// Holds all threads if that was not done yet and is to be done at this step.
fn hold_at(at: u64) {
    if at != script().stop || !hold::is_first() {
        return;
    }
    for (thread, index) in threads().iter().zip(0..) {
        let id = id_of(index).load(Ordering::Relaxed);
        if id != 0 {
            // SAFETY: threads are never moved, and this number is set before the thread's first step.
            hold::name(unsafe { (*thread::get(id)).tid }, &thread.name);
        }
    }
    log::note_replay(replay::HELD, 0, at);
    hold::until_released();
    log::note_replay(replay::FOLLOWING, 0, at);
}

/// Whether a record has the kind and the place of a step.
fn is_alike(step: &ScriptStep, tag: u8, pc: usize) -> bool {
    tag == step.tag && is_at(step, pc)
}

/// Whether a record is one of those among which a step is counted.
fn counts(step: &ScriptStep, tag: u8, pc: usize) -> bool {
    is_at(step, pc) && replay::counts(step.tag, tag)
}

fn is_at(step: &ScriptStep, pc: usize) -> bool {
    const PAGE: u64 = 0xfff;
    match step.flags & replay::IN_PROGRAM {
        0 => (pc as u64 ^ step.place) & PAGE == 0,
        _ => pc.wrapping_sub(PROGRAM.load(Ordering::Relaxed)) as u64 == step.place,
    }
}

/// How a record differs from a step.
fn difference(step: &ScriptStep, (tag, pc, value): (u8, usize, u64)) -> Option<u32> {
    if tag != step.tag {
        Some(replay::OTHER_STEP)
    } else if !is_at(step, pc) {
        Some(replay::OTHER_PLACE)
    } else if step.flags & replay::HAS_VALUE != 0 && value != step.value {
        Some(replay::OTHER_VALUE)
    } else {
        None
    }
}

/// A step was taken before its turn. Its value is not needed any more, and its address is.
fn done(step: &mut ScriptStep, address: usize) {
    step.flags |= replay::DONE;
    step.value = address as u64;
}

/// Marks a step that a thread takes before its turn.
unsafe fn happened_early(
    t: *mut Thread,
    at: u64,
    (tag, pc, address): (u8, usize, usize),
    number: u64,
) {
    // SAFETY: the caller holds the token; the mapping is private and writable.
    unsafe {
        let steps = core::slice::from_raw_parts_mut(first_step(), script().steps as usize);
        let mine = steps.iter_mut().skip(at as usize);
        let mine = mine.filter(|step| step.flags & replay::DONE == 0);
        let Some(step) = mine.into_iter().find(|step| step.thread + 1 == (*t).script) else {
            return;
        };
        match script().mode {
            replay::SWITCH if counts(step, tag, pc) => {
                (*t).alike += 1;
                if (*t).alike == step.number && tag == step.tag {
                    (*t).alike = 0;
                    done(step, address);
                }
            }
            replay::STRICT if number == step.number && tag == step.tag => {
                done(step, address);
            }
            _ => {}
        }
    }
}

/// A thread is about to wait for something that it cannot have. That is wrong, unless the schedule says so.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn blocks(t: *mut Thread, tag: Tag, pc: usize, object: usize) {
    if !is_following() {
        return;
    }
    let Some(step) = next() else { return };
    // SAFETY: by the caller's promise.
    unsafe {
        if (*t).script == step.thread + 1 && is_alike(step, tag as u8, pc) {
            hold_at(CURSOR.load(Ordering::Relaxed));
            advance();
        } else {
            diverge(t, replay::BUSY, (tag as u8, pc, object as u64));
        }
    }
}

/// Whether the thread's next step is an attempt here that fails, or a wait that times out. All such steps are listed.
///
/// # Safety
/// In a hook of `t`, or where it waits.
pub(super) unsafe fn is_to_fail(t: *mut Thread, pc: usize) -> bool {
    // SAFETY: by the caller's promise.
    is_following()
        && next().is_some_and(|step| unsafe {
            let is_near = match script().mode {
                replay::STRICT => (*t).steps == step.number,
                _ => (*t).alike + 1 == step.number,
            };
            let is_failure = replay::is_failure(step.tag) || step.flags & replay::TIMED_OUT != 0;
            step.thread + 1 == (*t).script && is_near && is_failure && is_at(step, pc)
        })
}

/// Whether the thread's next step is to receive something here.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn is_to_receive(t: *mut Thread, pc: usize) -> bool {
    // SAFETY: by the caller's promise.
    is_following()
        && next().is_some_and(|step| unsafe {
            step.thread + 1 == (*t).script && is_alike(step, Tag::Receive as u8, pc)
        })
}

/// Whether the schedule says that a store which was announced comes before anything else that the thread does, so that it is
/// not the target of a copy although the memory is unchanged: it may store the value that is there.
///
/// # Safety
/// The caller is `t`.
pub(super) unsafe fn stores_first(t: *mut Thread) -> bool {
    if !is_following() || script().mode != replay::STRICT {
        return false;
    }
    // SAFETY: by the caller's promise.
    next().is_some_and(|step| unsafe {
        let is_next = step.thread + 1 == (*t).script && step.number == (*t).steps;
        let is_access = step.tag < ACCESSES;
        is_next && is_access && Access::from_code(step.tag >> 3).is_some_and(Access::writes)
    })
}

/// A thread got what it should wait for.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn got(t: *mut Thread, pc: usize) {
    const REQUESTS: [u8; 2] = [Tag::Request as u8, Tag::RequestSem as u8];
    if !is_following() {
        return;
    }
    // SAFETY: by the caller's promise.
    unsafe {
        let is_request = |step: &ScriptStep| {
            step.thread + 1 == (*t).script && REQUESTS.contains(&step.tag) && is_at(step, pc)
        };
        // In switch mode the same place may have been passed before.
        if script().mode == replay::STRICT && next().is_some_and(is_request) {
            let number = next().map_or(0, |step| step.number);
            if (*t).steps == number {
                diverge(t, replay::DID_NOT_BLOCK, (Tag::Acquire as u8, pc, 0));
            }
        }
    }
}

/// A thread is about to wait for the end of another, which the schedule may list as its last step.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn awaits_end(t: *mut Thread, pc: usize) {
    // SAFETY: by the caller's promise.
    let is_it = |step: &ScriptStep| unsafe {
        step.thread + 1 == (*t).script && is_alike(step, Tag::RequestEnd as u8, pc)
    };
    if is_following() && next().is_some_and(is_it) {
        advance();
    }
}

/// A thread ends.
///
/// # Safety
/// The caller is `t`, after its last step.
pub(super) unsafe fn ends(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe {
        if is_following() && next().is_some_and(|step| step.thread + 1 == (*t).script) {
            diverge(t, replay::ENDED, (Tag::ThreadEnd as u8, 0, 0));
        }
    }
}

/// The next step is taken.
fn advance() {
    let mut at = CURSOR.load(Ordering::Relaxed).wrapping_add(1);
    while let Some(step) = step(at).filter(|step| step.flags & replay::DONE != 0) {
        log::note_met(step.value as usize);
        at += 1;
    }
    CURSOR.store(at, Ordering::SeqCst);
    SINCE.store(0, Ordering::Relaxed);
    let Some(step) = step(at) else {
        STATE.store(replay::FOLLOWED, Ordering::SeqCst);
        return log::note_replay(replay::FOLLOWED, 0, at);
    };
    log::note_replay(replay::FOLLOWING, 0, at);
    let id = match step.thread < script().threads {
        true => id_of(step.thread).load(Ordering::SeqCst),
        false => 0,
    };
    if id == 0 {
        // The first thread has not begun when the schedule is read.
        WANTED.store(NO_THREAD, Ordering::SeqCst);
        if at > 0 {
            end(replay::NOT_STARTED, at, [u64::from(step.thread), 0, 0, 0]);
        }
        return;
    }
    WANTED.store(id, Ordering::SeqCst);
    // SAFETY: threads are never moved.
    unsafe {
        let other = thread::get(id);
        if (*other).life.load(Ordering::SeqCst) == life::ENDED {
            end(replay::ENDED, at, [u64::from(step.thread), 0, 0, 0]);
        }
        if (*other).sleeps_on.load(Ordering::SeqCst) != 0 {
            sys::futex_wake(&(*other).woken, 1);
        }
    }
}

/// A thread did something else than the next step.
unsafe fn diverge(t: *mut Thread, reason: u32, (tag, pc, value): (u8, usize, u64)) {
    // SAFETY: a thread that the caller acts for.
    let thread = unsafe { u64::from((*t).script.wrapping_sub(1)) };
    let got = [thread, u64::from(tag), pc as u64, value];
    end(reason, CURSOR.load(Ordering::Relaxed), got);
}

/// Ends the process, whose execution is of no use any more.
fn end(reason: u32, at: u64, got: [u64; 4]) {
    log::note_got(got);
    log::note_replay(replay::DIVERGED, reason, at);
    sys::abort()
}

/// Which of the waiting threads gets the token after the end of the schedule: the thread of the last step, or any but that one.
pub(super) fn preferred() -> Option<(u32, bool)> {
    if STATE.load(Ordering::Relaxed) != replay::FOLLOWED {
        return None;
    }
    let is_first = match script().after {
        replay::VIOLATOR_FIRST => true,
        replay::OTHERS_FIRST => false,
        _ => return None,
    };
    let last = step(script().steps.checked_sub(1)?)?;
    let id = if last.thread < script().threads { id_of(last.thread) } else { return None };
    Some((id.load(Ordering::Relaxed), is_first))
}

/// Whether a thread keeps the token as long as it can, after the end of the schedule.
pub(super) fn is_patient(id: u32) -> bool {
    preferred().is_some_and(|(violator, is_first)| (violator == id) == is_first)
}

/// Wakes a thread that waits for a condition, or all of them: of several, the one whose wait ends first in the schedule.
pub(super) fn notify(cond: usize, all: bool) {
    let waiting = |id: u32| {
        let t = thread::get(id);
        // SAFETY: threads are never moved.
        unsafe {
            (*t).sleeps_on.load(Ordering::SeqCst) == cond && (*t).woken.load(Ordering::SeqCst) == 0
        }
    };
    let wake = |id: u32| {
        // SAFETY: as above.
        let woken = unsafe { &(*thread::get(id)).woken };
        woken.store(1, Ordering::SeqCst);
        sys::futex_wake(woken, 1);
    };
    if all {
        return (1..thread::count()).filter(|&id| waiting(id)).for_each(wake);
    }
    let mut chosen = None;
    if is_following() {
        let rest = (CURSOR.load(Ordering::Relaxed)..script().steps).filter_map(step);
        let ends = rest.filter(|step| step.tag == Tag::WaitEnd as u8);
        let ends = ends.filter(|step| step.thread < script().threads);
        chosen = ends
            .map(|step| id_of(step.thread).load(Ordering::Relaxed))
            .find(|&id| id != 0 && waiting(id));
    }
    if let Some(id) = chosen.or_else(|| (1..thread::count()).find(|&id| waiting(id))) {
        wake(id);
    }
}

/// If threads need not sleep, lets time pass for them, in nanoseconds.
pub(super) fn skips(time: u64) -> bool {
    let is_skipped = is_following() && script().sleeps == 0;
    if is_skipped {
        AHEAD.fetch_add(time, Ordering::Relaxed);
    }
    is_skipped
}

/// How far the program's clocks are ahead, in nanoseconds.
pub(super) fn ahead() -> u64 {
    AHEAD.load(Ordering::Relaxed)
}
