//! The order that slices stand for, and what is wrong with it.
//!
//! The kept events are emitted by slice and, inside a slice, by their place in the file. Two things
//! can be wrong: an active read finds another write than the one it saw, or a lock is taken while
//! another thread holds it. Either involves the events of one object only, so objects are examined
//! one by one, and only those whose events have changed.
//!
//! Each such conflict can be settled in two ways, each of which lowers one event. In terms of the
//! slice `s`:
//!
//! | conflict | in the order of the file | against it |
//! |---|---|---|
//! | write `v`, then `w` and its read `r` | `s(v) <= s(w)` | `s(r) < s(v)` |
//! | `w` and its read `r`, then write `v` | `s(r) <= s(v)` | `s(v) < s(w)` |
//! | sections `a1..r1`, then `a2..r2` | `s(r1) <= s(a2)` | `s(r2) < s(a1)` |
//!
//! A read that may see any write of its value and finds another one `v` has more ways out: it comes
//! before `v`, or one of the writes of its value comes after `v` and before it. The number of
//! writes tried is bounded: first the one that it saw, then those nearest to it in the file.

use super::goal::Sight;
use super::requirements::Requirements;
use super::slices::Slices;
use crate::needs::{Kind, NONE};

/// How many writes of its value are tried for a read, before it and after it in the file.
const EARLIER: usize = 3;
const LATER: usize = 2;
/// The maximum number of ways out of a conflict.
const MOST_WAYS: usize = 2 + EARLIER + LATER;

/// Two uses of one object that conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// An active read, and a write that is not the one it saw.
    Read { read: u32, other: u32 },
    /// An active read that may see any write of its value, and finds another one.
    Value { read: u32 },
    /// Two sections of a lock, by their acquires, in the order of the file.
    Sections { first: u32, second: u32 },
}

/// Keeps an event, at the latest in this slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lowering {
    pub(crate) event: u32,
    pub(crate) slice: u8,
}

/// A way out of a conflict: one lowering, and perhaps another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) first: Lowering,
    pub(crate) second: Option<Lowering>,
}

/// The remaining ways to settle a conflict, the most promising first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ways {
    ways: [Option<Way>; MOST_WAYS],
    count: usize,
    taken: usize,
}

impl Ways {
    fn add(&mut self, way: Option<Way>) {
        if way.is_some() && self.count < MOST_WAYS && !self.ways.contains(&way) {
            self.ways[self.count] = way;
            self.count += 1;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count - self.taken
    }

    /// Removes the next one.
    pub(crate) fn next(&mut self) -> Option<Way> {
        let way = self.ways.get(self.taken).copied().flatten();
        self.taken += usize::from(way.is_some());
        way
    }
}

impl Conflict {
    /// Whether it involves an event before the anchor, so that an earlier anchor might allow another
    /// way to settle it.
    pub(crate) fn is_anchored(self, slices: &Slices, requirements: &Requirements) -> bool {
        let fixed = match self {
            Conflict::Read { read, .. } => requirements.partner(read),
            Conflict::Value { .. } => return slices.anchor > 0,
            Conflict::Sections { first, .. } => first,
        };
        fixed < slices.anchor
    }

    /// The possible ways to settle it, or `None` if there is no conflict (any more). The caller may
    /// rule out more of them.
    pub(crate) fn options(
        self,
        slices: &Slices,
        requirements: &Requirements,
        mut allows: impl FnMut(Lowering) -> bool,
    ) -> Option<Ways> {
        let s = |event| slices.slice(event);
        let mut possible = |event: u32, slice: u8| {
            let first = Lowering { event, slice };
            let is_possible = event != NONE && slice >= 1 && allows(first);
            is_possible.then_some(Way { first, second: None })
        };
        let two = |first, other| {
            let mut ways = Ways::default();
            ways.add(first);
            ways.add(other);
            Some(ways)
        };
        match self {
            Conflict::Value { read } => value_ways(read, slices, requirements, possible),
            Conflict::Read { read, other } => {
                let writer = requirements.partner(read);
                let written = if writer == NONE { 0 } else { s(writer) };
                if other < read {
                    // In the file it comes before the write that was seen.
                    if s(other) <= written || s(read) < s(other) {
                        return None;
                    }
                    two(possible(other, written), possible(read, s(other) - 1))
                } else {
                    if s(read) <= s(other) || s(other) < written {
                        return None;
                    }
                    let before = written.saturating_sub(1);
                    two(possible(read, s(other)), possible(other, before))
                }
            }
            Conflict::Sections { first, second } => {
                let (end1, end2) = (requirements.partner(first), requirements.partner(second));
                let in_order = end1 != NONE && s(end1) <= s(second);
                let reversed = end2 != NONE && s(end2) < s(first);
                if in_order || reversed {
                    return None;
                }
                let in_order = possible(end1, s(second));
                let reversed = possible(end2, s(first).saturating_sub(1));
                // The slices already favour one way.
                if s(second) < s(first) { two(reversed, in_order) } else { two(in_order, reversed) }
            }
        }
    }
}

/// The latest slice of an event that must come before another.
fn before(event: u32, other: u32, slice: u8) -> u8 {
    if event < other { slice } else { slice.saturating_sub(1) }
}

/// The ways for a read to find its value, or nothing if it does already.
fn value_ways(
    read: u32,
    slices: &Slices,
    requirements: &Requirements,
    mut possible: impl FnMut(u32, u8) -> Option<Way>,
) -> Option<Ways> {
    let s = |event| slices.slice(event);
    let place = |event: u32| (s(event), event);
    let finds =
        |write: u32| write == requirements.partner(read) || requirements.is_alike(read, write);
    let kept = slices.kept_of(requirements.object(read)).iter().copied();
    let writes = kept.filter(|&event| event != read && requirements.kind(event).writes());
    let last = writes.filter(|&write| place(write) < place(read)).max_by_key(|&write| place(write));
    if finds(last.unwrap_or_else(|| requirements.written_before(read, slices.anchor))) {
        return None;
    }
    // Moves a write before the read, and the write that it finds now before that one.
    let mut bring = |write: u32| {
        if write == NONE || write == read || write < slices.anchor {
            return None;
        }
        let slice = s(write).min(before(write, read, s(read)));
        let mut way = possible(write, slice)?;
        if let Some(last) = last {
            let target = before(last, write, slice);
            if s(last) > target {
                way.second = Some(possible(last, target)?.first);
            }
        }
        Some(way)
    };
    let mut ways = Ways::default();
    ways.add(bring(requirements.partner(read)));
    let alike = requirements.alike(read);
    let at = alike.partition_point(|&write| write < read);
    let earlier = alike[..at].iter().rev().take(EARLIER).map(|&write| bring(write));
    let earlier: [Option<Way>; EARLIER] = collect(earlier);
    let later: [Option<Way>; LATER] =
        collect(alike[at..].iter().filter(|&&w| w != read).take(LATER).map(|&write| bring(write)));
    if let Some(last) = last {
        ways.add(possible(read, before(read, last, s(last))));
    }
    earlier.into_iter().chain(later).for_each(|way| ways.add(way));
    Some(ways)
}

fn collect<const N: usize>(ways: impl Iterator<Item = Option<Way>>) -> [Option<Way>; N] {
    let mut all = [None; N];
    all.iter_mut().zip(ways).for_each(|(place, way)| *place = way);
    all
}

/// Buffers for walks, reused from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Walker {
    order: Vec<u64>,
    open: Vec<u32>,
}

