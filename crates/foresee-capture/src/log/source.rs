//! Events from records.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::mem::{replace, take};
use std::ops::Range;
use std::sync::Arc;

use super::{HashMap, HashSet};
use foldhash::fast::FixedState;
use foresee_rt::format::{Access, Tag, channel, how, order};
use foresee_support::count::count;
use foresee_trace::{
    Batch, CondId, EXTERNAL, ErrorKind, Event, EventSource, FileOrder, HEAP_FREE, Id as _, LocId,
    LockId, Op, Position, ReadError, Remarks, StackId, SymId, ThreadId, TooManyNames, Value, VarId,
    entry,
};

use super::calls::{self, CallStacks};
use super::memory::{Cell, Granule, GranuleId, Memory, wide};
use super::names::{Block, Names, Pc};
use super::quiet::Page;
use super::records::{LEAST_SKIPPED, Record, Records, Skip, What};
use super::rereads::Rereads;
use super::unseen::{Data, Hidden, History, Plan, Stacks};
use super::{End, Held, Log, LogError, PENDING};
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
    /// Whether quiet memory is left out, and the latest page of it.
    is_brief: bool,
    page: Page,
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
            page: Page::default(),
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

    /// Whether the eight bytes that contain an address can be left out.
    #[inline]
    fn is_quiet(&mut self, address: u64) -> bool {
        if !self.is_brief {
            return false;
        }
        if !self.page.is_of(address) {
            self.page = self.log.quiet.page(address);
        }
        self.page.has(address) && (self.wanted.is_empty() || !self.wanted.contains(&(address & !7)))
    }

    /// Whether all bytes of an access can be left out. If so, it only shows where other memory lies.
    #[inline]
    fn passes_over(&mut self, record: &Record<'_>, access: Access, size: usize) -> bool {
        let address = record.address;
        let last = address.saturating_add(size as u64).wrapping_sub(1);
        let is_left_out = match (address ^ last) < 8 {
            true => self.is_quiet(address),
            false => {
                size > 0 && (address & !7..=last).step_by(8).all(|granule| self.is_quiet(granule))
            }
        };
        if !is_left_out {
            return false;
        }
        self.is_shown(record, access, size);
        true
    }

    /// What an access that is left out shows to its thread: where other memory lies.
    #[inline]
    fn is_shown(&mut self, record: &Record<'_>, access: Access, size: usize) {
        let Record { thread: me, address, .. } = *record;
        self.stacks.learnt(me, address);
        if !access.reads() {
            return;
        }
        let seen = if access == Access::Rmw { record.old } else { record.value };
        if record.bytes.is_empty() {
            if size == 8 && address.is_multiple_of(8) {
                self.stacks.learnt(me, seen);
            }
        } else {
            let skipped = (address.wrapping_neg() & 7) as usize;
            let words = record.bytes.get(skipped..).unwrap_or(&[]).as_chunks::<8>().0;
            words.iter().for_each(|word| self.stacks.learnt(me, u64::from_le_bytes(*word)));
        }
    }

    /// What came out of it so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// What later passes need, once all records are read. `is_shared` says whether more than one
    /// thread accesses a variable.
    pub(crate) fn learnt(&mut self, is_shared: impl Fn(VarId) -> bool) -> Prior {
        let plan = Arc::new(Plan::new(&self.hidden, is_shared));
        Prior { plan, skips: take(&mut self.skips).into() }
    }

    /// The order that is kept because of unseen writes, unless this is the first pass.
    fn plan(&self) -> Option<&Plan> {
        self.prior.as_ref().map(|prior| &*prior.plan)
    }

    /// What names things.
    pub fn naming(&mut self) -> &mut N {
        &mut self.naming
    }

    /// A variable with the name in `self.text`; the second one becomes `name#2`.
    fn new_variable(&mut self) -> Result<VarId> {
        self.names_weight += self.text.len() + NAME;
        let stem = self.text.len();
        loop {
            let var = self.names.vars.intern(&self.text).map_err(too_many)?;
            // A specification may have named it before.
            if !replace(entry(&mut self.is_named, var.index()), true) {
                return Ok(var);
            }
            self.text.truncate(stem);
            let name = FixedState::default().hash_one((Namespace::Var as u8, &self.text));
            let times = self.taken.entry(name).or_insert(1);
            *times += 1;
            self.text.push('#');
            self.text.push_str(&times.to_string());
        }
    }

    /// Makes the name in `self.text` unique: the second use of a name becomes `name#2`.
    fn make_unique(&mut self, space: Namespace) {
        let name = FixedState::default().hash_one((space as u8, &self.text));
        let times = self.taken.entry(name).or_insert(0);
        *times += 1;
        self.names_weight += self.text.len() + NAME;
        if *times > 1 {
            self.text.push('#');
            self.text.push_str(&times.to_string());
        }
    }

    fn block(&self, address: u64) -> Option<Block> {
        block_at(&self.blocks, address)
    }

    fn thread(&mut self, number: u32) -> Result<ThreadId> {
        if let Some(id) = self.threads.get(number).id {
            return Ok(id);
        }
        self.text.clear();
        let called = self.log.called.get(&number).map(String::as_str);
        self.naming.thread(number.saturating_sub(1), called, &mut self.text);
        self.make_unique(Namespace::Thread);
        let id = self.names.thread(&self.text).map_err(too_many)?;
        self.threads.get(number).id = Some(id);
        Ok(id)
    }

    /// The location of a return address in memory.
    #[inline]
    fn location_at(&mut self, pc: u64) -> Result<LocId> {
        let recent = (pc ^ pc >> 9) as usize % RECENT;
        let (known, loc) = self.recent[recent];
        if known == pc {
            return Ok(loc);
        }
        let loc = self.location(self.log.place(pc))?;
        self.recent[recent] = (pc, loc);
        Ok(loc)
    }

    /// The name of a call stack in the trace.
    #[inline]
    fn stack(&mut self, node: Option<u32>) -> Result<StackId> {
        match node {
            Some(_) if !self.log.calls.has_any() => Ok(StackId::NONE),
            Some(node) => match self.named_stacks.get(&node) {
                Some(&stack) => Ok(stack),
                None => self.new_stack(node),
            },
            None => Ok(StackId::NONE),
        }
    }

    fn new_stack(&mut self, node: u32) -> Result<StackId> {
        let log = self.log;
        // Those around it that have no name either, innermost first.
        let mut new = Vec::new();
        let (mut at, mut stack) = (node, StackId::EMPTY);
        while let Some(call) = log.calls.call(at) {
            new.push((at, call));
            at = call.outer;
            if let Some(&known) = self.named_stacks.get(&at) {
                stack = known;
                break;
            }
        }
        for (node, call) in new.into_iter().rev() {
            let pc = log.place(call.at);
            let is_hooked = pc.module.is_some_and(|module| log.modules[module].instrumented);
            // The outermost function of a thread is called by what starts threads.
            if log.calls.call(call.outer).is_some() || is_hooked && !self.naming.is_runtime(pc) {
                if self.has_code_between(call) {
                    let at = self.location(log.place(call.from))?;
                    stack = self.names.stacks.call(stack, at);
                }
                let at = self.location(pc)?;
                stack = self.names.stacks.call(stack, at);
            }
            self.named_stacks.insert(node, stack);
        }
        Ok(stack)
    }

    /// Whether a call comes from a function without hooks, which the innermost function with hooks has called.
    fn has_code_between(&mut self, call: calls::Call) -> bool {
        if call.from == 0 {
            return false;
        }
        let (log, naming) = (self.log, &mut self.naming);
        *self.between.entry((call.from, call.at)).or_insert_with(|| {
            let mut names = [String::new(), String::new()];
            for (pc, name) in [call.from, call.at].into_iter().zip(&mut names) {
                naming.function(log.place(pc), name);
            }
            whole(&names[0]) != whole(&names[1])
        })
    }

    fn location(&mut self, pc: Pc) -> Result<LocId> {
        if pc.address == 0 {
            return Ok(LocId::NONE);
        }
        if let Some(&id) = self.locations.get(&pc) {
            return Ok(id);
        }
        self.text.clear();
        self.naming.location(pc, &mut self.text);
        let id = self.names.locs.intern(&self.text).map_err(too_many)?;
        self.locations.insert(pc, id);
        Ok(id)
    }

    /// The eight bytes at an address that is a multiple of eight. The runtime has new blocks filled with zeros, and says
    /// what the program's variables hold when it begins.
    fn granule(&mut self, address: u64) -> GranuleId {
        let (log, naming) = (self.log, &mut self.naming);
        let (blocks, data, prior) = (&self.blocks, &self.data, &self.prior);
        self.memory.find(address, || {
            let address = log.boundaries.start(address);
            let block = block_at(blocks, address);
            let mut granule =
                Granule::new(address, &log.boundaries, |at| naming.scalar(at, block.as_ref()));
            granule.unseen = prior.as_ref().map_or(0, |prior| prior.plan.unseen(address));
            let holds = match block {
                Some(block) => Some(([0; 8], block.since)),
                None => data.holds(address),
            };
            match holds {
                Some(bytes) => granule.holding(bytes),
                None => granule,
            }
        })
    }

    #[inline]
    fn variable(&mut self, granule: u64, id: GranuleId, cell: Cell) -> Result<VarId> {
        match self.memory.at(id).var(cell) {
            Some(var) => Ok(var),
            None => self.new_cell(granule, id, cell),
        }
    }

    /// The variable of a cell that has none yet.
    fn new_cell(&mut self, granule: u64, id: GranuleId, cell: Cell) -> Result<VarId> {
        let Granule { start, width, .. } = *self.memory.at(id);
        let (start, size) = match width {
            8 => (granule + u64::from(cell.offset), u64::from(cell.size)),
            width => (start, u64::from(width)),
        };
        let block = self.block(start);
        self.text.clear();
        self.naming.variable(start, size, block.as_ref(), &mut self.text);
        let var = self.new_variable()?;
        self.memory.at(id).set_var(cell, var);
        Ok(var)
    }

    /// The name of an object of synchronisation in `self.text`, with something in front.
    fn name_object(&mut self, address: u64, before: &str, behind: &str) {
        let block = self.block(address);
        self.text.clear();
        self.text.push_str(before);
        self.naming.object(address, block.as_ref(), &mut self.text);
        self.text.push_str(behind);
    }

    fn lock(&mut self, address: u64) -> Result<LockId> {
        if let Some(id) = self.locks.get(&address).and_then(|l| l.id) {
            return Ok(id);
        }
        self.name_object(address, "", "");
        self.make_unique(Namespace::Lock);
        let id = self.names.locks.intern(&self.text).map_err(too_many)?;
        self.locks.entry(address).or_default().id = Some(id);
        Ok(id)
    }

    fn cond(&mut self, address: u64) -> Result<CondId> {
        if let Some(&id) = self.conds.get(&address) {
            return Ok(id);
        }
        self.name_object(address, "", "");
        self.make_unique(Namespace::Cond);
        let id = self.names.conds.intern(&self.text).map_err(too_many)?;
        self.conds.insert(address, id);
        Ok(id)
    }

    fn object_var(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        self.name_object(address, before, behind);
        self.new_variable()
    }

    fn object(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        if let Some(&(var, _)) = self.objects.get(&address) {
            return Ok(var);
        }
        let var = self.object_var(address, before, behind)?;
        self.objects.insert(address, (var, None));
        Ok(var)
    }

    /// The variable that represents a channel, named after its kind and the number it was first
    /// seen with.
    fn channel(&mut self, id: u64, value: u64) -> Result<VarId> {
        if let Some(&var) = self.channels.get(&id) {
            return Ok(var);
        }
        let (what, number) = (value >> 32, value as u32);
        let name = channel::NAMES.get(what as usize).copied().unwrap_or("channel");
        self.text.clear();
        self.text.push_str(name);
        if !channel::SINGLE.contains(&what) {
            self.text.push_str(&format!("({number})"));
        }
        let var = self.new_variable()?;
        self.channels.insert(id, var);
        Ok(var)
    }

    /// Whether a record yields no event, like most of a log.
    #[inline]
    fn leaves_out(&mut self, record: &Record<'_>) -> LeftOut {
        match record.what {
            _ if !self.is_brief => LeftOut::No,
            What::Access(access, size) if self.passes_over(record, access, size) => {
                LeftOut::Private
            }
            What::Access(access, size) => match self.buffer_read_by(record, access, size) {
                Some(buffer) => {
                    self.repeated.1 = 0;
                    match self.rereads.repeats(record.thread, buffer, record.pc) {
                        true => {
                            self.is_shown(record, access, size);
                            LeftOut::Reread
                        }
                        false => LeftOut::No,
                    }
                }
                None => {
                    self.rereads.interrupt();
                    if self.repeats(record, access) { LeftOut::Repeated } else { LeftOut::No }
                }
            },
            What::Sync(_) => {
                self.repeated.1 = 0;
                self.rereads.interrupt();
                LeftOut::No
            }
            // These were left out before, and change nothing.
            What::Skipped(_) => LeftOut::Private,
        }
    }

    /// The buffer that a record reads a part of, if it does nothing else.
    fn buffer_read_by(
        &mut self,
        record: &Record<'_>,
        access: Access,
        size: usize,
    ) -> Option<GranuleId> {
        let &Record { address, inexact, .. } = record;
        let is_plain = access == Access::Read && !inexact && record.bytes.is_empty();
        let id = self.memory.known(address).filter(|_| is_plain)?;
        let &mut Granule { start, width, is_freed, .. } = self.memory.at(id);
        let is_inside = address - start + size as u64 <= u64::from(width);
        (width > 8 && is_inside && !is_freed).then_some(id)
    }

    /// Whether a thread reads the same for at least the third time, without another event in between, as in a loop that
    /// waits. Of such reads the first two and the last are kept: what could happen around the others could happen around
    /// the first two, and nothing that the others rule out can come before the last.
    fn repeats(&mut self, record: &Record<'_>, access: Access) -> bool {
        let &Record { thread, what, pc, address, value, inexact, .. } = record;
        let is_read = matches!(access, Access::Read | Access::AtomicRead | Access::RelaxedRead);
        if !is_read || inexact || !record.bytes.is_empty() || self.wanted.contains(&(address & !7))
        {
            self.repeated.1 = 0;
            return false;
        }
        let stack = self.calls.node(thread);
        let read = Some(SameRead { thread, what, pc, address, value, stack });
        let times = if self.repeated.0 == read { self.repeated.1 } else { 0 };
        self.repeated = (read, (times + 1).min(REPEATED));
        times == REPEATED
    }

    /// Yields the event of a read that was left out, once it is known to be the last of its kind.
    fn keep_last(&mut self, out: &mut Out<'_>) -> Result<()> {
        let Some((read, clock)) = self.last.take() else { return Ok(()) };
        let SameRead { thread, what, pc, address, value, stack } = read;
        let What::Access(access, size) = what else { return Ok(()) };
        let (who, loc) = (self.thread(thread)?, self.location_at(pc)?);
        let bytes = &value.to_le_bytes()[..size.min(8)];
        self.stats.checked_reads -= 1;
        // It is not the step of the record that is about to be read.
        let owner = out.owner.take();
        let by = (who, thread, clock);
        let before = replace(&mut out.stack, (who, self.stack(stack)?));
        self.access(by, (access, order::FULL), address, bytes, &[], loc, out)?;
        (out.owner, out.stack) = (owner, before);
        Ok(())
    }

    /// The latest record yields no event.
    #[inline]
    fn passed(&mut self, one: Skip, records: &Records) {
        if !self.passing.as_mut().is_some_and(|passing| records.continues(passing, &one)) {
            self.pass();
            records.ends(self.passing.insert(one));
        }
        if let (1.., Some(read), Some(passing)) = (one.repeated, self.repeated.0, &self.passing) {
            self.last = Some((read, self.history.now().saturating_add(passing.count)));
        }
    }

    /// The latest record is about the calls of a thread.
    fn called(&mut self, one: Skip, records: &Records) {
        let node = self.calls.node(one.thread);
        if !self.passing.as_mut().is_some_and(|skip| records.passes_call(skip, one, node)) {
            self.pass();
        }
    }

    /// Counts the latest records that yielded no event.
    fn pass(&mut self) {
        let Some(skip) = self.passing.take() else { return };
        self.count(&skip);
        self.advance(skip.thread, skip.count);
        if skip.count >= LEAST_SKIPPED && self.skips.len() < self.most / MOST_SKIPS {
            self.skips.push(skip);
        }
    }

    /// Records that yield no event.
    fn count(&mut self, skip: &Skip) {
        self.stats.events += u64::from(skip.count);
        self.stats.checked_reads += u64::from(skip.reads);
        self.stats.inexact += u64::from(skip.inexact);
    }

    /// A thread takes this many steps without events.
    fn advance(&mut self, thread: u32, count: u32) {
        if count == 0 {
            return;
        }
        self.history.steps(thread, count);
        self.threads.get(thread).place += count;
    }

    /// Records that yield no event, as an earlier pass has found.
    fn skipped(&mut self, skip: &Skip, out: &mut Out<'_>) -> Result<()> {
        let &Skip { thread, count, repeated, stack, .. } = skip;
        self.count(skip);
        stack.into_iter().for_each(|node| self.calls.set(thread, node));
        self.come_before(thread, repeated, out)?;
        self.advance(thread, repeated);
        if let (1.., Some(read)) = (repeated, self.repeated.0) {
            self.last = Some((read, self.history.now()));
            self.keep_known(out)?;
        }
        self.come_before(thread, count - repeated, out)?;
        self.advance(thread, count - repeated);
        Ok(())
    }

    /// One of a thread's next records, which yield no events, may have to come after what was known.
    fn come_before(&mut self, thread: u32, count: u32, out: &mut Out<'_>) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let place = self.threads.get(thread).place;
        self.falls_due(thread, place..place + count);
        if !self.owing.is_empty() {
            let who = self.thread(thread)?;
            self.come_after_known(thread, who, out);
        }
        Ok(())
    }

    /// Called before the next records of a thread: one of them may have to come after what was known.
    #[inline]
    fn falls_due(&mut self, thread: u32, places: Range<u32>) {
        let Some(prior) = &self.prior else { return };
        let due = &mut self.threads.get(thread).due;
        let next = *due.get_or_insert_with(|| prior.plan.next_after(thread, places.start));
        if next < places.end {
            *due = Some(prior.plan.next_after(thread, places.end));
            self.owing.insert(thread);
        }
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

    /// The thread's next step comes after all accesses of memory that has an unseen write after
    /// them. A thread has no events between the two ends of its wait, so this is deferred until
    /// then.
    fn come_after_known(&mut self, thread: u32, who: ThreadId, out: &mut Out<'_>) {
        if self.owing.is_empty() || self.history.is_waiting(thread) || !self.owing.remove(&thread) {
            return;
        }
        if let Some((var, value)) = self.mark {
            let event = Event::new(who, Op::VolatileRead).with_target(var.0);
            out.put(event, &[Value::Int(value)]);
        }
    }

    /// Memory was accessed that has an unseen write after this: from now on it counts as written,
    /// and every thread that may have written it comes after this.
    fn keep_known(&mut self, out: &mut Out<'_>) -> Result<()> {
        let now = self.history.now();
        let Some(prior) = &self.prior else { return Ok(()) };
        if !prior.plan.has_known(now, self.next_known) {
            return Ok(());
        }
        let plan = Arc::clone(&prior.plan);
        let known = plan.known_at(now, &mut self.next_known);
        if known.is_empty() {
            return Ok(());
        }
        self.keep_last(out)?;
        for &(_, granule, offset) in known {
            let id = self.granule(granule);
            let Some(cell) = self.memory.at(id).cells(1 << offset).next() else { continue };
            let (var, external) = (self.variable(granule, id, cell)?, self.external()?);
            // If a specification needs its values, it keeps the value; otherwise the values must
            // not be considered equal.
            let address = granule + u64::from(offset);
            let block = self.block(address);
            let is_asked = self.naming.scalar(address, block.as_ref()).is_some_and(|s| s.is_whole);
            let held = self.memory.at(id).value(cell).filter(|_| is_asked);
            let values: Vec<Value> = held.into_iter().flat_map(|value| [value, value]).collect();
            self.keep_turn(external, var, out)?;
            out.put(Event::new(external, Op::Rmw).with_target(var.0), &values);
        }
        let (var, value) = match self.mark {
            Some((var, value)) => (var, value + 1),
            None => (self.new_mark("")?, 1),
        };
        self.mark = Some((var, value));
        let external = self.external()?;
        let event = Event::new(external, Op::VolatileWrite).with_target(var.0);
        out.put(event, &[Value::Int(value)]);
        Ok(())
    }

    /// A variable that represents an order that is kept because of unseen writes.
    fn new_mark(&mut self, of: &str) -> Result<VarId> {
        self.text.clear();
        self.text.push_str("unseen");
        if !of.is_empty() {
            self.text.push_str(&format!("({of})"));
        }
        self.new_variable()
    }

    /// The write of a variable that follows keeps its turn among all writes of it.
    fn keep_turn(&mut self, who: ThreadId, written: VarId, out: &mut Out<'_>) -> Result<()> {
        let (var, value) = match self.turns.get(&written) {
            Some(&turn) => turn,
            None => {
                let name = self.names.vars.get(written).to_owned();
                (self.new_mark(&name)?, 0)
            }
        };
        self.turns.insert(written, (var, value + 1));
        let values = [Value::Int(value), Value::Int(value + 1)];
        out.put(Event::new(who, Op::Rmw).with_target(var.0), &values);
        Ok(())
    }

    /// The thread has performed all its steps so far: a thread that reads the mark comes after
    /// them.
    fn leave_mark(&mut self, thread: u32, out: &mut Out<'_>) -> Result<()> {
        let who = self.thread(thread)?;
        let (var, value) = match self.marks.get(&thread) {
            Some(mark) => (mark.var, mark.value + 1),
            None => {
                let name = self.names.threads.get(who).to_owned();
                (self.new_mark(&name)?, 1)
            }
        };
        let mark = Mark { var, value, left: self.history.now(), is_read: false };
        self.marks.insert(thread, mark);
        out.put(Event::new(who, Op::VolatileWrite).with_target(var.0), &[Value::Int(value)]);
        Ok(())
    }

    /// Whether the latest mark of a thread covers all its steps. What the reader did before in its
    /// current step cannot have caused a write that the same step sees.
    fn is_marked(&self, thread: u32, reader: u32) -> bool {
        self.marks.get(&thread).is_some_and(|mark| match thread == reader {
            true => mark.left == self.history.now(),
            false => mark.left > self.history.last_of(thread),
        })
    }

    /// A read is about to see what no captured step wrote; `value` is what it sees.
    fn unseen(&mut self, seen: Unseen, value: Option<Value>, out: &mut Out<'_>) -> Result<()> {
        let Unseen { who: (who, me), var, granule, cell, known, is_touched, loc } = seen;
        let read = self.history.now();
        let is_planned = self.prior.is_some();
        let candidates = self.plan().and_then(|plan| plan.read(read, granule, cell.offset));
        if let Some(candidates) = candidates.map(<[_]>::to_vec) {
            let external = self.external()?;
            // The reader itself may have written, too, and it is in no wait.
            let others = candidates.iter().filter(|candidate| !candidate.is_over);
            let others = others.map(|candidate| (candidate.thread, candidate.wait.is_some()));
            for (thread, is_waiting) in others.chain([(me, false)]) {
                let can_mark = !is_waiting && !self.blocked.contains(&thread);
                if can_mark && !self.is_marked(thread, me) {
                    self.leave_mark(thread, out)?;
                }
                let Some(mark) = self.marks.get_mut(&thread) else { continue };
                if !replace(&mut mark.is_read, true) {
                    let event = Event::new(external, Op::VolatileRead).with_target(mark.var.0);
                    out.put(event, &[Value::Int(mark.value)]);
                }
            }
            self.stats.external_writes += 1;
            self.keep_turn(external, var, out)?;
            out.put(Event::new(external, Op::Write).with_target(var.0), value.as_slice());
            return Ok(());
        }
        let address = granule + u64::from(cell.offset);
        // A filtered log may lack the access from which another thread learnt an address.
        let is_own_stack = !self.log.header.filtered && self.stacks.is_own(me, address);
        let is_own = is_planned || is_own_stack || self.history.is_own(known, me);
        let writer = if is_own { who } else { self.external()? };
        match is_own {
            true => self.stats.own_writes += 1,
            false => self.stats.external_writes += 1,
        }
        let write = Event::new(writer, Op::Write).with_target(var.0);
        out.put(if is_own { write.with_loc(loc) } else { write }, value.as_slice());
        if !is_planned {
            let candidates = match is_own {
                true => Vec::new(),
                false => self.history.candidates(known, me),
            };
            self.hidden.push(Hidden {
                var,
                granule,
                offset: cell.offset,
                known,
                is_touched: is_touched && known < read,
                read,
                reader: me,
                first: self.history.first(known, me),
                candidates,
                is_own,
            });
        }
        Ok(())
    }

    /// An access of memory, as events of the variables it touches.
    #[allow(clippy::too_many_arguments)]
    fn access(
        &mut self,
        (who, me, now_is): (ThreadId, u32, u32),
        (access, order): (Access, u8),
        address: u64,
        bytes: &[u8],
        old: &[u8],
        loc: LocId,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let op = match access {
            Access::Read => Op::Read,
            Access::Write => Op::Write,
            Access::AtomicRead => Op::VolatileRead,
            Access::AtomicWrite => Op::VolatileWrite,
            Access::Rmw => Op::Rmw,
            Access::RelaxedRead => Op::VolatileRead,
            Access::RelaxedWrite => Op::VolatileWrite,
        };
        let remark = match (access, order) {
            (Access::RelaxedRead | Access::RelaxedWrite, _) | (Access::Rmw, order::RELAXED) => {
                Some(Op::Relaxed)
            }
            (Access::Rmw, order::ACQUIRE) => Some(Op::AcquireOnly),
            (Access::Rmw, order::RELEASE) => Some(Op::ReleaseOnly),
            _ => None,
        };
        self.stacks.learnt(me, address);
        let end = address.saturating_add(bytes.len() as u64);
        let mut granule = address & !7;
        while granule < end {
            if self.is_quiet(granule) {
                granule += 8;
                continue;
            }
            let id = self.granule(granule);
            let width = self.memory.at(id).width;
            let (mask, now, before): (u8, u64, u64);
            let next;
            if width > 8 {
                // Writes of a wide cell cover it, and if reads do not, what they see is known to be what was written.
                let start = self.memory.at(id).start;
                next = start.saturating_add(u64::from(width));
                let (from, to) = (start.max(address), next.min(end));
                let seen = bytes.get((from - address) as usize..(to - address) as usize);
                let seen = seen.unwrap_or(&[]);
                let is_whole = seen.len() == width as usize;
                (mask, now, before) = if is_whole { (0xff, wide(seen), 0) } else { (0, 0, 0) };
                if op.reads() {
                    let skipped = (from.wrapping_neg() & 7) as usize;
                    let words = seen.get(skipped..).unwrap_or(&[]).as_chunks::<8>().0;
                    words.iter().for_each(|word| self.stacks.learnt(me, u64::from_le_bytes(*word)));
                }
            } else {
                let (from, to) = (granule.max(address), end.min(granule.saturating_add(8)));
                let (offset, size) = ((from - granule) as usize, (to - from) as usize);
                let skipped = (from - address) as usize;
                let number = |bytes: &[u8]| {
                    let mut number = [0; 8];
                    let bytes = bytes.get(skipped..).unwrap_or(&[]);
                    let bytes = &bytes[..bytes.len().min(size)];
                    number[offset..offset + bytes.len()].copy_from_slice(bytes);
                    u64::from_le_bytes(number)
                };
                next = granule.saturating_add(8);
                mask = (((1u32 << size) - 1) << offset) as u8;
                (now, before) = (number(bytes), number(old));
            }
            let seen = match op {
                Op::Read | Op::VolatileRead => Some(now),
                Op::Rmw => Some(before),
                _ => None,
            };
            if let Some(seen) = seen.filter(|_| mask == 0xff && width == 8) {
                self.stacks.learnt(me, seen);
            }
            let cells = self.memory.at(id).cells(if width > 8 { 0xff } else { mask });
            for cell in cells {
                let var = self.variable(granule, id, cell)?;
                let part = mask & (((1u32 << cell.size) - 1) << cell.offset) as u8;
                let event = Event::new(who, op).with_target(var.0).with_loc(loc);
                if self.memory.at(id).is_freed {
                    out.put(event, &[]);
                    continue;
                }
                if let Some(seen) = seen {
                    self.stats.checked_reads += 1;
                    let memory = self.memory.at(id);
                    let strange = memory.differs(cell, part, seen);
                    let (known, is_touched) = memory.last_known(cell);
                    memory.learn(part, seen);
                    if strange && !self.log.header.free_running {
                        let value = self.memory.at(id).value(cell);
                        let who = (who, me);
                        let unseen = Unseen { who, var, granule, cell, known, is_touched, loc };
                        self.unseen(unseen, value, out)?;
                    }
                }
                if op.writes() && !op.reads() && !self.memory.at(id).is_touched(cell) {
                    self.tell_initial(who, var, granule, (id, cell), out);
                }
                if op.writes() && self.memory.at(id).is_written_unseen(cell) {
                    self.keep_turn(who, var, out)?;
                }
                let memory = self.memory.at(id);
                let old = memory.value(cell);
                if op.writes() {
                    memory.learn(part, now);
                }
                memory.saw(cell, part, now_is);
                let new = memory.value(cell);
                if let Some(remark) = remark {
                    out.put(event.with_op(remark), &[]);
                }
                match (op, old, new) {
                    (Op::Rmw, Some(old), Some(new)) => out.put(event, &[old, new]),
                    (_, _, new) => out.put(event, new.as_slice()),
                }
            }
            granule = next;
        }
        Ok(())
    }

    /// A variable of the program is about to be written, and nobody has read it before. Its initial value is then a value of
    /// its own: a read that sees the same value later could have come before the write.
    ///
    /// Blocks of memory are zero at first only because it is recorded, so theirs is not told. Nor is that of a module that was
    /// loaded when there were several threads: there was nothing to read before.
    fn tell_initial(
        &mut self,
        who: ThreadId,
        var: VarId,
        granule: u64,
        (id, cell): (GranuleId, Cell),
        out: &mut Out<'_>,
    ) {
        let address = granule + u64::from(cell.offset);
        let until = self.first_start.unwrap_or(u32::MAX);
        let is_first = self.data.holds(granule).is_some_and(|(_, since)| since <= until);
        let block = self.block(address);
        if !is_first || block.is_some() || self.log.header.free_running {
            return;
        }
        // The initial values of a specification's variables are the first events.
        let is_asked = self.naming.scalar(address, None).is_some_and(|scalar| scalar.is_whole);
        let Some(value) = self.memory.at(id).value(cell).filter(|_| !is_asked) else { return };
        // It is no step of the thread.
        let owner = out.owner.take();
        out.put(Event::new(who, Op::Init).with_target(var.0), &[value]);
        out.owner = owner;
    }

    /// The thread of writes by code that has no hooks.
    fn external(&mut self) -> Result<ThreadId> {
        if let Some(id) = self.external {
            return Ok(id);
        }
        self.text.clear();
        self.text.push_str(EXTERNAL);
        self.make_unique(Namespace::Thread);
        let id = self.names.thread(&self.text).map_err(too_many)?;
        Ok(*self.external.insert(id))
    }

    /// What a thread asks for and is not given before the log ends.
    fn request(&mut self, record: &Record<'_>, tag: Tag, out: &mut Out<'_>) -> Result<()> {
        let who = self.thread(record.thread)?;
        let node = self.calls.node(record.thread);
        (out.owner, out.stack) = (Some(who), (who, self.stack(node)?));
        let loc = self.location(self.log.place(record.pc))?;
        let (op, target) = match tag {
            Tag::Request => {
                let shared = record.value & how::SHARED != 0;
                let op = if shared { Op::RequestShared } else { Op::Request };
                (op, self.lock(record.address)?.0)
            }
            Tag::RequestEnd => (Op::Await, self.thread(record.value as u32)?.0),
            Tag::RequestSem => (Op::Block, self.object(record.address, "", "")?.0),
            _ => return Ok(()),
        };
        self.blocks(record.thread, out)?;
        out.put(Event::new(who, op).with_loc(loc).with_target(target), &[]);
        Ok(())
    }

    /// The thread blocks for the rest of the log. It has no event after its request, so what a read may have to come after
    /// is marked before.
    fn blocks(&mut self, thread: u32, out: &mut Out<'_>) -> Result<()> {
        if self.plan().is_some_and(|plan| !plan.is_empty()) {
            self.leave_mark(thread, out)?;
        }
        self.blocked.insert(thread);
        Ok(())
    }

    fn sync(
        &mut self,
        record: &Record<'_>,
        tag: Tag,
        who: ThreadId,
        pc: Pc,
        place: u32,
        out: &mut Out<'_>,
    ) -> Result<()> {
        let (me, address, value) = (record.thread, record.address, record.value);
        let loc = self.location(pc)?;
        let event = |op: Op| Event::new(who, op).with_loc(loc);
        match tag {
            Tag::ThreadBegin => {
                self.reuse(address, value);
                self.memory.renew(address, value);
                self.stacks.add(me, address, value);
            }
            Tag::Fork => {
                self.first_start.get_or_insert(self.history.now());
                self.stacks.learnt(value as u32, address);
                let other = self.thread(value as u32)?;
                out.put(event(Op::Fork).with_target(other.0), &[]);
            }
            Tag::Join => {
                self.history.joined(value as u32);
                let other = self.thread(value as u32)?;
                out.put(event(Op::Join).with_target(other.0), &[]);
            }
            Tag::LockInit => {
                self.locks.remove(&address);
            }
            Tag::CondInit => {
                self.conds.remove(&address);
            }
            Tag::Acquire | Tag::AcquireShared => {
                let shared = tag == Tag::AcquireShared;
                // The last owner died with the lock in its hands: it is as good as a new one.
                if value & how::OWNER_DIED != 0 {
                    self.locks.remove(&address);
                }
                let id = self.lock(address)?;
                if value & how::TRIED != 0 {
                    out.put(event(Op::Try).with_target(id.0), &[]);
                } else if value & how::TIMED != 0 {
                    out.put(event(Op::TryFor).with_target(id.0), &[]);
                }
                let op = if shared { Op::AcquireShared } else { Op::Acquire };
                out.put(event(op).with_target(id.0), &[]);
                let lock = self.locks.entry(address).or_default();
                lock.is_robust = value & how::ROBUST != 0;
                if !shared {
                    lock.owner = Some((me, lock.owner.map_or(0, |o| o.1) + 1));
                } else if let Some(reader) = lock.readers.iter_mut().find(|r| r.0 == me) {
                    reader.1 += 1;
                } else {
                    lock.readers.push((me, 1));
                }
            }
            Tag::Release => {
                let id = self.lock(address)?;
                let lock = self.locks.entry(address).or_default();
                let op = if let Some((owner, depth)) = lock.owner.filter(|o| o.0 == me) {
                    lock.owner = (depth > 1).then_some((owner, depth - 1));
                    Op::Release
                } else if let Some(i) = lock.readers.iter().position(|r| r.0 == me) {
                    lock.readers[i].1 -= 1;
                    if lock.readers[i].1 == 0 {
                        lock.readers.swap_remove(i);
                    }
                    Op::ReleaseShared
                } else {
                    // Not known to be held: it was acquired before recording began, or this failed.
                    return Ok(());
                };
                out.put(event(op).with_target(id.0), &[]);
            }
            Tag::TryFailed => {
                let id = self.lock(address)?;
                let shared = value & how::SHARED != 0;
                let lock = self.locks.entry(address).or_default();
                let is_owned = lock.owner.is_some_and(|owner| owner.0 != me);
                let is_read = lock.readers.iter().any(|reader| reader.0 != me);
                // A thread that holds the lock itself would fail in every order; if the lock was
                // acquired before recording began, or the attempt failed spuriously, no known
                // thread holds it.
                if is_owned || !shared && is_read {
                    let op = if shared { Op::BusyShared } else { Op::Busy };
                    out.put(event(op).with_target(id.0), &[]);
                } else if lock.owner.is_none() {
                    self.stats.inexact += 1;
                }
            }
            Tag::WaitBegin => {
                self.history.wait(me);
                if self.plan().is_some_and(|plan| plan.marks_wait(me, place)) {
                    self.leave_mark(me, out)?;
                }
                // Locks are aligned; the lowest bit marks waits with a timeout.
                let (value, is_timed) = (value & !1, value & 1 != 0);
                let (cond, id) = (self.cond(address)?, self.lock(value)?);
                let lock = self.locks.entry(value).or_default();
                let depth = lock.owner.filter(|o| o.0 == me).map_or(0, |o| o.1);
                if depth > 0 {
                    lock.owner = None;
                }
                let interrupted = self.log.interrupted.contains(&(me, place))
                    || !self
                        .log
                        .delayed_from(self.log.delayed_at(me, place + 1), me, place + 1)
                        .is_empty();
                let thread = self.threads.get(me);
                (thread.interrupted, thread.depth) = (interrupted, depth);
                if interrupted {
                    for _ in 0..depth {
                        out.put(event(Op::Release).with_target(id.0), &[]);
                    }
                } else {
                    if is_timed {
                        out.put(event(Op::TryFor).with_target(id.0), &[]);
                    }
                    let wait = event(Op::WaitBegin).with_target(cond.0);
                    out.put(wait.with_wait_lock((depth > 0).then_some(id)), &[]);
                }
            }
            Tag::WaitEnd => {
                self.history.woken(me);
                let value = value & !1;
                let (cond, id) = (self.cond(address)?, self.lock(value)?);
                let thread = self.threads.get(me);
                let (interrupted, depth) = (thread.interrupted, thread.depth);
                if depth > 0 {
                    self.locks.entry(value).or_default().owner = Some((me, depth));
                }
                if interrupted {
                    for _ in 0..depth {
                        out.put(event(Op::Acquire).with_target(id.0), &[]);
                    }
                    out.put(event(Op::Wait).with_target(cond.0), &[]);
                } else {
                    let wait = event(Op::WaitEnd).with_target(cond.0);
                    out.put(wait.with_wait_lock((depth > 0).then_some(id)), &[]);
                }
            }
            Tag::Notify | Tag::NotifyAll => {
                let cond = self.cond(address)?;
                let op = if tag == Tag::Notify { Op::Notify } else { Op::NotifyAll };
                out.put(event(op).with_target(cond.0), &[]);
            }
            Tag::SemInit => {
                let var = self.object_var(address, "", "")?;
                self.objects.insert(address, (var, Some(value as i64)));
                out.put(event(Op::VolatileWrite).with_target(var.0), &[Value::Int(value as i64)]);
            }
            Tag::SemPost | Tag::SemWait => {
                let var = self.object(address, "", "")?;
                let step = if tag == Tag::SemPost { 1 } else { -1 };
                let held = self.objects.get_mut(&address).and_then(|o| o.1.as_mut());
                let event = event(Op::Rmw).with_target(var.0);
                match held {
                    Some(count) => {
                        let old = *count;
                        *count += step;
                        out.put(event, &[Value::Int(old), Value::Int(old + step)]);
                    }
                    None => out.put(event, &[]),
                }
            }
            Tag::SemValue => {
                let var = self.object(address, "", "")?;
                let count = self.objects.get(&address).and_then(|object| object.1);
                let value = count.map(Value::Int);
                out.put(event(Op::VolatileRead).with_target(var.0), value.as_slice());
            }
            Tag::SemFailed => {
                let var = self.object(address, "", "")?;
                out.put(event(Op::VolatileRead).with_target(var.0), &[]);
            }
            Tag::BarrierInit => {
                self.barriers.insert(address, Barrier { size: value, ..Barrier::default() });
            }
            Tag::BarrierArrive | Tag::BarrierLeave => {
                let arrives = tag == Tag::BarrierArrive;
                let barrier = self.barriers.entry(address).or_default();
                let round = if arrives {
                    let round = barrier.arrivals.checked_div(barrier.size).unwrap_or(0);
                    barrier.arrivals += 1;
                    barrier.inside.insert(me, round);
                    round
                } else {
                    barrier.inside.get(&me).copied().unwrap_or(0)
                };
                let var = match barrier.rounds.get(&round) {
                    Some(&var) => var,
                    None => {
                        let behind = format!(".round{}", round + 1);
                        let var = self.object_var(address, "", &behind)?;
                        self.barriers.entry(address).or_default().rounds.insert(round, var);
                        var
                    }
                };
                let op = if arrives { Op::Rmw } else { Op::VolatileRead };
                out.put(event(op).with_target(var.0), &[]);
                if arrives && self.log.unanswered.contains(&record.at) {
                    self.blocks(me, out)?;
                    out.put(event(Op::Block).with_target(var.0), &[]);
                }
            }
            Tag::OnceDone | Tag::OnceSeen => {
                let var = self.object(address, "", "")?;
                let op = if tag == Tag::OnceDone { Op::VolatileWrite } else { Op::VolatileRead };
                out.put(event(op).with_target(var.0), &[Value::Int(1)]);
            }
            Tag::Send | Tag::Receive | Tag::Look if self.log.channels.is_shared(address) => {
                let var = self.channel(address, value)?;
                let op = if tag == Tag::Look { Op::VolatileRead } else { Op::Rmw };
                out.put(event(op).with_target(var.0), &[]);
            }
            Tag::Send | Tag::Receive | Tag::Look => {}
            Tag::Alloc => {
                self.reuse(address, value);
                self.forget(address, value);
                let number = self.sites.entry(self.naming.site(pc)).or_insert(0);
                let since = self.history.now();
                let block = Block { start: address, size: value, since, site: pc, number: *number };
                *number += 1;
                self.blocks.insert(address, block);
            }
            Tag::Free => {
                // Whether it could be used after that can only be asked of what is used at some time.
                let block = self.blocks.get(&address).copied();
                let is_used = match self.log.is_sieved {
                    true => self.log.quiet.frees_used(record.at),
                    false => self.memory.has_variables(address, value),
                };
                if let Some(block) = block.filter(|_| is_used) {
                    self.text.clear();
                    self.naming.block(&block, &mut self.text);
                    let name = self.names.syms.intern(&self.text).map_err(too_many)?;
                    let sym = self.names.syms.intern(HEAP_FREE).map_err(too_many)?;
                    out.put(event(Op::Event).with_target(sym.0), &[Value::Str(name)]);
                    if value <= KEPT_BY_LIBC {
                        // Until it is allocated again, any access to it is a use after free.
                        self.memory.free(address, value);
                        self.forget_sync(address, value);
                        return Ok(());
                    }
                }
                self.forget(address, value);
            }
            Tag::Fence => {
                let op = match value as u8 {
                    order::ACQUIRE => Op::FenceAcquire,
                    order::RELEASE => Op::FenceRelease,
                    _ => Op::Fence,
                };
                out.put(event(op), &[]);
            }
            Tag::Enter | Tag::Exit => {
                self.text.clear();
                self.naming.function(pc, &mut self.text);
                let sym = self.names.syms.intern(&self.text).map_err(too_many)?;
                let op = if tag == Tag::Enter { Op::Enter } else { Op::Exit };
                out.put(event(op).with_target(sym.0), &[]);
            }
            Tag::Event => {
                let count = record.bytes.first().map_or(0, |&n| usize::from(n));
                let (values, name) = record
                    .bytes
                    .get(1..)
                    .unwrap_or(&[])
                    .split_at_checked(8 * count)
                    .unwrap_or_default();
                let sym = self.symbol(name)?;
                let values: Vec<Value> = values
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|v| Value::Int(i64::from_le_bytes(*v)))
                    .collect();
                out.put(event(Op::Event).with_target(sym.0), &values);
            }
            Tag::RegionBegin | Tag::RegionEnd => {
                let sym = self.symbol(record.bytes)?;
                let op = if tag == Tag::RegionBegin { Op::Begin } else { Op::End };
                out.put(event(op).with_target(sym.0), &[]);
            }
            Tag::ThreadEnd => {
                // The end of a thread is recorded only if it holds what others may want, or if a
                // waiting thread could have been woken by it.
                let keeps = |lock: &Lock| {
                    let is_reader = lock.readers.iter().any(|reader| reader.0 == me);
                    !lock.is_robust && (lock.owner.is_some_and(|o| o.0 == me) || is_reader)
                };
                if self.log.leaves_waiting() || self.locks.values().any(keeps) {
                    out.put(event(Op::ThreadEnd), &[]);
                }
            }
            Tag::Turn
            | Tag::Request
            | Tag::RequestEnd
            | Tag::RequestSem
            | Tag::Withdrawn
            | Tag::Stack
            | Tag::Call
            | Tag::CallFrom
            | Tag::Return
            | Tag::StackUnknown
            | Tag::ThreadName
            | Tag::Switch
            | Tag::Module
            | Tag::Delayed
            | Tag::Took
            | Tag::Instrumented
            | Tag::Data
            | Tag::Bytes => {}
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

    fn symbol(&mut self, name: &[u8]) -> Result<SymId> {
        self.names.syms.intern(&String::from_utf8_lossy(name)).map_err(too_many)
    }

    /// Forgets the blocks that were freed where memory is handed out again.
    fn reuse(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1));
        while let Some((_, &block)) = self.blocks.range(..end).next_back()
            && block.start + block.size.max(1) > address
        {
            self.forget(block.start, block.size);
        }
    }

    /// Memory ends one life and may begin another.
    fn forget(&mut self, address: u64, size: u64) {
        self.blocks.remove(&address);
        self.memory.renew(address, size);
        self.forget_sync(address, size);
    }

    /// Forgets the locks and the like in a range of memory.
    fn forget_sync(&mut self, address: u64, size: u64) {
        let within = |at: u64| (address..address.saturating_add(size)).contains(&at);
        if size / 8 > self.locks.len() as u64 {
            self.locks.retain(|&at, lock| {
                !within(at) || lock.owner.is_some() || !lock.readers.is_empty()
            });
        } else {
            for at in (address..address.saturating_add(size)).step_by(8) {
                self.locks.remove(&at);
            }
        }
        self.objects.retain(|&at, _| !within(at));
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
            let parts: Vec<String> =
                parts.map(|(names, what)| format!("{} {what}", listed(names))).collect();
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
fn listed(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) if names.len() <= MOST_LISTED => {
            format!("{} and {last}", others.join(", "))
        }
        _ => format!(
            "{} and {}",
            names[..MOST_LISTED].join(", "),
            count(names.len() - MOST_LISTED, "more thread")
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
            while out.batch.events.len() < Batch::EVENTS && !self.done {
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
                self.record(&record, left_out, &mut out)?;
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
