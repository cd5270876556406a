//! The raw log, as the runtime writes it and the host reads it; `docs/formats/capture-log.md`
//! describes it in words.
//!
//! A process image has two files. The program maps the *tail*: a page of [`Head`] and a buffer that
//! is reused. When the buffer is full, it is appended to the *log* as one chunk. However the
//! program ends, the kernel keeps what was written to the tail.

/// First bytes of a tail.
pub const MAGIC: u64 = u64::from_le_bytes(*b"foresee\x01");
/// Version of everything described here.
pub const VERSION: u32 = 8;
/// The offset of the buffer in a tail.
pub const BUFFER_AT: usize = 4096;
/// First bytes of a chunk.
pub const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"frch");
/// The size of a chunk's header: magic and payload length (four bytes each), checksum of the payload, zero (eight each).
pub const CHUNK_HEAD: usize = 24;
/// The maximum length of a record, including strings and runs of bytes; longer ones are split or
/// cut.
pub const RECORD_MAX: usize = 4096 + 128;

/// The beginning of a tail; everything is little-endian.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// [`MAGIC`], written last.
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// 0: serialised; 1: free-running.
    pub mode: u32,
    /// 0: nothing was left out; 1: accesses that add no order were left out.
    pub filter: u32,
    /// The process.
    pub pid: u32,
    /// The process that forked it, if it began with a fork of a recorded process; otherwise 0.
    pub forked_from: u32,
    /// 0: running (or killed); 1: ended by itself; 2: the log could not be written; 3: the log
    /// reached its limit; 4: the process was replaced by another program; 5: killed by the
    /// launcher, because all threads waited for each other.
    pub state: u32,
    /// The error number behind state 2.
    pub error: u32,
    /// How often the token was taken from a sleeping thread.
    pub takes: u32,
    /// The length of the valid part of the log, where the buffer will be appended.
    pub base: u64,
    /// `base` plus the length of the valid part of the buffer, which begins with room for a chunk's
    /// header.
    pub end: u64,
    /// The capacity of the buffer in bytes.
    pub capacity: u64,
    /// The number of hooks, as of the last change of threads.
    pub hooks: u64,
    /// A plain store that has been announced and whose value is not known yet: address, return
    /// address, size, thread.
    pub pending: [u64; 4],
    /// When recording began, in nanoseconds of the real-time clock.
    pub started: u64,
    /// How the program ended itself: one of [`last`], return address, argument, thread.
    pub last: [u64; 4],
    /// The number of threads that have been started and have not ended.
    pub living: u32,
    /// How many of them wait, without a timeout, for something that only another thread of the
    /// process can provide.
    pub blocked: u32,
    /// Incremented whenever one of the two numbers above changes.
    pub changes: u32,
    /// Whether the program has a signal handler, which could wake a waiting thread.
    pub handlers: u32,
    /// The top of the stack when an instruction faulted: the runtime and libc fault because of what
    /// their callers did.
    pub stack: [u64; STACK],
    /// How many forked processes could not be recorded.
    pub lost: u32,
    /// The first of them: process and error number.
    pub lost_processes: [[u32; 2]; LOST],
    /// How far the program followed a schedule: one of [`replay`]'s states, and why it did not.
    pub replay: [u32; 2],
    /// The number of the schedule's step that comes next.
    pub replay_at: u64,
    /// What a thread did instead: thread of the schedule, tag, return address, value.
    pub replay_got: [u64; 4],
    /// The addresses of the last two steps that were taken, the later one first.
    pub replay_met: [u64; 2],
}

/// How a program is made to follow a schedule. The launcher passes it in a file: a [`Script`], then the
/// [`ScriptThread`]s, then the [`ScriptStep`]s.
pub mod replay {
    /// First bytes of the file.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"frscript");

    /// Nothing is replayed.
    pub const OFF: u32 = 0;
    /// Threads follow the schedule.
    pub const FOLLOWING: u32 = 1;
    /// They have followed it to its end.
    pub const FOLLOWED: u32 = 2;
    /// They could not.
    pub const DIVERGED: u32 = 3;
    /// They followed it to the step at which they are to be held, until a debugger lets them continue.
    pub const HELD: u32 = 4;

