//! Makes a program follow a schedule, and has the new trace judged.
//!
//! The ladder: every step is checked first; if that diverges, only the changes of threads are forced; then the thread of the
//! violating step goes first or last afterwards; then threads really sleep. The first rung on which the failure shows confirms
//! it. Nothing that happens here refutes a prediction.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use foresee_capture::failure;
use foresee_capture::launch::{Ended, Recording, Timeouts, launch};
use foresee_capture::log::{self, Log};
use foresee_capture::naming::symbols_of;
use foresee_capture::program::{Built, Program};
use foresee_capture::replay::script::{self, After, Mode, Way};
use foresee_capture::replay::{
    Claim, Got, Place, Progress, Reason, Schedule, State, checksum, op_name,
};
use foresee_capture::scratch::Scratch;
use foresee_capture::store::LogConversion;
use foresee_capture::symbols::Symbols;
use foresee_predict::session::{Session, Silent};
use foresee_trace::{Confirmation, Confirmed, Finding, FindingKind, Verdict};

use crate::commands::run::{INTERRUPTED, STOPPED, filter, spec_vars};

/// The result of a replay.
pub(crate) enum Outcome {
    /// The failure happened.
    Confirmed(String),
    /// The schedule could not be followed.
    Diverged(String),
    /// The program could not be controlled.
    NotForced(String),
    /// The schedule was followed to its end, and the failure did not happen.
    Harmless,
}

impl Outcome {
    /// As a label of a finding.
    pub(crate) fn label(self) -> Confirmation {
        let (is, how) = match self {
            Outcome::Confirmed(how) => (Confirmed::Yes, how),
            Outcome::Diverged(how) => (Confirmed::Diverged, how),
            Outcome::NotForced(how) => (Confirmed::NotForced, how),
            Outcome::Harmless => (
                Confirmed::NotForced,
                "the program followed the schedule to its end and did not fail".to_owned(),
            ),
        };
        Confirmation { is, how }
    }
}

/// A program to replay.
pub(crate) struct Replayer<'a> {
    pub(crate) session: &'a Session,
    pub(crate) program: &'a Program,
    pub(crate) command: &'a [OsString],
    pub(crate) trusted: &'a [String],
    /// The memory limit of a trace, in bytes.
    pub(crate) memory: usize,
    /// The time limit of one attempt.
    pub(crate) timeout: Duration,
    /// Whether the program's output is dropped.
    pub(crate) is_silent: bool,
    /// Whether every step is printed.
    pub(crate) is_traced: bool,
}

/// One run along a schedule.
struct Attempt {
    progress: Progress,
    /// What the monitors and checks say that the schedule claims.
    convicted: Option<String>,
    /// How the program failed.
    failed: Option<String>,
    /// What a thread did instead of the next step, and where.
    got: String,
}

/// What was run of a rung.
const STRICT: Way = Way { mode: Mode::Strict, after: After::All, sleeps: false };

