//! Sets of tuples, none better than another, for each subset of positions.
//!
//! Where the candidates of a position are not ordered (any thread may make them) there is no
//! greatest tuple. A tuple is at least as good as another of the same positions if each of its
//! events is the same as or after the other's: whatever extends the other extends it. So of those
//! only the better one is kept. Events before the first missing position do not count, for nothing
//! that comes is placed before them. Candidates that a lock or a variable orders leave one tuple.

use foresee_causality::{LaneClocks, LaneVector};

use super::event::{Held, Now};

/// No event at this position.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Pareto {
    /// The positions of each tuple, as bits.
    sets: Vec<u64>,
    /// Its events, by their numbers in [`Held`], one for each position.
    events: Vec<u32>,
}

/// What is needed while an event is looked at, kept from event to event.
#[derive(Debug, Default)]
pub(super) struct Fresh {
    sets: Vec<u64>,
    events: Vec<u32>,
    /// The number of the event, once something keeps it.
    current: Option<u32>,
    /// How many tuples were dropped because there were too many.
    pub(super) dropped: u64,
}

impl Fresh {
    /// Makes ready for the next event.
    pub(super) fn begin(&mut self) {
        self.current = None;
    }

    /// The number of the event, which is kept until [`Fresh::end`] at least.
    pub(super) fn id<V: LaneVector>(&mut self, now: &Now<'_, V>, held: &mut Held<V>) -> u32 {
        *self.current.get_or_insert_with(|| held.hold(now))
    }

    /// The event is through.
    pub(super) fn end<V: LaneVector>(&mut self, held: &mut Held<V>) {
        if let Some(id) = self.current.take() {
            held.release(id);
        }
    }
}

impl Pareto {
    /// Takes the next event, a candidate of the positions `matched`; the events of a full tuple of
    /// `length` positions, if there is one now. At most `limit` tuples are kept.
    pub(super) fn step<V: LaneVector>(
        &mut self,
        length: usize,
        matched: u64,
        limit: usize,
        now: &Now<'_, V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
    ) -> Option<Vec<u64>> {
        let full = u64::MAX >> (64 - length);
        let id = fresh.id(now, held);
        fresh.sets.clear();
        fresh.events.clear();
        for t in 0..=self.sets.len() {
            // The empty tuple stands for itself, at the end.
            let set = self.sets.get(t).copied().unwrap_or(0);
            let events = self.events.get(t * length..(t + 1) * length).unwrap_or(&[]);
            // The new event stands after every event that it knows.
            let mut last_known = 0;
            let mut later = set;
            while later != 0 {
                let j = later.ilog2();
                if now.knows(&held.get(events[j as usize]).mark) {
                    last_known = j + 1;
                    break;
                }
                later &= !(1 << j);
            }
            for i in ones(matched & !set & !below(last_known)) {
                let with = set | 1 << i;
                let start = fresh.events.len();
                fresh.sets.push(with);
                match events {
                    [] => fresh.events.extend(std::iter::repeat_n(NONE, length)),
                    _ => fresh.events.extend_from_slice(events),
                }
                fresh.events[start + i] = id;
                if with == full {
                    let tuple = fresh.events[start..].iter().map(|&e| held.get(e).mark.index);
                    return Some(tuple.collect());
                }
            }
        }
        // They use their events from now on: those they come from may be dropped.
        fresh.events.iter().filter(|&&id| id != NONE).for_each(|&id| held.add_user(id));
        for t in 0..fresh.sets.len() {
            let events = &fresh.events[t * length..(t + 1) * length];
            if !self.add(fresh.sets[t], events, limit, now.clocks, held) {
                fresh.dropped += 1;
            }
        }
        None
    }

    /// Adds a tuple, which uses its events already, unless there is one as good; drops those that
    /// are no better. `false` if there was no room for it.
    fn add<V: LaneVector>(
        &mut self,
        set: u64,
        events: &[u32],
        limit: usize,
        clocks: &LaneClocks<V>,
        held: &mut Held<V>,
    ) -> bool {
        let length = events.len();
        let compared = set & !below(set.trailing_ones());
        let is_at_least = |a: &[u32], b: &[u32], held: &Held<V>| {
            ones(compared).all(|j| {
                let (a, b) = (a[j], b[j]);
                a == b || {
                    let (a, b) = (held.get(a), held.get(b).mark);
                    clocks.knows(&a.vector, b.lane, b.time)
                }
            })
        };
        let mut t = 0;
        while t < self.sets.len() {
            let other = &self.events[t * length..(t + 1) * length];
            if self.sets[t] != set {
                t += 1;
            } else if is_at_least(other, events, held) {
                ones(set).for_each(|j| held.release(events[j]));
                return true;
            } else if is_at_least(events, other, held) {
                self.remove(t, length, held);
            } else {
                t += 1;
            }
        }
        if self.sets.len() >= limit {
            ones(set).for_each(|j| held.release(events[j]));
            return false;
        }
        self.sets.push(set);
        self.events.extend_from_slice(events);
        true
    }

    fn remove<V: LaneVector>(&mut self, t: usize, length: usize, held: &mut Held<V>) {
        ones(self.sets[t]).for_each(|j| held.release(self.events[t * length + j]));
        self.sets.swap_remove(t);
        let last = self.events.len() - length;
        self.events.copy_within(last.., t * length);
        self.events.truncate(last);
    }

    /// Nothing more is wanted of these tuples.
    pub(super) fn clear<V: LaneVector>(&mut self, length: usize, held: &mut Held<V>) {
        while let Some(last) = self.sets.len().checked_sub(1) {
            self.remove(last, length, held);
        }
        *self = Pareto::default();
    }

    /// The same tuples once more.
    pub(super) fn copy<V: LaneVector>(&self, held: &mut Held<V>) -> Pareto {
        self.events.iter().filter(|&&id| id != NONE).for_each(|&id| held.add_user(id));
        self.clone()
    }
}

/// The lowest `n` bits.
#[inline]
fn below(n: u32) -> u64 {
    1u64.checked_shl(n).unwrap_or(0).wrapping_sub(1)
}

/// The places of the bits that are set.
#[inline]
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros();
        bits &= bits.wrapping_sub(1);
        (place < 64).then_some(place as usize)
    })
}
