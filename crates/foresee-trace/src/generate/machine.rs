//! The machine that the generator simulates.
//!
//! An invariant keeps it from getting stuck: at least one thread is running, that is, started, not
//! waiting and not ended; and a running thread can always access a variable.

mod chances;
mod locking;

use fastrand::Rng;

use super::{Config, Written};
use crate::event::{Event, Op};
use crate::ids::{LocId, LockId, ThreadId};
use crate::source::Batch;
use crate::value::Value;
use chances::Chances;
use locking::{Hold, Lock, Wait};

/// The maximum depth of calls and regions; enough for nesting to occur.
const MAX_OPEN: usize = 4;

/// The maximum number of recent steps of a thread that its loops repeat.
const LOOP: usize = 4;

#[derive(Debug, Default)]
struct Thread {
    started: bool,
    holds: Vec<Hold>,
    wait: Option<Wait>,
    calls: Vec<u32>,
    regions: usize,
    /// Recent steps that it may repeat.
    lately: Vec<(Op, u32, LocId)>,
}

impl Thread {
    fn has_open(&self) -> bool {
        !self.holds.is_empty() || !self.calls.is_empty() || self.regions > 0
    }
}

/// The state of all threads, locks and variables between two events.
#[derive(Debug)]
pub(super) struct Machine {
    config: Config,
    chances: Chances,
    rng: Rng,
    remaining: u64,
    /// The number of events needed to close everything that is open.
    debt: u64,
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    values: Vec<u32>,
    last_value: u32,
    running: Vec<u32>,
    /// The index in `running` of the thread whose turn it is.
    turn: usize,
    waiting: Vec<u32>,
    /// Threads that have ended and will be joined.
    ended: Vec<u32>,
    /// The first thread that has not been forked yet.
    unforked: u32,
    /// The location of the next event, if it is fixed.
    place: Option<LocId>,
    /// The first variable whose initial value may still be declared.
    uninitialised: u32,
}

impl Machine {
    pub(super) fn new(config: Config) -> Machine {
        let forked = (config.forked * f64::from(config.threads - 1)).round() as u32;
        let roots = config.threads - forked;
        let with_values = config.values != Written::Nothing;
        let initial = (config.initial * f64::from(config.variables)).round() as u32;
        Machine {
            chances: Chances::new(&config),
            rng: Rng::with_seed(config.seed),
            remaining: config.events,
            debt: 0,
            threads: (0..config.threads).map(|_| Thread::default()).collect(),
            locks: vec![Lock::default(); config.locks as usize],
            // Each thread may have a private variable.
            values: vec![
                0;
                if with_values { config.variables + config.threads } else { 0 } as usize
            ],
            last_value: 0,
            running: (0..roots).collect(),
            turn: 0,
            waiting: Vec::new(),
            ended: Vec::new(),
            unforked: roots,
            place: None,
            uninitialised: config.variables - initial,
            config,
        }
    }

    /// Adds events to the batch until it is full or the trace has ended.
    pub(super) fn fill(&mut self, batch: &mut Batch) {
        while self.remaining > 0 && batch.events.len() < Batch::EVENTS {
            if self.uninitialised < self.config.variables {
                self.state_initial_value(batch);
            } else if !self.config.unfinished && self.remaining < self.debt + 2 {
                self.close(batch);
            } else {
                self.step(batch);
            }
        }
    }

    fn state_initial_value(&mut self, batch: &mut Batch) {
        let variable = self.uninitialised;
        self.uninitialised += 1;
        let mut event = Event::new(ThreadId(0), Op::Init).with_target(variable);
        if self.config.values != Written::Nothing {
            event = event.with_values(&[Value::Int(0)], &mut batch.pool);
        }
        self.push(event, batch);
    }

    /// Produces one event, or ends a thread without one.
    fn step(&mut self, batch: &mut Batch) {
        if !self.waiting.is_empty() && self.rng.bool() && self.wake_up(batch) {
            return;
        }
        if self.turn >= self.running.len() || self.chances.switch.draw(&mut self.rng) {
            self.turn = self.rng.usize(..self.running.len());
        }
        let t = self.running[self.turn];
        if !self.threads[t as usize].started {
            self.threads[t as usize].started = true;
            if self.config.thread_marks {
                return self.emit(t, Op::ThreadBegin, batch);
            }
        } else if self.config.forked > 0.0 && self.fork_join_or_end(t, batch) {
            return;
        }
        if !self.synchronise(t, batch) {
            self.work(t, batch);
        }
    }