impl Replayer<'_> {
    /// Climbs the ladder until the failure happens or the time is over.
    pub(crate) fn replay(
        &self,
        schedule: &Schedule,
        deadline: Option<Instant>,
    ) -> anyhow::Result<Outcome> {
        if self.program.built != Built::ForCapture {
            let why = "the program was not built with `foresee cc` or `foresee c++`";
            return Ok(Outcome::NotForced(why.to_owned()));
        }
        let moved;
        let is_same = schedule.build_id.is_empty() || build_id(self.program) == schedule.build_id;
        let schedule = match is_same {
            true => schedule,
            false => match self.moved(schedule)? {
                Ok(found) => {
                    moved = found;
                    &moved
                }
                Err(outcome) => return Ok(outcome),
            },
        };
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut best: Option<(usize, String)> = None;
        let mut follows = None;
        let first = is_same.then_some(Mode::Strict);
        for mode in first.into_iter().chain([Mode::Switch]) {
            let way = Way { mode, ..STRICT };
            let attempt = self.attempt(schedule, way)?;
            let Some(attempt) = attempt else { return Ok(nothing_recorded()) };
            if let Some(how) = confirms(schedule, &attempt, way) {
                return Ok(Outcome::Confirmed(how));
            }
            if attempt.progress.state == State::Followed {
                follows = Some(mode);
                break;
            }
            let (at, text) = describe(schedule, mode, &attempt);
            if best.as_ref().is_none_or(|best| at > best.0) {
                best = Some((at, text));
            }
            if is_late() || is_interrupted() {
                break;
            }
        }
        let mode = follows.unwrap_or(Mode::Switch);
        let rest = [
            Way { mode, after: After::ViolatorFirst, sleeps: false },
            Way { mode, after: After::OthersFirst, sleeps: false },
            Way { mode: Mode::Switch, after: After::All, sleeps: true },
        ];
        // Without an end of the schedule, only real time can make a difference.
        let has_followed = follows.is_some();
        for way in rest.into_iter().filter(|way| has_followed || way.sleeps) {
            if is_late() || is_interrupted() {
                break;
            }
            let attempt = self.attempt(schedule, way)?;
            if let Some(attempt) = attempt {
                if let Some(how) = confirms(schedule, &attempt, way) {
                    return Ok(Outcome::Confirmed(how));
                }
                if attempt.progress.state == State::Followed {
                    follows.get_or_insert(way.mode);
                }
            }
        }
        Ok(match (follows, best) {
            (None, Some((_, text))) => Outcome::Diverged(text),
            _ => Outcome::Harmless,
        })
    }

    /// The schedule for another build of the program: a plain run of that shows where the places are now.
    fn moved(&self, schedule: &Schedule) -> anyhow::Result<Result<Schedule, Outcome>> {
        let scratch = Scratch::new().context("cannot make a folder for the log")?;
        let ended = self.launch(scratch.path(), None)?;
        let Some(tail) = log::find(&scratch.path().join("logs"))?.into_iter().next() else {
            return Ok(Err(nothing_recorded()));
        };
        let log = Log::open_within(&tail, self.memory / 4).context("the log cannot be read")?;
        let (moved, lost) = schedule.moved_to(&log, &symbols_of(&log))?;
        let needed = script::told(schedule, Mode::Switch);
        if let Some(&first) = lost.iter().find(|step| needed.contains(step)) {
            let how = failure::how(&ended).map_or(String::new(), |how| format!(", which {how}"));
            return Ok(Err(Outcome::Diverged(format!(
                "at step {} of {}: expected {}; a plain run of this build{how} has no such step in its function",
                first + 1,
                schedule.steps.len(),
                step_text(schedule, first),
            ))));
        }
        Ok(Ok(moved))
    }

    /// Runs the program along a schedule; `None` if nothing was recorded of it.
    fn attempt(&self, schedule: &Schedule, way: Way) -> anyhow::Result<Option<Attempt>> {
        let scratch = Scratch::new().context("cannot make a folder for the log")?;
        let script = scratch.path().join("script");
        script::write(schedule, way, &script).context("cannot write the schedule")?;
        let ended = self.launch(scratch.path(), Some(&script))?;
        let found = log::find(&scratch.path().join("logs")).context("cannot look for the log")?;
        for tail in found {
            let log = Log::open_within(&tail, self.memory / 4);
            let log = log.context("the log cannot be read")?;
            if log.header.replay.state != State::Off {
                return self.judge(schedule, way, &log, &ended).map(Some);
            }
        }
        Ok(None)
    }

    /// Runs the program, along a schedule if there is one, and records it in a folder.
    fn launch(&self, folder: &Path, script: Option<&Path>) -> anyhow::Result<Ended> {
        let (logs, list) = (folder.join("logs"), folder.join("watch"));
        std::fs::create_dir(&logs).context("cannot make a folder for the log")?;
        let mut wishes = filter(self.session, self.program)?;
        let regions = self.session.settings().regions.iter().cloned();
        for method in regions.chain(self.session.atomics()) {
            wishes.functions_like(self.program, &|name| method.matches_path(name));
        }
        std::fs::write(&list, wishes.text()).context("cannot write the list of what to watch")?;
        let recording = Recording {
            is_unfiltered: true,
            watch: Some(&list),
            limit: Some(foresee_capture::launch::LOG_LIMIT),
            seed: 1,
            script,
            is_silent: self.is_silent || script.is_none(),
            ..Recording::default()
        };
        let timeouts = Timeouts {
            timeout: Some(self.timeout),
            is_interrupted: &INTERRUPTED,
            stop: &STOPPED,
            on_orphans: &mut |_| {},
        };
        launch(self.command, &logs, &recording, timeouts)
            .with_context(|| format!("cannot run `{}`", self.command[0].to_string_lossy()))
    }

    /// Has the new trace judged.
    fn judge(
        &self,
        schedule: &Schedule,
        way: Way,
        log: &Log,
        ended: &Ended,
    ) -> anyhow::Result<Attempt> {
        let symbols = symbols_of(log);
        let progress = log.header.replay;
        let got = got(schedule, &progress.got, log, &symbols);
        if self.is_traced {
            self.trace(schedule, way.mode, &progress, &got);
        }
        let is_diverged = matches!(progress.state, State::Diverged(_));
        let failed = failure::how(ended).filter(|_| !is_diverged && !ended.is_stopped);
        let failed = failed.filter(|_| !ended.timed_out);
        let (spec_vars, _) = spec_vars(self.session, &symbols);
        let conversion = LogConversion {
            log,
            symbols: &symbols,
            spec_vars: &spec_vars,
            trusted: self.trusted,
            keeps_private: false,
            memory: self.memory,
        };
        let trace = conversion.read("replay".to_owned(), &mut |_| {});
        let trace = trace.context("the log of the replay cannot be made a trace")?;
        let examined = self.session.run(&trace, &mut Silent).map_err(crate::specs::failed)?;
        if self.is_traced {
            for found in &examined.report.findings {
                let (kind, rule) = (found.kind.word(), found.rule());
                crate::output::raw(&format!("{kind} {rule}: {}", found.message));
            }
        }
        let claim = schedule.claim.as_ref();
        let found = examined.report.findings.iter();
        let convicted = claim.and_then(|claim| found.clone().find(|found| convicts(claim, found)));
        let convicted = convicted.map(|found| found.message.clone());
        Ok(Attempt { progress, convicted, failed, got })
    }

    /// Prints the steps that were taken.
    fn trace(&self, schedule: &Schedule, mode: Mode, progress: &Progress, got: &str) {
        let told = script::told(schedule, mode);
        for &i in told.iter().take(progress.at as usize) {
            crate::output::raw(&format!("{}\n", step_text(schedule, i)));
        }
        if matches!(progress.state, State::Diverged(_)) {
            crate::output::raw(&format!("diverged: {got}\n"));
        }
    }
}

