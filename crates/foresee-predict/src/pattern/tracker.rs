//! All that is remembered of one pattern, or of one binding of its parameters.

use foresee_causality::LaneVector;

use super::event::{Held, Now};
use super::greedy::Greedy;
use super::pareto::{Fresh, Pareto};
use super::plan::{Meaning, SearchKind, Sequence};
use super::subsets::Table;

/// How many tuples one sequence may keep, if its candidates are not ordered.
pub(super) const MAX_TUPLES: usize = 1_000;

/// The searches of one binding, and how far the observed run has come.
#[derive(Debug)]
pub(super) struct Tracker {
    searches: Box<[Search]>,
    /// For each sequence the observed events of its first positions.
    observed: Box<[Vec<u64>]>,
    pub(super) found: Option<Found>,
}

#[derive(Debug)]
enum Search {
    Subsets(Table),
    Greedy(Greedy),
    Pareto(Pareto),
    /// Nothing more is searched.
    Over,
}

/// Events that some run has in the order of the pattern.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) tuple: Vec<u64>,
    pub(super) certain_at: u64,
}

impl Tracker {
    pub(super) fn new(sequences: &[Sequence]) -> Tracker {
        let search = |sequence: &Sequence| match &sequence.search {
            SearchKind::Subsets(subsets) => Search::Subsets(Table::new(subsets)),
            SearchKind::Greedy => Search::Greedy(Greedy::new(sequence.positions.len())),
            SearchKind::Pareto => Search::Pareto(Pareto::default()),
            SearchKind::TooLong => Search::Over,
        };
        Tracker {
            searches: sequences.iter().map(search).collect(),
            observed: sequences.iter().map(|_| Vec::new()).collect(),
            found: None,
        }
    }

    /// The same state for another binding.
    pub(super) fn copy<V: LaneVector>(&self, held: &mut Held<V>) -> Tracker {
        let searches = self.searches.iter().map(|search| match search {
            Search::Subsets(table) => Search::Subsets(table.clone()),
            Search::Greedy(greedy) => Search::Greedy(greedy.clone()),
            Search::Pareto(pareto) => Search::Pareto(pareto.copy(held)),
            Search::Over => Search::Over,
        });
        Tracker {
            searches: searches.collect(),
            observed: self.observed.clone(),
            found: self.found.clone(),
        }
    }

    /// Takes the next event. The observed events of the pattern, if the observed run has it now:
    /// then nothing more needs to be found.
    #[inline]
    pub(super) fn step<V: LaneVector>(
        &mut self,
        sequences: &[Sequence],
        meaning: &Meaning,
        now: &Now<'_, V>,
        held: &mut Held<V>,
        fresh: &mut Fresh,
    ) -> Option<Vec<u64>> {
        for (i, matched) in meaning.sequences.iter().enumerate() {
            if matched.positions.is_empty() {
                continue;
            }
            let sequence = &sequences[i];
            let seen = &mut self.observed[i];
            if matched.positions.contains(&(seen.len() as u16)) {
                seen.push(now.index);
                if seen.len() == sequence.positions.len() {
                    let seen = std::mem::take(seen);
                    self.stop(sequences, held);
                    self.found = None;
                    return Some(seen);
                }
            }
            if self.found.is_some() {
                continue;
            }
            let found = match (&mut self.searches[i], &sequence.search) {
                (Search::Subsets(table), SearchKind::Subsets(subsets)) => {
                    table.step(subsets, &matched.moves, &sequence.lanes, now)
                }
                (Search::Greedy(greedy), _) => {
                    greedy.step(&matched.positions, &sequence.lanes, now)
                }
                (Search::Pareto(pareto), _) => {
                    let length = sequence.positions.len();
                    pareto.step(length, matched.bits, MAX_TUPLES, now, held, fresh)
                }
                _ => None,
            };
            if let Some(tuple) = found {
                self.found = Some(Found { tuple, certain_at: now.index });
                self.stop(sequences, held);
            }
        }
        None
    }

    /// Ends all searches; how far the observed run has come stays known.
    fn stop<V: LaneVector>(&mut self, sequences: &[Sequence], held: &mut Held<V>) {
        for (search, sequence) in self.searches.iter_mut().zip(sequences) {
            if let Search::Pareto(pareto) = search {
                pareto.clear(sequence.positions.len(), held);
            }
            *search = Search::Over;
        }
    }
}
