//! The cuts with equally many events, and what is known of each.

use std::sync::Arc;

use num_bigint::BigUint;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::cut::Packing;

/// The cuts with equally many events.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) packing: Arc<Packing>,
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

    /// The level of the initial state: the empty cut.
    pub(super) fn first() -> Level {
        let packing = Arc::new(Packing::new(Vec::new(), Vec::new()));
        let cuts = vec![0; packing.words()];
        Level { packing, cuts, states: vec![0], sets: vec![0], runs: Runs::one() }
    }

    /// A cut.
    #[inline]
    pub(super) fn cut(&self, n: usize) -> &[u64] {
        let words = self.packing.words();
        &self.cuts[n * words..(n + 1) * words]
    }

    /// How many events of each column a cut has.
    pub(super) fn counts(&self, n: usize) -> Vec<u32> {
        let mut counts = Vec::new();
        self.packing.unpack(self.cut(n), &mut counts);
        counts
    }

    /// Makes room for cuts with the given number of events of each column, and for `more` if the packing has
    /// to change.
    pub(super) fn make_room(&mut self, known: &[u32], more: bool) {
        if self.packing.has_room(known) {
            return;
        }
        let old = std::mem::take(&mut self.packing);
        let mut least = known.to_vec();
        let mut counts = Vec::new();
        let padded = |counts: &[u32], c: usize| counts.get(c).copied().unwrap_or(0);
        for cut in self.cuts.chunks_exact(old.words()) {
            old.unpack(cut, &mut counts);
            for (c, least) in least.iter_mut().enumerate() {
                *least = padded(&counts, c).min(*least);
            }
        }
        let room = |(&known, &least): (&u32, &u32)| match more {
            true => known.saturating_add((known - least).saturating_add(64)),
            false => known,
        };
        let most = known.iter().zip(&least).map(room).collect();
        let new = Packing::new(least, most);
        let mut cuts = Vec::new();
        for cut in self.cuts.chunks_exact(old.words()) {
            old.unpack(cut, &mut counts);
            counts.resize(known.len(), 0);
            new.pack(&counts, &mut cuts);
            counts.truncate(old.len());
        }
        self.cuts = cuts;
        self.packing = Arc::new(new);
    }

    pub(super) fn clear(&mut self) {
        self.cuts.clear();
        self.states.clear();
        self.sets.clear();
        self.runs.numbers.clear();
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        (self.cuts.len() + self.runs.numbers.len() + self.len()) * 8
    }

    /// Appends the cuts of another level, none of which is in this one.
    pub(super) fn append(&mut self, other: &mut Level) {
        self.cuts.append(&mut other.cuts);
        self.states.append(&mut other.states);
        self.sets.append(&mut other.sets);
        self.runs.numbers.append(&mut other.runs.numbers);
    }

    /// Keeps the cuts with these numbers, in this order.
    pub(super) fn select(&mut self, order: &[u32]) {
        fn pick<T: Copy>(from: &[T], order: &[u32], width: usize) -> Vec<T> {
            let of = |&i: &u32| &from[i as usize * width..(i as usize + 1) * width];
            order.iter().flat_map(of).copied().collect()
        }
        self.cuts = pick(&self.cuts, order, self.packing.words());
        self.states = pick(&self.states, order, 1);
        self.sets = pick(&self.sets, order, 1);
        self.runs.numbers = pick(&self.runs.numbers, order, self.runs.width);
    }

    /// The level without its numbers of runs, to be looked at again for a witness.
    pub(super) fn uncounted(&self) -> Level {
        Level {
            packing: Arc::clone(&self.packing),
            cuts: self.cuts.clone(),
            states: self.states.clone(),
            sets: self.sets.clone(),
            runs: Runs { width: 0, form: Form::Uncounted, numbers: Vec::new() },
        }
    }
}

/// How many runs lead to each cut of a level: exact numbers of equally many words, the lowest
/// first, or, when those would cost more than the search itself, rough ones.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    width: usize,
    form: Form,
    numbers: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Exact,
    /// A float between one and two, and the exponent of two it is multiplied with.
    Rough,
    Uncounted,
}

