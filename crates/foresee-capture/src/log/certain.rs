//! Whether threads and OpenMP's tasks accessed memory in an order that only this run had.
//!
//! Some order in a trace is that of the run, because the right one is not known. In a trace, tasks
//! are steps of the threads that executed them, and a thread that waits for some tasks comes after
//! all that have finished. That is more order than OpenMP promises: two tasks that one thread
//! executed could have run at once in two, and a task that nobody waited for could still be running.
//! So accesses of tasks are compared here by OpenMP's own rules alone: a task comes after its
//! creation and after what it depends on, and before what follows a wait for it. Where two accesses
//! conflict, hold no lock in common and are in no such order, the trace is not complete. Nothing is
//! reported as a race, because there may be other reasons why they are in order. A section that a
//! thread takes of its team's work is like a task: another thread could have taken it.
//!
//! Likewise, all that threads do with a pipe, a signal, a descriptor and so on stays in the observed
//! order. What a thread receives comes after what was sent before; but whoever sends next need not
//! come after that, nor does a descriptor have to have the number that another thread has closed. So
//! if there are such channels, the accesses of threads are compared as well, by an order that every
//! run has in which all reads find what they found: that of each thread, of starts and joins, of what
//! was sent before what was received, and of a write before the reads that saw it. Locks order nothing by
//! themselves, since their sections could have come in another order; but if one section reads what
//! another has written, it comes after the end of that.
//!
//! The number of a descriptor is like a lock that is held from the call that returned it until it is
//! closed: as long as calls return what they returned in this run, no two threads have the same
//! number at once. That holds only if each of them closes it itself, because then none of them
//! accesses what it keeps by that number after it was closed.
//!
//! A *context* is a task, or what a thread executes outside of tasks. Each has a vector clock.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use foresee_rt::format::{Tag, block, channel, task};

use super::{HashMap, HashSet};
use crate::clock::{Clock, at, learn};

/// The maximum number of contexts; each has a clock of this size.
const MOST_CONTEXTS: usize = 4096;
/// The maximum number of accesses that are kept of eight bytes.
const MOST_ACCESSES: usize = 64;
/// The maximum number of accesses that are compared.
const MOST_COMPARED: u64 = 1 << 19;
/// The stacks of threads are smaller than this.
const STACK: u64 = 64 << 20;

#[derive(Debug, Default)]
struct Context {
    is_task: bool,
    clock: Clock,
    /// The locks that it holds.
    held: Vec<u64>,
    /// The tasks that it has created and not waited for.
    children: Vec<u64>,
    /// The groups that it is in, the innermost last; the first is the one that it was created in.
    groups: Vec<u64>,
    /// How many of the created tasks are known to be over.
    over: usize,
    /// Where the thread's stack ended when it began.
    stack: u64,
    /// A section of a team's work, which any of its threads could have executed.
    is_section: bool,
    /// What it knew when its team began, or after the last barrier.
    base: Clock,
}

/// The creation of a task, or of all tasks of a loop.
#[derive(Debug)]
struct Creation {
    by: usize,
    /// The time of the creator.
    time: u32,
    clock: Clock,
    group: Option<u64>,
    contexts: Vec<usize>,
}

/// The mark of a descriptor among the locks that a context holds. Its number and how often it was given out follow.
const IS_DESCRIPTOR: u64 = 1 << 63;

/// The number of a descriptor among locks, without how often it was given out.
fn number_of(lock: u64) -> Option<u64> {
    (lock & IS_DESCRIPTOR != 0).then_some(lock >> 32)
}

/// A descriptor that is open.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    /// Who opened it.
    by: usize,
    lock: u64,
}

/// The mark of a lock that is held together with others; addresses do not reach that far.
const IS_SHARED: u64 = 1 << 62;

/// Whether two threads cannot hold these at once.
fn exclude(one: u64, other: u64) -> bool {
    one & IS_DESCRIPTOR == 0
        && one & !IS_SHARED == other & !IS_SHARED
        && one & other & IS_SHARED == 0
}

/// A write that reads have seen, and come after.
#[derive(Clone, Debug)]
struct Past {
    context: usize,
    time: u32,
    mask: u8,
    held: Rc<[u64]>,
    /// What was known then.
    clock: Rc<[u32]>,
}

/// What is known of eight bytes.
#[derive(Debug, Default)]
struct Bytes {
    accesses: Vec<Access>,
    /// The last writes.
    writes: Vec<Past>,
}

/// The ends of a context's last sections of a lock: when, and what was known.
type Ends = VecDeque<(u32, Rc<[u32]>)>;

/// How many of them are kept.
const MOST_ENDS: usize = 16;

#[derive(Clone, Debug)]
struct Access {
    context: usize,
    time: u32,
    mask: u8,
    writes: bool,
    is_atomic: bool,
    held: Rc<[u64]>,
}

/// Something other than a channel that orders threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object {
    Lock,
    Condition,
    /// A semaphore, a barrier, a flag of a one-time initialisation.
    Other,
    /// Eight bytes with atomic accesses.
    Atomic,
}

/// What an access does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Does {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) is_atomic: bool,
}

/// Accesses that may be in no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unordered {
    pub(super) address: u64,
    /// Whether a task is involved.
    pub(super) is_of_task: bool,
}