fn is_interrupted() -> bool {
    use std::sync::atomic::Ordering::Relaxed;
    INTERRUPTED.load(Relaxed) || STOPPED.load(Relaxed) != 0
}

fn nothing_recorded() -> Outcome {
    let why = "no process of the program followed the schedule: it ended before its runtime could begin, or is an older build";
    Outcome::NotForced(why.to_owned())
}

/// Whether what was found is what a schedule claims.
fn convicts(claim: &Claim, found: &Finding) -> bool {
    if found.kind == FindingKind::Conditional {
        return false;
    }
    let is_observed = found.kind == FindingKind::Observed;
    let Some((check, verdict)) = claim.rule.split_once('/') else {
        return is_observed && found.rule() == claim.rule;
    };
    let blocks = [
        Verdict::LockCycle,
        Verdict::Stall,
        Verdict::EndlessWait,
        Verdict::LockNeverReleased,
        Verdict::Stuck,
    ];
    if blocks.iter().any(|blocks| blocks.word() == verdict) {
        // Which of the words fits a ring depends on who waits besides.
        return is_observed && found.property == check;
    }
    if found.property != check || !is_observed && found.rule() != claim.rule {
        return false;
    }
    // What was predicted of one access of a line may be seen at another.
    let is_known = found.fingerprint.is_some_and(|found| found.to_string() == claim.fingerprint);
    is_known
        || places(found) == claim.places.iter().cloned().collect()
        // A region that was disturbed shows it by other conflicts than the predicted ones.
        || is_observed && !claim.about.is_empty() && about(found) == claim.about
}