    /// A thread did something other than its next step.
    pub const OTHER_STEP: u32 = 1;
    /// A thread did the step in another place.
    pub const OTHER_PLACE: u32 = 2;
    /// A thread did the step with another value.
    pub const OTHER_VALUE: u32 = 3;
    /// The thread of the next step does not exist.
    pub const NOT_STARTED: u32 = 4;
    /// The thread of the next step has ended.
    pub const ENDED: u32 = 5;
    /// A thread cannot have what the step takes: another thread has it.
    pub const BUSY: u32 = 6;
    /// All threads sleep.
    pub const STALLED: u32 = 7;
    /// A step that should block did not.
    pub const DID_NOT_BLOCK: u32 = 8;
    /// The schedule could not be read.
    pub const UNREADABLE: u32 = 9;
    /// A thread went on and on, and did not come to its next step.
    pub const LOST: u32 = 10;

    /// A step: its value is checked.
    pub const HAS_VALUE: u8 = 1;
    /// A step: its place is an offset in the program itself; otherwise, only its offset in a page is known.
    pub const IN_PROGRAM: u8 = 2;
    /// A step: a wait that ends because its time is over.
    pub const TIMED_OUT: u8 = 4;
    /// A step that happened before its turn, together with the one before it.
    pub const DONE: u8 = 128;

    /// Every listed step is checked, by its number in its thread.
    pub const STRICT: u32 = 0;
    /// Steps are counted by kind and place, since the thread's previous listed step.
    pub const SWITCH: u32 = 1;

    /// Threads are held nowhere.
    pub const NO_STOP: u64 = u64::MAX;

    /// The size of the name of a thread, as the kernel keeps it, with a zero byte at its end.
    pub const NAME: usize = 16;

    /// Whether a record is of an attempt that failed.
    pub const fn is_failure(tag: u8) -> bool {
        tag == super::Tag::TryFailed as u8 || tag == super::Tag::SemFailed as u8
    }

    /// Whether a record with a tag is one of those among which a step is counted: those of its kind and, if it is an attempt
    /// that failed, also those that succeeded.
    pub const fn counts(step: u8, tag: u8) -> bool {
        use super::Tag::{Acquire, AcquireShared, SemFailed, SemWait, TryFailed};
        let is_taken = tag == Acquire as u8 || tag == AcquireShared as u8;
        tag == step
            || step == TryFailed as u8 && is_taken
            || step == SemFailed as u8 && tag == SemWait as u8
    }

    /// After the schedule, all threads take turns by chance.
    pub const RELEASE_ALL: u32 = 0;
    /// The thread of the last step goes first.
    pub const VIOLATOR_FIRST: u32 = 1;
    /// The thread of the last step goes last.
    pub const OTHERS_FIRST: u32 = 2;
}

/// The head of a schedule for the runtime.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// [`replay::MAGIC`].
    pub magic: u64,
    /// [`replay::STRICT`] or [`replay::SWITCH`].
    pub mode: u32,
    /// What happens after the last step, see [`replay`].
    pub after: u32,
    /// Whether threads really sleep, instead of only a virtual clock advancing.
    pub sleeps: u32,
    /// The number of threads; the first is the one that runs `main`.
    pub threads: u32,
    /// The number of steps.
    pub steps: u64,
    /// The index of the step before which all threads are held; [`replay::NO_STOP`] if there is none.
    pub stop: u64,
    /// The most records between two steps.
    pub patience: u64,
}

/// A thread of a schedule, which may refer to threads before it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScriptThread {
    /// The thread that starts it.
    pub parent: u32,
    /// How many threads the parent started before it.
    pub before: u32,
    /// Its name in reports.
    pub name: [u8; replay::NAME],
}

/// A step of a schedule.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScriptStep {
    /// The thread, by its index in the schedule.
    pub thread: u32,
    /// The tag of the record.
    pub tag: u8,
    /// Bits of [`replay`].
    pub flags: u8,
    /// Zero.
    pub reserved: u16,
    /// Which step of its thread it is: see [`replay::STRICT`] and [`replay::SWITCH`].
    pub number: u64,
    /// The return address, relative to the program.
    pub place: u64,
    /// The value.
    pub value: u64,
}

