//! The least tuple of chains that is reachable with all critical sections in observed order.
//!
//! Each chain holds events of one thread. The search wants one event of each chain, such that all
//! are the next of their threads after some correct reordering that keeps the order of critical
//! sections: a race if they are accesses, a deadlock if they are requests. The events that must
//! happen before them, `X`, are the least set that contains their predecessors, the requirements of
//! its events, and the end of each critical section after which `X` contains another section of the
//! lock. The tuple is reached if `X` contains none of its events.
//!
//! `X` only grows as the tuple advances. An event in `X` stays in it for all later tuples, so its
//! chain advances; nothing is tried twice, and the whole search is linear in the trace. This is how
//! sync-preserving races and deadlocks are found (Mathur, Pavlogiannis and Viswanathan, POPL 2021;
//! Tunç, Mathur, Pavlogiannis and Viswanathan, PLDI 2023), and both checks share it. It has no code
//! in common with the search in [`reorder`](crate::reorder), which answers the same question with
//! one slice.

use crate::reorder::{Kind, NONE, Requirements};

/// Finds tuples in one trace.
pub(crate) struct Pointers<'r> {
    requirements: &'r Requirements,
    /// For each thread, its prefix in `X`: one more than its last event in `X`, or zero.
    reached: Vec<u32>,
    todo: Vec<u32>,
    locks: Vec<Lock>,
    /// The locks that have a section in `X`.
    used: Vec<u32>,
    /// The number of steps left.
    pub(crate) work: u64,
}

/// The sections of a lock in `X`, by their acquires.
#[derive(Clone, Debug)]
struct Lock {
    /// The latest section, and the latest exclusive one.
    latest: u32,
    latest_exclusive: u32,
    /// The sections that need not have ended yet.
    open: Vec<u32>,
}

const UNUSED: Lock = Lock { latest: NONE, latest_exclusive: NONE, open: Vec::new() };

/// The result for some chains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chained {
    /// The least tuple.
    Least(Vec<u32>),
    /// No tuple is reachable.
    None,
    /// The work limit was reached.
    GaveUp,
}

impl<'r> Pointers<'r> {
    /// A search with at most `work` steps.
    pub(crate) fn new(requirements: &'r Requirements, work: u64) -> Pointers<'r> {
        Pointers {
            requirements,
            reached: vec![0; requirements.thread_count()],
            todo: Vec::new(),
            locks: vec![UNUSED; requirements.object_count() / 2 + 1],
            used: Vec::new(),
            work,
        }
    }

    /// The least tuple of some chains, each in the order of its thread.
    pub(crate) fn least(&mut self, chains: &[&[u32]]) -> Chained {
        let found = self.advance(chains);
        self.reached.fill(0);
        for lock in self.used.drain(..) {
            let Lock { latest, latest_exclusive, open } = &mut self.locks[lock as usize];
            (*latest, *latest_exclusive) = (NONE, NONE);
            open.clear();
        }
        self.todo.clear();
        found
    }

    fn advance(&mut self, chains: &[&[u32]]) -> Chained {
        let mut at = vec![0; chains.len()];
        loop {
            for (chain, &at) in chains.iter().zip(&at) {
                let Some(&event) = chain.get(at) else { return Chained::None };
                self.todo.push(self.requirements.previous(event));
            }
            if !self.close() {
                return Chained::GaveUp;
            }
            let mut is_reached = true;
            for (chain, at) in chains.iter().zip(&mut at) {
                while chain.get(*at).is_some_and(|&event| self.has(event)) {
                    *at += 1;
                    is_reached = false;
                }
            }
            if is_reached {
                let tuple = chains.iter().zip(&at).filter_map(|(chain, &at)| chain.get(at));
                return Chained::Least(tuple.copied().collect());
            }
        }
    }

    #[inline]
    fn has(&self, event: u32) -> bool {
        event < self.reached[self.requirements.thread(event) as usize]
    }

    /// Closes `X` under requirements; returns false if the work limit was reached.
    fn close(&mut self) -> bool {
        while let Some(event) = self.todo.pop() {
            if event == NONE || self.has(event) {
                continue;
            }
            // All new events of the thread, from the last.
            let thread = self.requirements.thread(event) as usize;
            let known = std::mem::replace(&mut self.reached[thread], event + 1);
            let mut at = event;
            loop {
                if self.work == 0 {
                    return false;
                }
                self.work -= 1;
                self.take_in(at);
                let previous = self.requirements.previous(at);
                if !self.requirements.has_previous(at) {
                    self.todo.push(previous);
                    break;
                }
                if previous < known {
                    break;
                }
                at = previous;
            }
        }
        true
    }

    /// Adds the requirements of an event besides its predecessor in the thread.
    #[inline]
    fn take_in(&mut self, event: u32) {
        let requirements = self.requirements;
        let kind = requirements.kind(event);
        match kind {
            Kind::Read | Kind::Rmw | Kind::Join | Kind::Wait | Kind::Busy => {
                let partner = requirements.partner(event);
                if partner != NONE && !self.has(partner) {
                    self.todo.push(partner);
                }
            }
            Kind::WaitEnd => self.todo.extend(requirements.condition(event).map(|w| w.1)),
            _ => {}
        }
        let object = requirements.object(event);
        if kind.acquires() && object != NONE {
            self.take(object as usize / 2, event);
        }
    }

    /// Adds a section of a lock: others must end before it, or it before them.
    fn take(&mut self, lock: usize, acquire: u32) {
        let release = self.requirements.partner(acquire);
        let has_ended = release != NONE && self.has(release);
        let Pointers { requirements, locks, todo, used, .. } = self;
        let is_shared = |a: u32| requirements.kind(a) == Kind::AcquireShared;
        let excludes = |a: u32, b: u32| {
            requirements.thread(a) != requirements.thread(b) && !(is_shared(a) && is_shared(b))
        };
        let number = lock as u32;
        let lock = &mut locks[lock];
        if lock.latest == NONE {
            used.push(number);
        }
        // Program order already orders sections of the same thread.
        let latest = if is_shared(acquire) { lock.latest_exclusive } else { lock.latest };
        let is_followed =
            !has_ended && latest != NONE && latest > acquire && excludes(latest, acquire);
        lock.open.retain(|&other| {
            let ends = other < acquire && excludes(other, acquire);
            if ends {
                todo.push(requirements.partner(other));
            }
            !ends
        });
        if is_followed {
            todo.push(release);
        } else if !has_ended {
            lock.open.push(acquire);
        }
        let later = |known: u32| if known == NONE { acquire } else { known.max(acquire) };
        lock.latest = later(lock.latest);
        if !is_shared(acquire) {
            lock.latest_exclusive = later(lock.latest_exclusive);
        }
    }
}

#[cfg(test)]
mod tests {
    use foresee_causality::judge::Reads;
    use foresee_testkit::{generated, random_trace};
    use foresee_trace::generate::Config;
    use foresee_trace::{Op, Trace};

