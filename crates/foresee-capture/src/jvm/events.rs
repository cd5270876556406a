//! Events from records.

mod boards;
mod calls;
mod doubts;
mod shared;
mod sync;

use std::sync::Arc;

use foresee_trace::{
    Batch, CondId, ErrorKind, Event, EventSource, FileOrder, Id, LocId, LockId, Names, Op,
    Position, ReadError, Remarks, ThreadId, TooManyNames, Value, VarId, entry,
};

use super::certain::How;
use super::dictionary::Dictionary;
use super::locks::Locks;
use super::merge::Merge;
use super::objects::Objects;
use super::record::{Kind, Record};
use super::{HashMap, JvmError, JvmLog};

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Target {
    /// A field of an object, or a static field of no object.
    Field(u64, u32),
    /// An element of an array, or what an atomic object holds.
    Element(u64, u32),
    /// A collection of the JDK.
    Collection(u64),
    /// Something that orders threads.
    Channel(u64),
    /// What a thread lets others know at an object.
    Posts(u64, usize),
    /// What was posted at an object after a thread had missed it.
    Missed(u64),
    /// That an object became one that several threads can reach.
    Shared(u64),
    /// The initialisation of a class.
    Class(u64),
}

/// Which threads use a variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Users {
    #[default]
    None,
    One(ThreadId),
    Many,
}

#[derive(Debug, Default)]
struct Variable {
    value: Option<Value>,
    users: Users,
}

#[derive(Debug)]
struct Thread {
    id: ThreadId,
    is_known: bool,
    is_foreign: bool,
    /// Whether it does what others can see.
    is_active: bool,
    /// The lock that it asked for last, and where.
    request: Option<(u64, Op, LocId)>,
    /// How it takes the next lock.
    attempt: Option<Op>,
    old: Option<Value>,
    arguments: Vec<Value>,
    calls: calls::Calls,
    has_ended: bool,
}

/// The events of a log.
#[derive(Debug)]
pub(super) struct JvmSource {
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) objects: Arc<Objects>,
    pub(super) merge: Merge,
    threads: Vec<Thread>,
    names: Names,
    remarks: Remarks,
    targets: HashMap<Target, VarId>,
    variables: Vec<Variable>,
    /// Variables of specifications.
    pub(super) watched: Vec<VarId>,
    /// The last step on each channel: how many there were, the thread, and its number of events then.
    channels: HashMap<u64, (i64, usize, u64)>,
    boards: HashMap<u64, boards::Board>,
    sharing: shared::Sharing,
    locks: Locks,
    /// What is certain about the order of steps, where that is asked for.
    doubts: Option<Box<doubts::Doubts>>,
    lock_names: HashMap<u64, LockId>,
    condition_names: HashMap<u64, CondId>,
    places: HashMap<u32, LocId>,
    counts: Vec<u64>,
    /// How many events there have been.
    pub(super) events: u64,
    /// The most variables.
    most: usize,
    is_over: bool,
}

type Result<T> = std::result::Result<T, ReadError>;

fn too_many(error: TooManyNames) -> ReadError {
    ReadError::new(ErrorKind::Limit, Position::Unknown, error.to_string())
}

pub(super) fn damaged(error: JvmError) -> ReadError {
    ReadError::new(ErrorKind::Syntax, Position::Unknown, error.to_string())
}

impl JvmSource {
    /// `most` is how many variables there may be.
    pub(super) fn new(log: &JvmLog, objects: &Arc<Objects>, most: usize) -> Result<JvmSource> {
        let merge = Merge::new(log).map_err(damaged)?;
        let mut source =
            JvmSource::with(merge, Arc::clone(&log.dictionary), Arc::clone(objects), most);
        for thread in log.dictionary.threads.values() {
            source.add_thread(&thread.name, thread.is_foreign)?;
        }
        let dictionary = &log.dictionary;
        source.remark(&dictionary.partial, &dictionary.unordered);
        source.ended();
        Ok(source)
    }