/// The number of forked processes that are named if they could not be recorded.
pub const LOST: usize = 16;

/// The number of recorded stack words.
pub const STACK: usize = 128;

/// How a program ended itself.
pub mod last {
    /// It called `exit` or a variant (the status).
    pub const EXIT: u64 = 1;
    /// It called `abort`.
    pub const ABORT: u64 = 2;
    /// An assertion failed.
    pub const ASSERTION: u64 = 3;
    /// An instruction faulted (the signal); the return address is the byte after the instruction's
    /// first.
    pub const FAULT: u64 = 4;
    /// It sent itself a signal (the signal).
    pub const RAISE: u64 = 5;
}

/// The kind of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Access {
    /// A plain read.
    Read = 0,
    /// A plain write.
    Write = 1,
    /// An atomic load, or a compare-and-swap that failed.
    AtomicRead = 2,
    /// An atomic store.
    AtomicWrite = 3,
    /// An atomic read-modify-write. A byte follows: the size of the old value in the low half, its
    /// [`order`] in the high half.
    Rmw = 4,
    /// An atomic load that orders nothing.
    RelaxedRead = 5,
    /// An atomic store that orders nothing.
    RelaxedWrite = 6,
}

impl Access {
    /// The access with this number.
    pub const fn from_code(code: u8) -> Option<Access> {
        Some(match code {
            0 => Access::Read,
            1 => Access::Write,
            2 => Access::AtomicRead,
            3 => Access::AtomicWrite,
            4 => Access::Rmw,
            5 => Access::RelaxedRead,
            6 => Access::RelaxedWrite,
            _ => return None,
        })
    }

    /// Whether memory is read.
    pub const fn reads(self) -> bool {
        !self.writes() || matches!(self, Access::Rmw)
    }

    /// Whether memory is written.
    pub const fn writes(self) -> bool {
        matches!(self, Access::Write | Access::AtomicWrite | Access::Rmw | Access::RelaxedWrite)
    }
}

/// The ordering of a read-modify-write or a fence.
pub mod order {
    /// It acquires and releases.
    pub const FULL: u8 = 0;
    /// Neither.
    pub const RELAXED: u8 = 1;
    /// It only acquires.
    pub const ACQUIRE: u8 = 2;
    /// It only releases.
    pub const RELEASE: u8 = 3;

    /// The ordering of C's `memory_order` with this number.
    pub const fn of_c(number: u32) -> u8 {
        match number {
            0 => RELAXED,
            // Dependencies are unknown, so consume is treated as acquire.
            1 | 2 => ACQUIRE,
            3 => RELEASE,
            _ => FULL,
        }
    }
}

/// Tags below this are accesses: the kind in bits 3 to 5, the size in bits 0 to 2 (0 to 3: one, two, four, eight bytes;
/// 4: a run of bytes, which follow the record; 5: also eight bytes, see [`POINTER`]).
pub const ACCESSES: u8 = 0x40;
/// The size of an access that is a run of bytes.
pub const RUN: u8 = 4;
/// The size of an access of eight bytes whose value is stored as its difference from the address:
/// pointers often point nearby.
pub const POINTER: u8 = 5;
/// Set in the tag of a record whose position or value may be wrong.
pub const INEXACT: u8 = 0x40;

macro_rules! tags {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        /// The kind of a record that is not an access. The comments describe its address and its
        /// value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Tag { $($(#[$doc])* $name = $code,)* }

        impl Tag {
            /// The tag with this number.
            pub const fn from_code(code: u8) -> Option<Tag> {
                match code { $($code => Some(Tag::$name),)* _ => None }
            }
        }
    };
}

/// How a lock was acquired, or was to be acquired, as bits.
pub mod how {
    /// Its last owner died while holding it.
    pub const OWNER_DIED: u64 = 1;
    /// Without waiting.
    pub const TRIED: u64 = 2;
    /// With a timeout.
    pub const TIMED: u64 = 4;
    /// Shared with other readers.
    pub const SHARED: u64 = 8;
    /// Other processes can also acquire and release it.
    pub const FOREIGN: u64 = 16;
    /// If its owner dies, the next one gets it.
    pub const ROBUST: u64 = 32;
}