    use super::*;
    use crate::reorder::{Answer, Effort, Goal, Search};

    fn traces() -> impl Iterator<Item = Trace> {
        let heavy = (0..400).map(|seed| {
            generated(Config {
                seed,
                threads: 2 + (seed % 2) as u32,
                events: 14 + seed % 16,
                variables: 3,
                locks: 2,
                conditions: 1,
                in_sections: 0.8,
                section_events: 2.5,
                max_nesting: 2,
                shared: if seed.is_multiple_of(3) { 0.4 } else { 0.0 },
                reads: 0.5,
                rmws: 0.1,
                waits: if seed.is_multiple_of(5) { 0.2 } else { 0.0 },
                unfinished: seed.is_multiple_of(4),
                ..Config::default()
            })
        });
        (0..1_000).map(random_trace).chain(heavy)
    }

    /// The direct closure and the search with one slice must agree.
    #[test]
    fn one_slice_and_the_least_tuple() {
        let (mut reached, mut chained) = (0, 0);
        for (seed, trace) in traces().enumerate() {
            let mut requirements = Requirements::default();
            let Trace { events, pool, .. } = &trace;
            events.iter().for_each(|event| requirements.push(event, pool).unwrap());
            requirements.finish();
            let mut search = Search::new(&requirements, Reads::Strict);
            let mut pointers = Pointers::new(&requirements, u64::MAX);
            let mut chains: Vec<Vec<u32>> = vec![Vec::new(); trace.names.threads.len()];
            for (i, event) in trace.events.iter().enumerate() {
                // An event that is only next does not have to meet the requirements of a join or
                // the end of a wait.
                if event.op() != Op::Init && (event.op().reads() || event.op().writes()) {
                    chains[event.thread().0 as usize].push(i as u32);
                }
            }
            for (t, first) in chains.iter().enumerate() {
                for second in &chains[..t] {
                    let mut yes: Vec<[u32; 2]> = Vec::new();
                    for &e in first {
                        for &f in second {
                            let goal = Goal { executed: &[], next: &[e, f] };
                            let effort = Effort { slices: 1, failures: 0, work: u64::MAX };
                            let answer = search.ask(&goal, 0, effort);
                            let is_reached = matches!(answer, Answer::Yes { .. });
                            let least = pointers.least(&[&[e], &[f]]);
                            let expected = match is_reached {
                                true => Chained::Least(vec![e, f]),
                                false => Chained::None,
                            };
                            assert_eq!(least, expected, "{seed}: {e} {f}\n{trace}");
                            yes.extend(is_reached.then_some([e, f]));
                        }
                    }
                    reached += yes.len();
                    let least = [0, 1].map(|i| yes.iter().map(|pair| pair[i]).min());
                    let expected = match least {
                        [Some(e), Some(f)] => Chained::Least(vec![e, f]),
                        _ => Chained::None,
                    };
                    chained += usize::from(expected != Chained::None);
                    assert_eq!(pointers.least(&[first, second]), expected, "{seed}\n{trace}");
                }
            }
        }
        assert!(reached > 5_000 && chained > 500, "{reached} {chained}");
    }
}
