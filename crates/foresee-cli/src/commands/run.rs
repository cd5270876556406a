//! `foresee run`: one execution of a program, captured, named and analysed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use foresee_capture::failure;
use foresee_capture::launch::{Ended, Outlived, Patience, Recording, launch};
use foresee_capture::log::{self, Log};
use foresee_capture::naming::symbols_of;
use foresee_capture::program::{Built, Program};
use foresee_capture::store::Told;
use foresee_capture::symbols::{Symbols, Unmatched, Variable};
use foresee_capture::watch::Watch;
use foresee_predict::keeps_causality;
use foresee_spec::Diagnostic;

use crate::args::{CaptureMode, InputArgs, ReorderArg, RunArgs};
use crate::commands::check::{self, Wanted};
use crate::config::Config;
use crate::input::Input;
use crate::{checks, input, output, specs};

/// Whether an interrupt came while a program ran.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let wanted = wanted(args)?;
    let name = args.command[0].to_string_lossy().into_owned();
    let program =
        Program::find(&args.command[0]).with_context(|| format!("there is no program `{name}`"))?;
    if program.built == Built::TwoRuntimes {
        bail!(
            "`{name}` has the runtimes of both foresee and the thread sanitizer, and crashes at \
             start: link it with `foresee cc` alone, without -fsanitize=thread or -ltsan"
        );
    }
    let mut watch = watch(&wanted, &program)?;
    let regions = Config::new(&args.analysis.checks)?.regions;
    for method in regions.into_iter().chain(wanted.atomics()) {
        let is_there = watch.functions_like(&program, &|name| method.matches_path(name));
        if !is_there && program.built == Built::ForCapture && !program.loads_more {
            output::note(&format!(
                "no function is called `{}`: it does not exist, or every call of it was inlined",
                method.as_str()
            ));
        }
    }
    let folder = tempfile::tempdir().context("cannot make a folder for the log")?;
    let list = folder.path().join("watch");
    std::fs::write(&list, watch.text()).context("cannot write the list of what to watch")?;
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).context("cannot make a folder for the log")?;
    let is_known = program.built == Built::ForCapture && watch.missing.is_empty();
    let recording = Recording {
        is_free_running: args.mode == CaptureMode::Async,
        // Variables that cannot be named beforehand are complete only if everything is recorded,
        // and without the token the filter's books are not exact.
        is_unfiltered: args.all
            || args.mode == CaptureMode::Async
            || goes_beyond_causality(args, &wanted)
            || !wanted.compiled.is_empty() && !is_known,
        watch: Some(&list),
        limit: args.log_limit.map(|mib| mib << 20),
    };
    // An interrupt is for the program; what it did until then is still to be told.
    let _ = ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed));
    let patience = Patience {
        timeout: args.timeout.map(Duration::from_secs),
        is_interrupted: &INTERRUPTED,
        outlived: &mut |left| output::note(&outlived(&name, &left)),
    };
    let ended = launch(&args.command, &logs, &recording, patience)
        .with_context(|| format!("cannot run `{name}`"))?;
    let how = failure::how(&ended);
    if let Some(how) = &how {
        output::note(&format!("{name} {how}"));
    }
    let how = how.filter(|_| !args.ignore_program_failure);
    let failed = how.as_ref().map(|how| Failed { how, ended: &ended });
    let found = log::find(&logs).context("cannot look for the log")?;
    if found.is_empty() {
        output::note(&nothing_captured(&name, program.built));
        return match failed {
            Some(failed) => failed.report(args, &name),
            None => Ok(3),
        };
    }
    report(args, wanted, &name, &found, folder.path(), failed)
}

/// That the program failed, as far as it has not been told yet.
#[derive(Clone, Copy)]
struct Failed<'e> {
    how: &'e str,
    ended: &'e Ended,
}

