//! What the tests of reorderings share: traces in which nearly everything happens under locks.

#![allow(dead_code, clippy::unwrap_used)] // Not every test file needs everything.

use foresee_predict::reorder::Requirements;
use foresee_testkit::generated;
use foresee_trace::Trace;
use foresee_trace::generate::{Config, Written};

/// A kind of lock-heavy traces.
pub struct Family {
    pub name: &'static str,
    pub locks: u32,
    pub variables: u32,
    pub nesting: u32,
    pub in_sections: f64,
    pub forked: f64,
    pub waits: f64,
    pub rmws: f64,
    pub shared: f64,
    pub reentrant: f64,
}

pub fn families() -> Vec<Family> {
    let plain = Family {
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
    };
    vec![
        Family { name: "one global lock", locks: 1, nesting: 1, ..plain },
        Family { name: "three locks", locks: 3, variables: 5, ..plain },
        Family { name: "half unlocked", in_sections: 0.5, ..plain },
        Family { name: "fork and join", forked: 0.7, in_sections: 0.8, ..plain },
        Family { name: "wait and notify", waits: 0.3, locks: 1, nesting: 1, ..plain },
        Family { name: "read-modify-write", rmws: 0.3, in_sections: 0.7, ..plain },
        Family { name: "shared and re-entrant", shared: 0.4, reentrant: 0.4, ..plain },
        plain,
    ]
}

/// A trace of about fifteen events.
pub fn lock_heavy(family: &Family, seed: u64) -> Trace {
    lock_heavy_of(family, seed, 8 + seed % 12)
}

pub fn lock_heavy_of(family: &Family, seed: u64, events: u64) -> Trace {
    generated(Config {
        seed,
        threads: 2 + (seed % 3) as u32 / 2 + u32::from(family.forked > 0.0),
        events,
        variables: family.variables,
        locks: family.locks,
        conditions: 1,
        in_sections: family.in_sections,
        section_events: 2.5,
        max_nesting: family.nesting,
        reentrant: family.reentrant,
        shared: family.shared,
        reads: 0.5,
        rmws: family.rmws,
        values: Written::Repeating(2),
        forked: family.forked,
        joined: 0.7,
        waits: family.waits,
        named: 0.2,
        alphabet: 3,
        unfinished: seed % 4 == 0,
        ..Config::default()
    })
}

pub fn requirements(trace: &Trace) -> Requirements {
    let mut requirements = Requirements::default();
    trace.events.iter().for_each(|event| requirements.push(event).unwrap());
    requirements.finish();
    requirements
}
