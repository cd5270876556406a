//! The events that searches remember.

use foresee_causality::{LaneClocks, LaneVector};

/// An event that stands in a tuple: its place in the causal order, and in the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) lane: u32,
    pub(super) time: u32,
    pub(super) index: u64,
}

/// The event that is being looked at, with all it knows.
pub(super) struct Now<'c, V: LaneVector> {
    pub(super) clocks: &'c LaneClocks<V>,
    pub(super) vector: V,
    pub(super) index: u64,
    /// The lane of its thread, if it is counted there.
    pub(super) thread_lane: u32,
}

impl<V: LaneVector> Now<'_, V> {
    /// Whether an event is before or equal to this one.
    #[inline]
    pub(super) fn knows(&self, mark: &Mark) -> bool {
        self.clocks.knows(&self.vector, mark.lane, mark.time)
    }

    /// How many events of a lane are before or equal to this one.
    #[inline]
    pub(super) fn count(&self, lane: u32) -> u32 {
        self.clocks.count(&self.vector, lane)
    }

    /// This event, as one of a lane.
    #[inline]
    pub(super) fn mark(&self, lane: Option<u32>) -> Mark {
        let lane = lane.unwrap_or(self.thread_lane);
        Mark { lane, time: self.count(lane), index: self.index }
    }
}

/// Events that stand in sets of tuples, each kept once, with what they know.
#[derive(Debug)]
pub(super) struct Held<V> {
    events: Vec<HeldEvent<V>>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HeldEvent<V> {
    pub(super) mark: Mark,
    pub(super) vector: V,
    /// How many places it is used in.
    uses: u32,
}

impl<V> Default for Held<V> {
    fn default() -> Self {
        Held { events: Vec::new(), free: Vec::new() }
    }
}

impl<V: LaneVector> Held<V> {
    /// Keeps the current event, for one user.
    pub(super) fn hold(&mut self, now: &Now<'_, V>) -> u32 {
        let event = HeldEvent { mark: now.mark(None), vector: now.vector, uses: 1 };
        match self.free.pop() {
            Some(id) => {
                self.events[id as usize] = event;
                id
            }
            None => {
                self.events.push(event);
                self.events.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, id: u32) -> &HeldEvent<V> {
        &self.events[id as usize]
    }

    #[inline]
    pub(super) fn add_user(&mut self, id: u32) {
        self.events[id as usize].uses += 1;
    }

    #[inline]
    pub(super) fn release(&mut self, id: u32) {
        let event = &mut self.events[id as usize];
        event.uses -= 1;
        if event.uses == 0 {
            self.free.push(id);
        }
    }

    /// What the events know, for those that carry it elsewhere.
    pub(super) fn vectors(&self) -> impl Iterator<Item = V> + '_ {
        self.events.iter().filter(|event| event.uses > 0).map(|event| event.vector)
    }

    /// The same events with other vectors, one for each of [`Held::vectors`].
    pub(super) fn with_vectors<W: LaneVector>(&self, vectors: Vec<W>) -> Held<W> {
        let mut vectors = vectors.into_iter();
        let events = self.events.iter().map(|event| {
            let vector = if event.uses > 0 { vectors.next() } else { None };
            HeldEvent { mark: event.mark, vector: vector.unwrap_or_default(), uses: event.uses }
        });
        Held { events: events.collect(), free: self.free.clone() }
    }
}
