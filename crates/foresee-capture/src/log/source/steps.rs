//! Synchronisation as events.

use foresee_rt::format::{Tag, block, how, order};
use foresee_trace::{Event, HEAP_FREE, Op, ThreadId, Value};

use super::{Barrier, KEPT_BY_LIBC, Lock, LogSource, Out, Result, too_many};
use crate::log::names::{Block, Names, Pc};
use crate::log::records::Record;
use crate::log::semaphores::Kind;

impl<N: Names> LogSource<'_, N> {
    /// What a thread asks for and is not given before the log ends.
    pub(super) fn request(
        &mut self,
        record: &Record<'_>,
        tag: Tag,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let who = self.thread(record.thread)?;
        let node = self.calls.node(record.thread);
        (out.owner, out.stack) = (Some(who), (who, self.stack(node)?));
        let loc = self.location(self.log.place(record.pc))?;
        let (op, target) = match tag {
            Tag::Request => {
                let shared = record.value & how::SHARED != 0;
                let op = if shared { Op::RequestShared } else { Op::Request };
                (op, self.lock(record.address)?.0)
            }
            Tag::RequestEnd => (Op::Await, self.thread(record.value as u32)?.0),
            Tag::RequestSem if self.semaphore(record.address) == Kind::Lock => {
                (Op::Request, self.lock(record.address)?.0)
            }
            Tag::RequestSem => (Op::Block, self.object(record.address, "", "")?.0),
            _ => return Ok(()),
        };
        self.blocks(record.thread, out)?;
        out.put(Event::new(who, op).with_loc(loc).with_target(target), &[]);
        Ok(())
    }

    /// The thread blocks for the rest of the log. It has no event after its request, so what a read may have to come after
    /// is marked before.
    pub(super) fn blocks(&mut self, thread: u32, out: &mut Out<'_>) -> Result<()> {
        if self.plan().is_some_and(|plan| !plan.is_empty()) {
            self.leave_mark(thread, out)?;
        }
        self.blocked.insert(thread);
        Ok(())
    }

    pub(super) fn sync(
        &mut self,
        record: &Record<'_>,
        tag: Tag,
        who: ThreadId,
        pc: Pc,
        place: u32,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let (me, address, value) = (record.thread, record.address, record.value);
        let loc = self.location(pc)?;
        let event = |op: Op| Event::new(who, op).with_loc(loc);
        if self.log.semaphores.leaves_out(tag, address, value) {
            return Ok(());
        }
        let tag = self.as_lock(tag, address);
        if self.log.semaphores.has_waits() {
            self.note_waits(me, tag, address, value);
        }
        if self.asks_for_certain_order() {
            self.certain.with_threads = self.log.is_conservative;
            self.certain.sync(me, tag, address, value);
        }
        match tag {
            Tag::ThreadBegin => {
                self.reuse(address, value);
                self.memory.renew(address, value);
                self.stacks.add(me, address, value);
            }
            Tag::Fork => {
                self.first_start.get_or_insert(self.history.now());
                self.stacks.learnt(value as u32, address);
                let other = self.thread(value as u32)?;
                out.put(event(Op::Fork).with_target(other.0), &[]);
            }
            Tag::Join => {
                self.history.joined(value as u32);
                let other = self.thread(value as u32)?;
                out.put(event(Op::Join).with_target(other.0), &[]);
            }
            Tag::LockInit => {
                self.locks.remove(&address);
            }
            Tag::CondInit => {
                self.conds.remove(&address);
            }
            Tag::Acquire | Tag::AcquireShared => {
                let shared = tag == Tag::AcquireShared;
                // The last owner died with the lock in its hands: it is as good as a new one.
                if value & how::OWNER_DIED != 0 {
                    self.locks.remove(&address);
                }
                let id = self.lock(address)?;
                if value & how::TRIED != 0 {
                    out.put(event(Op::Try).with_target(id.0), &[]);
                } else if value & how::TIMED != 0 {
                    out.put(event(Op::TryFor).with_target(id.0), &[]);
                }
                let op = if shared { Op::AcquireShared } else { Op::Acquire };
                out.put(event(op).with_target(id.0), &[]);
                let lock = self.locks.entry(address).or_default();
                lock.is_robust = value & how::ROBUST != 0;
                if !shared {
                    lock.owner = Some((me, lock.owner.map_or(0, |o| o.1) + 1));
                } else if let Some(reader) = lock.readers.iter_mut().find(|r| r.0 == me) {
                    reader.1 += 1;
                } else {
                    lock.readers.push((me, 1));
                }
            }
            Tag::Release => {
                let id = self.lock(address)?;
                let lock = self.locks.entry(address).or_default();
                let op = if let Some((owner, depth)) = lock.owner.filter(|o| o.0 == me) {
                    lock.owner = (depth > 1).then_some((owner, depth - 1));
                    Op::Release
                } else if let Some(i) = lock.readers.iter().position(|r| r.0 == me) {
                    lock.readers[i].1 -= 1;
                    if lock.readers[i].1 == 0 {
                        lock.readers.swap_remove(i);
                    }
                    Op::ReleaseShared
                } else {
                    // Not known to be held: it was acquired before recording began, or this failed.
                    return Ok(());
                };
                out.put(event(op).with_target(id.0), &[]);
            }
            Tag::TryFailed => {
                let id = self.lock(address)?;
                let shared = value & how::SHARED != 0;
                let lock = self.locks.entry(address).or_default();
                let is_owned = lock.owner.is_some_and(|owner| owner.0 != me);
                let is_read = lock.readers.iter().any(|reader| reader.0 != me);
                // A thread that holds the lock itself would fail in every order; if the lock was
                // acquired before recording began, or the attempt failed spuriously, no known
                // thread holds it.
                if is_owned || !shared && is_read {
                    let op = if shared { Op::BusyShared } else { Op::Busy };
                    out.put(event(op).with_target(id.0), &[]);
                } else if lock.owner.is_none() {
                    self.stats.inexact += 1;
                }
            }
            Tag::WaitBegin => {
                self.history.wait(me);
                if self.plan().is_some_and(|plan| plan.marks_wait(me, place)) {
                    self.leave_mark(me, out)?;
                }
                // Locks are aligned; the lowest bit marks waits with a timeout.
                let (value, is_timed) = (value & !1, value & 1 != 0);
                let (cond, id) = (self.cond(address)?, self.lock(value)?);
                let lock = self.locks.entry(value).or_default();
                let depth = lock.owner.filter(|o| o.0 == me).map_or(0, |o| o.1);
                if depth > 0 {
                    lock.owner = None;
                }
                let interrupted = self.log.interrupted.contains(&(me, place))
                    || !self
                        .log
                        .delayed_from(self.log.delayed_at(me, place + 1), me, place + 1)
                        .is_empty();
                let thread = self.threads.get(me);
                (thread.interrupted, thread.depth) = (interrupted, depth);
                if interrupted {
                    for _ in 0..depth {
                        out.put(event(Op::Release).with_target(id.0), &[]);
                    }
                } else {
                    if is_timed {
                        out.put(event(Op::TryFor).with_target(id.0), &[]);
                    }
                    let wait = event(Op::WaitBegin).with_target(cond.0);
                    out.put(wait.with_wait_lock((depth > 0).then_some(id)), &[]);
                }
            }
            Tag::WaitEnd => {
                self.history.woken(me);
                let value = value & !1;
                let (cond, id) = (self.cond(address)?, self.lock(value)?);
                let thread = self.threads.get(me);
                let (interrupted, depth) = (thread.interrupted, thread.depth);
                if depth > 0 {
                    self.locks.entry(value).or_default().owner = Some((me, depth));
                }
                if interrupted {
                    for _ in 0..depth {
                        out.put(event(Op::Acquire).with_target(id.0), &[]);
                    }
                    out.put(event(Op::Wait).with_target(cond.0), &[]);
                } else {
                    let wait = event(Op::WaitEnd).with_target(cond.0);
                    out.put(wait.with_wait_lock((depth > 0).then_some(id)), &[]);
                }
            }
            Tag::Notify | Tag::NotifyAll => {
                let cond = self.cond(address)?;
                let op = if tag == Tag::Notify { Op::Notify } else { Op::NotifyAll };
                out.put(event(op).with_target(cond.0), &[]);
            }
            Tag::SemInit | Tag::SemPost | Tag::SemWait | Tag::SemFailed | Tag::SemValue => {
                self.use_semaphore(tag, me, address, value, event, out)?
            }
            Tag::BarrierInit => {
                self.barriers.insert(address, Barrier { size: value, ..Barrier::default() });
            }
            Tag::BarrierArrive | Tag::BarrierLeave => {
                let arrives = tag == Tag::BarrierArrive;
                let barrier = self.barriers.entry(address).or_default();
                let round = if arrives {
                    let round = barrier.arrivals.checked_div(barrier.size).unwrap_or(0);
                    barrier.arrivals += 1;
                    barrier.inside.insert(me, round);
                    round
                } else {
                    barrier.inside.get(&me).copied().unwrap_or(0)
                };
                let var = match barrier.rounds.get(&round) {
                    Some(&var) => var,
                    None => {
                        let behind = format!(".round{}", round + 1);
                        let var = self.object_var(address, "", &behind)?;
                        self.barriers.entry(address).or_default().rounds.insert(round, var);
                        var
                    }
                };
                let op = if arrives { Op::Rmw } else { Op::VolatileRead };
                out.put(event(op).with_target(var.0), &[]);
                if arrives && self.log.unanswered.contains(&record.at) {
                    self.blocks(me, out)?;
                    out.put(event(Op::Block).with_target(var.0), &[]);
                }
            }
            Tag::OnceDone | Tag::OnceSeen => {
                let var = self.object(address, "", "")?;
                let op = if tag == Tag::OnceDone { Op::VolatileWrite } else { Op::VolatileRead };
                out.put(event(op).with_target(var.0), &[Value::Int(1)]);
            }
            Tag::Send | Tag::Receive | Tag::Look if self.log.channels.is_shared(address) => {
                let var = self.channel(address, value)?;
                let op = if tag == Tag::Look { Op::VolatileRead } else { Op::Rmw };
                out.put(event(op).with_target(var.0), &[]);
            }
            Tag::Send | Tag::Receive | Tag::Look => {}
            Tag::Alloc => {
                let size = block::size(value);
                self.reuse(address, size);
                self.forget(address, size);
                self.memory.renew(address, block::room(size));
                let number = self.sites.entry(self.naming.site(pc)).or_insert(0);
                let since = self.history.now();
                let is_zeroed = block::is_zeroed(value);
                let block =
                    Block { start: address, size, since, site: pc, number: *number, is_zeroed };
                *number += 1;
                self.blocks.insert(address, block);
            }
            Tag::Free => {
                // Whether it could be used after that can only be asked of what is used at some time.
                let block = self.blocks.get(&address).copied();
                let is_used = match self.log.is_sieved {
                    true => self.log.quiet.frees_used(record.at),
                    false => self.memory.has_variables(address, value),
                };
                if let Some(block) = block.filter(|_| is_used) {
                    self.text.clear();
                    self.naming.block(&block, &mut self.text);
                    let name = self.names.syms.intern(&self.text).map_err(too_many)?;
                    let sym = self.names.syms.intern(HEAP_FREE).map_err(too_many)?;
                    out.put(event(Op::Event).with_target(sym.0), &[Value::Str(name)]);
                    if value <= KEPT_BY_LIBC {
                        // Until it is allocated again, any access to it is a use after free.
                        self.memory.free(address, value);
                        self.forget_sync(address, value);
                        return Ok(());
                    }
                }
                self.forget(address, value);
            }
            Tag::Fence => {
                let op = match value as u8 {
                    order::ACQUIRE => Op::FenceAcquire,
                    order::RELEASE => Op::FenceRelease,
                    _ => Op::Fence,
                };
                out.put(event(op), &[]);
            }
            Tag::Enter | Tag::Exit => {
                self.text.clear();
                self.naming.function(pc, &mut self.text);
                let sym = self.names.syms.intern(&self.text).map_err(too_many)?;
                let op = if tag == Tag::Enter { Op::Enter } else { Op::Exit };
                out.put(event(op).with_target(sym.0), &[]);
            }
            Tag::Event => {
                let count = record.bytes.first().map_or(0, |&n| usize::from(n));
                let (values, name) = record
                    .bytes
                    .get(1..)
                    .unwrap_or(&[])
                    .split_at_checked(8 * count)
                    .unwrap_or_default();
                let sym = self.symbol(name)?;
                let values: Vec<Value> = values
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|v| Value::Int(i64::from_le_bytes(*v)))
                    .collect();
                out.put(event(Op::Event).with_target(sym.0), &values);
            }
            Tag::RegionBegin | Tag::RegionEnd => {
                let sym = self.symbol(record.bytes)?;
                let op = if tag == Tag::RegionBegin { Op::Begin } else { Op::End };
                out.put(event(op).with_target(sym.0), &[]);
            }
            Tag::ThreadEnd => {
                // The end of a thread is recorded only if it holds what others may want, or if a
                // waiting thread could have been woken by it.
                let keeps = |lock: &Lock| {
                    let is_reader = lock.readers.iter().any(|reader| reader.0 == me);
                    !lock.is_robust && (lock.owner.is_some_and(|o| o.0 == me) || is_reader)
                };
                if self.log.leaves_waiting() || self.locks.values().any(keeps) {
                    out.put(event(Op::ThreadEnd), &[]);
                }
            }
            Tag::Turn
            | Tag::Request
            | Tag::RequestEnd
            | Tag::RequestSem
            | Tag::Withdrawn
            | Tag::Task
            | Tag::Stack
            | Tag::Call
            | Tag::CallFrom
            | Tag::Return
            | Tag::StackUnknown
            | Tag::ThreadName
            | Tag::Switch
            | Tag::Module
            | Tag::Delayed
            | Tag::Took
            | Tag::Instrumented
            | Tag::Data
            | Tag::Bytes => {}
        }
        Ok(())
    }
}
