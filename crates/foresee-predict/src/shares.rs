//! One time limit for several searches.

use std::time::{Duration, Instant};

/// Divides a time limit among searches that are made one after the other: each gets an equal share
/// of what is left, so what one does not need is for those that follow.
#[derive(Debug)]
pub(crate) struct Shares {
    end: Option<Instant>,
    searches: usize,
}

impl Shares {
    /// The limit begins now; without one, no search has a limit either.
    pub(crate) fn new(time: Option<Duration>, searches: usize) -> Shares {
        Shares { end: time.and_then(|time| Instant::now().checked_add(time)), searches }
    }

    /// How long the next search may take.
    pub(crate) fn next(&mut self) -> Option<Duration> {
        self.next_of(1)
    }

    /// How long the next so many searches may take together.
    pub(crate) fn next_of(&mut self, searches: usize) -> Option<Duration> {
        let left = self.searches.max(searches).max(1);
        self.searches = self.searches.saturating_sub(searches);
        let part = searches as f64 / left as f64;
        self.end.map(|end| end.saturating_duration_since(Instant::now()).mul_f64(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_and_what_is_left_goes_on() {
        let mut shares = Shares::new(Some(Duration::from_secs(1000)), 4);
        let seconds: Vec<u64> =
            std::iter::repeat_with(|| shares.next().map_or(0, |s| s.as_secs() + 1))
                .take(5)
                .collect();
        assert_eq!(seconds, [250, 334, 500, 1000, 1000]);
        let mut shares = Shares::new(Some(Duration::from_secs(1000)), 5);
        let parts =
            [3, 0, 1, 1].map(|n| shares.next_of(n).map_or(0, |s| s.as_secs_f64().round() as u64));
        assert_eq!(parts, [600, 0, 500, 1000]);
        assert_eq!(Shares::new(None, 4).next(), None);
        assert_eq!(Shares::new(Some(Duration::ZERO), 0).next(), Some(Duration::ZERO));
    }
}
