//! Variables that only one thread ever accesses. In every order, such a thread sees there what it
//! wrote itself, so leaving out its accesses does not affect any question about other orders:
//! unlike the runtime's filter, this is exact for every space of reorderings. The private variables
//! are known only at the end of a run, so a log is read once to learn them.
//!
//! Freeing memory accesses all of it: a block of one thread that another one frees is not private.

use std::collections::{HashMap, HashSet};

use foresee_trace::{
    Batch, Event, HEAP_FREE, Id, Interner, Names, Op, Pool, SymId, TargetKind, ThreadId,
    TooManyNames, Value, VarId, entry, object_of,
};

/// The owner of each variable, as far as the trace has been read.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    owners: Vec<Owner>,
    /// The thread that freed each block of memory.
    freed: HashMap<SymId, ThreadId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    None,
    One(ThreadId),
    Many,
}

fn is_access(event: &Event) -> bool {
    event.op().target_kind() == TargetKind::Var
}

/// The block of memory that an event frees; `free` is the name of such events.
fn freed_by(event: &Event, pool: &Pool, free: Option<SymId>) -> Option<SymId> {
    let is_free = event.op() == Op::Event && free.is_some() && event.sym() == free;
    match pool.values(event).first() {
        Some(&Value::Str(block)) if is_free => Some(block),
        _ => None,
    }
}

impl Owners {
    /// Processes the next part of a trace.
    pub(crate) fn see(&mut self, batch: &Batch, names: &Names) {
        let free = names.syms.lookup(HEAP_FREE);
        for event in &batch.events {
            if !is_access(event) {
                let block = freed_by(event, &batch.pool, free);
                self.freed.extend(block.map(|block| (block, event.thread())));
                continue;
            }
            let owner = entry(&mut self.owners, event.var().index());
            *owner = match *owner {
                // A thread blocks there, waiting for others.
                _ if event.op() == Op::Block => Owner::Many,
                Owner::None => Owner::One(event.thread()),
                Owner::One(thread) if thread == event.thread() => continue,
                _ => Owner::Many,
            };
        }
    }

    /// Whether more than one thread accesses a variable.
    pub(crate) fn is_shared(&self, var: VarId) -> bool {
        self.owners.get(var.index()) == Some(&Owner::Many)
    }

    /// Keeps a variable, whichever threads access it.
    pub(crate) fn keep(&mut self, var: VarId) {
        *entry(&mut self.owners, var.index()) = Owner::Many;
    }

    /// What remains without private variables; `None` if there are none.
    pub(crate) fn shared(&self, names: &Names) -> Result<Option<Shared>, TooManyNames> {
        let mut vars = Interner::default();
        let mut numbers = Vec::with_capacity(names.vars.len());
        let mut blocks = HashSet::new();
        // Consecutive variables are often of one block.
        let mut latest: (&str, Option<(SymId, ThreadId)>) = ("", None);
        for (var, name) in names.vars.iter() {
            let owner = self.owners.get(var.index()).copied().unwrap_or_default();
            let block = match owner {
                Owner::None => None,
                _ if self.freed.is_empty() => None,
                _ => {
                    let object = object_of(name);
                    if object != latest.0 {
                        let symbol = names.syms.lookup(object);
                        let freed = |block| Some((block, *self.freed.get(&block)?));
                        latest = (object, symbol.and_then(freed));
                    }
                    latest.1
                }
            };
            let is_kept = match owner {
                Owner::Many => true,
                Owner::One(thread) => block.is_some_and(|(_, by)| by != thread),
                Owner::None => false,
            };
            if is_kept {
                blocks.extend(block.map(|(block, _)| block));
            }
            numbers.push(if is_kept { Some(vars.intern(name)?) } else { None });
        }
        if vars.len() == names.vars.len() && blocks.len() == self.freed.len() {
            return Ok(None);
        }
        let free = names.syms.lookup(HEAP_FREE);
        Ok(Some(Shared { numbers, blocks, free, names: names_with(vars, names) }))
    }
}

