//! The log: writes records to a mapped buffer, and the buffer to a file.
//!
//! Only the holder of the token writes or, in the free-running mode, the holder of [`LOCK`].

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, compiler_fence};

use super::callers::{self, Change};
use super::file::File;
use super::sys::{self, Text};
use super::thread::Thread;
use super::{config, gate, token};
use crate::format::{
    BUFFER_AT, CHUNK_HEAD, CHUNK_MAGIC, Call, DELAYED_MAX, Head, LOST, MAGIC, PC_SIZES, POINTER,
    RECORD_MAX, SIZES, STACK, Tag, VERSION, checksum, last, neighbourhood, pc_code, size_code,
    zigzag,
};

/// The size of the buffer: large enough to make writing it cheap, small enough to stay in the
/// cache.
const CAPACITY: usize = 512 * 1024;

struct Log {
    head: *mut Head,
    buffer: *mut u8,
    /// Where the next record goes.
    at: usize,
    file: File,
    /// What the next record is relative to.
    pc: u64,
    addresses: [u64; 2],
    thread: u32,
}

struct Shared(UnsafeCell<Log>);
// SAFETY: used only by the holder of the token or of LOCK.
unsafe impl Sync for Shared {}

static LOG: Shared = Shared(UnsafeCell::new(Log {
    head: core::ptr::null_mut(),
    buffer: core::ptr::null_mut(),
    at: 0,
    file: File::NONE,
    pc: 0,
    addresses: [0; 2],
    thread: 0,
}));

/// Protects the log in the free-running mode.
static LOCK: AtomicBool = AtomicBool::new(false);

/// Makes an atomic access and its note one step in the free-running mode.
static STEP: AtomicBool = AtomicBool::new(false);

fn take(lock: &AtomicBool) {
    if config::free_running() {
        while lock.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
    }
}

fn give(lock: &AtomicBool) {
    if config::free_running() {
        lock.store(false, Ordering::Release);
    }
}

fn lock() {
    take(&LOCK);
}

fn unlock() {
    give(&LOCK);
}

/// Begins an atomic access that must be noted before any other one happens.
pub(super) fn begin_step() {
    take(&STEP);
}

/// Ends what [`begin_step`] began.
pub(super) fn end_step() {
    give(&STEP);
}

/// Locks the log while the process forks.
pub(super) fn freeze() {
    begin_step();
    lock();
}

/// Ends what [`freeze`] began.
pub(super) fn thaw() {
    unlock();
    end_step();
}

/// A path of this process. Not on the stack: that of a thread which forks may be small.
struct Path(UnsafeCell<Text<4096>>);
// SAFETY: used only while the process has one thread that runs, and by the holder of the token or of LOCK.
unsafe impl Sync for Path {}

/// The path of the file that the buffer is appended to, and some other.
static LOG_PATH: Path = Path(UnsafeCell::new(Text::new()));
static OTHER_PATH: Path = Path(UnsafeCell::new(Text::new()));

impl Path {
    /// Makes it `directory/process.number.ending`.
    fn set(&self, process: u32, number: u64, ending: &[u8]) -> *const u8 {
        // SAFETY: nothing else uses it, see above.
        let path = unsafe { &mut *self.0.get() };
        path.clear();
        path.push(config::directory()).push(b"/").number(u64::from(process));
        path.push(b".").number(number).push(b".").push(ending);
        path.as_ptr()
    }
}