/// The order of steps that does not depend on chance.
#[derive(Debug, Default)]
pub(super) struct CertainOrder {
    contexts: Vec<Context>,
    /// The contexts of each thread, the current one last.
    threads: HashMap<u32, Vec<usize>>,
    created: Vec<Creation>,
    numbers: HashMap<u64, usize>,
    /// What was known to those who sent through channels, and to those who released something else.
    channels: HashMap<u64, Clock>,
    released: HashMap<(Object, u64), Clock>,
    compared: u64,
    groups: u64,
    /// By eight bytes.
    memory: BTreeMap<u64, Bytes>,
    ends: HashMap<(u64, usize), Ends>,
    /// Whether threads are compared, and not only tasks.
    pub(super) with_threads: bool,
    /// Memory that is accessed in no order, by eight bytes.
    doubtful: HashSet<u64>,
    /// Open descriptors by number, how often each number was given out, and the numbers that were closed by others than who
    /// opened them.
    open: HashMap<u32, Descriptor>,
    given_out: HashMap<u32, u32>,
    strange: HashSet<u64>,
    /// What is in no order if a number is closed by another than who opened it.
    provided: HashMap<u64, Vec<Unordered>>,
    /// What turned out to be in no order later.
    pub(super) late: Vec<Unordered>,
    /// Whether not everything was compared.
    pub(super) is_cut: bool,
}

impl CertainOrder {
    fn new_context(&mut self, mut clock: Clock, is_task: bool) -> usize {
        let context = self.contexts.len();
        if clock.len() <= context {
            clock.resize(context + 1, 0);
        }
        clock[context] = 1;
        self.contexts.push(Context { is_task, clock, ..Context::default() });
        context
    }

    /// The current context of a thread.
    fn current(&mut self, thread: u32) -> usize {
        if let Some(&context) = self.threads.get(&thread).and_then(|all| all.last()) {
            return context;
        }
        let context = self.new_context(Clock::new(), false);
        self.threads.insert(thread, vec![context]);
        context
    }

    /// What a context knows, for others; what it does from now on is not part of it.
    fn publish(&mut self, context: usize) -> Clock {
        let clock = &mut self.contexts[context].clock;
        let known = clock.clone();
        clock[context] += 1;
        known
    }

    /// A context comes after all tasks of a creation.
    fn await_created(&mut self, context: usize, created: usize) {
        for i in 0..self.created[created].contexts.len() {
            let other = self.created[created].contexts[i];
            if other != context {
                let clock = std::mem::take(&mut self.contexts[other].clock);
                learn(&mut self.contexts[context].clock, &clock);
                self.contexts[other].clock = clock;
            }
        }
    }

    /// Something happens to tasks. `is_stack` tells whether an address is on the thread's stack.
    pub(super) fn step(
        &mut self,
        thread: u32,
        stack: u64,
        value: u64,
        is_stack: impl FnMut(u64) -> bool,
    ) {
        if self.contexts.len() >= MOST_CONTEXTS {
            self.is_cut = true;
            return;
        }
        let (what, number) = (value & 15, value >> 4);
        let context = self.current(thread);
        match what {
            task::CREATED => {
                let (clock, created) = (self.publish(context), self.created.len());
                let time = at(&clock, context);
                let creator = &mut self.contexts[context];
                creator.children.push(number);
                let group = creator.groups.last().copied();
                self.numbers.insert(number, created);
                let contexts = Vec::new();
                self.created.push(Creation { by: context, time, clock, group, contexts });
            }
            task::BEGUN => {
                let created = self.numbers.get(&number).copied();
                let (clock, group) = match created {
                    Some(created) => {
                        (self.created[created].clock.clone(), self.created[created].group)
                    }
                    None => (Clock::new(), None),
                };
                let begun = self.new_context(clock, true);
                self.contexts[begun].groups.extend(group);
                self.contexts[begun].stack = stack;
                created.into_iter().for_each(|i| self.created[i].contexts.push(begun));
                self.threads.entry(thread).or_default().push(begun);
                self.forget_stack(stack, is_stack);
            }
            task::ENDED => {
                let contexts = self.threads.entry(thread).or_default();
                if contexts.len() > 1 {
                    contexts.pop();
                    let stack = self.contexts[context].stack;
                    self.forget_stack(stack, is_stack);
                }
            }
            task::AWAITED => {
                if let Some(&created) = self.numbers.get(&number) {
                    self.await_created(context, created);
                }
            }
            task::CHILDREN_AWAITED => {
                for number in std::mem::take(&mut self.contexts[context].children) {
                    if let Some(&created) = self.numbers.get(&number) {
                        self.await_created(context, created);
                    }
                }
            }
            task::GROUP_BEGUN => {
                self.groups += 1;
                self.contexts[context].groups.push(self.groups);
            }
            task::GROUP_AWAITED => {
                if let Some(group) = self.contexts[context].groups.pop() {
                    for created in 0..self.created.len() {
                        if self.created[created].group == Some(group) {
                            self.await_created(context, created);
                        }
                    }
                }
            }
            task::SECTION => {
                if self.contexts[context].is_section {
                    self.threads.entry(thread).or_default().pop();
                }
                self.forget_stack(stack, is_stack);
                if number != 0 {
                    let by = self.current(thread);
                    let known = self.publish(by);
                    let time = at(&known, by);
                    let base = self.contexts[by].base.clone();
                    let section = self.new_context(base, true);
                    self.contexts[section].is_section = true;
                    let (clock, group, contexts) = (Clock::new(), None, vec![section]);
                    self.created.push(Creation { by, time, clock, group, contexts });
                    self.threads.entry(thread).or_default().push(section);
                }
            }
            task::ALL_AWAITED => {
                let mut is_first = true;
                for created in self.contexts[context].over..self.created.len() {
                    let Creation { by, time, .. } = self.created[created];
                    let is_known = at(&self.contexts[context].clock, by) >= time;
                    if is_known {
                        self.await_created(context, created);
                    }
                    is_first &= is_known;
                    if is_first {
                        self.contexts[context].over = created + 1;
                    }
                }
                self.contexts[context].base = self.contexts[context].clock.clone();
            }
            _ => {}
        }
    }

