//! Events from records.
//!
//! | module | contents |
//! |---|---|
//! | `identities` | numbers and names for what records mention |
//! | `left_out` | records that yield no event |
//! | `accesses` | accesses of memory |
//! | `steps` | synchronisation |
//! | `permits` | semaphores, and what is not known about them, about barriers and about tasks |
//! | `hidden` | the order that is kept for the sake of writes that no hook saw |

mod accesses;
mod hidden;
mod identities;
mod left_out;
mod permits;
mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;

use crate::log::{HashMap, HashSet};
use foresee_rt::format::{Tag, order};
use foresee_support::count::count;
use foresee_trace::{
    Batch, CondId, ErrorKind, Event, EventSource, FileOrder, LocId, LockId, Op, Position,
    ReadError, Remarks, StackId, ThreadId, TooManyNames, Value, VarId,
};

use crate::log::calls::{self, CallStacks};
use crate::log::certain::CertainOrder;
use crate::log::memory::{Cell, Memory};
use crate::log::names::{Block, Names, Pc};
use crate::log::quiet::RecentPages;
use crate::log::records::{Record, Records, Skip, What};
use crate::log::rereads::Rereads;
use crate::log::semaphores::Permits;
use crate::log::unseen::{Data, Hidden, History, Plan, Stacks};
use crate::log::waiting::Waiting;
use crate::log::{End, Held, Log, LogError, PENDING};
use crate::objects::Seen;

/// Freed blocks up to this size stay libc's, which hands them out again by functions that are
/// recorded. Larger ones may go back to the kernel, and come again as anything.
pub(super) const KEPT_BY_LIBC: u64 = 64 << 10;

/// The approximate size of a name in bytes, without its text, in all tables that have an entry for it.
const NAME: usize = 128;

/// The memory limit for each skip.
const MOST_SKIPS: usize = 8 * size_of::<Skip>();

/// What one pass over a log finds out for later ones.
#[derive(Clone, Debug)]
pub(crate) struct Prior {
    /// How order is kept for the sake of writes that no hook saw.
    pub(crate) plan: Arc<Plan>,
    /// Records that yield no event.
    skips: Arc<[Skip]>,
    /// What was found to be in [no certain order](CertainOrder), and whether that was not looked at to the end.
    unordered: Arc<[BTreeSet<String>; 2]>,
    is_cut: bool,
}

/// What came out of a log; complete at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events of the program.
    pub events: u64,
    /// Accesses among them whose position or value may be wrong.
    pub inexact: u64,
    /// Reads that saw what no captured step wrote, where it may have been another thread's.
    pub external_writes: u64,
    /// Reads that saw what no captured step wrote, where only the reader itself can have.
    pub own_writes: u64,
    /// Reads whose values were compared with the last write.
    pub checked_reads: u64,
}

/// The holders of a lock.
#[derive(Debug, Default)]
struct Lock {
    id: Option<LockId>,
    owner: Option<(u32, u32)>,
    readers: Vec<(u32, u32)>,
    /// Whether the next thread gets it when its owner dies.
    is_robust: bool,
}

#[derive(Debug, Default)]
struct Barrier {
    size: u64,
    arrivals: u64,
    rounds: HashMap<u64, VarId>,
    /// In which round each thread is.
    inside: HashMap<u32, u64>,
}

#[derive(Debug, Default)]
struct Thread {
    id: Option<ThreadId>,
    /// How many counted records it has.
    place: u32,
    /// Its wait is represented by a release and an acquire, because something happened in between.
    interrupted: bool,
    /// The index of the next of its accesses that were held back.
    held: Option<usize>,
    /// How deeply it held the lock of its wait.
    depth: u32,
    /// Its next place that has to come after what was known, once there is a plan.
    due: Option<u32>,
    /// How many events its records have yielded.
    events: u64,
}

/// All threads so far.
#[derive(Debug, Default)]
struct Threads {
    threads: Vec<Thread>,
    /// Their indices, by number.
    indices: HashMap<u32, usize>,
    /// The number of the latest thread, and its index.
    latest: (u32, usize),
}

