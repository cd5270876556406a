//! `foresee run`: one execution of a program, captured, named and analysed.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_capture::launch::{Recording, launch};
use foresee_capture::log::{self, Log};
use foresee_capture::naming::{Naming, symbols_of};
use foresee_capture::program::{Built, Program};
use foresee_capture::summary::Summary;
use foresee_capture::symbols::{Symbols, Unmatched, Variable};
use foresee_capture::watch::Watch;
use foresee_spec::Diagnostic;
use foresee_trace::{Batch, Event, EventSink, EventSource, Id, Op, TargetKind, ThreadId, entry};

use crate::args::{CaptureMode, InputArgs, ReorderArg, RunArgs};
use crate::commands::check::{self, Wanted};
use crate::input::Input;
use crate::{input, output, specs};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let wanted = Wanted::new(&args.analysis)?;
    ensure!(
        !wanted.compiled.is_empty() || !wanted.analyses.is_empty() || args.keep.is_some(),
        "nothing to look for: give a specification with --spec FILE, a check with --check NAME, or \
         --keep PATH to store the trace"
    );
    let name = args.command[0].to_string_lossy().into_owned();
    let program =
        Program::find(&args.command[0]).with_context(|| format!("there is no program `{name}`"))?;
    if program.built == Built::TwoRuntimes {
        bail!(
            "`{name}` has the runtimes of both foresee and the thread sanitizer, and crashes at \
             start: link it with `foresee cc` alone, without -fsanitize=thread or -ltsan"
        );
    }
    let watch = watch(&wanted, &program)?;
    let folder = tempfile::tempdir().context("cannot make a folder for the log")?;
    let list = folder.path().join("watch");
    std::fs::write(&list, watch.text()).context("cannot write the list of what to watch")?;
    let logs = folder.path().join("logs");
    std::fs::create_dir(&logs).context("cannot make a folder for the log")?;
    let is_known = program.built == Built::ForCapture && watch.missing.is_empty();
    let is_maz = matches!(args.analysis.reorder, ReorderArg::Maz);
    let recording = Recording {
        is_free_running: args.mode == CaptureMode::Async,
        // Where critical sections swap every access matters; and variables that cannot be named
        // beforehand are complete only if everything is recorded.
        // And without the token the filter's books are not exact.
        is_unfiltered: args.all
            || args.mode == CaptureMode::Async
            || !wanted.compiled.is_empty() && (!is_maz || !is_known),
        watch: Some(&list),
        limit: args.log_limit.map(|mib| mib << 20),
    };
    let timeout = args.timeout.map(Duration::from_secs);
    // An interrupt is for the program; what it did until then is still to be told.
    let _ = ctrlc::set_handler(|| {});
    let ended = launch(&args.command, &logs, &recording, timeout)
        .with_context(|| format!("cannot run `{name}`"))?;
    if ended.timed_out {
        output::note(&format!("{name} was ended after {} seconds", ended.took.as_secs()));
    } else if !ended.status.success() {
        output::note(&format!("{name} {}", how_it_ended(ended.status)));
    }
    let found = log::find(&logs).context("cannot look for the log")?;
    if found.is_empty() {
        output::note(&nothing_captured(&name, program.built));
        return Ok(3);
    }
    report(args, wanted, &name, &found, folder.path())
}

