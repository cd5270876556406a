//! The records of all threads in one order: each thread's own, and that of the tickets of each stripe.
//!
//! A ticket that never came, because its thread was killed before it wrote the record, holds back everything after it. What was
//! merged until then is what some execution did.

use std::collections::VecDeque;

use super::record::{Kind, Record, Records};
use super::{HashMap, JvmError, JvmLog};

/// The thread in which the JVM ends after the others; it starts the shutdown hooks.
pub(super) const LAST_THREAD: &str = "DestroyJavaVM";

/// The order of all records.
#[derive(Debug)]
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
    ready: VecDeque<usize>,
    /// The thread in which the JVM ends, until it is its turn.
    last: Option<usize>,
}

#[derive(Debug)]
struct Thread {
    records: Records,
    head: Option<Record>,
}

impl Merge {
    pub(super) fn new(log: &JvmLog) -> Result<Merge, JvmError> {
        let mut threads = Vec::new();
        let mut objects = HashMap::default();
        for (number, thread) in &log.dictionary.threads {
            let mut records = Records::open(&log.folder.join(format!("{number}.log")))?;
            let head = records.next()?;
            objects.insert(thread.object, threads.len());
            threads.push(Thread { records, head });
        }
        let last = log.dictionary.threads.values().position(|thread| thread.name == LAST_THREAD);
        let ready = (0..threads.len()).filter(|&i| Some(i) != last).collect();
        let (next, waiting, joining) = Default::default();
        Ok(Merge { threads, next, waiting, joining, objects, ready, last })
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
            if self.ready.is_empty() {
                self.ready.extend(self.last.take());
            }
            let Some(&i) = self.ready.front() else { return Ok(None) };
            let Some(record) = self.threads[i].head else {
                self.ready.pop_front();
                // Threads that wait for its end continue.
                self.ready.extend(self.joining.remove(&i).unwrap_or_default());
                continue;
            };
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
                    && self.threads[child].head.is_some()
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
        let mut names = "V\t3\t17\n".to_owned();
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
}
