//! Runs on other machines: what is asked for, who asks, and who runs.
//!
//! Both sides have the same file as the program: the group of a request is its digest. A worker runs its own file, with the
//! arguments, the input and the schedule of the request, and looks at each run as whoever explores would.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use foresee_batch::Digest;
use foresee_capture::explore::{Native, Observer, Options, Ran};
use foresee_capture::program::Program as Executable;
use foresee_explore::program::{Execution, Program, RunError, Schedule};
use foresee_explore::{read_execution, read_schedule, write_execution, write_schedule};
use foresee_nats::{Caller, Group, Served, Server};
use foresee_predict::session::Specification;
use serde::{Deserialize, Serialize};

use super::watch::{Asked, Look, Sight, Watch, lock};
use crate::args::ExploreArgs;
use crate::commands::run::{INTERRUPTED, STOPPED};
use crate::output;

/// The largest input that is sent along with each run.
const MOST_INPUT: usize = 64 << 10;

/// The largest specifications that are.
const MOST_SPECS: usize = 256 << 10;

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
    /// The specifications that every run is judged by, as names and texts.
    specs: Vec<(String, String)>,
    checks: Vec<String>,
}

impl Manner {
    fn is_looked_at(&self) -> bool {
        !self.specs.is_empty() || !self.checks.is_empty()
    }

    /// What looks at the runs.
    fn look(&self) -> anyhow::Result<Look> {
        let load = |(name, text): &(String, String)| Ok(Specification::new(name, text)?);
        let specs = self.specs.iter().map(load).collect::<anyhow::Result<_>>()?;
        Asked::of(specs, &self.checks)?.look()
    }
}

/// What a run says besides what it did.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Besides {
    unseen: Option<String>,
    sight: Option<Sight>,
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

/// The workers that have a program, and run this shell command before each run.
fn group(program: &Path, before: Option<&str>) -> anyhow::Result<Group> {
    let (mut digest, _) = Digest::of_file(program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    if let Some(before) = before {
        digest = Digest::of(format!("{digest} {before}").as_bytes());
    }
    Ok(digest.to_string().parse()?)
}

/// A program that workers run.
pub(super) struct Remote {
    caller: Arc<Caller>,
    manner: Manner,
    unseen: Option<String>,
    watch: Arc<Mutex<Watch>>,
}

/// Programs that run wherever a worker has the same file; `--jobs` says how many at a time.
pub(super) fn runners(
    server: &Server,
    program: &Path,
    args: &ExploreArgs,
    asked: &Asked,
    watch: &Arc<Mutex<Watch>>,
) -> anyhow::Result<Vec<Box<dyn Program>>> {
    let before = args.before.as_ref().map(|before| before.to_str());
    let before = before.map(|text| text.context("--before is not UTF-8")).transpose()?;
    let specs: Vec<(String, String)> =
        asked.specs().iter().map(|spec| (spec.name.clone(), spec.text.clone())).collect();
    ensure!(
        specs.iter().map(|(_, text)| text.len()).sum::<usize>() <= MOST_SPECS,
        "specifications are sent with every run, and have more than {} KiB: explore without --queue",
        MOST_SPECS >> 10
    );
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
        specs,
        checks: asked.checks().to_vec(),
    };
    let is_stopped = || INTERRUPTED.load(Ordering::Relaxed) || STOPPED.load(Ordering::Relaxed) != 0;
    let tell = |text: &str| output::note(text);
    let caller =
        Caller::open(server, &group(program, before)?, Arc::new(is_stopped), Arc::new(tell))?;
    let caller = Arc::new(caller);
    let runner = |_| -> Box<dyn Program> {
        let (caller, manner, watch) = (Arc::clone(&caller), manner.clone(), Arc::clone(watch));
        Box::new(Remote { caller, manner, unseen: None, watch })
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
        let run = read_execution(run).ok_or_else(unreadable)?;
        if self.manner.is_looked_at() {
            lock(&self.watch).take(&run, besides.sight.ok_or_else(unreadable)?)?;
        }
        Ok(run)
    }

    fn unseen(&self) -> Option<String> {
        self.unseen.clone()
    }
}

/// The programs that a worker runs for others, without a shell command before each run or with one of these.
pub(crate) fn served(allowed: &[OsString], before: &[String]) -> anyhow::Result<Vec<Served>> {
    let mut all = Vec::new();
    for program in allowed {
        for before in std::iter::once(None).chain(before.iter().map(Some)) {
            all.push(Allowed::new(program, before.cloned())?.served()?);
        }
        output::note(&format!("runs {} for others", program.to_string_lossy()));
    }
    Ok(all)
}

/// A program that a worker runs for others.
struct Allowed {
    path: PathBuf,
    /// A shell command that is run before each run.
    before: Option<String>,
    /// What the file was like when its digest was taken.
    state: Option<(u64, SystemTime)>,
    /// Programs that wait for their next run.
    ready: Mutex<HashMap<Manner, Vec<Ready>>>,
}

struct Ready {
    native: Native,
    /// What was seen in the last run.
    sight: Arc<Mutex<Option<Sight>>>,
    _input: Option<tempfile::NamedTempFile>,
}

impl Allowed {
    fn new(program: &OsString, before: Option<String>) -> anyhow::Result<Allowed> {
        let called = program.to_string_lossy();
        let found =
            Executable::find(program).with_context(|| format!("there is no program `{called}`"))?;
        let path = std::path::absolute(&found.path)?;
        // One that cannot be explored is a mistake.
        Native::new(Options::new(vec![path.clone().into()])).with_context(|| called.to_string())?;
        let state = state(&path);
        Ok(Allowed { path, before, state, ready: Mutex::default() })
    }

    fn served(self) -> anyhow::Result<Served> {
        let group = group(&self.path, self.before.as_deref())?;
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
        let kept = lock(&self.ready).get_mut(&manner).and_then(Vec::pop);
        let mut ready = match kept {
            Some(ready) => ready,
            None => self.prepare(&manner)?,
        };
        let run = ready.native.run(&schedule).map_err(|error| error.to_string())?;
        let besides = Besides { unseen: ready.native.unseen(), sight: lock(&ready.sight).take() };
        let answer = join(&besides, |bytes| write_execution(&run, bytes));
        let mut all = lock(&self.ready);
        if all.values().map(Vec::len).sum::<usize>() >= MOST_READY {
            all.clear();
        }
        all.entry(manner).or_default().push(ready);
        drop(all);
        answer.map_err(|error| error.to_string())
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
        options.before = self.before.as_ref().map(OsString::from);
        let mut native = Native::new(options).map_err(|error| error.to_string())?;
        let sight = Arc::new(Mutex::new(None));
        if manner.is_looked_at() {
            let look = manner.look().map_err(|error| format!("{error:#}"))?;
            let looking = Looking { look, sight: Arc::clone(&sight) };
            native.observe(Arc::new(Mutex::new(looking)));
        }
        Ok(Ready { native, sight, _input: input })
    }
}

/// Looks at runs for whoever asked for them.
struct Looking {
    look: Look,
    sight: Arc<Mutex<Option<Sight>>>,
}

impl Observer for Looking {
    fn ran(&mut self, run: &Ran<'_>) -> Result<(), RunError> {
        *lock(&self.sight) = Some(self.look.look(run)?);
        Ok(())
    }
}

fn state(path: &Path) -> Option<(u64, SystemTime)> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.len(), about.modified().ok()?))
}
