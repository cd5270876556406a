//! What to look for, and how far to search.

use std::time::Duration;

use foresee_causality::judge::Reads;
use foresee_trace::{FileOrder, Space};
use serde::{Deserialize, Serialize};

use crate::beyond;
use crate::checks::{self, Algorithm, AtomicityOptions, Glob, MemoryModel};
use crate::correct::CorrectLimits;
use crate::lattice;
use crate::monitorability::MonitorabilityOptions;
use crate::nondeterminism;
use crate::reorder::SlicedLimits;

/// How much effort searches may take. An answer that a limit cut short says so: its outcome is not
/// [`Exhausted`](foresee_trace::Outcome::Exhausted).
///
/// ```
/// use std::time::Duration;
/// use foresee_predict::session::{Limits, Settings};
///
/// let limits = Limits { time: Some(Duration::from_secs(5)), cores: 1, ..Limits::default() };
/// let settings = Settings { limits, ..Settings::default() };
/// assert_eq!(settings.limits.memory, 1 << 30, "one GiB unless something else is asked for");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Time limit of all searches in a trace together, which is divided among them; `None` for no
    /// limit. Reading the trace does not count.
    pub time: Option<Duration>,
    /// Memory limit of all searches together, in bytes.
    pub memory: usize,
    /// The number of cores to use.
    pub cores: usize,
    /// How many states each search may visit; `None` for the search's own default.
    pub states: Option<u64>,
    /// How many cuts of each level of a lattice are followed; 1 is the observed run alone.
    pub window: Option<usize>,
    /// With a window, how many relevant events may wait until a level is complete.
    pub lookahead: usize,
    /// How many events before a candidate may be reordered.
    pub look_back: u32,
    /// How many tuples of events to try for each tuple of threads and locations.
    pub tries: usize,
    /// How many tuples of events to try for each tuple of locations.
    pub tries_per_place: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let checks = checks::Options::default();
        Limits {
            time: Some(Duration::from_secs(30)),
            memory: 1 << 30,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            states: None,
            window: None,
            lookahead: 65_536,
            look_back: checks.look_back,
            tries: checks.tries,
            tries_per_place: checks.tries_per_place,
        }
    }
}

/// How a session searches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// How much effort the searches may take.
    pub limits: Limits,
    /// Whether the process does nothing else, so that all its memory counts.
    pub is_alone: bool,
    /// Which reorderings to search besides those that keep the causality, which always come first:
    /// they are the cheapest, have the simplest witnesses, and can be covered completely. `None`
    /// chooses the space that fits each property, [`Space::Sliced`] is for patterns,
    /// [`Space::Correct`] for everything else; [`Space::Maz`] and [`Space::Notes`] add nothing.
    pub space: Option<Space>,
    /// What the last read of a thread may see where critical sections swap.
    pub reads: Reads,
    /// Whether to search the lattice for patterns, as for all other properties.
    pub is_all_by_lattice: bool,
    /// Algorithm that finds races.
    pub races: Algorithm,
    /// Which atomic operations order others.
    pub memory_model: MemoryModel,
    /// Methods whose calls are atomic regions, in addition to those that specifications declare.
    pub regions: Vec<Glob>,
    /// Whether to infer regions as well.
    pub infer_regions: bool,
    /// Whether cycles of conflicts may have three threads.
    pub with_three: bool,
    /// Which reads the nondeterminism check considers.
    pub nondeterminism: NondeterminismSettings,
    /// Whether to draw small lattices, those of patterns as well, which are searched in the lattice then.
    pub draws_lattices: bool,
    /// Whether to draw small lattices of short traces as far as they are searched anyway.
    pub draws_beside: bool,
    /// Whether traces are still growing, so that searches retain less of the past.
    pub is_live: bool,
}

