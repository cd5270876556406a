//! Events from records.

use std::collections::BTreeMap;

use super::HashMap;
use foresee_rt::format::{Access, RECORD_MAX, Tag, how, order};
use foresee_trace::{
    Batch, CondId, EXTERNAL, ErrorKind, Event, EventSource, FileOrder, HEAP_FREE, LocId, LockId,
    Op, Position, ReadError, Remarks, SymId, ThreadId, TooManyNames, Value, VarId,
};

use super::memory::{Cell, Memory};
use super::names::{Block, Names, Pc};
use super::records::{Record, Records, What};
use super::{End, Held, Log, LogError};

/// Freed blocks up to this size stay libc's, which hands them out again by functions that are
/// recorded. Larger ones may go back to the kernel, and come again as anything.
const KEPT_BY_LIBC: u64 = 64 << 10;

/// What came out of a log; complete at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events of the program.
    pub events: u64,
    /// Accesses among them that may stand in the wrong place or have the wrong value.
    pub inexact: u64,
    /// Writes that were inserted because a read saw what nobody was seen to write.
    pub external_writes: u64,
    /// Reads whose values were compared with the last write.
    pub checked_reads: u64,
}

/// Who holds a lock.
#[derive(Debug, Default)]
struct Lock {
    id: Option<LockId>,
    owner: Option<(u32, u32)>,
    readers: Vec<(u32, u32)>,
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
    /// Its wait is told as a release and an acquire, because something happened in between.
    interrupted: bool,
    /// Where the next of its accesses that were held back stands.
    held: Option<usize>,
    /// How deeply it held the lock of its wait.
    depth: u32,
}

/// The events of a log.
#[derive(Debug)]
pub struct LogSource<'l, N> {
    log: &'l Log,
    records: Records,
    naming: N,
    names: foresee_trace::Names,
    remarks: Remarks,
    stats: Stats,
    memory: Memory,
    blocks: BTreeMap<u64, Block>,
    sites: HashMap<u64, u64>,
    threads: HashMap<u32, Thread>,
    locks: HashMap<u64, Lock>,
    conds: HashMap<u64, CondId>,
    barriers: HashMap<u64, Barrier>,
    /// Variables of semaphores and the like, and what they hold.
    objects: HashMap<u64, (VarId, Option<i64>)>,
    /// What threads tell each other through.
    channels: HashMap<u64, VarId>,
    locations: HashMap<Pc, LocId>,
    /// How often each name was wanted for something new.
    taken: HashMap<(u8, String), u32>,
    external: Option<ThreadId>,
    /// Where the record of each event of the latest batch stands.
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

/// The kinds of things that have names of their own.
#[derive(Clone, Copy)]
enum Namespace {
    Var,
    Lock,
    Cond,
    Thread,
}

impl<'l, N: Names> LogSource<'l, N> {
    pub(super) fn new(log: &'l Log, records: Records, naming: N) -> Self {
        let order = match log.header.free_running {
            true => FileOrder::Notes,
            false if log.header.filtered => FileOrder::Thinned,
            false => FileOrder::Observed,
        };
        LogSource {
            log,
            records,
            naming,
            names: foresee_trace::Names::default(),
            remarks: Remarks { order, ..Remarks::default() },
            stats: Stats::default(),
            memory: Memory::default(),
            blocks: BTreeMap::new(),
            sites: HashMap::default(),
            threads: HashMap::default(),
            locks: HashMap::default(),
            conds: HashMap::default(),
            barriers: HashMap::default(),
            objects: HashMap::default(),
            channels: HashMap::default(),
            locations: HashMap::default(),
            taken: HashMap::default(),
            external: None,
            positions: Vec::new(),
            done: false,
            text: String::new(),
        }
    }

    /// What came out of it so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// What names things.
    pub fn naming(&mut self) -> &mut N {
        &mut self.naming
    }

    /// Makes the name in `self.text` one that nothing else has: the second of a name becomes `name#2`.
    fn make_unique(&mut self, space: Namespace) {
        let times = self.taken.entry((space as u8, self.text.clone())).or_insert(0);
        *times += 1;
        if *times > 1 {
            self.text.push('#');
            self.text.push_str(&times.to_string());
        }
    }

    fn block(&self, address: u64) -> Option<Block> {
        let (_, block) = self.blocks.range(..=address).next_back()?;
        (address < block.start + block.size.max(1)).then_some(*block)
    }

