//! The file that carries a schedule to the runtime and back what the program did.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use foresee_explore::program::{Schedule, Tail, ThreadName};
use foresee_rt::exploring::{ENTRY, Entry, HEAD, Head, Layout, MAGIC, THREADS, tail};
use foresee_rt::format::replay;

/// A file for one run.
pub(super) struct RunFile {
    file: File,
    layout: Layout,
}

/// What a run left in it.
pub(super) struct RunLog {
    pub(super) head: Head,
    /// What threads are about to do, by their numbers.
    pub(super) pending: Vec<Entry>,
    /// What happened.
    pub(super) entries: Vec<Entry>,
}

/// The parent of a thread and how many threads that started before, as the runtime looks for it.
fn origin(name: &ThreadName, threads: &[ThreadName]) -> Option<(u32, u32)> {
    let (&number, parent) = name.0.split_last()?;
    let parent = threads.iter().position(|other| other.0 == parent)?;
    Some((u32::try_from(parent).ok()?, number.checked_sub(1)?))
}

/// Writes a schedule. `priorities` replaces its tail by random priorities: the seed, and the usual length of a run.
pub(super) fn create(
    path: &Path,
    schedule: &Schedule,
    priorities: Option<(u64, u64)>,
) -> io::Result<RunFile> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let (threads, steps) = (&schedule.threads, &schedule.steps);
    if threads.len() > THREADS {
        return Err(wrong("a schedule has too many threads"));
    }
    let most = schedule.most_operations as u64;
    let layout = Layout::new(threads.len() as u64, steps.len() as u64, most)
        .ok_or_else(|| wrong("a schedule is too long"))?;
    let (how, seed, expected) = match (priorities, schedule.tail) {
        (Some((seed, expected)), _) => (tail::PRIORITIES, seed, expected),
        (None, Tail::Straight) => (tail::STRAIGHT, 0, 0),
        (None, Tail::Random(seed)) => (tail::RANDOM, seed, 0),
    };
    let mut bytes = Vec::with_capacity(layout.pending);
    bytes.extend(MAGIC.to_le_bytes());
    bytes.extend(how.to_le_bytes());
    bytes.extend((threads.len() as u32).to_le_bytes());
    for word in [seed, steps.len() as u64, most, expected] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.resize(HEAD, 0);
    for name in threads {
        // The runtime finds no thread that none started, as is right.
        let (parent, before) = origin(name, threads).unwrap_or((u32::MAX, 0));
        bytes.extend(parent.to_le_bytes());
        bytes.extend(before.to_le_bytes());
        // An explored thread has no name in a report.
        bytes.extend([0; replay::NAME]);
    }
    debug_assert_eq!(bytes.len(), layout.steps, "the runtime reads the steps from there");
    for step in steps {
        bytes.extend(step.thread.to_le_bytes());
        bytes.extend(step.choice.to_le_bytes());
    }
    let mut file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    file.write_all(&bytes)?;
    file.set_len(layout.end as u64)?;
    Ok(RunFile { file, layout })
}

impl RunFile {
    /// Reads what the program did.
    pub(super) fn read(mut self) -> io::Result<RunLog> {
        let mut bytes = [0; size_of::<Head>()];
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_exact(&mut bytes)?;
        let head = head(&bytes);
        let started = (head.started as usize + 1).min(THREADS);
        let pending = self.entries(self.layout.pending, started)?;
        let room = (self.layout.end - self.layout.entries) / ENTRY;
        let done = usize::try_from(head.done).unwrap_or(usize::MAX).min(room);
        let entries = self.entries(self.layout.entries, done)?;
        Ok(RunLog { head, pending, entries })
    }

    fn entries(&mut self, at: usize, count: usize) -> io::Result<Vec<Entry>> {
        let mut bytes = vec![0; count * ENTRY];
        self.file.seek(SeekFrom::Start(at as u64))?;
        self.file.read_exact(&mut bytes)?;
        Ok(bytes.as_chunks::<ENTRY>().0.iter().map(entry).collect())
    }
}

/// Takes numbers from bytes, in the order of the runtime's structures.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().unwrap_or((&[0; N], &[]));
        self.0 = rest;
        *first
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn pair(&mut self) -> [u64; 2] {
        [self.u64(), self.u64()]
    }
}

fn head(bytes: &[u8]) -> Head {
    let mut b = Bytes(bytes);
    Head {
        magic: b.u64(),
        tail: b.u32(),
        threads: b.u32(),
        seed: b.u64(),
        steps: b.u64(),
        most: b.u64(),
        expected: b.u64(),
        state: b.u32(),
        reason: b.u32(),
        at: b.u64(),
        done: b.u64(),
        running: b.u32(),
        started: b.u32(),
        program: b.u64(),
        beyond: b.u32(),
        in_kernel: b.u32(),
    }
}

fn entry(bytes: &[u8; ENTRY]) -> Entry {
    let mut b = Bytes(bytes);
    let [kind, size, sub, told_kind] = b.take();
    Entry {
        kind,
        size,
        sub,
        told_kind,
        thread: b.u32(),
        pc: b.u64(),
        address: b.u64(),
        a: b.pair(),
        b: b.pair(),
        told: b.pair(),
        choice: b.u32(),
        reserved: b.u32(),
    }
}
