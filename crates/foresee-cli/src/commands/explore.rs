//! `foresee explore`: learns a program from its runs, searches every schedule, and runs it only where a fact is missing.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use foresee_capture::explore::{Native, Options};
use foresee_capture::program::Program as Executable;
use foresee_explore::program::{
    Failure, Operation, Patience, Program, Schedule, Tail, Told, Value,
};
use foresee_explore::script::Script;
use foresee_explore::{
    Contradiction, Covered, Did, Doubt, Explored, Finding, Journal, Opened, Progress, Settings,
    Spin, Stopped, Trouble, explore,
};
use foresee_predict::info::{DEADLOCK, PROGRAM_FAILURE};
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{ExploreArgs, SummaryFormat};
use crate::commands::run::{INTERRUPTED, STOPPED};
use crate::output::{self, Sink};
use crate::replayer;

/// How often a finding is run again.
const REPLAYS: u32 = 3;
/// The bytes of a state, about.
const STATE_BYTES: usize = 64;

const COVERED: u8 = 0;
const FOUND: u8 = 1;
const NOT_ALL: u8 = 3;

pub(crate) fn run(args: &ExploreArgs) -> anyhow::Result<u8> {
    let settings = settings(args)?;
    let command = &args.command;
    let called = command[0].to_string_lossy().into_owned();
    let executable =
        Executable::find(&command[0]).with_context(|| format!("there is no program `{called}`"))?;
    let mut to = Sink::new(&args.output)?;
    let mut options = Options::new(command.clone());
    options.timeout = Duration::from_secs(args.timeout);
    options.before = args.before.clone();
    options.input = args.input.clone();
    let mut runners: Vec<Box<dyn Program>> = Vec::new();
    for _ in 0..args.jobs {
        runners.push(Box::new(Native::new(options.clone())?));
    }
    let build_id = replayer::build_id(&executable);
    let journal = match &args.keep {
        Some(folder) => Some(journal(folder, &owner(args, &build_id))?),
        None => None,
    };
    let _ = signal_hook::flag::register(SIGINT, Arc::clone(&INTERRUPTED));
    for signal in [SIGTERM, SIGHUP] {
        let number = signal as usize;
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&STOPPED), number);
    }
    let mut shown = Shown::new();
    let explored = explore(&mut runners, &settings, None, journal, &mut |progress| {
        shown.show(progress);
        !INTERRUPTED.load(Ordering::Relaxed) && STOPPED.load(Ordering::Relaxed) == 0
    });
    shown.clear();
    let explored = explored?;
    let mut told = Vec::new();
    for (i, finding) in explored.findings.iter().enumerate() {
        let claim = claim(finding, &*runners[0]);
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
        let confirmed = confirm(&mut *runners[0], finding);
        told.push(Reported { claim, script, saved, confirmed });
    }
    let names = &*runners[0];
    let report = match args.format {
        SummaryFormat::Json => json_report(&called, &explored, &told, names),
        SummaryFormat::Text => text_report(args, &called, &explored, &told, names),
    };
    to.print(&report)?;
    to.finish()?;
    Ok(match () {
        () if !explored.findings.is_empty() => FOUND,
        () if explored.is_complete() => COVERED,
        () => NOT_ALL,
    })
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
    let time = match &args.budget {
        Some(text) => Some(duration(text).with_context(|| {
            format!("--budget is a time such as 60s, 5m or 1h, and not `{text}`")
        })?),
        None => None,
    };
    Ok(Settings {
        runs: args.runs,
        time,
        states: (args.max_memory << 20) / STATE_BYTES,
        detours: args.detours,
        spin,
        stops_at_first: !args.all,
        ..Settings::default()
    })
}

/// `60s`, `5m`, `1h`; seconds without a unit.
fn duration(text: &str) -> Option<Duration> {
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(digits) => (digits, text.chars().next_back()?),
        None => (text, 's'),
    };
    let seconds = match unit {
        'm' => 60,
        'h' => 3600,
        _ => 1,
    };
    Some(Duration::from_secs(digits.parse::<u64>().ok()?.checked_mul(seconds)?))
}

/// What a journal belongs to: the build, the arguments, the input.
fn owner(args: &ExploreArgs, build_id: &str) -> Vec<u8> {
    let mut owner = format!("{} {build_id}", env!("CARGO_PKG_VERSION"));
    for argument in args.command.iter().skip(1) {
        let _ = write!(owner, " {}", argument.to_string_lossy());
    }
    if let Some(input) = args.input.as_ref().and_then(|path| std::fs::read(path).ok()) {
        let _ = write!(owner, " <{:016x}", foresee_capture::replay::checksum(&input));
    }
    owner.into_bytes()
}

