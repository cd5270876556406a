//! The seam between the search and the programs that it explores: what a run is asked for, and what it reports.
//!
//! A [`Program`] runs under a gate: one thread moves at a time, and an operation is reported with what its thread was told.
//! Everything that a report names must be named the same in every run of the program, whatever the schedule: threads by the
//! path of their creation, objects by who made them, code by its place in the file. Addresses are never names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread, by the path of its creation: `[]` runs `main`, `[2]` is the second thread that it starts, `[2, 1]` the first
/// thread that that one starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadName(pub Vec<u32>);

/// A thread of one schedule or one execution: an index into its table of threads.
pub type Thread = u32;

/// An object in memory (a global variable, a block of the heap, a thread's stack), by a hash of its stable name. What the name
/// is in words, [`Program::object_name`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Object(pub u128);

/// A place in the code, the same in every run. [`Program::place_name`] says it in words. Zero is no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u64);

/// A byte of an object: where a variable, a lock or a condition begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spot {
    /// The object.
    pub object: Object,
    /// The distance from its beginning, in bytes.
    pub offset: u64,
}

/// Some bytes of an object. Copies of more than sixteen bytes are reported in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cell {
    /// Where they begin.
    pub at: Spot,
    /// How many, from 1 to 16.
    pub width: u8,
}

/// What is in memory, or what a thread computes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Bits that are the same in every run.
    Bits(u128),
    /// The address of a byte of an object, as bits would differ from run to run.
    Address(Spot),
}

/// What a read-modify-write does with the old value. The operand is the same in every run, given the thread's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modify {
    /// Adds.
    Add(Value),
    /// Subtracts.
    Sub(Value),
    /// Bitwise and.
    And(Value),
    /// Bitwise or.
    Or(Value),
    /// Bitwise exclusive or.
    Xor(Value),
    /// Not of the bitwise and.
    Nand(Value),
    /// Stores another value.
    Exchange(Value),
    /// Stores `desired` if the old value is `expected`.
    CompareExchange {
        /// What must be there.
        expected: Value,
        /// What is stored then.
        desired: Value,
    },
    /// Something else: what is stored is learnt from runs, case by case ([`Event::stored`]).
    Opaque,
}

/// What a lock does when its owner locks it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// The owner waits for itself.
    Normal,
    /// It counts.
    Recursive,
    /// It refuses: the thread is told [`Told::Refused`]. It also refuses to be unlocked by others.
    ErrorCheck,
}

/// How a thread wants a lock, a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// It waits as long as it takes.
    Wait,
    /// It does not wait: [`Told::Got`] or [`Told::Busy`].
    Try,
    /// It waits for a time: [`Told::Got`] or [`Told::TimedOut`]. If nothing is in its way, it never times out.
    Timed,
}

/// What a thread is about to do. An operation is one step: it happens at once, as if no other thread ran meanwhile.
///
/// Waiting for a condition and passing a barrier are two steps each: [`Operation::Wait`] and then [`Operation::WaitEnd`],
/// [`Operation::Arrive`] and then [`Operation::Pass`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reads; told the [`Told::Value`].
    Load(Cell),
    /// Writes; told nothing. `None` in [`Execution::pending`] if it is not known yet what: that is a fact of its own.
    Store(Cell, Option<Value>),
    /// Reads and writes at once; told the old [`Told::Value`].
    Modify(Cell, Modify),
    /// Takes a lock. Told [`Told::Nothing`], or [`Told::Refused`] by a lock that checks errors; a [`Patience`] other than
    /// `Wait` is told how it ended.
    Lock {
        /// The lock.
        lock: Spot,
        /// What it is like.
        kind: LockKind,
        /// Whether other readers may have it, too.
        shared: bool,
        /// Whether the thread waits.
        patience: Patience,
    },
    /// Gives a lock back; told nothing.
    Unlock {
        /// The lock.
        lock: Spot,
        /// What it is like.
        kind: LockKind,
    },
    /// Gives the lock back and begins to wait; told nothing.
    Wait {
        /// The condition.
        condition: Spot,
        /// The lock, which it takes again at the end.
        lock: Spot,
        /// Whether it waits for a time only.
        timed: bool,
    },
    /// Ends the wait, with the lock: told [`Told::Woken`], or [`Told::TimedOut`] if nothing woke it. Possible when the lock is
    /// free and the thread was woken, or waits for a time only.
    WaitEnd {
        /// The condition.
        condition: Spot,
        /// The lock.
        lock: Spot,
        /// Whether it waited for a time only.
        timed: bool,
    },
    /// Wakes one waiter, if there is one: [`Step::choice`] says which, in the order in which they began to wait. Told nothing.
    Signal(Spot),
    /// Wakes all waiters; told nothing.
    Broadcast(Spot),
    /// Makes or resets a semaphore; told nothing.
    SemInit(Spot, u32),
    /// Adds one; told nothing.
    SemPost(Spot),
    /// Takes one.
    SemWait(Spot, Patience),
    /// Asks how many there are; told the [`Told::Value`].
    SemValue(Spot),
    /// Makes a barrier for this many threads; told nothing.
    BarrierInit(Spot, u32),
    /// Comes to a barrier; told [`Told::Got`] if it was the last one awaited, [`Told::Busy`] otherwise.
    Arrive(Spot),
    /// Goes on behind the barrier, once all have come; told nothing.
    Pass(Spot),
    /// Comes to what is done once: told [`Told::Got`] if this thread must do it, [`Told::Busy`] if it is done. Waits while
    /// another thread does it.
    OnceBegin(Spot),
    /// Has done what is done once; told nothing.
    OnceEnd(Spot),
    /// Starts a thread; told nothing. The number is the last part of its [`ThreadName`].
    Fork(u32),
    /// Waits for the end of a thread that this or another one started; told the [`Told::Value`] of its [`Operation::End`].
    Join {
        /// The thread: see [`Join`].
        thread: Join,
    },
    /// The thread ends, with this value.
    End(Value),
    /// The process ends with this status, whatever other threads are about to do: `exit`, or the end of `main`.
    Exit(i32),
    /// The process fails here.
    Fail(Failure),
    /// Says something about itself that only properties see, by a hash of what; told nothing. What it is in words,
    /// whoever judges the properties knows.
    Mark(u128),
    /// Something whose meaning is not known here, and that may hang on other threads: coverage is not claimed.
    Unknown,
}

