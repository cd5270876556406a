//! A tiny language of threads, and a machine that runs it step by step. It shares no code with the model of the search.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use foresee_explore::hash::Hasher;
use foresee_explore::program::{
    Cell, Ending, Event, Execution, Failure, LockKind, Modify, Object, Operation, Patience,
    Pending, Place, Program, RunError, Schedule, Spot, TIME_OUT, Tail, ThreadName, Told, Value,
};

/// An instruction. Branches and assertions are no operations: they happen with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ins {
    /// `reg = var`
    Load(usize, usize),
    /// `reg = ` some bytes of `var`: offset and width.
    LoadPart(usize, usize, u8, u8),
    /// `var = constant`
    Set(usize, u64),
    /// `var = reg + constant`
    Store(usize, usize, u64),
    /// Some bytes of a variable: offset and width.
    StorePart(usize, u8, u8, u64),
    /// `reg = var; var += constant`, at once.
    Add(usize, usize, u64),
    /// `reg = var; if var == expected { var = desired }`, at once.
    Cas(usize, usize, u64, u64),
    /// `reg = var; if var == expected_reg { var = desired_reg + constant }`, at once.
    CasReg(usize, usize, usize, usize, u64),
    Lock(usize),
    ReadLock(usize),
    /// `reg = 1` if it got the lock, else 0.
    TryLock(usize, usize),
    /// The same, with a time to wait.
    TimedLock(usize, usize),
    Unlock(usize),
    /// Condition and lock.
    Wait(usize, usize),
    /// `reg = 1` if it was woken, else 0.
    TimedWait(usize, usize, usize),
    Signal(usize),
    Broadcast(usize),
    SemInit(usize, u32),
    Post(usize),
    Take(usize),
    TryTake(usize, usize),
    BarrierInit(usize, u32),
    Arrive(usize),
    Pass(usize),
    /// `reg = 1` if this thread must do it.
    OnceBegin(usize, usize),
    OnceEnd(usize),
    /// Starts a thread, by its number in the program.
    Fork(usize),
    Join(usize),
    /// If `reg == constant`, skips this number of instructions.
    SkipIf(usize, u64, usize),
    SkipUnless(usize, u64, usize),
    /// If one register is less than another.
    SkipLess(usize, usize, usize),
    /// Goes back by this number of instructions.
    Back(usize),
    /// `reg = reg + constant`
    Bump(usize, u64),
    /// Fails unless `reg == constant`.
    Assert(usize, u64),
    /// Fails.
    Fail,
    /// Tosses a coin, which no operation shows: 0 or 1.
    Coin(usize),
    /// Ends the process.
    Exit(i32),
}

pub(crate) type Code = Vec<Vec<Ins>>;

pub(crate) const REGS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Unborn,
    Live,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Thread {
    life: Life,
    pc: usize,
    regs: [u64; REGS],
    history: u128,
    /// 0 runs, 1 waits, 2 was woken (or may pass a barrier).
    wait: u8,
    /// It stands in the second half of a wait.
    in_wait: bool,
    name: Vec<u32>,
    children: u32,
}

/// The state of a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Machine {
    threads: Vec<Thread>,
    vars: Vec<u64>,
    /// Owner and one; negative for readers.
    locks: Vec<i32>,
    /// Waiters of each condition in the order of their arrival.
    waiters: Vec<Vec<usize>>,
    sems: Vec<Option<u32>>,
    barriers: Vec<(u32, u32)>,
    onces: Vec<u8>,
    coins: u64,
}

/// How many variables, locks and so on there may be.
const MOST: usize = 6;

/// A local state: a thread and all that it was told.
pub(crate) type Local = (Vec<u32>, u128);

impl Machine {
    pub(crate) fn new(code: &Code, coins: u64) -> Machine {
        let thread = |life| Thread {
            life,
            pc: 0,
            regs: [0; REGS],
            history: 0,
            wait: 0,
            in_wait: false,
            name: Vec::new(),
            children: 0,
        };
        let mut machine = Machine {
            threads: vec![thread(Life::Unborn); code.len()],
            vars: vec![0; MOST],
            locks: vec![0; MOST],
            waiters: vec![Vec::new(); MOST],
            sems: vec![None; MOST],
            barriers: vec![(0, 0); MOST],
            onces: vec![0; MOST],
            coins,
        };
        machine.threads[0].life = Life::Live;
        machine.settle(code, 0);
        machine
    }

