//! From a level to the next, on one core or several.
//!
//! Workers share the cuts of the *next* level among them by the count of one thread: each builds
//! those on its side, so no two build the same cut, and nothing has to be passed between them or
//! merged. Each goes through the whole level, but takes apart only the cuts that lead to its side.

use std::ops::Range;
use std::sync::Arc;

use foresee_spec::monitor::TooManyStates;
use hashbrown::HashTable;

use super::cut::hash;
use super::events::Events;
use super::level::Level;
use super::tables::{Memo, Shared};

/// A step that violates the property: from a cut of a level, by the next event of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) cut: u32,
    pub(super) column: u32,
}

/// Levels with fewer cuts are built by one worker: starting others takes longer.
const WORTH_SHARING: usize = 1 << 12;

/// Builds levels.
#[derive(Debug)]
pub(super) struct Expander {
    workers: Vec<Worker>,
    /// The fewest and the most events of each column in the cuts of the level before the one built
    /// last, and in the latter.
    pub(super) least: Vec<u32>,
    pub(super) most: Vec<u32>,
}

#[derive(Debug, Default)]
struct Worker {
    memo: Memo,
    table: HashTable<u32>,
    counts: Vec<u32>,
    cut: Vec<u64>,
    part: Level,
    bad: Vec<Bad>,
    least: Vec<u32>,
    most: Vec<u32>,
}

/// What a worker builds: cuts whose count at a place of the packing is in a range.
#[derive(Clone, Debug)]
struct Side {
    place: usize,
    range: Range<u32>,
}

/// What levels are built from.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a, 'm> {
    pub(super) events: &'a Events,
    /// How many events of each column are known.
    pub(super) known: &'a [u32],
    pub(super) tables: &'a Shared<'a, 'm>,
    /// How many cuts a level may have; beyond, it is given up half-built.
    pub(super) room: usize,
}

impl Expander {
    /// Builds on this many cores.
    pub(super) fn new(cores: usize) -> Expander {
        let workers = (0..cores.max(1)).map(|_| Worker::default()).collect();
        Expander { workers, least: Vec::new(), most: Vec::new() }
    }

    /// Clears the workers' caches, because numbers have changed.
    pub(super) fn forget(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.memo.clear());
    }

    /// Bytes of the hash tables in use.
    pub(super) fn bytes(&self) -> usize {
        // A number and a tag for each place, of which an eighth stays empty.
        self.workers.iter().map(|worker| worker.table.capacity() * 5 * 8 / 7).sum()
    }

    /// Builds the level after `level`, and collects the steps that violate the property.
    pub(super) fn expand(
        &mut self,
        ground: Ground<'_, '_>,
        level: &Level,
        next: &mut Level,
        bad: &mut Vec<Bad>,
    ) -> Result<(), TooManyStates> {
        next.clear();
        next.packing = Arc::clone(&level.packing);
        bad.clear();
        let sides = match level.len() < WORTH_SHARING {
            true => Vec::new(),
            false => sides(level, self.workers.len()),
        };
        let columns = level.packing.columns().len();
        level.runs.follow(columns, &mut next.runs);
        if sides.len() < 2 {
            let worker = &mut self.workers[0];
            std::mem::swap(&mut worker.part, next);
            worker.build(ground, level, None)?;
            std::mem::swap(&mut worker.part, next);
            bad.append(&mut worker.bad);
            self.least.clone_from(&worker.least);
            self.most.clone_from(&worker.most);
            return Ok(());
        }
        let workers = &mut self.workers[..sides.len()];
        for worker in workers.iter_mut() {
            worker.part.clear();
            worker.part.packing = Arc::clone(&level.packing);
            level.runs.follow(columns, &mut worker.part.runs);
        }
        std::thread::scope(|scope| {
            let build = |(worker, side)| {
                let worker: &mut Worker = worker;
                scope.spawn(move || worker.build(ground, level, Some(side)))
            };
            let running: Vec<_> = workers.iter_mut().zip(&sides).map(build).collect();
            let ended = running.into_iter().map(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.fold(Ok(()), Result::and)
        })?;
        self.least.clone_from(&workers[0].least);
        self.most.clone_from(&workers[0].most);
        for worker in workers {
            next.append(&mut worker.part);
            bad.append(&mut worker.bad);
            self.least.iter_mut().zip(&worker.least).for_each(|(a, b)| *a = (*a).min(*b));
            self.most.iter_mut().zip(&worker.most).for_each(|(a, b)| *a = (*a).max(*b));
        }
        Ok(())
    }
}

