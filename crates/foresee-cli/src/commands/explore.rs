//! `foresee explore`: learns a program from its runs, searches every schedule, and runs it only where a fact is missing.

#[cfg(feature = "nats")]
pub(crate) mod remote;
mod report;
mod watch;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail};
use foresee_capture::explore::{Native, Options};
use foresee_capture::program::Program as Executable;
use foresee_explore::program::{Place, Program, Schedule, Tail, ThreadName};
use foresee_explore::script::Script;
use foresee_explore::{Finding, Journal, Opened, Progress, Settings, Spin, Trouble, explore};
use foresee_predict::info::{self, DEADLOCK, RACE};
use foresee_report::Report;
use foresee_support::count::count;
use indicatif::ProgressBar;

use crate::args::{ExploreArgs, SummaryFormat};
use crate::commands::run::{INTERRUPTED, STOPPED, catch_signals};
use crate::output::{self, Sink};
use crate::{progress, replayer};
use report::{plural, thousands, what};
use watch::{Asked, Looking, Watch, lock};

/// How often a finding is run again.
const REPLAYS: u32 = 3;
/// The folder of runs in which checks found something, inside that of what is kept.
const CHECKED: &str = "checked";

const COVERED: u8 = 0;
const FOUND: u8 = 1;
const NOT_ALL: u8 = 3;

pub(crate) fn run(args: &ExploreArgs) -> anyhow::Result<u8> {
    let settings = settings(args)?;
    let asked = Asked::new(&args.spec, &checks(args))?;
    let command = &args.command;
    let called = command[0].to_string_lossy().into_owned();
    let executable =
        Executable::find(&command[0]).with_context(|| format!("there is no program `{called}`"))?;
    // Names that the program does not have are mistakes.
    super::run::filter(&asked.of_specs(), &executable)?;
    let mut to = Sink::new(&args.output)?;
    let mut options = Options::new(command.clone());
    options.timeout = Duration::from_secs(args.timeout);
    options.before = args.before.clone();
    options.input = args.input.clone();
    options.trusted.clone_from(&args.trust);
    if args.private {
        // The folder is another one.
        options.is_private = true;
        options.command[0] = std::path::absolute(&executable.path)?.into();
    }
    let build_id = replayer::build_id(&executable);
    let kept_runs = args.keep.as_ref().map(|folder| folder.join(CHECKED));
    let (monitor, watch) = asked.prepare(called.clone(), build_id.clone(), kept_runs.clone())?;
    let mut runners: Vec<Box<dyn Program>> = Vec::new();
    match &args.queue {
        Some(url) => runners = remote_runners(url, &executable, args, &asked, &watch)?,
        None => {
            for _ in 0..args.jobs {
                runners.push(Box::new(native(&options, &asked, &watch)?));
            }
        }
    }
    let journal = match &args.keep {
        Some(folder) => {
            let owner = owner(args, asked.checks(), &build_id);
            Some(journal(folder, &owner, args.spec.is_empty())?)
        }
        None => None,
    };
    let unrepeated = match &kept_runs {
        Some(folder) => check_again(folder, &options, &asked, &watch)?,
        None => Vec::new(),
    };
    catch_signals();
    let bar = progress::bar("{spinner} {msg}");
    let explored = explore(&mut runners, &settings, monitor, journal, &mut |progress| {
        show(&bar, progress);
        !INTERRUPTED.load(Ordering::Relaxed) && STOPPED.load(Ordering::Relaxed) == 0
    });
    bar.finish_and_clear();
    let mut explored = explored?;
    explored.unreached.extend(unrepeated);
    let checked = lock(&watch).report().filter(|report| !report.findings.is_empty());
    add_observed(&mut explored.findings, &watch);
    let properties = asked.properties();
    let mut told = Vec::new();
    let mut confirming = native(&options, &asked, &watch)?;
    for (i, finding) in explored.findings.iter().enumerate() {
        let confirmed = confirm(&mut confirming, finding, &watch);
        let claim = report::claim(finding, &confirming, &properties);
        let script = Script {
            program: called.clone(),
            build_id: build_id.clone(),
            claim: claim.clone(),
            schedule: finding.schedule.clone(),
        };
        let saved = match &args.keep {
            Some(folder) => {
                let path = folder.join(format!("{}.schedule", i + 1));
                output::write_file(&path, &script.text())?;
                Some(path)
            }
            None => None,
        };
        told.push(Reported { claim, script, saved, confirmed });
    }
    let names = &confirming;
    let text = match args.format {
        SummaryFormat::Json => report::json(&called, &explored, &told, names, checked.as_ref()),
        SummaryFormat::Text => {
            let mut text = report::text(args, &called, &explored, &told, names);
            if let Some(checked) = &checked {
                if checked.findings.iter().any(|finding| finding.rule().starts_with(RACE)) {
                    text += "  With a race, compilers and processors promise no sequential consistency, so the program may do more than that.\n";
                }
                text += &foresee_report::text::report(
                    checked,
                    &foresee_report::text::Options::default(),
                );
            }
            text
        }
    };
    save_checked(args, checked.as_ref(), told.len())?;
    to.print(&text)?;
    to.finish()?;
    Ok(match () {
        () if !explored.findings.is_empty() || checked.is_some() => FOUND,
        () if explored.is_complete() => COVERED,
        () => NOT_ALL,
    })
}

