//! The meaning of operations: memory, locks, waiters, semaphores, barriers, joins. A state is a row of words, one for each slot.

use crate::facts::{
    Act, Answer, BUSY, CHILD, Facts, GOT, NONE, NOTHING, NodeId, REFUSED, TIMED_OUT, Tid, WOKEN,
    told_value,
};
use crate::hash::share;
use crate::memory::{Datum, Parts, ValueId, Values, mask};
use crate::program::{Cell, LockKind, Modify, Patience, Value};

/// A step of the search: a thread, and which waiter a signal wakes (its thread and one) or that the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Move {
    pub(crate) thread: u16,
    pub(crate) choice: u16,
}

/// The choice of a wait whose time is over.
pub(crate) const LATE: u16 = u16::MAX;

/// The most threads that a program may have.
pub(crate) const MOST_THREADS: usize = 1 << 15;

/// What must be learnt before a step can be taken: what a thread does after an answer, or what was in memory at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Missing {
    /// The history; the slot for [`INITIAL`].
    pub(crate) node: u32,
    pub(crate) told: Answer,
}

/// What was in a slot before anything was written.
pub(crate) const INITIAL: Answer = u32::MAX;
/// A read of parts of several addresses: what it tells cannot be computed.
pub(crate) const MIXED: Answer = u32::MAX - 1;

/// The word of a thread that has ended is this with the number of its value.
const ENDED: u32 = 1 << 31;
/// The word of a lock that is shared is this with the number of its holders; otherwise it is the owner and one, and above
/// [`COUNT`] how often it has it.
const SHARED: u32 = 1 << 31;
const COUNT: u32 = 16;
/// The word of a thread's wait: whether it waits, or was woken and may go on; and above, the slot of what it waits for.
const WAITING: u32 = 1;
const AWAKE: u32 = 2;

/// Waiting for what is in a slot.
fn waiting_for(slot: u32) -> u32 {
    slot << 2 | WAITING
}
/// The words of what is done once.
const BEING_DONE: u32 = 1;
const DONE: u32 = 2;

/// Why a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A run took it: what comes next may be unknown still.
    Learning,
    /// Everything that follows must be known.
    Searching,
    /// The same, and a thread that repeats what it did is where it was.
    Collapsing,
}

impl Mode {
    /// Where a thread is after an answer, if that is known.
    fn next(self, facts: &mut Facts, node: NodeId, answer: Answer) -> Option<NodeId> {
        let next = facts.edge(node, answer);
        match self {
            Mode::Learning => return next,
            Mode::Searching => {}
            Mode::Collapsing => {
                let repeats = match next {
                    Some(next) => Some(facts.nodes[next as usize].repeats).filter(|&at| at != NONE),
                    None => facts.repeats(node, answer).map(|repeats| repeats.0),
                };
                if let Some(mut at) = repeats {
                    facts.has_collapsed = true;
                    while facts.nodes[at as usize].repeats != NONE {
                        at = facts.nodes[at as usize].repeats;
                    }
                    return Some(at);
                }
            }
        }
        next.filter(|&next| facts.act(next).is_some())
    }
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It was not started yet.
    Unborn,
    /// It has ended.
    Ended,
    /// Its history.
    At(NodeId),
}

/// A state of the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) words: Vec<u32>,
    pub(crate) key: u128,
}

impl State {
    /// The state in which only `main` runs.
    pub(crate) fn start(facts: &Facts) -> State {
        let mut state = State::default();
        state.set(facts.threads[0].node, 1);
        state
    }

    pub(crate) fn get(&self, slot: u32) -> u32 {
        self.words.get(slot as usize).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, slot: u32, word: u32) {
        if slot as usize >= self.words.len() {
            self.words.resize(slot as usize + 1, 0);
        }
        let old = std::mem::replace(&mut self.words[slot as usize], word);
        self.key ^= share(slot, old) ^ share(slot, word);
    }

