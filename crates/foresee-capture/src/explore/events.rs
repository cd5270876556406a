//! What the runtime wrote about a run, as the events of the seam.

use std::collections::HashMap;

use foresee_explore::program::{
    Cell, Ending, Event, Execution, Failure, LockKind, Modify, Operation, Patience, Pending,
    RunError, ThreadName, Told, Value,
};
use foresee_rt::exploring::{Entry, fail, kind, lock, modify, reason, state, told};

use super::file::RunLog;
use super::launch::RunEnd;
use super::names::Names;

/// The number of the thread that runs `main`.
const MAIN: u32 = 1;
const SEGMENTATION: i32 = 11;
/// Nothing is ever mapped below this.
const LOWEST: u64 = 1 << 16;

struct Threads {
    names: Vec<ThreadName>,
    /// Indices by the runtime's numbers.
    indices: HashMap<u32, u32>,
}

impl Threads {
    fn of(entries: &[Entry]) -> Threads {
        let mut threads =
            Threads { names: vec![ThreadName::default()], indices: HashMap::from([(MAIN, 0)]) };
        for entry in entries.iter().filter(|entry| entry.kind == kind::FORK) {
            let parent = threads.name(entry.thread);
            let index = threads.names.len() as u32;
            threads.names.push(parent.child(entry.a[0] as u32));
            threads.indices.insert(entry.a[1] as u32, index);
        }
        threads
    }

    fn index(&self, number: u32) -> u32 {
        self.indices.get(&number).copied().unwrap_or(0)
    }

    fn name(&self, number: u32) -> ThreadName {
        self.names[self.index(number) as usize].clone()
    }
}

/// The threads of a run by their numbers in its log, and the addresses of its locks.
pub(super) fn named(log: &RunLog) -> (Vec<(ThreadName, u32)>, Vec<u64>) {
    let threads = Threads::of(&log.entries);
    let numbers = threads.indices.iter().map(|(&n, &i)| (threads.names[i as usize].clone(), n));
    let mut locks: Vec<u64> = log
        .entries
        .iter()
        .filter_map(|entry| match entry.kind {
            kind::LOCK | kind::UNLOCK => Some(entry.address),
            kind::WAIT | kind::WAIT_END => Some(entry.a[0]),
            _ => None,
        })
        .collect();
    locks.sort_unstable();
    locks.dedup();
    (numbers.collect(), locks)
}

/// The execution that a run's file describes.
pub(super) fn execution(log: &RunLog, end: &RunEnd, names: &Names) -> Result<Execution, RunError> {
    let head = &log.head;
    if head.started == 0 {
        let how = end.status;
        return Err(RunError(format!(
            "the program ended before it could be controlled ({how}): is its runtime that of this foresee?"
        )));
    }
    if head.state == state::LOST {
        return Err(RunError(lost(head.reason).to_owned()));
    }
    let threads = Threads::of(&log.entries);
    let convert = Convert { threads: &threads, names };
    let mut events: Vec<Event> = Vec::with_capacity(log.entries.len() + 1);
    let mut pending = Vec::new();
    let mut unfinished = None;
    for entry in &log.entries {
        if entry.told_kind == told::NOT_YET {
            unfinished = Some(entry);
            continue;
        }
        events.push(convert.event(entry));
    }
    for entry in log.pending.iter().filter(|entry| entry.kind != kind::NONE) {
        let (thread, place) = (threads.index(entry.thread), names.place_of(entry.pc));
        pending.push(Pending { thread, operation: convert.pending(entry), place });
    }
    let mut diverged = None;
    let ending = match head.state {
        state::DIVERGED => {
            diverged = Some((head.at as usize, divergence(head.reason).to_owned()));
            Ending::Cut
        }
        state::DEADLOCK => Ending::Deadlock,
        state::CUT | state::SPINNING => Ending::Cut,
        _ if end.is_late => {
            if let Some(entry) = unfinished {
                let (thread, place) = (threads.index(entry.thread), names.place_of(entry.pc));
                pending.push(Pending { thread, operation: convert.pending(entry), place });
            }
            // It hangs only because no other thread went on: in a plain run, one might have ended its wait.
            if head.in_kernel == 0 { Ending::TimedOut } else { Ending::Cut }
        }
        _ => {
            let last = events.last().map(|event| event.operation);
            let is_over = matches!(last, Some(Operation::Exit(_) | Operation::Fail(_)));
            let has_main_ended = events
                .iter()
                .any(|event| event.thread == 0 && matches!(event.operation, Operation::End(_)));
            let operation = match (end.signal(), end.status.code()) {
                _ if is_over => None,
                (Some(signal), _) => Some(Operation::Fail(Failure::Signal(signal))),
                (None, _) if has_main_ended => None,
                (None, code) => Some(Operation::Exit(code.unwrap_or(0))),
            };
            if let Some(operation) = operation {
                // What the thread that failed was doing is not an operation that happened.
                let place = unfinished.map_or(0, |entry| entry.pc);
                events.push(Event {
                    thread: threads.index(head.running),
                    operation,
                    place: names.place_of(place),
                    told: Told::Nothing,
                    stored: None,
                    choice: 0,
                });
            }
            Ending::Finished
        }
    };
    Ok(Execution { threads: threads.names, events, pending, ending, diverged })
}

