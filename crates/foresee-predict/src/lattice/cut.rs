//! Cuts packed into a few words.

/// How the counters of a cut are packed: each thread's counter, less a base that all cuts of the
/// level have in common, has as many bits as it needs, and none is split between words. Threads
/// that are not known to have any event beyond the base take no room at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing {
    base: Vec<u32>,
    /// Up to which count each column has room.
    most: Vec<u32>,
    fields: Vec<Field>,
    words: usize,
}

#[derive(Clone, Copy, Debug)]
struct Field {
    column: u32,
    word: u32,
    shift: u32,
    mask: u64,
}

impl Packing {
    /// A packing for counters from `base` up to `most`.
    pub(super) fn new(base: Vec<u32>, most: Vec<u32>) -> Packing {
        let mut fields = Vec::new();
        let (mut word, mut shift) = (0, 0);
        for (column, (base, most)) in base.iter().zip(&most).enumerate() {
            let bits = u32::BITS - (most - base).leading_zeros();
            if bits == 0 {
                continue;
            }
            if shift + bits > 64 {
                (word, shift) = (word + 1, 0);
            }
            let mask = u64::MAX >> (64 - bits);
            fields.push(Field { column: column as u32, word, shift, mask });
            shift += bits;
        }
        Packing { base, most, fields, words: word as usize + 1 }
    }

    /// How many words a cut has.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// How many columns cuts have.
    pub(super) fn len(&self) -> usize {
        self.base.len()
    }

    /// Whether counters up to these numbers, one for each column, have room.
    pub(super) fn has_room(&self, most: &[u32]) -> bool {
        most.len() == self.len() && most.iter().zip(&self.most).all(|(wanted, room)| wanted <= room)
    }

    /// The columns that cuts can differ in, each by its place in the packing.
    pub(super) fn columns(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.fields.iter().map(|field| field.column as usize)
    }

    /// The column at a place of the packing.
    #[inline]
    pub(super) fn column(&self, place: usize) -> usize {
        self.fields[place].column as usize
    }

    /// Unpacks a cut.
    #[inline]
    pub(super) fn unpack(&self, cut: &[u64], counts: &mut Vec<u32>) {
        if counts.len() != self.base.len() {
            counts.clone_from(&self.base);
        }
        for field in &self.fields {
            let over = (cut[field.word as usize] >> field.shift & field.mask) as u32;
            let column = field.column as usize;
            counts[column] = self.base[column] + over;
        }
    }

    /// The counter of one place of the packing.
    #[inline]
    pub(super) fn count(&self, cut: &[u64], place: usize) -> u32 {
        let field = &self.fields[place];
        let over = (cut[field.word as usize] >> field.shift & field.mask) as u32;
        self.base[field.column as usize] + over
    }

    /// The number to add to a word of a cut for one more event at a place of the packing.
    #[inline]
    pub(super) fn one(&self, place: usize) -> (usize, u64) {
        let field = &self.fields[place];
        (field.word as usize, 1 << field.shift)
    }

    /// Packs a cut and adds it to others.
    pub(super) fn pack(&self, counts: &[u32], cuts: &mut Vec<u64>) {
        let start = cuts.len();
        cuts.resize(start + self.words, 0);
        for field in &self.fields {
            let column = field.column as usize;
            let over = u64::from(counts[column] - self.base[column]);
            cuts[start + field.word as usize] |= over << field.shift;
        }
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
        let base = vec![0, 0, 5, 70_000, 3, 0, 9, 2];
        let most = vec![0, 1, 1005, 140_000, 6, u32::MAX, 18, 2];
        let packing = Packing::new(base.clone(), most.clone());
        assert_eq!(packing.words(), 2);
        let places: Vec<usize> = packing.columns().collect();
        assert_eq!(places, [1, 2, 3, 4, 5, 6]);
        let mut cut = Vec::new();
        packing.pack(&base, &mut cut);
        let mut expected = base;
        for (place, &column) in places.iter().enumerate() {
            for _ in 0..(most[column] - expected[column]).min(1000) {
                let (word, one) = packing.one(place);
                cut[word] += one;
                expected[column] += 1;
            }
            assert_eq!(packing.count(&cut, place), expected[column]);
        }
        let mut counts = Vec::new();
        packing.unpack(&cut, &mut counts);
        assert_eq!(counts, expected);
        let mut again = Vec::new();
        packing.pack(&counts, &mut again);
        assert_eq!(again, cut);
        assert!(packing.has_room(&most));
        assert!(!packing.has_room(&[1, 0, 0, 0, 0, 0, 0, 0]));
    }
}