    /// The events of a program that is still running.
    pub(super) fn growing(most: usize) -> JvmSource {
        let objects = Arc::new(Objects::growing());
        let mut source = JvmSource::with(Merge::growing(), Arc::default(), objects, most);
        source.compare();
        source
    }

    fn with(
        merge: Merge,
        dictionary: Arc<Dictionary>,
        objects: Arc<Objects>,
        most: usize,
    ) -> JvmSource {
        JvmSource {
            dictionary,
            objects,
            merge,
            threads: Vec::new(),
            names: Names::default(),
            remarks: Remarks::default(),
            targets: HashMap::default(),
            variables: Vec::new(),
            watched: Vec::new(),
            channels: HashMap::default(),
            boards: HashMap::default(),
            sharing: shared::Sharing::default(),
            locks: Locks::default(),
            doubts: None,
            lock_names: HashMap::default(),
            condition_names: HashMap::default(),
            places: HashMap::default(),
            counts: Vec::new(),
            events: 0,
            most,
            is_over: false,
        }
    }

    /// Adds a thread, which gets a name of its own.
    pub(super) fn add_thread(&mut self, called: &str, is_foreign: bool) -> Result<()> {
        let mut name = called.to_owned();
        let mut number = 2;
        while self.names.threads.lookup(&name).is_some() {
            name = format!("{called}#{number}");
            number += 1;
        }
        self.threads.push(Thread {
            id: self.names.thread(&name).map_err(too_many)?,
            is_known: self.threads.is_empty(),
            is_foreign,
            is_active: false,
            request: None,
            attempt: None,
            old: None,
            arguments: Vec::new(),
            calls: calls::Calls::default(),
            has_ended: false,
        });
        self.counts.push(0);
        Ok(())
    }

    /// What is learnt about a thread when it records something for the first time.
    pub(super) fn set_foreign(&mut self, thread: usize, is_foreign: bool) {
        self.threads[thread].is_foreign = is_foreign;
    }

    /// Notes what the agent says about what it did not see.
    pub(super) fn remark(&mut self, partial: &[String], unordered: &[String]) {
        for reason in partial.iter().chain(unordered) {
            self.remarks.add_partial(reason);
        }
        if !unordered.is_empty() || self.dictionary.is_async {
            self.remarks.order = FileOrder::Notes;
        }
    }

    /// Notes whether the end of the program is known, once there are no more names.
    pub(super) fn ended(&mut self) {
        if let Some(limit) = self.dictionary.limit {
            let why = format!("the log reached its limit of {} MiB", limit >> 20);
            self.remarks.cut_short = Some(why);
        } else if !self.dictionary.has_ended {
            self.remarks.cut_short = Some("the JVM ended without shutting down".to_owned());
        }
    }

    /// Says why no other order can be predicted.
    fn unordered(&mut self, reason: &str) {
        self.remarks.order = FileOrder::Notes;
        self.partial(reason);
    }

    /// Says, once, why the trace is incomplete.
    fn partial(&mut self, reason: &str) {
        if !self.remarks.partial.as_deref().is_some_and(|told| told.contains(reason)) {
            self.remarks.add_partial(reason);
        }
    }

    fn place(&mut self, site: u32) -> Result<LocId> {
        if site == 0 {
            return Ok(LocId::NONE);
        }
        if let Some(&place) = self.places.get(&site) {
            return Ok(place);
        }
        let text = self.dictionary.sites.get(&site).map_or("", String::as_str);
        let place = self.names.locs.intern(text).map_err(too_many)?;
        self.places.insert(site, place);
        Ok(place)
    }

