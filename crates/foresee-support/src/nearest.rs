//! Finds the known name that was probably meant.

/// Longer names are not compared: they were not typed by hand.
const LONGEST: usize = 100;

/// How many single-character changes, swaps of neighbours included, lead from `a` to `b`; `None`
/// if more than `most`.
pub fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (long_a, long_b) =
        (a.chars().take(LONGEST + 1).count(), b.chars().take(LONGEST + 1).count());
    if long_a.abs_diff(long_b) > most || long_a.max(long_b) > LONGEST {
        return None;
    }
    Some(strsim::osa_distance(a, b)).filter(|&d| d <= most)
}

/// How different two names may be and still count as the same one misspelt: about a third of it.
pub fn tolerance(name: &str) -> usize {
    match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    }
}

/// The candidate closest to `name`, if one is close enough to have been meant.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(tolerance(name), name, candidates)
}

/// The candidate closest to `name`, if at most `most` changes lead to it.
pub fn nearest_within<'a>(
    most: usize,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let close = candidates.into_iter().filter(|&c| c != name);
    close.filter_map(|c| Some((distance(name, c, most)?, c))).min().map(|(_, c)| c)
}

/// How alike two names are, from 0 (nothing in common) to 1 (the same). For long lists of which the
/// closest are shown; zero for names that are too long to compare.
pub fn likeness(a: &str, b: &str) -> f64 {
    let longest = a.chars().count().max(b.chars().count());
    if longest > LONGEST { 0.0 } else { strsim::normalized_damerau_levenshtein(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in [
            ("", "", 0),
            ("always", "alway", 1),
            ("property", "propery", 1),
            ("and", "adn", 1),
            ("kitten", "sitting", 3),
            ("größe", "grösse", 2),
        ] {
            assert_eq!(distance(a, b, 3), Some(d), "{a} {b}");
            assert_eq!(distance(b, a, 3), Some(d), "{b} {a}");
        }
        assert_eq!(distance("kitten", "sitting", 2), None);
        assert_eq!(distance("a", "abcdef", 3), None);
        assert_eq!(distance(&"a".repeat(101), &"a".repeat(101), 3), None);
    }

    #[test]
    fn the_closest_name_wins_and_a_far_one_does_not_count() {
        assert_eq!(nearest("landng", ["lending", "landing"]), Some("landing"));
        assert_eq!(nearest("x", ["y"]), None);
        assert_eq!(nearest("radio", ["approved", "landing"]), None);
        assert_eq!(nearest("same", ["same"]), None);
        assert_eq!(nearest("jso", ["jsonl"]), None);
        assert_eq!(nearest_within(2, "jso", ["jsonl"]), Some("jsonl"));
    }

    #[test]
    fn likeness_is_symmetric_and_bounded() {
        assert_eq!(likeness("queue", "queue"), 1.0);
        assert_eq!(likeness("abc", "xyz"), 0.0);
        assert!(likeness("queue", "quue") > likeness("queue", "que"));
        assert_eq!(likeness("quue", "queue"), likeness("queue", "quue"));
        assert_eq!(likeness(&"a".repeat(101), &"a".repeat(101)), 0.0);
    }
}
