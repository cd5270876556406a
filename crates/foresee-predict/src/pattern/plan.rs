//! What can be said of a pattern before any event is seen: which search fits each of its sequences,
//! and what each kind of event means to it.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use foresee_spec::letter::Letter;
use foresee_spec::observe::Chain;
use foresee_spec::pattern::Position;
use foresee_trace::ThreadId;

use super::subsets::{Move, Subsets};

/// Which search to use, where there is a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The one that suits the pattern.
    #[default]
    Auto,
    /// One maximum tuple for each subset of positions, if the pattern allows it.
    Subsets,
    /// The greatest tuple from the last position on, if the pattern allows it.
    Greedy,
    /// Sets of tuples, none better than another.
    Pareto,
}

/// The number of subsets up to which a table is faster than queues: dimension five.
const SMALL_TABLE: usize = 32;
/// How many lanes there may be for variables and locks. Each makes every clock longer.
const MAX_OWN_LANES: usize = 8;
/// How many positions a sequence may have whose candidates are not ordered.
pub(super) const MAX_UNORDERED: usize = 60;

/// The owner of each lane.
#[derive(Debug, Default)]
pub(super) struct LaneMap {
    own: HashMap<Chain, u32, RandomState>,
    threads: Vec<Option<u32>>,
    pub(super) count: u32,
}

impl LaneMap {
    /// The lane of a thread, which is given one now if it has none.
    #[inline]
    pub(super) fn of_thread(&mut self, thread: ThreadId) -> u32 {
        let place = foresee_trace::entry(&mut self.threads, thread.0 as usize);
        *place.get_or_insert_with(|| {
            self.count += 1;
            self.count - 1
        })
    }

    /// The lane of a chain, if there is one to spare.
    fn of_chain(&mut self, chain: Chain) -> Option<u32> {
        match chain {
            Chain::Absent => Some(0),
            Chain::Thread(thread) => Some(self.of_thread(thread)),
            Chain::Writes(_) | Chain::Lock(_) => {
                if let Some(&lane) = self.own.get(&chain) {
                    return Some(lane);
                }
                if self.own.len() == MAX_OWN_LANES {
                    return None;
                }
                self.own.insert(chain, self.count);
                self.count += 1;
                Some(self.count - 1)
            }
        }
    }
}

/// One sequence of positions.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) positions: Vec<Position>,
    /// The lane of each position's candidates; `None` is that of the event's thread.
    pub(super) lanes: Vec<Option<u32>>,
    pub(super) search: SearchKind,
}

#[derive(Debug)]
pub(super) enum SearchKind {
    Subsets(Subsets),
    Greedy,
    Pareto,
    /// More positions than the search can do whose candidates are not ordered.
    TooLong,
}

impl SearchKind {
    /// The word for it in reports.
    pub(super) fn word(&self) -> &'static str {
        match self {
            SearchKind::Subsets(_) => "subsets",
            SearchKind::Greedy => "greedy",
            SearchKind::Pareto => "pareto",
            SearchKind::TooLong => "none",
        }
    }
}

impl Sequence {
    /// Chooses the search. `chain` returns what orders the events of an atom; `is_bound` is set if
    /// the pattern has parameters, so that there are many small searches.
    pub(super) fn new(
        positions: &[Position],
        chain: impl Fn(usize) -> Option<Chain>,
        is_bound: bool,
        algorithm: Algorithm,
        map: &mut LaneMap,
    ) -> Sequence {
        let mut kinds = Vec::new();
        for (i, position) in positions.iter().enumerate() {
            kinds.push(positions[..i].iter().position(|p| p == position).unwrap_or(i));
        }
        let chains: Option<Vec<Chain>> =
            positions.iter().map(|position| chain_of(position, &chain)).collect();
        let length = positions.len();
        let unordered = |lanes: Vec<Option<u32>>| {
            let search =
                if length <= MAX_UNORDERED { SearchKind::Pareto } else { SearchKind::TooLong };
            Sequence { positions: positions.to_vec(), lanes, search }
        };
        let by_thread = vec![None; length];
        let Some(chains) = chains.filter(|_| !is_bound && algorithm != Algorithm::Pareto) else {
            return unordered(by_thread);
        };
        let lanes: Vec<Option<u32>> = chains.iter().map(|&c| map.of_chain(c)).collect();
        let subsets = Subsets::new(&kinds);
        let is_small = subsets.as_ref().is_some_and(|s| s.len() <= SMALL_TABLE);
        let can_be_greedy = !lanes.contains(&None);
        let search = match (algorithm, subsets) {
            (Algorithm::Subsets, Some(subsets)) => SearchKind::Subsets(subsets),
            (Algorithm::Greedy, _) if can_be_greedy => SearchKind::Greedy,
            (_, Some(subsets)) if is_small || !can_be_greedy => SearchKind::Subsets(subsets),
            _ if can_be_greedy => SearchKind::Greedy,
            _ => return unordered(by_thread),
        };
        Sequence { positions: positions.to_vec(), lanes, search }
    }
}

/// What orders the candidates of a position, if something does.
fn chain_of(position: &Position, chain: &impl Fn(usize) -> Option<Chain>) -> Option<Chain> {
    position.all_of.iter().find_map(|&any| {
        let mut common = Chain::Absent;
        for bit in (0..64).filter(|bit| any >> bit & 1 == 1) {
            match (chain(bit)?, common) {
                (Chain::Absent, _) => {}
                (one, Chain::Absent) => common = one,
                (one, other) if one == other => {}
                _ => return None,
            }
        }
        Some(common)
    })
}

/// What an event means to a pattern, by the atoms it matches.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) sequences: Box<[Matched]>,
    /// Whether the event must be counted in the lane of its thread.
    pub(super) by_thread: bool,
    /// Other lanes that it must be counted in.
    pub(super) lanes: Box<[u32]>,
}

/// The positions of one sequence that an event is a candidate of.
#[derive(Debug)]
pub(super) struct Matched {
    pub(super) positions: Box<[u16]>,
    /// The same as bits, for searches that have no more.
    pub(super) bits: u64,
    pub(super) moves: Box<[Move]>,
}

impl Meaning {
    pub(super) fn of(letter: Letter, sequences: &[Sequence]) -> Meaning {
        let (mut by_thread, mut lanes) = (false, Vec::new());
        let matched = sequences.iter().map(|sequence| {
            let matching =
                (0..sequence.positions.len()).filter(|&i| sequence.positions[i].matches(letter));
            let positions: Box<[u16]> = matching.map(|i| i as u16).collect();
            for &i in &positions {
                match sequence.lanes[usize::from(i)] {
                    None => by_thread = true,
                    Some(lane) if !lanes.contains(&lane) => lanes.push(lane),
                    Some(_) => {}
                }
            }
            let bits = positions.iter().filter(|&&i| i < 64).fold(0, |bits, i| bits | 1 << i);
            let moves = match &sequence.search {
                SearchKind::Subsets(subsets) => subsets.moves(bits),
                _ => Box::default(),
            };
            Matched { positions, bits, moves }
        });
        let sequences = matched.collect();
        Meaning { sequences, by_thread, lanes: lanes.into() }
    }
}
