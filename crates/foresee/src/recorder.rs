//! Recording what the threads of a Rust program do, by hand.
//!
//! A [`Recorder`] hands out variables and locks that write down every use of theirs. An access and
//! its record are one step, so the recorded order is the order in which things happened. The result
//! is a [`Trace`] like one that was captured or read from a file.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard as StdGuard, PoisonError};
use std::thread;

use foresee_formats::recorded::Unfinished;
use foresee_trace::{Event, Id, Interner, LocId, Op, ThreadId, TooManyNames, Trace, Value, VarId};

/// Records the steps of a program's threads. Clones record into the same trace.
///
/// Everything that orders threads must be recorded, or foresee will believe in runs that cannot be:
/// start threads with [`Recorder::spawn`] or [`Recorder::fork`], lock with [`Mutex`], and say
/// [`Recorder::synchronize`] where threads wait for each other by other means, such as a channel.
///
/// If `foresee run` started the program, it gets the trace when the last clone of the recorder is
/// dropped, its variables and locks included.
///
/// ```
/// use foresee::Recorder;
///
/// let recorder = Recorder::new();
/// let radio = recorder.var("radio", true);
/// let pilot = recorder.spawn("pilot", {
///     let radio = radio.clone();
///     move || radio.get()
/// });
/// radio.set(false);
/// pilot.join();
/// let trace = recorder.trace()?;
/// assert_eq!(trace.events.len(), 5); // init, fork, read, write, join
/// # Ok::<(), foresee::RecordError>(())
/// ```
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<StdMutex<Recording>>,
}

/// Why a recording is not a trace.
///
/// ```
/// use foresee::{RecordError, Recorder};
///
/// let recorder = Recorder::with_limit(0);
/// recorder.event("one", &[]);
/// assert!(matches!(recorder.trace(), Err(RecordError::TooManyEvents(0))));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// A thread took part that the recorder did not see being started, so nothing is known of what
    /// it comes after.
    #[error(
        "thread `{0}` was not started through the recorder: start it with Recorder::spawn, or call \
         Recorder::fork before it starts"
    )]
    UnknownThread(String),
    /// There are more names than a trace can number.
    #[error(transparent)]
    TooManyNames(#[from] TooManyNames),
    /// There are more events than the recorder may keep.
    #[error(
        "more than {0} events were recorded: record less, or allow more with Recorder::with_limit"
    )]
    TooManyEvents(usize),
}

/// How many events a recorder keeps by default: about a gigabyte of them.
const DEFAULT_LIMIT: usize = 50_000_000;

struct Recording {
    trace: Trace,
    threads: HashMap<thread::ThreadId, ThreadId>,
    locations: HashMap<(&'static str, u32), LocId>,
    /// The value of each variable of [`Recorder::synchronize`].
    turns: HashMap<VarId, i64>,
    limit: usize,
    error: Option<RecordError>,
    /// Present if `foresee run` waits for the trace.
    awaited: Option<Unfinished>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(awaited) = self.awaited.take() else { return };
        // What cannot be handed over is missed there, and said.
        let _ = match &self.error {
            Some(error) => awaited.fail(&error.to_string()),
            None => awaited.finish(&self.trace).map_err(io::Error::other),
        };
    }
}

impl Recording {
    /// The number of the calling thread.
    fn current(&mut self) -> Option<ThreadId> {
        let current = thread::current();
        let known = self.threads.get(&current.id()).copied();
        if known.is_none() {
            let name = current.name().unwrap_or("without a name").to_owned();
            self.fail(RecordError::UnknownThread(name));
        }
        known
    }

    /// Only the first mistake is reported.
    fn fail(&mut self, error: RecordError) {
        self.error.get_or_insert(error);
    }

    fn kept<T>(&mut self, result: Result<T, TooManyNames>) -> Option<T> {
        result.map_err(|error| self.fail(error.into())).ok()
    }

