//! Numbers and names for what records mention: threads, places, variables, locks, channels.

use std::hash::BuildHasher as _;
use std::mem::replace;

use foldhash::fast::FixedState;
use foresee_rt::format::channel;
use foresee_trace::{
    CondId, EXTERNAL, Id as _, LocId, LockId, StackId, SymId, ThreadId, VarId, entry,
};

use super::{LogSource, NAME, Namespace, RECENT, Result, block_at, too_many, whole};
use crate::log::calls;
use crate::log::memory::{Cell, Granule, GranuleId};
use crate::log::names::{Block, Names, Pc};

impl<N: Names> LogSource<'_, N> {
    /// A variable with the name in `self.text`; the second one becomes `name#2`.
    pub(super) fn new_variable(&mut self) -> Result<VarId> {
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
    pub(super) fn make_unique(&mut self, space: Namespace) {
        let name = FixedState::default().hash_one((space as u8, &self.text));
        let times = self.taken.entry(name).or_insert(0);
        *times += 1;
        self.names_weight += self.text.len() + NAME;
        if *times > 1 {
            self.text.push('#');
            self.text.push_str(&times.to_string());
        }
    }

    pub(super) fn block(&self, address: u64) -> Option<Block> {
        block_at(&self.blocks, address)
    }

    pub(super) fn thread(&mut self, number: u32) -> Result<ThreadId> {
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
    pub(super) fn location_at(&mut self, pc: u64) -> Result<LocId> {
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
    pub(super) fn stack(&mut self, node: Option<u32>) -> Result<StackId> {
        match node {
            Some(_) if !self.log.calls.has_any() => Ok(StackId::NONE),
            Some(node) => match self.named_stacks.get(&node) {
                Some(&stack) => Ok(stack),
                None => self.new_stack(node),
            },
            None => Ok(StackId::NONE),
        }
    }

    pub(super) fn new_stack(&mut self, node: u32) -> Result<StackId> {
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
    pub(super) fn has_code_between(&mut self, call: calls::Call) -> bool {
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

    pub(super) fn location(&mut self, pc: Pc) -> Result<LocId> {
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
    pub(super) fn granule(&mut self, address: u64) -> GranuleId {
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
    pub(super) fn variable(&mut self, granule: u64, id: GranuleId, cell: Cell) -> Result<VarId> {
        match self.memory.at(id).var(cell) {
            Some(var) => Ok(var),
            None => self.new_cell(granule, id, cell),
        }
    }

    /// The variable of a cell that has none yet.
    pub(super) fn new_cell(&mut self, granule: u64, id: GranuleId, cell: Cell) -> Result<VarId> {
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
    pub(super) fn name_object(&mut self, address: u64, before: &str, behind: &str) {
        let block = self.block(address);
        self.text.clear();
        self.text.push_str(before);
        match channel::of_set(address) {
            Some((set, number)) => self.text.push_str(&format!("semaphores({set})[{number}]")),
            None => self.naming.object(address, block.as_ref(), &mut self.text),
        }
        self.text.push_str(behind);
    }

    pub(super) fn lock(&mut self, address: u64) -> Result<LockId> {
        if let Some(id) = self.locks.get(&address).and_then(|l| l.id) {
            return Ok(id);
        }
        self.name_object(address, "", "");
        self.make_unique(Namespace::Lock);
        let id = self.names.locks.intern(&self.text).map_err(too_many)?;
        self.locks.entry(address).or_default().id = Some(id);
        Ok(id)
    }

    pub(super) fn cond(&mut self, address: u64) -> Result<CondId> {
        if let Some(&id) = self.conds.get(&address) {
            return Ok(id);
        }
        self.name_object(address, "", "");
        self.make_unique(Namespace::Cond);
        let id = self.names.conds.intern(&self.text).map_err(too_many)?;
        self.conds.insert(address, id);
        Ok(id)
    }

    pub(super) fn object_var(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        self.name_object(address, before, behind);
        self.new_variable()
    }

    pub(super) fn object(&mut self, address: u64, before: &str, behind: &str) -> Result<VarId> {
        if let Some(&(var, _)) = self.objects.get(&address) {
            return Ok(var);
        }
        let var = self.object_var(address, before, behind)?;
        self.objects.insert(address, (var, None));
        Ok(var)
    }

    /// The variable that represents a channel, named after its kind and the number it was first
    /// seen with.
    pub(super) fn channel(&mut self, id: u64, value: u64) -> Result<VarId> {
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

    /// The thread of writes by code that has no hooks.
    pub(super) fn external(&mut self) -> Result<ThreadId> {
        if let Some(id) = self.external {
            return Ok(id);
        }
        self.text.clear();
        self.text.push_str(EXTERNAL);
        self.make_unique(Namespace::Thread);
        let id = self.names.thread(&self.text).map_err(too_many)?;
        Ok(*self.external.insert(id))
    }

    pub(super) fn symbol(&mut self, name: &[u8]) -> Result<SymId> {
        self.names.syms.intern(&String::from_utf8_lossy(name)).map_err(too_many)
    }

    /// Forgets the blocks that were freed where memory is handed out again.
    pub(super) fn reuse(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1));
        while let Some((_, &block)) = self.blocks.range(..end).next_back()
            && block.start + block.size.max(1) > address
        {
            self.forget(block.start, block.size);
        }
    }

    /// Memory ends one life and may begin another.
    pub(super) fn forget(&mut self, address: u64, size: u64) {
        self.blocks.remove(&address);
        self.memory.renew(address, size);
        self.forget_sync(address, size);
    }

    /// Forgets the locks and the like in a range of memory.
    pub(super) fn forget_sync(&mut self, address: u64, size: u64) {
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
        let over: Vec<u64> = self.permits.keys().copied().filter(|&at| within(at)).collect();
        over.into_iter().for_each(|at| self.close_permits(at));
    }
}