/// Whether the process came to no end of its own: it has become another program.
pub(super) fn has_vanished(log: &RunLog, end: &RunEnd) -> bool {
    let threads = Threads::of(&log.entries);
    let is_end = |entry: &Entry| match entry.kind {
        kind::EXIT | kind::FAIL => true,
        kind::END => threads.index(entry.thread) == 0,
        _ => false,
    };
    let is_forced = log.head.state != state::RUNNING || end.is_late || end.signal().is_some();
    !is_forced && !log.entries.iter().any(is_end)
}

fn lost(why: u32) -> &'static str {
    match why {
        reason::TOO_MANY => {
            "the program has too many threads, or threads that start each other too deeply, or too many locks to be explored"
        }
        reason::MEMORY => "there are not enough free addresses for the program's threads and heaps",
        _ => {
            "a lock or condition was used in a way that libc does not support, so the program cannot be controlled"
        }
    }
}

fn divergence(why: u32) -> &'static str {
    match why {
        reason::NOT_STARTED => "the thread was not started",
        reason::ENDED => "the thread had ended",
        reason::NO_TIME => "nothing can time out there",
        _ => "the thread waits for something that it cannot have",
    }
}

struct Convert<'c> {
    threads: &'c Threads,
    names: &'c Names,
}

fn wide([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn bits(words: [u64; 2], width: u8) -> Value {
    let all = wide(words);
    Value::Bits(if width < 16 { all & ((1 << (8 * u32::from(width))) - 1) } else { all })
}

impl Convert<'_> {
    fn event(&self, entry: &Entry) -> Event {
        let told = match (entry.kind, entry.told_kind) {
            (kind::STORE, _) => Told::Nothing,
            (kind::JOIN, told::VALUE) => Told::Value(Value::Bits(wide(entry.told))),
            (_, told::VALUE) => Told::Value(bits(entry.told, entry.size)),
            (_, told::GOT) => Told::Got,
            (_, told::BUSY) => Told::Busy,
            (_, told::WOKEN) => Told::Woken,
            (_, told::TIMED_OUT) => Told::TimedOut,
            (_, told::REFUSED) => Told::Refused,
            _ => Told::Nothing,
        };
        let is_opaque = entry.kind == kind::MODIFY && entry.sub == modify::OPAQUE;
        Event {
            thread: self.threads.index(entry.thread),
            operation: self.operation(entry, Some(bits(entry.told, entry.size))),
            place: self.names.place_of(entry.pc),
            told,
            stored: is_opaque.then(|| bits(entry.b, entry.size)),
            choice: entry.choice,
        }
    }

    /// An operation that a thread is about to do. An access to where nothing is ever mapped is a failure.
    fn pending(&self, entry: &Entry) -> Operation {
        let is_access = matches!(entry.kind, kind::LOAD | kind::STORE | kind::MODIFY);
        match is_access && entry.address < LOWEST {
            true => Operation::Fail(Failure::Signal(SEGMENTATION)),
            false => self.operation(entry, None),
        }
    }

    fn operation(&self, entry: &Entry, stored: Option<Value>) -> Operation {
        let spot = self.names.spot(entry.address);
        let cell = Cell { at: spot, width: entry.size };
        let value = |words| bits(words, entry.size);
        let (condition, timed) = (spot, entry.sub != 0);
        let lock = || self.names.spot(entry.a[0]);
        match entry.kind {
            kind::LOAD => Operation::Load(cell),
            kind::STORE => Operation::Store(cell, stored),
            kind::MODIFY => Operation::Modify(
                cell,
                match entry.sub {
                    modify::ADD => Modify::Add(value(entry.a)),
                    modify::SUB => Modify::Sub(value(entry.a)),
                    modify::AND => Modify::And(value(entry.a)),
                    modify::OR => Modify::Or(value(entry.a)),
                    modify::XOR => Modify::Xor(value(entry.a)),
                    modify::NAND => Modify::Nand(value(entry.a)),
                    modify::EXCHANGE => Modify::Exchange(value(entry.a)),
                    modify::COMPARE => Modify::CompareExchange {
                        expected: value(entry.a),
                        desired: value(entry.b),
                    },
                    _ => Modify::Opaque,
                },
            ),
            kind::LOCK => Operation::Lock {
                lock: spot,
                kind: lock_kind(entry.sub),
                shared: entry.sub & lock::SHARED != 0,
                patience: patience(entry.sub),
            },
            kind::UNLOCK => Operation::Unlock { lock: spot, kind: lock_kind(entry.sub) },
            kind::WAIT => Operation::Wait { condition, lock: lock(), timed },
            kind::WAIT_END => Operation::WaitEnd { condition, lock: lock(), timed },
            kind::SIGNAL => Operation::Signal(spot),
            kind::BROADCAST => Operation::Broadcast(spot),
            kind::SEM_INIT => Operation::SemInit(spot, entry.a[0] as u32),
            kind::SEM_POST => Operation::SemPost(spot),
            kind::SEM_WAIT => Operation::SemWait(spot, patience(entry.sub)),
            kind::SEM_VALUE => Operation::SemValue(spot),
            kind::BARRIER_INIT => Operation::BarrierInit(spot, entry.a[0] as u32),
            kind::ARRIVE => Operation::Arrive(spot),
            kind::PASS => Operation::Pass(spot),
            kind::ONCE_BEGIN => Operation::OnceBegin(spot),
            kind::ONCE_END => Operation::OnceEnd(spot),
            kind::FORK => Operation::Fork(entry.a[0] as u32),
            kind::JOIN if entry.sub == 0 => {
                Operation::Join { thread: self.threads.name(entry.a[0] as u32).join() }
            }
            kind::END => Operation::End(Value::Bits(wide(entry.a))),
            kind::EXIT => Operation::Exit(entry.a[0] as i32),
            kind::FAIL => Operation::Fail(match entry.sub {
                fail::ASSERTION => Failure::Assertion,
                fail::ABORT => Failure::Abort,
                _ => Failure::Signal(entry.a[0] as i32),
            }),
            kind::MARK => Operation::Mark(wide(entry.a)),
            _ => Operation::Unknown,
        }
    }
}

fn lock_kind(sub: u8) -> LockKind {
    match sub {
        _ if sub & lock::RECURSIVE != 0 => LockKind::Recursive,
        _ if sub & lock::CHECKING != 0 => LockKind::ErrorCheck,
        _ => LockKind::Normal,
    }
}

fn patience(sub: u8) -> Patience {
    match sub {
        _ if sub & lock::TRY != 0 => Patience::Try,
        _ if sub & lock::TIMED != 0 => Patience::Timed,
        _ => Patience::Wait,
    }
}
