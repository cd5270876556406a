//! The raw log of the runtime, and its conversion to a trace.
//!
//! [`find`] lists the logs in a directory, one per recorded program image; [`Log::open`] scans one
//! for what must be known before its first event; [`Log::source`] converts it to a stream of
//! events. `docs/formats/capture-log.md` describes the format.

mod calls;
mod certain;
mod channels;
mod memory;
mod names;
mod pages;
mod quiet;
#[cfg(test)]
mod quiet_tests;
mod records;
mod rereads;
mod segments;
mod semaphores;
pub mod snapshot;
mod source;
mod unseen;
#[cfg(test)]
mod unseen_tests;
mod waiting;
mod waits;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foresee_rt::format::{BUFFER_AT, Delayed, LOST, MAGIC, STACK, Tag, VERSION, how, last, task};

use crate::lost::Lost;
use crate::private::Keep;
use crate::replay::Progress;
use calls::{CallStacks, CallTree};
use channels::Channels;
use memory::Boundaries;
pub use names::{Block, Names, Pc, Piece, Plain};
use quiet::{Quiet, Sieve, Sieved};
pub use records::{Record, Records, What};
use records::{Seen, Skip};
use segments::{BLOCK, Segments};
use semaphores::Semaphores;
pub use source::{LogSource, Stats};
pub(crate) use source::{Prior, listed};
pub(crate) use waits::Waits;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system could not read it.
    #[error("cannot read {0}: {1}")]
    Io(PathBuf, #[source] io::Error),
    /// The file is not a log.
    #[error("{0} is not a log of foresee's runtime")]
    NotALog(PathBuf),
    /// It was written by another version of the runtime.
    #[error(
        "{0} has version {1} of the log, this foresee reads version {VERSION}; build the program again with this `foresee cc`"
    )]
    Version(PathBuf, u32),
    /// The program had no disk space for it.
    #[error("{0} is empty: there was no room for it on the disk when the program started")]
    Empty(PathBuf),
    /// It is invalid.
    #[error("{0} is damaged at byte {1}: {2}")]
    Corrupt(PathBuf, u64, String),
}

/// How a program's recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did not end: the program was killed.
    Running,
    /// The program runs, and this is a [copy](snapshot) of its log.
    Copied,
    /// Together with the program.
    Ended,
    /// The log could not be written; the error number says why.
    Failed(u32),
    /// The log reached the limit that was set for it.
    Limit,
    /// The program replaced itself with another.
    Replaced,
    /// All threads waited for each other, and the launcher killed them.
    Hung,
}

/// How a program ended itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// It called `exit` or a variant, with this status.
    Exit(u8),
    /// It called `abort`.
    Abort,
    /// An assertion failed.
    Assertion,
    /// An instruction faulted with this signal.
    Fault(u8),
    /// It sent itself this signal.
    Raise(u8),
}

/// The header of a log.
#[derive(Clone, Debug)]
pub struct Header {
    /// The process.
    pub pid: u32,
    /// The recorded process that forked it.
    pub forked_from: Option<u32>,
    /// Whether threads ran freely, so that the order is that of the notes.
    pub free_running: bool,
    /// Whether accesses that add no order were left out.
    pub filtered: bool,
    /// How the recording ended.
    pub end: End,
    /// Hooks answered.
    pub hooks: u64,
    /// How often the token was taken from a sleeping thread.
    pub takes: u32,
    /// Nanoseconds since 1970.
    pub started: u64,
    /// The size of the log in bytes.
    pub size: u64,
    /// How the program ended itself, the return address and the thread.
    pub last: Option<(Last, u64, u32)>,
    /// The top of the stack then, if that was a fault.
    pub stack: Vec<u64>,
    /// Processes that it forked and that could not be recorded; the first of them.
    pub lost: Vec<Lost>,
    /// How far it followed a schedule.
    pub replay: Progress,
}

/// A file of code or data that was in the program's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The file; empty for modules of the kernel.
    pub path: PathBuf,
    /// The offset of its addresses in memory.
    pub base: u64,
    /// Its first byte in memory.
    pub low: u64,
    /// The byte after its last.
    pub end: u64,
    /// The linker's fingerprint of the file.
    pub build_id: Vec<u8>,
    /// Whether it has hooks.
    pub instrumented: bool,
}

