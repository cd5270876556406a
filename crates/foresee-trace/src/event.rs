//! One step of one thread, in sixteen bytes.

use serde::{Deserialize, Serialize};

use crate::ids::{CondId, LocId, LockId, SymId, ThreadId, VarId};
use crate::value::Value;

/// The kind of thing that the target of an [`Op`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TargetKind {
    /// The operation has no target.
    None,
    /// A variable.
    Var,
    /// A lock.
    Lock,
    /// A condition.
    Cond,
    /// Another thread.
    Thread,
    /// A method, a named event or a region.
    Sym,
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal, $target:ident;)*) => {
        /// What a thread did.
        ///
        /// The numbers are those of the native file format and never change.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum Op { $($(#[$doc])* $name = $code,)* }

        impl Op {
            /// Every operation, in the order of its numbers.
            pub const ALL: &[Op] = &[$(Op::$name),*];

            /// The operation with this number in the native format.
            #[inline]
            pub fn from_code(code: u8) -> Option<Op> {
                match code { $($code => Some(Op::$name),)* _ => None }
            }

            /// The word for the operation in text formats. Inner operations of a re-entrant lock
            /// have the same words as outer ones; readers distinguish them by counting.
            pub fn word(self) -> &'static str {
                match self { $(Op::$name => $word,)* }
            }

            /// The kind of the operation's target.
            #[inline]
            pub fn target_kind(self) -> TargetKind {
                match self { $(Op::$name => TargetKind::$target,)* }
            }
        }
    };
}

ops! {
    /// A read of a variable.
    Read = 0, "r", Var;
    /// A write of a variable.
    Write = 1, "w", Var;
    /// A read with synchronising strength: a volatile or atomic load, a failed compare-and-swap.
    VolatileRead = 2, "vr", Var;
    /// A write with synchronising strength: a volatile or atomic store.
    VolatileWrite = 3, "vw", Var;
    /// A read and a write in one step: fetch-and-add, a compare-and-swap that succeeded.
    Rmw = 4, "rmw", Var;
    /// Not a step but a declaration: the value of the variable before the program began.
    Init = 5, "init", Var;
    /// A lock is acquired exclusively.
    Acquire = 8, "acq", Lock;
    /// A lock is released.
    Release = 9, "rel", Lock;
    /// A lock is acquired again by its holder.
    AcquireInner = 10, "acq", Lock;
    /// A nested hold of a lock is released; the thread still holds the lock.
    ReleaseInner = 11, "rel", Lock;
    /// A read-write lock is acquired for sharing.
    AcquireShared = 12, "racq", Lock;
    /// A shared hold of a read-write lock is released.
    ReleaseShared = 13, "rrel", Lock;
    /// A shared lock is acquired again by its holder.
    AcquireSharedInner = 14, "racq", Lock;
    /// A nested shared hold is released; the thread still holds the lock.
    ReleaseSharedInner = 15, "rrel", Lock;
    /// A thread is started.
    Fork = 16, "fork", Thread;
    /// A thread that has ended is joined.
    Join = 17, "join", Thread;
    /// The thread's first event, if the capture records it.
    ThreadBegin = 18, "thread_begin", None;
    /// The thread's last event, if the capture records it.
    ThreadEnd = 19, "thread_end", None;
    /// An atomic region begins (a "transaction" in RAPID), with or without a name.
    Begin = 20, "begin", Sym;
    /// The innermost atomic region ends.
    End = 21, "end", Sym;
    /// A wait ends whose beginning was not captured.
    Wait = 24, "wait", Cond;
    /// A wait begins, which releases the lock completely.
    WaitBegin = 25, "wait_begin", Cond;
    /// A wait ends; the lock is held again, as deeply as before.
    WaitEnd = 26, "wait_end", Cond;
    /// One waiting thread is woken.
    Notify = 27, "notify", Cond;
    /// All waiting threads are woken.
    NotifyAll = 28, "notify_all", Cond;
    /// A method is entered.
    Enter = 32, "enter", Sym;
    /// A method is left.
    Exit = 33, "exit", Sym;
    /// Anything else that the program reports about itself.
    Event = 34, "event", Sym;
    /// The thread acquires the lock next without blocking: a try-lock that succeeds.
    Try = 40, "try", Lock;
    /// The thread acquires the lock next and would have given up after a timeout.
    TryFor = 41, "try_for", Lock;
    /// An exclusive acquire failed because another thread held the lock: a failed try-lock or a
    /// timeout.
    Busy = 42, "busy", Lock;
    /// A shared acquire failed.
    BusyShared = 43, "rbusy", Lock;
    /// The thread blocks until it acquires the lock exclusively, which is its next event. If this
    /// is its last event, it is still blocked.
    Request = 44, "req", Lock;
    /// The thread blocks until it acquires the lock for sharing.
    RequestShared = 45, "rreq", Lock;
    /// The thread blocks until another one ends; its next event joins that thread.
    Await = 46, "await", Thread;
    /// The thread blocks on a variable that represents another object: a semaphore, a barrier. Its
    /// next event is an access of the variable.
    Block = 47, "block", Var;
    /// A remark on the thread's next event, an atomic access of the variable: the access orders
    /// nothing.
    Relaxed = 48, "relaxed", Var;
    /// A remark on a read-modify-write: it acquires but does not release.
    AcquireOnly = 49, "acquire_only", Var;
    /// A remark on a read-modify-write: it releases but does not acquire.
    ReleaseOnly = 50, "release_only", Var;
    /// A fence that makes the preceding atomic reads acquire.
    FenceAcquire = 52, "fence_acquire", None;
    /// A fence that makes the following atomic writes release.
    FenceRelease = 53, "fence_release", None;
    /// A fence that does both.
    Fence = 54, "fence", None;
}