fn journal(folder: &Path, owner: &[u8]) -> anyhow::Result<Journal> {
    let name = folder.display();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {name}"))?;
    let path = folder.join("runs");
    let open = |renews| {
        Journal::open(&path, owner, renews)
            .with_context(|| format!("cannot use {}", path.display()))
    };
    let opened = match open(false)? {
        Opened::Void => {
            output::note(&format!(
                "{name} is of another build, other arguments or another input: what is in it is void"
            ));
            open(true)?
        }
        ready => ready,
    };
    match opened {
        Opened::Ready(journal) => {
            if !journal.is_empty() {
                output::note(&format!("{name} has {} runs, which are not repeated", journal.len()));
            }
            Ok(journal)
        }
        Opened::Void => bail!("{name} cannot be used"),
    }
}

/// Runs a finding again, with all of its steps forced.
fn confirm(program: &mut dyn Program, finding: &Finding) -> u32 {
    let mut confirmed = 0;
    for _ in 0..REPLAYS {
        if let Ok(execution) = program.run(&finding.schedule)
            && execution.diverged.is_none()
            && Trouble::of(&execution).is_some_and(|trouble| trouble.is_like(&finding.trouble))
        {
            confirmed += 1;
        }
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
    timeout: Duration,
    is_silent: bool,
) -> anyhow::Result<Replayed> {
    let mut options = Options::new(command.to_vec());
    options.timeout = timeout;
    options.is_shown = !is_silent;
    let mut native = Native::new(options)?;
    let most_operations = script.schedule.steps.len() + Settings::default().most_operations;
    let schedule = Schedule { most_operations, tail: Tail::Straight, ..script.schedule.clone() };
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
            Replayed::Confirmed(format!("{}{place}", what(&trouble)))
        }
        None => Replayed::Harmless,
    })
}

/// What went wrong, in words.
fn what(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Failed(Failure::Assertion) => "assertion".to_owned(),
        Trouble::Failed(Failure::Abort) => "abort".to_owned(),
        Trouble::Failed(Failure::Signal(signal)) => format!("signal {signal}"),
        Trouble::Failed(Failure::Sanitizer) => "sanitizer".to_owned(),
        Trouble::Exited(status) => format!("exit status {status}"),
        Trouble::Deadlock(_) => DEADLOCK.to_owned(),
        Trouble::Hung => "hang".to_owned(),
        Trouble::Violated(property) => format!("property {property}"),
    }
}

fn claim(finding: &Finding, names: &dyn Program) -> String {
    let what = what(&finding.trouble);
    match &finding.trouble {
        Trouble::Deadlock(all) => {
            let stands = all.iter().map(|(thread, operation, place)| {
                format!("{thread} {} at {}", waits(operation), names.place_name(*place))
            });
            format!("deadlock: {}", stands.collect::<Vec<_>>().join("; "))
        }
        _ => {
            let place = names.place_name(finding.place);
            match place.is_empty() {
                true => format!("thread {} ({what})", finding.thread),
                false => format!("{place} ({what})"),
            }
        }
    }
}

/// What a thread of a deadlock waits for.
fn waits(operation: &Operation) -> &'static str {
    match operation {
        Operation::Lock { .. } => "waits for a lock",
        Operation::WaitEnd { .. } => "waits for a condition",
        Operation::Join { .. } => "waits for the end of a thread",
        Operation::SemWait(..) => "waits for a semaphore",
        Operation::Pass(_) => "waits at a barrier",
        Operation::OnceBegin(_) => "waits for what is done once",
        _ => "stands",
    }
}

/// What a thread did, in words.
fn did(did: &Did, names: &dyn Program) -> String {
    let word = match did.operation {
        Operation::Load(_) => "read",
        Operation::Store(..) => "wrote",
        Operation::Modify(..) => "changed",
        Operation::Lock { patience: Patience::Wait, .. } => "locked",
        Operation::Lock { .. } => "tried to lock",
        Operation::Unlock { .. } => "unlocked",
        Operation::Wait { .. } => "waited for a condition",
        Operation::WaitEnd { .. } => "ended a wait",
        Operation::Signal(_) | Operation::Broadcast(_) => "signalled a condition",
        Operation::Fork(_) => "started a thread",
        Operation::Join { .. } => "joined a thread",
        Operation::End(_) => "ended",
        Operation::Exit(_) => "ended the process",
        Operation::Fail(_) => "failed",
        _ => "used a semaphore, a barrier or a guard",
    };
    let value = match did.told {
        Some(Told::Value(Value::Bits(bits))) => format!(" {bits:#x}"),
        Some(Told::Value(Value::Address(_))) => " an address".to_owned(),
        Some(Told::TimedOut) => " and its time was over".to_owned(),
        Some(Told::Busy) => " and did not get it".to_owned(),
        _ => String::new(),
    };
    format!("{word}{value} at {}", names.place_name(did.place))
}