/// The kind of a channel: the upper half of the value of [`Tag::Send`] and its relatives. The lower
/// half is a number for its name.
pub mod channel {
    /// A file descriptor, which is the number.
    pub const FILE: u64 = 0;
    /// The environment of the process.
    pub const ENVIRONMENT: u64 = 1;
    /// An OpenMP team: its beginning, its barriers, its end (the number of its first thread).
    pub const TEAM: u64 = 2;
    /// An OpenMP task: created, then begun.
    pub const TASK: u64 = 3;
    /// The OpenMP tasks that a thread has executed.
    pub const TASKS_DONE: u64 = 4;
    /// What OpenMP tasks depend on.
    pub const DEPENDENCE: u64 = 5;
    /// The ordered regions of an OpenMP loop.
    pub const ORDERED: u64 = 6;
    /// Signals that threads of the process send each other.
    pub const SIGNALS: u64 = 7;
    /// A System V semaphore set (its own number).
    pub const SEMAPHORES: u64 = 8;
    /// A System V message queue (its own number).
    pub const MESSAGES: u64 = 9;
    /// A word that threads wait on with `syscall` (the number is the low half of its address).
    pub const FUTEX: u64 = 10;
    /// Whether a file with some name exists.
    pub const FILE_NAME: u64 = 11;
    /// Which files exist.
    pub const FILE_NAMES: u64 = 12;
    /// A lock on a file.
    pub const FILE_LOCK: u64 = 13;
    /// Messages to libc's own threads, for timers and the like.
    pub const HELPERS: u64 = 14;
    /// The number of a descriptor, which is given out again only after it was closed.
    pub const DESCRIPTOR: u64 = 15;
    /// The address that a socket listens at.
    pub const LISTENER: u64 = 16;
    /// The connections to such an address.
    pub const CONNECTIONS: u64 = 17;
    /// The ends of a named pipe that are opened.
    pub const NAMED_PIPE: u64 = 18;
    /// A descriptor that a call returned because it was free, which only that call has done. It is not closed by this.
    pub const OPENED: u64 = 19;
    /// One semaphore of a System V set, which is no channel: see [`semaphore`].
    pub const SEMAPHORE: u64 = 20;
    /// That a System V set or queue was changed or removed by a call that does not belong to its use.
    pub const CONTROL: u64 = 21;
    /// Named semaphores that were closed.
    pub const NAMED_SEMAPHORES: u64 = 22;

    /// The prefixes of the names of channels.
    pub const NAMES: [&str; 23] = [
        "fd",
        "environment",
        "omp_team",
        "omp_task",
        "omp_tasks_done",
        "omp_depend",
        "omp_ordered",
        "signals",
        "semaphores",
        "messages",
        "futex",
        "file_name",
        "file_names",
        "file_lock",
        "helpers",
        "descriptor",
        "listener",
        "connections",
        "named_pipe",
        "opened",
        "semaphore",
        "control",
        "named_semaphores",
    ];
    /// There is only one of each of these.
    pub const SINGLE: [u64; 5] = [ENVIRONMENT, SIGNALS, FILE_NAMES, HELPERS, NAMED_SEMAPHORES];

    /// The number of a channel that is not a file.
    pub const fn id(kind: u64, number: u64) -> u64 {
        number << 8 | kind << 3 | 7
    }

    /// What stands for the address of a semaphore of a System V set. No semaphore of libc has an odd one.
    pub const fn semaphore(set: u32, number: u16) -> u64 {
        id(SEMAPHORE, (set as u64) << 16 | number as u64)
    }

    /// The set and the number of such a semaphore.
    pub const fn of_set(address: u64) -> Option<(u32, u16)> {
        match address & 0xff == SEMAPHORE << 3 | 7 {
            true => Some(((address >> 24) as u32, (address >> 8) as u16)),
            false => None,
        }
    }
}

/// The value of a [`Tag::Alloc`].
pub mod block {
    /// That of a block with some size; zeroed if the program can rely on zeros in it.
    pub const fn value(size: usize, is_zeroed: bool) -> u64 {
        (size as u64) << 1 | is_zeroed as u64
    }

    /// The size of a block.
    pub const fn size(value: u64) -> u64 {
        value >> 1
    }