/// What a finding is about as a whole.
fn about(finding: &Finding) -> Vec<String> {
    finding.about.iter().map(|subject| format!("{} {}", subject.kind(), subject.name())).collect()
}

/// Where a finding happens.
fn places(finding: &Finding) -> BTreeSet<String> {
    let places = finding.sites.iter().filter_map(|site| site.location());
    places.map(ToString::to_string).collect()
}

/// How an attempt confirms what the schedule claims, if it does.
fn confirms(schedule: &Schedule, attempt: &Attempt, way: Way) -> Option<String> {
    let is_followed = attempt.progress.state == State::Followed;
    let way = match (way.mode, way.after, way.sleeps) {
        (_, _, true) => "with real sleeps",
        (_, After::ViolatorFirst, _) => "and its thread continued first",
        (_, After::OthersFirst, _) => "and the other threads continued first",
        (Mode::Strict, ..) => "every step was as predicted",
        (Mode::Switch, ..) => "threads changed as predicted",
    };
    let failed = attempt.failed.as_ref().filter(|how| **how != schedule.observed_end);
    let path = if is_followed { way } else { "on another path than predicted" };
    let convicted = match &attempt.convicted {
        // A race is two threads at their accesses at once, and a ring stands still only at the schedule's end.
        Some(_) if !is_followed && schedule.claims_check() => None,
        convicted => convicted.as_ref(),
    };
    match (convicted, failed) {
        (Some(_), None) => Some(format!("the violation happened; {path}")),
        (Some(_), Some(how)) => {
            Some(format!("the violation happened, and the program {how}; {path}"))
        }
        (None, Some(how)) if is_followed => Some(format!("the program {how}; {path}")),
        _ => None,
    }
}

/// How far an attempt came, and why not further.
fn describe(schedule: &Schedule, mode: Mode, attempt: &Attempt) -> (usize, String) {
    let told = script::told(schedule, mode);
    let at = attempt.progress.at as usize;
    let step = told.get(at).copied();
    let of = schedule.steps.len();
    let expected = step.map_or("nothing".to_owned(), |step| step_text(schedule, step));
    let number = step.map_or(of, |step| step + 1);
    let got = &attempt.got;
    let text = match attempt.progress.state {
        State::Diverged(reason) => match reason {
            Reason::OtherStep | Reason::OtherPlace | Reason::OtherValue => {
                format!("at step {number} of {of}: expected {expected}; got {got}")
            }
            Reason::NotStarted => {
                format!(
                    "at step {number} of {of}: expected {expected}; its thread was never started"
                )
            }
            Reason::Ended => {
                format!("at step {number} of {of}: expected {expected}; its thread ended")
            }
            Reason::Busy => format!(
                "at step {number} of {of}: expected {expected}; another thread holds what {got} needs"
            ),
            Reason::DidNotBlock => format!(
                "at step {number} of {of}: expected {expected}, which should have waited and did not"
            ),
            Reason::Stalled => format!(
                "at step {number} of {of}: expected {expected}; all threads sleep, and nothing wakes them"
            ),
            Reason::Unreadable => "the runtime could not read the schedule".to_owned(),
        },
        _ => match &attempt.failed {
            Some(how) => {
                format!("at step {number} of {of}: expected {expected}; the program {how}")
            }
            None => format!(
                "at step {number} of {of}: expected {expected}; the program ended, or took too long"
            ),
        },
    };
    (number, text)
}

/// A step in words.
fn step_text(schedule: &Schedule, i: usize) -> String {
    let step = &schedule.steps[i];
    let name = schedule.threads.get(step.thread).map_or("", |thread| &*thread.name);
    let value = step.value.map_or(String::new(), |value| format!(" = {value:#x}"));
    let place = match step.comment.as_str() {
        "" if step.place == Place::None => String::new(),
        "" => format!(" at {}", step.place),
        comment => format!(" at {comment}"),
    };
    format!("{} ({name}): {}{value}{place}", schedule.path(step.thread), op_name(step.tag))
}