impl Threads {
    /// A thread, by number. The same thread is asked for again and again.
    #[inline]
    fn get(&mut self, number: u32) -> &mut Thread {
        if self.latest.0 != number || self.threads.is_empty() {
            let next = self.threads.len();
            let index = *self.indices.entry(number).or_insert(next);
            if index == next {
                self.threads.push(Thread::default());
            }
            self.latest = (number, index);
        }
        &mut self.threads[self.latest.1]
    }

    fn has(&self, number: u32) -> bool {
        self.indices.contains_key(&number)
    }
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SameRead {
    thread: u32,
    what: What,
    pc: u64,
    address: u64,
    value: u64,
    /// The node of its call stack, if that is known.
    stack: Option<u32>,
}

/// Why a record yields no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    No,
    /// It accesses memory that one thread has for itself.
    Private,
    /// It reads a buffer that the thread has just read in the same way.
    Reread,
    /// It is the same as others around it.
    Repeated,
}

/// How often the same read is kept.
const REPEATED: u8 = 2;

/// The number of return addresses whose locations are found without a hash table.
const RECENT: usize = 512;

/// The events of a log.
#[derive(Debug)]
pub struct LogSource<'l, N> {
    log: &'l Log,
    /// Taken while they are read.
    records: Option<Records>,
    naming: N,
    names: foresee_trace::Names,
    remarks: Remarks,
    stats: Stats,
    memory: Memory,
    blocks: BTreeMap<u64, Block>,
    /// How many blocks each place that allocates has had.
    sites: HashMap<u64, u64>,
    threads: Threads,
    locks: HashMap<u64, Lock>,
    conds: HashMap<u64, CondId>,
    barriers: HashMap<u64, Barrier>,
    /// Variables of semaphores and the like, and what they hold.
    objects: HashMap<u64, (VarId, Option<i64>)>,
    /// How often each semaphore was initialised, and the names and permits of those that are neither locks nor counters.
    semaphores: HashMap<u64, u32>,
    permits: HashMap<u64, (String, Permits<VarId>)>,
    /// The names of semaphores that allow more orders than are predicted.
    doubtful: BTreeSet<String>,
    waiting: Waiting,
    /// Which accesses are in order whatever happens, and the names of what threads access in none, and of what tasks do.
    certain: CertainOrder,
    unordered: [BTreeSet<String>; 2],
    /// The channels through which threads communicate.
    channels: HashMap<u64, VarId>,
    locations: HashMap<Pc, LocId>,
    /// The functions that threads are in, and the names of these stacks in the trace by node.
    calls: CallStacks,
    named_stacks: HashMap<u32, StackId>,
    /// Whether calls come from code without hooks, by both places of [`calls::Call`].
    between: HashMap<(u64, u64), bool>,
    /// Recent return addresses and their locations.
    recent: Box<[(u64, LocId); RECENT]>,
    /// How often each name was wanted for something new, by hashes; of variables, if it was more than once.
    taken: HashMap<u64, u32>,
    /// Which variables have got their names.
    is_named: Vec<bool>,
    /// How many bytes names and memory may take, and how many the names take, about.
    most: usize,
    names_weight: usize,
    is_full: bool,
    external: Option<ThreadId>,
    history: History,
    stacks: Stacks,
    data: Data,
    /// When the first thread started another one.
    first_start: Option<u32>,
    /// Whether quiet memory is left out, and recent pages of it.
    is_brief: bool,
    pages: RecentPages,
    /// The words that are kept nevertheless.
    wanted: HashSet<u64>,
    /// The latest read, and how often it came without another event in between.
    repeated: (Option<SameRead>, u8),
    /// The latest reads, as far as they are of one buffer.
    rereads: Rereads,
    /// The latest read that was left out because it was repeated and may be the last, and when it was.
    last: Option<(SameRead, u32)>,
    /// Unseen writes so far, unless they were planned for.
    hidden: Vec<Hidden>,
    prior: Option<Prior>,
    /// Which of the plan's accesses that something comes after is next.
    next_known: usize,
    /// Records that an earlier pass has found to yield no event.
    known_skips: Arc<[Skip]>,
    /// The latest records that yield no event, and all that are worth skipping in later passes.
    passing: Option<Skip>,
    skips: Vec<Skip>,
    /// What threads come after for the sake of unseen writes, and what it holds; and the same of each thread.
    mark: Option<(VarId, i64)>,
    marks: HashMap<u32, Mark>,
    /// The turns of writes of variables that are also written unseen.
    turns: HashMap<VarId, (VarId, i64)>,
    /// Threads that have yet to come after it.
    owing: HashSet<u32>,
    /// Threads that block until the log ends.
    blocked: HashSet<u32>,
    /// The position of the record of each event of the latest batch.
    positions: Vec<u64>,
    done: bool,
    text: String,
}

