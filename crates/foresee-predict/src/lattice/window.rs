//! The window: the cuts of a level that are nearest to the observed run.

use super::events::Events;
use super::level::Level;

/// Narrows levels; its memory is reused.
#[derive(Debug, Default)]
pub(super) struct Narrowing {
    counts: Vec<u32>,
    ranks: Vec<(u64, u64)>,
    order: Vec<u32>,
}

impl Narrowing {
    /// Keeps at most this many cuts, those nearest to the observed run, which is always among them.
    pub(super) fn narrow(&mut self, level: &mut Level, window: usize, events: &Events) {
        let Narrowing { counts, ranks, order } = self;
        counts.clear();
        ranks.clear();
        for cut in level.cuts.chunks_exact(level.packing.words()) {
            level.packing.unpack(cut, counts);
            ranks.push(events.rank(counts));
        }
        order.clear();
        order.extend(0..level.len() as u32);
        order.select_nth_unstable_by(window.max(1) - 1, |&a, &b| {
            let (a, b) = (a as usize, b as usize);
            // Ties are rare enough to unpack the cuts again.
            ranks[a].cmp(&ranks[b]).then_with(|| events.compare(&level.counts(a), &level.counts(b)))
        });
        order.truncate(window.max(1));
        level.select(order);
    }

    /// The most events of each column in a cut of a level.
    pub(super) fn most(&mut self, level: &Level, most: &mut Vec<u32>) {
        most.clear();
        most.resize(level.packing.len(), 0);
        self.counts.clear();
        for cut in level.cuts.chunks_exact(level.packing.words()) {
            level.packing.unpack(cut, &mut self.counts);
            most.iter_mut().zip(&self.counts).for_each(|(most, &n)| *most = n.max(*most));
        }
    }
}