    /// How many bytes belong to a block of some size, at least. Hooks call glibc's allocator, even if the program has another one,
    /// and its blocks end eight bytes before a multiple of sixteen from their beginning; behind the blocks that OpenMP's tasks have is
    /// memory of the library's own. `realloc` copies what is behind the size that was asked for, too.
    pub const fn room(size: u64) -> u64 {
        let whole = size.saturating_add(23) & !15;
        if whole < 32 { 24 } else { whole - 8 }
    }

    /// Whether the program can rely on zeros in it.
    pub const fn is_zeroed(value: u64) -> bool {
        value & 1 == 1
    }
}

/// What happens to OpenMP's tasks. It does not order what follows in the log, but says what OpenMP's rules order.
pub mod task {
    /// A task is created (its number).
    pub const CREATED: u64 = 0;
    /// A thread begins to execute it. Several tasks of a loop may have the same number.
    pub const BEGUN: u64 = 1;
    /// The thread has executed the task that it began last.
    pub const ENDED: u64 = 2;
    /// Its creator waited for the task itself, which was not deferred.
    pub const AWAITED: u64 = 3;
    /// The thread waited for all tasks that the current one has created.
    pub const CHILDREN_AWAITED: u64 = 4;
    /// A group of tasks begins.
    pub const GROUP_BEGUN: u64 = 5;
    /// The thread waited for the group.
    pub const GROUP_AWAITED: u64 = 6;
    /// The thread waited for all tasks of its team, at a barrier or the end of a region.
    pub const ALL_AWAITED: u64 = 7;
    /// The thread executes a section that any thread of the team could have executed (its number; zero if there is none left).
    pub const SECTION: u64 = 8;

    /// The value of a record about a task with some number.
    pub const fn value(what: u64, number: u64) -> u64 {
        number << 4 | what
    }
}