impl Op {
    /// Whether the operation reads a variable.
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Op::Read | Op::VolatileRead | Op::Rmw)
    }

    /// Whether the thread blocks, and its next event is what it blocks for.
    #[inline]
    pub fn requests(self) -> bool {
        matches!(self, Op::Request | Op::RequestShared | Op::Await | Op::Block)
    }

    /// Whether this operation is the one that a thread performs after `request`.
    pub fn answers(self, request: Op) -> bool {
        match request {
            Op::Request | Op::RequestShared => matches!(
                self,
                Op::Acquire
                    | Op::AcquireInner
                    | Op::AcquireShared
                    | Op::AcquireSharedInner
                    | Op::Busy
                    | Op::BusyShared
            ),
            Op::Await => self == Op::Join,
            Op::Block => self.reads() || self.writes(),
            _ => false,
        }
    }

    /// Whether the operation is a step that writes a variable.
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Op::Write | Op::VolatileWrite | Op::Rmw)
    }

    /// Whether the operation accesses a variable atomically.
    #[inline]
    pub fn is_atomic(self) -> bool {
        matches!(self, Op::VolatileRead | Op::VolatileWrite | Op::Rmw)
    }

    /// Whether the operation declares the thread's next access weaker than sequentially consistent.
    #[inline]
    pub fn weakens(self) -> bool {
        matches!(self, Op::Relaxed | Op::AcquireOnly | Op::ReleaseOnly)
    }
}

/// The target of an operation that has none, or of an unnamed region.
const NO_TARGET: u32 = u32::MAX;

/// One step of one thread.
///
/// Sixteen bytes: operation and thread, target, location, and payload. The payload is empty, a
/// small integer, or an index into the [`Pool`] of the event's batch or trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Operation in the low byte, thread in the other three.
    head: u32,
    target: u32,
    loc: u32,
    payload: u32,
}

const _: () = assert!(size_of::<Event>() == 16);

/// Why four numbers are not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadEvent {
    /// No operation has this number.
    #[error("{0} is not an operation")]
    Op(u8),
    /// The thread's number needs more than 24 bits.
    #[error("thread number {0} is too large")]
    Thread(u32),
}

impl Event {
    /// An event without target, location and payload.
    #[inline]
    pub fn new(thread: ThreadId, op: Op) -> Event {
        debug_assert!(thread.0 <= ThreadId::MAX);
        Event { head: thread.0 << 8 | op as u32, target: NO_TARGET, loc: 0, payload: 0 }
    }

    /// The event of a native record. Payloads of [`Event::raw`] that point to a pool must not be
    /// written to files.
    #[inline]
    pub fn from_raw(
        op: u8,
        thread: u32,
        target: u32,
        loc: u32,
        payload: u32,
    ) -> Result<Event, BadEvent> {
        let op = Op::from_code(op).ok_or(BadEvent::Op(op))?;
        if thread > ThreadId::MAX {
            return Err(BadEvent::Thread(thread));
        }
        Ok(Event::from_parts(op, thread, target, loc, payload))
    }

    /// Like [`Event::from_raw`], for a valid operation and a thread number that fits.
    #[inline]
    pub fn from_parts(op: Op, thread: u32, target: u32, loc: u32, payload: u32) -> Event {
        Event { head: thread << 8 | op as u32, target: target.wrapping_sub(1), loc, payload }
    }

    /// Operation, thread, target (counted from one; zero for no target), location and payload as numbers.
    #[inline]
    pub fn raw(&self) -> (u8, u32, u32, u32, u32) {
        (self.head as u8, self.head >> 8, self.target.wrapping_add(1), self.loc, self.payload)
    }

    /// The same event with a target.
    #[inline]
    pub fn with_target(mut self, target: u32) -> Event {
        self.target = target;
        self
    }