impl Failed<'_> {
    /// Whether this is the process to tell it of: that which failed or hung, or the first if it was
    /// not captured.
    fn is_of(&self, number: usize, log: &Log, logs: &[Log]) -> bool {
        let is_it = |log: &Log| match self.ended.hung.as_slice() {
            [] => log.header.pid == self.ended.process,
            hung => hung.contains(&log.header.pid),
        };
        is_it(log) || number == 0 && !logs.iter().any(is_it)
    }

    /// Tells it of a program of which nothing was captured.
    fn report(&self, args: &RunArgs, name: &str) -> anyhow::Result<u8> {
        let found = vec![failure::finding(name, self.how, self.ended, None)];
        check::print_findings(&args.analysis, name, found)
    }
}

/// Whether every access matters: where critical sections may swap, or where nobody knows yet what
/// the trace will be asked.
fn goes_beyond_causality(args: &RunArgs, wanted: &Wanted) -> bool {
    let is_maz = matches!(args.analysis.reorder, ReorderArg::Maz);
    let mut checks = args.analysis.check.iter().filter(|name| *name != "spec");
    !is_maz && (!wanted.compiled.is_empty() || args.keep.is_some())
        || checks.any(|name| !keeps_causality(name))
        || !wanted.atomics().is_empty()
        || args.analysis.checks.infer_regions
        // What goes wrong without a specification is looked for beyond it.
        || !wanted.analyses.is_empty() && args.analysis.check.is_empty()
}

/// What to look for: whatever goes wrong without a specification, if nothing is said.
fn wanted(args: &RunArgs) -> anyhow::Result<Wanted> {
    let mut wanted = Wanted::new(&args.analysis)?;
    let is_nothing = wanted.compiled.is_empty() && args.analysis.check.is_empty();
    if is_nothing {
        wanted.analyses = vec![checks::by_default(&args.analysis)?];
    }
    Ok(wanted)
}

/// Reports on every process that was captured; the gravest status is that of all.
fn report(
    args: &RunArgs,
    wanted: Wanted,
    name: &str,
    found: &[PathBuf],
    folder: &Path,
    mut failed: Option<Failed<'_>>,
) -> anyhow::Result<u8> {
    let mut status = None;
    let mut absent = None;
    let mut wanted = Some(wanted);
    let logs: Result<Vec<Log>, _> = found.iter().map(|tail| Log::open(tail)).collect();
    let logs = logs.context("the log cannot be read")?;
    for (i, log) in logs.iter().enumerate() {
        let symbols = symbols_of(log);
        let ready = match wanted.take() {
            Some(wanted) => wanted,
            None => self::wanted(args)?,
        };
        let (spelt, missing) = spelt(&ready, &symbols);
        // A process that runs another program has nothing to do with the specification.
        if let Some(missing) = missing {
            absent = Some(missing);
            wanted = Some(ready);
            continue;
        }
        let title = match i {
            0 => name.to_owned(),
            _ => format!("{name} (process {}, the {} captured)", log.header.pid, ordinal(i + 1)),
        };
        let path = match (&args.keep, i) {
            (Some(path), 0) => path.clone(),
            (Some(path), _) => numbered(path, i + 1),
            (None, _) => folder.join(format!("trace-{i}.fse")),
        };
        let told = Told {
            log,
            symbols: &symbols,
            spelt: &spelt,
            trusted: &args.trust,
            keeps_private: args.all,
        };
        let bar = input::progress("naming");
        let notes = told.store(&path, folder, &mut |events| bar.set_position(events));
        bar.finish_and_clear();
        let notes = notes.with_context(|| format!("{title}: the log cannot be made a trace"))?;
        let mut found = Vec::new();
        if let Some(failed) = failed.take_if(|failed| failed.is_of(i, log, &logs)) {
            let it = Some((log, &symbols));
            found.push(failure::finding(name, failed.how, failed.ended, it));
        }
        let input = InputArgs { trace: path, input_format: None, repair: false };
        let trace = Input::titled(&input, title);
        let one = check::look(ready, &args.analysis, &trace, &notes, found)?;
        // What was found counts more than what was not looked at.
        status = status.max(Some(if one == 1 { 4 } else { one }));
    }
    if let Some(failed) = failed.filter(|_| status.is_some()) {
        failed.report(args, name)?;
        status = Some(4);
    }
    match (status, absent) {
        (Some(4), _) => Ok(1),
        (Some(status), _) => Ok(status),
        (None, Some(missing)) => Err(missing.into()),
        (None, None) => Ok(3),
    }
}

