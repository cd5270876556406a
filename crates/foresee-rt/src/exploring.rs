//! What the launcher and the runtime tell each other while a program is explored: one file, which the runtime maps.
//!
//! It begins with a [`Head`]. Then come the threads that the schedule names ([`crate::format::ScriptThread`]), the forced
//! [`Step`]s, a [`Entry`] for each of the first [`THREADS`] threads that says what it waits to do, and the entries of what
//! happened, in order.

/// First bytes of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"frexplor");
/// The size of the head.
pub const HEAD: usize = 4096;
/// The maximum number of threads of a program that is explored.
pub const THREADS: usize = 1024;

/// The beginning of the file. The launcher writes the first half, the runtime the second.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    /// [`MAGIC`].
    pub magic: u64,
    /// What comes after the forced steps: one of [`tail`].
    pub tail: u32,
    /// The number of threads that the schedule names; the first one runs `main`.
    pub threads: u32,
    /// The seed of whatever is left to chance.
    pub seed: u64,
    /// The number of forced steps.
    pub steps: u64,
    /// The maximum number of entries.
    pub most: u64,
    /// The number of operations of a usual run, over which changes of priorities are spread.
    pub expected: u64,
    /// How the run ended: one of [`state`].
    pub state: u32,
    /// Why a step could not be forced: one of [`reason`].
    pub reason: u32,
    /// The step that could not be forced.
    pub at: u64,
    /// The number of entries.
    pub done: u64,
    /// The thread that runs.
    pub running: u32,
    /// The number of threads that were started, `main`'s included.
    pub started: u32,
    /// Where the program itself begins.
    pub program: u64,
    /// What the program did beyond what is explored: bits of [`mod@beyond`].
    pub beyond: u32,
    /// The thread that is in a call that may block, or zero.
    pub in_kernel: u32,
}

/// What a program does beyond what is explored.
pub mod beyond {
    /// It starts another process, or becomes another program.
    pub const PROCESS: u32 = 1;
    /// A thread receives from the kernel what another one sent.
    pub const CHANNEL: u32 = 2;
    /// It maps memory that may have other addresses as well.
    pub const MAPPING: u32 = 4;
}

/// What comes after the forced steps.
pub mod tail {
    /// The thread that moved last goes on while it can; then the first one that can.
    pub const STRAIGHT: u32 = 0;
    /// Any thread that can move, by chance.
    pub const RANDOM: u32 = 1;
    /// The thread with the highest priority of those that can move; priorities change at a few steps, by chance.
    pub const PRIORITIES: u32 = 2;
}

/// How a run ended.
pub mod state {
    /// The program ended itself, or was ended from outside.
    pub const RUNNING: u32 = 0;
    /// A forced step was not possible.
    pub const DIVERGED: u32 = 1;
    /// No thread can move.
    pub const DEADLOCK: u32 = 2;
    /// There were too many operations.
    pub const CUT: u32 = 3;
    /// All threads that can move repeat themselves without changing anything.
    pub const SPINNING: u32 = 4;
    /// The runtime has lost control.
    pub const LOST: u32 = 5;
}

/// Why a step could not be forced, and how control was lost.
pub mod reason {
    /// The thread was not started.
    pub const NOT_STARTED: u32 = 1;
    /// The thread had ended.
    pub const ENDED: u32 = 2;
    /// The thread waits for something that it cannot have.
    pub const BLOCKED: u32 = 3;
    /// Nothing can time out there.
    pub const NO_TIME: u32 = 4;
    /// There were too many threads, locks or other objects.
    pub const TOO_MANY: u32 = 5;
    /// libc did something else than what its manual says.
    pub const LIBC: u32 = 6;
    /// There is no memory.
    pub const MEMORY: u32 = 7;
}

/// The kind of an operation.
pub mod kind {
    /// Nothing yet.
    pub const NONE: u8 = 0;
    /// Reads.
    pub const LOAD: u8 = 1;
    /// Writes.
    pub const STORE: u8 = 2;
    /// Reads and writes at once: `sub` is one of [`super::modify`].
    pub const MODIFY: u8 = 3;
    /// Takes a lock: `sub` has bits of [`super::lock`].
    pub const LOCK: u8 = 4;
    /// Gives a lock back: `sub` has bits of [`super::lock`].
    pub const UNLOCK: u8 = 5;
    /// Begins to wait for a condition (a: the lock, sub: whether for a time only).
    pub const WAIT: u8 = 6;
    /// Ends to wait (a: the lock, sub: whether for a time only).
    pub const WAIT_END: u8 = 7;
    /// Wakes one waiter.
    pub const SIGNAL: u8 = 8;
    /// Wakes all.
    pub const BROADCAST: u8 = 9;
    /// Makes a semaphore (a: its count).
    pub const SEM_INIT: u8 = 10;
    /// Adds one.
    pub const SEM_POST: u8 = 11;
    /// Takes one: `sub` is a patience, see [`super::lock`].
    pub const SEM_WAIT: u8 = 12;
    /// Asks for the count.
    pub const SEM_VALUE: u8 = 13;
    /// Makes a barrier (a: its count).
    pub const BARRIER_INIT: u8 = 14;
    /// Comes to a barrier.
    pub const ARRIVE: u8 = 15;
    /// Goes on behind it.
    pub const PASS: u8 = 16;
    /// Comes to what is done once.
    pub const ONCE_BEGIN: u8 = 17;
    /// Has done it.
    pub const ONCE_END: u8 = 18;
    /// Starts a thread (a: its number from 1 among its parent's, and its number in this run).
    pub const FORK: u8 = 19;
    /// Waits for the end of a thread (a: its number in this run).
    pub const JOIN: u8 = 20;
    /// A thread ends (a: its result).
    pub const END: u8 = 21;
    /// The process ends (a: the status).
    pub const EXIT: u8 = 22;
    /// The process fails: `sub` is one of [`super::fail`] (a: the signal).
    pub const FAIL: u8 = 23;
    /// Something that is not modelled.
    pub const UNKNOWN: u8 = 24;
    /// Says something about itself (a: a hash of what).
    pub const MARK: u8 = 25;
}