/// What must be known about a log before its first event.
#[derive(Debug)]
pub struct Log {
    /// Its header.
    pub header: Header,
    /// The files in the program's memory.
    pub modules: Vec<Module>,
    /// The number of threads with records.
    pub threads: usize,
    /// The number of records.
    pub records: u64,
    tail: PathBuf,
    /// Accesses that were held back, by thread and place.
    delayed: Vec<Held>,
    boundaries: Boundaries,
    channels: Channels,
    semaphores: Semaphores,
    /// Whether threads executed OpenMP's tasks.
    has_tasks: bool,
    /// Whether something that threads share stays in the observed order.
    is_conservative: bool,
    /// Memory that can be left out unless everything is requested.
    quiet: Quiet,
    /// Whether that was determined.
    is_sieved: bool,
    /// Records that only access such memory.
    skips: Arc<[Skip]>,
    /// Waits in which signal handlers ran: thread and place.
    interrupted: HashSet<(u32, u32)>,
    called: HashMap<u32, String>,
    /// The store that was in progress when the program died.
    pending: Option<(u32, u64, u64, u64)>,
    /// The positions of requests that were never answered.
    unanswered: HashSet<u64>,
    /// The call stacks of its threads.
    calls: CallTree,
    /// The life of each thread.
    lives: BTreeMap<u32, Life>,
    /// The callers of the threads that still wait when the log ends, as return addresses, the innermost first.
    pub callers: BTreeMap<u32, Vec<u64>>,
}

/// The life of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    has_begun: bool,
    has_ended: bool,
    /// The return address of its last record that has one.
    place: u64,
    /// Where it was started.
    started: u64,
    /// The position of its last request, if it has done nothing since.
    request: Option<u64>,
    /// The number of its counted records.
    counted: u32,
    /// Where its current wait began.
    wait: Option<u32>,
}

/// An access that was held back.
#[derive(Clone, Copy, Debug)]
struct Held {
    address: u64,
    /// The low half of its return address.
    pc: u32,
    delayed: Delayed,
}

impl Held {
    /// Its thread, and its place among that thread's records.
    fn place(&self) -> (u32, u32) {
        (self.delayed.thread, self.delayed.place)
    }
}

/// The logs in a directory, oldest first.
pub fn find(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "tail") {
            let started = read_head(&path).map_or(0, |h| h.header.started);
            found.push((started, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|f| f.1).collect())
}

struct Head {
    header: Header,
    base: u64,
    end: u64,
    capacity: u64,
    pending: [u64; 4],
    bytes: Vec<u8>,
}

/// The processes that a head says could not be recorded.
fn lost(head: &[u8]) -> Vec<Lost> {
    let at = std::mem::offset_of!(foresee_rt::format::Head, lost);
    let words = head.get(at..).unwrap_or_default().as_chunks::<4>().0;
    let mut words = words.iter().map(|&word| u32::from_le_bytes(word));
    let count = words.next().map_or(0, |n| (n as usize).min(LOST));
    let mut next = || Some(Lost { process: words.next()?, error: words.next()? });
    (0..count).map_while(|_| next()).collect()
}

/// How far a head says that a schedule was followed.
fn progress(head: &[u8]) -> Progress {
    use foresee_rt::format::Head;
    use std::mem::offset_of;
    let long =
        |at: usize| head.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    let long = |at: usize| long(at).unwrap_or(0);
    let state = long(offset_of!(Head, replay));
    let got = offset_of!(Head, replay_got);
    let at = long(offset_of!(Head, replay_at));
    let met = offset_of!(Head, replay_met);
    let got = [0, 8, 16, 24].map(|i| long(got + i));
    Progress::new([state as u32, (state >> 32) as u32], at, got, [long(met), long(met + 8)])
}