/// Why coverage is not claimed.
fn doubt(doubt: &Doubt, names: &dyn Program) -> String {
    match doubt {
        Doubt::Contradiction(contradiction) => {
            let Contradiction { thread, after, first_run, first, second_run, second } =
                &**contradiction;
            let (first, second) = (did(first, names), did(second, names));
            match first_run {
                0 => format!(
                    "after {after} operations thread {thread} should have {first} by what was captured, and {second} in run {second_run}: \
                     something changed memory that was not captured"
                ),
                run => format!(
                    "after the same {after} operations thread {thread} {first} in run {run} and {second} in run {second_run}"
                ),
            }
        }
        Doubt::NotModelled { run, thread, place, why, .. } => {
            let place = names.place_name(*place);
            format!(
                "thread {thread} did something in run {run} at {place} that is not understood: {why}"
            )
        }
    }
}

/// With commas between the thousands.
fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn text_report(
    args: &ExploreArgs,
    called: &str,
    explored: &Explored,
    told: &[Reported],
    names: &dyn Program,
) -> String {
    let mut out = String::new();
    for (finding, told) in explored.findings.iter().zip(told) {
        let detours = plural(finding.detours as usize, "detour");
        let saved = match &told.saved {
            Some(path) => format!("schedule saved as {}", path.display()),
            None => "--keep DIR saves the schedule".to_owned(),
        };
        let _ = writeln!(
            out,
            "FAILED {} in run {}: {detours}, {saved}, replayed {} of {REPLAYS}.",
            told.claim, finding.run, told.confirmed
        );
    }
    for (i, why) in explored.doubts.iter().enumerate() {
        let head = if i == 0 { "NOT A FUNCTION OF ITS TRACE: " } else { "  also: " };
        let _ = writeln!(out, "{head}{}.", doubt(why, names));
    }
    if !explored.doubts.is_empty() {
        out += "  Findings stand, coverage is not claimed. Look for hidden input: time, random numbers, process ids, addresses, files, memory that is not instrumented.\n";
    }
    let (runs, states) = (plural(explored.runs as usize, "run"), plural(explored.states, "state"));
    let conditions = format!(
        "  for this input, at the granularity of captured operations, assuming sequential consistency{} and that each thread acts only on what was captured \
         ({runs}, no contradiction)\n",
        if explored.has_collapsed {
            ", that a thread which did and was told the same twice in a loop is waiting"
        } else {
            ""
        }
    );
    if explored.is_complete() && explored.findings.is_empty() {
        let _ = writeln!(
            out,
            "EXPLORED {called}: {runs}, {states}. Every schedule was covered: no crash, no failed assertion, no deadlock."
        );
        out += &conditions;
        return output::plain(&out);
    }
    if explored.is_complete() {
        let _ = writeln!(
            out,
            "EXPLORED {called}: {runs}, {states}. Every schedule was covered; all failures are listed."
        );
        out += &conditions;
        return output::plain(&out);
    }
    let covered = match explored.covered {
        _ if !explored.doubts.is_empty() || explored.unseen.is_some() => {
            "Nothing is claimed to be covered"
        }
        Covered::Detours(detours) => {
            &format!("Covered: every schedule with at most {}", plural(detours as usize, "detour"))
        }
        Covered::Everything if explored.unreached.is_empty() && !explored.has_cut => {
            "Nothing new was left to run"
        }
        Covered::Everything => "Covered: every schedule but what is listed here",
        Covered::Nothing => "Nothing was covered completely",
    };
    let head = if explored.findings.is_empty() { "NOT ALL" } else { "EXPLORED" };
    let _ = write!(out, "{head} {called}: {runs}, {states}. {covered}.");
    if explored.open > 0 {
        let open = plural(explored.open, "behaviour");
        let were = if explored.open == 1 { "was" } else { "were" };
        let _ = write!(out, " {open} beyond {were} predicted and not run.");
    }
    out.push_str(match explored.stopped {
        Stopped::Found => " It stopped at the first failure; --all goes on.",
        Stopped::Runs | Stopped::Time if args.keep.is_some() => {
            " Continue with the same --keep DIR."
        }
        Stopped::Runs | Stopped::Time => " Continue with --keep DIR.",
        Stopped::States => " The memory for states is used up: --max-memory allows more.",
        Stopped::Interrupted => " It was interrupted.",
        Stopped::Doubts | Stopped::Done => "",
    });
    out.push('\n');
    if let Some(unseen) = &explored.unseen {
        let _ = writeln!(out, "  Part of the program is not captured: {unseen}.");
    }
    if explored.has_cut {
        out += "  Loops that wait were cut after some rounds: --spin bound=N follows them further, --spin collapse takes them for waiting.\n";
    }
    for why in explored.unreached.iter().take(5) {
        let _ = writeln!(out, "  Not reached: {why}.");
    }
    if explored.unreached.len() > 5 {
        let _ = writeln!(out, "  Not reached: {} more.", explored.unreached.len() - 5);
    }
    output::plain(&out)
}