/// What the specifications are about, in the program's files. Names that it cannot have are
/// mistakes, unless it may load more.
fn watch(wanted: &Wanted, program: &Program) -> anyhow::Result<Watch> {
    let mut watch = Watch::default();
    if program.built != Built::ForCapture {
        return Ok(watch);
    }
    for (source, spec, _) in &wanted.compiled {
        let before = watch.missing.len();
        let variables = foresee_spec::variables(spec);
        variables.iter().for_each(|(name, _)| watch.variable(program, name));
        let methods = foresee_spec::methods(spec);
        let mut diagnostics = diagnose(&watch.missing[before..], &variables);
        for (name, span) in methods {
            if !watch.function(program, name) {
                let message = format!("the program has no function `{name}`");
                let diagnostic =
                    Diagnostic::error("unknown-function", message, span, "never called");
                let help =
                    "it does not exist, or every call of it was inlined: compile with -fno-inline";
                diagnostics.push(diagnostic.help(help));
            }
        }
        if !program.loads_more && !diagnostics.is_empty() {
            return Err(specs::BadSpec::new(source, &diagnostics).into());
        }
    }
    Ok(watch)
}

/// The variables of the specifications in a process, and what is wrong with those it has not.
fn spelt(wanted: &Wanted, symbols: &Symbols) -> (Vec<(String, Variable)>, Option<specs::BadSpec>) {
    let (mut spelt, mut wrong) = (Vec::new(), None);
    for (source, spec, _) in &wanted.compiled {
        let variables = foresee_spec::variables(spec);
        let mut missing = Vec::new();
        for (name, _) in &variables {
            match symbols.find(name) {
                Ok(variable) => spelt.push(((*name).to_owned(), variable)),
                Err(unmatched) => missing.push(unmatched),
            }
        }
        if !missing.is_empty() {
            wrong = Some(specs::BadSpec::new(source, &diagnose(&missing, &variables)));
        }
    }
    (spelt, wrong)
}

fn diagnose(
    missing: &[Unmatched],
    mentions: &[(&str, foresee_spec::ast::Span)],
) -> Vec<Diagnostic> {
    let diagnostic = |unmatched: &Unmatched| {
        let (_, span) = mentions.iter().find(|(name, _)| *name == unmatched.name)?;
        let label = "not a variable of the program";
        Some(Diagnostic::error("unknown-variable", unmatched.to_string(), *span, label))
    };
    missing.iter().filter_map(diagnostic).collect()
}

fn outlived(name: &str, left: &Outlived<'_>) -> String {
    let list = |processes: &[u32]| {
        let es = if processes.len() == 1 { "" } else { "es" };
        let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
        format!("process{es} {} that it started", numbers.join(", "))
    };
    match left {
        Outlived::Recorded(left) => format!("{name} has ended; waiting for the {}", list(left)),
        Outlived::NotRecorded(left) => {
            format!("{name} has ended; the {} still run, and are not recorded", list(left))
        }
    }
}

fn nothing_captured(name: &str, built: Built) -> String {
    let why = match built {
        Built::ForCapture | Built::TwoRuntimes => "it ended before its runtime could begin",
        Built::Plain => {
            "it was not built for capture; build it with `foresee cc` or `foresee c++`, as in \
             make CC=\"foresee cc\""
        }
        Built::Static => {
            "it is statically linked, and the runtime stands between a program and its libraries; \
             link it dynamically, with `foresee cc`"
        }
        Built::Sanitizer => {
            "it was built with the compiler's own thread sanitizer; build it with `foresee cc` \
             instead"
        }
        Built::Starter => "no program that it started was built for capture",
    };
    format!("nothing was captured of {name}: {why}")
}

fn ordinal(n: usize) -> String {
    match n {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

/// `trace.fse` for the second process is `trace.2.fse`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    match path.extension() {
        Some(ending) => path.with_extension(format!("{number}.{}", ending.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}
