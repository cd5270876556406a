//! The relevant events of one property: those that have arrived and are still needed.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;
use foresee_trace::{ThreadId, entry};

/// What a relevant event does to the property.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Its index in the trace.
    pub(super) index: u64,
    /// The sum of the indices of this event and all earlier ones of its thread.
    sum: u64,
    /// Its place among all events of its thread.
    pub(super) time: u32,
    /// What it writes, by number; see [`super::tables::Writes`].
    write: u32,
    /// Which event atoms it makes true.
    pub(super) atoms: u64,
}

/// No write.
const NOTHING: u32 = u32::MAX;

impl Item {
    pub(super) fn new(index: u64, time: u32, atoms: u64, write: Option<u32>) -> Item {
        Item { index, sum: 0, time, write: write.unwrap_or(NOTHING), atoms }
    }

    /// What it writes, by number.
    #[inline]
    pub(super) fn write(&self) -> Option<u32> {
        (self.write != NOTHING).then_some(self.write)
    }

    /// Gives the written value another number.
    pub(super) fn renumber(&mut self, number: impl FnOnce(u32) -> u32) {
        if self.write != NOTHING {
            self.write = number(self.write);
        }
    }
}

/// An event requires this many events of another column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) column: u32,
    pub(super) count: u32,
}

/// The relevant events of one thread.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) thread: ThreadId,
    /// The number of first events that were dropped.
    gone: u32,
    /// Index and sum of the last event that was dropped.
    last_gone: (u64, u64),
    items: Vec<Item>,
    /// What each item needs beyond what the one before it needs, and beyond what most of these need
    /// themselves; those of item `k` stand from `starts[k]` to `starts[k + 1]`.
    needs: Vec<Need>,
    starts: Vec<usize>,
    /// How many of each column's events the last item knows.
    knows: Vec<u32>,
    /// The total number of events of the thread, once it is known to have ended.
    end: Option<u32>,
    /// Where the thread comes from: a column, and how many of its events come before the fork.
    fork: Option<Need>,
    /// Events whose predecessors, or the forks before them, have not arrived.
    early: BTreeMap<u32, Early>,
    /// An end that came before some events.
    early_end: Option<(u32, u32)>,
    /// How many forks of this thread have arrived that come before its next event.
    forks: u32,
    /// Forks that come later: after how many events, and how many.
    early_forks: BTreeMap<u32, u32>,
    /// Levels had been left when the thread first appeared.
    late: bool,
}

/// An event that arrived before its predecessor.
#[derive(Clone, Debug)]
struct Early {
    item: Item,
    knows: Vec<Need>,
    forks: u32,
}

impl Column {
    fn new(thread: ThreadId, late: bool) -> Column {
        Column {
            thread,
            late,
            gone: 0,
            last_gone: (0, 0),
            items: Vec::new(),
            needs: Vec::new(),
            starts: vec![0],
            knows: Vec::new(),
            end: None,
            fork: None,
            early: BTreeMap::new(),
            early_end: None,
            forks: 0,
            early_forks: BTreeMap::new(),
        }
    }

    /// Counts the forks that come before the next event.
    fn count_forks(&mut self) {
        let next = self.count();
        while let Some(first) = self.early_forks.first_entry().filter(|f| *f.key() <= next) {
            self.forks += first.remove();
        }
    }

    /// How many events have arrived, without a gap.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.gone + self.items.len() as u32
    }

    /// The event after this many others of its thread.
    #[inline]
    pub(super) fn item(&self, k: u32) -> &Item {
        &self.items[(k - self.gone) as usize]
    }

    /// The requirements of the event after this many others, beyond those of its predecessor.
    #[inline]
    fn needs(&self, k: u32) -> &[Need] {
        let k = (k - self.gone) as usize;
        &self.needs[self.starts[k]..self.starts[k + 1]]
    }

    /// The events that are still here.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    /// When the last of the first `k` events was observed, and the sum for all of them.
    #[inline]
    fn ranks(&self, k: u32) -> (u64, u64) {
        match k.checked_sub(self.gone + 1) {
            Some(i) => (self.items[i as usize].index + 1, self.items[i as usize].sum),
            None => self.last_gone,
        }
    }

    fn push(&mut self, mut item: Item) {
        item.sum = self.ranks(self.count()).1 + item.index + 1;
        self.items.push(item);
        self.starts.push(self.needs.len());
    }
}

/// The relevant events of one property.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    columns: Vec<Column>,
    of_thread: HashMap<ThreadId, u32, RandomState>,
    /// The columns by thread, for an order that does not depend on what arrived first.
    by_thread: Vec<u32>,
    /// Every thread that there will be is known, with its end.
    complete: bool,
    /// Levels have been left, so a thread that was not forked comes too late for some cuts.
    begun: bool,
    queued: usize,
    /// The lengths of all columns' `needs` and `knows`.
    needs: usize,
    knows: usize,
}

/// How many of the events that an event needs are asked what they need themselves. The latest one
/// nearly always knows all others.
const MOST_ASKED: usize = 16;