/// Opens a new log in the directory of the environment; otherwise returns the error number.
pub(super) fn open(forked_from: u32) -> Result<(), u32> {
    let pid = sys::process_id();
    let size = BUFFER_AT + CAPACITY;
    // Beyond the limit, the kernel would send a signal to the program.
    if size as u64 > sys::limit(sys::RLIMIT_FSIZE) {
        return Err(sys::EFBIG);
    }
    for image in 0..10_000u64 {
        let tail_path = OTHER_PATH.set(pid, image, b"tail");
        let flags = sys::O_RDWR | sys::O_CREAT | sys::O_EXCL | sys::O_CLOEXEC;
        // SAFETY: the paths are C strings; the descriptors and the mapping are ours.
        unsafe {
            let tail = sys::syscall!(sys::OPENAT, -100isize, tail_path, flags, 0o600);
            if tail == sys::EEXIST {
                continue;
            }
            if tail < 0 {
                return Err(-tail as u32);
            }
            // Unallocated blocks would cause a SIGBUS in the program, at some store.
            let ready = sys::syscall!(sys::FALLOCATE, tail, 0, 0, size);
            if ready != 0 {
                sys::syscall!(sys::CLOSE, tail);
                sys::syscall!(sys::UNLINK, tail_path);
                return Err(-ready as u32);
            }
            let log = &mut *LOG.0.get();
            let (at, flags) = match log.head.is_null() {
                true => (core::ptr::null_mut(), sys::MAP_SHARED),
                false => (log.head.cast(), sys::MAP_SHARED | sys::MAP_FIXED),
            };
            let map = sys::map(at, size, flags, tail);
            sys::syscall!(sys::CLOSE, tail);
            if map.is_null() {
                sys::syscall!(sys::UNLINK, tail_path);
                return Err(sys::ENOMEM);
            }
            let file = File::create(LOG_PATH.set(pid, image, b"log"));
            *log = Log {
                head: map.cast(),
                buffer: map.add(BUFFER_AT),
                at: CHUNK_HEAD,
                file,
                pc: 0,
                addresses: [0; 2],
                thread: 0,
            };
            log.head.write(Head {
                magic: 0,
                version: VERSION,
                mode: u32::from(config::free_running()),
                filter: u32::from(config::filter()),
                pid,
                forked_from,
                state: 0,
                error: 0,
                takes: 0,
                base: 0,
                end: CHUNK_HEAD as u64,
                capacity: CAPACITY as u64,
                hooks: 0,
                pending: [0; 4],
                started: sys::now(),
                last: [0; 4],
                living: 0,
                blocked: 0,
                changes: 0,
                handlers: 0,
                lost: 0,
                lost_processes: [[0; 2]; LOST],
                stack: [0; STACK],
                replay: [0; 2],
                replay_at: 0,
                replay_got: [0; 4],
                replay_met: [0; 2],
            });
            compiler_fence(Ordering::Release);
            (*log.head).magic = MAGIC;
        }
        return Ok(());
    }
    Err(sys::EEXIST.unsigned_abs() as u32)
}

/// Reports that this process cannot be recorded, with the error number: in the directory, without needing a descriptor; or,
/// if this process may not write there any more, in the log of the process that forked it.
pub(super) fn report_loss(error: u32) {
    let pid = sys::process_id();
    let path = OTHER_PATH.set(pid, u64::from(error), b"lost");
    // SAFETY: the path is a C string.
    if unsafe { sys::syscall!(sys::MKDIR, path, 0o700) } == 0 {
        return;
    }
    // SAFETY: the head is mapped once there is a log, also in the child of a fork.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            let at = AtomicU32::from_ptr(&raw mut (*head).lost).fetch_add(1, Ordering::SeqCst);
            if let Some(entry) = (*head).lost_processes.get_mut(at as usize) {
                *entry = [pid, error];
            }
        }
    }
}

/// A process that is about to become another program: if that cannot write a log, reports it.
pub(super) fn note_successor() {
    const WRITE_AND_SEARCH: usize = 3;
    const EFFECTIVE: usize = 0x200;
    // SAFETY: the path is a C string.
    let out = unsafe {
        let path = config::directory().as_ptr();
        sys::syscall!(sys::FACCESSAT2, -100isize, path, WRITE_AND_SEARCH, EFFECTIVE)
    };
    if out == -(sys::EACCES as isize) {
        report_loss(sys::EACCES);
    }
}

impl Log {
    #[inline(always)]
    unsafe fn number(&mut self, n: u64, size: usize) {
        // SAFETY: there is always room for RECORD_MAX bytes behind `at`.
        unsafe { self.buffer.add(self.at).cast::<u64>().write_unaligned(n.to_le()) };
        self.at += size;
    }

    #[inline(always)]
    unsafe fn record(&mut self, mut tag: u8, pc: u64, address: u64, mut value: u64) {
        if tag & 0x87 == 3 && value >> 40 != 0 {
            let near = zigzag(value.wrapping_sub(address));
            if near < value {
                (tag, value) = (tag & !7 | POINTER, near);
            }
        }
        let pc_step = zigzag(pc.wrapping_sub(self.pc));
        let near = &mut self.addresses[neighbourhood(tag)];
        let address_step = zigzag(address.wrapping_sub(*near));
        *near = address;
        self.pc = pc;
        let (p, a, v) = (pc_code(pc_step), size_code(address_step), size_code(value));
        let lengths = (p | a << 2 | v << 5) as u64;
        // SAFETY: as in `number`.
        unsafe {
            self.number(u64::from(tag) | lengths << 8, 2);
            self.number(pc_step, PC_SIZES[p]);
            self.number(address_step, SIZES[a]);
            self.number(value, SIZES[v]);
        }
    }