    /// What was on a thread's stack beyond this place is gone.
    fn forget_stack(&mut self, stack: u64, mut is_stack: impl FnMut(u64) -> bool) {
        let range = stack.saturating_sub(STACK)..stack & !7;
        let gone: Vec<u64> =
            self.memory.range(range).map(|(&at, _)| at).filter(|&at| is_stack(at)).collect();
        gone.into_iter().for_each(|at| drop(self.memory.remove(&at)));
    }

    /// Memory begins another life.
    pub(super) fn forget(&mut self, address: u64, size: u64) {
        let range = address & !7..address.saturating_add(size);
        let gone: Vec<u64> = self.memory.range(range).map(|(&at, _)| at).collect();
        gone.into_iter().for_each(|at| drop(self.memory.remove(&at)));
    }

    /// A thread releases something. Whether tasks are in an order by that is a matter of chance.
    fn release(&mut self, context: usize, object: Object, address: u64) {
        if !self.contexts[context].is_task {
            let known = self.publish(context);
            learn(self.released.entry((object, address)).or_default(), &known);
        }
    }

    /// A thread comes after whoever released something.
    fn acquire(&mut self, context: usize, object: Object, address: u64) {
        if !self.contexts[context].is_task
            && let Some(known) = self.released.get(&(object, address))
        {
            learn(&mut self.contexts[context].clock, known);
        }
    }

    fn lock(&mut self, context: usize, lock: u64) {
        if !self.with_threads {
            self.acquire(context, Object::Lock, lock);
        }
        self.contexts[context].held.push(lock);
    }

    fn lock_shared(&mut self, context: usize, lock: u64) {
        match self.with_threads {
            true => self.contexts[context].held.push(lock | IS_SHARED),
            false => self.acquire(context, Object::Lock, lock),
        }
    }

    fn unlock(&mut self, context: usize, lock: u64) {
        let held = &mut self.contexts[context].held;
        if let Some(at) = held.iter().rposition(|&held| held & !IS_SHARED == lock) {
            held.remove(at);
        }
        if !self.with_threads {
            return self.release(context, Object::Lock, lock);
        }
        let known = self.publish(context);
        let ends = self.ends.entry((lock, context)).or_default();
        ends.push_back((at(&known, context), known.into()));
        if ends.len() > MOST_ENDS {
            ends.pop_front();
        }
    }

    /// A context comes after a write that it has seen, and so its sections after those that the write was in.
    fn come_after(&mut self, context: usize, past: &Past) {
        if past.context == context {
            return;
        }
        let Context { clock, held, .. } = &mut self.contexts[context];
        learn(clock, &past.clock);
        for lock in past.held.iter().filter(|&&one| held.iter().any(|&own| exclude(one, own))) {
            let ends = self.ends.get(&(lock & !IS_SHARED, past.context));
            let is_its = |end: &&(u32, Rc<[u32]>)| end.0 >= past.time;
            // The first of those that are kept may be of a later section.
            let is_known = ends.is_some_and(|ends| {
                ends.len() < MOST_ENDS || ends.front().is_some_and(|first| first.0 <= past.time)
            });
            if let Some(end) = ends.filter(|_| is_known).and_then(|all| all.iter().find(is_its)) {
                learn(clock, &end.1);
            }
        }
    }

    /// A context comes after the writes that it sees, and others after what it writes.
    fn follow(&mut self, context: usize, parts: &[(u64, u8)], held: &Rc<[u64]>, does: Does) {
        for &(granule, mask) in parts {
            let Some(bytes) = self.memory.get(&granule) else { continue };
            let is_over = |past: &&Past| past.mask & mask != 0 && past.context != context;
            let seen = bytes.writes.iter().filter(|_| does.reads).filter(is_over);
            let before: Vec<Past> = seen.cloned().collect();
            before.iter().for_each(|past| self.come_after(context, past));
        }
        if !does.writes {
            return;
        }
        let clock: Rc<[u32]> = self.publish(context).into();
        let time = at(&clock, context);
        for &(granule, mask) in parts {
            let bytes = self.memory.entry(granule).or_default();
            bytes.writes.iter_mut().for_each(|past| past.mask &= !mask);
            bytes.writes.retain(|past| past.mask != 0);
            let (held, clock) = (Rc::clone(held), Rc::clone(&clock));
            bytes.writes.push(Past { context, time, mask, held, clock });
        }
    }

