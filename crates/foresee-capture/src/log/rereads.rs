//! Reads of a buffer that only repeat others.
//!
//! Memory that is only written as a whole is one variable, see [`memory`](super::memory), and a thread that examines it byte
//! by byte reads that variable again and again. Without another event in between, such a read can happen directly after
//! the one before it, whatever the order of threads: it sees the same write. So leaving it out allows no order that it
//! rules out, and rules out none that it allows. What it takes part in, as a race or as one of two reads that a write
//! comes between, its place shows with reads that are kept: of each place the first two, and one after each other place.

use super::memory::GranuleId;

/// How often a place is kept.
const KEPT: u8 = 2;

/// The maximum number of places that are remembered. Reads at others are all kept.
const MOST_PLACES: usize = 16;

/// Consecutive reads of one variable by one thread.
#[derive(Debug, Default)]
pub(super) struct Rereads {
    /// The thread and the variable.
    of: Option<(u32, GranuleId)>,
    /// Their return addresses, and how often each was kept since the latest new one.
    places: [(u64, u8); MOST_PLACES],
    count: usize,
}

impl Rereads {
    /// Something else happens.
    #[inline]
    pub(super) fn interrupt(&mut self) {
        self.of = None;
    }

    /// Whether a read can be left out. If so, nothing changes, so that a pass which skips it comes to the same result.
    pub(super) fn repeats(&mut self, thread: u32, variable: GranuleId, pc: u64) -> bool {
        if self.of != Some((thread, variable)) {
            (self.of, self.count) = (Some((thread, variable)), 0);
        }
        let places = &mut self.places[..self.count];
        if let Some((_, times)) = places.iter_mut().find(|(place, _)| *place == pc) {
            let is_repeated = *times >= KEPT;
            *times += u8::from(!is_repeated);
            return is_repeated;
        }
        // The others are read once more after this one.
        places.iter_mut().for_each(|(_, times)| *times = KEPT - 1);
        if let Some(place) = self.places.get_mut(self.count) {
            *place = (pc, 1);
            self.count += 1;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places that are kept, of reads of one variable by one thread.
    fn kept(places: &[u64]) -> Vec<u64> {
        let mut reads = Rereads::default();
        let variable = GranuleId::default();
        places.iter().copied().filter(|&pc| !reads.repeats(1, variable, pc)).collect()
    }

    #[test]
    fn each_place_is_kept_twice_and_after_each_other() {
        assert_eq!(kept(&[1, 1, 1, 1]), [1, 1]);
        assert_eq!(kept(&[1, 2, 1, 2, 1, 2, 1, 2]), [1, 2, 1, 2]);
        assert_eq!(kept(&[1, 1, 1, 2, 2, 2, 1, 1]), [1, 1, 2, 2, 1]);
        assert_eq!(kept(&[1, 1, 2, 3, 3, 1, 1, 2, 2, 3]), [1, 1, 2, 3, 3, 1, 2]);
    }

    #[test]
    fn what_two_reads_in_a_row_of_two_places_show_is_shown_by_what_is_kept() {
        let mut state = 1u64;
        for _ in 0..2000 {
            let mut random = |n: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % n
            };
            let (length, most) = (random(60), 1 + random(20));
            let places: Vec<u64> = (0..length).map(|_| random(most)).collect();
            let pairs = |places: &[u64]| -> std::collections::BTreeSet<(u64, u64)> {
                let from = |i: usize| places[i + 1..].iter().map(move |&to| (places[i], to));
                (0..places.len()).flat_map(from).collect()
            };
            assert_eq!(pairs(&places), pairs(&kept(&places)), "{places:?}");
        }
    }

    #[test]
    fn something_else_begins_anew() {
        let mut reads = Rereads::default();
        let variable = GranuleId::default();
        let mut read = |thread| reads.repeats(thread, variable, 7);
        assert_eq!(
            [1, 1, 1, 2, 2, 2, 1].map(&mut read),
            [false, false, true, false, false, true, false]
        );
        reads.interrupt();
        assert!(!reads.repeats(1, variable, 7));
    }
}