    unsafe fn begin(&mut self, thread: u32) {
        // SAFETY: the buffer has CAPACITY bytes.
        unsafe {
            if self.at + 2 * RECORD_MAX > CAPACITY {
                self.flush();
            }
            if self.thread != thread {
                let (pc, address) = (self.pc, self.addresses[1]);
                self.record(Tag::Switch as u8, pc, address, u64::from(thread));
                self.thread = thread;
            }
        }
    }

    /// Writes what has changed in the call stack of a thread.
    unsafe fn callers(&mut self, t: *mut Thread) {
        // SAFETY: as in `put_with`.
        unsafe {
            let id = (*t).id;
            callers::changes(t, |change| {
                if !config::recording() {
                    return;
                }
                let near = self.addresses[1];
                match change {
                    Change::Returned(count) => {
                        self.record(Tag::Return as u8, self.pc, near, u64::from(count));
                    }
                    Change::Called { returned, at, from, below } => {
                        let (returned, at, from) = (u64::from(returned), at as u64, from as u64);
                        match (Call { returned, from }).encode(at) {
                            Some(value) => self.record(Tag::Call as u8, at, below as u64, value),
                            None => self.record(Tag::CallFrom as u8, at, from, returned),
                        }
                    }
                    Change::Unknown => self.record(Tag::StackUnknown as u8, self.pc, near, 0),
                }
                self.begin(id);
            });
        }
    }

    #[inline(always)]
    unsafe fn commit(&mut self) {
        // SAFETY: the head is mapped as long as the process lives. The records are in memory before the new end is, and
        // the mapped memory outlives the process.
        unsafe {
            let end = (*self.head).base + self.at as u64;
            AtomicU64::from_ptr(&raw mut (*self.head).end).store(end, Ordering::Release);
        }
    }

    /// Appends the buffer to the file and begins a new one.
    unsafe fn flush(&mut self) {
        if self.at == CHUNK_HEAD {
            return;
        }
        // SAFETY: the buffer holds `at` bytes, of which the first are the chunk's header.
        unsafe {
            let payload =
                core::slice::from_raw_parts(self.buffer.add(CHUNK_HEAD), self.at - CHUNK_HEAD);
            let head = self.buffer.cast::<u64>();
            head.write(u64::from(CHUNK_MAGIC) | (payload.len() as u64) << 32);
            head.add(1).write(checksum(payload));
            head.add(2).write(0);
            let base = (*self.head).base;
            if base + self.at as u64 > config::limit() || config::is_abandoned() {
                return self.stop(3, 0);
            }
            let bytes = core::slice::from_raw_parts(self.buffer, self.at);
            if let Err(error) = self.file.write(bytes, base) {
                return self.stop(2, error);
            }
            // In this order: a kill in between leaves an empty buffer, not one that is read twice.
            let (base_word, end_word) = (&raw mut (*self.head).base, &raw mut (*self.head).end);
            AtomicU64::from_ptr(base_word).store(base + self.at as u64, Ordering::Release);
            AtomicU64::from_ptr(end_word)
                .store(base + (self.at + CHUNK_HEAD) as u64, Ordering::Release);
        }
        (self.at, self.pc, self.addresses, self.thread) = (CHUNK_HEAD, 0, [0; 2], 0);
    }

    /// Stops recording. The contents of the buffer are complete and remain readable.
    unsafe fn stop(&mut self, state: u32, error: u32) {
        // SAFETY: the head is mapped.
        unsafe {
            (*self.head).error = error;
            (*self.head).state = state;
        }
        config::stop();
        gate::off();
        token::open_for_all();
    }
}

/// Writes a record of `t`.
///
/// # Safety
/// The caller holds the token, or the mode is free-running.
pub(super) unsafe fn put(t: *mut Thread, tag: u8, pc: usize, address: usize, value: u64) {
    // SAFETY: by the caller's promise, and under the lock if necessary.
    unsafe { put_with(t, tag, pc, address, value, &[]) }
}

/// Whether the next records of `t` need nothing before them, neither room nor what the thread has called; then
/// [`put_ready`] can write two, one of which may have bytes.
///
/// # Safety
/// The caller is `t`, in a hook, and holds the token.
#[inline(always)]
pub(super) unsafe fn is_ready(t: *mut Thread) -> bool {
    // SAFETY: the log is ours while the token is.
    unsafe {
        let log = &*LOG.0.get();
        log.thread == (*t).id
            && log.at + 4 * RECORD_MAX <= CAPACITY
            && config::recording()
            && !(*t).callers.has_moved
            && !gate::is_following()
    }
}