    /// Forks, joins or ends a thread; `false` if it does none of these.
    fn fork_join_or_end(&mut self, t: u32, batch: &mut Batch) -> bool {
        if self.unforked < self.config.threads {
            if !self.chances.fork.draw(&mut self.rng) {
                return false;
            }
            self.emit_on(t, Op::Fork, self.unforked, batch);
            self.running.push(self.unforked);
            self.unforked += 1;
            return true;
        }
        if !self.ended.is_empty() && self.rng.bool() {
            let other = self.ended.swap_remove(self.rng.usize(..self.ended.len()));
            self.emit_on(t, Op::Join, other, batch);
            return true;
        }
        if self.remaining == 3 && self.may_get_stuck() {
            let other = self.running.iter().copied().find(|&u| u != t).unwrap_or(t);
            self.stop(t);
            self.emit_on(t, Op::Await, other, batch);
            return true;
        }
        // In a long trace, threads live for most of it; in a tiny one they may end at any time.
        let late = self.remaining < self.config.events / 8 + 8;
        let may_end = self.config.unfinished || !self.threads[t as usize].has_open();
        if !late || !may_end || self.running.len() == 1 || !self.chances.end.draw(&mut self.rng) {
            return false;
        }
        if self.config.thread_marks {
            self.emit(t, Op::ThreadEnd, batch);
        }
        self.stop(t);
        if self.chances.joined.draw(&mut self.rng) {
            self.ended.push(t);
        }
        true
    }

    /// Whether a thread may block for the rest of the trace: only near the end, only in some
    /// traces, and never the last running thread.
    fn may_get_stuck(&self) -> bool {
        self.config.unfinished
            && self.config.seed.is_multiple_of(4)
            && self.remaining <= 6
            && self.running.len() > 1
    }

    /// Removes a thread from the running ones.
    fn stop(&mut self, t: u32) {
        self.running.retain(|&u| u != t);
    }

    /// Anything but synchronisation.
    fn work(&mut self, t: u32, batch: &mut Batch) {
        if self.chances.again.draw(&mut self.rng) && self.do_again(t, batch) {
            return;
        }
        if self.chances.unrelated.draw(&mut self.rng) {
            let op = [Op::Event, Op::Read, Op::Write][self.rng.usize(..3)];
            return match op {
                Op::Event => self.emit_on(t, op, self.config.alphabet, batch),
                _ => self.access_as(t, op, self.config.variables + t, batch),
            };
        }
        if self.chances.named.draw(&mut self.rng) {
            let name = self.rng.u32(..self.config.alphabet);
            return self.emit_on(t, Op::Event, name, batch);
        }
        if self.chances.call.draw(&mut self.rng) {
            return self.call_or_return(t, batch);
        }
        if self.chances.region.draw(&mut self.rng) {
            return self.begin_or_end(t, batch);
        }
        if self.chances.bare_wait.draw(&mut self.rng) {
            let condition = self.rng.u32(..self.config.conditions);
            return self.emit_on(t, Op::Wait, condition, batch);
        }
        self.access(t, batch);
    }

    fn call_or_return(&mut self, t: u32, batch: &mut Batch) {
        let calls = &mut self.threads[t as usize].calls;
        let deep = calls.len() == MAX_OPEN;
        match calls.pop_if(|_| deep || self.rng.bool()) {
            Some(method) => {
                self.debt -= 1;
                self.emit_on(t, Op::Exit, method, batch);
            }
            None => {
                let method = self.rng.u32(..self.config.alphabet);
                calls.push(method);
                self.debt += 1;
                self.emit_on(t, Op::Enter, method, batch);
            }
        }
    }

    fn begin_or_end(&mut self, t: u32, batch: &mut Batch) {
        let regions = &mut self.threads[t as usize].regions;
        if *regions == MAX_OPEN || *regions > 0 && self.rng.bool() {
            *regions -= 1;
            self.debt -= 1;
            self.emit(t, Op::End, batch);
        } else {
            *regions += 1;
            self.debt += 1;
            self.emit(t, Op::Begin, batch);
        }
    }