/// What a thread did, in words.
fn got(schedule: &Schedule, got: &Got, log: &Log, symbols: &Symbols) -> String {
    if got.tag == 0 && got.pc == 0 {
        return "nothing".to_owned();
    }
    let name = match schedule.threads.get(got.thread) {
        Some(thread) => format!("{} ({})", schedule.path(got.thread), thread.name),
        None => "a thread that is not in the schedule".to_owned(),
    };
    let place = symbols.place(log.place(got.pc).address.wrapping_sub(1)).to_string();
    let place =
        if got.pc == 0 || place.is_empty() { String::new() } else { format!(" at {place}") };
    let value = if got.tag < 0x40 { format!(" = {:#x}", got.value) } else { String::new() };
    format!("{name}: {}{value}{place}", op_name(got.tag))
}

/// The linker's fingerprint of a program, in hexadecimal digits; empty if it has none.
pub(crate) fn build_id(program: &Program) -> String {
    program.build_id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Completes a schedule: what it is a schedule of.
pub(crate) fn complete(
    schedule: &mut Schedule,
    program: &Program,
    command: &[OsString],
    session: &Session,
    checks: &[String],
    finding: Option<&Finding>,
) {
    schedule.program = command.first().map_or(String::new(), |name| name.to_string_lossy().into());
    schedule.build_id = build_id(program);
    let arguments = command.iter().skip(1);
    schedule.arguments = arguments.map(|argument| argument.to_string_lossy().into()).collect();
    schedule.environment = Some(environment());
    schedule.inputs = inputs(command);
    let specs = session.specs().iter();
    schedule.specs = specs.map(|spec| (spec.name.clone(), spec.text.clone())).collect();
    schedule.checks = checks.to_vec();
    schedule.claim = finding.map(|finding| Claim {
        rule: finding.rule(),
        fingerprint: finding.fingerprint.map_or(String::new(), |print| print.to_string()),
        message: finding.message.clone(),
        places: places(finding).into_iter().collect(),
        about: about(finding),
    });
}

/// A checksum of the environment, without what differs from shell to shell.
fn environment() -> u64 {
    let volatile = ["_", "PWD", "OLDPWD", "SHLVL"];
    let all = std::env::vars_os();
    let mut all: Vec<String> = all
        .map(|(name, value)| format!("{}={}", name.to_string_lossy(), value.to_string_lossy()))
        .filter(|line| {
            let name = line.split('=').next().unwrap_or("");
            !volatile.contains(&name) && !name.starts_with("FORESEE_")
        })
        .collect();
    all.sort();
    checksum(all.join("\n").as_bytes())
}

/// Checksums of files that the program may read: standard input, and those among its arguments.
fn inputs(command: &[OsString]) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    let sum = |path: &Path| {
        let is_file = std::fs::metadata(path).is_ok_and(|about| about.is_file());
        is_file.then(|| std::fs::read(path).ok()).flatten().map(|bytes| checksum(&bytes))
    };
    all.extend(sum(Path::new("/dev/stdin")).map(|sum| ("standard input".to_owned(), sum)));
    for argument in command.iter().skip(1) {
        let name = argument.to_string_lossy().into_owned();
        all.extend(sum(Path::new(argument)).map(|sum| (name, sum)));
    }
    all
}

/// What is different from the run that the schedule was made from.
pub(crate) fn differences(
    schedule: &Schedule,
    program: &Program,
    command: &[OsString],
) -> Vec<String> {
    let mut all = Vec::new();
    if !schedule.build_id.is_empty() && build_id(program) != schedule.build_id {
        all.push("the program is another build than the one of the schedule: places are recognised by function, line and operation".to_owned());
    }
    let arguments = command.iter().skip(1).map(|argument| argument.to_string_lossy());
    if !arguments.eq(schedule.arguments.iter().map(String::as_str)) {
        all.push(format!("the arguments differ; they were: {}", schedule.arguments.join(" ")));
    }
    let now = inputs(command);
    for (name, sum) in &schedule.inputs {
        if !now.iter().any(|(other, now)| other == name && now == sum) {
            all.push(format!("the input differs: {name}"));
        }
    }
    all
}
