//! Variables whose accesses can be left out because nothing about them depends on the order in which threads run. They are
//! known only at the end of a run, so a log is read once to learn them.
//!
//! A variable is *private* if only one thread ever accesses it. In every order, this thread sees there what it wrote itself, so
//! leaving out its accesses does not affect any question about other orders: unlike the runtime's filter, this is exact for
//! every space of reorderings.
//!
//! A variable is *settled* if of any two plain accesses, one of which writes, one comes before the other by the order within
//! threads and by starts and joins of threads alone: settings that were filled in before the threads started that read
//! them, results that are collected after a join. Every reordering keeps that order. So each read sees the same write in all
//! of them, no two accesses can race, and a reordering of the remaining events is one of all events, with each access that
//! was left out directly after the event before it in its thread. What settled accesses do matter to are conflicts
//! as such: cycles among atomic regions, values in specifications, and the number of reads. Only the caller knows whether
//! somebody asks for these.
//!
//! An *initial value* matters only if a read finds it, after the variable was written, and starts and joins do not keep the read
//! behind the first write: it could then have come before that write. If no such read does, no reordering in which reads see what
//! they saw depends on it, and it is left out.
//!
//! Freeing memory accesses all of it: a block of one thread that another one frees is not private, and the variables of a block
//! are settled only if their accesses come before the end of the block in the same way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foresee_trace::{
    Batch, Event, HEAP_FREE, Id, Interner, Names, Op, Pool, SymId, TargetKind, ThreadId,
    TooManyNames, Value, VarId, entry, object_of,
};

/// The accesses that a trace keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them.
    Everything,
    /// All but those of private variables.
    Shared,
    /// All but those of private and of settled variables. In a trace with regions that are meant to be atomic it is the
    /// same as [`Keep::Shared`].
    Unsettled,
}

/// Starts and joins are followed of so many threads; those after them are in no order with others.
const MOST_THREADS: usize = 256;

/// A variable that more threads have read since it was written is not settled.
const MOST_READERS: usize = 64;

/// The owner of each variable, as far as the trace has been read.
#[derive(Debug, Default)]
pub(crate) struct Owners {
    owners: Vec<Owner>,
    /// What settled variables have in addition, by the variables' numbers.
    accesses: Vec<Accesses>,
    /// The ends of blocks of memory.
    freed: HashMap<SymId, Freed>,
    starts: Starts,
    initial: Initial,
    /// The number of events so far.
    events: u64,
    /// Whether there are regions that may be meant to be atomic.
    has_regions: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    #[default]
    None,
    One(ThreadId),
    /// Several threads, whose accesses are settled so far.
    Settled,
    Many,
}

/// The latest accesses of a variable, each by its thread and the thread's time.
#[derive(Debug, Default)]
struct Accesses {
    write: Option<(ThreadId, u32)>,
    /// The last read since.
    read: Option<(ThreadId, u32)>,
    /// The reads since the write that do not come before it.
    others: Vec<(ThreadId, u32)>,
    /// Which event the last of them is.
    last: u64,
    /// Whether there were others than plain reads and writes.
    is_special: bool,
}

/// The end of a block of memory.
#[derive(Debug)]
struct Freed {
    thread: ThreadId,
    /// What comes before it.
    after: Arc<Vec<u32>>,
    /// Which event it is.
    event: u64,
}

/// What comes before the next event of each thread by starts and joins: the time of a thread grows with each start of another.
#[derive(Debug, Default)]
pub(crate) struct Starts {
    threads: Vec<Arc<Vec<u32>>>,
}

impl Starts {
    /// What comes before the next event of a thread, with its own time.
    pub(crate) fn of(&mut self, thread: ThreadId) -> &mut Arc<Vec<u32>> {
        let known = entry(&mut self.threads, thread.index());
        if thread.index() < MOST_THREADS && known.len() <= thread.index() {
            let times = Arc::make_mut(known);
            times.resize(thread.index() + 1, 0);
            times[thread.index()] = 1;
        }
        known
    }

    pub(crate) fn time(&mut self, thread: ThreadId) -> u32 {
        self.of(thread).get(thread.index()).copied().unwrap_or(0)
    }

