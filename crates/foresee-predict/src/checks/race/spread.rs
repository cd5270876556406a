//! Which pairs of places are tried, and which of their accesses.
//!
//! There can be more pairs of places than there is time for. Those that are needed to show every
//! place that is known to race are always tried. The others take turns: first one for each place and
//! variable, then a second one, and so on, in each turn those first that are known to race, and then
//! the nearest.
//!
//! The nearest accesses of a pair of places are not always those that race: the first access of a
//! critical section may race where the second has to see what the first saw. So half of the tries
//! go to other accesses, spread from the first to the last.

use std::collections::{HashMap, HashSet};

use foresee_trace::{Id, entry};

use super::super::Options;
use super::classes::Group;

/// The pairs of places that have something to try, the best first; and the number of those left
/// out.
pub(super) fn best_first(groups: &[Group], most: usize) -> (Vec<u32>, u64) {
    let distance = |group: &Group| {
        let known = group.sure.iter().chain(&group.pairs);
        known.map(|pair| pair.distance()).min()
    };
    let mut open: Vec<(bool, u32, u32)> = Vec::new();
    for (key, group) in groups.iter().enumerate() {
        if let Some(distance) = distance(group) {
            open.push((group.sure.is_none(), distance, key as u32));
        }
    }
    if open.len() <= most {
        return (open.into_iter().map(|(.., key)| key).collect(), 0);
    }
    open.sort_unstable();
    let (mut sites, mut variables): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut turns: Vec<(bool, u32, u32)> = Vec::new();
    for (_, _, key) in open {
        let group = &groups[key as usize];
        let mut turn = 0;
        let mut take = |taken: &mut u32| {
            turn = turn.max(*taken);
            *taken += 1;
        };
        group.sites.iter().for_each(|&site| take(entry(&mut sites, site as usize)));
        take(entry(&mut variables, group.variable.index()));
        turns.push((!group.is_first, turn, key));
    }
    turns.sort_by_key(|&(is_more, turn, _)| (is_more, turn));
    let needed = turns.partition_point(|&(is_more, ..)| !is_more);
    let chosen = turns.len().min(most.max(needed));
    let left = (turns.len() - chosen) as u64;
    (turns[..chosen].iter().map(|&(.., key)| key).collect(), left)
}

/// The pairs of accesses to try for a pair of places, the likeliest first. There is at least one.
pub(super) fn pairs(
    group: &Group,
    members: &HashMap<u32, Vec<u32>>,
    options: &Options,
) -> Vec<[u32; 2]> {
    if let Some(sure) = group.sure {
        return vec![sure.events];
    }
    let mut nearest: Vec<[u32; 2]> = group.pairs.iter().map(|pair| pair.events).collect();
    nearest.sort_unstable_by_key(|[e, f]| (f - e, *e));
    let mut others = Vec::new();
    let share = (options.tries_per_place / group.classes.len().max(1)).clamp(1, options.tries);
    for pair in &group.classes {
        if let [Some(a), Some(b)] = pair.map(|class| members.get(&class)) {
            others.extend(grid(a, b, share));
        }
    }
    let mut known = HashSet::new();
    let most = options.tries_per_place.min(options.tries * group.classes.len()).max(1);
    let (mut near, mut far) = (nearest.into_iter(), others.into_iter());
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let turn = [near.next(), far.next()];
        if turn == [None, None] {
            break;
        }
        chosen.extend(turn.into_iter().flatten().filter(|&pair| known.insert(pair)));
    }
    chosen.truncate(most);
    chosen
}

/// Up to `most` pairs of two chains of events: all of them, or else the first, the last, and some
/// evenly spaced in between.
fn grid(a: &[u32], b: &[u32], most: usize) -> Vec<[u32; 2]> {
    let side = most.isqrt().max(1);
    // If one chain is short, take more of the other.
    let of_a = if b.len() < side { most / b.len().max(1) } else { side };
    let of_b = if a.len() < side { most / a.len().max(1) } else { side };
    let (a, b) = (evenly(a, of_a), evenly(b, of_b));
    let mut pairs: Vec<[u32; 2]> =
        a.iter().flat_map(|&e| b.iter().map(move |&f| [e.min(f), e.max(f)])).collect();
    pairs.sort_unstable_by_key(|[e, f]| (f - e, *e));
    pairs.truncate(most);
    pairs
}

/// Up to `most` elements of a list: the first, the last, and some evenly spaced in between.
fn evenly(list: &[u32], most: usize) -> Vec<u32> {
    match (list.len(), most) {
        (length, most) if length <= most => list.to_vec(),
        (_, 0 | 1) => list[..1].to_vec(),
        (length, most) => (0..most).map(|i| list[i * (length - 1) / (most - 1)]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_and_some_between() {
        let list: Vec<u32> = (0..100).collect();
        assert_eq!(evenly(&list, 4), [0, 33, 66, 99]);
        assert_eq!(evenly(&list[..3], 4), [0, 1, 2]);
        assert_eq!(evenly(&list, 1), [0]);
        assert!(evenly(&[], 4).is_empty());
    }

    #[test]
    fn short_chains_are_tried_in_full() {
        assert_eq!(grid(&[1, 2], &[7], 16), [[2, 7], [1, 7]]);
        let long: Vec<u32> = (10..1000).collect();
        let pairs = grid(&long, &[5], 16);
        assert_eq!(pairs.len(), 16);
        assert_eq!((pairs[0], pairs[15]), ([5, 10], [5, 999]));
        assert_eq!(grid(&long, &long, 16).len(), 16);
    }
}
