//! What the operations of a program are called in specifications.
//!
//! The search knows operations by addresses, and a specification is about names. A step becomes the events that the trace of a
//! run would have. Each run is compared with its trace, so that a difference between the two is noticed.

use std::borrow::Cow;
use std::collections::HashMap;

use foresee_explore::Seen;
use foresee_explore::program::{
    Cell, Execution, Join, Modify, Operation, Place, RunError, Spot, ThreadName, Told,
    Value as Bits,
};
use foresee_explore::properties::{Interest, Vocabulary};
use foresee_trace::{
    Batch, Event, LockId, Names, Op, Pool, SymId, ThreadId, TraceInput, Value, VarId,
};
use serde::{Deserialize, Serialize};

use super::Ran;
use crate::naming::without_innards;
use crate::private::Keep;
use crate::store::{LogConversion, LogTrace};
use crate::symbols::{Scalar, Tags, Variable};

/// The memory for the conversion of one run's log.
const MEMORY: usize = 1 << 30;

/// Which names and events of runs are needed: those that specifications are about.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The variables.
    pub variables: Vec<String>,
    /// The events.
    pub interest: Interest,
}

/// A value by itself: strings are no numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Plain {
    Int(i64),
    Uint(u64),
    /// Its bits.
    Float(u64),
    Bool(bool),
    Str(String),
}

impl Plain {
    fn of(value: Value, names: &Names) -> Plain {
        match value {
            Value::Int(number) => Plain::Int(number),
            Value::Uint(number) => Plain::Uint(number),
            Value::Float(number) => Plain::Float(number.to_bits()),
            Value::Bool(is_so) => Plain::Bool(is_so),
            Value::Str(sym) => Plain::Str(names.syms.get(sym).to_owned()),
        }
    }

    fn all(event: &Event, pool: &Pool, names: &Names) -> Vec<Plain> {
        pool.values(event).iter().map(|&value| Plain::of(value, names)).collect()
    }

    fn value(&self, names: &mut Names) -> Result<Value, RunError> {
        Ok(match self {
            Plain::Int(number) => Value::Int(*number),
            Plain::Uint(number) => Value::Uint(*number),
            Plain::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Plain::Bool(is_so) => Value::Bool(*is_so),
            Plain::Str(text) => Value::Str(names.syms.intern(text).map_err(full)?),
        })
    }
}

fn full<E>(_: E) -> RunError {
    RunError("the program has too many names".to_owned())
}

/// An event in words, to compare a run with its trace: the thread, what it did, to what, and the values.
type Spoken = (String, Cow<'static, str>, String, Vec<Plain>);

/// What a thread said about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Mark {
    thread: String,
    op: Op,
    text: String,
    values: Vec<Plain>,
}

/// The names that one run shows. Whoever makes the run hears them, and whoever explores [learns](Words::learn) them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Heard {
    variables: Vec<(String, Spot, Scalar, Option<Plain>)>,
    threads: Vec<(ThreadName, String)>,
    /// The locks, each with its name, and whether that is known from the program.
    locks: Vec<(Spot, String, bool)>,
    marks: Vec<Mark>,
    events: Vec<Spoken>,
}

/// Hears the names of runs.
pub struct Hearing {
    wanted: Wanted,
    /// The variables of the specifications, by name and by where they are.
    spec_vars: Vec<(String, Variable)>,
}

impl Hearing {
    /// Hears what specifications want.
    pub fn new(wanted: Wanted) -> Hearing {
        Hearing { wanted, spec_vars: Vec::new() }
    }

    /// The trace of a run, with the variables of the specifications.
    ///
    /// # Errors
    /// If there is no such variable, or the log cannot be read.
    pub fn trace<'r>(&'r mut self, run: &'r Ran<'_>) -> Result<LogTrace<'r>, RunError> {
        if self.spec_vars.is_empty() {
            for name in &self.wanted.variables {
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

    /// The names of a run.
    ///
    /// # Errors
    /// If its trace cannot be read.
    pub fn hear(&mut self, run: &Ran<'_>) -> Result<Heard, RunError> {
        let failed = |why: &dyn std::fmt::Display| {
            RunError(format!("the trace of a run cannot be read: {why}"))
        };
        let wanted = self.wanted.clone();
        let mut heard = Heard { threads: run.threads.to_vec(), ..Heard::default() };
        let trace = self.trace(run)?;
        let mut source = trace.open().map_err(|why| failed(&why))?;
        let mut batch = Batch::default();
        while source.next_batch(&mut batch).map_err(|why| failed(&why))? {
            let names = source.names();
            for event in &batch.events {
                if matches!(event.op(), Op::Event | Op::Begin | Op::End) {
                    heard.marks.push(Mark {
                        thread: names.threads.get(event.thread()).to_owned(),
                        op: event.op(),
                        text: event.sym().map_or("", |sym| names.syms.get(sym)).to_owned(),
                        values: Plain::all(event, &batch.pool, names),
                    });
                }
                heard.events.extend(wanted.spoken(event, &batch.pool, names));
            }
        }
        drop(source);
        drop(trace);
        let names = Names::default();
        for (name, variable) in &self.spec_vars {
            let bits = run.symbols.initial(variable.address, variable.scalar.size);
            let initial = bits.and_then(|bits| variable.scalar.value(bits));
            let initial = initial.map(|value| Plain::of(value, &names));
            let at = run.spot(variable.address);
            heard.variables.push((name.clone(), at, variable.scalar, initial));
        }
        for &(spot, address) in run.locks {
            let (name, is_known) = match run.symbols.object(address, 4, Tags::default()) {
                Some(part) => (without_innards(&part.name).to_owned(), true),
                None => (format!("memory({address:#x})"), false),
            };
            heard.locks.push((spot, name, is_known));
        }
        Ok(heard)
    }
}

impl Wanted {
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
            op if op.reads() || op.writes() => self.variables.contains(&name),
            _ => self.interest.has_locks(),
        };
        is_wanted.then(|| {
            let thread = names.threads.get(event.thread()).to_owned();
            (thread, what.into(), name, Plain::all(event, pool, names))
        })
    }
}

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
    wanted: Wanted,
    variables: Vec<Watched>,
    threads: HashMap<ThreadName, ThreadId>,
    joined: HashMap<Join, ThreadId>,
    locks: HashMap<Spot, LockId>,
    marks: HashMap<u128, (Op, SymId, Vec<Value>)>,
    doubt: Option<String>,
}

