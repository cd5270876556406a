//! The relevant events of one property, with their causal order.

use foresee_causality::{Clocks, Stamp};
use foresee_trace::ThreadId;

/// What a relevant event does to the property.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Its index in the trace.
    pub(super) index: u64,
    /// Its place in the causal order of the whole trace.
    pub(super) stamp: Stamp,
    /// Which event atoms it makes true.
    pub(super) atoms: u64,
    /// What it writes, by number; see [`super::tables::States`].
    pub(super) write: Option<u32>,
}

/// The relevant events of one thread.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) thread: ThreadId,
    pub(super) items: Vec<Item>,
    /// For each item, how many items of each column come before it; columns that appeared later
    /// are left out, because none of their items can.
    rows: Vec<u32>,
    starts: Vec<usize>,
}

impl Column {
    /// How many items of each column must have happened before item `k`; zero for columns beyond.
    #[inline]
    pub(super) fn row(&self, k: usize) -> &[u32] {
        &self.rows[self.starts[k]..self.starts[k + 1]]
    }
}

/// The relevant events of one property.
#[derive(Clone, Debug, Default)]
pub(super) struct Slice {
    pub(super) columns: Vec<Column>,
    /// For each column and each other, how many of the other's items its last item knows.
    known: Vec<Vec<u32>>,
    /// The columns in the order of the events.
    pub(super) observed: Vec<u32>,
}

impl Slice {
    /// Adds the next relevant event of the trace.
    pub(super) fn push(&mut self, item: Item, clocks: &Clocks) {
        let c = self.column(item.stamp.thread);
        for other in 0..self.columns.len() {
            if other == c {
                continue;
            }
            let Column { thread, items, .. } = &self.columns[other];
            let time = clocks.count(&item.stamp, *thread)[0];
            let known = &mut self.known[c];
            if known.len() <= other {
                known.resize(other + 1, 0);
            }
            // What a thread knows only grows, so every item is passed once for each column.
            let mut k = known[other] as usize;
            while items.get(k).is_some_and(|item| item.stamp.time[0] <= time) {
                k += 1;
            }
            known[other] = k as u32;
        }
        let known = &mut self.known[c];
        known.resize(self.columns.len(), 0);
        known[c] = self.columns[c].items.len() as u32;
        let column = &mut self.columns[c];
        column.rows.extend_from_slice(known);
        column.starts.push(column.rows.len());
        column.items.push(item);
        self.observed.push(c as u32);
    }

    fn column(&mut self, thread: ThreadId) -> usize {
        match self.columns.iter().position(|c| c.thread == thread) {
            Some(c) => c,
            None => {
                let (items, rows, starts) = (Vec::new(), Vec::new(), vec![0]);
                self.columns.push(Column { thread, items, rows, starts });
                self.known.push(Vec::new());
                self.columns.len() - 1
            }
        }
    }

    /// How many relevant events there are.
    pub(super) fn len(&self) -> usize {
        self.observed.len()
    }

    /// Whether item `k` of a column can happen when so many items of each column have.
    #[inline]
    pub(super) fn is_enabled(&self, column: usize, counts: &[u32]) -> bool {
        let k = counts[column] as usize;
        let column = &self.columns[column];
        k < column.items.len() && column.row(k).iter().zip(counts).all(|(need, have)| need <= have)
    }
}
