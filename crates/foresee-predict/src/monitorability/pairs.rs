//! Unordered pairs of steps whose order matters, found in one pass.
//!
//! The steps of one kind of one thread are a chain, so if a new step comes after the last of them,
//! it comes after all: for each kind and thread only the last step is kept. A thread whose very
//! last step is known is passed over at once.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_trace::{Id, LocId, ThreadId, entry};

use super::labels::{LABELS, Labels};

/// A step of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: u64,
    pub(super) thread: ThreadId,
    pub(super) loc: LocId,
}

/// Pairs of steps of the same kinds at the same places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// The first such pair, in the order of the file.
    pub(super) first: Place,
    pub(super) second: Place,
    /// How often the later step found the earlier one to be the last of its kind and unordered.
    pub(super) count: u64,
}

#[derive(Debug)]
struct Column {
    thread: ThreadId,
    /// When its last step was.
    latest: u32,
    /// The kinds of its steps, as bits.
    present: u64,
    /// For each kind the last step and its time.
    last: Vec<Option<(Place, u32)>>,
}

/// The number of pairs of places that are distinguished.
const PLACES: usize = 1_000;

/// One step after another is compared with those before it.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    columns: Vec<Column>,
    /// For each thread its column, counted from one.
    by_thread: Vec<u32>,
    places: HashMap<(u8, LocId, u8, LocId), u32, RandomState>,
    found: Vec<Pair>,
    /// How many unordered pairs there were in all.
    pub(super) count: u64,
    /// How often a step was compared with a thread: for each step as many times as there are
    /// threads.
    pub(super) compared: u64,
}

impl Pairs {
    /// The pairs, in the order in which they were found.
    pub(super) fn found(&self) -> &[Pair] {
        &self.found
    }

    /// Processes the next step: `time` is its place in its thread, and `known` returns how many
    /// steps of another thread come before it.
    #[inline]
    pub(super) fn step(
        &mut self,
        place: Place,
        label: u8,
        time: u32,
        labels: &Labels,
        known: impl Fn(ThreadId) -> u32,
    ) {
        self.compared += self.columns.len() as u64;
        for c in 0..self.columns.len() {
            let column = &self.columns[c];
            let of = labels.depends(label) & column.present;
            if of == 0 || column.thread == place.thread {
                continue;
            }
            let known = known(column.thread);
            if known < column.latest {
                self.compare(c, of, known, place, label);
            }
        }
        let c = entry(&mut self.by_thread, place.thread.index());
        if *c == 0 {
            // As long as its kinds need: there may be thousands of threads, and most have few kinds.
            let last = Vec::new();
            self.columns.push(Column { thread: place.thread, latest: 0, present: 0, last });
            *c = self.columns.len() as u32;
        }
        let column = &mut self.columns[*c as usize - 1];
        column.latest = time;
        column.present |= 1 << label;
        *entry(&mut column.last, usize::from(label)) = Some((place, time));
    }

    /// Compares a step with the last ones of some kinds among the known steps of a column.
    #[cold]
    fn compare(&mut self, c: usize, of: u64, known: u32, place: Place, label: u8) {
        for other in (0..LABELS as u8).filter(|other| of >> other & 1 == 1) {
            let Some((earlier, time)) = self.columns[c].last[usize::from(other)] else { continue };
            if time <= known {
                continue;
            }
            self.count += 1;
            let mut key = [(other, earlier.loc), (label, place.loc)];
            key.sort_unstable_by_key(|(label, loc)| (*label, loc.0));
            let key = (key[0].0, key[0].1, key[1].0, key[1].1);
            match self.places.get(&key) {
                Some(&i) => self.found[i as usize].count += 1,
                None if self.found.len() < PLACES => {
                    self.places.insert(key, self.found.len() as u32);
                    self.found.push(Pair { first: earlier, second: place, count: 1 });
                }
                None => {}
            }
        }
    }
}