    /// Whatever comes before the next event of `from` comes before that of `to`.
    pub(crate) fn precede(&mut self, from: ThreadId, to: ThreadId) {
        let from = Arc::clone(self.of(from));
        let to = Arc::make_mut(self.of(to));
        if to.len() < from.len() {
            to.resize(from.len(), 0);
        }
        to.iter_mut().zip(&*from).for_each(|(to, &from)| *to = (*to).max(from));
    }

    pub(crate) fn start(&mut self, parent: ThreadId, child: ThreadId) {
        self.precede(parent, child);
        if let Some(time) = Arc::make_mut(self.of(parent)).get_mut(parent.index()) {
            *time += 1;
        }
    }
}

/// The initial values of variables, and whether reads find them.
#[derive(Debug, Default)]
struct Initial {
    /// For each variable, the number of its value, counted from one.
    numbers: Vec<u32>,
    values: Vec<InitialValue>,
}

#[derive(Debug)]
struct InitialValue {
    value: Value,
    /// The thread that writes the variable first, and its time then.
    written: (ThreadId, u32),
    is_found: bool,
}

impl Initial {
    fn get(&mut self, var: VarId) -> Option<&mut InitialValue> {
        let number = *self.numbers.get(var.index())?;
        self.values.get_mut(number.checked_sub(1)? as usize)
    }

    /// A variable gets its initial value before its first write, which is the next access.
    fn tell(&mut self, event: &Event, value: Option<Value>, starts: &mut Starts) {
        let written = (event.thread(), starts.time(event.thread()));
        // Without a value, nobody can say whether a read finds it.
        let (value, is_found) = (value.unwrap_or(Value::Int(0)), value.is_none());
        self.values.push(InitialValue { value, written, is_found });
        *entry(&mut self.numbers, event.var().index()) = self.values.len() as u32;
    }

    #[inline]
    fn read(&mut self, event: &Event, pool: &Pool, starts: &mut Starts) {
        if self.values.is_empty() || !event.op().reads() {
            return;
        }
        let Some(initial) = self.get(event.var()).filter(|initial| !initial.is_found) else {
            return;
        };
        let (writer, time) = initial.written;
        // The times of threads with large numbers are not known.
        let is_behind = event.thread() == writer
            || time != 0 && is_before(starts.of(event.thread()), initial.written);
        if !is_behind {
            initial.is_found = pool.value_found(event).is_none_or(|found| found == initial.value);
        }
    }

    /// The variables whose initial values are not found.
    fn left_out(&self) -> HashSet<VarId> {
        let is_left_out = |&number: &u32| {
            let at = (number as usize).checked_sub(1);
            at.and_then(|at| self.values.get(at)).is_some_and(|initial| !initial.is_found)
        };
        let all = self.numbers.iter().enumerate();
        all.filter(|(_, number)| is_left_out(number)).map(|(var, _)| VarId(var as u32)).collect()
    }
}

/// Whether an access of a thread at some time comes before what has these times.
pub(crate) fn is_before(after: &[u32], (thread, time): (ThreadId, u32)) -> bool {
    after.get(thread.index()).is_some_and(|&known| known >= time)
}

impl Accesses {
    /// Adds an access. Returns whether the variable is settled so far.
    fn add(&mut self, event: &Event, number: u64, starts: &mut Starts) -> bool {
        let thread = event.thread();
        let it = (thread, starts.time(thread));
        let after = &**starts.of(thread);
        let is_after = |&other: &(ThreadId, u32)| other.0 == thread || is_before(after, other);
        self.last = number;
        match event.op() {
            Op::Read => {
                if !self.write.iter().all(is_after) {
                    return false;
                }
                self.others.retain(|read| !is_after(read));
                self.others.extend(self.read.replace(it).filter(|read| !is_after(read)));
            }
            Op::Write => {
                if !self.all().all(is_after) {
                    return false;
                }
                (self.write, self.read) = (Some(it), None);
                self.others.clear();
            }
            _ => self.is_special = true,
        }
        self.others.len() < MOST_READERS
    }

    fn all(&self) -> impl Iterator<Item = &(ThreadId, u32)> {
        self.write.iter().chain(&self.read).chain(&self.others)
    }

