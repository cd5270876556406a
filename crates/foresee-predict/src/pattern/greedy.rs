//! The greatest tuple, position by position from the last.
//!
//! The greatest tuple has at its last position the last candidate; at each position before, the
//! last candidate that knows none of the events chosen after it. As the trace goes on these choices
//! only move forward, so the candidates that are still blocked are kept in a queue for each
//! position, and there is no table of subsets, whatever the number of positions.
//!
//! Of two blocked candidates of a position the earlier one can go if they know the same of the
//! events that are or may still be chosen at later positions: both will become free together. So
//! queues stay short however long the trace.

use std::collections::VecDeque;

use foresee_causality::LaneVector;

use super::event::{Mark, Now};

/// Queues up to this length are left alone.
const SHORT: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Greedy {
    /// The choices; from some position on all are made.
    chosen: Box<[Option<Mark>]>,
    waiting: Box<[Waiting]>,
}

/// The candidates of one position that are blocked, the earliest first.
#[derive(Clone, Debug)]
struct Waiting {
    marks: VecDeque<Mark>,
    /// For each of them and each later position, how much it knows of that position's lane.
    known: VecDeque<u32>,
    /// The length at which to look for candidates that can go.
    crowded: usize,
}

impl Greedy {
    pub(super) fn new(length: usize) -> Greedy {
        let waiting =
            |_| Waiting { marks: VecDeque::new(), known: VecDeque::new(), crowded: SHORT };
        Greedy { chosen: vec![None; length].into(), waiting: (0..length).map(waiting).collect() }
    }

    /// Takes the next event, a candidate of the positions `matched` (in rising order); the events
    /// of a full tuple, if there is one now. `lanes` are those of the positions.
    pub(super) fn step<V: LaneVector>(
        &mut self,
        matched: &[u16],
        lanes: &[Option<u32>],
        now: &Now<'_, V>,
    ) -> Option<Vec<u64>> {
        let last = usize::from(*matched.last()?);
        for &position in matched {
            let position = usize::from(position);
            let waiting = &mut self.waiting[position];
            waiting.marks.push_back(now.mark(lanes[position]));
            let later = lanes[position + 1..].iter();
            waiting.known.extend(later.map(|lane| now.count(lane.unwrap_or(now.thread_lane))));
        }
        let mut moved = false;
        for position in (0..=last).rev() {
            let later = &self.chosen[position + 1..];
            if later.first().is_some_and(Option::is_none) {
                break;
            }
            if !moved && !matched.contains(&(position as u16)) {
                continue;
            }
            let Waiting { marks, known, .. } = &mut self.waiting[position];
            let width = later.len();
            let mut choice = None;
            while !marks.is_empty() {
                let knows = |(i, chosen): (usize, &Option<Mark>)| {
                    chosen.as_ref().is_some_and(|chosen| chosen.time <= known[i])
                };
                if later.iter().enumerate().any(knows) {
                    break;
                }
                choice = marks.pop_front();
                known.drain(..width);
            }
            if choice.is_some() {
                self.chosen[position] = choice;
                moved = true;
            }
        }
        for &position in matched {
            if self.waiting[usize::from(position)].marks.len()
                >= self.waiting[usize::from(position)].crowded
            {
                self.thin_out(usize::from(position));
            }
        }
        self.chosen[0]?;
        Some(self.chosen.iter().flatten().map(|mark| mark.index).collect())
    }

    /// Drops candidates that a later one stands for.
    fn thin_out(&mut self, position: usize) {
        let width = self.chosen.len() - position - 1;
        // The times, lane by lane, at which it makes a difference what a candidate knows.
        let mut times: Vec<Vec<u32>> = Vec::with_capacity(width);
        for later in position + 1..self.chosen.len() {
            let waiting = self.waiting[later].marks.iter();
            let mut of: Vec<u32> =
                waiting.chain(&self.chosen[later]).map(|mark| mark.time).collect();
            of.sort_unstable();
            times.push(of);
        }
        let Waiting { marks, known, crowded } = &mut self.waiting[position];
        let meaning = |i: usize, known: &VecDeque<u32>| -> Vec<usize> {
            let counts = times.iter().enumerate();
            counts.map(|(k, of)| of.partition_point(|&t| t <= known[i * width + k])).collect()
        };
        let mut kept = 0;
        let mut next = (!marks.is_empty()).then(|| meaning(0, known));
        for i in 0..marks.len() {
            let this = next.take();
            next = (i + 1 < marks.len()).then(|| meaning(i + 1, known));
            if this == next {
                continue;
            }
            marks[kept] = marks[i];
            for k in 0..width {
                known[kept * width + k] = known[i * width + k];
            }
            kept += 1;
        }
        marks.truncate(kept);
        known.truncate(kept * width);
        *crowded = SHORT.max(2 * kept);
    }

    /// How many candidates are kept.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.iter().map(|w| w.marks.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use foresee_causality::{Clock, LaneClocks};
    use foresee_trace::{Event, Op, ThreadId};

    use super::super::event::Now;
    use super::super::subsets::{Subsets, Table};
    use super::*;

    /// Long traces in which four threads talk now and then, with patterns that no run of a prefix
    /// has for long: the queues stay short, and the answer is that of the table of subsets.
    #[test]
    fn queues_stay_short_and_say_what_the_table_says() {
        let (mut longest, mut found) = (0, 0);
        for seed in 0..30 {
            let mut rng = Rng::with_seed(seed);
            let length = rng.usize(3..=6);
            // Each position is one event name of one thread; lanes are those of threads.
            let threads: Vec<u32> = (0..length).map(|_| rng.u32(..4)).collect();
            let lanes: Vec<Option<u32>> = threads.iter().map(|t| Some(*t)).collect();
            let kinds: Vec<usize> = (0..length).collect();
            let subsets = Subsets::new(&kinds).unwrap();
            let (mut table, mut greedy) = (Table::new(&subsets), Greedy::new(length));
            let mut clocks = LaneClocks::<Clock>::default();
            // The first position is rare, so that the search goes on.
            let rare = 1.0 / 3_000.0;
            for index in 0..10_000 {
                let t = rng.u32(..4);
                let talks = rng.u8(..3) == 0;
                let op = if talks { Op::Write } else { Op::Event };
                let event = Event::new(ThreadId(t), op).with_target(rng.u32(..2));
                let mine: Vec<u16> =
                    (0..length as u16).filter(|&i| threads[usize::from(i)] == t).collect();
                let mut matched: Vec<u16> = Vec::new();
                if !mine.is_empty() {
                    matched.push(mine[rng.usize(..mine.len())]);
                }
                matched.retain(|&i| !talks && (i > 0 || rng.f64() < rare));
                let lane = [t];
                let counted = if matched.is_empty() { &[][..] } else { &lane };
                let vector = clocks.event(&event, counted).unwrap();
                let now = Now { clocks: &clocks, vector, index, thread_lane: t };
                if matched.is_empty() {
                    continue;
                }
                let bits = matched.iter().fold(0u64, |bits, i| bits | 1 << i);
                let by_table = table.step(&subsets, &subsets.moves(bits), &lanes, &now);
                let by_queues = greedy.step(&matched, &lanes, &now);
                assert_eq!(by_table, by_queues, "seed {seed}, event {index}");
                longest = longest.max(greedy.waiting());
                if by_queues.is_some() {
                    found += 1;
                    break;
                }
            }
        }
        assert!(found >= 5, "only {found}");
        assert!(longest < 1_000, "{longest} candidates waited");
    }
}