    fn thread(&mut self, number: u32) -> Result<ThreadId> {
        if let Some(id) = self.threads.get(&number).and_then(|t| t.id) {
            return Ok(id);
        }
        self.text.clear();
        let called = self.log.called.get(&number).map(String::as_str);
        self.naming.thread(number.saturating_sub(1), called, &mut self.text);
        self.make_unique(Namespace::Thread);
        let id = self.names.thread(&self.text).map_err(too_many)?;
        self.threads.entry(number).or_default().id = Some(id);
        Ok(id)
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

    fn variable(&mut self, granule: u64, cell: Cell) -> Result<VarId> {
        let (log, naming) = (self.log, &mut self.naming);
        let memory = self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a));
        if let Some(var) = memory.vars[usize::from(cell.offset)] {
            return Ok(var);
        }
        let start = granule + u64::from(cell.offset);
        let block = self.block(start);
        self.text.clear();
        self.naming.variable(start, cell.size, block.as_ref(), &mut self.text);
        self.make_unique(Namespace::Var);
        let var = self.names.vars.intern(&self.text).map_err(too_many)?;
        let naming = &mut self.naming;
        let memory = self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a));
        memory.vars[usize::from(cell.offset)] = Some(var);
        Ok(var)
    }

    /// The name of an object of synchronisation in `self.text`, with something in front.
    fn name_object(&mut self, address: u64, before: &str, behind: &str, space: Namespace) {
        let block = self.block(address);
        self.text.clear();
        self.text.push_str(before);
        self.naming.object(address, block.as_ref(), &mut self.text);
        self.text.push_str(behind);
        self.make_unique(space);
    }

    fn lock(&mut self, address: u64) -> Result<LockId> {
        if let Some(id) = self.locks.get(&address).and_then(|l| l.id) {
            return Ok(id);
        }
        self.name_object(address, "", "", Namespace::Lock);
        let id = self.names.locks.intern(&self.text).map_err(too_many)?;
        self.locks.entry(address).or_default().id = Some(id);
        Ok(id)
    }

    fn cond(&mut self, address: u64) -> Result<CondId> {
        if let Some(&id) = self.conds.get(&address) {
            return Ok(id);
        }
        self.name_object(address, "", "", Namespace::Cond);
        let id = self.names.conds.intern(&self.text).map_err(too_many)?;
        self.conds.insert(address, id);
        Ok(id)
    }

    fn object_var(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        self.name_object(address, before, behind, Namespace::Var);
        self.names.vars.intern(&self.text).map_err(too_many)
    }

    fn object(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        if let Some(&(var, _)) = self.objects.get(&address) {
            return Ok(var);
        }
        let var = self.object_var(address, before, behind)?;
        self.objects.insert(address, (var, None));
        Ok(var)
    }

    /// The variable that stands for a channel, called after the file descriptor that it was first seen as.
    fn channel(&mut self, id: u64, file: u64) -> Result<VarId> {
        if let Some(&var) = self.channels.get(&id) {
            return Ok(var);
        }
        self.text.clear();
        match u32::try_from(file) {
            Ok(u32::MAX) => self.text.push_str("environment"),
            _ => self.text.push_str(&format!("fd({file})")),
        }
        self.make_unique(Namespace::Var);
        let var = self.names.vars.intern(&self.text).map_err(too_many)?;
        self.channels.insert(id, var);
        Ok(var)
    }

    /// Handles a record, and the accesses that were held back behind it.
    fn record(&mut self, record: &Record<'_>, out: &mut Out<'_>) -> Result<()> {
        let counted = match record.what {
            What::Access(..) => true,
            What::Sync(tag) => tag.is_counted(),
        };
        if !counted {
            return Ok(());
        }
        let place = self.threads.get(&record.thread).map_or(0, |t| t.place);
        let who = self.thread(record.thread)?;
        let pc = self.log.place(record.pc);
        match record.what {
            What::Access(access, size) => {
                let loc = self.location(pc)?;
                let number = record.value.to_le_bytes();
                let bytes =
                    if record.bytes.is_empty() { &number[..size.min(8)] } else { record.bytes };
                let old = record.old.to_le_bytes();
                self.stats.inexact += u64::from(record.inexact);
                let how = (access, record.order);
                self.access(who, how, record.address, bytes, &old, loc, out)?;
            }
            What::Sync(tag) => {
                out.is_sync = true;
                let done = self.sync(record, tag, who, pc, place, out);
                out.is_sync = false;
                done?;
            }
        }
        let place = place + 1;
        let log = self.log;
        let thread = self.threads.entry(record.thread).or_default();
        thread.place = place;
        let from = *thread.held.get_or_insert_with(|| log.delayed_at(record.thread, place));
        let held = log.delayed_from(from, record.thread, place);
        thread.held = Some(from + held.len());
        for &Held { address, pc, delayed } in held {
            let loc = self.location(log.place_of_half(pc))?;
            let mut at = 0;
            // The bytes lie together most often; where not, each stretch is an access of its own.
            while at < 8 {
                let rest = delayed.mask >> at;
                if rest & 1 == 0 {
                    at += 1;
                    continue;
                }
                let size = (!rest).trailing_zeros().min(8 - at as u32) as usize;
                let bytes = &delayed.bytes[at..at + size];
                let how = (delayed.access, order::FULL);
                self.access(who, how, address + at as u64, bytes, &[], loc, out)?;
                at += size;
            }
        }
        Ok(())
    }

    /// An access of memory, as events of the variables it touches.
    #[allow(clippy::too_many_arguments)]
    fn access(
        &mut self,
        who: ThreadId,
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
        let end = address.saturating_add(bytes.len() as u64);
        let mut granule = address & !7;
        while granule < end {
            let (mut mask, mut now, mut before) = (0u8, [0; 8], [0; 8]);
            for i in 0..8 {
                let at = granule + i as u64;
                if (address..end).contains(&at) {
                    mask |= 1 << i;
                    now[i] = bytes[(at - address) as usize];
                    before[i] = old.get((at - address) as usize).copied().unwrap_or(0);
                }
            }
            let (log, naming) = (self.log, &mut self.naming);
            let cells =
                self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a)).cells(mask);
            for cell in cells {
                let var = self.variable(granule, cell)?;
                let part = mask & (((1u32 << cell.size) - 1) << cell.offset) as u8;
                let seen = match op {
                    Op::Read | Op::VolatileRead => Some(now),
                    Op::Rmw => Some(before),
                    _ => None,
                };
                let naming = &mut self.naming;
                let memory = self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a));
                let event = Event::new(who, op).with_target(var.0).with_loc(loc);
                if memory.is_freed {
                    out.put(event, &[]);
                    continue;
                }
                if let Some(seen) = seen {
                    self.stats.checked_reads += 1;
                    let strange = memory.differs(cell, part, seen);
                    memory.learn(part, seen);
                    if strange && !log.header.free_running {
                        self.stats.external_writes += 1;
                        let value = memory.value(cell);
                        let external = self.external()?;
                        out.put(
                            Event::new(external, Op::Write).with_target(var.0),
                            value.as_slice(),
                        );
                    }
                }
                let naming = &mut self.naming;
                let memory = self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a));
                let old = memory.value(cell);
                if op.writes() {
                    memory.learn(part, now);
                }
                let new = memory.value(cell);
                if let Some(remark) = remark {
                    out.put(event.with_op(remark), &[]);
                }
                match (op, old, new) {
                    (Op::Rmw, Some(old), Some(new)) => out.put(event, &[old, new]),
                    (_, _, new) => out.put(event, new.as_slice()),
                }
            }
            granule += 8;
        }
        Ok(())
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
            }
            Tag::Fork => {
                let other = self.thread(value as u32)?;
                out.put(event(Op::Fork).with_target(other.0), &[]);
            }
            Tag::Join => {
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
                    // Not held, as far as was seen: it was taken before recording began, or this failed.
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
                // A thread that has the lock itself would fail in every order; nobody known has it
                // if it was taken before recording began, or the attempt failed for no reason.
                if is_owned || !shared && is_read {
                    let op = if shared { Op::BusyShared } else { Op::Busy };
                    out.put(event(op).with_target(id.0), &[]);
                } else if lock.owner.is_none() {
                    self.stats.inexact += 1;
                }
            }
            Tag::WaitBegin => {
                // Locks are aligned; the lowest bit tells of waits that end by themselves.
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
                let thread = self.threads.entry(me).or_default();
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
                let (cond, id) = (self.cond(address)?, self.lock(value)?);
                let thread = self.threads.entry(me).or_default();
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
                let number = self.sites.entry(pc.address).or_insert(0);
                let block = Block { start: address, size: value, site: pc, number: *number };
                *number += 1;
                self.blocks.insert(address, block);
            }
            Tag::Free => {
                // Whether it could be used after that can only be asked of what was used.
                let block = self.blocks.get(&address).copied();
                if let Some(block) = block.filter(|_| self.memory.has_variables(address, value)) {
                    self.text.clear();
                    self.naming.block(&block, &mut self.text);
                    let name = self.names.syms.intern(&self.text).map_err(too_many)?;
                    let sym = self.names.syms.intern(HEAP_FREE).map_err(too_many)?;
                    out.put(event(Op::Event).with_target(sym.0), &[Value::Str(name)]);
                    if value <= KEPT_BY_LIBC {
                        // Until it is handed out again, who touches it uses what was freed.
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
            Tag::ThreadEnd
            | Tag::ThreadName
            | Tag::Switch
            | Tag::Module
            | Tag::Delayed
            | Tag::Took
            | Tag::Instrumented => {}
        }
        Ok(())
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

    /// Forgets the locks and the like in a stretch of memory.
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
            && self.threads.contains_key(&thread)
        {
            let (who, loc) = (self.thread(thread)?, self.location(self.log.place(pc))?);
            self.stats.inexact += 1;
            let end = address.saturating_add(size.min(4096));
            for granule in (address & !7..end).step_by(8) {
                let mask = (0..8)
                    .filter(|i| (address..end).contains(&(granule + i)))
                    .fold(0u8, |m, i| m | 1 << i);
                let (log, naming) = (self.log, &mut self.naming);
                let memory = self.memory.granule(granule, &log.boundaries, |a| naming.scalar(a));
                memory.doubt(mask);
                for cell in memory.cells(mask) {
                    let var = self.variable(granule, cell)?;
                    out.put(Event::new(who, Op::Write).with_target(var.0).with_loc(loc), &[]);
                }
            }
        }
        let header = &self.log.header;
        self.remarks.cut_short = match header.end {
            End::Ended | End::Replaced => None,
            End::Running => Some("the program did not end by itself".to_owned()),
            End::Failed(error) => {
                let error = std::io::Error::from_raw_os_error(error as i32);
                Some(format!("the log could not be written any further: {error}"))
            }
            End::Limit => Some("the log reached the limit that was set for it".to_owned()),
        };
        let warnings = &mut self.remarks.warnings;
        if self.stats.external_writes > 0 {
            warnings.push(format!(
                "{} reads saw what no captured step wrote (code without hooks did): a write by the thread `external` was \
                 inserted before each",
                self.stats.external_writes
            ));
        }
        if header.takes > 0 || self.stats.inexact > 0 {
            warnings.push(format!(
                "{} accesses may stand in the wrong place: a thread slept in a call that foresee does not know ({} times)",
                self.stats.inexact, header.takes
            ));
        }
        Ok(())
    }
}

