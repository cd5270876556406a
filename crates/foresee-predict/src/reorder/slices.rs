//! Slices: which events are kept, and in which stretch of the reordering each of them is.
//!
//! The reordering is cut into stretches, the slices. An event in slice `k` comes after all events
//! of slices before `k`; inside a slice the order of the file is kept. So a reordering is one
//! number per event, and the search only ever *lowers* numbers: an event that is needed comes no
//! later than the one that needs it.
//!
//! Each change is recorded, so that it can be undone.

use std::collections::VecDeque;

use foresee_causality::judge::Reads;

use super::goal::Sight;
use super::requirements::Requirements;
use crate::needs::{Kind, NONE};

/// The number of an event that is not kept.
pub(crate) const LEFT_OUT: u8 = 0x7f;
/// Set for reads that count: something after them is kept, so they must see what they saw.
const ACTIVE: u8 = 0x80;

/// Something is needed that must not happen: an event that is to come next, or one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction {
    /// The event that is to come next in its thread.
    pub(crate) limit: u32,
}

/// The slices of all events, with the data to change them and to undo changes.
#[derive(Debug)]
pub(crate) struct Slices {
    /// The slice of each event, and whether it is an active read.
    numbers: Vec<u8>,
    /// The trail of changes: each event with its old value.
    trail: Vec<(u32, u8)>,
    /// For each object the kept events that use it, in the order in which they came in.
    kept: Vec<Vec<u32>>,
    /// The objects whose events changed since they were last examined, in the order of their
    /// changes: the first are nearest to the goal.
    dirty: VecDeque<u32>,
    is_dirty: Vec<bool>,
    todo: Vec<(u32, u8)>,
    /// Everything before this event happens as observed.
    pub(crate) anchor: u32,
    /// For each thread the event that it must not reach.
    limits: Vec<u32>,
    reads: Reads,
    /// What active reads must see.
    pub(crate) sight: Sight,
    /// The work done since this was last set to zero.
    pub(crate) work: u64,
    /// The limit of this work; requirements beyond it are not followed.
    pub(crate) until: u64,
}

impl Slices {
    pub(crate) fn new(requirements: &Requirements, reads: Reads) -> Slices {
        let objects = requirements.object_count();
        Slices {
            numbers: vec![LEFT_OUT; requirements.len()],
            trail: Vec::new(),
            kept: vec![Vec::new(); objects],
            dirty: VecDeque::new(),
            is_dirty: vec![false; objects],
            todo: Vec::new(),
            anchor: 0,
            limits: vec![NONE; requirements.thread_count()],
            reads,
            sight: Sight::Writers,
            work: 0,
            until: u64::MAX,
        }
    }

    /// The slice of an event; zero for those before the anchor.
    #[inline]
    pub(crate) fn slice(&self, event: u32) -> u8 {
        if event < self.anchor { 0 } else { self.numbers[event as usize] & !ACTIVE }
    }

    /// The slice of a release that may not exist.
    #[inline]
    pub(crate) fn end_of(&self, release: u32) -> u8 {
        if release == NONE { LEFT_OUT } else { self.slice(release) }
    }

    #[inline]
    pub(crate) fn is_kept(&self, event: u32) -> bool {
        self.slice(event) != LEFT_OUT
    }

    #[inline]
    pub(crate) fn is_active(&self, event: u32) -> bool {
        self.numbers[event as usize] & ACTIVE != 0
    }

    /// The kept events that use an object, in no order.
    pub(crate) fn kept_of(&self, object: u32) -> &[u32] {
        &self.kept[object as usize]
    }

    /// All events kept beyond the anchor, in no order.
    pub(crate) fn kept(&self) -> impl Iterator<Item = u32> + '_ {
        let entered = |&(event, before): &(u32, u8)| {
            // An event is added once, but may be activated before.
            (before & !ACTIVE == LEFT_OUT && self.is_kept(event)).then_some(event)
        };
        let mut all: Vec<u32> = self.trail.iter().filter_map(entered).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// Whether a thread must stop before this event.
    #[inline]
    pub(crate) fn is_future(&self, event: u32, requirements: &Requirements) -> bool {
        event >= self.limits[requirements.thread(event) as usize]
    }

    /// Makes a thread stop just before an event.
    pub(crate) fn limit(&mut self, event: u32, requirements: &Requirements) {
        let limit = &mut self.limits[requirements.thread(event) as usize];
        *limit = event.min(*limit);
    }

    pub(crate) fn clear_limit(&mut self, event: u32, requirements: &Requirements) {
        self.limits[requirements.thread(event) as usize] = NONE;
    }

    /// Makes a read active.
    pub(crate) fn activate(&mut self, read: u32, requirements: &Requirements) {
        self.mark_active(read, requirements);
    }

    /// Keeps an event, at the latest in this slice, and all it needs.
    pub(crate) fn lower(
        &mut self,
        event: u32,
        slice: u8,
        requirements: &Requirements,
    ) -> Result<(), Contradiction> {
        self.todo.push((event, slice));
        self.settle(requirements)
    }

    /// Keeps everything that precedes `event`, so that it can come next.
    pub(crate) fn bring_before(
        &mut self,
        event: u32,
        slice: u8,
        requirements: &Requirements,
    ) -> Result<(), Contradiction> {
        let previous = requirements.previous(event);
        if previous == NONE {
            return Ok(());
        }
        if requirements.has_previous(event) {
            self.mark_active(previous, requirements);
        }
        self.todo.push((previous, slice));
        self.settle(requirements)
    }

