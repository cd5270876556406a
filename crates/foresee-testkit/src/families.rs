//! Families of random traces in which nearly everything happens under locks.

use foresee_trace::Trace;
use foresee_trace::generate::{Config, Written};

use crate::generated;

/// The parameters of a family of traces; shares are from 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name in reports.
    pub name: &'static str,
    /// The number of locks.
    pub locks: u32,
    /// The number of variables.
    pub variables: u32,
    /// The depth of nested critical sections.
    pub nesting: u32,
    /// The share of accesses inside critical sections.
    pub in_sections: f64,
    /// The share of forked threads.
    pub forked: f64,
    /// The share of waits and notifications in critical sections.
    pub waits: f64,
    /// The share of read-modify-writes among accesses.
    pub rmws: f64,
    /// The share of shared acquires.
    pub shared: f64,
    /// The share of acquires of a lock already held.
    pub reentrant: f64,
    /// The share of try-locks, which may fail.
    pub tries: f64,
    /// The share of atomic regions.
    pub regions: f64,
}

impl Family {
    /// Two nested locks, with everything in their critical sections.
    pub const PLAIN: Family = Family {
        name: "two locks, nested",
        locks: 2,
        variables: 3,
        nesting: 2,
        in_sections: 1.0,
        forked: 0.0,
        waits: 0.0,
        rmws: 0.0,
        shared: 0.0,
        reentrant: 0.0,
        tries: 0.0,
        regions: 0.0,
    };

    /// A trace of some two dozen events.
    pub fn short(&self, seed: u64) -> Trace {
        self.trace(seed, 12 + seed % 24)
    }

    /// A trace of about `events` events.
    pub fn trace(&self, seed: u64, events: u64) -> Trace {
        generated(Config {
            seed,
            threads: 2 + (seed % 3) as u32 / 2 + u32::from(self.forked > 0.0),
            events,
            variables: self.variables,
            locks: self.locks,
            conditions: 1,
            in_sections: self.in_sections,
            section_events: 2.5,
            max_nesting: self.nesting,
            reentrant: self.reentrant,
            shared: self.shared,
            reads: 0.5,
            rmws: self.rmws,
            values: Written::Repeating(2),
            forked: self.forked,
            joined: 0.7,
            waits: self.waits,
            tries: self.tries,
            regions: self.regions,
            named: 0.2,
            alphabet: 3,
            unfinished: seed.is_multiple_of(4),
            // Most programs also do unrelated things, repeatedly, at the same locations.
            unrelated: if seed % 5 == 1 { 0.3 } else { 0.0 },
            loops: if seed % 7 < 2 { 0.4 } else { 0.0 },
            locations: if seed % 3 == 1 { 4 } else { 0 },
            ..Config::default()
        })
    }
}

/// Families that differ from the plain one in one parameter each.
pub fn families() -> Vec<Family> {
    let plain = Family::PLAIN;
    vec![
        Family { name: "one global lock", locks: 1, nesting: 1, ..plain },
        Family { name: "three locks", locks: 3, variables: 5, ..plain },
        Family { name: "half unlocked", in_sections: 0.5, ..plain },
        Family { name: "fork and join", forked: 0.7, in_sections: 0.8, ..plain },
        Family { name: "wait and notify", waits: 0.3, locks: 1, nesting: 1, ..plain },
        Family { name: "nested monitors", waits: 0.3, ..plain },
        Family { name: "read-modify-write", rmws: 0.3, in_sections: 0.7, ..plain },
        Family { name: "shared and re-entrant", shared: 0.4, reentrant: 0.4, ..plain },
        Family { name: "try-locks", tries: 0.7, in_sections: 0.7, ..plain },
        plain,
    ]
}