    /// The variable for something, which gets a name of its own.
    fn variable(&mut self, target: Target) -> Result<VarId> {
        if let Some(&var) = self.targets.get(&target) {
            return Ok(var);
        }
        let dictionary = &self.dictionary;
        let of = |object: u64| self.objects.name(object, dictionary);
        let mut is_watched = false;
        let mut warning = None;
        let (name, longer) = match target {
            Target::Field(object, key) => match dictionary.fields.get(&key) {
                Some(field) => {
                    is_watched = field.is_watched;
                    if !field.is_static && self.objects.is_one_more(object) {
                        warning = Some(format!(
                            "several objects have the field {}.{}: without a number, its name means that of the first",
                            field.class, field.name
                        ));
                    }
                    let class = self.objects.class(object, dictionary);
                    if field.is_of_type && !field.is_static && class != field.class {
                        warning = Some(format!(
                            "objects of {class} have the field {}.{} too, but are not among those of the type: the specification must name theirs",
                            field.class, field.name
                        ));
                    }
                    let whose = if field.is_static { field.class.clone() } else { of(object) };
                    let longer = format!("{whose}.({}).{}", field.class, field.name);
                    (format!("{whose}.{}", field.name), longer)
                }
                None => (format!("{}.field{key}", of(object)), String::new()),
            },
            Target::Element(object, _) if self.objects.is_single(object, dictionary) => {
                (of(object), String::new())
            }
            Target::Element(object, index) => (format!("{}[{index}]", of(object)), String::new()),
            Target::Collection(object) => (of(object), String::new()),
            Target::Channel(object) => (format!("{}:order", of(object)), String::new()),
            Target::Posts(object, i) => {
                let thread = self.names.threads.get(self.threads[i].id);
                (format!("{}:posts of {thread}", of(object)), String::new())
            }
            Target::Shared(object) => (format!("{}:shared", of(object)), String::new()),
            Target::Missed(object) => (format!("{}:missed", of(object)), String::new()),
            Target::Class(object) => {
                // The agent counts them down from -2.
                let number = (!object).wrapping_sub(1);
                let class = dictionary.initialisers.get(&number).map_or("?", String::as_str);
                (format!("{class}:initialised"), String::new())
            }
        };
        let mut unique = name.clone();
        if self.names.vars.lookup(&unique).is_some() && !longer.is_empty() {
            unique = longer;
        }
        let mut number = 2;
        while self.names.vars.lookup(&unique).is_some() {
            unique = format!("{name}~{number}");
            number += 1;
        }
        let var = self.names.vars.intern(&unique).map_err(too_many)?;
        self.targets.insert(target, var);
        if is_watched {
            self.watched.push(var);
            if let Some(warning) = warning {
                self.partial(&warning);
            }
        }
        Ok(var)
    }

    fn lock(&mut self, object: u64) -> Result<LockId> {
        if let Some(&lock) = self.lock_names.get(&object) {
            return Ok(lock);
        }
        let name = self.objects.name(object, &self.dictionary);
        let lock = self.names.locks.intern(&name).map_err(too_many)?;
        self.lock_names.insert(object, lock);
        Ok(lock)
    }

    fn condition(&mut self, object: u64) -> Result<CondId> {
        if let Some(&condition) = self.condition_names.get(&object) {
            return Ok(condition);
        }
        let name = self.objects.name(object, &self.dictionary);
        let condition = self.names.conds.intern(&name).map_err(too_many)?;
        self.condition_names.insert(object, condition);
        Ok(condition)
    }

    fn value(&mut self, record: &Record) -> Result<Value> {
        Ok(match record.value_type {
            b'Z' => Value::Bool(record.value != 0),
            b'D' => Value::Float(f64::from_bits(record.value)),
            b'L' => match self.dictionary.texts.get(&record.value) {
                Some(text) => Value::Str(self.names.syms.intern(text).map_err(too_many)?),
                None => Value::Int(self.objects.number(record.value)),
            },
            _ => Value::Int(record.value as i64),
        })
    }

    fn push(&mut self, i: usize, event: Event, batch: &mut Batch) {
        self.counts[i] += 1;
        self.events += 1;
        batch.events.push(event);
        if self.dictionary.has_stacks {
            batch.stacks.push(self.threads[i].calls.stack());
        }
    }

    fn event(&mut self, i: usize, op: Op, record: &Record) -> Result<Event> {
        let place = self.place(record.site)?;
        Ok(Event::new(self.threads[i].id, op).with_loc(place))
    }