impl Events {
    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of a thread.
    pub(super) fn column(&mut self, thread: ThreadId) -> usize {
        if let Some(&c) = self.of_thread.get(&thread) {
            return c as usize;
        }
        let c = self.columns.len();
        let before = |&o: &u32| self.columns[o as usize].thread < thread;
        self.by_thread.insert(self.by_thread.partition_point(before), c as u32);
        self.columns.push(Column::new(thread, self.begun));
        self.of_thread.insert(thread, c as u32);
        c
    }

    /// How many events have arrived, without gaps in their threads.
    pub(super) fn count(&self) -> u64 {
        self.columns.iter().map(|c| u64::from(c.count())).sum()
    }

    /// About how many bytes the events take.
    pub(super) fn bytes(&self) -> usize {
        self.knows * size_of::<u32>()
            + self.queued * (size_of::<Item>() + size_of::<usize>())
            + self.needs * size_of::<Need>()
            + self.columns.len() * size_of::<Column>()
    }

    /// Adds the next event of a thread, in the order in which they were observed. `times` says
    /// how many events of a thread come before it.
    pub(super) fn observe(
        &mut self,
        thread: ThreadId,
        item: Item,
        times: impl Fn(ThreadId) -> u32,
    ) {
        let c = self.column(thread);
        let mut knows = std::mem::take(&mut self.columns[c].knows);
        let mut needs = Vec::new();
        self.knows += self.columns.len() - knows.len();
        knows.resize(self.columns.len(), 0);
        for other in (0..self.columns.len()).filter(|&other| other != c) {
            let column = &self.columns[other];
            // Dropped events have happened in every cut, so they are no requirement.
            let old = knows[other].max(column.gone);
            let mut k = old;
            if k < column.count() {
                let time = times(column.thread);
                // What a thread knows only grows, so every item is passed once for each column.
                while k < column.count() && column.item(k).time <= time {
                    k += 1;
                }
            }
            if k > old {
                needs.push(Need { column: other as u32, count: k });
            }
            knows[other] = k;
        }
        self.drop_implied(&mut needs);
        self.needs += needs.len();
        let column = &mut self.columns[c];
        column.needs.extend(needs);
        column.knows = knows;
        column.push(item);
        self.queued += 1;
    }

    /// Leaves out what other events among these need anyhow, as far as that is known. Each thread of a
    /// chain knows all threads before it, but needs only the last.
    fn drop_implied(&self, needs: &mut Vec<Need>) {
        if needs.len() < 2 {
            return;
        }
        let last = |need: &Need| self.columns[need.column as usize].item(need.count - 1).index;
        // Nothing needs what was observed after it.
        needs.sort_unstable_by_key(|need| Reverse(last(need)));
        for asked in 0..MOST_ASKED {
            let Some(need) = needs.get(asked) else { break };
            let column = &self.columns[need.column as usize];
            // Of its events, a column keeps in mind only what the last one knows.
            if need.count < column.count() {
                continue;
            }
            let known = |other: &Need| column.knows.get(other.column as usize).copied();
            let mut place = 0;
            needs.retain(|other| {
                place += 1;
                place <= asked + 1 || known(other).is_none_or(|known| known < other.count)
            });
        }
    }

    /// Accepts an event in any order: event `k` of its thread, which knows these numbers of events
    /// of other threads and comes after this many forks of its own.
    pub(super) fn arrive(
        &mut self,
        thread: ThreadId,
        k: u32,
        item: Item,
        knows: &[(ThreadId, u32)],
        forks: u32,
    ) {
        let knows = knows
            .iter()
            .map(|&(thread, count)| Need { column: self.column(thread) as u32, count })
            .collect();
        let c = self.column(thread);
        if k >= self.columns[c].count() {
            self.columns[c].early.insert(k, Early { item, knows, forks });
            self.settle(c);
        }
    }

    /// A thread forks another after this many relevant events of its own.
    pub(super) fn fork(&mut self, parent: ThreadId, child: ThreadId, count: u32) {
        let p = self.column(parent);
        *self.columns[p].early_forks.entry(count).or_default() += 1;
        let c = self.column(child);
        self.columns[c].fork = Some(Need { column: p as u32, count });
        self.settle(p);
    }

    /// A thread ends after this many relevant events and forks.
    pub(super) fn end(&mut self, thread: ThreadId, count: u32, forks: u32) {
        let c = self.column(thread);
        self.columns[c].early_end = Some((count, forks));
        self.settle(c);
    }

    /// A thread ends with the events that have been observed.
    pub(super) fn end_here(&mut self, thread: ThreadId) {
        let c = self.column(thread);
        self.columns[c].end = Some(self.columns[c].count());
    }

    /// Nothing more will arrive: all threads end here.
    pub(super) fn end_all(&mut self) {
        self.complete = true;
        for column in &mut self.columns {
            column.end = Some(column.count());
        }
    }

