//! A limit of memory that many parts share.
//!
//! Half of the limit is divided equally among the parts that there may be, so that no part can take
//! another one's share; the other half goes to those that ask first. What all of them take together
//! stays within the limit, and a greedy part does not disturb the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit that parts share.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    /// What each part may take in any case.
    share: usize,
    /// What is left for those that ask first.
    common: AtomicUsize,
}

impl Budget {
    /// A limit in bytes for at most this many parts at a time.
    pub fn new(limit: usize, parts: usize) -> Arc<Budget> {
        let share = limit / 2 / parts.max(1);
        Arc::new(Budget { limit, share, common: AtomicUsize::new(limit / 2) })
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A part that has taken nothing yet.
    pub fn part(self: &Arc<Self>) -> BudgetPart {
        BudgetPart { budget: Arc::clone(self), taken: 0 }
    }

    /// What a part that takes this many bytes takes from the others.
    fn beyond_share(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.share)
    }
}

/// What one part takes; given back when it is dropped.
#[derive(Debug)]
pub struct BudgetPart {
    budget: Arc<Budget>,
    taken: usize,
}

impl BudgetPart {
    /// Takes this many bytes in all from now on. If there are fewer, returns `false` and
    /// changes nothing; less than before is always granted.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let budget = &self.budget;
        let (before, now) = (budget.beyond_share(self.taken), budget.beyond_share(bytes));
        let (ordering, common) = (Ordering::Relaxed, &budget.common);
        if now <= before {
            common.fetch_add(before - now, ordering);
        } else {
            let less = |left: usize| left.checked_sub(now - before);
            if common.fetch_update(ordering, ordering, less).is_err() {
                return false;
            }
        }
        self.taken = bytes;
        true
    }

    /// How many bytes it has taken.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// The limit that it shares with others, in bytes.
    pub fn limit(&self) -> usize {
        self.budget.limit
    }
}

impl Drop for BudgetPart {
    fn drop(&mut self) {
        let _ = self.take(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greedy_part_leaves_the_others_their_share() {
        let budget = Budget::new(1000, 5);
        let (mut greedy, mut modest) = (budget.part(), budget.part());
        assert!(greedy.take(600) && !greedy.take(601));
        assert!(modest.take(100) && !modest.take(101));
        assert!(greedy.take(500) && modest.take(200) && !modest.take(201));
        drop(greedy);
        assert!(modest.take(600));
    }

    #[test]
    fn together_they_stay_within_the_limit() {
        let mut chance = fastrand::Rng::with_seed(1);
        let budget = Budget::new(10_000, 8);
        let mut parts: Vec<BudgetPart> = (0..8).map(|_| budget.part()).collect();
        for _ in 0..100_000 {
            let (at, bytes) = (chance.usize(..8), chance.usize(..8000));
            let before = parts[at].taken();
            let granted = parts[at].take(bytes);
            assert_eq!(parts[at].taken(), if granted { bytes } else { before });
            assert!(granted || bytes > before);
            assert!(parts.iter().map(BudgetPart::taken).sum::<usize>() <= budget.limit());
        }
    }
}
