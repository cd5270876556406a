//! One step of one thread, in sixteen bytes.

use crate::ids::{CondId, LocId, LockId, SymId, ThreadId, VarId};
use crate::value::Value;

/// What kind of thing the target of an [`Op`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// The operation stands alone.
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
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Op { $($(#[$doc])* $name = $code,)* }

        impl Op {
            /// Every operation, in the order of their numbers.
            pub const ALL: &[Op] = &[$(Op::$name),*];

            /// The operation with this number in the native format.
            #[inline]
            pub fn from_code(code: u8) -> Option<Op> {
                match code { $($code => Some(Op::$name),)* _ => None }
            }

            /// The word that stands for the operation in text formats. The inner operations of a
            /// re-entrant lock have the words of the outer ones: the reader tells them apart by
            /// counting.
            pub fn word(self) -> &'static str {
                match self { $(Op::$name => $word,)* }
            }

            /// What the operation's target is.
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
    /// Not a step but a statement: what the variable held before the program began.
    Init = 5, "init", Var;
    /// A lock is taken for oneself alone.
    Acquire = 8, "acq", Lock;
    /// A lock is given back.
    Release = 9, "rel", Lock;
    /// A lock is taken once more by its holder.
    AcquireInner = 10, "acq", Lock;
    /// A lock is given back by a holder who keeps it.
    ReleaseInner = 11, "rel", Lock;
    /// A read-write lock is taken together with other readers.
    AcquireShared = 12, "racq", Lock;
    /// A shared hold of a read-write lock is given back.
    ReleaseShared = 13, "rrel", Lock;
    /// A shared hold is taken once more by its holder.
    AcquireSharedInner = 14, "racq", Lock;
    /// A shared hold is given back by a holder who keeps it.
    ReleaseSharedInner = 15, "rrel", Lock;
    /// A thread is started.
    Fork = 16, "fork", Thread;
    /// The end of a thread has been waited for.
    Join = 17, "join", Thread;
    /// The thread's first event, where the capture notes it.
    ThreadBegin = 18, "thread_begin", None;
    /// The thread's last event, where the capture notes it.
    ThreadEnd = 19, "thread_end", None;
    /// An atomic region begins (a "transaction" in RAPID's words), with or without a name.
    Begin = 20, "begin", Sym;
    /// The innermost atomic region ends.
    End = 21, "end", Sym;
    /// A wait is over; the capture did not note when it began.
    Wait = 24, "wait", Cond;
    /// A wait begins, and with it the lock is given up completely.
    WaitBegin = 25, "wait_begin", Cond;
    /// A wait is over, and the lock is held again as deeply as before.
    WaitEnd = 26, "wait_end", Cond;
    /// One waiting thread is woken.
    Notify = 27, "notify", Cond;
    /// All waiting threads are woken.
    NotifyAll = 28, "notify_all", Cond;
    /// A method is entered.
    Enter = 32, "enter", Sym;
    /// A method is left.
    Exit = 33, "exit", Sym;
    /// Anything else the program says of itself.
    Event = 34, "event", Sym;
    /// The thread takes the lock next, without waiting for it: a try-lock that succeeds.
    Try = 40, "try", Lock;
    /// The thread takes the lock next, and would have given up after some time.
    TryFor = 41, "try_for", Lock;
    /// A lock was not to be had for oneself alone, since another thread had it: a try-lock that
    /// fails, or a lock that was waited for in vain.
    Busy = 42, "busy", Lock;
    /// A lock was not to be had even together with other readers.
    BusyShared = 43, "rbusy", Lock;
    /// A remark on the thread's next event, an atomic access of the variable: it orders nothing.
    Relaxed = 48, "relaxed", Var;
    /// The same of a read-modify-write that acquires but does not release.
    AcquireOnly = 49, "acquire_only", Var;
    /// The same of a read-modify-write that releases but does not acquire.
    ReleaseOnly = 50, "release_only", Var;
    /// A fence that makes the atomic reads before it acquire.
    FenceAcquire = 52, "fence_acquire", None;
    /// A fence that makes the atomic writes behind it release.
    FenceRelease = 53, "fence_release", None;
    /// A fence that does both.
    Fence = 54, "fence", None;
}

impl Op {
    /// Whether a variable is read.
    #[inline]
    pub fn reads(self) -> bool {
        matches!(self, Op::Read | Op::VolatileRead | Op::Rmw)
    }

    /// Whether a variable is written by a step of the program.
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Op::Write | Op::VolatileWrite | Op::Rmw)
    }

    /// Whether a variable is accessed atomically.
    #[inline]
    pub fn is_atomic(self) -> bool {
        matches!(self, Op::VolatileRead | Op::VolatileWrite | Op::Rmw)
    }

    /// Whether it says that the thread's next access is weaker than sequentially consistent.
    #[inline]
    pub fn weakens(self) -> bool {
        matches!(self, Op::Relaxed | Op::AcquireOnly | Op::ReleaseOnly)
    }
}