    pub(crate) fn copy_from(&mut self, other: &State) {
        self.words.clone_from(&other.words);
        self.key = other.key;
    }

    pub(crate) fn status(&self, facts: &Facts, thread: Tid) -> Status {
        match self.get(facts.threads[thread as usize].node) {
            0 => Status::Unborn,
            word if word & ENDED != 0 => Status::Ended,
            word => Status::At(word - 1),
        }
    }

    /// What a thread does next, if it is alive and that is known.
    pub(crate) fn act(&self, facts: &Facts, thread: Tid) -> Option<(NodeId, Act)> {
        match self.status(facts, thread) {
            Status::At(node) => facts.act(node).map(|act| (node, act)),
            _ => None,
        }
    }

    fn wait(&self, facts: &Facts, thread: Tid) -> u32 {
        self.get(facts.threads[thread as usize].wait)
    }

    /// Whether a thread was woken from its wait.
    pub(crate) fn is_awake(&self, facts: &Facts, thread: Tid) -> bool {
        self.wait(facts, thread) & 3 == AWAKE
    }

    /// The owner of a lock that one thread has.
    pub(crate) fn owner(&self, lock: u32) -> Option<Tid> {
        let word = self.get(lock);
        (word != 0 && word & SHARED == 0).then(|| (word & ((1 << COUNT) - 1)) - 1)
    }

    /// Whether a lock is taken, but not again by its owner.
    pub(crate) fn is_held_once(&self, lock: u32) -> bool {
        self.is_shared(lock) || self.get(lock) >> COUNT == 1
    }

    /// Whether readers have a lock.
    pub(crate) fn is_shared(&self, lock: u32) -> bool {
        self.get(lock) & SHARED != 0
    }

    /// Whether a thread stands at an operation that the search does not take: the end of the process, something unknown, or a
    /// wrong use of a lock.
    pub(crate) fn is_stuck(&self, facts: &Facts, thread: Tid) -> bool {
        match self.status(facts, thread) {
            Status::At(node) => match facts.act(node) {
                None => true,
                Some(act) => self.is_stop(thread, act),
            },
            _ => false,
        }
    }

    fn is_stop(&self, thread: Tid, act: Act) -> bool {
        match act {
            Act::Stop | Act::Fail | Act::Unknown => true,
            Act::Unlock { lock, kind } => {
                let word = self.get(lock);
                let is_held = word & SHARED != 0 || self.owner(lock) == Some(thread);
                !is_held && kind != LockKind::ErrorCheck
            }
            Act::Wait { lock, .. } => self.get(lock) != (thread + 1) | (1 << COUNT),
            Act::SemWait(at, _) | Act::SemPost(at) | Act::SemValue(at) => self.get(at) == 0,
            Act::Arrive { needed, .. } => self.get(needed) == 0,
            _ => false,
        }
    }

    /// All steps that some thread can take, in the order of threads.
    pub(crate) fn moves(&self, facts: &Facts, out: &mut Vec<Move>) {
        out.clear();
        for &thread in &facts.order {
            self.moves_of(facts, thread, out);
        }
    }