type Result<T> = std::result::Result<T, ReadError>;

fn too_many(error: TooManyNames) -> ReadError {
    ReadError::new(ErrorKind::Limit, Position::Unknown, error.to_string())
}

fn damaged(error: LogError) -> ReadError {
    ReadError::new(ErrorKind::Syntax, Position::Unknown, error.to_string())
}

/// The block that an address lies in.
fn block_at(blocks: &BTreeMap<u64, Block>, address: u64) -> Option<Block> {
    let (_, block) = blocks.range(..=address).next_back()?;
    (address < block.start + block.size.max(1)).then_some(*block)
}

/// The kinds of things that have names of their own.
#[derive(Clone, Copy)]
enum Namespace {
    Var,
    Lock,
    Cond,
    Thread,
}

impl<'l, N: Names> LogSource<'l, N> {
    pub(super) fn new(log: &'l Log, records: Records, naming: N, prior: Option<Prior>) -> Self {
        let order = match log.header.free_running {
            true => FileOrder::Notes,
            false if log.header.filtered => FileOrder::Filtered,
            false => FileOrder::Observed,
        };
        let known_skips = prior.as_ref().map(|prior| Arc::clone(&prior.skips)).unwrap_or_default();
        let unordered = prior.as_ref().map(|prior| (*prior.unordered).clone()).unwrap_or_default();
        let mut certain = CertainOrder::default();
        certain.is_cut = prior.as_ref().is_some_and(|prior| prior.is_cut);
        LogSource {
            log,
            records: Some(records.skipping(Arc::clone(&known_skips))),
            naming,
            names: foresee_trace::Names::default(),
            remarks: Remarks { order, ..Remarks::default() },
            stats: Stats::default(),
            memory: Memory::default(),
            blocks: BTreeMap::new(),
            sites: HashMap::default(),
            threads: Threads::default(),
            locks: HashMap::default(),
            conds: HashMap::default(),
            barriers: HashMap::default(),
            objects: HashMap::default(),
            semaphores: HashMap::default(),
            permits: HashMap::default(),
            doubtful: BTreeSet::new(),
            waiting: Waiting::default(),
            certain,
            unordered,
            channels: HashMap::default(),
            locations: HashMap::default(),
            calls: CallStacks::default(),
            named_stacks: HashMap::default(),
            between: HashMap::default(),
            recent: Box::new([(0, LocId::NONE); RECENT]),
            taken: HashMap::default(),
            is_named: Vec::new(),
            most: usize::MAX,
            names_weight: 0,
            is_full: false,
            external: None,
            history: History::default(),
            stacks: Stacks::default(),
            data: Data::default(),
            first_start: None,
            is_brief: false,
            pages: RecentPages::default(),
            wanted: HashSet::default(),
            repeated: (None, 0),
            rereads: Rereads::default(),
            last: None,
            hidden: Vec::new(),
            prior,
            next_known: 0,
            known_skips,
            passing: None,
            skips: Vec::new(),
            mark: None,
            marks: HashMap::default(),
            turns: HashMap::default(),
            owing: HashSet::default(),
            blocked: HashSet::default(),
            positions: Vec::new(),
            done: false,
            text: String::new(),
        }
    }