    fn active(&mut self, i: usize) {
        let thread = &mut self.threads[i];
        if std::mem::replace(&mut thread.is_active, true) || thread.is_known && !thread.is_foreign {
            return;
        }
        let why = match thread.is_known {
            true => "the JDK started it, and what waits for it is not known",
            false => "its start was not seen",
        };
        let name = self.names.threads.get(thread.id);
        self.unordered(&format!("the thread {name} runs code of the program, but {why}"));
    }

    fn access(
        &mut self,
        i: usize,
        op: Op,
        target: Target,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        self.active(i);
        let value = self.value(record)?;
        let old = self.threads[i].old.take();
        let is_new = !self.targets.contains_key(&target);
        let var = self.variable(target)?;
        let (reads, writes, is_atomic) = (op.reads(), op.writes(), op.is_atomic());
        self.note_access(i, var, How { reads, writes, is_atomic, is_blind: false });
        let id = self.threads[i].id;
        // Fields are zero at first. Where that matters to a specification, it is said; and of static fields always, because a read
        // that finds zero later could have come before the write. An object may be a copy, whose fields are not zero.
        let is_static = matches!(target, Target::Field(0, _)) && !op.reads();
        if is_new && op.writes() && (is_static || self.watched.contains(&var)) {
            let zero = match value {
                Value::Bool(_) => Value::Bool(false),
                Value::Float(_) => Value::Float(0.0),
                _ => Value::Int(0),
            };
            let init = Event::new(id, Op::Init).with_target(var.0);
            let init = init.with_values(&[zero], &mut batch.pool);
            self.push(i, init, batch);
            entry(&mut self.variables, var.index()).value = Some(zero);
        }
        let event = self.event(i, op, record)?.with_target(var.0);
        let variable = entry(&mut self.variables, var.index());
        let found = if op == Op::Rmw { old } else { Some(value).filter(|_| op.reads()) };
        let is_own = matches!(variable.users, Users::None) || variable.users == Users::One(id);
        let is_unseen = found.is_some()
            && variable.value.is_some()
            && variable.value != found
            && !self.dictionary.is_async;
        variable.users = if is_own { Users::One(id) } else { Users::Many };
        variable.value = Some(value);
        if is_unseen {
            let name = self.names.vars.get(var).to_owned();
            if !is_own {
                self.unordered(&format!("{name} was changed by code that is not recorded"));
            }
            // Only the thread itself can have had it changed, by a call into the JDK; or no order matters any more.
            let write = self.event(i, Op::Write, record)?.with_target(var.0);
            let found: Vec<Value> = found.into_iter().collect();
            let write = write.with_values(&found, &mut batch.pool);
            self.push(i, write, batch);
        }
        let event = match (op, old) {
            (Op::Rmw, Some(old)) => event.with_values(&[old, value], &mut batch.pool),
            _ => event.with_values(&[value], &mut batch.pool),
        };
        self.push(i, event, batch);
        Ok(())
    }

    /// A step on a channel. Steps that follow each other without anything in between are one.
    fn channel(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        let count = self.counts[i];
        let (steps, by, then) =
            self.channels.get(&record.object).copied().unwrap_or((0, usize::MAX, 0));
        if by == i && then == count {
            return Ok(());
        }
        self.doubt(|doubts| doubts.certain.channel(i, record.object));
        let var = self.variable(Target::Channel(record.object))?;
        let event = self.event(i, Op::Rmw, record)?.with_target(var.0);
        let values = [Value::Int(steps), Value::Int(steps + 1)];
        let event = event.with_values(&values, &mut batch.pool);
        self.push(i, event, batch);
        self.channels.insert(record.object, (steps + 1, i, count + 1));
        Ok(())
    }

