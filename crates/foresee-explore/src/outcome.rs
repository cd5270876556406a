//! What came of an exploration.

use crate::learn::Doubt;
use crate::program::{Ending, Execution, Failure, Operation, Place, Schedule, ThreadName};

/// What went wrong in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The program failed by itself.
    Failed(Failure),
    /// It ended with a status other than 0.
    Exited(i32),
    /// No thread can move: each with what it waits for.
    Deadlock(Vec<(ThreadName, Operation, Place)>),
    /// A thread did not come to its next operation in time.
    Hung,
    /// A property does not hold, by its number.
    Violated(usize),
}

impl Trouble {
    /// What went wrong in a run, unless only a property says so.
    pub fn of(execution: &Execution) -> Option<Trouble> {
        let last = execution.events.last().map(|event| event.operation);
        match (&execution.ending, last) {
            (Ending::Finished, Some(Operation::Fail(failure))) => Some(Trouble::Failed(failure)),
            (Ending::Finished, Some(Operation::Exit(status))) if status != 0 => {
                Some(Trouble::Exited(status))
            }
            (Ending::Deadlock, _) => {
                let all = execution.pending.iter().map(|pending| {
                    let name = execution.threads.get(pending.thread as usize).cloned();
                    (name.unwrap_or_default(), pending.operation, pending.place)
                });
                Some(Trouble::Deadlock(all.collect()))
            }
            (Ending::TimedOut, _) => Some(Trouble::Hung),
            _ => None,
        }
    }

    /// Whether both are the same kind of trouble.
    pub fn is_like(&self, other: &Trouble) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Something that went wrong, in a run that happened.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub trouble: Trouble,
    /// The thread that failed; for deadlocks and hangs the one that moved last.
    pub thread: ThreadName,
    /// Where.
    pub place: Place,
    /// The run, from 1.
    pub run: u32,
    /// The detours of its schedule.
    pub detours: u32,
    /// All steps of the run.
    pub schedule: Schedule,
}

/// What was covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// Every schedule.
    Everything,
    /// Every schedule with at most this number of detours.
    Detours(u32),
    /// Nothing can be said.
    Nothing,
}

/// Why an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Nothing was left to do.
    Done,
    /// At the first finding, as was asked for.
    Found,
    /// After as many runs as were allowed.
    Runs,
    /// After as much time as was allowed.
    Time,
    /// With as many states as were allowed.
    States,
    /// By the caller.
    Interrupted,
    /// The program is not a function of what its threads are told.
    Doubts,
}

/// What came of an exploration.
#[derive(Clone, Debug)]
pub struct Explored {
    /// Which part of the program is not captured.
    pub unseen: Option<String>,
    /// How often the program was run.
    pub runs: u32,
    /// The most states of one search.
    pub states: usize,
    /// How many facts are known.
    pub facts: u64,
    /// What went wrong, each kind at each place once.
    pub findings: Vec<Finding>,
    /// What was covered. Doubts take it back.
    pub covered: Covered,
    /// What is predicted and was not run.
    pub open: usize,
    /// Predictions that runs did not confirm, with the reasons of some.
    pub unreached: Vec<String>,
    /// Why coverage is not claimed.
    pub doubts: Vec<Doubt>,
    /// Properties that are not decided, each with the reason.
    pub undecided: Vec<String>,
    /// Whether loops were cut that wait for something.
    pub has_cut: bool,
    /// Whether histories were taken for one because a loop did the same twice.
    pub has_collapsed: bool,
    /// Runs that were ended because they had too many operations. What they left out was predicted and run otherwise, if
    /// everything was covered.
    pub cut_runs: u32,
    /// Why it ended.
    pub stopped: Stopped,
}

impl Explored {
    /// Whether every schedule was covered.
    pub fn is_complete(&self) -> bool {
        self.covered == Covered::Everything
            && self.stopped == Stopped::Done
            && self.doubts.is_empty()
            && self.unseen.is_none()
            && self.unreached.is_empty()
            && self.undecided.is_empty()
            && !self.has_cut
    }
}