    /// A name for a thing that has none of this name yet.
    fn fresh(names: &Interner<impl Id>, name: &str) -> String {
        let mut fresh = name.to_owned();
        let mut number = 2;
        while names.lookup(&fresh).is_some() {
            fresh = format!("{name}#{number}");
            number += 1;
        }
        fresh
    }

    fn location(&mut self, place: &'static Location<'static>) -> Option<LocId> {
        let key = (place.file(), place.line());
        if let Some(&known) = self.locations.get(&key) {
            return Some(known);
        }
        let text = format!("{}:{}", place.file(), place.line());
        let interned = self.trace.names.locs.intern(&text);
        let location = self.kept(interned)?;
        self.locations.insert(key, location);
        Some(location)
    }

    fn push(
        &mut self,
        op: Op,
        target: u32,
        values: &[Value],
        place: &'static Location<'static>,
    ) -> Option<()> {
        let thread = self.current()?;
        let location = self.location(place)?;
        self.push_event(Event::new(thread, op).with_target(target).with_loc(location), values);
        Some(())
    }

    fn push_event(&mut self, event: Event, values: &[Value]) {
        if self.trace.events.len() >= self.limit {
            self.fail(RecordError::TooManyEvents(self.limit));
            return;
        }
        let event = match values {
            [] => event,
            _ => event.with_values(values, &mut self.trace.pool),
        };
        self.trace.events.push(event);
    }
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = self.recording().trace.events.len();
        f.debug_struct("Recorder").field("events", &events).finish_non_exhaustive()
    }
}

impl Recorder {
    /// A recorder. The thread that makes it is the first thread of the trace.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// assert!(recorder.trace()?.events.is_empty());
    /// # Ok::<(), foresee::RecordError>(())
    /// ```
    pub fn new() -> Recorder {
        Recorder::with_limit(DEFAULT_LIMIT)
    }

    /// A recorder that keeps at most `events` events. [`Recorder::trace`] fails if there are more.
    ///
    /// ```
    /// let recorder = foresee::Recorder::with_limit(1);
    /// recorder.event("first", &[]);
    /// recorder.event("second", &[]);
    /// assert!(recorder.trace().is_err());
    /// ```
    pub fn with_limit(events: usize) -> Recorder {
        let mut recording = Recording {
            trace: Trace::default(),
            threads: HashMap::new(),
            locations: HashMap::new(),
            turns: HashMap::new(),
            limit: events,
            error: None,
            awaited: Unfinished::begin(),
        };
        let current = thread::current();
        let named = recording.trace.names.thread(current.name().unwrap_or("main"));
        if let Some(number) = recording.kept(named) {
            recording.threads.insert(current.id(), number);
        }
        Recorder { shared: Arc::new(StdMutex::new(recording)) }
    }

    /// A panic of another thread in here leaves at worst its own event out.
    fn recording(&self) -> StdGuard<'_, Recording> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A shared variable whose accesses are recorded. If the name is taken, it gets a number.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let count = recorder.var("count", 0);
    /// count.set(count.get() + 1);
    /// assert_eq!(count.get(), 1);
    /// ```
    #[track_caller]
    pub fn var<T: Recordable>(&self, name: &str, initial: T) -> Var<T> {
        let place = Location::caller();
        let mut recording = self.recording();
        let name = Recording::fresh(&recording.trace.names.vars, name);
        let interned = recording.trace.names.vars.intern(&name);
        let number = recording.kept(interned);
        if let Some(number) = number {
            recording.push(Op::Init, number.0, &[initial.value()], place);
        }
        let cell = Arc::new(StdMutex::new(initial));
        Var { recorder: self.clone(), number, cell }
    }