/// Shares the next level among workers, by the count that differs most among the cuts of this one.
fn sides(level: &Level, workers: usize) -> Vec<Side> {
    let packing = &*level.packing;
    let words = packing.words();
    let sample = |place| {
        let cuts = level.cuts.chunks_exact(words).step_by(level.len() / 1024 + 1);
        let mut counts: Vec<u32> = cuts.map(|cut| packing.count(cut, place)).collect();
        counts.sort_unstable();
        (counts[counts.len() - 1] - counts[0], place, counts)
    };
    let places = 0..packing.columns().len();
    let Some((_, place, counts)) = places.map(sample).max() else { return Vec::new() };
    let mut bounds: Vec<u32> =
        (1..workers).map(|w| counts[counts.len() * w / workers] + 1).collect();
    bounds.dedup();
    let starts = std::iter::once(0).chain(bounds.iter().copied());
    let ends = bounds.iter().copied().chain([u32::MAX]);
    starts.zip(ends).map(|(start, end)| Side { place, range: start..end }).collect()
}

/// No set yet.
const NEW: u32 = u32::MAX;

impl Worker {
    /// Builds the cuts of one side, or all.
    fn build(
        &mut self,
        ground: Ground<'_, '_>,
        level: &Level,
        side: Option<&Side>,
    ) -> Result<(), TooManyStates> {
        let Ground { tables, room, .. } = ground;
        let packing = &*level.packing;
        let words = packing.words();
        self.bad.clear();
        self.table.clear();
        self.counts.clear();
        self.cut.resize(words, 0);
        self.least.clear();
        self.least.resize(ground.events.columns().len(), u32::MAX);
        self.most.clear();
        self.most.resize(ground.events.columns().len(), 0);
        self.memo.catch_up(tables);
        for (n, from) in level.cuts.chunks_exact(words).enumerate() {
            // Gives up as soon as the level is too large, not when it is complete.
            if self.part.len() > room {
                break;
            }
            // Which places move: all but one, only that one, or all.
            let (mut without, mut only) = (None, None);
            if let Some(Side { place, range }) = side {
                let count = packing.count(from, *place);
                if count + 1 < range.start || count >= range.end {
                    continue;
                }
                only = (count < range.start).then_some(*place);
                without = (count + 1 >= range.end).then_some(*place);
            }
            packing.unpack(from, &mut self.counts);
            for (least, &count) in self.least.iter_mut().zip(&self.counts) {
                *least = count.min(*least);
            }
            for (most, &count) in self.most.iter_mut().zip(&self.counts) {
                *most = count.max(*most);
            }
            match only {
                Some(place) => self.move_one(ground, level, (n, from), place)?,
                None => {
                    for place in (0..packing.columns().len()).filter(|&p| Some(p) != without) {
                        self.move_one(ground, level, (n, from), place)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the cut after the next event at a place of the packing, if it can happen.
    #[inline]
    fn move_one(
        &mut self,
        ground: Ground<'_, '_>,
        level: &Level,
        (n, from): (usize, &[u64]),
        place: usize,
    ) -> Result<(), TooManyStates> {
        let Ground { events, known, tables, .. } = ground;
        let packing = &*level.packing;
        let column = packing.column(place);
        if !events.is_enabled(column, &self.counts, known) {
            return Ok(());
        }
        let count = self.counts[column];
        let item = events.columns()[column].item(count);
        self.cut.copy_from_slice(from);
        let (word, one) = packing.one(place);
        self.cut[word] += one;
        let to = self.place(level.states[n], item.write(), tables);
        let letter = self.memo.bits(self.part.states[to]) | item.atoms;
        let (set, is_bad) = self.memo.step(level.sets[n], letter, tables)?;
        self.part.sets[to] = match self.part.sets[to] {
            NEW => set,
            old => self.memo.union(old, set, tables),
        };
        self.part.runs.add(to, &level.runs, n);
        self.most[column] = self.most[column].max(count + 1);
        if is_bad {
            self.bad.push(Bad { cut: n as u32, column: column as u32 });
        }
        Ok(())
    }

    /// The place of `self.cut` in the level, where it is put if it is new.
    #[inline]
    fn place(&mut self, state: u32, write: Option<u32>, tables: &Shared<'_, '_>) -> usize {
        let words = self.cut.len();
        let at = |i: u32| i as usize * words;
        let (cut, cuts) = (&self.cut[..], &self.part.cuts);
        let hashed = hash(cut);
        if let Some(&i) = self.table.find(hashed, |&i| cuts[at(i)..at(i) + words] == *cut) {
            return i as usize;
        }
        let i = self.part.sets.len();
        self.part.cuts.extend_from_slice(cut);
        self.part.sets.push(NEW);
        // All writes of a variable are ordered, so every way to this cut gives the same state.
        self.part.states.push(match write {
            Some(write) => self.memo.after(state, write, tables),
            None => state,
        });
        let cuts = &self.part.cuts;
        self.table.insert_unique(hashed, i as u32, |&i| hash(&cuts[at(i)..at(i) + words]));
        i
    }
}