/// How many words an exact number may have: enough for some 2,400 decimal digits.
const MAX_WORDS: usize = 128;
/// How many words the numbers of one level may take together.
const MAX_LEVEL_WORDS: usize = 8 << 20;

impl Default for Runs {
    fn default() -> Self {
        Runs { width: 1, form: Form::Exact, numbers: Vec::new() }
    }
}

/// A number of runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Count {
    /// Exactly this many.
    Exact(BigUint),
    /// About ten to this power.
    About(f64),
}

impl Eq for Count {}

/// A number of runs as it is stored: digits, or the bits of the power.
#[derive(Serialize, Deserialize)]
enum StoredCount {
    Exact(String),
    About(u64),
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let stored = match self {
            Count::Exact(n) => StoredCount::Exact(n.to_string()),
            Count::About(power) => StoredCount::About(power.to_bits()),
        };
        stored.serialize(to)
    }
}

impl<'d> Deserialize<'d> for Count {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Count, D::Error> {
        Ok(match StoredCount::deserialize(from)? {
            StoredCount::Exact(n) => Count::Exact(n.parse().map_err(D::Error::custom)?),
            StoredCount::About(bits) => Count::About(f64::from_bits(bits)),
        })
    }
}

impl Runs {
    /// One run, to one cut.
    pub(super) fn one() -> Runs {
        Runs { numbers: vec![1], ..Runs::default() }
    }

    /// An empty level's numbers, for sums of at most `terms` numbers of these each. `spare` keeps
    /// its memory.
    pub(super) fn follow(&self, terms: usize, spare: &mut Runs) {
        spare.numbers.clear();
        (spare.width, spare.form) = (self.width, self.form);
        if self.form != Form::Exact {
            return;
        }
        let top = self.numbers.chunks(self.width).map(|n| n[self.width - 1]).max().unwrap_or(0);
        // The sums must not overflow.
        if top > u64::MAX / (terms as u64 + 1) {
            spare.width += 1;
        }
        let cuts = self.numbers.len() / self.width;
        if spare.width > MAX_WORDS || (spare.width > 2 && spare.width * cuts > MAX_LEVEL_WORDS) {
            (spare.width, spare.form) = (2, Form::Rough);
        }
    }

    /// Adds the runs to cut `n` of `from` to those to cut `i`, which may be new.
    #[inline]
    pub(super) fn add(&mut self, i: usize, from: &Runs, n: usize) {
        match self.form {
            Form::Exact if self.width == 1 => match self.numbers.get_mut(i) {
                Some(sum) => *sum += from.numbers[n],
                None => self.numbers.push(from.numbers[n]),
            },
            Form::Exact => {
                if i * self.width == self.numbers.len() {
                    self.numbers.resize((i + 1) * self.width, 0);
                }
                let sum = &mut self.numbers[i * self.width..(i + 1) * self.width];
                let more = &from.numbers[n * from.width..(n + 1) * from.width];
                let mut carry = false;
                for (place, word) in sum.iter_mut().enumerate() {
                    let more = more.get(place).copied().unwrap_or(0);
                    let (added, over) = word.overflowing_add(more);
                    let (added, over_too) = added.overflowing_add(u64::from(carry));
                    (*word, carry) = (added, over || over_too);
                }
            }
            Form::Rough => {
                let more = from.rough(n);
                let sum = if i * 2 == self.numbers.len() {
                    self.numbers.extend([0, 0]);
                    more
                } else {
                    add_rough(self.rough(i), more)
                };
                self.numbers[i * 2] = sum.0.to_bits();
                self.numbers[i * 2 + 1] = sum.1;
            }
            Form::Uncounted => {}
        }
    }

