//! The greedy search from the last position.
//!
//! Some reordering has events e1, …, ed in this order if and only if none of them must come before
//! an earlier one of the list: `ej <= ei` for no i < j. If events are chosen from the last position
//! to the first, and the events of each position are a chain, the latest event of a position that
//! is
//! not after any chosen one is always optimal: every other choice precedes it, and so blocks more.
//! In each thread, everything from some time on is blocked, so a choice costs one search for each
//! thread that still matters and one in its own chain.
//!
//! A position may match events of several threads. Then the latest unblocked event of each thread
//! is
//! a candidate unless it precedes another candidate, and the search branches over the candidates.
//! It
//! remembers what was blocked where it failed, because the outcome depends on nothing else.

use std::collections::{BTreeMap, HashSet};

use foldhash::fast::RandomState;
use foresee_causality::Epoch;
use foresee_spec::ast::{Body, Property};
use foresee_spec::letter::Alphabet;
use foresee_spec::observe::AtomLabels;
use foresee_spec::pattern::{Position, normal_form};
use foresee_spec::{Diagnostic, Resolved, print_atom};
use foresee_trace::{FileOrder, Names, ThreadId};

use crate::error::IndexError;
use crate::list::List;
use crate::page::ReadAt;
use crate::reader::Index;

/// The maximum number of partial choices of a search. Positions that match events of many threads
/// can need exponentially many, and no algorithm is known that avoids this.
const MAX_CHOICES: u32 = 200_000;
/// The maximum number of bytes for remembered failures.
const MAX_REMEMBERED: usize = 64 << 20;
/// The maximum number of chains of a position.
const MAX_CHAINS: usize = 50_000;

/// Why an index cannot answer a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// It is not a pattern.
    #[error("it is not a pattern")]
    NotAPattern,
    /// The pattern has parameters.
    #[error("it has parameters")]
    Parameters,
    /// An event of the pattern has arguments, and an index keeps no values.
    #[error("it has arguments of events, which the index does not store")]
    Arguments,
    /// A position matches a large part of all events.
    #[error("one of its positions matches more than {MAX_CHAINS} kinds of events")]
    TooManyChains,
}

/// A pattern, bound to the names of a trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// The sequences of positions, each of which matches.
    sequences: Vec<Vec<Position>>,
    labels: Vec<Option<AtomLabels>>,
    alphabet: Alphabet,
}

impl Question {
    /// Prepares a pattern. The outer error is a mistake in the pattern; the inner one means that an
    /// index cannot answer it.
    pub fn new(
        property: &Property,
        resolved: &Resolved,
        names: &Names,
    ) -> Result<Result<Question, Unsupported>, Diagnostic> {
        let Body::Pattern(pattern) = &property.body else {
            return Ok(Err(Unsupported::NotAPattern));
        };
        let mut alphabet = Alphabet::default();
        let sequences = normal_form(pattern, &mut alphabet)?;
        if !property.params.is_empty() || !property.objects.is_empty() {
            return Ok(Err(Unsupported::Parameters));
        }
        let labels = AtomLabels::of(&alphabet, resolved, names);
        if labels.iter().flatten().any(|label| label.has_args) {
            return Ok(Err(Unsupported::Arguments));
        }
        Ok(Ok(Question { sequences, labels, alphabet }))
    }

    /// A position as the specification writes it.
    fn describe(&self, position: &Position) -> String {
        let any_of = |bits: &u64| {
            let atoms = self.alphabet.atoms().iter().enumerate();
            let atoms = atoms.filter(|(i, _)| bits >> i & 1 == 1);
            atoms.map(|(_, atom)| print_atom(atom)).collect::<Vec<_>>().join(" / ")
        };
        position.all_of.iter().map(any_of).collect::<Vec<_>>().join(" & ")
    }
}