/// No name: the target of an operation that stands alone, or of an unnamed region.
const NO_TARGET: u32 = u32::MAX;

/// One step of one thread.
///
/// Sixteen bytes: the operation and the thread, the target, the location, and the payload. The
/// payload is nothing, or one small whole number held in place, or a place in the [`Pool`] that
/// belongs to the event's batch or trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Operation in the low byte, thread in the others.
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

    /// The event that stands in a native record. Payloads of [`Event::raw`] that point to a pool
    /// do not belong in files.
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

    /// The same where the operation is known and the thread's number fits.
    #[inline]
    pub fn from_parts(op: Op, thread: u32, target: u32, loc: u32, payload: u32) -> Event {
        Event { head: thread << 8 | op as u32, target: target.wrapping_sub(1), loc, payload }
    }

    /// Operation, thread, target (counted from one; zero is none), location and payload as numbers.
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

    /// The same event of [`Op::WaitBegin`] or [`Op::WaitEnd`] with the lock given up or taken back.
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

    /// What was done.
    #[inline]
    pub fn op(&self) -> Op {
        match Op::from_code(self.head as u8) {
            Some(op) => op,
            None => unreachable!("events are only made with valid operations"),
        }
    }

    /// Who did it.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        ThreadId(self.head >> 8)
    }

    /// Where in the source, or [`LocId::NONE`].
    #[inline]
    pub fn loc(&self) -> LocId {
        LocId(self.loc)
    }

    /// The target's number, whatever kind of thing it is.
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

    /// The lock that goes with [`Op::WaitBegin`] or [`Op::WaitEnd`], where it is known.
    #[inline]
    pub fn wait_lock(&self) -> Option<LockId> {
        if self.is_wait_half() && self.payload != 0 { Some(LockId(self.payload - 1)) } else { None }
    }

    #[inline]
    fn is_wait_half(&self) -> bool {
        matches!(self.op(), Op::WaitBegin | Op::WaitEnd)
    }

    /// Whether the event's values stand in its pool, so that it cannot be copied to another pool
    /// as it is.
    #[inline]
    pub fn is_pooled(&self) -> bool {
        self.payload & POOLED != 0 && !self.is_wait_half()
    }
}

/// Set in payloads that point to the pool; the others are a small number plus one, or zero.
const POOLED: u32 = 1 << 31;

/// The values of events that do not fit the events themselves.
///
/// A pool belongs to one batch or one trace and is emptied with it, so that a reader's memory does
/// not grow with the values it has seen.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    values: Vec<Value>,
    /// Where each list of values ends; it starts where its predecessor ends.
    ends: Vec<u32>,
}

/// The values of one event.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// A small number that stood in the event.
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
    /// Forgets all values.
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

    /// The value an access leaves in or finds in its variable: the last of [`Pool::values`].
    #[inline]
    pub fn value(&self, event: &Event) -> Option<Value> {
        self.values(event).last().copied()
    }

    /// How many lists of values are kept.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no event needs this pool.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Copies an event of the pool `from` into a trace or batch that has this pool.
    #[inline]
    pub fn adopt(&mut self, event: Event, from: &Pool) -> Event {
        if event.is_pooled() { event.with_values(&from.values(&event), self) } else { event }
    }

    /// Moves all values of `other` behind these, and makes its events point to their new places.
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

/// Small numbers of either sign as small numbers without sign.
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
