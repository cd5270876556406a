//! Records that yield no event: memory that nobody shares, reads that repeat each other, and what an earlier pass has skipped.

use std::mem::replace;

use foresee_rt::format::{Access, order};

use super::{LeftOut, LogSource, MOST_SKIPS, Out, REPEATED, Result, SameRead};
use crate::log::memory::{Granule, GranuleId};
use crate::log::names::Names;
use crate::log::records::{LEAST_SKIPPED, Record, Records, Seen, Simple, Skip, What};

impl<N: Names> LogSource<'_, N> {
    /// Whether the eight bytes that contain an address can be left out.
    #[inline]
    pub(super) fn is_quiet(&mut self, address: u64) -> bool {
        if !self.is_brief {
            return false;
        }
        self.pages.has(&self.log.quiet, address)
            && (self.wanted.is_empty() || !self.wanted.contains(&(address & !7)))
    }

    /// Passes over the simple accesses that come next, as long as they can be left out because of their memory alone. It does
    /// with them what [`LogSource::leaves_out`] and [`LogSource::passed`] would do with each.
    pub(super) fn pass_quiet(&mut self, records: &mut Records) {
        if !self.is_brief || !self.wanted.is_empty() {
            return;
        }
        let mut passed: Option<Skip> = None;
        records.simple(|one, around| {
            let &Simple { how, address, value, .. } = one;
            let is_in_word = (address & 7) + u64::from(how.size()) <= 8;
            if !is_in_word || !self.pages.has(&self.log.quiet, address) {
                return Seen::Refused;
            }
            let is_counted = match &mut passed {
                Some(skip) => skip.takes(one),
                None => {
                    passed = Some(Skip::of_simple(one, around));
                    true
                }
            };
            if !is_counted {
                return Seen::Refused;
            }
            self.stacks.learnt(around.thread, address);
            if how.shows() {
                self.stacks.learnt(around.thread, value);
            }
            Seen::More
        });
        let Some(mut skip) = passed else { return };
        records.ends(&mut skip);
        if !self.passing.as_mut().is_some_and(|passing| passing.joins(&skip)) {
            self.pass();
            self.passing = Some(skip);
        }
    }

    /// Whether all bytes of an access can be left out. If so, it only shows where other memory lies.
    #[inline]
    pub(super) fn passes_over(&mut self, record: &Record<'_>, access: Access, size: usize) -> bool {
        let address = record.address;
        let last = address.saturating_add(size as u64).wrapping_sub(1);
        let is_left_out = match (address ^ last) < 8 {
            true => self.is_quiet(address),
            false => {
                size > 0 && (address & !7..=last).step_by(8).all(|granule| self.is_quiet(granule))
            }
        };
        if !is_left_out {
            return false;
        }
        self.is_shown(record, access, size);
        true
    }

    /// What an access that is left out shows to its thread: where other memory lies.
    #[inline]
    pub(super) fn is_shown(&mut self, record: &Record<'_>, access: Access, size: usize) {
        let Record { thread: me, address, .. } = *record;
        self.stacks.learnt(me, address);
        if !access.reads() {
            return;
        }
        let seen = if access == Access::Rmw { record.old } else { record.value };
        if record.bytes.is_empty() {
            if size == 8 && address.is_multiple_of(8) {
                self.stacks.learnt(me, seen);
            }
        } else {
            let skipped = (address.wrapping_neg() & 7) as usize;
            let words = record.bytes.get(skipped..).unwrap_or(&[]).as_chunks::<8>().0;
            words.iter().for_each(|word| self.stacks.learnt(me, u64::from_le_bytes(*word)));
        }
    }

    /// Whether a record yields no event, like most of a log.
    #[inline]
    pub(super) fn leaves_out(&mut self, record: &Record<'_>) -> LeftOut {
        match record.what {
            _ if !self.is_brief => LeftOut::No,
            What::Access(access, size) if self.passes_over(record, access, size) => {
                LeftOut::Private
            }
            What::Access(access, size) => match self.buffer_read_by(record, access, size) {
                Some(buffer) => {
                    self.repeated.1 = 0;
                    match self.rereads.repeats(record.thread, buffer, record.pc) {
                        true => {
                            self.is_shown(record, access, size);
                            LeftOut::Reread
                        }
                        false => LeftOut::No,
                    }
                }
                None => {
                    self.rereads.interrupt();
                    if self.repeats(record, access) { LeftOut::Repeated } else { LeftOut::No }
                }
            },
            What::Sync(_) => {
                self.repeated.1 = 0;
                self.rereads.interrupt();
                LeftOut::No
            }
            // These were left out before, and change nothing.
            What::Skipped(_) => LeftOut::Private,
        }
    }

    /// The buffer that a record reads a part of, if it does nothing else.
    pub(super) fn buffer_read_by(
        &mut self,
        record: &Record<'_>,
        access: Access,
        size: usize,
    ) -> Option<GranuleId> {
        let &Record { address, inexact, .. } = record;
        let is_plain = access == Access::Read && !inexact && record.bytes.is_empty();
        let id = self.memory.known(address).filter(|_| is_plain)?;
        let &mut Granule { start, width, is_freed, .. } = self.memory.at(id);
        let is_inside = address - start + size as u64 <= u64::from(width);
        (width > 8 && is_inside && !is_freed).then_some(id)
    }

    /// Whether a thread reads the same for at least the third time, without another event in between, as in a loop that
    /// waits. Of such reads the first two and the last are kept: what could happen around the others could happen around
    /// the first two, and nothing that the others rule out can come before the last.
    pub(super) fn repeats(&mut self, record: &Record<'_>, access: Access) -> bool {
        let &Record { thread, what, pc, address, value, inexact, .. } = record;
        let is_read = matches!(access, Access::Read | Access::AtomicRead | Access::RelaxedRead);
        if !is_read || inexact || !record.bytes.is_empty() || self.wanted.contains(&(address & !7))
        {
            self.repeated.1 = 0;
            return false;
        }
        let stack = self.calls.node(thread);
        let read = Some(SameRead { thread, what, pc, address, value, stack });
        let times = if self.repeated.0 == read { self.repeated.1 } else { 0 };
        self.repeated = (read, (times + 1).min(REPEATED));
        times == REPEATED
    }

    /// Yields the event of a read that was left out, once it is known to be the last of its kind.
    pub(super) fn keep_last(&mut self, out: &mut Out<'_>) -> Result<()> {
        let Some((read, clock)) = self.last.take() else { return Ok(()) };
        let SameRead { thread, what, pc, address, value, stack } = read;
        let What::Access(access, size) = what else { return Ok(()) };
        let (who, loc) = (self.thread(thread)?, self.location_at(pc)?);
        let bytes = &value.to_le_bytes()[..size.min(8)];
        self.stats.checked_reads -= 1;
        // It is not the step of the record that is about to be read.
        let owner = out.owner.take();
        let by = (who, thread, clock);
        let before = replace(&mut out.stack, (who, self.stack(stack)?));
        self.access(by, (access, order::FULL), address, bytes, &[], loc, out)?;
        (out.owner, out.stack) = (owner, before);
        Ok(())
    }

    /// The latest record yields no event.
    #[inline]
    pub(super) fn passed(&mut self, one: Skip, records: &Records) {
        if !self.passing.as_mut().is_some_and(|passing| records.continues(passing, &one)) {
            self.pass();
            records.ends(self.passing.insert(one));
        }
        if let (1.., Some(read), Some(passing)) = (one.repeated, self.repeated.0, &self.passing) {
            self.last = Some((read, self.history.now().saturating_add(passing.count)));
        }
    }

    /// The latest record is about the calls of a thread.
    pub(super) fn called(&mut self, one: Skip, records: &Records) {
        let node = self.calls.node(one.thread);
        if !self.passing.as_mut().is_some_and(|skip| records.passes_call(skip, one, node)) {
            self.pass();
        }
    }

    /// Counts the latest records that yielded no event.
    pub(super) fn pass(&mut self) {
        let Some(skip) = self.passing.take() else { return };
        self.count(&skip);
        self.advance(skip.thread, skip.count);
        if skip.count >= LEAST_SKIPPED && self.skips.len() < self.most / MOST_SKIPS {
            self.skips.push(skip);
        }
    }

    /// Records that yield no event.
    pub(super) fn count(&mut self, skip: &Skip) {
        self.stats.events += u64::from(skip.count);
        self.stats.checked_reads += u64::from(skip.reads);
        self.stats.inexact += u64::from(skip.inexact);
    }

    /// A thread takes this many steps without events.
    pub(super) fn advance(&mut self, thread: u32, count: u32) {
        if count == 0 {
            return;
        }
        self.history.steps(thread, count);
        self.threads.get(thread).place += count;
    }

    /// Records that yield no event, as an earlier pass has found.
    pub(super) fn skipped(&mut self, skip: &Skip, out: &mut Out<'_>) -> Result<()> {
        let &Skip { thread, count, repeated, stack, .. } = skip;
        self.count(skip);
        stack.into_iter().for_each(|node| self.calls.set(thread, node));
        self.come_before(thread, repeated, out)?;
        self.advance(thread, repeated);
        if let (1.., Some(read)) = (repeated, self.repeated.0) {
            self.last = Some((read, self.history.now()));
            self.keep_known(out)?;
        }
        self.come_before(thread, count - repeated, out)?;
        self.advance(thread, count - repeated);
        Ok(())
    }
}
