//! Communication between threads through the kernel other than by bytes: signals, queues,
//! semaphores and messages of System V, creation and removal of files, file locks, futexes,
//! readiness.
//!
//! All of it is recorded as steps on channels (`channels.rs`). This is exact between a sender and
//! its receiver, and orders more than necessary where several things share a channel: all signals
//! are one, all files with the same name are one, and operations on a set of semaphores or a queue
//! keep their observed order.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::calls::{Call, Way, calls, stand_in_front};
use super::channels::{self, Channel};
use super::next::real;
use super::thread::Thread;
use super::{access, enter, leave, log, step_aside, sync, sys};
use crate::format::{Tag, channel};

const EAGAIN: i32 = 11;

fn error() -> i32 {
    // SAFETY: the thread's own word.
    unsafe { *sys::__errno_location() }
}

// Signals: sent before they are received, by whatever means.

const SIGNALS: Channel = Channel::made(channel::SIGNALS, 0, 0);
/// Whether the process has sent any.
static HAS_SENT: AtomicBool = AtomicBool::new(false);

impl Call {
    fn sends_signal(&mut self) {
        HAS_SENT.store(true, Relaxed);
        self.note(Tag::Send, SIGNALS);
    }

    /// A signal was received, or time was up.
    fn received_signal(&mut self, is_there: bool) {
        self.note(if is_there { Tag::Receive } else { Tag::Look }, SIGNALS);
    }
}

/// A handler is about to run.
pub(super) fn signal_arrived() {
    if HAS_SENT.load(Relaxed) {
        let t = enter();
        if !t.is_null() {
            // SAFETY: in a hook of `t`.
            unsafe {
                SIGNALS.note(t, Tag::Look, 0);
                leave(t);
            }
        }
    }
}

/// The size of a set of signals.
const SET: usize = 128;

// Sets of signals are filled by libc, and so are the keys of data of threads.
calls! {
    Inside sigemptyset(set) |c| { c.writes(set, SET); };
    Inside sigfillset(set) |c| { c.writes(set, SET); };
    Inside sigaddset(set, signal) |c| { c.reads(set, 8); c.writes(set, 8); };
    Inside sigdelset(set, signal) |c| { c.reads(set, 8); c.writes(set, 8); };
    Inside sigismember(set, signal) |c| { c.reads(set, 8); };
    Inside sigpending(set) |c| { c.writes(set, 8); };
    Inside sigprocmask(how, set, old) |c| { c.reads(set, 8); c.may_write(old, 8); } => |c, out| { c.wrote(old, 8); };
    Inside pthread_sigmask(how, set, old) |c| { c.reads(set, 8); c.may_write(old, 8); } => |c, out| { c.wrote(old, 8); };
    Inside pthread_key_create(key, end) |c| { c.writes(key, 4); };
    Inside tss_create(key, end) |c| { c.writes(key, 4); };
}

calls! {
    Outside kill(who, signal) |c| { c.sends_signal(); };
    Outside tgkill(group, who, signal) |c| { c.sends_signal(); };
    Outside pthread_kill(who, signal) |c| { c.sends_signal(); };
    Outside sigqueue(who, signal, value) |c| { c.sends_signal(); };
    Outside pthread_sigqueue(who, signal, value) |c| { c.sends_signal(); };
    Aside sigwait(set, to) |c| { c.reads(set, 8); c.may_write(to, 4); }
        => |c, out| { c.received_signal(out as i32 == 0); if out as i32 == 0 { c.wrote(to, 4); } };
    Aside sigwaitinfo(set, to) |c| { c.reads(set, 8); c.may_write(to, 128); }
        => |c, out| { c.received_signal(out as i32 > 0); if out as i32 > 0 { c.wrote(to, 128); } };
    Aside sigtimedwait(set, to, time) |c| { c.reads(set, 8); c.reads(time, 16); c.may_write(to, 128); }
        => |c, out| { c.received_signal(out as i32 > 0); if out as i32 > 0 { c.wrote(to, 128); } };
}