fn read_head(path: &Path) -> Result<Head, LogError> {
    let failed = |e| LogError::Io(path.to_owned(), e);
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // A tail is half a megabyte; a much longer file is something else.
    file.take(64 << 20).read_to_end(&mut bytes).map_err(failed)?;
    let not = || LogError::NotALog(path.to_owned());
    if bytes.is_empty() {
        return Err(LogError::Empty(path.to_owned()));
    }
    if bytes.len() < BUFFER_AT {
        return Err(not());
    }
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or([0; 8]));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or([0; 4]));
    if long(0) != MAGIC {
        return Err(not());
    }
    if word(8) != VERSION {
        return Err(LogError::Version(path.to_owned(), word(8)));
    }
    let end = match word(28) {
        0 => End::Running,
        1 => End::Ended,
        2 => End::Failed(word(32)),
        3 => End::Limit,
        4 => End::Replaced,
        5 => End::Hung,
        snapshot::COPIED => End::Copied,
        n => {
            return Err(LogError::Corrupt(
                path.to_owned(),
                28,
                format!("no state has the number {n}"),
            ));
        }
    };
    let header = Header {
        pid: word(20),
        forked_from: Some(word(24)).filter(|&p| p != 0),
        free_running: word(12) != 0,
        filtered: word(16) != 0,
        end,
        takes: word(36),
        hooks: long(64),
        started: long(104),
        size: long(48),
        stack: (0..STACK).map(|i| long(160 + 8 * i)).collect(),
        lost: lost(&bytes),
        replay: progress(&bytes),
        last: last(long(112), long(128)).map(|last| (last, long(120), long(136) as u32)),
    };
    let pending = [long(72), long(80), long(88), long(96)];
    let (base, end, capacity) = (long(40), long(48), long(56));
    Ok(Head { header, base, end, capacity, pending, bytes })
}

impl Log {
    /// Scans the log that belongs to a tail.
    pub fn open(tail: &Path) -> Result<Log, LogError> {
        Log::open_within(tail, usize::MAX, Keep::Shared, &mut |_| {})
    }

