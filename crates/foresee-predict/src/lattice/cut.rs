//! Cuts packed into a few words.

/// How the counters of a cut are packed: each thread's counter has as many bits as it needs, and
/// none is split between words.
#[derive(Clone, Debug)]
pub(super) struct Packing {
    fields: Vec<Field>,
    words: usize,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    word: u32,
    shift: u32,
    mask: u64,
}

impl Packing {
    /// A packing for counters up to these numbers.
    pub(super) fn new(most: impl IntoIterator<Item = usize>) -> Packing {
        let mut fields = Vec::new();
        let (mut word, mut shift) = (0, 0);
        for most in most {
            let bits = (usize::BITS - most.leading_zeros()).max(1);
            if shift + bits > 64 {
                (word, shift) = (word + 1, 0);
            }
            fields.push(Field { word, shift, mask: u64::MAX >> (64 - bits) });
            shift += bits;
        }
        Packing { fields, words: word as usize + 1 }
    }

    /// How many words a cut has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Takes a cut apart.
    #[inline]
    pub(super) fn unpack(&self, cut: &[u64], counts: &mut [u32]) {
        for (count, field) in counts.iter_mut().zip(&self.fields) {
            *count = (cut[field.word as usize] >> field.shift & field.mask) as u32;
        }
    }

    /// The number to add to a word of a cut for one more event of a thread.
    #[inline]
    pub(super) fn one(&self, column: usize) -> (usize, u64) {
        let field = &self.fields[column];
        (field.word as usize, 1 << field.shift)
    }
}

/// A hash of a cut: a multiplication for each word mixes enough for a table that is emptied with
/// every level.
#[inline]
pub(super) fn hash(cut: &[u64]) -> u64 {
    let mut hash = 0u64;
    for &word in cut {
        let product = u128::from(hash ^ word ^ 0xf39c_c060_5ced_c835) * 0x9e37_79b9_7f4a_7c15;
        hash = (product >> 64) as u64 ^ product as u64;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_do_not_disturb_each_other() {
        let most = [0, 1, 1000, 70_000, 3, u32::MAX as usize, 9];
        let packing = Packing::new(most);
        assert_eq!(packing.words(), 2);
        let mut cut = vec![0; packing.words()];
        let mut expected = [0u32; 7];
        for (column, &n) in most.iter().enumerate() {
            for _ in 0..n.min(1000) {
                let (word, one) = packing.one(column);
                cut[word] += one;
                expected[column] += 1;
            }
        }
        let mut counts = [0; 7];
        packing.unpack(&cut, &mut counts);
        assert_eq!(counts, expected);
    }
}
