//! Locks, waits and threads.

use foresee_trace::{Batch, Op};

use super::super::merge::LAST_THREAD;
use super::super::record::Record;
use super::{JvmSource, Result};

impl JvmSource {
    pub(super) fn acquire(
        &mut self,
        i: usize,
        is_shared: bool,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        self.active(i);
        self.threads[i].request = None;
        let attempt = self.threads[i].attempt.take();
        let lock = self.lock(record.object)?;
        let waits = attempt.is_none();
        self.doubt(|doubts| doubts.acquire(i, record.object, is_shared, waits));
        if !self.locks.acquire(record.object, i, is_shared) {
            let name = self.names.locks.get(lock).to_owned();
            self.unordered(&format!("a release of {name} was not seen"));
            return Ok(());
        }
        for op in
            attempt.into_iter().chain([if is_shared { Op::AcquireShared } else { Op::Acquire }])
        {
            let event = self.event(i, op, record)?.with_target(lock.0);
            self.push(i, event, batch);
        }
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        i: usize,
        is_shared: bool,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        // The code of a handler may leave a monitor twice, and the second time fails.
        if self.locks.release(record.object, i, is_shared) {
            self.doubt(|doubts| doubts.release(i, record.object));
            let lock = self.lock(record.object)?;
            let op = if is_shared { Op::ReleaseShared } else { Op::Release };
            let event = self.event(i, op, record)?.with_target(lock.0);
            self.push(i, event, batch);
        }
        Ok(())
    }

    pub(super) fn wait(
        &mut self,
        i: usize,
        is_begin: bool,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        let lock = self.lock(record.value)?;
        let condition = self.condition(record.object)?;
        let op = if is_begin { Op::WaitBegin } else { Op::WaitEnd };
        self.doubt(|doubts| doubts.wait(i, record.value, is_begin));
        let is_possible = match is_begin {
            true => self.locks.wait(record.value, i),
            false => match self.locks.wake(record.value, i) {
                None => false,
                Some(true) => true,
                Some(false) => {
                    let name = self.names.locks.get(lock).to_owned();
                    self.unordered(&format!("a release of {name} was not seen"));
                    false
                }
            },
        };
        if is_possible {
            let event = self.event(i, op, record)?.with_target(condition.0);
            self.push(i, event.with_wait_lock(Some(lock)), batch);
        }
        Ok(())
    }

    pub(super) fn busy(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let lock = self.lock(record.object)?;
        let is_shared = record.value != 0;
        if self.locks.is_busy(record.object, i, is_shared) {
            let op = if is_shared { Op::BusyShared } else { Op::Busy };
            let event = self.event(i, op, record)?.with_target(lock.0);
            self.push(i, event, batch);
        } else {
            let name = self.names.locks.get(lock).to_owned();
            self.unordered(&format!("an attempt to take {name} failed, and why was not seen"));
        }
        Ok(())
    }

    pub(super) fn fork(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let Some(child) = self.merge.thread_of(record.object) else { return Ok(()) };
        if self.threads[child].is_known || child == i {
            return Ok(());
        }
        if self.names.threads.get(self.threads[i].id) == LAST_THREAD {
            for ended in 0..self.threads.len() {
                if self.threads[ended].has_ended && ended != i {
                    let other = self.threads[ended].id;
                    self.doubt(|doubts| doubts.certain.join(i, ended));
                    let join = self.event(i, Op::Join, record)?.with_target(other.0);
                    self.push(i, join, batch);
                }
            }
        }
        self.threads[child].is_known = true;
        self.doubt(|doubts| doubts.certain.fork(i, child));
        let other = self.threads[child].id;
        let event = self.event(i, Op::Fork, record)?.with_target(other.0);
        self.push(i, event, batch);
        Ok(())
    }

    pub(super) fn join(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        if let Some(child) = self.merge.thread_of(record.object)
            && child != i
        {
            self.doubt(|doubts| doubts.join(i, child));
            let other = self.threads[child].id;
            let event = self.event(i, Op::Join, record)?.with_target(other.0);
            self.push(i, event, batch);
        }
        Ok(())
    }
}