tags! {
    /// The following records belong to another thread (value: its number).
    Switch = 0x80;
    /// A thread begins (address: its stack, value: the stack's size).
    ThreadBegin = 0x81;
    /// A thread ends.
    ThreadEnd = 0x82;
    /// A thread is started (address: what it is started with, value: its number).
    Fork = 0x83;
    /// A thread is joined (value: its number).
    Join = 0x84;
    /// A thread has the token again: the steps of other threads are complete, and its own follow.
    Turn = 0x85;
    /// A thread begins to wait for another one to end (value: its number).
    RequestEnd = 0x87;
    /// A thread is named (bytes: the name).
    ThreadName = 0x86;
    /// A lock is acquired (address: the lock; value: [`how`]).
    Acquire = 0x88;
    /// A lock is acquired for sharing (address; value: [`how`]).
    AcquireShared = 0x89;
    /// A lock is released (address).
    Release = 0x8a;
    /// An attempt to acquire a lock failed because another thread holds it (address; value:
    /// [`how`]).
    TryFailed = 0x8b;
    /// A lock is initialised (address).
    LockInit = 0x8c;
    /// A thread begins to wait for a lock (address; value: [`how`]); the wait ends with the next
    /// counted record of the thread.
    Request = 0x8d;
    /// A thread stops waiting for its last request without getting it.
    Withdrawn = 0x8e;
    /// A wait for a condition begins (address: the condition, value: the lock).
    WaitBegin = 0x90;
    /// A wait for a condition ends (address, value: the lock; its lowest bit is set if time was up).
    WaitEnd = 0x91;
    /// One waiting thread is woken (address).
    Notify = 0x92;
    /// All waiting threads are woken (address).
    NotifyAll = 0x93;
    /// A condition variable is initialised (address).
    CondInit = 0x94;
    /// A thread asks for the count of a semaphore (address).
    SemValue = 0x97;
    /// A semaphore is initialised (address, value: its count).
    SemInit = 0x98;
    /// A semaphore is raised (address).
    SemPost = 0x99;
    /// A semaphore is lowered (address; value: [`how`]).
    SemWait = 0x9a;
    /// An attempt to lower a semaphore failed (address).
    SemFailed = 0x9b;
    /// A barrier is initialised (address, value: the number of threads it waits for).
    BarrierInit = 0x9c;
    /// A thread arrives at a barrier (address).
    BarrierArrive = 0x9d;
    /// A thread leaves a barrier (address).
    BarrierLeave = 0x9e;
    /// A thread begins to wait for a semaphore (address).
    RequestSem = 0x9f;
    /// A one-time initialisation is done (address: its control word).
    OnceDone = 0xa0;
    /// A thread finds it done (address).
    OnceSeen = 0xa1;
    /// Something is sent through a channel (address: its number, value: see [`channel`]).
    Send = 0xa4;
    /// Something is received from a channel (address, value).
    Receive = 0xa5;
    /// A thread checks whether something can be received (address, value).
    Look = 0xa6;
    /// A fence (value: its [`order`]).
    Fence = 0xa2;
    /// Memory is allocated (address, value: see [`block`]).
    Alloc = 0xa8;
    /// Memory is freed (address).
    Free = 0xa9;
    /// A step in the life of an OpenMP task (address: where the thread's stack ends then, value: see [`task`]).
    Task = 0xaa;
    /// A function is entered; the return address lies in it.
    Enter = 0xb0;
    /// A function is left.
    Exit = 0xb1;
    /// The program reports an event (bytes: number of arguments, each argument in eight bytes, the
    /// name).
    Event = 0xb2;
    /// An atomic region begins (bytes: its name).
    RegionBegin = 0xb3;
    /// An atomic region ends (bytes: its name).
    RegionEnd = 0xb4;
    /// A file of code or data is loaded (bytes: load base and end in eight bytes each, length of
    /// the build id, build id, path).
    Module = 0xc0;
    /// An access that happened earlier and was held back (address; see [`Delayed`]).
    Delayed = 0xc1;
    /// The file that contains the return address has hooks.
    Instrumented = 0xc3;
    /// The token was taken from a thread that slept, or computed without a hook (value: its number).
    Took = 0xc2;
    /// Variables of the program are here (address, value: size); they are zero unless
    /// [`Tag::Bytes`] say otherwise.
    Data = 0xc4;
    /// The contents of some of them (address; bytes).
    Bytes = 0xc5;
    /// Where the thread is that is about to wait (bytes: return addresses in eight bytes each, the innermost first).
    Stack = 0xc6;
    /// The thread is in a function that it was not in before (return address: that of the function; address: what lies below on
    /// the thread's stack was not in use when it began; value: see [`Call`]).
    Call = 0xc7;
    /// The same where a place in the innermost function with hooks around that is far away (address: that place; value: how many
    /// calls returned before).
    CallFrom = 0xc8;
    /// Calls have returned (value: how many).
    Return = 0xc9;
    /// The call stack of the thread is not known until one of these three follows.
    StackUnknown = 0xca;
}

impl Tag {
    /// Whether bytes follow, whose number is the record's value.
    pub const fn has_bytes(self) -> bool {
        matches!(
            self,
            Tag::ThreadName
                | Tag::Event
                | Tag::RegionBegin
                | Tag::RegionEnd
                | Tag::Module
                | Tag::Delayed
                | Tag::Bytes
                | Tag::Stack
        )
    }

    /// Whether the record is a step of its thread that does not depend on what other threads did meanwhile: libc may allocate
    /// on behalf of whichever thread comes first.
    pub const fn is_step(self) -> bool {
        self.is_counted() && !matches!(self, Tag::Turn | Tag::Alloc)
    }

    /// Whether the record is counted among its thread's, for the places of [`Delayed`] accesses.
    pub const fn is_counted(self) -> bool {
        !matches!(
            self,
            Tag::Switch
                | Tag::Module
                | Tag::Delayed
                | Tag::Took
                | Tag::Instrumented
                | Tag::Data
                | Tag::Bytes
                | Tag::Stack
                | Tag::Call
                | Tag::CallFrom
                | Tag::Return
                | Tag::StackUnknown
                | Tag::Request
                | Tag::RequestEnd
                | Tag::RequestSem
                | Tag::Withdrawn
                | Tag::Task
        )
    }
}

/// The value of a [`Tag::Call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// How many calls that the log has returned before; less than [`Call::RETURNS`].
    pub returned: u64,
    /// A place in the innermost function with hooks around the call; zero if there is none. It is that function which calls,
    /// unless code without hooks does that.
    pub from: u64,
}