// Timers and the like call functions of the program in threads that libc starts by itself.

const HELPERS: Channel = Channel::made(channel::HELPERS, 0, 0);

/// The first step of a thread that was not seen to be started.
///
/// # Safety
/// In a hook of `t`.
pub(super) unsafe fn helper_began(t: *mut Thread) {
    // SAFETY: by the caller's promise.
    unsafe { HELPERS.note(t, Tag::Look, 0) }
}

calls! {
    Outside timer_create(clock, event, to) |c| { c.reads(event, 64); c.note(Tag::Send, HELPERS); c.writes(to, 8); };
    Outside timer_settime(timer, flags, new, old) |c| { c.reads(new, 32); c.note(Tag::Send, HELPERS); c.writes(old, 32); };
    Outside timerfd_settime(file, flags, new, old) |c| { c.reads(new, 32); c.sends(file); c.writes(old, 32); };
    Outside mq_notify(queue, event) |c| { c.reads(event, 64); c.note(Tag::Send, HELPERS); c.looks(queue); };
}

// Queues of messages, which Linux shows as files.
calls! {
    Outside mq_send(queue, from, n, priority) |c| { c.reads(from, n); c.sends_message(queue); };
    Outside mq_timedsend(queue, from, n, priority, time) |c| { c.reads(from, n); c.reads(time, 16); c.sends_message(queue); };
    Outside mq_receive(queue, to, n, priority) |c| { c.may_write(to, n); c.may_write(priority, 4); c.receives_message(queue); }
        => |c, out| { c.wrote_result(to, out); if out as isize >= 0 { c.wrote(priority, 4); } };
    Outside mq_timedreceive(queue, to, n, priority, time)
        |c| { c.may_write(to, n); c.may_write(priority, 4); c.reads(time, 16); c.receives_message(queue); }
        => |c, out| { c.wrote_result(to, out); if out as isize >= 0 { c.wrote(priority, 4); } };
}

// System V.
//
// What is done to a set or a queue is recorded as steps on a channel, which keep their observed order. If a program raises and lowers
// semaphores one by one and by one, as nearly all do, they are semaphores like those of libc, and recorded as such, too; the host
// chooses.

fn semaphores(id: usize) -> Channel {
    Channel::made(channel::SEMAPHORES, id as u32 as usize, id as u32)
}

fn messages(id: usize) -> Channel {
    Channel::made(channel::MESSAGES, id as u32 as usize, id as u32)
}

/// What removes or changes a set or queue, so that threads no longer wait for it.
fn control(of: Channel) -> Channel {
    Channel::made(channel::CONTROL, of.number() & 0xffff_ffff, of.number() as u32)
}

/// Whether one semaphore is changed by one; then which, and whether it is raised.
fn is_simple(list: usize, count: usize) -> Option<(u16, bool)> {
    // SAFETY: the program's own list: which one, by how much, flags.
    let [number, by, flags] = unsafe { *(list as *const [u16; 3]) };
    let is_one = count == 1 && flags == 0 && matches!(by as i16, 1 | -1);
    is_one.then_some((number, by == 1))
}

/// The semaphore that stands for something else that was done to a set.
const OTHERWISE: u16 = u16::MAX;

const IPC_RMID: i32 = 0;
const IPC_STAT: i32 = 2;
const SETVAL: i32 = 16;

impl Call {
    /// A step on a semaphore of a set.
    fn counts(&mut self, tag: Tag, id: usize, number: u16, value: u64) {
        let address = channel::semaphore(id as u32, number) as usize;
        // SAFETY: in a hook of the thread.
        unsafe { sync(self.t, tag, self.pc, address, value) }
    }

