//! Patterns over an alphabet with any relation of dependence, without threads and clocks.
//!
//! Where nothing is known of events but their letters and which letters depend on each other, an
//! event keeps its *after set*: the letters of all events that it comes before. The next event
//! comes after it if and only if its letter depends on one of these (Ang and Mathur 2024, their
//! third algorithm, with subsets of positions where the print has prefixes). Space does not depend
//! on the length of the word.

use super::subsets::Subsets;

/// Looks for a word with the same dependences that has a pattern.
#[derive(Debug)]
pub struct AfterSets {
    /// For each letter those that depend on it, itself included.
    dependent: Vec<u64>,
    /// The letter of each position.
    pattern: Vec<u8>,
    subsets: Subsets,
    /// For each subset its greatest tuple.
    tuples: Vec<Option<Tuple>>,
    read: u64,
}

/// For each position the index and the after set of its event.
type Tuple = Box<[(u64, u64)]>;

impl AfterSets {
    /// Makes ready for words over the letters that `dependent` has an entry for: at most 64. Every
    /// letter depends on itself, and those it is said to depend on depend on it. `None` if the
    /// pattern is too long.
    pub fn new(dependent: &[u64], pattern: &[u8]) -> Option<AfterSets> {
        let mut symmetric: Vec<u64> = (0..dependent.len()).map(|a| 1 << a).collect();
        for (a, others) in dependent.iter().enumerate() {
            for b in (0..dependent.len()).filter(|b| others >> b & 1 == 1) {
                symmetric[a] |= 1 << b;
                symmetric[b] |= 1 << a;
            }
        }
        let first = |letter: &u8| pattern.iter().position(|l| l == letter).unwrap_or(0);
        let kinds: Vec<usize> = pattern.iter().map(first).collect();
        let subsets = Subsets::new(&kinds)?;
        let mut tuples = vec![None; subsets.len()];
        tuples[subsets.len() - 1] = Some(vec![(0, 0); pattern.len()].into());
        Some(AfterSets {
            dependent: symmetric,
            pattern: pattern.to_vec(),
            subsets,
            tuples,
            read: 0,
        })
    }

    /// Takes the next letter of the word; the places of letters that show the pattern, in its order,
    /// if some word with the same dependences has it now.
    pub fn letter(&mut self, letter: u8) -> Option<Vec<u64>> {
        let depends = self.dependent[usize::from(letter)];
        let index = self.read;
        self.read += 1;
        let positions = self.pattern.iter().enumerate().filter(|(_, l)| **l == letter);
        let matched = positions.fold(0, |bits, (i, _)| bits | 1 << i);
        for step in self.subsets.moves(matched) {
            let Some(from) = &self.tuples[step.from as usize] else { continue };
            let later = (0..from.len()).filter(|j| step.later >> j & 1 == 1);
            if later.map(|j| from[j].1).all(|after| after & depends == 0) {
                let mut to = from.clone();
                to[step.position as usize] = (index, 1 << letter);
                self.tuples[step.to as usize] = Some(to);
            }
        }
        for (_, after) in self.tuples.iter_mut().flatten().flat_map(|tuple| tuple.iter_mut()) {
            if *after & depends != 0 {
                *after |= 1 << letter;
            }
        }
        let full = self.tuples[0].as_ref()?;
        Some(full.iter().map(|(index, _)| *index).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All words that swaps of neighbours that do not depend on each other lead to.
    fn equivalent(word: &[u8], dependent: &[u64]) -> BTreeSet<Vec<u8>> {
        let mut all = BTreeSet::from([word.to_vec()]);
        let mut todo = vec![word.to_vec()];
        while let Some(word) = todo.pop() {
            for i in 1..word.len() {
                if dependent[usize::from(word[i - 1])] >> word[i] & 1 == 0 {
                    let mut swapped = word.clone();
                    swapped.swap(i - 1, i);
                    if all.insert(swapped.clone()) {
                        todo.push(swapped);
                    }
                }
            }
        }
        all
    }

    fn has(word: &[u8], pattern: &[u8]) -> bool {
        let mut rest = word.iter();
        pattern.iter().all(|letter| rest.any(|l| l == letter))
    }

    #[test]
    fn words_are_those_that_swaps_lead_to() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut found = 0;
        for _ in 0..10_000 {
            let letters = rng.usize(2..=5);
            let mut dependent: Vec<u64> = (0..letters).map(|a| 1 << a).collect();
            for a in 0..letters {
                for b in 0..a {
                    if rng.u8(..10) < 4 {
                        dependent[a] |= 1 << b;
                        dependent[b] |= 1 << a;
                    }
                }
            }
            let length = rng.usize(1..=7);
            let word: Vec<u8> = (0..length).map(|_| rng.u8(..letters as u8)).collect();
            let length = rng.usize(1..=4);
            let pattern: Vec<u8> = (0..length).map(|_| rng.u8(..letters as u8)).collect();
            let mut sets = AfterSets::new(&dependent, &pattern).unwrap();
            for end in 1..=word.len() {
                let tuple = sets.letter(word[end - 1]);
                let expected =
                    equivalent(&word[..end], &dependent).iter().any(|w| has(w, &pattern));
                assert_eq!(tuple.is_some(), expected, "{pattern:?} in {:?}", &word[..end]);
                if let Some(tuple) = tuple {
                    let shown: Vec<u8> = tuple.iter().map(|&i| word[i as usize]).collect();
                    assert_eq!(shown, pattern);
                    found += 1;
                    break;
                }
            }
        }
        assert!(found > 2_000, "only {found}");
    }
}
