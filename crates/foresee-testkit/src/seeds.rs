//! How many random cases tests try: by default what continuous integration runs, by `FORESEE_SEEDS` fewer or more.

use std::ops::Range;
use std::sync::LazyLock;

/// `FORESEE_SEEDS`, in per cent.
static PERCENT: LazyLock<u64> = LazyLock::new(|| percent(std::env::var("FORESEE_SEEDS").ok()));

fn percent(text: Option<String>) -> u64 {
    let Some(text) = text else { return 100 };
    let percent = text.trim_end_matches('%').parse();
    let percent = percent.ok().filter(|percent| (1..=100_000).contains(percent));
    percent.unwrap_or_else(|| panic!("FORESEE_SEEDS is a percentage, such as 10, and not `{text}`"))
}

/// The seeds of a test that tries `count` cases in continuous integration. `FORESEE_SEEDS=10` makes it a tenth,
/// `FORESEE_SEEDS=1000` ten times as many.
///
/// # Panics
/// If `FORESEE_SEEDS` is not a percentage.
pub fn seeds(count: u64) -> Range<u64> {
    seeds_in(0..count)
}

/// The same for seeds that begin elsewhere.
///
/// # Panics
/// If `FORESEE_SEEDS` is not a percentage.
pub fn seeds_in(all: Range<u64>) -> Range<u64> {
    all.start..all.start + scaled(all.end - all.start, *PERCENT).max(1)
}

/// How many of something a test must have seen to mean anything, given how many that is in continuous integration. A
/// bound from above is scaled in the same way.
///
/// # Panics
/// If `FORESEE_SEEDS` is not a percentage, or the number does not fit.
pub fn enough<N: TryFrom<u64>>(count: u64) -> N {
    let scaled = scaled(count, *PERCENT);
    N::try_from(scaled).unwrap_or_else(|_| panic!("{scaled} does not fit"))
}

fn scaled(count: u64, percent: u64) -> u64 {
    count * percent / 100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_all_and_others_are_scaled() {
        assert_eq!(percent(None), 100);
        assert_eq!(percent(Some("10".to_owned())), 10);
        assert_eq!(percent(Some("250%".to_owned())), 250);
        assert_eq!(scaled(20_000, 100), 20_000);
        assert_eq!(scaled(20_000, 10), 2_000);
        assert_eq!(scaled(30, 1), 0);
        assert_eq!(scaled(30, 1_000), 300);
    }

    #[test]
    #[should_panic(expected = "FORESEE_SEEDS is a percentage")]
    fn nonsense_is_refused() {
        percent(Some("few".to_owned()));
    }
}