fn plural(n: usize, word: &str) -> String {
    format!("{} {word}{}", thousands(n as u64), if n == 1 { "" } else { "s" })
}

fn json_report(
    called: &str,
    explored: &Explored,
    told: &[Reported],
    names: &dyn Program,
) -> String {
    let (covered, detours) = match explored.covered {
        _ if !explored.doubts.is_empty() => ("nothing", None),
        Covered::Everything if explored.is_complete() => ("everything", None),
        Covered::Everything | Covered::Nothing => ("nothing", None),
        Covered::Detours(detours) => ("detours", Some(detours)),
    };
    let findings: Vec<_> = explored
        .findings
        .iter()
        .zip(told)
        .enumerate()
        .map(|(i, (finding, told))| {
            let rule = match finding.trouble {
                Trouble::Deadlock(_) => DEADLOCK,
                _ => PROGRAM_FAILURE,
            };
            json!({
                "id": i + 1, "kind": "observed", "rule": rule, "message": told.claim,
                "what": what(&finding.trouble), "thread": finding.thread.to_string(),
                "place": names.place_name(finding.place), "run": finding.run,
                "detours": finding.detours, "replayed": told.confirmed, "replays": REPLAYS,
                "schedule": told.script.text(),
            })
        })
        .collect();
    let doubts: Vec<String> = explored.doubts.iter().map(|why| doubt(why, names)).collect();
    let stopped = match explored.stopped {
        Stopped::Done => "done",
        Stopped::Found => "found",
        Stopped::Runs => "runs",
        Stopped::Time => "time",
        Stopped::States => "states",
        Stopped::Interrupted => "interrupted",
        Stopped::Doubts => "contradictions",
    };
    let object = json!({
        "foresee": env!("CARGO_PKG_VERSION"),
        "explored": {
            "program": called, "runs": explored.runs, "states": explored.states,
            "facts": explored.facts, "covered": covered, "detours": detours,
            "open": explored.open, "unreached": explored.unreached, "contradictions": doubts,
            "loops_cut": explored.has_cut, "loops_collapsed": explored.has_collapsed,
            "stopped": stopped, "unseen": explored.unseen,
        },
        "findings": findings,
        "summary": {"observed": explored.findings.len(), "predicted": 0},
    });
    foresee_report::json::visible(&format!("{object}\n"))
}

/// How far it is, on a terminal.
struct Shown {
    bar: Option<indicatif::ProgressBar>,
    last: Instant,
}

impl Shown {
    fn new() -> Shown {
        let is_shown = std::io::stderr().is_terminal();
        let bar = is_shown.then(|| {
            let bar = indicatif::ProgressBar::new_spinner();
            bar.set_draw_target(indicatif::ProgressDrawTarget::stderr_with_hz(5));
            bar
        });
        Shown { bar, last: Instant::now() }
    }

    fn show(&mut self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        // The first second is silent.
        if self.last.elapsed() < Duration::from_secs(1) {
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
        bar.tick();
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("60s"), Some(Duration::from_secs(60)));
        assert_eq!(duration("5m"), Some(Duration::from_secs(300)));
        assert_eq!(duration("1h"), Some(Duration::from_secs(3600)));
        assert_eq!(duration("7"), Some(Duration::from_secs(7)));
        assert_eq!(duration("s"), None);
        assert_eq!(duration("-1s"), None);
    }

    #[test]
    fn numbers_have_commas() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
