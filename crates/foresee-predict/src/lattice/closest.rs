//! The violating run that differs least from the observed one, and how many runs are harmless.
//!
//! The distance of two runs is the number of pairs of events that they order differently. Adding
//! an event to a cut costs as many swaps as the cut holds events observed later, so the least
//! number of swaps to each cut and monitor state follows from those of the level before. This
//! needs more memory for each cut than the search does, and is done for small lattices only.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_spec::letter::Letter;
use foresee_spec::monitor::{StateId, TooManyStates};
use num_bigint::BigUint;

use super::explore::Explorer;
use super::tables::Meaning;
use super::witness::Run;

/// The result of a second pass over a small lattice.
#[derive(Debug)]
pub(super) struct Closest {
    /// The violating run with the fewest swaps, up to the violation.
    pub(super) run: Run,
    /// How many pairs of relevant events it orders differently from the observed run, with the
    /// remaining events appended in the order in which they were observed.
    pub(super) swaps: u64,
    /// How many runs do not violate the property.
    pub(super) harmless: BigUint,
}

/// A cut with one monitor state.
struct Entry {
    counts: Vec<u32>,
    state: u32,
    monitor: StateId,
    swaps: u64,
    /// The entry of the level before it comes from, and by which column's event.
    from: (u32, u32),
    runs: BigUint,
}

impl Explorer {
    /// Examines every cut and monitor state again; `None` if there are more than `limit`.
    pub(super) fn closest(
        &mut self,
        start: StateId,
        limit: usize,
        meaning: &mut Meaning<'_>,
    ) -> Result<Option<Closest>, TooManyStates> {
        let known = self.events.counts();
        let columns = known.len();
        let mut level = vec![Entry {
            counts: vec![0; columns],
            state: 0,
            monitor: start,
            swaps: 0,
            from: (0, 0),
            runs: BigUint::from(1u8),
        }];
        let mut parents: Vec<Vec<(u32, u32)>> = Vec::new();
        let mut best: Option<(u64, usize, u32, u32)> = None;
        let mut entries = 1;
        for depth in 0..self.events.count() as usize {
            let mut next: Vec<Entry> = Vec::new();
            let mut places: HashMap<(Vec<u32>, StateId), usize, RandomState> = HashMap::default();
            for (n, entry) in level.iter().enumerate() {
                for column in 0..columns {
                    if !self.events.is_enabled(column, &entry.counts, &known) {
                        continue;
                    }
                    let item = *self.events.columns()[column].item(entry.counts[column]);
                    let state = match item.write() {
                        Some(write) => self.tables.after(entry.state, write, meaning),
                        None => entry.state,
                    };
                    let letter = Letter(self.tables.bits(state) | item.atoms);
                    let monitor = meaning.monitor.step(entry.monitor, letter)?;
                    let swaps = entry.swaps + self.swaps_of(column, &entry.counts);
                    let mut counts = entry.counts.clone();
                    counts[column] += 1;
                    if monitor == StateId::BAD {
                        // The remaining events can only add swaps, and counting them is slow.
                        if best.is_none_or(|b| swaps < b.0) {
                            let total = swaps + self.swaps_left(&counts);
                            if best.is_none_or(|b| total < b.0) {
                                best = Some((total, depth, n as u32, column as u32));
                            }
                        }
                        continue;
                    }
                    let place = *places.entry((counts.clone(), monitor)).or_insert(next.len());
                    match next.get_mut(place) {
                        Some(known) => {
                            known.runs += &entry.runs;
                            if swaps < known.swaps {
                                (known.swaps, known.from) = (swaps, (n as u32, column as u32));
                            }
                        }
                        None => {
                            let from = (n as u32, column as u32);
                            let runs = entry.runs.clone();
                            next.push(Entry { counts, state, monitor, swaps, from, runs });
                        }
                    }
                }
            }
            entries += next.len();
            if entries > limit {
                return Ok(None);
            }
            parents.push(level.iter().map(|e| e.from).collect());
            level = next;
        }
        let Some((swaps, depth, mut entry, column)) = best else { return Ok(None) };
        let mut run = vec![column];
        for level in parents[..=depth].iter().skip(1).rev() {
            let (from, column) = level[entry as usize];
            run.push(column);
            entry = from;
        }
        run.reverse();
        Ok(Some(Closest { run, swaps, harmless: level.iter().map(|e| &e.runs).sum() }))
    }

    /// How many events of the cut were observed after the next event of a column.
    fn swaps_of(&self, column: usize, counts: &[u32]) -> u64 {
        let index = self.events.columns()[column].item(counts[column]).index;
        let later = |(c, &n): (usize, &u32)| u64::from(n).saturating_sub(self.before(c, index));
        counts.iter().enumerate().map(later).sum()
    }

    /// How many events outside the cut were observed before one inside, pair by pair.
    fn swaps_left(&self, counts: &[u32]) -> u64 {
        let mut swaps = 0;
        for (column, &n) in self.events.columns().iter().zip(counts) {
            for item in &column.items()[..n as usize] {
                let missing = |(c, &n): (usize, &u32)| {
                    self.before(c, item.index).saturating_sub(u64::from(n))
                };
                swaps += counts.iter().enumerate().map(missing).sum::<u64>();
            }
        }
        swaps
    }

    /// How many events of a column were observed before the event `index` of the trace.
    fn before(&self, column: usize, index: u64) -> u64 {
        self.events.columns()[column].items().partition_point(|item| item.index < index) as u64
    }
}