    pub(crate) fn locals(&self) -> impl Iterator<Item = Local> {
        let live = self.threads.iter().filter(|thread| thread.life == Life::Live);
        live.map(|thread| (thread.name.clone(), thread.history))
    }

    /// The registers of the threads that have ended.
    pub(crate) fn ended(&self) -> impl Iterator<Item = (ThreadName, [u64; REGS])> {
        let ended = self.threads.iter().filter(|thread| thread.life == Life::Ended);
        ended.map(|thread| (ThreadName(thread.name.clone()), thread.regs))
    }

    /// Does what is no operation.
    fn settle(&mut self, code: &Code, at: usize) {
        let thread = &mut self.threads[at];
        // A loop without operations ends the thread.
        for _ in 0..1000 {
            let Some(&ins) = code[at].get(thread.pc) else { return };
            let skip = |is: bool, by: usize| if is { by + 1 } else { 1 };
            thread.pc += match ins {
                Ins::SkipIf(reg, value, by) => skip(thread.regs[reg] == value, by),
                Ins::SkipUnless(reg, value, by) => skip(thread.regs[reg] != value, by),
                Ins::SkipLess(one, other, by) => skip(thread.regs[one] < thread.regs[other], by),
                Ins::Assert(reg, value) if thread.regs[reg] == value => 1,
                Ins::Bump(reg, by) => {
                    thread.regs[reg] = thread.regs[reg].wrapping_add(by);
                    1
                }
                Ins::Back(by) => {
                    thread.pc -= by;
                    continue;
                }
                Ins::Coin(reg) => {
                    thread.regs[reg] = self.coins & 1;
                    self.coins >>= 1;
                    1
                }
                _ => return,
            };
        }
        thread.pc = code[at].len();
    }

    fn place(at: usize, pc: usize) -> Place {
        Place((at * 1000 + pc + 1) as u64)
    }

    pub(crate) fn pc_place(&self, at: usize) -> Place {
        Machine::place(at, self.threads[at].pc)
    }

    pub(crate) fn is_live(&self, at: usize) -> bool {
        self.threads[at].life == Life::Live
    }

    pub(crate) fn has_failed(&self, code: &Code, at: usize) -> bool {
        self.is_live(at)
            && matches!(self.ins(code, at), Some(Ins::Assert(..) | Ins::Fail | Ins::Exit(_)))
    }

    pub(crate) fn fails(&self, code: &Code, at: usize) -> bool {
        self.is_live(at)
            && match self.ins(code, at) {
                Some(Ins::Assert(..) | Ins::Fail) => true,
                Some(Ins::Exit(status)) => status != 0,
                _ => false,
            }
    }

    pub(crate) fn name(&self, at: usize) -> ThreadName {
        ThreadName(self.threads[at].name.clone())
    }

    fn ins(&self, code: &Code, at: usize) -> Option<Ins> {
        code[at].get(self.threads[at].pc).copied()
    }

    /// The choices with which a thread can move.
    pub(crate) fn choices(&self, code: &Code, at: usize) -> Vec<u32> {
        let thread = &self.threads[at];
        if thread.life != Life::Live {
            return Vec::new();
        }
        let Some(ins) = self.ins(code, at) else { return vec![0] };
        let one = |can: bool| if can { vec![0] } else { Vec::new() };
        match ins {
            Ins::Lock(lock) => one(self.locks[lock] == 0),
            Ins::ReadLock(lock) => one(self.locks[lock] <= 0),
            Ins::TimedLock(_, lock) => {
                if self.locks[lock] == 0 {
                    vec![0]
                } else {
                    vec![TIME_OUT]
                }
            }
            Ins::Wait(_, lock) if thread.in_wait => one(thread.wait == 2 && self.locks[lock] == 0),
            Ins::TimedWait(_, _, lock) if thread.in_wait => match (self.locks[lock], thread.wait) {
                (0, 2) => vec![0],
                (0, _) => vec![TIME_OUT],
                _ => Vec::new(),
            },
            Ins::Signal(condition) => (0..self.waiters[condition].len().max(1) as u32).collect(),
            Ins::Take(sem) => one(self.sems[sem].is_some_and(|count| count > 0)),
            Ins::Pass(_) => one(thread.wait == 2),
            Ins::OnceBegin(_, once) => one(self.onces[once] != 1),
            Ins::Join(other) => one(self.threads[other].life == Life::Ended),
            _ => vec![0],
        }
    }

