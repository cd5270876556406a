//! Locks and conditions.

use super::Machine;
use crate::event::Op;
use crate::source::Batch;

/// A lock that a thread holds, or has released for the duration of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) lock: u32,
    pub(super) shared: bool,
    pub(super) depth: u32,
}

/// A wait that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    condition: u32,
    /// The index, among the thread's holds, of the released lock.
    hold: usize,
    notified: bool,
}

/// The current holders of a lock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lock {
    exclusive: bool,
    readers: u32,
}

impl Lock {
    fn is_free(self) -> bool {
        !self.exclusive && self.readers == 0
    }

    /// Acquires the lock for a thread that does not hold it, if it is free.
    fn take(&mut self, shared: bool) -> bool {
        let free = if shared { !self.exclusive } else { self.is_free() };
        if free && shared {
            self.readers += 1;
        } else if free {
            self.exclusive = true;
        }
        free
    }

    fn give(&mut self, shared: bool) {
        if shared { self.readers -= 1 } else { self.exclusive = false }
    }
}

impl Machine {
    /// Performs an operation on a lock or a condition; `false` if the thread should do something
    /// else.
    pub(super) fn synchronise(&mut self, t: u32, batch: &mut Batch) -> bool {
        if self.threads[t as usize].holds.is_empty() {
            if self.chances.enter_section.draw(&mut self.rng) {
                if self.acquire(t, batch) {
                    return true;
                }
                if self.config.in_sections >= 1.0 {
                    // The holder of the lock may run instead.
                    let holder = self
                        .running
                        .iter()
                        .copied()
                        .find(|&u| !self.threads[u as usize].holds.is_empty());
                    return holder.is_some_and(|holder| {
                        if !self.synchronise(holder, batch) {
                            self.work(holder, batch);
                        }
                        true
                    });
                }
            }
            return false;
        }
        if self.chances.leave_section.draw(&mut self.rng) {
            self.release(t, batch);
            return true;
        }
        if self.chances.nest.draw(&mut self.rng) && self.acquire(t, batch) {
            return true;
        }
        self.chances.wait.draw(&mut self.rng) && self.wait_or_notify(t, batch)
    }

    fn acquire(&mut self, t: u32, batch: &mut Batch) -> bool {
        let thread = &mut self.threads[t as usize];
        if !thread.holds.is_empty() && self.chances.reentrant.draw(&mut self.rng) {
            let i = self.rng.usize(..thread.holds.len());
            let hold = &mut thread.holds[i];
            hold.depth += 1;
            let (op, lock) =
                (if hold.shared { Op::AcquireSharedInner } else { Op::AcquireInner }, hold.lock);
            self.debt += 1;
            self.emit_on(t, op, lock, batch);
            return true;
        }
        if thread.holds.len() >= self.config.max_nesting as usize {
            return false;
        }
        let lock = self.rng.u32(..self.config.locks);
        let shared = self.chances.shared.draw(&mut self.rng);
        // Otherwise a reader could acquire its own lock a second time as another reader.
        let mine = thread.holds.iter().any(|hold| hold.lock == lock);
        if mine {
            return false;
        }
        let tries = self.chances.tries.draw(&mut self.rng);
        if !self.locks[lock as usize].take(shared) {
            if tries {
                self.emit_on(t, if shared { Op::BusyShared } else { Op::Busy }, lock, batch);
            } else if self.may_get_stuck() {
                self.stop(t);
                let op = if shared { Op::RequestShared } else { Op::Request };
                self.emit_on(t, op, lock, batch);
                return true;
            }
            return tries;
        }
        // The acquire and its release must still fit.
        if tries && self.remaining >= self.debt + 3 {
            // Both kinds occur, without drawing another random number.
            self.emit_on(t, if shared { Op::TryFor } else { Op::Try }, lock, batch);
        }
        let thread = &mut self.threads[t as usize];
        thread.holds.push(Hold { lock, shared, depth: 1 });
        self.debt += 1;
        self.emit_on(t, if shared { Op::AcquireShared } else { Op::Acquire }, lock, batch);
        true
    }