    /// A lock around a value, whose acquisitions and releases are recorded. Accesses to the value
    /// itself are not: put a [`Var`] inside for that.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let account = recorder.mutex("account", recorder.var("balance", 100));
    /// account.lock().set(50);
    /// assert_eq!(recorder.trace()?.events.len(), 4); // init, acquire, write, release
    /// # Ok::<(), foresee::RecordError>(())
    /// ```
    pub fn mutex<T>(&self, name: &str, value: T) -> Mutex<T> {
        let mut recording = self.recording();
        let name = Recording::fresh(&recording.trace.names.locks, name);
        let interned = recording.trace.names.locks.intern(&name);
        let number = recording.kept(interned).map(|lock| lock.0);
        Mutex { recorder: self.clone(), number, inner: StdMutex::new(value) }
    }

    /// Records a named event, which specifications match as `event(name, args…)`.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// recorder.event("add", &[7.into()]);
    /// ```
    #[track_caller]
    pub fn event(&self, name: &str, arguments: &[Argument]) {
        let place = Location::caller();
        let mut recording = self.recording();
        let interned = recording.trace.names.syms.intern(name);
        let Some(symbol) = recording.kept(interned) else { return };
        let values: Vec<Value> = arguments.iter().map(|argument| argument.0).collect();
        recording.push(Op::Event, symbol.0, &values, place);
    }

    /// Says that this call comes after every earlier call with the same name, in all runs: for
    /// synchronisation that the recorder does not know, such as channels and barriers. Call it
    /// before a thread signals and after another has waited.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// let recorder = foresee::Recorder::new();
    /// let (sender, receiver) = mpsc::channel();
    /// let worker = recorder.spawn("worker", {
    ///     let recorder = recorder.clone();
    ///     move || {
    ///         recorder.synchronize("results");
    ///         sender.send(1).expect("the receiver waits");
    ///     }
    /// });
    /// receiver.recv().expect("the worker sends");
    /// recorder.synchronize("results");
    /// worker.join();
    /// ```
    #[track_caller]
    pub fn synchronize(&self, name: &str) {
        let place = Location::caller();
        let mut recording = self.recording();
        let name = format!("synchronize({name})");
        let interned = recording.trace.names.vars.intern(&name);
        let Some(number) = recording.kept(interned) else { return };
        let turn = recording.turns.entry(number).or_default();
        let values = [Value::Int(*turn), Value::Int(*turn + 1)];
        *turn += 1;
        // Each call finds the number that the call before it left, so their order is fixed.
        recording.push(Op::Rmw, number.0, &values, place);
    }

    /// Starts a thread, and records that. If the name is taken, it gets a number.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let worker = recorder.spawn("worker", || 42);
    /// assert_eq!(worker.join(), 42);
    /// ```
    #[track_caller]
    pub fn spawn<T, F>(&self, name: &str, body: F) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let fork = self.fork(name);
        let child = fork.child;
        let handle = thread::spawn(move || {
            let _running = fork.begin();
            body()
        });
        JoinHandle { recorder: self.clone(), child, handle }
    }

    /// Records that the calling thread starts another one, which must call [`Fork::begin`] first:
    /// for threads that something else than the recorder starts.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let x = recorder.var("x", 0);
    /// let fork = recorder.fork("scoped");
    /// let child = std::thread::scope(|scope| {
    ///     let child = fork.child();
    ///     scope.spawn(|| {
    ///         let _running = fork.begin();
    ///         x.set(1);
    ///     });
    ///     child
    /// });
    /// recorder.joined(child);
    /// # assert!(recorder.trace().is_ok());
    /// ```
    #[track_caller]
    pub fn fork(&self, name: &str) -> Fork {
        let place = Location::caller();
        let mut recording = self.recording();
        let name = Recording::fresh(&recording.trace.names.threads, name);
        let named = recording.trace.names.thread(&name);
        let child = Child(recording.kept(named));
        if let Some(number) = child.0 {
            recording.push(Op::Fork, number.0, &[], place);
        }
        Fork { recorder: self.clone(), child }
    }

    /// Records that the calling thread has waited for the end of a thread.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let fork = recorder.fork("worker");
    /// let child = fork.child();
    /// let worker = std::thread::spawn(move || {
    ///     let _running = fork.begin();
    ///     // What the thread does from here on is recorded.
    /// });
    /// worker.join().expect("it does not panic");
    /// recorder.joined(child);
    /// # assert!(recorder.trace().is_ok());
    /// ```
    #[track_caller]
    pub fn joined(&self, child: Child) {
        let place = Location::caller();
        if let Some(number) = child.0 {
            self.recording().push(Op::Join, number.0, &[], place);
        }
    }

    /// What was recorded so far.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// std::thread::spawn({
    ///     let recorder = recorder.clone();
    ///     move || recorder.event("unordered", &[])
    /// })
    /// .join()
    /// .expect("it does not panic");
    /// assert!(recorder.trace().is_err(), "the recorder did not see the thread being started");
    /// ```
    pub fn trace(&self) -> Result<Trace, RecordError> {
        let recording = self.recording();
        match &recording.error {
            Some(error) => Err(error.clone()),
            None => Ok(recording.trace.clone()),
        }
    }
}