/// The answer of an index for a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The captured order itself has these events, in this order; no other match ends earlier. They
    /// are indices into the trace.
    Observed(Vec<u64>),
    /// Another order of the same events has these in the order of the pattern.
    Predicted(Vec<u64>),
    /// No order has such events.
    Never,
    /// No event of the trace matches this position, so no order can match.
    CannotMatch {
        /// The position, as the specification writes it.
        position: String,
    },
    /// The search reached its limit of choices.
    GaveUp {
        /// The limit.
        choices: u32,
    },
    /// The captured order does not have such events, and nothing is known about other orders,
    /// because the order of the trace is only that of its notes.
    OrderUnknown,
}

/// The events that a position matches: for each thread, its chains.
type Candidates = Vec<(ThreadId, Vec<List>)>;

impl<S: ReadAt> Index<S> {
    /// Answers a question. The inner error means that only the trace can answer it.
    pub fn answer(
        &mut self,
        question: &Question,
    ) -> Result<Result<Answer, Unsupported>, IndexError> {
        let possible = match self.possible(question)? {
            Ok(possible) => possible,
            Err(why) => return Ok(Err(why)),
        };
        if possible.is_empty() {
            let position = self.missing(question)?;
            return Ok(Ok(Answer::CannotMatch { position }));
        }
        let mut observed: Option<Vec<u64>> = None;
        for positions in &possible {
            if let Some(events) = self.observed(positions)?
                && observed.as_ref().is_none_or(|other| events.last() < other.last())
            {
                observed = Some(events);
            }
        }
        if let Some(events) = observed {
            return Ok(Ok(Answer::Observed(events)));
        }
        if self.remarks().order == FileOrder::Notes {
            return Ok(Ok(Answer::OrderUnknown));
        }
        Ok(Ok(match self.search(&possible, None)? {
            Searched::Found(events) => Answer::Predicted(events),
            Searched::Nothing => Answer::Never,
            Searched::GaveUp => Answer::GaveUp { choices: MAX_CHOICES },
        }))
    }

    /// For a pattern that another order matches: its events in the shortest prefix of the trace
    /// with a match. The latest of them is where the match became certain.
    pub fn earliest(&mut self, question: &Question) -> Result<Option<Vec<u64>>, IndexError> {
        let Ok(possible) = self.possible(question)? else { return Ok(None) };
        let Searched::Found(mut best) = self.search(&possible, None)? else { return Ok(None) };
        // If a prefix has a match, every longer one has it, too.
        let mut low = 0;
        while let Some(&high) = best.iter().max().filter(|&&high| low < high) {
            let middle = low + (high - low) / 2;
            match self.search(&possible, Some(middle + 1))? {
                Searched::Found(earlier) => best = earlier,
                _ => low = middle + 1,
            }
        }
        Ok(Some(best))
    }

    /// The sequences of a pattern in which every position has events.
    fn possible(
        &mut self,
        question: &Question,
    ) -> Result<Result<Vec<Vec<Candidates>>, Unsupported>, IndexError> {
        let mut possible = Vec::new();
        for sequence in &question.sequences {
            let mut positions = Vec::new();
            for position in sequence {
                match self.candidates(question, position)? {
                    Err(why) => return Ok(Err(why)),
                    Ok(candidates) if candidates.is_empty() => break,
                    Ok(candidates) => positions.push(candidates),
                }
            }
            if positions.len() == sequence.len() {
                possible.push(positions);
            }
        }
        Ok(Ok(possible))
    }

    /// The first position without events.
    fn missing(&mut self, question: &Question) -> Result<String, IndexError> {
        for position in question.sequences.iter().flatten() {
            if self.candidates(question, position)?.is_ok_and(|found| found.is_empty()) {
                return Ok(question.describe(position));
            }
        }
        Ok(String::new())
    }