    /// Whether all come before the end of their block.
    fn are_before(&self, end: &Freed) -> bool {
        !self.is_special
            && self.last < end.event
            && self.all().all(|&access| is_before(&end.after, access))
    }
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
            self.events += 1;
            if !is_access(event) {
                self.see_other(event, &batch.pool, free);
                continue;
            }
            if event.op() == Op::Init {
                self.initial.tell(event, batch.pool.value(event), &mut self.starts);
                continue;
            }
            self.initial.read(event, &batch.pool, &mut self.starts);
            let index = event.var().index();
            let owner = entry(&mut self.owners, index);
            if *owner == Owner::Many {
                continue;
            }
            let accesses = entry(&mut self.accesses, index);
            let is_settled = accesses.add(event, self.events, &mut self.starts);
            *owner = match *owner {
                // A thread blocks there, waiting for others.
                _ if event.op() == Op::Block => Owner::Many,
                Owner::None => Owner::One(event.thread()),
                Owner::One(thread) if thread == event.thread() => continue,
                _ if is_settled && !accesses.is_special => Owner::Settled,
                _ => Owner::Many,
            };
            if *owner == Owner::Many {
                *accesses = Accesses::default();
            }
        }
    }

    /// Processes an event that is no access.
    fn see_other(&mut self, event: &Event, pool: &Pool, free: Option<SymId>) {
        let thread = event.thread();
        match event.op() {
            Op::Fork => self.starts.start(thread, event.other()),
            Op::Join => self.starts.precede(event.other(), thread),
            Op::Begin | Op::Enter => self.has_regions = true,
            _ => {}
        }
        if let Some(block) = freed_by(event, pool, free) {
            let after = Arc::clone(self.starts.of(thread));
            self.freed.insert(block, Freed { thread, after, event: self.events });
        }
    }

    /// Whether more than one thread accesses a variable.
    pub(crate) fn is_shared(&self, var: VarId) -> bool {
        matches!(self.owners.get(var.index()), Some(Owner::Settled | Owner::Many))
    }

    /// Keeps a variable, whichever threads access it.
    pub(crate) fn keep(&mut self, var: VarId) {
        *entry(&mut self.owners, var.index()) = Owner::Many;
        if let Some(initial) = self.initial.get(var) {
            initial.is_found = true;
        }
    }

    /// Whether the accesses of a variable remain; `end` is the end of its block, if that was freed.
    fn is_kept(&self, var: VarId, end: Option<&Freed>, keeps_settled: bool) -> bool {
        match self.owners.get(var.index()).copied().unwrap_or_default() {
            Owner::Many => true,
            Owner::None => false,
            Owner::One(thread) if end.is_none_or(|end| end.thread == thread) => false,
            _ if keeps_settled => true,
            Owner::One(_) | Owner::Settled => {
                let accesses = self.accesses.get(var.index());
                end.is_some_and(|end| !accesses.is_some_and(|all| all.are_before(end)))
            }
        }
    }

    /// What remains; `None` if that is everything.
    pub(crate) fn shared(&self, names: &Names, keep: Keep) -> Result<Option<Shared>, TooManyNames> {
        if keep == Keep::Everything {
            return Ok(None);
        }
        let keeps_settled = keep == Keep::Shared || self.has_regions;
        let mut vars = Interner::default();
        let mut numbers = Vec::with_capacity(names.vars.len());
        let mut blocks = HashSet::new();
        // Consecutive variables are often of one block.
        let mut latest: (&str, Option<(SymId, &Freed)>) = ("", None);
        for (var, name) in names.vars.iter() {
            let is_used = self.owners.get(var.index()).is_some_and(|owner| *owner != Owner::None);
            let block = match is_used && !self.freed.is_empty() {
                false => None,
                true => {
                    let object = object_of(name);
                    if object != latest.0 {
                        let symbol = names.syms.lookup(object);
                        let freed = |block| Some((block, self.freed.get(&block)?));
                        latest = (object, symbol.and_then(freed));
                    }
                    latest.1
                }
            };
            let is_kept = self.is_kept(var, block.map(|(_, end)| end), keeps_settled);
            if is_kept {
                blocks.extend(block.map(|(block, _)| block));
            }
            numbers.push(if is_kept { Some(vars.intern(name)?) } else { None });
        }
        let unfound = self.initial.left_out();
        let is_all = vars.len() == names.vars.len() && blocks.len() == self.freed.len();
        if is_all && unfound.is_empty() {
            return Ok(None);
        }
        let free = names.syms.lookup(HEAP_FREE);
        Ok(Some(Shared { numbers, unfound, blocks, free, names: names_with(vars, names) }))
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

/// The variables that remain, renumbered.
#[derive(Debug)]
pub(crate) struct Shared {
    numbers: Vec<Option<VarId>>,
    /// The variables whose initial values are left out, by their old numbers.
    unfound: HashSet<VarId>,
    /// The blocks of memory that contain them.
    blocks: HashSet<SymId>,
    free: Option<SymId>,
    /// All remaining names.
    pub(crate) names: Names,
}

impl Shared {
    /// Removes the accesses to all other variables from a part of the trace.
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
        let var = event.var();
        let is_left = self.numbers.get(var.index()).copied().flatten().is_some();
        is_left && !(event.op() == Op::Init && self.unfound.contains(&var))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foresee_testkit::trace;
    use foresee_trace::Trace;
    use foresee_trace::generate::Config;

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
        let shared = owners
            .shared(&trace.names, Keep::Shared)
            .expect("few names")
            .expect("some are private");
        shared.narrow(&mut batch);
        let left = ["acq(l)", "w(ours)=2", "w(named)=3", "rel(l)", "acq(l)", "r(ours)=2", "rel(l)"];
        assert_eq!(described(&batch, &shared.names), left);
        assert_eq!(shared.names.vars.len(), 2);
        // A second pass removes nothing more.
        let mut owners = Owners::default();
        owners.see(&batch, &shared.names);
        owners.keep(shared.names.vars.lookup("named").expect("it was kept"));
        assert!(owners.shared(&shared.names, Keep::Shared).expect("few names").is_none());
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
        let shared = owners
            .shared(&trace.names, Keep::Shared)
            .expect("few names")
            .expect("some are private");
        shared.narrow(&mut batch);
        let left = [
            "w(heap(a.c:1)#1+0)=1",
            "event(heap_free,\"heap(a.c:1)#1\")",
            "event(done,\"heap(a.c:1)#2\")",
        ];
        assert_eq!(described(&batch, &shared.names), left);
    }

    #[test]
    fn initial_values_stay_where_a_read_finds_them_again() {
        let trace = trace! {
            T1: init(early)=0, w(early)=0, fork(T3), init(again)=0, w(again)=1, w(again)=0, init(gone)=0, w(gone)=1,
            init(asked)=0, w(asked)=1, init(alone)=0, w(alone)=1, w(alone)=0;
            T2: r(again)=0, r(gone)=1, r(asked)=1;
            T3: r(early)=0, w(early)=1
        };
        let mut batch =
            Batch { events: trace.events.clone(), pool: trace.pool.clone(), ..Batch::default() };
        let mut owners = Owners::default();
        owners.see(&batch, &trace.names);
        owners.keep(trace.names.vars.lookup("asked").expect("it is there"));
        let shared = owners
            .shared(&trace.names, Keep::Shared)
            .expect("few names")
            .expect("something is left out");
        shared.narrow(&mut batch);
        let left = [
            "w(early)=0",
            "fork(T3)",
            "init(again)=0",
            "w(again)=1",
            "w(again)=0",
            "w(gone)=1",
            "init(asked)=0",
            "w(asked)=1",
            "r(again)=0",
            "r(gone)=1",
            "r(asked)=1",
            "r(early)=0",
            "w(early)=1",
        ];
        assert_eq!(described(&batch, &shared.names), left);
    }

    /// Whether one event comes before another by the order within threads, by starts and by joins, by definition.
    fn closure(events: &[Event]) -> Vec<Vec<bool>> {
        let mut before = vec![vec![false; events.len()]; events.len()];
        for (j, second) in events.iter().enumerate() {
            for i in (0..j).rev() {
                let first = &events[i];
                let is_start = first.op() == Op::Fork && first.other() == second.thread();
                let is_join = second.op() == Op::Join && second.other() == first.thread();
                if first.thread() == second.thread() || is_start || is_join {
                    before[i][j] = true;
                    (0..i).for_each(|k| before[k][j] |= before[k][i]);
                }
            }
        }
        before
    }

    /// Whether a variable is settled, by definition; `free` is the end of its block.
    fn is_settled(events: &[Event], before: &[Vec<bool>], var: VarId, free: Option<usize>) -> bool {
        let of_it = |event: &Event| is_access(event) && event.var() == var;
        let all: Vec<usize> = (0..events.len()).filter(|&i| of_it(&events[i])).collect();
        let is_plain = |i: usize| matches!(events[i].op(), Op::Read | Op::Write);
        let is_ordered = |i: usize, j: usize| {
            !(events[i].op().writes() || events[j].op().writes()) || before[i][j]
        };
        all.iter().all(|&i| is_plain(i) && free.is_none_or(|free| before[i][free]))
            && all.iter().enumerate().all(|(n, &j)| all[..n].iter().all(|&i| is_ordered(i, j)))
    }

    #[test]
    fn settled_variables_are_those_of_the_definition() {
        let family = |seed: u64| Config {
            seed,
            threads: 2 + (seed % 5) as u32,
            events: 8 + seed % 40,
            variables: 1 + (seed % 7) as u32,
            locks: 1,
            reads: 0.7,
            rmws: if seed.is_multiple_of(4) { 0.1 } else { 0.0 },
            forked: 0.9,
            joined: 0.8,
            ..Config::default()
        };
        let (mut settled, mut unsettled, mut freed) = (0, 0, 0);
        for seed in 0..20_000 {
            let mut trace = foresee_testkit::generated(family(seed));
            // Some thread frees the memory of the first variable, at any time.
            let block = trace.names.vars.iter().next().map(|(_, name)| object_of(name).to_owned());
            let free = block.filter(|_| seed % 3 == 0 && !trace.events.is_empty()).map(|block| {
                let (free, block) = (
                    trace.names.syms.intern(HEAP_FREE).expect("few names"),
                    trace.names.syms.intern(&block).expect("few names"),
                );
                let at = (seed / 3) as usize % trace.events.len();
                let event = Event::new(trace.events[at].thread(), Op::Event).with_target(free.0);
                let event = event.with_values(&[Value::Str(block)], &mut trace.pool);
                trace.events.insert(at, event);
                at
            });
            let Trace { events, pool, names, .. } = trace;
            let before = closure(&events);
            let mut batch = Batch { events: events.clone(), pool, ..Batch::default() };
            let mut owners = Owners::default();
            owners.see(&batch, &names);
            let kept = owners.shared(&names, Keep::Unsettled).expect("few names");
            let private = owners.shared(&names, Keep::Shared).expect("few names");
            for (var, name) in names.vars.iter() {
                let is_left = |kept: &Option<Shared>| {
                    kept.as_ref().is_none_or(|kept| kept.numbers[var.index()].is_some())
                };
                let end = free.filter(|_| var.index() == 0);
                let is_private = !is_left(&private);
                let expected = !is_private && !is_settled(&events, &before, var, end);
                assert_eq!(is_left(&kept), expected, "{name} with seed {seed}");
                (settled, unsettled) = (
                    settled + u32::from(!is_private && !expected),
                    unsettled + u32::from(expected),
                );
                freed += u32::from(end.is_some() && !is_private && !expected);
            }
            // What is left out is all accesses of these variables, and nothing else.
            let of = |events: &[Event]| events.iter().filter(|event| !is_access(event)).count();
            let others = of(&events);
            if let Some(kept) = &kept {
                kept.narrow(&mut batch);
                assert!(of(&batch.events) + 1 >= others);
            }
        }
        assert!(
            settled > 1_000 && unsettled > 1_000 && freed > 100,
            "{settled} {unsettled} {freed}"
        );
    }

    #[test]
    fn regions_keep_what_is_settled() {
        let trace = trace! {
            T1: w(x)=1, fork(T2);
            T2: begin(region), r(x)=1, end(region)
        };
        let batch = Batch { events: trace.events, pool: trace.pool, ..Batch::default() };
        let mut owners = Owners::default();
        owners.see(&batch, &trace.names);
        assert!(owners.shared(&trace.names, Keep::Unsettled).expect("few names").is_none());
    }

    #[test]
    fn use_after_the_end_is_never_settled() {
        let trace = trace! {
            T1: w("heap(a.c:1)#1+0")=1, fork(T2);
            T2: r("heap(a.c:1)#1+0")=1;
            T1: join(T2), event(heap_free, "heap(a.c:1)#1"), r("heap(a.c:1)#1+0")=1
        };
        let batch = Batch { events: trace.events, pool: trace.pool, ..Batch::default() };
        let mut owners = Owners::default();
        owners.see(&batch, &trace.names);
        assert!(owners.shared(&trace.names, Keep::Unsettled).expect("few names").is_none());
    }
}
