//! The order that is kept for the sake of writes that no hook saw.

use std::mem::replace;
use std::ops::Range;
use std::sync::Arc;

use foresee_trace::{Event, Op, ThreadId, Value, VarId};

use super::{LogSource, Mark, Out, Result, Unseen};
use crate::log::names::Names;
use crate::log::unseen::Hidden;

impl<N: Names> LogSource<'_, N> {
    /// One of a thread's next records, which yield no events, may have to come after what was known.
    pub(super) fn come_before(&mut self, thread: u32, count: u32, out: &mut Out<'_>) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let place = self.threads.get(thread).place;
        self.falls_due(thread, place..place + count);
        if !self.owing.is_empty() {
            let who = self.thread(thread)?;
            self.come_after_known(thread, who, out);
        }
        Ok(())
    }

    /// Called before the next records of a thread: one of them may have to come after what was known.
    #[inline]
    pub(super) fn falls_due(&mut self, thread: u32, places: Range<u32>) {
        let Some(prior) = &self.prior else { return };
        let due = &mut self.threads.get(thread).due;
        let next = *due.get_or_insert_with(|| prior.plan.next_after(thread, places.start));
        if next < places.end {
            *due = Some(prior.plan.next_after(thread, places.end));
            self.owing.insert(thread);
        }
    }

    /// The thread's next step comes after all accesses of memory that has an unseen write after
    /// them. A thread has no events between the two ends of its wait, so this is deferred until
    /// then.
    pub(super) fn come_after_known(&mut self, thread: u32, who: ThreadId, out: &mut Out<'_>) {
        if self.owing.is_empty() || self.history.is_waiting(thread) || !self.owing.remove(&thread) {
            return;
        }
        if let Some((var, value)) = self.mark {
            let event = Event::new(who, Op::VolatileRead).with_target(var.0);
            out.put(event, &[Value::Int(value)]);
        }
    }

    /// Memory was accessed that has an unseen write after this: from now on it counts as written,
    /// and every thread that may have written it comes after this.
    pub(super) fn keep_known(&mut self, out: &mut Out<'_>) -> Result<()> {
        let now = self.history.now();
        let Some(prior) = &self.prior else { return Ok(()) };
        if !prior.plan.has_known(now, self.next_known) {
            return Ok(());
        }
        let plan = Arc::clone(&prior.plan);
        let known = plan.known_at(now, &mut self.next_known);
        if known.is_empty() {
            return Ok(());
        }
        self.keep_last(out)?;
        for &(_, granule, offset) in known {
            let id = self.granule(granule);
            let Some(cell) = self.memory.at(id).cells(1 << offset).next() else { continue };
            let (var, external) = (self.variable(granule, id, cell)?, self.external()?);
            // If a specification needs its values, it keeps the value; otherwise the values must
            // not be considered equal.
            let address = granule + u64::from(offset);
            let block = self.block(address);
            let is_asked = self.naming.scalar(address, block.as_ref()).is_some_and(|s| s.is_whole);
            let held = self.memory.at(id).value(cell).filter(|_| is_asked);
            let values: Vec<Value> = held.into_iter().flat_map(|value| [value, value]).collect();
            self.keep_turn(external, var, out)?;
            out.put(Event::new(external, Op::Rmw).with_target(var.0), &values);
        }
        let (var, value) = match self.mark {
            Some((var, value)) => (var, value + 1),
            None => (self.new_mark("")?, 1),
        };
        self.mark = Some((var, value));
        let external = self.external()?;
        let event = Event::new(external, Op::VolatileWrite).with_target(var.0);
        out.put(event, &[Value::Int(value)]);
        Ok(())
    }

    /// A variable that represents an order that is kept because of unseen writes.
    pub(super) fn new_mark(&mut self, of: &str) -> Result<VarId> {
        self.text.clear();
        self.text.push_str("unseen");
        if !of.is_empty() {
            self.text.push_str(&format!("({of})"));
        }
        self.new_variable()
    }

    /// The write of a variable that follows keeps its turn among all writes of it.
    pub(super) fn keep_turn(
        &mut self,
        who: ThreadId,
        written: VarId,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let (var, value) = match self.turns.get(&written) {
            Some(&turn) => turn,
            None => {
                let name = self.names.vars.get(written).to_owned();
                (self.new_mark(&name)?, 0)
            }
        };
        self.turns.insert(written, (var, value + 1));
        let values = [Value::Int(value), Value::Int(value + 1)];
        out.put(Event::new(who, Op::Rmw).with_target(var.0), &values);
        Ok(())
    }

    /// The thread has performed all its steps so far: a thread that reads the mark comes after
    /// them.
    pub(super) fn leave_mark(&mut self, thread: u32, out: &mut Out<'_>) -> Result<()> {
        let who = self.thread(thread)?;
        let (var, value) = match self.marks.get(&thread) {
            Some(mark) => (mark.var, mark.value + 1),
            None => {
                let name = self.names.threads.get(who).to_owned();
                (self.new_mark(&name)?, 1)
            }
        };
        let mark = Mark { var, value, left: self.history.now(), is_read: false };
        self.marks.insert(thread, mark);
        out.put(Event::new(who, Op::VolatileWrite).with_target(var.0), &[Value::Int(value)]);
        Ok(())
    }

    /// Whether the latest mark of a thread covers all its steps. What the reader did before in its
    /// current step cannot have caused a write that the same step sees.
    pub(super) fn is_marked(&self, thread: u32, reader: u32) -> bool {
        self.marks.get(&thread).is_some_and(|mark| match thread == reader {
            true => mark.left == self.history.now(),
            false => mark.left > self.history.last_of(thread),
        })
    }

    /// A read is about to see what no captured step wrote; `value` is what it sees.
    pub(super) fn unseen(
        &mut self,
        seen: Unseen,
        value: Option<Value>,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let Unseen { who: (who, me), var, granule, cell, known, is_touched, loc } = seen;
        let read = self.history.now();
        let is_planned = self.prior.is_some();
        let candidates = self.plan().and_then(|plan| plan.read(read, granule, cell.offset));
        if let Some(candidates) = candidates.map(<[_]>::to_vec) {
            let external = self.external()?;
            // The reader itself may have written, too, and it is in no wait.
            let others = candidates.iter().filter(|candidate| !candidate.is_over);
            let others = others.map(|candidate| (candidate.thread, candidate.wait.is_some()));
            for (thread, is_waiting) in others.chain([(me, false)]) {
                let can_mark = !is_waiting && !self.blocked.contains(&thread);
                if can_mark && !self.is_marked(thread, me) {
                    self.leave_mark(thread, out)?;
                }
                let Some(mark) = self.marks.get_mut(&thread) else { continue };
                if !replace(&mut mark.is_read, true) {
                    let event = Event::new(external, Op::VolatileRead).with_target(mark.var.0);
                    out.put(event, &[Value::Int(mark.value)]);
                }
            }
            self.stats.external_writes += 1;
            self.keep_turn(external, var, out)?;
            out.put(Event::new(external, Op::Write).with_target(var.0), value.as_slice());
            return Ok(());
        }
        let address = granule + u64::from(cell.offset);
        // A filtered log may lack the access from which another thread learnt an address.
        let is_own_stack = !self.log.header.filtered && self.stacks.is_own(me, address);
        // What is left over on the stack is found by copies of structures with gaps in them.
        let is_left_over = self.stacks.is_left_over(me, address, known);
        let is_own = is_planned || is_left_over || is_own_stack || self.history.is_own(known, me);
        let writer = if is_own { who } else { self.external()? };
        match is_own {
            true => self.stats.own_writes += 1,
            false => self.stats.external_writes += 1,
        }
        let write = Event::new(writer, Op::Write).with_target(var.0);
        out.put(if is_own { write.with_loc(loc) } else { write }, value.as_slice());
        if !is_planned && !is_left_over {
            let candidates = match is_own {
                true => Vec::new(),
                false => self.history.candidates(known, me),
            };
            self.hidden.push(Hidden {
                var,
                granule,
                offset: cell.offset,
                known,
                is_touched: is_touched && known < read,
                read,
                reader: me,
                first: self.history.first(known, me),
                candidates,
                is_own,
            });
        }
        Ok(())
    }
}