    pub(super) fn release(&mut self, t: u32, batch: &mut Batch) {
        let thread = &mut self.threads[t as usize];
        let i = if self.chances.crossed.draw(&mut self.rng) {
            self.rng.usize(..thread.holds.len())
        } else {
            thread.holds.len() - 1
        };
        let hold = &mut thread.holds[i];
        hold.depth -= 1;
        let Hold { lock, shared, depth } = *hold;
        let op = match (shared, depth) {
            (false, 0) => Op::Release,
            (false, _) => Op::ReleaseInner,
            (true, 0) => Op::ReleaseShared,
            (true, _) => Op::ReleaseSharedInner,
        };
        if depth == 0 {
            thread.holds.remove(i);
            self.locks[lock as usize].give(shared);
        }
        self.debt -= 1;
        self.emit_on(t, op, lock, batch);
    }

    /// Waits for or notifies a condition of a lock that the thread holds.
    fn wait_or_notify(&mut self, t: u32, batch: &mut Batch) -> bool {
        let holds = &self.threads[t as usize].holds;
        let i = self.rng.usize(..holds.len());
        let Hold { lock, shared, .. } = holds[i];
        let of_lock = self.config.conditions.div_ceil(self.config.locks);
        let condition = lock + self.config.locks * self.rng.u32(..of_lock);
        if shared || condition >= self.config.conditions {
            return false;
        }
        // Two threads that wait while holding other locks may block each other forever, and then
        // what is open could not be closed.
        let may_wait = self.running.len() > 1 && (self.config.unfinished || holds.len() == 1);
        if may_wait && self.rng.bool() {
            self.emit_wait(t, Op::WaitBegin, condition, lock, batch);
            self.locks[lock as usize].give(false);
            self.threads[t as usize].wait = Some(Wait { condition, hold: i, notified: false });
            self.debt += 1;
            self.stop(t);
            self.waiting.push(t);
        } else {
            let all = self.rng.u8(..4) == 0;
            self.notify(condition, all);
            self.emit_on(t, if all { Op::NotifyAll } else { Op::Notify }, condition, batch);
        }
        true
    }

    fn notify(&mut self, condition: u32, all: bool) {
        for &t in &self.waiting {
            match &mut self.threads[t as usize].wait {
                Some(wait) if wait.condition == condition && !wait.notified => wait.notified = true,
                _ => continue,
            }
            if !all {
                return;
            }
        }
    }

    /// Ends a wait whose lock is free: usually of a thread that was notified, sometimes of another
    /// one, because spurious wake-ups occur in real programs.
    pub(super) fn wake_up(&mut self, batch: &mut Batch) -> bool {
        let notified = |&t: &u32| self.threads[t as usize].wait.is_some_and(|wait| wait.notified);
        let i = match self.waiting.iter().position(notified) {
            Some(i) if self.rng.u8(..8) > 0 => i,
            _ if self.rng.u8(..16) == 0 => self.rng.usize(..self.waiting.len()),
            _ => return false,
        };
        self.wake(i, batch)
    }

    /// Ends the wait of the `i`-th waiting thread, if its lock is free.
    pub(super) fn wake(&mut self, i: usize, batch: &mut Batch) -> bool {
        let t = self.waiting[i];
        let thread = &mut self.threads[t as usize];
        let Some(Wait { condition, hold, .. }) = thread.wait else { return false };
        let lock = thread.holds[hold].lock;
        if !self.locks[lock as usize].take(false) {
            return false;
        }
        thread.wait = None;
        self.waiting.swap_remove(i);
        self.running.push(t);
        self.debt -= 1;
        self.emit_wait(t, Op::WaitEnd, condition, lock, batch);
        true
    }
}