    /// A call has returned a descriptor, which was free.
    fn opens(&mut self, context: usize, number: u32) {
        self.closes(None, number);
        let times = self.given_out.entry(number).or_default();
        *times += 1;
        let lock = IS_DESCRIPTOR | u64::from(number & 0x7fff_ffff) << 32 | u64::from(*times);
        self.open.insert(number, Descriptor { by: context, lock });
        self.contexts[context].held.push(lock);
    }

    /// A descriptor is closed, perhaps by somebody unknown.
    fn closes(&mut self, context: Option<usize>, number: u32) {
        let open = self.open.remove(&number);
        if let Some(Descriptor { by, lock }) = open {
            self.contexts[by].held.retain(|&held| held != lock);
        }
        // In another order, it may close what anybody has opened with that number.
        if open.map(|open| open.by) != context {
            let number = u64::from(number & 0x7fff_ffff);
            self.strange.insert(IS_DESCRIPTOR >> 32 | number);
            let provided = self.provided.remove(&(IS_DESCRIPTOR >> 32 | number));
            self.late.extend(provided.into_iter().flatten());
        }
    }

    /// A step that orders threads.
    pub(super) fn sync(&mut self, thread: u32, tag: Tag, address: u64, value: u64) {
        let context = self.current(thread);
        let is_channel = matches!(tag, Tag::Send | Tag::Look | Tag::Receive);
        match value >> 32 {
            channel::DESCRIPTOR if tag == Tag::Send => {
                return self.closes(Some(context), value as u32);
            }
            channel::OPENED if is_channel => return self.opens(context, value as u32),
            channel::TASKS_DONE | channel::DESCRIPTOR if is_channel => return,
            _ => {}
        }
        match tag {
            Tag::Send => {
                let known = self.publish(context);
                learn(self.channels.entry(address).or_default(), &known);
            }
            Tag::Look | Tag::Receive => {
                if let Some(known) = self.channels.get(&address) {
                    learn(&mut self.contexts[context].clock, known);
                }
                if value >> 32 == channel::TEAM {
                    self.contexts[context].base = self.contexts[context].clock.clone();
                }
            }
            Tag::Fork => {
                let known = self.publish(context);
                let other = self.current(value as u32);
                learn(&mut self.contexts[other].clock, &known);
            }
            Tag::Join => {
                let other = self.current(value as u32);
                let known = self.publish(other);
                learn(&mut self.contexts[context].clock, &known);
            }
            Tag::Acquire => self.lock(context, address),
            Tag::AcquireShared => self.lock_shared(context, address),
            Tag::Release => self.unlock(context, address),
            Tag::WaitBegin => self.unlock(context, value & !1),
            Tag::WaitEnd => {
                self.lock(context, value & !1);
                self.acquire(context, Object::Condition, address);
            }
            Tag::Notify | Tag::NotifyAll => self.release(context, Object::Condition, address),
            Tag::SemInit | Tag::SemPost | Tag::BarrierArrive | Tag::OnceDone => {
                self.release(context, Object::Other, address);
            }
            Tag::SemWait | Tag::SemFailed | Tag::SemValue | Tag::BarrierLeave | Tag::OnceSeen => {
                self.acquire(context, Object::Other, address)
            }
            Tag::ThreadBegin => self.forget(address, value),
            Tag::Alloc => self.forget(address, block::size(value)),
            Tag::Free => self.forget(address, value),
            _ => {}
        }
    }

    /// Memory is accessed. Returns an address at which that is in no order with an earlier access, once.
    pub(super) fn access(
        &mut self,
        thread: u32,
        address: u64,
        size: u64,
        does: Does,
    ) -> Option<Unordered> {
        if self.compared >= MOST_COMPARED {
            self.is_cut = true;
            return None;
        }
        self.compared += 1;
        let context = self.current(thread);
        let Does { writes, is_atomic, .. } = does;
        let follows = self.with_threads && !self.contexts[context].is_task;
        if is_atomic && !follows {
            self.acquire(context, Object::Atomic, address & !7);
        }
        let time = self.contexts[context].clock[context];
        let held: Rc<[u64]> = self.contexts[context].held.as_slice().into();
        let end = address.saturating_add(size);
        let mut doubtful = None;
        let mut parts = Vec::new();
        for granule in (address & !7..end).step_by(8) {
            let mask = (0..8u64)
                .filter(|i| (address..end).contains(&(granule + i)))
                .fold(0u8, |mask, i| mask | 1 << i);
            parts.push((granule, mask));
            let new = Access { context, time, mask, writes, is_atomic, held: Rc::clone(&held) };
            if !self.doubtful.contains(&granule)
                && let Some(is_of_task) = self.compare(granule, new)
            {
                self.doubtful.insert(granule);
                doubtful = Some(Unordered { address: granule.max(address), is_of_task });
            }
        }
        if follows {
            self.follow(context, &parts, &held, does);
        } else if is_atomic && writes {
            self.release(context, Object::Atomic, address & !7);
        }
        doubtful
    }

