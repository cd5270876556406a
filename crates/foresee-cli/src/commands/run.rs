//! `foresee run`: one execution of a program, captured, named and analysed.

pub(crate) mod jvm;
mod live;
mod parts;
mod recorded;
mod replays;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use foresee_capture::failure;
use foresee_capture::filter::CaptureFilter;
use foresee_capture::jvm::{Agent, Injected};
use foresee_capture::launch::{Ended, Orphans, Recording, Timeouts, launch};
use foresee_capture::log::{self, Log};
use foresee_capture::lost;
use foresee_capture::naming::symbols_of;
use foresee_capture::program::{Built, Program};
use foresee_capture::scratch::Scratch;
use foresee_capture::store::Keep;
use foresee_capture::symbols::{Symbols, Unmatched, Variable};
use foresee_predict::info::PROGRAM_FAILURE;
use foresee_predict::session::{self, Examined, Session};
use foresee_report::{Parts, Report, Tests};
use foresee_spec::Diagnostic;
use foresee_trace::TraceInput;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{CaptureMode, Destination, ReorderArg, ReportFormat, RunArgs, Stacks};
use crate::commands::sending::{self, Sending};
use crate::commands::{check, worker};
use crate::output::{Sink, numbered};
use crate::{asked, output, progress, specs};
use live::{Conversion, Followed};

/// Whether an interrupt came while a program ran.
pub(crate) static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The signal that told us to end; zero if there was none.
pub(crate) static STOPPED: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let session = session(args)?;
    let to = Sink::new(&args.analysis.output)?;
    let to_stdout = args.analysis.output.output == Path::new("-");
    let is_drawn = args.analysis.lattice.is_some();
    ensure!(args.runs == 1 || !is_drawn, "--lattice draws one run: leave out --runs");
    ensure!(
        args.to.is_none() || args.analysis.format == ReportFormat::Text,
        "--to leaves the report to the observers: there is none to format"
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
    let agent = jvm::agent(args, &program)?;
    ensure!(
        agent.is_some() || args.include.is_empty() && args.exclude.is_empty(),
        "--include and --exclude name packages of Java programs, and `{name}` is none"
    );
    let mut filter = filter(&session, &program)?;
    let regions = session.settings().regions.iter().cloned();
    for method in regions.chain(session.atomics()) {
        let is_there = filter.functions_like(&program, &|name| method.matches_path(name));
        if !is_there && program.built == Built::ForCapture && !program.loads_more {
            output::note(&format!(
                "no function is called `{}`: it does not exist, or every call of it was inlined",
                method.as_str()
            ));
        }
    }
    if let Some(to) = &args.to {
        // Before the program runs for nothing.
        sending::ready(to, &args.publish)?;
    }
    let folder = Scratch::new().context("cannot make a folder for the log")?;
    let list = folder.path().join("watch");
    std::fs::write(&list, filter.text()).context("cannot write the list of what to watch")?;
    let is_known = program.built == Built::ForCapture && filter.missing.is_empty();
    let is_unfiltered = args.all
        // Steps are counted, and what is not recorded is not.
        || args.confirm
        || args.schedules.is_some()
        // Variables that cannot be named beforehand are complete only if everything is recorded,
        // and without the token the filter is not exact.
        || args.mode == CaptureMode::Async
        || session.goes_beyond_causality()
        // A trace that is published or kept may be analysed in any way later.
        || args.to.is_some()
        || args.keep.is_some() && !matches!(args.analysis.reorder, ReorderArg::Maz)
        || !session.specs().is_empty() && !is_known
        // Where objects are is not known beforehand either.
        || !object_types(&session).is_empty();
    catch_signals();
    let time = SearchTime { left: session.settings().limits.time, runs: args.runs as usize };
    let mut told = Reports { args, name: &name, to, all: Vec::new(), status: None, time };
    for run in 0..args.runs {
        told.time.runs = (args.runs - run) as usize;
        let folder = tempfile::tempdir_in(folder.path()).context("cannot make a folder")?;
        let recording = Recording {
            is_free_running: args.mode == CaptureMode::Async,
            is_unfiltered,
            has_stacks: args.stacks != Stacks::Off,
            watch: Some(&list),
            limit: (args.log_limit > 0).then(|| args.log_limit.saturating_mul(1 << 20)),
            seed: args.seed.wrapping_add(u64::from(run)),
            is_diverted: to_stdout && args.analysis.format != ReportFormat::Text,
            ..Recording::default()
        };
        let number = run + 1;
        let (session, name, program) = (&session, &*name, &program);
        let agent = agent.as_ref();
        let one = Run { args, session, name, program, agent, number, recording };
        one.make(folder.path(), &mut told)?;
        if INTERRUPTED.load(Ordering::Relaxed) || STOPPED.load(Ordering::Relaxed) != 0 {
            break;
        }
    }
    told.finish()
}