    /// Which thread a choice of a signal wakes.
    pub(crate) fn wakes(&self, code: &Code, at: usize, choice: u32) -> Option<usize> {
        match self.ins(code, at) {
            Some(Ins::Signal(condition)) => self.waiters[condition].get(choice as usize).copied(),
            _ => None,
        }
    }

    /// Whether it is a mistake of the program that no model describes: these are not generated.
    pub(crate) fn operation(&self, code: &Code, at: usize, stored: Option<u64>) -> Operation {
        let spot =
            |kind: u128, i: usize| Spot { object: Object(kind * 1000 + i as u128), offset: 0 };
        let whole = |var| Cell { at: spot(1, var), width: 8 };
        let part = |var, offset: u8, width| Cell {
            at: Spot { object: Object(1000 + var as u128), offset: u64::from(offset) },
            width,
        };
        let bits = |value: u64| Value::Bits(u128::from(value));
        let lock = |lock, shared, patience| Operation::Lock {
            lock: spot(2, lock),
            kind: LockKind::Normal,
            shared,
            patience,
        };
        let wait = |condition, l, timed| {
            let (condition, lock) = (spot(3, condition), spot(2, l));
            if self.threads[at].in_wait {
                Operation::WaitEnd { condition, lock, timed }
            } else {
                Operation::Wait { condition, lock, timed }
            }
        };
        let thread = &self.threads[at];
        match self.ins(code, at) {
            None => Operation::End(Value::Bits(0)),
            Some(ins) => match ins {
                Ins::Load(_, var) => Operation::Load(whole(var)),
                Ins::LoadPart(_, var, offset, width) => Operation::Load(part(var, offset, width)),
                Ins::Set(var, _) | Ins::Store(var, ..) => {
                    Operation::Store(whole(var), stored.map(bits))
                }
                Ins::StorePart(var, offset, width, _) => {
                    Operation::Store(part(var, offset, width), stored.map(bits))
                }
                Ins::Add(_, var, by) => Operation::Modify(whole(var), Modify::Add(bits(by))),
                Ins::Cas(_, var, expected, desired) => {
                    let (expected, desired) = (bits(expected), bits(desired));
                    Operation::Modify(whole(var), Modify::CompareExchange { expected, desired })
                }
                Ins::CasReg(_, var, expected, desired, by) => {
                    let expected = bits(thread.regs[expected]);
                    let desired = bits(thread.regs[desired].wrapping_add(by));
                    Operation::Modify(whole(var), Modify::CompareExchange { expected, desired })
                }
                Ins::Lock(l) => lock(l, false, Patience::Wait),
                Ins::ReadLock(l) => lock(l, true, Patience::Wait),
                Ins::TryLock(_, l) => lock(l, false, Patience::Try),
                Ins::TimedLock(_, l) => lock(l, false, Patience::Timed),
                Ins::Unlock(l) => Operation::Unlock { lock: spot(2, l), kind: LockKind::Normal },
                Ins::Wait(c, l) => wait(c, l, false),
                Ins::TimedWait(_, c, l) => wait(c, l, true),
                Ins::Signal(c) => Operation::Signal(spot(3, c)),
                Ins::Broadcast(c) => Operation::Broadcast(spot(3, c)),
                Ins::SemInit(s, count) => Operation::SemInit(spot(4, s), count),
                Ins::Post(s) => Operation::SemPost(spot(4, s)),
                Ins::Take(s) => Operation::SemWait(spot(4, s), Patience::Wait),
                Ins::TryTake(_, s) => Operation::SemWait(spot(4, s), Patience::Try),
                Ins::BarrierInit(b, count) => Operation::BarrierInit(spot(5, b), count),
                Ins::Arrive(b) => Operation::Arrive(spot(5, b)),
                Ins::Pass(b) => Operation::Pass(spot(5, b)),
                Ins::OnceBegin(_, o) => Operation::OnceBegin(spot(6, o)),
                Ins::OnceEnd(o) => Operation::OnceEnd(spot(6, o)),
                Ins::Fork(_) => Operation::Fork(thread.children + 1),
                Ins::Join(other) => {
                    let name = ThreadName(self.threads[other].name.clone());
                    Operation::Join { thread: name.join() }
                }
                Ins::Exit(status) => Operation::Exit(status),
                _ => Operation::Fail(Failure::Assertion),
            },
        }
    }