    /// The same with this many bytes for a table of the memory that it accesses; what is private is not known beforehand if
    /// they are too few. No more will be kept of it than `keep` says. `progress` gets the number of records so far.
    pub fn open_within(
        tail: &Path,
        most: usize,
        keep: Keep,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Log, LogError> {
        let (head, mut records) = Log::records(tail)?;
        let mut log = Log {
            header: head.header,
            modules: Vec::new(),
            threads: 0,
            records: 0,
            tail: tail.to_owned(),
            delayed: Vec::new(),
            boundaries: Boundaries::default(),
            channels: Channels::default(),
            semaphores: Semaphores::default(),
            has_tasks: false,
            is_conservative: false,
            quiet: Quiet::default(),
            is_sieved: false,
            skips: Arc::default(),
            interrupted: HashSet::default(),
            called: HashMap::default(),
            pending: None,
            unanswered: HashSet::default(),
            calls: CallTree::default(),
            lives: BTreeMap::new(),
            callers: BTreeMap::new(),
        };
        let [address, pc, size, thread] = head.pending;
        if size != 0 && size <= 1 << 32 && !matches!(log.header.end, End::Ended | End::Replaced) {
            log.pending = Some((thread as u32, address, pc, size));
        }
        let mut threads: HashMap<u32, Life> = HashMap::default();
        // The life of the current thread, which is not among the others meanwhile.
        let (mut current, mut life) = (0, Life::default());
        let mut instrumented = Vec::new();
        // What a filtered log leaves out was held back, and may be recorded later.
        let is_sieved = !log.header.filtered;
        let mut sieve = is_sieved.then(|| Sieve::new(log.header.free_running));
        let mut segments = Segments::new(log.header.size, most / 4);
        // As in `private`, settled accesses matter to regions that are meant to be atomic.
        let mut leaves_settled = keep == Keep::Unsettled && !log.header.free_running;
        let mut shown = 0;
        let mut stacks = CallStacks::default();
        loop {
            if log.records - shown >= SHOWN {
                shown = log.records;
                progress(shown);
            }
            if let Some(seeing) = &mut sieve {
                let (steps, of) = see_simple(&mut records, seeing, &mut segments, most);
                log.records += u64::from(steps);
                if steps > 0 {
                    if of.0 != current {
                        threads.insert(current, life);
                        current = of.0;
                        life = threads.get(&current).copied().unwrap_or_default();
                    }
                    life.request = None;
                    life.counted += steps;
                    life.place = if of.1 == 0 { life.place } else { of.1 };
                    log.callers.remove(&current);
                    log.interrupted.extend(life.wait.map(|place| (current, place)));
                }
                if seeing.weight() > most {
                    log.boundaries = seeing.boundaries();
                    sieve = None;
                }
            }
            let Some(record) = records.next_record()? else { break };
            if let What::Sync(tag) = record.what
                && calls::is_about(tag)
            {
                stacks.learn(&record, tag, &mut log.calls);
                let (skip, node) = (Skip::of_call(&record), stacks.node(record.thread));
                segments.calls(skip, node, &records);
                continue;
            }
            log.records += 1;
            let touch = sieve.as_ref().and_then(|_| segments.touch(&record));
            if let Some(seeing) = &mut sieve {
                seeing.see(&record);
                if seeing.weight() > most {
                    log.boundaries = seeing.boundaries();
                    sieve = None;
                }
            }
            if record.thread != current {
                threads.insert(current, life);
                current = record.thread;
                life = threads.get(&current).copied().unwrap_or_default();
            }
            if record.what == What::Sync(Tag::Fork) {
                match record.value as u32 {
                    own if own == current => life.started = record.pc,
                    other => threads.entry(other).or_default().started = record.pc,
                }
            }
            let thread = &mut life;
            if record.pc != 0 {
                thread.place = record.pc;
            }
            match record.what {
                What::Access(_, size) if sieve.is_none() => {
                    log.boundaries.add(record.address, size as u64);
                }
                What::Sync(Tag::Module) => log.modules.extend(module(&record)),
                What::Sync(Tag::Instrumented) => instrumented.push(record.pc),
                What::Sync(Tag::RegionBegin | Tag::Enter) => leaves_settled = false,
                What::Sync(Tag::Task) => {
                    let what = record.value & 15;
                    // Of several sections, one thread may have executed two.
                    log.has_tasks |= what == task::BEGUN || what == task::SECTION;
                }
                What::Sync(tag @ (Tag::Send | Tag::Receive | Tag::Look)) => {
                    log.channels.add(record.address, record.thread, tag, record.value);
                    log.semaphores.use_channel(record.value);
                }
                What::Sync(
                    tag @ (Tag::SemInit
                    | Tag::SemPost
                    | Tag::SemWait
                    | Tag::SemFailed
                    | Tag::SemValue
                    | Tag::RequestSem
                    | Tag::BarrierArrive),
                ) => log.semaphores.add(record.address, record.thread, tag, record.value),
                What::Sync(Tag::ThreadName) => {
                    let name = String::from_utf8_lossy(record.bytes).into_owned();
                    log.called.insert(record.address as u32, name);
                }
                What::Sync(Tag::Stack) => {
                    let words = record.bytes.as_chunks::<8>().0.iter();
                    let callers = words.map(|&word| u64::from_le_bytes(word)).collect();
                    log.callers.insert(record.thread, callers);
                }
                What::Sync(Tag::Delayed) => {
                    let Some(delayed) = Delayed::from_bytes(record.bytes) else {
                        let what = "a delayed access makes no sense".to_owned();
                        return Err(LogError::Corrupt(tail.to_owned(), record.at, what));
                    };
                    log.boundaries.add_mask(record.address, delayed.mask);
                    log.delayed.push(Held {
                        address: record.address,
                        pc: record.pc as u32,
                        delayed,
                    });
                }
                _ => {}
            }
            let counted = match record.what {
                What::Access(..) | What::Skipped(_) => true,
                What::Sync(tag) => tag.is_counted(),
            };
            if counted {
                thread.request = None;
                if !log.callers.is_empty() {
                    log.callers.remove(&record.thread);
                }
                match record.what {
                    What::Sync(Tag::WaitBegin) => thread.wait = Some(thread.counted),
                    What::Sync(Tag::WaitEnd) => thread.wait = None,
                    // It returns from the wait.
                    What::Sync(Tag::Turn) => {}
                    _ => {
                        if let Some(place) = thread.wait {
                            log.interrupted.insert((record.thread, place));
                        }
                    }
                }
                thread.counted += 1;
            }
            match record.what {
                What::Sync(Tag::ThreadBegin) => thread.has_begun = true,
                What::Sync(Tag::ThreadEnd) => thread.has_ended = true,
                What::Sync(Tag::Request) if record.value & how::TIMED != 0 => {}
                What::Sync(
                    Tag::Request | Tag::RequestEnd | Tag::RequestSem | Tag::BarrierArrive,
                ) => thread.request = Some(record.at),
                What::Sync(Tag::Withdrawn) => thread.request = None,
                _ => {}
            }
            match &mut sieve {
                Some(sieve) => {
                    segments.add(touch, &records, |block| sieve.block_id(block << BLOCK))
                }
                None => segments.add(None, &records, |_| 0),
            }
        }
        threads.insert(current, life);
        // No record is of this thread.
        threads.remove(&0);
        if let Some((_, address, _, size)) = log.pending
            && sieve.is_none()
        {
            log.boundaries.add(address, size.min(PENDING));
        }
        let is_left_out = |channel, value| log.semaphores.leaves_out(Tag::Send, channel, value);
        log.is_conservative = log.channels.are_conservative(is_left_out);
        // What one thread has for itself may be shared by its tasks.
        if let Some(sieve) = sieve.take_if(|_| log.has_tasks) {
            log.boundaries = sieve.boundaries();
        }
        if let Some(mut sieve) = sieve {
            if let Some((thread, address, _, size)) = log.pending {
                sieve.touch(thread, address, size.min(PENDING));
            }
            let Sieved { quiet, boundaries, loud } = sieve.finish(&log.modules, leaves_settled);
            (log.quiet, log.boundaries, log.is_sieved) = (quiet, boundaries, true);
            log.skips = segments.finish(&loud).into();
        }
        log.threads = threads.values().filter(|life| life.counted > 0).count();
        // Nothing is known after the end of a log.
        if !matches!(log.header.end, End::Limit | End::Failed(_) | End::Copied) {
            log.unanswered = threads.values().filter_map(|life| life.request).collect();
        }
        log.lives = threads.into_iter().collect();
        // Stable, so that a write stays before the reads of its value.
        log.delayed.sort_by_key(Held::place);
        for pc in instrumented {
            if let Some(m) = log.modules.iter_mut().find(|m| (m.low..m.end).contains(&pc)) {
                m.instrumented = true;
            }
        }
        Ok(log)
    }

    /// The raw records of the log that belongs to a tail.
    fn records(tail: &Path) -> Result<(Head, Records), LogError> {
        let mut head = read_head(tail)?;
        let path = tail.with_extension("log");
        let left = head.end.saturating_sub(head.base);
        let room = (head.bytes.len() - BUFFER_AT) as u64;
        if left > head.capacity || head.capacity > room {
            let what = "the buffer is said to hold more than it can".to_owned();
            return Err(LogError::Corrupt(tail.to_owned(), 48, what));
        }
        let buffer = head.bytes[BUFFER_AT..BUFFER_AT + left as usize].to_vec();
        head.bytes = Vec::new();
        let records = Records::new(path, head.base, buffer, head.capacity)?;
        Ok((head, records))
    }

    /// The log as a stream of events, named by `names`.
    pub fn source<N: Names>(&self, names: N) -> Result<LogSource<'_, N>, LogError> {
        self.source_after(names, None)
    }

