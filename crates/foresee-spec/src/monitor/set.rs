//! Sets of monitor states: one word for few states, an array of words for more.

use super::StateId;

/// A set of states. Two sets are equal if they contain the same states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StateSet {
    low: u64,
    /// States from 64 on; the last word is never zero, so that equal sets have equal
    /// representations.
    high: Vec<u64>,
}

impl StateSet {
    /// The set of one state.
    pub fn of(state: StateId) -> StateSet {
        let mut set = StateSet::default();
        set.insert(state);
        set
    }

    /// Adds a state; returns whether it is new.
    pub fn insert(&mut self, state: StateId) -> bool {
        let (word, bit) = (state.0 as usize / 64, 1u64 << (state.0 % 64));
        let word = match word {
            0 => &mut self.low,
            w => {
                if self.high.len() < w {
                    self.high.resize(w, 0);
                }
                &mut self.high[w - 1]
            }
        };
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// Whether the state is in the set.
    pub fn contains(&self, state: StateId) -> bool {
        let word = match state.0 as usize / 64 {
            0 => self.low,
            w => self.high.get(w - 1).copied().unwrap_or(0),
        };
        word >> (state.0 % 64) & 1 == 1
    }

    /// Adds all states of another set; returns whether any is new.
    pub fn union_with(&mut self, other: &StateSet) -> bool {
        let mut new = other.low & !self.low != 0;
        self.low |= other.low;
        if self.high.len() < other.high.len() {
            self.high.resize(other.high.len(), 0);
        }
        for (mine, theirs) in self.high.iter_mut().zip(&other.high) {
            new |= theirs & !*mine != 0;
            *mine |= theirs;
        }
        new
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.low == 0 && self.high.is_empty()
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.words().map(|w| w.count_ones() as usize).sum()
    }

    /// The states, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = StateId> + '_ {
        self.words().enumerate().flat_map(|(i, mut word)| {
            std::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros())?;
                word &= word - 1;
                Some(StateId(i as u32 * 64 + bit))
            })
        })
    }

    fn words(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.low).chain(self.high.iter().copied())
    }
}

impl FromIterator<StateId> for StateSet {
    fn from_iter<T: IntoIterator<Item = StateId>>(states: T) -> Self {
        let mut set = StateSet::default();
        states.into_iter().for_each(|s| {
            set.insert(s);
        });
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn behaves_like_a_set() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..5_000 {
            let top = *rng.choice([3, 64, 65, 300]).as_ref().unwrap();
            let (mut sets, mut truth) =
                ([StateSet::default(), StateSet::default()], [BTreeSet::new(), BTreeSet::new()]);
            for _ in 0..rng.usize(..40) {
                let (i, s) = (rng.usize(..2), StateId(rng.u32(..top)));
                assert_eq!(sets[i].insert(s), truth[i].insert(s));
            }
            let [a, mut b] = sets;
            assert_eq!(a == b, truth[0] == truth[1]);
            assert_eq!(b.union_with(&a), !truth[0].is_subset(&truth[1]));
            truth[1].extend(truth[0].clone());
            assert_eq!(b.iter().collect::<BTreeSet<_>>(), truth[1]);
            assert_eq!((b.len(), b.is_empty()), (truth[1].len(), truth[1].is_empty()));
            assert!((0..top).all(|s| b.contains(StateId(s)) == truth[1].contains(&StateId(s))));
            assert_eq!(b, truth[1].iter().copied().collect());
        }
    }
}
