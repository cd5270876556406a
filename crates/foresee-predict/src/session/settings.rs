//! What can be asked, and how far to search.

use std::time::Duration;

use foresee_causality::judge::Reads;
use foresee_trace::FileOrder;

use crate::beyond;
use crate::checks::{self, Algorithm, AtomicityOptions, Glob, MemoryModel};
use crate::correct::CorrectLimits;
use crate::lattice;
use crate::monitorability::MonitorabilityOptions;
use crate::nondeterminism;
use crate::reorder::SlicedLimits;
use crate::space::Reorder;

/// How a session searches.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many cuts of each level of a lattice are followed; 1 is the observed run alone.
    pub window: Option<usize>,
    /// With a window, how many relevant events may wait until a level is complete.
    pub lookahead: usize,
    /// How many states each search visits, if that is not left to it.
    pub states: Option<u64>,
    /// How many bytes each search may take.
    pub memory: usize,
    /// How long each search may take.
    pub time: Option<Duration>,
    /// How many cores are used.
    pub cores: usize,
    /// Which reorderings are looked at.
    pub reorder: Reorder,
    /// What the last read of a thread may see where critical sections swap.
    pub reads: Reads,
    /// Whether patterns are looked for in the lattice, as all other properties.
    pub is_all_by_lattice: bool,
    /// How races are looked for.
    pub races: Algorithm,
    /// Which atomics order anything.
    pub memory_model: MemoryModel,
    /// How far back from the first event of a candidate events may change.
    pub look_back: u32,
    /// How many tuples of events are tried for one tuple of threads and places.
    pub tries: usize,
    /// How many are tried for one tuple of places.
    pub tries_per_place: usize,
    /// Methods whose calls are atomic regions, besides those that specifications name.
    pub regions: Vec<Glob>,
    /// Whether regions are guessed, too.
    pub infer_regions: bool,
    /// Whether cycles of conflicts may have three threads.
    pub with_three: bool,
    /// What nondeterminism is looked for.
    pub nondeterminism: NondeterminismSettings,
    /// Whether small lattices are drawn.
    pub draws_lattices: bool,
    /// Whether traces are still being made, so that less is kept of what has passed.
    pub is_live: bool,
}

/// What nondeterminism is looked for.
#[derive(Clone, Debug, Default)]
pub struct NondeterminismSettings {
    /// Another write of the same value does not count.
    pub same_value: bool,
    /// Only reads of these variables; of all, if there is none.
    pub variables: Vec<String>,
    /// Only reads of these threads; of all, if there is none.
    pub threads: Vec<String>,
    /// Stop at the first read that could see another write.
    pub first: bool,
}

impl Default for Settings {
    fn default() -> Self {
        let checks = checks::Options::default();
        Settings {
            window: None,
            lookahead: 65_536,
            states: None,
            memory: 1 << 30,
            time: Some(Duration::from_secs(30)),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            reorder: Reorder::Auto,
            reads: Reads::Terminal,
            is_all_by_lattice: false,
            races: checks.algorithm,
            memory_model: checks.memory_model,
            look_back: checks.look_back,
            tries: checks.tries,
            tries_per_place: checks.tries_per_place,
            regions: Vec::new(),
            infer_regions: false,
            with_three: false,
            nondeterminism: NondeterminismSettings::default(),
            draws_lattices: false,
            is_live: false,
        }
    }
}

impl Settings {
    /// How far checks search; calls of `atomics` are atomic regions.
    pub(super) fn checks(&self, atomics: Vec<Glob>, only_relevant: bool) -> checks::Options {
        let methods = self.regions.iter().cloned().chain(atomics).collect();
        checks::Options {
            reads: self.reads,
            look_back: self.look_back,
            tries: self.tries,
            tries_per_place: self.tries_per_place,
            algorithm: self.races,
            memory_model: self.memory_model,
            cores: self.cores,
            only_relevant,
            time: self.time,
            trace: self.memory / checks::BYTES_PER_EVENT,
            atomicity: AtomicityOptions { methods, with_three: self.with_three },
            ..checks::Options::default()
        }
    }

    /// How nondeterminism is looked for.
    pub(crate) fn nondeterminism(&self) -> nondeterminism::Options {
        let asked = self.nondeterminism.clone();
        nondeterminism::Options {
            same_value: asked.same_value,
            variables: asked.variables,
            threads: asked.threads,
            first: asked.first,
            cores: self.cores,
            time: self.time,
            ..nondeterminism::Options::default()
        }
    }

    /// How far a lattice is searched.
    pub(super) fn lattice(&self) -> lattice::Limits {
        let mut default = lattice::Limits::default();
        if self.is_live {
            default.keep_little();
        }
        lattice::Limits {
            window: self.window,
            lookahead: self.lookahead,
            cuts: self.states.unwrap_or(default.cuts),
            memory: self.memory,
            cores: self.cores,
            time: self.time,
            ..default
        }
    }

    /// How far patterns are looked for beyond the causality.
    pub(super) fn sliced(&self) -> SlicedLimits {
        let (reads, time, trace) = (self.reads, self.time, self.memory / beyond::BYTES_PER_EVENT);
        SlicedLimits { reads, time, trace, ..SlicedLimits::default() }
    }

    /// How far other properties are checked beyond the causality.
    pub(super) fn correct(&self) -> CorrectLimits {
        let default = CorrectLimits::default();
        CorrectLimits {
            reads: self.reads,
            time: self.time,
            trace: self.memory / beyond::BYTES_PER_EVENT,
            width: self.window.unwrap_or(default.width),
            nodes: self.states.unwrap_or(default.nodes),
            ..default
        }
    }

    /// How far it is asked whether a verdict depends on the schedule.
    pub(super) fn monitorability(&self, order: FileOrder, is_asked: bool) -> MonitorabilityOptions {
        let default = MonitorabilityOptions::default();
        MonitorabilityOptions {
            order,
            is_asked,
            nodes: self.states.unwrap_or(default.nodes),
            time: self.time,
            ..default
        }
    }
}