/// The same as [`put`], where that [has nothing else to do](is_ready).
///
/// # Safety
/// The caller holds the token, and the log is ready for `t`.
#[inline(always)]
pub(super) unsafe fn put_ready(t: *mut Thread, tag: u8, pc: usize, address: usize, value: u64) {
    // SAFETY: the log is ours while the token is.
    unsafe {
        let log = &mut *LOG.0.get();
        log.record(tag, pc as u64, address as u64, value);
        log.commit();
        (*t).place += 1;
    }
}

/// Writes a record of `t` that bytes follow.
///
/// # Safety
/// As [`put`]; at most 4096 bytes.
pub(super) unsafe fn put_with(
    t: *mut Thread,
    tag: u8,
    pc: usize,
    address: usize,
    value: u64,
    bytes: &[u8],
) {
    lock();
    // SAFETY: the log is ours while the lock or the token is.
    unsafe {
        let log = &mut *LOG.0.get();
        if config::recording() {
            log.begin((*t).id);
        }
        if (*t).callers.has_moved && !(*t).callers.is_behind && config::recording() {
            log.callers(t);
        }
        // Making room may have ended the recording.
        if config::recording() {
            log.record(tag, pc as u64, address as u64, value);
            if !bytes.is_empty() {
                core::ptr::copy_nonoverlapping(bytes.as_ptr(), log.buffer.add(log.at), bytes.len());
                log.at += bytes.len();
            }
            log.commit();
            (*t).place += 1;
            if gate::is_following() {
                gate::stepped(t, tag, pc, (address, value));
            }
        }
    }
    unlock();
}

/// Records what has changed in the call stack of `t`, for an access that is recorded later.
///
/// # Safety
/// As [`put`].
pub(super) unsafe fn tell_callers(t: *mut Thread) {
    // SAFETY: the thread's own state; the log is ours while the lock or the token is.
    unsafe {
        if !(*t).callers.has_moved {
            return;
        }
        lock();
        let log = &mut *LOG.0.get();
        if config::recording() {
            log.begin((*t).id);
        }
        if config::recording() {
            log.callers(t);
            log.commit();
        }
        unlock();
    }
}

/// Records that `t` has the token, unless it had it all the time. So every stretch of a thread
/// begins with a record, and it is known which threads may have written memory without a hook.
///
/// # Safety
/// The caller is `t` and holds the token.
pub(super) unsafe fn put_turn(t: *mut Thread) {
    // SAFETY: the log is ours while the token is.
    unsafe {
        let log = &*LOG.0.get();
        if log.thread != (*t).id {
            // The smallest difference from the previous record is the shortest.
            put(t, Tag::Turn as u8, log.pc as usize, log.addresses[1] as usize, 0);
        }
    }
}

/// Writes a record that is not counted as one of `t`'s.
///
/// # Safety
/// As [`put_with`].
pub(super) unsafe fn put_uncounted(
    t: *mut Thread,
    tag: Tag,
    address: usize,
    value: u64,
    bytes: &[u8],
) {
    // SAFETY: as above.
    unsafe {
        let place = (*t).place;
        put_with(t, tag as u8, 0, address, value, bytes);
        (*t).place = place;
    }
}

/// The same with a return address, for a record without bytes.
///
/// # Safety
/// As [`put`].
pub(super) unsafe fn put_uncounted_at(
    t: *mut Thread,
    tag: Tag,
    pc: usize,
    address: usize,
    value: u64,
) {
    // SAFETY: as above.
    unsafe {
        let place = (*t).place;
        put(t, tag as u8, pc, address, value);
        (*t).place = place;
    }
}

/// Writes the record of an access that was held back, by the thread that found that it matters.
/// Only the low half of its return address is known; the other is taken from the previous record,
/// which keeps the difference short.
///
/// # Safety
/// As [`put_with`].
pub(super) unsafe fn put_delayed(
    t: *mut Thread,
    address: usize,
    pc: u32,
    bytes: &[u8; DELAYED_MAX],
    len: usize,
) {
    lock();
    // SAFETY: the log is ours while the lock or the token is; there is always room after the valid part of the buffer.
    unsafe {
        let log = &mut *LOG.0.get();
        if config::recording() {
            log.begin((*t).id);
        }
        if config::recording() {
            let pc = log.pc & !0xffff_ffff | u64::from(pc);
            log.record(Tag::Delayed as u8, pc, address as u64, len as u64);
            // In words: calling `memcpy` would cost more, and call our own.
            let (from, to) = (bytes.as_ptr().cast::<u64>(), log.buffer.add(log.at).cast::<u64>());
            for i in 0..DELAYED_MAX / 8 {
                to.add(i).write_unaligned(from.add(i).read_unaligned());
            }
            log.at += len;
            log.commit();
        }
    }
    unlock();
}

