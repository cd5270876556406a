//! Whether threads and OpenMP's tasks accessed memory in an order that only this run had.
//!
//! Some order in a trace is that of the run, because the right one is not known. In a trace, tasks
//! are steps of the threads that executed them, and a thread that waits for some tasks comes after
//! all that have finished. That is more order than OpenMP promises: two tasks that one thread
//! executed could have run at once in two, and a task that nobody waited for could still be running.
//! So accesses of tasks are compared here by OpenMP's own rules alone: a task comes after its
//! creation and after what it depends on, and before what follows a wait for it. Where two accesses
//! conflict, hold no lock in common and are in no such order, the trace is not complete. Nothing is
//! reported as a race, because there may be other reasons why they are in order.
//!
//! Likewise, all that threads do with a pipe, a signal, a descriptor and so on stays in the observed
//! order. What a thread receives comes after what was sent before; but whoever sends next need not
//! come after that, nor does a descriptor have to have the number that another thread has closed. So
//! if there are such channels, the accesses of threads are compared as well, by happens-before with
//! only what was sent before what was received.
//!
//! A *context* is a task, or what a thread executes outside of tasks. Each has a vector clock.

use std::collections::BTreeMap;
use std::rc::Rc;

use foresee_rt::format::{Tag, block, channel, task};

use super::{HashMap, HashSet};

/// The maximum number of contexts; each has a clock of this size.
const MOST_CONTEXTS: usize = 4096;
/// The maximum number of accesses that are kept of eight bytes.
const MOST_ACCESSES: usize = 64;
/// The maximum number of accesses that are compared.
const MOST_COMPARED: u64 = 1 << 19;
/// The stacks of threads are smaller than this.
const STACK: u64 = 64 << 20;

type Clock = Vec<u32>;

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
    accesses: BTreeMap<u64, Vec<Access>>,
    /// Memory that is accessed in no order, by eight bytes.
    doubtful: HashSet<u64>,
    /// Whether not everything was compared.
    pub(super) is_cut: bool,
}

fn learn(clock: &mut Clock, other: &[u32]) {
    if clock.len() < other.len() {
        clock.resize(other.len(), 0);
    }
    for (mine, &theirs) in clock.iter_mut().zip(other) {
        *mine = theirs.max(*mine);
    }
}

fn at(clock: &[u32], context: usize) -> u32 {
    clock.get(context).copied().unwrap_or(0)
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
            }
            _ => {}
        }
    }

    /// What was on a thread's stack beyond this place is gone.
    fn forget_stack(&mut self, stack: u64, mut is_stack: impl FnMut(u64) -> bool) {
        let range = stack.saturating_sub(STACK)..stack & !7;
        let gone: Vec<u64> =
            self.accesses.range(range).map(|(&at, _)| at).filter(|&at| is_stack(at)).collect();
        gone.into_iter().for_each(|at| drop(self.accesses.remove(&at)));
    }

    /// Memory begins another life.
    pub(super) fn forget(&mut self, address: u64, size: u64) {
        let range = address & !7..address.saturating_add(size);
        let gone: Vec<u64> = self.accesses.range(range).map(|(&at, _)| at).collect();
        gone.into_iter().for_each(|at| drop(self.accesses.remove(&at)));
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
        self.acquire(context, Object::Lock, lock);
        self.contexts[context].held.push(lock);
    }

    fn unlock(&mut self, context: usize, lock: u64) {
        self.release(context, Object::Lock, lock);
        let held = &mut self.contexts[context].held;
        if let Some(at) = held.iter().rposition(|&held| held == lock) {
            held.remove(at);
        }
    }

    /// A step that orders threads.
    pub(super) fn sync(&mut self, thread: u32, tag: Tag, address: u64, value: u64) {
        let context = self.current(thread);
        let is_channel = matches!(tag, Tag::Send | Tag::Look | Tag::Receive);
        if is_channel && matches!(value >> 32, channel::TASKS_DONE | channel::DESCRIPTOR) {
            return;
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
            Tag::AcquireShared => self.acquire(context, Object::Lock, address),
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
        writes: bool,
        is_atomic: bool,
        with_threads: bool,
    ) -> Option<Unordered> {
        if self.compared >= MOST_COMPARED {
            self.is_cut = true;
            return None;
        }
        self.compared += 1;
        let context = self.current(thread);
        if is_atomic {
            self.acquire(context, Object::Atomic, address & !7);
        }
        let time = self.contexts[context].clock[context];
        let mut held = self.contexts[context].held.clone();
        held.sort_unstable();
        let held: Rc<[u64]> = held.into();
        let end = address.saturating_add(size);
        let mut doubtful = None;
        for granule in (address & !7..end).step_by(8) {
            let mask = (0..8u64)
                .filter(|i| (address..end).contains(&(granule + i)))
                .fold(0u8, |mask, i| mask | 1 << i);
            let new = Access { context, time, mask, writes, is_atomic, held: Rc::clone(&held) };
            if !self.doubtful.contains(&granule)
                && let Some(is_of_task) = self.compare(granule, new, with_threads)
            {
                self.doubtful.insert(granule);
                doubtful = Some(Unordered { address: granule.max(address), is_of_task });
            }
        }
        if is_atomic && writes {
            self.release(context, Object::Atomic, address & !7);
        }
        doubtful
    }

    /// Whether an access of eight bytes is in no order with an earlier one, and if so whether one of them is a task's. It is
    /// kept.
    fn compare(&mut self, granule: u64, new: Access, with_threads: bool) -> Option<bool> {
        let Context { ref clock, is_task, .. } = self.contexts[new.context];
        let all = self.accesses.entry(granule).or_default();
        let mut doubtful = None;
        all.retain(|old| {
            let is_before = at(clock, old.context) >= old.time;
            let conflicts = old.mask & new.mask != 0
                && (old.writes || new.writes)
                && !(old.is_atomic && new.is_atomic)
                && !old.held.iter().any(|lock| new.held.contains(lock));
            let is_of_task = is_task || self.contexts[old.context].is_task;
            if !is_before && conflicts && (is_of_task || with_threads) {
                doubtful = Some(is_of_task);
            }
            // The new one says as much as the old one.
            let is_covered = is_before
                && old.mask & !new.mask == 0
                && (new.writes || !old.writes)
                && (!new.is_atomic || old.is_atomic)
                && new.held.iter().all(|lock| old.held.contains(lock));
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
                            self.certain.sync(thread, Tag::Acquire, 77, 0);
                        }
                        let found =
                            self.certain.access(thread, 8 * variable, 8, writes, false, false);
                        self.found.extend(found.map(|unordered| unordered.address / 8));
                        if locked {
                            self.certain.sync(thread, Tag::Release, 77, 0);
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
}
