//! One maximum tuple for each subset of positions.
//!
//! If the candidates of each position are a chain, the later of two tuples, position by position,
//! is a tuple again: so among all tuples for a subset of the positions there is a greatest one, and
//! that one is as good as any for everything that may follow. A new event extends the greatest
//! tuple of a subset by one position, unless it knows an event of a later position.
//!
//! Positions with the same candidates are filled from left to right, so only subsets that are
//! closed to the left matter. Subsets are gone through from the largest to the smallest: a tuple
//! that was just extended must not be extended again by the same event.

use foresee_causality::LaneVector;

use super::event::{Mark, Now};

/// How many subsets a table may have.
const MAX_SUBSETS: usize = 4096;

/// The subsets of the positions of one sequence.
#[derive(Debug)]
pub(super) struct Subsets {
    length: usize,
    /// As bits, from the full set to the empty one.
    sets: Vec<u64>,
}

/// An event at `position` makes a tuple of `to` from one of `from`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) position: u32,
    /// The positions of `from` whose events it must not know.
    pub(super) later: u64,
}

impl Subsets {
    /// The subsets that matter, where equal numbers in `kinds` stand for equal candidates; `None`
    /// if there are too many.
    pub(super) fn new(kinds: &[usize]) -> Option<Subsets> {
        if kinds.len() > 64 {
            return None;
        }
        let mut sets = vec![0u64];
        for i in 0..kinds.len() {
            let twin = (0..i).rfind(|&j| kinds[j] == kinds[i]);
            let may_have = |set: u64| twin.is_none_or(|j| set >> j & 1 == 1);
            let with: Vec<u64> =
                sets.iter().filter(|&&set| may_have(set)).map(|set| set | 1 << i).collect();
            sets.extend(with);
            if sets.len() > MAX_SUBSETS {
                return None;
            }
        }
        sets.sort_unstable_by_key(|set| (std::cmp::Reverse(set.count_ones()), *set));
        Some(Subsets { length: kinds.len(), sets })
    }

    /// How many there are, the empty one included.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// What an event does that is a candidate of these positions, in the order in which to do it.
    pub(super) fn moves(&self, matched: u64) -> Box<[Move]> {
        let mut moves = Vec::new();
        for (from, &set) in self.sets.iter().enumerate() {
            // At an earlier position the event would know those in its own chain.
            let first = 64 - (set & matched).leading_zeros();
            for position in (first..64).filter(|&i| matched >> i & 1 == 1 && set >> i & 1 == 0) {
                let with = set | 1 << position;
                let Some(to) = self.sets.iter().position(|&s| s == with) else { continue };
                let later = set & !((2u64 << position) - 1);
                moves.push(Move { from: from as u32, to: to as u32, position, later });
            }
        }
        moves.into()
    }
}

/// The greatest tuple of each subset so far.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Which subsets have one.
    known: Box<[bool]>,
    /// The tuples, one after the other.
    marks: Box<[Mark]>,
}

impl Table {
    pub(super) fn new(subsets: &Subsets) -> Table {
        let mut known = vec![false; subsets.len()];
        known[subsets.len() - 1] = true;
        let marks = vec![Mark::default(); subsets.len() * subsets.length];
        Table { known: known.into(), marks: marks.into() }
    }

    /// Takes the next event; the events of a full tuple, if there is one now. `lanes` are those of
    /// the positions.
    #[inline]
    pub(super) fn step<V: LaneVector>(
        &mut self,
        subsets: &Subsets,
        moves: &[Move],
        lanes: &[Option<u32>],
        now: &Now<'_, V>,
    ) -> Option<Vec<u64>> {
        let length = subsets.length;
        for step in moves {
            if !self.known[step.from as usize] {
                continue;
            }
            let from = step.from as usize * length;
            let mut later = step.later;
            let mut fits = true;
            while later != 0 && fits {
                fits = !now.knows(&self.marks[from + later.trailing_zeros() as usize]);
                later &= later - 1;
            }
            if fits {
                let to = step.to as usize * length;
                self.marks.copy_within(from..from + length, to);
                let position = step.position as usize;
                self.marks[to + position] = now.mark(lanes[position]);
                self.known[step.to as usize] = true;
            }
        }
        self.known[0].then(|| self.marks[..length].iter().map(|mark| mark.index).collect())
    }
}