    /// Leaves out what one thread has for itself, as far as that is known beforehand; but not the memory from and to
    /// these addresses.
    pub(crate) fn briefly(mut self, wanted: impl Iterator<Item = (u64, u64)>) -> Self {
        self.is_brief = self.log.is_sieved;
        for (from, to) in wanted {
            self.wanted.extend((from & !7..to).step_by(8));
        }
        let is_first = self.prior.is_none() && self.log.delayed.is_empty();
        if self.is_brief && is_first && self.wanted.is_empty() {
            self.known_skips = Arc::clone(&self.log.skips);
            let skips = Arc::clone(&self.known_skips);
            self.records = self.records.map(|records| records.skipping(skips));
        }
        self
    }

    /// Ends where names and memory would need more than this many bytes.
    pub(crate) fn within(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// What came out of it so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// What later passes need, once all records are read. `is_shared` says whether more than one
    /// thread accesses a variable.
    pub(crate) fn learnt(&mut self, is_shared: impl Fn(VarId) -> bool) -> Prior {
        let plan = Arc::new(Plan::new(&self.hidden, is_shared));
        Prior {
            plan,
            skips: take(&mut self.skips).into(),
            unordered: Arc::new(self.unordered.clone()),
            is_cut: self.certain.is_cut,
        }
    }

    /// Whether to find out what is in no certain order. Later passes would come to the same result as the first one.
    fn asks_for_certain_order(&self) -> bool {
        self.prior.is_none() && (self.log.has_tasks || self.log.is_conservative)
    }

    /// The order that is kept because of unseen writes, unless this is the first pass.
    fn plan(&self) -> Option<&Plan> {
        self.prior.as_ref().map(|prior| &*prior.plan)
    }

    /// What names things.
    pub fn naming(&mut self) -> &mut N {
        &mut self.naming
    }

    /// Handles a record, and the accesses that were held back behind it.
    fn record(&mut self, record: &Record<'_>, left_out: LeftOut, out: &mut Out<'_>) -> Result<()> {
        let counted = match record.what {
            What::Access(..) => true,
            What::Sync(tag) => tag.is_counted(),
            What::Skipped(number) => {
                let skip = self.known_skips.get(number as usize).copied();
                return skip.map_or(Ok(()), |skip| self.skipped(&skip, out));
            }
        };
        if !counted {
            if let What::Sync(tag) = record.what
                && self.log.unanswered.contains(&record.at)
            {
                return self.request(record, tag, out);
            }
            match record.what {
                What::Sync(Tag::Took) => self.history.took(record.value as u32),
                What::Sync(Tag::Data) => {
                    self.data.add(record.address, record.value, self.history.now());
                }
                What::Sync(Tag::Bytes) => self.data.set(record.address, record.bytes),
                What::Sync(Tag::Task) if self.log.has_tasks && self.prior.is_none() => {
                    let (thread, stacks) = (record.thread, &mut self.stacks);
                    let is_stack = |address: u64| stacks.of(address) == Some(thread);
                    self.certain.step(thread, record.address, record.value, is_stack);
                }
                _ => {}
            }
            return Ok(());
        }
        let place = self.threads.get(record.thread).place;
        let who = self.thread(record.thread)?;
        out.owner = Some(who);
        if left_out == LeftOut::No {
            let node = self.calls.node(record.thread);
            out.stack = (who, self.stack(node)?);
        }
        self.history.step(record.thread);
        self.falls_due(record.thread, place..place + 1);
        self.come_after_known(record.thread, who, out);
        match record.what {
            What::Access(access, _) if left_out != LeftOut::No => {
                if let (LeftOut::Repeated, Some(read)) = (left_out, self.repeated.0) {
                    self.last = Some((read, self.history.now()));
                }
                self.stats.events += 1;
                self.stats.checked_reads += u64::from(access.reads());
                self.stats.inexact += u64::from(record.inexact);
            }
            What::Skipped(_) => {}
            What::Access(access, size) => {
                let loc = self.location_at(record.pc)?;
                let number = record.value.to_le_bytes();
                let bytes =
                    if record.bytes.is_empty() { &number[..size.min(8)] } else { record.bytes };
                let old = record.old.to_le_bytes();
                self.stats.inexact += u64::from(record.inexact);
                let me = (who, record.thread, self.history.now());
                let how = (access, record.order);
                self.access(me, how, record.address, bytes, &old, loc, out)?;
            }
            What::Sync(tag) => {
                out.is_sync = true;
                let pc = self.log.place(record.pc);
                let done = self.sync(record, tag, who, pc, place, out);
                out.is_sync = false;
                done?;
            }
        }
        self.come_after_known(record.thread, who, out);
        let place = place + 1;
        let log = self.log;
        let thread = self.threads.get(record.thread);
        thread.place = place;
        let from = *thread.held.get_or_insert_with(|| log.delayed_at(record.thread, place));
        let held = log.delayed_from(from, record.thread, place);
        thread.held = Some(from + held.len());
        // An access that was held back happened earlier, in functions that may be over.
        out.stack = (who, StackId::NONE);
        for &Held { address, pc, delayed } in held {
            let loc = self.location(log.place_of_half(pc))?;
            let mut at = 0;
            // The bytes are usually contiguous; if not, each run is a separate access.
            while at < 8 {
                let rest = delayed.mask >> at;
                if rest & 1 == 0 {
                    at += 1;
                    continue;
                }
                let size = (!rest).trailing_zeros().min(8 - at as u32) as usize;
                let bytes = &delayed.bytes[at..at + size];
                let me = (who, record.thread, self.history.now());
                let how = (delayed.access, order::FULL);
                self.access(me, how, address + at as u64, bytes, &[], loc, out)?;
                at += size;
            }
        }
        if self.prior.is_some() {
            self.keep_known(out)?;
        }
        Ok(())
    }

    /// Shows an access to what names things.
    fn show(&mut self, record: &Record<'_>) {
        let is_about_memory = match record.what {
            What::Access(..) => true,
            What::Sync(tag) => matches!(tag, Tag::Acquire | Tag::Release),
            What::Skipped(_) => false,
        };
        if is_about_memory {
            let Record { thread, pc, address, .. } = *record;
            let block = block_at(&self.blocks, address);
            let stack_of = self.stacks.of(address);
            let seen = Seen { thread, pc, address, block: block.as_ref(), stack_of };
            self.naming.sees(&seen);
        }
    }

    /// What is left when all records are read.
    fn finish(&mut self, out: &mut Out<'_>) -> Result<()> {
        if let Some((thread, address, pc, size)) = self.log.pending
            && !self.is_full
            && self.threads.has(thread)
        {
            let (who, loc) = (self.thread(thread)?, self.location(self.log.place(pc))?);
            let node = self.calls.node(thread);
            out.stack = (who, self.stack(node)?);
            self.stats.inexact += 1;
            let end = address.saturating_add(size.min(PENDING));
            for granule in (address & !7..end).step_by(8) {
                let mask = (0..8)
                    .filter(|i| (address..end).contains(&(granule + i)))
                    .fold(0u8, |m, i| m | 1 << i);
                let id = self.granule(granule);
                self.memory.at(id).doubt(mask);
                for cell in self.memory.at(id).cells(mask) {
                    let var = self.variable(granule, id, cell)?;
                    out.put(Event::new(who, Op::Write).with_target(var.0).with_loc(loc), &[]);
                }
            }
        }
        let header = &self.log.header;
        self.remarks.cut_short = match header.end {
            _ if self.is_full => {
                Some("naming the rest would take more memory than --max-memory allows".to_owned())
            }
            End::Ended | End::Replaced => None,
            End::Running => Some("the program did not end by itself".to_owned()),
            End::Copied => Some("the program was still running".to_owned()),
            End::Hung => {
                Some("all threads of the program waited, and none was left to wake them".to_owned())
            }
            End::Failed(error) => {
                let reason = crate::lost::reason(error);
                Some(format!("the log could not be written any further: {reason}"))
            }
            End::Limit => Some("the log reached its limit: allow more with --log-limit".to_owned()),
        };
        if matches!(header.end, End::Ended | End::Replaced) {
            let names = |has_begun: bool| -> Vec<String> {
                let of = self.log.unfinished().filter(|thread| thread.1 == has_begun);
                of.map(|(number, _)| self.log.thread_name(number)).collect()
            };
            let parts = [
                (names(true), "had not ended when the program did"),
                (names(false), "had not begun when the program ended"),
            ];
            let parts = parts.iter().filter(|(names, _)| !names.is_empty());
            let parts: Vec<String> = parts
                .map(|(names, what)| format!("{} {what}", listed(names, "more thread")))
                .collect();
            if !parts.is_empty() {
                self.remarks.add_partial(&parts.join("; "));
            }
        }
        if self.stats.external_writes > 0 {
            let n = self.stats.external_writes;
            let (reads, they, come) =
                if n == 1 { ("read", "it", "comes") } else { ("reads", "they", "come") };
            self.remarks.add_partial(&format!(
                "{n} {reads} saw what no captured step wrote (code without hooks did): {they} {come} after everything that \
                 the threads which can have written it had done by then, and what could happen across that is not predicted"
            ));
        }
        self.tell_doubts();
        let header = &self.log.header;
        if header.takes > 0 || self.stats.inexact > 0 {
            self.remarks.warnings.push(format!(
                "{} may stand in the wrong place: a thread slept in a call that foresee does not know ({})",
                count(self.stats.inexact, "access"),
                count(header.takes, "time")
            ));
        }
        Ok(())
    }
}

/// A write by which a thread shows how far it has come.
#[derive(Debug)]
struct Mark {
    var: VarId,
    value: i64,
    /// When it was written.
    left: u32,
    /// Whether the thread of unseen writes has read it.
    is_read: bool,
}

/// A read of a variable that sees what no captured step wrote.
struct Unseen {
    who: (ThreadId, u32),
    var: VarId,
    granule: u64,
    cell: Cell,
    /// When the variable was last known, and whether it was touched then.
    known: u32,
    is_touched: bool,
    loc: LocId,
}

/// How many names are listed at most.
const MOST_LISTED: usize = 8;

/// `T1, T2 and T3`; of many, the first.
pub(crate) fn listed(names: &[String], more: &str) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) if names.len() <= MOST_LISTED => {
            format!("{} and {last}", others.join(", "))
        }
        _ => format!(
            "{} and {}",
            names[..MOST_LISTED].join(", "),
            count(names.len() - MOST_LISTED, more)
        ),
    }
}