    /// Searches for a match among the first `end` events of the trace, or among all.
    fn search(
        &mut self,
        possible: &[Vec<Candidates>],
        end: Option<u64>,
    ) -> Result<Searched, IndexError> {
        let (mut choices, mut gave_up) = (0, false);
        for positions in possible {
            let mut search = Search::new(self, positions, &mut choices);
            match search.run(end)? {
                Found::Yes => {
                    let tuple = search.chosen;
                    let places = tuple.iter().rev().map(|&event| self.place(event));
                    return Ok(Searched::Found(places.collect::<Result<_, _>>()?));
                }
                Found::No => {}
                Found::GaveUp => gave_up = true,
            }
        }
        Ok(if gave_up { Searched::GaveUp } else { Searched::Nothing })
    }

    /// The events that a position matches.
    fn candidates(
        &mut self,
        question: &Question,
        position: &Position,
    ) -> Result<Result<Candidates, Unsupported>, IndexError> {
        let Some((&first, others)) = position.all_of.split_first() else {
            return Ok(Ok(Vec::new()));
        };
        let labels = |bits: u64| {
            let all = question.labels.iter().enumerate();
            all.filter(move |(i, _)| bits >> i & 1 == 1).filter_map(|(_, label)| label.as_ref())
        };
        let mut chains: BTreeMap<u32, Vec<List>> = BTreeMap::new();
        let mut count = 0;
        // Two atoms may share a chain, which need not be searched twice.
        let mut seen = HashSet::new();
        for label in labels(first) {
            let targets: Vec<Option<u32>> = match &label.targets {
                Some(targets) => targets.iter().copied().map(Some).collect(),
                None => vec![None],
            };
            for (&op, &target) in
                label.ops.iter().flat_map(|op| targets.iter().map(move |t| (op, t)))
            {
                self.chains(op, target, |target, thread, list| {
                    let fits = label.has(op, target, thread)
                        && others.iter().all(|&set| labels(set).any(|l| l.has(op, target, thread)));
                    if fits && seen.insert(list.start) {
                        chains.entry(thread.0).or_default().push(list);
                        count += 1;
                    }
                    (count <= MAX_CHAINS).then_some(())
                })?;
            }
        }
        if count > MAX_CHAINS {
            return Ok(Err(Unsupported::TooManyChains));
        }
        Ok(Ok(chains.into_iter().map(|(thread, lists)| (ThreadId(thread), lists)).collect()))
    }

    /// The first matching events in the captured order, as indices into the trace.
    fn observed(&mut self, positions: &[Candidates]) -> Result<Option<Vec<u64>>, IndexError> {
        let mut events = Vec::new();
        let mut from = 0;
        for candidates in positions {
            let mut first: Option<u64> = None;
            for (thread, chains) in candidates {
                let time = self.time_from(*thread, from)?;
                for chain in chains {
                    if let Some(time) = self.first_from(chain, time)? {
                        let place = self.place(Epoch { thread: *thread, time })?;
                        first = Some(first.map_or(place, |first| first.min(place)));
                    }
                }
            }
            let Some(place) = first else { return Ok(None) };
            events.push(place);
            from = place.saturating_add(1);
        }
        Ok(Some(events))
    }
}

/// The result of a search; events are indices into the trace.
enum Searched {
    Found(Vec<u64>),
    Nothing,
    GaveUp,
}

/// Nothing is blocked.
const FREE: u32 = u32::MAX;

enum Found {
    Yes,
    No,
    GaveUp,
}

struct Search<'i, S> {
    index: &'i mut Index<S>,
    positions: &'i [Candidates],
    /// The threads of all positions, sorted.
    threads: Vec<ThreadId>,
    /// For each thread, the first position that matches events of it.
    needed_from: Vec<usize>,
    /// The choices made, from the last position on.
    chosen: Vec<Epoch>,
    /// Numbers of remaining positions and blocked times for which there is no match.
    failed: HashSet<(usize, Box<[u32]>), RandomState>,
    choices: &'i mut u32,
}

