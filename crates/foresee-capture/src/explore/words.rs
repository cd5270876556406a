//! What the operations of a program are called in specifications.
//!
//! The search knows operations by addresses, and a specification is about names. A step becomes the events that the trace of a
//! run would have. Each run is compared with its trace, so that a difference between the two is noticed.

use std::collections::HashMap;

use foresee_explore::Seen;
use foresee_explore::program::{
    Cell, Join, Modify, Operation, Place, RunError, Spot, ThreadName, Told, Value as Bits,
};
use foresee_explore::properties::{Interest, Vocabulary};
use foresee_trace::{
    Batch, Event, LockId, Names, Op, Pool, SymId, ThreadId, TraceInput, Value, VarId,
};

use super::Ran;
use crate::naming::without_innards;
use crate::private::Keep;
use crate::store::{LogConversion, LogTrace};
use crate::symbols::{Scalar, Variable};

/// The memory for the conversion of one run's log.
const MEMORY: usize = 1 << 30;

/// A variable of a specification.
struct Watched {
    at: Spot,
    scalar: Scalar,
    id: VarId,
    initial: Option<Value>,
}

/// The names of a program that is explored, as far as runs have shown them.
#[derive(Default)]
pub struct Words {
    names: Names,
    version: u32,
    interest: Interest,
    /// The variables of the specifications, by name and by where they are.
    wanted: Vec<String>,
    spec_vars: Vec<(String, Variable)>,
    variables: Vec<Watched>,
    threads: HashMap<ThreadName, ThreadId>,
    joined: HashMap<Join, ThreadId>,
    locks: HashMap<Spot, LockId>,
    marks: HashMap<u128, (Op, SymId, Vec<Value>)>,
    doubt: Option<String>,
}