/// Which reads the nondeterminism check considers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NondeterminismSettings {
    /// Another write of the same value does not count.
    pub same_value: bool,
    /// Only reads of these variables; all variables if the list is empty.
    pub variables: Vec<String>,
    /// Only reads by these threads; all threads if the list is empty.
    pub threads: Vec<String>,
    /// Stop at the first read that could see another write.
    pub first: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let checks = checks::Options::default();
        Settings {
            limits: Limits::default(),
            is_alone: false,
            space: None,
            reads: Reads::Terminal,
            is_all_by_lattice: false,
            races: checks.algorithm,
            memory_model: checks.memory_model,
            regions: Vec::new(),
            infer_regions: false,
            with_three: false,
            nondeterminism: NondeterminismSettings::default(),
            draws_lattices: false,
            draws_beside: false,
            is_live: false,
        }
    }
}

impl Settings {
    /// The limits of checks; calls of `atomics` are atomic regions.
    pub(super) fn checks(&self, atomics: Vec<Glob>, only_relevant: bool) -> checks::Options {
        let methods = self.regions.iter().cloned().chain(atomics).collect();
        checks::Options {
            reads: self.reads,
            look_back: self.limits.look_back,
            tries: self.limits.tries,
            tries_per_place: self.limits.tries_per_place,
            algorithm: self.races,
            memory_model: self.memory_model,
            cores: self.limits.cores,
            only_relevant,
            time: self.limits.time,
            memory: self.limits.memory,
            atomicity: AtomicityOptions { methods, with_three: self.with_three },
            ..checks::Options::default()
        }
    }

    /// Whether reorderings are searched that do not keep the causality.
    pub(super) fn goes_beyond_causality(&self) -> bool {
        self.searches_sliced() || self.searches_correct()
    }

    /// Whether patterns are searched in sliced reorderings.
    pub(super) fn searches_sliced(&self) -> bool {
        matches!(self.space, None | Some(Space::Sliced))
    }

    /// Whether other properties are searched in correct reorderings.
    pub(super) fn searches_correct(&self) -> bool {
        matches!(self.space, None | Some(Space::Correct))
    }

    /// The options of the nondeterminism check.
    pub(crate) fn nondeterminism(&self) -> nondeterminism::Options {
        let asked = self.nondeterminism.clone();
        nondeterminism::Options {
            same_value: asked.same_value,
            variables: asked.variables,
            threads: asked.threads,
            first: asked.first,
            cores: self.limits.cores,
            time: self.limits.time,
            memory: self.limits.memory,
            ..nondeterminism::Options::default()
        }
    }

    /// The limits of lattice searches.
    pub(super) fn lattice(&self) -> lattice::Limits {
        let mut default = lattice::Limits::default();
        if self.is_live {
            default.keep_little();
        }
        // What is kept for the witness takes its part of the memory.
        let part = self.limits.memory / 4;
        lattice::Limits {
            history: default.history.min(part),
            kept_events: default.kept_events.min(part),
            window: self.limits.window,
            lookahead: self.limits.lookahead,
            cuts: self.limits.states.unwrap_or(default.cuts),
            memory: self.limits.memory,
            cores: self.limits.cores,
            time: self.limits.time,
            ..default
        }
    }

    /// The limits of searches for patterns in sliced reorderings.
    pub(super) fn sliced(&self) -> SlicedLimits {
        let (reads, time, trace) =
            (self.reads, self.limits.time, self.limits.memory / beyond::BYTES_PER_EVENT);
        SlicedLimits { reads, time, trace, ..SlicedLimits::default() }
    }

    /// The limits of searches for other properties in correct reorderings.
    pub(super) fn correct(&self) -> CorrectLimits {
        let default = CorrectLimits::default();
        CorrectLimits {
            reads: self.reads,
            time: self.limits.time,
            trace: self.limits.memory / beyond::BYTES_PER_EVENT,
            memory: self.limits.memory,
            width: self.limits.window.unwrap_or(default.width),
            nodes: self.limits.states.unwrap_or(default.nodes),
            ..default
        }
    }

    /// The limits of the monitorability test.
    pub(super) fn monitorability(&self, order: FileOrder, is_asked: bool) -> MonitorabilityOptions {
        let default = MonitorabilityOptions::default();
        MonitorabilityOptions {
            order,
            is_asked,
            nodes: self.limits.states.unwrap_or(default.nodes),
            time: self.limits.time,
            ..default
        }
    }
}