    /// Whether an access of eight bytes is in no order with an earlier one, and if so whether one of them is a task's. It is
    /// kept.
    fn compare(&mut self, granule: u64, new: Access) -> Option<bool> {
        let Context { ref clock, is_task, .. } = self.contexts[new.context];
        let all = &mut self.memory.entry(granule).or_default().accesses;
        let (strange, provided) = (&self.strange, &mut self.provided);
        let mut doubtful = None;
        all.retain(|old| {
            let is_before = at(clock, old.context) >= old.time;
            let conflicts = old.mask & new.mask != 0
                && (old.writes || new.writes)
                && !(old.is_atomic && new.is_atomic)
                && !old.held.iter().any(|&lock| new.held.iter().any(|&own| exclude(lock, own)));
            let is_of_task = is_task || self.contexts[old.context].is_task;
            if !is_before && conflicts && (is_of_task || self.with_threads) {
                // The same descriptor, which was closed in between.
                let is_same = |lock: &&u64| {
                    number_of(**lock).is_some_and(|number| {
                        let is_old = |&old: &u64| number_of(old) == Some(number);
                        !strange.contains(&number) && old.held.iter().any(is_old)
                    })
                };
                match new.held.iter().find(is_same) {
                    Some(&lock) => provided
                        .entry(lock >> 32)
                        .or_default()
                        .push(Unordered { address: granule, is_of_task }),
                    None => doubtful = Some(is_of_task),
                }
            }
            // The new one says as much as the old one.
            let is_held = |lock: &u64| {
                let is_same = |old: &u64| {
                    old == lock
                        || number_of(*lock).is_none()
                            && *lock & IS_SHARED != 0
                            && *old == *lock & !IS_SHARED
                        || number_of(*lock).is_some() && number_of(*old) == number_of(*lock)
                };
                old.held.iter().any(is_same)
            };
            let is_covered = is_before
                && old.mask & !new.mask == 0
                && (new.writes || !old.writes)
                && (!new.is_atomic || old.is_atomic)
                && new.held.iter().all(is_held);
            !is_covered
        });
        match all.len() < MOST_ACCESSES {
            true => all.push(new),
            false => self.is_cut = true,
        }
        doubtful
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a task of a random program does.
    #[derive(Clone, Debug)]
    enum Act {
        /// Accesses a variable, with a lock or without.
        Access {
            variable: u64,
            writes: bool,
            locked: bool,
        },
        /// Creates a task, and waits for it at once if it is not deferred.
        Create {
            acts: Vec<Act>,
            is_deferred: bool,
        },
        Wait,
        Group(Vec<Act>),
    }

    fn acts(random: &mut fastrand::Rng, depth: u32) -> Vec<Act> {
        let act = |random: &mut fastrand::Rng| match random.u8(0..10) {
            0..=3 => Act::Access {
                variable: random.u64(0..3),
                writes: random.bool(),
                locked: random.u8(0..4) == 0,
            },
            4..=6 if depth > 0 => {
                Act::Create { acts: acts(random, depth - 1), is_deferred: random.u8(0..5) > 0 }
            }
            7 if depth > 0 => Act::Group(acts(random, depth - 1)),
            _ => Act::Wait,
        };
        (0..random.usize(1..=4)).map(|_| act(random)).collect()
    }

    /// The variable that a step accesses, whether it writes it, and whether it holds the lock.
    type Accessed = Option<(u64, bool, bool)>;

    /// An execution: what it tells, and the same as a graph of all steps.
    #[derive(Default)]
    struct Execution {
        certain: CertainOrder,
        found: BTreeSet<u64>,
        /// Tasks that wait for a thread: their numbers, acts, and where they are created.
        queue: Vec<(u64, Vec<Act>)>,
        latest: u64,
        /// For each step the task that it is of, and the access if it is one.
        steps: Vec<(u64, Accessed)>,
        edges: Vec<(usize, usize)>,
        /// The last step of each task.
        ends: HashMap<u64, usize>,
        /// The first step of each task comes after this one.
        creations: HashMap<u64, usize>,
        parents: HashMap<u64, u64>,
    }

    impl Execution {
        fn tell(&mut self, thread: u32, what: u64, number: u64) {
            self.certain.step(thread, 0, task::value(what, number), |_| false);
        }

        /// Adds a step of a task after the task's last one.
        fn step(&mut self, of: u64, access: Accessed) -> usize {
            let new = self.steps.len();
            self.steps.push((of, access));
            let before = self.ends.insert(of, new).or_else(|| self.creations.get(&of).copied());
            self.edges.extend(before.map(|before| (before, new)));
            new
        }

        fn is_open(&self, task: u64) -> bool {
            self.queue.iter().any(|queued| queued.0 == task)
        }

        /// A thread executes a task of the queue.
        fn execute(&mut self, thread: u32, random: &mut fastrand::Rng) {
            let (number, acts) = self.queue.remove(random.usize(0..self.queue.len()));
            self.carry_out(thread, number, &acts, random);
        }

        fn carry_out(&mut self, thread: u32, of: u64, acts: &[Act], random: &mut fastrand::Rng) {
            self.tell(thread, task::BEGUN, of);
            self.step(of, None);
            self.act(thread, of, acts, random);
            self.tell(thread, task::ENDED, of);
        }

        fn act(&mut self, thread: u32, me: u64, acts: &[Act], random: &mut fastrand::Rng) {
            for act in acts {
                // Another thread helps.
                while !self.queue.is_empty() && random.u8(0..4) == 0 {
                    self.execute(thread + 1, random);
                }
                match act {
                    &Act::Access { variable, writes, locked } => {
                        self.step(me, Some((variable, writes, locked)));
                        if locked {
                            self.certain.sync(thread, Tag::Acquire, 64, 0);
                        }
                        let does = Does { reads: !writes, writes, is_atomic: false };
                        let found = self.certain.access(thread, 8 * variable, 8, does);
                        self.found.extend(found.map(|unordered| unordered.address / 8));
                        if locked {
                            self.certain.sync(thread, Tag::Release, 64, 0);
                        }
                    }
                    Act::Create { acts, is_deferred } => {
                        self.latest += 1;
                        let number = self.latest;
                        let at = self.step(me, None);
                        self.tell(thread, task::CREATED, number);
                        self.creations.insert(number, at);
                        self.parents.insert(number, me);
                        if *is_deferred {
                            self.queue.push((number, acts.clone()));
                        } else {
                            self.carry_out(thread, number, acts, random);
                            self.tell(thread, task::AWAITED, number);
                            self.await_all(me, |_, task| task == number);
                        }
                    }
                    Act::Wait => {
                        let is_child =
                            |all: &Execution, task: u64| all.parents.get(&task) == Some(&me);
                        self.finish(thread, is_child, random);
                        self.tell(thread, task::CHILDREN_AWAITED, 0);
                        self.await_all(me, is_child);
                    }
                    Act::Group(acts) => {
                        self.tell(thread, task::GROUP_BEGUN, 0);
                        let first = self.latest;
                        self.act(thread, me, acts, random);
                        // Children that were created meanwhile, and theirs.
                        let is_inside = |all: &Execution, task: u64| {
                            let chain =
                                std::iter::successors(Some(task), |t| all.parents.get(t).copied());
                            let mut chain = chain.take_while(|&t| t != me);
                            let is_below =
                                std::iter::successors(Some(task), |t| all.parents.get(t).copied())
                                    .any(|t| t == me);
                            is_below && task != me && chain.all(|t| t > first)
                        };
                        self.finish(thread, is_inside, random);
                        self.tell(thread, task::GROUP_AWAITED, 0);
                        self.await_all(me, is_inside);
                    }
                }
            }
        }

        /// Executes tasks until none of these is left.
        fn finish(
            &mut self,
            thread: u32,
            is_meant: impl Fn(&Execution, u64) -> bool,
            random: &mut fastrand::Rng,
        ) {
            while (1..=self.latest).any(|task| is_meant(self, task) && self.is_open(task)) {
                self.execute(thread, random);
            }
        }

        /// The next step of a task comes after the ends of others.
        fn await_all(&mut self, me: u64, is_meant: impl Fn(&Execution, u64) -> bool) {
            let ends: Vec<usize> = (1..=self.latest)
                .filter(|&task| is_meant(self, task))
                .filter_map(|task| self.ends.get(&task).copied())
                .collect();
            let at = self.step(me, None);
            self.edges.extend(ends.into_iter().map(|end| (end, at)));
        }

        /// The variables of which two accesses are in no order.
        fn truth(&self) -> BTreeSet<u64> {
            let n = self.steps.len();
            let mut before = vec![vec![false; n]; n];
            self.edges.iter().for_each(|&(a, b)| before[a][b] = true);
            (0..n).for_each(|k| {
                let row = before[k].clone();
                for other in before.iter_mut().filter(|other| other[k]) {
                    other.iter_mut().zip(&row).for_each(|(mine, &theirs)| *mine |= theirs);
                }
            });
            let mut truth = BTreeSet::new();
            for (j, b) in self.steps.iter().enumerate() {
                for (i, a) in self.steps[..j].iter().enumerate() {
                    if let (Some(x), Some(y)) = (a.1, b.1)
                        && a.0 != b.0
                        && x.0 == y.0
                        && (x.1 || y.1)
                        && !(x.2 && y.2)
                        && !before[i][j]
                    {
                        truth.insert(x.0);
                    }
                }
            }
            truth
        }
    }

    #[test]
    fn tasks_are_in_order_by_the_rules_alone() {
        let mut random = fastrand::Rng::with_seed(3);
        let (mut with, mut without) = (0, 0);
        for _ in 0..10_000 {
            let program = acts(&mut random, 3);
            let mut execution = Execution::default();
            execution.step(0, None);
            execution.act(1, 0, &program, &mut random);
            execution.finish(1, |_, _| true, &mut random);
            assert!(!execution.certain.is_cut);
            let truth = execution.truth();
            assert_eq!(execution.found, truth, "{program:?}");
            let shared = execution.steps.iter().filter(|step| step.1.is_some()).count();
            with += u32::from(!truth.is_empty());
            without += u32::from(truth.is_empty() && shared > 2);
        }
        assert!(with > 1_000 && without > 1_000, "{with} {without}");
    }

    /// What a thread of a random program with descriptors does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Use {
        /// A call returns this number.
        Open(u32),
        Close(u32),
        /// Accesses what is kept by a number.
        Access(u32),
    }