    /// Accepts the events that had to wait.
    fn settle(&mut self, c: usize) {
        let column = &mut self.columns[c];
        let before = (column.knows.len(), column.needs.len());
        column.count_forks();
        loop {
            let next = column.count();
            let Some(first) = column.early.first_entry() else { break };
            if *first.key() != next || first.get().forks > column.forks {
                break;
            }
            let Early { item, knows, .. } = first.remove();
            for need in knows {
                let known = entry(&mut column.knows, need.column as usize);
                if need.count > *known && need.column as usize != c {
                    *known = need.count;
                    column.needs.push(need);
                }
            }
            column.push(item);
            column.count_forks();
            self.queued += 1;
        }
        if let Some((count, forks)) = column.early_end
            && count == column.count()
            && forks <= column.forks
        {
            column.end = Some(count);
        }
        self.knows += column.knows.len() - before.0;
        self.needs += column.needs.len() - before.1;
    }

    /// Whether every thread that there will be is known, with its end.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether the next event of a column can happen after these numbers of events of each column.
    ///
    /// The cut is consistent, so whatever the column's events so far need has happened, and only
    /// what the next one needs beyond that is looked at. Only the first `known` events of each column are considered.
    #[inline]
    pub(super) fn is_enabled(&self, column: usize, counts: &[u32], known: &[u32]) -> bool {
        let k = counts[column];
        k < known[column] && {
            let mut needs = self.columns[column].needs(k).iter();
            needs.all(|need| need.count <= counts[need.column as usize])
        }
    }

    /// How many events of each column have arrived.
    pub(super) fn counts(&self) -> Vec<u32> {
        self.columns.iter().map(Column::count).collect()
    }

    /// Whether all that can happen next is known, for cuts with at most the given number of events of each
    /// column: the next event, or that there is none, or that the thread has not started.
    pub(super) fn is_known_beyond(&self, most: &[u32]) -> bool {
        let most = |c: usize| most.get(c).copied().unwrap_or(0);
        let known = |(c, column): (usize, &Column)| {
            let unborn = column.fork.is_some_and(|fork| most(fork.column as usize) < fork.count);
            most(c) < column.count() || column.end == Some(column.count()) || unborn
        };
        self.complete || self.columns.iter().enumerate().all(known)
    }

    /// A level is left: events that arrive from now on are too late for it.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// Whether a thread that was not forked first appeared when levels had been left.
    pub(super) fn has_late_threads(&self) -> bool {
        self.columns.iter().any(|c| c.late && c.fork.is_none() && c.count() > 0)
    }

    /// Whether events arrived whose predecessors never did.
    pub(super) fn has_gaps(&self) -> bool {
        self.columns.iter().any(|c| !c.early.is_empty())
    }

    /// Drops events that are in every cut: the first ones of each column.
    pub(super) fn let_go(&mut self, least: &[u32]) {
        for (column, &least) in self.columns.iter_mut().zip(least) {
            let n = (least - column.gone) as usize;
            // Moving the events that stay must not cost more than dropping the others saves.
            if n < column.items.len() / 2 + 16 {
                continue;
            }
            let last = &column.items[n - 1];
            column.last_gone = (last.index + 1, last.sum);
            column.gone = least;
            column.items.drain(..n);
            let needs = column.starts[n];
            column.needs.drain(..needs);
            self.needs -= needs;
            column.starts.drain(..n);
            column.starts.iter_mut().for_each(|start| *start -= needs);
            self.queued -= n;
        }
    }

    /// Gives written values other numbers.
    pub(super) fn renumber(&mut self, mut number: impl FnMut(u32) -> u32) {
        let items = self.columns.iter_mut().flat_map(|column| &mut column.items);
        items.for_each(|item| item.renumber(&mut number));
        let early = self.columns.iter_mut().flat_map(|column| column.early.values_mut());
        early.for_each(|early| early.item.renumber(&mut number));
    }

    /// How far a cut is from the observed run: the least for the observed cut of each level.
    #[inline]
    pub(super) fn rank(&self, counts: &[u32]) -> (u64, u64) {
        let ranks = self.columns.iter().zip(counts).map(|(column, &k)| column.ranks(k));
        ranks.fold((0, 0), |(latest, sum), (rank, ranks)| (latest.max(rank), sum + ranks))
    }

    /// Which of two cuts is nearer to the observed run.
    pub(super) fn compare(&self, a: &[u32], b: &[u32]) -> Ordering {
        let counts =
            |cut: &[u32]| -> Vec<u32> { self.by_thread.iter().map(|&c| cut[c as usize]).collect() };
        self.rank(a).cmp(&self.rank(b)).then_with(|| counts(a).cmp(&counts(b)))
    }

    /// The columns in the order in which their events were observed, if none was dropped.
    pub(super) fn observed(&self) -> Vec<u32> {
        let of = |(c, column): (usize, &Column)| {
            column.items.iter().map(move |item| (item.index, c as u32)).collect::<Vec<_>>()
        };
        let mut order: Vec<(u64, u32)> = self.columns.iter().enumerate().flat_map(of).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, column)| column).collect()
    }
}