    /// Semaphores that are raised are recorded now, those that are lowered or waited for afterwards.
    fn operates(&mut self, id: usize, list: usize, count: usize) {
        self.reads(list, 6 * count);
        let mut waits = false;
        for i in 0..count {
            // SAFETY: the program's own list: which one, by how much, flags.
            let by = unsafe { *((list + 6 * i + 2) as *const i16) };
            waits |= by <= 0;
        }
        match is_simple(list, count) {
            Some((number, true)) => self.counts(Tag::SemPost, id, number, 0),
            Some((number, false)) => {
                let address = channel::semaphore(id as u32, number) as usize;
                // SAFETY: in a hook of the thread.
                unsafe {
                    access::settle(self.t);
                    log::put_uncounted_at(self.t, Tag::RequestSem, self.pc, address, 0);
                }
            }
            None => self.counts(Tag::SemValue, id, OTHERWISE, 0),
        }
        self.note(Tag::Send, semaphores(id));
        self.way = if waits { Way::Aside } else { Way::Outside };
    }

    fn operated(&mut self, id: usize, list: usize, count: usize, out: usize) {
        let is_done = out as i32 == 0;
        if let Some((number, false)) = is_simple(list, count).filter(|_| is_done) {
            self.counts(Tag::SemWait, id, number, 0);
        }
        if !is_done {
            self.note(Tag::Look, control(semaphores(id)));
        }
        let failed = !is_done && error() == EAGAIN;
        self.note(if failed { Tag::Look } else { Tag::Receive }, semaphores(id));
    }

    fn controls_set(&mut self, id: usize, which: usize, command: i32, value: usize) {
        match command {
            SETVAL => self.counts(Tag::SemInit, id, which as u16, value as u32 as u64),
            IPC_RMID | IPC_STAT => return self.note(Tag::Send, control(semaphores(id))),
            _ => self.counts(Tag::SemValue, id, OTHERWISE, 0),
        }
        self.note(Tag::Send, semaphores(id));
    }
}

calls! {
    Outside semop(id, list, count) |c| { c.operates(id, list, count); } => |c, out| { c.operated(id, list, count, out); };
    Outside semtimedop(id, list, count, time) |c| { c.reads(time, 16); c.counts(Tag::SemValue, id, OTHERWISE, 0); c.operates(id, list, count); }
        => |c, out| { c.operated(id, list, count, out); };
    Outside semctl(id, which, command, value) |c| { c.controls_set(id, which, command as i32, value); };
    Aside msgsnd(id, from, n, flags) |c| { c.reads(from, n.saturating_add(8)); c.note(Tag::Send, messages(id)); };
    Aside msgrcv(id, to, n, kind, flags) |c| { c.may_write(to, n.saturating_add(8)); } => |c, out| {
        if (out as isize) < 0 {
            c.note(Tag::Look, control(messages(id)));
        }
        c.note(if out as isize >= 0 { Tag::Receive } else { Tag::Look }, messages(id));
        if let Ok(n) = usize::try_from(out as isize) {
            c.wrote(to, n + 8);
        }
    };
    Outside msgctl(id, command, to) |c| { c.note(Tag::Send, control(messages(id))); };
}

// Named semaphores: as others, with the count that they have when the process opens them.

const NAMED: Channel = Channel::made(channel::NAMED_SEMAPHORES, 0, 0);
/// The addresses of those that are open, and how often. Beyond that many, the count is not known.
static OPEN: [[AtomicUsize; 2]; 64] = [const { [const { AtomicUsize::new(0) }; 2] }; 64];

impl Call {
    fn opened_semaphore(&mut self, semaphore: usize) {
        if semaphore == 0 {
            return;
        }
        self.note(Tag::Look, NAMED);
        let is_it = |[at, _]: &&[AtomicUsize; 2]| at.load(Relaxed) == semaphore;
        if let Some([_, times]) = OPEN.iter().find(is_it) {
            times.fetch_add(1, Relaxed);
        } else if let Some([at, times]) = OPEN.iter().find(|[at, _]| at.load(Relaxed) == 0) {
            at.store(semaphore, Relaxed);
            times.store(1, Relaxed);
            let mut count = 0i32;
            if real!(sem_getvalue(semaphore => usize, &raw mut count => *mut i32) -> i32) == 0 {
                // SAFETY: in a hook of the thread.
                unsafe { sync(self.t, Tag::SemInit, self.pc, semaphore, count.max(0) as u64) }
            }
        }
    }

