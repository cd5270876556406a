//! Runs on other machines: what is asked for, who asks, and who runs.
//!
//! Both sides have the same file as the program: the group of a request is its digest. A worker runs its own file, with the
//! arguments, the input and the schedule of the request.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use foresee_batch::Digest;
use foresee_capture::explore::{Native, Options};
use foresee_capture::program::Program as Executable;
use foresee_explore::program::{Execution, Program, RunError, Schedule};
use foresee_explore::{read_execution, read_schedule, write_execution, write_schedule};
use foresee_nats::{Caller, Group, Served, Server};
use serde::{Deserialize, Serialize};

use crate::args::ExploreArgs;
use crate::commands::run::{INTERRUPTED, STOPPED};
use crate::output;

/// The largest input that is sent along with each run.
const MOST_INPUT: usize = 64 << 10;

/// What a worker lets a run take at most, whatever is asked.
const LONGEST: Duration = Duration::from_secs(3600);
const MOST_OPERATIONS: usize = 10_000_000;

/// How many programs that are ready to run again a worker keeps.
const MOST_READY: usize = 64;

/// How a program is run, besides the schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manner {
    arguments: Vec<String>,
    input: Option<Vec<u8>>,
    is_private: bool,
    seconds: u64,
    trusted: Vec<String>,
}

/// What a run says besides what it did.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Besides {
    unseen: Option<String>,
}