/// What a read-modify-write does (a: the operand; of a compare-and-exchange, what must be there, and b: what is stored).
pub mod modify {
    /// Adds.
    pub const ADD: u8 = 0;
    /// Subtracts.
    pub const SUB: u8 = 1;
    /// Bitwise and.
    pub const AND: u8 = 2;
    /// Bitwise or.
    pub const OR: u8 = 3;
    /// Bitwise exclusive or.
    pub const XOR: u8 = 4;
    /// Not of the bitwise and.
    pub const NAND: u8 = 5;
    /// Exchanges.
    pub const EXCHANGE: u8 = 6;
    /// Compares, and exchanges.
    pub const COMPARE: u8 = 7;
    /// Something else (b: what is stored).
    pub const OPAQUE: u8 = 8;
}

/// What a lock is like, and how it is taken, as bits.
pub mod lock {
    /// It counts how often its owner takes it.
    pub const RECURSIVE: u8 = 1;
    /// It refuses its owner.
    pub const CHECKING: u8 = 2;
    /// With other readers.
    pub const SHARED: u8 = 4;
    /// Without waiting.
    pub const TRY: u8 = 8;
    /// For a time only.
    pub const TIMED: u8 = 16;
}

/// How a process fails.
pub mod fail {
    /// An assertion failed.
    pub const ASSERTION: u8 = 0;
    /// It called `abort`.
    pub const ABORT: u8 = 1;
    /// A signal.
    pub const SIGNAL: u8 = 2;
}

/// What a thread was told.
pub mod told {
    /// The operation has not happened.
    pub const NOT_YET: u8 = 0;
    /// Nothing.
    pub const NOTHING: u8 = 1;
    /// What it read (or, of a store, what it wrote).
    pub const VALUE: u8 = 2;
    /// It has what it wanted.
    pub const GOT: u8 = 3;
    /// Another thread has it.
    pub const BUSY: u8 = 4;
    /// It was woken.
    pub const WOKEN: u8 = 5;
    /// The time is over.
    pub const TIMED_OUT: u8 = 6;
    /// The operation is an error.
    pub const REFUSED: u8 = 7;
}

/// The choice of a wait that ends because its time is over.
pub const TIME_OUT: u32 = u32::MAX;

/// A forced step.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The thread, by its index in the schedule.
    pub thread: u32,
    /// Which waiter is woken, or [`TIME_OUT`].
    pub choice: u32,
}

/// An operation.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Entry {
    /// One of [`mod@kind`].
    pub kind: u8,
    /// The number of bytes in memory.
    pub size: u8,
    /// More of the kind.
    pub sub: u8,
    /// One of [`mod@told`].
    pub told_kind: u8,
    /// The thread, by its number in this run.
    pub thread: u32,
    /// The return address.
    pub pc: u64,
    /// The memory, or the object.
    pub address: u64,
    /// See [`mod@kind`].
    pub a: [u64; 2],
    /// See [`mod@kind`].
    pub b: [u64; 2],
    /// The value that was told.
    pub told: [u64; 2],
    /// What was decided.
    pub choice: u32,
    /// Zero.
    pub reserved: u32,
}

/// The size of an [`Entry`].
pub const ENTRY: usize = size_of::<Entry>();

/// Where the parts of the file are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The forced steps.
    pub steps: usize,
    /// What threads wait to do.
    pub pending: usize,
    /// What happened.
    pub entries: usize,
    /// The end of the file.
    pub end: usize,
}

impl Layout {
    /// The layout of a file for these numbers of threads, forced steps and entries; `None` if it would be too large.
    pub fn new(threads: u64, steps: u64, most: u64) -> Option<Layout> {
        let after = |at: usize, count: u64, size: usize| {
            usize::try_from(count).ok()?.checked_mul(size)?.checked_add(at)
        };
        let steps_at = after(HEAD, threads, size_of::<crate::format::ScriptThread>())?;
        let pending = after(steps_at, steps, size_of::<Step>())?.checked_next_multiple_of(4096)?;
        let entries = pending + THREADS * ENTRY;
        let end = after(entries, most, ENTRY)?;
        Some(Layout { steps: steps_at, pending, entries, end })
    }
}

const _: () = assert!(size_of::<Head>() <= HEAD && ENTRY == 80 && size_of::<Step>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_file_do_not_overlap() {
        for (threads, steps, most) in [(0, 0, 0), (1, 3, 7), (900, 12_345, 1 << 20)] {
            let layout = Layout::new(threads, steps, most).unwrap();
            assert!(layout.steps >= HEAD + threads as usize * 8);
            assert!(layout.pending >= layout.steps + steps as usize * 8);
            assert!(layout.entries >= layout.pending + THREADS * ENTRY);
            assert_eq!(layout.end, layout.entries + most as usize * ENTRY);
        }
        assert!(Layout::new(1, u64::MAX, 1).is_none());
    }
}
