//! Random traces that some program could have produced.
//!
//! One generator serves two purposes: a hundred million events for a benchmark, and the ten events
//! on
//! which a property test compares an analysis with a brute-force oracle. It simulates a machine on
//! which some thread can always take a step: locks are exclusive, a waiting thread takes no steps,
//! and a read finds the last write. The same [`Config`] always generates the same trace.
//!
//! ```
//! use foresee_trace::{Trace, generate::{Config, Generator}};
//!
//! let trace = Trace::load(&mut Generator::new(Config::small(7))?)?;
//! assert_eq!(trace.events.len() as u64, Config::small(7).events);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod machine;

use crate::error::{Position, ReadError};
use crate::ids::ThreadId;
use crate::names::{Names, TooManyNames};
use crate::source::{Batch, EventSource, Remarks};
use machine::Machine;

/// The values that accesses carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// No values, as in traces of tools that do not record them.
    Nothing,
    /// One of the numbers `1..=n`. Several writes of the same value expose analyses that confuse
    /// values with writes.
    Repeating(u32),
    /// Every write has a value of its own.
    Distinct,
}

/// What a random trace looks like. All shares and chances are between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The seed of the random number generator.
    pub seed: u64,
    /// The number of threads; at least one.
    pub threads: u32,
    /// The number of events.
    pub events: u64,
    /// The number of variables; at least one.
    pub variables: u32,
    /// The number of locks.
    pub locks: u32,
    /// The number of conditions. Condition `c` belongs to lock `c % locks`.
    pub conditions: u32,
    /// The chance that the next event is of a randomly chosen thread instead of the same one.
    pub switching: f64,
    /// The share of events inside critical sections, as far as contention allows. At 1, threads act
    /// only inside critical sections unless nothing else is possible.
    pub in_sections: f64,
    /// The average number of events of its thread in a critical section.
    pub section_events: f64,
    /// The maximum number of locks that a thread holds at once.
    pub max_nesting: u32,
    /// The chance that an acquire inside a critical section is of a lock already held.
    pub reentrant: f64,
    /// The chance that an acquire is shared.
    pub shared: f64,
    /// The chance that an acquire is a try-lock; a failed try-lock is an event, too.
    pub tries: f64,
    /// The chance that locks are not released in the reverse order of their acquires.
    pub crossed: f64,
    /// The share of reads among plain and volatile accesses.
    pub reads: f64,
    /// The share of volatile accesses among accesses.
    pub volatiles: f64,
    /// The share of read-modify-writes among accesses.
    pub rmws: f64,
    /// The values that accesses carry.
    pub values: Written,
    /// The share of variables whose initial value is declared at the start of the trace. If
    /// accesses carry values, every variable is 0 before it is written.
    pub initial: f64,
    /// The share of threads that are forked by another thread during the trace. If it is not 0,
    /// threads also end before the trace does.
    pub forked: f64,
    /// The chance that a thread that has ended is joined.
    pub joined: f64,
    /// Whether the first and the last step of a thread are separate events.
    pub thread_marks: bool,
    /// The share of events inside critical sections that begin a wait or notify. A notifying thread
    /// holds the condition's lock.
    pub waits: f64,
    /// The share of ends of waits whose beginning is not recorded.
    pub bare_waits: f64,
    /// The share of named events.
    pub named: f64,
    /// The share of method entries and exits.
    pub calls: f64,
    /// The share of beginnings and ends of atomic regions.
    pub regions: f64,
    /// The share of events that are unrelated to all others: with a name outside the alphabet, or
    /// on a variable that only their thread uses.
    pub unrelated: f64,
    /// The chance that an access or a named event repeats a recent one of its thread, at the same
    /// location, as in a loop.
    pub loops: f64,
    /// The number of different names of events and methods; at least one if there are any.
    pub alphabet: u32,
    /// Whether the trace may end, and threads may stop, inside critical sections, waits, calls
    /// and regions. If not, the last events close what is open.
    pub unfinished: bool,
    /// The number of different source locations; 0 for none.
    pub locations: u32,
}

