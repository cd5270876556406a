//! Reads that are not bound to the write they saw, with what they still need. Searches ask for them at every step, so that
//! they are not in a hash table but counted: a bit for each event, and the number of such reads before each group of bits.

/// The free reads of a trace.
#[derive(Debug, Default)]
pub(super) struct FreeReads {
    groups: Vec<Group>,
    /// What each of them needs, in their order.
    needs: Vec<u32>,
}

/// 64 consecutive events.
#[derive(Clone, Copy, Debug)]
struct Group {
    bits: u64,
    /// How many free reads come before them.
    before: u32,
}

impl FreeReads {
    /// Adds a read, in the order of the trace.
    pub(super) fn push(&mut self, read: u32, need: u32) {
        let (group, before) = (read as usize / 64, self.needs.len() as u32);
        if group >= self.groups.len() {
            self.groups.resize(group + 1, Group { bits: 0, before });
        }
        self.groups[group].bits |= 1 << (read % 64);
        self.needs.push(need);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// What a read needs if it is one of them.
    #[inline]
    pub(super) fn get(&self, read: u32) -> Option<u32> {
        let Group { bits, before } = *self.groups.get(read as usize / 64)?;
        let bit = 1 << (read % 64);
        if bits & bit == 0 {
            return None;
        }
        self.needs.get((before + (bits & (bit - 1)).count_ones()) as usize).copied()
    }

    /// All of them.
    pub(super) fn reads(&self) -> impl Iterator<Item = u32> + '_ {
        let groups = (0..).step_by(64).zip(&self.groups);
        groups.flat_map(|(first, group)| {
            (0..64).filter(|bit| group.bits >> bit & 1 == 1).map(move |bit| first + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::FreeReads;

    #[test]
    fn reads_are_found_again() {
        let all = [(3, 1), (63, 2), (64, 3), (65, u32::MAX), (1000, 4), (1063, 0)];
        let mut free = FreeReads::default();
        assert!(free.is_empty());
        all.iter().for_each(|&(read, need)| free.push(read, need));
        let found: Vec<(u32, u32)> =
            (0..1100).filter_map(|read| Some((read, free.get(read)?))).collect();
        assert_eq!(found, all);
        assert_eq!(free.reads().collect::<Vec<_>>(), all.map(|(read, _)| read));
    }
}