impl Words {
    /// The vocabulary of specifications that want this.
    pub fn new(wanted: Wanted) -> Words {
        Words { wanted, ..Words::default() }
    }

    /// Learns the names of a run.
    ///
    /// # Errors
    /// If there are too many.
    pub fn learn(&mut self, heard: &Heard, run: &Execution) -> Result<(), RunError> {
        let before = (self.names.threads.len(), self.names.locks.len(), self.names.syms.len());
        if self.variables.is_empty() {
            for (name, at, scalar, initial) in &heard.variables {
                let initial = initial.as_ref().map(|value| value.value(&mut self.names));
                self.variables.push(Watched {
                    at: *at,
                    scalar: *scalar,
                    id: self.names.vars.intern(name).map_err(full)?,
                    initial: initial.transpose()?,
                });
            }
            self.version += u32::from(!heard.variables.is_empty());
        }
        for (thread, name) in &heard.threads {
            let id = self.names.thread(name).map_err(full)?;
            if *self.threads.entry(thread.clone()).or_insert(id) != id {
                let old = self.names.threads.get(self.threads[thread]);
                self.doubt = Some(format!(
                    "thread {thread} is called {old} in one run and {name} in another, so that properties cannot name it"
                ));
            }
            self.joined.insert(thread.join(), id);
        }
        for (spot, name, is_known) in &heard.locks {
            let id = self.names.locks.intern(name).map_err(full)?;
            self.locks.entry(*spot).or_insert(id);
            let is_other = |(other, of): (&Spot, &LockId)| *of == id && other != spot;
            if !is_known && self.wanted.interest.has_locks() && self.locks.iter().any(is_other) {
                self.doubt = Some(format!(
                    "{name} is one lock in one run and another in another, so that properties cannot tell them apart"
                ));
            }
        }
        self.learn_marks(heard, run)?;
        let after = (self.names.threads.len(), self.names.locks.len(), self.names.syms.len());
        self.version += u32::from(before != after);
        self.compare(heard, run);
        Ok(())
    }

    /// What threads say about themselves: the trace has it in words, in the same order.
    fn learn_marks(&mut self, heard: &Heard, run: &Execution) -> Result<(), RunError> {
        let mut said: HashMap<&str, Vec<&Mark>> = HashMap::new();
        for mark in &heard.marks {
            said.entry(&mark.thread).or_default().push(mark);
        }
        let called: HashMap<&ThreadName, &str> =
            heard.threads.iter().map(|(thread, name)| (thread, name.as_str())).collect();
        let mut next: HashMap<&str, usize> = HashMap::new();
        for event in &run.events {
            let Operation::Mark(what) = event.operation else { continue };
            let thread = &run.threads[event.thread as usize];
            let name = called.get(thread).copied().unwrap_or_default();
            let at = next.entry(name).or_default();
            let Some(mark) = said.get(name).and_then(|all| all.get(*at)) else {
                self.doubt = Some(format!("thread {thread} said something that is not recorded"));
                return Ok(());
            };
            *at += 1;
            if !self.marks.contains_key(&what) {
                let sym = self.names.syms.intern(&mark.text).map_err(full)?;
                let values = mark.values.iter().map(|value| value.value(&mut self.names));
                let values = values.collect::<Result<Vec<_>, RunError>>()?;
                self.marks.insert(what, (mark.op, sym, values));
            }
        }
        Ok(())
    }

    /// Whether the run is in its trace what it is here.
    fn compare(&mut self, heard: &Heard, run: &Execution) {
        let mut here: Vec<Spoken> = Vec::new();
        let mut depths: HashMap<(u32, Spot), u32> = HashMap::new();
        for event in &run.events {
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
                thread: &run.threads[event.thread as usize],
                operation: event.operation,
                place: Place(0),
                told: event.told,
                left: event.left(),
                is_outermost,
            };
            let mut pool = Pool::default();
            for event in self.events(&seen, &mut pool) {
                here.extend(self.wanted.spoken(&event, &pool, &self.names));
            }
        }
        let there = &heard.events;
        // What a thread was about to do when the run was ended may be in one of them only.
        let differ = here.iter().zip(there).find(|(one, other)| one != other);
        if let Some((one, other)) = differ {
            self.doubt = Some(format!(
                "the trace of a run has {} of {} by {} where the search has {} of {} by {}",
                other.1, other.2, other.0, one.1, one.2, one.0
            ));
        } else if here.len().abs_diff(there.len()) > run.threads.len() {
            self.doubt = Some("the trace of a run has other events than the search".to_owned());
        }
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
            | Operation::WaitEnd { .. } => self.wanted.interest.has_locks(),
            Operation::Fork(_) | Operation::Join { .. } => self.wanted.interest.has_threads(),
            Operation::Mark(_) => self.wanted.interest.has_marks(),
            _ => false,
        }
    }

    fn doubt(&self) -> Option<String> {
        self.doubt.clone()
    }
}