impl Default for Config {
    /// A thousand accesses of four threads to sixteen variables, half of them under four locks.
    fn default() -> Self {
        Config {
            seed: 0,
            threads: 4,
            events: 1000,
            variables: 16,
            locks: 4,
            conditions: 0,
            switching: 1.0,
            in_sections: 0.5,
            section_events: 6.0,
            max_nesting: 1,
            reentrant: 0.0,
            shared: 0.0,
            tries: 0.0,
            crossed: 0.0,
            reads: 0.6,
            volatiles: 0.0,
            rmws: 0.0,
            values: Written::Nothing,
            initial: 0.0,
            forked: 0.0,
            joined: 0.0,
            thread_marks: false,
            waits: 0.0,
            bare_waits: 0.0,
            named: 0.0,
            calls: 0.0,
            regions: 0.0,
            unrelated: 0.0,
            loops: 0.0,
            alphabet: 4,
            unfinished: false,
            locations: 0,
        }
    }
}

impl Config {
    /// A tiny trace for brute-force oracles: few threads, variables and locks, so that they
    /// collide, and a different mixture of everything else for every seed.
    pub fn small(seed: u64) -> Config {
        // A stream different from that of the generator itself, which starts from `seed`.
        let mut rng = fastrand::Rng::with_seed(!seed);
        let mut sometimes = |share: f64| if rng.bool() { share } else { 0.0 };
        let config = Config {
            shared: sometimes(0.3),
            reentrant: sometimes(0.5),
            crossed: sometimes(0.3),
            volatiles: sometimes(0.2),
            rmws: sometimes(0.15),
            initial: sometimes(0.5),
            forked: sometimes(0.7),
            waits: sometimes(0.7),
            bare_waits: sometimes(0.02),
            named: sometimes(0.2),
            calls: sometimes(0.1),
            regions: sometimes(0.1),
            tries: sometimes(0.5),
            ..Config::default()
        };
        let config = Config {
            seed,
            threads: rng.u32(2..=4),
            events: rng.u64(4..=12),
            variables: rng.u32(1..=2),
            locks: rng.u32(1..=2),
            conditions: rng.u32(1..=2),
            switching: rng.choice([0.5, 1.0]).unwrap_or(1.0),
            in_sections: rng.choice([0.0, 0.5, 1.0]).unwrap_or(0.5),
            section_events: 2.0,
            max_nesting: rng.u32(1..=2),
            reads: 0.5,
            values: rng
                .choice([Written::Nothing, Written::Repeating(2)])
                .unwrap_or(Written::Nothing),
            joined: 0.7,
            thread_marks: rng.u8(..6) == 0,
            alphabet: rng.u32(1..=3),
            unfinished: rng.bool(),
            ..config
        };
        let config = Config {
            unrelated: rng.choice([0.0, 0.0, 0.3]).unwrap_or(0.0),
            loops: rng.choice([0.0, 0.0, 0.4]).unwrap_or(0.0),
            locations: rng.choice([0, 0, 3]).unwrap_or(0),
            ..config
        };
        match rng.u8(..5) {
            // A notification that ends a wait takes at least six events.
            0 => Config {
                events: rng.u64(8..=14),
                locks: 1,
                conditions: 1,
                in_sections: 1.0,
                max_nesting: 1,
                shared: 0.0,
                initial: 0.0,
                forked: 0.0,
                thread_marks: false,
                waits: 0.8,
                unfinished: true,
                ..config
            },
            _ => config,
        }
    }

    /// A large trace with the proportions of recorded programs: many variables, mostly reads, short
    /// critical sections, some nesting, and threads that run for several events before another
    /// takes over.
    pub fn bench(threads: u32, events: u64, seed: u64) -> Config {
        Config {
            seed,
            threads,
            events,
            variables: 10_000,
            locks: 100,
            switching: 0.2,
            in_sections: 0.3,
            section_events: 10.0,
            max_nesting: 3,
            reentrant: 0.05,
            reads: 0.75,
            volatiles: 0.01,
            forked: 1.0,
            joined: 1.0,
            locations: 5_000,
            ..Config::default()
        }
    }