/// The thread that is joined, by a hash of its [`ThreadName`], so that operations are small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Join(pub u128);

/// How a process fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// An assertion of the program.
    Assertion,
    /// `abort`, an exception that nothing catches.
    Abort,
    /// A signal, such as that of a wrong address.
    Signal(i32),
    /// A sanitizer's report.
    Sanitizer,
}

/// What a thread gets back from an operation. What it does next hangs on these alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// What was read.
    Value(Value),
    /// It has what it wanted.
    Got,
    /// Another thread has it.
    Busy,
    /// Another thread woke it.
    Woken,
    /// The time is over.
    TimedOut,
    /// The operation is an error.
    Refused,
}

/// A step of a schedule: this thread does its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The thread, in [`Schedule::threads`].
    pub thread: Thread,
    /// What is decided besides. For [`Operation::Signal`]: which waiter is woken, in the order in which they began to wait. For
    /// [`Operation::WaitEnd`] of a timed wait and for [`Patience::Timed`]: [`TIME_OUT`] if the time is over. Otherwise 0.
    pub choice: u32,
}

/// The [`Step::choice`] of a wait that ends because its time is over.
pub const TIME_OUT: u32 = u32::MAX;

/// How a run goes on after the forced steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// The thread that moved last goes on while it can; then the first one that can, in the order of [`ThreadName`]. Nothing
    /// times out while any thread can move otherwise.
    Straight,
    /// Any thread that can move, by chance.
    Random(u64),
}

/// What a run must do.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The threads that steps name; the first one runs `main`.
    pub threads: Vec<ThreadName>,
    /// The steps that are forced.
    pub steps: Vec<Step>,
    /// What comes after them.
    pub tail: Tail,
    /// The number of operations after which the run is ended ([`Ending::Cut`]).
    pub most_operations: usize,
}

/// One operation of a run.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// The thread, in [`Execution::threads`].
    pub thread: Thread,
    /// What it did.
    pub operation: Operation,
    /// Where.
    pub place: Place,
    /// What it was told.
    pub told: Told,
    /// What a [`Modify::Opaque`] stored.
    pub stored: Option<Value>,
    /// What was decided, as in [`Step::choice`].
    pub choice: u32,
}

/// What a live thread is about to do at the end of a run.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The thread.
    pub thread: Thread,
    /// What it is about to do.
    pub operation: Operation,
    /// Where.
    pub place: Place,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the operations that it reports: all threads ended, or the last event is [`Operation::Exit`] or
    /// [`Operation::Fail`].
    Finished,
    /// No thread can move, and not all have ended.
    Deadlock,
    /// There were too many operations.
    Cut,
    /// The time for a run was over, with a thread that does not come to its next operation.
    TimedOut,
}

/// What a run did.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The threads; the first one runs `main`.
    pub threads: Vec<ThreadName>,
    /// All operations, in the order in which they happened.
    pub events: Vec<Event>,
    /// What each thread that has not ended is about to do, as far as it is known.
    pub pending: Vec<Pending>,
    /// How it ended.
    pub ending: Ending,
    /// The forced step that could not be taken, and why. What happened until then is reported all the same.
    pub diverged: Option<(usize, String)>,
}

/// Why a program could not be run at all.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RunError(pub String);

/// A program that can be run again and again. With several runs at a time, each has a program of its own.
pub trait Program: Send {
    /// Runs it once.
    ///
    /// # Errors
    /// If it cannot be run or controlled, with what to do about it.
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError>;

    /// Which part of the program is not captured, as far as runs have shown: what that does is in no schedule.
    fn unseen(&self) -> Option<String> {
        None
    }

    /// The name of an object of a run so far, in words.
    fn object_name(&self, object: Object) -> String {
        format!("{:x}", object.0)
    }

    /// A place in the code, in words: `bank.c:41`.
    fn place_name(&self, place: Place) -> String {
        format!("{:x}", place.0)
    }
}

impl Event {
    /// What a read-modify-write leaves, if it can be computed.
    pub fn left(&self) -> Option<Value> {
        let (Operation::Modify(cell, modify), Told::Value(old)) = (self.operation, self.told)
        else {
            return None;
        };
        self.stored.or_else(|| crate::model::left(cell, modify, old))
    }
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.0.iter().try_for_each(|part| write!(f, ".{part}"))
    }
}

impl ThreadName {
    /// The thread that this one starts as its `number`-th, from 1.
    pub fn child(&self, number: u32) -> ThreadName {
        ThreadName(self.0.iter().copied().chain([number]).collect())
    }

    /// How [`Operation::Join`] names it.
    pub fn join(&self) -> Join {
        let mut hash = crate::hash::Hasher::new(b"thread");
        self.0.iter().for_each(|&part| hash.word(u128::from(part)));
        Join(hash.finish())
    }
}