    /// A call of a collection. Its value is the number of changes so far: what a call returns depends on all of them.
    fn collection(
        &mut self,
        i: usize,
        is_change: bool,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        self.active(i);
        let var = self.variable(Target::Collection(record.object))?;
        let is_blind = is_change && record.value == 1;
        self.note_access(
            i,
            var,
            How { reads: true, writes: is_change, is_atomic: false, is_blind },
        );
        let variable = entry(&mut self.variables, var.index());
        let changes = match variable.value {
            Some(Value::Int(changes)) => changes,
            _ => 0,
        };
        variable.value = Some(Value::Int(changes + i64::from(is_change)));
        let steps = [(Op::Read, changes), (Op::Write, changes + 1)];
        for (op, value) in steps.into_iter().take(1 + usize::from(is_change)) {
            let event = self.event(i, op, record)?.with_target(var.0);
            let event = event.with_values(&[Value::Int(value)], &mut batch.pool);
            self.push(i, event, batch);
        }
        Ok(())
    }

    fn call(&mut self, i: usize, op: Op, record: &Record, batch: &mut Batch) -> Result<()> {
        self.active(i);
        let name = self.dictionary.methods.get(&record.object).map_or("?", String::as_str);
        let method = self.names.syms.intern(name).map_err(too_many)?;
        let arguments = std::mem::take(&mut self.threads[i].arguments);
        let event = self.event(i, op, record)?.with_target(method.0);
        self.push(i, event.with_values(&arguments, &mut batch.pool), batch);
        self.doubt(|doubts| doubts.certain.watch(i));
        Ok(())
    }

    /// A test of the program begins or ends; reports name the tests that show a finding.
    fn test(&mut self, i: usize, what: &str, record: &Record, batch: &mut Batch) -> Result<()> {
        let name = self.dictionary.methods.get(&record.object).map_or("?", String::as_str);
        let name = self.names.syms.intern(name).map_err(too_many)?;
        let what = self.names.syms.intern(what).map_err(too_many)?;
        let event = self.event(i, Op::Event, record)?.with_target(what.0);
        self.push(i, event.with_values(&[Value::Str(name)], &mut batch.pool), batch);
        Ok(())
    }

    fn simple(
        &mut self,
        i: usize,
        op: Op,
        target: u32,
        record: &Record,
        batch: &mut Batch,
    ) -> Result<()> {
        let event = self.event(i, op, record)?.with_target(target);
        self.push(i, event, batch);
        Ok(())
    }