    /// The same event with a location.
    #[inline]
    pub fn with_loc(mut self, loc: LocId) -> Event {
        self.loc = loc.0;
        self
    }

    /// The same event with values, which go to `pool` unless they fit the event itself.
    #[inline]
    pub fn with_values(mut self, values: &[Value], pool: &mut Pool) -> Event {
        self.payload = pool.store(values);
        self
    }

    /// The same [`Op::WaitBegin`] or [`Op::WaitEnd`] with the lock that it releases or acquires
    /// again.
    #[inline]
    pub fn with_wait_lock(mut self, lock: Option<LockId>) -> Event {
        debug_assert!(self.is_wait_half());
        self.payload = lock.map_or(0, |l| l.0 + 1);
        self
    }

    /// The same event of another thread.
    #[inline]
    pub fn with_thread(mut self, thread: ThreadId) -> Event {
        self.head = thread.0 << 8 | self.head & 0xff;
        self
    }

    /// The same event with another operation.
    #[inline]
    pub fn with_op(mut self, op: Op) -> Event {
        self.head = self.head & !0xff | op as u32;
        self
    }

    /// The operation.
    #[inline]
    pub fn op(&self) -> Op {
        match Op::from_code(self.head as u8) {
            Some(op) => op,
            None => unreachable!("events are only made with valid operations"),
        }
    }

    /// The thread that performed it.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        ThreadId(self.head >> 8)
    }

    /// The source location, or [`LocId::NONE`].
    #[inline]
    pub fn loc(&self) -> LocId {
        LocId(self.loc)
    }

    /// The number of the target, of whatever kind it is.
    #[inline]
    pub fn target(&self) -> Option<u32> {
        (self.target != NO_TARGET).then_some(self.target)
    }

    /// The variable of an access or an initial value.
    #[inline]
    pub fn var(&self) -> VarId {
        debug_assert_eq!(self.op().target_kind(), TargetKind::Var);
        VarId(self.target)
    }

    /// The lock of an acquire or release.
    #[inline]
    pub fn lock(&self) -> LockId {
        debug_assert_eq!(self.op().target_kind(), TargetKind::Lock);
        LockId(self.target)
    }

    /// The condition of a wait or notify.
    #[inline]
    pub fn cond(&self) -> CondId {
        debug_assert_eq!(self.op().target_kind(), TargetKind::Cond);
        CondId(self.target)
    }

    /// The other thread of a fork or join.
    #[inline]
    pub fn other(&self) -> ThreadId {
        debug_assert_eq!(self.op().target_kind(), TargetKind::Thread);
        ThreadId(self.target)
    }

    /// The name of a method, a named event or a region.
    #[inline]
    pub fn sym(&self) -> Option<SymId> {
        debug_assert_eq!(self.op().target_kind(), TargetKind::Sym);
        self.target().map(SymId)
    }

    /// The lock of [`Op::WaitBegin`] or [`Op::WaitEnd`], if it is known.
    #[inline]
    pub fn wait_lock(&self) -> Option<LockId> {
        if self.is_wait_half() && self.payload != 0 { Some(LockId(self.payload - 1)) } else { None }
    }

    #[inline]
    fn is_wait_half(&self) -> bool {
        matches!(self.op(), Op::WaitBegin | Op::WaitEnd)
    }

    /// Whether the event's values are in its pool, so that it cannot be copied to another pool
    /// unchanged.
    #[inline]
    pub fn is_pooled(&self) -> bool {
        self.payload & POOLED != 0 && !self.is_wait_half()
    }
}

/// Set in payloads that point to the pool; other payloads are a small number plus one, or zero.
const POOLED: u32 = 1 << 31;

/// The values that do not fit into the events themselves.
///
/// A pool belongs to one batch or one trace and is cleared with it, so that a reader's memory does
/// not grow with the number of values it has read.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    values: Vec<Value>,
    /// Where each list of values ends; it starts where its predecessor ends.
    ends: Vec<u32>,
}

/// The values of one event.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// A small number, stored in the event itself.
    One(Value),
    /// Any number of values, from the pool.
    Many(&'a [Value]),
}

impl std::ops::Deref for Values<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

impl Pool {
    /// Removes all values.
    pub fn clear(&mut self) {
        self.values.clear();
        self.ends.clear();
    }

