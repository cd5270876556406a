//! The critical sections of each lock, in the order of the file, and those that a thread is in.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::requirements::Requirements;

/// The sections of all locks that several threads use, by their acquires: one list, lock after lock.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// For each lock where its sections begin in the list, and one more.
    starts: Vec<u32>,
    acquires: Vec<u32>,
    /// For each section of a lock that is also taken shared: the last release of it and of those
    /// before it. Exclusive sections end in their order.
    latest: HashMap<usize, Vec<u32>, RandomState>,
}

/// How many sections each lock has, while the trace is read.
#[derive(Debug, Default)]
pub(super) struct Counts {
    locks: Vec<(u32, bool)>,
}

impl Counts {
    /// A section begins.
    #[inline]
    pub(super) fn add(&mut self, lock: usize, shared: bool) {
        if lock >= self.locks.len() {
            self.locks.resize(lock + 1, (0, false));
        }
        let (count, is_shared) = &mut self.locks[lock];
        *count += 1;
        *is_shared |= shared;
    }

    /// The sections, from the locks and acquires of a trace in their order. `is_wanted` says which
    /// locks are in it, and `release` how a section ends.
    pub(super) fn sections(
        self,
        is_wanted: impl Fn(usize) -> bool,
        acquires: impl Iterator<Item = (usize, u32)>,
        release: impl Fn(u32) -> u32,
    ) -> Sections {
        let mut starts = Vec::with_capacity(self.locks.len() + 1);
        let mut total = 0;
        for (lock, &(count, _)) in self.locks.iter().enumerate() {
            starts.push(total);
            total += if is_wanted(lock) { count } else { 0 };
        }
        starts.push(total);
        let mut all = vec![0; total as usize];
        // Filled from the start of each lock, which is then the start of the next one.
        for (lock, acquire) in acquires {
            let at = &mut starts[lock];
            all[*at as usize] = acquire;
            *at += 1;
        }
        starts.rotate_right(1);
        starts[0] = 0;
        let mut this = Sections { starts, acquires: all, latest: HashMap::default() };
        for (lock, &(_, is_shared)) in self.locks.iter().enumerate() {
            if is_shared && is_wanted(lock) {
                let mut latest = 0;
                let ends = this.of(lock).iter().map(|&acquire| release(acquire));
                let ends = ends.map(|end| {
                    latest = end.max(latest);
                    latest
                });
                let ends = ends.collect();
                this.latest.insert(lock, ends);
            }
        }
        this
    }
}

impl Sections {
    fn of(&self, lock: usize) -> &[u32] {
        &self.acquires[self.starts[lock] as usize..self.starts[lock + 1] as usize]
    }

    /// The sections of a lock that are open just before event `at`, by their acquires.
    pub(super) fn open_at(
        &self,
        lock: usize,
        at: u32,
        release: impl Fn(u32) -> u32,
        out: &mut Vec<u32>,
    ) {
        let acquires = self.of(lock);
        let latest = self.latest.get(&lock);
        let before = acquires.partition_point(|&acquire| acquire < at);
        for i in (0..before).rev() {
            if release(acquires[i]) >= at {
                out.push(acquires[i]);
            }
            // Exclusive sections end in their order; of shared ones, the latest end decides.
            if latest.is_none_or(|latest| latest[i] < at) {
                break;
            }
        }
    }
}

/// The number of a thread's events from one note of its sections to the next.
pub(super) const STRIDE: u32 = 256;

/// The sections that each thread is in, noted at intervals.
#[derive(Debug, Default)]
pub(super) struct Inside {
    /// For each thread, events before which its sections are noted, and where they stand in the list.
    threads: Vec<Vec<(u32, u32)>>,
    /// The acquires, and for each note how many there are just before them.
    acquires: Vec<u32>,
}

/// A thread whose sections are being noted.
#[derive(Clone, Debug, Default)]
struct Walk {
    /// The number of its events since the last note.
    since: u32,
    /// The acquires of the sections that it may be in.
    open: Vec<u32>,
    /// How long that list may become before those that have ended are dropped.
    ended: usize,
}

impl Inside {
    pub(super) fn new(requirements: &Requirements, stride: u32) -> Inside {
        let mut this = Inside::default();
        this.threads.resize(requirements.thread_count(), Vec::new());
        let mut walks: Vec<Walk> = vec![Walk::default(); this.threads.len()];
        for event in (0..requirements.len() as u32).filter(|&e| requirements.is_step(e)) {
            let t = requirements.thread(event) as usize;
            let Walk { since, open, ended } = &mut walks[t];
            let is_open = |&acquire: &u32| requirements.partner(acquire) >= event;
            *since += 1;
            // A note after as many events as it is long: all notes together are then as long as
            // the trace, however deep sections are nested.
            if *since >= stride && *since as usize >= open.len() {
                *since = 0;
                open.retain(is_open);
                this.threads[t].push((event, this.acquires.len() as u32));
                this.acquires.push(open.len() as u32);
                this.acquires.extend_from_slice(open);
            }
            if requirements.kind(event).acquires() {
                // Sections that have ended are dropped once they may be half of the list.
                if open.len() > *ended {
                    open.retain(is_open);
                    *ended = (2 * open.len()).max(stride as usize);
                }
                open.push(event);
            }
        }
        this
    }

    /// The sections that an event's thread is in just before it, by their acquires in their order.
    pub(super) fn at(&self, event: u32, requirements: &Requirements) -> Vec<u32> {
        let notes = &self.threads[requirements.thread(event) as usize];
        let note = notes.partition_point(|note| note.0 <= event).checked_sub(1).map(|at| notes[at]);
        // From the event back to the note.
        let mut own = Vec::new();
        let mut at = event;
        let until = note.map_or(0, |note| note.0);
        while at > until && requirements.has_previous(at) {
            at = requirements.previous(at);
            if at >= until && requirements.kind(at).acquires() {
                own.push(at);
            }
        }
        if let Some((_, start)) = note {
            let (start, count) = (start as usize + 1, self.acquires[start as usize] as usize);
            own.extend(self.acquires[start..start + count].iter().rev());
        }
        own.retain(|&acquire| requirements.partner(acquire) > event);
        own.reverse();
        own
    }
}

#[cfg(test)]
mod tests {
    use foresee_testkit::random_trace;
    use foresee_trace::Trace;

    use super::*;

    #[test]
    fn threads_are_inside_what_they_have_taken_and_not_given_back() {
        let mut count = 0;
        for seed in 0..500 {
            let trace = random_trace(seed);
            let mut requirements = Requirements::default();
            let Trace { events, pool, .. } = &trace;
            events.iter().for_each(|event| requirements.push(event, pool).unwrap());
            requirements.finish();
            let all = [1, 2, 3, 1000].map(|stride| Inside::new(&requirements, stride));
            for event in (0..trace.events.len() as u32).filter(|&e| requirements.is_step(e)) {
                let is_open = |&acquire: &u32| {
                    requirements.kind(acquire).acquires()
                        && requirements.thread(acquire) == requirements.thread(event)
                        && requirements.partner(acquire) > event
                };
                let expected: Vec<u32> = (0..event).filter(is_open).collect();
                for inside in &all {
                    assert_eq!(
                        inside.at(event, &requirements),
                        expected,
                        "{seed}: {event}\n{trace}"
                    );
                }
                count += expected.len();
            }
        }
        assert!(count > 500, "{count}");
    }
}
