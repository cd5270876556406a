//! The search itself: from each level to the next.

use std::time::{Duration, Instant};

use foresee_spec::monitor::{Monitor, TooManyStates};
use foresee_spec::observe::Lens;
use foresee_trace::Outcome;
use hashbrown::HashTable;
use num_bigint::BigUint;

use super::cut::{Packing, hash};
use super::slice::Slice;
use super::tables::{Sets, States};

/// How far to search.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many cuts of a level are followed at most: those nearest to the observed run. `None`
    /// follows all.
    pub window: Option<usize>,
    /// How many relevant events of a property are kept; what comes later is not looked at.
    pub events: usize,
    /// How many cuts are looked at in all.
    pub cuts: u64,
    /// How many cuts of one level are kept in memory.
    pub level: usize,
    /// How long to search.
    pub time: Option<Duration>,
    /// How many bytes are spent on remembering levels for the witness. When they do not suffice,
    /// levels are thinned out and recomputed when needed.
    pub history: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            window: None,
            events: 10_000_000,
            cuts: 100_000_000,
            level: 4_000_000,
            time: None,
            history: 256 << 20,
        }
    }
}

/// The cuts with equally many events.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    /// The packed cuts, one after the other.
    pub(super) cuts: Vec<u64>,
    /// The program state of each, by number.
    pub(super) states: Vec<u32>,
    /// The set of monitor states of each, by number.
    pub(super) sets: Vec<u32>,
    pub(super) runs: Runs,
}

impl Level {
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    fn clear(&mut self) {
        self.cuts.clear();
        self.states.clear();
        self.sets.clear();
        self.runs.clear();
    }

    fn bytes(&self) -> usize {
        self.cuts.len() * 8 + self.len() * 8
    }
}

/// How many runs lead to each cut of a level.
#[derive(Clone, Debug)]
pub(super) enum Runs {
    Small(Vec<u128>),
    Big(Vec<BigUint>),
    /// Writing the numbers down would take more memory than the search.
    Uncounted,
}

/// Beyond this many bytes of numbers in a level runs are not counted any more.
const MAX_RUN_BYTES: usize = 64 << 20;

impl Default for Runs {
    fn default() -> Self {
        Runs::Small(Vec::new())
    }
}

impl Runs {
    fn clear(&mut self) {
        match self {
            Runs::Small(runs) => runs.clear(),
            Runs::Big(runs) => runs.clear(),
            Runs::Uncounted => {}
        }
    }

    /// Makes `self`, which is empty, able to take sums of the numbers of `from`.
    fn follow(&mut self, from: &Runs, threads: usize) {
        let roomy = u128::MAX / (threads as u128).max(1);
        *self = match from {
            Runs::Small(runs) if runs.iter().all(|&n| n <= roomy) => return self.clear_small(),
            Runs::Small(_) => Runs::Big(Vec::new()),
            Runs::Big(runs) => {
                let bits = runs.iter().map(BigUint::bits).max().unwrap_or(0) as usize;
                if bits / 8 * runs.len() > MAX_RUN_BYTES {
                    Runs::Uncounted
                } else {
                    Runs::Big(Vec::new())
                }
            }
            Runs::Uncounted => Runs::Uncounted,
        };
    }

    fn clear_small(&mut self) {
        match self {
            Runs::Small(runs) => runs.clear(),
            _ => *self = Runs::default(),
        }
    }

    /// Adds the runs to cut `n` of `from` to those to cut `i`, which may be new.
    #[inline]
    fn add(&mut self, i: usize, from: &Runs, n: usize) {
        match (self, from) {
            (Runs::Small(to), Runs::Small(from)) => match to.get_mut(i) {
                Some(sum) => *sum += from[n],
                None => to.push(from[n]),
            },
            (Runs::Big(to), from) => {
                let more = from.get(n).unwrap_or_default();
                match to.get_mut(i) {
                    Some(sum) => *sum += more,
                    None => to.push(more),
                }
            }
            (Runs::Small(_) | Runs::Uncounted, _) => {}
        }
    }

