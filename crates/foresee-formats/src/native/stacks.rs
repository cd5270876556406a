//! Call stacks: frames that readers may skip. One kind defines stacks, each by another one and the place of a call on top of it;
//! the other has the stacks of the events in the next events frame.

use foresee_trace::{CallStacks, Event, Id, LocId, Names, ReadError, StackId, entry};

use super::frame::{Kind, damaged, push_varint, u32_at, u64_at, varint};

/// Frames that define stacks.
pub(crate) const CALLS: Kind = Kind::Optional(129);
/// Frames with the stacks of events.
pub(crate) const STACKS: Kind = Kind::Optional(130);

/// The maximum number of stacks that one frame defines.
const MOST_CALLS: usize = 1 << 16;

/// Appends the payload of a frame that defines the stacks from `first` on, as many as fit into a frame; returns their number.
pub(crate) fn encode_calls(stacks: &CallStacks, first: usize, out: &mut Vec<u8>) -> u32 {
    out.extend_from_slice(&(first as u32).to_le_bytes());
    let end = stacks.len().min(first + MOST_CALLS);
    for number in first..end {
        let (outer, at) =
            stacks.get(StackId(number as u32)).unwrap_or((StackId::NONE, LocId::NONE));
        push_varint(u64::from(outer.0), out);
        push_varint(u64::from(at.0), out);
    }
    (end - first) as u32
}

/// Adds the stacks of a frame whose payload starts at byte `at`.
pub(crate) fn read_calls(
    payload: &[u8],
    count: u32,
    at: u64,
    names: &mut Names,
) -> Result<(), ReadError> {
    if payload.len() < 4 || u32_at(payload, 0) as usize != names.stacks.len() {
        let message = format!("call stacks do not continue with number {}", names.stacks.len());
        return Err(damaged(at, message));
    }
    let mut next = 4;
    for _ in 0..count {
        let place = at + next as u64;
        let (outer, loc) = (varint(payload, &mut next), varint(payload, &mut next));
        let number = names.stacks.len() as u32;
        let outer = outer.filter(|&outer| (1..u64::from(number)).contains(&outer));
        let loc = loc.filter(|&loc| loc < names.locs.len() as u64);
        let (Some(outer), Some(loc)) = (outer, loc) else {
            return Err(damaged(place, "a call stack makes no sense"));
        };
        if names.stacks.call(StackId(outer as u32), LocId(loc as u32)) != StackId(number) {
            return Err(damaged(place, "a call stack is defined twice, or there are too many"));
        }
    }
    match next == payload.len() {
        true => Ok(()),
        false => Err(damaged(at + next as u64, "bytes are left over after the last call stack")),
    }
}

/// The stacks of the events of one frame, as they are written.
#[derive(Debug, Default)]
pub(crate) struct StackChanges {
    /// After the number of the first event.
    payload: Vec<u8>,
    pub(crate) count: u32,
    /// How many events there were before the latest change.
    latest: u32,
    /// The stack of each thread.
    current: Vec<StackId>,
}

impl StackChanges {
    /// Adds the event that comes after so many others of the frame.
    pub(crate) fn add(&mut self, before: u32, event: &Event, stack: StackId) {
        let current = entry(&mut self.current, event.thread().index());
        if *current != stack {
            *current = stack;
            push_varint(u64::from(before - self.latest), &mut self.payload);
            push_varint(u64::from(stack.0), &mut self.payload);
            self.count += 1;
            self.latest = before;
        }
    }

    /// Appends the payload, and begins the next frame.
    pub(crate) fn take(&mut self, first: u64, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&first.to_le_bytes());
        out.append(&mut self.payload);
        (self.latest, self.current) = (0, Vec::new());
        std::mem::take(&mut self.count)
    }
}

/// The stacks of the events of one frame, as they are read.
#[derive(Default)]
pub(crate) struct FrameStacks {
    /// The number of the first event, and how many events there are before each change.
    first: u64,
    changes: Vec<(u64, StackId)>,
    next: usize,
    current: Vec<StackId>,
}

impl FrameStacks {
    /// Reads a frame whose payload starts at byte `at`.
    pub(crate) fn read(
        payload: &[u8],
        count: u32,
        at: u64,
        names: &Names,
    ) -> Result<FrameStacks, ReadError> {
        let bad =
            |next: usize| damaged(at + next as u64, "the call stacks of events make no sense");
        if payload.len() < 8 || payload.len() - 8 < 2 * count as usize {
            return Err(bad(0));
        }
        let (mut next, mut before) = (8, 0u64);
        let mut changes = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let place = next;
            let (step, stack) = (varint(payload, &mut next), varint(payload, &mut next));
            let stack = stack.filter(|&stack| stack < names.stacks.len() as u64);
            let (Some(step), Some(stack)) = (step, stack) else { return Err(bad(place)) };
            before = before.checked_add(step).ok_or_else(|| bad(place))?;
            changes.push((before, StackId(stack as u32)));
        }
        if next != payload.len() {
            return Err(bad(next));
        }
        let first = u64_at(payload, 0);
        Ok(FrameStacks { first, changes, next: 0, current: Vec::new() })
    }

    /// Whether these are the stacks of the events from `first` on.
    pub(crate) fn are_of(&self, first: u64) -> bool {
        self.first == first && !self.changes.is_empty()
    }

    /// The stacks of the next events, of which the first comes after so many others of the frame.
    pub(crate) fn next(&mut self, before: u64, events: &[Event], out: &mut Vec<StackId>) {
        if self.changes.is_empty() {
            return;
        }
        for (at, event) in (before..).zip(events) {
            let current = entry(&mut self.current, event.thread().index());
            while let Some(&(_, stack)) =
                self.changes.get(self.next).filter(|(when, _)| *when <= at)
            {
                *current = stack;
                self.next += 1;
            }
            out.push(*current);
        }
    }
}
