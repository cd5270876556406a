//! Makes a program follow a schedule, and has the new trace judged.
//!
//! The ladder: every step is checked first; if that diverges, only the changes of threads are forced; then the thread of the
//! violating step goes first or last afterwards; then threads really sleep. The first rung on which the failure shows confirms
//! it. Nothing that happens here refutes a prediction.

mod debug;
mod origin;
mod stacks;
mod verdict;
mod words;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use foresee_capture::failure;
use foresee_capture::heard::Heard;
use foresee_capture::launch::{Ended, OnHeld, Recording, Timeouts, launch_held};
use foresee_capture::log::{self, Log};
use foresee_capture::naming::symbols_of;
use foresee_capture::program::{Built, Program};
use foresee_capture::replay::script::{self, After, Mode, Way};
use foresee_capture::replay::{Progress, Reason, Schedule, State};
use foresee_capture::scratch::Scratch;
use foresee_capture::store::{Keep, LogConversion};
use foresee_predict::session::{Session, Silent};
use foresee_trace::{Confirmation, Confirmed};

use crate::commands::run::{INTERRUPTED, STOPPED, filter, object_types, spec_vars};

pub(crate) use debug::{Debugger, Stop};
pub(crate) use origin::{build_id, complete, differences};
pub(crate) use stacks::Stack;

use verdict::{confirms, convicts};
use words::{describe, got, step_text};

/// The result of a replay.
pub(crate) enum Outcome {
    /// The failure happened.
    Confirmed(Shown),
    /// The schedule could not be followed.
    Diverged(String),
    /// The program could not be controlled.
    NotForced(String),
    /// The schedule was followed to its end, and the failure did not happen.
    Harmless,
    /// The program followed the schedule to the step at which it was to stop.
    Held(Shown),
}

/// How a failure showed.
#[derive(Clone, Default)]
pub(crate) struct Shown {
    /// In one sentence.
    pub(crate) how: String,
    /// What the program itself said of it: sanitizers, assertions, libc.
    pub(crate) said: Vec<String>,
    /// Where threads wait.
    pub(crate) stacks: Vec<Stack>,
}