impl Walker {
    /// Visits the events of an object in the order of emission and passes each conflict to the
    /// callback, which may change slices while the walk continues in the old order; so a conflict
    /// may be settled already, and a walk that changed something does not prove that nothing is
    /// wrong. The callback may also leave a conflict as it is.
    pub(crate) fn walk<E>(
        &mut self,
        object: u32,
        slices: &mut Slices,
        requirements: &Requirements,
        settle: impl FnMut(&mut Slices, Conflict) -> Result<(), E>,
    ) -> Result<(), E> {
        let key = |&event: &u32| u64::from(slices.slice(event)) << 32 | u64::from(event);
        self.order.clear();
        self.order.extend(slices.kept_of(object).iter().map(key));
        self.order.sort_unstable();
        slices.work += self.order.len() as u64;
        match object % 2 {
            0 => self.walk_variable(slices, requirements, settle),
            _ => self.walk_lock(object, slices, requirements, settle),
        }
    }

    fn walk_variable<E>(
        &self,
        slices: &mut Slices,
        requirements: &Requirements,
        mut settle: impl FnMut(&mut Slices, Conflict) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last = NONE;
        for &key in &self.order {
            let event = key as u32;
            let kind = requirements.kind(event);
            let counts = kind.reads() && slices.is_active(event);
            if counts && slices.sight == Sight::Values && requirements.is_free(event) {
                let found = match last {
                    NONE => requirements.written_before(event, slices.anchor),
                    last => last,
                };
                if found != requirements.partner(event) && !requirements.is_alike(event, found) {
                    settle(slices, Conflict::Value { read: event })?;
                }
            } else if counts && last != NONE {
                // A write before the anchor counts as the initial value.
                let writer = requirements.partner(event);
                let seen = if writer != NONE && writer < slices.anchor { NONE } else { writer };
                if last != seen && !requirements.is_alike(event, last) {
                    settle(slices, Conflict::Read { read: event, other: last })?;
                }
            }
            if kind.writes() {
                last = event;
            }
        }
        Ok(())
    }

    fn walk_lock<E>(
        &mut self,
        object: u32,
        slices: &mut Slices,
        requirements: &Requirements,
        mut settle: impl FnMut(&mut Slices, Conflict) -> Result<(), E>,
    ) -> Result<(), E> {
        let Walker { order, open } = self;
        open.clear();
        if slices.anchor > 0 {
            requirements.open_at(object, slices.anchor, open);
        }
        for &key in &*order {
            let event = key as u32;
            if !requirements.kind(event).acquires() {
                if let Some(at) = open.iter().position(|&a| requirements.partner(a) == event) {
                    open.swap_remove(at);
                }
                continue;
            }
            let mut is_over = false;
            let mut i = 0;
            while i < open.len() {
                let holder = open[i];
                if !exclude_each_other(holder, event, requirements) {
                    i += 1;
                    continue;
                }
                let (first, second) = (holder.min(event), holder.max(event));
                settle(slices, Conflict::Sections { first, second })?;
                // If it was settled, one of the two now ends before the other begins.
                let ends_before = |a: u32, b: u32| {
                    let end = requirements.partner(a);
                    let (end, begin) = (slices.end_of(end), slices.slice(b));
                    if a < b { end <= begin } else { end < begin }
                };
                if ends_before(event, holder) {
                    is_over = true;
                    i += 1;
                } else {
                    // If it was not settled, only neighbours are compared.
                    open.swap_remove(i);
                }
            }
            if !is_over {
                open.push(event);
            }
        }
        Ok(())
    }
}

/// Whether two sections, by their acquires, cannot both be open.
fn exclude_each_other(a: u32, b: u32, requirements: &Requirements) -> bool {
    let shared = |acquire| requirements.kind(acquire) == Kind::AcquireShared;
    requirements.thread(a) != requirements.thread(b) && !(shared(a) && shared(b))
}