/// A thread that is about to start; see [`Recorder::fork`].
///
/// ```
/// let recorder = foresee::Recorder::new();
/// let fork = recorder.fork("worker");
/// let child = fork.child();
/// let worker = std::thread::spawn(move || drop(fork.begin()));
/// worker.join().expect("it does not panic");
/// recorder.joined(child);
/// ```
#[derive(Debug)]
pub struct Fork {
    recorder: Recorder,
    child: Child,
}

/// A thread that was started, for [`Recorder::joined`].
///
/// ```
/// let recorder = foresee::Recorder::new();
/// let fork = recorder.fork("worker");
/// let child: foresee::Child = fork.child();
/// std::thread::spawn(move || drop(fork.begin())).join().expect("it does not panic");
/// recorder.joined(child);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Child(Option<ThreadId>);

/// A recorded thread runs until this is dropped.
///
/// ```
/// let fork = foresee::Recorder::new().fork("worker");
/// let worker = std::thread::spawn(move || {
///     let running: foresee::Running = fork.begin();
///     drop(running);
/// });
/// # worker.join().expect("it does not panic");
/// ```
#[derive(Debug)]
pub struct Running {
    recorder: Recorder,
}

impl Fork {
    /// The thread, for [`Recorder::joined`].
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let fork = recorder.fork("worker");
    /// let child = fork.child();
    /// std::thread::spawn(move || drop(fork.begin())).join().expect("it does not panic");
    /// recorder.joined(child);
    /// ```
    pub fn child(&self) -> Child {
        self.child
    }

    /// Declares that the calling thread is the one that was started.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let (fork, x) = (recorder.fork("worker"), recorder.var("x", 0));
    /// let worker = std::thread::spawn(move || {
    ///     let _running = fork.begin();
    ///     x.set(1);
    /// });
    /// # worker.join().expect("it does not panic");
    /// # assert!(recorder.trace().is_ok());
    /// ```
    pub fn begin(self) -> Running {
        if let Some(number) = self.child.0 {
            self.recorder.recording().threads.insert(thread::current().id(), number);
        }
        Running { recorder: self.recorder }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.recorder.recording().threads.remove(&thread::current().id());
    }
}

/// Waits for a thread that [`Recorder::spawn`] started.
///
/// ```
/// let worker = foresee::Recorder::new().spawn("worker", || 7);
/// assert_eq!(worker.join(), 7);
/// ```
#[derive(Debug)]
pub struct JoinHandle<T> {
    recorder: Recorder,
    child: Child,
    handle: thread::JoinHandle<T>,
}