    /// Takes a step that is possible.
    pub(crate) fn step(&mut self, code: &Code, at: usize, choice: u32) -> (Told, Option<u64>) {
        let value = |value: u64| Told::Value(Value::Bits(u128::from(value)));
        let mask = |width: u8| if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
        let late = choice == TIME_OUT;
        let ins = self.ins(code, at);
        let mut is_over = true;
        let mut stored = None;
        let told = match ins {
            None => {
                self.threads[at].life = Life::Ended;
                Told::Nothing
            }
            Some(ins) => match ins {
                Ins::Load(reg, var) => {
                    self.threads[at].regs[reg] = self.vars[var];
                    value(self.vars[var])
                }
                Ins::LoadPart(reg, var, offset, width) => {
                    let part = self.vars[var] >> (8 * offset) & mask(width);
                    self.threads[at].regs[reg] = part;
                    value(part)
                }
                Ins::Set(var, constant) => {
                    self.vars[var] = constant;
                    stored = Some(constant);
                    Told::Nothing
                }
                Ins::Store(var, reg, constant) => {
                    self.vars[var] = self.threads[at].regs[reg].wrapping_add(constant);
                    stored = Some(self.vars[var]);
                    Told::Nothing
                }
                Ins::StorePart(var, offset, width, constant) => {
                    let hole = mask(width) << (8 * offset);
                    self.vars[var] = self.vars[var] & !hole | constant << (8 * offset);
                    stored = Some(constant);
                    Told::Nothing
                }
                Ins::Add(reg, var, by) => {
                    let old = self.vars[var];
                    self.threads[at].regs[reg] = old;
                    self.vars[var] = old.wrapping_add(by);
                    value(old)
                }
                Ins::Cas(reg, var, expected, desired) => {
                    let old = self.vars[var];
                    self.threads[at].regs[reg] = old;
                    if old == expected {
                        self.vars[var] = desired;
                    }
                    value(old)
                }
                Ins::CasReg(reg, var, expected, desired, by) => {
                    let old = self.vars[var];
                    let regs = &mut self.threads[at].regs;
                    if old == regs[expected] {
                        self.vars[var] = regs[desired].wrapping_add(by);
                    }
                    regs[reg] = old;
                    value(old)
                }
                Ins::Lock(lock) => {
                    self.locks[lock] = at as i32 + 1;
                    Told::Nothing
                }
                Ins::ReadLock(lock) => {
                    self.locks[lock] -= 1;
                    Told::Nothing
                }
                Ins::TryLock(reg, lock) | Ins::TimedLock(reg, lock) => {
                    let is_free = self.locks[lock] == 0;
                    self.threads[at].regs[reg] = u64::from(is_free);
                    if is_free {
                        self.locks[lock] = at as i32 + 1;
                    }
                    match is_free {
                        true => Told::Got,
                        false if late => Told::TimedOut,
                        false => Told::Busy,
                    }
                }
                Ins::Unlock(lock) => {
                    self.locks[lock] = if self.locks[lock] < 0 { self.locks[lock] + 1 } else { 0 };
                    Told::Nothing
                }
                Ins::Wait(condition, lock) | Ins::TimedWait(_, condition, lock) => {
                    let thread = &mut self.threads[at];
                    if thread.in_wait {
                        self.locks[lock] = at as i32 + 1;
                        (thread.in_wait, thread.wait) = (false, 0);
                        self.waiters[condition].retain(|&waiter| waiter != at);
                        if let Ins::TimedWait(reg, ..) = ins {
                            thread.regs[reg] = u64::from(!late);
                        }
                        if late { Told::TimedOut } else { Told::Woken }
                    } else {
                        self.locks[lock] = 0;
                        (thread.in_wait, thread.wait) = (true, 1);
                        self.waiters[condition].push(at);
                        is_over = false;
                        Told::Nothing
                    }
                }
                Ins::Signal(condition) => {
                    if !self.waiters[condition].is_empty() {
                        let woken = self.waiters[condition].remove(choice as usize);
                        self.threads[woken].wait = 2;
                    }
                    Told::Nothing
                }
                Ins::Broadcast(condition) => {
                    for woken in std::mem::take(&mut self.waiters[condition]) {
                        self.threads[woken].wait = 2;
                    }
                    Told::Nothing
                }
                Ins::SemInit(sem, count) => {
                    self.sems[sem] = Some(count);
                    Told::Nothing
                }
                Ins::Post(sem) => {
                    self.sems[sem] = self.sems[sem].map(|count| count + 1);
                    Told::Nothing
                }
                Ins::Take(sem) => {
                    self.sems[sem] = self.sems[sem].map(|count| count - 1);
                    Told::Nothing
                }
                Ins::TryTake(reg, sem) => {
                    let can = self.sems[sem].is_some_and(|count| count > 0);
                    self.threads[at].regs[reg] = u64::from(can);
                    if can {
                        self.sems[sem] = self.sems[sem].map(|count| count - 1);
                    }
                    if can { Told::Got } else { Told::Busy }
                }
                Ins::BarrierInit(barrier, count) => {
                    self.barriers[barrier] = (count, 0);
                    Told::Nothing
                }
                Ins::Arrive(barrier) => {
                    let (needed, arrived) = &mut self.barriers[barrier];
                    *arrived += 1;
                    if arrived == needed {
                        *arrived = 0;
                        for other in 0..self.threads.len() {
                            let stands = self.ins(code, other) == Some(Ins::Pass(barrier));
                            if stands && self.is_live(other) {
                                self.threads[other].wait = 2;
                            }
                        }
                        self.threads[at].wait = 2;
                        Told::Got
                    } else {
                        Told::Busy
                    }
                }
                Ins::Pass(_) => {
                    self.threads[at].wait = 0;
                    Told::Nothing
                }
                Ins::OnceBegin(reg, once) => {
                    let is_first = self.onces[once] == 0;
                    self.threads[at].regs[reg] = u64::from(is_first);
                    if is_first {
                        self.onces[once] = 1;
                    }
                    if is_first { Told::Got } else { Told::Busy }
                }
                Ins::OnceEnd(once) => {
                    self.onces[once] = 2;
                    Told::Nothing
                }
                Ins::Fork(child) => {
                    self.threads[at].children += 1;
                    let mut name = self.threads[at].name.clone();
                    name.push(self.threads[at].children);
                    let from = self.threads[at].history;
                    let thread = &mut self.threads[child];
                    (thread.life, thread.name, thread.history) = (Life::Live, name, from);
                    self.settle(code, child);
                    Told::Nothing
                }
                Ins::Join(_) => value(0),
                _ => Told::Nothing,
            },
        };
        let mut hasher = Hasher::new(format!("{ins:?} {told:?} {stored:?} {is_over}").as_bytes());
        let thread = &mut self.threads[at];
        hasher.word(thread.history);
        thread.history = hasher.finish();
        if is_over && ins.is_some() {
            thread.pc += 1;
            self.settle(code, at);
        }
        (told, stored)
    }