/// Reports on every process that was captured; the gravest status is that of all.
fn report(
    args: &RunArgs,
    wanted: Wanted,
    name: &str,
    found: &[PathBuf],
    folder: &Path,
) -> anyhow::Result<u8> {
    let mut status = None;
    let mut absent = None;
    let mut wanted = Some(wanted);
    for (i, tail) in found.iter().enumerate() {
        let log = Log::open(tail).context("the log cannot be read")?;
        let symbols = symbols_of(&log);
        let ready = match wanted.take() {
            Some(wanted) => wanted,
            None => Wanted::new(&args.analysis)?,
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
        let notes = convert(&log, &symbols, &spelt, args, &path)
            .with_context(|| format!("{title}: the log cannot be made a trace"))?;
        if ready.compiled.is_empty() && ready.analyses.is_empty() {
            notes.iter().for_each(|note| output::note(note));
            output::note(&format!("the trace of {title} is in {}", path.display()));
            status = status.max(Some(0));
            continue;
        }
        let input = InputArgs { trace: path, input_format: None, repair: false };
        let trace = Input::titled(&input, title);
        let one = check::look(ready, &args.analysis, &trace, &notes)?;
        // What was found counts more than what was not looked at.
        status = status.max(Some(if one == 1 { 4 } else { one }));
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

/// Writes the log as a trace with names; what there is to say about it besides.
fn convert(
    log: &Log,
    symbols: &Symbols,
    spelt: &[(String, Variable)],
    args: &RunArgs,
    path: &Path,
) -> anyhow::Result<Vec<String>> {
    let private = match args.all || log.header.filtered {
        true => Private::default(),
        false => Private::of(&mut log.source(Naming::new(symbols, spelt))?, spelt)?,
    };
    let mut source = log.source(Naming::new(symbols, spelt))?;
    let format = foresee_formats::by_name("native")?;
    let cannot_write = || format!("cannot write {}", path.display());
    let mut sink = foresee_formats::create(path, format).with_context(cannot_write)?;
    sink.begin(source.remarks()).with_context(cannot_write)?;
    let bar = input::progress("naming");
    let mut batch = Batch::default();
    let mut is_first = true;
    let mut events = 0;
    while source.next_batch(&mut batch)? {
        batch.events.retain(|event| !private.has(event));
        if std::mem::take(&mut is_first) {
            let first = initial_values(&mut source, spelt, symbols, &batch)?;
            sink.write_batch(&first, source.names()).with_context(cannot_write)?;
        }
        sink.write_batch(&batch, source.names()).with_context(cannot_write)?;
        events += batch.events.len() as u64;
        bar.set_position(events);
    }
    bar.finish_and_clear();
    let summary = Summary::new(log, symbols, &args.trust);
    let mut remarks = source.remarks().clone();
    remarks.partial = summary.partial().or(remarks.partial);
    sink.finish(source.names(), &remarks).with_context(cannot_write)?;
    let mut notes = vec![summary.line(log, &source.stats())];
    for name in &summary.nameless {
        notes.push(format!("{name} has no debugging information: places and types are unknown"));
    }
    notes.append(&mut remarks.warnings);
    Ok(notes)
}

/// The variables that only one thread ever touches, and that no specification names. Whatever the
/// order of a run, such a thread sees what it wrote itself, so its accesses are left out.
#[derive(Default)]
struct Private {
    owners: Vec<Owner>,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Owner {
    #[default]
    Nobody,
    One(ThreadId),
    Many,
}

impl Private {
    /// Finds out in a pass over the trace.
    fn of(source: &mut impl EventSource, spelt: &[(String, Variable)]) -> anyhow::Result<Private> {
        let mut owners: Vec<Owner> = Vec::new();
        let mut batch = Batch::default();
        while source.next_batch(&mut batch)? {
            for event in batch.events.iter().filter(|e| e.op().target_kind() == TargetKind::Var) {
                let owner = entry(&mut owners, event.var().index());
                *owner = match *owner {
                    Owner::Nobody => Owner::One(event.thread()),
                    Owner::One(thread) if thread == event.thread() => Owner::One(thread),
                    _ => Owner::Many,
                };
            }
        }
        for (name, _) in spelt {
            if let Some(var) = source.names().vars.lookup(name) {
                *entry(&mut owners, var.index()) = Owner::Many;
            }
        }
        Ok(Private { owners })
    }

    fn has(&self, event: &Event) -> bool {
        let is_access = event.op().target_kind() == TargetKind::Var;
        let owner = |event: &Event| self.owners.get(event.var().index()).copied();
        is_access && matches!(owner(event), Some(Owner::One(_)))
    }
}

/// What the variables of the specifications held when the program began, as the first events.
fn initial_values(
    source: &mut impl EventSource,
    spelt: &[(String, Variable)],
    symbols: &Symbols,
    batch: &Batch,
) -> anyhow::Result<Batch> {
    let mut first = Batch::default();
    let Some(event) = batch.events.first() else { return Ok(first) };
    let mut seen = Vec::new();
    for (name, variable) in spelt {
        // Whoever spells it otherwise means the same.
        if seen.contains(&variable.address) {
            continue;
        }
        seen.push(variable.address);
        let bits = symbols.initial(variable.address, variable.scalar.size);
        let Some(value) = bits.and_then(|bits| variable.scalar.value(bits)) else { continue };
        let var = source.names_mut().vars.intern(name)?;
        let init = Event::new(event.thread(), Op::Init).with_target(var.0);
        first.events.push(init.with_values(&[value], &mut first.pool));
    }
    Ok(first)
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "did not end well".to_owned(),
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