/// Programs that workers run.
#[cfg(feature = "nats")]
fn remote_runners(
    url: &str,
    executable: &Executable,
    args: &ExploreArgs,
    asked: &Asked,
    watch: &Arc<Mutex<Watch>>,
) -> anyhow::Result<Vec<Box<dyn Program>>> {
    let server = super::worker::server(url, &args.server)?;
    remote::runners(&server, &executable.path, args, asked, watch)
}

#[cfg(not(feature = "nats"))]
fn remote_runners(
    _: &str,
    _: &Executable,
    _: &ExploreArgs,
    _: &Asked,
    _: &Arc<Mutex<Watch>>,
) -> anyhow::Result<Vec<Box<dyn Program>>> {
    bail!(super::worker::MISSING)
}

/// A program that shows its runs, if anything is asked of them.
fn native(options: &Options, asked: &Asked, watch: &Arc<Mutex<Watch>>) -> anyhow::Result<Native> {
    let mut native = Native::new(options.clone())?;
    if !asked.is_empty() {
        let looking = Looking { look: asked.look()?, watch: Arc::clone(watch) };
        native.observe(Arc::new(Mutex::new(looking)));
    }
    Ok(native)
}

/// Properties that are not decided along the search may be violated in runs all the same.
fn add_observed(findings: &mut Vec<Finding>, watch: &Mutex<Watch>) {
    for (&property, (run, schedule)) in &lock(watch).first {
        let trouble = Trouble::Violated(property);
        if !findings.iter().any(|finding| finding.trouble == trouble) {
            findings.push(Finding {
                trouble,
                thread: ThreadName::default(),
                place: Place(0),
                run: *run,
                detours: 0,
                schedule: schedule.clone(),
            });
        }
    }
}

/// The checks to make. What the search itself finds needs none: deadlocks.
fn checks(args: &ExploreArgs) -> Vec<String> {
    let is_asked = !args.check.is_empty() || !args.spec.is_empty();
    if args.no_checks || is_asked {
        return args.check.clone();
    }
    let defaults = info::ALL.iter().filter(|info| info.is_default && info.name != DEADLOCK);
    defaults.map(|info| info.name.to_owned()).collect()
}

/// Makes those kept runs again in which checks found something, because the journal does not have their traces. Returns which of
/// them could not be made again.
fn check_again(
    folder: &Path,
    options: &Options,
    asked: &Asked,
    watch: &Arc<Mutex<Watch>>,
) -> anyhow::Result<Vec<String>> {
    let cannot = |path: &Path| format!("cannot use {}", path.display());
    let mut unrepeated = Vec::new();
    let mut program = native(options, asked, watch)?;
    for path in watch::kept(folder).with_context(|| cannot(folder))? {
        let text = std::fs::read_to_string(&path).with_context(|| cannot(&path))?;
        let script = Script::parse(&text).with_context(|| cannot(&path))?;
        let execution = program.run(&to_its_end(&script))?;
        if let Some((at, why)) = execution.diverged {
            let path = path.display();
            unrepeated
                .push(format!("step {} of {path}, where a check found something: {why}", at + 1));
        }
    }
    Ok(unrepeated)
}

/// Keeps the schedules of what checks found, after those of failures.
fn save_checked(args: &ExploreArgs, checked: Option<&Report>, before: usize) -> anyhow::Result<()> {
    let (Some(folder), Some(checked)) = (&args.keep, checked) else { return Ok(()) };
    let schedules = checked.findings.iter().filter_map(|finding| finding.schedule.as_ref());
    for (i, schedule) in schedules.enumerate() {
        output::write_file(&folder.join(format!("{}.schedule", before + i + 1)), schedule)?;
    }
    Ok(())
}

/// A finding as it is reported.
struct Reported {
    claim: String,
    script: Script,
    saved: Option<PathBuf>,
    /// In how many of [`REPLAYS`] runs it happened again.
    confirmed: u32,
}

fn settings(args: &ExploreArgs) -> anyhow::Result<Settings> {
    let spin = match args.spin.as_deref() {
        None => Settings::default().spin,
        Some("collapse") => Spin::Collapse,
        Some(text) => {
            let rounds = text.strip_prefix("bound=").and_then(|rounds| rounds.parse().ok());
            Spin::Bound(rounds.context("--spin is `collapse` or `bound=N`")?)
        }
    };
    Ok(Settings {
        runs: args.runs,
        time: args.budget.map(Duration::from_secs),
        memory: args.max_memory.saturating_mul(1 << 20),
        detours: args.detours,
        spin,
        stops_at_first: !args.all,
        ..Settings::default()
    })
}