    /// The same, after a first pass, if there was one.
    pub(crate) fn source_after<N: Names>(
        &self,
        names: N,
        prior: Option<Prior>,
    ) -> Result<LogSource<'_, N>, LogError> {
        let (_, records) = Log::records(&self.tail)?;
        Ok(LogSource::new(self, records.again(), names, prior))
    }

    /// The raw records.
    pub fn raw(&self) -> Result<Records, LogError> {
        Ok(Log::records(&self.tail)?.1)
    }

    /// The location of a return address in the program.
    pub fn place(&self, address: u64) -> Pc {
        Pc { module: self.modules.iter().position(|m| (m.low..m.end).contains(&address)), address }
    }

    /// The same for the low half of an address: unknown if it matches two modules.
    fn place_of_half(&self, half: u32) -> Pc {
        let fits = |m: &Module| {
            let address = (m.low & !0xffff_ffff) | u64::from(half);
            [address, address.wrapping_add(1 << 32)]
                .into_iter()
                .find(|a| (m.low..m.end).contains(a))
        };
        let mut found = self.modules.iter().enumerate().filter_map(|(i, m)| Some((i, fits(m)?)));
        match (found.next(), found.next()) {
            (Some((i, address)), None) => Pc { module: Some(i), address },
            _ => Pc { module: None, address: 0 },
        }
    }

    /// The threads that had not ended when the recording did, by number, and whether they had
    /// begun. Idle threads of a library's pool are not expected to end.
    pub fn unfinished(&self) -> impl Iterator<Item = (u32, bool)> {
        let is_reserve = |life: &Life| {
            let module = self.place(life.started).module.map(|m| &self.modules[m].path);
            let name = module.and_then(|path| path.file_name()).unwrap_or_default();
            RESERVES.iter().any(|library| name.to_string_lossy().starts_with(library))
        };
        // The first thread ends with the program.
        let open = self.lives.iter().filter(|(number, life)| **number != 1 && !life.has_ended);
        open.filter(move |(_, life)| !is_reserve(life)).map(|(&n, life)| (n, life.has_begun))
    }

    /// Whether some thread still waits when the log ends.
    fn leaves_waiting(&self) -> bool {
        !self.unanswered.is_empty() || self.lives.values().any(|life| life.wait.is_some())
    }

    /// The last known location of each thread that has not ended.
    pub fn last_places(&self) -> impl Iterator<Item = (u32, Pc)> {
        let open = self.lives.iter().filter(|(_, life)| !life.has_ended && life.counted > 0);
        open.map(|(&number, life)| (number, self.place(life.place)))
    }

    /// The name of a thread in the trace, if it is unique.
    pub fn thread_name(&self, number: u32) -> String {
        match (self.called.get(&number), number) {
            (Some(name), _) => name.clone(),
            (None, 1) => "main".to_owned(),
            (None, n) => format!("T{}", n.saturating_sub(1)),
        }
    }

    /// The accesses held back from the one at `from` on that belong to this place.
    fn delayed_from(&self, from: usize, thread: u32, place: u32) -> &[Held] {
        let rest = self.delayed.get(from..).unwrap_or(&[]);
        &rest[..rest.iter().take_while(|d| d.place() == (thread, place)).count()]
    }

    /// Where those of a place begin.
    fn delayed_at(&self, thread: u32, place: u32) -> usize {
        self.delayed.partition_point(|d| d.place() < (thread, place))
    }
}