    fn access(&mut self, t: u32, batch: &mut Batch) {
        let variable = self.rng.u32(..self.config.variables);
        if self.remaining == 2 && self.may_get_stuck() {
            self.stop(t);
            return self.emit_on(t, Op::Block, variable, batch);
        }
        let op = if self.chances.rmw.draw(&mut self.rng) {
            Op::Rmw
        } else {
            let read = self.chances.read.draw(&mut self.rng);
            match (read, self.chances.volatile.draw(&mut self.rng)) {
                (true, false) => Op::Read,
                (true, true) => Op::VolatileRead,
                (false, false) => Op::Write,
                (false, true) => Op::VolatileWrite,
            }
        };
        self.access_as(t, op, variable, batch);
    }

    /// Repeats a recent step of the thread, at the same location; `false` if there is none.
    fn do_again(&mut self, t: u32, batch: &mut Batch) -> bool {
        let lately = &self.threads[t as usize].lately;
        let Some(back) = lately.len().checked_sub(1) else { return false };
        let (op, target, place) = lately[back - self.rng.usize(..=back.min(LOOP))];
        self.place = Some(place);
        match op {
            Op::Event => self.emit_on(t, op, target, batch),
            _ => self.access_as(t, op, target, batch),
        }
        true
    }

    fn access_as(&mut self, t: u32, op: Op, variable: u32, batch: &mut Batch) {
        let mut event = Event::new(ThreadId(t), op).with_target(variable);
        if self.config.values != Written::Nothing {
            let old = self.values[variable as usize];
            let new = if op.writes() { self.new_value() } else { old };
            self.values[variable as usize] = new;
            let (old, new) = (Value::Int(i64::from(old)), Value::Int(i64::from(new)));
            let values = if op == Op::Rmw { &[old, new][..] } else { &[new] };
            event = event.with_values(values, &mut batch.pool);
        }
        self.push(event, batch);
    }

    fn new_value(&mut self) -> u32 {
        match self.config.values {
            Written::Nothing => 0,
            Written::Repeating(n) => self.rng.u32(0..n.max(1)) + 1,
            Written::Distinct => {
                self.last_value = self.last_value.wrapping_add(1);
                self.last_value
            }
        }
    }

    /// Near the end of the trace: produces one event that closes something.
    fn close(&mut self, batch: &mut Batch) {
        let open = self.running.iter().copied().find(|&t| self.threads[t as usize].has_open());
        match open {
            // One event more than is needed to close everything.
            _ if self.remaining > self.debt => self.access(open.unwrap_or(self.running[0]), batch),
            Some(t) => {
                let thread = &mut self.threads[t as usize];
                if !thread.holds.is_empty() {
                    self.release(t, batch);
                } else if let Some(method) = thread.calls.pop() {
                    self.debt -= 1;
                    self.emit_on(t, Op::Exit, method, batch);
                } else {
                    thread.regions -= 1;
                    self.debt -= 1;
                    self.emit(t, Op::End, batch);
                }
            }
            // No running thread holds a lock, and no waiting thread holds another one: this cannot
            // fail.
            None => {
                let woken = self.wake(0, batch);
                debug_assert!(woken, "the locks of waiting threads are free");
            }
        }
    }

    fn emit(&mut self, t: u32, op: Op, batch: &mut Batch) {
        self.push(Event::new(ThreadId(t), op), batch);
    }

    fn emit_on(&mut self, t: u32, op: Op, target: u32, batch: &mut Batch) {
        self.push(Event::new(ThreadId(t), op).with_target(target), batch);
    }

    fn emit_wait(&mut self, t: u32, op: Op, condition: u32, lock: u32, batch: &mut Batch) {
        let event = Event::new(ThreadId(t), op).with_target(condition);
        self.push(event.with_wait_lock(Some(LockId(lock))), batch);
    }

    #[inline]
    fn push(&mut self, event: Event, batch: &mut Batch) {
        let loc = match (self.place.take(), self.config.locations) {
            (Some(place), _) => place,
            (None, 0) => LocId::NONE,
            (None, n) => LocId(1 + self.rng.u32(..n)),
        };
        let op = event.op();
        if self.config.loops > 0.0 && (op == Op::Event || op.reads() || op.writes()) {
            let lately = &mut self.threads[event.thread().0 as usize].lately;
            lately.drain(..lately.len().saturating_sub(LOOP));
            lately.extend(event.target().map(|target| (op, target, loc)));
        }
        batch.events.push(event.with_loc(loc));
        self.remaining -= 1;
    }
}