/// What a journal belongs to: the build, the arguments, the input, and the checks that its runs have passed.
fn owner(args: &ExploreArgs, checks: &[String], build_id: &str) -> Vec<u8> {
    let mut owner = format!("{} {build_id}", env!("CARGO_PKG_VERSION"));
    for check in checks {
        let _ = write!(owner, " ?{check}");
    }
    for argument in args.command.iter().skip(1) {
        let _ = write!(owner, " {}", argument.to_string_lossy());
    }
    for trusted in &args.trust {
        let _ = write!(owner, " ~{trusted}");
    }
    if let Some(input) = args.input.as_ref().and_then(|path| std::fs::read(path).ok()) {
        let _ = write!(owner, " <{:016x}", foresee_capture::replay::checksum(&input));
    }
    owner.into_bytes()
}

/// Opens the journal in a folder. Kept runs have no names for properties to see, so that with a specification all are made
/// again; `continues` says that there is none.
fn journal(folder: &Path, owner: &[u8], continues: bool) -> anyhow::Result<Journal> {
    let name = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {name}"))?;
    let path = folder.join(if continues { "runs" } else { "judged-runs" });
    if !continues {
        forget(&path)?;
        forget(&folder.join(CHECKED))?;
    }
    let open = |renews| {
        Journal::open(&path, owner, renews)
            .with_context(|| format!("cannot use {}", path.display()))
    };
    let opened = match open(false)? {
        Opened::Void => {
            output::note(&format!(
                "{name} is of another build, other arguments, another input or other checks: what is in it is void"
            ));
            forget(&folder.join(CHECKED))?;
            open(true)?
        }
        ready => ready,
    };
    match opened {
        Opened::Ready(journal) => {
            if !journal.is_empty() {
                let runs = count(journal.len(), "run");
                output::note(&format!("{name} has {runs}; what it has is not repeated"));
            }
            Ok(journal)
        }
        Opened::Void => bail!("{name} cannot be used"),
    }
}

/// Removes what was kept for something else, if it is there.
fn forget(path: &Path) -> anyhow::Result<()> {
    let removed = match path.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    match removed {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
            Err(why).with_context(|| format!("cannot use {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Runs a finding again, with all of its steps forced. That a property is violated, the ordinary monitors decide.
fn confirm(program: &mut dyn Program, finding: &Finding, watch: &Mutex<Watch>) -> u32 {
    let mut confirmed = 0;
    for _ in 0..REPLAYS {
        let Ok(execution) = program.run(&finding.schedule) else { continue };
        let is_it = match finding.trouble {
            Trouble::Violated(property) => lock(watch).violated.contains(&property),
            _ => Trouble::of(&execution).is_some_and(|trouble| trouble.is_like(&finding.trouble)),
        };
        confirmed += u32::from(is_it && execution.diverged.is_none());
    }
    confirmed
}

/// What `foresee replay` says about a schedule of an exploration.
pub(crate) enum Replayed {
    Confirmed(String),
    Diverged(String),
    Harmless,
}

/// Makes a program follow a schedule of an exploration.
pub(crate) fn replay(
    script: &Script,
    command: &[OsString],
    specs: &[PathBuf],
    timeout: Duration,
    is_silent: bool,
) -> anyhow::Result<Replayed> {
    let mut options = Options::new(command.to_vec());
    options.timeout = timeout;
    options.is_shown = !is_silent;
    let asked = Asked::new(specs, &[])?;
    let (_, watch) = asked.prepare(String::new(), String::new(), None)?;
    let mut native = native(&options, &asked, &watch)?;
    let schedule = to_its_end(script);
    let execution = native.run(&schedule)?;
    if let Some((at, why)) = &execution.diverged {
        let steps = schedule.steps.len();
        return Ok(Replayed::Diverged(format!("at step {} of {steps}: {why}", at + 1)));
    }
    Ok(match Trouble::of(&execution) {
        Some(trouble) => {
            let place = execution.events.last().map_or_else(String::new, |event| {
                format!(" at {}", native.place_name(event.place))
            });
            let place = if matches!(trouble, Trouble::Deadlock(_)) { String::new() } else { place };
            Replayed::Confirmed(format!("{}{place}", what(&trouble, &[])))
        }
        None => match lock(&watch).violated.iter().min() {
            Some(&property) => {
                Replayed::Confirmed(what(&Trouble::Violated(property), &asked.properties()))
            }
            None => Replayed::Harmless,
        },
    })
}

/// The schedule of a script, and what is left of the program after it.
fn to_its_end(script: &Script) -> Schedule {
    let most_operations = script.schedule.steps.len() + Settings::default().most_operations;
    Schedule { most_operations, tail: Tail::Straight, ..script.schedule.clone() }
}

fn show(bar: &ProgressBar, progress: &Progress) {
    if bar.is_hidden() {
        return;
    }
    let detours = progress.detours.map_or_else(String::new, |detours| {
        format!(", {} covered", plural(detours as usize, "detour"))
    });
    bar.set_message(format!(
        "{}, {} facts, {}, {}{detours}",
        plural(progress.runs as usize, "run"),
        thousands(progress.facts),
        plural(progress.states, "state"),
        plural(progress.findings, "finding"),
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