/// The reports of all runs.
struct Reports<'a> {
    args: &'a RunArgs,
    name: &'a str,
    to: Sink,
    /// With their runs; the reports of a single run are printed at once.
    all: Vec<(String, Report)>,
    status: Option<u8>,
    time: SearchTime,
}

/// What is left of the time for the searches in all processes of all runs.
struct SearchTime {
    left: Option<Duration>,
    /// How many runs share it, the present one among them.
    runs: usize,
}

impl SearchTime {
    /// Analyses the next of the run's remaining processes in its share of the time.
    fn examine(
        &mut self,
        processes: usize,
        session: &Session,
        trace: &dyn TraceInput,
    ) -> anyhow::Result<Examined> {
        let sharing = u32::try_from(self.runs.max(1) * processes.max(1)).unwrap_or(u32::MAX);
        let examined = check::examine_within(self.left.map(|left| left / sharing), session, trace)?;
        self.left = self.left.map(|left| left.saturating_sub(examined.searched));
        Ok(examined)
    }
}

impl Reports<'_> {
    fn note(&mut self, status: u8) {
        // Findings take precedence over an incomplete search.
        let weight = |status: u8| if status == 1 { 4 } else { status };
        self.status = Some(
            self.status.map_or(status, |s| if weight(s) < weight(status) { status } else { s }),
        );
    }

    fn put(&mut self, seed: u64, report: Report) -> anyhow::Result<()> {
        match self.args.runs {
            1 => {
                let status = check::show(&self.args.analysis, report, &mut self.to)?;
                self.note(status);
            }
            _ => self.all.push((format!("--seed {seed}"), report)),
        }
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<u8> {
        let runs = self.args.runs as usize;
        if let Some(mut merged) =
            foresee_report::merge(std::mem::take(&mut self.all), Parts::Runs(runs))
        {
            merged.name = format!("{} ({runs} runs)", self.name);
            let status = check::show(&self.args.analysis, merged, &mut self.to)?;
            self.note(status);
        }
        self.to.finish()?;
        Ok(self.status.unwrap_or(3))
    }
}

/// Whether nothing runs that a signal could be meant for.
static IDLE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Leaves signals to a program that runs under foresee: what it did until then is still reported. Once it has
/// ended, they end foresee.
pub(crate) fn catch_signals() {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&IDLE));
    }
    // An interrupt of the terminal reaches the program, too.
    let _ = signal_hook::flag::register(SIGINT, Arc::clone(&INTERRUPTED));
    for signal in [SIGTERM, SIGHUP] {
        let number = signal as usize;
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&STOPPED), number);
    }
}

/// Runs a program that signals are for.
pub(crate) fn under_signals<T>(run: impl FnOnce() -> T) -> T {
    IDLE.store(false, Ordering::SeqCst);
    let ended = run();
    IDLE.store(true, Ordering::SeqCst);
    ended
}

/// One run of the program.
struct Run<'a> {
    args: &'a RunArgs,
    session: &'a Session,
    name: &'a str,
    program: &'a Program,
    agent: Option<&'a Agent>,
    number: u32,
    recording: Recording<'a>,
}

