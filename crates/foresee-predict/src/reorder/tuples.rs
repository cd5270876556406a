//! Which events to try for the positions of a pattern.
//!
//! The events that match a position form a chain in each thread. For one choice of threads, the
//! earliest events are tried first, because they need least; an event that an earlier position
//! needs anyway comes too early and is passed over at once, by its clock. When a search fails it
//! says which events came too early, and one of those moves on.

use foresee_causality::{Clocks, Stamp};
use foresee_spec::letter::Letter;
use foresee_spec::pattern::Position;
use foresee_trace::{Flow, ThreadId};

use super::goal::Wanted;

/// An event that a pattern may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) wanted: Wanted,
    /// What it needs ([`foresee_causality::Order::Needs`]).
    pub(crate) stamp: Stamp,
}

/// The result of a try.
pub(crate) enum Tried {
    /// The reordering was found.
    Found,
    /// Some events came too early; see [`super::Answer::No`].
    TooEarly(u128),
    /// No tuple of these threads can succeed.
    Hopeless,
    /// The budget is exhausted.
    Stop,
}

/// The events of one thread that match a position, by their places among the candidates.
#[derive(Debug)]
struct Chain {
    thread: ThreadId,
    members: Vec<u32>,
}

/// Goes through the tuples of events that may show a pattern.
pub(crate) struct Tuples<'t> {
    candidates: &'t [(Candidate, u64)],
    /// What events need, if every read needs the write that it saw.
    clocks: Option<&'t Clocks>,
    /// For each position its chains.
    chains: Vec<Vec<Chain>>,
    /// For each position, the chain and the place in it.
    chosen: Vec<usize>,
    pointers: Vec<usize>,
    wanted: Vec<Wanted>,
    /// How many tuples are tried for one choice of threads.
    tries: usize,
    /// How many choices of threads may still be made.
    combinations: usize,
}

impl<'t> Tuples<'t> {
    /// The tuples of a sequence of positions, if each of them has a candidate.
    pub(crate) fn new(
        sequence: &[Position],
        candidates: &'t [(Candidate, u64)],
        clocks: Option<&'t Clocks>,
        tries: usize,
        combinations: usize,
    ) -> Option<Tuples<'t>> {
        let chains: Vec<Vec<Chain>> =
            sequence.iter().map(|position| chains(position, candidates)).collect();
        if chains.iter().any(Vec::is_empty) {
            return None;
        }
        let nothing = vec![0; sequence.len()];
        Some(Tuples {
            candidates,
            clocks,
            chains,
            chosen: nothing.clone(),
            pointers: nothing,
            wanted: Vec::with_capacity(sequence.len()),
            tries,
            combinations,
        })
    }

    /// Hands tuples to `attempt` until one is found, there is no time left or there are no more.
    pub(crate) fn each(&mut self, attempt: &mut dyn FnMut(&[Wanted]) -> Tried) -> Flow {
        self.choose(0, attempt)
    }

    /// Whether there were more choices of threads than may be made.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.combinations == 0
    }

    /// Chooses threads for this position and those after it.
    fn choose(&mut self, at: usize, attempt: &mut dyn FnMut(&[Wanted]) -> Tried) -> Flow {
        for chain in 0..self.chains[at].len() {
            self.chosen[at] = chain;
            self.pointers[at] = 0;
            if !self.pass_what_is_needed(at) {
                continue;
            }
            let flow = match at + 1 < self.chosen.len() {
                true => self.choose(at + 1, attempt),
                false => {
                    if self.combinations == 0 {
                        return Flow::Stop;
                    }
                    self.combinations -= 1;
                    let before = self.pointers.clone();
                    let flow = self.advance_until_found(attempt);
                    self.pointers = before;
                    flow
                }
            };
            if flow == Flow::Stop {
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    fn candidate(&self, at: usize) -> &Candidate {
        let chain = &self.chains[at][self.chosen[at]];
        &self.candidates[chain.members[self.pointers[at]] as usize].0
    }

    /// Moves on to the first event that no earlier position needs, if there is one.
    fn pass_what_is_needed(&mut self, at: usize) -> bool {
        let chain = &self.chains[at][self.chosen[at]];
        let needed = (0..at).map(|earlier| {
            let stamp = &self.candidate(earlier).stamp;
            match self.clocks {
                Some(clocks) => clocks.count(stamp, chain.thread)[0],
                None if stamp.thread == chain.thread => stamp.time[0],
                None => 0,
            }
        });
        let needed = needed.max().unwrap_or(0);
        let rest = &chain.members[self.pointers[at]..];
        let time = |&member: &u32| self.candidates[member as usize].0.stamp.time[0];
        self.pointers[at] += rest.partition_point(|member| time(member) <= needed);
        self.pointers[at] < chain.members.len()
    }

    /// Tries the tuples of one choice of threads.
    fn advance_until_found(&mut self, attempt: &mut dyn FnMut(&[Wanted]) -> Tried) -> Flow {
        for _ in 0..self.tries {
            let mut wanted = std::mem::take(&mut self.wanted);
            wanted.clear();
            wanted.extend((0..self.chosen.len()).map(|at| self.candidate(at).wanted));
            let tried = attempt(&wanted);
            self.wanted = wanted;
            match tried {
                Tried::Found | Tried::Stop => return Flow::Stop,
                Tried::Hopeless => return Flow::Continue,
                Tried::TooEarly(blamed) => {
                    if !self.advance(blamed) {
                        return Flow::Continue;
                    }
                }
            }
        }
        Flow::Continue
    }

    /// Advances the blamed position whose next event is the earliest.
    fn advance(&mut self, blamed: u128) -> bool {
        let next = |at: &usize| {
            let member = self.chains[*at][self.chosen[*at]].members.get(self.pointers[*at] + 1)?;
            Some((self.candidates[*member as usize].0.wanted.event, *at))
        };
        let places = (0..self.chosen.len()).filter(|at| blamed >> at & 1 == 1);
        let mut nexts: Vec<(u32, usize)> = places.filter_map(|at| next(&at)).collect();
        nexts.sort_unstable();
        let before = self.pointers.clone();
        for (_, at) in nexts {
            self.pointers[at] += 1;
            if (at + 1..self.chosen.len()).all(|later| self.pass_what_is_needed(later)) {
                return true;
            }
            self.pointers.clone_from(&before);
        }
        false
    }
}

/// The candidates that match a position, thread by thread, threads by their first one.
fn chains(position: &Position, candidates: &[(Candidate, u64)]) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut last = 0;
    for (i, (candidate, atoms)) in candidates.iter().enumerate() {
        if !position.matches(Letter(*atoms)) {
            continue;
        }
        let thread = candidate.stamp.thread;
        // Threads tend to come in bursts.
        if chains.get(last).is_none_or(|chain| chain.thread != thread) {
            let known = chains.iter().position(|chain| chain.thread == thread);
            last = known.unwrap_or_else(|| {
                chains.push(Chain { thread, members: Vec::new() });
                chains.len() - 1
            });
        }
        chains[last].members.push(i as u32);
    }
    chains
}
