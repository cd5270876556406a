//! Which events of a ring's requests to try: those that are close together first.
//!
//! A reordering has to omit the steps between the events of a ring, so close events are the
//! likeliest, and the cheapest to try.

/// Up to this many combinations are examined completely.
const FEW: usize = 256;

/// At most `most` tuples with one event from each list, the narrowest first. The lists are in the
/// order of the trace.
pub(crate) fn nearest(lists: &[&[u32]], most: usize) -> Vec<Vec<u32>> {
    let combinations = lists.iter().try_fold(1usize, |n, list| n.checked_mul(list.len()));
    let mut tuples = match combinations {
        Some(0) => return Vec::new(),
        Some(n) if n <= FEW => all(lists, n),
        _ => around_the_rarest(lists),
    };
    tuples.sort_by_cached_key(|tuple| (width(tuple), tuple.clone()));
    tuples.dedup();
    tuples.truncate(most);
    tuples
}

/// How far apart the events of a tuple are.
pub(crate) fn width(tuple: &[u32]) -> u32 {
    let (least, greatest) = (tuple.iter().min(), tuple.iter().max());
    greatest.zip(least).map_or(0, |(greatest, least)| greatest - least)
}

fn all(lists: &[&[u32]], combinations: usize) -> Vec<Vec<u32>> {
    let tuple = |mut code: usize| {
        let mut pick = |list: &&[u32]| {
            let event = list[code % list.len()];
            code /= list.len();
            event
        };
        lists.iter().map(&mut pick).collect()
    };
    (0..combinations).map(tuple).collect()
}

/// Each event of the shortest list with the nearest ones of the others, before and after it.
fn around_the_rarest(lists: &[&[u32]]) -> Vec<Vec<u32>> {
    let Some(rarest) = (0..lists.len()).min_by_key(|&i| lists[i].len()) else { return Vec::new() };
    let mut tuples = Vec::new();
    for &event in lists[rarest] {
        let near = |list: &[u32], after: bool| {
            let at = list.partition_point(|&other| other < event);
            let at = if after { at.min(list.len() - 1) } else { at.saturating_sub(1) };
            list[at]
        };
        let nearest = |list: &[u32]| {
            let (before, after) = (near(list, false), near(list, true));
            if after.abs_diff(event) < before.abs_diff(event) { after } else { before }
        };
        let mut tuple = |pick: &dyn Fn(&[u32]) -> u32| {
            let one = |(i, list): (usize, &&[u32])| if i == rarest { event } else { pick(list) };
            tuples.push(lists.iter().enumerate().map(one).collect());
        };
        tuple(&nearest);
        tuple(&|list| near(list, false));
        tuple(&|list| near(list, true));
    }
    tuples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first() {
        let tuples = nearest(&[&[10, 50, 90], &[12, 80, 91]], 3);
        assert_eq!(tuples, [[90, 91], [10, 12], [90, 80]]);
        assert!(nearest(&[&[1], &[]], 3).is_empty());
    }

    #[test]
    fn long_lists_are_tried_around_the_rarest() {
        let long: Vec<u32> = (0..100_000).map(|i| i * 3).collect();
        let tuples = nearest(&[&long, &[7, 299_999], &long], 4);
        assert_eq!(tuples[..3], [[6, 7, 6], [9, 7, 9], [299_997, 299_999, 299_997]]);
        assert!(tuples.len() <= 4 && tuples.iter().all(|t| t[1] == 7 || t[1] == 299_999));
    }
}
