//! The records of all threads in one order: each thread's own, and that of the tickets of each stripe.
//!
//! A record that uses an object comes after the one that describes it, in whatever thread that is.
//!
//! A ticket that never came, because its thread was killed before it wrote the record, holds back everything after it. What was
//! merged until then is what some execution did.
//!
//! The records of a program that is still running arrive in rounds. In each, the agent looks at one thread after the other, so
//! what a thread has seen of another one may be missing until the next round: records wait for one round.

use std::collections::VecDeque;

use super::record::{Kind, Record, Records};
use super::{HashMap, JvmError, JvmLog, dictionary};

/// The thread in which the JVM ends after the others; it starts the shutdown hooks.
pub(super) const LAST_THREAD: &str = "DestroyJavaVM";

/// The order of all records.
#[derive(Debug, Default)]
pub(super) struct Merge {
    threads: Vec<Thread>,
    /// The ticket that comes next, for each stripe.
    next: HashMap<u16, u32>,
    /// The threads that wait for a ticket.
    waiting: HashMap<(u16, u32), usize>,
    /// The threads that wait for another one to end.
    joining: HashMap<usize, Vec<usize>>,
    /// The threads of objects.
    objects: HashMap<u64, usize>,
    /// How many objects each thread has described, by the numbers of threads.
    described: HashMap<u32, u64>,
    /// The threads that wait for an object to be described.
    undescribed: HashMap<u64, Vec<usize>>,
    ready: VecDeque<usize>,
    /// The thread in which the JVM ends, until it is its turn.
    last: Option<usize>,
    /// Whether more records may arrive.
    is_growing: bool,
}

#[derive(Debug)]
struct Thread {
    records: Records,
    head: Option<Record>,
    /// Whether it is ready, or waits for a ticket or for the end of another thread.
    is_queued: bool,
    /// How many of the bytes that wait came before the present round.
    earlier: usize,
}

impl Thread {
    /// Whether it did more than has been merged.
    fn has_more(&self) -> bool {
        self.head.is_some() || self.records.waiting() > 0
    }
}

impl Merge {
    pub(super) fn new(log: &JvmLog) -> Result<Merge, JvmError> {
        let mut merge = Merge::default();
        for (number, thread) in &log.dictionary.threads {
            let mut records = Records::open(&log.folder.join(format!("{number}.log")))?;
            let head = records.next()?;
            merge.add(thread, Thread { records, head, is_queued: true, earlier: 0 });
        }
        Ok(merge)
    }

    /// The order of the records of a program that is still running.
    pub(super) fn growing() -> Merge {
        Merge { is_growing: true, ..Merge::default() }
    }

    /// A thread whose records will arrive.
    pub(super) fn begin(&mut self, thread: &dictionary::Thread) {
        let records = Records::arriving();
        self.add(thread, Thread { records, head: None, is_queued: false, earlier: 0 });
    }

    fn add(&mut self, named: &dictionary::Thread, thread: Thread) {
        let i = self.threads.len();
        self.objects.insert(named.object, i);
        if named.name == LAST_THREAD && self.last.is_none() {
            self.last = Some(i);
        } else if thread.is_queued {
            self.ready.push_back(i);
        }
        self.threads.push(thread);
    }

    /// Takes records of a thread that have arrived.
    pub(super) fn arrive(&mut self, thread: usize, records: &[u8]) {
        self.threads[thread].records.arrive(records);
    }

    /// No more records will arrive. Those that have not waited for a round are left out: what they build on may be missing.
    pub(super) fn finish(&mut self) {
        self.is_growing = false;
    }

    /// A round is over: what arrived before it can be merged.
    pub(super) fn round(&mut self) -> Result<(), JvmError> {
        for (i, thread) in self.threads.iter_mut().enumerate() {
            thread.records.admit(thread.earlier);
            if thread.head.is_none() {
                thread.head = thread.records.next()?;
            }
            if thread.head.is_some() && !thread.is_queued && self.last != Some(i) {
                thread.is_queued = true;
                self.ready.push_back(i);
            }
        }
        Ok(())
    }

    /// To be called after a round was merged: what is left by then belongs to the past.
    pub(super) fn settle(&mut self) {
        for thread in &mut self.threads {
            thread.earlier = thread.records.waiting();
        }
    }

    /// Whether more records may arrive.
    pub(super) fn is_growing(&self) -> bool {
        self.is_growing
    }

    /// How many bytes of records wait.
    pub(super) fn waiting(&self) -> usize {
        self.threads.iter().map(|thread| thread.records.waiting()).sum()
    }

    /// The thread that an object stands for.
    pub(super) fn thread_of(&self, object: u64) -> Option<usize> {
        self.objects.get(&object).copied()
    }