    /// All values of an event: the value read or written, old and new value of a read-modify-write,
    /// the arguments of a call or a named event.
    #[inline]
    pub fn values(&self, event: &Event) -> Values<'_> {
        match event.payload {
            0 => Values::Many(&[]),
            _ if event.is_wait_half() => Values::Many(&[]),
            p if p & POOLED == 0 => Values::One(Value::Int(unzigzag(p - 1))),
            p => {
                let i = (p & !POOLED) as usize;
                let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
                Values::Many(&self.values[start..self.ends[i] as usize])
            }
        }
    }

    /// The value that an access writes or reads: the last of [`Pool::values`].
    #[inline]
    pub fn value(&self, event: &Event) -> Option<Value> {
        self.values(event).last().copied()
    }

    /// The value that a read found in its variable, if it is known. If a read-modify-write carries
    /// only one value, that is the value it wrote.
    #[inline]
    pub fn value_found(&self, event: &Event) -> Option<Value> {
        match (event.op(), &*self.values(event)) {
            (Op::Rmw, &[old, _]) => Some(old),
            (Op::Rmw, _) => None,
            (op, values) if op.reads() => values.last().copied(),
            _ => None,
        }
    }

    /// The value that a write left in its variable, if it is known.
    #[inline]
    pub fn value_left(&self, event: &Event) -> Option<Value> {
        if event.op().writes() { self.value(event) } else { None }
    }

    /// The number of value lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no event uses this pool.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Copies an event of the pool `from` into a trace or batch that has this pool.
    #[inline]
    pub fn adopt(&mut self, event: Event, from: &Pool) -> Event {
        if event.is_pooled() { event.with_values(&from.values(&event), self) } else { event }
    }

    /// Appends all values of `other` and updates its events to point to them.
    pub fn append(&mut self, other: &Pool, events: &mut [Event]) {
        if other.is_empty() {
            return;
        }
        let (lists, values) = (self.ends.len() as u32, self.values.len() as u32);
        assert!(lists as usize + other.ends.len() < POOLED as usize, "a pool has 2^31 places");
        self.values.extend_from_slice(&other.values);
        self.ends.extend(other.ends.iter().map(|end| end + values));
        for event in events {
            if event.is_pooled() {
                event.payload += lists;
            }
        }
    }

    #[inline]
    fn store(&mut self, values: &[Value]) -> u32 {
        match values {
            [] => 0,
            &[Value::Int(n)] if (-(1 << 29)..1 << 29).contains(&n) => zigzag(n) + 1,
            _ => {
                self.values.extend_from_slice(values);
                self.ends.push(self.values.len() as u32);
                POOLED | (self.ends.len() - 1) as u32
            }
        }
    }
}

/// Maps small integers of either sign to small unsigned integers.
#[inline]
fn zigzag(n: i64) -> u32 {
    (n << 1 ^ n >> 63) as u32
}

#[inline]
fn unzigzag(z: u32) -> i64 {
    i64::from(z >> 1) ^ -i64::from(z & 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_words_are_consistent() {
        for &op in Op::ALL {
            assert_eq!(Op::from_code(op as u8), Some(op));
            let same: Vec<_> = Op::ALL.iter().filter(|o| o.word() == op.word()).collect();
            // Only the inner operations of locks share a word, with their outer ones.
            assert!(same.len() == 1 || op.target_kind() == TargetKind::Lock && same.len() == 2);
        }
        assert_eq!(Op::from_code(255), None);
    }

    #[test]
    fn values_come_back() {
        let mut pool = Pool::default();
        let event = Event::new(ThreadId(3), Op::Write).with_target(7).with_loc(LocId(9));
        let lists: &[&[Value]] = &[
            &[],
            &[Value::Int(0)],
            &[Value::Int(-1)],
            &[Value::Int(i64::MIN)],
            &[Value::Int((1 << 29) - 1)],
            &[Value::Int(-(1 << 29))],
            &[Value::Int(1 << 29)],
            &[Value::Uint(u64::MAX)],
            &[Value::Bool(true), Value::Float(2.5), Value::Str(SymId(4))],
        ];
        let events: Vec<_> = lists.iter().map(|l| event.with_values(l, &mut pool)).collect();
        for (event, &list) in events.iter().zip(lists) {
            assert_eq!(&*pool.values(event), list);
            assert_eq!(
                (event.thread(), event.var(), event.loc()),
                (ThreadId(3), VarId(7), LocId(9))
            );
            let (op, thread, target, loc, payload) = event.raw();
            assert_eq!(Event::from_raw(op, thread, target, loc, payload), Ok(*event));
        }
        let mut joined = pool.clone();
        let mut moved = events.clone();
        joined.append(&pool, &mut moved);
        for (event, &list) in moved.iter().zip(lists) {
            assert_eq!(&*joined.values(event), list);
        }
    }

    #[test]
    fn a_wait_keeps_its_lock_where_others_keep_values() {
        let wait =
            Event::new(ThreadId(0), Op::WaitEnd).with_target(1).with_wait_lock(Some(LockId(5)));
        assert_eq!(wait.wait_lock(), Some(LockId(5)));
        assert!(Pool::default().values(&wait).is_empty());
        let read = Event::new(ThreadId(0), Op::Read).with_target(1);
        assert_eq!(read.wait_lock(), None);
    }
}
