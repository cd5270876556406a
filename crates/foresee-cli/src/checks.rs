//! The checks that need no specification, as they are asked for on the command line.

use std::time::Duration;

use anyhow::ensure;
use foresee_predict::Analysis;
use foresee_predict::checks::{Algorithm, CHECKS, CheckKind, Checks, Options};

use crate::args::{AlgorithmArg, AnalysisArgs};

/// What is kept of each event of the trace, at most.
const BYTES_AN_EVENT: usize = 60;

/// The names of all of them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|kind| kind.name)
}

/// What was asked for, all in one analysis.
pub(crate) fn asked_for(args: &AnalysisArgs) -> anyhow::Result<Option<Box<dyn Analysis>>> {
    let is_asked = |kind: &&CheckKind| args.check.iter().any(|name| name == kind.name);
    let kinds: Vec<&CheckKind> = CHECKS.iter().filter(is_asked).collect();
    let flag = match args.algorithm {
        AlgorithmArg::Auto | AlgorithmArg::Ideals => None,
        AlgorithmArg::Hb => Some("hb"),
        AlgorithmArg::Shb => Some("shb"),
        AlgorithmArg::Syncp => Some("syncp"),
        AlgorithmArg::Sliced => Some("sliced"),
    };
    if let Some(flag) = flag {
        ensure!(
            kinds.iter().any(|kind| kind.name == "race"),
            "--algorithm {flag} is about races: add --check race"
        );
    }
    Ok((!kinds.is_empty()).then(|| Box::new(Checks::new(&kinds, options(args))) as Box<_>))
}

/// The checks of a run for which nothing was asked.
pub(crate) fn by_default(args: &AnalysisArgs) -> Box<dyn Analysis> {
    let kinds: Vec<&CheckKind> = CHECKS.iter().filter(|kind| kind.is_default).collect();
    Box::new(Checks::new(&kinds, Options { only_relevant: true, ..options(args) }))
}

fn options(args: &AnalysisArgs) -> Options {
    let default = Options::default();
    Options {
        reads: args.reads.into(),
        look_back: args.checks.look_back,
        tries: args.checks.tries.max(1),
        tries_per_place: args.checks.tries_per_place.max(1),
        algorithm: match args.algorithm {
            AlgorithmArg::Hb => Algorithm::Hb,
            AlgorithmArg::Shb => Algorithm::Shb,
            AlgorithmArg::Syncp => Algorithm::Syncp,
            AlgorithmArg::Auto | AlgorithmArg::Ideals | AlgorithmArg::Sliced => Algorithm::Sliced,
        },
        cores: if args.jobs == 0 { default.cores } else { args.jobs },
        time: args.time_limit.map(Duration::from_secs),
        trace: args.max_memory.saturating_mul(1 << 20) / BYTES_AN_EVENT,
        ..default
    }
}