    /// How many threads have records that could not be merged.
    pub(super) fn left(&self) -> usize {
        self.threads.iter().filter(|thread| thread.head.is_some()).count()
    }

    /// The next record, with its thread.
    pub(super) fn next(&mut self) -> Result<Option<(usize, Record)>, JvmError> {
        loop {
            if self.ready.is_empty() && !self.is_growing {
                self.ready.extend(self.last.take());
            }
            let Some(&i) = self.ready.front() else { return Ok(None) };
            let Some(record) = self.threads[i].head else {
                self.ready.pop_front();
                self.threads[i].is_queued = false;
                if !self.threads[i].has_more() {
                    // Threads that wait for its end continue.
                    self.ready.extend(self.joining.remove(&i).unwrap_or_default());
                }
                continue;
            };
            // Whoever uses an object comes after the thread that described it, which shared it then if it was its own.
            if let Some((thread, number)) = record.described() {
                if record.kind == Kind::Object {
                    let known = self.described.entry(thread).or_default();
                    *known = number.max(*known);
                    self.ready.extend(self.undescribed.remove(&record.object).unwrap_or_default());
                } else if self.described.get(&thread).is_none_or(|&known| known < number) {
                    self.undescribed.entry(record.object).or_default().push(i);
                    self.ready.pop_front();
                    continue;
                }
            }
            if record.stripe != 0 {
                let next = self.next.entry(record.stripe).or_default();
                if *next != record.ticket {
                    self.waiting.insert((record.stripe, record.ticket), i);
                    self.ready.pop_front();
                    continue;
                }
                if record.kind == Kind::Join
                    && let Some(child) = self.thread_of(record.object)
                    && child != i
                    && self.threads[child].has_more()
                {
                    self.joining.entry(child).or_default().push(i);
                    self.ready.pop_front();
                    continue;
                }
                let next = self.next.entry(record.stripe).or_default();
                *next = next.wrapping_add(1);
                if let Some(other) = self.waiting.remove(&(record.stripe, *next)) {
                    self.ready.push_back(other);
                }
            }
            let thread = &mut self.threads[i];
            thread.head = thread.records.next()?;
            return Ok(Some((i, record)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;

    const READ: u64 = 1;
    const JOIN: u64 = 21;

    /// A step of the kind, on the stripe, with the ticket, on the object; its site is its name.
    fn record(kind: u64, stripe: u64, ticket: u64, object: u64, site: u64) -> Vec<u8> {
        let words = [kind | stripe << 10 | 1 << 28 | site << 32, ticket, object];
        words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect()
    }

    fn log(folder: &Path, threads: &[Vec<Vec<u8>>]) -> JvmLog {
        let mut names = "V\t5\t17\n".to_owned();
        for (i, records) in threads.iter().enumerate() {
            names += &format!("T\t{}\t{} - T{i}\n", i + 1, 100 + i);
            // A page that says that the first half is in use, and nothing else was written.
            let mut bytes = vec![0; 4096];
            bytes.extend(records.concat());
            bytes.resize(4096 + (512 << 10), 0);
            std::fs::write(folder.join(format!("{}.log", i + 1)), bytes).unwrap();
        }
        std::fs::write(folder.join("names"), names).unwrap();
        JvmLog::open(folder).unwrap()
    }

    /// The sites in their order, and how many threads have something left.
    fn merged(threads: &[Vec<Vec<u8>>]) -> (Vec<u32>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut merge = Merge::new(&log(folder.path(), threads)).unwrap();
        let mut sites = Vec::new();
        while let Some((_, record)) = merge.next().unwrap() {
            sites.push(record.site);
        }
        (sites, merge.left())
    }

    #[test]
    fn tickets_order_threads() {
        let one =
            vec![record(READ, 5, 0, 7, 1), record(READ, 5, 3, 7, 4), record(READ, 6, 1, 8, 5)];
        let two =
            vec![record(READ, 5, 1, 7, 2), record(READ, 5, 2, 7, 3), record(READ, 6, 0, 8, 6)];
        assert_eq!(merged(&[one, two]), (vec![1, 2, 3, 6, 4, 5], 0));
    }

    #[test]
    fn a_join_comes_after_everything_that_the_thread_did() {
        // Its last step has no ticket.
        let parent = vec![record(JOIN, 5, 0, 101, 1), record(READ, 0, 0, 7, 2)];
        let child = vec![record(READ, 0, 0, 7, 3), record(READ, 0, 0, 7, 4)];
        assert_eq!(merged(&[parent, child]), (vec![3, 4, 1, 2], 0));
    }

    #[test]
    fn a_ticket_that_never_came_holds_back_what_is_after_it() {
        let one =
            vec![record(READ, 5, 0, 7, 1), record(READ, 5, 2, 7, 3), record(READ, 6, 1, 8, 4)];
        let two = vec![record(READ, 6, 0, 8, 2), record(READ, 6, 2, 8, 5)];
        assert_eq!(merged(&[one, two]), (vec![1, 2], 2));
    }

    #[test]
    fn the_half_in_use_comes_after_what_was_written_out() {
        let folder = tempfile::tempdir().unwrap();
        let log = log(folder.path(), &[vec![record(READ, 0, 0, 7, 9)]]);
        let mut bytes = std::fs::read(folder.path().join("1.log")).unwrap();
        let out = [record(READ, 0, 0, 7, 1), record(READ, 0, 0, 7, 2)].concat();
        bytes[..8].copy_from_slice(&(out.len() as u64 | 1).to_le_bytes());
        let second = 4096 + (256 << 10);
        let last = record(READ, 0, 0, 7, 3);
        bytes[second..second + last.len()].copy_from_slice(&last);
        bytes.extend(out);
        // The process was killed while it wrote more.
        bytes.extend([1; 40]);
        std::fs::write(folder.path().join("1.log"), &bytes).unwrap();
        let mut merge = Merge::new(&log).unwrap();
        let sites = std::iter::from_fn(|| Some(merge.next().unwrap()?.1.site));
        assert_eq!(sites.collect::<Vec<_>>(), [1, 2, 3]);
        bytes[4096 + (512 << 10)] = 100;
        std::fs::write(folder.path().join("1.log"), &bytes).unwrap();
        assert!(Merge::new(&log).unwrap_err().to_string().contains("no record at byte"));
    }

    /// Steps of several threads on few stripes, as (thread, record), in the order in which they happen. Site by site, they are
    /// numbered. Thread 0 joins the last thread in the end.
    fn steps(chance: &mut fastrand::Rng) -> Vec<(usize, Vec<u8>)> {
        let threads = chance.usize(2..5);
        let mut tickets = [0; 3];
        let mut steps = Vec::new();
        for site in 1..chance.u64(10..60) {
            let (thread, stripe) = (chance.usize(..threads), chance.usize(..3));
            // Some steps have no ticket.
            let ticket = tickets[stripe];
            tickets[stripe] += u64::from(stripe != 0);
            steps.push((thread, record(READ, stripe as u64, ticket, 7, site)));
        }
        steps.push((threads - 1, record(READ, 0, 0, 7, 1000)));
        steps.push((0, record(JOIN, 1, tickets[1], 100 + threads as u64 - 1, 1001)));
        steps.push((0, record(READ, 0, 0, 7, 1002)));
        steps
    }

    #[test]
    fn rounds_keep_the_order_of_threads_tickets_and_joins() {
        for seed in 0..400 {
            let mut chance = fastrand::Rng::with_seed(seed);
            let steps = steps(&mut chance);
            let threads = steps.iter().map(|step| step.0).max().unwrap() + 1;
            let mut merge = Merge::growing();
            for i in 0..threads {
                let (object, name) = (100 + i as u64, format!("T{i}"));
                merge.begin(&dictionary::Thread { object, name, is_foreign: false });
            }
            // In each round, the threads are looked at one after the other, and steps happen in between.
            let (mut done, mut sent, mut rounds) = (0, vec![0; threads], 0);
            let mut merged = Vec::new();
            while rounds < 2 {
                rounds += usize::from(done == steps.len());
                for (i, sent) in sent.iter_mut().enumerate() {
                    let own = |n: usize| steps[..n].iter().filter(move |step| step.0 == i);
                    let new = own(done).skip(*sent).flat_map(|step| step.1.clone());
                    merge.arrive(i, &new.collect::<Vec<u8>>());
                    *sent = own(done).count();
                    done = steps.len().min(done + chance.usize(..4));
                }
                merge.round().unwrap();
                while let Some((i, record)) = merge.next().unwrap() {
                    merged.push((i, record));
                }
                merge.settle();
            }
            merge.finish();
            assert!(merge.next().unwrap().is_none());
            assert_eq!((merged.len(), merge.left()), (steps.len(), 0), "{seed}");
            let position = |site: u32| merged.iter().position(|step| step.1.site == site).unwrap();
            assert!(position(1000) < position(1001), "{seed}");
            for (i, step) in merged.iter().enumerate() {
                for later in &merged[i + 1..] {
                    let is_own = step.0 == later.0;
                    let (a, b) = (&step.1, &later.1);
                    assert!(!is_own || a.site < b.site, "{seed}");
                    let is_shared = a.stripe != 0 && a.stripe == b.stripe;
                    assert!(!is_shared || a.ticket < b.ticket, "{seed}");
                }
            }
        }
    }
}
