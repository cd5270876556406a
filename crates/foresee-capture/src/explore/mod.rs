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

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use foresee_explore::program::{Execution, Object, Place, Program, RunError, Schedule};

use crate::scratch::Scratch;
use launch::Watchdog;
use names::Names;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// A file that the program reads as its standard input; otherwise that is empty.
    pub input: Option<PathBuf>,
    /// The directory that it runs in; otherwise ours.
    pub folder: Option<PathBuf>,
    /// A command for the shell, run before each run.
    pub before: Option<OsString>,
    /// How long one run may take.
    pub timeout: Duration,
    /// Whether its output is shown.
    pub is_shown: bool,
}

impl Options {
    /// The usual way to run a command.
    pub fn new(command: Vec<OsString>) -> Options {
        let timeout = Duration::from_secs(10);
        Options { command, input: None, folder: None, before: None, timeout, is_shown: false }
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
        Ok(Native { options, scratch, watchdog: Watchdog::default(), names, priorities: None })
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
        self.names.learn(log.head.program, &self.logs());
        events::execution(&log, &ended, &self.names)
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