    /// How many runs lead to cut `i`, if they were counted.
    pub(super) fn get(&self, i: usize) -> Option<BigUint> {
        match self {
            Runs::Small(runs) => runs.get(i).map(|&n| n.into()),
            Runs::Big(runs) => runs.get(i).cloned(),
            Runs::Uncounted => None,
        }
    }

    /// Puts the numbers into another order and drops the rest.
    fn select(&mut self, order: &[u32]) {
        match self {
            Runs::Small(runs) => *runs = order.iter().map(|&i| runs[i as usize]).collect(),
            Runs::Big(runs) => *runs = order.iter().map(|&i| runs[i as usize].clone()).collect(),
            Runs::Uncounted => {}
        }
    }
}

/// A step that violates the property: from a cut of a level, by the next event of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) cut: u32,
    pub(super) column: u32,
}

/// What the search knows of the slice, the property and its limits.
pub(super) struct Search<'a> {
    pub(super) slice: &'a Slice,
    pub(super) lens: &'a Lens,
    pub(super) monitor: &'a mut Monitor,
    pub(super) states: States,
    pub(super) sets: Sets,
    pub(super) packing: Packing,
    limits: Limits,
    ranks: Ranks,
    table: HashTable<u32>,
    counts: Vec<u32>,
    cut: Vec<u64>,
}

