//! Membership of a pattern in a trace's runs as Bertoni, Mauri and Sabadini decide it: for every
//! ideal of *all* events, the states in which an automaton can be after some run of it.
//!
//! The original keeps every ideal; here only those of two neighbouring sizes are kept, which favours
//! it. There are up to (n/T)^T of them, so the memory they take is bounded.

use std::collections::HashMap;

use foresee_trace::{Event, Id};

use super::vector_clocks::VectorClocks;

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Matches,
    NoMatch,
    /// The ideals took more memory than they may.
    GaveUp,
}

/// The answer, and how many ideals there were up to it. `matched` are for each event the positions
/// that it is a candidate of, as bits; a pattern of `length` positions is an automaton whose state
/// is how many of them have been passed.
pub(crate) fn search(
    threads: usize,
    events: &[Event],
    matched: &[u64],
    length: usize,
    most_bytes: usize,
) -> (Answer, u64) {
    let mut clocks = VectorClocks::default();
    let mut by_thread: Vec<Vec<(Vec<u32>, u64)>> = vec![Vec::new(); threads];
    for (event, &bits) in events.iter().zip(matched) {
        clocks.event(event);
        let t = event.thread().index();
        let mut needs = clocks.thread(t).to_vec();
        needs.resize(threads, 0);
        by_thread[t].push((needs, bits));
    }
    // The vector, its entry in the table, and the set of states.
    let bytes_of_one = threads * size_of::<u32>() + size_of::<(Vec<u32>, u64)>() + 1;
    let mut level = HashMap::from([(vec![0u32; threads], 1u64)]);
    let mut ideals = 0;
    while !level.is_empty() {
        ideals += level.len() as u64;
        let mut next: HashMap<Vec<u32>, u64> = HashMap::new();
        for (cut, &states) in &level {
            for t in 0..threads {
                let Some((needs, bits)) = by_thread[t].get(cut[t] as usize) else { continue };
                let is_ready = |u: usize| u == t || needs[u] <= cut[u];
                if !(0..threads).all(is_ready) {
                    continue;
                }
                // From `q` positions to one more, if the event is a candidate of the next one.
                let states = states & !bits | (states & bits) << 1;
                if states >> length & 1 == 1 {
                    return (Answer::Matches, ideals);
                }
                let mut cut = cut.clone();
                cut[t] += 1;
                *next.entry(cut).or_default() |= states;
            }
            if (level.len() + next.len()) * bytes_of_one > most_bytes {
                return (Answer::GaveUp, ideals);
            }
        }
        level = next;
    }
    (Answer::NoMatch, ideals)
}

#[cfg(test)]
mod tests {
    use foresee_trace::Trace;
    use foresee_trace::generate::{Config, Generator};

    use super::super::permutations::Permutations;
    use super::*;

    /// Both baselines decide the same question.
    #[test]
    fn ideals_and_permutations_agree() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut matches = 0;
        for seed in 0..500 {
            let config = Config { variables: 3, locks: 1, ..Config::bench(3, 24, seed) };
            let trace = Trace::load(&mut Generator::new(config).unwrap()).unwrap();
            let length = rng.usize(2..=4);
            let mut matched: Vec<u64> = vec![0; trace.events.len()];
            for position in 0..length {
                // The candidates of a position are events of one thread, as the paper has it.
                let thread = rng.usize(0..trace.names.threads.len());
                for (event, bits) in trace.events.iter().zip(&mut matched) {
                    let is_candidate = event.thread().index() == thread && rng.u8(..5) == 0;
                    *bits |= u64::from(is_candidate) << position;
                }
            }
            let mut permutations = Permutations::new(length);
            let found = trace.events.iter().zip(&matched).any(|(event, bits)| {
                let positions = (0..length as u8).filter(|p| bits >> p & 1 == 1);
                permutations.event(event, &positions.collect::<Vec<u8>>())
            });
            let threads = trace.names.threads.len();
            let (answer, _) = search(threads, &trace.events, &matched, length, usize::MAX);
            let expected = if found { Answer::Matches } else { Answer::NoMatch };
            assert_eq!(answer, expected, "seed {seed}");
            let (answer, _) = search(threads, &trace.events, &matched, length, 1);
            assert_eq!(answer, Answer::GaveUp, "seed {seed}");
            matches += u32::from(found);
        }
        assert!((100..400).contains(&matches), "{matches} of 500 match");
    }
}