/// The position of an event that is not a step of the record's thread.
const NOWHERE: u64 = u64::MAX;

/// Where events go: a batch, and where each came from.
struct Out<'b> {
    batch: &'b mut Batch,
    positions: &'b mut Vec<u64>,
    at: u64,
    /// The thread of the record. Events of others only represent an order.
    owner: Option<ThreadId>,
    /// The order is only that of notes.
    is_of_notes: bool,
    /// The event represents a synchronisation step, not a memory access.
    is_sync: bool,
    /// The call stack of a thread.
    stack: (ThreadId, StackId),
    has_stacks: bool,
}

/// The function that a part of it belongs to, which compilers make (`work.part.0`, `work [clone .cold]`); or the file, for an
/// address in it without a name.
fn whole(function: &str) -> &str {
    let name = function.split(" [clone").next().unwrap_or(function);
    if name.contains(['<', '(', ':']) {
        name
    } else {
        name.split(['.', '+']).next().unwrap_or(name)
    }
}

impl Out<'_> {
    fn put(&mut self, mut event: Event, mut values: &[Value]) {
        if self.is_of_notes {
            // Volatile accesses claim that they were noted as they happened, and a read that it was
            // noted after. That holds only for atomics: a plain read is announced before it
            // happens, so what it sees is unknown, and semaphores and the like are noted like
            // locks.
            let op = match (event.op(), self.is_sync) {
                (Op::VolatileRead, true) => Op::Read,
                (Op::VolatileWrite | Op::Rmw, true) => Op::Write,
                (op, _) => op,
            };
            if op == Op::Read || op != event.op() {
                values = &[];
            }
            event = event.with_op(op);
        }
        let event =
            if values.is_empty() { event } else { event.with_values(values, &mut self.batch.pool) };
        self.batch.events.push(event);
        if self.has_stacks {
            let is_its = self.stack.0 == event.thread();
            self.batch.stacks.push(if is_its { self.stack.1 } else { StackId::NONE });
        }
        self.positions.push(if self.owner == Some(event.thread()) { self.at } else { NOWHERE });
    }
}