/// Records in the head which store is in progress, in case it kills the program.
pub(super) unsafe fn note_pending(t: *mut Thread) {
    // SAFETY: the head is mapped; the caller holds the token.
    unsafe {
        let pending = (*t).pending;
        let head = (*LOG.0.get()).head;
        (*head).pending =
            [pending.address as u64, pending.pc as u64, pending.size as u64, u64::from((*t).id)];
    }
}

/// Records that no store is in progress.
pub(super) unsafe fn no_pending() {
    // SAFETY: as above.
    unsafe { (*(*LOG.0.get()).head).pending[2] = 0 };
}

/// Counts hooks, and takings of the token.
pub(super) unsafe fn count(hooks: u64, takes: u32) {
    // SAFETY: the head is mapped; the caller holds the token.
    unsafe {
        let head = (*LOG.0.get()).head;
        (*head).hooks += hooks;
        (*head).takes += takes;
    }
}

/// Records how the program ended itself. A failed assertion also aborts; and what happens in the
/// child of a `vfork` does not belong to this log.
pub(super) fn note_last(what: u64, pc: usize, value: u64, thread: u32) {
    // SAFETY: the head is mapped once there is a log.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() && (what != last::ABORT || (*head).last[0] != last::ASSERTION) {
            (*head).last = [what, pc as u64, value, u64::from(thread)];
        }
    }
}

/// Records the top words of a stack.
///
/// # Safety
/// `top` is the stack pointer of a thread. If its stack is less deep, the process dies here, from the same signal.
pub(super) unsafe fn note_stack(top: *const u64) {
    // SAFETY: by the caller's promise.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            for (i, word) in (*head).stack.iter_mut().enumerate() {
                *word = top.add(i).read_volatile();
            }
        }
    }
}

/// Whether this is the process of the log: the child of a `vfork` is not.
pub(super) fn is_ours() -> bool {
    // SAFETY: the head is mapped once there is a log.
    unsafe {
        let head = (*LOG.0.get()).head;
        !head.is_null() && (*head).pid == sys::process_id()
    }
}

/// Records how far a schedule was followed.
pub(super) fn note_replay(state: u32, reason: u32, at: u64) {
    // SAFETY: the head is mapped once there is a log.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            (*head).replay_at = at;
            (*head).replay[1] = reason;
            AtomicU32::from_ptr(&raw mut (*head).replay[0]).store(state, Ordering::Release);
        }
    }
}

/// Records the address of a step of the schedule that is taken.
pub(super) fn note_met(address: usize) {
    // SAFETY: as above.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            (*head).replay_met = [address as u64, (*head).replay_met[0]];
        }
    }
}

/// Records what a thread did instead of the next step of the schedule.
pub(super) fn note_got(got: [u64; 4]) {
    // SAFETY: as above.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            (*head).replay_got = got;
        }
    }
}

/// Counts living threads, and those that wait for another thread.
pub(super) fn count_threads(living: i32, blocked: i32) {
    // SAFETY: the head is mapped once there is a log; all threads update the counters atomically.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            let add = |word: *mut u32, n: i32| {
                AtomicU32::from_ptr(word).fetch_add(n as u32, Ordering::SeqCst);
            };
            add(&raw mut (*head).living, living);
            add(&raw mut (*head).blocked, blocked);
            add(&raw mut (*head).changes, 1);
        }
    }
}

/// Notes that the program has a signal handler.
pub(super) fn note_handler() {
    // SAFETY: the head is mapped once there is a log.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() {
            (*head).handlers = 1;
        }
    }
}

/// The number of hooks counted.
///
/// # Safety
/// The caller holds the token.
pub(super) unsafe fn hooks() -> u64 {
    // SAFETY: the head is mapped; only the holder of the token counts.
    unsafe { (*(*LOG.0.get()).head).hooks }
}

/// Stops recording, because there is more than can be recorded.
///
/// # Safety
/// As [`put`].
pub(super) unsafe fn give_up() {
    lock();
    // SAFETY: the log is ours while the lock or the token is.
    unsafe {
        if config::recording() {
            (*LOG.0.get()).stop(3, 0);
        }
    }
    unlock();
}

/// Records how the program ends (1), or that another replaces it (4); 0 if it continues after all.
/// Records may follow.
pub(super) fn set_state(state: u32) {
    // SAFETY: the head is mapped once recording.
    unsafe {
        let head = (*LOG.0.get()).head;
        if !head.is_null() && matches!((*head).state, 0 | 1 | 4) && config::recording() {
            (*head).state = state;
        }
    }
}