/// All names but those of variables, which are these.
fn names_with(vars: Interner<VarId>, names: &Names) -> Names {
    let Names { threads, vars: _, locks, conds, locs, syms, stacks } = names;
    Names {
        threads: threads.clone(),
        vars,
        locks: locks.clone(),
        conds: conds.clone(),
        locs: locs.clone(),
        syms: syms.clone(),
        stacks: stacks.clone(),
    }
}

/// The variables that more than one thread accesses, renumbered.
#[derive(Debug)]
pub(crate) struct Shared {
    numbers: Vec<Option<VarId>>,
    /// The blocks of memory that contain them.
    blocks: HashSet<SymId>,
    free: Option<SymId>,
    /// All remaining names.
    pub(crate) names: Names,
}

impl Shared {
    /// Removes the accesses to private variables from a part of the trace.
    pub(crate) fn narrow(&self, batch: &mut Batch) {
        let Batch { events, pool, stacks } = batch;
        if !stacks.is_empty() {
            let mut each = events.iter();
            stacks.retain(|_| each.next().is_some_and(|event| self.keeps(event, pool)));
        }
        events.retain_mut(|event| {
            let is_kept = self.keeps(event, pool);
            if is_access(event) {
                let number = self.numbers.get(event.var().index()).copied().flatten();
                *event = event.with_target(number.map_or(0, |var| var.0));
            }
            is_kept
        });
    }

    /// Whether an event remains.
    pub(crate) fn keeps(&self, event: &Event, pool: &Pool) -> bool {
        if !is_access(event) {
            let block = freed_by(event, pool, self.free);
            return block.is_none_or(|block| self.blocks.contains(&block));
        }
        self.numbers.get(event.var().index()).copied().flatten().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_testkit::trace;

    /// Events as text, with their names.
    fn described(batch: &Batch, names: &Names) -> Vec<String> {
        batch.events.iter().map(|e| e.describe(names, &batch.pool).to_string()).collect()
    }

    #[test]
    fn what_one_thread_touches_is_left_out_and_the_rest_keeps_its_names() {
        let trace = trace! {
            T1: w(mine)=1, acq(l), w(ours)=2, w(named)=3, rel(l), r(mine)=1;
            T2: acq(l), r(ours)=2, w(yours)=70000000000, r(yours)=70000000000, rel(l)
        };
        let mut batch =
            Batch { events: trace.events.clone(), pool: trace.pool.clone(), ..Batch::default() };
        let mut owners = Owners::default();
        owners.see(&batch, &trace.names);
        owners.keep(trace.names.vars.lookup("named").expect("it is there"));
        let shared = owners.shared(&trace.names).expect("few names").expect("some are private");
        shared.narrow(&mut batch);
        let left = ["acq(l)", "w(ours)=2", "w(named)=3", "rel(l)", "acq(l)", "r(ours)=2", "rel(l)"];
        assert_eq!(described(&batch, &shared.names), left);
        assert_eq!(shared.names.vars.len(), 2);
        // A second pass removes nothing more.
        let mut owners = Owners::default();
        owners.see(&batch, &shared.names);
        owners.keep(shared.names.vars.lookup("named").expect("it was kept"));
        assert!(owners.shared(&shared.names).expect("few names").is_none());
    }

    #[test]
    fn memory_that_another_thread_frees_is_not_private() {
        let trace = trace! {
            T1: w("heap(a.c:1)#1+0")=1, w("heap(a.c:1)#2+0")=2, event(heap_free, "heap(a.c:1)#2");
            T2: event(heap_free, "heap(a.c:1)#1"), event(done, "heap(a.c:1)#2")
        };
        let mut batch =
            Batch { events: trace.events.clone(), pool: trace.pool.clone(), ..Batch::default() };
        let mut owners = Owners::default();
        owners.see(&batch, &trace.names);
        let shared = owners.shared(&trace.names).expect("few names").expect("some are private");
        shared.narrow(&mut batch);
        let left = [
            "w(heap(a.c:1)#1+0)=1",
            "event(heap_free,\"heap(a.c:1)#1\")",
            "event(done,\"heap(a.c:1)#2\")",
        ];
        assert_eq!(described(&batch, &shared.names), left);
    }
}
