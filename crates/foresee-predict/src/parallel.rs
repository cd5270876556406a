//! Work on all cores.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a list is worked through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    /// How many cores may be used.
    pub(crate) cores: usize,
    /// How many items a core takes at a time.
    pub(crate) chunk: usize,
}

impl Work {
    /// Works through a list. Each core begins with `start`, gives its state and the number of the item to `each` for
    /// every item that it takes, until that breaks, and ends with `end`. Returns what the cores ended with, in no
    /// particular order. A panic on another core is passed on.
    pub(crate) fn on_all<T: Sync, S, E: Send>(
        self,
        items: &[T],
        start: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, usize, &T) -> ControlFlow<()> + Sync,
        end: impl Fn(S) -> E + Sync,
    ) -> Vec<E> {
        if items.is_empty() {
            return Vec::new();
        }
        let Work { cores, chunk } = self;
        let next = AtomicUsize::new(0);
        let work = || {
            let mut state = start();
            loop {
                let from = next.fetch_add(chunk, Ordering::Relaxed);
                let to = (from + chunk).min(items.len());
                if from >= to {
                    return end(state);
                }
                for (i, item) in items[from..to].iter().enumerate() {
                    if each(&mut state, from + i, item).is_break() {
                        return end(state);
                    }
                }
            }
        };
        let cores = cores.clamp(1, items.len().div_ceil(chunk));
        let mut ends = Vec::with_capacity(cores);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
            ends.push(work());
            for other in others {
                match other.join() {
                    Ok(end) => ends.push(end),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        ends
    }
}

/// The parts of several cores as one list, in the order of the numbers.
pub(crate) fn in_order<R>(parts: impl IntoIterator<Item = Vec<(usize, R)>>) -> Vec<(usize, R)> {
    let mut all: Vec<(usize, R)> = parts.into_iter().flatten().collect();
    all.sort_by_key(|&(at, _)| at);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_taken_once() {
        for (length, cores, chunk) in [(0, 3, 4), (1, 8, 4), (9, 1, 4), (1000, 4, 7), (8, 2, 8)] {
            let items: Vec<usize> = (0..length).collect();
            let each = |done: &mut Vec<(usize, usize)>, at: usize, item: &usize| {
                done.push((at, item * item));
                ControlFlow::Continue(())
            };
            let parts = Work { cores, chunk }.on_all(&items, Vec::new, each, |done| done);
            assert!(parts.len() <= cores);
            let expected: Vec<_> = items.iter().map(|i| (*i, i * i)).collect();
            assert_eq!(in_order(parts), expected);
        }
    }

    #[test]
    fn a_core_that_is_told_to_stop_takes_no_further_item() {
        let items: Vec<usize> = (0..100).collect();
        let each = |taken: &mut usize, _: usize, &item: &usize| {
            *taken += 1;
            if item < 10 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        assert_eq!(Work { cores: 1, chunk: 4 }.on_all(&items, || 0, each, |taken| taken), [11]);
    }

    #[test]
    #[should_panic(expected = "item 7")]
    fn a_panic_of_any_core_is_passed_on() {
        let items: Vec<usize> = (0..8).collect();
        let each = |(): &mut (), _: usize, &item: &usize| {
            assert!(item != 7, "item 7");
            ControlFlow::Continue(())
        };
        Work { cores: 4, chunk: 1 }.on_all(&items, || (), each, drop);
    }
}