    /// A run of threads that open and close descriptors, as each thread's steps, and in their order.
    type Descriptors = (Vec<Vec<Use>>, Vec<(usize, Use)>);

    fn descriptors(random: &mut fastrand::Rng) -> Descriptors {
        let count = random.usize(2..=3);
        let mut threads = vec![Vec::new(); count];
        let mut run = Vec::new();
        let mut open: Vec<Option<usize>> = vec![None; 4];
        for _ in 0..random.usize(4..=11) {
            let t = random.usize(0..count);
            let known: Vec<u32> = threads[t]
                .iter()
                .filter_map(|step| match step {
                    Use::Open(number) => Some(*number),
                    _ => None,
                })
                .collect();
            let own = open.iter().position(|by| *by == Some(t));
            let any = open.iter().position(Option::is_some);
            let step = match random.u8(0..10) {
                0..=3 => match open.iter().position(Option::is_none) {
                    Some(free) => Use::Open(free as u32),
                    None => continue,
                },
                4..=5 if own.is_some() => Use::Close(own.unwrap_or(0) as u32),
                // Sometimes that of another thread.
                6 if any.is_some() && random.u8(0..3) == 0 => Use::Close(any.unwrap_or(0) as u32),
                _ if !known.is_empty() => {
                    let open_one = own.filter(|_| random.u8(0..8) > 0).map(|number| number as u32);
                    Use::Access(open_one.unwrap_or(known[random.usize(0..known.len())]))
                }
                _ => continue,
            };
            match step {
                Use::Open(number) => open[number as usize] = Some(t),
                Use::Close(number) => open[number as usize] = None,
                Use::Access(_) => {}
            }
            threads[t].push(step);
            run.push((t, step));
        }
        (threads, run)
    }