impl Run<'_> {
    /// Runs the program and reports on it.
    fn make(&self, folder: &Path, told: &mut Reports<'_>) -> anyhow::Result<()> {
        let Run { args, name, program, .. } = *self;
        let logs = folder.join("logs");
        std::fs::create_dir(&logs).context("cannot make a folder for the log")?;
        let timeouts = Timeouts {
            timeout: args.timeout.map(Duration::from_secs),
            is_interrupted: &INTERRUPTED,
            stop: &STOPPED,
            on_orphans: &mut |left| output::note(&orphans_note(name, &left)),
        };
        let (mut command, mut recording) = (&args.command, self.recording.clone());
        let relay = match (self.agent, &args.to) {
            (Some(_), Some(Destination::Queue(url))) => {
                let path = folder.join("relay");
                Some((worker::relay(url, &args.publish, &path)?, path))
            }
            _ => None,
        };
        let socket = relay.as_ref().map(|(_, path)| path.as_path());
        let injected = self.agent.map(|agent| jvm::inject(agent, self, folder, &logs, socket));
        let injected = injected.transpose()?;
        match &injected {
            Some(Injected::Command(other)) => command = other,
            Some(Injected::Variable(name, value)) => {
                recording.variable = Some((name, value.clone()))
            }
            None => {}
        }
        let object_types = object_types(self.session);
        let file_name = self.file_name();
        let conversion = self.conversion(&object_types, &file_name);
        let copies = folder.join("copies");
        std::fs::create_dir(&copies).context("cannot make a folder for the log")?;
        let is_over = AtomicBool::new(false);
        let (ended, mut followed) = std::thread::scope(|scope| {
            let (logs, copies, is_over) = (&logs, &copies, &is_over);
            let follow = |to| scope.spawn(move || conversion.follow(to, logs, copies, is_over));
            let following = args.to.as_ref().map(follow);
            let ended = under_signals(|| launch(command, logs, &recording, timeouts));
            is_over.store(true, Ordering::Relaxed);
            let followed = following.map(|thread| thread.join());
            let followed = followed.map(|all| all.unwrap_or_else(|p| std::panic::resume_unwind(p)));
            (ended, followed.unwrap_or_default())
        });
        let ended = ended.with_context(|| format!("cannot run `{name}`"))?;
        let how = failure::how(&ended);
        if let Some(how) = &how {
            output::note(&format!("{name} {how}"));
        }
        let how = how.filter(|_| !args.ignore_program_failure && !ended.is_stopped);
        let mut failed = how.as_ref().map(|how| Failed { how, ended: &ended });
        let found = log::find(&logs).context("cannot look for the log")?;
        let jvms = foresee_capture::jvm::find(&logs).context("cannot look for the log")?;
        let recorded = foresee_formats::recorded::find(&logs).context("cannot look for the log")?;
        let passed_on = relay.map(|(relay, _)| relay.finish());
        let is_any_jvm = passed_on.as_ref().map_or(!jvms.is_empty(), |runs| !runs.is_empty());
        failed = match passed_on {
            Some(runs) => self.published_jvms(runs, failed, told)?,
            None => self.report_jvms(&jvms, failed, told)?,
        };
        failed = self.report_recorded(&recorded, failed, told)?;
        if found.is_empty() {
            let is_anything = is_any_jvm || !recorded.is_empty();
            let lost = lost::find(&logs, &[]);
            match lost.as_slice() {
                [] if is_anything => {}
                [] if foresee_capture::jvm::is_java(&args.command[0]) => output::note(&format!(
                    "nothing was captured of {name}: it ran no JVM, or the agent could not begin \
                     there and said why"
                )),
                [] => output::note(&nothing_captured(name, program.built)),
                lost => lost.iter().for_each(|lost| output::note(&format!("{name}: {lost}"))),
            }
            if !is_anything || !lost.is_empty() {
                told.note(3);
            }
            return match failed {
                Some(failed) => told.put(self.recording.seed, failed.report(name)),
                None => Ok(()),
            };
        }
        self.report(&logs, &found, (conversion, &mut followed), failed, told)
    }
}

/// A failure of the program that has not been reported yet.
#[derive(Clone, Copy)]
struct Failed<'e> {
    how: &'e str,
    ended: &'e Ended,
}

impl Failed<'_> {
    /// Whether the failure belongs in this process's report: the process that failed or hung, or
    /// the first one if that was not captured.
    fn is_of(&self, number: usize, log: &Log, logs: &[Log]) -> bool {
        let is_it = |log: &Log| match self.ended.hung.as_slice() {
            [] => log.header.pid == self.ended.process,
            hung => hung.contains(&log.header.pid),
        };
        is_it(log) || number == 0 && !logs.iter().any(is_it)
    }

    /// The report on a program of which nothing was captured.
    fn report(&self, name: &str) -> Report {
        let found = vec![failure::finding(PROGRAM_FAILURE, (name, self.how), self.ended, None)];
        session::Report::without_trace(name, found).into()
    }
}

/// What to look for: by default, everything that needs no specification.
fn session(args: &RunArgs) -> anyhow::Result<Session> {
    let mut session = asked::everything(&args.analysis)?;
    if session.specs().is_empty() && args.analysis.check.is_empty() {
        session.add_default_checks();
    }
    Ok(session)
}