    fn rough(&self, n: usize) -> (f64, u64) {
        let number = &self.numbers[n * self.width..(n + 1) * self.width];
        if self.form == Form::Rough {
            return (f64::from_bits(number[0]), number[1]);
        }
        let Some(top) = number.iter().rposition(|&word| word != 0) else { return (0.0, 0) };
        let below = if top > 0 { number[top - 1] as f64 / 2f64.powi(64) } else { 0.0 };
        normal(number[top] as f64 + below, top as u64 * 64)
    }

    /// How many runs lead to cut `i`, if they were counted.
    pub(super) fn get(&self, i: usize) -> Option<Count> {
        let number = self.numbers.get(i * self.width..(i + 1) * self.width)?;
        match self.form {
            Form::Exact => {
                let bytes: Vec<u8> = number.iter().flat_map(|word| word.to_le_bytes()).collect();
                Some(Count::Exact(BigUint::from_bytes_le(&bytes)))
            }
            Form::Rough => {
                let (float, exponent) = self.rough(i);
                Some(Count::About((float.log2() + exponent as f64) * std::f64::consts::LOG10_2))
            }
            Form::Uncounted => None,
        }
    }
}

fn normal(mut float: f64, mut exponent: u64) -> (f64, u64) {
    while float >= 2.0 {
        (float, exponent) = (float / 2.0, exponent + 1);
    }
    (float, exponent)
}

fn add_rough(a: (f64, u64), b: (f64, u64)) -> (f64, u64) {
    let (large, small) = if a.1 >= b.1 { (a, b) } else { (b, a) };
    let shift = (large.1 - small.1).min(2000) as i32;
    normal(large.0 + small.0 * 2f64.powi(-shift), large.1)
}

/// The levels passed so far, as far as there is room: every one, or every second, fourth and so on.
#[derive(Debug)]
pub(super) struct History {
    levels: Vec<(usize, Level)>,
    step: usize,
    bytes: usize,
    room: usize,
}

/// What a level takes in a history besides its cuts: its place in a list that grows by doubling, and
/// what an allocator needs for three vectors. Millions of levels can have one cut each.
const LEVEL_BYTES: usize = 2 * size_of::<(usize, Level)>() + 3 * 24;

impl History {
    pub(super) fn new(room: usize) -> History {
        History { levels: Vec::new(), step: 1, bytes: 0, room }
    }

    pub(super) fn keep(&mut self, depth: usize, level: &Level) {
        if !depth.is_multiple_of(self.step) {
            return;
        }
        let level = level.uncounted();
        self.bytes += level.bytes() + LEVEL_BYTES;
        self.levels.push((depth, level));
        while self.bytes > self.room && self.levels.len() > 2 {
            self.step *= 2;
            self.levels.retain(|(depth, _)| depth.is_multiple_of(self.step));
            self.bytes = self.levels.iter().map(|(_, level)| level.bytes() + LEVEL_BYTES).sum();
        }
    }

    /// The latest level kept that is not after `depth`.
    pub(super) fn at_or_before(&self, depth: usize) -> Option<(usize, &Level)> {
        let kept = self.levels.iter().rev().find(|(d, _)| *d <= depth)?;
        Some((kept.0, &kept.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs through a ladder of two cuts a level, each reached from both of the level before, so
    /// that their number doubles.
    fn doubled(levels: usize) -> Count {
        let (mut runs, mut next) = (Runs::default(), Runs::default());
        runs.numbers = vec![1, 1];
        for _ in 0..levels {
            runs.follow(2, &mut next);
            for to in 0..2 {
                next.add(to, &runs, 0);
                next.add(to, &runs, 1);
            }
            std::mem::swap(&mut runs, &mut next);
        }
        runs.get(1).expect("there are two cuts")
    }

    #[test]
    fn runs_are_counted_exactly_as_long_as_that_is_cheap() {
        for levels in [0, 1, 62, 63, 64, 127, 128, 1000, 8000] {
            assert_eq!(doubled(levels), Count::Exact(BigUint::from(1u8) << levels), "{levels}");
        }
        let Count::About(digits) = doubled(20_000) else { panic!("not that many digits") };
        assert!((digits - 20_000.0 * 2f64.log10()).abs() < 0.001, "{digits}");
    }
}