    /// The numbers by which two threads can access something at the same time, if calls return what they did.
    fn really(threads: &[Vec<Use>]) -> BTreeSet<u64> {
        let mut truth = BTreeSet::new();
        let mut seen = BTreeSet::from([(vec![0; threads.len()], 0u32)]);
        let mut left: Vec<(Vec<usize>, u32)> = seen.iter().cloned().collect();
        while let Some((places, open)) = left.pop() {
            let next: Vec<Option<Use>> =
                places.iter().zip(threads).map(|(&at, steps)| steps.get(at).copied()).collect();
            for (t, step) in next.iter().enumerate() {
                let open = match *step {
                    Some(Use::Open(number)) if open >> number & 1 == 0 => open | 1 << number,
                    Some(Use::Close(number)) if open >> number & 1 == 1 => open & !(1 << number),
                    Some(Use::Access(number)) => {
                        let is_same = |other: &Option<Use>| *other == Some(Use::Access(number));
                        if next[..t].iter().any(is_same) {
                            truth.insert(number.into());
                        }
                        open
                    }
                    _ => continue,
                };
                let mut places = places.clone();
                places[t] += 1;
                if seen.insert((places.clone(), open)) {
                    left.push((places, open));
                }
            }
        }
        truth
    }

    #[test]
    fn what_is_kept_by_a_descriptor_belongs_to_who_has_it() {
        let mut random = fastrand::Rng::with_seed(19);
        let (mut with, mut without, mut sure) = (0, 0, 0);
        for _ in 0..60_000 {
            let (threads, run) = descriptors(&mut random);
            let mut certain = CertainOrder { with_threads: true, ..CertainOrder::default() };
            let mut found = BTreeSet::new();
            let of = |kind: u64, number: u32| kind << 32 | u64::from(number);
            for (t, step) in run {
                let thread = t as u32 + 1;
                match step {
                    Use::Open(n) => certain.sync(thread, Tag::Look, 0, of(channel::OPENED, n)),
                    Use::Close(n) => certain.sync(thread, Tag::Send, 0, of(channel::DESCRIPTOR, n)),
                    Use::Access(n) => {
                        let does = Does { reads: false, writes: true, is_atomic: false };
                        let at = certain.access(thread, 8 * u64::from(n), 8, does);
                        found.extend(at.map(|unordered| unordered.address / 8));
                    }
                }
            }
            found.extend(certain.late.iter().map(|unordered| unordered.address / 8));
            let truth = really(&threads);
            assert!(truth.is_subset(&found), "{truth:?} {found:?} {threads:?}");
            let accesses = |number: u64| {
                let is_one = |step: &Use| *step == Use::Access(number as u32);
                threads.iter().filter(|steps| steps.iter().any(is_one)).count()
            };
            with += u32::from(!truth.is_empty());
            // Several threads use a number, and none at the same time as another.
            if (0..4).any(|n| accesses(n) > 1) && truth.is_empty() {
                without += 1;
                sure += u32::from(found.is_empty());
            }
        }
        assert!(with > 1_000 && without > 150 && sure > without / 2, "{with} {without} {sure}");
    }