    fn check(&self) -> Result<(), BadConfig> {
        if self.threads == 0 || self.threads > ThreadId::MAX {
            return Err(BadConfig::Threads(self.threads));
        }
        if self.variables == 0 {
            return Err(BadConfig::NoVariables);
        }
        if self.alphabet == 0 && self.named + self.calls > 0.0 {
            return Err(BadConfig::NoAlphabet);
        }
        if self.section_events < 1.0 || !self.section_events.is_finite() {
            return Err(BadConfig::Section(self.section_events));
        }
        let shares = [
            ("switching", self.switching),
            ("in_sections", self.in_sections),
            ("tries", self.tries),
            ("reentrant", self.reentrant),
            ("shared", self.shared),
            ("crossed", self.crossed),
            ("reads", self.reads),
            ("volatiles", self.volatiles),
            ("rmws", self.rmws),
            ("initial", self.initial),
            ("forked", self.forked),
            ("joined", self.joined),
            ("waits", self.waits),
            ("bare_waits", self.bare_waits),
            ("named", self.named),
            ("calls", self.calls),
            ("regions", self.regions),
            ("unrelated", self.unrelated),
            ("loops", self.loops),
        ];
        match shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((name, share)) => Err(BadConfig::Share(name, share)),
            None => Ok(()),
        }
    }

    fn names(&self) -> Result<Names, TooManyNames> {
        let mut names = Names::default();
        for i in 0..self.threads {
            names.thread(&format!("T{i}"))?;
        }
        for i in 0..self.variables {
            names.vars.intern(&format!("x{i}"))?;
        }
        for i in 0..self.locks {
            names.locks.intern(&format!("l{i}"))?;
        }
        for i in 0..self.conditions {
            names.conds.intern(&format!("c{i}"))?;
        }
        for i in 0..self.alphabet {
            names.syms.intern(&format!("a{i}"))?;
        }
        if self.unrelated > 0.0 {
            names.syms.intern("unrelated")?;
            for i in 0..self.threads {
                names.vars.intern(&format!("own{i}"))?;
            }
        }
        for i in 0..self.locations {
            names.locs.intern(&format!("main.c:{}", i + 1))?;
        }
        Ok(names)
    }
}

/// Why a [`Config`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BadConfig {
    /// The number of threads is 0 or too large.
    #[error("a trace has between 1 and {max} threads, not {0}", max = ThreadId::MAX)]
    Threads(u32),
    /// There are no variables, so a thread may have no possible step.
    #[error("a trace needs at least one variable")]
    NoVariables,
    /// There are named events or calls, but no names.
    #[error("named events and calls need an alphabet of at least one name")]
    NoAlphabet,
    /// The average length of a critical section is impossible.
    #[error("a critical section has at least one event on average, not {0}")]
    Section(f64),
    /// A share or a chance is not between 0 and 1.
    #[error("`{0}` must be between 0 and 1, not {1}")]
    Share(&'static str, f64),
    /// The trace needs too many names.
    #[error(transparent)]
    Names(#[from] TooManyNames),
}

/// A random trace as a stream; memory does not depend on the number of events.
#[derive(Debug)]
pub struct Generator {
    machine: Machine,
    names: Names,
    remarks: Remarks,
    /// The index of the latest batch's first event.
    start: u64,
    emitted: u64,
}

impl Generator {
    /// The trace that `config` describes.
    pub fn new(config: Config) -> Result<Generator, BadConfig> {
        config.check()?;
        let names = config.names()?;
        let remarks = Remarks::default();
        Ok(Generator { machine: Machine::new(config), names, remarks, start: 0, emitted: 0 })
    }
}

impl EventSource for Generator {
    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool, ReadError> {
        batch.clear();
        self.start = self.emitted;
        self.machine.fill(batch);
        self.emitted += batch.events.len() as u64;
        Ok(!batch.events.is_empty())
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    fn position(&self, i: usize) -> Position {
        Position::Event(self.start + i as u64)
    }

    fn remarks(&self) -> &Remarks {
        &self.remarks
    }
}