impl<N: Names> EventSource for LogSource<'_, N> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let mut positions = std::mem::take(&mut self.positions);
        positions.clear();
        let is_of_notes = self.log.header.free_running;
        let (owner, is_sync) = (None, false);
        let (stack, has_stacks) = ((ThreadId(0), StackId::NONE), self.log.calls.has_any());
        let mut out = Out {
            batch,
            positions: &mut positions,
            at: 0,
            owner,
            is_of_notes,
            is_sync,
            stack,
            has_stacks,
        };
        if let Some(mut records) = self.records.take() {
            // As below, where records are skipped one by one; those that are shown to what names things are not.
            let passes_quiet =
                self.prior.is_none() && self.log.delayed.is_empty() && !self.naming.is_watching();
            while out.batch.events.len() < Batch::EVENTS && !self.done {
                if passes_quiet && !self.is_full {
                    self.pass_quiet(&mut records);
                }
                let next = records.next_record().map_err(damaged)?.filter(|_| !self.is_full);
                let Some(record) = next else {
                    self.done = true;
                    self.pass();
                    self.keep_last(&mut out)?;
                    out.owner = None;
                    self.finish(&mut out)?;
                    break;
                };
                if let What::Sync(tag) = record.what
                    && calls::is_about(tag)
                {
                    self.calls.follow(&record, tag, &self.log.calls);
                    if tag == Tag::Call {
                        self.stacks.called(record.thread, record.address, self.history.now());
                    }
                    if self.naming.is_watching() {
                        let returned = calls::returned(&record, tag);
                        let is_call = matches!(tag, Tag::Call | Tag::CallFrom);
                        self.naming.called(record.thread, returned, is_call);
                    }
                    let one = Skip::of_call(&record);
                    self.called(one, &records);
                    continue;
                }
                if self.naming.is_watching() {
                    self.show(&record);
                }
                let left_out = self.leaves_out(&record);
                if left_out != LeftOut::No && self.prior.is_none() && self.log.delayed.is_empty() {
                    let mut one = match record.what {
                        What::Skipped(number) => {
                            let skip = self.known_skips[number as usize];
                            skip.stack.into_iter().for_each(|at| self.calls.set(skip.thread, at));
                            skip
                        }
                        _ => Skip::of(&record),
                    };
                    if left_out == LeftOut::Repeated {
                        // What follows at once and is the same repeats it as well.
                        one.count += records.pass_same();
                        (one.reads, one.repeated) = (one.count, one.count);
                    } else {
                        one.repeated = 0;
                    }
                    self.passed(one, &records);
                    continue;
                }
                self.pass();
                (out.at, out.owner) = (record.at, None);
                if left_out == LeftOut::No {
                    self.keep_last(&mut out)?;
                }
                let before = out.batch.events.len();
                self.record(&record, left_out, &mut out)?;
                let events = out.batch.events.len() - before;
                if events > 0 {
                    self.threads.get(record.thread).events += events as u64;
                }
            }
            self.records = Some(records);
        }
        self.stats.events += out.batch.events.len() as u64;
        self.is_full = self.memory.weight() + self.names_weight > self.most;
        self.positions = positions;
        Ok(!batch.events.is_empty())
    }

    fn names(&self) -> &foresee_trace::Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut foresee_trace::Names {
        &mut self.names
    }

    fn position(&self, i: usize) -> Position {
        let at = self.positions.get(i).filter(|&&at| at != NOWHERE);
        at.map_or(Position::Unknown, |&at| Position::Byte(at))
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}