    /// What a thread of a random program with locks and a channel does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Step {
        Acquire(u64),
        Release(u64),
        Read(u64),
        Write(u64),
        Send,
        Receive,
    }

    /// Sections that are not nested, and accesses in and around them.
    fn steps(random: &mut fastrand::Rng) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..random.usize(1..=3) {
            let lock = (random.u8(0..5) < 3).then(|| 2 * random.u64(0..2));
            steps.extend(lock.map(Step::Acquire));
            for _ in 0..random.usize(0..=2) {
                let variable = random.u64(0..3);
                steps.push(if random.bool() {
                    Step::Read(variable)
                } else {
                    Step::Write(variable)
                });
            }
            steps.extend(lock.map(Step::Release));
            match random.u8(0..6) {
                0 => steps.push(Step::Send),
                1 => steps.push(Step::Receive),
                _ => {}
            }
        }
        steps
    }

    /// A state: the place of each thread, who has each lock, and the last write of each variable.
    type Reached = (Vec<usize>, [Option<usize>; 2], [Option<(usize, usize)>; 3]);

    struct Locked {
        threads: Vec<Vec<Step>>,
        /// The write that each read saw, and the sends that come before each time something is received.
        saw: HashMap<(usize, usize), Option<(usize, usize)>>,
        sent: HashMap<(usize, usize), Vec<(usize, usize)>>,
    }

    impl Locked {
        fn start(&self) -> Reached {
            (vec![0; self.threads.len()], [None; 2], [None; 3])
        }

        /// The state after a thread's next step, if that is possible; `is_free` if reads may see anything.
        fn next(&self, reached: &Reached, t: usize, is_free: bool) -> Option<Reached> {
            let (mut places, mut locks, mut memory) = reached.clone();
            let at = (t, places[t]);
            match *self.threads[t].get(places[t])? {
                Step::Acquire(lock) if locks[lock as usize / 2].is_some() => return None,
                Step::Acquire(lock) => locks[lock as usize / 2] = Some(t),
                Step::Release(lock) => locks[lock as usize / 2] = None,
                Step::Read(v) if !is_free && memory[v as usize] != self.saw[&at] => return None,
                Step::Write(v) => memory[v as usize] = Some(at),
                Step::Receive if !is_free => {
                    let is_there = |&(by, place): &(usize, usize)| places[by] > place;
                    if !self.sent[&at].iter().all(is_there) {
                        return None;
                    }
                }
                _ => {}
            }
            places[t] += 1;
            Some((places, locks, memory))
        }

        /// The variables that two threads can access at the same time.
        fn races(&self) -> BTreeSet<u64> {
            let mut truth = BTreeSet::new();
            let mut seen = BTreeSet::from([self.start()]);
            let mut open = vec![self.start()];
            while let Some(state) = open.pop() {
                let step = |t: usize| self.threads[t].get(state.0[t]).copied();
                for t in 0..self.threads.len() {
                    for u in 0..t {
                        match (step(t), step(u)) {
                            (Some(Step::Write(x)), Some(Step::Write(y) | Step::Read(y)))
                            | (Some(Step::Read(y)), Some(Step::Write(x)))
                                if x == y =>
                            {
                                truth.insert(x);
                            }
                            _ => {}
                        }
                    }
                    if let Some(next) = self.next(&state, t, false)
                        && seen.insert(next.clone())
                    {
                        open.push(next);
                    }
                }
            }
            truth
        }
    }

    #[test]
    fn locks_order_no_more_than_they_must() {
        let mut random = fastrand::Rng::with_seed(77);
        let (mut with, mut without, mut sure) = (0, 0, 0);
        for _ in 0..20_000 {
            let threads: Vec<Vec<Step>> =
                (0..random.usize(2..=3)).map(|_| steps(&mut random)).collect();
            let (saw, sent) = (HashMap::default(), HashMap::default());
            let mut program = Locked { threads, saw, sent };
            let mut certain = CertainOrder { with_threads: true, ..CertainOrder::default() };
            let mut found = BTreeSet::new();
            let (mut state, mut sends) = (program.start(), Vec::new());
            loop {
                let next: Vec<(usize, Reached)> = (0..program.threads.len())
                    .filter_map(|t| Some((t, program.next(&state, t, true)?)))
                    .collect();
                if next.is_empty() {
                    break;
                }
                let (t, after) = next[random.usize(0..next.len())].clone();
                let (at, thread) = ((t, state.0[t]), t as u32 + 1);
                let mut access = |v: u64, writes: bool| {
                    let does = Does { reads: !writes, writes, is_atomic: false };
                    let unordered = certain.access(thread, (1 << 20) | (8 * v), 8, does);
                    found.extend(unordered.map(|one| (one.address & 0xff) / 8));
                };
                match program.threads[t][at.1] {
                    Step::Acquire(lock) => certain.sync(thread, Tag::Acquire, 64 + lock, 0),
                    Step::Release(lock) => certain.sync(thread, Tag::Release, 64 + lock, 0),
                    Step::Read(v) => {
                        program.saw.insert(at, state.2[v as usize]);
                        access(v, false);
                    }
                    Step::Write(v) => access(v, true),
                    Step::Send => {
                        sends.push(at);
                        certain.sync(thread, Tag::Send, 7, 0);
                    }
                    Step::Receive => {
                        program.sent.insert(at, sends.clone());
                        certain.sync(thread, Tag::Receive, 7, 0);
                    }
                }
                state = after;
            }
            let truth = program.races();
            assert!(truth.is_subset(&found), "{truth:?} {found:?} {:?}", program.threads);
            with += u32::from(!truth.is_empty());
            without += u32::from(truth.is_empty());
            sure += u32::from(truth.is_empty() && found.is_empty());
        }
        assert!(with > 2_000 && without > 2_000 && sure > without / 2, "{with} {without} {sure}");
    }
}