/// Some JSON with bytes behind it.
fn join(json: &impl Serialize, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<u8>, RunError> {
    let json = serde_json::to_vec(json).map_err(|error| RunError(error.to_string()))?;
    let mut bytes = u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    bytes.extend(json);
    write(&mut bytes);
    Ok(bytes)
}

fn split<T: for<'d> Deserialize<'d>>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (json, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((serde_json::from_slice(json).ok()?, rest))
}

/// The workers that have a program.
fn group(program: &Path) -> anyhow::Result<Group> {
    let (digest, _) = Digest::of_file(program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    Ok(digest.to_string().parse()?)
}

/// A program that workers run.
pub(super) struct Remote {
    caller: Arc<Caller>,
    manner: Manner,
    unseen: Option<String>,
}

/// Programs that run wherever a worker has the same file, so many at a time.
pub(super) fn runners(
    server: &Server,
    program: &Path,
    args: &ExploreArgs,
) -> anyhow::Result<Vec<Box<dyn Program>>> {
    ensure!(args.before.is_none(), "--before is a shell command, which no worker runs for others");
    ensure!(
        args.spec.is_empty() && args.check.is_empty(),
        "--spec and --check need the recorded runs, which workers do not send: explore without --queue"
    );
    if !args.no_checks {
        output::note(
            "no run is checked for races, atomicity or lifetimes: that needs the recorded runs, which workers do not \
             send; --no-checks accepts that",
        );
    }
    let word = |argument: &OsString| argument.to_str().map(str::to_owned);
    let arguments = args.command.iter().skip(1).map(word).collect::<Option<Vec<_>>>();
    let arguments = arguments.context("an argument that is not UTF-8 cannot be sent to workers")?;
    let input = args
        .input
        .as_ref()
        .map(|path| std::fs::read(path).with_context(|| format!("cannot read {}", path.display())));
    let input = input.transpose()?;
    ensure!(
        input.as_ref().is_none_or(|input| input.len() <= MOST_INPUT),
        "--input is sent with every run, and has more than {} KiB: explore without --queue",
        MOST_INPUT >> 10
    );
    let manner = Manner {
        arguments,
        input,
        is_private: args.private,
        seconds: args.timeout,
        trusted: args.trust.clone(),
    };
    let is_stopped = || INTERRUPTED.load(Ordering::Relaxed) || STOPPED.load(Ordering::Relaxed) != 0;
    let tell = |text: &str| output::note(text);
    let caller = Caller::open(server, &group(program)?, Arc::new(is_stopped), Arc::new(tell))?;
    let caller = Arc::new(caller);
    let runner = |_| -> Box<dyn Program> {
        let (caller, manner) = (Arc::clone(&caller), manner.clone());
        Box::new(Remote { caller, manner, unseen: None })
    };
    Ok((0..args.jobs).map(runner).collect())
}

impl Program for Remote {
    fn run(&mut self, schedule: &Schedule) -> Result<Execution, RunError> {
        let request = join(&self.manner, |bytes| write_schedule(schedule, bytes))?;
        let answer = self.caller.call(&request).map_err(|error| RunError(error.to_string()))?;
        let unreadable = || RunError("a worker's answer cannot be read".to_owned());
        let (besides, run) = split::<Besides>(&answer).ok_or_else(unreadable)?;
        self.unseen = self.unseen.take().or(besides.unseen);
        read_execution(run).ok_or_else(unreadable)
    }

    fn unseen(&self) -> Option<String> {
        self.unseen.clone()
    }
}

/// The programs that a worker runs for others.
pub(crate) fn served(allowed: &[OsString]) -> anyhow::Result<Vec<Served>> {
    allowed.iter().map(|program| Allowed::new(program)?.served()).collect()
}

/// A program that a worker runs for others.
struct Allowed {
    path: PathBuf,
    /// What the file was like when its digest was taken.
    state: Option<(u64, SystemTime)>,
    /// Programs that wait for their next run.
    ready: Mutex<HashMap<Manner, Vec<Ready>>>,
}

struct Ready {
    native: Native,
    _input: Option<tempfile::NamedTempFile>,
}

impl Allowed {
    fn new(program: &OsString) -> anyhow::Result<Allowed> {
        let called = program.to_string_lossy();
        let found =
            Executable::find(program).with_context(|| format!("there is no program `{called}`"))?;
        let path = std::path::absolute(&found.path)?;
        // One that cannot be explored is a mistake.
        Native::new(Options::new(vec![path.clone().into()])).with_context(|| called.to_string())?;
        let state = state(&path);
        Ok(Allowed { path, state, ready: Mutex::default() })
    }

    fn served(self) -> anyhow::Result<Served> {
        let group = group(&self.path)?;
        output::note(&format!("runs {} for others", self.path.display()));
        Ok(Served { group, answer: Arc::new(move |request| self.answer(request)) })
    }

    fn answer(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        if state(&self.path) != self.state {
            return Err(format!(
                "{} has changed since the worker was started: start it again",
                self.path.display()
            ));
        }
        let unreadable = || "the request to run a program cannot be read".to_owned();
        let (manner, schedule) = split::<Manner>(request).ok_or_else(unreadable)?;
        let mut schedule = read_schedule(schedule).ok_or_else(unreadable)?;
        schedule.most_operations = schedule.most_operations.min(MOST_OPERATIONS);
        let mut ready = match self.lock().get_mut(&manner).and_then(Vec::pop) {
            Some(ready) => ready,
            None => self.prepare(&manner)?,
        };
        let run = ready.native.run(&schedule).map_err(|error| error.to_string())?;
        let besides = Besides { unseen: ready.native.unseen() };
        let answer = join(&besides, |bytes| write_execution(&run, bytes));
        let mut all = self.lock();
        if all.values().map(Vec::len).sum::<usize>() >= MOST_READY {
            all.clear();
        }
        all.entry(manner).or_default().push(ready);
        drop(all);
        answer.map_err(|error| error.to_string())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Manner, Vec<Ready>>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn prepare(&self, manner: &Manner) -> Result<Ready, String> {
        let arguments = manner.arguments.iter().map(OsString::from);
        let command = std::iter::once(self.path.clone().into()).chain(arguments).collect();
        let input = manner.input.as_ref().map(|bytes| {
            let mut file = tempfile::NamedTempFile::new()?;
            std::io::Write::write_all(&mut file, bytes)?;
            Ok::<_, std::io::Error>(file)
        });
        let input =
            input.transpose().map_err(|error| format!("cannot store the input: {error}"))?;
        let mut options = Options::new(command);
        options.input = input.as_ref().map(|file| file.path().to_owned());
        options.is_private = manner.is_private;
        options.timeout = Duration::from_secs(manner.seconds).min(LONGEST);
        options.trusted.clone_from(&manner.trusted);
        let native = Native::new(options).map_err(|error| error.to_string())?;
        Ok(Ready { native, _input: input })
    }
}

fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}