    /// The steps that a thread can take.
    pub(crate) fn moves_of(&self, facts: &Facts, thread: Tid, out: &mut Vec<Move>) {
        let Some((_, act)) = self.act(facts, thread) else { return };
        let to = |choice: u16| Move { thread: thread as u16, choice };
        if self.is_stop(thread, act) {
            return;
        }
        match act {
            Act::Lock { lock, kind, shared, patience } => {
                let is_own = self.owner(lock) == Some(thread);
                if self.can_lock(thread, lock, kind, shared)
                    || patience == Patience::Try
                    || is_own && kind == LockKind::ErrorCheck
                {
                    out.push(to(0));
                } else if patience == Patience::Timed {
                    out.push(to(LATE));
                }
            }
            Act::WaitEnd { lock, timed, .. } => {
                if self.get(lock) == 0 {
                    if self.is_awake(facts, thread) {
                        out.push(to(0));
                    } else if timed {
                        out.push(to(LATE));
                    }
                }
            }
            Act::Signal(condition) => {
                let before = out.len();
                let waiters = facts.order.iter().filter(|&&t| self.waits(facts, t, condition));
                out.extend(waiters.map(|&waiter| to(waiter as u16 + 1)));
                if out.len() == before {
                    out.push(to(0));
                }
            }
            Act::SemWait(at, patience) => {
                if self.get(at) > 1 || patience == Patience::Try {
                    out.push(to(0));
                } else if patience == Patience::Timed {
                    out.push(to(LATE));
                }
            }
            Act::Pass { .. } => {
                if self.is_awake(facts, thread) {
                    out.push(to(0));
                }
            }
            Act::OnceBegin(at) => {
                if self.get(at) != BEING_DONE {
                    out.push(to(0));
                }
            }
            Act::Join(other) => {
                if self.status(facts, other) == Status::Ended {
                    out.push(to(0));
                }
            }
            _ => out.push(to(0)),
        }
    }

    fn can_lock(&self, thread: Tid, lock: u32, kind: LockKind, shared: bool) -> bool {
        match self.get(lock) {
            0 => true,
            word if word & SHARED != 0 => shared,
            _ => kind == LockKind::Recursive && self.owner(lock) == Some(thread),
        }
    }

    /// Whether a thread waits for this condition or barrier and was not woken.
    fn waits(&self, facts: &Facts, thread: Tid, slot: u32) -> bool {
        self.wait(facts, thread) == waiting_for(slot)
    }

    fn wake_all(&mut self, facts: &Facts, slot: u32) {
        for thread in &facts.threads {
            if self.get(thread.wait) == waiting_for(slot) {
                self.set(thread.wait, AWAKE);
            }
        }
    }

    /// The step that costs nothing: the same thread if it can move, else the first one that can; nothing times out unless
    /// nothing else can move.
    pub(crate) fn default_move(running: u32, moves: &[Move]) -> Option<Move> {
        let on_time = || moves.iter().filter(|step| step.choice != LATE);
        let same = on_time().find(|step| u32::from(step.thread) + 1 == running);
        same.or_else(|| on_time().next()).or_else(|| moves.first()).copied()
    }

    /// What the thread is told when it takes a step that it can take.
    fn answer(&self, facts: &mut Facts, step: Move, act: Act) -> Result<Answer, Missing> {
        let late = step.choice == LATE;
        Ok(match act {
            Act::Load(parts) | Act::Modify(parts, _) => told_value(self.load(facts, step, parts)?),
            Act::Lock { lock, kind, shared, patience } => {
                let thread = Tid::from(step.thread);
                let can = self.can_lock(thread, lock, kind, shared);
                match patience {
                    Patience::Wait if can => NOTHING,
                    Patience::Wait => REFUSED,
                    _ if late => TIMED_OUT,
                    _ if can => GOT,
                    Patience::Timed => REFUSED,
                    Patience::Try => BUSY,
                }
            }
            Act::Unlock { lock, .. } => {
                let is_held = self.get(lock) & SHARED != 0
                    || self.owner(lock) == Some(Tid::from(step.thread));
                if is_held { NOTHING } else { REFUSED }
            }
            Act::WaitEnd { .. } => {
                if late {
                    TIMED_OUT
                } else {
                    WOKEN
                }
            }
            Act::SemWait(at, patience) => match patience {
                Patience::Wait => NOTHING,
                _ if late => TIMED_OUT,
                _ if self.get(at) > 1 => GOT,
                _ => BUSY,
            },
            Act::SemValue(at) => {
                let count = Value::Bits(u128::from(self.get(at) - 1));
                told_value(facts.values.of(count))
            }
            Act::Arrive { needed, arrived } => {
                if self.get(arrived) + 1 == self.get(needed) {
                    GOT
                } else {
                    BUSY
                }
            }
            Act::OnceBegin(at) => {
                if self.get(at) == DONE {
                    BUSY
                } else {
                    GOT
                }
            }
            Act::Join(other) => told_value(self.get(facts.threads[other as usize].node) & !ENDED),
            _ => NOTHING,
        })
    }