    /// The threads in the order of their names.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> =
            (0..self.threads.len()).filter(|&at| self.threads[at].life != Life::Unborn).collect();
        order.sort_by(|&one, &other| self.threads[one].name.cmp(&self.threads[other].name));
        order
    }

    /// All steps that are possible: a thread that fails does not move.
    pub(crate) fn moves(&self, code: &Code) -> Vec<(usize, u32)> {
        let can = self.order().into_iter().filter(|&at| !self.has_failed(code, at));
        can.flat_map(|at| self.choices(code, at).into_iter().map(move |choice| (at, choice)))
            .collect()
    }
}

/// A program in the tiny language.
#[derive(Clone)]
pub(crate) struct Tiny {
    pub(crate) code: Code,
    /// Every local state that some run came to.
    pub(crate) locals: Arc<Mutex<HashSet<Local>>>,
    /// Coins are tossed by this.
    pub(crate) chance: Option<u64>,
    pub(crate) runs: u64,
}

impl Tiny {
    pub(crate) fn new(code: &Code) -> Tiny {
        Tiny { code: code.clone(), locals: Arc::default(), chance: None, runs: 0 }
    }
}

impl Program for Tiny {
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        self.runs += 1;
        let coins =
            self.chance.map_or(0, |seed| fastrand::Rng::with_seed(seed + self.runs).u64(..));
        let code = &self.code;
        let mut machine = Machine::new(code, coins);
        let mut rng = match schedule.tail {
            Tail::Random(seed) => Some(fastrand::Rng::with_seed(seed)),
            Tail::Straight => None,
        };
        let mut locals: Vec<Local> = machine.locals().collect();
        let mut threads = vec![ThreadName::default()];
        let mut index = vec![0_u32; code.len()];
        let mut events: Vec<Event> = Vec::new();
        let (mut ending, mut diverged, mut last) = (Ending::Finished, None, 0);
        loop {
            let step = if let Some(step) = schedule.steps.get(events.len()) {
                let name = &schedule.threads[step.thread as usize];
                let at = machine.order().into_iter().find(|&at| machine.name(at) == *name);
                match at {
                    Some(at) if machine.choices(code, at).contains(&step.choice) => {
                        (at, step.choice)
                    }
                    _ => {
                        diverged = Some((events.len(), format!("{name} cannot move")));
                        break;
                    }
                }
            } else {
                // As the seam says: the end of the process is a step like any other.
                let all: Vec<(usize, u32)> = machine
                    .order()
                    .into_iter()
                    .flat_map(|at| machine.choices(code, at).into_iter().map(move |c| (at, c)))
                    .collect();
                let picked = match &mut rng {
                    Some(rng) if !all.is_empty() => Some(all[rng.usize(..all.len())]),
                    _ => default(&all, last),
                };
                match picked {
                    Some(step) => step,
                    None => {
                        let is_over = (0..code.len()).all(|at| !machine.is_live(at));
                        ending = if is_over { Ending::Finished } else { Ending::Deadlock };
                        break;
                    }
                }
            };
            if events.len() >= schedule.most_operations {
                ending = Ending::Cut;
                break;
            }
            let (at, choice) = step;
            let before = machine.operation(code, at, None);
            let place = machine.pc_place(at);
            last = at;
            if machine.has_failed(code, at) {
                let told = Told::Nothing;
                let thread = index[at];
                events.push(Event { thread, operation: before, place, told, stored: None, choice });
                break;
            }
            let mut after = machine.clone();
            let (told, stored) = after.step(code, at, choice);
            let operation = machine.operation(code, at, stored);
            events.push(Event { thread: index[at], operation, place, told, stored: None, choice });
            machine = after;
            for other in machine.order() {
                let name = machine.name(other);
                if !threads.contains(&name) {
                    index[other] = threads.len() as u32;
                    threads.push(name);
                }
            }
            locals.extend(machine.locals());
        }
        let pending = (0..code.len()).filter(|&at| machine.is_live(at)).map(|at| Pending {
            thread: index[at],
            operation: machine.operation(code, at, None),
            place: machine.pc_place(at),
        });
        let pending = pending.collect();
        self.locals.lock().expect("no test panics with it").extend(locals);
        Ok(Execution { threads, events, pending, ending, diverged })
    }
}

/// The step that costs nothing.
pub(crate) fn default(all: &[(usize, u32)], running: usize) -> Option<(usize, u32)> {
    let on_time = || all.iter().filter(|step| step.1 != TIME_OUT);
    let same = on_time().find(|step| step.0 == running);
    same.or_else(|| on_time().next()).or_else(|| all.first()).copied()
}