    fn closes_semaphore(&mut self, semaphore: usize) {
        self.note(Tag::Send, NAMED);
        let is_it = |[at, _]: &&[AtomicUsize; 2]| at.load(Relaxed) == semaphore;
        if let Some([at, times]) = OPEN.iter().find(is_it)
            && times.fetch_sub(1, Relaxed) == 1
        {
            at.store(0, Relaxed);
        }
    }
}

calls! {
    Outside sem_open(name, flags, mode, count) |c| { c.reads_text(name); } => |c, out| { c.opened_semaphore(out); };
    Outside sem_close(semaphore) |c| { c.closes_semaphore(semaphore); };
}

// Existence of files: by the last part of the name, because there are many paths to a file.

const NAMES: Channel = Channel::made(channel::FILE_NAMES, 0, 0);

fn file_name(path: usize) -> Channel {
    // SAFETY: a C string of the program's.
    let path = unsafe { sys::bytes(path as *const _) };
    let end = path.iter().rposition(|&b| b != b'/').map_or(0, |i| i + 1);
    let start = path[..end].iter().rposition(|&b| b == b'/').map_or(0, |i| i + 1);
    let hash = path[start..end].iter().fold(0xcbf2_9ce4_8422_2325, |h: usize, &b| {
        (h ^ usize::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    Channel::made(channel::FILE_NAME, hash & 0x00ff_ffff_ffff_ffff, hash as u32)
}

impl Call {
    /// A file with that name is, or may be, created or removed.
    pub(super) fn changes_name(&mut self, path: usize) {
        if path != 0 {
            self.note(Tag::Send, file_name(path));
            self.note(Tag::Send, NAMES);
        }
    }

    /// The result depends on whether a file with that name exists.
    pub(super) fn looks_at_name(&mut self, path: usize) {
        if path != 0 {
            self.note(Tag::Look, file_name(path));
        }
    }

    /// The result depends on which files exist.
    pub(super) fn looks_at_names(&mut self) {
        self.note(Tag::Look, NAMES);
    }

    /// A file is opened, and perhaps created.
    pub(super) fn opens_with(&mut self, path: usize, flags: usize) {
        const CREATE: usize = 0o100;
        if flags & CREATE != 0 { self.changes_name(path) } else { self.looks_at_name(path) }
    }

    /// The same for `fopen`.
    pub(super) fn opens(&mut self, path: usize, mode: usize) {
        // SAFETY: a C string of the program's.
        let mode = unsafe { sys::bytes(mode as *const _) };
        if mode.first() == Some(&b'r') { self.looks_at_name(path) } else { self.changes_name(path) }
    }
}

// File locks belong to the open file, not to the thread: they are released before they are acquired.

static HAS_LOCKED: AtomicBool = AtomicBool::new(false);
const UNLOCK: usize = 8;

fn file_lock(file: usize) -> Option<Channel> {
    channels::channel(file).map(|c| Channel::made(channel::FILE_LOCK, c.number(), file as u32))
}

impl Call {
    fn gives_file(&mut self, file: usize) {
        if let Some(channel) = file_lock(file) {
            self.note(Tag::Send, channel);
        }
    }

    fn took_file(&mut self, file: usize, out: usize) {
        HAS_LOCKED.store(true, Relaxed);
        if let Some(channel) = file_lock(file) {
            self.note(if out as i32 == 0 { Tag::Receive } else { Tag::Look }, channel);
        }
    }
}

const OFD_SETLK: u32 = 37;
const OFD_SETLKW: u32 = 38;
const DUPFD: u32 = 0;
const DUPFD_CLOEXEC: u32 = 1030;

/// A lock on part of a file is acquired or released.
fn is_unlock(lock: usize) -> bool {
    // SAFETY: the program's own structure, which begins with the kind.
    unsafe { *(lock as *const i16) == 2 }
}

calls! {
    Outside flock(file, how) |c| {
        if how & UNLOCK != 0 { c.gives_file(file); } else { c.way = Way::Aside; }
    } => |c, out| { if how & UNLOCK == 0 { c.took_file(file, out); } };
    Outside fcntl(file, command, argument) |c| { c.controls(file, command, argument); } => |c, out| { c.controlled(file, command, argument, out); };
    Outside fcntl64(file, command, argument) |c| { c.controls(file, command, argument); } => |c, out| { c.controlled(file, command, argument, out); };
    Outside close(file) |c| { c.sends(file); c.gives_number(file); if HAS_LOCKED.load(Relaxed) { c.gives_file(file); } };
}

impl Call {
    fn controls(&mut self, file: usize, command: usize, argument: usize) {
        if matches!(command as u32, OFD_SETLK | OFD_SETLKW) {
            self.reads(argument, 32);
            if is_unlock(argument) {
                self.gives_file(file);
            } else {
                self.way = Way::Aside;
            }
        }
    }

    fn controlled(&mut self, file: usize, command: usize, argument: usize, out: usize) {
        match command as u32 {
            OFD_SETLK | OFD_SETLKW if !is_unlock(argument) => self.took_file(file, out),
            DUPFD | DUPFD_CLOEXEC => {
                same_as(out, file);
                self.got_number(out);
            }
            _ => {}
        }
    }
}

// Words that threads wait on.

const FUTEX: usize = 202;

calls! {
    Outside syscall(number, a, b, c1, d, e, f) |c| {
        if number == FUTEX {
            let word = Channel::made(channel::FUTEX, a, a as u32);
            match b & 127 {
                // Waiting, for a word or for a lock.
                0 | 6 | 9 | 11 | 13 => c.way = Way::Aside,
                _ => c.note(Tag::Send, word),
            }
        }
    } => |c, out| {
        if number == FUTEX && matches!(b & 127, 0 | 6 | 9 | 11 | 13) {
            c.note(Tag::Look, Channel::made(channel::FUTEX, a, a as u32));
        }
    };
}

// Event counters and the like under several descriptors.

const FILES: usize = 4096;
/// The descriptor that each is a copy of, plus one; zero if it is not a copy.
static FIRST: [AtomicU32; FILES] = [const { AtomicU32::new(0) }; FILES];

/// The descriptor that this was first known by.
pub(super) fn first_of(file: u32) -> usize {
    match FIRST.get(file as usize).map_or(0, |first| first.load(Relaxed)) {
        0 => file as usize,
        first => first as usize - 1,
    }
}

fn same_as(new: usize, old: usize) {
    if new as i32 >= 0
        && let Some(first) = FIRST.get(new as u32 as usize)
    {
        first.store(first_of(old as u32) as u32 + 1, Relaxed);
    }
}

fn is_new(file: usize) {
    if let Some(first) = FIRST.get(file as u32 as usize) {
        first.store(0, Relaxed);
    }
}

/// Which descriptors the process has closed.
static CLOSED: [AtomicBool; FILES] = [const { AtomicBool::new(false) }; FILES];

impl Call {
    /// A descriptor is closed: its number may be given out again, which comes after this.
    pub(super) fn gives_number(&mut self, file: usize) {
        if file as i32 >= 0 {
            if let Some(closed) = CLOSED.get(file as u32 as usize) {
                closed.store(true, Relaxed);
            }
            self.note(
                Tag::Send,
                Channel::made(channel::DESCRIPTOR, file as u32 as usize, file as u32),
            );
        }
    }

    /// A call has returned a descriptor that was free. Programs keep data by its number, and whoever had it before has closed it.
    pub(super) fn got_number(&mut self, file: usize) {
        self.took_number(file);
        if file as i32 >= 0 {
            self.note(Tag::Look, Channel::made(channel::OPENED, file as u32 as usize, file as u32));
        }
    }

    /// A descriptor was given out that the program chose itself.
    fn took_number(&mut self, file: usize) {
        let is_first = CLOSED.get(file as u32 as usize).is_some_and(|closed| !closed.load(Relaxed));
        if file as i32 >= 0 && !is_first {
            self.note(
                Tag::Look,
                Channel::made(channel::DESCRIPTOR, file as u32 as usize, file as u32),
            );
        }
    }

    /// A descriptor was closed, if it was open, and given out again by the same call.
    fn replaced(&mut self, file: usize) {
        self.took_number(file);
        self.gives_number(file);
    }

    /// The same as [`Call::got_number`] for two of them, if the call succeeded.
    pub(super) fn got_numbers(&mut self, at: usize, out: usize) {
        if out as i32 == 0 {
            // SAFETY: the call has written both.
            let files = unsafe { *(at as *const [u32; 2]) };
            for file in files {
                self.got_number(file as usize);
            }
        }
    }
}

calls! {
    Inside dup(file) => |c, out| { same_as(out, file); c.got_number(out); };
    Outside dup2(file, other) |c| { c.sends(other); } => |c, out| { same_as(out, file); c.replaced(out); };
    Outside dup3(file, other, flags) |c| { c.sends(other); } => |c, out| { same_as(out, file); c.replaced(out); };
    Inside socket(family, kind, protocol) => |c, out| { c.got_number(out); };
    Inside eventfd(count, flags) => |c, out| { is_new(out); c.got_number(out); };
    Inside timerfd_create(clock, flags) => |c, out| { is_new(out); c.got_number(out); };
    Inside epoll_create(size) => |c, out| { is_new(out); c.got_number(out); };
    Inside epoll_create1(flags) => |c, out| { is_new(out); c.got_number(out); };
    // A read from these reveals signals, or created and removed files.
    Inside signalfd(file, set, flags) |c| { c.reads(set, 8); } => |c, out| { tells_of(out, SIGNALS_TOO); };
    Inside inotify_init() => |c, out| { tells_of(out, NAMES_TOO); };
    Inside inotify_init1(flags) => |c, out| { tells_of(out, NAMES_TOO); };
}

/// What else a descriptor reports.
static TELLS: [AtomicU32; FILES] = [const { AtomicU32::new(0) }; FILES];
const SIGNALS_TOO: u32 = 1;
const NAMES_TOO: u32 = 2;

fn tells_of(file: usize, what: u32) {
    is_new(file);
    if let Some(tells) = TELLS.get(file as u32 as usize) {
        tells.store(what, Relaxed);
    }
}

/// The other channel that a receiver from this descriptor comes after.
pub(super) fn told_by(file: u32) -> Option<Channel> {
    let first = first_of(file);
    match TELLS.get(first).map_or(0, |tells| tells.load(Relaxed)) {
        SIGNALS_TOO => Some(SIGNALS),
        NAMES_TOO => Some(NAMES),
        _ => None,
    }
}

// What `epoll` watches: the descriptor that the program's word for it denotes.

const WATCHED: usize = 1 << 16;
static WATCHES: AtomicPtr<[AtomicUsize; 2]> = AtomicPtr::new(core::ptr::null_mut());

fn watches() -> *mut [AtomicUsize; 2] {
    let mut table = WATCHES.load(Relaxed);
    if table.is_null() {
        table = sys::reserve(WATCHED * size_of::<[AtomicUsize; 2]>()).cast();
        WATCHES.store(table, Relaxed);
    }
    table
}

/// Visits the entries that may belong to a word, until `each` stops or there are no more.
fn entries(epoll: usize, data: usize, mut each: impl FnMut(&[AtomicUsize; 2]) -> bool) {
    let table = watches();
    if table.is_null() {
        return;
    }
    let start = (data ^ epoll << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    for i in 0..WATCHED {
        // SAFETY: the table has this many entries.
        if each(unsafe { &*table.add((start + i) & (WATCHED - 1)) }) {
            return;
        }
    }
}

/// `epoll_ctl`: the program's word denotes a descriptor. Earlier meanings are kept: that orders
/// more, not less.
pub(super) fn watch(epoll: usize, file: usize, event: usize) {
    if event == 0 {
        return;
    }
    // SAFETY: the program's own structure: what to watch for, and the word.
    let data = unsafe { ((event + 4) as *const usize).read_unaligned() };
    let key = (epoll as u32 as usize + 1) | (file as u32 as usize) << 32;
    entries(epoll as u32 as usize, data, |entry| {
        let there = entry[0].load(Relaxed);
        if there == 0 {
            entry[1].store(data, Relaxed);
            entry[0].store(key, Relaxed);
        }
        there == 0 || there == key && entry[1].load(Relaxed) == data
    });
}

/// The descriptors that a word of the program may denote.
pub(super) fn watched(epoll: usize, data: usize, mut each: impl FnMut(usize)) {
    let epoll = epoll as u32 as usize;
    entries(epoll, data, |entry| {
        let there = entry[0].load(Relaxed);
        if there as u32 as usize == epoll + 1 && entry[1].load(Relaxed) == data {
            each(there >> 32);
        }
        there == 0
    });
}

// From one file to another, through the kernel: what is sent comes after what was received.

/// Moves bytes from one file to another with `act`, after waiting until some are available.
fn relay(from: usize, to: usize, waits: bool, pc: f64, act: impl Fn() -> usize) -> usize {
    let mut t = enter();
    if t.is_null() {
        return act();
    }
    // SAFETY: in a hook of `t`.
    unsafe {
        access::settle(t);
        if waits && !channels::has_input(from) {
            step_aside(t);
            channels::await_input(from);
            t = enter();
            if t.is_null() {
                return act();
            }
        }
        let pc = pc.to_bits() as usize;
        if let Some(channel) = channels::channel(from) {
            channel.note(t, Tag::Receive, pc);
        }
        if let Some(channel) = channels::channel(to) {
            channel.note(t, Tag::Send, pc);
        }
        leave(t);
        act()
    }
}

/// Whether reading from the file waits for data.
fn does_wait(file: usize) -> bool {
    const NONBLOCK: isize = 0o4000;
    const GET_FLAGS: usize = 3;
    const FCNTL: usize = 72;
    // SAFETY: the call only returns flags.
    unsafe { sys::syscall!(FCNTL, file as u32, GET_FLAGS, 0) & NONBLOCK == 0 }
}

macro_rules! relays {
    ($($name:ident($($arg:ident),*), $from:ident => $to:ident, $waits:expr;)*) => { $(
        mod $name {
            use super::*;

            #[allow(unused_variables)]
            pub(super) extern "C" fn handle($($arg: usize,)* pc: f64) -> usize {
                relay($from, $to, $waits, pc, || real!($name($($arg => usize),*) -> usize))
            }
        }
        stand_in_front! { $name => $name::handle }
    )* };
}

relays! {
    splice(from, at, to, other, n, flags), from => to, flags & 2 == 0 && does_wait(from);
    tee(from, to, n, flags), from => to, flags & 2 == 0 && does_wait(from);
    sendfile(to, from, at, n), from => to, does_wait(from);
    sendfile64(to, from, at, n), from => to, does_wait(from);
    copy_file_range(from, at, to, other, n, flags), from => to, false;
}

calls! {
    Outside vmsplice(file, list, count, flags) |c| { c.splices(file, list, count); };
}