    /// What is in memory.
    fn load(&self, facts: &mut Facts, step: Move, parts: Parts) -> Result<ValueId, Missing> {
        let mut read = [(0, 0); 16];
        let slots = facts.memory.parts(parts);
        for (to, part) in read.iter_mut().zip(slots) {
            let value = match self.get(part.slot) {
                0 => facts.memory.initial(part.slot),
                value => Some(value),
            };
            let Some(value) = value else {
                return Err(Missing { node: part.slot, told: INITIAL });
            };
            *to = (value, part.width);
        }
        let count = slots.len();
        if count == 1 {
            return Ok(read[0].0);
        }
        let joined = facts.values.joined(read[..count].iter().copied());
        joined.ok_or_else(|| {
            let node = match self.status(facts, Tid::from(step.thread)) {
                Status::At(node) => node,
                _ => 0,
            };
            Missing { node, told: MIXED }
        })
    }

    fn store(&mut self, facts: &mut Facts, parts: Parts, value: ValueId) {
        let count = facts.memory.parts(parts).len();
        let mut from = 0;
        for i in 0..count {
            let part = facts.memory.parts(parts)[i];
            let value = match count {
                1 => value,
                _ => facts.values.part(value, from, part.width),
            };
            self.set(part.slot, value);
            from += part.width;
        }
    }

    /// Takes a step that a thread can take, and says what the thread was told. The state is unchanged if a fact is missing.
    ///
    /// # Errors
    /// If it must be learnt first what the thread does then.
    pub(crate) fn take(
        &mut self,
        facts: &mut Facts,
        step: Move,
        mode: Mode,
    ) -> Result<Answer, Missing> {
        let thread = Tid::from(step.thread);
        let Some((node, act)) = self.act(facts, thread) else {
            return Err(Missing { node: 0, told: MIXED });
        };
        let answer = self.answer(facts, step, act)?;
        let missing = Missing { node, told: answer };
        let own = facts.threads[thread as usize].node;
        if let Act::End(value) = act {
            self.set(own, ENDED | value);
            return Ok(answer);
        }
        if let Act::Store(_, 0) = act {
            return Err(missing);
        }
        let next = mode.next(facts, node, answer).ok_or(missing)?;
        match act {
            Act::Store(parts, value) => self.store(facts, parts, value),
            Act::Modify(parts, modify) => {
                let old = answer - told_value(0);
                let new = match modified(&mut facts.values, modify, old, parts.width) {
                    New::Same => None,
                    New::Value(value) => Some(value),
                    New::Unknown => Some(facts.stored(next).ok_or(missing)?),
                };
                if let Some(new) = new {
                    self.store(facts, parts, new);
                }
            }
            Act::Fork => {
                let child = facts.edge(node, CHILD).ok_or(missing)?;
                if mode != Mode::Learning && facts.act(child).is_none() {
                    return Err(missing);
                }
                let thread = facts.nodes[child as usize].thread;
                self.set(facts.threads[thread as usize].node, child + 1);
            }
            _ => self.synchronise(facts, step, act, answer),
        }
        self.set(own, next + 1);
        Ok(answer)
    }