impl<T> JoinHandle<T> {
    /// Waits for the thread's end, records that, and returns its result.
    ///
    /// ```
    /// let recorder = foresee::Recorder::new();
    /// let workers = ["left", "right"].map(|name| recorder.spawn(name, || name.len()));
    /// assert_eq!(workers.map(|worker| worker.join()), [4, 5]);
    /// ```
    ///
    /// # Panics
    /// If the thread panicked, with its panic.
    #[track_caller]
    pub fn join(self) -> T {
        let result = self.handle.join();
        self.recorder.joined(self.child);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A shared variable whose accesses are recorded; see [`Recorder::var`]. Clones are the same
/// variable.
///
/// ```
/// let x = foresee::Recorder::new().var("x", 1);
/// x.clone().set(2);
/// assert_eq!(x.get(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Var<T> {
    recorder: Recorder,
    number: Option<VarId>,
    cell: Arc<StdMutex<T>>,
}

impl<T: Recordable> Var<T> {
    /// Reads the variable.
    ///
    /// ```
    /// let x = foresee::Recorder::new().var("x", 1);
    /// assert_eq!(x.get(), 1);
    /// ```
    #[track_caller]
    pub fn get(&self) -> T {
        self.access(Location::caller(), |value| (*value, Op::Read, [Some(value.value()), None]))
    }

    /// Writes the variable.
    ///
    /// ```
    /// let ready = foresee::Recorder::new().var("ready", false);
    /// ready.set(true);
    /// assert!(ready.get());
    /// ```
    #[track_caller]
    pub fn set(&self, new: T) {
        self.access(Location::caller(), |value| {
            *value = new;
            ((), Op::Write, [Some(new.value()), None])
        });
    }

    /// Changes the variable in one step, as an atomic instruction does, and returns the old value.
    /// `change` must not use the recorder, which is locked meanwhile.
    ///
    /// ```
    /// let count = foresee::Recorder::new().var("count", 1);
    /// assert_eq!((count.update(|n| n + 1), count.get()), (1, 2));
    /// ```
    #[track_caller]
    pub fn update(&self, change: impl FnOnce(T) -> T) -> T {
        self.access(Location::caller(), |value| {
            let old = *value;
            *value = change(old);
            (old, Op::Rmw, [Some(old.value()), Some(value.value())])
        })
    }

    /// The access and its record are one step, because both happen under the recorder's lock.
    fn access<R>(
        &self,
        place: &'static Location<'static>,
        step: impl FnOnce(&mut T) -> (R, Op, [Option<Value>; 2]),
    ) -> R {
        let mut recording = self.recorder.recording();
        let mut cell = self.cell.lock().unwrap_or_else(PoisonError::into_inner);
        let (result, op, values) = step(&mut cell);
        let values: Vec<Value> = values.into_iter().flatten().collect();
        if let Some(number) = self.number {
            recording.push(op, number.0, &values, place);
        }
        result
    }
}

/// A lock whose acquisitions and releases are recorded; see [`Recorder::mutex`].
///
/// ```
/// let lock = foresee::Recorder::new().mutex("lock", vec![1]);
/// lock.lock().push(2);
/// assert_eq!(lock.lock().len(), 2);
/// ```
#[derive(Debug)]
pub struct Mutex<T> {
    recorder: Recorder,
    number: Option<u32>,
    inner: StdMutex<T>,
}

impl<T> Mutex<T> {
    /// Takes the lock. It ignores that a thread panicked while it held the lock.
    ///
    /// ```
    /// let total = foresee::Recorder::new().mutex("total", 40);
    /// *total.lock() += 2;
    /// assert_eq!(*total.lock(), 42);
    /// ```
    #[track_caller]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let place = Location::caller();
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = self.number {
            self.recorder.recording().push(Op::Acquire, number, &[], place);
        }
        MutexGuard { mutex: self, inner, place }
    }
}

