//! Programs built with `foresee cc` and `foresee c++`, for exploration: [`Native`] runs one under a schedule again and again.
//!
//! The runtime in the program decides at every operation which thread goes on (`foresee-rt/src/runtime/explore`). A file that
//! both sides map carries the schedule in and the operations out (`file.rs`); here they become the events of the seam
//! (`events.rs`). Addresses are the same in every run, because the kernel does not randomise them and the runtime's allocator
//! makes them depend on nothing but the thread that asks (`names.rs`).

mod events;
mod file;
mod launch;
mod names;
mod order;
pub mod words;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use std::sync::{Arc, Mutex, PoisonError};

use foresee_explore::program::{
    Execution, Object, Place, Program, RunError, Schedule, Spot, ThreadName,
};

use crate::log::Log;
use crate::scratch::Scratch;
use crate::symbols::Symbols;
use launch::Watchdog;
use names::Names;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// A file that the program reads as its standard input; otherwise that is empty.
    pub input: Option<PathBuf>,
    /// Whether each run has an empty folder of its own to run in; otherwise that is ours.
    pub is_private: bool,
    /// A command for the shell, run before each run.
    pub before: Option<OsString>,
    /// How long one run may take.
    pub timeout: Duration,
    /// Whether its output is shown.
    pub is_shown: bool,
    /// Libraries that may be without hooks.
    pub trusted: Vec<String>,
}

/// A run as it was recorded.
pub struct Ran<'r> {
    /// What its threads did.
    pub execution: &'r Execution,
    /// The log.
    pub log: &'r Log,
    /// The names in the process.
    pub symbols: &'r Symbols,
    /// Each thread with its name in the trace.
    pub threads: &'r [(ThreadName, String)],
    /// The locks, and where they are in the process.
    pub locks: &'r [(Spot, u64)],
    names: &'r Names,
}

impl Ran<'_> {
    /// The byte at an address.
    pub fn spot(&self, address: u64) -> Spot {
        self.names.spot(address)
    }
}

/// Who looks at every run of a program.
pub trait Observer: Send {
    /// Looks at a run.
    ///
    /// # Errors
    /// If nothing can be said about it.
    fn ran(&mut self, run: &Ran<'_>) -> Result<(), RunError>;
}

impl Options {
    /// The usual way to run a command.
    pub fn new(command: Vec<OsString>) -> Options {
        let timeout = Duration::from_secs(10);
        Options {
            command,
            input: None,
            is_private: false,
            before: None,
            timeout,
            is_shown: false,
            trusted: Vec::new(),
        }
    }
}

/// A program built with `foresee cc` or `foresee c++`.
pub struct Native {
    options: Options,
    scratch: Scratch,
    watchdog: Watchdog,
    names: Names,
    /// Another way to go on than the schedule's, to compare with.
    priorities: Option<(u64, u64)>,
    observer: Option<Arc<Mutex<dyn Observer>>>,
}

impl Native {
    /// A program that can be run.
    ///
    /// # Errors
    /// If there is no such program, or it was not built for capture.
    pub fn new(options: Options) -> Result<Native, RunError> {
        let failed =
            |why: std::io::Error| RunError(format!("cannot make a folder for the runs: {why}"));
        let scratch = Scratch::in_memory().map_err(failed)?;
        std::fs::create_dir(scratch.path().join("log")).map_err(failed)?;
        let names = Names::of(&options.command)?;
        let watchdog = Watchdog::default();
        Ok(Native { options, scratch, watchdog, names, priorities: None, observer: None })
    }

    /// Shows every run to an observer.
    pub fn observe(&mut self, observer: Arc<Mutex<dyn Observer>>) {
        self.observer = Some(observer);
    }

    /// After the forced steps, follows random priorities that change twice in a run of the `expected` length: PCT with depth 3.
    pub fn follow_priorities(&mut self, seed: u64, expected: u64) {
        self.priorities = Some((seed, expected));
    }
}

impl Native {
    /// Runs the program once, and leaves its log.
    fn run_and_keep(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        let path = self.scratch.path().join("run");
        let file = file::create(&path, schedule, self.priorities)
            .map_err(|why| RunError(format!("cannot write the schedule of a run: {why}")))?;
        let ended = launch::launch(&self.options, self.scratch.path(), &path, &self.watchdog)?;
        let log =
            file.read().map_err(|why| RunError(format!("cannot read what a run did: {why}")))?;
        self.names.learn(log.head.program, &self.logs(), &self.options.trusted);
        let execution = events::execution(&log, &ended, &self.names)?;
        self.names.note_beyond(&log.head, ended.is_late, events::has_vanished(&log, &ended));
        if let Some(observer) = self.observer.clone() {
            self.show(&log, &execution, &observer)?;
        }
        Ok(execution)
    }

    /// Shows a run to the observer.
    fn show(
        &self,
        run: &file::RunLog,
        execution: &Execution,
        observer: &Mutex<dyn Observer>,
    ) -> Result<(), RunError> {
        let failed = |why: &dyn std::fmt::Display| {
            RunError(format!("the log of a run cannot be read: {why}"))
        };
        let tails = crate::log::find(&self.logs()).map_err(|why| failed(&why))?;
        let Some(tail) = tails.first() else { return Err(failed(&"there is none")) };
        let log = Log::open(tail).map_err(|why| failed(&why))?;
        let symbols = crate::naming::symbols_of(&log);
        let (threads, locks) = events::named(run);
        let threads: Vec<(ThreadName, String)> =
            threads.into_iter().map(|(name, number)| (name, log.thread_name(number))).collect();
        let locks: Vec<(Spot, u64)> =
            locks.into_iter().map(|address| (self.names.spot(address), address)).collect();
        let ran = Ran {
            execution,
            log: &log,
            symbols: &symbols,
            threads: &threads,
            locks: &locks,
            names: &self.names,
        };
        observer.lock().unwrap_or_else(PoisonError::into_inner).ran(&ran)
    }

    /// Where the runtime writes its log.
    fn logs(&self) -> PathBuf {
        self.scratch.path().join("log")
    }
}

impl Program for Native {
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        let execution = self.run_and_keep(schedule);
        names::clear(&self.logs());
        execution
    }

    fn unseen(&self) -> Option<String> {
        self.names.unseen.clone()
    }

    fn object_name(&self, object: Object) -> String {
        self.names.object(object)
    }

    fn place_name(&self, place: Place) -> String {
        self.names.place(place)
    }
}