impl Outcome {
    /// As a label of a finding.
    pub(crate) fn label(self) -> Confirmation {
        let (is, how) = match self {
            Outcome::Confirmed(shown) => {
                let places = stacks::in_one_line(&shown.stacks);
                (Confirmed::Yes, format!("{}{places}", shown.how))
            }
            Outcome::Diverged(how) => (Confirmed::Diverged, how),
            Outcome::NotForced(how) => (Confirmed::NotForced, how),
            Outcome::Held(shown) => (Confirmed::NotForced, shown.how),
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
    /// What the program itself said of failures.
    said: Vec<String>,
    /// Where threads wait, if it hung or is held.
    stacks: Vec<Stack>,
    /// Why the process left the schedule, if it did: something else went on in its place.
    left: Option<&'static str>,
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
        let (schedule, is_same) = match self.fit(schedule)? {
            Ok(fit) => fit,
            Err(outcome) => return Ok(outcome),
        };
        let (schedule, usual) = (&*schedule, OnceCell::new());
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let mut best: Option<(usize, String)> = None;
        let (mut follows, mut is_lost) = (None, false);
        let first = is_same.then_some(Mode::Strict);
        for mode in first.into_iter().chain([Mode::Switch]) {
            let way = Way { mode, ..STRICT };
            let attempt = self.attempt(schedule, way)?;
            let Some(attempt) = attempt else { return Ok(nothing_recorded()) };
            if let Some(shown) = confirms(schedule, &attempt, way, || self.usual(&usual))? {
                return Ok(Outcome::Confirmed(shown));
            }
            if attempt.progress.state == State::Followed {
                follows = Some(mode);
                break;
            }
            if let Some(left) = attempt.left {
                return Ok(Outcome::NotForced(left.to_owned()));
            }
            is_lost = attempt.progress.state == State::Diverged(Reason::Lost);
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
        // Without an end of the schedule, only real time can make a difference, and not to a thread that goes round in circles.
        let has_followed = follows.is_some();
        for way in rest.into_iter().filter(|way| has_followed || way.sleeps && !is_lost) {
            if is_late() || is_interrupted() {
                break;
            }
            let attempt = self.attempt(schedule, way)?;
            if let Some(attempt) = attempt {
                if let Some(shown) = confirms(schedule, &attempt, way, || self.usual(&usual))? {
                    return Ok(Outcome::Confirmed(shown));
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

    /// The schedule for the present build of the program, and whether it was made with that; or why there is none.
    fn fit<'s>(
        &self,
        schedule: &'s Schedule,
    ) -> anyhow::Result<Result<(Cow<'s, Schedule>, bool), Outcome>> {
        if self.program.built != Built::ForCapture {
            let why = "the program was not built with `foresee cc` or `foresee c++`";
            return Ok(Err(Outcome::NotForced(why.to_owned())));
        }
        if schedule.build_id.is_empty() || build_id(self.program) == schedule.build_id {
            return Ok(Ok((Cow::Borrowed(schedule), true)));
        }
        Ok(self.moved(schedule)?.map(|moved| (Cow::Owned(moved), false)))
    }

    /// What the program says of failures when it is not forced: that confirms nothing.
    fn usual(&self, known: &OnceCell<Vec<String>>) -> anyhow::Result<Vec<String>> {
        if let Some(known) = known.get() {
            return Ok(known.clone());
        }
        let scratch = Scratch::new().context("cannot make a folder for the log")?;
        let heard = Heard::default();
        self.launch(scratch.path(), None, Some(heard.clone()), (false, &mut |_| Ok(false)))?;
        Ok(known.get_or_init(|| heard.messages()).clone())
    }

    /// The schedule for another build of the program: a plain run of that shows where the places are now.
    fn moved(&self, schedule: &Schedule) -> anyhow::Result<Result<Schedule, Outcome>> {
        let scratch = Scratch::new().context("cannot make a folder for the log")?;
        let ended = self.launch(scratch.path(), None, None, (false, &mut |_| Ok(false)))?;
        let Some(tail) = log::find(&scratch.path().join("logs"))?.into_iter().next() else {
            return Ok(Err(nothing_recorded()));
        };
        let log = Log::open_within(&tail, self.memory / 4, Keep::Shared, &mut |_| {});
        let log = log.context("the log cannot be read")?;
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
        self.attempt_held(schedule, way, None, &mut |_| Ok(false))
    }

    /// The same, and holds it at a step if there is one to `stop` at.
    fn attempt_held(
        &self,
        schedule: &Schedule,
        way: Way,
        stop: Option<usize>,
        on_held: OnHeld<'_>,
    ) -> anyhow::Result<Option<Attempt>> {
        let scratch = Scratch::new().context("cannot make a folder for the log")?;
        let script = scratch.path().join("script");
        script::write(schedule, way, stop, &script).context("cannot write the schedule")?;
        let heard = Heard::default();
        let held = (stop.is_some(), on_held);
        let ended = self.launch(scratch.path(), Some(&script), Some(heard.clone()), held)?;
        let found = log::find(&scratch.path().join("logs")).context("cannot look for the log")?;
        for (i, tail) in found.iter().enumerate() {
            let log = Log::open_within(tail, self.memory / 4, Keep::Shared, &mut |_| {});
            let log = log.context("the log cannot be read")?;
            if log.header.replay.state != State::Off {
                let attempt = self.judge(schedule, way, &log, &ended, heard.messages())?;
                let others = [&found[..i], &found[i + 1..]].concat();
                return Ok(Some(Attempt { left: left(&log, &others), ..attempt }));
            }
        }
        Ok(None)
    }

    /// Runs the program, along a schedule if there is one, and records it in a folder.
    fn launch(
        &self,
        folder: &Path,
        script: Option<&Path>,
        heard: Option<Heard>,
        (is_debugged, on_held): (bool, OnHeld<'_>),
    ) -> anyhow::Result<Ended> {
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
            heard,
            is_input_taken: is_debugged,
            ..Recording::default()
        };
        let timeouts = Timeouts {
            timeout: Some(self.timeout),
            is_interrupted: &INTERRUPTED,
            stop: &STOPPED,
            on_orphans: &mut |_| {},
        };
        launch_held(self.command, &logs, &recording, timeouts, on_held)
            .with_context(|| format!("cannot run `{}`", self.command[0].to_string_lossy()))
    }

    /// Has the new trace judged.
    fn judge(
        &self,
        schedule: &Schedule,
        way: Way,
        log: &Log,
        ended: &Ended,
        said: Vec<String>,
    ) -> anyhow::Result<Attempt> {
        let symbols = symbols_of(log);
        let progress = log.header.replay;
        let got = got(schedule, &progress.got, log, &symbols);
        if self.is_traced {
            self.trace(schedule, way.mode, &progress, &got);
        }
        let is_diverged = matches!(progress.state, State::Diverged(_));
        let failed = failure::how(ended).filter(|_| !is_diverged && !ended.is_stopped);
        let failed = failed.filter(|_| !ended.timed_out && progress.state != State::Held);
        let stacks = match progress.state {
            State::Held => stacks::last_places(log, &symbols),
            _ if ended.hung.contains(&log.header.pid) => stacks::of(log, &symbols),
            _ => Vec::new(),
        };
        let attempt = Attempt { progress, convicted: None, failed, got, said, stacks, left: None };
        // What a check finds counts only at the schedule's end, and a program that left it may have recorded much.
        if progress.state != State::Followed && schedule.claims_check() && !self.is_traced {
            return Ok(attempt);
        }
        let (spec_vars, _) = spec_vars(self.session, &symbols);
        let conversion = LogConversion {
            log,
            symbols: &symbols,
            spec_vars: &spec_vars,
            object_types: &object_types(self.session),
            trusted: self.trusted,
            keep: Keep::Shared,
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
        Ok(Attempt { convicted, ..attempt })
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

/// Why the process of a log came to no step that it did not take: something else went on in its place. Logs are called
/// `PROCESS.NUMBER`, and a process has several if it becomes other programs.
fn left(log: &Log, others: &[PathBuf]) -> Option<&'static str> {
    if log.header.replay.state != State::Following || others.is_empty() {
        return None;
    }
    let mine = format!("{}.", log.header.pid);
    let is_mine = |other: &PathBuf| {
        other.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&mine))
    };
    Some(match others.iter().any(is_mine) {
        true => {
            "the process became another program by `exec` before the end of the schedule, and replay controls only the first program"
        }
        false => {
            "the program forked a process and ended before the end of the schedule, and replay controls only the first process"
        }
    })
}

fn is_interrupted() -> bool {
    use std::sync::atomic::Ordering::Relaxed;
    INTERRUPTED.load(Relaxed) || STOPPED.load(Relaxed) != 0
}

fn nothing_recorded() -> Outcome {
    let why = "no process of the program followed the schedule: it ended before its runtime could begin, or is an older build";
    Outcome::NotForced(why.to_owned())
}