impl<'i, S: ReadAt> Search<'i, S> {
    fn new(index: &'i mut Index<S>, positions: &'i [Candidates], choices: &'i mut u32) -> Self {
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        for (i, candidates) in positions.iter().enumerate() {
            for (thread, _) in candidates {
                first.entry(thread.0).or_insert(i);
            }
        }
        Search {
            index,
            positions,
            threads: first.keys().map(|&thread| ThreadId(thread)).collect(),
            needed_from: first.values().copied().collect(),
            chosen: Vec::new(),
            failed: HashSet::default(),
            choices,
        }
    }

    /// Searches the first `end` events of the trace, or all.
    fn run(&mut self, end: Option<u64>) -> Result<Found, IndexError> {
        let mut blocked = vec![FREE; self.threads.len()];
        if let Some(end) = end {
            // Later events count as blocked.
            for (blocked, &thread) in blocked.iter_mut().zip(&self.threads) {
                *blocked = self.index.time_from(thread, end)?;
            }
        }
        self.choose(self.positions.len(), &blocked)
    }

    /// Chooses events for the first `left` positions; from the time in `blocked` on, the events of
    /// each thread come after a chosen one.
    fn choose(&mut self, left: usize, blocked: &[u32]) -> Result<Found, IndexError> {
        let Some(position) = left.checked_sub(1) else { return Ok(Found::Yes) };
        let candidates = self.candidates(position, blocked)?;
        let branches = candidates.len() > 1;
        if branches && self.failed.contains(&(left, blocked.into())) {
            return Ok(Found::No);
        }
        for event in candidates {
            *self.choices += 1;
            if *self.choices > MAX_CHOICES {
                return Ok(Found::GaveUp);
            }
            let then = self.block(position, blocked, event)?;
            self.chosen.push(event);
            match self.choose(position, &then)? {
                Found::No => {}
                found => return Ok(found),
            }
            self.chosen.pop();
        }
        if branches && self.failed.len() * (blocked.len() * 4 + 48) < MAX_REMEMBERED {
            self.failed.insert((left, blocked.into()));
        }
        Ok(Found::No)
    }

    /// What is blocked once `event` is chosen as well, in the threads that matter to earlier
    /// positions.
    fn block(
        &mut self,
        position: usize,
        blocked: &[u32],
        event: Epoch,
    ) -> Result<Vec<u32>, IndexError> {
        let mut then = vec![FREE; blocked.len()];
        for (i, then) in then.iter_mut().enumerate() {
            if self.needed_from[i] < position {
                let from = self.index.first_after(event, self.threads[i])?;
                *then = blocked[i].min(from.unwrap_or(FREE));
            }
        }
        Ok(then)
    }

    /// The latest unblocked event of each thread, without those that precede another, latest
    /// observed first.
    fn candidates(&mut self, position: usize, blocked: &[u32]) -> Result<Vec<Epoch>, IndexError> {
        let positions = self.positions;
        let mut latest = Vec::new();
        for (thread, chains) in &positions[position] {
            let Ok(i) = self.threads.binary_search(thread) else { continue };
            let mut time = None;
            for chain in chains {
                time = time.max(self.index.last_before(chain, blocked[i])?);
            }
            latest.extend(time.map(|time| Epoch { thread: *thread, time }));
        }
        if latest.len() < 2 {
            return Ok(latest);
        }
        // An event can only precede one that was observed after it.
        let mut placed = Vec::new();
        for event in latest {
            placed.push((self.index.place(event)?, event));
        }
        placed.sort_unstable_by_key(|(place, _)| std::cmp::Reverse(*place));
        let mut kept: Vec<Epoch> = Vec::new();
        'events: for (_, event) in placed {
            for &later in &kept {
                if self.index.count(later, event.thread)? >= event.time {
                    continue 'events;
                }
            }
            kept.push(event);
        }
        Ok(kept)
    }
}