impl Call {
    /// The bound of the number of calls that return.
    pub const RETURNS: u64 = 512;
    /// The maximum distance between both places.
    const FAR: u64 = 1 << 16;

    /// The number for a call whose return address is `at`; none if that is far from the other place.
    pub const fn encode(self, at: u64) -> Option<u64> {
        if self.from == 0 {
            return Some(self.returned);
        }
        let distance = at.wrapping_sub(self.from) as i64;
        let folded = (distance << 1 ^ distance >> 63) as u64;
        if folded >= 2 * Call::FAR {
            return None;
        }
        Some((folded + 1) * Call::RETURNS + self.returned)
    }

    /// The call whose return address is `at` behind its number.
    pub const fn decode(value: u64, at: u64) -> Call {
        let (returned, folded) = (value % Call::RETURNS, value / Call::RETURNS);
        let from = match folded.checked_sub(1) {
            Some(folded) => at.wrapping_sub(folded >> 1 ^ (folded & 1).wrapping_neg()),
            None => 0,
        };
        Call { returned, from }
    }
}

/// The maximum number of bytes after the record of a [`Delayed`] access.
pub const DELAYED_MAX: usize = 24;

/// An access that was left out when it happened and turned out to matter: one of the last accesses
/// of its thread to eight aligned bytes before another thread accessed them. Address and return
/// address (its low half) are those of the record; the rest are the bytes after it: access, mask,
/// thread and place in groups of seven bits, and the bytes of the mask, without trailing zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delayed {
    /// The thread of the access.
    pub thread: u32,
    /// The number of counted records of the thread before it.
    pub place: u32,
    /// The kind of access; never [`Access::Rmw`].
    pub access: Access,
    /// Which of the eight bytes it accessed.
    pub mask: u8,
    /// All eight bytes; zero outside the mask.
    pub bytes: [u8; 8],
}

impl Delayed {
    /// The encoded form after a record, and its length.
    pub fn to_bytes(self) -> ([u8; DELAYED_MAX], usize) {
        let mut out = [0; DELAYED_MAX];
        out[0] = self.access as u8;
        out[1] = self.mask;
        let mut at = 2;
        for mut n in [self.thread, self.place] {
            while n > 0x7f {
                out[at] = n as u8 | 0x80;
                n >>= 7;
                at += 1;
            }
            out[at] = n as u8;
            at += 1;
        }
        let fixed = at;
        for (i, &byte) in self.bytes.iter().enumerate() {
            if self.mask >> i & 1 != 0 {
                out[at] = byte;
                at += 1;
            }
        }
        // Trailing zeros are omitted: most numbers are small.
        while at > fixed && out[at - 1] == 0 {
            at -= 1;
        }
        (out, at)
    }

    /// Decodes the bytes after a record; `None` if they are not an access.
    pub fn from_bytes(bytes: &[u8]) -> Option<Delayed> {
        let mut rest = bytes.iter().copied();
        let access = Access::from_code(rest.next()?).filter(|&a| a != Access::Rmw)?;
        let mask = rest.next()?;
        let mut number = || {
            let mut n = 0u32;
            for shift in [0, 7, 14, 21, 28] {
                let byte = rest.next()?;
                n |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    return Some(n);
                }
            }
            None
        };
        let (thread, place) = (number()?, number()?);
        let mut data = [0; 8];
        for (i, byte) in data.iter_mut().enumerate() {
            if mask >> i & 1 != 0 {
                *byte = rest.next().unwrap_or(0);
            }
        }
        Some(Delayed { thread, place, access, mask, bytes: data })
    }
}

/// Which of two previous addresses a record's own is relative to: synchronisation objects are not
/// near data.
#[inline]
pub const fn neighbourhood(tag: u8) -> usize {
    (tag >= 0x80 && tag != Tag::Delayed as u8) as usize
}

/// The sizes of return addresses, by their code.
pub const PC_SIZES: [usize; 4] = [1, 2, 4, 8];
/// The same for addresses and values.
pub const SIZES: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 8];

/// The code of the shortest size that holds `n`.
#[inline]
pub const fn size_code(n: u64) -> usize {
    const CODES: [u8; 9] = [0, 1, 2, 3, 4, 5, 6, 7, 7];
    CODES[(71 - n.leading_zeros() as usize) / 8] as usize
}

