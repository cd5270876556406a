//! Hashes of 128 bits. They are the same on every machine, as they are written into files.
//!
//! The mixing is that of MurmurHash3 (x64, 128 bits), which is public domain.

/// A hash of a sequence of words.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    low: u64,
    high: u64,
    words: u64,
}

const FIRST: u64 = 0x87c3_7b91_1142_53d5;
const SECOND: u64 = 0x4cf5_ad43_2745_937f;

impl Hasher {
    /// A hash of words of one kind: equal words of different kinds have different hashes.
    pub fn new(kind: &[u8]) -> Hasher {
        let mut hasher = Hasher { low: 0, high: 0, words: 0 };
        hasher.bytes(kind);
        hasher
    }

    /// Adds a word.
    pub fn word(&mut self, word: u128) {
        let (low, high) = (word as u64, (word >> 64) as u64);
        self.low ^= low.wrapping_mul(FIRST).rotate_left(31).wrapping_mul(SECOND);
        self.low = self.low.rotate_left(27).wrapping_add(self.high);
        self.low = self.low.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.high ^= high.wrapping_mul(SECOND).rotate_left(33).wrapping_mul(FIRST);
        self.high = self.high.rotate_left(31).wrapping_add(self.low);
        self.high = self.high.wrapping_mul(5).wrapping_add(0x3849_5ab5);
        self.words += 1;
    }

    /// Adds bytes, and how many they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u128);
        for chunk in bytes.chunks(16) {
            let mut word = [0; 16];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u128::from_le_bytes(word));
        }
    }

    /// The hash of what was added.
    pub fn finish(&self) -> u128 {
        let (mut low, mut high) = (self.low ^ self.words, self.high ^ self.words);
        low = low.wrapping_add(high);
        high = high.wrapping_add(low);
        low = scramble(low);
        high = scramble(high);
        low = low.wrapping_add(high);
        high = high.wrapping_add(low);
        u128::from(high) << 64 | u128::from(low)
    }
}

fn scramble(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

/// The share of one word in the hash of a state. The hash of a state is the exclusive or of the shares of its words, so that a
/// step changes it by what the step changes. Zero has no share: a state does not change when it gets more words.
pub(crate) fn share(slot: u32, word: u32) -> u128 {
    if word == 0 {
        return 0;
    }
    let both = u64::from(slot) << 32 | u64::from(word);
    let low = scramble(both ^ FIRST);
    let high = scramble(both.wrapping_mul(SECOND) ^ low.rotate_left(32));
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_differ_by_kind_length_and_order() {
        let hash = |kind: &[u8], words: &[u128]| {
            let mut hasher = Hasher::new(kind);
            words.iter().for_each(|&word| hasher.word(word));
            hasher.finish()
        };
        let all = [
            hash(b"a", &[]),
            hash(b"b", &[]),
            hash(b"a", &[0]),
            hash(b"a", &[0, 0]),
            hash(b"a", &[1, 0]),
            hash(b"a", &[0, 1]),
            hash(b"a", &[1 << 64]),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other != one), "{i}");
        }
    }

    #[test]
    fn shares_of_neighbours_do_not_cancel() {
        let mut seen = std::collections::HashSet::new();
        for slot in 0..64 {
            for word in 1..64 {
                assert!(seen.insert(share(slot, word)));
            }
        }
        assert_eq!(share(3, 0), 0);
    }
}
