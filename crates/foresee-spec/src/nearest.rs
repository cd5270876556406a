//! Finds the known name that was probably meant.

/// Longer names are not compared: they were not typed by hand.
const LONGEST: usize = 100;

/// The number of single-character changes, including swaps of neighbours, that lead from `a` to
/// `b`; `None` if it exceeds `most`.
pub(crate) fn distance(a: &str, b: &str, most: usize) -> Option<usize> {
    let (long_a, long_b) =
        (a.chars().take(LONGEST + 1).count(), b.chars().take(LONGEST + 1).count());
    if long_a.abs_diff(long_b) > most || long_a.max(long_b) > LONGEST {
        return None;
    }
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        if row.iter().all(|&d| d > most) {
            return None;
        }
        before = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|&d| d <= most)
}

/// The maximum distance at which a name counts as a misspelling: about a third of its length.
pub(crate) fn tolerance(name: &str) -> usize {
    match name.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        6..=8 => 2,
        _ => 3,
    }
}

/// The candidate closest to `name`, if it is close enough to have been meant.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let most = tolerance(name);
    let close = candidates.into_iter().filter(|&c| c != name);
    close.filter_map(|c| Some((distance(name, c, most)?, c))).min().map(|(_, c)| c)
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
    }
}