/// An event in words, to compare a run with its trace.
type Spoken = (String, &'static str, String, Vec<Value>);

impl Words {
    /// The vocabulary of specifications with these variables.
    pub fn new(variables: Vec<String>) -> Words {
        Words { wanted: variables, ..Words::default() }
    }

    /// Sets which events are needed.
    pub fn needs(&mut self, interest: Interest) {
        self.interest = interest;
    }

    /// The trace of a run, with the variables of the specifications.
    ///
    /// # Errors
    /// If there is no such variable, or the log cannot be read.
    pub fn trace<'r>(&'r mut self, run: &'r Ran<'_>) -> Result<LogTrace<'r>, RunError> {
        if self.spec_vars.is_empty() {
            for name in &self.wanted {
                let found = run.symbols.find(name).map_err(|why| RunError(why.to_string()))?;
                self.spec_vars.push((name.clone(), found));
            }
        }
        let conversion = LogConversion {
            log: run.log,
            symbols: run.symbols,
            spec_vars: &self.spec_vars,
            object_types: &[],
            trusted: &[],
            keep: Keep::Everything,
            memory: MEMORY,
        };
        conversion
            .read(String::new(), &mut |_| {})
            .map_err(|why| RunError(format!("the log of a run cannot be read: {why}")))
    }

    /// Learns the names of a run from its trace.
    ///
    /// # Errors
    /// If the trace cannot be read.
    pub fn learn(&mut self, run: &Ran<'_>) -> Result<(), RunError> {
        let (trace, names) = self.read(run)?;
        let before = (self.names.threads.len(), self.names.locks.len(), self.names.syms.len());
        let full = |_| RunError("the program has too many names".to_owned());
        if self.variables.is_empty() {
            for (name, variable) in &self.spec_vars {
                let bits = run.symbols.initial(variable.address, variable.scalar.size);
                self.variables.push(Watched {
                    at: run.spot(variable.address),
                    scalar: variable.scalar,
                    id: self.names.vars.intern(name).map_err(full)?,
                    initial: bits.and_then(|bits| variable.scalar.value(bits)),
                });
            }
            self.version += u32::from(!self.spec_vars.is_empty());
        }
        for (thread, name) in run.threads {
            let id = self.names.thread(name).map_err(full)?;
            if *self.threads.entry(thread.clone()).or_insert(id) != id {
                let old = self.names.threads.get(self.threads[thread]);
                self.doubt = Some(format!(
                    "thread {thread} is called {old} in one run and {name} in another, so that properties cannot name it"
                ));
            }
            self.joined.insert(thread.join(), id);
        }
        for &(spot, address) in run.locks {
            let (name, is_known) = match run.symbols.object(address, 4) {
                Some(part) => (without_innards(&part.name).to_owned(), true),
                None => (format!("memory({address:#x})"), false),
            };
            let id = self.names.locks.intern(&name).map_err(full)?;
            self.locks.entry(spot).or_insert(id);
            let is_other = |(other, of): (&Spot, &LockId)| *of == id && *other != spot;
            if !is_known && self.interest.has_locks() && self.locks.iter().any(is_other) {
                self.doubt = Some(format!(
                    "{name} is one lock in one run and another in another, so that properties cannot tell them apart"
                ));
            }
        }
        self.learn_marks(run, &trace, &names)?;
        let after = (self.names.threads.len(), self.names.locks.len(), self.names.syms.len());
        self.version += u32::from(before != after);
        self.compare(run, &trace, &names);
        Ok(())
    }

    /// The trace of a run, and its names.
    fn read(&mut self, run: &Ran<'_>) -> Result<(Batch, Names), RunError> {
        let failed = |why: &dyn std::fmt::Display| {
            RunError(format!("the trace of a run cannot be read: {why}"))
        };
        let trace = self.trace(run)?;
        let mut source = trace.open().map_err(|why| failed(&why))?;
        let (mut all, mut batch) = (Batch::default(), Batch::default());
        while source.next_batch(&mut batch).map_err(|why| failed(&why))? {
            for event in &batch.events {
                let event = all.pool.adopt(*event, &batch.pool);
                all.events.push(event);
            }
        }
        let names = source.names().clone();
        drop(source);
        Ok((all, names))
    }

    /// What threads say about themselves: the trace has it in words, in the same order.
    fn learn_marks(&mut self, run: &Ran<'_>, trace: &Batch, names: &Names) -> Result<(), RunError> {
        let mut said: HashMap<&str, Vec<&Event>> = HashMap::new();
        for event in &trace.events {
            if matches!(event.op(), Op::Event | Op::Begin | Op::End) {
                said.entry(names.threads.get(event.thread())).or_default().push(event);
            }
        }
        let called: HashMap<&ThreadName, &str> =
            run.threads.iter().map(|(thread, name)| (thread, name.as_str())).collect();
        let mut next: HashMap<&str, usize> = HashMap::new();
        for event in &run.execution.events {
            let Operation::Mark(what) = event.operation else { continue };
            let thread = &run.execution.threads[event.thread as usize];
            let name = called.get(thread).copied().unwrap_or_default();
            let at = next.entry(name).or_default();
            let Some(event) = said.get(name).and_then(|all| all.get(*at)) else {
                self.doubt = Some(format!("thread {thread} said something that is not recorded"));
                return Ok(());
            };
            *at += 1;
            let text = event.sym().map_or("", |sym| names.syms.get(sym));
            let sym = self.names.syms.intern(text);
            let sym = sym.map_err(|_| RunError("the program has too many names".to_owned()))?;
            let values = trace.pool.values(event).to_vec();
            self.marks.entry(what).or_insert((event.op(), sym, values));
        }
        Ok(())
    }

    /// Whether the run is in its trace what it is here.
    fn compare(&mut self, run: &Ran<'_>, trace: &Batch, names: &Names) {
        let mut here: Vec<Spoken> = Vec::new();
        let mut depths: HashMap<(u32, Spot), u32> = HashMap::new();
        for event in &run.execution.events {
            let is_outermost = match (event.operation, event.told) {
                (Operation::Lock { lock, .. }, Told::Nothing | Told::Got) => {
                    let depth = depths.entry((event.thread, lock)).or_default();
                    *depth += 1;
                    *depth == 1
                }
                (Operation::Unlock { lock, .. }, Told::Nothing) => {
                    let depth = depths.entry((event.thread, lock)).or_default();
                    *depth = depth.saturating_sub(1);
                    *depth == 0
                }
                _ => true,
            };
            let seen = Seen {
                thread: &run.execution.threads[event.thread as usize],
                operation: event.operation,
                place: Place(0),
                told: event.told,
                left: event.left(),
                is_outermost,
            };
            let mut pool = Pool::default();
            for event in self.events(&seen, &mut pool) {
                here.extend(self.spoken(&event, &pool, &self.names));
            }
        }
        let there: Vec<Spoken> = trace
            .events
            .iter()
            .filter_map(|event| self.spoken(event, &trace.pool, names))
            .collect();
        // What a thread was about to do when the run was ended may be in one of them only.
        let differ = here.iter().zip(&there).find(|(one, other)| one != other);
        if let Some((one, other)) = differ {
            self.doubt = Some(format!(
                "the trace of a run has {} of {} by {} where the search has {} of {} by {}",
                other.1, other.2, other.0, one.1, one.2, one.0
            ));
        } else if here.len().abs_diff(there.len()) > run.execution.threads.len() {
            self.doubt = Some("the trace of a run has other events than the search".to_owned());
        }
    }

    /// An event in words, if properties may see it.
    fn spoken(&self, event: &Event, pool: &Pool, names: &Names) -> Option<Spoken> {
        let target = event.target();
        let lock = |id: u32| names.locks.get(LockId(id)).to_owned();
        let (what, name) = match event.op() {
            Op::Read | Op::VolatileRead => ("a read", names.vars.get(event.var()).to_owned()),
            Op::Write | Op::VolatileWrite => ("a write", names.vars.get(event.var()).to_owned()),
            Op::Rmw => ("an update", names.vars.get(event.var()).to_owned()),
            Op::Acquire | Op::AcquireShared => ("an acquire", lock(target?)),
            Op::Release | Op::ReleaseShared => ("a release", lock(target?)),
            Op::WaitEnd => ("an acquire", lock(event.wait_lock()?.0)),
            Op::WaitBegin => ("a release", lock(event.wait_lock()?.0)),
            Op::Fork => ("a start", names.threads.get(event.other()).to_owned()),
            Op::Join => ("a join", names.threads.get(event.other()).to_owned()),
            Op::Event => ("an event", event.sym().map_or("", |sym| names.syms.get(sym)).to_owned()),
            _ => return None,
        };
        let is_wanted = match event.op() {
            Op::Fork | Op::Join => self.interest.has_threads(),
            Op::Event => self.interest.has_marks(),
            op if op.reads() || op.writes() => self.wanted.contains(&name),
            _ => self.interest.has_locks(),
        };
        let values = pool.values(event).to_vec();
        is_wanted.then(|| (names.threads.get(event.thread()).to_owned(), what, name, values))
    }

    /// The variables that an access touches.
    fn touched(&self, cell: Cell) -> impl Iterator<Item = &Watched> {
        self.variables.iter().filter(move |variable| {
            variable.at.object == cell.at.object
                && variable.at.offset < cell.at.offset + u64::from(cell.width)
                && cell.at.offset < variable.at.offset + variable.scalar.size
        })
    }

    /// The events of an access: one for each variable, with the values that it has in these.
    fn access(&mut self, event: Event, cell: Cell, values: &[Bits], pool: &mut Pool) -> Vec<Event> {
        let end = cell.at.offset + u64::from(cell.width);
        let is_part = |variable: &&Watched| {
            variable.at.offset < cell.at.offset || end < variable.at.offset + variable.scalar.size
        };
        let part = self.touched(cell).find(is_part).map(|variable| variable.id);
        if let Some(part) = part {
            let name = self.names.vars.get(part);
            self.doubt = Some(format!("a part of the variable {name} is accessed alone"));
        }
        self.touched(cell)
            .map(|variable| {
                let from = 8 * (variable.at.offset.saturating_sub(cell.at.offset)) as u32;
                let values: Vec<Value> = values
                    .iter()
                    .filter_map(|value| match value {
                        Bits::Bits(bits) => variable.scalar.value((bits >> from) as u64),
                        Bits::Address(_) => None,
                    })
                    .collect();
                event.with_target(variable.id.0).with_values(&values, pool)
            })
            .collect()
    }
}

