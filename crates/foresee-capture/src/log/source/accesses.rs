//! Accesses of memory as events.

use foresee_rt::format::{Access, order};
use foresee_trace::{Event, LocId, Op, ThreadId, VarId};

use super::{LogSource, Out, Result, Unseen};
use crate::log::certain::{Does, Unordered};
use crate::log::memory::{Cell, GranuleId, wide};
use crate::log::names::Names;

impl<N: Names> LogSource<'_, N> {
    /// An access of memory, as events of the variables it touches.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn access(
        &mut self,
        (who, me, now_is): (ThreadId, u32, u32),
        (access, order): (Access, u8),
        address: u64,
        bytes: &[u8],
        old: &[u8],
        loc: LocId,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let op = match access {
            Access::Read => Op::Read,
            Access::Write => Op::Write,
            Access::AtomicRead => Op::VolatileRead,
            Access::AtomicWrite => Op::VolatileWrite,
            Access::Rmw => Op::Rmw,
            Access::RelaxedRead => Op::VolatileRead,
            Access::RelaxedWrite => Op::VolatileWrite,
        };
        let remark = match (access, order) {
            (Access::RelaxedRead | Access::RelaxedWrite, _) | (Access::Rmw, order::RELAXED) => {
                Some(Op::Relaxed)
            }
            (Access::Rmw, order::ACQUIRE) => Some(Op::AcquireOnly),
            (Access::Rmw, order::RELEASE) => Some(Op::ReleaseOnly),
            _ => None,
        };
        if self.asks_for_certain_order() {
            let does = Does { reads: op.reads(), writes: op.writes(), is_atomic: op.is_atomic() };
            let unordered = self.certain.access(me, address, bytes.len() as u64, does);
            if let Some(Unordered { address, is_of_task }) = unordered {
                self.name_object(address, "", "");
                self.unordered[usize::from(is_of_task)].insert(self.text.clone());
            }
        }
        self.stacks.learnt(me, address);
        let end = address.saturating_add(bytes.len() as u64);
        let mut granule = address & !7;
        while granule < end {
            if self.is_quiet(granule) {
                granule += 8;
                continue;
            }
            let id = self.granule(granule);
            let width = self.memory.at(id).width;
            let (mask, now, before): (u8, u64, u64);
            let next;
            if width > 8 {
                // Writes of a wide cell cover it, and if reads do not, what they see is known to be what was written.
                let start = self.memory.at(id).start;
                next = start.saturating_add(u64::from(width));
                let (from, to) = (start.max(address), next.min(end));
                let seen = bytes.get((from - address) as usize..(to - address) as usize);
                let seen = seen.unwrap_or(&[]);
                let is_whole = seen.len() == width as usize;
                (mask, now, before) = if is_whole { (0xff, wide(seen), 0) } else { (0, 0, 0) };
                if op.reads() {
                    let skipped = (from.wrapping_neg() & 7) as usize;
                    let words = seen.get(skipped..).unwrap_or(&[]).as_chunks::<8>().0;
                    words.iter().for_each(|word| self.stacks.learnt(me, u64::from_le_bytes(*word)));
                }
            } else {
                let (from, to) = (granule.max(address), end.min(granule.saturating_add(8)));
                let (offset, size) = ((from - granule) as usize, (to - from) as usize);
                let skipped = (from - address) as usize;
                let number = |bytes: &[u8]| {
                    let mut number = [0; 8];
                    let bytes = bytes.get(skipped..).unwrap_or(&[]);
                    let bytes = &bytes[..bytes.len().min(size)];
                    number[offset..offset + bytes.len()].copy_from_slice(bytes);
                    u64::from_le_bytes(number)
                };
                next = granule.saturating_add(8);
                mask = (((1u32 << size) - 1) << offset) as u8;
                (now, before) = (number(bytes), number(old));
            }
            let seen = match op {
                Op::Read | Op::VolatileRead => Some(now),
                Op::Rmw => Some(before),
                _ => None,
            };
            if let Some(seen) = seen.filter(|_| mask == 0xff && width == 8) {
                self.stacks.learnt(me, seen);
            }
            let cells = self.memory.at(id).cells(if width > 8 { 0xff } else { mask });
            for cell in cells {
                let var = self.variable(granule, id, cell)?;
                let part = mask & (((1u32 << cell.size) - 1) << cell.offset) as u8;
                let event = Event::new(who, op).with_target(var.0).with_loc(loc);
                if self.memory.at(id).is_freed {
                    out.put(event, &[]);
                    continue;
                }
                if let Some(seen) = seen {
                    self.stats.checked_reads += 1;
                    let memory = self.memory.at(id);
                    let strange = memory.differs(cell, part, seen);
                    let (known, is_touched) = memory.last_known(cell);
                    memory.learn(part, seen);
                    if strange && !self.log.header.free_running {
                        let value = self.memory.at(id).value(cell);
                        let who = (who, me);
                        let unseen = Unseen { who, var, granule, cell, known, is_touched, loc };
                        self.unseen(unseen, value, out)?;
                    }
                }
                if op.writes() && !op.reads() && !self.memory.at(id).is_touched(cell) {
                    self.tell_initial(who, var, granule, (id, cell), out);
                }
                if op.writes() && self.memory.at(id).is_written_unseen(cell) {
                    self.keep_turn(who, var, out)?;
                }
                let memory = self.memory.at(id);
                let old = memory.value(cell);
                if op.writes() {
                    memory.learn(part, now);
                }
                memory.saw(cell, part, now_is);
                let new = memory.value(cell);
                if let Some(remark) = remark {
                    out.put(event.with_op(remark), &[]);
                }
                match (op, old, new) {
                    (Op::Rmw, Some(old), Some(new)) => out.put(event, &[old, new]),
                    (_, _, new) => out.put(event, new.as_slice()),
                }
            }
            granule = next;
        }
        Ok(())
    }

    /// A variable of the program is about to be written, and nobody has read it before. Its initial value is then a value of
    /// its own: a read that sees the same value later could have come before the write.
    ///
    /// Blocks of memory are zero at first only because it is recorded, so theirs is not told, unless the program asked for zeros.
    /// Nor is that of a module that was loaded when there were several threads: there was nothing to read before.
    pub(super) fn tell_initial(
        &mut self,
        who: ThreadId,
        var: VarId,
        granule: u64,
        (id, cell): (GranuleId, Cell),
        out: &mut Out<'_>,
    ) {
        let address = granule + u64::from(cell.offset);
        let until = self.first_start.unwrap_or(u32::MAX);
        let is_known = match self.block(address) {
            Some(block) => block.is_zeroed,
            None => self.data.holds(granule).is_some_and(|(_, since)| since <= until),
        };
        if !is_known || self.log.header.free_running {
            return;
        }
        // The initial values of a specification's variables are the first events.
        let is_asked = self.naming.scalar(address, None).is_some_and(|scalar| scalar.is_whole);
        let Some(value) = self.memory.at(id).value(cell).filter(|_| !is_asked) else { return };
        // It is no step of the thread.
        let owner = out.owner.take();
        out.put(Event::new(who, Op::Init).with_target(var.0), &[value]);
        out.owner = owner;
    }
}