/// The code of the shortest size of a return address that holds `n`.
#[inline]
pub const fn pc_code(n: u64) -> usize {
    const CODES: [u8; 9] = [0, 0, 1, 2, 2, 3, 3, 3, 3];
    CODES[(71 - n.leading_zeros() as usize) / 8] as usize
}

/// Maps a signed difference to an unsigned number that is small if the difference is.
#[inline]
pub const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

/// The inverse of [`zigzag`].
#[inline]
pub const fn unzigzag(n: u64) -> u64 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// A checksum of a chunk's payload: fast, and it detects any accidental damage.
pub fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum.rotate_left(29) ^ word).wrapping_mul(PRIME);
    let start = bytes.len() as u64 ^ PRIME;
    // Four sums, because each multiplication waits for the one before it.
    let mut sums = [start; 4];
    let (fours, rest) = bytes.as_chunks::<32>();
    for four in fours {
        for (sum, word) in sums.iter_mut().zip(four.as_chunks::<8>().0) {
            *sum = mix(*sum, u64::from_le_bytes(*word));
        }
    }
    let sum = sums.into_iter().fold(start, mix);
    let (words, rest) = rest.as_chunks::<8>();
    let sum = words.iter().fold(sum, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let sum = rest.iter().fold(sum, |sum, &byte| mix(sum, u64::from(byte)));
    sum ^ (sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_their_numbers() {
        for shift in 0..64 {
            for n in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                assert!(SIZES[size_code(n)] == 8 || n >> (8 * SIZES[size_code(n)]) == 0);
                assert!(PC_SIZES[pc_code(n)] == 8 || n >> (8 * PC_SIZES[pc_code(n)]) == 0);
                assert_eq!(unzigzag(zigzag(n)), n);
                assert_eq!(unzigzag(zigzag(n.wrapping_neg())), n.wrapping_neg());
            }
        }
        assert_eq!(SIZES[size_code(0)], 0);
        assert!(zigzag(3u64.wrapping_neg()) < 8);
    }

    #[test]
    fn damage_changes_the_checksum() {
        let good = [7u8; 100];
        for i in 0..good.len() {
            let mut bad = good;
            bad[i] ^= 1;
            assert_ne!(checksum(&good), checksum(&bad));
        }
        assert_ne!(checksum(&good[..99]), checksum(&good));
        // Words that change places.
        let words: [u8; 100] = std::array::from_fn(|i| i as u8 / 8);
        for (i, j) in (0..12).flat_map(|i| (0..i).map(move |j| (8 * i, 8 * j))) {
            let mut bad = words;
            (0..8).for_each(|byte| bad.swap(i + byte, j + byte));
            assert_ne!(checksum(&words), checksum(&bad), "{i} and {j}");
        }
    }

    #[test]
    fn delayed_accesses_come_back() {
        for (thread, place) in [(3, 9), (1 << 18, u32::MAX), (127, 128)] {
            let bytes = [1, 0, 0, 4, 0, 6, 7, 8];
            let delayed =
                Delayed { thread, place, access: Access::Write, mask: 0b1110_1001, bytes };
            let (out, len) = delayed.to_bytes();
            assert_eq!(Delayed::from_bytes(&out[..len]), Some(delayed));
            assert_eq!(Delayed::from_bytes(&out[..3]), None);
            let short = Delayed { bytes: [5, 0, 0, 0, 0, 0, 0, 0], ..delayed };
            let (out, len) = short.to_bytes();
            assert_eq!(Delayed::from_bytes(&out[..len]), Some(short));
            assert!(len < 14);
        }
    }

    #[test]
    fn calls_are_what_was_encoded() {
        for (at, from) in
            [(0x40_0000, 0x40_0000), (0x40_0010, 0x40_0000), (0x3f_ff00, 0x40_0000), (9, 0)]
        {
            for returned in [0, 1, 340] {
                let call = Call { returned, from };
                assert_eq!(call.encode(at).map(|value| Call::decode(value, at)), Some(call));
            }
        }
        assert_eq!(Call { returned: 0, from: 0x40_0000 }.encode(0x7f00_0040_0000), None);
    }
}