    #[inline]
    fn mark_active(&mut self, read: u32, requirements: &Requirements) {
        if read < self.anchor
            || requirements.kind(read) != Kind::Read
            || self.may_see_anything(read, requirements)
        {
            return;
        }
        let number = self.numbers[read as usize];
        if number & ACTIVE != 0 {
            return;
        }
        self.trail.push((read, number));
        self.numbers[read as usize] = number | ACTIVE;
        if number != LEFT_OUT {
            let writer = self.needed_by(read, requirements);
            if writer != NONE {
                self.todo.push((writer, number));
            }
            self.touch(requirements.object(read));
        }
    }

    /// Whether a read never becomes active, whatever comes after it.
    #[inline]
    fn may_see_anything(&self, read: u32, requirements: &Requirements) -> bool {
        match self.sight {
            Sight::Writers | Sight::Values => false,
            Sight::Updates => requirements.is_update(read),
            Sight::Anything => true,
        }
    }

    /// The write that must come before an active read.
    #[inline]
    fn needed_by(&self, read: u32, requirements: &Requirements) -> u32 {
        match self.sight {
            Sight::Writers | Sight::Updates => requirements.partner(read),
            Sight::Values | Sight::Anything => requirements.need(read),
        }
    }

    #[inline]
    fn touch(&mut self, object: u32) {
        if object != NONE && !std::mem::replace(&mut self.is_dirty[object as usize], true) {
            self.dirty.push_back(object);
        }
    }

    fn settle(&mut self, requirements: &Requirements) -> Result<(), Contradiction> {
        while let Some((event, slice)) = self.todo.pop() {
            if event < self.anchor {
                continue;
            }
            let number = self.numbers[event as usize];
            if number & !ACTIVE <= slice {
                continue;
            }
            if self.is_future(event, requirements) {
                self.todo.clear();
                let limit = self.limits[requirements.thread(event) as usize];
                return Err(Contradiction { limit });
            }
            if self.work >= self.until {
                self.todo.clear();
                return Ok(());
            }
            self.work += 1;
            let kind = requirements.kind(event);
            let mut active = number & ACTIVE;
            let counts = kind == Kind::Rmw || kind == Kind::Read && self.reads == Reads::Strict;
            if counts && !self.may_see_anything(event, requirements) {
                active = ACTIVE;
            }
            self.trail.push((event, number));
            self.numbers[event as usize] = active | slice;
            let object = requirements.object(event);
            if object != NONE {
                if number & !ACTIVE == LEFT_OUT {
                    self.kept[object as usize].push(event);
                }
                self.touch(object);
            }
            let previous = requirements.previous(event);
            if previous != NONE && previous >= self.anchor {
                if requirements.has_previous(event) {
                    self.mark_active(previous, requirements);
                }
                self.todo.push((previous, slice));
            }
            match kind {
                Kind::Read | Kind::Rmw => {
                    let writer = self.needed_by(event, requirements);
                    if active != 0 && writer != NONE {
                        self.todo.push((writer, slice));
                    }
                }
                Kind::Join => {
                    let last = requirements.partner(event);
                    if last != NONE {
                        self.mark_active(last, requirements);
                        self.todo.push((last, slice));
                    }
                }
                Kind::Wait => {
                    let notification = requirements.partner(event);
                    if notification != NONE {
                        self.todo.push((notification, slice));
                    }
                }
                Kind::WaitEnd => {
                    if let Some((begin, notification)) = requirements.condition(event) {
                        self.todo.push((begin, self.slice(notification).min(slice)));
                        self.todo.push((notification, slice));
                    }
                }
                Kind::Busy => {
                    let acquire = requirements.partner(event);
                    if acquire != NONE {
                        self.todo.push((acquire, slice));
                    }
                    if let Some((_, release)) = requirements.condition(event) {
                        self.todo.push((event, self.slice(release).min(slice)));
                    }
                }
                Kind::Notify | Kind::Release | Kind::ReleaseShared => {
                    // Waits that end must have begun, and try-locks that fail must have failed;
                    // others do not matter here.
                    for &conditional in requirements.conditional(event) {
                        if let Some((before, _)) = requirements.condition(conditional)
                            && self.is_kept(conditional)
                        {
                            self.todo.push((before, slice));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The current length of the trail.
    pub(crate) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Undoes everything since the mark.
    pub(crate) fn undo(&mut self, mark: usize, requirements: &Requirements) {
        self.todo.clear();
        while self.trail.len() > mark {
            let Some((event, number)) = self.trail.pop() else { return };
            let now = std::mem::replace(&mut self.numbers[event as usize], number);
            let came_in = number & !ACTIVE == LEFT_OUT && now & !ACTIVE != LEFT_OUT;
            let object = requirements.object(event);
            if came_in && object != NONE {
                self.kept[object as usize].pop();
            }
        }
    }

    /// Removes and returns an object whose events changed, if there is one.
    pub(crate) fn take_dirty(&mut self) -> Option<u32> {
        let object = self.dirty.pop_front()?;
        self.is_dirty[object as usize] = false;
        Some(object)
    }

    /// The objects still to be examined.
    pub(crate) fn dirty(&self) -> impl Iterator<Item = u32> + '_ {
        self.dirty.iter().copied()
    }

    /// Replaces the objects to be examined.
    pub(crate) fn set_dirty(&mut self, objects: &[u32]) {
        for object in self.dirty.drain(..) {
            self.is_dirty[object as usize] = false;
        }
        objects.iter().for_each(|&object| self.touch(object));
    }
}
