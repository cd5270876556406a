//! What is asked on the command line, as a session.

use anyhow::ensure;
use clap::ValueEnum as _;
use foresee_predict::checks::{self, MemoryModel};
use foresee_predict::info::{self, ATOMICITY, MONITORABILITY, NONDETERMINISM, RACE};
use foresee_predict::session::{Limits, NondeterminismSettings, Session, Settings};

use crate::args::{AlgorithmArg, AnalysisArgs, MIB, MemoryModelArg};
use crate::config::Config;
use crate::specs;

/// Everything that is asked but the patterns of the command line, which an index may answer.
pub(crate) fn session(args: &AnalysisArgs) -> anyhow::Result<Session> {
    let mut session = Session::new(settings(args)?);
    for file in &args.spec {
        session.add_spec(specs::load(&specs::read(file)?)?);
    }
    for name in &args.check {
        session.add_check(name).map_err(specs::failed)?;
    }
    ensure_useful(args, &session)?;
    Ok(session)
}

/// Everything that is asked.
pub(crate) fn everything(args: &AnalysisArgs) -> anyhow::Result<Session> {
    let mut session = session(args)?;
    for source in crate::commands::query::sources(args)? {
        session.add_spec(specs::load(&source)?);
    }
    Ok(session)
}

/// Refuses flags that would change nothing.
pub(crate) fn ensure_useful(args: &AnalysisArgs, session: &Session) -> anyhow::Result<()> {
    let is_about_races = !matches!(args.algorithm, AlgorithmArg::Auto | AlgorithmArg::Ideals);
    if let Some(value) = args.algorithm.to_possible_value().filter(|_| is_about_races) {
        let flag = value.get_name();
        ensure!(session.makes(RACE), "--algorithm {flag} is about races: add --check {RACE}");
    }
    for (flag, is_given) in
        [("--region", !args.checks.region.is_empty()), ("--cycle", args.checks.cycle > 2)]
    {
        ensure!(
            !is_given || args.check.is_empty() || session.makes(ATOMICITY),
            "{flag} is about atomicity: add --check {ATOMICITY}"
        );
    }
    if let Some(flag) = args.nondeterminism.given() {
        ensure!(
            session.asks_for(NONDETERMINISM),
            "{flag} is about nondeterminism: add --check {NONDETERMINISM}"
        );
    }
    for name in info::selectable().filter(|name| info::needs_spec(name) && session.asks_for(name)) {
        let is_given = !args.spec.is_empty()
            || name == MONITORABILITY && !(args.pattern.is_empty() && args.patterns.is_empty());
        ensure!(is_given, "--check {name} needs a specification: give one with --spec FILE");
    }
    Ok(())
}

/// How to search.
pub(crate) fn settings(args: &AnalysisArgs) -> anyhow::Result<Settings> {
    let asked = &args.nondeterminism;
    let limits = Limits {
        time: args.time_limit(),
        memory: args.max_memory.saturating_mul(MIB),
        cores: if args.jobs == 0 { Limits::default().cores } else { args.jobs },
        states: args.max_states,
        window: args.window.map(|w| w as usize),
        lookahead: args.lookahead,
        look_back: args.checks.look_back,
        tries: args.checks.tries.max(1),
        tries_per_place: args.checks.tries_per_place.max(1),
    };
    Ok(Settings {
        limits,
        is_alone: !args.is_live,
        space: args.reorder.space(),
        reads: args.reads.into(),
        is_all_by_lattice: args.algorithm == AlgorithmArg::Ideals,
        races: match args.algorithm {
            AlgorithmArg::Hb => checks::Algorithm::Hb,
            AlgorithmArg::Shb => checks::Algorithm::Shb,
            AlgorithmArg::Syncp => checks::Algorithm::Syncp,
            AlgorithmArg::Auto | AlgorithmArg::Ideals | AlgorithmArg::Sliced => {
                checks::Algorithm::Sliced
            }
        },
        memory_model: match args.checks.memory_model {
            MemoryModelArg::C11 => MemoryModel::C11,
            MemoryModelArg::Sc => MemoryModel::Sc,
        },
        regions: Config::new(&args.checks)?.regions,
        infer_regions: args.checks.infer_regions,
        with_three: args.checks.cycle == 3,
        nondeterminism: NondeterminismSettings {
            same_value: asked.same_value,
            variables: asked.variable.clone(),
            threads: asked.thread.clone(),
            first: asked.first,
        },
        draws_lattices: args.lattice.is_some(),
        draws_beside: args.html.is_some(),
        is_live: args.is_live,
    })
}