    /// What synchronisation does to the state.
    fn synchronise(&mut self, facts: &Facts, step: Move, act: Act, answer: Answer) {
        let thread = Tid::from(step.thread);
        let wait = facts.threads[thread as usize].wait;
        match act {
            Act::Lock { lock, shared, .. } if matches!(answer, NOTHING | GOT) => {
                let word = self.get(lock);
                let word = match (word, shared) {
                    (0, true) => SHARED | 1,
                    (0, false) => (thread + 1) | (1 << COUNT),
                    (word, true) if word & SHARED != 0 => word + 1,
                    (word, _) => word + (1 << COUNT),
                };
                self.set(lock, word);
            }
            Act::Unlock { lock, .. } if answer == NOTHING => {
                let word = self.get(lock);
                let word = match word & SHARED {
                    0 if word >> COUNT > 1 => word - (1 << COUNT),
                    0 => 0,
                    _ if word == SHARED | 1 => 0,
                    _ => word - 1,
                };
                self.set(lock, word);
            }
            Act::Wait { condition, lock } => {
                self.set(lock, 0);
                self.set(wait, waiting_for(condition));
            }
            Act::WaitEnd { lock, .. } => {
                self.set(lock, (thread + 1) | (1 << COUNT));
                self.set(wait, 0);
            }
            Act::Signal(_) if step.choice != 0 => {
                let woken = usize::from(step.choice - 1);
                self.set(facts.threads[woken].wait, AWAKE);
            }
            Act::Broadcast(condition) => self.wake_all(facts, condition),
            Act::SemInit(at, count) => self.set(at, count + 1),
            Act::SemPost(at) => self.set(at, self.get(at) + 1),
            Act::SemWait(at, _) if matches!(answer, NOTHING | GOT) => {
                self.set(at, self.get(at) - 1);
            }
            Act::BarrierInit { needed, arrived, count } => {
                self.set(needed, count);
                self.set(arrived, 0);
            }
            Act::Arrive { arrived, .. } if answer == GOT => {
                self.set(arrived, 0);
                self.set(wait, AWAKE);
                self.wake_all(facts, arrived);
            }
            Act::Arrive { arrived, .. } => {
                self.set(arrived, self.get(arrived) + 1);
                self.set(wait, waiting_for(arrived));
            }
            Act::Pass { .. } => self.set(wait, 0),
            Act::OnceBegin(at) if answer == GOT => self.set(at, BEING_DONE),
            Act::OnceEnd(at) => self.set(at, DONE),
            _ => {}
        }
    }
}

/// What a read-modify-write leaves.
enum New {
    Same,
    Value(ValueId),
    /// It must be learnt.
    Unknown,
}

fn modified(values: &mut Values, modify: Modify, old: ValueId, width: u8) -> New {
    let bits = |values: &mut Values, bits| New::Value(values.of(Value::Bits(mask(bits, width))));
    let was = values.datum(old);
    let (operand, with): (Value, fn(u128, u128) -> u128) = match modify {
        Modify::Exchange(value) => return New::Value(values.of(value)),
        Modify::CompareExchange { expected, desired } => {
            let expected = values.of(expected);
            return if expected == old { New::Value(values.of(desired)) } else { New::Same };
        }
        Modify::Opaque => return New::Unknown,
        Modify::Add(value) => (value, u128::wrapping_add),
        Modify::Sub(value) => (value, u128::wrapping_sub),
        Modify::And(value) => (value, |a, b| a & b),
        Modify::Or(value) => (value, |a, b| a | b),
        Modify::Xor(value) => (value, |a, b| a ^ b),
        Modify::Nand(value) => (value, |a, b| !(a & b)),
    };
    match (was, operand) {
        (Datum::Bits(old), Value::Bits(operand)) => bits(values, with(old, operand)),
        (Datum::Address(mut spot), Value::Bits(by))
            if matches!(modify, Modify::Add(_) | Modify::Sub(_)) =>
        {
            spot.offset = with(u128::from(spot.offset), by) as u64;
            New::Value(values.of(Value::Address(spot)))
        }
        _ => New::Unknown,
    }
}

/// What a read-modify-write leaves, if it can be computed.
pub(crate) fn left(cell: Cell, modify: Modify, old: Value) -> Option<Value> {
    let mut values = Values::default();
    let old_id = values.of(old);
    match modified(&mut values, modify, old_id, cell.width) {
        New::Same => Some(old),
        New::Value(value) => values.value(value),
        New::Unknown => None,
    }
}