/// Reads the simple accesses that come next. Returns how many there were, their thread, and the return address of the last one
/// that has one, or zero.
// Apart from all else that is done with records, so that what this loop needs stays in registers.
#[inline(never)]
fn see_simple(
    records: &mut Records,
    sieve: &mut Sieve,
    segments: &mut Segments,
    most: usize,
) -> (u32, (u32, u64)) {
    let around = records.around();
    // A chunk begins.
    if around.thread == 0 {
        return (0, (0, 0));
    }
    let (mine, mut steps, mut pc) = (sieve.of(around.thread), 0, 0);
    segments.enter(&around);
    records.simple(|one, around| {
        let touched = sieve.see_simple(mine, one);
        segments.simple(one, around, touched);
        steps += one.times;
        pc = if one.pc == 0 { pc } else { one.pc };
        if touched.is_new && !sieve.is_within(most) { Seen::Last } else { Seen::More }
    });
    segments.leave(records);
    (steps, (around.thread, pc))
}

/// Progress is shown after so many records.
const SHOWN: u64 = 1 << 16;

/// The maximum reported size of a store that was in progress.
const PENDING: u64 = 4096;

/// Libraries whose threads never end.
const RESERVES: [&str; 3] = ["libgomp", "libomp", "libiomp"];

fn last(what: u64, value: u64) -> Option<Last> {
    Some(match what {
        last::EXIT => Last::Exit(value as u8),
        last::ABORT => Last::Abort,
        last::ASSERTION => Last::Assertion,
        last::FAULT => Last::Fault(value as u8),
        last::RAISE => Last::Raise(value as u8),
        _ => return None,
    })
}

fn module(record: &Record<'_>) -> Option<Module> {
    use std::os::unix::ffi::OsStrExt;
    let long = |at: usize| Some(u64::from_le_bytes(record.bytes.get(at..at + 8)?.try_into().ok()?));
    let (base, end, id) = (long(0)?, long(8)?, usize::from(*record.bytes.get(16)?));
    let build_id = record.bytes.get(17..17 + id)?.to_vec();
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(record.bytes.get(17 + id..)?));
    Some(Module { path, base, low: record.address, end, build_id, instrumented: false })
}