impl Vocabulary for Words {
    fn names(&self) -> &Names {
        &self.names
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn events(&mut self, seen: &Seen<'_>, pool: &mut Pool) -> Vec<Event> {
        // A thread that no run has shown is in no fact.
        let Some(&thread) = self.threads.get(seen.thread) else { return Vec::new() };
        let event = |op| Event::new(thread, op);
        let on = |op, lock: Spot, locks: &HashMap<Spot, LockId>| {
            locks.get(&lock).map(|lock| event(op).with_target(lock.0)).into_iter().collect()
        };
        match (seen.operation, seen.told) {
            (Operation::Load(cell), Told::Value(value)) => {
                self.access(event(Op::Read), cell, &[value], pool)
            }
            (Operation::Store(cell, Some(value)), _) => {
                self.access(event(Op::Write), cell, &[value], pool)
            }
            (
                Operation::Modify(cell, Modify::CompareExchange { expected, .. }),
                Told::Value(old),
            ) if expected != old => self.access(event(Op::Read), cell, &[old], pool),
            (Operation::Modify(cell, _), Told::Value(old)) => {
                let values: Vec<Bits> = [Some(old), seen.left].into_iter().flatten().collect();
                self.access(event(Op::Rmw), cell, &values, pool)
            }
            (Operation::Lock { lock, .. }, Told::Nothing | Told::Got) if seen.is_outermost => {
                on(Op::Acquire, lock, &self.locks)
            }
            (Operation::Unlock { lock, .. }, Told::Nothing) if seen.is_outermost => {
                on(Op::Release, lock, &self.locks)
            }
            (Operation::WaitEnd { lock, .. }, _) => on(Op::Acquire, lock, &self.locks),
            (Operation::Wait { lock, .. }, _) => on(Op::Release, lock, &self.locks),
            (Operation::Fork(number), _) => {
                let child = self.threads.get(&seen.thread.child(number));
                child.map(|child| event(Op::Fork).with_target(child.0)).into_iter().collect()
            }
            (Operation::Join { thread }, _) => {
                let other = self.joined.get(&thread);
                other.map(|other| event(Op::Join).with_target(other.0)).into_iter().collect()
            }
            (Operation::Mark(what), _) => match self.marks.get(&what) {
                Some((op, sym, values)) => {
                    vec![event(*op).with_target(sym.0).with_values(values, pool)]
                }
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    fn initial(&mut self, pool: &mut Pool) -> Vec<Event> {
        let Some(&main) = self.threads.get(&ThreadName::default()) else { return Vec::new() };
        let with_value = self.variables.iter().filter_map(|one| Some((one.id, one.initial?)));
        with_value
            .map(|(id, value)| {
                Event::new(main, Op::Init).with_target(id.0).with_values(&[value], pool)
            })
            .collect()
    }

    fn sees(&self, operation: &Operation) -> bool {
        match *operation {
            Operation::Load(cell) | Operation::Store(cell, _) | Operation::Modify(cell, _) => {
                self.touched(cell).next().is_some()
            }
            Operation::Lock { .. }
            | Operation::Unlock { .. }
            | Operation::Wait { .. }
            | Operation::WaitEnd { .. } => self.interest.has_locks(),
            Operation::Fork(_) | Operation::Join { .. } => self.interest.has_threads(),
            Operation::Mark(_) => self.interest.has_marks(),
            _ => false,
        }
    }

    fn doubt(&self) -> Option<String> {
        self.doubt.clone()
    }
}