/// Where events go: a batch, and where each came from.
struct Out<'b> {
    batch: &'b mut Batch,
    positions: &'b mut Vec<u64>,
    at: u64,
    /// The order is only that of notes.
    is_of_notes: bool,
    /// The event stands for a step of synchronisation, not for an access of memory.
    is_sync: bool,
}

impl Out<'_> {
    fn put(&mut self, mut event: Event, mut values: &[Value]) {
        if self.is_of_notes {
            // Volatile accesses promise that they were noted as they happened, and a read that it
            // was noted after. That is true of atomics alone: a plain read is announced before it
            // happens, so nobody knows what it sees, and semaphores and the like are noted as notes
            // of locks are.
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
        self.positions.push(self.at);
    }
}

impl<N: Names> EventSource for LogSource<'_, N> {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        let mut positions = std::mem::take(&mut self.positions);
        positions.clear();
        let mut bytes = [0u8; RECORD_MAX];
        let is_of_notes = self.log.header.free_running;
        let mut out = Out { batch, positions: &mut positions, at: 0, is_of_notes, is_sync: false };
        while out.batch.events.len() < Batch::EVENTS && !self.done {
            // Copied, for the reader lends them only until it is asked for more.
            let next = match self.records.next_record().map_err(damaged)? {
                Some(record) => {
                    let n = record.bytes.len().min(bytes.len());
                    bytes[..n].copy_from_slice(&record.bytes[..n]);
                    Some((Record { bytes: &[], ..record }, n))
                }
                None => None,
            };
            match next {
                Some((record, n)) => {
                    out.at = record.at;
                    self.record(&Record { bytes: &bytes[..n], ..record }, &mut out)?;
                }
                None => {
                    self.done = true;
                    self.finish(&mut out)?;
                }
            }
        }
        self.stats.events += out.batch.events.len() as u64;
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
        self.positions.get(i).map_or(Position::Unknown, |&at| Position::Byte(at))
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}
