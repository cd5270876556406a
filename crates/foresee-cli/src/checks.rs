//! The checks that need no specification, as they are asked for on the command line.

use std::time::Duration;

use anyhow::ensure;
use foresee_predict::Analysis;
use foresee_predict::checks::{
    ATOMICITY, Algorithm, AtomicityOptions, CHECKS, CheckKind, Checks, Glob, LIKELY_ATOMICITY,
    MemoryModel, Options,
};
use foresee_spec::ast::Spec;

use crate::args::{AlgorithmArg, AnalysisArgs, MemoryModelArg};
use crate::config::Config;

/// What is kept of each event of the trace, at most.
const BYTES_AN_EVENT: usize = 48;

/// The names of all of them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|kind| kind.name)
}

/// The methods whose calls are atomic regions, by what specifications say.
pub(crate) fn atomics<'s>(specs: impl Iterator<Item = &'s Spec>) -> Vec<Glob> {
    specs.flat_map(|spec| &spec.atomics).map(|method| Glob::new(&method.name)).collect()
}

/// What was asked for, all in one analysis. Specifications ask for it, too, if they say that methods
/// are atomic.
pub(crate) fn asked_for(
    args: &AnalysisArgs,
    atomics: &[Glob],
) -> anyhow::Result<Option<Box<dyn Analysis>>> {
    let is_asked = |kind: &&CheckKind| {
        args.check.iter().any(|name| name == kind.name)
            || kind.name == ATOMICITY && !atomics.is_empty()
            || kind.name == LIKELY_ATOMICITY && args.checks.infer_regions
    };
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
    for (flag, is_given) in
        [("--region", !args.checks.region.is_empty()), ("--cycle", args.checks.cycle > 2)]
    {
        let is_atomicity = |kind: &&CheckKind| kind.name == ATOMICITY;
        ensure!(
            !is_given || args.check.is_empty() || kinds.iter().any(is_atomicity),
            "{flag} is about atomicity: add --check atomicity"
        );
    }
    if kinds.is_empty() {
        return Ok(None);
    }
    Ok(Some(Box::new(Checks::new(&kinds, options(args, atomics)?))))
}

/// The checks of a run for which nothing was asked.
pub(crate) fn by_default(args: &AnalysisArgs) -> anyhow::Result<Box<dyn Analysis>> {
    let is_wanted = |kind: &&CheckKind| {
        kind.is_default || kind.name == LIKELY_ATOMICITY && args.checks.infer_regions
    };
    let kinds: Vec<&CheckKind> = CHECKS.iter().filter(is_wanted).collect();
    let options = Options { only_relevant: true, ..options(args, &[])? };
    Ok(Box::new(Checks::new(&kinds, options)))
}

fn options(args: &AnalysisArgs, atomics: &[Glob]) -> anyhow::Result<Options> {
    let default = Options::default();
    let mut methods = Config::new(&args.checks)?.regions;
    methods.extend_from_slice(atomics);
    Ok(Options {
        atomicity: AtomicityOptions { methods, with_three: args.checks.cycle == 3 },
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
        memory_model: match args.checks.memory_model {
            MemoryModelArg::C11 => MemoryModel::C11,
            MemoryModelArg::Sc => MemoryModel::Sc,
        },
        cores: if args.jobs == 0 { default.cores } else { args.jobs },
        time: args.time_limit.map(Duration::from_secs),
        trace: args.max_memory.saturating_mul(1 << 20) / BYTES_AN_EVENT,
        ..default
    })
}