    fn add(&mut self, i: usize, record: &Record, batch: &mut Batch) -> Result<()> {
        self.reach(i, record, batch)?;
        self.note(i, record);
        let target = match self.dictionary.keys.get(&record.site) {
            Some(&key) => Target::Field(record.object, key),
            None => Target::Element(record.object, record.index),
        };
        match record.kind {
            Kind::Read => self.access(i, Op::Read, target, record, batch),
            Kind::Write => self.access(i, Op::Write, target, record, batch),
            Kind::VolatileRead => self.access(i, Op::VolatileRead, target, record, batch),
            Kind::VolatileWrite => self.access(i, Op::VolatileWrite, target, record, batch),
            Kind::Rmw => self.access(i, Op::Rmw, target, record, batch),
            Kind::Old => {
                self.threads[i].old = Some(self.value(record)?);
                Ok(())
            }
            Kind::SharedWith => {
                self.sharing.with(i, record.object);
                Ok(())
            }
            Kind::Object => self.describe(i, record, batch),
            // What they tell is only about what is certain.
            Kind::Begin
            | Kind::TaskBegin
            | Kind::TaskEnd
            | Kind::Waits
            | Kind::Give
            | Kind::Got
            | Kind::Removed
            | Kind::Told
            | Kind::Permits
            | Kind::Raised
            | Kind::Lowered
            | Kind::Counted
            | Kind::Initialising
            | Kind::Hold
            | Kind::Unhold
            | Kind::Key => Ok(()),
            Kind::Lost => {
                self.unordered("a step was lost because the stack of its thread was full");
                Ok(())
            }
            Kind::End => {
                self.threads[i].has_ended = true;
                Ok(())
            }
            Kind::Acquire => self.acquire(i, false, record, batch),
            Kind::AcquireShared => self.acquire(i, true, record, batch),
            Kind::Release => self.release(i, false, record, batch),
            Kind::ReleaseShared => self.release(i, true, record, batch),
            Kind::Request | Kind::RequestShared => {
                let is_shared = record.kind == Kind::RequestShared;
                let op = if is_shared { Op::RequestShared } else { Op::Request };
                self.threads[i].request = Some((record.object, op, self.place(record.site)?));
                Ok(())
            }
            Kind::Try | Kind::TryFor => {
                let op = if record.kind == Kind::Try { Op::Try } else { Op::TryFor };
                self.threads[i].attempt = Some(op);
                Ok(())
            }
            Kind::Busy => self.busy(i, record, batch),
            Kind::Fork => self.fork(i, record, batch),
            Kind::Join => self.join(i, record, batch),
            Kind::WaitBegin => self.wait(i, true, record, batch),
            Kind::WaitEnd => self.wait(i, false, record, batch),
            Kind::Notify | Kind::NotifyAll => {
                let op = if record.kind == Kind::Notify { Op::Notify } else { Op::NotifyAll };
                let condition = self.condition(record.object)?;
                self.simple(i, op, condition.0, record, batch)
            }
            Kind::Channel => self.channel(i, record, batch),
            Kind::Post => self.post(i, record, batch),
            Kind::Look => self.look(i, record, batch),
            Kind::Miss => self.miss(i, record, batch),
            Kind::Initialised => {
                let var = self.variable(Target::Class(record.object))?;
                self.doubt(|doubts| doubts.certain.write_order(i, var.0));
                self.simple(i, Op::VolatileWrite, var.0, record, batch)
            }
            Kind::InitialisationSeen => match self.targets.get(&Target::Class(record.object)) {
                Some(&var) => {
                    self.doubt(|doubts| doubts.certain.read_run(i, var.0));
                    self.simple(i, Op::VolatileRead, var.0, record, batch)
                }
                // It ended before anything was recorded, or is still under way in this very thread.
                None => Ok(()),
            },
            Kind::CollectionRead => self.collection(i, false, record, batch),
            Kind::CollectionWrite => self.collection(i, true, record, batch),
            Kind::Argument => {
                let value = self.value(record)?;
                self.threads[i].arguments.push(value);
                Ok(())
            }
            Kind::StackCall | Kind::StackReturn | Kind::StackUnknown => self.calls(i, record),
            Kind::TestBegin => self.test(i, "test-begin", record, batch),
            Kind::TestEnd => self.test(i, "test-end", record, batch),
            Kind::Call => self.call(i, Op::Enter, record, batch),
            Kind::Return => self.call(i, Op::Exit, record, batch),
        }
    }

    /// What threads still asked for when the program ended.
    fn last(&mut self, batch: &mut Batch) -> Result<()> {
        for i in 0..self.threads.len() {
            let Some((object, op, place)) = self.threads[i].request.take() else { continue };
            if self.locks.is_busy(object, i, op == Op::RequestShared) {
                let lock = self.lock(object)?;
                let event = Event::new(self.threads[i].id, op).with_target(lock.0);
                self.push(i, event.with_loc(place), batch);
            }
        }
        Ok(())
    }
}

impl EventSource for JvmSource {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        while !self.is_over && batch.events.len() < Batch::EVENTS {
            if self.targets.len() >= self.most {
                self.remarks.cut_short = Some(format!(
                    "its {} variables take more than the memory allowed (--max-memory)",
                    self.targets.len()
                ));
                self.is_over = true;
                break;
            }
            match self.merge.next().map_err(damaged)? {
                Some((i, record)) => self.add(i, &record, batch)?,
                None if self.merge.is_growing() => break,
                None => {
                    self.is_over = true;
                    self.last(batch)?;
                    self.tell_doubts();
                }
            }
        }
        Ok(!batch.events.is_empty())
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    fn position(&self, _: usize) -> Position {
        Position::Unknown
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}

impl JvmSource {
    /// The number of variables.
    pub(super) fn variables(&self) -> usize {
        self.targets.len()
    }

    /// How many threads were cut off in the middle of a step.
    pub(super) fn left(&self) -> usize {
        self.merge.left()
    }
}
