//! `foresee batch`: many traces, specifications and checks, and one report.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use foresee_batch::{
    Cache, InProcess, Manifest, Plan, Product, Progress, Questions, Queue, Shard, SpecSource,
};
use foresee_capture::compiler::own_cache;
use foresee_capture::scratch::Scratch;
use foresee_predict::session::Limits;
use foresee_support::count::count;
use indicatif::ProgressBar;

use crate::args::{BatchArgs, MIB};
use crate::commands::{check, query, worker};
use crate::output::{self, Sink};
use crate::{asked, progress, specs, whole_file};

pub(crate) fn run(args: &BatchArgs) -> anyhow::Result<u8> {
    ensure!(args.analysis.lattice.is_none(), "--lattice draws one trace: use `foresee check`");
    let mut to = Sink::new(&args.analysis.output)?;
    let plan = plan(args)?;
    let (cache, _temporary) = open_cache(args)?;
    let cores = match args.analysis.jobs {
        0 => Limits::default().cores,
        jobs => jobs,
    };
    let queue: Box<dyn Queue> = match &args.queue {
        Some(url) => worker::queue(url, &args.server)?,
        None => Box::new(InProcess { cores }),
    };
    let bar = progress::bar("{spinner} {pos} of {len} jobs, {msg}{eta} left");
    let done =
        foresee_batch::run(&plan, args.shard.unwrap_or(Shard::ALL), &cache, &*queue, &mut |now| {
            show(&bar, now)
        });
    bar.finish_and_clear();
    let done = done?;
    done.warnings.iter().for_each(|warning| output::raw(warning));
    let Progress { jobs, cached, failed, .. } = done.progress;
    let failed = if failed > 0 { format!(", {failed} without an answer") } else { String::new() };
    let jobs = count(jobs, "job");
    output::note(&format!("{jobs}, {cached} of them done before{failed}"));
    if !args.no_cache {
        // A cache that is too large costs no answer.
        let _ = cache.trim(args.cache_size.saturating_mul(MIB as u64), &done.keys);
    }
    let status = check::show(&args.analysis, done.report, &mut to)?;
    to.finish()?;
    Ok(status)
}

/// The jobs: those of the command line, and those of manifests.
fn plan(args: &BatchArgs) -> anyhow::Result<Plan> {
    let session = asked::session(&args.analysis);
    let mut shared: Vec<SpecSource> = Vec::new();
    for file in &args.analysis.spec {
        shared.push(read_spec(file)?);
    }
    for source in query::sources(&args.analysis)? {
        specs::load(&source)?;
        shared.push(SpecSource { name: source.name, text: source.text });
    }
    let mut groups = Vec::new();
    let product = Product {
        traces: args.files.clone(),
        input_format: args.input_format.clone(),
        repair: args.repair,
        ..Product::default()
    };
    let mut products = if args.files.is_empty() { Vec::new() } else { vec![product] };
    for file in &args.manifest {
        let name = file.display();
        let text = whole_file::read(file, whole_file::MANIFEST)?;
        let manifest = Manifest::parse(&text).with_context(|| name.to_string())?;
        products.extend(manifest.products(foresee_support::output::folder(file)));
    }
    for product in products {
        groups.push(questions(args, &shared, product)?);
    }
    // Specifications may stand among the files, so what a check needs is known only now.
    if groups.iter().all(|group| group.specs.is_empty()) {
        session?;
    }
    let settings = asked::settings(&args.analysis)?;
    Ok(Plan::new(&groups, &settings, args.parts)?)
}

/// What is asked of the traces of a group.
fn questions(
    args: &BatchArgs,
    shared: &[SpecSource],
    product: Product,
) -> anyhow::Result<Questions> {
    let found = foresee_batch::collect(&product.traces)?;
    let named = foresee_batch::collect(&product.specs)?;
    if found.left_out > 0 {
        let count = found.left_out;
        let files = if count == 1 { "1 file is" } else { &format!("{count} files are") };
        output::note(&format!("{files} neither a trace nor a specification by name, and left out"));
    }
    if found.traces.is_empty() {
        let named: Vec<_> = product.traces.iter().map(|path| path.display().to_string()).collect();
        let place = if named.is_empty() { "a group of the manifest" } else { &named.join(", ") };
        anyhow::bail!("there are no traces to check in {place}");
    }
    let mut sources = shared.to_vec();
    for file in found.specs.iter().chain(&named.specs).chain(&named.traces) {
        sources.push(read_spec(file)?);
    }
    let checks = args.analysis.check.iter().chain(&product.checks).cloned().collect();
    let Product { input_format, repair, .. } = product;
    Ok(Questions { traces: found.traces, specs: sources, checks, input_format, repair })
}

/// Reads a specification; prints warnings, and returns mistakes as the error.
fn read_spec(file: &Path) -> anyhow::Result<SpecSource> {
    let source = specs::read(file)?;
    specs::load(&source)?;
    Ok(SpecSource { name: source.name, text: source.text })
}

/// The folder of results; a temporary one lasts as long as what is returned beside it.
fn open_cache(args: &BatchArgs) -> anyhow::Result<(Cache, Option<Scratch>)> {
    let (folder, temporary): (PathBuf, _) = match &args.cache {
        _ if args.no_cache => {
            let folder = Scratch::new().context("cannot make a folder for results")?;
            (folder.path().to_owned(), Some(folder))
        }
        Some(folder) => (folder.clone(), None),
        None => (own_cache("batch").context("--cache DIR names another folder")?, None),
    };
    let cache = Cache::open(&folder);
    let cache = cache.with_context(|| format!("cannot use the folder {}", folder.display()))?;
    Ok((cache, temporary))
}

fn show(bar: &ProgressBar, now: Progress) {
    bar.set_length(now.jobs as u64);
    bar.set_position(now.done as u64);
    if now.failed > 0 {
        bar.set_message(format!("{} without an answer, ", now.failed));
    }
}