/// What came of a search.
#[derive(Debug)]
pub(super) struct Searched {
    pub(super) outcome: Outcome,
    /// The first level that was not searched completely.
    pub(super) first_cut_off: Option<usize>,
    pub(super) cuts: u64,
    pub(super) levels: usize,
    pub(super) widest: usize,
    /// How many runs were followed to their end, if they were counted.
    pub(super) runs: Option<BigUint>,
    /// The level in front of the first violating step, and the step.
    pub(super) violation: Option<(usize, Bad)>,
    pub(super) history: History,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        slice: &'a Slice,
        lens: &'a Lens,
        monitor: &'a mut Monitor,
        states: States,
        start: Sets,
        limits: Limits,
    ) -> Search<'a> {
        let packing = Packing::new(slice.columns.iter().map(|c| c.items.len()));
        Search {
            cut: vec![0; packing.words()],
            counts: vec![0; slice.columns.len()],
            ranks: Ranks::new(slice),
            table: HashTable::new(),
            slice,
            lens,
            monitor,
            states,
            sets: start,
            packing,
            limits,
        }
    }

    /// The level of the initial state.
    pub(super) fn first(&self) -> Level {
        Level {
            cuts: vec![0; self.packing.words()],
            states: vec![0],
            sets: vec![0],
            runs: Runs::Small(vec![1]),
        }
    }

    /// Searches level by level.
    pub(super) fn run(&mut self) -> Result<Searched, TooManyStates> {
        let start = Instant::now();
        let (mut level, mut next) = (self.first(), Level::default());
        let mut found = Searched {
            outcome: Outcome::Exhausted,
            first_cut_off: None,
            cuts: 1,
            levels: 1,
            widest: 1,
            runs: None,
            violation: None,
            history: History::new(self.limits.history),
        };
        let mut bad = Vec::new();
        for depth in 0..self.slice.len() {
            let cut_off = self.advance(&level, &mut next, &mut bad)?;
            if found.violation.is_none() {
                // Up to the first violation every level may be needed for the witness.
                found.history.keep(depth, &level);
                let nearest = bad.iter().min_by_key(|b| self.key_after(&level, b)).copied();
                found.violation = nearest.map(|bad| (depth, bad));
            }
            if cut_off {
                found.outcome = Outcome::Window;
                found.first_cut_off.get_or_insert(depth + 1);
            }
            found.cuts += next.len() as u64;
            found.levels += 1;
            found.widest = found.widest.max(next.len());
            std::mem::swap(&mut level, &mut next);
            let stop = match self.limits.time {
                _ if found.cuts > self.limits.cuts => Some(Outcome::StateLimit),
                _ if level.len() > self.limits.level => Some(Outcome::StateLimit),
                Some(limit) if start.elapsed() > limit => Some(Outcome::TimeLimit),
                _ => None,
            };
            if let Some(outcome) = stop.filter(|_| depth + 1 < self.slice.len()) {
                found.outcome = outcome;
                found.first_cut_off.get_or_insert(depth + 2);
                return Ok(found);
            }
        }
        found.runs = level.runs.get(0);
        Ok(found)
    }

    /// Builds the level after `level`, and collects the steps that violate the property. Whether
    /// the window left something out.
    pub(super) fn advance(
        &mut self,
        level: &Level,
        next: &mut Level,
        bad: &mut Vec<Bad>,
    ) -> Result<bool, TooManyStates> {
        let (words, columns) = (self.packing.words(), self.slice.columns.len());
        next.clear();
        next.runs.follow(&level.runs, columns);
        bad.clear();
        self.table.clear();
        for n in 0..level.len() {
            // The level is given up as soon as it is too large, not when it is built.
            if next.len() > self.limits.level {
                break;
            }
            let from = &level.cuts[n * words..(n + 1) * words];
            self.packing.unpack(from, &mut self.counts);
            for column in 0..columns {
                if !self.slice.is_enabled(column, &self.counts) {
                    continue;
                }
                let item = &self.slice.columns[column].items[self.counts[column] as usize];
                self.cut.copy_from_slice(from);
                let (word, one) = self.packing.one(column);
                self.cut[word] += one;
                let to = self.place(next, level.states[n], item.write);
                let letter = self.states.bits(next.states[to]) | item.atoms;
                let (set, is_bad) = self.sets.step(level.sets[n], letter, self.monitor)?;
                next.sets[to] = match next.sets[to] {
                    NEW => set,
                    old => self.sets.union(old, set),
                };
                next.runs.add(to, &level.runs, n);
                if is_bad {
                    bad.push(Bad { cut: n as u32, column: column as u32 });
                }
            }
        }
        match self.limits.window {
            Some(window) if next.len() > window => {
                self.narrow(next, window.max(1));
                // Only runs inside the window are looked at: with a window of one, the observed run.
                bad.retain(|bad| self.leads_into(level, bad, next));
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// The place of `self.cut` in the level, where it is put if it is new.
    #[inline]
    fn place(&mut self, next: &mut Level, state: u32, write: Option<u32>) -> usize {
        let words = self.packing.words();
        let cut = &self.cut[..];
        let at = |i: u32| i as usize * words;
        let cuts = &next.cuts;
        let found = self.table.find(hash(cut), |&i| cuts[at(i)..at(i) + words] == *cut);
        if let Some(&i) = found {
            return i as usize;
        }
        let i = next.sets.len();
        next.cuts.extend_from_slice(cut);
        next.sets.push(NEW);
        // All writes of a variable are ordered, so every way to this cut gives the same state.
        next.states.push(match write {
            Some(write) => self.states.after(state, write, self.lens),
            None => state,
        });
        let cuts = &next.cuts;
        self.table.insert_unique(hash(cut), i as u32, |&i| hash(&cuts[at(i)..at(i) + words]));
        i
    }

    /// Keeps the cuts nearest to the observed run, which is always among them.
    fn narrow(&mut self, level: &mut Level, window: usize) {
        let words = self.packing.words();
        let mut order: Vec<u32> = (0..level.len() as u32).collect();
        let mut keys = Vec::with_capacity(order.len());
        for n in 0..level.len() {
            self.packing.unpack(&level.cuts[n * words..(n + 1) * words], &mut self.counts);
            keys.push((self.ranks.key(&self.counts), self.counts.clone()));
        }
        order.sort_unstable_by(|&a, &b| keys[a as usize].cmp(&keys[b as usize]));
        order.truncate(window);
        let cut = |&i: &u32| &level.cuts[i as usize * words..(i as usize + 1) * words];
        level.cuts = order.iter().flat_map(cut).copied().collect();
        level.states = order.iter().map(|&i| level.states[i as usize]).collect();
        level.sets = order.iter().map(|&i| level.sets[i as usize]).collect();
        level.runs.select(&order);
    }

    /// Whether the cut after a step is in the next level.
    fn leads_into(&self, level: &Level, bad: &Bad, next: &Level) -> bool {
        let words = self.packing.words();
        let n = bad.cut as usize;
        let mut cut = level.cuts[n * words..(n + 1) * words].to_vec();
        let (word, one) = self.packing.one(bad.column as usize);
        cut[word] += one;
        next.cuts.chunks(words).any(|kept| *kept == cut)
    }

    /// How far the cut after a step is from the observed run.
    fn key_after(&self, level: &Level, bad: &Bad) -> (u64, u64, Vec<u32>) {
        let mut counts = self.counts_of(level, bad.cut as usize);
        counts[bad.column as usize] += 1;
        let (latest, sum) = self.ranks.key(&counts);
        (latest, sum, counts)
    }

    /// A cut of a level, taken apart.
    pub(super) fn counts_of(&self, level: &Level, n: usize) -> Vec<u32> {
        let words = self.packing.words();
        let mut counts = vec![0; self.slice.columns.len()];
        self.packing.unpack(&level.cuts[n * words..(n + 1) * words], &mut counts);
        counts
    }
}

/// No set yet.
const NEW: u32 = u32::MAX;

/// When the events of each column were observed, counting relevant events.
#[derive(Debug)]
struct Ranks {
    /// For each column and count: the rank of the latest event, and the sum of all ranks.
    columns: Vec<Vec<(u64, u64)>>,
}

impl Ranks {
    fn new(slice: &Slice) -> Ranks {
        let mut columns = vec![vec![(0, 0)]; slice.columns.len()];
        for (rank, &column) in slice.observed.iter().enumerate() {
            let column: &mut Vec<(u64, u64)> = &mut columns[column as usize];
            let (_, sum) = column[column.len() - 1];
            column.push((rank as u64 + 1, sum + rank as u64 + 1));
        }
        Ranks { columns }
    }

    /// How far a cut is from the observed run: the least for the observed cut of each level.
    #[inline]
    fn key(&self, counts: &[u32]) -> (u64, u64) {
        let ranks = self.columns.iter().zip(counts).map(|(c, &n)| c[n as usize]);
        ranks.fold((0, 0), |(latest, sum), (rank, ranks)| (latest.max(rank), sum + ranks))
    }
}

/// Levels that were passed, as far as there is room: every one, or every second, fourth and so on.
#[derive(Debug)]
pub(super) struct History {
    levels: Vec<(usize, Level)>,
    step: usize,
    bytes: usize,
    room: usize,
}

impl History {
    fn new(room: usize) -> History {
        History { levels: Vec::new(), step: 1, bytes: 0, room }
    }

    fn keep(&mut self, depth: usize, level: &Level) {
        if !depth.is_multiple_of(self.step) {
            return;
        }
        self.bytes += level.bytes();
        self.levels.push((depth, Level { runs: Runs::Uncounted, ..level.clone() }));
        while self.bytes > self.room && self.levels.len() > 2 {
            self.step *= 2;
            self.levels.retain(|(depth, _)| depth.is_multiple_of(self.step));
            self.bytes = self.levels.iter().map(|(_, level)| level.bytes()).sum();
        }
    }

    /// The latest level kept that is not after `depth`.
    pub(super) fn at_or_before(&self, depth: usize) -> Option<(usize, &Level)> {
        let kept = self.levels.iter().rev().find(|(d, _)| *d <= depth)?;
        Some((kept.0, &kept.1))
    }
}