/// A lock that is held until this is dropped.
///
/// ```
/// let names = foresee::Recorder::new().mutex("names", vec!["a"]);
/// let mut guard: foresee::MutexGuard<'_, Vec<&str>> = names.lock();
/// guard.push("b");
/// assert_eq!(guard.len(), 2);
/// ```
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: StdGuard<'a, T>,
    place: &'static Location<'static>,
}

impl<T> Drop for MutexGuard<'_, T> {
    /// The record comes first: as soon as the lock is free, another thread may record that it has it.
    fn drop(&mut self) {
        if let Some(number) = self.mutex.number {
            self.mutex.recorder.recording().push(Op::Release, number, &[], self.place);
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// An argument of an event: a number or a truth value.
///
/// ```
/// foresee::Recorder::new().event("transfer", &[42.into(), true.into()]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(Value);

impl<T: Recordable> From<T> for Argument {
    fn from(value: T) -> Argument {
        Argument(value.value())
    }
}

/// Numbers and truth values, which a trace can hold.
///
/// ```
/// use foresee::{Recordable, Value};
///
/// assert_eq!(7u8.value(), Value::Int(7));
/// assert_eq!(true.value(), Value::Bool(true));
/// ```
pub trait Recordable: Copy {
    /// The value as it stands in a trace.
    fn value(self) -> Value;
}

macro_rules! recordable {
    ($($type:ty => $value:expr),* $(,)?) => {
        $(impl Recordable for $type {
            fn value(self) -> Value {
                $value(self)
            }
        })*
    };
}

recordable! {
    i8 => |n| Value::Int(i64::from(n)),
    i16 => |n| Value::Int(i64::from(n)),
    i32 => |n| Value::Int(i64::from(n)),
    i64 => Value::Int,
    isize => |n| Value::Int(n as i64),
    u8 => |n| Value::from_u64(u64::from(n)),
    u16 => |n| Value::from_u64(u64::from(n)),
    u32 => |n| Value::from_u64(u64::from(n)),
    u64 => Value::from_u64,
    usize => |n| Value::from_u64(n as u64),
    f32 => |x| Value::Float(f64::from(x)),
    f64 => Value::Float,
    bool => Value::Bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // A helper that fails is a test that fails.

    use super::*;
    use foresee_trace::{Mode, Validated};

    /// What many threads record at once is an execution, and nothing of it is lost.
    #[test]
    fn many_threads_record_one_execution() {
        // Miri interprets, and each step takes it milliseconds.
        const THREADS: usize = if cfg!(miri) { 3 } else { 12 };
        const STEPS: usize = if cfg!(miri) { 4 } else { 50 };
        let recorder = Recorder::new();
        let (free, guarded) = (recorder.var("free", 0), recorder.var("guarded", 0));
        let lock = Arc::new(recorder.mutex("lock", 0));
        let worker = || {
            let (free, guarded, lock) = (free.clone(), guarded.clone(), Arc::clone(&lock));
            let events = recorder.clone();
            move || {
                for _ in 0..STEPS {
                    free.update(|n| n + 1);
                    let mut inside = lock.lock();
                    *inside += 1;
                    guarded.set(guarded.get() + 1);
                    events.event("step", &[]);
                }
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|_| recorder.spawn("worker", worker())).collect();
        threads.into_iter().for_each(JoinHandle::join);
        let all = (THREADS * STEPS) as i32;
        assert_eq!((free.get(), guarded.get(), *lock.lock()), (all, all, all));
        let trace = recorder.trace().unwrap();
        let mut source = Validated::new(trace.source(), Mode::Reject);
        let read = Trace::load(&mut source).unwrap();
        let count = |op: Op| read.events.iter().filter(|event| event.op() == op).count();
        assert_eq!((count(Op::Fork), count(Op::Join)), (THREADS, THREADS));
        assert_eq!(count(Op::Rmw), THREADS * STEPS);
        assert_eq!(count(Op::Acquire), THREADS * STEPS + 1);
        assert_eq!(count(Op::Event), THREADS * STEPS);
    }
}