/// The command line of this process with `--confirm`, to be typed into a shell.
fn confirming() -> String {
    let given = env::args_os().skip(2);
    let words = given.map(|word| shell_word(&word.to_string_lossy()));
    ["foresee run --confirm".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// A word that a shell takes as it is.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%^".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Run<'_> {
    /// Reports on every process that was captured.
    fn report(
        &self,
        folder: &Path,
        found: &[PathBuf],
        (conversion, followed): (Conversion<'_>, &mut Followed),
        mut failed: Option<Failed<'_>>,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<()> {
        let Run { args, session, name, .. } = *self;
        told.to.rerun = Some(confirming());
        let mut absent = None;
        let mut is_any = false;
        let memory = conversion.memory();
        let bar = progress::events("reading");
        let mut show = |records| bar.set_position(records);
        let keep = conversion.keep;
        let logs: Result<Vec<Log>, _> =
            found.iter().map(|tail| Log::open_within(tail, memory / 4, keep, &mut show)).collect();
        bar.finish_and_clear();
        let logs = logs.context("the log cannot be read")?;
        let mut lost = lost::find(folder, &logs);
        for (i, log) in logs.iter().enumerate() {
            let symbols = symbols_of(log);
            let (spec_vars, missing) = spec_vars(session, &symbols);
            // A process that runs another program has nothing to do with the specification.
            if let Some(missing) = missing {
                absent = Some(missing);
                continue;
            }
            is_any = true;
            let title = match i {
                0 => name.to_owned(),
                _ => {
                    format!("{name} (process {}, the {} captured)", log.header.pid, ordinal(i + 1))
                }
            };
            let bar = progress::events("naming");
            let mut progress = |events| bar.set_position(events);
            let trace = conversion.trace(log, &symbols, &spec_vars, &title, &mut progress);
            bar.finish_and_clear();
            let mut trace = trace?;
            lost.drain(..).for_each(|lost| trace.add_partial(&lost.to_string()));
            self.keep(i, &trace)?;
            if let Some(to) = &args.to {
                self.publish(to, followed.take(&found[i]), &trace, told)?;
                continue;
            }
            let notes = std::mem::take(&mut trace.notes);
            let mut examined = told.time.examine(logs.len() - i, session, &trace)?;
            let report = &mut examined.report;
            let failed_before = failed.as_ref().map(|failed| failed.how.to_owned());
            if let Some(failed) = failed.take_if(|failed| failed.is_of(i, log, &logs)) {
                let it = Some((log, &symbols));
                let what = (name, failed.how);
                report.put_first(vec![failure::finding(PROGRAM_FAILURE, what, failed.ended, it)]);
            }
            report.remarks.warnings.splice(0..0, notes);
            self.replay(&trace, i, failed_before.as_deref(), &mut report.findings)?;
            if args.runs > 1 {
                told.put(self.recording.seed, Report::of(examined, &Tests::default()))?;
                continue;
            }
            if !report.findings.is_empty() && args.mode == CaptureMode::Sync {
                let seed = format!("the schedule came from --seed {}", args.seed);
                report.remarks.warnings.push(seed);
            }
            let tests = Tests::default();
            let status = check::tell(&args.analysis, examined, &tests, &mut told.to)?;
            told.note(status);
        }
        match (failed, absent) {
            (_, Some(missing)) if !is_any => Err(missing.into()),
            (Some(failed), _) => told.put(self.recording.seed, failed.report(name)),
            (None, _) => Ok(()),
        }
    }

    /// The accesses that its questions need. A trace that is stored may be asked other questions later.
    fn kept_accesses(&self) -> Keep {
        let is_stored = self.args.keep.is_some() || self.args.to.is_some();
        match self.args.all {
            true => Keep::Everything,
            false if self.session.ignores_settled() && !is_stored => Keep::Unsettled,
            false => Keep::Shared,
        }
    }

    /// Sends a trace to observers; what they know of its beginning was sent before.
    fn publish(
        &self,
        to: &Destination,
        sending: Option<anyhow::Result<Sending>>,
        trace: &dyn TraceInput,
        told: &mut Reports<'_>,
    ) -> anyhow::Result<()> {
        let title = trace.name();
        let mut source = trace.open().with_context(|| title.clone())?;
        let order = source.remarks().order;
        let anew = || self.conversion(&[], &self.file_name()).sending(to, order, false);
        let sent = sending.unwrap_or_else(anew).and_then(|sending| sending.finish(&mut *source));
        let (what, status) = sent.with_context(|| title.clone())?;
        told.to.print(&format!("{title}: {what}\n"))?;
        told.note(status);
        Ok(())
    }

    /// How logs of its processes become traces.
    fn conversion<'c>(&'c self, object_types: &'c [String], name: &'c str) -> Conversion<'c> {
        let Run { args, session, .. } = *self;
        Conversion { args, session, object_types, name, keep: self.kept_accesses() }
    }

    /// What the program is called in a queue.
    fn file_name(&self) -> String {
        let path = Path::new(self.name);
        path.file_name()
            .map_or_else(|| self.name.to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// `trace.fse` of the second run is `trace.run2.fse`.
    fn numbered(&self, path: &Path) -> PathBuf {
        numbered(path, &format!("run{}", self.number))
    }
}

/// The variables and functions of the specifications in the program's files. Names that do not
/// exist there are errors, unless the program may load more files.
pub(crate) fn filter(session: &Session, program: &Program) -> anyhow::Result<CaptureFilter> {
    let mut filter = CaptureFilter::default();
    if program.built != Built::ForCapture {
        return Ok(filter);
    }
    for source in session.specs() {
        let before = filter.missing.len();
        let variables = foresee_spec::variables(&source.spec);
        variables.iter().for_each(|(name, _)| filter.variable(program, name));
        let methods = foresee_spec::methods(&source.spec);
        let mut diagnostics = diagnose(&filter.missing[before..], &variables);
        for (name, span) in methods {
            if !filter.function(program, name) {
                let message = format!("the program has no function `{name}`");
                let diagnostic =
                    Diagnostic::error("unknown-function", message, span, "never called");
                let help =
                    "it does not exist, or every call of it was inlined: compile with -fno-inline";
                diagnostics.push(diagnostic.help(help));
            }
        }
        if !program.loads_more && !diagnostics.is_empty() {
            return Err(specs::BadSpec::of(&source.bad(diagnostics)).into());
        }
    }
    Ok(filter)
}

/// The types of the objects that the specifications are about.
pub(crate) fn object_types(session: &Session) -> Vec<String> {
    let types = session.specs().iter().flat_map(|source| foresee_spec::object_types(&source.spec));
    types.map(|(of, _)| of.to_owned()).collect()
}

/// The most fields of objects of static lifetime that are looked at: more objects than are checked.
const MOST_FIELDS: usize = 100_000;

/// The variables of the specifications in a process, and an error for those it does not have.
pub(crate) fn spec_vars(
    session: &Session,
    symbols: &Symbols,
) -> (Vec<(String, Variable)>, Option<specs::BadSpec>) {
    let (mut spec_vars, mut wrong) = (Vec::new(), None);
    // Fields of objects have the type of the object in their names, also where they are named otherwise.
    let types = session.specs().iter().flat_map(|source| foresee_spec::object_types(&source.spec));
    spec_vars.extend(symbols.fields_of(&types.collect::<Vec<_>>(), MOST_FIELDS));
    let of_objects = spec_vars.len();
    for source in session.specs() {
        let variables = foresee_spec::variables(&source.spec);
        let mut missing = Vec::new();
        for (name, _) in &variables {
            match symbols.find(name) {
                Ok(variable) => {
                    let known = spec_vars[..of_objects].iter();
                    let same = known.rev().find(|(_, it)| it.address == variable.address);
                    let name = same.map_or((*name).to_owned(), |(tagged, _)| tagged.clone());
                    spec_vars.push((name, variable));
                }
                Err(unmatched) => missing.push(unmatched),
            }
        }
        if !missing.is_empty() {
            let diagnostics = diagnose(&missing, &variables);
            wrong = Some(specs::BadSpec::of(&source.bad(diagnostics)));
        }
    }
    (spec_vars, wrong)
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

fn orphans_note(name: &str, left: &Orphans<'_>) -> String {
    let list = |processes: &[u32]| {
        let es = if processes.len() == 1 { "" } else { "es" };
        let numbers: Vec<String> = processes.iter().map(u32::to_string).collect();
        format!("process{es} {} that it started", numbers.join(", "))
    };
    match left {
        Orphans::Recorded(left) => format!("{name} has ended; waiting for the {}", list(left)),
        Orphans::NotRecorded(left) => {
            format!("{name} has ended; the {} still run, and are not recorded", list(left))
        }
    }
}

fn nothing_captured(name: &str, built: Built) -> String {
    let why = match built {
        Built::ForCapture | Built::TwoRuntimes => "it ended before its runtime could begin",
        Built::Plain => {
            "it was not built for capture; build it with `foresee cc` or `foresee c++`, as in \
             make CC=\"foresee cc\", or record with the crate `foresee` if it is a Rust program"
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
